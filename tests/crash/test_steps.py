# SPDX-License-Identifier: Apache-2.0
"""The keeper, or the process that is about to become lodge-init, dies at every named step of the source; after the
next start nothing of it is left, and complete sandboxes still run."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from world import (COUNTER, Driver, DriverError, World, children, descendants, id_range_is_locked,
                   read_log, sources, wait_for)


def _sources():
    return sources("keeper", "runtime", "init")


def named_steps():
    return sorted({s for _, text in _sources()
                   for s in re.findall(r'(?<![\w.>])(?:hook_crash|at)\("([^"]+)"\)', text)})


STEPS = named_steps()
reached, tried = {}, {}


def note(step, operation, was_reached):
    tried.setdefault(step, set()).add(operation)
    if was_reached:
        reached.setdefault(step, set()).add(operation)


def test_steps_are_named_in_the_source():
    """Every hook has a literal name; only at() of spawn.c passes one on."""
    assert len(STEPS) >= 25, STEPS
    unnamed = [f"{where}: {m}" for where, text in _sources()
               for m in re.findall(r'hook_crash\([^"\n]*\)', text)]
    assert len(unnamed) <= 1, f"hooks without a literal name escape this test: {unnamed}"


# ---- one `lodge run` after the other ----------------------------------------------------------


@pytest.fixture(scope="module", params=["memory", "volume", "directory"])
def place(request):
    w = World(store="dir" if request.param == "directory" else None)
    w.options = [] if request.param == "memory" else ["--store", "disk"]
    w.kind = request.param
    try:
        w.next_start(*w.options)
        w.assert_clean("an undisturbed run")
        yield w
    finally:
        w.close()


def check_volume(w):
    """Only the running sandbox has an entry."""
    p = w.start(w.options, ["sh", "-c", "echo up; read x"], stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"up\n"
    entries = w.volume(children(p.pid, "lodge-keeper")[0])
    w.finish(p, data=b"\n")
    assert len(entries) == 1, f"store entries besides the one in use: {entries}"


@pytest.mark.parametrize("step", STEPS)
def test_run(place, step):
    w = place
    r = w.run(w.options, ["echo", "hello"], crash=step)
    died = bool(w.oneshots())
    note(step, w.kind, died or r.code == 125)
    assert r.code in (0, 125), f"{step}: {r}"
    if r.code == 125:
        assert r.err.startswith("lodge: ") and r.err.count("\n") == 1, f"{step}: one line: {r}"
    else:
        assert r.out == "hello\n", f"{step}: {r}"
    if not died:
        w.assert_clean(f"{step}, the keeper alive")
    w.next_start(*w.options)
    w.assert_clean(f"{step}, after the next run")
    if died and w.kind == "volume":
        check_volume(w)


def test_cleanup_does_not_create_a_volume():
    """Cleaning up after a crash needs no volume if no sandbox was ever on disk."""
    w = World()
    try:
        w.run([], ["true"], crash="create:dir")
        w.next_start()
        made = [n for n in os.listdir(w.home) if n.startswith("volume") or n == "store"]
        assert not made, f"the cleanup created {made}"
    finally:
        w.close()


def test_the_daemon_cleans_up_after_runs(world, driver_program):
    """A `lodge run` died, and the next start is that of a daemon."""
    world.run([], ["true"], crash="create:bound")
    assert world.oneshots(), "the keeper did not die at create:bound"
    d = Driver(world, driver_program)
    world.assert_clean("after the daemon's start", allowed=d.allowed(), keep={"d": []})
    d.end()


# ---- a daemon's keeper, with a sandbox that must survive --------------------------------------


class Kept:
    """A complete sandbox with a running command, older than all crashes."""

    def __init__(self, w, d):
        self.w, self.log, self.offset, self.next = w, os.path.join(w.base, "log"), 0, 0
        self.pid = int(d.ask("new keep disk host")[0])
        d.ask(f"start keep 1 {self.log} {COUNTER}")

    def check(self, d, what):
        assert "keep" in d.ask("list"), f"{what}: the keeper lost the sandbox"
        assert int(d.ask("connect keep")[0]) == self.pid, f"{what}: another process"
        assert d.ask("status keep 1")[0] == "running", f"{what}: its command ended"
        d.ask(f"attach keep 1 {self.offset}")
        self.read_on(what)
        d.ask("connect keep")  # closes the reader, so no output is consumed while the next keeper dies
        assert d.run("keep", "echo $((6 * 7))") == (0, "42\n"), what

    def read_on(self, what):
        """Reads at least one more number; none is missing or repeated."""
        def more():
            return read_log(self.log, self.offset)[0].count(b"\n") > 1
        assert wait_for(more, 120), f"{what}: its output has stopped"
        data, _ = read_log(self.log, self.offset)
        whole = data[:data.rindex(b"\n") + 1]
        numbers = [int(x) for x in whole.split()]
        assert numbers == list(range(self.next, self.next + len(numbers))), f"{what}: {numbers}"
        self.offset += len(whole)
        self.next += len(numbers)

    def processes(self):
        return [self.pid, *descendants(self.pid)]


class Base:
    """A layer older than all crashes. It is taken, used and sealed again; whenever that is interrupted, its files are
    complete somewhere."""

    def __init__(self, d):
        d.ask("kept base share -")
        assert d.run("base", "echo 42 >/tmp/base; sync /tmp/base") == (0, "")
        d.ask("stop base")
        d.ask("sealed base base")

    def find(self, d, what):
        """Find it, and make it a layer again."""
        if "base" in d.ask("layers"):
            assert "g" not in d.ask("list") + d.ask("files"), f"{what}: taken over, but still a layer"
            return
        if "g" in d.ask("list"):
            d.ask("stop g")
        d.ask("sealed g base")

    def check(self, d, what):
        self.find(d, what)
        d.ask("kept v share base")
        assert d.run("v", "cat /tmp/base") == (0, "42\n"), f"{what}: the layer"
        assert d.ask("destroy v") == ["1"], what


@pytest.fixture(scope="module", params=["volume", "directory"])
def daemon(request, driver_program):
    w = World(store="dir" if request.param == "directory" else None)
    w.program, w.kind = driver_program, request.param
    try:
        d = Driver(w, driver_program)
        w.kept, w.layer = Kept(w, d), Base(d)
        w.kept.check(d, "at first")
        w.layer.check(d, "at first")
        d.end()
        yield w
        d = Driver(w, driver_program)
        w.kept.check(d, "at last")
        w.layer.check(d, "at last")
        d.ask("destroy keep")
        d.ask("lose base")
        w.assert_clean("the last destroy", allowed=d.allowed(), keep={"d": []})
        assert w.volume(d.keeper_pid()) == []
        d.end()
        w.assert_clean("the end")
    finally:
        w.close()


@pytest.fixture(autouse=True)
def no_driver_outlives_its_test(request):
    yield
    if "daemon" in request.fixturenames:
        for d in request.getfixturevalue("daemon").drivers:
            if d.is_alive():
                d.kill()


class Word:
    """What the keeper has acknowledged, which must be true after any crash. The objects of an operation are
    undetermined from request to reply."""

    def __init__(self):
        self.truth = {}  # (files|layers|list, name) -> whether it exists
        self.paused = False  # a request froze g

    def ask(self, d, line, *facts):
        """facts: +files/x exists afterwards, -files/x does not, ?files/x may."""
        keys = [(tuple(f[1:].split("/")), f[0] == "+") for f in facts]
        for key, _ in keys:
            self.truth.pop(key, None)
        d.ask(line)
        self.truth.update((key, there) for (key, there), f in zip(keys, facts) if f[0] != "?")

    def check(self, d, what):
        now = {kind: d.ask(kind) for kind in ("files", "layers", "list")}
        for (kind, name), there in self.truth.items():
            assert (name in now[kind]) == there, f"{what}: {name} of {kind}: {now}"


def operations(d, word):
    """Every request that a keeper handles; the first error ends it."""
    d.ask("pool 2 3 4 0 0")
    d.ask("new a memory host")
    d.run("a", "echo hi; setsid sleep 300 & sleep 300 &")
    d.ask("new b disk host")
    d.ask("destroy a")
    d.ask("destroy b")
    d.ask("pool 0 0 0 0 0")
    d.ask("new c disk host")
    d.ask("new e memory host")
    d.ask("seal c t1")
    d.ask("new f memory t1")
    d.ask("destroy f")
    d.ask("drop t1")
    on_layers(d, word)
    wait_for(lambda: not trash(d) or not d.keeper_is_alive(), 120)
    assert not trash(d), f"the trash is not emptied: {trash(d)}"
    seconds = 5 if d.crash == "sweep:start" else 120  # a sweeper that dies removes nothing
    assert wait_for(lambda: not any(n.startswith("x-") for n in d.world.store()), seconds), "trees are not removed"


def on_layers(d, word):
    def ask(line, *facts):
        word.ask(d, line, *facts)

    d.ask("pool 2 2 4 1 0")
    ask("kept g take base", "-files/g", "+list/g", "-layers/base")
    d.run("g", "echo more >/tmp/more")
    word.paused = True
    d.ask("freeze g")
    d.ask("thaw g")
    word.paused = False
    ask("snap g l1", "+layers/l1")
    assert d.run("g", "cat /tmp/base") == (0, "42\n")
    ask("stop g", "-list/g", "?files/g")
    ask("sealed g base", "-files/g", "-list/g", "+layers/base")
    ask("kept h share base", "+list/h", "-files/h")
    ask("kept k share -", "+list/k", "-files/k")
    d.run("k", "echo more >more")
    ask("destroy k", "-list/k", "-files/k")
    d.ask("pool 0 0 0 0 0")
    d.ask("sync base")
    ask("merge l2 base", "+layers/l2")
    d.ask(f"export {d.world.base}/tar l2")
    ask("lose l1", "-layers/l1")
    ask("destroy h", "-list/h", "-files/h")
    ask("kept i share -", "+list/i", "-files/i")
    ask("stop i", "-list/i", "?files/i")
    wait_for(lambda: "i" in d.ask("files"), 120)
    word.truth["files", "i"] = True
    ask("destroy i", "-files/i", "-list/i")
    ask("kept j share -", "+list/j", "-files/j")
    ask("stop j", "-list/j", "?files/j")
    ask("destroy j", "-list/j", "-files/j")  # its processes may still be ending


def trash(d):
    return os.listdir(os.path.join(d.world.run_dir(), "d", "trash"))


def crash(w, step, word):
    """Whether the step was reached."""
    try:
        d = Driver(w, w.program, crash=step)
    except DriverError:
        return True
    try:
        operations(d, word)
        failed = False
    except (DriverError, AssertionError):
        failed = True
    alive = d.keeper_is_alive()
    if alive and failed:
        w.kept.check(d, f"{step}, the keeper alive")
        if "g" in d.ask("list") and not word.paused:
            assert d.run("g", "echo up") == (0, "up\n"), f"{step}: still frozen"
    d.kill()
    return failed or not alive


def clean_up(w, what, word=None):
    """Start the next keeper: acknowledged facts hold, everything it lists can be destroyed, and then only `keep` and
    the layer `base` remain."""
    d = Driver(w, w.program)
    w.kept.check(d, what)
    if word:
        word.check(d, what)
    if word and word.paused and "g" in d.ask("list"):
        d.ask("thaw g")
    for box in d.ask("list"):
        if box == "keep":
            continue
        try:
            d.ask(f"connect {box}")
            d.run(box, "true")
        except DriverError:
            pass  # it was not complete
        if box != "g":
            assert d.ask(f"destroy {box}") == ["1"], f"{what}: destroy {box}"
    w.layer.check(d, what)
    for box in d.ask("files"):
        assert d.ask(f"destroy {box}") == ["1"], f"{what}: destroy files {box}"
    for layer in d.ask("layers"):
        if layer != "base":
            d.ask(f"lose {layer}")
    try:
        d.ask("drop t1")
    except DriverError as e:
        assert "unknown template" in str(e), f"{what}: {e}"
    ours = ["l-base", "s-keep"]
    w.assert_clean(what, allowed=d.allowed() + w.kept.processes(), keep={"d": ["keep"]},
                   entries=ours)
    entries = w.volume(d.keeper_pid()) or w.store()
    assert entries == ours, f"{what}: store entries {entries}"
    d.end()


@pytest.mark.parametrize("step", STEPS)
def test_daemon(daemon, step):
    word = Word()
    was = crash(daemon, step, word)
    note(step, f"daemon, {daemon.kind}", was)
    clean_up(daemon, f"{step}, after the daemon's next start", word)


def test_every_step_was_reached():
    missing = [s for s in tried if s not in reached]
    assert not missing, f"no operation of this test reaches {missing}: add one"


def test_the_engine_dies(daemon):
    """After kill -9 of the engine its keeper exits, and a new pair adopts the sandbox."""
    d = Driver(daemon, daemon.program)
    daemon.kept.check(d, "before")
    d.ask("pool 1 1 2 1 0")
    d.kill()
    clean_up(daemon, "after the engine's death")


def test_the_engine_and_its_keeper_die(daemon):
    d = Driver(daemon, daemon.program)
    d.ask("pool 1 1 2 0 0")
    d.ask("new x memory host")
    pid = int(d.ask("new y disk host")[0])
    d.ask(f"start y 7 {daemon.base}/log7 {COUNTER}")
    d.kill_keeper()
    assert pid in descendants(), "a complete sandbox died with its keeper"
    bases = [daemon.base_of(b) for b in ("x", "y")]
    assert all(map(id_range_is_locked, bases)), "another sandbox could get the same ids"
    d.kill()
    d = Driver(daemon, daemon.program)
    assert sorted(d.ask("list")) == ["keep", "x", "y"]
    assert d.ask("connect y")[2] == "7", "the number of the last command is lost"
    assert d.ask("status y 7")[0] == "running"
    d.ask("signal y 7 9")
    assert wait_for(lambda: d.ask("status y 7")[0] == "exited", 120)
    assert d.ask("status y 7")[2] == "9"
    d.end()
    clean_up(daemon, "after both died")
    held = [b for b in bases if id_range_is_locked(b)]
    assert not held, f"ranges of ids are still held: {held}"


def test_a_dead_sandbox_can_be_destroyed(daemon):
    """kill -9 of lodge-init while the keeper runs."""
    d = Driver(daemon, daemon.program)
    pid = int(d.ask("new z disk host")[0])
    os.kill(pid, 9)
    with pytest.raises(DriverError):
        d.run("z", "echo hi")
    assert d.ask("destroy z") == ["1"]
    d.ask("new z disk host")
    assert d.run("z", "echo again") == (0, "again\n"), "the name is not usable again"
    d.end()
    clean_up(daemon, "after the death of a lodge-init")


def test_a_reused_pid_is_not_killed(daemon):
    """A record in the trash names a process that has exited, and another process has its pid now."""
    d = Driver(daemon, daemon.program)
    d.end()
    victim = daemon.popen(["sleep", "60"])
    entry = os.path.join(daemon.run_dir(), "d", "trash", "old")
    os.mkdir(entry, 0o700)
    with open(os.path.join(entry, "record"), "w") as f:
        f.write(f"version 2\npid {victim.pid}\nstart 0\nbase 0\nstore 1\nclass 0\nfiles 0\npaused 0\n"
                "group old\ntemplate host\nlayer none\n")
    clean_up(daemon, "a stale record")
    assert victim.poll() is None, "the keeper killed a process it never started"
    victim.kill()
    daemon.finish(victim)


def test_a_slot_name_is_not_used_twice(daemon):
    """Two keepers with the same pid (as in containers) and the sandbox of a claimed slot: no new slot or sandbox may
    use its cgroup."""
    d = Driver(daemon, daemon.program)
    d.ask("pool 1 1 1 0 0")
    _, source = d.ask("new s memory host")
    assert source == "pool"
    with open(os.path.join(daemon.run_dir(), "d", "sandboxes", "s", "record")) as f:
        group = re.search(r"^group (.*)$", f.read(), re.M).group(1)
    try:
        d.ask(f"new {group} memory host")
        d.ask(f"destroy {group}")
    except DriverError:
        pass
    assert d.run("s", "echo alive") == (0, "alive\n"), "destroying another sandbox ended this one"
    d.end()
    clean_up(daemon, "slot names")


def test_a_slot_with_files_is_like_any_sandbox(daemon):
    """Files prepared in advance get the sandbox's name when the slot is claimed, and stay when it ends."""
    d = Driver(daemon, daemon.program)
    d.ask("pool 1 1 1 1 0")
    assert d.ask("kept s share -")[1] == "pool"
    assert d.run("s", "pwd; echo mine >file; cat file") == (0, "/home/user\nmine\n")
    d.ask("pool 0 0 0 1 0")
    d.ask("stop s")
    assert wait_for(lambda: "s" in d.ask("files"), 120)
    d.ask("sealed s mine")
    d.ask("kept t take mine")
    assert d.run("t", "cat file") == (0, "mine\n")
    d.end()
    clean_up(daemon, "kept slots")


def test_an_old_slot_is_replaced(daemon):
    """Without a request, because the layers below its files may have changed."""
    def slots():
        return sorted(glob.glob(os.path.join(daemon.run_dir(), "d", "sandboxes", "p.*")))

    d = Driver(daemon, daemon.program)
    d.ask("pool 2 2 2 1 300")
    first = slots()
    assert len(first) == 2
    assert wait_for(lambda: len(slots()) == 2 and not set(first) & set(slots()), 120)
    d.ask("pool 2 2 2 1 0")
    assert d.ask("kept s share -")[1] == "pool"
    d.ask("pool 0 0 0 1 0")
    d.end()
    clean_up(daemon, "old slots")


def test_a_slot_that_died_is_replaced(daemon):
    d = Driver(daemon, daemon.program)
    assert d.ask("pool 2 2 2 1 0") == ["2"]
    # not the helpers that prepare parts; a slot has this name once its program runs
    assert wait_for(lambda: len(children(d.keeper_pid(), "lodge-init")) == 2)
    first = set(children(d.keeper_pid(), "lodge-init"))
    for pid in first:
        os.kill(pid, 9)
    assert wait_for(lambda: len(set(children(d.keeper_pid(), "lodge-init")) - first) == 2, 120)
    assert d.ask("kept s share -")[1] == "pool"
    d.ask("pool 0 0 0 1 0")
    d.end()
    clean_up(daemon, "dead slots")


def test_files_of_a_pool_are_removed_after_a_reboot(daemon):
    """The keeper's state was in memory, so only the files are left."""
    d = Driver(daemon, daemon.program)
    d.ask("pool 2 2 2 1 0")
    d.kill_keeper()
    d.kill()
    for slot in glob.glob(os.path.join(daemon.run_dir(), "d", "sandboxes", "p.*")):
        shutil.rmtree(slot)
    clean_up(daemon, "a pool without records")


def test_frozen_sandboxes_can_be_destroyed(daemon):
    """A frozen sandbox does not respond, but it is listed."""
    d = Driver(daemon, daemon.program)
    d.ask("new fr memory host")
    assert d.run("fr", "echo up") == (0, "up\n")  # from now on it outlives its keeper
    d.ask("freeze fr")
    d.kill_keeper()
    d.kill()
    d = Driver(daemon, daemon.program)
    assert sorted(d.ask("list")) == ["fr", "keep"]
    assert d.ask("destroy fr") == ["1"]
    d.end()
    clean_up(daemon, "a frozen sandbox")
