// SPDX-License-Identifier: Apache-2.0
// A terminal of a Sandbox.
import { Command, Result, newDecoder, type WaitOptions } from "./command.js";
import { Patience, checkMs, listen } from "./http.js";
import { checkOptions, type RequestOptions } from "./options.js";
import type { SessionClient } from "./session.js";
import type { Tty } from "./tty.js";
import type { PtyWords } from "./words.js";

/** How much of what nobody has read is kept, in characters. */
const UNREAD_MAX = 8 << 20;

/** Options of {@link Sandbox.pty}. */
export interface PtyOptions extends RequestOptions {
  /** The number of rows, 24 by default. */
  rows?: number | undefined;
  /** The number of columns, 80 by default. */
  cols?: number | undefined;
  /** The working directory. Default: that of the sandbox. */
  cwd?: string | undefined;
  /** The user inside the sandbox. */
  user?: string | undefined;
}

/** The call of {@link Sandbox.pty}. */
export interface OpenPty extends PtyWords {
  /** Opens a terminal with a command, or with a login shell. */
  (command?: string, options?: PtyOptions): Promise<Pty>;
}

/**
 * A terminal in a sandbox: an async iterable of what it shows, in whole characters.
 *
 * The connection is restored when it breaks, or when lodged is restarted. The command of the terminal does not depend on
 * this object.
 *
 * @example
 * ```ts
 * import { Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * await using terminal = await box.pty("bash", { rows: 30, cols: 100 });
 * await terminal.write("stty size; exit\n");
 * for await (const text of terminal) process.stdout.write(text);
 * console.log((await terminal.wait()).exitCode); // 0
 * ```
 */
export class Pty implements AsyncIterable<string> {
  /** The id of the command in the terminal, for {@link Sandbox.command}. */
  readonly id: string;
  readonly #tty: Tty;
  readonly #command: Command;
  readonly #output: AsyncIterator<string, void, undefined>;
  #next: Promise<IteratorResult<string, void>> | undefined;
  /** What came while the end was waited for, for the next reads. */
  readonly #unread: string[] = [];
  #unreadSize = 0;

  /** @internal */
  constructor(session: SessionClient, tty: Tty) {
    this.id = tty.execId;
    this.#tty = tty;
    this.#command = new Command(session.command(tty.execId));
    this.#output = this.#texts();
  }

  async *#texts(): AsyncGenerator<string, void, undefined> {
    const decoder = newDecoder();
    for await (const bytes of this.#tty) {
      const text = decoder.decode(bytes, { stream: true });
      if (text) yield text;
    }
    const last = decoder.decode();
    if (last) yield last;
  }

  /** Returns what the terminal shows next, or undefined at its end; a {@link TimeoutError} loses no output. */
  async read(options: { timeoutMs?: number | undefined } = {}): Promise<string | undefined> {
    checkOptions("read", options, ["timeoutMs"]);
    const own = new Patience(undefined, checkMs("timeoutMs", options.timeoutMs) ?? 0, `read of terminal ${this.id}`);
    try {
      const late = new Promise<never>((_, reject) => listen(own.signal, () => reject(own.signal.reason)));
      for (;;) {
        const kept = this.#unread.shift();
        if (kept !== undefined) {
          this.#unreadSize -= kept.length;
          return kept;
        }
        const text = await this.#receive(late);
        if (text !== false) return text;
      }
    } finally {
      own.end();
    }
  }

  /** The next text of the connection, or undefined at its end; false: another call took it. */
  async #receive(giveUp: Promise<never>): Promise<string | undefined | false> {
    const mine = (this.#next ??= this.#output.next());
    const next = await Promise.race([mine, giveUp]); // what comes later is for the next call
    if (this.#next !== mine) return false;
    if (next.done) return undefined; // stays for all later calls
    this.#next = undefined;
    return next.value;
  }

  /** Keeps what comes, because a command waits while its output is not taken. */
  async #collect(giveUp: Promise<never>): Promise<void> {
    for (;;) {
      const text = await this.#receive(giveUp);
      if (text === undefined) return;
      if (text === false) continue;
      this.#unread.push(text);
      for (this.#unreadSize += text.length; this.#unreadSize > UNREAD_MAX; ) this.#unreadSize -= this.#unread.shift()!.length;
    }
  }

  /** Yields what the terminal shows, until its command ends or it is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    for (let text = await this.read(); text !== undefined; text = await this.read()) yield text;
  }

  /** Types; resolves when there is room for more. */
  async write(input: string | Uint8Array): Promise<void> {
    await this.#tty.write(input);
  }

  /** Changes the size of the window. */
  async resize(size: { rows: number; cols: number }): Promise<void> {
    await this.#tty.resize(size);
  }

  /** Kills the command of the terminal and everything it started; with `signal` it sends that signal instead. */
  async kill(signal?: number | string, options: RequestOptions = {}): Promise<void> {
    await this.#command.kill(signal, options);
  }

  /**
   * Waits for the end of the command and returns its result, with what the terminal showed as `stdout`.
   *
   * What was not read before stays for {@link Pty.read}: the last 8 Mi characters of it.
   */
  async wait(options: WaitOptions = {}): Promise<Result> {
    let stop!: () => void;
    const giveUp = new Promise<never>((_, reject) => (stop = reject));
    const collected = this.#collect(giveUp).catch(() => {}); // a broken connection is for read() to report
    try {
      return await this.#command.wait(options);
    } finally {
      stop();
      await collected;
    }
  }

  /** Closes the connection; the command of the terminal goes on. */
  async close(): Promise<void> {
    await this.#tty.close();
  }

  /** Closes the connection at the end of an `await using` scope. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
