// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
await using terminal = await box.pty("bash", { rows: 30, cols: 100 });
await terminal.write("stty size; exit\n");
for await (const text of terminal) process.stdout.write(text);
console.log((await terminal.wait()).exitCode);
