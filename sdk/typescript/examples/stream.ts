// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
await box.run("for i in 1 2 3; do echo line $i; sleep 0.1; done", { onStdout: (text) => process.stdout.write(text) });
