// SPDX-License-Identifier: Apache-2.0
// Sandbox: the main entry of this package.
import { randomUUID } from "node:crypto";

import {
  Command,
  CommandError,
  runCommand,
  type BackgroundRunOptions,
  type BytesRunOptions,
  type ListCommands,
  type Result,
  type RunOptions,
  type TextRunOptions,
} from "./command.js";
import { isAbsent, isLodgeError, lodgeError } from "./errors.js";
import type { Command as Words } from "./exec.js";
import type { LodgeClient, SessionFilter } from "./lodge.js";
import { mapItems, type MapOptions } from "./map.js";
import {
  CONNECTION,
  LIMITS,
  REQUEST,
  SETTINGS,
  callOf,
  checkOptions,
  clientOf,
  given,
  kindOf,
  limitsOf,
  requestOf,
  type ConnectionOptions,
  type CreateOptions,
  type GetOrCreateOptions,
  type RequestOptions,
  type SandboxLimits,
} from "./options.js";
import { Pty, type OpenPty, type PtyOptions } from "./pty.js";
import { Files } from "./sandbox_files.js";
import type { EnteredSession, SessionClient } from "./session.js";
import { Snapshot, forkOf, type ForkManyOptions, type ForkOptions } from "./snapshot.js";
import { statsOf, type SandboxStats } from "./stats.js";
import type { EnterRequest, Session, SessionState, Snapshot as Wire } from "./types.js";
import { addWords, type Hints } from "./words.js";

/** Options of {@link Sandbox.get}. */
export interface GetOptions extends ConnectionOptions, RequestOptions {}

/** Options of {@link Sandbox.list}. */
export interface ListOptions extends GetOptions {
  /** Lists only sandboxes of this end user. */
  user?: string | undefined;
  /** Lists only sandboxes in this state. */
  state?: SessionState | undefined;
  /** Lists only sandboxes whose metadata has this text as this member; one of them. */
  metadata?: Record<string, string> | undefined;
  /**
   * Lists sandboxes of another tenant, which needs a key with scope `admin`. They are listed only: to use one needs a key
   * of that tenant.
   */
  tenant?: string | undefined;
}

/** A sandbox without a name is deleted after this time if nobody uses or closes it. */
const TEMPORARY_MS = 86_400_000;

interface Origin {
  created: boolean;
  stateLost?: boolean;
  /** Made without a name: it is deleted at the end of its scope. */
  temporary: boolean;
}

/** The words of the API that options have another name for. */
const OPTION_OF: Record<string, string> = {
  "limits.memory_bytes": "memory",
  "limits.disk_bytes": "disk",
  "limits.cpus": "cpus",
  "limits.pids": "processes",
  "limits.file_bytes": "fileSize",
  idle_timeout_ms: "idleTimeoutMs",
  lifetime_ms: "lifetimeMs",
};

/** What an existing sandbox has otherwise is left as it is, and what it lost is not hidden. */
function warnAbout(client: LodgeClient, entered: EnteredSession): void {
  const name = entered.session.key ?? entered.id;
  const ignored = entered.ignored.map((field) => OPTION_OF[field] ?? field);
  if (ignored.length)
    client.warn(`sandbox ${name} already exists: ${ignored.join(", ")} ignored; setLimits() changes its limits`);
  if (entered.state_lost)
    client.warn(`sandbox ${name} lost its files and starts anew: ${entered.cause?.text ?? "the cause is unknown"}`);
}

/** A name that is missing would lead to another sandbox. */
function checkName(name: unknown): void {
  const wrong = typeof name === "string" || name == null ? "must not be empty" : `must be text, not ${kindOf(name)}`;
  if (typeof name !== "string" || name === "") throw lodgeError({ code: "INVALID", message: `name: ${wrong}` });
}

/** Ids begin so; everything else is a name. */
function refOf(nameOrId: string): string | { key: string } {
  return /^(ses|sbx)_/.test(nameOrId) ? nameOrId : { key: nameOrId };
}

/**
 * A Linux machine of its own to run code in.
 *
 * `await using` deletes it at the end of the scope if {@link Sandbox.create} made it without a name, and keeps it
 * otherwise. A sandbox that is not used hibernates and keeps its files; the next call wakes it. One without a name that is
 * never closed is deleted once it has been hibernated for a day.
 *
 * @example
 * ```ts
 * import { Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create({ memory: "512M", cpus: 1 });
 * const result = await box.run("echo hi", { timeoutMs: 5000 });
 * console.log(result.stdout, result.exitCode); // hi 0
 * ```
 */
export class Sandbox {
  /** The files of the sandbox. */
  readonly files: Files;
  /** @deprecated Use {@link Sandbox.get}. */
  declare static readonly connect: typeof Sandbox.get;
  /** @deprecated Use `get(id)`, then `delete()`. */
  declare static readonly kill: Hints<"Sandbox class">["kill"];
  /** @deprecated Use {@link Sandbox.delete}. */
  declare readonly kill: Sandbox["delete"];
  /** @deprecated Use {@link Sandbox.id}. */
  declare readonly sandboxId: string;
  /** Whether the call that returned this object made the sandbox. */
  readonly created: boolean;
  /** Whether the call that returned this object found that the files of the sandbox are gone. */
  readonly stateLost: boolean;
  readonly #client: LodgeClient;
  readonly #session: SessionClient;
  readonly #temporary: boolean;
  #record: Session;
  #deleted = false;

  static {
    addWords(Sandbox, "Sandbox class", "Sandbox");
    addWords(Sandbox.prototype, "Sandbox", "Sandbox");
  }

  /** @internal */
  constructor(client: LodgeClient, record: Session, origin: Origin) {
    if (!record) throw new TypeError("use Sandbox.create(), Sandbox.getOrCreate() or Sandbox.get()");
    this.#client = client;
    this.#record = record;
    this.#session = client.session(record.id);
    this.files = new Files(this.#session.files);
    this.created = origin.created;
    this.stateLost = origin.stateLost ?? false;
    this.#temporary = origin.temporary;
  }

  // ---- find and make ----------------------------------------------------------------------------

  /** Creates a sandbox; a name that exists is a {@link ConflictError}. */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    checkOptions("Sandbox.create", options, ["name"], SETTINGS, CONNECTION, REQUEST);
    const client = clientOf(options);
    const enter = (name: string | undefined) => {
      const request: EnterRequest = { ...requestOf(name, options), if_exists: "fail", idempotency_key: randomUUID() };
      if (options.name === undefined) request.delete_after_ms = TEMPORARY_MS;
      return client.enterSilently(request, callOf(options));
    };
    // a user alone would lead to the session of the user
    const fresh = () => "sandbox-" + randomUUID();
    const { name } = options;
    const entered = await enter(name ?? (options.user === undefined ? undefined : fresh())).catch((error: unknown) => {
      if (name !== undefined || !isLodgeError(error, "CONFLICT")) throw error;
      return enter(fresh()); // the key belongs to a user, who has a session
    });
    return new Sandbox(client, entered.session, { created: true, temporary: name === undefined });
  }

  /** Returns the sandbox with this name, running, and creates it if there is none. */
  static async getOrCreate(name: string, options: GetOrCreateOptions = {}): Promise<Sandbox> {
    checkOptions("Sandbox.getOrCreate", options, SETTINGS, CONNECTION, REQUEST);
    checkName(name);
    const client = clientOf(options);
    const entered = await client.enterSilently(requestOf(name, options), callOf(options));
    warnAbout(client, entered);
    const { outcome, state_lost: stateLost } = entered;
    return new Sandbox(client, entered.session, { created: outcome === "created", stateLost, temporary: false });
  }

  /** Returns the sandbox with this name or id, which must exist. */
  static async get(nameOrId: string, options: GetOptions = {}): Promise<Sandbox> {
    checkOptions("Sandbox.get", options, CONNECTION, REQUEST);
    checkName(nameOrId);
    const client = clientOf(options);
    const record = await client.session(refOf(nameOrId)).get(callOf(options));
    return new Sandbox(client, record, { created: false, temporary: false });
  }

  /** Yields all sandboxes, or those of a user, a state or a metadata member, the oldest first. */
  static async *list(options: ListOptions = {}): AsyncGenerator<Sandbox, void, undefined> {
    checkOptions("Sandbox.list", options, ["user", "state", "metadata", "tenant"], CONNECTION, REQUEST);
    const client = clientOf(options);
    const { user, state, metadata, tenant } = options;
    const filter: SessionFilter = given({ user, state, metadata, tenant });
    for await (const record of client.sessions(filter, callOf(options)))
      yield new Sandbox(client, record, { created: false, temporary: false });
  }

  /**
   * Runs a function for each item, each in a fresh sandbox that is deleted afterwards, and returns the results in order.
   *
   * After the first error no item is started; the error is thrown when the running ones have ended, and its `index` is
   * that of the item.
   */
  static async map<T, R>(
    fn: (box: Sandbox, item: T, index: number) => R | Promise<R>,
    items: Iterable<T>,
    options: MapOptions = {},
  ): Promise<R[]> {
    return mapItems(fn, items, options, (settings) => Sandbox.create(settings));
  }

  // ---- its record -------------------------------------------------------------------------------

  /** The id that lodge gave it. */
  get id(): string {
    return this.#record.id;
  }

  /** The name that it was created with, or null. */
  get name(): string | null {
    return this.#record.key;
  }

  /** The state when the record was last read or a call changed it; {@link Sandbox.refresh} reads it again. */
  get state(): SessionState | "paused" | "deleted" {
    if (this.#deleted) return "deleted";
    return this.#record.state === "active" && this.#record.paused ? "paused" : this.#record.state;
  }

  /** Whether it had running processes when the record was last read. */
  get isRunning(): boolean {
    return this.state === "active";
  }

  /** The time when its processes end unless it is extended, or null while it is not running. */
  get expiresAt(): Date | null {
    return this.#record.expires_at === null ? null : new Date(this.#record.expires_at);
  }

  /** Reads the record again; counts as no use. */
  async refresh(options: RequestOptions = {}): Promise<this> {
    checkOptions("refresh", options, REQUEST);
    this.#record = await this.#session.get(callOf(options));
    return this;
  }

  // ---- commands ---------------------------------------------------------------------------------

  /** Runs a command in the background and returns at once. */
  run(command: Words, options: BackgroundRunOptions): Promise<Command>;
  /** Runs a command to its end and returns its output as bytes. */
  run(command: Words, options: BytesRunOptions): Promise<Result<Uint8Array>>;
  /**
   * Runs a command to its end: bash text, or a list of a program and its arguments.
   *
   * A command that fails is a result, unless `check` is set. A `signal` ends the wait, not the command.
   */
  run(command: Words, options?: TextRunOptions): Promise<Result>;
  async run(command: Words, options: RunOptions = {}): Promise<unknown> {
    return this.#using(runCommand(this.#session, command, options));
  }

  /** Waits for a call that wakes the sandbox, and then asks for the state if that was another. */
  async #using<T>(call: Promise<T>): Promise<T> {
    try {
      const made = await call;
      await this.#look();
      return made;
    } catch (error) {
      if (error instanceof CommandError) await this.#look();
      throw error;
    }
  }

  async #look(): Promise<void> {
    if (!this.isRunning) this.#record = await this.#session.get().catch(() => this.#record);
  }

  /** Returns a command that was started before, by its id; sends no request. */
  command(id: string): Command {
    return new Command(this.#session.command(id));
  }

  /** Lists the commands of the last 7 days, the oldest first; with `running` only those that run. */
  get commands(): ListCommands {
    const list = (...given: Parameters<ListCommands>) => this.#commands(...given);
    return addWords(list, "Sandbox.commands", "Sandbox.commands()") as unknown as ListCommands;
  }

  async #commands(options: RequestOptions & { running?: boolean | undefined } = {}): Promise<Command[]> {
    checkOptions("commands", options, ["running"], REQUEST);
    const found: Command[] = [];
    for await (const exec of this.#session.execs(callOf(options)))
      if (!options.running || exec.state === "running") found.push(new Command(this.#session.command(exec.exec_id), exec));
    return found;
  }

  /** Opens a terminal with a command, or with a login shell. */
  get pty(): OpenPty {
    const open = (...given: Parameters<OpenPty>) => this.#pty(...given);
    return addWords(open, "Sandbox.pty", "Sandbox.pty()") as unknown as OpenPty;
  }

  async #pty(command?: string, options: PtyOptions = {}): Promise<Pty> {
    if (command !== undefined && typeof command !== "string")
      throw new TypeError(`pty: the command must be text, not ${kindOf(command)}; options are second: pty(undefined, { cols: 100 })`);
    checkOptions("pty", options, ["rows", "cols", "cwd", "user"], REQUEST);
    const { rows, cols, cwd, user } = options;
    const opened = this.#session.tty(given({ command, rows, cols, cwd, user }), callOf(options));
    return new Pty(this.#session, await this.#using(opened));
  }

  // ---- directories ------------------------------------------------------------------------------

  /** Copies a local directory into the sandbox, by default under its own name; short for `files.upload`. */
  async uploadDir(local: string, remote?: string, options: RequestOptions = {}): Promise<void> {
    await this.files.upload(local, remote, options);
  }

  /** Copies a directory of the sandbox into a local one; short for `files.download`. */
  async downloadDir(remote: string, local: string, options: RequestOptions = {}): Promise<void> {
    await this.files.download(remote, local, options);
  }

  // ---- snapshots --------------------------------------------------------------------------------

  /** Saves the files as they are now; commands go on. */
  async snapshot(name?: string, options: RequestOptions = {}): Promise<Snapshot> {
    checkOptions("snapshot", options, REQUEST);
    return this.#snapshotOf(await this.#session.snapshot(given({ name }), callOf(options)));
  }

  /** Lists the snapshots of this sandbox, the oldest first. */
  async snapshots(options: RequestOptions = {}): Promise<Snapshot[]> {
    checkOptions("snapshots", options, REQUEST);
    const found: Snapshot[] = [];
    for await (const record of this.#session.snapshots(callOf(options))) found.push(this.#snapshotOf(record));
    return found;
  }

  #snapshotOf(record: Wire): Snapshot {
    return new Snapshot(this.#client, record, (session) => (this.#record = session));
  }

  /** Puts the files back to one of its snapshots, or to that of a name or id; commands that run are ended. */
  async rollback(snapshot: string | Snapshot, options: RequestOptions = {}): Promise<void> {
    checkOptions("rollback", options, REQUEST);
    if (!snapshot || !(typeof snapshot === "string" || snapshot instanceof Snapshot)) {
      const shown = snapshot === "" ? '""' : kindOf(snapshot);
      const message = `snapshot: must be a Snapshot, or the name or id of one, not ${shown}`;
      throw lodgeError({ code: "INVALID", message });
    }
    const named = (one: Snapshot) => one.id === snapshot || one.name === snapshot;
    const found = typeof snapshot === "string" ? (await this.snapshots(options)).find(named) : snapshot;
    this.#record = await this.#session.rollback({ snapshot: found?.id ?? String(snapshot) }, callOf(options));
  }

  /** Makes a new sandbox with the files and settings of this one as they are now. */
  fork(options?: ForkOptions): Promise<Sandbox>;
  /** Makes several new sandboxes with the files and settings of this one as they are now. */
  fork(options: ForkManyOptions): Promise<Sandbox[]>;
  async fork(options: ForkOptions | ForkManyOptions = {}): Promise<Sandbox | Sandbox[]> {
    return forkOf(this.#client, this.#session, undefined, options);
  }

  // ---- its life ---------------------------------------------------------------------------------

  /** Freezes all processes; the next use continues them. */
  async pause(options: RequestOptions = {}): Promise<void> {
    checkOptions("pause", options, REQUEST);
    this.#record = await this.#session.pause({}, callOf(options));
  }

  /** Continues a paused sandbox, or starts a hibernated one with its files. */
  async resume(options: RequestOptions = {}): Promise<void> {
    await this.refresh(options);
    if (this.#record.paused) this.#record = await this.#session.unpause({}, callOf(options));
    else this.#record = (await this.#session.resume({}, callOf(options))).session;
  }

  /** Ends all processes and keeps the files; the next use starts it again. */
  async hibernate(options: RequestOptions = {}): Promise<void> {
    checkOptions("hibernate", options, REQUEST);
    this.#record = await this.#session.hibernate({}, callOf(options));
  }

  /**
   * Postpones the end of its processes by this time, 20 minutes by default, and returns the new end. At the maximum
   * lifetime it moves by less, with a warning that has the bound and the new end.
   */
  async extend(ms?: number, options: RequestOptions = {}): Promise<Date | null> {
    checkOptions("extend", options, REQUEST);
    const extended = await this.#session.extend(given({ ms }), callOf(options));
    this.#record = extended;
    const moved = extended.extended_by_ms;
    if (extended.reason) {
      const asked = ms === undefined ? "" : ` of ${ms}`;
      const end = this.expiresAt?.toISOString();
      this.#client.warn(`sandbox ${this.name ?? this.id}: extended by ${moved}${asked} ms: ${extended.reason}; it ends at ${end}`);
    }
    return this.expiresAt;
  }

  /** Changes limits; they apply at once, also to running commands. */
  async setLimits(limits: SandboxLimits & RequestOptions): Promise<void> {
    checkOptions("setLimits", limits, LIMITS, REQUEST);
    this.#record = await this.#session.patch({ limits: limitsOf(limits) ?? {} }, callOf(limits));
  }

  /** Returns what the sandbox uses now, and its peaks. */
  async stats(options: RequestOptions = {}): Promise<SandboxStats> {
    checkOptions("stats", options, REQUEST);
    return statsOf(await this.#session.stats(callOf(options)));
  }

  /** Deletes the sandbox with its files, from every state. */
  async delete(options: RequestOptions = {}): Promise<void> {
    checkOptions("delete", options, REQUEST);
    await this.#session.delete({}, callOf(options));
    this.#record = { ...this.#record, expires_at: null };
    this.#deleted = true;
  }

  /** Deletes the sandbox if it was made without a name, and keeps it otherwise. */
  async close(): Promise<void> {
    if (!this.#temporary || this.#deleted) return;
    await this.delete().catch((error: unknown) => {
      if (!isAbsent(error)) throw error;
    });
  }

  /** Closes the sandbox at the end of an `await using` scope, as {@link Sandbox.close} does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

// words of other services, which the compiler then explains
export interface Sandbox extends Hints<"Sandbox"> {}
