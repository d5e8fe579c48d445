# SPDX-License-Identifier: Apache-2.0
"""A lodged of one's own, and a client of it."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.realpath(os.environ.get("LODGE_BUILD", os.path.join(SOURCE, "build")))
LODGED = os.path.join(BUILD, "lodged")
KEY = "lodge-test-key-0123456789"
ANSWER_SECONDS = 60


def wait_for(condition, seconds=ANSWER_SECONDS, pause=0.05):
    """The first true value, or the last false one."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)


def routes():
    """Method, path and least scope of all that can be asked; "-" is no key."""
    text = subprocess.run([LODGED, "--print-routes"], stdout=subprocess.PIPE, check=True).stdout
    return [tuple(line.split()) for line in text.decode().splitlines()]


THREADS = ("/create_session", "/get_session", "/execute", "/upload_file", "/download_file", "/list_files", "/cleanup",
           "/status/")


def is_older(path):
    """Of a surface that tells errors in its own words."""
    return path.startswith(("/api/", *THREADS))


def quote(text):
    return urllib.parse.quote(text, safe="")


class Answer:
    def __init__(self, response, data):
        self.status, self.headers, self.data = response.status, response.headers, data

    @property
    def json(self):
        return json.loads(self.data)

    @property
    def message(self):
        """The sentence of an error, as /v1 or an older surface tells it."""
        error = self.json["error"]
        return error if isinstance(error, str) else error["message"]

    @property
    def code(self):
        return self.json["error"]["code"]

    def __repr__(self):
        return f"{self.status} {self.data[:600]!r}"


def name_of(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    return ""


def children(pid):
    """Of all its threads."""
    found = []
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/task/{tid}/children") as f:
                    found += [int(x) for x in f.read().split()]
    return found


def keepers_of(home):
    """Also those whose lodged has ended."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if b"lodge-keeper" in words[0] and any(w.startswith(home.encode()) for w in words[1:]):
                found.append(int(pid))
    return found


def is_alive(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0] not in "ZX"
    return False


class Client:
    """Calls with one key; each on a connection of its own."""

    def __init__(self, host, port, key):
        self.host, self.port, self.key = host, port, key

    def open(self, method, path, body=None, headers=None):
        """The connection and the response, of which nothing has been read."""
        headers = dict(headers or {})
        if self.key:
            headers.setdefault("Authorization", f"Bearer {self.key}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_SECONDS)
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def call(self, method, path, body=None, headers=None):
        connection, response = self.open(method, path, body, headers)
        with contextlib.closing(connection):
            return Answer(response, response.read())

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.call("POST", path, body, **kw)

    def put(self, path, body=None, **kw):
        return self.call("PUT", path, body, **kw)

    def patch(self, path, body=None, **kw):
        return self.call("PATCH", path, body, **kw)

    def delete(self, path, **kw):
        return self.call("DELETE", path, **kw)

    def enter(self, **body):
        answer = self.post("/v1/sessions", body)
        assert answer.status in (200, 201), answer
        return answer.json["session"]["id"]

    def session(self, sid):
        answer = self.get(f"/v1/sessions/{sid}")
        assert answer.status == 200, answer
        return answer.json["session"]

    def run(self, sid, command):
        """What it wrote."""
        answer = self.post(f"/v1/sessions/{sid}/exec", {"command": command})
        assert answer.status == 200 and answer.json["exit_code"] == 0, answer
        return answer.json["stdout"]


class Lodged:
    def __init__(self, program=LODGED, **settings):
        self.home = tempfile.mkdtemp(prefix="lodge-http-", dir="/var/tmp")
        self.program = program
        self.settings = settings
        self.process = None
        self.start()

    def start(self):
        env = dict(os.environ, LODGE_API_KEY=KEY,
                   **{f"LODGE_{k.upper()}": str(v) for k, v in self.settings.items()})
        with open(self.home + ".log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--data", self.home, "--listen", "127.0.0.1:0"], env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline().decode()
        at = re.search(r"http://([0-9.]+):([0-9]+)", line)
        assert at, f"lodged did not start: {line!r} {self.log()}"
        self.host, self.port = at.group(1), int(at.group(2))

    def log(self):
        with open(self.home + ".log", "rb") as f:
            return f.read()[-3000:].decode(errors="replace")

    def client(self, key=KEY):
        return Client(self.host, self.port, key)

    def new_key(self, **body):
        """The record and a client that has it."""
        answer = self.client().post("/v1/keys", body)
        assert answer.status == 201, answer
        return answer.json["key"], self.client(answer.json["secret"])

    def raw(self, data, end=False):
        """Sends bytes as they are (end: and no more); all that comes until the connection is closed
        or nothing more comes."""
        got = b""
        with socket.create_connection((self.host, self.port), timeout=10) as s:
            with contextlib.suppress(OSError):  # answered, or cut, before it was all sent
                s.sendall(data)
                if end:
                    s.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while piece := s.recv(65536):
                    got += piece
        return got

    def keeper_home(self):
        keeper = os.path.join(self.home, "keeper")
        return keeper if os.path.isdir(keeper) else self.home

    def run_dir(self):
        st = os.stat(self.keeper_home())
        return f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}"

    def init_of(self, session):
        """Host pid of the lodge-init behind a session's record, from the keeper's own."""
        with open(os.path.join(self.run_dir(), "d", "sandboxes", session["sandbox"], "record")) as f:
            return int(re.search(r"^pid (\d+)$", f.read(), re.M).group(1))

    def kill_sandbox(self, session):
        """From outside, as the OOM killer would."""
        pid = self.init_of(session)
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: not is_alive(pid)), "it does not die"

    def starter(self):
        """The process that starts its keepers."""
        return [p for p in children(self.process.pid) if name_of(p) == "lodged-starter"][0]

    def keepers(self):
        return [p for p in children(self.starter()) if is_alive(p) and name_of(p) == "lodge-keeper"]

    def stop(self, signo=signal.SIGTERM):
        """The sandboxes live on."""
        self.process.send_signal(signo)
        self.process.stdout.close()
        return self.process.wait(60)

    def close(self):
        """Nothing is left."""
        try:
            if self.process.poll() is None:
                self.clear()
                assert self.stop() == 0, self.log()  # a sanitizer that found something says so here
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            wait_for(lambda: not keepers_of(self.home), 60)  # it may have a pool to end
            shutil.rmtree(self.run_dir(), ignore_errors=True)
            shutil.rmtree(self.home, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.home + ".log")

    def clear(self):
        client = self.client()
        # it may be one that answers so many requests a second
        while (answer := client.get("/v1/sessions")).status == 429 or answer.json["sessions"]:
            for s in answer.json.get("sessions", []):
                client.delete("/v1/sessions/" + urllib.parse.quote(s["id"]))
