# SPDX-License-Identifier: Apache-2.0
"""What calls return, where it is more than a record (records are dicts as spec/openapi.json has them)."""
import dataclasses
from typing import Any, AnyStr, Dict, Generic, List, Literal, Mapping, Optional

Record = Dict[str, Any]
EventKind = Literal["started", "stdout", "stderr", "gap", "exit"]
Stream = Literal["stdout", "stderr"]
Bytes = bytes  # the class below has a member `bytes`


@dataclasses.dataclass
class ExecResult:
    """How a command of a Session ended. A failing command is a result, not an error.

    >>> result = client.session(box.id).exec("echo hi")
    >>> result.ok, result.text, result.stdout
    (True, 'hi\\n', b'hi\\n')
    """
    exec_id: str
    exit_code: Optional[int]  # None: killed by a signal, or lost
    signal: Optional[int]
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0  # what it wrote in all
    stderr_bytes: int = 0
    truncated: bool = False
    timed_out: bool = False
    oom_killed: bool = False
    lost: bool = False
    reason: Optional[str] = None  # why lodge ended it, or why its result is unknown; None: it ended by itself
    limits: List[str] = dataclasses.field(default_factory=list)
    duration_ms: int = 0
    usage: Dict[str, int] = dataclasses.field(default_factory=dict)
    outcome: str = "reused"  # of the session: "resumed" or "replaced" where it had to be

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.exit_code == 0

    @property
    def state_lost(self) -> bool:
        """Whether the session lost its files before the command ran."""
        return self.outcome == "replaced"

    @property
    def text(self) -> str:
        """stdout as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")

    @classmethod
    def of(cls, received: Mapping[str, Any], **more: Any) -> "ExecResult":
        """Make one from the members of a response that it knows."""
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{**{k: v for k, v in received.items() if k in known}, **more})

    @classmethod
    def of_record(cls, record: Mapping[str, Any], missing: bool, **more: Any) -> "ExecResult":
        """Make one from the record of a command; only the reader of its output knows whether some is missing."""
        limits = [name for name in record["limits"] if name != "LIMIT_OUTPUT"] + ["LIMIT_OUTPUT"] * missing
        return cls.of({**record, "lost": record["state"] == "lost", "duration_ms": record.get("duration_ms") or 0,
                       "usage": record.get("usage") or {}, "truncated": missing, "limits": limits}, **more)


@dataclasses.dataclass
class Event:
    """Something that a running command of a Session did.

    kind is "started", "stdout" or "stderr" with `data` at `offset`, "gap" if `bytes` of `stream` from `offset` on are no longer
    retained, or "exit" with `result`, whose `truncated` is set after a gap.

    >>> [e.kind for e in client.session(box.id).stream("echo hi")]
    ['started', 'stdout', 'exit']
    """
    kind: "EventKind"
    exec_id: Optional[str] = None
    offset: int = 0
    data: Bytes = b""
    result: Optional[ExecResult] = None
    stream: Optional[Stream] = None
    bytes: int = 0


@dataclasses.dataclass
class Output:
    """What a command wrote from the requested offsets on; its own offsets are those to request next.

    >>> job = client.session(box.id).start("echo hi")
    >>> job.output(wait=60).stdout
    b'hi\\n'
    """
    stdout: bytes
    stderr: bytes
    stdout_offset: int
    stderr_offset: int
    done: bool


@dataclasses.dataclass(frozen=True)
class Result(Generic[AnyStr]):
    """How a command of a Sandbox ended, with its output.

    A command that fails is a result, not an error, unless run() was called with check=True. `stdout` and `stderr` are
    str, with U+FFFD for bytes that are not UTF-8, or bytes with text=False.

    >>> result = box.run("echo out; exit 3")
    >>> result.stdout, result.exit_code, result.ok
    ('out\\n', 3, False)
    """
    stdout: AnyStr
    stderr: AnyStr
    exit_code: Optional[int]  # None: a signal ended it, or its sandbox ended first
    signal: Optional[int]
    timed_out: bool
    truncated: bool  # part of the output is missing here
    limits_hit: List[str]  # such as "LIMIT_MEMORY"
    duration: float  # seconds
    command_id: str
    reason: Optional[str] = None  # why lodge ended it, or why its result is unknown; None: it ended by itself

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out


@dataclasses.dataclass(frozen=True)
class Versions:
    """The versions of this package and of the service, as Client.version() returns them.

    compatible: the package was made for that version: the first number is the same, and before 1.0 also the second.

    >>> client.version().compatible
    True
    """
    client: str
    server: str
    compatible: bool
