# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))

from world import LODGE, World  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests need root"))
    assert os.access(LODGE, os.X_OK), f"{LODGE} is missing; LODGE_BUILD names the build directory"


@pytest.fixture(scope="module")
def world():
    w = World()
    try:
        yield w
        w.assert_clean("after all tests")
    finally:
        w.close()


@pytest.fixture(autouse=True)
def nothing_is_left(world):
    yield
    world.assert_clean("after the test")
