# SPDX-License-Identifier: Apache-2.0
"""lodge snapshot, snapshots, fork, rollback, diff, export, import."""
import json
import signal
import subprocess
import threading

import pytest

from client import wait_for
from lodge import LODGE
from relay import Relay
from terminal import Terminal


@pytest.fixture
def one(client):
    """A session with files, and a snapshot `first` of them."""
    sid = client.enter(key="one")
    client.run(sid, "mkdir -p d/e; echo a > d/a; echo b > d/b; ln -s a d/l; chmod 750 d/e; echo t > top")
    assert client.post(f"/v1/sessions/{sid}/snapshots", {"name": "first"}).status == 201
    yield sid
    client.delete("/v1/sessions/" + sid)


def lines(result):
    assert result[0] == 0, result
    return result[1].decode().splitlines()


def sessions(client):
    return {s["id"] for s in client.get("/v1/sessions").json["sessions"]}


def test_snapshots(lodged, client, one):
    made = lines(lodged.lodge("snapshot", "one", "--name", "second"))
    assert len(made) == 1 and made[0].startswith("snp_") and " " not in made[0]
    status, _, err = lodged.lodge("snapshot", "rm", "--yes", "second")
    assert status == 1 and "--session" in err
    answer = json.loads(lodged.lodge("snapshot", "one", "--stop", "--json")[1])
    assert answer["snapshot"]["session"] == one
    listed = lines(lodged.lodge("snapshots", "one"))
    assert listed[0].split() == ["SNAPSHOT", "NAME", "AGE", "SIZE"] and len(listed) == 4
    assert all(line.split()[-1] == "counting" or line.split()[-1][0].isdigit() for line in listed[1:]), listed
    assert [s["name"] for s in json.loads(lodged.lodge("snapshots", "one", "--json")[1])["snapshots"]] == [
        "first", "second", None]
    assert len(lines(lodged.lodge("snapshots", "-q", "one"))) == 3
    assert lodged.lodge("snapshot", "rm", "--yes", answer["snapshot"]["id"])[0] == 0
    status, out, _ = lodged.lodge("snapshot", "rm", "--yes", "--session", "one", "second", "nosuch", "--json")
    removed, failed = (json.loads(line) for line in out.splitlines())
    assert status == 1 and removed == {"removed": "second"} and failed["operand"] == "nosuch"
    assert len(lines(lodged.lodge("snapshots", "-q", "one"))) == 1
    status, _, err = lodged.lodge("snapshot", "one", "--name", "first")
    assert status == 1 and "first" in err
    status, _, err = lodged.lodge("snapshot", "create")
    assert status == 2 and err == "lodge: too few operands; usage: lodge snapshot create [--name NAME] SESSION...\n"
    assert lodged.lodge("snapshots", "nosuch")[0] == 1


def test_all_snapshots(lodged, client, one):
    """Includes snapshots of deleted sessions and imported ones; each can be removed."""
    bare, gone = client.enter(user="bob"), client.enter(key="gone", user="ann")
    made = [lines(lodged.lodge("snapshot", s, "--name", "n"))[0] for s in (bare, "gone")]
    made.append(lines(lodged.lodge("import", "--name", "moved", data=lodged.lodge("export", made[0])[1]))[0])
    assert client.delete("/v1/sessions/" + gone).status == 200
    shown = lines(lodged.lodge("snapshots"))
    assert shown[0].split() == ["SNAPSHOT", "NAME", "SESSION", "AGE", "SIZE"]
    rows = {w[0]: w[1:-2] for w in (line.split() for line in shown[1:])}
    assert [rows[s] for s in made] == [["n", bare], ["n", gone, "(deleted)"], ["moved", "(imported)"]]
    assert ["first", "one"] in rows.values()
    assert list(rows) == lines(lodged.lodge("snapshots", "-q"))
    every = json.loads(lodged.lodge("snapshots", "--json")[1])
    assert list(every) == ["snapshots"] and [s["id"] for s in every["snapshots"]] == list(rows)
    assert lines(lodged.lodge("snapshots", "--user", "ann", "-q")) == [made[1]]
    assert lines(lodged.lodge("snapshots", gone, "-q")) == [made[1]]
    assert json.loads(lodged.lodge("snapshots", "--user", "nosuch", "--json")[1]) == {"snapshots": []}
    status, _, err = lodged.lodge("snapshots", "--user", "ann", "one")
    assert status == 2 and "--user" in err
    assert lodged.lodge("snapshot", "rm", "--yes", *made)[0] == 0
    assert lines(lodged.lodge("snapshots", "-q")) == [s for s in rows if s not in made]
    assert client.delete("/v1/sessions/" + bare).status == 200


def test_fork(lodged, client, one):
    status, out, _ = lodged.lodge("fork", "one", "--key", "two", "--snapshot", "first")
    assert status == 0 and out.startswith(b"two (ses_")
    assert client.run("key:two", "cat d/a") == "a\n"
    more = json.loads(lodged.lodge("fork", "one", "--count", "2", "--json")[1])["sessions"]
    for s in (*[m["id"] for m in more], "key:two"):
        assert client.delete("/v1/sessions/" + s).status == 200
    for words, status in ((("--count", "2", "--key", "x"), 2), (("--count", "0"), 2), (("--snapshot", "nosuch"), 1)):
        assert lodged.lodge("fork", "one", *words)[0] == status


def test_rollback(lodged, client, one):
    client.run(one, "echo newer > top")
    t = Terminal("rollback", "one", "first", env=lodged.env())
    t.wait("Files written since then are lost.")
    assert b"Restore one from first, taken " in t.seen
    t.type("no\n")
    assert t.end() == 1 and client.run(one, "cat top") == "newer\n"
    status, out, _ = lodged.lodge("rollback", "--yes", "one", "first", "--yes")
    assert status == 0 and b"restored one (ses_" in out and b" from first\n" in out and client.run(one, "cat top") == "t\n"
    assert json.loads(lodged.lodge("rollback", "--yes", "one", "first", "--json")[1])["session"]["id"] == one
    assert lodged.lodge("fork", "-n", "2", "one")[0] == 2  # -n means --name in other commands
    status, _, err = lodged.lodge("rollback", "--yes", "one", "nosuch")
    assert status == 1 and "lodge snapshot ls" in err


def test_diff(lodged, client, one):
    before = sessions(client)
    assert lines(lodged.lodge("diff", "one")) == []
    client.run(one, "echo aa > d/a; rm d/b; ln -sf top d/l; chmod 700 d/e; echo n > d/new; mkdir dir; "
                    "printf 'x\\033[31m' > 'top\033[31m'")
    changed = ["M d/a", "D d/b", "M d/e/", "M d/l", "A d/new", "A dir/"]
    assert lines(lodged.lodge("diff", "one")) == changed + ["A top?[31m"]
    assert lines(lodged.lodge("diff", "one", "first", "d")) == changed[:5]
    assert lines(lodged.lodge("diff", "one", "./d/e")) == []
    assert lines(lodged.lodge("diff", "one", "first", "dir")) == []
    answer = json.loads(lodged.lodge("diff", "one", "first", "d", "--json")[1])
    assert answer["snapshot"]["name"] == "first"
    assert answer["changes"][0] == {"change": "M", "path": "d/a", "type": "file"}
    client.run(one, "touch -d 2001-01-01 top; cp -p d/a d/aa; cat d/aa > d/a; touch -r d/aa d/a")
    assert "M top" in lines(lodged.lodge("diff", "one"))
    for words, text in (((), "no snapshot"), (("nosuch",), "nosuch"), (("first", "nosuch"), "nosuch")):
        at = "one" if words else client.enter(key="bare")
        status, _, err = lodged.lodge("diff", at, *words)
        assert status == 1 and text in err, (words, err)
    client.delete("/v1/sessions/key:bare")
    assert sessions(client) == before  # the forks were destroyed


def test_an_interrupted_diff_destroys_its_fork(lodged, client, one):
    client.run(one, "mkdir -p m/{1..60}/{1..60}")
    before = sessions(client)
    p = lodged.start_lodge("diff", "one")
    wait_for(lambda: sessions(client) != before or p.poll() is not None, pause=0.005)
    p.send_signal(signal.SIGINT)
    assert p.wait(180) in (130, 0)
    p.stdout.close()
    p.stderr.close()
    assert wait_for(lambda: sessions(client) == before)


def test_export_and_import(lodged, client, one, tmp_path):
    status, data, _ = lodged.lodge("export", "one")
    assert status == 0 and data[:4] == b"\x28\xb5\x2f\xfd"
    assert len(lines(lodged.lodge("snapshots", "-q", "one"))) == 1  # the temporary snapshot was removed
    first = lines(lodged.lodge("snapshots", "-q", "one"))[0]
    assert lodged.lodge("export", first)[1][:4] == data[:4]
    status, out, _ = lodged.lodge("import", "--name", "moved", data=data)
    made = out.decode().strip()
    assert status == 0 and made.startswith("snp_")
    sid = lodged.lodge("new", "--snapshot", made)[1].decode().strip()
    assert client.run(sid, "cat d/a top") == "a\nt\n"
    assert client.delete("/v1/sessions/" + sid).status == 200
    again = json.loads(lodged.lodge("import", "--json", data=data)[1])["snapshot"]["id"]
    assert lodged.lodge("snapshot", "rm", "--yes", again, made)[0] == 0
    assert lodged.lodge("import", data=b"no archive")[0] == 1
    assert lodged.lodge("export", "nosuch")[0] == 1
    t = Terminal("export", "one", env=lodged.env())
    assert t.end() == 2 and b"add > FILE" in t.seen


def test_an_interrupted_export_removes_its_snapshot(lodged, client, one):
    """The signal arrives while the snapshot is being removed."""
    asked, go_on = threading.Event(), threading.Event()

    def before(line):
        if line.startswith("DELETE /v1/snapshots/"):
            asked.set()
            go_on.wait(180)

    with Relay(lodged, before) as relay:
        p = lodged.start_lodge("export", "one", env=lodged.env() | {"LODGE_URL": relay.url})
        reader = threading.Thread(target=p.stdout.read, daemon=True)
        reader.start()
        assert asked.wait(180)
        p.send_signal(signal.SIGINT)
        assert wait_for(lambda: p.poll(), 0.5) is None  # it waits for the response without a limit
        go_on.set()
        assert p.wait(180) == 128 + signal.SIGINT
        reader.join()
        p.stdout.close()
        p.stderr.close()
    assert [s["name"] for s in client.get(f"/v1/sessions/{one}/snapshots").json["snapshots"]] == ["first"]


def test_export_reports_a_full_disk(lodged, one):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([LODGE, "export", "one"], stdout=full, stderr=subprocess.PIPE, env=lodged.env(), check=False)
    assert done.returncode == 1 and b"No space" in done.stderr
