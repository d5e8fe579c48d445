# SPDX-License-Identifier: Apache-2.0
"""A lodged for tests, and HTTP clients for it."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import urllib.parse

import machine
from machine import SOURCE, children, is_alive, keepers_of, name_of, wait_for  # noqa: F401: re-exported

BUILD = machine.build()
LODGED = os.path.join(BUILD, "lodged")
KEY = "lodge-test-key-0123456789"
ANSWER_SECONDS = 180
EXEC_MS = 150000  # the default of 30 s is too short for a busy disk
# A pool would be filled again and again, and recording an environment uses a sandbox at a time of its own.
QUIET = {"LODGE_POOL": "0", "LODGE_ENVIRONMENT_SNAPSHOTS": "0"}


def routes():
    """Method, path and required scope of every route; "-" means no key."""
    text = subprocess.run([LODGED, "--print-routes"], stdout=subprocess.PIPE, check=True).stdout
    return [tuple(line.split()) for line in text.decode().splitlines()]


THREADS = ("/create_session", "/get_session", "/execute", "/upload_file", "/download_file", "/list_files", "/cleanup",
           "/status/")


def is_older(path):
    """Whether the path belongs to a compatible API, which has its own error format."""
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
        """The error message, in the format of /v1 or of a compatible API."""
        error = self.json["error"]
        return error if isinstance(error, str) else error["message"]

    @property
    def code(self):
        return self.json["error"]["code"]

    def __repr__(self):
        return f"{self.status} {self.data[:600]!r}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, seconds=ANSWER_SECONDS):
        super().__init__("localhost", timeout=seconds)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def certificate(directory, name, *how):
    """Create a self-signed certificate for localhost and its key; `how` are options of openssl, by default an EC
    key."""
    cert, key = (os.path.join(directory, f"{name}.{kind}") for kind in ("crt", "key"))
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", *(how or ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")),
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


class Client:
    """Makes calls with one key, each on a new connection."""

    def __init__(self, host, port, key):
        self.host, self.port, self.key = host, port, key

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_SECONDS)

    def open(self, method, path, body=None, headers=None):
        """Return the connection and the response; the body has not been read."""
        headers = dict(headers or {})
        if self.key:
            headers.setdefault("Authorization", f"Bearer {self.key}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.connect()
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

    def run(self, sid, command, **more):
        """Run a command that must succeed; return its stdout."""
        answer = self.post(f"/v1/sessions/{sid}/exec", {"command": command, "timeout_ms": EXEC_MS, **more})
        assert answer.status == 200 and answer.json["exit_code"] == 0, answer
        return answer.json["stdout"]

    def clear(self):
        """Destroy all sessions."""
        # this lodged may have a rate limit
        while (answer := self.get("/v1/sessions")).status == 429 or answer.json["sessions"]:
            for s in answer.json.get("sessions", []):
                self.delete("/v1/sessions/" + quote(s["id"]))


class UnixClient(Client):
    """Works across restarts of the daemon, because the socket path stays the same."""

    def __init__(self, path, key):
        super().__init__("localhost", 0, key)
        self.path = path

    def connect(self):
        return UnixConnection(self.path)


class TlsClient(Client):
    def __init__(self, host, port, key, cert):
        super().__init__(host, port, key)
        self.context = ssl.create_default_context(cafile=cert)

    def connect(self):
        return http.client.HTTPSConnection(self.host, self.port, timeout=ANSWER_SECONDS, context=self.context)


def launch(program, *words, home, listen, err, **how):
    """Start a lodged; it may not be ready yet when this returns."""
    for address in listen:
        words += ("--listen", address)
    return subprocess.Popen([program, *words, *(["--data", home] if home else [])], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=err, **how)


def addresses(process, count):
    """Return the addresses it prints when it is ready, or None."""
    lines = [process.stdout.readline().decode() for _ in range(count)]
    found = [re.fullmatch(r"lodged: listening on (\S+)\n", line) for line in lines]
    return [m.group(1) for m in found] if all(found) else None


class Lodged:
    listen = ("127.0.0.1:0",)
    how = {}  # further arguments of Popen

    def __init__(self, program=LODGED, below=None, **settings):
        self.home = tempfile.mkdtemp(prefix="lodge-http-", dir=below)
        self.program = program
        self.settings = settings
        self.process = None
        try:
            self.start()
        except AssertionError:  # its settings may be wrong on purpose
            self.process.wait(ANSWER_SECONDS)
            machine.remove_home(self.home)
            os.unlink(self.home + ".log")
            raise

    def start(self):
        env = {**os.environ, "LODGE_API_KEY": KEY, **QUIET,
               **{f"LODGE_{k.upper()}": str(v) for k, v in self.settings.items()}}
        with open(self.home + ".log", "ab") as log:
            self.process = launch(self.program, home=self.home, listen=self.listen, err=log, env=env, **self.how)
        said = addresses(self.process, len(self.listen))
        assert said, f"lodged did not start: {self.log()}"
        self.http_url = said[0]
        self.host, port = self.http_url.split("//")[1].split(":")
        self.port = int(port)

    def log(self):
        with open(self.home + ".log", "rb") as f:
            return f.read()[-3000:].decode(errors="replace")

    def client(self, key=KEY):
        return Client(self.host, self.port, key)

    def new_key(self, **body):
        """Return the key's record and a client that uses it."""
        answer = self.client().post("/v1/keys", body)
        assert answer.status == 201, answer
        return answer.json["key"], self.client(answer.json["secret"])

    def raw(self, data, end=False):
        """Send bytes unchanged (`end`: then shut down writing). Return what is received until the connection closes
        or a timeout."""
        got = b""
        with socket.create_connection((self.host, self.port), timeout=10) as s:
            with contextlib.suppress(OSError):  # the server may respond or close before everything is sent
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
        return machine.run_dir(self.keeper_home())

    def init_of(self, session):
        """Host pid of the lodge-init of a session, from the keeper's record."""
        with open(os.path.join(self.run_dir(), "d", "sandboxes", session["sandbox"], "record")) as f:
            return int(re.search(r"^pid (\d+)$", f.read(), re.M).group(1))

    def cgroup_limits(self, session):
        """What the kernel enforces: the limits of memory, processes and CPU in the sandbox's own cgroup."""
        with open(f"/proc/{self.init_of(session)}/cgroup") as f:
            name = re.search(r"/g\.\w+", f.read()).group()
        found = {}
        for root in machine.cgroup_roots():
            for path, _, files in os.walk(root):
                for limit in {"memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max", "cpu.cfs_quota_us"} & set(files):
                    if path.endswith(name):
                        with open(os.path.join(path, limit)) as f:
                            found[limit] = f.read().strip()
        assert len(found) >= 3, found
        return found

    def kill_sandbox(self, session):
        """Kill its lodge-init from the host, as the OOM killer would."""
        pid = self.init_of(session)
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: not is_alive(pid)), "lodge-init did not die"

    def starter(self):
        """The process that starts keepers."""
        return children(self.process.pid, "lodged-starter")[0]

    def keepers(self):
        return [p for p in children(self.starter(), "lodge-keeper") if is_alive(p)]

    def stop(self, signo=signal.SIGTERM):
        """Stop lodged; the sandboxes keep running."""
        self.process.send_signal(signo)
        self.process.stdout.close()
        return self.process.wait(ANSWER_SECONDS)

    def close(self):
        """Stop lodged and remove everything it created."""
        try:
            if self.process.poll() is None:
                self.client().clear()
                assert self.stop() == 0, self.log()  # nonzero if a sanitizer found an error
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            wait_for(lambda: not keepers_of(self.home), 60)  # the keeper may still be ending its pool
            machine.remove_home(self.home)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.home + ".log")


class SocketLodged(Lodged):
    """Also listens on a Unix socket, whose path survives restarts."""

    @property
    def socket(self):
        return os.path.join(self.home, "lodge.sock")

    @property
    def url(self):
        return "unix:" + self.socket

    @property
    def listen(self):
        return (*Lodged.listen, self.url)
