#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The usual programs work inside a sandbox: each is started by `lodge run` and prints TAP.

LODGE_BUILD is the build to test (default build). A program the host does not have below /usr is
skipped by name. apt needs a template with a root inside: give its root file system as a tar file by
LODGE_APT_TAR, or LODGE_SLOW=1 to have it made by mmdebstrap.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import machine  # noqa: E402
from harness import Result, Tap  # noqa: E402

MORE = ["--memory", "2G", "--pids", "512"]

PROGRAMS = [
    # name, programs it needs, options, bash text, what it must print
    ("bash pipeline", "bash", [],
     "for i in 1 2 3; do echo $i; done | sort -r | tr '\\n' ' ' | sed 's/ /-/g'", "3-2-1-"),
    ("bash process substitution", "bash", [], "diff <(echo a) <(echo a) && echo same", "same"),
    ("bash here document", "bash", [], "cat <<< hello", "hello"),
    ("/dev/stdout and /dev/stderr", "bash", [],
     "echo out > /dev/stdout; echo err > /dev/stderr; echo fd > /proc/self/fd/1", "out\nfd"),
    ("bash jobs", "bash", [], "sleep 0.1 & wait $! && echo waited", "waited"),
    ("awk", "awk", [], "seq 10 | awk '{ s += $1 } END { print s }'", "55"),
    ("perl", "perl", [], "perl -e 'print join(\",\", map { $_ ** 2 } 1..4)'", "1,4,9,16"),
    ("perl fork", "perl", [], "perl -e 'my $p = fork; exit 3 if !$p; waitpid $p, 0; print $? >> 8'",
     "3"),
    ("gcc", "gcc", MORE,
     "cd /tmp && echo 'int main(void){__builtin_printf(\"built\");}' > a.c && gcc -O2 a.c && ./a.out",
     "built"),
    ("gcc with threads", "gcc", MORE,
     "cd /tmp && printf '#include <pthread.h>\\nstatic void *f(void *a){return a;}\\n"
     "int main(void){pthread_t t;return pthread_create(&t,0,f,0)||pthread_join(t,0);}' > t.c &&"
     " gcc -pthread t.c -o t && ./t && echo joined", "joined"),
    ("make", "make gcc", MORE,
     "cd /tmp && printf 'a: a.c\\n\\t$(CC) -o $@ $<\\n' > Makefile && echo 'int main(){}' > a.c &&"
     " make -s && ./a && echo made", "made"),
    ("python3", "python3", [], "/usr/bin/python3 -c 'print(sum(range(10)))'", "45"),
    ("python3 threads", "python3", [],
     "/usr/bin/python3 -c 'import threading; r = []\n"
     "t = [threading.Thread(target=r.append, args=(i,)) for i in range(8)]\n"
     "[x.start() for x in t]; [x.join() for x in t]; print(len(r))'", "8"),
    ("python3 subprocess", "python3", [],
     "/usr/bin/python3 -c 'import subprocess; "
     "print(subprocess.run([\"echo\", \"sub\"], capture_output=True, text=True).stdout.strip())'",
     "sub"),
    ("python3 multiprocessing", "python3", [],
     "cd /tmp && printf 'import multiprocessing as m\\ndef f(x):\\n    return x * x\\n"
     "if __name__ == \"__main__\":\\n    with m.Pool(2) as p:\\n        print(sum(p.map(f, range(4))))\\n"
     "    s = m.Semaphore(1)\\n    s.acquire(); s.release(); print(m.Queue() is not None)\\n' > p.py &&"
     " /usr/bin/python3 p.py", "14\nTrue"),
    ("python3 asyncio", "python3", [],
     "/usr/bin/python3 -c 'import asyncio\n"
     "async def f():\n    p = await asyncio.create_subprocess_exec(\"true\")\n    return await p.wait()\n"
     "print(asyncio.run(f()))'", "0"),
    ("python3 sqlite3", "python3", [],
     "cd /tmp && /usr/bin/python3 -c 'import sqlite3\nd = sqlite3.connect(\"x.db\")\n"
     "d.execute(\"pragma journal_mode=wal\"); d.execute(\"create table t(a)\")\n"
     "d.execute(\"insert into t values (7)\"); d.commit()\n"
     "print(d.execute(\"select a from t\").fetchone()[0])'", "7"),
    ("python3 ssl", "python3", [],
     "/usr/bin/python3 -c 'import ssl, hashlib; ssl.create_default_context(); print(\"ssl\")'", "ssl"),
    ("python3 loopback", "python3", [],
     "/usr/bin/python3 -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 80))\n"
     "c = socket.create_connection(s.getsockname()); a, _ = s.accept(); c.sendall(b\"hi\")\n"
     "print(a.recv(2).decode())'", "hi"),
    ("python3 shared memory", "python3", [],
     "/usr/bin/python3 -c 'from multiprocessing import shared_memory as s\n"
     "m = s.SharedMemory(create=True, size=64); m.buf[0] = 7; print(m.buf[0]); m.close(); m.unlink()'",
     "7"),
    ("python3 venv", "python3", MORE,
     "cd /tmp && /usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'print(\"venv\")'", "venv"),
    ("node", "node", MORE, "node -e 'console.log([1, 2].map(x => x * 2).join())'", "2,4"),
    ("node child_process", "node", MORE,
     "node -e 'require(\"child_process\").exec(\"echo child\", (e, o) => process.stdout.write(o))'",
     "child"),
    ("node worker_threads", "node", MORE,
     "node -e 'const { Worker } = require(\"worker_threads\"); new Worker("
     "\"require(\\\"worker_threads\\\").parentPort.postMessage(5)\", { eval: true })"
     ".on(\"message\", m => console.log(m))'", "5"),
    ("node http", "node", MORE,
     "node -e 'const h = require(\"http\"); const s = h.createServer((q, r) => r.end(\"served\"))"
     ".listen(0, \"127.0.0.1\", () => h.get({ host: \"127.0.0.1\", port: s.address().port }, r => "
     "r.on(\"data\", d => { console.log(String(d)); s.close(); })))'", "served"),
    ("git", "git", [],
     "cd /tmp && git init -q r && cd r && git config user.email a@b && git config user.name a &&"
     " echo x > f && git add f && git commit -qm first && git log --format=%s", "first"),
    ("git clone", "git", [],
     "cd /tmp && git init -q r && cd r && git -c user.email=a@b -c user.name=a commit -q "
     "--allow-empty -m one && git clone -q /tmp/r /tmp/c && git -C /tmp/c log --format=%s", "one"),
    ("tar", "tar gzip", [],
     "cd /tmp && mkdir d && echo x > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f",
     "x"),
    ("find and xargs", "find xargs", [],
     "cd /tmp && touch a b c && find . -type f -print0 | xargs -0 -P2 -n1 echo | sort | tr -d '\\n'",
     "./a./b./c"),
    ("javac and java", "javac java", MORE,
     "cd /tmp && echo 'class H { public static void main(String[] a) throws Exception { Thread t = "
     "new Thread(() -> System.out.println(\"jvm\")); t.start(); t.join(); } }' > H.java &&"
     " javac H.java && java -Xmx256m H", "jvm"),
    ("go build", "go", MORE,
     "mkdir -p /tmp/g && cd /tmp/g && export HOME=/tmp GOFLAGS=-mod=mod GOCACHE=/tmp/c GOPATH=/tmp/p &&"
     " printf 'package main\\nimport \"fmt\"\\nfunc main() { c := make(chan int); "
     "go func() { c <- 6 }(); fmt.Println(<-c) }\\n' > m.go && go mod init g 2>/dev/null &&"
     " go build -o m . && ./m", "6"),
    ("strace on a child", "strace", [],
     "strace -f -o /tmp/s sh -c 'cat /dev/null' && grep -q execve /tmp/s && echo traced", "traced"),
    ("gdb on a child", "gdb", MORE,
     "gdb -nx -batch -ex 'break main' -ex run -ex 'info registers rip' /bin/true 2>&1 |"
     " grep -Eq 'rip|exited normally' && echo debugged", "debugged"),
    ("script with a terminal", "script", [],
     "script -qec 'test -t 0 && tty | cut -d/ -f1-3' /dev/null | tr -d '\\r'", "/dev/pts"),
    ("tmux", "tmux", [],
     "export LC_ALL=C.UTF-8; tmux -L x new-session -d 'echo in-tmux > /tmp/o; sleep 0.2' && sleep 1;"
     " cat /tmp/o", "in-tmux"),
    ("ps", "ps", [], "ps -o comm= -p $$; true", "bash"),
    ("ping oneself", "ping", [], "ping -c1 -W1 127.0.0.1 > /dev/null && echo answered", "answered"),
    ("flock and mkfifo", "flock mkfifo", [],
     "cd /tmp && mkfifo p && (echo through > p &) && flock l cat p", "through"),
    ("umask and modes", "stat", [],
     "cd /tmp && umask 027 && touch f && chmod u+x f && stat -c %a f", "740"),
]


class Runner:
    def __init__(self, binary, home):
        self.binary, self.home = binary, home

    def run(self, options, command, seconds=180):
        env = {"PATH": os.environ.get("PATH", "/usr/bin"), "LODGE_HOME": self.home}
        if "HOME" in os.environ:
            env["HOME"] = os.environ["HOME"]
        try:
            r = subprocess.run([self.binary, "run", *options, "--", *command], env=env, timeout=seconds,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            return Result(124, "", f"no end after {seconds} s")
        return Result(r.returncode, r.stdout, r.stderr)


def missing(names):
    for name in names.split():
        where = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin")
        if not where or not os.path.realpath(where).startswith("/usr/"):
            return name
    return None


def run_programs(tap, runner):
    for name, needs, options, text, want in PROGRAMS:
        absent = missing(needs)
        if absent:
            tap.skip(name, f"the host has no {absent} below /usr")
            continue
        r = runner.run([*options, "--timeout", "120s"], ["bash", "-c", text])
        good = r.code == 0 and r.out.strip() == want
        tap.ok(good, name, f"status {r.code}, printed {r.out.strip()[-200:]!r}, {r.err.strip()[-300:]!r}")


def apt_template(tap, runner, directory):
    """The name of a template with apt and the root class, or None after a skip."""
    tar = os.environ.get("LODGE_APT_TAR")
    if not tar and os.environ.get("LODGE_SLOW") == "1" and shutil.which("mmdebstrap"):
        tar = os.path.join(directory, "debian.tar")
        r = subprocess.run(["mmdebstrap", "--variant=apt", "bookworm", tar], capture_output=True)
        if r.returncode != 0:
            tap.skip("apt in a template with a root", "mmdebstrap failed (no mirror?)")
            return None
    if not tar or not os.path.exists(tar):
        tap.skip("apt in a template with a root", "neither LODGE_APT_TAR nor LODGE_SLOW=1 is given")
        return None
    env = dict(os.environ, LODGE_HOME=runner.home)
    r = subprocess.run([runner.binary, "template", "add", "apt-test", tar, "--root"], env=env,
                       capture_output=True, text=True)
    if r.returncode != 0:
        tap.ok(False, "apt in a template with a root", r.stderr.strip())
        return None
    return "apt-test"


def run_apt(tap, runner, directory):
    template = apt_template(tap, runner, directory)
    if not template:
        return
    # no network inside: dpkg and apt's own methods with a repository of files
    for name, text, want in (
            ("apt lists its packages", "apt list --installed 2>/dev/null | grep -c ^apt/", "1"),
            ("dpkg installs a package", "cd /tmp && mkdir -p p/DEBIAN p/opt && printf 'Package: lodge-x\\n"
             "Version: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: x\\n' > p/DEBIAN/control &&"
             " echo hi > p/opt/x && dpkg-deb -b p x.deb >/dev/null && apt-get install -qqy ./x.deb "
             ">/dev/null 2>&1; cat /opt/x", "hi"),
            ("chown and su", "touch /tmp/f && chown 1:1 /tmp/f && su -s /bin/sh daemon -c 'id -u'", "1")):
        r = runner.run(["--template", template, "--root", *MORE], ["sh", "-c", text])
        tap.ok(r.code == 0 and r.out.strip() == want, name,
               f"status {r.code}, printed {r.out.strip()[-200:]!r}, {r.err.strip()[-300:]!r}")


def test(tap, binary, home, directory):
    runner = Runner(binary, home)
    r = runner.run([], ["true"])
    if r.code != 0:
        tap.bail(f"no sandbox can be had: {r.why()}")
    run_programs(tap, runner)
    run_apt(tap, runner, directory)


def main():
    binary = os.path.join(machine.build(), "lodge")
    tap = Tap()
    if not os.access(binary, os.X_OK):
        tap.bail(f"{binary} is not there")
    directory = tempfile.mkdtemp(prefix="lodge-programs-")
    try:
        home = os.path.join(directory, "home")
        os.mkdir(home, 0o700)
        test(tap, binary, home, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
