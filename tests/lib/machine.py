# SPDX-License-Identifier: Apache-2.0
"""Helpers of all suites: build directory, processes, mounts, terminals, waiting."""
import contextlib
import glob
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time

# tools/apart gives each run its own TMPDIR; /tmp may be in memory
tempfile.tempdir = os.environ.get("TMPDIR", "/var/tmp")

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


def build(*default):
    """The directory of the programs; `default` is the path below build/ used when LODGE_BUILD is unset."""
    return os.path.realpath(os.environ.get("LODGE_BUILD", os.path.join(SOURCE, "build", *default)))


def need(items, *programs):
    """For pytest_collection_modifyitems: skip the tests unless run by root, and require these programs."""
    import pytest  # some users of this module run without pytest
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests need root"))
    for program in programs:
        assert os.access(program, os.X_OK), f"{program} is missing; LODGE_BUILD names the build directory"


def wait_for(condition, seconds=120, pause=0.05):
    """Poll until the condition is true or time is up; return its last value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)


def eventually(condition, seconds=120):
    value = wait_for(condition, seconds)
    assert value, "the condition did not become true in time"
    return value


def with_time(act, seen, times=(500, 5000, 50000)):
    """Call act(ms) with increasing time limits until seen(result) is true, because a busy machine needs more time;
    return the last result."""
    for ms in times:
        result = act(ms)
        if seen(result):
            break
    return result


def was_used_in_time(use, idle, rounds=5):
    """Use something that ends after `idle` seconds without use, for longer than that in total. use() returns whether
    it was still there, which must be so. False: the machine was too busy to use it in time, so nothing was shown."""
    last = time.monotonic()
    for _ in range(rounds):
        time.sleep(idle / (rounds - 1))
        began = time.monotonic()
        there = use()
        if time.monotonic() - last >= idle:
            return False
        assert there, "it ended although it was used"
        last = began
    return True


# ---- processes --------------------------------------------------------------------------------


def stat_of(pid):
    """Return (state, parent), or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            rest = f.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return rest[0].decode(), int(rest[1])


def is_alive(pid):
    return (stat_of(pid) or "X")[0] not in "ZX"


@contextlib.contextmanager
def stopped(pid):
    """As a process that hangs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)


def name_of(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    return ""


def children(pid, name=None):
    """Direct children of all its threads, found without scanning /proc."""
    found = []
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/task/{tid}/children") as f:
                    found += [int(x) for x in f.read().split()]
    return [p for p in found if not name or name_of(p) == name]


def memory_of(pid):
    """Resident memory in bytes."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root=None):
    """Map pid to state for all descendants of `root` or of this process, zombies included."""
    everybody = {pid: st for pid in _pids() if (st := stat_of(pid))}
    found, more = {}, [root or os.getpid()]
    while more:
        parent = more.pop()
        for pid, (state, ppid) in everybody.items():
            if ppid == parent and pid not in found:
                found[pid] = state
                more.append(pid)
    return found


def words_of(pid):
    """Its command line."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return os.fsdecode(f.read()).split("\0")[:-1]
    return []


def with_words(home, *programs):
    """Processes of these programs with a path at or below `home` on their command line."""
    found = []
    for pid in _pids():
        program, *words = words_of(pid) or [""]
        if os.path.basename(program) in programs and any(f"{w}/".startswith(f"{home}/") for w in words):
            found.append(pid)
    return found


def keepers_of(home):
    """Includes keepers whose lodged has exited."""
    return [pid for pid in with_words(home, "lodge-keeper") if name_of(pid) != "lodge-volume"]


# ---- files ------------------------------------------------------------------------------------


def cgroup_roots():
    with open("/proc/mounts") as f:
        for line in f:
            _, point, kind = line.split()[:3]
            if kind in ("cgroup", "cgroup2"):
                yield point


def run_dir(home):
    """The state directory of the keeper that root started for this home."""
    st = os.stat(home)
    return f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}"


def _running_in(state):
    """Processes in the cgroups of a keeper's state directory."""
    with contextlib.suppress(OSError), open(os.path.join(state, "group")) as f:
        name = "lodge-" + f.read()
        return sorted({pid.strip() for procs in glob.glob(f"/sys/fs/cgroup/**/{name}/**/cgroup.procs", recursive=True)
                       for pid in _lines(procs)})
    return []


def _lines(path):
    with contextlib.suppress(OSError), open(path) as f:
        return f.readlines()
    return []


def remove_home(home):
    """Remove the home and the keeper's state for it. What still runs there would run for ever, unknown to everybody."""
    states = []
    for place in (home, os.path.join(home, "keeper")):
        if os.path.isdir(place):
            states.append(run_dir(place))
    for state in [d for s in states for d in glob.glob(f"{s}/*")]:
        assert wait_for(lambda d=state: not _running_in(d), 60), \
            f"{state}: {[(pid, words_of(pid)) for pid in _running_in(state)]} still run; end them before the home is removed"
    for state in states:
        shutil.rmtree(state, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def mounted(where, *how):
    subprocess.run(["mount", *how, where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def fill(path):
    """Write until the disk is full."""
    with open(path, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(b"x" * 4096)


# ---- terminals --------------------------------------------------------------------------------


def in_terminal(act, feed=(), seconds=120):
    """Call `act` in a new process with a controlling terminal; return its output and status. `feed` has pairs (text
    to wait for, bytes to type)."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(99)
    data, feed = b"", list(feed)
    end = time.monotonic() + seconds
    with contextlib.suppress(OSError):  # reading fails with EIO at the end
        while time.monotonic() < end:
            if feed and feed[0][0] in data:
                os.write(fd, feed.pop(0)[1])
            if select.select([fd], [], [], 0.2)[0]:
                data += os.read(fd, 65536)
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return data, os.waitstatus_to_exitcode(status)
