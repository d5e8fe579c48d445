# SPDX-License-Identifier: Apache-2.0
"""Sessions as rows: usage, counts, sums, sorting and search in one request."""
import pytest


@pytest.fixture(scope="module")
def made(lodged):
    c = lodged.client()
    ids = {"calm": c.enter(key="calm", user="ann"), "busy": c.enter(key="busy", user="bob", project="Blue"),
           "cold": c.enter(key="cold", user="ann", asleep=True)}
    c.run(ids["calm"], "head -c 20000000 /dev/zero > /dev/shm/x")
    c.post(f"/v1/sessions/{ids['busy']}/exec", {"command": "while :; do :; done", "background": True, "timeout_ms": 0})
    slept = c.enter(key="slept", user="bob")
    c.run(slept, "head -c 3000000 /dev/urandom > x")
    c.post(f"/v1/sessions/{slept}/hibernate")
    return {**ids, "slept": slept}


def rows(client, query=""):
    answer = client.get("/v1/sessions?view=row&" + query)
    assert answer.status == 200, answer
    return answer.json


def keys(answer):
    return [s["key"] for s in answer["sessions"]]


def test_rows_have_real_usage(lodged, client, made):
    assert rows(client)["sessions"][3]["usage"]["disk"] >= 3000000  # also before it is synced
    answer = rows(client, "sample_ms=1000")
    by = {s["key"]: s for s in answer["sessions"]}
    assert keys(answer) == ["calm", "busy", "cold", "slept"] and answer["total"] == 4 and answer["next"] is None
    assert answer["counts"] == {"none": 1, "active": 2, "hibernated": 1}
    assert by["calm"]["usage"]["memory"] >= 20000000 > by["busy"]["usage"]["memory"] > 0
    assert by["busy"]["usage"]["cpu_pct"] > by["calm"]["usage"]["cpu_pct"] and by["busy"]["usage"]["pids"] == 1
    stats = client.get(f"/v1/sessions/{made['busy']}/stats").json["stats"]
    assert by["busy"]["usage"]["disk"] == stats["disk_bytes"]
    assert by["cold"]["usage"] | {"enforced": None} == {
        "memory": 0, "memory_limit": 536870912, "cpu_pct": 0, "disk": 0, "disk_limit": 1073741824, "pids": 0, "at": None,
        "enforced": None}
    assert answer["totals"]["memory"] == sum(s["usage"]["memory"] for s in answer["sessions"])
    assert answer["totals"]["disk"] == sum(s["usage"]["disk"] for s in answer["sessions"])
    record = client.session(made["calm"])
    assert by["calm"]["next"] == {"what": "hibernate", "at": record["hibernate_at"]} and by["cold"]["next"] is None
    assert (by["busy"]["project"], by["busy"]["user"], by["busy"]["id"]) == ("Blue", "bob", made["busy"])
    assert by["slept"]["cause"]["code"] == "asked"


def test_sorting_searching_and_paging(client, made):
    assert keys(rows(client, "sort=memory&sample_ms=200"))[0] == "calm"
    assert keys(rows(client, "sort=cpu&sample_ms=1000"))[0] == "busy"
    assert keys(rows(client, "sort=disk&order=asc"))[-1] == "slept"
    assert keys(rows(client, "order=desc")) == ["slept", "cold", "busy", "calm"]
    assert keys(rows(client, "q=BLU")) == ["busy"] and keys(rows(client, "q=ann")) == ["calm", "cold"]
    assert keys(rows(client, "q=" + made["cold"][4:12])) == ["cold"] and keys(rows(client, "q=%25")) == []
    some = rows(client, "state=active,hibernated&user=bob")
    assert keys(some) == ["busy", "slept"] and some["counts"] == {"active": 1, "hibernated": 1} and some["total"] == 2
    one = rows(client, "state=hibernated")
    assert one["counts"]["active"] == 2 and one["total"] == 1
    first = rows(client, "limit=3")
    assert first["next"] == 3 and keys(rows(client, "limit=3&after=3")) == ["slept"]
    assert [s["key"] for s in client.get("/v1/sessions?state=active,none").json["sessions"]] == ["calm", "busy", "cold"]


def test_tokens_see_their_own_rows(lodged, client, made):
    _, bob = lodged.new_key(scope="session", user="bob")
    assert keys(rows(bob)) == ["busy", "slept"] and bob.get("/v1/sessions?view=row&user=ann").status == 403
    _, one = lodged.new_key(scope="session:" + made["cold"])
    assert keys(rows(one)) == ["cold"] and rows(one)["total"] == 1
    _, other = lodged.new_key(scope="tenant", tenant="other")
    assert rows(other) == {"sessions": [], "total": 0, "counts": {}, "totals": {"memory": 0, "disk": 0}, "next": None}


def test_reading_rows_changes_nothing(client, made):
    before = [client.session(sid) for sid in made.values()]
    rows(client, "sample_ms=100&sort=disk")
    assert [client.session(sid) for sid in made.values()] == before
