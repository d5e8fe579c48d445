// SPDX-License-Identifier: Apache-2.0
// Files, archives, snapshots; and what an administrator does.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";

import type { Change } from "lodge-sandbox/client";

import { SLOW, SMALL, all, connect, fails, fresh, tar, untar } from "./common.mjs";

const client = connect();
const key = fresh("files");
const BIG = SLOW ? 1 << 30 : 64 << 20;
await client.enter({ key, user: "ada", limits: { disk_bytes: 3 * BIG, file_bytes: BIG } });
const box = client.session({ key });
const { files } = box;

after(async () => {
  await box.delete();
  client.close();
});

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await all(stream));
}

test("files are written, read, looked at, moved and removed", async () => {
  const entry = await files.write("a/b.txt", "one\n", { mkdir: true, mode: "600" });
  assert.deepEqual([entry.type, entry.size, entry.mode], ["file", 4, "0600"]);
  await files.write("a/b.txt", Buffer.from("two\n"), { append: true });
  assert.equal(await files.readText("a/b.txt"), "one\ntwo\n");
  assert.equal(await files.readText("a/b.txt", { offset: 2, length: 3 }), "e\nt");
  assert.equal((await files.read("a/b.txt", { length: 0 })).length, 0);
  const { etag, size } = await files.head("a/b.txt");
  assert.equal(size, 8);
  await fails("PRECONDITION_FAILED", files.write("a/b.txt", "x", { ifNone: true }));
  await files.write("a/b.txt", "three", { ifMatch: etag });
  await fails("PRECONDITION_FAILED", files.read("a/b.txt", { ifMatch: etag }));
  await fails("PRECONDITION_FAILED", files.remove("a/b.txt", { ifMatch: etag }));

  await files.mkdir("a/c/d", { parents: true });
  await fails("CONFLICT", files.mkdir("a/c"));
  await files.rename("a/b.txt", "a/c/e.txt");
  await files.write("other", "");
  await fails("CONFLICT", files.rename("other", "a/c/e.txt", { replace: false }));
  await box.exec("ln -s e.txt a/c/link");
  const link = await files.stat("a/c/link");
  assert.deepEqual([link.type, link.target], ["symlink", "e.txt"]);
  assert.equal((await files.stat("a/c/link", { follow: true })).size, 5);
  assert.deepEqual(
    (await all(files.list("a", { depth: 3 }))).map((e) => e.path),
    ["a/c", "a/c/d", "a/c/e.txt", "a/c/link"],
  );
  assert.deepEqual(
    (await all(files.list("a", { depth: 3, glob: "*.txt" }))).map((e) => e.name),
    ["e.txt"],
  );
  assert.equal(await files.exists("a/c/e.txt"), true);
  await fails("CONFLICT", files.remove("a"));
  await files.remove("a", { recursive: true });
  assert.equal(await files.exists("a"), false);
  await fails("NOT_FOUND", files.read("a/b.txt"));
  assert.match(await files.readText("/etc/passwd"), /root/);
});

test("a directory has more than one page", async () => {
  await box.exec("mkdir many; cd many; for i in {1..2500}; do : > f$i; done");
  assert.equal((await all(files.list("many"))).length, 2500);
  await files.remove("many", { recursive: true });
});

test("a name may be any bytes", async () => {
  for (const name of [Buffer.from([0xff, 0xfe, 0x20, 0x25]), "\u00e9 \u202e#?&=+%41", "-rf", "a\r\nb", "'\"$(x)\\"]) {
    await files.write(name, "here");
    assert.equal(await files.readText(name), "here");
    const moved = Buffer.concat([Buffer.from(name as string), Buffer.from([0xfe])]);
    await files.rename(name, moved);
    assert.equal((await files.stat(moved)).size, 4);
    await files.remove(moved);
    assert.equal(await files.exists(moved), false);
  }
  await box.exec("mkdir odd; touch odd/$'\\377'");
  assert.deepEqual(
    (await all(files.list("odd"))).map((e) => e.name),
    ["\ufffd"],
  );
  assert.deepEqual(
    [...untar(await bytesOf(files.getArchive("odd"))).keys()].map((n) => n.replace(/^\.\//, "")),
    ["\xff"],
  );
});

test("large files stream both ways in bounded memory", { timeout: 600_000 }, async (t) => {
  const piece = Buffer.alloc(1 << 18);
  for (let i = 0; i < piece.length; i++) piece[i] = (i * 7 + (i >> 8)) & 255;
  const [sent, got] = [createHash("sha256"), createHash("sha256")];
  let most = 0;
  const start = process.memoryUsage().rss;
  const look = () => (most = Math.max(most, process.memoryUsage().rss - start));
  async function* source() {
    for (let at = 0; at < BIG; at += piece.length) {
      piece.writeUInt32LE(at / piece.length, 0);
      const copy = Buffer.from(piece);
      sent.update(copy);
      look();
      yield copy;
    }
  }
  assert.equal((await files.write("big", source())).size, BIG);
  let size = 0;
  for await (const bytes of files.readStream("big") as AsyncIterable<Buffer>) {
    got.update(bytes);
    size += bytes.length;
    look();
  }
  assert.equal(size, BIG);
  assert.equal(got.digest("hex"), sent.digest("hex"));
  t.diagnostic(`${BIG >> 20} MiB both ways with ${most >> 20} MiB of memory`);
  assert.ok(most < 48 << 20, `${most} bytes more than before`);
  await files.remove("big");
});

test("a stream that is left is not read on", async () => {
  await box.exec("head -c 30000000 /dev/zero > zeros");
  for await (const _ of files.readStream("zeros")) break;
  const stream = files.readStream("zeros");
  stream.destroy();
  const missing = files.readStream("missing");
  await fails("NOT_FOUND", all(missing));
  await files.remove("zeros");
});

test("what the caller's own stream throws comes back", async () => {
  const mine = new Error("mine");
  async function* broken() {
    yield Buffer.from("a");
    throw mine;
  }
  await assert.rejects(files.write("never", broken()), (error) => error === mine);
  assert.equal(await files.exists("never"), false);
  async function* endless() {
    for (;;) yield Buffer.alloc(65536);
  }
  await assert.rejects(files.putArchive(endless(), "/proc/none"), { name: "LodgeError" });
});

test("a refusal is heard while there is still something to send", async () => {
  async function* slow() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      yield Buffer.alloc(4096);
    }
  }
  await fails("NOT_FOUND", client.session("ses_none").files.write("x", slow()));
  await fails("CONFLICT", client.templates.upload("host", slow()));
});

test("a stream that fails or is refused is closed", async () => {
  const missing = createReadStream("/nonexistent/file");
  await assert.rejects(files.write("x", missing), { code: "ENOENT" });
  const refused = createReadStream("/dev/zero");
  await fails("NOT_FOUND", client.session("ses_none").files.write("x", refused));
  if (!refused.closed) await new Promise((resolve) => refused.once("close", resolve));
});

test("a directory goes out and in as an archive", async () => {
  await files.putArchive(
    Buffer.concat([tar("x/one", Buffer.from("1")), tar(Buffer.from([0xfe]), Buffer.from("2")), tar()]),
    "arch",
  );
  assert.equal(await files.readText("arch/x/one"), "1");
  assert.equal(await files.readText(Buffer.from([...Buffer.from("arch/"), 0xfe])), "2");
  const packed = files.getArchive("arch", { format: "tar.zst" });
  await files.putArchive(packed, "copy", { format: "tar.zst" });
  const names = untar(await bytesOf(files.getArchive("copy")));
  assert.ok(
    [...names.keys()].some((n) => n.endsWith("x/one")),
    [...names.keys()].join(),
  );
  await fails("INVALID", files.putArchive(Buffer.from("no archive at all".repeat(100)), "copy"));
});

test("the names that archives had before still work where they are clear", async () => {
  await files.upload(Buffer.concat([tar("one", Buffer.from("1")), tar()]), "older", { format: "tar" });
  assert.equal(await files.readText("older/one"), "1");
  assert.ok([...untar(await bytesOf(files.download("older"))).keys()].some((n) => n.endsWith("one")));
});

test("local files go in and out", async () => {
  const here = await mkdtemp(join(tmpdir(), "lodge-"));
  const [from, to] = [join(here, "from"), join(here, "to")];
  const data = Buffer.alloc(300_000, "local \0\xff");
  await writeFile(from, data);
  assert.equal((await files.upload(from, "up/file", { mkdir: true, mode: "600" })).mode, "0600");
  await files.upload(pathToFileURL(from), "up/again");
  await files.upload(data, "up/bytes");
  await files.upload(createReadStream(from), "up/stream");
  for (const name of ["file", "again", "bytes", "stream"]) {
    assert.equal(await files.download("up/" + name, to), data.length);
    assert.ok((await readFile(to)).equals(data), name);
  }
  const target = createWriteStream(to);
  assert.equal(await files.download("up/file", target), data.length);
  assert.equal(await files.download("up/file", target, { length: 5 }), 5);
  await new Promise<void>((resolve) => target.end(resolve));
  assert.ok((await readFile(to)).equals(Buffer.concat([data, data.subarray(0, 5)])));
  await assert.rejects(files.upload(join(here, "none"), "x"), { code: "ENOENT" });
  await assert.rejects(files.download("up/file", join(here, "none", "x")), { code: "ENOENT" });
  await fails("NOT_FOUND", files.download("up/none", join(here, "new")));
  assert.ok(!existsSync(join(here, "new")));
  await rm(here, { recursive: true });
});

test("changes are told", async () => {
  await files.mkdir("watched", { parents: true });
  const seen: Change[] = [];
  for await (const change of files.watch("watched", { recursive: true })) {
    seen.push(change);
    if (change.kind === "ready") await files.write("watched/new", "x");
    if (change.path.endsWith("new")) break;
  }
  assert.equal(seen[0]!.kind, "ready");
  const ending = (async () => {
    for await (const change of files.watch("watched"))
      if (change.kind === "ready") await files.remove("watched", { recursive: true });
  })();
  await assert.rejects(ending, { name: "LodgeError" });
});

test("snapshots, forks, rollback, out and in", async () => {
  const name = fresh("snap");
  await client.enter({ key: name, limits: SMALL });
  const s = client.session({ key: name });
  await s.files.write("state", "first");
  const first = await s.snapshot({ name: "first" });
  await s.files.write("state", "second");
  const [fork] = await s.fork({ key: name + "-fork", snapshot: first.id });
  assert.equal(await client.session(fork!.id).files.readText("state"), "first");
  assert.equal((await s.rollback({ snapshot: first.id })).state, "active");
  assert.equal(await s.files.readText("state"), "first");
  assert.deepEqual(
    (await all(s.snapshots())).map((x) => x.name),
    ["first"],
  );
  assert.equal((await client.snapshots.get(first.id)).id, first.id);

  const archive = await bytesOf(client.snapshots.export(first.id));
  const brought = await client.snapshots.import(archive, { name: "brought" });
  assert.equal(brought.session, null);
  const { session } = await client.enter({ snapshot: brought.id, limits: SMALL });
  assert.equal(await client.session(session.id).files.readText("state"), "first");

  const template = fresh("template").toLowerCase();
  await client.templates.create({ name: template, snapshot: first.id, env: { FROM: "snapshot" } });
  assert.equal((await client.templates.patch(template, { workdir: "/tmp" })).workdir, "/tmp");
  assert.equal((await client.templates.get(template)).name, template);
  assert.ok((await client.templates.list()).some((t) => t.name === template));
  await client.templates.delete(template);

  const second = await s.snapshot();
  await s.deleteSnapshot(second.id);
  await client.session(session.id).delete();
  await client.session(fork!.id).delete();
  await s.delete();
  const every = await all(client.snapshots.list());
  assert.deepEqual(
    every.filter((x) => [first.id, brought.id].includes(x.id)).map((x) => [x.id, x.session_exists]),
    [
      [first.id, false],
      [brought.id, false],
    ],
  );
  assert.deepEqual(
    (await all(client.snapshots.list({ session: first.session! }))).map((x) => x.id),
    [first.id],
  );
  assert.deepEqual(await all(client.snapshots.list({ user: "nobody" })), []);
  await client.snapshots.delete(first.id);
  await client.snapshots.delete(brought.id);
  await fails("NOT_FOUND", client.snapshots.get(first.id));
});

test("templates: from an archive, and what one looks like inside", async () => {
  const name = fresh("root").toLowerCase();
  const made = await client.templates.upload(name, Buffer.concat([tar("bin/sh", Buffer.from("x"), "755"), tar()]));
  assert.equal(made.template.name, name);
  await client.templates.delete(name);
  await fails("NOT_FOUND", client.templates.get(name));
  const found = await client.templates.captureEnvironment("host");
  assert.ok(found.env["PATH"]);
  assert.equal((await client.templates.environment("host")).template, "host");
});

test("keys and policies", async () => {
  const { key: record, secret } = await client.keys.create({ scope: "session", user: "eve", name: "browser" });
  const eve = connect({ apiKey: secret });
  await fails("NOT_FOUND", eve.session({ key }).get());
  assert.equal((await client.keys.get(record.id)).user, "eve");
  assert.ok((await all(client.keys.list())).some((k) => k.id === record.id));
  await client.keys.delete(record.id);
  await fails("UNAUTHENTICATED", eve.session({ key }).get());
  eve.close();

  const name = fresh("policy");
  await client.policies.create({ name, commands: { allow: ["ls"], reason: "only looking" } });
  assert.equal((await client.policies.get(name)).sessions, 0);
  assert.equal((await client.policies.patch(name, { max_active_per_user: 2 })).max_active_per_user, 2);
  assert.ok((await all(client.policies.list())).some((p) => p.name === name));
  const verdict = await client.policies.test(name, "ls | rm");
  assert.equal(verdict.allowed, false);
  await client.enter({ key: name, user: "eve", policy: name, limits: SMALL });
  const refused = await fails("POLICY", client.session({ key: name }).exec("rm x"));
  assert.equal(refused.details["word"], "rm");
  await client.session({ key: name }).delete();
  await client.policies.delete(name);
});

test("users and their quota", async () => {
  const user = fresh("quota");
  assert.equal((await client.users.setQuota(user, { sandboxes: 1 })).quota.sandboxes, 1);
  await client.enter({ key: user, user, limits: SMALL });
  const refused = await fails("LIMIT", client.enter({ key: user + "-2", user, limits: SMALL }));
  assert.equal(refused.status, 429);
  assert.equal((await client.users.quota(user)).usage.active, 1);
  assert.equal((await client.users.get(user)).user.active, 1);
  await client.session({ key: user }).delete();
});

test("the name of a user, and the list of users", async () => {
  const user = fresh("named");
  assert.equal((await client.users.set(user, { name: "Ada", email: "ada@example.com" })).user.name, "Ada");
  const found = await client.users.list({ q: user, sort: "memory" });
  assert.deepEqual(found.users.map((u) => [u.id, u.name, u.email, u.running]), [[user, "Ada", "ada@example.com", 0]]);
});
