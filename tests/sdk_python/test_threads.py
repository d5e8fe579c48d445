# SPDX-License-Identifier: Apache-2.0
"""SandboxClient and BatchSandboxClient; every test runs in both modes."""
import concurrent.futures
import os
import socket
import uuid

import pytest

import lodge
from lodge import _http, _remote

FIELDS = {"exit_code", "stdout", "stderr", "execution_time_ms", "timed_out", "truncated", "limits", "state_lost"}


@pytest.fixture
def sandbox(world):
    with world.client() as c:
        c.get_or_create_session("ada", "t-" + uuid.uuid4().hex)
        yield c


def says(sandbox, command):
    r = sandbox.execute(command)
    assert r["exit_code"] == 0, r
    return r["stdout"]


def test_one_session_for_one_thread(world):
    thread = "t-" + uuid.uuid4().hex
    with world.client() as a, world.client() as b:
        made = a.get_or_create_session("ada", thread)
        assert set(made) == {"session_id", "thread_id", "status", "workspace_dir", "user", "expires_at", "adjusted", "ignored"}
        assert made["status"] == "created" and made["thread_id"] == thread
        assert made["workspace_dir"] == "/workspace" and made["user"] == "user" and made["expires_at"].endswith("Z")
        again = b.get_or_create_session("ada", thread)
        assert again["status"] == "existing" and again["session_id"] == made["session_id"] == a.session_id
        with pytest.warns(lodge.IgnoredWarning, match="timeout_minutes ignored; it keeps its own"):
            assert a.get_or_create_session("ada", thread, 31)["ignored"] == ["timeout_minutes"]
        with pytest.warns(lodge.IgnoredWarning, match="timeout_minutes reduced to the maximum"):
            assert a.get_or_create_session("ada", thread + "-long", 10080)["adjusted"] == ["timeout_minutes"]
        a.close_session()
        a.get_or_create_session("ada", thread)
        a.execute("echo hello > f")
        assert b.execute("cat f; pwd; id -u")["stdout"] == "hello\n/workspace\n1000\n"


def test_concurrent_calls_get_one_sandbox(world):
    thread = "t-" + uuid.uuid4().hex

    def enter(_):
        return world.client().get_or_create_session("ada", thread)["session_id"]

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        ids = set(pool.map(enter, range(12)))
    assert len(ids) == 1
    world.end_session(ids.pop())


def test_threads_do_not_see_each_other(world):
    with world.client() as a, world.client() as b:
        a.get_or_create_session("ada", "a-" + uuid.uuid4().hex)
        b.get_or_create_session("ada", "b-" + uuid.uuid4().hex)
        a.execute("echo secret > f; echo x > /tmp/f; echo y > ~/.f; sleep 60 &")
        assert says(b, "ls -A . /tmp; ps ax | grep -c '[s]leep 60' || :").split() == [".:", "/tmp:", "0"]
        b.close_session()
        assert says(a, "cat f") == "secret\n"
        a.close_session()
        b.get_or_create_session("ada", "c-" + uuid.uuid4().hex)  # possibly in a slot that another used
        assert says(b, "ls -A . /tmp; ls -A ~ | grep -x .f || :").split() == [".:", "/tmp:"]


def test_a_thread_of_another_user(world, sandbox):
    with world.client() as other:
        with pytest.raises(lodge.SandboxError) as e:
            other.get_or_create_session("bob", sandbox.session["thread_id"])
        assert e.value.code == "DENIED" and "another user" in str(e.value) and other.session is None


@pytest.mark.parametrize("bad", [("", "t"), ("u", ""), ("u" * 128, "t"), ("u", "t" * 256), ("u", "t", 0), ("u", "t", -1),
                                 ("u", "t", 10**9), ("u", "t", 1.5), ("u", 5)], ids=str)
def test_bad_arguments_are_named(world, bad):
    with world.client() as c, pytest.raises(lodge.SandboxError) as e:
        c.get_or_create_session(*bad)
    assert e.value.code == "INVALID"
    field = "timeout_minutes" if len(bad) == 3 else "user_id" if not bad[0] or len(bad[0]) > 1 else "thread_id"
    assert field in str(e.value)


def test_results(sandbox):
    r = sandbox.execute("echo out; echo err >&2; exit 3")
    assert set(r) == FIELDS
    assert (r["exit_code"], r["stdout"], r["stderr"]) == (3, "out\n", "err\n")
    assert not r["timed_out"] and not r["truncated"] and not r["state_lost"] and r["limits"] == []
    assert isinstance(r["execution_time_ms"], int)
    assert sandbox.execute("kill -TERM $$")["exit_code"] == 128 + 15
    assert sandbox.execute("nosuchprogram")["exit_code"] == 127


def test_the_timeout_is_applied(sandbox):
    r = sandbox.execute("sleep 600 & sleep 600", timeout=0.3)
    assert r["timed_out"] and r["limits"] == ["TIMEOUT"] and r["exit_code"] > 128
    assert says(sandbox, "ps ax | grep -c '[s]leep 600' || :") == "0\n"
    for none in (0, None):
        assert sandbox.execute("sleep 0.2; echo to its end", timeout=none)["stdout"] == "to its end\n"
    for wrong in (-1, -0.5, 1e9, "5", True):
        with pytest.raises(lodge.SandboxError, match="timeout"):
            sandbox.execute("true", timeout=wrong)


@pytest.mark.parametrize("command", ["", "a\0b", os.fsdecode(b"echo \xff"), 5, None], ids=repr)
def test_invalid_commands_are_refused(sandbox, command):
    with pytest.raises(lodge.SandboxError) as e:
        sandbox.execute(command)
    assert e.value.code == "INVALID"


def test_limit_hits_are_reported(sandbox):
    r = sandbox.execute("python3 -c 'x = bytearray(1 << 30)'")
    assert r["exit_code"] != 0 and "LIMIT_MEMORY" in r["limits"]
    r = sandbox.execute("head -c 3000000 /dev/zero | tr '\\0' x")
    assert r["truncated"] and len(r["stdout"]) == 1 << 20
    assert sandbox.execute("head -c 101M /dev/zero > f")["exit_code"] != 0  # the limit also applies to commands


def test_output_that_is_not_utf8(sandbox):
    r = sandbox.execute(r"printf 'a\xff\xe2\x82b\xf0\x9f\x98\x80'; printf '\xfe' >&2")
    assert r["stdout"] == "a\ufffd\ufffdb\U0001f600" and r["stderr"] == "\ufffd"


NAMES = ["plain", "with space", "new\nline", "quote\"'", "d/e/f", "ümlaut", os.fsdecode(b"raw\xff\xfe"), "-rf", "a;b", "%41+&"]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names(sandbox, tmp_path, name):
    data = os.urandom(3000)
    uploaded = sandbox.upload_file_from_bytes(name, data)
    assert uploaded == {"status": "uploaded", "filename": name, "path": "/workspace/" + name, "size_bytes": 3000}
    files = sandbox.list_files()
    assert [(f["name"], f["size_bytes"], f["permissions"]) for f in files] == [(name, 3000, "0644")]
    assert set(files[0]) == {"name", "size_bytes", "modified", "permissions"} and files[0]["modified"].endswith("Z")
    assert (files.total_files, files.total_size_bytes, files.workspace_dir) == (1, 3000, "/workspace")
    got = sandbox.download_file(name, tmp_path / "got")
    assert got == str(tmp_path / "got") and (tmp_path / "got").read_bytes() == data
    assert os.listdir(tmp_path) == ["got"]


def test_upload_and_download_of_local_files(sandbox, tmp_path, monkeypatch):
    (tmp_path / "report.txt").write_bytes(b"x" * 100000)
    assert sandbox.upload_file(tmp_path / "report.txt")["filename"] == "report.txt"
    assert sandbox.upload_file(str(tmp_path / "report.txt"), "sub/other")["path"] == "/workspace/sub/other"
    os.makedirs(tmp_path / "into")
    monkeypatch.chdir(tmp_path / "into")
    assert sandbox.download_file("sub/other") == "other"
    assert sandbox.download_file("report.txt", tmp_path / "into") == str(tmp_path / "into/report.txt")
    assert sorted(os.listdir(".")) == ["other", "report.txt"] and os.path.getsize("other") == 100000
    assert os.stat("other").st_mode & 0o777 == os.stat(tmp_path / "report.txt").st_mode & 0o777
    assert [f["name"] for f in sandbox.list_files()] == ["sub/other", "report.txt"]  # newest first


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", ".", "a//b", "a/./b", "b\\c", "n\0ul", "x" * 300])
def test_escaping_names_are_refused(sandbox, tmp_path, name):
    with pytest.raises(lodge.SandboxError, match="nvalid filename|filename") as e:
        sandbox.upload_file_from_bytes(name, b"x")
    assert e.value.code == "INVALID"
    with pytest.raises(lodge.SandboxError) as e:
        sandbox.download_file(name, tmp_path / "got")
    assert e.value.code == "INVALID"
    assert os.listdir(tmp_path) == [] and sandbox.list_files() == []


def test_a_missing_file_is_an_error(sandbox, tmp_path):
    with pytest.raises(lodge.SandboxError, match="^File not found$") as e:
        sandbox.download_file("nothing", tmp_path / "got")
    assert e.value.code == "NOT_FOUND" and not isinstance(e.value, lodge.SessionExpiredError)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mb", [100.5, 1500])  # the latter is refused before the body
def test_too_large_a_file_is_refused(sandbox, tmp_path, mb):
    with open(tmp_path / "large", "wb") as f:
        f.truncate(int(mb * (1 << 20)))
    with pytest.raises(lodge.LimitError, match="^File too large$") as e:
        sandbox.upload_file(tmp_path / "large")
    assert e.value.code == "LIMIT" and e.value.details["max_size_mb"] == 100
    assert round(e.value.details["uploaded_size_mb"], 1) == mb
    assert sandbox.list_files() == []


def test_a_refusal_during_an_upload():
    """The service responds and closes while the client still sends; the error is the same as otherwise."""
    ours, theirs = socket.socketpair()
    body = b'{"detail": {"error": "File too large", "max_size_mb": 100}}'
    theirs.sendall(b"HTTP/1.1 413 no\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    theirs.close()
    transport = _remote.RemoteThreads("unix:/nowhere", "key")._transport
    with pytest.raises(lodge.LimitError, match="^File too large$"):
        transport._send_body(ours, b"head", _http.Request("POST", "/upload_file", source=iter([])))


def test_too_many_files(sandbox):
    says(sandbox, "touch $(seq 1000)")
    with pytest.raises(lodge.LimitError) as e:
        sandbox.upload_file_from_bytes("one-more", b"")
    assert e.value.details == {"error": "Too many files in workspace", "max_files": 1000, "current_files": 1000,
                               "applies_to": "uploads"}
    sandbox.upload_file_from_bytes("7", b"instead")


def test_a_full_workspace_is_an_error(sandbox):
    says(sandbox, "for i in 1 2 3 4 5; do truncate -s 99M $i; done")
    with pytest.raises(lodge.LimitError, match="^Workspace is full$") as e:
        sandbox.upload_file_from_bytes("more", bytes(6 << 20))
    assert e.value.details == {"error": "Workspace is full", "max_workspace_mb": 500, "current_workspace_mb": 495,
                               "file_size_mb": 6}


def test_an_expired_session_is_replaced(world, sandbox):
    says(sandbox, "echo kept > f")
    was = sandbox.session_id
    world.end_session(was)
    for call in (lambda: sandbox.execute("cat f", auto_retry=False), sandbox.list_files,
                 lambda: sandbox.upload_file_from_bytes("g", b""), lambda: sandbox.download_file("f", "/dev/null/x")):
        with pytest.raises((lodge.SessionExpiredError, NotADirectoryError)):
            call()
    r = sandbox.execute("ls -A; echo again > f")
    assert r["state_lost"] is True and r["stdout"] == "" and sandbox.session_id != was
    r = sandbox.execute("cat f")
    assert r["state_lost"] is False and r["stdout"] == "again\n"


def test_calls_without_a_session_are_errors(world):
    c = world.client()
    for call in (lambda: c.execute("true"), c.list_files, lambda: c.upload_file("x"), lambda: c.download_file("x"),
                 lambda: c.upload_file_from_bytes("x", b"")):
        with pytest.raises(ValueError, match=r"^No active session\. Call get_or_create_session\(\) first\.$"):
            call()
    c.close_session()
    c.close_session()


def test_close_ends_the_session(world):
    c = world.client()
    sid = c.get_or_create_session("ada", "t-" + uuid.uuid4().hex)["session_id"]
    c.close_session()
    assert c.session is None
    c.session = {"session_id": sid}
    with pytest.raises(lodge.SessionExpiredError):
        c.execute("true", auto_retry=False)
    c.close_session()  # a session that is gone: no error
    c.session = {"session_id": "ses_never"}
    c.close_session()


def test_batch(world):
    with world.batch() as b:
        results = b.execute_batch(["echo one > f", "cat f", "exit 4", "", "cat f"])
        assert [r["exit_code"] for r in results] == [0, 0, 4, -1, 0]
        assert [r["command"] for r in results] == ["echo one > f", "cat f", "exit 4", "", "cat f"]
        assert results[1]["stdout"] == results[4]["stdout"] == "one\n" and results[3]["error"]
        assert FIELDS <= set(results[3]) and b.execute_batch(["ls -A"])[0]["stdout"] == ""
        assert b._client.session is None


def test_closing_one_session_does_not_affect_others(world):
    with world.client() as a, world.client() as b:
        a.get_or_create_session("ada", "t-" + uuid.uuid4().hex)
        b.get_or_create_session("bob", "t-" + uuid.uuid4().hex)
        b.execute("echo mine > f")
        a.close_session()
        assert says(b, "cat f") == "mine\n"
