# SPDX-License-Identifier: Apache-2.0
"""sdk/typescript/examples: ten short programs that use Sandbox, and the examples in the comments of its classes."""
import re

import pytest

from client import KEY
from typescript_package import PROGRAMS, class_examples, run_module

LINES_MOST = 67  # of all ten programs, without blank lines and comments
EXPECTED = {
    "background_and_reconnect": "listening on 8080\n9\n",
    "batch": "328350\n",
    "create_and_reuse": "false remember me\n",
    "failure": "3\ncat: missing: No such file or directory\n\n",
    "files_and_directories": "one\nthree\ntwo\n\n",
    "run": "42 0\n",
    "snapshot_and_fork": "one one\n",
    "stream": "line 1\nline 2\nline 3\n",
    "terminal": None,
    "timeouts": "true false\ntrue\n",
}


def lines_of(name):
    with open(PROGRAMS[name], encoding="utf-8") as f:
        return [line for line in f.read().splitlines() if line.strip() and not line.startswith("//")]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_program(built, lodged, tmp_path, name):
    words = tmp_path / "words"
    words.mkdir()
    (words / "a").write_text("two\none\n")
    (words / "b").write_text("three\n")
    before = {s["id"] for s in lodged.client(KEY).get("/v1/sessions").json["sessions"]}
    said = run_module(built, lodged, "program_" + name, cwd=str(tmp_path))
    if name == "batch":  # progress
        assert said.splitlines()[-2] == "100 of 100"
        said = said.splitlines()[-1] + "\n"
    if name == "terminal":
        assert re.search(r"30 100\r\n.*\n0\n$", said, re.S), said
    else:
        assert said == EXPECTED[name]
    if name == "files_and_directories":
        assert (tmp_path / "result" / "sorted").read_text() == "one\nthree\ntwo\n"
    assert {s["id"] for s in lodged.client(KEY).get("/v1/sessions").json["sessions"]} <= before, "it left a sandbox behind"


def test_the_ten_programs_are_short():
    assert sorted(PROGRAMS) == sorted(EXPECTED)
    assert sum(len(lines_of(name)) for name in PROGRAMS) <= LINES_MOST


def test_the_first_output_needs_three_names():
    """The class, how to make one, and how to run a command."""
    text = "\n".join(lines_of("run"))
    before, _ = text.split("console.log")
    used = set(re.findall(r"\b(Sandbox)\b", before)) | set(re.findall(r"\w\.(\w+)\(", before))
    assert used == {"Sandbox", "create", "run"}


@pytest.mark.parametrize("name", sorted(name for name, _ in class_examples()))
def test_example_of_a_class(built, lodged, tmp_path, name):
    run_module(built, lodged, "example_" + name, cwd=str(tmp_path))
