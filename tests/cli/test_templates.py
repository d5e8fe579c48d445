# SPDX-License-Identifier: Apache-2.0
"""lodge templates: creating, changing and removing the templates of a service."""
import gzip
import io
import json
import lzma
import os
import re
import signal
import socket
import subprocess
import tarfile
import tempfile
import threading

import pytest

from client import SOURCE, wait_for
from lodge import LODGE, failed, ok
from roots import docker_parts, docker_save, layout, needs_busybox, root, sandboxes, tar, tiny_root
from terminal import Terminal

OTHER = 4321  # not root


def names(client):
    return [t["name"] for t in client.get("/v1/templates").json["templates"]]


@pytest.fixture
def name(client):
    yield "mine"
    for s in client.get("/v1/sessions").json["sessions"]:
        client.delete("/v1/sessions/" + s["id"])
    # lodged may still be inspecting the template
    assert wait_for(lambda: client.delete("/v1/templates/mine").status in (200, 404))


def sh(client, command, template="mine"):
    at = "/v1/sessions/" + client.enter(template=template)
    answer = client.post(at + "/exec", {"argv": ["/bin/sh", "-c", command]})
    assert answer.status == 200, answer
    client.delete(at)
    return answer.json["stdout"]


@pytest.fixture
def rootfs(tmp_path):
    at = tmp_path / "root"
    with tarfile.open(fileobj=io.BytesIO(root(("app", None), ("app/x", b"hello")))) as t:
        t.extractall(at)
    return at


# ---- sources ----------------------------------------------------------------------------------


@needs_busybox
def test_add_a_directory(lodged, client, name, rootfs):
    (rootfs / "app" / "out").symlink_to("/etc/shadow")  # links are stored, not followed
    (rootfs / "app" / "up").symlink_to("../../../../../etc/shadow")
    (rootfs / "dev").mkdir()
    (rootfs / "dev" / "left-out").write_text("x")
    os.chown(rootfs / "app" / "x", 2000, 2001)
    socket.socket(socket.AF_UNIX).bind(str(rootfs / "app" / "sock"))
    assert ok(lodged.lodge("templates", "add", name, str(rootfs))).startswith("created mine, ")
    found = sh(client, "cd /app; cat x; stat -c ' %u %g' x; ls; stat -c %N out up; ls /dev/left-out 2>/dev/null")
    assert found.splitlines() == ["hello 2000 2001", "out", "up", "x", "'out' -> '/etc/shadow'",
                                  "'up' -> '../../../../../etc/shadow'"], found
    t = json.loads(ok(lodged.lodge("templates", "show", name, "--json")))["template"]
    assert t["from"] == {"kind": "tar"} and t["limits"] == {} and t["class"] == "user"


@needs_busybox
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["tar", "gz", "xz"])
@pytest.mark.parametrize("how", ["file", "pipe", "input"])
def test_add_an_archive(lodged, client, name, tmp_path, pack, how):
    data = pack(root(("x", b"packed")))
    if how == "file":
        (tmp_path / "a").write_bytes(data)
        ok(lodged.lodge("templates", "add", name, str(tmp_path / "a")))
    elif how == "input":
        ok(lodged.lodge("templates", "add", name, "-", data=data))
    else:
        os.mkfifo(tmp_path / "a")
        writer = threading.Thread(target=(tmp_path / "a").write_bytes, args=(data,))
        writer.start()
        ok(lodged.lodge("templates", "add", name, str(tmp_path / "a")))
        writer.join()
    assert sh(client, "cat /x") == "packed"


@needs_busybox
def test_add_an_image(lodged, client, name, tmp_path):
    data = layout([root(), tar(("x", b"layer"))], {"Env": ["A=image", "B=image"], "WorkingDir": "/tmp"})
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        t.extractall(tmp_path / "oci")
    status, out, err = lodged.lodge("templates", "add", name, str(tmp_path / "oci"), "--env", "B=mine", "--json")
    answer = json.loads(out)
    assert status == 0 and answer["wants_root"] is True and answer["template"]["from"] == {"kind": "oci"}
    assert answer["template"]["env"] == {"A": "image", "B": "mine"} and answer["template"]["workdir"] == "/tmp"
    assert sh(client, "cat /x; echo $A$B; pwd") == "layerimagemine\n/tmp\n"
    assert wait_for(lambda: lodged.lodge("templates", "rm", "--yes", name)[0] == 0)
    (tmp_path / "a.tar").write_bytes(data)  # the same image as one file
    status, _, err = lodged.lodge("templates", "add", name, str(tmp_path / "a.tar"), "--oci")
    assert status == 0 and "expects root" in err and "lodge template set mine --root" in err
    ok(lodged.lodge("templates", "set", name, "--root"))
    assert sh(client, "id -u") == "0\n"


def test_add_a_snapshot(lodged, client, name):
    sid = client.enter(key="source")
    client.run(sid, "echo kept > f")
    snapshot = client.post(f"/v1/sessions/{sid}/snapshots", {}).json["snapshot"]["id"]
    assert ok(lodged.lodge("templates", "add", name, "--snapshot", snapshot, "--env", "A=1", "--memory",
                           "80M")).startswith("created mine")
    t = client.get("/v1/templates/mine").json["template"]
    assert t["from"] == {"kind": "snapshot", "snapshot": snapshot}
    assert t["env"] == {"A": "1"} and t["limits"]["memory_bytes"] == 80 << 20
    assert sh(client, "cat f") == "kept\n"
    client.delete("/v1/snapshots/" + snapshot)
    failed(lodged.lodge("templates", "add", "other", "--snapshot", "snp_none"), "snp_none")


# ---- settings ---------------------------------------------------------------------------------


SPEC = ("--memory", "64M", "--cpus", "0.5", "--pids", "40", "--disk", "100M", "--inodes", "1000", "--file-size", "10M",
        "--open-files", "100", "--output", "1M", "--env", "A=1", "--env", "B=x=y", "--workdir", "/tmp", "--user", "2000")
LIMITS = {"memory_bytes": 64 << 20, "cpus": 0.5, "pids": 40, "disk_bytes": 100 << 20, "inodes": 1000,
          "file_bytes": 10 << 20, "open_files": 100, "output_bytes": 1 << 20}


def test_settings_are_added_changed_and_unset(lodged, client, name, tmp_path):
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    assert lodged.lodge("policy", "set", "readers", "--deny", "rm")[0] == 0
    t = json.loads(ok(lodged.lodge("templates", "add", name, str(tmp_path / "a"), *SPEC, "--policy", "readers",
                                   "--json")))["template"]
    assert t["limits"] == LIMITS and t["env"] == {"A": "1", "B": "x=y"} and t["policy"] == "readers"
    assert (t["run_as"], t["workdir"], t["class"]) == ("2000", "/tmp", "user")
    text = ok(lodged.lodge("templates", "show", name))
    for words in ("memory 64M", "cpus 0.5", "B=x=y", "readers", "/tmp", "2000"):
        assert words in text, text
    # options that are not given stay unchanged, also single variables and limits
    t = json.loads(ok(lodged.lodge("templates", "set", name, "--pids", "50", "--env", "A=2", "--root", "--json")))["template"]
    assert t["limits"] == dict(LIMITS, pids=50) and t["env"] == {"A": "2", "B": "x=y"} and t["class"] == "root"
    t = json.loads(ok(lodged.lodge("templates", "set", name, "--unset", "cpus,memory,env:B,root,policy,workdir", "--disk", "1G",
                                   "--json")))["template"]
    assert "cpus" not in t["limits"] and "memory_bytes" not in t["limits"] and t["limits"]["disk_bytes"] == 1 << 30
    assert t["limits"]["pids"] == 50 and t["env"] == {"A": "2"} and t["class"] == "user"
    assert t["policy"] is None and t["workdir"] is None and t["run_as"] == "2000"
    t = json.loads(ok(lodged.lodge("templates", "set", name, "--unset", "env", "--env", "C=3", "--json")))["template"]
    assert t["env"] == {"C": "3"}
    assert "A=" not in ok(lodged.lodge("templates", "set", name, "--unset", "user"))
    failed(lodged.lodge("templates", "set", "nosuch", "--pids", "9"), "nosuch")
    failed(lodged.lodge("templates", "set", "host", "--pids", "9"), "built in")
    for words in ((), ("--unset", "colour"), ("--pids", "1"), ("--env", "A"), ("--workdir", "relative")):
        status, out, err = lodged.lodge("templates", "set", name, *words)
        assert status == 2 and out == b"" and err.count("\n") == 1, (words, err)
    lodged.lodge("policy", "rm", "--yes", "readers")


def test_refused_settings_leave_no_template(lodged, client, name, tmp_path):
    """A template without its settings would be incomplete."""
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "a"), "--env", "A=" + "x" * 70000))
    assert name not in names(client)
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "a"), "--policy", "nosuch"), "nosuch")
    assert lodged.lodge("templates", "add", name, str(tmp_path / "a"), "--user", "0")[0] == 2
    assert name not in names(client)


# ---- refused ----------------------------------------------------------------------------------


def test_wrong_usage(lodged, tmp_path):
    for words in (("add",), ("add", "x"), ("add", "x", "y", "z"), ("add", "x", "y", "--snapshot", "s"),
                  ("add", "x", "--snapshot", "s", "--oci"), ("add", "x", "y", "--tenant", "t"), ("show",), ("rm",), ("env",),
                  ("x",), ("ls", "x"), ("add", "x", "y", "--require-limits")):
        status, out, err = lodged.lodge("templates", *words, "--url", "http://127.0.0.1:1")
        assert status == 2 and out == b"" and err.startswith("lodge: "), (words, err)
    t = Terminal("templates", "add", "x", "-", env=lodged.env())
    assert t.end() == 2 and b"refusing to read an archive from a terminal" in t.seen
    assert lodged.lodge("templates", "add", "x", str(tmp_path), "--url", "http://127.0.0.1:1")[0] == 125


def test_bad_sources_are_refused(lodged, client, name, tmp_path):
    (tmp_path / "a").write_bytes(b"not a tar at all" * 100)
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "a")))
    with open(tmp_path / "a", "ab") as f:  # the error arrives after the whole upload
        f.truncate(100 << 20)
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "a")), "invalid archive", "header checksum")
    (tmp_path / "a").write_bytes(gzip.compress(tar(("x", bytes(100000))))[:60])
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "a")))
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "a"), "--oci"), "index.json")
    failed(lodged.lodge("templates", "add", name, str(tmp_path / "nosuch")), "nosuch")
    failed(lodged.lodge("templates", "add", "Bad Name", str(tmp_path / "a")), "a-z")
    failed(lodged.lodge("templates", "add", "host", str(tmp_path / "a")), "built in")
    assert names(client) == ["host", "empty"] and wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"


def test_an_existing_name_is_refused(lodged, client, name, tmp_path):
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    ok(lodged.lodge("templates", "add", name, str(tmp_path / "a")))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "large").write_bytes(bytes(50 << 20))
    for source in ("a", "d"):
        failed(lodged.lodge("templates", "add", name, str(tmp_path / source), "--env", "A=1"), "already exists",
               "lodge template rm mine")
    assert client.get("/v1/templates/mine").json["template"]["env"] == {}  # the existing template did not change


def test_templates_need_the_admin_scope(lodged, client, tmp_path):
    key = client.post("/v1/keys", {"scope": "tenant", "tenant": "acme"}).json
    env = dict(lodged.env(), LODGE_API_KEY=key["secret"])
    assert "host" in ok(lodged.lodge("templates", env=env))
    (tmp_path / "d").mkdir()
    for words in (("add", "x", str(tmp_path / "d")), ("set", "host", "--pids", "9"), ("rm", "--yes", "host")):
        assert lodged.lodge("templates", *words, env=env)[0] == 1
    client.delete("/v1/keys/" + key["key"]["id"])


# ---- rm ---------------------------------------------------------------------------------------


def test_rm(lodged, client, name, tmp_path):
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    for n in (name, "second"):
        ok(lodged.lodge("templates", "add", n, str(tmp_path / "a")))
    sid = client.enter(template=name, asleep=True)
    failed(lodged.lodge("templates", "rm", "--yes", name), "in use by 1 session")
    status, out, err = lodged.lodge("templates", "rm", "--yes", name, "second", "nosuch", "--json")
    answers = [json.loads(line) for line in out.splitlines()]
    assert status == 1 and [a.get("operand") or a for a in answers] == [name, {"removed": "second"}, "nosuch"]
    assert "lodge: mine: " in err and "lodge: nosuch: " in err
    client.delete("/v1/sessions/" + sid)
    t = Terminal("templates", "rm", name, env=lodged.env())
    t.wait("Delete template mine?")
    t.type("\n")
    assert t.end() == 1 and name in names(client)
    assert ok(lodged.lodge("templates", "rm", "--yes", name)) == "removed mine\n"
    assert names(client) == ["host", "empty"]
    failed(lodged.lodge("templates", "rm", "--yes", "host"), "built in")


# ---- interrupted uploads ----------------------------------------------------------------------


def start_half(lodged, name, *words):
    """An upload that has begun and waits for more input."""
    assert wait_for(lambda: not sandboxes(lodged))
    p = lodged.start_lodge("templates", "add", name, "-", *words, stdin=subprocess.PIPE)
    p.stdin.write(tiny_root(("x", bytes(1 << 20)))[:1 << 19])
    p.stdin.flush()
    assert wait_for(lambda: sandboxes(lodged))
    return p


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["int", "term", "kill"])
def test_an_interrupted_upload_leaves_nothing(lodged, client, name, signo):
    p = start_half(lodged, name, "--env", "A=1")
    p.send_signal(signo)
    status = p.wait(180)
    assert status == (-signo if signo == signal.SIGKILL else 128 + signo)
    p.stdin.close()
    assert wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"
    assert name not in names(client)


def test_an_interrupted_upload_of_a_huge_directory(lodged, client, name, tmp_path):
    (tmp_path / "d").mkdir()
    for i in range(4):  # sparse files, sent as zeros
        with open(tmp_path / "d" / f"f{i}", "wb") as f:
            f.truncate(8 << 30)
    t = Terminal("templates", "add", name, str(tmp_path / "d"), env=lodged.env())
    t.wait("/s")  # progress
    os.kill(t.process.pid, signal.SIGINT)
    assert t.end() == 130
    assert name not in names(client) and wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"


def test_a_killed_service_during_an_upload(lodged, client, name):
    p = start_half(lodged, name)
    lodged.crash()
    p.stdin.close()
    assert p.wait(180) == 125
    err = p.stderr.read().decode()
    assert err.startswith("lodge: ") and err.count("\n") == 1, err
    lodged.start()
    assert name not in names(client) and wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"


class Between:
    """A proxy that forwards to lodged, except for requests with one method, which it holds."""

    def __init__(self, lodged, method):
        self.to, self.method, self.held = (lodged.host, lodged.port), method, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        data = connection.recv(65536)
        if data.startswith(self.method):
            self.held.set()
            connection.recv(1)  # until the client closes
            return
        with connection, socket.create_connection(self.to) as there:
            threading.Thread(target=self.copy, args=(there, connection), daemon=True).start()
            while data:
                there.sendall(data)
                data = connection.recv(65536)

    @staticmethod
    def copy(source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # one end has closed


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_an_interrupt_between_files_and_settings_leaves_nothing(lodged, client, name, tmp_path, signo):
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    between = Between(lodged, b"PATCH ")
    p = lodged.start_lodge("templates", "add", name, str(tmp_path / "a"), "--env", "A=1",
                           env=dict(lodged.env(), LODGE_URL=between.url))
    assert between.held.wait(180) and name in names(client), p.poll()
    p.send_signal(signo)
    assert p.wait(180) == 128 + signo, p.stderr.read()
    between.listener.close()
    assert name not in names(client)


def as_other(lodged, *words):
    return subprocess.run([LODGE, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(lodged.env(), LODGE_URL=f"http://{lodged.host}:{lodged.port}"),
                          user=OTHER, group=OTHER, extra_groups=[], timeout=180, check=False)


@needs_busybox
def test_unreadable_files_are_an_error(lodged, client, name, rootfs):
    """An ordinary user can upload what they may read; one unreadable file fails the upload."""
    for at in (rootfs, *rootfs.parents):
        if str(at).startswith(tempfile.gettempdir() + "/"):
            at.chmod(0o755)
    secret = rootfs / "app" / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    done = as_other(lodged, "templates", "add", name, str(rootfs))
    assert done.returncode == 1 and b"secret" in done.stderr and b"tar failed" in done.stderr, done
    assert name not in names(client) and wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"
    secret.unlink()
    done = as_other(lodged, "templates", "add", name, str(rootfs))
    assert done.returncode == 0, done
    assert sh(client, "cat /app/x") == "hello"


def test_missing_tar_is_reported(lodged, client, name, tmp_path):
    env = dict(lodged.env(), PATH=str(tmp_path))
    failed(lodged.lodge("templates", "add", name, str(tmp_path), env=env), "tar is not installed")
    assert name not in names(client)


# ---- listing ----------------------------------------------------------------------------------


def test_listing(lodged, tmp_path):
    rows = ok(lodged.lodge("templates")).splitlines()
    assert [r.split()[0] for r in rows] == ["TEMPLATE", "host", "empty"] and rows[1].endswith("built in")
    assert ok(lodged.lodge("templates", "ls")).splitlines() == rows
    assert json.loads(ok(lodged.lodge("templates", "--json")))["templates"][0]["name"] == "host"
    assert "built in" in ok(lodged.lodge("templates", "show", "host"))
    with open(os.path.join(SOURCE, "man/lodge-template.1.scd"), encoding="utf-8") as f:
        assert "The service lists both, *--local* only _host_." in f.read()
    assert ok(lodged.lodge("template", "ls", "-q", "--data", str(tmp_path))).split() == ["host"]
    failed(lodged.lodge("templates", "show", "nosuch"), "nosuch")


def test_env_shows_the_environment_of_a_template(lodged, client, name, tmp_path):
    (tmp_path / "a").write_bytes(tiny_root(("x", b"1")))
    ok(lodged.lodge("templates", "add", name, str(tmp_path / "a")))
    failed(lodged.lodge("templates", "env", name), "--look")
    failed(lodged.lodge("templates", "env", name, "--look"), "/bin/sh")
    failed(lodged.lodge("templates", "env", "nosuch"), 'no template "nosuch"')
    text = ok(lodged.lodge("templates", "env", "host", "--look"))
    assert "env" in text and "PATH=" in text and "kernel" in text
    answer = json.loads(ok(lodged.lodge("templates", "env", "host", "--json")))["environment"]
    assert answer["current"] and answer["env"]["PATH"]


def test_an_unknown_template_is_not_looked_for_on_this_machine(lodged):
    status, _, err = lodged.lodge("new", "--template", "nosuch")
    assert status == 1 and "does not exist" in err and "lodge template " not in err, err  # which lists the local store


@needs_busybox
def test_an_image_cannot_write_to_the_terminal(lodged, client, name, tmp_path):
    """Its settings and names are shown without control characters, of the service and of this machine."""
    odd = "\x1b[2J\u009b2J\u202e\x7f"
    (tmp_path / "good").write_bytes(docker_save([root()], {"WorkingDir": "/" + odd, "Env": ["A=" + odd]}))
    bad = docker_parts([root()], {})
    bad["manifest.json"] = json.dumps([{"Config": odd, "Layers": [odd]}]).encode()
    (tmp_path / "bad").write_bytes(tar(*bad.items()))
    for local in ([], ["--local"]):
        env = lodged.env(LODGE_DATA=str(tmp_path / "data"), NO_COLOR="1")
        shown = [("template", "create", name, str(tmp_path / "good")), ("template", "create", "other", str(tmp_path / "bad")),
                 ("template", "ls"), ("template", "ls", "--json"), *([] if local else [("template", "inspect", name)])]
        for words in shown:
            t = Terminal(*words, *local, env=env, only_output=True)
            assert t.end() == int("other" in words), (words, t.seen)
            seen = re.sub(rb"\x1b\[(K|\?25[lh])|\r", b"", t.seen).decode()  # of the progress
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", seen), (words, t.seen)
