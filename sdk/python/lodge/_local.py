# SPDX-License-Identifier: Apache-2.0
"""Threads by the engine in this process. One engine of a home at a time: all clients of a process share it, and it
stays open until the process ends, since it is what enforces the deadlines of the sessions."""
import atexit
import ctypes
import datetime
import json
import os
import threading
from typing import Any, BinaryIO, Dict, List, Optional

from . import _native as n
from .errors import PolicyError, SandboxError

_lock = threading.Lock()
_engines: Dict[str, "Engine"] = {}


class Engine:
    """An open struct lodge."""

    def __init__(self, home: str, **options: Any) -> None:
        self.lib = n.load()
        self.handle = ctypes.c_void_p()
        self.pid = os.getpid()
        self.busy: Dict[int, int] = {}  # threads that are in a call
        opts = n.Options(size=ctypes.sizeof(n.Options), actor=b"python", home=os.fsencode(home) if home else None,
                         **options)
        if self.lib.lodge_open(ctypes.byref(opts), ctypes.byref(self.handle)) < 0:
            error = n.problem(self.lib)
            raise SandboxError(f'{error.message} (is lodged running there? then use mode="remote")', code=error.code)

    def close(self) -> None:
        if self.handle and self.pid == os.getpid():
            handle, self.handle = self.handle, ctypes.c_void_p()
            self.lib.lodge_close(handle)

    def check(self, result: int) -> None:
        if result < 0:
            raise n.problem(self.lib)


def _home() -> str:
    return os.environ.get("LODGE_DATA") or os.environ.get("LODGE_HOME") or ""


def open_engine(home: Optional[str] = None, **options: Any) -> Engine:
    """The process's engine of a home; options (those of struct lodge_options) apply to the first call."""
    at = home if home is not None else _home()
    with _lock:
        engine = _engines.get(at)
        if engine and engine.pid != os.getpid():
            raise SandboxError("the engine belongs to the process this one was forked from: make a new process "
                               "by subprocess, or by multiprocessing with the method spawn")
        if not engine:
            engine = _engines[at] = Engine(at, **options)
        return engine


def shutdown() -> None:
    """Closes all engines; the sessions keep running. No other call may be in progress."""
    with _lock:
        for engine in _engines.values():
            engine.close()
        _engines.clear()


@atexit.register
def _at_exit() -> None:
    with _lock:
        if not any(e.busy for e in _engines.values()):  # a thread that is still in a call ends with the process
            for engine in _engines.values():
                engine.close()


def _iso(ms: int) -> Optional[str]:
    if not ms:
        return None
    when = datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


class _Busy:
    """Noted, so that nothing is closed under a call. Kept small: it is part of every call."""
    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Engine:
        engine = self._engine
        if not engine.handle or engine.pid != os.getpid():
            raise SandboxError("the engine of this process was closed")
        engine.busy[threading.get_ident()] = 1
        return engine

    def __exit__(self, *_: object) -> None:
        del self._engine.busy[threading.get_ident()]


def _names(fields: Optional[bytes]) -> List[str]:
    """Of the request: the timeout is the only field it can set."""
    return ["timeout_minutes"] if fields else []


class LocalThreads:
    """What RemoteThreads has, from liblodge."""

    def __init__(self) -> None:
        self._engine = open_engine()
        self._last = ("", n.Ref())
        self._places: Dict[str, Optional[str]] = {}  # workspaces of sessions, which stay what they are

    def _call(self, name: str, session_id: str, *args: Any) -> None:
        last, engine = self._last, self._engine
        if session_id != last[0]:  # one assignment: there may be other threads
            last = self._last = (session_id, n.Ref(id=session_id.encode()))
        ref = last[1]
        if getattr(engine.lib, name)(engine.handle, ref, *args) < 0:
            raise n.problem(engine.lib)

    def create(self, user_id: str, thread_id: str, minutes: Optional[int]) -> Dict[str, Any]:
        want = n.Thread(size=ctypes.sizeof(n.Thread), user=_text("user_id", user_id),
                        thread=_text("thread_id", thread_id),
                        idle_minutes=0 if minutes is None else _whole(minutes) or -1)
        found = ctypes.POINTER(n.Session)()
        with _Busy(self._engine) as e:
            e.check(e.lib.lodge_thread_enter(e.handle, ctypes.byref(want), ctypes.byref(found)))
            try:
                made = self._made(found.contents)
                self._places = {made["session_id"]: made["workspace_dir"]}
                return made
            finally:
                e.lib.lodge_free(found)

    def _made(self, s: n.Session) -> Dict[str, Any]:
        spec = json.loads(s.spec or b"{}")
        keys = [s.keys[i] for i in range(s.nkeys)]
        return {"session_id": s.id.decode(),
                "thread_id": next(k.key.decode() for k in keys if k.kind == b"thread"),
                "status": "existing" if s.outcome == n.REUSED else "created",
                "workspace_dir": spec.get("workdir"), "user": spec.get("user"),
                "expires_at": _iso(s.hibernate_at or s.expires_at),
                "adjusted": _names(s.adjusted), "ignored": _names(s.ignored)}

    def execute(self, session_id: str, command: str, timeout: float) -> Dict[str, Any]:
        found = n.ResultPointer()
        with _Busy(self._engine) as e:
            try:
                self._call("lodge_thread_run", session_id, _text("command", command), _seconds(timeout), found)
            except PolicyError as error:
                error.details["command"] = command
                raise
            lost = e.lib.lodge_last_outcome() == n.REPLACED
            try:
                r = found.contents
                hits = r.hits
                return {"exit_code": r.status, "stdout": n.text_at(r.out, r.out_len) if r.out_len else "",
                        "stderr": n.text_at(r.err, r.err_len) if r.err_len else "",
                        "execution_time_ms": r.duration_us // 1000, "timed_out": hits & 1 != 0,
                        "truncated": hits & 8 != 0,
                        "limits": [name for i, name in enumerate(n.HITS) if hits & 1 << i] if hits else [],
                        "state_lost": lost}
            finally:
                e.lib.lodge_free(found)

    def upload(self, session_id: str, name: bytes, source: BinaryIO) -> Dict[str, Any]:
        found = ctypes.POINTER(n.File)()
        with _Busy(self._engine) as e:
            self._call("lodge_thread_put", session_id, _name(name), source.fileno(), ctypes.byref(found))
            try:
                return {"status": "uploaded", "filename": os.fsdecode(name), "path": os.fsdecode(found.contents.path),
                        "size_bytes": found.contents.size}
            finally:
                e.lib.lodge_free(found)

    def download(self, session_id: str, name: bytes, to: BinaryIO) -> None:
        with _Busy(self._engine):
            self._call("lodge_thread_fetch", session_id, _name(name), to.fileno())

    def list(self, session_id: str) -> Dict[str, Any]:
        found = ctypes.POINTER(n.Files)()
        with _Busy(self._engine) as e:
            self._call("lodge_thread_files", session_id, ctypes.byref(found))
            try:
                all_ = found.contents
                files: List[Dict[str, Any]] = []
                for i in range(all_.count):
                    f = all_.items[i].contents
                    files.append({"name": os.fsdecode(f.path), "size_bytes": f.size,
                                  "modified": _iso(f.mtime_ns // 1000000), "permissions": f"{f.mode & 0o7777:04o}"})
                if session_id not in self._places:
                    self._places = {session_id: self._workspace(session_id)}
                return {"session_id": session_id, "workspace_dir": self._places[session_id], "files": files,
                        "total_files": all_.total, "total_size_bytes": all_.total_bytes}
            finally:
                e.lib.lodge_free(found)

    def _workspace(self, session_id: str) -> Optional[str]:
        found = ctypes.POINTER(n.Session)()
        self._call("lodge_get", session_id, ctypes.byref(found))
        try:
            workdir: Optional[str] = json.loads(found.contents.spec or b"{}").get("workdir")
            return workdir
        finally:
            self._engine.lib.lodge_free(found)

    def cleanup(self, session_id: str) -> None:
        with _Busy(self._engine):
            self._call("lodge_destroy", session_id, None, None)

    def close(self) -> None:
        """The engine stays: others may use it, and it keeps the deadlines."""


def _text(field: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise SandboxError(f"{field}: not a text", code="INVALID")
    if "\0" in value:
        raise SandboxError(f"{field}: not a text without NUL", code="INVALID")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise SandboxError(f"{field}: not UTF-8", code="INVALID") from None


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise SandboxError("timeout: not a number of seconds", code="INVALID")
    return float(timeout)


def _whole(minutes: Any) -> int:
    if isinstance(minutes, bool) or not isinstance(minutes, int) or abs(minutes) >= 1 << 62:
        raise SandboxError("timeout_minutes: not a whole number", code="INVALID")
    return minutes


def _name(name: bytes) -> bytes:
    """C would see only what lies before a NUL."""
    return name if b"\0" not in name else b""
