# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: their contents, installation on a clean system, an upgrade under running commands, and
removal.

LODGE_SLOW=1 builds them and downloads a small Debian once. LODGE_DEBS and LODGE_DEBS_NEXT name directories with existing
packages, and with those of a later version."""
import contextlib
import filecmp
import glob
import os
import re
import shutil
import subprocess

import pytest

from debian import SECONDS, TOP, Debian, unit_values
from machine import eventually

pytestmark = pytest.mark.skipif(
    os.environ.get("LODGE_SLOW") != "1" or os.geteuid() != 0,
    reason="they build packages and a Debian to install them in: LODGE_SLOW=1, as root")
PYTHON = os.path.isdir(os.path.join(TOP, "sdk/python/lodge"))
NAMES = ["liblodge-dev", "liblodge0", "lodge"] + (["python3-lodge"] if PYTHON else [])


class Packages:
    def __init__(self, directory):
        self.directory = directory

    def path(self, name):
        [found] = glob.glob(os.path.join(self.directory, name + "_*.deb"))
        return found

    def field(self, name, field):
        return subprocess.run(["dpkg-deb", "-f", self.path(name), field], stdout=subprocess.PIPE, check=True,
                              text=True).stdout.strip()

    def list(self, name):
        """Map each path to its mode and owner."""
        text = subprocess.run(["dpkg-deb", "-c", self.path(name)], stdout=subprocess.PIPE, check=True, text=True).stdout
        return {line[5][1:]: (line[0], line[1]) for line in (x.split() for x in text.splitlines())}

    def unpack(self, name, where):
        subprocess.run(["dpkg-deb", "-R", self.path(name), where], check=True)
        return where


def build(directory, *args):
    subprocess.run([os.path.join(TOP, "packaging/build"), *args], check=True, env={**os.environ, "LODGE_DEB_OUT": directory})
    return Packages(directory)


def version():
    with open(os.path.join(TOP, "meson.build")) as f:
        return re.search(r"version: '([^']+)'", f.read()).group(1)


@pytest.fixture(scope="module")
def debs():
    there = os.environ.get("LODGE_DEBS")
    return Packages(there) if there else build(os.path.join(TOP, "build/deb"))


@pytest.fixture(scope="module")
def following():
    there = os.environ.get("LODGE_DEBS_NEXT")
    return Packages(there) if there else build(os.path.join(TOP, "build/deb-next"), version() + "+next")


@pytest.fixture(scope="module")
def debian(debs):
    with contextlib.closing(Debian()) as d:
        d.said = d.install(*[debs.path(n) for n in NAMES if n != "python3-lodge"])
        yield d


# ---- contents ------------------------------------------------------------------------------------

def test_names(debs):
    found = sorted(os.path.basename(p).split("_")[0] for p in glob.glob(debs.directory + "/*.deb"))
    assert found == NAMES
    assert {debs.field(n, "Version") for n in NAMES} == {version()}


def test_programs(debs):
    files = debs.list("lodge")
    for path in ["/usr/bin/lodge", "/usr/sbin/lodged", *("/usr/libexec/lodge/lodge-" + n for n in ("init", "keeper", "zstd"))]:
        assert files[path] == ("-rwxr-xr-x", "root/root"), path
    for path in ["/lib/systemd/system/lodged.service", "/lib/systemd/system/lodge-sandboxes.service", "/etc/lodge/lodged.conf",
                 "/usr/lib/tmpfiles.d/lodge.conf", "/usr/share/lodge/grafana/lodge.json",
                 "/usr/share/doc/lodge/examples/python/tools.py", "/usr/share/doc/lodge/examples/typescript/tools.ts",
                 "/usr/share/lodge/prometheus/lodge.rules.yml", "/usr/share/lodge/prometheus/scrape.yml"]:
        assert files[path] == ("-rw-r--r--", "root/root"), path


def test_no_file_is_writable_for_others_or_setuid(debs):
    for name in NAMES:
        for path, (mode, owner) in debs.list(name).items():
            assert owner == "root/root" and "s" not in mode, (path, mode, owner)
            assert mode[0] == "l" or (mode[5] == "-" and mode[8] == "-"), (path, mode)


def test_every_manual_page_is_in_a_package(debs):
    there = set().union(*(debs.list(n) for n in NAMES))
    pages = [os.path.basename(p)[:-4] for p in glob.glob(os.path.join(TOP, "man/*.scd"))]
    assert pages and all(f"/usr/share/man/man{p[-1]}/{p}.gz" in there for p in pages), pages


def test_completions(debs):
    assert {"/usr/share/bash-completion/completions/lodge", "/usr/share/zsh/vendor-completions/_lodge",
            "/usr/share/fish/vendor_completions.d/lodge.fish"} <= set(debs.list("lodge"))


def test_depends(debs):
    lodge = debs.field("lodge", "Depends")
    for library in ["libc6", "libjansson4", "libmicrohttpd12", "libsqlite3-0", "libssl3", "libwslay1"]:
        assert re.search(rf"\b{library} \(>= ", lodge), lodge
    assert "adduser" not in lodge and "passwd" in lodge
    # the library starts programs of its own version
    assert f"lodge (= {version()})" in debs.field("liblodge0", "Depends")
    assert f"liblodge0 (= {version()})" in debs.field("liblodge-dev", "Depends")


def test_conffiles(debs, tmp_path):
    debs.unpack("lodge", str(tmp_path / "x"))
    found = (tmp_path / "x/DEBIAN/conffiles").read_text().split()
    assert found == ["/etc/lodge/lodged.conf", "/etc/needrestart/conf.d/lodge.conf"]


def test_programs_have_no_test_hooks(debs, tmp_path):
    debs.unpack("lodge", str(tmp_path / "x"))
    for path in glob.glob(f"{tmp_path}/x/usr/*bin/*") + glob.glob(f"{tmp_path}/x/usr/libexec/lodge/*"):
        with open(path, "rb") as f:
            data = f.read()
        assert b"LODGE_CRASH_AT" not in data and b"LODGE_WEAKEN" not in data, path


def test_the_example_of_the_manual_compiles(debs, tmp_path):
    for name in ("liblodge0", "liblodge-dev"):
        debs.unpack(name, str(tmp_path / name))
    dev, lib = tmp_path / "liblodge-dev/usr", tmp_path / "liblodge0/usr/lib/x86_64-linux-gnu"
    env = {**os.environ, "PKG_CONFIG_LIBDIR": str(dev / "lib/x86_64-linux-gnu/pkgconfig"),
           "PKG_CONFIG_SYSROOT_DIR": str(tmp_path / "liblodge-dev")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "liblodge"], env=env, stdout=subprocess.PIPE, check=True,
                           text=True).stdout.split()
    shutil.copy(lib / "liblodge.so.0", dev / "lib/x86_64-linux-gnu")
    subprocess.run(["cc", f"-I{dev}/include", str(dev / "share/doc/liblodge-dev/examples/session.c"), "-o", str(tmp_path / "session"),
                    f"-L{dev}/lib/x86_64-linux-gnu", *flags], check=True)


def test_builds_are_reproducible(debs, tmp_path):
    page = os.path.join(TOP, "README.md")
    was = os.stat(page)
    os.utime(page, (1000000000, 1000000000))  # as in another checkout
    try:
        again = build(str(tmp_path / "again"))
    finally:
        os.utime(page, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert all(filecmp.cmp(debs.path(n), again.path(n), shallow=False) for n in NAMES)


# ---- on a clean system ---------------------------------------------------------------------------

def test_user_and_directories(debian):
    assert re.search(r"^lodge:x:\d+:\d+:lodge service:/var/lib/lodge:/usr/sbin/nologin$", debian.read("/etc/passwd"), re.M)
    assert debian.run("stat", "-c", "%U %a", "/var/lib/lodge") == "root 700\n"  # until lodged takes it over


def test_installed_units_are_valid(debian):
    said = debian.run("systemd-analyze", "verify", "--man=no", "lodged.service", "lodge-sandboxes.service")
    assert said == ""


def test_installed_settings_are_valid(debian):
    assert "sandboxes work (started in" in debian.run("lodged", "--config", "/etc/lodge/lodged.conf", "--check")


def test_the_command_works_without_settings(debian):
    assert debian.run("lodge", "run", "--", "sh", "-c", "echo $((6 * 7))") == "42\n"
    assert "lodge" in debian.run("lodge", "--version")


def test_service(debian):
    debian.start()
    assert debian.run("stat", "-c", "%U %a", "/var/lib/lodge", "/var/lib/lodge/keeper") == "lodge 700\nroot 700\n"
    assert debian.run("stat", "-c", "%U", f"/proc/{debian.run('cat', '/run/lodged.pid').strip()}") == "lodge\n"
    debian.call("POST", "/v1/sessions", {"key": "work"})
    done = debian.call("POST", "/v1/sessions/key:work/exec", {"command": "id -u; echo kept > note"})
    assert done["exit_code"] == 0 and done["stdout"] == "1000\n"


def test_the_command_finds_the_service(debian):
    if not re.search(r"^\s+ls\b", debian.run("lodge", "--help"), re.M):
        pytest.skip("this lodge has no command ls")
    assert "work" in debian.run("lodge", "ls")


def numbers(debian, exec_id):
    answer = debian.call("GET", f"/v1/sessions/key:work/execs/{exec_id}/output?stdout_offset=0&stderr_offset=0")
    return [int(n) for n in answer["stdout"].split("\n")[:-1]]


def inits(debian):
    """The lodge-init of each session; those of the pool are made anew with each keeper."""
    recorded = debian.run("sh", "-c", "sed -n 's/^pid //p' /run/lodge/*/d/sandboxes/sbx_*/record").split()
    return [pid for pid in recorded if pid in debian.run("pgrep", "-x", "lodge-init").split()]


def test_an_upgrade_keeps_commands_running(debian, following):
    work = debian.call("POST", "/v1/sessions/key:work/exec", {
        "command": "i=0; while sleep 0.05; do i=$((i + 1)); echo $i; done", "background": True, "timeout_ms": 3600000})["exec_id"]
    eventually(lambda: len(numbers(debian, work)) > 5, SECONDS)
    before = inits(debian)
    assert before
    had = len(numbers(debian, work))
    debian.stop()
    assert inits(debian) == before
    debian.install(following.path("lodge"), following.path("liblodge0"))
    debian.start()
    assert debian.call("GET", "/health")["version"] == version() + "+next"
    assert inits(debian) == before
    eventually(lambda: len(numbers(debian, work)) > had + 5, SECONDS)
    all_of_them = numbers(debian, work)
    assert all_of_them == list(range(1, len(all_of_them) + 1))
    assert debian.call("GET", f"/v1/sessions/key:work/execs/{work}")["exec"]["state"] == "running"
    assert debian.call("GET", "/v1/sessions/key:work/files/note") == b"kept\n"


def test_remove_keeps_data_and_purge_deletes_it(debian):
    debian.call("DELETE", "/v1/sessions/key:work")
    debian.stop()
    debian.run("dpkg", "-r", "liblodge-dev", "liblodge0", "lodge")
    assert os.path.exists(debian.path("/var/lib/lodge/lodge.db")) and os.path.exists(debian.path("/etc/lodge/lodged.conf"))
    assert "removing /var/lib/lodge: sessions, their files" in debian.run("dpkg", "-P", "lodge")
    assert not os.path.exists(debian.path("/var/lib/lodge")) and not os.path.exists(debian.path("/etc/lodge"))


def test_settings_of_the_unit(debs, tmp_path):
    debs.unpack("lodge", str(tmp_path / "x"))
    unit = (tmp_path / "x/lib/systemd/system/lodged.service").read_text()
    assert unit_values(unit, "Type") == ["notify"] and unit_values(unit, "KillMode") == ["process"]
    assert unit_values(unit, "Environment") == ["LODGE_CGROUP=/system.slice/lodge-sandboxes.service"]
    assert unit_values((tmp_path / "x/lib/systemd/system/lodge-sandboxes.service").read_text(), "Delegate") == ["yes"]


@pytest.mark.skipif(not PYTHON, reason="there is no sdk/python/lodge")
def test_the_python_package_can_be_imported(debs, tmp_path):
    debs.unpack("python3-lodge", str(tmp_path / "x"))
    where = str(tmp_path / "x/usr/lib/python3/dist-packages")
    subprocess.run(["/usr/bin/python3", "-c", "import lodge; lodge.Client"], check=True, cwd=tmp_path,
                   env={"PYTHONPATH": where, "PYTHONDONTWRITEBYTECODE": "1"})
