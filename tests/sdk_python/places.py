# SPDX-License-Identifier: Apache-2.0
"""Homes for threads: a lodged of one's own, or the engine in this process."""
import os
import shutil
import signal
import subprocess
import tempfile

from client import BUILD, KEY, LODGED, Lodged, keepers_of, wait_for

import lodge
from lodge import _local

PLAIN = os.path.realpath(os.environ.get("LODGE_BUILD_PLAIN", BUILD))


class Service(Lodged):
    """On a socket whose path stays the same, whenever it is started."""

    def start(self):
        self.url = f"unix:{self.home}/lodge.sock"
        env = dict(os.environ, LODGE_API_KEY=KEY, **{f"LODGE_{k.upper()}": str(v) for k, v in self.settings.items()})
        with open(self.home + ".log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--data", self.home, "--listen", self.url, "--listen", "127.0.0.1:0"], env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        lines = [self.process.stdout.readline().decode() for _ in range(2)]
        assert "unix:" in lines[0] and "http://" in lines[1], (lines, self.log())
        self.http_url = lines[1].split()[-1]
        self.host, port = self.http_url[len("http://"):].split(":")
        self.port = int(port)

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

    def arguments(self):
        return {"mode": "remote", "server_url": self.service.url, "api_key": KEY}

    def environment(self):
        return {"LODGE_URL": self.service.url, "LODGE_API_KEY": KEY}

    def end_session(self, session_id):
        """As if it had expired."""
        self.service.client().delete("/v1/sessions/" + session_id)

    def is_there(self, session_id):
        """Looking changes nothing."""
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
        self.home = tempfile.mkdtemp(prefix="lodge-sdk-", dir="/var/tmp")
        os.environ["LODGE_LIB"] = PLAIN + "/liblodge.so"
        self.options = options
        if policy:
            self._make_policy(policy)
        self._engine = _local.open_engine(self.home, **options)

    def _make_policy(self, commands):
        """Policies are lodged's to make; the engine has them from the same store."""
        settings = {"LODGE_API_KEY": KEY}
        process = subprocess.Popen([LODGED, "--data", self.home, "--listen", f"unix:{self.home}/lodge.sock"],
                                   env={**os.environ, **settings}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        assert b"listening" in process.stdout.readline()
        with lodge.Client(f"unix:{self.home}/lodge.sock", KEY) as c:
            c.create_policy("default", commands=commands)
        process.terminate()
        process.wait(60)
        process.stdout.close()
        assert wait_for(lambda: not keepers_of(self.home))

    def client(self):
        return self._with_home(lambda: lodge.SandboxClient("local"))

    def batch(self):
        return self._with_home(lambda: lodge.BatchSandboxClient("local"))

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
        """The home is another process's for a while."""
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
        st = os.stat(self.home)
        shutil.rmtree(f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}", ignore_errors=True)
        keeper = os.path.join(self.home, "keeper")
        if os.path.isdir(keeper):
            st = os.stat(keeper)
            shutil.rmtree(f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}", ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)
