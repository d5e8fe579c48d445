# SPDX-License-Identifier: Apache-2.0
"""The keeper is killed while its engine runs: another is started, and everything continues."""
import contextlib
import os
import random
import signal
import time

import pytest

from engine import Engine
from machine import is_alive
from stage import Case, Refused, Stage, wait_for


@pytest.fixture(params=["volume", "directory"])
def stage(request):
    with contextlib.closing(Stage(request.param)) as s:
        yield s
        s.end()


def are_gone(pids):
    return not any(map(is_alive, pids))


def kill_keeper(e, wait=False):
    """Kill the keepers; return their pids."""
    pids = e.keepers()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    assert not wait or wait_for(lambda: are_gone(pids), 120)
    return pids


def test_killed_while_commands_run(stage):
    c = Case(stage)
    c.enter()
    for i in range(5):
        c.put(f"f{i}")
        before = kill_keeper(c.e, wait=True)
        assert before, "no keeper to kill"
        assert c.e.run(key=c.key, text="echo on")["out"] == "on\n", "a command must work without a keeper"
        stage.check(f"after the keeper's death {i}")
        assert wait_for(c.e.keepers, 120) and c.e.keepers() != before
        other = Case(stage)
        other.enter()
        other.put("x")
        kill_keeper(c.e, wait=True)
        other.hibernate()
        kill_keeper(c.e, wait=True)
        other.check()
        c.e.destroy(key=other.key)
    c.check()
    stage.check("at last")


def operations(c, snapshots):
    """All operations on a session; none may lose an acknowledged file."""
    return {
        "enter": lambda: c.e.send("enter", key=c.key),
        "hibernate": lambda: c.e.send("hibernate", key=c.key),
        "snapshot": lambda: c.e.send("snapshot", key=c.key),
        "stop": lambda: c.e.send("snapshot", key=c.key, stop=True),
        "fork": lambda: c.e.send("fork", key=c.key, **({"snapshot": snapshots[-1]} if snapshots
                                                       else {})),
        "pause": lambda: c.e.send("pause", key=c.key),
        "run": lambda: c.e.send("run", key=c.key, text="echo hello"),
        "new": lambda: c.e.send("enter"),
        "collect": lambda: c.e.send("collect"),
    }


def test_killed_during_operations(stage):
    rng = random.Random(5)
    c = Case(stage)
    c.enter()
    snapshots, refused = [], 0
    for i in range(40):
        name = rng.choice(sorted(operations(c, snapshots)))
        wait = operations(c, snapshots)[name]()
        time.sleep(rng.choice((0, 0.002, 0.005, 0.01, 0.02)))
        killed = kill_keeper(c.e)
        try:
            answer = wait()
            if "snapshot" in answer:
                snapshots.append(answer["snapshot"]["id"])
        except Refused as r:
            refused += 1
            assert r.code in ("UNAVAILABLE", "CONFLICT") or "died" in r.msg, f"{name}: {r}"
        assert wait_for(lambda: are_gone(killed), 120)
        if i % 4 == 0:
            c.put(f"f{i}")
        c.check()
    assert c.e.facts()["pid"] == c.e.pid
    for s in c.e.list()["sessions"]:  # whatever their state, they can be entered
        c.e.resume(session=s["id"])
    stage.check(f"after {refused} that were refused")


def test_an_interrupted_rollback(stage):
    for _ in range(4):
        c = Case(stage)
        c.enter()
        c.put("a")
        snap = c.snapshot()
        c.put("b")
        c.sure, c.maybe = {"a"}, {"b"}
        wait = c.e.send("rollback", key=c.key, snapshot=snap)
        time.sleep(0.004)
        killed = kill_keeper(c.e)
        try:
            wait()
            c.maybe = set()
        except Refused as r:
            assert r.code == "UNAVAILABLE", r
        assert wait_for(lambda: are_gone(killed), 120)
        c.check()
    stage.check("after rollbacks")


def test_layers_of_a_killed_build_are_swept_while_it_runs():
    """As a build without a service leaves them when it and its keeper are killed."""
    with contextlib.closing(Stage("directory")) as stage:
        stage.engine.collect()  # checks the files, and from then on every ten minutes
        os.makedirs(os.path.join(stage.world.home, "store", "t-sha256." + "1" * 56, "u"))

        def left():
            return [n for n in stage.world.store() if n.startswith("t-sha256.")]

        assert left()
        stage.engine.clock(ms=3600 * 1000)
        assert wait_for(lambda: stage.engine.collect() and not left(), 120), left()
        stage.end()


HOUR = ("--keeper-wait-ms", "3600000")  # a caller that waits for a keeper that fails waits longer than any test


def test_the_timers_do_not_wait_for_a_keeper_that_fails(plain):
    """It starts, and dies at the first request of each deadline."""
    e = Engine(plain, "--no-threads", *HOUR, crash="stop:start")
    e.enter(key="due", idle_ms=60000)
    keepers = e.keepers()
    e.clock(ms=3600 * 1000)
    e.sweep()
    assert e.keepers() != keepers, "the deadline must have been tried"
    e.kill()
    e = Engine(plain)
    e.enter(key="due")
    e.destroy_all()
    assert e.close() == 0


def test_the_workers_do_not_wait_for_a_keeper_that_fails(plain):
    """It dies when a worker drops a layer. A worker that waits would keep the engine from closing."""
    e = Engine(plain)
    e.enter(key="k")
    snapshot = e.snapshot(key="k")["snapshot"]["id"]
    assert e.close() == 0
    e = Engine(plain, *HOUR, crash="layer:drop")
    e.snapshot_remove(snapshot=snapshot)
    keepers = e.keepers()
    e.clock(ms=3600 * 1000)
    assert wait_for(lambda: e.sweep() and e.keepers() != keepers, 120), "the layer must have been tried"
    assert e.close() == 0
    e = Engine(plain, "--clock", "3600000")
    e.destroy_all()
    assert e.close() == 0
