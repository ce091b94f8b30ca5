"""Frames of the protocol: a length as a varint, then one message."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile

MAX_FRAME = 1 << 20


def load_messages(proto):
    """The module that protoc makes of ration.proto."""
    proto = pathlib.Path(proto).resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["protoc", f"--python_out={folder}", f"--proto_path={proto.parent}", proto.name], check=True
        )
        spec = importlib.util.spec_from_file_location("ration_pb2", pathlib.Path(folder, "ration_pb2.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["ration_pb2"] = module
        spec.loader.exec_module(module)
    return module


def frame(message):
    """The frame of an encoded message."""
    length, head = len(message), bytearray()
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + message


def take(buffer):
    """Remove the first whole frame from a bytearray: its message, or None if there is none yet."""
    length = 0
    for at in range(3):
        if at == len(buffer):
            return None
        length |= (buffer[at] & 0x7F) << 7 * at
        if buffer[at] < 0x80:
            break
    else:
        raise ValueError("a length of more than three bytes")
    if length > MAX_FRAME:
        raise ValueError(f"a frame of {length} bytes")
    if len(buffer) < at + 1 + length:
        return None
    message = bytes(buffer[at + 1 : at + 1 + length])
    del buffer[: at + 1 + length]
    return message
