# SPDX-License-Identifier: Apache-2.0
"""Scenarios with projects and users, as in steps.py."""
from stage import Refused
from steps import DESTROY, STORE, RESUME, scenario

SWITCH = ("switch:checked", "switch:pointed", "switch:swapped", "switch:done")
SWITCH_NEW = SWITCH + ("switch:made", "switch:restored", "switch:marked", "switch:copied")


def user_sessions(c, user):
    return c.e.list(user=user)["sessions"]


class Work:
    """A user with two projects; the second has a fragment."""

    def __init__(self, c):
        self.c, self.user = c, f"user{c.n}"
        self.one, self.two = f"one{c.n}", f"two{c.n}"
        for p in (self.one, self.two):
            c.e.project(user=self.user, project=p)
        self.fragment = c.e.fragment(user=self.user, project=self.two,
                                     files={"a.txt": "saved"})["fragment"]

    def go(self, project, **args):
        return self.c.e.switch(user=self.user, project=project, **args)

    def write(self, name, data):
        self.c.e.write(kind="user", key=self.user, path=name, data=data)

    def read(self, name):
        return self.c.e.read(kind="user", key=self.user, path=name)["data"]

    def check(self, copies):
        """There are as many sessions as working copies, and every reference leads to the right one."""
        sessions = user_sessions(self.c, self.user)
        keys = {self.c.exists(kind="project", key=f"{self.user}/{p}")["id"]
                for p in (self.one, self.two)
                if self.c.exists(kind="project", key=f"{self.user}/{p}")}
        assert {s["id"] for s in sessions} == keys, f"sessions without a key: {sessions}"
        assert len(keys) in copies, sessions
        at = self.c.e.where(user=self.user)["project"]
        on = self.c.exists(kind="user", key=self.user)
        assert on and on["project"] == at, f"the user is on {at}, the key names {on}"


@scenario(*SWITCH_NEW, "resume:made")
def switch_project(c):
    w = Work(c)
    w.go(w.one)
    w.write("mine.txt", "unsaved")
    yield lambda e: e.switch(user=w.user, project=w.two)
    w.check(copies=(1, 2))
    w.go(w.two)
    assert w.read("a.txt") == "saved"
    w.go(w.one)
    assert w.read("mine.txt") == "unsaved"
    w.check(copies=(2,))


@scenario(*SWITCH_NEW)
def switch_fragment(c):
    """It replaces the working copy."""
    w = Work(c)
    w.go(w.two)
    w.write("a.txt", "changed")
    yield lambda e: e.switch(user=w.user, project=w.two, fragment=w.fragment)
    w.check(copies=(1,))
    assert w.read("a.txt") in ("saved", "changed")
    w.go(w.two, fragment=w.fragment)
    assert w.read("a.txt") == "saved"
    w.check(copies=(1,))


@scenario(*SWITCH, *RESUME)
def switch_back(c):
    w = Work(c)
    w.go(w.one)
    w.write("mine.txt", "unsaved")
    w.go(w.two)
    w.write("a.txt", "changed")
    yield lambda e: e.switch(user=w.user, project=w.one)
    w.check(copies=(2,))
    w.go(w.one)
    assert w.read("mine.txt") == "unsaved"
    w.go(w.two)
    assert w.read("a.txt") == "changed"
    w.check(copies=(2,))


@scenario("fragment:collected", *STORE)
def fragment_save(c):
    w = Work(c)
    w.go(w.one)
    w.write("mine.txt", "now saved")
    yield lambda e: e.fragment(user=w.user, project=w.one, from_sandbox=True)
    f = c.e.fragment(user=w.user, project=w.one, from_sandbox=True)
    assert f["files"] >= 1
    w.write("mine.txt", "later")
    w.go(w.one, fragment=f["fragment"])
    assert w.read("mine.txt") == "now saved"


@scenario("fragment:removed")
def fragment_remove(c):
    w = Work(c)
    act = {"user": w.user, "project": w.two, "fragment": w.fragment}
    yield lambda e: e.fragment_remove(**act)
    try:
        c.e.fragment_remove(**act)
    except Refused as r:
        assert r.code == "NOT_FOUND", r
    w.go(w.two)
    w.check(copies=(1,))


@scenario("project:ended", "project:dropped", "project:removed", "destroy:recorded", "destroy:ended")
def project_remove(c):
    w = Work(c)
    w.go(w.one)
    w.write("mine.txt", "unsaved")
    w.go(w.two)
    act = {"user": w.user, "project": w.two}
    yield lambda e: e.project_remove(**act)
    try:
        c.e.project_remove(**act)
    except Refused as r:
        assert r.code == "NOT_FOUND", r
    assert len(user_sessions(c, w.user)) == 1
    w.go(w.one)
    assert w.read("mine.txt") == "unsaved"


@scenario("kill:ended", *DESTROY)
def kill_user(c):
    w = Work(c)
    w.go(w.one)
    w.go(w.two)
    yield lambda e: e.kill_user(user=w.user)
    c.e.kill_user(user=w.user)
    assert len(user_sessions(c, w.user)) == 1  # the working copy of the other project
    assert c.e.where(user=w.user)["project"] == ""
    w.go(w.one)
