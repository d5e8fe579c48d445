// SPDX-License-Identifier: Apache-2.0
// A terminal of a Sandbox.
import { Command, Result, newDecoder, type WaitOptions } from "./command.js";
import { Patience, checkMs, listen } from "./http.js";
import { checkOptions, type RequestOptions } from "./options.js";
import type { SessionClient } from "./session.js";
import type { Tty } from "./tty.js";

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
    this.#next ??= this.#output.next();
    const own = new Patience(undefined, checkMs("timeoutMs", options.timeoutMs) ?? 0, `read of terminal ${this.id}`);
    try {
      const late = new Promise<never>((_, reject) => listen(own.signal, () => reject(own.signal.reason)));
      const next = await Promise.race([this.#next, late]);
      return next.done ? undefined : next.value;
    } finally {
      if (!own.signal.aborted) this.#next = undefined; // what comes later is for the next call
      own.end();
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

  /** Waits for the end of the command and returns its result, with what the terminal showed as `stdout`. */
  async wait(options: WaitOptions = {}): Promise<Result> {
    return this.#command.wait(options);
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
