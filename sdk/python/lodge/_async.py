# SPDX-License-Identifier: Apache-2.0
"""The asynchronous side: streams of asyncio."""
import asyncio
import contextlib
import inspect
import ssl
import time
from typing import Any, AsyncGenerator, AsyncIterator, Callable, Iterable, List, Optional, Tuple

from ._hooks import Hooks, explain, is_unknown_route
from ._http import LAST_CHUNK, PIECE, Call, Exchange, Reply, Request, chunk, joined
from ._place import Place
from ._proxy import Proxy, tunnel
from ._retry import FIRST_CONTACT, RETRY_FOR, Retry
from ._sync import IDLE_MAX, Op, at_index, context_of
from ._trace import Span, span_of
from .errors import Error, LateError, TransportError, of_answer

Link = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def in_time(what: Any, timeout: Optional[float], say: str, sent: bool = True) -> Any:
    try:
        return await asyncio.wait_for(what, timeout)
    except asyncio.TimeoutError:
        raise LateError(say, sent=sent) from None


async def through(proxy: Proxy, place: Place, timeout: Optional[float], context: Optional[ssl.SSLContext]) -> Link:
    sock = await asyncio.to_thread(tunnel, proxy, place.authority, timeout)
    sock.setblocking(False)
    name = place.host if context else None
    return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=name, limit=PIECE)


async def connect(place: Place, timeout: Optional[float], tls: Optional[ssl.SSLContext],
                  hooks: Optional[Hooks] = None) -> Link:
    context = context_of(place, tls)
    if hooks and hooks.connect:
        opening: Any = hooks.connect(place.host, place.port, context)
    elif hooks and hooks.proxy:
        opening = through(hooks.proxy, place, timeout, context)
    elif place.scheme == "unix":
        opening = asyncio.open_unix_connection(place.host, limit=PIECE)
    else:
        opening = asyncio.open_connection(place.host, place.port, ssl=context, limit=PIECE)
    try:
        link: Link = await in_time(opening, timeout, f"cannot connect to lodged at {place}", sent=False)
        return link
    except Error:
        raise
    except ssl.SSLError as e:
        raise TransportError(f"{place}: {e}", sent=False) from e
    except OSError as e:
        raise TransportError(f"cannot connect to lodged at {place} ({e.strerror or e}): is it running?", sent=False) from e


def drop(link: Link) -> None:
    with contextlib.suppress(Exception):
        link[1].close()


class AsyncAnswer:
    """One answer under way. Leaving early closes the connection."""

    def __init__(self, transport: "AsyncTransport", link: Link, exchange: Exchange, timeout: Optional[float]) -> None:
        self._transport, self._link, self._exchange, self._timeout = transport, link, exchange, timeout
        self.status, self.headers = exchange.status, exchange.headers
        self._open = True
        self._check()

    def _check(self) -> None:
        if self._open and self._exchange.done:
            self._open = False
            self._transport.give_back(self._link, self._exchange.keep and not self._exchange.rest)

    async def pieces(self) -> AsyncIterator[bytes]:
        while True:
            for piece in self._exchange.take():
                yield piece
            if not self._open:
                return
            await self._transport.receive(self._link, self._exchange, self._timeout)
            self._check()

    async def read(self) -> bytes:
        return joined([piece async for piece in self.pieces()])

    def take_link(self) -> Link:
        self._open = False
        return self._link

    @property
    def rest(self) -> bytes:
        return self._exchange.rest

    def close(self) -> None:
        if self._open:
            self._open = False
            drop(self._link)

    async def __aenter__(self) -> "AsyncAnswer":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncTransport:
    """Connections to one place, of one event loop."""

    def __init__(self, place: Place, key: Optional[str], timeout: Optional[float], patience: Optional[float],
                 tls: Optional[ssl.SSLContext], hooks: Optional[Hooks] = None) -> None:
        self.place: Place = place
        self.key: Optional[str] = key
        self.timeout: Optional[float] = timeout
        self.tls: Optional[ssl.SSLContext] = tls
        self.hooks: Hooks = hooks or Hooks()
        self.patience: float = RETRY_FOR if patience is None else patience
        self._first: Optional[float] = FIRST_CONTACT if patience is None else patience  # None: it was there
        self._idle: List[Link] = []
        self._closed = False

    async def close(self) -> None:
        idle, self._idle, self._closed = self._idle, [], True
        for link in idle:
            drop(link)
        for link in idle:
            with contextlib.suppress(Exception):
                await link[1].wait_closed()

    def give_back(self, link: Link, keep: bool) -> None:
        if keep and not self._closed and len(self._idle) < IDLE_MAX:
            self._idle.append(link)
        else:
            drop(link)

    async def connection(self, timeout: Optional[float], fresh: bool = False) -> Link:
        while self._idle and not fresh:
            link = self._idle.pop()
            if not link[0].at_eof() and not link[1].is_closing():
                return link
            drop(link)
        try:
            link = await connect(self.place, timeout, self.tls, self.hooks)
        except TransportError as e:
            if not isinstance(e.__cause__, BlockingIOError):  # else it is there, with a long queue
                e.patience = self._first
            raise
        self._first = None
        return link

    async def receive(self, link: Link, exchange: Exchange, timeout: Optional[float]) -> None:
        try:
            exchange.receive(await in_time(link[0].read(PIECE), timeout, "no answer in time"))
        except Error:  # also one that is late, which is an OSError as well
            drop(link)
            raise
        except OSError as e:
            drop(link)
            raise TransportError(f"the connection broke ({e.strerror or e})") from e
        except BaseException:
            drop(link)
            raise

    def limit(self, ask: Request) -> Optional[float]:
        return self.timeout if ask.timeout is not None and ask.timeout < 0 else ask.timeout

    async def send(self, link: Link, data: bytes, timeout: Optional[float]) -> None:
        link[1].write(data)
        await in_time(link[1].drain(), timeout, "the service takes nothing more")

    async def _send_small(self, link: Link, data: bytes, timeout: Optional[float]) -> None:
        """For a body that the service does not refuse half-way."""
        try:
            await self.send(link, data, timeout)
        except Error:
            drop(link)
            raise
        except OSError as e:
            drop(link)
            raise TransportError(f"the connection broke ({e.strerror or e})") from e
        except BaseException:
            drop(link)
            raise

    async def refusal(self, link: Link, method: str, why: Exception) -> Error:
        """Of a service that closed before it had all: its reason, where it gave one."""
        exchange = Exchange(method)
        with contextlib.suppress(OSError, Error):
            while not exchange.done:
                exchange.receive(await in_time(link[0].read(PIECE), 5, "nothing"))
        drop(link)
        if exchange.has_head and exchange.status >= 400:
            return of_answer(exchange.status, exchange.headers, joined(exchange.take()))
        return TransportError(f"the connection broke ({why})")

    async def begin(self, ask: Request) -> Link:
        link = await self.connection(self.limit(ask), fresh=True)
        await self._send_small(link, self._head(ask), self.limit(ask))
        return link

    async def answer(self, link: Link, ask: Request) -> AsyncAnswer:
        exchange = Exchange(ask.method)
        while not exchange.has_head:
            await self.receive(link, exchange, self.limit(ask))
        return AsyncAnswer(self, link, exchange, self.limit(ask))

    def _head(self, ask: Request) -> bytes:
        return ask.head(self.place.authority, self.key, self.place.prefix, self.hooks.headers(ask.trace))

    async def once(self, ask: Request) -> AsyncAnswer:
        timeout = self.limit(ask)
        head = self._head(ask)
        link = await self.connection(timeout)
        if ask.source is not None or len(ask.body or b"") >= PIECE:
            return await self._send_body(link, head, ask)
        await self._send_small(link, head + (ask.body or b""), timeout)
        return await self.answer(link, ask)

    async def _body(self, ask: Request) -> AsyncIterator[bytes]:
        if ask.source is None:
            body = ask.body or b""
            for at in range(0, len(body), PIECE):
                yield body[at:at + PIECE]
            return
        async for piece in ask.source:
            yield chunk(piece) if ask.chunked else piece
        if ask.chunked:
            yield LAST_CHUNK

    async def _send_body(self, link: Link, head: bytes, ask: Request) -> AsyncAnswer:
        """The service may refuse a body before its end, so this reads the response while it sends."""
        timeout, exchange = self.limit(ask), Exchange(ask.method)

        async def listen() -> None:
            while not exchange.has_head:
                exchange.receive(await link[0].read(PIECE))

        listening = asyncio.ensure_future(listen())
        whole = False
        try:
            await self.send(link, head, timeout)
            try:
                async for piece in self._body(ask):
                    if listening.done():
                        break
                    await self.send(link, piece, timeout)
                else:
                    whole = True
            except Error:
                raise
            except OSError:
                pass  # it closed; what it answered before counts
            try:
                await in_time(listening, timeout if whole else 5.0, "no answer in time")
            except Error:
                raise
            except OSError as e:
                raise TransportError(f"the connection broke ({e.strerror or e})") from e
        except BaseException:
            listening.cancel()
            drop(link)
            raise
        exchange.keep = exchange.keep and whole
        return AsyncAnswer(self, link, exchange, timeout)

    async def open(self, ask: Request, patience: Optional[float] = None) -> AsyncAnswer:
        with span_of(self.hooks.tracer, ask) as span:
            answer = await self._open(ask, patience, span)
            span.answered(answer.status, answer.headers.get("x-request-id"))
            return answer

    async def _open(self, ask: Request, patience: Optional[float], span: Span) -> AsyncAnswer:
        retry = Retry(ask, self.patience if patience is None else patience, self.hooks.retry)
        while True:
            try:
                began = time.monotonic()
                span.sent()
                answer = await self.once(ask)
                self.hooks.answered(ask.method, ask.path, answer.status, answer.headers.get("x-request-id"),
                                    time.monotonic() - began)
                if answer.status < 400 or answer.status == ask.also:
                    return answer
                raise of_answer(answer.status, answer.headers, await answer.read())
            except Error as e:
                pause = retry.pause(e)
                if pause is None:
                    await self._explain(e)
                    raise
                self.hooks.repeated(ask.method, ask.path, e, pause)
                await asyncio.sleep(pause)

    async def _explain(self, error: Error) -> None:
        if is_unknown_route(error):
            with contextlib.suppress(Error):
                async with await self.once(Request("GET", "/")) as answer:
                    explain(error, Reply(answer.status, answer.headers, await answer.read()).json().get("version"))

    async def fetch(self, ask: Request) -> Reply:
        async with await self.open(ask) as answer:
            return Reply(answer.status, answer.headers, await answer.read())


class AsyncDriver:
    """How the shared calls of _api.py are made here: they are awaited."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def _one(self, call: Any) -> Any:
        """A request; or what another method has returned, which may have to be awaited."""
        if isinstance(call, Call):
            return call.decode(await self._transport.fetch(call.request))
        return await call if inspect.isawaitable(call) else call

    async def _do(self, op: Op) -> Any:
        if isinstance(op, Call):
            return await self._one(op)
        try:
            call = next(op)
            while True:
                try:
                    value = await self._one(call)
                except BaseException as e:
                    call = op.throw(e)
                else:
                    call = op.send(value)
        except StopIteration as end:
            return end.value

    async def _pages(self, make: Callable[[Any], Call[Any]], name: str) -> AsyncIterator[Any]:
        after = None
        while True:
            page = await self._one(make(after))
            for item in page[name]:
                yield item
            after = page.get("next")
            if not after:
                return

    async def _each(self, items: AsyncGenerator[Any, None], take: Callable[[Any], Iterable[Any]]) -> None:
        try:
            async for item in items:
                for made in take(item):
                    await self._one(made)
        finally:
            await items.aclose()

    async def _flat(self, items: AsyncGenerator[Any, None], make: Callable[[Any], Iterable[Any]]) -> AsyncIterator[Any]:
        try:
            async for item in items:
                for made in make(item):
                    yield made
        finally:
            await items.aclose()

    async def _items(self, op: Op) -> AsyncIterator[Any]:
        """One by one what a call returns as a list."""
        for item in await self._do(op):
            yield item

    async def _map(self, create: Callable[[], Any], fn: Callable[[Any, Any], Any], items: List[Any], concurrency: int,
                   on_progress: Optional[Callable[[int, int], object]]) -> List[Any]:
        """Each in a sandbox of its own. After the first error no other is started."""
        results: List[Any] = [None] * len(items)
        waiting, errors = iter(enumerate(items)), []
        done = 0

        async def work() -> None:
            nonlocal done
            for i, item in waiting:
                try:
                    async with await create() as box:
                        results[i] = await self._one(fn(box, item))
                    done += 1
                    if on_progress:
                        await self._one(on_progress(done, len(items)))
                except Exception as e:
                    errors.append(at_index(e, i))
                if errors:
                    return
        tasks = [asyncio.ensure_future(work()) for _ in range(min(concurrency, len(items)))]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        if errors:
            raise errors[0]
        return results

    async def _beside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Local work that may take long."""
        return await asyncio.to_thread(function, *args)

    async def _events(self, machine: Any) -> AsyncIterator[Any]:
        while not machine.done:
            try:
                async with await self._transport.open(machine.request(), patience=0.0) as answer:
                    async for piece in answer.pieces():
                        for event in machine.feed(piece):
                            yield event
                for event in machine.end():
                    yield event
            except Error as e:
                await asyncio.sleep(machine.failed(e))
