// SPDX-License-Identifier: Apache-2.0
// What is not of one session: snapshots, templates, keys, policies, users.
import type { Readable } from "node:stream";

import { archiveStream } from "./files.js";
import { encodeBytes, type Bytes, type CallOptions, type Wire } from "./http.js";
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
} from "./types.js";

/** Snapshots by their own ids: they outlive their sessions. */
export class Snapshots {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** All, the oldest first: also of sessions that are gone, and what was brought in. `session`: its id, or `key:KEY`. */
  list(
    filter: { session?: string; user?: string } = {},
    call: CallOptions = {},
  ): AsyncGenerator<Snapshot, void, undefined> {
    return listAll<Snapshot>(this.#wire, "snapshots", { path: "/v1/snapshots", query: { ...filter }, ...call });
  }

  async get(id: string, call: CallOptions = {}): Promise<Snapshot> {
    return (
      await this.#wire.json<SnapshotAnswer>({ method: "GET", path: `/v1/snapshots/${encodeBytes(id)}`, ...call })
    ).snapshot;
  }

  async delete(id: string, call: CallOptions = {}): Promise<void> {
    await this.#wire.json({ method: "DELETE", path: `/v1/snapshots/${encodeBytes(id)}`, ...call });
  }

  /** Out, as a `.tar.zst`. */
  export(id: string, call: CallOptions = {}): Readable {
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

export class Templates {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  async list(call: CallOptions = {}): Promise<Template[]> {
    return (await this.#wire.json<TemplateList>({ method: "GET", path: "/v1/templates", ...call })).templates;
  }

  async get(name: string, call: CallOptions = {}): Promise<Template> {
    return (await this.#wire.json<TemplateAnswer>({ method: "GET", path: at(name), ...call })).template;
  }

  /** Of a snapshot. */
  async create(request: TemplateRequest, call: CallOptions = {}): Promise<Template> {
    return (await this.#wire.json<TemplateAnswer>({ method: "POST", path: "/v1/templates", json: request, ...call }))
      .template;
  }

  /** Of a tar of a root, or with `format: "oci"` of an OCI image layout; packed or not. */
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

  async delete(name: string, call: CallOptions = {}): Promise<void> {
    await this.#wire.json({ method: "DELETE", path: at(name), ...call });
  }

  /** Its recorded environment; NOT_FOUND if none was recorded yet. */
  async environment(name: string, call: CallOptions = {}): Promise<TemplateEnvironment> {
    const answer = await this.#wire.json<TemplateEnvironmentAnswer>({
      method: "GET",
      path: at(name) + "/environment",
      ...call,
    });
    return answer.environment;
  }

  /** Looks inside now. */
  async captureEnvironment(name: string, call: CallOptions = {}): Promise<TemplateEnvironment> {
    const path = at(name) + "/environment";
    return (await this.#wire.json<TemplateEnvironmentAnswer>({ method: "POST", path, again: "safe", ...call }))
      .environment;
  }
}

function at(template: string): string {
  return `/v1/templates/${encodeBytes(template)}`;
}

export class Keys {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** The key itself is in this answer and nowhere else. */
  async create(request: KeyRequest = {}, call: CallOptions = {}): Promise<KeyMade> {
    return this.#wire.json<KeyMade>({ method: "POST", path: "/v1/keys", json: request, ...call });
  }

  list(options: { tenant?: string } = {}, call: CallOptions = {}): AsyncGenerator<Key, void, undefined> {
    return listAll<Key>(this.#wire, "keys", { path: "/v1/keys", query: { tenant: options.tenant }, ...call });
  }

  async get(id: string, call: CallOptions = {}): Promise<Key> {
    return (await this.#wire.json<KeyAnswer>({ method: "GET", path: `/v1/keys/${encodeBytes(id)}`, ...call })).key;
  }

  async delete(id: string, call: CallOptions = {}): Promise<Key> {
    return (await this.#wire.json<KeyAnswer>({ method: "DELETE", path: `/v1/keys/${encodeBytes(id)}`, ...call })).key;
  }
}

interface OfTenant {
  /** Another than the key's only with scope `admin`. */
  tenant?: string;
}

export class Policies {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  #at(name: string, options: OfTenant): { path: string; query: { tenant?: string } } {
    return { path: `/v1/policies/${encodeBytes(name)}`, query: options };
  }

  async create(request: PolicyRequest, call: CallOptions = {}): Promise<Policy> {
    return (await this.#wire.json<PolicyAnswer>({ method: "POST", path: "/v1/policies", json: request, ...call }))
      .policy;
  }

  list(options: OfTenant = {}, call: CallOptions = {}): AsyncGenerator<Policy, void, undefined> {
    return listAll<Policy>(this.#wire, "policies", {
      path: "/v1/policies",
      query: { tenant: options.tenant },
      ...call,
    });
  }

  async get(name: string, options: OfTenant = {}, call: CallOptions = {}): Promise<Policy> {
    return (await this.#wire.json<PolicyAnswer>({ method: "GET", ...this.#at(name, options), ...call })).policy;
  }

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

  async delete(name: string, options: OfTenant = {}, call: CallOptions = {}): Promise<Policy> {
    return (await this.#wire.json<PolicyAnswer>({ method: "DELETE", ...this.#at(name, options), ...call })).policy;
  }

  /** What it says of a command; nothing is run. */
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

export class Users {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  async get(user: string, call: CallOptions = {}): Promise<UserAnswer> {
    return this.#wire.json<UserAnswer>({ method: "GET", path: `/v1/users/${encodeBytes(user)}`, ...call });
  }

  async quota(user: string, call: CallOptions = {}): Promise<QuotaAnswer> {
    return this.#wire.json<QuotaAnswer>({ method: "GET", path: `/v1/users/${encodeBytes(user)}/quota`, ...call });
  }

  /** All of it: what is left out has no limit. */
  async setQuota(user: string, quota: QuotaRequest, call: CallOptions = {}): Promise<QuotaAnswer> {
    const path = `/v1/users/${encodeBytes(user)}/quota`;
    return this.#wire.json<QuotaAnswer>({ method: "PUT", path, json: quota, again: "safe", ...call });
  }
}
