# SPDX-License-Identifier: Apache-2.0
"""Events: what they name, and reading them backwards."""
import contextlib
import pathlib
import time

import pytest

from client import KEY, Lodged, wait_for

STREAM = {"Accept": "text/event-stream"}


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


# ---- streams ------------------------------------------------------------------------------------


def open_stream(stack, client, path="/v1/events"):
    connection, response = client.open("GET", path, headers=STREAM)
    stack.enter_context(contextlib.closing(connection))
    assert response.status == 200 and response.readline() == b": lodge\n"
    return response


def count_writes(pid):
    """Calls of write(): each step of a stream is announced by one."""
    counters = pathlib.Path(f"/proc/{pid}/io")
    if not counters.exists():
        pytest.skip("the kernel does not count")
    return int(counters.read_text().split("syscw:")[1].split()[0])


@pytest.fixture(scope="module")
def own():
    """Only these tests make events there."""
    with contextlib.closing(Lodged()) as d:
        yield d


def test_idle_streams_do_nothing(own):
    """Each of them would have a step or two in this time if it polled."""
    with contextlib.ExitStack() as stack:
        streams = [open_stream(stack, own.client()) for _ in range(100)]

        def is_quiet():
            before = count_writes(own.process.pid)
            time.sleep(0.4)
            return count_writes(own.process.pid) - before < 20

        assert wait_for(is_quiet)
        own.new_key(name="news")
        for s in streams:
            assert any(b'"kind":"key_add"' in s.readline() for _ in range(4))


def test_a_stream_misses_nothing(own):
    with contextlib.ExitStack() as stack:
        stream = open_stream(stack, own.client(), "/v1/events?kind=key_add")
        since = own.client().get("/v1/events?order=desc&limit=1").json["events"][0]["id"]
        for i in range(60):
            own.new_key(name=f"one of many {i}")
        seen = []
        while len(seen) < 60:
            line = stream.readline()
            assert line
            if line.startswith(b"id: "):
                seen.append(int(line[4:]))
        assert seen == [e["id"] for e in own.client().get(f"/v1/events?kind=key_add&since={since}&limit=1000").json["events"]]


def test_head_of_a_stream_is_its_head(own):
    answer = own.raw(b"HEAD /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nX-Api-Key: " + KEY.encode() + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\n") and answer.count(b"\r\n\r\n") == 1
    assert b"\r\nContent-Type: text/event-stream\r\n" in answer and b"\r\nConnection: close\r\n" in answer


def test_a_removed_key_ends_its_streams(own):
    with contextlib.ExitStack() as stack:
        record, owner = own.new_key(scope="tenant")
        kept = open_stream(stack, own.client())
        streams = [open_stream(stack, owner) for _ in range(3)]
        assert own.client().delete(f"/v1/keys/{record['id']}").status == 200
        for s in streams:
            s.read()
        assert any(b'"kind":"key_remove"' in kept.readline() for _ in range(4))


def test_the_end_of_the_service_ends_streams():
    with contextlib.ExitStack() as stack:
        d = stack.enter_context(contextlib.closing(Lodged()))
        stream = open_stream(stack, d.client())
        assert d.stop() == 0
        assert stream.read().endswith(b"\n")
