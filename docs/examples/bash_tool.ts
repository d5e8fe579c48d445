// SPDX-License-Identifier: Apache-2.0
// A bash tool for an agent: each conversation has its own sandbox, which keeps its files.
import { SandboxSessionManager } from "lodge-sandbox";

/** The input of a model, and its reply: a command to run, or the final answer. */
export type Message = { role: "user" | "model" | "tool"; content: string };
export type Model = (messages: Message[], tools: object[]) => Promise<{ bash: string; timeout_ms?: number } | { answer: string }>;

export const tool = {
  name: "bash",
  description: "Runs bash in a Linux machine of this conversation.",
  input_schema: { type: "object", properties: { bash: { type: "string" }, timeout_ms: { type: "integer" } }, required: ["bash"] },
};

const manager = new SandboxSessionManager(); // the local lodged, or that of LODGE_URL and LODGE_API_KEY

async function bash(conversation: string, command: string, timeout_ms = 30_000): Promise<string> {
  const { stateLost } = await manager.getOrCreateSession(conversation);
  const r = await manager.client.session({ key: conversation }).exec(command, { timeout_ms });
  const notes = [
    stateLost && "earlier files are gone",
    r.timed_out && "timeout: the command was killed",
    r.oom_killed && "out of memory",
    r.truncated && "the beginning of the output was truncated",
  ];
  return [r.stdout, r.stderr, ...notes.filter(Boolean), `exit code ${r.exit_code ?? "none"}`].join("\n");
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
