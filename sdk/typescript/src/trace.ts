// SPDX-License-Identifier: Apache-2.0
// A span for each request, from a tracer of OpenTelemetry or an object with the same methods.
import { LodgeError } from "./errors.js";

/** The part of a span of OpenTelemetry that a client uses. */
export interface TracerSpan {
  /** Returns the ids that the `traceparent` header of the request gets. */
  spanContext(): { traceId: string; spanId: string; traceFlags: number };
  /** Sets an attribute, such as `http.response.status_code`. */
  setAttribute(name: string, value: string | number): unknown;
  /** Records the error that the request ended with. */
  recordException(error: Error): void;
  /** Marks the span of a request that failed; the code is 2. */
  setStatus(status: { code: number; message?: string }): unknown;
  /** Ends the span. */
  end(): void;
}

/** The part of a tracer of OpenTelemetry that a client uses. */
export interface Tracer {
  /** Calls a function with a new span, which is the current one meanwhile, and returns what it returns. */
  startActiveSpan<F extends (span: TracerSpan) => unknown>(
    name: string,
    options: { kind: number; attributes: Record<string, string> },
    fn: F,
  ): ReturnType<F>;
}

const CLIENT = 2; // SpanKind
const ERROR = 2; // SpanStatusCode

/** A path with "{id}" for what differs from request to request: names follow on collections. */
export function routeOf(path: string): string {
  const [first, ...rest] = path.replace(/^\/+|\/+$/g, "").split("/");
  if (first !== "v1" && first !== "api") return "/" + first;
  if (rest[2] === "files") rest.splice(3, Infinity, "{path}");
  return ["", first, ...rest.map((part, i) => (i % 2 && part !== "{path}" ? "{id}" : part))].join("/");
}

/** The span of one request, however often it is sent. */
export class RequestSpan {
  readonly #span: TracerSpan;
  #sent = 0;

  constructor(span: TracerSpan) {
    this.#span = span;
  }

  /** The trace context; undefined: of a span that is not recorded anywhere. */
  get traceparent(): string | undefined {
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return undefined;
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  }

  sent(): void {
    if (++this.#sent > 1) this.#span.setAttribute("http.request.resend_count", this.#sent - 1);
  }

  answered(status: number | undefined, requestId: string | undefined): void {
    if (status) this.#span.setAttribute("http.response.status_code", status);
    if (requestId !== undefined) this.#span.setAttribute("lodge.request_id", requestId);
  }

  failed(error: unknown): void {
    if (error instanceof LodgeError) this.answered(error.status, error.requestId);
    const known = error instanceof Error ? error : new Error(String(error));
    this.#span.setAttribute("error.type", known instanceof LodgeError ? known.code : known.name);
    this.#span.recordException(known);
    this.#span.setStatus({ code: ERROR, message: known.message });
  }
}

/** Calls a function with a span for a request; undefined without a tracer. */
export function inSpan<T>(
  tracer: Tracer | undefined,
  method: string,
  path: string,
  fn: (span: RequestSpan | undefined) => Promise<T>,
): Promise<T> {
  if (!tracer) return fn(undefined);
  const route = routeOf(path);
  const attributes = { "http.request.method": method, "url.template": route };
  return tracer.startActiveSpan(`${method} ${route}`, { kind: CLIENT, attributes }, async (started) => {
    const span = new RequestSpan(started);
    try {
      return await fn(span);
    } catch (error) {
      span.failed(error);
      throw error;
    } finally {
      started.end();
    }
  });
}
