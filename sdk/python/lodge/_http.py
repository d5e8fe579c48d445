# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 without input or output: what is sent, and what bytes that came mean. The blocking client and the
one on asyncio both use just this."""
import json
import os
import urllib.parse
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, TypeVar, Union

from .errors import InvalidError, TransportError

HEAD_MAX = 64 << 10
LINE_MAX = 1 << 10  # of a chunk's head or a trailer
PIECE = 64 << 10  # read at once
T = TypeVar("T")
Name = Union[str, bytes, "os.PathLike[str]"]


def timeout_of(name: str, seconds: Optional[float]) -> Optional[float]:
    """A timeout as all methods take it: seconds; 0 or None: no limit, which is returned as None."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise InvalidError(f"{name}: must be a number of seconds, or 0 or None for no limit, not {seconds!r}")
    return float(seconds) or None


def duration_of(name: str, seconds: float) -> float:
    """How long something is tried or waited for: seconds; 0: not at all."""
    if seconds is None:
        raise InvalidError(f"{name}: must be a number of seconds, not None")
    return timeout_of(name, seconds) or 0.0


def quote(name: Name) -> str:
    """One segment; any bytes (surrogates stand for what is no UTF-8)."""
    return urllib.parse.quote(os.fsencode(name), safe="")


def quote_path(path: Name) -> str:
    """A path inside: slashes stay, but the first one, which some proxies would drop."""
    raw = os.fsencode(path)
    text = "/".join(urllib.parse.quote(part, safe="") for part in raw.split(b"/"))
    return "%2F" + text[1:] if raw.startswith(b"/") else text


def query(pairs: Mapping[str, Any]) -> str:
    """None is left out; True and False are 1 and 0."""
    out = []
    for name, value in pairs.items():
        if value is None:
            continue
        text = str(int(value)) if isinstance(value, (bool, int)) else value
        out.append(f"{quote(name)}={quote(text)}")
    return "?" + "&".join(out) if out else ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()  # there are more digits than 0 to 9


class Request:
    """safe: asking twice is as asking once. keyed: it has an idempotency key, so the same holds. source: a body
    in pieces, which can be sent only once; its length, or None if only its end will tell."""

    def __init__(self, method: str, path: str, *, body: Optional[bytes] = None, kind: Optional[str] = None,
                 accept: Optional[str] = None, headers: Optional[Mapping[str, str]] = None, keyed: bool = False,
                 timeout: Optional[float] = -1.0, source: Any = None, length: Optional[int] = None,
                 also: int = 0) -> None:
        if ".." in urllib.parse.unquote_to_bytes(path.partition("?")[0]).decode("latin-1").split("/"):
            raise InvalidError(f'{path}: must not contain ".."')  # a proxy may resolve it
        self.method: str = method
        self.path: str = path
        self.body: Optional[bytes] = body
        self.kind: Optional[str] = kind
        self.accept: Optional[str] = accept
        self.headers: Dict[str, str] = dict(headers or {})
        self.safe: bool = method in ("GET", "HEAD")
        self.keyed = keyed
        self.timeout = timeout  # between two bytes; None: for ever; negative: the client's
        self.source: Any = source
        self.length: Optional[int] = length
        self.also = also  # a status of 400 or more that is an answer here
        self.trace: Optional[str] = None  # the trace context of its span

    @property
    def repeatable(self) -> bool:
        return self.source is None and (self.safe or self.keyed)

    @property
    def chunked(self) -> bool:
        return self.source is not None and self.length is None

    def head(self, authority: str, key: Optional[str], prefix: str = "", more: Optional[Mapping[str, str]] = None) -> bytes:
        lines = [f"{self.method} {prefix}{self.path} HTTP/1.1", f"Host: {authority}"]
        if key:
            lines.append(f"Authorization: Bearer {key}")
        if self.accept:
            lines.append(f"Accept: {self.accept}")
        if self.kind:
            lines.append(f"Content-Type: {self.kind}")
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self.source is not None:
            lines.append(f"Content-Length: {self.length}")
        elif self.body is not None or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body or b'')}")
        own = {name.lower() for name in self.headers}
        lines += [f"{name}: {value}" for name, value in (more or {}).items() if name.lower() not in own]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        text = "\r\n".join(lines) + "\r\n\r\n"
        if text.count("\r\n") != len(lines) + 1 or "\n" in text.replace("\r\n", ""):
            raise ValueError("a header with a line break")
        return text.encode("latin-1")


def request(method: str, path: str, value: Any = None, **how: Any) -> Request:
    """With a JSON body, unless the value is None. What is None in an object is left out."""
    if value is not None:
        if isinstance(value, dict):
            value = {k: v for k, v in value.items() if v is not None}
        how.update(body=json.dumps(value).encode(), kind="application/json")
    return Request(method, path, **how)


class Reply:
    def __init__(self, status: int, headers: Dict[str, str], body: bytes) -> None:
        self.status: int = status
        self.headers: Dict[str, str] = headers
        self.body: bytes = body

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise TransportError("the service answered with something that is no JSON", status=self.status) from None


class Call(Generic[T]):
    """A request, and what its answer is to the caller."""

    def __init__(self, ask: Request, decode: Callable[[Reply], T]) -> None:
        self.request, self.decode = ask, decode


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"


class Exchange:
    """One answer as it comes: receive() takes what came, b"" at the end of the connection; then status and headers
    are there, `data` has what can be read now, and `done` is set at the end."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._buffer = bytearray()
        self._left: Optional[int] = None  # of the body or chunk; None: until the connection ends
        self._chunked = False
        self._state = "head"
        self.status: int = 0
        self.headers: Dict[str, str] = {}
        self.data: List[bytes] = []
        self.keep: bool = False  # the connection can be used again afterwards
        self.began: bool = False  # something came

    @property
    def has_head(self) -> bool:
        return self._state != "head"

    @property
    def done(self) -> bool:
        return self._state == "done"

    @property
    def rest(self) -> bytes:
        """What came behind the head, of a connection that speaks something else now."""
        return bytes(self._buffer)

    def take(self) -> List[bytes]:
        data, self.data = self.data, []
        return data

    def receive(self, data: bytes) -> None:
        if not data:
            self._end()
            return
        self.began = True
        self._buffer += data
        while self._step():
            pass

    def _end(self) -> None:
        if self._state == "body" and self._left is None:
            self._state, self.keep = "done", False
        elif self._state != "done":
            raise TransportError("the connection broke before the answer was complete")

    def _step(self) -> bool:
        if self._state == "head":
            return self._take_head()
        if self._state == "body":
            return self._take_body()
        if self._state == "size":
            return self._take_size()
        return self._state == "trailer" and self._take_trailer()

    def _line(self) -> Optional[bytes]:
        at = self._buffer.find(b"\r\n")
        if at < 0:
            if len(self._buffer) > LINE_MAX:
                raise TransportError("the answer is no HTTP")
            return None
        line = bytes(self._buffer[:at])
        del self._buffer[:at + 2]
        return line

    def _take_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_MAX:
                raise TransportError("the head of the answer is too long")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[:end + 4]
        words = lines[0].split(" ", 2)
        if not lines[0].startswith("HTTP/1.") or len(words) < 2 or not _is_number(words[1]):
            raise TransportError("the answer is no HTTP")
        self.status = int(words[1])
        if 100 <= self.status < 200 and self.status != 101:
            return True
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._begin_body(words[0])
        return True

    def _begin_body(self, version: str) -> None:
        self.keep = version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"
        length = self.headers.get("content-length")
        if self.status == 101:
            self._state = "raw"  # `rest` and what comes later are of another protocol
        elif self._method == "HEAD" or self.status in (204, 304):
            self._state = "done"
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunked, self._state = True, "size"
        elif length is not None:
            if not _is_number(length):
                raise TransportError("the answer has no such length")
            self._left = int(length)
            self._state = "body" if self._left else "done"
        else:
            self._state = "body"

    def _take_body(self) -> bool:
        if not self._buffer:
            return False
        n = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
        if n:
            self.data.append(bytes(self._buffer[:n]))
            del self._buffer[:n]
        if self._left is not None:
            self._left -= n
            if self._left:
                return False
            if not self._chunked:
                self._state = "done"
                return False
            if len(self._buffer) < 2:
                self._left = 0
                return False
            del self._buffer[:2]  # the end of the chunk's last line
            self._state = "size"
        return bool(self._buffer)

    def _take_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        try:
            self._left = int(line.split(b";")[0], 16)
        except ValueError:
            raise TransportError("the answer has no such chunk") from None
        self._state = "body" if self._left else "trailer"
        return True

    def _take_trailer(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if not line:
            self._state = "done"
            return False
        return True


def joined(pieces: Iterable[bytes]) -> bytes:
    return b"".join(pieces)
