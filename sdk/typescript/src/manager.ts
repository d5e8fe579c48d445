// SPDX-License-Identifier: Apache-2.0
// One sandbox for each key, found, kept alive, resumed or replaced as needed. The rules are lodged's, and so is the
// memory: whatever is asked here is asked there.
import { isAbsent, isLodgeError, lodgeError } from "./errors.js";
import { listen, type CallOptions } from "./http.js";
import { LodgeClient, type LodgeClientOptions } from "./lodge.js";
import type { Cause, EnterRequest, Entered, Outcome, Session, SessionState } from "./types.js";

/** A session of a {@link SandboxSessionManager}. */
export interface SandboxSession {
  /** The id of the running sandbox, another one after each resume, or null. */
  readonly sandboxId: string | null;
  /** The user it belongs to. */
  readonly userId: string;
  /** The time when it was made, in milliseconds since 1970 as all times here. */
  readonly createdAt: number;
  /** The time when its sandbox is hibernated unless it is used before, or null if it has none now. */
  readonly expiresAt: number | null;
  /** The time of its last use. */
  readonly lastUsedAt: number;
  /** `running` or `paused` if it has a sandbox, else its state. */
  readonly status: "running" | "paused" | Exclude<SessionState, "active">;
}

/** Times of the sessions of a {@link SandboxSessionManager}. */
export interface SandboxSessionManagerConfig {
  /** The time until a new, resumed or extended sandbox is hibernated, 300000 by default. */
  readonly defaultTimeoutMs?: number;
  /** The time that a sandbox has at least after each use, 120000 by default. */
  readonly extendOnAccessMs?: number;
  /** The time that no sandbox outlives, however much it is used, 2700000 by default. */
  readonly maxTimeoutMs?: number;
}

/** What getOrCreateSession() had to do for it. */
interface SandboxSessionOutcome {
  /** `created`: new. `reused`: it ran. `resumed`: it slept, its files are there. `replaced`: they are not. */
  readonly outcome: Outcome;
  /** Files of an earlier sandbox are gone; `cause` says why. */
  readonly stateLost: boolean;
  readonly cause: Cause | null;
}

interface SandboxSessionOptions extends CallOptions {
  /** Whose session it is; default: the key itself. */
  userId?: string;
  /** The id of a session or sandbox: that one, or a CONFLICT. One that this manager did not create is only borrowed. */
  pin?: string;
}

/** Keys of what was done, of what could not be, and of what is another's. */
interface SandboxSessionCleanup {
  readonly destroyed: string[];
  readonly failed: { readonly session: string; readonly error: unknown }[];
  /** Borrowed: they live on. */
  readonly kept: string[];
}

interface SandboxSessionCloseOptions extends CallOptions {
  /**
   * What becomes of the sessions that were entered here and are not borrowed. `keep`, the default: they stay, and
   * lodged hibernates them when their time is over, as if this process had just ended. `hibernate`, `destroy`: now.
   */
  sessions?: "keep" | "hibernate" | "destroy";
}

/** Keys of the sessions that were entered here, by what became of them. */
interface SandboxSessionClosed extends SandboxSessionCleanup {
  readonly hibernated: string[];
}

/** What a {@link SandboxSessionManager} does. */
export interface ISandboxSessionManager extends AsyncDisposable {
  /** Returns a session with a running sandbox, whatever became of the last one. */
  getOrCreateSession(key: string, options?: SandboxSessionOptions): Promise<SandboxSession & SandboxSessionOutcome>;
  /** Returns the record of a session, or null; changes nothing. */
  getSession(key: string, call?: CallOptions): Promise<SandboxSession | null>;
  /** Returns whether the sandbox of a session responds now; changes nothing. */
  isSessionValid(key: string, call?: CallOptions): Promise<boolean>;
  /** Postpones the deadline of a session; false if there is nothing to extend, or it is at its maximum. */
  extendSession(key: string, call?: CallOptions): Promise<boolean>;
  /** Deletes a session; true if nothing of it is left, false if it is borrowed and lives on. */
  invalidateSession(key: string, call?: CallOptions): Promise<boolean>;
  /** Deletes every session of a user, except borrowed ones. */
  cleanupUserSessions(userId: string, call?: CallOptions): Promise<SandboxSessionCleanup>;
  /** Deletes all sessions that managers of this name made; one failure does not stop the rest. */
  cleanup(call?: CallOptions): Promise<SandboxSessionCleanup>;
  /** Returns how many of the sessions of managers of this name run. */
  getActiveSessionCount(call?: CallOptions): Promise<number>;
  /** Returns whether a session has a running sandbox. */
  hasActiveSession(key: string, call?: CallOptions): Promise<boolean>;
  /**
   * Waits for calls of getOrCreateSession() that are under way, then closes the connections.
   *
   * Later calls fail. One failure does not stop the rest; a second close() has the result of the first.
   */
  close(options?: SandboxSessionCloseOptions): Promise<SandboxSessionClosed>;
}

interface ManagerOptions extends LodgeClientOptions {
  /** Instead of one of its own. */
  client?: LodgeClient;
  /** Managers of one name share their sessions; default "default". */
  name?: string;
  /** What new sessions have: template, limits, env, metadata ... */
  session?: Omit<
    EnterRequest,
    | "key"
    | "user"
    | "thread"
    | "pin"
    | "idle_timeout_ms"
    | "lifetime_ms"
    | "max_lifetime_ms"
    | "if_exists"
    | "asleep"
    | "idempotency_key"
  >;
}

const DEFAULTS: Required<SandboxSessionManagerConfig> = {
  defaultTimeoutMs: 300_000,
  extendOnAccessMs: 120_000,
  maxTimeoutMs: 2_700_000,
};
const BUFFER_MS = 10_000; // lodged puts a sandbox to sleep so long before its lifetime is over
const USER_MOST = 127; // bytes
const RACES_MOST = 3;
const AT_ONCE = 8;
/** In the metadata of a session: the name of the manager that made it. */
const MARK = "sandbox_session_manager";

function check(config: Required<SandboxSessionManagerConfig>): Required<SandboxSessionManagerConfig> {
  for (const [name, value] of Object.entries(config))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RangeError(`${name}: a whole number of milliseconds above 0 is needed, not ${String(value)}`);
  return config;
}

function given(config: SandboxSessionManagerConfig): SandboxSessionManagerConfig {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}

/** When lodged hibernates it unless it is used. */
function deadline(s: Session): number | null {
  const ends = [s.hibernate_at, s.expires_at === null ? null : s.expires_at - BUFFER_MS].filter(
    (at): at is number => at !== null,
  );
  return s.state === "active" && ends.length ? Math.min(...ends) : null;
}

function recordOf(s: Session, key: string): SandboxSession {
  return {
    sandboxId: s.sandbox,
    userId: s.user ?? key,
    createdAt: s.created_at,
    expiresAt: deadline(s),
    lastUsedAt: s.last_activity_at ?? s.created_at,
    status: s.state !== "active" ? s.state : s.paused ? "paused" : "running",
  };
}

function isActive(s: Session): boolean {
  return s.state === "active" && s.runtime === "live";
}

/** `null` if it does not exist, or no longer. */
async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

/**
 * Finds, creates, extends and ends one session for each key.
 *
 * lodged keeps the sessions and enforces their times, also when this process has ended.
 *
 * @example
 * ```ts
 * import { SandboxSessionManager } from "lodge-sandbox";
 *
 * const manager = new SandboxSessionManager({ defaultTimeoutMs: 300_000 });
 * const session = await manager.getOrCreateSession("alice");
 * console.log(session.status, session.outcome); // running created
 * await manager.invalidateSession("alice");
 * await manager.close();
 * ```
 */
export class SandboxSessionManager implements ISandboxSessionManager {
  /** The client of the manager, for everything else: `manager.client.session({ key }).exec("...")`. */
  readonly client: LodgeClient;
  /** The times of its sessions. */
  readonly config: Readonly<Required<SandboxSessionManagerConfig>>;
  readonly #name: string;
  readonly #session: ManagerOptions["session"];
  readonly #flights = new Map<string, Promise<SandboxSession & SandboxSessionOutcome>>();
  /** Ids of sessions that others made and that were entered here. */
  readonly #borrowed = new Set<string>();
  /** Those that managers of this name made, with their keys. */
  readonly #entered = new Map<string, string>();
  readonly #ownsClient: boolean;
  #closing: Promise<SandboxSessionClosed> | undefined;

  /** Makes a manager; sends no request. */
  constructor(config: SandboxSessionManagerConfig = {}, options: ManagerOptions = {}) {
    const { client, name, session, ...where } = options;
    this.config = Object.freeze(check({ ...DEFAULTS, ...given(config) }));
    this.client = client ?? new LodgeClient(where);
    this.#ownsClient = client === undefined;
    this.#name = name ?? "default";
    this.#session = session;
  }

  // ---- get or create ----------------------------------------------------------------------------

  getOrCreateSession(
    key: string,
    options: SandboxSessionOptions = {},
  ): Promise<SandboxSession & SandboxSessionOutcome> {
    const { signal, ...asked } = options;
    if (this.#closing) return Promise.reject(lodgeError({ code: "CONNECTION", message: "this manager is closed" }));
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const name = JSON.stringify([key, asked.userId, asked.pin]);
    const running = this.#flights.get(name);
    let flight: Promise<SandboxSession & SandboxSessionOutcome>;
    if (running) {
      // only the first caller made it
      flight = running.then((session) => ({ ...session, outcome: "reused" }));
    } else {
      flight = this.#enter(key, asked).finally(() => this.#flights.delete(name));
      this.#flights.set(name, flight);
    }
    return signal ? abandonable(flight, signal) : flight;
  }

  async #enter(
    key: string,
    options: Omit<SandboxSessionOptions, "signal">,
  ): Promise<SandboxSession & SandboxSessionOutcome> {
    const { userId, pin, ...call } = options;
    for (let tries = 1; ; tries++) {
      const entered = await this.#ask(key, userId, pin, call);
      if (this.#isOurs(entered.session)) this.#entered.set(entered.session.id, key);
      else this.#borrowed.add(entered.session.id);
      try {
        const session = await this.#keep(entered, call);
        return {
          ...recordOf(session, key),
          outcome: entered.outcome,
          stateLost: entered.state_lost,
          cause: entered.cause,
        };
      } catch (error) {
        // it ended in between: what comes next is found out by entering again
        if (tries === RACES_MOST || !isLodgeError(error, "CONFLICT", "NOT_FOUND", "GONE")) throw error;
      }
    }
  }

  /** As the user's; a session of this key that belongs to another user is entered without a user. */
  async #ask(key: string, userId: string | undefined, pin: string | undefined, call: CallOptions): Promise<Entered> {
    const { defaultTimeoutMs, extendOnAccessMs, maxTimeoutMs } = this.config;
    const user = userId ?? (Buffer.byteLength(key) <= USER_MOST ? key : undefined);
    const request: EnterRequest = {
      ...this.#session,
      key,
      ...(user === undefined ? {} : { user }),
      ...(pin === undefined ? {} : { pin }),
      idle_timeout_ms: Math.min(defaultTimeoutMs, extendOnAccessMs),
      lifetime_ms: maxTimeoutMs + BUFFER_MS,
      max_lifetime_ms: maxTimeoutMs + BUFFER_MS,
      metadata: { ...this.#session?.metadata, [MARK]: this.#name },
    };
    try {
      return this.#told(await this.client.enterSilently(request, call));
    } catch (error) {
      if (userId !== undefined || user === undefined || !isLodgeError(error, "CONFLICT")) throw error;
      const there = await orNull(this.client.session({ key }).get(call));
      if (!there || there.user === null || there.user === user) throw error;
      const { user: _, ...withoutUser } = request;
      return this.#told(await this.client.enterSilently(withoutUser, call));
    }
  }

  /** Warns of what its owner configured in vain; the times of a borrowed session may well be others. */
  #told(entered: Entered): Entered {
    const configured = new Set(Object.keys(this.#session ?? {}));
    configured.delete("metadata"); // a borrowed session has another mark
    this.client.warnIgnored(entered, (field) => configured.has(field.split(".")[0]!));
    return entered;
  }

  /**
   * lodged gives each use the smaller of the two times. The other one is asked for where it is due: never past the
   * lifetime, and never to shorten anything.
   */
  async #keep(entered: Entered, call: CallOptions): Promise<Session> {
    const { defaultTimeoutMs, extendOnAccessMs } = this.config;
    const ms = entered.outcome === "reused" ? extendOnAccessMs : defaultTimeoutMs;
    if (ms <= entered.session.idle_timeout_ms) return entered.session;
    return this.client.session(entered.session.id).extend({ ms }, call);
  }

  #isOurs(session: Session): boolean {
    return session.metadata[MARK] === this.#name;
  }

  // ---- looking ----------------------------------------------------------------------------------

  async getSession(key: string, call: CallOptions = {}): Promise<SandboxSession | null> {
    const session = await orNull(this.client.session({ key }).get(call));
    return session && recordOf(session, key);
  }

  async isSessionValid(key: string, call: CallOptions = {}): Promise<boolean> {
    const probe = await orNull(this.client.session({ key }).probe({}, call));
    return probe !== null && probe.status === "connected" && probe.verified;
  }

  /** Returns whether a session has a running sandbox. */
  async hasActiveSession(key: string, call: CallOptions = {}): Promise<boolean> {
    const session = await orNull(this.client.session({ key }).get(call));
    return session !== null && isActive(session);
  }

  async getActiveSessionCount(call: CallOptions = {}): Promise<number> {
    let count = 0;
    const filter = { state: "active" as const, metadata: { [MARK]: this.#name } };
    for await (const session of this.client.sessions(filter, call)) if (isActive(session)) count++;
    return count;
  }

  // ---- longer -----------------------------------------------------------------------------------

  async extendSession(key: string, call: CallOptions = {}): Promise<boolean> {
    const { defaultTimeoutMs, extendOnAccessMs } = this.config;
    const session = this.client.session({ key });
    try {
      const before = deadline(await session.get(call));
      const after = deadline(await session.extend({ ms: Math.max(defaultTimeoutMs, extendOnAccessMs) }, call));
      return before !== null && after !== null && after > before;
    } catch (error) {
      if (isAbsent(error) || isLodgeError(error, "CONFLICT")) return false;
      throw error;
    }
  }

  // ---- away -------------------------------------------------------------------------------------

  async invalidateSession(key: string, call: CallOptions = {}): Promise<boolean> {
    const session = await orNull(this.client.session({ key }).get(call));
    if (!session) return true;
    if (!this.#isOurs(session)) return false;
    await orNull(this.client.session(session.id).delete({}, call));
    this.#entered.delete(session.id);
    return true;
  }

  async cleanupUserSessions(userId: string, call: CallOptions = {}): Promise<SandboxSessionCleanup> {
    return this.#destroyAll(this.client.sessions({ user: userId }, call), (s) => !this.#borrowed.has(s.id), call);
  }

  async cleanup(call: CallOptions = {}): Promise<SandboxSessionCleanup> {
    const done = await this.#destroyAll(
      this.client.sessions({ metadata: { [MARK]: this.#name } }, call),
      () => true,
      call,
    );
    for (const id of this.#borrowed) {
      const session = await orNull(this.client.session(id).get(call));
      if (session) done.kept.push(session.key ?? id);
      else this.#borrowed.delete(id);
    }
    return done;
  }

  async #destroyAll(
    sessions: AsyncIterable<Session>,
    may: (s: Session) => boolean,
    call: CallOptions,
  ): Promise<SandboxSessionCleanup> {
    const done: SandboxSessionCleanup = { destroyed: [], failed: [], kept: [] };
    const all: Session[] = [];
    for await (const session of sessions) all.push(session);
    const away = async (s: Session) => {
      const session = s.key ?? s.id;
      if (!may(s)) return void done.kept.push(session);
      try {
        await orNull(this.client.session(s.id).delete({}, call));
        this.#entered.delete(s.id);
        done.destroyed.push(session);
      } catch (error) {
        done.failed.push({ session, error });
      }
    };
    for (let at = 0; at < all.length; at += AT_ONCE) await Promise.all(all.slice(at, at + AT_ONCE).map(away));
    return done;
  }

  // ---- the end ----------------------------------------------------------------------------------

  close(options: SandboxSessionCloseOptions = {}): Promise<SandboxSessionClosed> {
    return (this.#closing ??= this.#close(options));
  }

  /** Closes the manager at the end of an `await using` scope. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(options: SandboxSessionCloseOptions): Promise<SandboxSessionClosed> {
    const { sessions = "keep", ...call } = options;
    const done: SandboxSessionClosed = { destroyed: [], hibernated: [], failed: [], kept: [] };
    const end = async ([id, session]: [string, string]) => {
      if (sessions === "keep") return void done.kept.push(session);
      try {
        await (sessions === "destroy" ? this.#destroy(id, call) : this.#hibernate(id, call));
        done[sessions === "destroy" ? "destroyed" : "hibernated"].push(session);
      } catch (error) {
        done.failed.push({ session, error });
      }
    };
    try {
      await Promise.allSettled(this.#flights.values());
      const all = [...this.#entered];
      for (let at = 0; at < all.length; at += AT_ONCE) await Promise.all(all.slice(at, at + AT_ONCE).map(end));
      return done;
    } finally {
      if (this.#ownsClient) this.client.close();
    }
  }

  async #destroy(id: string, call: CallOptions): Promise<void> {
    await orNull(this.client.session(id).delete({}, call));
  }

  /** One that has no sandbox is as wanted already. */
  async #hibernate(id: string, call: CallOptions): Promise<void> {
    try {
      await orNull(this.client.session(id).hibernate({}, call));
    } catch (error) {
      if (!isLodgeError(error, "CONFLICT")) throw error;
    }
  }
}

/** One of several waiting callers may abort without affecting the others. */
function abandonable<T>(flight: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    if (signal.aborted) leave();
    listen(signal, leave);
    flight.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}
