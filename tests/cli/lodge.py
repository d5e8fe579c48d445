# SPDX-License-Identifier: Apache-2.0
"""Runs the lodge command, and a daemon whose address survives restarts."""
import os
import signal
import subprocess

from client import BUILD, KEY, SocketLodged, UnixClient

LODGE = os.path.join(BUILD, "lodge")
SECONDS = 180


class Daemon(SocketLodged):
    def client(self, key=KEY):
        return UnixClient(self.socket, key)

    def crash(self):
        """Kill the daemon; the sandboxes keep running."""
        self.stop(signal.SIGKILL)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LODGE_", "XDG_"))}
        return dict(env, LODGE_URL=self.url, LODGE_API_KEY=KEY, **more)

    def start_lodge(self, *words, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([LODGE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=kw.pop("env", None) or self.env(), **kw)

    def lodge(self, *words, data=None, env=None):
        """Run lodge; return its status, stdout and stderr."""
        how = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([LODGE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=env or self.env(), timeout=SECONDS, check=False, **how)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def ok(result):
    assert result[0] == 0, result
    return result[1].decode()


def failed(result, *words):
    status, out, err = result
    assert status == 1 and out == b"" and err.count("\n") == 1, result
    assert all(w in err for w in words), err
    return err
