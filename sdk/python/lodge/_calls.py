# SPDX-License-Identifier: Apache-2.0
"""Pieces of calls that several of them need."""
import base64
import datetime
import os
import sys
import uuid
import warnings
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Type, Union

from ._http import Call, Reply, Request, duration_of, query, quote, request, timeout_of
from .errors import Error, IgnoredWarning, OutputGoneError, TimeoutError
from .types import ExecResult, Output, Record

CommandLine = Union[str, Sequence[str]]
Kinds = Union[str, Sequence[str], None]  # of events: one, or several
GRACE = 30.0  # more than the command's own deadline before an answer is given up
LONG = 600.0  # for calls that move whole trees


def new_key() -> str:
    return uuid.uuid4().hex


def whole(reply: Reply) -> Any:
    return reply.json()


def nothing(reply: Reply) -> None:
    return None


def text(reply: Reply) -> str:
    return reply.body.decode("utf-8", "replace")


def when(ms: Optional[int]) -> Optional[datetime.datetime]:
    return None if ms is None else datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)


def named(entry: Record) -> Record:
    """A name that is not UTF-8, as os.fsdecode() returns it, so that it can be used as a path."""
    coded = entry.pop("path_base64", None)
    if coded is not None:
        entry["path"] = os.fsdecode(base64.b64decode(coded))
        if "name" in entry:
            entry["name"] = entry["path"].rstrip("/").rpartition("/")[2] or entry["path"]
    return entry


def warn_ignored(what: str, fields: Sequence[str], instead: str) -> None:
    if fields:
        warn(f"{what}: {', '.join(fields)} {instead}", IgnoredWarning)


def warn(text: str, category: Type[Warning]) -> None:
    """One warning for the line outside this package that made the call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def one_entry(reply: Reply) -> Record:
    return named(reply.json()["entry"])


def entries(reply: Reply) -> Record:
    received: Record = reply.json()
    received["entries"] = [named(e) for e in received["entries"]]
    return received


def member(name: str) -> Callable[[Reply], Any]:
    return lambda reply: reply.json()[name]


def extended(reply: Reply) -> Record:
    answer: Record = reply.json()
    return {**answer.pop("session"), **answer}


def get(path: str, decode: Callable[[Reply], Any] = whole, pairs: Optional[Mapping[str, Any]] = None,
        **how: Any) -> Call[Any]:
    return Call(Request("GET", path + query(pairs or {}), **how), decode)


def post(path: str, body: Optional[Mapping[str, Any]] = None, decode: Callable[[Reply], Any] = whole,
         **how: Any) -> Call[Any]:
    return Call(request("POST", path, dict(body or {}), **how), decode)


def delete(path: str, decode: Callable[[Reply], Any] = whole, pairs: Optional[Mapping[str, Any]] = None) -> Call[Any]:
    return Call(Request("DELETE", path + query(pairs or {})), decode)


def page(path: str, filters: Mapping[str, Any]) -> Callable[[Any], Call[Any]]:
    return lambda after: get(path, pairs={**filters, "after": after})


def all_pages(make: Callable[[Any], Call[Any]], name: str) -> Generator[Call[Any], Any, List[Record]]:
    found: List[Record] = []
    after = None
    while True:
        part = yield make(after)
        found += part[name]
        after = part.get("next")
        if not after:
            return found


def directory(local: Union[str, "os.PathLike[str]"]) -> str:
    if not os.path.isdir(local):
        raise NotADirectoryError(f"{os.fspath(local)!r} is not a directory")
    return os.fspath(local)


def own_name(local: Union[str, "os.PathLike[str]"]) -> str:
    """The last part of a local path, also of "." and ".."."""
    return os.path.basename(os.path.realpath(local))


def session_base(ref: str) -> str:
    return f"/v1/sessions/{quote(ref)}"


def comma(kinds: Kinds) -> Optional[str]:
    return kinds if kinds is None or isinstance(kinds, str) else ",".join(kinds)


def is_key(base: str) -> bool:
    """Of a session_base(): it may lead to another session next time."""
    return base.startswith(session_base("key:"))


def ms(name: str, seconds: Optional[float]) -> int:
    """A timeout in milliseconds; 0: no limit."""
    limit = timeout_of(name, seconds)
    return 0 if limit is None else max(1, round(limit * 1000))


def exec_body(command: CommandLine, *, stdin: Union[str, bytes, None], timeout: Optional[float], key: Optional[str],
              **more: Any) -> Dict[str, Any]:
    """Without an idempotency key where the service refuses one: input for a background command."""
    if isinstance(stdin, bytes):
        try:
            stdin = stdin.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError("stdin: not UTF-8; use start() and write() for any bytes") from None
    body: Dict[str, Any] = {"argv": list(command)} if not isinstance(command, str) else {"command": command}
    body.update({k: v for k, v in more.items() if v is not None}, timeout_ms=ms("timeout", timeout), encoding="base64")
    if stdin is not None:
        body["stdin"] = stdin
    if key or stdin is None or not more.get("detached"):
        body["idempotency_key"] = key or new_key()
    body.pop("detached", None)
    return body


def run(base: str, body: Dict[str, Any], timeout: Optional[float]) -> Call[ExecResult]:
    def decode(reply: Reply) -> ExecResult:
        received = reply.json()
        return ExecResult.of(received, stdout=base64.b64decode(received["stdout"]), stderr=base64.b64decode(received["stderr"]),
                             outcome=reply.headers.get("lodge-outcome", "reused"))
    limit = timeout_of("timeout", timeout)
    wait = None if limit is None else limit + GRACE
    return Call(request("POST", base + "/exec", body, keyed=True, timeout=wait), decode)


def output(base: str, exec_id: str, stdout: int, stderr: int, wait: float) -> Call[Output]:
    def decode(reply: Reply) -> Output:
        received = reply.json()
        return Output(base64.b64decode(received["stdout"]), base64.b64decode(received["stderr"]), received["stdout_offset"],
                      received["stderr_offset"], received["done"])
    wait_ms = min(60000, round(duration_of("wait", wait) * 1000))
    return get(f"{base}/execs/{quote(exec_id)}/output", decode,
               {"stdout_offset": stdout, "stderr_offset": stderr, "wait_ms": wait_ms, "encoding": "base64"},
               timeout=wait_ms / 1000 + GRACE)


def wait_for(base: str, exec_id: str, now: Callable[[], float],
             timeout: Optional[float]) -> Generator[Call[Any], Any, ExecResult]:
    """Long polls from the end of what it wrote, until it ended; then all that is kept of its output."""
    limit = timeout_of("timeout", timeout)
    until = None if limit is None else now() + limit
    while True:
        record: Record = yield get(f"{base}/execs/{quote(exec_id)}", member("exec"))
        if record["state"] != "running":
            return (yield from with_output(base, record))
        left = 20.0 if until is None else min(20.0, until - now())
        if left <= 0:
            raise TimeoutError(f"command {exec_id} still runs", details={"exec_id": exec_id})
        try:
            yield output(base, exec_id, record["stdout_bytes"], record["stderr_bytes"], left)
        except OutputGoneError:
            pass  # it writes faster than we ask


def first_kept(error: OutputGoneError, at: Sequence[int]) -> List[int]:
    """Where to go on in both streams. Raises the error if that is no further."""
    kept = [max(at[i], error.details.get(name) or 0) for i, name in enumerate(("stdout_offset", "stderr_offset"))]
    if kept == list(at):
        raise error
    return kept


def with_output(base: str, record: Record) -> Generator[Call[Any], Any, ExecResult]:
    """The result of a command that has ended, with what is kept of its output."""
    at, missing = [0, 0], False
    parts: List[List[bytes]] = [[], []]
    while True:
        try:
            part: Output = yield output(base, record["exec_id"], at[0], at[1], 0)
        except OutputGoneError as e:
            at, missing = first_kept(e, at), True
            continue
        parts[0].append(part.stdout)
        parts[1].append(part.stderr)
        at = [part.stdout_offset, part.stderr_offset]
        if part.done:
            return ExecResult.of_record(record, missing, stdout=b"".join(parts[0]), stderr=b"".join(parts[1]))


def ended(machine_error: Error) -> bool:
    """Of a session that is not there: for calls that have nothing to say then."""
    return machine_error.status in (404, 409, 410)


def cleanup(filters: Mapping[str, Any], why: Optional[str]) -> Generator[Call[Any], Any, Record]:
    """Destroys all that the filters find; one failure does not stop the rest."""
    ids: List[str] = []
    after = None
    while True:
        found = yield get("/v1/sessions", pairs={**filters, "after": after, "limit": 100})
        ids += [s["id"] for s in found["sessions"]]
        after = found["next"]
        if not after:
            break
    done: Record = {"destroyed": [], "failed": []}
    for one in ids:
        try:
            yield delete(session_base(one), pairs={"reason": why})
            done["destroyed"].append(one)
        except Error as e:
            done["destroyed" if e.status in (404, 410) else "failed"].append(one)
    return done
