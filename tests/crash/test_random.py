# SPDX-License-Identifier: Apache-2.0
"""SIGKILL from outside, at random moments: the caller, the keeper, lodge-init, or two of them.
The seed is fixed (LODGE_SEED gives another); the machine's own jitter does the rest."""
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from world import KEEPER, LODGE, Driver, DriverError, World, children, descendants, find, wait_for

SEED = int(os.environ.get("LODGE_SEED", "20240607"))
ROUNDS = int(os.environ.get("LODGE_ROUNDS", "100"))
SECONDS = 60  # for all rounds of one test
# processes that a timeout or a destroy could miss
GUEST = "setsid sleep 300 & (setsid sleep 300 &) ; echo up; sleep {}"
VICTIMS = ("caller", "keeper", "init")


def find_victim(p, name):
    if name == "caller":
        return p.pid
    for keeper in children(p.pid, "lodge-keeper"):
        if name == "keeper":
            return keeper
        for init in children(keeper):  # lodge-init may not have its name yet
            return init
    return 0


def strike(p, names, delay):
    time.sleep(delay)
    hit = []
    for name in names:
        pid = find_victim(p, name)
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
                hit.append(name)
            except ProcessLookupError:
                pass
    return hit


def one_round(w, rng, options):
    names = rng.choice([["caller"], ["keeper"], ["init"], ["keeper", "caller"],
                        ["caller", "keeper"], ["init", "keeper"]])
    delay = rng.choice([rng.uniform(0, 0.012), rng.uniform(0, 0.06)])
    p = w.start(options, ["bash", "-c", GUEST.format(f"0.0{rng.randrange(10)}")])
    hit = strike(p, names, delay)
    r = w.finish(p)
    return f"{'+'.join(hit) or 'no process'} after {delay * 1000:.1f} ms ({r})", hit


def sure_round(w, name, options):
    """Kill as soon as the process exists, because on a busy machine it may not exist after any of the delays.

    The first child of a keeper may be a short-lived helper, so this goes on until the run has ended."""
    p = w.start(options, ["bash", "-c", GUEST.format(300)])
    hit = []
    assert wait_for(lambda: hit.extend(strike(p, [name], 0)) or (hit and p.poll() is not None), pause=0.001), f"no {name}"
    return f"{name} ({w.finish(p)})", hit


def rounds(w, options_of):
    rng = random.Random(SEED)
    end = time.monotonic() + SECONDS
    hits = {}
    w.next_start(*options_of(0))
    for i in range(ROUNDS):
        sure = i < len(VICTIMS)
        what, hit = sure_round(w, VICTIMS[i], options_of(i)) if sure else one_round(w, rng, options_of(i))
        for h in hit:
            hits[h] = hits.get(h, 0) + 1
        w.next_start(*options_of(i))
        w.assert_clean(f"round {i}: {what}")
        if time.monotonic() > end:
            print(f"only {i + 1} rounds within {SECONDS} s")
            break
    print(f"killed: {hits}")
    assert set(hits) == set(VICTIMS), f"some process was never killed: {hits}"


def test_runs():
    w = World(store="dir")
    try:
        rounds(w, lambda i: ["--store", "disk"] if i % 3 == 0 else [])
    finally:
        w.close()


def test_runs_of_an_ordinary_user():
    """Without cgroups, the next start cannot find what an earlier one left."""
    w = World(uid=12345)
    w.lodge("run", "--", "true")
    try:
        rounds(w, lambda i: ["--store", "disk"] if i % 3 == 0 else [])
    finally:
        w.close()


def send_requests(d, rng, names):
    """Send requests until a process dies."""
    d.ask(f"pool 1 2 3 {rng.randrange(2)} {rng.choice([0, 10])}")
    for n in names:
        d.ask(rng.choice([f"new {n} memory host", f"new {n} disk host", f"kept {n} share -"]))
        d.run(n, "setsid sleep 300 & (setsid sleep 300 &) ; echo up")
        if rng.random() < 0.6:
            d.ask(f"destroy {n}")


def kill_later(w, program, seconds, pid):
    return w.popen(["sh", "-c", f"sleep {seconds:.4f}; kill -9 {pid}"])


def test_daemon(world, driver_program):
    """The keeper of a daemon dies during requests; a sandbox whose `new` was answered survives."""
    rng = random.Random(SEED)
    end = time.monotonic() + SECONDS
    for i in range(25):
        d = Driver(world, driver_program)
        killer = kill_later(world, driver_program, rng.uniform(0, 0.08), d.keeper_pid())
        try:
            send_requests(d, rng, [f"r{i}x{n}" for n in range(6)])
        except DriverError:
            pass
        world.finish(killer)
        wait_for(lambda: not d.keeper_is_alive(), 120)
        d.kill()
        d = Driver(world, driver_program)
        for box in d.ask("list"):
            try:
                d.ask(f"connect {box}")
            except DriverError:
                pass
            assert d.ask(f"destroy {box}") == ["1"]
        world.assert_clean(f"round {i}", allowed=d.allowed(), keep={"d": []})
        entries = world.volume(d.keeper_pid())
        assert not entries, f"round {i}: store entries {entries}"
        d.end()
        world.assert_clean(f"round {i}, the end")
        if time.monotonic() > end:
            print(f"only {i + 1} rounds within {SECONDS} s")
            break


def test_many_at_once(world):
    """Some starts clean up while others start, end and die; none may fail because of that."""
    rng = random.Random(SEED)
    for i in range(6):
        doomed = [world.start([], ["sleep", "300"]) for _ in range(2)]
        good = [world.start([], ["echo", "good"]) for _ in range(8)]
        for p in doomed:
            strike(p, ["keeper", "caller"], rng.uniform(0, 0.03))
        for p in good:
            r = world.finish(p)
            assert (r.code, r.out) == (0, "good\n"), f"beside dying ones: {r}"
        for p in doomed:
            p.kill()
            world.finish(p)
        world.next_start()
        world.assert_clean(f"round {i}")


@pytest.mark.skipif(not os.path.isdir("/sys/fs/cgroup/freezer"), reason="no v1 freezer to hold it")
def test_a_process_that_cannot_be_killed(world):
    """The kernel holds a guest longer than any timeout: its state stays recorded, and the first start after its
    release removes everything."""
    held = f"/sys/fs/cgroup/freezer/{os.path.basename(world.base)}"
    os.mkdir(held)
    p = world.start(["--store", "disk"], ["sh", "-c", "echo up; exec sleep 300"])
    try:
        assert p.stdout.readline() == b"up\n"
        guest = [q for q in descendants(p.pid) if not children(q)][-1]
        for name, text in (("tasks", str(guest)), ("freezer.state", "FROZEN")):
            with open(os.path.join(held, name), "w") as f:
                f.write(text)
        p.kill()
        world.finish(p)
        wait_for(lambda: not find("lodge-keeper"), 120)
        assert guest in descendants(), "the process was not frozen"
        assert world.oneshots(), "its state was removed although the process still exists"
        world.next_start()
        assert world.oneshots(), "the next start forgot what it could not remove"
    finally:
        with open(os.path.join(held, "freezer.state"), "w") as f:
            f.write("THAWED")
        wait_for(lambda: not open(os.path.join(held, "tasks")).read(), 120)
        os.rmdir(held)
    world.next_start()
    world.assert_clean("after it was let go")


@pytest.mark.parametrize("uid", [None, 12345])
def test_template_add(uid):
    """An interrupted add leaves no template: the next add of the same name works, and rm leaves nothing."""
    rng = random.Random(SEED)
    w = World(uid=uid, store=None if uid else "dir")
    root = os.path.join(w.base, "rootfs")
    os.makedirs(os.path.join(root, "bin"))
    shutil.copy("/bin/busybox", os.path.join(root, "bin", "sh"))
    try:
        for i in range(12):
            p = w.popen([LODGE, "template", "add", "t", root])
            hit = strike(p, rng.choice([["caller"], ["keeper"], ["keeper", "caller"]]),
                         rng.uniform(0, 0.12))
            what = f"round {i}: {hit}, {w.finish(p)}"
            if w.lodge("template", "ls").out.find("\nt ") < 0:
                r = w.lodge("template", "add", "t", root)
                assert r.code == 0 or "exists" in r.err, f"{what}: again: {r}"
            r = w.run(["--template", "t"], ["/bin/sh", "-c", "echo whole"])
            assert (r.code, r.out) == (0, "whole\n"), f"{what}: {r}"
            assert w.lodge("template", "rm", "t", "--yes").code == 0, what
            w.assert_clean(what)
            left = os.listdir(os.path.join(w.home, "templates"))
            assert not left, f"{what}: {left}"
    finally:
        w.close()


@pytest.mark.parametrize("uid", [None, 12345])
@pytest.mark.parametrize("command", [("run", "--", "true"), ("template", "add", "t", "rootfs")])
def test_a_sandbox_without_a_record_dies_with_its_keeper(uid, command):
    """Also with the root class, to which exec gives capabilities back."""
    w = World(uid=uid, store=None if uid else "dir")
    os.makedirs(os.path.join(w.base, "rootfs", "bin"))
    shutil.copy("/bin/busybox", os.path.join(w.base, "rootfs", "bin", "sh"))
    try:
        words = [os.path.join(w.base, x) if x == "rootfs" else x for x in command]
        assert w.finish(w.popen([LODGE, *words], crash="create:spawned")).code != 0
        assert wait_for(lambda: not find("lodge-init"), 120), "it is left"
        w.next_start()
        w.assert_clean("after the next start")
    finally:
        w.close()


def test_a_kill_while_the_volume_is_created(driver_program):
    """The first use of the disk creates the volume; a keeper killed during that must not damage it."""
    rng = random.Random(SEED)
    for _ in range(4):
        w = World()
        try:
            p = w.start(["--store", "disk"], ["true"])
            strike(p, ["keeper"], rng.uniform(0.002, 0.06))
            w.finish(p)
            w.next_start("--store", "disk")
            r = w.sh(["--store", "disk", "--disk", "8M"], "head -c 4M /dev/zero >f; wc -c <f")
            assert r.out.strip() == str(4 << 20), f"the volume is not usable: {r}"
            left = [n for n in os.listdir(w.home) if n == "volume.new"]
            assert not left, "volume.new is left"
            w.assert_clean("after the volume was made")
        finally:
            w.close()


def nest(path, depth):
    """Create a tree deeper than PATH_MAX."""
    os.mkdir(path)
    at = os.open(path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        for n in "abc":
            os.close(os.open(n, os.O_CREAT | os.O_WRONLY, dir_fd=at))
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_a_kill_while_a_deep_tree_is_removed(driver_program):
    """Deep directories are moved up before they are removed; a keeper killed in between must not leave them there."""
    w = World(store="dir")
    try:
        Driver(w, driver_program).end()
        for i, delay in enumerate((0.01, 0.02, 0.03, 0.04, 0.05, 0.06)):
            nest(os.path.join(w.home, "store", f"s-x{i}"), 1500)
            os.mkdir(os.path.join(w.run_dir(), "d", "trash", f"x{i}"), 0o700)
            p = w.popen([driver_program], stdin=subprocess.PIPE)
            p.stdin.write(f"keeper {w.home} {KEEPER}\n".encode())
            p.stdin.flush()
            wait_for(lambda: children(p.pid, "lodge-keeper"), 120, 0.001)
            time.sleep(delay)
            for keeper in children(p.pid, "lodge-keeper"):
                os.kill(keeper, 9)
            p.kill()
            w.finish(p)
        d = Driver(w, driver_program)
        # removed in the background at idle priority, which takes long on a busy machine
        w.assert_clean("the next start", 120, allowed=d.allowed(), keep={"d": []})
        d.end()
    finally:
        w.close()
