# SPDX-License-Identifier: Apache-2.0
"""Helpers of all suites: build directory, processes, mounts, terminals, waiting."""
import contextlib
import os
import pty
import select
import shutil
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


def with_words(home, *programs):
    """Processes of these programs with a path at or below `home` on their command line."""
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                program, *words = os.fsdecode(f.read()).split("\0")
            if os.path.basename(program) in programs and any(f"{w}/".startswith(f"{home}/") for w in words):
                found.append(pid)
    return found


def keepers_of(home):
    """Includes keepers whose lodged has exited."""
    return with_words(home, "lodge-keeper")


# ---- files ------------------------------------------------------------------------------------


def run_dir(home):
    """The state directory of the keeper that root started for this home."""
    st = os.stat(home)
    return f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}"


def remove_home(home):
    """Remove the home and the keeper's state for it; nothing may be running there."""
    for place in (home, os.path.join(home, "keeper")):
        if os.path.isdir(place):
            shutil.rmtree(run_dir(place), ignore_errors=True)
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
