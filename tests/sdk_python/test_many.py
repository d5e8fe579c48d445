# SPDX-License-Identifier: Apache-2.0
"""A hundred sessions at once: in threads, on an event loop, and in this process."""
import asyncio
import concurrent.futures
import uuid

import pytest
from client import KEY
from places import LocalWorld, RemoteWorld

import lodge

COUNT = 100
SMALL = {"memory_bytes": 32 << 20, "pids": 16}


def test_a_hundred_sessions_on_an_event_loop(service):
    run = uuid.uuid4().hex

    async def one(client, i):
        s = await client.enter(f"{run}-{i}", limits=SMALL, wait_ms=60000, timeout=180)
        await s.files.write("n", str(i))
        r = await s.exec("cat n; echo -n ' '; hostname > h; cat n", timeout=120)
        assert r.text == f"{i} {i}", r
        events = [e async for e in s.stream("cat n", timeout=120)]
        assert b"".join(e.data for e in events) == str(i).encode() and events[-1].result.ok
        return s

    async def all_of_them():
        async with lodge.AsyncClient(service.url, KEY, timeout=180) as client:
            sessions = await asyncio.gather(*(one(client, i) for i in range(COUNT)))
            assert len({s.id for s in sessions}) == COUNT
            again = await asyncio.gather(*(client.enter(f"{run}-{i}") for i in range(COUNT)))
            assert [s.id for s in again] == [s.id for s in sessions]
            await asyncio.gather(*(s.delete() for s in sessions))

    asyncio.run(all_of_them())


@pytest.mark.parametrize("mode", ["remote", "local"])
def test_a_hundred_sessions_in_threads(mode):
    w = RemoteWorld() if mode == "remote" else LocalWorld()

    def one(i):
        with w.client() as c:
            c.get_or_create_session(f"user-{i % 7}", f"thread-{i}")
            c.upload_file_from_bytes("n", str(i).encode())
            assert c.execute("cat n", timeout=120)["stdout"] == str(i)
            assert [f["name"] for f in c.list_files()] == ["n"]
            return c.session_id

    try:
        with concurrent.futures.ThreadPoolExecutor(COUNT) as pool:
            assert len(set(pool.map(one, range(COUNT)))) == COUNT
    finally:
        w.close()


def test_one_client_in_many_threads(service):
    with lodge.Client(service.url, KEY) as client, concurrent.futures.ThreadPoolExecutor(16) as pool:
        with client.enter() as s:
            texts = list(pool.map(lambda i: s.exec(f"echo {i}").text, range(64)))
            assert texts == [f"{i}\n" for i in range(64)]
