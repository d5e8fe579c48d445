# SPDX-License-Identifier: Apache-2.0
"""Snapshots, forks, rollback, and snapshots as archives, over /v1."""
import pytest

from client import quote, wait_for

ZSTD = {"Content-Type": "application/zstd"}
# names, bytes, types, modes, times, links, attributes; holes are restored as zeros
FILL = """
mkdir -p d/sub 'd/with blank'; cd d
head -c 300000 /dev/urandom > random; printf 'a\\0b' > binary; : > empty
ln -s ../elsewhere symlink; ln random hardlink; mkfifo fifo
chmod 751 sub; chmod 4640 binary; touch -d '2001-02-03 04:05:06.123456789' empty sub
truncate -s 50M sparse; printf end >> sparse; printf x > 'with blank/'$'\\xc3\\xa4'
setfattr -n user.colour -v green binary 2>/dev/null || true
rm -f /etc/hostname 2>/dev/null || true
"""
LOOK = """
cd d; find . -printf '%P %y %m %U:%G %n %l %s %T@\\n' | sort
find . -type f -print0 | sort -z | xargs -0 sha256sum
stat -c %i random hardlink | uniq | wc -l
getfattr -d binary 2>/dev/null || true
"""


@pytest.fixture
def sid(client):
    made = client.enter()
    yield made
    clear(client, made)


@pytest.fixture
def at(sid):
    return "/v1/sessions/" + sid


def clear(client, *ids):
    for sid in ids:
        answer = client.get(f"/v1/sessions/{sid}/snapshots")
        for s in answer.json.get("snapshots", []):
            assert client.delete("/v1/snapshots/" + s["id"]).status == 204
        assert client.delete("/v1/sessions/" + sid).status == 200


def snapshot(client, at, **body):
    answer = client.post(at + "/snapshots", body)
    assert answer.status == 201, answer
    return answer.json["snapshot"]


def bash(client, sid, text):
    answer = client.post(f"/v1/sessions/{sid}/exec", {"argv": ["bash", "-c", text]})
    assert answer.status == 200 and answer.json["exit_code"] == 0, answer
    return answer.json["stdout"]


# ---- taking -------------------------------------------------------------------------------------


def test_a_size_is_null_until_the_files_are_counted(client, sid, at):
    client.run(sid, "head -c 200000 /dev/urandom > large; sync")

    def listed(snap):
        both = [client.get("/v1/snapshots/" + snap["id"]).json["snapshot"]["size_bytes"],
                *(s["size_bytes"] for s in client.get(at + "/snapshots").json["snapshots"] if s["id"] == snap["id"])]
        return all(size is not None for size in both) and both
    for stop in (False, True):
        snap = snapshot(client, at, live=not stop)
        assert snap["size_bytes"] is None or snap["size_bytes"] > 0, snap
        sizes = wait_for(lambda s=snap: listed(s))  # of two moments: btrfs counts a new snapshot for a while
        assert len(sizes) == 2 and all(size > (0 if stop else 100000) for size in sizes), sizes


def test_create_read_and_remove(client, sid, at):
    a = snapshot(client, at, name="first")
    assert (a["name"], a["session"], a["generation"]) == ("first", sid, 1)
    assert a["id"].startswith("snp_") and a["created_at"] > 0 and a["size_bytes"] != 0
    b = snapshot(client, at)
    assert b["name"] is None and b["generation"] == 2
    s = client.session(sid)
    assert (s["state"], s["snapshot"], s["generation"]) == ("active", b["id"], 2)
    assert client.get("/v1/snapshots/" + a["id"]).json["snapshot"]["name"] == "first"
    answer = client.post(at + "/snapshots", {"name": "first"})
    assert answer.status == 409 and a["id"] in answer.json["error"]["message"], answer
    listed = client.get(at + "/snapshots").json
    assert [x["id"] for x in listed["snapshots"]] == [a["id"], b["id"]] and listed["next"] is None
    assert client.get(at + "/snapshots?limit=2").json == listed
    page = client.get(at + "/snapshots?limit=1").json
    assert [x["id"] for x in page["snapshots"]] == [a["id"]]
    page = client.get(f"{at}/snapshots?limit=2&after={page['next']}").json
    assert [x["id"] for x in page["snapshots"]] == [b["id"]] and page["next"] is None
    other = client.enter(asleep=True)
    assert client.delete(f"/v1/sessions/{other}/snapshots/{a['id']}").status == 404
    answer = client.delete(f"{at}/snapshots/{a['id']}")
    assert answer.status == 204 and answer.data == b""
    assert client.delete("/v1/snapshots/" + b["id"]).status == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/archive")):
        answer = client.call(method, f"/v1/snapshots/{a['id']}{path}")
        assert answer.status == 404 and answer.code == "NOT_FOUND", answer
    assert client.get(at + "/snapshots").json["snapshots"] == []
    assert client.session(sid)["snapshot"] is None
    client.delete("/v1/sessions/" + other)


def test_names(client, at):
    for name in ("", "x" * 300):
        assert client.post(at + "/snapshots", {"name": name}).status == 400
    snapshot(client, at, name="\u00e4 with blank")
    listed = client.get(at + "/snapshots").json["snapshots"]
    assert [s["name"] for s in listed] == ["\u00e4 with blank"]


def test_snapshots_of_running_stopped_and_hibernated_sessions(client, sid, at):
    client.run(sid, "echo one > f; sleep 600 & echo $! > pid")
    sandbox = client.session(sid)["sandbox"]
    live = snapshot(client, at)
    assert client.session(sid)["sandbox"] == sandbox
    assert client.run(sid, "kill -0 $(cat pid) && echo runs") == "runs\n"
    client.run(sid, "echo two > f")
    stopped = snapshot(client, at, live=False)
    s = client.session(sid)
    assert s["state"] == "active" and s["sandbox"] != sandbox
    client.run(sid, "echo three > f")
    client.post(at + "/hibernate")
    asleep = snapshot(client, at)
    assert client.session(sid)["state"] == "hibernated"
    for snap, text in ((live, "one"), (stopped, "two"), (asleep, "three")):
        made = client.enter(snapshot=snap["id"])
        assert client.run(made, "cat f") == text + "\n"
        clear(client, made)


def test_snapshots_outlive_their_session(client):
    sid = client.enter(key="short lived")
    client.run(sid, "echo kept > f")
    snap = snapshot(client, "/v1/sessions/" + sid)["id"]
    client.delete("/v1/sessions/" + sid)
    listed = client.get(f"/v1/sessions/{sid}/snapshots")
    assert [s["id"] for s in listed.json["snapshots"]] == [snap]
    answer = client.post("/v1/sessions", {"snapshot": snap})
    assert answer.status == 201 and answer.json["outcome"] == "created", answer
    made = answer.json["session"]["id"]
    assert client.run(made, "cat f") == "kept\n"
    assert client.delete("/v1/snapshots/" + snap).status == 204
    assert client.run(made, "cat f") == "kept\n"
    assert client.get(f"/v1/sessions/{sid}/snapshots").status == 410
    clear(client, made)


# ---- listing all --------------------------------------------------------------------------------


def ids(answer):
    assert answer.status == 200, answer
    return [s["id"] for s in answer.json["snapshots"]]


@pytest.fixture
def several(lodged):
    """A tenant with snapshots of ann, of bob, of a destroyed session of ann, and an imported one."""
    class Several:
        pass

    w = Several()
    _, w.owner = lodged.new_key(tenant="several", scope="tenant")
    w.ann, w.bob, w.gone = (w.owner.enter(key=k, user=u) for k, u in (("a", "ann"), ("b", "bob"), ("c", "ann")))
    w.of_ann, w.of_bob, w.of_gone = (snapshot(w.owner, "/v1/sessions/" + x)["id"] for x in (w.ann, w.bob, w.gone))
    assert w.owner.delete("/v1/sessions/" + w.gone).status == 200
    archive = w.owner.get(f"/v1/snapshots/{w.of_ann}/archive").data
    w.brought = w.owner.post("/v1/snapshots", archive, headers=ZSTD).json["snapshot"]["id"]
    yield w
    for s in w.owner.get("/v1/snapshots").json["snapshots"]:
        assert w.owner.delete("/v1/snapshots/" + s["id"]).status == 204
    for sid in (w.ann, w.bob):
        assert w.owner.delete("/v1/sessions/" + sid).status == 200


def test_all_snapshots_are_listed_and_removed(several):
    w, c = several, several.owner
    listed = c.get("/v1/snapshots").json
    assert [s["id"] for s in listed["snapshots"]] == [w.of_ann, w.of_bob, w.of_gone, w.brought]
    assert listed["next"] is None
    assert [(s["session"], s["session_key"], s["session_exists"]) for s in listed["snapshots"]] == [
        (w.ann, "a", True), (w.bob, "b", True), (w.gone, None, False), (None, None, False)]
    for s in listed["snapshots"]:
        assert c.get("/v1/snapshots/" + s["id"]).json["snapshot"] == s
    assert c.get(f"/v1/sessions/{w.ann}/snapshots").json["snapshots"] == listed["snapshots"][:1]
    for query, found in (("session=" + w.ann, [w.of_ann]), ("session=key:b", [w.of_bob]), ("session=key:c", [w.of_gone]),
                         ("session=" + w.gone, [w.of_gone]), ("user=ann", [w.of_ann, w.of_gone]), ("user=eve", []),
                         (f"user=bob&session={w.gone}", []), (f"user=ann&session={w.gone}", [w.of_gone]),
                         ("session=ses_unknown", [])):
        assert ids(c.get("/v1/snapshots?" + query)) == found, query
    assert c.get("/v1/snapshots?session=key:nosuch").status == 404
    for s in (w.of_gone, w.brought):
        assert c.delete("/v1/snapshots/" + s).status == 204
    assert ids(c.get("/v1/snapshots")) == [w.of_ann, w.of_bob]


@pytest.mark.parametrize("query", ["", "user=ann&", "session=key:a&"])
def test_all_snapshots_are_listed_in_pages(several, query):
    c, got, after = several.owner, [], 0
    for _ in range(2):
        snapshot(c, "/v1/sessions/" + several.ann)
    want = ids(c.get("/v1/snapshots?" + query))
    while after is not None:
        page = c.get(f"/v1/snapshots?{query}limit=1&after={after}")
        assert len(ids(page)) == 1
        got, after = got + ids(page), page.json["next"]
    assert got == want and len(got) >= 3


def test_a_token_sees_only_permitted_snapshots(lodged, several):
    w = several
    _, ann = lodged.new_key(tenant="several", user="ann")
    _, bob = lodged.new_key(tenant="several", user="bob")
    _, one = lodged.new_key(tenant="several", scope="session:" + w.bob)
    _, session = lodged.new_key(tenant="several", scope="session")
    every = [w.of_ann, w.of_bob, w.of_gone, w.brought]
    for client, sees in ((ann, [w.of_ann, w.of_gone]), (bob, [w.of_bob]), (one, [w.of_bob]), (session, every)):
        assert ids(client.get("/v1/snapshots")) == sees
        # a snapshot that is not listed cannot be read either
        assert [s for s in every if client.get("/v1/snapshots/" + s).status == 200] == sees
    assert ids(ann.get("/v1/snapshots?user=ann&session=" + w.gone)) == [w.of_gone]
    assert ids(one.get("/v1/snapshots?session=" + w.bob)) == [w.of_bob]
    assert ids(one.get("/v1/snapshots?user=ann")) == []
    for client in (bob, one):
        for name in (w.ann, w.gone, "key:a", "ses_unknown"):
            answer = client.get("/v1/snapshots?session=" + name)
            assert answer.status == 404 and answer.code == "NOT_FOUND", answer
    assert bob.get("/v1/snapshots?user=ann").status == 403
    assert w.owner.delete("/v1/sessions/" + w.ann).status == 200
    assert ids(ann.get("/v1/snapshots")) == [w.of_ann, w.of_gone]
    w.ann = w.owner.enter(key="a", user="ann")


def test_listing_changes_nothing(several):
    c = several.owner
    assert c.post(f"/v1/sessions/{several.ann}/hibernate").status == 200
    before = c.get("/v1/sessions").json, c.get("/v1/events?limit=1000").json
    assert c.get("/v1/snapshots").json == c.get("/v1/snapshots?limit=1000").json
    assert (c.get("/v1/sessions").json, c.get("/v1/events?limit=1000").json) == before


# ---- forks and rollback -------------------------------------------------------------------------


def test_fork(client, sid, at):
    client.patch(at, {"idle_timeout_ms": 77000})
    client.run(sid, "echo mine > f")
    answer = client.post(at + "/fork", {"count": 3})
    assert answer.status == 201, answer
    forks = answer.json["sessions"]
    assert len({s["id"] for s in forks} | {sid}) == 4
    for i, s in enumerate(forks):
        assert s["key"] is None and s["idle_timeout_ms"] == 77000
        client.run(s["id"], f"echo {i} >> f")
    for i, s in enumerate(forks):
        assert client.run(s["id"], "cat f") == f"mine\n{i}\n"
    assert client.run(sid, "cat f") == "mine\n"
    clear(client, *[s["id"] for s in forks])


def test_fork_with_a_key_and_from_a_snapshot(client, sid, at):
    client.run(sid, "echo old > f")
    snap = snapshot(client, at)["id"]
    client.run(sid, "echo new > f")
    key = "fork/1"
    one = client.post(at + "/fork", {"key": key, "snapshot": snap}).json["sessions"][0]
    assert one["key"] == key and client.enter(key=key) == one["id"]
    assert client.run("key:" + quote(key), "cat f") == "old\n"
    two = client.post(at + "/fork").json["sessions"]
    assert client.run(two[0]["id"], "cat f") == "new\n"
    before = client.get("/v1/sessions").json
    answer = client.post(at + "/fork", {"key": key})
    assert answer.status == 409, answer
    assert client.post(at + "/fork", {"snapshot": "snp_unknown"}).status == 404
    assert client.post("/v1/sessions/ses_unknown/fork").status == 404
    assert client.get("/v1/sessions").json["sessions"] == before["sessions"]
    clear(client, one["id"], two[0]["id"])


def test_fork_of_a_session_without_files(client):
    made = client.enter(asleep=True)
    answer = client.post(f"/v1/sessions/{made}/fork")
    assert answer.status in (201, 409), answer
    clear(client, made, *[s["id"] for s in answer.json.get("sessions", [])])


def test_rollback(client, sid, at):
    client.run(sid, "echo one > f; mkdir d; echo x > d/x")
    one = snapshot(client, at)["id"]
    client.run(sid, "echo two > f; rm -r d; echo more > g")
    two = snapshot(client, at)["id"]
    answer = client.post(at + "/rollback", {"snapshot": one})
    assert answer.status == 200, answer
    s = answer.json["session"]
    assert s["state"] == "active" and s["generation"] > 2
    assert client.run(sid, "cat f d/x; test ! -e g") == "one\nx\n"
    client.post(at + "/hibernate")
    assert client.post(at + "/rollback", {"snapshot": two}).status == 200
    assert client.run(sid, "cat f g; test ! -e d") == "two\nmore\n"
    assert client.post(at + "/rollback", {}).status == 400
    assert client.post(at + "/rollback", {"snapshot": "snp_unknown"}).status == 404
    assert client.run(sid, "cat f") == "two\n"


# ---- archives -----------------------------------------------------------------------------------


def test_export_and_import_preserve_the_files(client, sid, at):
    bash(client, sid, FILL)
    want = bash(client, sid, LOOK)
    snap = snapshot(client, at)["id"]
    out = client.get(f"/v1/snapshots/{snap}/archive")
    assert out.status == 200 and out.headers["Content-Type"] == "application/zstd"
    assert out.headers["Content-Disposition"] == f'attachment; filename="{snap}.tar.zst"'
    assert out.data[:4] == b"\x28\xb5\x2f\xfd" and len(out.data) < 5 << 20
    back = client.post("/v1/snapshots?name=came%20back", out.data, headers=ZSTD)
    assert back.status == 201, back
    s = back.json["snapshot"]
    assert (s["name"], s["session"]) == ("came back", None)
    made = client.enter(snapshot=s["id"])
    assert bash(client, made, LOOK) == want
    # exporting it again gives the same files
    again = client.get(f"/v1/snapshots/{s['id']}/archive")
    third = client.post("/v1/snapshots", again.data, headers=ZSTD).json["snapshot"]["id"]
    other = client.enter(snapshot=third)
    assert bash(client, other, LOOK) == want
    clear(client, made, other)
    for x in (s["id"], third):
        assert client.delete("/v1/snapshots/" + x).status == 204


def test_an_invalid_archive_leaves_nothing(lodged, client, sid, at):
    snap = snapshot(client, at)["id"]
    good = client.get(f"/v1/snapshots/{snap}/archive").data
    sessions = client.get("/v1/sessions").json
    for name, data in (("empty", b""), ("text", b"nonsense" * 1000), ("cut", good[:len(good) // 2]),
                       ("spoilt", good[:40] + bytes([good[40] ^ 255]) + good[41:]),
                       ("zeros", bytes(10000))):
        answer = client.post("/v1/snapshots", data, headers=ZSTD)
        assert answer.status == 400, (name, answer)
    answer = client.post("/v1/snapshots?template=no-such", good, headers=ZSTD)
    assert answer.status in (400, 404), answer
    assert client.get("/v1/sessions").json == sessions
    assert client.get("/health").json["last_error"] is None


def test_the_session_names_the_newest_snapshot_that_remains(client):
    at = "/v1/sessions/" + client.enter()
    made = [client.post(at + "/snapshots", {}).json["snapshot"]["id"] for _ in range(3)]

    def named():
        session = client.get(at).json["session"]
        status = client.get("/api/sandbox/status?sessionId=" + session["id"]).json
        assert status["hasSnapshot"] == (session["snapshot"] is not None), status
        return session["snapshot"]
    assert named() == made[2]
    for gone, newest in ((2, made[1]), (0, made[1]), (1, None)):
        assert client.delete("/v1/snapshots/" + made[gone]).status == 204
        assert named() == newest
    assert client.delete(at).status == 200
