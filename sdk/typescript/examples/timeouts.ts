// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create({ idleTimeoutMs: 60_000, lifetimeMs: 600_000 });
const result = await box.run("sleep 60", { timeoutMs: 300 });
console.log(result.timedOut, result.ok);
console.log((await box.extend(60_000))!.getTime() > Date.now());
