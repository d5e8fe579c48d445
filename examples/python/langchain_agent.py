#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent with a sandbox, over a chat model of LangChain: langchain_agent.py QUESTION [CONVERSATION]

Needs LangChain and the package of a provider: `pip install langchain langchain-openai`. Set MODEL, such as
"openai:NAME", and what the provider needs. The sandbox is one of the local lodged, or of LODGE_URL and LODGE_API_KEY. A
conversation keeps its files."""
import os
import sys

from tools import TOOLS, call, sandbox

STEPS = 30  # a model that never stops costs money


def result(box, use):
    text, ok = call(box, use["name"], use["args"])
    return {"role": "tool", "tool_call_id": use["id"], "content": text, "status": "success" if ok else "error"}


def text_of(content):
    """Some providers return a list of blocks."""
    return content if isinstance(content, str) else "".join(b["text"] for b in content if b.get("type") == "text")


def converse(model, box, question):
    model = model.bind_tools([{"name": n, "description": t["description"], "parameters": t["schema"]} for n, t in TOOLS.items()])
    messages = [{"role": "user", "content": question}]
    for _ in range(STEPS):
        reply = model.invoke(messages)
        if not reply.tool_calls and not reply.invalid_tool_calls:
            return text_of(reply.content)
        messages += [reply, *(result(box, use) for use in reply.tool_calls),
                     *(result(box, use) for use in reply.invalid_tool_calls)]  # their args are text: the model reads why
    return f"stopped after {STEPS} steps"


if __name__ == "__main__":
    from langchain.chat_models import init_chat_model

    with sandbox("".join(sys.argv[2:3])) as machine:
        print(converse(init_chat_model(os.environ["MODEL"]), machine, sys.argv[1]))
