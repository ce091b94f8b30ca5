"""Where the daemon is."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from .errors import InvalidArgument

DEFAULT_URL = "unix:/run/rationd/rationd.sock"
MAX_UNIX_PATH = 107


@dataclass(frozen=True)
class Address:
    """A parsed URL: of a unix socket if `path` is set, else of TCP."""

    url: str
    path: str = ""
    host: str = ""
    port: str = ""

    def candidates(self) -> list[tuple[int, object]]:
        """Families and addresses to try, in order. Looking up a host's name may block; OSError if that fails."""
        if self.path:
            return [(socket.AF_UNIX, self.path)]
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]


def parse_url(url: str | None) -> Address:
    """ "unix:PATH", "tcp:HOST:PORT" or "tcp:[ADDRESS]:PORT"; None: $RATIOND_SOCKET, else the default."""
    if url is None:
        url = os.environ.get("RATIOND_SOCKET") or DEFAULT_URL
    if not isinstance(url, str):
        raise TypeError(f"a URL is a str, not {type(url).__name__}")
    scheme, colon, rest = url.partition(":")
    if colon and scheme == "unix":
        return Address(url, path=_unix_path(rest, url))
    if colon and scheme == "tcp":
        host, colon, port = rest.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise InvalidArgument("write tcp:[ADDRESS]:PORT", url)
        if not (host and port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
            raise InvalidArgument("write tcp:HOST:PORT, with a port from 1 to 65535", url)
        return Address(url, host=host, port=port)
    raise InvalidArgument("an address is unix:PATH, tcp:HOST:PORT or tcp:[ADDRESS]:PORT", url)


def _unix_path(path: str, url: str) -> str:
    if not path or "\0" in path:
        raise InvalidArgument("write unix:PATH", url)
    if len(os.fsencode(path)) > MAX_UNIX_PATH:
        raise InvalidArgument(f"the path of a unix socket has at most {MAX_UNIX_PATH} bytes", url)
    return path
