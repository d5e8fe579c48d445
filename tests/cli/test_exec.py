# SPDX-License-Identifier: Apache-2.0
"""Commands in a session, from the command line."""
import base64
import json
import os
import signal
import subprocess

import pytest
from client import wait_for
from lodge import ok

ALL_BYTES = bytes(range(256)) * 1000


def running(lodged, session):
    status, out, said = lodged.lodge("ps", "--json", session)
    assert status == 0, said
    return [x["exec_id"] for x in json.loads(out)["execs"]]


def test_output_and_status(lodged, session):
    assert lodged.lodge("exec", session, "--", "sh", "-c", "echo out; echo err >&2; exit 3") == (3, b"out\n", "err\n")
    assert lodged.lodge("exec", session, "echo", "-n", "--", "a") == (0, b"-- a", "")
    assert lodged.lodge("exec", session, "-c", "echo $0 | cat") == (0, b"bash\n", "")


@pytest.mark.parametrize("words, status", [
    (["-c", "kill -TERM $$"], 128 + signal.SIGTERM), (["--timeout", "200ms", "sleep", "60"], 124),
    (["nosuch-program"], 127), (["/etc/passwd"], 126)])
def test_exit_statuses(lodged, session, words, status):
    got, out, said = lodged.lodge("exec", session, *words)
    assert (got, out) == (status, b""), said
    assert said.startswith("lodge: ") or status == 128 + signal.SIGTERM, said


def test_a_program_that_is_missing_is_127_in_the_background_too(lodged, session):
    got, out, said = lodged.lodge("exec", "-d", session, "nosuch-program")
    assert got == 127 and out.startswith(b"exe_") and "nosuch-program" in said
    assert lodged.lodge("exec", "-d", session, "true")[0] == 0
    got, out, _ = lodged.lodge("exec", "--json", session, "nosuch-program")
    assert got == 127 and json.loads(out)["exit_code"] == 127


def test_limit_hits_are_reported_with_the_limit(lodged, client):
    sid = client.enter(limits={"memory_bytes": 64 << 20, "pids": 16, "file_bytes": 4096})
    try:
        for text, sentence in (
                ("tail /dev/zero", "LIMIT_MEMORY: out of memory (limit 64M): a process was killed"),
                ("for i in $(seq 40); do sleep 1 & done 2>/dev/null; true",
                 "LIMIT_PIDS: process limit reached (16): new processes were refused"),
                ("exec head -c 5000 /dev/zero >f", "LIMIT_FILE: file size limit reached (4K)")):
            said = lodged.lodge("exec", sid, "-c", text)[2]
            assert f"lodge: {sentence}\n" in said, (text, said)
        for time, words in (("200ms", "200 ms"), ("1s", "1 s")):
            said = lodged.lodge("exec", "--timeout", time, sid, "sleep", "60")[2]
            assert said == f"lodge: TIMEOUT: timed out after {words}: all its processes were killed\n"
    finally:
        client.delete("/v1/sessions/" + sid)


def test_workdir_and_environment(lodged, session):
    words = ["-w", "/tmp", "-e", "A=1 2", "--env", "B==", "-u", "1000", "-c", "pwd; echo $A$B"]
    assert lodged.lodge("exec", session, *words) == (0, b"/tmp\n1 2=\n", "")
    assert lodged.lodge("exec", *words, session) == (0, b"/tmp\n1 2=\n", "")


@pytest.mark.parametrize("words", [[], ["--nothing", "s"], ["s", "--env", "A", "true"], ["s", "-c", "true", "true"],
                                   ["s", "--timeout", "x", "true"]])
def test_wrong_usage_is_2(lodged, words):
    status, out, said = lodged.lodge("exec", *words)
    assert status == 2 and not out and said.startswith("lodge: ") and said.count("\n") == 1


def test_an_unknown_session_is_125(lodged):
    status, _, said = lodged.lodge("exec", "nosuch-key", "true")
    assert status == 125 and "nosuch-key" in said


def test_bytes_are_exact(lodged, session):
    assert lodged.lodge("exec", session, "cat", data=ALL_BYTES) == (0, ALL_BYTES, "")
    assert lodged.lodge("exec", session, "-c", "cat >&2", data=b"\xff\0\xfe")[1:] == (b"", "\ufffd\0\ufffd")


def test_more_output_than_the_ring_holds(lodged, session):
    """A stream drops nothing, whatever the size of the ring."""
    status, out, said = lodged.lodge("exec", session, "-c", "seq 600000")
    assert status == 0 and out == b"".join(b"%d\n" % i for i in range(1, 600001)), said


def test_a_command_may_ignore_its_input(lodged, session):
    assert lodged.lodge("exec", session, "true", data=b"x" * 3000000)[0] == 0
    assert lodged.lodge("exec", session, "-c", "exec <&-; echo on", data=b"x" * 3000000)[:2] == (0, b"on\n")
    assert lodged.lodge("exec", session, "cat")[:2] == (0, b"")  # /dev/null


def test_json(lodged, session):
    status, out, _ = lodged.lodge("exec", "--json", session, "-c", "echo out; echo err >&2; exit 5")
    answer = json.loads(out)
    assert status == 5 and (answer["stdout"], answer["stderr"], answer["exit_code"]) == ("out\n", "err\n", 5)
    _, out, _ = lodged.lodge("exec", "--json", session, "cat", data=b"\0\xff")
    answer = json.loads(out)
    assert answer["encoding"] == "base64" and base64.b64decode(answer["stdout"]) == b"\0\xff"


def test_run_and_exec_report_the_same_fields(lodged, session, tmp_path):
    for words in (["-c", "echo out; exit 5"], ["--timeout", "200ms", "sleep", "60"], ["-w", "/tmp", "-c", "kill -9 $$"]):
        run = json.loads(lodged.lodge("run", "--json", "--home", str(tmp_path / "home"), *words)[1])
        execd = json.loads(lodged.lodge("exec", "--json", session, *words)[1])
        assert run.keys() - execd.keys() == {"source", "ready_ms", "limits_not_enforced"} and execd.keys() - run.keys() == {"exec_id", "lost", "reason"}
        for name in ("exit_code", "signal", "stdout", "stderr", "encoding", "stdout_bytes", "stderr_bytes", "truncated",
                     "timed_out", "oom_killed", "limits"):
            assert run[name] == execd[name], name
        assert run["usage"].keys() == execd["usage"].keys() and isinstance(execd["duration_ms"], int)


def test_background_command(lodged, session):
    status, out, said = lodged.lodge("exec", "-di", session, "-c", "echo begun; read x; echo got $x; exit 4")
    assert status == 0, said
    exec_id = out.decode().strip()
    assert exec_id.startswith("exe_") and running(lodged, session) == [exec_id]
    assert wait_for(lambda: lodged.lodge("logs", session)[1] == b"begun\n")
    status, out, _ = lodged.lodge("attach", session, exec_id, data=b"word\n")
    assert (status, out) == (4, b"begun\ngot word\n")
    assert running(lodged, session) == []
    assert exec_id.encode() in lodged.lodge("ps", "-a", session)[1]
    assert lodged.lodge("logs", "-f", session, exec_id)[1] == b"begun\ngot word\n"


def test_the_last_lines_of_the_output(lodged, session):
    script = "seq 300000; for i in a b c; do echo $i >&2; done; printf end; read line; echo; echo got $line"
    exec_id = ok(lodged.lodge("exec", "-i", "-d", session, "-c", script)).strip()
    assert wait_for(lambda: lodged.lodge("logs", session)[1].endswith(b"end"))
    for n, out, err in (("2", b"300000\nend", "b\nc\n"), ("1", b"end", "c\n"), ("0", b"", ""), ("4", b"299998\n299999\n300000\nend", "a\nb\nc\n")):
        for words in (("--tail", n), ("--tail=" + n,), ("-n", n)):
            assert lodged.lodge("logs", *words, session) == (0, out, err), words
    assert lodged.lodge("logs", "--tail", "all", session) == lodged.lodge("logs", session)
    follower = lodged.start_lodge("logs", "-f", "--tail", "2", session, exec_id)
    assert os.read(follower.stdout.fileno(), 100) == b"300000\nend"
    assert lodged.lodge("attach", session, exec_id, data=b"word\n")[0] == 0
    assert follower.communicate(timeout=120) == (b"\ngot word\n", b"b\nc\n") and follower.returncode == 0
    record = json.loads(ok(lodged.lodge("logs", "--tail", "1", "--json", session)))
    assert (record["stdout"], record["stderr"], record["exit_code"]) == ("got word\n", "c\n", 0)
    status, out, err = lodged.lodge("logs", "--tail", "x", session)
    assert (status, out) == (2, b"") and err.startswith("lodge: --tail: "), err


def test_kill(lodged, session):
    for how, state in (([], "signal 9"), (["-s", "TERM"], "signal 15"), (["-s", "2"], "signal 2")):
        exec_id = lodged.lodge("exec", "-d", session, "sleep", "1000")[1].decode().strip()
        assert lodged.lodge("kill", *how, session, exec_id)[0] == 0
        assert wait_for(lambda: not running(lodged, session))
        line = [x for x in lodged.lodge("ps", "-a", session)[1].decode().splitlines() if x.startswith(exec_id)]
        assert f" {state} " in line[0]
    assert lodged.lodge("kill", session, "exe_nosuch")[0] == 1
    assert lodged.lodge("kill", session)[0] == 2


def read_until(pipe, word):
    got = b""
    os.set_blocking(pipe.fileno(), False)

    def more():
        nonlocal got
        got += pipe.read() or b""
        return word in got
    assert wait_for(more), got
    os.set_blocking(pipe.fileno(), True)
    return got


def test_output_is_streamed(lodged, session):
    p = lodged.start_lodge("exec", session, "-c", "echo one; read x; echo two", stdin=subprocess.PIPE)
    read_until(p.stdout, b"one\n")
    assert p.communicate(b"\n", 60)[0] == b"two\n" and p.returncode == 0


def test_an_interrupt_goes_to_the_command(lodged, session):
    p = lodged.start_lodge("exec", session, "-c", "trap 'echo caught; exit 7' INT; echo on; while :; do sleep .1; done")
    read_until(p.stdout, b"on\n")
    p.send_signal(signal.SIGINT)
    assert p.communicate(timeout=180)[0] == b"caught\n" and p.returncode == 7


def test_a_second_interrupt_detaches(lodged, session):
    p = lodged.start_lodge("exec", session, "-c", "trap 'echo caught' INT; echo on; while :; do sleep .1; done")
    read_until(p.stdout, b"on\n")
    p.send_signal(signal.SIGINT)
    read_until(p.stdout, b"caught\n")
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=180)[1].decode()
    assert p.returncode == 128 + signal.SIGINT and "lodge attach" in said
    assert len(running(lodged, session)) == 1


def test_a_closed_stdout_ends_the_command(lodged, session):
    p = lodged.start_lodge("exec", session, "yes")
    p.stdout.read(10)
    p.stdout.close()
    assert p.wait(180) == 128 + signal.SIGPIPE
    p.stderr.close()
    assert wait_for(lambda: not running(lodged, session))


def test_output_continues_after_a_killed_daemon(lodged, session):
    """No byte is missing or repeated."""
    text = "for i in $(seq 40); do echo line $i; echo error $i >&2; sleep .05; done; exit 9"
    p = lodged.start_lodge("exec", session, "-c", text)
    first = read_until(p.stdout, b"line 3\n")
    lodged.crash()
    said = read_until(p.stderr, b"retrying")
    lodged.start()
    out, rest = p.communicate(timeout=180)
    said += rest
    assert p.returncode == 9, said
    assert first + out == b"".join(b"line %d\n" % i for i in range(1, 41))
    lines = said.decode().splitlines()
    assert [x for x in lines if x.startswith("error")] == [f"error {i}" for i in range(1, 41)]
    assert any("retrying" in x for x in lines) and "lodge: reconnected" in lines


def test_input_continues_after_a_restart(lodged, session):
    p = lodged.start_lodge("exec", session, "cat", stdin=subprocess.PIPE)
    p.stdin.write(b"one\n")
    p.stdin.flush()
    assert read_until(p.stdout, b"\n") == b"one\n"
    lodged.crash()
    p.stdin.write(b"two\n")
    p.stdin.flush()
    lodged.start()
    assert p.communicate(b"three\n", 60)[0] == b"two\nthree\n" and p.returncode == 0


def test_rate_limited_requests_are_retried(lodged):
    d = type(lodged)(rate=5, burst=5)
    try:
        assert wait_for(lambda: d.lodge("enter", "-q", "k", "--", "true")[0] == 0)
        data = os.urandom(700000)  # sent in more than five requests
        status, out, said = d.lodge("exec", "k", "cat", data=data)
        assert (status, said) == (0, "") and out == data
        assert wait_for(lambda: d.client().delete("/v1/sessions/key:k").status == 200, pause=0.3)
    finally:
        d.close()


def test_the_id_of_a_sandbox(lodged, client):
    sid = client.enter(key="by sandbox")
    sandbox = client.session(sid)["sandbox"]
    assert lodged.lodge("exec", sandbox, "--", "echo", "here")[:2] == (0, b"here\n")
    assert lodged.lodge("show", sandbox, "--json")[0] == 0
    client.post(f"/v1/sessions/{sid}/hibernate")
    status, _, err = lodged.lodge("exec", sandbox, "--", "true")
    assert status == 125 and f"sandbox {sandbox} ended (by request)" in err and sid in err
    client.delete("/v1/sessions/" + sid)
