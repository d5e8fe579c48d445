# SPDX-License-Identifier: Apache-2.0
"""examples/typescript: whole programs, with a scripted model on loopback, a real lodged and the real LangChain."""
import os
import shutil

import pytest

import models
from client import KEY, SOURCE
from typescript_package import install, run

EXAMPLES = os.path.join(SOURCE, "examples", "typescript")
AGENTS = ["anthropic_agent", "openai_agent", "langchain_agent"]


@pytest.fixture(scope="module")
def agents(built):
    """The directory with the compiled programs; their types are checked."""
    install(EXAMPLES)
    out = os.path.join(EXAMPLES, "build")
    shutil.rmtree(out, ignore_errors=True)
    run(os.path.join("node_modules", ".bin", "tsc"), cwd=EXAMPLES)
    yield out
    shutil.rmtree(out, ignore_errors=True)


@pytest.fixture
def ask(agents, lodged):
    def start(agent, server, *words):
        env = {**os.environ, **server.environment(), "LODGE_URL": lodged.url, "LODGE_API_KEY": KEY}
        return run("node", os.path.join(agents, agent + ".js"), *words, env=env)

    return start


def keys(lodged):
    return [s["key"] for s in lodged.client().get("/v1/sessions?limit=500").json["sessions"]]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_uses_its_tools(lodged, ask, agent):
    before = keys(lodged)
    with models.model_server() as server:
        models.check(server, ask(agent, server, "What does the program say?"))
    assert keys(lodged) == before  # deleted with its files


@pytest.mark.parametrize("agent", AGENTS)
def test_a_conversation_keeps_its_files(lodged, ask, agent):
    for command, out in (("echo kept >note", "(exit code 0)"), ("cat note", "kept\n(exit code 0)")):
        with models.model_server([("", [("bash", {"command": "true"}), ("bash", {"command": command})])]) as server:
            assert ask(agent, server, "Remember.", f"talk with {agent}") == models.ANSWER + out + "\n"
    assert lodged.client().delete(f"/v1/sessions/key:talk%20with%20{agent}").status == 200


def test_a_model_that_never_stops_is_stopped(ask):
    with models.model_server([("", [("bash", {"command": "true"})])] * 100) as server:
        assert ask("openai_agent", server, "Go on.") == "stopped after 30 steps\n" and server.asked == 30


@pytest.mark.parametrize("agent", ["openai_agent", "langchain_agent"])
def test_arguments_that_are_not_json(ask, agent):
    with models.model_server([("", [("bash", {"command": "true"}), ("bash", {"command": "echo right"})])]) as server:
        server.spoil = {"call_1": "[1"}
        ask(agent, server, "Try.")
        assert server.refused == []
        assert {text for text, _ in server.results[0]} == {"right\n(exit code 0)", {
            "openai_agent": "the arguments are not JSON", "langchain_agent": "bash: the arguments must be command"}[agent]}
