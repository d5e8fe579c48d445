# SPDX-License-Identifier: Apache-2.0
"""A lodged that is killed or stopped, and the next one: nothing acknowledged is lost."""
import base64
import contextlib
import hashlib
import http.client
import io
import json
import os
import random
import signal
import socket
import tarfile
import threading
import time

import pytest

from client import Lodged, is_alive, name_of, wait_for
from machine import descendants, words_of

SLOW = bool(os.environ.get("LODGE_SLOW"))
LOST = (OSError, http.client.HTTPException)  # what a client sees when lodged dies


@pytest.fixture(scope="module")
def lodged():
    with contextlib.closing(Lodged(drain="3s")) as d:
        yield d


def kill(lodged):
    lodged.stop(signal.SIGKILL)
    lodged.start()
    return lodged.client()


def remove(client, *ids):
    for i in ids:
        assert client.delete("/v1/sessions/" + i).status == 200


# ---- commands and their readers ---------------------------------------------------------------


class Command:
    """Prints numbered lines for a while. `got` is what its reader received, in order and without gaps."""
    much = 50_000_000 if SLOW else 10_000_000

    def __init__(self, at, n, wild, steps=10):
        self.at, self.n, self.wild = at, n, wild
        self.code = n % 7
        self.got, self.kept, self.whole, self.path = [b"", b""], None, False, None
        if n == 0:
            self.text = f"head -c {self.much} /dev/zero | tr '\\0' x"
            self.want = [b"x" * self.much, b""]
        else:
            errors = "echo error-$i >&2; " if n % 3 == 0 else ""
            self.text = f"for i in {{1..{steps}}}; do echo line-{n}-$i; {errors}sleep .2; done"
            numbers = range(1, steps + 1)
            self.want = ["".join(f"line-{n}-{i}\n" for i in numbers).encode(),
                         "".join(f"error-{i}\n" for i in numbers).encode() if errors else b""]

    def body(self, **more):
        text = f"until [ -e ~/go ]; do sleep .2; done; {self.text}; exit {self.code}"
        return dict(command=text, idempotency_key=f"once-{self.wild}-{self.n}", encoding="base64",
                    timeout_ms=0, max_output_bytes=16 << 20, **more)

    def put(self, stream, offset, data):
        if offset != len(self.got[stream]):
            raise AssertionError(f"{self.text}: offset {offset} after {len(self.got[stream])} bytes")
        self.got[stream] += data

    def event(self, name, e):
        if name == "started":
            self.path = f"{self.at}/execs/{e['exec_id']}"
        elif name in ("stdout", "stderr"):
            self.put(name == "stderr", e["offset"], base64.b64decode(e["data"]))
        elif name == "exit":
            self.whole = True
            assert e["exit_code"] == self.code and not e["truncated"]

    def read_lines(self, response):
        for line in response:
            if not line.endswith(b"\n"):
                return
            e = json.loads(line)
            self.event(e["event"], e)

    def read_frames(self, response):
        name = None
        for line in response:
            if not line.endswith(b"\n"):
                return
            word, _, rest = line.decode().rstrip("\n").partition(": ")
            if word == "event":
                name = rest
            elif word == "data":
                self.event(name, json.loads(rest))

    def stream(self, client):
        """Read until the stream ends or lodged dies."""
        frames = self.n % 2
        accept = "text/event-stream" if frames else "application/x-ndjson"
        with contextlib.suppress(*LOST):
            connection, response = client.open("POST", self.at + "/exec", self.body(), {"Accept": accept})
            with contextlib.closing(connection):
                assert response.status == 200
                (self.read_frames if frames else self.read_lines)(response)

    def start(self, client):
        answer = client.post(self.at + "/exec", self.body(background=True))
        assert answer.status == 202, answer
        self.path = f"{self.at}/execs/{answer.json['exec_id']}"

    def poll(self, client):
        """Continue by offset."""
        done = False
        while not done:
            o = client.get(f"{self.path}/output?encoding=base64&wait_ms=5000&stdout_offset={len(self.got[0])}"
                           f"&stderr_offset={len(self.got[1])}")
            assert o.status == 200, o
            o = o.json
            for stream, name in enumerate(("stdout", "stderr")):
                data = base64.b64decode(o[name])
                assert o[name + "_offset"] == len(self.got[stream]) + len(data)
                self.got[stream] += data
            done = o["done"]
        self.whole = True

    def poll_until_lost(self, client):
        with contextlib.suppress(*LOST):
            self.start(client)
            self.poll(client)

    def check(self):
        for got, want in zip(self.got, self.want):
            assert got == want, (self.text, len(got), len(want), got[-200:])


def fields(client, ids, *names):
    answers = [client.get("/v1/sessions/" + i).json["session"] for i in ids]
    return [[s[n] for n in names] for s in answers]


@pytest.mark.parametrize("round_", range(3 if SLOW else 1))
def test_killed_with_commands_and_streams(lodged, round_):
    """Many commands, some streamed, some read by offset, some without a reader: no byte is missing or repeated."""
    chance = random.Random()
    seed = int(os.environ.get("LODGE_SEED", chance.randrange(1 << 30))) + round_
    chance.seed(seed)
    print("LODGE_SEED", seed)
    client = lodged.client()
    made = [client.post("/v1/sessions", {"idempotency_key": f"made-{seed}-{i}",
                                         "limits": {"memory_bytes": 1 << 30, "output_bytes": 64 << 20}}) for i in range(5)]
    ids = [a.json["session"]["id"] for a in made]
    commands = [Command(f"/v1/sessions/{ids[n % 5]}", n, seed) for n in range(50)]
    streams, polled = 20, 30
    threads = [threading.Thread(target=c.stream, args=(client,)) for c in commands[:streams]]
    threads += [threading.Thread(target=c.poll_until_lost, args=(client,)) for c in commands[streams:polled]]
    for t in threads:
        t.start()
    for c in commands[polled:]:
        c.start(client)
    assert wait_for(lambda: all(c.path for c in commands))
    for i in ids:
        assert client.call("PUT", f"/v1/sessions/{i}/files/go", b"").status == 201
    before = fields(client, ids, "generation", "incarnation", "version", "state", "created_at")
    time.sleep(chance.uniform(0, 2))
    lodged.stop(signal.SIGKILL)
    for t in threads:
        t.join(180)
        assert not t.is_alive()
    assert any(not c.whole for c in commands[:polled])
    lodged.start()
    client = lodged.client()
    assert fields(client, ids, "generation", "incarnation", "version", "state", "created_at") == before
    again = client.post("/v1/sessions", {"idempotency_key": f"made-{seed}-0"}).json
    assert again["session"]["id"] == ids[0] and again["outcome"] == "reused"
    threads = [threading.Thread(target=c.poll, args=(client,)) for c in commands]
    for t in threads:
        t.start()
    for t in threads:
        t.join(180)
    for c in commands:
        assert c.whole, c.text
        c.check()
        x = client.get(c.path).json["exec"]
        assert (x["state"], x["exit_code"], x["signal"]) == ("exited", c.code, None), x
        assert x["stdout_bytes"] == len(c.got[0]) and x["stderr_bytes"] == len(c.got[1])
    for c in commands[1::7]:
        same = client.post(c.at + "/exec", c.body())
        assert same.status == 200 and c.path.endswith(same.json["exec_id"]), same
        assert base64.b64decode(same.json["stdout"]) == c.want[0] and same.json["exit_code"] == c.code
    remove(client, *ids)


def test_a_stream_is_repeated_by_its_idempotency_key(lodged):
    """The same request gets the whole output again, from the beginning."""
    client = lodged.client()
    i = client.enter()
    assert client.call("PUT", f"/v1/sessions/{i}/files/go", b"").status == 201
    c = Command("/v1/sessions/" + i, 3, time.time_ns())
    t = threading.Thread(target=c.stream, args=(client,))
    t.start()
    assert wait_for(lambda: c.got[0])
    client = kill(lodged)
    t.join(180)
    assert not c.whole
    first, c.got = c.path, [b"", b""]
    c.stream(client)
    assert c.whole and c.path == first
    c.check()
    remove(client, i)


def test_input_reaches_a_command_after_a_kill(lodged):
    client = lodged.client()
    i = client.enter()
    answer = client.post(f"/v1/sessions/{i}/exec", {"command": "while read x; do echo got $x; done",
                                                    "background": True})
    path = f"/v1/sessions/{i}/execs/{answer.json['exec_id']}"
    assert client.post(path + "/stdin", b"one\n").status == 200
    client = kill(lodged)
    assert client.post(path + "/stdin?eof=1", b"two\n").status == 200
    assert wait_for(lambda: client.get(path).json["exec"]["state"] == "exited")
    assert client.get(path + "/output").json["stdout"] == "got one\ngot two\n"
    remove(client, i)


def test_deadlines_are_enforced_without_lodged(lodged):
    """lodge-init enforces the timeout of a command, and the next lodged that of a session."""
    client = lodged.client()
    i = client.enter()
    short = client.enter(idle_timeout_ms=1000, on_idle="destroy")
    answer = client.post(f"/v1/sessions/{i}/exec", {"command": "sleep 600 & sleep 601; echo no",
                                                    "background": True, "timeout_ms": 5000})
    path = f"/v1/sessions/{i}/execs/{answer.json['exec_id']}"
    init = lodged.init_of(client.session(i))

    def sleeping():
        return [p for p in descendants(init) if name_of(p) == "sleep" and is_alive(p)]

    assert wait_for(sleeping)
    lodged.stop(signal.SIGKILL)
    assert wait_for(lambda: not sleeping())
    began = time.time() * 1000
    lodged.start()
    client = lodged.client()
    x = wait_for(lambda: client.get(path).json["exec"]["state"] != "running" and client.get(path).json["exec"])
    assert x["state"] == "killed" and x["timed_out"] and x["ended_at"] <= began, x
    assert client.post(f"/v1/sessions/{i}/exec", {"command": "pgrep -fx 'sleep 60[01]'"}).json["stdout"] == ""
    assert wait_for(lambda: client.get("/v1/sessions/" + short).status == 410)
    remove(client, i)


# ---- kills during work ------------------------------------------------------------------------


class Work(threading.Thread):
    """Repeats one kind of operation in one session, and records what was acknowledged."""

    def __init__(self, client, name):
        super().__init__()
        self.client, self.name = client, name
        self.id = client.enter(key=f"{name}-{time.time_ns()}")
        self.at = "/v1/sessions/" + self.id
        self.acked, self.tried, self.trouble = [], [], None
        self.generation = 0

    def run(self):
        try:
            for n in range(10_000):
                self.step(n)
        except LOST:
            pass
        except AssertionError as e:
            self.trouble = e

    def call(self, *args, **kw):
        answer = self.client.call(*args, **kw)
        assert answer.status in (200, 201, 204), answer
        return answer

    def bytes_of(self, n):
        return hashlib.sha256(f"{self.id}-{n}".encode()).digest() * (1 + n * 7919 % 20_000)

    def check_generation(self, client):
        s = client.get(self.at).json["session"]
        assert s["generation"] >= self.generation, s
        return s


class Writes(Work):
    def step(self, n):
        self.tried.append(n)
        self.call("PUT", f"{self.at}/files/d/f{n % 20}?mkdir=1", self.bytes_of(n))
        self.acked.append(n)

    def check(self, client):
        last = {}
        for n in self.acked:
            last[n % 20] = n
        for slot, n in last.items():
            got = client.get(f"{self.at}/files/d/f{slot}").data
            # the last write may have succeeded without a response
            assert got in (self.bytes_of(n), self.bytes_of(self.tried[-1])), (self.name, slot, len(got))
        names = {e["name"] for e in client.get(self.at + "/files/d?list").json["entries"]}
        assert names <= {f"f{n % 20}" for n in self.tried}, names


class Archives(Work):
    def step(self, n):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for k in range(30):
                data = self.bytes_of(n * 30 + k)
                info = tarfile.TarInfo(f"a{n}/f{k}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        self.call("PUT", f"{self.at}/archive?path=.", out.getvalue(), headers={"Content-Type": "application/x-tar"})
        self.acked.append(n)
        self.call("GET", f"{self.at}/archive?path=a{n}")

    def check(self, client):
        for n in self.acked[-3:]:
            tar = tarfile.open(fileobj=io.BytesIO(client.get(f"{self.at}/archive?path=a{n}").data))
            seen = {m.name.rpartition("/")[2]: tar.extractfile(m).read() for m in tar if m.isfile()}
            assert seen == {f"f{k}": self.bytes_of(n * 30 + k) for k in range(30)}


class Snapshots(Work):
    def step(self, n):
        self.call("PUT", f"{self.at}/files/state", str(n).encode())
        s = self.call("POST", self.at + "/snapshots", {"name": f"s{n}"}).json["snapshot"]
        self.acked.append((s["id"], n))

    def check(self, client):
        kept = {s["id"] for s in client.get(self.at + "/snapshots?limit=500").json["snapshots"]}
        assert {i for i, _ in self.acked} <= kept and len(kept) <= len(self.acked) + 1
        for i, n in self.acked[-2:]:
            answer = client.post("/v1/sessions", {"snapshot": i})
            assert answer.status == 201, answer
            child = answer.json["session"]["id"]
            assert client.get(f"/v1/sessions/{child}/files/state").data == str(n).encode()
            remove(client, child)


class Forks(Work):
    def step(self, n):
        self.call("PUT", f"{self.at}/files/state", str(n).encode())
        forks = self.call("POST", self.at + "/fork", {"key": f"{self.id}-{n}"}).json["sessions"]
        self.acked.append((forks[0].get("session", forks[0])["id"], n))
        if len(self.acked) > 2:
            self.call("DELETE", "/v1/sessions/" + self.acked.pop(0)[0])

    def check(self, client):
        for i, n in self.acked:
            assert client.get(f"/v1/sessions/{i}/files/state").data == str(n).encode()


class Hibernates(Work):
    def step(self, n):
        self.call("PUT", f"{self.at}/files/state", str(n).encode())
        self.acked.append(n)
        s = self.call("POST", self.at + "/hibernate").json["session"]
        assert s["generation"] > self.generation
        self.generation = s["generation"]

    def check(self, client):
        got = client.get(f"{self.at}/files/state").data
        assert got in (str(self.acked[-1]).encode(), str(self.acked[-1] + 1).encode())


class Lifetimes(Work):
    def step(self, n):
        self.acked.append(self.client.enter(key=f"{self.id}-live", metadata={"n": str(n)}))
        self.call("DELETE", "/v1/sessions/" + self.acked[-1])

    def check(self, client):
        assert all(client.get("/v1/sessions/" + i).status == 410 for i in self.acked[:-1])
        assert client.get("/v1/sessions/" + self.acked[-1]).status in (200, 410)


def unexpected_files(home):
    """Files that remain when there is no session."""
    known = ("lodge.db", "lodge.db-wal", "lodge.db-shm", "lodge.db-reserve", "lodge.db.owner", "logs", "keeper",
             "volume.btrfs", "volume.lock", "lodge.sock", "addresses")
    return [n for n in os.listdir(home) + os.listdir(home + "/keeper")
            if n not in known and not n.startswith("host-")] + os.listdir(home + "/logs")


@pytest.mark.parametrize("round_", range(3 if SLOW else 1))
def test_killed_during_operations(lodged, round_):
    """Acknowledged operations took effect; others took effect completely or not at all."""
    chance = random.Random()
    seed = int(os.environ.get("LODGE_SEED", chance.randrange(1 << 30))) + round_
    chance.seed(seed)
    print("LODGE_SEED", seed)
    client = lodged.client()
    client.enter(key="warm")
    work = [kind(client, kind.__name__) for kind in (Writes, Writes, Archives, Snapshots, Forks, Hibernates, Lifetimes)]
    for w in work:
        w.start()
    assert wait_for(lambda: all(len(w.acked) > 1 or w.trouble for w in work))
    time.sleep(chance.uniform(0, 1))
    lodged.stop(signal.SIGKILL)
    for w in work:
        w.join(180)
    lodged.start()
    client = lodged.client()
    for w in work:
        assert w.trouble is None, (w.name, w.trouble)
        w.check_generation(client)
        w.check(client)
    print({w.name: len(w.acked) for w in work})
    while left := client.get("/v1/sessions").json["sessions"]:
        remove(client, *(s["id"] for s in left))
    assert wait_for(lambda: not unexpected_files(lodged.home)), unexpected_files(lodged.home)


# ---- orderly shutdown -------------------------------------------------------------------------


def call_in_thread(*args, **kw):
    """Call in a thread, which stores the response or the error in `got`."""
    class Call(threading.Thread):
        got = None

        def run(self):
            try:
                self.got = args[0](*args[1:], **kw)
            except LOST as e:
                self.got = e

    t = Call()
    t.start()
    return t


def end(lodged, *signals):
    """Send the signals; return the exit status. A drain must not take this long."""
    for s in signals:
        lodged.process.send_signal(s)
        time.sleep(.3)
    lodged.process.stdout.close()
    return lodged.process.wait(120)


def running(client, at):
    return [x for x in client.get(at + "/execs?limit=100").json["execs"] if x["state"] == "running"]


def sleeping_for(init, seconds):
    """The processes below this one that sleep for so many seconds."""
    return [p for p in descendants(init) if words_of(p) == ["sleep", str(seconds)]]


def test_a_shutdown_lets_requests_finish():
    with contextlib.closing(Lodged(drain="120s")) as lodged:
        finish_during_a_shutdown(lodged)


def finish_during_a_shutdown(lodged):
    client = lodged.client()
    i = client.enter()
    at = "/v1/sessions/" + i
    init = lodged.init_of(client.session(i))
    c = Command(at, 3, time.time_ns(), steps=4)
    waited = call_in_thread(client.post, at + "/exec", {"command": "sleep 577; echo done", "timeout_ms": 0})
    streamed = call_in_thread(c.stream, client)
    long = call_in_thread(client.get, "/v1/events", headers={"Accept": "text/event-stream"})
    idle = http.client.HTTPConnection(client.host, client.port, timeout=180)
    idle.request("GET", "/health")
    idle.getresponse().read()
    assert wait_for(lambda: len(running(client, at)) == 2 and sleeping_for(init, 577))
    assert client.call("PUT", at + "/files/go", b"").status == 201
    lodged.process.send_signal(signal.SIGTERM)
    assert wait_for(lambda: "shutting down" in lodged.log())
    with pytest.raises(LOST):
        client.get("/health")
    with contextlib.suppress(*LOST):  # closed already, or gets an error
        idle.request("GET", "/health")
        assert idle.getresponse().status == 503
    idle.close()
    for p in sleeping_for(init, 577):
        os.kill(p, signal.SIGTERM)
    for t in (waited, streamed, long):
        t.join(180)
    assert waited.got.status == 200 and waited.got.json["stdout"] == "done\n"
    assert waited.got.headers["Connection"] == "close" and c.whole
    c.check()
    assert long.got.status == 200
    lodged.process.stdout.close()
    assert lodged.process.wait(180) == 0
    lodged.start()
    client = lodged.client()
    assert client.get(at).json["session"]["state"] == "active"
    remove(client, i)


def test_streams_longer_than_the_drain_are_cut_and_can_continue(lodged):
    """The missing last event shows that the stream is incomplete."""
    client = lodged.client()
    i = client.enter()
    at = "/v1/sessions/" + i
    commands = [Command(at, n, time.time_ns(), steps=40) for n in (3, 6)]
    late = {"command": "until [ -e ~/late ]; do sleep .1; done; echo late", "idempotency_key": "late", "timeout_ms": 0}
    threads = [call_in_thread(c.stream, client) for c in commands]
    waited = call_in_thread(client.post, at + "/exec", late)
    assert wait_for(lambda: len(running(client, at)) == 3 and all(c.path for c in commands))
    assert client.call("PUT", at + "/files/go", b"").status == 201
    status = end(lodged, signal.SIGTERM)
    for t in [*threads, waited]:
        t.join(180)
    assert status == 0
    assert not any(c.whole for c in commands) and isinstance(waited.got, LOST)
    lodged.start()
    client = lodged.client()
    for c in commands:
        c.poll(client)
        c.check()
    assert client.call("PUT", at + "/files/late", b"").status == 201
    same = client.post(at + "/exec", late)
    assert same.json["stdout"] == "late\n"
    remove(client, i)


def test_a_second_signal_ends_at_once():
    d = Lodged(drain="1h")
    try:
        client = d.client()
        at = "/v1/sessions/" + client.enter(key="x")
        waited = call_in_thread(client.post, at + "/exec", {"command": "sleep 600", "timeout_ms": 0})
        assert wait_for(lambda: running(client, at))
        status = end(d, signal.SIGTERM, signal.SIGTERM)
        waited.join(180)
        assert status == 0 and isinstance(waited.got, LOST)
        d.start()
        assert running(d.client(), at)
    finally:
        d.close()


@pytest.mark.parametrize("how", ("waited for", "stream", "background", "later", "upload", "watch"))
def test_stalled_input_does_not_delay_the_shutdown(lodged, how):
    """Neither a command that does not read its input nor a client that sends none."""
    client = lodged.client()
    i = client.enter()
    at = "/v1/sessions/" + i
    body = {"command": "sleep 600", "timeout_ms": 0, "stdin": "x" * 500_000}
    if how == "waited for":
        t = call_in_thread(client.post, at + "/exec", body)
    elif how == "stream":
        t = call_in_thread(client.post, at + "/exec", body, headers={"Accept": "application/x-ndjson"})
    elif how == "background":
        t = call_in_thread(client.post, at + "/exec", dict(body, background=True))
    elif how == "later":
        x = client.post(at + "/exec", {"command": "sleep 600", "timeout_ms": 0, "background": True})
        t = call_in_thread(client.post, f"{at}/execs/{x.json['exec_id']}/stdin", b"x" * 500_000)
    elif how == "upload":
        t = call_in_thread(upload_slowly, client, at + "/files/half")
    else:
        t = call_in_thread(client.get, at + "/watch?path=.", headers={"Accept": "text/event-stream"})
    if how in ("upload", "watch"):
        time.sleep(.5)
    else:
        assert wait_for(lambda: running(client, at))
    assert end(lodged, signal.SIGTERM, signal.SIGTERM) == 0
    t.join(180)
    lodged.start()
    client = lodged.client()
    names = [e["name"] for e in client.get(at + "/files/.?list").json["entries"]]
    assert not [n for n in names if "half" in n or "tmp" in n], names
    remove(client, i)


def upload_slowly(client, path):
    with socket.create_connection((client.host, client.port), timeout=180) as s:
        s.sendall(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nx-api-key: {client.key}\r\n"
                  "Content-Length: 1000000\r\n\r\nbegin".encode())
        return s.recv(1000)
