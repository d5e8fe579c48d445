// SPDX-License-Identifier: Apache-2.0
// Sandbox, as a program uses it that knows nothing else of lodge.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  Command,
  CommandError,
  ConflictError,
  DeniedError,
  GoneError,
  InvalidError,
  LodgeClient,
  LodgeError,
  NotFoundError,
  Sandbox,
  TimeoutError,
  type CreateOptions,
} from "lodge-sandbox";

import { API_KEY, URL_UNIX, all, fresh, until } from "./common.mjs";

const HERE = { url: URL_UNIX, apiKey: API_KEY } as const;
const SMALL = { ...HERE, memory: "64M", disk: "64M", processes: 32 } as const;

async function temporary<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = fs.mkdtempSync(join(tmpdir(), "lodge-sandbox-"));
  try {
    return await use(directory);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

async function refused<E extends Error>(kind: new (...args: never[]) => E, call: Promise<unknown>): Promise<E> {
  let found: unknown;
  await assert.rejects(call, (error) => ((found = error), true));
  assert.ok(found instanceof kind, String(found));
  return found;
}

// ---- find and make ---------------------------------------------------------------------------------

test("a sandbox without a name ends with its scope, one with a name stays", async () => {
  let id: string;
  {
    await using box = await Sandbox.create(SMALL);
    id = box.id;
    assert.deepEqual([box.name, box.created, box.state, box.isRunning], [null, true, "active", true]);
    assert.ok(box.expiresAt! > new Date());
    const result = await box.run("echo hi", { timeoutMs: 60_000 });
    assert.deepEqual([result.stdout, result.exitCode, result.ok], ["hi\n", 0, true]);
  }
  await refused(GoneError, Sandbox.get(id, HERE));

  const name = fresh("kept");
  {
    await using box = await Sandbox.getOrCreate(name, SMALL);
    assert.deepEqual([box.name, box.created], [name, true]);
    await box.files.write("note", "remember me");
  }
  {
    await using box = await Sandbox.getOrCreate(name, HERE);
    assert.equal(box.created, false);
    assert.equal(await box.files.readText("note"), "remember me");
  }
  {
    await using box = await Sandbox.get(name, HERE);
    assert.equal((await Sandbox.get(box.id, HERE)).name, name);
    const conflict = await refused(ConflictError, Sandbox.create({ ...SMALL, name }));
    assert.equal(conflict.code, "CONFLICT");
    await box.delete();
  }
  await refused(GoneError, Sandbox.get(name, HERE).then((box) => box.refresh()));
  await refused(NotFoundError, Sandbox.get(fresh("nobody"), HERE));
});

test("a sandbox without a name does not stay for ever", async () => {
  const client = new LodgeClient(HERE);
  await using _ = client;
  const kept = async (box: Sandbox) => (await client.session(box.id).get()).delete_after_ms;
  for (const user of [undefined, fresh("user")]) {
    await using box = await Sandbox.create({ ...SMALL, user });
    assert.equal(await kept(box), 86_400_000);
    const copy = await box.fork({ name: fresh("copy") });
    const named = await Sandbox.create({ ...SMALL, user, name: fresh("named") });
    assert.deepEqual([await kept(copy), await kept(named)], [null, null]);
    await Promise.all([copy.delete(), named.delete()]);
  }
});

test("an admin key lists sandboxes of another tenant", async () => {
  const client = new LodgeClient(HERE);
  await using _ = client;
  const tenant = fresh("tenant");
  const { secret } = await client.keys.create({ scope: "tenant", tenant });
  await using box = await Sandbox.create({ ...SMALL, apiKey: secret });
  assert.deepEqual((await all(Sandbox.list({ ...HERE, tenant }))).map((found) => found.id), [box.id]);
  const records = await all(client.sessions({ all: true }));
  assert.equal(records.find((record) => record.id === box.id)?.tenant, tenant);
  await refused(DeniedError, all(Sandbox.list({ ...HERE, apiKey: secret, tenant: "default" })));
});

test("create makes another sandbox of the same user each time", async () => {
  const user = fresh("user");
  await using first = await Sandbox.create({ ...SMALL, user, metadata: { job: user } });
  await using second = await Sandbox.create({ ...SMALL, user });
  assert.notEqual(first.id, second.id);
  assert.deepEqual((await all(Sandbox.list({ ...HERE, user }))).map((box) => box.id), [first.id, second.id]);
  assert.deepEqual((await all(Sandbox.list({ ...HERE, metadata: { job: user } }))).map((box) => box.id), [first.id]);
  assert.deepEqual(await all(Sandbox.list({ ...HERE, user, state: "hibernated" })), []);
  // neither is the session of the user, by which the user is found
  const client = new LodgeClient(HERE);
  await using _ = client;
  assert.equal((await client.enter({ user, asleep: true })).outcome, "created");
  const token = await client.keys.create({ scope: "session", user });
  const third = await Sandbox.create({ ...SMALL, apiKey: token.secret });
  const ids = (await all(Sandbox.list({ ...HERE, user }))).map((box) => box.id);
  assert.equal(ids.length, 4);
  assert.ok(ids.includes(third.id) && third.id !== first.id && third.id !== second.id);
  await third.close();
  await client.session(ids[2]!).delete();
  await client.keys.delete(token.key.id);
});

test("limits and settings of the options reach the sandbox", async () => {
  const options = { ...SMALL, cpus: 1.5, env: { WORD: "loud" }, idleTimeoutMs: 60_000, lifetimeMs: 120_000 };
  const client = new LodgeClient(HERE);
  await using _ = client; // closed after its sandbox
  await using box = await Sandbox.create({ ...options, url: undefined, apiKey: undefined, client });
  const record = await client.session(box.id).get();
  const { memory_bytes, disk_bytes, pids, cpus } = record.limits;
  assert.deepEqual([memory_bytes, disk_bytes, pids, cpus], [64 << 20, 64 << 20, 32, 1.5]);
  assert.deepEqual([record.idle_timeout_ms, record.lifetime_ms], [60_000, 120_000]);
  assert.equal((await box.run("echo $WORD")).stdout, "loud\n");
  await box.setLimits({ memory: "96M", processes: 40, fileSize: "2M" });
  const changed = (await client.session(box.id).get()).limits;
  assert.deepEqual([changed.memory_bytes, changed.file_bytes], [96 << 20, 2 << 20]);
  const large = await box.run("exec head -c 3M /dev/zero > f");
  assert.deepEqual([large.limitsHit, large.reason], [["LIMIT_FILE"], null]);
  const used = await box.stats();
  assert.ok(used.memoryBytes > 0 && used.outputMemoryBytes >= 0);
});

test("an option that does not exist is refused with the nearest name", async () => {
  const wrong = (options: object) => refused(TypeError, Sandbox.create(options as CreateOptions));
  assert.match((await wrong({ memroy: "1G" })).message, /Sandbox.create: unknown option "memroy"; did you mean "memory"\?/);
  assert.match((await wrong({ idle_timeout: 5 })).message, /"idleTimeoutMs"/);
  assert.match((await wrong({ envs: {} })).message, /"env"/);
  assert.match((await wrong({ key: "x" })).message, /"name"/);
  assert.match((await wrong({ zzz: 1 })).message, /the options are name, memory, /);
  assert.match((await wrong({ limits: {} })).message, /did you mean "memory", "cpus", "disk" or "processes"\?/);
  assert.match((await wrong({ timeout: 60 })).message, /did you mean "lifetimeMs", in milliseconds\?/);
  assert.match((await wrong({ timeoutMs: 60 })).message, /did you mean "lifetimeMs"\?/);
  await using box = await Sandbox.create(SMALL);
  assert.match((await refused(TypeError, box.run("true", { timeout: 5 } as never))).message, /did you mean "timeoutMs"/);
  for (const memory of ["lots", "-1M", "", -5, 1.5, "1 X"])
    assert.match((await refused(InvalidError, Sandbox.create({ ...HERE, memory }))).message, /^memory .*: must be a number/);
});

test("words of other services work, or name the right call", async () => {
  const spec = JSON.parse(fs.readFileSync(new URL("../../../../spec/sdk.json", import.meta.url), "utf8")) as {
    words: Record<string, Record<string, string>>;
    options: Record<string, string[]>;
  };
  const camel = (text: string) => text.replace(/(?<=[a-z])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  await using box = await Sandbox.create(SMALL);
  const owners: Record<string, object> = {
    "Sandbox class": Sandbox,
    Sandbox: box,
    "Sandbox.commands": box.commands,
    "Sandbox.pty": box.pty,
    Files: box.files,
    Command: box.command("ex_1"),
  };
  assert.deepEqual(Object.keys(owners).sort(), Object.keys(spec.words).sort());
  for (const [where, words] of Object.entries(spec.words))
    for (const [word, use] of Object.entries(words)) {
      const owner = owners[where] as Record<string, unknown>;
      if (use.startsWith("=")) assert.equal(owner[camel(word)], owner[use.slice(1)], word);
      else assert.throws(() => owner[camel(word)], { name: "TypeError", message: new RegExp(`"${camel(word)}"; use `) });
      if (!use.startsWith("=")) assert.throws(() => owner[camel(word)], (e: Error) => e.message.endsWith("; use " + camel(use)));
    }
  const known = ["url", "name", "cpus", "env", "memory", "disk", "processes", "template", "lifetime", "idle_timeout"];
  const inMs = ["lifetime", "idle_timeout"];
  for (const [word, options] of Object.entries(spec.options))
    if (options.some((option) => known.includes(option)) && !["url", "name"].includes(word))
      await assert.rejects(Sandbox.create({ [word]: 1 } as never), (error: Error) =>
        options.filter((o) => known.includes(o)).every((o) => error.message.includes(`"${camel(o)}${inMs.includes(o) ? "Ms" : ""}"`)),
      );
  const e2b = Sandbox as unknown as { connect(id: string, options: object): Promise<{ sandboxId: string; kill(): Promise<void> }> };
  const again = await e2b.connect(box.id, HERE);
  assert.equal(again.sandboxId, box.id);
  await again.kill();
  await refused(GoneError, Sandbox.get(box.id, HERE));
  assert.throws(() => new (Sandbox as unknown as new () => Sandbox)(), /use Sandbox.create\(\)/);
  assert.deepEqual(Object.keys(box).sort(), ["created", "files", "stateLost"]);
});

test("what an existing sandbox has otherwise is said in the words of the options", async () => {
  const heard: string[] = [];
  const client = new LodgeClient({ ...HERE, onWarning: (message) => heard.push(message) });
  const name = fresh("otherwise");
  const { url: _, apiKey: __, ...small } = SMALL;
  const box = await Sandbox.getOrCreate(name, { ...small, client });
  await Sandbox.getOrCreate(name, { ...small, memory: "65M", idleTimeoutMs: 61_000, client });
  assert.deepEqual(heard, [
    `sandbox ${name} already exists: idleTimeoutMs, memory ignored; setLimits() changes its limits`,
  ]);
  await box.delete();
  client.close();
});

test("map runs each item in a sandbox of its own and keeps the order", async () => {
  const seen: number[] = [];
  const ids = new Set<string>();
  const results = await Sandbox.map(
    async (box, item) => {
      ids.add(box.id);
      return Number((await box.run(`echo $((${item} * 2)); ls | wc -l; touch mark`)).stdout.split("\n")[0]);
    },
    [1, 2, 3, 4, 5, 6],
    { ...SMALL, concurrency: 3, onProgress: (done, total) => seen.push(done * 10 + total) },
  );
  assert.deepEqual(results, [2, 4, 6, 8, 10, 12]);
  assert.deepEqual(seen, [16, 26, 36, 46, 56, 66]);
  assert.equal(ids.size, 6);
  for (const id of ids) await refused(GoneError, Sandbox.get(id, HERE));

  const started: number[] = [];
  const error = await refused(
    CommandError,
    Sandbox.map(
      async (box, item) => {
        started.push(item);
        ids.add(box.id);
        await box.run(`exit ${item}`, { check: true });
      },
      [0, 3, 0, 0, 0, 0, 0, 0],
      { ...SMALL, concurrency: 1 },
    ),
  );
  assert.deepEqual([(error as CommandError & { index: number }).index, error.result.exitCode], [1, 3]);
  assert.deepEqual(started, [0, 3]);
  for (const id of ids) await refused(GoneError, Sandbox.get(id, HERE));
});

// ---- commands --------------------------------------------------------------------------------------

test("run gives results, throws with check, and takes words, input, cwd and env", async () => {
  await using box = await Sandbox.create(SMALL);
  const failed = await box.run("echo out; echo why >&2; exit 3");
  assert.deepEqual(
    [failed.stdout, failed.stderr, failed.exitCode, failed.ok, failed.signal, failed.timedOut, failed.truncated],
    ["out\n", "why\n", 3, false, null, false, false],
  );
  assert.deepEqual([failed.limitsHit, failed.durationMs >= 0], [[], true]);
  const error = await refused(CommandError, box.run("echo why >&2; exit 3", { check: true }));
  assert.deepEqual([error.result.exitCode, error.name], [3, "CommandError"]);
  assert.equal(String(error), "CommandError: command ended with exit code 3: why (COMMAND)");
  assert.match((await refused(CommandError, box.run("kill -9 $$", { check: true }))).message, /killed by signal 9/);

  const late = await box.run("sleep 600", { timeoutMs: 300 });
  assert.deepEqual([late.timedOut, late.ok, late.limitsHit], [true, false, ["TIMEOUT"]]);
  assert.match((await refused(CommandError, box.run("sleep 600", { timeoutMs: 300, check: true }))).message, /timed out/);

  assert.equal((await box.run(["printf", "%s|", "a b", "$HOME"])).stdout, "a b|$HOME|");
  assert.equal((await box.run("cat; pwd; echo $A", { input: "in\n", cwd: "/tmp", env: { A: "1" } })).stdout, "in\n/tmp\n1\n");
  const bytes = await box.run("cat", { input: new Uint8Array([0, 255, 10]), text: false });
  assert.deepEqual([...bytes.stdout], [0, 255, 10]);
  assert.equal((await box.run("cat", { input: new Uint8Array([0xe2, 0x82, 0xac]) })).stdout, "\u20ac");
});

test("the same idempotency key runs a command once", async () => {
  await using box = await Sandbox.create(SMALL);
  const again = { idempotencyKey: "once" };
  const first = await box.run("echo x >> count; wc -l < count", again);
  const second = await box.run("echo x >> count; wc -l < count", again);
  assert.deepEqual([first.stdout.trim(), second.stdout.trim(), second.commandId], ["1", "1", first.commandId]);
});

test("callbacks get whole characters, or bytes", async () => {
  await using box = await Sandbox.create(SMALL);
  // each byte in a write of its own
  const slowly = String.raw`for b in '\xe2' '\x82' '\xac' '\xf0' '\x9f' '\x8f' '\xa0' 'x'; do printf "$b"; sleep 0.05; done`;
  const texts: string[] = [];
  const result = await box.run(slowly, { onStdout: (text) => texts.push(text) });
  assert.equal(texts.join(""), "\u20ac\u{1f3e0}x");
  assert.ok(texts.every((text) => !text.includes("\ufffd")), JSON.stringify(texts));
  assert.equal(result.stdout, "\u20ac\u{1f3e0}x");
  const pieces: number[] = [];
  const raw = await box.run(slowly, { text: false, onStdout: (bytes) => pieces.push(...bytes) });
  assert.deepEqual(pieces, [...raw.stdout]);
  assert.equal(pieces.length, 8);

  const errors: string[] = [];
  await box.run(String.raw`echo one >&2; printf '\xe2\x82' >&2`, { onStderr: (text) => errors.push(text) });
  assert.equal(errors.join(""), "one\n\ufffd"); // what ends in the middle of a character is marked at the end
});

test("a callback that throws kills the command", async () => {
  await using box = await Sandbox.create(SMALL);
  const broken = new Error("the callback's");
  const listeners = [
    { onStdout: () => Promise.reject(broken) },
    { onStdout: () => { throw broken; }, input: Buffer.from("x\n") },
    { onStderr: () => { throw broken; } },
  ];
  for (const listener of listeners) {
    const thrown = await box.run("echo x; echo y >&2; sleep 600", { timeoutMs: 0, ...listener }).catch((e) => e);
    assert.equal(thrown, broken);
  }
  const ends = await Promise.all((await box.commands()).map((command) => command.wait()));
  assert.deepEqual(ends.map((end) => end.signal), [9, 9, 9]);

  // one that has ended already is left as it is
  const late = () => { throw broken; };
  assert.equal(await box.run(String.raw`printf '\xe2'`, { onStdout: late }).catch((e) => e), broken);
  assert.equal((await box.commands()).at(-1)?.exitCode, 0);
});

test("a command in the background is found again by its id", async () => {
  await using box = await Sandbox.create(SMALL);
  const job = await box.run("echo ready on port 80; read line; echo got $line; read line", { background: true });
  assert.ok(job instanceof Command);
  assert.equal(await job.waitForLog("ready"), "ready on port 80");
  assert.equal(await job.waitForLog(/port (\d+)/, { timeoutMs: 60_000 }), "ready on port 80");
  assert.deepEqual(await all(job.logs({ follow: false })), [["stdout", "ready on port 80\n"]]);
  assert.equal(await job.isRunning(), true);
  const again = box.command(job.id);
  await again.write("word\n");
  assert.equal(await again.waitForLog("got"), "got word");
  const late = await refused(TimeoutError, again.waitForLog("never", { timeoutMs: 300 }));
  assert.match(late.message, /waitForLog\(never\)/);
  assert.match((await refused(TimeoutError, again.wait({ timeoutMs: 300 }))).message, /wait/);
  assert.deepEqual((await box.commands()).map((command) => command.id), [job.id]);
  await again.write("", { eof: true });
  const result = await job.wait();
  assert.deepEqual([result.stdout, result.exitCode], ["ready on port 80\ngot word\n", 1]);
  assert.equal(await job.isRunning(), false);
  let logs = "";
  for await (const [stream, text] of box.command(job.id).logs()) logs += stream === "stdout" ? text : "";
  assert.equal((await box.command(job.id).wait({ text: false })).stdout.length, result.stdout.length);
  assert.equal(logs, result.stdout);
  const ended = await refused(CommandError, job.waitForLog("never"));
  assert.match(ended.message, /^no line matched never; the command ended with exit code 1/);

  const sleeper = await box.run("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.1; done", { background: true });
  await sleeper.waitForLog("up");
  await sleeper.kill("TERM");
  assert.deepEqual([(await sleeper.wait()).exitCode, (await sleeper.wait()).stdout], [4, "up\nbye\n"]);
  const other = await box.run("sleep 600", { background: true });
  await other.kill();
  assert.equal((await other.wait()).signal, 9);
  assert.match((await refused(InvalidError, box.run("x", { background: true, check: true } as never))).message, /^check: /);
});

test("a terminal shows, takes input and a size", async () => {
  await using box = await Sandbox.create(SMALL);
  const slow = await box.pty("read a; echo late $a");
  await refused(TimeoutError, slow.read({ timeoutMs: 200 }));
  await slow.write("word\n");
  let late = "";
  for await (const text of slow) late += text; // what came after the time limit is not lost
  assert.match(late, /late word/);
  await using terminal = await box.pty("stty size; read a; stty size; echo \u20ac$a; exit 7", { rows: 31, cols: 99 });
  let shown = "";
  while (!shown.includes("31 99")) shown += await terminal.read();
  await terminal.resize({ rows: 40, cols: 100 });
  await terminal.write("hello\n");
  for await (const text of terminal) shown += text;
  assert.match(shown, /40 100\s+\u20achello/);
  const result = await terminal.wait();
  assert.equal(result.exitCode, 7);
  assert.match(result.stdout, /hello/);
  const shell = await box.pty("sleep 600");
  await refused(TimeoutError, shell.read({ timeoutMs: 200 }));
  await shell.kill();
  assert.equal((await shell.wait()).signal, 9);
  await shell.close();
});

test("a result says that it has only the end of the output", async () => {
  await using box = await Sandbox.create(SMALL);
  const much = "head -c 9000000 /dev/zero | tr '\\0' x";
  let heard = 0;
  for (const [options, size] of [[{}, 1 << 20], [{ onStdout: (text: string) => void (heard += text.length) }, 8 << 20]] as const) {
    const result = await box.run(much, { ...options, timeoutMs: 300_000 });
    assert.deepEqual([result.stdout.length, result.truncated, result.limitsHit], [size, true, ["LIMIT_OUTPUT"]]);
  }
  assert.equal(heard, 9_000_000);
});

test("wait of a terminal keeps what was not read", async () => {
  await using box = await Sandbox.create(SMALL);
  await using terminal = await box.pty("echo first; read a; echo got:$a; exit 5");
  let shown = "";
  while (!shown.includes("first")) shown += await terminal.read();
  await terminal.write("ada\n");
  const result = await terminal.wait({ timeoutMs: 60_000 });
  assert.deepEqual([result.exitCode, result.commandId], [5, terminal.id]);
  let unread = "";
  for await (const text of terminal) unread += text;
  assert.match(unread, /got:ada/);
  assert.doesNotMatch(unread, /first/);
  await using much = await box.pty("stty -opost; head -c 12000000 /dev/zero | tr '\\0' a; echo; echo last; exit 3");
  assert.equal((await much.wait({ timeoutMs: 300_000 })).exitCode, 3);
  let rest = "";
  for await (const text of much) rest += text;
  assert.ok(rest.length > 7 << 20 && rest.length <= 9 << 20, `${rest.length}`); // the last of it was still on its way
  assert.ok(rest.endsWith("a\nlast\n"));
  const asleep = await box.pty("sleep 600");
  await refused(TimeoutError, asleep.wait({ timeoutMs: 100 }));
  await asleep.kill();
  await asleep.close();
});

// ---- files -----------------------------------------------------------------------------------------

test("files are written with their directories, listed, moved and removed", async () => {
  await using box = await Sandbox.create(SMALL);
  const info = await box.files.write("a/b/c.txt", "text", { mode: "600" });
  assert.deepEqual([info.name, info.size, info.mode, info.type], ["c.txt", 4, "0600", "file"]);
  assert.ok(Math.abs(info.modifiedAt.getTime() - Date.now()) < 3_600_000);
  await box.files.write("a/b/c.txt", " more", { append: true });
  await box.files.writeFiles({ "a/one": "1", "a/d/two": new Uint8Array([0, 200]) });
  assert.equal(await box.files.readText("a/b/c.txt"), "text more");
  assert.deepEqual([...(await box.files.read("a/d/two"))], [0, 200]);
  const names = (await box.files.list("a", { depth: 2 })).map((file) => file.path);
  assert.deepEqual(names, ["a/b", "a/b/c.txt", "a/d", "a/d/two", "a/one"]);
  await box.files.rename("a/one", "a/uno");
  assert.deepEqual([await box.files.exists("a/one"), await box.files.exists("a/uno")], [false, true]);
  await refused(NotFoundError, box.files.mkdir("x/y"));
  await box.files.mkdir("x/y", { parents: true, mode: "700" });
  await box.files.mkdir("x/y", { parents: true });
  assert.equal((await box.files.stat("x/y")).type, "directory");
  await refused(ConflictError, box.files.remove("a"));
  await box.files.remove("a", { recursive: true });
  assert.equal(await box.files.exists("a"), false);
  assert.equal((await refused(NotFoundError, box.files.read("a/uno"))).status, 404);
});

test("changes of a directory are seen", async () => {
  await using box = await Sandbox.create(SMALL);
  await box.files.mkdir("w");
  for await (const change of box.files.watch("w", { recursive: true, signal: AbortSignal.timeout(60_000) })) {
    if (change.kind === "ready") await box.files.write("w/new", "x");
    if (change.kind !== "ready") assert.equal(change.isDirectory, false);
    if (change.path.endsWith("new")) break;
  }
});

test("directories are uploaded and downloaded whole", async () => {
  await using box = await Sandbox.create(SMALL);
  await temporary(async (dir) => {
    const long = "n".repeat(180);
    const app = join(dir, "app");
    fs.mkdirSync(join(app, "sub", "empty"), { recursive: true });
    fs.writeFileSync(join(app, "run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
    fs.writeFileSync(join(app, "sub", long), "long name");
    fs.writeFileSync(join(app, "sub", "d\u00fcrer \u20ac"), Buffer.alloc(1500, 7));
    fs.writeFileSync(join(app, "nothing"), "");
    fs.symlinkSync("run.sh", join(app, "link"));
    await box.uploadDir(app);
    assert.equal((await box.run("app/run.sh && app/link && cat app/sub/n* && ls -d app/sub/empty", { check: true })).stdout,
      "ran\nran\nlong nameapp/sub/empty\n");
    await box.run("echo more > app/more; echo owned >> app/nothing; mkdir app/new", { check: true });
    await box.downloadDir("app", join(dir, "back"));
    const back = join(dir, "back");
    assert.equal(fs.readFileSync(join(back, "more"), "utf8"), "more\n");
    assert.equal(fs.readFileSync(join(back, "nothing"), "utf8"), "owned\n");
    assert.equal(fs.readFileSync(join(back, "sub", long), "utf8"), "long name");
    assert.equal(fs.readFileSync(join(back, "sub", "d\u00fcrer \u20ac")).length, 1500);
    assert.equal(fs.readlinkSync(join(back, "link")), "run.sh");
    assert.equal(fs.statSync(join(back, "run.sh")).mode & 0o777, 0o755);
    assert.ok(fs.statSync(join(back, "new")).isDirectory() && fs.statSync(join(back, "sub", "empty")).isDirectory());

    await box.files.upload(join(app, "run.sh"), "bin/");
    assert.equal((await box.run("bin/run.sh")).stdout, "ran\n");
    await box.files.download("app/more", join(dir, "deep", "er", "more"));
    await box.files.download("app/more", dir);
    for (const path of ["deep/er/more", "more"]) assert.equal(fs.readFileSync(join(dir, path), "utf8"), "more\n");
    await refused(NotFoundError, box.files.download("missing", join(dir, "missing")));
    assert.equal(fs.existsSync(join(dir, "missing")), false);
    // the second download replaces what the first wrote
    await box.downloadDir("app", back);
  });
});

test("a download writes nowhere else, whatever the sandbox has", async () => {
  await using box = await Sandbox.create(SMALL);
  await temporary(async (dir) => {
    const [inside, victim] = [join(dir, "inside"), join(dir, "victim")];
    fs.mkdirSync(inside);
    fs.mkdirSync(victim);
    fs.writeFileSync(join(victim, "file"), "mine");
    await box.run(`mkdir evil && ln -s ${victim} evil/dir && ln -s ${victim}/file evil/file`, { check: true });
    await box.downloadDir("evil", inside);
    assert.equal(fs.readlinkSync(join(inside, "dir")), victim);
    // now the sandbox has a directory and a file where links of the first download lead out
    await box.run("rm -r evil && mkdir -p evil/dir && echo bad > evil/file && echo bad > evil/dir/file", { check: true });
    assert.match((await refused(ConflictError, box.downloadDir("evil", inside))).message, /links are not followed/);
    await box.files.download("evil/file", inside);
    assert.equal(fs.readFileSync(join(inside, "file"), "utf8"), "bad\n");
    assert.equal(fs.readFileSync(join(victim, "file"), "utf8"), "mine");
    assert.deepEqual(fs.readdirSync(victim), ["file"]);
  });
});

// ---- life ------------------------------------------------------------------------------------------

test("snapshots fork and roll back", async () => {
  await using box = await Sandbox.create(SMALL);
  await box.run("echo one > state");
  const snapshot = await box.snapshot("before");
  assert.deepEqual([snapshot.name, snapshot.createdAt instanceof Date], ["before", true]);
  await box.run("echo two > state");
  const ids: string[] = [];
  {
    await using fork = await snapshot.fork();
    const [first, second] = await snapshot.fork({ count: 2 });
    await using now = await box.fork();
    assert.equal(await fork.files.readText("state"), "one\n");
    assert.equal(await second!.files.readText("state"), "one\n");
    assert.equal(await now.files.readText("state"), "two\n");
    ids.push(fork.id, now.id);
    await first!.close();
    await second!.delete();
  }
  for (const id of ids) await refused(GoneError, Sandbox.get(id, HERE));
  const name = fresh("fork");
  const kept = await snapshot.fork({ name });
  await kept.close();
  assert.equal((await Sandbox.get(name, HERE)).id, kept.id);
  await kept.delete();
  await snapshot.rollback();
  assert.equal(await box.files.readText("state"), "one\n");
  assert.deepEqual((await box.snapshots()).map((one) => one.id), [snapshot.id]);
  await using copy = await Sandbox.create({ ...SMALL, snapshot });
  assert.equal(await copy.files.readText("state"), "one\n");
  await snapshot.delete();
  assert.deepEqual(await box.snapshots(), []);
});

test("a sandbox is paused, hibernated, resumed and extended", async () => {
  await using box = await Sandbox.create({ ...SMALL, lifetimeMs: 600_000 });
  await box.files.write("note", "kept");
  await box.pause();
  assert.equal(box.isRunning, false);
  await box.resume();
  assert.equal(box.isRunning, true);
  await box.hibernate();
  assert.deepEqual([box.state, box.isRunning, box.expiresAt], ["hibernated", false, null]);
  await box.resume();
  assert.equal(box.state, "active");
  assert.equal(await box.files.readText("note"), "kept");
  const before = (await box.refresh()).expiresAt!;
  const after = await box.extend(60_000);
  assert.equal(after!.getTime() - before.getTime(), 60_000);
  const client = new LodgeClient(HERE);
  const heard: string[] = [];
  const own = new LodgeClient({ ...HERE, onWarning: (message) => heard.push(message) });
  const end = await (await Sandbox.get(box.id, { client: own })).extend(172_800_000);
  const why = "of 172800000 ms: the maximum lifetime of 5h is reached (lifetime_max); it ends at " + end!.toISOString();
  assert.ok(heard.join().endsWith(why), heard.join());
  own.close();
  await client.session(box.id).hibernate();
  await until(async () => (await box.refresh()).state === "hibernated");
  client.close();
});

test("errors have one hierarchy, and their text has the code and the request id", async () => {
  await using box = await Sandbox.create(SMALL);
  const error = await refused(NotFoundError, Sandbox.get(fresh("nobody"), HERE));
  assert.ok(error instanceof LodgeError && error instanceof Error);
  assert.ok(error.requestId);
  const end = ` (NOT_FOUND, request ${error.requestId})`;
  assert.equal(String(error), `NotFoundError: ${error.message}${end}`);
  assert.ok(error.stack!.startsWith(`NotFoundError: ${error.message}${end}`), error.stack);
  const { inspect } = await import("node:util");
  assert.ok(inspect(error).includes(end));
  const late = await refused(TimeoutError, box.run("sleep 600", { timeoutMs: 0, requestTimeoutMs: 300 }));
  assert.equal(late.code, "CLIENT_TIMEOUT");
  const gone = new AbortController();
  gone.abort(new Error("mine"));
  await assert.rejects(Sandbox.create({ ...SMALL, signal: gone.signal }), /mine/);
});
