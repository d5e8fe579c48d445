# SPDX-License-Identifier: Apache-2.0
"""Hostile archives, unpacked into a session or imported as a snapshot: everything is created below the target
directory, or not at all."""
import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile

import pytest

from client import children, name_of, wait_for
from files import run
from machine import memory_of

SLOW = bool(os.environ.get("LODGE_SLOW"))
SECRET = b"what only the host may read\n"


@pytest.fixture(scope="module")
def host(lodged):
    """A file of the host next to the data directory; no test may read or change it."""
    path = lodged.home + "-canary"
    with open(path, "wb") as f:
        f.write(SECRET)
    os.chmod(path, 0o666)
    st = os.lstat(path)
    before = (st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_nlink)
    yield path
    st = os.lstat(path)
    assert before == (st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_nlink)
    os.unlink(path)


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="archives")


# ---- archives made by hand --------------------------------------------------------------------


def field(value, size):
    return value if isinstance(value, bytes) else b"%0*o\0" % (size - 1, value)


def header(name, size=0, type=b"0", link=b"", mode=None, uid=1000, gid=1000, mtime=0, magic=b"ustar\x0000", prefix=b"",
           sum=None):
    h = bytearray(512)
    mode = (0o755 if type == b"5" else 0o644) if mode is None else mode
    h[0:len(name)] = name
    h[100:108], h[108:116], h[116:124] = (field(v, 8).ljust(8, b"\0")[:8] for v in (mode, uid, gid))
    h[124:136], h[136:148] = (field(v, 12).ljust(12, b"\0")[:12] for v in (size, mtime))
    h[148:156] = b" " * 8
    h[156:157] = type
    h[157:157 + len(link)] = link
    h[257:265] = magic
    h[345:345 + len(prefix)] = prefix
    h[148:156] = b"%06o\0 " % (__builtins__["sum"](h) if sum is None else sum)
    return bytes(h)


def padded(data):
    return data + bytes(-len(data) % 512)


def file(name, data=b"", **how):
    return header(name, len(data), **how) + padded(data)


def record(key, value):
    n = len(key) + len(value) + 3
    while len(b"%d" % n) + len(key) + len(value) + 3 != n:
        n = len(b"%d" % n) + len(key) + len(value) + 3
    return b"%d %s=%s\n" % (n, key, value)


def pax(*records, type=b"x"):
    text = b"".join(records)
    return header(b"PaxHeader", len(text), type) + padded(text)


END = bytes(1024)
GOOD = file(b"good", b"first")


def unpack(client, at, data, path="t"):
    return client.call("PUT", f"{at}/archive?path={path}", data)


# ---- names ------------------------------------------------------------------------------------

BAD = {
    "absolute": file(b"/etc/evil", b"x"),
    "dot dot": file(b"../evil", b"x"),
    "dot dot in the middle": file(b"a/../../evil", b"x"),
    "dot dot at the end": file(b"a/..", b"x"),
    "dot dot directory": header(b"../evil/", type=b"5"),
    "dot dot by the prefix": file(b"evil", b"x", prefix=b"../.."),
    "absolute by the prefix": file(b"evil", b"x", prefix=b"/etc"),
    "dot dot by pax": pax(record(b"path", b"../evil")) + file(b"x", b"x"),
    "absolute by pax": pax(record(b"path", b"/etc/evil")) + file(b"x", b"x"),
    "nul by pax": pax(record(b"path", b"a\0../../evil")) + file(b"x", b"x"),
    "dot dot by a long name": header(b"././@LongLink", 8, b"L") + padded(b"../evil\0") + file(b"x", b"x"),
    "through a link": header(b"link", type=b"2", link=b"/tmp") + file(b"link/evil", b"x"),
    "through a link up": header(b"link", type=b"2", link=b"..") + file(b"link/evil", b"x"),
    "through a link in the middle": header(b"a/link", type=b"2", link=b"/") + file(b"a/link/tmp/evil", b"x"),
    "through /proc": header(b"link", type=b"2", link=b"/proc/self/root") + file(b"link/tmp/evil", b"x"),
    "directory through a link": header(b"link", type=b"2", link=b"/tmp") + header(b"link/evil/", type=b"5"),
    "link through a link": header(b"link", type=b"2", link=b"/tmp") + header(b"link/evil", type=b"2", link=b"x"),
    "hard link out": header(b"evil", type=b"1", link=b"../../../etc/passwd"),
    "hard link absolute": header(b"evil", type=b"1", link=b"/etc/passwd"),
    "hard link through a link": header(b"link", type=b"2", link=b"/etc") + header(b"evil", type=b"1", link=b"link/passwd"),
    "hard link to nothing": header(b"evil", type=b"1", link=b"none"),
    "hard link to a directory": header(b"d/", type=b"5") + header(b"evil", type=b"1", link=b"d"),
    "hard link without a name": header(b"evil", type=b"1"),
    "hard link by pax": pax(record(b"linkpath", b"/etc/passwd")) + header(b"evil", type=b"1", link=b"good"),
    "link without a target": header(b"evil", type=b"2"),
    "through a file": file(b"good/evil", b"x"),
    "character device": header(b"evil", type=b"3"),
    "block device": header(b"evil", type=b"4"),
    "fifo": header(b"evil", type=b"6"),
    "gnu sparse": header(b"evil", type=b"S", magic=b"ustar  \0"),
    "pax sparse": pax(record(b"GNU.sparse.realsize", b"1000000000000"), record(b"GNU.sparse.major", b"1")) + file(b"evil", b"x"),
    "unknown kind": header(b"evil", type=b"Q"),
    "content of a link": header(b"evil", 512, b"2", b"x") + bytes(512),
    "content of a directory": header(b"evil/", 512, b"5") + bytes(512),
    "content of a directory by pax": pax(record(b"size", b"512")) + header(b"evil/", type=b"5") + bytes(512),
    "name too long": pax(record(b"path", b"n" * 300)) + file(b"x", b"x"),
    "path too long": pax(record(b"path", b"d/" * 3000)) + file(b"x", b"x"),
    "long name too long": header(b"././@LongLink", 1 << 20, b"L") + bytes(1 << 20) + file(b"x"),
    "pax too long": header(b"PaxHeader", 1 << 30, b"x"),
    "pax header of pax headers": pax(record(b"comment", b"x")) * 20 + file(b"evil"),
    "damaged sum": header(b"evil", sum=1),
    "negative size": header(b"evil", b"\xff" * 12),
    "huge size": header(b"evil", b"\x80" + b"\x7f" * 11),
    "huge size by pax": pax(record(b"size", b"99999999999999999999")) + file(b"evil"),
    "negative size by pax": pax(record(b"size", b"-1")) + file(b"evil"),
    "size of words": header(b"evil", b"12345678xyz"),
    "size that is not there": header(b"evil", 1 << 33),
    "size by pax that is not there": pax(record(b"size", b"999999")) + file(b"evil", b"x"),
    "records of no length": header(b"PaxHeader", 10, b"x") + padded(b"0 path=ab\n") + file(b"evil"),
    "records that are too long": header(b"PaxHeader", 10, b"x") + padded(b"99 path=a\n") + file(b"evil"),
    "records without an end": header(b"PaxHeader", 9, b"x") + padded(b"9 path=ab") + file(b"evil"),
    "an owner that is none": header(b"evil", uid=b"\x80\0\0\1\0\0\0\0"),
    "noise": b"\xff" * 1024,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_entry_is_refused(client, at, t, name):
    run(client, at, "mkdir -p /tmp/around; touch /tmp/around/was; rm -f /tmp/evil")
    answer = unpack(client, at, GOOD + BAD[name] + END)
    assert answer.status in (400, 403, 409, 413) and answer.json["error"]["message"], (name, answer)
    run(client, at, "test ! -e /tmp/evil && test ! -e evil && test ! -e /evil && test ! -e /etc/evil &&"
                    "test $(ls -A /tmp/around) = was && test \"$(stat -c %h /etc/passwd)\" = 1")
    assert client.get(t + "/good").data == b"first"  # earlier entries stay


@pytest.mark.parametrize("name", BAD)
def test_a_bad_entry_is_not_imported(client, lodged, host, name):
    """Symbolic links are allowed here: a layer may contain them."""
    inside = ("link", "hard link to a directory", "fifo", "through a file")
    answer = client.post("/v1/snapshots", packed(GOOD + BAD[name] + END))
    if answer.status == 201:
        assert any(word in name for word in inside), (name, answer)
        assert client.delete("/v1/snapshots/" + answer.json["snapshot"]["id"]).status == 204
    else:
        assert 400 <= answer.status < 500, (name, answer)
    assert not os.path.exists("/tmp/evil") and not os.path.exists("/etc/evil")


@pytest.mark.parametrize("data", [
    b"", bytes(100), bytes(512), GOOD, GOOD[:600], GOOD[:100], GOOD + bytes(100), file(b"x", b"y" * 5000)[:2000]])
def test_a_truncated_archive_is_refused(client, at, t, data):
    answer = unpack(client, at, data)
    assert answer.status in ((204,) if data and not any(data) and len(data) >= 512 else (400,)), answer


def test_data_after_the_end_marker_is_ignored(client, at, t):
    assert unpack(client, at, GOOD + END + b"garbage" * 1000).status == 204
    assert unpack(client, at, GOOD + END + file(b"late") + END).status == 204
    assert [e["name"] for e in client.get(t + "?list").json["entries"]] == ["good"]


def test_a_later_entry_replaces_an_earlier_one(client, at, t):
    """Also with another type; but a file does not replace a directory that is not empty."""
    twice = file(b"x", b"1") + file(b"x", b"22")
    assert unpack(client, at, twice + END).status == 204 and client.get(t + "/x").data == b"22"
    kinds = header(b"x/", type=b"5") + file(b"x", b"file") + header(b"x", type=b"2", link=b"y") + header(b"x/", type=b"5")
    assert unpack(client, at, kinds + file(b"x/in", b"3") + END).status == 204
    answer = unpack(client, at, file(b"x", b"file") + END)
    assert answer.status == 409 and "x" in answer.json["error"]["message"], answer
    assert client.get(t + "/x/in").data == b"3"
    # an existing link is replaced, not followed
    run(client, at, "echo safe >t/safe; ln -s safe t/link; mkdir t/dir; ln -s dir t/dirlink")
    assert unpack(client, at, file(b"link", b"new") + END).status == 204
    assert client.get(t + "/safe").data == b"safe\n" and client.get(t + "/link").data == b"new"
    assert unpack(client, at, file(b"dirlink/f", b"new") + END).status == 400
    assert unpack(client, at, header(b"dirlink/", type=b"5") + file(b"dirlink/f") + END).status == 204
    run(client, at, "test -d t/dirlink -a ! -L t/dirlink -a -z \"$(ls t/dir)\"")


def test_links_are_stored_unchanged(client, at, t):
    data = (header(b"out", type=b"2", link=b"/etc/shadow") + file(b"a", b"1") + header(b"b", type=b"1", link=b"a") +
            header(b"soft", type=b"2", link=b"a") + header(b"hard-to-soft", type=b"1", link=b"soft") + END)
    assert unpack(client, at, data).status == 204
    assert client.post(t + "/hard-to-soft?stat").json["entry"]["target"] == "a"
    assert client.get(t + "/out").status in (403, 404)
    assert client.get(t + "/b").data == b"1"


def test_modes_owners_and_names(client, at, t):
    data = (file(b"suid", b"x", mode=0o6755, uid=0, gid=0) + header(b"sticky/", type=b"5", mode=0o1777, uid=65534) +
            file(b"\xff\xfe name", b"bytes") + pax(record(b"path", b"pax \xff")) + file(b"x", b"pax") +
            pax(record(b"mtime", b"-5.5")) + file(b"old") + pax(record(b"mtime", b"1.5")) + file(b"half") +
            pax(record(b"comment", b"all"), type=b"g") + header(b"none", mode=0) +
            header(b"././@LongLink", 151, b"L", magic=b"ustar  \0") + padded(b"l" * 150 + b"\0") + file(b"x", b"long", magic=b"ustar  \0") +
            header(b"ro/", type=b"5", mode=0o555) + file(b"ro/in", b"in") + file(b"./dot//slash/", b""))
    assert unpack(client, at, data + END).status == 204
    entries = {e["name"]: e for e in client.get(t + "?list").json["entries"]}
    mine = run(client, at, "id -u").strip()
    assert {str(e["uid"]) for e in entries.values()} == {mine}
    assert entries["suid"]["mode"] == "0755" and entries["sticky"]["mode"] == "0777" and entries["none"]["mode"] == "0000"
    assert entries["half"]["mtime_ms"] == 1500 and entries["ro"]["mode"] == "0555" and "l" * 150 in entries
    assert client.get(t + "/%FF%FE%20name").data == b"bytes" and client.get(t + "/pax%20%FF").data == b"pax"
    run(client, at, "chmod 755 t/ro; test -d t/dot/slash")


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names_of_all_lengths(client, at, t, form):
    """The truncated name in the header may end like the name of a directory."""
    out, files = io.BytesIO(), {}
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for n in range(95, 102):
            for name, data in (("empty", b""), ("full", b"content")):
                info = tarfile.TarInfo(f"{'n' * n}/{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
                files[info.name] = data
    answer = unpack(client, at, out.getvalue())
    assert answer.status == 204, answer
    for name, data in files.items():
        entry = client.post(f"{t}/{name}?stat").json["entry"]
        assert entry["type"] == "file" and client.get(f"{t}/{name}").data == data, (len(name), entry)


def test_bad_target_directories_are_refused(client, at, t):
    put_file = client.call("PUT", t + "/f", b"x")
    assert put_file.status == 201
    run(client, at, "ln -s /etc t/etc; ln -s loop t/loop; mkfifo t/p; mkdir t/ro; chmod 555 t/ro")
    for path, status in (("t/f", 400), ("t/p", 400), ("t/loop", 400), ("t/etc", 403), ("/usr", 403), ("t/ro", 403),
                         ("/proc/self/cwd", 400), ("/proc/1/root/tmp", 400), ("t/" + "n" * 300, 400), ("n" * 5000, 400)):
        answer = unpack(client, at, GOOD + END, path)
        assert answer.status == status or path in ("/proc/1/root/tmp",) and 400 <= answer.status < 500, (path, answer)
    for path in ("/proc", "/proc/self", "/dev"):
        assert 400 <= unpack(client, at, GOOD + END, path).status < 500
    assert unpack(client, at, file(b"mem", b"x") + END, "/proc/self").status in (400, 403, 409)


# ---- sizes ------------------------------------------------------------------------------------


def send(client, path, pieces, method="PUT"):
    """Send the body in chunks; the server may respond before the end."""
    import http.client
    connection = http.client.HTTPConnection(client.host, client.port, timeout=120)
    with contextlib.closing(connection):
        connection.putrequest(method, path)
        connection.putheader("Authorization", f"Bearer {client.key}")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        try:
            for piece in pieces:
                connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            connection.send(b"0\r\n\r\n")
        except OSError:
            pass
        try:
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return None, b""


def test_many_entries_need_bounded_memory_and_time(client, lodged, at, t):
    """Once with the same name, once with different names."""
    million = 1 << 20 if SLOW else 1 << 14
    before = memory_of(lodged.process.pid)
    block = header(b"d/", type=b"5") * 1024
    status, _ = send(client, at + "/archive?path=t", [block] * (million // 1024) + [END])
    assert status in (204, 413)
    names = (b"".join(file(b"%d/%d" % (i, j)) for j in range(1024)) for i in range(million // 16384))
    status, text = send(client, at + "/archive?path=t/many", (*names, END))
    assert status in (204, 507), text
    assert memory_of(lodged.process.pid) - before < 96 << 20
    assert client.delete(t + "?recursive=1").status == 204


def test_a_file_larger_than_allowed(client):
    small = "/v1/sessions/" + client.enter(key="small archive", limits={"file_bytes": 65536})
    status, text = send(client, small + "/archive?path=t", [header(b"big", 1 << 30)] + [bytes(1 << 16)] * 64)
    assert status == 413, text
    assert client.get(small + "/files/?list").status == 200


def test_a_disconnected_upload_leaves_no_process(client, at, t):
    import socket
    with socket.create_connection((client.host, client.port)) as s:
        s.sendall(f"PUT {at}/archive?path=t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
                  f"Authorization: Bearer {client.key}\r\n\r\n".encode() + GOOD + header(b"half", 500000) + bytes(1000))
        assert wait_for(lambda: client.call("HEAD", t + "/half").status == 200)
    assert wait_for(lambda: "tar" not in run(client, at, "ps ax -o comm,args | grep '[(]tar' || :"))
    assert client.get(t + "/good").data == b"first"
    assert unpack(client, at, GOOD + END).status == 204


# ---- compressed -------------------------------------------------------------------------------

MAGIC = b"\x28\xb5\x2f\xfd"


def packed(data):
    """One zstd frame of raw blocks."""
    out = [MAGIC, b"\x00", b"\x38"]  # no sizes, no checksum; a window of 128 KB
    blocks = [data[i:i + 65536] for i in range(0, len(data), 65536)] or [b""]
    for i, b in enumerate(blocks):
        out += [(len(b) << 3 | (i == len(blocks) - 1)).to_bytes(3, "little"), b]
    return b"".join(out)


def runs(count, size=1 << 17, byte=b"\0"):
    """Run-length blocks; none is marked as the last."""
    return ((size << 3) | 2).to_bytes(3, "little") + byte, count


def bomb(head, gigabytes):
    """Compress `head` followed by gigabytes of zeros, in a few bytes per 128 KB."""
    block, _ = runs(1)
    start = MAGIC + b"\x00\x38" + (len(head) << 3).to_bytes(3, "little") + head
    return start + block * (gigabytes << 13) + b"\x01\x00\x00"


def refused(client, data, *statuses):
    answer = client.post("/v1/snapshots", data)
    assert answer.status in (statuses or (400,)), answer
    return answer


def test_a_snapshot_of_raw_blocks_is_imported(client, host):
    answer = client.post("/v1/snapshots?name=hand", packed(file(b"home/user/x", b"carried") + END))
    assert answer.status == 201, answer
    at = "/v1/sessions/" + client.enter(key="hand", snapshot=answer.json["snapshot"]["id"])
    assert client.get(at + "/files//home/user/x").data == b"carried"
    assert client.delete(at).status == 200


def test_damaged_frames_are_refused(client, host):
    good = packed(GOOD + END)
    for data in (b"", MAGIC, good[:20], good[:-10], good[:6] + b"\xff" * 20, b"\x50\x2a\x4d\x18\xff\xff\xff\xff", b"PK\3\4" + bytes(100),
                 good + b"garbage", MAGIC + b"\xff" * 40):
        refused(client, data)
    assert client.post("/v1/snapshots", b"\x50\x2a\x4d\x18\x04\0\0\0skip" + good).status == 201


@pytest.mark.parametrize("descriptor", [0xff, 0xf8, 0xa0])
def test_huge_windows_are_refused(client, descriptor):
    """Decompressing the frame would need up to 3.75 TB of memory."""
    answer = refused(client, MAGIC + b"\x00" + bytes([descriptor]) + b"\x01\x00\x00")
    assert "window" in answer.json["error"]["message"]


def test_a_bomb_after_the_end_marker_is_refused(client, lodged):
    answer = refused(client, bomb(GOOD + END, 1))
    assert "after the end marker" in answer.json["error"]["message"]


def test_a_bomb_in_a_file_is_refused(client, lodged, host):
    """A gigabyte in 32 KB, with a declared size of 300 GB; nothing of it stays."""
    before = memory_of(lodged.process.pid)
    data = bomb(header(b"tmp/big", b"\x80" + (300 << 30).to_bytes(11, "big")), 1)
    snapshots = client.get("/v1/snapshots?limit=1000").json["snapshots"]
    answer = refused(client, data, 413)
    assert answer.code == "TOO_LARGE" and "more than 200 times its size (setting: import_ratio)" in str(answer.json), answer
    assert memory_of(lodged.process.pid) - before < 96 << 20
    assert client.get("/v1/sessions?metadata.lodge.import=unfinished").json["sessions"] == []
    assert client.get("/v1/snapshots?limit=1000").json["snapshots"] == snapshots


def test_a_complete_bomb_is_refused(client, lodged):
    """300 MB of zeros in 10 KB, in an archive without a fault; 200 MB are few enough for any ratio."""
    def archive(megabytes):
        head = header(b"tmp/zeros", megabytes << 20)
        block, _ = runs(1)
        start = MAGIC + b"\x00\x38" + (len(head) << 3).to_bytes(3, "little") + head
        return start + block * (megabytes << 3) + (len(END) << 3 | 1).to_bytes(3, "little") + END
    assert len(archive(300)) < 16384
    answer = refused(client, archive(300), 413)
    assert "import_ratio" in answer.json["error"]["message"], answer
    answer = client.post("/v1/snapshots", archive(200))
    assert answer.status == 201, answer
    assert client.delete("/v1/snapshots/" + answer.json["snapshot"]["id"]).status == 204
    at = "/v1/sessions/" + client.enter(key="zeros", limits={"disk_bytes": 512 << 20, "file_bytes": 512 << 20})
    assert put_packed(client, at, archive(300)).status == 204  # its own disk is the limit of a session
    assert client.delete(at).status == 200


@pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not there")
def test_a_zstd_archive_can_be_imported(client, at, t):
    run(client, at, "mkdir -p t/a/b; echo 1 >t/a/b/c; ln t/a/b/c t/a/d; ln -s b t/a/e")
    out = client.get(at + "/archive?path=t").data
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        # sorted, with one entry of each type
        names = sorted(m.name for m in tar)
    assert names == ["a", "a/b", "a/b/c", "a/d", "a/e"]
    small = subprocess.run(["zstd", "-19", "--long=27", "-c"], input=out, stdout=subprocess.PIPE, check=True).stdout
    answer = client.post("/v1/snapshots", small)
    assert answer.status == 201, answer
    assert client.delete("/v1/snapshots/" + answer.json["snapshot"]["id"]).status == 204


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_python_are_unpacked(client, at, t, format):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name in ("f", "d/" + "n" * 80 + "/" + "m" * 90, "ä/ö"):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = 3, 1e9
            tar.addfile(info, io.BytesIO(b"abc"))
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "f"
        tar.addfile(info)
    assert unpack(client, at, out.getvalue()).status == 204
    got = [e["path"] for e in client.get(t + "?list&depth=5").json["entries"] if e["type"] == "file"]
    assert got == ["t/d/" + "n" * 80 + "/" + "m" * 90, "t/f", "t/ä/ö"]


# ---- compressed archives of a session ---------------------------------------------------------


def zstd_children(lodged):
    """All child processes except the starter, including zombies."""
    return [p for p in children(lodged.process.pid) if name_of(p) != "lodged-starter"]


def put_packed(client, at, data, path="t"):
    return client.call("PUT", f"{at}/archive?path={path}&format=tar.zst", data)


def test_a_compressed_archive_out_and_in(client, lodged, at, t):
    run(client, at, "mkdir -p t/a/b; seq 100000 >t/a/b/c; ln t/a/b/c t/a/d; ln -s b t/a/e")
    out = client.get(at + "/archive?path=t&format=tar.zst")
    assert out.status == 200 and out.headers["Content-Type"] == "application/zstd", out
    assert out.data.startswith(MAGIC) and len(out.data) < 400000
    assert client.get(at + "/archive?path=t", headers={"Accept": "application/zstd"}).data[:4] == MAGIC
    assert client.get(at + "/archive?path=t&format=tar", headers={"Accept": "application/zstd"}).data[:4] != MAGIC
    assert client.call("HEAD", at + "/archive?path=t&format=tar.zst").status == 200
    assert put_packed(client, at, out.data, "t/again").status == 204
    answer = client.call("PUT", at + "/archive?path=t/third", out.data, headers={"Content-Type": "application/zstd"})
    assert answer.status == 204, answer
    run(client, at, "cmp t/a/b/c t/again/a/b/c && cmp t/a/b/c t/third/a/d && test t/again/a/b/c -ef t/again/a/d")
    assert put_packed(client, at, packed(GOOD + END), "t/hand").status == 204
    assert client.get(t + "/hand/good").data == b"first"
    assert wait_for(lambda: not zstd_children(lodged))


def test_compressed_archives_report_early_errors(client, lodged, at, t):
    """An error before the first byte gets the same response as without compression."""
    assert client.get(at + "/archive?path=none&format=tar.zst").status == 404
    assert client.get(at + "/archive?path=/root&format=tar.zst").status == client.get(at + "/archive?path=/root").status
    assert client.get(at + "/archive?path=t&format=zip").status == 400
    assert put_packed(client, at, packed(GOOD + END), "/usr").status == 403
    assert not zstd_children(lodged)


def test_damaged_compressed_archives_are_refused(client, lodged, at, t):
    good = packed(GOOD + END)
    for data in (b"", MAGIC, good[:20], good[:-10], good[:6] + b"\xff" * 20, b"PK\3\4" + bytes(100), good + b"garbage",
                 MAGIC + b"\xff" * 40, GOOD + END, packed(b""), packed(GOOD), packed(b"\xff" * 1024),
                 packed(GOOD + file(b"../evil", b"x") + END), MAGIC + b"\x00\xff\x01\x00\x00"):
        answer = put_packed(client, at, data)
        assert answer.status == 400 and answer.json["error"]["message"], (data[:40], answer)
    assert unpack(client, at, good).status == 400  # the format was not given
    assert not zstd_children(lodged)


def test_a_bomb_fills_at_most_the_disk_of_the_session(client, lodged):
    small = "/v1/sessions/" + client.enter(key="small packed", limits={"disk_bytes": 32 << 20})
    answer = put_packed(client, small, bomb(header(b"big", 1 << 30), 1))
    assert answer.status == 507 and answer.code == "LIMIT_DISK", answer
    assert client.delete(small + "/files/t/big").status == 204
    answer = put_packed(client, small, bomb(GOOD + END, 1), "after")
    assert answer.status == 400 and "after the end marker" in answer.json["error"]["message"], answer
    assert not zstd_children(lodged)
    assert client.delete(small).status == 200


def test_a_disconnect_ends_the_compressor(client, lodged, at, t):
    import socket
    run(client, at, "head -c 64M /dev/urandom >t/noise")
    connection, response = client.open("GET", at + "/archive?path=t&format=tar.zst")
    assert response.status == 200 and response.read(4) == MAGIC and zstd_children(lodged)
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    response.close()
    assert wait_for(lambda: not zstd_children(lodged))
    with socket.create_connection((client.host, client.port)) as s:
        s.sendall(f"PUT {at}/archive?path=t&format=tar.zst HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
                  f"Authorization: Bearer {client.key}\r\n\r\n".encode() + packed(GOOD + file(b"next", b"x"))[:-100])
        s.settimeout(0.01)
        assert wait_for(lambda: zstd_children(lodged)), s.recv(4096)  # the response in case of an error
    assert wait_for(lambda: not zstd_children(lodged))
    assert wait_for(lambda: "tar" not in run(client, at, "ps ax -o comm,args | grep '[(]tar' || :"))


def test_a_killed_compressor_truncates_the_response(client, lodged, at, t):
    """The client must see that the archive is incomplete."""
    import http.client
    run(client, at, "head -c 64M /dev/urandom >t/noise")
    connection, response = client.open("GET", at + "/archive?path=t&format=tar.zst")
    with contextlib.closing(connection):
        assert response.read(4) == MAGIC
        for pid in zstd_children(lodged):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises((http.client.HTTPException, OSError)):
            response.read()
    assert wait_for(lambda: not zstd_children(lodged))
