# SPDX-License-Identifier: Apache-2.0
"""The session driver as an object: calls from any thread, and a kill or restart at any time."""
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time

from machine import children, eventually, is_alive, wait_for  # noqa: F401: re-exported for tests with an Engine
from world import BUILD, KEEPER, World, _known, find  # noqa: F401

DRIVER = os.environ.get("SESSION_DRIVER", os.path.join(BUILD, "session-driver"))
ANSWER_SECONDS = 120


class Refused(Exception):
    """The engine returned an error."""

    def __init__(self, op, error):
        super().__init__(f"{op}: {error['code']} {error['msg']}")
        self.code, self.sys, self.msg = error["code"], error["sys"], error["msg"]


class Died(Exception):
    """The engine exited before it replied."""


class Engine:
    def __init__(self, world, *options, crash=None, env=None, wait=True):
        self.world = world
        environ = dict(os.environ, **(env or {}))
        environ.pop("LODGE_CRASH_AT", None)
        if crash:
            environ["LODGE_CRASH_AT"] = crash
        self.errors = open(os.path.join(world.home, "driver.log"), "ab")
        self.process = subprocess.Popen(
            [DRIVER, "--home", world.home, "--keeper", KEEPER, "--clock", "0", *options], env=environ,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        _known.add(self.process.pid)
        self.pid = self.process.pid
        self._ids = itertools.count(1)
        self._waiting, self._lock = {}, threading.Lock()
        self._ready = threading.Event()
        self._dead = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if wait:
            assert self._ready.wait(ANSWER_SECONDS), f"the engine did not start: {self.log()}"
            if self._dead:
                raise Died(f"the engine did not start: {self.log()}")

    def _read(self):
        for line in self.process.stdout:
            if line == b"ready\n":
                self._ready.set()
                continue
            try:
                answer = json.loads(line)
            except ValueError:
                break  # it died while writing a line
            with self._lock:
                box = self._waiting.pop(answer["id"], None)
            if box:
                box.put(answer)
        with self._lock:
            self._dead = True
            for box in self._waiting.values():
                box.put(None)
            self._waiting.clear()
        self._ready.set()

    def log(self):
        with open(os.path.join(self.world.home, "driver.log"), "rb") as f:
            return f.read()[-2000:].decode(errors="replace")

    def send(self, op, **args):
        """Send a request; return a function that waits for the reply."""
        box = queue.Queue()
        with self._lock:
            if self._dead:
                raise Died(op)
            rid = next(self._ids)
            self._waiting[rid] = box
            try:
                self.process.stdin.write(json.dumps(dict(args, id=rid, op=op)).encode() + b"\n")
                self.process.stdin.flush()
            except OSError:
                self._waiting.pop(rid, None)
                raise Died(op) from None

        def wait():
            try:
                answer = box.get(timeout=ANSWER_SECONDS)
            except queue.Empty:
                raise AssertionError(f"{op} {args}: no answer in {ANSWER_SECONDS} s") from None
            if answer is None:
                raise Died(op)
            if "error" in answer:
                raise Refused(op, answer["error"])
            return answer
        return wait

    def call(self, op, **args):
        return self.send(op, **args)()

    def __getattr__(self, op):
        if op.startswith("_"):
            raise AttributeError(op)
        return lambda **args: self.call(op, **args)

    def keepers(self):
        """The keepers of this engine, whichever thread started them."""
        return [p for p in children(self.pid, "lodge-keeper") if is_alive(p)]

    def kill(self, signo=signal.SIGKILL):
        """Kill the engine only; its keeper exits when the connection closes."""
        try:
            self.process.send_signal(signo)
        except ProcessLookupError:
            pass
        self.process.wait()
        self._reader.join()
        self.errors.close()

    def destroy_all(self):
        """Destroy sessions and snapshots, and collect unused layers by setting the clock ahead."""
        for s in self.list()["sessions"]:
            self.destroy(session=s["id"])
        for s in self.snapshots()["snapshots"]:
            self.snapshot_remove(snapshot=s["id"])
        self.clock(ms=3600 * 1000)
        assert wait_for(lambda: not (self.collect() and self.kept()["kept"]), 120), self.kept()
        # a keeper that exits does not wait long for its child of idle priority
        assert wait_for(lambda: not [n for n in self.world.store() if n.startswith("x-")]), self.world.store()

    def close(self):
        """End in an orderly way."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        code = self.process.wait(timeout=ANSWER_SECONDS)
        self._reader.join()
        self.errors.close()
        return code

    def kill_sandbox(self, session):
        """Kill it from the host, as the OOM killer would; return whether it is dead."""
        pid = self.init_of(session)
        os.kill(pid, signal.SIGKILL)
        return wait_for(lambda: not is_alive(pid), 120)

    def init_of(self, session):
        """Host pid of the lodge-init of a session, from the keeper's record."""
        record = os.path.join(self.world.run_dir(), "d", "sandboxes", session["sandbox"], "record")
        with open(record) as f:
            return int(re.search(r"^pid (\d+)$", f.read(), re.M).group(1))


def now_ms():
    return int(time.time() * 1000)
