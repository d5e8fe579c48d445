# SPDX-License-Identifier: Apache-2.0
"""The clients of sdk/python: both are used by the same tests."""
import asyncio
import inspect
import os
import sys

from client import KEY
from machine import SOURCE

sys.path.insert(0, os.path.join(SOURCE, "sdk/python"))

import lodge  # noqa: E402


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
