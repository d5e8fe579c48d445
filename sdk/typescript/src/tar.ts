// SPDX-License-Identifier: Apache-2.0
// Local directories as tar archives: packed for an upload, unpacked from a sandbox that nobody trusts.
import { createReadStream, type Stats } from "node:fs";
import * as fs from "node:fs/promises";
import { dirname, join } from "node:path";

import { lodgeError } from "./errors.js";
import type { NodeBuffer } from "./node_types.js";

const BLOCK = 512;
const NAME_MOST = 100; // bytes of a name in a plain header
const SIZE_MOST = 0o77777777777; // in a plain header
const META_MOST = 1 << 20; // bytes of an extended header

// ---- pack ------------------------------------------------------------------------------------------

interface Member {
  name: string;
  kind: "0" | "2" | "5" | "x";
  mode: number;
  mtime: number;
  size: number;
  link: string;
}

function header(m: Member): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number) =>
    block.write(value.toString(8).padStart(width - 1, "0") + "\0", at, "latin1");
  Buffer.from(m.name).subarray(0, NAME_MOST).copy(block, 0);
  octal(m.mode & 0o777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(Math.min(m.size, SIZE_MOST), 124, 12);
  octal(Math.max(0, m.mtime), 136, 12);
  block.write("        " + m.kind, 148, "latin1");
  Buffer.from(m.link).subarray(0, NAME_MOST).copy(block, 157);
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(sum.toString(8).padStart(6, "0") + "\0 ", 148, "latin1");
  return block;
}

function padded(data: Buffer): Buffer {
  return Buffer.concat([data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK)]);
}

/** One record of an extended header: its own length, a space, name=value, a newline. */
function record(name: string, value: string): string {
  const rest = ` ${name}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + String(bytes).length;
  if (bytes + String(length).length > length) length++;
  return length + rest;
}

/** The header of a member, and before it an extended one for what does not fit into it. */
function headers(m: Member): Buffer {
  let extended = "";
  if (Buffer.byteLength(m.name) > NAME_MOST) extended += record("path", m.name);
  if (Buffer.byteLength(m.link) > NAME_MOST) extended += record("linkpath", m.link);
  if (m.size > SIZE_MOST) extended += record("size", String(m.size));
  if (!extended) return header(m);
  const data = Buffer.from(extended);
  const before = { ...m, name: "pax", kind: "x" as const, size: data.length, link: "" };
  return Buffer.concat([header(before), padded(data), header(m)]);
}

async function* fileBytes(path: string, size: number): AsyncGenerator<Buffer, void, undefined> {
  let seen = 0;
  if (size > 0)
    for await (const piece of createReadStream(path, { end: size - 1 }) as AsyncIterable<Buffer>) {
      seen += piece.length;
      yield piece;
    }
  if (seen !== size)
    throw lodgeError({ code: "INVALID", message: `${path}: became shorter while it was uploaded; upload it again` });
  yield Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

function memberOf(name: string, stat: Stats): Member {
  return { name, kind: "0", mode: stat.mode, mtime: Math.floor(stat.mtimeMs / 1000), size: 0, link: "" };
}

async function* packBelow(directory: string, prefix: string): AsyncGenerator<Buffer, void, undefined> {
  for (const entry of (await fs.readdir(directory)).sort()) {
    const [path, name] = [join(directory, entry), prefix + entry];
    const stat = await fs.lstat(path);
    const member = memberOf(name, stat);
    if (stat.isSymbolicLink()) {
      yield headers({ ...member, kind: "2", link: await fs.readlink(path) });
    } else if (stat.isDirectory()) {
      yield headers({ ...member, name: name + "/", kind: "5" });
      yield* packBelow(path, name + "/");
    } else if (stat.isFile()) {
      yield headers({ ...member, size: stat.size });
      yield* fileBytes(path, stat.size);
    }
  }
}

/** A local directory as a tar. Links are packed as links; sockets, pipes and devices are left out. */
export async function* packDirectory(directory: string): AsyncGenerator<NodeBuffer, void, undefined> {
  yield* packBelow(directory, "");
  yield Buffer.alloc(2 * BLOCK);
}

// ---- unpack ----------------------------------------------------------------------------------------

function broken(why: string): Error {
  return lodgeError({ code: "PROTOCOL", message: `the archive of the directory is damaged: ${why}` });
}

/** Takes exact numbers of bytes out of a stream. */
class Source {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Buffer>) {
    this.#pieces = stream[Symbol.asyncIterator]();
  }

  /** At most so many bytes; undefined at the end. */
  async some(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#pieces.next();
      if (next.done) return undefined;
      this.#rest = next.value;
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async *stream(size: number): AsyncGenerator<Buffer, void, undefined> {
    for (let left = size; left > 0; ) {
      const part = await this.some(left);
      if (!part) throw broken("it ends early");
      left -= part.length;
      yield part;
    }
  }

  async take(size: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.stream(size)) parts.push(part);
    return Buffer.concat(parts);
  }

  async end(): Promise<void> {
    await this.#pieces.return?.();
  }
}

interface Found {
  path: string;
  link: string;
  kind: string;
  mode: number;
  size: number;
}

function textAt(block: Buffer, at: number, width: number): string {
  const field = block.subarray(at, at + width);
  const end = field.indexOf(0);
  return field.subarray(0, end < 0 ? width : end).toString("utf8");
}

function numberAt(block: Buffer, at: number, width: number): number {
  const field = block.subarray(at, at + width);
  if (field[0]! & 0x80) return field.subarray(1).reduce((sum, byte) => sum * 256 + byte, field[0]! & 0x7f);
  const value = parseInt(textAt(block, at, width).trim() || "0", 8);
  if (!Number.isSafeInteger(value)) throw broken("a number is none");
  return value;
}

function recordsOf(data: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(0x20, at);
    const length = parseInt(data.subarray(at, space).toString("latin1"), 10);
    if (space < 0 || !(length > 0) || at + length > data.length) throw broken("an extended header is wrong");
    const text = data.subarray(space + 1, at + length - 1).toString("utf8");
    const equals = text.indexOf("=");
    found.set(text.slice(0, equals), text.slice(equals + 1));
    at += length;
  }
  return found;
}

/** The next member of a tar; undefined at its end. */
async function nextMember(source: Source): Promise<Found | undefined> {
  const extra = new Map<string, string>();
  for (;;) {
    const block = await source.take(BLOCK);
    if (block.every((byte) => byte === 0)) return undefined;
    const size = Number(extra.get("size") ?? numberAt(block, 124, 12));
    const kind = String.fromCharCode(block[156] || 0x30);
    if ("xgLK".includes(kind)) {
      if (size > META_MOST) throw broken(`an extended header of ${size} bytes`);
      const data = (await source.take(size + ((BLOCK - (size % BLOCK)) % BLOCK))).subarray(0, size);
      if (kind === "x") recordsOf(data).forEach((value, name) => extra.set(name, value));
      else if (kind !== "g") extra.set(kind === "L" ? "path" : "linkpath", textAt(data, 0, size));
      continue;
    }
    const prefix = textAt(block, 257, 6) === "ustar" ? textAt(block, 345, 155) : "";
    const name = textAt(block, 0, 100);
    return {
      path: extra.get("path") ?? (prefix ? `${prefix}/${name}` : name),
      link: extra.get("linkpath") ?? textAt(block, 157, 100),
      kind,
      mode: numberAt(block, 100, 8),
      size,
    };
  }
}

/** The parts of a path below the directory; those that lead out of it are refused. */
function partsOf(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.startsWith("/") || parts.includes("..") || path.includes("\0"))
    throw lodgeError({ code: "PROTOCOL", message: `${path}: refused, because it leads out of the local directory` });
  return parts;
}

/** Makes the directories above an entry, none of which may be a link: the sandbox could lead us anywhere by one. */
async function makeParents(root: string, parts: string[], done: Set<string>): Promise<void> {
  let at = root;
  for (const part of parts) {
    at = join(at, part);
    if (done.has(at)) continue;
    const stat = await fs.lstat(at).catch(() => undefined);
    if (!stat) await fs.mkdir(at);
    else if (!stat.isDirectory())
      throw lodgeError({ code: "CONFLICT", message: `${at}: not a directory (symbolic links are not followed)` });
    done.add(at);
  }
}

async function clear(path: string): Promise<void> {
  const stat = await fs.lstat(path).catch(() => undefined);
  if (stat?.isDirectory()) throw lodgeError({ code: "CONFLICT", message: `${path}: is a directory, not replaced by a file` });
  if (stat) await fs.unlink(path);
}

async function writeFile(path: string, mode: number, bytes: AsyncIterable<Buffer>): Promise<void> {
  const file = await fs.open(path, "wx", mode & 0o777);
  try {
    for await (const piece of bytes) await file.writeFile(piece);
    await file.chmod(mode & 0o777);
  } finally {
    await file.close();
  }
}

async function unpackMember(source: Source, root: string, m: Found, done: Set<string>): Promise<number> {
  const parts = partsOf(m.path);
  const path = join(root, ...parts);
  const skip = async () => {
    for await (const _ of source.stream(m.size));
    return 0;
  };
  if (parts.length === 0) return skip();
  if (m.kind === "5") {
    await makeParents(root, parts, done);
    return skip();
  }
  if (!"0127".includes(m.kind)) return skip(); // a pipe or device
  await makeParents(root, parts.slice(0, -1), done);
  await clear(path);
  if (m.kind === "2") {
    await fs.symlink(m.link, path);
    return skip();
  }
  if (m.kind === "1") {
    await linkTo(root, m.link, path, done);
    return skip();
  }
  await writeFile(path, m.mode, source.stream(m.size));
  return m.size;
}

/** A second name of a file that was unpacked before: its copy, so that both can be changed apart. */
async function linkTo(root: string, link: string, path: string, done: Set<string>): Promise<void> {
  const parts = partsOf(link);
  await makeParents(root, parts.slice(0, -1), done);
  const from = join(root, ...parts);
  const stat = await fs.lstat(from).catch(() => undefined);
  if (!stat?.isFile()) throw broken(`${link}: a link to a file that is not in it`);
  await fs.copyFile(from, path);
}

/**
 * Unpacks a tar into a local directory, which is made where it is missing. Follows no link, neither of the archive nor
 * one that is there already, and writes nowhere else. Links are made as they are; set-id bits, owners, pipes and
 * devices are left out. Returns the bytes of its files.
 */
export async function unpackDirectory(stream: AsyncIterable<NodeBuffer>, directory: string): Promise<number> {
  await fs.mkdir(directory, { recursive: true });
  const root = await fs.realpath(directory);
  const source = new Source(stream);
  const done = new Set<string>();
  let bytes = 0;
  try {
    for (let m = await nextMember(source); m; m = await nextMember(source)) {
      bytes += await unpackMember(source, root, m, done);
      await source.take((BLOCK - (m.size % BLOCK)) % BLOCK);
    }
    return bytes;
  } finally {
    await source.end();
  }
}

/** Makes the directory that a local file lies in, and removes a link in the file's place, which may be of an earlier download. */
export async function clearLocal(path: string): Promise<void> {
  await fs.mkdir(dirname(path), { recursive: true });
  if ((await fs.lstat(path).catch(() => undefined))?.isSymbolicLink()) await fs.unlink(path);
}
