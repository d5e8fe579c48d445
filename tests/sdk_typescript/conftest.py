# SPDX-License-Identifier: Apache-2.0
from client import LODGED
from machine import need


def pytest_collection_modifyitems(items):
    need(items, LODGED)
