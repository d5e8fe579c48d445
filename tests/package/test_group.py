# SPDX-License-Identifier: Apache-2.0
"""LODGE_CGROUP: where the control groups of sandboxes are made, so that they outlive a unit of systemd."""
import glob
import os
import subprocess
import tempfile

import pytest

from machine import build, eventually

LODGE = os.path.join(build(), "lodge")


def tree():
    """Where the one tree of version 2 is mounted, or None."""
    with open("/proc/self/mountinfo") as f:
        found = [line.split()[4] for line in f if " - cgroup2 " in line]
    return found[0] if found else None


pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not tree(), reason="they need root and a tree of cgroup v2")


def lodge(home, group, *command):
    return subprocess.Popen([LODGE, "run", "--home", home, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "LODGE_CGROUP": group})


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="lodge-group-") as d:
        yield d


@pytest.fixture
def group():
    path = tempfile.mkdtemp(prefix="test-of-lodge-", dir=tree())
    yield path
    for d in sorted(glob.glob(path + "/**/", recursive=True), reverse=True):
        os.rmdir(d)


def test_sandboxes_are_below_it(home, group):
    """And who was in it is below it too, where the tree has controllers: else it would stay in the way of them."""
    other = subprocess.Popen(["sleep", "infinity"])
    try:
        with open(group + "/cgroup.procs", "w") as f:
            f.write(str(other.pid))
        with lodge(home, "/" + os.path.basename(group), "cat") as p:
            eventually(lambda: any(os.path.getsize(f) or open(f).read()
                                   for f in glob.glob(group + "/lodge-*/*/**/cgroup.procs", recursive=True)), 120)
            with open(group + "/cgroup.subtree_control") as f:
                controllers = f.read().split()
            with open(group + "/cgroup.procs") as f:
                assert bool(f.read()) == (not controllers)
            out, err = p.communicate(b"through\n", 60)
            assert (p.returncode, out, err) == (0, b"through\n", b"")
    finally:
        other.kill()
        other.wait()


def test_missing_one_is_told(home):
    with lodge(home, "/there-is-no-such-group", "echo", "works") as p:
        out, err = p.communicate(timeout=180)
    assert p.returncode == 0 and out == b"works\n"
    assert err == b"lodge-keeper: LODGE_CGROUP: no such cgroup; using the default\n"


def test_what_is_no_group_is_told_and_left_alone(home):
    with tempfile.TemporaryDirectory(prefix="lodge-no-group-") as other:
        with lodge(home, "/.." * 16 + other, "echo", "works") as p:
            out, err = p.communicate(timeout=180)
        assert p.returncode == 0 and out == b"works\n" and b"LODGE_CGROUP: no such cgroup; using the default" in err
        assert os.listdir(other) == []
