// SPDX-License-Identifier: Apache-2.0
// Projects and teams: a user works in one sandbox, which moves between projects.
import { isAbsent } from "./errors.js";
import { encodeBytes, type CallOptions, type Wire } from "./http.js";
import { listAll } from "./pages.js";
import type {
  ProjectsCleaned,
  ProjectsFragment,
  ProjectsFragmentAdded,
  ProjectsFragmentFiles,
  ProjectsFragmentRequest,
  ProjectsMember,
  ProjectsProject,
  ProjectsProjectRequest,
  ProjectsSwitched,
  Session,
  Team,
  UserAnswer,
} from "./types.js";

/** The acting user, which a client with the token of one user leaves out. */
export interface ActingUser {
  /** The id of the acting user. */
  user?: string;
}

/** The project and fragment that a user works in. */
export interface ActiveFragment {
  /** The id of the project. */
  projectId: string;
  /** The id of the fragment, or null for a working copy. */
  fragmentId: string | null;
  /** The fragment with its files, unless it was deleted. */
  fragment?: ProjectsFragmentFiles;
}

/** What {@link Projects.killAllUserSandboxes} did. */
export interface KilledSandboxes {
  /** The number of users. */
  users: number;
  /** The number of sandboxes that were ended. */
  killed: number;
  /** The number of sandboxes that could not be ended. */
  failed: number;
  /** The ids of sandboxes that were ended. */
  killedSandboxes: string[];
  /** The ids of sandboxes that could not be ended. */
  failedSandboxes: string[];
}

/** The role of a member of a team. */
export type TeamRole = ProjectsMember["role"];

const LONG_MS = 600_000; // for calls that move whole trees

function projectPath(project: string): string {
  return `/api/projects/${encodeBytes(project)}`;
}

function fragmentPath(project: string, fragment: string): string {
  return `${projectPath(project)}/fragments/${encodeBytes(fragment)}`;
}

/**
 * Projects, their fragments (saved sets of files), and the sandbox of each user.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * const project = await client.projects.create({ user: "ada", name: "site" });
 * await client.projects.createFragment(project.id, { user: "ada", files: { "index.html": "hello" } });
 * const { restoredFiles } = await client.projects.switchUserToProject("ada", project.id);
 * console.log(restoredFiles); // 1
 * await client.projects.killUserActiveSandbox("ada");
 * await client.projects.delete(project.id, { user: "ada" });
 * ```
 */
export class Projects {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  // ---- where a user is --------------------------------------------------------------------------

  /**
   * Moves the sandbox of a user to a fragment of a project.
   *
   * What the user did elsewhere is kept as the working copy of that project.
   */
  async switchUserToFragment(
    user: string | undefined,
    project: string,
    fragment?: string,
    call: CallOptions = {},
  ): Promise<ProjectsSwitched["result"]> {
    const json = { userId: user, projectId: project, fragmentId: fragment };
    const question = { method: "POST", path: "/api/switch-project", json, timeoutMs: LONG_MS, ...call };
    return (await this.#wire.json<ProjectsSwitched>(question)).result;
  }

  /** Moves the sandbox of a user to the working copy of a project, or else to its latest fragment. */
  switchUserToProject(
    user: string | undefined,
    project: string,
    call: CallOptions = {},
  ): Promise<ProjectsSwitched["result"]> {
    return this.switchUserToFragment(user, project, undefined, call);
  }

  /** Returns the project and fragment that a user works in, or null. */
  async getUserActiveFragment(user: string, call: CallOptions = {}): Promise<ActiveFragment | null> {
    const path = `/v1/users/${encodeBytes(user)}`;
    const found = await orUndefined(this.#wire.json<UserAnswer>({ method: "GET", path, ...call }));
    const projectId = found?.user.project ?? null;
    const fragmentId = found?.user.fragment ?? null;
    if (projectId === null) return null;
    if (fragmentId === null) return { projectId, fragmentId };
    const fragment = await orUndefined(this.fragment(projectId, fragmentId, { user }, call));
    return { projectId, fragmentId, ...(fragment && { fragment }) };
  }

  /** Ends the sandbox of a user; `sandboxId` is null if there was none. */
  async killUserActiveSandbox(
    user: string | undefined,
    call: CallOptions = {},
  ): Promise<{ killed: boolean; sandboxId: string | null }> {
    const results = await this.#kill(user, call);
    return { killed: results.killed > 0, sandboxId: results.killedSandboxes[0] ?? null };
  }

  async #kill(user: string | undefined, call: CallOptions): Promise<ProjectsCleaned["results"]> {
    const question = { method: "POST", path: "/api/cleanup-sandboxes", json: { userId: user } };
    return (await this.#wire.json<ProjectsCleaned>({ ...question, timeoutMs: LONG_MS, ...call })).results;
  }

  /** Ends the sandboxes of every user; one failure does not stop the rest. */
  async killAllUserSandboxes(call: CallOptions = {}): Promise<KilledSandboxes> {
    const ofUser = new Map<string, string[]>();
    for await (const s of listAll<Session>(this.#wire, "sessions", { path: "/v1/sessions", ...call }))
      if (s.user !== null && s.sandbox !== null) ofUser.set(s.user, [...(ofUser.get(s.user) ?? []), s.sandbox]);
    const all = { users: ofUser.size, killed: 0, failed: 0, killedSandboxes: [], failedSandboxes: [] } as KilledSandboxes;
    for (const [user, sandboxes] of ofUser) {
      const results = await this.#kill(user, call).catch(() => {
        call.signal?.throwIfAborted();
        return { killed: 0, failed: sandboxes.length, killedSandboxes: [], failedSandboxes: sandboxes };
      });
      all.killed += results.killed;
      all.failed += results.failed;
      all.killedSandboxes.push(...results.killedSandboxes);
      all.failedSandboxes.push(...results.failedSandboxes);
    }
    return all;
  }

  // ---- projects ---------------------------------------------------------------------------------

  /** Returns the user id of the owner of a project. */
  async getUserIdForProject(project: string, call: CallOptions = {}): Promise<string> {
    return (await this.get(project, {}, call)).owner;
  }

  /** Makes a project that the user owns. */
  async create(
    request: Omit<ProjectsProjectRequest, "userId"> & ActingUser,
    call: CallOptions = {},
  ): Promise<ProjectsProject> {
    const { user, ...more } = request;
    const json = { ...more, userId: user };
    return this.#wire.json<ProjectsProject>({ method: "POST", path: "/api/projects", json, ...call });
  }

  /** Returns a project. */
  async get(project: string, options: ActingUser = {}, call: CallOptions = {}): Promise<ProjectsProject> {
    const question = { method: "GET", path: projectPath(project), query: { userId: options.user } };
    return this.#wire.json<ProjectsProject>({ ...question, ...call });
  }

  /** Yields the projects that a user owns or shares by a team. */
  list(options: ActingUser = {}, call: CallOptions = {}): AsyncGenerator<ProjectsProject, void, undefined> {
    const question = { path: "/api/projects", query: { userId: options.user }, ...call };
    return listAll<ProjectsProject>(this.#wire, "projects", question);
  }

  /** Deletes a project and returns it as it was. */
  async delete(project: string, options: ActingUser = {}, call: CallOptions = {}): Promise<ProjectsProject> {
    const question = { method: "DELETE", path: projectPath(project), query: { userId: options.user } };
    return this.#wire.json<ProjectsProject>({ ...question, ...call });
  }

  // ---- fragments --------------------------------------------------------------------------------

  /** Saves `files`, those of the sandbox of the user (`fromSandbox`), or a snapshot (`snapshotId`). */
  async createFragment(
    project: string,
    request: Omit<ProjectsFragmentRequest, "userId"> & ActingUser = {},
    call: CallOptions = {},
  ): Promise<ProjectsFragmentAdded> {
    const { user, ...more } = request;
    const json = { ...more, userId: user };
    const path = projectPath(project) + "/fragments";
    return this.#wire.json<ProjectsFragmentAdded>({ method: "POST", path, json, timeoutMs: LONG_MS, ...call });
  }

  /** Yields the fragments of a project without their files, the newest first. */
  fragments(
    project: string,
    options: ActingUser = {},
    call: CallOptions = {},
  ): AsyncGenerator<ProjectsFragment, void, undefined> {
    const question = { path: projectPath(project) + "/fragments", query: { userId: options.user }, ...call };
    return listAll<ProjectsFragment>(this.#wire, "fragments", question);
  }

  /** Returns a fragment with its files. */
  async fragment(
    project: string,
    fragment: string,
    options: ActingUser = {},
    call: CallOptions = {},
  ): Promise<ProjectsFragmentFiles> {
    const question = { method: "GET", path: fragmentPath(project, fragment), query: { userId: options.user } };
    return this.#wire.json<ProjectsFragmentFiles>({ ...question, ...call });
  }

  /** Deletes a fragment. */
  async deleteFragment(
    project: string,
    fragment: string,
    options: ActingUser = {},
    call: CallOptions = {},
  ): Promise<ProjectsFragment> {
    const question = { method: "DELETE", path: fragmentPath(project, fragment), query: { userId: options.user } };
    return this.#wire.json<ProjectsFragment>({ ...question, ...call });
  }
}

/** The acting user; default: the application itself. */
interface By {
  /** The id of the acting user. Default: the application itself. */
  by?: string;
}

/**
 * Teams and their members, which share projects.
 *
 * @example
 * ```ts
 * import { LodgeClient } from "lodge-sandbox/client";
 *
 * await using client = new LodgeClient();
 * await client.teams.setMember("search", "ada", "OWNER");
 * for await (const member of client.teams.members("search")) console.log(member.role); // OWNER
 * await client.teams.removeMember("search", "ada");
 * ```
 */
export class Teams {
  readonly #wire: Wire;

  /** @internal */
  constructor(wire: Wire) {
    this.#wire = wire;
  }

  #at(team: string, user: string): string {
    return `/api/teams/${encodeBytes(team)}/members/${encodeBytes(user)}`;
  }

  /** Yields all teams by name, or those of a user with the role there. */
  async *list(filter: { user?: string } = {}, call: CallOptions = {}): AsyncGenerator<Team, void, undefined> {
    yield* listAll<Team>(this.#wire, "teams", { path: "/v1/teams", query: { user: filter.user }, ...call });
  }

  /** Yields the members of a team. */
  async *members(
    team: string,
    options: By = {},
    call: CallOptions = {},
  ): AsyncGenerator<ProjectsMember, void, undefined> {
    const question = { method: "GET", path: `/api/teams/${encodeBytes(team)}/members`, query: { userId: options.by } };
    yield* (await this.#wire.json<{ members: ProjectsMember[] }>({ ...question, ...call })).members;
  }

  /** Adds a user to a team, or changes the role. */
  async setMember(
    team: string,
    user: string,
    role: TeamRole,
    options: By = {},
    call: CallOptions = {},
  ): Promise<ProjectsMember> {
    const json = { role, userId: options.by };
    const question = { method: "PUT", path: this.#at(team, user), json, again: "safe" } as const;
    return this.#wire.json<ProjectsMember>({ ...question, ...call });
  }

  /** Removes a user from a team. */
  async removeMember(
    team: string,
    user: string,
    options: By = {},
    call: CallOptions = {},
  ): Promise<ProjectsMember> {
    const question = { method: "DELETE", path: this.#at(team, user), query: { userId: options.by } };
    return this.#wire.json<ProjectsMember>({ ...question, ...call });
  }
}

/** `undefined` if it does not exist. */
async function orUndefined<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
