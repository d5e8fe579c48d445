// SPDX-License-Identifier: Apache-2.0
import type { ErrorCode } from "./types.js";

/**
 * Codes of this side, with status 0: `CONNECTION`: no connection, or the response ended early;
 * `CLIENT_TIMEOUT`: it took longer than `timeoutMs`; `PROTOCOL`: the answer is none of lodged.
 */
export type ClientErrorCode = "CONNECTION" | "CLIENT_TIMEOUT" | "PROTOCOL";

export interface LodgeErrorParts {
  code: ErrorCode | ClientErrorCode;
  message: string;
  status?: number;
  retryable?: boolean;
  details?: Record<string, unknown>;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Whatever goes wrong with a call, but for what the caller's own AbortSignal ends: that is its reason. */
export class LodgeError extends Error {
  /** For programs. */
  readonly code: ErrorCode | ClientErrorCode;
  /** Of the answer; 0: there was none. */
  readonly status: number;
  /** The same request may succeed later. */
  readonly retryable: boolean;
  /** Details of the service: a session's record with CONFLICT, its end with GONE. */
  readonly details: Record<string, unknown>;
  /** Under which the service's log has it. */
  readonly requestId: string | undefined;
  /** When it is worth another try, if the service says. */
  readonly retryAfterMs: number | undefined;

  constructor(parts: LodgeErrorParts) {
    super(parts.message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = "LodgeError";
    this.code = parts.code;
    this.status = parts.status ?? 0;
    this.retryable = parts.retryable ?? false;
    this.details = parts.details ?? {};
    this.requestId = parts.requestId;
    this.retryAfterMs = parts.retryAfterMs;
  }
}

/** Whether it is a LodgeError with one of these codes. */
export function isLodgeError(error: unknown, ...codes: LodgeError["code"][]): error is LodgeError {
  return error instanceof LodgeError && (codes.length === 0 || codes.includes(error.code));
}

/** The session, file or other object does not exist, or no longer. */
export function isAbsent(error: unknown): error is LodgeError {
  return isLodgeError(error, "NOT_FOUND", "GONE");
}

interface Head {
  statusCode?: number | undefined;
  headers: Record<string, string | string[] | undefined>;
}

const TEXT_MOST = 300;

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
    return new LodgeError({ ...common, code, message, retryable: retryable ?? false, details: details ?? {} });
  }
  return new LodgeError({
    ...common,
    code: "PROTOCOL",
    message: `status ${status} of something that is not lodged: ${plain(body) || "(nothing said)"}`,
    retryable: status === 502 || status === 503 || status === 504,
  });
}
