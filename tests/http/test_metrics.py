# SPDX-License-Identifier: Apache-2.0
"""/metrics by tenant: what sandboxes use, how they end, which keys may see it, and how long it can get."""
import contextlib
import os
import re
import signal

import pytest

from client import Lodged, wait_for
from test_admin import read_metrics

MB = 1 << 20
STATES = {"none", "provisioning", "active", "hibernating", "hibernated", "restoring", "archived", "failed", "destroying"}
USED = ("lodge_sandbox_memory_bytes", "lodge_sandbox_memory_limit_bytes", "lodge_sandbox_disk_bytes",
        "lodge_sandbox_cpu_seconds_total", "lodge_sandbox_oom_kills_total")
FAMILIES = {*USED, "lodge_sessions", "lodge_sandbox_deaths_total"}


def labels_of(text):
    return {k: re.sub(r"\\(.)", r"\1", v) for k, v in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text)}


def value(client, name, **labels):
    """The sample with exactly these labels; None if there is none."""
    found = [v for (n, l), v in read_metrics(client)[0].items() if n == name and labels_of(l) == labels]
    return found[0] if found else None


def total(client, name, **labels):
    return sum(v for (n, l), v in read_metrics(client)[0].items() if n == name and labels.items() <= labels_of(l).items())


@pytest.fixture
def tenant(lodged, request):
    """A client of a new tenant, whose name is in `.tenant`; its sessions are destroyed after the test."""
    name = request.node.name
    _, client = lodged.new_key(tenant=name, scope="tenant")
    client.tenant = name
    yield client
    client.clear()


def becomes(client, name, wanted, **labels):
    """Measurements are at least a second apart."""
    assert wait_for(lambda: wanted(value(client, name, **labels))), (name, labels, value(client, name, **labels))
    return value(client, name, **labels)


def test_the_version_is_a_label(client):
    version = client.get("/health").json["version"]
    assert value(client, "lodge_build_info", version=version) == 1
    assert value(client, "lodge_keeper_up") == 1 and value(client, "lodge_disk_size_bytes") > value(client, "lodge_disk_free_bytes") > 0


def test_sessions_by_state(client, tenant):
    asleep = [tenant.enter(asleep=True) for _ in range(3)]
    tenant.run(tenant.enter(key="one"), "true")
    sid = tenant.enter(key="two")
    assert tenant.post(f"/v1/sessions/{sid}/hibernate").status == 200
    for state, wanted in (("none", 3), ("active", 1), ("hibernated", 1)):
        becomes(client, "lodge_sessions", lambda v, w=wanted: v == w, tenant=tenant.tenant, state=state)
    assert tenant.delete("/v1/sessions/" + asleep[0]).status == 200
    becomes(client, "lodge_sessions", lambda v: v == 2, tenant=tenant.tenant, state="none")
    shown = {labels_of(l)["state"] for n, l in read_metrics(client)[0] if n == "lodge_sessions"}
    assert shown == STATES


def test_memory_cpu_and_disk(client, tenant):
    of = {"tenant": tenant.tenant}
    sid = tenant.enter(key="busy", limits={"memory_bytes": 256 * MB})
    tenant.run(sid, "head -c 20M /dev/zero >/dev/shm/f; head -c 30M /dev/urandom >kept; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    becomes(client, "lodge_sandbox_memory_bytes", lambda v: v and v >= 20 * MB, **of)
    assert value(client, "lodge_sandbox_memory_limit_bytes", **of) == 256 * MB
    used = becomes(client, "lodge_sandbox_cpu_seconds_total", lambda v: v and v > 0, **of)
    becomes(client, "lodge_sandbox_disk_bytes", lambda v: v and v >= 30 * MB, **of)
    assert tenant.post(f"/v1/sessions/{sid}/hibernate").status == 200
    becomes(client, "lodge_sandbox_memory_bytes", lambda v: v == 0, **of)  # the files stay, and so does what was counted
    becomes(client, "lodge_sandbox_disk_bytes", lambda v: v >= 30 * MB, **of)
    after = value(client, "lodge_sandbox_cpu_seconds_total", **of)
    assert after >= used
    tenant.run(sid, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    assert tenant.delete("/v1/sessions/" + sid).status == 200  # counted at the end, without a measurement in between
    becomes(client, "lodge_sandbox_cpu_seconds_total", lambda v: v > after, **of)
    becomes(client, "lodge_sandbox_disk_bytes", lambda v: v == 0, **of)


def test_oom_kills(client, tenant):
    sid = tenant.enter(key="greedy", limits={"memory_bytes": 24 * MB})
    for _ in range(2):
        assert tenant.post(f"/v1/sessions/{sid}/exec", {"argv": ["tail", "/dev/zero"]}).json["oom_killed"]
    assert tenant.delete("/v1/sessions/" + sid).status == 200
    becomes(client, "lodge_sandbox_oom_kills_total", lambda v: v and v >= 2, tenant=tenant.tenant)


def test_deaths_by_cause(lodged, client, tenant):
    def deaths():
        return {labels_of(l)["cause"]: v for (n, l), v in read_metrics(client)[0].items()
                if n == "lodge_sandbox_deaths_total" and labels_of(l).get("tenant") == tenant.tenant and v}

    sid = tenant.enter(key="mortal")
    assert deaths() == {}
    os.kill(lodged.init_of(tenant.session(sid)), signal.SIGKILL)
    assert wait_for(lambda: tenant.session(sid)["state"] == "hibernated") and deaths() == {"killed": 1}
    tenant.run(sid, "true")
    assert tenant.post(f"/v1/sessions/{sid}/hibernate").status == 200 and deaths() == {"killed": 1, "asked": 1}
    tenant.run(sid, "true")
    tenant.patch("/v1/sessions/" + sid, {"idle_timeout_ms": 1})
    assert wait_for(lambda: tenant.session(sid)["state"] == "hibernated") and deaths() == {"killed": 1, "asked": 1, "idle": 1}
    assert tenant.delete("/v1/sessions/" + sid).status == 200  # nothing ran
    assert deaths() == {"killed": 1, "asked": 1, "idle": 1}
    assert tenant.delete("/v1/sessions/" + tenant.enter()).status == 200
    assert deaths() == {"killed": 1, "asked": 2, "idle": 1}


def test_only_an_administrator_sees_tenants(lodged, client, tenant):
    tenant.enter(asleep=True)
    becomes(client, "lodge_sessions", lambda v: v == 1, tenant=tenant.tenant, state="none")
    for other in (lodged.client(None), tenant):
        samples = read_metrics(other)[0]
        assert not [l for _, l in samples if "tenant" in l] and FAMILIES <= {n for n, _ in samples}
        assert value(other, "lodge_sessions", state="none") >= 1
        for name in USED:
            assert value(other, name) is not None, name
    for other in (tenant, lodged.client(None)):  # how much space the host has is for administrators
        text = other.get("/metrics").data
        assert b"lodge_disk_full 0\n" in text and b"lodge_disk_free_bytes" not in text, text
    answer = lodged.client("wrong-key-0123456789").get("/metrics")
    assert answer.status == 401 and answer.code == "UNAUTHENTICATED", answer
    assert lodged.client(None).get("/metrics", headers={"Authorization": "Basic YTpi"}).status == 401


def test_names_are_escaped(lodged, client):
    name = 'a "quoted" \\ name, state="active"} 1'
    _, quoted = lodged.new_key(tenant=name, scope="tenant")
    sid = quoted.enter(asleep=True)
    becomes(client, "lodge_sessions", lambda v: v == 1, tenant=name, state="none")
    quoted.delete("/v1/sessions/" + sid)


def test_counters_start_at_zero_with_the_service():
    """Counters start at 0 with the service, and sandboxes that it adopts count from then on."""
    with contextlib.closing(Lodged()) as d:
        client = d.client()
        sid = client.enter(key="adopted")
        client.run(sid, "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done")
        used = client.get(f"/v1/sessions/{sid}/stats").json["stats"]["cpu_us"] / 1e6
        d.stop()
        d.start()
        client = d.client()
        assert wait_for(lambda: total(client, "lodge_sandbox_memory_bytes") > 0)
        assert total(client, "lodge_sandbox_cpu_seconds_total") < used
        client.delete("/v1/sessions/" + sid)


def test_the_number_of_tenants_is_bounded():
    with contextlib.closing(Lodged()) as d:
        client = d.client()
        for i in range(104):
            d.new_key(tenant=f"tenant-{i:03}", scope="tenant")[1].enter(asleep=True)
        assert wait_for(lambda: total(client, "lodge_sessions", state="none") == 104)
        samples = [labels_of(l) for n, l in read_metrics(client)[0] if n == "lodge_sessions"]
        named = {l["tenant"] for l in samples if "tenant" in l}
        assert len(named) == 100 and len(samples) == 101 * len(STATES)
        assert value(client, "lodge_sessions", state="none") == 4  # those without a series of their own
