// SPDX-License-Identifier: Apache-2.0
export { SandboxSessionManager } from "./manager.js";
export type { ISandboxSessionManager, SandboxSession, SandboxSessionManagerConfig } from "./manager.js";
