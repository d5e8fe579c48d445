# SPDX-License-Identifier: Apache-2.0
"""Faults around the engine: clear errors, recovery without help, and nothing lost."""
import contextlib
import os
import shutil
import signal
import subprocess

import pytest

from engine import DRIVER, KEEPER, Died, Engine, Refused, eventually, find
from machine import fill, mounted

DAY = 24 * 3600 * 1000


def start(world, *options):
    return subprocess.run([DRIVER, "--home", world.home, "--keeper", KEEPER, *options], timeout=120,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def test_a_damaged_database_is_refused_unchanged(volume):
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
            assert f.read() == bad, "the file was changed"
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


def test_the_clock_jumped_back_without_an_engine(world):
    e = Engine(world, "--clock", str(2 * DAY))
    e.enter(key="k", idle_ms=600000)
    e.write(key="k", path="f", data="x")
    e.kill()
    e = Engine(world, "--clock", "0")
    s = e.get(key="k")["session"]
    assert s["state"] == "active" and e.read(key="k", path="f")["data"] == "x"
    assert s["hibernate_at"] <= s["last_activity_at"] + 600000, "a deadline must not be a day away"
    e.destroy_all()
    assert e.close() == 0


def test_running_out_of_descriptors(world):
    engine = Engine(world, "--keeper-wait-ms", "1000")
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
    engine.destroy_all()
    assert engine.close() == 0
    world.assert_clean("the end")


def test_the_keeper_is_killed(engine):
    engine.enter(key="k")
    x = engine.start(key="k", text="for i in $(seq 50); do echo $i; sleep 0.05; done")["exec"]

    def works(call, **args):
        """A call that finds the keeper dead fails; the next one starts another keeper."""
        try:
            call(**args)
        except Refused as r:
            assert r.code == "UNAVAILABLE", r
            return False
        return True
    for _ in range(3):
        eventually(lambda: works(engine.kept))  # starts a keeper if none runs
        os.kill(find("lodge-keeper", engine.pid)[0], signal.SIGKILL)
        eventually(lambda: works(engine.write, key="k", path="f", data="x"))
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


def test_killed_during_many_requests(world):
    """Twenty requests are in progress at the SIGKILL; the next engine has a consistent state."""
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


def test_a_full_disk(plain):
    ballast = os.path.join(plain.home, "ballast")
    with mounted(plain.home, "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs"):
        os.mkdir(os.path.join(plain.home, "store"), 0o711)
        e = Engine(plain)
        e.enter(key="k")
        e.write(key="k", path="f", data="x")
        e.snapshot(key="k")
        fill(ballast)
        for call in (lambda: e.enter(key="another"), lambda: e.write(key="k", path="g", data="y" * 9000),
                     lambda: e.fork(key="k")):
            with pytest.raises(Refused) as r:
                call()
            assert r.value.code in ("LIMIT", "UNAVAILABLE"), r.value
            assert "full" in r.value.msg or "space" in r.value.msg, r.value
        assert e.read(key="k", path="f")["data"] == "x", "reads must work on a full disk"
        e.kill()
        os.unlink(ballast)
        fill(ballast)
        with contextlib.suppress(Died):  # SQLite may or may not start without a free block
            e = Engine(plain)
            assert e.get(key="k")["session"]["state"] in ("active", "hibernated")
            e.kill()
        os.unlink(ballast)
        e = Engine(plain)
        assert e.read(key="k", path="f")["data"] == "x"
        assert e.enter(key="another")["outcome"] == "created"
        e.hibernate(key="k")
        assert e.read(key="k", path="f")["data"] == "x"
        e.destroy_all()
        assert e.close() == 0
    plain.assert_clean("the end")


def test_the_data_directory_is_read_only_at_the_start(plain):
    e = Engine(plain)
    e.enter(key="k")
    e.write(key="k", path="f", data="x")
    e.hibernate(key="k")
    assert e.close() == 0
    with mounted(plain.home, "--bind", plain.home):
        subprocess.run(["mount", "-o", "remount,ro,bind", plain.home], check=True)
        r = start(plain)
        assert r.returncode == 1 and "ead-only" in r.stderr, r.stderr
    e = Engine(plain)
    assert e.read(key="k", path="f")["data"] == "x"
    e.destroy_all()
    assert e.close() == 0


def test_the_database_becomes_read_only(plain):
    if shutil.which("chattr") is None:
        pytest.skip("needs chattr")
    e = Engine(plain)
    e.enter(key="k")
    e.write(key="k", path="f", data="x")
    files = [os.path.join(plain.home, n) for n in ("lodge.db", "lodge.db-wal")]
    if subprocess.run(["chattr", "+i", *files], check=False, capture_output=True).returncode:
        e.destroy_all()
        assert e.close() == 0
        pytest.skip("this file system has no immutable files")
    try:
        for call in (lambda: e.enter(key="another"), lambda: e.hibernate(key="k"), lambda: e.destroy(key="k")):
            with pytest.raises(Refused) as r:
                call()
            assert r.value.code != "INTERNAL" and "lodge.db" in r.value.msg, r.value
        assert e.get(key="k")["session"]["state"] == "active"
        assert e.read(key="k", path="f")["data"] == "x"
    finally:
        subprocess.run(["chattr", "-i", *files], check=True)
    eventually(lambda: enters(e, "another"))
    e.hibernate(key="k")
    assert e.read(key="k", path="f")["data"] == "x"
    e.destroy_all()
    assert e.close() == 0
    plain.assert_clean("the end")


def test_the_keeper_cannot_fork(engine):
    """At the process limit a sandbox is refused; below it the next one is not."""
    engine.enter(key="k")
    group = f"/sys/fs/cgroup/pids/{os.path.basename(engine.world.base)}"
    if not os.path.isdir("/sys/fs/cgroup/pids"):
        pytest.skip("needs the pids controller of cgroup version 1")
    home = open("/proc/self/cgroup").read().split(":pids:")[1].split("\n")[0].rstrip("/")
    os.mkdir(group)
    try:
        for p in engine.keepers():
            with open(f"{group}/cgroup.procs", "w") as f:
                f.write(str(p))
        with open(f"{group}/pids.max", "w") as f:
            f.write("1")
        for _ in range(3):
            with pytest.raises(Refused) as r:
                engine.enter(key="another")
            assert r.value.code in ("LIMIT", "UNAVAILABLE"), r.value
        assert engine.run(key="k", text="echo hi")["out"] == "hi\n"
        with open(f"{group}/pids.max", "w") as f:
            f.write("max")
        assert engine.enter(key="another")["outcome"] == "created"
    finally:
        def is_gone():  # including processes it started meanwhile
            with contextlib.suppress(OSError):
                with open(f"{group}/cgroup.procs") as inside:
                    for p in inside.read().split():
                        with open(f"/sys/fs/cgroup/pids{home}/cgroup.procs", "w") as f:
                            f.write(p)
                os.rmdir(group)
            return not os.path.exists(group)

        eventually(is_gone)


def test_the_keeper_program_is_missing(plain):
    """As during an upgrade: calls that need a new keeper fail, running sandboxes continue."""
    program = os.path.join(plain.base, "lodge-keeper")
    os.symlink(KEEPER, program)
    e = Engine(plain, "--keeper", program)
    e.enter(key="k")
    # lodge-init ends with the keeper until it has read its binding, which precedes every command
    assert e.run(key="k", text="echo hi")["out"] == "hi\n"
    os.unlink(program)
    for p in e.keepers():
        os.kill(p, signal.SIGKILL)
    eventually(lambda: not e.keepers())
    with pytest.raises(Refused) as r:
        e.enter(key="another")
    assert "lodge-keeper" in r.value.msg and r.value.code != "INTERNAL", r.value
    assert e.run(key="k", text="echo hi")["out"] == "hi\n"
    os.symlink(KEEPER, program)
    eventually(lambda: enters(e, "another"))
    e.destroy_all()
    assert e.close() == 0
    plain.assert_clean("the end")


def enters(e, key):
    try:
        return e.enter(key=key)
    except Refused:
        return None


def test_a_power_loss_reverted_the_rename_of_a_layer(plain):
    """Resuming renames the layer; after the power loss it has its old name, and the sandbox is gone."""
    e = Engine(plain)
    e.enter(key="k")
    e.write(key="k", path="f", data="x")
    layer = e.hibernate(key="k")["session"]["layer"]
    s = e.enter(key="k")["session"]
    e.kill()
    eventually(lambda: not find("lodge-keeper"))
    for pid in find("lodge-init"):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not find("lodge-init"))
    store = os.path.join(plain.home, "store")
    os.rename(os.path.join(store, "k-" + s["sandbox"]), os.path.join(store, "l-" + layer))
    shutil.rmtree(os.path.join(plain.run_dir(), "d", "sandboxes", s["sandbox"]))
    e = Engine(plain)
    s = eventually(lambda: [x for x in [e.get(key="k")["session"]] if x["state"] == "hibernated"])[0]
    assert s["cause"] == "gone"
    a = e.enter(key="k")
    assert a["outcome"] == "resumed" and not a["state_lost"]
    assert e.read(key="k", path="f")["data"] == "x"
    e.destroy_all()
    assert e.close() == 0
    plain.assert_clean("the end")
