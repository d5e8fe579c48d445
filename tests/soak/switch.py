# SPDX-License-Identifier: Apache-2.0
"""Users switch between projects at random, over HTTP with a real lodged, compared with a model of each file.

After a switch a user has one running sandbox, during a switch at most two. No file of one project ever appears in
another. Working copies are preserved.

    switch.py [--seconds N] [--users N] [--threads N] [--seed N]"""
import argparse
import contextlib
import itertools
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from client import KEY, Lodged  # noqa: E402
from people import User, refusal  # noqa: E402

PROJECTS = 3
LOOK = "cd && grep -rH '' . | LC_ALL=C sort"  # each file has one line, which names its project
STATES = "provisioning restoring active hibernating".split()


class Violation(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Violation(*what)


class Project:
    def __init__(self, name):
        self.name, self.fragments, self.copy, self.latest = name, {}, None, None
        self.lost = False  # a cleanup destroyed its working copy, and nobody was told yet


class Person(User):
    """One user with a model of everything they have; one operation at a time."""

    marks = itertools.count()

    def __init__(self, client, name, rng):
        super().__init__(client, name)
        self.rng, self.lock, self.switching = rng, threading.Lock(), False
        self.projects = [Project(f"{name}-p{i}") for i in range(PROJECTS)]
        self.at = self.session = None
        self.moves = 0  # incremented before and after each move: an observation between equal values is valid

    def prepare(self):
        for p in self.projects:
            self.project(p.name)
            for _ in range(self.rng.randrange(3)):
                self.add_fragment(p)

    def content(self, project):
        return f"{project.name} {next(self.marks)}"

    def add_fragment(self, p):
        files = {f"f{i}/g{i}": self.content(p) for i in range(self.rng.randrange(1, 5))}
        p.latest = self.save(p.name, files)
        p.fragments[p.latest] = files

    # -- checking

    def found(self):
        lines = self.client.run(self.session, LOOK).splitlines()
        return {path[2:]: text for path, text in (line.split(":", 1) for line in lines)}

    def check(self):
        wanted, found = self.at.copy, self.found()
        strange = {k: v for k, v in found.items() if not v.startswith(self.at.name + " ")}
        expect(not strange, f"{self.name} in {self.at.name}: files of another project: {strange}")
        expect(found == wanted, f"{self.name} in {self.at.name}: {found}, not {wanted}")

    def check_alone(self):
        now = self.look()
        current = now["currentSandbox"]
        expect(now["activeSandboxes"] == 1 and current and current["projectId"] == self.at.name,
               f"{self.name} in {self.at.name}: {now}")

    # -- operations of a user

    def move(self, p, fragment, headers):
        body = {"projectId": p.name, **({"fragmentId": fragment} if fragment else {})}
        self.moves += 1
        self.switching = True
        try:
            answer = self.post("/api/switch-project", body, headers=headers)
        finally:
            self.switching = False
            self.moves += 1
        expect(answer.status == 200, f"{self.name} to {body}: {answer}")
        if not headers:
            return answer.json["result"]
        last = answer.data.decode().rstrip().rsplit("data: ", 1)[1]
        return json.loads(last)["result"]

    def op_switch(self):
        p = self.rng.choice(self.projects)
        named = self.rng.choice(sorted(p.fragments)) if p.fragments and self.rng.random() < 0.35 else None
        had = p.copy
        r = self.move(p, named, {"Accept": "text/event-stream"} if self.rng.random() < 0.2 else {})
        expect(r["activeProjectId"] == p.name and r["stateLost"] == (p.lost and not named), f"{self.name}: {r}")
        p.lost = False
        if named or had is None:
            p.copy = dict(p.fragments.get(named or p.latest, {}))
            expect(r["restoredFiles"] == len(p.copy), f"{self.name} {named}: {r}")
        self.at, self.session = p, r["sessionId"]
        self.check_alone()
        self.check()

    def op_write(self):
        path, text = f"w{self.rng.randrange(6)}", self.content(self.at)
        answer = self.client.call("PUT", f"/v1/sessions/{self.session}/files/{path}", text.encode())
        expect(answer.status in (200, 201, 204), f"{self.name}: {answer}")
        self.at.copy[path] = text

    def op_remove(self):
        if self.at.copy:
            path = self.rng.choice(sorted(self.at.copy))
            self.client.run(self.session, f"cd && rm {path}")
            del self.at.copy[path]

    def op_save(self):
        if len(self.at.fragments) < 8:
            answer = self.post(f"/api/projects/{self.at.name}/fragments", {"fromSandbox": True})
            expect(answer.status == 201, f"{self.name}: {answer}")
            self.at.latest = answer.json["id"]
            self.at.fragments[self.at.latest] = dict(self.at.copy)

    def op_refused(self):
        """A refused switch changes nothing."""
        other = next(p for p in self.projects if p is not self.at)
        bad = [({"projectId": "unknown"}, 404), ({"projectId": other.name, "fragmentId": "none"}, 404)]
        bad += [({"projectId": other.name, "fragmentId": f}, 409) for f in list(self.at.fragments)[:1]]
        for body, status in bad:
            answer = self.post("/api/switch-project", body)
            expect(refusal(answer)[0] == status, f"{self.name} to {body}: {answer}")
        self.check_alone()
        self.check()

    def op_together(self):
        """Two switches at once: both responses are correct, and the user ends in one of the two projects."""
        first, second = self.rng.sample(self.projects, 2)
        results = {}

        def go(p):
            results[p] = self.post("/api/switch-project", {"projectId": p.name})

        threads = [threading.Thread(target=go, args=(p,)) for p in (first, second)]
        self.moves += 1
        self.switching = True
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.switching = False
        self.moves += 1
        for p in (first, second):
            expect(results[p].status == 200, f"{self.name}: {results[p]}")
            expect(results[p].json["result"]["activeProjectId"] == p.name, f"{self.name}: {results[p]}")
            expect(results[p].json["result"]["stateLost"] == p.lost, f"{self.name}: {results[p]}")
            p.lost = False
            if p.copy is None:
                p.copy = dict(p.fragments.get(p.latest, {}))
        current = self.look()["currentSandbox"]
        self.at = next((p for p in (first, second) if current and p.name == current["projectId"]), None)
        expect(self.at, f"{self.name} has no current sandbox: {current}")
        result = results[self.at].json["result"]
        expect(result["sandboxId"] == current["sandboxId"], f"{self.name}: {result}, {current}")
        self.session = result["sessionId"]
        self.check_alone()
        self.check()

    def op_cleanup(self):
        self.moves += 1
        answer = self.post("/api/cleanup-sandboxes")
        self.moves += 1
        expect(answer.status == 200 and answer.json["results"]["failed"] == 0, f"{self.name}: {answer}")
        self.at.copy, self.at.lost = None, True
        self.at = self.session = None
        expect(self.look()["activeSandboxes"] == 0, f"{self.name} still has sandboxes")

    WORK = ["switch"] * 10 + ["write"] * 6 + ["remove", "save", "refused", "together", "together"]

    def step(self):
        op = self.rng.choice(self.WORK) if self.rng.random() < 0.98 else "cleanup"
        if not self.at:
            op = "switch"
        getattr(self, "op_" + op)()
        return op


class Watcher(threading.Thread):
    """Counts each user's running sandboxes all the time."""

    def __init__(self, client, people, stop):
        super().__init__(daemon=True)
        self.client, self.people, self.stop, self.failure = client, people, stop, None
        self.looks = self.most = 0

    def live(self):
        """The number of sandboxes of each user in the store, where they appear before they start and disappear after
        they end."""
        counts, after = {}, 0
        while after is not None:
            page = self.client.get(f"/v1/sessions?limit=1000&after={after}").json
            for s in page["sessions"]:
                if s["state"] in STATES and s["sandbox"]:
                    counts[s["user"]] = counts.get(s["user"], 0) + 1
            after = page["next"]
        return counts

    def look(self):
        before = {p.name: (p.moves, p.switching) for p in self.people}
        counts = self.live()
        for p in self.people:
            count = counts.get(p.name, 0)
            quiet = before[p.name] == (p.moves, False)
            expect(count <= (1 if quiet else 2), f"{p.name} has {count} sandboxes (quiet: {quiet})")
            self.most = max(self.most, count)
        self.looks += 1

    def run(self):
        while not self.stop.wait(0.2):
            try:
                self.look()
            except Exception as e:  # noqa: B902
                self.failure = e
                self.stop.set()


class Run:
    def __init__(self, lodged, key, users, seed):
        rng = random.Random(seed)
        self.client, self.stop = lodged.client(key), threading.Event()
        self.people = [Person(self.client, f"user{i}", random.Random(rng.random())) for i in range(users)]
        self.watcher = Watcher(lodged.client(key), self.people, self.stop)
        self.counts, self.times, self.failure, self.mutex = {}, [], None, threading.Lock()

    def one(self, person):
        began = time.monotonic()
        op = person.step()
        with self.mutex:
            self.counts[op] = self.counts.get(op, 0) + 1
            if op == "switch":
                self.times.append(time.monotonic() - began)

    def worker(self, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            person = rng.choice(self.people)
            if not person.lock.acquire(blocking=False):
                continue
            try:
                self.one(person)
            except Exception as e:  # noqa: B902
                self.failure = self.failure or e
                self.stop.set()
            finally:
                person.lock.release()

    def finish(self):
        """Check every working copy of every user; then destroy all."""
        for person in self.people:
            for p in person.projects:
                if p.copy is not None:
                    r = person.move(p, None, {})
                    person.at, person.session = p, r["sessionId"]
                    person.check_alone()
                    person.check()
            person.op_cleanup()
            for p in person.projects:
                expect(person.delete("/api/projects/" + p.name).status == 200, p.name)
        left = self.client.get("/v1/sessions").json["sessions"]
        expect(not left, f"left over: {left}")

    def run(self, seconds, threads):
        for person in self.people:
            person.prepare()
        workers = [threading.Thread(target=self.worker, args=(i,), daemon=True) for i in range(threads)]
        for w in workers + [self.watcher]:
            w.start()
        self.stop.wait(seconds)
        self.stop.set()
        for w in workers + [self.watcher]:
            w.join(180)
            expect(not w.is_alive(), "an operation hangs")
        if self.failure or self.watcher.failure:
            raise self.failure or self.watcher.failure
        self.finish()
        return {**self.counts, "looks": self.watcher.looks, "most": self.watcher.most}


def run(lodged, key, users, seconds, threads, seed):
    """Run it; return the counts of operations, or raise a Violation."""
    return Run(lodged, key, users, seed).run(seconds, threads)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=300)
    p.add_argument("--users", type=int, default=200)
    p.add_argument("--threads", type=int, default=8)
    p.add_argument("--seed", type=int, default=int(time.time()))
    a = p.parse_args()
    print(f"seed {a.seed}", flush=True)
    with contextlib.closing(Lodged()) as lodged:
        try:
            r = Run(lodged, KEY, a.users, a.seed)
            done = r.run(a.seconds, a.threads)
        except Violation as e:
            print(f"FAIL seed {a.seed}: {e}\n{lodged.log()}")
            return 1
        times = sorted(r.times)
        print(", ".join(f"{k} {v}" for k, v in sorted(done.items())))
        print(f"a switch with its checks: median {times[len(times) // 2] * 1000:.0f} ms, "
              f"most {times[-1] * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
