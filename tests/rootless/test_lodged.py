# SPDX-License-Identifier: Apache-2.0
"""lodged as an ordinary user."""
import contextlib
import os
import subprocess

import pytest

import world as world_module
from client import KEY, Lodged
from conftest import USER


class Users(Lodged):
    how = {"user": USER, "group": USER, "extra_groups": []}

    def start(self):
        os.chown(self.home, USER, USER)
        super().start()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Disables the check of the conftest, because a running lodged has a keeper."""


@pytest.fixture(scope="module")
def lodged(programs):
    with contextlib.closing(Users(os.path.join(os.path.dirname(world_module.LODGE), "lodged"))) as d:
        yield d


@pytest.fixture(scope="module")
def client(lodged):
    return lodged.client()


def test_a_session_works(client):
    session = client.enter(key="plain")
    assert client.run(session, "id -u; echo x >f; cat f") == "1000\nx\n"


@pytest.mark.parametrize("limits", [{"memory_bytes": 64 << 20}, {"cpus": 0.5}, {"pids": 20}, {"disk_bytes": 64 << 20}])
def test_a_limit_that_cannot_be_enforced_is_refused(client, limits):
    """The caller relies on the limit; a refusal leaves nothing."""
    answer = client.post("/v1/sessions", {"key": "bounded", "limits": limits})
    assert answer.status == 409, answer
    assert ("disk_bytes" in limits) == ("disk limit" in answer.json["error"]["message"]), answer
    assert client.get("/v1/sessions/key:bounded").status == 404
    session = client.enter(key="plain")
    before = client.session(session)["limits"]
    assert client.patch("/v1/sessions/" + session, {"limits": limits}).status == 409
    assert client.session(session)["limits"] == before


def test_a_pause_that_is_not_possible_changes_nothing(client):
    session = client.enter(key="pausing")
    at = "/v1/sessions/" + session
    answer = client.post(at + "/pause")
    assert answer.status == 409 and "cannot pause" in answer.json["error"]["message"], answer
    assert not client.session(session)["paused"] and client.run(session, "echo on") == "on\n"
    refused = client.post(at + "/snapshots", {})
    assert refused.status == 409 and "--stop" in refused.json["error"]["message"], refused
    assert client.post(at + "/snapshots", {"live": False}).status == 201
    assert client.delete(at).status == 200


def test_default_limits_are_marked(client):
    """Wherever they are shown."""
    every = {"memory_bytes", "cpu_weight", "pids", "disk_bytes", "inodes"}
    record = client.session(client.enter(key="plain"))
    assert {p["limit"] for p in record["limits_not_enforced"]} == every
    assert all(p["enforced"] is False for p in record["limits_not_enforced"])
    reasons = {p["limit"]: p["reason"] for p in record["limits_not_enforced"]}
    assert "delegated to this user" in reasons["memory_bytes"] and reasons["disk_bytes"] == "disk quotas need root"
    health = client.get("/health").json
    assert {p["limit"] for p in health["limits_not_enforced"]} == every | {"cpus"}
    assert {p["limit"] for p in health["config"]["limits_not_enforced"]} == {
        "memory_bytes", "cpu_milli", "max_processes", "max_workspace_bytes"}


def test_the_log_names_them(lodged):
    with open(lodged.home + ".log") as f:
        text = f.read()
    assert "not enforced on this host: memory, CPU and process limits (no cgroup " in text
    assert "disk limits (disk quotas need root)" in text


def test_required_limits_prevent_the_start(lodged):
    """Run by the same user on another directory."""
    home = os.path.join(lodged.home, "other")
    done = subprocess.run([lodged.program, "--data", home, "--listen", "127.0.0.1:0", "--require-limits"], **Users.how,
                          env=dict(os.environ, LODGE_API_KEY=KEY), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == "", done
    assert "require_limits: memory, CPU and process limits cannot be enforced on this host: " in done.stderr, done
