# SPDX-License-Identifier: Apache-2.0
"""What `apt purge` removes and what it leaves: the package's script with its own /var/lib and /run."""
import os
import subprocess

import pytest

from debian import TOP

SCRIPT = os.path.join(TOP, "packaging/debian/lodge.postrm")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="they mount")


def purge(before, after):
    """Purge the package between the scripts `before` and `after`; return the output of `after` and the messages."""
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


def test_the_data_is_removed():
    there, said = purge("mkdir -p /var/lib/lodge/a/b; touch /var/lib/lodge/lodge.db", "ls -A /var/lib")
    assert there == [] and said == "lodge: removing /var/lib/lodge: sessions, their files, snapshots, templates and keys\n"
    assert purge("", "ls -A /var/lib") == ([], "")


def test_a_mounted_data_directory_is_emptied():
    there, said = purge("mkdir /var/lib/lodge; mount -t tmpfs none /var/lib/lodge; touch /var/lib/lodge/lodge.db",
                        "ls -A /var/lib /var/lib/lodge")
    assert there == ["/var/lib:", "lodge", "/var/lib/lodge:"] and "could not remove all of /var/lib/lodge" in said


@pytest.mark.parametrize("mount", ["--bind /var/lib/other", "-t tmpfs none"])
def test_mounts_below_it_stay(mount):
    there, said = purge(f"mkdir -p /var/lib/lodge/in /var/lib/other; mount {mount} /var/lib/lodge/in; touch /var/lib/lodge/in/mine",
                        "cd /var/lib; find lodge -type f")
    assert there == ["lodge/in/mine"] and said == "lodge: not removing /var/lib/lodge: a file system is mounted below it\n"


def test_the_target_of_a_link_stays():
    there, said = purge("mkdir /var/lib/data; touch /var/lib/data/mine; ln -s data /var/lib/lodge",
                        "cd /var/lib; find . ! -name .")
    assert there == ["./data", "./data/mine"] and said == "lodge: /var/lib/lodge is a symbolic link: not removing data\n"


def test_mounts_behind_a_link_in_the_path_stay():
    there, said = purge("mount -t tmpfs none /var; mkdir -p /var/real/lodge/in /var/other; ln -s real /var/lib; touch /var/other/mine; "
                        "mount --bind /var/other /var/real/lodge/in", "cd /var; ls other real/lodge/in")
    assert there == ["other:", "mine", "real/lodge/in:", "mine"]
    assert said == "lodge: not removing /var/lib/lodge: a file system is mounted below it\n"


def test_subvolumes_are_removed(tmp_path):
    """If /var/lib is on btrfs, files of sessions are subvolumes."""
    image = tmp_path / "image"
    with open(image, "wb") as f:
        f.truncate(256 << 20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    there, said = purge(f"mount -o loop {image} /var/lib; mkdir -p /var/lib/lodge/keeper/store; "
                        "btrfs -q subvolume create /var/lib/lodge/keeper/store/k-1; touch /var/lib/lodge/keeper/store/k-1/file",
                        "ls -A /var/lib")
    assert there == [] and "left" not in said
