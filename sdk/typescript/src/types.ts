// SPDX-License-Identifier: Apache-2.0
// What /v1 takes and answers. Made by make_types.py from spec/openapi.json: do not edit.

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
    | "transient"
    | "";
  /** The reason as a sentence. May be empty. */
  text: string;
  /** The actor: a key, a user, or `lodge` itself. */
  actor: string;
  /** The time. */
  at: number | null;
}

export interface Change {
  /** `ready` comes first: no later change is missed. `lost`: too many changes at once; list the directory. */
  kind: "ready" | "create" | "write" | "remove" | "rename" | "chmod" | "lost";
  path: string;
  /** The raw bytes in base64. Only present if they are not valid UTF-8; `path` then contains U+FFFD. */
  path_base64?: string;
  is_dir: boolean;
}

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

/**
 * Whether the files are kept (`hibernate`) or deleted (`destroy`). A session with `destroy` on idle is also
 * deleted if it was hibernated for another reason.
 */
export type End = "hibernate" | "destroy";

/**
 * Only `key`, `thread`, `user`, `pin`, `if_exists` and `wait_ms` apply to an existing session; everything else
 * applies to new sessions only.
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
   * Time without use before the session hibernates. Reduced to the server's maximum (24 hours by default).
   * Default: 30 minutes.
   */
  idle_timeout_ms?: number;
  /** Maximum lifetime of a sandbox. Reduced to the server's maximum. Default and maximum: 5 hours. */
  max_lifetime_ms?: number;
  /** What to do when the session has been idle too long. */
  on_idle?: "hibernate" | "destroy";
  /** What to do when its sandbox has reached its maximum lifetime. */
  on_expire?: "hibernate" | "destroy";
  /** Sandboxes have no network. */
  network?: "none";
  /**
   * The policy of a new session. Default: the template's, if any. An unknown policy returns 404. It limits
   * `limits` (exceeding them returns 400) and timeouts (which are reduced). With `max_active_per_user` it
   * requires a `user`.
   */
  policy?: string;
  metadata?: Metadata;
  /** `fail` returns 409 if the session exists. */
  if_exists?: "use" | "fail";
  /** Only this session or sandbox; otherwise the call returns 409. */
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
}

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

export interface EntryAnswer {
  entry: Entry;
}

export interface EntryList {
  entries: Entry[];
  next: Next;
}

/** Variables by name. */
export type Environment = Record<string, string>;

/**
 * `INVALID`: the message names the field or header; 400, also 414, 417, 431, 505; `UNAUTHENTICATED`: the API key
 * is missing, unknown or expired; 401; `DENIED`: the key's scope is too low, or file permissions in the sandbox
 * deny it; 403; `POLICY`: the session's policy does not allow a program of the command; 403; `NOT_FOUND`: does
 * not exist, or is not visible to this key; 404; `METHOD_NOT_ALLOWED`: the path does not support the method;
 * `Allow` lists those it does; 405; `CONFLICT`: not possible in the current state, or the version changed; 409;
 * `GONE`: the session was deleted; 410; `PRECONDITION_FAILED`: `If-Match` or `If-None-Match` failed; 412;
 * `TOO_LARGE`: the body, or the resulting file, is too large; 413; `UNSUPPORTED_MEDIA_TYPE`: the `Content-Type`
 * is not supported; 415; `RANGE`: the range is outside the file; 416; `OUTPUT_GONE`: output at this offset was
 * discarded or does not exist yet; 416; `MISDIRECTED`: the `Host` header does not name this server; 421;
 * `UPGRADE_REQUIRED`: the route needs a WebSocket; 426; `LIMIT`: a quota, or a policy's limit per user; 429;
 * `LIMIT_PIDS`: the sandbox has reached its process limit; 429; `LIMIT_MEMORY`: the sandbox is out of memory;
 * 429; `RATE_LIMITED`: more than 512 requests in flight for this key (setting: concurrent); 429; `INTERNAL`:
 * internal error; the log has the details under the request id; 500; `CALLER_GONE`: the client disconnected
 * before the command ended; the command keeps running; 499, in the log only; `UNAVAILABLE`: full, busy or
 * failing; retry later; 503; `OVERLOADED`: too many requests in flight; 503; `TIMEOUT`: the sandbox did not
 * respond in time; 504; `LIMIT_DISK`: no space left on the disk; 507
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
  | "RATE_LIMITED"
  | "INTERNAL"
  | "CALLER_GONE"
  | "UNAVAILABLE"
  | "OVERLOADED"
  | "TIMEOUT"
  | "LIMIT_DISK";

export interface Event {
  /** Increases and is never reused. */
  id: number;
  /**
   * What happened: `create`, `start`, `ready`, `sleep`, `sealed`, `gone`, `change`, `extend`, `snapshot`,
   * `fork`, `rollback`, `destroy`, `key_add` and others. More may be added.
   */
  kind: string;
  session: string | null;
  /** Version of the session at that time. */
  version: number | null;
  at: Time;
  cause: Cause | null;
  data: Record<string, unknown>;
}

export interface EventList {
  events: Event[];
  /** Value for `since` to get later events. Always present. */
  next: number;
}

/** The record of a command, kept for 7 days. */
export interface Exec {
  exec_id: string;
  session: string;
  /** The command as requested: text or arguments. */
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

export interface ExecId {
  exec_id: string;
}

export interface ExecList {
  execs: Exec[];
  next: Next;
}

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

export interface ExecPiece {
  /** Offset of the first byte in the stream. A gap means that output was discarded. */
  offset: number;
  /** Text or base64, depending on `encoding`. */
  data: string;
}

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
   * A repeated request with this key in this session within 7 days returns the same command, which runs once.
   * With `stdin`, only if you wait for the command.
   */
  idempotency_key?: string;
  /**
   * Bytes to keep of each stream, at most the session's `output_bytes`. The oldest are discarded first. A
   * response has the last 8 MiB of each stream; everything kept can be read by offset.
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
  /** Limits it exceeded. */
  limits: ("TIMEOUT" | "LIMIT_MEMORY" | "LIMIT_PIDS" | "LIMIT_OUTPUT" | "LIMIT_DISK" | "LIMIT_FILE")[];
  duration_ms: number;
  usage: ExecUsage;
}

export interface ExecStarted {
  exec_id: string;
  state: ExecState;
}

/** `killed`: by a signal, a timeout, or the end of its sandbox. `lost`: the result is unknown. */
export type ExecState = "running" | "exited" | "killed" | "lost";

export interface ExecUsage {
  cpu_ms: number;
  max_rss_bytes: number;
}

export interface ExtendRequest {
  /** Time to add. Default: 20 minutes. Never beyond the maximum lifetime. */
  ms?: number;
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

export interface ForkRequest {
  /** Number of sessions; all are created or none. */
  count?: number;
  /** Key of the new session. Only with `count` 1. */
  key?: string;
  /** One of its snapshots. Default: its current files. */
  snapshot?: string;
}

export interface Forks {
  sessions: Session[];
}

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

export interface GoneProblem {
  error: {
    code: ErrorCode;
    /** A message for people. */
    message: string;
    /** Whether the same request may succeed later. */
    retryable: boolean;
    details: {
      session?: string;
      cause?: Cause | null;
    };
  };
}

export interface Health {
  /** `degraded`: the keeper is not running; the next call that needs it starts it. `starting`: see `starting`. */
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
  /** Progress of the start. null: lodged has started. */
  starting: HealthStarting | null;
  last_error: {
    at: Time;
    code: ErrorCode;
    /** Number of errors since the start. */
    count: number;
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
    /** Maximum number of uploaded files. */
    max_files: number;
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
  };
  /** How the kernel enforces which programs a policy allows. */
  policy_enforcement: "landlock" | "none";
}

export interface IfVersion {
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

export interface Index {
  name: string;
  version: string;
  docs: string;
  openapi: string;
  health: string;
}

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

export interface KeyAnswer {
  key: Key;
}

export interface KeyList {
  keys: Key[];
  next: Next;
}

export interface KeyMade {
  key: Key;
  /** The key itself. It is shown only once and not stored. */
  secret: string;
}

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
  /** Number of files and directories, for in-memory files only. Default: 200,000. */
  inodes?: number;
  /** Maximum size of one file. Default: 1 GiB. */
  file_bytes?: number;
  /** Maximum output kept per stream and command. 1 MiB is kept unless a command requests more. */
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

/**
 * Limits that are not given come from the template, then from the defaults. A value out of range, or above the
 * session's policy, is rejected.
 */
export interface LimitsWanted {
  /** Memory of all processes, in-memory files and kernel structures; swap is off. Default: 512 MiB. */
  memory_bytes?: number;
  /** Disk space of the session's files. Default: 1 GiB. */
  disk_bytes?: number;
  /** Number of files and directories, for in-memory files only. Default: 200,000. */
  inodes?: number;
  /** Maximum size of one file. Default: 1 GiB. */
  file_bytes?: number;
  /** Output kept per stream and command. Default: 1 MiB. */
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
 * `created`: it is new. `reused`: it was running. `resumed`: it was hibernated and has its files. `replaced`:
 * its files were lost, and it started anew.
 */
export type Outcome = "created" | "reused" | "resumed" | "replaced";

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

export interface Part {
  ok: boolean;
}

/** null: not set. */
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
  commands: PolicyCommands | null;
  created_at: Time;
  /** Number of sessions that use it. */
  sessions: number;
}

export interface PolicyAnswer {
  policy: Policy;
}

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

export interface ProbeAnswer {
  /** `expired`: the sandbox is dead, and the record was updated. */
  status: "connected" | "expired" | "no_sandbox";
  /** false: it did not respond in time. Nothing was changed; check again later. */
  verified: boolean;
  /** When its sandbox reaches its maximum lifetime. */
  expires_at: number | null;
  /** When to check again. */
  retry_after_ms: number | null;
  cause: Cause | null;
}

export interface ProbeRequest {
  /** How long to wait for a response. Default: 15 s. */
  deadline_ms?: number;
}

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

/** 0: unlimited. */
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

export interface QuotaAnswer {
  quota: Quota;
  usage: Usage;
}

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

export interface Ready {
  ready: boolean;
}

export interface ResizeRequest {
  rows: number;
  cols: number;
}

export interface RollbackRequest {
  /** One of its snapshots. */
  snapshot: string;
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

export interface Session {
  /** Assigned by lodge. */
  id: string;
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
  /** Maximum lifetime of a sandbox. */
  max_lifetime_ms: number;
  /** Idle deadline. null unless active. */
  hibernate_at: number | null;
  /** End of the sandbox's lifetime. null unless active. */
  expires_at: number | null;
  on_idle: End;
  on_expire: End;
  cause: Cause | null;
  limits: Limits;
  metadata: Metadata;
}

export interface SessionAnswer {
  session: Session;
}

export interface SessionList {
  sessions: Session[];
  next: Next;
}

/**
 * Fields that are not given stay unchanged. Limits apply at once, including to running commands. Metadata is
 * replaced as a whole.
 */
export interface SessionPatch {
  /** As in `POST /v1/sessions`. */
  idle_timeout_ms?: number;
  /** As in `POST /v1/sessions`. */
  max_lifetime_ms?: number;
  on_idle?: End;
  on_expire?: End;
  limits?: LimitsWanted;
  metadata?: Metadata;
  /** true: it stays hibernated until it is unarchived; calls that would resume it return 409. */
  archived?: boolean;
  /** Expected version of the record; otherwise the call returns 409 with the current record. */
  if_version?: number;
}

/** `none`: it never had a sandbox, or lost it with its files. `destroying` does not appear in lists. */
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

export interface SignalRequest {
  /** 15, "TERM" or "SIGTERM". */
  signal: number | string;
}

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
  /** Size of the differences from its parent. 0 until it is known. */
  size_bytes: number;
  created_at: Time;
}

export interface SnapshotAnswer {
  snapshot: Snapshot;
}

export interface SnapshotList {
  snapshots: Snapshot[];
  next: Next;
}

export interface SnapshotRequest {
  /** Unique within the session. */
  name?: string;
  /** false: stop the sandbox and resume it afterwards, instead of freezing it for a moment. */
  live?: boolean;
}

export interface Stats {
  /** null: not available on this kernel. */
  stats: {
    memory_bytes: number;
    memory_peak_bytes: number | null;
    /** Processes killed because memory ran out. */
    oom_kills: number;
    /** CPU time since the sandbox started. */
    cpu_us: number;
    /** Processes and threads. */
    pids: number;
    pids_peak: number | null;
    /** Number of refused new processes. */
    pids_denied: number;
    /** Read from block devices since the sandbox started. */
    io_read_bytes: number | null;
    io_write_bytes: number | null;
    /** null: not known yet. */
    disk_bytes: number | null;
    disk_full: boolean;
  };
}

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
  /** Name of the policy for sessions that name none, looked up in their own tenant. */
  policy: string | null;
  /** null if this service did not create it. */
  created_at: number | null;
  /** Origin. null if unknown. */
  from: {
    /** `tar`, `oci` or `snapshot`. */
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

export interface TemplateAnswer {
  template: Template;
}

export interface TemplateList {
  templates: Template[];
}

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

export interface Usage {
  sessions: number;
  active: number;
  memory_bytes: number;
  disk_bytes: number;
  cpu_ms: number;
}

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
  usage: Usage;
}

export interface WatchEnd {
  code: ErrorCode;
  message: string;
}

export interface Written {
  written_bytes: number;
}

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

export interface PolicyTestRequest {
  /** Script for bash. */
  command: string;
}

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
