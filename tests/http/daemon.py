# SPDX-License-Identifier: Apache-2.0
"""A lodged that is started, watched and ended by hand."""
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile

from client import KEY, LODGED, Client, wait_for

PLAIN = {k: v for k, v in os.environ.items() if not k.startswith("LODGE_") and k != "NOTIFY_SOCKET"}


class Daemon:
    """One process with just these arguments and settings; `key=None`: without LODGE_API_KEY."""

    def __init__(self, home, *args, key=KEY, env=None, files=None, listen=("127.0.0.1:0",),
                 program=LODGED):
        self.home = home
        self.err = tempfile.NamedTemporaryFile(prefix="lodged-", suffix=".err")
        command = [program, *args]
        if home:
            command += ["--data", home]
        for address in listen:
            command += ["--listen", address]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.err,
            env={**PLAIN, **({"LODGE_API_KEY": key} if key else {}), **(env or {})},
            preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))

    def addresses(self, count=1):
        """As it says them when it is ready."""
        lines = [self.process.stdout.readline().decode() for _ in range(count)]
        found = [re.fullmatch(r"lodged: listening on (\S+)\n", line) for line in lines]
        assert all(found), (lines, self.log())
        return [m.group(1) for m in found]

    def client(self, address=None, key=KEY):
        at = re.fullmatch(r"https?://\[?([0-9a-f.:]+?)\]?:([0-9]+)", address or self.addresses()[0])
        return Client(at.group(1), int(at.group(2)), key)

    def log(self):
        with open(self.err.name, "rb") as f:
            return f.read().decode(errors="replace")

    def lines(self):
        return [json.loads(line) for line in self.log().splitlines()]

    def says(self, text, seconds=20):
        assert wait_for(lambda: text in self.log(), seconds), self.log()

    def ends(self, seconds=60):
        """Its status, and what it said."""
        self.process.wait(seconds)
        self.process.stdout.close()
        self.said = self.log()
        return self.process.returncode, self.said

    def send(self, signo):
        self.process.send_signal(signo)

    def close(self, signo=signal.SIGTERM):
        if self.process.poll() is None:
            self.send(signo)
        status = self.ends()[0]
        self.err.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.send(signal.SIGKILL)
        self.process.wait(60)
        self.process.stdout.close()
        self.err.close()


class Home(str):
    """A data directory; whatever lives in it ends with it."""
    made = []

    def __new__(cls):
        cls.made.append(tempfile.mkdtemp(prefix="lodge-http-", dir="/var/tmp"))
        return super().__new__(cls, cls.made[-1])

    def empty(self):
        """No session is left, so that no sandbox is."""
        with Daemon(self) as d:
            client = d.client()
            while sessions := client.get("/v1/sessions").json["sessions"]:
                for s in sessions:
                    client.delete("/v1/sessions/" + s["id"])
            d.close()

    def remove(self):
        st = os.stat(self)
        shutil.rmtree(f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}", ignore_errors=True)
        shutil.rmtree(self, ignore_errors=True)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def raw(host, port, request, until=None):
    """All that comes back for these bytes, or what comes until it holds `until`."""
    with socket.create_connection((host, port), timeout=60) as s:
        s.sendall(request)
        data = b""
        while not (until and until in data):
            more = s.recv(65536)
            if not more:
                break
            data += more
        return data
