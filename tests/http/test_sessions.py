# SPDX-License-Identifier: Apache-2.0
"""Entering, reading, changing and destroying sessions over /v1."""
import concurrent.futures
import contextlib
import re

import pytest

from client import Lodged, quote, wait_for


def enter(client, **body):
    answer = client.post("/v1/sessions", body)
    assert answer.status in (200, 201), answer
    return answer


@pytest.fixture
def made(client):
    """Enter sessions; they are destroyed afterwards."""
    ids = []

    def make(**body):
        answer = enter(client, **body)
        ids.append(answer.json["session"]["id"])
        return answer.json["session"]

    yield make
    for sid in ids:
        assert client.delete("/v1/sessions/" + sid).status == 200


# ---- entering -----------------------------------------------------------------------------------


def test_outcomes_of_entering(client):
    one = enter(client, key="outcomes", user="ann", metadata={"a": "b"})
    a = one.json
    assert one.status == 201 and one.headers["Lodge-Outcome"] == a["outcome"] == "created"
    assert a["state_lost"] is False and a["cause"] is None and a["source"] in ("cold", "pool")
    assert a["ready_ms"] > 0
    s = a["session"]
    assert (s["key"], s["user"], s["state"], s["runtime"]) == ("outcomes", "ann", "active", "live")
    assert (s["generation"], s["incarnation"], s["metadata"]) == (0, 1, {"a": "b"})
    assert set(s) >= {
        "id", "key", "user", "thread", "project", "template", "state", "runtime", "version",
        "generation", "incarnation", "created_at", "last_activity_at", "idle_timeout_ms",
        "lifetime_ms", "max_lifetime_ms", "delete_after_ms", "hibernate_at", "expires_at", "hibernated_at", "delete_at", "on_idle", "on_expire", "cause", "limits",
        "metadata", "snapshot"}
    again = enter(client, key="outcomes")
    assert again.status == 200 and again.json["outcome"] == "reused"
    assert again.json["session"]["sandbox"] == s["sandbox"]
    client.run(s["id"], "echo kept > f")
    client.post(f"/v1/sessions/{s['id']}/hibernate")
    again = enter(client, key="outcomes")
    assert again.status == 200 and again.json["outcome"] == "resumed"
    assert again.headers["Lodge-Outcome"] == "resumed" and again.json["source"] == "resume"
    assert again.json["cause"]["code"] == "asked" and not again.json["state_lost"]
    assert (again.json["session"]["id"], again.json["session"]["incarnation"]) == (s["id"], 2)
    assert client.run(s["id"], "cat f") == "kept\n"
    client.delete("/v1/sessions/" + s["id"])


def test_a_killed_sandbox_keeps_its_files(lodged, client, made):
    s = made(key="killed")
    client.run(s["id"], "echo kept > f; sync f")
    lodged.kill_sandbox(s)
    again = enter(client, key="killed").json
    assert again["outcome"] == "resumed" and again["cause"]["code"] == "gone"
    assert not again["state_lost"] and again["session"]["incarnation"] == 2
    assert client.run(s["id"], "cat f") == "kept\n"


def test_lost_state_is_reported(client):
    first = enter(client, key="lost", idle_timeout_ms=1, on_idle="destroy").json["session"]["id"]
    assert wait_for(lambda: client.get("/v1/sessions/" + first).status == 410)
    answer = enter(client, key="lost", idempotency_key="lost")
    assert answer.status == 201 and answer.json["outcome"] == "replaced"
    assert answer.json["state_lost"] and answer.json["cause"]["code"] == "idle"
    assert answer.json["session"]["id"] != first
    # also when the request is repeated because its response was lost, but in no other request
    again = enter(client, key="lost", idempotency_key="lost").json
    assert again["session"]["id"] == answer.json["session"]["id"]
    assert (again["outcome"], again["state_lost"], again["cause"]["code"]) == ("replaced", True, "idle")
    assert enter(client, key="lost").json["outcome"] == "reused"
    # not after the session was used
    assert enter(client, key="lost", idempotency_key="lost").json["outcome"] == "reused"
    client.delete("/v1/sessions/" + answer.json["session"]["id"])
    # not if the loss was requested
    answer = enter(client, key="lost", asleep=True)
    assert answer.json["outcome"] == "created" and not answer.json["state_lost"]
    client.delete("/v1/sessions/" + answer.json["session"]["id"])


def test_a_hundred_concurrent_requests_create_one_session(lodged, client):
    def active():
        return int(re.search(rb"^lodge_sandboxes_active (\d+)$", client.get("/metrics").data,
                             re.M).group(1))

    before = active()
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: enter(client, key="crowd"), range(100)))
    assert len({a.json["session"]["id"] for a in answers}) == 1
    assert len({a.json["session"]["sandbox"] for a in answers}) == 1
    assert {a.json["session"]["incarnation"] for a in answers} == {1}
    assert sorted((a.status, a.json["outcome"]) for a in answers) == [(200, "reused")] * 99 + [(201, "created")]
    assert active() == before + 1
    sid = answers[0].json["session"]["id"]
    assert len(client.get("/v1/events?limit=1000&session=" + sid).json["events"]) == 3
    client.delete("/v1/sessions/" + sid)


def test_without_a_key_every_session_is_new(client, made):
    assert made(asleep=True)["id"] != made(asleep=True)["id"]


def test_users_and_threads_are_keys(client, made):
    a = made(user="zoe", asleep=True)
    assert a["key"] is None and a["user"] == "zoe"
    assert enter(client, user="zoe", asleep=True).json["session"]["id"] == a["id"]
    b = made(user="zoe", thread="t1", asleep=True)
    assert b["id"] != a["id"] and b["thread"] == "t1"
    assert enter(client, thread="t1", asleep=True).json["session"]["id"] == b["id"]
    c = made(key="k", user="zoe", thread="t1", asleep=True)
    assert c["id"] not in (a["id"], b["id"])


def test_idempotency_keys_are_per_user(made):
    a, b = (made(idempotency_key="of two", asleep=True, user=u) for u in ("ada", "bob"))
    assert a["id"] != b["id"] and (a["user"], b["user"]) == ("ada", "bob")


def test_lost_state_of_another_user_is_not_reported(client):
    first = enter(client, key="both", user="ada", idle_timeout_ms=1, on_idle="destroy").json["session"]["id"]
    assert wait_for(lambda: client.get("/v1/sessions/" + first).status == 410)
    answer = enter(client, key="both", user="bob", asleep=True).json
    assert answer["outcome"] == "created" and not answer["state_lost"], answer
    client.delete("/v1/sessions/" + answer["session"]["id"])


def test_an_idempotency_key_returns_the_same_session(client, made):
    a = made(idempotency_key="once", asleep=True)
    answer = client.post("/v1/sessions", {"idempotency_key": "once", "asleep": True})
    assert answer.json["session"]["id"] == a["id"]
    assert made(idempotency_key="twice", asleep=True)["id"] != a["id"]


def test_conditions_of_entering(client, made):
    a = made(key="there", asleep=True)
    answer = client.post("/v1/sessions", {"key": "there", "if_exists": "fail"})
    assert answer.status == 409 and answer.code == "CONFLICT", answer
    assert client.post("/v1/sessions", {"key": "there", "pin": "ses_other"}).status == 409
    assert enter(client, key="there", pin=a["id"], asleep=True).json["outcome"] == "reused"
    assert client.post("/v1/sessions", {"key": "new", "pin": a["id"]}).status in (200, 409)
    answer = client.post("/v1/sessions", {"key": "x", "template": "no-such"})
    assert answer.status == 404 and "no-such" in answer.json["error"]["message"]
    for body in ({"network": "full"}, {"policy": "no-such"}):
        assert client.post("/v1/sessions", dict(body, key="x")).status in (400, 404)
    assert client.get("/v1/sessions/key:x").status == 404


def test_requested_settings_are_applied(client, made):
    limits = {"memory_bytes": 128 << 20, "cpus": 0.5, "pids": 64, "disk_bytes": 64 << 20,
              "file_bytes": 8 << 20, "open_files": 200, "output_bytes": 1 << 20}
    s = made(key="asked", env={"COLOR": "green"}, workdir="/tmp", limits=limits, project="p",
             idle_timeout_ms=60000, max_lifetime_ms=120000, on_idle="destroy", on_expire="destroy")
    assert s["limits"] == dict(limits, cpu_weight=100, inodes=200000)
    assert (s["project"], s["on_idle"], s["on_expire"]) == ("p", "destroy", "destroy")
    assert (s["idle_timeout_ms"], s["max_lifetime_ms"]) == (60000, 120000)
    assert s["hibernate_at"] == s["last_activity_at"] + 60000
    assert s["expires_at"] == s["started_at"] + 120000
    assert client.run(s["id"], "echo $COLOR; pwd; ulimit -n") == "green\n/tmp\n200\n"
    # attaching does not change them
    answer = enter(client, key="asked", idle_timeout_ms=5, max_lifetime_ms=5, metadata={"x": "y"},
                   limits={"pids": 5}).json
    assert answer["ignored"] == ["idle_timeout_ms", "max_lifetime_ms", "metadata", "limits.pids"]
    again = answer["session"]
    for field in ("idle_timeout_ms", "max_lifetime_ms", "metadata", "limits"):
        assert again[field] == s[field]


def test_all_limits_are_shown(client, made):
    """Includes defaults, in every representation of the session."""
    everything = {"memory_bytes": 512 << 20, "cpus": 0, "cpu_weight": 100, "pids": 256, "disk_bytes": 1 << 30,
                  "inodes": 200000, "file_bytes": 1 << 30, "open_files": 1024, "output_bytes": 16 << 20}
    assert made(key="nothing asked", asleep=True)["limits"] == everything
    s = made(key="one asked", asleep=True, limits={"pids": 99})
    assert s["limits"] == dict(everything, pids=99)
    assert client.session(s["id"])["limits"] == s["limits"]
    listed = {x["key"]: x["limits"] for x in client.get("/v1/sessions").json["sessions"]}
    assert listed["one asked"] == s["limits"] and listed["nothing asked"] == everything
    changed = client.patch("/v1/sessions/" + s["id"], {"limits": {"open_files": 64}}).json["session"]
    assert changed["limits"] == dict(everything, pids=99, open_files=64)


def test_max_active_per_user(client, made):
    a = made(key="first", user="una")
    answer = client.post("/v1/sessions", {"key": "second", "user": "una", "max_active_per_user": 1})
    assert answer.status == 429 and answer.code == "LIMIT", answer
    assert client.get("/v1/sessions/key:second").status == 404
    made(key="second", user="una", max_active_per_user=1, on_exceed="replace")
    first = client.session(a["id"])
    assert first["state"] == "hibernated" and first["cause"]["code"] == "replaced"


# ---- reading ------------------------------------------------------------------------------------


def ids(answer):
    assert answer.status == 200, answer
    return [s["id"] for s in answer.json["sessions"]]


def test_filters(client, made):
    a = made(key="f1", user="ida", project="p1", metadata={"team": "red", "n": 1}, asleep=True)
    b = made(key="f2", user="ida", project="p2", metadata={"team": "blue"})
    c = made(key="f3", user="ivo", project="p1", metadata={"team": "red"}, asleep=True)
    for query, want in (("user=ida", [a, b]), ("project=p1", [a, c]), ("metadata.team=red", [a, c]),
                        ("metadata.team=blue", [b]), ("user=ida&project=p1", [a]),
                        ("user=ida&state=active", [b]), ("user=ida&state=none", [a]),
                        ("user=nosuch", []), ("metadata.team=re", []), ("metadata.n=2", []),
                        ("user=ida&project=p1&metadata.team=red&state=none", [a])):
        assert ids(client.get("/v1/sessions?" + query)) == [s["id"] for s in want], query


def test_pages_are_stable_while_sessions_change(client, made):
    first = [made(project="paged", asleep=True)["id"] for _ in range(7)]
    gone = client.post("/v1/sessions", {"project": "paged", "asleep": True}).json["session"]["id"]
    last = made(project="paged", asleep=True)["id"]
    seen, after, pages = [], 0, 0
    while after is not None:
        page = client.get(f"/v1/sessions?project=paged&limit=2&after={after}")
        assert len(ids(page)) <= 2
        seen += ids(page)
        after, pages = page.json["next"], pages + 1
        if pages == 2:  # a listed session changes, one that was not listed is destroyed, and others are created
            client.patch(f"/v1/sessions/{seen[0]}", {"metadata": {"a": "b"}})
            client.delete("/v1/sessions/" + gone)
            new = made(project="paged", asleep=True)["id"]
    assert seen == first + [last, new]
    assert client.get("/v1/sessions?project=paged&after=999999999").json == \
        {"sessions": [], "next": None}


def test_the_last_page_has_no_next(client, made):
    """Also if it is full."""
    every = [made(project="full", asleep=True)["id"] for _ in range(4)]
    page = client.get("/v1/sessions?project=full&limit=4")
    assert ids(page) == every and page.json["next"] is None
    page = client.get("/v1/sessions?project=full&limit=2")
    assert ids(page) == every[:2] and page.json["next"]
    page = client.get(f"/v1/sessions?project=full&limit=2&after={page.json['next']}")
    assert ids(page) == every[2:] and page.json["next"] is None


def test_a_key_can_replace_the_id_in_every_route(client):
    key = "chat/a b?c%d#\u00e4&e=+"
    sid = enter(client, key=key).json["session"]["id"]
    at = "/v1/sessions/key:" + quote(key)
    assert client.get(at).json["session"]["id"] == sid
    for method, path, body in (
            ("PATCH", "", {"metadata": {"x": "y"}}), ("POST", "/extend", {}),
            ("POST", "/activity", {}), ("POST", "/probe", {}), ("POST", "/pause", {}),
            ("POST", "/unpause", {}), ("GET", "/stats", None), ("GET", "/execs", None),
            ("GET", "/progress", None), ("POST", "/exec", {"command": "echo x > /tmp/f"}),
            ("GET", "/files//tmp/f", None), ("POST", "/snapshots", {"name": "s"}),
            ("GET", "/snapshots", None), ("POST", "/hibernate", {}), ("POST", "/resume", {})):
        answer = client.call(method, at + path, body)
        assert answer.status in (200, 201), (method, path, answer)
    assert client.get("/v1/events?session=key:" + quote(key)).json["events"][0]["session"] == sid
    fork = client.post(at + "/fork", {"key": key + "2"}).json["sessions"][0]
    assert fork["key"] == key + "2" and client.get(at + "2").json["session"]["id"] == fork["id"]
    snap = client.get(at + "/snapshots").json["snapshots"][0]["id"]
    assert client.post(at + "/rollback", {"snapshot": snap}).status == 200
    assert client.delete(f"{at}/snapshots/{snap}").status == 204
    for where in (at, at + "2"):
        assert client.delete(where).status == 200
        assert client.get(where).status == 410


# ---- changing -----------------------------------------------------------------------------------


def test_if_version_is_compared(client, made):
    s = made(key="versions")
    at = "/v1/sessions/" + s["id"]
    version = client.session(s["id"])["version"]
    for method, path, body in (("PATCH", "", {"metadata": {"a": "b"}}), ("POST", "/extend", {}),
                               ("PATCH", "", {"archived": True}), ("POST", "/pause", {}),
                               ("POST", "/unpause", {}), ("POST", "/hibernate", {}),
                               ("POST", "/resume", {}),
                               ("POST", "/rollback", {"snapshot": "snp_unknown"})):
        answer = client.call(method, at + path, dict(body, if_version=version + 50))
        assert answer.status == 409 and answer.code == "CONFLICT", (path, answer)
        current = answer.json["error"]["details"]["session"]
        assert (current["id"], current["version"]) == (s["id"], version)
    assert client.session(s["id"])["version"] == version
    answer = client.patch(at, {"metadata": {"a": "b"}, "if_version": version})
    assert answer.status == 200 and answer.json["session"]["version"] == version + 1
    assert answer.json["session"]["metadata"] == {"a": "b"}
    assert client.patch(at, {"metadata": {}, "if_version": version}).status == 409
    answer = client.patch(at, {"idle_timeout_ms": 5000, "archived": True, "if_version": version + 1})
    assert answer.status == 200 and answer.json["session"]["state"] == "archived", answer
    assert answer.json["session"]["idle_timeout_ms"] == 5000


def test_of_many_changes_with_one_version_one_succeeds(client, made):
    s = made(asleep=True)

    def change(i):
        return client.patch("/v1/sessions/" + s["id"], {"metadata": {"by": str(i)},
                                                        "if_version": s["version"]})

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(change, range(20)))
    assert sorted(a.status for a in answers) == [200] + [409] * 19
    won = [a for a in answers if a.status == 200][0].json["session"]
    assert client.session(s["id"])["metadata"] == won["metadata"]


def test_preferences_change(client, made):
    s = made(key="preferences")
    at = "/v1/sessions/" + s["id"]
    s = client.patch(at, {"idle_timeout_ms": 90000, "max_lifetime_ms": 180000, "on_idle": "destroy",
                          "on_expire": "destroy"}).json["session"]
    assert (s["idle_timeout_ms"], s["max_lifetime_ms"]) == (90000, 180000)
    assert (s["on_idle"], s["on_expire"]) == ("destroy", "destroy")
    assert s["hibernate_at"] - s["last_activity_at"] <= 90000
    assert s["expires_at"] == s["started_at"] + 180000
    assert client.patch(at, {"on_idle": None}).json["session"]["on_idle"] == "destroy"


def test_changed_limits_apply_at_once(client, made):
    s = made(key="limits")
    at = "/v1/sessions/" + s["id"]
    many = {"argv": ["sh", "-c", 'for i in $(seq 60); do sleep 20 & p="$p $!"; done; kill $p; echo all']}
    assert client.post(at + "/exec", many).json["stdout"] == "all\n"
    changed = client.patch(at, {"limits": {"pids": 20}})
    assert changed.status == 200 and changed.json["session"]["limits"]["pids"] == 20
    r = client.post(at + "/exec", many)
    assert r.status == 200 and "all" not in r.json["stdout"], r
    changed = client.patch(at, {"limits": {"pids": 200, "memory_bytes": 48 << 20}})
    assert changed.json["session"]["limits"]["pids"] == 200
    assert client.post(at + "/exec", many).json["stdout"] == "all\n"
    r = client.post(at + "/exec", {"command": "head -c 200000000 /dev/zero | tail"}).json
    assert r["oom_killed"] or r["exit_code"] not in (0, None) or r["signal"], r
    assert client.run(s["id"], "echo alive") == "alive\n"
    # they also apply after a resume
    client.post(at + "/hibernate")
    client.post(at + "/resume")
    assert client.session(s["id"])["limits"]["memory_bytes"] == 48 << 20


def test_archived_sessions_are_not_resumed(client, made):
    s = made(key="archived")
    at = "/v1/sessions/" + s["id"]
    client.run(s["id"], "echo kept > f")
    assert client.patch(at, {"archived": True}).json["session"]["state"] == "archived"
    assert client.patch(at, {"archived": True}).json["session"]["state"] == "archived"
    for call in (lambda: client.post("/v1/sessions", {"key": "archived"}),
                 lambda: client.post(at + "/resume"),
                 lambda: client.post(at + "/exec", {"command": "true"}),
                 lambda: client.get(at + "/files/tmp?list")):
        answer = call()
        assert answer.status == 409 and answer.code == "CONFLICT", answer
    assert client.session(s["id"])["state"] == "archived"
    assert client.patch(at, {"archived": False}).json["session"]["state"] == "hibernated"
    assert client.run(s["id"], "cat f") == "kept\n"


# ---- destroying ---------------------------------------------------------------------------------


def test_a_destroyed_session_returns_410_with_the_cause(client):
    s = enter(client, key="ended", user="ann").json["session"]
    at = "/v1/sessions/" + s["id"]
    first = client.delete(at + "?reason=enough%20of%20it")
    stone = first.json["tombstone"]
    assert first.status == 200 and stone["session"] == s["id"] and stone["user"] == "ann"
    assert stone["cause"]["code"] == "asked" and stone["cause"]["text"] == "enough of it"
    assert stone["created_at"] == s["created_at"] and stone["cause"]["actor"] == "given"
    assert client.delete(at).json == client.delete(at + "?reason=other").json == first.json
    for method, path, body in (("GET", "", None), ("PATCH", "", {"metadata": {}}),
                               ("POST", "/extend", {}), ("POST", "/activity", {}),
                               ("POST", "/probe", {}), ("POST", "/pause", {}),
                               ("POST", "/hibernate", {}), ("POST", "/resume", {}),
                               ("GET", "/stats", None), ("GET", "/progress", None),
                               ("GET", "/snapshots", None), ("POST", "/snapshots", {}),
                               ("POST", "/fork", {}), ("POST", "/exec", {"command": "true"}),
                               ("GET", "/files/tmp/f", None)):
        answer = client.call(method, at + path, body)
        assert answer.status == 410 and answer.code == "GONE", (method, path, answer)
        assert answer.json["error"]["details"] == {"session": s["id"], "cause": stone["cause"]}
        assert "enough of it" in answer.json["error"]["message"]
    assert client.get("/v1/sessions/key:ended").status == 410
    assert s["id"] not in ids(client.get("/v1/sessions"))
    assert client.delete("/v1/sessions/ses_unknown").status == 404


def test_sessions_can_be_destroyed_in_every_state(client):
    for state in ("none", "active", "paused", "hibernated", "archived"):
        sid = enter(client, asleep=state == "none").json["session"]["id"]
        at = "/v1/sessions/" + sid
        if state == "paused":
            assert client.post(at + "/pause").status == 200
        if state == "hibernated":
            assert client.post(at + "/hibernate").status == 200
        if state == "archived":
            assert client.patch(at, {"archived": True}).status == 200
        assert client.session(sid)["paused" if state == "paused" else "state"] in (True, state)
        assert client.delete(at).status == 200 and client.get(at).status == 410


def test_tombstones_expire():
    with contextlib.closing(Lodged(keep_tombstones="1ms")) as brief:
        client = brief.client()
        sid = enter(client, asleep=True).json["session"]["id"]
        client.delete("/v1/sessions/" + sid)
        brief.stop()
        brief.start()  # expired tombstones are removed at the start, then every ten minutes
        client = brief.client()
        assert wait_for(lambda: client.get("/v1/sessions/" + sid).status == 404)
