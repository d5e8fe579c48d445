# SPDX-License-Identifier: Apache-2.0
"""The life of a session over /v1: its states, deadlines, capacity and events."""
import contextlib
import glob
import http.client
import json
import os
import signal
import time

import pytest

from client import Lodged, is_alive, wait_for


@pytest.fixture
def session(client):
    sid = client.enter(key="life")
    yield client.session(sid)
    assert client.delete("/v1/sessions/" + sid).status == 200


@pytest.fixture
def at(session):
    return "/v1/sessions/" + session["id"]


def ok(answer, status=200):
    assert answer.status == status, answer
    return answer.json


# ---- hibernate and resume -----------------------------------------------------------------------


def test_hibernate_and_resume(client, session, at):
    client.run(session["id"], "echo kept > f; sleep 600 & true")
    for _ in range(2):  # the second call finds it hibernated and succeeds
        s = ok(client.post(at + "/hibernate"))["session"]
        assert (s["state"], s["runtime"], s["generation"]) == ("hibernated", "resumable", 1)
        assert (s["hibernate_at"], s["expires_at"], s["sandbox"]) == (None, None, None)
        assert s["idle_timeout_ms"] == session["idle_timeout_ms"]
        assert (s["cause"]["code"], s["cause"]["actor"]) == ("asked", "given")
    a = ok(client.post(at + "/resume"))
    assert (a["outcome"], a["source"], a["state_lost"]) == ("resumed", "resume", False)
    assert (a["session"]["incarnation"], a["session"]["generation"]) == (2, 1)
    assert a["session"]["hibernate_at"] and a["session"]["cause"] is None
    answer = client.post(at + "/resume")
    assert ok(answer)["outcome"] == answer.headers["Lodge-Outcome"] == "reused"
    assert client.run(session["id"], "cat f; pgrep sleep || echo none") == "kept\nnone\n"


def test_a_call_resumes_the_session_and_reports_it(client, session, at):
    calls = (("POST", "/exec", {"command": "true"}), ("GET", "/files/x", None),
             ("PUT", "/files/x", b"new"), ("GET", "/archive?path=.", None))
    client.run(session["id"], "echo old > x")
    for method, path, body in calls:
        ok(client.post(at + "/hibernate"))
        refusal = client.call(method, at + path + "&?"["?" not in path] + "resume=0", body)
        assert refusal.status == 409 and refusal.code == "CONFLICT", refusal
        assert refusal.json["error"]["details"]["session"]["state"] == "hibernated"
        assert client.session(session["id"])["state"] == "hibernated"
        answer = client.call(method, at + path, body)
        assert answer.status in (200, 201, 204), answer
        assert answer.headers["Lodge-Outcome"] == "resumed"
        again = client.call(method, at + path + "&?"["?" not in path] + "resume=0", body)
        assert again.status in (200, 201, 204), again
        assert again.headers["Lodge-Outcome"] in (None, "reused")


def test_calls_about_a_running_sandbox_do_not_resume(client, session, at):
    ok(client.post(at + "/hibernate"))
    for method, path in (("POST", "/extend"), ("POST", "/activity"), ("POST", "/pause"),
                         ("POST", "/unpause"), ("GET", "/stats")):
        answer = client.call(method, at + path)
        assert answer.status == 409 and answer.code == "CONFLICT", (path, answer)
        assert answer.json["error"]["details"]["session"]["state"] == "hibernated"
    assert client.session(session["id"])["state"] == "hibernated"
    asleep = client.enter(asleep=True)
    for path in ("/hibernate", "/pause", "/extend"):
        assert client.post(f"/v1/sessions/{asleep}{path}").status == 409
    client.delete("/v1/sessions/" + asleep)


def cpu(client, at):
    return ok(client.get(at + "/stats"))["stats"]["cpu_us"]


def test_pause_freezes_the_processes(client, session, at):
    ok(client.post(at + "/exec", {"command": "while :; do :; done", "background": True}), 202)
    assert wait_for(lambda: cpu(client, at) > 0)
    for _ in range(2):
        assert ok(client.post(at + "/pause"))["session"]["paused"]
    # time on a processor is counted when a task leaves it, which may be after the request
    assert wait_for(lambda: cpu(client, at) == (time.sleep(0.5) or cpu(client, at)))
    before = cpu(client, at)
    assert client.session(session["id"])["sandbox"] == session["sandbox"]
    for _ in range(2):
        assert not ok(client.post(at + "/unpause"))["session"]["paused"]
    assert wait_for(lambda: cpu(client, at) > before)
    # any use of the session thaws it
    ok(client.post(at + "/pause"))
    assert client.run(session["id"], "echo awake") == "awake\n"
    assert not client.session(session["id"])["paused"]


# ---- deadlines ----------------------------------------------------------------------------------


def test_extend_and_activity(client):
    sid = client.enter(idle_timeout_ms=60000, max_lifetime_ms=600000)
    at, s = "/v1/sessions/" + sid, client.session(sid)
    most = s["started_at"] + 600000
    time.sleep(0.02)
    now = ok(client.post(at + "/activity"))["session"]
    assert now["last_activity_at"] > s["last_activity_at"]
    assert now["hibernate_at"] == now["last_activity_at"] + 60000
    longer = ok(client.post(at + "/extend", {"ms": 300000}))["session"]
    assert now["hibernate_at"] + 200000 < longer["hibernate_at"] <= most
    assert longer["version"] > s["version"] and longer["expires_at"] <= most
    assert longer["idle_timeout_ms"] == 60000
    furthest = ok(client.post(at + "/extend", {"ms": 10 ** 12}))["session"]
    assert furthest["hibernate_at"] <= most and furthest["expires_at"] == most
    # a smaller value does not shorten the deadlines
    for call in (lambda: client.post(at + "/extend", {"ms": 1}),
                 lambda: client.post(at + "/activity"),
                 lambda: client.post("/v1/sessions", {"pin": sid}),
                 lambda: client.post(at + "/exec", {"command": "true"})):
        call()
        assert client.session(sid)["hibernate_at"] >= furthest["hibernate_at"]
    client.delete(at)


def test_extend_without_a_body_uses_the_default(client, session, at):
    s = ok(client.post(at + "/extend"))["session"]
    assert s["hibernate_at"] >= session["hibernate_at"]


def test_idle_sessions_hibernate_and_busy_ones_do_not(client):
    idle = client.enter(idle_timeout_ms=300)
    busy = client.enter(idle_timeout_ms=300)
    ok(client.post(f"/v1/sessions/{busy}/exec", {"command": "sleep 600", "background": True}), 202)
    assert wait_for(lambda: client.session(idle)["state"] == "hibernated")
    s = client.session(idle)
    assert s["cause"]["code"] == "idle" and s["idle_timeout_ms"] == 300
    assert client.session(busy)["state"] == "active"
    over = client.enter(max_lifetime_ms=300, idle_timeout_ms=100)
    assert wait_for(lambda: client.session(over)["state"] == "hibernated")
    for sid in (idle, busy, over):
        client.delete("/v1/sessions/" + sid)


# ---- probes -------------------------------------------------------------------------------------


def test_a_probe_reports_the_state_and_extends_nothing(lodged, client, session, at):
    before = client.session(session["id"])
    p = ok(client.post(at + "/probe"))
    assert (p["status"], p["verified"], p["cause"]) == ("connected", True, None)
    assert p["expires_at"] == before["expires_at"] and p["retry_after_ms"] is None
    assert client.session(session["id"]) == before
    lodged.kill_sandbox(session)
    p = ok(client.post(at + "/probe"))
    # "no_sandbox" if the service noticed the death first
    assert p["status"] in ("expired", "no_sandbox") and p["verified"], p
    assert p["cause"]["code"] == "gone", p
    s = client.session(session["id"])
    assert (s["state"], s["runtime"], s["cause"]["code"]) == ("hibernated", "resumable", "gone")
    p = ok(client.post(at + "/probe"))
    assert (p["status"], p["verified"]) == ("no_sandbox", True)
    assert client.session(session["id"]) == s


def test_a_sandbox_that_does_not_respond_is_not_dead(lodged, client, session, at):
    pid = lodged.init_of(session)
    os.kill(pid, signal.SIGSTOP)
    try:
        p = ok(client.post(at + "/probe", {"deadline_ms": 100}))
        assert (p["status"], p["verified"]) == ("connected", False), p
        assert p["retry_after_ms"] > 0 and p["cause"]
        assert client.session(session["id"])["state"] == "active"
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)
    assert ok(client.post(at + "/probe"))["verified"]


# ---- statistics and progress --------------------------------------------------------------------


def test_stats(client, session, at):
    client.run(session["id"], "head -c 3000000 /dev/zero > f; head -c 30000000 /dev/zero | tail -c 1")
    s = ok(client.get(at + "/stats"))["stats"]
    assert set(s) == {"memory_bytes", "memory_peak_bytes", "oom_kills", "cpu_us", "pids", "pids_peak",
                      "pids_denied", "output_memory_bytes", "io_read_bytes", "io_write_bytes", "disk_bytes", "disk_limit_bytes", "disk_full"}
    assert s["pids_peak"] is None or s["pids_peak"] >= s["pids"]
    for name in ("io_read_bytes", "io_write_bytes"):  # None where the host's cgroup v2 tree does not count them
        assert s[name] is None or s[name] >= 0
    assert s["memory_peak_bytes"] >= s["memory_bytes"] > 0 and s["cpu_us"] > 0 and s["pids"] >= 0
    assert s["disk_bytes"] is None or s["disk_bytes"] >= 3000000  # also before the kernel has written it to the disk
    assert s["disk_full"] is False and s["oom_kills"] == 0


def test_progress(client, session, at):
    p = ok(client.get(at + "/progress"))
    assert p["status"] == "ready" and p["step"] == p["total_steps"] and p["error"] is None
    connection, response = client.open("GET", at + "/progress",
                                       headers={"Accept": "text/event-stream"})
    with contextlib.closing(connection):
        assert response.headers["Content-Type"] == "text/event-stream"
        text = response.read().decode()  # the stream ends
    assert "event: progress\n" in text
    assert json.loads(text.split("data: ")[1].split("\n")[0])["status"] == "ready"
    asleep = client.enter(asleep=True)
    assert client.get(f"/v1/sessions/{asleep}/progress").status == 404
    client.delete("/v1/sessions/" + asleep)


# ---- capacity -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    with contextlib.closing(Lodged(max_active=2, queue_max=1)) as d:
        yield d


def busy(client, sid):
    ok(client.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 600", "background": True}), 202)


def test_the_session_idle_longest_is_hibernated_for_a_new_one(small):
    client = small.client()
    a, b = client.enter(key="a"), client.enter(key="b")
    client.post(f"/v1/sessions/{a}/activity")  # now b is idle longest
    c = client.enter(key="c")
    assert client.session(b)["state"] == "hibernated"
    assert client.session(b)["cause"]["code"] == "room"
    assert [client.session(x)["state"] for x in (a, c)] == ["active", "active"]
    for sid in (a, b, c):
        client.delete("/v1/sessions/" + sid)


def test_a_full_service_returns_503_with_details(small):
    client = small.client()
    a, b = client.enter(key="a2"), client.enter(key="b2")
    busy(client, a)
    busy(client, b)
    answer = client.post("/v1/sessions", {"key": "c2"})
    assert answer.status == 503 and answer.code == "UNAVAILABLE", answer
    error = answer.json["error"]
    assert error["retryable"] and int(answer.headers["Retry-After"]) >= 1
    details = error["details"]
    assert (details["active"], details["max"], details["idle"]) == (2, 2, 0)
    assert details["waiting"] == 0 and details["position"] == 1 and details["retry_after_ms"] > 0
    assert client.get("/v1/sessions/key:c2").status == 404
    assert not client.get("/health").json["parts"]["room"]["ok"]
    # a call that would have to resume gets the same error
    asleep = client.enter(key="d", asleep=True)
    assert client.post(f"/v1/sessions/{asleep}/exec", {"command": "true"}).status == 503
    # a waiting caller gets the freed capacity, and the queue is bounded
    connection = waiting_for(client, key="c2", wait_ms=30000)
    assert wait_for(lambda: client.get("/health").json["parts"]["room"]["waiting"] == 1)
    answer = client.post("/v1/sessions", {"key": "e", "wait_ms": 30000})
    assert answer.status == 503, answer
    assert answer.json["error"]["details"]["position"] == 2
    client.delete("/v1/sessions/" + a)
    with contextlib.closing(connection):
        response = connection.getresponse()
        entered = json.loads(response.read())
    assert response.status == 201 and entered["outcome"] == "created"
    for s in client.get("/v1/sessions").json["sessions"]:
        client.delete("/v1/sessions/" + s["id"])


def waiting_for(client, **body):
    """A connection with a request to enter that waits for capacity."""
    connection = http.client.HTTPConnection(client.host, client.port, timeout=180)
    connection.request("POST", "/v1/sessions", json.dumps(body),
                       {"X-Api-Key": client.key, "Content-Type": "application/json"})
    return connection


# ---- reads --------------------------------------------------------------------------------------


def stored(lodged):
    found = {}
    for path in glob.glob(lodged.home + "/lodge.db*"):
        with open(path, "rb") as f:
            found[path] = f.read()
    return found


def stored_when_quiet(lodged):
    """The bytes of the store, once it no longer changes."""
    last = [stored(lodged)]

    def same():
        time.sleep(1)
        last.append(stored(lodged))
        return last[-1] == last[-2]

    assert wait_for(same, 120)
    return last[-1]


def test_reads_write_nothing(lodged, client, session, at):
    run = ok(client.post(at + "/exec", {"command": "echo x"}))["exec_id"]
    snap = ok(client.post(at + "/snapshots"), 201)["snapshot"]["id"]
    asleep = client.enter(key="asleep", user="ann", asleep=True)
    gone = client.enter(asleep=True)
    client.delete("/v1/sessions/" + gone)
    before, record = stored_when_quiet(lodged), client.session(session["id"])
    for path in ("/v1/sessions", "/v1/sessions?state=active", at, "/v1/sessions/key:life",
                 "/v1/sessions/" + asleep, at + "/stats", at + "/progress", at + "/execs",
                 f"{at}/execs/{run}", f"{at}/execs/{run}/output", at + "/snapshots",
                 "/v1/snapshots/" + snap, "/v1/events", "/v1/keys", "/v1/keys/key_given",
                 "/v1/users/ann", "/v1/users/ann/quota", "/v1/templates", "/health", "/ready",
                 "/metrics", "/openapi.json", "/"):
        for _ in range(3):
            assert client.get(path).status == 200, path
            assert client.call("HEAD", path).status == 200, path
    assert client.get("/v1/sessions/" + gone).status == 410
    assert client.get("/v1/sessions/ses_unknown").status == 404
    assert client.session(session["id"]) == record
    assert stored(lodged) == before
    client.delete("/v1/snapshots/" + snap)
    client.delete("/v1/sessions/" + asleep)


# ---- events -------------------------------------------------------------------------------------


def frames(response, until):
    """Read server-sent events until `until` is true."""
    found, frame = [], {}
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            frame[name] = value
        elif frame:
            found.append((int(frame["id"]), frame["event"], json.loads(frame["data"])))
            frame = {}
            if until(found):
                return found
    return found


def stream(client, path, last=None):
    headers = {"Accept": "text/event-stream"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    connection, response = client.open("GET", path, headers=headers)
    assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream"
    return contextlib.closing(connection), response


def test_events_come_in_order_and_can_be_replayed(client):
    sid = client.enter(key="events")
    at, here = "/v1/sessions/" + sid, "/v1/events?session=" + sid
    connection, response = stream(client, here + "&since=0")
    with connection:
        client.patch(at, {"metadata": {"a": "b"}})
        client.post(at + "/hibernate")
        client.post(at + "/resume")
        client.delete(at)
        seen = frames(response, lambda f: f[-1][1] == "destroy")
    ids = [i for i, _, _ in seen]
    assert ids == sorted(set(ids))
    assert [k for _, k, _ in seen] == ["create", "start", "ready", "change", "sleep", "sealed",
                                       "start", "ready", "destroy"]
    versions = [d["version"] for _, _, d in seen if d["version"]]
    assert versions == sorted(versions)
    for i, kind, d in seen:
        assert (d["id"], d["kind"], d["session"]) == (i, kind, sid) and d["at"] > 0
    assert seen[0][2]["cause"]["actor"] == "given"
    # from each event on, as a stream and as pages
    for n in (0, 2, len(seen) - 2):
        connection, response = stream(client, here, ids[n])
        with connection:
            assert frames(response, lambda f, n=n: len(f) == len(seen) - n - 1) == seen[n + 1:]
    pages, since = [], 0
    while page := ok(client.get(f"{here}&limit=2&since={since}")):
        if not page["events"]:
            break
        assert len(page["events"]) <= 2 and page["next"] == page["events"][-1]["id"]
        pages += page["events"]
        since = page["next"]
    assert pages[:len(seen)] == [d for _, _, d in seen]
    assert page["next"] == since
    # the header overrides the query
    answer = client.get(here + "&since=0", headers={"Last-Event-ID": str(ids[-1])})
    assert ids[0] not in [e["id"] for e in ok(answer)["events"]]


def test_a_stream_without_since_starts_with_new_events(client):
    before = client.enter(asleep=True)
    connection, response = stream(client, "/v1/events")
    with connection:
        after = client.enter(asleep=True)
        assert frames(response, lambda f: True)[0][2]["session"] == after
    for sid in (before, after):
        client.delete("/v1/sessions/" + sid)


def test_many_events_are_complete(client):
    sid = client.enter(asleep=True)
    for i in range(450):
        assert client.patch("/v1/sessions/" + sid, {"metadata": {"n": str(i)}}).status == 200
    connection, response = stream(client, f"/v1/events?since=0&session={sid}")
    with connection:
        seen = frames(response, lambda f: len(f) == 451)
    assert [k for _, k, _ in seen] == ["create"] + ["change"] * 450
    assert [d["version"] for _, _, d in seen] == list(range(1, 452))
    client.delete("/v1/sessions/" + sid)


@pytest.mark.skipif(not os.environ.get("LODGE_SLOW"), reason="takes 40 s; LODGE_SLOW=1 runs it")
def test_a_silent_stream_sends_heartbeats(client):
    connection, response = stream(client, "/v1/events")
    with connection:
        assert response.readline() == b": lodge\n"
        beats = 0
        while beats < 2:
            beats += response.readline() == b": beat\n"
        sid = client.enter(asleep=True)
        assert frames(response, lambda f: True)[0][2]["session"] == sid
    client.delete("/v1/sessions/" + sid)


# ---- without an engine --------------------------------------------------------------------------


def test_a_sandbox_without_an_engine_ends_at_its_deadline():
    """Also one of a program in local mode, which has the same engine."""
    with contextlib.closing(Lodged()) as d:
        client = d.client()
        idle, busy, later = (client.session(client.enter(key=key, idle_timeout_ms=ms))
                             for key, ms in (("idle", 3000), ("busy", 3000), ("later", 600000)))
        client.run(idle["id"], "echo kept > f")
        job = client.post(f"/v1/sessions/{busy['id']}/exec", {"command": "sleep 1000", "background": True, "timeout_ms": 0})
        assert job.status == 202, job
        inits = [d.init_of(s) for s in (idle, busy, later)]
        d.stop(signal.SIGKILL)
        assert wait_for(lambda: not is_alive(inits[0])), "nothing ends it"
        assert is_alive(inits[1]) and is_alive(inits[2])
        d.start()
        client = d.client()
        s = client.session(idle["id"])
        assert (s["state"], s["cause"]["code"]) == ("hibernated", "idle"), s
        assert client.run(idle["id"], "cat f") == "kept\n"
        for was in (busy, later):
            assert client.session(was["id"])["sandbox"] == was["sandbox"]
        x = client.get(f"/v1/sessions/{busy['id']}/execs/{job.json['exec_id']}").json["exec"]
        assert x["state"] == "running", x
