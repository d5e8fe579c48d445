# SPDX-License-Identifier: Apache-2.0
"""Starting: responses while lodged starts, recorded environments of templates, and metrics."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import tempfile
import threading

import pytest

from client import BUILD, KEY, Client, Lodged, wait_for
from daemon import Daemon, Home
from machine import run_dir
from test_admin import check_histogram, read_metrics

STAGES = ("store", "keeper", "adopt", "ready")
WAITING = """#!/bin/sh
while [ ! -e {gate} ]; do sleep .05; done
exec {keeper} "$@"
"""


@pytest.fixture(scope="module")
def lodged():
    """It records environments, unlike that of the other files."""
    with contextlib.closing(Lodged(environment_snapshots=1)) as d:
        yield d


def ok(answer):
    assert answer.status in (200, 201), answer
    return answer.json


class Slow:
    """A lodged whose keeper starts when let() is called, on a port that is known in advance."""

    def __init__(self, keeper, **env):
        self.home = Home()
        self.programs = tempfile.mkdtemp(prefix="lodge-programs-")
        os.chmod(self.programs, 0o755)
        for name in ("lodged", "lodge-keeper", "lodge-init", "lodge-zstd"):
            shutil.copy(os.path.join(BUILD, name), self.programs)
        self.keeper = os.path.join(self.programs, "lodge-keeper")
        self.real = self.keeper + ".real"
        self.gate = os.path.join(self.programs, "gate")
        os.rename(self.keeper, self.real)
        if keeper == "waits":
            with open(self.keeper, "w", encoding="ascii") as f:
                f.write(WAITING.format(gate=self.gate, keeper=self.real))
            os.chmod(self.keeper, 0o755)
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.daemon = Daemon(self.home, listen=(f"127.0.0.1:{self.port}",), env=env,
                             program=os.path.join(self.programs, "lodged"))
        self.client = Client("127.0.0.1", self.port, KEY)
        assert wait_for(self.answers), self.daemon.log()

    def answers(self):
        assert self.daemon.process.poll() is None, self.daemon.log()
        with contextlib.suppress(OSError):
            return self.client.get("/health").status in (200, 503)

    def let(self):
        if os.path.exists(self.keeper):
            with open(self.gate, "w", encoding="ascii"):
                pass
        else:
            os.rename(self.real, self.keeper)

    def health(self):
        answer = self.client.get("/health")
        assert answer.status == (503 if answer.json["starting"] else 200), answer
        assert bool(answer.json["reason"]) == (answer.status == 503)
        return answer.json

    def close(self):
        self.daemon.__exit__()
        self.home.remove()
        shutil.rmtree(self.programs)


@pytest.fixture
def slow():
    """slow("waits" or "missing") starts one, which ends with the test."""
    made = []

    def start(keeper, **env):
        made.append(Slow(keeper, **env))
        return made[-1]

    yield start
    for s in made:
        s.close()


class Call(threading.Thread):
    def __init__(self, fn, *args):
        super().__init__()
        self.fn, self.args, self.got = fn, args, None
        self.start()

    def run(self):
        self.got = self.fn(*self.args)

    def answer(self):
        self.join(180)
        return self.got


# ---- responses during the start -----------------------------------------------------------------


def test_responses_while_lodged_starts(slow):
    d = slow("waits", LODGE_QUEUE_MAX="1")
    h = d.health()
    assert (h["status"], h["starting"]["stage"], h["starting"]["error"]) == ("starting", "keeper", None)
    assert h["parts"]["store"]["ok"] and h["starting"]["total_steps"] == 4 and h["starting"]["step"] == 2
    anonymous = Client("127.0.0.1", d.port, None)
    assert anonymous.get("/ready").status == 503 and anonymous.get("/ready").json["ready"] is False
    for path in ("/", "/docs", "/openapi.json", "/metrics"):
        assert anonymous.get(path).status == 200
    assert anonymous.get("/v1/sessions").status == 401  # keys are checked as usual
    p = ok(d.client.get("/v1/progress"))
    assert (p["status"], p["stage"], p["step"], p["error"]) == ("running", "keeper", 2, None)
    first = Call(d.client.post, "/v1/sessions", {"key": "early"})
    assert wait_for(lambda: d.health()["starting"]["waiting"] == 1)
    beyond = d.client.get("/v1/sessions")
    assert beyond.status == 503 and beyond.headers["Retry-After"] and beyond.json["error"]["retryable"]
    assert beyond.json["error"]["details"]["stage"] == "keeper" and "keeper" in beyond.json["error"]["message"]
    connection, response = d.client.open("GET", "/v1/progress", headers={"Accept": "text/event-stream"})
    d.let()
    events = [json.loads(line[6:]) for line in response.read().decode().splitlines() if line.startswith("data: ")]
    connection.close()
    assert events[0]["stage"] == "keeper" and events[-1]["status"] == events[-1]["stage"] == "ready"
    assert [e["step"] for e in events] == sorted(e["step"] for e in events)
    assert all(STAGES[e["step"] - 1] == e["stage"] and e["updated"] for e in events)
    assert ok(first.answer())["outcome"] == "created"
    assert d.daemon.addresses() == [f"http://127.0.0.1:{d.port}"]
    h = d.health()
    assert (h["status"], h["starting"], h["last_error"]) == ("ok", None, None)
    assert anonymous.get("/ready").status == 200
    # a late subscriber gets the latest event at once
    late = d.client.get("/v1/progress", headers={"Accept": "text/event-stream"})
    assert late.data.count(b"event: progress") == 1 and b'"status":"ready"' in late.data
    assert d.client.delete("/v1/sessions/key:early").status == 200
    assert d.daemon.close() == 0


def test_systemd_is_notified_when_ready(slow):
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        os.chmod(place, 0o755)
        s.bind(place + "/notify")
        os.chmod(place + "/notify", 0o777)
        d = slow("waits", NOTIFY_SOCKET=place + "/notify")
        s.settimeout(.3)
        with pytest.raises(TimeoutError):
            s.recv(100)
        d.let()
        s.settimeout(180)
        assert s.recv(100) == b"READY=1" and d.health()["status"] == "ok"
        assert d.daemon.addresses()


def test_a_failed_start_is_retried(slow):
    d = slow("missing")
    assert wait_for(lambda: d.health()["starting"]["error"])
    h = d.health()
    assert h["status"] == "starting" and "lodge-keeper" in h["starting"]["error"]
    assert not h["parts"]["keeper"]["ok"] and h["parts"]["keeper"]["error"] == h["starting"]["error"]

    def refusal():
        answer = d.client.post("/v1/sessions", {"key": "early"})
        assert answer.status == 503 and answer.headers["Retry-After"], answer
        error = answer.json["error"]
        assert error["retryable"] and error["details"]["stage"] == "keeper", error
        return error["message"]

    assert wait_for(lambda: "lodge-keeper" in refusal())  # not of one that comes during the next try
    assert ok(d.client.get("/v1/progress"))["status"] in ("error", "running")
    assert wait_for(lambda: d.health()["starting"]["tries"] >= h["starting"]["tries"] + 2)
    assert d.health()["last_error"] is None  # early requests are not reported as errors
    d.let()
    # a request retries at once, long before the back-off ends
    assert wait_for(lambda: d.client.post("/v1/sessions", {"key": "early"}).status == 201)
    assert d.daemon.addresses() and d.health()["status"] == "ok"
    assert "start failed: " in d.daemon.log() and "retrying in " in d.daemon.log()
    assert d.client.delete("/v1/sessions/key:early").status == 200
    assert d.daemon.close() == 0


@pytest.mark.parametrize("keeper", ("waits", "missing"))
def test_lodged_can_be_stopped_while_it_starts(slow, keeper):
    d = slow(keeper)
    waiting = Call(d.client.get, "/v1/sessions")
    assert wait_for(lambda: d.health()["starting"]["waiting"] or d.health()["starting"]["tries"])
    d.daemon.send(signal.SIGTERM)
    if keeper == "waits":
        d.let()  # lodged waits for a keeper it has started
    assert d.daemon.ends()[0] == 0
    answer = waiting.answer()
    assert answer.status in (200, 503), answer


def test_sandboxes_are_adopted_before_requests_are_served(slow):
    """Early requests find the same sandbox."""
    d = slow("waits")
    d.let()
    d.daemon.addresses()
    sid = d.client.enter(key="kept")
    d.client.run(sid, "echo kept > ~/kept")
    sandbox = d.client.session(sid)["sandbox"]
    assert d.daemon.close() == 0
    os.unlink(d.gate)
    d.daemon = Daemon(d.home, listen=(f"127.0.0.1:{d.port}",), program=os.path.join(d.programs, "lodged"))
    assert wait_for(d.answers)
    early = Call(d.client.run, sid, "cat ~/kept")
    assert wait_for(lambda: d.health()["starting"]["waiting"] == 1)
    d.let()
    assert early.answer() == "kept\n" and d.client.session(sid)["sandbox"] == sandbox
    assert d.client.delete("/v1/sessions/" + sid).status == 200


def test_a_keeper_that_fails_later_is_reported(slow):
    """The service keeps running, each call retries, and /health has the last error."""
    d = slow("waits")
    d.let()
    d.daemon.addresses()
    sid = d.client.enter(key="a")
    take_keeper_away(d)
    answer = d.client.post("/v1/sessions", {"key": "b"})
    assert answer.status == 503 and answer.json["error"]["retryable"], answer
    h = d.health()
    assert h["status"] == "degraded" and h["starting"] is None and "lodge-keeper" in h["parts"]["keeper"]["error"]
    assert d.client.run(sid, "echo alive") == "alive\n"
    failed = d.client.get("/v1/sessions/key:b/progress")
    if failed.status == 200:  # the session exists, but its start failed
        assert failed.json["status"] == "error" and "lodge-keeper" in failed.json["error"]
        stream = d.client.get("/v1/sessions/key:b/progress", headers={"Accept": "text/event-stream"})
        assert stream.data.count(b"event: progress") == 1 and b'"status":"error"' in stream.data
    os.rename(d.keeper + ".away", d.keeper)
    assert wait_for(lambda: d.client.post("/v1/sessions", {"key": "b"}).status in (200, 201))
    h = d.health()
    assert h["status"] == "ok" and "error" not in h["parts"]["keeper"] and h["last_error"]["code"] == "UNAVAILABLE"
    for key in ("a", "b"):
        assert d.client.delete("/v1/sessions/key:" + key).status == 200
    # the sandbox that was being inspected when its keeper died is gone too
    assert wait_for(lambda: not sandboxes_of(d.home)), sandboxes_of(d.home)


def sandboxes_of(home):
    return os.listdir(run_dir(os.path.join(home, "keeper")) + "/d/sandboxes")


REFUSING = """#!/bin/sh
exec {keeper} "$@" --closed 0.0
"""


def take_keeper_away(d, instead=None):
    """The running keeper dies, and no other can be started; `instead`: a script that runs in its place."""
    os.rename(d.keeper, d.keeper + ".away")
    if instead:
        with open(d.keeper + ".new", "w", encoding="ascii") as f:
            f.write(instead.format(keeper=d.real))
        os.chmod(d.keeper + ".new", 0o755)
        os.rename(d.keeper + ".new", d.keeper)
    for pid in keepers(d.real):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def bring_keeper_back(d):
    os.rename(d.keeper + ".away", d.keeper)


def test_calls_wait_until_the_keeper_works_again(slow):
    d = slow("waits")
    d.let()
    d.daemon.addresses()
    sid = d.client.enter(key="there")
    take_keeper_away(d)
    calls = [Call(d.client.post, "/v1/sessions", {"key": f"new-{i}"}) for i in range(4)]
    calls += [Call(d.client.get, f"/v1/sessions/{sid}/stats"), Call(d.client.post, f"/v1/sessions/{sid}/hibernate")]
    assert wait_for(lambda: "lodge-keeper" in d.health()["parts"]["keeper"].get("error", ""))
    bring_keeper_back(d)
    answers = [c.answer() for c in calls]
    # statistics may come after the hibernate
    assert [a.status for a in answers[:4]] == [201] * 4 and answers[4].status in (200, 409), answers
    assert answers[5].status == 200, answers[5]
    assert d.health()["status"] == "ok" and d.health()["last_error"] is None
    d.client.clear()


def test_calls_succeed_although_the_keeper_is_killed_again_and_again(slow):
    d = slow("waits")
    d.let()
    d.daemon.addresses()

    def kill():
        """Three keepers, each as soon as it runs."""
        for _ in range(3):
            for pid in wait_for(lambda: keepers(d.real)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                wait_for(lambda pid=pid: pid not in keepers(d.real))

    def meanwhile(act, *args):
        killer = Call(kill)
        try:
            return act(*args)
        finally:
            killer.answer()

    sid = meanwhile(lambda: d.client.enter(key="k"))
    d.client.run(sid, "echo kept > f")
    for verb in ("hibernate", "resume", "hibernate", "resume"):
        answer = meanwhile(d.client.post, f"/v1/sessions/{sid}/{verb}")
        assert answer.status == 200, answer
        assert d.client.run(sid, "cat f") == "kept\n"
    d.client.clear()


def test_an_error_has_the_words_of_the_keeper(slow):
    d = slow("waits", LODGE_QUEUE_MAX="1")
    d.let()
    d.daemon.addresses()
    words = "is not the directory that --closed names"
    take_keeper_away(d, REFUSING)
    calls = [Call(d.client.post, "/v1/sessions", {"key": f"new-{i}"}) for i in range(3)]
    for c in calls:  # all but one at once: no more may wait
        answer = c.answer()
        assert answer.status == 503 and answer.json["error"]["retryable"] and answer.headers["Retry-After"], answer
        assert "lodge-keeper: " in answer.message and words in answer.message, answer
    h = d.health()
    assert h["status"] == "degraded" and words in h["parts"]["keeper"]["error"] and words in h["last_error"]["message"]
    bring_keeper_back(d)
    assert wait_for(lambda: d.client.post("/v1/sessions", {"key": "new-0"}).status in (200, 201))
    assert d.health()["status"] == "ok"
    d.client.clear()


def keepers(program):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe") == program:
                found.append(int(pid))
    return found


# ---- error messages -----------------------------------------------------------------------------


def test_errors_are_one_plain_line(client):
    for bad in ("<script>alert(1)</script>", "a\nb\tc", "x" * 5000):
        answer = client.post("/v1/sessions", {bad: 1})
        message = answer.json["error"]["message"]
        assert answer.status == 400 and len(message) < 256
        assert "<script" not in message and message.isprintable(), message


# ---- recorded environments ----------------------------------------------------------------------


@pytest.fixture
def template(client):
    """A template with a secret in its environment."""
    sid = client.enter()
    snapshot = ok(client.post(f"/v1/sessions/{sid}/snapshots"))["snapshot"]["id"]
    client.delete("/v1/sessions/" + sid)
    env = {"API_TOKEN": "sesame", "MY_PASSWORD": "sesame", "COLOUR": "blue"}
    ok(client.post("/v1/templates", {"name": "coloured", "snapshot": snapshot, "env": env, "workdir": "/tmp"}))
    yield "/v1/templates/coloured"
    client.delete("/v1/templates/coloured")
    client.delete("/v1/snapshots/" + snapshot)


def environment(client, at):
    answer = client.get(at + "/environment")
    return answer.json["environment"] if answer.status == 200 else None


def test_the_environment_is_recorded_automatically(lodged, client):
    answer = client.get("/v1/templates/nothing/environment")
    assert answer.status == 404 and "no template" in answer.json["error"]["message"]
    sid = client.enter()
    found = wait_for(lambda: environment(client, "/v1/templates/host"))
    assert found and found["current"] and re.fullmatch("[0-9a-f]{16}", found["template_version"])
    uname = os.uname()
    assert found["kernel"] == f"{uname.sysname} {uname.release} {uname.machine}"
    assert found["pwd"] == found["env"]["HOME"] == client.run(sid, "pwd").strip()
    assert found["tools"]["bash"] == client.run(sid, "bash --version | head -n 1").strip()
    assert found["os"]["id"] and found["env"]["PATH"]
    assert ok(client.get("/health"))["parts"]["room"]["active"] == 1  # the sandbox used for it was destroyed
    client.delete("/v1/sessions/" + sid)
    # reading it starts nothing, also after a restart
    lodged.stop()
    lodged.start()
    client = lodged.client()
    assert environment(client, "/v1/templates/host") == found
    assert ok(client.get("/health"))["parts"]["room"]["active"] == 0


def test_secrets_are_redacted(lodged, client, template):
    answer = client.get(template + "/environment")
    assert answer.status == 404 and "is not recorded yet" in answer.json["error"]["message"]
    answer = client.post(template + "/environment")
    assert answer.status == 201, answer
    env = answer.json["environment"]["env"]
    assert env["API_TOKEN"] == env["MY_PASSWORD"] == "[redacted]" and env["COLOUR"] == "blue"
    assert answer.json["environment"]["pwd"] == "/tmp"
    for name in os.listdir(lodged.home):
        path = os.path.join(lodged.home, name)
        if name.startswith("lodge.db") and stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as f:
                assert b"sesame" not in f.read()


def test_environment_follows_the_template(client, template):
    first = ok(client.post(template + "/environment"))["environment"]
    ok(client.patch(template, {"env": {"COLOUR": "red"}}))
    found = environment(client, template)
    assert found["template_version"] == first["template_version"] or found["env"]["COLOUR"] == "red"
    found = wait_for(lambda: (e := environment(client, template)) and e["current"] and e)
    assert found["env"]["COLOUR"] == "red" and "API_TOKEN" not in found["env"]
    assert found["template_version"] != first["template_version"]
    assert client.delete(template).status == 200
    answer = client.get(template + "/environment")
    assert answer.status == 404 and "no template" in answer.json["error"]["message"]


def test_environments_need_a_shell_and_the_admin_scope(lodged, client):
    answer = client.post("/v1/templates/empty/environment")
    assert answer.status == 409 and "/bin/sh" in answer.json["error"]["message"]
    assert client.post("/v1/templates/nothing/environment").status == 404
    key, tenant = lodged.new_key(name="t", scope="tenant")
    assert tenant.post("/v1/templates/host/environment").status == 403
    assert tenant.get("/v1/templates/empty/environment").status == 404
    client.delete("/v1/keys/" + key["id"])
    assert ok(client.get("/health"))["parts"]["room"]["active"] == 0


def test_recording_environments_can_be_disabled():
    with contextlib.closing(Lodged(environment_snapshots=0)) as d:
        client = d.client()
        client.enter(key="a")
        assert not wait_for(lambda: environment(client, "/v1/templates/host"), 3)
        assert client.post("/v1/templates/host/environment").status == 201


# ---- pinning ------------------------------------------------------------------------------------


def test_pin(client):
    one, other = client.enter(key="one"), client.enter(key="other")
    sandbox = client.session(one)["sandbox"]
    for pin in (one, sandbox):
        got = ok(client.post("/v1/sessions", {"key": "one", "pin": pin}))
        assert (got["session"]["id"], got["outcome"]) == (one, "reused")
    got = ok(client.post("/v1/sessions", {"pin": one}))
    assert got["session"]["id"] == one
    for pin in (other, client.session(other)["sandbox"], "ses_unknown", "sbx_unknown"):
        answer = client.post("/v1/sessions", {"key": "one", "pin": pin})
        message = answer.json["error"]["message"]
        assert answer.status == 409 and pin in message and one in message, answer
    answer = client.post("/v1/sessions", {"key": "nosuch", "pin": one})
    assert answer.status == 409 and one in answer.json["error"]["message"], answer
    assert client.get("/v1/sessions/key:nosuch").status == 404  # no session was created instead
    # after a resume the session is the same, but its old sandbox no longer matches
    ok(client.post(f"/v1/sessions/{one}/hibernate"))
    assert client.post("/v1/sessions", {"key": "one", "pin": sandbox}).status == 410
    got = ok(client.post("/v1/sessions", {"key": "one", "pin": one}))
    assert got["outcome"] == "resumed" and got["session"]["sandbox"] != sandbox
    for sid in (one, other):
        client.delete("/v1/sessions/" + sid)
    assert client.post("/v1/sessions", {"pin": one}).status in (409, 410)


# ---- metrics ------------------------------------------------------------------------------------


def count(samples, name, **labels):
    text = ",".join(f'{k}="{v}"' for k, v in labels.items())
    return samples[name, f"{{{text}}}" if text else ""]


def moved(client, before, name, **labels):
    return count(read_metrics(client)[0], name, **labels) - count(before, name, **labels)


def test_metrics_count_operations(client):
    before, types = read_metrics(client)
    assert types["lodge_create_seconds"] == types["lodge_probe_seconds"] == "histogram"
    sid = client.enter(key="n")
    assert moved(client, before, "lodge_create_seconds_count", source="cold") == 1
    assert moved(client, before, "lodge_enters_total", outcome="created") == 1
    client.enter(key="n")
    assert moved(client, before, "lodge_enters_total", outcome="reused") == 1
    assert moved(client, before, "lodge_create_seconds_count", source="cold") == 1
    assert moved(client, before, "lodge_create_seconds_sum", source="cold") > 0
    ok(client.post(f"/v1/sessions/{sid}/probe"))
    assert moved(client, before, "lodge_probe_seconds_count") == 1
    ok(client.post(f"/v1/sessions/{sid}/hibernate"))
    client.run(sid, "true")  # resumed by a command, not by entering
    assert moved(client, before, "lodge_create_seconds_count", source="resume") == 1
    assert moved(client, before, "lodge_enters_total", outcome="resumed") == 0
    ok(client.post(f"/v1/sessions/{sid}/hibernate"))
    client.enter(key="n")
    assert moved(client, before, "lodge_enters_total", outcome="resumed") == 1
    assert moved(client, before, "lodge_exec_seconds_count") == 1
    forks = ok(client.post(f"/v1/sessions/{sid}/fork", {"count": 1}))["sessions"]
    client.run(forks[0]["id"], "true")
    assert moved(client, before, "lodge_create_seconds_count", source="fork") == 1
    samples = read_metrics(client)[0]
    for source in ("pool", "cold", "resume", "fork"):
        check_histogram(samples, "lodge_create_seconds", f'source="{source}"')
    check_histogram(samples, "lodge_probe_seconds", "")
    assert count(samples, "lodge_pool_target") == count(samples, "lodge_pool_ready") == 0
    assert count(samples, "lodge_pool_misses_total") == 0
    for s in (sid, forks[0]["id"]):
        client.delete("/v1/sessions/" + s)


def test_pool_metrics():
    with contextlib.closing(Lodged(pool=2)) as d:
        client = d.client()
        assert wait_for(lambda: count(read_metrics(client)[0], "lodge_pool_ready") == 2)
        before = read_metrics(client)[0]
        assert count(before, "lodge_pool_target") == 2
        client.enter(key="a")
        assert moved(client, before, "lodge_create_seconds_count", source="pool") == 1
        assert moved(client, before, "lodge_pool_hits_total") == 1
        # the pool has no slots for the root class, so one is created
        ok(client.post("/v1/sessions", {"key": "b", "class": "root"}))
        assert moved(client, before, "lodge_create_seconds_count", source="cold") == 1
        assert moved(client, before, "lodge_pool_misses_total") == 1
        assert wait_for(lambda: count(read_metrics(client)[0], "lodge_pool_ready") == 2)
