// SPDX-License-Identifier: Apache-2.0
// What is asked again and what is not, and where lodged is looked for: against a server that misbehaves.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { SandboxSessionManager } from "lodge-sandbox";
import { LodgeClient, type LodgeError } from "lodge-sandbox/client";

import { API_KEY, all, fails } from "./common.mjs";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** Answers each request by the next of these; the last one stays. */
async function pretend(
  handlers: Handler[],
  use: (client: LodgeClient, asked: { line: string; body: string }[]) => Promise<void>,
): Promise<void> {
  const asked: { line: string; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    const go = () => {
      asked.push({ line: `${request.method} ${request.url}`, body });
      handlers[Math.min(asked.length, handlers.length) - 1]!(request, response, body);
    };
    request.on("end", go);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new LodgeClient({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    apiKey: "key",
    retryMs: 3000,
  });
  try {
    await use(client, asked);
  } finally {
    client.close();
    server.closeAllConnections?.();
    server.close();
  }
}

const cut: Handler = (request) => request.socket.destroy();
const json =
  (status: number, value: unknown, headers = {}): Handler =>
  (_, response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
const problem = (status: number, code: string, retryable: boolean, details = {}, headers = {}) =>
  json(status, { error: { code, message: `it is ${code}`, retryable, details } }, headers);
const session = { session: { id: "ses_1" } };

test("only what is waited for has lodged's time limit by default", async () => {
  await pretend([json(202, { exec_id: "exe_1" })], async (client, asked) => {
    const box = client.session("ses_1");
    await box.start("true");
    await box.start("true", { timeout_ms: 5 });
    assert.deepEqual(
      asked.map((a) => (JSON.parse(a.body) as { timeout_ms?: number }).timeout_ms),
      [0, 5],
    );
  });
});

test("what can be asked twice is, with the same idempotency key", async () => {
  await pretend([cut, json(200, session)], async (client, asked) => {
    await client.session("ses_1").get();
    assert.deepEqual(
      asked.map((a) => a.line),
      Array(2).fill("GET /base/v1/sessions/ses_1"),
    );
  });
  const answer = { stdout: "", stderr: "", exit_code: 0 };
  await pretend([cut, cut, json(200, answer)], async (client, asked) => {
    await client.session({ key: "a/b c" }).exec("true");
    const keys = asked.map((a) => (JSON.parse(a.body) as { idempotency_key: string }).idempotency_key);
    assert.equal(keys.length, 3);
    assert.ok(keys[0]!.length > 10 && new Set(keys).size === 1);
    assert.equal(asked[0]!.line, "POST /base/v1/sessions/key:a%2fb%20c/exec");
  });
  await pretend([cut, json(201, session)], async (client, asked) => {
    await client.enter();
    assert.equal(asked[0]!.body, asked[1]!.body);
    assert.match(asked[0]!.body, /idempotency_key/);
    await client.enter({ key: "k" });
    assert.equal(asked[2]!.body, '{"key":"k"}');
  });
});

test("what cannot is not", async () => {
  await pretend([cut], async (client, asked) => {
    const s = client.session("ses_1");
    const calls: (() => Promise<unknown>)[] = [
      () => s.fork(),
      () => s.snapshot(),
      () => s.extend({ if_version: 3 }),
      () => s.hibernate(),
      () => s.pause(),
      () => s.unpause(),
      () => s.rollback({ snapshot: "snp_1" }),
      () => s.files.rename("a", "b"),
      () => s.files.write("a", "b", { append: true }),
      () => s.execution("exe_1").write("x"),
      () => s.execution("exe_1").signal(9),
      () => client.enter({ key: "a", if_exists: "fail" }),
      () => client.keys.create(),
    ];
    for (const [i, call] of calls.entries()) {
      await fails("CONNECTION", call());
      assert.equal(asked.length, i + 1, asked.at(-1)?.line);
    }
  });
});

test("a key may lead to somebody else's session by the second try", async () => {
  for (const ref of ["key:k", { key: "k" }])
    await pretend([cut], async (client, asked) => {
      const s = client.session(ref);
      await fails("CONNECTION", s.delete());
      await fails("CONNECTION", s.patch({ archived: true }));
      assert.equal(asked.length, 2);
    });
  await pretend([cut, json(200, { tombstone: {} }), cut, json(200, session)], async (client, asked) => {
    await client.session("ses_1").delete();
    await client.session("ses_1").patch({ archived: true });
    assert.equal(asked.length, 4);
  });
});

test("later is later, as often as is polite", async () => {
  await pretend(
    [problem(503, "UNAVAILABLE", true, {}, { "retry-after": "0" }), json(200, session)],
    async (client, asked) => {
      await client.session("ses_1").get();
      assert.equal(asked.length, 2);
    },
  );
  await pretend(
    [problem(429, "RATE_LIMITED", true, {}, { "retry-after": "0" }), json(201, { sessions: [] })],
    async (client, asked) => {
      await client.session("ses_1").fork();
      assert.equal(asked.length, 2);
    },
  );
  await pretend(
    [problem(503, "UNAVAILABLE", true, { max: 4, active: 4 }, { "retry-after": "1" })],
    async (client, asked) => {
      const full = await fails("UNAVAILABLE", client.enter({ key: "k" }));
      assert.deepEqual([asked.length, full.retryable, full.retryAfterMs, full.details["max"]], [1, true, 1000, 4]);
    },
  );
  const starting = problem(503, "UNAVAILABLE", true, {}, { "retry-after": "0" });
  for (const first of [[cut, cut, cut], [starting]])
    await pretend([...first, starting, starting, starting, starting, json(200, session)], async (client, asked) => {
      if (first[0] === cut) await client.session("ses_1").get();
      else await client.session("ses_1").command("exe_1").get();
      assert.equal(asked.length, first.length + 5);
    });
  await pretend([problem(504, "TIMEOUT", true)], async (client, asked) => {
    await fails("TIMEOUT", client.session("ses_1").get());
    assert.equal(asked.length, 3);
  });
});

test("a lodged that is not well says so in its own words", async () => {
  await pretend([json(503, { status: "failing", reason: "the disk" })], async (client) => {
    assert.equal((await client.health()).reason, "the disk");
  });
  await pretend([json(503, { ready: false }), problem(503, "OVERLOADED", true)], async (client) => {
    assert.equal(await client.ready(), false);
    await fails("OVERLOADED", client.ready());
  });
});

test("a file that breaks off is read on, if it is still the same", async () => {
  const part =
    (status: number, text: string, size: number, etag: string): Handler =>
    (_, response) => {
      response.writeHead(status, { etag, "content-length": size });
      response.write(text);
      setTimeout(() => response.destroy(), 50);
    };
  await pretend(
    [part(200, "hello ", 11, '"a"'), part(206, "wor", 5, '"a"'), part(206, "ld", 2, '"a"')],
    async (client) => {
      assert.equal(await client.session("ses_1").files.readText("f"), "hello world");
    },
  );
  await pretend([part(200, "hello ", 11, '"a"'), problem(412, "PRECONDITION_FAILED", false)], async (client) => {
    await fails("CONNECTION", client.session("ses_1").files.read("f"));
  });
});

test("what is no lodged is told in words", async () => {
  const page: Handler = (_, response) =>
    void response.writeHead(404).end("<html><script>x</script><h1>Not  here</h1>");
  await pretend([page], async (client) => {
    const error = await fails("PROTOCOL", client.session("ses_1").get());
    assert.match(error.message, /status 404 .*: Not here$/);
  });
  await pretend([json(200, session), (_, r) => void r.end("nonsense\n")], async (client) => {
    await client.session("ses_1").get();
    await fails("PROTOCOL", client.session("ses_1").get());
    await fails("PROTOCOL", client.session("ses_1").tty());
    await fails("PROTOCOL", all(client.session("ses_1").stream("x")));
  });
  await pretend([cut], async (client) => {
    assert.deepEqual((await fails("CONNECTION", client.session("ses_1").tty())).details, { sent: true });
  });
});

test("a stream whose line is cut is bridged", async () => {
  const started = JSON.stringify({ event: "started", exec_id: "exe_1" });
  const piece = JSON.stringify({ event: "stdout", offset: 0, data: Buffer.from("abc").toString("base64") });
  const stream: Handler = (_, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write(`${started}\n${piece}\n{"event":"stdout","offset":3,"da`);
    setTimeout(() => response.destroy(), 50);
  };
  const output = {
    stdout: Buffer.from("def").toString("base64"),
    stderr: "",
    stdout_offset: 6,
    stderr_offset: 0,
    done: true,
  };
  const exec = {
    exec_id: "exe_1",
    state: "exited",
    exit_code: 0,
    signal: null,
    limits: [],
    stdout_bytes: 6,
    stderr_bytes: 0,
    duration_ms: 1,
  };
  await pretend([stream, json(200, output), json(200, { exec })], async (client, asked) => {
    const events = await all(client.session("ses_1").stream("x"));
    assert.deepEqual(
      events.map((e) => e.event),
      ["started", "stdout", "stdout", "exit"],
    );
    assert.match(asked[1]!.line, /stdout_offset=3&stderr_offset=0/);
  });
});

test("a stream is of one command", async () => {
  const two: Handler = (_, response) => {
    for (const exec_id of ["exe_1", "exe_2"]) response.write(JSON.stringify({ event: "started", exec_id }) + "\n");
    response.end();
  };
  await pretend([two], async (client) => {
    const error = await fails("PROTOCOL", all(client.session("ses_1").stream("x")));
    assert.match(error.message, /exe_2 .* exe_1/);
  });
});

test("no path leads up", async () => {
  await pretend([json(200, session)], async (client, asked) => {
    const { files } = client.session("ses_1");
    const calls: (() => Promise<unknown>)[] = [
      () => files.read("../x"),
      () => files.remove("a/../b"),
      () => files.write(Buffer.from("/etc/.."), "x"),
      () => all(files.list("..")),
      () => client.session("..").delete(),
      () => client.session({ key: "a/../ses_2" }).delete(),
      () => client.session("ses_1").execution("../..").kill(),
      () => client.session("..").tty(),
      () => client.users.quota(".."),
      () => client.templates.delete("x/../../keys/k"),
    ];
    for (const call of calls) assert.match((await fails("INVALID", call)).message, /(\/|%2f)\.\./);
    assert.equal(asked.length, 0);
    for (const name of ["..x", "a/...", "x..", "./a"]) await files.write(name, "");
    assert.equal(asked.length, 4);
  });
});

test("passwords and keys are told to nobody", async () => {
  const secret = (told: unknown) => /s3|cret/.test(inspect(told, { depth: 9, showHidden: true }) + String(told));
  for (const url of [
    "http://ada:s3cret@h",
    "https://s3cret@h:1/x",
    "http://ada:s3cret@h?x=1",
    "http://ada:s3cret@h:x",
    "http://h/?key=s3cret",
    "http://ada:s3#cret@h",
    "ada:s3cret@h",
    "ftp://ada:s3cret@h",
  ])
    assert.throws(
      () => new LodgeClient({ url }),
      (e) => (e as LodgeError).code === "INVALID" && !secret(e) && !secret(JSON.stringify(e)),
    );
  const client = new LodgeClient({ url: "unix:/nowhere/lodge.sock", apiKey: "lk_s3cret", retryMs: 0 });
  const box = client.session("ses_1");
  const error = await fails("CONNECTION", box.get());
  for (const told of [client, box, box.files, client.keys, error, new SandboxSessionManager({}, { client })])
    assert.ok(!secret(told) && !secret(JSON.stringify(told)), inspect(told));
  client.close();
});

test("lodged is found by the environment, or beside its data", async () => {
  const home = await mkdtemp(join(tmpdir(), "lodge-ts-"));
  const kept = { ...process.env };
  const set = (values: Record<string, string>) => {
    for (const name of ["LODGE_URL", "LODGE_API_KEY", "LODGE_DATA", "LODGE_HOME", "XDG_DATA_HOME"])
      delete process.env[name];
    Object.assign(process.env, values);
  };
  const url = (values: Record<string, string>) => {
    set(values);
    return new LodgeClient().url;
  };
  try {
    assert.equal(url({ LODGE_URL: "http://127.0.0.1:1", LODGE_DATA: home }), "http://127.0.0.1:1");
    assert.equal(url({ LODGE_DATA: home }), `unix:${home}/lodge.sock`);
    const here = process.env["LODGE_TEST_SOCKET"]!;
    const data = here.slice(0, here.lastIndexOf("/"));
    set({ LODGE_DATA: data, LODGE_API_KEY: API_KEY });
    const local = new LodgeClient();
    assert.ok(Array.isArray(await all(local.sessions({ state: "failed" }))));
    local.close();
    set({ LODGE_DATA: home });
    await writeFile(join(home, "admin.key"), "lk_file\n");
    // as it is by default: who never reached lodged is told soon, also of what has more patience later
    const nobody = new LodgeClient();
    const missing = await fails("CONNECTION", nobody.health());
    assert.match(missing.message, /set LODGE_URL/);
    await fails("CONNECTION", all(nobody.session("ses_1").stream("true")));
    for (const wrong of ["", "ftp://x", "unix:", "lodge.sock"])
      assert.throws(
        () => new LodgeClient({ url: wrong }),
        (e) => (e as LodgeError).code === "INVALID",
      );
    for (const wrong of ["", " ", "two words", "lk_1\nlk_2", "lk_\u20ac", "lk_\0"])
      assert.throws(
        () => new LodgeClient({ url: "http://x", apiKey: wrong }),
        (e) => (e as LodgeError).code === "INVALID" && /apiKey/.test((e as LodgeError).message),
      );
    const read = new LodgeClient({ url: "unix:" + here, apiKey: ` ${API_KEY}\r\n` }); // as from a file
    assert.ok(Array.isArray(await all(read.sessions({ state: "failed" }))));
    read.close();
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in kept)) delete process.env[name];
    Object.assign(process.env, kept);
    await rm(home, { recursive: true });
  }
});
