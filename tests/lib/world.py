# SPDX-License-Identifier: Apache-2.0
"""One lodge home, the processes in it, and what they leave on the machine.

The test process becomes the reaper of everything below it, so that "our processes" is a matter of
descent: other sandboxes on the machine are neither seen nor touched."""
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

import machine
from machine import SOURCE, cgroup_roots, children, descendants, name_of, stat_of, wait_for  # noqa: F401: re-exported

BUILD = machine.build("hooks")
LODGE = os.path.join(BUILD, "lodge")
KEEPER = os.path.join(BUILD, "lodge-keeper")
APART = bool(os.environ.get("LODGE_APART"))  # other runs' cgroups and mounts are not visible
ANSWER_SECONDS = 120
MARK = "LODGE_TEST_MARK"  # in the environment of every guest command
COUNTER = "i=0; while :; do echo $((i++)); sleep 0.02; done"

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

_known = set()  # children that a Popen waits for


# ---- processes --------------------------------------------------------------------------------


def reap():
    """Reap orphans that became children of this process, but not children that have a Popen."""
    for pid, state in descendants().items():
        if state == "Z" and pid not in _known and (stat_of(pid) or ("", 0))[1] == os.getpid():
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass


def describe(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            line = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({name_of(pid)}) {line[:120]}"


INIT = "lodge-init"


def find(name, root=None):
    return sorted(p for p, st in descendants(root).items() if st != "Z" and name_of(p) == name)


def kill(pid, signo=signal.SIGKILL):
    """Kill a process if it is a descendant of this one."""
    if pid in descendants():
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            pass


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"status {self.code}, stdout {self.out[-600:]!r}, stderr {self.err[-600:]!r}"


# ---- the machine ------------------------------------------------------------------------------


def cgroups():
    """Every visible lodge-* cgroup: of the machine, or with tools/apart of this run only."""
    found = set()
    for root in cgroup_roots():
        for path, dirs, _ in os.walk(root):
            for d in list(dirs):
                if d.startswith("lodge-"):
                    found.add(os.path.join(path, d))
                    dirs.remove(d)
    return found


def groups_below(path):
    return [os.path.join(p, d) for p, dirs, _ in os.walk(path) for d in dirs]


def source_number(path, name):
    """The value of a constant in the C source."""
    with open(os.path.join(SOURCE, "src", path)) as f:
        return int(re.search(rf"\b{name} (?:= )?(\w+?)u?\b", f.read()).group(1), 0)


def sources(*layers):
    """Yield (path, text) of every C file below these directories of src."""
    for layer in layers:
        for path, _, names in sorted(os.walk(os.path.join(SOURCE, "src", layer))):
            for name in sorted(names):
                if name.endswith(".c"):
                    with open(os.path.join(path, name)) as f:
                        yield os.path.relpath(os.path.join(path, name), os.path.join(SOURCE, "src")), f.read()


F_OFD_GETLK = 36


def id_range_is_locked(base):
    """Whether some process holds the lock of the id range that starts at `base`."""
    first = source_number("runtime/isolate/idmap.c", "FIRST_BASE")
    slot = (base - first) // source_number("runtime/isolate/idmap.h", "IDMAP_RANGE")
    with open("/run/lodge/ids", "rb+") as f:
        ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, slot, 1, 0)
        return struct.unpack("hhqqi4x", fcntl.fcntl(f, F_OFD_GETLK, ask))[0] != fcntl.F_UNLCK


def mounts():
    with open("/proc/self/mountinfo") as f:
        return set(f.read().splitlines())


def group_of(state):
    """The name of a keeper's cgroup, read from its state directory."""
    try:
        with open(os.path.join(state, "group")) as f:
            return "lodge-" + f.read()
    except OSError:
        return ""


class World:
    def __init__(self, uid=None, store=None):
        self.uid = uid
        base = tempfile.mkdtemp(prefix="lodge-test-")
        os.chmod(base, 0o755)
        self.base, self.home = base, os.path.join(base, "home")
        os.mkdir(self.home, 0o755)
        if store == "dir":  # like a host that cannot have a volume
            os.mkdir(os.path.join(self.home, "store"), 0o711)
        for d in (self.base, self.home):
            if uid:
                os.chown(d, uid, uid)
        self.before_mounts, self.before_cgroups = mounts(), cgroups()
        self.started, self.drivers = [], []

    # -- running

    def env(self, crash=None):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.base,
               "LODGE_HOME": self.home, "TERM": "dumb"}
        if crash:
            env["LODGE_CRASH_AT"] = crash
        return env

    def argv(self, options, command):
        return [LODGE, "run", "--env", f"{MARK}={os.path.basename(self.base)}", *options, "--",
                *command]

    def _as_user(self):
        if not self.uid:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def popen(self, argv, crash=None, **kw):
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
              "env": self.env(crash), "cwd": self.base, **self._as_user(), **kw}
        p = subprocess.Popen(argv, **kw)
        _known.add(p.pid)
        self.started.append(p)
        return p

    def start(self, options, command, crash=None, **kw):
        return self.popen(self.argv(options, command), crash, **kw)

    def finish(self, p, seconds=300, data=None):
        try:
            out, err = p.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise AssertionError(f"no end within {seconds} s: {out[-300:]!r} {err[-300:]!r}")
        finally:
            _known.discard(p.pid)
        code = 128 - p.returncode if p.returncode < 0 else p.returncode
        return Result(code, out.decode(errors="replace"), err.decode(errors="replace"))

    def run(self, options, command, crash=None, seconds=300, data=None):
        kw = {} if data is None else {"stdin": subprocess.PIPE}
        return self.finish(self.start(options, command, crash, **kw), seconds, data)

    def sh(self, options, text, **kw):
        return self.run(options, ["bash", "-c", text], **kw)

    def lodge(self, *arguments, seconds=300):
        return self.finish(self.popen([LODGE, *arguments]), seconds)

    # -- inspecting

    def run_dir(self):
        if self.uid:
            return os.path.join(self.home, "run")
        return machine.run_dir(self.home)

    def states(self):
        try:
            return sorted(n for n in os.listdir(self.run_dir()) if n not in ("mnt", "templates.lock"))
        except FileNotFoundError:
            return []

    def oneshots(self):
        return [n for n in self.states() if n.startswith("o-")]

    def group_name(self, state):
        return group_of(os.path.join(self.run_dir(), state))

    def base_of(self, box):
        """First host id of a sandbox of the daemon's keeper."""
        with open(os.path.join(self.run_dir(), "d", "sandboxes", box, "record")) as f:
            return int(re.search(r"^base (\d+)$", f.read(), re.M).group(1))

    def loops(self):
        found = []
        for d in os.listdir("/sys/block"):
            try:
                with open(f"/sys/block/{d}/loop/backing_file") as f:
                    if f.read().startswith(self.home + "/"):
                        found.append(f"loop device {d} on the volume")
            except OSError:
                pass
        return found

    def volume(self, keeper_pid):
        """Entries of the volume, read through the mount namespace of a keeper that uses it."""
        try:
            return sorted(os.listdir(f"/proc/{keeper_pid}/root{self.run_dir()}/mnt/vol"))
        except OSError:
            return []

    def store(self):
        """Entries of the directory store, if there is one."""
        try:
            return sorted(os.listdir(os.path.join(self.home, "store")))
        except FileNotFoundError:
            return []

    def _left_processes(self, allowed):
        """Descendants that still run, except the allowed processes and their descendants."""
        reap()
        fine = set(allowed).union(*(descendants(p) for p in allowed)) if allowed else set()
        return [describe(p) for p, state in descendants().items()
                if p not in fine and p not in _known and state != "Z"]

    def _may_stay(self, group, root, state, keep):
        """Whether a cgroup belongs to a sandbox in `keep`, or is an empty one that a running keeper created in
        advance."""
        top = group.split("/")[0]
        if state not in keep:
            return False
        for box in keep[state]:
            try:
                with open(os.path.join(self.run_dir(), state, "sandboxes", box, "record")) as f:
                    if f"\ngroup {top}\n" in f.read():
                        return True
            except OSError:
                pass
        try:
            with open(os.path.join(root, group, "cgroup.procs")) as f:
                return top.startswith("g.") and not f.read()
        except OSError:
            return True  # removed in the meantime

    def _left_groups(self, keep):
        """Cgroups of our states, and cgroups of this run that belong to no state directory."""
        ours, others = {}, set()
        groups = cgroups()  # before the directories: a cgroup never outlives its state directory
        for n in self.states():
            ours[self.group_name(n)] = n
        try:
            homes = [os.path.join("/run/lodge", h) for h in os.listdir("/run/lodge")]
        except FileNotFoundError:
            homes = []
        for h in homes:
            try:
                others.update(group_of(os.path.join(h, s)) for s in os.listdir(h))
            except (NotADirectoryError, FileNotFoundError):
                pass
        left = []
        for g in groups:
            name = os.path.basename(g)
            if name in ours:
                if ours[name] not in keep:
                    left.append(f"cgroup {g}")
                left += [f"cgroup {x}" for x in groups_below(g)
                         if not self._may_stay(x[len(g) + 1:], g, ours[name], keep)]
            elif APART and name not in others and g not in self.before_cgroups:
                left.append(f"cgroup {g} without a state directory")
        return left

    def _left_directories(self, keep):
        left = []
        for state in self.states():
            if state not in keep and state != "d":
                left.append(f"directory {state}")
            for sub in ("sandboxes", "trash"):
                path = os.path.join(self.run_dir(), state, sub)
                try:
                    left += [f"directory {state}/{sub}/{n}" for n in os.listdir(path)
                             if n not in keep.get(state, ())]
                except FileNotFoundError:
                    pass
        return left

    def _left_mounts(self):
        """New mounts in our mount namespace; without tools/apart only those below our base."""
        new = mounts() - self.before_mounts
        return [f"mount {m}" for m in new if self.base in m or (APART and "lodge" in m)]

    def leftovers(self, allowed=(), keep=None, entries=()):
        """Everything left, as messages. `keep` maps a state to allowed ids and cgroups; `entries` are allowed in the
        store."""
        keep = keep or {}
        left = self._left_processes(set(allowed)) + self._left_directories(keep)
        left += self._left_groups(keep) + self._left_mounts()
        left += [f"store entry {n}" for n in self.store() if n not in entries]
        if not allowed:
            left += self.loops()
        return left

    def assert_clean(self, what="", seconds=60, **kw):
        left = []

        def clean():
            left[:] = self.leftovers(**kw)
            return not left
        assert wait_for(clean, seconds), f"{what}: left behind: " + "; ".join(left)

    def next_start(self, *options):
        """Run `lodge run` again; it must work and clean up after the processes that died."""
        r = self.run(options, ["echo", "next"])
        assert (r.code, r.out) == (0, "next\n"), f"the next start: {r}"

    # -- cleaning up

    def close(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
                p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                if f:
                    f.close()
            _known.discard(p.pid)
        wait_for(lambda: not self._left_processes(()), 120)
        for pid in descendants():  # left by a failed test
            kill(pid)
        wait_for(lambda: not self._left_processes(()), 120)
        run = None if self.uid else self.run_dir()
        if run and os.path.isdir(run):
            for g in [g for n in self.states() for g in cgroups()
                      if os.path.basename(g) == self.group_name(n)]:
                for path, dirs, _ in os.walk(g, topdown=False):
                    try:
                        os.rmdir(path)
                    except OSError:
                        pass
            shutil.rmtree(run, ignore_errors=True)
        wait_for(lambda: not self.loops(), 120)
        # shutil would recurse too deep for some of these trees
        subprocess.run(["rm", "-rf", "--", self.base], check=False)


# ---- an engine that can be killed -------------------------------------------------------------


def build_driver(directory):
    """The crash driver of this build, compiled now if the build has none."""
    ready = os.path.join(BUILD, "crash-driver")
    if os.access(ready, os.X_OK):
        return ready
    out = os.path.join(directory, "crash-driver")
    sources = [os.path.join(SOURCE, "tests", "crash", "driver.c")]
    for layer in ("sandbox", "wire", "base"):
        d = os.path.join(SOURCE, "src", layer)
        sources += sorted(os.path.join(d, f) for f in os.listdir(d) if f.endswith(".c"))
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O0", "-w", "-I",
                    os.path.join(SOURCE, "src"), "-o", out, *sources, "-ljansson"], check=True)
    os.chmod(out, 0o755)
    return out


class DriverError(Exception):
    pass


class Driver:
    """tests/crash/driver.c with its own keeper, like a daemon."""

    def __init__(self, world, program, crash=None):
        self.world = world
        self.crash = crash
        world.drivers.append(self)
        self.p = world.popen([program], crash, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.features = int(self.ask(f"keeper {world.home} {KEEPER}")[0])

    def ask(self, line):
        try:
            self.p.stdin.write(line.encode() + b"\n")
            self.p.stdin.flush()
        except BrokenPipeError:
            raise DriverError("the driver is gone")
        if not select.select([self.p.stdout], [], [], ANSWER_SECONDS)[0]:
            raise AssertionError(f"no answer to \"{line}\" within {ANSWER_SECONDS} s")
        answer = self.p.stdout.readline().decode().split()
        if not answer:
            raise DriverError("the driver is gone")
        if answer[0] != "ok":
            raise DriverError(" ".join(answer[1:]))
        return answer[1:]

    def run(self, box, text):
        """Run bash text; return (code, output)."""
        a = self.ask(f"run {box} {text}")
        return int(a[0]), bytes.fromhex(a[5] if len(a) > 5 else "").decode(errors="replace")

    def keeper_pid(self):
        found = find("lodge-keeper", self.p.pid)
        return found[0] if found else 0

    def keeper_is_alive(self):
        return self.keeper_pid() != 0

    def kill(self):
        """Kill the engine only, with SIGKILL."""
        self.p.kill()
        self._gone()

    def kill_keeper(self):
        pid = self.keeper_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not self.keeper_is_alive(), 120)

    def end(self):
        """End like a daemon on request: the sandboxes keep running."""
        self.p.stdin.close()
        self._gone()

    def is_alive(self):
        return self.p.poll() is None

    def _gone(self):
        try:
            self.p.wait(180)
        finally:
            _known.discard(self.p.pid)
        # its keeper exits when the socket closes; the next one may only start after that
        wait_for(lambda: not any(name_of(p) == "lodge-keeper" for p, s in descendants().items()
                                 if s != "Z"), 120)

    def allowed(self):
        return [self.p.pid, *descendants(self.p.pid)]


def read_log(path, offset):
    """Bytes of a ring log from `offset` on, and the offset of their end (wire/agent.h, struct agent_log)."""
    with open(path, "rb") as f:
        data = f.read()
    _, size, start, end = struct.unpack_from("<4Q", data)
    offset = max(offset, start)
    return bytes(data[4096 + o % size] for o in range(offset, end)), end


if sys.version_info < (3, 9):
    raise SystemExit("python 3.9 or later is needed")
