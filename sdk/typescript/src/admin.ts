// SPDX-License-Identifier: Apache-2.0
// What is not of one session: snapshots, templates, keys, policies, users.
import { archiveStream } from "./files.js";
import { encodeBytes, type Bytes, type CallOptions, type Wire } from "./http.js";
import type { NodeReadable } from "./node_types.js";
import { listAll } from "./pages.js";
import type {
  Key,
  KeyAnswer,
  KeyMade,
  KeyRequest,
  Policy,
  PolicyAnswer,
  PolicyPatch,
  PolicyRequest,
  PolicyVerdict,
  QuotaAnswer,
  QuotaRequest,
  Snapshot,
  SnapshotAnswer,
  Template,
  TemplateAnswer,
  TemplateEnvironment,
  TemplateEnvironmentAnswer,
  TemplateList,
  TemplateMade,
  TemplatePatch,
  TemplateRequest,
  UserAnswer,
  UserList,
  UserPatch,
} from "./types.js";

/**
 * Snapshots by their own ids: they outlive their sessions.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await using session = await client.enter();
 * const snapshot = await session.snapshot({ name: "before" });
 * console.log((await client.snapshots.get(snapshot.id)).name); // before
 * await client.snapshots.delete(snapshot.id);
 * ```
 */
export class Snapshots {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /**
   * Yields all snapshots, the oldest first, also of deleted sessions and imported ones; `session` is an id or
   * `key:KEY`.
   */
  list(
    filter: { session?: string; user?: string } = {},
    call: CallOptions = {},
  ): AsyncGenerator<Snapshot, void, undefined> {
    return listAll<Snapshot>(this.#wire, "snapshots", { path: "/v1/snapshots", query: { ...filter }, ...call });
  }

  /** Returns a snapshot. */
  async get(id: string, call: CallOptions = {}): Promise<Snapshot> {
    return (
      await this.#wire.json<SnapshotAnswer>({ method: "GET", path: `/v1/snapshots/${encodeBytes(id)}`, ...call })
    ).snapshot;
  }

  /** Deletes a snapshot. */
  async delete(id: string, call: CallOptions = {}): Promise<void> {
    await this.#wire.json({ method: "DELETE", path: `/v1/snapshots/${encodeBytes(id)}`, ...call });
  }

  /** Returns a snapshot as a `.tar.zst`. */
  export(id: string, call: CallOptions = {}): NodeReadable {
    return archiveStream(this.#wire, { path: `/v1/snapshots/${encodeBytes(id)}/archive`, ...call });
  }

  /** Imports a `.tar.zst` that this or another service exported. */
  async import(
    archive: Bytes,
    options: { template?: string; name?: string } = {},
    call: CallOptions = {},
  ): Promise<Snapshot> {
    const answer = await this.#wire.json<SnapshotAnswer>({
      method: "POST",
      path: "/v1/snapshots",
      query: { template: options.template, name: options.name },
      headers: { "content-type": "application/zstd" },
      body: archive,
      timeoutMs: 0,
      ...call,
    });
    return answer.snapshot;
  }
}

/**
 * Templates that sessions start from.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * for (const template of await client.templates.list()) console.log(template.name);
 * ```
 */
export class Templates {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Lists all templates. */
  async list(call: CallOptions = {}): Promise<Template[]> {
    return (await this.#wire.json<TemplateList>({ method: "GET", path: "/v1/templates", ...call })).templates;
  }

  /** Returns a template. */
  async get(name: string, call: CallOptions = {}): Promise<Template> {
    return (await this.#wire.json<TemplateAnswer>({ method: "GET", path: at(name), ...call })).template;
  }

  /** Makes a template of a snapshot. */
  async create(request: TemplateRequest, call: CallOptions = {}): Promise<Template> {
    return (await this.#wire.json<TemplateAnswer>({ method: "POST", path: "/v1/templates", json: request, ...call }))
      .template;
  }

  /** Makes a template of a tar of a root file system or an image (docker save, OCI layout), compressed or not. */
  async upload(
    name: string,
    archive: Bytes,
    options: { format?: "rootfs" | "oci" } = {},
    call: CallOptions = {},
  ): Promise<TemplateMade> {
    return this.#wire.json<TemplateMade>({
      method: "POST",
      path: at(name),
      query: { format: options.format },
      headers: { "content-type": "application/octet-stream" },
      body: archive,
      timeoutMs: 0,
      ...call,
    });
  }

  /** Changes settings of a template. */
  async patch(name: string, patch: TemplatePatch, call: CallOptions = {}): Promise<Template> {
    const answer = await this.#wire.json<TemplateAnswer>({
      method: "PATCH",
      path: at(name),
      json: patch,
      again: "safe",
      ...call,
    });
    return answer.template;
  }

  /** Deletes a template; sessions that started from it stay. */
  async delete(name: string, call: CallOptions = {}): Promise<void> {
    await this.#wire.json({ method: "DELETE", path: at(name), ...call });
  }

  /** Returns the recorded environment of a template; throws NOT_FOUND if none was recorded yet. */
  async environment(name: string, call: CallOptions = {}): Promise<TemplateEnvironment> {
    const answer = await this.#wire.json<TemplateEnvironmentAnswer>({
      method: "GET",
      path: at(name) + "/environment",
      ...call,
    });
    return answer.environment;
  }

  /** Records the environment of a template now, and returns it. */
  async captureEnvironment(name: string, call: CallOptions = {}): Promise<TemplateEnvironment> {
    const path = at(name) + "/environment";
    return (await this.#wire.json<TemplateEnvironmentAnswer>({ method: "POST", path, again: "safe", ...call }))
      .environment;
  }
}

function at(template: string): string {
  return `/v1/templates/${encodeBytes(template)}`;
}

/**
 * API keys.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * const made = await client.keys.create({ scope: "session" });
 * console.log(made.key.id);
 * await client.keys.delete(made.key.id);
 * ```
 */
export class Keys {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Makes a key; its secret is in this answer and nowhere else. */
  async create(request: KeyRequest = {}, call: CallOptions = {}): Promise<KeyMade> {
    return this.#wire.json<KeyMade>({ method: "POST", path: "/v1/keys", json: request, ...call });
  }

  /** Yields all keys of the tenant. */
  list(options: { tenant?: string } = {}, call: CallOptions = {}): AsyncGenerator<Key, void, undefined> {
    return listAll<Key>(this.#wire, "keys", { path: "/v1/keys", query: { tenant: options.tenant }, ...call });
  }

  /** Returns a key, without its secret. */
  async get(id: string, call: CallOptions = {}): Promise<Key> {
    return (await this.#wire.json<KeyAnswer>({ method: "GET", path: `/v1/keys/${encodeBytes(id)}`, ...call })).key;
  }

  /** Revokes a key. */
  async delete(id: string, call: CallOptions = {}): Promise<Key> {
    return (await this.#wire.json<KeyAnswer>({ method: "DELETE", path: `/v1/keys/${encodeBytes(id)}`, ...call })).key;
  }
}

interface OfTenant {
  /** The tenant; another than that of the key needs scope `admin`. */
  tenant?: string;
}

/**
 * Policies that limit sessions and commands.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await client.policies.create({ name: "no-curl", commands: { deny: ["curl"] } });
 * console.log((await client.policies.test("no-curl", "curl example.org")).allowed); // false
 * await client.policies.delete("no-curl");
 * ```
 */
export class Policies {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  #at(name: string, options: OfTenant): { path: string; query: { tenant?: string } } {
    return { path: `/v1/policies/${encodeBytes(name)}`, query: options };
  }

  /** Makes a policy. */
  async create(request: PolicyRequest, call: CallOptions = {}): Promise<Policy> {
    return (await this.#wire.json<PolicyAnswer>({ method: "POST", path: "/v1/policies", json: request, ...call }))
      .policy;
  }

  /** Yields all policies of the tenant. */
  list(options: OfTenant = {}, call: CallOptions = {}): AsyncGenerator<Policy, void, undefined> {
    return listAll<Policy>(this.#wire, "policies", {
      path: "/v1/policies",
      query: { tenant: options.tenant },
      ...call,
    });
  }

  /** Returns a policy. */
  async get(name: string, options: OfTenant = {}, call: CallOptions = {}): Promise<Policy> {
    return (await this.#wire.json<PolicyAnswer>({ method: "GET", ...this.#at(name, options), ...call })).policy;
  }

  /** Changes a policy. */
  async patch(name: string, patch: PolicyPatch, options: OfTenant = {}, call: CallOptions = {}): Promise<Policy> {
    const answer = await this.#wire.json<PolicyAnswer>({
      method: "PATCH",
      ...this.#at(name, options),
      json: patch,
      again: "safe",
      ...call,
    });
    return answer.policy;
  }

  /** Deletes a policy. */
  async delete(name: string, options: OfTenant = {}, call: CallOptions = {}): Promise<Policy> {
    return (await this.#wire.json<PolicyAnswer>({ method: "DELETE", ...this.#at(name, options), ...call })).policy;
  }

  /** Returns what a policy says of a command; nothing is run. */
  async test(name: string, command: string, options: OfTenant = {}, call: CallOptions = {}): Promise<PolicyVerdict> {
    const { path, query } = this.#at(name, options);
    return this.#wire.json<PolicyVerdict>({
      method: "POST",
      path: path + "/test",
      query,
      json: { command },
      again: "safe",
      ...call,
    });
  }
}

/** How {@link Users.list} sorts and filters. */
export interface UserQuery {
  /** What to sort by. */
  sort?: "disk" | "memory" | "cpu" | "active" | "id";
  /** The direction. */
  order?: "asc" | "desc";
  /** Lists only users that contain this text. */
  q?: string;
  /** The number of users at most. */
  limit?: number;
}

/**
 * End users: their names, use and quotas.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * const session = await client.enter({ user: "grace" });
 * const { users } = await client.users.list({ q: "grace" });
 * console.log(users.length); // 1
 * await session.delete();
 * ```
 */
export class Users {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Returns a user. */
  async get(user: string, call: CallOptions = {}): Promise<UserAnswer> {
    return this.#wire.json<UserAnswer>({ method: "GET", path: `/v1/users/${encodeBytes(user)}`, ...call });
  }

  /** Lists users with what each really uses and what is reserved. */
  async list(query: UserQuery = {}, call: CallOptions = {}): Promise<UserList> {
    return this.#wire.json<UserList>({ method: "GET", path: "/v1/users", query: { ...query }, ...call });
  }

  /** Changes the name or other settings of a user; fields left out stay, "" removes one. */
  async set(user: string, change: UserPatch, call: CallOptions = {}): Promise<UserAnswer> {
    const path = `/v1/users/${encodeBytes(user)}`;
    return this.#wire.json<UserAnswer>({ method: "PATCH", path, json: change, again: "safe", ...call });
  }

  /** Returns the quota of a user. */
  async quota(user: string, call: CallOptions = {}): Promise<QuotaAnswer> {
    return this.#wire.json<QuotaAnswer>({ method: "GET", path: `/v1/users/${encodeBytes(user)}/quota`, ...call });
  }

  /** Sets the whole quota of a user; fields left out have no limit. */
  async setQuota(user: string, quota: QuotaRequest, call: CallOptions = {}): Promise<QuotaAnswer> {
    const path = `/v1/users/${encodeBytes(user)}/quota`;
    return this.#wire.json<QuotaAnswer>({ method: "PUT", path, json: quota, again: "safe", ...call });
  }
}
