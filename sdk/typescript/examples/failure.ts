// SPDX-License-Identifier: Apache-2.0
import { CommandError, Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
console.log((await box.run("exit 3")).exitCode);
try {
  await box.run("cat missing", { check: true });
} catch (error) {
  if (error instanceof CommandError) console.log(error.result.stderr);
}
