# SPDX-License-Identifier: Apache-2.0
"""LODGE_CGROUP: the parent of the cgroups of sandboxes, so that they outlive a systemd unit."""
import glob
import os
import subprocess
import tempfile

import pytest

from machine import build, eventually

LODGE = os.path.join(build(), "lodge")


def tree():
    """Where the cgroup v2 tree is mounted, or None."""
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


def test_cgroups_of_sandboxes_are_below_it(home, group):
    """If the tree has controllers, processes in it are moved below it too, because they would prevent enabling
    controllers."""
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


def test_a_missing_cgroup_is_reported(home):
    with lodge(home, "/there-is-no-such-group", "echo", "works") as p:
        out, err = p.communicate(timeout=180)
    assert p.returncode == 0 and out == b"works\n"
    assert err == b"lodge-keeper: LODGE_CGROUP: no such cgroup; using the default\n"


def test_a_directory_that_is_not_a_cgroup_is_reported_and_unchanged(home):
    with tempfile.TemporaryDirectory(prefix="lodge-no-group-") as other:
        with lodge(home, "/.." * 16 + other, "echo", "works") as p:
            out, err = p.communicate(timeout=180)
        assert p.returncode == 0 and out == b"works\n" and b"LODGE_CGROUP: no such cgroup; using the default" in err
        assert os.listdir(other) == []
