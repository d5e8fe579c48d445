# SPDX-License-Identifier: Apache-2.0
"""/api/projects, their fragments, and /api/teams: each row of the contract, permissions, and error messages."""
import base64
import contextlib
import http.client
import itertools
import json
import socket
import threading

import pytest

from client import quote, wait_for
from people import TIME, User, refusal

UNKNOWN_PROJECT = (404, "Project not found")
DENIED = (403, "Access denied to this project")
CALLS = [  # every call, with a valid body
    ("POST", "/api/switch-project", {"projectId": "p"}),
    ("POST", "/api/cleanup-sandboxes", {}),
    ("GET", "/api/cleanup-sandboxes", None),
    ("POST", "/api/projects", {"name": "x"}),
    ("GET", "/api/projects", None),
    ("GET", "/api/projects/p", None),
    ("DELETE", "/api/projects/p", None),
    ("POST", "/api/projects/p/fragments", {"files": {}}),
    ("GET", "/api/projects/p/fragments", None),
    ("GET", "/api/projects/p/fragments/f", None),
    ("DELETE", "/api/projects/p/fragments/f", None),
    ("GET", "/api/teams/t/members", None),
    ("PUT", "/api/teams/t/members/u", {"role": "MEMBER"}),
    ("DELETE", "/api/teams/t/members/u", None),
]
OF_USERS = [c for c in CALLS if "/teams/" not in c[1] and c[:2] != ("GET", "/api/projects/p")]
TENANTS = itertools.count()
every_call = pytest.mark.parametrize("call", CALLS, ids=lambda c: f"{c[0]} {c[1]}")


@pytest.fixture
def app(lodged):
    """An application with no objects yet."""
    name = f"t{next(TENANTS)}"
    _, client = lodged.new_key(tenant=name, scope="tenant")
    client.tenant = name
    yield client
    for user in ("ann", "bob", "eve"):
        client.post("/api/cleanup-sandboxes", {"userId": user})


@pytest.fixture
def ann(app):
    return User(app, "ann")


@pytest.fixture
def bob(app):
    return User(app, "bob")


def token(app, user):
    """The same user with a token of its own."""
    answer = app.post("/v1/keys", {"scope": "session", "user": user})
    assert answer.status == 201, answer
    return User(type(app)(app.host, app.port, answer.json["secret"]), user, named=False)


# ---- the contract -------------------------------------------------------------------------------


def test_post_projects(ann):
    answer = ann.post("/api/projects", {"id": "site", "name": "My site", "team": "blue"})
    assert answer.status == 201, answer
    p = answer.json
    assert TIME.fullmatch(p.pop("createdAt"))
    assert p == {"id": "site", "name": "My site", "owner": "ann", "team": "blue"}
    p = ann.post("/api/projects", {"name": "Another"}).json
    assert p["id"].startswith("prj_") and p["team"] is None
    answer = ann.post("/api/projects", {"id": "site", "name": "Again"})
    assert refusal(answer) == (409, "project site already exists")


def test_get_projects(ann, bob):
    made = [ann.project(n) for n in ("a", "b", "c")]
    bob.project("other")
    found = ann.get("/api/projects").json
    assert [p["id"] for p in found["projects"]] == made and found["next"] is None
    first = ann.get("/api/projects?limit=2").json
    rest = ann.get(f"/api/projects?limit=2&after={first['next']}").json
    assert [p["id"] for p in first["projects"] + rest["projects"]] == made
    assert refusal(ann.get("/api/projects?limit=0"))[0] == 400


def test_get_projects_id(ann, bob):
    ann.project("site")
    answer = ann.get("/api/projects/site")
    assert answer.status == 200 and answer.json["name"] == "SITE"
    never = bob.get("/api/projects/none")
    there = bob.get("/api/projects/site")
    assert refusal(there) == refusal(never) == UNKNOWN_PROJECT


def test_delete_projects_id(ann, bob):
    ann.project("site")
    fragment = ann.save("site", {"a": "1"})
    ann.switch("site")
    assert refusal(bob.delete("/api/projects/site")) == UNKNOWN_PROJECT
    answer = ann.delete("/api/projects/site")
    assert answer.status == 200 and answer.json["id"] == "site"
    assert refusal(ann.get("/api/projects/site")) == UNKNOWN_PROJECT
    assert refusal(ann.delete("/api/projects/site")) == UNKNOWN_PROJECT
    assert ann.look() == {"userId": "ann", "activeSandboxes": 0, "currentSandbox": None}
    ann.project("site")  # a new project, without the fragments of the first
    assert refusal(ann.get(f"/api/projects/site/fragments/{fragment}"))[0] == 404


def test_post_projects_id_fragments(ann):
    ann.project("site")
    answer = ann.post("/api/projects/site/fragments", {"title": "one", "files": {"a/b": "1", "c": ""}})
    assert answer.status == 201, answer
    f = answer.json
    assert TIME.fullmatch(f["createdAt"]) and f["id"].startswith("frg_")
    assert (f["projectId"], f["title"], f["fileCount"], f["bytes"]) == ("site", "one", 2, 1)
    assert f["snapshotId"] is None and f["skipped"] == 0
    f = ann.post("/api/projects/site/fragments", {"id": "mine", "files": {}}).json
    assert (f["id"], f["title"], f["fileCount"]) == ("mine", None, 0)
    answer = ann.post("/api/projects/site/fragments", {"id": "mine", "files": {}})
    assert answer.status == 409 and "mine" in refusal(answer)[1]


def test_post_projects_id_fragments_from_sandbox(ann):
    ann.project("site")
    answer = ann.post("/api/projects/site/fragments", {"fromSandbox": True})
    assert refusal(answer) == (409, "project site has no sandbox to save from")
    ann.switch("site")
    ann.here("mkdir -p d && printf '\\377\\0' > d/bin && echo text > t && ln -s /etc link")
    answer = ann.post("/api/projects/site/fragments", {"title": "as it is", "fromSandbox": True})
    assert answer.status == 201 and answer.json["skipped"] == 1, answer
    f = ann.get("/api/projects/site/fragments/" + answer.json["id"]).json
    assert f["files"] == {"d/bin": "__BASE64__/wA=", "t": "text\n"}


def test_post_projects_id_fragments_of_a_snapshot(ann, bob, app):
    ann.project("site")
    session = ann.switch("site")["sessionId"]
    ann.here("echo kept > kept")
    snap = app.post(f"/v1/sessions/{session}/snapshots", {}).json["snapshot"]["id"]
    fragment = ann.post("/api/projects/site/fragments", {"snapshotId": snap}).json
    assert fragment["snapshotId"] == snap and fragment["fileCount"] == 0
    bob.project("other")
    answer = bob.post("/api/projects/other/fragments", {"snapshotId": snap})
    assert refusal(answer) == (404, f"Snapshot not found: {snap}")
    ann.here("rm kept")
    assert ann.switch("site", fragment["id"])["hasRestoredFiles"] is True
    assert ann.here("cat kept") == "kept\n"
    assert ann.delete("/api/projects/site/fragments/" + fragment["id"]).status == 200
    assert app.delete("/v1/snapshots/" + snap).status == 204


def test_get_projects_id_fragments(ann):
    ann.project("site")
    made = [ann.save("site", {"n": str(i)}) for i in range(5)]
    found = ann.get("/api/projects/site/fragments").json
    assert [f["id"] for f in found["fragments"]] == made[::-1]  # newest first
    assert "files" not in found["fragments"][0]
    first = ann.get("/api/projects/site/fragments?limit=2").json
    rest = ann.get(f"/api/projects/site/fragments?after={first['next']}").json
    assert [f["id"] for f in first["fragments"] + rest["fragments"]] == made[::-1]


def test_get_and_delete_one_fragment(ann):
    ann.project("site")
    ann.project("other")
    f = ann.save("site", {"a": "1"})
    at = "/api/projects/site/fragments/" + f
    assert ann.get(at).json["files"] == {"a": "1"}
    assert ann.client.call("HEAD", at + "?userId=ann").status == 200
    answer = ann.get("/api/projects/other/fragments/" + f)
    assert refusal(answer) == (409, f"Fragment {f} does not belong to project other")
    assert refusal(ann.get("/api/projects/site/fragments/none")) == (404, "Fragment not found: none")
    gone = ann.delete(at)
    assert gone.status == 200 and gone.json["id"] == f
    assert refusal(ann.delete(at)) == (404, f"Fragment not found: {f}")


def test_put_and_delete_teams_members(app, ann, bob):
    ann.project("site", team="blue")
    answer = ann.put("/api/teams/blue/members/bob", {"role": "MEMBER"})
    assert answer.status == 200 and answer.json == {"team": "blue", "user": "bob", "role": "MEMBER"}
    assert ann.put("/api/teams/blue/members/bob", {"role": "VIEWER"}).json["role"] == "VIEWER"
    assert bob.get("/api/projects/site").status == 200
    listed = [(m["user"], m["role"]) for m in bob.get("/api/teams/blue/members").json["members"]]
    assert listed == [("ann", "OWNER"), ("bob", "VIEWER")]
    gone = bob.delete("/api/teams/blue/members/bob")  # every member may leave
    assert gone.status == 200 and gone.json == {"team": "blue", "user": "bob", "role": "VIEWER"}
    assert refusal(bob.get("/api/projects/site")) == UNKNOWN_PROJECT
    assert bob.get("/api/teams/blue/members").json == {"members": []}
    assert refusal(ann.delete("/api/teams/blue/members/bob")) == (404, "bob is not in team blue")


def test_the_application_manages_teams(app, ann):
    assert app.put("/api/teams/new/members/ann", {"role": "OWNER"}).status == 200
    assert app.get("/api/teams/new/members").json["members"] == [
        {"team": "new", "user": "ann", "role": "OWNER"}]
    assert app.delete("/api/teams/new/members/ann").json["role"] == "OWNER"


def test_teams_are_listed(app, ann):
    ann.project("site", team="blue")
    own = {user: token(app, user).client for user in ("ann", "bob")}
    for team in ("one", "two", "tri"):
        assert app.put(f"/api/teams/{team}/members/bob", {"role": "VIEWER"}).status == 200
    mine = own["bob"].get("/v1/teams").json
    assert mine == {"teams": [{"team": t, "members": 1, "projects": 0, "role": "VIEWER"} for t in ("one", "tri", "two")], "next": None}
    assert app.get("/v1/teams?user=bob").json == mine
    assert own["ann"].get("/v1/teams").json["teams"] == [{"team": "blue", "members": 1, "projects": 1, "role": "OWNER"}]
    found, after = [], 0
    while after is not None:
        page = app.get(f"/v1/teams?limit=2&after={after}").json
        assert len(page["teams"]) <= 2 and all(t["role"] is None for t in page["teams"])
        found, after = found + [t["team"] for t in page["teams"]], page["next"]
    assert found == ["blue", "one", "tri", "two"]
    assert own["bob"].get("/v1/teams?user=ann").status == 403
    assert app.get("/v1/teams?user=").status == 400 and app.get("/v1/teams?team=x").status == 400
    assert app.get("/v1/teams?limit=0").status == 400


def test_unknown_roles_are_refused(ann):
    ann.project("site", team="blue")
    for role in (None, "", "owner", "KING"):
        answer = ann.put("/api/teams/blue/members/bob", {"role": role})
        assert refusal(answer) == (400, "role: must be OWNER, ADMIN, MEMBER or VIEWER")
    assert refusal(ann.put("/api/teams/blue/members/bob", {"role": 3}))[0] == 400


# ---- permissions --------------------------------------------------------------------------------

MAY = {  # view, switch, save, delete
    "OWNER": (200, 200, 201, 200), "ADMIN": (200, 200, 201, 200), "MEMBER": (200, 200, 201, 403),
    "VIEWER": (200, 200, 403, 403), None: (404, 404, 404, 404)}


@pytest.mark.parametrize("role", MAY, ids=str)
def test_roles(app, ann, bob, role):
    ann.project("site", team="blue")
    fragment = ann.save("site", {"a": "1"})
    if role:
        assert app.put("/api/teams/blue/members/bob", {"role": role}).status == 200
    view, switch, save, delete = MAY[role]
    answers = [(bob.get("/api/projects/site"), view), (bob.get("/api/projects/site/fragments"), view),
               (bob.get("/api/projects/site/fragments/" + fragment), view),
               (bob.post("/api/switch-project", {"projectId": "site"}), switch),
               (bob.post("/api/switch-project", {"projectId": "site", "fragmentId": fragment}), switch),
               (bob.post("/api/projects/site/fragments", {"files": {}}), save),
               (bob.delete("/api/projects/site/fragments/" + fragment), delete),
               (bob.delete("/api/projects/site"), delete)]
    for answer, status in answers:
        assert answer.status == status, answer
        if status in (403, 404):
            assert refusal(answer) == (DENIED if status == 403 else UNKNOWN_PROJECT)


TEAM = {  # adds a member, adds an OWNER, removes the OWNER
    "OWNER": (200, 200, 200), "ADMIN": (200, 403, 403), "MEMBER": (403, 403, 403),
    "VIEWER": (403, 403, 403), None: (404, 404, 404)}


@pytest.mark.parametrize("role", TEAM, ids=str)
def test_roles_in_a_team(app, bob, role):
    app.put("/api/teams/blue/members/ann", {"role": "OWNER"})
    if role:
        app.put("/api/teams/blue/members/bob", {"role": role})
    answers = [bob.put("/api/teams/blue/members/carol", {"role": "MEMBER"}),
               bob.put("/api/teams/blue/members/dora", {"role": "OWNER"}),
               bob.delete("/api/teams/blue/members/ann")]
    assert tuple(a.status for a in answers) == TEAM[role]
    texts = {404: "Team not found", 403: "Access denied to this team"}
    for a in answers:
        assert a.status == 200 or refusal(a) == (a.status, texts[a.status])


# ---- the acting user ----------------------------------------------------------------------------


def test_the_application_itself_may_ask_for_the_owner(app, ann):
    ann.project("site")
    assert app.get("/api/projects/site").json["owner"] == "ann"
    assert refusal(app.get("/api/projects/none")) == UNKNOWN_PROJECT
    assert refusal(app.get("/api/projects/site?userId=eve")) == UNKNOWN_PROJECT
    assert refusal(token(app, "eve").get("/api/projects/site")) == UNKNOWN_PROJECT


@pytest.mark.parametrize("call", OF_USERS, ids=lambda c: f"{c[0]} {c[1]}")
def test_an_application_must_name_the_user(app, call):
    for body in (call[2], {**call[2], "userId": None} if call[2] is not None else None):
        assert refusal(app.call(call[0], call[1], body)) == (400, f"userId: missing in the {'query' if call[2] is None else 'body'}")
    if call[2] is not None:
        answer = app.call(call[0], call[1], {**call[2], "userId": ""})
        assert refusal(answer) == (400, f"userId: missing in the {'query' if call[2] is None else 'body'}")
        assert refusal(app.call(call[0], call[1], {**call[2], "userId": 7})) == (400, "userId: must be a string")
        answer = app.call(call[0], call[1], {**call[2], "userId": "x" * 128})
    else:
        answer = app.call(call[0], call[1] + "?userId=" + "x" * 128)
    assert answer.status == 400 and "longer than 127" in refusal(answer)[1]


@every_call
def test_a_token_cannot_name_another_user(app, call):
    ann = token(app, "ann")
    other, own = "?userId=bob", "?userId=ann"
    if call[2] is not None:
        answer = ann.client.call(call[0], call[1], {**call[2], "userId": "bob"})
        same = ann.client.call(call[0], call[1], {**call[2], "userId": "ann"})
    else:
        answer, same = (ann.client.call(call[0], call[1] + q) for q in (other, own))
    assert refusal(answer) == (403, "userId: this token is for another user")
    assert same.status in (200, 201, 404), same


@every_call
def test_other_session_keys_are_refused(lodged, app, call):
    session = app.enter(asleep=True, user="ann")
    for body in ({"scope": "session"}, {"scope": f"session:{session}"}):
        secret = app.post("/v1/keys", body).json["secret"]
        client = lodged.client(secret)
        answer = client.call(call[0], call[1] + ("" if call[2] is not None else "?userId=ann"),
                             {**call[2], "userId": "ann"} if call[2] is not None else None)
        assert refusal(answer)[0] == 403
    app.delete("/v1/sessions/" + session)


def test_a_token_implies_its_user(app, ann):
    own = token(app, "ann")
    assert own.project("mine") == "mine"
    assert ann.get("/api/projects/mine").json["owner"] == "ann"
    assert [p["id"] for p in own.get("/api/projects").json["projects"]] == ["mine"]
    fragment = own.save("mine", {"a": "1"})
    result = own.switch("mine", fragment)
    assert own.client.run(result["sessionId"], "cat a") == "1"
    assert own.look()["currentSandbox"]["sandboxId"] == result["sandboxId"]
    assert own.post("/api/cleanup-sandboxes").json["results"]["killed"] == 1
    stranger = token(app, "bob")
    assert refusal(stranger.get("/api/projects/mine")) == UNKNOWN_PROJECT
    assert stranger.client.get("/v1/sessions/" + result["sessionId"]).status in (404, 410)


def test_a_user_is_created_on_first_write(app, bob):
    assert app.get("/v1/users/bob").status == 404
    assert bob.get("/api/projects").json["projects"] == []
    assert bob.look() == {"userId": "bob", "activeSandboxes": 0, "currentSandbox": None}
    assert app.get("/v1/users/bob").status == 404  # reads do not create users
    bob.project("first")
    assert app.get("/v1/users/bob").json["user"]["id"] == "bob"


def test_tenants_are_isolated(lodged, app, ann):
    _, other = lodged.new_key(tenant=app.tenant + "x", scope="tenant")
    there = User(other, "ann")
    for user, text in ((ann, "here"), (there, "there")):
        user.project("same", team="team")
        user.save("same", {"where": text}, id="same-too")
    first, second = ann.switch("same"), there.switch("same")
    assert first["sandboxId"] != second["sandboxId"]
    assert (ann.here("cat where"), there.here("cat where")) == ("here", "there")
    assert other.get("/v1/sessions/" + first["sessionId"]).status == 404
    assert there.post("/api/cleanup-sandboxes").json["results"]["killed"] == 1
    assert ann.look()["activeSandboxes"] == 1 and ann.here("cat where") == "here"
    assert app.get("/api/teams/team/members").json["members"][0]["user"] == "ann"
    ann.project("only-here")
    assert refusal(there.get("/api/projects/only-here")) == UNKNOWN_PROJECT
    assert there.delete("/api/projects/same").status == 200
    assert ann.get("/api/projects/same").status == 200


# ---- errors -------------------------------------------------------------------------------------


@every_call
def test_without_a_key(lodged, app, call):
    answer = lodged.client(None).call(call[0], call[1], call[2])
    assert refusal(answer)[0] == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    two = {"X-Api-Key": app.key, "Authorization": f"Bearer {app.key}"}
    answer = lodged.client(None).call(call[0], call[1], call[2], headers=two)
    assert refusal(answer)[0] == 401


def test_errors_are_reported_in_order(lodged, app, ann, bob):
    """401, then 400, then 403 or 404, then 409."""
    app.put("/api/teams/blue/members/bob", {"role": "VIEWER"})
    # a project can only be added to a team in which the user may write
    for user in (ann, bob):
        assert refusal(user.post("/api/projects", {"name": "Mine", "team": "blue"})) == (404, "Team not found")
    app.put("/api/teams/blue/members/ann", {"role": "MEMBER"})
    ann.project("site", team="blue")
    ann.project("other")
    fragment = ann.save("other", {})
    bad = {"projectId": 3}
    assert refusal(lodged.client(None).post("/api/switch-project", bad))[0] == 401
    assert refusal(ann.post("/api/switch-project", bad)) == (400, "projectId: must be a string")
    assert refusal(ann.post("/api/switch-project", {})) == (400, "projectId: missing")
    where = {"projectId": "none", "fragmentId": fragment}
    assert refusal(ann.post("/api/switch-project", where)) == UNKNOWN_PROJECT
    where = {"projectId": "site", "fragmentId": fragment}
    answer = ann.post("/api/switch-project", where)
    assert refusal(answer) == (409, f"Fragment {fragment} does not belong to project site")
    where["fragmentId"] = "frg_none"
    assert refusal(ann.post("/api/switch-project", where)) == (404, "Fragment not found: frg_none")
    # the same for fragments
    for user, project in ((ann, "none"), (bob, "site")):
        answer = user.post(f"/api/projects/{project}/fragments", {"files": {"/x": ""}})
        assert refusal(answer) == (400, "/x: path must be relative")
    assert refusal(bob.post("/api/projects/site/fragments", {"files": {}, "id": fragment})) == DENIED
    assert refusal(ann.post("/api/projects/site/fragments", {"files": {}, "id": fragment}))[0] == 409
    assert refusal(ann.post("/api/projects", {"id": "site"})) == (400, "name: missing")


BAD_PATHS = {"/etc/passwd": "path must be relative", "..": "'.' or '..'", "a/../b": "'.' or '..'",
             "../b": "'.' or '..'", "./a": "'.' or '..'", "a/": "ends with a slash",
             "x" * 256: "too long", "d/" * 600 + "f": "too long"}


def test_a_bad_path_is_named(ann):
    ann.project("site")
    for path, why in BAD_PATHS.items():
        answer = ann.post("/api/projects/site/fragments", {"files": {"good": "1", path: "2"}})
        status, text = refusal(answer)
        assert status == 400 and text.startswith(path[:160]) and why in text, answer
    for files, word in (({"a\0b": ""}, "a\\u0000b"), ({"": ""}, "path is empty"),
                        ({"a": "", "a/b": ""}, "a: "), ({"a//b": "", "a/b": ""}, "a/b"),
                        ({"x": "__BASE64__A"}, "x: not valid base64"),
                        ({"x": "data:a/b;base64,A A="}, "x: not valid base64"),
                        ({"x": 3}, "x: "), ({"x": {"y": ""}}, "x: ")):
        answer = ann.post("/api/projects/site/fragments", {"files": files})
        assert refusal(answer)[0] == 400 and word in refusal(answer)[1], answer
    assert ann.get("/api/projects/site/fragments").json["fragments"] == []


def test_invalid_names_are_refused(ann):
    for field in ("id", "name", "team"):
        for value in ("x" * 300, "a\nb", "a\x7f"):
            answer = ann.post("/api/projects", {"name": "n", field: value})
            assert refusal(answer)[0] == 400 and refusal(answer)[1].startswith(field + ":"), answer
    for field in ("id", "team"):  # these are parts of URLs
        for value in ("a/b", ".", ".."):
            answer = ann.post("/api/projects", {"name": "n", field: value})
            assert refusal(answer) == (400, f'{field}: must not contain a slash nor be "." or ".."')
    ann.project("site")
    for field in ("id", "title", "snapshotId", "userId"):
        answer = ann.post("/api/projects/site/fragments", {"files": {}, field: "a\0b"})
        assert refusal(answer) == (400, f"{field}: must not contain a NUL")
    odd = "a \"q\" \\ \u00e4\u6f22\U0001f600 % ? #&"
    ann.project(odd)
    assert ann.get("/api/projects/" + quote(odd)).json["id"] == odd


def test_exactly_one_source_of_files(ann):
    ann.project("site")
    for body in ({}, {"files": None}, {"fromSandbox": False}, {"files": {}, "fromSandbox": True},
                 {"files": {}, "snapshotId": "snp_x"}):
        answer = ann.post("/api/projects/site/fragments", body)
        assert refusal(answer) == (400, "files: set exactly one of files, snapshot and fromSandbox")


@every_call
def test_malformed_bodies_are_refused(app, call):
    if call[2] is None:
        return
    for body in (b"[]", b"{", b'{"a":1,"a":2}', b"\xff", b"[" * 1000):
        answer = app.call(call[0], call[1], body, headers={"Content-Type": "application/json"})
        assert refusal(answer)[0] == 400, answer
    answer = app.call(call[0], call[1], b"{}", headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert refusal(answer)[0] == 415


def test_unknown_fields_are_ignored(ann):
    assert ann.post("/api/projects", {"name": "x", "colour": "red"}).status == 201


# ---- bounds -------------------------------------------------------------------------------------


def test_the_three_encodings_of_content(ann):
    ann.project("site")
    raw = bytes(range(256))
    coded = base64.b64encode(raw).decode()
    f = ann.save("site", {"text": "gr\u00fcn\n", "nul": "a\0b", "b64": "__BASE64__" + coded,
                          "url": f"data:image/png;base64,{coded}", "like": "data:text/plain,x", "none": ""})
    files = ann.get("/api/projects/site/fragments/" + f).json["files"]
    assert files == {"text": "gr\u00fcn\n", "nul": "__BASE64__YQBi", "b64": "__BASE64__" + coded,
                     "url": "__BASE64__" + coded, "like": "data:text/plain,x", "none": ""}


def test_too_many_files_and_bytes(ann):
    ann.project("site")
    at = "/api/projects/site/fragments"
    answer = ann.post(at, {"files": {str(i): "" for i in range(10001)}})
    assert refusal(answer) == (413, "files: 10001 exceed the maximum of 10000")
    answer = ann.post(at, {"files": {}, "other": [0] * 600000})  # many values in 1.2 MB
    assert refusal(answer) == (413, "body: more than 65536 values")
    connection = http.client.HTTPConnection(ann.client.host, ann.client.port, timeout=180)
    with contextlib.closing(connection):
        connection.putrequest("POST", at)
        for name, value in (("Authorization", f"Bearer {ann.client.key}"),
                            ("Content-Type", "application/json"), ("Content-Length", (64 << 20) + 1)):
            connection.putheader(name, str(value))
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == 413 and json.loads(response.read())["success"] is False
    assert ann.get(at).json["fragments"] == []


def test_a_large_fragment_is_stored_unchanged(ann):
    ann.project("site")
    raw = bytes(range(256)) * (16 << 10)
    files = {"big": "__BASE64__" + base64.b64encode(raw).decode(), "lines": "0123456\n" * (1 << 19)}
    f = ann.save("site", files)
    answer = ann.get("/api/projects/site/fragments/" + f)
    assert answer.json["bytes"] == len(raw) + (4 << 20)
    assert answer.json["files"] == files


HALF = b"y" * (1 << 20)


def begin_upload(client, path):
    """Start a request with a large body and send half of it, which is more than fits into buffers: it is being read."""
    connection = http.client.HTTPConnection(client.host, client.port, timeout=180)
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    connection.putrequest("POST", path)
    for name, value in (("Authorization", f"Bearer {client.key}"), ("Content-Type", "application/json"),
                        ("Content-Length", 2 << 20)):
        connection.putheader(name, str(value))
    connection.endheaders(b'{"userId":"ann","files":{"x":"' + HALF)
    return connection


def test_large_bodies_are_queued_per_tenant(lodged, app, ann):
    """Two of one tenant at a time; other tenants are not delayed."""
    ann.project("site")
    at = "/api/projects/site/fragments"
    _, other = lodged.new_key(tenant=app.tenant + "y", scope="tenant")
    stranger = User(other, "ann")
    stranger.project("site")
    slow = [begin_upload(app, at) for _ in range(2)]
    done = []
    try:
        third = threading.Thread(target=lambda: done.append(ann.post(at, {"files": {"x": "y" * (2 << 20)}})))
        third.start()
        assert ann.save("site", {"small": "1"})  # small bodies are not queued
        assert stranger.save("site", {"x": "y" * (2 << 20)})
        assert not done
        slow.pop().close()
        third.join(180)
        assert [a.status for a in done] == [201]
        slow[0].send(b"y" * ((2 << 20) - 33 - len(HALF)) + b'"}}')
        assert slow[0].getresponse().status == 201
    finally:
        for connection in slow:
            connection.close()
