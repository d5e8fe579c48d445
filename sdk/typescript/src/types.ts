// SPDX-License-Identifier: Apache-2.0
// What /v1 takes and answers. Made by make_types.py from spec/openapi.json: do not edit.

/** Why something is as it is. */
export interface Cause {
  /** Why, as a word. More may be added. */
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
  /** The same as a sentence; may be empty. */
  text: string;
  /** Who: a key, a user, or `lodge` itself. */
  actor: string;
  /** When. */
  at: number | null;
}

export interface Change {
  /** `ready` comes first: nothing after it is missed. `lost`: there were too many, look for yourself. */
  kind: "ready" | "create" | "write" | "remove" | "rename" | "chmod" | "lost";
  path: string;
  /** Its bytes; only where they are no UTF-8, and `path` has U+FFFD. */
  path_base64?: string;
  is_dir: boolean;
}

export interface ConflictProblem {
  error: {
    code: ErrorCode;
    /** A sentence for people. */
    message: string;
    /** The same request may succeed later. */
    retryable: boolean;
    details: {
      session?: Session;
    };
  };
}

/**
 * What happens then: the files stay (`hibernate`) or go (`destroy`). What is to go when nobody uses it goes also
 * if something else put it to sleep.
 */
export type End = "hibernate" | "destroy";

/**
 * All but the keys, `user`, `pin`, `if_exists` and `wait_ms` count for a new session only: entering one that is
 * there does not change it.
 */
export interface EnterRequest {
  /**
   * The caller's own name for the session, unique per tenant. The first of `key`, `thread` and `user` that is
   * given leads to the session; without any of them a new one is made every time.
   */
  key?: string;
  /** The end user it belongs to. A token for one user may leave it out. */
  user?: string;
  /** Leads to the session if there is no `key`. */
  thread?: string;
  /** A name for the record. */
  project?: string;
  /** A name for the record. */
  fragment?: string;
  /** What a new session starts from. */
  template?: string;
  /** A new session starts with the files of this snapshot. */
  snapshot?: string;
  limits?: LimitsWanted;
  env?: Environment;
  /** The user inside that commands run as; default: the template's. */
  run_as?: string;
  /**
   * The working directory of commands; default: the template's, or that user's home. Made where it is missing,
   * and that user's then.
   */
  workdir?: string;
  /** `root`: the sandbox has a user 0 of its own, without rights outside. */
  class?: "user" | "root";
  /** More than the server's most (a day by default) is the most. Default 30 minutes. */
  idle_timeout_ms?: number;
  /** More than the server's most is the most. Default and most: 5 hours. */
  max_lifetime_ms?: number;
  /** What happens when it was idle for too long. */
  on_idle?: "hibernate" | "destroy";
  /** What happens when its sandbox has lived too long. */
  on_expire?: "hibernate" | "destroy";
  /** There is no network inside. */
  network?: "none";
  /**
   * The policy of the tenant that a new session is under, for good; default: the template's, if it names one.
   * One that the tenant does not have is a 404. It bounds `limits` (more than its most is a 400) and times (more
   * is its most), and with `max_active_per_user` asks for a `user`.
   */
  policy?: string;
  metadata?: Metadata;
  /** `fail`: 409 if the key leads somewhere. */
  if_exists?: "use" | "fail";
  /** This session or sandbox and no other, else 409. */
  pin?: string;
  /** The same key within 7 days leads to the same session. */
  idempotency_key?: string;
  /** So many live sandboxes of this user at most. With a policy the smaller number of the two counts. */
  max_active_per_user?: number;
  /**
   * With `max_active_per_user`: refuse, or hibernate the one that was used longest ago. If the policy has a
   * number, what it says counts.
   */
  on_exceed?: "refuse" | "replace";
  /** How long to wait for room when everything is full. */
  wait_ms?: number;
  /** A new session is made without a sandbox, and one that is there is left as it is. */
  asleep?: boolean;
}

export interface Entered {
  session: Session;
  outcome: Outcome;
  /** Files of an earlier sandbox are gone; `cause` says why. */
  state_lost: boolean;
  cause: Cause | null;
  /** How long it took to have a sandbox. */
  ready_ms: number;
  /** Where the sandbox came from; null: there was one, or none was wanted. */
  source: "pool" | "cold" | "resume" | "fork" | null;
}

export interface Entry {
  /** The last part of the path. */
  name: string;
  /** As callers name it: below the path that was asked for. */
  path: string;
  /** Its bytes; only where they are no UTF-8, and `path` has U+FFFD. */
  path_base64?: string;
  type: "file" | "directory" | "symlink" | "fifo" | "socket" | "device";
  size: number;
  /** Octal. */
  mode: string;
  /** Inside. */
  uid: number;
  gid: number;
  /** Milliseconds since 1970. */
  mtime_ms: number;
  /** Where a symbolic link leads; only of those. */
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
 * `INVALID`: the message names the field or the header; 400, also 414, 417, 431, 505; `UNAUTHENTICATED`: no key,
 * or one that is not known or has expired; 401; `DENIED`: the key may not, or the file inside does not let us;
 * 403; `POLICY`: the session's policy does not allow a program of the command; 403; `NOT_FOUND`: never existed,
 * or is another's; 404; `METHOD_NOT_ALLOWED`: the path is there, the method is not: `Allow` has those that are;
 * 405; `CONFLICT`: not possible in its state, or another version; 409; `GONE`: it was destroyed; 410;
 * `PRECONDITION_FAILED`: If-Match or If-None-Match; 412; `TOO_LARGE`: the body, or the file it would make; 413;
 * `UNSUPPORTED_MEDIA_TYPE`: Content-Type is not one that is taken there; 415; `RANGE`: nothing of the file is in
 * the Range; 416; `OUTPUT_GONE`: output at this offset is not kept any more, or not there yet; 416;
 * `MISDIRECTED`: Host is no name of this server; 421; `UPGRADE_REQUIRED`: this is a WebSocket; 426; `LIMIT`: a
 * quota, or what a policy allows a user; 429; `LIMIT_PIDS`: the sandbox has as many processes as it may have;
 * 429; `LIMIT_MEMORY`: the sandbox has no memory left; 429; `RATE_LIMITED`: too many requests with this key;
 * 429; `INTERNAL`: a bug; the log has more under the request's id; 500; `CALLER_GONE`: who asked hung up before
 * the command ended, which goes on; 499, for the log; `UNAVAILABLE`: full, busy or broken for now; 503;
 * `OVERLOADED`: too many requests at once; 503; `TIMEOUT`: the sandbox did not answer in time; 504;
 * `LIMIT_DISK`: no room on the disk; 507
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
  /** Rises, and is never used twice. */
  id: number;
  /**
   * What happened: `create`, `start`, `ready`, `sleep`, `sealed`, `gone`, `change`, `extend`, `snapshot`,
   * `fork`, `rollback`, `destroy`, `key_add` ... More may be added.
   */
  kind: string;
  session: string | null;
  /** Of the session then. */
  version: number | null;
  at: Time;
  cause: Cause | null;
  data: Record<string, unknown>;
}

export interface EventList {
  events: Event[];
  /** For `since`: what comes later is behind it. Always there. */
  next: number;
}

/** The record of a command; kept for 7 days. */
export interface Exec {
  exec_id: string;
  session: string;
  /** Text or arguments, as it was asked for. */
  command: string | string[];
  state: ExecState;
  background: boolean;
  /** null: it was ended by a signal, or nobody knows. */
  exit_code: number | null;
  /** The signal that ended it. */
  signal: number | null;
  timed_out: boolean;
  oom_killed: boolean;
  truncated: boolean;
  /** What it ran into. */
  limits: ("TIMEOUT" | "LIMIT_MEMORY" | "LIMIT_PIDS" | "LIMIT_OUTPUT" | "LIMIT_DISK" | "LIMIT_FILE")[];
  stdout_bytes: number;
  stderr_bytes: number;
  started_at: Time;
  /** null while it runs. */
  ended_at: number | null;
  duration_ms: number | null;
  usage: ExecUsage;
}

/** How a command ended, and what it wrote. */
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
  /** Where to go on. */
  stdout_offset: number;
  /** Where to go on. */
  stderr_offset: number;
  /** It has ended and this is all. */
  done: boolean;
}

export interface ExecPiece {
  /** Of the first byte in the stream; larger than expected where something was dropped. */
  offset: number;
  /** Text or base64, as `encoding` says. */
  data: string;
}

export interface ExecRecord {
  exec: Exec;
}

/** Either `command` or `argv`; all of it at most 192 KiB. */
export interface ExecRequest {
  /** Text for bash. */
  command?: string;
  /** A program and its arguments, without a shell. */
  argv?: string[];
  /** Default: the session's working directory. */
  cwd?: string;
  env?: Environment;
  /** Its whole input, unless `stdin_open`. */
  stdin?: string;
  /**
   * More input may come later, by `/stdin`. Default: true in the background and with a terminal if there is no
   * `stdin`, else false.
   */
  stdin_open?: boolean;
  /** After so long everything it started is killed; 0: never. */
  timeout_ms?: number;
  /** Answer 202 at once; the command goes on. */
  background?: boolean;
  /** With a terminal; both streams come as stdout. */
  pty?: {
    rows?: number;
    cols?: number;
  };
  /** The user inside; default: the session's. */
  user?: string;
  /**
   * The same key in this session within 7 days leads to the same command, which runs once. With `stdin` only for
   * a command that is waited for.
   */
  idempotency_key?: string;
  /**
   * Kept of each stream; at most `output_bytes` of the session. The oldest goes first; an answer has the last 8
   * MiB of each, and all that is kept can be read by offset.
   */
  max_output_bytes?: number;
  /** How the answer has output: as text, with U+FFFD for what is none, or as base64. */
  encoding?: "utf-8" | "base64";
}

/** How a command ended. */
export interface ExecResult {
  exec_id: string;
  /** null: it was ended by a signal, or nobody knows. */
  exit_code: number | null;
  /** The signal that ended it. */
  signal: number | null;
  /** All that was written, also what is not kept. */
  stdout_bytes: number;
  stderr_bytes: number;
  /** Not all of the output is here. */
  truncated: boolean;
  timed_out: boolean;
  /** The kernel ended something in it for want of memory. */
  oom_killed: boolean;
  /** Its sandbox went away before anybody knew how it ended. */
  lost: boolean;
  /** What it ran into. */
  limits: ("TIMEOUT" | "LIMIT_MEMORY" | "LIMIT_PIDS" | "LIMIT_OUTPUT" | "LIMIT_DISK" | "LIMIT_FILE")[];
  duration_ms: number;
  usage: ExecUsage;
}

export interface ExecStarted {
  exec_id: string;
  state: ExecState;
}

/** `killed`: by a signal, its deadline, or with its sandbox. `lost`: nobody knows how it ended. */
export type ExecState = "running" | "exited" | "killed" | "lost";

export interface ExecUsage {
  cpu_ms: number;
  max_rss_bytes: number;
}

export interface ExtendRequest {
  /** By how much; default 20 minutes, never past the lifetime of the sandbox. */
  ms?: number;
  /** The version that the record must have now, else 409 with the record as it is. */
  if_version?: number;
}

export interface ForkRequest {
  /** How many; all or none. */
  count?: number;
  /** Leads to the new session; only with a count of 1. */
  key?: string;
  /** One of its snapshots; default: its files as they are now. */
  snapshot?: string;
}

export interface Forks {
  sessions: Session[];
}

export interface FullProblem {
  error: {
    code: ErrorCode;
    /** A sentence for people. */
    message: string;
    /** The same request may succeed later. */
    retryable: boolean;
    details: {
      active?: number;
      max?: number;
      waiting?: number;
      /** In the queue, if there were room in it. */
      position?: number;
      /** Sandboxes that could be hibernated. */
      idle?: number;
      retry_after_ms?: number;
    };
  };
}

export interface GoneProblem {
  error: {
    code: ErrorCode;
    /** A sentence for people. */
    message: string;
    /** The same request may succeed later. */
    retryable: boolean;
    details: {
      session?: string;
      cause?: Cause | null;
    };
  };
}

export interface Health {
  /** `degraded`: the keeper ended; the next call starts another. `starting`: see `starting`. */
  status: "starting" | "ok" | "degraded" | "failing";
  version: string;
  parts: {
    store: Part;
    keeper: {
      ok: boolean;
      /** Why not, if it is not. */
      error?: string;
    };
    room: {
      ok: boolean;
      /** Live sandboxes. */
      active: number;
      /** 0: any number. */
      max: number;
      /** Those that could be hibernated. */
      idle: number;
      /** Callers in the queue. */
      waiting: number;
    };
  };
  /** null: that is over. */
  starting: HealthStarting | null;
  last_error: {
    at: Time;
    code: ErrorCode;
    /** Since the start. */
    count: number;
  } | null;
  /** Why it is failing. */
  reason: string | null;
  /** Requests without a key are taken. */
  insecure_no_auth: boolean;
  uptime_seconds: number;
  /** Of this process; another after each start. */
  worker_id: string;
  pool: {
    /** Sandboxes that wait. */
    available: number;
    /** Live ones. */
    allocated: number;
    total: number;
    /** Live ones at most. 0: any number. */
    max_capacity: number;
  };
  active_sessions: number;
  /** There is none to be connected to. */
  redis_connected: false;
  /** What sessions of threads have. */
  config: {
    memory_bytes: number;
    /** Thousandths of a core. */
    cpu_milli: number;
    max_processes: number;
    max_file_bytes: number;
    /** Of an upload. */
    max_files: number;
    max_workspace_bytes: number;
    network: "none";
    user: string;
    workspace_dir: string;
    idle_timeout_ms: number;
    /** Sandboxes kept ready at least; */
    pool_min: number;
    /** usually; */
    pool_target: number;
    /** and live ones at most. 0: any number. */
    pool_max: number;
  };
  /** Whether the kernel sees to what a policy lets commands execute. */
  policy_enforcement: "landlock" | "none";
}

export interface IfVersion {
  /** The version that the record must have now, else 409 with the record as it is. */
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
  /** `admin`, `tenant`, `session`, or `session:ID` for one session alone. */
  scope: string;
  /** A token for this end user alone. */
  user: string | null;
  name: string | null;
  created_at: Time;
  /** null: never. */
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
  /** The key itself. It is told once and kept nowhere. */
  secret: string;
}

export interface KeyRequest {
  /** Default: the one of the key that asks. Another one needs scope `admin`. */
  tenant?: string;
  /** `admin` and `tenant` need scope `admin`. */
  scope?: string;
  /** A token for this end user alone; only with a scope of sessions. */
  user?: string;
  /** For people. */
  name?: string;
  /** Milliseconds since 1970, in the future. Default: never. */
  expires_at?: number;
  /** The same from now on; only one of the two. */
  expires_in_ms?: number;
}

/**
 * Of a session all of them, as they are in force: what it says itself, else its template, else the defaults. Of
 * a template those that it says.
 */
export interface Limits {
  /** Memory of all processes, of files in memory and of the kernel for them; swap is 0. Default 512 MiB. */
  memory_bytes?: number;
  /** What the files of the session may take. Default 1 GiB. */
  disk_bytes?: number;
  /** Files and directories; in memory only. Default 200,000. */
  inodes?: number;
  /** The largest single file. Default 1 GiB. */
  file_bytes?: number;
  /** What may be kept of each output stream of one command; 1 MiB of it is, unless more was asked for. */
  output_bytes?: number;
  /** Processors, as a hard limit: 0.5 is half of one. 0: a fair share, which is the default. Else 0.01 or more. */
  cpus?: number;
  /** Share when others want the processors too. Default 100. */
  cpu_weight?: number;
  /** Processes and threads. Default 256. */
  pids?: number;
  /** Open files of one process. Default 1024. */
  open_files?: number;
}

/**
 * What is left out comes from the template, then from the defaults. A value out of bounds is refused, and so is
 * more than the session's policy allows.
 */
export interface LimitsWanted {
  /** Memory of all processes, of files in memory and of the kernel for them; swap is 0. Default 512 MiB. */
  memory_bytes?: number;
  /** What the files of the session may take. Default 1 GiB. */
  disk_bytes?: number;
  /** Files and directories; in memory only. Default 200,000. */
  inodes?: number;
  /** The largest single file. Default 1 GiB. */
  file_bytes?: number;
  /** Kept of each output stream of one command. Without it 1 MiB is kept. */
  output_bytes?: number;
  /** Processors, as a hard limit: 0.5 is half of one. 0: a fair share, which is the default. Else 0.01 or more. */
  cpus?: number;
  /** Share when others want the processors too. Default 100. */
  cpu_weight?: number;
  /** Processes and threads. Default 256. */
  pids?: number;
  /** Open files of one process. Default 1024. */
  open_files?: number;
  /** The same as `cpus` in thousandths; only one of the two. */
  cpu_milli?: number;
}

/** Whatever the caller wants to keep with the session; at most 65,536 bytes as JSON. */
export type Metadata = Record<string, unknown>;

/** For `after` of the next page; null: there is none. */
export type Next = number | null;

/** Nothing. */
export type Nothing = Record<string, never>;

/**
 * `created`: new. `reused`: it ran. `resumed`: it slept, its files are there. `replaced`: the files of an
 * earlier one are not there any more.
 */
export type Outcome = "created" | "reused" | "resumed" | "replaced";

export interface OutputGoneProblem {
  error: {
    code: ErrorCode;
    /** A sentence for people. */
    message: string;
    /** The same request may succeed later. */
    retryable: boolean;
    details: {
      /** Where what is kept begins. */
      stdout_offset: number;
      stderr_offset: number;
    };
  };
}

export interface Part {
  ok: boolean;
}

/** Null is nothing said. */
export interface Policy {
  name: string;
  tenant: string;
  /** So many live sandboxes of each user at most. */
  max_active_per_user: number | null;
  /** What becomes of one too many. */
  on_exceed: "refuse" | "replace";
  /** The most. */
  idle_timeout_ms: number | null;
  /** The most. */
  max_lifetime_ms: number | null;
  network: "none" | null;
  /** The most of each that is there. */
  limits: Limits;
  commands: PolicyCommands | null;
  created_at: Time;
  /** How many name it. */
  sessions: number;
}

export interface PolicyAnswer {
  policy: Policy;
}

export interface PolicyList {
  policies: Policy[];
  next: Next;
}

/** What is left out stays; null takes it away. `limits` and `commands` are replaced as a whole. */
export interface PolicyPatch {
  /**
   * So many live sandboxes of each user at most; then sessions under it need a `user`. It holds when one is made
   * and when one that sleeps is resumed.
   */
  max_active_per_user?: number | null;
  /**
   * What becomes of one too many: refused (429), or the one of the user that was used longest ago is hibernated
   * for it. Default `refuse`.
   */
  on_exceed?: "refuse" | "replace" | null;
  /** The most, and what sessions have that ask for nothing. */
  idle_timeout_ms?: number | null;
  /** The most, and what sessions have that ask for nothing. */
  max_lifetime_ms?: number | null;
  /** There is no network inside. */
  network?: "none" | null;
  limits?: LimitsWanted | null;
  commands?: PolicyCommands | null;
}

export interface PolicyRequest {
  /** Unique per tenant, and without a slash. */
  name: string;
  /** Default: the key's. */
  tenant?: string;
  /**
   * So many live sandboxes of each user at most; then sessions under it need a `user`. It holds when one is made
   * and when one that sleeps is resumed.
   */
  max_active_per_user?: number;
  /**
   * What becomes of one too many: refused (429), or the one of the user that was used longest ago is hibernated
   * for it. Default `refuse`.
   */
  on_exceed?: "refuse" | "replace";
  /** The most, and what sessions have that ask for nothing. */
  idle_timeout_ms?: number;
  /** The most, and what sessions have that ask for nothing. */
  max_lifetime_ms?: number;
  /** There is no network inside. */
  network?: "none";
  limits?: LimitsWanted;
  commands?: PolicyCommands;
}

export interface ProbeAnswer {
  /** `expired`: it is gone, and the record says so now. */
  status: "connected" | "expired" | "no_sandbox";
  /** false: it did not answer in time, for now; everything is kept, ask again. */
  verified: boolean;
  /** When its sandbox has lived too long. */
  expires_at: number | null;
  /** When to ask again. */
  retry_after_ms: number | null;
  cause: Cause | null;
}

export interface ProbeRequest {
  /** How long to wait for the answer; default 15 s. */
  deadline_ms?: number;
}

export interface Problem {
  error: {
    code: ErrorCode;
    /** A sentence for people. */
    message: string;
    /** The same request may succeed later. */
    retryable: boolean;
    /**
     * 403 `POLICY` about a command (`policy`, `word`, `offset`, `line`, `column`, `reason`), 409 and 410 about a
     * session, 416 about output, 429 about a sandbox and 503 when full have some.
     */
    details: Record<string, unknown>;
  };
}

export interface Progress {
  status: "pending" | "running" | "ready" | "error";
  /** A word for what is being done. */
  stage: string;
  /** The same as a sentence. */
  message: string;
  step: number;
  total_steps: number;
  /** What went wrong, with `error`. */
  error: string | null;
  updated: Time;
  updated_at: Time;
}

/** 0: no limit. */
export interface Quota {
  /** Live ones at once. */
  sandboxes: number;
  /** Of the live ones, by their limits. */
  memory_bytes: number;
  /** Of all sessions, by their limits. */
  disk_bytes: number;
  /** Processor time, ever. */
  cpu_ms: number;
}

export interface QuotaAnswer {
  quota: Quota;
  usage: Usage;
}

/** All of it: what is left out has no limit. */
export interface QuotaRequest {
  /** Live ones at once. */
  sandboxes?: number;
  /** Of the live ones, by their limits. */
  memory_bytes?: number;
  /** Of all sessions, by their limits. */
  disk_bytes?: number;
  /** Processor time, ever. */
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
  /** One of its own. */
  snapshot: string;
  /** The version that the record must have now, else 409 with the record as it is. */
  if_version?: number;
}

export interface Session {
  /** Given by lodge. */
  id: string;
  /** The caller's own name for it. */
  key: string | null;
  /** The end user it belongs to. */
  user: string | null;
  /** The thread that leads to it. */
  thread: string | null;
  /** A name in the record. */
  project: string | null;
  /** A name in the record. */
  fragment: string | null;
  /** What its files began as. */
  template: string;
  /** The policy it is under. */
  policy: string | null;
  state: SessionState;
  /** `live`: it has a sandbox. `resumable`: it has files only. `none`: it has neither. */
  runtime: "none" | "resumable" | "live";
  /** Its processes are frozen; the next use thaws them. */
  paused: boolean;
  /** The live sandbox. */
  sandbox: string | null;
  /** Its newest snapshot. */
  snapshot: string | null;
  /** Raised by every change of the record; for `if_version`. */
  version: number;
  /** Number of the file state; raised by hibernating, snapshots and rollbacks. */
  generation: number;
  /** How many sandboxes it has had. */
  incarnation: number;
  created_at: Time;
  /** When the present or last sandbox was ready. */
  started_at: number | null;
  /** When somebody last worked in it. */
  last_activity_at: number | null;
  /** The preference in force: after so long without activity it sleeps or ends. */
  idle_timeout_ms: number;
  /** The preference in force: no sandbox lives longer. */
  max_lifetime_ms: number;
  /** When it would be idle for too long; null unless active. */
  hibernate_at: number | null;
  /** When its sandbox has lived too long; null unless active. */
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
 * What is left out stays. Limits are in force at once, also of commands that run. Metadata is replaced as a
 * whole.
 */
export interface SessionPatch {
  /** As when entering. */
  idle_timeout_ms?: number;
  /** As when entering. */
  max_lifetime_ms?: number;
  on_idle?: End;
  on_expire?: End;
  limits?: LimitsWanted;
  metadata?: Metadata;
  /** true: it sleeps until it is taken back; whatever would wake it is refused with 409. */
  archived?: boolean;
  /** The version that the record must have now, else 409 with the record as it is. */
  if_version?: number;
}

/** `none`: it never had a sandbox, or lost it with its files. `destroying` is not shown in lists. */
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
  /** null: it was brought in. */
  session: string | null;
  /** The key that leads to the session now. */
  session_key: string | null;
  /** false: the session was destroyed, or there never was one. */
  session_exists: boolean;
  generation: number;
  /** Of what it has beside its parent; 0 until that is known. */
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
  /** false: stop the sandbox for it and resume it afterwards, rather than freeze it for a moment. */
  live?: boolean;
}

export interface Stats {
  /** null: this kernel does not tell. */
  stats: {
    memory_bytes: number;
    memory_peak_bytes: number | null;
    /** Processes that the kernel ended for want of memory. */
    oom_kills: number;
    /** Processor time since the sandbox began. */
    cpu_us: number;
    /** Processes and threads. */
    pids: number;
    pids_peak: number | null;
    /** How often another one was refused. */
    pids_denied: number;
    /** From block devices, since the sandbox began. */
    io_read_bytes: number | null;
    io_write_bytes: number | null;
    /** null: not known yet. */
    disk_bytes: number | null;
    disk_full: boolean;
  };
}

export interface Template {
  name: string;
  /** `host` and `empty`: they are always there as they are. */
  builtin: boolean;
  /** `root`: its sandboxes have a user 0 of their own. */
  class: "user" | "root";
  /** The user inside that commands run as. */
  run_as: string | null;
  /** The working directory of commands; null: that user's home. */
  workdir: string | null;
  env: Environment;
  /** What it says itself; the rest is the defaults'. */
  limits: Limits;
  /** Sessions that name none are under the policy of this name of their own tenant. */
  policy: string | null;
  /** Null if it was not made by this service. */
  created_at: number | null;
  /** What it was made of; null if that is not known. */
  from: {
    /** `tar`, `oci` or `snapshot`. */
    kind: string;
    /** The one it was made of. */
    snapshot?: string;
  } | null;
  /** What was unpacked, or what the snapshot took; null if that is not known. */
  size_bytes: number | null;
  /** How many are of it. */
  sessions: number;
  /** It cannot be used, for this reason; then the rest but name and sessions says nothing. */
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
  /** Of an image: it says that its commands run as root, which they do not; see `class`. */
  wants_root?: boolean;
}

/** What is left out stays. What is there is replaced as a whole, `env` and `limits` too; null takes it away. */
export interface TemplatePatch {
  /** The user inside that commands run as: a name, a number or `UID:GID`. 0 needs the class `root`. */
  run_as?: string | null;
  /** The working directory of commands, absolute. */
  workdir?: string | null;
  env?: Environment | null;
  limits?: LimitsWanted | null;
  /** `root`: sandboxes have a user 0 of their own, without rights outside. */
  class?: "user" | "root" | null;
  /** The name of a policy; the tenant of the key must have one of this name, else 404. */
  policy?: string | null;
}

export interface TemplateRemoved {
  /** Its name. */
  removed: string;
}

/**
 * What is left out is as with the template of the snapshot's session. Of `env` single variables are replaced or
 * added, of `limits` single ones too.
 */
export interface TemplateRequest {
  /** Of `a-z 0-9 . _ -`, the first a letter or digit. */
  name: string;
  /** The `id` of a snapshot. */
  snapshot: string;
  /** Whose snapshot it is; default: the key's. */
  tenant?: string;
  /** The user inside that commands run as: a name, a number or `UID:GID`. 0 needs the class `root`. */
  run_as?: string;
  /** The working directory of commands, absolute. */
  workdir?: string;
  env?: Environment;
  limits?: LimitsWanted;
  /** `root`: sandboxes have a user 0 of their own, without rights outside. */
  class?: "user" | "root";
  /** The name of a policy; the tenant of the key must have one of this name, else 404. */
  policy?: string;
}

/** Milliseconds since 1970, UTC. */
export type Time = number;

export interface Tombstone {
  /** What is left of a session that was destroyed, for 7 days. */
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
    /** Null if a signal ended it, or nobody knows how it ended. */
    exit_code: number | null;
    /** The number of the signal that ended it. */
    signal: number | null;
  };
}

/** Where in the output the next byte is. */
export interface TtyPlace {
  /** In the first one. */
  exec_id?: string;
  offset: number;
}

/** To be sent when the window has another size. */
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
    /** Where the user is now. */
    project: string | null;
    fragment: string | null;
    /** Live sandboxes. */
    active: number;
    session: Session | null;
    /** null: never named, but has sessions. */
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
  /** Of template, kernel and, where they are the host's, programs: another one, another state. */
  template_version: string;
  /** They are still the same. */
  current: boolean;
  /** Where commands start. */
  pwd: string;
  kernel: string;
  /** os-release, names in small letters. */
  os?: Record<string, string>;
  /** `[redacted]`: its name sounds like a secret. */
  env: Record<string, string>;
  /** Versions, as they say them. */
  tools: Record<string, string>;
}

export interface TemplateEnvironmentAnswer {
  environment: TemplateEnvironment;
}

/** How far the start is. */
export interface HealthStarting {
  stage: "store" | "keeper" | "adopt" | "ready";
  message: string;
  step: number;
  total_steps: number;
  /** Of the last try that failed. */
  error: string | null;
  /** That ended. */
  tries: number;
  /** Callers that wait for it. */
  waiting: number;
}

/**
 * Which programs commands may start. A command is looked through before it starts, and refused (403 `POLICY`)
 * for the first word that is not allowed; with `allow` the kernel lets it execute nothing else either, where
 * `GET /health` says so.
 */
export interface PolicyCommands {
  /** Names of programs, or absolute paths, at most 512: these, and the shell's builtins, and no other. */
  allow?: string[] | null;
  /** Not these, whatever `allow` says. Advice only: the kernel does not know of it. */
  deny?: string[] | null;
  /** Told to those who are refused. */
  reason?: string | null;
  /** `require`: where the kernel cannot see to `allow`, no command starts. Default `try`. */
  enforce?: "try" | "require" | null;
}

export interface PolicyTestRequest {
  /** Bash text. */
  command: string;
}

export interface PolicyVerdict {
  allowed: boolean;
  /** The kernel sees to it as well. */
  enforced: boolean;
  /** What the text starts, in its order. */
  programs: ({
    /** `/bin/ls` is `ls`; of an unknown one its text; of a setting, such as `PS4`, the variable or option. */
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
  /** Why not, for the first that is not allowed, and what the policy has as `reason`. */
  reason: string | null;
}
