# SPDX-License-Identifier: Apache-2.0
"""All APIs show the same session record."""
import contextlib
import datetime

import pytest

from client import Lodged


def ms(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class Views:
    """The same session through every API."""

    def __init__(self, client, session):
        self.client, self.session = client, session

    @property
    def v1(self):
        return self.client.session(self.session)

    def chat(self, path):
        answer = self.client.get(f"/api/sandbox/{path}?sessionId={self.session}")
        assert answer.status == 200, answer
        return answer.json

    def agree(self, live):
        v1, status, reconnect = self.v1, self.chat("status"), self.chat("reconnect")
        assert (v1["runtime"] == "live") == live
        assert status["status"] == ("active" if live else "no_sandbox")
        assert reconnect["status"] == ("connected" if live else "no_sandbox") and reconnect.get("verified", live) == live
        assert status["hasSnapshot"] == reconnect["hasSnapshot"]
        for seen in (status["lifecycle"], reconnect["lifecycle"]):
            assert (seen["lastActivityAt"], seen["hibernateAfter"], seen["sandboxExpiresAt"]) == \
                   (v1["last_activity_at"], v1["hibernate_at"], v1["expires_at"])
            assert seen["state"] == v1["state"]
        assert status["lifecycleVersion"] == v1["version"] == self.v1["version"], "reads must change nothing"
        thread = self.client.get("/status/" + self.session)
        assert thread.status == (200 if live else thread.status), thread
        if live:
            assert abs(ms(thread.json["last_activity"]) - v1["last_activity_at"]) < 1000
        return v1


def test_created_by_chat_extended_by_v1_run_by_threads(client):
    made = client.post("/api/sessions", {"accountId": "ann"}).json["session"]["id"]
    views = Views(client, made)
    assert client.session(made)["state"] == "none" and client.session(made)["user"] == "ann"
    assert client.post("/api/sandbox", {"sessionId": made}).status == 200
    before = views.agree(True)
    assert client.post(f"/v1/sessions/{made}/extend", {}).status == 200
    assert views.agree(True)["version"] > before["version"]
    answer = client.post("/execute", {"session_id": made, "command": "echo from a thread >f; cat f"})
    assert answer.status == 200 and answer.json["stdout"] == "from a thread\n", answer
    assert client.get(f"/v1/sessions/{made}/files/f").data == b"from a thread\n"
    assert client.delete("/api/sandbox", body={"sessionId": made}).json == {"success": True}
    assert views.agree(False)["state"] == "hibernated"
    assert client.run(made, "cat f") == "from a thread\n"
    views.agree(True)


def test_created_by_threads_shown_by_chat_destroyed_by_v1(client):
    made = client.post("/create_session", {"user_id": "bob", "thread_id": "of bob"}).json["session_id"]
    views = Views(client, made)
    assert (views.v1["user"], views.v1["thread"]) == ("bob", "of bob")
    views.agree(True)
    assert client.post("/api/sandbox/extend", {"sessionId": made}).json["success"] is True
    views.agree(True)
    assert client.delete("/v1/sessions/" + made).status == 200
    assert client.get("/get_session?thread_id=of%20bob").status == 404
    assert client.get("/api/sandbox/status?sessionId=" + made).status == 404
    assert client.post("/execute", {"session_id": made, "command": "true"}).status == 404
    assert client.get("/v1/sessions/" + made).status == 410


def test_created_by_a_switch_shown_by_all_ended_by_cleanup(client):
    client.post("/api/projects", {"id": "site", "name": "Site", "userId": "eve"})
    result = client.post("/api/switch-project", {"projectId": "site", "userId": "eve"}).json["result"]
    made = result["sessionId"]
    views = Views(client, made)
    v1 = views.agree(True)
    assert (v1["user"], v1["project"], v1["sandbox"]) == ("eve", "site", result["sandboxId"])
    assert client.post("/api/sandbox/activity", {"sessionId": made}).json == {"success": True}
    answer = client.post("/create_session", {"user_id": "eve", "thread_id": "of eve"})
    assert answer.status == 201, answer
    cleaned = client.post("/api/cleanup-sandboxes", {"userId": "eve"}).json["results"]
    assert cleaned["killed"] == 2 and cleaned["failed"] == 0, "every session of the user must end"
    for session in (made, answer.json["session_id"]):
        assert client.get("/v1/sessions/" + session).status == 410


# ---- command policies in the threads API -----------------------------------------------------


@pytest.fixture(scope="module")
def ruled():
    with contextlib.closing(Lodged(threads_policy="tools")) as d:
        yield d


def test_threads_use_the_configured_policy(ruled):
    client, ask = ruled.client(), {"user_id": "u", "thread_id": "t"}
    answer = client.post("/create_session", ask)
    assert answer.status == 503 and "tools" in answer.json["detail"], "without the policy no session may start"
    policy = {"name": "tools", "commands": {"allow": ["ls", "cat", "git"], "reason": "only what reads"}}
    assert client.post("/v1/policies", policy).status == 201
    session = client.post("/create_session", ask).json["session_id"]

    def run(command):
        return client.post("/execute", {"session_id": session, "command": command})

    assert run("X=1 ls; echo 'look at this'; (ls)").status == 200
    for command, word in [("echo hi;xyz", "xyz"), ("echo $(xyz)", "xyz"), ("ls | xargs xyz", "xargs"),
                          ("bash -c 'xyz'", "bash"), ("ls\npython3 -c 1", "python3")]:
        answer = run(command)
        assert answer.status == 400, (command, answer)
        detail = answer.json["detail"]
        assert (detail["command"], detail["forbidden_pattern"]) == (command, word)
        assert "only what reads" in detail["error"], detail
    answer = run("echo 'never closed")
    assert answer.status == 400 and answer.json["detail"]["forbidden_pattern"] == "", answer


def test_the_default_policy_of_a_tenant_applies(ruled):
    admin = ruled.client()
    _, client = ruled.new_key(tenant="careful", scope="tenant")
    free = client.enter(key="before")
    body = {"name": "default", "tenant": "careful", "commands": {"allow": ["ls"]}}
    assert admin.post("/v1/policies", body).status == 201
    chat = client.post("/api/sandbox").json["sessionId"]
    client.post("/api/projects", {"id": "p", "name": "P", "userId": "u"})
    project = client.post("/api/switch-project", {"projectId": "p", "userId": "u"}).json["result"]["sessionId"]
    for session in (client.enter(key="after"), chat, project):
        assert client.session(session)["policy"] == "default"
        answer = client.post(f"/v1/sessions/{session}/exec", {"command": "id"})
        assert answer.status == 403 and answer.code == "POLICY", answer
    assert client.run(free, "id -u") == "1000\n", "an existing session must not change"
    assert admin.session(admin.enter(key="of another tenant"))["policy"] is None
    for s in client.get("/v1/sessions").json["sessions"]:  # the fixture only clears the sessions of the first tenant
        assert client.delete("/v1/sessions/" + s["id"]).status == 200


def test_json_needs_no_content_type_on_the_compatible_apis(client):
    made = client.call("POST", "/api/sessions", b'{"accountId": "ann"}')
    assert made.status == 200 and client.session(made.json["session"]["id"])["user"] == "ann", made
    thread = client.call("POST", "/create_session", b'{"user_id": "bob", "thread_id": "untyped"}')
    assert thread.status == 201 and client.session(thread.json["session_id"])["user"] == "bob", thread
    project = client.call("POST", "/api/projects", b'{"userId": "eve"}')
    assert project.status == 400 and project.json["error"] == "name: missing", project  # it was read
    for path in ("/api/sessions", "/create_session", "/api/projects"):
        assert client.call("POST", path, b"{}", {"Content-Type": "multipart/form-data; boundary=b"}).status == 415, path
    assert client.call("POST", "/v1/sessions", b"{}").status == 415


# what fetch() and curl -d send without a header
TYPES = ("text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "application/octet-stream", "")


@pytest.mark.parametrize("header", ["X-Api-Key", "Authorization"])
@pytest.mark.parametrize("path, body, taken", [
    ("/api/sessions", b'{"title": "typed"}', (200,)),
    ("/create_session", b'{"user_id": "typed", "thread_id": "typed"}', (201, 409)),
    ("/api/projects", b'{"name": "typed", "userId": "typed"}', (201,))], ids=["chat", "threads", "projects"])
def test_with_a_key_json_of_any_type_is_taken(lodged, path, body, taken, header):
    key = {header: lodged.client().key if header == "X-Api-Key" else "Bearer " + lodged.client().key}
    anyone = lodged.client(key=None)
    for kind in TYPES:
        answer = anyone.call("POST", path, body, {"Content-Type": kind, **key})
        assert answer.status in taken, (kind, answer)
    answer = anyone.call("POST", path, b"title=typed", {"Content-Type": TYPES[1], **key})
    assert answer.status in (400, 422), answer
    answer = anyone.call("POST", path, body, {"Content-Type": "multipart/form-data; boundary=b", **key})
    assert answer.status == 415, answer


def test_v1_names_the_header_to_send(client):
    for kind in TYPES:
        answer = client.call("POST", "/v1/sessions", b"{}", {"Content-Type": kind})
        assert answer.status == 415 and 'send the header "Content-Type: application/json"' in answer.message, answer


@pytest.mark.parametrize("shape, paths", [
    ({"status", "error"}, ("/api/sandbox/", "/api/sandbox/nothing", "/api/sandboxes", "/api/sessions/a/b", "/api/sessions/")),
    ({"success", "error"}, ("/api/projects/", "/api/projects/a/b/c/d", "/api/teams", "/api/switch-project/x")),
    ({"detail"}, ("/create_session/", "/status", "/status/a/b", "/execute/now"))], ids=["chat", "projects", "threads"])
def test_unknown_routes_are_refused_in_the_form_of_their_api(lodged, client, shape, paths):
    for path in paths:
        for method in ("GET", "POST", "DELETE"):
            answer = client.call(method, path)
            assert answer.status == 404 and set(answer.json) == shape, answer
            assert "no such route: " + path in str(answer.json), answer
            answer = lodged.client(key=None).call(method, path)
            assert answer.status == 401 and set(answer.json) == shape, answer
    assert client.get("/api/nothing").code == client.get("/v1/nothing").code == "NOT_FOUND"
