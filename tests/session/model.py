# SPDX-License-Identifier: Apache-2.0
"""Random operations on many sessions at once, compared with a model.

Each session's files are a set of marks. An acknowledged mark must exist; one without a reply may
exist; others must not. Operations that only add marks run concurrently on a session; operations
that remove marks (rollback, destroy) or compare them run alone.

    model.py [--seconds N] [--keys N] [--threads N] [--seed N] [--kill SECONDS] [--store dir]"""
import argparse
import itertools
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from engine import Died, Engine, Refused, World  # noqa: E402


class Violation(Exception):
    pass


class Gate:
    """Admits many at once, or one alone; one that wants to be alone goes first."""

    def __init__(self):
        self.cond, self.inside, self.alone, self.wanting = threading.Condition(), 0, False, 0

    def enter(self, alone):
        with self.cond:
            self.wanting += alone
            while self.alone or (alone and self.inside) or (not alone and self.wanting):
                self.cond.wait()
            self.wanting -= alone
            self.inside += 1
            self.alone = alone

    def leave(self):
        with self.cond:
            self.inside -= 1
            self.alone = False
            self.cond.notify_all()


class Marks:
    """The marks that a state of the files must have, and those it may have."""

    def __init__(self, sure=(), maybe=()):
        self.sure, self.maybe = set(sure), set(maybe)

    def check(self, found, where):
        lost, strange = self.sure - found, found - self.sure - self.maybe
        if lost:
            raise Violation(f"{where}: acknowledged but missing: {sorted(lost)}")
        if strange:
            raise Violation(f"{where}: unexpected marks: {sorted(strange)}")


class Key:
    def __init__(self, name):
        self.name, self.gate, self.lock = name, Gate(), threading.Lock()
        self.forget()

    def forget(self):
        self.marks, self.snapshots = Marks(), {}
        self.exists = False
        self.unsure = False  # a destroy or rollback got no reply
        self.generation = 0


class Model:
    def __init__(self, world, rng, keys, options=()):
        self.world, self.rng, self.options = world, rng, list(options)
        self.keys = [Key(f"key{i}") for i in range(keys)]
        self.marks = itertools.count()
        self.engine = Engine(world, *self.options)
        self.swap = threading.Condition()
        self.stop, self.failure = threading.Event(), None
        self.counts = {}
        self.kills = 0

    # -- requests

    def ask(self, op, **args):
        """Died is raised; the next request waits for the next engine."""
        with self.swap:
            while self.engine is None:
                self.swap.wait()
            e = self.engine
        return e.call(op, **args)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def found(self, key):
        r = self.ask("run", key=key.name, text="cd; ls marks 2>/dev/null || :")
        if r["code"] != 0:
            raise Violation(f"{key.name}: {r}")
        return set(r["out"].split())

    # -- operations that run concurrently

    def op_enter(self, key, rng):
        had = key.exists
        a = self.ask("enter", key=key.name)
        if had and (a["outcome"] not in ("reused", "resumed") or a["state_lost"]):
            raise Violation(f"{key.name} was there, and: {a}")
        with key.lock:
            key.exists = True
            if a["session"]["generation"] < key.generation:
                raise Violation(f"{key.name}: generation {a['session']['generation']} after "
                                f"{key.generation}")
            key.generation = max(key.generation, a["session"]["generation"])

    def _mark(self, key):
        mark = f"m{next(self.marks)}"
        with key.lock:
            key.marks.maybe.add(mark)
            for s in key.snapshots.values():
                if s.get("open"):
                    s["marks"].maybe.add(mark)
        return mark

    def _sure(self, key, mark):
        with key.lock:
            key.marks.maybe.discard(mark)
            key.marks.sure.add(mark)
            key.exists = True

    def op_exec(self, key, rng):
        mark = self._mark(key)
        r = self.ask("run", key=key.name, text=f"cd; mkdir -p marks && echo {mark} > marks/{mark}; "
                                               f"echo done {mark}")
        if r["signal"]:  # killed with its sandbox by a concurrent hibernation
            return
        if r["code"] != 0 or r["out"] != f"done {mark}\n":
            raise Violation(f"{key.name}: {r}")
        self._sure(key, mark)

    def op_write(self, key, rng):
        mark = self._mark(key)
        self.ask("write", key=key.name, path=f"marks/{mark}", data=mark)
        self._sure(key, mark)

    def op_extend(self, key, rng):
        self.ask("extend", key=key.name)

    def op_activity(self, key, rng):
        self.ask("activity", key=key.name)

    def op_hibernate(self, key, rng):
        s = self.ask("hibernate", key=key.name)["session"]
        with key.lock:
            key.generation = max(key.generation, s["generation"])

    def op_resume(self, key, rng):
        self.ask("resume", key=key.name)

    def op_probe(self, key, rng):
        if self.ask("probe", key=key.name)["answer"] == "expired" and not self.kills:
            raise Violation(f"{key.name}: a probe found it dead")

    def op_get(self, key, rng):
        self.ask("get", key=key.name)

    def op_sweep(self, key, rng):
        self.ask("sweep")

    def op_snapshot(self, key, rng):
        with key.lock:
            if len(key.snapshots) >= 6:
                return
            made = {"marks": Marks(key.marks.sure, key.marks.maybe), "open": True}
            name = f"s{next(self.marks)}"
            key.snapshots[name] = made
        try:
            made["id"] = self.ask("snapshot", key=key.name, name=name)["snapshot"]["id"]
        except (Refused, Died):
            with key.lock:
                key.snapshots.pop(name, None)
            raise
        finally:
            made["open"] = False

    # -- operations that run alone

    def op_pause(self, key, rng):
        """Alone, because a concurrent command would stay frozen until the next use."""
        self.ask("pause", key=key.name)
        if rng.random() < 0.5:
            self.ask("unpause", key=key.name)

    def op_look(self, key, rng):
        if not key.exists or key.unsure:
            return
        found = self.found(key)
        key.marks.check(found, key.name)
        key.marks = Marks(found)

    def op_rollback(self, key, rng):
        ready = [s for s in key.snapshots.values() if "id" in s]
        if not key.exists or not ready:
            return
        s = rng.choice(ready)
        key.unsure = True
        self.ask("rollback", key=key.name, snapshot=s["id"])
        key.unsure = False
        key.marks = Marks(s["marks"].sure, s["marks"].maybe)
        self.op_look(key, rng)

    def op_fork(self, key, rng):
        if not key.exists or key.unsure:
            return
        ready = [s for s in key.snapshots.values() if "id" in s]
        s = rng.choice(ready) if ready and rng.random() < 0.5 else None
        to = f"{key.name}-fork{next(self.marks)}"
        want = {"snapshot": s["id"]} if s else {}
        self.ask("fork", key=key.name, to=to, **want)
        child = Key(to)
        marks = s["marks"] if s else key.marks
        try:
            marks.check(self.found(child), f"fork {to} of {key.name}")
            self.ask("write", key=to, path="marks/only-in-the-fork", data="x")
            if "only-in-the-fork" in self.found(key):
                raise Violation(f"{to} writes into {key.name}")
        finally:
            try:
                self.ask("destroy", key=to)
            except Died:
                pass

    def op_destroy(self, key, rng):
        if not key.exists:
            return
        key.unsure = True
        snapshots = [s["id"] for s in key.snapshots.values() if "id" in s]
        self.ask("destroy", key=key.name)
        key.forget()
        for s in snapshots:
            try:
                self.ask("snapshot_remove", snapshot=s)
            except (Refused, Died):
                pass

    def op_kill_sandbox(self, key, rng):
        if not key.exists or key.unsure:
            return
        s = self.ask("get", key=key.name)["session"]
        with self.swap:
            e = self.engine
        if s["state"] != "active" or not e:
            return
        try:
            e.kill_sandbox(s)
        except OSError:
            return
        try:
            self.op_look(key, rng)
        except Refused as r:  # the sandbox died during the command, so the mark may exist or not
            if r.code != "UNAVAILABLE":
                raise
            self.op_look(key, rng)

    TOGETHER = ["enter", "exec", "exec", "exec", "write", "write", "extend", "activity", "hibernate",
                "resume", "probe", "get", "sweep", "snapshot"]
    ALONE = ["look", "look", "pause", "rollback", "fork", "destroy", "kill_sandbox"]

    # -- running

    def one(self, rng):
        key = rng.choice(self.keys)
        alone = rng.random() < 0.2
        op = rng.choice(self.ALONE if alone else self.TOGETHER)
        key.gate.enter(alone)
        try:
            if key.unsure:
                self.find_out(key)
            getattr(self, "op_" + op)(key, rng)
            self.count(op)
        except Refused as e:
            # unknown session, not possible in this state, or hibernated by another request meanwhile: all are valid
            if e.code not in ("NOT_FOUND", "CONFLICT") and not (e.code == "UNAVAILABLE" and not alone):
                raise Violation(f"{op} {key.name}: {e}") from e
            if e.code == "NOT_FOUND" and key.exists and not key.unsure and e.sys:
                raise Violation(f"{op} {key.name}: {e}") from e
            self.count(op + " refused")
        except Died:
            self.count(op + " died")
        finally:
            key.gate.leave()

    def find_out(self, key):
        """After a destroy or rollback without a reply, find out whether it happened."""
        with key.lock:
            if not key.unsure:
                return
            try:
                found = self.found(key)
            except Refused as e:
                if e.code != "NOT_FOUND":
                    raise
                key.forget()
                return
            possible = [key.marks] + [s["marks"] for s in key.snapshots.values()]
            for m in possible:
                try:
                    m.check(found, key.name)
                except Violation:
                    continue
                key.marks, key.unsure = Marks(found), False
                return
            raise Violation(f"{key.name}: {sorted(found)} is none of its states")

    def worker(self, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            try:
                self.one(rng)
            except Exception as e:  # noqa: B902
                self.failure = self.failure or e
                self.stop.set()

    def kill_and_start(self):
        with self.swap:
            e, self.engine = self.engine, None
        e.kill()
        self.kills += 1
        e = Engine(self.world, *self.options)
        with self.swap:
            self.engine = e
            self.swap.notify_all()

    def run(self, seconds, threads, kill=0, execs=0):
        """For so many seconds, and longer if the machine is too busy for so many commands in that time."""
        workers = [threading.Thread(target=self.worker, args=(self.rng.random(),), daemon=True)
                   for _ in range(threads)]
        end = time.monotonic() + seconds
        for w in workers:
            w.start()
        while (time.monotonic() < end or self.counts.get("exec", 0) < execs) and not self.stop.is_set():
            if kill:
                self.stop.wait(self.rng.uniform(kill / 2, kill * 1.5))
                if not self.stop.is_set():
                    self.kill_and_start()
            else:
                self.stop.wait(min(1, max(0.1, end - time.monotonic())))
        self.stop.set()
        for w in workers:
            w.join(180)
            if w.is_alive():
                raise Violation("an operation hangs")
        if self.failure:
            raise self.failure
        self.final()

    def final(self):
        """Every session is in the state of the model, with at most one sandbox; then destroy all."""
        for key in self.keys:
            if key.unsure:
                self.find_out(key)
            if key.exists:
                self.op_look(key, self.rng)
        sessions = self.ask("list")["sessions"]
        named = {s["sandbox"] for s in sessions if s["sandbox"]}
        kept = self.ask("kept")["kept"]
        strays = {i for kind, i in kept if kind != "layer"} - named
        if strays:
            raise Violation(f"sandboxes that no record names: {strays}")
        for s in sessions:
            if s["state"] not in ("active", "hibernated", "none", "failed", "archived"):
                raise Violation(f"left half way: {s}")
        self.engine.destroy_all()
        code = self.engine.close()
        if code != 0:
            raise Violation(f"the engine ended with {code}: {self.engine.log()}")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=600)
    p.add_argument("--keys", type=int, default=50)
    p.add_argument("--threads", type=int, default=8)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--kill", type=float, default=0, help="SIGKILL the engine about every N seconds")
    p.add_argument("--store", choices=["dir", "volume"], default="volume")
    p.add_argument("--max-active", type=int, default=0)
    a = p.parse_args()
    print(f"seed {a.seed}", flush=True)
    w = World(store="dir" if a.store == "dir" else None)
    options = ["--max-active", str(a.max_active)] if a.max_active else []
    m = Model(w, random.Random(a.seed), a.keys, options)
    try:
        m.run(a.seconds, a.threads, a.kill)
        w.assert_clean("the end")
    except Exception as e:  # noqa: B902
        print(f"FAIL seed {a.seed}: {type(e).__name__}: {e}")
        print(m.engine.log() if m.engine else "")
        return 1
    finally:
        if m.engine and m.engine.process.poll() is None:
            m.engine.kill()
        w.close()
    print(f"PASS: {sum(m.counts.values())} operations, {m.kills} kills")
    for k, n in sorted(m.counts.items()):
        print(f"  {n:7} {k}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
