// SPDX-License-Identifier: Apache-2.0
// The options of Sandbox: their names, sizes and times, and the request that they become.
import { lodgeError } from "./errors.js";
import { checkMs, type CallOptions } from "./http.js";
import { LodgeClient } from "./lodge.js";
import { findPlace } from "./place.js";
import type { EnterRequest, LimitsWanted } from "./types.js";
import { OPTIONS } from "./words.js";

/** Options that every call of a {@link Sandbox} takes. */
export interface RequestOptions {
  /** The time limit of the request in milliseconds; 0 is no limit. Default: that of the client, 60000. */
  requestTimeoutMs?: number | undefined;
  /** Ends the call, which then throws the reason of the signal; what the service has begun may still happen. */
  signal?: AbortSignal | undefined;
}

/** Options that say which lodged to use, and with which key. */
export interface ConnectionOptions {
  /** The address of lodged: `unix:/path/lodge.sock`, `http://HOST:PORT` or `https://HOST`. Default: `LODGE_URL`, else the local service. */
  url?: string | undefined;
  /** The API key. Default: `LODGE_API_KEY`, else the key of the local service. */
  apiKey?: string | undefined;
  /** A client to use instead of `url` and `apiKey`, such as one with a logger or another `fetch`. */
  client?: LodgeClient | undefined;
}

/** A size: a number of bytes, or a text such as `"512M"` or `"2G"`. */
export type Size = number | string;

/** Limits of a sandbox. */
export interface SandboxLimits {
  /** The memory of all its processes, such as `"512M"`. Default: that of the template, else 512M. */
  memory?: Size | undefined;
  /** The number of processor cores, such as 1.5; 0 is a fair share, the default. */
  cpus?: number | undefined;
  /** The space for its files, such as `"2G"`. Default: that of the template, else 1G. */
  disk?: Size | undefined;
  /** The number of its processes and threads. Default: that of the template, else 256. */
  processes?: number | undefined;
  /** The size of a single file, such as `"2G"`; for commands that start later. Default: that of the template, else 1G. */
  fileSize?: Size | undefined;
}

/** Settings of a new sandbox. */
export interface SandboxSettings extends SandboxLimits {
  /** The end user it belongs to. */
  user?: string | undefined;
  /** The template it starts from. */
  template?: string | undefined;
  /** The snapshot it starts from: its id, or a {@link Snapshot}. */
  snapshot?: string | { id: string } | undefined;
  /** Environment variables of its commands. */
  env?: Record<string, string> | undefined;
  /** The time without use after which it hibernates. Default: 30 minutes. */
  idleTimeoutMs?: number | undefined;
  /** The time after which its processes end unless it is extended; files stay. Default: 5 hours. */
  lifetimeMs?: number | undefined;
  /** Any JSON object to store with it. */
  metadata?: Record<string, unknown> | undefined;
  /** The policy that applies to it. */
  policy?: string | undefined;
}

/** Options of {@link Sandbox.getOrCreate}. */
export interface GetOrCreateOptions extends SandboxSettings, ConnectionOptions, RequestOptions {}

/** Options of {@link Sandbox.create}. */
export interface CreateOptions extends GetOrCreateOptions {
  /** The name of the sandbox, which is then kept at the end of its scope; without one it is deleted. */
  name?: string | undefined;
}

export const REQUEST = ["requestTimeoutMs", "signal"] as const;
export const CONNECTION = ["url", "apiKey", "client"] as const;
export const LIMITS = ["memory", "cpus", "disk", "processes", "fileSize"] as const;
export const SETTINGS = [
  ...LIMITS,
  "user",
  "template",
  "snapshot",
  "env",
  "idleTimeoutMs",
  "lifetimeMs",
  "metadata",
  "policy",
] as const;

/** How long a new sandbox waits for capacity if the server is full. */
const WAIT_MS = 30_000;

// ---- names -----------------------------------------------------------------------------------------

/** How many letters differ. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}

/** The options that are meant, by another name or a misspelled one. */
function nearest(word: string, known: readonly string[]): string[] {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z]/g, "");
  const asked = plain(word);
  const others = OPTIONS.get(asked)?.filter((name) => known.includes(name)) ?? [];
  if (others.length) return others;
  // the word that it begins or ends with is nearer than one of the same length
  const cost = (name: string) =>
    plain(name).includes(asked) || asked.includes(plain(name)) ? 1 : distance(asked, plain(name));
  const [best] = [...known].sort((a, b) => cost(a) - cost(b));
  return best !== undefined && cost(best) <= Math.max(2, asked.length / 3) ? [best] : [];
}

/** Throws a TypeError that names the nearest option if there is one that the call does not have. */
export function checkOptions(call: string, options: object, ...groups: (readonly string[])[]): void {
  const known = groups.flat();
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const shown = typeof options === "string" ? JSON.stringify(options) : kindOf(options);
    throw new TypeError(`${call}: options must be an object such as { ${known[0]}: ... }, not ${shown}`);
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known).map((option) => `"${option}"`);
    const unit = near.length === 1 && near[0]!.endsWith('Ms"') && !/ms$/i.test(name) ? ", in milliseconds" : "";
    const names = [near.slice(0, -1).join(", "), near.at(-1)].filter(Boolean).join(" or ");
    throw new TypeError(
      `${call}: unknown option "${name}"; ${names ? `did you mean ${names}${unit}?` : `the options are ${known.join(", ")}`}`,
    );
  }
}

/** What a value is, for a message. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = (value.constructor as { name?: string } | undefined)?.name;
  return name && name !== "Object" ? `a ${name}` : "an object";
}

// ---- values ----------------------------------------------------------------------------------------

const UNITS: Record<string, number> = { "": 1, K: 1 << 10, M: 1 << 20, G: 1 << 30, T: 2 ** 40 };

/** Bytes of "512M", "1.5G", "2GiB" or a number. */
export function bytesOf(option: string, size: Size | undefined): number | undefined {
  if (size === undefined) return undefined;
  const parts = typeof size === "number" ? undefined : /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(size.trim());
  const bytes = parts ? Math.round(Number(parts[1]) * UNITS[parts[2]!.toUpperCase()]!) : size;
  if (typeof bytes === "number" && Number.isSafeInteger(bytes) && bytes >= 0) return bytes;
  throw lodgeError({
    code: "INVALID",
    message: `${option} ${JSON.stringify(size)}: must be a number of bytes, or a size such as "512M" or "2G"`,
  });
}

/** Without what is undefined. */
export function given<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}

export function limitsOf(options: SandboxLimits): LimitsWanted | undefined {
  const limits = given({
    memory_bytes: bytesOf("memory", options.memory),
    disk_bytes: bytesOf("disk", options.disk),
    cpus: options.cpus,
    pids: options.processes,
    file_bytes: bytesOf("fileSize", options.fileSize),
  });
  return Object.keys(limits).length ? limits : undefined;
}

/** The request for a sandbox with these settings. */
export function requestOf(name: string | undefined, options: SandboxSettings): EnterRequest {
  const { snapshot } = options;
  return given({
    key: name,
    user: options.user,
    template: options.template,
    snapshot: typeof snapshot === "object" ? snapshot.id : snapshot,
    limits: limitsOf(options),
    env: options.env,
    idle_timeout_ms: checkMs("idleTimeoutMs", options.idleTimeoutMs),
    lifetime_ms: checkMs("lifetimeMs", options.lifetimeMs),
    metadata: options.metadata,
    policy: options.policy,
    wait_ms: WAIT_MS,
  });
}

/** What the calls of a client take. */
export function callOf(options: RequestOptions): CallOptions {
  checkMs("requestTimeoutMs", options.requestTimeoutMs);
  return given({ timeoutMs: options.requestTimeoutMs, signal: options.signal });
}

// ---- connections -----------------------------------------------------------------------------------

const clients = new Map<string, LodgeClient>();
const CLIENTS_MOST = 64;

/** The client of these options. Sandboxes with the same address and key share one, and its connections. */
export function clientOf(options: ConnectionOptions): LodgeClient {
  if (options.client) return options.client;
  const { place, key } = findPlace(options.url, options.apiKey);
  const identity = `${place.url}\n${key ?? ""}`;
  const known = clients.get(identity);
  if (known) return known;
  const oldest = clients.size < CLIENTS_MOST ? undefined : clients.keys().next().value;
  if (oldest !== undefined) clients.delete(oldest); // its idle connections end by themselves
  const made = new LodgeClient({ url: place.url, apiKey: key ?? null });
  clients.set(identity, made);
  return made;
}
