// SPDX-License-Identifier: Apache-2.0
import type { ErrorCode } from "./types.js";

/**
 * Codes of failures on this side, which have the status 0.
 *
 * `CONNECTION`: there is no connection, or the response ended early. `CLIENT_TIMEOUT`: the call took longer than its
 * time limit. `PROTOCOL`: the response is not one of lodged. `COMMAND`: a command failed, and the call had `check`.
 */
export type ClientErrorCode = "CONNECTION" | "CLIENT_TIMEOUT" | "PROTOCOL" | "COMMAND";

/** The parts that a {@link LodgeError} is made of. */
export interface LodgeErrorParts {
  /** Tells programs what failed. */
  code: ErrorCode | ClientErrorCode;
  /** Tells people what failed. */
  message: string;
  /** The HTTP status of the response, 0 by default. */
  status?: number;
  /** Whether the same request may succeed later. */
  retryable?: boolean;
  /** Details from the service. */
  details?: Record<string, unknown>;
  /** The request id in the log of lodged. */
  requestId?: string | undefined;
  /** The time after which another try makes sense. */
  retryAfterMs?: number | undefined;
  /** The error that caused this one. */
  cause?: unknown;
}

/**
 * The base class of all errors of this package.
 *
 * `message` is the message of the service. The text of the error (its `stack`, and what `String(error)` returns) also
 * has the class, the code and the request id. Use `instanceof` or `code` to tell errors apart: `name` is `LodgeError`
 * for all but {@link CommandError}, as in 0.1.0. A call that its own `signal` ends throws the reason of the signal.
 *
 * @example
 * ```ts
 * import { LodgeError, Sandbox } from "lodge-sandbox";
 *
 * try {
 *   await Sandbox.get("no-such-name");
 * } catch (error) {
 *   if (!(error instanceof LodgeError)) throw error;
 *   console.log(error.code, error.requestId); // NOT_FOUND 6a0c...
 * }
 * ```
 */
export class LodgeError extends Error {
  /** Tells programs what failed. */
  readonly code: ErrorCode | ClientErrorCode;
  /** The HTTP status of the response, or 0 if there was none. */
  readonly status: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Details from the service, such as the record of the session with CONFLICT and its end with GONE. */
  readonly details: Record<string, unknown>;
  /** The request id in the log of lodged. */
  readonly requestId: string | undefined;
  /** The time after which another try makes sense, if the service says so. */
  readonly retryAfterMs: number | undefined;

  /** Makes an error of its parts. */
  constructor(parts: LodgeErrorParts) {
    super(textOf(parts), parts.cause === undefined ? undefined : { cause: parts.cause });
    void this.stack; // it is made when it is first read, and then has the whole text; the message is the service's
    Object.defineProperty(this, "message", { value: parts.message, writable: true, configurable: true });
    if (parts.code !== "COMMAND") this.name = "LodgeError"; // of every class but CommandError, as in 0.1.0
    this.code = parts.code;
    this.status = parts.status ?? 0;
    this.retryable = parts.retryable ?? false;
    this.details = parts.details ?? {};
    this.requestId = parts.requestId;
    this.retryAfterMs = parts.retryAfterMs;
  }

  /** Returns the class, the message, the code and the request id. */
  override toString(): string {
    return `${String(Object.getPrototypeOf(this).name)}: ${textOf(this)}`;
  }
}

function textOf(parts: LodgeErrorParts | LodgeError): string {
  return `${parts.message} (${parts.code}${parts.requestId ? `, request ${parts.requestId}` : ""})`;
}

/**
 * Something in the request is wrong; the message names it.
 *
 * @example
 * ```ts
 * import { InvalidError, Sandbox } from "lodge-sandbox";
 *
 * const error = await Sandbox.create({ memory: "lots" }).catch((e: unknown) => e);
 * console.log(error instanceof InvalidError); // true
 * ```
 */
export class InvalidError extends LodgeError {}

/**
 * The API key is missing, unknown or expired.
 *
 * @example
 * ```ts
 * import { Sandbox, UnauthenticatedError } from "lodge-sandbox";
 *
 * const error = await Sandbox.get("alice", { apiKey: "wrong" }).catch((e: unknown) => e);
 * console.log(error instanceof UnauthenticatedError); // true
 * ```
 */
export class UnauthenticatedError extends LodgeError {}

/**
 * The key, a policy or file permissions in the sandbox do not allow it.
 *
 * @example
 * ```ts
 * import { DeniedError, Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * const error = await box.files.write("/etc/motd", "hello").catch((e: unknown) => e);
 * console.log(error instanceof DeniedError); // true
 * ```
 */
export class DeniedError extends LodgeError {}

/**
 * The sandbox, file or other object does not exist, or this key cannot see it.
 *
 * @example
 * ```ts
 * import { NotFoundError, Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * const error = await box.files.read("missing").catch((e: unknown) => e);
 * console.log(error instanceof NotFoundError); // true
 * ```
 */
export class NotFoundError extends LodgeError {}

/**
 * The request is not possible in the current state, such as creating a name that exists.
 *
 * @example
 * ```ts
 * import { ConflictError, Sandbox } from "lodge-sandbox";
 *
 * const box = await Sandbox.create({ name: "only-one" });
 * const error = await Sandbox.create({ name: "only-one" }).catch((e: unknown) => e);
 * console.log(error instanceof ConflictError); // true
 * await box.delete();
 * ```
 */
export class ConflictError extends LodgeError {}

/**
 * The object existed and was deleted; `details` say by whom and when. It is a {@link NotFoundError} too.
 *
 * @example
 * ```ts
 * import { GoneError, Sandbox } from "lodge-sandbox";
 *
 * const box = await Sandbox.create();
 * await box.delete();
 * const error = await box.run("true").catch((e: unknown) => e);
 * console.log(error instanceof GoneError); // true
 * ```
 */
export class GoneError extends NotFoundError {}

/**
 * A quota or a limit of memory, processes, disk or size was reached.
 *
 * @example
 * ```ts
 * import { LimitError, Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create({ disk: "8M" });
 * const error = await box.files.write("big", Buffer.alloc(32 << 20)).catch((e: unknown) => e);
 * console.log(error instanceof LimitError); // true
 * ```
 */
export class LimitError extends LodgeError {}

/**
 * The service is full, busy or starting; retry later.
 *
 * A client has retried for some time before it throws this error.
 *
 * @example
 * ```ts
 * import { Sandbox, UnavailableError } from "lodge-sandbox";
 *
 * try {
 *   await using box = await Sandbox.create();
 *   await box.run("true");
 * } catch (error) {
 *   if (!(error instanceof UnavailableError)) throw error;
 *   console.log(`try again in ${error.retryAfterMs} ms`);
 * }
 * ```
 */
export class UnavailableError extends LodgeError {}

/**
 * The sandbox or the service did not answer in time.
 *
 * A command that reaches its own time limit is a result, not this error.
 *
 * @example
 * ```ts
 * import { Sandbox, TimeoutError } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * const error = await box.run("sleep 5", { requestTimeoutMs: 100 }).catch((e: unknown) => e);
 * console.log(error instanceof TimeoutError); // true
 * ```
 */
export class TimeoutError extends LodgeError {}

/**
 * There was no complete answer: lodged cannot be reached, or the connection broke.
 *
 * @example
 * ```ts
 * import { Sandbox, TransportError } from "lodge-sandbox";
 *
 * const error = await Sandbox.get("alice", { url: "http://127.0.0.1:9", apiKey: "k" }).catch((e: unknown) => e);
 * console.log(error instanceof TransportError); // true
 * ```
 */
export class TransportError extends LodgeError {}

/**
 * The service failed; its log has the details under the request id.
 *
 * @example
 * ```ts
 * import { InternalError, Sandbox } from "lodge-sandbox";
 *
 * try {
 *   await using box = await Sandbox.create();
 *   await box.run("true");
 * } catch (error) {
 *   if (error instanceof InternalError) console.log(`look for ${error.requestId} in the log of lodged`);
 *   throw error;
 * }
 * ```
 */
export class InternalError extends LodgeError {}

/** Gives each class its name in texts, which a minifier would change. */
function nameClasses(classes: Record<string, { prototype: LodgeError }>): void {
  for (const [name, { prototype }] of Object.entries(classes))
    Object.defineProperty(prototype, "name", { value: name, writable: true, configurable: true });
}
nameClasses({
  LodgeError,
  InvalidError,
  UnauthenticatedError,
  DeniedError,
  NotFoundError,
  ConflictError,
  GoneError,
  LimitError,
  UnavailableError,
  TimeoutError,
  TransportError,
  InternalError,
});

const CLASS_OF: Partial<Record<LodgeErrorParts["code"], typeof LodgeError>> = {
  INVALID: InvalidError,
  METHOD_NOT_ALLOWED: InvalidError,
  UNSUPPORTED_MEDIA_TYPE: InvalidError,
  RANGE: InvalidError,
  MISDIRECTED: InvalidError,
  UPGRADE_REQUIRED: InvalidError,
  UNAUTHENTICATED: UnauthenticatedError,
  DENIED: DeniedError,
  POLICY: DeniedError,
  NOT_FOUND: NotFoundError,
  CONFLICT: ConflictError,
  PRECONDITION_FAILED: ConflictError,
  GONE: GoneError,
  OUTPUT_GONE: GoneError,
  TOO_LARGE: LimitError,
  LIMIT: LimitError,
  LIMIT_PIDS: LimitError,
  LIMIT_MEMORY: LimitError,
  LIMIT_OUTPUT: LimitError,
  LIMIT_DISK: LimitError,
  RATE_LIMITED: UnavailableError,
  UNAVAILABLE: UnavailableError,
  OVERLOADED: UnavailableError,
  TIMEOUT: TimeoutError,
  CLIENT_TIMEOUT: TimeoutError,
  CONNECTION: TransportError,
  PROTOCOL: TransportError,
  INTERNAL: InternalError,
  CALLER_GONE: InternalError,
};

/** The error of the class that its code belongs to. */
export function lodgeError(parts: LodgeErrorParts): LodgeError {
  return new (CLASS_OF[parts.code] ?? LodgeError)(parts);
}

/** Returns whether it is a {@link LodgeError} with one of these codes, or with any code if none is given. */
export function isLodgeError(error: unknown, ...codes: LodgeError["code"][]): error is LodgeError {
  return error instanceof LodgeError && (codes.length === 0 || codes.includes(error.code));
}

/** Returns whether the error says that a session, file or other object does not exist, or no longer does. */
export function isAbsent(error: unknown): error is LodgeError {
  return isLodgeError(error, "NOT_FOUND", "GONE");
}

interface Head {
  statusCode?: number | undefined;
  headers: Record<string, string | string[] | undefined>;
}

const TEXT_MOST = 300;
const CODES: Record<number, ErrorCode> = {
  401: "UNAUTHENTICATED",
  403: "DENIED",
  404: "NOT_FOUND",
  409: "CONFLICT",
  410: "GONE",
  413: "TOO_LARGE",
  429: "LIMIT",
  503: "UNAVAILABLE",
  504: "TIMEOUT",
  507: "LIMIT_DISK",
};

/** From a body that may be of a proxy, with its tags: words only, and not many. */
function plain(body: string): string {
  const text = body
    .replace(/<(script|style)[^]*?<\/\1>/gi, " ")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return text.length > TEXT_MOST ? text.slice(0, TEXT_MOST) + "..." : text;
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** What an answer of 400 or more says. */
export function errorOf(head: Head, body: string): LodgeError {
  const status = head.statusCode ?? 0;
  const seconds = Number(first(head.headers["retry-after"]));
  const common = {
    status,
    requestId: first(head.headers["x-request-id"]),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  };
  let received: unknown;
  try {
    received = (JSON.parse(body) as { error?: unknown }).error;
  } catch {
    received = undefined;
  }
  if (received !== null && typeof received === "object" && typeof (received as { code?: unknown }).code === "string") {
    const { code, message, retryable, details } = received as LodgeErrorParts;
    return lodgeError({ ...common, code, message, retryable: retryable ?? false, details: details ?? {} });
  }
  if (typeof received === "string")
    // of projects and teams: only a text
    return lodgeError({
      ...common,
      code: CODES[status] ?? (status >= 500 ? "INTERNAL" : "INVALID"),
      message: received,
      retryable: [429, 503, 504].includes(status),
    });
  return lodgeError({
    ...common,
    code: "PROTOCOL",
    message: `status ${status} of something that is not lodged: ${plain(body) || "(nothing said)"}`,
    retryable: status === 502 || status === 503 || status === 504,
  });
}
