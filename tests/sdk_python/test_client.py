# SPDX-License-Identifier: Apache-2.0
"""All of /v1: every test runs with the blocking and the asynchronous client."""
import io
import os
import tarfile
import uuid
import warnings

import pytest
from client import KEY

import lodge


def test_enter_and_list(way, do):
    key = "k/" + uuid.uuid4().hex
    a = do(way.client.enter(key, user="ada", metadata={"team": key}, idle_timeout_ms=60000))
    b = do(way.client.enter(key))
    assert (a.outcome, b.outcome) == ("created", "reused") and a.id == b.id and not a.state_lost
    assert do(way.client.session("key:" + key).get())["id"] == a.id == a.record["id"]
    assert f"Session {a.id} key={key!r}>" in repr(a) and f"Session key:{key}>" in repr(way.client.session("key:" + key))
    with pytest.raises(lodge.ConflictError):
        do(way.client.enter(key, if_exists="fail"))
    more = [do(way.client.enter(key + str(i), user="ada", metadata={"team": key}, asleep=True)) for i in range(4)]
    found = do(way.client.sessions(metadata={"team": key}, limit=2))  # three pages
    assert [s["id"] for s in found] == [s.id for s in [a, *more]]
    assert do(a.patch(metadata={"x": "y"}, idle_timeout_ms=90000))["idle_timeout_ms"] == 90000
    with pytest.raises(lodge.ConflictError) as e:
        do(a.patch(metadata={}, if_version=1))
    assert e.value.details["session"]["id"] == a.id and e.value.status == 409
    assert do(a.delete("enough"))["cause"]["text"] == "enough"
    with pytest.raises(lodge.GoneError) as e:
        do(a.get())
    assert e.value.details["cause"]["text"] == "enough" and isinstance(e.value, lodge.SessionExpiredError)
    assert do(way.client.cleanup(user="ada"))["failed"] == []
    assert do(way.client.sessions(user="ada")) == []


def test_what_an_existing_session_ignores_is_named_with_one_warning(way, do):
    key = "k-" + uuid.uuid4().hex
    first = do(way.client.enter(key, limits={"pids": 50}, idle_timeout_ms=600000))
    assert first.ignored == []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = do(way.client.enter(key, limits={"pids": 60}, idle_timeout_ms=600000, template="host"))
        assert again.ignored == ["limits.pids"] and again.outcome == "reused"
        do(way.client.enter(key, limits={"pids": 50}))
    assert [w.category for w in caught] == [lodge.IgnoredWarning], [str(w.message) for w in caught]
    assert way.kind == "async" or caught[0].filename == __file__
    assert str(caught[0].message) == f"session {key} already exists: limits.pids ignored; patch() changes what can be changed"
    do(first.delete())


def test_extend_says_what_it_did(way, do):
    session = do(way.client.enter(lifetime_ms=60000, max_lifetime_ms=120000, delete_after_ms=90000))
    assert session.record["lifetime_ms"] == 60000 and session.record["delete_after_ms"] == 90000
    for moved, most in ((40000, False), (20000, True), (0, True)):
        before = do(session.get())["expires_at"]
        now = do(session.extend(40000))
        assert (now["extended_by_ms"], now["at_maximum"], now["expires_at"] - before) == (moved, most, moved)
    with pytest.raises(lodge.InvalidError, match="lifetime_ms: must be at most max_lifetime_ms"):
        do(session.patch(lifetime_ms=10 ** 6))
    with pytest.raises(lodge.InvalidError, match="idle_timeout_ms: must be at most 1d"):
        do(way.client.enter(idle_timeout_ms=7 * 86400000))
    seen = do(session.get())["version"]
    with pytest.raises(lodge.ConflictError):
        do(session.delete(if_version=seen + 1))
    do(session.delete(if_version=seen))


def test_pause_hibernate_resume_and_extend(session, do):
    assert do(session.probe())["status"] == "connected" and do(session.probe(2.5))["verified"]
    assert do(session.extend(60000))["state"] == "active" and do(session.activity())["id"] == session.id
    assert do(session.pause())["paused"] and not do(session.unpause())["paused"]
    assert do(session.hibernate())["state"] == "hibernated"
    assert do(session.resume())["outcome"] == "resumed"
    do(session.hibernate())
    r = do(session.exec("true"))
    assert r.outcome == "resumed" and not r.state_lost
    assert do(session.stats())["memory_bytes"] > 0 and do(session.progress())["status"] == "ready"
    assert do(session.watch_progress())[-1]["status"] == "ready"


def test_exec(session, do):
    r = do(session.exec(r"printf 'a\0\377\n'; echo no >&2; exit 3"))
    assert (r.exit_code, r.stdout, r.stderr, r.ok, r.signal) == (3, b"a\0\xff\n", b"no\n", False, None)
    assert r.stdout_bytes == 4 and not r.truncated and r.usage["cpu_ms"] >= 0
    r = do(session.exec(["sh", "-c", 'cat; echo "$A $1"; pwd', "sh", "x y"], stdin="in\n", env={"A": "b"}, cwd="/usr"))
    assert r.text == "in\nb x y\n/usr\n"
    assert do(session.exec("sleep 60", timeout=0.2)).timed_out
    r = do(session.exec("kill -9 $$"))
    assert r.exit_code is None and r.signal == 9
    key = uuid.uuid4().hex
    ids = {do(session.exec("echo x >> once", idempotency_key=key)).exec_id for _ in range(3)}
    assert len(ids) == 1 and do(session.files.read("once")) == b"x\n"
    for missing in ("/no/such", ["/no/such"]):
        r = do(session.exec(missing))
        assert r.exit_code == 127 and b"/no/such" in r.stderr and not r.stdout
    assert {e["exec_id"] for e in do(session.execs())} >= ids


def test_stream(session, do):
    events = do(session.stream(r"printf 'o\377'; printf e >&2; exit 5"))
    assert [e.kind for e in events][0] == "started" and events[-1].kind == "exit"
    assert b"".join(e.data for e in events if e.kind == "stdout") == b"o\xff"
    assert b"".join(e.data for e in events if e.kind == "stderr") == b"e"
    assert events[-1].result.exit_code == 5 and events[-1].result.exec_id == events[0].exec_id
    assert b"".join(e.data for e in do(session.stream("cat", stdin="given"))) == b"given"
    out = b"".join(e.data for e in do(session.stream("tty; stty size", pty={"rows": 5, "cols": 7})))
    assert b"/dev/pts/" in out and b"5 7" in out


def test_background_commands(session, do):
    x = do(session.start("cat; echo bye; exit 2"))
    assert do(x.info())["state"] == "running"
    raw = bytes(range(256))
    assert do(x.write(raw)) == 256
    got = do(x.output(wait=10))
    assert got.stdout == raw and not got.done
    with pytest.raises(lodge.TimeoutError):
        do(x.wait(0.1))
    do(x.write(b"!", eof=True))
    r = do(x.wait(180))
    assert r.exit_code == 2 and r.stdout_bytes == 261 and r.stdout == raw + b"!bye\n" and not r.truncated
    again = session.command(x.id)
    assert b"".join(e.data for e in do(again.stream(256))) == b"!bye\n"
    assert do(again.output(256)).done


def test_signals_and_kill(session, do):
    x = do(session.start("trap 'echo caught; exit 9' USR1; while :; do sleep 0.05; done", timeout=60))
    do(session.exec("sleep 0.3"))  # until the trap is set
    do(x.signal("USR1"))
    assert do(x.wait(180)).exit_code == 9 and do(x.output()).stdout == b"caught\n"
    y = do(session.start("sleep 600"))
    assert do(y.kill())["state"] == "killed" and do(y.kill())["state"] == "killed"
    z = do(session.start("sleep 600", pty={"rows": 1, "cols": 2}))
    do(z.resize(30, 90))
    do(z.kill())
    with pytest.raises(lodge.ConflictError):
        do(z.signal(15))


def test_files(session, do):
    f = session.files
    assert do(f.write("d/a b", b"one", mkdir=True, mode=0o600))["size"] == 3
    do(f.write("d/a b", b"two", append=True))
    assert do(f.read("d/a b")) == b"onetwo"
    assert do(f.stat("d/a b"))["mode"] == "0600"
    do(f.mkdir("x/y", parents=True))
    assert do(f.rename("d/a b", "x/c"))["path"] == "x/c"
    assert [e["path"] for e in do(f.list(depth=5))] == ["d", "x", "x/c", "x/y"]
    assert [e["name"] for e in do(f.list("x", glob="c*"))] == ["c"]
    assert [e["path"] for e in do(f.list(glob="x/**/c"))] == ["x/c"]
    with pytest.raises(lodge.NotFoundError):
        do(f.read("d/a b"))
    with pytest.raises(lodge.PreconditionError):
        do(f.write("x/c", b"", if_none_match="*"))
    do(f.remove("x/c"))
    do(f.remove("x", recursive=True))
    assert do(f.read("/etc/hostname")) == do(session.exec("cat /etc/hostname")).stdout


def test_entries_of_streamed_files_have_decoded_names(session, do):
    file, name = session.files.open(b"w\xff", "wb"), os.fsdecode(b"w\xff")
    do(file.write(b"x"))
    do(file.close())
    assert file.entry["path"] == name and "path_base64" not in file.entry


@pytest.mark.parametrize("name", ["new\nline", os.fsdecode(b"raw\xff"), b"bytes\xfe", "a?b#c%2F", " ", "+&="], ids=repr)
def test_names(session, do, name):
    do(session.files.write(name, b"x"))
    assert do(session.files.read(name)) == b"x" and do(session.files.stat(name))["size"] == 1
    text = os.fsdecode(name)
    assert [(e["name"], e["path"]) for e in do(session.files.list())] == [(text, text)]
    assert [e["path"] for e in do(session.files.list("/" + do(session.exec("pwd")).text.strip("/\n")))][0].endswith(text)
    inside = do(session.exec(["python3", "-c", "import os,sys; sys.stdout.write(repr(os.listdir(b'.')))"])).text
    assert inside == repr([os.fsencode(name)])
    do(session.files.rename(name, os.fsencode(name) + b"\xfd"))
    assert do(session.files.read(os.fsencode(name) + b"\xfd")) == b"x"


def test_archives_and_snapshots(way, session, do, tmp_path):
    do(session.files.write("d/f", b"data", mkdir=True))
    size = do(session.files.get_archive("d", tmp_path / "d.tar"))
    assert size == os.path.getsize(tmp_path / "d.tar") and tarfile.open(tmp_path / "d.tar").getnames()
    do(session.files.put_archive(tmp_path / "d.tar", "copy"))
    assert do(session.files.read("copy/f")) == b"data"
    packed = io.BytesIO()
    do(session.files.get_archive("d", packed, format="tar.zst"))
    do(session.files.put_archive(packed.getvalue(), "copy2", format="tar.zst"))
    snap = do(session.snapshot("first"))
    assert do(way.client.snapshot(snap["id"]))["name"] == "first"
    do(session.files.write("d/f", b"changed"))
    forks = do(session.fork(2, snapshot=snap["id"]))
    assert [do(s.files.read("d/f")) for s in forks] == [b"data"] * 2
    do(session.rollback(snap["id"]))
    assert do(session.files.read("d/f")) == b"data" and [s["id"] for s in do(session.snapshots())] == [snap["id"]]
    do(way.client.export_snapshot(snap["id"], tmp_path / "s.tar.zst"))
    back = do(way.client.import_snapshot(tmp_path / "s.tar.zst", name="back"))
    new = do(way.client.enter(snapshot=back["id"]))
    assert do(new.files.read("copy2/f")) == b"data"
    for s in [new, *forks]:
        do(s.delete())
    more = do(session.snapshot())
    every = list(do(way.client.snapshots(limit=1)))
    assert [s["id"] for s in every if s["id"] in (snap["id"], back["id"], more["id"])] == [
        snap["id"], back["id"], more["id"]]
    assert [s["session_exists"] for s in every if s["id"] == back["id"]] == [False]
    assert [s["id"] for s in do(way.client.snapshots(session=session.id))] == [snap["id"], more["id"]]
    assert list(do(way.client.snapshots(user="nosuch"))) == []
    do(way.client.delete_snapshot(back["id"]))
    do(session.delete_snapshot(snap["id"]))
    do(way.client.delete_snapshot(more["id"]))


def test_watch_and_events(way, session, do):
    changes = way.steps(session.files.watch())
    assert next(changes)["kind"] == "ready"
    do(session.files.write("w", b"x"))
    assert next(changes)["path"] == "w"
    do(session.files.write(b"w\xff", b"x"))
    while next(changes)["path"] != os.fsdecode(b"w\xff"):
        pass
    changes.close()
    do(session.activity())
    kinds = [e["kind"] for e in do(way.client.events(session=session.id))]
    assert kinds and kinds == [e["kind"] for e in do(way.client.events(session=session.id, since=0))]
    follow = way.steps(way.client.follow_events(session=session.id, since=0))
    assert [next(follow)["kind"] for _ in kinds] == kinds
    do(session.hibernate())
    assert next(follow)["session"] == session.id
    follow.close()


def test_administration(way, do, session):
    name = "n" + uuid.uuid4().hex[:12]
    c = way.client
    made = do(c.create_key(tenant=name, scope="tenant", name="for a test"))
    assert do(c.key(made["key"]["id"]))["tenant"] == name and len(do(c.keys(tenant=name))) == 1
    do(c.delete_key(made["key"]["id"]))
    assert do(c.create_policy(name, commands={"allow": ["ls"]}))["name"] == name
    assert do(c.policy(name))["commands"]["allow"] == ["ls"] and name in [p["name"] for p in do(c.policies())]
    assert not do(c.test_policy(name, "ls | xargs rm"))["allowed"]
    assert do(c.patch_policy(name, commands=None))["commands"] is None
    do(c.delete_policy(name))
    assert do(c.set_quota("zoe", sandboxes=2))["quota"]["sandboxes"] == 2
    assert do(c.quota("zoe"))["usage"]["sessions"] == 0
    assert do(c.set_user(name, name="Zoe", email="zoe@example.com"))["user"]["email"] == "zoe@example.com"
    assert [(u["id"], u["name"]) for u in do(c.users(q=name, sort="memory"))["users"]] == [(name, "Zoe")]
    with pytest.raises(lodge.NotFoundError):  # a user without sessions or projects
        do(c.user("zo\u00eb"))
    assert "host" in [t["name"] for t in do(c.templates())] and do(c.template("host"))["builtin"]
    snap = do(session.snapshot())
    assert do(c.create_template(name, snap["id"], workdir="/tmp"))["workdir"] == "/tmp"
    assert do(c.patch_template(name, workdir=None))["workdir"] is None
    assert do(c.delete_template(name)) == name
    assert do(c.environment(refresh=True))["template"] == "host" and do(c.environment())["pwd"]
    assert do(c.health())["status"] == "ok" and do(c.ready()) is True and "lodge_" in do(c.metrics())
    assert do(c.openapi())["openapi"] and do(c.progress())["status"] == "ready"
    assert do(c.watch_progress())[-1]["status"] == "ready"


def test_upload_of_a_template(way, do, tmp_path):
    name = "n" + uuid.uuid4().hex[:12]
    busybox = "/bin/busybox"
    if not os.path.exists(busybox):
        pytest.skip("needs busybox-static")
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(busybox, "bin/sh")
    assert do(way.client.upload_template(name, tmp_path / "t.tar"))["name"] == name
    do(way.client.delete_template(name))


def test_policies_and_limits_are_typed(way, do):
    name = "n" + uuid.uuid4().hex[:12]
    do(way.client.create_policy(name, commands={"deny": ["rm"]}))
    s = do(way.client.enter(policy=name, limits={"file_bytes": 1 << 20}))
    assert {p["limit"]: p["enforced"] for p in s.record["limits_not_enforced"]}["inodes"] is False
    with pytest.raises(lodge.ConflictError, match="inodes. cannot be enforced on this host"):
        do(s.patch(limits={"inodes": 5000}))
    with pytest.raises(lodge.PolicyError) as e:
        do(s.exec("echo hi; rm x"))
    assert e.value.details["word"] == "rm" and e.value.details["policy"] == name
    with pytest.raises(lodge.LimitError) as e:
        do(s.files.write("f", bytes(2 << 20)))
    assert e.value.code == "TOO_LARGE" and e.value.status == 413
    do(s.delete())
    do(way.client.delete_policy(name))


def test_a_wrong_key_is_refused(way, service):
    wrong = type(way)(way.kind, service.url)
    wrong.client._transport.key = "wrong"
    with pytest.raises(lodge.UnauthenticatedError):
        wrong.do(wrong.client.sessions())
    wrong.close()


def test_tcp_url(way, service):
    w = type(way)(way.kind, service.http_url)
    s = w.do(w.client.enter())
    assert w.do(s.exec("echo hi")).text == "hi\n"
    w.do(s.delete())
    w.close()


def test_a_terminal(way, session):
    if way.kind == "sync":
        with session.tty(command="cat", rows=7, cols=9) as t:
            t.write(b"hi\n")
            got = b""
            while b"hi\r\nhi" not in got:
                got += t.read(20)
            t.resize(10, 20)
            t.write(b"\x04")
            while t.read(20):
                pass
            assert t.exec_id and t.exit == {"exit_code": 0, "signal": None}
        return

    async def use():
        async with session.tty(command="cat") as t:
            await t.write(b"hi\n")
            got = b""
            while b"hi\r\nhi" not in got:
                got += await t.read()
            await t.resize(10, 20)
            await t.write(b"\x04")
            while await t.read():
                pass
            assert t.exec_id and t.exit == {"exit_code": 0, "signal": None}
    way.do(use())


def test_context_managers(service):
    with lodge.Client(service.url, "x") as c:
        c._transport.key = None
        with pytest.raises(lodge.UnauthenticatedError):
            c.enter()
    with lodge.Client(service.url) as c:  # with the key next to the socket, or of the environment
        c._transport.key = "lodge-test-key-0123456789"
        with c.enter() as s:
            assert s.exec("true").ok
        with pytest.raises(lodge.GoneError):
            s.get()


def leave(do, session):
    """The end of `with`, or of `async with`."""
    do(session.__exit__(None, None, None) if hasattr(session, "__exit__") else session.__aexit__(None, None, None))


@pytest.mark.parametrize("names", ["key", "user", "thread user", "idempotency_key"])
def test_leaving_the_block_keeps_what_has_a_name(way, do, names):
    how = dict.fromkeys(names.split(), "carol-" + uuid.uuid4().hex)
    made = do(way.client.enter(**how))
    try:
        for s in (made, do(way.client.enter(**how)), way.client.session(made.id), do(way.client.enter(pin=made.id))):
            leave(do, s)
            assert do(s.get())["state"] == "active"
        fork, = do(made.fork(key="carol-2"))
        leave(do, fork)
        assert do(fork.delete())["session"] == fork.id
        nameless, = do(made.fork())
        leave(do, nameless)
        with pytest.raises(lodge.GoneError):
            do(nameless.get())
    finally:
        do(made.delete())


@pytest.mark.parametrize("wrong", [-1, -0.001, float("nan"), float("inf"), "1", True])
def test_a_wrong_timeout_is_refused_by_every_method(way, session, do, wrong):
    x = session.command("exe_x")
    for name, call in {"exec": lambda: session.exec("true", timeout=wrong), "stream": lambda: session.stream("true", timeout=wrong),
                       "start": lambda: session.start("true", timeout=wrong), "wait": lambda: x.wait(wrong),
                       "output": lambda: x.output(wait=wrong), "probe": lambda: session.probe(wrong),
                       "enter": lambda: way.client.enter(timeout=wrong),
                       "client": lambda: type(way.client)("unix:/x", timeout=wrong),
                       "retry": lambda: type(way.client)("unix:/x", retry_for=wrong),
                       "reconnect": lambda: type(way.client)("unix:/x", reconnect_for=wrong)}.items():
        with pytest.raises(lodge.InvalidError, match="must be a number of seconds") as e:
            do(call())
        assert e.value.code == "INVALID", name
    assert not [r for r in do(session.execs()) if r["state"] == "running"]


@pytest.mark.parametrize("none", [0, 0.0, None])
def test_no_limit(way, do, none):
    w = type(way.client)(way.client.server_url, KEY, timeout=none)
    s = do(w.enter(timeout=none))
    assert do(s.exec("sleep 0.2; echo on", timeout=none)).stdout == b"on\n"
    assert do(s.stream("sleep 0.2; exit 4", timeout=none))[-1].result.exit_code == 4
    job = do(s.start("sleep 0.2; echo on", timeout=none))
    assert do(job.wait(none)).stdout == b"on\n"
    do(s.delete())
    do(w.close())
