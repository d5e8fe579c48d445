# SPDX-License-Identifier: Apache-2.0
"""WebSocket frames (RFC 6455), a client's side, without input or output."""
import base64
import hashlib
import json
import os
import struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Union

from ._http import Request
from .errors import TransportError

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_MAX = 16 << 20
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def upgrade(path: str) -> Request:
    ask = Request("GET", path, headers={
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()})
    ask.safe = "exec=" in path  # without it each starts a shell of its own
    return ask


def check(ask: Request, status: int, headers: Mapping[str, str]) -> None:
    digest = hashlib.sha1(ask.headers["Sec-WebSocket-Key"].encode() + _GUID).digest()
    if status != 101 or headers.get("sec-websocket-accept") != base64.b64encode(digest).decode():
        raise TransportError("the service does not speak WebSocket there")


def frame(kind: int, data: bytes) -> bytes:
    n = len(data)
    head = bytes([0x80 | kind])
    if n < 126:
        head += bytes([0x80 | n])
    elif n < 1 << 16:
        head += bytes([0x80 | 126]) + struct.pack(">H", n)
    else:
        head += bytes([0x80 | 127]) + struct.pack(">Q", n)
    mask = os.urandom(4)
    stretched = (mask * (n // 4 + 1))[:n]
    masked = (int.from_bytes(data, "big") ^ int.from_bytes(stretched, "big")).to_bytes(n, "big") if n else b""
    return head + mask + masked


class Message(NamedTuple):
    """Bytes of the terminal; or what the service says: a dict."""
    data: Union[bytes, Dict[str, Any]]


class Frames:
    """feed() what came, then next_bytes() until it is None; send `replies`, and see whether it is `closed`. exec_id,
    offset and exit are the latest the service sent about the terminal."""

    def __init__(self, exec_id: Optional[str] = None) -> None:
        self.exec_id = exec_id
        self.offset = 0
        self.exit: Optional[Dict[str, Any]] = None
        self._waiting: List[Message] = []
        self._buffer = bytearray()
        self._parts = bytearray()
        self._kind = 0
        self.replies: List[bytes] = []
        self.closed = False

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while True:
            found = self._next()
            if found is None:
                return
            self._waiting += found

    def next_bytes(self) -> Optional[bytes]:
        """b"": it is over. None: more has to come first."""
        while self._waiting:
            data = self._waiting.pop(0).data
            if isinstance(data, bytes):
                self.offset += len(data)
                return data
            if "exec_id" in data:
                self.exec_id, self.offset = data["exec_id"], data.get("offset", 0)
            self.exit = data.get("exit", self.exit)
        return b"" if self.closed else None

    def take_replies(self) -> List[bytes]:
        replies, self.replies = self.replies, []
        return replies

    def _next(self) -> Optional[List[Message]]:
        b = self._buffer
        if len(b) < 2:
            return None
        final, kind, n, at = b[0] & 0x80, b[0] & 0x0f, b[1] & 0x7f, 2
        if n >= 126:
            size = 2 if n == 126 else 8
            if len(b) < at + size:
                return None
            n, at = int.from_bytes(b[at:at + size], "big"), at + size
        if n > MESSAGE_MAX or len(self._parts) + n > MESSAGE_MAX:
            raise TransportError("a message is too long")
        if len(b) < at + n:
            return None
        data = bytes(b[at:at + n])
        del b[:at + n]
        return self._take(bool(final), kind, data)

    def _take(self, final: bool, kind: int, data: bytes) -> List[Message]:
        if kind == PING:
            self.replies.append(frame(PONG, data))
        elif kind == CLOSE:
            self.closed = True
            self.replies.append(frame(CLOSE, data[:2]))
        elif kind in (0, TEXT, BINARY):
            self._kind = kind or self._kind
            self._parts += data
            if final:
                whole, self._parts = bytes(self._parts), bytearray()
                return [Message(json.loads(whole) if self._kind == TEXT else whole)]
        return []


def resize(rows: int, cols: int) -> bytes:
    return frame(TEXT, json.dumps({"resize": {"rows": rows, "cols": cols}}).encode())


class Screen:
    """What both terminals tell of themselves."""
    _frames: Frames

    @property
    def exec_id(self) -> Optional[str]:
        return self._frames.exec_id

    @property
    def offset(self) -> int:
        return self._frames.offset

    @property
    def exit(self) -> Optional[Dict[str, Any]]:
        return self._frames.exit
