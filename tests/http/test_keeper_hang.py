# SPDX-License-Identifier: Apache-2.0
"""A lodge-keeper that hangs: what needs it is refused with the reason, the rest works, and so does all once it goes on."""
import concurrent.futures
import contextlib
import http.client
import os
import signal
import subprocess
import tempfile

import pytest

from client import LODGED, Lodged, is_alive, wait_for
from machine import children, stopped
from roots import tiny_root

LODGE = os.path.join(os.path.dirname(LODGED), "lodge")
HELD_SECONDS = 60  # lodge-keeper may take three seconds; a call that takes this long is held

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="stops lodge-keeper, which runs as root")


def impatient(lodged):
    client = lodged.client()
    client.connect = lambda: http.client.HTTPConnection(client.host, client.port, timeout=HELD_SECONDS)
    return client


@pytest.fixture
def lodged():
    with contextlib.closing(Lodged(keeper_timeout="3s", pool=2)) as d:
        yield d


def check_silent(answer):
    assert answer.status == 503 and answer.code == "UNAVAILABLE" and answer.json["error"]["retryable"], answer
    assert "lodge-keeper has not answered since 20" in answer.message and "kill lodge-keeper" in answer.message, answer


def sandboxes(lodged):
    """What the keeper has; `p.*` wait in its pool."""
    return sorted(b for b in os.listdir(os.path.join(lodged.run_dir(), "d", "sandboxes")) if not b.startswith("p."))


def test_a_keeper_that_is_stopped(lodged):
    c = impatient(lodged)
    one, two, gone = (c.enter(key=k) for k in ("one", "two", "gone"))
    due = c.enter(key="due")
    assert c.run(one, "echo kept > f; cat f") == "kept\n"
    assert c.get(f"/v1/sessions/{one}/files/f").status == 200  # the connection for files is kept
    assert c.post(f"/v1/sessions/{two}/hibernate").status == 200
    limits, before = lodged.cgroup_limits(c.session(one)), c.session(one)
    at = "/v1/sessions/" + one
    with stopped(lodged.keepers()[0]):
        assert wait_for(lambda: c.get("/health").json["status"] == "degraded")
        h = c.get("/health").json
        assert not h["parts"]["keeper"]["ok"] and "has not answered since" in h["parts"]["keeper"]["error"], h
        assert c.get("/ready").status == 200
        status = subprocess.run([LODGE, "status"], stdout=subprocess.PIPE, text=True, check=False,
                                env=dict(os.environ, LODGE_URL=lodged.http_url, LODGE_API_KEY=c.key))
        assert status.returncode == 1 and "lodge-keeper has not answered since" in status.stdout, status
        # what does not need it works
        assert c.post("/v1/sessions", {"key": "one"}).json["outcome"] == "reused"
        assert c.run(one, "cat f") == c.get(at + "/files/f").data.decode() == "kept\n"
        assert len(c.get("/v1/sessions").json["sessions"]) == len(c.get("/v1/sessions?view=row").json["sessions"]) == 4
        assert c.patch("/v1/sessions/" + due, {"idle_timeout_ms": 1000}).status == 200
        # the timers run: they look at the disk
        free = c.get("/health").json["disk"]["free_bytes"]
        with open(os.path.join(lodged.home, "filler"), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 64 << 20)
        assert wait_for(lambda: c.get("/health").json["disk"]["free_bytes"] != free)
        os.unlink(os.path.join(lodged.home, "filler"))
        # what needs it is refused, and changes nothing
        calls = (("POST", "/v1/sessions", {"key": "new"}), ("POST", f"/v1/sessions/{two}/exec", {"command": "true"}),
                 ("POST", at + "/hibernate", {}), ("POST", at + "/snapshots", {}), ("GET", at + "/stats", None),
                 ("PATCH", at, {"limits": {"memory_bytes": 64 << 20}}))
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            for answer in pool.map(lambda call: c.call(*call), calls):
                check_silent(answer)
        states = {s["key"]: s["state"] for s in c.get("/v1/sessions").json["sessions"]}
        assert states == {"one": "active", "two": "hibernated", "due": "active", "gone": "active"}
        assert c.get("/health").json["last_error"]["message"].startswith("lodge-keeper has not answered")
        assert c.delete("/v1/sessions/" + gone).status == 200
        assert c.get("/v1/sessions/" + gone).status in (404, 410)
    assert wait_for(lambda: c.get("/health").json["status"] == "ok"), c.get("/health")
    assert wait_for(lambda: c.session(due)["state"] == "hibernated"), "its idle timeout passed meanwhile"
    assert c.session(due)["cause"]["code"] == "idle"
    assert c.enter(key="two") == two and c.run(c.enter(key="new"), "echo new") == "new\n"
    now = c.session(one)
    assert now["sandbox"] == before["sandbox"] and now["limits"] == before["limits"] and c.run(one, "cat f") == "kept\n"
    assert wait_for(lambda: lodged.cgroup_limits(now) == limits), "a change that was refused is not carried out later"
    alive = sorted(s["sandbox"] for s in c.get("/v1/sessions").json["sessions"] if s["sandbox"])
    assert len(alive) == 3 and wait_for(lambda: sandboxes(lodged) == alive), sandboxes(lodged)


@pytest.mark.parametrize("then", ["nothing", "enter", "delete"])
def test_a_sandbox_that_is_made_too_late_is_removed(then):
    """The keeper hangs after it made the sandbox and before it answers."""
    with tempfile.TemporaryDirectory(prefix="lodge-hold-") as base, contextlib.ExitStack() as stack:
        hold = os.path.join(base, "hold")
        lodged = stack.enter_context(contextlib.closing(Lodged(keeper_timeout="3s", hold_at=f"create:done={hold}")))
        c = impatient(lodged)
        c.enter(key="first")
        assert len(sandboxes(lodged)) == 1
        with open(hold, "w"):
            pass
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for answer in pool.map(lambda _: c.post("/v1/sessions", {"key": "late"}), range(3)):
                check_silent(answer)
        sid = [s["id"] for s in c.get("/v1/sessions").json["sessions"] if s["key"] == "late"][0]
        late = c.session(sid)["sandbox"]
        assert late in sandboxes(lodged)
        if then == "delete":
            assert c.delete("/v1/sessions/" + sid).status == 200
        os.unlink(hold)
        if then == "enter":
            assert c.enter(key="late") == sid and c.run(sid, "echo on") == "on\n"
        assert wait_for(lambda: late not in sandboxes(lodged))
        alive = [s["sandbox"] for s in c.get("/v1/sessions").json["sessions"] if s["sandbox"]]
        assert sandboxes(lodged) == sorted(alive) and len(alive) == (2 if then == "enter" else 1)
        assert c.get("/health").json["status"] == "ok"


def test_a_template_that_is_made_too_late_is_removed_at_the_next_start():
    """The keeper hangs after it made the files and before it answers."""
    upload = {"body": tiny_root(), "headers": {"Content-Type": "application/x-tar"}}
    with tempfile.TemporaryDirectory(prefix="lodge-hold-") as base, contextlib.ExitStack() as stack:
        hold = os.path.join(base, "hold")
        lodged = stack.enter_context(contextlib.closing(Lodged(keeper_timeout="3s", hold_at=f"seal:done={hold}")))
        kept = os.path.join(lodged.home, "templates", "late")
        c = impatient(lodged)
        with open(hold, "w"):
            pass
        check_silent(c.post("/v1/templates/late", **upload))
        os.unlink(hold)
        assert wait_for(lambda: c.get("/health").json["status"] == "ok")
        assert c.get("/v1/templates/late").status == 404 and os.path.isdir(kept), "the next start must find it"
        lodged.stop()
        lodged.start()
        c = lodged.client()
        assert not os.path.exists(kept) and c.get("/v1/templates/late").status == 404
        assert c.post("/v1/templates/late", **upload).status == 201


def test_a_new_sandbox_outlives_the_keeper_that_made_it():
    """Its creation is answered before lodge-init has read its binding, until when it would die with lodge-keeper."""
    with tempfile.TemporaryDirectory(prefix="lodge-hold-") as base, contextlib.ExitStack() as stack:
        hold = os.path.join(base, "hold")
        lodged = stack.enter_context(contextlib.closing(Lodged(hold_at=f"create:recorded={hold}")))
        c = lodged.client()
        with open(hold, "w"):
            pass
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(c.post, "/v1/sessions", {"key": "new"})
            (keeper,) = wait_for(lodged.keepers)
            (init,) = wait_for(lambda: children(keeper, "lodge-init"))
            with stopped(init):
                os.unlink(hold)
                session = answer.result().json["session"]
                lodged.stop(signal.SIGKILL)
                assert not wait_for(lambda: not is_alive(keeper), 1), "it waits for lodge-init"
            assert wait_for(lambda: not is_alive(keeper))
        assert is_alive(init)
        lodged.start()
        now = lodged.client().session(session["id"])
        assert (now["state"], now["incarnation"]) == ("active", session["incarnation"]), now
        assert lodged.init_of(now) == init
