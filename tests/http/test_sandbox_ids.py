# SPDX-License-Identifier: Apache-2.0
"""The id of a sandbox opens its session wherever an id or a key does, and is 410 with the cause once the sandbox
ended."""
import contextlib
import itertools

import pytest

from client import Lodged, quote
from test_chat import CALLS, call
from threads import create, download, upload

KEYS = itertools.count()


@pytest.fixture
def made(client):
    """A session and the id of its sandbox."""
    sid = client.enter(key=f"sandbox {next(KEYS)}", user="ann")
    yield sid, client.session(sid)["sandbox"]
    client.delete("/v1/sessions/" + sid)


def replace(client, sid):
    """Give the session another sandbox; return its id."""
    assert client.post(f"/v1/sessions/{sid}/hibernate").status == 200
    assert client.post(f"/v1/sessions/{sid}/resume").status == 200
    return client.session(sid)["sandbox"]


def v1_calls(at, execution):
    """A call of every kind of route about one session."""
    yield from (("GET", at, None, 200), ("PATCH", at, {"metadata": {"a": "b"}}, 200),
                ("POST", at + "/exec", {"command": "true"}, 200), ("GET", at + "/execs", None, 200),
                ("GET", f"{at}/execs/{execution}", None, 200), ("GET", f"{at}/execs/{execution}/output", None, 200),
                ("PUT", at + "/files/f", b"data", 201), ("GET", at + "/files/f", None, 200),
                ("GET", at + "/files/.?list", None, 200), ("POST", at + "/files/d?mkdir", None, 201),
                ("DELETE", at + "/files/f", None, 204), ("GET", at + "/archive?path=.", None, 200),
                ("GET", at + "/stats", None, 200), ("POST", at + "/probe", {}, 200), ("POST", at + "/extend", {}, 200),
                ("POST", at + "/activity", None, 200), ("POST", at + "/pause", {}, 200),
                ("POST", at + "/unpause", {}, 200), ("GET", at + "/progress", None, 200),
                ("POST", at + "/snapshots", {}, 201), ("GET", at + "/snapshots", None, 200),
                ("POST", at + "/fork", {"key": "fork of " + at}, 201), ("POST", at + "/resume", {}, 200),
                ("GET", "/v1/events?session=" + at.rsplit("/", 1)[1], None, 200),
                ("GET", "/v1/snapshots?session=" + at.rsplit("/", 1)[1], None, 200))


def test_every_route_takes_the_id_of_a_sandbox(client, made):
    sid, sandbox = made
    execution = client.post(f"/v1/sessions/{sid}/exec", {"command": "echo out"}).json["exec_id"]
    for method, path, body, wanted in v1_calls("/v1/sessions/" + sandbox, execution):
        answer = client.call(method, path, body)
        assert answer.status == wanted, (method, path, answer)
    assert client.session(sandbox)["id"] == sid and client.session(sid)["sandbox"] == sandbox
    events = client.get("/v1/events?limit=1000&session=" + sandbox).json["events"]
    assert events and {e["session"] for e in events} == {sid}
    # one that was replaced: nothing is done to the new one
    new = replace(client, sid)
    before = client.session(sid)
    for method, path, body, _ in v1_calls("/v1/sessions/" + sandbox, execution):
        answer = client.call(method, path, body)
        assert answer.status == 410 and answer.code == "GONE", (method, path, answer)
        assert sandbox in answer.message and "(by request)" in answer.message and sid in answer.message
    details = client.get("/v1/sessions/" + sandbox).json["error"]["details"]
    assert (details["session"], details["sandbox"], details["cause"]["code"]) == (sid, sandbox, "asked")
    assert client.delete("/v1/sessions/" + sandbox).status == 410
    assert client.session(sid) == before and before["sandbox"] == new
    client.delete("/v1/sessions/" + quote("key:fork of /v1/sessions/" + sandbox))


def test_a_sandbox_that_died_unnoticed_is_not_replaced_by_the_call(lodged, client):
    """The session would be resumed on the fly."""
    for n, (method, path, body) in enumerate((("POST", "/exec", {"command": "touch ran"}), ("PUT", "/files/ran", b""),
                                              ("GET", "/files/.?list", None))):
        sid = client.enter(key=f"dies {n}")
        record = client.session(sid)
        lodged.kill_sandbox(record)
        answer = client.call(method, f"/v1/sessions/{record['sandbox']}{path}", body)
        assert answer.status == 410, answer
        assert client.run(sid, "ls") == ""
        client.delete("/v1/sessions/" + sid)


def test_pin(client, made):
    sid, sandbox = made
    key = client.session(sid)["key"]
    for body in ({"pin": sandbox}, {"pin": sandbox, "key": key}, {"pin": sid}):
        answer = client.post("/v1/sessions", body)
        assert answer.status == 200 and answer.json["session"]["sandbox"] == sandbox, answer
    new = replace(client, sid)
    for body in ({"pin": sandbox}, {"pin": sandbox, "key": key}):
        answer = client.post("/v1/sessions", body)
        assert answer.status == 410 and sandbox in answer.message and "(by request)" in answer.message, answer
    assert client.post("/v1/sessions", {"pin": "sbx_" + "a" * 20}).status == 409
    other = client.enter(key="another")
    assert client.post("/v1/sessions", {"pin": client.session(other)["sandbox"], "key": key}).status == 409
    assert client.session(sid)["sandbox"] == new
    client.delete("/v1/sessions/" + other)


def test_threads(client):
    made = create(client)
    sandbox = client.session(made)["sandbox"]

    def calls():
        yield client.post("/execute", {"session_id": sandbox, "command": "true"})
        yield upload(client, sandbox, "f", b"data")
        yield download(client, sandbox, "f")
        yield client.get("/list_files?session_id=" + sandbox)
        yield client.get("/status/" + sandbox)

    for answer in calls():
        assert answer.status == 200, answer
    replace(client, made)
    for answer in calls():
        assert answer.status == 410 and sandbox in answer.json["detail"], answer
    assert client.post("/cleanup", {"session_id": sandbox}).status == 200  # as for an unknown id
    assert client.session(made)["state"] == "active"
    client.post("/cleanup", {"session_id": client.session(made)["sandbox"]})
    assert client.get("/v1/sessions/" + made).status == 410


@pytest.mark.parametrize("row", CALLS, ids=lambda r: f"{r[0]} {r[1]}")
def test_chat(client, row):
    sid = client.post("/api/sandbox").json["sessionId"]
    sandbox = client.session(sid)["sandbox"]
    answer = call(client, row, sandbox)
    assert answer.status == 200, answer
    client.post("/api/sandbox", {"sessionId": sid})
    if client.session(sid)["sandbox"] == sandbox:
        replace(client, sid)
    answer = call(client, row, sandbox)
    assert answer.status == 410 and answer.json["status"] == "error" and sandbox in answer.json["error"], answer
    client.delete("/v1/sessions/" + sid)


def test_a_destroyed_session_names_its_cause(client, made):
    sid, sandbox = made
    assert client.delete(f"/v1/sessions/{sandbox}?reason=enough").json["tombstone"]["session"] == sid
    for name in (sid, sandbox):
        answer = client.get("/v1/sessions/" + name)
        assert answer.status == 410 and "enough" in answer.message
        assert answer.json["error"]["details"]["cause"]["text"] == "enough"
    assert client.delete("/v1/sessions/" + sandbox).json["tombstone"]["session"] == sid


def test_only_own_sandboxes(lodged, client, made):
    sid, sandbox = made
    theirs = client.enter(key="of bob", user="bob")
    other = client.session(theirs)["sandbox"]
    _, ann = lodged.new_key(scope="session", user="ann")
    key, one = lodged.new_key(scope="session:" + sandbox)
    assert key["scope"] == "session:" + sid
    _, stranger = lodged.new_key(scope="tenant", tenant="elsewhere")
    for name in (sandbox, sid):
        for token in (ann, one):
            assert token.run(name, "echo ok") == "ok\n"
        assert stranger.get("/v1/sessions/" + name).status == 404
        assert stranger.get("/api/sandbox/status?sessionId=" + name).status == 403
    replace(client, sid)
    replace(client, theirs)
    for token in (ann, one):
        answer = token.get("/v1/sessions/" + sandbox)
        assert answer.status == 410 and answer.json["error"]["details"]["session"] == sid, answer
        assert token.get("/api/sandbox/status?sessionId=" + sandbox).status == 410
        assert token.get("/v1/sessions/" + other).status == 404
        assert token.get("/api/sandbox/status?sessionId=" + other).status == 404
    assert stranger.get("/v1/sessions/" + sandbox).status == 404
    assert client.get("/v1/sessions/sbx_" + "a" * 20).status == 404
    client.delete("/v1/sessions/" + theirs)


def test_another_tenants_sandbox_is_as_unknown_as_none(lodged, made):
    """The answers differ in nothing but the id that was asked for."""
    _, stranger = lodged.new_key(scope="tenant", tenant="elsewhere")
    sandbox = made[1]
    none = "sbx_" + "a" * (len(sandbox) - 4)
    calls = [("POST", "/exec", {"command": "true"}), ("GET", "/files/f", None), ("PUT", "/files/f", b"x"), ("GET", "/stats", None),
             ("POST", "/hibernate", None), ("POST", "/pause", None), ("POST", "/fork", {}), ("POST", "/snapshots", {}),
             ("PATCH", "", {"idle_timeout_ms": 60000}), ("POST", "/extend", {}), ("GET", "/execs", None), ("GET", "", None)]
    for method, path, body in calls:
        known, unknown = (stranger.call(method, f"/v1/sessions/{i}{path}", body) for i in (sandbox, none))
        assert (known.status, known.message.replace(sandbox, none)) == (404, unknown.message), (method, path)


def test_after_a_restart():
    with contextlib.closing(Lodged()) as d:
        sid = d.client().enter(key="k")
        old = d.client().session(sid)["sandbox"]
        new = replace(d.client(), sid)
        d.stop()
        d.start()
        assert d.client().get("/v1/sessions/" + old).status == 410
        assert d.client().run(new, "echo ok") == "ok\n"
