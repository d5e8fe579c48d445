# SPDX-License-Identifier: Apache-2.0
"""Local directories as tar archives. What comes out of a sandbox is not trusted: nothing is written outside the target."""
import os
import posixpath
import shutil
import tarfile
from typing import BinaryIO, List, Optional, Tuple

from .errors import InvalidError

Kept = Tuple[tarfile.TarInfo, str]


def _plain(member: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
    """Files, directories and links; the sandbox decides who owns them."""
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode &= 0o777
    return member


def pack(local: str, to: BinaryIO) -> None:
    with tarfile.open(fileobj=to, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8",
                      errors="surrogateescape") as tar:
        tar.add(local, arcname=".", filter=_plain)
    to.flush()
    to.seek(0)


def _parts(name: str) -> List[str]:
    parts = [p for p in name.split("/") if p not in ("", ".")]
    if name.startswith("/") or ".." in parts or any(os.sep in p or "\0" in p for p in parts):
        raise InvalidError(f"archive: {name!r} leads outside the directory")
    return parts


def _place(root: str, parts: List[str]) -> str:
    """The path of an entry, below directories that are no links."""
    at = root
    for part in parts[:-1]:
        at = os.path.join(at, part)
        if os.path.islink(at):
            raise InvalidError(f"{at}: is a symbolic link; nothing is written through it")
        os.makedirs(at, exist_ok=True)
    return os.path.join(at, parts[-1])


def stays_inside(parts: List[str], target: str) -> bool:
    """Whether a link leads into the tree, also through other links of it: ".." only first, and not above the top."""
    if target.startswith("/") or not target:
        return False
    words = [w for w in target.split("/") if w not in ("", ".")]
    up = 0
    while up < len(words) and words[up] == "..":
        up += 1
    return up < len(parts) and ".." not in words[up:]


def _clear(path: str) -> None:
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
        os.unlink(path)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    try:
        source = tar.extractfile(member)
    except KeyError:
        raise InvalidError(f"archive: {member.name!r} links to {member.linkname!r}, which is not in it") from None
    _clear(path)
    with open(path, "wb") as f:
        if source is not None:
            shutil.copyfileobj(source, f)
    _settle(member, path)


def _settle(member: tarfile.TarInfo, path: str) -> None:
    os.chmod(path, member.mode & 0o777)
    os.utime(path, (member.mtime, member.mtime))


def _links(root: str, links: List[Kept]) -> List[str]:
    """Made last: until then no entry can be written through one. Returns those that lead outside, which are left out."""
    outside = []
    for member, name in links:
        parts = _parts(name)
        if not stays_inside(parts, member.linkname):
            outside.append(posixpath.join(*parts))
            continue
        path = _place(root, parts)
        _clear(path)
        os.symlink(member.linkname, path)
    return outside


def unpack(source: BinaryIO, root: str) -> List[str]:
    """Returns the links that were left out because they lead outside."""
    os.makedirs(root, exist_ok=True)
    links: List[Kept] = []
    directories: List[Kept] = []
    with tarfile.open(fileobj=source, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
        for member in tar:
            parts = _parts(member.name)
            if member.isdir() and parts:
                place = _place(root, parts)
                _clear(place)
                os.makedirs(place, exist_ok=True)
                directories.append((member, place))
            elif member.issym():
                links.append((member, member.name))
            elif parts and (member.isfile() or member.islnk()):
                _write(tar, member, _place(root, parts))
    outside = _links(root, links)
    for member, path in reversed(directories):
        member.mode |= 0o700
        _settle(member, path)
    return outside
