# SPDX-License-Identifier: Apache-2.0
"""lodge cp in both directions, and what hostile archives cannot do."""
import http.server
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tarfile
import tempfile
import threading
import time

import pytest

from client import wait_for
from lodge import LODGE
from relay import Relay
from terminal import Terminal


def ok(result):
    assert result[0] == 0, result
    return result[1]


@pytest.fixture
def at(client):
    sid = client.enter(key="cp")
    yield "cp"
    client.delete("/v1/sessions/" + sid)


def test_files(lodged, client, at, tmp_path):
    data = bytes(range(256)) * 5000
    src = tmp_path / "src"
    src.write_bytes(data)
    src.chmod(0o751)
    answer = json.loads(ok(lodged.lodge("cp", str(src), "cp:", "--json")))
    assert answer["copied"] == [{"from": str(src), "to": "cp:", "bytes": len(data)}]
    assert client.run("key:cp", "stat -c %a src").strip() == "751"
    ok(lodged.lodge("cp", "cp:src", str(tmp_path / "back")))
    assert (tmp_path / "back").read_bytes() == data and (tmp_path / "back").stat().st_mode & 0o7777 == 0o751
    assert ok(lodged.lodge("cp", "key:cp:src", "-")) == data
    ok(lodged.lodge("cp", "-", "cp:/tmp/from-stdin", data=b"typed"))
    assert client.run("key:cp", "cat /tmp/from-stdin") == "typed"
    (tmp_path / "d").mkdir()
    ok(lodged.lodge("cp", "cp:src", "cp:/tmp/from-stdin", str(tmp_path / "d")))
    assert sorted(os.listdir(tmp_path / "d")) == ["from-stdin", "src"]
    assert sorted(os.listdir(tmp_path)) == ["back", "d", "src"]  # no temporary file is left


def test_names_that_are_not_utf8(lodged, at, tmp_path):
    src = os.fsencode(tmp_path) + b"/\xff\xfe %2f?"
    with open(src, "wb") as f:
        f.write(b"1")
    answer = json.loads(ok(lodged.lodge("cp", src, "cp:", "--json")))
    assert answer["copied"][0]["from"].endswith("/?? %2f?")
    assert ok(lodged.lodge("cp", b"cp:\xff\xfe %2f?", "-")) == b"1"
    got = lodged.lodge("cp", b"cp:\xff\033[31m", "-")
    assert got[0] == 1 and "\033" not in got[2]


def test_paths_with_dot_dot_are_refused(lodged, at, tmp_path):
    """A proxy could normalize the URL to another path."""
    (tmp_path / "f").write_text("x")
    for args in (("cp:../x", "-"), ("cp:a/../b", "-"), (str(tmp_path / "f"), "cp:/tmp/../f")):
        got = lodged.lodge("cp", *args)
        assert got[0] == 1 and 'must not contain ".."' in got[2], got


def test_directories(lodged, client, at, tmp_path):
    src = tmp_path / "tree"
    (src / "deep" / "er").mkdir(parents=True)
    (src / "deep" / "er" / "f\xfc \n").write_bytes(b"x" * 100000)
    (src / "run").write_text("#!/bin/sh\n")
    (src / "run").chmod(0o755)
    (src / "link").symlink_to("run")
    (src / "shut").mkdir()
    (src / "shut" / "in").write_text("in")
    (src / "shut").chmod(0o555)
    src.chmod(0o750)
    ok(lodged.lodge("cp", str(src), "cp:"))
    assert client.run("key:cp", "stat -c '%a %F' tree tree/run tree/link tree/shut").split("\n")[:4] == [
        "750 directory", "755 regular file", "777 symbolic link", "555 directory"]
    ok(lodged.lodge("cp", "cp:tree", str(tmp_path / "back")))
    back = tmp_path / "back"
    assert (back / "deep" / "er" / "f\xfc \n").read_bytes() == b"x" * 100000
    assert os.readlink(back / "link") == "run" and (back / "shut").stat().st_mode & 0o777 == 0o555
    assert back.stat().st_mode & 0o777 == 0o750
    ok(lodged.lodge("cp", "cp:tree", str(back)))  # into an existing directory: copied below it
    assert (back / "tree" / "run").exists()
    (back / "run").write_text("old")
    ok(lodged.lodge("cp", "cp:tree/.", str(back)))  # copies only the content, over the existing files
    assert (back / "run").read_text() == "#!/bin/sh\n" and not list(back.glob(".lodge*"))
    tar = tarfile.open(fileobj=io.BytesIO(ok(lodged.lodge("cp", "cp:tree", "-"))))
    assert "run" in [n.lstrip("./") for n in tar.getnames()]
    ok(lodged.lodge("cp", "-", "cp:unpacked/", data=ok(lodged.lodge("cp", "cp:tree", "-"))))
    assert client.run("key:cp", "ls unpacked/deep/er").startswith("f")


def test_pipes_sockets_and_devices_are_skipped(lodged, client, at, tmp_path):
    src = tmp_path / "odd"
    (src / "d").mkdir(parents=True)
    names = ["d/p*", "q\\n", "r\nr", "[s]"]
    for name in names:
        os.mkfifo(src / name)
    for name in ("d/pp", "q\n", "s", "d/q\\n", "fine"):
        (src / name).write_text(name)
    os.mknod(src / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(src / "sock"))
        for source, there in ((str(src), "odd"), (f"{src}/", "other")):
            status, _, err = lodged.lodge("cp", source, f"cp:{there}")
            assert status == 0 and err.count(": skipped, because it is a pipe\n") == 4 and err.count("\n") == 6, err
            assert "/sock: skipped, because it is a socket\n" in err and "/zero: skipped, because it is a device\n" in err
            assert client.run("key:cp", f"cd {there}; find . ! -type d -printf x; cat fine d/pp s") == "xxxxxfined/pps"


def test_wrong_operands_are_reported(lodged, client, at, tmp_path):
    for words, status, text in (
            (("cp", "cp:nosuch", str(tmp_path)), 1, "nosuch"),
            (("cp", "nosuch-key:x", str(tmp_path)), 1, "nosuch-key"),
            (("cp", str(tmp_path / "no"), "cp:"), 1, "No such file"),
            (("cp", "a", "b"), 2, "SESSION:PATH"),
            (("cp", "cp:a", "cp:b"), 2, "SESSION:PATH"),
            (("cp", ":a", "b"), 2, "SESSION is missing before the colon"),
            (("cp", "cp:a"), 2, "operands"),
            (("cp", "cp:/dev/null", str(tmp_path / "x")), 1, "only files and directories can be copied")):
        got = lodged.lodge(*words)
        assert got[0] == status and text in got[2] and got[2].count("\n") == 1, (words, got)
    got = lodged.lodge("cp", "cp:.", "cp:nosuch", str(tmp_path))
    assert got[0] == 1 and "cp:nosuch" in got[2]
    assert list(tmp_path.iterdir()) == []


def test_missing_tar_is_reported(lodged, client, at, tmp_path):
    client.run("key:cp", "mkdir -p d")
    (tmp_path / "d").mkdir()
    for words in (("cp:d", str(tmp_path / "new")), (str(tmp_path / "d"), "cp:e")):
        got = lodged.lodge("cp", *words, env=lodged.env() | {"PATH": "/nowhere"})
        assert got[0] == 1 and got[2] == "lodge: cannot copy directories: tar is not installed\n"


@pytest.mark.parametrize("end", ["exit 2", "kill -9 $$"])
def test_a_failing_tar_does_not_complete_the_upload(lodged, client, at, tmp_path, end):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "seen").write_text("x")
    (tmp_path / "tar").write_text(f'#!/bin/sh\n{shutil.which("tar")} "$@"; echo "tar: ./secret: no" >&2; {end}\n')
    (tmp_path / "tar").chmod(0o755)
    with Relay(lodged, lambda line: None) as relay:
        env = lodged.env(PATH=f"{tmp_path}:{os.environ['PATH']}") | {"LODGE_URL": relay.url}
        status, out, said = lodged.lodge("cp", str(tmp_path / "d"), "cp:", env=env)
        assert (status, out) == (1, b"") and said.startswith("tar: ./secret: no\nlodge: tar failed (see above); ")
        assert said.count("\n") == 2 and "not copied" in said
        wait_for(lambda: b"/archive?" in relay.asked)
        assert not relay.asked.endswith(b"\r\n0\r\n\r\n")  # a complete body would be accepted


def test_progress_on_a_terminal_only(lodged, client, at, tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 3000000)
    t = Terminal("cp", str(tmp_path / "big"), "cp:", env=lodged.env())
    assert t.end() == 0 and b"100%" in t.seen and b"2.9M" in t.seen and b"/s" in t.seen
    t = Terminal("cp", "cp:big", str(tmp_path / "back"), env=lodged.env())
    assert t.end() == 0 and b"100%" in t.seen
    t = Terminal("cp", "-q", "cp:big", str(tmp_path / "back"), env=lodged.env())
    assert t.end() == 0 and t.seen == b""
    assert lodged.lodge("cp", "cp:big", str(tmp_path / "back")) == (0, b"", "")


# ---- a hostile service ----------------------------------------------------------------------------

class Evil(http.server.BaseHTTPRequestHandler):
    """Presents every path as a directory; the test sets its archive."""
    archive = b""
    stall = False

    def answer(self, kind, data):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) + (1 if self.stall else 0)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        if self.stall:
            time.sleep(20)

    def do_POST(self):
        Evil.stall, stall = False, Evil.stall
        self.answer("application/json", json.dumps({"entry": {"name": "d", "path": "d", "type": "directory", "size": 0,
                                                              "mode": "0755", "uid": 0, "gid": 0, "mtime_ms": 0}}).encode())
        Evil.stall = stall

    def do_GET(self):
        self.answer("application/x-tar", self.archive)

    def log_message(self, *args):
        pass


@pytest.fixture
def evil(lodged):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Evil.stall = False
    yield dict(lodged.env(), LODGE_URL="http://127.0.0.1:%d" % server.server_port)
    server.shutdown()
    server.server_close()


def member(name, kind=tarfile.REGTYPE, data=b"evil", link="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def archive(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


LINK, HARD, DIR, CHAR, FIFO = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE


@pytest.fixture
def world(tmp_path):
    """lodge may write to `out` only."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("mine")
    (tmp_path / "out").mkdir()
    return tmp_path


def check_only_out_changed(world):
    assert sorted(p.name for p in world.iterdir()) == ["out", "secret"]
    assert [p.name for p in (world / "secret").iterdir()] == ["file"]
    assert (world / "secret" / "file").read_text() == "mine" and (world / "secret" / "file").stat().st_nlink == 1
    assert not list((world / "out").glob(".lodge*"))


BAD = {
    "symlink then file": lambda w: [member("x", LINK, link=str(w / "secret")), member("x/file")],
    "symlink up then file": lambda w: [member("x", LINK, link="../../secret"), member("x/file")],
    "symlink in a directory": lambda w: [member("a", DIR, mode=0o755), member("a/x", LINK, link="../../../secret"),
                                         member("a/x/file")],
    "link of links": lambda w: [member("u", LINK, link=".."), member("v", LINK, link="u/.."),
                                member("v/secret/file")],
    "symlink to the file": lambda w: [member("x", LINK, link=str(w / "secret" / "file")), member("x")],
    "dot-dot": lambda w: [member("../secret/file"), member("../../secret/file"), member("a/../../secret/file")],
    "absolute": lambda w: [member(str(w / "secret" / "file"))],
    "hard link out": lambda w: [member("h", HARD, link=str(w / "secret" / "file")), member("h")],
    "hard link up": lambda w: [member("h", HARD, link="../../secret/file"), member("h")],
    "hard link to a symlink": lambda w: [member("s", LINK, link=str(w / "secret" / "file")), member("h", HARD, link="s"),
                                         member("h")],
    "directory over symlink": lambda w: [member("x", LINK, link=str(w / "secret")), member("x", DIR, mode=0o777),
                                         member("x/file")],
}


@pytest.mark.parametrize("what", BAD)
def test_bad_archives_stay_inside(lodged, evil, world, what):
    Evil.archive = archive(*BAD[what](world))
    for _ in range(2):  # the second run finds the files of the first
        lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)
        check_only_out_changed(world)
        assert (world / "secret").stat().st_mode & 0o777 != 0o777


def test_links_of_an_earlier_copy_are_not_followed(lodged, evil, world):
    """Each archive alone is harmless; the second would write through the link of the first."""
    secret = world / "secret"
    Evil.archive = archive(member("x", LINK, link=str(secret)), member("y", LINK, link="../secret/file"))
    assert lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)[0] == 0
    assert os.readlink(world / "out" / "x") == str(secret)
    Evil.archive = archive(member("x/file"), member("z"))
    status, _, err = lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)
    assert status == 1 and "symbolic link" in err
    check_only_out_changed(world)
    Evil.archive = archive(member("x", DIR, mode=0o755), member("x/file"))
    assert lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)[0] == 1
    Evil.archive = archive(member("y"))
    assert lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)[0] == 0
    assert (world / "out" / "y").read_text() == "evil" and not (world / "out" / "y").is_symlink()
    (world / "out" / "d").symlink_to(secret)
    status, _, err = lodged.lodge("cp", "ses_x:d", str(world / "out"), env=evil)
    assert status == 1 and "symbolic link" in err
    check_only_out_changed(world)


def test_no_devices_owners_or_set_id_bits(lodged, evil, world):
    info, data = member("su", mode=0o6755)
    info.uid, info.gid = 1234, 1234
    mask = os.umask(0o022)
    os.umask(mask)
    Evil.archive = archive((info, data), member("pipe", FIFO), member("d", DIR, mode=0o2775), member("d/f"))
    status, _, err = lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)
    st = (world / "out" / "su").stat()
    assert status == 0 and (st.st_mode & 0o7777, st.st_uid, st.st_gid) == (0o755, os.getuid(), os.getgid())
    assert "pipe" in err and sorted(p.name for p in (world / "out").iterdir()) == ["d", "su"]
    assert (world / "out" / "d").stat().st_mode & 0o7777 == 0o775 & ~mask
    dev, _ = member("null", CHAR)
    dev.devmajor, dev.devminor = 1, 3
    Evil.archive = archive((dev, b""), member("other"))
    assert lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)[0] == 1
    assert not (world / "out" / "null").exists() and not (world / "out" / "other").exists()
    check_only_out_changed(world)


@pytest.fixture
def open_world():
    """A directory that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="lodge-cp-") as at:
        os.chmod(at, 0o755)
        yield pathlib.Path(at)


def test_directories_without_write_permission_as_an_ordinary_user(evil, open_world):
    """A user can move a directory of their own although its mode forbids writing."""
    out = open_world / "out"
    out.mkdir()
    os.chown(out, 65534, 65534)
    shutil.copy(LODGE, open_world / "lodge")
    Evil.archive = archive(member("ro", DIR, mode=0o555), member("ro/f", mode=0o444), member("shut", DIR, mode=0o000),
                           member("ro/sub", DIR, mode=0o500), member("ro/sub/g"))
    done = subprocess.run([open_world / "lodge", "cp", "ses_x:d/.", out], env=dict(evil, HOME="/"), stderr=subprocess.PIPE,
                          user=65534, group=65534, extra_groups=[], check=False)
    assert done.returncode == 0, done
    assert [(out / p).stat().st_mode & 0o777 for p in ("ro", "shut", "ro/sub", "ro/f", "ro/sub/g")] == [
        0o555, 0, 0o500, 0o444, 0o644]
    assert (out / "ro").stat().st_uid == 65534 and sorted(p.name for p in out.iterdir()) == ["ro", "shut"]
    done = subprocess.run([open_world / "lodge", "cp", "ses_x:d/.", out], env=dict(evil, HOME="/"), stderr=subprocess.PIPE,
                          user=65534, group=65534, extra_groups=[], check=False)
    assert done.returncode == 1 and b"Permission denied" in done.stderr  # as with cp -r
    assert sorted(p.name for p in out.iterdir()) == ["ro", "shut"]


def test_a_truncated_archive_leaves_nothing(lodged, evil, world):
    Evil.archive = archive(member("a", data=b"x" * 5000), member("b"))[:4096]
    status, _, err = lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)
    assert status == 1 and err and list((world / "out").iterdir()) == []
    Evil.archive = b"no tar at all" * 1000
    assert lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)[0] == 1
    check_only_out_changed(world)


def test_archive_names_are_escaped_on_the_terminal(evil, world):
    Evil.archive = archive(member("a\033[31m", LINK, link="/"), member("a\033[31m/x\u202e\u009b1m"),
                           member("../\033]0;t\007"), member("p\033[5m", FIFO))
    t = Terminal("cp", "ses_x:d/.", str(world / "out"), env=dict(evil, LANG="C.UTF-8", NO_COLOR="1"))
    assert t.end() == 1
    assert b"tar: " in t.seen and not any(c in t.seen.replace(b"\033[K", b"") for c in (b"\033", b"\007")), t.seen
    check_only_out_changed(world)


def test_tar_options_of_the_environment_are_ignored(lodged, evil, world):
    Evil.archive = archive(member(str(world / "secret" / "file")))
    lodged.lodge("cp", "ses_x:d/.", str(world / "out"), env=dict(evil, TAR_OPTIONS="--absolute-names"))
    check_only_out_changed(world)


def test_an_interrupt_leaves_nothing(lodged, evil, world):
    Evil.archive, Evil.stall = archive(member("a", data=b"x" * 200000)), True
    p = lodged.start_lodge("cp", "ses_x:d/.", str(world / "out"), env=evil)
    assert wait_for(lambda: list((world / "out").glob(".lodge*/a")))
    p.send_signal(signal.SIGINT)
    assert p.wait(180) == 130
    p.stdout.close()
    p.stderr.close()
    assert list((world / "out").iterdir()) == []


def test_the_umask_of_the_caller_applies(lodged, client, at, tmp_path):
    """It limits the modes the guest chose; a new directory is private until it is complete."""
    client.run("key:cp", "rm -rf open; mkdir open && chmod 777 open && touch open/f && chmod 666 open/f && cp -p open/f g")
    before = os.umask(0o077)
    try:
        ok(lodged.lodge("cp", "cp:open", "cp:g", str(tmp_path)))
    finally:
        os.umask(before)
    modes = [os.stat(tmp_path / name).st_mode & 0o777 for name in ("open", "open/f", "g")]
    assert modes == [0o700, 0o600, 0o600], [oct(m) for m in modes]
