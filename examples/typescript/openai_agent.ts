// SPDX-License-Identifier: Apache-2.0
// An agent with a sandbox, over OpenAI's Chat Completions API: node build/openai_agent.js QUESTION [CONVERSATION]
//
// Set OPENAI_API_KEY and MODEL; OPENAI_BASE_URL leads elsewhere, such as to a model on this machine: many servers have this
// API. The sandbox is one of the local lodged, or of LODGE_URL and LODGE_API_KEY. A conversation keeps its files.
import type { Sandbox } from "lodge-sandbox";

import { TOOLS, call, post, sandbox, setting } from "./tools.js";

type Use = { id: string; type: "function"; function: { name: string; arguments: string } };
type Reply = { role: "assistant"; content: string | null; tool_calls?: Use[] };
type Message = { role: "user"; content: string } | Reply | { role: "tool"; tool_call_id: string; content: string };

const STEPS = 30; // a model that never stops costs money

async function ask(messages: Message[]): Promise<Reply> {
  const url = process.env["OPENAI_BASE_URL"] ?? "https://api.openai.com/v1";
  const tools = Object.entries(TOOLS).map(([name, t]) => ({
    type: "function",
    function: { name, description: t.description, parameters: t.schema },
  }));
  const reply = await post<{ choices: [{ message: Reply }] }>(
    `${url}/chat/completions`,
    { authorization: `Bearer ${setting("OPENAI_API_KEY")}` },
    { model: setting("MODEL"), messages, tools },
  );
  return reply.choices[0].message;
}

/** The model writes the arguments as text, which may not be JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function resultOf(box: Sandbox, use: Use): Promise<Message> {
  const words = parse(use.function.arguments);
  const text = words === undefined ? "the arguments are not JSON" : (await call(box, use.function.name, words)).text;
  return { role: "tool", tool_call_id: use.id, content: text };
}

async function converse(box: Sandbox, question: string): Promise<string> {
  const messages: Message[] = [{ role: "user", content: question }];
  for (let step = 0; step < STEPS; step++) {
    const reply = await ask(messages);
    if (!reply.tool_calls?.length) return reply.content ?? "";
    messages.push(reply);
    // one after the other: a call may need what the one before it did
    for (const use of reply.tool_calls) messages.push(await resultOf(box, use));
  }
  return `stopped after ${STEPS} steps`;
}

const [question = "", conversation] = process.argv.slice(2);
await using box = await sandbox(conversation);
console.log(await converse(box, question));
