# SPDX-License-Identifier: Apache-2.0
"""lodge prune."""
import json
import os
import time

import pytest
from lodge import LODGE
from machine import in_terminal


def ok(answer, status=200):
    assert answer.status == status, answer
    return answer.json


@pytest.fixture
def old(client):
    """A session that is hibernated for 2 seconds, and its id."""
    sid = client.enter(key="old one", user="ada")
    ok(client.post(f"/v1/sessions/{sid}/hibernate"))
    time.sleep(2)
    yield sid
    client.delete("/v1/sessions/" + sid)


def test_prune_deletes_what_is_old_enough(lodged, client, old):
    young = client.enter(key="young")
    running = client.enter(key="runs")
    ok(client.post(f"/v1/sessions/{young}/hibernate"))
    ok(client.patch(f"/v1/sessions/{young}", {"archived": True}))
    snapshot = ok(client.post(f"/v1/sessions/{running}/snapshots", {}), 201)["snapshot"]["id"]
    client.delete("/v1/sessions/" + running)
    assert b"nothing to delete: no session was at rest for 30d\n" == lodged.lodge("prune")[1]
    status, out, _ = lodged.lodge("prune", "--older-than", "1s", "--dry-run")
    lines = out.decode().splitlines()
    assert status == 0 and lines[0].split() == ["NAME", "USER", "STATE", "SINCE", "SIZE"]
    assert len(lines) == 2 and lines[1].split()[:4] == ["old", "one", "ada", "hibernated"]
    # without a terminal and --yes nothing is deleted
    status, _, err = lodged.lodge("prune", "--older-than", "1s")
    assert status == 2 and "pass --yes" in err and client.session(old)["state"] == "hibernated"
    status, out, _ = lodged.lodge("prune", "--older-than", "1ms", "--snapshots", "--yes", "--json")
    answer = json.loads(out)
    assert status == 0 and not answer["dry_run"] and answer["deleted"] == answer["found"]
    assert {(x["kind"], x["id"]) for x in answer["found"]} == {("session", old), ("snapshot", snapshot)}
    gone = client.get("/v1/sessions/" + old)
    assert gone.status == 410 and gone.json["error"]["details"]["cause"]["text"] == "prune"
    assert client.get("/v1/snapshots/" + snapshot).status == 404
    assert client.session(young)["state"] == "archived"
    client.delete("/v1/sessions/" + young)


def test_prune_asks_on_a_terminal(lodged, client, old):
    def act():
        os.execve(LODGE, [LODGE, "prune", "--older-than", "1s"], lodged.env())
    out, status = in_terminal(act, [(b"? [y/N] ", b"n\n")])
    assert status == 1 and b"Delete 1 object with its files? [y/N]" in out and b"cancelled: nothing was deleted" in out
    assert client.session(old)["state"] == "hibernated"
