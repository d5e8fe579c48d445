# SPDX-License-Identifier: Apache-2.0
"""/api/sessions and /api/sandbox, as chat applications call them: a test for each row of their contract, for each
error, and for the order in which errors are reported."""
import contextlib
import itertools
import os
import signal
import threading
import time

import pytest

from client import KEY, Lodged, wait_for

KEYS = "Exactly one of x-api-key or Authorization must be provided"
UNKNOWN = "ses_" + "a" * 20
LIFECYCLE = {"serverTime", "state", "lastActivityAt", "hibernateAfter", "sandboxExpiresAt"}
# every call about one session: method, path, whether the session is named in the body
CALLS = [("PATCH", "/api/sessions/{id}", False), ("POST", "/api/sandbox", True),
         ("DELETE", "/api/sandbox", True), ("GET", "/api/sandbox/status", False),
         ("GET", "/api/sandbox/reconnect", False), ("POST", "/api/sandbox/extend", True),
         ("POST", "/api/sandbox/activity", True), ("POST", "/api/sandbox/snapshot", True),
         ("PUT", "/api/sandbox/snapshot", True)]
PATHS = sorted({path for _, path, _ in CALLS} | {"/api/sessions"})


def name_of(call):
    return f"{call[0]} {call[1]}"


def call(client, row, sid, **kw):
    """Make the call of this row of CALLS for a session (None: without one)."""
    method, path, in_body = row
    if in_body:
        return client.call(method, path, {"sessionId": sid} if sid is not None else {}, **kw)
    if method == "GET":
        return client.get(path + (f"?sessionId={sid}" if sid is not None else ""), **kw)
    return client.call(method, path.replace("{id}", sid), {"status": "running"}, **kw)


def ok(answer):
    assert answer.status == 200, answer
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.json


def refused(answer, status, text, **more):
    assert answer.status == status, answer
    assert answer.json == {"status": "error", "error": text, **more}, answer
    assert answer.headers["Cache-Control"] == "no-store"


def stub(client, **body):
    return ok(client.post("/api/sessions", body))["session"]


def status(client, sid):
    return ok(client.get("/api/sandbox/status?sessionId=" + sid))


def reconnect(client, sid):
    return ok(client.get("/api/sandbox/reconnect?sessionId=" + sid))


def sandbox(client, path, sid, method="POST"):
    return client.call(method, "/api/sandbox" + path, {"sessionId": sid})


@pytest.fixture
def sid(client):
    """A session without a sandbox."""
    sid = stub(client, title="a talk", accountId="ann")["id"]
    yield sid
    assert client.delete("/v1/sessions/" + sid).status in (200, 410)


@pytest.fixture
def running(client, sid):
    ok(sandbox(client, "", sid))
    return sid


@pytest.fixture(scope="module")
def elsewhere(lodged):
    """A key of another tenant."""
    return lodged.new_key(tenant="elsewhere", scope="tenant")[1]


@pytest.fixture(scope="module")
def bob(lodged):
    """A token for one user."""
    return lodged.new_key(scope="session", user="bob")[1]


# ---- each row of the contract -------------------------------------------------------------------


def test_post_sessions(client):
    s = stub(client, title="a talk", accountId="ann", idleTimeoutMs=60000, whatever=1)
    assert s["id"].startswith("ses_") and s["title"] == "a talk" and s["accountId"] == "ann"
    assert s["status"] == "running" and s["idleTimeoutMs"] == 60000 and s["createdAt"] > 0
    assert s["lifecycle"]["state"] == "provisioning" and not s["hasSnapshot"]
    record = client.session(s["id"])  # a stub, not a sandbox
    assert (record["state"], record["runtime"], record["sandbox"]) == ("none", "none", None)
    assert record["user"] == "ann" and record["idle_timeout_ms"] == 60000
    assert record["metadata"] == {"title": "a talk"}
    bare = stub(client)
    assert (bare["title"], bare["accountId"]) == (None, None) and bare["id"] != s["id"]
    for made in (s, bare):
        client.delete("/v1/sessions/" + made["id"])


def test_patch_sessions_archives_and_unarchives(client, running):
    at = "/api/sessions/" + running
    for _ in range(2):
        s = ok(client.patch(at, {"status": "archived"}))["session"]
        assert (s["status"], s["lifecycle"]["state"]) == ("archived", "archived")
        assert s["hasSnapshot"] and s["title"] == "a talk"
    assert status(client, running)["status"] == "no_sandbox"
    # and is not resumed
    for method, path in (("POST", ""), ("PUT", "/snapshot")):
        answer = sandbox(client, path, running, method)
        assert answer.status == 409 and answer.json["status"] == "error", answer
    assert client.session(running)["state"] == "archived"
    for _ in range(2):
        s = ok(client.patch(at, {"status": "running"}))["session"]
        assert (s["status"], s["lifecycle"]["state"]) == ("running", "hibernated")
    ok(sandbox(client, "", running))
    s = ok(client.patch(at, {"status": "running"}))["session"]  # nothing to do for a running session
    assert s["lifecycle"]["state"] == "active"


def test_patch_sessions_of_a_stub(client, sid):
    at = "/api/sessions/" + sid
    assert ok(client.patch(at, {"status": "archived"}))["session"]["status"] == "archived"
    s = ok(client.patch(at, {"status": "running"}))["session"]
    assert (s["status"], s["lifecycle"]["state"]) == ("running", "provisioning")


def test_post_sandbox_creates(client, sid):
    a = ok(sandbox(client, "", sid))
    assert a["sessionId"] == sid and a["mode"] == "lodge" and a["timeout"] == 30 * 60 * 1000
    assert isinstance(a["timing"]["readyMs"], int) and "currentBranch" not in a
    record = client.session(sid)
    assert (record["state"], record["sandbox"]) == ("active", a["sandboxId"])
    assert a["createdAt"] == record["started_at"] and not a["stateLost"]
    assert a["createdAt"] + a["timeout"] == record["expires_at"]
    # repeating it changes nothing
    again = ok(client.post("/api/sandbox", {"sessionId": sid, "branch": "dev", "template": "host"}))
    assert {**again, "timing": 0} == {**a, "timing": 0}


def test_post_sandbox_resumes(client, running):
    client.run(running, "echo kept > f")
    first = client.session(running)["sandbox"]
    ok(sandbox(client, "", running, "DELETE"))
    a = ok(sandbox(client, "", running))
    assert a["sandboxId"] != first and not a["stateLost"]
    assert client.run(running, "cat f") == "kept\n"


def test_post_sandbox_without_a_session_creates_one(client, bob):
    for caller, user in ((client, None), (bob, "bob")):
        a = ok(caller.post("/api/sandbox"))
        assert client.session(a["sessionId"])["user"] == user
        assert status(caller, a["sessionId"])["status"] == "active"
        client.delete("/v1/sessions/" + a["sessionId"])


def test_concurrent_post_sandbox_creates_one(client, sid):
    got = []
    threads = [threading.Thread(target=lambda: got.append(ok(sandbox(client, "", sid))))
               for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 4 and len({a["sandboxId"] for a in got}) == 1
    assert client.session(sid)["incarnation"] == 1


def test_delete_sandbox(client, running):
    client.run(running, "echo kept > f")
    assert ok(sandbox(client, "", running, "DELETE")) == {"success": True}
    s = status(client, running)
    assert (s["status"], s["hasSnapshot"], s["lifecycle"]["state"]) == ("no_sandbox", True, "hibernated")
    for _ in range(2):
        assert ok(sandbox(client, "", running, "DELETE")) == {"success": True, "alreadyStopped": True}
    assert client.session(running)["generation"] == 1


def test_delete_sandbox_of_a_stub(client, sid):
    assert ok(sandbox(client, "", sid, "DELETE")) == {"success": True, "alreadyStopped": True}
    assert status(client, sid)["lifecycle"]["state"] == "provisioning"


def test_get_status(client, sid):
    s = status(client, sid)
    assert set(s) == {"status", "hasSnapshot", "lifecycleVersion", "lifecycle", "sessionId"}
    assert set(s["lifecycle"]) == LIFECYCLE
    assert (s["status"], s["hasSnapshot"]) == ("no_sandbox", False)
    life = s["lifecycle"]
    assert life.pop("serverTime") == pytest.approx(time.time() * 1000, abs=60000)
    assert life == {"state": "provisioning", "lastActivityAt": None, "hibernateAfter": None,
                    "sandboxExpiresAt": None}
    ok(sandbox(client, "", sid))
    s, record = status(client, sid), client.session(sid)
    assert (s["status"], s["lifecycleVersion"]) == ("active", record["version"])
    assert s["lifecycle"]["state"] == "active"
    assert s["lifecycle"]["lastActivityAt"] == record["last_activity_at"]
    assert s["lifecycle"]["hibernateAfter"] == record["hibernate_at"]
    assert s["lifecycle"]["sandboxExpiresAt"] == record["expires_at"]


def test_post_extend(client, running):
    before = client.session(running)
    a = ok(sandbox(client, "/extend", running))
    after = client.session(running)
    assert a == {"success": True, "extendedBy": 1200000, "expiresAt": after["expires_at"]}
    assert a["expiresAt"] == before["expires_at"] + 1200000
    assert after["version"] == before["version"] + 1


def test_post_extend_postpones_the_idle_deadline():
    with contextlib.closing(Lodged(idle_timeout="1m", extend="5m")) as d:
        client = d.client()
        sid = ok(client.post("/api/sandbox"))["sessionId"]
        before = status(client, sid)["lifecycle"]
        a = ok(sandbox(client, "/extend", sid))
        assert a["extendedBy"] == 300000
        after = status(client, sid)["lifecycle"]
        assert after["hibernateAfter"] >= before["hibernateAfter"] + 200000


def test_post_activity_pushes_the_idle_deadline_only(client, running):
    before = client.session(running)
    time.sleep(0.02)
    assert ok(sandbox(client, "/activity", running)) == {"success": True}
    after = client.session(running)
    assert after["hibernate_at"] > before["hibernate_at"]
    assert after["last_activity_at"] > before["last_activity_at"]
    assert after["expires_at"] == before["expires_at"]


def test_post_activity_without_a_running_sandbox(client, sid):
    no = {"success": False, "reason": "not-active"}
    assert ok(sandbox(client, "/activity", sid)) == no
    ok(sandbox(client, "", sid))
    ok(sandbox(client, "", sid, "DELETE"))
    before = client.session(sid)
    assert ok(sandbox(client, "/activity", sid)) == no
    assert client.session(sid) == before


def test_post_snapshot_saves_and_hibernates(client, running):
    client.run(running, "echo saved > f")
    a = ok(sandbox(client, "/snapshot", running))
    assert set(a) == {"snapshotId", "createdAt"} and a["createdAt"] > 0
    s = status(client, running)
    assert (s["status"], s["hasSnapshot"], s["lifecycle"]["state"]) == ("no_sandbox", True, "hibernated")
    back = ok(sandbox(client, "/snapshot", running, "PUT"))
    assert back["success"] and back["restoredFrom"] == a["snapshotId"]
    assert client.run(running, "cat f") == "saved\n"


def test_post_snapshot_live_saves_only(client, running):
    client.run(running, "echo saved > f")
    before = client.session(running)
    a = ok(sandbox(client, "/snapshot?live=1", running))
    s = status(client, running)
    assert (s["status"], s["hasSnapshot"]) == ("active", True)
    assert client.session(running)["sandbox"] == before["sandbox"]
    assert client.get("/v1/snapshots/" + a["snapshotId"]).json["snapshot"]["session"] == running


def test_put_snapshot_resumes_the_newest_files(client, running):
    """Not the files of an older snapshot; `restoredFrom` agrees."""
    client.run(running, "echo old > f")
    old = ok(sandbox(client, "/snapshot?live=1", running))["snapshotId"]
    client.run(running, "echo new > f")
    was = client.session(running)["sandbox"]
    ok(sandbox(client, "", running, "DELETE"))
    a = ok(sandbox(client, "/snapshot", running, "PUT"))
    assert a["success"] and a["restoredFrom"] == was != old and "alreadyRunning" not in a
    assert a["sandboxId"] == client.session(running)["sandbox"] and not a["stateLost"]
    assert client.run(running, "cat f") == "new\n"


def test_put_snapshot_is_idempotent(client, running):
    sandbox_id = client.session(running)["sandbox"]
    for _ in range(2):
        a = ok(sandbox(client, "/snapshot", running, "PUT"))
        assert (a["success"], a["alreadyRunning"], a["restoredFrom"]) == (True, True, None)
    saved = ok(sandbox(client, "/snapshot", running))["snapshotId"]
    assert "alreadyRunning" not in ok(sandbox(client, "/snapshot", running, "PUT"))
    a = ok(sandbox(client, "/snapshot", running, "PUT"))
    assert (a["alreadyRunning"], a["restoredFrom"]) == (True, saved)
    assert a["sandboxId"] == client.session(running)["sandbox"] != sandbox_id


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", CALLS + [("POST", "/api/sessions", True)], ids=name_of)
def test_401(lodged, row):
    anonymous = lodged.client(None)
    both = {"x-api-key": KEY, "Authorization": f"Bearer {KEY}"}
    for headers in ({}, both, {"Authorization": f"Basic {KEY}"}):
        answer = call(anonymous, row, UNKNOWN, headers=headers)
        refused(answer, 401, KEYS)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    for wrong in ("lk_" + "0" * 64, "short", "with, comma and blanks"):
        answer = call(anonymous, row, UNKNOWN, headers={"x-api-key": wrong})
        assert answer.status == 401 and answer.json["status"] == "error", answer
        assert set(answer.json) == {"status", "error"}
    assert call(anonymous, row, UNKNOWN, headers={"x-api-key": KEY}).status in (200, 404)


@pytest.mark.parametrize("row", [r for r in CALLS if r[1] != "/api/sessions/{id}"], ids=name_of)
def test_400_missing_session_id(client, row):
    if row[:2] == ("POST", "/api/sandbox"):
        refused(client.post("/api/sandbox", {"sessionId": ""}), 400, "Missing sessionId",
                missing_fields=["sessionId"])
        return
    if row[0] == "GET":
        refused(call(client, row, None), 400, "Missing sessionId")
        refused(call(client, row, ""), 400, "Missing sessionId")
        return
    for body in (None, {}, {"sessionId": None}, {"sessionId": ""}, {"sessionId": 17}, {"other": 1}):
        refused(client.call(row[0], row[1], body), 400, "Missing sessionId",
                missing_fields=["sessionId"])


@pytest.mark.parametrize("row", [r for r in CALLS if r[0] != "GET"] + [("POST", "/api/sessions", True)],
                         ids=name_of)
def test_400_invalid_json_body(client, row):
    for body in (b"{", b"[]", b"17", b'{"a":1,"a":2}', b"[" * 1000):
        answer = client.call(row[0], row[1].replace("{id}", UNKNOWN), body,
                             headers={"Content-Type": "application/json"})
        refused(answer, 400, "Invalid JSON body")


@pytest.mark.parametrize("row", [r for r in CALLS if r[0] != "GET"] + [("POST", "/api/sessions", True)],
                         ids=name_of)
def test_413_and_415(client, row):
    announced = {"Content-Type": "application/json", "Content-Length": str((1 << 20) + 1)}
    for body, headers, wanted in ((None, announced, 413), (b"{}", {"Content-Type": "multipart/form-data; boundary=b"}, 415)):
        answer = client.call(row[0], row[1].replace("{id}", UNKNOWN), body, headers=headers)
        assert answer.status == wanted and set(answer.json) == {"status", "error"}, answer


def test_400_fields(client, sid):
    at = "/api/sessions/" + sid
    refused(client.patch(at, {}), 400, "Missing status", missing_fields=["status"])
    refused(client.patch(at, {"status": "asleep"}), 400, 'status: must be "archived" or "running"')
    for body in ({"title": 1}, {"accountId": 1}, {"accountId": ""}, {"accountId": "x" * 128},
                 {"idleTimeoutMs": 0}, {"idleTimeoutMs": "long"}, {"template": "nothing"}):
        answer = client.post("/api/sessions", body)
        assert answer.status == 400 and list(body)[0] in answer.json["error"], answer
    for body in ({"branch": 1}, {"template": 1}, {"sessionId": 1}, {"template": "nothing"}):
        answer = client.post("/api/sandbox", body)
        assert answer.status == 400 and list(body)[0] in answer.json["error"], answer


@pytest.mark.parametrize("row", CALLS, ids=name_of)
def test_404_session_not_found(client, row):
    for unknown in (UNKNOWN, "nonsense", "key:demo", "ses_" + "a" * 100):
        refused(call(client, row, unknown), 404, "Session not found")


@pytest.mark.parametrize("row", CALLS, ids=name_of)
def test_404_of_a_destroyed_session_gives_the_reason(client, bob, elsewhere, row):
    gone = stub(client, accountId="ann")["id"]
    assert client.delete(f"/v1/sessions/{gone}?reason=enough").status == 200
    answer = call(client, row, gone)
    refused(answer, 404, "Session not found", reason=f"session {gone} was deleted (by request): enough")
    for other in (bob, elsewhere):
        refused(call(other, row, gone), 404, "Session not found")


@pytest.mark.parametrize("row", CALLS, ids=name_of)
def test_403_forbidden(lodged, client, bob, elsewhere, sid, row):
    before = client.session(sid)
    another = stub(client, accountId="ann")["id"]
    _, one = lodged.new_key(scope="session:" + another)
    for other in (elsewhere, bob, one):
        refused(call(other, row, sid), 403, "Forbidden")
    assert client.session(sid) == before
    client.delete("/v1/sessions/" + another)
    _, mine = lodged.new_key(scope="session:" + sid)
    _, ann = lodged.new_key(scope="session", user="ann")
    for own in (mine, ann):
        assert call(own, row, sid).status in (200, 400, 404), row


def test_403_of_new_sessions(lodged, client, bob, sid):
    _, one = lodged.new_key(scope="session:" + sid)
    for path in ("/api/sessions", "/api/sandbox"):
        refused(one.post(path), 403, "Forbidden")
    refused(bob.post("/api/sessions", {"accountId": "ann"}), 403, "Forbidden")
    s = stub(bob)
    assert s["accountId"] == "bob"  # a user token implies its user
    client.delete("/v1/sessions/" + s["id"])


def test_400_sandbox_not_initialized(client, sid):
    for state in ("never", "hibernated", "archived"):
        before = client.session(sid)
        for path in ("/extend", "/snapshot", "/snapshot?live=1"):
            refused(sandbox(client, path, sid), 400, "Sandbox not initialized")
        assert client.session(sid) == before, state
        if state == "never":
            ok(sandbox(client, "", sid))
            ok(sandbox(client, "", sid, "DELETE"))
        else:
            ok(client.patch("/api/sessions/" + sid, {"status": "archived"}))


def test_404_no_sandbox_available_for_resume(client, sid):
    before = client.session(sid)
    refused(sandbox(client, "/snapshot", sid, "PUT"), 404, "No sandbox available for resume")
    assert client.session(sid) == before


def test_400_invalid_repository_url(client, sid):
    before = client.session(sid)
    for url in ("", "x", "/etc/passwd", "file:///etc/passwd", "https://", "https://host", "https://host/",
                "ftp://host/a", "https://a b/c", "-u@host:x", "--upload-pack=x", "https://-host/a",
                "git@host:-x", "https://host/a\n", "ext::sh -c x", "javascript://host/a",
                "https://host:port/a", "https://" + "a" * 3000 + "/b", "https:/host/a"):
        refused(client.post("/api/sandbox", {"sessionId": sid, "repoUrl": url}), 400,
                "Invalid repository URL")
    refused(client.post("/api/sandbox", {"repoUrl": "x"}), 400, "Invalid repository URL")
    assert client.session(sid) == before


def test_502_no_network_for_a_repository(client, sid, running):
    """Refused before anything is created."""
    known = {s["id"] for s in client.get("/v1/sessions").json["sessions"]}
    before = client.session(sid)
    for url in ("https://github.com/a/b", "http://user:word@host.example:8080/a.git?x#y",
                "ssh://git@host/a/b.git", "git://host/a", "git@github.com:a/b.git"):
        for body in ({"repoUrl": url}, {"repoUrl": url, "sessionId": sid, "branch": "main"}):
            answer = client.post("/api/sandbox", body)
            assert answer.status == 502 and "no network" in answer.json["error"], answer
            assert set(answer.json) == {"status", "error"}
    assert client.session(sid) == before
    assert {s["id"] for s in client.get("/v1/sessions").json["sessions"]} == known


def test_409_another_template(client, sid):
    answer = client.post("/api/sandbox", {"sessionId": sid, "template": "other"})
    assert answer.status == 409 and "template" in answer.json["error"], answer
    assert client.session(sid)["state"] == "none"


@contextlib.contextmanager
def stopped(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_409_while_it_is_being_hibernated(lodged, client, running):
    """The keeper is stopped in the middle of it."""
    client.run(running, "echo kept > f")
    got = []
    saving = threading.Thread(target=lambda: got.append(sandbox(client, "/snapshot", running)))
    with stopped(lodged.keepers()):
        saving.start()
        assert wait_for(lambda: client.session(running)["state"] == "hibernating")
        answer = client.patch("/api/sessions/" + running, {"status": "running"})
        refused(answer, 409, "Sandbox is still being paused...")
        answer = sandbox(client, "/snapshot", running, "PUT")
        assert answer.status == 409 and "snapshot is in progress" in answer.json["error"], answer
        s = status(client, running)
        assert (s["status"], s["lifecycle"]["state"]) == ("no_sandbox", "hibernating")
    saving.join()
    saved = ok(got[0])
    assert ok(client.patch("/api/sessions/" + running, {"status": "running"}))
    assert ok(sandbox(client, "/snapshot", running, "PUT"))["restoredFrom"] == saved["snapshotId"]


def test_503_at_capacity():
    with contextlib.closing(Lodged(max_active=1)) as d:
        client = d.client()
        busy = ok(client.post("/api/sandbox"))["sessionId"]
        client.post(f"/v1/sessions/{busy}/exec", {"command": "sleep 600", "background": True})
        waiting = stub(client)["id"]
        for body in ({}, {"sessionId": waiting}):
            answer = client.post("/api/sandbox", body)
            assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1, answer
            assert set(answer.json) == {"status", "error"}
        assert len(client.get("/v1/sessions").json["sessions"]) == 2


def test_502_failed_to_provision_sandbox():
    """The keeper dies during each of them."""
    with contextlib.closing(Lodged(crash_at="create:recorded")) as d:
        client = d.client()
        sid = stub(client)["id"]
        for body in ({"sessionId": sid}, {}):
            refused(client.post("/api/sandbox", body), 502, "Failed to provision sandbox")
        assert client.session(sid)["state"] == "failed"
        assert status(client, sid)["status"] == "no_sandbox"
        refused(sandbox(client, "/snapshot", sid, "PUT"), 404, "No sandbox available for resume")


def test_500_failed_to_create_snapshot():
    """The keeper dies when it should stop the sandbox, which keeps running."""
    with contextlib.closing(Lodged(crash_at="stop:start")) as d:
        client = d.client()
        sid = ok(client.post("/api/sandbox"))["sessionId"]
        answer = sandbox(client, "/snapshot", sid)
        assert answer.status == 500 and set(answer.json) == {"status", "error"}, answer
        start, _, why = answer.json["error"].partition(": ")
        assert start == "Failed to create snapshot" and why, answer
        assert client.run(sid, "echo alive") == "alive\n"


# ---- order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", CALLS, ids=name_of)
@pytest.mark.parametrize("pair", list(itertools.combinations((401, 400, 404, 403), 2)), ids=str)
def test_the_first_error_is_reported(lodged, client, bob, sid, row, pair):
    """With two errors at once, the earlier one is reported. An unknown session cannot belong to another tenant as
    well, so that case uses another tenant's key."""
    texts = {401: KEYS, 400: "Missing sessionId", 404: "Session not found", 403: "Forbidden"}
    caller = lodged.client(None) if 401 in pair else bob if 403 in pair else client
    wanted = UNKNOWN if 404 in pair else sid
    if 400 in pair and row[1] == "/api/sessions/{id}":
        texts[400] = "Missing status"
        answer = caller.patch("/api/sessions/" + wanted, {})
    elif 400 in pair and row[:2] == ("POST", "/api/sandbox"):
        texts[400] = "Invalid repository URL"
        answer = caller.post("/api/sandbox", {"sessionId": wanted, "repoUrl": "x"})
    else:
        answer = call(caller, row, None if 400 in pair else wanted)
    assert answer.status == pair[0] and answer.json["error"] == texts[pair[0]], answer


# ---- CORS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_to_pages():
    with contextlib.closing(Lodged(origins="https://chat.example")) as d:
        yield d


@pytest.mark.parametrize("path", PATHS)
def test_cors_preflight(open_to_pages, path):
    methods = {m for m, p, _ in CALLS + [("POST", "/api/sessions", True)] if p == path}
    answer = open_to_pages.client(None).call(
        "OPTIONS", path.replace("{id}", UNKNOWN),
        headers={"Origin": "https://chat.example", "Access-Control-Request-Method": min(methods),
                 "Access-Control-Request-Headers": "x-api-key, content-type"})
    assert answer.status == 204 and not answer.data, answer
    assert answer.headers["Access-Control-Allow-Origin"] == "https://chat.example"
    assert methods <= set(answer.headers["Access-Control-Allow-Methods"].split(", "))
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"authorization", "x-api-key", "content-type"} <= set(allowed)
    assert answer.headers["Cache-Control"] == "no-store"


def test_cors_answers(open_to_pages):
    client, origin = open_to_pages.client(), {"Origin": "https://chat.example"}
    for answer in (client.post("/api/sessions", {}, headers=origin),
                   client.get("/api/sandbox/status", headers=origin),
                   open_to_pages.client(None).get("/api/sandbox/status", headers=origin)):
        assert answer.headers["Access-Control-Allow-Origin"] == "https://chat.example", answer
        assert answer.headers["Cache-Control"] == "no-store"


def test_other_methods(client):
    answer = client.put("/api/sandbox", {})
    assert answer.status == 405 and answer.json["status"] == "error", answer
    assert answer.headers["Cache-Control"] == "no-store"
