// SPDX-License-Identifier: Apache-2.0
// What a caller can put between a client and the network.
import { Readable } from "node:stream";

import { lodgeError } from "./errors.js";
import type { Bytes } from "./http.js";
import type { NodeAgent, NodeMessage } from "./node_types.js";
import type { Tracer } from "./trace.js";

/** Receives a line for each request and each retry; `console` is one. Keys, headers and bodies are never logged. */
export interface Logger {
  /** Gets a line for each response, such as `POST /v1/sessions: 201 in 12 ms (request 6a0c)`. */
  debug(message: string): void;
  /** Gets a line for each request that failed and is sent again. */
  warn(message: string): void;
}

/** The part of a `fetch` response that a client reads. */
export interface FetchResponse {
  /** The status code. */
  readonly status: number;
  /** The header fields. */
  readonly headers: { forEach(each: (value: string, name: string) => void): void };
  /** The body as a web stream, or null. */
  readonly body: {
    getReader(): {
      read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
      cancel(reason?: unknown): Promise<void>;
    };
  } | null;
}

/** What a client gives to a {@link Fetch}. */
export interface FetchRequest {
  /** The method, such as `POST`. */
  method: string;
  /** The header fields, with the API key among them. */
  headers: Record<string, string>;
  /** A text, bytes or a web stream. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body?: any;
  /** Ends the request. */
  signal: AbortSignal;
  /** Set with a stream as body. */
  duplex?: "half";
  /** A redirection is an error, not followed. */
  redirect: "manual";
}

/** A function such as the global `fetch`, through which a client sends its requests. */
export type Fetch = (url: string, request: FetchRequest) => Promise<FetchResponse>;

/** How a client repeats requests that failed. */
export interface RetryPolicy {
  /** How often a request is sent in all while lodged answers 429 or 503, 8 by default. */
  attempts?: number;
  /** The first pause, 50 by default; each later one is twice as long. A `Retry-After` of the response counts if it is longer. */
  minDelayMs?: number;
  /** The longest pause, 1000 by default. */
  maxDelayMs?: number;
}

/** Options of a client that change how it sends requests. */
export interface HookOptions {
  /** Receives a line for each request and each retry; `console` is one. */
  logger?: Logger;
  /** Header fields of every request, or a function that returns them. */
  headers?: Record<string, string> | (() => Record<string, string>);
  /** Sends all requests but terminals, instead of `node:http`; such as the global `fetch`, or one with a proxy. */
  fetch?: Fetch;
  /** Makes the connections of all requests and terminals, such as through a proxy or tunnel; the caller closes it. */
  agent?: NodeAgent;
  /** What the User-Agent header begins with, such as `"my-app/1.2"`. */
  userAgent?: string;
  /** The trace context of every request, or a function that returns that of the caller; the `traceparent` header. */
  traceparent?: string | (() => string | undefined);
  /** A tracer of OpenTelemetry: each request is a span, that of a stream until it begins; not with `traceparent`. */
  tracer?: Tracer;
  /** How requests that failed are repeated; `false` repeats none. */
  retry?: RetryPolicy | false;
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** A tracer has its own trace context. */
export function checkHooks(hooks: HookOptions): void {
  const { tracer, traceparent } = hooks;
  if (tracer !== undefined && typeof tracer?.startActiveSpan !== "function")
    throw lodgeError({ code: "INVALID", message: "tracer: must have startActiveSpan(), as a tracer of OpenTelemetry" });
  if (tracer && traceparent !== undefined)
    throw lodgeError({ code: "INVALID", message: "traceparent: not together with tracer, whose spans have their own" });
}

/** The header fields that hooks add to a request, whose span has the trace context `own`. */
export function hookHeaders(hooks: HookOptions, own: string | undefined): Record<string, string> {
  const given = typeof hooks.headers === "function" ? hooks.headers() : hooks.headers;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given ?? {})) headers[name.toLowerCase()] = value;
  const trace = own ?? (typeof hooks.traceparent === "function" ? hooks.traceparent() : hooks.traceparent);
  if (trace !== undefined && trace !== "") {
    if (!TRACEPARENT.test(trace))
      throw lodgeError({ code: "INVALID", message: `traceparent "${trace}": must be as 00-<32 digits>-<16 digits>-01` });
    headers["traceparent"] = trace;
  }
  return headers;
}

/** A body as a web stream, read no faster than it is taken. */
function webStream(body: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>): unknown {
  const source = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
  return new ReadableStream({
    async pull(controller: { enqueue(piece: Uint8Array): void; close(): void }) {
      const next = await source.next();
      if (next.done) controller.close();
      else if (next.value.length) controller.enqueue(typeof next.value === "string" ? Buffer.from(next.value) : next.value);
    },
    async cancel() {
      await source.return?.();
    },
  });
}

/** What is sent: a text, bytes, or a stream. */
export function fetchBody(json: unknown, body: Bytes | undefined): Pick<FetchRequest, "body" | "duplex"> {
  if (json !== undefined) return { body: JSON.stringify(json) };
  if (body === undefined) return {};
  if (typeof body === "string" || body instanceof Uint8Array) return { body };
  return { body: webStream(body), duplex: "half" };
}

/** A response of a fetch as one of node:http, whose end cancels it. */
export function messageOf(response: FetchResponse, end: () => void): NodeMessage {
  const headers: Record<string, string> = {};
  response.headers.forEach((value, name) => (headers[name.toLowerCase()] = value));
  const reader = response.body?.getReader();
  async function* bytes() {
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
      if (next.value?.length) yield next.value;
  }
  const stream = Readable.from(bytes(), { objectMode: false });
  stream.once("close", end);
  return Object.assign(stream, { statusCode: response.status, headers }) as unknown as NodeMessage;
}
