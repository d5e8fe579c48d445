#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A bash tool for an agent: each conversation has its own sandbox. `model` is yours: messages in, the next message out."""
import lodge

TOOL = {"name": "bash", "description": "Runs bash in a Linux machine of this conversation.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
client = lodge.Client()  # the local service, or that of LODGE_URL and LODGE_API_KEY


def bash(user, conversation, command):
    box = lodge.Sandbox.get_or_create(conversation, user=user, memory="256M", client=client)
    try:
        r = box.run(command, timeout=60)
    except lodge.PolicyError as e:
        return f"refused: {e}"
    notes = [box.state_lost and "earlier files are gone", r.timed_out and "timeout: the command was killed",
             "LIMIT_MEMORY" in r.limits_hit and "out of memory", r.truncated and "the beginning of the output was truncated"]
    end = f"exit code {r.exit_code}" if r.signal is None else f"killed by signal {r.signal}"
    return "\n".join([r.stdout, r.stderr, *filter(None, notes), end])


def converse(model, question, user, conversation):
    messages = [{"role": "user", "content": question}]
    while True:
        reply = model(messages, tools=[TOOL])
        messages.append({"role": "assistant", "content": reply["content"]})
        if "command" not in reply:
            return reply["content"]
        messages.append({"role": "tool", "content": bash(user, conversation, reply["command"])})


if __name__ == "__main__":
    print(converse(lambda messages, tools: {"content": messages[-1]["content"], **(
        {"command": "uname -sr"} if len(messages) == 1 else {})}, "Which kernel?", "ada", "talk-1"))
