# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from client import LODGED, Lodged  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests need root"))
    assert os.access(LODGED, os.X_OK), f"{LODGED} is missing; LODGE_BUILD names the build directory"


@pytest.fixture(scope="module")
def lodged():
    """One for all tests of a file."""
    d = Lodged()
    try:
        yield d
    finally:
        d.close()


@pytest.fixture
def client(lodged):
    return lodged.client()
