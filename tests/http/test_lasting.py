# SPDX-License-Identifier: Apache-2.0
"""Work that outlasts its request's admission or response: it ends with the key, is bounded, and does not delay the
end of the service."""
import contextlib
import json
import os
import signal
import threading

import pytest

from client import Lodged
from ws import Terminal

MIB = 1 << 20


@pytest.fixture(scope="module")
def session(lodged):
    return lodged.client().enter(key="lasting")


# ---- the key ----------------------------------------------------------------------------------

SSE = {"Accept": "text/event-stream"}
STREAMS = {
    "events": lambda at: ("GET", "/v1/events", None, SSE),
    "watch": lambda at: ("GET", at + "/watch?path=/tmp", None, {}),
    "exec": lambda at: ("POST", at + "/exec", {"command": "sleep 300", "timeout_ms": 300000}, SSE),
    "exec as lines": lambda at: ("POST", at + "/exec", {"command": "sleep 300", "timeout_ms": 300000},
                                 {"Accept": "application/x-ndjson"}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_ends_with_its_key(lodged, client, session, name):
    key, other = lodged.new_key()
    connection, response = other.open(*STREAMS[name]("/v1/sessions/" + session))
    with contextlib.closing(connection):
        assert response.status == 200 and response.readline()
        assert client.delete("/v1/keys/" + key["id"]).status == 200
        while response.readline():
            pass
    for e in client.get(f"/v1/sessions/{session}/execs").json["execs"]:
        if e["state"] == "running":  # the command does not depend on the key
            assert client.delete(f"/v1/sessions/{session}/execs/{e['exec_id']}").status == 200
        else:
            assert "exec" not in name or "sleep" not in e["command"] or e["state"] == "killed", e


def test_a_terminal_ends_with_its_key(lodged, client, session):
    key, other = lodged.new_key()
    with Terminal(other, session, "command=cat") as t:
        t.type("hello\n")
        t.until("hello")
        client.delete("/v1/keys/" + key["id"])
        assert t.run() == 1008 and "key" in t.closed[1], t.closed
    with Terminal(client, session, f"exec={t.exec}") as t:
        t.type("\x04")
        assert t.run() == 1000


def test_a_stream_ends_when_its_key_expires(lodged, session):
    _, other = lodged.new_key(expires_in_ms=6000)
    connection, response = other.open("GET", f"/v1/sessions/{session}/watch?path=/tmp")
    with contextlib.closing(connection):
        assert response.status == 200
        while response.readline():
            pass
    assert other.get("/v1/sessions").status == 401


# ---- memory and threads -------------------------------------------------------------------------


def test_bodies_with_too_many_values_are_refused(client, session):
    """A value of two bytes needs a hundred times as much memory during the request."""
    many = {"x": [{}] * 200000}
    for path, body in (("/execute", {"session_id": session, "command": "true", **many}),
                       (f"/v1/sessions/{session}/exec", {"command": "true", **many}),
                       ("/api/sandbox/activity", {"sessionId": session, **many}),
                       ("/api/projects", {"name": "P", "userId": "u", **many})):
        answer = client.post(path, json.dumps(body, separators=(",", ":")).encode(),
                             headers={"Content-Type": "application/json"})
        assert answer.status == 413, (path, answer)


# ---- output -----------------------------------------------------------------------------------


def test_a_response_has_the_end_of_the_output_and_offsets_the_rest(client, session):
    answer = client.post(f"/v1/sessions/{session}/exec", {
        "command": "head -c 12M /dev/zero | tr '\\0' a; echo the end", "max_output_bytes": 16 * MIB})
    assert answer.status == 200, answer.status
    said = answer.json
    assert said["truncated"] and said["stdout_bytes"] == 12 * MIB + 8
    assert len(said["stdout"]) == 8 * MIB and said["stdout"].endswith("athe end\n")
    got, at = 0, f"/v1/sessions/{session}/execs/{said['exec_id']}/output"
    while piece := client.get(f"{at}?stdout_offset={got}").json["stdout"]:
        got += len(piece)
    assert got == 12 * MIB + 8


def test_saved_output_is_bounded(lodged, client):
    """Saved output is on the host's disk, which the session's disk limit does not count."""
    session = client.enter(key="talkative")
    made = []
    for _ in range(12):
        answer = client.post(f"/v1/sessions/{session}/exec", {
            "command": "head -c 8M /dev/zero | tr '\\0' a", "max_output_bytes": 8 * MIB})
        assert answer.status == 200, answer.status
        made.append(answer.json["exec_id"])
    assert client.post(f"/v1/sessions/{session}/hibernate").status == 200
    first, last = (client.get(f"/v1/sessions/{session}/execs/{e}/output?stdout_offset=0")
                   for e in (made[0], made[-1]))
    assert first.status == 416 and first.code == "OUTPUT_GONE", first
    assert last.status == 200 and last.json["stdout"][:3] == "aaa"
    kept = os.path.join(lodged.home, "logs", session)
    assert sum(os.path.getsize(os.path.join(kept, n)) for n in os.listdir(kept)) <= 72 * MIB
    assert client.get(f"/v1/sessions/{session}/execs/{made[0]}").status == 200, "the record of the command must stay"


# ---- shutdown ---------------------------------------------------------------------------------


def ask(client, session):
    with contextlib.suppress(Exception):  # gets no response
        client.post(f"/v1/sessions/{session}/exec", {"command": "true"})


def test_a_sandbox_that_does_not_respond_does_not_delay_the_shutdown():
    with contextlib.closing(Lodged()) as lone:
        client = lone.client()
        session = client.enter(key="deaf")
        client.run(session, "true")  # before its first command a sandbox ends with its keeper
        init = lone.init_of(client.session(session))
        os.kill(init, signal.SIGSTOP)
        asked = threading.Thread(target=ask, args=(client, session))
        asked.start()
        try:
            assert lone.stop() == 0
            asked.join()
        finally:
            os.kill(init, signal.SIGCONT)
        lone.start()
        assert lone.client().run(session, "echo here") == "here\n"
