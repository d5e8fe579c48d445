# SPDX-License-Identifier: Apache-2.0
"""Times of sessions: what is refused, adjusted or ignored is said, extend says what it did, and what nobody uses is
deleted if that is asked for."""
import contextlib

import pytest
from client import Lodged, wait_for

MINUTE, HOUR, DAY = 60000, 3600000, 86400000


def ok(answer, status=200):
    assert answer.status == status, answer
    return answer.json


def message(answer, status=400):
    assert answer.status == status, answer
    return answer.json["error"]["message"]


@pytest.fixture
def at(client):
    sid = client.enter(lifetime_ms=10 * MINUTE, max_lifetime_ms=HOUR)
    yield "/v1/sessions/" + sid
    client.delete("/v1/sessions/" + sid)


# ---- bounds -------------------------------------------------------------------------------------


def test_times_beyond_a_bound_are_refused_with_the_setting(client, at):
    for field, value, why in (("idle_timeout_ms", 7 * DAY, "1d (idle_timeout_max)"),
                              ("lifetime_ms", 30 * DAY, "5h (lifetime_max)"),
                              ("max_lifetime_ms", 2 ** 62, "5h (lifetime_max)")):
        assert message(client.post("/v1/sessions", {"key": "bounded", field: value})) == f"{field}: must be at most {why}"
        assert message(client.patch(at, {field: value})) == f"{field}: must be at most {why}"
    assert client.get("/v1/sessions/key:bounded").status == 404
    why = "lifetime_ms: must be at most max_lifetime_ms (1h)"
    assert message(client.patch(at, {"lifetime_ms": 2 * HOUR})) == why
    assert message(client.post("/v1/sessions", {"lifetime_ms": 2 * HOUR, "max_lifetime_ms": HOUR})) == why


def test_bounds_are_settings():
    with contextlib.closing(Lodged(idle_timeout_max="7d", lifetime_max="30d", chat_lifetime="2m", projects_lifetime="3m",
                                   delete_after="90d")) as d:
        client = d.client()
        s = client.session(client.enter(idle_timeout_ms=7 * DAY, lifetime_ms=20 * DAY))
        assert (s["idle_timeout_ms"], s["lifetime_ms"], s["max_lifetime_ms"]) == (7 * DAY, 20 * DAY, 30 * DAY)
        assert s["expires_at"] == s["started_at"] + 20 * DAY and s["delete_after_ms"] == 90 * DAY
        s = client.session(client.enter())
        assert (s["lifetime_ms"], s["max_lifetime_ms"]) == (5 * HOUR, 30 * DAY)
        made = ok(client.post("/api/sandbox"))
        assert made["timeout"] == 2 * MINUTE
        ok(client.post("/api/projects", {"id": "p", "name": "P", "userId": "ada"}), 201)
        ok(client.post("/api/switch-project", {"projectId": "p", "userId": "ada"}))
        s = client.get("/v1/sessions?user=ada").json["sessions"][0]
        assert (s["lifetime_ms"], s["max_lifetime_ms"]) == (3 * MINUTE, 30 * DAY)


def test_what_other_surfaces_must_accept_is_adjusted_and_named(client):
    a = ok(client.post("/api/sessions", {"idleTimeoutMs": 7 * DAY}))
    assert (a["adjusted"], a["session"]["idleTimeoutMs"]) == (["idleTimeoutMs"], DAY)
    assert ok(client.post("/api/sessions", {"idleTimeoutMs": DAY}))["adjusted"] == []
    want = {"user_id": "ada", "thread_id": "bounds"}
    a = ok(client.post("/create_session", {**want, "timeout_minutes": 10080}), 201)
    assert (a["adjusted"], a["ignored"]) == (["timeout_minutes"], [])
    assert client.session(a["session_id"])["idle_timeout_ms"] == DAY
    for minutes, ignored in ((30, ["timeout_minutes"]), (1440, []), (None, [])):
        again = client.post("/create_session", {**want, "timeout_minutes": minutes})
        assert again.status == 409 and again.json["detail"]["ignored"] == ignored
    client.post("/cleanup", {"session_id": a["session_id"]})
    assert ok(client.post("/create_session", want), 201)["adjusted"] == []


def test_more_output_than_the_session_keeps_is_refused(client):
    sid = client.enter(limits={"output_bytes": 1 << 20})
    run = f"/v1/sessions/{sid}/exec"
    why = message(client.post(run, {"command": "true", "max_output_bytes": (1 << 20) + 1}))
    assert why == "max_output_bytes: must be at most 1M (limits.output_bytes of the session)"
    ok(client.post(run, {"command": "true", "max_output_bytes": 1 << 20}))
    client.delete("/v1/sessions/" + sid)


# ---- an existing session ------------------------------------------------------------------------


def test_what_an_existing_session_has_otherwise_is_named(client):
    first = {"key": "kept", "limits": {"memory_bytes": 64 << 20, "cpus": 0.5}, "env": {"A": "1"}, "metadata": {"x": 1, "y": 2},
             "idle_timeout_ms": HOUR, "lifetime_ms": HOUR, "on_idle": "destroy", "workdir": "/tmp", "delete_after_ms": DAY}
    assert ok(client.post("/v1/sessions", first), 201)["ignored"] == []
    assert ok(client.post("/v1/sessions", {**first, "metadata": {"y": 2, "x": 1}}))["ignored"] == []
    assert ok(client.post("/v1/sessions", {"key": "kept"}))["ignored"] == []
    other = {"key": "kept", "template": "empty", "project": "p", "limits": {"memory_bytes": 65 << 20, "cpus": 1}, "user": "eve",
             "env": {"A": "2"}, "metadata": {}, "idle_timeout_ms": 7 * DAY, "lifetime_ms": MINUTE, "on_idle": "hibernate",
             "on_expire": "destroy", "workdir": "/", "run_as": "1001", "delete_after_ms": 0}
    a = ok(client.post("/v1/sessions", other))
    assert (a["outcome"], a["ignored"]) == ("reused", [
        "user", "template", "project", "idle_timeout_ms", "lifetime_ms", "delete_after_ms", "on_idle", "on_expire", "metadata",
        "env", "run_as", "workdir", "limits.memory_bytes", "limits.cpus"])
    ok(client.post("/v1/sessions/key:kept/hibernate"))
    a = ok(client.post("/v1/sessions", {**first, "project": "p"}))
    assert (a["outcome"], a["ignored"]) == ("resumed", ["project"])
    client.delete("/v1/sessions/key:kept")


# ---- extend -------------------------------------------------------------------------------------


def test_extend_moves_the_expiry_by_what_it_says(client, at):
    before = ok(client.get(at))["session"]
    assert before["expires_at"] == before["started_at"] + 10 * MINUTE
    why = "the maximum lifetime of 1h is reached (max_lifetime_ms)"
    for asked, moved, most, reason in ((5 * MINUTE, 5 * MINUTE, False, None), (None, 20 * MINUTE, False, None),
                                       (HOUR, 25 * MINUTE, True, why), (HOUR, 0, True, why)):
        a = ok(client.post(at + "/extend", {"ms": asked}))
        assert (a["extended_by_ms"], a["at_maximum"], a["reason"]) == (moved, most, reason)
        assert a["session"]["expires_at"] == before["expires_at"] + moved
        before = ok(client.get(at))["session"]
        assert before == a["session"]
    # another idle timeout takes nothing away, another lifetime does
    assert ok(client.patch(at, {"idle_timeout_ms": MINUTE}))["session"]["expires_at"] == before["expires_at"]
    shorter = ok(client.patch(at, {"lifetime_ms": 30 * MINUTE}))["session"]
    assert shorter["expires_at"] == before["started_at"] + 30 * MINUTE


def test_by_default_there_is_nothing_to_extend(client):
    sid = client.enter()
    a = ok(client.post(f"/v1/sessions/{sid}/extend"))
    s = a["session"]
    assert (a["extended_by_ms"], a["at_maximum"]) == (0, True)
    assert a["reason"] == "the maximum lifetime of 5h is reached (lifetime_max)"
    assert s["lifetime_ms"] == s["max_lifetime_ms"] == s["expires_at"] - s["started_at"] == 5 * HOUR
    client.delete("/v1/sessions/" + sid)


def test_chat_extends_from_half_an_hour_to_five(client):
    made = ok(client.post("/api/sandbox"))
    body = {"sessionId": made["sessionId"]}
    assert made["timeout"] == 30 * MINUTE
    expires = ok(client.get("/api/sandbox/reconnect?sessionId=" + made["sessionId"]))["expiresAt"]
    assert expires == made["createdAt"] + 30 * MINUTE
    steps = []
    while not steps or steps[-1]:
        a = ok(client.post("/api/sandbox/extend", body))
        assert a["expiresAt"] == expires + a["extendedBy"]
        expires = a["expiresAt"]
        steps.append(a["extendedBy"])
    assert steps == [20 * MINUTE] * 13 + [10 * MINUTE, 0] and expires == made["createdAt"] + 5 * HOUR
    client.delete("/v1/sessions/" + made["sessionId"])


def test_a_switch_starts_with_an_hour(client):
    ok(client.post("/api/projects", {"id": "hour", "name": "P", "userId": "hal"}), 201)
    ok(client.post("/api/switch-project", {"projectId": "hour", "userId": "hal"}))
    s = client.get("/v1/sessions?user=hal").json["sessions"][0]
    assert (s["lifetime_ms"], s["max_lifetime_ms"]) == (HOUR, 5 * HOUR)
    assert ok(client.post(f"/v1/sessions/{s['id']}/extend"))["extended_by_ms"] == 20 * MINUTE
    client.delete("/v1/sessions/" + s["id"])


# ---- retention ----------------------------------------------------------------------------------


def test_a_hibernated_session_is_deleted_when_its_time_is_over(client):
    sid = client.enter(key="old", delete_after_ms=500)
    assert client.session(sid)["delete_at"] is None
    s = ok(client.post(f"/v1/sessions/{sid}/hibernate"))["session"]
    assert s["delete_at"] == s["hibernated_at"] + 500 and s["delete_after_ms"] == 500
    assert wait_for(lambda: client.get("/v1/sessions/" + sid).status == 410)
    cause = client.get("/v1/sessions/" + sid).json["error"]["details"]["cause"]
    assert (cause["code"], cause["text"]) == ("retention", "hibernated for 500ms (delete_after)")
    a = ok(client.post("/v1/sessions", {"key": "old", "delete_after_ms": 0}), 201)
    assert (a["outcome"], a["state_lost"], a["cause"]["code"]) == ("replaced", True, "retention")
    client.delete("/v1/sessions/key:old")


def test_retention_can_be_set_and_lifted_later(client):
    kept = client.enter(key="lifted", delete_after_ms=DAY)
    ok(client.post(f"/v1/sessions/{kept}/hibernate"))
    s = ok(client.patch("/v1/sessions/" + kept, {"delete_after_ms": 0}))["session"]
    assert (s["delete_after_ms"], s["delete_at"]) == (None, None)
    gone = client.enter(key="set later")
    ok(client.post(f"/v1/sessions/{gone}/hibernate"))
    ok(client.patch("/v1/sessions/" + gone, {"delete_after_ms": 1}))
    assert wait_for(lambda: client.get("/v1/sessions/" + gone).status == 410)
    assert client.session(kept)["state"] == "hibernated"
    client.delete("/v1/sessions/" + kept)


def test_delete_only_the_version_that_was_seen(client):
    sid = client.enter()
    seen = client.session(sid)["version"]
    ok(client.post(f"/v1/sessions/{sid}/hibernate"))
    answer = client.delete(f"/v1/sessions/{sid}?if_version={seen}")
    assert answer.status == 409 and answer.json["error"]["details"]["session"]["version"] > seen
    ok(client.delete(f"/v1/sessions/{sid}?if_version={client.session(sid)['version']}"))
