# SPDX-License-Identifier: Apache-2.0
"""What calls return, where it is more than a record (records are dicts as spec/openapi.json has them)."""
import dataclasses
from typing import Any, Dict, List, Mapping, Optional

Record = Dict[str, Any]


@dataclasses.dataclass
class ExecResult:
    """How a command ended. A failing command is a result, not an error."""
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
    limits: List[str] = dataclasses.field(default_factory=list)
    duration_ms: int = 0
    usage: Dict[str, int] = dataclasses.field(default_factory=dict)
    outcome: str = "reused"  # of the session: "resumed" or "replaced" where it had to be

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def state_lost(self) -> bool:
        return self.outcome == "replaced"

    @property
    def text(self) -> str:
        """stdout; what is no UTF-8 becomes U+FFFD."""
        return self.stdout.decode("utf-8", "replace")

    @classmethod
    def of(cls, received: Mapping[str, Any], **more: Any) -> "ExecResult":
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{**{k: v for k, v in received.items() if k in known}, **more})

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "ExecResult":
        return cls.of({**record, "lost": record["state"] == "lost", "duration_ms": record.get("duration_ms") or 0,
                       "usage": record.get("usage") or {}})


@dataclasses.dataclass
class Event:
    """Of a running command: "started", "stdout" or "stderr" with `data` at `offset`, "exit" with `result`."""
    kind: str
    exec_id: Optional[str] = None
    offset: int = 0
    data: bytes = b""
    result: Optional[ExecResult] = None


@dataclasses.dataclass
class Output:
    """What a command wrote from the offsets asked for on; the offsets are those to ask for next."""
    stdout: bytes
    stderr: bytes
    stdout_offset: int
    stderr_offset: int
    done: bool
