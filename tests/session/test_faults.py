# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the engine: clear words, no hand needed afterwards, nothing lost."""
import os
import signal
import subprocess

import pytest

from engine import DRIVER, KEEPER, Died, Engine, Refused, eventually, find

DAY = 24 * 3600 * 1000


def start(world, *options):
    return subprocess.run([DRIVER, "--home", world.home, "--keeper", KEEPER, *options], timeout=120,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def test_a_damaged_database_is_refused_and_left_alone(volume):
    e = Engine(volume)
    e.enter(key="k")
    e.write(key="k", path="f", data="x")
    e.hibernate(key="k")
    assert e.close() == 0
    path = os.path.join(volume.home, "lodge.db")
    with open(path, "rb") as f:
        good = f.read()
    for bad in (b"not a database at all" * 100, good[:4096] + b"\xff" * 16384 + good[20480:]):
        with open(path, "wb") as f:
            f.write(bad)
        r = start(volume)
        assert r.returncode == 1 and "lodge.db" in r.stderr, r.stderr
        with open(path, "rb") as f:
            assert f.read() == bad, "it was touched"
    with open(path, "wb") as f:
        f.write(good)
    e = Engine(volume)
    assert e.read(key="k", path="f")["data"] == "x"
    e.destroy_all()
    assert e.close() == 0


def test_the_clock_jumps_a_day_both_ways(engine):
    engine.enter(key="k", idle_ms=600000)
    engine.write(key="k", path="f", data="x")
    for ms in (DAY, -2 * DAY, DAY):
        engine.clock(ms=ms)
        engine.sweep()
        s = engine.get(key="k")["session"]
        assert s["state"] in ("active", "hibernated")
        assert engine.read(key="k", path="f")["data"] == "x"
    s = engine.enter(key="k")["session"]
    assert s["hibernate_at"] > 0


def test_the_clock_jumped_back_while_nobody_looked(world):
    e = Engine(world, "--clock", str(2 * DAY))
    e.enter(key="k", idle_ms=600000)
    e.write(key="k", path="f", data="x")
    e.kill()
    e = Engine(world, "--clock", "0")
    s = e.get(key="k")["session"]
    assert s["state"] == "active" and e.read(key="k", path="f")["data"] == "x"
    assert s["hibernate_at"] <= s["last_activity_at"] + 600000, "no deadline is a day away"
    e.destroy_all()
    assert e.close() == 0


def test_no_descriptor_is_left(engine):
    engine.enter(key="k")
    engine.write(key="k", path="f", data="x")
    used = len(os.listdir(f"/proc/{engine.pid}/fd"))
    engine.nofile(count=used)
    for _ in range(3):
        with pytest.raises(Refused) as r:
            engine.enter(key="another")
        assert r.value.msg
    assert engine.get(key="k")["session"]["state"] == "active"
    engine.nofile(count=1024)
    assert engine.read(key="k", path="f")["data"] == "x"
    assert engine.enter(key="another")["session"]["state"] == "active"


def test_the_keeper_is_killed(engine):
    engine.enter(key="k")
    x = engine.start(key="k", text="for i in $(seq 50); do echo $i; sleep 0.05; done")["exec"]

    def writes():
        """The call that meets its death is told; the next one finds another keeper."""
        try:
            engine.write(key="k", path="f", data="x")
        except Refused as r:
            assert r.code == "UNAVAILABLE", r
            return False
        return True
    for _ in range(3):
        engine.kept()  # one is started when it is needed
        os.kill(find("lodge-keeper", engine.pid)[0], signal.SIGKILL)
        eventually(writes)
        assert engine.enter(key="other")["session"]["state"] == "active"
    assert engine.wait(exec=x)["code"] == 0
    assert engine.output(exec=x, offset=0)["data"] == "".join(f"{i}\n" for i in range(1, 51))


def test_no_keeper_can_be_started(volume):
    r = start(volume, "--keeper", "/nowhere/lodge-keeper")
    assert r.returncode == 1 and "lodge-keeper" in r.stderr, r.stderr
    assert not find("lodge-keeper")
    e = Engine(volume)
    assert e.enter(key="k")["outcome"] == "created"
    e.destroy_all()
    assert e.close() == 0


def test_killed_in_the_middle_of_everything(world):
    """Twenty requests under way, then SIGKILL; the next engine knows what it says."""
    e = Engine(world)
    for i in range(4):
        e.enter(key=f"k{i}")
        e.write(key=f"k{i}", path="f", data=str(i))
    waits = [e.send(op, key=f"k{i}", **args) for i in range(4) for op, args in (
        ("hibernate", {}), ("run", {"text": "echo hi"}), ("snapshot", {}), ("extend", {}), ("pause", {}))]
    e.kill()
    for w in waits:
        with pytest.raises((Died, Refused)):
            while True:
                w()
                break
            raise Died
    e = Engine(world)
    for i in range(4):
        eventually(lambda i=i: e.read(key=f"k{i}", path="f")["data"] == str(i))
    e.destroy_all()
    assert e.close() == 0
    world.assert_clean("the end")
