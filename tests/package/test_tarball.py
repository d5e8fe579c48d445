# SPDX-License-Identifier: Apache-2.0
"""The programs of the tarball run where it was unpacked, with its own libraries. LODGE_SLOW=1 builds it;
LODGE_TARBALL names an existing one."""
import os
import re
import subprocess
import tempfile

import pytest

from debian import TOP

pytestmark = pytest.mark.skipif(os.environ.get("LODGE_SLOW") != "1" or os.geteuid() != 0,
                                reason="it is built for them: LODGE_SLOW=1, as root")
LIBC = re.compile(r"lib(c|m|pthread|dl|rt|resolv)\.so|ld-linux|linux-vdso")


@pytest.fixture(scope="module")
def top():
    made = os.environ.get("LODGE_TARBALL")
    if not made:
        made = subprocess.run([os.path.join(TOP, "packaging/tarball")], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[-1]
    with tempfile.TemporaryDirectory(prefix="lodge-tarball-") as d:
        os.chmod(d, 0o755)
        subprocess.run(["tar", "-xf", made, "-C", d], check=True)
        [name] = os.listdir(d)
        yield os.path.join(d, name)


@pytest.mark.parametrize("program", ["bin/lodge", "bin/lodged", "bin/lodge-zstd", "lib/liblodge.so.0"])
def test_needs_nothing_but_libc(top, program):
    said = subprocess.run(["ldd", os.path.join(top, program)], stdout=subprocess.PIPE, check=True, text=True).stdout
    foreign = [line for line in said.splitlines() if not LIBC.search(line) and f"{top}/" not in os.path.normpath(line.split(" => ")[-1])]
    assert "not found" not in said and not foreign, said


@pytest.mark.parametrize("program", ["bin/lodge-keeper", "bin/lodge-init"])
def test_is_static(top, program):
    done = subprocess.run(["ldd", os.path.join(top, program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert b"not a dynamic executable" in done.stdout


def test_has_the_files_for_monitoring(top):
    for path in ("grafana/lodge.json", "prometheus/lodge.rules.yml", "prometheus/scrape.yml"):
        assert os.path.getsize(os.path.join(top, "share/lodge", path)), path


def test_has_the_examples(top):
    for path in ("README.md", "python/tools.py", "typescript/tools.ts"):
        assert os.path.getsize(os.path.join(top, "doc/examples", path)), path
    assert not os.path.exists(os.path.join(top, "doc/examples/typescript/node_modules"))


def test_works(top):
    with tempfile.TemporaryDirectory(prefix="lodge-home-") as home:
        for command, want in [(["bin/lodged", "--data", home, "--config", f"{top}/etc/lodged.conf", "--check"], "sandboxes work"),
                              (["bin/lodge", "run", "--home", home, "--", "echo", "works"], "works\n")]:
            done = subprocess.run([os.path.join(top, command[0]), *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={"PATH": "/usr/bin:/bin"}, check=False, text=True, timeout=180)
            assert done.returncode == 0 and want in done.stdout, done.stdout
