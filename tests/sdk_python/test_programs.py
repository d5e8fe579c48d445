# SPDX-License-Identifier: Apache-2.0
"""The ten programs of sdk/python/examples: they run as they are, and they are short."""
import ast
import glob
import os
import subprocess
import sys

import pytest
from client import KEY
from conftest import ROOT

import lodge

PLACE = os.path.join(ROOT, "sdk/python/examples")
LINES_MAX = 67  # what the same programs have with the SDK of another sandbox service
EXPECTED = {
    "run": "hi\n",
    "create_and_reuse": "True 1\nFalse 2\n",
    "stream": "line 1\nline 2\nline 3\n",
    "background_and_reconnect": "listening on 8080\n['listening on 8080', 'bye']\n",
    "files_and_directories": "['readme.txt', 'result.txt'] 42\n",
    "failure": "3\n2 no such target\n",
    "timeouts": "True\n",
    "snapshot_and_fork": "first second\nfirst\n",
    "terminal": "ada\r\nhello ada\r\n\n",
    "batch": "328350\n",
}
KEPT = ("alice", "server")


def source(name):
    with open(os.path.join(PLACE, name + ".py"), encoding="utf-8") as f:
        return f.read()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program(service, tmp_path, name):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("LODGE_")}, "LODGE_URL": service.url,
           "LODGE_API_KEY": KEY, "PYTHONPATH": os.path.join(ROOT, "sdk/python")}
    r = subprocess.run([sys.executable, "-W", "error", os.path.join(PLACE, name + ".py")], cwd=tmp_path, env=env,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=400)
    assert (r.returncode, r.stdout.decode(), r.stderr.decode()) == (0, EXPECTED[name], "")
    with lodge.Client(service.url, KEY) as client:
        assert [s["key"] for s in client.sessions() if s["key"] not in KEPT] == []
        for key in [s["key"] for s in client.sessions()]:
            client.session("key:" + key).delete()
        for snapshot in client.snapshots():
            client.delete_snapshot(snapshot["id"])


def test_all_programs_are_run():
    assert {os.path.basename(p)[:-3] for p in glob.glob(PLACE + "/*.py")} == set(EXPECTED)


def test_they_are_short():
    code = [line for name in EXPECTED for line in source(name).splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) <= LINES_MAX


def test_the_first_output_needs_three_words():
    """Of the first program: create, run and stdout."""
    found = {n.attr for n in ast.walk(ast.parse(source("run"))) if isinstance(n, ast.Attribute)}
    assert found == {"Sandbox", "create", "run", "stdout"}
