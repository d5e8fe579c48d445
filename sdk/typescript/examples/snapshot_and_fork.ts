// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
await box.files.write("state", "one");
const snapshot = await box.snapshot();
await box.files.write("state", "two");
await using fork = await snapshot.fork();
await snapshot.rollback();
console.log(await fork.files.readText("state"), await box.files.readText("state"));
