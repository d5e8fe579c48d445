# SPDX-License-Identifier: Apache-2.0
"""Places for threads: a lodged, or the engine in this process."""
import os
import signal
import subprocess
import tempfile

from client import BUILD, KEY, SocketLodged, keepers_of, wait_for
from daemon import Daemon
from machine import remove_home

import lodge
from lodge import _local

PLAIN = os.path.realpath(os.environ.get("LODGE_BUILD_PLAIN", BUILD))


class Service(SocketLodged):
    def restart(self, signo=signal.SIGKILL):
        self.stop(signo)
        self.start()


class RemoteWorld:
    mode = "remote"

    def __init__(self, **settings):
        self.service = Service(**settings)

    def client(self):
        return lodge.SandboxClient("remote", self.service.url, KEY)

    def batch(self):
        return lodge.BatchSandboxClient("remote", self.service.url, KEY)

    def projects(self):
        return lodge.ProjectClient("remote", self.service.url, KEY)

    def arguments(self):
        return {"mode": "remote", "server_url": self.service.url, "api_key": KEY}

    def environment(self):
        return {"LODGE_URL": self.service.url, "LODGE_API_KEY": KEY}

    def end_session(self, session_id):
        """End a session as if it had expired."""
        self.service.client().delete("/v1/sessions/" + session_id)

    def is_there(self, session_id):
        """Whether the session exists; reading changes nothing."""
        return self.service.client().get("/status/" + session_id).status == 200

    def policy(self, **commands):
        answer = self.service.client().post("/v1/policies", {"name": "default", "commands": commands})
        assert answer.status == 201, answer

    def close(self):
        self.service.close()


class LocalWorld:
    mode = "local"

    def __init__(self, policy=None, **options):
        assert b"__asan_init" not in subprocess.run(["nm", "-D", PLAIN + "/liblodge.so"], capture_output=True,
                                                    check=True).stdout, \
            "local mode needs a build without sanitizers: LODGE_BUILD_PLAIN"
        self.home = tempfile.mkdtemp(prefix="lodge-sdk-")
        os.environ["LODGE_LIB"] = PLAIN + "/liblodge.so"
        self.options = options
        if policy:
            self._make_policy(policy)
        self._engine = _local.open_engine(self.home, **options)

    def _make_policy(self, commands):
        """Only lodged creates policies; the engine reads them from the same store."""
        url = f"unix:{self.home}/lodge.sock"
        with Daemon(self.home, listen=(url,)) as d:
            assert d.addresses() == [url]
            with lodge.Client(url, KEY) as c:
                c.create_policy("default", commands=commands)
            assert d.close() == 0
        assert wait_for(lambda: not keepers_of(self.home))

    def client(self):
        return self._with_home(lambda: lodge.SandboxClient("local"))

    def batch(self):
        return self._with_home(lambda: lodge.BatchSandboxClient("local"))

    def projects(self):
        return self._with_home(lambda: lodge.ProjectClient("local"))

    def _with_home(self, make):
        was = os.environ.get("LODGE_DATA")
        os.environ["LODGE_DATA"] = self.home
        try:
            return make()
        finally:
            if was is None:
                del os.environ["LODGE_DATA"]
            else:
                os.environ["LODGE_DATA"] = was

    def environment(self):
        return {"LODGE_DATA": self.home, "LODGE_LIB": PLAIN + "/liblodge.so"}

    def end_session(self, session_id):
        threads = self.client()._threads
        threads.cleanup(session_id)

    def is_there(self, session_id):
        try:
            return bool(self.client()._threads._workspace(session_id))
        except lodge.SessionExpiredError:
            return False

    def leave(self):
        """Close the engine, so that another process can use the home."""
        self._engine.close()
        _local._engines.pop(self.home, None)
        assert wait_for(lambda: not keepers_of(self.home))

    def back(self):
        self._engine = _local.open_engine(self.home, **self.options)

    def close(self):
        e = self._engine
        e.lib.lodge_cleanup.argtypes = [_local.ctypes.c_void_p, _local.ctypes.c_char_p, _local.ctypes.c_void_p]
        assert e.lib.lodge_cleanup(e.handle, None, None) == 0
        self.leave()
        remove_home(self.home)
