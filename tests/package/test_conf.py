# SPDX-License-Identifier: Apache-2.0
"""The installed configuration and units agree with the programs."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from client import LODGED
from debian import TOP, unit_values

UNITS = sorted(glob.glob(os.path.join(TOP, "packaging/systemd/*.service")))


def text(*names):
    with open(os.path.join(TOP, *names), encoding="utf-8") as f:
        return f.read()


def commented():
    return re.findall(r"^#(\w+) = (.*)$", text("packaging/lodged.conf"), re.M)


def test_example_has_every_setting_once():
    known = re.findall(r"^\tSETTING\((\w+), \w+, \w+\),$", text("src/lodged/config.c"), re.M)
    assert len(known) > 40 and sorted(n for n, _ in commented()) == sorted(known)


def test_example_has_only_comments():
    lines = text("packaging/lodged.conf").splitlines()
    assert all(not line or line.startswith("#") for line in lines)


def test_every_setting_is_in_the_manual():
    page = text("man/lodged.conf.5.scd").replace("\\_", "_")
    documented = set(re.findall(r"\*(\w+)\*", page))
    assert {n for n, _ in commented()} <= documented


# Times and sizes that the manual gives next to the name.
DEFAULTS = [("idle_timeout", "30m"), ("idle_timeout_max", "1d"), ("lifetime", "5h"), ("lifetime_max", "5h"), ("chat_lifetime", "30m"),
            ("projects_lifetime", "1h"), ("delete_after", "never"), ("extend", "20m"),
            ("queue_max", "64"), ("concurrent", "512"), ("drain", "10s"), ("socket_mode", "0600"), ("template_size", "16G")]


@pytest.mark.parametrize("name,value", DEFAULTS)
def test_defaults_agree_with_the_manual(name, value):
    assert dict(commented())[name] == value and value in text("man/lodged.conf.5.scd")


@pytest.mark.skipif(os.geteuid() != 0, reason="it makes a sandbox with a directory of root's")
def test_uncommented_example_is_accepted(tmp_path):
    """All settings at once, except for files and users that do not exist here; one sandbox is started with them."""
    skip = {"tls_cert", "tls_key", "user", "data", "listen"}
    home = tmp_path / "data"
    conf = tmp_path / "lodged.conf"
    conf.write_text("".join(f"{n} = {v}\n" for n, v in commented() if n not in skip) + f"data = {home}\nuser = 60777\n")
    done = subprocess.run([LODGED, "--config", str(conf), "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0 and b"sandboxes work (started in" in done.stdout, done.stdout


def test_an_unknown_setting_is_named(tmp_path):
    conf = tmp_path / "lodged.conf"
    conf.write_text("# one\nmax_activ = 3\n")
    done = subprocess.run([LODGED, "--config", str(conf), "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={"PATH": os.environ["PATH"]})
    assert done.returncode == 2 and b'lodged.conf:2: unknown setting "max_activ"' in done.stdout, done.stdout


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=os.path.basename)
def test_units_are_valid(unit, tmp_path):
    """The program may not be installed, so another takes its place."""
    for path in UNITS:
        with open(path) as f:
            (tmp_path / os.path.basename(path)).write_text(f.read().replace("/usr/sbin/lodged", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.basename(unit)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
    ours = [line for line in done.stdout.decode().splitlines() if "lodge" in line]
    assert done.returncode == 0 and not ours, done.stdout


def test_the_cgroup_of_the_sandboxes_belongs_to_their_unit():
    lodged, sandboxes = text("packaging/systemd/lodged.service"), text("packaging/systemd/lodge-sandboxes.service")
    [slice_] = unit_values(sandboxes, "Slice")
    assert unit_values(lodged, "Environment") == [f"LODGE_CGROUP=/{slice_}/lodge-sandboxes.service"]
    assert unit_values(lodged, "BindsTo") == ["lodge-sandboxes.service"]
