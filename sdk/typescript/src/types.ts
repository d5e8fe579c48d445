// SPDX-License-Identifier: Apache-2.0
// What /v1 and projects take and answer. Made by make_types.py from spec/openapi.json: do not edit.

/** Why something happened. */
export interface Cause {
  /** The reason as a code. More may be added. */
  code:
    | "asked"
    | "idle"
    | "expired"
    | "replaced"
    | "room"
    | "gone"
    | "stopped"
    | "unavailable"
    | "interrupted"
    | "error"
    | "cleanup"
    | "retention"
    | "transient"
    | "";
  /** The reason as a sentence. May be empty. */
  text: string;
  /** The actor: a key, a user, or `lodge` itself. */
  actor: string;
  /** The time. */
  at: number | null;
}

/** Response of `GET /v1/sessions/{id}/watch`. */
export interface Change {
  /** `ready` comes first: no later change is missed. `lost`: too many changes at once; list the directory. */
  kind: "ready" | "create" | "write" | "remove" | "rename" | "chmod" | "lost";
  path: string;
  /** The raw bytes in base64. Only present if they are not valid UTF-8; `path` then contains U+FFFD. */
  path_base64?: string;
  is_dir: boolean;
}

/** Error response `Conflict`. */
export interface ConflictProblem {
  error: {
    code: ErrorCode;
    /** A message for people. */
    message: string;
    /** Whether the same request may succeed later. */
    retryable: boolean;
    details: {
      session?: Session;
    };
  };
}

/** How the last sandbox of the session ended. Kept until the next one ends, also while the session runs again. */
export interface Death {
  at: Time;
  /**
   * `killed`: a signal killed its init, not lodge. `exited`: its init exited. `oom`: the host ran out of memory.
   * `disk_full`: the server's disk was full and a write below the volume of the sandboxes failed.
   * `host_restarted`. `gone`, `stopped`: it ended, and how is not known. The others are codes of a cause:
   * `asked`, `idle`, `expired`, `room` and so on. More may be added.
   */
  code: string;
  /** The same as a sentence. */
  text: string;
  /** The actor that asked for it: a key, a user, or `lodge` itself. Empty if it ended by itself. */
  actor: string;
  /** Number of the signal that killed its init. */
  signal: number | null;
  lost: {
    /** Commands that were running. */
    commands: number;
  };
  /** Number of the sandbox within the session. */
  incarnation: number;
}

/**
 * Whether the files are kept (`hibernate`) or deleted (`destroy`). A session with `destroy` on idle is also
 * deleted if it was hibernated for another reason.
 */
export type End = "hibernate" | "destroy";

/**
 * Only `key`, `thread`, `user`, `pin`, `if_exists` and `wait_ms` apply to an existing session; everything else
 * applies to new sessions only, and is named in `ignored` if the session has another value. `PATCH
 * /v1/sessions/{id}` changes a session.
 */
export interface EnterRequest {
  /**
   * Your name for the session, unique per tenant. The session is found by the first of `key`, `thread` and
   * `user` that is given. Without any of them, a new session is created.
   */
  key?: string;
  /** The end user it belongs to. Optional with a user token. */
  user?: string;
  /** Finds the session if no `key` is given. */
  thread?: string;
  /** A label in the record. */
  project?: string;
  /** A label in the record. */
  fragment?: string;
  /** The template of a new session. */
  template?: string;
  /** The snapshot a new session starts from. */
  snapshot?: string;
  limits?: LimitsWanted;
  env?: Environment;
  /** The user in the sandbox that runs commands. Default: the template's. */
  run_as?: string;
  /**
   * The working directory of commands. Default: the template's, or the home of the user. It is created if
   * missing, and owned by that user.
   */
  workdir?: string;
  /** `root`: the sandbox has a root user of its own, without privileges outside. */
  class?: "user" | "root";
  /**
   * Time without use before the session hibernates. Default: 30 minutes. More than the setting
   * `idle_timeout_max` (24 hours by default) or its policy allows returns 400.
   */
  idle_timeout_ms?: number;
  /** Time until a sandbox expires, unless it is extended. Default: 5 hours, or `max_lifetime_ms` if that is less. */
  lifetime_ms?: number;
  /**
   * The most a sandbox can be extended to. Default: the setting `lifetime_max` (5 hours by default). More than
   * that, or than its policy allows, returns 400.
   */
  max_lifetime_ms?: number;
  /**
   * Delete the session once it has been hibernated for this time. 0: never. Default: the setting `delete_after`,
   * which is never unless set.
   */
  delete_after_ms?: number;
  /** What to do when the session has been idle too long. */
  on_idle?: "hibernate" | "destroy";
  /** What to do when the lifetime of its sandbox is over. */
  on_expire?: "hibernate" | "destroy";
  /** Sandboxes have no network. */
  network?: "none";
  /**
   * The policy of a new session. Default: the template's, if any. An unknown policy returns 404. It limits
   * `limits` and timeouts: exceeding them returns 400. With `max_active_per_user` it requires a `user`.
   */
  policy?: string;
  metadata?: Metadata;
  /** `fail` returns 409 if the session exists. */
  if_exists?: "use" | "fail";
  /** Only this session or sandbox; otherwise the call returns 409, or 410 if that sandbox has ended. */
  pin?: string;
  /** A repeated request with this key within 7 days returns the same session. */
  idempotency_key?: string;
  /** Maximum number of running sandboxes of this user. With a policy, the smaller number applies. */
  max_active_per_user?: number;
  /**
   * With `max_active_per_user`: fail, or hibernate the least recently used one. The policy's setting takes
   * precedence.
   */
  on_exceed?: "refuse" | "replace";
  /** How long to wait for capacity if the server is full. */
  wait_ms?: number;
  /** Create the session without a sandbox; do not resume an existing one. */
  asleep?: boolean;
}

/** Response of `POST /v1/sessions`. */
export interface Entered {
  session: Session;
  outcome: Outcome;
  /** Files of an earlier sandbox were lost; `cause` says why. */
  state_lost: boolean;
  cause: Cause | null;
  /** Time until the sandbox was ready. */
  ready_ms: number;
  /** How the sandbox was started. null: it was already running, or none was requested. */
  source: "pool" | "cold" | "resume" | "fork" | null;
  /**
   * Fields of the request that had no effect, because the session existed and has other values, as `template` or
   * `limits.memory_bytes`.
   */
  ignored: string[];
}

/** Part of `EntryAnswer`. */
export interface Entry {
  /** The last part of the path. */
  name: string;
  /** The path relative to the requested path. */
  path: string;
  /** The raw bytes in base64. Only present if they are not valid UTF-8; `path` then contains U+FFFD. */
  path_base64?: string;
  type: "file" | "directory" | "symlink" | "fifo" | "socket" | "device";
  size: number;
  /** In octal. */
  mode: string;
  /** User id inside the sandbox. */
  uid: number;
  gid: number;
  /** Milliseconds since 1970. */
  mtime_ms: number;
  /** Target of a symbolic link. */
  target?: string;
}

/** Response of `PUT /v1/sessions/{id}/files/{path}`. */
export interface EntryAnswer {
  entry: Entry;
}

/** Response of `GET /v1/sessions/{id}/files/{path}`. */
export interface EntryList {
  entries: Entry[];
  next: Next;
}

/** Variables by name. */
export type Environment = Record<string, string>;

/**
 * The values of `ErrorCode`. `INVALID`: the message names the field or header; 400, also 414, 417, 431, 505;
 * `UNAUTHENTICATED`: the API key is missing, unknown or expired; 401; `DENIED`: the key's scope is too low, or
 * file permissions in the sandbox deny it; 403; `POLICY`: the session's policy does not allow a program of the
 * command; 403; `NOT_FOUND`: does not exist, or is not visible to this key; 404; `METHOD_NOT_ALLOWED`: the path
 * does not support the method; `Allow` lists those it does; 405; `CONFLICT`: not possible in the current state,
 * or the version changed; 409; `GONE`: the session was deleted; 410; `PRECONDITION_FAILED`: `If-Match` or
 * `If-None-Match` failed; 412; `TOO_LARGE`: the body, or the resulting file, is too large; 413;
 * `UNSUPPORTED_MEDIA_TYPE`: the `Content-Type` is not supported; 415; `RANGE`: the range is outside the file;
 * 416; `OUTPUT_GONE`: output at this offset was discarded or does not exist yet; 416; `MISDIRECTED`: the `Host`
 * header does not name this server; 421; `UPGRADE_REQUIRED`: the route needs a WebSocket; 426; `LIMIT`: a quota,
 * or a policy's limit per user; 429; `LIMIT_PIDS`: the sandbox has reached its process limit; 429;
 * `LIMIT_MEMORY`: the sandbox is out of memory; 429; `LIMIT_OUTPUT`: the output of running commands takes all
 * the memory there is for it, half of `memory_bytes`; retry when commands have ended, or with a smaller
 * `max_output_bytes`; 429; `RATE_LIMITED`: too many requests of the key (settings `rate`, `concurrent`), or its
 * tenant has all it may have of the service; the message names the setting; 429; `INTERNAL`: internal error; the
 * log has the details under the request id; 500; `CALLER_GONE`: the client disconnected before the command
 * ended; the command keeps running; 499, in the log only; `UNAVAILABLE`: full, busy or failing; retry later;
 * 503; `OVERLOADED`: too many requests in flight; 503; `TIMEOUT`: the sandbox did not respond in time; 504;
 * `LIMIT_DISK`: no space left on the disk; 507
 */
export type ErrorCode =
  | "INVALID"
  | "UNAUTHENTICATED"
  | "DENIED"
  | "POLICY"
  | "NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "CONFLICT"
  | "GONE"
  | "PRECONDITION_FAILED"
  | "TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "RANGE"
  | "OUTPUT_GONE"
  | "MISDIRECTED"
  | "UPGRADE_REQUIRED"
  | "LIMIT"
  | "LIMIT_PIDS"
  | "LIMIT_MEMORY"
  | "LIMIT_OUTPUT"
  | "RATE_LIMITED"
  | "INTERNAL"
  | "CALLER_GONE"
  | "UNAVAILABLE"
  | "OVERLOADED"
  | "TIMEOUT"
  | "LIMIT_DISK";

/** Response of `GET /v1/events`. */
export interface Event {
  /** Increases and is never reused. */
  id: number;
  /**
   * What happened: `create`, `start`, `ready`, `sleep` (its hibernation began), `sealed` (it is hibernated),
   * `gone`, `change`, `extend`, `snapshot`, `fork`, `rollback`, `destroy`, `limit_hit`, `key_add` and others.
   * More may be added.
   */
  kind: string;
  session: string | null;
  /** Key of the session at that time. */
  key: string | null;
  /** User of the session. */
  user: string | null;
  /** null: of the service itself. */
  tenant: string | null;
  /** The command that the event is about, as with `limit_hit`, whose `data.limits` names the limits. */
  exec: string | null;
  /** The actor: the name of a key, a user, or `lodge` itself. */
  actor: string | null;
  /** Version of the session at that time. */
  version: number | null;
  at: Time;
  cause: Cause | null;
  data: Record<string, unknown>;
}

/** Response of `GET /v1/events`. */
export interface EventList {
  events: Event[];
  /**
   * Value for `since` to get later events. Always present. With the newest first: value for `before` to get
   * older ones, or null if there are none.
   */
  next: number | null;
}

/** The record of a command, kept for 7 days. */
export interface Exec {
  exec_id: string;
  session: string;
  /**
   * The command as requested: text or arguments. Only its first 4,096 bytes are kept: what is longer ends with
   * `…`. The command itself runs whole.
   */
  command: string | string[];
  state: ExecState;
  background: boolean;
  /** null if a signal ended it, or the result is unknown. */
  exit_code: number | null;
  /** Number of the signal that ended it. */
  signal: number | null;
  timed_out: boolean;
  oom_killed: boolean;
  truncated: boolean;
  /** Why lodge ended the command, or why its result is unknown. null if it ended by itself, or is running. */
  reason: string | null;
  /** Limits it exceeded. */
  limits: ("TIMEOUT" | "LIMIT_MEMORY" | "LIMIT_PIDS" | "LIMIT_OUTPUT" | "LIMIT_DISK" | "LIMIT_FILE")[];
  stdout_bytes: number;
  stderr_bytes: number;
  started_at: Time;
  /** null while it is running. */
  ended_at: number | null;
  duration_ms: number | null;
  usage: ExecUsage;
}

/** Result and output of a command. */
export type ExecAnswer = ExecResult & {
  stdout: string;
  stderr: string;
};

/** Response of `POST /v1/sessions/{id}/exec`. */
export interface ExecId {
  exec_id: string;
}

/** Response of `GET /v1/sessions/{id}/execs`. */
export interface ExecList {
  execs: Exec[];
  next: Next;
}

/** Response of `GET /v1/sessions/{id}/execs/{exec}/output`. */
export interface ExecOutput {
  stdout: string;
  stderr: string;
  /** The index. */
  stdout_offset: number;
  /** The index. */
  stderr_offset: number;
  /** The command has ended and all output was returned. */
  done: boolean;
}

/** Response of `POST /v1/sessions/{id}/exec`. */
export interface ExecPiece {
  /** Offset of the first byte in the stream. A gap means that output was discarded. */
  offset: number;
  /** Text or base64, depending on `encoding`. */
  data: string;
}

/** Response of `GET /v1/sessions/{id}/execs/{exec}`. */
export interface ExecRecord {
  exec: Exec;
}

/** Either `command` or `argv`. At most 192 KiB in total. */
export interface ExecRequest {
  /** Script for bash. */
  command?: string;
  /** A program and its arguments, without a shell. */
  argv?: string[];
  /** Working directory. Default: the session's. */
  cwd?: string;
  env?: Environment;
  /** Standard input. It is closed afterwards, unless `stdin_open` is set. */
  stdin?: string;
  /**
   * Keep standard input open for `/stdin`. Default: true in the background or with a terminal if `stdin` is not
   * given, otherwise false.
   */
  stdin_open?: boolean;
  /** Kill the command and everything it started after this time. 0: never. */
  timeout_ms?: number;
  /** Return 202 at once and keep the command running. */
  background?: boolean;
  /** Allocate a terminal. All output arrives as stdout. */
  pty?: {
    rows?: number;
    cols?: number;
  };
  /** User in the sandbox. Default: the session's. */
  user?: string;
  /**
   * A repeated request with this key in this session within 7 days returns the same command, which runs once. If
   * the first request failed because the command could not be started, or its sandbox did not respond, a
   * repeated one returns 409 with the reason. With `stdin`, only if you wait for the command.
   */
  idempotency_key?: string;
  /**
   * Bytes to keep of each stream. More than the session's `output_bytes` returns 400; if the output of running
   * commands takes the memory for it, 429 (`LIMIT_OUTPUT`). Default: 1 MiB or the session's `output_bytes`, less
   * when little memory is left. The oldest are discarded first. A response has the last 8 MiB of each stream;
   * everything kept can be read by offset.
   */
  max_output_bytes?: number;
  /** Encoding of output: text, with U+FFFD for invalid bytes, or base64. */
  encoding?: "utf-8" | "base64";
}

/** Result of a command. */
export interface ExecResult {
  exec_id: string;
  /** null if a signal ended it, or the result is unknown. */
  exit_code: number | null;
  /** Number of the signal that ended it. */
  signal: number | null;
  /** Bytes written, including discarded ones. */
  stdout_bytes: number;
  stderr_bytes: number;
  /** Part of the output is missing here. */
  truncated: boolean;
  timed_out: boolean;
  /** The kernel killed a process because memory ran out. */
  oom_killed: boolean;
  /** The sandbox ended before the result was known. */
  lost: boolean;
  /** Why lodge ended the command, or why its result is unknown. null if it ended by itself. */
  reason: string | null;
  /** Limits it exceeded. */
  limits: ("TIMEOUT" | "LIMIT_MEMORY" | "LIMIT_PIDS" | "LIMIT_OUTPUT" | "LIMIT_DISK" | "LIMIT_FILE")[];
  duration_ms: number;
  usage: ExecUsage;
}

/** Response of `POST /v1/sessions/{id}/exec`. */
export interface ExecStarted {
  exec_id: string;
  state: ExecState;
}

/**
 * The values of `ExecState`. `killed`: by a signal, a timeout, or the end of its sandbox. `lost`: the result is
 * unknown.
 */
export type ExecState = "running" | "exited" | "killed" | "lost";

/** Part of `Exec`. */
export interface ExecUsage {
  cpu_ms: number;
  max_rss_bytes: number;
}

/** Request of `POST /v1/sessions/{id}/extend`. */
export interface ExtendRequest {
  /** Time to add to `expires_at`. Default: 20 minutes. */
  ms?: number;
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

/** Response of `POST /v1/sessions/{id}/extend`. */
export interface Extended {
  session: Session;
  /** By how much `expires_at` moved: less than requested at the maximum lifetime. */
  extended_by_ms: number;
  /** `expires_at` can move no further. */
  at_maximum: boolean;
  /**
   * Why it moved by less than requested, with the maximum lifetime and in parentheses its bound: `lifetime_max`,
   * the setting of the service, or `max_lifetime_ms` of the session. Null: it moved as requested. `expires_at`
   * of the session is the end in each case.
   */
  reason: string | null;
}

/** Request of `POST /v1/sessions/{id}/fork`. */
export interface ForkRequest {
  /** Number of sessions; all are created or none. */
  count?: number;
  /** Key of the new session. Only with `count` 1. */
  key?: string;
  /** One of its snapshots. Default: its current files. */
  snapshot?: string;
}

/** Response of `POST /v1/sessions/{id}/fork`. */
export interface Forks {
  sessions: Session[];
}

/** Error response `Unavailable`. */
export interface FullProblem {
  error: {
    code: ErrorCode;
    /** A message for people. */
    message: string;
    /** Whether the same request may succeed later. */
    retryable: boolean;
    details: {
      active?: number;
      max?: number;
      waiting?: number;
      /** Position in the queue. */
      position?: number;
      /** Idle sandboxes that could be hibernated. */
      idle?: number;
      retry_after_ms?: number;
    };
  };
}

/** Error response `Gone`. */
export interface GoneProblem {
  error: {
    code: ErrorCode;
    /** A message for people. */
    message: string;
    /** Whether the same request may succeed later. */
    retryable: boolean;
    details: {
      session?: string;
      /** The sandbox that ended, if one was named and its session goes on. */
      sandbox?: string;
      cause?: Cause | null;
    };
  };
}

/** Response of `GET /health`. */
export interface Health {
  /**
   * `degraded`: the keeper is not running, and the next call that needs it starts it; or it has not answered for
   * seconds (`parts.keeper.error` says since when); or `disk.state` is not `ok`. `starting`: see `starting`.
   */
  status: "starting" | "ok" | "degraded" | "failing";
  version: string;
  parts: {
    store: Part;
    keeper: {
      ok: boolean;
      /** What is wrong, if `ok` is false. */
      error?: string;
    };
    room: {
      ok: boolean;
      /** Running sandboxes. */
      active: number;
      /** 0: unlimited. */
      max: number;
      /** Idle sandboxes that could be hibernated. */
      idle: number;
      /** Requests in the queue. */
      waiting: number;
    };
  };
  /** The file system of the data directory. */
  disk: {
    /**
     * `full`: new sessions, snapshots, forks and templates are refused with 507; everything else works, as far
     * as there is space. `failed`: the volume with the files of sandboxes cannot be written to; lodge mounts it
     * again once there is space.
     */
    state: "ok" | "full" | "failed";
    /** What is wrong and what to do. null: nothing. */
    reason: string | null;
    /**
     * Of the file system with the data directory. null, as the other numbers: the request has no key with scope
     * `admin`.
     */
    free_bytes: number | null;
    total_bytes: number | null;
    /** With less than this free, the state is `full` (`disk_reserve`). */
    reserve_bytes: number | null;
    /** What sandboxes can still write before the state is `full`. */
    room_bytes: number | null;
    /** Size of the volume with the files of sandboxes. null: there is none, or no key with scope `admin`. */
    volume_bytes: number | null;
    volume_free_bytes: number | null;
    /** All space of the volume is allocated, because the disk is nearly full. */
    volume_reserved: boolean;
  };
  /** Progress of the start. null: lodged has started. */
  starting: HealthStarting | null;
  last_error: {
    at: Time;
    code: ErrorCode;
    /** Number of errors since the start. */
    count: number;
    /**
     * What failed. Only for a key with scope `admin`, or if lodge-keeper failed: other messages may name
     * sessions of a tenant. null: not shown.
     */
    message: string | null;
  } | null;
  /** Why the service is not ready. */
  reason: string | null;
  /** Requests without a key are accepted. */
  insecure_no_auth: boolean;
  uptime_seconds: number;
  /** Identifies this process; changes with each start. */
  worker_id: string;
  pool: {
    /** Sandboxes ready in the warm pool. */
    available: number;
    /** Running sandboxes. */
    allocated: number;
    total: number;
    /** Maximum number of running sandboxes. 0: unlimited. */
    max_capacity: number;
  };
  active_sessions: number;
  /** Always false: lodge does not use Redis. */
  redis_connected: false;
  /** Limits and settings of thread sessions. */
  config: {
    memory_bytes: number;
    /** Thousandths of a core. */
    cpu_milli: number;
    max_processes: number;
    max_file_bytes: number;
    /** An upload that would make more files is refused. */
    max_files: number;
    /** Commands may create more files, up to `max_workspace_bytes`. */
    max_files_applies_to: "uploads";
    max_workspace_bytes: number;
    network: "none";
    user: string;
    workspace_dir: string;
    idle_timeout_ms: number;
    /** Minimum number of sandboxes to keep ready. */
    pool_min: number;
    /** Number of sandboxes to keep ready. */
    pool_target: number;
    /** Maximum number of running sandboxes. 0: unlimited. */
    pool_max: number;
    /** Which of these limits this host does not enforce, and why. */
    limits_not_enforced: LimitNotEnforced[];
  };
  /** Which limits of sessions this host does not enforce, and why. null: not known until the service has started. */
  limits_not_enforced: LimitsNotEnforced | null;
  /**
   * Maximum of each limit that a request may set (settings `limits_max_*`). Defaults above it are lowered.
   * Without a member, only the bounds of the limit hold.
   */
  limits_max: Limits;
  /** How the kernel enforces which programs a policy allows. */
  policy_enforcement: "landlock" | "none";
}

/** Request of `POST /v1/sessions/{id}/pause`. */
export interface IfVersion {
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

/** Response of `GET /`. */
export interface Index {
  name: string;
  version: string;
  docs: string;
  openapi: string;
  health: string;
}

/** Part of `KeyAnswer`. */
export interface Key {
  id: string;
  tenant: string;
  /** `admin`, `tenant`, `session`, or `session:ID` for one session only. */
  scope: string;
  /** A token for this end user only. */
  user: string | null;
  name: string | null;
  created_at: Time;
  /** null: does not expire. */
  expires_at: number | null;
}

/** Response of `GET /v1/keys/{key}`. */
export interface KeyAnswer {
  key: Key;
}

/** Part of `TeamList`. */
export interface Team {
  /** The id of the team. */
  team: string;
  /** The number of members. */
  members: number;
  /** The number of projects that it shares. */
  projects: number;
  /** The role of the user whose teams were requested, else null. */
  role: "OWNER" | "ADMIN" | "MEMBER" | "VIEWER" | null;
}

/** Response of `GET /v1/teams`. */
export interface TeamList {
  teams: Team[];
  next: Next;
}

/** Response of `GET /v1/keys`. */
export interface KeyList {
  keys: Key[];
  next: Next;
}

/** Response of `POST /v1/keys`. */
export interface KeyMade {
  key: Key;
  /** The key itself. It is shown only once and not stored. */
  secret: string;
}

/** Request of `POST /v1/keys`. */
export interface KeyRequest {
  /** Default: the tenant of the calling key. Another one requires scope `admin`. */
  tenant?: string;
  /** Creating `admin` and `tenant` keys requires scope `admin`. */
  scope?: string;
  /** A token for this end user only. Requires a session scope. */
  user?: string;
  /** A label. */
  name?: string;
  /** Expiry in milliseconds since 1970, in the future. Default: never. */
  expires_at?: number;
  /** Expiry relative to now. Only one of the two. */
  expires_in_ms?: number;
}

/**
 * For a session: all limits in force, from the session, its template or the defaults. For a template: those it
 * sets.
 */
export interface Limits {
  /** Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB. */
  memory_bytes?: number;
  /** Disk space of the session's files. Default: 1 GiB. */
  disk_bytes?: number;
  /** Number of files and directories. Not enforced for files on disk. Default: 200,000. */
  inodes?: number;
  /** Maximum size of one file. Default: 1 GiB. */
  file_bytes?: number;
  /**
   * Maximum output kept per stream and command: at most a quarter of `memory_bytes`. 1 MiB is kept unless a
   * command or the session requests another size. Default: 16 MiB, or a quarter of `memory_bytes` if that is
   * less.
   */
  output_bytes?: number;
  /** CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default. */
  cpus?: number;
  /** Relative CPU share under contention. Default: 100. */
  cpu_weight?: number;
  /** Processes and threads. Default: 256. */
  pids?: number;
  /** Open files per process. Default: 1024. */
  open_files?: number;
}

/** Part of `Health`. */
export interface LimitNotEnforced {
  /** Its name in the object beside this list. */
  limit: string;
  enforced: false;
  reason: string;
}

/**
 * Which of the limits this host does not enforce, and why. `inodes` never is for files on disk. A request that
 * sets such a limit is refused with 409.
 */
export type LimitsNotEnforced = LimitNotEnforced[];

/**
 * Limits that are not given come from the template, then from the defaults. A value out of range, or above the
 * session's policy, is rejected.
 */
export interface LimitsWanted {
  /** Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB. */
  memory_bytes?: number;
  /** Disk space of the session's files. Default: 1 GiB. */
  disk_bytes?: number;
  /** Number of files and directories. Not enforced for files on disk. Default: 200,000. */
  inodes?: number;
  /** Maximum size of one file. Default: 1 GiB. */
  file_bytes?: number;
  /**
   * Output kept per stream and command. More than a quarter of `memory_bytes` returns 400. Commands get less
   * when the output of others takes the memory for it. Default: 1 MiB.
   */
  output_bytes?: number;
  /** CPU limit in cores, such as 0.5; at least 0.01. 0: a fair share, the default. */
  cpus?: number;
  /** Relative CPU share under contention. Default: 100. */
  cpu_weight?: number;
  /** Processes and threads. Default: 256. */
  pids?: number;
  /** Open files per process. Default: 1024. */
  open_files?: number;
  /** `cpus` in thousandths. Only one of the two. */
  cpu_milli?: number;
}

/** Any JSON object to store with the session, at most 65,536 bytes. */
export type Metadata = Record<string, unknown>;

/** Value of `after` for the next page. null: this is the last one. */
export type Next = number | null;

/** An empty object. */
export type Nothing = Record<string, never>;

/**
 * The values of `Outcome`. `created`: it is new. `reused`: it was running. `resumed`: it was hibernated and has
 * its files. `replaced`: its files were lost, and it started anew.
 */
export type Outcome = "created" | "reused" | "resumed" | "replaced";

/** Error response `OutputGone`. */
export interface OutputGoneProblem {
  error: {
    code: ErrorCode;
    /** A message for people. */
    message: string;
    /** Whether the same request may succeed later. */
    retryable: boolean;
    details: {
      /** First offset that is kept. */
      stdout_offset: number;
      stderr_offset: number;
    };
  };
}

/** Part of `Health`. */
export interface Part {
  ok: boolean;
}

/** Part of `PolicyAnswer`. null: not set. */
export interface Policy {
  name: string;
  tenant: string;
  /** Maximum number of running sandboxes per user. */
  max_active_per_user: number | null;
  /** What to do with one more. */
  on_exceed: "refuse" | "replace";
  /** Maximum. */
  idle_timeout_ms: number | null;
  /** Maximum. */
  max_lifetime_ms: number | null;
  network: "none" | null;
  /** Maximum of each limit. */
  limits: Limits;
  limits_not_enforced: LimitsNotEnforced;
  commands: PolicyCommands | null;
  created_at: Time;
  /** Number of sessions that use it. */
  sessions: number;
}

/** Response of `POST /v1/policies`. */
export interface PolicyAnswer {
  policy: Policy;
}

/** Response of `GET /v1/policies`. */
export interface PolicyList {
  policies: Policy[];
  next: Next;
}

/** Fields that are not given stay unchanged; null removes them. `limits` and `commands` are replaced as a whole. */
export interface PolicyPatch {
  /**
   * Maximum number of running sandboxes per user. Sessions then require a `user`. Checked when a session is
   * created or resumed.
   */
  max_active_per_user?: number | null;
  /**
   * What to do with one more: refuse it (429), or hibernate the least recently used one of the user. Default:
   * `refuse`.
   */
  on_exceed?: "refuse" | "replace" | null;
  /** Maximum, and the default for sessions that set none. */
  idle_timeout_ms?: number | null;
  /** Maximum, and the default for sessions that set none. */
  max_lifetime_ms?: number | null;
  /** Sandboxes have no network. */
  network?: "none" | null;
  limits?: LimitsWanted | null;
  commands?: PolicyCommands | null;
}

/** Request of `POST /v1/policies`. */
export interface PolicyRequest {
  /** Unique per tenant. No slashes. */
  name: string;
  /** Default: the tenant of the key. */
  tenant?: string;
  /**
   * Maximum number of running sandboxes per user. Sessions then require a `user`. Checked when a session is
   * created or resumed.
   */
  max_active_per_user?: number;
  /**
   * What to do with one more: refuse it (429), or hibernate the least recently used one of the user. Default:
   * `refuse`.
   */
  on_exceed?: "refuse" | "replace";
  /** Maximum, and the default for sessions that set none. */
  idle_timeout_ms?: number;
  /** Maximum, and the default for sessions that set none. */
  max_lifetime_ms?: number;
  /** Sandboxes have no network. */
  network?: "none";
  limits?: LimitsWanted;
  commands?: PolicyCommands;
}

/** Response of `POST /v1/sessions/{id}/probe`. */
export interface ProbeAnswer {
  /** `expired`: the sandbox is dead, and the record was updated. */
  status: "connected" | "expired" | "no_sandbox";
  /** false: it did not respond in time. Nothing was changed; check again later. */
  verified: boolean;
  /** When the lifetime of its sandbox is over. */
  expires_at: number | null;
  /** When to check again. */
  retry_after_ms: number | null;
  cause: Cause | null;
}

/** Request of `POST /v1/sessions/{id}/probe`. */
export interface ProbeRequest {
  /** How long to wait for a response. Default: 15 s. */
  deadline_ms?: number;
}

/** Error response, such as of `GET /health`. */
export interface Problem {
  error: {
    code: ErrorCode;
    /** A message for people. */
    message: string;
    /** Whether the same request may succeed later. */
    retryable: boolean;
    /**
     * More information: for 403 `POLICY` (`policy`, `word`, `offset`, `line`, `column`, `reason`), 409 and 410
     * of a session, 416 of output, 429 of a sandbox, and 503 if the server is full.
     */
    details: Record<string, unknown>;
  };
}

/** Response of `GET /v1/sessions/{id}/progress`. */
export interface Progress {
  status: "pending" | "running" | "ready" | "error";
  /** The stage as a code. */
  stage: string;
  /** The stage as a sentence. */
  message: string;
  step: number;
  total_steps: number;
  /** The error message, with stage `error`. */
  error: string | null;
  updated: Time;
  updated_at: Time;
}

/** Part of `QuotaAnswer`. 0: unlimited. */
export interface Quota {
  /** Running sandboxes. */
  sandboxes: number;
  /** Sum of the memory limits of running sandboxes. */
  memory_bytes: number;
  /** Sum of the disk limits of all sessions. */
  disk_bytes: number;
  /** Total CPU time. */
  cpu_ms: number;
}

/** Response of `GET /v1/users/{user}/quota`. */
export interface QuotaAnswer {
  quota: Quota;
  quota_not_enforced: QuotaNotEnforced;
  usage: Usage;
}

/** Quotas that do not hold, because this host does not enforce the limits of sandboxes that they add up. */
export type QuotaNotEnforced = LimitNotEnforced[];

/** The whole quota. Fields that are not given are unlimited. */
export interface QuotaRequest {
  /** Running sandboxes. */
  sandboxes?: number;
  /** Sum of the memory limits of running sandboxes. */
  memory_bytes?: number;
  /** Sum of the disk limits of all sessions. */
  disk_bytes?: number;
  /** Total CPU time. */
  cpu_ms?: number;
}

/** Response of `GET /ready`. */
export interface Ready {
  ready: boolean;
  /** `disk.state` of `/health`. */
  disk: "ok" | "full" | "failed";
}

/** Request of `POST /v1/sessions/{id}/execs/{exec}/resize`. */
export interface ResizeRequest {
  rows: number;
  cols: number;
}

/** Request of `POST /v1/sessions/{id}/rollback`. */
export interface RollbackRequest {
  /** One of its snapshots. */
  snapshot: string;
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

/** Part of `ConflictProblem`. */
export interface Session {
  /** Assigned by lodge. */
  id: string;
  /** The tenant it belongs to. */
  tenant: string;
  /** Your name for it. */
  key: string | null;
  /** The end user it belongs to. */
  user: string | null;
  /** The thread it belongs to. */
  thread: string | null;
  /** A label in the record. */
  project: string | null;
  /** A label in the record. */
  fragment: string | null;
  /** The template it started from. */
  template: string;
  /** The policy that applies. */
  policy: string | null;
  state: SessionState;
  /** `live`: it has a sandbox. `resumable`: it has files only. `none`: it has neither. */
  runtime: "none" | "resumable" | "live";
  /** Its processes are frozen. The next use continues them. */
  paused: boolean;
  /** The running sandbox. */
  sandbox: string | null;
  /** Its newest snapshot. */
  snapshot: string | null;
  /** Increases with every change of the record; for `if_version`. */
  version: number;
  /** Increases with every hibernation, snapshot and rollback. */
  generation: number;
  /** Number of sandboxes it has had. */
  incarnation: number;
  created_at: Time;
  /** When the current or last sandbox was ready. */
  started_at: number | null;
  /** Time of the last use. */
  last_activity_at: number | null;
  /** Idle time before it hibernates or is deleted. */
  idle_timeout_ms: number;
  /** Time from the start of a sandbox to its first expiry. */
  lifetime_ms: number;
  /** The most a sandbox can be extended to. */
  max_lifetime_ms: number;
  /** How long it is kept once it is hibernated. null: for ever. */
  delete_after_ms: number | null;
  /** Idle deadline. null unless active. */
  hibernate_at: number | null;
  /**
   * End of the sandbox's lifetime. Unless a command runs, lodge ends it up to ten seconds earlier. null: no
   * sandbox.
   */
  expires_at: number | null;
  /** Since when it is hibernated. null unless hibernated. */
  hibernated_at: number | null;
  /** When it is deleted unless it is used. null: never, or not hibernated. */
  delete_at: number | null;
  on_idle: End;
  on_expire: End;
  cause: Cause | null;
  last_death: Death | null;
  limits: Limits;
  limits_not_enforced: LimitsNotEnforced;
  metadata: Metadata;
}

/** Response of `GET /v1/sessions/{id}`. */
export interface SessionAnswer {
  session: Session;
}

/** Response of `PATCH /v1/sessions/{id}`. */
export interface SessionChanged {
  session: Session;
  /** Other fields that had to change with it: a `max_lifetime_ms` below `lifetime_ms` also lowers that. */
  adjusted: string[];
}

/** Response of `GET /v1/sessions`. */
export interface SessionList {
  sessions: Session[];
  next: Next;
}

/** Part of `SessionRows`. */
export interface SessionRow {
  id: string;
  tenant: string;
  key: string | null;
  user: string | null;
  project: string | null;
  template: string;
  state: SessionState;
  paused: boolean;
  created_at: Time;
  /** Last activity. */
  active_at: number | null;
  /** What lodge will do by itself next. */
  next: {
    what: "hibernate" | "destroy";
    at: Time;
  } | null;
  cause: Cause | null;
  /** What it uses. null: not known, because it could not be measured. */
  usage: {
    /** Bytes; 0 without a sandbox. */
    memory: number | null;
    memory_limit: number;
    /** 100 is one core. */
    cpu_pct: number | null;
    /**
     * Bytes of its sandbox, or of its sealed files. What is written counts at once; deleted files count up to 30
     * seconds longer, also for the limit.
     */
    disk: number | null;
    disk_limit: number;
    /** Processes and threads, as the limit counts them: without those of lodge itself. */
    pids: number | null;
    /** When it was measured; null without a sandbox. */
    at: number | null;
    /** Whether this host enforces memory and disk limits. */
    enforced: boolean;
  };
}

/** Response of `GET /v1/sessions`. */
export interface SessionRows {
  sessions: SessionRow[];
  /** Sessions that match. */
  total: number;
  /** Sessions that match the other filters, by state. */
  counts: Record<string, number>;
  /** Bytes of all sessions that match; null if these are more than 5000. */
  totals: {
    memory: number;
    disk: number;
  } | null;
  next: Next;
}

/**
 * Fields that are not given stay unchanged. Limits apply at once, including to running commands. Metadata is
 * replaced as a whole.
 */
export interface SessionPatch {
  /** As in `POST /v1/sessions`. */
  idle_timeout_ms?: number;
  /**
   * As in `POST /v1/sessions`. The running sandbox then expires this long after its start, whatever it was
   * extended to. More than `max_lifetime_ms` returns 400.
   */
  lifetime_ms?: number;
  /** As in `POST /v1/sessions`. Also lowers `lifetime_ms` if that is more. */
  max_lifetime_ms?: number;
  /** As in `POST /v1/sessions`. 0: never. */
  delete_after_ms?: number;
  on_idle?: End;
  on_expire?: End;
  limits?: LimitsWanted;
  metadata?: Metadata;
  /** true: it stays hibernated until it is unarchived; calls that would resume it return 409. */
  archived?: boolean;
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

/**
 * The values of `SessionState`. `none`: it never had a sandbox, or lost it with its files. `destroying` does not
 * appear in lists.
 */
export type SessionState =
  | "none"
  | "provisioning"
  | "active"
  | "hibernating"
  | "hibernated"
  | "restoring"
  | "archived"
  | "failed"
  | "destroying";

/** Request of `POST /v1/sessions/{id}/execs/{exec}/signal`. */
export interface SignalRequest {
  /** 15, "TERM" or "SIGTERM". */
  signal: number | string;
}

/** Part of `SnapshotAnswer`. */
export interface Snapshot {
  id: string;
  /** Unique within the session. */
  name: string | null;
  /** null: it was imported. */
  session: string | null;
  /** Current key of the session. */
  session_key: string | null;
  /** false: the session was deleted, or the snapshot was imported. */
  session_exists: boolean;
  generation: number;
  /**
   * Size of the differences from its parent. Null for a moment after it is taken: its files are counted while
   * they are written to disk.
   */
  size_bytes: number | null;
  created_at: Time;
}

/** Response of `POST /v1/sessions/{id}/snapshots`. */
export interface SnapshotAnswer {
  snapshot: Snapshot;
}

/** Response of `GET /v1/sessions/{id}/snapshots`. */
export interface SnapshotList {
  snapshots: Snapshot[];
  next: Next;
}

/** Request of `POST /v1/sessions/{id}/snapshots`. */
export interface SnapshotRequest {
  /** Unique within the session. */
  name?: string;
  /** false: stop the sandbox and resume it afterwards, instead of freezing it for a moment. */
  live?: boolean;
}

/** Response of `GET /v1/sessions/{id}/stats`. */
export interface Stats {
  /** null: not available on this kernel. */
  stats: {
    memory_bytes: number;
    memory_peak_bytes: number | null;
    /**
     * Memory of the output that lodge keeps of running commands, which `memory_bytes` does not count. At most
     * half of the limit `memory_bytes`.
     */
    output_memory_bytes: number;
    /** Processes killed because memory ran out. */
    oom_kills: number;
    /** CPU time since the sandbox started. */
    cpu_us: number;
    /** Processes and threads, as the limit counts them: without those of lodge itself. */
    pids: number;
    pids_peak: number | null;
    /** Number of refused new processes. */
    pids_denied: number;
    /** Read from block devices since the sandbox started. */
    io_read_bytes: number | null;
    io_write_bytes: number | null;
    /**
     * Bytes of its files, as the limit counts them. What is written counts at once; deleted files count up to 30
     * seconds longer, also for the limit. null: not known yet.
     */
    disk_bytes: number | null;
    /** Also in the variable `LODGE_DISK_BYTES` of commands. null: this host does not enforce it. */
    disk_limit_bytes: number | null;
    disk_full: boolean;
  };
}

/** Part of `TemplateAnswer`. */
export interface Template {
  name: string;
  /** true for `host` and `empty`, which cannot be changed. */
  builtin: boolean;
  /** `root`: its sandboxes have a root user of their own. */
  class: "user" | "root";
  /** The user in the sandbox that runs commands. */
  run_as: string | null;
  /** The working directory of commands. null: the home of the user. */
  workdir: string | null;
  env: Environment;
  /** Limits it sets; the others have their defaults. */
  limits: Limits;
  limits_not_enforced: LimitsNotEnforced;
  /** Name of the policy for sessions that name none, looked up in their own tenant. */
  policy: string | null;
  /** null if this service did not create it. */
  created_at: number | null;
  /** Origin. null if unknown. */
  from: {
    /** `tar`, `oci` (an image of any format) or `snapshot`. */
    kind: string;
    /** The snapshot it was created from. */
    snapshot?: string;
  } | null;
  /** Unpacked size, or the size of the snapshot. null if unknown. */
  size_bytes: number | null;
  /** Number of sessions that use it. */
  sessions: number;
  /** Why the template cannot be used; other fields but name and sessions are then meaningless. */
  problem?: string;
}

/** Response of `POST /v1/templates`. */
export interface TemplateAnswer {
  template: Template;
}

/** Response of `GET /v1/templates`. */
export interface TemplateList {
  templates: Template[];
}

/** Response of `POST /v1/templates/{name}`. */
export interface TemplateMade {
  template: Template;
  /** The image declares root as its user; commands do not run as root. See `class`. */
  wants_root?: boolean;
}

/**
 * Fields that are not given stay unchanged. Given fields are replaced as a whole, including `env` and `limits`;
 * null removes them.
 */
export interface TemplatePatch {
  /** The user in the sandbox that runs commands: a name, a number or `UID:GID`. 0 requires class `root`. */
  run_as?: string | null;
  /** The working directory of commands, an absolute path. */
  workdir?: string | null;
  env?: Environment | null;
  limits?: LimitsWanted | null;
  /** `root`: sandboxes have a root user of their own, without privileges outside. */
  class?: "user" | "root" | null;
  /** Name of a policy. The tenant of the key must have it; otherwise the call returns 404. */
  policy?: string | null;
}

/** Response of `DELETE /v1/templates/{name}`. */
export interface TemplateRemoved {
  /** Name of the deleted template. */
  removed: string;
}

/**
 * Settings that are not given come from the template of the snapshot's session. `env` and `limits` are merged
 * with it.
 */
export interface TemplateRequest {
  /** `a-z 0-9 . _ -`, starting with a letter or digit. */
  name: string;
  /** The `id` of a snapshot. */
  snapshot: string;
  /** Tenant of the snapshot. Default: the tenant of the key. */
  tenant?: string;
  /** The user in the sandbox that runs commands: a name, a number or `UID:GID`. 0 requires class `root`. */
  run_as?: string;
  /** The working directory of commands, an absolute path. */
  workdir?: string;
  env?: Environment;
  limits?: LimitsWanted;
  /** `root`: sandboxes have a root user of their own, without privileges outside. */
  class?: "user" | "root";
  /** Name of a policy. The tenant of the key must have it; otherwise the call returns 404. */
  policy?: string;
}

/** Milliseconds since 1970, UTC. */
export type Time = number;

/** Response of `DELETE /v1/sessions/{id}`. */
export interface Tombstone {
  /** Record of a deleted session, kept for 7 days. */
  tombstone: {
    session: string;
    user: string | null;
    created_at: Time;
    cause: Cause | null;
  };
}

/** The command has ended. */
export interface TtyExit {
  exit: {
    /** null if a signal ended it, or the result is unknown. */
    exit_code: number | null;
    /** Number of the signal that ended it. */
    signal: number | null;
  };
}

/** Position of the next byte in the output. */
export interface TtyPlace {
  /** Only in the first message. */
  exec_id?: string;
  offset: number;
}

/** Sent by the client when its window size changes. */
export interface TtyResize {
  resize: {
    /** Columns. */
    cols: number;
    /** Rows. */
    rows: number;
  };
}

/** Part of `QuotaAnswer`. */
export interface Usage {
  sessions: number;
  active: number;
  memory_bytes: number;
  disk_bytes: number;
  cpu_ms: number;
}

/** Response of `GET /v1/users`. */
export interface UserList {
  users: ({
    id: string;
    name: string | null;
    email: string | null;
    /** Running sandboxes. */
    running: number;
    sessions: number;
    /** Bytes that the sandboxes use now. */
    memory: number;
    /** Bytes of sandboxes, sealed files and snapshots; what several share counts once. */
    disk: number;
    /** CPU time of sandboxes that run now or ended within the last 24 hours. */
    cpu_ms_24h: number;
    /** Last activity. */
    active_at: number | null;
    /** Sums of limits: memory of running sandboxes, disk of all sessions. */
    reserved: {
      memory: number;
      disk: number;
    };
    quota: Quota;
    /** Quotas that are exceeded. */
    over: ("sandboxes" | "memory" | "disk" | "cpu")[];
  })[];
  /** Users that match. */
  total: number;
  /** The file system of the service, in bytes. null without scope `admin`. */
  disk: {
    total: number;
    free: number;
    /** Of the users that match. */
    users: number;
  } | null;
}

/** Request of `PATCH /v1/users/{user}`. */
export interface UserPatch {
  /** Display name. */
  name?: string | null;
  /** An address such as ada@example.com. */
  email?: string | null;
}

/** Response of `PATCH /v1/users/{user}`. */
export interface UserAnswer {
  user: {
    id: string;
    name: string | null;
    email: string | null;
    /** The user's current project. */
    project: string | null;
    fragment: string | null;
    /** Running sandboxes. */
    active: number;
    session: Session | null;
    /** null: the user was never named but has sessions. */
    created_at: number | null;
  };
  quota: Quota;
  quota_not_enforced: QuotaNotEnforced;
  usage: Usage;
}

/** Response of `GET /v1/sessions/{id}/watch`. */
export interface WatchEnd {
  code: ErrorCode;
  message: string;
}

/** Response of `POST /v1/sessions/{id}/execs/{exec}/stdin`. */
export interface Written {
  written_bytes: number;
}

/** Part of `TemplateEnvironmentAnswer`. */
export interface TemplateEnvironment {
  template: string;
  captured_at: Time;
  /** Version of template, kernel and, where applicable, host software. */
  template_version: string;
  /** Whether the record is up to date. */
  current: boolean;
  /** Working directory of commands. */
  pwd: string;
  kernel: string;
  /** Contents of os-release, with names in lower case. */
  os?: Record<string, string>;
  /** `[redacted]`: the name suggests a secret. */
  env: Record<string, string>;
  /** Versions as reported by the tools. */
  tools: Record<string, string>;
}

/** Response of `GET /v1/templates/{name}/environment`. */
export interface TemplateEnvironmentAnswer {
  environment: TemplateEnvironment;
}

/** Progress of the start. */
export interface HealthStarting {
  stage: "store" | "keeper" | "adopt" | "ready";
  message: string;
  step: number;
  total_steps: number;
  /** Error of the last failed attempt. */
  error: string | null;
  /** Number of finished attempts. */
  tries: number;
  /** Requests waiting for the start. */
  waiting: number;
}

/** Response of `POST /api/switch-project`. */
export interface ProjectsProblem {
  success: false;
  error: string;
}

/** Request of `POST /api/switch-project`. */
export interface ProjectsSwitch {
  projectId: string;
  fragmentId?: string | null;
  /**
   * The acting end user. Required with an application key; with a user token it must be that user. Created on
   * first use.
   */
  userId?: string;
}

/** Response of `POST /api/switch-project`. */
export interface ProjectsSwitched {
  success: true;
  message: string;
  result: {
    /** The sandbox. Every call that takes a session takes this id too, until the sandbox ends. */
    sandboxId: string;
    /** Its session, which stays the same when the sandbox is replaced. */
    sessionId: string;
    /** URL of a web server in the sandbox; null while ports cannot be reached from outside. */
    sandboxUrl: string | null;
    /** Why there is no URL. */
    sandboxUrlReason: string | null;
    /** Files written by this switch; 0 for a working copy. */
    restoredFiles: number;
    /** Whether there was a working copy or a fragment with files. */
    hasRestoredFiles: boolean;
    /** Fragment the files came from. null: none. */
    fragmentId: string | null;
    activeProjectId: string;
    activeFragmentId: string | null;
    /** The files of the working copy were lost; the latest fragment is used. */
    stateLost: boolean;
    /** Why they were lost. */
    cause: {
      code: string;
      text: string;
      /** ISO 8601, UTC. */
      at: string | null;
    } | null;
  };
}

/** Request of `POST /api/cleanup-sandboxes`. */
export interface ProjectsCleanup {
  /**
   * The acting end user. Required with an application key; with a user token it must be that user. Created on
   * first use.
   */
  userId?: string;
}

/** Response of `POST /api/cleanup-sandboxes`. */
export interface ProjectsCleaned {
  success: true;
  message: string;
  results: {
    /** Number of working copies of projects among them. */
    totalProjects: number;
    killed: number;
    failed: number;
    killedSandboxes: string[];
    failedSandboxes: string[];
  };
}

/** Response of `GET /api/cleanup-sandboxes`. */
export interface ProjectsSandboxes {
  userId: string;
  activeSandboxes: number;
  currentSandbox: {
    sandboxId: string;
    projectId: string | null;
    projectName: string | null;
    /** ISO 8601, UTC. */
    createdAt: string | null;
    /** ISO 8601, UTC. */
    lastUsedAt: string | null;
  } | null;
}

/** Response of `POST /api/projects`. */
export interface ProjectsProject {
  id: string;
  name: string;
  owner: string;
  team: string | null;
  /** ISO 8601, UTC. */
  createdAt: string | null;
}

/** Response of `GET /api/projects`. */
export interface ProjectsProjectList {
  projects: ProjectsProject[];
  next: Next;
}

/** Request of `POST /api/projects`. */
export interface ProjectsProjectRequest {
  /** Generated if not given. */
  id?: string;
  name: string;
  team?: string;
  /**
   * The acting end user. Required with an application key; with a user token it must be that user. Created on
   * first use.
   */
  userId?: string;
}

/** Response of `DELETE /api/projects/{project}/fragments/{fragment}`. */
export interface ProjectsFragment {
  id: string;
  projectId: string;
  title: string | null;
  /** Set if the fragment is a snapshot; it then has no files here. */
  snapshotId: string | null;
  fileCount: number;
  bytes: number;
  /** ISO 8601, UTC. */
  createdAt: string | null;
}

/** Response of `POST /api/projects/{project}/fragments`. */
export interface ProjectsFragmentAdded {
  id: string;
  projectId: string;
  title: string | null;
  /** Set if the fragment is a snapshot; it then has no files here. */
  snapshotId: string | null;
  fileCount: number;
  bytes: number;
  /** ISO 8601, UTC. */
  createdAt: string | null;
  /** Entries of the sandbox that were skipped: links, and names that are not valid UTF-8. */
  skipped: number;
}

/** Response of `GET /api/projects/{project}/fragments/{fragment}`. */
export interface ProjectsFragmentFiles {
  id: string;
  projectId: string;
  title: string | null;
  /** Set if the fragment is a snapshot; it then has no files here. */
  snapshotId: string | null;
  fileCount: number;
  bytes: number;
  /** ISO 8601, UTC. */
  createdAt: string | null;
  /**
   * Path and content: text, `__BASE64__...`, or `data:TYPE;base64,...`. Paths are relative, without `.` and
   * `..`; directories are created.
   */
  files: Record<string, string>;
}

/** Response of `GET /api/projects/{project}/fragments`. */
export interface ProjectsFragmentList {
  fragments: ProjectsFragment[];
  next: Next;
}

/** Request of `POST /api/projects/{project}/fragments`. */
export interface ProjectsFragmentRequest {
  /** Generated if not given. */
  id?: string;
  title?: string;
  /**
   * Path and content: text, `__BASE64__...`, or `data:TYPE;base64,...`. Paths are relative, without `.` and
   * `..`; directories are created.
   */
  files?: Record<string, string>;
  fromSandbox?: boolean;
  snapshotId?: string;
  /**
   * The acting end user. Required with an application key; with a user token it must be that user. Created on
   * first use.
   */
  userId?: string;
}

/** Response of `PUT /api/teams/{team}/members/{user}`. */
export interface ProjectsMember {
  team: string;
  user: string;
  /** VIEWER: view and switch. MEMBER: also save. ADMIN: also delete, and manage the team. OWNER: everything. */
  role: "OWNER" | "ADMIN" | "MEMBER" | "VIEWER";
}

/** Response of `GET /api/teams/{team}/members`. */
export interface ProjectsMemberList {
  members: ProjectsMember[];
}

/** Request of `PUT /api/teams/{team}/members/{user}`. */
export interface ProjectsMemberRequest {
  /** VIEWER: view and switch. MEMBER: also save. ADMIN: also delete, and manage the team. OWNER: everything. */
  role: "OWNER" | "ADMIN" | "MEMBER" | "VIEWER";
  /** The acting end user. An application key without it acts for the application. */
  userId?: string;
}

/**
 * Programs that commands may start. A command is checked before it starts and refused (403 `POLICY`) at the
 * first word that is not allowed. With `allow` the kernel also prevents other programs from running, if `GET
 * /health` reports it.
 */
export interface PolicyCommands {
  /** Program names or absolute paths, at most 512. Only these and shell builtins are allowed. */
  allow?: string[] | null;
  /** Programs to refuse even if `allow` lists them. Checked before the start only, not by the kernel. */
  deny?: string[] | null;
  /** Shown in the error message. */
  reason?: string | null;
  /** `require`: no command starts if the kernel cannot enforce `allow`. Default: `try`. */
  enforce?: "try" | "require" | null;
}

/** Request of `POST /v1/policies/{name}/test`. */
export interface PolicyTestRequest {
  /** Script for bash. */
  command: string;
}

/** Response of `POST /v1/policies/{name}/test`. */
export interface PolicyVerdict {
  allowed: boolean;
  /** Whether the kernel enforces it too. */
  enforced: boolean;
  /** Programs the script starts, in order. */
  programs: ({
    /** `ls` for `/bin/ls`; the text of an unknown word; for a setting such as `PS4`, the variable or option. */
    name: string;
    kind: "program" | "builtin" | "function" | "unknown" | "setting";
    /** In bytes. */
    offset: number;
    line: number;
    /** In bytes. */
    column: number;
    allowed: boolean;
    why: string;
  })[];
  /** Why the first word that is not allowed is refused, with the policy's `reason`. */
  reason: string | null;
}
