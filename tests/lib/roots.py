# SPDX-License-Identifier: Apache-2.0
"""Root file systems and images as archives, and the list of running sandboxes."""
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest

BUSYBOX = shutil.which("busybox")
PASSWD = b"root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nother:x:2000:2000::/tmp:/bin/sh\n"
needs_busybox = pytest.mark.skipif(not BUSYBOX, reason="needs busybox")


def tar(*entries):
    """(name, bytes | None for a directory | TarInfo)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, what in entries:
            info = what if isinstance(what, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.name = name
            if what is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(what, bytes):
                info.size, info.mode = len(what), 0o755
            t.addfile(info, io.BytesIO(what) if isinstance(what, bytes) else None)
    return out.getvalue()


def entry(kind, link="", mode=0o755, **rest):
    info = tarfile.TarInfo("x")
    info.type, info.linkname, info.mode = kind, link, mode
    for name, value in rest.items():
        setattr(info, name, value)
    return info


def link(target):
    return entry(tarfile.SYMTYPE, target)


def root(*more):
    with open(BUSYBOX, "rb") as f:
        busybox = f.read()
    names = ("sh", "ls", "cat", "id", "stat", "find", "pwd", "env")
    return tar(("bin", None), ("bin/busybox", busybox), *((f"bin/{n}", link("busybox")) for n in names),
               ("etc", None), ("etc/passwd", PASSWD), ("home", None), ("home/user", None), ("root", None),
               ("tmp", entry(tarfile.DIRTYPE, mode=0o1777)), *more)


def tiny_root(*more):
    """The least that is taken for a root file system; its shell is none."""
    return tar(("bin", None), ("bin/sh", b"#!/none\n"), *more)


def machine():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def plain(data):
    """The content of a layer, compressed or not; of a broken one its bytes."""
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:4] == b"\x28\xb5\x2f\xfd":
            return subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
    except (OSError, EOFError):
        pass
    return data


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def image_config(layers, config, **more):
    """The configuration of an image, which names the digests of its layers."""
    diff_ids = ["sha256:" + sha256(plain(l)) for l in layers]
    return {"config": config, "rootfs": {"type": "layers", "diff_ids": diff_ids}, **more}


def layout_parts(layers, config, arch=None, whole=None, **index):
    """The files of an OCI image layout, as a dict."""
    parts = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(data):
        parts["blobs/sha256/" + sha256(data)] = data
        return {"digest": "sha256:" + sha256(data), "size": len(data)}

    manifest = {"schemaVersion": 2, "layers": [blob(l) for l in layers],
                "config": blob(json.dumps(whole or image_config(layers, config)).encode())}
    top = dict(blob(json.dumps(manifest).encode()), platform={"os": "linux", "architecture": arch or machine()})
    return {**parts, "index.json": json.dumps({"manifests": [top], **index}).encode()}


def layout(layers, config, arch=None, **index):
    """A tar of an OCI image layout."""
    return tar(*layout_parts(layers, config, arch, **index).items())


def docker_parts(layers, config, tags=("app:1",), **more):
    """The files that docker save writes, as a dict."""
    whole = json.dumps(image_config(layers, config, architecture=machine(), os="linux", **more)).encode()
    names = [f"{sha256(b'%d' % i + l)}/layer.tar" for i, l in enumerate(layers)]
    manifest = [{"Config": sha256(whole) + ".json", "RepoTags": list(tags), "Layers": names}]
    return {"manifest.json": json.dumps(manifest).encode(), sha256(whole) + ".json": whole,
            "repositories": b"{}", **dict(zip(names, layers))}


def docker_save(layers, config, **more):
    """A tar as docker save writes it."""
    return tar(*docker_parts(layers, config, **more).items())


def sandboxes(lodged):
    """Running sandboxes of this lodged, from the keeper's records."""
    found = []
    for at, dirs, _ in os.walk(lodged.run_dir()):
        if os.path.basename(at) == "sandboxes":
            found += [d for d in dirs if os.path.exists(os.path.join(at, d, "init.sock"))]
    return found
