// SPDX-License-Identifier: Apache-2.0
// All that can be done with one session.
import { LodgeError } from "./errors.js";
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
  ForkRequest,
  Forks,
  IfVersion,
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

/** The id that lodge gave it, or the key that the caller did. */
export type SessionRef = string | { id: string } | { key: string } | { session: Session };

export function sessionPath(ref: SessionRef): string {
  if (typeof ref !== "string" && "key" in ref) return "/v1/sessions/key:" + encodeBytes(ref.key);
  const id = typeof ref === "string" ? ref : "session" in ref ? ref.session.id : ref.id;
  if (!id) throw new LodgeError({ code: "INVALID", message: "a session's id is needed, or { key }" });
  return "/v1/sessions/" + encodeBytes(id);
}

/** By the second try a key may lead to another session. */
function againOf(ref: SessionRef): Again {
  return (typeof ref === "string" ? ref.startsWith("key:") : "key" in ref) ? "unsent" : "safe";
}

/** A session by its id or key. Making one asks nothing: it need not be there yet. */
export class SessionClient {
  readonly files: Files;
  readonly #wire: Wire;
  readonly #path: string;
  readonly #again: Again;

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

  /** Its record; changes nothing and extends nothing. */
  async get(call: CallOptions = {}): Promise<Session> {
    return (await this.#wire.json<SessionAnswer>({ method: "GET", path: this.#path, ...call })).session;
  }

  async patch(patch: SessionPatch, call: CallOptions = {}): Promise<Session> {
    const again = patch.if_version === undefined ? this.#again : "unsent";
    return (await this.#wire.json<SessionAnswer>({ method: "PATCH", path: this.#path, json: patch, again, ...call }))
      .session;
  }

  /** Destroys it with its files, from every state; of one that is gone: success, with its tombstone. */
  async delete(options: { reason?: string } = {}, call: CallOptions = {}): Promise<Tombstone["tombstone"]> {
    const { reason } = options;
    const question = { method: "DELETE", path: this.#path, query: { reason }, again: this.#again };
    return (await this.#wire.json<Tombstone>({ ...question, ...call })).tombstone;
  }

  // ---- its life ---------------------------------------------------------------------------------

  /** Whether its sandbox answers; extends nothing. */
  async probe(options: ProbeRequest = {}, call: CallOptions = {}): Promise<ProbeAnswer> {
    return this.#post<ProbeAnswer>("/probe", options, call);
  }

  /** CONFLICT unless it is active. */
  async extend(options: ExtendRequest = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/extend", options, call);
  }

  /** Counts as a use. CONFLICT unless it is active. */
  async activity(call: CallOptions = {}): Promise<Session> {
    return this.#change("/activity", {}, call);
  }

  // not repeated: another call may have undone it meanwhile, such as by entering
  async pause(options: IfVersion = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/pause", options, call, "unsent");
  }

  async unpause(options: IfVersion = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/unpause", options, call, "unsent");
  }

  async hibernate(options: IfVersion = {}, call: CallOptions = {}): Promise<Session> {
    return this.#change("/hibernate", options, call, "unsent");
  }

  async resume(options: IfVersion = {}, call: CallOptions = {}): Promise<Entered> {
    return this.#post<Entered>("/resume", options, call);
  }

  /** Memory, processor time, processes and disk, now and at most. CONFLICT if it has no sandbox. */
  async stats(call: CallOptions = {}): Promise<Stats["stats"]> {
    return (await this.#wire.json<Stats>({ method: "GET", path: this.#path + "/stats", ...call })).stats;
  }

  /** How far its start is: the latest. */
  async progress(call: CallOptions = {}): Promise<Progress> {
    return this.#wire.json<Progress>({ method: "GET", path: this.#path + "/progress", ...call });
  }

  /** The same as it goes on, until it is ready or has failed. */
  watchProgress(call: CallOptions = {}): AsyncGenerator<Progress, void, undefined> {
    return progressOf(this.#wire, this.#path + "/progress", call);
  }

  // ---- commands ---------------------------------------------------------------------------------

  /**
   * Runs a command and waits for its end; one that fails is a success of the call. With its idempotency key it is
   * asked for again when the connection breaks, and runs once. The last 8 MiB of each stream come along. After
   * `timeout_ms` (default 30000; 0: never) all it started is killed; a `signal` ends the call, not the command.
   */
  exec(command: Command, options: ExecOptions = {}, call: CallOptions = {}): Promise<ExecOutcome> {
    return run(this.#wire, this.#path, command, options, call);
  }

  /**
   * The same as events while it runs, with the same `timeout_ms`. A slow reader slows the command; a broken connection or a lodged that starts
   * again is bridged by offset. Leaving the stream does not end it: see `kill` of `execution`.
   */
  stream(
    command: Command,
    options: StreamOptions = {},
    call: CallOptions = {},
  ): AsyncGenerator<ExecEvent, void, undefined> {
    return stream(this.#wire, this.#path, command, options, call);
  }

  /**
   * Starts it in the background, with no time limit unless `timeout_ms` says one. Its input stays open unless
   * `stdin_open` is false.
   */
  start(command: Command, options: BackgroundOptions = {}, call: CallOptions = {}): Promise<Execution> {
    return start(this.#wire, this.#path, command, options, call);
  }

  /** A command that was started before, by its `exec_id`. */
  execution(id: string): Execution {
    return new Execution(this.#wire, this.#path, id);
  }

  /** All that were started in the last 7 days, the oldest first. */
  executions(call: CallOptions = {}): AsyncGenerator<Exec, void, undefined> {
    return listAll<Exec>(this.#wire, "execs", { path: this.#path + "/execs", ...call });
  }

  /** A terminal: a new one, or with `exec` one that is there. */
  tty(options: TtyOptions = {}, call: CallOptions = {}): Promise<Tty> {
    return Tty.open(this.#wire, this.#path, options, call);
  }

  // ---- snapshots --------------------------------------------------------------------------------

  async snapshot(options: SnapshotRequest = {}, call: CallOptions = {}): Promise<Snapshot> {
    return (await this.#post<SnapshotAnswer>("/snapshots", options, call, { again: "unsent" })).snapshot;
  }

  snapshots(call: CallOptions = {}): AsyncGenerator<Snapshot, void, undefined> {
    return listAll<Snapshot>(this.#wire, "snapshots", { path: this.#path + "/snapshots", ...call });
  }

  async deleteSnapshot(id: string, call: CallOptions = {}): Promise<void> {
    await this.#wire.json({ method: "DELETE", path: `${this.#path}/snapshots/${encodeBytes(id)}`, ...call });
  }

  /** New sessions with its files; they stay hibernated until they are used. */
  async fork(options: ForkRequest = {}, call: CallOptions = {}): Promise<Session[]> {
    return (await this.#post<Forks>("/fork", options, call, { again: "unsent" })).sessions;
  }

  /** Back to one of its snapshots. What runs is ended. */
  async rollback(options: RollbackRequest, call: CallOptions = {}): Promise<Session> {
    return this.#change("/rollback", options, call, "unsent");
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
