# SPDX-License-Identifier: Apache-2.0
"""Files of a session over /v1, and archives, snapshots and forks of all of them."""
import concurrent.futures
import contextlib
import http.client
import io
import json
import os
import socket
import tarfile
import tempfile

import pytest

from client import Lodged, wait_for
from files import run


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="files")


@pytest.fixture
def files(t):
    return t


def put(client, url, data=b"", status=(200, 201), **headers):
    answer = client.call("PUT", url, data, {k.replace("_", "-"): v for k, v in headers.items()})
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    return answer


def names(client, url):
    answer = client.get(url)
    assert answer.status == 200, answer
    return [e["path"] for e in answer.json["entries"]]


# ---- bytes ------------------------------------------------------------------------------------


def test_bytes_are_stored_exactly(client, at, files):
    data = bytes(range(256)) * 5000
    answer = put(client, files + "/x", data, 201)
    assert answer.json["entry"]["size"] == len(data)
    got = client.get(files + "/x")
    assert got.data == data and got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["ETag"] == answer.headers["ETag"]
    head = client.call("HEAD", files + "/x")
    assert head.status == 200 and head.headers["Content-Length"] == str(len(data))
    assert put(client, files + "/x", b"new", 200).json["entry"]["size"] == 3
    assert client.get(files + "/x").data == b"new"


def test_an_empty_file(client, files):
    put(client, files + "/x", b"", 201)
    answer = client.get(files + "/x")
    assert answer.status == 200 and answer.data == b""
    assert client.get(files + "/x", headers={"Range": "bytes=0-"}).status == 416


def test_relative_and_absolute_paths(client, at, files):
    put(client, files + "/x", b"1")
    assert client.get(at + "/files//home/user/t/x").data == b"1"
    assert client.get(at + "/files/%2Fhome/user/t/x").data == b"1"
    assert client.get(files + "%2Fx").data == b"1"
    assert client.get(at + "/files//etc/passwd").data.startswith(b"root:")
    assert client.get(at + "/files/../../../../etc/passwd").data.startswith(b"root:")


def test_files_of_the_host_are_not_reachable(client, lodged, at, files):
    assert client.get(at + "/files/" + lodged.home).status == 404
    run(client, at, f"ln -s {lodged.home}/lodge.db t/link")
    assert client.get(files + "/link").status == 404
    assert client.get(at + "/files//dev/null").status == 400
    run(client, at, "mkfifo t/fifo")
    assert client.get(files + "/fifo").status == 400
    assert put(client, at + "/files//etc/x", b"x", 403).code == "DENIED"


@pytest.mark.parametrize("text,status,data,shown", [
    ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
    ("bytes=7-", 206, b"789", "bytes 7-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"),
    ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
    ("bytes=10-", 416, None, "bytes */10"),
    ("bytes=-0", 416, None, "bytes */10"),
    ("bytes=0-1,4-5", 200, b"0123456789", None),
    ("bytes=4-2", 200, b"0123456789", None),
    ("bytes=-", 200, b"0123456789", None),
    ("lines=1-2", 200, b"0123456789", None),
])
def test_ranges(client, files, text, status, data, shown):
    put(client, files + "/x", b"0123456789")
    answer = client.get(files + "/x", headers={"Range": text})
    assert answer.status == status and answer.headers["Content-Range"] == shown
    assert data is None or answer.data == data


def test_conditional_requests(client, files):
    was = put(client, files + "/x", b"one").headers["ETag"]
    assert client.get(files + "/x", headers={"If-None-Match": was}).status == 304
    assert client.get(files + "/x", headers={"If-None-Match": '"a", W/' + was}).status == 304
    assert client.get(files + "/x", headers={"If-Match": '"a"'}).status == 412
    part = {"Range": "bytes=0-0", "If-Range": was}
    assert client.get(files + "/x", headers=part).status == 206
    now = put(client, files + "/x", b"two", If_Match=was).headers["ETag"]
    assert now != was
    assert client.get(files + "/x", headers=part).data == b"two"
    assert put(client, files + "/x", b"three", 412, If_Match=was).code == "PRECONDITION_FAILED"
    put(client, files + "/x", b"three", 412, If_None_Match="*")
    put(client, files + "/y", b"three", 412, If_Match="*")
    put(client, files + "/y", b"three", 201, If_None_Match="*")
    assert client.delete(files + "/x", headers={"If-Match": was}).status == 412
    assert client.delete(files + "/x", headers={"If-Match": now}).status == 204


def test_options_of_put(client, at, files):
    assert put(client, files + "/a/b/c", b"1", 404).code == "NOT_FOUND"
    put(client, files + "/a/b/c?mkdir=1&mode=750", b"1", 201)
    assert put(client, files + "/a/b/c?append=1", b"2", 200).json["entry"]["size"] == 2
    assert put(client, files + "/a/b/c", b"3", 200).json["entry"]["mode"] == "0750"
    put(client, files + "/a/b/d?append=1", b"new", 201)
    put(client, files + "/a/b/c?mode=9", b"", 400)
    put(client, files + "/a/b/c?mode=4755", b"", 400)
    put(client, files + "/a/b", b"", 400)
    put(client, at + "/files/", b"", 400)


def test_the_file_size_limit(client):
    at = "/v1/sessions/" + client.enter(key="small", limits={"file_bytes": 65536})
    put(client, at + "/files/x", b"x" * 65536, 201)
    assert put(client, at + "/files/x", b"y" * 65537, 413).code == "TOO_LARGE"
    put(client, at + "/files/x?append=1", b"y", 413)
    assert client.get(at + "/files/x").data == b"x" * 65536


def test_an_aborted_upload_leaves_nothing(client, at, files):
    put(client, files + "/x", b"whole")
    with socket.create_connection((client.host, client.port)) as s:
        s.sendall(f"PUT {files}/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
                  f"Authorization: Bearer {client.key}\r\n\r\nhalf".encode())
        assert wait_for(lambda: len(names(client, files + "/?list")) == 2)
    assert wait_for(lambda: names(client, files + "/?list") == ["t/x"])
    assert client.get(files + "/x").data == b"whole"


def test_a_shrinking_file_aborts_the_download(client, at, files):
    """The connection is closed at once, so the client need not wait for a timeout."""
    run(client, at, "truncate -s 200M t/x")
    connection, response = client.open("GET", files + "/x")
    assert response.read(1000) == bytes(1000)
    run(client, at, "truncate -s 0 t/x")
    connection.sock.settimeout(180)
    with contextlib.closing(connection), pytest.raises((http.client.IncompleteRead, OSError)) as how:
        left = 200 * 1024 * 1024 - 1000
        while left > 0:
            piece = response.read(1 << 20)
            if not piece:
                raise http.client.IncompleteRead(b"")
            left -= len(piece)
    assert not isinstance(how.value, TimeoutError)
    assert client.get(files + "/x").data == b""


# ---- names ------------------------------------------------------------------------------------


def test_lists(client, at, files):
    for name in ("b/c/d", "b/e.txt", "a.txt"):
        put(client, f"{files}/{name}?mkdir=1", b"x")
    run(client, at, "ln -s a.txt t/link")
    assert names(client, files + "?list") == ["t/a.txt", "t/b", "t/link"]
    assert names(client, files + "?list&depth=9") == [
        "t/a.txt", "t/b", "t/b/c", "t/b/c/d", "t/b/e.txt", "t/link"]
    assert names(client, files + "?list&depth=9&glob=*.txt") == ["t/a.txt", "t/b/e.txt"]
    assert names(client, files + "?list&depth=9&glob=b/*.t?t") == ["t/b/e.txt"]
    # a pattern with directories needs no depth, and a single star stays within one
    for glob, found in (("**", ["a.txt", "b", "b/c", "b/c/d", "b/e.txt", "link"]), ("**/*.txt", ["a.txt", "b/e.txt"]),
                        ("b/**", ["b/c", "b/c/d", "b/e.txt"]), ("**/d", ["b/c/d"]), ("b/**/d", ["b/c/d"]),
                        ("b/*", ["b/c", "b/e.txt"]), ("*/*/d", ["b/c/d"]), ("*.txt", ["a.txt"]), ("b*", ["b"]),
                        ("b/*d", []), ("**/nothing", [])):
        assert names(client, f"{files}?list&glob={glob}") == ["t/" + name for name in found], glob
    assert names(client, files + "?list&depth=1&glob=**/*.txt") == ["t/a.txt"]
    answer = client.get(files + "?list&glob=/b/*")
    assert answer.status == 400 and answer.message.startswith("glob: must not begin with a slash"), answer
    entries = {e["name"]: e for e in client.get(files + "?list").json["entries"]}
    assert {n: e["type"] for n, e in entries.items()} == {
        "a.txt": "file", "b": "directory", "link": "symlink"}
    assert entries["link"]["target"] == "a.txt" and "target" not in entries["b"]
    assert set(entries["b"]) == {"name", "path", "type", "size", "mode", "uid", "gid", "mtime_ms"}
    assert client.get(files + "/nothing?list").status == 404
    assert client.get(files + "?list&depth=0").status == 400


def test_directories_are_listed_in_pages(client, at, files):
    run(client, at, "cd t; touch $(seq -w 0 24)")
    seen, after = [], 0
    while after is not None:
        page = client.get(f"{files}?list&limit=10&after={after}").json
        assert len(page["entries"]) <= 10
        seen += [e["name"] for e in page["entries"]]
        after = page["next"]
    assert seen == [f"{i:02}" for i in range(25)]


def test_rename_mkdir_and_delete(client, at, files):
    put(client, files + "/x", b"1")
    put(client, files + "/y", b"2")
    assert client.post(files + "/x?rename=t/y&replace=0").status == 409
    assert client.post(files + "/x?rename=t/y").json["entry"]["path"] == "t/y"
    assert client.get(files + "/y").data == b"1" and client.get(files + "/x").status == 404
    assert client.post(files + "/d/e?mkdir").status == 404
    assert client.post(files + "/d/e?mkdir&parents=1").json["entry"]["type"] == "directory"
    assert client.post(files + "/d?mkdir").status == 409
    run(client, at, "ln -s y t/link")
    assert client.post(files + "/link?stat").json["entry"]["target"] == "y"
    assert client.post(files + "/link?stat&follow=1").json["entry"]["type"] == "file"
    for query in ("", "?mkdir&stat", "?rename="):
        assert client.post(files + "/x" + query).status == 400
    assert client.delete(files + "/d").status == 409
    assert client.delete(files + "/d?recursive=1").status == 204
    assert client.delete(files + "/d?recursive=1").status == 404
    assert client.delete(at + "/files/?recursive=1").status == 400


# ---- archives ---------------------------------------------------------------------------------


def test_an_archive_out_and_in(client, at, files):
    put(client, files + "/a/b?mkdir=1&mode=700", b"b" * 100000)
    run(client, at, "ln -s b t/a/link")
    answer = client.get(at + "/archive?path=t/a")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.data)) as tar:
        assert {m.name: m.size for m in tar} == {"b": 100000, "link": 0}
    put(client, at + "/archive?path=t/n/m", answer.data, 204)
    assert names(client, files + "/n/m?list") == ["t/n/m/b", "t/n/m/link"]
    assert client.post(files + "/n/m/b?stat").json["entry"]["mode"] == "0700"
    put(client, at + "/archive?path=t", answer.data[:5000], 400)
    put(client, at + "/archive?path=t", b"nonsense" * 1000, 400)
    assert client.get(at + "/archive?path=t/none").status == 404
    assert client.get(at + "/archive?format=tar.gz").status == 400


def test_an_abandoned_archive_download_does_not_block(client, at, files):
    run(client, at, "truncate -s 300M t/x")
    connection, response = client.open("GET", at + "/archive?path=t")
    response.read(1000)
    response.close()
    connection.close()
    assert client.get(files + "?list").status == 200


# ---- watching ---------------------------------------------------------------------------------


def test_watch(client, at, files):
    connection, response = client.open("GET", at + "/watch?path=t&recursive=1")
    assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream"

    def change():
        while not (line := response.readline()).startswith(b"data: "):
            assert line
        e = json.loads(line[6:])
        return e["kind"], e["path"]

    assert change() == ("ready", "t")
    put(client, files + "/x", b"1")
    assert change() == ("create", "t/x")
    client.delete(files + "/x")
    assert change() == ("remove", "t/x")
    connection.close()
    assert client.get(at + "/watch?path=t/none").status == 404


# ---- hibernated sessions ----------------------------------------------------------------------


def test_file_requests_resume_a_hibernated_session(client, at, files):
    put(client, files + "/x", b"kept")
    assert client.post(at + "/hibernate").status == 200
    assert client.get(files + "/x?resume=0").status == 409
    answer = client.get(files + "/x")
    assert answer.data == b"kept" and answer.headers["Lodge-Outcome"] == "resumed"
    assert client.get(files + "/x?resume=0").headers["Lodge-Outcome"] is None
    assert client.get("/v1/sessions/key:nosuch/files/x").status == 404


# ---- snapshots --------------------------------------------------------------------------------


def snapshot(client, at, **body):
    answer = client.post(at + "/snapshots", body)
    assert answer.status == 201, answer
    return answer.json["snapshot"]["id"]


def test_rollback_to_a_snapshot(client, at, files):
    put(client, files + "/x", b"old")
    snap = snapshot(client, at)
    put(client, files + "/x", b"new")
    assert client.post(at + "/rollback", {}).status == 400
    assert client.post(at + "/rollback", {"snapshot": "snp_none"}).status == 404
    answer = client.post(at + "/rollback", {"snapshot": snap})
    assert answer.status == 200 and answer.json["session"]["state"] == "active"
    assert client.get(files + "/x").data == b"old"
    assert snap in [s["id"] for s in client.get(at + "/snapshots").json["snapshots"]]
    assert client.get("/v1/snapshots/" + snap).json["snapshot"]["id"] == snap
    assert client.delete(f"{at}/snapshots/{snap}").status == 204
    assert client.get("/v1/snapshots/" + snap).status == 404


def test_forks(client, at, files):
    put(client, files + "/x", b"forked")
    snap = snapshot(client, at, name="to-fork", live=False)
    answer = client.post(at + "/fork", {"count": 2, "snapshot": snap})
    assert answer.status == 201 and len(answer.json["sessions"]) == 2
    for s in answer.json["sessions"]:
        assert client.get(f"/v1/sessions/{s['id']}/files/t/x").data == b"forked"
    assert client.post(at + "/fork", {"key": "the-fork"}).status == 201
    assert client.get("/v1/sessions/key:the-fork/files/t/x").data == b"forked"
    answer = client.post(at + "/fork", {"key": "the-fork"})
    assert answer.status == 409 and answer.message == "key the-fork: already exists", answer
    assert client.post(at + "/fork", {"key": "k", "count": 2}).status == 400
    assert client.post(at + "/fork", {"count": 0}).status == 400
    other = client.enter(key="the-fork")
    assert client.delete(f"/v1/sessions/{other}/snapshots/{snap}").status == 404
    assert client.delete("/v1/snapshots/" + snap).status == 204


def test_export_and_import_of_a_snapshot(client, at, files):
    put(client, files + "/x", b"carried")
    snap = snapshot(client, at)
    out = client.get(f"/v1/snapshots/{snap}/archive")
    assert out.status == 200 and out.data[:4] == b"\x28\xb5\x2f\xfd"
    answer = client.post("/v1/snapshots?name=carried", out.data)
    assert answer.status == 201 and answer.json["snapshot"]["session"] is None
    other = client.enter(key="carried", snapshot=answer.json["snapshot"]["id"])
    assert client.get(f"/v1/sessions/{other}/files/t/x").data == b"carried"
    assert client.post("/v1/snapshots", out.data[:-20]).status == 400
    assert client.post("/v1/snapshots", b"nonsense").status == 400
    assert client.post("/v1/snapshots?template=none", out.data).status == 404
    assert client.get("/v1/snapshots/snp_none/archive").status == 404


def test_a_change_that_a_process_undid_is_a_conflict():
    """The response describes the file. If a process removes it before that, the caller hears that the change was made."""
    with contextlib.ExitStack() as stack:
        hold = stack.enter_context(tempfile.NamedTemporaryFile(prefix="lodge-hold-")).name
        lodged = stack.enter_context(contextlib.closing(Lodged(hold_at=f"files:changed={hold}")))
        client = lodged.client()
        sid = client.enter()
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        for call, query, body in (("PUT", "", b"data"), ("POST", "?mkdir", None)):
            with open(hold, "ab"):
                pass
            answer = pool.submit(client.call, call, f"/v1/sessions/{sid}/files/gone{query}", body)
            assert wait_for(lambda: client.run(sid, "rm -r gone && echo removed || :") == "removed\n")
            os.unlink(hold)
            answer = answer.result()
            assert (answer.status, answer.code) == (409, "CONFLICT"), answer
            assert answer.message == "gone: done, but the sandbox has removed it since"
        with open(hold, "ab"):
            pass


def test_an_uploaded_program_can_be_executed_at_once(client, at, files):
    """No descriptor is open for writing when the response arrives."""
    for i in range(40):
        put(client, f"{files}/script{i}?mode=0755", b"#!/bin/sh\necho runs\n")
        assert client.post(at + "/exec", {"argv": [f"./t/script{i}"]}).json["stdout"] == "runs\n"
