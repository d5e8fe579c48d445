# SPDX-License-Identifier: Apache-2.0
"""Memory of the output of running commands: bounded per stream and per sandbox, and counted."""
import os

import pytest

from client import wait_for

MIB = 1 << 20
SHARE = 32 * MIB  # half of the memory of a session with 64 MiB
FILL = "head -c 40M /dev/zero; head -c 40M /dev/zero >&2; echo full > $MARK; exec sleep 600"


@pytest.fixture
def mallory(lodged):
    """A client with nothing but the token of one user, and its session."""
    client = lodged.new_key(scope="session", user="mallory")[1]
    sid = client.enter(key="mallory", limits={"memory_bytes": 64 * MIB})
    yield client, sid
    assert client.delete("/v1/sessions/" + sid).status == 200


def logs_of(pid):
    """Size and memory of the output logs that a process holds, by inode."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith("/memfd:lodge-log"):
                s = os.stat(path)
                found[s.st_ino] = (s.st_size - 4096, s.st_blocks * 512 - 4096)
        except FileNotFoundError:
            pass
    return found


def held(lodged, client, sid):
    """Sizes of the rings of a session together, and the memory they take."""
    logs = logs_of(lodged.init_of(client.session(sid)))
    return tuple(sum(x) for x in zip(*logs.values())) if logs else (0, 0)


def start(client, sid, mark, **more):
    return client.post(f"/v1/sessions/{sid}/exec", {"command": FILL, "background": True, "timeout_ms": 0,
                                                    "env": {"MARK": mark}, **more})


def stats(client, sid):
    answer = client.get(f"/v1/sessions/{sid}/stats")
    assert answer.status == 200, answer
    return answer.json["stats"]


@pytest.mark.parametrize("sizes", ([16 * MIB, 8 * MIB, MIB, 65536, 4096, None], [3 * MIB, 65536, None, 4096], [None]))
def test_one_token_cannot_take_more_than_the_share(lodged, client, mallory, sizes):
    mine, sid = mallory
    started, refused = 0, None
    for size in sizes:
        more = {"max_output_bytes": size} if size else {}
        while (answer := start(mine, sid, f"full{started}", **more)).status == 202:
            started += 1
            assert started < 300, "no bound"
        refused = answer
        assert answer.status == 429 and answer.code == "LIMIT_OUTPUT" and "32M" in answer.message, answer
    assert refused.json["error"]["retryable"] and int(refused.headers["Retry-After"]) >= 1
    assert refused.json["error"]["details"] == {"output_memory_bytes": SHARE}
    assert started == len(mine.get(f"/v1/sessions/{sid}/execs?limit=500").json["execs"]), "a refused one has a record"
    assert wait_for(lambda: len(mine.get(f"/v1/sessions/{sid}/files/?list&limit=1000").json["entries"]) >= started, 300)

    size, memory = held(lodged, mine, sid)
    assert 0 < memory <= size <= SHARE, (size, memory)
    if sizes[0]:
        assert memory > SHARE - MIB, memory
    shown = stats(mine, sid)["output_memory_bytes"]
    assert memory <= shown <= memory + started * 2 * 4096, (memory, shown)

    neighbour = client.enter(key="neighbour", user="bob")
    text = client.run(neighbour, "head -c 900000 /dev/zero | tr '\\0' a")
    assert len(text) == 900000 and stats(client, neighbour)["output_memory_bytes"] <= 2 * MIB
    client.delete("/v1/sessions/" + neighbour)


def test_its_end_returns_all_of_it(lodged, client):
    sid = client.enter(key="ends", limits={"memory_bytes": 64 * MIB})
    path = start(client, sid, "full", max_output_bytes=16 * MIB).json["exec_id"]
    assert client.post(f"/v1/sessions/{sid}/exec", {"command": "true"}).code == "LIMIT_OUTPUT"
    assert client.delete(f"/v1/sessions/{sid}/execs/{path}").status == 200
    for _ in range(5):  # at once, with the same size
        r = client.post(f"/v1/sessions/{sid}/exec", {"command": "seq 100000", "max_output_bytes": 16 * MIB})
        assert r.status == 200 and r.json["stdout_bytes"] == 588895, r
    assert wait_for(lambda: held(lodged, client, sid) == (0, 0))
    assert stats(client, sid)["output_memory_bytes"] == 0
    client.delete("/v1/sessions/" + sid)
    assert not logs_of(lodged.process.pid)


def test_a_refused_command_leaves_its_idempotency_key_unused(client, mallory):
    mine, sid = mallory
    first = start(mine, sid, "full", max_output_bytes=16 * MIB).json["exec_id"]
    body = {"command": "echo ran", "idempotency_key": "once"}
    assert mine.post(f"/v1/sessions/{sid}/exec", body).code == "LIMIT_OUTPUT"
    assert mine.delete(f"/v1/sessions/{sid}/execs/{first}").status == 200
    answer = mine.post(f"/v1/sessions/{sid}/exec", body)
    assert answer.status == 200 and answer.json["stdout"] == "ran\n", answer


# ---- settings -----------------------------------------------------------------------------------


def refused(answer, *words):
    assert answer.status == 400 and answer.code == "INVALID", answer
    for word in words:
        assert word in answer.message, (word, answer)


def test_more_than_a_quarter_of_the_memory_is_refused(client):
    refused(client.post("/v1/sessions", {"limits": {"output_bytes": 64 * MIB + 1}}), "output_bytes", "64M")
    refused(client.post("/v1/sessions", {"limits": {"output_bytes": 9 * MIB, "memory_bytes": 32 * MIB}}),
            "limits.output_bytes", "limits.memory_bytes", "8M")
    sid = client.enter(limits={"memory_bytes": 32 * MIB}, asleep=True)
    path = "/v1/sessions/" + sid
    assert client.session(sid)["limits"]["output_bytes"] == 8 * MIB  # not the 16 MiB that it cannot have
    refused(client.patch(path, {"limits": {"output_bytes": 9 * MIB}}), "limits.output_bytes", "limits.memory_bytes")
    assert client.patch(path, {"limits": {"output_bytes": 8 * MIB}}).status == 200
    refused(client.patch(path, {"limits": {"memory_bytes": 16 * MIB}}), "limits.output_bytes", "limits.memory_bytes")
    changed = client.patch(path, {"limits": {"memory_bytes": 16 * MIB, "output_bytes": MIB}})
    assert changed.json["session"]["limits"]["output_bytes"] == MIB, changed
    client.delete(path)


def test_a_smaller_memory_lowers_what_was_not_asked_for(client):
    sid = client.enter(key="lower")
    path = "/v1/sessions/" + sid
    assert client.session(sid)["limits"]["output_bytes"] == 16 * MIB
    client.run(sid, "true")
    changed = client.patch(path, {"limits": {"memory_bytes": 24 * MIB}})
    assert changed.status == 200 and changed.json["session"]["limits"]["output_bytes"] == 6 * MIB, changed
    refused(client.post(path + "/exec", {"command": "true", "max_output_bytes": 7 * MIB}), "max_output_bytes", "6M")
    assert client.post(path + "/exec", {"command": "true", "max_output_bytes": 6 * MIB}).status == 200
    client.delete(path)
