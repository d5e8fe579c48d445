# SPDX-License-Identifier: Apache-2.0
"""Authorization: every route with every kind of key that must not open it."""
import concurrent.futures
import contextlib
import glob
import hashlib
import http.client
import os
import re
import time

import pytest

from client import KEY, THREADS, Lodged, is_older, quote, routes, wait_for
from machine import with_time

ROUTES = routes()
CLOSED = [r for r in ROUTES if r[2] != "-"]
# compatible APIs report objects of other tenants in their own way, which their tests check
OF_ONE = [r for r in CLOSED if re.search(r"\{(id|exec|snap|key)\}", r[1]) and r[1].startswith("/v1/")]
UNKNOWN = {"{id}": "ses_aaaaaaaaaaaaaaaaaaaa", "{snap}": "snp_aaaaaaaaaaaaaaaaaaaa",
           "{exec}": "exe_aaaaaaaaaaaaaaaaaaaa", "{key}": "key_aaaaaaaaaaaaaaaaaaaa",
           "{user}": "ann", "{name}": "no-such", "{path...}": "tmp/f", "{project}": "no-such",
           "{fragment}": "no-such", "{team}": "no-such"}
SNAPSHOT = "/v1/snapshots/{id}"
# valid bodies; other routes get an empty object
BODIES = {
    ("POST", "/v1/sessions/{id}/exec"): {"command": "touch /tmp/touched"},
    ("POST", "/v1/sessions/{id}/execs/{exec}/stdin"): {"data": "x"},
    ("POST", "/v1/sessions/{id}/execs/{exec}/signal"): {"signal": 9},
    ("POST", "/v1/sessions/{id}/execs/{exec}/resize"): {"rows": 5, "cols": 5},
    ("POST", "/v1/sessions/{id}/rollback"): {"snapshot": UNKNOWN["{snap}"]},
    ("PUT", "/v1/sessions/{id}/files/{path...}"): b"bytes",
    ("PUT", "/v1/sessions/{id}/archive"): b"bytes",
    ("POST", "/v1/sessions/{id}/files/{path...}"): b"",
    ("POST", "/v1/snapshots"): b"bytes",
}
QUERIES = {
    ("GET", "/v1/sessions/{id}/archive"): "?path=/tmp",
    ("PUT", "/v1/sessions/{id}/archive"): "?path=/tmp",
    ("GET", "/v1/sessions/{id}/watch"): "?path=/tmp",
    ("POST", "/v1/sessions/{id}/files/{path...}"): "?mkdir",
}


def name_of(route):
    return f"{route[0]} {route[1]}"


def ask(client, route, names=None, headers=None):
    method, path, _ = route
    where = QUERIES.get((method, path), "")
    body = BODIES.get((method, path), {} if method in ("POST", "PUT", "PATCH") else None)
    names = dict(UNKNOWN, **(names or {}))
    if path.startswith(SNAPSHOT):
        names["{id}"] = names["{snap}"]
    for name, value in names.items():
        path = path.replace(name, value)
    return client.call(method, path + where, body, headers)


def refused_head(path, headers, status):
    """The chat API reports a malformed key like a wrong one; all routes of /api report two keys like none."""
    if path.startswith(("/api/sessions", "/api/sandbox")) or (path.startswith("/api/") and len(headers) == 2):
        return 401
    return status


def is_problem(answer, route, code=None):
    """Whether the response has the error format of the route's API."""
    assert answer.headers["Content-Type"] == "application/json"
    said = answer.json
    if route[1].startswith(THREADS):
        return said["detail"] and isinstance(said["detail"], str)
    if is_older(route[1]):
        assert said.get("success") is False or said.get("status") == "error"
        return said["error"] and isinstance(said["error"], str)
    assert set(said["error"]) >= {"code", "message", "retryable"} and said["error"]["message"]
    return code in (None, answer.code)


@pytest.fixture(scope="module")
def world(lodged):
    """The objects to protect: a session of the first tenant and everything in it."""
    class World:
        pass

    w = World()
    owner = w.owner = lodged.client()
    w.sid = owner.enter(key="of the first", user="ann")
    at = f"/v1/sessions/{w.sid}"
    w.snap = owner.post(at + "/snapshots", {"name": "one"}).json["snapshot"]["id"]
    w.run = owner.post(at + "/exec", {"command": "true"}).json["exec_id"]
    gone = w.gone = owner.enter(key="once", user="ann", asleep=True)
    assert owner.delete(f"/v1/sessions/{gone}").status == 200
    w.mine = owner.enter(key="of bob", user="bob", asleep=True)
    w.key, w.tenant = lodged.new_key(scope="tenant")
    w.names = {"{id}": w.sid, "{snap}": w.snap, "{exec}": w.run, "{key}": w.key["id"]}
    _, w.session = lodged.new_key(scope="session")
    _, w.other = lodged.new_key(tenant="other", scope="tenant")
    _, w.other_admin = lodged.new_key(tenant="other", scope="admin")
    _, w.one = lodged.new_key(scope=f"session:{w.mine}")
    _, w.bob = lodged.new_key(user="bob")
    _, w.late = lodged.new_key(expires_in_ms=1)
    removed, w.removed = lodged.new_key(scope="admin")
    assert owner.delete(f"/v1/keys/{removed['id']}").status == 200
    return w


# ---- no key, and invalid keys -------------------------------------------------------------------


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
def test_requests_without_a_key_get_401(lodged, world, route):
    answer = ask(lodged.client(None), route, world.names)
    assert answer.status == 401 and is_problem(answer, route, "UNAUTHENTICATED"), answer
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    head = lodged.client(None).call("HEAD", route[1])
    assert head.status in (400, 401) and not head.data


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
def test_malformed_and_unknown_keys_are_refused(lodged, world, route):
    anonymous = lodged.client(None)
    for headers, status in (
            ({"Authorization": f"Basic {KEY}"}, 401),
            ({"Authorization": KEY}, 401),
            ({"Authorization": "Bearer"}, 401),
            ({"Authorization": "Bearer short"}, 401),
            ({"Authorization": "Bearer " + "x" * 500}, 401),
            ({"Authorization": "Bearer two words"}, 400),
            ({"Authorization": f"Bearer {KEY}, Bearer {KEY}"}, 400),
            ({"Authorization": "Bearer lk_" + "0" * 64}, 401),
            ({"X-Api-Key": KEY[:-1]}, 401),
            ({"X-Api-Key": KEY + "0"}, 401),
            ({"X-Api-Key": KEY.upper()}, 401),
            ({"X-Api-Key": KEY, "Authorization": f"Bearer {KEY}"}, 400)):
        answer = ask(anonymous, route, world.names, headers)
        expected = refused_head(route[1], headers, status)
        assert answer.status == expected and is_problem(answer, route), (headers, answer)
        assert (answer.status == 401) == ("WWW-Authenticate" in answer.headers)
    for client in (world.late, world.removed):
        answer = ask(client, route, world.names)
        assert answer.status == 401 and is_problem(answer, route, "UNAUTHENTICATED"), answer


@pytest.mark.parametrize("route", [r for r in CLOSED if r[2] in ("tenant", "admin")], ids=name_of)
def test_a_key_with_a_smaller_scope_gets_403(world, route):
    for client in [world.session, world.one, world.bob] + [world.tenant] * (route[2] == "admin"):
        answer = ask(client, route, world.names)
        assert answer.status == 403 and answer.code == "DENIED", answer


def test_both_key_headers_are_accepted(lodged, world):
    anonymous = lodged.client(None)
    for headers in ({"X-Api-Key": KEY}, {"Authorization": f"bearer {KEY}"}):
        assert anonymous.get("/v1/sessions", headers=headers).status == 200


@pytest.mark.parametrize("route", [r for r in ROUTES if r[2] == "-"], ids=name_of)
def test_open_routes_need_no_key(lodged, route):
    answer = ask(lodged.client(None), route)
    assert answer.status in (200, 304), answer


# ---- objects of other tenants -------------------------------------------------------------------


def normalized(answer, names):
    """The response without the parts that differ in every request."""
    text = answer.data.decode()
    for name in names.values():
        text = text.replace(name, "NAME")
    headers = {k: v for k, v in answer.headers.items()
               if k not in ("Date", "X-Request-Id", "Content-Length")}
    return answer.status, text, headers


def same_as_unknown(client, route, names):
    there = ask(client, route, names)
    never = ask(client, route)
    assert normalized(there, dict(UNKNOWN, **names)) == normalized(never, UNKNOWN)
    assert there.status in (400, 403, 404, 426), there
    if not route[1].endswith("/tty"):  # a request for a terminal without an upgrade is invalid
        assert there.status in (403, 404), there
    return there


@pytest.mark.parametrize("route", OF_ONE, ids=name_of)
def test_objects_of_another_tenant_look_unknown(world, route):
    same_as_unknown(world.other, route, world.names)
    if "{key}" not in route[1]:  # an admin key may see the keys of all tenants
        same_as_unknown(world.other_admin, route, world.names)


@pytest.mark.parametrize("route", [r for r in OF_ONE if "{key}" not in r[1]], ids=name_of)
def test_other_sessions_look_unknown_to_a_session_key(world, route):
    same_as_unknown(world.one, route, world.names)
    same_as_unknown(world.bob, route, world.names)


@pytest.mark.parametrize("route", [r for r in OF_ONE if r[1].startswith("/v1/sessions")],
                         ids=name_of)
def test_deleted_sessions_of_another_tenant_look_unknown(world, route):
    for client in (world.other, world.one, world.bob):
        same_as_unknown(client, route, {"{id}": world.gone})


@pytest.mark.parametrize("route", [r for r in OF_ONE if r[1].startswith("/v1/sessions")],
                         ids=name_of)
def test_session_keys_of_another_tenant_look_unknown(world, route):
    names = {"{id}": "key:" + quote("of the first")}
    never = {"{id}": "key:" + quote("of no tenant")}
    plain = {"a": "of the first", "b": "of no tenant"}
    for client in (world.other, world.one, world.bob):
        there, none = ask(client, route, names), ask(client, route, never)
        assert normalized(there, plain) == normalized(none, plain)
        assert there.status in (400, 404, 426), there


def test_ids_in_bodies_are_checked_too(world):
    for client in (world.other, world.bob):
        for field, value, unknown in (("snapshot", world.snap, UNKNOWN["{snap}"]), ("pin", world.sid, UNKNOWN["{id}"])):
            there = client.post("/v1/sessions", {"key": "mine", field: value})
            never = client.post("/v1/sessions", {"key": "mine", field: unknown})
            assert there.status == never.status and there.status in (404, 409), there
            assert normalized(there, {"a": value}) == normalized(never, UNKNOWN)
    at = f"/v1/sessions/{world.mine}"
    for call, body in (("fork", {}), ("rollback", {})):
        there = world.bob.post(f"{at}/{call}", dict(body, snapshot=world.snap))
        never = world.bob.post(f"{at}/{call}", dict(body, snapshot=UNKNOWN["{snap}"]))
        assert there.status == 404, there
        assert normalized(there, {"a": world.snap}) == normalized(never, UNKNOWN)
    there = world.bob.delete(f"{at}/snapshots/{world.snap}")
    never = world.bob.delete(f"{at}/snapshots/{UNKNOWN['{snap}']}")
    assert normalized(there, {"a": world.snap}) == normalized(never, UNKNOWN)


def test_only_admin_keys_list_sessions_of_other_tenants(lodged, world):
    def ids(answer):
        return [s["id"] for s in answer.json["sessions"]]

    def refused(answer, status, why):
        assert answer.status == status and why in answer.json["error"]["message"], answer
    _, third = lodged.new_key(tenant="third", scope="tenant")
    theirs = third.enter(key="of the third", asleep=True)
    mine = ids(world.owner.get("/v1/sessions"))
    assert theirs not in mine and world.sid in mine
    for view in ("", "&view=row"):
        listed = world.owner.get("/v1/sessions?tenant=third" + view).json["sessions"]
        assert [(s["id"], s["tenant"]) for s in listed] == [(theirs, "third")]
        assert ids(world.other_admin.get("/v1/sessions?tenant=default" + view)) == mine
        assert ids(world.owner.get("/v1/sessions?tenant=nosuch" + view)) == []
        listed = world.owner.get("/v1/sessions?all=1" + view).json["sessions"]
        assert {(s["id"], s["tenant"]) for s in listed} >= {(theirs, "third"), (world.sid, "default")}
        assert ids(third.get("/v1/sessions?tenant=third&all=0" + view)) == [theirs]
        for client in (world.other, world.tenant, world.session, world.one, world.bob):
            refused(client.get("/v1/sessions?all=1" + view), 403, 'all: requires a key with scope "admin"')
            refused(client.get("/v1/sessions?tenant=third" + view), 403, "tenant: another one than that of the key")
        refused(world.owner.get("/v1/sessions?tenant=" + view), 400, "tenant: empty")
        refused(world.owner.get("/v1/sessions?tenant=third&all=1" + view), 400, "all: not together with tenant")
    assert world.owner.get("/v1/sessions/" + theirs).status == 404  # listed, but not to be used


def test_lists_contain_only_permitted_objects(world):
    for client, ids in ((world.other, []), (world.other_admin, []), (world.one, [world.mine]),
                        (world.bob, [world.mine])):
        answer = client.get("/v1/sessions")
        assert answer.status == 200 and [s["id"] for s in answer.json["sessions"]] == ids
        answer = client.get("/v1/events?session=" + world.sid)
        assert answer.status == 404 or answer.json["events"] == []
        assert client.get("/v1/snapshots").json["snapshots"] == []
        for where in (world.sid, world.gone, "key:" + quote("of the first"), "key:once"):
            answer = client.get("/v1/snapshots?session=" + where)
            assert answer.status == 404 or answer.json["snapshots"] == [], answer
    for client in (world.owner, world.tenant, world.session):
        assert world.snap in [s["id"] for s in client.get("/v1/snapshots").json["snapshots"]]
    assert world.other.get("/v1/events").json["events"][0]["kind"] == "key_add"
    assert not [e for e in world.other.get("/v1/events").json["events"] if e["session"]]
    keys = world.other.get("/v1/keys").json["keys"]
    assert keys and {k["tenant"] for k in keys} == {"other"}
    assert world.other.get("/v1/keys?tenant=default").status == 403
    assert world.other.get("/v1/events?all=1").status == 403
    events = world.session.get("/v1/events?limit=1000").json["events"]
    assert events and not [e for e in events if not e["session"]]  # events of keys need the tenant scope
    assert world.other.get("/v1/users/ann").status == 404
    assert world.bob.get("/v1/users/ann").status == 403
    assert world.bob.get("/v1/users/bob").status == 200
    assert world.one.get("/v1/users/bob").status == 403
    assert world.session.get("/v1/users/ann").status == 403
    assert world.bob.get("/v1/sessions?user=ann").status == 403
    assert world.bob.get("/v1/snapshots?user=ann").status == 403
    assert world.one.get("/v1/snapshots?session=" + world.sid).status == 404
    assert world.bob.get("/v1/events?user=ann").status == 403
    mine = world.bob.get("/v1/events?limit=1000").json["events"]
    assert mine and {e["user"] for e in mine} == {"bob"}


def test_a_session_token_can_use_its_session(world):
    for client in (world.one, world.bob):
        at = f"/v1/sessions/{world.mine}"
        assert client.get(at).json["session"]["user"] == "bob"
        assert client.patch(at, {"metadata": {"a": "b"}}).status == 200
        assert client.get("/v1/sessions/key:of%20bob").status == 200
        for name in (world.mine, "key:of%20bob"):
            events = client.get("/v1/events?session=" + name).json["events"]
            assert events and {e["session"] for e in events} == {world.mine}
    assert world.one.get("/v1/events").status == 200
    assert world.one.post("/v1/sessions", {"key": "of bob"}).status == 403
    assert world.one.post(f"/v1/sessions/{world.mine}/fork").status == 403
    assert world.bob.post("/v1/sessions", {"key": "of bob", "user": "ann"}).status == 403
    assert world.bob.post("/v1/sessions", {"key": "of the first"}).status == 409
    answer = world.bob.post("/v1/sessions", {"key": "bob's second", "asleep": True})
    assert answer.status == 201 and answer.json["session"]["user"] == "bob"
    assert world.bob.delete("/v1/sessions/" + answer.json["session"]["id"]).status == 200


def test_refused_requests_changed_nothing(world):
    assert world.owner.session(world.sid)["state"] == "active"
    assert world.owner.run(world.sid, "ls /tmp") == ""
    assert world.owner.get("/v1/snapshots/" + world.snap).status == 200
    assert world.owner.get("/v1/keys/" + world.key["id"]).status == 200
    assert world.owner.get("/health").json["last_error"] is None


# ---- what a key may request ---------------------------------------------------------------------


def test_the_root_class_needs_the_tenant_scope(world):
    for client in (world.session, world.bob):
        answer = client.post("/v1/sessions", {"class": "root", "asleep": True})
        assert answer.status == 403 and "class" in answer.json["error"]["message"], answer
        assert client.post("/v1/sessions", {"class": "root", "template": "empty"}).status == 403
    for client in (world.session, world.tenant):
        answer = client.post("/v1/sessions", {"class": "user", "asleep": True})
        assert answer.status == 201, answer
        client.delete("/v1/sessions/" + answer.json["session"]["id"])
    answer = world.tenant.post("/v1/sessions", {"class": "root", "asleep": True})
    assert answer.status == 201, answer
    world.tenant.delete("/v1/sessions/" + answer.json["session"]["id"])


def test_a_template_may_grant_the_root_class(lodged, world):
    where = os.path.join(lodged.home, "templates", "rooted")
    os.makedirs(where)
    with open(os.path.join(where, "template.json"), "w") as f:
        f.write('{"class":"root"}')
    for body in ({}, {"class": "root"}):
        answer = world.session.post("/v1/sessions", dict(body, template="rooted", asleep=True))
        assert answer.status == 201, answer
        world.session.delete("/v1/sessions/" + answer.json["session"]["id"])


def test_a_session_token_may_lower_limits_and_not_raise_them(lodged):
    owner = lodged.client()
    sid = owner.enter(key="limited", asleep=True)
    at = f"/v1/sessions/{sid}"
    _, one = lodged.new_key(scope=f"session:{sid}")
    lower = {"memory_bytes": 64 << 20, "disk_bytes": 64 << 20, "cpus": 0.5, "pids": 50, "open_files": 100, "cpu_weight": 50}
    answer = one.patch(at, {"limits": lower})
    assert answer.status == 200, answer
    assert answer.json["session"]["limits"].items() >= lower.items()
    for limits in ({"memory_bytes": 65 << 20}, {"disk_bytes": 65 << 20}, {"cpus": 0.6}, {"cpus": 0}, {"pids": 51},
                   {"open_files": 101}, {"cpu_weight": 51}):
        answer = one.patch(at, {"limits": {"inodes": 5000, **limits}, "metadata": {"changed": "yes"}})
        assert answer.status == 403 and answer.code == "DENIED", answer
        assert answer.json["error"]["message"].startswith(f"limits.{list(limits)[0]}: "), answer
    s = owner.get(at).json["session"]
    assert s["limits"].items() >= lower.items() and not s["metadata"]
    assert one.patch(at, {"limits": lower}).status == 200  # the same is not more
    assert one.patch(at, {"limits": {"pids": 40}}).status == 200
    assert owner.patch(at, {"limits": {"pids": 51, "cpus": 0}}).status == 200
    assert owner.delete(at).status == 200


def test_a_tenant_key_creates_only_session_tokens(world):
    for body in ({"scope": "admin"}, {"scope": "tenant"}, {"tenant": "other"}):
        answer = world.tenant.post("/v1/keys", body)
        assert answer.status == 403 and answer.code == "DENIED", answer
    for body, status in (({"scope": "root"}, 400), ({"scope": "session:" + "x" * 64}, 400),
                         ({"scope": "session:ses_unknown"}, 404), ({"scope": "session:"}, 400),
                         ({"scope": "tenant", "user": "ann"}, 400), ({"name": ""}, 400),
                         ({"name": "x" * 256}, 400), ({"expires_at": 1}, 400),
                         ({"expires_in_ms": 0}, 400),
                         ({"expires_in_ms": 5, "expires_at": 99999999999999}, 400)):
        assert world.owner.post("/v1/keys", body).status == status, body
    answer = world.tenant.post("/v1/keys", {"user": "carl", "name": "laptop"})
    assert answer.status == 201, answer
    key = answer.json["key"]
    assert (key["tenant"], key["scope"], key["user"], key["name"]) == \
        ("default", "session", "carl", "laptop")
    assert world.tenant.delete(f"/v1/keys/{key['id']}").json["key"] == key
    assert world.tenant.delete(f"/v1/keys/{key['id']}").status == 404
    assert world.tenant.delete("/v1/keys/key_given").status == 403


def test_the_last_admin_key_cannot_be_removed(world):
    for k in world.owner.get("/v1/keys").json["keys"]:
        if k["scope"] == "admin" and k["tenant"] == "other":
            assert world.other_admin.get(f"/v1/keys/{k['id']}").status == 200
    with contextlib.closing(Lodged()) as lone:
        answer = lone.client().delete("/v1/keys/key_given")
        assert answer.status == 409 and lone.client().get("/v1/sessions").status == 200
        # not even if two keys remove each other at the same time
        (one, first), (two, second) = (lone.new_key(scope="admin") for _ in "12")
        assert first.delete("/v1/keys/key_given").status == 200
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda r: r[0].delete("/v1/keys/" + r[1]), [(first, two["id"]), (second, one["id"])]))
        assert [c.get("/v1/sessions").status for c in (first, second)].count(200) == 1
        lone.stop()
        lone.start()  # with the key from the environment


# ---- storage of keys ----------------------------------------------------------------------------


def stored_bytes(lodged):
    data = b""
    for path in glob.glob(lodged.home + "/lodge.db*") + [lodged.home + ".log"]:
        with open(path, "rb") as f:
            data += f.read()
    return data


def test_a_secret_is_shown_once_and_stored_as_a_hash(lodged, world):
    answer = world.owner.post("/v1/keys", {"scope": "session", "name": "once"})
    secret, key = answer.json["secret"], answer.json["key"]
    assert re.fullmatch(r"lk_[0-9a-f]{64}", secret) and answer.headers["Cache-Control"] == "no-store"
    assert lodged.client(secret).get("/v1/sessions").status == 200
    for path in ("/v1/keys/" + key["id"], "/v1/keys", "/v1/events?since=0&limit=1000"):
        answer = world.owner.get(path)
        assert answer.status == 200 and secret[3:20] not in answer.data.decode()
    assert world.owner.get("/v1/keys/" + key["id"]).json["key"] == key
    data = stored_bytes(lodged)
    assert secret.encode() not in data and secret[3:].encode() not in data
    assert KEY.encode() not in data
    assert hashlib.sha256(secret.encode()).digest() in data
    world.owner.delete("/v1/keys/" + key["id"])
    assert lodged.client(secret).get("/v1/sessions").status == 401


def test_keys_are_listed_in_pages(world):
    made = [world.owner.post("/v1/keys", {"tenant": "paged"}).json["key"]["id"] for _ in range(5)]
    seen, after = [], 0
    while after is not None:
        page = world.owner.get(f"/v1/keys?tenant=paged&limit=2&after={after}").json
        seen += [k["id"] for k in page["keys"]]
        after = page["next"]
    assert seen == made
    for k in made:
        world.owner.delete("/v1/keys/" + k)


def test_a_key_expires(lodged, world):
    def use(ms):
        key, client = lodged.new_key(expires_in_ms=ms)
        return key, client, client.get("/v1/sessions").status

    key, client, status = with_time(use, lambda made: made[2] == 200, (3000, 60000))
    assert status == 200
    assert wait_for(lambda: client.get("/v1/sessions").status == 401)
    assert time.time() * 1000 >= key["expires_at"]


def test_keys_survive_a_restart():
    with contextlib.closing(Lodged()) as lone:
        _, client = lone.new_key()
        removed, late = lone.new_key()
        assert late.get("/v1/sessions").status == 200
        lone.client().delete("/v1/keys/" + removed["id"])
        lone.stop()
        lone.start()
        assert lone.client(client.key).get("/v1/sessions").status == 200
        assert lone.client(late.key).get("/v1/sessions").status == 401


# ---- audit events -------------------------------------------------------------------------------


def events(client, *kinds):
    found, since = [], 0
    while page := client.get(f"/v1/events?all=1&limit=1000&since={since}").json:
        if not page["events"]:
            return found
        found += [e for e in page["events"] if e["kind"] in kinds]
        since = page["next"]


def test_key_changes_are_recorded_as_events(world):
    key = world.tenant.post("/v1/keys", {"name": "audited"}).json["key"]
    world.tenant.delete("/v1/keys/" + key["id"])
    found = [e for e in events(world.owner, "key_add", "key_remove")
             if key["id"] in e["cause"]["text"]]
    assert [e["kind"] for e in found] == ["key_add", "key_remove"]
    assert {e["cause"]["actor"] for e in found} == {world.key["id"]}


def test_refused_keys_are_recorded_at_a_bounded_rate(lodged, world):
    stranger = lodged.client("lk_" + "1" * 64)
    before = len(events(world.owner, "key_refused"))
    size = len(stored_bytes(lodged))
    began = time.monotonic()
    for _ in range(300):
        assert stranger.get("/v1/sessions").status == 401
    rows = events(world.owner, "key_refused")
    # one per ten seconds, and one for the interval before
    assert len(rows) - before <= (time.monotonic() - began) / 10 + 2
    assert rows and "127.0.0.1" in rows[-1]["cause"]["text"] and stranger.key not in str(rows)
    # one log line each, and nothing more
    assert len(stored_bytes(lodged)) - size < 300 * 600
    assert not [e for e in world.other.get("/v1/events").json["events"]
                if e["kind"] == "key_refused"]


# ---- rate limits --------------------------------------------------------------------------------


def test_rate_and_concurrency_limits():
    with contextlib.closing(Lodged(rate=1, burst=4, concurrent=2)) as lone:
        _, one = lone.new_key()
        _, other = lone.new_key()
        answers = [one.get("/v1/sessions") for _ in range(20)]
        late = [a for a in answers if a.status == 429]
        assert answers[0].status == 200 and late, answers
        assert late[0].code == "RATE_LIMITED" and late[0].json["error"]["retryable"]
        assert int(late[0].headers["Retry-After"]) >= 1
        assert {a.status for a in answers} == {200, 429}
        # other keys are not affected, and /health needs no key
        streams = [other.open("GET", "/v1/events", headers={"Accept": "text/event-stream"})
                   for _ in range(2)]
        try:
            assert [r.status for _, r in streams] == [200, 200]
            answer = other.get("/v1/sessions")
            assert answer.status == 429 and "Retry-After" in answer.headers, answer
            assert lone.client(None).get("/health").status == 200
        finally:
            for connection, response in streams:
                response.close()
                connection.close()
        assert wait_for(lambda: other.get("/v1/sessions").status == 200)


def test_a_refusal_keeps_the_connection_open(lodged):
    connection = http.client.HTTPConnection(lodged.host, lodged.port, timeout=180)
    with contextlib.closing(connection):
        for headers, status in (({}, 401), ({"X-Api-Key": KEY}, 200), ({"X-Api-Key": "x" * 9}, 401)):
            connection.request("GET", "/v1/sessions", headers=headers)
            response = connection.getresponse()
            assert response.status == status and response.read()
