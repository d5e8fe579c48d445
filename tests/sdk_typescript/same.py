# SPDX-License-Identifier: Apache-2.0
"""The words of docs/sdks.md as sdk/python means them. sdk/typescript/test/same.mts has the same calls; the results
of a word must be equal. `do` waits for the asynchronous client."""
import io
import os
import re
import tarfile

import lodge
from client import SOURCE

NEVER = "sleep 600"


def documented():
    """The words of the table, as they are spelled in Python."""
    with open(os.path.join(SOURCE, "docs", "sdks.md"), encoding="utf-8") as f:
        return [re.findall("`(.*?)`", line.split("|")[1])[0] for line in f if line.startswith("| `")]


def code_of(do, call):
    """The code of the error that a call ends with; None if it succeeds."""
    try:
        do(call())
    except lodge.Error as e:
        return e.code
    return None


def leave(do, session):
    do(session.__exit__(None, None, None) if hasattr(session, "__exit__") else session.__aexit__(None, None, None))


def shape(events):
    """Kinds of events, those of a kind in a row once."""
    kinds = [e.kind for e in events]
    return [k for i, k in enumerate(kinds) if not i or kinds[i - 1] != k]


class Words:
    """One method per word; `name` is a key that no other run has."""

    def __init__(self, way, name, directory):
        self.way, self.do, self.client, self.name, self.directory = way, way.do, way.client, name, directory
        self.box = self.do(self.client.enter(name + "-box"))

    def close(self):
        self.do(self.box.delete())

    def _few(self):
        """A command that wrote more than is retained."""
        job = self.do(self.box.start("head -c 10000 /dev/zero", max_output_bytes=4096, stdin_open=False))
        return job, self.do(job.wait())

    def enter(self):
        s = self.do(self.client.enter(self.name, user="ada"))
        again = self.do(self.client.enter(self.name))
        out = self.do(s.exec("echo hi")).text
        same = s.id == again.id == s.record["id"]
        result = [out, same, s.record["key"] == self.name, s.outcome, again.outcome, s.state_lost, s.cause]
        self.do(s.delete())
        return result

    def scope(self):
        named, nameless = self.do(self.client.enter(self.name)), self.do(self.client.enter())
        fork, = self.do(named.fork())
        for s in (named, nameless, fork):
            leave(self.do, s)
        result = [code_of(self.do, s.get) for s in (named, nameless, fork)]
        self.do(named.delete())
        return result

    def session(self):
        missing, box = self.client.session("ses_none"), self.client.session("key:" + self.name + "-box")
        leave(self.do, box)
        return [code_of(self.do, missing.get), self.do(box.get())["id"] == self.box.id]

    def fork(self):
        self.do(self.box.files.write("f", "mine"))
        forks = self.do(self.box.fork(count=2))
        result = [self.do(f.exec("cat f")).text for f in forks] + [forks[0].id == forks[0].record["id"]]
        for f in forks:
            self.do(f.delete())
        return result

    def exec(self):
        seen = []
        for command in ("exit 3", "nosuch-program", ["nosuch-program"], "/etc/passwd", ["/etc/passwd"]):
            r = self.do(self.box.exec(command))
            seen.append([r.exit_code, r.stdout.decode(), bool(r.stderr)])
        return seen

    def stream(self):
        events = self.do(self.box.stream("echo a; exit 3"))
        missing = self.do(self.box.stream(["nosuch-program"]))
        return [shape(events), events[-1].result.exit_code, shape(missing), missing[-1].result.exit_code]

    def start(self):
        job = self.do(self.box.start("cat"))
        state = self.do(job.info())["state"]
        self.do(job.write(b"in", eof=True))
        return [state, self.do(job.wait()).text]

    def command(self):
        job = self.do(self.box.start("echo out"))
        return [self.do(self.box.command(job.id).wait()).text, code_of(self.do, self.box.command("exe_none").info)]

    def execs(self):
        r = self.do(self.box.exec("true"))
        return [e["state"] for e in self.do(self.box.execs()) if e["exec_id"] == r.exec_id]

    def wait(self):
        r = self.do(self.do(self.box.start("echo out; echo err >&2; exit 4")).wait())
        few = self._few()[1]
        job = self.do(self.box.start(NEVER))
        waited = code_of(self.do, lambda: job.wait(0.2)) is not None
        running = self.do(job.info())["state"]
        self.do(job.kill())
        return [r.exit_code, r.text, r.stderr.decode(), r.truncated, few.truncated, few.limits, len(few.stdout), waited, running]

    def output(self):
        job, _ = self._few()
        o = self.do(job.output(stdout_offset=9999))
        return [code_of(self.do, job.output), len(o.stdout), o.stdout_offset, o.done]

    def gap(self):
        events = self.do(self._few()[0].stream())
        g, end = events[0], events[-1].result
        return [shape(events), g.stream, g.offset, g.bytes, end.truncated, end.limits]

    def timeout(self):
        job = self.box.command("exe_none")
        calls = [lambda t: self.box.exec("true", timeout=t), lambda t: self.box.stream("true", timeout=t),
                 lambda t: self.box.start("true", timeout=t), job.wait, lambda t: job.output(wait=t),
                 lambda t: self.client.enter(self.name, timeout=t), lambda t: type(self.client)("unix:/x", timeout=t)]
        refused = [code_of(self.do, lambda: call(wrong)) for wrong in (-1, float("nan")) for call in calls]
        none = self.do(self.box.exec("sleep 0.2; echo on", timeout=0))
        last = self.do(self.box.stream("sleep 0.2", timeout=0))[-1].result
        job = self.do(self.do(self.box.start("sleep 0.2; echo on", timeout=0)).wait(0))
        late = self.do(self.box.exec(NEVER, timeout=0.2))
        return [refused, none.text, none.timed_out, last.exit_code, job.text, late.timed_out]

    def upload(self):
        local = os.path.join(self.directory, "local")
        with open(local, "wb") as f:
            f.write(b"local \xff")
        made = self.do(self.box.files.upload(local, "up/by-path", mkdir=True))
        self.do(self.box.files.upload(b"bytes", "up/by-bytes"))
        return [made["type"], made["size"], self.do(self.box.exec("cat up/by-bytes; wc -c < up/by-path")).text]

    def download(self):
        self.do(self.box.files.write("down", "inside"))
        local = os.path.join(self.directory, "down")
        size = self.do(self.box.files.download("down", local))
        with open(local, "rb") as f:
            return [size, f.read().decode(), code_of(self.do, lambda: self.box.files.download("none", local))]

    def get_archive(self):
        self.do(self.box.files.write("dir/a", "1", mkdir=True))
        packed = io.BytesIO()
        self.do(self.box.files.get_archive("dir", packed))
        self.do(self.box.files.put_archive(packed.getvalue(), "copy"))
        return self.do(self.box.exec("cat copy/a")).text

    def put_archive(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            info = tarfile.TarInfo("sub/one")
            info.size = 3
            tar.addfile(info, io.BytesIO(b"one"))
        self.do(self.box.files.put_archive(packed.getvalue(), "unpacked"))
        return [self.do(self.box.exec("cat unpacked/sub/one")).text,
                code_of(self.do, lambda: self.box.files.put_archive(b"no archive" * 100, "unpacked"))]

    def events(self):
        s = self.do(self.client.enter(asleep=True))
        self.do(s.delete())
        kinds = [e["kind"] for e in self.do(self.client.events(session=s.id))]
        back = [e["kind"] for e in self.do(self.client.events(session=s.id, newest_first=True))]
        some = [e["kind"] for e in self.do(self.client.events(session=s.id, kind=["create", "destroy"]))]
        return [kinds[0], kinds[-1], back == kinds[::-1], some]

    def follow_events(self):
        s = self.do(self.client.enter(asleep=True))
        seen = []
        for event in self.way.steps(self.client.follow_events(session=s.id, since=0)):
            seen.append(event["kind"])
            if len(seen) == 1:
                self.do(s.delete())
            if event["kind"] == "destroy":
                break
        return [seen[0], seen[-1]]

    def cleanup(self):
        made = [self.do(self.client.enter(f"{self.name}-{i}", user=self.name, asleep=True)).id for i in range(3)]
        done = self.do(self.client.cleanup(user=self.name, reason="over"))
        return [sorted(done["destroyed"]) == sorted(made), done["failed"], self.do(self.client.cleanup(user=self.name))]

    # ---- projects

    def _project(self):
        """A project with two fragments, of a user who has nothing else."""
        user = self.name + "-owner"
        project = self.name + "-project"
        if code_of(self.do, lambda: self.client.projects.get(project)) == "NOT_FOUND":
            self.do(self.client.projects.create("Site", id=project, user=user))
            for text in ("one", "two"):
                self.do(self.client.projects.create_fragment(project, id=f"{self.name}-{text}", title=text, user=user,
                                                             files={"f": text, "dir/g": "__BASE64__AP8="}))
        return user, project

    def _here(self, user, command):
        current = self.do(self.client.user(user))["user"]["session"]
        return self.do(self.client.session(current["id"]).exec(command)).text

    def switch_user_to_fragment(self):
        user, project = self._project()
        r = self.do(self.client.projects.switch_user_to_fragment(user, project, self.name + "-one"))
        wrong = code_of(self.do, lambda: self.client.projects.switch_user_to_fragment(user, project, "none"))
        return [r["restoredFiles"], r["fragmentId"] == self.name + "-one", bool(r["sandboxId"]),
                self._here(user, "cat f; wc -c < dir/g"), wrong]

    def switch_user_to_project(self):
        user, project = self._project()
        other = self.name + "-other"
        self.do(self.client.projects.create("Other", id=other, user=user))
        away = self.do(self.client.projects.switch_user_to_project(user, other))
        self.do(self.client.projects.switch_user_to_project(user, project))
        result = [away["restoredFiles"], away["fragmentId"], self._here(user, "cat f")]
        stranger = code_of(self.do, lambda: self.client.projects.switch_user_to_project("mallory", project))
        return result + [stranger]

    def get_user_active_fragment(self):
        user, project = self._project()
        nowhere = self.do(self.client.projects.get_user_active_fragment(self.name + "-nobody"))
        self.do(self.client.projects.switch_user_to_fragment(user, project, self.name + "-two"))
        now = self.do(self.client.projects.get_user_active_fragment(user))
        return [nowhere, now["projectId"] == project, now["fragmentId"] == self.name + "-two",
                now["fragment"]["files"]["f"]]

    def kill_user_active_sandbox(self):
        user, project = self._project()
        was = self.do(self.client.projects.switch_user_to_project(user, project))["sandboxId"]
        killed = self.do(self.client.projects.kill_user_active_sandbox(user))
        again = self.do(self.client.projects.kill_user_active_sandbox(user))
        return [killed["killed"], killed["sandboxId"] == was, again]

    def get_user_id_for_project(self):
        user, project = self._project()
        return [self.do(self.client.projects.get_user_id_for_project(project)) == user,
                code_of(self.do, lambda: self.client.projects.get_user_id_for_project("none"))]

    def kill_all_user_sandboxes(self):
        user, project = self._project()
        self.do(self.client.projects.switch_user_to_project(user, project))
        done = self.do(self.client.projects.kill_all_user_sandboxes())
        again = self.do(self.client.projects.kill_all_user_sandboxes())
        return [done["users"] > 0, done["killed"] == len(done["killedSandboxes"]) > 0, done["failed"], again]

    def create(self):
        user, team = self.name + "-lead", self.name + "-blue"
        made = self.do(self.client.projects.create("Shared", user=user, team=team))
        got = self.do(self.client.projects.get(made["id"], user=user))
        listed = [p["name"] for p in self.do(self.client.projects.list(user=user))]
        gone = self.do(self.client.projects.delete(made["id"], user=user))
        return [made["name"], made["owner"] == user, got == made == gone, listed,
                code_of(self.do, lambda: self.client.projects.get(made["id"], user=user))]

    def create_fragment(self):
        user, project = self._project()
        made = self.do(self.client.projects.create_fragment(project, user=user, title="T", files={"x": "y"}))
        got = self.do(self.client.projects.fragment(project, made["id"], user=user))
        first = self.do(self.client.projects.fragments(project, user=user))[0]
        gone = self.do(self.client.projects.delete_fragment(project, made["id"], user=user))
        return [made["title"], got["files"], first["id"] == gone["id"] == made["id"], "files" in first,
                code_of(self.do, lambda: self.client.projects.fragment(project, made["id"], user=user))]

    def set_member(self):
        team = self.name + "-team"
        made = [self.do(self.client.teams.set_member(team, u, r))["role"] for u, r in (("ann", "OWNER"), ("bob", "VIEWER"))]
        changed = self.do(self.client.teams.set_member(team, "bob", "ADMIN", by="ann"))["role"]
        seen = [[m["user"], m["role"]] for m in self.do(self.client.teams.members(team))]
        teams = [{**t, "team": t["team"] == team} for t in self.do(self.client.teams.list(user="bob")) if t["team"] == team]
        named = [t["team"] for t in self.do(self.client.teams.list())].count(team)
        removed = self.do(self.client.teams.remove_member(team, "bob"))["user"]
        denied = code_of(self.do, lambda: self.client.teams.set_member(team, "eve", "OWNER", by="eve"))
        return [made, changed, seen, teams, named, removed, denied]

    def health(self):
        return self.do(self.client.health())["status"]

    def ready(self):
        return self.do(self.client.ready())


METHODS = {"with": "scope"}  # a word of the language
EXPECTED = {
    "with": [None, "GONE", "GONE"],
    "exec": [[3, "", False], [127, "", True], [127, "", True], [126, "", True], [126, "", True]],
    "wait": [4, "out\n", "err\n", False, True, ["LIMIT_OUTPUT"], 4096, True, "running"],
    "output": ["OUTPUT_GONE", 1, 10000, True],
    "gap": [["gap", "stdout", "exit"], "stdout", 0, 5904, True, ["LIMIT_OUTPUT"]],
    "timeout": [["INVALID"] * 14, "on\n", False, 0, "on\n", True],
}


def run(way, name, directory):
    """The result of every word."""
    words = Words(way, name, directory)
    try:
        return {word: getattr(words, METHODS.get(word, word))() for word in documented()}
    finally:
        words.close()
