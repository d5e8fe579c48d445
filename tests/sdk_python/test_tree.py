# SPDX-License-Identifier: Apache-2.0
"""Archives that come out of a sandbox write nothing outside the directory they are unpacked to."""
import io
import os
import tarfile

import pytest

import lodge
from lodge import _tree


def archive(*entries):
    """Of (name, content), or (name, None, link target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data, *link in entries:
            member = tarfile.TarInfo(name)
            if link:
                member.type, member.linkname = link[0]
            elif data is None:
                member.type = tarfile.DIRTYPE
            else:
                member.size = len(data)
            member.mode = 0o6755
            tar.addfile(member, io.BytesIO(data or b""))
    out.seek(0)
    return out


def sym(target):
    return tarfile.SYMTYPE, target


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a/.."])
def test_names_that_lead_outside(tmp_path, name):
    with pytest.raises(lodge.InvalidError, match="leads outside"):
        _tree.unpack(archive((name, b"x")), str(tmp_path / "to"))
    assert not (tmp_path / "x").exists()


def test_nothing_is_written_through_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    to = tmp_path / "to"
    left = _tree.unpack(archive(("a", None, sym(str(victim))), ("b", None, sym("../victim")), ("a/x", b"evil")), str(to))
    assert left == ["a", "b"]
    assert os.listdir(victim) == [] and (to / "a/x").read_bytes() == b"evil"
    (to / "c").symlink_to(victim)  # of an earlier download, or of the user
    with pytest.raises(lodge.InvalidError, match="symbolic link"):
        _tree.unpack(archive(("c/x", b"evil")), str(to))
    (to / "d").symlink_to(victim / "new")
    _tree.unpack(archive(("d", b"mine")), str(to))
    assert os.listdir(victim) == [] and (to / "d").read_bytes() == b"mine" and not (to / "d").is_symlink()


@pytest.mark.parametrize("target, inside", [
    ("x", True), ("../x", True), ("../../x", False), ("/x", False), ("", False), ("x/..", False), ("../y/../../x", False),
    ("./../x/./y", True)])
def test_links_stay_inside(tmp_path, target, inside):
    assert _tree.stays_inside(["d", "link"], target) is inside


def test_links_through_links_stay_inside(tmp_path):
    left = _tree.unpack(archive(("d", None), ("d/here", None, sym(".")), ("d/up", None, sym("here/../../..")),
                                ("d/fine", None, sym("../d/here/f")), ("d/f", b"f")), str(tmp_path / "to"))
    assert left == ["d/up"] and (tmp_path / "to/d/fine").read_bytes() == b"f"


def test_special_bits_and_files_are_left_out(tmp_path):
    _tree.unpack(archive(("f", b"x"), ("d", None), ("p", None, (tarfile.FIFOTYPE, "")), ("h", None, (tarfile.LNKTYPE, "f"))),
                 str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["d", "f", "h"] and (tmp_path / "h").read_bytes() == b"x"
    assert all(os.stat(tmp_path / n).st_mode & 0o7777 == 0o755 for n in "fd")
    with pytest.raises(lodge.InvalidError, match="not in it"):
        _tree.unpack(archive(("h", None, (tarfile.LNKTYPE, "none"))), str(tmp_path))
