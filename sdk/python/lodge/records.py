# SPDX-License-Identifier: Apache-2.0
# Written by make_types.py from spec/openapi.json: do not edit.
"""What /v1 and projects take and answer, as types of dicts."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union


class Cause(TypedDict):
    """Why something happened."""

    code: Literal['asked', 'idle', 'expired', 'replaced', 'room', 'gone', 'stopped', 'unavailable', 'interrupted', 'error', 'cleanup', 'retention', 'transient', '']
    """The reason as a code. More may be added."""
    text: str
    """The reason as a sentence. May be empty."""
    actor: str
    """The actor: a key, a user, or `lodge` itself."""
    at: Union[int, None]
    """The time."""


class _Change(TypedDict):
    kind: Literal['ready', 'create', 'write', 'remove', 'rename', 'chmod', 'lost']
    """`ready` comes first: no later change is missed. `lost`: too many changes at once; list the directory."""
    path: str
    is_dir: bool


class Change(_Change, total=False):
    path_base64: str
    """The raw bytes in base64. Only present if they are not valid UTF-8; `path` then contains U+FFFD."""


class ConflictProblemErrorDetails(TypedDict, total=False):
    session: Session


class ConflictProblemError(TypedDict):
    code: ErrorCode
    message: str
    """A message for people."""
    retryable: bool
    """Whether the same request may succeed later."""
    details: ConflictProblemErrorDetails


class ConflictProblem(TypedDict):
    error: ConflictProblemError


class DeathLost(TypedDict):
    commands: int
    """Commands that were running."""


class Death(TypedDict):
    """How the last sandbox of the session ended. Kept until the next one ends, also while the session runs again."""

    at: Time
    code: str
    """`killed`: a signal killed its init, not lodge. `exited`: its init exited. `oom`: the host ran out of memory.
    `disk_full`: the server's disk was full and a write below the volume of the sandboxes failed.
    `host_restarted`. `gone`, `stopped`: it ended, and how is not known. The others are codes of a cause:
    `asked`, `idle`, `expired`, `room` and so on. More may be added."""
    text: str
    """The same as a sentence."""
    actor: str
    """The actor that asked for it: a key, a user, or `lodge` itself. Empty if it ended by itself."""
    signal: Union[int, None]
    """Number of the signal that killed its init."""
    lost: DeathLost
    incarnation: int
    """Number of the sandbox within the session."""


_EnterRequestOptional = TypedDict("_EnterRequestOptional", {
    "key": "str",
    "user": "str",
    "thread": "str",
    "project": "str",
    "fragment": "str",
    "template": "str",
    "snapshot": "str",
    "limits": "LimitsWanted",
    "env": "Environment",
    "run_as": "str",
    "workdir": "str",
    "class": "Literal['user', 'root']",
    "idle_timeout_ms": "int",
    "lifetime_ms": "int",
    "max_lifetime_ms": "int",
    "delete_after_ms": "int",
    "on_idle": "Literal['hibernate', 'destroy']",
    "on_expire": "Literal['hibernate', 'destroy']",
    "network": "Literal['none']",
    "policy": "str",
    "metadata": "Metadata",
    "if_exists": "Literal['use', 'fail']",
    "pin": "str",
    "idempotency_key": "str",
    "max_active_per_user": "int",
    "on_exceed": "Literal['refuse', 'replace']",
    "wait_ms": "int",
    "asleep": "bool",
}, total=False)


class EnterRequest(_EnterRequestOptional):
    """Only `key`, `thread`, `user`, `pin`, `if_exists` and `wait_ms` apply to an existing session; everything else
    applies to new sessions only, and is named in `ignored` if the session has another value. `PATCH
    /v1/sessions/{id}` changes a session."""


class Entered(TypedDict):
    session: Session
    outcome: Outcome
    state_lost: bool
    """Files of an earlier sandbox were lost; `cause` says why."""
    cause: Union[Cause, None]
    ready_ms: float
    """Time until the sandbox was ready."""
    source: Literal['pool', 'cold', 'resume', 'fork', None]
    """How the sandbox was started. null: it was already running, or none was requested."""
    ignored: List[str]
    """Fields of the request that had no effect, because the session existed and has other values, as `template` or
    `limits.memory_bytes`."""


class _Entry(TypedDict):
    name: str
    """The last part of the path."""
    path: str
    """The path relative to the requested path."""
    type: Literal['file', 'directory', 'symlink', 'fifo', 'socket', 'device']
    size: int
    mode: str
    """In octal."""
    uid: int
    """User id inside the sandbox."""
    gid: int
    mtime_ms: int
    """Milliseconds since 1970."""


class Entry(_Entry, total=False):
    path_base64: str
    """The raw bytes in base64. Only present if they are not valid UTF-8; `path` then contains U+FFFD."""
    target: str
    """Target of a symbolic link."""


class EntryAnswer(TypedDict):
    entry: Entry


class EntryList(TypedDict):
    entries: List[Entry]
    next: Next


class Event(TypedDict):
    id: int
    """Increases and is never reused."""
    kind: str
    """What happened: `create`, `start`, `ready`, `sleep` (its hibernation began), `sealed` (it is hibernated),
    `gone`, `change`, `extend`, `snapshot`, `fork`, `rollback`, `destroy`, `limit_hit`, `key_add` and others.
    More may be added."""
    session: Union[str, None]
    key: Union[str, None]
    """Key of the session at that time."""
    user: Union[str, None]
    """User of the session."""
    tenant: Union[str, None]
    """null: of the service itself."""
    exec: Union[str, None]
    """The command that the event is about, as with `limit_hit`, whose `data.limits` names the limits."""
    actor: Union[str, None]
    """The actor: the name of a key, a user, or `lodge` itself."""
    version: Union[int, None]
    """Version of the session at that time."""
    at: Time
    cause: Union[Cause, None]
    data: Dict[str, Any]


class EventList(TypedDict):
    events: List[Event]
    next: Union[int, None]
    """Value for `since` to get later events. Always present. With the newest first: value for `before` to get
    older ones, or null if there are none."""


class Exec(TypedDict):
    """The record of a command, kept for 7 days."""

    exec_id: str
    session: str
    command: Union[str, List[str]]
    """The command as requested: text or arguments. Only its first 4,096 bytes are kept: what is longer ends with
    `…`. The command itself runs whole."""
    state: ExecState
    background: bool
    exit_code: Union[int, None]
    """null if a signal ended it, or the result is unknown."""
    signal: Union[int, None]
    """Number of the signal that ended it."""
    timed_out: bool
    oom_killed: bool
    truncated: bool
    reason: Union[str, None]
    """Why lodge ended the command, or why its result is unknown. null if it ended by itself, or is running."""
    limits: List[Literal['TIMEOUT', 'LIMIT_MEMORY', 'LIMIT_PIDS', 'LIMIT_OUTPUT', 'LIMIT_DISK', 'LIMIT_FILE']]
    """Limits it exceeded."""
    stdout_bytes: int
    stderr_bytes: int
    started_at: Time
    ended_at: Union[int, None]
    """null while it is running."""
    duration_ms: Union[int, None]
    usage: ExecUsage


class ExecAnswer(TypedDict):
    """Result and output of a command."""

    exec_id: str
    exit_code: Union[int, None]
    """null if a signal ended it, or the result is unknown."""
    signal: Union[int, None]
    """Number of the signal that ended it."""
    stdout_bytes: int
    """Bytes written, including discarded ones."""
    stderr_bytes: int
    truncated: bool
    """Part of the output is missing here."""
    timed_out: bool
    oom_killed: bool
    """The kernel killed a process because memory ran out."""
    lost: bool
    """The sandbox ended before the result was known."""
    reason: Union[str, None]
    """Why lodge ended the command, or why its result is unknown. null if it ended by itself."""
    limits: List[Literal['TIMEOUT', 'LIMIT_MEMORY', 'LIMIT_PIDS', 'LIMIT_OUTPUT', 'LIMIT_DISK', 'LIMIT_FILE']]
    """Limits it exceeded."""
    duration_ms: int
    usage: ExecUsage
    stdout: str
    stderr: str


class ExecId(TypedDict):
    exec_id: str


class ExecList(TypedDict):
    execs: List[Exec]
    next: Next


class ExecOutput(TypedDict):
    stdout: str
    stderr: str
    stdout_offset: int
    """The index."""
    stderr_offset: int
    """The index."""
    done: bool
    """The command has ended and all output was returned."""


class ExecPiece(TypedDict):
    offset: int
    """Offset of the first byte in the stream. A gap means that output was discarded."""
    data: str
    """Text or base64, depending on `encoding`."""


class ExecRecord(TypedDict):
    exec: Exec


class ExecRequestPty(TypedDict, total=False):
    """Allocate a terminal. All output arrives as stdout."""

    rows: int
    cols: int


class ExecRequest(TypedDict, total=False):
    """Either `command` or `argv`. At most 192 KiB in total."""

    command: str
    """Script for bash."""
    argv: List[str]
    """A program and its arguments, without a shell."""
    cwd: str
    """Working directory. Default: the session's."""
    env: Environment
    stdin: str
    """Standard input. It is closed afterwards, unless `stdin_open` is set."""
    stdin_open: bool
    """Keep standard input open for `/stdin`. Default: true in the background or with a terminal if `stdin` is not
    given, otherwise false."""
    timeout_ms: int
    """Kill the command and everything it started after this time. 0: never."""
    background: bool
    """Return 202 at once and keep the command running."""
    pty: ExecRequestPty
    """Allocate a terminal. All output arrives as stdout."""
    user: str
    """User in the sandbox. Default: the session's."""
    idempotency_key: str
    """A repeated request with this key in this session within 7 days returns the same command, which runs once. If
    the first request failed because the command could not be started, or its sandbox did not respond, a
    repeated one returns 409 with the reason. With `stdin`, only if you wait for the command."""
    max_output_bytes: int
    """Bytes to keep of each stream. More than the session's `output_bytes` returns 400; if the output of running
    commands takes the memory for it, 429 (`LIMIT_OUTPUT`). Default: 1 MiB or the session's `output_bytes`, less
    when little memory is left. The oldest are discarded first. A response has the last 8 MiB of each stream;
    everything kept can be read by offset."""
    encoding: Literal['utf-8', 'base64']
    """Encoding of output: text, with U+FFFD for invalid bytes, or base64."""


class ExecResult(TypedDict):
    """Result of a command."""

    exec_id: str
    exit_code: Union[int, None]
    """null if a signal ended it, or the result is unknown."""
    signal: Union[int, None]
    """Number of the signal that ended it."""
    stdout_bytes: int
    """Bytes written, including discarded ones."""
    stderr_bytes: int
    truncated: bool
    """Part of the output is missing here."""
    timed_out: bool
    oom_killed: bool
    """The kernel killed a process because memory ran out."""
    lost: bool
    """The sandbox ended before the result was known."""
    reason: Union[str, None]
    """Why lodge ended the command, or why its result is unknown. null if it ended by itself."""
    limits: List[Literal['TIMEOUT', 'LIMIT_MEMORY', 'LIMIT_PIDS', 'LIMIT_OUTPUT', 'LIMIT_DISK', 'LIMIT_FILE']]
    """Limits it exceeded."""
    duration_ms: int
    usage: ExecUsage


class ExecStarted(TypedDict):
    exec_id: str
    state: ExecState


class ExecUsage(TypedDict):
    cpu_ms: int
    max_rss_bytes: int


class ExtendRequest(TypedDict, total=False):
    ms: int
    """Time to add to `expires_at`. Default: 20 minutes."""
    if_version: int
    """Expected version of the record; otherwise the call returns 409 with the current record."""


class Extended(TypedDict):
    session: Session
    extended_by_ms: int
    """By how much `expires_at` moved: less than requested at the maximum lifetime."""
    at_maximum: bool
    """`expires_at` can move no further."""
    reason: Union[str, None]
    """Why it moved by less than requested, with the maximum lifetime and in parentheses its bound: `lifetime_max`,
    the setting of the service, or `max_lifetime_ms` of the session. Null: it moved as requested. `expires_at`
    of the session is the end in each case."""


class ForkRequest(TypedDict, total=False):
    count: int
    """Number of sessions; all are created or none."""
    key: str
    """Key of the new session. Only with `count` 1."""
    snapshot: str
    """One of its snapshots. Default: its current files."""


class Forks(TypedDict):
    sessions: List[Session]


class FullProblemErrorDetails(TypedDict, total=False):
    active: int
    max: int
    waiting: int
    position: int
    """Position in the queue."""
    idle: int
    """Idle sandboxes that could be hibernated."""
    retry_after_ms: int


class FullProblemError(TypedDict):
    code: ErrorCode
    message: str
    """A message for people."""
    retryable: bool
    """Whether the same request may succeed later."""
    details: FullProblemErrorDetails


class FullProblem(TypedDict):
    error: FullProblemError


class GoneProblemErrorDetails(TypedDict, total=False):
    session: str
    sandbox: str
    """The sandbox that ended, if one was named and its session goes on."""
    cause: Union[Cause, None]


class GoneProblemError(TypedDict):
    code: ErrorCode
    message: str
    """A message for people."""
    retryable: bool
    """Whether the same request may succeed later."""
    details: GoneProblemErrorDetails


class GoneProblem(TypedDict):
    error: GoneProblemError


class _HealthPartsKeeper(TypedDict):
    ok: bool


class HealthPartsKeeper(_HealthPartsKeeper, total=False):
    error: str
    """What is wrong, if `ok` is false."""


class HealthPartsRoom(TypedDict):
    ok: bool
    active: int
    """Running sandboxes."""
    max: int
    """0: unlimited."""
    idle: int
    """Idle sandboxes that could be hibernated."""
    waiting: int
    """Requests in the queue."""


class HealthParts(TypedDict):
    store: Part
    keeper: HealthPartsKeeper
    room: HealthPartsRoom


class HealthDisk(TypedDict):
    """The file system of the data directory."""

    state: Literal['ok', 'full', 'failed']
    """`full`: new sessions, snapshots, forks and templates are refused with 507; everything else works, as far as
    there is space. `failed`: the volume with the files of sandboxes cannot be written to; lodge mounts it again
    once there is space."""
    reason: Union[str, None]
    """What is wrong and what to do. null: nothing."""
    free_bytes: Union[int, None]
    """Of the file system with the data directory. null, as the other numbers: the request has no key with scope
    `admin`."""
    total_bytes: Union[int, None]
    reserve_bytes: Union[int, None]
    """With less than this free, the state is `full` (`disk_reserve`)."""
    room_bytes: Union[int, None]
    """What sandboxes can still write before the state is `full`."""
    volume_bytes: Union[int, None]
    """Size of the volume with the files of sandboxes. null: there is none, or no key with scope `admin`."""
    volume_free_bytes: Union[int, None]
    volume_reserved: bool
    """All space of the volume is allocated, because the disk is nearly full."""


class HealthLastError(TypedDict):
    at: Time
    code: ErrorCode
    count: int
    """Number of errors since the start."""
    message: Union[str, None]
    """What failed. Only for a key with scope `admin`, or if lodge-keeper failed: other messages may name sessions
    of a tenant. null: not shown."""


class HealthPool(TypedDict):
    available: int
    """Sandboxes ready in the warm pool."""
    allocated: int
    """Running sandboxes."""
    total: int
    max_capacity: int
    """Maximum number of running sandboxes. 0: unlimited."""


class HealthConfig(TypedDict):
    """Limits and settings of thread sessions."""

    memory_bytes: int
    cpu_milli: int
    """Thousandths of a core."""
    max_processes: int
    max_file_bytes: int
    max_files: int
    """An upload that would make more files is refused."""
    max_files_applies_to: Literal['uploads']
    """Commands may create more files, up to `max_workspace_bytes`."""
    max_workspace_bytes: int
    network: Literal['none']
    user: str
    workspace_dir: str
    idle_timeout_ms: int
    pool_min: int
    """Minimum number of sandboxes to keep ready."""
    pool_target: int
    """Number of sandboxes to keep ready."""
    pool_max: int
    """Maximum number of running sandboxes. 0: unlimited."""
    limits_not_enforced: List[LimitNotEnforced]
    """Which of these limits this host does not enforce, and why."""


class HealthLimitsMax(TypedDict, total=False):
    """Maximum of each limit that a request may set (settings `limits_max_*`). Defaults above it are lowered.
    Without a member, only the bounds of the limit hold."""

    memory_bytes: int
    """Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB."""
    disk_bytes: int
    """Disk space of the session's files. Default: 1 GiB."""
    inodes: int
    """Number of files and directories. Not enforced for files on disk. Default: 200,000."""
    file_bytes: int
    """Maximum size of one file. Default: 1 GiB."""
    output_bytes: int
    """Maximum output kept per stream and command: at most a quarter of `memory_bytes`. 1 MiB is kept unless a
    command or the session requests another size. Default: 16 MiB, or a quarter of `memory_bytes` if that is
    less."""
    cpus: float
    """CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default."""
    cpu_weight: int
    """Relative CPU share under contention. Default: 100."""
    pids: int
    """Processes and threads. Default: 256."""
    open_files: int
    """Open files per process. Default: 1024."""


class Health(TypedDict):
    status: Literal['starting', 'ok', 'degraded', 'failing']
    """`degraded`: the keeper is not running, and the next call that needs it starts it; or it has not answered for
    seconds (`parts.keeper.error` says since when); or `disk.state` is not `ok`. `starting`: see `starting`."""
    version: str
    parts: HealthParts
    disk: HealthDisk
    """The file system of the data directory."""
    starting: Union[HealthStarting, None]
    """Progress of the start. null: lodged has started."""
    last_error: Union[HealthLastError, None]
    reason: Union[str, None]
    """Why the service is not ready."""
    insecure_no_auth: bool
    """Requests without a key are accepted."""
    uptime_seconds: int
    worker_id: str
    """Identifies this process; changes with each start."""
    pool: HealthPool
    active_sessions: int
    redis_connected: Literal[False]
    """Always false: lodge does not use Redis."""
    config: HealthConfig
    """Limits and settings of thread sessions."""
    limits_not_enforced: Union[LimitsNotEnforced, None]
    """Which limits of sessions this host does not enforce, and why. null: not known until the service has started."""
    limits_max: HealthLimitsMax
    """Maximum of each limit that a request may set (settings `limits_max_*`). Defaults above it are lowered.
    Without a member, only the bounds of the limit hold."""
    policy_enforcement: Literal['landlock', 'none']
    """How the kernel enforces which programs a policy allows."""


class IfVersion(TypedDict, total=False):
    if_version: int
    """Expected version of the record; otherwise the call returns 409 with the current record."""


class Index(TypedDict):
    name: str
    version: str
    docs: str
    openapi: str
    health: str


class Key(TypedDict):
    id: str
    tenant: str
    scope: str
    """`admin`, `tenant`, `session`, or `session:ID` for one session only."""
    user: Union[str, None]
    """A token for this end user only."""
    name: Union[str, None]
    created_at: Time
    expires_at: Union[int, None]
    """null: does not expire."""


class KeyAnswer(TypedDict):
    key: Key


class Team(TypedDict):
    team: str
    """The id of the team."""
    members: int
    """The number of members."""
    projects: int
    """The number of projects that it shares."""
    role: Literal['OWNER', 'ADMIN', 'MEMBER', 'VIEWER', None]
    """The role of the user whose teams were requested, else null."""


class TeamList(TypedDict):
    teams: List[Team]
    next: Next


class KeyList(TypedDict):
    keys: List[Key]
    next: Next


class KeyMade(TypedDict):
    key: Key
    secret: str
    """The key itself. It is shown only once and not stored."""


class KeyRequest(TypedDict, total=False):
    tenant: str
    """Default: the tenant of the calling key. Another one requires scope `admin`."""
    scope: str
    """Creating `admin` and `tenant` keys requires scope `admin`."""
    user: str
    """A token for this end user only. Requires a session scope."""
    name: str
    """A label."""
    expires_at: int
    """Expiry in milliseconds since 1970, in the future. Default: never."""
    expires_in_ms: int
    """Expiry relative to now. Only one of the two."""


class Limits(TypedDict, total=False):
    """For a session: all limits in force, from the session, its template or the defaults. For a template: those it
    sets."""

    memory_bytes: int
    """Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB."""
    disk_bytes: int
    """Disk space of the session's files. Default: 1 GiB."""
    inodes: int
    """Number of files and directories. Not enforced for files on disk. Default: 200,000."""
    file_bytes: int
    """Maximum size of one file. Default: 1 GiB."""
    output_bytes: int
    """Maximum output kept per stream and command: at most a quarter of `memory_bytes`. 1 MiB is kept unless a
    command or the session requests another size. Default: 16 MiB, or a quarter of `memory_bytes` if that is
    less."""
    cpus: float
    """CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default."""
    cpu_weight: int
    """Relative CPU share under contention. Default: 100."""
    pids: int
    """Processes and threads. Default: 256."""
    open_files: int
    """Open files per process. Default: 1024."""


class LimitNotEnforced(TypedDict):
    limit: str
    """Its name in the object beside this list."""
    enforced: Literal[False]
    reason: str


class LimitsWanted(TypedDict, total=False):
    """Limits that are not given come from the template, then from the defaults. A value out of range, or above the
    session's policy, is rejected."""

    memory_bytes: int
    """Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB."""
    disk_bytes: int
    """Disk space of the session's files. Default: 1 GiB."""
    inodes: int
    """Number of files and directories. Not enforced for files on disk. Default: 200,000."""
    file_bytes: int
    """Maximum size of one file. Default: 1 GiB."""
    output_bytes: int
    """Output kept per stream and command. More than a quarter of `memory_bytes` returns 400. Commands get less
    when the output of others takes the memory for it. Default: 1 MiB."""
    cpus: float
    """CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default."""
    cpu_weight: int
    """Relative CPU share under contention. Default: 100."""
    pids: int
    """Processes and threads. Default: 256."""
    open_files: int
    """Open files per process. Default: 1024."""
    cpu_milli: int
    """`cpus` in thousandths. Only one of the two."""


class Nothing(TypedDict):
    """An empty object."""


class OutputGoneProblemErrorDetails(TypedDict):
    stdout_offset: int
    """First offset that is kept."""
    stderr_offset: int


class OutputGoneProblemError(TypedDict):
    code: ErrorCode
    message: str
    """A message for people."""
    retryable: bool
    """Whether the same request may succeed later."""
    details: OutputGoneProblemErrorDetails


class OutputGoneProblem(TypedDict):
    error: OutputGoneProblemError


class Part(TypedDict):
    ok: bool


class PolicyLimits(TypedDict, total=False):
    """Maximum of each limit."""

    memory_bytes: int
    """Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB."""
    disk_bytes: int
    """Disk space of the session's files. Default: 1 GiB."""
    inodes: int
    """Number of files and directories. Not enforced for files on disk. Default: 200,000."""
    file_bytes: int
    """Maximum size of one file. Default: 1 GiB."""
    output_bytes: int
    """Maximum output kept per stream and command: at most a quarter of `memory_bytes`. 1 MiB is kept unless a
    command or the session requests another size. Default: 16 MiB, or a quarter of `memory_bytes` if that is
    less."""
    cpus: float
    """CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default."""
    cpu_weight: int
    """Relative CPU share under contention. Default: 100."""
    pids: int
    """Processes and threads. Default: 256."""
    open_files: int
    """Open files per process. Default: 1024."""


class Policy(TypedDict):
    """null: not set."""

    name: str
    tenant: str
    max_active_per_user: Union[int, None]
    """Maximum number of running sandboxes per user."""
    on_exceed: Literal['refuse', 'replace']
    """What to do with one more."""
    idle_timeout_ms: Union[int, None]
    """Maximum."""
    max_lifetime_ms: Union[int, None]
    """Maximum."""
    network: Literal['none', None]
    limits: PolicyLimits
    """Maximum of each limit."""
    limits_not_enforced: LimitsNotEnforced
    commands: Union[PolicyCommands, None]
    created_at: Time
    sessions: int
    """Number of sessions that use it."""


class PolicyAnswer(TypedDict):
    policy: Policy


class PolicyList(TypedDict):
    policies: List[Policy]
    next: Next


class PolicyPatch(TypedDict, total=False):
    """Fields that are not given stay unchanged; null removes them. `limits` and `commands` are replaced as a
    whole."""

    max_active_per_user: Union[int, None]
    """Maximum number of running sandboxes per user. Sessions then require a `user`. Checked when a session is
    created or resumed."""
    on_exceed: Literal['refuse', 'replace', None]
    """What to do with one more: refuse it (429), or hibernate the least recently used one of the user. Default:
    `refuse`."""
    idle_timeout_ms: Union[int, None]
    """Maximum, and the default for sessions that set none."""
    max_lifetime_ms: Union[int, None]
    """Maximum, and the default for sessions that set none."""
    network: Literal['none', None]
    """Sandboxes have no network."""
    limits: Union[LimitsWanted, None]
    commands: Union[PolicyCommands, None]


class _PolicyRequest(TypedDict):
    name: str
    """Unique per tenant. No slashes."""


class PolicyRequest(_PolicyRequest, total=False):
    tenant: str
    """Default: the tenant of the key."""
    max_active_per_user: int
    """Maximum number of running sandboxes per user. Sessions then require a `user`. Checked when a session is
    created or resumed."""
    on_exceed: Literal['refuse', 'replace']
    """What to do with one more: refuse it (429), or hibernate the least recently used one of the user. Default:
    `refuse`."""
    idle_timeout_ms: int
    """Maximum, and the default for sessions that set none."""
    max_lifetime_ms: int
    """Maximum, and the default for sessions that set none."""
    network: Literal['none']
    """Sandboxes have no network."""
    limits: LimitsWanted
    commands: PolicyCommands


class ProbeAnswer(TypedDict):
    status: Literal['connected', 'expired', 'no_sandbox']
    """`expired`: the sandbox is dead, and the record was updated."""
    verified: bool
    """false: it did not respond in time. Nothing was changed; check again later."""
    expires_at: Union[int, None]
    """When the lifetime of its sandbox is over."""
    retry_after_ms: Union[int, None]
    """When to check again."""
    cause: Union[Cause, None]


class ProbeRequest(TypedDict, total=False):
    deadline_ms: int
    """How long to wait for a response. Default: 15 s."""


class ProblemError(TypedDict):
    code: ErrorCode
    message: str
    """A message for people."""
    retryable: bool
    """Whether the same request may succeed later."""
    details: Dict[str, Any]
    """More information: for 403 `POLICY` (`policy`, `word`, `offset`, `line`, `column`, `reason`), 409 and 410 of
    a session, 416 of output, 429 of a sandbox, and 503 if the server is full."""


class Problem(TypedDict):
    error: ProblemError


class Progress(TypedDict):
    status: Literal['pending', 'running', 'ready', 'error']
    stage: str
    """The stage as a code."""
    message: str
    """The stage as a sentence."""
    step: int
    total_steps: int
    error: Union[str, None]
    """The error message, with stage `error`."""
    updated: Time
    updated_at: Time


class Quota(TypedDict):
    """0: unlimited."""

    sandboxes: int
    """Running sandboxes."""
    memory_bytes: int
    """Sum of the memory limits of running sandboxes."""
    disk_bytes: int
    """Sum of the disk limits of all sessions."""
    cpu_ms: int
    """Total CPU time."""


class QuotaAnswer(TypedDict):
    quota: Quota
    quota_not_enforced: QuotaNotEnforced
    usage: Usage


class QuotaRequest(TypedDict, total=False):
    """The whole quota. Fields that are not given are unlimited."""

    sandboxes: int
    """Running sandboxes."""
    memory_bytes: int
    """Sum of the memory limits of running sandboxes."""
    disk_bytes: int
    """Sum of the disk limits of all sessions."""
    cpu_ms: int
    """Total CPU time."""


class Ready(TypedDict):
    ready: bool
    disk: Literal['ok', 'full', 'failed']
    """`disk.state` of `/health`."""


class ResizeRequest(TypedDict):
    rows: int
    cols: int


class _RollbackRequest(TypedDict):
    snapshot: str
    """One of its snapshots."""


class RollbackRequest(_RollbackRequest, total=False):
    if_version: int
    """Expected version of the record; otherwise the call returns 409 with the current record."""


class Session(TypedDict):
    id: str
    """Assigned by lodge."""
    tenant: str
    """The tenant it belongs to."""
    key: Union[str, None]
    """Your name for it."""
    user: Union[str, None]
    """The end user it belongs to."""
    thread: Union[str, None]
    """The thread it belongs to."""
    project: Union[str, None]
    """A label in the record."""
    fragment: Union[str, None]
    """A label in the record."""
    template: str
    """The template it started from."""
    policy: Union[str, None]
    """The policy that applies."""
    state: SessionState
    runtime: Literal['none', 'resumable', 'live']
    """`live`: it has a sandbox. `resumable`: it has files only. `none`: it has neither."""
    paused: bool
    """Its processes are frozen. The next use continues them."""
    sandbox: Union[str, None]
    """The running sandbox."""
    snapshot: Union[str, None]
    """Its newest snapshot."""
    version: int
    """Increases with every change of the record; for `if_version`."""
    generation: int
    """Increases with every hibernation, snapshot and rollback."""
    incarnation: int
    """Number of sandboxes it has had."""
    created_at: Time
    started_at: Union[int, None]
    """When the current or last sandbox was ready."""
    last_activity_at: Union[int, None]
    """Time of the last use."""
    idle_timeout_ms: int
    """Idle time before it hibernates or is deleted."""
    lifetime_ms: int
    """Time from the start of a sandbox to its first expiry."""
    max_lifetime_ms: int
    """The most a sandbox can be extended to."""
    delete_after_ms: Union[int, None]
    """How long it is kept once it is hibernated. null: for ever."""
    hibernate_at: Union[int, None]
    """Idle deadline. null unless active."""
    expires_at: Union[int, None]
    """End of the sandbox's lifetime. Unless a command runs, lodge ends it up to ten seconds earlier. null: no
    sandbox."""
    hibernated_at: Union[int, None]
    """Since when it is hibernated. null unless hibernated."""
    delete_at: Union[int, None]
    """When it is deleted unless it is used. null: never, or not hibernated."""
    on_idle: End
    on_expire: End
    cause: Union[Cause, None]
    last_death: Union[Death, None]
    limits: Limits
    limits_not_enforced: LimitsNotEnforced
    metadata: Metadata


class SessionAnswer(TypedDict):
    session: Session


class SessionChanged(TypedDict):
    session: Session
    adjusted: List[str]
    """Other fields that had to change with it: a `max_lifetime_ms` below `lifetime_ms` also lowers that."""


class SessionList(TypedDict):
    sessions: List[Session]
    next: Next


class SessionRowNext1(TypedDict):
    what: Literal['hibernate', 'destroy']
    at: Time


class SessionRowUsage(TypedDict):
    """What it uses. null: not known, because it could not be measured."""

    memory: Union[int, None]
    """Bytes; 0 without a sandbox."""
    memory_limit: int
    cpu_pct: Union[float, None]
    """100 is one core."""
    disk: Union[int, None]
    """Bytes of its sandbox, or of its sealed files. What is written counts at once; deleted files count up to 30
    seconds longer, also for the limit."""
    disk_limit: int
    pids: Union[int, None]
    """Processes and threads, as the limit counts them: without those of lodge itself."""
    at: Union[int, None]
    """When it was measured; null without a sandbox."""
    enforced: bool
    """Whether this host enforces memory and disk limits."""


class SessionRow(TypedDict):
    id: str
    tenant: str
    key: Union[str, None]
    user: Union[str, None]
    project: Union[str, None]
    template: str
    state: SessionState
    paused: bool
    created_at: Time
    active_at: Union[int, None]
    """Last activity."""
    next: Union[SessionRowNext1, None]
    """What lodge will do by itself next."""
    cause: Union[Cause, None]
    usage: SessionRowUsage
    """What it uses. null: not known, because it could not be measured."""


class SessionRowsTotals1(TypedDict):
    memory: int
    disk: int


class SessionRows(TypedDict):
    sessions: List[SessionRow]
    total: int
    """Sessions that match."""
    counts: Dict[str, int]
    """Sessions that match the other filters, by state."""
    totals: Union[SessionRowsTotals1, None]
    """Bytes of all sessions that match; null if these are more than 5000."""
    next: Next


class SessionPatch(TypedDict, total=False):
    """Fields that are not given stay unchanged. Limits apply at once, including to running commands. Metadata is
    replaced as a whole."""

    idle_timeout_ms: int
    """As in `POST /v1/sessions`."""
    lifetime_ms: int
    """As in `POST /v1/sessions`. The running sandbox then expires this long after its start, whatever it was
    extended to. More than `max_lifetime_ms` returns 400."""
    max_lifetime_ms: int
    """As in `POST /v1/sessions`. Also lowers `lifetime_ms` if that is more."""
    delete_after_ms: int
    """As in `POST /v1/sessions`. 0: never."""
    on_idle: End
    on_expire: End
    limits: LimitsWanted
    metadata: Metadata
    archived: bool
    """true: it stays hibernated until it is unarchived; calls that would resume it return 409."""
    if_version: int
    """Expected version of the record; otherwise the call returns 409 with the current record."""


class SignalRequest(TypedDict):
    signal: Union[int, str]
    """15, "TERM" or "SIGTERM"."""


class Snapshot(TypedDict):
    id: str
    name: Union[str, None]
    """Unique within the session."""
    session: Union[str, None]
    """null: it was imported."""
    session_key: Union[str, None]
    """Current key of the session."""
    session_exists: bool
    """false: the session was deleted, or the snapshot was imported."""
    generation: int
    size_bytes: Union[int, None]
    """Size of the differences from its parent. Null for a moment after it is taken: its files are counted while
    they are written to disk."""
    created_at: Time


class SnapshotAnswer(TypedDict):
    snapshot: Snapshot


class SnapshotList(TypedDict):
    snapshots: List[Snapshot]
    next: Next


class SnapshotRequest(TypedDict, total=False):
    name: str
    """Unique within the session."""
    live: bool
    """false: stop the sandbox and resume it afterwards, instead of freezing it for a moment."""


class StatsStats(TypedDict):
    """null: not available on this kernel."""

    memory_bytes: int
    memory_peak_bytes: Union[int, None]
    output_memory_bytes: int
    """Memory of the output that lodge keeps of running commands, which `memory_bytes` does not count. At most half
    of the limit `memory_bytes`."""
    oom_kills: int
    """Processes killed because memory ran out."""
    cpu_us: int
    """CPU time since the sandbox started."""
    pids: int
    """Processes and threads, as the limit counts them: without those of lodge itself."""
    pids_peak: Union[int, None]
    pids_denied: int
    """Number of refused new processes."""
    io_read_bytes: Union[int, None]
    """Read from block devices since the sandbox started."""
    io_write_bytes: Union[int, None]
    disk_bytes: Union[int, None]
    """Bytes of its files, as the limit counts them. What is written counts at once; deleted files count up to 30
    seconds longer, also for the limit. null: not known yet."""
    disk_limit_bytes: Union[int, None]
    """Also in the variable `LODGE_DISK_BYTES` of commands. null: this host does not enforce it."""
    disk_full: bool


class Stats(TypedDict):
    stats: StatsStats
    """null: not available on this kernel."""


class TemplateLimits(TypedDict, total=False):
    """Limits it sets; the others have their defaults."""

    memory_bytes: int
    """Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB."""
    disk_bytes: int
    """Disk space of the session's files. Default: 1 GiB."""
    inodes: int
    """Number of files and directories. Not enforced for files on disk. Default: 200,000."""
    file_bytes: int
    """Maximum size of one file. Default: 1 GiB."""
    output_bytes: int
    """Maximum output kept per stream and command: at most a quarter of `memory_bytes`. 1 MiB is kept unless a
    command or the session requests another size. Default: 16 MiB, or a quarter of `memory_bytes` if that is
    less."""
    cpus: float
    """CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default."""
    cpu_weight: int
    """Relative CPU share under contention. Default: 100."""
    pids: int
    """Processes and threads. Default: 256."""
    open_files: int
    """Open files per process. Default: 1024."""


class _TemplateFrom1(TypedDict):
    kind: str
    """`tar`, `oci` (an image of any format) or `snapshot`."""


class TemplateFrom1(_TemplateFrom1, total=False):
    snapshot: str
    """The snapshot it was created from."""


_TemplateAlways = TypedDict("_TemplateAlways", {
    "name": "str",
    "builtin": "bool",
    "class": "Literal['user', 'root']",
    "run_as": "Union[str, None]",
    "workdir": "Union[str, None]",
    "env": "Environment",
    "limits": "TemplateLimits",
    "limits_not_enforced": "LimitsNotEnforced",
    "policy": "Union[str, None]",
    "created_at": "Union[int, None]",
    "from": "Union[TemplateFrom1, None]",
    "size_bytes": "Union[int, None]",
    "sessions": "int",
})


_TemplateOptional = TypedDict("_TemplateOptional", {
    "problem": "str",
}, total=False)


class Template(_TemplateAlways, _TemplateOptional):
    pass


class TemplateAnswer(TypedDict):
    template: Template


class TemplateList(TypedDict):
    templates: List[Template]


class _TemplateMade(TypedDict):
    template: Template


class TemplateMade(_TemplateMade, total=False):
    wants_root: bool
    """The image declares root as its user; commands do not run as root. See `class`."""


_TemplatePatchOptional = TypedDict("_TemplatePatchOptional", {
    "run_as": "Union[str, None]",
    "workdir": "Union[str, None]",
    "env": "Union[Environment, None]",
    "limits": "Union[LimitsWanted, None]",
    "class": "Literal['user', 'root', None]",
    "policy": "Union[str, None]",
}, total=False)


class TemplatePatch(_TemplatePatchOptional):
    """Fields that are not given stay unchanged. Given fields are replaced as a whole, including `env` and
    `limits`; null removes them."""


class TemplateRemoved(TypedDict):
    removed: str
    """Name of the deleted template."""


_TemplateRequestAlways = TypedDict("_TemplateRequestAlways", {
    "name": "str",
    "snapshot": "str",
})


_TemplateRequestOptional = TypedDict("_TemplateRequestOptional", {
    "tenant": "str",
    "run_as": "str",
    "workdir": "str",
    "env": "Environment",
    "limits": "LimitsWanted",
    "class": "Literal['user', 'root']",
    "policy": "str",
}, total=False)


class TemplateRequest(_TemplateRequestAlways, _TemplateRequestOptional):
    """Settings that are not given come from the template of the snapshot's session. `env` and `limits` are merged
    with it."""


class TombstoneTombstone(TypedDict):
    """Record of a deleted session, kept for 7 days."""

    session: str
    user: Union[str, None]
    created_at: Time
    cause: Union[Cause, None]


class Tombstone(TypedDict):
    tombstone: TombstoneTombstone
    """Record of a deleted session, kept for 7 days."""


class TtyExitExit(TypedDict):
    exit_code: Union[int, None]
    """null if a signal ended it, or the result is unknown."""
    signal: Union[int, None]
    """Number of the signal that ended it."""


class TtyExit(TypedDict):
    """The command has ended."""

    exit: TtyExitExit


class _TtyPlace(TypedDict):
    offset: int


class TtyPlace(_TtyPlace, total=False):
    """Position of the next byte in the output."""

    exec_id: str
    """Only in the first message."""


class TtyResizeResize(TypedDict):
    cols: int
    """Columns."""
    rows: int
    """Rows."""


class TtyResize(TypedDict):
    """Sent by the client when its window size changes."""

    resize: TtyResizeResize


class Usage(TypedDict):
    sessions: int
    active: int
    memory_bytes: int
    disk_bytes: int
    cpu_ms: int


class UserListUsersReserved(TypedDict):
    """Sums of limits: memory of running sandboxes, disk of all sessions."""

    memory: int
    disk: int


class UserListUsers(TypedDict):
    id: str
    name: Union[str, None]
    email: Union[str, None]
    running: int
    """Running sandboxes."""
    sessions: int
    memory: int
    """Bytes that the sandboxes use now."""
    disk: int
    """Bytes of sandboxes, sealed files and snapshots; what several share counts once."""
    cpu_ms_24h: int
    """CPU time of sandboxes that run now or ended within the last 24 hours."""
    active_at: Union[int, None]
    """Last activity."""
    reserved: UserListUsersReserved
    """Sums of limits: memory of running sandboxes, disk of all sessions."""
    quota: Quota
    over: List[Literal['sandboxes', 'memory', 'disk', 'cpu']]
    """Quotas that are exceeded."""


class UserListDisk1(TypedDict):
    total: int
    free: int
    users: int
    """Of the users that match."""


class UserList(TypedDict):
    users: List[UserListUsers]
    total: int
    """Users that match."""
    disk: Union[UserListDisk1, None]
    """The file system of the service, in bytes. null without scope `admin`."""


class UserPatch(TypedDict, total=False):
    name: Union[str, None]
    """Display name."""
    email: Union[str, None]
    """An address such as ada@example.com."""


class UserAnswerUser(TypedDict):
    id: str
    name: Union[str, None]
    email: Union[str, None]
    project: Union[str, None]
    """The user's current project."""
    fragment: Union[str, None]
    active: int
    """Running sandboxes."""
    session: Union[Session, None]
    created_at: Union[int, None]
    """null: the user was never named but has sessions."""


class UserAnswer(TypedDict):
    user: UserAnswerUser
    quota: Quota
    quota_not_enforced: QuotaNotEnforced
    usage: Usage


class WatchEnd(TypedDict):
    code: ErrorCode
    message: str


class Written(TypedDict):
    written_bytes: int


class _TemplateEnvironment(TypedDict):
    template: str
    captured_at: Time
    template_version: str
    """Version of template, kernel and, where applicable, host software."""
    current: bool
    """Whether the record is up to date."""
    pwd: str
    """Working directory of commands."""
    kernel: str
    env: Dict[str, str]
    """`[redacted]`: the name suggests a secret."""
    tools: Dict[str, str]
    """Versions as reported by the tools."""


class TemplateEnvironment(_TemplateEnvironment, total=False):
    os: Dict[str, str]
    """Contents of os-release, with names in lower case."""


class TemplateEnvironmentAnswer(TypedDict):
    environment: TemplateEnvironment


class HealthStarting(TypedDict):
    """Progress of the start."""

    stage: Literal['store', 'keeper', 'adopt', 'ready']
    message: str
    step: int
    total_steps: int
    error: Union[str, None]
    """Error of the last failed attempt."""
    tries: int
    """Number of finished attempts."""
    waiting: int
    """Requests waiting for the start."""


class ProjectsProblem(TypedDict):
    success: Literal[False]
    error: str


class _ProjectsSwitch(TypedDict):
    projectId: str


class ProjectsSwitch(_ProjectsSwitch, total=False):
    fragmentId: Union[str, None]
    userId: str
    """The acting end user. Required with an application key; with a user token it must be that user. Created on
    first use."""


class ProjectsSwitchedResultCause(TypedDict):
    """Why they were lost."""

    code: str
    text: str
    at: Union[str, None]
    """ISO 8601, UTC."""


class ProjectsSwitchedResult(TypedDict):
    sandboxId: str
    """The sandbox. Every call that takes a session takes this id too, until the sandbox ends."""
    sessionId: str
    """Its session, which stays the same when the sandbox is replaced."""
    sandboxUrl: Union[str, None]
    """URL of a web server in the sandbox; null while ports cannot be reached from outside."""
    sandboxUrlReason: Union[str, None]
    """Why there is no URL."""
    restoredFiles: int
    """Files written by this switch; 0 for a working copy."""
    hasRestoredFiles: bool
    """Whether there was a working copy or a fragment with files."""
    fragmentId: Union[str, None]
    """Fragment the files came from. null: none."""
    activeProjectId: str
    activeFragmentId: Union[str, None]
    stateLost: bool
    """The files of the working copy were lost; the latest fragment is used."""
    cause: Union[ProjectsSwitchedResultCause, None]
    """Why they were lost."""


class ProjectsSwitched(TypedDict):
    success: Literal[True]
    message: str
    result: ProjectsSwitchedResult


class ProjectsCleanup(TypedDict, total=False):
    userId: str
    """The acting end user. Required with an application key; with a user token it must be that user. Created on
    first use."""


class ProjectsCleanedResults(TypedDict):
    totalProjects: int
    """Number of working copies of projects among them."""
    killed: int
    failed: int
    killedSandboxes: List[str]
    failedSandboxes: List[str]


class ProjectsCleaned(TypedDict):
    success: Literal[True]
    message: str
    results: ProjectsCleanedResults


class ProjectsSandboxesCurrentSandbox(TypedDict):
    sandboxId: str
    projectId: Union[str, None]
    projectName: Union[str, None]
    createdAt: Union[str, None]
    """ISO 8601, UTC."""
    lastUsedAt: Union[str, None]
    """ISO 8601, UTC."""


class ProjectsSandboxes(TypedDict):
    userId: str
    activeSandboxes: int
    currentSandbox: Union[ProjectsSandboxesCurrentSandbox, None]


class ProjectsProject(TypedDict):
    id: str
    name: str
    owner: str
    team: Union[str, None]
    createdAt: Union[str, None]
    """ISO 8601, UTC."""


class ProjectsProjectList(TypedDict):
    projects: List[ProjectsProject]
    next: Next


class _ProjectsProjectRequest(TypedDict):
    name: str


class ProjectsProjectRequest(_ProjectsProjectRequest, total=False):
    id: str
    """Generated if not given."""
    team: str
    userId: str
    """The acting end user. Required with an application key; with a user token it must be that user. Created on
    first use."""


class ProjectsFragment(TypedDict):
    id: str
    projectId: str
    title: Union[str, None]
    snapshotId: Union[str, None]
    """Set if the fragment is a snapshot; it then has no files here."""
    fileCount: int
    bytes: int
    createdAt: Union[str, None]
    """ISO 8601, UTC."""


class ProjectsFragmentAdded(TypedDict):
    id: str
    projectId: str
    title: Union[str, None]
    snapshotId: Union[str, None]
    """Set if the fragment is a snapshot; it then has no files here."""
    fileCount: int
    bytes: int
    createdAt: Union[str, None]
    """ISO 8601, UTC."""
    skipped: int
    """Entries of the sandbox that were skipped: links, and names that are not valid UTF-8."""


class ProjectsFragmentFiles(TypedDict):
    id: str
    projectId: str
    title: Union[str, None]
    snapshotId: Union[str, None]
    """Set if the fragment is a snapshot; it then has no files here."""
    fileCount: int
    bytes: int
    createdAt: Union[str, None]
    """ISO 8601, UTC."""
    files: Dict[str, str]
    """Path and content: text, `__BASE64__...`, or `data:TYPE;base64,...`. Paths are relative, without `.` and
    `..`; directories are created."""


class ProjectsFragmentList(TypedDict):
    fragments: List[ProjectsFragment]
    next: Next


class ProjectsFragmentRequest(TypedDict, total=False):
    id: str
    """Generated if not given."""
    title: str
    files: Dict[str, str]
    """Path and content: text, `__BASE64__...`, or `data:TYPE;base64,...`. Paths are relative, without `.` and
    `..`; directories are created."""
    fromSandbox: bool
    snapshotId: str
    userId: str
    """The acting end user. Required with an application key; with a user token it must be that user. Created on
    first use."""


class ProjectsMember(TypedDict):
    team: str
    user: str
    role: Literal['OWNER', 'ADMIN', 'MEMBER', 'VIEWER']
    """VIEWER: view and switch. MEMBER: also save. ADMIN: also delete, and manage the team. OWNER: everything."""


class ProjectsMemberList(TypedDict):
    members: List[ProjectsMember]


class _ProjectsMemberRequest(TypedDict):
    role: Literal['OWNER', 'ADMIN', 'MEMBER', 'VIEWER']
    """VIEWER: view and switch. MEMBER: also save. ADMIN: also delete, and manage the team. OWNER: everything."""


class ProjectsMemberRequest(_ProjectsMemberRequest, total=False):
    userId: str
    """The acting end user. An application key without it acts for the application."""


class PolicyCommands(TypedDict, total=False):
    """Programs that commands may start. A command is checked before it starts and refused (403 `POLICY`) at the
    first word that is not allowed. With `allow` the kernel also prevents other programs from running, if `GET
    /health` reports it."""

    allow: Union[List[str], None]
    """Program names or absolute paths, at most 512. Only these and shell builtins are allowed."""
    deny: Union[List[str], None]
    """Programs to refuse even if `allow` lists them. Checked before the start only, not by the kernel."""
    reason: Union[str, None]
    """Shown in the error message."""
    enforce: Literal['try', 'require', None]
    """`require`: no command starts if the kernel cannot enforce `allow`. Default: `try`."""


class PolicyTestRequest(TypedDict):
    command: str
    """Script for bash."""


class PolicyVerdictPrograms(TypedDict):
    name: str
    """`ls` for `/bin/ls`; the text of an unknown word; for a setting such as `PS4`, the variable or option."""
    kind: Literal['program', 'builtin', 'function', 'unknown', 'setting']
    offset: int
    """In bytes."""
    line: int
    column: int
    """In bytes."""
    allowed: bool
    why: str


class PolicyVerdict(TypedDict):
    allowed: bool
    enforced: bool
    """Whether the kernel enforces it too."""
    programs: List[PolicyVerdictPrograms]
    """Programs the script starts, in order."""
    reason: Union[str, None]
    """Why the first word that is not allowed is refused, with the policy's `reason`."""


class ExtendedSession(TypedDict):
    """The record of a session after extend()."""

    id: str
    """Assigned by lodge."""
    tenant: str
    """The tenant it belongs to."""
    key: Union[str, None]
    """Your name for it."""
    user: Union[str, None]
    """The end user it belongs to."""
    thread: Union[str, None]
    """The thread it belongs to."""
    project: Union[str, None]
    """A label in the record."""
    fragment: Union[str, None]
    """A label in the record."""
    template: str
    """The template it started from."""
    policy: Union[str, None]
    """The policy that applies."""
    state: SessionState
    runtime: Literal['none', 'resumable', 'live']
    """`live`: it has a sandbox. `resumable`: it has files only. `none`: it has neither."""
    paused: bool
    """Its processes are frozen. The next use continues them."""
    sandbox: Union[str, None]
    """The running sandbox."""
    snapshot: Union[str, None]
    """Its newest snapshot."""
    version: int
    """Increases with every change of the record; for `if_version`."""
    generation: int
    """Increases with every hibernation, snapshot and rollback."""
    incarnation: int
    """Number of sandboxes it has had."""
    created_at: Time
    started_at: Union[int, None]
    """When the current or last sandbox was ready."""
    last_activity_at: Union[int, None]
    """Time of the last use."""
    idle_timeout_ms: int
    """Idle time before it hibernates or is deleted."""
    lifetime_ms: int
    """Time from the start of a sandbox to its first expiry."""
    max_lifetime_ms: int
    """The most a sandbox can be extended to."""
    delete_after_ms: Union[int, None]
    """How long it is kept once it is hibernated. null: for ever."""
    hibernate_at: Union[int, None]
    """Idle deadline. null unless active."""
    expires_at: Union[int, None]
    """End of the sandbox's lifetime. Unless a command runs, lodge ends it up to ten seconds earlier. null: no
    sandbox."""
    hibernated_at: Union[int, None]
    """Since when it is hibernated. null unless hibernated."""
    delete_at: Union[int, None]
    """When it is deleted unless it is used. null: never, or not hibernated."""
    on_idle: End
    on_expire: End
    cause: Union[Cause, None]
    last_death: Union[Death, None]
    limits: Limits
    limits_not_enforced: LimitsNotEnforced
    metadata: Metadata
    extended_by_ms: int
    """By how much `expires_at` moved: less than requested at the maximum lifetime."""
    at_maximum: bool
    """`expires_at` can move no further."""
    reason: Union[str, None]
    """Why it moved by less than requested, with the maximum lifetime and in parentheses its bound: `lifetime_max`,
    the setting of the service, or `max_lifetime_ms` of the session. Null: it moved as requested. `expires_at`
    of the session is the end in each case."""


class ExecStartedEvent(TypedDict):
    """A line `started` of a stream."""

    event: Literal['started']
    exec_id: str


class ExecStdoutEvent(TypedDict):
    """A line `stdout` of a stream."""

    event: Literal['stdout']
    offset: int
    """Offset of the first byte in the stream. A gap means that output was discarded."""
    data: str
    """Text or base64, depending on `encoding`."""


class ExecStderrEvent(TypedDict):
    """A line `stderr` of a stream."""

    event: Literal['stderr']
    offset: int
    """Offset of the first byte in the stream. A gap means that output was discarded."""
    data: str
    """Text or base64, depending on `encoding`."""


class ExecExitEvent(TypedDict):
    """A line `exit` of a stream."""

    event: Literal['exit']
    exec_id: str
    exit_code: Union[int, None]
    """null if a signal ended it, or the result is unknown."""
    signal: Union[int, None]
    """Number of the signal that ended it."""
    stdout_bytes: int
    """Bytes written, including discarded ones."""
    stderr_bytes: int
    truncated: bool
    """Part of the output is missing here."""
    timed_out: bool
    oom_killed: bool
    """The kernel killed a process because memory ran out."""
    lost: bool
    """The sandbox ended before the result was known."""
    reason: Union[str, None]
    """Why lodge ended the command, or why its result is unknown. null if it ended by itself."""
    limits: List[Literal['TIMEOUT', 'LIMIT_MEMORY', 'LIMIT_PIDS', 'LIMIT_OUTPUT', 'LIMIT_DISK', 'LIMIT_FILE']]
    """Limits it exceeded."""
    duration_ms: int
    usage: ExecUsage


class ExecBeatEvent(TypedDict):
    """A line `beat` of a stream."""

    event: Literal['beat']


End = Literal['hibernate', 'destroy']
"""Whether the files are kept (`hibernate`) or deleted (`destroy`). A session with `destroy` on idle is also
deleted if it was hibernated for another reason."""

Environment = Dict[str, str]
"""Variables by name."""

ErrorCode = Literal['INVALID', 'UNAUTHENTICATED', 'DENIED', 'POLICY', 'NOT_FOUND', 'METHOD_NOT_ALLOWED', 'CONFLICT', 'GONE', 'PRECONDITION_FAILED', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'RANGE', 'OUTPUT_GONE', 'MISDIRECTED', 'UPGRADE_REQUIRED', 'LIMIT', 'LIMIT_PIDS', 'LIMIT_MEMORY', 'LIMIT_OUTPUT', 'RATE_LIMITED', 'INTERNAL', 'CALLER_GONE', 'UNAVAILABLE', 'OVERLOADED', 'TIMEOUT', 'LIMIT_DISK']
"""`INVALID`: the message names the field or header; 400, also 414, 417, 431, 505; `UNAUTHENTICATED`: the API key
is missing, unknown or expired; 401; `DENIED`: the key's scope is too low, or file permissions in the sandbox
deny it; 403; `POLICY`: the session's policy does not allow a program of the command; 403; `NOT_FOUND`: does not
exist, or is not visible to this key; 404; `METHOD_NOT_ALLOWED`: the path does not support the method; `Allow`
lists those it does; 405; `CONFLICT`: not possible in the current state, or the version changed; 409; `GONE`:
the session was deleted; 410; `PRECONDITION_FAILED`: `If-Match` or `If-None-Match` failed; 412; `TOO_LARGE`: the
body, or the resulting file, is too large; 413; `UNSUPPORTED_MEDIA_TYPE`: the `Content-Type` is not supported;
415; `RANGE`: the range is outside the file; 416; `OUTPUT_GONE`: output at this offset was discarded or does not
exist yet; 416; `MISDIRECTED`: the `Host` header does not name this server; 421; `UPGRADE_REQUIRED`: the route
needs a WebSocket; 426; `LIMIT`: a quota, or a policy's limit per user; 429; `LIMIT_PIDS`: the sandbox has
reached its process limit; 429; `LIMIT_MEMORY`: the sandbox is out of memory; 429; `LIMIT_OUTPUT`: the output of
running commands takes all the memory there is for it, half of `memory_bytes`; retry when commands have ended,
or with a smaller `max_output_bytes`; 429; `RATE_LIMITED`: too many requests of the key (settings `rate`,
`concurrent`), or its tenant has all it may have of the service; the message names the setting; 429; `INTERNAL`:
internal error; the log has the details under the request id; 500; `CALLER_GONE`: the client disconnected before
the command ended; the command keeps running; 499, in the log only; `UNAVAILABLE`: full, busy or failing; retry
later; 503; `OVERLOADED`: too many requests in flight; 503; `TIMEOUT`: the sandbox did not respond in time; 504;
`LIMIT_DISK`: no space left on the disk; 507."""

ExecState = Literal['running', 'exited', 'killed', 'lost']
"""`killed`: by a signal, a timeout, or the end of its sandbox. `lost`: the result is unknown."""

LimitsNotEnforced = List[LimitNotEnforced]
"""Which of the limits this host does not enforce, and why. `inodes` never is for files on disk. A request that
sets such a limit is refused with 409."""

Metadata = Dict[str, Any]
"""Any JSON object to store with the session, at most 65,536 bytes."""

Next = Union[int, None]
"""Value of `after` for the next page. null: this is the last one."""

Outcome = Literal['created', 'reused', 'resumed', 'replaced']
"""`created`: it is new. `reused`: it was running. `resumed`: it was hibernated and has its files. `replaced`: its
files were lost, and it started anew."""

QuotaNotEnforced = List[LimitNotEnforced]
"""Quotas that do not hold, because this host does not enforce the limits of sandboxes that they add up."""

SessionState = Literal['none', 'provisioning', 'active', 'hibernating', 'hibernated', 'restoring', 'archived', 'failed', 'destroying']
"""`none`: it never had a sandbox, or lost it with its files. `destroying` does not appear in lists."""

Time = int
"""Milliseconds since 1970, UTC."""

ExecEvent = Union[ExecStartedEvent, ExecStdoutEvent, ExecStderrEvent, ExecExitEvent, ExecBeatEvent]
