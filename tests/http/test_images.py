# SPDX-License-Identifier: Apache-2.0
"""Images as templates: docker save, OCI layouts, digests, shared layers, hostile archives."""
import contextlib
import copy
import gzip
import http.client
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile

import pytest

from client import BUILD, Lodged, wait_for
from plain_store import Plain
from roots import (docker_parts, docker_save, entry, image_config, layout, layout_parts, link, machine, needs_busybox, root,
                   sandboxes, sha256, tar)

TAR = {"Content-Type": "application/x-tar"}


@pytest.fixture(scope="module")
def plain():
    with contextlib.closing(Plain()) as d:
        yield d


@pytest.fixture(params=["usual", "plain"])
def each(request, lodged, plain):
    """A lodged for each kind of store."""
    yield lodged if request.param == "usual" else plain


@pytest.fixture
def name(request):
    return re.sub("[^a-z0-9]+", ".", request.node.name.lower())[-60:].strip(".")


def upload(client, name, data, status=201, query=""):
    answer = client.post(f"/v1/templates/{name}{query}", data, headers=TAR)
    assert answer.status == status, answer
    return answer


def refused(client, data, *words, query="", status=400):
    message = upload(client, "refused", data, status, query).json["error"]["message"]
    assert all(w in message for w in words), message
    assert "refused" not in [t["name"] for t in client.get("/v1/templates").json["templates"]]


def remove(client, *names):
    client.clear()
    for n in names:
        assert wait_for(lambda n=n: client.delete("/v1/templates/" + n).status in (200, 404)), n


def sh(client, template, command):
    at = "/v1/sessions/" + client.enter(template=template)
    answer = client.post(at + "/exec", {"argv": ["/bin/sh", "-c", command]})
    assert answer.status == 200, answer
    return answer.json["stdout"]


def zstd(data):
    return subprocess.run(["zstd", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


CONFIG = {"Env": ["PATH=/bin", "FROM=image"], "WorkingDir": "/app", "User": "other:staff"}


def layers(pack=bytes):
    """Three layers: files, a whiteout with a replaced file, an opaque directory."""
    return [pack(root(("app", None), ("app/old", b"1"), ("app/both", b"1"), ("gone", None), ("gone/x", b"1"),
                      ("gone/deep", None), ("gone/deep/y", b"1"))),
            pack(tar(("app/.wh.old", b""), ("app/both", b"2"))),
            pack(tar(("gone", None), ("gone/.wh..wh..opq", b""), ("gone/z", b"3")))]


# ---- what is imported -------------------------------------------------------------------------


@needs_busybox
@pytest.mark.parametrize("make, query", [(docker_save, ""), (layout, "?format=oci")], ids=["docker", "oci"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
def test_an_image_is_recognized_and_its_layers_are_applied(each, name, make, query, pack):
    if pack is zstd and not shutil.which("zstd"):
        pytest.skip("needs zstd")
    client = each.client()
    answer = upload(client, name, make(layers(pack), CONFIG), query=query).json
    t = answer["template"]
    assert t["from"]["kind"] == "oci" and answer["wants_root"] is False
    assert (t["run_as"], t["workdir"], t["env"]) == ("2000:2000", "/app", {"PATH": "/bin", "FROM": "image"})
    found = sh(client, name, "pwd; ls; cat both; ls /gone; id -u; echo $FROM; ls -a / | cat").split()
    assert found[:6] == ["/app", "both", "2z", "2000", "image", "."], found
    assert not {"manifest.json", "index.json", "oci-layout", "blobs"} & set(found)
    remove(client, name)


@needs_busybox
def test_an_archive_of_podman_with_links_to_its_layers(client, name):
    """podman and old docker link layers that are stored once."""
    parts = docker_parts([root(), tar(("x", b"1"))], {})
    manifest = json.loads(parts["manifest.json"])
    first = manifest[0]["Layers"][0]
    whole = tar(*parts.items(), ("same", None), ("same/layer.tar", link("../" + first)))
    assert upload(client, name, whole).json["wants_root"] is True
    manifest[0]["Layers"][0] = "same/layer.tar"
    parts["manifest.json"] = json.dumps(manifest).encode()
    upload(client, name + ".2", tar(*parts.items(), ("same", None), ("same/layer.tar", link("../" + first))))
    assert sh(client, name + ".2", "cat /x") == "1"
    remove(client, name, name + ".2")


@needs_busybox
def test_a_hard_link_to_a_lower_layer(each, name):
    client = each.client()
    upload(client, name, docker_save([root(("a", b"1")), tar(("b", entry(tarfile.LNKTYPE, "a")))], {}))
    assert sh(client, name, "cat /a /b; [ /a -ef /b ] && echo same").split() == ["11same"]
    remove(client, name)


@needs_busybox
@pytest.mark.parametrize("whiteouts", [
    [".wh.proc", ".wh.dev", ".wh.sys", ".wh.run", ".wh.tmp", ".wh.nosuch", "proc/.wh.1", "dev/.wh.null", "dev/pts/.wh..wh..opq",
     "proc/.wh..wh..opq", "dev/.wh..wh..opq", "etc/.wh.resolv.conf", "etc/.wh.hosts", ".wh..wh.plnk", ".wh..wh.aufs"],
    ["../.wh.etc"], [".wh..wh..opq"],
], ids=["names", "outside", "root"])
def test_whiteouts_of_what_is_mounted(each, name, whiteouts):
    """Images remove /proc, /dev and files that lodge makes; what is mounted there stays."""
    client = each.client()
    last = root() if whiteouts == [".wh..wh..opq"] else tar(("x", b"1"))
    data = docker_save([root(("etc/hosts", b"old"), ("sys", None), ("dev", None), ("dev/null", b""), ("gone", None)),
                        tar(*((w, b"") for w in whiteouts)), last], {})
    if "../.wh.etc" in whiteouts:
        refused(client, data, "layer 2", "..")
        return
    upload(client, name, data)
    found = sh(client, name, "ls -d /proc/self /dev/null /bin/sh; ls /etc /gone 2>&1; echo x > /dev/null && echo works")
    assert found.split()[:3] == ["/bin/sh", "/dev/null", "/proc/self"] and found.endswith("works\n"), found
    assert "hosts" not in found and ("No such file" in found) == (".wh..wh..opq" in whiteouts), found
    remove(client, name)


@needs_busybox
def test_an_opaque_directory_keeps_the_files_of_its_own_layer(each, name):
    client = each.client()
    upload(client, name, docker_save([root(("d", None), ("d/old", b"1"), ("d/e", None), ("d/e/old", b"1")),
                                      tar(("d", None), ("d/new", b"2"), ("d/e/new", b"2"), ("d/.wh..wh..opq", b""))], {}))
    assert sorted(sh(client, name, "find /d").split()) == ["/d", "/d/e", "/d/e/new", "/d/new"]
    remove(client, name)


@needs_busybox
@pytest.mark.parametrize("user, run_as", [
    ("", None), (None, None), ("0", None), ("00", None), ("0:5", None), ("root", None), ("root:root", None), (":5", None),
    ("3000", "3000"), ("3000:4000", "3000:4000"), ("3000:0", "3000"), ("3000:staff", "3000"), ("3000:", "3000"),
    ("65534", "65534"), ("nobody", "65534:65534"), ("other", "2000:2000"), ("other:5", "2000:2000"), ("staff", "2001:2001"),
])
def test_users_of_images(client, name, user, run_as):
    """Numbers are used as they are; group 0 needs class "root", as user 0 does."""
    passwd = b"root:x:0:0::/root:/bin/sh\nother:x:2000:2000::/tmp:/bin/sh\nstaff:x:2001:0::/tmp:/bin/sh\n" \
        b"nobody:x:65534:65534::/:/bin/sh\n"
    answer = upload(client, name, docker_save([root(("etc/passwd", passwd))], {"User": user})).json
    assert (answer["template"]["run_as"], answer["wants_root"]) == (run_as, run_as is None)
    uid, _, gid = (run_as or "1000:1000").partition(":")
    assert sh(client, name, "id -u; id -g").split() == [uid, gid or uid]
    remove(client, name)


@needs_busybox
@pytest.mark.parametrize("user, words", [
    ("99999999999", "65535"), ("65536", "65535"), ("65535", "reserved"), ("65530", "reserved"), ("18446744073709551617", "User"), ("1" * 400, "User"), ("1:65536", "65535"), ("-1", "-1"),
    ("a:b:c", "a:b:c"), ("1:2:3", "1:2:3"), ("1x", "1x"), ("1.0", "1.0"), ("1 ", "User"), ("a\nb", "User"), ("\x1b[2J", "User"),
    ("../x", "User"), ("x" * 300, "User"), ("nosuch", "nosuch"), ("toor", "root"), ("large", "65535"), (1000, "a string"),
    (["a"], "a string"), ({}, "a string"),
], ids=lambda v: re.sub("[^a-z0-9]+", ".", str(v))[:20])
def test_users_of_images_that_are_refused(client, user, words):
    passwd = b"root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nlarge:x:70000:70000::/:/bin/sh\n-1:x:5:5::/:/bin/sh\n"
    refused(client, docker_save([tar(("etc/passwd", passwd))], {"User": user}), words)


@pytest.mark.parametrize("config, words", [
    ({"Env": "A=1"}, "Env must be a list"), ({"Env": ["A=1", 2]}, "Env must be a list"), ({"Env": ["=1"]}, "Env"),
    ({"WorkingDir": 5}, "WorkingDir must be a string"), ({"Env": [f"A{i}=" for i in range(300)]}, "environment variables"),
])
def test_configurations_of_images_that_are_refused(client, config, words):
    refused(client, docker_save([tar(("x", b""))], config), words, status=413 if "variables" in words else 400)


@needs_busybox
def test_many_layers(each, name):
    """More than the overlay has room for: the last ones become one."""
    client = each.client()
    data = docker_save([root()] + [tar((f"f{i}", b"%d" % i), ("last", b"%d" % i)) for i in range(39)], {})
    upload(client, name, data)
    assert sh(client, name, "cat /f0 /f13 /f38 /last; ls / | cat").split("\n")[0] == "0133838bin"
    sid = client.enter(template=name)  # the layers of a session fit on top
    for i in range(3):
        assert client.post(f"/v1/sessions/{sid}/exec", {"argv": ["/bin/sh", "-c", f"echo {i} >> /tmp/kept"]}).status == 200
        assert client.post(f"/v1/sessions/{sid}/hibernate").status == 200
    answer = client.post(f"/v1/sessions/{sid}/exec", {"argv": ["/bin/cat", "/tmp/kept", "/f38"]})
    assert answer.json["stdout"] == "0\n1\n2\n38", answer
    remove(client, name)


@needs_busybox
def test_a_root_file_system_with_a_manifest_of_its_own(client, name):
    upload(client, name, root(("manifest.json", b'{"name": "an app"}'), ("index.json", b"{}")))
    assert client.get("/v1/templates/" + name).json["template"]["from"] == {"kind": "tar"}
    assert sh(client, name, "cat /index.json") == "{}"
    remove(client, name)


# ---- what is refused --------------------------------------------------------------------------


def test_an_image_is_never_a_root_file_system(client):
    small = [tar(("x", b""))]
    refused(client, docker_save(small, {}), "format", "docker save", query="?format=rootfs")
    refused(client, layout(small, {}), "format", "OCI", query="?format=rootfs")
    refused(client, tar(("repositories", b"{}"), ("a", None), ("a/layer.tar", small[0])), "docker before 1.10")
    refused(client, tar(("oci-layout", b"{}"), ("blobs", None)), "index.json", "incomplete")
    refused(client, tar(("x", b"1")), "index.json: not in the archive", query="?format=oci")


def without(parts, *names):
    return tar(*((n, data) for n, data in parts.items() if n not in names))


def test_an_incomplete_image_is_never_a_root_file_system(client):
    parts, digest = layout_parts([root()], {}), "a" * 64
    refused(client, without(parts, "oci-layout"), "oci-layout: not in the archive", "index.json", "incomplete")
    refused(client, tar(("index.json", parts["index.json"])), "oci-layout and blobs/sha256: not in the archive", "incomplete")
    refused(client, without(parts, "oci-layout", "index.json"), "index.json and manifest.json: not in the archive", "incomplete")
    layer = ((digest, None), (digest + "/layer.tar", root()))
    for found, files in ((digest + "/layer.tar", layer), (digest + ".json", ((digest + ".json", b"{}"), ("layer.tar", root())))):
        refused(client, tar(*files), "manifest.json: not in the archive", found, "incomplete")
    refused(client, tar(*layer), "manifest.json: not in the archive", query="?format=rootfs")


def test_archives_with_several_images(client):
    parts = docker_parts([tar(("x", b""))], {})
    manifest = json.loads(parts["manifest.json"])
    refused(client, tar(*{**parts, "manifest.json": json.dumps(manifest * 2).encode()}.items()), "2 images")
    parts = layout_parts([tar(("x", b""))], {})
    index = json.loads(parts["index.json"])
    del index["manifests"][0]["platform"]
    index["manifests"] *= 3
    refused(client, tar(*{**parts, "index.json": json.dumps(index).encode()}.items()), "3 images")


def test_images_for_another_machine(client):
    refused(client, layout([tar(("x", b""))], {}, "riscv64"), "no variant for linux/" + machine())
    for more in ({"architecture": "riscv64"}, {"os": "windows"}):
        whole = image_config([tar(("x", b""))], {}, **more)
        refused(client, layout([tar(("x", b""))], {}, whole=whole), "no variant for linux/", [*more.values()][0])


def changed(data):
    """The same length, other bytes, still a tar of one file."""
    assert b"content" in data
    return data.replace(b"content", b"CONTENT")


@pytest.mark.parametrize("what", ["layer", "config", "manifest"])
def test_a_blob_of_a_layout_that_does_not_match_its_digest(client, what):
    parts = layout_parts([tar(("x", b"content"))], {"Env": ["A=content"]})
    index = json.loads(parts["index.json"])
    manifest_at = "blobs/sha256/" + index["manifests"][0]["digest"][7:]
    manifest = json.loads(parts[manifest_at])
    at = {"layer": manifest["layers"][0], "config": manifest["config"], "manifest": index["manifests"][0]}[what]
    at = "blobs/sha256/" + at["digest"][7:]
    parts[at] = parts[at].replace(b'"schemaVersion": 2', b'"schemaVersion": 3') if what == "manifest" else changed(parts[at])
    refused(client, tar(*parts.items()), "does not match its digest", "layer 1" if what == "layer" else at[-64:])


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_layer_of_docker_save_that_does_not_match_its_diff_id(client, lodged, pack):
    parts = docker_parts([pack(tar(("x", b"content"))), pack(tar(("y", b"content")))], {})
    second = json.loads(parts["manifest.json"])[0]["Layers"][1]
    parts[second] = pack(tar(("y", b"CONTENT")))
    refused(client, tar(*parts.items()), "layer 2", "content does not match its digest")
    assert wait_for(lambda: not sandboxes(lodged)), "a sandbox is left"


def test_a_configuration_of_docker_save_that_does_not_match_its_name(client):
    parts = docker_parts([tar(("x", b""))], {"Env": ["A=content"]})
    config = json.loads(parts["manifest.json"])[0]["Config"]
    parts[config] = changed(parts[config])
    refused(client, tar(*parts.items()), config, "does not match its digest")


def edit_manifest(parts, edit):
    """The layout with another manifest, whose digest fits."""
    parts, index = dict(parts), json.loads(parts["index.json"])
    manifest = json.loads(parts.pop("blobs/sha256/" + index["manifests"][0]["digest"][7:]))
    edit(manifest)
    data = json.dumps(manifest).encode()
    parts["blobs/sha256/" + sha256(data)] = data
    index["manifests"][0].update(digest="sha256:" + sha256(data), size=len(data))
    return tar(*{**parts, "index.json": json.dumps(index).encode()}.items())


@pytest.mark.parametrize("edit, words", [
    (lambda m: m["layers"][0].update(size=7), "size differs"),
    (lambda m: m["layers"][0].pop("size"), "no size"),
    (lambda m: m["layers"][0].update(digest="sha512:" + "0" * 128), "not sha256"),
    (lambda m: m["layers"][0].update(digest="sha256:../../../../etc/passwd"), "not sha256"),
    (lambda m: m["layers"][0].update(digest="sha256:" + "0" * 64), "not in the archive"),
    (lambda m: m["layers"].append(m["layers"][0]), "diff_ids"),
    (lambda m: m["layers"].clear(), "no layers"),
    (lambda m: m["layers"].extend([m["layers"][0]] * 128), "more than 128 layers"),
    (lambda m: m["config"].update(digest="sha256:" + "0" * 64), "not in the archive"),
], ids=["size", "no-size", "sha512", "path", "missing", "more-layers", "no-layers", "too-many", "no-config"])
def test_a_manifest_that_lies(client, edit, words):
    data = edit_manifest(layout_parts([tar(("x", b"content"))], {}), edit)
    refused(client, data, words, status=413 if words.startswith("more") else 400)


def test_indexes_inside_each_other(client):
    """Digests make a cycle impossible; a long chain ends."""
    parts = layout_parts([tar(("x", b""))], {})
    index = parts["index.json"]
    for _ in range(8):
        parts["blobs/sha256/" + sha256(index)] = index
        platform = {"os": "linux", "architecture": machine()}
        index = json.dumps({"manifests": [{"digest": "sha256:" + sha256(index), "size": len(index),
                                           "platform": platform}]}).encode()
    refused(client, tar(*{**parts, "index.json": index}.items()), "index.json", "no manifest")


@pytest.mark.parametrize("path, words", [
    ("/etc/passwd", "not the path"), ("../../etc/passwd", "not the path"), ("a/../../etc/passwd", "not the path"),
    ("", "not the path"), (7, "not the path"), ("x" * 300, "not the path"), ("dev/null", "dev/null"),
    ("proc/self/environ", "proc/self/environ"), ("proc/1/maps", "proc/1/maps"), ("nosuch", "not in the archive"), ("a", "not a regular file"),
])
def test_paths_of_docker_save_stay_in_the_archive(client, path, words):
    parts = docker_parts([tar(("x", b""))], {})
    manifest = json.loads(parts["manifest.json"])
    for key, value in (("Layers", [path]), ("Config", path)):
        bad = copy.deepcopy(manifest)
        bad[0][key] = value
        refused(client, tar(*{**parts, "manifest.json": json.dumps(bad).encode(), "a/b": b""}.items()), words)


def test_json_of_an_image_costs_little_memory(client):
    """A value of two bytes takes hundreds while lodged has it parsed."""
    labels = {"Labels": {str(i): "" for i in range(20000)}}
    refused(client, docker_save([tar(("x", b""))], labels), "more than 16384 values")


@pytest.mark.parametrize("target", ["/proc/self/environ", "/dev/zero", "/etc/shadow", "nosuch"])
def test_links_of_the_archive_lead_nowhere(client, target):
    parts = docker_parts([tar(("x", b""))], {})
    layer = json.loads(parts["manifest.json"])[0]["Layers"][0]
    refused(client, tar(*{**parts, layer: link(target)}.items()), layer)


ODD = ["a\x1b[2Jb", "n\nl", "del\x7f", 'q"uo\\te', "c1\u009b2J", "\u202egnp"]


@needs_busybox
def test_odd_characters_of_a_configuration(client, name):
    config = {"Env": [f"V{i}={o}" for i, o in enumerate(ODD)], "WorkingDir": "/tmp/" + "".join(ODD), "Labels": {o: o for o in ODD}}
    t = upload(client, name, docker_save([root()], config)).json["template"]
    assert t["env"] == {f"V{i}": o for i, o in enumerate(ODD)} and t["workdir"] == config["WorkingDir"]
    assert t in client.get("/v1/templates").json["templates"]
    assert sh(client, name, 'pwd; echo "$V1"') == config["WorkingDir"] + "\nn\nl\n"
    remove(client, name)


@needs_busybox
def test_odd_names_in_layers(client, name):
    odd = [o.encode() for o in ODD] + [b"\xff\xfe", b"\xc3"]
    with io.BytesIO() as out:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as t:
            for i, o in enumerate(odd):
                for at, target in (("odd/" + os.fsdecode(o), "x"), (f"odd/{i}", os.fsdecode(o))):
                    info = link(target)
                    info.name = at
                    t.addfile(info)
        layer = out.getvalue()
    upload(client, name, docker_save([root(), layer], {}))
    found = client.get(f"/v1/sessions/{client.enter(template=name)}/files/%2Fodd?list=1")
    assert found.status == 200 and len(found.json["entries"]) == 2 * len(odd), found
    remove(client, name)


def test_odd_characters_in_messages(client):
    """They are replaced, and a newline does not end the message."""
    parts = docker_parts([tar(("x", b""))], {})
    manifest = json.loads(parts["manifest.json"])
    for odd in ODD:
        shown = re.sub(r"[\n\x1b\x7f]", "?", odd).replace("\u009b", " ")
        manifest[0]["Layers"] = [odd]
        refused(client, tar(*{**parts, "manifest.json": json.dumps(manifest).encode()}.items()), f"{shown}: not in the archive")
        refused(client, docker_save([tar((odd + "/../x", b""))], {}), "layer 1", '".." is not allowed')
        whole = image_config([tar(("x", b""))], {}, architecture=odd)
        refused(client, layout([tar(("x", b""))], {}, whole=whole), "made for linux/" + shown)


@pytest.mark.parametrize("bad", [b'"A=\xff\xfe"', b'"A=\\u0000"', b'"A=\\ud800"', b'"A=\x1b"'], ids=["bytes", "nul", "surrogate", "control"])
def test_text_that_is_not_json(client, bad):
    parts = docker_parts([tar(("x", b""))], {})
    manifest = json.loads(parts["manifest.json"])
    manifest[0]["Config"] = "c.json"
    parts["c.json"] = b'{"config":{"Env":[' + bad + b"]}}"
    refused(client, tar(*{**parts, "manifest.json": json.dumps(manifest).encode()}.items()), "c.json:1: ")
    del parts["repositories"]  # the same in manifest.json: it is no root file system
    parts["manifest.json"] = parts["manifest.json"].replace(b'"app:1"', bad)
    refused(client, tar(*parts.items()), "manifest.json:1: ")


# ---- hostile layers ---------------------------------------------------------------------------


ESCAPES = {
    "absolute": [("/var/tmp/lodge-escaped", b"x")],
    "dot-dot": [("../" * 20 + "var/tmp/lodge-escaped", b"x")],
    "link": [("d", link("/var/tmp")), ("d/lodge-escaped", b"x")],
    "hard-link": [("h", entry(tarfile.LNKTYPE, "../../../../etc/passwd"))],
    "hard-link-by-a-link": [("etc", link("/proc/1/root/etc")), ("h", entry(tarfile.LNKTYPE, "etc/hostname"))],
    "whiteout": [(".wh...", b""), ("d/.wh...", b""), (".wh..", b""), (".wh.", b"")],
    "whiteout-by-a-link": [("d", link("/proc")), ("d/.wh.self", b""), ("d/.wh..wh..opq", b"")],
    "device": [("d", entry(tarfile.CHRTYPE, devmajor=1, devminor=1)), ("d", b"over it")],
    "twice": [("f", b"1"), ("f", None), ("f/g", b"2"), ("f", b"3")],
    "link-to-itself": [("l", link("l")), ("l/x", b"")],
}


@pytest.mark.parametrize("below", [[], [("d", link("/var/tmp")), ("etc", link("/etc"))]], ids=["alone", "above"])
@pytest.mark.parametrize("evil", [pytest.param(v, id=k) for k, v in ESCAPES.items()])
def test_layers_cannot_escape_their_root(client, name, evil, below):
    """Also through links of a layer below."""
    answer = client.post(f"/v1/templates/{name}", docker_save([tar(*below, ("x", b"")), tar(*evil)], {}), headers=TAR)
    assert not os.path.lexists("/var/tmp/lodge-escaped"), "out"
    assert answer.status in (201, 400), answer
    remove(client, name)


def test_hard_links_to_what_is_no_file_of_the_archive(client):
    for target in ("etc", "dev/null", "proc/self/environ", "proc/1/root/etc/passwd"):
        refused(client, docker_save([tar(("etc", None), ("h", entry(tarfile.LNKTYPE, target)))], {}), "layer 1", "hard link to", target)


def test_owners_that_no_sandbox_has(client):
    for uid, gid in ((100000, 5), (5, 65536), ((1 << 32) - 1, 5), (5, (1 << 32) - 1)):
        for kind in (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE):
            refused(client, docker_save([tar(("f", entry(kind, "x", uid=uid, gid=gid)))], {}), "layer 1", f"f: owner {uid}:{gid}", "65535")


@needs_busybox
def test_files_of_proc_and_dev_are_skipped(client, name):
    skipped = tar(("proc/1/mem", b"x"), ("proc/a/b/c", b"x"), ("dev/a/b", b"x"), ("dev/shm/x", b"x"), ("dev", link("etc")))
    upload(client, name, docker_save([root(), skipped], {}))
    assert sh(client, name, "ls -d /dev/null /dev/a /dev/shm/x 2> /dev/null") == "/dev/null\n"
    remove(client, name)


@needs_busybox
@pytest.mark.parametrize("over", [(".wh.a", b""), ("a", b""), ("a/.wh..wh..opq", b"")], ids=["whiteout", "file", "opaque"])
def test_a_deep_directory_of_a_lower_layer_is_removed(client, name, over):
    """The overlay cannot rename it."""
    deep = tar(("/".join("a" * 260), b""), ("/".join("a" * 110 + "b" * 20), b""))
    upload(client, name, docker_save([root(), deep, tar(over)], {}))
    assert sh(client, name, "find /a/a /a 2> /dev/null") == {".wh.a": "", "a": "/a\n", "a/.wh..wh..opq": "/a\n"}[over[0]]
    remove(client, name)


def sparse(size):
    """A GNU sparse file that claims to be large."""
    info = entry(tarfile.GNUTYPE_SPARSE)
    data = bytearray(tar(("big", info)))
    data[483:495] = b"%011o\0" % size
    data[148:156] = b"        "
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def test_sparse_files_and_unknown_entries(client):
    for bad in (sparse(1 << 40), tar(("p", entry(tarfile.REGTYPE, pax_headers={"GNU.sparse.size": str(1 << 40)}))),
                tar(("u", entry(b"Q")))):
        refused(client, docker_save([bad], {}), "layer 1")


def test_an_entry_that_claims_more_than_it_has(client):
    data = bytearray(tar(("x", b"1")))
    data[124:136] = b"77777777777\0"
    data[148:156] = b"        "
    data[148:156] = b"%06o\0 " % sum(data[:512])
    refused(client, docker_save([bytes(data)], {}), "layer 1", "unexpected end")


def test_a_layer_that_grows():
    with contextlib.closing(Lodged(template_size="2M")) as small:
        client = small.client()
        for pack in (gzip.compress, zstd) if shutil.which("zstd") else (gzip.compress,):
            refused(client, docker_save([pack(tar(("zeros", bytes(16 << 20))))], {}), "2097152", status=413)
        assert wait_for(lambda: not sandboxes(small))


# ---- sharing ----------------------------------------------------------------------------------


def stored(lodged):
    """Names and bytes of the templates on disk."""
    store, found = os.path.join(lodged.keeper_home(), "store"), {}
    for n in os.listdir(store):
        if n.startswith("t-"):
            found[n[2:]] = sum(os.lstat(os.path.join(at, f)).st_size for at, _, files in os.walk(os.path.join(store, n))
                               for f in files if not os.path.islink(os.path.join(at, f)))
    return found


def shared(lodged):
    return {n: size for n, size in stored(lodged).items() if n.startswith("sha256.")}


@needs_busybox
def test_the_same_image_twice_costs_nothing(plain, name):
    client = plain.client()
    base, top = root(("big", os.urandom(1 << 20))), tar(("top", b"top"))
    upload(client, name, docker_save([base, top], {"User": "other"}))
    once = stored(plain)
    assert len(shared(plain)) == 2 and once[name] == 0
    upload(client, name + ".2", layout([gzip.compress(base), top], {}))  # by another tool, compressed
    assert {n: s for n, s in stored(plain).items() if n != name + ".2"} == once and stored(plain)[name + ".2"] == 0
    upload(client, name + ".3", docker_save([base, tar(("other", b"3"))], {}))  # another image on the same base
    assert len(shared(plain)) == 3 and sum(shared(plain).values()) == sum(shared(plain)[n] for n in once if n != name) + 1
    for n, files in ((name, "top"), (name + ".2", "top"), (name + ".3", "other")):
        assert sh(client, n, "ls / | cat").split().count(files) == 1
    remove(client, name)
    assert sh(client, name + ".2", "cat /top") == "top"  # the other image keeps the layers
    remove(client, name + ".2")
    assert len(shared(plain)) == 2
    remove(client, name + ".3")
    assert not shared(plain)


@needs_busybox
def test_writes_of_a_session_do_not_reach_shared_layers(plain, name):
    client = plain.client()
    data = docker_save([root(("shared", entry(tarfile.DIRTYPE, mode=0o777)), ("shared/f", b"1"))], {})
    upload(client, name, data)
    upload(client, name + ".2", data)
    sh(client, name, "echo mine > /shared/g; rm -f /shared/f; ls /shared")
    assert sh(client, name + ".2", "ls /shared; cat /shared/f") == "f\n1"
    remove(client, name, name + ".2")


@needs_busybox
def test_a_digest_alone_gives_no_files(plain, name):
    """An archive that names a stored layer, but does not have its bytes, is refused."""
    client = plain.client()
    secret = tar(("secret", b"content"))
    upload(client, name, docker_save([root(), secret], {}))
    parts = docker_parts([root(), secret], {})
    parts[json.loads(parts["manifest.json"])[0]["Layers"][1]] = tar(("nothing", b""))
    refused(client, tar(*parts.items()), "layer 2", "does not match")
    assert len(shared(plain)) == 2
    remove(client, name)
    assert not shared(plain)


def test_names_of_layers_are_reserved(client):
    refusal = client.post("/v1/templates/sha256." + "0" * 56, tar(("x", b"")), headers=TAR)
    assert refusal.status == 400 and refusal.code == "INVALID", refusal


@needs_busybox
def test_a_failed_image_leaves_no_layers(plain, name):
    client = plain.client()
    refused(client, docker_save([root(), b"\x1f\x8bbroken"], {}), "layer 2")
    refused(client, docker_save([root(), tar(("x", b""))], {"User": "nosuch"}), "nosuch")
    assert wait_for(lambda: not shared(plain)), shared(plain)
    upload(client, name, docker_save([root()], {}))  # the layers of another image stay
    refused(client, docker_save([root(), b"\x1f\x8bbroken"], {}), "layer 2")
    assert len(shared(plain)) == 1 and sh(client, name, "echo works") == "works\n"
    remove(client, name)
    assert not shared(plain)


@needs_busybox
def test_layers_of_a_killed_build_are_removed_at_the_next_start(name):
    with contextlib.closing(Plain()) as d:
        client = d.client()
        upload(client, name, docker_save([root(), tar(("x", b"1"))], {}))
        store = os.path.join(d.keeper_home(), "store")
        kept = set(shared(d))
        d.stop()
        for n in ("1", "2"):  # as a build leaves them when it is killed
            os.makedirs(os.path.join(store, "t-sha256." + n * 56, "u"))
        os.symlink("sha256." + "1" * 56, os.path.join(store, "t-sha256." + "2" * 56, "template"))
        d.start()
        client = d.client()
        assert sh(client, name, "cat /x") == "1"
        assert wait_for(lambda: set(shared(d)) == kept), shared(d)


@needs_busybox
@pytest.mark.parametrize("step", ["image:sealed", "image:created"])
def test_a_build_that_is_killed_leaves_no_layers(name, monkeypatch, step):
    """At the second step a sandbox still uses the layer when lodged starts again."""
    monkeypatch.setenv("LODGE_CRASH_AT", step)
    with contextlib.closing(Plain()) as d:
        with pytest.raises((OSError, http.client.HTTPException)):
            d.client().post("/v1/templates/" + name, docker_save([root(), tar(("x", b"1"))], {}), headers=TAR)
        d.process.wait(60)
        assert len(shared(d)) == 1
        monkeypatch.delenv("LODGE_CRASH_AT")
        d.start()
        assert wait_for(lambda: not shared(d) and not sandboxes(d)), shared(d)
        upload(d.client(), name, docker_save([root(), tar(("x", b"1"))], {}))
        assert sh(d.client(), name, "cat /x") == "1"


@needs_busybox
@pytest.mark.parametrize("step", ["image:sealed", "image:created"])
def test_a_local_build_that_is_killed_leaves_no_layers(name, step, tmp_path):
    """Its keeper notices the end."""
    with contextlib.closing(Plain()) as d:
        d.stop()
        archive = tmp_path / "image.tar"
        archive.write_bytes(docker_save([root(), tar(("x", b"1"))], {}))
        words = [os.path.join(BUILD, "lodge"), "template", "create", "--local", name, str(archive), "--data", d.keeper_home()]
        killed = subprocess.run(words, env={**os.environ, "LODGE_CRASH_AT": step}, capture_output=True, timeout=300, check=False)
        assert killed.returncode == -signal.SIGKILL, killed
        assert wait_for(lambda: not shared(d)), shared(d)
        assert subprocess.run(words, capture_output=True, timeout=300, check=False).returncode == 0
        assert len(shared(d)) == 2


@needs_busybox
def test_a_working_directory_that_no_layer_has(client, name, tmp_path):
    """Sessions and lodge run make it for the user of the image."""
    image = docker_save([root()], {"Env": ["PATH=/bin"], "WorkingDir": "/made/here", "User": "other"})
    command = "pwd; touch x && ls"
    upload(client, name, image)
    assert sh(client, name, command) == "/made/here\nx\n"
    remove(client, name)
    (tmp_path / "image.tar").write_bytes(image)
    lodge, data = os.path.join(BUILD, "lodge"), ("--data", str(tmp_path / "data"))
    made = subprocess.run([lodge, "template", "create", "--local", name, str(tmp_path / "image.tar"), *data], capture_output=True,
                          timeout=300, check=False)
    assert made.returncode == 0, made
    ran = subprocess.run([lodge, "run", *data, "--template", name, "--", "/bin/sh", "-c", command], capture_output=True, text=True,
                         timeout=300, check=False)
    assert (ran.returncode, ran.stdout) == (0, "/made/here\nx\n"), ran


@needs_busybox
def test_concurrent_uploads_share_one_set_of_layers(plain, name):
    from concurrent.futures import ThreadPoolExecutor
    client = plain.client()
    data = docker_save([root(), tar(("x", b"1"))], {})
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda i: client.post(f"/v1/templates/{name}.{i}", data, headers=TAR), range(3)))
    assert [a.status for a in found] == [201] * 3, found
    assert len(shared(plain)) == 2
    for i in range(3):
        assert sh(client, f"{name}.{i}", "cat /x") == "1"
    remove(client, *(f"{name}.{i}" for i in range(3)))
    assert not shared(plain)
