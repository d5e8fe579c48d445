# SPDX-License-Identifier: Apache-2.0
"""Large files, in constant memory: 64 MB, or 1 GB with LODGE_SLOW=1."""
import hashlib
import os
import subprocess
import sys

import pytest
from client import KEY
from conftest import ROOT

import lodge

MB = 1024 if os.environ.get("LODGE_SLOW") == "1" else 64
ROOM = {"disk_bytes": 6 << 30, "file_bytes": 2 << 30}

# Runs in its own process, whose peak memory shows what the transfer needed.
PROGRAM = r"""
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
import lodge
url, key, sid, way, source, target, mb = sys.argv[2:9]

def peak():
    with open("/proc/self/status") as f:
        return int(next(l for l in f if l.startswith("VmHWM")).split()[1])

def pieces():
    for i in range(int(mb)):
        yield bytes([i % 251]) * (1 << 20)

def sync():
    with lodge.Client(url, key) as c:
        files = c.session(sid).files
        files.upload(source, "up")
        files.download("up", target)
        with files.open("streamed", "wb") as f:
            for p in pieces():
                f.write(p)
        with files.open("streamed", "rb") as f:
            for p in pieces():
                assert f.read(1 << 20) == p
            assert f.read() == b""
            f.seek(5 << 20)
            assert f.read(3) == bytes([5]) * 3 and f.tell() == (5 << 20) + 3

async def asynchronous():
    async with lodge.AsyncClient(url, key) as c:
        files = c.session(sid).files
        await files.upload(source, "up")
        await files.download("up", target)
        async with files.open("streamed", "wb") as f:
            for p in pieces():
                await f.write(p)
        async with files.open("streamed") as f:
            for p in pieces():
                assert await f.read(1 << 20) == p
            assert await f.read() == b""

# the peak before the transfer is that of the interpreter
before = peak()
sync() if way == "sync" else asyncio.run(asynchronous())
print(peak() - before)
"""


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            h.update(piece)
    return h.hexdigest()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "source"
    with open(path, "wb") as f:
        for _ in range(MB):
            f.write(os.urandom(1 << 20))
    yield path
    os.unlink(path)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_large_files_in_constant_memory(service, source, tmp_path, way):
    with lodge.Client(service.url, KEY) as client, client.enter(limits=ROOM) as s:
        r = subprocess.run([sys.executable, "-c", PROGRAM, os.path.join(ROOT, "sdk/python"), service.url, KEY, s.id, way,
                            source, tmp_path / "target", str(MB)], capture_output=True, text=True, timeout=900)
        assert r.returncode == 0, r.stderr
        assert digest(tmp_path / "target") == digest(source)
        os.unlink(tmp_path / "target")
        assert s.exec("sha256sum up", timeout=300).text.split()[0] == digest(source)
        print(f"{way}: {MB} MB four times; the peak grew by {r.stdout.strip()} kB")
        assert int(r.stdout) < 24 << 10  # kB


def test_too_large_a_file_is_refused(service, source):
    """During the upload, and with the reason instead of a broken pipe."""
    with lodge.Client(service.url, KEY) as client, client.enter(limits={"file_bytes": 1 << 20}) as s:
        with pytest.raises(lodge.LimitError) as e:
            s.files.upload(source, "f")
        assert e.value.code == "TOO_LARGE"
        with pytest.raises(lodge.LimitError):
            with s.files.open("f", "wb") as f:
                for _ in range(8):  # after more than 16 MB too many the service closes the connection
                    f.write(bytes(1 << 20))
        assert list(s.files.list()) == []


def test_upload_of_the_largest_file_of_a_thread(service, tmp_path):
    """The largest form, not held in the client's memory."""
    with open(tmp_path / "large", "wb") as f:
        f.truncate(100 << 20)
    with lodge.SandboxClient("remote", service.url, KEY) as c:
        c.get_or_create_session("ada", "large")
        assert c.upload_file(tmp_path / "large")["size_bytes"] == 100 << 20
        assert os.path.getsize(c.download_file("large", tmp_path / "back")) == 100 << 20
