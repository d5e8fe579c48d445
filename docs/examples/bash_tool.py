#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# The sandbox of a thread (256 MB, a quarter of a core, 128 processes, files in /workspace) is destroyed with its files after
# timeout_minutes without use, 30 by default, and here at the end of `with`. To keep files, use the sessions of lodge.Client:
# they hibernate instead.
"""A bash tool for an agent: bash_tool.py [remote|local]. `model` is yours: messages in, the next message out."""
import sys

import lodge

TOOL = {"name": "bash", "description": "Runs bash in a Linux machine of this conversation, in /workspace.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}


def bash(sandbox, command):
    try:
        r = sandbox.execute(command, timeout=60)
    except lodge.PolicyError as e:
        return f"refused: {e}"
    lost = "(the machine was replaced: earlier files are gone)\n" if r["state_lost"] else ""
    cut = "(beginning cut)\n" if r["truncated"] else ""
    hit = ", ".join(limit for limit in r["limits"] if limit != "LIMIT_OUTPUT")
    stopped = f"\n(limits hit: {hit})" if hit else ""
    return f"{lost}{cut}{r['stdout']}{r['stderr']}{stopped}\n(exit code {r['exit_code']})"


def converse(model, question, user, thread, mode):
    messages = [{"role": "user", "content": question}]
    with lodge.SandboxClient(mode) as sandbox:
        sandbox.get_or_create_session(user, thread)
        while True:
            reply = model(messages, tools=[TOOL])
            messages.append({"role": "assistant", "content": reply["content"]})
            if "command" not in reply:
                return reply["content"]
            messages.append({"role": "tool", "content": bash(sandbox, reply["command"])})


if __name__ == "__main__":
    print(converse(lambda messages, tools: {"content": messages[-1]["content"], **(
        {"command": "uname -sr"} if len(messages) == 1 else {})}, "Which kernel?", "ada", "talk-1", (sys.argv + ["remote"])[1]))
