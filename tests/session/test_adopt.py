# SPDX-License-Identifier: Apache-2.0
"""The engine is killed and started again: everything kept running, and no output is missing."""
import os
import shutil
import signal
import time

import pytest

from engine import Engine, Refused, World, eventually, find, now_ms, wait_for
from machine import with_time
from stage import COUNTER
from world import cgroups, describe, groups_below

DAY = 24 * 3600 * 1000


class Home:
    def __init__(self, kind):
        self.kind, self.world = kind, World(store="dir" if kind == "directory" else None)
        self.engine = Engine(self.world)

    def restart(self, *options):
        self.engine.kill()
        self.engine = Engine(self.world, *options)
        return self.engine

    def read_on(self, exec_id, offset, stderr=False):
        """Read from `offset` to the current end."""
        text = ""
        while True:
            a = self.engine.output(exec=exec_id, offset=offset + len(text), stderr=stderr)
            if not a["data"]:
                return text
            text += a["data"]


@pytest.fixture(scope="module", params=["volume", "directory"])
def home_(request):
    h = Home(request.param)
    try:
        yield h
    finally:
        if h.engine.process.poll() is None:
            h.engine.kill()
        h.world.close()


@pytest.fixture
def home(home_):
    """One home for all tests; each leaves it as it was."""
    if home_.engine.process.poll() is not None:
        home_.engine = Engine(home_.world)
    yield home_
    e = home_.restart()
    e.destroy_all()
    assert e.close() == 0, e.log()
    home_.world.assert_clean("after the test")


def burst(i):
    return "".join(f"{i}-{j}\n" for j in range(500))


def test_bursts_are_complete(home):
    """About 200 KB, in pieces, across several kills of the engine."""
    home.engine.enter(key="k")
    text = ("for i in $(seq 0 49); do for j in $(seq 0 499); do echo $i-$j; done; "
            "echo e$i >&2; sleep 0.02; [ $i != 40 ] || until [ -e ~/go ]; do sleep 0.02; done; done; exit 3")
    x = home.engine.start(key="k", text=text)["exec"]
    want = "".join(burst(i) for i in range(50))
    assert len(want) > 150000
    out, err, deaths = "", "", 0
    while not home.engine.output(exec=x, offset=len(out))["ended"]:
        out += home.read_on(x, len(out))
        err += home.read_on(x, len(err), stderr=True)
        if deaths < 8:
            home.restart()
            deaths += 1
            if deaths == 4:  # the last pieces come after it, however slow the restarts are
                home.engine.write(key="k", path="go", data="")
            assert home.engine.execs(key="k")["execs"] == [{"exec": x, "state": 0}] or \
                home.engine.output(exec=x, offset=0)["ended"]
        time.sleep(0.05)
    done = home.engine.wait(exec=x)
    out += home.read_on(x, len(out))
    err += home.read_on(x, len(err), stderr=True)
    assert (done["state"], done["code"]) == ("exited", 3), done
    assert out == want and err == "".join(f"e{i}\n" for i in range(50))
    assert home.restart() and home.read_on(x, 0) == want, "it is kept"
    assert deaths >= 4


def test_twenty_commands_in_ten_sessions(home):
    execs = {}
    for i in range(10):
        home.engine.enter(key=f"k{i}")
        for j in range(2):
            text = f"for n in $(seq 1 60); do echo {i}.{j}.$n; sleep 0.02; done; exit {i}"
            execs[i, j] = home.engine.start(key=f"k{i}", text=text)["exec"]
    home.restart()
    time.sleep(0.2)
    home.restart()
    assert home.engine.facts()["active"] == 10
    for (i, j), x in execs.items():
        done = home.engine.wait(exec=x, ms=110000)
        assert (done["state"], done["code"]) == ("exited", i), done
        assert home.read_on(x, 0) == "".join(f"{i}.{j}.{n}\n" for n in range(1, 61))


def test_input_arrives_after_a_restart(home):
    home.engine.enter(key="k")
    x = home.engine.start(key="k", text="while read l; do echo got $l; done; echo end", stdin=True)
    home.engine.stdin(exec=x["exec"], data="one\n")
    home.restart()
    home.engine.stdin(exec=x["exec"], data="two\n")
    eventually(lambda: "two" in home.read_on(x["exec"], 0))
    home.restart()
    home.engine.stdin(exec=x["exec"], data="three\n", eof=True)
    done = home.engine.wait(exec=x["exec"], ms=110000)
    assert (done["state"], done["code"]) == ("exited", 0), done
    assert home.read_on(x["exec"], 0) == "got one\ngot two\ngot three\nend\n"


def test_signals_arrive_after_a_restart(home):
    home.engine.enter(key="k")
    text = "trap 'echo caught; exit 5' TERM; while :; do sleep 0.02; done"
    x = home.engine.start(key="k", text=text)["exec"]
    home.restart()
    home.engine.signal(exec=x, signal=signal.SIGTERM)
    done = home.engine.wait(exec=x, ms=110000)
    assert (done["state"], done["code"]) == ("exited", 5), done
    assert home.read_on(x, 0) == "caught\n"


def test_a_command_that_ended_without_an_engine(home):
    home.engine.enter(key="k")
    home.engine.write(key="k", path="go", data="")
    text = "while [ -e go ]; do sleep 0.02; done; seq 1 5000; echo last >&2; exit 7"
    x = home.engine.start(key="k", text=text)["exec"]
    home.engine.run(key="k", text="(sleep 0.3; rm go) >/dev/null 2>&1 &")
    home.engine.kill()
    assert wait_for(lambda: not [p for p in find("bash") if "-e go" in describe(p)], 120)
    home.engine = Engine(home.world)
    done = home.engine.wait(exec=x, ms=0)
    assert (done["state"], done["code"]) == ("exited", 7), done
    assert home.read_on(x, 0) == "".join(f"{i}\n" for i in range(1, 5001))
    assert home.read_on(x, 0, stderr=True) == "last\n"


def test_timeouts_are_enforced_without_an_engine(home):
    home.engine.enter(key="k")
    def act(ms):
        x = home.engine.start(key="k", text="echo on; sleep 1000", timeout_ms=ms)["exec"]
        home.engine.kill()
        assert wait_for(lambda: not find("sleep")), "it runs longer than its timeout"
        home.engine = Engine(home.world)
        done = home.engine.wait(exec=x, ms=110000)  # otherwise it had not started when the engine was killed
        assert done["state"] == "killed" and done["timed_out"], done
        return home.read_on(x, 0)

    assert with_time(act, len) == "on\n"


def test_deadlines_that_passed_without_an_engine(home):
    """They are compared with the clock of the next engine."""
    e = home.engine
    e.enter(key="idle", idle_ms=60000)
    e.write(key="idle", path="f", data="kept")
    e.enter(key="goes", idle_ms=60000, idle_destroys=True)
    e.enter(key="busy", idle_ms=60000)
    x = e.start(key="busy", text=COUNTER)["exec"]
    e.enter(key="late", idle_ms=3600 * 1000)
    e.enter(key="old", lifetime_ms=60000)
    e.start(key="old", text=COUNTER)
    e = home.restart("--clock", "120000")
    eventually(lambda: e.get(key="idle")["session"]["state"] == "hibernated")
    assert e.get(key="idle")["session"]["cause"] == "idle"
    eventually(lambda: e.get(key="old")["session"]["state"] == "hibernated")
    assert e.get(key="old")["session"]["cause"] == "expired"

    def gone():
        try:
            return e.get(key="goes") is None
        except Refused as r:
            return r.code == "NOT_FOUND" and "idle" in r.msg
    eventually(gone)
    e.sweep()
    assert e.get(key="late")["session"]["state"] == "active"
    assert e.get(key="busy")["session"]["state"] == "active", "a session with a running command must stay"
    assert e.output(exec=x, offset=0)["data"]
    assert e.read(key="idle", path="f")["data"] == "kept"


def test_a_sandbox_that_does_not_respond_blocks_nothing(home):
    """With a stopped lodge-init the engine starts, other sessions work, and the session works again when it
    continues."""
    e = home.engine
    stuck = e.enter(key="stuck")["session"]
    e.write(key="stuck", path="f", data="kept")
    x = e.start(key="stuck", text="for n in $(seq 1 100); do echo $n; sleep 0.02; done")["exec"]
    e.enter(key="well")
    pid = e.init_of(stuck)
    os.kill(pid, signal.SIGSTOP)
    try:
        e = home.restart()
        assert e.run(key="well", text="echo yes")["out"] == "yes\n"
        assert e.enter(key="new")["outcome"] == "created"
        s = e.get(key="stuck")["session"]
        assert s["state"] in ("active", "failed") and s["sandbox"] == stuck["sandbox"], s
        assert stuck["sandbox"] in [i for _, i in e.kept()["kept"]], "it was given up too soon"
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: e.probe(key="stuck")["answer"] == "connected")
    assert e.enter(key="stuck")["session"]["sandbox"] == stuck["sandbox"]
    assert e.read(key="stuck", path="f")["data"] == "kept"
    assert e.wait(exec=x, ms=110000)["code"] == 0
    assert home.read_on(x, 0) == "".join(f"{n}\n" for n in range(1, 101))


def test_a_sandbox_that_does_not_respond_can_be_destroyed(home):
    if home.kind != "volume":
        pytest.skip("does not depend on the store, and takes long")
    e = home.engine
    stuck = e.enter(key="stuck")["session"]
    os.kill(e.init_of(stuck), signal.SIGSTOP)
    e = home.restart()
    assert e.destroy(key="stuck")["cause"] == "asked"
    eventually(lambda: not e.kept()["kept"])


def has_ended(pid):
    """Zombies count as ended."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0] in "ZX"
    except OSError:
        return True


def test_a_sandbox_killed_without_an_engine(home):
    """Its processes are killed while no engine runs."""
    e = home.engine
    s = e.enter(key="k")["session"]
    e.write(key="k", path="f", data="acknowledged")
    x = e.start(key="k", text="echo on; sleep 1000")["exec"]
    eventually(lambda: home.read_on(x, 0))
    pid = e.init_of(s)
    e.kill()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: has_ended(pid))
    e = home.engine = Engine(home.world)
    now = e.get(key="k")["session"]
    assert now["state"] == "hibernated" and now["cause"] == "gone", now
    assert e.execs(key="k")["execs"] == [{"exec": x, "state": 2}], "its command must end with it"
    assert e.wait(exec=x, ms=5000)["state"] == "killed"
    a = e.enter(key="k")
    assert a["outcome"] == "resumed" and not a["state_lost"], a
    assert a["session"]["generation"] > s["generation"]
    assert e.read(key="k", path="f")["data"] == "acknowledged"


def test_sessions_survive_a_reboot(home):
    """No process is left, and the files below /run are gone."""
    e = home.engine
    for i in range(3):
        e.enter(key=f"k{i}")
        e.write(key=f"k{i}", path="f", data=f"acknowledged {i}")
    e.run(key="k0", text="sync ~/f")
    e.hibernate(key="k1")
    e.pause(key="k2")
    pids = find("lodge-init")
    e.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: not find("lodge-init") and not find("lodge-keeper"), 120)
    assert wait_for(lambda: not home.world.loops(), 120)
    for path in cgroups():
        if os.path.basename(path) == home.world.group_name("d"):
            for g in [*reversed(groups_below(path)), path]:
                os.rmdir(g)
    shutil.rmtree(home.world.run_dir())
    e = home.engine = Engine(home.world)
    for i in range(3):
        assert e.get(key=f"k{i}")["session"]["state"] == "hibernated"
        a = e.enter(key=f"k{i}")
        assert a["outcome"] == "resumed" and not a["state_lost"], a
        assert e.read(key=f"k{i}", path="f")["data"] == f"acknowledged {i}"


def test_a_paused_session_stays_paused(home):
    e = home.engine
    e.enter(key="k")
    x = e.start(key="k", text=COUNTER)["exec"]
    eventually(lambda: home.read_on(x, 0))
    e.pause(key="k")
    e = home.restart()
    s = e.get(key="k")["session"]
    assert s["state"] == "active" and s["paused"], s
    at = len(home.read_on(x, 0))
    assert e.output(exec=x, offset=at, wait_ms=300)["data"] == "", "no process may run"
    e.unpause(key="k")
    eventually(lambda: e.output(exec=x, offset=at)["data"])
    numbers = [int(n) for n in home.read_on(x, 0).split("\n")[:-1]]
    assert numbers == list(range(len(numbers)))


def test_an_orderly_end_keeps_commands_running(home):
    e = home.engine
    e.enter(key="k")
    x = e.start(key="k", text="for n in $(seq 1 50); do echo $n; sleep 0.02; done")["exec"]
    assert e.close() == 0
    e = home.engine = Engine(home.world)
    assert e.wait(exec=x, ms=110000)["code"] == 0
    assert home.read_on(x, 0) == "".join(f"{n}\n" for n in range(1, 51))


def test_a_jump_of_the_clock_between_runs(home):
    """A day ahead and back: no deadline is further away than the session's idle timeout."""
    e = home.restart("--clock", str(DAY))
    e.enter(key="k", idle_ms=600000)
    e.write(key="k", path="f", data="kept")
    e = home.restart()
    s = e.get(key="k")["session"]
    assert s["state"] == "active", s
    assert 0 < s["hibernate_at"] <= now_ms() + 600000, s
    assert s["expires_at"] <= now_ms() + 5 * 3600 * 1000, s
    assert e.enter(key="k")["outcome"] == "reused"
    assert e.read(key="k", path="f")["data"] == "kept"
