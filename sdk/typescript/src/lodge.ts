// SPDX-License-Identifier: Apache-2.0
// A client of one lodged.
import { randomUUID } from "node:crypto";

import { Keys, Policies, Snapshots, Templates, Users } from "./admin.js";
import { isAbsent, isLodgeError } from "./errors.js";
import { frames } from "./frames.js";
import { checkHooks, type HookOptions } from "./hooks.js";
import { Wire, checkMs, rest, type CallOptions } from "./http.js";
import type { NodeAgentOptions } from "./node_types.js";
import { listAll } from "./pages.js";
import { findPlace } from "./place.js";
import { Projects, Teams } from "./projects.js";
import { EnteredSession, SessionClient, progressOf, type SessionRef } from "./session.js";
import type {
  EnterRequest,
  Entered,
  Event,
  EventList,
  Health,
  Index,
  Progress,
  Ready,
  Session,
  SessionState,
} from "./types.js";
import { versionsWith, type Versions } from "./version.js";

/** Options of a {@link LodgeClient}. */
export interface LodgeClientOptions extends HookOptions {
  /**
   * The address of lodged: `unix:/path/lodge.sock`, `http://HOST:PORT` or `https://HOST`. Default: `LODGE_URL`, else
   * the local service.
   */
  url?: string;
  /** The API key; null sends none. Default: `LODGE_API_KEY`, else the key of the local service. */
  apiKey?: string | null;
  /** The time limit of a call that sets none, 60000 by default; 0 is no limit. */
  timeoutMs?: number;
  /**
   * The time for which requests that are safe to repeat are repeated when lodged does not answer. Default: 15000, but
   * 1500 until lodged was reached once.
   */
  retryMs?: number;
  /** Options of https connections, such as `ca`. */
  tls?: NodeAgentOptions;
  /**
   * Receives a warning when a request had less effect than asked, such as limits for a session that exists. Default:
   * `console.warn`; null drops warnings.
   */
  onWarning?: Warn | null;
}

/** A function that receives warnings. */
export type Warn = (message: string) => void;

/** Filters of {@link LodgeClient.sessions}. */
export interface SessionFilter {
  /** Lists only sessions of this end user. */
  user?: string;
  /** Lists only sessions in this state. */
  state?: SessionState;
  /** Lists only sessions with this project label. */
  project?: string;
  /** Lists only sessions whose metadata has this text as this member; one of them. */
  metadata?: Record<string, string>;
  /** Lists sessions of this tenant; another than that of the key needs a key with scope `admin`. */
  tenant?: string;
  /** Lists sessions of all tenants; needs a key with scope `admin`. */
  all?: boolean;
}

/** Filters of {@link LodgeClient.events}. */
export interface EventsOptions {
  /** Returns only events of the session with this id. */
  session?: string;
  /** Returns only events of sessions of this user. */
  user?: string;
  /** Returns only events of this kind, or of several. */
  kind?: string | readonly string[];
  /** Returns only events after the one with this id. */
  since?: number;
  /** Returns events of all tenants; needs a key with scope `admin`. */
  all?: boolean;
}

const TIMEOUT_MS = 60_000;
const RETRY_MS = 15_000;
const FIRST_MS = 1500; // for a lodged that was never there: likely it is not, or somewhere else
const EVENTS_PAUSE_MS = 250;
const EVENTS_RETRY_MS = 60_000;

function commaOf(kinds: EventsOptions["kind"]): string | undefined {
  return typeof kinds === "object" ? kinds.join() : kinds;
}

/**
 * A client of lodged with all of its API.
 *
 * {@link Sandbox} is the shorter way for most programs. Sandboxes use a client of their own, or the one in their
 * options.
 *
 * @example
 * ```ts
 * import { LodgeClient, Sandbox } from "lodge-sandbox";
 *
 * const client = new LodgeClient({ userAgent: "my-app/1.2", headers: { "x-team": "search" } });
 * console.log((await client.version()).compatible); // true
 * {
 *   await using box = await Sandbox.create({ client });
 *   console.log((await box.run("echo hi")).stdout); // hi
 * }
 * client.close();
 * ```
 */
export class LodgeClient {
  readonly #wire: Wire;
  readonly #warn: Warn | null;
  /** Snapshots by their ids. */
  readonly snapshots: Snapshots;
  /** Templates that sessions start from. */
  readonly templates: Templates;
  /** API keys. */
  readonly keys: Keys;
  /** Policies that limit sessions and commands. */
  readonly policies: Policies;
  /** End users: their names, use and quotas. */
  readonly users: Users;
  /** Projects, their fragments, and the sandbox of each user. */
  readonly projects: Projects;
  /** Members of teams, which share projects. */
  readonly teams: Teams;

  /** Makes a client; sends no request. */
  constructor(options: LodgeClientOptions = {}) {
    checkHooks(options);
    const { place, key } = findPlace(options.url, options.apiKey);
    this.#wire = new Wire(place, key, {
      timeoutMs: checkMs("timeoutMs", options.timeoutMs) ?? TIMEOUT_MS,
      retryMs: checkMs("retryMs", options.retryMs) ?? RETRY_MS,
      firstMs: options.retryMs ?? FIRST_MS,
      tls: options.tls,
      hooks: options,
    });
    this.#warn = options.onWarning === undefined ? (message) => console.warn(message) : options.onWarning;
    this.snapshots = new Snapshots(this.#wire);
    this.templates = new Templates(this.#wire);
    this.keys = new Keys(this.#wire);
    this.policies = new Policies(this.#wire);
    this.users = new Users(this.#wire);
    this.projects = new Projects(this.#wire);
    this.teams = new Teams(this.#wire);
  }

  /** The address of lodged. */
  get url(): string {
    return this.#wire.place.url;
  }

  /** Closes all connections of the client; sessions and commands go on. */
  close(): void {
    this.#wire.close();
  }

  /** Closes the client at the end of an `await using` scope. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  // ---- sessions ---------------------------------------------------------------------------------

  /**
   * Finds or creates a session by key, thread or user, with a running sandbox, and says how that went.
   *
   * Without a key, thread or user a new session is made, which `await using` deletes at the end of its scope. Settings
   * that an existing session has otherwise are left as they are: `ignored` names them, and `onWarning` receives a
   * warning.
   */
  enter(request?: EnterRequest, call?: CallOptions): Promise<EnteredSession>;
  /** Finds or creates the session with this key, with a running sandbox, and says how that went. */
  enter(key: string, request?: Omit<EnterRequest, "key">, call?: CallOptions): Promise<EnteredSession>;
  enter(
    asked: string | EnterRequest = {},
    second: EnterRequest | CallOptions = {},
    third: CallOptions = {},
  ): Promise<EnteredSession> {
    return typeof asked === "string"
      ? this.#enter({ ...(second as EnterRequest), key: asked }, third)
      : this.#enter(asked, second as CallOptions);
  }

  async #enter(request: EnterRequest, call: CallOptions): Promise<EnteredSession> {
    const entered = await this.enterSilently(request, call);
    this.warnIgnored(entered);
    return entered;
  }

  /** @internal */
  warnIgnored(entered: Entered, about: (field: string) => boolean = () => true): void {
    const fields = entered.ignored.filter(about);
    if (fields.length === 0) return;
    const name = entered.session.key ?? entered.session.id;
    this.warn(`session ${name} already exists: ${fields.join(", ")} ignored; patch() changes what can be changed`);
  }

  /** @internal */
  warn(message: string): void {
    this.#warn?.(message);
  }

  /** @internal */
  async enterSilently(request: EnterRequest, call: CallOptions): Promise<EnteredSession> {
    const named = request.key ?? request.thread ?? request.user ?? request.pin;
    const once = named === undefined ? { idempotency_key: randomUUID() } : {};
    const again = request.if_exists === "fail" && request.idempotency_key === undefined ? "unsent" : "safe";
    const wait = this.#wire.timeoutMs === 0 ? 0 : this.#wire.timeoutMs + (request.wait_ms ?? 0);
    const json = { ...once, ...request };
    const question = { method: "POST", path: "/v1/sessions", json, again, timeoutMs: wait, ...call } as const;
    const nameless = named === undefined && request.idempotency_key === undefined;
    return new EnteredSession(this.#wire, await this.#wire.json<Entered>(question), nameless);
  }

  /** Returns a handle on a session by its id or `{ key }`; sends no request. */
  session(ref: SessionRef): SessionClient {
    return new SessionClient(this.#wire, ref);
  }

  /** Yields sessions in the order in which they were made. */
  sessions(filter: SessionFilter = {}, call: CallOptions = {}): AsyncGenerator<Session, void, undefined> {
    const { metadata, ...query } = filter;
    for (const [name, value] of Object.entries(metadata ?? {})) Object.assign(query, { ["metadata." + name]: value });
    return listAll<Session>(this.#wire, "sessions", { path: "/v1/sessions", query: { ...query }, ...call });
  }

  /**
   * Deletes every session of a user, or of the tenant of the key, and returns their ids.
   *
   * One failure does not stop the rest.
   */
  async cleanup(
    options: { user?: string; reason?: string } = {},
    call: CallOptions = {},
  ): Promise<{ destroyed: string[]; failed: string[] }> {
    const { user, reason } = options;
    const done = { destroyed: [] as string[], failed: [] as string[] };
    const ids: string[] = [];
    for await (const session of this.sessions(user === undefined ? {} : { user }, call)) ids.push(session.id);
    for (const id of ids) {
      try {
        await this.session(id).delete(reason === undefined ? {} : { reason }, call);
        done.destroyed.push(id);
      } catch (error) {
        call.signal?.throwIfAborted();
        done[isAbsent(error) ? "destroyed" : "failed"].push(id);
      }
    }
    return done;
  }

  // ---- what happened ----------------------------------------------------------------------------

  /** Returns one page of events. */
  async eventsPage(
    options: EventsOptions & { limit?: number; order?: "asc" | "desc"; before?: number } = {},
    call: CallOptions = {},
  ): Promise<EventList> {
    const query = { ...options, kind: commaOf(options.kind) };
    return this.#wire.json<EventList>({ method: "GET", path: "/v1/events", query, ...call });
  }

  /** Yields the events so far, the oldest first. */
  async *events(
    options: EventsOptions & { newestFirst?: boolean } = {},
    call: CallOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    const { newestFirst, ...filter } = options;
    for (let at = newestFirst ? undefined : (filter.since ?? 0); ; ) {
      const where = newestFirst ? { order: "desc" as const, ...(at && { before: at }) } : { since: at! };
      const page = await this.eventsPage({ ...filter, ...where }, call);
      yield* page.events;
      if (page.next === null || page.next === at) return;
      at = page.next;
    }
  }

  /**
   * Yields events as they happen, from `since` on or from now on, without an end.
   *
   * After a broken connection it goes on where it was.
   */
  async *followEvents(options: EventsOptions = {}, call: CallOptions = {}): AsyncGenerator<Event, void, undefined> {
    let { since } = options;
    let began: number | undefined; // of the first stream, by lodged's clock
    for (;;) {
      const response = await this.#wire.open({
        method: "GET",
        path: "/v1/events",
        // nothing came before it broke: then all that is later than its beginning is news
        query: { ...options, kind: commaOf(options.kind), since: since ?? (began === undefined ? undefined : 0) },
        headers: { accept: "text/event-stream" },
        retryMs: began === undefined ? undefined : EVENTS_RETRY_MS,
        ...call,
      });
      const early = since === undefined && began !== undefined ? began : 0;
      began ??= Date.parse(response.headers.date ?? "") || Date.now();
      try {
        for await (const frame of frames<Event>(this.#wire, response)) {
          since = frame.data.id;
          if (frame.data.at >= early) yield frame.data;
        }
      } catch (error) {
        if (!isLodgeError(error, "CONNECTION")) throw error;
      }
      await rest(EVENTS_PAUSE_MS, call.signal);
    }
  }

  // ---- the service ------------------------------------------------------------------------------

  /** Returns the state of the service, also of one that fails. */
  async health(call: CallOptions = {}): Promise<Health> {
    return this.#wire.json<Health>({ method: "GET", path: "/health", also: 503, ...call });
  }

  /** Returns whether the service takes new work. */
  async ready(call: CallOptions = {}): Promise<boolean> {
    return (await this.#wire.json<Ready>({ method: "GET", path: "/ready", also: 503, ...call })).ready;
  }

  /** Returns how far the start of the service is. */
  async progress(call: CallOptions = {}): Promise<Progress> {
    return this.#wire.json<Progress>({ method: "GET", path: "/v1/progress", ...call });
  }

  /** Yields how far the start of the service is, until it is ready. */
  watchProgress(call: CallOptions = {}): AsyncGenerator<Progress, void, undefined> {
    return progressOf(this.#wire, "/v1/progress", call);
  }

  /** Returns the metrics of the service in the format of Prometheus. */
  async metrics(call: CallOptions = {}): Promise<string> {
    return this.#wire.text({ method: "GET", path: "/metrics", ...call });
  }

  /** Returns the versions of this package and of lodged, and whether they fit. */
  async version(call: CallOptions = {}): Promise<Versions> {
    return versionsWith((await this.index(call)).version);
  }

  /** Returns the name, version and links of the service. */
  async index(call: CallOptions = {}): Promise<Index> {
    return this.#wire.json<Index>({ method: "GET", path: "/", ...call });
  }

  /** Returns the OpenAPI document of the service. */
  async openapi(call: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#wire.json<Record<string, unknown>>({ method: "GET", path: "/openapi.json", ...call });
  }
}
