// SPDX-License-Identifier: Apache-2.0
// An agent with a sandbox, over a chat model of LangChain: node build/langchain_agent.js QUESTION [CONVERSATION]
//
// The model here is one of @langchain/openai: set OPENAI_API_KEY and MODEL; OPENAI_BASE_URL leads elsewhere. Every chat model
// that can bind tools works the same. The sandbox is one of the local lodged, or of LODGE_URL and LODGE_API_KEY. A
// conversation keeps its files.
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import type { Sandbox } from "lodge-sandbox";

import { TOOLS, call, sandbox, setting } from "./tools.js";

const STEPS = 30; // a model that never stops costs money

type Use = { name: string; args: unknown; id?: string | undefined };

/** A call whose arguments are no JSON would not be sent back, but its result needs it: it becomes one without arguments. */
function repaired(reply: AIMessage): AIMessage {
  if (!reply.invalid_tool_calls?.length) return reply;
  const broken = reply.invalid_tool_calls.map(({ name = "", id }) => ({ name, args: {}, ...(id && { id }) }));
  return new AIMessage({ content: reply.content, tool_calls: [...(reply.tool_calls ?? []), ...broken] });
}

async function resultOf(box: Sandbox, use: Use): Promise<ToolMessage> {
  const { text, ok } = await call(box, use.name, use.args);
  return new ToolMessage({ tool_call_id: use.id ?? "", content: text, status: ok ? "success" : "error" });
}

async function converse(box: Sandbox, question: string): Promise<string> {
  const tools = Object.entries(TOOLS).map(([name, t]) => ({
    type: "function" as const,
    function: { name, description: t.description, parameters: t.schema },
  }));
  const model = new ChatOpenAI({ model: setting("MODEL"), configuration: { baseURL: process.env["OPENAI_BASE_URL"] } }).bindTools(tools);
  const messages: BaseMessage[] = [new HumanMessage(question)];
  for (let step = 0; step < STEPS; step++) {
    const reply = repaired(await model.invoke(messages));
    if (!reply.tool_calls?.length) return reply.text;
    messages.push(reply);
    // one after the other: a call may need what the one before it did
    for (const use of reply.tool_calls) messages.push(await resultOf(box, use));
  }
  return `stopped after ${STEPS} steps`;
}

const [question = "", conversation] = process.argv.slice(2);
await using box = await sandbox(conversation);
console.log(await converse(box, question));
