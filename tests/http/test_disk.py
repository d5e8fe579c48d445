# SPDX-License-Identifier: Apache-2.0
"""A full disk below the data directory: what is refused, what goes on, and that everything works again afterwards."""
import contextlib
import http.client
import os
import re
import signal
import subprocess
import tempfile
import threading

import pytest

from client import LODGED, Lodged, wait_for
from machine import descendants, is_alive, mounted, name_of, remove_home

LODGE = os.path.join(os.path.dirname(LODGED), "lodge")
IMAGE = "2200M"
SESSIONS = 4
WRITE = "head -c 300M /dev/zero > big; sync"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


class Disk:
    """A small ext4 with a lodged in it, and a file that takes the rest of its space."""

    def __init__(self, root):
        self.root, self.filler = str(root), os.path.join(root, "filler")
        self.lodged = Lodged(below=root)
        self.client = self.lodged.client()
        self.statuses = []
        call = self.client.call

        def counted(method, path, *args, **kw):
            answer = call(method, path, *args, **kw)
            self.statuses.append((answer.status, method, path, answer))
            return answer
        self.client.call = counted

    def free(self):
        fs = os.statvfs(self.root)
        return fs.f_bavail * fs.f_frsize

    def health(self):
        return self.client.get("/health").json

    def take(self, leave):
        """Others take the space, in steps, until this much is left."""
        with open(self.filler, "ab") as f:
            while self.free() > leave + (1 << 20):
                size = os.fstat(f.fileno()).st_size
                os.posix_fallocate(f.fileno(), size, min(32 << 20, self.free() - leave))

    def take_all(self):
        with open(self.filler, "ab", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))

    def give_back(self):
        os.unlink(self.filler)

    def start_writers(self, ids):
        """Every session writes more than there is."""
        def write(sid):
            self.client.post(f"/v1/sessions/{sid}/exec", {"command": WRITE})
        threads = [threading.Thread(target=write, args=(sid,)) for sid in ids]
        for t in threads:
            t.start()
        return threads

    def kill(self):
        """lodged and its keepers die at once; the sandboxes live on."""
        below = descendants(self.lodged.process.pid)
        self.lodged.process.kill()
        for pid in below:
            if name_of(pid) in ("lodge-keeper", "lodge-volume"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.lodged.process.wait()

    def restart(self):
        self.lodged.start()
        fresh = self.lodged.client()
        self.client.host, self.client.port = fresh.host, fresh.port

    def check_answers(self):
        assert not [s for s in self.statuses if s[0] == 500]


def volume_watcher(disk):
    found = [pid for pid in descendants(disk.lodged.process.pid) if name_of(pid) == "lodge-volume"]
    return found[0] if found else None


@pytest.fixture
def disk():
    with tempfile.TemporaryDirectory(prefix="lodge-disk-") as base, contextlib.ExitStack() as stack:
        os.chmod(base, 0o755)
        image, root = os.path.join(base, "image"), os.path.join(base, "disk")
        os.mkdir(root)
        subprocess.run(["truncate", "-s", IMAGE, image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        stack.enter_context(mounted(root, "-o", "loop", image))
        d = Disk(root)
        try:
            yield d
            d.client.clear()
        finally:
            with contextlib.suppress(FileNotFoundError):
                d.give_back()  # of a test that failed: nothing ends quickly on a full disk
            d.lodged.stop()
            remove_home(d.lodged.home)


def sessions(disk):
    ids = [disk.client.enter(key=f"k{i}", user=f"u{i}") for i in range(SESSIONS)]
    for i, sid in enumerate(ids):
        assert disk.client.put(f"/v1/sessions/{sid}/files/before", f"text {i}".encode()).status == 201
        disk.client.run(sid, "sync")
    assert wait_for(lambda: volume_watcher(disk))
    tokens = {"scope": "tenant"}, {"scope": "session", "user": "u0"}, {"scope": "session:" + ids[0]}
    disk.tenants = [disk.lodged.new_key(**t)[1] for t in tokens]
    return ids


def check_refused(answer):
    assert answer.status == 507 and answer.code == "LIMIT_DISK", answer
    assert "the server's disk is full" in answer.message and "/" not in answer.message, answer


def check_no_numbers(disk, sid):
    """How much space the host has is for administrators."""
    admin = disk.client.put(f"/v1/sessions/{sid}/files/more", bytes(1 << 20))
    assert re.search("[0-9]+M", admin.message), admin
    for client in disk.tenants:
        refused = [client.put(f"/v1/sessions/{sid}/files/more", bytes(1 << 20)),
                   client.post(f"/v1/sessions/{sid}/snapshots", {})]
        health = client.get("/health").json
        for answer in refused:
            check_refused(answer)
            assert not re.search("[0-9]", answer.message), answer
        assert not re.search("[0-9]", health["disk"]["reason"]) and health["disk"]["state"] == "full"
        assert all(value is None for name, value in health["disk"].items() if name.endswith("_bytes")), health["disk"]


def check_full(disk, ids):
    """Reading, deleting and hibernating go on; what is new is refused, and it says why."""
    c = disk.client
    assert len(c.get("/v1/sessions").json["sessions"]) == len(ids)
    assert c.get(f"/v1/sessions/{ids[0]}/files/before").data == b"text 0"
    check_refused(c.post("/v1/sessions", {"key": "new", "user": "u"}))
    check_refused(c.post(f"/v1/sessions/{ids[0]}/snapshots", {}))
    check_refused(c.post(f"/v1/sessions/{ids[0]}/fork", {}))
    h = c.get("/health")
    assert h.status == 200 and h.json["status"] == "degraded", h
    assert h.json["disk"]["state"] == "full" and "the server's disk is full" in h.json["disk"]["reason"]
    assert h.json["disk"]["free_bytes"] < h.json["disk"]["reserve_bytes"] < h.json["disk"]["total_bytes"]
    assert c.get("/ready").json == {"ready": True, "disk": "full"}
    assert b"lodge_disk_full 1\n" in c.get("/metrics").data


def check_works(disk, ids):
    c = disk.client
    assert wait_for(lambda: disk.health()["status"] == "ok"), disk.health()
    for sid in ids:
        key = c.session(sid)["key"]
        assert c.enter(key=key, user="u" + key[1:]) == sid
        c.run(sid, "rm -f big more")
        assert c.run(sid, "cat before; echo ' again' > after; cat after") == f"text {key[1:]} again\n"
        assert c.put(f"/v1/sessions/{sid}/files/more", bytes(1 << 20)).status in (200, 201)
    new = c.enter(key="new", user="u")
    assert c.run(new, "echo new > f; cat f") == "new\n"
    assert c.post(f"/v1/sessions/{new}/snapshots", {}).status == 201


def test_a_full_disk(disk):
    ids = sessions(disk)
    h = disk.health()
    assert h["status"] == "ok" and h["disk"]["state"] == "ok" and not h["disk"]["volume_reserved"]
    reserve = h["disk"]["reserve_bytes"]
    writers = disk.start_writers(ids)
    disk.take(leave=3 * reserve)
    assert wait_for(lambda: disk.health()["disk"]["volume_reserved"]), disk.health()
    disk.take_all()
    for t in writers:
        t.join()
    assert wait_for(lambda: disk.health()["disk"]["state"] == "full")
    disk.take_all()
    check_refused(disk.client.put(f"/v1/sessions/{ids[0]}/files/more", bytes(1 << 20)))
    check_full(disk, ids)
    check_no_numbers(disk, ids[0])
    status = subprocess.run([LODGE, "status"], stdout=subprocess.PIPE, text=True, check=False,
                            env=dict(os.environ, LODGE_URL=f"http://{disk.client.host}:{disk.client.port}",
                                     LODGE_API_KEY=disk.client.key))
    assert status.returncode == 1 and "the server's disk is full" in status.stdout
    assert re.search("^last error +LIMIT_DISK at [-0-9: ]+.*: .*disk is full", status.stdout, re.MULTILINE), status.stdout
    assert disk.client.delete("/v1/sessions/" + ids.pop()).status == 200
    hibernated = disk.client.post(f"/v1/sessions/{ids[1]}/hibernate", {})
    assert hibernated.status == 200 and hibernated.json["session"]["state"] == "hibernated"

    disk.kill()
    disk.restart()
    check_full(disk, ids)
    disk.give_back()
    check_works(disk, ids)
    disk.check_answers()


@pytest.mark.parametrize("restart", [False, True])
def test_a_volume_that_failed_is_mounted_again(disk, restart):
    """The volume is not watched, so it meets the full disk and turns read-only."""
    ids = sessions(disk)
    old = {sid: disk.client.session(sid)["sandbox"] for sid in ids}
    watcher = volume_watcher(disk)
    os.kill(watcher, signal.SIGSTOP)
    disk.take(leave=64 << 20)
    for t in disk.start_writers(ids):
        t.join()
    assert wait_for(lambda: disk.health()["disk"]["state"] != "ok")
    assert len(disk.client.get("/v1/sessions").json["sessions"]) == len(ids)
    if restart:
        disk.kill()
        disk.restart()
    disk.give_back()
    check_works(disk, ids)
    now = [disk.client.session(sid) for sid in ids]
    deaths = [s["last_death"]["code"] for s in now]
    assert all(s["sandbox"] != old[s["id"]] for s in now) and "disk_full" in deaths, deaths
    assert not is_alive(watcher)
    disk.check_answers()


def fill_the_store(disk, sid):
    """Until the store refuses a change; return the limits of the last one that it took."""
    disk.take_all()
    at, taken = "/v1/sessions/" + sid, disk.client.session(sid)["limits"]
    for i in range(2000):
        body = {"metadata": {"filler": os.urandom(30000).hex()}, "limits": {"memory_bytes": (64 + i % 2) << 20, "pids": 50 + i % 2}}
        answer = disk.client.patch(at, body)
        if answer.status != 200:
            assert answer.status == 507 and answer.code == "LIMIT_DISK", answer
            return taken
        taken = answer.json["session"]["limits"]
    raise AssertionError("the disk is full, but the store takes everything")


def test_a_change_of_limits_that_cannot_be_recorded_is_undone(disk):
    sid = disk.client.enter(key="k")
    taken = fill_the_store(disk, sid)
    now = disk.client.session(sid)
    assert now["limits"] == taken
    found = disk.lodged.cgroup_limits(now)
    assert taken["memory_bytes"] in map(int, (v for k, v in found.items() if k.startswith("memory"))), (found, taken)
    disk.give_back()


def test_the_processes_of_a_session_end_before_its_deletion_uses_the_reserve(disk):
    sid = disk.client.enter(key="k")
    disk.client.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 1000", "background": True, "timeout_ms": 0})
    disk.lodged.stop()
    disk.lodged.settings["crash_at"] = "reserve:stopped"
    disk.restart()
    init = disk.lodged.init_of(disk.client.session(sid))
    assert is_alive(init)
    fill_the_store(disk, sid)
    with pytest.raises((OSError, http.client.HTTPException)):
        disk.client.delete("/v1/sessions/" + sid)
    disk.lodged.process.wait(60)
    assert wait_for(lambda: not is_alive(init), 10)
    disk.give_back()
    del disk.lodged.settings["crash_at"]
    disk.restart()
    assert disk.client.delete("/v1/sessions/" + sid).status == 200


def test_the_disk_limit_of_a_session_is_shown(client):
    """df shows the file system of all sandboxes, so commands have it in a variable."""
    for body, size in (({}, 1 << 30), ({"limits": {"disk_bytes": 64 << 20}}, 64 << 20)):
        sid = client.enter(**body)
        for expected in (size, 128 << 20):
            assert client.run(sid, "echo $LODGE_DISK_BYTES") == f"{expected}\n"
            assert client.run(sid, "echo $LODGE_DISK_BYTES", env={"A": "b"}) == f"{expected}\n"
            stats = client.get(f"/v1/sessions/{sid}/stats").json["stats"]
            assert stats["disk_limit_bytes"] == expected and client.session(sid)["limits"]["disk_bytes"] == expected
            assert client.patch(f"/v1/sessions/{sid}", {"limits": {"disk_bytes": 128 << 20}}).status == 200
        assert client.post(f"/v1/sessions/{sid}/hibernate", {}).status == 200
        assert client.run(sid, "echo $LODGE_DISK_BYTES") == f"{128 << 20}\n"
        assert client.delete("/v1/sessions/" + sid).status == 200
