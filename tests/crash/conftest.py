# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import tempfile

import pytest

from machine import need
from world import LODGE, World, build_driver


def pytest_collection_modifyitems(items):
    need(items, LODGE)


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
