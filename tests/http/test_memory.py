# SPDX-License-Identifier: Apache-2.0
"""The memory limit: every OOM kill is reported as one, and /dev/shm fits into it."""
import contextlib

import pytest

from client import Lodged, wait_for

MB = 1 << 20


@pytest.fixture
def session(client, request):
    """Makes a session with a memory limit; it is destroyed after the test."""
    made = []

    def enter(memory):
        made.append("/v1/sessions/" + client.enter(key=request.node.name, limits={"memory_bytes": memory}))
        return made[0]

    yield enter
    for at in made:
        assert client.delete(at).status == 200


def run(client, at, **body):
    answer = client.post(at + "/exec", body)
    assert answer.status == 200, answer
    return answer.json


def oom_kills(client, at):
    return client.get(at + "/stats").json["stats"]["oom_kills"]


# ---- OOM kills --------------------------------------------------------------------------------


SHAPES = {
    "the command itself": {"argv": ["tail", "/dev/zero"]},
    "a script that is one command": {"command": "tail /dev/zero"},
    "a child of the shell": {"command": "tail /dev/zero; true"},
    "a background child": {"command": "tail /dev/zero & wait $!"},
    "part of a pipeline": {"command": "cat /dev/zero | tail | cat"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_oom_kill_is_reported(client, session, shape):
    at = session(24 * MB)
    for i in range(12):
        r = run(client, at, **SHAPES[shape])
        assert r["oom_killed"] and "LIMIT_MEMORY" in r["limits"], (i, r)


def test_a_command_that_is_killed_before_it_runs(client, session):
    """Memory is full of files that belong to no process, so the kernel kills each command during its start."""
    at = session(64 * MB)
    filled = run(client, at, command="head -c 1G /dev/zero >/dev/shm/f; stat -c %s /dev/shm/f")
    size = int(filled["stdout"])
    kills = oom_kills(client, at)
    results = []
    for left in range(6, 0, -1):  # the tighter, the earlier
        answer = client.patch(at, {"limits": {"memory_bytes": size + left * MB // 4}})
        if answer.status == 409:
            assert answer.message.startswith("limits.memory_bytes: the sandbox uses more than "), answer
            break
        assert answer.status == 200, answer
        results += [run(client, at, argv=["sh", "-c", "x=$(head -c 4M /dev/zero | tr '\\0' x)"]) for _ in range(10)]
    assert oom_kills(client, at) > kills
    for r in results:
        assert r["oom_killed"] == ("LIMIT_MEMORY" in r["limits"]), r
        assert r["oom_killed"] or r["signal"] != 9, r
    assert client.patch(at, {"limits": {"memory_bytes": 64 * MB}}).status == 200
    assert run(client, at, command="rm /dev/shm/f; echo well")["stdout"] == "well\n"


# ---- /dev/shm ---------------------------------------------------------------------------------


def shm_bytes(client, at):
    return int(run(client, at, command="df -B1 --output=size /dev/shm | tail -1")["stdout"])


@pytest.mark.parametrize("memory", [16 * MB, 64 * MB, 512 * MB, 2048 * MB])
def test_shared_memory_is_half_of_the_limit(client, session, memory):
    assert shm_bytes(client, session(memory)) == memory // 2


def test_shared_memory_of_a_warm_start():
    """The pool makes its sandboxes with default limits."""
    with contextlib.closing(Lodged(pool=4)) as lodged:
        client = lodged.client()
        assert wait_for(lambda: client.get("/health").json["pool"]["available"] == 4)
        for limits in ({"memory_bytes": 48 * MB}, {"memory_bytes": 1024 * MB, "file_bytes": 1 * MB}):
            at = "/v1/sessions/" + client.enter(limits=limits)
            assert shm_bytes(client, at) == limits["memory_bytes"] // 2


def test_full_shared_memory_leaves_room_for_commands(client, session):
    at = session(64 * MB)
    r = run(client, at, command="head -c 1G /dev/zero >/dev/shm/f")
    assert r["exit_code"] == 1 and "No space left" in r["stderr"] and not r["oom_killed"], r
    for _ in range(5):
        r = run(client, at, command="ls -l /dev/shm >/dev/null && echo well")
        assert r["stdout"] == "well\n" and r["limits"] == [], r
    assert run(client, at, command="rm /dev/shm/f && echo well")["stdout"] == "well\n"


def test_shared_memory_follows_a_change_of_the_limit(client, session):
    at = session(64 * MB)
    for memory in (256 * MB, 32 * MB, 64 * MB):
        assert client.patch(at, {"limits": {"memory_bytes": memory}}).status == 200
        assert shm_bytes(client, at) == memory // 2
    run(client, at, command="head -c 20M /dev/zero >/dev/shm/f")
    assert client.patch(at, {"limits": {"memory_bytes": 32 * MB}}).status == 200
    assert shm_bytes(client, at) == 20 * MB, "what is in use stays, and no more"
    assert run(client, at, command="stat -c %s /dev/shm/f")["stdout"] == f"{20 * MB}\n"


def test_a_change_that_fails_changes_nothing(lodged, client, session):
    """Files come and go in /dev/shm while it is resized; what the record says holds in any case."""
    at = session(512 * MB)
    loop = client.post(at + "/exec", {"command": "while :; do head -c 8M /dev/zero >/dev/shm/f; rm /dev/shm/f; done",
                                      "background": True, "timeout_ms": 0})
    assert loop.status == 202
    for i in range(60):
        memory = (64 if i % 2 else 128) * MB
        before = lodged.cgroup_limits(client.session(at.rsplit("/", 1)[1]))
        answer = client.patch(at, {"limits": {"memory_bytes": memory, "pids": 50 + i}})
        assert answer.status in (200, 409), answer
        now = client.session(at.rsplit("/", 1)[1])
        assert (now["limits"]["memory_bytes"] == memory) == (answer.status == 200), answer
        kernel = lodged.cgroup_limits(now)
        assert (kernel == before) == (answer.status == 409), (answer, before, kernel)
