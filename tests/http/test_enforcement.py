# SPDX-License-Identifier: Apache-2.0
"""A limit that this host cannot enforce is refused if a caller asks for it, and marked everywhere if it is a default."""
import contextlib
import ctypes
import json
import os
import subprocess
import tempfile

import pytest

import machine
from client import BUILD, KEY, Lodged, SocketLodged, keepers_of, wait_for

PROGRAMS = ("/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs", "/usr/bin/mkfs.btrfs")
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000


def hide_mkfs():
    """In the child, before lodged: a mount namespace in which mkfs.btrfs cannot be executed."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNS) == 0
    assert libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
    for path in PROGRAMS:
        if os.path.exists(path):
            assert libc.mount(b"/dev/null", path.encode(), None, MS_BIND, None) == 0


class WithoutBtrfs(SocketLodged):
    how = {"preexec_fn": hide_mkfs}


def is_btrfs(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], stdout=subprocess.PIPE).stdout == b"btrfs\n"


@pytest.fixture(scope="module")
def plain():
    """A lodged of root on a host without btrfs-progs."""
    with contextlib.closing(WithoutBtrfs()) as d:
        if is_btrfs(d.home):
            pytest.skip("the data directory is on btrfs")
        yield d


def names(problems):
    assert all(p["enforced"] is False and p["reason"] for p in problems), problems
    return {p["limit"] for p in problems}


def refused(answer, what):
    assert answer.status == 409 and answer.code == "CONFLICT", answer
    assert what in answer.message and "cannot be enforced on this host: " in answer.message, answer


def lodge(lodged, *words):
    """Standard output and standard error of the command line client."""
    done = subprocess.run([os.path.join(BUILD, "lodge"), *words], capture_output=True, text=True, check=True,
                          env=dict(os.environ, LODGE_URL=lodged.url, LODGE_API_KEY=KEY))
    return done.stdout, done.stderr


# ---- a host that enforces them ----------------------------------------------------------------


def test_only_inodes_are_not_enforced(client):
    health = client.get("/health").json
    assert names(health["limits_not_enforced"]) == {"inodes"} and health["config"]["limits_not_enforced"] == []
    record = client.session(client.enter(key="all"))
    assert record["limits_not_enforced"] == health["limits_not_enforced"]


def test_inodes_cannot_be_asked_for(client):
    refused(client.post("/v1/sessions", {"key": "files", "limits": {"inodes": 5000}}), "inodes")
    assert client.get("/v1/sessions/key:files").status == 404
    at = "/v1/sessions/" + client.enter(key="files")
    refused(client.patch(at, {"limits": {"inodes": 5000}}), "inodes")
    assert client.get(at).json["session"]["limits"]["inodes"] == 200000


def test_it_starts_if_limits_are_required():
    with contextlib.closing(Lodged(require_limits=1)) as d:
        assert d.client().get("/health").json["status"] == "ok" and "not enforced" not in d.log()


# ---- root without btrfs-progs -----------------------------------------------------------------


def test_health_and_the_log_name_the_reason(plain):
    with open(plain.home + ".log") as f:
        assert "not enforced on this host: disk limits (no btrfs volume: mkfs.btrfs (package btrfs-progs)" in f.read()
    health = plain.client().get("/health").json
    assert names(health["limits_not_enforced"]) == {"disk_bytes", "inodes"}
    assert all("btrfs-progs" in p["reason"] for p in health["limits_not_enforced"])
    assert names(health["config"]["limits_not_enforced"]) == {"max_workspace_bytes"}


def test_records_mark_defaults(plain):
    client = plain.client()
    for answer in (client.post("/v1/sessions", {"key": "marked"}), client.get("/v1/sessions/key:marked")):
        record = answer.json["session"]
        assert record["limits"]["disk_bytes"] == 1 << 30
        assert names(record["limits_not_enforced"]) == {"disk_bytes", "inodes"}
    listed = client.get("/v1/sessions").json["sessions"]
    assert all(names(s["limits_not_enforced"]) == {"disk_bytes", "inodes"} for s in listed)


def test_disk_limits_are_refused(plain):
    client = plain.client()
    refused(client.post("/v1/sessions", {"key": "no", "limits": {"disk_bytes": 64 << 20}}), "disk limits")
    assert client.get("/v1/sessions/key:no").status == 404
    refused(client.post("/v1/sessions", {"key": "no", "asleep": True, "limits": {"disk_bytes": 64 << 20}}), "disk limits")
    assert client.get("/v1/sessions/key:no").status == 404
    at = "/v1/sessions/" + client.enter(key="changed", limits={"memory_bytes": 64 << 20, "pids": 50})
    refused(client.patch(at, {"limits": {"disk_bytes": 64 << 20}}), "disk limits")
    assert client.get(at).json["session"]["limits"]["disk_bytes"] == 1 << 30
    assert client.patch(at, {"limits": {"memory_bytes": 96 << 20}}).status == 200


def test_policies_and_quotas_are_marked(plain):
    client = plain.client()
    limits = {"memory_bytes": 64 << 20, "disk_bytes": 64 << 20}
    policy = client.post("/v1/policies", {"name": "small", "limits": limits}).json["policy"]
    assert names(policy["limits_not_enforced"]) == {"disk_bytes"}
    assert "not enforced  disk_bytes: " in lodge(plain, "policy", "show", "small")[0]
    answer = client.put("/v1/users/ada/quota", {"memory_bytes": 1 << 30, "disk_bytes": 1 << 30}).json
    assert names(answer["quota_not_enforced"]) == {"disk_bytes"}
    shown = lodge(plain, "users", "quota", "ada")[0]
    assert "of 1.0G (sum of the limits of all sessions) (not enforced)\n" in shown.split("disk", 1)[1] and shown.count("(not enforced)") == 1, shown


def test_the_command_line_marks_them(plain):
    out, err = lodge(plain, "new", "cli")
    assert out.startswith("ses_") and err == "lodge: not enforced on this host: disk_bytes (see lodge inspect)\n"
    shown = lodge(plain, "show", "cli")[0]
    assert "memory 512M, disk 1.0G (not enforced), file 1.0G, 256 processes\n" in shown, shown
    assert "not enforced  disk_bytes: no btrfs volume: mkfs.btrfs (package btrfs-progs)" in shown, shown
    assert "NOT enforced  disk_bytes, inodes: no btrfs volume: " in lodge(plain, "status")[0]
    lines = [line.split() for line in lodge(plain, "top", "--once")[0].splitlines()]
    header = next(line for line in lines if "LIMIT" in line)
    assert next(line for line in lines if "cli" in line)[header.index("LIMIT")] == "-", lines


def test_a_later_start_reports_it_too(plain):
    """The data directory stays without a volume, even if mkfs.btrfs is there again."""
    plain.stop()
    plain.how = {}
    plain.start()
    reasons = {p["reason"] for p in plain.client().get("/health").json["limits_not_enforced"]}
    assert reasons == {"the data directory was made without a btrfs volume; use a new one"}


def test_it_does_not_start_if_limits_are_required():
    home = tempfile.mkdtemp(prefix="lodge-http-")
    if is_btrfs(home):
        os.rmdir(home)
        pytest.skip("the data directory is on btrfs")
    done = subprocess.run([os.path.join(BUILD, "lodged"), "--require-limits", "--listen", "127.0.0.1:0", "--data", home],
                          preexec_fn=hide_mkfs, capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, LODGE_API_KEY=KEY))
    wait_for(lambda: not keepers_of(home), 60)
    machine.remove_home(home)
    assert done.returncode == 1 and done.stdout == "", done
    assert "require_limits: disk limits cannot be enforced on this host: no btrfs volume: mkfs.btrfs" in done.stderr, done


def test_a_configured_limit_of_threads_is_refused():
    with contextlib.closing(WithoutBtrfs(threads_disk="100M")) as d:
        if is_btrfs(d.home):
            pytest.skip("the data directory is on btrfs")
        answer = d.client().post("/create_session", {"user_id": "u", "thread_id": "t"})
        assert answer.status == 409 and "disk limits cannot be enforced on this host" in answer.json["detail"], answer


def test_doctor_concludes_with_it(tmp_path):
    if is_btrfs(tmp_path):
        pytest.skip("the data directory is on btrfs")

    def doctor(*words):
        return subprocess.run([os.path.join(BUILD, "lodge"), "doctor", "--home", str(tmp_path / "home"), *words],
                              preexec_fn=hide_mkfs, stdout=subprocess.PIPE, text=True).stdout

    last = doctor().splitlines()[-1]
    assert last.startswith("sandboxes work; NOT enforced: disk limits ("), last
    assert names(json.loads(doctor("--json"))["limits_not_enforced"]) == {"disk_bytes", "inodes"}
