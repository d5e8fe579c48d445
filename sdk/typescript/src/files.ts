// SPDX-License-Identifier: Apache-2.0
// Files of a session: whole, as streams, as archives; and what changes in them.
import type { Readable } from "node:stream";

import { LodgeError, isLodgeError } from "./errors.js";
import { frames, pieces } from "./frames.js";
import { encodeBytes, streamOf, type Bytes, type CallOptions, type Question, type Wire } from "./http.js";
import type { Change, Entry, EntryAnswer, EntryList, WatchEnd } from "./types.js";

/**
 * Below the session's working directory; with a leading slash from the root on. Names on Linux are bytes: those that
 * are no UTF-8 are given as such.
 */
export type FilePath = string | Uint8Array;

interface Resume {
  /** false: 409 rather than resuming a session that sleeps. */
  resume?: boolean;
}

export interface ReadOptions extends Resume {
  /** From this byte on. */
  offset?: number;
  /** At most so many. */
  length?: number;
  /** A tag: PRECONDITION_FAILED if it is another file by now. */
  ifMatch?: string;
}

export interface WriteOptions extends Resume {
  /** Octal, as "755"; default: as it was, or 644. */
  mode?: string;
  /** Make the directories that are missing. */
  mkdir?: boolean;
  /** At the end of the file, as it comes, rather than all or nothing. */
  append?: boolean;
  /** A tag, or `*`: only over this file. */
  ifMatch?: string;
  /** Only if there is none. */
  ifNone?: boolean;
}

export interface ListOptions extends Resume {
  /** How deep, 64 at most. */
  depth?: number;
  /** `*` and `?`, compared with the name, or with the path below if it has a slash. */
  glob?: string;
}

export interface ArchiveOptions extends Resume {
  format?: "tar" | "tar.zst";
}

const RETRY_MS = 60_000;
const PAGE = 1000;

function isRoot(path: FilePath): boolean {
  return typeof path === "string" ? path.startsWith("/") : path[0] === 0x2f;
}

/** A leading slash must not be one of the URL's. */
function encodePath(path: FilePath): string {
  const text = encodeBytes(path, "/");
  return isRoot(path) ? "%2f" + text.slice(1) : text;
}

function resumeOf(options: Resume): 0 | undefined {
  return options.resume === false ? 0 : undefined;
}

function rangeOf(offset: number | undefined, length: number | undefined): string | undefined {
  if (offset === undefined && length === undefined) return undefined;
  const from = offset ?? 0;
  return `bytes=${from}-${length === undefined ? "" : from + length - 1}`;
}

export class Files {
  readonly #wire: Wire;
  readonly #session: string;

  constructor(wire: Wire, session: string) {
    this.#wire = wire;
    this.#session = session;
  }

  #at(path: FilePath): string {
    return `${this.#session}/files/${encodePath(path)}`;
  }

  // ---- out --------------------------------------------------------------------------------------

  /** The whole file, or the part that is asked for, in memory. */
  async read(path: FilePath, options: ReadOptions = {}, call: CallOptions = {}): Promise<Buffer> {
    const all: Buffer[] = [];
    for await (const piece of this.#bytes(path, options, call)) all.push(piece);
    return Buffer.concat(all);
  }

  async readText(path: FilePath, options: ReadOptions = {}, call: CallOptions = {}): Promise<string> {
    return (await this.read(path, options, call)).toString("utf8");
  }

  /** The same as a stream, which reads no further than its consumer. Errors are emitted by the stream. */
  readStream(path: FilePath, options: ReadOptions = {}, call: CallOptions = {}): Readable {
    return streamOf(this.#bytes(path, options, call));
  }

  /** A connection that breaks is followed by another, if it is still the same file. */
  async *#bytes(path: FilePath, options: ReadOptions, call: CallOptions): AsyncGenerator<Buffer, void, undefined> {
    let { offset, length, ifMatch } = options;
    if (length === 0) return;
    for (let broke: unknown; ; ) {
      const response = await this.#wire
        .open({
          method: "GET",
          path: this.#at(path),
          query: { resume: resumeOf(options) },
          headers: { range: rangeOf(offset, length), "if-match": ifMatch },
          retryMs: broke ? RETRY_MS : undefined,
          ...call,
        })
        .catch((error: unknown) => {
          if (broke && isLodgeError(error, "RANGE")) return undefined; // only the end was missing
          throw broke && isLodgeError(error, "PRECONDITION_FAILED") ? broke : error;
        });
      if (!response) return;
      ifMatch = response.headers.etag ?? ifMatch;
      try {
        for await (const piece of pieces(this.#wire, response)) {
          offset = (offset ?? 0) + piece.length;
          if (length !== undefined) length -= piece.length;
          yield piece;
        }
        return;
      } catch (error) {
        if (!isLodgeError(error, "CONNECTION") || ifMatch === undefined) throw error;
        broke = error;
      }
      if (length !== undefined && length <= 0) return;
    }
  }

  // ---- in ---------------------------------------------------------------------------------------

  /**
   * Writes a file: a reader sees the old one or the new one, never a part (but with `append`). A stream is read no
   * faster than it is taken; with one a broken connection is not tried again.
   */
  async write(path: FilePath, data: Bytes, options: WriteOptions = {}, call: CallOptions = {}): Promise<Entry> {
    const twice = !options.append && !options.ifMatch && !options.ifNone;
    const answer = await this.#wire.json<EntryAnswer>({
      method: "PUT",
      path: this.#at(path),
      query: { mode: options.mode, mkdir: options.mkdir, append: options.append, resume: resumeOf(options) },
      headers: {
        "content-type": "application/octet-stream",
        "if-match": options.ifMatch,
        "if-none-match": options.ifNone ? "*" : undefined,
      },
      body: data,
      again: twice ? "safe" : "unsent",
      timeoutMs: 0,
      ...call,
    });
    return answer.entry;
  }

  // ---- names ------------------------------------------------------------------------------------

  async #post(path: FilePath, question: Partial<Question>): Promise<Entry> {
    return (await this.#wire.json<EntryAnswer>({ method: "POST", path: this.#at(path), ...question })).entry;
  }

  /** What it is. `follow`: what a symbolic link leads to. */
  async stat(path: FilePath, options: Resume & { follow?: boolean } = {}, call: CallOptions = {}): Promise<Entry> {
    return this.#post(path, {
      query: { stat: 1, follow: options.follow, resume: resumeOf(options) },
      again: "safe",
      ...call,
    });
  }

  async exists(path: FilePath, options: Resume = {}, call: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options, call);
      return true;
    } catch (error) {
      if (isLodgeError(error, "NOT_FOUND")) return false;
      throw error;
    }
  }

  /** The tag and size of a file, for `ifMatch`. */
  async head(path: FilePath, options: Resume = {}, call: CallOptions = {}): Promise<{ etag: string; size: number }> {
    const response = await this.#wire.open({
      method: "HEAD",
      path: this.#at(path),
      query: { resume: resumeOf(options) },
      ...call,
    });
    response.resume();
    return { etag: response.headers.etag ?? "", size: Number(response.headers["content-length"] ?? 0) };
  }

  /** What is in a directory, sorted by path. Names that are no UTF-8 come with U+FFFD. */
  async *list(
    path: FilePath = "",
    options: ListOptions = {},
    call: CallOptions = {},
  ): AsyncGenerator<Entry, void, undefined> {
    for (let after: number | null = 0; after !== null; ) {
      const page: EntryList = await this.#wire.json<EntryList>({
        method: "GET",
        path: this.#at(path),
        query: { list: 1, depth: options.depth, glob: options.glob, limit: PAGE, after, resume: resumeOf(options) },
        ...call,
      });
      yield* page.entries;
      after = page.next;
    }
  }

  /** Makes a directory. `parents`: also those above it, and it may be there. */
  async mkdir(
    path: FilePath,
    options: Resume & { parents?: boolean; mode?: string } = {},
    call: CallOptions = {},
  ): Promise<Entry> {
    const query = { mkdir: 1, parents: options.parents, mode: options.mode, resume: resumeOf(options) };
    return this.#post(path, { query, again: options.parents ? "safe" : "unsent", ...call });
  }

  /** Moves it. `replace: false`: CONFLICT if there is something. */
  async rename(
    from: FilePath,
    to: FilePath,
    options: Resume & { replace?: boolean } = {},
    call: CallOptions = {},
  ): Promise<Entry> {
    return this.#post(from, { query: { rename: to, replace: options.replace, resume: resumeOf(options) }, ...call });
  }

  /** `recursive`: with everything in it; else a directory must be empty. */
  async remove(
    path: FilePath,
    options: Resume & { recursive?: boolean; ifMatch?: string } = {},
    call: CallOptions = {},
  ): Promise<void> {
    await this.#wire.json({
      method: "DELETE",
      path: this.#at(path),
      query: { recursive: options.recursive, resume: resumeOf(options) },
      headers: { "if-match": options.ifMatch },
      ...call,
    });
  }

  // ---- archives ---------------------------------------------------------------------------------

  /** A directory as a tar, plain or packed by zstd. */
  download(path: FilePath = "", options: ArchiveOptions = {}, call: CallOptions = {}): Readable {
    const { format } = options;
    return archiveStream(this.#wire, {
      path: this.#session + "/archive",
      query: { path, format, resume: resumeOf(options) },
      ...call,
    });
  }

  /** Unpacks a tar into a directory, which is made where it is missing. What was unpacked before a failure stays. */
  async upload(
    archive: Bytes,
    path: FilePath = "",
    options: ArchiveOptions = {},
    call: CallOptions = {},
  ): Promise<void> {
    await this.#wire.json({
      method: "PUT",
      path: this.#session + "/archive",
      query: { path, format: options.format ?? "tar", resume: resumeOf(options) },
      headers: { "content-type": options.format === "tar.zst" ? "application/zstd" : "application/x-tar" },
      body: archive,
      timeoutMs: 0,
      ...call,
    });
  }

  // ---- changes ----------------------------------------------------------------------------------

  /**
   * What changes in a directory; `ready` comes first. It ends with an error when the sandbox or the directory is
   * gone, or the connection breaks: later changes are not known.
   */
  async *watch(
    path: FilePath = "",
    options: Resume & { recursive?: boolean } = {},
    call: CallOptions = {},
  ): AsyncGenerator<Change, void, undefined> {
    const response = await this.#wire.open({
      method: "GET",
      path: this.#session + "/watch",
      query: { path, recursive: options.recursive, resume: resumeOf(options) },
      headers: { accept: "text/event-stream" },
      ...call,
    });
    for await (const frame of frames<Change | WatchEnd>(this.#wire, response)) {
      if (frame.event === "end") {
        const end = frame.data as WatchEnd;
        throw new LodgeError({ code: end.code, message: end.message, status: response.statusCode ?? 0 });
      }
      yield frame.data as Change;
    }
    throw new LodgeError({
      code: "CONNECTION",
      message: "the watch has ended",
      retryable: true,
      details: { sent: true },
    });
  }
}

/** The bytes of an answer that cannot be continued. */
export function archiveStream(wire: Wire, question: Omit<Question, "method">): Readable {
  return streamOf(
    (async function* () {
      yield* pieces(wire, await wire.open({ method: "GET", ...question }));
    })(),
  );
}
