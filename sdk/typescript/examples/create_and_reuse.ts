// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
const box = await Sandbox.getOrCreate("alice");
await box.files.write("note", "remember me");
const again = await Sandbox.getOrCreate("alice"); // the same one, also tomorrow
console.log(again.created, await again.files.readText("note"));
await again.delete();
