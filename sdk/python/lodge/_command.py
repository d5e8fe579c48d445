# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return,misc"
"""Commands of a Sandbox, once for both clients, as _api.py: run() in the foreground, Command in the background, Pty."""
from __future__ import annotations

import codecs
import collections
import contextlib
import datetime
import time
from typing import (Any, Callable, Deque, Dict, Generator, Iterable, Iterator, List, Literal, Mapping, Optional, Pattern, Sequence,
                    Tuple, Union, overload)

from . import _calls as c
from ._http import Call, Request, query, quote, timeout_of
from ._options import named_options
from ._part import Part
from ._words import find
from .errors import CommandError, Error, InvalidError, OutputGoneError, StateLostWarning, TimeoutError
from .types import Event, ExecResult, Output, Result

Input = Union[str, bytes, None]
Callback = Callable[[Any], object]
STREAMS = ("stdout", "stderr")
INPUT_MAX = 64 << 10  # more is written to the running command, as the request has a limit
WRITE_SIZE = 1 << 20
KEPT = 8 << 20  # of each stream in the result of a command with callbacks, as in a response; of a terminal, unread
POLL = 20.0


def result_of(done: ExecResult, text: bool) -> Result[Any]:
    def shown(data: bytes) -> Any:
        return data.decode("utf-8", "replace") if text else data
    return Result(shown(done.stdout), shown(done.stderr), done.exit_code, done.signal, done.timed_out, done.truncated,
                  list(done.limits), done.duration_ms / 1000, done.exec_id, done.reason)


def _ending(result: Result[Any]) -> str:
    if result.timed_out:
        return f"timed out after {result.duration:.3g} s"
    if result.reason:
        return f"did not end by itself: {result.reason}"
    if result.exit_code is not None:
        return f"ended with exit code {result.exit_code}"
    return f"was ended by signal {result.signal}" if result.signal else "was lost with its sandbox"


# what a limit did to a command, in words
LIMITS = {"LIMIT_MEMORY": "ran out of memory", "LIMIT_PIDS": "reached its limit of processes", "LIMIT_DISK": "ran out of disk space",
          "LIMIT_FILE": "reached the limit of the size of a file"}


def _limits(result: Result[Any]) -> str:
    found = [f"{LIMITS[name]} ({name})" for name in result.limits_hit if name in LIMITS]
    return f"; it {' and '.join(found)}" if found else ""


def shown_command(command: object) -> str:
    """The beginning of it, for a message."""
    text = command if isinstance(command, str) else " ".join(map(str, command)) if isinstance(command, (list, tuple)) else ""
    return text[:80]


def failed(command: object, result: Result[Any], more: str = "") -> CommandError:
    """With the last line that it wrote to stderr, which often says why."""
    stderr = result.stderr if isinstance(result.stderr, str) else result.stderr.decode("utf-8", "replace")
    last = stderr.strip().rpartition("\n")[2]
    shown = shown_command(command)
    name = f"command {shown!r}" if shown else f"command {result.command_id}"
    return CommandError(f"{name} {_ending(result)}{more}{_limits(result)}" + (f": {last[:200]}" if last else ""), result)


def check(command: object) -> None:
    """Of run()."""
    if isinstance(command, str):
        return
    if not isinstance(command, Sequence) or isinstance(command, (bytes, bytearray)):
        raise InvalidError(f"cmd: must be bash text, or a list of a program and its arguments, not {type(command).__name__}")
    for word in command:
        if not isinstance(word, str):
            raise InvalidError(f"cmd: every word must be text, not {type(word).__name__}")


class Pieces:
    """Output as callers take it: bytes, or whole characters even if one came in two parts."""

    def __init__(self, text: bool) -> None:
        self._decoders: Dict[str, Any] = {}
        self._text = text
        self._reset(STREAMS)

    def _reset(self, streams: Iterable[str]) -> None:
        self._decoders.update({s: codecs.getincrementaldecoder("utf-8")("replace") for s in streams})

    def feed(self, event: Event) -> List[Tuple[str, Any]]:
        if event.kind in STREAMS:
            piece = self._decoders[event.kind].decode(event.data) if self._text else event.data
            return [(event.kind, piece)] if piece else []
        if event.kind == "gap" and event.stream:
            self._reset([event.stream])
        return self.rest() if event.kind == "exit" else []

    def rest(self) -> List[Tuple[str, Any]]:
        """Of a last character that stays incomplete."""
        left = [(s, self._decoders[s].decode(b"", True)) for s in STREAMS]
        return [(s, piece) for s, piece in left if piece]


class Watcher:
    """Hands the output of a command to callbacks, and keeps the end of it for the result."""

    def __init__(self, text: bool, on_stdout: Optional[Callback], on_stderr: Optional[Callback]) -> None:
        self._calls = {"stdout": on_stdout, "stderr": on_stderr}
        self._pieces = Pieces(text)
        self._kept = {s: bytearray() for s in STREAMS}
        self._cut = False
        self._calling = False
        self._exec_id: Optional[str] = None
        self.result: Optional[ExecResult] = None

    def take(self, event: Event) -> Iterator[Any]:
        """What the callbacks return, which may have to be awaited."""
        self._exec_id = event.exec_id or self._exec_id
        if event.kind in STREAMS:
            kept = self._kept[event.kind]
            kept += event.data
            if len(kept) > KEPT:
                del kept[:-KEPT]
                self._cut = True
        if event.result:
            self.result = event.result
        for stream, piece in self._pieces.feed(event):
            call = self._calls[stream]
            if call:
                self._calling = True
                yield call(piece)
                self._calling = False

    @property
    def abandoned(self) -> Optional[str]:
        """The command that still runs although a callback failed."""
        return self._exec_id if self._calling and not self.result else None

    def finished(self) -> ExecResult:
        assert self.result
        done = self.result
        done.stdout, done.stderr = (bytes(self._kept[s]) for s in STREAMS)
        if self._cut and not done.truncated:
            done.truncated, done.limits = True, [*done.limits, "LIMIT_OUTPUT"]
        return done


def must_be_written(data: Input) -> bool:
    """Input that a request cannot have: too long, or no text."""
    if data is None:
        return False
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
    try:
        raw.decode("utf-8")
        return len(raw) > INPUT_MAX or b"\0" in raw
    except UnicodeDecodeError:
        return True


def write_all(job: Any, data: Input) -> Generator[Any, Any, None]:
    """A command that ends before it has read all of its input is no error."""
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data or b"")
    at = f"{c.session_base(job.session)}/execs/{quote(job.id)}/stdin"
    try:
        for first in range(0, len(raw) or 1, WRITE_SIZE):
            last = first + WRITE_SIZE >= len(raw)
            ask = Request("POST", at + query({"eof": last or None}), body=raw[first:first + WRITE_SIZE],
                          kind="application/octet-stream", timeout=None)  # until it reads, or is killed
            yield Call(ask, c.nothing)
    except Error as e:
        if not c.ended(e):
            raise


def run(part: Any, session: Any, command: c.CommandLine, data: Input, text: bool, check: bool,
        calls: Tuple[Optional[Callback], Optional[Callback]], how: Dict[str, Any]) -> Generator[Any, Any, Result[Any]]:
    """In the foreground."""
    if must_be_written(data):
        job = yield session.start(command, **how)
        yield from write_all(job, data)
        events = job.stream()
    elif any(calls):
        events = session.stream(command, stdin=data, **how)
    else:
        events = None
    if events is None:
        done = yield session.exec(command, stdin=data, **how)
        if done.state_lost:
            c.warn(f"sandbox {session.id} lost its files, and started anew before the command", StateLostWarning)
    else:
        watcher = Watcher(text, *calls)
        try:
            yield part._driver._each(events, watcher.take)
        except (Exception, SystemExit):
            if watcher.abandoned:
                with contextlib.suppress(Error):
                    yield session.command(watcher.abandoned).kill()
            raise
        done = watcher.finished()
    result = result_of(done, text)
    if check and not result.ok:
        raise failed(command, result)
    return result


def start(session: Any, command: c.CommandLine, data: Input, how: Dict[str, Any],
          make: Callable[[Any, Dict[str, Any]], Any]) -> Generator[Any, Any, Any]:
    """In the background."""
    if must_be_written(data):
        job = yield session.start(command, **how)
        yield from write_all(job, data)
    else:
        job = yield session.start(command, stdin=data, **how)
    given = command if isinstance(command, str) else list(command)
    return make(job, {"command": given, "state": "running"})


def _is_match(pattern: Union[str, Pattern[str]], line: str) -> bool:
    return pattern in line if isinstance(pattern, str) else pattern.search(line) is not None


class Lines:
    """Whole lines of both streams, and what begins the next ones."""

    def __init__(self) -> None:
        self._pieces = Pieces(True)
        self._rest = {s: "" for s in STREAMS}

    def feed(self, out: Output) -> List[str]:
        found: List[str] = []
        events = [Event("stdout", data=out.stdout), Event("stderr", data=out.stderr)]
        for stream, piece in (p for e in events for p in self._pieces.feed(e)):
            *lines, self._rest[stream] = (self._rest[stream] + piece).split("\n")
            found += [line.rstrip("\r") for line in lines]
        return found

    def last(self) -> List[str]:
        return [line for line in self._rest.values() if line]


def find_line(job: Any, base: str, pattern: Union[str, Pattern[str]],
              timeout: Optional[float]) -> Generator[Any, Any, str]:
    limit = timeout_of("timeout", timeout)
    until = None if limit is None else time.monotonic() + limit
    at, lines = [0, 0], Lines()
    while True:
        left = POLL if until is None else min(POLL, max(0.0, until - time.monotonic()))
        try:
            out = yield c.output(base, job.id, at[0], at[1], left)
        except OutputGoneError as e:
            at = c.first_kept(e, at)
            continue
        at = [out.stdout_offset, out.stderr_offset]
        found = lines.feed(out) + (lines.last() if out.done else [])
        for line in found:
            if _is_match(pattern, line):
                return line
        shown = pattern if isinstance(pattern, str) else pattern.pattern
        if out.done:
            done = yield job.wait()
            raise failed("", result_of(done, True), f" before a line matched {shown!r}")
        if until is not None and time.monotonic() >= until:
            raise TimeoutError(f"command {job.id}: no line matched {shown!r} within {limit:.3g} s",
                               details={"command_id": job.id})


def retained(job: Any, base: str, text: bool) -> Generator[Any, Any, List[Tuple[str, Any]]]:
    """What is retained of its output at this moment."""
    record = yield job.info()
    ends = [record["stdout_bytes"], record["stderr_bytes"]]
    at, pieces = [0, 0], Pieces(text)
    found: List[Tuple[str, Any]] = []
    while at[0] < ends[0] or at[1] < ends[1]:
        try:
            out = yield c.output(base, job.id, at[0], at[1], 0)
        except OutputGoneError as e:
            at = c.first_kept(e, at)
            continue
        found += pieces.feed(Event("stdout", data=out.stdout)) + pieces.feed(Event("stderr", data=out.stderr))
        at = [out.stdout_offset, out.stderr_offset]
        if out.done:
            break
    return found + pieces.rest()


@named_options
class CommandApi(Part):
    """A command that runs in the background of a Sandbox, also without a client.

    Any client finds it again by its id, for 7 days after its end.

    >>> job = box.run("echo ready; sleep 1; echo done", background=True)
    >>> job.wait_for_log("ready")
    'ready'
    >>> box.command(job.id).wait().stdout
    'ready\\ndone\\n'
    """

    def __init__(self, driver: Any, job: Any, record: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(driver)
        self._job, self._at = job, c.session_base(job.session)
        self._record = record or {}
        self.id: str = job.id

    def __repr__(self) -> str:
        shown = shown_command(self.cmd)
        parts = [self.id, repr(shown) if shown else "", self.state or ""]
        if self.exit_code is not None:
            parts.append(f"exit_code={self.exit_code}")
        return f"<{type(self).__name__} {' '.join(filter(None, parts))}>"

    @property
    def cmd(self) -> Union[str, List[str], None]:
        """The command as it was given to run(); None: this object was made of an id only."""
        return self._record.get("command")

    @property
    def state(self) -> Optional[str]:
        """Its state: "running", "exited", "killed" or "lost", as this object last saw it; None: it did not ask yet."""
        return self._record.get("state")

    @property
    def exit_code(self) -> Optional[int]:
        """Its exit code, as this object last saw it; None: it has none, or did not end yet."""
        return self._record.get("exit_code")

    @property
    def started_at(self) -> Optional[datetime.datetime]:
        """When it started; None: this object did not ask yet."""
        return c.when(self._record.get("started_at"))

    def _look(self) -> Generator[Any, Any, Any]:
        self._record = yield self._job.info()
        return self._record

    def __getattr__(self, name: str) -> Any:
        return find(self, "Command", type(self).__name__, name)

    @overload
    def wait(self, timeout: Optional[float] = None, *, text: Literal[True] = True) -> Result[str]: ...

    @overload
    def wait(self, timeout: Optional[float] = None, *, text: Literal[False]) -> Result[bytes]: ...

    def wait(self, timeout: Optional[float] = None, *, text: bool = True) -> Result[Any]:
        """Wait until it ends, and return the result with the output that is retained.

        timeout: seconds, after which a TimeoutError leaves it running; 0 or None: no limit."""
        def op() -> Generator[Any, Any, Result[Any]]:
            done = yield self._job.wait(timeout)
            with contextlib.suppress(Error):
                yield from self._look()
            return result_of(done, text)
        return self._do(op())

    @overload
    def logs(self, *, follow: bool = False, text: Literal[True] = True) -> Iterator[Tuple[str, str]]: ...

    @overload
    def logs(self, *, follow: bool = False, text: Literal[False]) -> Iterator[Tuple[str, bytes]]: ...

    def logs(self, *, follow: bool = False, text: bool = True) -> Iterator[Tuple[str, Any]]:
        """Iterate over its output as pairs of "stdout" or "stderr" and a piece of text.

        follow: continue until it ends, across broken connections; else stop at what there is now."""
        if follow:
            return self._driver._flat(self._job.stream(), Pieces(text).feed)
        return self._driver._items(retained(self._job, self._at, text))

    def kill(self, signal: Union[int, str, None] = None) -> None:
        """Kill it with everything it started, or send it a signal such as "INT"."""
        def op() -> Generator[Any, Any, None]:
            yield self._job.kill() if signal is None else self._job.signal(signal)
        return self._do(op())

    def is_running(self) -> bool:
        """Ask the service whether it still runs."""
        def op() -> Generator[Any, Any, bool]:
            return (yield from self._look())["state"] == "running"
        return self._do(op())

    def write(self, data: Union[str, bytes] = b"", *, eof: bool = False) -> None:
        """Write to its standard input; eof=True closes it afterwards."""
        raw = data.encode() if isinstance(data, str) else bytes(data)

        def op() -> Generator[Any, Any, None]:
            yield self._job.write(raw, eof)
        return self._do(op())

    def wait_for_log(self, pattern: Union[str, Pattern[str]], timeout: Optional[float] = 60.0) -> str:
        """Wait for a line of its output that contains a text or matches a compiled pattern, and return the line.

        Raises TimeoutError after `timeout` seconds (0 or None: no limit), and CommandError if it ends first."""
        return self._do(find_line(self._job, self._at, pattern, timeout))


def left_until(until: Optional[float]) -> Optional[float]:
    """Seconds of a time limit that are left; never 0, which means no limit."""
    return None if until is None else max(0.001, until - time.monotonic())


class Unread:
    """What a terminal showed while its end was waited for; the oldest is dropped beyond a bound."""

    def __init__(self) -> None:
        self._pieces: Deque[bytes] = collections.deque()
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size > KEPT:
            self.take()

    def take(self) -> bytes:
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._size -= len(piece)
        return piece


@named_options
class PtyApi(Part):
    """A terminal in a Sandbox: what it shows comes as bytes, and what is written is typed.

    Closing it leaves its program running; kill() ends it.

    >>> with box.pty("read name; echo hello $name") as pty:
    ...     pty.write("ada\\n")
    ...     shown = b"".join(pty)
    >>> b"hello ada" in shown
    True
    """

    def __init__(self, driver: Any, session: Any, terminal: Any) -> None:
        super().__init__(driver)
        self._session, self._terminal = session, terminal
        self._unread = Unread()

    @property
    def id(self) -> str:
        """The id of its program, which box.command() takes."""
        return self._terminal.exec_id

    def read(self, timeout: Optional[float] = None) -> bytes:
        """Wait for what it shows next; b"" at its end.

        timeout: seconds, after which a TimeoutError is raised; 0 or None: no limit."""
        def op() -> Generator[Any, Any, bytes]:
            return self._unread.take() or (yield self._terminal.read(timeout))
        return self._do(op())

    def write(self, data: Union[str, bytes]) -> None:
        """Type text or bytes."""
        return self._terminal.write(data.encode() if isinstance(data, str) else bytes(data))

    def resize(self, rows: int, cols: int) -> None:
        """Change its size."""
        return self._terminal.resize(rows, cols)

    def kill(self) -> None:
        """Kill its program with everything it started."""
        def op() -> Generator[Any, Any, None]:
            yield self._session.command(self.id).kill()
        return self._do(op())

    def wait(self, timeout: Optional[float] = None) -> Result[str]:
        """Wait until its program ends, and return the result, with what it showed as `stdout`.

        What was not read before stays for read(): the last 8 MiB of it. timeout: seconds, after which a TimeoutError
        leaves it running; 0 or None: no limit."""
        def op() -> Generator[Any, Any, Result[str]]:
            limit = timeout_of("timeout", timeout)
            until = None if limit is None else time.monotonic() + limit
            while True:
                piece = yield self._terminal.read(left_until(until))
                if not piece:
                    break
                self._unread.add(piece)
            return result_of((yield self._session.command(self.id).wait(left_until(until))), True)
        return self._do(op())

    def close(self) -> None:
        """Close the connection; its program keeps running."""
        return self._terminal.close()
