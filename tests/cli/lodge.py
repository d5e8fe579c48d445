# SPDX-License-Identifier: Apache-2.0
"""The command line, and a daemon for it that keeps its address when it is started again."""
import json
import os
import re
import signal
import subprocess

from client import BUILD, KEY, Client, Lodged
from daemon import UnixConnection

LODGE = os.path.join(BUILD, "lodge")
SECONDS = 60


class UnixClient(Client):
    """Stays good when the daemon is started again."""

    def __init__(self, path, key):
        super().__init__("localhost", 0, key)
        self.path = path

    def open(self, method, path, body=None, headers=None):
        headers = dict(headers or {}, Authorization=f"Bearer {self.key}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = UnixConnection(self.path)
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()


class Daemon(Lodged):
    @property
    def url(self):
        return f"unix:{self.home}/lodge.sock"

    def start(self):
        env = dict(os.environ, LODGE_API_KEY=KEY, **{f"LODGE_{k.upper()}": str(v) for k, v in self.settings.items()})
        with open(self.home + ".log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--data", self.home, "--listen", "127.0.0.1:0", "--listen", self.url], env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline().decode()
        at = re.search(r"https?://([0-9.]+):([0-9]+)", line)
        assert at, f"lodged did not start: {line!r} {self.log()}"
        self.host, self.port = at.group(1), int(at.group(2))

    def client(self, key=KEY):
        return UnixClient(f"{self.home}/lodge.sock", key)

    def crash(self):
        """Without a word; the sandboxes live on."""
        self.stop(signal.SIGKILL)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LODGE_", "XDG_"))}
        return dict(env, LODGE_URL=self.url, LODGE_API_KEY=KEY, **more)

    def start_lodge(self, *words, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([LODGE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=kw.pop("env", None) or self.env(), **kw)

    def lodge(self, *words, data=None, env=None):
        """Status, output, errors."""
        how = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([LODGE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=env or self.env(), timeout=SECONDS, check=False, **how)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")
