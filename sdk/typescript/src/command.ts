// SPDX-License-Identifier: Apache-2.0
// Commands of a Sandbox: run, their results, and those in the background.
import { LodgeError, lodgeError } from "./errors.js";
import type { Command as Words, ExecEvent, Execution, OutputName, StreamOptions } from "./exec.js";
import { Patience, checkMs } from "./http.js";
import { REQUEST, callOf, checkOptions, given, kindOf, type RequestOptions } from "./options.js";
import type { SessionClient } from "./session.js";
import type { Exec, ExecRequest, ExecResult, ExecState } from "./types.js";
import { addWords, type CommandsWords, type Hints } from "./words.js";

/** Options of {@link Sandbox.run}. */
export interface RunOptions extends RequestOptions {
  /** The working directory. Default: that of the sandbox. */
  cwd?: string | undefined;
  /** Environment variables, in addition to those of the sandbox. */
  env?: Record<string, string> | undefined;
  /** The user inside the sandbox that runs the command. */
  user?: string | undefined;
  /** The whole input of the command. */
  input?: string | Uint8Array | undefined;
  /** Kills the command and all it started after this time. Default: 30000, and no limit in the background; 0 is no limit. */
  timeoutMs?: number | undefined;
  /** Throws a {@link CommandError} unless the command ends with exit code 0. */
  check?: boolean | undefined;
  /** Returns a {@link Command} at once instead of waiting for its end. */
  background?: boolean | undefined;
  /** Gets the output as it comes, in whole characters; with `text: false` as bytes. A promise is awaited; an error kills the command and is thrown by `run`. */
  onStdout?: ((output: never) => unknown) | undefined;
  /** Gets the error output as it comes, in whole characters; with `text: false` as bytes. A promise is awaited; an error kills the command and is thrown by `run`. */
  onStderr?: ((output: never) => unknown) | undefined;
  /** Whether output is text, the default; with `false` it is bytes. */
  text?: boolean | undefined;
  /** Makes repeated calls with this key within 7 days return the same command, which runs once. */
  idempotencyKey?: string | undefined;
}

/** Options of {@link Sandbox.run} for output as text. */
export interface TextRunOptions extends RunOptions {
  /** Waits for the end of the command. */
  background?: false | undefined;
  /** Returns output as text. */
  text?: true | undefined;
  /** Gets the output as it comes, in whole characters. */
  onStdout?: ((output: string) => unknown) | undefined;
  /** Gets the error output as it comes, in whole characters. */
  onStderr?: ((output: string) => unknown) | undefined;
}

/** Options of {@link Sandbox.run} for output as bytes. */
export interface BytesRunOptions extends RunOptions {
  /** Waits for the end of the command. */
  background?: false | undefined;
  /** Returns output as bytes. */
  text: false;
  /** Gets the bytes of the output as they come. */
  onStdout?: ((output: Uint8Array) => unknown) | undefined;
  /** Gets the bytes of the error output as they come. */
  onStderr?: ((output: Uint8Array) => unknown) | undefined;
}

/** Options of {@link Sandbox.run} for a command in the background; use {@link Command.logs} for its output. */
export interface BackgroundRunOptions extends RunOptions {
  /** Returns a {@link Command} at once. */
  background: true;
  /** Not possible in the background. */
  input?: undefined;
  /** Not possible in the background. */
  check?: undefined;
  /** Not possible in the background. */
  onStdout?: undefined;
  /** Not possible in the background. */
  onStderr?: undefined;
}

/**
 * The end of a command and its output.
 *
 * @example
 * ```ts
 * import { Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * const result = await box.run("echo out; echo err >&2; exit 3");
 * console.log(result.ok, result.exitCode, result.stdout, result.stderr); // false 3 out err
 * ```
 */
export class Result<T extends string | Uint8Array = string> {
  /** The output; of a longer one the last MiB, or the last 8 MiB with `onStdout` or `onStderr`. */
  readonly stdout: T;
  /** The error output; of a longer one as much as of `stdout`. */
  readonly stderr: T;
  /** The exit code, or null if a signal ended the command or its end is unknown. */
  readonly exitCode: number | null;
  /** The number of the signal that ended the command, or null. */
  readonly signal: number | null;
  /** Whether the command was killed at its time limit. */
  readonly timedOut: boolean;
  /** Whether part of the output is missing here. */
  readonly truncated: boolean;
  /** The limits that the command reached, such as `LIMIT_MEMORY`. */
  readonly limitsHit: string[];
  /** Why lodge ended the command, or why its result is unknown; null if it ended by itself. */
  readonly reason: string | null;
  /** How long the command ran. */
  readonly durationMs: number;
  /** The id of the command, for {@link Sandbox.command}. */
  readonly commandId: string;

  /** @internal */
  constructor(result: ExecResult, stdout: T, stderr: T, dropped: boolean) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.exitCode = result.exit_code;
    this.signal = result.signal;
    this.timedOut = result.timed_out;
    this.truncated = result.truncated || dropped;
    this.limitsHit = [...result.limits];
    if (dropped && !this.limitsHit.includes("LIMIT_OUTPUT")) this.limitsHit.push("LIMIT_OUTPUT");
    this.reason = result.reason;
    this.durationMs = result.duration_ms;
    this.commandId = result.exec_id;
  }

  /** Whether the command ended with exit code 0. */
  get ok(): boolean {
    return this.exitCode === 0 && !this.timedOut;
  }
}

/** How a command ended, in words. */
function endOf(result: Result<string | Uint8Array>): string {
  if (result.timedOut) return `timed out after ${result.durationMs} ms`;
  if (result.reason !== null) return `did not end by itself: ${result.reason}`;
  if (result.signal !== null) return `was killed by signal ${result.signal}`;
  return result.exitCode === null ? "ended without a result: its sandbox ended" : `ended with exit code ${result.exitCode}`;
}

/** What a limit did to a command, in words. */
const LIMITS: Record<string, string> = {
  LIMIT_MEMORY: "ran out of memory",
  LIMIT_PIDS: "reached its limit of processes",
  LIMIT_DISK: "ran out of disk space",
  LIMIT_FILE: "reached the limit of the size of a file",
};

function limitsOf(result: Result<string | Uint8Array>): string {
  const found = result.limitsHit.filter((name) => name in LIMITS).map((name) => `${LIMITS[name]} (${name})`);
  return found.length ? `; it ${found.join(" and ")}` : "";
}

/** The last line of its error output, for a message. */
function lastWords(result: Result<string | Uint8Array>): string {
  const text = typeof result.stderr === "string" ? result.stderr : newDecoder().decode(result.stderr.slice(-400));
  const line = text.trimEnd().split("\n").at(-1)?.trim() ?? "";
  return line ? `: ${line.slice(0, 200)}` : "";
}

/**
 * A command failed: it ended with another exit code than 0, by a signal or at its time limit.
 *
 * {@link Sandbox.run} throws it with `check: true`.
 *
 * @example
 * ```ts
 * import { CommandError, Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * try {
 *   await box.run("cat missing", { check: true });
 * } catch (error) {
 *   if (!(error instanceof CommandError)) throw error;
 *   console.log(error.result.exitCode, error.result.stderr); // 1 cat: missing: No such file or directory
 * }
 * ```
 */
export class CommandError extends LodgeError {
  /** The end of the command and its output. */
  readonly result: Result<string | Uint8Array>;

  /** Makes an error of a result; `what` replaces the words of the message before the end of the command. */
  constructor(result: Result<string | Uint8Array>, what = "command") {
    super({ code: "COMMAND", message: `${what} ${endOf(result)}${limitsOf(result)}${lastWords(result)}` });
    this.result = result;
  }
}
Object.defineProperty(CommandError.prototype, "name", { value: "CommandError", writable: true, configurable: true });

/** Decodes UTF-8 in whole characters; a byte order mark is a character like others. */
export function newDecoder(): { decode(data?: Uint8Array, options?: { stream: boolean }): string } {
  return new TextDecoder("utf-8", { ignoreBOM: true });
}

// ---- output ----------------------------------------------------------------------------------------

const OUTPUT_MOST = 8 << 20; // of each stream, as the API returns it

/** The last bytes of a stream, and its text in whole characters. */
class Collected {
  #pieces: Uint8Array[] = [];
  #size = 0;
  #decoder = newDecoder();
  dropped = false;

  keep(data: Uint8Array): void {
    this.#pieces.push(data);
    this.#size += data.length;
    // twice the most before it is cut, so that it is copied seldom
    if (this.#size > 2 * OUTPUT_MOST) this.#cut();
  }

  #cut(): Buffer {
    const all = Buffer.concat(this.#pieces);
    const kept = all.subarray(Math.max(0, all.length - OUTPUT_MOST));
    this.dropped ||= kept.length < all.length;
    this.#pieces = [kept];
    this.#size = kept.length;
    return kept;
  }

  bytes(): Uint8Array {
    return this.#cut();
  }

  /** Text of these bytes and of those before that were not a whole character. */
  text(data?: Uint8Array): string {
    return data ? this.#decoder.decode(data, { stream: true }) : this.#decoder.decode();
  }
}

type Listener = ((output: never) => unknown) | undefined;

/** What a listener threw. */
class Thrown {
  constructor(readonly error: unknown) {}
}

async function tell(listener: Listener, text: boolean, from: Collected, data?: Uint8Array): Promise<void> {
  if (!listener) return;
  const output = text ? from.text(data) : data;
  if (!output?.length) return;
  try {
    await (listener as (output: string | Uint8Array) => unknown)(output);
  } catch (error) {
    throw new Thrown(error);
  }
}

/** Runs a command and tells listeners its output; if one throws, the command is killed. */
async function listen(session: SessionClient, words: Words, wire: StreamOptions, options: RunOptions): Promise<Result<string | Uint8Array>> {
  let id: string | undefined;
  let ended = false;
  async function* events() {
    for await (const e of session.stream(words, wire, callOf(options))) {
      if (e.event === "started") id = e.exec_id;
      ended ||= e.event === "exit";
      yield e;
    }
  }
  try {
    return await collect(events(), options);
  } catch (thrown) {
    if (!(thrown instanceof Thrown)) throw thrown;
    if (id !== undefined && !ended) await session.command(id).kill().catch(() => undefined);
    throw thrown.error;
  }
}

/** Reads a stream of events to its end; listeners hear what it says. */
async function collect(events: AsyncIterable<ExecEvent>, options: RunOptions): Promise<Result<string | Uint8Array>> {
  const text = options.text !== false;
  const got = { stdout: new Collected(), stderr: new Collected() };
  const listeners = { stdout: options.onStdout, stderr: options.onStderr };
  for await (const e of events) {
    if (e.event === "stdout" || e.event === "stderr") {
      got[e.event].keep(e.data);
      await tell(listeners[e.event], text, got[e.event], e.data);
    }
    if (e.event !== "exit") continue;
    await tell(listeners.stdout, text, got.stdout);
    await tell(listeners.stderr, text, got.stderr);
    return resultOf(e, got.stdout, got.stderr, text);
  }
  throw lodgeError({ code: "PROTOCOL", message: "the command's stream has no end" });
}

function resultOf(end: ExecResult, out: Collected, err: Collected, text: boolean): Result<string | Uint8Array> {
  const [stdout, stderr] = [out.bytes(), err.bytes()];
  const dropped = out.dropped || err.dropped;
  if (!text) return new Result<Uint8Array>(end, stdout, stderr, dropped);
  const decode = (bytes: Uint8Array) => newDecoder().decode(bytes);
  return new Result<string>(end, decode(stdout), decode(stderr), dropped);
}

// ---- run -------------------------------------------------------------------------------------------

const RUN = ["cwd", "env", "user", "input", "timeoutMs", "check", "background", "onStdout", "onStderr", "text", "idempotencyKey"];

function wireOptions(options: RunOptions): Pick<ExecRequest, "cwd" | "env" | "user" | "timeout_ms" | "idempotency_key"> {
  return given({
    cwd: options.cwd,
    env: options.env,
    user: options.user,
    timeout_ms: checkMs("timeoutMs", options.timeoutMs),
    idempotency_key: options.idempotencyKey,
  });
}

/** Refuses what is no command, and arguments that are not in its list. */
function checkWords(words: unknown, options: unknown): void {
  if (Array.isArray(options) || typeof options === "string")
    throw new TypeError(
      `run: the second argument is an object of options; use run(${JSON.stringify([words, options].flat().slice(0, 4))}) ` +
        "for a program with arguments",
    );
  const invalid = (message: string) => lodgeError({ code: "INVALID", message });
  if (typeof words === "string") return;
  if (!Array.isArray(words))
    throw invalid(`command: must be bash text, or a list of a program and its arguments, not ${kindOf(words)}`);
  const wrong = (words as unknown[]).find((word) => typeof word !== "string");
  if (wrong !== undefined) throw invalid(`command: every word must be text, not ${kindOf(wrong)}`);
}

export async function runCommand(
  session: SessionClient,
  words: Words,
  options: RunOptions,
): Promise<Result<string | Uint8Array> | Command> {
  checkWords(words, options);
  checkOptions("run", options, RUN, REQUEST);
  if (options.background) return startCommand(session, words, options);
  const { input: stdin, check, onStdout, onStderr } = options;
  const wire = given({ ...wireOptions(options), stdin });
  let result: Result<string | Uint8Array>;
  if (onStdout || onStderr || (stdin !== undefined && typeof stdin !== "string")) {
    result = await listen(session, words, wire, options);
  } else {
    const { raw, stdout, stderr, ...end } = await session.exec(words, wire, callOf(options));
    result =
      options.text === false
        ? new Result<Uint8Array>(end, raw.stdout, raw.stderr, false)
        : new Result<string>(end, stdout, stderr, false);
  }
  if (check && !result.ok) throw new CommandError(result);
  return result;
}

async function startCommand(session: SessionClient, words: Words, options: RunOptions): Promise<Command> {
  for (const name of ["input", "check", "onStdout", "onStderr"] as const)
    if (options[name])
      throw lodgeError({
        code: "INVALID",
        message: `${name}: not possible with background; the Command that run returns has write(), wait() and logs()`,
      });
  const started = await session.start(words, wireOptions(options), callOf(options));
  return new Command(started, { command: typeof words === "string" ? words : [...words], state: "running" });
}

// ---- in the background -----------------------------------------------------------------------------

/** Options of {@link Command.wait} and {@link Command.waitForLog}. */
export interface WaitOptions extends RequestOptions {
  /** Throws a {@link TimeoutError} after this time and leaves the command running; 0, the default, is no limit. */
  timeoutMs?: number | undefined;
}

/** Options of {@link Command.logs}. */
export interface LogsOptions extends RequestOptions {
  /** Whether output is text in whole characters, the default; with `false` it is bytes. */
  text?: boolean | undefined;
  /** Goes on until the command ends, the default; `false` ends with what there is now. */
  follow?: boolean | undefined;
}

/**
 * A command that was started in the background, or is found by its id.
 *
 * The command runs in the sandbox and does not depend on this object.
 *
 * @example
 * ```ts
 * import { Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * const server = await box.run("echo listening; sleep 600", { background: true });
 * console.log(await server.waitForLog("listening"));
 * const again = box.command(server.id); // also in another process
 * await again.kill();
 * console.log((await server.wait()).signal); // 9
 * ```
 */
export class Command {
  /** The id of the command, for {@link Sandbox.command}. */
  readonly id: string;
  readonly #execution: Execution;
  #record: Partial<Exec>;

  static {
    addWords(Command.prototype, "Command", "Command");
  }

  /** @internal */
  constructor(execution: Execution, record: Partial<Exec> = {}) {
    this.id = execution.id;
    this.#execution = execution;
    this.#record = record;
  }

  /** The command as it was given to {@link Sandbox.run}, or null if this object was made of an id only. */
  get cmd(): string | string[] | null {
    return this.#record.command ?? null;
  }

  /** The state when this object last saw it, or null if it did not ask yet. */
  get state(): ExecState | null {
    return this.#record.state ?? null;
  }

  /** The exit code when this object last saw it, or null if there is none. */
  get exitCode(): number | null {
    return this.#record.exit_code ?? null;
  }

  /** The time when it started, or null if this object did not ask yet. */
  get startedAt(): Date | null {
    return this.#record.started_at === undefined ? null : new Date(this.#record.started_at);
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](_: number, options: object, inspect?: (value: object, options: object) => string): string {
    const { id, cmd, state, exitCode, startedAt } = this;
    return `Command ${inspect ? inspect({ id, cmd, state, exitCode, startedAt }, options) : id}`;
  }

  /** Returns whether the command is still running. */
  async isRunning(options: RequestOptions = {}): Promise<boolean> {
    checkOptions("isRunning", options, REQUEST);
    this.#record = await this.#execution.get(callOf(options));
    return this.#record.state === "running";
  }

  /** Waits for the end of the command and returns its result with the output that the service has kept, as bytes. */
  wait(options: WaitOptions & { text: false }): Promise<Result<Uint8Array>>;
  /** Waits for the end of the command and returns its result with the output that the service has kept. */
  wait(options?: WaitOptions & { text?: true | undefined }): Promise<Result>;
  async wait(options: WaitOptions & { text?: boolean | undefined } = {}): Promise<Result | Result<Uint8Array>> {
    checkOptions("wait", options, ["timeoutMs", "text"], REQUEST);
    return this.#within(options, "wait", async (signal) => {
      const { raw, stdout, stderr, ...end } = await this.#execution.wait({ signal });
      this.#record = end;
      return options.text === false
        ? new Result<Uint8Array>(end, raw.stdout, raw.stderr, false)
        : new Result<string>(end, stdout, stderr, false);
    });
  }

  /** Yields the output as bytes, with the name of its stream, from the beginning on until the command ends. */
  logs(options: LogsOptions & { text: false }): AsyncGenerator<[OutputName, Uint8Array], void, undefined>;
  /**
   * Yields the output in whole characters, with the name of its stream, from the beginning on until the command ends.
   *
   * Output that the service no longer keeps is left out: it keeps 1 MiB of each stream.
   */
  logs(options?: LogsOptions & { text?: true | undefined }): AsyncGenerator<[OutputName, string], void, undefined>;
  async *logs(options: LogsOptions = {}): AsyncGenerator<[OutputName, never], void, undefined> {
    checkOptions("logs", options, ["follow", "text"], REQUEST);
    const pieces = options.follow === false ? this.#kept(options) : this.#followed(options);
    const decoders = { stdout: newDecoder(), stderr: newDecoder() };
    for await (const [stream, data] of pieces) {
      const output = options.text === false ? data : decoders[stream].decode(data, { stream: true });
      if (output.length) yield [stream, output as never];
    }
    for (const stream of ["stdout", "stderr"] as const) {
      const text = decoders[stream].decode();
      if (text) yield [stream, text as never];
    }
  }

  async *#followed(options: RequestOptions): AsyncGenerator<[OutputName, Uint8Array], void, undefined> {
    for await (const e of this.#execution.stream({}, callOf(options)))
      if (e.event === "stdout" || e.event === "stderr") yield [e.event, e.data];
  }

  /** What there is now. */
  async *#kept(options: RequestOptions): AsyncGenerator<[OutputName, Uint8Array], void, undefined> {
    const record = await this.#execution.get(callOf(options));
    const end = { stdout: record.stdout_bytes, stderr: record.stderr_bytes };
    for (let from = await this.#begin(options); from.stdout < end.stdout || from.stderr < end.stderr; ) {
      const part = await this.#execution.output(from, callOf(options));
      yield ["stdout", part.stdout];
      yield ["stderr", part.stderr];
      if (part.next.stdout === from.stdout && part.next.stderr === from.stderr) break;
      from = part.next;
    }
  }

  /** The first bytes that are still kept. */
  async #begin(options: RequestOptions): Promise<{ stdout: number; stderr: number }> {
    try {
      await this.#execution.output({ stdout: 0, stderr: 0 }, callOf(options));
      return { stdout: 0, stderr: 0 };
    } catch (error) {
      if (!(error instanceof LodgeError) || error.code !== "OUTPUT_GONE") throw error;
      const kept = error.details as { stdout_offset?: number; stderr_offset?: number };
      return { stdout: kept.stdout_offset ?? 0, stderr: kept.stderr_offset ?? 0 };
    }
  }

  /**
   * Waits for a line of output that contains a text or matches a pattern, and returns the line.
   *
   * Lines that were written before count too. If the command ends first, it throws a {@link CommandError}.
   */
  async waitForLog(pattern: string | RegExp, options: WaitOptions = {}): Promise<string> {
    checkOptions("waitForLog", options, ["timeoutMs"], REQUEST);
    const fits = (line: string) => (typeof pattern === "string" ? line.includes(pattern) : line.search(pattern) >= 0);
    return this.#within(options, `waitForLog(${String(pattern)})`, async (signal) => {
      const open = { stdout: "", stderr: "" };
      for await (const [stream, text] of this.logs({ signal })) {
        const lines = (open[stream] + text).split("\n");
        open[stream] = lines.pop()!.slice(-LINE_MOST);
        const line = lines.find(fits);
        if (line !== undefined) return line.replace(/\r$/, "");
      }
      const last = [open.stdout, open.stderr].find((line) => line !== "" && fits(line));
      if (last !== undefined) return last;
      throw new CommandError(await this.wait({ signal }), `no line matched ${String(pattern)}; the command`);
    });
  }

  async #within<T>(options: WaitOptions, what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = new Patience(options.signal, checkMs("timeoutMs", options.timeoutMs) ?? 0, `${what} of command ${this.id}`);
    try {
      return await work(own.signal);
    } finally {
      own.end();
    }
  }

  /** Writes to the input of the command; with `eof` it also closes the input. */
  async write(input: string | Uint8Array, options: RequestOptions & { eof?: boolean | undefined } = {}): Promise<void> {
    checkOptions("write", options, ["eof"], REQUEST);
    await this.#execution.write(input, { eof: options.eof === true }, callOf(options));
  }

  /** Kills the command and everything it started; with `signal` it sends that signal instead, such as `"TERM"` or 15. */
  async kill(signal?: number | string, options: RequestOptions = {}): Promise<void> {
    checkOptions("kill", options, REQUEST);
    if (signal === undefined) await this.#execution.kill(callOf(options));
    else await this.#execution.signal(signal, callOf(options));
  }
}

/** The call of {@link Sandbox.commands}. */
export interface ListCommands extends CommandsWords {
  /** Lists the commands of the last 7 days, the oldest first; with `running` only those that run. */
  (options?: RequestOptions & { running?: boolean | undefined }): Promise<Command[]>;
}

// words of other services, which the compiler then explains
export interface Command extends Hints<"Command"> {}

const LINE_MOST = 1 << 20; // of a line without an end
