// SPDX-License-Identifier: Apache-2.0
// All that can be done with one session.
import { lodgeError } from "./errors.js";
import {
  Execution,
  run,
  start,
  stream,
  type BackgroundOptions,
  type Command,
  type ExecEvent,
  type ExecOptions,
  type ExecOutcome,
  type StreamOptions,
} from "./exec.js";
import { Files } from "./files.js";
import { frames } from "./frames.js";
import { encodeBytes, type Again, type CallOptions, type Question, type Wire } from "./http.js";
import { listAll } from "./pages.js";
import { Tty, type TtyOptions } from "./tty.js";
import type {
  Entered,
  Exec,
  ExtendRequest,
  Extended,
  ForkRequest,
  Forks,
  IfVersion,
  Outcome,
  ProbeAnswer,
  ProbeRequest,
  Progress,
  RollbackRequest,
  Session,
  SessionAnswer,
  SessionPatch,
  Snapshot,
  SnapshotAnswer,
  SnapshotRequest,
  Stats,
  Tombstone,
} from "./types.js";

/** A reference to a session: its id, its key, or its record. */
export type SessionRef = string | { id: string } | { key: string } | { session: Session };

export function sessionPath(ref: SessionRef): string {
  if (typeof ref !== "string" && "key" in ref) return "/v1/sessions/key:" + encodeBytes(ref.key);
  const id = typeof ref === "string" ? ref : "session" in ref ? ref.session.id : ref.id;
  if (!id) throw lodgeError({ code: "INVALID", message: "a session's id is needed, or { key }" });
  return "/v1/sessions/" + encodeBytes(id);
}

/** By the second try a key may lead to another session. */
function againOf(ref: SessionRef): Again {
  return (typeof ref === "string" ? ref.startsWith("key:") : "key" in ref) ? "unsent" : "safe";
}

/** What an extend did, beside the record. */
export type Extension = Omit<Extended, "session">;

/**
 * A handle on a session by its id or key.
 *
 * Making one sends no request: the session need not exist yet. `await using` leaves the session as it is.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * const made = await client.enter("demo");
 * const session = client.session({ key: "demo" });
 * console.log((await session.exec("echo hi")).stdout); // hi
 * await client.session(made.id).delete();
 * ```
 */
export class SessionClient {
  /** The files of the session. */
  readonly files: Files;
  readonly #wire: Wire;
  readonly #path: string;
  readonly #again: Again;

  /** @internal */
  constructor(wire: Wire, ref: SessionRef) {
    this.#wire = wire;
    this.#path = sessionPath(ref);
    this.#again = againOf(ref);
    this.files = new Files(wire, this.#path);
  }

  async #post<T>(path: string, json: object, call: CallOptions, more: Partial<Question> = {}): Promise<T> {
    // with a version the second try would find that the first has changed it
    const again = (json as IfVersion).if_version !== undefined ? "unsent" : "safe";
    return this.#wire.json<T>({ method: "POST", path: this.#path + path, json, again, ...more, ...call });
  }

  async #change(path: string, json: object, call: CallOptions, again?: Again): Promise<Session> {
    return (await this.#post<SessionAnswer>(path, json, call, again ? { again } : {})).session;
  }

  // ---- the record -------------------------------------------------------------------------------

  /** Returns the record; changes and extends nothing. */
  async get(call: CallOptions = {}): Promise<Session> {
    return (await this.#wire.json<SessionAnswer>({ method: "GET", path: this.#path, ...call })).session;
  }

  /** Changes settings of the session. */
  async patch(patch: SessionPatch, call: CallOptions = {}): Promise<Session> {
    const again = patch.if_version === undefined ? this.#again : "unsent";
    return (await this.#wire.json<SessionAnswer>({ method: "PATCH", path: this.#path, json: patch, again, ...call }))
      .session;
  }

  /** Deletes the session with its files, from every state, and returns its tombstone. */
  async delete(
    options: { reason?: string; if_version?: number } = {},
    call: CallOptions = {},
  ): Promise<Tombstone["tombstone"]> {
    const question = { method: "DELETE", path: this.#path, query: { ...options }, again: this.#again };
    return (await this.#wire.json<Tombstone>({ ...question, ...call })).tombstone;
  }

  // ---- its life ---------------------------------------------------------------------------------

  /** Checks whether the sandbox responds; extends nothing. */
  async probe(options: ProbeRequest = {}, call: CallOptions = {}): Promise<ProbeAnswer> {
    return this.#post<ProbeAnswer>("/probe", options, call);
  }

  /**
   * Postpones the end of the sandbox, and returns the record and by how much `expires_at` moved.
   *
   * Throws CONFLICT unless the session is active.
   */
  async extend(options: ExtendRequest = {}, call: CallOptions = {}): Promise<Session & Extension> {
    const { session, ...how } = await this.#post<Extended>("/extend", options, call);
    return { ...session, ...how };
  }

  /** Counts as a use. Throws CONFLICT unless the session is active. */
  async activity(call: CallOptions = {}): Promise<Session> {
    return this.#change("/activity", {}, call);
  }

  // not repeated: another call may have undone it meanwhile, such as by entering
  /** Freezes all processes; the next use continues them. */
  async pause(options: IfVersion = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/pause", options, call, "unsent");
  }

  /** Continues the processes of a paused session. */
  async unpause(options: IfVersion = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/unpause", options, call, "unsent");
  }

  /** Ends all processes and keeps the files. */
  async hibernate(options: IfVersion = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/hibernate", options, call, "unsent");
  }

  /** Starts a sandbox with the files of a hibernated session. */
  async resume(options: IfVersion = {}, call: CallOptions = {}): Promise<Entered> {
    return this.#post<Entered>("/resume", options, call);
  }

  /** Returns memory, processor time, processes and disk, now and at most. Throws CONFLICT if there is no sandbox. */
  async stats(call: CallOptions = {}): Promise<Stats["stats"]> {
    return (await this.#wire.json<Stats>({ method: "GET", path: this.#path + "/stats", ...call })).stats;
  }

  /** Returns how far the start of the session is. */
  async progress(call: CallOptions = {}): Promise<Progress> {
    return this.#wire.json<Progress>({ method: "GET", path: this.#path + "/progress", ...call });
  }

  /** Yields how far the start of the session is, until it is ready or has failed. */
  watchProgress(call: CallOptions = {}): AsyncGenerator<Progress, void, undefined> {
    return progressOf(this.#wire, this.#path + "/progress", call);
  }

  // ---- commands ---------------------------------------------------------------------------------

  /**
   * Runs a command and waits for its end; a command that fails is a result.
   *
   * With its idempotency key it is sent again when the connection breaks, and runs once. The result has the last MiB
   * of each stream, or `max_output_bytes` of it, at most 8 MiB. After `timeout_ms` (default 30000; 0: never) all it started is killed; a `signal` ends the call,
   * not the command.
   */
  exec(command: Command, options: ExecOptions = {}, call: CallOptions = {}): Promise<ExecOutcome> {
    return run(this.#wire, this.#path, command, options, call);
  }

  /**
   * Runs a command and yields events while it runs.
   *
   * A slow reader slows the command; a broken connection or a restart of lodged is bridged by offset. Leaving the
   * stream does not end the command: use `kill` of `command`.
   */
  stream(
    command: Command,
    options: StreamOptions = {},
    call: CallOptions = {},
  ): AsyncGenerator<ExecEvent, void, undefined> {
    return stream(this.#wire, this.#path, command, options, call);
  }

  /**
   * Starts a command in the background, with no time limit unless `timeout_ms` sets one.
   *
   * Its input stays open unless `stdin_open` is false.
   */
  start(command: Command, options: BackgroundOptions = {}, call: CallOptions = {}): Promise<Execution> {
    return start(this.#wire, this.#path, command, options, call);
  }

  /** Returns a handle on a command by its `exec_id`; sends no request. */
  command(id: string): Execution {
    return new Execution(this.#wire, this.#path, id);
  }

  /** Returns a handle on a command, as `command` does. */
  execution(id: string): Execution {
    return this.command(id);
  }

  /** Yields the records of all commands of the last 7 days, the oldest first. */
  execs(call: CallOptions = {}): AsyncGenerator<Exec, void, undefined> {
    return listAll<Exec>(this.#wire, "execs", { path: this.#path + "/execs", ...call });
  }

  /** Yields the records of all commands, as `execs` does. */
  executions(call: CallOptions = {}): AsyncGenerator<Exec, void, undefined> {
    return this.execs(call);
  }

  /** Opens a terminal: a new one, or with `exec` one that exists. */
  tty(options: TtyOptions = {}, call: CallOptions = {}): Promise<Tty> {
    return Tty.open(this.#wire, this.#path, options, call);
  }

  // ---- snapshots --------------------------------------------------------------------------------

  /** Saves the files as they are now. */
  async snapshot(options: SnapshotRequest = {}, call: CallOptions = {}): Promise<Snapshot> {
    return (await this.#post<SnapshotAnswer>("/snapshots", options, call, { again: "unsent" })).snapshot;
  }

  /** Yields the snapshots of the session, the oldest first. */
  snapshots(call: CallOptions = {}): AsyncGenerator<Snapshot, void, undefined> {
    return listAll<Snapshot>(this.#wire, "snapshots", { path: this.#path + "/snapshots", ...call });
  }

  /** Deletes a snapshot of the session. */
  async deleteSnapshot(id: string, call: CallOptions = {}): Promise<void> {
    await this.#wire.json({ method: "DELETE", path: `${this.#path}/snapshots/${encodeBytes(id)}`, ...call });
  }

  /** Makes new sessions with the files of this one; they stay hibernated until they are used. */
  async fork(options: ForkRequest = {}, call: CallOptions = {}): Promise<OpenSession[]> {
    const { sessions } = await this.#post<Forks>("/fork", options, call, { again: "unsent" });
    return sessions.map((record) => new OpenSession(this.#wire, record, true));
  }

  /** Puts the files back to a snapshot; commands that run are ended. */
  async rollback(options: RollbackRequest, call: CallOptions = {}): Promise<Session> {
    return this.#change("/rollback", options, call, "unsent");
  }

  /** Leaves the session as it is. */
  async [Symbol.asyncDispose](): Promise<void> {}
}

/**
 * A session that `fork` made.
 *
 * `await using` deletes a session that `fork` or `enter` made without a key, thread or user; all others stay.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await using session = await client.enter();
 * const [fork] = await session.fork();
 * await using copy = fork!; // deleted before its original
 * console.log((await copy.exec("pwd")).exit_code); // 0
 * ```
 */
export class OpenSession extends SessionClient {
  /** The id of the session. */
  readonly id: string;
  readonly #temporary: boolean;

  constructor(
    wire: Wire,
    /** The record as it was when the session was made or entered. */
    readonly record: Session,
    temporary: boolean,
  ) {
    super(wire, record.id);
    this.id = record.id;
    this.#temporary = temporary && record.key === null && record.thread === null;
  }

  /** Deletes the session if it was made without a name. */
  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.#temporary) await this.delete();
  }
}

/**
 * A session that was entered, and how that went.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await using session = await client.enter({ limits: { memory_bytes: 256 << 20 } });
 * console.log(session.outcome, session.state_lost); // created false
 * ```
 */
export class EnteredSession extends OpenSession implements Entered {
  /** The record of the session. */
  readonly session: Session;
  /** Whether the session was created, reused, resumed or replaced. */
  readonly outcome: Outcome;
  /** Whether files of an earlier sandbox were lost. */
  readonly state_lost: boolean;
  /** Why files were lost, or why the last sandbox ended. */
  readonly cause: Entered["cause"];
  /** The time until the sandbox was ready. */
  readonly ready_ms: number;
  /** How the sandbox was started, or null if it was running. */
  readonly source: Entered["source"];
  /** Fields of the request that had no effect, because the session existed with other values. */
  readonly ignored: string[];

  constructor(wire: Wire, entered: Entered, nameless: boolean) {
    // a user's token finds the user's session without naming it
    super(wire, entered.session, nameless && (entered.session.user === null || entered.outcome === "created"));
    this.session = entered.session;
    this.outcome = entered.outcome;
    this.state_lost = entered.state_lost;
    this.cause = entered.cause;
    this.ready_ms = entered.ready_ms;
    this.source = entered.source;
    this.ignored = (entered as Partial<Entered>).ignored ?? []; // an older lodged says nothing
  }
}

export async function* progressOf(
  wire: Wire,
  path: string,
  call: CallOptions,
): AsyncGenerator<Progress, void, undefined> {
  const response = await wire.open({ method: "GET", path, headers: { accept: "text/event-stream" }, ...call });
  for await (const frame of frames<Progress>(wire, response)) yield frame.data;
}
