# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "http")]

from client import LODGED  # noqa: E402
from lodge import LODGE, Daemon  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests need root"))
    for program in (LODGED, LODGE):
        assert os.access(program, os.X_OK), f"{program} is missing; LODGE_BUILD names the build directory"


@pytest.fixture(scope="module")
def lodged():
    """One for all tests of a file, which listens on a unix socket too."""
    d = Daemon()
    try:
        yield d
    finally:
        d.close()


@pytest.fixture
def client(lodged):
    return lodged.client()


@pytest.fixture
def session(client):
    sid = client.enter()
    yield sid
    client.delete("/v1/sessions/" + sid)
