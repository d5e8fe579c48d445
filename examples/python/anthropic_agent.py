#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent with a sandbox, over Anthropic's Messages API: anthropic_agent.py QUESTION [CONVERSATION]

Set ANTHROPIC_API_KEY and MODEL; ANTHROPIC_BASE_URL leads elsewhere. The sandbox is one of the local lodged, or of LODGE_URL
and LODGE_API_KEY. A conversation keeps its files for the next question."""
import json
import os
import sys
import urllib.request

from tools import TOOLS, call, sandbox

STEPS = 30  # a model that never stops costs money


def ask(messages):
    body = {"model": os.environ["MODEL"], "max_tokens": 8192, "messages": messages,
            "tools": [{"name": n, "description": t["description"], "input_schema": t["schema"]} for n, t in TOOLS.items()]}
    request = urllib.request.Request(
        os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages", json.dumps(body).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def result(box, use):
    text, ok = call(box, use["name"], use["input"])
    return {"type": "tool_result", "tool_use_id": use["id"], "content": text, "is_error": not ok}


def converse(box, question):
    messages = [{"role": "user", "content": question}]
    for _ in range(STEPS):
        reply = ask(messages)["content"]
        uses = [block for block in reply if block["type"] == "tool_use"]
        if not uses:
            return "".join(block["text"] for block in reply if block["type"] == "text")
        # all results of a reply are one message
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": [result(box, use) for use in uses]}]
    return f"stopped after {STEPS} steps"


if __name__ == "__main__":
    with sandbox("".join(sys.argv[2:3])) as machine:
        print(converse(machine, sys.argv[1]))
