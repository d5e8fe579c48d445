# SPDX-License-Identifier: Apache-2.0
"""A lodged of one's own, and a client of it."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.realpath(os.environ.get("LODGE_BUILD", os.path.join(SOURCE, "build")))
LODGED = os.path.join(BUILD, "lodged")
KEY = "lodge-test-key-0123456789"
ANSWER_SECONDS = 60


def wait_for(condition, seconds=20, pause=0.05):
    """The first true value, or the last false one."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)


class Answer:
    def __init__(self, response, data):
        self.status, self.headers, self.data = response.status, response.headers, data

    @property
    def json(self):
        return json.loads(self.data)

    @property
    def code(self):
        return self.json["error"]["code"]

    def __repr__(self):
        return f"{self.status} {self.data[:600]!r}"


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

    def delete(self, path, **kw):
        return self.call("DELETE", path, **kw)

    def enter(self, **body):
        answer = self.post("/v1/sessions", body)
        assert answer.status in (200, 201), answer
        return answer.json["session"]["id"]


class Lodged:
    def __init__(self, **settings):
        self.home = tempfile.mkdtemp(prefix="lodge-http-", dir="/var/tmp")
        self.settings = settings
        self.process = None
        self.start()

    def start(self):
        env = dict(os.environ, LODGE_API_KEY=KEY,
                   **{f"LODGE_{k.upper()}": str(v) for k, v in self.settings.items()})
        with open(os.path.join(self.home, "lodged.log"), "ab") as log:
            self.process = subprocess.Popen(
                [LODGED, "--data", self.home, "--listen", "127.0.0.1:0"], env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline().decode()
        at = re.search(r"http://([0-9.]+):([0-9]+)", line)
        assert at, f"lodged did not start: {line!r} {self.log()}"
        self.host, self.port = at.group(1), int(at.group(2))

    def log(self):
        with open(os.path.join(self.home, "lodged.log"), "rb") as f:
            return f.read()[-3000:].decode(errors="replace")

    def client(self, key=KEY):
        return Client(self.host, self.port, key)

    def stop(self, signo=signal.SIGTERM):
        """The sandboxes live on."""
        self.process.send_signal(signo)
        self.process.stdout.close()
        return self.process.wait(60)

    def close(self):
        """Nothing is left."""
        if self.process.poll() is None:
            client = self.client()
            while sessions := client.get("/v1/sessions").json["sessions"]:
                for s in sessions:
                    client.delete("/v1/sessions/" + urllib.parse.quote(s["id"]))
            self.stop()
        st = os.stat(os.path.join(self.home, "keeper") if os.geteuid() == 0 else self.home)
        shutil.rmtree(f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}", ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)
