# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from engine import DRIVER, Engine, World  # noqa: E402


def pytest_collection_modifyitems(items):
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
