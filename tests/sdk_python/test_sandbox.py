# SPDX-License-Identifier: Apache-2.0
"""Sandbox and what belongs to it: every test runs with the blocking and the asynchronous class."""
import io
import json
import os
import re
import uuid
import warnings

import pytest
from client import KEY, wait_for
from conftest import ROOT

import lodge
from lodge import _words


@pytest.fixture
def kind(way):
    """Sandbox or AsyncSandbox."""
    return lodge.Sandbox if way.kind == "sync" else lodge.AsyncSandbox


@pytest.fixture
def box(way, do, kind):
    made = do(kind.create(client=way.client))
    yield made
    do(made.close())


def leave(way, made, error=None):
    """The end of a `with` block."""
    if way.kind == "sync":
        return made.__exit__(error, None, None)
    return way.do(made.__aexit__(error, None, None))


def is_there(way, do, sandbox_id):
    try:
        do(way.client.session(sandbox_id).get())
        return True
    except lodge.GoneError:
        return False


def test_one_without_a_name_is_deleted_at_the_end(way, do, kind, service):
    made = do(kind.create(url=service.url, api_key=KEY, memory="64M", processes=50, cpus=0.5, disk=1 << 30, file_size="2M",
                          env={"A": "b"}, metadata={"m": "1"}, idle_timeout=600, lifetime=900))
    record = do(way.client.session(made.id).get())
    limits = record["limits"]
    assert (limits["memory_bytes"], limits["pids"], limits["cpus"], limits["disk_bytes"]) == (64 << 20, 50, 0.5, 1 << 30)
    assert limits["file_bytes"] == 2 << 20 and do(made.run("exec head -c 3M /dev/zero > f")).limits_hit == ["LIMIT_FILE"]
    do(made.set_limits(file_size="4M"))
    assert do(made.run("exec head -c 3M /dev/zero > f")).ok
    assert (record["idle_timeout_ms"], record["lifetime_ms"], record["metadata"]) == (600000, 900000, {"m": "1"})
    assert made.created and made.name is None and made.is_running and made.expires_at.timestamp() * 1000 == record["expires_at"]
    assert do(made.run("echo $A")).stdout == "b\n"
    leave(way, made)
    assert not is_there(way, do, made.id)


def test_a_failing_block_does_not_hide_its_error(way, do, kind):
    made = do(kind.create(client=way.client))
    do(way.client.session(made.id).delete())
    made._session.delete = lambda: (_ for _ in ()).throw(lodge.InternalError("no"))
    leave(way, made, ValueError)
    with pytest.raises(lodge.InternalError):
        leave(way, made)


def test_one_with_a_name_is_kept(way, do, kind):
    name = "n/" + uuid.uuid4().hex
    with pytest.raises(lodge.NotFoundError, match=r"\(NOT_FOUND, request [0-9a-f]+\)$"):
        do(kind.get(name, client=way.client))
    first = do(kind.get_or_create(name, client=way.client, memory="128M"))
    assert first.created and first.name == name and name in repr(first)
    do(first.files.write("kept", "yes"))
    leave(way, first)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        again = do(kind.get_or_create(name, client=way.client, memory="256M", idle_timeout=60))
    assert not again.created and again.id == first.id
    assert [str(w.message) for w in warned] == [
        f"sandbox {name} already exists: idle_timeout, memory ignored; set_limits() changes limits"]
    with pytest.raises(lodge.ConflictError):
        do(kind.create(name=name, client=way.client))
    for ref in (name, first.id, do(way.client.session(first.id).get())["sandbox"]):
        found = do(kind.get(ref, client=way.client))
        assert found.id == first.id and do(found.files.read_text("kept")) == "yes" and not found.created
        leave(way, found)
    assert [b.id for b in do(kind.list(client=way.client)) if b.name == name] == [first.id]
    do(again.delete())
    with pytest.raises(lodge.GoneError):
        do(kind.get(first.id, client=way.client))


def test_lost_files_are_told(way, do, kind, monkeypatch):
    from lodge import _api, types
    name = uuid.uuid4().hex
    first = do(kind.get_or_create(name, client=way.client))
    made = _api.SessionApi.__init__

    def lost(self, driver, ref, entered=None, **how):
        made(self, driver, ref, entered and {**entered, "state_lost": True, "cause": {"text": "the disk broke"}}, **how)
    with monkeypatch.context() as patched:
        patched.setattr(_api.SessionApi, "__init__", lost)
        with pytest.warns(lodge.StateLostWarning, match=f"^sandbox {name} lost its files, and started anew: the disk broke$"):
            assert do(kind.get_or_create(name, client=way.client)).state_lost
    assert not first.state_lost
    with monkeypatch.context() as patched:
        patched.setattr(types.ExecResult, "state_lost", True)
        with pytest.warns(lodge.StateLostWarning, match="lost its files"):
            do(first.run("true"))
    do(first.delete())


def test_one_for_a_user_is_fresh(way, do, kind):
    user = uuid.uuid4().hex
    boxes = [do(kind.create(user=user, client=way.client)) for _ in range(2)]
    assert boxes[0].id != boxes[1].id
    assert sorted(b.id for b in do(kind.list(user=user, state="active", client=way.client))) == sorted(b.id for b in boxes)
    own = do(way.client.enter(user=user))  # of the user as such; neither of them is that
    assert own.outcome == "created" and own.id not in [b.id for b in boxes]
    for b in boxes:
        do(b.close())
    assert [b.id for b in do(kind.list(user=user, client=way.client))] == [own.id]
    do(own.delete())


def test_a_user_with_a_token_gets_a_fresh_one_too(way, do, kind, service):
    made = do(way.client.create_key(scope="session", user="tina", name=uuid.uuid4().hex))
    mine = do(kind.create(url=service.url, api_key=made["secret"]))
    other = do(kind.create(url=service.url, api_key=made["secret"]))
    assert mine.id != other.id
    do(other.close())
    assert is_there(way, do, mine.id)
    do(mine.close())
    do(way.client.delete_key(made["key"]["id"]))


def test_wrong_options_are_named(way, do, kind, box):
    with pytest.raises(TypeError, match=r"create\(\): unknown option 'memroy'; did you mean 'memory'\?"):
        kind.create(memroy="1G")
    with pytest.raises(TypeError, match="unknown option 'env_vars'; did you mean 'env'"):
        kind.create(env_vars={})
    with pytest.raises(TypeError, match="run.*'time_out'.*'timeout'"):
        box.run("true", time_out=3)
    with pytest.raises(TypeError, match="create.*'limits'; did you mean 'memory', 'cpus', 'disk' or 'processes'\\?"):
        kind.create(limits={"memory_bytes": 1})
    with pytest.raises(TypeError, match=r"create.*'key'; did you mean 'name'\?"):
        kind.create(key="x")
    with pytest.raises(TypeError, match=r"create.*'timeout'; did you mean 'lifetime'\?"):
        kind.create(timeout=60)
    with pytest.raises(TypeError, match=r"run.*'timeout_ms'; did you mean 'timeout', in seconds\?"):
        box.run("true", timeout_ms=3)
    with pytest.raises(TypeError, match=r"read\(\): unknown option 'format'"):
        box.files.read("a", format="text")
    for args, options in ((), {}), (("base",), {}), ((), {"template": "base"}):
        with pytest.raises(TypeError, match=r"use \w*Sandbox.create\(\)"):
            kind(*args, **options)
    for bad in ("512Q", "", "lots", 1.5, True, "-1M"):
        with pytest.raises(lodge.InvalidError, match="^memory: .* is not a size"):
            do(kind.create(memory=bad, client=way.client))
    with pytest.raises(lodge.InvalidError, match="memory_bytes.*must be between"):
        do(kind.create(memory="1K", client=way.client))
    with pytest.raises(lodge.InvalidError, match="^lifetime: "):
        do(kind.create(lifetime=-1, client=way.client))
    with pytest.raises(lodge.InvalidError, match="^client: "):
        do(kind.create(client=way.client, url="http://h"))
    for option in ({"check": True}, {"text": False}, {"on_stdout": print}):
        with pytest.raises(lodge.InvalidError, match=f"^{[*option][0]}: not with background"):
            do(box.run("true", background=True, **option))


def test_run(do, box):
    r = do(box.run("echo out; echo err >&2; exit 3"))
    assert (r.stdout, r.stderr, r.exit_code, r.ok, r.signal) == ("out\n", "err\n", 3, False, None)
    assert not r.truncated and not r.timed_out and r.limits_hit == [] and r.duration >= 0
    assert do(box.run(["printf", "%s|", "a b", "c"])).stdout == "a b|c|"
    r = do(box.run("cat; pwd; echo $X", input="in\n", cwd="/usr", env={"X": "y"}))
    assert r.stdout == "in\n/usr\ny\n" and r.ok
    assert do(box.run(r"printf '\377\n'", text=False)).stdout == b"\xff\n"
    assert do(box.run(r"printf '\377\n'")).stdout == "\ufffd\n"
    r = do(box.run("sleep 60", timeout=0.2))
    assert r.timed_out and not r.ok
    assert do(box.run("kill -9 $$")).signal == 9
    key = uuid.uuid4().hex
    assert len({do(box.run("echo x >> once", idempotency_key=key)).command_id for _ in range(3)}) == 1
    assert do(box.files.read("once")) == b"x\n"


def test_check(do, box):
    for command, text in (("echo broken >&2; exit 3", "ended with exit code 3: broken"), ("kill -9 $$", "ended by signal 9"),
                          (["sh", "-c", "exit 4"], "'sh -c exit 4' ended with exit code 4")):
        with pytest.raises(lodge.CommandError, match=re.escape(text)) as e:
            do(box.run(command, check=True))
        assert not e.value.result.ok and e.value.code == "COMMAND" and isinstance(e.value, lodge.LodgeError)
    with pytest.raises(lodge.CommandError, match="timed out after"):
        do(box.run("sleep 60", timeout=0.2, check=True))
    assert do(box.run("true", check=True)).ok


@pytest.mark.parametrize("data", [b"\xff\0" * 100000, "x" * 500000, "a\0b", b"\xc3"], ids=["bytes", "long", "nul", "half"])
def test_any_input(do, box, data):
    raw = data.encode() if isinstance(data, str) else data
    assert do(box.run("cat", input=data, text=False)).stdout == raw
    job = do(box.run("cat", input=data, background=True))
    assert do(job.wait(60, text=False)).stdout == raw


def test_input_that_nobody_reads_is_no_error(do, box):
    assert do(box.run("head -c 1", input=b"\xff" * 3000000, text=False)).stdout == b"\xff"


def test_input_that_is_read_late(way, do, service):
    """Longer than the client waits for other answers."""
    client = type(way.client)(service.url, KEY, timeout=0.5)
    b = do((lodge.Sandbox if way.kind == "sync" else lodge.AsyncSandbox).create(client=client))
    assert do(b.run("sleep 1.5; wc -c", input=b"\0" * 500000, timeout=100)).stdout == "500000\n"
    do(b.close())
    do(client.close())


def test_an_admin_key_lists_sandboxes_of_another_tenant(way, do, service):
    kind = lodge.Sandbox if way.kind == "sync" else lodge.AsyncSandbox
    tenant = "t-" + uuid.uuid4().hex
    secret = do(way.client.create_key(tenant=tenant, scope="tenant"))["secret"]
    guest = type(way.client)(service.url, secret)
    b = do(kind.create(client=guest))
    assert [found.id for found in do(kind.list(tenant=tenant, client=way.client))] == [b.id]
    assert [(s["id"], s["tenant"]) for s in do(way.client.sessions(all=True)) if s["id"] == b.id] == [(b.id, tenant)]
    assert b.id not in [found.id for found in do(kind.list(client=way.client))]
    with pytest.raises(lodge.DeniedError, match="tenant"):
        do(kind.list(tenant="default", client=guest))
    do(b.delete())
    do(guest.close())


def test_callbacks_get_whole_characters(way, do, box):
    seen, errors = [], []
    command = r"printf '\342'; sleep 0.2; printf '\202\254\n'; printf 'e\303' >&2"
    if way.kind == "sync":
        r = box.run(command, on_stdout=seen.append, on_stderr=errors.append)
    else:
        async def take(piece):
            seen.append(piece)
        r = do(box.run(command, on_stdout=take, on_stderr=errors.append))
    assert seen == ["\u20ac\n"] and "".join(errors) == "e\ufffd"
    assert (r.stdout, r.stderr, r.ok) == ("\u20ac\n", "e\ufffd", True)
    parts = []
    r = do(box.run(command, on_stdout=parts.append, text=False))
    assert b"".join(parts) == r.stdout == "\u20ac\n".encode() and r.stderr == b"e\xc3"


@pytest.mark.parametrize("stream", ["on_stdout", "on_stderr"])
@pytest.mark.parametrize("data", [None, b"\xff\n"], ids=["plain", "with input"])
def test_a_callback_that_raises_kills_the_command(way, do, box, stream, data):
    def fail(piece):
        raise LookupError(piece)

    async def fail_later(piece):
        raise LookupError(piece)
    for take in (fail, fail_later) if way.kind == "async" else (fail,):
        with pytest.raises(LookupError, match="^x"):
            do(box.run("echo x; echo x >&2; sleep 600", timeout=0, input=data, **{stream: take}))
        assert do(do(box.commands())[-1].wait()).signal == 9


def test_a_callback_that_raises_at_the_end_leaves_the_result(do, box):
    def fail(piece):
        raise LookupError(piece)
    with pytest.raises(LookupError):
        do(box.run(r"printf '\342'", on_stdout=fail))
    r = do(do(box.commands())[-1].wait())
    assert (r.exit_code, r.signal) == (0, None)


def test_callbacks_keep_the_end_of_very_long_output(do, box):
    counted = [0]

    def count(piece):
        counted[0] += len(piece)
    r = do(box.run("head -c 9000000 /dev/zero | tr '\\0' x; echo end", on_stdout=count, timeout=0))
    assert counted[0] == 9000004 and r.truncated and len(r.stdout) == 8 << 20 and r.stdout.endswith("xend\n")


def test_background_and_reconnect(way, do, box):
    job = do(box.run("echo ready >&2; read line; echo got $line; exit 2", background=True))
    assert do(job.is_running()) and do(job.wait_for_log("ready")) == "ready"
    again = box.command(job.id)
    assert do(again.logs()) == [("stderr", "ready\n")]
    with pytest.raises(TimeoutError, match="no line matched 'never'"):
        do(again.wait_for_log("never", timeout=0.1))
    with pytest.raises(lodge.TimeoutError):
        do(again.wait(0.1))
    do(again.write("it\n", eof=True))
    assert do(job.wait_for_log(re.compile("^g.t"), timeout=60)) == "got it"
    r = do(again.wait(60))
    assert (r.stdout, r.stderr, r.exit_code, r.command_id) == ("got it\n", "ready\n", 2, job.id)
    assert sorted(do(job.logs(follow=True))) == [("stderr", "ready\n"), ("stdout", "got it\n")]
    assert do(job.logs(text=False))[0][1] in (b"ready\n", b"got it\n")
    with pytest.raises(lodge.CommandError, match="ended with exit code 2 before a line matched 'more'") as e:
        do(job.wait_for_log("more"))
    assert e.value.result.stdout == "got it\n"
    assert [c.id for c in do(box.commands())] == [job.id] and not do(job.is_running())


def test_the_last_line_counts_without_its_end(do, box):
    job = do(box.run("printf 'a\\r\\nlast'", background=True))
    assert do(job.wait_for_log("last")) == "last" and do(job.wait_for_log("a")) == "a"


def test_kill(do, box):
    job = do(box.run("trap 'echo int; exit 5' INT; echo on; while :; do sleep 0.1; done", background=True))
    do(job.wait_for_log("on"))
    do(job.kill("INT"))
    assert do(job.wait(60)).exit_code == 5
    job = do(box.run("sleep 1000", background=True))
    do(job.kill())
    assert do(job.wait(60)).signal == 9


def test_files(way, do, box, tmp_path):
    files = box.files
    do(files.write("a/b/text", "caf\u00e9"))
    assert do(files.read("a/b/text")) == "caf\u00e9".encode() and do(files.read_text("a/b/text")) == "caf\u00e9"
    do(files.write_files({"c/one": b"\xff", "two": io.BytesIO(b"2" * 100000)}))
    assert do(files.read("c/one")) == b"\xff" and do(files.stat("two"))["size"] == 100000
    assert [do(files.exists(p)) for p in ("a/b", "two", "no", "no/no", "two/no")] == [True, True, False, False, False]
    with pytest.raises(lodge.NotFoundError):
        do(way.client.session("ses_0").files.exists("x"))
    with pytest.raises(lodge.NotFoundError):
        do(files.write("n/m", b"", mkdir=False))
    (tmp_path / "local").write_bytes(b"up")
    do(files.upload(tmp_path / "local", "deep/er/file"))
    assert do(files.download("deep/er/file", tmp_path / "back")) == 2 and (tmp_path / "back").read_bytes() == b"up"


def tree(root):
    return {os.path.relpath(os.path.join(at, name), root) for at, dirs, names in os.walk(root) for name in dirs + names}


def test_directories(do, box, tmp_path):
    app = tmp_path / "app"
    (app / "src/empty").mkdir(parents=True)
    (app / "src/main.py").write_text("print(6 * 7)")
    (app / "run.sh").write_text("#!/bin/sh\nexec python3 src/main.py\n")
    (app / "run.sh").chmod(0o755)
    (app / "link").symlink_to("src/main.py")
    os.mkfifo(app / "fifo")
    do(box.upload_dir(app))
    r = do(box.run("cat link; test -x run.sh; echo $?; ls -A", cwd="app"))
    assert r.stdout == "print(6 * 7)0\nlink\nrun.sh\nsrc\n", r
    do(box.run("ln -s /etc/passwd app/out; ln -s ../.. app/src/up; mkdir app/new; echo n > app/new/file", check=True))
    with pytest.warns(lodge.IgnoredWarning, match="out, src/up left out"):
        do(box.download_dir("app", tmp_path / "back"))
    assert tree(tmp_path / "back") == tree(app) - {"fifo"} | {"new", "new/file"}
    assert os.readlink(tmp_path / "back/link") == "src/main.py" and os.access(tmp_path / "back/run.sh", os.X_OK)
    do(box.files.upload(str(app / "src"), "other/place"))
    assert do(box.files.read_text("other/place/main.py")) == "print(6 * 7)"
    with pytest.raises(NotADirectoryError):
        do(box.upload_dir(app / "run.sh"))


def test_watch(way, box):
    changes = way.steps(box.files.watch(""))
    assert next(changes)["kind"] == "ready"
    way.do(box.files.write("new", b"x"))
    assert next(c["path"] for c in changes if c["kind"] == "create") == "new"
    changes.close()


def test_a_terminal(way, do, box):
    pty = do(box.pty("stty size; read x; echo got:$x; exit 7", rows=11, cols=33))
    shown = b""
    while b"11 33" not in shown:
        shown += do(pty.read(60))
    with pytest.raises(lodge.TimeoutError):
        do(pty.read(0.1))
    do(pty.resize(5, 6))
    do(pty.write("ada\n"))
    result, unread = do(pty.wait(60)), b""
    assert result.exit_code == 7 and result.command_id == pty.id and "got:ada" in result.stdout
    while piece := do(pty.read(60)):
        unread += piece
    assert b"got:ada" in unread and b"11 33" not in unread
    assert b"got:ada" in do(box.command(pty.id).wait(text=False)).stdout
    do(pty.close())
    pty = do(box.pty())
    do(pty.kill())
    assert do(pty.wait(60)).signal == 9
    leave(way, pty)


def test_wait_of_a_terminal_keeps_the_last_of_much_output(way, do, box):
    pty = do(box.pty("stty -opost; head -c 12000000 /dev/zero | tr '\\0' a; echo; echo last; exit 3"))
    result, unread = do(pty.wait(300)), []
    assert result.exit_code == 3 and result.truncated
    while piece := do(pty.read(60)):
        unread.append(piece)
    shown = b"".join(unread)
    assert 7 << 20 < len(shown) <= 8 << 20 and shown.endswith(b"a\nlast\n")
    leave(way, pty)


def test_words_of_other_services_work_or_name_the_right_call(way, do, kind, service):
    with open(os.path.join(ROOT, "spec/sdk.json"), encoding="utf-8") as f:
        spec = json.load(f)
    box = do(kind.create(client=way.client))
    owners = {"Sandbox class": kind, "Sandbox": box, "Sandbox.commands": box.commands, "Sandbox.pty": box.pty, "Files": box.files,
              "Command": box.command("ex_1")}
    assert owners.keys() == spec["words"].keys()
    for where, words in spec["words"].items():
        for word, use in words.items():
            if use.startswith("="):
                assert getattr(owners[where], word) == getattr(owners[where], use[1:])
                continue
            with pytest.raises(AttributeError, match=f"has no attribute '{word}'; use {re.escape(use)}$"):
                getattr(owners[where], word)
        with pytest.raises(AttributeError, match="has no attribute 'zzz'$"):
            owners[where].zzz
    assert box.commands.__doc__ and do(box.commands()) == []
    again = do(kind.connect(box.id, client=way.client))
    assert again.sandbox_id == box.id
    do(again.kill())
    assert not is_there(way, do, box.id)
    assert _words.OPTIONS == spec["options"]


def test_snapshots_and_forks(way, do, box):
    do(box.files.write("f", "1"))
    first = do(box.snapshot("one"))
    assert first.name == "one" and first.created_at and first.id in repr(first)
    do(box.files.write("f", "2"))
    assert [s.id for s in do(box.snapshots())] == [first.id]
    name = uuid.uuid4().hex
    copies = [do(box.fork()), *do(first.fork(2)), do(first.fork(name=name))]
    assert [do(b.files.read_text("f")) for b in copies] == ["2", "1", "1", "1"]
    for b in copies:
        leave(way, b)
    assert [is_there(way, do, b.id) for b in copies] == [False, False, False, True]
    do(copies[3].delete())
    do(first.rollback())
    assert do(box.files.read_text("f")) == "1"
    with pytest.raises(lodge.InvalidError, match="^name: "):
        do(box.fork(2, name="x"))
    do(box.delete())
    last = do(first.fork())  # its sandbox is gone
    assert do(last.files.read_text("f")) == "1"
    fresh = do(type(box).create(snapshot=first, client=way.client))
    assert do(fresh.files.read_text("f")) == "1"
    for b in (last, fresh):
        do(b.close())
    do(first.delete())
    with pytest.raises(lodge.NotFoundError):
        do(way.client.snapshot(first.id))


def test_states_and_limits(do, box):
    do(box.pause())
    assert box.state == "paused" and do(box._session.get())["paused"]
    do(box.resume())
    assert not do(box._session.get())["paused"]
    do(box.hibernate())
    assert box.state == "hibernated" and not box.is_running and box.expires_at is None
    assert do(box.run("true")).ok and box.state == "active"
    do(box.refresh())
    assert box.is_running and box.expires_at
    do(box.set_limits(memory="96M", processes=60))
    assert do(box._session.get())["limits"]["memory_bytes"] == 96 << 20 and do(box.stats())["memory_bytes"] > 0


def test_a_sandbox_without_a_name_does_not_stay_for_ever(way, do, kind):
    """Nobody may be left to close it."""
    for want in ({}, {"user": "u-" + uuid.uuid4().hex}):
        b = do(kind.create(client=way.client, **want))
        assert b._record["delete_after_ms"] == 86400000
        do(b.hibernate())
        assert b._record["delete_at"] == b._record["hibernated_at"] + 86400000
        copy = do(b.fork(name="n-" + uuid.uuid4().hex))
        assert copy._record["delete_after_ms"] is None and do(b.fork())._record["delete_after_ms"] == 86400000
        named = do(kind.create(name="n-" + uuid.uuid4().hex, client=way.client, **want))
        assert named._record["delete_after_ms"] is None
        for one in (b, copy, named):
            do(one.delete())


def test_extend(way, do, kind):
    b = do(kind.create(lifetime=600, client=way.client))
    before = b.expires_at
    assert (do(b.extend(60)) - before).total_seconds() == 60 and b.expires_at > before
    with pytest.warns(lodge.IgnoredWarning) as caught:
        end = do(b.extend(2 * 86400))
    assert (end - before).total_seconds() == 5 * 3600 - 600 and end == b.expires_at
    assert str(caught[0].message).endswith(
        f"of 172800 seconds: the maximum lifetime of 5h is reached (lifetime_max); it ends at {end}")
    do(b.close())


def test_map(way, do, kind):
    mark = uuid.uuid4().hex
    progress = []

    def work(b, item):
        return b.run(f"echo {item}; ls; touch f")

    async def work_async(b, item):
        return await b.run(f"echo {item}; ls; touch f")
    results = do(kind.map(work if way.kind == "sync" else work_async, iter(range(6)), concurrency=3,
                          on_progress=lambda *of: progress.append(of), client=way.client, metadata={"m": mark}))
    assert [r.stdout for r in results] == [f"{i}\n" for i in range(6)]
    assert progress == [(i, 6) for i in range(1, 7)]
    assert do(way.client.sessions(metadata={"m": mark})) == []
    assert do(kind.map(work, [], client=way.client)) == []
    with pytest.raises(lodge.InvalidError, match="^concurrency: "):
        do(kind.map(work, [1], concurrency=0, client=way.client))


def test_the_first_error_of_map_is_raised_after_the_rest(way, do, kind):
    mark, begun = uuid.uuid4().hex, []

    def check(item):
        begun.append(item)
        if item == 1:
            raise ValueError("one")

    def work(b, item):
        check(item)
        return b.run("true")

    async def work_async(b, item):
        check(item)
        return await b.run("true")
    with pytest.raises(ValueError, match="one") as e:
        do(kind.map(work if way.kind == "sync" else work_async, range(100), concurrency=2, client=way.client,
                    metadata={"m": mark}))
    assert e.value.index == 1 and len(begun) < 100
    assert wait_for(lambda: do(way.client.sessions(metadata={"m": mark})) == [])


def test_both_classes_have_the_same_members():
    for a, b in ((lodge.Sandbox, lodge.AsyncSandbox), (lodge.Command, lodge.AsyncCommand), (lodge.Pty, lodge.AsyncPty),
                 (lodge.Snapshot, lodge.AsyncSnapshot)):
        assert {n for n in dir(a) if not n.startswith("_")} == {n for n in dir(b) if not n.startswith("_")}
