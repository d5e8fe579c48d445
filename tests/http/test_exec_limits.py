# SPDX-License-Identifier: Apache-2.0
"""Commands over /v1: timeouts, limits and invalid requests."""
import base64
import concurrent.futures
import json
import os
import socket
import time

import pytest

from client import wait_for
from machine import with_time

SLOW = bool(os.environ.get("LODGE_SLOW"))


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="limits", limits={
        "memory_bytes": 96 << 20, "pids": 40, "disk_bytes": 64 << 20})


def run(client, at, **body):
    answer = client.post(at + "/exec", body)
    assert answer.status == 200, answer
    return answer.json


def start_background(client, at, **body):
    answer = client.post(at + "/exec", dict(body, background=True))
    assert answer.status == 202, answer
    return f"{at}/execs/{answer.json['exec_id']}"


def record(client, path):
    return client.get(path).json["exec"]


def ended(client, path, seconds=120):
    assert wait_for(lambda: record(client, path)["state"] != "running", seconds)
    return record(client, path)


def no_process_matches(client, at, pattern):
    return wait_for(lambda: run(client, at, command=f"pgrep -fx '{pattern}'")["stdout"] == "")


# ---- time -------------------------------------------------------------------------------------


TREE = "(setsid sleep {n}1 &) ; sleep {n}2 & trap '' TERM HUP; sleep {n}3"


def test_timeout_kills_the_whole_tree(client, at):
    r = run(client, at, command=TREE.format(n=71), timeout_ms=400)
    assert r["timed_out"] and r["limits"] == ["TIMEOUT"] and r["exit_code"] is None
    assert no_process_matches(client, at, "sleep 71[123]")


def test_timeout_without_a_caller(client, at):
    """The timeout does not depend on the connection."""
    body = json.dumps({"command": TREE.format(n=72), "timeout_ms": 1500}).encode()
    before = {x["exec_id"] for x in client.get(at + "/execs?limit=500").json["execs"]}
    with socket.create_connection((client.host, client.port), timeout=180) as s:
        s.sendall((f"POST {at}/exec HTTP/1.1\r\nHost: localhost\r\nx-api-key: {client.key}\r\nContent-Type: "
                   f"application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
        new = wait_for(lambda: [x for x in client.get(at + "/execs?limit=500").json["execs"]
                                if x["exec_id"] not in before])
    x = ended(client, f"{at}/execs/{new[0]['exec_id']}")
    assert x["state"] == "killed" and x["timed_out"]
    assert no_process_matches(client, at, "sleep 72[123]")


def test_timeout_of_a_stream_and_of_the_background(client, at):
    path = start_background(client, at, command=TREE.format(n=73), timeout_ms=400)
    for ms in (400, 4000, 40000):
        answer = client.post(at + "/exec", {"command": "echo begun; " + TREE.format(n=73), "timeout_ms": ms},
                             headers={"Accept": "application/x-ndjson"})
        events = [json.loads(line) for line in answer.data.splitlines()]
        assert events[-1]["event"] == "exit" and events[-1]["timed_out"]
        if len(events) > 2:  # otherwise the machine was too busy to run the command
            break
    assert [e["event"] for e in events] == ["started", "stdout", "exit"]
    assert ended(client, path)["timed_out"]
    assert no_process_matches(client, at, "sleep 73[123]")


def test_a_process_that_holds_the_output_does_not_delay_the_result(client, at):
    r = run(client, at, command="sleep 7400 & echo over; exit 5", timeout_ms=0)
    assert (r["stdout"], r["exit_code"], r["timed_out"]) == ("over\n", 5, False)
    answer = client.post(at + "/exec", {"command": "sleep 7400 & echo over", "timeout_ms": 0},
                         headers={"Accept": "text/event-stream"})
    assert answer.data.decode().count("event: exit") == 1
    path = start_background(client, at, command="sleep 7400 & echo over", timeout_ms=0)
    ended(client, path)
    assert client.get(path + "/output").json["done"]
    assert run(client, at, command="pgrep -cfx 'sleep 7400'")["stdout"] == "3\n"
    run(client, at, command="pkill -x sleep")


def test_a_stuck_command_blocks_no_other(client, at):
    stuck = [start_background(client, at, command="exec 0<&-; while :; do read x </dev/null; sleep 1; done",
                   timeout_ms=0) for _ in range(8)]
    assert run(client, at, command="echo free")["stdout"] == "free\n"
    for path in stuck:
        assert client.delete(path).json["exec"]["state"] == "killed"


def test_long_poll(client, at):
    path = start_background(client, at, command="sleep .4; echo a; sleep 600")
    o = client.get(path + "/output?wait_ms=60000").json
    assert (o["stdout"], o["done"]) == ("a\n", False)
    o = client.get(path + "/output?stdout_offset=2&wait_ms=300").json
    assert (o["stdout"], o["stdout_offset"], o["done"]) == ("", 2, False)
    for query in ("wait_ms=-1", "wait_ms=60001", "wait_ms=x", "stdout_offset=-1", "stderr_offset=1e3",
                  "stdout_offset=99999999999999999999", "encoding=hex"):
        answer = client.get(f"{path}/output?{query}")
        assert answer.status == 400 and query.partition("=")[0] in answer.json["error"]["message"], answer
    client.delete(path)
    assert client.get(path + "/output?stdout_offset=2&wait_ms=30000").json["done"]


@pytest.mark.skipif(not SLOW, reason="only with LODGE_SLOW=1")
@pytest.mark.parametrize("accept, beat", (("application/x-ndjson", b'{"event":"beat"}\n'),
                                          ("text/event-stream", b": beat\n")))
def test_idle_streams_send_heartbeats(client, at, accept, beat):
    c, response = client.open("POST", at + "/exec", {"command": "sleep 600", "timeout_ms": 40_000},
                              {"Accept": accept})
    lines = iter(response)
    assert any(line == beat for line in lines)
    c.close()


# ---- limits -----------------------------------------------------------------------------------


def test_memory(client, at):
    r = run(client, at, command="tail /dev/zero; echo still here")
    assert "LIMIT_MEMORY" in r["limits"] and r["oom_killed"], r
    r = run(client, at, command="echo well")
    assert r["stdout"] == "well\n" and r["limits"] == [] and not r["oom_killed"]


def test_processes(client, at):
    r = with_time(lambda ms: run(client, at, command="for i in {1..100}; do sleep 600 & done; wait", timeout_ms=ms),
                  lambda r: "LIMIT_PIDS" in r["limits"])
    assert "LIMIT_PIDS" in r["limits"], r
    assert wait_for(lambda: run(client, at, command="pkill -x sleep; echo well")["stdout"] == "well\n")


def test_a_changed_file_limit_applies_to_the_next_command(client):
    at = "/v1/sessions/" + client.enter(key="files")
    run(client, at, command="true")
    for most, fits in ((8192, False), (1 << 20, True), (4096, False)):
        answer = client.patch(at, {"limits": {"file_bytes": most, "output_bytes": 4096 if fits else 8192}})
        assert answer.json["session"]["limits"]["file_bytes"] == most, answer
        for way in ({"command": "exec head -c 20000 /dev/zero > f"}, {"argv": ["dd", "if=/dev/zero", "of=f", "bs=20000", "count=1"]}):
            r = run(client, at, **way)
            assert (r["exit_code"] == 0) == fits and (r["limits"] == ["LIMIT_FILE"]) != fits, r
        assert client.put(at + "/files/g", b"x" * 20000).status == (201 if fits else 413)
        r = run(client, at, command="head -c 6000 /dev/zero")
        assert r["truncated"] == fits, r
        client.delete(at + "/files/g")
    assert client.delete(at).status == 200


def test_processes_of_lodge_are_not_counted(client):
    at = "/v1/sessions/" + client.enter(key="few")

    def count():
        return client.get(at + "/stats").json["stats"]["pids"]

    run(client, at, command="true")
    assert wait_for(lambda: count() == 0)
    start_background(client, at, command="exec sleep 600", timeout_ms=0)
    assert count() in (1, 2)  # a spare shell may wait for the next command
    start_background(client, at, command="exec sleep 600", timeout_ms=0)
    start_background(client, at, command="exec sleep 600", timeout_ms=0)
    assert count() in (3, 4)
    assert client.delete(at).status == 200


def test_a_full_process_limit_refuses_commands(client):
    """And file operations."""
    at = "/v1/sessions/" + client.enter(key="full", limits={"pids": 20})
    assert client.post(at + "/files/x?mkdir").status == 201
    start_background(client, at, command="while :; do sleep 600 & done 2>/dev/null", timeout_ms=0)

    def refused():
        answer = client.post(at + "/exec", {"argv": ["sleep", "1000"], "background": True})
        return answer if answer.status != 202 else None

    answer = wait_for(refused)
    assert answer.status == 429 and answer.code == "LIMIT_PIDS", answer
    assert answer.json["error"]["details"] == {"pids": 20} and "processes have ended" in answer.message
    assert answer.json["error"]["retryable"] and int(answer.headers["Retry-After"]) >= 1
    for method, path in (("GET", "/archive"), ("GET", "/archive?format=tar.zst"), ("GET", "/files/?list"),
                         ("PUT", "/archive"), ("DELETE", "/files/x?recursive=1")):
        answer = client.call(method, at + path, b"" if method == "PUT" else None)
        assert answer.status == 429 and answer.code == "LIMIT_PIDS", (method, path, answer)
    stats = client.get(at + "/stats").json["stats"]
    row = client.get("/v1/sessions?view=row&q=full").json["sessions"][0]
    assert row["key"] == "full" and 15 <= row["usage"]["pids"] <= 20, row
    assert 15 <= stats["pids"] <= 20 and (stats["pids_peak"] is None or stats["pids"] <= stats["pids_peak"] <= 20), stats
    assert client.delete(at).status == 200


def test_disk(client, at):
    r = run(client, at, command="head -c 100M /dev/zero > ~/big")
    assert "LIMIT_DISK" in r["limits"] and r["exit_code"] == 1, r
    run(client, at, command="rm ~/big")
    assert run(client, at, command="echo x > ~/small && cat ~/small")["stdout"] == "x\n"
    answer = client.call("PUT", at + "/files/big", b"x" * (70 << 20))
    assert answer.status == 507 and answer.code == "LIMIT_DISK", answer


def test_output(client, at):
    r = run(client, at, command="head -c 50000 /dev/zero; head -c 9 /dev/zero >&2", max_output_bytes=4096,
            encoding="base64")
    assert r["truncated"] and "LIMIT_OUTPUT" in r["limits"] and r["stdout_bytes"] == 50000
    assert len(base64.b64decode(r["stdout"])) == 4096 and len(base64.b64decode(r["stderr"])) == 9
    x = record(client, f"{at}/execs/{r['exec_id']}")
    assert x["stdout_bytes"] == 50000 and x["stderr_bytes"] == 9
    r = run(client, at, command="head -c 4096 /dev/zero", max_output_bytes=4096)
    assert not r["truncated"] and r["limits"] == []
    for wrong in (0, -1, 1 << 40, "1", 1.5):
        answer = client.post(at + "/exec", {"command": "true", "max_output_bytes": wrong})
        assert answer.status == 400 and "max_output_bytes" in answer.json["error"]["message"]


def test_both_streams_by_offset(client, at):
    path = start_background(client, at, command="for i in {1..2000}; do echo $i; echo e$i >&2; done")
    ended(client, path)
    whole = client.get(path + "/output").json
    for out, err in ((0, 0), (1, 2), (100, 5), (3000, 8000), (len(whole["stdout"]), 0)):
        o = client.get(f"{path}/output?stdout_offset={out}&stderr_offset={err}").json
        assert o["stdout"] == whole["stdout"][out:] and o["stderr"] == whole["stderr"][err:]
        assert (o["stdout_offset"], o["stderr_offset"], o["done"]) == (
            len(whole["stdout"]), len(whole["stderr"]), True)
    assert whole["stdout"].split() == [str(i) for i in range(1, 2001)]


# ---- exit status ------------------------------------------------------------------------------


@pytest.mark.parametrize("text, code, signal", [
    ("exit 255", 255, None), ("no-such-thing-here", 127, None), ("/etc", 126, None),
    ("kill -SEGV $$", None, 11), ("kill -9 $$", None, 9), ("(exit 3) | true", 0, None),
    ("false", 1, None), ("", 0, None), ("if", 2, None),
])
def test_status(client, at, text, code, signal):
    r = run(client, at, command=text)
    assert (r["exit_code"], r["signal"]) == (code, signal), r
    x = record(client, f"{at}/execs/{r['exec_id']}")
    assert (x["exit_code"], x["signal"], x["state"]) == (code, signal, "killed" if signal else "exited")
    assert x["ended_at"] >= x["started_at"]


def test_signal_reaches_the_group(client, at):
    path = start_background(client, at, command="trap 'echo shell' USR1; (trap 'echo child' USR1; echo up; "
                                     "while :; do sleep .1; done) & wait; wait; wait", timeout_ms=0)
    assert client.get(path + "/output?wait_ms=60000").json["stdout"] == "up\n"
    assert client.post(path + "/signal", {"signal": "USR1"}).status == 200
    assert wait_for(lambda: sorted(client.get(path + "/output").json["stdout"].split()) == ["child", "shell", "up"])
    assert client.post(path + "/signal", {"signal": "KILL"}).status == 200
    assert ended(client, path)["signal"] == 9


def test_invalid_sizes_are_refused(client, at):
    path = start_background(client, at, command="sleep 600", timeout_ms=0)
    for wrong in ({"rows": 0, "cols": 1}, {"rows": 1, "cols": 65536}, {"rows": "1", "cols": 1}, {"lines": 3}, []):
        assert client.post(path + "/resize", wrong).status == 400
    answer = client.post(path + "/resize", {"rows": 1, "cols": 1})
    assert answer.status == 409 and "terminal" in answer.json["error"]["message"], answer
    client.delete(path)


# ---- invalid requests -------------------------------------------------------------------------


def test_user_of_a_command(client, at):
    mine = run(client, at, command="id -un; id -u")["stdout"].split()
    assert mine[1] != "0"
    assert run(client, at, command="id -un", user=mine[0])["stdout"].split() == mine[:1]
    assert run(client, at, command="id -u", user=mine[1])["stdout"].split() == mine[1:]
    for wrong in ("nosuch-user", "-1", "4294967295", "a:b", "../x", 5):
        answer = client.post(at + "/exec", {"command": "id", "user": wrong})
        assert answer.status == 400 and "user" in answer.json["error"]["message"], (wrong, answer)


@pytest.mark.parametrize("cwd", ("/nowhere", "/etc/passwd", "relative-nowhere", "/proc/1/cwd", "/a\0b", "x" * 5000))
def test_invalid_directories_are_refused(client, at, cwd):
    answer = client.post(at + "/exec", {"command": "pwd", "cwd": cwd})
    assert 400 <= answer.status < 500, answer
    assert answer.json["error"]["message"]


def test_relative_directory(client, at):
    home = run(client, at, command="mkdir -p sub; pwd")["stdout"].strip()
    assert run(client, at, command="pwd", cwd=home + "/sub")["stdout"].strip() == home + "/sub"


@pytest.mark.parametrize("env", ({"": "x"}, {"A=B": "x"}, {"A": None}, {"A": ["x"]}, {"A": "\0"}, "A=1"))
def test_invalid_environment_is_refused(client, at, env):
    answer = client.post(at + "/exec", {"command": "env", "env": env})
    assert answer.status == 400, answer
    assert "env" in answer.json["error"]["message"] or "\\u0000" in answer.json["error"]["message"]


def test_environment_overrides_that_of_the_session(client):
    at = "/v1/sessions/" + client.enter(env={"A": "session", "B": "session"})
    r = run(client, at, command="echo $A $B $C", env={"B": "command", "C": "a\nb'\"$x"})
    assert r["stdout"] == "session command a b'\"$x\n"
    assert client.delete(at).status == 200


@pytest.mark.parametrize("body", (
    {"command": ": " + "x" * 1_000_000}, {"argv": ["echo", "x" * 1_000_000]}, {"argv": ["true"] * 100_000},
    {"command": "true", "env": {f"V{i}": "x" * 1000 for i in range(1000)}},
    {"command": "true", "idempotency_key": "x" * 2000}, {"command": "true", "idempotency_key": ""},
), ids=("text", "argument", "arguments", "environment", "key", "no key"))
def test_requests_over_the_size_limits_are_refused(client, at, body):
    answer = client.post(at + "/exec", body)
    assert 400 <= answer.status < 500, (answer.status, answer.data[:300])
    assert answer.json["error"]["message"] and not answer.json["error"]["retryable"]
    assert run(client, at, command="echo well")["stdout"] == "well\n"


def test_unknown_and_deleted_sessions(client):
    assert client.post("/v1/sessions/ses_none/exec", {"command": "true"}).status == 404
    i = client.enter()
    r = run(client, "/v1/sessions/" + i, command="true")
    assert client.delete("/v1/sessions/" + i).status == 200
    answer = client.post(f"/v1/sessions/{i}/exec", {"command": "true"})
    assert answer.status == 410 and answer.code == "GONE" and answer.json["error"]["details"]["cause"], answer
    assert client.get(f"/v1/sessions/{i}/execs/{r['exec_id']}").status in (200, 410)


# ---- idempotency ------------------------------------------------------------------------------


def test_concurrent_requests_with_one_key_run_once(client, at):
    """All requests get the same exec, in the background or not."""
    key = f"many-{time.time_ns()}"
    body = {"command": f"echo ran >> ~/{key}; sleep .3; echo done", "idempotency_key": key}
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: client.post(at + "/exec", dict(body, background=n % 3 == 0)), range(12)))
    assert all(a.status in (200, 202) for a in answers), answers
    assert len({a.json["exec_id"] for a in answers}) == 1
    assert {a.json["stdout"] for a in answers if a.status == 200} == {"done\n"}
    assert run(client, at, command=f"cat ~/{key}")["stdout"] == "ran\n"


def test_idempotency_keys_are_per_session(client, at):
    other = "/v1/sessions/" + client.enter()
    first = run(client, at, command="true", idempotency_key="shared")
    second = run(client, other, command="true", idempotency_key="shared")
    assert first["exec_id"] != second["exec_id"]
    assert client.delete(other).status == 200


def test_a_failed_start_is_repeated_with_its_key(client, at):
    """The same key gets the same result, even though the command never ran."""
    key = f"failed-{time.time_ns()}"
    body = {"argv": ["no-such-program"], "idempotency_key": key}
    first, again = run(client, at, **body), run(client, at, **body)
    assert first["exit_code"] == 127 and "no-such-program" in first["stderr"]
    assert [again[name] for name in ("exec_id", "exit_code", "stderr")] == [
        first[name] for name in ("exec_id", "exit_code", "stderr")]


def test_a_full_session_survives_hibernation(client):
    """Its files can still be deleted afterwards, and its limit can be changed while it is full."""
    sid = client.enter(limits={"disk_bytes": 20 << 20})
    at = "/v1/sessions/" + sid
    try:
        if client.get(at + "/stats").json["stats"]["disk_limit_bytes"] is None:
            pytest.skip("disk limits are not enforced here")
        for disk in (20 << 20, 200 << 20, 4 << 20):  # the last one is below what the files use
            assert client.patch(at, {"limits": {"disk_bytes": disk}}).status == 200
            answer = client.post(at + "/exec", {"command": "head -c 50M /dev/zero >> big && sync big"}).json
            assert (disk == 200 << 20) == (answer["exit_code"] == 0), answer
            assert client.post(at + "/hibernate").status == 200
            said = client.run(sid, "(head -c 30M /dev/zero > more && echo fits || echo full) 2>&1 | tail -1; rm -f more")
            assert said == ("fits\n" if disk == 200 << 20 else "full\n")
        assert client.run(sid, "rm big; ls") == ""
        assert wait_for(lambda: run(client, at, command="echo again > f && sync . && cat f")["stdout"] == "again\n")
    finally:
        client.delete(at)


# ---- records ----------------------------------------------------------------------------------


@pytest.mark.parametrize("body, out, kept", [
    ({"command": "echo " + "x" * 100000}, "x" * 100000 + "\n", "echo " + "x" * 4091 + "…"),
    ({"command": "echo " + "ä" * 10000}, "ä" * 10000 + "\n", "echo " + "ä" * 2045 + "…"),  # no half a character
    ({"command": "echo " + "y" * 4091}, "y" * 4091 + "\n", "echo " + "y" * 4091),
    ({"command": ":" + "\t" * 50000 + " ; echo end"}, "end\n", ":" + "\t" * 4095 + "…"),
    ({"argv": ["echo", "a" * 3000, "b" * 3000, "c"]}, "a" * 3000 + " " + "b" * 3000 + " c\n",
     ["echo", "a" * 3000, "b" * (4096 - 5 - 3001) + "…"]),
    ({"argv": ["printf", "%s"] + [""] * 6000}, "", ["printf", "%s"] + [""] * (4096 - 10) + ["…"]),
], ids=["text", "umlauts", "just as long", "escapes", "arguments", "many arguments"])
def test_the_record_of_a_long_command_is_cut(client, at, body, out, kept):
    """The command itself is not."""
    r = run(client, at, **body)
    assert r["exit_code"] == 0 and r["stdout"] == out, r
    assert record(client, f"{at}/execs/{r['exec_id']}")["command"] == kept
