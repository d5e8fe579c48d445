# SPDX-License-Identifier: Apache-2.0
"""Giving up root: the user of the service, the owner of the data, and the remaining privileges."""
import os
import signal
import socket
import struct
import subprocess

import pytest

from client import BUILD, LODGED, Lodged, is_alive, wait_for
from roots import tiny_root

DEFAULT_ID = 60777


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def start(*options, env=None):
    return subprocess.run([LODGED, "--listen", "127.0.0.1:0", *options], capture_output=True, text=True, timeout=180,
                          env=dict(os.environ, **(env or {})), check=False)


def test_the_network_process_has_no_privileges(lodged, client):
    session = client.enter(key="k")
    s = status(lodged.process.pid)
    assert set(s["Uid"].split()) == {str(DEFAULT_ID)} and set(s["Gid"].split()) == {str(DEFAULT_ID)}
    assert not s["Groups"].strip() and s["NoNewPrivs"] == "1"
    assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == int(s["CapInh"], 16) == int(s["CapAmb"], 16) == 0
    assert int(s["CapBnd"], 16) == 0
    assert client.post(f"/v1/sessions/{session}/exec", {"command": "echo hi"}).json["stdout"] == "hi\n"


def test_lodged_cannot_access_files_of_guests(lodged, client):
    client.enter(key="k")
    st = os.stat(os.path.join(lodged.home, "keeper"))
    assert st.st_uid == 0 and st.st_mode & 0o777 == 0o700
    assert os.stat(lodged.home).st_uid == DEFAULT_ID and os.stat(lodged.home).st_mode & 0o777 == 0o700


def test_a_dead_keeper_is_restarted(lodged, client):
    session = client.enter(key="k")
    for _ in range(2):
        keeper = lodged.keepers()[0]
        os.kill(keeper, signal.SIGKILL)
        assert wait_for(lambda: client.post("/v1/sessions", {}).status == 201)
        assert keeper not in wait_for(lodged.keepers)
    assert client.post(f"/v1/sessions/{session}/exec", {"command": "echo hi"}).json["stdout"] == "hi\n"


def test_export_and_import_without_privileges(client):
    session = client.enter(key="k")
    assert client.call("PUT", f"/v1/sessions/{session}/files/f", b"x").status in (200, 201)
    snapshot = client.post(f"/v1/sessions/{session}/snapshots", {}).json["snapshot"]["id"]
    packed = client.get(f"/v1/snapshots/{snapshot}/archive")
    assert packed.status == 200 and packed.data[:4] == b"\x28\xb5\x2f\xfd"
    again = client.call("POST", "/v1/snapshots", packed.data, headers={"Content-Type": "application/zstd"})
    assert again.status == 201, again


def add_local(home, name, source):
    return subprocess.run([os.path.join(BUILD, "lodge"), "template", "create", "--local", "--data", home, name, source],
                          capture_output=True, text=True, timeout=180, check=False)


def test_the_service_owns_a_template_that_root_adds_beside_it(tmp_path):
    (tmp_path / "a.tar").write_bytes(tiny_root(("x", b"1")))
    d = Lodged()
    try:
        templates, outside = os.path.join(d.home, "templates"), tmp_path / "outside"
        assert not os.path.exists(templates)
        outside.mkdir()
        os.symlink(outside, templates)  # of a service that was taken over
        refused = add_local(d.home, "linked", str(tmp_path / "a.tar"))
        assert refused.returncode == 1 and "ermission denied" in refused.stderr and not os.listdir(outside), refused
        os.unlink(templates)
        added = add_local(d.home, "mine", str(tmp_path / "a.tar"))
        assert added.returncode == 0, added
        for path in ("", "mine", "mine/template.json"):
            st = os.stat(os.path.join(templates, path))
            assert (st.st_uid, st.st_gid) == (DEFAULT_ID, DEFAULT_ID), path
        client = d.client()
        assert "mine" in [t["name"] for t in client.get("/v1/templates").json["templates"]]
        answer = client.call("POST", "/v1/templates/other", tiny_root(("y", b"1")), headers={"Content-Type": "application/octet-stream"})
        assert answer.status == 201, answer
        os.chown(templates, 0, 0)  # as an older version left it
        refused = add_local(d.home, "third", str(tmp_path / "a.tar"))
        assert refused.returncode == 1 and f"chown -R {DEFAULT_ID}:{DEFAULT_ID} {templates}" in refused.stderr, refused
    finally:
        d.close()


def test_all_processes_end_together():
    d = Lodged()
    try:
        d.client().enter(key="k")
        pids = [d.starter(), *d.keepers()]
        assert len(pids) == 2
        d.stop(signal.SIGKILL)
        assert wait_for(lambda: not any(is_alive(p) for p in pids))
        d.start()
    finally:
        d.close()


def test_a_data_directory_of_root_is_taken_over():
    """As liblodge or an older lodged left it; the sessions and their files are preserved."""
    d = Lodged()
    try:
        client = d.client()
        session = client.enter(key="k")
        client.call("PUT", f"/v1/sessions/{session}/files/f", b"x")
        client.post(f"/v1/sessions/{session}/hibernate")
        d.stop()
        for name in os.listdir(os.path.join(d.home, "keeper")):
            os.rename(os.path.join(d.home, "keeper", name), os.path.join(d.home, name))
        os.rmdir(os.path.join(d.home, "keeper"))
        for path, dirs, files in os.walk(d.home):
            for name in [".", *dirs, *files]:
                os.chown(os.path.join(path, name), 0, 0, follow_symlinks=False)
        d.start()
        client = d.client()
        assert client.get(f"/v1/sessions/{session}/files/f").data == b"x"
        assert os.stat(os.path.join(d.home, "lodge.db")).st_uid == DEFAULT_ID
    finally:
        d.close()


@pytest.mark.parametrize("user, says", [("root", "as root"), ("0", "as root"), ("nosuch-user", "unknown user"),
                                        ("-1", "unknown user"), ("12x", "unknown user")])
def test_invalid_users_are_refused(tmp_path, user, says):
    r = start("--data", str(tmp_path), "--user", user)
    assert r.returncode == 2 and "user" in r.stderr and says in r.stderr, r.stderr
    assert os.listdir(tmp_path) == []


def test_the_user_setting_accepts_a_name():
    d = Lodged(user="daemon")
    try:
        assert status(d.process.pid)["Uid"].split()[0] == "1"
        assert d.client().enter(key="k")
    finally:
        d.close()


def test_an_unreachable_data_directory_is_refused(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    r = start("--data", str(closed / "data"))
    assert r.returncode == 1 and "cannot access it" in r.stderr, r.stderr


def test_a_directory_of_another_user_is_refused(tmp_path):
    os.chown(tmp_path, 4242, 4242)
    r = start("--data", str(tmp_path))
    assert r.returncode == 1 and "4242" in r.stderr, r.stderr


def test_stop_sandboxes_hibernates_at_shutdown():
    d = Lodged(stop_sandboxes=1)
    try:
        session = d.client().enter(key="k")
        assert d.stop() == 0
        d.start()
        assert d.client().get(f"/v1/sessions/{session}").json["session"]["state"] == "hibernated"
    finally:
        d.close()


def test_a_directory_with_other_files_is_refused_unchanged(tmp_path):
    (tmp_path / "mine").write_text("x")
    (tmp_path / "store").mkdir()
    before = {p.name: p.stat().st_uid for p in (tmp_path, *tmp_path.iterdir())}
    r = start("--data", str(tmp_path))
    assert r.returncode == 1 and "contains files that are not lodge" in r.stderr, r.stderr
    assert {p.name: p.stat().st_uid for p in (tmp_path, *tmp_path.iterdir())} == before


def keeper_of(home, identity):
    """Run the keeper as the starter would, without an engine; return its status and output."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        k = subprocess.Popen([os.path.join(BUILD, "lodge-keeper"), "--home", home, "--closed", identity],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             preexec_fn=lambda: os.dup2(theirs.fileno(), 3), pass_fds=(3,))
        theirs.close()
        ours.send(bytes(16))
        said = ours.recv(65536)
    k.stderr.close()
    return k.wait(180), said


def test_a_replaced_keeper_directory_is_refused(tmp_path):
    """A compromised lodged could put a link or another directory there."""
    victim, keeper = tmp_path / "victim", tmp_path / "keeper"
    victim.mkdir(0o755)
    keeper.mkdir(0o700)
    st = os.stat(keeper)
    identity = f"{st.st_dev:x}.{st.st_ino:x}"
    keeper.rename(tmp_path / "away")
    keeper.symlink_to(victim)
    assert b"keeper" in keeper_of(str(keeper), identity)[1]
    keeper.unlink()
    keeper.mkdir(0o755)
    assert b"is not the directory that --closed names" in keeper_of(str(keeper), identity)[1]
    assert os.stat(victim).st_mode & 0o777 == 0o755 and not os.listdir(victim) and not os.listdir(keeper)


def test_the_keeper_of_a_service_gets_the_closed_option(lodged, client):
    client.enter(key="k")
    with open(f"/proc/{lodged.keepers()[0]}/cmdline") as f:
        words = f.read().split("\0")
    st = os.stat(lodged.keeper_home())
    assert words[words.index("--closed") + 1] == f"{st.st_dev:x}.{st.st_ino:x}"


@pytest.mark.parametrize("program", ["lodge", "lodged", "lodge-keeper", "lodge-init", "lodge-zstd"])
def test_programs_are_loaded_at_random_addresses(program):
    with open(os.path.join(BUILD, program), "rb") as f:
        assert struct.unpack("<H", f.read(18)[16:]) == (3,)  # ET_DYN
