# SPDX-License-Identifier: Apache-2.0
"""A sandbox whose lodge-init hangs holds no caller beyond the deadline of a probe, and is replaced."""
import contextlib
import http.client
import os
import signal
import subprocess
import threading

import pytest

from client import BUILD, KEY, Lodged, is_alive, wait_for
from machine import stopped
from ways import lodge
from ws import Refused, Terminal

HELD_SECONDS = 60  # the deadline is one second; a call that takes this long is held


@pytest.fixture(scope="module")
def patient():
    """Never replaces a sandbox."""
    with contextlib.closing(Lodged(probe_timeout="1s", probe_failures=100000)) as d:
        yield d


@pytest.fixture(scope="module")
def hasty():
    with contextlib.closing(Lodged(probe_timeout="1s", probe_failures=2)) as d:
        yield d


def impatient(lodged):
    """A client that does not wait for ever."""
    client = lodged.client()
    client.connect = lambda: http.client.HTTPConnection(client.host, client.port, timeout=HELD_SECONDS)
    return client


def new(lodged, **body):
    """A client, a session with a sandbox, and the pid of its lodge-init."""
    client = impatient(lodged)
    s = client.session(client.enter(**body))
    assert client.run(s["id"], "echo kept > f; mkdir d; cat f") == "kept\n"
    return client, s, lodged.init_of(s)


def unresponsive(answer):
    assert answer.status == 503 and answer.code == "UNAVAILABLE", answer
    assert answer.json["error"]["retryable"] and "respond" in answer.message, answer


CALLS = {
    "exec": ("POST", "/exec", {"command": "echo late > late"}),
    "exec in the background": ("POST", "/exec", {"command": "echo late > late", "background": True}),
    "exec as a stream": ("POST", "/exec", {"command": "echo late > late"}, {"Accept": "application/x-ndjson"}),
    "read": ("GET", "/files/f", None),
    "write": ("PUT", "/files/late", b"new"),
    "list": ("GET", "/files/.?list", None),
    "remove": ("DELETE", "/files/d?recursive=1", None),
    "mkdir": ("POST", "/files/late.d?mkdir", None),
    "watch": ("GET", "/watch?path=.", None),
    "export": ("GET", "/archive?path=.", None),
    "compressed export": ("GET", "/archive?path=.&format=tar.zst", None),
    "import": ("PUT", "/archive?path=.", b""),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_that_needs_the_sandbox_is_answered(patient, call):
    client, s, init = new(patient)
    method, path, *more = call
    at = "/v1/sessions/" + s["id"]
    with stopped(init):
        unresponsive(client.call(method, at + path, *more))
    # once it runs again, it is used again; a directory or command may have been made after all
    assert wait_for(lambda: client.post(at + "/exec", {"command": "true"}).status == 200)
    late = "late" if "exec" in call[1] else "late.d"
    assert client.run(s["id"], f"cat f; ls | grep -vx {late}") == "kept\nd\nf\n"
    assert client.session(s["id"])["incarnation"] == s["incarnation"]
    assert client.delete(at).status == 200


def says_killed(answer):
    assert answer.status == 409 and answer.code == "CONFLICT" and "did not respond" in answer.message, answer
    assert not answer.json["error"]["retryable"], answer


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_a_retry_of_a_killed_command_gets_the_reason(patient, accept):
    client, s, init = new(patient)
    at = "/v1/sessions/" + s["id"]

    def start():
        return client.call("POST", at + "/exec", {"command": "echo late", "idempotency_key": "one"}, {"Accept": accept})

    def record():
        return client.get(at + "/execs").json["execs"][-1]

    with stopped(init):
        unresponsive(start())
        says_killed(start())
    assert wait_for(lambda: record()["state"] != "running")
    # a short command can end before the signal comes
    said = {"killed": "killed by lodge", "exited": "ran to its end before lodge could kill it"}[record()["state"]]
    assert said in record()["reason"], record()
    says_killed(start())
    patient.stop()
    patient.start()
    client.port = patient.port
    says_killed(start())
    ordinary = client.post(at + "/exec", {"command": "echo now", "idempotency_key": "two"})
    assert ordinary.json["stdout"] == "now\n" and ordinary.json["reason"] is None, ordinary
    assert client.delete(at).status == 200


def test_a_retry_of_a_command_that_was_not_sent_starts_it(patient):
    client, s, init = new(patient)
    at = "/v1/sessions/" + s["id"]

    def start(key):
        return client.post(at + "/exec", {"command": "echo ran", "idempotency_key": key})

    with stopped(init):
        unresponsive(start("one"))
        for _ in range(2):  # by now it is known that the sandbox does not respond
            unresponsive(start("two"))
    assert wait_for(lambda: start("two").status == 200)
    assert start("two").json["stdout"] == "ran\n"
    assert client.delete(at).status == 200


def test_the_python_client_does_not_take_it_for_a_result(patient):
    client, s, init = new(patient)
    with lodge.Client(patient.http_url, KEY) as sdk, stopped(init):
        with pytest.raises(lodge.ConflictError, match="did not respond"):
            sdk.session(s["id"]).exec("echo late")
    assert client.delete("/v1/sessions/" + s["id"]).status == 200


def test_the_command_line_does_not_take_it_for_a_result(patient):
    client, s, init = new(patient)
    env = {**os.environ, "LODGE_URL": patient.http_url, "LODGE_API_KEY": KEY}
    with stopped(init):
        done = subprocess.run([os.path.join(BUILD, "lodge"), "exec", s["id"], "-c", "echo late"], env=env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=5 * HELD_SECONDS, check=False)
    assert done.returncode == 125 and not done.stdout and "respond" in done.stderr, done
    assert client.delete("/v1/sessions/" + s["id"]).status == 200


def test_a_terminal_is_refused(patient):
    client, s, init = new(patient)
    with stopped(init):
        with pytest.raises(Refused, match="does not respond|has not responded") as refused:
            Terminal(client, s["id"])
        assert refused.value.status == 503
    assert client.delete("/v1/sessions/" + s["id"]).status == 200


def test_calls_that_need_no_sandbox_work(patient):
    client, s, init = new(patient, key="hangs")
    at = "/v1/sessions/" + s["id"]
    with stopped(init):
        assert client.post("/v1/sessions", {"key": "hangs"}).json["outcome"] == "reused"
        assert client.get(at).status == client.get(at + "/stats").status == 200
        answer = client.post(at + "/probe")
        assert answer.status == 200 and answer.json["status"] == "connected" and not answer.json["verified"], answer
        assert client.post(at + "/snapshots", {"name": "of-a-hanging-one"}).status == 201
        assert client.delete(at).status == 200
        assert wait_for(lambda: not is_alive(init))


def test_a_caller_is_released_when_the_time_limit_has_passed(patient):
    client, s, init = new(patient)
    answers = []

    def call():
        answers.append(client.post(f"/v1/sessions/{s['id']}/exec", {"command": "sleep 1000", "timeout_ms": 3000}))

    caller = threading.Thread(target=call)
    caller.start()
    assert wait_for(lambda: client.session(s["id"])["runtime"] == "live" and
                    "running" in [x["state"] for x in client.get(f"/v1/sessions/{s['id']}/execs").json["execs"]])
    with stopped(init):
        caller.join(2 * HELD_SECONDS)
        unresponsive(answers[0])
    assert client.delete("/v1/sessions/" + s["id"]).status == 200


def test_it_is_replaced_and_the_loss_reported(hasty):
    client, s, init = new(hasty)
    at = "/v1/sessions/" + s["id"]
    job = client.post(at + "/exec", {"command": "sleep 1000", "background": True}).json["exec_id"]
    os.kill(init, signal.SIGSTOP)
    assert wait_for(lambda: client.session(s["id"])["state"] == "hibernated")
    cause = client.session(s["id"])["cause"]
    assert cause["code"] == "unavailable" and "did not respond" in cause["text"], cause
    assert not is_alive(init)
    ended = client.get(f"{at}/execs/{job}").json["exec"]
    assert ended["state"] == "killed" and ended["reason"] == "killed with its sandbox, which did not respond", ended
    answer = client.post(at + "/exec", {"command": "cat f; pgrep sleep || echo none"})
    assert answer.json["stdout"] == "kept\nnone\n" and answer.headers["Lodge-Outcome"] == "resumed", answer
    assert client.session(s["id"])["incarnation"] == s["incarnation"] + 1
    assert client.delete(at).status == 200


def test_one_that_hangs_when_lodged_starts_is_replaced(hasty):
    client, s, init = new(hasty)
    hasty.stop()
    os.kill(init, signal.SIGSTOP)
    hasty.start()
    client = impatient(hasty)
    at = "/v1/sessions/" + s["id"]
    assert wait_for(lambda: client.post(at + "/exec", {"command": "true"}).status == 200)
    assert not is_alive(init)
    events = client.get("/v1/events?session=" + s["id"]).json["events"]
    assert "unavailable" in [e["cause"]["code"] for e in events if e["cause"]], events
    assert client.run(s["id"], "cat f") == "kept\n"
    assert client.delete(at).status == 200
