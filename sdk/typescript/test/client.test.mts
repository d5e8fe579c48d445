// SPDX-License-Identifier: Apache-2.0
// Sessions, commands and the service itself, over a unix socket.
import assert from "node:assert/strict";
import { after, test } from "node:test";

import type { ExecEvent } from "lodge-sandbox/client";

import { API_KEY, SMALL, URL_HTTP, all, connect, fails, fresh, until } from "./common.mjs";

const client = connect();
const key = fresh("client");
const box = client.session({ key });
await client.enter({ key, user: "ada", limits: { ...SMALL, output_bytes: 8 << 20 } });

after(async () => {
  await box.delete();
  client.close();
});

// ---- sessions --------------------------------------------------------------------------------------

test("a session is entered, looked at, changed and destroyed", async () => {
  const name = fresh("life");
  const made = await client.enter({ key: name, user: "ada", metadata: { team: name }, limits: SMALL });
  assert.deepEqual(made.session.limits_not_enforced.map((p) => [p.limit, p.enforced]), [["inodes", false]]);
  assert.equal(made.outcome, "created");
  assert.equal((await client.enter({ key: name })).outcome, "reused");
  const s = client.session(made.session.id);
  assert.equal((await s.get()).key, name);
  assert.equal((await client.session(made).get()).id, made.session.id);

  const changed = await s.patch({ metadata: { team: name, colour: "red" }, idle_timeout_ms: 900_000 });
  assert.equal(changed.idle_timeout_ms, 900_000);
  const conflict = await fails("CONFLICT", s.patch({ on_idle: "destroy", if_version: 1 }));
  assert.equal(conflict.status, 409);
  assert.equal((conflict.details["session"] as { id: string }).id, made.session.id);
  const found = await all(client.sessions({ metadata: { team: name }, user: "ada", state: "active" }));
  assert.deepEqual(
    found.map((f) => f.id),
    [made.session.id],
  );

  const tombstone = await s.delete({ reason: "done" });
  assert.equal(tombstone.cause?.text, "done");
  assert.equal((await s.delete()).session, made.session.id);
  const gone = await fails("GONE", s.get());
  assert.equal(gone.status, 410);
  assert.equal((gone.details["cause"] as { text: string }).text, "done");
});

test("what an existing session has otherwise is named, and one warning given", async () => {
  const heard: string[] = [];
  const aware = connect({ onWarning: (message) => heard.push(message) });
  const name = fresh("kept");
  assert.deepEqual((await aware.enter({ key: name, limits: SMALL, idle_timeout_ms: 60_000 })).ignored, []);
  assert.deepEqual(heard, []);
  const again = await aware.enter({ key: name, limits: { ...SMALL, pids: 17 }, idle_timeout_ms: 60_001 });
  assert.deepEqual(again.ignored, ["idle_timeout_ms", "limits.pids"]);
  assert.deepEqual(heard, [
    `session ${name} already exists: idle_timeout_ms, limits.pids ignored; patch() changes what can be changed`,
  ]);
  await connect({ onWarning: null }).enter({ key: name, idle_timeout_ms: 5 });
  await aware.session({ key: name }).delete();
});

test("extend says what it did, and times beyond a bound are refused", async () => {
  const { session } = await client.enter({ limits: SMALL, lifetime_ms: 60_000, max_lifetime_ms: 120_000 });
  const box = client.session(session.id);
  let before = session.expires_at!;
  for (const [moved, most] of [[40_000, false], [20_000, true], [0, true]] as const) {
    const now = await box.extend({ ms: 40_000 });
    assert.deepEqual([now.extended_by_ms, now.at_maximum, now.expires_at! - before], [moved, most, moved]);
    before = now.expires_at!;
  }
  const refused = await fails("INVALID", box.patch({ idle_timeout_ms: 7 * 86_400_000 }));
  assert.equal(refused.message, "idle_timeout_ms: must be at most 1d (idle_timeout_max)");
  await fails("CONFLICT", box.delete({ if_version: 1 }));
  await box.delete();
});

test("its life: probe, extend, activity, pause, hibernate, resume, stats, progress", async () => {
  const probe = await box.probe({ deadline_ms: 10_000 });
  assert.equal(probe.status, "connected");
  assert.equal(probe.verified, true);
  const before = await box.get();
  assert.ok((await box.extend({ ms: 3_600_000 })).hibernate_at! > before.hibernate_at!);
  assert.ok((await box.activity()).last_activity_at! >= before.last_activity_at!);
  assert.equal((await box.pause()).paused, true);
  assert.equal((await box.unpause()).paused, false);
  assert.ok((await box.stats()).pids >= 0);
  assert.equal((await box.hibernate()).state, "hibernated");
  await fails("CONFLICT", box.stats());
  const resumed = await box.resume();
  assert.equal(resumed.outcome, "resumed");
  assert.equal(resumed.state_lost, false);
  assert.equal((await box.progress()).status, "ready");
  const stages = await all(box.watchProgress());
  assert.equal(stages.at(-1)?.status, "ready");
});

test("a list has more than one page", async () => {
  const user = fresh("pages");
  await Promise.all(Array.from({ length: 205 }, (_, i) => client.enter({ key: `${user}-${i}`, user, asleep: true })));
  const found = await all(client.sessions({ user }));
  assert.equal(new Set(found.map((s) => s.id)).size, 205);
  for (let at = 0; at < found.length; at += 20)
    await Promise.all(found.slice(at, at + 20).map((s) => client.session(s.id).delete()));
  assert.deepEqual(await all(client.sessions({ user })), []);
});

test("a new session without a name is made once, and pinned ones are those or none", async () => {
  const { session } = await client.enter({ limits: SMALL });
  assert.equal(session.key, null);
  assert.equal((await client.enter({ pin: session.id })).session.id, session.id);
  await client.session(session.id).delete();
  await fails("CONFLICT", client.enter({ key, pin: "ses_other" }));
  await fails("CONFLICT", client.enter({ key, if_exists: "fail" }));
});

// ---- commands --------------------------------------------------------------------------------------

test("a command: both streams, its status, its input", async () => {
  const r = await box.exec("cat; echo oops >&2; exit 3", { stdin: "in\u00e9", env: { A: "b" }, cwd: "/tmp" });
  assert.deepEqual([r.stdout, r.stderr, r.exit_code, r.signal], ["in\u00e9", "oops\n", 3, null]);
  assert.equal((await box.exec(["printf", "%s", "$HOME"])).stdout, "$HOME");
  const late = await box.exec("sleep 60", { timeout_ms: 200 });
  assert.deepEqual([late.timed_out, late.limits], [true, ["TIMEOUT"]]);
});

test("output and input of any bytes are exact", async () => {
  const bytes = Buffer.from(Array.from({ length: 1024 }, (_, i) => i & 255));
  const plain = await box.exec("cat", { stdin: bytes });
  assert.deepEqual(Buffer.from(plain.raw.stdout), bytes);
  assert.ok(plain.stdout.includes("\ufffd"));
  const much = Buffer.alloc(3 << 20, bytes);
  const back = await box.exec("cat >&2", { stdin: much, max_output_bytes: 8 << 20 });
  assert.ok(much.equals(back.raw.stderr));
});

test("the input of several commands at once arrives whole", async () => {
  const much = Buffer.alloc(2 << 20, "any bytes \0");
  const again = async () => {
    for (let i = 0; i < 6; i++) {
      const r = await box.exec("cat", { stdin: much, max_output_bytes: 4 << 20 });
      assert.ok(much.equals(r.raw.stdout), `${r.raw.stdout.length} bytes came back`);
    }
  };
  await Promise.all([again(), again(), again(), again()]);
});

test("the same idempotency key runs a command once", async () => {
  const once = { idempotency_key: fresh("once") };
  const first = await box.exec("echo x >> count; wc -l < count", once);
  const second = await box.exec("echo x >> count; wc -l < count", once);
  assert.equal(first.exec_id, second.exec_id);
  assert.equal(second.stdout.trim(), "1");
});

test("a stream tells what happens as it happens", async () => {
  const events: ExecEvent[] = [];
  for await (const e of box.stream("echo one; echo two >&2; printf '\\377'; exit 4")) events.push(e);
  assert.equal(events[0]!.event, "started");
  const text = (name: string) =>
    Buffer.concat(events.flatMap((e) => (e.event === name && "data" in e ? [e.data] : [])));
  assert.deepEqual(text("stdout"), Buffer.from("one\n\xff", "latin1"));
  assert.equal(text("stderr").toString(), "two\n");
  const exit = events.at(-1)!;
  assert.ok(exit.event === "exit" && exit.exit_code === 4 && !exit.truncated);
});

test("who reads a stream slowly slows the command, and loses nothing", async () => {
  let size = 0;
  let first = true;
  for await (const e of box.stream("head -c 20000000 /dev/zero", { max_output_bytes: 65536 })) {
    if (e.event === "gap") assert.fail("something is missing");
    if (e.event !== "stdout") continue;
    if (first) await new Promise((resolve) => setTimeout(resolve, 300));
    first = false;
    assert.equal(e.offset, size);
    size += e.data.length;
  }
  assert.equal(size, 20_000_000);
});

test("a stream takes its input from another", async () => {
  async function* numbers() {
    for (let i = 0; i < 2000; i++) yield `${i}\n`.repeat(50);
  }
  let out = "";
  for await (const e of box.stream("wc -l", { stdin: numbers() }))
    if (e.event === "stdout") out += Buffer.from(e.data).toString();
  assert.equal(out.trim(), "100000");
});

test("who leaves a stream does not end the command", async () => {
  let id = "";
  for await (const e of box.stream("sleep 0.5; echo after")) {
    if (e.event === "started") id = e.exec_id;
    break;
  }
  assert.equal((await box.execution(id).result()).stdout, "after\n");
});

test("in the background: output by offset, input, signals, kill", async () => {
  const cat = await box.start("cat; echo end");
  assert.equal(await cat.write("one "), 4);
  assert.equal(await cat.write(Buffer.from([0xff, 10])), 2);
  let part = await cat.output({ waitMs: 5000 });
  while (part.next.stdout < 6) part = await cat.output({ waitMs: 5000 });
  assert.deepEqual((await cat.output({ stdout: 4 })).stdout, Buffer.from([0xff, 10]));
  await cat.closeStdin();
  const done = await cat.result();
  assert.equal(done.exit_code, 0);
  assert.ok(done.stdout.endsWith("end\n"));
  const waited = await cat.wait();
  assert.deepEqual([waited.state, waited.stdout], ["exited", done.stdout]);
  await fails("CONFLICT", cat.write("x"));

  const sleeper = await box.start(["sleep", "60"]);
  await sleeper.signal("TERM");
  assert.equal((await sleeper.wait()).signal, 15);
  const other = await box.start(["sleep", "60"]);
  assert.equal((await other.kill()).signal, 9);
  const list = await all(box.executions());
  assert.ok(list.some((e) => e.exec_id === other.id && e.state === "killed"));
});

test("output that is not kept any more is told", async () => {
  const x = await box.start("head -c 300000 /dev/zero", { max_output_bytes: 4096, stdin_open: false });
  const waited = await x.wait();
  assert.deepEqual([waited.truncated, waited.limits, waited.stdout.length], [true, ["LIMIT_OUTPUT"], 4096]);
  await fails("OUTPUT_GONE", x.output());
  const events = await all(x.stream());
  assert.deepEqual(await all(x.events()), events);
  const gap = events[0]!;
  assert.ok(gap.event === "gap" && gap.stream === "stdout" && gap.offset === 0, JSON.stringify(gap));
  const exit = events.at(-1)!;
  assert.ok(exit.event === "exit" && exit.truncated && exit.limits.includes("LIMIT_OUTPUT"));
  const size = events.reduce((sum, e) => sum + (e.event === "stdout" ? e.data.length : 0), 0);
  assert.equal(gap.bytes + size, 300_000);
});

test("a terminal: typed, resized, left and found again", async () => {
  const tty = await box.tty({ command: "cat -", cols: 100, rows: 30 });
  await tty.write("hello\n");
  let seen = "";
  for await (const bytes of tty) if ((seen += Buffer.from(bytes).toString()).split("hello").length === 3) break;
  await tty.resize({ cols: 132, rows: 50 });
  await box.execution(tty.execId).resize({ cols: 120, rows: 40 });
  await tty.close();

  const again = await box.tty({ exec: tty.execId, offset: tty.offset });
  await again.write("\u00e9\x04\x04");
  seen = "";
  for await (const bytes of again) seen += Buffer.from(bytes).toString();
  await again.close();
  assert.ok(seen.startsWith("\u00e9"), JSON.stringify(seen));
  const size = await box.tty({ command: "stty size; exit 7", cols: 100, rows: 30 });
  seen = "";
  for await (const bytes of size) seen += Buffer.from(bytes).toString();
  assert.equal(seen.trim(), "30 100");
  assert.equal(size.exit?.exit_code, 7);
  await client.session({ key }).execution(tty.execId).kill();
  await fails("NOT_FOUND", box.tty({ exec: "exe_none" }));
});

test("a terminal shows a lot in a row", async () => {
  const tty = await box.tty({ command: "head -c 3000000 /dev/zero | tr '\\0' x" });
  let size = 0;
  for await (const bytes of tty) size += bytes.length;
  assert.equal(size, 3_000_000);
  assert.equal(tty.offset, 3_000_000);
});

// ---- the service -----------------------------------------------------------------------------------

test("health, readiness, progress, numbers, documents", async () => {
  assert.equal((await client.health()).status, "ok");
  assert.equal(await client.ready(), true);
  assert.equal((await client.progress()).status, "ready");
  assert.equal((await all(client.watchProgress())).at(-1)?.status, "ready");
  assert.match(await client.metrics(), /lodge_sandboxes_active/);
  assert.equal((await client.index()).name, "lodge");
  assert.equal((await client.openapi())["openapi"], "3.1.0");
});

test("events: pages, and a stream from where one was", async () => {
  const { session } = await client.enter({ key: fresh("events"), limits: SMALL });
  const page = await client.eventsPage({ session: session.id, limit: 2 });
  assert.equal(page.events[0]!.kind, "create");
  const kinds: string[] = [];
  const leave = new AbortController();
  const reading = (async () => {
    for await (const e of client.followEvents(
      { session: session.id, since: page.events[0]!.id },
      { signal: leave.signal },
    )) {
      kinds.push(e.kind);
      if (e.kind === "destroy") break;
    }
  })();
  await client.session(session.id).delete();
  await reading;
  assert.ok(!kinds.includes("create") && kinds.includes("destroy"), kinds.join());

  const listed = (await all(client.events({ session: session.id }))).map((e) => e.kind);
  assert.ok(listed[0] === "create" && listed.at(-1) === "destroy", listed.join());

  const now = client.followEvents({}, { signal: leave.signal });
  const next = now.next();
  const other = fresh("news");
  await until(async () => {
    await client.enter({ key: other, asleep: true });
    await client.session({ key: other }).delete();
    return Promise.race([next.then(() => true), new Promise<boolean>((resolve) => setTimeout(resolve, 100, false))]);
  });
  leave.abort();
  await assert.rejects(all(now), { name: "AbortError" });
});

test("over TCP with a key, and without one", async () => {
  const tcp = connect({ url: URL_HTTP });
  assert.equal((await tcp.session({ key }).exec("echo tcp")).stdout, "tcp\n");
  tcp.close();
  await fails("CONNECTION", tcp.health());
  const nobody = connect({ url: URL_HTTP, apiKey: null });
  assert.equal((await nobody.health()).status, "ok");
  assert.equal((await fails("UNAUTHENTICATED", nobody.session({ key }).get())).status, 401);
  const wrong = connect({ url: URL_HTTP, apiKey: API_KEY + "x" });
  await fails("UNAUTHENTICATED", wrong.session({ key }).exec("true"));
  nobody.close();
  wrong.close();
});

// ---- who does not want to wait ----------------------------------------------------------------------

test("a signal ends any call with its reason", async () => {
  const reason = new Error("enough");
  const after = (ms: number) => {
    const c = new AbortController();
    setTimeout(() => c.abort(reason), ms);
    return { signal: c.signal };
  };
  const is = (error: unknown) => error === reason;
  await assert.rejects(box.exec("sleep 20", {}, after(100)), is);
  await assert.rejects(all(box.stream("sleep 20", {}, after(200))), is);
  await assert.rejects(all(box.files.watch("", {}, after(200))), is);
  await assert.rejects(all(client.followEvents({}, after(200))), is);
  const x = await box.start("sleep 20");
  await assert.rejects(x.wait(after(100)), is);
  await assert.rejects(all(x.events({}, after(100))), is);
  await assert.rejects(x.write(new Uint8Array(1 << 22), {}, after(200)), is);
  const readTerminal = async (how: { signal: AbortSignal }) => all(await box.tty({ command: "sleep 20" }, how));
  await assert.rejects(readTerminal(after(200)), is); // while it is opened, if that takes longer
  const gone = AbortSignal.abort(reason);
  await assert.rejects(box.get({ signal: gone }), is);
  await assert.rejects(client.enter({}, { signal: gone }), is);
  for await (const e of box.executions()) if (e.state === "running") await box.execution(e.exec_id).kill();
});

test("a command that is missing is a result, as arguments and as text", async () => {
  for (const missing of ["/no/such", ["/no/such"]]) {
    const r = await box.exec(missing);
    assert.deepEqual([r.exit_code, r.stdout, r.stderr.includes("/no/such")], [127, "", true]);
    assert.equal((await (await box.start(missing)).wait()).exit_code, 127);
  }
  assert.equal((await box.exec(["/etc/passwd"])).exit_code, 126);
});

test("a time that is none is refused by every method; 0 is no limit", async () => {
  for (const ms of [-1, NaN, Infinity, 0.5, "1" as unknown as number]) {
    const x = box.command("exe_x");
    const calls: (() => unknown)[] = [
      () => box.exec("true", { timeout_ms: ms }),
      () => all(box.stream("true", { timeout_ms: ms })),
      () => box.start("true", { timeout_ms: ms }),
      () => box.exec("true", {}, { timeoutMs: ms }),
      () => x.wait({ timeoutMs: ms }),
      () => x.output({ waitMs: ms }),
      () => client.enter({ key }, { timeoutMs: ms }),
      () => connect({ timeoutMs: ms }),
      () => connect({ retryMs: ms }),
    ];
    for (const call of calls) {
      const error = await fails("INVALID", async () => call());
      assert.match(error.message, /must be a whole number of milliseconds, or 0 for no limit/, String(call));
    }
  }
  assert.equal((await box.exec("sleep 0.2; echo on", { timeout_ms: 0 }, { timeoutMs: 0 })).stdout, "on\n");
  const long = await box.exec("echo on", { timeout_ms: 0xffffffff }); // longer than a timer of Node
  assert.equal(long.stdout, "on\n");
});

test("the wait for a command that keeps writing has an end", async () => {
  const x = await box.start("while :; do echo x; sleep 0.02; done");
  await fails("CLIENT_TIMEOUT", x.wait({ timeoutMs: 500 }));
  assert.equal((await x.get()).state, "running");
  await x.kill();
});

test("leaving a scope deletes only what was made without a name", async () => {
  const name = fresh("scope");
  const user = fresh("user");
  const leave = (s: AsyncDisposable) => s[Symbol.asyncDispose]();
  for (const how of [{ key: name }, { user }, { thread: name, user }, { idempotency_key: name }]) {
    const made = await client.enter({ ...how, limits: SMALL });
    const again = [made, await client.enter(how), client.session(made.id), await client.enter({ pin: made.id })];
    for (const s of again) {
      await leave(s);
      assert.equal((await s.get()).state, "active");
    }
    const [fork] = await made.fork({ key: name + "-2" });
    await leave(fork!);
    await fork!.delete();
    const [nameless] = await made.fork();
    await leave(nameless!);
    await fails("GONE", nameless!.get());
    await made.delete();
  }
  const made = await client.enter({ limits: SMALL });
  assert.equal((await made.exec("echo hi")).stdout, "hi\n");
  await leave(made);
  await fails("GONE", made.get());
  const named = await client.enter(name, { limits: SMALL });
  assert.deepEqual([named.record.key, named.session.id, named.outcome], [name, named.id, "created"]);
  assert.deepEqual(await client.cleanup({ user }), { destroyed: [], failed: [] });
  await named.delete();
});

test("a time ends a call too", async () => {
  const error = await fails("CLIENT_TIMEOUT", box.exec("sleep 20", {}, { timeoutMs: 200 }));
  assert.equal(error.status, 0);
  for await (const e of box.executions()) if (e.state === "running") await box.execution(e.exec_id).kill();
});

test("teams are listed with what they have, and those of a user with the role", async () => {
  const [team, user] = [fresh("team"), fresh("user")];
  await client.teams.setMember(team, user, "ADMIN");
  assert.deepEqual(await all(client.teams.list({ user })), [{ team, members: 1, projects: 0, role: "ADMIN" }]);
  assert.ok((await all(client.teams.list())).some((t) => t.team === team && t.role === null));
  await client.teams.removeMember(team, user);
});
