# SPDX-License-Identifier: Apache-2.0
"""Users, quotas, health, readiness and metrics."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import tempfile

import pytest

from client import BUILD, KEY, Lodged, is_alive, wait_for
from machine import descendants


def ok(answer, status=200):
    assert answer.status == status, answer
    return answer.json


# ---- users --------------------------------------------------------------------------------------


@pytest.fixture
def user(client):
    """A new user name; its sessions and quota are removed afterwards."""
    name = "user-" + os.urandom(4).hex()
    yield name
    for s in client.get("/v1/sessions?user=" + name).json["sessions"]:
        client.delete("/v1/sessions/" + s["id"])
    client.put(f"/v1/users/{name}/quota", {})


def test_usage_of_a_user_sums_its_sessions(client, user):
    assert client.get("/v1/users/" + user).status == 404
    client.enter(user=user, key=user + "1", limits={"memory_bytes": 64 << 20, "disk_bytes": 32 << 20})
    client.enter(user=user, key=user + "2", asleep=True, limits={"disk_bytes": 32 << 20})
    u = ok(client.get("/v1/users/" + user))
    assert u["user"]["id"] == user and u["user"]["active"] == 1
    assert (u["usage"]["sessions"], u["usage"]["active"]) == (2, 1)
    assert u["usage"]["memory_bytes"] == 64 << 20 and u["usage"]["disk_bytes"] == 64 << 20
    assert u["quota"] == {"sandboxes": 0, "memory_bytes": 0, "disk_bytes": 0, "cpu_ms": 0}


def test_quotas_are_enforced(client, user):
    at = f"/v1/users/{user}/quota"
    assert ok(client.get(at))["quota"]["sandboxes"] == 0
    q = ok(client.put(at, {"sandboxes": 1, "memory_bytes": 100 << 20, "disk_bytes": 100 << 20}))
    assert q["quota"] == {"sandboxes": 1, "memory_bytes": 100 << 20, "disk_bytes": 100 << 20,
                          "cpu_ms": 0}
    assert q["usage"]["active"] == 0 and ok(client.get(at)) == q
    small = {"memory_bytes": 40 << 20, "disk_bytes": 40 << 20}
    first = client.enter(user=user, key=user + "1", limits=small)

    def refused(answer, what):
        assert answer.status == 429 and answer.code == "LIMIT", answer
        assert what in answer.json["error"]["message"] and not answer.json["error"]["retryable"]

    refused(client.post("/v1/sessions", {"user": user, "key": "x", "limits": small}), "sandboxes")
    refused(client.post(f"/v1/sessions/{first}/fork", {"count": 2}), "disk")
    refused(client.post("/v1/sessions", {"user": user, "key": "x", "asleep": True}), "disk")
    refused(client.patch("/v1/sessions/" + first, {"limits": {"memory_bytes": 101 << 20}}), "memory")
    refused(client.patch("/v1/sessions/" + first, {"limits": {"disk_bytes": 101 << 20}}), "disk")
    assert small.items() <= client.session(first)["limits"].items()
    bigger = {"limits": {"memory_bytes": 99 << 20}}
    assert client.patch("/v1/sessions/" + first, bigger).status == 200
    assert client.post("/v1/sessions", {"user": "another user", "asleep": True}).status == 201
    client.delete("/v1/sessions/key:another%20user")
    # released resources can be used again
    ok(client.post(f"/v1/sessions/{first}/hibernate"))
    second = client.enter(user=user, key=user + "2", limits=small)
    refused(client.post(f"/v1/sessions/{first}/resume"), "sandboxes")
    refused(client.post(f"/v1/sessions/{first}/exec", {"command": "true"}), "sandboxes")
    client.delete("/v1/sessions/" + second)
    assert client.post(f"/v1/sessions/{first}/resume").status == 200
    # a PUT replaces the whole quota: omitted fields are unlimited
    assert ok(client.put(at, {}))["quota"]["sandboxes"] == 0
    client.enter(user=user, key=user + "3", limits=small)


def test_cpu_time_counts_against_the_quota(client, user):
    ok(client.put(f"/v1/users/{user}/quota", {"cpu_ms": 50}))
    sid = client.enter(user=user)
    burn = {"command": "for i in $(seq 100000); do :; done"}

    def is_over():
        client.post(f"/v1/sessions/{sid}/exec", burn)
        client.post(f"/v1/sessions/{sid}/hibernate")
        return client.post(f"/v1/sessions/{sid}/resume").status == 429

    assert wait_for(is_over)
    assert ok(client.get("/v1/users/" + user))["usage"]["cpu_ms"] >= 50


# ---- health -------------------------------------------------------------------------------------


def test_health_and_readiness(client, lodged):
    anonymous = lodged.client(None)
    h = ok(anonymous.get("/health"))
    assert (h["status"], h["last_error"]) == ("ok", None) and h["version"]
    assert all(h["parts"][p]["ok"] for p in ("store", "keeper", "room"))
    assert ok(anonymous.get("/ready")) == {"ready": True, "disk": "ok"}
    assert b"/openapi.json" in anonymous.get("/").data


def test_a_dead_keeper_is_reported_and_replaced(client, lodged):
    sid = client.enter()
    (keeper,) = lodged.keepers()
    os.kill(keeper, signal.SIGKILL)
    assert wait_for(lambda: not is_alive(keeper))
    h = ok(client.get("/health"))
    if h["status"] != "ok":  # no new keeper has been started yet
        assert h["status"] == "degraded" and not h["parts"]["keeper"]["ok"]
    assert ok(client.get("/ready"))["ready"]
    other = client.enter()
    assert ok(client.get("/health"))["status"] == "ok"
    assert client.run(sid, "echo alive") == "alive\n"
    for x in (sid, other):
        client.delete("/v1/sessions/" + x)


def test_the_service_survives_a_keeper_that_cannot_start():
    """The keeper's program is missing for a while."""
    with tempfile.TemporaryDirectory(prefix="lodge-programs-") as programs:
        for name in ("lodged", "lodge-keeper", "lodge-init", "lodge-zstd"):
            if os.path.exists(os.path.join(BUILD, name)):
                shutil.copy(os.path.join(BUILD, name), programs)
        keeper = os.path.join(programs, "lodge-keeper")
        with contextlib.closing(Lodged(os.path.join(programs, "lodged"))) as lodged:
            client = lodged.client()
            sid = client.enter()
            os.rename(keeper, keeper + ".away")
            for pid in lodged.keepers():
                os.kill(pid, signal.SIGKILL)
                assert wait_for(lambda pid=pid: not is_alive(pid))
            answer = client.post("/v1/sessions", {"key": "new"})
            assert answer.status == 503 and answer.json["error"]["retryable"], answer
            with open(keeper, "w"):  # exists, but is not executable
                pass
            answer = client.post("/v1/sessions", {"key": "new"})
            assert answer.status == 503, answer
            h = ok(client.get("/health"))
            assert h["status"] == "degraded" and not h["parts"]["keeper"]["ok"]
            assert h["last_error"]["count"] >= 1 and h["last_error"]["at"] > 0
            assert client.run(sid, "echo alive") == "alive\n"
            os.rename(keeper + ".away", keeper)
            assert wait_for(lambda: client.post("/v1/sessions", {"key": "new"}).status in (200, 201))
            assert ok(client.get("/health"))["status"] == "ok"


def find(command, init):
    """The process below lodge-init with this command line."""
    for pid in descendants(init):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == command:
                    return int(pid)
    raise AssertionError(f"there is no {command}")


def test_not_ready_while_draining():
    with contextlib.closing(Lodged(drain="120s")) as lodged:
        client = lodged.client()
        sid = client.enter()
        kept = http.client.HTTPConnection(lodged.host, lodged.port, timeout=180)
        kept.request("GET", "/ready")
        assert json.loads(kept.getresponse().read())["ready"] is True
        running = http.client.HTTPConnection(lodged.host, lodged.port, timeout=180)
        running.request("POST", f"/v1/sessions/{sid}/exec",
                        json.dumps({"command": "touch started; sleep 577; echo over"}),
                        {"X-Api-Key": KEY, "Content-Type": "application/json"})
        assert wait_for(lambda: client.get(f"/v1/sessions/{sid}/files/started").status == 200)
        events, response = client.open("GET", "/v1/events", headers={"Accept": "text/event-stream"})
        init = lodged.init_of(client.session(sid))
        lodged.process.send_signal(signal.SIGTERM)

        def is_shut():
            try:
                socket.create_connection((lodged.host, lodged.port), timeout=5).close()
            except ConnectionError:  # refused, or reset if the listener closed just then
                return True
            return False

        assert wait_for(is_shut)
        kept.request("GET", "/ready")
        answer = kept.getresponse()
        assert answer.status == 503 and answer.headers["Retry-After"]
        assert answer.headers["Connection"].lower() == "close" and answer.read()
        response.read()  # endless streams are ended
        # requests in progress get their response
        os.kill(find(b"sleep\x00577\x00", init), signal.SIGKILL)
        answer = running.getresponse()
        assert answer.status == 200 and json.loads(answer.read())["stdout"] == "over\n"
        assert lodged.process.wait(180) == 0
        for c in (kept, running, events):
            c.close()
        lodged.process.stdout.close()
        lodged.start()
        assert lodged.client().session(sid)["state"] == "active"


# ---- metrics ------------------------------------------------------------------------------------

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
                    r'(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*")*\})? '
                    r'([-+]?(?:[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|Inf)|NaN)')


def read_metrics(client):
    """Parse the text like Prometheus: samples by name and labels, and types by family."""
    answer = client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.data.decode()
    assert text.endswith("\n")
    types, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        elif line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4
        else:
            m = SAMPLE.fullmatch(line)
            assert m, line
            family = re.sub("_(bucket|sum|count)$", "", m.group(1))
            assert m.group(1) in types or types.get(family) == "histogram", line
            labels = m.group(2) or ""
            assert (m.group(1), labels) not in samples, line
            samples[m.group(1), labels] = float(m.group(3))
    return samples, types


def test_metrics_are_valid_prometheus_text(lodged, client):
    sid = client.enter(key="counted")
    client.run(sid, "true")
    client.enter(key="counted")
    client.get("/v1/sessions/none")
    samples, types = read_metrics(lodged.client(None))
    assert types["lodge_enter_seconds"] == types["lodge_exec_seconds"] == "histogram"
    assert samples["lodge_sandboxes_active", ""] >= 1
    for outcome in ("created", "reused", "resumed", "replaced"):
        check_histogram(samples, "lodge_enter_seconds", f'outcome="{outcome}"')
    check_histogram(samples, "lodge_exec_seconds", "")
    assert samples["lodge_enter_seconds_count", '{outcome="created"}'] >= 1
    assert samples["lodge_enter_seconds_sum", '{outcome="created"}'] > 0
    assert samples["lodge_exec_seconds_count", ""] >= 1
    before = samples["lodge_requests_total", '{class="4xx"}']
    client.get("/v1/sessions/none")
    assert read_metrics(client)[0]["lodge_requests_total", '{class="4xx"}'] >= before + 1
    client.delete("/v1/sessions/" + sid)


def check_histogram(samples, name, label):
    buckets = []
    for (sample, labels), value in samples.items():
        if sample == name + "_bucket" and label in labels:
            le = re.search('le="([^"]+)"', labels).group(1)
            buckets.append((float(le.replace("+Inf", "inf")), value))
    assert buckets == sorted(buckets) and len(buckets) > 5 and buckets[-1][0] == float("inf")
    assert [n for _, n in buckets] == sorted(n for _, n in buckets)
    assert buckets[-1][1] == samples[name + "_count", f"{{{label}}}" if label else ""]
