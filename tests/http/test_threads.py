# SPDX-License-Identifier: Apache-2.0
"""The threads API: one test for each row of its contract, its errors, and the mistakes of earlier systems."""
import concurrent.futures
import contextlib
import datetime
import json
import re
import time

import pytest

from client import KEY, Lodged, wait_for
from daemon import Daemon, Home
from machine import was_used_in_time
from threads import create, execute, fresh, nothing_is_left, sandboxes, says


def when(text):
    assert text.endswith("Z"), text
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00").timestamp()


# ---- 1: POST /create_session ------------------------------------------------------------------


def test_row_1_create_session(client):
    thread = fresh()
    before = time.time()
    answer = client.post("/create_session", {"user_id": "ada", "thread_id": thread})
    assert answer.status == 201, answer
    made = answer.json
    assert set(made) == {"session_id", "thread_id", "status", "workspace_dir", "user", "expires_at", "adjusted", "ignored"}
    assert made["thread_id"] == thread and made["status"] == "created"
    assert made["workspace_dir"] == "/workspace" and made["user"] == "user"
    assert before + 29 * 60 < when(made["expires_at"]) < time.time() + 31 * 60
    assert says(client, made["session_id"], "pwd; id -u; id -un; stat -c %u:%a .") == \
        "/workspace\n1000\nuser\n1000:755\n"


def test_row_1_minutes(client):
    answer = client.post("/create_session", {"user_id": "ada", "thread_id": fresh(), "timeout_minutes": 5})
    assert time.time() + 4 * 60 < when(answer.json["expires_at"]) < time.time() + 6 * 60


def test_row_1_existing(client):
    thread = fresh()
    first = client.post("/create_session", {"user_id": "ada", "thread_id": thread}).json
    again = client.post("/create_session", {"user_id": "ada", "thread_id": thread})
    assert again.status == 409, again
    detail = again.json["detail"]
    assert when(detail.pop("expires_at")) >= when(first.pop("expires_at"))
    assert detail == {**first, "status": "existing"}


def test_row_1_thread_of_another_user_is_403(client):
    thread = fresh()
    create(client, thread, user="ada")
    answer = client.post("/create_session", {"user_id": "bob", "thread_id": thread})
    assert answer.status == 403 and isinstance(answer.json["detail"], str), answer
    assert "ses_" not in str(answer)


BAD = [("user_id", 17), ("user_id", ""), ("user_id", "x" * 128), ("user_id", None), ("thread_id", []),
       ("thread_id", ""), ("thread_id", "x" * 256), ("thread_id", None), ("timeout_minutes", 0),
       ("timeout_minutes", -1), ("timeout_minutes", "30"), ("timeout_minutes", 1.5)]


@pytest.mark.parametrize("name,value", BAD, ids=str)
def test_row_1_bad_fields(client, name, value):
    body = {"user_id": "ada", "thread_id": fresh(), name: value}
    answer = client.post("/create_session", body)
    assert answer.status == 422 and name in answer.json["detail"], answer


@pytest.mark.parametrize("path", ["/create_session", "/execute", "/download_file", "/cleanup"])
def test_malformed_bodies_are_refused(lodged, client, path):
    for body, kind, status in ((b"{", "application/json", 422), (b"[]", "application/json", 422),
                               (b"", "application/json", 422), (b"{}", "text/plain", 422),
                               (b"{}", "multipart/form-data; boundary=b", 415),
                               (b'{"a":"' + b"x" * (1 << 20) + b'"}', "application/json", 413)):
        head = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n"
                f"Connection: close\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n")
        # lodged may refuse it before all is sent; the response must still arrive
        answer = lodged.raw(head.encode() + body).decode()
        assert answer.startswith(f"HTTP/1.1 {status} "), (body[:20], answer[:300])
        assert isinstance(json.loads(answer.split("\r\n\r\n", 1)[1])["detail"], str), answer


def test_unknown_fields_are_ignored(client):
    session = create(client, metadata={"a": 1}, colour="green")
    assert says(client, session, "echo hi") == "hi\n"
    assert client.post("/cleanup", {"session_id": session, "force": True}).status == 200


def test_other_methods(client):
    answer = client.get("/create_session")
    assert answer.status == 405 and answer.headers["Allow"] == "POST" and "detail" in answer.json


def test_without_a_key(lodged):
    for path in ("/create_session", "/execute", "/upload_file", "/cleanup"):
        answer = lodged.client(None).post(path, {})
        assert answer.status == 401 and "detail" in answer.json, answer
    assert lodged.client(None).get("/status/ses_x").status == 401


# ---- 2: GET /get_session ----------------------------------------------------------------------


def test_row_2_get_session(client):
    thread = fresh()
    session = create(client, thread)
    says(client, session, "mkdir -p d; touch a d/b; ln -s a link")
    answer = client.get("/get_session?thread_id=" + thread)
    assert answer.status == 200, answer
    got = answer.json
    assert set(got) == {"session_id", "thread_id", "status", "created_at", "last_activity", "workspace_dir",
                        "files_count"}
    assert got["session_id"] == session and got["thread_id"] == thread and got["status"] == "active"
    assert got["workspace_dir"] == "/workspace" and got["files_count"] == 2
    assert when(got["created_at"]) <= when(got["last_activity"]) <= time.time() + 1


def test_row_2_changes_nothing(client):
    thread = fresh()
    session = create(client, thread)
    before = client.session(session)
    for _ in range(3):
        assert client.get("/get_session?thread_id=" + thread).json["files_count"] == 0
        assert client.get("/status/" + session).status == 200
    assert client.session(session) == before


def test_row_2_does_not_resume(client):
    thread = fresh()
    session = create(client, thread)
    says(client, session, "echo kept > f")
    assert client.post(f"/v1/sessions/{session}/hibernate").status == 200
    assert client.get("/get_session?thread_id=" + thread).json["files_count"] is None
    assert client.session(session)["state"] == "hibernated"
    assert says(client, session, "cat f") == "kept\n"


def test_row_2_unknown(client):
    answer = client.get("/get_session?thread_id=never")
    assert answer.status == 404
    assert answer.json == {"detail": {"error": "No active session found for thread_id", "thread_id": "never"}}
    for query in ("", "?thread_id="):
        answer = client.get("/get_session" + query)
        assert answer.status == 422 and "thread_id" in answer.json["detail"]


# ---- 3: POST /execute -------------------------------------------------------------------------


def test_row_3_execute(client):
    session = create(client)
    answer = client.post("/execute", {"session_id": session, "command": "echo out; echo err >&2; exit 3"})
    assert answer.status == 200, answer
    ms = answer.json["execution_time_ms"]
    assert isinstance(ms, int) and ms >= 0
    assert answer.json == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "execution_time_ms": ms,
                           "timed_out": False, "truncated": False, "limits": []}


def test_row_3_threads_have_separate_files_and_processes(client):
    one, two = create(client), create(client)
    says(client, one, "echo mine > f; sleep 1000 >/dev/null 2>&1 & echo $!")
    assert says(client, one, "cat f; pgrep -x sleep | wc -l") == "mine\n1\n"
    assert says(client, two, "ls -A; pgrep -x sleep | wc -l") == "0\n"


def test_row_3_timeout_kills_the_whole_tree(client):
    session = create(client)
    for seconds in (1, 10, 60):
        r = execute(client, session, "(setsid sleep 991 &); echo before; trap '' TERM; sleep 992", timeout=seconds)
        assert r["timed_out"] and r["exit_code"] == 137 and r["execution_time_ms"] >= seconds * 1000
        if r["stdout"]:  # otherwise the machine was too busy to run the command
            break
    assert r["stdout"] == "before\n"
    assert wait_for(lambda: execute(client, session, "pgrep -x sleep")["stdout"] == "")
    assert execute(client, session, "sleep 60", timeout=0.2)["timed_out"]
    r = execute(client, session, "sleep 0.3; echo to its end", timeout=0)  # 0 is no limit
    assert r["stdout"] == "to its end\n" and not r["timed_out"]


def test_row_3_signals_and_much_output(client):
    session = create(client)
    assert execute(client, session, "kill -TERM $$")["exit_code"] == 143
    r = execute(client, session, "head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    assert r["truncated"] and r["stdout"].endswith("xend\n") and len(r["stdout"]) <= 1 << 20
    assert not execute(client, session, "echo little")["truncated"]
    assert execute(client, session, "printf '\\377'")["stdout"] == "\ufffd"


def test_row_3_unknown_or_destroyed_session(client):
    session = create(client)
    assert client.post("/cleanup", {"session_id": session}).status == 200
    for wrong in (session, "ses_unknown", "something"):
        answer = client.post("/execute", {"session_id": wrong, "command": "true"})
        assert answer.status == 404 and answer.json == {"detail": "Invalid or expired session"}, answer


@pytest.mark.parametrize("name,value", [("session_id", None), ("session_id", 7), ("command", None),
                                        ("command", ["ls"]), ("command", ""),
                                        ("timeout", -1), ("timeout", "30"), ("timeout", 86401)], ids=str)
def test_row_3_bad_fields(client, name, value):
    answer = client.post("/execute", {"session_id": "ses_x", "command": "true", name: value})
    assert answer.status == 422 and name in answer.json["detail"], answer


# ---- 7: POST /cleanup -------------------------------------------------------------------------


def test_row_7_cleanup(client):
    thread = fresh()
    session = create(client, thread)
    for _ in range(2):
        answer = client.post("/cleanup", {"session_id": session})
        assert answer.status == 200 and answer.json == {"status": "cleaned_up", "session_id": session}
    assert client.get("/get_session?thread_id=" + thread).json["detail"]["error"].startswith("No active")
    assert client.post("/cleanup", {"session_id": "no-such"}).json["status"] == "cleaned_up"
    answer = client.post("/cleanup", {})
    assert answer.status == 422 and "session_id" in answer.json["detail"]
    assert create(client, thread) != session


# ---- 8: GET /health ---------------------------------------------------------------------------


def test_row_8_health(lodged, client):
    before = client.get("/health").json
    create(client)
    answer = lodged.client(None).get("/health")
    h = answer.json
    assert answer.status == 200 and h["status"] == "ok" and h["reason"] is None
    assert h["uptime_seconds"] >= before["uptime_seconds"] >= 0 and h["worker_id"] == before["worker_id"]
    assert set(h["pool"]) == {"available", "allocated", "total", "max_capacity"}
    assert h["pool"]["allocated"] == h["active_sessions"] == before["active_sessions"] + 1
    assert h["redis_connected"] is False and h["insecure_no_auth"] is False
    assert h["parts"]["store"]["ok"] and "last_error" in h
    c = h["config"]
    assert c["memory_bytes"] == 256 << 20 and c["cpu_milli"] == 250 and c["max_processes"] == 128
    assert c["max_file_bytes"] == 100 << 20 and c["max_files"] == 1000
    assert c["max_workspace_bytes"] == 500 << 20 and c["network"] == "none"
    assert c["workspace_dir"] == "/workspace" and c["idle_timeout_ms"] == 30 * 60000
    assert "key" not in str(h).replace("keeper", "")


def test_defaults_are_the_limits_of_the_sandbox(client):
    limits = client.session(create(client))["limits"]
    assert limits["memory_bytes"] == 256 << 20 and limits["cpus"] == 0.25 and limits["pids"] == 128
    assert limits["file_bytes"] == 100 << 20 and limits["disk_bytes"] == 500 << 20


# ---- 9: GET /status/{session_id} --------------------------------------------------------------


def test_row_9_status(client):
    session = create(client)
    answer = client.get("/status/" + session)
    assert answer.status == 200 and set(answer.json) == {"status", "worker", "created_at", "last_activity"}
    assert answer.json["status"] == "active"
    assert answer.json["worker"] == client.get("/health").json["worker_id"]
    assert when(answer.json["created_at"]) <= when(answer.json["last_activity"])
    client.post("/cleanup", {"session_id": session})
    for wrong in (session, "ses_unknown"):
        answer = client.get("/status/" + wrong)
        assert answer.status == 404 and answer.json == {"detail": "Invalid or expired session"}


# ---- keys and tokens --------------------------------------------------------------------------


def test_another_tenant_sees_nothing(lodged, client):
    _, other = lodged.new_key(tenant="others", scope="tenant")
    thread = fresh()
    session = create(client, thread)
    says(client, session, "echo secret > f")
    assert other.post("/execute", {"session_id": session, "command": "cat f"}).status == 404
    assert other.get("/list_files?session_id=" + session).status == 404
    assert other.get("/status/" + session).status == 404
    assert other.get("/get_session?thread_id=" + thread).status == 404
    assert other.post("/cleanup", {"session_id": session}).status == 200
    assert says(client, session, "cat f") == "secret\n"
    theirs = create(other, thread)  # thread ids are per tenant
    assert theirs != session and other.post("/cleanup", {"session_id": theirs}).status == 200


def test_a_token_is_for_its_user(lodged, client):
    _, ada = lodged.new_key(user="ada")
    thread = fresh()
    mine, his = create(ada), create(client, thread, user="bob")
    assert ada.post("/execute", {"session_id": mine, "command": "true"}).status == 200
    assert ada.post("/execute", {"session_id": his, "command": "true"}).status == 404
    assert ada.get("/get_session?thread_id=" + thread).status == 404
    assert ada.post("/create_session", {"user_id": "bob", "thread_id": fresh()}).status == 403
    assert ada.post("/cleanup", {"session_id": his}).status == 200
    assert client.get("/status/" + his).status == 200
    answer = ada.post("/create_session", {"user_id": "ada", "thread_id": thread})
    assert answer.status == 409 and "ses_" not in str(answer)


# ---- mistakes of earlier systems --------------------------------------------------------------


def test_one_sandbox_under_concurrent_creates(lodged, client):
    thread = fresh()
    before = len(sandboxes(lodged))

    def ask(_):
        return client.post("/create_session", {"user_id": "ada", "thread_id": thread})

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    assert sorted(a.status for a in answers) == [201] + [409] * 49
    ids = {(a.json if a.status == 201 else a.json["detail"])["session_id"] for a in answers}
    assert len(ids) == 1 and len(sandboxes(lodged)) == before + 1


def test_deleting_files_does_not_affect_other_users(client):
    ada, bob = create(client, user="ada"), create(client, user="bob")
    for s in (ada, bob):
        says(client, s, "echo kept > f; echo kept > /tmp/f; echo kept > ~/f")
    execute(client, ada, "rm -rf /workspace/* /tmp/* ~/* 2>/dev/null; pkill -9 -u user")
    client.post("/cleanup", {"session_id": ada})
    assert says(client, bob, "cat f /tmp/f ~/f") == "kept\nkept\nkept\n"


LEFT = "echo x > f; echo x > /tmp/f; echo x > ~/f; echo x > /dev/shm/f; setsid sleep 1000 >/dev/null 2>&1 &"
LOOK = "ls -A /workspace /tmp /dev/shm | grep -x f; ls -A ~ | grep -x f; pgrep -x sleep; true"


def test_sandboxes_are_not_reused():
    d = Lodged(pool=4)
    try:
        client = d.client()
        for _ in range(6):
            session = create(client, "again")
            assert says(client, session, LOOK) == ""
            says(client, session, LEFT)
            assert client.post("/cleanup", {"session_id": session}).status == 200
    finally:
        d.close()


def test_cleanup_leaves_no_sandbox(lodged, client):
    for s in client.get("/v1/sessions").json["sessions"]:
        client.delete("/v1/sessions/" + s["id"])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: create(client), range(16)))
        list(pool.map(lambda s: client.post("/cleanup", {"session_id": s}), ids))
    assert nothing_is_left(lodged), sandboxes(lodged)
    assert client.get("/v1/sessions").json["sessions"] == []
    assert client.get("/health").json["active_sessions"] == 0


def test_at_capacity_create_gets_503():
    d = Lodged(max_active=1)
    try:
        client = d.client()
        first = create(client)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            busy = pool.submit(execute, client, first, "touch on; until [ -e go ]; do sleep 0.1; done")
            assert wait_for(lambda: client.get("/health").json["parts"]["room"]["idle"] == 0)
            answer = client.post("/create_session", {"user_id": "ada", "thread_id": fresh()})
            assert answer.status == 503, answer
            assert answer.json == {"detail": "Pool at max capacity, try again later"}
            assert int(answer.headers["Retry-After"]) >= 1
            assert client.get("/health").json["pool"]["max_capacity"] == 1
            assert client.put(f"/v1/sessions/{first}/files/go", b"").status == 201
            assert busy.result()["exit_code"] == 0
        # an idle session is hibernated for it, with its files
        create(client)
        assert says(client, first, "ls") == "go\non\n"
    finally:
        d.close()


IDLE = (12, 60, 300)  # seconds; the longer ones are for a busy machine


def test_idle_is_counted_from_the_last_activity():
    for idle in IDLE:
        with contextlib.closing(Lodged(threads_idle=f"{idle}s")) as d:
            client, thread = d.client(), fresh()
            other, session = create(client), create(client, thread)
            if was_used_in_time(lambda: client.post("/execute", {"session_id": session, "command": "true"}).status == 200, idle):
                expires_unused(d, session, thread, other)
                return
    raise AssertionError("the machine is too busy")


def expires_unused(d, session, thread, other):
    client = d.client()
    assert wait_for(lambda: client.get("/status/" + other).status == 404)
    # reads do not count as activity
    assert wait_for(lambda: client.get("/get_session?thread_id=" + thread).status == 404, 600, 0.5)
    answer = client.get("/get_session?thread_id=" + thread)
    detail = answer.json["detail"]
    assert detail["error"] == "Session expired" and detail["thread_id"] == thread
    assert detail["session_id"] == session and when(detail["expired_at"]) <= time.time() + 1
    answer = client.post("/execute", {"session_id": session, "command": "true"})
    assert answer.status == 404 and answer.json["detail"] == "Invalid or expired session"
    assert nothing_is_left(d), sandboxes(d)
    # the files were deleted with it
    assert says(client, create(client, thread), "ls -A") == ""


def test_hibernated_threads_expire():
    """Also if they were hibernated for another reason than idleness, so that their files do not stay forever."""
    for idle in IDLE:
        with contextlib.closing(Lodged(threads_idle=f"{idle}s")) as d:
            client, thread = d.client(), fresh()
            session = create(client, thread)
            if client.post(f"/v1/sessions/{session}/hibernate").status != 200:
                continue  # it expired before
            assert wait_for(lambda: client.get("/get_session?thread_id=" + thread).status == 404, 600)
            assert client.get("/get_session?thread_id=" + thread).json["detail"]["error"] == "Session expired"
            return
    raise AssertionError("the machine is too busy")


def test_settings_are_command_line_options():
    home = Home()
    try:
        with Daemon(home, "--threads-files", "7", "--threads-cpus", "0.5", "--max-active", "3") as d:
            config = d.client().get("/health").json["config"]
            assert (config["max_files"], config["cpu_milli"], config["pool_max"]) == (7, 500, 3)
            assert d.close() == 0
        for options in (["--nothing", "1"], ["--threads_files", "1"], ["--api-key", KEY], ["--threads-files"], ["--"],
                        ["--threads-files", "x"], ["--pool-min", "4", "--pool", "3"], ["--threads-network", "all"]):
            with Daemon(home, *options, listen=()) as d:
                status, said = d.ends()
                assert status == 2 and said.startswith("lodged: ") and KEY not in said, said
    finally:
        home.remove()


def test_settings_apply_to_threads():
    d = Lodged(threads_memory="64M", threads_cpus="0.5", threads_pids=32, threads_file_size="1M",
               threads_disk="32M", threads_files=3, threads_user="2000", threads_workdir="/srv/work",
               threads_idle="90s", pool=4, pool_min=2, max_active=9)
    try:
        client = d.client()
        made = client.post("/create_session", {"user_id": "ada", "thread_id": "t"}).json
        assert made["workspace_dir"] == "/srv/work" and made["user"] == "2000"
        assert says(client, made["session_id"], "pwd; id -u; stat -c %u .") == "/srv/work\n2000\n2000\n"
        limits = client.session(made["session_id"])["limits"]
        assert (limits["memory_bytes"], limits["cpus"], limits["pids"]) == (64 << 20, 0.5, 32)
        assert (limits["file_bytes"], limits["disk_bytes"]) == (1 << 20, 32 << 20)
        h = client.get("/health").json
        assert h["config"]["max_files"] == 3 and h["config"]["idle_timeout_ms"] == 90000
        assert (h["config"]["pool_min"], h["config"]["pool_target"], h["config"]["pool_max"]) == (2, 4, 9)
        assert h["pool"]["max_capacity"] == 9 and h["pool"]["allocated"] == 1
        assert wait_for(lambda: client.get("/health").json["pool"]["available"] == 4)
        assert client.get("/health").json["pool"]["total"] == 5
    finally:
        d.close()


def test_the_pool_is_on_by_default():
    home = Home()
    with Daemon(home, env={"LODGE_POOL": ""}) as d:  # an empty variable is none
        client = d.client()
        h = client.get("/health").json
        c = h["config"]
        with open("/proc/meminfo", encoding="ascii") as f:
            total = int(re.search(r"MemTotal: +(\d+) kB", f.read()).group(1)) << 10
        assert 4 <= c["pool_max"] <= max(4, total >> 26) and c["pool_max"] == h["parts"]["room"]["max"]
        assert c["pool_target"] <= min(10, c["pool_max"]) and c["pool_min"] == min(3, c["pool_target"])
        assert c["pool_target"] == 10 or total < 8 << 30, "there is enough memory for ten"
        assert wait_for(lambda: client.get("/health").json["pool"]["available"] == c["pool_target"])
        if c["pool_target"]:
            made = client.post("/create_session", {"user_id": "u", "thread_id": "first"})
            assert made.status == 201, made
            hits = re.search(r"^lodge_pool_hits_total (\d+)$", client.get("/metrics").data.decode(), re.M)
            assert int(hits.group(1)) == 1
        client.clear()
        assert d.close() == 0
    home.remove()
