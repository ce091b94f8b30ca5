"""The package as a whole: its types, the examples of its README, and how it is installed."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import DaemonTest

SOURCE = pathlib.Path(os.environ.get("RATION_SOURCE", pathlib.Path(__file__).parents[2]))
PACKAGE = SOURCE / "clients" / "python"
BUILT = pathlib.Path(os.environ["PYTHONPATH"].split(":")[0]) / "rationd"


def examples():
    return re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)


def missing(what):
    """In CI what is missing is a failure."""
    if os.environ.get("CI") == "true":
        raise AssertionError(f"there is no {what}")
    raise unittest.SkipTest(f"there is no {what}")


class Examples(DaemonTest):
    def test_they_run(self):
        self.assertGreaterEqual(len(examples()), 4)
        for example in examples():
            with self.subTest(example=example):
                self.run_program(example)
        self.assertEqual(self.total("requests/acme/web"), 7)
        self.assertEqual(self.total("web/acme/hits"), 6)

    def test_what_they_say_is_printed(self):
        printed, _ = self.run_program(examples()[1])
        said = re.search(r"print\(refused\) +# (.*)", examples()[1])[1]
        self.assertEqual(printed.splitlines(), [said, "go"])


class Types(unittest.TestCase):
    def setUp(self):
        if shutil.which("mypy", path="/usr/bin") is None:
            missing("mypy")

    def mypy(self, *what):
        command = [
            "/usr/bin/mypy",
            "--strict",
            "--config-file",
            str(PACKAGE / "pyproject.toml"),
            "--cache-dir",
            os.devnull,
        ]
        done = subprocess.run([*command, *map(str, what)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_package(self):
        self.mypy(BUILT)

    def test_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, example in enumerate(examples()):
                path = pathlib.Path(folder, f"example{number}.py")
                path.write_text(example.replace("async def main():", "async def main() -> None:"))
                self.mypy(path)


class Documentation(unittest.TestCase):
    def test_everything_public_is_documented(self):
        import inspect

        import rationd
        import rationd.aio
        import rationd.statsd

        for module in (rationd, rationd.aio, rationd.statsd):
            self.assertTrue(module.__doc__)
            for name in module.__all__:
                thing = getattr(module, name)
                if not inspect.isclass(thing):
                    continue
                self.assertTrue(thing.__doc__, name)
                for member, value in vars(thing).items():
                    if not member.startswith("_") and inspect.isfunction(value):
                        self.assertTrue(value.__doc__, f"{name}.{member}")


class Installing(unittest.TestCase):
    def test_pip_install(self):
        """With what Debian has, and without a network."""
        try:
            import setuptools  # noqa: F401
            import venv  # noqa: F401
            import wheel  # noqa: F401
        except ImportError as error:
            missing(error.name)
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "tree", "clients", "python")
            shutil.copytree(
                PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
            )
            shutil.copytree(SOURCE / "proto", pathlib.Path(folder, "tree", "proto"))
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

            def run(*command):
                done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                return done.stdout

            run(sys.executable, "-m", "venv", "--system-site-packages", "venv")
            run(
                "venv/bin/pip",
                "install",
                "--no-build-isolation",
                "--no-index",
                "--force-reinstall",
                "--no-deps",
                str(source),
            )
            text = "import rationd, importlib.metadata; print(rationd.__file__, importlib.metadata.version('rationd'))"
            path, version = run("venv/bin/python", "-c", text).split()
            self.assertIn("venv", path)
            self.assertEqual(version, __import__("rationd").__version__)


if __name__ == "__main__":
    unittest.main()
