"""Programs in several languages on the same counters at once: libration, rationctl, Python, and Node where it is."""

import os
import pathlib
import random
import subprocess
import sys
import unittest

from rationd import Client
from support import PATIENCE, DaemonTest

SOURCE = pathlib.Path(os.environ.get("RATION_SOURCE", pathlib.Path(__file__).parents[2]))
CONFORMANCE = SOURCE / "tests" / "conformance"
ADDS = 5000
PATHS = 20
SKIPPED = 77  # of tests/node/run.sh: there is no Node


class Languages(DaemonTest):
    keeps = True

    def drivers(self):
        """Programs that take commands, as the conformance suite has them."""
        drivers = {
            "C": [os.environ["CONFORMANCE_DRIVER"], self.daemon.url],
            "Python": [sys.executable, str(CONFORMANCE / "driver.py"), self.daemon.url],
        }
        node = [str(SOURCE / "tests" / "node" / "run.sh"), os.environ["RATION_NODE"], "node"]
        if subprocess.run([*node, "--version"], capture_output=True).returncode != SKIPPED:
            drivers["Node"] = [*node, "driver.mjs", self.daemon.url]
        else:
            print("without Node, which is not there", file=sys.stderr)
        return drivers

    def test_the_same_counters(self):
        rng = random.Random(5)
        expected = [0] * PATHS
        inputs = {}
        drivers = self.drivers()
        for name in drivers:
            inputs[name] = []
            for i in range(ADDS):
                at, n = rng.randrange(PATHS), rng.randrange(1000)
                expected[at] += n
                inputs[name].append(f"t{i} add shared/{at} {n}")
            inputs[name].append("f durable 60000")
        drivers["rationctl"] = [os.environ["RATIONCTL"], "--socket", self.daemon.url, "add", "-"]
        inputs["rationctl"] = [f"shared/{i % PATHS} 7" for i in range(ADDS)]
        expected = [n + 7 * ADDS // PATHS for n in expected]

        running = {
            name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for name, command in drivers.items()
        }
        for name, process in running.items():
            process.stdin.write("\n".join(inputs[name]) + "\n")
            process.stdin.flush()
        for name, process in running.items():
            if name != "rationctl":
                self.assertEqual(
                    [line for line in self.answers(process) if not line.endswith(" ok")], [], name
                )
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0, name)
            process.stdout.close()
        with Client(self.daemon.url) as client:
            values = client.get_many([f"shared/{at}" for at in range(PATHS)], consistency="exact")
            self.assertEqual([value.total for value in values], expected)
            self.assertEqual(client.get("shared", consistency="exact").total, sum(expected))

    def answers(self, process):
        """All of them, up to that of the flush."""
        for line in process.stdout:
            yield line.strip()
            if line.startswith("f "):
                return


if __name__ == "__main__":
    unittest.main()
