# SPDX-License-Identifier: Apache-2.0
"""A full disk or output: the error is reported, and no partial file is left."""
import os
import subprocess

import pytest

from client import KEY
from lodge import LODGE

NO_SPACE = "No space left on device"


@pytest.fixture
def small(tmp_path):
    """A full file system, in which empty files can still be created."""
    there = tmp_path / "small"
    there.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", there], check=True)
    try:
        with open(there / "filler", "wb", buffering=0) as f, pytest.raises(OSError):
            while True:
                f.write(bytes(4096))
        yield there
    finally:
        subprocess.run(["umount", there], check=True)


@pytest.fixture
def one(client):
    sid = client.enter(key="one", user="ada")
    client.run(sid, "mkdir -p d/e; head -c 300000 /dev/urandom > big; cp big d/e/big; echo text > d/text")
    yield sid
    for s in client.get(f"/v1/sessions/{sid}/snapshots").json["snapshots"]:
        client.delete("/v1/snapshots/" + s["id"])
    client.delete("/v1/sessions/" + sid)


def check_no_space(result):
    status, _, said = result
    assert status not in (0, 141) and NO_SPACE in said and said.startswith("lodge: ") and said.count("\n") == 1, result
    return status


@pytest.mark.parametrize("words", [
    ["ls"], ["ls", "-q"], ["ls", "--json"], ["show", "one"], ["show", "--json", "one"], ["ps", "-a", "one"],
    ["ps", "--json", "one"], ["snapshots", "one"], ["users"], ["templates"], ["keys"], ["policy", "ls"], ["events"],
    ["events", "--json"], ["top"], ["status"], ["exec", "one", "echo", "x"], ["exec", "--json", "one", "true"],
    ["exec", "-d", "one", "true"], ["logs", "one"], ["logs", "--json", "one"], ["cp", "one:d/text", "-"], ["export", "one"],
    ["run", "echo", "x"], ["run", "--json", "true"], ["template", "ls"], ["policy", "test", "true"], ["completion", "bash"],
    ["help"], ["help", "ls"], ["ls", "--help"], ["--version"]])
def test_a_full_stdout_is_reported(lodged, client, one, tmp_path, words):
    client.run(one, "echo something")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([LODGE, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=180,
                              env=lodged.env(LODGE_HOME=str(tmp_path / "home")), check=False)
    check_no_space((done.returncode, None, done.stderr.decode()))
    assert client.get(f"/v1/sessions/{one}/snapshots").json["snapshots"] == []  # the temporary snapshot of the export was removed


def test_diff(lodged, client, one):
    assert lodged.lodge("snapshot", "one")[0] == 0
    client.run(one, "echo more > d/more")
    before = client.get("/v1/sessions").json["sessions"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run([LODGE, "diff", "one"], stdout=full, stderr=subprocess.PIPE, env=lodged.env(), check=False)
    check_no_space((done.returncode, None, done.stderr.decode()))
    assert [s["id"] for s in client.get("/v1/sessions").json["sessions"]] == [s["id"] for s in before]


def test_cp_of_a_file(lodged, one, small):
    (small / "old").touch()
    for target in ("new", "old", "."):
        assert check_no_space(lodged.lodge("cp", "one:big", str(small / target))) == 1
        assert sorted(os.listdir(small)) == ["filler", "old"], target
    assert (small / "old").stat().st_size == 0


def test_cp_of_a_directory(lodged, one, small):
    (small / "old").mkdir()
    for target in ("new", "old"):
        status, _, said = lodged.lodge("cp", "one:d", str(small / target))
        assert status == 1 and NO_SPACE in said and "nothing was copied" in said
        assert sorted(os.listdir(small)) == ["filler", "old"] and not os.listdir(small / "old"), target


def test_export_to_a_file(lodged, client, one, small):
    with open(small / "file.tar.zst", "wb") as f:
        done = subprocess.run([LODGE, "export", "one"], stdout=f, stderr=subprocess.PIPE, env=lodged.env(), check=False)
    check_no_space((done.returncode, None, done.stderr.decode()))
    assert client.get(f"/v1/sessions/{one}/snapshots").json["snapshots"] == []


def test_login(lodged, small):
    env = lodged.env(HOME=str(small))
    check_no_space(lodged.lodge("login", env=env))
    assert os.listdir(small / ".config" / "lodge") == []
    (small / "filler").unlink()
    assert lodged.lodge("login", env=env)[0] == 0
    config = small / ".config" / "lodge" / "config"
    before = config.read_text()
    assert KEY in before
    with open(small / "filler", "wb", buffering=0) as f, pytest.raises(OSError):
        while True:
            f.write(bytes(4096))
    check_no_space(lodged.lodge("login", env=env))
    assert os.listdir(config.parent) == ["config"] and config.read_text() == before
