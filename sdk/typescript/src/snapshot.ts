// SPDX-License-Identifier: Apache-2.0
// Snapshots of a Sandbox.
import { lodgeError } from "./errors.js";
import type { LodgeClient } from "./lodge.js";
import { REQUEST, callOf, checkOptions, given, type RequestOptions } from "./options.js";
import { Sandbox } from "./sandbox.js";
import type { SessionClient } from "./session.js";
import type { Session, Snapshot as Wire } from "./types.js";

/** Options of {@link Sandbox.fork} and {@link Snapshot.fork} for one new sandbox. */
export interface ForkOptions extends RequestOptions {
  /** The name of the new sandbox. With a name it is kept at the end of its scope; without one it is deleted. */
  name?: string | undefined;
  /** One sandbox. */
  count?: undefined;
}

/** Options of {@link Sandbox.fork} and {@link Snapshot.fork} for several new sandboxes. */
export interface ForkManyOptions extends RequestOptions {
  /** The number of new sandboxes; all are made, or none. */
  count: number;
  /** Not possible with `count`. */
  name?: undefined;
}

/** New sandboxes of a session, from its files now or from a snapshot. */
export async function forkOf(
  client: LodgeClient,
  session: SessionClient,
  snapshot: string | undefined,
  options: ForkOptions | ForkManyOptions,
): Promise<Sandbox | Sandbox[]> {
  checkOptions("fork", options, ["name", "count"], REQUEST);
  const { name, count } = options;
  const made = await session.fork(given({ key: name, count, snapshot }), callOf(options));
  const boxes = made.map((one) => new Sandbox(client, one.record, { created: true, temporary: name === undefined }));
  return count === undefined ? boxes[0]! : boxes;
}

/**
 * The files of a sandbox at one moment.
 *
 * A snapshot outlives its sandbox: `Sandbox.create({ snapshot })` starts from it.
 *
 * @example
 * ```ts
 * import { Sandbox } from "lodge-sandbox";
 *
 * await using box = await Sandbox.create();
 * await box.run("echo one > state");
 * const snapshot = await box.snapshot("before");
 * await box.run("echo two > state");
 * await using fork = await snapshot.fork();
 * console.log((await fork.run("cat state")).stdout); // one
 * await snapshot.rollback();
 * console.log((await box.run("cat state")).stdout); // one
 * await snapshot.delete();
 * ```
 */
export class Snapshot {
  /** The id of the snapshot. */
  readonly id: string;
  /** The name of the snapshot, unique within its sandbox, or null. */
  readonly name: string | null;
  /** The time when it was made. */
  readonly createdAt: Date;
  readonly #client: LodgeClient;
  readonly #session: string | null;
  readonly #seen: (session: Session) => void;

  /** @internal */
  constructor(client: LodgeClient, record: Wire, seen: (session: Session) => void) {
    this.#seen = seen;
    this.id = record.id;
    this.name = record.name;
    this.createdAt = new Date(record.created_at);
    this.#client = client;
    this.#session = record.session;
  }

  #of(): SessionClient {
    if (this.#session !== null) return this.#client.session(this.#session);
    throw lodgeError({
      code: "CONFLICT",
      message: `snapshot ${this.id} was imported and has no sandbox; start from it with Sandbox.create({ snapshot })`,
    });
  }

  /** Makes a new sandbox with the files of the snapshot and the settings of its sandbox. */
  fork(options?: ForkOptions): Promise<Sandbox>;
  /** Makes several new sandboxes with the files of the snapshot and the settings of its sandbox. */
  fork(options: ForkManyOptions): Promise<Sandbox[]>;
  async fork(options: ForkOptions | ForkManyOptions = {}): Promise<Sandbox | Sandbox[]> {
    return forkOf(this.#client, this.#of(), this.id, options);
  }

  /** Puts the files of its sandbox back to the snapshot; commands that run are ended. */
  async rollback(options: RequestOptions = {}): Promise<void> {
    checkOptions("rollback", options, REQUEST);
    this.#seen(await this.#of().rollback({ snapshot: this.id }, callOf(options)));
  }

  /** Deletes the snapshot; sandboxes that were made from it stay. */
  async delete(options: RequestOptions = {}): Promise<void> {
    checkOptions("delete", options, REQUEST);
    await this.#client.snapshots.delete(this.id, callOf(options));
  }
}
