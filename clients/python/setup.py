"""What pyproject.toml can't say: the messages are made by protoc when the package is built."""

import pathlib
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parents[1] / "proto" / "ration.proto"


class BuildWithMessages(build_py):
    """build_py, and protoc (of Debian's protobuf-compiler)."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib, "rationd")
        command = [
            "protoc",
            f"--proto_path={PROTO.parent}",
            f"--python_out={target}",
            f"--pyi_out={target}",
            PROTO.name,
        ]
        if shutil.which("protoc") is None:
            raise SystemExit("rationd is built with protoc: apt install protobuf-compiler")
        subprocess.run(command, check=True)


setup(cmdclass={"build_py": BuildWithMessages})
