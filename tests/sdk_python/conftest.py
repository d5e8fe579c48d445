# SPDX-License-Identifier: Apache-2.0
"""The Python package with a real lodged, and with the engine in this process."""
import contextlib

import pytest

from client import LODGED
from machine import SOURCE, need
from ways import Way  # before lodge: it puts sdk/python on the path
from places import LocalWorld, RemoteWorld, Service

ROOT = SOURCE


def pytest_collection_modifyitems(items):
    need(items, LODGED)


@pytest.fixture(scope="module")
def service():
    """A lodged for all tests of a file; `url` is its socket."""
    with contextlib.closing(Service()) as s:
        yield s


@pytest.fixture(scope="module", params=["remote", "local"])
def world(request):
    """Where threads run; the same tests run with both."""
    with contextlib.closing(RemoteWorld() if request.param == "remote" else LocalWorld()) as w:
        yield w


@pytest.fixture(params=["sync", "async"])
def way(request, service):
    with contextlib.closing(Way(request.param, service.url)) as w:
        yield w


@pytest.fixture
def do(way):
    return way.do


@pytest.fixture
def session(way, do):
    """A new session."""
    s = do(way.client.enter())
    yield s
    do(s.delete())
