// SPDX-License-Identifier: Apache-2.0
// A WebSocket (RFC 6455), the client's side of one: Node 18 has none of its own.
import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";

import { errorOf, LodgeError, lodgeError } from "./errors.js";
import type { NodeBuffer, NodeMessage } from "./node_types.js";
import { Patience, type CallOptions, type Question, type QueryValue, type Wire } from "./http.js";
import { inSpan } from "./trace.js";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MESSAGE_MOST = 16 << 20;
const DRAIN_MS = 2000;
const SEND_MOST = 1 << 16; // bytes in one message: lodged takes 1 MiB

const enum Op {
  More = 0,
  Text = 1,
  Binary = 2,
  Close = 8,
  Ping = 9,
  Pong = 10,
}

export type Message = { text: string } | { bytes: NodeBuffer };

/** The close code; 1006 if none was sent. */
export interface Closed {
  code: number;
  reason: string;
}

interface RawFrame {
  op: number;
  last: boolean;
  data: Buffer;
}

function frameOf(op: Op, data: Uint8Array): Buffer {
  const size = data.length;
  const extra = size < 126 ? 0 : size < 1 << 16 ? 2 : 8;
  const out = Buffer.allocUnsafe(6 + extra + size);
  const mask = randomBytes(4);
  out[0] = 0x80 | op;
  out[1] = 0x80 | (extra === 0 ? size : extra === 2 ? 126 : 127);
  if (extra === 2) out.writeUInt16BE(size, 2);
  if (extra === 8) out.writeBigUInt64BE(BigInt(size), 2);
  mask.copy(out, 2 + extra);
  for (let i = 0; i < size; i++) out[6 + extra + i] = data[i]! ^ mask[i & 3]!;
  return out;
}

export class Socket {
  readonly headers: NodeMessage["headers"];
  readonly #stream: Duplex;
  readonly #reader: AsyncIterator<Buffer>;
  #rest: Buffer;
  #closing = false;
  #reading = false;
  #draining = false;
  closed: Closed | undefined;

  private constructor(stream: Duplex, head: Buffer, headers: NodeMessage["headers"]) {
    this.#stream = stream;
    this.#rest = head;
    this.headers = headers;
    this.#reader = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    stream.on("error", () => {}); // reads and writes report it
  }

  static open(wire: Wire, path: string, query: Record<string, QueryValue>, call: CallOptions): Promise<Socket> {
    return inSpan(wire.tracer, "GET", path, (span) => Socket.#open(wire, { path, query, span }, call));
  }

  static #open(wire: Wire, question: Pick<Question, "path" | "query" | "span">, call: CallOptions): Promise<Socket> {
    const key = randomBytes(16).toString("base64");
    const proof = createHash("sha1")
      .update(key + GUID)
      .digest("base64");
    const patience = new Patience(call.signal, call.timeoutMs ?? wire.timeoutMs, "GET " + question.path);
    return new Promise<Socket>((resolve, reject) => {
      const headers = {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": key,
        "sec-websocket-protocol": "lodge.tty",
      };
      const request = wire.upgrade({ ...question, headers });
      let sent = false;
      patience.signal.addEventListener("abort", () => request.destroy(), { once: true });
      request.on("socket", (socket) => socket.once("connect", () => (sent = true)));
      request.on("error", (error) =>
        reject(patience.signal.aborted ? patience.signal.reason : wire.broken(error, sent)),
      );
      request.on("upgrade", (response, stream, head) => {
        question.span?.answered(response.statusCode, undefined);
        if (response.headers["sec-websocket-accept"] === proof)
          return resolve(new Socket(stream, head, response.headers));
        stream.destroy();
        reject(lodgeError({ code: "PROTOCOL", message: "what answers is no WebSocket" }));
      });
      request.on("response", (response) => {
        const pieces: Buffer[] = [];
        response.on("data", (piece: Buffer) => pieces.push(piece));
        response.on("close", () => reject(errorOf(response, Buffer.concat(pieces).toString("utf8"))));
      });
      request.end();
    }).finally(() => patience.end());
  }

  // ---- what comes -------------------------------------------------------------------------------

  async #take(size: number): Promise<Buffer | undefined> {
    const parts = [this.#rest];
    let have = this.#rest.length;
    while (have < size) {
      const next = await this.#reader.next();
      if (next.done) return undefined;
      parts.push(next.value);
      have += next.value.length;
    }
    const all = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    this.#rest = all.subarray(size);
    return all.subarray(0, size);
  }

  async #frame(): Promise<RawFrame | undefined> {
    const head = await this.#take(2);
    if (!head) return undefined;
    const [first, second] = [head[0]!, head[1]!];
    let size = second & 0x7f;
    if (first & 0x70 || second & 0x80) throw broken("a frame that no server may send");
    if (size >= 126) {
      const long = await this.#take(size === 126 ? 2 : 8);
      if (!long) return undefined;
      size = long.length === 2 ? long.readUInt16BE() : Number(long.readBigUInt64BE());
    }
    if (size > MESSAGE_MOST) throw broken(`a message of ${size} bytes`);
    const data = await this.#take(size);
    return data && { op: first & 0xf, last: (first & 0x80) !== 0, data };
  }

  /** The next message; undefined: it was closed, and `closed` says how. */
  async read(): Promise<Message | undefined> {
    if (this.#draining) return undefined;
    this.#reading = true;
    try {
      return await this.#read();
    } finally {
      this.#reading = false;
    }
  }

  async #read(): Promise<Message | undefined> {
    let parts: Buffer[] = [];
    let kind = 0;
    try {
      for (let frame = await this.#frame(); frame; frame = await this.#frame()) {
        if (frame.op === Op.Ping) void this.#send(Op.Pong, frame.data).catch(() => {});
        if (frame.op === Op.Close) {
          this.closed = {
            code: frame.data.length >= 2 ? frame.data.readUInt16BE() : 1005,
            reason: frame.data.subarray(2).toString("utf8"),
          };
          if (!this.#closing) await this.#send(Op.Close, frame.data.subarray(0, 2)).catch(() => {});
          break;
        }
        if (frame.op > Op.Binary) continue;
        if (frame.op !== Op.More) [kind, parts] = [frame.op, []];
        parts.push(frame.data);
        if (parts.reduce((sum, part) => sum + part.length, 0) > MESSAGE_MOST)
          throw broken("a message without an end");
        if (!frame.last) continue;
        const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
        return kind === Op.Text ? { text: whole.toString("utf8") } : { bytes: whole };
      }
    } catch (error) {
      if (error instanceof LodgeError) throw error;
    }
    this.closed ??= { code: 1006, reason: "the connection broke off" };
    this.destroy();
    return undefined;
  }

  // ---- what goes --------------------------------------------------------------------------------

  /** Resolves when there is room for more. */
  #send(op: Op, data: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#stream.destroyed) return reject(broken("the terminal's connection is closed"));
      const done = (error?: Error | null) => (error ? reject(broken(error.message)) : resolve());
      this.#stream.write(frameOf(op, data), done);
    });
  }

  async sendBytes(data: Uint8Array): Promise<void> {
    for (let from = 0; from < data.length; from += SEND_MOST)
      await this.#send(Op.Binary, data.subarray(from, from + SEND_MOST));
  }

  sendText(text: string): Promise<void> {
    return this.#send(Op.Text, Buffer.from(text, "utf8"));
  }

  /** Sends a close frame; the reader receives the reply. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    await this.#send(Op.Close, Buffer.from([1000 >> 8, 1000 & 0xff])).catch(() => {});
    this.#stream.end();
    if (!this.#reading) void this.#drain();
  }

  /** What still comes is taken, so that what was sent is not thrown away with the connection. */
  async #drain(): Promise<void> {
    const timer = setTimeout(() => this.destroy(), DRAIN_MS);
    this.#draining = true;
    while (await this.#read().catch(() => undefined));
    clearTimeout(timer);
  }

  destroy(): void {
    this.#stream.destroy();
  }
}

function broken(message: string): LodgeError {
  return lodgeError({ code: "CONNECTION", message, retryable: true, details: { sent: true } });
}
