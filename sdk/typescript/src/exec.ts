// SPDX-License-Identifier: Apache-2.0
// Commands: waited for, as a stream, in the background.
import { randomUUID } from "node:crypto";

import { isLodgeError, lodgeError } from "./errors.js";
import { lines, parsed } from "./frames.js";
import { Patience, checkMs, encodeBytes, rest, type Bytes, type CallOptions, type Wire } from "./http.js";
import type {
  Exec,
  ExecAnswer,
  ExecOutput,
  ExecRecord,
  ExecRequest,
  ExecResult,
  ExecStarted,
  Written,
} from "./types.js";

/** A command: bash text, or a program and its arguments. */
export type Command = string | readonly string[];

/** Options of {@link SessionClient.start}; output is always exact, so there is no `encoding`. */
export type BackgroundOptions = Omit<ExecRequest, "command" | "argv" | "stdin" | "background" | "encoding">;

/** Options of {@link SessionClient.exec}. */
export interface ExecOptions extends Omit<BackgroundOptions, "stdin_open"> {
  /** The whole input of the command. */
  stdin?: string | Uint8Array;
}

/** Options of {@link SessionClient.stream}. */
export interface StreamOptions extends Omit<BackgroundOptions, "stdin_open"> {
  /** The whole input of the command, which it gets as fast as it reads. */
  stdin?: Bytes;
}

/** The end of a command and what it wrote. */
export interface ExecOutcome extends ExecResult {
  /** The output as text; bytes that are not UTF-8 are U+FFFD. */
  stdout: string;
  /** The error output as text; bytes that are not UTF-8 are U+FFFD. */
  stderr: string;
  /** The bytes of both streams. */
  raw: { stdout: Uint8Array; stderr: Uint8Array };
}

/** The name of an output stream. */
export type OutputName = "stdout" | "stderr";

/** An event of a command that runs. */
export type ExecEvent =
  | { event: "started"; exec_id: string }
  | { event: OutputName; /** Of the first byte in its stream. */ offset: number; data: Uint8Array }
  | {
      event: "gap";
      /** Bytes of this stream are no longer retained. */ stream: OutputName;
      offset: number;
      bytes: number;
    }
  | ({ event: "exit" } & ExecResult);

/** Positions in both streams. */
export interface Offsets {
  /** The next byte of the output. */
  stdout: number;
  /** The next byte of the error output. */
  stderr: number;
}

/** A part of the output of a command. */
export interface OutputPart {
  /** Bytes of the output. */
  stdout: Uint8Array;
  /** Bytes of the error output. */
  stderr: Uint8Array;
  /** The positions to go on from. */
  next: Offsets;
  /** Whether the command has ended and this is the end of its output. */
  done: boolean;
}

const TIMEOUT_MS = 30_000; // of a command that says nothing about it
const POLL_MS = 20_000;
const RECONNECT_MS = 60_000; // a daemon that starts again has so long
const STDIN_MOST = 64 << 10; // more goes beside the request
const ENDED_TRIES = 100;
const REOPEN_MS = 200;

export function commandOf(command: Command): { command: string } | { argv: string[] } {
  return typeof command === "string" ? { command } : { argv: [...command] };
}

/** Of a command, with the time that lodged itself may need. */
function patienceFor(wire: Wire, timeoutMs: number | undefined): number {
  const own = checkMs("timeout_ms", timeoutMs) ?? TIMEOUT_MS;
  return own === 0 || wire.timeoutMs === 0 ? 0 : own + wire.timeoutMs;
}

/** As a text of JSON, if that is the same. */
function asText(input: string | Uint8Array): string | undefined {
  if (input.length > STDIN_MOST) return undefined;
  try {
    const text =
      typeof input === "string" ? input : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(input);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

// ---- waited for ------------------------------------------------------------------------------------

export async function run(
  wire: Wire,
  at: string,
  command: Command,
  options: ExecOptions,
  call: CallOptions,
): Promise<ExecOutcome> {
  const { stdin, ...more } = options;
  const text = stdin === undefined ? undefined : asText(stdin);
  if (stdin !== undefined && text === undefined) return gather(stream(wire, at, command, { ...more, stdin }, call));
  const { stdout, stderr, ...result } = await wire.json<ExecAnswer>({
    method: "POST",
    path: at + "/exec",
    json: {
      idempotency_key: randomUUID(),
      ...more,
      ...commandOf(command),
      ...(text === undefined ? {} : { stdin: text }),
      encoding: "base64",
    },
    again: "safe",
    timeoutMs: patienceFor(wire, options.timeout_ms),
    retryMs: RECONNECT_MS,
    ...call,
  });
  return outcome(result, Buffer.from(stdout, "base64"), Buffer.from(stderr, "base64"));
}

function outcome(result: ExecResult, stdout: Buffer, stderr: Buffer): ExecOutcome {
  return { ...result, stdout: stdout.toString("utf8"), stderr: stderr.toString("utf8"), raw: { stdout, stderr } };
}

/** All of it in memory. */
export async function gather(events: AsyncIterable<ExecEvent>): Promise<ExecOutcome> {
  const got = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  for await (const e of events) {
    if (e.event === "stdout" || e.event === "stderr") got[e.event].push(e.data);
    if (e.event !== "exit") continue;
    const { event: _, ...result } = e;
    return outcome(result, Buffer.concat(got.stdout), Buffer.concat(got.stderr));
  }
  throw lodgeError({ code: "PROTOCOL", message: "the command's stream has no end" });
}

// ---- as a stream -----------------------------------------------------------------------------------

/** The position in the output: no byte is repeated, and missing bytes are reported. */
class Reading {
  readonly at: Offsets = { stdout: 0, stderr: 0 };
  gap = false;

  constructor(from?: Partial<Offsets>) {
    Object.assign(this.at, from);
  }

  *take(stream: OutputName, offset: number, data: Uint8Array): Generator<ExecEvent, void, undefined> {
    yield* this.skip(stream, offset);
    const fresh = data.subarray(Math.max(0, this.at[stream] - offset));
    if (fresh.length === 0) return;
    const from = this.at[stream];
    this.at[stream] += fresh.length;
    yield { event: stream, offset: from, data: fresh };
  }

  *skip(stream: OutputName, to: number): Generator<ExecEvent, void, undefined> {
    const from = this.at[stream];
    if (to <= from) return;
    this.gap = true;
    this.at[stream] = to;
    yield { event: "gap", stream, offset: from, bytes: to - from };
  }
}

type StreamLine = { event: string; exec_id?: string; offset?: number; data?: string };

/**
 * Events of a command as they happen. A slow reader slows the command. When the connection breaks, or lodged is
 * started again, it goes on where it was.
 */
export async function* stream(
  wire: Wire,
  at: string,
  command: Command,
  options: StreamOptions,
  call: CallOptions,
): AsyncGenerator<ExecEvent, void, undefined> {
  const { stdin, ...more } = options;
  checkMs("timeout_ms", options.timeout_ms);
  const json = {
    idempotency_key: randomUUID(),
    ...more,
    ...commandOf(command),
    ...(stdin === undefined ? {} : { stdin_open: true }),
    encoding: "base64",
  };
  const reading = new Reading();
  const own = new Patience(call.signal, 0, "exec");
  const calls = { ...call, signal: own.signal };
  let id: string | undefined;
  try {
    for (;;) {
      const response = await wire.open({
        method: "POST",
        path: at + "/exec",
        json,
        headers: { accept: "application/x-ndjson" },
        again: "safe",
        retryMs: RECONNECT_MS,
        ...calls,
      });
      try {
        for await (const line of lines(wire, response)) {
          const e = parsed<StreamLine>(line);
          if (e.event === "started") {
            if (id !== undefined)
              throw lodgeError({ code: "PROTOCOL", message: `${e.exec_id} answers in the place of command ${id}` });
            id = e.exec_id!;
            if (stdin !== undefined) feed(new Execution(wire, at, id), stdin, own);
            yield { event: "started", exec_id: id };
          } else if (e.event === "stdout" || e.event === "stderr") {
            yield* reading.take(e.event, e.offset!, Buffer.from(e.data!, "base64"));
          } else if (e.event === "exit") {
            yield e as ExecEvent;
            return;
          }
        }
      } catch (error) {
        if (!isLodgeError(error, "CONNECTION")) throw error;
      }
      own.signal.throwIfAborted();
      if (id !== undefined) return yield* follow(wire, at, id, reading, calls);
      await rest(REOPEN_MS, own.signal);
    }
  } finally {
    own.end();
  }
}

/** Beside the output: a command may want the one to be taken before it takes the other. */
function feed(execution: Execution, input: Bytes, own: Patience): void {
  execution.write(input, { eof: true }, { signal: own.signal, timeoutMs: 0 }).catch((error: unknown) => {
    // one that ends without reading it all is not wrong
    if (!isLodgeError(error, "CONFLICT", "NOT_FOUND")) own.fail(error);
  });
}

/** The same by offset, of a command that runs or has run. */
export async function* follow(
  wire: Wire,
  at: string,
  id: string,
  reading: Reading,
  call: CallOptions,
): AsyncGenerator<ExecEvent, void, undefined> {
  const execution = new Execution(wire, at, id);
  for (;;) {
    let part: OutputPart;
    try {
      part = await execution.output({ ...reading.at, waitMs: POLL_MS }, call);
    } catch (error) {
      if (!isLodgeError(error, "OUTPUT_GONE")) throw error;
      const kept = error.details as { stdout_offset?: number; stderr_offset?: number };
      const before = { ...reading.at };
      yield* reading.skip("stdout", kept.stdout_offset ?? 0);
      yield* reading.skip("stderr", kept.stderr_offset ?? 0);
      if (before.stdout === reading.at.stdout && before.stderr === reading.at.stderr) throw error; // not there yet
      continue;
    }
    yield* reading.take("stdout", reading.at.stdout, part.stdout);
    yield* reading.take("stderr", reading.at.stderr, part.stderr);
    if (part.done) break;
  }
  yield { event: "exit", ...resultOf(await execution.ended(call), reading.gap) };
}

/** As a stream reports it. Only its reader knows whether output is missing. */
function resultOf(exec: Exec, gap: boolean): ExecResult {
  const { exec_id, exit_code, signal, stdout_bytes, stderr_bytes, timed_out, oom_killed, reason, usage } = exec;
  const limits: ExecResult["limits"] = exec.limits.filter((limit) => limit !== "LIMIT_OUTPUT");
  if (gap) limits.push("LIMIT_OUTPUT");
  return {
    exec_id,
    exit_code,
    signal,
    stdout_bytes,
    stderr_bytes,
    truncated: gap,
    timed_out,
    oom_killed,
    lost: exec.state === "lost",
    reason,
    limits,
    duration_ms: exec.duration_ms ?? 0,
    usage,
  };
}

// ---- in the background -----------------------------------------------------------------------------

export async function start(
  wire: Wire,
  at: string,
  command: Command,
  options: BackgroundOptions,
  call: CallOptions,
): Promise<Execution> {
  const started = await wire.json<ExecStarted>({
    method: "POST",
    path: at + "/exec",
    json: {
      idempotency_key: randomUUID(),
      ...options,
      ...commandOf(command),
      timeout_ms: checkMs("timeout_ms", options.timeout_ms) ?? 0, // unlike lodged's: no caller waits for it
      background: true,
    },
    again: "safe",
    retryMs: RECONNECT_MS,
    ...call,
  });
  return new Execution(wire, at, started.exec_id);
}

/**
 * A handle on a started command, which does not depend on this object.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await using session = await client.enter();
 * const job = await session.start("cat; echo done");
 * await job.write("input\n", { eof: true });
 * console.log((await job.wait()).stdout); // input done
 * ```
 */
export class Execution {
  readonly #wire: Wire;
  readonly #session: string;
  readonly #path: string;

  constructor(
    wire: Wire,
    session: string,
    /** The `exec_id` of the command. */
    readonly id: string,
  ) {
    this.#wire = wire;
    this.#session = session;
    this.#path = `${session}/execs/${encodeBytes(id)}`;
  }

  /** Returns the record of the command: whether it runs, or how it ended. */
  async get(call: CallOptions = {}): Promise<Exec> {
    return (await this.#wire.json<ExecRecord>({ method: "GET", path: this.#path, retryMs: RECONNECT_MS, ...call }))
      .exec;
  }

  /**
   * Returns at most 1 MiB of each stream from these bytes on, and waits up to `waitMs` (60000 at most) for something.
   */
  async output(from: Partial<Offsets> & { waitMs?: number } = {}, call: CallOptions = {}): Promise<OutputPart> {
    const waitMs = checkMs("waitMs", from.waitMs) ?? 0;
    const o = await this.#wire.json<ExecOutput>({
      method: "GET",
      path: this.#path + "/output",
      query: {
        stdout_offset: from.stdout ?? 0,
        stderr_offset: from.stderr ?? 0,
        wait_ms: waitMs,
        encoding: "base64",
      },
      timeoutMs: this.#wire.timeoutMs === 0 ? 0 : waitMs + this.#wire.timeoutMs,
      retryMs: RECONNECT_MS,
      ...call,
    });
    return {
      stdout: Buffer.from(o.stdout, "base64"),
      stderr: Buffer.from(o.stderr, "base64"),
      next: { stdout: o.stdout_offset, stderr: o.stderr_offset },
      done: o.done,
    };
  }

  /** Yields output from these bytes on, and at last `exit`; output that is no longer retained is a `gap`. */
  stream(from: Partial<Offsets> = {}, call: CallOptions = {}): AsyncGenerator<ExecEvent, void, undefined> {
    return follow(this.#wire, this.#session, this.id, new Reading(from), call);
  }

  /** @deprecated `stream`, as in Python. */
  events(from: Partial<Offsets> = {}, call: CallOptions = {}): AsyncGenerator<ExecEvent, void, undefined> {
    return this.stream(from, call);
  }

  /**
   * Waits for the end of the command and returns the result with all output that is retained.
   *
   * `timeoutMs` limits the whole wait and leaves the command running; 0, the default, is no limit.
   */
  async wait(call: CallOptions = {}): Promise<Exec & ExecOutcome> {
    const own = new Patience(call.signal, checkMs("timeoutMs", call.timeoutMs) ?? 0, "wait");
    const calls = { signal: own.signal };
    try {
      const exec = await this.#end(calls);
      return { ...exec, ...(await gather(follow(this.#wire, this.#session, this.id, new Reading(), calls))) };
    } finally {
      own.end();
    }
  }

  /** Waits for the end of the command, as `wait` does. */
  result(call: CallOptions = {}): Promise<Exec & ExecOutcome> {
    return this.wait(call);
  }

  async #end(call: CallOptions): Promise<Exec> {
    for (;;) {
      const exec = await this.get(call);
      if (exec.state !== "running") return exec;
      // returns as soon as it writes or ends
      await this.output({ stdout: exec.stdout_bytes, stderr: exec.stderr_bytes, waitMs: POLL_MS }, call).catch(
        (error: unknown) => {
          if (!isLodgeError(error, "OUTPUT_GONE")) throw error;
        },
      );
      await rest(100, call.signal);
    }
  }

  /** Returns the record of a command whose output has ended. */
  async ended(call: CallOptions = {}): Promise<Exec> {
    for (let tries = 1; ; tries++) {
      const exec = await this.get(call);
      if (exec.state !== "running" || tries === ENDED_TRIES) return exec;
      await rest(50, call.signal);
    }
  }

  /**
   * Writes to the input of the command, as fast as it reads, and returns how many bytes it took.
   *
   * `eof` also closes the input. Throws CONFLICT if the command has no input or has ended. It is never sent twice:
   * some of it may have been read.
   */
  async write(input: Bytes, options: { eof?: boolean } = {}, call: CallOptions = {}): Promise<number> {
    const answer = await this.#wire.json<Written>({
      method: "POST",
      path: this.#path + "/stdin",
      query: { eof: options.eof },
      body: input,
      headers: { "content-type": "application/octet-stream" },
      timeoutMs: 0,
      ...call,
    });
    return answer.written_bytes;
  }

  /** Closes the input of the command. */
  async closeStdin(call: CallOptions = {}): Promise<void> {
    await this.write("", { eof: true }, call);
  }

  /** Sends a signal to the command and what it started: 15, "TERM" or "SIGTERM". */
  async signal(signal: number | string, call: CallOptions = {}): Promise<Exec> {
    return (
      await this.#wire.json<ExecRecord>({ method: "POST", path: this.#path + "/signal", json: { signal }, ...call })
    ).exec;
  }

  /** Changes the size of the terminal of the command. */
  async resize(size: { rows: number; cols: number }, call: CallOptions = {}): Promise<Exec> {
    const answer = await this.#wire.json<ExecRecord>({
      method: "POST",
      path: this.#path + "/resize",
      json: size,
      again: "safe",
      ...call,
    });
    return answer.exec;
  }

  /** Kills the command with everything it started; succeeds if it has ended. */
  async kill(call: CallOptions = {}): Promise<Exec> {
    return (await this.#wire.json<ExecRecord>({ method: "DELETE", path: this.#path, again: "safe", ...call })).exec;
  }
}
