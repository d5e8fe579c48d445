# SPDX-License-Identifier: Apache-2.0
"""/v1/policies: the policies of a tenant's sessions."""
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import Lodged
from machine import with_time


@pytest.fixture
def policy(client):
    """Creates policies that are removed after the test."""
    made = []

    def make(name, status=201, **body):
        answer = client.post("/v1/policies", {"name": name, **body})
        assert answer.status == status, answer
        made.append(name)
        return answer.json.get("policy")

    yield make
    for s in client.get("/v1/sessions").json["sessions"]:
        client.delete("/v1/sessions/" + s["id"])
    for name in made:
        client.delete("/v1/policies/" + name)


def enter(client, status=201, **body):
    answer = client.post("/v1/sessions", body)
    assert answer.status == status, answer
    return answer.json["session"] if status < 300 else answer


def state(client, s):
    return client.get("/v1/sessions/" + s["id"]).json["session"]["state"]


def run(client, s, status=200):
    answer = client.post(f"/v1/sessions/{s['id']}/exec", {"command": "echo ok"})
    assert answer.status == status, answer
    return answer


# ---- the record -------------------------------------------------------------------------------


def test_a_policy_is_created_changed_and_removed(client, policy):
    p = policy("all", max_active_per_user=2, on_exceed="replace", idle_timeout_ms=60000, max_lifetime_ms=120000,
               network="none", limits={"memory_bytes": 64 << 20, "cpus": 0.5})
    assert p["created_at"] > 10 ** 12 and p["sessions"] == 0 and p["tenant"] == "default"
    assert (p["max_active_per_user"], p["on_exceed"], p["network"]) == (2, "replace", "none")
    assert (p["idle_timeout_ms"], p["max_lifetime_ms"]) == (60000, 120000)
    assert p["limits"] == {"memory_bytes": 64 << 20, "cpus": 0.5}
    assert client.get("/v1/policies/all").json == {"policy": p}
    assert p in client.get("/v1/policies").json["policies"]
    answer = client.call("PATCH", "/v1/policies/all", {"max_active_per_user": None, "limits": {"pids": 9}})
    assert answer.status == 200, answer
    assert answer.json["policy"] == dict(p, max_active_per_user=None, limits={"pids": 9})
    answer = client.call("PATCH", "/v1/policies/all", {"on_exceed": "refuse", "limits": None, "network": None})
    assert answer.json["policy"] == dict(p, max_active_per_user=None, limits={}, on_exceed="refuse", network=None)
    answer = client.delete("/v1/policies/all")
    assert answer.status == 200 and answer.json["policy"]["name"] == "all"
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        assert client.call(method, "/v1/policies/all", body).status == 404


def test_an_empty_policy_restricts_nothing(client, policy):
    p = policy("empty")
    assert (p["max_active_per_user"], p["on_exceed"], p["limits"]) == (None, "refuse", {})
    s = enter(client, policy="empty", idle_timeout_ms=12345)
    assert s["policy"] == "empty" and s["idle_timeout_ms"] == 12345


@pytest.mark.parametrize("body, words", [
    ({}, "name"), ({"name": ""}, "name"), ({"name": "x" * 64}, "name"), ({"name": "a/b"}, "name"), ({"name": 1}, "name"),
    ({"name": "a\nb"}, "name"), ({"name": "x", "commands": []}, "commands"), ({"name": "x", "colour": 1}, "colour"),
    ({"name": "x", "max_active_per_user": 0}, "max_active_per_user"),
    ({"name": "x", "max_active_per_user": -1}, "max_active_per_user"),
    ({"name": "x", "max_active_per_user": "1"}, "max_active_per_user"),
    ({"name": "x", "on_exceed": "explode"}, "on_exceed"), ({"name": "x", "network": "internet"}, "network"),
    ({"name": "x", "idle_timeout_ms": 0}, "idle_timeout_ms"), ({"name": "x", "max_lifetime_ms": 1.5}, "max_lifetime_ms"),
    ({"name": "x", "limits": {"fuel": 1}}, "fuel"), ({"name": "x", "limits": {"pids": 1}}, "pids"),
    ({"name": "x", "limits": []}, "limits"), ({"name": "x", "tenant": ""}, "tenant"),
])
def test_invalid_fields_are_named(client, body, words):
    answer = client.post("/v1/policies", body)
    assert answer.status == 400 and answer.code == "INVALID" and words in answer.json["error"]["message"], answer
    assert client.get("/v1/policies/x").status == 404


def test_a_bad_change_changes_nothing(client, policy):
    p = policy("kept", limits={"pids": 9})
    for body in ({"name": "other"}, {"tenant": "x"}, {"on_exceed": 1}, {"limits": {"pids": 1}}, {"commands": {"allow": 1}},
                 {"max_active_per_user": 3, "network": "host"}):
        assert client.call("PATCH", "/v1/policies/kept", body).status == 400, body
    assert client.get("/v1/policies/kept").json["policy"] == p


def test_names_are_unique_per_tenant(client, policy):
    policy("one")
    assert client.post("/v1/policies", {"name": "one"}).code == "CONFLICT"
    assert client.post("/v1/policies", {"name": "one", "tenant": "acme"}).status == 201
    assert client.get("/v1/policies/one?tenant=acme").json["policy"]["tenant"] == "acme"
    assert [p["name"] for p in client.get("/v1/policies?tenant=acme").json["policies"]] == ["one"]
    assert client.delete("/v1/policies/one?tenant=acme").status == 200
    assert client.get("/v1/policies/one").status == 200


def test_policies_are_listed_in_pages(client, policy):
    for i in range(3):
        policy(f"p{i}")
    first = client.get("/v1/policies?limit=2").json
    rest = client.get(f"/v1/policies?limit=2&after={first['next']}").json
    assert [p["name"] for p in first["policies"] + rest["policies"]] == ["p0", "p1", "p2"] and rest["next"] is None
    assert client.get("/v1/policies?limit=3").json["next"] is None


def test_scopes_and_tenants(client, lodged, policy):
    policy("mine")
    assert client.post("/v1/policies", {"name": "theirs", "tenant": "acme"}).status == 201
    key = client.post("/v1/keys", {"scope": "tenant", "tenant": "acme"}).json["secret"]
    token = client.post("/v1/keys", {"scope": "session", "tenant": "acme", "user": "u"}).json["secret"]
    tenant, user = lodged.client(key), lodged.client(token)
    assert [p["name"] for p in tenant.get("/v1/policies").json["policies"]] == ["theirs"]
    assert tenant.get("/v1/policies/theirs").status == 200
    assert tenant.get("/v1/policies/mine").status == 404
    assert tenant.get("/v1/policies?tenant=default").status == 403
    assert tenant.get("/v1/policies/mine?tenant=default").status == 403
    assert user.get("/v1/policies").status == 403 and user.get("/v1/policies/theirs").status == 403
    for caller in (tenant, user):
        assert caller.post("/v1/policies", {"name": "x"}).status == 403
        assert caller.call("PATCH", "/v1/policies/theirs", {}).status == 403
        assert caller.delete("/v1/policies/theirs").status == 403
    # a session uses the policies of its own tenant
    assert tenant.post("/v1/sessions", {"policy": "mine"}).status == 404
    assert user.post("/v1/sessions", {"policy": "theirs"}).status == 403  # users cannot choose a policy
    answer = tenant.post("/v1/sessions", {"policy": "theirs"})
    assert answer.status == 201 and answer.json["session"]["policy"] == "theirs"
    assert tenant.delete("/v1/sessions/" + answer.json["session"]["id"]).status == 200
    assert client.delete("/v1/policies/theirs?tenant=acme").status == 200


# ---- number of sessions -----------------------------------------------------------------------


def test_one_per_user_refused(client, policy):
    policy("one", max_active_per_user=1, on_exceed="refuse")
    first = enter(client, user="u", key="a", policy="one")
    answer = enter(client, 429, user="u", key="refused", policy="one")
    assert answer.code == "LIMIT" and "u has 1 active" in answer.json["error"]["message"]
    assert client.get("/v1/sessions/key:refused").status == 404
    enter(client, 200, user="u", key="a", policy="one")
    enter(client, user="other", key="c", policy="one")
    assert client.post(f"/v1/sessions/{first['id']}/hibernate").status == 200
    second = enter(client, user="u", key="b", policy="one")
    # however the first is resumed
    run(client, first, 429)
    assert client.post(f"/v1/sessions/{first['id']}/resume").status == 429
    assert client.get(f"/v1/sessions/{first['id']}/files/x").status == 429
    enter(client, 429, key="a")
    assert state(client, first) == "hibernated" and state(client, second) == "active"


def test_one_per_user_replaced(client, policy):
    policy("one", max_active_per_user=1, on_exceed="replace")
    first = enter(client, user="u", key="a", policy="one")
    run(client, first)
    second = enter(client, user="u", key="b", policy="one")
    assert state(client, first) == "hibernated" and state(client, second) == "active"
    assert client.get(f"/v1/sessions/{first['id']}").json["session"]["cause"]["code"] == "replaced"
    for wake in (lambda: run(client, first), lambda: client.post(f"/v1/sessions/{first['id']}/resume"),
                 lambda: client.get(f"/v1/sessions/{first['id']}/files/.?list"), lambda: enter(client, 200, key="a")):
        wake()
        assert (state(client, first), state(client, second)) == ("active", "hibernated")
        run(client, second)
        assert (state(client, first), state(client, second)) == ("hibernated", "active")
    # without a resume no sandbox is replaced
    assert client.post(f"/v1/sessions/{first['id']}/exec?resume=0", {"command": "true"}).status == 409
    assert state(client, second) == "active"


def test_concurrent_resumes_stay_within_the_limit(client, policy):
    policy("two", max_active_per_user=2, on_exceed="replace")
    made = [enter(client, user="u", key=f"k{i}", policy="two") for i in range(4)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: client.post(f"/v1/sessions/{made[i % 4]['id']}/exec", {"command": "true"}).status,
                              range(24)))
    # a command whose sandbox was replaced gets an error
    assert set(found) <= {200, 409, 503}, found
    active = [s for s in client.get("/v1/sessions?user=u").json["sessions"] if s["state"] == "active"]
    assert len(active) <= 2


def test_the_smaller_limit_applies(client, policy):
    policy("two", max_active_per_user=2)
    enter(client, user="u", key="a", policy="two", max_active_per_user=1)
    enter(client, 429, user="u", key="b", policy="two", max_active_per_user=1)
    enter(client, user="u", key="b", policy="two", max_active_per_user=9)
    enter(client, 429, user="u", key="c", policy="two", max_active_per_user=9, on_exceed="replace")


def test_a_limit_per_user_requires_a_user(client, policy):
    policy("one", max_active_per_user=1)
    answer = enter(client, 400, key="a", policy="one")
    assert "user" in answer.json["error"]["message"]


def test_a_fork_has_the_same_policy(client, policy):
    policy("one", max_active_per_user=1)
    first = enter(client, user="u", key="a", policy="one")
    fork = client.post(f"/v1/sessions/{first['id']}/fork", {}).json["sessions"][0]
    assert fork["policy"] == "one"
    run(client, fork, 429)


# ---- limits -----------------------------------------------------------------------------------


def test_timeouts_are_capped_by_the_policy(client, policy):
    policy("short", idle_timeout_ms=60000, max_lifetime_ms=120000)
    s = enter(client, key="a", policy="short")
    assert (s["idle_timeout_ms"], s["max_lifetime_ms"]) == (60000, 120000)
    s = enter(client, key="b", policy="short", idle_timeout_ms=50000, lifetime_ms=90000)
    assert (s["idle_timeout_ms"], s["lifetime_ms"], s["max_lifetime_ms"]) == (50000, 90000, 120000)
    for field, most in (("idle_timeout_ms", "1m"), ("lifetime_ms", "2m"), ("max_lifetime_ms", "2m")):
        for answer in (client.post("/v1/sessions", {"key": "c", "policy": "short", field: 10 ** 7}),
                       client.patch("/v1/sessions/key:b", {field: 10 ** 7})):
            assert answer.status == 400
            assert answer.json["error"]["message"] == f'{field}: must be at most {most} (policy "short")'
    answer = client.patch("/v1/sessions/key:b", {"idle_timeout_ms": 60000, "max_lifetime_ms": 50000})
    assert answer.status == 200 and answer.json["adjusted"] == ["lifetime_ms"]
    s = answer.json["session"]
    assert (s["idle_timeout_ms"], s["lifetime_ms"], s["max_lifetime_ms"]) == (60000, 50000, 50000)


def test_limits_are_capped_by_the_policy(client, policy):
    policy("small", limits={"memory_bytes": 64 << 20, "pids": 20})
    s = enter(client, key="a", policy="small")
    assert s["limits"]["memory_bytes"] == 64 << 20
    stats = with_time(lambda ms: client.post(f"/v1/sessions/{s['id']}/exec", {
        "command": "for i in $(seq 40); do sleep 600 & done; wait", "timeout_ms": ms}), lambda a: a.json["stderr"])
    assert "fork" in stats.json["stderr"] or "Resource" in stats.json["stderr"], stats
    answer = enter(client, 400, key="b", policy="small", limits={"memory_bytes": 128 << 20})
    assert "memory_bytes" in answer.json["error"]["message"] and "small" in answer.json["error"]["message"]
    s = enter(client, key="b", policy="small", limits={"memory_bytes": 32 << 20})
    assert s["limits"]["memory_bytes"] == 32 << 20
    assert client.call("PATCH", "/v1/sessions/key:b", {"limits": {"memory_bytes": 65 << 20}}).status == 400
    answer = client.call("PATCH", "/v1/sessions/key:b", {"limits": {"memory_bytes": 48 << 20}})
    assert answer.json["session"]["limits"]["memory_bytes"] == 48 << 20
    # a changed policy applies to the next sandbox
    assert client.call("PATCH", "/v1/policies/small", {"limits": {"memory_bytes": 40 << 20}}).status == 200
    assert client.post("/v1/sessions/key:b/hibernate").status == 200
    s = enter(client, 200, key="b")
    assert s["limits"]["memory_bytes"] == 40 << 20


# ---- references -------------------------------------------------------------------------------


def test_a_policy_in_use_cannot_be_removed(client, policy):
    policy("used")
    s = enter(client, policy="used", asleep=True)
    assert client.get("/v1/policies/used").json["policy"]["sessions"] == 1
    answer = client.delete("/v1/policies/used")
    assert answer.status == 409 and "1 session" in answer.json["error"]["message"]
    client.delete("/v1/sessions/" + s["id"])
    assert client.delete("/v1/policies/used").status == 200


def test_an_unknown_policy_is_refused(client):
    answer = enter(client, 404, key="never", policy="nosuch")
    assert "nosuch" in answer.json["error"]["message"]
    for bad in ("", 7, "x" * 64):
        enter(client, 400, key="never", policy=bad)
    assert client.get("/v1/sessions/key:never").status == 404


def test_a_template_sets_the_policy(client, lodged, policy):
    policy("one", max_active_per_user=1)
    policy("other")
    s = enter(client, key="source")
    snapshot = client.post(f"/v1/sessions/{s['id']}/snapshots", {}).json["snapshot"]["id"]
    answer = client.post("/v1/templates", {"name": "ruled", "snapshot": snapshot, "policy": "one"})
    assert answer.status == 201 and answer.json["template"]["policy"] == "one", answer
    try:
        answer = client.delete("/v1/policies/one")
        assert answer.status == 409 and "ruled" in answer.json["error"]["message"]
        assert enter(client, user="u", key="a", template="ruled")["policy"] == "one"
        enter(client, 429, user="u", key="b", template="ruled")
        assert enter(client, user="u", key="b", template="ruled", policy="other")["policy"] == "other"
        # a tenant without that policy cannot use the template
        key = client.post("/v1/keys", {"scope": "tenant", "tenant": "acme"}).json["secret"]
        answer = lodged.client(key).post("/v1/sessions", {"template": "ruled", "user": "u"})
        assert answer.status == 404 and "one" in answer.json["error"]["message"]
        # the session of an import has no user
        data = client.get(f"/v1/snapshots/{snapshot}/archive").data
        answer = client.post("/v1/snapshots?template=ruled", data)
        assert answer.status == 201, answer
        assert client.delete("/v1/snapshots/" + answer.json["snapshot"]["id"]).status == 204
        assert client.call("PATCH", "/v1/templates/ruled", {"policy": None}).status == 200
        for k in ("a", "b"):
            client.delete("/v1/sessions/key:" + k)
        assert client.delete("/v1/policies/one").status == 200
    finally:
        for s in client.get("/v1/sessions").json["sessions"]:
            client.delete("/v1/sessions/" + s["id"])
        assert client.delete("/v1/templates/ruled").status == 200


def test_policies_survive_a_kill():
    d = Lodged()
    try:
        client = d.client()
        p = client.post("/v1/policies", {"name": "one", "max_active_per_user": 1, "limits": {"pids": 99}}).json["policy"]
        first = enter(client, user="u", key="a", policy="one")
        d.stop(signal.SIGKILL)
        d.start()
        client = d.client()
        assert client.get("/v1/policies/one").json["policy"] == dict(p, sessions=1)
        assert state(client, first) == "active"
        enter(client, 429, user="u", key="b", policy="one")
        assert client.delete("/v1/policies/one").status == 409
    finally:
        d.close()
