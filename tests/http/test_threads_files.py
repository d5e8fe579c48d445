# SPDX-License-Identifier: Apache-2.0
"""Files of threads: upload, download and list, with unusual names and over the limits."""
import base64
import concurrent.futures
import contextlib
import http.client
import os
import re
import socket
from urllib.parse import unquote

import pytest

from client import Answer, Lodged
from threads import create, download, execute, form, says, send, upload

ODD = ["with space", "with\nnewline", "-dash", "é.txt", "quote\".txt", "semi;colon", "tab\there", "%41.txt",
       "d/e/f.txt", "star*", "'single'", ".hidden"]


@pytest.fixture(scope="module")
def small():
    """A lodged with small limits."""
    d = Lodged(threads_file_size="1M", threads_disk="12M", threads_files=5)
    try:
        yield d.client()
    finally:
        d.close()


def listed(client, session):
    answer = client.get("/list_files?session_id=" + session)
    assert answer.status == 200, answer
    return answer.json


# ---- 4: POST /upload_file ---------------------------------------------------------------------


def test_row_4_upload_file(client):
    session = create(client)
    data = os.urandom(300000) + b"\r\n--frontie\r\n"
    answer = upload(client, session, "a.bin", data)
    assert answer.status == 200 and answer.json == {
        "status": "uploaded", "filename": "a.bin", "path": "/workspace/a.bin", "size_bytes": len(data)}
    assert download(client, session, "a.bin").data == data
    assert says(client, session, "stat -c '%u %a' a.bin; ls -A") == "1000 644\na.bin\n"


def test_row_4_fields_in_any_order(client):
    session = create(client)
    for n, parts in enumerate(([("file", "x", b"1"), ("session_id", session)],
                               [("session_id", session), ("file", "x", b"1"), ("filename", "n")],
                               [("filename", "n"), ("session_id", session), ("file", "x", b"1")],
                               [("other", "z"), ("session_id", session), ("file", "x", b"1"), ("more", "")])):
        answer = send(client, form(*parts))
        assert answer.status == 200, answer
        assert answer.json["filename"] == ("n" if n in (1, 2) else "x")


def test_row_4_replaces_files_and_creates_directories(client):
    session = create(client)
    assert upload(client, session, "d/e/f", b"one").json["path"] == "/workspace/d/e/f"
    assert upload(client, session, "d/e/f", b"").json["size_bytes"] == 0
    assert says(client, session, "find . -type f -size 0") == "./d/e/f\n"
    assert upload(client, session, "d", b"x").json == {"detail": "Invalid filename"}  # it is a directory


BAD_NAMES = ["../up", "..", "a/../../etc/passwd", "/etc/passwd", ".", "a/..", "..\\up", "C:\\x", "a//b", "a/", "",
             "./a", "x" * 256, "/".join(["d" * 200] * 20)]


@pytest.fixture(scope="module")
def session(lodged):
    return create(lodged.client())


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda n: repr(n)[:30])
def test_row_4_escaping_names_are_refused(client, session, name):
    answer = send(client, form(("session_id", session), ("file", name.replace("\\", "\\\\"), b"x")))
    assert answer.status == 400 and answer.json == {"detail": "Invalid filename"}, answer
    if name:
        answer = send(client, form(("session_id", session), ("filename", name), ("file", "good", b"x")))
        assert answer.status == 400 and answer.json == {"detail": "Invalid filename"}, answer
    answer = download(client, session, name)
    assert answer.status == 400 and answer.json == {"detail": "Invalid filename"}, answer
    assert says(client, session, "ls -A; ls -A /tmp | grep -v '^\\.' || true") == ""


def test_row_4_a_nul_is_refused(client):
    session = create(client)
    assert send(client, form(("session_id", session), ("filename", b"a\0b"), ("file", "x", b""))).status == 422
    assert client.post("/download_file", {"session_id": session, "filename": "a\0b"}).status == 422


def test_row_4_links_of_the_guest_stay_inside(client):
    session = create(client)
    says(client, session, "ln -s /etc etc; ln -s /etc/passwd p; mkfifo q")
    assert upload(client, session, "etc/x", b"x").status in (400, 403)
    assert upload(client, session, "q", b"x").json == {"detail": "Invalid filename"}
    assert download(client, session, "q").json == {"detail": "Invalid filename"}
    assert b"user:x:1000" in download(client, session, "p").data  # the sandbox's own file, which its user may read


@pytest.mark.parametrize("parts,says_", [
    ([("file", "x", b"1")], "session_id"), ([("session_id", "ses_x")], "file"), ([], "session_id"),
    ([("session_id", "s"), ("session_id", "s"), ("file", "x", b"")], "session_id"),
    ([("session_id", "s"), ("file", "x", b""), ("file", "y", b"")], "file"),
    ([("session_id", "s" * 300), ("file", "x", b"")], "session_id"),
    ([("other", "x" * 70000), ("session_id", "s"), ("file", "x", b"")], "fields")], ids=str)
def test_row_4_bad_forms(client, parts, says_):
    answer = send(client, form(*parts))
    assert answer.status == 422 and says_ in answer.json["detail"], answer


def test_row_4_malformed_forms(client):
    for body, kind, status in ((b"", "multipart/form-data; boundary=b", 422), (b"{}", "application/json", 415),
                               (b"--b--", "multipart/form-data", 422), (b"junk", "multipart/form-data; boundary=b", 422),
                               (form(("session_id", "x"))[:-9], "multipart/form-data; boundary=frontier", 422)):
        answer = client.call("POST", "/upload_file", body, {"Content-Type": kind})
        assert answer.status == status and "detail" in answer.json, answer


def test_row_4_unknown_session(client):
    answer = upload(client, "ses_unknown", "x", b"x")
    assert answer.status == 404 and answer.json == {"detail": "Invalid or expired session"}


def chunked(client, body):
    connection = http.client.HTTPConnection(client.host, client.port, timeout=180)
    with contextlib.closing(connection):
        pieces = (body[i:i + 65536] for i in range(0, len(body), 65536))
        connection.request("POST", "/upload_file", pieces,
                           {"Authorization": f"Bearer {client.key}",
                            "Content-Type": "multipart/form-data; boundary=frontier"}, encode_chunked=True)
        response = connection.getresponse()
        return Answer(response, response.read())


def test_row_4_too_large_a_file(small):
    session = create(small)
    for size in ((1 << 20) + 1, 3 << 20, 40 << 20):
        body = form(("session_id", session), ("file", "big", bytes(size)))
        for answer in (send(small, body), chunked(small, body)):
            assert answer.status == 413, answer
            detail = answer.json["detail"]
            assert set(detail) == {"error", "max_size_mb", "uploaded_size_mb"} and detail["max_size_mb"] == 1
            assert detail["uploaded_size_mb"] >= size / (1 << 20) - 0.01
    assert listed(small, session)["files"] == []
    assert upload(small, session, "just", bytes(1 << 20)).status == 200


@pytest.mark.parametrize("more", [("Content-Length: 1000000000000",), ("Content-Length: 300000000",),
                                  ("Content-Length: 9000000", "Expect: 100-continue")])
def test_row_4_too_large_a_file_is_refused_before_the_body(small, more):
    """By its declared length, or with "Expect: 100-continue"."""
    with socket.create_connection((small.host, small.port), timeout=180) as s:
        lines = ("POST /upload_file HTTP/1.1", "Host: localhost", f"Authorization: Bearer {small.key}",
                 "Content-Type: multipart/form-data; boundary=frontier", *more, "", "")
        s.sendall("\r\n".join(lines).encode())
        got = b"".join(iter(lambda: s.recv(65536), b""))
    assert got.startswith(b"HTTP/1.1 413 ") and b'"uploaded_size_mb"' in got, got


def test_row_4_too_many_files(small):
    session = create(small)
    says(small, session, "touch a b c d")  # files created by commands count too
    assert upload(small, session, "e", b"5").status == 200
    answer = upload(small, session, "f", b"6")
    assert answer.status == 507, answer
    detail = answer.json["detail"]
    assert set(detail) == {"error", "max_files", "current_files", "applies_to"}
    assert detail["max_files"] == 5 and detail["current_files"] == 5 and detail["applies_to"] == "uploads"
    assert upload(small, session, "e", b"again").status == 200  # replaces an existing file
    says(small, session, "rm a")
    assert upload(small, session, "f", b"6").status == 200


def test_row_4_too_many_files_at_once(small):
    session = create(small)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda n: upload(small, session, f"f{n}", b"x"), range(10)))
    assert sorted(a.status for a in answers) == [200] * 5 + [507] * 5
    assert listed(small, session)["total_files"] == 5


def test_row_4_too_full_a_workspace(small):
    session = create(small)
    says(small, session, "for i in 1 2 3; do head -c 1000000 /dev/urandom > f$i; done; mkdir ~/x;"
                         "for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/urandom > ~/x/$i; done; sync ~/x/*; true")
    for _ in range(4):
        answer = upload(small, session, "more", os.urandom(1 << 20))
        if answer.status == 507:
            break
        says(small, session, "cat more >> ~/all; rm more; true")
    assert answer.status == 507, answer
    detail = answer.json["detail"]
    assert set(detail) == {"error", "max_workspace_mb", "current_workspace_mb", "file_size_mb"}
    assert detail["max_workspace_mb"] == 12 and detail["file_size_mb"] == 1
    assert listed(small, session)["total_files"] == 3


def test_limits_apply_to_commands_too(small):
    session = create(small)
    r = execute(small, session, "head -c 2000000 /dev/zero > big; stat -c %s big")
    assert r["stdout"] == f"{1 << 20}\n", r
    r = execute(small, session, "for i in $(seq 40); do head -c 1000000 /dev/urandom > f$i || exit 9; sync f$i; done")
    assert r["exit_code"] == 9, r
    r = execute(small, session, "perl -e 'for (1..200) { my $p = fork; defined $p or kill(9, @k), die qq(fork: $!); "
                                "$p or sleep(600), exit; push @k, $p }'")
    assert "fork" in r["stderr"], r
    assert says(small, session, "rm -f f* big; echo usable") == "usable\n"


# ---- 5: POST /download_file -------------------------------------------------------------------


def test_row_5_download_file(client):
    session = create(client)
    says(client, session, "printf 'a\\0b' > x.bin")
    answer = download(client, session, "x.bin")
    assert answer.status == 200 and answer.data == b"a\0b"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == "attachment; filename=\"x.bin\"; filename*=UTF-8''x.bin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_row_5_errors(client):
    session = create(client)
    says(client, session, "mkdir d")
    answer = download(client, session, "nothing")
    assert answer.status == 404 and answer.json == {"detail": "File not found"}
    assert download(client, session, "d").json == {"detail": "Invalid filename"}
    answer = download(client, "ses_unknown", "x")
    assert answer.status == 404 and answer.json == {"detail": "Invalid or expired session"}
    for body in ({"session_id": session}, {"filename": "x"}, {"session_id": session, "filename": 7},
                 {"session_id": session, "filename_base64": "???"},
                 {"session_id": session, "filename": "a", "filename_base64": "YQ=="}):
        assert client.post("/download_file", body).status == 422


def test_row_5_odd_names_are_quoted(client):
    session = create(client)
    for name in ODD:
        assert send(client, form(("session_id", session), ("filename", name), ("file", "x", name))).status == 200
        answer = download(client, session, name)
        assert answer.status == 200 and answer.data == name.encode(), answer
        header = answer.headers["Content-Disposition"]
        plain, exact = re.fullmatch(r'attachment; filename="([^"\\]*)"; filename\*=UTF-8\'\'(\S+)', header).groups()
        assert unquote(exact) == name.rsplit("/", 1)[-1] and plain.isascii()


# ---- 6: GET /list_files -----------------------------------------------------------------------


def test_row_6_list_files(client):
    session = create(client)
    says(client, session, "echo 1 > old; mkdir d; echo 22 > d/new; chmod 600 d/new; ln -s old link; mkfifo q;"
                          "touch -d '2020-01-01 00:00:00 UTC' old; touch .lodge-0123456789abcdef")
    got = listed(client, session)
    assert set(got) == {"session_id", "workspace_dir", "files", "total_files", "total_size_bytes"}
    assert got["session_id"] == session and got["workspace_dir"] == "/workspace"
    assert [f["name"] for f in got["files"]] == ["d/new", "old"]
    assert got["files"][1] == {"name": "old", "size_bytes": 2, "modified": "2020-01-01T00:00:00.000Z",
                               "permissions": "0644"}
    assert got["files"][0]["permissions"] == "0600"
    assert got["total_files"] == 2 and got["total_size_bytes"] == 5
    assert client.get("/list_files").status == 422
    answer = client.get("/list_files?session_id=ses_nobodys")
    assert answer.status == 404 and answer.json == {"detail": "Invalid or expired session"}


def test_row_6_newest_first(client):
    session = create(client)
    says(client, session, "for i in 3 1 2; do touch -d \"2020-01-0$i\" f$i; done; touch -d 2020-01-02 e")
    assert [f["name"] for f in listed(client, session)["files"]] == ["f3", "e", "f2", "f1"]


def test_row_6_odd_names(client):
    session = create(client)
    for name in ODD:
        assert send(client, form(("session_id", session), ("filename", name), ("file", "x", b"x"))).status == 200
    got = listed(client, session)
    assert sorted(f["name"] for f in got["files"]) == sorted(ODD) and got["total_files"] == len(ODD)
    assert not any("name_base64" in f for f in got["files"])


def test_row_6_names_that_are_not_utf8(client):
    session = create(client)
    says(client, session, "printf x > $'a\\377b'")
    file, = listed(client, session)["files"]
    assert file["name"] == "a\ufffdb" and base64.b64decode(file["name_base64"]) == b"a\xffb"
    answer = client.post("/download_file", {"session_id": session, "filename_base64": file["name_base64"]})
    assert answer.status == 200 and answer.data == b"x"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="a_b"'
