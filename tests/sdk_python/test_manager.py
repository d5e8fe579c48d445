# SPDX-License-Identifier: Apache-2.0
"""The methods of SessionManager."""
import concurrent.futures
import contextlib
import os
import signal
import uuid

import pytest
from client import KEY, wait_for
from places import Service

import lodge


@pytest.fixture
def manager(service):
    with lodge.Client(service.url, KEY) as client:
        with lodge.SessionManager(client, idle_timeout_ms=600000) as m:
            yield m
            m.cleanup()


def test_get_or_create(manager):
    key = "k-" + uuid.uuid4().hex
    assert manager.get_session(key) is None and not manager.is_session_valid(key)
    first = manager.get_or_create_session(key, user="ada")
    assert first.outcome == "created" and first.record["idle_timeout_ms"] == 600000
    again = manager.get_or_create_session(key)
    assert again.outcome == "reused" and again.id == first.id
    first.hibernate()
    assert not manager.is_session_valid(key) and manager.get_session(key)["state"] == "hibernated"
    assert manager.get_or_create_session(key).outcome == "resumed"
    first.delete()
    replaced = manager.get_or_create_session(key)
    assert replaced.outcome == "created" and not replaced.state_lost and replaced.id != first.id  # not lost, because it was requested


def test_concurrent_calls_share_one_creation(manager):
    key = "k-" + uuid.uuid4().hex
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: manager.get_or_create_session(key), range(12)))
    assert len({s.id for s in found}) == 1 and sorted(s.outcome for s in found) == ["created"] + ["reused"] * 11


def test_reads_change_nothing(manager):
    key = "k-" + uuid.uuid4().hex
    manager.get_or_create_session(key)
    before = manager.get_session(key)
    assert manager.is_session_valid(key) and manager.has_active_session(key)
    assert manager.get_session(key) == before


def test_valid_means_that_the_sandbox_answers():
    with contextlib.closing(Service(probe_timeout="1s", probe_failures=100000)) as service, \
            lodge.Client(service.url, KEY) as client, lodge.SessionManager(client) as manager:
        init = service.init_of(manager.get_or_create_session("hangs").record)
        assert manager.is_session_valid("hangs")
        os.kill(init, signal.SIGSTOP)
        try:
            assert not manager.is_session_valid("hangs") and manager.has_active_session("hangs")
        finally:
            os.kill(init, signal.SIGCONT)
        assert wait_for(lambda: manager.is_session_valid("hangs"))


def test_extend_and_invalidate(manager):
    key = "k-" + uuid.uuid4().hex
    assert manager.extend_session(key) is False
    manager.get_or_create_session(key)
    before = manager.get_session(key)["hibernate_at"]
    assert manager.extend_session(key, 900000) is True and manager.get_session(key)["hibernate_at"] > before
    manager.invalidate_session(key)
    manager.invalidate_session(key)
    assert manager.get_session(key) is None and manager.extend_session(key) is False
    manager.invalidate_session("never-there")


def test_count_and_cleanup(manager):
    assert manager.get_active_session_count() == 0
    for user, key in (("ada", "1"), ("ada", "2"), ("bob", "3")):
        manager.get_or_create_session(key, user=user)
    thread = manager.client.enter(user="ada", thread="t")  # also a session of a thread
    assert manager.get_active_session_count() == 4
    done = manager.cleanup_user_sessions("ada")
    assert len(done["destroyed"]) == 3 and thread.id in done["destroyed"] and done["failed"] == []
    assert manager.get_active_session_count() == 1 and manager.has_active_session("3")
    assert len(manager.cleanup()["destroyed"]) == 1 and manager.cleanup() == {"destroyed": [], "failed": []}
