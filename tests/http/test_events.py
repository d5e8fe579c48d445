# SPDX-License-Identifier: Apache-2.0
"""Events: what they name, and reading them backwards."""
import pytest

from client import wait_for


@pytest.fixture
def sid(client):
    made = client.enter(key="feed", user="ann")
    yield made
    client.delete("/v1/sessions/" + made)


def test_an_event_names_session_user_and_actor(client, sid):
    client.post(f"/v1/sessions/{sid}/hibernate")
    client.delete("/v1/sessions/" + sid)
    events = client.get(f"/v1/events?session={sid}&limit=1000").json["events"]
    assert [e["kind"] for e in events] == ["create", "start", "ready", "sleep", "sealed", "destroy"]
    assert {(e["key"], e["user"], e["tenant"], e["exec"]) for e in events} == {("feed", "ann", "default", None)}
    assert {e["kind"]: e["actor"] for e in events}["destroy"] == events[0]["actor"] != "lodge"


def test_a_limit_that_was_hit_is_an_event_of_the_command(client, sid):
    done = client.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 60", "timeout_ms": 100}).json
    assert done["timed_out"]
    found = wait_for(lambda: client.get(f"/v1/events?session={sid}&kind=limit_hit").json["events"])
    assert found[0]["exec"] == done["exec_id"] and found[0]["data"] == {"limits": ["TIMEOUT"]}, found
    assert (found[0]["key"], found[0]["user"]) == ("feed", "ann")
    client.post(f"/v1/sessions/{sid}/exec", {"command": "true"})
    assert len(client.get(f"/v1/events?session={sid}&kind=limit_hit").json["events"]) == 1


def test_pages_backwards(client, sid):
    for i in range(4):
        client.patch(f"/v1/sessions/{sid}", {"metadata": {"n": str(i)}})
    events = client.get(f"/v1/events?session={sid}&limit=1000").json["events"]
    seen, before = [], ""
    while True:
        page = client.get(f"/v1/events?session={sid}&order=desc&limit=2{before}").json
        seen += page["events"]
        if page["next"] is None:
            break
        assert len(page["events"]) == 2 and page["next"] == page["events"][-1]["id"]
        before = f"&before={page['next']}"
    assert seen == events[::-1]
    middle = events[3]["id"]
    older = client.get(f"/v1/events?session={sid}&before={middle}").json
    assert older["events"] == events[:3][::-1] and older["next"] is None
    between = client.get(f"/v1/events?session={sid}&before={middle}&since={events[0]['id']}").json
    assert between["events"] == events[1:3][::-1]


def test_by_kind_and_user(client, sid):
    client.patch(f"/v1/sessions/{sid}", {"metadata": {"n": "1"}})
    kinds = {e["kind"] for e in client.get("/v1/events?user=ann&kind=ready,change&limit=1000").json["events"]}
    assert kinds == {"ready", "change"}
    assert client.get("/v1/events?user=ann&kind=read").json["events"] == []
    assert client.get("/v1/events?user=nobody").json["events"] == []
