# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest

from client import LODGED
from lodge import LODGE, Daemon
from machine import need


def pytest_collection_modifyitems(items):
    need(items, LODGED, LODGE)


@pytest.fixture(scope="module")
def lodged():
    """One daemon for all tests of a file; it also listens on a Unix socket."""
    with contextlib.closing(Daemon()) as d:
        yield d


@pytest.fixture
def client(lodged):
    return lodged.client()


@pytest.fixture
def session(client):
    sid = client.enter()
    yield sid
    client.delete("/v1/sessions/" + sid)
