# SPDX-License-Identifier: Apache-2.0
"""The list of users, their names, and what they really use."""
import pytest

from client import wait_for


@pytest.fixture(scope="module")
def made(lodged):
    c = lodged.client()
    calm = c.enter(key="calm", user="ann")
    slept = c.enter(key="slept", user="bob")
    c.run(slept, "head -c 3000000 /dev/urandom > x")
    c.run(slept, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
    c.post(f"/v1/sessions/{slept}/hibernate")
    c.run(calm, "head -c 20000000 /dev/zero > /dev/shm/x")
    c.put("/v1/users/cleo/quota", {"sandboxes": 3})
    c.enter(key="nobody's")
    return {"calm": calm, "slept": slept}


def users(client, query=""):
    answer = client.get("/v1/users?" + query)
    assert answer.status == 200, answer
    return answer.json


def ids(answer):
    return [u["id"] for u in answer["users"]]


def test_real_and_reserved_are_apart(client, made):
    assert wait_for(lambda: users(client)["users"][0]["disk"] >= 3000000)  # measured when it is synced
    answer = users(client)
    by = {u["id"]: u for u in answer["users"]}
    assert ids(answer)[0] == "bob" and set(ids(answer)) == {"ann", "bob", "cleo"} and answer["total"] == 3
    ann, bob = by["ann"], by["bob"]
    assert (ann["running"], ann["sessions"], bob["running"], bob["sessions"]) == (1, 1, 0, 1)
    assert ann["memory"] >= 20000000 and bob["memory"] == 0
    limits = client.session(made["calm"])["limits"]
    assert ann["reserved"] == {"memory": limits["memory_bytes"], "disk": limits["disk_bytes"]}
    assert bob["reserved"] == {"memory": 0, "disk": limits["disk_bytes"]}
    assert bob["cpu_ms_24h"] >= 50 and ann["active_at"] and by["cleo"]["active_at"] is None
    assert by["cleo"]["quota"]["sandboxes"] == 3 and by["cleo"]["sessions"] == 0
    assert answer["disk"]["total"] > answer["disk"]["free"] > 0
    assert answer["disk"]["users"] == sum(u["disk"] for u in answer["users"])
    assert ids(users(client, "sort=memory"))[0] == "ann" and ids(users(client, "sort=cpu"))[0] == "bob"
    assert ids(users(client, "sort=id")) == ["ann", "bob", "cleo"]
    assert ids(users(client, "sort=id&order=desc&limit=2")) == ["cleo", "bob"]


def test_an_exceeded_quota_is_named(client, made):
    client.put("/v1/users/ann/quota", {"memory_bytes": 1, "disk_bytes": 1, "sandboxes": 1})
    client.put("/v1/users/bob/quota", {"memory_bytes": 1, "cpu_ms": 1})
    by = {u["id"]: u["over"] for u in users(client)["users"]}
    assert by == {"ann": ["memory", "disk"], "bob": ["cpu"], "cleo": []}
    for user in ("ann", "bob"):
        client.put(f"/v1/users/{user}/quota", {})


def test_names(client, made):
    answer = client.patch("/v1/users/ann", {"name": "Ann Ö", "email": "ann@example.com"})
    assert (answer.status, answer.json["user"]["name"], answer.json["user"]["email"]) == (200, "Ann Ö", "ann@example.com")
    assert client.patch("/v1/users/ann", {"email": ""}).json["user"] | {"session": None} == client.get(
        "/v1/users/ann").json["user"] | {"session": None}
    assert [(u["name"], u["email"]) for u in users(client, "q=ann+%C3%96")["users"]] == [("Ann Ö", None)]
    assert client.patch("/v1/users/new", {"name": "New"}).json["user"]["id"] == "new"
    assert ids(users(client, "q=NEW")) == ["new"]
    changes = client.get("/v1/events?kind=user_change").json["events"]
    assert {e["cause"]["text"] for e in changes} == {"ann", "new"} and all(e["actor"] for e in changes)
    for body in ({"email": "x"}, {"email": "a b@c"}, {"email": "@x"}, {"name": "a\nb"}, {"name": "x" * 256}, {"nonsense": 1}):
        assert client.patch("/v1/users/ann", body).status == 400, body
    for query in ("sort=x", "order=x", "q=", "q=" + "x" * 257, "limit=0", "limit=1001"):
        assert client.get("/v1/users?" + query).status == 400, query


def test_scopes(lodged, client, made):
    _, tenant = lodged.new_key(scope="tenant")
    assert users(tenant)["disk"] is None and "ann" in ids(users(tenant))
    _, other = lodged.new_key(scope="tenant", tenant="other")
    assert users(other)["users"] == [] and users(other)["total"] == 0
    _, ann = lodged.new_key(scope="session", user="ann")
    assert ids(users(ann)) == ["ann"] and ann.patch("/v1/users/ann", {"name": "x"}).status == 403
    _, plain = lodged.new_key(scope="session")
    assert plain.get("/v1/users").status == 403
