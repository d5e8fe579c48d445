# SPDX-License-Identifier: Apache-2.0
"""liblodge.so and lodge.h, used by programs outside the source tree."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

import machine
import pages

ROOT = pathlib.Path(machine.SOURCE)
BUILD = pathlib.Path(machine.build())
LIBRARY = BUILD / "liblodge.so"
HEADER = ROOT / "include/lodge.h"
HEADERS = [ROOT / "include" / name for name in  # the first includes the others
           ("lodge.h", "lodge_exec.h", "lodge_file.h", "lodge_project.h", "lodge_snapshot.h", "lodge_thread.h")]
OLD = ROOT / "tests/api/abi/0.1"  # the headers of that version, and a program that uses them
EXAMPLE = ROOT / "docs/examples/session.c"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="no liblodge.so beside lodge")


def sanitized():
    names = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True, check=True).stdout
    return ["-fsanitize=address,undefined"] if "__asan_init" in names else []


def compile_program(source, program, *flags):
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *sanitized(), *flags, f"-I{ROOT}/include",
                    source, LIBRARY, "-pthread", f"-Wl,-rpath,{BUILD}", "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Compiles use_lib*.c of this directory on demand."""
    made, where = {}, tmp_path_factory.mktemp("lib")

    def make(name):
        if name not in made:
            made[name] = compile_program(ROOT / f"tests/api/{name}.c", where / name, "-D_GNU_SOURCE", f"-I{ROOT}/tests/unit")
        return made[name]

    return make


@pytest.fixture
def home(programs):
    """A data directory. Sessions outlive the program that created them, so they are destroyed here even if the test
    failed."""
    path = tempfile.mkdtemp(prefix="lodge-lib-")
    yield path
    assert passed(run(programs("use_lib"), path, "clean"))
    shutil.rmtree(path)


def run(program, *args, **kwargs):
    r = subprocess.run([program, *args], capture_output=True, text=True, timeout=300, **kwargs)
    print(r.stdout, r.stderr)
    return r


def passed(r):
    return r.returncode == 0 and "not ok" not in r.stdout and "SKIP" not in r.stdout


def value_of(r, word):
    return re.search(rf"^{word} (\S+)$", r.stdout, re.M).group(1)


@pytest.mark.parametrize("name", ["use_lib", "use_lib_run", "use_lib_files", "use_lib_threads", "use_lib_projects"])
def test_programs_use_the_library(programs, home, name):
    assert passed(run(programs(name), home))


@pytest.mark.parametrize("how", ["leave", "vanish"])
def test_sessions_outlive_the_program(programs, home, how):
    """The files and a running command with its output survive, whether the program closed the library or just
    exited."""
    first = run(programs("use_lib"), home, how)
    assert passed(first)
    second = run(programs("use_lib"), home, "back", value_of(first, "exec"))
    assert passed(second)
    assert value_of(second, "sandbox") == value_of(first, "sandbox")


def test_the_example_works_twice(tmp_path, home):
    program = compile_program(EXAMPLE, tmp_path / "session")
    env = {**os.environ, "LODGE_DATA": home, "LODGE_HOME": str(tmp_path / "older")}
    first, second = (run(program, env=env) for _ in range(2))
    assert first.returncode == 0 and "visit number 1\n" in first.stdout
    assert second.returncode == 0 and "visit number 2\n" in second.stdout
    assert second.stdout.split(",")[0] == first.stdout.split(",")[0]
    assert len(second.stdout.splitlines()) == 3


def test_the_example_is_short_and_in_the_documents():
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 30
    assert f"```\n{text}```\n" in (ROOT / "man/liblodge.3.scd").read_text()
    assert [b.text for b in pages.blocks("c") if b.info == "c"] == [text, (ROOT / "docs/examples/remove.c").read_text()]


def test_the_build_commands_of_the_readme_work(tmp_path, home):
    for name, target in (("build", BUILD), ("include", ROOT / "include"), ("docs", ROOT / "docs")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "bin").mkdir()
    compiler = tmp_path / "bin/cc"  # a program linked with a sanitized library must be sanitized too
    compiler.write_text(f"#!/bin/sh\nexec {shutil.which('cc')} {' '.join(sanitized())} \"$@\"\n")
    compiler.chmod(0o755)
    env = {**os.environ, "LODGE_HOME": home, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = run("bash", "-ec", "".join(b.text for b in pages.blocks("c") if b.info == "sh"), cwd=tmp_path, env=env)
    assert done.returncode == 0 and "visit number 2\n" in done.stdout, done
    state, hibernated, removed = done.stdout.splitlines()[-3:]
    assert (state.split()[1], hibernated) == ("active", "hibernated") and removed == f"removed {state.split()[0]}: no longer needed"


def functions(text):
    return set(re.findall(r"\blodge_\w+(?=\()", text))


def test_only_the_api_is_exported():
    names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in names.splitlines()} - {"LODGE_0", "LODGE_0.2"}
    assert names == functions("".join(h.read_text() for h in HEADERS)) | {"lodge_exec_wait_result"}


def versioned():
    """Every exported function with its version."""
    names = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", LIBRARY], capture_output=True, text=True,
                           check=True).stdout
    return {line.split()[-1] for line in names.splitlines()}


def test_the_library_has_all_symbols_of_the_version_before():
    old = functions("".join(h.read_text() for h in OLD.glob("*.h")))
    assert len(old) > 80 and {f"{n}@@LODGE_0" for n in old} - versioned() == set()


def test_new_functions_have_the_version_they_came_with():
    """A program that uses them does not start with an older library."""
    old = functions("".join(h.read_text() for h in OLD.glob("*.h")))
    for name in ("lodge_exec_kill", "lodge_exec_wait_result", "lodge_reader_open", "lodge_writer_commit"):
        assert name not in old and f"{name}@@LODGE_0.2" in versioned()


def compile_old(program, include, *flags):
    return subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", *flags, *sanitized(), f"-I{include}", OLD / "program.c", LIBRARY,
                           f"-Wl,-rpath,{BUILD}", "-o", program], capture_output=True, text=True)


def test_a_program_of_the_version_before_runs(tmp_path, home):
    """Compiled with the header of that version, run with the library of this one."""
    assert compile_old(tmp_path / "old", OLD, "-Werror").returncode == 0
    r = run(tmp_path / "old", home)
    assert (r.returncode, r.stdout) == (0, "3 0 3 hi\n"), r.stderr


def test_old_names_compile_with_a_note(tmp_path):
    """With today's header: the compiler says what each is called now. Only lodge_exec_wait() has another form."""
    text = (OLD / "program.c").read_text().replace("lodge_exec_wait(x, 60000)", "lodge_exec_wait(x, 60000, NULL)")
    (tmp_path / "a.c").write_text(text)
    r = subprocess.run(["cc", "-std=c11", "-fsyntax-only", f"-I{ROOT}/include", tmp_path / "a.c"], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    for was, now in (("once", "idempotency_key"), ("code", "exit_code"), ("hits", "limits_hit")):
        assert re.search(rf"warning: .{was}. is deprecated: now called {now}", r.stderr), r.stderr


def test_the_other_example_works(tmp_path, home):
    program = compile_program(ROOT / "docs/examples/stream.c", tmp_path / "stream")
    r = run(program, env={**os.environ, "LODGE_HOME": home}, input="a\nb\nc\n")
    assert (r.returncode, r.stdout) == (0, "a\nb\nc\nexit code 0: 3 big\n"), r.stderr


def test_every_function_is_documented_and_used():
    declared = functions("".join(h.read_text() for h in HEADERS))
    page = (ROOT / "man/liblodge.3.scd").read_text().replace("*(", "(")
    assert declared - functions(page) == set() and functions(page) - declared == set()
    used = "".join(f.read_text() for f in (ROOT / "tests/api").glob("use_lib*"))
    assert declared - functions(used) == set()


@pytest.mark.parametrize("compiler, language", [("cc", "c"), ("c++", "c++")])
def test_the_header_compiles_alone(compiler, language):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    subprocess.run([compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{ROOT}/include", "-"],
                   input="#include <lodge.h>\n", text=True, check=True)


def test_a_cpp_program_uses_the_library(tmp_path):
    if not shutil.which("c++"):
        pytest.skip("no c++")
    (tmp_path / "a.cc").write_text("#include <lodge.h>\n#include <cstring>\nint main() {\n"
                                   "lodge_want w = {};\nw.size = sizeof(w);\nlodge_session *s = nullptr;\n"
                                   "(void)w; lodge_free(s);\nreturn std::strlen(lodge_version()) == 0;\n}\n")
    subprocess.run(["c++", "-Wall", "-Wextra", "-Werror", *sanitized(), f"-I{ROOT}/include", tmp_path / "a.cc", LIBRARY,
                    f"-Wl,-rpath,{BUILD}", "-o", tmp_path / "a"], check=True)
    assert run(tmp_path / "a").returncode == 0


OLDER = """
import ctypes as c, sys

class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("home", c.c_char_p)]

class Ref(c.Structure):
    _fields_ = [("id", c.c_char_p), ("kind", c.c_char_p), ("key", c.c_char_p)]

class Session(c.Structure):
    _fields_ = [("id", c.c_char_p)]

class Command(c.Structure):
    _fields_ = [("size", c.c_size_t), ("argv", c.c_void_p), ("text", c.c_char_p)]

class Result(c.Structure):
    _fields_ = [("exec_id", c.c_char_p), ("code", c.c_int), ("signal", c.c_int), ("hits", c.c_uint), ("out", c.c_char_p)]

lib = c.CDLL(sys.argv[1])
lib.lodge_last_error.restype = c.c_char_p
lodge, session, result = c.c_void_p(), c.POINTER(Session)(), c.POINTER(Result)()

def ok(r):
    assert r == 0, lib.lodge_last_error()

ok(lib.lodge_open(c.byref(Options(c.sizeof(Options), sys.argv[2].encode())), c.byref(lodge)))
ok(lib.lodge_enter(lodge, None, c.byref(session)))
ref = Ref(id=session.contents.id)
ok(lib.lodge_run(lodge, c.byref(ref), c.byref(Command(c.sizeof(Command), None, b"echo $((6 * 7))")), c.byref(result)))
print(result.contents.code, result.contents.out.decode(), end="")
lib.lodge_free(result)
lib.lodge_free(session)
lib.lodge_close(lodge)
"""


def test_a_program_with_shorter_structs_works(home):
    """Uses ctypes and declares only the first fields of each struct."""
    if sanitized():
        pytest.skip("a sanitized library needs a sanitized program")
    r = run(sys.executable, "-c", OLDER, LIBRARY, home)
    assert r.returncode == 0 and r.stdout == "0 42\n"
