# SPDX-License-Identifier: Apache-2.0
"""Entering: one sandbox per key, for any number of callers and after any end of the last one."""
import os
import subprocess
import time
import threading

import pytest

from engine import DRIVER, KEEPER, Engine, Refused, eventually


def sandboxes(e):
    return [i for kind, i in e.kept()["kept"] if kind == "sandbox"]


def test_outcomes(engine):
    a = engine.enter(key="k", user="u")
    assert a["outcome"] == "created" and a["session"]["state"] == "active"
    assert not a["state_lost"]
    b = engine.enter(key="k", user="u")
    assert b["outcome"] == "reused" and b["session"]["sandbox"] == a["session"]["sandbox"]
    engine.run(key="k", text="echo kept > f")
    h = engine.hibernate(key="k")["session"]
    assert h["state"] == "hibernated" and h["generation"] == 1 and h["hibernate_at"] == 0
    assert engine.hibernate(key="k")["session"]["version"] == h["version"], "it is already hibernated"
    c = engine.enter(key="k")
    assert c["outcome"] == "resumed" and not c["state_lost"] and c["cause"] == "asked"
    assert c["session"]["incarnation"] == 2
    assert engine.run(key="k", text="cat f")["out"] == "kept\n"


def test_a_hundred_concurrent_enters_get_one_sandbox(engine):
    waits = [engine.send("enter", key="one") for _ in range(100)]
    answers = [w() for w in waits]
    assert len({a["session"]["id"] for a in answers}) == 1
    assert len({a["session"]["sandbox"] for a in answers}) == 1
    assert sandboxes(engine) == [answers[0]["session"]["sandbox"]]
    assert sorted(a["outcome"] for a in answers) == ["created"] + ["reused"] * 99


def test_concurrent_commands_resume_one_sandbox(engine):
    engine.enter(key="one")
    engine.write(key="one", path="f", data="x")
    for _ in range(3):
        engine.hibernate(key="one")
        answers = [w() for w in [engine.send("run", key="one", text="cat f") for _ in range(40)]]
        assert all(a["out"] == "x" for a in answers)
        assert len(sandboxes(engine)) == 1


def test_concurrent_enters_share_the_error(engine):
    waits = [engine.send("enter", key="bad", template="nowhere") for _ in range(20)]
    for w in waits:
        with pytest.raises(Refused) as e:
            w()
        assert "nowhere" in e.value.msg
    assert engine.list()["sessions"] == [], "bad input must create no session"


def test_a_second_engine_is_refused(engine, world):
    r = subprocess.run([DRIVER, "--home", world.home, "--keeper", KEEPER], capture_output=True,
                       text=True, timeout=180, stdin=subprocess.DEVNULL)
    assert r.returncode == 1
    assert str(engine.pid) in r.stderr and "unix:/nowhere" in r.stderr, r.stderr
    assert engine.enter(key="k")["outcome"] == "created", "the first keeps working"


def test_a_killed_sandbox_is_resumed_with_its_files(engine):
    a = engine.enter(key="k")["session"]
    engine.write(key="k", path="f", data="acknowledged")
    assert engine.kill_sandbox(a)
    b = engine.enter(key="k")
    assert b["outcome"] == "resumed" and b["cause"] == "gone" and not b["state_lost"]
    assert engine.read(key="k", path="f")["data"] == "acknowledged"
    assert b["session"]["generation"] > a["generation"]


def test_lost_files_are_reported(engine, world):
    if world.kind != "directory":
        pytest.skip("needs the directory store")
    a = engine.enter(key="k")["session"]
    assert engine.kill_sandbox(a)
    eventually(lambda: engine.get(key="k")["session"]["state"] == "hibernated")
    layer = engine.get(key="k")["session"]["layer"]
    subprocess.run(["rm", "-rf", os.path.join(world.home, "store", "l-" + layer)], check=True)
    with pytest.raises(Refused) as r:
        engine.enter(key="k")
    assert r.value.code == "CONFLICT", "the session must exist without its files"
    assert engine.get(key="k")["session"]["state"] == "failed"


def test_a_session_destroyed_for_idleness_is_replaced_and_reported(world):
    e = Engine(world, "--no-threads")
    try:
        e.enter(key="k", idle_destroys=True, idle_ms=60000)
        e.clock(ms=61000)
        assert e.sweep()["changed"] == 1
        with pytest.raises(Refused) as r:
            e.get(key="k")
        assert r.value.sys and "idle" in r.value.msg
        a = e.enter(key="k")
        assert a["outcome"] == "replaced" and a["state_lost"] and a["cause"] == "idle"
        e.destroy(key="k")
        assert e.enter(key="k")["outcome"] == "created", "not reported after a requested destroy"
        e.destroy(key="k")
        assert e.close() == 0
    finally:
        if e.process.poll() is None:
            e.kill()


def test_pinning(engine):
    a = engine.enter(key="k")["session"]
    assert engine.enter(key="k", pin=a["sandbox"])["outcome"] == "reused"
    assert engine.enter(pin=a["id"])["session"]["id"] == a["id"]
    with pytest.raises(Refused) as r:
        engine.enter(key="k", pin="sbx_other")
    assert r.value.code == "CONFLICT"
    with pytest.raises(Refused):
        engine.enter(key="free", pin=a["id"])


def test_idempotent_creation(engine):
    a = engine.enter(once="o1")["session"]
    assert engine.enter(once="o1")["session"]["id"] == a["id"]
    assert engine.enter(once="o2")["session"]["id"] != a["id"]


def test_one_per_user(engine):
    a = engine.enter(key="a", user="u", per_user=1, replace=True)["session"]
    engine.write(key="a", path="f", data="a")
    with pytest.raises(Refused) as r:
        engine.enter(key="b", user="u", per_user=1)
    assert r.value.code == "LIMIT"
    b = engine.enter(key="b", user="u", per_user=1, replace=True)["session"]
    assert engine.get(session=a["id"])["session"]["state"] == "hibernated"
    assert engine.get(session=a["id"])["session"]["cause"] == "replaced"
    assert sandboxes(engine) == [b["sandbox"]]
    waits = [engine.send("enter", key=k, user="u", per_user=1, replace=True) for k in "abcabcabc"]
    for w in waits:
        w()
    assert len(sandboxes(engine)) == 1
    assert engine.read(key="a", path="f")["data"] == "a"


def has_settled(engine):
    before = engine.facts()["changes"]
    time.sleep(0.5)
    return engine.facts()["changes"] == before


def test_reads_write_nothing(engine):
    s = engine.enter(key="k")["session"]
    engine.run(key="k", text="true")
    engine.activity(key="k")
    eventually(lambda: all(x["state"] for x in engine.execs(key="k")["execs"]))
    eventually(lambda: has_settled(engine))  # the result is known before it is stored
    before = engine.facts()["changes"]
    record = engine.get(key="k")["session"]
    for _ in range(20):
        assert engine.get(key="k")["session"] == record
        assert engine.get(session=s["id"])["session"] == record
        assert engine.valid(key="k")["valid"]
        engine.list()
        engine.list(user="nosuch")
        engine.events()
        engine.execs(key="k")
        engine.snapshots()
        engine.durable(key="k")
        engine.full()
        assert engine.probe(key="k")["answer"] == "connected"
        assert not engine.valid(key="other")["valid"]
        with pytest.raises(Refused):
            engine.get(key="other")
    assert engine.get(key="k")["session"] == record
    assert engine.facts()["changes"] == before


def test_versions_are_compared(engine):
    s = engine.enter(key="k")["session"]
    with pytest.raises(Refused) as r:
        engine.hibernate(key="k", if_version=s["version"] + 7)
    assert r.value.code == "CONFLICT" and str(s["version"]) in r.value.msg
    assert engine.hibernate(key="k", if_version=s["version"])["session"]["state"] == "hibernated"


def test_events_are_in_order(engine):
    engine.enter(key="k")
    engine.extend(key="k")
    engine.hibernate(key="k")
    s = engine.enter(key="k")["session"]
    events = engine.events(session=s["id"])["events"]
    assert [x["kind"] for x in events] == ["create", "start", "ready", "extend", "sleep", "sealed",
                                           "start", "ready"]
    assert [x["version"] for x in events] == sorted(x["version"] for x in events)
    assert [x["id"] for x in events] == sorted(x["id"] for x in events)
    assert events[3]["actor"] == "driver"
    assert engine.events(session=s["id"], since=events[3]["id"])["events"] == events[4:]


def test_archived_sessions_are_not_resumed(engine):
    engine.enter(key="k")
    engine.write(key="k", path="f", data="1")
    assert engine.archive(key="k")["session"]["state"] == "archived"
    with pytest.raises(Refused) as r:
        engine.enter(key="k")
    assert r.value.code == "CONFLICT" and "archived" in r.value.msg
    with pytest.raises(Refused):
        engine.run(key="k", text="true")
    assert engine.unarchive(key="k")["session"]["state"] == "hibernated"
    assert engine.read(key="k", path="f")["data"] == "1"


def is_silent(engine, x, at):
    """A list with the offset, which may be 0, if no output follows it."""
    return [at] if engine.output(exec=x, offset=at, wait_ms=300)["data"] == "" else None


def test_pause(engine):
    engine.enter(key="k")
    x = engine.start(key="k", text="i=0; while :; do echo $((i++)); sleep 0.01; done")["exec"]
    assert engine.pause(key="k")["session"]["paused"]
    # earlier output may still be on its way into the log
    [at] = eventually(lambda: is_silent(engine, x, engine.output(exec=x, offset=0)["next"]))
    assert not engine.unpause(key="k")["session"]["paused"]
    eventually(lambda: engine.output(exec=x, offset=at)["data"])
    engine.pause(key="k")
    assert engine.run(key="k", text="echo on")["out"] == "on\n", "use thaws"
    engine.pause(key="k")
    engine.destroy(key="k")


def test_destroy_from_every_state(engine):
    def fresh():
        engine.enter(key="k")
        engine.write(key="k", path="f", data="1")
    for how in ("active", "hibernate", "pause", "archive"):
        fresh()
        if how != "active":
            engine.call(how, key="k")
        assert engine.destroy(key="k")["cause"] == "asked"
        assert engine.destroy(key="k")["cause"] == "asked", "a second call must succeed"
        with pytest.raises(Refused) as r:
            engine.get(key="k")
        assert r.value.code == "NOT_FOUND" and "by request" in r.value.msg
    with pytest.raises(Refused):
        engine.destroy(key="never")
    eventually(lambda: sandboxes(engine) == [])


def test_destroy_while_a_command_runs(engine):
    engine.enter(key="k")
    done = []

    def run():
        try:
            done.append(engine.run(key="k", text="sleep 100"))
        except Refused as e:
            done.append(e)
    t = threading.Thread(target=run)
    t.start()
    eventually(lambda: engine.execs(key="k")["execs"])
    engine.destroy(key="k")
    t.join(120)
    assert done, "the caller gets a result"
    eventually(lambda: sandboxes(engine) == [])


def test_bad_input_names_the_field(engine):
    for args, word in (({"key": ""}, "key"), ({"user": ""}, "user"), ({"user": "u" * 200}, "user"),
                       ({"metadata": "[1]"}, "metadata"), ({"metadata": "{"}, "metadata"),
                       ({"idle_ms": -1}, "idle_timeout_ms"), ({"template": "a/b"}, "template"),
                       ({"lifetime_ms": -5}, "max_lifetime_ms")):
        with pytest.raises(Refused) as r:
            engine.enter(**args)
        assert r.value.code in ("INVALID", "NOT_FOUND") and word in r.value.msg, r.value.msg
    assert engine.list()["sessions"] == []
