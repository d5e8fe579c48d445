# SPDX-License-Identifier: Apache-2.0
"""lodge projects, switch, teams."""
import json

import pytest

from lodge import failed, ok
from terminal import Terminal


@pytest.fixture
def eve(lodged, client):
    """A user with a project; everything is removed after the test."""
    ok(lodged.lodge("projects", "add", "One", "--id", "p1", "--user", "eve"))
    yield "eve"
    lodged.lodge("cleanup", "--yes", "eve")
    for p in client.get("/api/projects?userId=eve").json["projects"]:
        client.delete(f"/api/projects/{p['id']}?userId=eve")


def test_add_show_and_rm(lodged, client, eve):
    made = ok(lodged.lodge("projects", "add", "Two words", "--user", eve, "--team", "blue")).strip()
    answer = json.loads(ok(lodged.lodge("projects", "show", made, "--user", eve, "--json")))
    assert (answer["name"], answer["owner"], answer["team"]) == ("Two words", eve, "blue")
    text = ok(lodged.lodge("projects", "show", made, "-u", eve))
    assert "Two words" in text and "blue" in text
    rows = ok(lodged.lodge("projects", "--user", eve)).splitlines()
    assert rows[0].split() == ["PROJECT", "NAME", "OWNER", "TEAM", "CREATED"] and len(rows) == 3
    assert ok(lodged.lodge("projects", "ls", "--user", eve)).splitlines() == rows
    answer = json.loads(ok(lodged.lodge("projects", "--user", eve, "--json")))
    assert sorted(p["id"] for p in answer["projects"]) == sorted(["p1", made])
    t = Terminal("projects", "rm", made, "--user", eve, env=lodged.env())
    t.wait(f"Delete project {made}")
    t.type("n\n")
    assert t.end() == 1 and client.get(f"/api/projects/{made}?userId=eve").status == 200
    assert ok(lodged.lodge("projects", "rm", "--yes", made, "--user", eve, "--yes")) == f"removed {made}\n"
    failed(lodged.lodge("projects", "rm", "--yes", made, "--user", eve), "not found")
    answer = json.loads(ok(lodged.lodge("projects", "add", "Three", "--user", eve, "--json")))
    assert json.loads(ok(lodged.lodge("projects", "rm", "--yes", answer["id"], "--user", eve, "--json")))


def test_errors_are_reported(lodged, client, eve):
    failed(lodged.lodge("projects", "add", "Again", "--id", "p1", "--user", eve))
    failed(lodged.lodge("projects", "show", "p1", "--user", "mallory"))
    failed(lodged.lodge("projects", "rm", "--yes", "p1", "--user", "mallory"))
    assert client.get("/api/projects/p1?userId=eve").status == 200
    assert "eve" in ok(lodged.lodge("projects", "show", "p1"))  # the application itself may ask for the owner
    for words in ((), ("add", "x"), ("rm", "--yes", "p1"), ("fragments", "p1"), ("save", "p1")):
        failed(lodged.lodge("projects", *words), "with --user")
    for words in (("add",), ("show",), ("rm",), ("fragments",), ("save",), ("nosuch",), ("add", "a", "b")):
        assert lodged.lodge("projects", *words, "--url", "http://127.0.0.1:1")[0] == 2


def test_a_user_token_implies_the_user(lodged, client, eve):
    key = client.post("/v1/keys", {"scope": "session", "user": eve}).json
    env = dict(lodged.env(), LODGE_API_KEY=key["secret"])
    made = ok(lodged.lodge("projects", "add", "Mine", env=env)).strip()
    assert made in ok(lodged.lodge("projects", env=env))
    ok(lodged.lodge("projects", "rm", "--yes", made, env=env))
    client.delete("/v1/keys/" + key["key"]["id"])


def test_switch_and_save(lodged, client, eve):
    rows = ok(lodged.lodge("switch", "--user", eve, "p1")).splitlines()
    assert rows[0] == "Successfully switched to project p1" and rows[1].startswith("sandbox sbx_")
    answer = json.loads(ok(lodged.lodge("switch", "--user", eve, "p1", "--json")))
    assert answer["result"]["activeProjectId"] == "p1"
    sid = next(s["id"] for s in client.get("/v1/sessions").json["sessions"] if s["user"] == eve)
    client.run(sid, "echo saved > f")
    fragment = ok(lodged.lodge("projects", "save", "p1", "--user", eve, "--title", "a draft")).strip()
    snapshot = client.post(f"/v1/sessions/{sid}/snapshots", {}).json["snapshot"]["id"]
    second = json.loads(ok(lodged.lodge("projects", "save", "p1", "--user", eve, "--snapshot", snapshot, "--json")))
    assert second["snapshotId"] == snapshot
    rows = ok(lodged.lodge("projects", "fragments", "p1", "--user", eve)).splitlines()
    assert rows[1].split()[0] == second["id"] and snapshot in rows[1]
    assert rows[2].split()[:5] == [fragment, "a", "draft", "1", "6"]
    answer = json.loads(ok(lodged.lodge("projects", "fragments", "p1", "--user", eve, "--json")))
    assert [f["id"] for f in answer["fragments"]] == [second["id"], fragment]
    client.run(sid, "echo lost > f")
    assert "1 file restored" in ok(lodged.lodge("switch", "--user", eve, "p1", "--fragment", fragment))
    failed(lodged.lodge("switch", "--user", eve, "nosuch"), "Project not found")
    assert lodged.lodge("switch", "--user", eve)[0] == 2
    assert "with --user" in lodged.lodge("switch", "p1")[2]


def test_teams(lodged, client, eve):
    made = ok(lodged.lodge("projects", "add", "Ours", "--user", eve, "--team", "red")).strip()
    assert ok(lodged.lodge("teams", "add", "red", "bob")) == "bob is MEMBER of red\n"
    assert json.loads(ok(lodged.lodge("teams", "add", "red", "bob", "--role", "VIEWER", "--user", eve, "--json"))) == {
        "team": "red", "user": "bob", "role": "VIEWER"}
    assert [r.split() for r in ok(lodged.lodge("teams", "ls", "red")).splitlines()] == [
        ["USER", "ROLE"], ["bob", "VIEWER"], [eve, "OWNER"]]
    assert made in ok(lodged.lodge("projects", "--user", "bob"))
    assert ["red", "2", "1", "-"] in [r.split() for r in ok(lodged.lodge("team")).splitlines()]
    assert ok(lodged.lodge("team")) == ok(lodged.lodge("team", "ls")) == ok(lodged.lodge("teams"))
    assert [r.split() for r in ok(lodged.lodge("team", "ls", "--user", "bob")).splitlines()] == [
        ["TEAM", "MEMBERS", "PROJECTS", "ROLE"], ["red", "2", "1", "VIEWER"]]
    assert json.loads(ok(lodged.lodge("team", "--user", "bob", "--json")))["teams"] == [
        {"team": "red", "members": 2, "projects": 1, "role": "VIEWER"}]
    failed(lodged.lodge("teams", "add", "red", "carol", "--user", "bob"))
    failed(lodged.lodge("teams", "add", "red", "carol", "--role", "KING"), "role")
    failed(lodged.lodge("projects", "rm", "--yes", made, "--user", "bob"))
    assert ok(lodged.lodge("teams", "rm", "red", "bob")) == "removed bob from red\n"
    assert json.loads(ok(lodged.lodge("teams", "ls", "red", "--json")))["members"] == [
        {"team": "red", "user": eve, "role": "OWNER"}]
    failed(lodged.lodge("teams", "rm", "red", "bob"))
    for words in (("ls", "a", "b"), ("add", "red"), ("rm", "red"), ("red",)):
        assert lodged.lodge("teams", *words, "--url", "http://127.0.0.1:1")[0] == 2
