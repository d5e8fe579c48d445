# SPDX-License-Identifier: Apache-2.0
"""Files of a session as file objects, and terminals: the blocking side."""
import contextlib
import io
import os
import socket
import time
from typing import IO, Any, BinaryIO, Callable, Dict, Iterator, Optional, Union

from . import _ws
from ._calls import one_entry
from ._http import LAST_CHUNK, PIECE, Call, Reply, Request, chunk, timeout_of
from ._streams import Download
from ._sync import Answer, Driver, Transport, refusal
from .errors import LateError, TransportError, of_answer

Source = Union[bytes, str, "os.PathLike[str]", IO[bytes]]
FLUSH = 64 << 10


class Reader(io.RawIOBase):
    """A file inside. seek() asks anew from there."""

    def __init__(self, transport: Transport, ask: Request, patience: float) -> None:
        super().__init__()
        self._transport, self._ask, self._patience = transport, ask, patience
        self._answer: Optional[Answer] = None
        self._begin(0)

    def _begin(self, at: int) -> None:
        self._drop()
        self._down = Download(self._ask, self._patience, at)
        self._pieces: Iterator[bytes] = iter(())
        self._left = b""
        if at == 0 or self._size is None or at < self._size:
            self._open()

    _size: Optional[int] = None

    def _open(self) -> None:
        self._answer = self._transport.open(self._down.request())
        self._down.begun(self._answer.status, self._answer.headers)
        self._size = self._down.size
        self._pieces = self._answer.pieces()

    def _drop(self) -> None:
        if self._answer:
            self._answer.close()
            self._answer = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._down.at - len(self._left)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size or 0}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning")
        if base + offset != self.tell():
            self._begin(base + offset)
        return base + offset

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            if self._answer is None:
                return 0
            try:
                piece = next(self._pieces, b"")
            except TransportError as e:
                self._drop()
                time.sleep(self._down.failed(e))
                self._open()
                continue
            if not piece:
                self._drop()
                return 0
            self._down.came(len(piece))
            self._left = piece
        n = min(len(buffer), len(self._left))
        buffer[:n] = self._left[:n]
        self._left = self._left[n:]
        return n

    def close(self) -> None:
        self._drop()
        super().close()


class Writer(io.RawIOBase):
    """A file inside that is there when this was closed. abort(), or an exception in `with`: it is not."""

    def __init__(self, transport: Transport, ask: Request) -> None:
        super().__init__()
        self._transport, self._ask = transport, ask
        self._sock: Optional[socket.socket] = transport.begin(ask)
        self._buffer = bytearray()
        self.entry: Optional[Dict[str, Any]] = None  # of the file, when it was closed

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("it is closed")
        self._buffer += data
        if len(self._buffer) >= FLUSH:
            self.flush()
        return memoryview(data).nbytes

    def flush(self) -> None:
        if self._sock and self._buffer:
            piece, self._buffer = chunk(bytes(self._buffer)), bytearray()
            self._send(piece)

    def _send(self, piece: bytes) -> None:
        assert self._sock
        try:
            self._sock.sendall(piece)
        except OSError as e:
            sock, self._sock = self._sock, None
            raise refusal(sock, self._ask.method, e, self._transport.problem) from e

    def abort(self) -> None:
        if self._sock:
            self._sock.close()
            self._sock = None
        self._buffer.clear()
        super().close()

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.flush()
            if self._sock:
                self._send(LAST_CHUNK)
                sock, self._sock = self._sock, None
                with self._transport.answer(sock, self._ask.method) as answer:
                    body = answer.read()
                    if answer.status >= 400:
                        raise of_answer(answer.status, answer.headers, body)
                    self.entry = one_entry(Reply(answer.status, answer.headers, body))
        finally:
            self.abort()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if not self.closed:
            self.abort()


class Terminal(_ws.Screen):
    """Bytes of a terminal inside. `exec_id` leads back to it, from `offset` on."""

    def __init__(self, transport: Transport, path: str) -> None:
        ask = _ws.upgrade(path)
        answer = transport.open(ask)
        _ws.check(ask, answer.status, answer.headers)
        self._sock, self._frames = answer.take_socket(), _ws.Frames(answer.headers.get("lodge-exec"))
        self._frames.feed(answer.rest)

    def write(self, data: bytes) -> None:
        self._sock.sendall(_ws.frame(_ws.BINARY, data))

    def resize(self, rows: int, cols: int) -> None:
        self._sock.sendall(_ws.resize(rows, cols))

    def read(self, timeout: Optional[float] = None) -> bytes:
        """The next bytes; b"" when the terminal ended (`exit` has the status) or the connection did."""
        self._sock.settimeout(timeout_of("timeout", timeout))
        while True:
            data = self._frames.next_bytes()
            if data is not None:
                return data
            try:
                came = self._sock.recv(PIECE)
            except socket.timeout:
                raise LateError("nothing came in time") from None
            except OSError:
                came = b""
            self._frames.closed = self._frames.closed or not came
            self._frames.feed(came)
            with contextlib.suppress(OSError):
                for reply in self._frames.take_replies():
                    self._sock.sendall(reply)

    def close(self) -> None:
        self._sock.close()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pieces_of(source: IO[bytes]) -> Iterator[bytes]:
    while True:
        piece = source.read(PIECE)
        if not piece:
            return
        yield piece


def length_of(source: IO[bytes]) -> Optional[int]:
    """What is left of a regular file."""
    try:
        return max(0, os.fstat(source.fileno()).st_size - source.tell()) if source.seekable() else None
    except (OSError, AttributeError, ValueError):
        return None


class FileDriver(Driver):
    def __init__(self, transport: Transport, reconnect: float) -> None:
        super().__init__(transport)
        self.reconnect = reconnect

    def _reader(self, path: str) -> BinaryIO:
        return io.BufferedReader(Reader(self._transport, Request("GET", path), self.reconnect), 256 << 10)

    def _writer(self, ask: Request) -> Writer:
        return Writer(self._transport, ask)

    def _terminal(self, path: str) -> Terminal:
        return Terminal(self._transport, path)

    def _connected(self, terminal: Terminal) -> Terminal:
        return terminal

    def _save_to(self, ask: Request, to: Source) -> int:
        if not hasattr(to, "write"):
            with open(to, "wb") as f:
                return self._save_to(ask, f)
        down = Download(ask, self.reconnect)
        while True:
            try:
                with self._transport.open(down.request()) as answer:
                    down.begun(answer.status, answer.headers)
                    for piece in answer.pieces():
                        to.write(piece)
                        down.came(len(piece))
                return down.at
            except TransportError as e:
                time.sleep(down.failed(e))

    def _send_from(self, source: Source, make: Callable[..., Request], decode: Callable[[Any], Any]) -> Any:
        if isinstance(source, (bytes, bytearray)):
            return self._one(Call(make(body=bytes(source)), decode))
        if not hasattr(source, "read"):
            with open(source, "rb") as f:
                return self._send_from(f, make, decode)
        ask = make(source=pieces_of(source), length=length_of(source))  # type: ignore[arg-type]
        return self._one(Call(ask, decode))

    def _event_pages(self, make: Callable[[Any], Call[Any]], at: Optional[int]) -> Iterator[Any]:
        while True:
            page = self._one(make(at))
            yield from page["events"]
            if page["next"] is None or page["next"] == at:
                return
            at = page["next"]
