// SPDX-License-Identifier: Apache-2.0
// The types of Node in the declarations of this package. Without @types/node they are `any` instead of errors, and
// `await using` works without the lib ESNext.Disposable.

/** @ts-ignore */
export type NodeBuffer = Buffer;
/** @ts-ignore */
export type NodeReadable = import("node:stream").Readable;
/** @ts-ignore */
export type NodeWritable = import("node:stream").Writable;
/** @ts-ignore */
export type NodePathLike = import("node:fs").PathLike;
/** @ts-ignore */
export type NodeAgent = import("node:http").Agent;
/** @ts-ignore */
export type NodeAgentOptions = import("node:https").AgentOptions;
/** @ts-ignore */
export type NodeMessage = import("node:http").IncomingMessage;
/** @ts-ignore */
export type NodeRequest = import("node:http").ClientRequest;

/** The variables of a process. */
export type Environment = Record<string, string | undefined>;

declare global {
  // empty ones add nothing to those of DOM or @types/node
  interface AbortSignal {}
  interface URL {}
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
  interface Disposable {
    [Symbol.dispose](): void;
  }
  interface AsyncDisposable {
    [Symbol.asyncDispose](): PromiseLike<void>;
  }
}
