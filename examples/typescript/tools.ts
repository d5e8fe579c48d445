// SPDX-License-Identifier: Apache-2.0
// The tools of the agents in this directory: what the model reads about them, and what happens when it calls one.
import { DeniedError, InvalidError, LimitError, NotFoundError, Sandbox } from "lodge-sandbox";

const MOST = 20_000; // characters of one result: more is of no use to a model

interface Tool {
  description: string;
  schema: { type: "object"; properties: Record<string, { type: "string" }>; required: string[] };
  run: (box: Sandbox, words: Record<string, string>) => Promise<Outcome>;
}

/** What the model reads, and whether the call succeeded. */
export interface Outcome {
  text: string;
  ok: boolean;
}

function schemaOf(...names: string[]): Tool["schema"] {
  return { type: "object", properties: Object.fromEntries(names.map((n) => [n, { type: "string" }])), required: names };
}

export const TOOLS: Record<string, Tool> = {
  bash: {
    description: "Run bash in a Linux machine of this conversation. Each call is a new shell; files stay. There is no network.",
    schema: schemaOf("command"),
    run: (box, { command = "" }) => bash(box, command),
  },
  write_file: {
    description: "Write a text file in the machine. Directories are created as needed.",
    schema: schemaOf("path", "content"),
    run: async (box, { path = "", content = "" }) => ({ text: `wrote ${(await box.files.write(path, content)).size} bytes`, ok: true }),
  },
};

/** Keeps both ends: the beginning says what ran, the end how it failed. */
function shorten(text: string): string {
  if (text.length <= MOST) return text;
  return `${text.slice(0, MOST / 2)}\n... (${text.length - MOST} characters left out) ...\n${text.slice(-MOST / 2)}`;
}

async function bash(box: Sandbox, command: string): Promise<Outcome> {
  const r = await box.run(command, { timeoutMs: 60_000 });
  const notes = [
    r.timedOut && "killed after 60 seconds",
    r.truncated && "part of the output is missing",
    ...r.limitsHit.filter((hit) => hit !== "TIMEOUT" && hit !== "LIMIT_OUTPUT"),
    r.signal === null ? `exit code ${r.exitCode}` : `killed by signal ${r.signal}`,
  ];
  return { text: `${shorten(r.stdout)}${shorten(r.stderr)}(${notes.filter(Boolean).join(", ")})`, ok: r.ok };
}

function isWords(value: unknown, names: string[]): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Object.keys(value).length !== names.length) return false;
  return names.every((n) => typeof (value as Record<string, unknown>)[n] === "string");
}

/**
 * Calls a tool. What the model did wrong is a result: it reads it and tries again. What it cannot change is an error: the
 * key, the service, the connection.
 */
export async function call(box: Sandbox, name: string, words: unknown): Promise<Outcome> {
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (!tool) return { text: `no tool ${name}; there are ${Object.keys(TOOLS).join(", ")}`, ok: false };
  const names = tool.schema.required;
  if (!isWords(words, names)) return { text: `${name}: the arguments must be ${names.join(", ")}`, ok: false };
  try {
    return await tool.run(box, words);
  } catch (e) {
    if (![InvalidError, DeniedError, LimitError, NotFoundError].some((kind) => e instanceof kind)) throw e;
    return { text: `${name}: ${(e as Error).message}`, ok: false };
  }
}

/** The sandbox of a conversation, which is kept with its files; without a name, one that `await using` deletes. */
export function sandbox(conversation?: string): Promise<Sandbox> {
  const options = { memory: "512M", idleTimeoutMs: 600_000 } as const;
  return conversation ? Sandbox.getOrCreate(conversation, options) : Sandbox.create(options);
}

/** A variable of the environment that must be set. */
export function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** Sends JSON and returns what comes back. */
export async function post<T>(url: string, headers: Record<string, string>, body: object): Promise<T> {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}
