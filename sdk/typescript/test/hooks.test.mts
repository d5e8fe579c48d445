// SPDX-License-Identifier: Apache-2.0
// What a caller can put between a client and the network, and when requests are sent again.
import assert from "node:assert/strict";
import * as http from "node:http";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";

import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";

import { LodgeClient, Sandbox, TransportError, UnavailableError, VERSION, type FetchRequest } from "lodge-sandbox";
import type { LodgeClientOptions, Tracer, TracerSpan } from "lodge-sandbox";

import { API_KEY, URL_HTTP, URL_UNIX, all, fails, fresh } from "./common.mjs";

const SMALL = { memory: "64M", disk: "64M", processes: 32 } as const;
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

interface Asked {
  line: string;
  headers: http.IncomingHttpHeaders;
}

/** Answers with these one after the other, and with the last of them for ever. */
async function pretend(
  answers: [status: number, body: unknown, headers?: Record<string, string>][],
  options: LodgeClientOptions,
  use: (client: LodgeClient, asked: Asked[]) => Promise<void>,
): Promise<void> {
  const asked: Asked[] = [];
  const server = http.createServer((request, response) => {
    asked.push({ line: `${request.method} ${request.url}`, headers: request.headers });
    const [status, body, headers] = answers[Math.min(asked.length, answers.length) - 1]!;
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new LodgeClient({ url, apiKey: "secret-key", ...options });
  try {
    await use(client, asked);
  } finally {
    client.close();
    server.closeAllConnections?.();
    server.close();
  }
}

const problem = (code: string, message = `it is ${code}`) => ({ error: { code, message, retryable: true, details: {} } });
const SESSION = { session: { id: "ses_1" } };
const NOW = { "retry-after": "0" };

test("headers, user agent and trace context go with every request", async () => {
  let count = 0;
  const options = {
    headers: () => ({ "X-Team": `t${++count}`, Authorization: "Bearer other" }),
    userAgent: "my-app/1.2",
    traceparent: () => (count < 2 ? TRACE : undefined),
  };
  await pretend([[200, SESSION]], options, async (client, asked) => {
    await client.session("ses_1").get();
    await client.session("ses_1").get();
    assert.deepEqual(asked.map((a) => a.headers["x-team"]), ["t1", "t2"]);
    assert.deepEqual(asked.map((a) => a.headers["traceparent"]), [TRACE, undefined]);
    assert.equal(asked[0]!.headers["authorization"], "Bearer secret-key"); // the key of the client stays
    assert.equal(asked[0]!.headers["user-agent"], `my-app/1.2 lodge-sandbox/${VERSION} node/${process.versions.node}`);
  });
  await pretend([[200, SESSION]], { traceparent: "nonsense" }, async (client) => {
    assert.match((await fails("INVALID", client.session("ses_1").get())).message, /^traceparent "nonsense"/);
  });
});

/** A tracer as that of OpenTelemetry, which keeps its spans. */
class Spans implements Tracer {
  readonly made: { name: string; kind: number; attributes: Record<string, unknown>; errors: Error[]; status?: number; ended: number }[] = [];
  constructor(readonly traceId = "0af7651916cd43dd8448eb211c80319c") {}

  startActiveSpan<F extends (span: TracerSpan) => unknown>(
    name: string,
    options: { kind: number; attributes: Record<string, string> },
    fn: F,
  ): ReturnType<F> {
    const made: Spans["made"][number] = { name, kind: options.kind, attributes: { ...options.attributes }, errors: [], ended: 0 };
    const number = this.made.push(made);
    return fn({
      spanContext: () => ({ traceId: this.traceId, spanId: String(number).padStart(16, "0"), traceFlags: 1 }),
      setAttribute: (key, value) => (made.attributes[key] = value),
      recordException: (error) => void made.errors.push(error),
      setStatus: ({ code }) => (made.status = code),
      end: () => void made.ended++,
    }) as ReturnType<F>;
  }
}

test("each request is a span, and lodged gets its trace context", async () => {
  const tracer = new Spans();
  const answers: Parameters<typeof pretend>[0] = [
    [200, SESSION, { "x-request-id": "r1" }],
    [503, problem("UNAVAILABLE"), NOW],
    [200, SESSION],
    [404, { error: { code: "NOT_FOUND", message: "no file", retryable: false, details: {} } }, { "x-request-id": "r4" }],
  ];
  await pretend(answers, { tracer }, async (client, asked) => {
    await client.session("ses_1").get();
    await client.session("ses_1").get();
    const error = await fails("NOT_FOUND", client.session("ses_1").files.stat("secret/name"));
    const [first, second, third] = tracer.made;
    assert.deepEqual([first!.name, first!.kind, first!.status], ["GET /v1/sessions/{id}", 2, undefined]);
    assert.deepEqual(first!.attributes, {
      "http.request.method": "GET",
      "url.template": "/v1/sessions/{id}",
      "http.response.status_code": 200,
      "lodge.request_id": "r1",
    });
    assert.deepEqual([second!.attributes["http.request.resend_count"], second!.errors], [1, []]);
    assert.deepEqual([third!.attributes["url.template"], third!.status], ["/v1/sessions/{id}/files/{path}", 2]);
    assert.deepEqual([third!.attributes["error.type"], third!.attributes["lodge.request_id"]], ["NOT_FOUND", "r4"]);
    assert.equal(third!.errors[0], error);
    assert.deepEqual(tracer.made.map((span) => span.ended), [1, 1, 1]);
    const context = (n: number) => `00-${tracer.traceId}-${String(n).padStart(16, "0")}-01`;
    assert.deepEqual(asked.map((a) => a.headers["traceparent"]), [1, 2, 2, 3].map(context));
  });
  await pretend([[200, SESSION]], { tracer: new Spans("0".repeat(32)) }, async (client, asked) => {
    await client.session("ses_1").get();
    assert.equal(asked[0]!.headers["traceparent"], undefined); // of a span that is not recorded
  });
  assert.throws(() => new LodgeClient({ tracer: {} as never }), /tracer: must have startActiveSpan/);
  assert.throws(() => new LodgeClient({ tracer, traceparent: TRACE }), /traceparent: not together with tracer/);
});

test("a tracer of OpenTelemetry gets spans", async () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const options = { tracer: provider.getTracer("test") };
  await pretend([[404, { error: { code: "NOT_FOUND", message: "none", retryable: false } }]], options, async (client, asked) => {
    await fails("NOT_FOUND", client.session("ses_1").get());
    const [span] = exporter.getFinishedSpans();
    assert.deepEqual([span!.name, span!.kind, span!.status.code], ["GET /v1/sessions/{id}", SpanKind.CLIENT, SpanStatusCode.ERROR]);
    assert.deepEqual([span!.attributes["http.response.status_code"], span!.events[0]!.name], [404, "exception"]);
    const { traceId, spanId } = span!.spanContext();
    assert.equal(asked[0]!.headers["traceparent"], `00-${traceId}-${spanId}-01`);
  });
});

test("streams and terminals have spans too", async () => {
  const tracer = new Spans();
  const client = new LodgeClient({ url: URL_UNIX, apiKey: API_KEY, tracer });
  const box = await Sandbox.create({ client, ...SMALL });
  await box.run("echo hi", { onStdout: () => {} });
  for await (const _ of await box.pty("echo shown"));
  await box.delete();
  client.close();
  const names = tracer.made.map((span) => span.name);
  assert.ok(names.includes("POST /v1/sessions/{id}/exec") && names.includes("GET /v1/sessions/{id}/tty"), names.join());
  assert.ok(tracer.made.every((span) => span.ended === 1 && span.status === undefined));
});

test("a logger hears of responses and retries, and of no key", async () => {
  const heard: string[] = [];
  const logger = { debug: (m: string) => heard.push("debug " + m), warn: (m: string) => heard.push("warn " + m) };
  const answers: Parameters<typeof pretend>[0] = [
    [503, problem("UNAVAILABLE"), NOW],
    [200, SESSION, { "x-request-id": "r1" }],
  ];
  await pretend(answers, { logger }, async (client) => void (await client.session("ses_1").get()));
  assert.match(heard[0]!, /^debug GET \/v1\/sessions\/ses_1: 503 in \d+ ms$/);
  assert.match(heard[1]!, /^warn GET \/v1\/sessions\/ses_1: UNAVAILABLE; sent again in \d+ ms \(try 2\)$/);
  assert.match(heard[2]!, /^debug GET \/v1\/sessions\/ses_1: 200 in \d+ ms \(request r1\)$/);
  assert.ok(!heard.join().includes("secret-key"));
});

test("a service that is busy is asked again, also to delete", async () => {
  const tombstone = { tombstone: { session: "ses_1" } };
  for (const [status, code] of [[503, "UNAVAILABLE"], [503, "OVERLOADED"], [429, "RATE_LIMITED"]] as const)
    for (const ref of ["ses_1", { key: "k" }])
      await pretend([...Array(6).fill([status, problem(code), NOW]), [200, tombstone]], { retry: { minDelayMs: 1, maxDelayMs: 5 } }, async (client, asked) => {
        await client.session(ref).delete();
        assert.equal(asked.length, 7);
      });
  await pretend([[503, problem("UNAVAILABLE"), NOW]], { retry: { attempts: 2 } }, async (client, asked) => {
    await assert.rejects(client.session("ses_1").delete(), UnavailableError);
    assert.equal(asked.length, 2);
  });
  await pretend([[503, problem("UNAVAILABLE"), NOW]], { retry: false }, async (client, asked) => {
    await assert.rejects(client.session("ses_1").get(), UnavailableError);
    assert.equal(asked.length, 1);
  });
  // a longer wait than the client has patience for is not begun
  await pretend([[503, problem("UNAVAILABLE"), { "retry-after": "60" }]], {}, async (client, asked) => {
    const error = await client.session("ses_1").delete().catch((e: unknown) => e);
    assert.ok(error instanceof UnavailableError && error.retryAfterMs === 60_000);
    assert.equal(asked.length, 1);
  });
});

test("the versions of both sides are known, and named where a route is missing", async () => {
  const client = new LodgeClient({ url: URL_HTTP, apiKey: API_KEY });
  assert.deepEqual(await client.version(), { client: VERSION, server: VERSION, compatible: true });
  client.close();
  const missing = problem("NOT_FOUND", "no such route: /v1/progress (see /docs)");
  missing.error.retryable = false;
  await pretend([[404, missing], [200, { version: "0.0.9" }]], {}, async (old, asked) => {
    const error = await fails("NOT_FOUND", old.progress());
    assert.match(error.message, new RegExp(`; lodged is 0.0.9 and this package ${VERSION}: use the same version of both$`));
    assert.deepEqual(asked.map((a) => a.line), ["GET /v1/progress", "GET /"]);
  });
});

test("everything but terminals goes through a fetch of the caller", async () => {
  const urls: string[] = [];
  const own = (url: string, request: FetchRequest) => (urls.push(`${request.method} ${url}`), fetch(url, request));
  const client = new LodgeClient({ url: URL_HTTP, apiKey: API_KEY, fetch: own });
  await using _ = client;
  await using box = await Sandbox.create({ ...SMALL, client });
  const texts: string[] = [];
  const result = await box.run("echo hi; cat", { input: "in", onStdout: (text) => texts.push(text) });
  assert.deepEqual([result.stdout, texts.join("")], ["hi\nin", "hi\nin"]);
  const data = Buffer.alloc(3 << 20, "lodge");
  async function* pieces() {
    for (let at = 0; at < data.length; at += 100_000) yield data.subarray(at, at + 100_000);
  }
  await box.files.write("big", pieces());
  assert.ok(data.equals(await box.files.read("big")));
  const stop = AbortSignal.timeout(300);
  await assert.rejects(box.run("sleep 600", { timeoutMs: 0, signal: stop }), (error) => error === stop.reason);
  for await (const change of box.files.watch("", {})) if (change.kind === "ready") break;
  assert.deepEqual((await all(Sandbox.list({ client, user: fresh("nobody") }))).length, 0);
  assert.ok(urls.length > 6 && urls.every((url) => url.includes(URL_HTTP)), urls.join("\n"));
  await assert.rejects(Sandbox.get("x", { client: new LodgeClient({ url: "http://127.0.0.1:1", apiKey: "k", fetch: own, retryMs: 0 }) }), TransportError);
});

test("all connections, also of terminals, are made by an agent of the caller", async () => {
  const made: string[] = [];
  class Tunnel extends http.Agent {
    override createConnection(options: { host?: string }) {
      made.push(options.host ?? "");
      return connect(URL_UNIX.slice("unix:".length));
    }
  }
  const agent = new Tunnel({ keepAlive: true });
  const client = new LodgeClient({ url: "http://behind.invalid", apiKey: API_KEY, agent });
  {
    await using box = await Sandbox.create({ ...SMALL, client });
    assert.equal((await box.run("echo hi")).stdout, "hi\n");
    let shown = "";
    for await (const text of await box.pty("echo shown")) shown += text;
    assert.match(shown, /shown/);
  }
  client.close();
  assert.ok(made.length > 1 && made.every((host) => host === "behind.invalid"), made.join());
  agent.destroy();
});
