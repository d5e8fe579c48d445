# SPDX-License-Identifier: Apache-2.0
"""/api/switch-project and /api/cleanup-sandboxes: the rows of the contract, and each of its rules."""
import base64
import concurrent.futures
import contextlib
import itertools
import os
import sqlite3
import sys
import threading

import pytest

from client import KEY, SOURCE, Lodged, quote, wait_for
from people import TIME, User, events, refusal

sys.path.insert(0, os.path.join(SOURCE, "tests", "soak"))

import switch as soak  # noqa: E402

STREAM = {"Accept": "text/event-stream"}
USERS = itertools.count()


@pytest.fixture
def ann(lodged):
    """A new user with the projects a and b, which have one fragment each."""
    user = User(lodged.client(), f"ann{next(USERS)}")
    user.a, user.b = (user.project(f"{user.name}-{n}") for n in "ab")
    user.fa = user.save(user.a, {"a.txt": "alpha\n", "sub/dir/a.txt": "below\n"})
    user.fb = user.save(user.b, {"b.txt": "beta\n"})
    yield user
    assert user.post("/api/cleanup-sandboxes").status == 200


def is_untouched(user, before):
    """Check that the user's current sandbox is still running unchanged."""
    now = user.look()
    assert now["activeSandboxes"] == 1
    assert now["currentSandbox"]["sandboxId"] == before["sandboxId"]
    assert user.here("cat unsaved; pgrep -c sleep") == "u\n1\n"
    return True


def work(user):
    """Create a file that must not be lost, and a process."""
    user.here("echo u > unsaved; sleep 1000 >&- 2>&- & :")


# ---- the contract -------------------------------------------------------------------------------


def test_post_switch_project(lodged, ann):
    answer = ann.post("/api/switch-project", {"projectId": ann.a, "fragmentId": ann.fa})
    assert answer.status == 200, answer
    assert set(answer.json) == {"success", "message", "result"} and answer.json["success"] is True
    assert answer.json["message"] == f"Successfully switched to fragment {ann.fa}"
    r = answer.json["result"]
    assert r["restoredFiles"] == 2 and r["hasRestoredFiles"] is True
    assert r["fragmentId"] == r["activeFragmentId"] == ann.fa and r["activeProjectId"] == ann.a
    assert r["stateLost"] is False and r["cause"] is None
    assert r["sandboxUrl"] is None and "ports" in r["sandboxUrlReason"]
    session = ann.client.session(r["sandboxId"])
    assert session["id"] == r["sessionId"]
    assert session["sandbox"] == r["sandboxId"] and session["state"] == "active"
    assert (session["user"], session["project"], session["fragment"]) == (ann.name, ann.a, ann.fa)


def test_post_cleanup_sandboxes(ann):
    first = ann.switch(ann.a)
    ann.here("echo unsaved > more")
    second = ann.switch(ann.b)
    ann.here("echo unsaved > more")
    extra = ann.client.enter(user=ann.name, key=ann.name + " by hand")
    alone = ann.client.session(extra)["sandbox"]
    assert ann.look()["activeSandboxes"] == 2
    answer = ann.post("/api/cleanup-sandboxes")
    assert answer.status == 200, answer
    assert answer.json["success"] is True
    assert answer.json["message"] == f"Sandbox cleanup completed for user {ann.name}"
    r = answer.json["results"]
    assert (r["totalProjects"], r["killed"], r["failed"], r["failedSandboxes"]) == (1, 2, 0, [])
    assert set(r["killedSandboxes"]) == {second["sandboxId"], alone}
    assert ann.look() == {"userId": ann.name, "activeSandboxes": 0, "currentSandbox": None}
    again = ann.post("/api/cleanup-sandboxes").json["results"]
    assert again == {"totalProjects": 0, "killed": 0, "failed": 0, "killedSandboxes": [],
                     "failedSandboxes": []}
    gone = ann.client.get("/v1/sessions/" + second["sessionId"])
    assert gone.status == 410 and gone.json["error"]["details"]["cause"]["code"] == "cleanup"
    # the working copy of the other project was kept
    assert ann.client.session(first["sessionId"])["state"] == "hibernated"
    back = ann.switch(ann.a)
    assert (back["restoredFiles"], back["stateLost"]) == (0, False) and "more" in ann.files()


def test_what_a_cleanup_destroyed_is_reported_as_lost_once(ann):
    ann.switch(ann.a)
    ann.here("echo unsaved > more")
    key = ann.name + " by hand"
    ann.client.enter(user=ann.name, key=key)
    assert ann.post("/api/cleanup-sandboxes").json["results"]["killed"] == 2
    back = ann.switch(ann.a)
    assert (back["stateLost"], back["restoredFiles"]) == (True, 2) and "more" not in ann.files()
    assert back["cause"]["code"] == "cleanup" and "killed" in back["cause"]["text"]
    entered = ann.client.post("/v1/sessions", {"user": ann.name, "key": key}).json
    assert (entered["outcome"], entered["state_lost"], entered["cause"]["code"]) == ("replaced", True, "cleanup")
    ann.switch(ann.b)
    back = ann.switch(ann.a)
    assert back["stateLost"] is False and back["cause"] is None


def test_a_cleanup_counts_what_runs(ann):
    """Also if it died just now, or the user's project is hibernated."""
    first = ann.switch(ann.a)
    ann.client.post(f"/v1/sessions/{first['sessionId']}/hibernate", {})
    assert ann.look()["activeSandboxes"] == 0
    results = ann.post("/api/cleanup-sandboxes").json["results"]
    assert results == {"totalProjects": 0, "killed": 0, "failed": 0, "killedSandboxes": [], "failedSandboxes": []}
    assert ann.switch(ann.a)["sessionId"] == first["sessionId"]


def test_get_cleanup_sandboxes(ann):
    assert ann.look() == {"userId": ann.name, "activeSandboxes": 0, "currentSandbox": None}
    r = ann.switch(ann.a)
    now = ann.look()
    assert now["userId"] == ann.name and now["activeSandboxes"] == 1
    current = now["currentSandbox"]
    assert TIME.fullmatch(current.pop("createdAt")) and TIME.fullmatch(current.pop("lastUsedAt"))
    assert current == {"sandboxId": r["sandboxId"], "projectId": ann.a, "projectName": ann.a.upper()}
    ann.client.post(f"/v1/sessions/{r['sessionId']}/hibernate", {})
    assert ann.look() == {"userId": ann.name, "activeSandboxes": 0, "currentSandbox": None}


def test_sandboxes_created_by_v1_count(lodged):
    """The user has never used this API."""
    other = User(lodged.client(), "never named")
    extra = other.client.enter(user=other.name, key="by hand")
    assert other.look() == {"userId": other.name, "activeSandboxes": 1, "currentSandbox": None}
    sandbox = other.client.session(extra)["sandbox"]
    assert other.post("/api/cleanup-sandboxes").json["results"]["killedSandboxes"] == [sandbox]
    assert other.look()["activeSandboxes"] == 0


# ---- the rules ----------------------------------------------------------------------------------


def test_a_project_without_a_fragment_switches_with_no_files(ann):
    empty = ann.project(ann.name + "-empty")
    answer = ann.post("/api/switch-project", {"projectId": empty})
    assert answer.status == 200 and answer.json["message"] == f"Successfully switched to project {empty}"
    r = answer.json["result"]
    assert (r["restoredFiles"], r["hasRestoredFiles"]) == (0, False)
    assert r["fragmentId"] is r["activeFragmentId"] is None and r["activeProjectId"] == empty
    assert ann.files() == []


def test_unsaved_work_survives_a_switch(ann):
    first = ann.switch(ann.a)
    assert first["fragmentId"] == ann.fa and first["restoredFiles"] == 2
    ann.here("echo unsaved > more; rm a.txt")
    ann.switch(ann.b)
    assert ann.files() == ["b.txt"]
    assert ann.client.session(first["sessionId"])["state"] == "hibernated"
    back = ann.switch(ann.a)
    assert back["hasRestoredFiles"] is True and back["restoredFiles"] == 0
    assert back["sessionId"] == first["sessionId"] and back["sandboxId"] != first["sandboxId"]
    assert ann.files() == ["more", "sub/dir/a.txt"] and ann.look()["activeSandboxes"] == 1


def test_switching_to_the_current_project_changes_nothing(ann):
    first = ann.switch(ann.a)
    work(ann)
    again = ann.switch(ann.a)
    assert again["sandboxId"] == first["sandboxId"] and is_untouched(ann, first)


def test_a_named_fragment_replaces_all_files(ann):
    ann.switch(ann.a)
    ann.here("echo x > sub/strange; echo changed > a.txt; mkdir empty")
    r = ann.switch(ann.a, ann.fa)
    assert r["restoredFiles"] == 2 and ann.files() == ["a.txt", "sub/dir/a.txt"]
    assert ann.here("cat a.txt; ls") == "alpha\na.txt\nsub\n"
    older = ann.save(ann.a, {"only": "this"})
    ann.save(ann.a, {"latest": "that"})
    assert ann.switch(ann.a, older)["activeFragmentId"] == older and ann.files() == ["only"]
    assert ann.look()["activeSandboxes"] == 1
    sessions = ann.client.get(f"/v1/sessions?user={ann.name}").json["sessions"]
    assert len(sessions) == 1  # the replaced sessions were destroyed


def put_bad_fragment(lodged, project):
    """Corrupt a stored fragment; the API would refuse to save it."""
    lodged.stop()
    with contextlib.closing(sqlite3.connect(os.path.join(lodged.home, "lodge.db"))) as db:
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in tables:
            columns = {c[1] for c in db.execute(f"PRAGMA table_info({table})")}
            if {"path", "data"} <= columns:
                db.execute(f"UPDATE {table} SET path = ? WHERE path = ?", ("ok/../../out", "to-be-bad"))
        assert db.total_changes == 1
        db.commit()
    lodged.start()


def test_one_bad_path_fails_the_switch(lodged):
    """The switch is all or nothing: the error names the path, and the running sandbox stays."""
    with contextlib.closing(Lodged()) as own:
        user = User(own.client(), "ann")
        user.project("a")
        user.project("b")
        fragment = user.save("b", {"fine": "1", "to-be-bad": "2", "z": "3"})
        before = user.switch("a")
        work(user)
        put_bad_fragment(own, "b")
        user = User(own.client(), "ann")
        for named in ({}, {"fragmentId": fragment}):
            answer = user.post("/api/switch-project", {"projectId": "b", **named})
            assert refusal(answer)[0] == 400 and "ok/../../out" in refusal(answer)[1], answer
            assert is_untouched(user, before)
        assert len(own.client().get("/v1/sessions").json["sessions"]) == 1


def test_links_of_the_guest_are_not_followed(ann):
    ann.switch(ann.a)
    ann.here("mkdir /tmp/elsewhere; ln -s /tmp/elsewhere planted; ln -s /etc/passwd a-link")
    fragment = ann.save(ann.a, {"planted/file": "1", "a-link": "2"})
    ann.switch(ann.a, fragment)
    said = ann.here("stat -c '%F' planted planted/file a-link; cat a-link; ls /tmp/elsewhere 2>&1 | wc -l")
    assert said == "directory\nregular file\nregular file\n21\n" and ann.files() == ["a-link", "planted/file"]


def test_a_refused_switch_changes_nothing(ann):
    before = ann.switch(ann.a)
    work(ann)
    other = User(ann.client, "stranger")
    other.project(ann.name + "-strange")
    for where, wanted in (
            ({"projectId": "none"}, (404, "Project not found")),
            ({"projectId": ann.name + "-strange"}, (404, "Project not found")),
            ({"projectId": ann.b, "fragmentId": "none"}, (404, "Fragment not found: none")),
            ({"projectId": ann.b, "fragmentId": ann.fa},
             (409, f"Fragment {ann.fa} does not belong to project {ann.b}"))):
        for headers in ({}, STREAM):
            assert refusal(ann.post("/api/switch-project", where, headers=headers)) == wanted
    assert is_untouched(ann, before)


def test_concurrent_switches_leave_one_sandbox(ann):
    """Each is carried out as a whole. That they run in the order of their arrival is shown by test_project_switch.c."""
    many = ann.save(ann.a, {f"d{i % 50}/f{i}": str(i) for i in range(5000)})
    asked = [(ann.a, many), (ann.b, ann.fb), (ann.a, None), (ann.b, "none"), (ann.a, ann.fa), (ann.b, None)]

    def ask(where):
        return ann.post("/api/switch-project", dict(zip(("projectId", "fragmentId"), where)))

    with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
        answers = list(pool.map(ask, asked))
    assert [a.status for a in answers] == [200, 200, 200, 404, 200, 200], answers
    seen = [a.json.get("result") for a in answers]
    assert [r and r["activeProjectId"] for r in seen] == [ann.a, ann.b, ann.a, None, ann.a, ann.b]
    assert [seen[i]["restoredFiles"] for i in (0, 1, 4)] == [5000, 1, 2]
    now = ann.look()
    assert now["activeSandboxes"] == 1 and now["currentSandbox"]["sandboxId"] in [r["sandboxId"] for r in seen if r]
    ann.switch(ann.b)
    assert ann.files() == ["b.txt"]
    ann.switch(ann.a, ann.fa)
    assert ann.files() == ["a.txt", "sub/dir/a.txt"]


def switch_all(ann, projects):
    """All at once; the results in the order of `projects`."""
    with concurrent.futures.ThreadPoolExecutor(len(projects)) as pool:
        answers = list(pool.map(lambda p: ann.post("/api/switch-project", {"projectId": p}), projects))
    assert {a.status for a in answers} == {200}, [a for a in answers if a.status != 200][:3]
    return [a.json["result"] for a in answers]


def events_of(ann, kind):
    found = ann.client.get("/v1/events?limit=1000").json["events"]
    own = {s["id"] for s in ann.client.get(f"/v1/sessions?user={ann.name}").json["sessions"]}
    return sum(e["kind"] == kind and e["session"] in own for e in found)


def test_a_hundred_switches_at_once_queue(ann):
    projects = [(ann.a, ann.b)[i % 2] for i in range(100)]
    results = switch_all(ann, projects)
    assert [r["activeProjectId"] for r in results] == projects
    now = ann.look()
    assert now["activeSandboxes"] == 1
    assert now["currentSandbox"]["sandboxId"] in {r["sandboxId"] for r in results}
    assert len(ann.client.get(f"/v1/sessions?user={ann.name}").json["sessions"]) == 2


def test_a_hundred_switches_to_one_project_share_results(ann):
    """All to a new project, then all to the active one, then all to another."""
    for project in (ann.a, ann.a, ann.b):
        results = switch_all(ann, [project] * 100)
        assert len({r["sandboxId"] for r in results}) == 1 and not any(r["stateLost"] for r in results)
    assert ann.look()["activeSandboxes"] == 1
    # those that came while the first one ran shared its result: fewer switches than calls took place
    assert events_of(ann, "switch") < 300


def test_a_deleted_project_is_no_longer_the_current_one(ann):
    def current():
        user = ann.client.get("/v1/users/" + quote(ann.name)).json["user"]
        return user["project"], user["fragment"]

    ann.switch(ann.a, ann.fa)
    assert current() == (ann.a, ann.fa)
    assert ann.delete("/api/projects/" + ann.b).status == 200
    assert current() == (ann.a, ann.fa)
    assert ann.delete("/api/projects/" + ann.a).status == 200
    assert current() == (None, None)


def test_two_users_do_not_wait_for_each_other(ann):
    bob = User(ann.client, ann.name + "-bob")
    bob.project(bob.name + "-p")
    many = ann.save(ann.a, {f"f{i}": "" for i in range(10000)})
    slow = threading.Thread(target=ann.switch, args=(ann.a, many))
    slow.start()
    r = bob.switch(bob.name + "-p")
    assert r["activeProjectId"] == bob.name + "-p" and bob.files() == []
    slow.join()
    bob.post("/api/cleanup-sandboxes")


def test_more_large_fragments_than_fit_at_once(ann):
    """Some have to wait for memory, and all finish."""
    users = [User(ann.client, f"{ann.name}-{i}") for i in range(12)]
    sizes = {}

    def go(user):
        user.project(user.name)
        user.save(user.name, {"large": "x" * (2 << 20)})
        user.switch(user.name)
        user.here("echo y >> large")
        answer = user.post(f"/api/projects/{user.name}/fragments", {"fromSandbox": True})
        sizes[user.name] = answer.json.get("bytes")

    threads = [threading.Thread(target=go, args=(u,)) for u in users]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sizes == {u.name: (2 << 20) + 2 for u in users}
    for u in users:
        assert u.delete("/api/projects/" + u.name).status == 200


def test_binary_files_are_restored_exactly(ann):
    raw = bytes(range(256)) * 300 + b"\xff"
    coded = base64.b64encode(raw).decode()
    text = "gr\u00fcn \u6f22\u5b57 \0 \x01 \r\n\t no end of line"
    fragment = ann.save(ann.a, {"deep/er/than/that/bin": "__BASE64__" + coded, "empty": "",
                                "url.png": f"data:image/png;base64,{coded}", "text": text})
    session = ann.switch(ann.a, fragment)["sessionId"]
    for path, data in (("deep/er/than/that/bin", raw), ("url.png", raw), ("text", text.encode()),
                       ("empty", b"")):
        assert ann.client.get(f"/v1/sessions/{session}/files/{path}").data == data
    saved = ann.post(f"/api/projects/{ann.a}/fragments", {"fromSandbox": True}).json["id"]
    ann.here("rm -r *")
    session = ann.switch(ann.a, saved)["sessionId"]
    assert ann.client.get(f"/v1/sessions/{session}/files/url.png").data == raw
    assert ann.client.get(f"/v1/sessions/{session}/files/text").data == text.encode()


def test_switching_from_and_to_a_dead_sandbox(lodged, ann):
    for fragment in (None, ann.fb):
        first = ann.switch(ann.a)
        ann.here("echo kept > kept")
        lodged.kill_sandbox(ann.client.session(first["sessionId"]))
        assert ann.switch(ann.b, fragment)["activeProjectId"] == ann.b and ann.files() == ["b.txt"]
        assert ann.look()["activeSandboxes"] == 1
        back = ann.switch(ann.a)
        assert back["stateLost"] is False and ann.here("cat kept") == "kept\n"
    lodged.kill_sandbox(ann.client.session(back["sessionId"]))
    again = ann.switch(ann.a)  # to the project whose sandbox died
    assert again["sessionId"] == back["sessionId"] and ann.here("cat kept") == "kept\n"


def test_a_switch_continues_after_a_disconnect(ann):
    many = ann.save(ann.a, {f"f{i}": "" for i in range(3000)})
    connection, response = ann.client.open(
        "POST", "/api/switch-project", {"projectId": ann.a, "fragmentId": many, "userId": ann.name}, STREAM)
    assert response.status == 200 and response.readline()
    connection.close()
    current = wait_for(lambda: ann.look()["currentSandbox"])
    assert current and current["projectId"] == ann.a and len(ann.files()) == 3000


# ---- progress -----------------------------------------------------------------------------------


def test_progress_of_ten_thousand_files(ann):
    files = {f"d{i // 100}/f{i}.txt": f"{i}\n" for i in range(10000)}
    fragment = ann.save(ann.a, files)
    answer = ann.post("/api/switch-project", {"projectId": ann.a, "fragmentId": fragment}, headers=STREAM)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
    seen = events(answer)
    name, last = seen.pop()
    assert name == "result" and last["success"] is True and last["result"]["restoredFiles"] == 10000
    assert {name for name, _ in seen} == {"progress"} and len(seen) < 20
    steps = [p["step"] for _, p in seen]
    assert steps == sorted(steps) and {p["total_steps"] for _, p in seen} == {12}
    restored = [p for _, p in seen if p["stage"] == "restore"]
    assert [p["message"] for p in restored] == [f"restored {n * 1000} of 10000 files" for n in range(11)]
    assert [p["step"] for p in restored] == list(range(1, 12))
    assert [p["stage"] for _, p in seen if p["stage"] != "restore"] == ["sandbox", "switch", "switch"]
    assert [p["status"] for _, p in seen] == ["running"] * (len(seen) - 1) + ["ready"]
    # a late subscriber of the session gets the latest event
    now = ann.client.get(f"/v1/sessions/{last['result']['sandboxId']}/progress").json
    assert (now["status"], now["stage"], now["step"], now["total_steps"]) == ("ready", "switch", 12, 12)
    assert ann.here("cat d99/f9999.txt; find . -type f | wc -l") == "9999\n10000\n"


def test_progress_of_a_working_copy_has_two_steps(ann):
    ann.switch(ann.a)
    ann.switch(ann.b)
    answer = ann.post("/api/switch-project", {"projectId": ann.a}, headers=STREAM)
    seen = [(n, d.get("stage"), d.get("step"), d.get("total_steps")) for n, d in events(answer)]
    assert seen == [("progress", "sandbox", 1, 2), ("progress", "switch", 2, 2),
                    ("progress", "switch", 2, 2), ("result", None, None, None)]


# ---- capacity and quotas ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    with contextlib.closing(Lodged(max_active=2, queue_max=1)) as d:
        yield d


def test_at_capacity_a_switch_gets_503_with_retry_after(small):
    client = small.client()
    ann = User(client, "ann")
    ann.project("a")
    ann.project("b")
    before = ann.switch("a")
    work(ann)
    busy = client.enter(key="busy")
    client.post(f"/v1/sessions/{busy}/exec", {"command": "sleep 600", "background": True})
    for user, project in ((ann, "b"), (User(client, "bob"), "c")):
        if user is not ann:
            user.project(project)
        answer = user.post("/api/switch-project", {"projectId": project})
        assert refusal(answer)[0] == 503 and int(answer.headers["Retry-After"]) >= 1, answer
        answer = user.post("/api/switch-project", {"projectId": project}, headers=STREAM)
        name, data = events(answer)[-1]  # known only after the stream has begun
        assert name == "error" and data["success"] is False and data["error"]
    assert is_untouched(ann, before)
    client.delete("/v1/sessions/" + busy)
    assert ann.switch("b")["activeProjectId"] == "b"
    assert client.get("/health").status == 200


def test_a_switch_needs_quota_for_two_sandboxes(ann):
    """Both exist for a moment."""
    at = f"/v1/users/{ann.name}/quota"
    before = ann.switch(ann.a)
    work(ann)
    assert ann.client.put(at, {"sandboxes": 1}).status == 200
    answer = ann.post("/api/switch-project", {"projectId": ann.b})
    assert refusal(answer)[0] == 429 and "quota of sandboxes" in refusal(answer)[1], answer
    assert is_untouched(ann, before)
    assert ann.client.put(at, {"sandboxes": 2}).status == 200
    assert ann.switch(ann.b)["activeProjectId"] == ann.b
    assert ann.switch(ann.a, ann.fa)["restoredFiles"] == 2


# ---- random work --------------------------------------------------------------------------------


def test_random_switches_of_some_users():
    """A short version of `./dev soak switch`."""
    with contextlib.closing(Lodged()) as own:
        assert soak.run(own, KEY, users=6, seconds=10, threads=4, seed=11)["switch"] > 5
