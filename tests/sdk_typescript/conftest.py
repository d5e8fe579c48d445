# SPDX-License-Identifier: Apache-2.0
import contextlib

import pytest

import typescript_package
from client import LODGED
from machine import need


def pytest_collection_modifyitems(items):
    need(items, LODGED)


@pytest.fixture(scope="session")
def built():
    """The package and its tests, compiled."""
    with typescript_package.build() as out:
        yield out


@pytest.fixture(scope="session")
def lodged():
    with contextlib.closing(typescript_package.Both(drain="1s")) as d:
        yield d
