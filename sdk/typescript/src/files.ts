// SPDX-License-Identifier: Apache-2.0
// Files of a session: whole, as streams, as archives; and what changes in them.
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";

import { isLodgeError, lodgeError } from "./errors.js";
import { frames, pieces } from "./frames.js";
import { encodeBytes, streamOf, type Bytes, type CallOptions, type Question, type Wire } from "./http.js";
import type { NodeBuffer, NodePathLike, NodeReadable, NodeWritable } from "./node_types.js";
import type { Change, Entry, EntryAnswer, EntryList, WatchEnd } from "./types.js";

/**
 * A path below the working directory of the session, or from the root with a leading slash.
 *
 * Names on Linux are bytes: those that are not UTF-8 are given as a `Uint8Array`.
 */
export type FilePath = string | Uint8Array;

interface Resume {
  /** Whether to resume a hibernated session, true by default; false throws CONFLICT instead. */
  resume?: boolean;
}

/** Options of {@link Files.read}. */
export interface ReadOptions extends Resume {
  /** Reads from this byte on. */
  offset?: number;
  /** Reads at most so many bytes. */
  length?: number;
  /** Throws PRECONDITION_FAILED if the file has another tag by now. */
  ifMatch?: string;
}

/** Options of {@link Files.write}. */
export interface WriteOptions extends Resume {
  /** The permissions in octal, such as "755". Default: those of the file it replaces, else 644. */
  mode?: string;
  /** Makes directories that are missing. */
  mkdir?: boolean;
  /** Appends to the file as data comes, rather than all or nothing. */
  append?: boolean;
  /** Writes only over a file with this tag, or with `*` only over a file that exists. */
  ifMatch?: string;
  /** Writes only if there is no such file. */
  ifNone?: boolean;
}

/** Options of {@link Files.list}. */
export interface ListOptions extends Resume {
  /** How many levels of directories to list, 64 at most. Default: 1, or as many as the pattern names. */
  depth?: number;
  /**
   * Lists only entries that match: `*` and `?`, compared with the name, or with the path if it has a slash or `**`, which is
   * any number of directories.
   */
  glob?: string;
}

interface Format {
  /** The format of the archive, `tar` by default. */
  format?: "tar" | "tar.zst";
}

/** Options of {@link Files.getArchive} and {@link Files.putArchive}. */
export interface ArchiveOptions extends Resume, Format {}

/** A local file by its path, or bytes: as they are, or as they come. */
export type LocalSource = string | URL | Uint8Array | AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>;

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

function isWritable(to: object | string): to is NodeWritable {
  return typeof (to as NodeWritable).write === "function" && typeof (to as NodeWritable).once === "function";
}

/** Somewhere to write to, rather than options. */
function isTarget(to: NodePathLike | NodeWritable | ArchiveOptions | undefined): to is NodePathLike | NodeWritable {
  return typeof to === "string" || to instanceof URL || to instanceof Uint8Array || (!!to && isWritable(to));
}

/**
 * The files of a session.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await using session = await client.enter();
 * await session.files.write("notes/a", "text", { mkdir: true });
 * console.log(await session.files.readText("notes/a")); // text
 * ```
 */
export class Files {
  readonly #wire: Wire;
  readonly #session: string;

  /** @internal */
  constructor(wire: Wire, session: string) {
    this.#wire = wire;
    this.#session = session;
  }

  #at(path: FilePath): string {
    return `${this.#session}/files/${encodePath(path)}`;
  }

  // ---- out --------------------------------------------------------------------------------------

  /** Reads a file, or a part of it, into memory. */
  async read(path: FilePath, options: ReadOptions = {}, call: CallOptions = {}): Promise<NodeBuffer> {
    const all: Buffer[] = [];
    for await (const piece of this.#bytes(path, options, call)) all.push(piece);
    return Buffer.concat(all);
  }

  /** Reads a file, or a part of it, as text. */
  async readText(path: FilePath, options: ReadOptions = {}, call: CallOptions = {}): Promise<string> {
    return (await this.read(path, options, call)).toString("utf8");
  }

  /** Returns a file as a stream, which reads no further than its consumer and emits errors. */
  readStream(path: FilePath, options: ReadOptions = {}, call: CallOptions = {}): NodeReadable {
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
   * Writes a file; readers see the old content or the new one, never a part, except with `append`.
   *
   * A stream is read no faster than it is taken; with one a broken connection is not tried again.
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

  /** Describes a file, directory or link; with `follow` what a link leads to. */
  async stat(path: FilePath, options: Resume & { follow?: boolean } = {}, call: CallOptions = {}): Promise<Entry> {
    return this.#post(path, {
      query: { stat: 1, follow: options.follow, resume: resumeOf(options) },
      again: "safe",
      ...call,
    });
  }

  /** Returns whether a path exists. */
  async exists(path: FilePath, options: Resume = {}, call: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options, call);
      return true;
    } catch (error) {
      if (isLodgeError(error, "NOT_FOUND")) return false;
      throw error;
    }
  }

  /** Returns the tag and size of a file, for `ifMatch`. */
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

  /** Yields what is in a directory, sorted by path; names that are not UTF-8 have U+FFFD. */
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

  /** Makes a directory; with `parents` also those above it, and it may exist. */
  async mkdir(
    path: FilePath,
    options: Resume & { parents?: boolean; mode?: string } = {},
    call: CallOptions = {},
  ): Promise<Entry> {
    const query = { mkdir: 1, parents: options.parents, mode: options.mode, resume: resumeOf(options) };
    return this.#post(path, { query, again: options.parents ? "safe" : "unsent", ...call });
  }

  /** Moves a file or directory; with `replace: false` an existing target is a CONFLICT. */
  async rename(
    from: FilePath,
    to: FilePath,
    options: Resume & { replace?: boolean } = {},
    call: CallOptions = {},
  ): Promise<Entry> {
    return this.#post(from, { query: { rename: to, replace: options.replace, resume: resumeOf(options) }, ...call });
  }

  /** Removes a file or an empty directory; with `recursive` a directory with everything in it. */
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

  // ---- local files ------------------------------------------------------------------------------

  /** Copies a local file (its path, or its bytes as they come) of any size to a path in the session. */
  upload(source: LocalSource, path: FilePath, options?: WriteOptions, call?: CallOptions): Promise<Entry>;
  /** @deprecated Unpacks a tar: `putArchive`. */
  upload(archive: Bytes, path: FilePath | undefined, options: Required<Format>, call?: CallOptions): Promise<void>;
  async upload(
    source: LocalSource | Bytes,
    path: FilePath = "",
    options: WriteOptions | ArchiveOptions = {},
    call: CallOptions = {},
  ): Promise<Entry | void> {
    if ("format" in options) return this.putArchive(source as Bytes, path, options, call);
    const local = typeof source === "string" || source instanceof URL;
    return this.write(path, local ? createReadStream(source) : (source as Bytes), options as WriteOptions, call);
  }

  /** Copies a file of the session into a local one (its path, or a stream, which stays open), and returns its size. */
  download(path: FilePath, to: NodePathLike | NodeWritable, options?: ReadOptions, call?: CallOptions): Promise<number>;
  /** @deprecated A directory as a tar: `getArchive`. */
  download(path?: FilePath, options?: ArchiveOptions, call?: CallOptions): NodeReadable;
  download(
    path: FilePath = "",
    to?: NodePathLike | NodeWritable | ArchiveOptions,
    options: ReadOptions | CallOptions = {},
    call: CallOptions = {},
  ): Promise<number> | NodeReadable {
    if (isTarget(to)) return this.#save(path, to, options as ReadOptions, call);
    return this.getArchive(path, to, options as CallOptions);
  }

  async #save(path: FilePath, to: NodePathLike | NodeWritable, options: ReadOptions, call: CallOptions): Promise<number> {
    const bytes = this.#bytes(path, options, call);
    const first = await bytes.next(); // nothing is opened for a file that does not exist
    const own = !isWritable(to);
    const target = own ? createWriteStream(to) : to;
    let size = 0;
    let broke: Error | undefined; // it may break while the next bytes are waited for
    const note = (error: Error) => (broke ??= error);
    target.on("error", note);
    try {
      for (let next = first; !next.done; next = await bytes.next()) {
        size += next.value.length;
        if (!broke && !target.write(next.value)) await once(target, "drain");
        if (broke) throw broke;
      }
      if (own) await once(target.end(), "close");
      return size;
    } catch (error) {
      if (own) target.destroy();
      throw error;
    } finally {
      if (!own) target.off("error", note);
      await bytes.return();
    }
  }

  // ---- archives ---------------------------------------------------------------------------------

  /** Returns a directory as a tar, plain or compressed by zstd. */
  getArchive(path: FilePath = "", options: ArchiveOptions = {}, call: CallOptions = {}): NodeReadable {
    const { format } = options;
    return archiveStream(this.#wire, {
      path: this.#session + "/archive",
      query: { path, format, resume: resumeOf(options) },
      ...call,
    });
  }

  /** Unpacks a tar into a directory, which is made if it is missing; what was unpacked before a failure stays. */
  async putArchive(
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
   * Yields changes in a directory; `ready` comes first.
   *
   * It throws when the sandbox or the directory is gone, or the connection breaks: later changes are not known.
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
        throw lodgeError({ code: end.code, message: end.message, status: response.statusCode ?? 0 });
      }
      yield frame.data as Change;
    }
    throw lodgeError({
      code: "CONNECTION",
      message: "the watch has ended",
      retryable: true,
      details: { sent: true },
    });
  }
}

/** The bytes of an answer that cannot be continued. */
export function archiveStream(wire: Wire, question: Omit<Question, "method">): NodeReadable {
  return streamOf(
    (async function* () {
      yield* pieces(wire, await wire.open({ method: "GET", ...question }));
    })(),
  );
}
