// SPDX-License-Identifier: Apache-2.0
// lodge-sandbox: Sandbox, and the session manager.
export { Sandbox, type GetOptions, type ListOptions } from "./sandbox.js";
export {
  Command,
  CommandError,
  Result,
  type BackgroundRunOptions,
  type BytesRunOptions,
  type ListCommands,
  type LogsOptions,
  type RunOptions,
  type TextRunOptions,
  type WaitOptions,
} from "./command.js";
export {
  Files,
  type Content,
  type FileChange,
  type FileInfo,
  type ListFilesOptions,
  type MkdirOptions,
  type RemoveOptions,
  type WriteFileOptions,
} from "./sandbox_files.js";
export { Pty, type OpenPty, type PtyOptions } from "./pty.js";
export { Snapshot, type ForkManyOptions, type ForkOptions } from "./snapshot.js";
export type { SandboxStats } from "./stats.js";
export type { MapOptions } from "./map.js";
export type {
  ConnectionOptions,
  CreateOptions,
  GetOrCreateOptions,
  RequestOptions,
  SandboxLimits,
  SandboxSettings,
  Size,
} from "./options.js";
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
  isLodgeError,
  type ClientErrorCode,
  type LodgeErrorParts,
} from "./errors.js";
export { LodgeClient, type LodgeClientOptions, type Warn } from "./lodge.js";
export type { Bytes } from "./http.js";
export type { FilePath } from "./files.js";
export type { SessionState } from "./types.js";
export { SandboxSessionManager } from "./manager.js";
export type { ISandboxSessionManager, SandboxSession, SandboxSessionManagerConfig } from "./manager.js";
export { VERSION, type Versions } from "./version.js";
export type { Fetch, FetchRequest, FetchResponse, HookOptions, Logger, RetryPolicy } from "./hooks.js";
export type { Tracer, TracerSpan } from "./trace.js";
