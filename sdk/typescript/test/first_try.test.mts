// SPDX-License-Identifier: Apache-2.0
// What people try first with a Sandbox works, or is refused with words that help.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { CommandError, GoneError, InvalidError, NotFoundError, Sandbox } from "lodge-sandbox";

import { API_KEY, URL_UNIX, fresh } from "./common.mjs";

const HERE = { url: URL_UNIX, apiKey: API_KEY } as const;
const SMALL = { ...HERE, memory: "64M", disk: "64M", processes: 32 } as const;

async function refused<E extends Error>(kind: new (...args: never[]) => E, call: Promise<unknown>): Promise<string> {
  const found = await call.then(() => undefined, (error: unknown) => error);
  assert.ok(found instanceof kind, String(found));
  return found.message;
}

test("a name that is missing is refused", async () => {
  for (const name of [undefined, null, ""])
    for (const call of [Sandbox.getOrCreate(name as never, SMALL), Sandbox.get(name as never, HERE)])
      assert.equal(await refused(InvalidError, call), "name: must not be empty");
  assert.equal(await refused(InvalidError, Sandbox.getOrCreate(5 as never, SMALL)), "name: must be text, not a number");
});

test("what was deleted is not found", async () => {
  const name = fresh("deleted");
  await (await Sandbox.getOrCreate(name, SMALL)).delete();
  const error = await Sandbox.get(name, HERE).catch((e: unknown) => e);
  assert.ok(error instanceof NotFoundError && error instanceof GoneError);
  assert.deepEqual([error.code, String(error).split(":")[0]], ["GONE", "GoneError"]);
});

test("contents of a wrong type are refused, and buffers and blobs are written", async () => {
  await using box = await Sandbox.create(SMALL);
  const wrong: [unknown, RegExp][] = [
    [undefined, /, not undefined$/],
    [null, /, not null$/],
    [5, /, not a number$/],
    [{ a: 1 }, /, not an object; JSON.stringify\(\) makes text of it$/],
    [["a"], /, not an array$/],
  ];
  for (const [data, text] of wrong) {
    const message = await refused(InvalidError, box.files.write("n", data as never));
    assert.match(message, /^data: must be text, a Uint8Array, an ArrayBuffer, a Blob or an iterable of bytes, /);
    assert.match(message, text);
  }
  const several = [{ path: "n", data: "x" }];
  assert.equal(
    await refused(InvalidError, box.files.write(several as never, undefined as never)),
    "path: must be text, not an array; writeFiles() writes several files",
  );
  assert.match(await refused(InvalidError, box.files.writeFiles(several as never)), /^files: must be an object of contents by path/);
  assert.equal(await box.files.exists("n"), false);
  const { buffer } = new TextEncoder().encode("abc");
  for (const data of [new Blob(["ab", "c"]), buffer, [Buffer.from("abc")], new DataView(buffer)]) {
    await box.files.write("n", data);
    assert.equal(await box.files.readText("n"), "abc");
  }
});

test("an upload keeps the permissions", async () => {
  await using box = await Sandbox.create(SMALL);
  const dir = fs.mkdtempSync(join(tmpdir(), "lodge-first-"));
  try {
    fs.writeFileSync(join(dir, "run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
    await box.files.upload(join(dir, "run.sh"), "bin/run");
    assert.equal((await box.run("bin/run")).stdout, "ran\n");
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});

test("a sandbox goes back to a snapshot", async () => {
  await using box = await Sandbox.create(SMALL);
  await box.files.write("f", "1");
  const snapshot = await box.snapshot("one");
  for (const wanted of [snapshot, "one", snapshot.id]) {
    await box.files.write("f", "2");
    await box.rollback(wanted);
    assert.equal(await box.files.readText("f"), "1");
  }
  await refused(NotFoundError, box.rollback("two"));
  for (const wrong of ["", undefined, 5])
    assert.match(await refused(InvalidError, box.rollback(wrong as never)), /^snapshot: must be a Snapshot, or the name or id of one/);
});

test("the state follows the calls", async () => {
  const box = await Sandbox.create(SMALL);
  const uses = [
    () => box.run("true"),
    () => box.run("true", { background: true }),
    async () => (await box.pty("true")).close(),
    () => refused(CommandError, box.run("false", { check: true })),
  ];
  for (const use of uses) {
    await box.hibernate();
    assert.deepEqual([box.state, box.isRunning, box.expiresAt], ["hibernated", false, null]);
    await use();
    assert.deepEqual([box.state, box.isRunning], ["active", true]);
    assert.ok(box.expiresAt);
  }
  await box.pause();
  assert.deepEqual([box.state, box.isRunning], ["paused", false]);
  await box.refresh();
  assert.deepEqual([box.state, box.isRunning], ["paused", false]);
  await box.run("true");
  assert.equal(box.isRunning, true);
  await box.delete();
  assert.deepEqual([box.state, box.isRunning, box.expiresAt], ["deleted", false, null]);
});

test("a command that is found again tells what it is", async () => {
  await using box = await Sandbox.create(SMALL);
  const first = await box.run("read x; exit 3", { background: true });
  assert.deepEqual([first.cmd, first.state, first.exitCode], ["read x; exit 3", "running", null]);
  const other = await box.run(["sleep", "1000"], { background: true });
  const [again, second] = await box.commands({ running: true });
  assert.deepEqual([again!.id, again!.cmd, again!.state], [first.id, first.cmd, "running"]);
  assert.deepEqual([second!.id, second!.cmd], [other.id, ["sleep", "1000"]]);
  assert.ok(again!.startedAt instanceof Date);
  assert.match(inspect(again), /^Command \{[^]*read x; exit 3[^]*running/);
  await again!.write("", { eof: true });
  await again!.wait();
  assert.deepEqual([again!.state, again!.exitCode], ["exited", 3]);
  assert.deepEqual((await box.commands({ running: true })).map((one) => one.id), [other.id]);
  assert.equal((await box.commands()).length, 2);
  const bare = box.command(first.id);
  assert.deepEqual([bare.cmd, bare.state, bare.startedAt], [null, null, null]);
  assert.equal(await bare.isRunning(), false);
  assert.deepEqual([bare.cmd, bare.exitCode], ["read x; exit 3", 3]);
});

test("a check that fails at a limit names it", async () => {
  await using box = await Sandbox.create({ ...SMALL, fileSize: "1M" });
  const fails = (command: string) => refused(CommandError, box.run(command, { check: true }));
  assert.match(await fails("exec tail /dev/zero"), /; it ran out of memory \(LIMIT_MEMORY\)/);
  assert.match(await fails("exec head -c 3M /dev/zero > f"), /; it reached the limit of the size of a file \(LIMIT_FILE\)/);
});

test("calls of a wrong form say what is right", async () => {
  assert.equal(
    await refused(TypeError, Sandbox.create("base" as never)),
    'Sandbox.create: options must be an object such as { name: ... }, not "base"',
  );
  await using box = await Sandbox.create(SMALL);
  for (const second of [["-l"], "-l"])
    assert.equal(
      await refused(TypeError, box.run("ls", second as never)),
      'run: the second argument is an object of options; use run(["ls","-l"]) for a program with arguments',
    );
  assert.match(await refused(TypeError, box.pty({ cols: 100 } as never)), /^pty: the command must be text, not an object; options are second/);
  for (const [command, text] of [[undefined, /, not undefined$/], [5, /, not a number$/], [["sleep", 5], /every word must be text, not a number$/]])
    assert.match(await refused(InvalidError, box.run(command as never)), text as RegExp);
});

test("words of other services are in the types", async () => {
  await using box = await Sandbox.connect((await Sandbox.create(SMALL)).sandboxId, HERE);
  const hint: (typeof box)["exec"]["use"] = "run()"; // what the compiler shows
  assert.throws(() => (box as { exec: unknown }).exec, (error: Error) => error.message.endsWith(`use ${hint}`));
  // @ts-expect-error: Type 'Use<"run()">' has no call signatures
  assert.throws(() => box.exec("true"), /use run\(\)/);
  // @ts-expect-error: Type 'Use<"mkdir()">' has no call signatures
  assert.throws(() => box.files.makeDir("d"), /use mkdir\(\)/);
  // @ts-expect-error: Type 'Use<"write()">' has no call signatures
  assert.throws(() => box.command("ex_1").sendStdin("x"), /use write\(\)/);
  // @ts-expect-error: Type 'Use<"get(id), then delete()">' has no call signatures
  assert.throws(() => Sandbox.kill(box.id), /use get\(id\), then delete\(\)/);
  // @ts-expect-error: Type 'Use<"run() of the sandbox itself: ...">' has no call signatures
  assert.throws(() => box.commands.run("true"), /Sandbox.commands\(\) has no "run"; use run\(\) of the sandbox itself/);
  // @ts-expect-error: Type 'Use<"pty(cmd)">' has no call signatures
  assert.throws(() => box.pty.create({}), /Sandbox.pty\(\) has no "create"; use pty\(cmd\)/);
  const hints: [(typeof box)["commands"]["list"]["use"], (typeof box)["pty"]["sendStdin"]["use"]] = [
    "commands()",
    "write() of what pty() returned",
  ];
  assert.throws(() => (box as { commands: { list: unknown } }).commands.list, (error: Error) => error.message.endsWith(hints[0]));
  assert.throws(() => (box as { pty: { sendStdin: unknown } }).pty.sendStdin, (error: Error) => error.message.endsWith(hints[1]));
  const { commands } = box; // as any function
  assert.deepEqual(await commands({ running: true }), []);
  await box.kill();
  assert.equal(box.state, "deleted");
});
