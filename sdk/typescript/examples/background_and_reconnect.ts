// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
const server = await box.run("echo listening on 8080; sleep 600", { background: true });
console.log(await server.waitForLog("listening"));
const again = (await Sandbox.get(box.id)).command(server.id); // also in another process
await again.kill();
console.log((await server.wait()).signal);
