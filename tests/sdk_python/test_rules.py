# SPDX-License-Identifier: Apache-2.0
"""Threads with idle sessions, policies, restarts of the service, and at capacity."""
import contextlib
import threading
import uuid

import pytest
from client import KEY, wait_for
from machine import was_used_in_time
from places import LocalWorld, RemoteWorld, Service

import lodge


def short(mode, seconds):
    """Sessions that end after so many seconds without use, whatever is requested."""
    if mode == "local":
        return LocalWorld(idle_max_ms=seconds * 1000)
    return RemoteWorld(idle_timeout_max=f"{seconds}s", threads_idle=f"{seconds}s")


@pytest.mark.parametrize("mode", ["remote", "local"])
def test_expiry_while_idle(mode):
    """Counted from the last activity, not from the start; then the loss is reported."""
    for seconds in (8, 40, 200):  # the longer ones are for a busy machine
        with contextlib.closing(short(mode, seconds)) as w, w.client() as c:
            first = c.get_or_create_session("ada", "t-" + uuid.uuid4().hex)["session_id"]
            if was_used_in_time(lambda: is_alive(c), seconds):
                assert wait_for(lambda: not w.is_there(first), 400)
                with pytest.raises(lodge.SessionExpiredError):
                    c.execute("true", auto_retry=False)
                r = c.execute("ls -A")
                assert r["state_lost"] is True and r["stdout"] == "" and c.session_id != first
                return
    raise AssertionError("the machine is too busy")


def is_alive(c):
    try:
        return c.execute("echo mine > f", auto_retry=False)["exit_code"] == 0
    except lodge.SessionExpiredError:
        return False


def test_policies_in_both_modes():
    rules = {"allow": ["echo", "ls", "cat"], "reason": "only readers"}
    remote = RemoteWorld()
    remote.policy(**rules)
    for w in (remote, LocalWorld(policy=rules)):
        try:
            with w.client() as c:
                c.get_or_create_session("ada", "t")
                assert c.execute("echo hi | cat")["stdout"] == "hi\n"
                with pytest.raises(lodge.PolicyError, match="only readers") as e:
                    c.execute("echo hi; rm -rf x")
                assert e.value.details["forbidden_pattern"] == "rm" and e.value.code == "POLICY"
                assert e.value.details["command"] == "echo hi; rm -rf x" and "line 1, column 10" in str(e.value)
                with pytest.raises(lodge.PolicyError):
                    c.execute("echo 'open")
                b = w.batch()
                assert [r["exit_code"] for r in b.execute_batch(["echo a", "rm x", "echo b"])] == [0, -1, 0]
        finally:
            w.close()


def test_a_restart_between_calls():
    """After kill -9 the session, its files and the client still work."""
    w = RemoteWorld()
    try:
        with w.client() as c:
            c.get_or_create_session("ada", "t")
            c.execute("echo kept > f")
            w.service.restart()
            r = c.execute("cat f")
            assert r["stdout"] == "kept\n" and r["state_lost"] is False
            w.service.stop()
            c._threads._transport.patience = 0.1
            with pytest.raises(lodge.SandboxError):
                c.execute("true")
            c.close_session()  # never raises
            w.service.start()
    finally:
        w.close()


def test_a_service_at_capacity_is_an_error():
    s = Service(max_active=1)
    try:
        with lodge.SandboxClient("remote", s.url, KEY) as c, lodge.SandboxClient("remote", s.url, KEY) as d:
            c.get_or_create_session("ada", "t")
            busy = threading.Thread(target=lambda: c.execute("until [ -e over ]; do sleep 0.1; done"))
            busy.start()
            assert wait_for(lambda: s.client().get("/health").json["parts"]["room"]["idle"] == 0)
            with pytest.raises(lodge.SandboxError, match="max capacity") as e:
                d.get_or_create_session("ada", "u")
            assert e.value.code == "UNAVAILABLE" and e.value.retryable and e.value.retry_after
            assert s.client().put(f"/v1/sessions/{c.session_id}/files/over", b"").status == 201
            busy.join()
    finally:
        s.close()
