// SPDX-License-Identifier: Apache-2.0
// lodge-sandbox/client: all of /v1.
export { LodgeClient, type EventsOptions, type LodgeClientOptions, type SessionFilter } from "./lodge.js";
export { LodgeError, isAbsent, isLodgeError, type ClientErrorCode } from "./errors.js";
export { SessionClient, type SessionRef } from "./session.js";
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
  type ReadOptions,
  type WriteOptions,
} from "./files.js";
export { Tty, type TtyOptions } from "./tty.js";
export { Keys, Policies, Snapshots, Templates, Users } from "./admin.js";
export type { Bytes, CallOptions } from "./http.js";
export type * from "./types.js";
