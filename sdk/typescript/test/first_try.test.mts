// SPDX-License-Identifier: Apache-2.0
// What people try first with a Sandbox works, or is refused with words that help.
import assert from "node:assert/strict";
import { test } from "node:test";

import { GoneError, InvalidError, NotFoundError, Sandbox } from "lodge-sandbox";

import { API_KEY, URL_UNIX, fresh } from "./common.mjs";

const HERE = { url: URL_UNIX, apiKey: API_KEY } as const;
const SMALL = { ...HERE, memory: "64M", disk: "64M", processes: 32 } as const;

async function refused<E extends Error>(kind: new (...args: never[]) => E, call: Promise<unknown>): Promise<string> {
  const found = await call.then(() => undefined, (error: unknown) => error);
  assert.ok(found instanceof kind, String(found));
  return found.message;
}

test("a name that is missing is refused", async () => {
  for (const name of [undefined, null, ""])
    for (const call of [Sandbox.getOrCreate(name as never, SMALL), Sandbox.get(name as never, HERE)])
      assert.equal(await refused(InvalidError, call), "name: must not be empty");
  assert.equal(await refused(InvalidError, Sandbox.getOrCreate(5 as never, SMALL)), "name: must be text, not a number");
});

test("what was deleted is not found", async () => {
  const name = fresh("deleted");
  await (await Sandbox.getOrCreate(name, SMALL)).delete();
  const error = await Sandbox.get(name, HERE).catch((e: unknown) => e);
  assert.ok(error instanceof NotFoundError && error instanceof GoneError);
  assert.deepEqual([error.code, String(error).split(":")[0]], ["GONE", "GoneError"]);
});
