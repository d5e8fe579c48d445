// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
const result = await box.run("echo $((6 * 7))");
console.log(result.stdout.trim(), result.exitCode);
