# SPDX-License-Identifier: Apache-2.0
"""Files of a session and terminals on asyncio: what _files.py is for the blocking client."""
import asyncio
import contextlib
from typing import IO, Any, AsyncIterator, Callable, Dict, List, Optional

from . import _ws
from ._async import AsyncAnswer, AsyncDriver, AsyncTransport, Link, drop, in_time
from ._calls import one_entry
from ._files import FLUSH, Source, length_of
from ._http import LAST_CHUNK, PIECE, Call, Reply, Request, chunk, timeout_of
from ._streams import Download
from .errors import Error, TransportError, of_answer


class AsyncReader:
    """A file inside: `async with session.files.open(path) as f: await f.read(n)`."""

    def __init__(self, transport: AsyncTransport, ask: Request, patience: float) -> None:
        self._transport, self._down = transport, Download(ask, patience)
        self._answer: Optional[AsyncAnswer] = None
        self._pieces: Optional[AsyncIterator[bytes]] = None
        self._left = b""
        self._ended = False

    async def _open(self) -> None:
        self._answer = await self._transport.open(self._down.request())
        self._down.begun(self._answer.status, self._answer.headers)
        self._pieces = self._answer.pieces()

    async def _next(self) -> bytes:
        while not self._ended:
            if self._pieces is None:
                await self._open()
            try:
                assert self._pieces is not None
                piece = await self._pieces.__anext__()
                self._down.came(len(piece))
                return piece
            except StopAsyncIteration:
                self._ended = True
            except TransportError as e:
                self._pieces = None
                await asyncio.sleep(self._down.failed(e))
        return b""

    async def read(self, size: int = -1) -> bytes:
        """b"" only at the end."""
        parts: List[bytes] = []
        left = size
        while left:
            if not self._left:
                self._left = await self._next()
                if not self._left:
                    break
            part = self._left if left < 0 else self._left[:left]
            self._left = self._left[len(part):]
            parts.append(part)
            left = left - len(part) if left > 0 else left
        return b"".join(parts)

    def __aiter__(self) -> "AsyncReader":
        return self

    async def __anext__(self) -> bytes:
        piece = self._left or await self._next()
        self._left = b""
        if not piece:
            raise StopAsyncIteration
        return piece

    async def close(self) -> None:
        if self._answer:
            self._answer.close()
        self._ended = True

    async def __aenter__(self) -> "AsyncReader":
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncWriter:
    """A file inside that is there when this was closed, and not after an exception inside `async with`."""

    def __init__(self, transport: AsyncTransport, ask: Request) -> None:
        self._transport, self._ask = transport, ask
        self._link: Optional[Link] = None
        self._buffer = bytearray()
        self._closed = False
        self.entry: Optional[Dict[str, Any]] = None

    async def _send(self, data: bytes) -> None:
        if self._link is None:
            self._link = await self._transport.begin(self._ask)
        try:
            await self._transport.send(self._link, data, self._transport.limit(self._ask))
        except Error:
            await self.abort()
            raise
        except OSError as e:
            link, self._link, self._closed = self._link, None, True
            raise await self._transport.refusal(link, self._ask.method, e) from e

    async def write(self, data: bytes) -> int:
        if self._closed:
            raise ValueError("it is closed")
        self._buffer += data
        if len(self._buffer) >= FLUSH:
            piece, self._buffer = chunk(bytes(self._buffer)), bytearray()
            await self._send(piece)
        return len(data)

    async def abort(self) -> None:
        self._closed = True
        if self._link:
            drop(self._link)
            self._link = None

    async def close(self) -> None:
        if self._closed:
            return
        try:
            await self._send(chunk(bytes(self._buffer)) + LAST_CHUNK)
            link, self._link, self._closed = self._link, None, True
            assert link
            async with await self._transport.answer(link, self._ask) as answer:
                body = await answer.read()
                if answer.status >= 400:
                    raise of_answer(answer.status, answer.headers, body)
                self.entry = one_entry(Reply(answer.status, answer.headers, body))
        finally:
            await self.abort()

    async def __aenter__(self) -> "AsyncWriter":
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        await (self.close() if kind is None else self.abort())


class AsyncTerminal(_ws.Screen):
    """Bytes of a terminal inside. `exec_id` leads back to it, from `offset` on."""

    def __init__(self, transport: AsyncTransport, path: str) -> None:
        self._transport, self._path = transport, path
        self._frames = _ws.Frames()
        self._link: Optional[Link] = None

    async def connect(self) -> None:
        ask = _ws.upgrade(self._path)
        answer = await self._transport.open(ask)
        _ws.check(ask, answer.status, answer.headers)
        self._link = answer.take_link()
        self._frames.exec_id = answer.headers.get("lodge-exec")
        self._frames.feed(answer.rest)

    async def __aenter__(self) -> "AsyncTerminal":
        if self._link is None:
            await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, data: bytes) -> None:
        assert self._link, "use `async with`"
        self._link[1].write(data)
        await self._link[1].drain()

    async def write(self, data: bytes) -> None:
        await self._send(_ws.frame(_ws.BINARY, data))

    async def resize(self, rows: int, cols: int) -> None:
        await self._send(_ws.resize(rows, cols))

    async def read(self, timeout: Optional[float] = None) -> bytes:
        """The next bytes; b"" when the terminal ended (`exit` has the status) or the connection did."""
        data: bytes = await in_time(self._read(), timeout_of("timeout", timeout), "nothing came in time")
        return data

    async def _read(self) -> bytes:
        assert self._link, "use `async with`"
        while True:
            data = self._frames.next_bytes()
            if data is not None:
                return data
            came = b""
            with contextlib.suppress(OSError):
                came = await self._link[0].read(PIECE)
            self._frames.closed = self._frames.closed or not came
            self._frames.feed(came)
            with contextlib.suppress(OSError):
                for reply in self._frames.take_replies():
                    await self._send(reply)

    async def close(self) -> None:
        if self._link:
            drop(self._link)


async def pieces_of(source: IO[bytes]) -> AsyncIterator[bytes]:
    """Disks are slow, too: read beside the loop."""
    while True:
        piece = await asyncio.to_thread(source.read, PIECE)
        if not piece:
            return
        yield piece


class AsyncFileDriver(AsyncDriver):
    def __init__(self, transport: AsyncTransport, reconnect: float) -> None:
        super().__init__(transport)
        self.reconnect = reconnect

    def _reader(self, path: str) -> AsyncReader:
        return AsyncReader(self._transport, Request("GET", path), self.reconnect)

    def _writer(self, ask: Request) -> AsyncWriter:
        return AsyncWriter(self._transport, ask)

    def _terminal(self, path: str) -> AsyncTerminal:
        return AsyncTerminal(self._transport, path)

    async def _connected(self, terminal: AsyncTerminal) -> AsyncTerminal:
        await terminal.connect()
        return terminal

    async def _save_to(self, ask: Request, to: Source) -> int:
        if not hasattr(to, "write"):
            with open(to, "wb") as f:
                return await self._save_to(ask, f)
        down = Download(ask, self.reconnect)
        while True:
            try:
                async with await self._transport.open(down.request()) as answer:
                    down.begun(answer.status, answer.headers)
                    async for piece in answer.pieces():
                        await asyncio.to_thread(to.write, piece)
                        down.came(len(piece))
                return down.at
            except TransportError as e:
                await asyncio.sleep(down.failed(e))

    async def _send_from(self, source: Source, make: Callable[..., Request], decode: Callable[[Any], Any]) -> Any:
        if isinstance(source, (bytes, bytearray)):
            return await self._one(Call(make(body=bytes(source)), decode))
        if not hasattr(source, "read"):
            with open(source, "rb") as f:
                return await self._send_from(f, make, decode)
        ask = make(source=pieces_of(source), length=length_of(source))  # type: ignore[arg-type]
        return await self._one(Call(ask, decode))

    async def _event_pages(self, make: Callable[[Any], Call[Any]], at: Optional[int]) -> AsyncIterator[Any]:
        while True:
            page = await self._one(make(at))
            for event in page["events"]:
                yield event
            if page["next"] is None or page["next"] == at:
                return
            at = page["next"]
