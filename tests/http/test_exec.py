# SPDX-License-Identifier: Apache-2.0
"""Commands over /v1: with and without waiting, as a stream, with input, output, signals."""
import base64
import contextlib
import json
import socket
import time

import pytest

from client import wait_for


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="exec")


def run(client, at, headers=None, **body):
    answer = client.post(at + "/exec", body, headers=headers)
    assert answer.status == 200, answer
    return answer.json


def start_background(client, at, states=("running",), **body):
    """Start a command in the background. Pass "exited" in `states` if it may end before the response."""
    answer = client.post(at + "/exec", dict(body, background=True))
    assert answer.status == 202, answer
    assert answer.json["state"] in states
    return f"{at}/execs/{answer.json['exec_id']}"


def record(client, path):
    answer = client.get(path)
    assert answer.status == 200, answer
    return answer.json["exec"]


def has_ended(client, path):
    return wait_for(lambda: record(client, path)["state"] != "running")


def ndjson(client, at, **body):
    connection, response = client.open("POST", at + "/exec", body,
                                       {"Accept": "application/x-ndjson"})
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/x-ndjson"
    return connection, response


def events(client, at, **body):
    connection, response = ndjson(client, at, **body)
    lines = [json.loads(line) for line in response]
    connection.close()
    return lines


def text_of(lines, name):
    return "".join(e["data"] for e in lines if e["event"] == name)


# ---- waiting for the result -------------------------------------------------------------------


def test_answer(client, at):
    r = run(client, at, command="echo out; echo err >&2; exit 3")
    assert (r["stdout"], r["stderr"], r["exit_code"], r["signal"]) == ("out\n", "err\n", 3, None)
    assert (r["stdout_bytes"], r["stderr_bytes"]) == (4, 4)
    assert not (r["truncated"] or r["timed_out"] or r["oom_killed"])
    assert r["exec_id"].startswith("exe_") and r["duration_ms"] >= 0
    assert r["usage"]["max_rss_bytes"] > 0 and "cpu_ms" in r["usage"]


def test_arguments(client, at):
    r = run(client, at, argv=["sh", "-c", "cat; pwd; echo $A"], cwd="/tmp", env={"A": "b c"},
            stdin="fed\n")
    assert r["stdout"] == "fed\n/tmp\nb c\n"


def test_without_input_stdin_is_at_its_end(client, at):
    assert run(client, at, command="cat; echo over")["stdout"] == "over\n"


def test_output_that_is_not_utf8(client, at):
    assert run(client, at, argv=["printf", r"a\377b"])["stdout"] == "a\ufffdb"
    r = run(client, at, argv=["printf", r"a\377\000b"], encoding="base64")
    assert base64.b64decode(r["stdout"]) == b"a\xff\0b"


def test_timeout(client, at):
    r = run(client, at, command="sleep 600", timeout_ms=200)
    assert r["timed_out"] and r["signal"] == 9 and r["exit_code"] is None
    assert r["limits"] == ["TIMEOUT"]


def test_truncated(client, at):
    r = run(client, at, command="head -c 100000 /dev/zero | tr '\\0' x; echo end",
            max_output_bytes=8192)
    assert r["truncated"] and r["stdout_bytes"] == 100004
    assert len(r["stdout"]) == 8192 and r["stdout"].endswith("xend\n")


def test_pty(client, at):
    r = run(client, at, command="stty size; test -t 0 && echo tty", pty={"rows": 7, "cols": 33})
    assert r["stdout"].split() == ["7", "33", "tty"]


@pytest.mark.parametrize("body, word", [
    ({}, "command"),
    ({"command": "true", "argv": ["true"]}, "command"),
    ({"command": 1}, "command"),
    ({"argv": []}, "argv"),
    ({"argv": ["a", 1]}, "argv[1]"),
    ({"command": "true", "env": ["A=1"]}, "env"),
    ({"command": "true", "env": {"A": 1}}, "env.A"),
    ({"command": "true", "timeout_ms": -1}, "timeout_ms"),
    ({"command": "true", "pty": {"rows": 0}}, "rows"),
    ({"command": "true", "pty": {"color": 1}}, "color"),
    ({"command": "true", "encoding": "latin1"}, "encoding"),
    ({"command": "true", "shell": "zsh"}, "shell"),
    ({"command": "true", "cwd": "/nowhere"}, "/nowhere"),
    ({"argv": ["true"], "cwd": "/nowhere"}, "/nowhere"),
    ({"argv": ["true"], "cwd": "/etc/passwd"}, "/etc/passwd"),
])
def test_invalid_fields_are_named(client, at, body, word):
    answer = client.post(at + "/exec", body)
    assert answer.status == 400 and answer.code == "INVALID", answer
    assert word in answer.json["error"]["message"]


@pytest.mark.parametrize("argv, code, says", [
    (["no-such-program", "x"], 127, "no-such-program: not found"),
    (["/etc/passwd/x"], 127, "/etc/passwd/x: not found"),
    (["/etc/passwd"], 126, "/etc/passwd: permission denied"),
    (["/etc"], 126, "/etc: permission denied"),
    (["./loop"], 126, "./loop: "),
    (["./data"], 126, "./data: not an executable program"),
    (["./script"], 127, "./script: interpreter not found"),
])
def test_a_program_that_cannot_be_executed_is_a_result(client, at, argv, code, says):
    """As with a shell: a caller need not tell arguments from text."""
    run(client, at, command="ln -sf loop loop; printf x > data; printf '#!/no/such\\n' > script; chmod +x data script")
    r = run(client, at, argv=argv)
    assert (r["exit_code"], r["signal"], r["stdout"]) == (code, None, ""), r
    assert r["stderr"].startswith("lodge: " + says) and r["stderr"].endswith("\n"), r
    lines = events(client, at, argv=argv)
    assert [e["event"] for e in lines] == ["started", "stderr", "exit"] and lines[-1]["exit_code"] == code, lines
    path = start_background(client, at, ("exited",), argv=argv, pty={"rows": 24, "cols": 80})
    x = record(client, path)
    assert (x["state"], x["exit_code"]) == ("exited", code)
    assert client.get(path + "/output").json["stdout"].startswith("lodge: " + says)
    assert run(client, at, command="true")["exit_code"] == 0


def test_an_idempotency_key_runs_the_command_once(client, at):
    body = {"command": "date +%N", "idempotency_key": f"k{time.time_ns()}"}
    first = run(client, at, **body)
    for again in (run(client, at, **body), run(client, at, stdin="x", **body)):
        assert again["exec_id"] == first["exec_id"] and again["stdout"] == first["stdout"]
    lines = events(client, at, **body)
    assert lines[0]["exec_id"] == first["exec_id"] and text_of(lines, "stdout") == first["stdout"]
    assert client.post(at + "/exec", dict(body, stdin="x", background=True)).status == 400


# ---- in the background ------------------------------------------------------------------------


def test_background(client, at):
    path = start_background(client, at, command="cat; echo done >&2; exit 4")
    assert record(client, path)["state"] == "running"
    assert client.post(path + "/stdin", b"one\xff ").json == {"written_bytes": 5}
    assert client.post(path + "/stdin?eof=1", b"two").status == 200
    assert has_ended(client, path)
    x = record(client, path)
    assert (x["state"], x["exit_code"], x["background"]) == ("exited", 4, True)
    o = client.get(path + "/output?encoding=base64").json
    assert base64.b64decode(o["stdout"]) == b"one\xff two" and o["done"]
    answer = client.post(path + "/stdin", b"late")
    assert answer.status == 409, answer


def test_background_input(client, at):
    """The response does not wait until the command reads its input."""
    size = 500_000
    path = start_background(client, at, command="until [ -e taken ]; do sleep .05; done; rm taken; wc -c", stdin="x" * size)
    assert record(client, path)["state"] == "running"
    assert client.put(at + "/files/taken", b"").status == 201
    assert has_ended(client, path)
    assert client.get(path + "/output").json["stdout"].strip() == str(size)


def test_output_by_offset(client, at):
    path = start_background(client, at, command="printf 'a\\303'; read x; printf '\\244b'; read x")
    o = client.get(path + "/output?wait_ms=60000").json
    assert (o["stdout"], o["stdout_offset"], o["done"]) == ("a", 1, False)
    client.post(path + "/stdin", b"\n")
    o = client.get(path + "/output?stdout_offset=1&wait_ms=60000").json
    assert o["stdout"] in ("\u00e4", "\u00e4b") and not o["done"]
    assert client.get(f"{path}/output?stdout_offset={4}&wait_ms=100").json["stdout"] == ""
    client.post(path + "/stdin?eof=1", b"")
    assert has_ended(client, path)
    o = client.get(path + "/output?stdout_offset=4&wait_ms=60000").json
    assert (o["stdout"], o["stdout_offset"], o["done"]) == ("", 4, True)


def test_output_before_the_retained_window_is_416(client, at):
    path = start_background(client, at, command="head -c 100000 /dev/zero", max_output_bytes=4096,
                 states=("running", "exited"))
    assert has_ended(client, path)
    answer = client.get(path + "/output")
    assert answer.status == 416 and answer.code == "OUTPUT_GONE", answer
    start = answer.json["error"]["details"]["stdout_offset"]
    o = client.get(f"{path}/output?stdout_offset={start}").json
    assert len(o["stdout"]) == 100000 - start and o["done"]


def test_signal(client, at):
    path = start_background(client, at, command="trap 'echo hup' HUP; echo up; for i in {1..600}; do sleep .1; done")
    assert client.get(path + "/output?wait_ms=60000").json["stdout"] == "up\n"
    assert client.post(path + "/signal", {"signal": "SIGHUP"}).status == 200
    assert wait_for(lambda: client.get(path + "/output").json["stdout"] == "up\nhup\n")
    assert client.post(path + "/signal", {"signal": 15}).status == 200
    assert has_ended(client, path)
    x = record(client, path)
    assert (x["state"], x["signal"], x["exit_code"]) == ("killed", 15, None)
    assert client.post(path + "/signal", {"signal": "TERM"}).status == 409
    for wrong in ("NOPE", 0, 99, None, True):
        assert client.post(path + "/signal", {"signal": wrong}).status == 400


def test_resize(client, at):
    path = start_background(client, at, command="read x; stty size", pty={"rows": 5, "cols": 50})
    assert client.post(path + "/resize", {"rows": 9, "cols": 90}).status == 200
    assert client.post(path + "/resize", {"rows": 9}).status == 400
    client.post(path + "/stdin", b"\n")
    assert has_ended(client, path)
    assert "9 90" in client.get(path + "/output").json["stdout"]


def test_kill(client, at):
    path = start_background(client, at, command="setsid sleep 611 & sleep 612", timeout_ms=0)
    x = client.delete(path).json["exec"]
    assert (x["state"], x["signal"]) == ("killed", 9)
    assert client.delete(path).json["exec"] == x
    assert run(client, at, command="pgrep -fx 'sleep 61[12]'")["stdout"] == ""


def test_list(client):
    at = "/v1/sessions/" + client.enter(key="list")
    ids = [run(client, at, command=f"exit {i}")["exec_id"] for i in range(5)]
    seen, after = [], 0
    while after is not None:
        page = client.get(f"{at}/execs?limit=2&after={after}").json
        seen += [x["exec_id"] for x in page["execs"]]
        after = page["next"]
    assert seen == ids
    assert client.get(f"{at}/execs?limit=5").json["next"] is None  # a full page that is the last
    assert client.get(f"{at}/execs?limit=4").json["next"]


# ---- as a stream ------------------------------------------------------------------------------


def test_stream(client, at):
    lines = events(client, at, command="echo a; sleep .2; echo b >&2; printf '\\303'; sleep .2;"
                                       " printf '\\244'; exit 5")
    assert lines[0]["event"] == "started" and lines[0]["exec_id"].startswith("exe_")
    assert text_of(lines, "stdout") == "a\n\u00e4" and text_of(lines, "stderr") == "b\n"
    assert [e["offset"] for e in lines if e["event"] == "stdout"][0] == 0
    assert lines[-1]["event"] == "exit" and lines[-1]["exit_code"] == 5
    assert lines[-1]["exec_id"] == lines[0]["exec_id"]


def test_server_sent_events(client, at):
    answer = client.post(at + "/exec", {"command": "echo a"}, headers={"Accept": "text/event-stream"})
    assert answer.headers["Content-Type"] == "text/event-stream"
    names = [f.split("\n")[0] for f in answer.data.decode().split("\n\n") if f]
    assert names == ["event: started", "event: stdout", "event: exit"]


def test_stream_input(client, at):
    """Larger than all buffers, in both directions at once."""
    text = "0123456789" * 60_000
    lines = events(client, at, command="cat", stdin=text, max_output_bytes=4096)
    assert text_of(lines, "stdout") == text and not lines[-1]["truncated"]


@pytest.mark.parametrize("stdin", [None, "0123456789" * 60_000], ids=["without input", "with unread input"])
def test_a_removed_key_ends_a_stream(lodged, client, at, stdin):
    """Also the thread that feeds the command. The command goes on."""
    key, owner = lodged.new_key(scope="tenant")
    connection, response = ndjson(owner, at, command="sleep 1000", timeout_ms=0, **({"stdin": stdin} if stdin else {}))
    with contextlib.closing(connection):
        path = f"{at}/execs/{json.loads(response.readline())['exec_id']}"
        assert client.delete(f"/v1/keys/{key['id']}").status == 200
        assert b'"exit"' not in response.read()
    assert record(client, path)["state"] == "running"
    assert client.post(path + "/signal", {"signal": "KILL"}).status == 200


def test_a_slow_reader_blocks_the_command(client, at):
    size = 60_000_000
    connection, response = ndjson(client, at, max_output_bytes=65536, timeout_ms=0,
                                  command=f"head -c {size} /dev/zero | tr '\\0' x; echo end >&2")
    path = f"{at}/execs/{json.loads(response.readline())['exec_id']}"

    def stands():
        before = record(client, path)["stdout_bytes"]
        time.sleep(1)
        return before and record(client, path)["stdout_bytes"] == before

    assert wait_for(stands, 120)
    x = record(client, path)
    assert x["state"] == "running" and x["stdout_bytes"] < size
    at_offset = 0
    for line in response:
        e = json.loads(line)
        if e["event"] == "stdout":
            assert e["offset"] == at_offset
            at_offset += len(e["data"])
    connection.close()
    assert at_offset == size and e["event"] == "exit" and not e["truncated"]


def test_a_disconnected_reader_does_not_block_the_command(client, at):
    """The command neither ends with the reader nor waits for it."""
    connection, response = ndjson(client, at, max_output_bytes=4096, timeout_ms=0,
                                  command="head -c 60000000 /dev/zero | tr '\\0' x; exit 6")
    path = f"{at}/execs/{json.loads(response.readline())['exec_id']}"
    response.close()
    connection.close()
    assert has_ended(client, path)
    x = record(client, path)
    assert (x["state"], x["exit_code"], x["stdout_bytes"]) == ("exited", 6, 60000000)


def test_the_command_continues_after_a_disconnect(client, at):
    body = json.dumps({"command": "until [ -e left ]; do sleep .05; done; echo still; exit 7"}).encode()
    before = len(client.get(at + "/execs?limit=500").json["execs"])
    s = socket.create_connection((client.host, client.port))
    s.sendall((f"POST {at}/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n"
               f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
    execs = wait_for(lambda: client.get(at + "/execs?limit=500").json["execs"][before:])
    s.close()
    path = f"{at}/execs/{execs[0]['exec_id']}"
    assert client.put(at + "/files/left", b"").status == 201
    assert has_ended(client, path)
    assert record(client, path)["exit_code"] == 7
    assert client.get(path + "/output").json["stdout"] == "still\n"


# ---- sessions ---------------------------------------------------------------------------------


def test_exec_resumes_a_hibernated_session(client):
    at = "/v1/sessions/" + client.enter(key="sleeper")
    path = f"{at}/execs/{run(client, at, command='echo kept; touch ~/there')['exec_id']}"
    assert client.post(at + "/hibernate").status == 200
    assert client.get(path + "/output").json["stdout"] == "kept\n"
    answer = client.post(at + "/exec?resume=0", {"command": "true"})
    assert answer.status == 409, answer
    answer = client.post(at + "/exec", {"command": "ls ~/there"})
    assert answer.headers["Lodge-Outcome"] == "resumed" and answer.json["exit_code"] == 0
    answer = client.post(at + "/exec", {"command": "true"})
    assert answer.headers["Lodge-Outcome"] is None


def test_execs_of_another_session_are_not_found(client, at):
    path = start_background(client, at, command="sleep 600")
    other = "/v1/sessions/" + client.enter(key="other") + "/execs/" + path.rpartition("/")[2]
    for method, tail, body in (("GET", "", None), ("GET", "/output", None), ("DELETE", "", None),
                               ("POST", "/stdin", b"x"), ("POST", "/signal", {"signal": 9}),
                               ("POST", "/resize", {"rows": 1, "cols": 1})):
        for wrong in (other, at + "/execs/exe_none"):
            answer = client.call(method, wrong + tail, body)
            assert answer.status == 404 and answer.code == "NOT_FOUND", (method, tail, answer)
    assert record(client, path)["state"] == "running"
    client.delete(path)


def test_execs_of_another_tenant_are_not_found(lodged, client, at):
    made = client.post("/v1/keys", {"name": "stranger", "tenant": "strangers", "scope": "tenant"})
    assert made.status == 201, made
    stranger = lodged.client(made.json["secret"])
    own = "/v1/sessions/" + stranger.enter(key="own")
    path = start_background(client, at, command="sleep 600")
    exec_id = path.rpartition("/")[2]
    assert stranger.get(path).status == 404
    assert stranger.get(f"{own}/execs/{exec_id}").status == 404
    assert stranger.post(at + "/exec", {"command": "true"}).status == 404
    assert stranger.get(at + "/execs").status == 404
    assert stranger.delete(own).status == 200
    client.delete(path)


def test_a_command_survives_a_restart_of_lodged(lodged):
    client = lodged.client()
    at = "/v1/sessions/" + client.enter(key="lasting")
    path = start_background(client, at, command="echo before; read x; echo $x")
    assert client.get(path + "/output?wait_ms=60000").json["stdout"] == "before\n"
    assert lodged.stop() == 0
    lodged.start()
    client = lodged.client()
    assert record(client, path)["state"] == "running"
    assert client.post(path + "/stdin?eof=1", b"after\n").status == 200
    assert has_ended(client, path)
    assert client.get(path + "/output").json["stdout"] == "before\nafter\n"


def test_a_bad_offset_is_refused_before_the_command_runs(client, at):
    answer = client.call("POST", at + "/exec?stdout_offset=-1", {"command": "touch ran"}, {"Accept": "application/x-ndjson"})
    assert answer.status == 400 and "stdout_offset" in answer.message, answer
    assert client.get(at + "/files/ran").status == 404


def test_an_offset_beyond_the_end_skips_all_output(client, at):
    answer = client.call("POST", at + "/exec?stdout_offset=9000000000000000000", {"command": "seq 200000"},
                         {"Accept": "application/x-ndjson"})
    assert answer.status == 200 and b'"event":"exit"' in answer.data, answer


def test_resuming_a_stream_in_a_replaced_session_runs_nothing(client):
    """The key now names a new session without that command; the command must not run again there."""
    body = {"command": "echo ran; touch ran", "idempotency_key": "one"}
    stream = {"Accept": "application/x-ndjson"}
    first = client.enter(key="comes back")
    assert client.call("POST", "/v1/sessions/key:comes back/exec".replace(" ", "%20"), body, stream).status == 200
    again = client.call("POST", f"/v1/sessions/{first}/exec?stdout_offset=4", body, stream)
    assert again.status == 200 and b'"event":"exit"' in again.data and b'"event":"stdout"' not in again.data, again
    assert client.delete(f"/v1/sessions/{first}").status == 200
    second = client.enter(key="comes back")
    for offset in ("stdout_offset=4", "stderr_offset=1"):
        answer = client.call("POST", f"/v1/sessions/{second}/exec?{offset}", body, stream)
        assert answer.status == 404 and "idempotency key" in answer.message, answer
    assert client.get(f"/v1/sessions/{second}/files/ran").status == 404
    assert client.delete(f"/v1/sessions/{second}").status == 200
