# SPDX-License-Identifier: Apache-2.0
"""The types of the package: strict, up to date, and what a caller's program gets from them."""
import os
import subprocess
import sys

import pytest
from conftest import ROOT

PACKAGE = os.path.join(ROOT, "sdk/python")
CALLER = '''
import asyncio
import lodge
from lodge import records

with lodge.Sandbox.create(memory="1G") as box:
    reveal_type(box.run("x"))
    reveal_type(box.run("x", text=False))
    reveal_type(box.run("x", background=True))
    reveal_type(box.fork())
    reveal_type(box.fork(2))
    reveal_type(box.snapshot().created_at)
    reveal_type(box.stats()["memory_bytes"])
    reveal_type(lodge.Sandbox.map(lambda b, n: n + 1, [1, 2]))
    box.run("x", on_stdout=print, check=True)
    for entry in box.files.list():
        reveal_type(entry["type"])


async def main() -> None:
    async with await lodge.AsyncSandbox.create() as other:
        reveal_type(await other.run("x"))
        reveal_type(await other.run("x", background=True))
        async for stream, text in (await other.run("x", background=True)).logs(follow=True):
            reveal_type(text)


def state(record: records.Session) -> str:
    return record["state"]


def show(event: records.ExecEvent) -> str:
    return event["data"] if event["event"] == "stdout" else ""


asyncio.run(main())
box.run("x", timout=3)
box.files.read_text(3)
lodge.Sandbox.create(memory=1.5)
'''
REVEALED = ["lodge.types.Result[builtins.str]", "lodge.types.Result[builtins.bytes]", "lodge.client.Command",
            "lodge.client.Sandbox", "builtins.list[lodge.client.Sandbox]", "Union[datetime.datetime, None]", "builtins.int",
            "builtins.list[builtins.int]",
            "Union[Literal['file'], Literal['directory'], Literal['symlink'], Literal['fifo'], Literal['socket'], Literal['device']]",
            "lodge.types.Result[builtins.str]", "lodge.aio.AsyncCommand", "builtins.str"]
WRONG = ['overload variant of "run"', "read_text", "memory"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Both tests check the package; the second finds it here."""
    return tmp_path_factory.mktemp("mypy")


def mypy(cache, *what):
    return subprocess.run(["mypy", "--strict", "--cache-dir", cache, *what], cwd=PACKAGE, text=True,
                          capture_output=True, env={**os.environ, "MYPYPATH": PACKAGE})


def test_the_package_is_strict(cache):
    r = mypy(cache, "-p", "lodge")
    assert r.returncode == 0, r.stdout + r.stderr


def test_what_a_caller_sees(cache, tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    said = mypy(cache, tmp_path / "caller.py").stdout.splitlines()
    assert [line.split('"')[1] for line in said if "Revealed" in line] == REVEALED
    errors = [line for line in said if ": error:" in line]
    assert len(errors) == len(WRONG) and all(any(w in e for e in errors) for w in WRONG), said


@pytest.mark.parametrize("program", ["stubs.py", "make_types.py"])
def test_generated_files_are_up_to_date(program):
    assert subprocess.run([sys.executable, os.path.join(PACKAGE, program), "--check"]).returncode == 0, f"run sdk/python/{program}"
