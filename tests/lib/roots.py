# SPDX-License-Identifier: Apache-2.0
"""Root file systems and images as archives, and the list of running sandboxes."""
import hashlib
import io
import json
import os
import shutil
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


def layout(layers, config, arch=None, **index):
    """A tar of an OCI image layout."""
    blobs = []

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs.append((f"blobs/sha256/{digest}", data))
        return {"digest": f"sha256:{digest}", "size": len(data)}

    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    manifest = {"schemaVersion": 2, "layers": [blob(l) for l in layers],
                "config": blob(json.dumps({"config": config}).encode())}
    top = dict(blob(json.dumps(manifest).encode()), platform={"os": "linux", "architecture": arch or machine})
    return tar(("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'),
               ("index.json", json.dumps({"manifests": [top], **index}).encode()), *blobs)


def sandboxes(lodged):
    """Running sandboxes of this lodged, from the keeper's records."""
    found = []
    for at, dirs, _ in os.walk(lodged.run_dir()):
        if os.path.basename(at) == "sandboxes":
            found += [d for d in dirs if os.path.exists(os.path.join(at, d, "init.sock"))]
    return found
