// SPDX-License-Identifier: Apache-2.0
// A bash tool for an agent: each conversation has its own sandbox, which keeps its files.
import { Sandbox, isLodgeError } from "lodge-sandbox";

// The input of a model, and its reply: a command to run, or the final answer.
export type Message = { role: "user" | "model" | "tool"; content: string };
export type Model = (messages: Message[], tools: object[]) => Promise<{ bash: string; timeout_ms?: number } | { answer: string }>;

export const tool = {
  name: "bash",
  description: "Runs bash in a Linux machine of this conversation.",
  input_schema: { type: "object", properties: { bash: { type: "string" }, timeout_ms: { type: "integer" } }, required: ["bash"] },
};

async function bash(conversation: string, command: string, timeoutMs = 30_000): Promise<string> {
  const box = await Sandbox.getOrCreate(conversation, { memory: "256M" }); // of the local service, or of LODGE_URL
  const r = await box.run(command, { timeoutMs }).catch((e: unknown) => (isLodgeError(e, "POLICY") ? e : Promise.reject(e)));
  if (r instanceof Error) return `refused: ${r.message}`;
  const notes = [
    box.stateLost && "earlier files are gone",
    r.timedOut && "timeout: the command was killed",
    r.limitsHit.includes("LIMIT_MEMORY") && "out of memory",
    r.signal && `killed by signal ${r.signal}`,
    r.truncated && "the beginning of the output was truncated",
  ];
  return [r.stdout, r.stderr, ...notes.filter(Boolean), `exit code ${r.exitCode ?? "none"}`].join("\n");
}

export async function runAgent(conversation: string, question: string, model: Model): Promise<string> {
  const messages: Message[] = [{ role: "user", content: question }];
  for (;;) {
    const turn = await model(messages, [tool]);
    if ("answer" in turn) return turn.answer;
    messages.push({ role: "model", content: turn.bash });
    messages.push({ role: "tool", content: await bash(conversation, turn.bash, turn.timeout_ms) });
  }
}
