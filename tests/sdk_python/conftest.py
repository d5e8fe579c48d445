# SPDX-License-Identifier: Apache-2.0
"""The Python package with a real lodged, and with the engine in this process."""
import asyncio
import contextlib
import inspect
import os
import sys

import pytest

from client import KEY, LODGED
from machine import SOURCE, need

ROOT = SOURCE
sys.path.insert(0, os.path.join(ROOT, "sdk/python"))

from places import LocalWorld, RemoteWorld, Service  # noqa: E402

import lodge  # noqa: E402


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


class Way:
    """One of the two clients of /v1; `do` waits for the result of the asynchronous one."""

    def __init__(self, kind, url):
        self.kind = kind
        self.loop = asyncio.new_event_loop() if kind == "async" else None
        make = lodge.AsyncClient if self.loop else lodge.Client
        self.client = make(url, KEY)

    def do(self, value):
        if inspect.isawaitable(value):
            return self.loop.run_until_complete(value)
        if inspect.isasyncgen(value):
            async def collect():
                return [x async for x in value]
            return self.loop.run_until_complete(collect())
        return list(value) if inspect.isgenerator(value) else value

    def steps(self, value):
        """Iterate over an iterator of either kind."""
        if inspect.isgenerator(value):
            yield from value
            return
        try:
            while True:
                yield self.loop.run_until_complete(value.__anext__())
        except StopAsyncIteration:
            return
        finally:
            self.loop.run_until_complete(value.aclose())

    def close(self):
        self.do(self.client.close())
        if self.loop:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()


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
