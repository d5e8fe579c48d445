# SPDX-License-Identifier: Apache-2.0
"""What the engine does when it dies, at which steps, and what must be true afterwards.

A scenario prepares with the first engine, yields what the dying engine should do, and continues
with the next one. The value of the yield is the reply, or None if there was none."""
import os

from stage import RUNNING, Case, wait_for

SCENARIOS = {}  # name -> (function, steps, stores)
RESUME = ("resume:recorded", "resume:made", "resume:ready")
HIBERNATE = ("hibernate:recorded", "hibernate:stopped", "hibernate:sealed", "hibernate:layered",
             "hibernate:done")
EXEC = ("exec:begun", "exec:recorded", "exec:ended", "exec:saved", "exec:finished", "exec:save")
DESTROY = ("destroy:recorded", "destroy:ended", "destroy:removed")
STORE = ("store-commit", "store-committed")


def scenario(*steps, stores=("volume", "directory")):
    def add(fn):
        SCENARIOS[fn.__name__] = (fn, steps, stores)
        return fn
    return add


# ---- entering -----------------------------------------------------------------------------------


@scenario("enter:created", *RESUME, *STORE)
def enter_new(c):
    yield lambda e: e.enter(key=c.key)
    c.check()


@scenario("enter:created", *RESUME)
def enter_once(c):
    yield lambda e: e.enter(once=c.key)
    s = c.e.enter(once=c.key)["session"]
    assert s["state"] == "active"
    assert c.e.enter(once=c.key)["session"]["id"] == s["id"]
    assert len(c.e.list()["sessions"]) == 2, "the same key created two sessions"


@scenario(*RESUME, *STORE)
def resume_taken(c):
    """No other object uses the layer, so the sandbox takes it over."""
    c.enter()
    c.put("a")
    c.hibernate()
    yield lambda e: e.enter(key=c.key)
    c.check()


@scenario(*RESUME)
def resume_kept(c):
    """A snapshot uses the layer too."""
    c.enter()
    c.put("a")
    c.hibernate()
    snap = c.snapshot()
    c.enter()
    c.put("b")
    c.hibernate()
    c.snapshot()
    yield lambda e: e.resume(key=c.key)
    c.check()
    c.e.fork(key=c.key, snapshot=snap, to=c.key + "x")
    c.check_files(key=c.key + "x", sure={"a"}, maybe=set())


@scenario(*RESUME)
def write_asleep(c):
    c.enter()
    c.put("a")
    c.hibernate()
    yield lambda e: c.put("b", e)
    c.check()


@scenario("hibernate:recorded", "hibernate:sealed", "resume:recorded", "resume:made")
def enter_dead(c):
    """Its sandbox was killed, so it is hibernated and resumed."""
    s = c.enter()
    c.put("a")

    def act(e):
        e.kill_sandbox(s)
        return e.enter(key=c.key)
    yield act, "--no-threads"
    c.check()


@scenario("enter:created", "resume:made")
def enter_snapshot(c):
    c.enter()
    c.put("a")
    snap = c.snapshot()
    to = c.key + "x"
    yield lambda e: e.enter(key=to, snapshot=snap)
    if c.exists(key=to):
        assert not c.e.enter(key=to)["state_lost"]
    else:
        c.e.enter(key=to, snapshot=snap)
    c.check_files(key=to)
    c.check()


# ---- commands -----------------------------------------------------------------------------------

TEXT = "cd; mkdir -p d; echo once >> d/log; seq 1 3000; echo oops >&2"
OUT = "".join(f"{i}\n" for i in range(1, 3001))


def ran(c):
    return c.e.run(key=c.key, text="cd; cat d/log 2>/dev/null || :")["out"].count("once")


def check_row(c, row):
    done = c.e.wait(exec=row["exec"], ms=20000)
    assert done["state"] == "exited" and done["code"] == 0, done
    assert c.read_all(row["exec"]) == (OUT, "oops\n")


def enter_started(c):
    """Until lodge-init has read its binding, it ends with the keeper, and a command is lost with it."""
    c.enter()
    c.e.write(key=c.key, path="/tmp/started", data="")


@scenario(*EXEC, *STORE)
def run(c):
    enter_started(c)
    yield lambda e: e.run(key=c.key, text=TEXT)
    rows = c.e.execs(key=c.key)["execs"]
    assert len(rows) <= 1, rows
    for row in rows:
        check_row(c, row)
    assert ran(c) == len(rows), "it ran, but has no record"


@scenario("exec:claimed", *EXEC)
def run_once(c):
    enter_started(c)

    def act(e):
        return {**e.run(key=c.key, text=TEXT, once="o"), "id": 0}
    yield act
    for row in c.e.execs(key=c.key)["execs"]:
        check_row(c, row)
    a = act(c.e)
    assert act(c.e) == a, "the second answer differs"
    times = ran(c)
    assert times <= 1, "it ran twice"
    if a["code"] == 0:
        assert times == 1 and a["out"] == OUT and a["err"] == "oops\n", a


@scenario("exec:begun", "exec:recorded")
def start_long(c):
    """The command continues without an engine, and with the next one."""
    c.enter()
    text = "for i in $(seq 1 30); do seq 1 $((i * 10)); sleep 0.02; done"
    yield lambda e: e.start(key=c.key, text=text)
    rows = c.e.execs(key=c.key)["execs"]
    for row in rows:
        done = c.e.wait(exec=row["exec"], ms=20000)
        assert (done["state"], done["code"]) == ("exited", 0), done
        want = "".join(f"{j}\n" for i in range(1, 31) for j in range(1, i * 10 + 1))
        assert c.read_all(row["exec"]) == (want, "")


@scenario("resume:made", "exec:begun")
def run_asleep(c):
    c.enter()
    c.put("a")
    c.hibernate()
    c.maybe.add("log")
    c.texts["log"] = "once\n"
    yield lambda e: e.run(key=c.key, text=TEXT)
    for row in c.e.execs(key=c.key)["execs"]:
        check_row(c, row)
    c.check()


# ---- hibernate ----------------------------------------------------------------------------------


@scenario("pause:recorded", *STORE)
def pause(c):
    c.enter()
    c.put("a")
    yield lambda e: e.pause(key=c.key)
    c.check()


@scenario("unpause:thawed")
def unpause(c):
    c.enter()
    c.put("a")
    c.e.pause(key=c.key)
    yield lambda e: e.unpause(key=c.key)
    c.check()


@scenario(*HIBERNATE, *STORE)
def hibernate(c):
    c.enter()
    c.put("a")
    c.e.start(key=c.key, text="sleep 1000")
    yield lambda e: e.hibernate(key=c.key)
    c.check_execs()
    c.check()
    rows = c.e.execs(key=c.key)["execs"]
    if c.e.get(key=c.key)["session"]["incarnation"] > 1:
        assert all(x["state"] != RUNNING for x in rows if x), rows


@scenario(*HIBERNATE)
def hibernate_over_layers(c):
    """A snapshot also uses the layer it was resumed from."""
    c.enter()
    c.put("a")
    c.hibernate()
    snap = c.snapshot()
    c.enter()
    c.put("b")
    yield lambda e: e.hibernate(key=c.key)
    c.check()
    c.e.fork(key=c.key, snapshot=snap, to=c.key + "x")
    c.check_files(key=c.key + "x", sure={"a"}, maybe=set())


@scenario("hibernate:recorded", "hibernate:sealed", "store-committed")
def archive(c):
    c.enter()
    c.put("a")
    yield lambda e: e.archive(key=c.key)
    if c.e.get(key=c.key)["session"]["state"] == "archived":
        c.e.unarchive(key=c.key)
    c.check()


@scenario(*HIBERNATE)
def sweep_idle(c):
    c.enter(idle_ms=60000)
    c.put("a")

    def act(e):
        e.clock(ms=61000)
        return e.sweep()
    yield act, "--no-threads"
    c.check()


@scenario("destroy:recorded", "destroy:removed")
def sweep_destroy(c):
    c.enter(idle_ms=60000, idle_destroys=True)

    def act(e):
        e.clock(ms=61000)
        return e.sweep()
    yield act, "--no-threads"
    assert c.is_gone(why="idle")


@scenario("sweep:lost", "hibernate:recorded", "hibernate:layered")
def sweep_lost(c):
    s = c.enter()
    c.put("a")

    def act(e):
        e.kill_sandbox(s)
        assert wait_for(lambda: not e.valid(key=c.key)["valid"], 120)
        return e.sweep()
    yield act, "--no-threads"
    c.check()


@scenario("probe:expire", "hibernate:recorded")
def probe(c):
    s = c.enter()
    c.put("a")

    def act(e):
        e.kill_sandbox(s)
        return e.probe(key=c.key)
    yield act, "--no-threads"
    c.check()


@scenario("capacity:evict", "hibernate:recorded", "hibernate:sealed", "enter:created",
          "resume:made")
def room(c):
    """The second session needs the capacity of the first; the old session is busy."""
    c.enter()
    c.put("a")
    other = Case(c.stage)
    yield (lambda e: e.enter(key=other.key)), "--max-active", "2"
    c.check()
    other.check()


# ---- snapshots ----------------------------------------------------------------------------------


def check_snapshot(c, sure):
    """It exists with all its files, or its name is free."""
    there = [s["id"] for s in c.e.snapshots(key=c.key)["snapshots"] if s["name"] == "snap"]
    snap = there[0] if there else c.snapshot(name="snap")
    c.e.fork(key=c.key, snapshot=snap, to=c.key + "x")
    c.check_files(key=c.key + "x", sure=sure, maybe=set())


@scenario("snapshot:copied", "snapshot:layered", "snapshot:named", *STORE)
def snapshot_live(c):
    c.enter()
    c.put("a")
    yield lambda e: e.snapshot(key=c.key, name="snap")
    c.check()
    check_snapshot(c, {"a"})


@scenario("hibernate:recorded", "hibernate:sealed", "hibernate:done", "snapshot:named", *RESUME)
def snapshot_stop(c):
    c.enter()
    c.put("a")
    yield lambda e: e.snapshot(key=c.key, name="snap", stop=True)
    c.check()
    check_snapshot(c, {"a"})


@scenario("snapshot:named")
def snapshot_asleep(c):
    c.enter()
    c.put("a")
    c.hibernate()
    yield lambda e: e.snapshot(key=c.key, name="snap")
    c.check()
    check_snapshot(c, {"a"})


@scenario(*STORE)
def snapshot_remove(c):
    c.enter()
    c.put("a")
    snap = c.snapshot(name="snap")
    yield lambda e: e.snapshot_remove(snapshot=snap)
    c.check()
    check_snapshot(c, {"a"})


def check_fork(c):
    to = c.key + "x"
    if not c.exists(key=to):
        c.e.fork(key=c.key, to=to)
    c.check_files(key=to)
    c.check()


@scenario("snapshot:copied", "snapshot:layered", "fork:held", "fork:made", "store-committed")
def fork_live(c):
    c.enter()
    c.put("a")
    yield lambda e: e.fork(key=c.key, to=c.key + "x")
    check_fork(c)


@scenario("fork:held", "fork:made", *STORE)
def fork_asleep(c):
    c.enter()
    c.put("a")
    c.hibernate()
    yield lambda e: e.fork(key=c.key, to=c.key + "x")
    check_fork(c)


def before_rollback(c):
    c.enter()
    c.put("a")
    snap = c.snapshot()
    c.put("b")
    c.sure, c.maybe = {"a"}, {"b"}
    return snap


@scenario("rollback:moved", "rollback:ended", "resume:made", "resume:ready", *STORE)
def rollback_live(c):
    snap = before_rollback(c)
    yield lambda e: e.rollback(key=c.key, snapshot=snap)
    c.check()


@scenario(*STORE)
def rollback_asleep(c):
    snap = before_rollback(c)
    c.hibernate()
    yield lambda e: e.rollback(key=c.key, snapshot=snap)
    c.check()


def exported(c):
    c.enter()
    c.put("a")
    snap = c.snapshot()
    path = os.path.join(c.stage.world.base, c.key + ".tar.zst")
    c.e.export(snapshot=snap, file=path)
    return path


@scenario("import:sealed", "enter:created", "resume:made", "hibernate:recorded", "hibernate:sealed",
          "destroy:recorded")
def import_(c):
    path = exported(c)
    yield lambda e: e.call("import", file=path, name="imported")
    assert len(c.e.list()["sessions"]) == 2, "the session of the import is left"
    there = [s["id"] for s in c.e.snapshots()["snapshots"] if s["name"] == "imported"]
    snap = there[0] if there else c.e.call("import", file=path, name="imported")["snapshot"]["id"]
    c.e.enter(key=c.key + "x", snapshot=snap)
    c.check_files(key=c.key + "x")
    c.check()


# ---- destroying ---------------------------------------------------------------------------------


@scenario(*DESTROY, *STORE)
def destroy(c):
    c.enter()
    c.put("a")
    c.e.start(key=c.key, text="sleep 1000")
    yield lambda e: e.destroy(key=c.key)
    if c.exists(key=c.key):  # the engine died before it recorded anything
        c.check()
        c.e.destroy(key=c.key)
    assert c.is_gone() and c.is_gone(key=c.key)


@scenario(*DESTROY)
def destroy_asleep(c):
    c.enter()
    c.put("a")
    c.hibernate()
    yield lambda e: e.destroy(key=c.key)
    assert c.is_gone()


@scenario("collect:dropped")
def collect(c):
    c.enter()
    c.put("a")
    c.e.snapshot_remove(snapshot=c.snapshot())

    def act(e):
        e.clock(ms=120 * 1000)
        return e.collect()
    yield act, "--no-threads"
    c.check()
    c.e.clock(ms=120 * 1000)
    assert wait_for(lambda: c.e.collect() and not c.layers(), 120), c.layers()
    c.e.clock(ms=-120 * 1000)


@scenario("flatten:layered", "flatten:used", stores=("directory",))
def flatten(c):
    c.enter()
    for i in range(17):
        c.put(f"f{i}")
        c.hibernate()
        c.snapshot()
        c.enter()
    c.hibernate()
    before = c.layers()

    def act(e):
        e.collect()
        return wait_for(lambda: e.process.poll() is not None or c.stage.world.store() != before, 120)
    yield act
    c.check()
    c.hibernate()
    c.check()


# ---- two crashes --------------------------------------------------------------------------------

# (scenario, where the first engine dies, where its successor dies during recovery)
TWICE = [
    ("enter_new", "resume:made", "reconcile:destroyed"),
    ("enter_new", "resume:recorded", "reconcile:destroyed"),
    ("resume_taken", "resume:made", "reconcile:sealed"),
    ("resume_taken", "resume:made", "store-commit"),
    ("resume_kept", "resume:made", "store-commit"),
    ("rollback_live", "rollback:moved", "store-commit"),
    ("hibernate", "hibernate:recorded", "hibernate:stopped"),
    ("hibernate", "hibernate:recorded", "hibernate:sealed"),
    ("hibernate", "hibernate:stopped", "hibernate:layered"),
    ("hibernate", "hibernate:sealed", "hibernate:done"),
    ("hibernate", "hibernate:layered", "store-commit"),
    ("destroy", "destroy:recorded", "destroy:ended"),
    ("destroy", "destroy:ended", "destroy:removed"),
    ("import_", "import:sealed", "destroy:recorded"),
    ("import_", "import:sealed", "destroy:ended"),
    ("run", "exec:begun", "exec:adopt"),
    ("run", "exec:begun", "store-commit"),
    ("run", "exec:recorded", "exec:ended"),
    ("run", "exec:recorded", "exec:saved"),
    ("run", "exec:recorded", "exec:finished"),
    ("run", "exec:recorded", "exec:save"),
    ("run_once", "exec:saved", "exec:save"),
    ("collect", "collect:dropped", "exec:adopt"),
    ("switch_project", "switch:pointed", "switch:marked"),
    ("switch_project", "switch:pointed", "switch:copied"),
    ("switch_fragment", "switch:marked", "switch:copied"),
    ("switch_project", "switch:made", "destroy:recorded"),
]

# scenario -> steps of the keeper during it
KEEPER = {
    "enter_new": ("create:dir", "create:planned", "create:parts", "create:store", "create:kept",
                  "create:recorded", "create:bound"),
    "resume_taken": ("create:layer", "create:kept", "create:recorded", "create:bound"),
    "resume_kept": ("create:store", "create:bound"),
    "hibernate": ("stop:start", "stop:killed", "layer:emptied", "layer:sealed"),
    "hibernate_over_layers": ("layer:emptied", "layer:sealed"),
    "snapshot_live": ("snap:frozen", "job:prepared", "job:worked", "job:ended"),
    "snapshot_stop": ("stop:killed", "layer:sealed", "create:kept"),
    "fork_live": ("snap:frozen",),
    "rollback_live": ("destroy:start", "destroy:moved", "create:bound"),
    "destroy": ("destroy:start", "destroy:marked", "destroy:moved", "destroy:killed",
                "destroy:files", "trash:files"),
    "pause": ("pause:frozen", "pause:marked"),
    "unpause": ("pause:marked",),
    "collect": ("layer:drop",),
    "flatten": ("job:prepared", "job:worked", "job:ended"),
}
