# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import shutil
import stat
import tempfile

import pytest

import world as world_module

USER = 12345


def reachable(path):
    """Whether other users can reach the path."""
    while True:
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


@pytest.fixture(scope="session", autouse=True)
def programs():
    """Copies the programs to where the user can execute them, because the source tree may be private."""
    if os.geteuid() != 0:
        pytest.skip("these tests become an ordinary user, which needs root")
    assert os.access(world_module.LODGE, os.X_OK), f"{world_module.LODGE} is missing"
    if reachable(world_module.LODGE):
        yield
        return
    d = tempfile.mkdtemp(prefix="lodge-bin-")
    os.chmod(d, 0o755)
    for name in ("lodge", "lodged", "lodge-keeper", "lodge-init", "lodge-zstd"):
        shutil.copy(os.path.join(world_module.BUILD, name), d)
    world_module.LODGE = os.path.join(d, "lodge")
    yield
    shutil.rmtree(d)


@pytest.fixture(scope="module")
def world(programs):
    with contextlib.closing(world_module.World(uid=USER)) as w:
        yield w
        w.assert_clean("after all tests")


@pytest.fixture(autouse=True)
def nothing_is_left(world):
    yield
    world.assert_clean("after the test", entries=getattr(world, "entries", ()))
