// SPDX-License-Identifier: Apache-2.0
// One lodged over HTTP: a question, an answer, and what is asked again when the connection breaks.
import { getEventListeners, setMaxListeners } from "node:events";
import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

import { errorOf, isLodgeError, LodgeError, lodgeError } from "./errors.js";
import { fetchBody, hookHeaders, messageOf, type HookOptions } from "./hooks.js";
import type { NodeAgentOptions, NodeMessage, NodeReadable, NodeRequest } from "./node_types.js";
import type { Place } from "./place.js";
import { inSpan, type RequestSpan, type Tracer } from "./trace.js";
import { userAgentOf, versionsWith } from "./version.js";

/** Options that every call of a client takes. */
export interface CallOptions {
  /** Ends the call, which then throws the reason of the signal; what the service has begun may still happen. */
  signal?: AbortSignal | undefined;
  /**
   * The time limit until the whole answer arrived, or until a stream begins; 0 is no limit.
   *
   * Default: that of the client, but no limit where files and archives are transferred.
   */
  timeoutMs?: number | undefined;
}

/** Bytes to send: as they are, or as they come. Text is sent as UTF-8. */
export type Bytes = Uint8Array | string | AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>;

export type QueryValue = string | number | boolean | Uint8Array | undefined;

/**
 * When a question may be asked twice. `safe`: whenever its answer did not come, since twice is as good as once.
 * `unsent`: if it never left, or was refused unread.
 */
export type Again = "safe" | "unsent";

export interface Question extends CallOptions {
  method: string;
  /** Encoded already. */
  path: string;
  query?: Record<string, QueryValue> | undefined;
  json?: unknown;
  body?: Bytes | undefined;
  headers?: Record<string, string | undefined> | undefined;
  again?: Again | undefined;
  /** A status that is not a failure unless the body has an error. */
  also?: number | undefined;
  /** For how long a broken connection is tried again; default: that of the client. */
  retryMs?: number | undefined;
  span?: RequestSpan | undefined;
}

export interface WireOptions {
  timeoutMs: number;
  retryMs: number;
  /** The same until it was reached once. */
  firstMs: number;
  tls: NodeAgentOptions | undefined;
  hooks: HookOptions;
}

const ANSWERED_MOST = 3; // tries of what is answered by an error that may pass
const BUSY_MOST = 8; // the same of 429 and 503: the service says that it is only busy
const PAUSE_FIRST_MS = 50;
const PAUSE_MOST_MS = 1000;
const LARGE = 1 << 20; // of a body
const ERROR_MOST = 1 << 20; // bytes of an error response
const CONTINUE_MS = 1000;
const TIMER_MOST = 0x7fffffff; // a longer timer of Node ends at once; 24 days are as good as no limit
const FREE_MS = 20_000; // lodged closes a connection that does nothing after 60 s

/** All but letters, digits and `-._~`, byte by byte, so that a name need not be UTF-8. `keep`: and these. */
export function encodeBytes(text: string | Uint8Array, keep = ""): string {
  let out = "";
  for (const byte of typeof text === "string" ? Buffer.from(text, "utf8") : text) {
    const c = String.fromCharCode(byte);
    out += /[A-Za-z0-9._~-]/.test(c) || (c !== "" && keep.includes(c)) ? c : "%" + byte.toString(16).padStart(2, "0");
  }
  return out;
}

/** A proxy may make another path of it, and so another question. */
function checkPath(path: string): void {
  if (path.replace(/%2f/gi, "/").split("/").includes(".."))
    throw lodgeError({ code: "INVALID", message: `${path}: must not contain ".."` });
}

function queryOf(query: Record<string, QueryValue> | undefined): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined) continue;
    const text = typeof value === "boolean" ? (value ? "1" : "0") : typeof value === "number" ? String(value) : value;
    parts.push(`${encodeBytes(name)}=${encodeBytes(text)}`);
  }
  return parts.length ? "?" + parts.join("&") : "";
}

/** Whether it can be sent a second time. */
function lasts(body: Bytes | undefined): body is Uint8Array | string | undefined {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException | undefined)?.code ?? "";
}

/** Waits; a signal ends it with its reason. */
export async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
}

/** A time as every option takes it: whole milliseconds, 0 for no limit. */
export function checkMs<T extends number | undefined>(name: string, ms: T): T {
  if (ms !== undefined && !(Number.isSafeInteger(ms) && ms >= 0))
    throw lodgeError({
      code: "INVALID",
      message: `${name}: must be a whole number of milliseconds, or 0 for no limit, not ${String(ms)}`,
    });
  return ms;
}

/** Any number of calls may have one signal: that is no leak. */
export function listen(signal: AbortSignal, then: () => void): void {
  setMaxListeners(getEventListeners(signal, "abort").length + 11, signal);
  signal.addEventListener("abort", then, { once: true });
}

/** A caller's signal and a time, as one. */
export class Patience {
  readonly #controller = new AbortController();
  readonly #given: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #pass = () => this.#controller.abort(this.#given!.reason);

  constructor(given: AbortSignal | undefined, timeoutMs: number, what: string) {
    this.#given = given;
    given?.throwIfAborted();
    if (given) listen(given, this.#pass);
    if (timeoutMs > 0 && timeoutMs <= TIMER_MOST)
      this.#timer = setTimeout(() => {
        const message = `${what}: no answer within ${timeoutMs} ms; give a larger timeoutMs, or look at lodged's log`;
        this.#controller.abort(lodgeError({ code: "CLIENT_TIMEOUT", message, retryable: true }));
      }, timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Gives up, for this reason. */
  fail(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** The answer has begun: from now on only the caller ends it. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.stopClock();
    this.#given?.removeEventListener("abort", this.#pass);
  }
}

const signals = new WeakMap<NodeMessage, AbortSignal>();

/** That which ends a stream of Wire.open(). */
export function signalOf(response: NodeMessage): AbortSignal | undefined {
  return signals.get(response);
}

export class Wire {
  readonly place: Place;
  readonly #key: string | undefined;
  readonly #options: WireOptions;
  readonly #agent: http.Agent;
  readonly #fresh: http.Agent;
  #closed = false;
  #reached = false;

  constructor(place: Place, key: string | undefined, options: WireOptions) {
    this.place = place;
    this.#key = key;
    this.#options = options;
    const keep = { keepAlive: true, maxFreeSockets: 32, timeout: FREE_MS };
    const agent = () => (place.secure ? new https.Agent({ ...options.tls, ...keep }) : new http.Agent(keep));
    this.#agent = options.hooks.agent ?? agent();
    // A connection for each request. It is kept alive all the same until we close it: one that lodged closes behind
    // its answer may be gone before Node is through with writing, which then hides the answer.
    this.#fresh = options.hooks.agent ?? Object.assign(agent(), { keepSocketAlive: () => false });
  }

  close(): void {
    this.#closed = true;
    if (this.#options.hooks.agent) return;
    this.#agent.destroy();
    this.#fresh.destroy();
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  get retryMs(): number {
    return this.#options.retryMs;
  }

  // ---- questions with one answer ----------------------------------------------------------------

  /** The JSON of the answer; undefined if it has no body. */
  async json<T>(question: Question): Promise<T> {
    return this.#patiently(question, async (question, signal) => {
      const response = await this.#once(question, signal);
      const text = await textOf(response, signal);
      if (!text) return undefined as T;
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        throw lodgeError({
          code: "PROTOCOL",
          message: `${this.place.url} answers with something that is no JSON`,
        });
      }
      if (response.statusCode === question.also && (value as { error?: unknown } | null)?.error)
        throw errorOf(response, text);
      return value as T;
    });
  }

  async text(question: Question): Promise<string> {
    return this.#patiently(question, async (question, signal) => textOf(await this.#once(question, signal), signal));
  }

  // ---- answers that stream ----------------------------------------------------------------------

  /** The response once its head arrived. The caller reads or destroys it. */
  async open(question: Question): Promise<NodeMessage> {
    return this.#patiently(
      question,
      (question, signal) => this.#once(question, signal),
      (response, patience) => {
        const end = () => void response.destroy();
        signals.set(response, patience.signal);
        patience.stopClock();
        if (patience.signal.aborted) return end();
        patience.signal.addEventListener("abort", end, { once: true });
        response.once("close", () => patience.end());
      },
    );
  }

  /** Bytes of a question or answer that upgrades to something else: see ws.ts. */
  upgrade(question: Pick<Question, "path" | "query" | "headers" | "span">): NodeRequest {
    return this.#request({ method: "GET", ...question }, false);
  }

  get tracer(): Tracer | undefined {
    return this.#options.hooks.tracer;
  }

  // ---- how --------------------------------------------------------------------------------------

  #patiently<T>(
    question: Question,
    attempt: (question: Question, signal: AbortSignal) => Promise<T>,
    keep?: (result: T, patience: Patience) => void,
  ): Promise<T> {
    return inSpan(this.tracer, question.method, question.path, (span) => this.#repeatedly({ ...question, span }, attempt, keep));
  }

  async #repeatedly<T>(
    question: Question,
    attempt: (question: Question, signal: AbortSignal) => Promise<T>,
    keep?: (result: T, patience: Patience) => void,
  ): Promise<T> {
    const what = `${question.method} ${question.path}`;
    const timeoutMs = checkMs("timeoutMs", question.timeoutMs) ?? this.#options.timeoutMs;
    const patience = new Patience(question.signal, timeoutMs, what);
    const retryMs = question.retryMs ?? this.#options.retryMs;
    let since: number | undefined;
    let answers = 0;
    let broke = question.retryMs !== undefined;
    let kept = false;
    try {
      for (let tries = 1; ; tries++) {
        const began = Date.now();
        try {
          const result = await attempt(question, patience.signal);
          kept = keep !== undefined;
          keep?.(result, patience);
          return result;
        } catch (error) {
          if (patience.signal.aborted) throw patience.signal.reason;
          // counted from when it broke: an answer may take hours
          since ??= Date.now();
          if (tries > 1 && Date.now() - began > retryMs) since = Date.now();
          const until = since + (this.#isNobody(error) ? Math.min(retryMs, this.#options.firstMs) : retryMs);
          if (isLodgeError(error, "CONNECTION")) broke = true;
          else answers++;
          // a lodged that comes back refuses until it has started, which may take a while
          const polite = answers < this.#most(error) || (broke && isLodgeError(error, "UNAVAILABLE"));
          const pause = polite ? this.#pause(question, error, tries, until) : undefined;
          if (pause === undefined) throw error;
          const { code } = error as LodgeError;
          this.#options.hooks.logger?.warn(`${what}: ${code}; sent again in ${Math.round(pause)} ms (try ${tries + 1})`);
          await rest(pause, patience.signal);
        }
      }
    } finally {
      if (!kept) patience.end();
    }
  }

  /** No connection, now or ever before. EAGAIN: it is there, with a long queue. */
  #isNobody(error: unknown): boolean {
    return isLodgeError(error, "CONNECTION") && !this.#reached && codeOf(error.cause) !== "EAGAIN";
  }

  /** How often a request is sent that is answered with this error. */
  #most(error: unknown): number {
    const { retry } = this.#options.hooks;
    if (retry === false) return 1;
    const busy = error instanceof LodgeError && (error.status === 429 || error.status === 503);
    return Math.min(retry?.attempts ?? BUSY_MOST, busy ? Infinity : ANSWERED_MOST);
  }

  /** How long to wait before asking again; undefined: not at all. */
  #pause(question: Question, error: unknown, tries: number, until: number): number | undefined {
    const { retry } = this.#options.hooks;
    if (!(error instanceof LodgeError) || !lasts(question.body) || this.#closed || retry === false) return undefined;
    const { minDelayMs = PAUSE_FIRST_MS, maxDelayMs = PAUSE_MOST_MS } = retry ?? {};
    const step = Math.min(minDelayMs * 2 ** Math.min(tries - 1, 10), maxDelayMs) * (0.5 + Math.random() / 2);
    const safe = (question.again ?? (/^(GET|HEAD)$/.test(question.method) ? "safe" : "unsent")) === "safe";
    if (error.code === "CONNECTION") {
      const unsent = error.details["sent"] === false;
      // what is large may have been cut because it is refused: once more, and no more
      const much = !unsent && (question.body?.length ?? 0) > LARGE && tries > 1;
      return (safe || unsent) && !much && Date.now() + step < until ? step : undefined;
    }
    if (!error.retryable || Date.now() + (error.retryAfterMs ?? 0) > until) return undefined;
    const unread = isLodgeError(error, "RATE_LIMITED", "OVERLOADED");
    const full = error.details["max"] !== undefined; // a caller that can wait for capacity sets wait_ms
    // a service that is busy has deleted nothing
    const again = safe || (question.method === "DELETE" && error.status === 503);
    return unread || (again && !full) ? Math.max(error.retryAfterMs ?? 0, step) : undefined;
  }

  #headers(question: Question): Record<string, string> {
    const headers: Record<string, string> = { "user-agent": userAgentOf(this.#options.hooks.userAgent) };
    Object.assign(headers, hookHeaders(this.#options.hooks, question.span?.traceparent), { host: this.place.name });
    if (this.#key !== undefined) headers["authorization"] = "Bearer " + this.#key;
    for (const [name, value] of Object.entries(question.headers ?? {}))
      if (value !== undefined) headers[name] = value;
    return headers;
  }

  #request(question: Question, reuse: boolean): http.ClientRequest {
    const { place } = this;
    checkPath(question.path);
    const options: https.RequestOptions = {
      method: question.method,
      path: place.prefix + question.path + queryOf(question.query),
      headers: this.#headers(question),
      agent: reuse ? this.#agent : this.#fresh,
      ...(place.socketPath
        ? { socketPath: place.socketPath }
        : { host: place.host, ...(place.port ? { port: place.port } : {}) }),
    };
    return place.secure ? https.request(options) : http.request(options);
  }

  /** One try, until the head of the answer; an answer of 300 or more is thrown. */
  async #once(question: Question, signal: AbortSignal): Promise<NodeMessage> {
    if (this.#closed) throw lodgeError({ code: "CONNECTION", message: "this client is closed" });
    const began = Date.now();
    question.span?.sent();
    const response = await (this.#options.hooks.fetch ? this.#fetched(question, signal) : this.#sent(question, signal));
    const id = response.headers["x-request-id"];
    question.span?.answered(response.statusCode, id && String(id));
    this.#options.hooks.logger?.debug(
      `${question.method} ${question.path}: ${response.statusCode} in ${Date.now() - began} ms${id ? ` (request ${String(id)})` : ""}`,
    );
    if ((response.statusCode ?? 0) < 300 || response.statusCode === question.also) return response;
    throw await this.#explained(errorOf(response, await textOf(response, signal, ERROR_MOST)), signal);
  }

  #sent(question: Question, signal: AbortSignal): Promise<NodeMessage> {
    const safe = question.again === "safe" || question.method === "GET" || question.method === "HEAD";
    // a connection that was used before may have ended by now: only what can be asked again goes there
    return this.#answer(question, this.#request(question, safe && lasts(question.body)), signal);
  }

  /** The same through the caller's own fetch. */
  async #fetched(question: Question, signal: AbortSignal): Promise<NodeMessage> {
    const { place } = this;
    checkPath(question.path);
    const headers = this.#headers(question);
    if (question.json !== undefined) headers["content-type"] = "application/json";
    if (!place.socketPath) delete headers["host"]; // a fetch takes it from the URL
    const controller = new AbortController();
    const abort = () => controller.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      signal.throwIfAborted();
      const origin = place.socketPath ? "http://localhost" : `${place.secure ? "https" : "http"}://${place.name}`;
      const response = await this.#options.hooks.fetch!(origin + place.prefix + question.path + queryOf(question.query), {
        method: question.method,
        headers,
        ...fetchBody(question.json, question.body),
        signal: controller.signal,
        redirect: "manual",
      });
      this.#reached = true;
      return messageOf(response, () => controller.abort());
    } catch (error) {
      throw signal.aborted ? signal.reason : this.broken(error, true);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** A route that lodged does not have may be one of another version. */
  async #explained(error: LodgeError, signal: AbortSignal): Promise<LodgeError> {
    const unknown = error.code === "METHOD_NOT_ALLOWED" || (error.status === 404 && /^no such route/.test(error.message));
    if (!unknown) return error;
    const question: Question = { method: "GET", path: "/" };
    const asked = this.#options.hooks.fetch ? this.#fetched(question, signal) : this.#sent(question, signal);
    const server = await asked
      .then(async (response) => (JSON.parse(await textOf(response, signal, ERROR_MOST)) as { version?: string }).version)
      .catch(() => undefined);
    const { client, compatible } = versionsWith(server ?? "");
    if (!server || compatible) return error;
    const message = `${error.message}; lodged is ${server} and this package ${client}: use the same version of both`;
    const { code, status, requestId, details } = error;
    return lodgeError({ code, message, status, requestId, details });
  }

  #answer(question: Question, request: http.ClientRequest, signal: AbortSignal): Promise<NodeMessage> {
    return new Promise((resolve, reject) => {
      let connected = false;
      let answered = false;
      let failed: unknown;
      const abort = () => request.destroy();
      const fail = (error: unknown) => {
        signal.removeEventListener("abort", abort);
        const hint =
          connected && question.body !== undefined
            ? "; lodged also cuts off a body that it refuses, as one larger than file_bytes"
            : "";
        reject(signal.aborted ? signal.reason : (failed ?? this.broken(error, connected, hint)));
      };
      signal.addEventListener("abort", abort, { once: true });
      const reached = () => (connected = this.#reached = true);
      request.on("socket", (socket) => {
        if (socket.connecting) socket.once("connect", reached);
        else reached();
      });
      request.on("error", fail);
      request.on("response", (response) => {
        answered = true;
        signal.removeEventListener("abort", abort);
        request.off("error", fail);
        request.on("error", () => {}); // the rest of the body may fail to be sent
        response.once("end", () => request.writableFinished || request.destroy());
        resolve(response);
      });
      // what the caller's own stream throws goes back to the caller as it is
      send(request, question, () => answered).catch((error) => {
        failed ??= error;
        request.destroy(error as Error);
      });
      if (signal.aborted) abort();
    });
  }

  /** What is said of a connection that did not do. */
  broken(error: unknown, sent: boolean, hint = ""): LodgeError {
    if (error instanceof LodgeError) return error;
    const why = error instanceof Error ? error.message || codeOf(error) : String(error);
    const message = sent
      ? `the connection to ${this.place.url} broke off: ${why}${hint}`
      : `cannot connect to lodged at ${this.place.url} (${why}): start it, or set LODGE_URL`;
    return lodgeError({ code: "CONNECTION", message, retryable: true, details: { sent }, cause: error });
  }
}

/** All of the body, no faster than it is taken; no more of it once there is an answer. */
async function send(request: http.ClientRequest, question: Question, isAnswered: () => boolean): Promise<void> {
  if (question.json !== undefined) {
    const text = Buffer.from(JSON.stringify(question.json), "utf8");
    request.setHeader("content-type", "application/json");
    request.setHeader("content-length", text.length);
    request.end(text);
    return;
  }
  const { body } = question;
  if (lasts(body)) {
    if (body !== undefined) request.setHeader("content-length", Buffer.byteLength(body));
    else if (question.method !== "GET" && question.method !== "HEAD") request.setHeader("content-length", 0);
    request.end(body);
    return;
  }
  const source = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
  const first = (async () => source.next())(); // a stream that fails at once has a listener by now
  first.catch(() => {});
  try {
    if (await wanted(request)) await sendPieces(request, source, first, isAnswered);
  } finally {
    if (body instanceof Readable) body.destroy();
    else await source.return?.();
  }
}

/**
 * Asks whether the body is wanted. Node loses a refusal if it arrives while a write fails, so the body waits for the
 * answer to the head. Bun and Deno have no such answer to wait for.
 */
async function wanted(request: http.ClientRequest): Promise<boolean> {
  if (process.versions["bun"] || process.versions["deno"]) return true;
  request.setHeader("expect", "100-continue");
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const start = () => (timer = setTimeout(() => resolve(true), CONTINUE_MS)); // a server may not know it
    const settle = (go: boolean) => {
      clearTimeout(timer);
      resolve(go);
    };
    request.once("socket", (socket) => (socket.connecting ? socket.once("connect", start) : start()));
    request.once("continue", () => settle(true));
    request.once("response", () => settle(false));
    request.once("close", () => settle(false));
    request.flushHeaders();
  });
}

async function sendPieces(
  request: http.ClientRequest,
  source: AsyncIterator<Uint8Array | string> | Iterator<Uint8Array>,
  first: Promise<IteratorResult<Uint8Array | string>>,
  isAnswered: () => boolean,
): Promise<void> {
  for (let next = await first; !next.done; next = await source.next()) {
    const piece = next.value;
    await new Promise(setImmediate); // read a response that has arrived before a write fails
    if (isAnswered() || request.destroyed) return;
    if (piece.length === 0) continue; // an empty chunk would be the last
    if (!request.write(piece)) await drained(request);
  }
  request.end();
}

function drained(request: http.ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      request.off("drain", go);
      request.off("close", go);
      request.off("response", go);
      resolve();
    };
    request.on("drain", go);
    request.on("close", go);
    request.on("response", go);
  });
}

/** The whole body as text. */
async function textOf(response: NodeMessage, signal: AbortSignal, most = Infinity): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  const abort = () => response.destroy();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > most) break;
      pieces.push(piece);
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const message = `the answer broke off: ${error instanceof Error ? error.message : String(error)}`;
    throw lodgeError({ code: "CONNECTION", message, retryable: true, details: { sent: true }, cause: error });
  } finally {
    signal.removeEventListener("abort", abort);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** The bytes of an answer as a stream of its own, whose errors are LodgeErrors. */
export function streamOf(bytes: AsyncIterable<Uint8Array>): NodeReadable {
  return Readable.from(bytes, { objectMode: false, highWaterMark: 1 << 16 });
}
