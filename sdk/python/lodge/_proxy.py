# SPDX-License-Identifier: Apache-2.0
"""A connection through an HTTP proxy: CONNECT, for http and https alike."""
import base64
import contextlib
import socket
import urllib.parse
from typing import NamedTuple, Optional

from ._http import HEAD_MAX
from .errors import InvalidError, TransportError


class Proxy(NamedTuple):
    host: str
    port: int
    secret: Optional[str]  # user:password

    def __repr__(self) -> str:
        return f"http://{self.host}:{self.port}"


def parse(url: str) -> Proxy:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port, parts = None, 0, urllib.parse.urlsplit("")
    if parts.scheme != "http" or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InvalidError("proxy: must be http://[USER:PASSWORD@]HOST[:PORT]")
    secret = None
    if parts.username is not None:
        secret = urllib.parse.unquote(parts.username) + ":" + urllib.parse.unquote(parts.password or "")
    return Proxy(host, port, secret)


def _head(proxy: Proxy, authority: str) -> bytes:
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if proxy.secret is not None:
        lines.append("Proxy-Authorization: Basic " + base64.b64encode(proxy.secret.encode()).decode())
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def tunnel(proxy: Proxy, authority: str, timeout: Optional[float]) -> socket.socket:
    """A socket that leads to the authority. Not one byte behind the answer of the proxy is read."""
    with contextlib.ExitStack() as undo:
        sock = undo.enter_context(socket.create_connection((proxy.host, proxy.port), timeout))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(_head(proxy, authority))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = sock.recv(1)
            head += piece
            if not piece or len(head) > HEAD_MAX:
                raise TransportError(f"proxy {proxy!r} closed the connection", sent=False)
        words = head.split(b"\r\n")[0].decode("latin-1").split(" ", 2)
        if len(words) < 2 or words[1] != "200":
            raise TransportError(f"proxy {proxy!r} refused to connect to {authority}: {' '.join(words[1:])}", sent=False)
        undo.pop_all()
    return sock
