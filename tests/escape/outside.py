# SPDX-License-Identifier: Apache-2.0
"""Checks from the host: ids, PID 1, surviving processes, isolation of two sandboxes."""
import fcntl
import os
import signal
import stat
import subprocess
from dataclasses import dataclass
from typing import Callable, Optional

from harness import BROKEN, HELD, UNJUDGED, stop
from machine import wait_for

SPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time")
INIT_CAPS = 1 << 5 | 1 << 6 | 1 << 7  # kill, setgid, setuid


@dataclass
class Check:
    name: str
    holds: str
    run: Callable
    weaken: Optional[str] = None
    nofail: Optional[str] = None
    root: bool = False  # also for the root class


def broken(text):
    return BROKEN, text


held = (HELD, "")


# ---- processes of a sandbox, as the host sees them ------------------------------------------------

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def marked(mark):
    """Processes inside that have the mark, without the lodge that started them."""
    found = []
    for pid in pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words and words[0].endswith(b"escape-probe"):
            found.append(pid)
    return found


def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def init_of(pid):
    """PID 1 of the sandbox this process is in."""
    for other in pids():
        try:
            if (namespace(other, "pid") == namespace(pid, "pid")
                    and status(other)["NSpid"].split()[-1] == "1"
                    and len(status(other)["NSpid"].split()) > 1):
                return other
        except OSError:
            continue
    # weakened: without its own namespace, so it is recognized by its name
    for other in pids():
        try:
            if status(other)["Name"] == "lodge-init" or status(pid)["PPid"] == str(other):
                return other
        except OSError:
            continue
    raise RuntimeError("the sandbox has no PID 1")


class Held:
    """A sandbox with one marked process that waits."""

    counter = 0

    def __init__(self, lodge, weaken, before=""):
        Held.counter += 1
        self.mark = f"mark-{os.getpid()}-{Held.counter}"
        probe = lodge.probe(weaken)
        command = [probe, "--hold", self.mark]
        if before:
            command = ["/bin/sh", "-c", f"{before}; exec {probe} --hold {self.mark}"]
        self.process = lodge.start([], command, weaken)
        self.pid = marked(self.mark)[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process)
        for pid in marked(self.mark):
            os.kill(pid, signal.SIGKILL)


# ---- the checks -----------------------------------------------------------------------------------

def id_range(pid, name="uid_map"):
    with open(f"/proc/{pid}/{name}") as f:
        return [tuple(int(n) for n in line.split()) for line in f]


def host_ids(lodge, host, weaken):
    if os.geteuid() != 0:
        return UNJUDGED, "only root gives every sandbox a range of its own"
    with Held(lodge, weaken) as box:
        for pid in (box.pid, init_of(box.pid)):
            for line in ("Uid", "Gid", "Groups"):
                for number in status(pid).get(line, "").split():
                    if int(number) < 65536:
                        return broken(f"{line} of process {pid} is {number} on the host")
    return held


def apart_ids(lodge, host, weaken):
    if os.geteuid() != 0:
        return UNJUDGED, "only root gives every sandbox a range of its own"
    with Held(lodge, weaken) as a, Held(lodge, weaken) as b:
        for _, first_a, count_a in id_range(a.pid):
            for _, first_b, count_b in id_range(b.pid):
                if first_a < first_b + count_b and first_b < first_a + count_a:
                    return broken(f"{first_a}+{count_a} and {first_b}+{count_b} overlap")
    return held


def init_filter(lodge, host, weaken):
    with Held(lodge, weaken) as box:
        mode = status(init_of(box.pid))["Seccomp"]
    return held if mode == "2" else broken(f"Seccomp of PID 1 is {mode}")


def init_caps(lodge, host, weaken):
    with Held(lodge, weaken) as box:
        s = status(init_of(box.pid))
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(s[name], 16) & ~INIT_CAPS:
            return broken(f"{name} of PID 1 is {s[name]}")
    return held if int(s["CapBnd"], 16) == 0 else broken(f"CapBnd of PID 1 is {s['CapBnd']}")


def init_no_new_privs(lodge, host, weaken):
    with Held(lodge, weaken) as box:
        value = status(init_of(box.pid))["NoNewPrivs"]
    return held if value == "1" else broken("no_new_privs of PID 1 is 0")


def init_environment(lodge, host, weaken):
    with Held(lodge, weaken) as box:
        with open(f"/proc/{init_of(box.pid)}/environ", "rb") as f:
            text = f.read()
    return broken(f"PID 1 has an environment of {len(text)} bytes") if text else held


def init_program(lodge, host, weaken):
    """CVE-2019-5736: what PID 1 runs must be no file of the host, and nothing that can be written."""
    with Held(lodge, weaken) as box:
        exe = f"/proc/{init_of(box.pid)}/exe"
        where = os.readlink(exe)
        if not where.startswith("/memfd:"):
            return broken(f"PID 1 runs {where}")
        try:
            fd = os.open(exe, os.O_RDWR)
        except OSError:
            return held
        try:
            os.pwrite(fd, b"x", 0)
        except OSError:
            return held
        finally:
            os.close(fd)
    return broken("the program of PID 1 was written")


def init_dumpable(lodge, host, weaken):
    """The /proc files of a non-dumpable process belong to root of its namespace, not to its own id."""
    with Held(lodge, weaken) as box:
        pid = init_of(box.pid)
        owner = os.stat(f"/proc/{pid}/environ").st_uid
        own = int(status(pid)["Uid"].split()[0])
        roots = [outside for inside, outside, _ in id_range(pid) if inside == 0]
    if os.geteuid() != 0 and roots:
        return UNJUDGED, "lodge-init of an ordinary user is the root of its namespace itself"
    return broken("PID 1 is dumpable") if owner == own else held


def init_descriptors(lodge, host, weaken):
    """PID 1 has no descriptor through which files of the host or another sandbox could be reached."""
    with Held(lodge, weaken) as box:
        pid = init_of(box.pid)
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            try:
                st, where = os.stat(path), os.readlink(path)
            except OSError:
                continue
            if stat.S_ISBLK(st.st_mode):
                return broken(f"descriptor {name} of PID 1 is {where}")
            if where.startswith(host.dir) and not where.startswith(host.home):
                return broken(f"descriptor {name} of PID 1 is {where}")
    return held


def spaces_apart(lodge, host, weaken):
    with Held(lodge, weaken) as a, Held(lodge, weaken) as b:
        for kind in SPACES:
            theirs = [namespace(p, kind) for p in (a.pid, b.pid)]
            if theirs[0] == theirs[1]:
                return broken(f"two sandboxes share {theirs[0]}")
            if host.facts[f"NS:{kind}"] in theirs:
                return broken(f"a sandbox has the host's {kind} namespace")
            if namespace(init_of(a.pid), kind) != theirs[0]:
                return broken(f"PID 1 and its command differ in {kind}")
    return held


def mounts_alone(lodge, host, weaken):
    """Only the sandbox's processes are in its mount namespace; the keeper that created it is not."""
    with Held(lodge, weaken) as box:
        for pid in pids():
            try:
                if (namespace(pid, "mnt") == namespace(box.pid, "mnt")
                        and namespace(pid, "pid") != namespace(box.pid, "pid")):
                    return broken(f"{status(pid)['Name']} is in its mount namespace")
            except OSError:
                continue
    return held


def in_groups(lodge, host, weaken):
    if os.geteuid() != 0:
        return UNJUDGED, "an ordinary user has no control groups"

    def paths(pid):
        with open(f"/proc/{pid}/cgroup") as f:
            return {line.split(":")[1]: line.rstrip("\n").split(":", 2)[2] for line in f}
    with Held(lodge, weaken) as box:
        inside, outside = paths(box.pid), paths(os.getpid())
    limited = [name for name in ("memory", "pids") if name in inside] or [""]
    for name in limited:
        if inside[name] == outside[name]:
            return broken(f"the command is in the runner's own {name or 'v2'} group")
    return held


def survivors(how):
    def run(lodge, host, weaken):
        Held.counter += 1
        mark = f"mark-{os.getpid()}-{Held.counter}"
        probe = lodge.probe(weaken)
        leave = f"{probe} --daemon {mark}; echo left; "
        if how == "killed":
            p = lodge.start([], ["/bin/sh", "-c", leave + "sleep 600"], weaken)
            wait_for(lambda: marked(mark), 120)
            p.kill()
            p.wait()
            stop(p)
        else:
            options = ["--timeout", "1s"] if how == "timeout" else []
            lodge.command(options, ["/bin/sh", "-c", leave + ("sleep 60" if options else "true")],
                          weaken, seconds=30)
        seconds = 5 if weaken else 120
        gone = wait_for(lambda: not marked(mark), seconds)
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
        return held if gone else broken(f"a process was alive {seconds} s later")
    return run


def apart_files(lodge, host, weaken):
    Held.counter += 1
    name = f"lodge-escape-{os.getpid()}-{Held.counter}"
    places = ("/tmp", "/dev/shm", "/var/tmp")
    before = "; ".join(f"echo mine > {d}/{name}" for d in places)
    look = " || ".join(f"test -e {d}/{name}" for d in places)
    try:
        with Held(lodge, weaken, before):
            r = lodge.command([], ["/bin/sh", "-c", f"if {look}; then echo seen; fi"], weaken)
        outside = [d for d in places if os.path.exists(f"{d}/{name}")]
    finally:
        for d in places:
            if os.path.exists(f"{d}/{name}"):
                os.unlink(f"{d}/{name}")
    if r.code != 0:
        raise RuntimeError(r.why())
    if outside:
        return broken(f"a file of one sandbox is in the host's {outside[0]}")
    return broken("a file of one sandbox is seen in another") if "seen" in r.out else held


LISTEN = """
import socket, sys, time
a = socket.socket(socket.AF_UNIX); a.bind("\\0%s"); a.listen()
t = socket.socket(); t.bind(("127.0.0.1", %d)); t.listen()
print("listening", flush=True); time.sleep(60)
"""
CONNECT = """
import socket
for s, where in ((socket.socket(socket.AF_UNIX), "\\0%s"), (socket.socket(), ("127.0.0.1", %d))):
    try:
        s.connect(where); print("reached", where)
    except OSError:
        pass
"""


def apart_network(lodge, host, weaken):
    where = (f"lodge-apart-{os.getpid()}", 20000 + os.getpid() % 20000)
    python = "/usr/bin/python3"
    if not os.path.exists(python):
        return UNJUDGED, f"the host has no {python}"
    p = lodge.start([], [python, "-c", LISTEN % where], weaken)
    try:
        r = lodge.command([], [python, "-c", CONNECT % where], weaken)
    finally:
        stop(p)
    return broken(r.out.strip()) if "reached" in r.out else held


WATCH = """
import ctypes, fcntl, os, select
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
libc.inotify_add_watch(fd, b"/usr/bin", 0x20)
lock = os.open("/usr/bin/%s", os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
select.select([fd], [], [], 0.2)
try:
    os.read(fd, 65536)
except OSError:
    pass
print("watching", flush=True)
os.read(0, 1)  # the end of the input: the host has acted, and an event is queued before the call returns
try:
    seen = b"%s" in os.read(fd, 65536)
except OSError:
    seen = False
print("seen" if seen else "nothing", flush=True)
"""
SHARED = "factor"  # a program below /usr that no other test uses


def beside_watcher(lodge, weaken, act):
    """Do something on the host while a sandbox watches and locks a program of /usr; return what it saw."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or not os.path.exists(f"/usr/bin/{SHARED}"):
        raise RuntimeError("the host lacks python3 or factor")
    p = lodge.start([], [python, "-c", WATCH % (SHARED, SHARED)], weaken, subprocess.PIPE)
    try:
        result = act()
        p.stdin.close()
        return result, p.stdout.read()
    finally:
        p.stdin.close()
        stop(p)


def watches(lodge, host, weaken):
    """Files may be shared with the host, but a guest must not see what the host does with them."""
    def act():
        with open(f"/usr/bin/{SHARED}", "rb"):
            pass
    _, seen = beside_watcher(lodge, weaken, act)
    return broken("a guest sees which programs the host runs (inotify)") if "seen" in seen else held


def locks(lodge, host, weaken):
    """A lock taken inside blocks no process outside and cannot be used to communicate between sandboxes."""
    def act():
        with open(f"/usr/bin/{SHARED}", "rb") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False
    locked, _ = beside_watcher(lodge, weaken, act)
    return broken("a guest locks a file of the host (flock)") if locked else held


def working_directory(lodge, host, weaken):
    """CVE-2024-21626 and F1: a directory chosen by the caller is never outside."""
    option = next((o for o in ("--cwd", "--workdir") if o in lodge.options), None)
    if not option:
        return UNJUDGED, "lodge run has no option for the working directory"
    places = [f"/proc/self/fd/{n}" for n in range(0, 16)] + [
        "/proc/self/fd/3/../../../../..", "/proc/1/root", "/proc/1/cwd", "/proc/self/cwd",
        "/proc/thread-self/root/../../..", "../../../../../..", "/../../../../..", "/dev/fd/4"]
    for place in places:
        r = lodge.run([option, place], ["--run", "files-cwd"], weaken)
        if r.out.startswith(f"files-cwd\t{BROKEN}\t"):
            return broken(f"{place}: {r.out.strip()}")
    return held


def users(lodge, host, weaken):
    """Neither lodge-init's own id nor root can be requested."""
    if "--user" not in lodge.options:
        return UNJUDGED, "lodge run has no option for the user"
    for user in ("65530", "65530:65530", "1000:65530", "4294967295", "-1", "65536"):
        r = lodge.run(["--user", user], ["--ids"], weaken)
        if r.code == 0:
            return broken(f"--user {user} was taken: {r.out.strip()}")
    r = lodge.run(["--user", "0"], ["--ids"], weaken)
    if r.code == 0 and not r.out.strip().endswith("caps 0"):
        return broken(f"--user 0 gives capabilities: {r.out.strip()}")
    return held


def links_in_dir(lodge, host, weaken):
    """Only the guest follows a link in a shared directory, inside the sandbox."""
    link = os.path.join(host.probe_dir, "way-out")
    os.symlink(host.facts["CANARY"], link)
    try:
        r = lodge.command([], ["/bin/cat", "/probe/way-out" if lodge.probe(weaken)[1] == "p"
                               else link], weaken)
    finally:
        os.unlink(link)
    return broken("the canary was read through it") if host.facts["TOKEN"] in r.out else held


CHECKS = [
    Check("outside-ids", "every process inside has an id of its own range", host_ids,
          "userns,cgroup", root=True),
    Check("outside-ids-apart", "two sandboxes share no id", apart_ids, "userns,cgroup", root=True),
    Check("outside-init-filter", "PID 1 is under the filter, too", init_filter,
          "seccomp", root=True),
    Check("outside-init-caps", "PID 1 has kill, setuid and setgid at most", init_caps, "caps"),
    Check("outside-init-nnp", "PID 1 has no_new_privs", init_no_new_privs, "nnp"),
    Check("outside-init-environment", "PID 1 has no environment", init_environment,
          "env", root=True),
    Check("outside-init-program", "PID 1 runs sealed memory, no file", init_program,
          nofail="it is never run from a file, whatever is left out", root=True),
    Check("outside-init-dumpable", "PID 1 is not dumpable", init_dumpable, "dumpable", root=True),
    Check("outside-init-descriptors", "PID 1 holds no descriptor of the host's files",
          init_descriptors,
          nofail="the keeper's descriptors close with exec from birth; the sweep is a second net"),
    Check("outside-namespaces", "namespaces are not shared with other processes", spaces_apart,
          "ipcns", root=True),
    Check("outside-mount-namespace", "no other process is in the mount namespace", mounts_alone,
          "mountns", root=True),
    Check("outside-groups", "the command is in control groups of its own", in_groups,
          "cgroup", root=True),
    Check("outside-survivors-end", "nothing survives the sandbox", survivors("end"),
          "pidns,cgroup", root=True),
    Check("outside-survivors-timeout", "nothing survives a time-out", survivors("timeout"),
          nofail="without namespace and groups lodge-init still finds the tree by its parents",
          root=True),
    Check("outside-survivors-killed", "nothing survives a killed caller", survivors("killed"),
          "pidns,cgroup", root=True),
    Check("outside-files-apart", "two sandboxes share no temporary files", apart_files,
          "mountns", root=True),
    Check("outside-network-apart", "two sandboxes share no network", apart_network,
          "netns", root=True),
    Check("outside-cwd", "no working directory lies outside", working_directory,
          "mountns", root=True),
    Check("outside-watches", "a guest does not see what the host does with shared files", watches,
          "mountns", root=True),
    Check("outside-locks", "a guest does not lock files of the host", locks, "mountns", root=True),
    Check("outside-users", "lodge-init's id cannot be asked for", users,
          nofail="a refused argument: no wall that could be left out"),
    Check("outside-links", "a link in a shared directory does not lead out", links_in_dir,
          "mountns", root=True),
]
