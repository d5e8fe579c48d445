// SPDX-License-Identifier: Apache-2.0
// The words of docs/sdks.md as this package means them, with the results as JSON on stdout. tests/sdk_typescript/same.py
// has the same calls of the Python SDK, and the two are compared.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { LodgeClient, isLodgeError, type ExecEvent } from "lodge-sandbox/client";

import { all, tar } from "./common.mjs";

const [url, apiKey, name, directory] = process.argv.slice(2) as [string, string, string, string];
const client = new LodgeClient({ url, apiKey });
const box = await client.enter(name + "-box");
const NEVER = "sleep 600";

/** The code of the error that a call ends with; null if it succeeds. */
async function codeOf(call: () => unknown): Promise<string | null> {
  try {
    await call();
  } catch (error) {
    if (isLodgeError(error)) return error.code;
    throw error;
  }
  return null;
}

/** Kinds of events, those of a kind in a row once. */
function shape(events: ExecEvent[]): string[] {
  return events.map((e) => e.event).filter((kind, i, kinds) => i === 0 || kinds[i - 1] !== kind);
}

function exitOf(events: ExecEvent[]): ExecEvent & { event: "exit" } {
  const last = events.at(-1);
  if (last?.event !== "exit") throw new Error("no exit: " + JSON.stringify(last));
  return last;
}

/** A command that wrote more than is retained. */
async function few() {
  const job = await box.start("head -c 10000 /dev/zero", { max_output_bytes: 4096, stdin_open: false });
  return { job, result: await job.wait() };
}

/** A project with two fragments, of a user who has nothing else. */
async function theProject() {
  const user = name + "-owner";
  const project = name + "-project";
  if ((await codeOf(() => client.projects.get(project))) === "NOT_FOUND") {
    await client.projects.create({ name: "Site", id: project, user });
    for (const text of ["one", "two"]) {
      const files = { f: text, "dir/g": "__BASE64__AP8=" };
      await client.projects.createFragment(project, { id: `${name}-${text}`, title: text, user, files });
    }
  }
  return { user, project };
}

async function here(user: string, command: string): Promise<string> {
  const current = (await client.users.get(user)).user.session!;
  return (await client.session(current.id).exec(command)).stdout;
}

const words: Record<string, () => Promise<unknown>> = {
  enter: async () => {
    const s = await client.enter(name, { user: "ada" });
    const again = await client.enter(name);
    const out = (await s.exec("echo hi")).stdout;
    const same = s.id === again.id && s.id === s.record.id;
    const result = [out, same, s.record.key === name, s.outcome, again.outcome, s.state_lost, s.cause];
    await s.delete();
    return result;
  },
  with: async () => {
    const named = await client.enter(name);
    const nameless = await client.enter();
    const [fork] = await named.fork();
    for (const s of [named, nameless, fork!]) await s[Symbol.asyncDispose]();
    const result = [];
    for (const s of [named, nameless, fork!]) result.push(await codeOf(() => s.get()));
    await named.delete();
    return result;
  },
  session: async () => {
    const missing = client.session("ses_none");
    const same = client.session({ key: name + "-box" });
    await same[Symbol.asyncDispose]();
    return [await codeOf(() => missing.get()), (await same.get()).id === box.id];
  },
  fork: async () => {
    await box.files.write("f", "mine");
    const forks = await box.fork({ count: 2 });
    const result: unknown[] = [];
    for (const f of forks) result.push((await f.exec("cat f")).stdout);
    result.push(forks[0]!.id === forks[0]!.record.id);
    for (const f of forks) await f.delete();
    return result;
  },
  exec: async () => {
    const seen = [];
    for (const command of ["exit 3", "nosuch-program", ["nosuch-program"], "/etc/passwd", ["/etc/passwd"]]) {
      const r = await box.exec(command);
      seen.push([r.exit_code, r.stdout, r.stderr !== ""]);
    }
    return seen;
  },
  stream: async () => {
    const events = await all(box.stream("echo a; exit 3"));
    const missing = await all(box.stream(["nosuch-program"]));
    return [shape(events), exitOf(events).exit_code, shape(missing), exitOf(missing).exit_code];
  },
  start: async () => {
    const job = await box.start("cat");
    const { state } = await job.get();
    await job.write("in", { eof: true });
    return [state, (await job.wait()).stdout];
  },
  command: async () => {
    const job = await box.start("echo out");
    return [(await box.command(job.id).wait()).stdout, await codeOf(() => box.command("exe_none").get())];
  },
  execs: async () => {
    const r = await box.exec("true");
    return (await all(box.execs())).filter((e) => e.exec_id === r.exec_id).map((e) => e.state);
  },
  wait: async () => {
    const r = await (await box.start("echo out; echo err >&2; exit 4")).wait();
    const f = (await few()).result;
    const job = await box.start(NEVER);
    const waited = (await codeOf(() => job.wait({ timeoutMs: 200 }))) !== null;
    const running = (await job.get()).state;
    await job.kill();
    const { exit_code, stdout, stderr, truncated } = r;
    return [exit_code, stdout, stderr, truncated, f.truncated, f.limits, f.raw.stdout.length, waited, running];
  },
  output: async () => {
    const { job } = await few();
    const o = await job.output({ stdout: 9999 });
    return [await codeOf(() => job.output()), o.stdout.length, o.next.stdout, o.done];
  },
  gap: async () => {
    const events = await all((await few()).job.stream());
    const [g, end] = [events[0]!, exitOf(events)];
    if (g.event !== "gap") return g.event;
    return [shape(events), g.stream, g.offset, g.bytes, end.truncated, end.limits];
  },
  timeout: async () => {
    const none = box.command("exe_none");
    const calls: ((t: number) => unknown)[] = [
      (t) => box.exec("true", { timeout_ms: t }),
      (t) => all(box.stream("true", { timeout_ms: t })),
      (t) => box.start("true", { timeout_ms: t }),
      (t) => none.wait({ timeoutMs: t }),
      (t) => none.output({ waitMs: t }),
      (t) => client.enter(name, {}, { timeoutMs: t }),
      (t) => new LodgeClient({ url: "unix:/x", timeoutMs: t }),
    ];
    const refused = [];
    for (const wrong of [-1, NaN]) for (const call of calls) refused.push(await codeOf(() => call(wrong)));
    const free = await box.exec("sleep 0.2; echo on", { timeout_ms: 0 });
    const last = exitOf(await all(box.stream("sleep 0.2", { timeout_ms: 0 })));
    const job = await (await box.start("sleep 0.2; echo on", { timeout_ms: 0 })).wait({ timeoutMs: 0 });
    const late = await box.exec(NEVER, { timeout_ms: 200 });
    return [refused, free.stdout, free.timed_out, last.exit_code, job.stdout, late.timed_out];
  },
  upload: async () => {
    const local = join(directory, "local");
    await writeFile(local, Buffer.from("local \xff", "latin1"));
    const made = await box.files.upload(local, "up/by-path", { mkdir: true });
    await box.files.upload(Buffer.from("bytes"), "up/by-bytes");
    return [made.type, made.size, (await box.exec("cat up/by-bytes; wc -c < up/by-path")).stdout];
  },
  download: async () => {
    await box.files.write("down", "inside");
    const local = join(directory, "down");
    const size = await box.files.download("down", local);
    return [size, await readFile(local, "utf8"), await codeOf(() => box.files.download("none", local))];
  },
  get_archive: async () => {
    await box.files.write("dir/a", "1", { mkdir: true });
    await box.files.putArchive(box.files.getArchive("dir"), "copy");
    return (await box.exec("cat copy/a")).stdout;
  },
  put_archive: async () => {
    await box.files.putArchive(Buffer.concat([tar("sub/one", Buffer.from("one")), tar()]), "unpacked");
    const bad = Buffer.from("no archive".repeat(100));
    return [
      (await box.exec("cat unpacked/sub/one")).stdout,
      await codeOf(() => box.files.putArchive(bad, "unpacked")),
    ];
  },
  events: async () => {
    const s = await client.enter({ asleep: true });
    await s.delete();
    const kindsOf = async (more: object) =>
      (await all(client.events({ session: s.id, ...more }))).map((e) => e.kind);
    const kinds = await kindsOf({});
    const back = (await kindsOf({ newestFirst: true })).join() === [...kinds].reverse().join();
    return [kinds[0], kinds.at(-1), back, await kindsOf({ kind: ["create", "destroy"] })];
  },
  follow_events: async () => {
    const s = await client.enter({ asleep: true });
    const seen: string[] = [];
    for await (const event of client.followEvents({ session: s.id, since: 0 })) {
      seen.push(event.kind);
      if (seen.length === 1) await s.delete();
      if (event.kind === "destroy") break;
    }
    return [seen[0], seen.at(-1)];
  },
  cleanup: async () => {
    const made = [];
    for (const i of [0, 1, 2]) made.push((await client.enter(`${name}-${i}`, { user: name, asleep: true })).id);
    const done = await client.cleanup({ user: name, reason: "over" });
    const same = JSON.stringify(done.destroyed.sort()) === JSON.stringify(made.sort());
    return [same, done.failed, await client.cleanup({ user: name })];
  },
  switch_user_to_fragment: async () => {
    const { user, project } = await theProject();
    const r = await client.projects.switchUserToFragment(user, project, name + "-one");
    const wrong = await codeOf(() => client.projects.switchUserToFragment(user, project, "none"));
    const there = await here(user, "cat f; wc -c < dir/g");
    return [r.restoredFiles, r.fragmentId === name + "-one", Boolean(r.sandboxId), there, wrong];
  },
  switch_user_to_project: async () => {
    const { user, project } = await theProject();
    const other = name + "-other";
    await client.projects.create({ name: "Other", id: other, user });
    const away = await client.projects.switchUserToProject(user, other);
    await client.projects.switchUserToProject(user, project);
    const result = [away.restoredFiles, away.fragmentId, await here(user, "cat f")];
    return [...result, await codeOf(() => client.projects.switchUserToProject("mallory", project))];
  },
  get_user_active_fragment: async () => {
    const { user, project } = await theProject();
    const nowhere = await client.projects.getUserActiveFragment(name + "-nobody");
    await client.projects.switchUserToFragment(user, project, name + "-two");
    const now = await client.projects.getUserActiveFragment(user);
    return [nowhere, now?.projectId === project, now?.fragmentId === name + "-two", now?.fragment?.files["f"]];
  },
  kill_user_active_sandbox: async () => {
    const { user, project } = await theProject();
    const was = (await client.projects.switchUserToProject(user, project)).sandboxId;
    const killed = await client.projects.killUserActiveSandbox(user);
    const again = await client.projects.killUserActiveSandbox(user);
    return [killed.killed, killed.sandboxId === was, again];
  },
  get_user_id_for_project: async () => {
    const { user, project } = await theProject();
    return [
      (await client.projects.getUserIdForProject(project)) === user,
      await codeOf(() => client.projects.getUserIdForProject("none")),
    ];
  },
  kill_all_user_sandboxes: async () => {
    const { user, project } = await theProject();
    await client.projects.switchUserToProject(user, project);
    const done = await client.projects.killAllUserSandboxes();
    const again = await client.projects.killAllUserSandboxes();
    const same = done.killed === done.killedSandboxes.length && done.killed > 0;
    return [done.users > 0, same, done.failed, again];
  },
  create: async () => {
    const [user, team] = [name + "-lead", name + "-blue"];
    const made = await client.projects.create({ name: "Shared", user, team });
    const got = await client.projects.get(made.id, { user });
    const listed = (await all(client.projects.list({ user }))).map((p) => p.name);
    const gone = await client.projects.delete(made.id, { user });
    const same = [got, gone].every((p) => JSON.stringify(p) === JSON.stringify(made));
    return [made.name, made.owner === user, same, listed, await codeOf(() => client.projects.get(made.id, { user }))];
  },
  create_fragment: async () => {
    const { user, project } = await theProject();
    const made = await client.projects.createFragment(project, { user, title: "T", files: { x: "y" } });
    const got = await client.projects.fragment(project, made.id, { user });
    const first = (await all(client.projects.fragments(project, { user })))[0]!;
    const gone = await client.projects.deleteFragment(project, made.id, { user });
    const same = first.id === gone.id && gone.id === made.id;
    const code = await codeOf(() => client.projects.fragment(project, made.id, { user }));
    return [made.title, got.files, same, "files" in first, code];
  },
  set_member: async () => {
    const team = name + "-team";
    const made = [];
    for (const [user, role] of [["ann", "OWNER"], ["bob", "VIEWER"]] as const)
      made.push((await client.teams.setMember(team, user, role)).role);
    const changed = (await client.teams.setMember(team, "bob", "ADMIN", { by: "ann" })).role;
    const seen = (await all(client.teams.members(team))).map((m) => [m.user, m.role]);
    const mine = (await all(client.teams.list({ user: "bob" }))).filter((t) => t.team === team);
    const teams = mine.map((t) => ({ ...t, team: t.team === team }));
    const named = (await all(client.teams.list())).filter((t) => t.team === team).length;
    const removed = (await client.teams.removeMember(team, "bob")).user;
    const denied = await codeOf(() => client.teams.setMember(team, "eve", "OWNER", { by: "eve" }));
    return [made, changed, seen, teams, named, removed, denied];
  },
  health: async () => (await client.health()).status,
  ready: () => client.ready(),
};

const results: Record<string, unknown> = {};
for (const [word, call] of Object.entries(words)) results[word] = await call();
await box.delete();
console.log(JSON.stringify(results));
