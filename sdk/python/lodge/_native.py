# SPDX-License-Identifier: Apache-2.0
"""liblodge.so by ctypes: the structs of lodge.h that are needed here, and its errors as ours."""
import ctypes
import errno
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Type

from .errors import EXPIRED, FULL, LimitError, PolicyError, SandboxError, SessionExpiredError

REUSED, REPLACED = 2, 4  # enum lodge_outcome
NOT_FOUND, LIMIT, UNAVAILABLE = 2, 5, 7  # enum lodge_code
CODES = ("OK", "INVALID", "NOT_FOUND", "CONFLICT", "DENIED", "LIMIT", "TIMEOUT", "UNAVAILABLE", "INTERNAL")
HITS = ("TIMEOUT", "LIMIT_MEMORY", "LIMIT_PIDS", "LIMIT_OUTPUT", "LIMIT_DISK", "LIMIT_FILE")
PASSING = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN)  # LODGE_LIMIT of the machine, not of the caller


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("home", c_char_p), ("tenant", c_char_p), ("actor", c_char_p),
                ("max_active", c_uint32), ("queue_max", c_uint32), ("pool", c_uint32), ("probe_failures", c_uint32),
                ("idle_ms", c_int64), ("idle_max_ms", c_int64), ("lifetime_ms", c_int64), ("lifetime_max_ms", c_int64),
                ("extend_ms", c_int64), ("probe_ms", c_int64), ("tombstones_ms", c_int64), ("execs_ms", c_int64),
                ("events_ms", c_int64), ("delete_after_ms", c_int64)]


class Ref(ctypes.Structure):
    _fields_ = [("id", c_char_p), ("kind", c_char_p), ("key", c_char_p)]


class Thread(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_char_p), ("thread", c_char_p), ("idle_minutes", c_int64)]


class Session(ctypes.Structure):
    _fields_ = [(n, c_char_p) for n in ("id", "user", "template_name", "sandbox", "snapshot", "project", "fragment",
                                        "spec", "metadata")] + [
        ("keys", POINTER(Ref)), ("nkeys", c_size_t), ("state", c_int), ("runtime", c_int), ("on_idle", c_int),
        ("on_expire", c_int), ("paused", c_int)] + [(n, c_int64) for n in (
            "version", "generation", "incarnation", "created_at", "started_at", "last_activity_at", "idle_timeout_ms",
            "max_lifetime_ms", "hibernate_at", "expires_at", "memory_bytes", "disk_bytes")] + [
        ("cause", c_void_p), ("outcome", c_int), ("source", c_int), ("state_lost", c_int), ("ready_us", c_uint64),
        ("lifetime_ms", c_int64), ("delete_after_ms", c_int64), ("hibernated_at", c_int64), ("delete_at", c_int64),
        ("ignored", c_char_p), ("adjusted", c_char_p), ("extended_by_ms", c_int64), ("at_maximum", c_int)]


class Result(ctypes.Structure):
    _fields_ = [("exec_id", c_char_p), ("code", c_int), ("signal", c_int), ("hits", c_uint), ("out", c_void_p),
                ("err", c_void_p), ("out_len", c_size_t), ("err_len", c_size_t), ("out_total", c_uint64),
                ("err_total", c_uint64), ("duration_us", c_uint64), ("cpu_us", c_uint64), ("max_rss_bytes", c_uint64),
                ("status", c_int)]


ResultPointer = POINTER(Result)


def text_at(place: int, size: int) -> str:
    return ctypes.string_at(place, size).decode("utf-8", "replace")


class File(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("target", c_char_p), ("mode", c_uint32), ("nlink", c_uint32), ("uid", c_uint32),
                ("gid", c_uint32), ("size", c_uint64), ("ino", c_uint64), ("mtime_ns", c_int64), ("ctime_ns", c_int64)]


class Files(ctypes.Structure):
    _fields_ = [("items", POINTER(POINTER(File))), ("count", c_size_t), ("total", c_uint64), ("total_bytes", c_uint64)]


class Refusal(ctypes.Structure):
    _fields_ = [("what", c_char_p), ("word", c_char_p), ("max", c_uint64), ("now", c_uint64), ("asked", c_uint64)]


def _candidates() -> List[str]:
    if os.environ.get("LODGE_LIB"):
        return [os.environ["LODGE_LIB"]]
    if os.environ.get("LODGE_BUILD"):
        return [os.path.join(os.environ["LODGE_BUILD"], "liblodge.so")]
    return ["liblodge.so.0", "liblodge.so"]


def load() -> ctypes.CDLL:
    problem: Optional[OSError] = None
    for name in _candidates():
        try:
            return _declare(ctypes.CDLL(name))
        except OSError as e:
            problem = problem or e
        except AttributeError as e:
            raise SandboxError(f"{name} is older than this package: {e}") from e
    raise SandboxError(f"local mode needs liblodge.so ({problem}): install it, or name it by LODGE_LIB")


def _declare(lib: ctypes.CDLL) -> ctypes.CDLL:
    """Of what is not here the arguments are not checked; the rest is what it is in lodge.h."""
    takes: Dict[str, List[Any]] = {
        "lodge_open": [POINTER(Options), POINTER(c_void_p)],
        "lodge_close": [c_void_p],
        "lodge_free": [c_void_p],
        "lodge_get": [c_void_p, POINTER(Ref), POINTER(POINTER(Session))],
        "lodge_destroy": [c_void_p, POINTER(Ref), c_char_p, c_void_p],
        "lodge_thread_enter": [c_void_p, POINTER(Thread), POINTER(POINTER(Session))],
        "lodge_thread_run": [c_void_p, POINTER(Ref), c_char_p, c_double, POINTER(POINTER(Result))],
        "lodge_thread_put": [c_void_p, POINTER(Ref), c_char_p, c_int, POINTER(POINTER(File))],
        "lodge_thread_fetch": [c_void_p, POINTER(Ref), c_char_p, c_int],
        "lodge_thread_files": [c_void_p, POINTER(Ref), POINTER(POINTER(Files))],
    }
    for name, types in takes.items():
        getattr(lib, name).argtypes = types
        getattr(lib, name).restype = None if name in ("lodge_close", "lodge_free") else c_int
    for name in ("lodge_last_error", "lodge_version"):
        getattr(lib, name).restype = c_char_p
    lib.lodge_last_refusal.restype = POINTER(Refusal)
    return lib


def _mb(count: int) -> float:
    return count >> 20 if count % (1 << 20) == 0 else round(count / (1 << 20), 2)


def _details(lib: ctypes.CDLL) -> Dict[str, Any]:
    """As the service has them."""
    no = lib.lodge_last_refusal().contents
    if no.what == b"program":
        return {"forbidden_pattern": no.word.decode("utf-8", "replace")}
    if no.what == b"file":
        return {"max_size_mb": _mb(no.max), "uploaded_size_mb": _mb(no.asked)}
    if no.what == b"files":
        return {"max_files": no.max, "current_files": no.now, "applies_to": "uploads"}
    if no.what == b"workspace":
        return {"max_workspace_mb": _mb(no.max), "current_workspace_mb": _mb(no.now), "file_size_mb": _mb(no.asked)}
    return {}


def problem(lib: ctypes.CDLL) -> SandboxError:
    """Why the last call of this thread failed."""
    said = lib.lodge_last_error().decode("utf-8", "replace")
    code, sys = lib.lodge_last_code(), lib.lodge_last_errno()
    details = _details(lib)
    kind: Type[SandboxError] = SandboxError
    name: Optional[str] = CODES[code]
    if sys == errno.ENOEXEC:
        details.setdefault("forbidden_pattern", "")
        kind, name, details["error"] = PolicyError, None, said
    elif code == NOT_FOUND and sys == errno.ENOENT:
        said = "File not found"
    elif code == NOT_FOUND:
        kind, name, details, said = SessionExpiredError, None, {"reason": said}, EXPIRED
    elif code == LIMIT and sys not in PASSING:
        kind, name = LimitError, None
        if details:
            details["error"] = said
    elif code == UNAVAILABLE and sys == errno.EAGAIN:
        said = FULL
    return kind(said, code=name, retryable=name in ("UNAVAILABLE", "TIMEOUT"), details=details)
