# SPDX-License-Identifier: Apache-2.0
"""A home in which engines die one after the other, and what must hold after each death.

One session is older than all of them; its command prints numbers and must never be interrupted."""
import errno
import itertools
import random

import pytest

from engine import Died, Engine, Refused, World, eventually, find, wait_for
from world import COUNTER, reap

REST = {"none", "active", "hibernated", "failed", "archived"}
RUNNING = 0  # state of a running exec

_rng = random.Random(7)


def text_of(name):
    """Some kilobytes that belong to this name only."""
    return f"{name}\n" + "".join(_rng.choices("abcdefghijklmnopqrstuvwxyz\n", k=5000))


class Stage:
    def __init__(self, kind):
        self.world = World(store="dir" if kind == "directory" else None)
        self.kind = kind
        self.names = itertools.count(1)
        self.engine = Engine(self.world)
        self.old = self.engine.enter(key="old")["session"]
        self.count = self.engine.start(key="old", text=COUNTER)["exec"]
        self.offset, self.next = 0, 0

    # -- dying

    def die(self, step, act, *options):
        """Return the reply of `act`, or None if the engine died during it."""
        self.engine.kill()
        answer = None
        try:
            e = Engine(self.world, *options, crash=step)
        except Died:
            return None
        try:
            answer = act(e)
            # some steps are reached by a worker after the reply
            if not step or not wait_for(lambda: e.process.poll() is not None):
                return answer
        except Died:
            pass
        finally:
            e.kill()
        return None

    def try_with(self, step, act, *options):
        """Let the keeper die whenever it reaches this step; return the reply of the engine."""
        self.engine.kill()
        e = Engine(self.world, "--keeper-wait-ms", "300", *options, crash=step)  # it will not work again
        try:
            try:
                answer = act(e)
            except Refused as r:
                answer = r
            assert e.facts()["pid"] == e.pid, "the engine must survive"
        finally:
            e.kill()
        return answer

    def start(self):
        self.engine = Engine(self.world)

    # -- checking

    def check(self, what):
        """All sessions are in a stable state, everything belongs to one, and the old session is unchanged."""
        e = self.engine
        sessions = e.list()["sessions"]
        half = [s for s in sessions if s["state"] not in REST]
        assert not half, f"{what}: incomplete: {half}"
        live = sorted(s["sandbox"] for s in sessions if s["state"] == "active")
        kept = sorted(i for kind, i in e.kept()["kept"] if kind != "layer")
        assert kept == live, f"{what}: the keeper has {kept}, the records say {live}: {sessions}"
        reap()
        assert wait_for(lambda: len(find("lodge-init")) == len(live), 120), \
            f"{what}: {len(find('lodge-init'))} sandboxes run, not {len(live)}"
        self.check_old(what)

    def check_old(self, what):
        s = self.engine.get(key="old")["session"]
        assert s["state"] == "active" and s["sandbox"] == self.old["sandbox"], f"{what}: {s}"

        def more():
            return self.engine.output(exec=self.count, offset=self.offset)["data"].count("\n") > 1
        assert wait_for(more, 120), f"{what}: the old command has stopped"
        data = self.engine.output(exec=self.count, offset=self.offset)["data"]
        whole = data[:data.rindex("\n") + 1]
        numbers = [int(x) for x in whole.split()]
        assert numbers == list(range(self.next, self.next + len(numbers))), f"{what}: {numbers}"
        self.offset += len(whole)
        self.next += len(numbers)

    # -- cleaning up

    def clear(self):
        """Destroy everything but the old session."""
        e = self.engine
        for s in e.list()["sessions"]:
            if s["id"] != self.old["id"]:
                e.destroy(session=s["id"])
        for s in e.snapshots()["snapshots"]:
            try:
                e.snapshot_remove(snapshot=s["id"])
            except Refused as r:
                assert r.code == "CONFLICT", r  # used by a fragment

    def end(self):
        self.clear()
        self.engine.destroy_all()
        assert self.engine.close() == 0, self.engine.log()
        self.world.assert_clean("the end")

    def close(self):
        if self.engine.process.poll() is None:
            self.engine.kill()
        self.world.close()


class Case:
    """One session, with the files it must have and those it may have."""

    def __init__(self, stage):
        self.stage, self.n = stage, next(stage.names)
        self.key = f"key{self.n}"
        self.texts, self.sure, self.maybe = {}, set(), set()
        self.generation, self.id = 0, None

    @property
    def e(self):
        return self.stage.engine

    # -- making

    def enter(self, key=None, **args):
        s = self.e.enter(key=key or self.key, **args)["session"]
        if not key:
            self.id, self.generation = s["id"], max(self.generation, s["generation"])
        return s

    def text(self, name):
        return self.texts.setdefault(name, text_of(name))

    def put(self, name, e=None):
        """Acknowledged when this returns, except by the dying engine `e`."""
        self.maybe.add(name)
        (e or self.e).write(key=self.key, path=f"d/{name}", data=self.text(name))
        if not e:
            self.maybe.discard(name)
            self.sure.add(name)
        return True

    def hibernate(self):
        self.generation = self.e.hibernate(key=self.key)["session"]["generation"]

    def snapshot(self, **args):
        s = self.e.snapshot(key=self.key, **args)["snapshot"]
        self.generation = max(self.generation, s["generation"])
        return s["id"]

    # -- checking

    def found(self, key=None):
        out = self.e.run(key=key or self.key, text="cd; ls d 2>/dev/null || :")
        assert out["code"] == 0, out
        return set(out["out"].split())

    def check_files(self, key=None, sure=None, maybe=None):
        """The files are exactly these, byte for byte; return their names."""
        sure = self.sure if sure is None else sure
        maybe = self.maybe if maybe is None else maybe
        there = self.found(key)
        assert sure <= there, f"acknowledged but missing: {sure - there}"
        assert there <= sure | maybe, f"unexpected files: {there - sure - maybe}"
        for name in there:
            data = self.e.read(key=key or self.key, path=f"d/{name}")["data"]
            assert data == self.text(name), f"{name} has other content than was written"
        return there

    def check(self, **args):
        """It can be entered, has the same id, and its generation did not decrease."""
        a = self.e.enter(key=self.key)
        s = a["session"]
        assert s["state"] == "active" and not a["state_lost"], a
        if self.id:
            assert s["id"] == self.id, f"the key names another session: {a}"
            assert a["outcome"] in ("reused", "resumed", "created"), a
        assert s["generation"] >= self.generation, f"older than {self.generation}: {a}"
        again = self.e.enter(key=self.key)
        assert again["outcome"] == "reused" and again["session"]["sandbox"] == s["sandbox"], again
        return self.check_files(**args)

    def check_execs(self):
        """No exec is running if no sandbox is."""
        if self.e.get(key=self.key)["session"]["state"] != "active":
            rows = self.e.execs(key=self.key)["execs"]
            assert all(x["state"] != RUNNING for x in rows), rows

    def read_all(self, exec_id):
        """Read both streams from the beginning, in pieces."""
        streams = []
        for stderr in (False, True):
            at, text = 0, ""
            while True:
                a = self.e.output(exec=exec_id, offset=at, stderr=stderr)
                if not a["data"]:
                    break
                text, at = text + a["data"], a["next"]
            streams.append(text)
        return tuple(streams)

    def is_gone(self, key=None, why="by request"):
        with pytest.raises(Refused) as r:
            self.e.get(key=key or self.key)
        assert r.value.code == "NOT_FOUND" and r.value.sys == errno.ESTALE, r.value
        assert why in r.value.msg, r.value
        return True

    def exists(self, **ref):
        try:
            return self.e.get(**ref)["session"]
        except Refused as r:
            assert r.code == "NOT_FOUND", r
            return None

    def layers(self):
        return sorted(i for kind, i in self.e.kept()["kept"] if kind == "layer")


__all__ = ["COUNTER", "Case", "Died", "Engine", "Refused", "Stage", "eventually", "wait_for"]
