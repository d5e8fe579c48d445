// SPDX-License-Identifier: Apache-2.0
// An agent with a sandbox, over Anthropic's Messages API: node build/anthropic_agent.js QUESTION [CONVERSATION]
//
// Set ANTHROPIC_API_KEY and MODEL; ANTHROPIC_BASE_URL leads elsewhere. The sandbox is one of the local lodged, or of LODGE_URL
// and LODGE_API_KEY. A conversation keeps its files for the next question.
import type { Sandbox } from "lodge-sandbox";

import { TOOLS, call, post, sandbox, setting } from "./tools.js";

type Use = { type: "tool_use"; id: string; name: string; input: unknown };
type Result = { type: "tool_result"; tool_use_id: string; content: string; is_error: boolean };
type Block = { type: "text"; text: string } | Use;
type Message = { role: "user"; content: string | Result[] } | { role: "assistant"; content: Block[] };

const STEPS = 30; // a model that never stops costs money

async function ask(messages: Message[]): Promise<Block[]> {
  const url = process.env["ANTHROPIC_BASE_URL"] ?? "https://api.anthropic.com";
  const tools = Object.entries(TOOLS).map(([name, t]) => ({ name, description: t.description, input_schema: t.schema }));
  const reply = await post<{ content: Block[] }>(
    `${url}/v1/messages`,
    { "x-api-key": setting("ANTHROPIC_API_KEY"), "anthropic-version": "2023-06-01" },
    { model: setting("MODEL"), max_tokens: 8192, messages, tools },
  );
  return reply.content;
}

async function resultOf(box: Sandbox, use: Use): Promise<Result> {
  const { text, ok } = await call(box, use.name, use.input);
  return { type: "tool_result", tool_use_id: use.id, content: text, is_error: !ok };
}

async function converse(box: Sandbox, question: string): Promise<string> {
  const messages: Message[] = [{ role: "user", content: question }];
  for (let step = 0; step < STEPS; step++) {
    const reply = await ask(messages);
    const uses = reply.filter((block) => block.type === "tool_use");
    if (uses.length === 0) return reply.map((block) => (block.type === "text" ? block.text : "")).join("");
    const results: Result[] = []; // one after the other: a call may need what the one before it did
    for (const use of uses) results.push(await resultOf(box, use));
    messages.push({ role: "assistant", content: reply }, { role: "user", content: results });
  }
  return `stopped after ${STEPS} steps`;
}

const [question = "", conversation] = process.argv.slice(2);
await using box = await sandbox(conversation);
console.log(await converse(box, question));
