# SPDX-License-Identifier: Apache-2.0
"""A lodged that the test starts, observes and stops itself."""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import tempfile

from client import KEY, LODGED, QUIET, Client, addresses, launch
from machine import remove_home, wait_for

PLAIN = {**{k: v for k, v in os.environ.items() if not k.startswith("LODGE_") and k != "NOTIFY_SOCKET"}, **QUIET}


class Daemon:
    """One process with exactly these arguments and settings; with `key=None`, LODGE_API_KEY is unset."""

    def __init__(self, home, *args, key=KEY, env=None, files=None, listen=("127.0.0.1:0",),
                 program=LODGED):
        self.home = home
        self.err = tempfile.NamedTemporaryFile(prefix="lodged-", suffix=".err")
        self.process = launch(
            program, *args, home=home, listen=listen, err=self.err,
            env={**PLAIN, **({"LODGE_API_KEY": key} if key else {}), **(env or {})},
            preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))

    def addresses(self, count=1):
        """Return the addresses it prints when it is ready."""
        found = addresses(self.process, count)
        assert found, self.log()
        return found

    def client(self, address=None, key=KEY):
        at = re.fullmatch(r"https?://\[?([0-9a-f.:]+?)\]?:([0-9]+)", address or self.addresses()[0])
        return Client(at.group(1), int(at.group(2)), key)

    def log(self):
        with open(self.err.name, "rb") as f:
            return f.read().decode(errors="replace")

    def lines(self):
        return [json.loads(line) for line in self.log().splitlines()]

    def says(self, text, seconds=120):
        assert wait_for(lambda: text in self.log(), seconds), self.log()

    def ends(self, seconds=180):
        """Wait for its exit; return the exit status and the log."""
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
        """Of a test that failed too. SIGKILL would leave a sandbox that lodged uses itself."""
        if self.process.poll() is None:
            self.send(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
            self.process.kill()
        self.process.wait(180)
        self.process.stdout.close()
        self.err.close()


class Home(str):
    """A data directory; everything that runs in it ends when it is removed."""
    made = []

    def __new__(cls):
        cls.made.append(tempfile.mkdtemp(prefix="lodge-http-"))
        return super().__new__(cls, cls.made[-1])

    def empty(self):
        """Destroy all sessions, and with them their sandboxes."""
        with Daemon(self) as d:
            d.client().clear()
            d.close()

    def remove(self):
        remove_home(self)


def raw(host, port, request, until=None):
    """Send bytes; return the whole response, or what arrives until it contains `until`."""
    with socket.create_connection((host, port), timeout=180) as s:
        s.sendall(request)
        data = b""
        while not (until and until in data):
            more = s.recv(65536)
            if not more:
                break
            data += more
        return data
