# SPDX-License-Identifier: Apache-2.0
"""The service as an ordinary user."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

import world as world_module
from conftest import USER

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

from client import KEY, Client  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_is_left():
    """While it runs it has a keeper."""


@pytest.fixture(scope="module")
def client(programs):
    home = tempfile.mkdtemp(prefix="lodge-user-", dir="/var/tmp")
    os.chown(home, USER, USER)
    program = os.path.join(os.path.dirname(world_module.LODGE), "lodged")
    p = subprocess.Popen([program, "--data", home, "--listen", "127.0.0.1:0"], user=USER, group=USER, extra_groups=[],
                         env=dict(os.environ, LODGE_API_KEY=KEY), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        host, port = re.search(r"http://([0-9.]+):([0-9]+)", p.stdout.readline().decode()).groups()
        c = Client(host, int(port), KEY)
        yield c
        for s in c.get("/v1/sessions").json["sessions"]:
            c.delete("/v1/sessions/" + s["id"])
        p.terminate()
        assert p.wait(60) == 0
    finally:
        with contextlib.suppress(OSError):
            p.kill()
        p.wait()
        p.stdout.close()
        shutil.rmtree(home)


def test_a_session_works(client):
    session = client.enter(key="plain")
    assert client.run(session, "id -u; echo x >f; cat f") == "1000\nx\n"


@pytest.mark.parametrize("limits", [{"memory_bytes": 64 << 20}, {"cpus": 0.5}, {"pids": 20}, {"disk_bytes": 64 << 20}])
def test_a_limit_that_cannot_be_enforced_is_refused(client, limits):
    """Who asks for one relies on it; and a refusal leaves nothing."""
    answer = client.post("/v1/sessions", {"key": "bounded", "limits": limits})
    assert answer.status == 409, answer
    assert ("disk_bytes" in limits) == ("disk limit" in answer.json["error"]["message"]), answer
    assert client.get("/v1/sessions/key:bounded").status == 404
