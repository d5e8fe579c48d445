# SPDX-License-Identifier: Apache-2.0
"""The settings limits_max_*: what any request may set at most."""
import contextlib

import pytest

from client import Lodged

MEMORY, DISK = 64 << 20, 128 << 20
MAX = {"memory_bytes": MEMORY, "cpus": 0.5, "disk_bytes": DISK, "pids": 40}
SETTINGS = {"limits_max_memory": "64M", "limits_max_cpus": 0.5, "limits_max_disk": "128M", "limits_max_pids": 40}
TOO_MUCH = [
    ({"memory_bytes": MEMORY + 1}, "limits.memory_bytes: must be at most 64M (setting: limits_max_memory)"),
    ({"cpus": 0.6}, "limits.cpus: must be between 0.01 and 0.5 (setting: limits_max_cpus)"),
    ({"cpus": 0}, "limits.cpus: must be between 0.01 and 0.5 (setting: limits_max_cpus)"),
    ({"disk_bytes": DISK + 1}, "limits.disk_bytes: must be at most 128M (setting: limits_max_disk)"),
    ({"pids": 41}, "limits.pids: must be at most 40 (setting: limits_max_pids)"),
]


@pytest.fixture(scope="module")
def lodged():
    with contextlib.closing(Lodged(**SETTINGS)) as d:
        yield d


def pick(session):
    return {name: session["limits"][name] for name in MAX}


def enter(client, status=201, **body):
    answer = client.post("/v1/sessions", body)
    assert answer.status == status, answer
    return answer.json["session"]


def test_health_shows_the_maximum(client):
    health = client.get("/health").json
    assert health["limits_max"] == MAX
    config = health["config"]  # of threads, lowered
    assert (config["memory_bytes"], config["max_processes"], config["max_workspace_bytes"]) == (MEMORY, 40, DISK)


def test_defaults_are_lowered(client):
    assert pick(enter(client, key="defaults")) == MAX
    answer = client.post("/create_session", {"user_id": "u", "thread_id": "t"})
    assert answer.status in (200, 201), answer
    s = client.get("/v1/sessions/" + answer.json["session_id"]).json["session"]
    assert pick(s) == {**MAX, "cpus": 0.25}


@pytest.mark.parametrize("limits, says", TOO_MUCH)
def test_a_request_for_more_names_field_bound_and_setting(client, limits, says):
    enter(client, 201 if client.get("/v1/sessions/key:kept").status == 404 else 200, key="kept")
    before = client.get("/v1/sessions/key:kept").json["session"]["limits"]
    for answer in (client.post("/v1/sessions", {"key": "new", "limits": limits}),
                   client.patch("/v1/sessions/key:kept", {"limits": limits}),
                   client.post("/v1/policies", {"name": "much", "limits": limits})):
        assert (answer.status, answer.json["error"]["message"]) == (400, says), answer
    assert client.get("/v1/sessions/key:new").status == 404
    assert client.get("/v1/sessions/key:kept").json["session"]["limits"] == before


def test_a_template_cannot_have_more(client):
    enter(client, key="origin")
    snapshot = client.post("/v1/sessions/key:origin/snapshots", {}).json["snapshot"]["id"]
    for body in ({"memory_bytes": MEMORY + 1}, {"pids": 41}):
        answer = client.post("/v1/templates", {"name": "much", "snapshot": snapshot, "limits": body})
        assert answer.status == 400 and "limits_max_" in answer.json["error"]["message"], answer
    assert client.post("/v1/templates", {"name": "fits", "snapshot": snapshot, "limits": {"pids": 40}}).status == 201
    answer = client.patch("/v1/templates/fits", {"limits": {"pids": 41}})
    assert answer.status == 400 and "limits_max_pids" in answer.json["error"]["message"], answer


def test_what_was_there_before_is_lowered_with_its_next_sandbox():
    with contextlib.closing(Lodged()) as d:
        c = d.client()
        s = enter(c, key="old", limits={"memory_bytes": 2 * MEMORY, "pids": 80})
        assert c.post("/v1/policies", {"name": "wide", "limits": {"pids": 99}}).status == 201
        assert c.post("/v1/sessions/key:old/hibernate").status == 200
        d.stop()
        d.settings.update(SETTINGS)
        d.start()
        c = d.client()
        assert pick(enter(c, 200, key="old")) == MAX
        fork = c.post(f"/v1/sessions/{s['id']}/fork", {"count": 1})
        assert fork.status == 201 and pick(fork.json["sessions"][0]) == MAX, fork
        # another part of a policy that has more can be changed
        assert c.patch("/v1/policies/wide", {"max_active_per_user": 3}).status == 200
