# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, slow ones, and disconnected ones: the daemon stays small and serves the others. LODGE_SLOW=1
uses the numbers it is designed for, otherwise the tests use smaller ones."""
import contextlib
import hashlib
import http.client
import json
import os
import resource
import select
import socket
import subprocess
import sys
import threading
import time

import pytest

from client import KEY, Lodged, wait_for

SLOW = os.environ.get("LODGE_SLOW") == "1"
MB = 1 << 20
IDLE_KB = 20  # memory of one idle connection


def many(slow, otherwise):
    return slow if SLOW else otherwise


# ---- resources of the daemon ------------------------------------------------------------------


class Process:
    """Resource usage of lodged, from /proc."""

    def __init__(self, lodged):
        self.pid = lodged.process.pid
        with open(f"/proc/{self.pid}/maps") as f:
            self.sanitized = "libasan" in f.read()

    def status(self, name):
        with open(f"/proc/{self.pid}/status") as f:
            return int(next(line for line in f if line.startswith(name + ":")).split()[1])

    def memory(self):
        return self.status("RssAnon") * 1024

    def threads(self):
        return self.status("Threads")

    def descriptors(self):
        return len(self.files())

    def files(self):
        """Without connections to sandboxes, of which the engine caches up to twelve."""
        with open(f"/proc/{self.pid}/net/unix") as f:
            local = {f"socket:[{line.split()[6]}]" for line in f.readlines()[1:]}
        links = []
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/{self.pid}/fd/{fd}"))
        return sorted(link for link in links if link not in local)

    def bound(self, limit):
        """AddressSanitizer retains freed memory (256 MB) and needs a second stack for each thread."""
        return limit + (768 * MB if self.sanitized else 0)


@contextlib.contextmanager
def grows_at_most(process, limit):
    """The bound holds during the whole time, not only at the end."""
    before, most, done = process.memory(), [0], threading.Event()

    def watch():
        while not done.wait(0.1):
            most[0] = max(most[0], process.memory() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    assert max(most[0], process.memory() - before) <= process.bound(limit)


@pytest.fixture
def process(lodged):
    return Process(lodged)


@pytest.fixture
def at(client):
    limits = {"disk_bytes": 4096 * MB, "file_bytes": 2048 * MB}
    return "/v1/sessions/" + client.enter(key="load", limits=limits)


def run(client, at, command, **body):
    answer = client.post(at + "/exec", dict(body, command=command))
    assert answer.status == 200, answer
    return answer.json


def served(client, at):
    """Whether another client's call works."""
    return run(client, at, "echo well")["stdout"] == "well\n"


def warm(client, at):
    """Make lodged open what it caches, for commands and for files."""
    callers = [threading.Thread(target=served, args=(client, at)) for _ in range(4)]
    for t in callers:
        t.start()
    assert client.call("PUT", at + "/files/warm", b"x").status in (200, 201, 204)
    assert client.delete(at + "/files/warm").status in (200, 204)
    for t in callers:
        t.join()
    assert served(client, at)


def dial(lodged):
    return socket.create_connection((lodged.host, lodged.port), timeout=180)


def head(method, path, *headers):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1",
                        f"Authorization: Bearer {KEY}", "Content-Type: application/json",
                        *headers, "", ""]).encode()


# ---- connections ------------------------------------------------------------------------------

# Connections that each made one request and then stay silent, in a process with its own descriptor limit.
CROWD = """
import resource, socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
crowd = []
for _ in range(count):
    s = socket.create_connection((host, port), timeout=180)
    s.sendall(b"GET /health HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200 ")
    crowd.append(s)
print("there", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def crowd(lodged, count, each=2500):
    with contextlib.ExitStack() as stack:
        parts = [stack.enter_context(subprocess.Popen(
            [sys.executable, "-c", CROWD, lodged.host, str(lodged.port), str(min(each, count - i))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)) for i in range(0, count, each)]
        try:
            for p in parts:
                assert p.stdout.readline() == b"there\n"
            yield
        finally:
            for p in parts:
                p.kill()


def test_idle_connections_need_little_memory_and_block_nothing(lodged, client, at, process):
    count = many(10000, 1000)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < count + 500:
        pytest.skip(f"lodged may not have {count} descriptors")
    warm(client, at)
    before = process.descriptors()
    with grows_at_most(process, count * IDLE_KB * 1024 + 8 * MB):
        with crowd(lodged, count):
            assert process.descriptors() >= count
            for _ in range(5):
                assert served(client, at)
    assert wait_for(lambda: process.descriptors() <= before), process.files()


def drip(crowd, until):
    """Send one byte at a time on each connection until the server has closed all."""
    left = list(crowd)
    while left and time.monotonic() < until:
        for s in list(left):
            readable = select.select([s], [], [], 0)[0]
            with contextlib.suppress(OSError):
                if readable and not s.recv(4096):
                    left.remove(s)
                elif not readable:
                    s.send(b"a")
                continue
            if s in left:
                left.remove(s)
        time.sleep(0.2)
    return left


def test_slow_senders_are_disconnected():
    lodged = Lodged(connection_slow="3s", connection_idle="4s")
    with contextlib.closing(lodged), contextlib.ExitStack() as stack:
        client = lodged.client()
        at = "/v1/sessions/" + client.enter(key="slow")
        warm(client, at)
        process = Process(lodged)
        before = process.descriptors()
        starts = [b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"G",
                  head("PUT", at + "/files/x", "Content-Length: 100000"),
                  head("POST", at + "/exec", "Transfer-Encoding: chunked") + b"100000\r\n"]
        slow = []
        for i in range(many(500, 100)):
            slow.append(stack.enter_context(dial(lodged)))
            slow[-1].sendall(starts[i % len(starts)])
        left = []
        dripper = threading.Thread(
            target=lambda: left.extend(drip(slow, time.monotonic() + 300)))
        dripper.start()
        answers = []
        while dripper.is_alive():
            answers.append(served(client, at))
        assert answers and all(answers)
        assert not left
        assert wait_for(lambda: process.descriptors() <= before), process.files()


# ---- streams ----------------------------------------------------------------------------------


class Stream:
    """A command's NDJSON, read line by line."""

    def __init__(self, client, at, command, **body):
        self.connection, self.response = client.open(
            "POST", at + "/exec", dict(body, command=command), {"Accept": "application/x-ndjson"})
        assert self.response.status == 200

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()
        self.connection.close()

    def until(self, name):
        for line in self.response:
            event = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"the stream ended before {name}")


def test_many_concurrent_streams_finish(lodged, client, process):
    each, sessions = 50, many(10, 1)
    paths = ["/v1/sessions/" + client.enter(key=f"streams-{i}") for i in range(sessions)]
    for at in paths:
        run(client, at, "mkfifo /tmp/gate")
    received, failed, there = [], [], threading.Semaphore(0)

    def follow(at, n):
        try:
            command = f"echo begun; : < /tmp/gate; echo {n}"
            with Stream(client, at, command, timeout_ms=120000) as stream:
                assert stream.until("stdout")["data"] == "begun\n"
                there.release()
                received.append(int(stream.until("stdout")["data"]))
                assert stream.until("exit")["exit_code"] == 0
        except BaseException as e:  # of a thread: checked below
            failed.append(e)
            there.release()

    threads = [threading.Thread(target=follow, args=(at, i * each + k))
               for i, at in enumerate(paths) for k in range(each)]
    with grows_at_most(process, len(threads) * MB // 2):
        for t in threads:
            t.start()
        for _ in threads:
            assert there.acquire(timeout=120)
        for at in paths:  # all commands have started
            run(client, at, ": > /tmp/gate")
        for t in threads:
            t.join()
    assert not failed
    assert sorted(received) == list(range(len(threads)))
    for at in paths:
        assert client.delete(at).status == 200


def test_a_command_waits_for_a_stalled_reader(lodged, client, at, process):
    pieces = many(1000, 64)
    command = (f"i=0; while [ $i -lt {pieces} ]; do head -c {MB} /dev/zero | tr '\\0' a; "
               "i=$((i+1)); echo $i > /tmp/pieces; done")
    run(client, at, "echo 0 > /tmp/pieces")

    def progress():
        return int(run(client, at, "cat /tmp/pieces")["stdout"] or 0)

    def stands_still():
        seen = {progress() for _ in range(3) if not time.sleep(0.5)}
        return len(seen) == 1 and seen != {0}

    with Stream(client, at, command, timeout_ms=300000) as stream:
        stream.until("stdout")
        with grows_at_most(process, 8 * MB):
            assert wait_for(stands_still)
            for _ in range(5):
                assert served(client, at)
            assert progress() < pieces / 2
            # it continues when the reader does
            size = 0
            for line in stream.response:
                event = json.loads(line)
                size += len(event.get("data", ""))
        assert event["event"] == "exit" and event["exit_code"] == 0
    assert progress() == pieces
    # the first piece was already read
    assert pieces * MB - MB <= size <= pieces * MB


# ---- files ------------------------------------------------------------------------------------


def test_a_large_file_is_transferred_in_constant_memory(client, at, process):
    count, piece = many(1024, 64), os.urandom(MB)
    up, down = hashlib.sha256(), hashlib.sha256()

    def body():
        for i in range(count):
            data = i.to_bytes(8, "big") + piece[8:]
            up.update(data)
            yield data

    with grows_at_most(process, 8 * MB):
        connection = http.client.HTTPConnection(client.host, client.port, timeout=180)
        with contextlib.closing(connection):
            connection.request("PUT", at + "/files/large", body(),
                               {"Authorization": f"Bearer {KEY}", "Content-Length": str(count * MB)})
            answer = connection.getresponse()
            assert answer.status in (200, 201, 204), answer.read()
        connection, response = client.open("GET", at + "/files/large")
        with contextlib.closing(connection):
            assert int(response.headers["Content-Length"]) == count * MB
            while data := response.read(MB):
                down.update(data)
    assert up.digest() == down.digest()
    assert client.delete(at + "/files/large").status in (200, 204)


def test_a_download_of_a_shrinking_file_is_aborted(client, at):
    run(client, at, "head -c 200000000 /dev/zero > /tmp/shrinks")
    connection, response = client.open("GET", at + "/files//tmp/shrinks")
    with contextlib.closing(connection):
        assert response.status == 200
        response.read(MB)
        run(client, at, ": > /tmp/shrinks")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            response.read()


def test_an_incomplete_archive_is_aborted(client):
    at = "/v1/sessions/" + client.enter(key="archive")
    run(client, at, "mkdir /tmp/d; truncate -s 1000000000 /tmp/d/large")
    connection, response = client.open("GET", at + "/archive?path=/tmp/d")
    with contextlib.closing(connection):
        assert response.status == 200
        response.read(MB)
        assert client.delete(at).status == 200
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while response.read(MB):
                pass


# ---- disconnects ------------------------------------------------------------------------------


def disconnect_in_the_head(lodged, at):
    with dial(lodged) as s:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: 127")


def disconnect_in_the_body(lodged, at):
    with dial(lodged) as s:
        s.sendall(head("PUT", at + "/files/half", "Content-Length: 1000000") + b"x" * 10000)


def disconnect_in_a_stream(lodged, at):
    body = json.dumps({"command": "echo here; sleep 2; head -c 1000000 /dev/zero"}).encode()
    with dial(lodged) as s:
        s.sendall(head("POST", at + "/exec", "Accept: application/x-ndjson",
                       f"Content-Length: {len(body)}") + body)
        got = b""
        while b"here" not in got:
            assert (piece := s.recv(65536)), got
            got += piece


def disconnect_in_a_file(lodged, at):
    with dial(lodged) as s:
        s.sendall(head("GET", at + "/files//usr/bin/bash"))
        assert s.recv(100)


def test_disconnected_clients_leave_nothing(lodged, client, at, process):
    ways = [disconnect_in_the_head, disconnect_in_the_body, disconnect_in_a_stream, disconnect_in_a_file]
    warm(client, at)
    before = process.threads(), process.descriptors()
    for i in range(many(200, 40)):
        ways[i % len(ways)](lodged, at)
    assert served(client, at)
    assert wait_for(lambda: process.threads() <= before[0] and process.descriptors() <= before[1],
                    seconds=40), (before, process.threads(), process.files())
    entries = client.get(at + "/files/?list").json["entries"]
    assert not [e for e in entries if "half" in e["name"] or e["name"].startswith(".lodge-")]
