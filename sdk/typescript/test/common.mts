// SPDX-License-Identifier: Apache-2.0
// A lodged that the caller of these tests started, and its strings.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { LodgeClient, type LodgeClientOptions, LodgeError } from "lodge-sandbox/client";

function env(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: run tests/sdk_typescript/test_typescript.py`);
  return value;
}

export const URL_HTTP = env("LODGE_TEST_URL");
export const URL_UNIX = "unix:" + env("LODGE_TEST_SOCKET");
export const API_KEY = env("LODGE_TEST_KEY");
export const SLOW = Boolean(process.env["LODGE_SLOW"]);

export function connect(options: LodgeClientOptions = {}): LodgeClient {
  return new LodgeClient({ url: URL_UNIX, apiKey: API_KEY, ...options });
}

/** What a test cannot do itself: `kill`, `stop` and `start` lodged, or `kill-sandbox` of a session. */
export async function control(what: string): Promise<void> {
  const answer = await fetch(env("LODGE_TEST_CONTROL") + "/" + what, { method: "POST" });
  assert.equal(answer.status, 200, await answer.text());
}

let count = 0;

/** A key that nobody else has. */
export function fresh(word: string): string {
  return `${word}-${process.pid}-${++count}`;
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** The error that it ends with, which has this code. */
export async function fails(
  code: LodgeError["code"],
  asked: Promise<unknown> | (() => Promise<unknown>),
): Promise<LodgeError> {
  let found: unknown;
  await assert.rejects(asked, (error) => ((found = error), true));
  assert.ok(found instanceof LodgeError, String(found));
  assert.equal(found.code, code, found.message);
  return found;
}

export async function until(condition: () => Promise<boolean> | boolean, seconds = 120): Promise<void> {
  for (const end = Date.now() + seconds * 1000; !(await condition()); await sleep(50))
    assert.ok(Date.now() < end, `not within ${seconds} s`);
}

/** Small ones: many of them fit. */
export const SMALL = { memory_bytes: 64 << 20, disk_bytes: 64 << 20, pids: 16 };

/** One file of a tar, or its end. */
export function tar(name?: string | Uint8Array, data: Uint8Array = new Uint8Array(), mode = "644"): Buffer {
  if (name === undefined) return Buffer.alloc(1024);
  const head = Buffer.alloc(512);
  Buffer.from(name as string).copy(head, 0);
  head.write(`0000${mode}\0` + "0001750\0" + "0001750\0", 100);
  head.write(data.length.toString(8).padStart(11, "0") + "\0" + "00000000000\0" + "        " + "0", 124);
  head.write("ustar\0" + "00", 257);
  head.write(
    head
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0") + "\0 ",
    148,
  );
  return Buffer.concat([head, data, Buffer.alloc((512 - (data.length % 512)) % 512)]);
}

/** Names and contents of the plain files in a tar. */
export function untar(archive: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let at = 0; at + 512 <= archive.length && archive[at] !== 0; ) {
    const end = archive.indexOf(0, at);
    const name = archive.subarray(at, Math.min(end, at + 100)).toString("latin1");
    const size = parseInt(archive.subarray(at + 124, at + 135).toString("latin1"), 8);
    const kind = String.fromCharCode(archive[at + 156]!);
    if (kind === "0") found.set(name, archive.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return found;
}
