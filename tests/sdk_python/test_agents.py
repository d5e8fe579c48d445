# SPDX-License-Identifier: Apache-2.0
"""examples/python: whole programs, with a scripted model on loopback and a real lodged."""
import os
import subprocess
import sys

import pytest

import models
from client import KEY
from conftest import ROOT

EXAMPLES = os.path.join(ROOT, "examples/python")
AGENTS = ["anthropic_agent.py", "openai_agent.py", "langchain_agent.py"]
# The interface of LangChain's chat models, as far as the example uses it, over the OpenAI API of the scripted server.
# Messages are those that the model returned, or dictionaries, as LangChain accepts them.
LANGCHAIN = '''
import json, os, types, urllib.request


class Model:
    def __init__(self, name):
        self.name, self.tools = name, []

    def bind_tools(self, tools):
        bound = Model(self.name)
        bound.tools = [{"type": "function", "function": t} for t in tools]
        return bound

    def invoke(self, messages):
        sent = [{k: v for k, v in m.items() if k != "status"} if isinstance(m, dict) else m.sent for m in messages]
        assert all(m.get("status") in ("success", "error") for m in messages if isinstance(m, dict) and m["role"] == "tool")
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps({"model": self.name, "messages": sent, "tools": self.tools}).encode(),
            {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
        reply = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
        calls = [{"name": c["function"]["name"], "args": json.loads(c["function"]["arguments"]), "id": c["id"],
                  "type": "tool_call"} for c in reply.get("tool_calls") or ()]
        return types.SimpleNamespace(content=reply["content"] or "", tool_calls=calls, invalid_tool_calls=[], sent=reply)


def init_chat_model(name):
    return Model(name.split(":")[-1])
'''


@pytest.fixture
def run(service, tmp_path):
    (tmp_path / "langchain").mkdir()
    (tmp_path / "langchain/chat_models.py").write_text(LANGCHAIN)

    def start(agent, server, *words):
        env = {**os.environ, **server.environment(), "LODGE_URL": service.url, "LODGE_API_KEY": KEY,
               "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "sdk/python"), str(tmp_path)])}
        done = subprocess.run([sys.executable, os.path.join(EXAMPLES, agent), *words], env=env, cwd=tmp_path, capture_output=True,
                              text=True, timeout=300, check=False)
        assert done.returncode == 0, (done.stderr, server.refused)
        return done.stdout

    return start


def sessions(service):
    return service.client().get("/v1/sessions").json["sessions"]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_uses_its_tools(service, run, agent):
    with models.model_server() as server:
        models.check(server, run(agent, server, "What does the program say?"))
    assert sessions(service) == []  # deleted with its files


@pytest.mark.parametrize("agent", AGENTS)
def test_a_conversation_keeps_its_files(service, run, agent):
    for command, out in (("echo kept >note", "(exit code 0)"), ("cat note", "kept\n(exit code 0)")):
        with models.model_server([("", [("bash", {"command": "true"}), ("bash", {"command": command})])]) as server:
            assert run(agent, server, "Remember.", f"talk with {agent}") == models.ANSWER + out + "\n"
    kept, = sessions(service)
    assert kept["key"] == f"talk with {agent}"
    service.client().delete("/v1/sessions/" + kept["id"])


def test_a_model_that_never_stops_is_stopped(run):
    with models.model_server([("", [("bash", {"command": "true"})])] * 100) as server:
        assert run("anthropic_agent.py", server, "Go on.") == "stopped after 30 steps\n" and server.asked == 30


def test_arguments_that_are_not_json(run):
    with models.model_server([("", [("bash", {"command": "x"}), ("bash", {"command": "echo right"})])]) as server:
        server.spoil = {"call_1": "[1"}
        assert run("openai_agent.py", server, "Try.") == models.ANSWER + "right\n(exit code 0)\n"
        assert server.results == [[("the arguments are not JSON", None), ("right\n(exit code 0)", None)]]


def test_an_error_of_the_service_ends_the_program(service, tmp_path):
    """The model could do nothing about it."""
    with models.model_server() as server:
        env = {**os.environ, **server.environment(), "LODGE_URL": service.url, "LODGE_API_KEY": "wrong-key-0123456789",
               "PYTHONPATH": os.path.join(ROOT, "sdk/python")}
        done = subprocess.run([sys.executable, os.path.join(EXAMPLES, AGENTS[0]), "What?"], env=env, cwd=tmp_path, capture_output=True,
                              text=True, timeout=300, check=False)
    assert done.returncode == 1 and "UnauthenticatedError" in done.stderr and server.asked == 0
