# SPDX-License-Identifier: Apache-2.0
"""The blocking side: sockets."""
import concurrent.futures
import contextlib
import select
import socket
import ssl
import threading
import time
from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Optional, Union

from ._hooks import Hooks, explain, is_unknown_route
from ._http import LAST_CHUNK, PIECE, Call, Exchange, Reply, Request, chunk, joined
from ._place import Place
from ._proxy import tunnel
from ._retry import FIRST_CONTACT, RETRY_FOR, Retry
from ._trace import Span, span_of
from .errors import Error, LateError, TransportError, of_answer

IDLE_MAX = 8  # connections kept for the next request


def context_of(place: Place, tls: Optional[ssl.SSLContext]) -> Optional[ssl.SSLContext]:
    return (tls or ssl.create_default_context()) if place.scheme == "https" else None


def connect(place: Place, timeout: Optional[float], tls: Optional[ssl.SSLContext],
            hooks: Optional[Hooks] = None) -> socket.socket:
    try:
        if hooks and hooks.connect:
            made: socket.socket = hooks.connect(place.host, place.port, context_of(place, tls))
            return made
        if place.scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with contextlib.ExitStack() as undo:
                undo.callback(sock.close)
                sock.settimeout(timeout)
                sock.connect(place.host)
                undo.pop_all()
            return sock
        if hooks and hooks.proxy:
            sock = tunnel(hooks.proxy, place.authority, timeout)
        else:
            sock = socket.create_connection((place.host, place.port), timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = context_of(place, tls)
        return context.wrap_socket(sock, server_hostname=place.host) if context else sock
    except Error:
        raise
    except ssl.SSLError as e:
        raise TransportError(f"{place}: {e}", sent=False) from e
    except OSError as e:
        raise TransportError(f"cannot connect to lodged at {place} ({e.strerror or e}): is it running?", sent=False) from e


Problem = Callable[[int, Dict[str, str], bytes], Error]


def refusal(sock: socket.socket, method: str, why: OSError, problem: Problem) -> Error:
    """Of a service that closed before it had all: its reason, where it gave one."""
    exchange = Exchange(method)
    with contextlib.suppress(OSError, Error):
        while not exchange.done:
            exchange.receive(sock.recv(PIECE))
    sock.close()
    if exchange.has_head and exchange.status >= 400:
        return problem(exchange.status, exchange.headers, joined(exchange.take()))
    return TransportError(f"the connection broke ({why.strerror or why})")


class Answer:
    """One answer under way; iterate it for its bytes. Leaving early closes the connection."""

    def __init__(self, transport: "Transport", sock: socket.socket, exchange: Exchange) -> None:
        self._transport, self._sock, self._exchange = transport, sock, exchange
        self.status: int = exchange.status
        self.headers: Dict[str, str] = exchange.headers
        self._open = True
        self._check()

    def _check(self) -> None:
        if self._open and self._exchange.done:
            self._open = False
            self._transport.give_back(self._sock, self._exchange.keep and not self._exchange.rest)

    def pieces(self) -> Iterator[bytes]:
        while True:
            yield from self._exchange.take()
            if not self._open:
                return
            self._transport.receive(self._sock, self._exchange)
            self._check()

    def read(self) -> bytes:
        return joined(self.pieces())

    def take_socket(self) -> socket.socket:
        """For a connection that speaks something else from now on."""
        self._open = False
        return self._sock

    @property
    def rest(self) -> bytes:
        return self._exchange.rest

    def close(self) -> None:
        if self._open:
            self._open = False
            self._transport.give_back(self._sock, False)

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Transport:
    """Connections to one place; used by any number of threads."""

    def __init__(self, place: Place, key: Optional[str], timeout: Optional[float], patience: Optional[float],
                 tls: Optional[ssl.SSLContext], problem: Problem = of_answer, hooks: Optional[Hooks] = None) -> None:
        self.place: Place = place
        self.key: Optional[str] = key
        self.timeout: Optional[float] = timeout
        self.tls: Optional[ssl.SSLContext] = tls
        self.problem: Problem = problem
        self.hooks: Hooks = hooks or Hooks()
        self.patience: float = RETRY_FOR if patience is None else patience
        self._first: Optional[float] = FIRST_CONTACT if patience is None else patience  # None: it was there
        self._idle: List[socket.socket] = []
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for sock in idle:
            sock.close()

    def give_back(self, sock: socket.socket, keep: bool) -> None:
        with self._lock:
            if keep and not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(sock)
                return
        sock.close()

    def _take_idle(self) -> Optional[socket.socket]:
        """One that the service has closed meanwhile is readable."""
        while True:
            with self._lock:
                sock = self._idle.pop() if self._idle else None
            if sock is None:
                return None
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            if not poll.poll(0):
                return sock
            sock.close()

    def connection(self, timeout: Optional[float], fresh: bool = False) -> socket.socket:
        sock = None if fresh else self._take_idle()
        if sock is None:
            sock = self._connect(timeout)
        sock.settimeout(timeout)
        return sock

    def _connect(self, timeout: Optional[float]) -> socket.socket:
        try:
            sock = connect(self.place, timeout, self.tls, self.hooks)
        except TransportError as e:
            if not isinstance(e.__cause__, BlockingIOError):  # else it is there, with a long queue
                e.patience = self._first
            raise
        self._first = None
        return sock

    def receive(self, sock: socket.socket, exchange: Exchange) -> None:
        try:
            exchange.receive(sock.recv(PIECE))
        except socket.timeout:
            self._drop(sock)
            raise LateError("no answer in time") from None
        except OSError as e:
            self._drop(sock)
            raise TransportError(f"the connection broke ({e.strerror or e})") from e
        except Error:
            self._drop(sock)
            raise

    def _drop(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.close()

    def limit(self, ask: Request) -> Optional[float]:
        return self.timeout if ask.timeout is not None and ask.timeout < 0 else ask.timeout

    def begin(self, ask: Request) -> socket.socket:
        """Sends the head, for a caller that writes the body itself."""
        sock = self.connection(self.limit(ask), fresh=True)
        self.send(sock, [self._head(ask)])
        return sock

    def _head(self, ask: Request) -> bytes:
        return ask.head(self.place.authority, self.key, self.place.prefix, self.hooks.headers(ask.trace))

    def send(self, sock: socket.socket, pieces: Iterable[bytes]) -> None:
        try:
            for piece in pieces:
                sock.sendall(piece)
        except socket.timeout:
            self._drop(sock)
            raise LateError("the service takes nothing more") from None
        except OSError as e:
            self._drop(sock)
            raise TransportError(f"the connection broke ({e.strerror or e})") from e

    def _body(self, ask: Request) -> Iterator[Any]:
        if ask.source is None:
            body = memoryview(ask.body or b"")
            for at in range(0, len(body), PIECE):
                yield body[at:at + PIECE]
            return
        for piece in ask.source:
            yield chunk(piece) if ask.chunked else piece
        if ask.chunked:
            yield LAST_CHUNK

    def answer(self, sock: socket.socket, method: str, whole: bool = True) -> Answer:
        """whole: all of the request was sent."""
        exchange = Exchange(method)
        while not exchange.has_head:
            self.receive(sock, exchange)
        exchange.keep = exchange.keep and whole
        return Answer(self, sock, exchange)

    def once(self, ask: Request) -> Answer:
        head = self._head(ask)
        sock = self.connection(self.limit(ask))
        if ask.source is None and len(ask.body or b"") < PIECE:
            self.send(sock, [head + (ask.body or b"")])
            return self.answer(sock, ask.method)
        return self.answer(sock, ask.method, self._send_body(sock, head, ask))

    def _send_body(self, sock: socket.socket, head: bytes, ask: Request) -> bool:
        """The service may refuse, with a reason, what it did not want to the end: then no more is sent."""
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        try:
            sock.sendall(head)
            for piece in self._body(ask):
                if poll.poll(0):
                    return False
                sock.sendall(piece)
            return True
        except OSError as e:
            raise refusal(sock, ask.method, e, self.problem) from e
        except BaseException:
            sock.close()
            raise

    def open(self, ask: Request, patience: Optional[float] = None) -> Answer:
        """An answer that is not a failure."""
        with span_of(self.hooks.tracer, ask) as span:
            answer = self._open(ask, patience, span)
            span.answered(answer.status, answer.headers.get("x-request-id"))
            return answer

    def _open(self, ask: Request, patience: Optional[float], span: Span) -> Answer:
        retry = Retry(ask, self.patience if patience is None else patience, self.hooks.retry)
        while True:
            try:
                began = time.monotonic()
                span.sent()
                answer = self.once(ask)
                self.hooks.answered(ask.method, ask.path, answer.status, answer.headers.get("x-request-id"),
                                    time.monotonic() - began)
                if answer.status < 400 or answer.status == ask.also:
                    return answer
                raise self.problem(answer.status, answer.headers, answer.read())
            except Error as e:
                pause = retry.pause(e)
                if pause is None:
                    self._explain(e)
                    raise
                self.hooks.repeated(ask.method, ask.path, e, pause)
                time.sleep(pause)

    def _explain(self, error: Error) -> None:
        if is_unknown_route(error):
            with contextlib.suppress(Error), self.once(Request("GET", "/")) as answer:
                explain(error, Reply(answer.status, answer.headers, answer.read()).json().get("version"))

    def fetch(self, ask: Request) -> Reply:
        with self.open(ask) as answer:
            return Reply(answer.status, answer.headers, answer.read())


def at_index(error: BaseException, index: int) -> BaseException:
    """With the position of the item that it is about."""
    with contextlib.suppress(Exception):
        error.index = index  # type: ignore[attr-defined]
    return error


def cancel(futures: Iterable[Any]) -> None:
    for future in futures:
        future.cancel()


Op = Union[Call[Any], Generator[Any, Any, Any]]


class Driver:
    """How the shared calls of _api.py are made here: they block."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _one(self, call: Any) -> Any:
        """A request; or what another method has returned, which is the result already."""
        return call.decode(self._transport.fetch(call.request)) if isinstance(call, Call) else call

    def _do(self, op: Op) -> Any:
        if isinstance(op, Call):
            return self._one(op)
        try:
            call = next(op)
            while True:
                try:
                    value = self._one(call)
                except BaseException as e:
                    call = op.throw(e)
                else:
                    call = op.send(value)
        except StopIteration as end:
            return end.value

    def _pages(self, make: Callable[[Any], Call[Any]], name: str) -> Iterator[Any]:
        after = None
        while True:
            page = self._one(make(after))
            yield from page[name]
            after = page.get("next")
            if not after:
                return

    def _each(self, items: Generator[Any, None, None], take: Callable[[Any], Iterable[Any]]) -> None:
        with contextlib.closing(items):
            for item in items:
                for _ in take(item):
                    pass

    def _flat(self, items: Iterator[Any], make: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
        for item in items:
            yield from make(item)

    def _items(self, op: Op) -> Iterator[Any]:
        """One by one what a call returns as a list."""
        yield from self._do(op)

    def _map(self, create: Callable[[], Any], fn: Callable[[Any, Any], Any], items: List[Any], concurrency: int,
             on_progress: Optional[Callable[[int, int], object]]) -> List[Any]:
        """Each in a sandbox of its own. After the first error no other is started."""
        results: List[Any] = [None] * len(items)
        first: Optional[BaseException] = None

        def one(item: Any) -> Any:
            with create() as box:
                return fn(box, item)
        with concurrent.futures.ThreadPoolExecutor(max(1, min(concurrency, len(items)))) as pool:
            places = {pool.submit(one, item): i for i, item in enumerate(items)}
            try:
                for done, future in enumerate(concurrent.futures.as_completed(places), 1):
                    error = None if future.cancelled() else future.exception()
                    if error is not None and first is None:
                        first = at_index(error, places[future])
                        cancel(places)
                    if first is None:
                        results[places[future]] = future.result()
                        if on_progress:
                            on_progress(done, len(items))
            except BaseException:
                cancel(places)
                raise
        if first is not None:
            raise first
        return results

    def _beside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Local work that may take long."""
        return function(*args)

    def _events(self, machine: Any) -> Iterator[Any]:
        while not machine.done:
            try:
                answer = self._transport.open(machine.request(), patience=0.0)
                with answer:
                    for piece in answer.pieces():
                        yield from machine.feed(piece)
                yield from machine.end()
            except Error as e:
                time.sleep(machine.failed(e))
