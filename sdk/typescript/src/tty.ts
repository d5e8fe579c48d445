// SPDX-License-Identifier: Apache-2.0
// A terminal in a session.
import { isLodgeError, LodgeError, lodgeError } from "./errors.js";
import { listen, rest, type CallOptions, type Wire } from "./http.js";
import type { TtyExit, TtyPlace } from "./types.js";
import { Socket } from "./ws.js";

/** Options of {@link SessionClient.tty}. */
export interface TtyOptions {
  /** The id of a command that runs or has run, to show it rather than a new one. */
  exec?: string;
  /** The first byte of the output to show, with `exec`. Default: the last 64 KiB at most. */
  offset?: number;
  /** The command that a login shell runs, `bash -l` by default. */
  command?: string;
  /** The working directory. */
  cwd?: string;
  /** The user inside the sandbox. */
  user?: string;
  /** The number of columns. */
  cols?: number;
  /** The number of rows. */
  rows?: number;
  /** Whether to resume a hibernated session, true by default; false throws CONFLICT instead. */
  resume?: boolean;
}

const RECONNECT_MS = 60_000;
const PAUSE_MS = 250;

/**
 * A terminal: an async iterable of the bytes that it shows, and a way to type.
 *
 * Its command goes on when the terminal is closed. After a broken connection or a restart of lodged it goes on at the
 * same byte.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await using session = await client.enter();
 * const terminal = await session.tty({ command: "echo hello", rows: 30, cols: 100 });
 * for await (const bytes of terminal) process.stdout.write(bytes);
 * console.log(terminal.exit?.exit_code); // 0
 * await terminal.close();
 * ```
 */
export class Tty implements AsyncIterable<Uint8Array> {
  readonly #wire: Wire;
  readonly #path: string;
  readonly #signal: AbortSignal | undefined;
  #socket: Socket;
  #closed = false;
  #again: Promise<boolean> | undefined;
  /** The `exec_id` of the command in the terminal. */
  readonly execId: string;
  #offset: number;
  #missed = 0;
  #exit: TtyExit["exit"] | undefined;

  private constructor(wire: Wire, path: string, socket: Socket, place: TtyPlace, signal: AbortSignal | undefined) {
    this.#wire = wire;
    this.#path = path;
    this.#socket = socket;
    this.#signal = signal;
    this.execId = place.exec_id!;
    this.#offset = place.offset;
    if (signal) listen(signal, () => this.#end());
  }

  /** @internal */
  static async open(wire: Wire, session: string, options: TtyOptions, call: CallOptions): Promise<Tty> {
    const path = session + "/tty";
    const { resume, ...query } = options;
    const socket = await Socket.open(wire, path, { ...query, resume: resume === false ? 0 : undefined }, call);
    const first = await socket.read();
    if (!first || !("text" in first)) {
      socket.destroy();
      throw lodgeError({ code: "PROTOCOL", message: "the terminal does not say where it is" });
    }
    return new Tty(wire, path, socket, JSON.parse(first.text) as TtyPlace, call.signal);
  }

  /** The position of the next byte of the output; `tty` with it and `exec` goes on exactly there. */
  get offset(): number {
    return this.#offset;
  }

  /** The number of bytes that were dropped before they were read, such as after a pause of minutes. */
  get missed(): number {
    return this.#missed;
  }

  /** How the command ended, once all of its output was read. */
  get exit(): TtyExit["exit"] | undefined {
    return this.#exit;
  }

  /** Yields the bytes that the terminal shows. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const socket = this.#socket;
      const message = await socket.read();
      this.#signal?.throwIfAborted();
      if (message === undefined) {
        if (this.#closed || this.#exit || !(await this.#comeBack(socket))) return;
        continue;
      }
      if ("bytes" in message) {
        this.#offset += message.bytes.length;
        yield message.bytes;
        continue;
      }
      const received = JSON.parse(message.text) as Partial<TtyExit & TtyPlace>;
      if (received.offset !== undefined) {
        this.#missed += Math.max(0, received.offset - this.#offset);
        this.#offset = received.offset;
      }
      if (received.exit) this.#exit = received.exit;
    }
  }

  /** Another socket in the place of the one that broke; false: it was closed meanwhile. */
  #comeBack(broken: Socket): Promise<boolean> {
    if (broken !== this.#socket) return Promise.resolve(true);
    this.#again ??= this.#reopen(broken).finally(() => (this.#again = undefined));
    return this.#again;
  }

  async #reopen(broken: Socket): Promise<boolean> {
    // these mean that we did wrong: the same again would end the same way
    const code = broken.closed?.code ?? 1006;
    if ([1002, 1003, 1007, 1009].includes(code))
      throw lodgeError({
        code: "PROTOCOL",
        message: `the terminal was closed: ${code} ${broken.closed?.reason ?? ""}`,
      });
    let offset: number | undefined = this.#offset;
    for (const until = Date.now() + RECONNECT_MS; !this.#closed; ) {
      try {
        const query = { exec: this.execId, offset };
        const socket = await Socket.open(this.#wire, this.#path, query, { signal: this.#signal });
        this.#socket = socket;
        if (this.#closed) socket.destroy();
        return !this.#closed;
      } catch (error) {
        const gone = isLodgeError(error, "OUTPUT_GONE") && offset !== undefined;
        if (gone) offset = undefined; // the service sends where its tail begins
        const later = gone || (error instanceof LodgeError && (error.code === "CONNECTION" || error.retryable));
        if (!later || Date.now() > until) throw error;
      }
      await rest(PAUSE_MS, this.#signal);
    }
    return false;
  }

  /** Types; resolves when there is room for more. Input on its way when a connection breaks may be lost. */
  async write(input: string | Uint8Array): Promise<void> {
    this.#signal?.throwIfAborted();
    await this.#again;
    await this.#socket.sendBytes(typeof input === "string" ? Buffer.from(input, "utf8") : input);
  }

  /** Changes the size of the window. */
  async resize(size: { cols: number; rows: number }): Promise<void> {
    await this.#socket.sendText(JSON.stringify({ resize: { cols: size.cols, rows: size.rows } }));
  }

  /** Closes the terminal; its command goes on. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#socket.close();
  }

  #end(): void {
    this.#closed = true;
    this.#socket.destroy();
  }
}
