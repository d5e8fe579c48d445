// SPDX-License-Identifier: Apache-2.0
import { Sandbox } from "lodge-sandbox";
const square = async (box: Sandbox, n: number) => Number((await box.run(`echo $((${n} * ${n}))`)).stdout);
const onProgress = (done: number, total: number) => console.error(`${done} of ${total}`);
const squares = await Sandbox.map(square, Array(100).keys(), { memory: "64M", onProgress });
console.log(squares.reduce((sum, n) => sum + n));
