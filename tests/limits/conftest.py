# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest

from machine import need
from world import LODGE, World


def pytest_collection_modifyitems(items):
    need(items, LODGE)


@pytest.fixture(scope="module")
def world():
    with contextlib.closing(World()) as w:
        yield w
        w.assert_clean("after all tests")


@pytest.fixture(autouse=True)
def nothing_is_left(world):
    yield
    world.assert_clean("after the test")
