# SPDX-License-Identifier: Apache-2.0
"""lodge policy test: verdicts with reasons, without a daemon."""
import json
import os
import subprocess

import pytest

import machine

LODGE = os.path.join(machine.build(), "lodge")


def test(*args):
    return subprocess.run([LODGE, "policy", "test", *args], capture_output=True, text=True, timeout=180)


test.__test__ = False


@pytest.mark.parametrize("command, status", [
    ("ls", 0), ("echo hi", 0), ("git log | ls", 0), ("/bin/ls", 0), ("echo '|' xyz", 0), ("", 0),
    ("xyz", 1), ("echo hi;xyz", 1), ("$X", 1), ("./ls", 1), ("bash -c ls", 1),
    ("echo 'a", 2), ("(ls", 2), ("if ls", 2),
])
def test_the_status_is_the_verdict(command, status):
    assert test("--allow", "ls,git", command).returncode == status


def test_each_word_is_explained():
    answer = test("--allow", "ls,cat", "--deny", "cat", "ls | cat\n$X; xyz; cd /")
    assert answer.stdout.splitlines() == [
        "yes  'ls' at line 1, column 1 is on the allow list",
        "no   'cat' at line 1, column 6 is denied",
        "no   '$X' at line 2, column 1 is unknown until it runs",
        "no   'xyz' at line 2, column 5 is not on the allow list",
        "yes  'cd' at line 2, column 10 is a shell builtin",
        "refused"]
    assert (answer.returncode, answer.stderr) == (1, "")
    assert test("--deny", "rm", "f() { ls; }; f; $X").stdout.splitlines()[1:] == [
        "yes  'f' at line 1, column 14 is a function defined in the text",
        "yes  '$X' at line 1, column 17 is unknown until it runs", "allowed"]


def test_as_json():
    answer = test("--json", "--allow", "ls", "ls;xyz")
    verdict = json.loads(answer.stdout)
    assert verdict.pop("enforced") in (True, False)
    assert answer.returncode == 1 and verdict == {
        "allowed": False, "reason": "is not on the allow list", "programs": [
            {"name": "ls", "kind": "program", "offset": 0, "line": 1, "column": 1, "allowed": True, "why": "is on the allow list"},
            {"name": "xyz", "kind": "program", "offset": 3, "line": 1, "column": 4, "allowed": False,
             "why": "is not on the allow list"}]}


def test_blanks_around_names_are_ignored():
    assert test("--allow", " ls, cat ", "ls; cat").returncode == 0
    for names in ("ls -la", "ls,,cat", " , ls"):
        answer = test("--allow", names, "ls")
        assert answer.returncode == 2 and "must be a program name" in answer.stderr, names


def test_lists_from_a_file(tmp_path):
    commands = {"allow": ["ls"], "deny": ["git"], "reason": "ask the operator"}
    for content in (commands, {"name": "p", "max_active_per_user": 2, "commands": commands}):
        path = tmp_path / "policy.json"
        path.write_text(json.dumps(content))
        assert test("--file", str(path), "ls").returncode == 0
        assert test("--file", str(path), "cat").stdout.splitlines()[-1] == "ask the operator"
        verdict = json.loads(test("--json", "--file", str(path), "cat").stdout)
        assert verdict["reason"] == "is not on the allow list: ask the operator"
        assert test("--file", str(path), "--allow", "cat,git", "cat; ls").returncode == 0
        assert test("--file", str(path), "--allow", "git", "git").returncode == 1
    path.write_text('{"allow": [1]}')
    answer = test("--file", str(path), "ls")
    assert answer.returncode == 2 and "allow: must contain only names" in answer.stderr
    answer = test("--file", str(tmp_path / "nothing"), "ls")
    assert answer.returncode == 2 and "nothing" in answer.stderr


def test_wrong_usage_is_reported():
    answer = test("echo \"a")
    assert answer.returncode == 2 and answer.stderr == 'lodge: command: unclosed " at line 1, column 6\n'
    for args in ((), ("a", "b"), ("--allow", "a/b", "ls"), ("--colour", "ls")):
        answer = test(*args)
        assert answer.returncode == 2 and answer.stderr.startswith("lodge: ") and not answer.stdout, args
    assert subprocess.run([LODGE, "policy", "tost"], capture_output=True).returncode == 2


def test_help():
    for args in (["policy", "--help"], ["policy", "test", "--help"]):
        answer = subprocess.run([LODGE, *args], capture_output=True, text=True)
        assert answer.returncode == 0 and "policy" in answer.stdout and not answer.stderr
    assert "policy" in subprocess.run([LODGE, "--help"], capture_output=True, text=True).stdout
