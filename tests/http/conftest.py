# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest

from client import LODGED, Lodged
from machine import need


def pytest_collection_modifyitems(items):
    need(items, LODGED)


@pytest.fixture(scope="module")
def lodged():
    """One lodged for all tests of a file."""
    with contextlib.closing(Lodged()) as d:
        yield d


@pytest.fixture
def client(lodged):
    return lodged.client()


@pytest.fixture
def t(client, at):
    """The URL of a new directory in the session at `at`, for one test."""
    client.delete(at + "/files/t?recursive=1")
    assert client.post(at + "/files/t?mkdir").status == 201
    return at + "/files/t"
