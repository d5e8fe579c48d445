# SPDX-License-Identifier: Apache-2.0
"""Hibernate and resume repeatedly with random changes in between: the files end up byte for byte like a plain
directory with the same changes. LODGE_CYCLES=1000 runs the long version."""
import os
import random
import shutil
import subprocess
import tempfile

import pytest

CYCLES = int(os.environ.get("LODGE_CYCLES", "25"))

# Runs inside and outside the sandbox, with the same seed on the same tree.
CHANGE = r'''
import hashlib, json, os, random, shutil, socket, stat, sys

def walk(root):
    for d, dirs, files in os.walk(root, topdown=True):
        dirs.sort()
        for name in sorted(dirs + files):
            yield os.path.join(d, name)

def stamp(path, rng):
    t = rng.randrange(10**18, 17 * 10**17)
    os.utime(path, ns=(t, t), follow_symlinks=False)

def make(path, rng):
    kind = rng.choice(["file", "file", "file", "dir", "dir", "link", "hard", "fifo", "socket", "sparse"])
    other = [p for p in walk(ROOT) if stat.S_ISREG(os.lstat(p).st_mode)]
    if kind == "file":
        with open(path, "wb") as f:
            f.write(rng.randbytes(rng.randrange(0, 20000)))
    elif kind == "dir":
        os.mkdir(path)
    elif kind == "link":
        os.symlink(rng.choice(["nowhere", "/etc/passwd", "..", "a" * 200]), path)
    elif kind == "hard" and other:
        os.link(rng.choice(other), path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.basename(path))
        s.close()
        os.chdir(here)
    else:
        with open(path, "wb") as f:
            f.seek(rng.randrange(1, 50) << 20)
            f.write(b"end")

def change(rng):
    there = list(walk(ROOT))
    dirs = [ROOT] + [p for p in there if stat.S_ISDIR(os.lstat(p).st_mode)]
    files = [p for p in there if stat.S_ISREG(os.lstat(p).st_mode)]
    what = rng.choice(["make"] * 6 + ["remove", "remove", "again", "rename", "mode", "xattr", "append", "cut"])
    name = rng.choice(["n%d", "with space %d", "caf\u00e9%d", "new\nline%d", ".dot%d"]) % rng.randrange(40)
    path = os.path.join(rng.choice(dirs), name)
    if what == "make" and not os.path.lexists(path):
        make(path, rng)
    elif what in ("remove", "again") and there:
        p = rng.choice(there)
        was_dir = stat.S_ISDIR(os.lstat(p).st_mode)
        shutil.rmtree(p) if was_dir else os.unlink(p)
        if what == "again":  # the same name, possibly with another type
            os.mkdir(p) if rng.random() < 0.6 else open(p, "wb").close()
    elif what == "rename" and there and not os.path.lexists(path):
        p = rng.choice(there)
        if not (path + "/").startswith(p + "/"):
            shutil.move(p, path)  # a directory of the template cannot be renamed, only copied
    elif what == "mode" and there:
        p = rng.choice(there)
        if not os.path.islink(p):
            os.chmod(p, rng.choice([0o700, 0o755, 0o711, 0o1777]) if os.path.isdir(p)
                     else rng.choice([0o600, 0o644, 0o444, 0o755, 0o555, 0o640]))
    elif what == "xattr" and files:
        p = rng.choice(files)
        os.chmod(p, 0o644)
        os.setxattr(p, "user.%d" % rng.randrange(3), rng.randbytes(rng.randrange(1, 200)))
    elif what == "append" and files:
        p = rng.choice(files)
        os.chmod(p, 0o644)
        with open(p, "ab") as f:
            f.write(rng.randbytes(1000))
    elif what == "cut" and files:
        p = rng.choice(files)
        os.chmod(p, 0o644)
        os.truncate(p, os.lstat(p).st_size // 2)

def manifest():
    inodes = {}
    for p in walk(ROOT):
        st = os.lstat(p)
        m = {"path": os.path.relpath(p, ROOT), "mode": st.st_mode, "uid": st.st_uid, "gid": st.st_gid,
             "mtime": st.st_mtime_ns}
        if stat.S_ISREG(st.st_mode):
            with open(p, "rb") as f:
                m["sum"] = hashlib.sha256(f.read()).hexdigest()
            m["size"], m["holes"] = st.st_size, st.st_blocks * 512 + (1 << 20) < st.st_size
            m["same"] = inodes.setdefault((st.st_dev, st.st_ino), len(inodes))
            m["links"] = st.st_nlink
            m["xattr"] = {n: os.getxattr(p, n).hex() for n in sorted(os.listxattr(p)) if n.startswith("user.")}
        elif stat.S_ISLNK(st.st_mode):
            m["target"] = os.readlink(p)
        print(json.dumps(m, sort_keys=True))

os.umask(0o022)
ROOT = os.path.abspath(sys.argv[1])
os.makedirs(ROOT, exist_ok=True)
if len(sys.argv) > 2:
    rng = random.Random(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        change(rng)
    for p in walk(ROOT):
        if os.access(p, os.R_OK) or os.path.islink(p):
            stamp(p, random.Random(p[len(ROOT):] + sys.argv[2]))
else:
    manifest()
'''


@pytest.fixture
def plain():
    d = tempfile.mkdtemp(prefix="lodge-test-plain-")
    os.chmod(d, 0o755)
    os.mkdir(os.path.join(d, "home"))
    os.chown(os.path.join(d, "home"), 1000, 1000)
    with open(os.path.join(d, "change.py"), "w") as f:
        f.write(CHANGE)
    yield d
    shutil.rmtree(d)


def outside(plain, *args):
    r = subprocess.run(["/usr/bin/python3", os.path.join(plain, "change.py"), os.path.join(plain, "home", "work"), *args],
                       user=1000, group=1000, extra_groups=[], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stderr
    return r.stdout


def inside(engine, *args):
    r = engine.run(key="k", text="cd; python3 /tmp/change.py ~/work " + " ".join(args), output_bytes=16 << 20)
    assert r["code"] == 0, r["err"]
    return r["out"]


def test_files_survive_any_number_of_cycles(engine, plain):
    rng = random.Random(7)
    engine.enter(key="k")
    engine.write(key="k", path="/tmp/change.py", data=CHANGE)
    for cycle in range(CYCLES):
        args = (str(rng.randrange(1 << 30)), str(rng.randrange(1, 12)))
        inside(engine, *args)
        outside(plain, *args)
        if rng.random() < 0.15:
            engine.snapshot(key="k")  # the next resume cannot take over the layer
        engine.hibernate(key="k")
        if cycle % 5 == 4 or cycle + 1 == CYCLES:
            want, got = outside(plain).splitlines(), inside(engine).splitlines()
            assert got == want, f"after cycle {cycle}: " + "\n".join(
                x for x in set(got) ^ set(want))[:3000]
    s = engine.get(key="k")["session"]
    assert s["generation"] >= CYCLES
