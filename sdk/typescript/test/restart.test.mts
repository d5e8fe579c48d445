// SPDX-License-Identifier: Apache-2.0
// A lodged that is killed while somebody reads, and many sessions at once.
import assert from "node:assert/strict";
import { after, test } from "node:test";

import { SandboxSessionManager } from "lodge-sandbox";

import { SMALL, URL_HTTP, all, connect, control, fails, fresh, until } from "./common.mjs";

const client = connect();
const key = fresh("restart");
await client.enter({ key, limits: SMALL });
const box = client.session({ key });

after(async () => {
  await box.delete();
  client.close();
});

const LINES = 40;
const COMMAND = `for i in {1..${LINES}}; do echo "line $i"; echo "e$i" >&2; printf '\\377\\0'; sleep 0.05; done; exit 5`;
const OUT = Buffer.concat(Array.from({ length: LINES }, (_, i) => Buffer.from(`line ${i + 1}\n\xff\0`, "latin1")));
const ERR = Buffer.from(Array.from({ length: LINES }, (_, i) => `e${i + 1}\n`).join(""));

for (const how of ["kill", "restart"]) {
  test(`a stream goes on after ${how} of lodged: no byte is missing, none comes twice`, async () => {
    const got = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    const size = { stdout: 0, stderr: 0 };
    let asked: Promise<void> | undefined;
    let code: number | null | undefined;
    for await (const e of box.stream(COMMAND)) {
      assert.notEqual(e.event, "gap");
      if (e.event === "exit") code = e.exit_code;
      if (e.event !== "stdout" && e.event !== "stderr") continue;
      assert.equal(e.offset, size[e.event]);
      size[e.event] += e.data.length;
      got[e.event].push(e.data);
      if (size.stdout > 100) asked ??= control(how);
    }
    await asked;
    assert.equal(code, 5);
    assert.deepEqual(Buffer.concat(got.stdout), OUT);
    assert.deepEqual(Buffer.concat(got.stderr), ERR);
  });
}

test("a command that is waited for, one in the background and a terminal outlive lodged too", async () => {
  const tcp = connect({ url: URL_HTTP });
  const waited = tcp.session({ key }).exec("echo a >> ran; sleep 1.5; cat ran");
  const background = await box.start("for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done", { stdin_open: false });
  const events = all(background.events());
  const waiting = background.wait();
  const tty = await box.tty({ command: "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done; read x; echo got $x" });
  let shown = "";
  const showing = (async () => {
    for await (const bytes of tty) shown += Buffer.from(bytes).toString();
  })();
  await until(() => shown.includes("2"));
  await control("kill");
  assert.equal((await waited).stdout, "a\n");
  assert.equal((await waiting).exit_code, 0);
  const text = (await events).flatMap((e) => (e.event === "stdout" ? [Buffer.from(e.data).toString()] : [])).join("");
  assert.equal(text, "1\n2\n3\n4\n5\n6\n");
  await until(() => shown.includes("6"));
  await tty.write("typed\n");
  await showing;
  assert.deepEqual(shown.replace(/\r/g, "").split("\n").filter(Boolean), [
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "typed",
    "got typed",
  ]);
  assert.equal(tty.exit?.exit_code, 0);
  tcp.close();
});

test("what is safe to ask waits for lodged to come back, the rest is refused at once", async () => {
  const m = new SandboxSessionManager({}, { client, name: fresh("m"), session: { limits: SMALL } });
  const other = fresh("back");
  await control("stop");
  const early = [
    m.getOrCreateSession(other),
    box.get(),
    box.exec("echo back"),
    box.files.write("w", "w"),
    box.snapshot(),
  ];
  const impatient = connect({ retryMs: 0 });
  const error = await fails("CONNECTION", impatient.health());
  assert.match(error.message, /start it/);
  impatient.close();
  await control("start");
  const [session, , ran] = (await Promise.all(early)) as [{ outcome: string }, unknown, { stdout: string }];
  assert.equal(session.outcome, "created");
  assert.equal(ran.stdout, "back\n");
  await m.cleanup();
  for await (const s of box.snapshots()) await client.snapshots.delete(s.id);
});

test("events go on after a restart", async () => {
  const { session } = await client.enter({ key: fresh("events"), asleep: true });
  const kinds: string[] = [];
  const leave = new AbortController();
  const reading = (async () => {
    for await (const e of client.followEvents({ session: session.id, since: 0 }, { signal: leave.signal })) {
      kinds.push(e.kind);
      if (e.kind === "destroy") return;
    }
  })();
  await until(() => kinds.length > 0);
  await control("kill");
  await client.session(session.id).delete();
  await reading;
  assert.equal(new Set(kinds).size, kinds.length, kinds.join());
  assert.deepEqual([kinds[0], kinds.at(-1)], ["create", "destroy"]);
});

test("100 sessions at once, each its own", { timeout: 600_000 }, async () => {
  const name = fresh("hundred");
  const m = new SandboxSessionManager({}, { client, name, session: { limits: SMALL } });
  const keys = Array.from({ length: 100 }, (_, i) => `${name}-${i}`);
  for (let at = 0; at < keys.length; at += 25) {
    await Promise.all(
      keys.slice(at, at + 25).map(async (k) => {
        await m.getOrCreateSession(k);
        await client.session({ key: k }).files.write("who", k);
      }),
    );
  }
  assert.equal(await m.getActiveSessionCount(), 100);
  for (let at = 0; at < keys.length; at += 25) {
    const said = await Promise.all(keys.slice(at, at + 25).map((k) => client.session({ key: k }).exec("cat who")));
    assert.deepEqual(
      said.map((r) => r.stdout),
      keys.slice(at, at + 25),
      JSON.stringify(said.filter((r) => !r.stdout)),
    );
  }
  const done = await m.cleanup();
  assert.deepEqual([done.destroyed.length, done.failed], [100, []]);
  assert.equal(await m.getActiveSessionCount(), 0);
});
