// SPDX-License-Identifier: Apache-2.0
// lodge-sandbox/client: all of /v1.
export { LodgeClient, type EventsOptions, type LodgeClientOptions, type SessionFilter, type Warn } from "./lodge.js";
export {
  ConflictError,
  DeniedError,
  GoneError,
  InternalError,
  InvalidError,
  LimitError,
  LodgeError,
  NotFoundError,
  TimeoutError,
  TransportError,
  UnauthenticatedError,
  UnavailableError,
  isAbsent,
  isLodgeError,
  type ClientErrorCode,
  type LodgeErrorParts,
} from "./errors.js";
export { EnteredSession, OpenSession, SessionClient, type Extension, type SessionRef } from "./session.js";
export {
  Execution,
  type BackgroundOptions,
  type Command,
  type ExecEvent,
  type ExecOptions,
  type ExecOutcome,
  type Offsets,
  type OutputName,
  type OutputPart,
  type StreamOptions,
} from "./exec.js";
export {
  Files,
  type ArchiveOptions,
  type FilePath,
  type ListOptions,
  type LocalSource,
  type ReadOptions,
  type WriteOptions,
} from "./files.js";
export { Tty, type TtyOptions } from "./tty.js";
export { Keys, Policies, Snapshots, Templates, Users } from "./admin.js";
export {
  Projects,
  Teams,
  type ActingUser,
  type ActiveFragment,
  type KilledSandboxes,
  type TeamRole,
} from "./projects.js";
export type { Bytes, CallOptions } from "./http.js";
export type * from "./types.js";
export { VERSION, type Versions } from "./version.js";
export type { Fetch, FetchRequest, FetchResponse, HookOptions, Logger, RetryPolicy } from "./hooks.js";
export type { Tracer, TracerSpan } from "./trace.js";
