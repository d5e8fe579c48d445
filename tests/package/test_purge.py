# SPDX-License-Identifier: Apache-2.0
"""What `apt purge` removes, and what it leaves: the script of the package, with a /var/lib and a /run of its own."""
import os
import subprocess

import pytest

from debian import TOP

SCRIPT = os.path.join(TOP, "packaging/debian/lodge.postrm")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="they mount")


def purge(before, after):
    """What `after` prints when the package was purged, and what was said meanwhile."""
    text = f"""set -e
mount -t tmpfs none /run
mkdir /run/lodge
exec 3<"$1"
mount -t tmpfs none /var/lib
{before}
sh /dev/fd/3 purge
[ ! -e /run/lodge ]
{after}"""
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", text, "sh", SCRIPT], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stdout.split(), done.stderr


def test_the_data():
    there, said = purge("mkdir -p /var/lib/lodge/a/b; touch /var/lib/lodge/lodge.db", "ls -A /var/lib")
    assert there == [] and said == "lodge: removing /var/lib/lodge: sessions, their files, snapshots, templates and keys\n"
    assert purge("", "ls -A /var/lib") == ([], "")


def test_a_disk_of_its_own_is_emptied():
    there, said = purge("mkdir /var/lib/lodge; mount -t tmpfs none /var/lib/lodge; touch /var/lib/lodge/lodge.db",
                        "ls -A /var/lib /var/lib/lodge")
    assert there == ["/var/lib:", "lodge", "/var/lib/lodge:"] and "could not remove all of /var/lib/lodge" in said


@pytest.mark.parametrize("mount", ["--bind /var/lib/other", "-t tmpfs none"])
def test_what_is_mounted_in_it_stays(mount):
    there, said = purge(f"mkdir -p /var/lib/lodge/in /var/lib/other; mount {mount} /var/lib/lodge/in; touch /var/lib/lodge/in/mine",
                        "cd /var/lib; find lodge -type f")
    assert there == ["lodge/in/mine"] and said == "lodge: not removing /var/lib/lodge: a file system is mounted below it\n"


def test_what_a_link_leads_to_stays():
    there, said = purge("mkdir /var/lib/data; touch /var/lib/data/mine; ln -s data /var/lib/lodge",
                        "cd /var/lib; find . ! -name .")
    assert there == ["./data", "./data/mine"] and said == "lodge: /var/lib/lodge is a symbolic link: not removing data\n"


def test_what_is_mounted_behind_a_link_on_the_way_stays():
    there, said = purge("mount -t tmpfs none /var; mkdir -p /var/real/lodge/in /var/other; ln -s real /var/lib; touch /var/other/mine; "
                        "mount --bind /var/other /var/real/lodge/in", "cd /var; ls other real/lodge/in")
    assert there == ["other:", "mine", "real/lodge/in:", "mine"]
    assert said == "lodge: not removing /var/lib/lodge: a file system is mounted below it\n"


def test_subvolumes_go(tmp_path):
    """Where /var/lib is a btrfs, sessions' files are subvolumes of it."""
    image = tmp_path / "image"
    with open(image, "wb") as f:
        f.truncate(256 << 20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    there, said = purge(f"mount -o loop {image} /var/lib; mkdir -p /var/lib/lodge/keeper/store; "
                        "btrfs -q subvolume create /var/lib/lodge/keeper/store/k-1; touch /var/lib/lodge/keeper/store/k-1/file",
                        "ls -A /var/lib")
    assert there == [] and "left" not in said
