# SPDX-License-Identifier: Apache-2.0
"""GET /api/sandbox/status and /reconnect for a sandbox that is running, dead, expired or not responding, and the
mistakes of earlier systems."""
import contextlib
import os
import signal
import time

import pytest

from client import Lodged, wait_for
from machine import stopped
from test_chat import LIFECYCLE, call, CALLS, ok, reconnect, refused, sandbox, status, stub
from test_life import stored, stored_when_quiet


def new(client):
    """A session with a sandbox, and its record."""
    sid = ok(sandbox(client, "", stub(client, accountId="ann", idleTimeoutMs=600000)["id"]))["sessionId"]
    return sid, client.session(sid)


@pytest.fixture
def running(client):
    sid, _ = new(client)
    yield sid
    assert client.delete("/v1/sessions/" + sid).status in (200, 410)


@pytest.fixture(scope="module")
def hasty():
    """Gives up after one probe without a reply."""
    with contextlib.closing(Lodged(probe_timeout="5s", probe_failures=1)) as d:
        yield d


@pytest.fixture(scope="module")
def patient():
    with contextlib.closing(Lodged(probe_timeout="1s", probe_failures=1000)) as d:
        yield d


# ---- alive --------------------------------------------------------------------------------------


def test_connected(client, running):
    before = client.session(running)
    for _ in range(3):
        a = reconnect(client, running)
        assert set(a) == {"status", "hasSnapshot", "expiresAt", "lifecycle", "verified", "sessionId"}
        assert set(a["lifecycle"]) == LIFECYCLE
        assert (a["status"], a["verified"], a["hasSnapshot"]) == ("connected", True, False)
        assert a["expiresAt"] == a["lifecycle"]["sandboxExpiresAt"] == before["expires_at"]
        assert a["lifecycle"]["lastActivityAt"] == before["last_activity_at"]
        assert a["lifecycle"]["hibernateAfter"] == before["hibernate_at"]
    assert client.session(running) == before  # neither deadline changed


def test_status_and_reconnect_write_nothing(lodged, client, running):
    stubbed, asleep = stub(client)["id"], new(client)[0]
    ok(sandbox(client, "", asleep, "DELETE"))
    before = stored_when_quiet(lodged)
    for sid in (running, stubbed, asleep):
        record = client.session(sid)
        for _ in range(3):
            status(client, sid)
            reconnect(client, sid)
            for path in ("status", "reconnect"):
                assert client.call("HEAD", f"/api/sandbox/{path}?sessionId={sid}").status == 200
        assert client.session(sid) == record
    assert stored(lodged) == before
    for sid in (stubbed, asleep):
        client.delete("/v1/sessions/" + sid)


def test_sessions_created_by_v1(client):
    """With a key, a title that is not a string, and paused."""
    sid = client.enter(key="of v1", metadata={"title": 17})
    assert (status(client, sid)["status"], reconnect(client, sid)["status"]) == ("active", "connected")
    session = ok(client.patch("/api/sessions/" + sid, {"status": "running"}))["session"]
    assert session["title"] is None and session["id"] == sid
    assert client.post(f"/v1/sessions/{sid}/pause").status == 200
    record = client.session(sid)
    assert (status(client, sid)["status"], reconnect(client, sid)["status"]) == ("active", "connected")
    assert client.session(sid) == record and record["paused"]
    client.post(f"/v1/sessions/{sid}/hibernate")  # with an administrator's key
    assert (status(client, sid)["status"], reconnect(client, sid)["status"]) == ("no_sandbox", "expired")
    client.delete("/v1/sessions/" + sid)


def test_after_a_restart():
    with contextlib.closing(Lodged()) as d:
        sid, record = new(d.client())
        d.stop(signal.SIGKILL)
        d.start()
        client = d.client()
        a = reconnect(client, sid)
        assert (a["status"], a["verified"], a["expiresAt"]) == ("connected", True, record["expires_at"])
        assert client.session(sid)["sandbox"] == record["sandbox"]


def test_status_and_reconnect_agree(client):
    """About whether it runs, whether it can be resumed, and its lifecycle."""
    sid = stub(client)["id"]
    at = "/api/sessions/" + sid
    for step, state, has_files in (
            (lambda: None, "provisioning", False),
            (lambda: sandbox(client, "", sid), "active", False),
            (lambda: sandbox(client, "/snapshot?live=1", sid), "active", True),
            (lambda: sandbox(client, "", sid, "DELETE"), "hibernated", True),
            (lambda: sandbox(client, "/snapshot", sid, "PUT"), "active", True),
            (lambda: sandbox(client, "/snapshot", sid), "hibernated", True),
            (lambda: client.patch(at, {"status": "archived"}), "archived", True),
            (lambda: client.patch(at, {"status": "running"}), "hibernated", True)):
        answer = step()
        assert answer is None or answer.status == 200, answer
        looks = [status(client, sid), reconnect(client, sid)]
        if state != "archived":
            looks.append(ok(client.patch(at, {"status": "running"}))["session"])
        for look in looks:
            assert look["hasSnapshot"] == has_files, (state, look)
            assert look["lifecycle"].pop("serverTime") > 0 and look["lifecycle"]["state"] == state
            assert look["lifecycle"] == looks[0]["lifecycle"]
        wanted = ("active", "connected") if state == "active" else ("no_sandbox",) * 2
        assert (looks[0]["status"], looks[1]["status"]) == wanted
        assert looks[0]["lifecycleVersion"] == client.session(sid)["version"]
    client.delete("/v1/sessions/" + sid)


def test_a_failed_stop_is_repaired():
    """The keeper dies when it should stop a sandbox, which keeps running in a failed session."""
    with contextlib.closing(Lodged(crash_at="stop:start")) as d:
        client = d.client()
        sid, record = new(client)
        assert sandbox(client, "", sid, "DELETE").status >= 500
        assert client.session(sid)["state"] == "failed"
        s = status(client, sid)
        assert (s["status"], s["lifecycle"]["state"]) == ("no_sandbox", "failed")
        a = reconnect(client, sid)
        assert (a["status"], a["verified"], a["lifecycle"]["state"]) == ("connected", True, "active")
        assert status(client, sid)["status"] == "active"
        after = client.session(sid)
        assert (after["sandbox"], after["state"]) == (record["sandbox"], "active")
        assert after["last_activity_at"] == record["last_activity_at"]


# ---- none ---------------------------------------------------------------------------------------


def test_no_sandbox(client):
    sid = stub(client)["id"]
    for has_files in (False, True):
        for state in ("running", "archived"):
            ok(client.patch("/api/sessions/" + sid, {"status": state}))
            record, a = client.session(sid), reconnect(client, sid)
            assert set(a) == {"status", "hasSnapshot", "lifecycle", "sessionId"}
            assert (a["status"], a["hasSnapshot"]) == ("no_sandbox", has_files)
            assert client.session(sid) == record
        ok(client.patch("/api/sessions/" + sid, {"status": "running"}))
        if not has_files:
            ok(sandbox(client, "", sid))
            ok(sandbox(client, "", sid, "DELETE"))
    client.delete("/v1/sessions/" + sid)


# ---- dead ---------------------------------------------------------------------------------------


def check_hibernated(client, sid, before, causes):
    """The runtime is cleared, expiry is null, the preference is unchanged, and repeated calls agree."""
    record = client.session(sid)
    assert (record["state"], record["runtime"]) == ("hibernated", "resumable")
    assert record["cause"]["code"] in causes, record
    assert (record["sandbox"], record["expires_at"], record["hibernate_at"]) == (None, None, None)
    assert record["idle_timeout_ms"] == before["idle_timeout_ms"]
    assert record["last_activity_at"] == before["last_activity_at"]
    life = status(client, sid)["lifecycle"]
    assert (life["state"], life["hibernateAfter"], life["sandboxExpiresAt"]) == ("hibernated", None, None)
    assert life["lastActivityAt"] == before["last_activity_at"]
    for look, wanted in ((status, "no_sandbox"), (reconnect, "expired")):
        assert (look(client, sid)["status"], look(client, sid)["hasSnapshot"]) == (wanted, True)
    assert client.session(sid) == record


def test_killed(lodged, client):
    """The sandbox is killed from the host. Either this call records it first, or the service does."""
    for _ in range(2):
        sid, _ = new(client)
        client.run(sid, "echo kept > f")
        record = client.session(sid)
        os.kill(lodged.init_of(record), signal.SIGKILL)
        a = wait_for(lambda: (a := reconnect(client, sid))["status"] != "connected" and a, pause=0)
        assert a["status"] == "expired" and a["hasSnapshot"], a
        assert a["lifecycle"]["state"] == "hibernated" and "expiresAt" not in a
        check_hibernated(client, sid, record, ("gone", "stopped"))
        assert client.session(sid)["version"] == record["version"] + 2  # hibernating, hibernated
        back = ok(sandbox(client, "/snapshot", sid, "PUT"))
        assert back["restoredFrom"] == record["sandbox"] and not back["stateLost"]
        assert client.run(sid, "cat f") == "kept\n"
        client.delete("/v1/sessions/" + sid)


def test_expired(hasty):
    """A sandbox that fails too many probes is given up by this call."""
    client = hasty.client()
    sid, _ = new(client)
    client.run(sid, "echo kept > f")
    record = client.session(sid)
    with stopped(hasty.init_of(record)):
        a = reconnect(client, sid)
        assert set(a) == {"status", "hasSnapshot", "lifecycle", "sessionId"}
        assert (a["status"], a["hasSnapshot"], a["lifecycle"]["state"]) == ("expired", True, "hibernated")
        check_hibernated(client, sid, record, ("unavailable",))
    ok(sandbox(client, "", sid))
    assert client.run(sid, "cat f") == "kept\n"


@pytest.mark.parametrize("row", CALLS, ids=lambda r: f"{r[0]} {r[1]}")
def test_no_call_on_a_dead_sandbox_is_a_5xx(lodged, client, row):
    sid, record = new(client)
    lodged.kill_sandbox(record)
    answer = call(client, row, sid)
    # PATCH and PUT return 409 while the service hibernates it
    assert answer.status in (200, 400) or (answer.status == 409 and row[0] in ("PATCH", "PUT")), answer
    if row[1].endswith("extend"):
        refused(answer, 400, "Sandbox not initialized")
    if row[1].endswith("activity"):
        assert answer.json == {"success": False, "reason": "not-active"}
    client.delete("/v1/sessions/" + sid)


def test_files_and_commands_of_a_dead_sandbox(lodged, client):
    """409 with resume=0, else the session is resumed; never 500."""
    for method, path, body in (("POST", "/exec", {"command": "true"}), ("GET", "/files/f", None),
                               ("PUT", "/files/f", b"new")):
        sid, _ = new(client)
        client.run(sid, "echo kept > f")
        for resume in ("?resume=0", ""):
            lodged.kill_sandbox(client.session(sid))
            answer = client.call(method, f"/v1/sessions/{sid}{path}{resume}", body)
            if resume:
                assert answer.status == 409 and client.session(sid)["state"] == "hibernated", answer
                ok(sandbox(client, "", sid))
            else:
                assert answer.status in (200, 201, 204), answer
        client.delete("/v1/sessions/" + sid)


# ---- expired ------------------------------------------------------------------------------------


def test_about_to_expire():
    """In the last ten seconds no new work starts; running work may finish."""
    with contextlib.closing(Lodged(lifetime="20s", lifetime_max="20s")) as d:
        client = d.client()
        busy, record = new(client)
        idle, _ = new(client)
        ok_exec = client.post(f"/v1/sessions/{busy}/exec", {"command": "sleep 600", "background": True})
        assert ok_exec.status == 202
        assert status(client, busy)["status"] == "active"
        assert wait_for(lambda: status(client, busy)["status"] == "no_sandbox")
        before = client.session(busy) | {"version": None}  # the timers write deadlines that moved earlier
        assert before["state"] == "active" and before["sandbox"] == record["sandbox"]
        for path in ("/extend", "/snapshot"):
            refused(sandbox(client, path, busy), 400, "Sandbox not initialized")
        assert not ok(sandbox(client, "/activity", busy))["success"]
        a = reconnect(client, busy)
        assert (a["status"], a["verified"], a["expiresAt"]) == ("connected", True, record["expires_at"])
        assert client.session(busy) | {"version": None} == before
        # the timers hibernated it, and its idle timeout is unchanged
        assert wait_for(lambda: client.session(idle)["state"] == "hibernated")
        record = client.session(idle)
        assert record["cause"]["code"] == "expired" and record["idle_timeout_ms"] == 600000
        check_hibernated(client, idle, record, ("expired",))
        refused(sandbox(client, "/extend", idle), 400, "Sandbox not initialized")
        # a resume gives the files a new sandbox with a new lifetime
        again = ok(sandbox(client, "", busy))
        assert again["sandboxId"] != before["sandbox"] and not again["stateLost"]
        assert again["createdAt"] > before["started_at"]


def test_a_deadline_that_passed_while_lodged_was_down():
    with contextlib.closing(Lodged(lifetime="20s", lifetime_max="20s")) as d:
        client = d.client()
        sid, record = new(client)
        d.stop()
        assert wait_for(lambda: time.time() * 1000 > record["expires_at"])
        d.start()
        client = d.client()
        assert wait_for(lambda: client.session(sid)["state"] == "hibernated")
        assert (status(client, sid)["status"], reconnect(client, sid)["status"]) == ("no_sandbox", "expired")
        assert client.session(sid)["idle_timeout_ms"] == record["idle_timeout_ms"]


# ---- not responding -----------------------------------------------------------------------------


def test_a_sandbox_that_does_not_respond_is_not_given_up(patient):
    client = patient.client()
    sid, _ = new(client)
    client.run(sid, "echo kept > f")
    before, was = stored_when_quiet(patient), client.session(sid)
    with stopped(patient.init_of(was)):
        for _ in range(4):
            a = reconnect(client, sid)
            assert (a["status"], a["verified"]) == ("connected", False), a
            assert a["expiresAt"] == was["expires_at"] > a["lifecycle"]["serverTime"]
            assert a["lifecycle"]["state"] == "active"
            assert a["lifecycle"]["lastActivityAt"] == was["last_activity_at"]
        assert status(client, sid)["status"] == "active"  # reads the store only, without a probe
        assert client.session(sid) == was
    a = reconnect(client, sid)
    assert (a["status"], a["verified"]) == ("connected", True)
    assert client.session(sid) == was and stored(patient) == before
    assert client.run(sid, "cat f") == "kept\n"


def test_a_failed_probe_command_does_not_verify(client):
    """The sandbox has reached its process limit, so the probe cannot start."""
    sid = client.enter(limits={"pids": 12})
    client.post(f"/v1/sessions/{sid}/exec",
                {"command": "while :; do sleep 600 & done", "background": True, "timeout_ms": 60000})
    a = wait_for(lambda: (a := reconnect(client, sid))["verified"] is False and a)
    assert (a["status"], a["verified"]) == ("connected", False), a
    record = client.session(sid)
    assert (record["state"], record["cause"]) == ("active", None)
    client.delete("/v1/sessions/" + sid)
