# SPDX-License-Identifier: Apache-2.0
"""liblodge.so and lodge.h as somebody else's program meets them."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.path.abspath(os.environ.get("LODGE_BIN", ROOT / "build" / "lodge"))).parent
LIBRARY = BUILD / "liblodge.so"


def sanitized():
    names = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True, check=True).stdout
    return ["-fsanitize=address,undefined"] if "__asan_init" in names else []


def test_a_program_outside(tmp_path):
    if not LIBRARY.exists():
        pytest.skip("no liblodge.so beside lodge")
    program = tmp_path / "use_lib"
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *sanitized(), f"-I{ROOT}/include",
                    f"-I{ROOT}/tests/unit", ROOT / "tests/api/use_lib.c", LIBRARY, f"-Wl,-rpath,{BUILD}",
                    "-o", program], check=True)
    r = subprocess.run([program], capture_output=True, text=True, timeout=120)
    print(r.stdout, r.stderr)
    assert r.returncode == 0 and "not ok" not in r.stdout and "SKIP" not in r.stdout


def test_only_the_api_is_exported():
    names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in names.splitlines()} - {"LODGE_0"}
    assert "lodge_open" in names and all(n.startswith("lodge_") for n in names)


@pytest.mark.parametrize("compiler, language", [("cc", "c"), ("c++", "c++")])
def test_the_header_stands_alone(compiler, language):
    if subprocess.run(["sh", "-c", f"command -v {compiler}"], capture_output=True).returncode:
        pytest.skip(f"no {compiler}")
    subprocess.run([compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-"],
                   input=f'#include "{ROOT}/include/lodge.h"\n', text=True, check=True)
