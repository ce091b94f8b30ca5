#!/usr/bin/python3
"""cross-check.py ECHO PROTO_FOLDER SCRATCH

Holds proto/ against Google's implementation: code is generated for Python from ration.proto itself, random messages of every kind
are encoded there, sent through ECHO (echo.c), and must come back meaning the same. Exits with 77 if the implementation is not
installed (Debian: python3-protobuf, protobuf-compiler); where CI=true that is a failure.
"""

import os
import random
import shutil
import subprocess
import sys

SKIP = 77
N = 6000


def skip(what):
    print(f"skipped: {what} is not installed")
    if os.environ.get("CI") == "true":
        sys.exit("and where CI=true that is a failure")
    sys.exit(SKIP)


def generate(folder, scratch):
    protoc = shutil.which("protoc")
    if protoc is None:
        skip("protoc (protobuf-compiler)")
    os.makedirs(scratch, exist_ok=True)
    subprocess.run([protoc, f"--proto_path={folder}", f"--python_out={scratch}", "ration.proto"], check=True)
    sys.path.insert(0, scratch)
    try:
        import ration_pb2
    except ImportError as error:
        skip(f"python3-protobuf ({error})")
    except TypeError as error:  # what the library says to code of a protoc that it does not go with
        skip(f"a python3-protobuf that goes with this protoc ({error})")
    return ration_pb2


def make_value(field, rng):
    types = type(field)
    if field.type == types.TYPE_STRING:
        return "".join(rng.choice("ab/\0\u00fc\u4e2d\U0001f600") for _ in range(rng.randrange(20)))
    if field.type == types.TYPE_BYTES:
        return rng.randbytes(rng.choice([0, 1, 16]))
    if field.type == types.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == types.TYPE_ENUM:
        return rng.choice([0, 1, 2, 3, 2**31 - 1, -1])  # proto3 keeps what it does not know
    bits, low = {types.TYPE_UINT32: (32, 0), types.TYPE_UINT64: (64, 0), types.TYPE_SINT64: (64, -(2**63))}[field.type]
    return rng.choice([low, low + 1, 0, 1, 127, 128, low + 2**bits - 1, low + rng.getrandbits(bits)])


def fill(message, rng):
    """Sets every field but the bodies of a oneof, of which it sets one, and some of those that are optional."""
    chosen = {}
    for oneof in message.DESCRIPTOR.oneofs:
        optional = len(oneof.fields) == 1  # which is what `optional` makes
        chosen[oneof.name] = rng.choice([*oneof.fields, None] if optional else oneof.fields)
    for field in message.DESCRIPTOR.fields:
        if field.containing_oneof is not None and chosen[field.containing_oneof.name] is not field:
            continue
        repeated = field.label == field.LABEL_REPEATED
        if field.message_type is not None:
            for _ in range(rng.randrange(4) if repeated else 1):
                fill(getattr(message, field.name).add() if repeated else getattr(message, field.name), rng)
            if not repeated:
                getattr(message, field.name).SetInParent()
        elif repeated:
            getattr(message, field.name).extend(make_value(field, rng) for _ in range(rng.randrange(6)))
        else:
            setattr(message, field.name, make_value(field, rng))
    return message


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def frames(data):
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield data[at : at + length]
        at += length


def check(echo, kind, make, rng):
    sent = [fill(make(), rng) for _ in range(N)]
    encoded = [message.SerializeToString() for message in sent]
    stream = b"".join(varint(len(data)) + data for data in encoded)
    done = subprocess.run([echo, kind], input=stream, stdout=subprocess.PIPE, check=True)
    received = list(frames(done.stdout))
    assert len(received) == len(sent), f"{len(sent)} {kind} sent, {len(received)} came back"
    same = 0
    for message, data, back in zip(sent, encoded, received):
        again = make()
        again.ParseFromString(back)
        assert again == message, f"sent:\n{message}\ncame back:\n{again}"
        same += back == data
    print(f"{len(sent)} {kind}: all mean the same, {same} are the same bytes")


def main():
    echo, folder, scratch = sys.argv[1:]
    pb = generate(folder, scratch)
    seed = int(os.environ.get("RATION_SEED") or random.SystemRandom().getrandbits(32))
    print(f"RATION_SEED={seed}")
    rng = random.Random(seed)
    check(echo, "requests", pb.Request, rng)
    check(echo, "replies", pb.Reply, rng)


main()
