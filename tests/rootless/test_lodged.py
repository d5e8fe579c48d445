# SPDX-License-Identifier: Apache-2.0
"""lodged as an ordinary user."""
import contextlib
import os

import pytest

import world as world_module
from client import Lodged
from conftest import USER


class Users(Lodged):
    how = {"user": USER, "group": USER, "extra_groups": []}

    def start(self):
        os.chown(self.home, USER, USER)
        super().start()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Disables the check of the conftest, because a running lodged has a keeper."""


@pytest.fixture(scope="module")
def client(programs):
    with contextlib.closing(Users(os.path.join(os.path.dirname(world_module.LODGE), "lodged"))) as lodged:
        yield lodged.client()


def test_a_session_works(client):
    session = client.enter(key="plain")
    assert client.run(session, "id -u; echo x >f; cat f") == "1000\nx\n"


@pytest.mark.parametrize("limits", [{"memory_bytes": 64 << 20}, {"cpus": 0.5}, {"pids": 20}, {"disk_bytes": 64 << 20}])
def test_a_limit_that_cannot_be_enforced_is_refused(client, limits):
    """The caller relies on the limit; a refusal leaves nothing."""
    answer = client.post("/v1/sessions", {"key": "bounded", "limits": limits})
    assert answer.status == 409, answer
    assert ("disk_bytes" in limits) == ("disk limit" in answer.json["error"]["message"]), answer
    assert client.get("/v1/sessions/key:bounded").status == 404
