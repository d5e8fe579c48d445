# SPDX-License-Identifier: Apache-2.0
import os
import zlib

import pytest

from engine import DRIVER, Engine, World
from machine import need


def in_this_run(item):
    """Whether to run this item: each crash step runs on one of the stores, with LODGE_SLOW=1 on both."""
    kind, _, case = item.name.partition("[")[2].partition("-")
    if os.environ.get("LODGE_SLOW") or kind not in ("volume", "directory"):
        return True
    return bool(zlib.crc32(case.encode()) & 1) == (kind == "volume")


def pytest_collection_modifyitems(config, items):
    left_out = [i for i in items if i.fspath.basename == "test_steps.py" and not in_this_run(i)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [i for i in items if i not in left_out]
    need(items, DRIVER)


def homes(kind):
    w = World(store="dir" if kind == "directory" else None)
    w.kind = kind
    try:
        yield w
    finally:
        w.close()


@pytest.fixture(params=["volume", "directory"])
def world(request):
    """A home on the btrfs volume, and one with plain directories."""
    yield from homes(request.param)


@pytest.fixture
def volume():
    yield from homes("volume")


@pytest.fixture
def plain():
    yield from homes("directory")


@pytest.fixture
def engine(world):
    """An engine; after the test nothing of it may be left."""
    e = Engine(world)
    try:
        yield e
        e.destroy_all()
        assert e.close() == 0, e.log()
        world.assert_clean("after the test")
    finally:
        if e.process.poll() is None:
            e.kill()
