# SPDX-License-Identifier: Apache-2.0
import os
import sys
import zlib

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from engine import DRIVER, Engine, World  # noqa: E402


def in_this_run(item):
    """Each crash step in one store or the other; in both with LODGE_SLOW=1."""
    kind, _, case = item.name.partition("[")[2].partition("-")
    if os.environ.get("LODGE_SLOW") or kind not in ("volume", "directory"):
        return True
    return bool(zlib.crc32(case.encode()) & 1) == (kind == "volume")


def pytest_collection_modifyitems(config, items):
    left_out = [i for i in items if i.fspath.basename == "test_steps.py" and not in_this_run(i)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [i for i in items if i not in left_out]
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests need root"))
    assert os.access(DRIVER, os.X_OK), f"{DRIVER} is missing; LODGE_BUILD names the build directory"


@pytest.fixture(params=["volume", "directory"])
def world(request):
    """A home on the btrfs volume, and one of plain directories."""
    w = World(store="dir" if request.param == "directory" else None)
    w.kind = request.param
    try:
        yield w
    finally:
        w.close()


@pytest.fixture
def volume():
    w = World()
    w.kind = "volume"
    try:
        yield w
    finally:
        w.close()


@pytest.fixture
def plain():
    w = World(store="dir")
    w.kind = "directory"
    try:
        yield w
    finally:
        w.close()


@pytest.fixture
def engine(world):
    """An engine that leaves nothing behind."""
    e = Engine(world)
    try:
        yield e
        e.destroy_all()
        assert e.close() == 0, e.log()
        world.assert_clean("after the test")
    finally:
        if e.process.poll() is None:
            e.kill()
