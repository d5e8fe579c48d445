# SPDX-License-Identifier: Apache-2.0
"""GET /api/sandbox/reconnect after a sandbox ended: "expired" for every end but one by a call for this session, whatever
noticed it, however long ago, until the session is resumed."""
import contextlib
import os
import signal

import pytest

from client import Lodged, is_alive, wait_for
from people import User
from test_chat import ok, reconnect, sandbox, status, stub


def snapshot(client, sid):
    assert client.post(f"/v1/sessions/{sid}/snapshots", {}).status == 201


def start_command(client, sid):
    assert client.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 600", "background": True}).status == 202


def stop_and_resume(client, sid):
    ok(sandbox(client, "", sid, "DELETE"))
    ok(sandbox(client, "", sid))


def archive_and_resume(client, sid):
    for state in ("archived", "running"):
        ok(client.patch("/api/sessions/" + sid, {"status": state}))
    ok(sandbox(client, "", sid))


# what a sandbox did before it died
BEFORE = {"new": lambda client, sid: None, "working": start_command, "after a snapshot": snapshot,
          "after a resume": stop_and_resume, "after an archive": archive_and_resume}

def new(client, **body):
    sid = stub(client, accountId="ann", **body)["id"]
    ok(sandbox(client, "", sid))
    return sid


def check_expired(client, sids):
    for name, sid in sids.items():
        for _ in range(2):
            a = reconnect(client, sid)
            assert (name, a["status"]) == (name, "expired"), (a, client.session(sid))
            assert "expiresAt" not in a and "verified" not in a
        assert status(client, sid)["status"] == "no_sandbox"


def check_resumed(client, sids):
    """A resume ends the state; a stop by its owner is not an expiry."""
    for name, sid in sids.items():
        ok(sandbox(client, "", sid))
        assert (name, reconnect(client, sid)["status"]) == (name, "connected")
        ok(sandbox(client, "", sid, "DELETE"))
        assert (name, reconnect(client, sid)["status"]) == (name, "no_sandbox")


def die_while_running(d, sids):
    client = d.client()
    for name, prepare in BEFORE.items():
        for noticed in ("probe", "sweep", "command"):
            sid = sids[f"{name}, noticed by {noticed}"] = new(client)
            prepare(client, sid)
            d.kill_sandbox(client.session(sid))
            if noticed == "sweep":
                assert wait_for(lambda: client.session(sid)["state"] == "hibernated")
            elif noticed == "command":
                client.post(f"/v1/sessions/{sid}/exec?resume=0", {"command": "true"})
            else:
                assert wait_for(lambda: reconnect(client, sid)["status"] != "connected", pause=0)
    sid = sids["paused and killed"] = new(client)
    assert client.post(f"/v1/sessions/{sid}/pause").status == 200
    d.kill_sandbox(client.session(sid))
    assert wait_for(lambda: reconnect(client, sid)["status"] != "connected")


def time_out(d, sids):
    client = d.client()
    sids["idle"] = new(client, idleTimeoutMs=300)
    sids["idle by /v1"] = client.enter(idle_timeout_ms=300)
    sids["lifetime"] = client.enter(max_lifetime_ms=10300)  # 10 s before its end no new work starts
    for name in ("idle", "idle by /v1", "lifetime"):
        assert wait_for(lambda: client.session(sids[name])["state"] == "hibernated"), name


def end_by_administrator(d, sids):
    client = d.client()
    for name, call in (("hibernate", lambda sid: client.post(f"/v1/sessions/{sid}/hibernate")),
                       ("archive", lambda sid: client.patch(f"/v1/sessions/{sid}", {"archived": True}))):
        sid = sids["an administrator: " + name] = new(client)
        assert call(sid).status == 200
    assert client.patch(f"/v1/sessions/{sid}", {"archived": False}).status == 200


def make_way(d, sids):
    """For another session of the same user, and for another project."""
    client = d.client()
    sids["replaced"] = client.enter(key="first", user="one", max_active_per_user=1)
    client.enter(key="second", user="one", max_active_per_user=1, on_exceed="replace")
    bob = User(client, "bob")
    bob.project("p")
    bob.project("q")
    bob.switch("p")
    sids["switched away"] = client.get("/v1/users/bob").json["user"]["session"]["id"]
    bob.switch("q")


def die_while_lodged_is_down(d, sids):
    client = d.client()
    for how in (signal.SIGTERM, signal.SIGKILL):
        pids = []
        for name, prepare in BEFORE.items():
            sid = sids[f"{name}, after {how.name} of lodged"] = new(client)
            prepare(client, sid)
            pids.append(d.init_of(client.session(sid)))
        sids["idle after " + how.name] = new(client, idleTimeoutMs=1000)
        keepers = d.keepers()
        d.stop(how)
        for pid in pids + keepers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: not any(map(is_alive, pids)))
        d.start()
        client = d.client()
        assert wait_for(lambda: client.session(sids["idle after " + how.name])["state"] == "hibernated")


def test_every_death_is_an_expiry():
    """Of more than 30 kinds, also after another restart."""
    with contextlib.closing(Lodged()) as d:
        sids = {}
        for kill in (die_while_running, time_out, end_by_administrator, make_way, die_while_lodged_is_down):
            kill(d, sids)
        assert len(sids) > 30
        sids["keeper and init"] = new(d.client())
        for pid in d.keepers():
            os.kill(pid, signal.SIGKILL)
        d.kill_sandbox(d.client().session(sids["keeper and init"]))
        assert wait_for(lambda: reconnect(d.client(), sids["keeper and init"])["status"] != "connected")
        check_expired(d.client(), sids)
        d.stop()
        d.start()
        check_expired(d.client(), sids)
        check_resumed(d.client(), sids)


def test_an_evicted_sandbox_is_expired():
    with contextlib.closing(Lodged(max_active=1)) as d:
        client = d.client()
        sid = new(client)
        client.enter(key="another")
        assert client.session(sid)["cause"]["code"] == "room"
        check_expired(client, {"evicted": sid})


def test_a_service_that_hibernates_all_when_it_stops():
    with contextlib.closing(Lodged(stop_sandboxes=1)) as d:
        sids = {"stopped": new(d.client())}
        d.stop()
        d.start()
        check_expired(d.client(), sids)
        check_resumed(d.client(), sids)


def test_an_expiry_outlasts_what_does_not_resume(lodged, client):
    """Archiving, a snapshot, another stop."""
    sid = new(client)
    lodged.kill_sandbox(client.session(sid))
    assert wait_for(lambda: client.session(sid)["state"] == "hibernated")
    at = "/api/sessions/" + sid
    for step in (lambda: client.patch(at, {"status": "archived"}), lambda: client.patch(at, {"status": "running"}),
                 lambda: sandbox(client, "", sid, "DELETE"),
                 lambda: client.post(f"/v1/sessions/{sid}/snapshots", {"name": "after"})):
        assert step().status in (200, 201)
        check_expired(client, {"dead": sid})
    check_resumed(client, {"dead": sid})


@pytest.mark.parametrize("scope", ["tenant", "session"])
def test_calls_of_the_owner_are_no_expiry(lodged, scope):
    _, owner = lodged.new_key(scope=scope)
    client = lodged.client()
    for path, body in (("/hibernate", {}), ("", {"archived": True})):
        sid = new(owner)
        answer = owner.post(f"/v1/sessions/{sid}{path}", body) if path else owner.patch(f"/v1/sessions/{sid}", body)
        assert answer.status == 200, answer
        assert reconnect(owner, sid)["status"] == reconnect(client, sid)["status"] == "no_sandbox"
    sid = new(owner)
    ok(sandbox(owner, "/snapshot", sid))
    assert reconnect(owner, sid)["status"] == "no_sandbox"
    sid = new(client)  # the key of this lodged is an administrator's, but here it acts for the application
    ok(sandbox(client, "", sid, "DELETE"))
    assert reconnect(client, sid)["status"] == "no_sandbox"
    assert reconnect(client, stub(client)["id"])["status"] == "no_sandbox"
