// SPDX-License-Identifier: Apache-2.0
// Files of a Sandbox.
import * as fs from "node:fs/promises";
import { basename, join, resolve } from "node:path";

import { lodgeError } from "./errors.js";
import type { FilePath, Files as FilesClient } from "./files.js";
import type { Bytes } from "./http.js";
import { REQUEST, callOf, checkOptions, given, kindOf, type RequestOptions } from "./options.js";
import { clearLocal, packDirectory, unpackDirectory } from "./tar.js";
import type { Change, Entry } from "./types.js";
import { addWords, type Hints } from "./words.js";

/** A file, directory or link in a sandbox. */
export interface FileInfo {
  /** The last part of the path. */
  name: string;
  /** The path, as the path of the call begins it. */
  path: string;
  /** The kind of entry. */
  type: Entry["type"];
  /** The size in bytes. */
  size: number;
  /** The permissions in octal, such as `"0644"`. */
  mode: string;
  /** The user id inside the sandbox that owns it. */
  uid: number;
  /** The group id inside the sandbox that owns it. */
  gid: number;
  /** The time of the last change of its content. */
  modifiedAt: Date;
  /** The target of a symbolic link. */
  target?: string;
}

/** A change in a directory that is watched. */
export interface FileChange {
  /** What happened. `ready` comes first: later changes are not missed. `lost`: too many at once; list the directory. */
  kind: Change["kind"];
  /** The path of what changed, relative to the directory. */
  path: string;
  /** Whether what changed is a directory. */
  isDirectory: boolean;
}

/** Options of {@link Files.write}. */
export interface WriteFileOptions extends RequestOptions {
  /** The permissions in octal, such as `"755"`. Default: those of the file it replaces, else 644. */
  mode?: string | undefined;
  /** Appends to the file instead of replacing it. */
  append?: boolean | undefined;
}

/** Options of {@link Files.list}. */
export interface ListFilesOptions extends RequestOptions {
  /** How many levels of directories to list, 64 at most. Default: 1, or as many as the pattern names. */
  depth?: number | undefined;
  /**
   * Lists only names that match it, with `*` and `?`; with a slash or `**`, which is any number of directories, only paths
   * below the directory that match, such as `src/**`.
   */
  glob?: string | undefined;
}

/** Options of {@link Files.mkdir}. */
export interface MkdirOptions extends RequestOptions {
  /** Makes the directories above it too, and lets it exist already. */
  parents?: boolean | undefined;
  /** The permissions in octal, such as `"700"`. Default: 755. */
  mode?: string | undefined;
}

/** Options of {@link Files.remove}. */
export interface RemoveOptions extends RequestOptions {
  /** Removes a directory with everything in it. */
  recursive?: boolean | undefined;
}

/** Contents of a file to write: bytes as they are or as they come, an `ArrayBuffer`, or a `Blob`. Text is written as UTF-8. */
export type Content = Bytes | ArrayBufferLike | ArrayBufferView | { arrayBuffer(): Promise<ArrayBuffer> };

const ACCEPTED = "text, a Uint8Array, an ArrayBuffer, a Blob or an iterable of bytes";

/** Contents as requests take them. */
async function bytesOf(data: Content): Promise<Bytes> {
  if (typeof data === "string" || data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const other = Object(data) as object;
  if ("arrayBuffer" in other) return new Uint8Array(await (other as { arrayBuffer(): Promise<ArrayBuffer> }).arrayBuffer());
  const pieces = Array.isArray(data) ? data.every((piece) => piece instanceof Uint8Array) : typeof data === "object";
  if (pieces && (Symbol.asyncIterator in other || Symbol.iterator in other)) return data as Bytes;
  const hint = kindOf(data) === "an object" ? "; JSON.stringify() makes text of it" : "";
  throw lodgeError({ code: "INVALID", message: `data: must be ${ACCEPTED}, not ${kindOf(data)}${hint}` });
}

function checkPath(path: unknown): void {
  if (typeof path === "string" || path instanceof Uint8Array) return;
  const hint = typeof path === "object" && path !== null ? "; writeFiles() writes several files" : "";
  throw lodgeError({ code: "INVALID", message: `path: must be text, not ${kindOf(path)}${hint}` });
}

function infoOf(entry: Entry): FileInfo {
  const { name, path, type, size, mode, uid, gid, mtime_ms, target } = entry;
  const info = { name, path, type, size, mode, uid, gid, modifiedAt: new Date(mtime_ms) };
  return target === undefined ? info : { ...info, target };
}

/**
 * The files of a sandbox.
 *
 * Paths are relative to its working directory, or begin with a slash. A path that is not UTF-8 is a `Uint8Array`.
 *
 * @example
 * ```ts
 * import { Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * await box.files.write("src/hello.txt", "hello\n"); // makes src
 * await box.files.writeFiles({ "src/a": "1", "src/b": new Uint8Array([50]) });
 * console.log(await box.files.readText("src/hello.txt"));
 * for (const file of await box.files.list("src")) console.log(file.path, file.size);
 * ```
 */
export class Files {
  readonly #files: FilesClient;

  static {
    addWords(Files.prototype, "Files", "Files");
  }

  /** @internal */
  constructor(files: FilesClient) {
    this.#files = files;
  }

  /** Reads a file as bytes. */
  async read(path: FilePath, options: RequestOptions = {}): Promise<Uint8Array> {
    checkOptions("files.read", options, REQUEST);
    return this.#files.read(path, {}, callOf(options));
  }

  /** Reads a file as text. */
  async readText(path: FilePath, options: RequestOptions = {}): Promise<string> {
    checkOptions("files.readText", options, REQUEST);
    return this.#files.readText(path, {}, callOf(options));
  }

  /** Writes a file and makes the directories above it; readers see the old content or the new one, never a part. */
  async write(path: FilePath, data: Content, options: WriteFileOptions = {}): Promise<FileInfo> {
    checkPath(path);
    checkOptions("files.write", options, ["mode", "append"], REQUEST);
    const how = given({ mode: options.mode, append: options.append, mkdir: true });
    return infoOf(await this.#files.write(path, await bytesOf(data), how, callOf(options)));
  }

  /** Writes several files: an object of their contents by path. */
  async writeFiles(files: Record<string, Content>, options: RequestOptions = {}): Promise<FileInfo[]> {
    if (typeof files !== "object" || files === null || Symbol.iterator in files)
      throw lodgeError({ code: "INVALID", message: `files: must be an object of contents by path, not ${kindOf(files)}` });
    const written: FileInfo[] = [];
    for (const [path, data] of Object.entries(files)) written.push(await this.write(path, data, options));
    return written;
  }

  /** Returns whether a path exists. */
  async exists(path: FilePath, options: RequestOptions = {}): Promise<boolean> {
    checkOptions("files.exists", options, REQUEST);
    return this.#files.exists(path, {}, callOf(options));
  }

  /** Lists a directory, sorted by path. */
  async list(path: FilePath = "", options: ListFilesOptions = {}): Promise<FileInfo[]> {
    checkOptions("files.list", options, ["depth", "glob"], REQUEST);
    const found: FileInfo[] = [];
    const how = given({ depth: options.depth, glob: options.glob });
    for await (const entry of this.#files.list(path, how, callOf(options))) found.push(infoOf(entry));
    return found;
  }

  /** Describes a file, directory or link. */
  async stat(path: FilePath, options: RequestOptions = {}): Promise<FileInfo> {
    checkOptions("files.stat", options, REQUEST);
    return infoOf(await this.#files.stat(path, {}, callOf(options)));
  }

  /** Makes a directory; with `parents` also those above it, and it may exist already. */
  async mkdir(path: FilePath, options: MkdirOptions = {}): Promise<FileInfo> {
    checkOptions("files.mkdir", options, ["parents", "mode"], REQUEST);
    const how = given({ parents: options.parents, mode: options.mode });
    return infoOf(await this.#files.mkdir(path, how, callOf(options)));
  }

  /** Removes a file or an empty directory; with `recursive` a directory with everything in it. */
  async remove(path: FilePath, options: RemoveOptions = {}): Promise<void> {
    checkOptions("files.remove", options, ["recursive"], REQUEST);
    await this.#files.remove(path, given({ recursive: options.recursive }), callOf(options));
  }

  /** Moves a file or directory to another path, and replaces a file that is there. */
  async rename(from: FilePath, to: FilePath, options: RequestOptions = {}): Promise<FileInfo> {
    checkOptions("files.rename", options, REQUEST);
    return infoOf(await this.#files.rename(from, to, {}, callOf(options)));
  }

  /**
   * Copies a local file or directory of any size into the sandbox.
   *
   * A directory is merged into the one at `remote`. Default of `remote`: the name of the local file or directory.
   * Links in a directory are copied as links; sockets, pipes and devices are left out.
   */
  async upload(local: string, remote?: FilePath, options: RequestOptions = {}): Promise<void> {
    checkOptions("files.upload", options, REQUEST);
    const target = remote ?? basename(resolve(local));
    const stat = await fs.stat(local);
    if (stat.isDirectory()) return this.#files.putArchive(packDirectory(local), target, {}, callOf(options));
    const inside = typeof target === "string" && target.endsWith("/") ? target + basename(local) : target;
    await this.#files.upload(local, inside, { mkdir: true, mode: (stat.mode & 0o777).toString(8) }, callOf(options));
  }

  /**
   * Copies a file or directory of the sandbox to a local path.
   *
   * A directory is merged into the one at `local`, which is made if it is missing; a file goes into `local` if that is a
   * directory. Nothing outside of `local` is written: links are copied as they are and never followed.
   */
  async download(remote: FilePath, local: string, options: RequestOptions = {}): Promise<void> {
    checkOptions("files.download", options, REQUEST);
    const entry = await this.#files.stat(remote, { follow: true }, callOf(options));
    if (entry.type === "directory") {
      await unpackDirectory(this.#files.getArchive(remote, {}, callOf(options)), local);
      return;
    }
    const there = await fs.stat(local).catch(() => undefined);
    const target = there?.isDirectory() || local.endsWith("/") ? join(local, basename(entry.name)) : local;
    await clearLocal(target);
    await this.#files.download(remote, target, {}, callOf(options));
  }

  /**
   * Yields the changes in a directory as they happen; the first event is `ready`.
   *
   * It throws when the sandbox or the directory ends, or the connection breaks.
   */
  async *watch(
    path: FilePath = "",
    options: RequestOptions & { recursive?: boolean | undefined } = {},
  ): AsyncGenerator<FileChange, void, undefined> {
    checkOptions("files.watch", options, ["recursive"], REQUEST);
    const how = given({ recursive: options.recursive });
    for await (const change of this.#files.watch(path, how, callOf(options)))
      yield { kind: change.kind, path: change.path, isDirectory: change.is_dir };
  }
}

// words of other services, which the compiler then explains
export interface Files extends Hints<"Files"> {}
