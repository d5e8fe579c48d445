# SPDX-License-Identifier: Apache-2.0
"""/v1/templates: creating templates from archives, images and snapshots."""
import contextlib
import gzip
import http.client
import lzma
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile

import pytest

from client import KEY, Lodged, wait_for
from plain_store import Plain
from roots import PASSWD, entry, layout, link, needs_busybox, root, sandboxes, tar, tiny_root
from ws import Terminal

TAR = {"Content-Type": "application/x-tar"}


@pytest.fixture(scope="module")
def plain():
    with contextlib.closing(Plain()) as d:
        yield d


@pytest.fixture(params=["usual", "plain"])
def each(request, lodged, plain):
    """A client for each kind of store."""
    client = (lodged if request.param == "usual" else plain).client()
    yield client
    client.clear()


@pytest.fixture
def name(client, request):
    """The name of a template that is removed after the test, or with lodged if layers of snapshots still use it."""
    name = re.sub("[^a-z0-9]+", ".", request.node.name.lower())[-60:].strip(".")
    yield name
    client.clear()
    client.delete("/v1/templates/" + name)


def upload(client, name, data, status=201, query="", headers=None):
    answer = client.post(f"/v1/templates/{name}{query}", data, headers=headers or TAR)
    assert answer.status == status, answer
    return answer


def sh(client, template, command, **more):
    at = "/v1/sessions/" + client.enter(template=template, **more)
    answer = client.post(at + "/exec", {"argv": ["/bin/sh", "-c", command]})
    assert answer.status == 200, answer
    return answer.json["stdout"]


def names(client):
    return [t["name"] for t in client.get("/v1/templates").json["templates"]]


def files_of(lodged, name):
    """Whether the directory store has files of the template."""
    return os.path.exists(os.path.join(lodged.keeper_home(), "store", f"t-{name}"))


# ---- without bash -----------------------------------------------------------------------------


@needs_busybox
def test_without_bash_commands_run_in_sh(client, name):
    """Its argv[0] is sh, because some shells choose their mode by it."""
    upload(client, name, root())
    sid = client.enter(template=name)
    for more in ({}, {"env": {"BASH_ENV": "/x"}}, {"pty": {"rows": 24, "cols": 80}}):
        answer = client.post(f"/v1/sessions/{sid}/exec", {"command": "echo $0 $((6 * 7))", **more})
        assert answer.status == 200 and answer.json["stdout"].split() == ["sh", "42"], answer
    answer = client.post(f"/v1/sessions/{sid}/exec", {"argv": ["bash", "-l"]})
    assert answer.json["exit_code"] == 127 and answer.json["stderr"] == "lodge: bash: not found\n", answer
    for query in ("", "command=echo+$0;+read+x;+eval+%22$x%22"):
        with Terminal(client, sid, query) as t:
            t.type("echo it is $0.; exit 3\n")
            t.run()
            assert b"it is sh.\r\n" in t.output and t.exit["exit_code"] == 3, t.output


@needs_busybox
def test_without_bash_a_policy_allows_an_interactive_sh(client, name):
    if client.get("/health").json["policy_enforcement"] == "none":
        pytest.skip("needs Landlock")
    upload(client, name, root())
    assert client.post("/v1/policies", {"name": name, "commands": {"allow": ["none"]}}).status == 201
    try:
        with Terminal(client, client.enter(template=name, policy=name)) as t:
            t.type("echo it is $0.; exit 3\n")
            t.run()
            assert b"it is sh.\r\n" in t.output and t.exit["exit_code"] == 3, t.output
    finally:
        client.clear()
        client.delete("/v1/policies/" + name)


# ---- archives ---------------------------------------------------------------------------------


@needs_busybox
def test_a_tar_becomes_a_template(client, name):
    t = upload(client, name, root(("app", None), ("app/x", b"hello"))).json["template"]
    assert t["name"] == name and not t["builtin"] and t["class"] == "user"
    assert t["from"] == {"kind": "tar"} and t["created_at"] > 10 ** 12 and t["size_bytes"] > 100000
    assert t["sessions"] == 0 and t["policy"] is None and t["limits"] == {} and t["env"] == {}
    assert name in names(client)
    assert sh(client, name, "cat /app/x; id -u; ls /") == "hello1000\napp\nbin\ndev\netc\nhome\nproc\nroot\ntmp\n"
    assert client.get(f"/v1/templates/{name}").json["template"] == dict(t, sessions=1)


@needs_busybox
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress,
                                  lambda d: subprocess.run(["zstd", "-c"], input=d, stdout=subprocess.PIPE,
                                                           check=True).stdout], ids=["gzip", "xz", "zstd"])
def test_compressed_tars(client, name, pack):
    if pack not in (gzip.compress, lzma.compress) and not shutil.which("zstd"):
        pytest.skip("needs zstd")
    upload(client, name, pack(root(("x", b"packed"))), headers={"Content-Type": "application/octet-stream"})
    assert sh(client, name, "cat /x") == "packed"


@needs_busybox
def test_an_image_becomes_a_template(client, name):
    config = {"Env": ["PATH=/bin", "FROM=image"], "WorkingDir": "/app", "User": "other:staff"}
    data = layout([gzip.compress(root(("app", None), ("app/old", b"1"), ("app/both", b"1"))),
                   tar(("app/.wh.old", b""), ("app/both", b"2"))], config)
    answer = upload(client, name, gzip.compress(data), query="?format=oci").json
    t = answer["template"]
    assert t["from"] == {"kind": "oci"} and answer["wants_root"] is False
    assert (t["run_as"], t["workdir"], t["env"]) == ("2000:2000", "/app", {"PATH": "/bin", "FROM": "image"})
    assert sh(client, name, "pwd; ls; cat both; id -u; echo $FROM") == "/app\nboth\n22000\nimage\n"


@needs_busybox
def test_an_image_that_expects_root(client, name):
    answer = upload(client, name, layout([root()], {}), query="?format=oci").json
    assert answer["wants_root"] is True and answer["template"]["class"] == "user"
    assert client.call("PATCH", f"/v1/templates/{name}", {"class": "root"}).status == 200
    assert sh(client, name, "id -u") == "0\n"


BAD = [
    (b"", "", "empty"),
    (b"not a tar at all" * 100, "", ""),
    (b"\x1f\x8bbroken gzip", "", "decompress"),
    (b"\xfd7zXZ\0broken", "", "decompress"),
    (tar(("x", b"1" * 5000))[:3000], "", ""),
    (tar(("x", b"1")), "?format=oci", "index.json: not in the archive"),
    (tar(("index.json", b"{")), "?format=oci", "index.json"),
    (tar(("oci-layout", b"{}"), ("index.json", b'{"manifests":[{"digest":"sha256:../../../../etc/passwd"}]}')), "?format=oci", "digest"),
    (tar(("index.json", link("/etc/passwd"))), "?format=oci", "index.json"),
    (layout([tar(("x", b""))], {}, "riscv64"), "?format=oci", "no variant for linux/"),
    (layout([tar(("x", b""))], {"User": "nosuch-user"}), "?format=oci", "nosuch-user"),
    (layout([b"\x1f\x8bbroken"], {}), "?format=oci", "layer 1"),
    (tar(), "", "the archive or directory has no files"),
    (tar(("proc", None), ("dev", None)), "", "the archive or directory has no files"),
    (tar(("etc", None), ("etc/passwd", PASSWD)), "", "no shell: neither /bin/sh nor /bin/bash is a program"),
    (tar(("rootfs/bin/sh", b"#!")), "?format=rootfs", "must be the root of a file system"),
    (tar(("bin/sh", entry(tarfile.REGTYPE, mode=0o644))), "", "no shell"),
    (tar(("bin/sh", link("/nosuch"))), "", "no shell"),
    (tar(("bin/sh", None), ("bin/bash", link("/dev/null"))), "", "no shell"),
    (layout([tar()], {}), "", "the image has no files"),
]


@pytest.mark.parametrize("data, query, words", BAD)
def test_a_bad_archive_leaves_nothing(client, lodged, data, query, words):
    before = sandboxes(lodged)
    answer = upload(client, "bad", data, 400, query)
    assert answer.code == "INVALID" and words in answer.json["error"]["message"]
    assert "bad" not in names(client) and not files_of(lodged, "bad")
    assert wait_for(lambda: set(sandboxes(lodged)) <= set(before)), "a sandbox is left"
    assert not os.path.exists(os.path.join(lodged.home, "templates", "bad"))


def test_bad_requests_are_refused_before_the_body(client, lodged):
    data = tar(("x", b"1"))
    for bad in ("Bad", "a b", "..", "x" * 64, "-x"):
        assert upload(client, bad.replace(" ", "%20"), data, 400).code == "INVALID"
    for builtin in ("host", "empty"):
        assert upload(client, builtin, data, 409).code == "CONFLICT"
    assert upload(client, "x", data, 400, "?format=zip").code == "INVALID"
    for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x"):
        answer = upload(client, "x", data, 415, headers={"Content-Type": kind})
        assert answer.code == "UNSUPPORTED_MEDIA_TYPE" and 'send the header "Content-Type: application/x-tar"' in answer.message
    assert "x" not in names(client) and not sandboxes(lodged)


def test_an_archive_needs_no_content_type(client, name):
    answer = client.post("/v1/templates/" + name, tiny_root(("x", b"1")))
    assert answer.status == 201, answer


def test_an_existing_name_is_refused(client, name):
    upload(client, name, tiny_root(("x", b"1")))
    assert upload(client, name, tar(("x", b"2")), 409).code == "CONFLICT"


def test_of_concurrent_uploads_one_succeeds(client, lodged, name):
    from concurrent.futures import ThreadPoolExecutor
    data = tiny_root(*((f"f{i}", bytes(10000)) for i in range(50)))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: client.post(f"/v1/templates/{name}", data, headers=TAR).status, range(4)))
    assert sorted(found) == [201, 409, 409, 409]
    assert wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"


# ---- hostile archives -------------------------------------------------------------------------


@pytest.mark.parametrize("evil", [
    [("/var/tmp/lodge-escaped", b"x")],
    [("../" * 20 + "var/tmp/lodge-escaped", b"x")],
    [("a/../../../../../var/tmp/lodge-escaped", b"x")],
    [("d", link("/var/tmp")), ("d/lodge-escaped", b"x")],
    [("d", link("../../../../../../var/tmp")), ("d/lodge-escaped", b"x")],
    [("f", link("/var/tmp/lodge-escaped")), ("f", entry(tarfile.LNKTYPE, "../../var/tmp/lodge-escaped"))],
    [("h", entry(tarfile.LNKTYPE, "/etc/passwd"))],
    [("h", entry(tarfile.LNKTYPE, "../../../../etc/passwd"))],
    [("etc", link("/etc")), ("h", entry(tarfile.LNKTYPE, "etc/hostname"))],
], ids=["absolute", "dot-dot", "dot-dot-inside", "link", "relative-link", "link-then-hard-link", "hard-link",
        "hard-link-dot-dot", "hard-link-by-a-link"])
@pytest.mark.parametrize("form", ["rootfs", "oci"])
def test_archives_cannot_escape_their_root(client, lodged, name, evil, form):
    data = tar(*evil)
    answer = client.post(f"/v1/templates/{name}?format={form}",
                         layout([data], {}) if form == "oci" else data, headers=TAR)
    assert not os.path.lexists("/var/tmp/lodge-escaped"), "out"
    assert answer.status in (201, 400), answer
    if answer.status == 400:
        assert name not in names(client)


@needs_busybox
def test_links_of_a_layer_are_resolved_inside_the_root(client, name):
    """A layer may use a link of a lower layer; it leads to its target in the new root."""
    data = layout([root(("lib", link("/usr/lib")), ("usr", None), ("usr/lib", None)),
                   tar(("lib/x", b"inside"))], {})
    upload(client, name, data, query="?format=oci")
    assert sh(client, name, "cat /usr/lib/x") == "inside"


@needs_busybox
def test_devices_are_skipped_and_setuid_files_are_unreachable_on_the_host(client, lodged, name):
    device = dict(devmajor=1, devminor=1)
    upload(client, name, root(("mem", entry(tarfile.CHRTYPE, **device)), ("disk", entry(tarfile.BLKTYPE, **device)),
                              ("fifo", entry(tarfile.FIFOTYPE)),
                              ("suid", entry(tarfile.REGTYPE, mode=0o6755, uid=0, gid=0))))
    assert sh(client, name, "ls /mem /disk /fifo 2>/dev/null; stat -c '%a %u' /suid") == "6755 0\n"
    # on the host only root can reach the file
    if files_of(lodged, name):
        store = os.path.join(lodged.keeper_home(), "store")
        assert not os.stat(store).st_mode & 0o077 or not os.stat(lodged.home).st_mode & 0o077


@pytest.fixture(scope="module")
def small():
    """A lodged with a small limit for the size of uploads."""
    with contextlib.closing(Lodged(template_size="2M")) as d:
        yield d


@pytest.mark.parametrize("pack, size, query", [
    (bytes, 8, ""), (gzip.compress, 64, ""), (lambda d: layout([gzip.compress(d)], {}), 64, "?format=oci"),
], ids=["plain", "gzip", "layer"])
def test_a_bomb_is_bounded(small, pack, size, query):
    client = small.client()
    answer = upload(client, "bomb", pack(tar(("zeros", bytes(size << 20)))), 413, query)
    assert answer.code == "TOO_LARGE" and "2097152" in answer.json["error"]["message"]
    assert names(client) == ["host", "empty"] and wait_for(lambda: not sandboxes(small))


def begin_upload(lodged, name, length):
    connection = socket.create_connection((lodged.host, lodged.port))
    connection.sendall(f"POST /v1/templates/{name} HTTP/1.1\r\nHost: {lodged.host}\r\nAuthorization: Bearer {KEY}\r\n"
                       f"Content-Type: application/x-tar\r\nContent-Length: {length}\r\n\r\n".encode())
    return connection


@pytest.fixture
def short():
    """A lodged with a small limit for the time of uploads."""
    with contextlib.closing(Lodged(template_time="3s")) as d:
        yield d


def test_slow_uploads_are_aborted(short):
    """The client sends a byte now and then, so the connection is never idle."""
    data, sent = tiny_root(("x", bytes(100000))), 50000
    with begin_upload(short, "slow", len(data)) as connection:
        connection.sendall(data[:sent])
        assert wait_for(lambda: sandboxes(short))

        def trickle():
            nonlocal sent
            sent += connection.send(data[sent:sent + 1])
            return not sandboxes(short)

        assert wait_for(trickle, pause=0.2), "the sandbox still exists"
        connection.sendall(data[sent:])  # the response arrives after it
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 504
    assert names(short.client()) == ["host", "empty"]


def test_an_aborted_upload_leaves_nothing(client, lodged):
    before = sandboxes(lodged)
    data = tiny_root(("x", bytes(1 << 20)))
    for cut in (300000, len(data) - 512):  # the second has all files and the first half of the end marker
        with begin_upload(lodged, "cut", len(data)) as connection:
            connection.sendall(data[:cut])
            assert wait_for(lambda: len(sandboxes(lodged)) > len(before))
        assert wait_for(lambda: set(sandboxes(lodged)) <= set(before)), "a sandbox is left"
        assert "cut" not in names(client) and not files_of(lodged, "cut")


# ---- settings ---------------------------------------------------------------------------------


@needs_busybox
def test_settings_are_the_defaults_of_new_sessions(client, name):
    upload(client, name, root())
    answer = client.call("PATCH", f"/v1/templates/{name}", {
        "run_as": "other", "workdir": "/tmp", "env": {"A": "1", "B": "2"},
        "limits": {"memory_bytes": 64 << 20, "cpus": 0.5}})
    assert answer.status == 200, answer
    t = answer.json["template"]
    assert (t["run_as"], t["workdir"], t["env"]) == ("other", "/tmp", {"A": "1", "B": "2"})
    assert t["limits"] == {"memory_bytes": 64 << 20, "cpus": 0.5} and t["from"] == {"kind": "tar"}
    assert sh(client, name, "id -u; pwd; echo $A$B", key="k") == "2000\n/tmp\n12\n"
    limits = client.get("/v1/sessions/key:k").json["session"]["limits"]
    assert (limits["memory_bytes"], limits["cpus"], limits["pids"]) == (64 << 20, 0.5, 256)
    answer = client.call("PATCH", f"/v1/templates/{name}", {"env": {"C": "3"}, "run_as": None, "limits": None})
    t = answer.json["template"]
    assert (t["run_as"], t["workdir"], t["env"], t["limits"]) == (None, "/tmp", {"C": "3"}, {})
    # an existing session gets them with its next sandbox, and its record shows them
    assert client.post("/v1/sessions/key:k/hibernate").status == 200
    assert sh(client, name, "id -u; echo $A$C", key="k") == "1000\n3\n"
    assert client.get("/v1/sessions/key:k").json["session"]["limits"]["memory_bytes"] == 512 << 20


@pytest.mark.parametrize("body, words", [
    ({"colour": 1}, "colour"), ({"workdir": "relative"}, "workdir"), ({"run_as": "0"}, "run_as"),
    ({"run_as": "99999999"}, "run_as"), ({"run_as": ""}, "run_as"), ({"class": "king"}, "class"),
    ({"limits": {"fuel": 1}}, "fuel"), ({"limits": {"pids": 1}}, "pids"), ({"env": ["A=1"]}, "env"),
    ({"env": {"A=": "1"}}, "env"), ({"policy": 7}, "policy"), ({"layer": "lay_x"}, "layer"), ({"directory": "/etc"}, "directory"),
])
def test_bad_settings_change_nothing(client, name, body, words):
    before = upload(client, name, tiny_root(("x", b""))).json["template"]
    answer = client.call("PATCH", f"/v1/templates/{name}", body)
    assert answer.status == 400 and words in answer.json["error"]["message"], answer
    assert client.get(f"/v1/templates/{name}").json["template"] == before


def test_oversized_settings_are_refused(client, name):
    upload(client, name, tiny_root(("x", b"")))
    answer = client.call("PATCH", f"/v1/templates/{name}", {"env": {"A": "x" * 70000}})
    assert answer.status == 413 and answer.code == "TOO_LARGE"
    assert client.get(f"/v1/templates/{name}").json["template"]["env"] == {}
    answer = upload(client, name + ".oci", layout([tar(("x", b""))], {"Env": ["A=" + "x" * 70000]}), 413, "?format=oci")
    assert name + ".oci" not in names(client)


def test_unknown_and_built_in_templates(client):
    for call in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        for unknown in ("nosuch", "Bad..Name", "%2e%2e"):
            assert client.call(call[0], "/v1/templates/" + unknown, call[1]).status == 404
    for builtin in ("host", "empty"):
        assert client.get("/v1/templates/" + builtin).json["template"]["builtin"]
        assert client.call("PATCH", "/v1/templates/" + builtin, {}).status == 409
        assert client.delete("/v1/templates/" + builtin).status == 409
    assert client.call("PATCH", "/v1/templates/nosuch", {"policy": "x"}).status == 404
    assert client.post("/v1/sessions", {"template": "nosuch"}).status == 404


def test_an_unknown_policy_is_refused(client, name):
    upload(client, name, tiny_root(("x", b"")))
    assert client.call("PATCH", f"/v1/templates/{name}", {"policy": "nosuch"}).status == 404


def test_templates_need_the_admin_scope(client, lodged, name):
    upload(client, name, tiny_root(("x", b"")))
    key = client.post("/v1/keys", {"scope": "tenant", "tenant": "acme"}).json["secret"]
    token = client.post("/v1/keys", {"scope": "session", "tenant": "acme", "user": "u"}).json["secret"]
    for caller, looks in ((lodged.client(key), 200), (lodged.client(token), 403)):
        assert caller.get("/v1/templates").status == looks
        assert caller.get(f"/v1/templates/{name}").status == looks
        for method, path, body in (("POST", "/v1/templates", {"name": "y", "snapshot": "s"}),
                                   ("PATCH", f"/v1/templates/{name}", {}), ("DELETE", f"/v1/templates/{name}", None)):
            assert caller.call(method, path, body).status == 403
        assert upload(caller, "y", tar(("x", b"")), 403).code == "DENIED"
    assert lodged.client("wrong-key-0123456789").get("/v1/templates").status == 401


# ---- removing ---------------------------------------------------------------------------------


@needs_busybox
def test_a_template_in_use_cannot_be_removed(client, name):
    upload(client, name, root())
    at = "/v1/sessions/" + client.enter(template=name, key="k")
    answer = client.delete(f"/v1/templates/{name}")
    assert answer.status == 409 and "1 session" in answer.json["error"]["message"]
    snapshot = client.post(at + "/snapshots", {}).json["snapshot"]["id"]
    client.delete(at)
    answer = client.delete(f"/v1/templates/{name}")
    assert answer.status == 409, "a snapshot uses it"
    assert client.delete("/v1/snapshots/" + snapshot).status == 204


def test_a_session_without_a_sandbox_counts_as_use(client, name):
    upload(client, name, tiny_root(("x", b"")))
    at = "/v1/sessions/" + client.enter(template=name, asleep=True)
    assert client.delete(f"/v1/templates/{name}").status == 409
    client.delete(at)
    answer = client.delete(f"/v1/templates/{name}")
    assert answer.status == 200 and answer.json == {"removed": name}
    assert client.get(f"/v1/templates/{name}").status == 404
    assert client.delete(f"/v1/templates/{name}").status == 404


# ---- snapshots --------------------------------------------------------------------------------


def run(client, at, command):
    answer = client.post(at + "/exec", {"command": command})
    assert answer.status == 200, answer
    return answer.json["stdout"]


def snapshot_of(client, at):
    answer = client.post(at + "/snapshots", {})
    assert answer.status == 201, answer
    return answer.json["snapshot"]["id"]


def test_a_snapshot_becomes_a_template(each, name):
    client = each
    at = "/v1/sessions/" + client.enter(key="source")
    run(client, at, "echo made >made; mkdir -p d; echo x >d/x")
    snapshot = snapshot_of(client, at)
    run(client, at, "echo later >made")
    answer = client.post("/v1/templates", {"name": name, "snapshot": snapshot, "env": {"A": "1"},
                                           "limits": {"memory_bytes": 77 << 20}})
    assert answer.status == 201, answer
    t = answer.json["template"]
    assert t["from"] == {"kind": "snapshot", "snapshot": snapshot} and t["env"] == {"A": "1"}
    # it no longer depends on the snapshot
    assert client.delete("/v1/snapshots/" + snapshot).status == 204
    assert client.delete(at).status == 200
    answer = client.post("/v1/sessions", {"template": name, "key": "one"})
    assert answer.status == 201 and answer.json["outcome"] == "created" and not answer.json["state_lost"]
    s = answer.json["session"]
    assert s["template"] == name and s["limits"]["memory_bytes"] == 77 << 20
    one, two = "/v1/sessions/" + s["id"], "/v1/sessions/" + client.enter(template=name)
    assert run(client, one, "cat made d/x; echo $A; echo mine >made; cat /etc/passwd | wc -l") != ""
    assert run(client, two, "cat made; echo $A") == "made\n1\n"
    # its sessions hibernate, take snapshots and fork like others
    assert client.post(one + "/hibernate").status == 200
    assert run(client, one, "cat made; echo $A") == "mine\n1\n"
    second = snapshot_of(client, one)
    three = client.post("/v1/sessions", {"snapshot": second, "template": name}).json["session"]
    assert three["template"] == name
    assert run(client, "/v1/sessions/" + three["id"], "cat made; echo $A") == "mine\n1\n"
    fork = client.post(one + "/fork", {}).json["sessions"][0]
    assert fork["template"] == name and run(client, "/v1/sessions/" + fork["id"], "cat made") == "mine\n"
    assert client.get(f"/v1/templates/{name}").json["template"]["sessions"] == 4
    assert client.delete(f"/v1/templates/{name}").status == 409
    client.clear()
    client.delete("/v1/snapshots/" + second)
    assert client.delete(f"/v1/templates/{name}").status == 200


@needs_busybox
def test_a_promoted_snapshot_inherits_the_settings_of_its_template(each, name):
    client = each
    upload(client, name, root())
    client.call("PATCH", f"/v1/templates/{name}", {"env": {"A": "1", "B": "1"}, "workdir": "/tmp"})
    at = "/v1/sessions/" + client.enter(template=name)
    client.post(at + "/exec", {"argv": ["/bin/sh", "-c", "echo x >/tmp/x"]})
    snapshot = snapshot_of(client, at)
    answer = client.post("/v1/templates", {"name": "second", "snapshot": snapshot, "env": {"B": "2"}})
    assert answer.status == 201, answer
    try:
        assert answer.json["template"]["workdir"] == "/tmp"
        assert sh(client, "second", "cat x; echo $A$B", key="s") == "x\n12\n"
        client.delete("/v1/sessions/key:s")
        client.delete(at)
        client.delete("/v1/snapshots/" + snapshot)
        # its files are a layer over the first template
        assert client.delete(f"/v1/templates/{name}").status == 409
    finally:
        client.clear()
        assert client.delete("/v1/templates/second").status == 200


def test_invalid_promotions_are_refused(client, lodged, name):
    at = "/v1/sessions/" + client.enter(key="source")
    snapshot = snapshot_of(client, at)
    for body, status in (({"name": name}, 400), ({"snapshot": snapshot}, 400),
                         ({"name": "Bad", "snapshot": snapshot}, 400),
                         ({"name": "host", "snapshot": snapshot}, 409), ({"name": name, "snapshot": "snp_none"}, 404),
                         ({"name": name, "snapshot": snapshot, "policy": "nosuch"}, 404),
                         ({"name": name, "snapshot": snapshot, "workdir": "x"}, 400),
                         ({"name": name, "snapshot": snapshot, "tenant": "acme"}, 404),
                         ({"name": name, "directory": "/usr"}, 400), ({"name": name, "commands": []}, 400)):
        assert client.post("/v1/templates", body).status == status, body
    assert name not in names(client)
    assert client.post("/v1/templates", {"name": name, "snapshot": snapshot}).status == 201
    assert client.post("/v1/templates", {"name": name, "snapshot": snapshot}).status == 409
    client.delete("/v1/snapshots/" + snapshot)


# ---- kills of the daemon ----------------------------------------------------------------------


@pytest.fixture
def own():
    with contextlib.closing(Plain()) as d:
        yield d


@needs_busybox
def test_templates_survive_a_kill(own):
    client = own.client()
    upload(client, "tar", root(("x", b"there")))
    at = "/v1/sessions/" + client.enter(key="source")
    run(client, at, "echo made >made")
    snapshot = snapshot_of(client, at)
    client.post("/v1/templates", {"name": "snap", "snapshot": snapshot, "env": {"A": "1"}})
    client.delete("/v1/snapshots/" + snapshot)
    client.delete(at)
    before = client.get("/v1/templates").json
    own.stop(signal.SIGKILL)
    own.start()
    client = own.client()
    assert client.get("/v1/templates").json == before
    assert sh(client, "tar", "cat /x") == "there"
    assert run(client, "/v1/sessions/" + client.enter(template="snap"), "cat made; echo $A") == "made\n1\n"


def test_a_kill_during_an_upload_leaves_nothing(own):
    data = tiny_root(("x", bytes(4 << 20)))
    with begin_upload(own, "half", len(data)) as connection:
        connection.sendall(data[:1 << 20])
        assert wait_for(lambda: sandboxes(own))
        own.stop(signal.SIGKILL)
    own.start()
    client = own.client()
    assert names(client) == ["host", "empty"] and not files_of(own, "half")
    assert wait_for(lambda: not sandboxes(own)), "a sandbox is left"
    upload(client, "half", data)


@pytest.mark.parametrize("step, there", [("template:marked", False), ("template:sealed", False), ("template:saved", True)])
def test_a_kill_while_a_template_is_created(own, monkeypatch, step, there):
    data = tiny_root(("x", b"1"))
    own.stop()
    monkeypatch.setenv("LODGE_CRASH_AT", step)
    own.start()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        upload(own.client(), "half", data)
    own.process.stdout.close()
    own.process.wait(180)
    monkeypatch.delenv("LODGE_CRASH_AT")
    own.start()
    client = own.client()
    assert ("half" in names(client)) == there and files_of(own, "half") <= there
    assert wait_for(lambda: not sandboxes(own)), "a sandbox is left"
    assert os.listdir(os.path.join(own.home, "templates")) == (["half"] if there else [])
    upload(client, "half", data, 409 if there else 201)
    assert client.delete("/v1/templates/half").status == 200


@pytest.mark.parametrize("step", ["template:removing", "template:dropped"])
def test_a_kill_while_a_template_is_removed(own, monkeypatch, step):
    upload(own.client(), "half", tiny_root(("x", b"1")))
    own.stop()
    monkeypatch.setenv("LODGE_CRASH_AT", step)
    own.start()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        own.client().delete("/v1/templates/half")
    own.process.stdout.close()
    own.process.wait(180)
    monkeypatch.delenv("LODGE_CRASH_AT")
    own.start()
    assert names(own.client()) == ["host", "empty"] and not files_of(own, "half")
    upload(own.client(), "half", tiny_root(("x", b"1")))


def test_a_kill_while_a_snapshot_is_promoted(own, monkeypatch):
    at = "/v1/sessions/" + own.client().enter(key="source")
    snapshot = snapshot_of(own.client(), at)
    own.stop()
    monkeypatch.setenv("LODGE_CRASH_AT", "promote:held")
    own.start()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        own.client().post("/v1/templates", {"name": "half", "snapshot": snapshot})
    own.process.stdout.close()
    own.process.wait(180)
    monkeypatch.delenv("LODGE_CRASH_AT")
    own.start()
    client = own.client()
    assert names(client) == ["host", "empty"]
    assert client.post("/v1/templates", {"name": "half", "snapshot": snapshot}).status == 201


def test_lost_files_are_replaced_by_those_of_the_template(own):
    """The loss is reported."""
    client = own.client()
    at = "/v1/sessions/" + client.enter(key="source")
    run(client, at, "echo made >made")
    client.post("/v1/templates", {"name": "snap", "snapshot": snapshot_of(client, at)})
    client.delete(at)
    at = "/v1/sessions/" + client.enter(template="snap", key="k", asleep=True)
    assert client.get(at).json["session"]["state"] == "hibernated"
    assert run(client, at, "cat made; echo mine >mine") == "made\n"
    lost = client.get(at).json["session"]["sandbox"]
    shutil.rmtree(os.path.join(own.keeper_home(), "store", "k-" + lost))
    client.post(at + "/hibernate")
    assert client.get(at).json["session"]["cause"]["code"] == "gone"
    answer = client.post("/v1/sessions", {"key": "k"})
    assert answer.json["outcome"] == "replaced" and answer.json["state_lost"], answer
    assert run(client, at, "cat made; ls mine 2>&1 | wc -l") == "made\n1\n"
    assert client.post(at + "/hibernate").status == 200
    assert run(client, at, "cat made") == "made\n"


@needs_busybox
def test_what_keeps_a_template_is_named():
    with contextlib.closing(Lodged()) as own:
        client = own.client()
        upload(client, "kept", root())
        at = "/v1/sessions/" + client.enter(template="kept")
        snapshot = client.post(at + "/snapshots", {}).json["snapshot"]["id"]
        answer = client.delete("/v1/templates/kept")
        assert answer.status == 409 and "in use by 1 session" in answer.message, answer
        assert client.delete(at).status == 200

        def refusal():
            answer = client.delete("/v1/templates/kept")
            assert answer.status in (200, 409) and "sealed layer" not in str(answer), answer
            return answer.message if answer.status == 409 else "deleted"
        assert wait_for(lambda: "in use by a snapshot" in refusal())
        assert client.delete("/v1/snapshots/" + snapshot).status == 204
        why = refusal()
        assert why == "deleted" or "still being removed; try again in a minute" in why, why
