"""Frames: a length as a varint, then one message."""

from __future__ import annotations

MAX_FRAME = 1 << 20
MAX_LENGTH_BYTES = 3


class Malformed(Exception):
    """What came is no frame of this protocol."""


def frame(message: bytes) -> bytes:
    """The frame of an encoded message."""
    length = len(message)
    head = bytearray()
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + message


class FrameReader:
    """Bytes in, whole messages out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        """What was received."""
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def take(self) -> bytes | None:
        """The next whole message, or None. Raises Malformed."""
        buffer, at = self._buffer, self._at
        length = 0
        for i in range(MAX_LENGTH_BYTES):
            if at + i == len(buffer):
                return None
            byte = buffer[at + i]
            length |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                break
        else:
            raise Malformed("a length of more than three bytes")
        if length > MAX_FRAME:
            raise Malformed(f"a frame of {length} bytes")
        begin = at + i + 1
        if len(buffer) - begin < length:
            return None
        self._at = begin + length
        return bytes(buffer[begin : begin + length])
