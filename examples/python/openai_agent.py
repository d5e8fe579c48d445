#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent with a sandbox, over OpenAI's Chat Completions API: openai_agent.py QUESTION [CONVERSATION]

Set OPENAI_API_KEY and MODEL; OPENAI_BASE_URL leads elsewhere, such as to a model on this machine: many servers have this
API. The sandbox is one of the local lodged, or of LODGE_URL and LODGE_API_KEY. A conversation keeps its files."""
import json
import os
import sys
import urllib.request

from tools import TOOLS, call, sandbox

STEPS = 30  # a model that never stops costs money


def ask(messages):
    body = {"model": os.environ["MODEL"], "messages": messages,
            "tools": [{"type": "function", "function": {"name": n, "description": t["description"], "parameters": t["schema"]}}
                      for n, t in TOOLS.items()]}
    request = urllib.request.Request(
        os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]


def result(box, use):
    try:
        text, _ = call(box, use["function"]["name"], json.loads(use["function"]["arguments"]))
    except ValueError:  # the model writes the arguments as text
        text = "the arguments are not JSON"
    return {"role": "tool", "tool_call_id": use["id"], "content": text}


def converse(box, question):
    messages = [{"role": "user", "content": question}]
    for _ in range(STEPS):
        reply = ask(messages)
        if not reply.get("tool_calls"):
            return reply["content"]
        messages += [reply, *(result(box, use) for use in reply["tool_calls"])]
    return f"stopped after {STEPS} steps"


if __name__ == "__main__":
    with sandbox("".join(sys.argv[2:3])) as machine:
        print(converse(machine, sys.argv[1]))
