# SPDX-License-Identifier: Apache-2.0
"""How a sandbox ended: the real cause, kept in the record until the next end."""
import contextlib
import os
import signal
import sqlite3

import pytest

from client import Lodged, wait_for
from machine import is_alive, keepers_of


@pytest.fixture
def sid(client):
    made = client.enter(key="mortal")
    yield made
    client.delete("/v1/sessions/" + made)


def ended(client, sid):
    """Wait until the service noticed it; return its record."""
    assert wait_for(lambda: client.session(sid)["state"] == "hibernated"), client.session(sid)
    return client.session(sid)


def test_a_signal_from_outside(lodged, client, sid):
    assert client.session(sid)["last_death"] is None
    client.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 1000", "background": True})
    os.kill(lodged.init_of(client.session(sid)), signal.SIGKILL)
    s = ended(client, sid)
    text = "its init was killed by signal 9 (not by lodge)"
    assert s["last_death"] == {"at": s["last_death"]["at"], "code": "killed", "text": text, "actor": "",
                               "signal": 9, "lost": {"commands": 1}, "incarnation": 1}
    assert (s["cause"]["code"], s["cause"]["text"], s["cause"]["actor"]) == ("gone", text, ""), s["cause"]
    events = client.get(f"/v1/events?session={sid}&order=desc").json["events"]
    assert events[0]["kind"] == "sealed" and events[0]["cause"]["text"] == text
    client.run(sid, "true")  # it runs again, and still says how the last one ended
    assert client.session(sid)["last_death"] == s["last_death"] and client.session(sid)["cause"] is None


def test_on_request_and_idle(client, sid):
    asked = client.post(f"/v1/sessions/{sid}/hibernate").json["session"]
    death = asked["last_death"]
    assert (death["code"], death["signal"], death["lost"]) == ("asked", None, {"commands": 0})
    assert death["text"] == "it was ended on request" and death["actor"] == asked["cause"]["actor"] != ""
    client.run(sid, "true")
    client.patch("/v1/sessions/" + sid, {"idle_timeout_ms": 1})
    death = ended(client, sid)["last_death"]
    assert (death["code"], death["actor"], death["incarnation"]) == ("idle", "lodge", 2), death


def test_a_rollback_ends_the_sandbox_too(client, sid):
    snapshot = client.post(f"/v1/sessions/{sid}/snapshots").json["snapshot"]["id"]
    client.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 1000", "background": True})
    back = client.post(f"/v1/sessions/{sid}/rollback", {"snapshot": snapshot}).json["session"]
    assert back["state"] == "active"
    assert (back["last_death"]["code"], back["last_death"]["lost"]) == ("asked", {"commands": 1})


def kill_while_stopped(d, sid):
    """The daemon and its keeper end, then the sandbox."""
    pid = d.init_of(d.client().session(sid))
    d.stop(signal.SIGKILL)
    assert wait_for(lambda: not keepers_of(d.home))
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: not is_alive(pid))


def test_while_lodged_was_down_and_after_a_reboot():
    with contextlib.closing(Lodged()) as d:
        for reboot in (False, True):
            sid = d.client().enter(key="mortal")
            d.client().post(f"/v1/sessions/{sid}/exec", {"command": "sleep 1000", "background": True})
            kill_while_stopped(d, sid)
            if reboot:  # the sandbox ran under another kernel
                with contextlib.closing(sqlite3.connect(os.path.join(d.home, "lodge.db"))) as db, db:
                    assert db.execute("UPDATE session SET boot_id = 'another'").rowcount == 1
            d.start()
            s = ended(d.client(), sid)
            code, text = (("host_restarted", "the host restarted") if reboot else
                          ("gone", "it ended while lodged or lodge-keeper was not running; how is not known"))
            assert (s["last_death"]["code"], s["last_death"]["text"], s["cause"]["text"]) == (code, text, text), s
            assert s["last_death"]["signal"] is None and s["last_death"]["lost"] == {"commands": 1}


def test_a_keeper_that_was_restarted_does_not_invent_a_signal(lodged, client, sid):
    pid = lodged.init_of(client.session(sid))
    for keeper in lodged.keepers():
        os.kill(keeper, signal.SIGKILL)
    client.get(f"/v1/sessions/{sid}/stats")  # starts the next one
    os.kill(pid, signal.SIGKILL)
    death = ended(client, sid)["last_death"]
    assert (death["code"], death["signal"]) == ("gone", None) and "not known" in death["text"], death
