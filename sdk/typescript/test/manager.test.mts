// SPDX-License-Identifier: Apache-2.0
// The session manager: every method, and the rules it promises.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";

import * as main from "lodge-sandbox";
import {
  SandboxSessionManager,
  type ISandboxSessionManager,
  type SandboxSession,
  type SandboxSessionManagerConfig,
} from "lodge-sandbox";

import { API_KEY, SMALL, all, connect, control, fails, fresh, until } from "./common.mjs";

const client = connect();
const made: SandboxSessionManager[] = [];

/** With a name of its own, so that its sessions are. */
function manager(config?: SandboxSessionManagerConfig, name = fresh("manager")): SandboxSessionManager {
  const m = new SandboxSessionManager(config, { client, name, session: { limits: SMALL } });
  made.push(m);
  return m;
}

after(async () => {
  for (const m of made) await m.cleanup();
  client.close();
});

test("the package exports the manager beside Sandbox", () => {
  assert.ok("SandboxSessionManager" in main && "Sandbox" in main);
  const config: Required<SandboxSessionManagerConfig> = new SandboxSessionManager({}, { client }).config;
  assert.deepEqual(config, { defaultTimeoutMs: 300_000, extendOnAccessMs: 120_000, maxTimeoutMs: 2_700_000 });
  for (const wrong of [
    { defaultTimeoutMs: 0 },
    { extendOnAccessMs: -1 },
    { maxTimeoutMs: NaN },
    { maxTimeoutMs: 1.5 },
  ])
    assert.throws(() => new SandboxSessionManager(wrong, { client }), RangeError);
});

test("getOrCreateSession creates, reuses, resumes and replaces, and says which", async () => {
  const m: ISandboxSessionManager & SandboxSessionManager = manager();
  const key = fresh("key");
  const before = Date.now();
  const first = await m.getOrCreateSession(key);
  assert.deepEqual([first.outcome, first.stateLost, first.status, first.userId], ["created", false, "running", key]);
  assert.ok(first.createdAt >= before - 1000 && first.lastUsedAt >= first.createdAt);
  const box = client.session({ key });
  await box.files.write("note", "kept");

  const second = await m.getOrCreateSession(key);
  assert.deepEqual(
    [second.outcome, second.sandboxId, second.createdAt],
    ["reused", first.sandboxId, first.createdAt],
  );
  await box.hibernate();
  const third = await m.getOrCreateSession(key);
  assert.deepEqual([third.outcome, third.stateLost], ["resumed", false]);
  assert.notEqual(third.sandboxId, first.sandboxId);
  assert.equal(await box.files.readText("note"), "kept");

  await control("kill-sandbox?key=" + key);
  const fourth = await m.getOrCreateSession(key);
  assert.ok(fourth.outcome === "resumed" || fourth.outcome === "replaced");
  assert.equal(fourth.stateLost, fourth.outcome === "replaced");
  assert.equal(await m.isSessionValid(key), true);
});

test("files that are lost are told", async () => {
  const key = fresh("lost");
  const m = new SandboxSessionManager(
    { defaultTimeoutMs: 600, extendOnAccessMs: 600 },
    { client, name: fresh("m"), session: { limits: SMALL, on_idle: "destroy" } },
  );
  made.push(m);
  await m.getOrCreateSession(key);
  await until(async () => (await m.getSession(key)) === null);
  const again = await m.getOrCreateSession(key);
  assert.deepEqual([again.outcome, again.stateLost, again.cause?.code], ["replaced", true, "idle"]);
});

test("getSession is a look, and null if there is nothing", async () => {
  const m = manager();
  const key = fresh("look");
  assert.equal(await m.getSession(key), null);
  await m.getOrCreateSession(key, { userId: "ada" });
  const before = await client.session({ key }).get();
  const record = (await m.getSession(key)) as SandboxSession;
  assert.deepEqual(await client.session({ key }).get(), before);
  assert.deepEqual(Object.keys(record).sort(), [
    "createdAt",
    "expiresAt",
    "lastUsedAt",
    "sandboxId",
    "status",
    "userId",
  ]);
  assert.deepEqual(record, {
    sandboxId: before.sandbox,
    userId: "ada",
    createdAt: before.created_at,
    expiresAt: before.hibernate_at,
    lastUsedAt: before.last_activity_at,
    status: "running",
  });
  await client.session({ key }).hibernate();
  const asleep = await m.getSession(key);
  assert.deepEqual([asleep?.sandboxId, asleep?.expiresAt, asleep?.status], [null, null, "hibernated"]);
});

test("isSessionValid and hasActiveSession tell what is so, and change nothing", async () => {
  const m = manager();
  const key = fresh("valid");
  assert.deepEqual([await m.isSessionValid(key), await m.hasActiveSession(key)], [false, false]);
  await m.getOrCreateSession(key);
  const before = await client.session({ key }).get();
  assert.deepEqual([await m.isSessionValid(key), await m.hasActiveSession(key)], [true, true]);
  assert.deepEqual(await client.session({ key }).get(), before);
  await client.session({ key }).hibernate();
  assert.deepEqual([await m.isSessionValid(key), await m.hasActiveSession(key)], [false, false]);
  assert.equal((await client.session({ key }).get()).state, "hibernated");
  await m.getOrCreateSession(key);
  await control("kill-sandbox?key=" + key);
  assert.equal(await m.isSessionValid(key), false);
});

test("extendSession pushes the deadline, or says that there is none", async () => {
  const m = manager();
  const key = fresh("extend");
  assert.equal(await m.extendSession(key), false);
  const first = await m.getOrCreateSession(key);
  await until(() => Date.now() > first.lastUsedAt + 20);
  assert.equal(await m.extendSession(key), true);
  const second = await m.getSession(key);
  assert.ok(second!.expiresAt! > first.expiresAt!);
  assert.equal(second!.sandboxId, first.sandboxId);
  await client.session({ key }).hibernate();
  assert.equal(await m.extendSession(key), false);
  assert.equal((await m.getSession(key))!.status, "hibernated");
});

test("the three times are those of the configuration", async () => {
  /** A deadline that was set by this call: so long after some moment of it. */
  async function sets(ms: number, call: () => Promise<SandboxSession | null>): Promise<SandboxSession> {
    const before = Date.now() - 50; // clocks are coarse
    const session = await call();
    const [from, to] = [session!.expiresAt! - ms - before, Date.now() - before];
    assert.ok(from >= 0 && from <= to, `${from} is not between 0 and ${to}`);
    return session!;
  }
  const usual = manager();
  const key = fresh("times");
  await sets(300_000, () => usual.getOrCreateSession(key));
  await client.session({ key }).hibernate();
  const resumed = await sets(300_000, () => usual.getOrCreateSession(key));
  assert.equal((await usual.getOrCreateSession(key)).expiresAt, resumed.expiresAt); // 120 s from now are less

  const access = manager({ defaultTimeoutMs: 60_000, extendOnAccessMs: 600_000 });
  const other = fresh("times");
  await sets(60_000, () => access.getOrCreateSession(other));
  await sets(600_000, () => access.getOrCreateSession(other));

  const short = manager({ defaultTimeoutMs: 300_000, extendOnAccessMs: 300_000, maxTimeoutMs: 100_000 });
  const third = fresh("times");
  const bounded = await sets(100_000, () => short.getOrCreateSession(third));
  assert.equal(await short.extendSession(third), false); // it is at its maximum
  assert.equal((await short.getSession(third))!.expiresAt, bounded.expiresAt);
});

test("what nobody uses is put to sleep in time, and found again", async () => {
  const m = manager({ defaultTimeoutMs: 700, extendOnAccessMs: 500 });
  const key = fresh("idle");
  await m.getOrCreateSession(key);
  await client.session({ key }).files.write("note", "still here");
  await until(async () => !(await m.hasActiveSession(key)));
  assert.equal(await m.isSessionValid(key), false);
  assert.equal((await m.getOrCreateSession(key)).outcome, "resumed");
  assert.equal(await client.session({ key }).files.readText("note"), "still here");
});

test("no sandbox lives longer than maxTimeoutMs, however much it is used", async () => {
  const m = manager({ maxTimeoutMs: 1500 });
  const key = fresh("max");
  const first = await m.getOrCreateSession(key);
  assert.ok(first.expiresAt! <= Date.now() + 1500);
  let last = first;
  await until(async () => {
    last = await m.getOrCreateSession(key);
    return last.sandboxId !== first.sandboxId;
  });
  assert.equal(last.stateLost, false);
});

test("50 calls for one key make one sandbox", async () => {
  const m = manager();
  const others = [manager(undefined), m, m];
  const key = fresh("one");
  const got = await Promise.all(Array.from({ length: 50 }, (_, i) => others[i % 3]!.getOrCreateSession(key)));
  assert.equal(new Set(got.map((s) => s.sandboxId)).size, 1);
  assert.equal(got.filter((s) => s.outcome === "created").length, 1);
  assert.equal((await client.session({ key }).get()).incarnation, 1);
  const one = fresh("shared");
  const calls = Array.from({ length: 10 }, () => m.getOrCreateSession(one));
  const leave = new AbortController();
  const left = m.getOrCreateSession(one, { signal: leave.signal });
  leave.abort();
  await assert.rejects(left, { name: "AbortError" });
  assert.deepEqual(
    (await Promise.all(calls)).map((s) => s.outcome),
    ["created", ...Array.from({ length: 9 }, () => "reused")],
  );
});

test("an error is shared like a result, and is not for ever", async () => {
  const name = fresh("broken");
  const m = new SandboxSessionManager({}, { client, name, session: { template: "no-such-template" } });
  const key = fresh("error");
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => m.getOrCreateSession(key)));
  const reasons = new Set(results.map((r) => (r.status === "rejected" ? r.reason : undefined)));
  assert.equal(reasons.size, 1);
  await fails("NOT_FOUND", m.getOrCreateSession(key));
  assert.equal((await manager(undefined, name).getOrCreateSession(key)).outcome, "created");
});

test("invalidateSession destroys, as often as one likes", async () => {
  const m = manager();
  const key = fresh("away");
  await m.getOrCreateSession(key);
  assert.equal(await m.invalidateSession(key), true);
  assert.equal(await m.getSession(key), null);
  assert.equal(await m.invalidateSession(key), true);
  const again = await m.getOrCreateSession(key);
  assert.deepEqual([again.outcome, again.stateLost], ["created", false]);
});

test("a session that was given from outside is never stopped", async () => {
  const key = fresh("given");
  const { session } = await client.enter({ key, user: "somebody", limits: SMALL });
  const m = manager();
  const borrowed = await m.getOrCreateSession(key, { pin: session.id });
  assert.deepEqual([borrowed.sandboxId, borrowed.outcome, borrowed.userId], [session.sandbox, "reused", "somebody"]);
  assert.ok(borrowed.expiresAt! >= session.hibernate_at!, "attaching shortens no life");
  assert.equal(await m.invalidateSession(key), false);
  assert.deepEqual((await m.cleanup()).kept, [key]);
  assert.deepEqual((await m.cleanupUserSessions("somebody")).kept, [key]);
  assert.equal((await client.session({ key }).get()).sandbox, session.sandbox);
  await fails("CONFLICT", m.getOrCreateSession(key, { pin: "ses_another" }));
  await fails("CONFLICT", m.getOrCreateSession(key, { userId: "somebody else" }));
  await client.session({ key }).delete();
  assert.deepEqual((await m.cleanup()).kept, []);
});

test("cleanupUserSessions ends every session of a user, however bound", async () => {
  const m = manager();
  const user = fresh("user");
  await m.getOrCreateSession(user);
  await m.getOrCreateSession(user + "-b", { userId: user });
  const { session } = await client.enter({ thread: user + "-thread", user, limits: SMALL });
  const stays = fresh("stays");
  await m.getOrCreateSession(stays);
  const done = await m.cleanupUserSessions(user);
  assert.deepEqual(done.destroyed.sort(), [user, user + "-b", session.id].sort());
  assert.deepEqual([done.failed, done.kept], [[], []]);
  assert.deepEqual(await all(client.sessions({ user })), []);
  assert.equal(await m.hasActiveSession(stays), true);
});

test("cleanup ends all of its own, counts are real, one failure stops nothing", async () => {
  const name = fresh("counts");
  const m = manager(undefined, name);
  const keys = [fresh("c"), fresh("c"), fresh("c")];
  for (const key of keys) await m.getOrCreateSession(key);
  assert.equal(await m.getActiveSessionCount(), 3);
  await client.session({ key: keys[0]! }).hibernate();
  assert.equal(await m.getActiveSessionCount(), 2);
  assert.equal(await manager(undefined, name).getActiveSessionCount(), 2); // whoever asks

  const torn = connect();
  const broken = new SandboxSessionManager({}, { client: torn, name });
  const session = torn.session.bind(torn);
  const victim = (await client.session({ key: keys[1]! }).get()).id;
  torn.session = (ref) => {
    const s = session(ref);
    if (ref === victim) s.delete = () => Promise.reject(new Error("torn"));
    return s;
  };
  const done = await broken.cleanup();
  assert.deepEqual(done.destroyed.sort(), [keys[0]!, keys[2]!].sort());
  assert.deepEqual(
    done.failed.map((f) => f.session),
    [keys[1]],
  );
  assert.equal(await m.getActiveSessionCount(), 1);
  assert.deepEqual((await m.cleanup()).destroyed, [keys[1]]);
  assert.equal(await m.getActiveSessionCount(), 0);
  torn.close();
});

// ---- the end ---------------------------------------------------------------------------------------

/** A manager with a client of its own, and sessions: one that runs, one that sleeps, a borrowed one. */
async function busy(): Promise<{ m: SandboxSessionManager; runs: string; sleeps: string; borrowed: string }> {
  const m = new SandboxSessionManager({}, { url: client.url, apiKey: API_KEY, session: { limits: SMALL } });
  const [runs, sleeps, borrowed] = [fresh("runs"), fresh("sleeps"), fresh("borrowed")];
  await client.enter({ key: borrowed, limits: SMALL });
  for (const key of [runs, sleeps, borrowed]) await m.getOrCreateSession(key);
  await client.session({ key: sleeps }).hibernate();
  return { m, runs, sleeps, borrowed };
}

const states = async (...keys: string[]) =>
  Promise.all(keys.map(async (key) => (await client.session({ key }).get().catch(() => ({ state: "none" }))).state));

test("close leaves the sessions unless an option says otherwise", async () => {
  for (const how of ["keep", "hibernate", "destroy", "using"] as const) {
    const { m, runs, sleeps, borrowed } = await busy();
    if (how === "using") {
      await m[Symbol.asyncDispose]();
    } else {
      const done = await m.close({ sessions: how });
      const of = { keep: done.kept, hibernate: done.hibernated, destroy: done.destroyed }[how];
      assert.deepEqual([of.sort(), done.failed], [[runs, sleeps].sort(), []], how);
      assert.equal(await m.close(), done);
    }
    const expected = { keep: ["active", "hibernated"], using: ["active", "hibernated"], destroy: ["none", "none"] };
    assert.deepEqual(
      await states(runs, sleeps, borrowed),
      [...(how === "hibernate" ? ["hibernated", "hibernated"] : expected[how]), "active"],
      how,
    );
    await fails("CONNECTION", m.getOrCreateSession(runs));
    await fails("CONNECTION", m.isSessionValid(runs));
    for (const key of [runs, sleeps, borrowed]) await client.session({ key }).delete().catch(() => {});
  }
});

test("close waits for a session that is being made, and leaves a given client open", async () => {
  const m = manager();
  const key = fresh("late");
  const made = m.getOrCreateSession(key);
  const done = await m.close({ sessions: "destroy" });
  assert.equal((await made).status, "running");
  assert.deepEqual(done.destroyed, [key]);
  assert.equal((await client.health()).status, "ok");
});

test("a process with a manager ends by itself, and its sessions stay", async () => {
  const key = fresh("exit");
  const script = `import { SandboxSessionManager } from "lodge-sandbox";
    const m = new SandboxSessionManager({}, { url: process.argv[1], apiKey: process.argv[2] });
    console.log((await m.getOrCreateSession(process.argv[3])).status);`;
  const run = promisify(execFile);
  const args = ["--input-type=module", "-e", script, client.url, API_KEY, key];
  assert.equal((await run(process.execPath, args, { timeout: 60_000 })).stdout, "running\n");
  assert.deepEqual(await states(key), ["active"]);
  await client.session({ key }).delete();
});
