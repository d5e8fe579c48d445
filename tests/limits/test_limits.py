# SPDX-License-Identifier: Apache-2.0
"""Every limit is enforced, reported by name, and leaves the sandbox usable."""
import json
import os
import time

import pytest

from machine import with_time

MB = 1 << 20
STORES = ["memory", "disk"]


def py(text):
    return ["python3", "-c", text]


def js(world, options, command, seconds=300):
    r = world.run(["--json", *options], command, seconds=seconds)
    try:
        return json.loads(r.out), r
    except ValueError:
        raise AssertionError(f"no JSON: {r}")


def hit(world, options, text, seconds=300):
    """The names of the limits that a bash text hits."""
    j, r = js(world, options, ["bash", "-c", text], seconds)
    return j["limits"], j, r


# ---- memory -----------------------------------------------------------------------------------


def test_memory_bomb(world):
    r = world.run(["--memory", "64M"], py("x = bytearray(1 << 30); print('survived')"))
    assert r.code == 137, f"SIGKILL: {r}"
    assert r.out == "" and "lodge: LIMIT_MEMORY: out of memory (limit 64M)" in r.err, r


def test_memory_json(world):
    j, r = js(world, ["--memory", "64M"], py("x = bytearray(1 << 30)"))
    assert j["oom_killed"] and "LIMIT_MEMORY" in j["limits"], j
    assert j["signal"] == 9 and j["exit_code"] is None and r.code == 137, j


def test_memory_bomb_of_a_child(world):
    """The shell survives its child, and the hit is reported although the command succeeded."""
    text = "python3 -c 'x = bytearray(1 << 30)'; echo status $?; echo usable"
    hits, j, r = hit(world, ["--memory", "64M"], text)
    assert j["stdout"] == "status 137\nusable\n", j
    assert r.code == 0 and "LIMIT_MEMORY" in hits and j["oom_killed"], j


def test_memory_of_files(world):
    """Files in memory count, so a tmpfs does not bypass the limit."""
    text = "head -c 500M /dev/zero >/dev/shm/f; echo status $?; rm -f /dev/shm/f; echo usable"
    hits, j, _ = hit(world, ["--memory", "64M"], text)
    assert "status 0" not in j["stdout"], f"500M fitted into 64M: {j}"
    assert j["stdout"].endswith("usable\n") or "LIMIT_MEMORY" in hits, j


def test_a_full_shared_memory_leaves_room_for_commands(world):
    text = ("df -B1 --output=size /dev/shm | tail -1; head -c 500M /dev/zero >/dev/shm/f; echo status $?; "
            "ls /dev/shm; rm /dev/shm/f; echo usable")
    hits, j, _ = hit(world, ["--memory", "64M"], text)
    assert j["stdout"].strip() == f"{32 * MB}\nstatus 1\nf\nusable" and "No space left" in j["stderr"], j
    assert "LIMIT_MEMORY" not in hits, j


def test_memory_below_the_limit(world):
    hits, j, r = hit(world, ["--memory", "128M"], "python3 -c 'x = bytearray(60 << 20)'; echo $?")
    assert (hits, j["stdout"], r.code) == ([], "0\n", 0), j


# ---- processes --------------------------------------------------------------------------------


CROWD = """
import os, sys, time
for _ in range(30):
    try:
        if os.fork() == 0:
            time.sleep(3000)
            os._exit(0)
    except BlockingIOError:
        break
"""


def test_fork_bomb(world):
    """Forks are refused at the limit; the shell continues after the bomb, and the hit is reported."""
    text = (":(){ :|:& }; (:) 2>/dev/null; for i in $(seq 400); do sleep 0.1; "
            "(true) 2>/dev/null && break; done; echo usable")
    hits, j, r = hit(world, ["--pids", "40", "--timeout", "60s"], text)
    assert "LIMIT_PIDS" in hits, f"{j} {r}"


def test_forks_are_refused_and_the_sandbox_stays_usable(world):
    text = """
import os, time
kids = []
try:
    while len(kids) < 200:
        pid = os.fork()
        if pid == 0:
            time.sleep(3000)
            os._exit(0)
        kids.append(pid)
except BlockingIOError:
    print("EAGAIN", flush=True)
print(len(kids) <= 30, flush=True)
for k in kids:
    os.kill(k, 9)
    os.waitpid(k, 0)
os.system("echo usable")
"""
    j, r = js(world, ["--pids", "30"], py(text))
    assert j["stdout"] == "EAGAIN\nTrue\nusable\n", j
    assert "LIMIT_PIDS" in j["limits"] and r.code == 0, j


def test_pids_message(world):
    r = world.run(["--pids", "8"], py(CROWD + "sys.exit(3)"))
    assert r.code == 3 and "lodge: LIMIT_PIDS: process limit reached (8)" in r.err, r


# ---- disk -------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
def test_disk_full(world, store):
    """Writes fail with ENOSPC or EDQUOT; after a removal there is space again."""
    text = """
import errno, os
def fill(name):
    try:
        with open(name, "wb", buffering=0) as f:
            for _ in range(200):
                f.write(bytes(1 << 20))
            os.fsync(f.fileno())
        return "no end"
    except OSError as e:
        return errno.errorcode[e.errno]
print(fill("big") in ("ENOSPC", "EDQUOT"))
size = os.stat("big").st_size
print(size <= 20 << 20, size)
os.unlink("big")
with open("small", "wb") as f:
    f.write(bytes(4 << 20))
    f.flush()
    os.fsync(f.fileno())
print(os.stat("small").st_size == 4 << 20)
"""
    j, r = js(world, ["--store", store, "--disk", "20M", "--memory", "256M"], py(text))
    lines = j["stdout"].split("\n")
    assert lines[0] == "True" and lines[1].startswith("True") and lines[2] == "True", f"{j}"
    assert r.code == 0, j


@pytest.mark.parametrize("store", STORES)
def test_disk_full_is_named(world, store):
    hits, j, r = hit(world, ["--store", store, "--disk", "20M", "--memory", "256M"],
                     "dd if=/dev/zero of=big bs=1M count=100; sync big; exit 7")
    assert "LIMIT_DISK" in hits and r.code == 7, f"{j}"
    r = world.sh(["--store", store, "--disk", "20M", "--memory", "256M"],
                 "dd if=/dev/zero of=big bs=1M count=100; sync big; exit 7")
    assert r.code == 7 and "lodge: LIMIT_DISK: disk full (limit 20M)" in r.err, r


@pytest.mark.parametrize("store", STORES)
def test_every_writable_path_is_bounded(world, store):
    """No directory a guest may write to has more space than the sandbox."""
    text = """
import os
for d in ("/tmp", "/var/tmp", "/home/user", "/dev/shm", "/run", "/run/lock", "/mnt", "/opt"):
    name = os.path.join(d, "f")
    try:
        f = open(name, "wb", buffering=0)
    except OSError:
        continue
    n = 0
    try:
        while n < 400:
            f.write(bytes(1 << 20))
            n += 1
        os.fsync(f.fileno())
    except OSError:
        pass
    f.close()
    size = os.stat(name).st_size >> 20
    os.unlink(name)
    if size > 100:
        print(d, size)
print("done")
"""
    j, r = js(world, ["--store", store, "--disk", "24M", "--memory", "96M"], py(text))
    assert j["stdout"] == "done\n" or "LIMIT_MEMORY" in j["limits"], f"{j}"


def test_inodes(world):
    text = """
import errno, os
os.mkdir("d")
n = 0
try:
    while n < 5000:
        os.close(os.open(f"d/{n}", os.O_CREAT | os.O_WRONLY))
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno])
print(n < 500)
os.unlink("d/0")
open("again", "w").close()
print("usable")
"""
    j, r = js(world, ["--inodes", "500"], py(text))
    assert j["stdout"] == "ENOSPC\nTrue\nusable\n", j
    # still full at the end, so it is reported
    text = "i=0; while [ $i -lt 1000 ]; do : >f$((i++)) || exit 1; done"
    hits, j, r = hit(world, ["--inodes", "300"], text)
    assert r.code == 1 and "LIMIT_DISK" in hits, f"inodes run out: {hits} {r}"


def test_inodes_on_disk(world):
    """Small files count against the same quota as large ones."""
    text = """
import errno, os
os.mkdir("d")
n = 0
try:
    while n < 20000:
        with open(f"d/{n}", "wb") as f:
            f.write(b"x" * 1500)
        n += 1
        if n % 500 == 0:
            os.sync()
except OSError as e:
    print(errno.errorcode[e.errno])
print("end")
"""
    j, r = js(world, ["--store", "disk", "--disk", "8M"], py(text))
    assert j["stdout"].split("\n")[0] in ("ENOSPC", "EDQUOT"), f"{j}"


def test_file_size(world):
    r = world.sh(["--file-size", "1M"], "exec dd if=/dev/zero of=f bs=64k count=100 status=none")
    assert r.code == 128 + 25, f"SIGXFSZ: {r}"
    assert "lodge: LIMIT_FILE: file size limit reached (1M)" in r.err, r
    text = "dd if=/dev/zero of=f bs=64k count=100 status=none; wc -c <f; echo usable"
    r = world.sh(["--file-size", "1M"], text)
    assert r.out == f"{MB}\nusable\n" and r.code == 0, r


def test_open_files(world):
    text = """
import errno, os
n = 0
try:
    while n < 1000:
        os.open("/dev/null", os.O_RDONLY)
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno], 40 <= n <= 64)
"""
    r = world.run(["--open-files", "64"], py(text))
    assert (r.code, r.out) == (0, "EMFILE True\n"), r
    r = world.sh(["--open-files", "64"], "ulimit -n 65 2>/dev/null || echo refused; ulimit -n")
    assert r.out == "refused\n64\n", f"a guest raised its limit: {r}"


# ---- output -----------------------------------------------------------------------------------


def test_output_limit(world):
    hits, j, r = hit(world, ["--output", "64K"], "head -c 1000000 /dev/zero | tr '\\0' a; printf THE_END")
    assert "LIMIT_OUTPUT" in hits and j["truncated"], j
    assert j["stdout_bytes"] == 1000007 and j["stdout"].endswith("aTHE_END"), "the newest output must be kept"
    assert 60000 <= len(j["stdout"]) <= 65536 and r.code == 0, len(j["stdout"])


def test_output_is_at_most_a_quarter_of_the_memory(world):
    r = world.run(["--memory", "32M", "--output", "9M"], ["true"])
    assert r.code == 125 and r.err == "lodge: --output: must be at most 8M, a quarter of --memory (32M)\n", r
    r = world.run(["--output", "65M"], ["true"])
    assert r.code == 2 and "--output 65M: must be between 4K and 64M" in r.err, r
    for options in (["--output", "8M"], []):  # the default is as much
        hits, j, r = hit(world, ["--memory", "32M", *options], "head -c 9M /dev/zero | tr '\\0' a")
        assert "LIMIT_OUTPUT" in hits and len(j["stdout"]) == 8 << 20, (hits, r)


def test_output_is_complete_without_json(world):
    """The output is streamed, so nothing is dropped for a slow reader."""
    p = world.start([], ["bash", "-c", "head -c 20000000 /dev/zero; printf end"])
    time.sleep(0.3)  # its log is full by now, and the command waits
    r = world.finish(p)
    assert len(r.out) == 20000003 and r.out.endswith("end") and r.code == 0, len(r.out)


def test_output_to_a_closed_pipe(world):
    reader, writer = os.pipe()
    p = world.start([], ["yes"], stdout=writer)
    os.close(writer)
    os.read(reader, 10)
    os.close(reader)
    p.wait(120)
    code = p.returncode
    p.stdout = open(os.devnull, "rb")
    r = world.finish(p)
    assert code == 128 + 13, f"as a pipe does: {r}"


# ---- time -------------------------------------------------------------------------------------

ESCAPING = {
    "plain": "sleep 6000",
    "ignoring": "trap '' TERM INT HUP; while :; do sleep 1; done",
    "setsid": "setsid sleep 6000 & setsid bash -c 'trap \"\" TERM; sleep 6000' & wait",
    "double fork": "(setsid bash -c 'sleep 6000 & sleep 6000' &) ; sleep 6000",
    "stopped": "bash -c 'kill -STOP $$' & (setsid bash -c 'kill -STOP $$' &) ; kill -STOP $$",
    "holding pipes": "(setsid sleep 6000 &) ; exec >&-; sleep 6000",
}


@pytest.mark.parametrize("how", ESCAPING)
def test_time(world, how):
    def act(ms):
        r = world.sh(["--timeout", f"{ms}ms"], "echo before; " + ESCAPING[how])
        limit = "500 ms" if ms == 500 else ""
        assert r.code == 124 and f"lodge: TIMEOUT: timed out after {limit}" in r.err, f"{how}: {r}"
        return r

    r = with_time(act, lambda r: r.out)
    assert r.out == "before\n", f"{how}: what was written before is lost: {r}"


def test_time_json(world):
    def act(ms):
        j, r = js(world, ["--timeout", f"{ms}ms"], ["bash", "-c", "echo partial; echo e >&2; sleep 6000"])
        assert j["timed_out"] and j["limits"] == ["TIMEOUT"] and r.code == 124, j
        assert j["duration_ms"] >= ms - 50, j
        return j

    j = with_time(act, lambda j: j["stderr"])
    assert (j["stdout"], j["stderr"]) == ("partial\n", "e\n"), j


def test_a_remaining_child_does_not_delay_the_result(world):
    """A child holds stdout open after the shell has exited."""
    r = world.sh([], "setsid sleep 6000 & echo done")
    assert (r.code, r.out) == (0, "done\n"), r


# ---- processor --------------------------------------------------------------------------------

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def test_cpu_quota(world):
    j, r = js(world, ["--cpus", "0.2"], py(BURN))
    used = j["usage"]["cpu_ms"] / j["duration_ms"]
    assert j["usage"]["cpu_ms"] >= 350 and used < 0.4, f"limited to 0.2 cores, {used:.2f} used: {j}"


def test_cpu_quota_of_many(world):
    """The quota is for all processes together."""
    text = "for i in 1 2 3 4; do timeout 2 sh -c 'while :; do :; done' & done; wait"
    j, r = js(world, ["--cpus", "0.3"], ["bash", "-c", text])
    used = j["usage"]["cpu_ms"] / j["duration_ms"]
    assert 0 < used < 0.6, f"limited to 0.3 cores, {used:.2f} used: {j}"


# ---- usage ------------------------------------------------------------------------------------


def test_usage_is_plausible(world):
    text = ("import time\nx = bytearray(50 << 20)\n"
            "while time.process_time() < 0.5: pass")
    j, r = js(world, [], py(text))
    assert 400 <= j["usage"]["cpu_ms"] <= 3000, j
    assert 50 * MB <= j["usage"]["max_rss_bytes"] <= 200 * MB, j
    assert j["duration_ms"] >= 400, j
    j, r = js(world, [], ["true"])
    assert j["usage"]["cpu_ms"] < 300 and j["usage"]["max_rss_bytes"] < 50 * MB, j


def test_usage_counts_children(world):
    j, r = js(world, [], ["bash", "-c", "python3 -c 'import time\nwhile time.process_time() < 0.4: pass'"])
    assert 350 <= j["usage"]["cpu_ms"] <= 3000, j


# ---- side by side -----------------------------------------------------------------------------


def test_two_sandboxes_have_their_own_limits(world):
    """One exceeds memory and processes; the other may use more than the limits of the first."""
    bomb = world.start(["--json", "--memory", "48M", "--pids", "12"],
                       py(CROWD + "time.sleep(1); x = bytearray(1 << 30)"))
    text = """
import os, time
x = bytearray(100 << 20)
kids = []
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5)
        os._exit(0)
    kids.append(pid)
print(all(os.waitpid(k, 0)[1] == 0 for k in kids))
"""
    j, r = js(world, ["--memory", "300M", "--pids", "100"], py(text))
    assert j["stdout"] == "True\n" and j["limits"] == [], j
    b = json.loads(world.finish(bomb).out)
    assert "LIMIT_PIDS" in b["limits"] and "LIMIT_MEMORY" in b["limits"], b


# ---- messages of `lodge run` ------------------------------------------------------------------


@pytest.mark.parametrize("options, command, code, words", [
    ([], ["sh", "-c", "exit 42"], 42, ""),
    ([], ["sh", "-c", "kill -SEGV $$"], 128 + 11, ""),
    ([], ["/no/such/program"], 127, "lodge: /no/such/program: "),
    ([], ["no-such-program"], 127, "lodge: no-such-program: "),
    ([], ["/etc/passwd"], 126, "lodge: /etc/passwd: "),
    ([], ["/tmp"], 126, "lodge: /tmp: "),
    (["--memory", "1K"], ["true"], 2, "--memory"),
    (["--memory", "lots"], ["true"], 2, "--memory"),
    (["--cpus", "0"], ["true"], 2, "--cpus"),
    (["--cpus", "-1"], ["true"], 2, "--cpus"),
    (["--pids", "0"], ["true"], 2, "--pids"),
    (["--disk", "99999999T"], ["true"], 2, "--disk"),
    (["--timeout", "soon"], ["true"], 2, "--timeout"),
    (["--template", "nosuch"], ["true"], 125, "nosuch"),
    (["--dir", "/no/such/dir:/x"], ["true"], 2, "/no/such/dir"),
    (["--workdir", "/no/such/dir"], ["true"], 125, "/no/such/dir"),
    (["--net", "host"], ["true"], 2, "--net"),
    (["--nonsense"], ["true"], 2, "nonsense"),
])
def test_status_and_message(world, options, command, code, words):
    r = world.run(options, command)
    assert r.code == code, r
    assert r.out == "" and words in r.err and r.err.count("\n") == (1 if words else 0), r
