// SPDX-License-Identifier: Apache-2.0
// Answers that go on: lines of JSON, and server-sent events.
import { lodgeError } from "./errors.js";
import { signalOf, type Wire } from "./http.js";
import type { NodeBuffer, NodeMessage } from "./node_types.js";

const QUIET_MS = 45_000; // a stream says something every 15 s
const LINE_MOST = 4 << 20;

/**
 * The body, piece by piece. With a time, a stream that is silent for so long fails; time in which the reader does
 * something else does not count.
 */
export async function* pieces(
  wire: Wire,
  response: NodeMessage,
  quietMs = 0,
): AsyncGenerator<NodeBuffer, void, undefined> {
  const reader = (response as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const timer =
        quietMs > 0
          ? setTimeout(() => response.destroy(new Error(`nothing came for ${quietMs} ms`)), quietMs)
          : undefined;
      const next = await reader.next().finally(() => clearTimeout(timer));
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    signalOf(response)?.throwIfAborted();
    throw wire.broken(error, true);
  } finally {
    response.destroy();
  }
}

/** What a line or an event says. */
export function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    throw lodgeError({ code: "PROTOCOL", message: "the stream has something that is no JSON" });
  }
}

/** Lines without their ends. An incomplete last line is dropped. */
export async function* lines(wire: Wire, response: NodeMessage): AsyncGenerator<string, void, undefined> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const piece of pieces(wire, response, QUIET_MS)) {
    let from = 0;
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
      parts.push(piece.subarray(from, at));
      yield Buffer.concat(parts).toString("utf8");
      parts = [];
      size = 0;
      from = at + 1;
    }
    if (from === piece.length) continue;
    parts.push(piece.subarray(from));
    size += piece.length - from;
    if (size > LINE_MOST)
      throw lodgeError({ code: "PROTOCOL", message: `a line of more than ${LINE_MOST} bytes` });
  }
}

export interface Frame<T> {
  /** Its name; empty: it has none. */
  event: string;
  /** For Last-Event-ID; empty: it has none. */
  id: string;
  data: T;
}

/** Server-sent events whose data is JSON. */
export async function* frames<T>(wire: Wire, response: NodeMessage): AsyncGenerator<Frame<T>, void, undefined> {
  let event = "";
  let id = "";
  let data: string[] = [];
  for await (const line of lines(wire, response)) {
    const text = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (text === "") {
      if (data.length) yield { event, id, data: parsed<T>(data.join("\n")) };
      event = "";
      data = [];
      continue;
    }
    const colon = text.indexOf(":");
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event = value;
    else if (name === "id") id = value;
    else if (name === "data") data.push(value);
  }
}
