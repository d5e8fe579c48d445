// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
await using box = await Sandbox.create();
await box.uploadDir("words");
await box.run("sort words/* > words/sorted", { check: true });
console.log(await box.files.readText("words/sorted"));
await box.downloadDir("words", "result");
