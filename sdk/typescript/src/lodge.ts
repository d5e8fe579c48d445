// SPDX-License-Identifier: Apache-2.0
// A client of one lodged.
import { randomUUID } from "node:crypto";
import type { AgentOptions } from "node:https";

import { Keys, Policies, Snapshots, Templates, Users } from "./admin.js";
import { isLodgeError } from "./errors.js";
import { frames } from "./frames.js";
import { Wire, rest, type CallOptions } from "./http.js";
import { listAll } from "./pages.js";
import { findPlace } from "./place.js";
import { SessionClient, progressOf, type SessionRef } from "./session.js";
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

export interface LodgeClientOptions {
  /** "unix:/path/lodge.sock", "http://HOST:PORT" or "https://HOST"; default LODGE_URL, else the local daemon. */
  url?: string;
  /** Default LODGE_API_KEY, else the local daemon's own; null: none is sent. */
  apiKey?: string | null;
  /** Of a call that says nothing about it; default 60000. 0: for ever. */
  timeoutMs?: number;
  /**
   * For how long what is safe to ask twice is asked again when lodged does not answer; default 15000, but 1500 while
   * this client never reached it.
   */
  retryMs?: number;
  /** With https: `ca` and the like. */
  tls?: AgentOptions;
}

export interface SessionFilter {
  user?: string;
  state?: SessionState;
  project?: string;
  /** Whose metadata has this text as this member; one of them. */
  metadata?: Record<string, string>;
}

export interface EventsOptions {
  /** Of this session alone; its id. */
  session?: string;
  /** Those after this id. */
  since?: number;
  /** Of all tenants; needs scope `admin`. */
  all?: boolean;
}

const TIMEOUT_MS = 60_000;
const RETRY_MS = 15_000;
const FIRST_MS = 1500; // for a lodged that was never there: likely it is not, or somewhere else
const EVENTS_PAUSE_MS = 250;
const EVENTS_RETRY_MS = 60_000;

export class LodgeClient {
  readonly #wire: Wire;
  readonly snapshots: Snapshots;
  readonly templates: Templates;
  readonly keys: Keys;
  readonly policies: Policies;
  readonly users: Users;

  constructor(options: LodgeClientOptions = {}) {
    const { place, key } = findPlace(options.url, options.apiKey);
    this.#wire = new Wire(place, key, {
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
      retryMs: options.retryMs ?? RETRY_MS,
      firstMs: options.retryMs ?? FIRST_MS,
      tls: options.tls,
    });
    this.snapshots = new Snapshots(this.#wire);
    this.templates = new Templates(this.#wire);
    this.keys = new Keys(this.#wire);
    this.policies = new Policies(this.#wire);
    this.users = new Users(this.#wire);
  }

  /** Where it asks. */
  get url(): string {
    return this.#wire.place.url;
  }

  /** Closes its connections. Nothing that runs is ended by it. */
  close(): void {
    this.#wire.close();
  }

  // ---- sessions ---------------------------------------------------------------------------------

  /**
   * Get or create: leads to a live sandbox, and reports how. A key, thread or user leads to the same
   * session every time; without any of them an idempotency key sees to it that one is made.
   */
  async enter(request: EnterRequest = {}, call: CallOptions = {}): Promise<Entered> {
    const named = request.key ?? request.thread ?? request.user;
    const once = named === undefined && request.pin === undefined ? { idempotency_key: randomUUID() } : {};
    const again = request.if_exists === "fail" && request.idempotency_key === undefined ? "unsent" : "safe";
    const wait = this.#wire.timeoutMs === 0 ? 0 : this.#wire.timeoutMs + (request.wait_ms ?? 0);
    const json = { ...once, ...request };
    return this.#wire.json<Entered>({ method: "POST", path: "/v1/sessions", json, again, timeoutMs: wait, ...call });
  }

  /** One session, by its id or `{ key }`. */
  session(ref: SessionRef): SessionClient {
    return new SessionClient(this.#wire, ref);
  }

  /** Sessions in the order in which they were made. */
  sessions(filter: SessionFilter = {}, call: CallOptions = {}): AsyncGenerator<Session, void, undefined> {
    const { metadata, ...query } = filter;
    for (const [name, value] of Object.entries(metadata ?? {})) Object.assign(query, { ["metadata." + name]: value });
    return listAll<Session>(this.#wire, "sessions", { path: "/v1/sessions", query: { ...query }, ...call });
  }

  // ---- what happened ----------------------------------------------------------------------------

  /** A page of events, and from where to go on. */
  async eventsPage(options: EventsOptions & { limit?: number } = {}, call: CallOptions = {}): Promise<EventList> {
    return this.#wire.json<EventList>({ method: "GET", path: "/v1/events", query: { ...options }, ...call });
  }

  /**
   * Events as they happen, without an end: from `since` on, else from now. A broken connection is bridged: nothing is
   * missed or repeated.
   */
  async *events(options: EventsOptions = {}, call: CallOptions = {}): AsyncGenerator<Event, void, undefined> {
    let { since } = options;
    let began: number | undefined; // of the first stream, by lodged's clock
    for (;;) {
      const response = await this.#wire.open({
        method: "GET",
        path: "/v1/events",
        // nothing came before it broke: then all that is later than its beginning is news
        query: { ...options, since: since ?? (began === undefined ? undefined : 0) },
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

  /** How it is; also of one that is failing. */
  async health(call: CallOptions = {}): Promise<Health> {
    return this.#wire.json<Health>({ method: "GET", path: "/health", also: 503, ...call });
  }

  /** Whether new work should be sent there. */
  async ready(call: CallOptions = {}): Promise<boolean> {
    return (await this.#wire.json<Ready>({ method: "GET", path: "/ready", also: 503, ...call })).ready;
  }

  /** How far the start of the service is. */
  async progress(call: CallOptions = {}): Promise<Progress> {
    return this.#wire.json<Progress>({ method: "GET", path: "/v1/progress", ...call });
  }

  /** The same as it goes on, until it is ready. */
  watchProgress(call: CallOptions = {}): AsyncGenerator<Progress, void, undefined> {
    return progressOf(this.#wire, "/v1/progress", call);
  }

  /** Numbers for Prometheus. */
  async metrics(call: CallOptions = {}): Promise<string> {
    return this.#wire.text({ method: "GET", path: "/metrics", ...call });
  }

  async index(call: CallOptions = {}): Promise<Index> {
    return this.#wire.json<Index>({ method: "GET", path: "/", ...call });
  }

  async openapi(call: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#wire.json<Record<string, unknown>>({ method: "GET", path: "/openapi.json", ...call });
  }
}
