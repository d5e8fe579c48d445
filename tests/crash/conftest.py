# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from world import LODGE, World, build_driver  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests need root"))
    assert os.access(LODGE, os.X_OK), f"{LODGE} is missing; LODGE_BUILD names the build directory"


@pytest.fixture
def world():
    w = World()
    yield w
    w.close()


@pytest.fixture(scope="session")
def driver_program():
    d = tempfile.mkdtemp(prefix="lodge-driver-")
    os.chmod(d, 0o755)
    yield build_driver(d)
    shutil.rmtree(d)
