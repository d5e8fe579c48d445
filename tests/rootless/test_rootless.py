# SPDX-License-Identifier: Apache-2.0
"""As an ordinary user: everything but cgroup limits and disk quotas works, and their absence is reported."""
import json
import os
import subprocess
import tarfile

import pytest

from conftest import USER
from machine import children, descendants, in_terminal, wait_for, with_time
from roots import docker_save, entry, tar

STORES = ["memory", "disk"]


@pytest.mark.parametrize("store", STORES)
def test_a_command(world, store):
    r = world.sh(["--store", store], "id -u; hostname; pwd; echo oops >&2; exit 5")
    assert (r.code, r.out, r.err) == (5, "1000\nlodge\n/home/user\n", "oops\n"), r


def test_processes_have_the_id_of_the_user(world):
    p = world.start([], ["sh", "-c", "echo up; exec sleep 60"])
    assert p.stdout.readline() == b"up\n"
    owners = {os.stat(f"/proc/{q}").st_uid for q in descendants(p.pid)}
    ids = set()
    for q in [p.pid, *descendants(p.pid)]:
        with open(f"/proc/{q}/status") as f:
            ids.update(line.split()[1] for line in f if line.startswith(("Uid:", "Gid:")))
    p.terminate()
    world.finish(p)
    # the /proc files of a process that is not dumpable belong to root
    assert ids == {str(USER)} and owners <= {USER, 0}, f"{ids} {owners}"


def test_the_guest_cannot_become_root(world):
    r = world.sh([], "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; unshare -U true 2>&1")
    assert "CapEff:\t0000000000000000" in r.out and "NoNewPrivs:\t1" in r.out, r
    assert "unshare: " in r.out, f"a user namespace could be made inside: {r}"


@pytest.mark.parametrize("store", STORES)
def test_files(world, store):
    text = """
set -e
mkdir -p a/b; echo content >a/b/f; ln -s b a/link; cat a/link/f
chmod 000 a/b/f; chmod 0700 a; mv a c; tar cf t.tar c 2>/dev/null || true
mkdir deep; cd deep; for i in $(seq 60); do mkdir d; cd d; done; cd ~
mkdir locked; touch locked/f; chmod 000 locked
python3 -c 'open("/tmp/x", "wb").write(bytes(range(256)))'; wc -c </tmp/x
"""
    r = world.sh(["--store", store], text)
    assert (r.code, r.out) == (0, "content\n256\n"), r
    assert world.store() == [], "directories without permissions are left in the store"


def test_stdin_and_bytes(world):
    data = bytes(range(256)) * 5000
    p = world.start([], ["cat"], stdin=-1)
    out, err = p.communicate(data, timeout=180)
    world.finish(p)
    assert out == data and p.returncode == 0, (len(out), err)


def test_pty(world):
    """A new terminal with the size of the caller's."""
    def act():
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        os.chdir("/")
        argv = world.argv(["--tty"], ["bash", "-c", "test -t 0 && test -t 1 && tty && stty size"])
        os.execve(argv[0], argv, world.env())

    out, status = in_terminal(act)
    assert status == 0 and b"/dev/pts/" in out, f"{status} {out!r}"


ESCAPING = {
    "plain": "sleep 6000",
    "ignoring": "trap '' TERM INT HUP; while :; do sleep 1; done",
    "setsid": "setsid sleep 6000 & setsid bash -c 'trap \"\" TERM; sleep 6000' & wait",
    "double fork": "(setsid bash -c 'sleep 6000 & sleep 6000' &) ; sleep 6000",
    "stopped": "(setsid bash -c 'kill -STOP $$' &) ; kill -STOP $$",
}


@pytest.mark.parametrize("how", ESCAPING)
def test_time(world, how):
    def act(ms):
        r = world.sh(["--timeout", f"{ms}ms"], "echo before; " + ESCAPING[how])
        assert r.code == 124 and "TIMEOUT" in r.err, f"{how}: {r}"
        return r

    r = with_time(act, lambda r: r.out)
    assert r.out == "before\n", f"{how}: {r}"


def test_survivors_end_with_the_sandbox(world):
    r = world.sh([], "setsid sleep 300 & (setsid sleep 300 &) ; echo done")
    assert (r.code, r.out) == (0, "done\n"), r


def test_dir(world):
    d = os.path.join(world.base, "shared")
    os.mkdir(d)
    with open(os.path.join(d, "f"), "w") as f:
        f.write("from outside\n")
    os.chown(d, USER, USER)
    r = world.sh(["--dir", f"{d}:/data"], "cat /data/f; touch /data/new 2>/dev/null || echo read-only")
    assert (r.code, r.out) == (0, "from outside\nread-only\n"), r
    r = world.sh(["--dir", f"{d}:/data:rw"], "echo inside >/data/new; stat -c %u /data/new")
    assert (r.code, r.out) == (0, "1000\n"), r
    assert os.stat(os.path.join(d, "new")).st_uid == USER
    with open(os.path.join(d, "new")) as f:
        assert f.read() == "inside\n"


def test_dir_needs_permissions_of_the_user(world):
    secret = os.path.join(world.base, "secret")
    os.mkdir(secret, 0o700)  # of root
    r = world.sh(["--dir", f"{secret}:/data"], "true")
    assert r.code == 2 and secret in r.err and r.err.count("\n") == 1, r


def test_many_at_once(world):
    text = "sleep 0.2; echo {} $(ls /proc | grep -c '^[0-9]')"
    ps = [world.start(["--store", STORES[i % 2]], ["bash", "-c", text.format(i)])
          for i in range(8)]
    for i, p in enumerate(ps):
        r = world.finish(p)
        n, seen = r.out.split()
        assert r.code == 0 and n == str(i) and int(seen) < 8, f"{i}: {r}"


def test_usage(world):
    text = "import time\nx = bytearray(40 << 20)\nwhile time.process_time() < 0.3: pass"
    r = world.run(["--json"], ["python3", "-c", text])
    j = json.loads(r.out)
    assert 250 <= j["usage"]["cpu_ms"] <= 3000, j
    assert 40 << 20 <= j["usage"]["max_rss_bytes"] <= 200 << 20, j


def test_output_and_file_limits_are_enforced(world):
    """They need no cgroup."""
    r = world.sh(["--json", "--output", "64K"], "head -c 500000 /dev/zero | tr '\\0' a")
    assert "LIMIT_OUTPUT" in json.loads(r.out)["limits"], r
    r = world.sh(["--file-size", "1M"], "exec dd if=/dev/zero of=f bs=64k count=100 status=none")
    assert r.code == 128 + 25 and "LIMIT_FILE" in r.err, r
    r = world.sh(["--open-files", "32"], "ulimit -n")
    assert r.out == "32\n", r
    r = world.sh(["--store", "memory", "--disk", "8M"], "head -c 20M /dev/zero >f; stat -c %s f")
    assert int(r.out) <= 8 << 20 and "LIMIT_DISK" in r.err, r


# ---- missing features are reported ------------------------------------------------------------


def delegated(world):
    r = world.sh(["--memory", "64M"], "true")
    return "not enforced" not in r.err.lower()


def test_a_limit_that_is_not_enforced_is_reported(world):
    if delegated(world):
        pytest.skip("this user's cgroups are delegated")
    r = world.sh(["--memory", "64M"], "echo ran")
    assert (r.code, r.out) == (0, "ran\n"), r
    assert r.err == ("lodge: NOT enforced on this host: memory, CPU and process limits (no cgroup with memory, cpu and pids "
                     "controllers is delegated to this user); see lodge doctor\n"), r
    r = world.sh(["--store", "disk", "--disk", "50M"], "echo ran")
    assert r.code == 0 and r.err == ("lodge: NOT enforced on this host: disk limits (disk quotas need root); "
                                     "see lodge doctor\n"), r
    r = world.sh([], "true")
    assert r.err == "", f"nothing was asked for, nothing is said: {r}"


@pytest.mark.parametrize("store, more", [("memory", set()), ("disk", {"disk_bytes", "inodes"})])
def test_json_marks_default_limits(world, store, more):
    if delegated(world):
        pytest.skip("this user's cgroups are delegated")
    problems = json.loads(world.sh(["--json", "--store", store], "true").out)["limits_not_enforced"]
    assert {p["limit"] for p in problems} == {"memory_bytes", "cpu_weight", "pids"} | more
    assert all(p["enforced"] is False and p["reason"] for p in problems)


@pytest.mark.parametrize("options", [["--memory", "64M"], ["--pids", "20"], [],
                                     ["--store", "disk", "--disk", "50M"]])
def test_require_limits_refuses_to_run(world, options):
    if delegated(world):
        pytest.skip("this user's cgroups are delegated")
    r = world.run(["--require-limits", *options], ["echo", "ran"])
    assert r.code == 125 and r.out == "" and r.err.count("\n") == 1, r
    assert r.err.startswith("lodge: ") and "cannot be enforced on this host" in r.err, r


def test_a_template_that_requires_limits(world):
    if delegated(world):
        pytest.skip("this user's cgroups are delegated")
    root = os.path.join(world.base, "rootfs")
    os.makedirs(os.path.join(root, "bin"))
    with open("/bin/busybox", "rb") as f, open(os.path.join(root, "bin", "sh"), "wb") as g:
        g.write(f.read())
    os.chmod(os.path.join(root, "bin", "sh"), 0o755)
    for path, dirs, files in os.walk(root):
        for n in [path, *(os.path.join(path, f) for f in files)]:
            os.chown(n, USER, USER)
    for name, options in (("plain", []), ("strict", ["--memory", "64M", "--require-limits"])):
        r = world.lodge("template", "add", *options, name, root)
        assert r.code == 0, f"template add: {r}"
    try:
        r = world.run(["--template", "plain"], ["/bin/sh", "-c", "echo ran"])
        assert (r.code, r.out) == (0, "ran\n"), r
        r = world.run(["--template", "strict"], ["/bin/sh", "-c", "echo ran"])
        assert r.code == 125 and "cannot be enforced on this host" in r.err and r.err.count("\n") == 1, r
    finally:
        for name in ("plain", "strict"):
            assert world.lodge("template", "rm", name, "--yes").code == 0, f"template rm {name}"
    assert world.store() == [], "a removed template is still in the store"


def test_images_share_their_layers(world):
    with open("/bin/busybox", "rb") as f:
        base = tar(("bin", None), ("bin/sh", f.read()), ("etc", entry(tarfile.DIRTYPE, uid=7)), ("etc/old", b"1"))
    image = os.path.join(world.base, "image.tar")
    with open(image, "wb") as f:
        f.write(docker_save([base, tar(("etc/.wh.old", b""), ("etc/new", b"2"))], {"User": "1000"}))
    os.chmod(image, 0o644)
    try:
        for name in ("one", "two"):
            r = world.lodge("template", "add", name, image)
            assert r.code == 0, f"template add: {r}"
            r = world.run(["--template", name], ["/bin/sh", "-c", "echo /etc/*"])
            assert (r.code, r.out) == (0, "/etc/new\n"), r
        assert len(world.store()) == 4, "two layers, and one name for each template"
    finally:
        for name in ("one", "two"):
            assert world.lodge("template", "rm", name, "--yes").code == 0, f"template rm {name}"
    assert world.store() == [], "a layer is left in the store"


def test_doctor(world):
    r = world.lodge("doctor")
    text = (r.out + r.err).lower()
    assert "cgroup" in text, f"doctor does not mention cgroups: {r}"
    assert "user namespace" in text, r
    if not delegated(world):
        lines = [x for x in text.splitlines() if "cgroup" in x or "limit" in x]
        assert any(w in x for x in lines for w in ("missing", "not ", "no ", "delegat")), lines
    assert "disk" in text or "quota" in text or "volume" in text, f"nothing of the disk limit: {r}"


def test_unusable_homes_are_refused(world):
    """With one line of error, and nothing is started."""
    r = world.lodge("run", "--home", "/nowhere/at/all", "--", "true")
    assert r.code == 125 and r.err.count("\n") == 1, r
    r = world.lodge("run", "--home", "/root", "--", "true")
    assert r.code == 125 and r.err.count("\n") == 1, r


def test_the_caller_is_killed(world):
    p = world.start([], ["bash", "-c", "setsid sleep 300 & echo up; sleep 300"])
    assert p.stdout.readline() == b"up\n"
    p.kill()
    world.finish(p)
    world.assert_clean("the caller was killed")


def test_the_keeper_is_killed(world):
    p = world.start(["--store", "disk"], ["bash", "-c", "setsid sleep 300 & echo up; sleep 300"])
    assert p.stdout.readline() == b"up\n"
    os.kill(children(p.pid, "lodge-keeper")[0], 9)
    r = world.finish(p)
    assert r.code == 125 and r.err.startswith("lodge: "), r
    world.next_start()
    assert wait_for(lambda: not world.store(), 120), f"store entries {world.store()}"


def test_mounts_below_usr_and_below_a_directory(world):
    """The kernel refuses to copy a mount without what is mounted below it; so these come along, read-only."""
    with_mounts = world.base + "/with-mounts"
    os.makedirs(with_mounts + "/below")
    text = (f"mount -t tmpfs none /usr/share/doc; echo doc >/usr/share/doc/f; mount -t tmpfs none {with_mounts}/below; "
            f"echo dir >{with_mounts}/below/f; exec setpriv --reuid {USER} --regid {USER} --clear-groups \"$@\"")
    guest = "cat /usr/share/doc/f /mnt/below/f; touch /usr/share/doc/x || touch /mnt/below/x || echo read-only"
    argv = world.argv(["--dir", with_mounts + ":/mnt"], ["sh", "-c", guest])
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-ec", text, "sh", *argv],
                          env=world.env(), cwd="/", capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stdout) == (0, "doc\ndir\nread-only\n"), done
