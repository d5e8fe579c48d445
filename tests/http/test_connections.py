# SPDX-License-Identifier: Apache-2.0
"""Bounds on connections: whoever has a key gets in, however many idle connections there are. Addresses behind proxies."""
import contextlib
import json
import socket

import pytest

from client import KEY, Lodged, SocketLodged, UnixClient, wait_for

IDLE = 100
FEW = {"max_connections": 32, "max_per_address": 16}
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def dial(stack, lodged):
    return stack.enter_context(socket.create_connection((lodged.host, lodged.port), timeout=60))


def is_closed(s):
    try:
        return s.recv(1) == b""
    except ConnectionError:
        return True
    except BlockingIOError:
        return False


def is_served(s):
    s.sendall(HEALTH)
    return s.recv(65536).startswith(b"HTTP/1.1 200 ")


# ---- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", FEW)
@pytest.mark.parametrize("sends", [b"", b"GET /v1/sess", HEALTH], ids=["nothing", "half a head", "a request without a key"])
def test_idle_connections_shut_nobody_out(bound, sends):
    with contextlib.ExitStack() as stack:
        lodged = stack.enter_context(contextlib.closing(SocketLodged(**{bound: FEW[bound]})))
        for _ in range(IDLE):
            with contextlib.suppress(ConnectionError):
                s = dial(stack, lodged)
                s.sendall(sends)
                if sends == HEALTH:
                    s.recv(65536)
        for client in (lodged.client(), UnixClient(lodged.socket, KEY)):
            for _ in range(3):
                assert client.get("/v1/sessions").status == 200


def test_idle_connections_of_a_unix_socket_shut_nobody_out():
    with contextlib.ExitStack() as stack:
        lodged = stack.enter_context(contextlib.closing(SocketLodged(**FEW)))
        for _ in range(IDLE):
            s = stack.enter_context(socket.socket(socket.AF_UNIX))
            s.connect(lodged.socket)
        for client in (lodged.client(), UnixClient(lodged.socket, KEY)):
            assert client.get("/v1/sessions").status == 200


def test_the_oldest_connection_without_a_key_is_closed_first():
    with contextlib.ExitStack() as stack:
        lodged = stack.enter_context(contextlib.closing(Lodged(max_per_address=4)))
        idle = [dial(stack, lodged) for _ in range(6)]
        assert is_closed(idle[0]) and is_closed(idle[1])
        assert all(is_served(s) for s in idle[2:])


@pytest.mark.parametrize("bound", FEW)
def test_a_connection_with_a_valid_key_stays(bound):
    with contextlib.ExitStack() as stack:
        lodged = stack.enter_context(contextlib.closing(Lodged(**{bound: FEW[bound]})))
        kept = stack.enter_context(contextlib.closing(lodged.client().connect()))

        def status(key=KEY):
            kept.request("GET", "/v1/sessions", headers={"X-Api-Key": key})
            response = kept.getresponse()
            response.read()
            return response.status

        assert status() == 200
        mine = kept.sock
        for _ in range(IDLE):
            dial(stack, lodged)
        assert status() == 200 and kept.sock is mine
        # a wrong key does not help
        wrong = stack.enter_context(contextlib.closing(lodged.client().connect()))
        wrong.request("GET", "/v1/sessions", headers={"X-Api-Key": "x" * 20})
        assert wrong.getresponse().read() and wrong.sock
        for _ in range(IDLE):
            dial(stack, lodged)
        assert is_closed(wrong.sock) and status() == 200 and kept.sock is mine


@pytest.mark.parametrize("how", ["revoked", "wrong", "none"])
def test_trust_ends_with_the_first_request_without_a_valid_key(how):
    with contextlib.ExitStack() as stack:
        lodged = stack.enter_context(contextlib.closing(Lodged(max_per_address=4)))
        record, owner = lodged.new_key(scope="tenant")
        headers = [{"X-Api-Key": owner.key}, {"X-Api-Key": {"revoked": owner.key, "wrong": "x" * 20}.get(how)} if how != "none" else {}]
        kept = stack.enter_context(contextlib.closing(lodged.client().connect()))

        def status(number):
            kept.request("GET", "/health" if how == "none" and number else "/v1/sessions", headers=headers[number])
            response = kept.getresponse()
            response.read()
            return response.status

        assert status(0) == 200
        mine = kept.sock
        for _ in range(8):
            dial(stack, lodged)
        assert status(0) == 200 and kept.sock is mine
        if how == "revoked":
            assert lodged.client().delete(f"/v1/keys/{record['id']}").status == 200
        assert status(1) == (200 if how == "none" else 401) and kept.sock is mine
        mine.settimeout(0)

        def is_evicted():
            assert is_served(dial(stack, lodged))
            return is_closed(mine)

        for _ in range(4):
            dial(stack, lodged)
        assert wait_for(is_evicted, 10)  # a thread may still have it


# ---- proxies ------------------------------------------------------------------------------------


def peer_of(lodged, *headers, status=200):
    """The client's address of a request in the log."""
    name = f"peer-{peer_of.count}"
    peer_of.count += 1
    lines = [b"GET /ready HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", b"X-Request-Id: " + name.encode(),
             *(b"X-Forwarded-For: " + h.encode() for h in headers)]
    answer = lodged.raw(b"\r\n".join(lines) + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer

    def entry():
        for line in lodged.log().splitlines():
            if name in line:
                return json.loads(line)["peer"]
        return None

    assert wait_for(entry), lodged.log()
    return entry()


peer_of.count = 0


@pytest.fixture(scope="module")
def proxied():
    with contextlib.closing(Lodged(trusted_proxies="127.0.0.0/8, 10.0.0.1 fd00::/16", max_per_address=4)) as d:
        yield d


@pytest.mark.parametrize("headers,peer", [
    ([], "127.0.0.1"),
    (["1.2.3.4"], "1.2.3.4"),
    (["1.2.3.4, 5.6.7.8"], "5.6.7.8"),
    (["1.2.3.4", "5.6.7.8"], "5.6.7.8"),
    (["1.2.3.4,10.0.0.1 ,\tfd00::1"], "1.2.3.4"),
    (["1.2.3.4", "10.0.0.1", "127.0.0.9"], "1.2.3.4"),
    (["10.0.0.2, 10.0.0.1"], "10.0.0.2"),
    (["10.0.0.1, 127.3.2.1"], "10.0.0.1"),
    (["2001:db8::1, ::ffff:10.0.0.1"], "2001:db8::1"),
    (["a claim of the client, 5.6.7.8"], "5.6.7.8"),
])
def test_the_client_of_a_trusted_proxy(proxied, headers, peer):
    assert peer_of(proxied, *headers) == peer


@pytest.mark.parametrize("value", ["", ",", "unknown", "1.2.3", "1.2.3.4,", "1.2.3.4:80", "5.6.7.8, x", "x, 10.0.0.1", "1" * 100])
def test_a_malformed_header_of_a_trusted_proxy_is_refused(proxied, value):
    answer = proxied.raw(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Forwarded-For: " + value.encode() + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ") and b'"message":"X-Forwarded-For: must be a list of addresses"' in answer, answer


def test_the_audit_log_has_the_client(proxied):
    proxied.client("x" * 20).get("/v1/sessions", headers={"X-Forwarded-For": "5.6.7.8"})

    def said():
        events = proxied.client().get("/v1/events?all=1&limit=1000").json["events"]
        return any("from 5.6.7.8" in e["cause"]["text"] for e in events if e["kind"] == "key_refused")

    assert wait_for(said), proxied.client().get("/v1/events").json


def test_connections_of_a_trusted_proxy_do_not_count(proxied):
    with contextlib.ExitStack() as stack:
        idle = [dial(stack, proxied) for _ in range(20)]
        assert all(is_served(s) for s in idle)


def test_the_header_of_others_is_ignored():
    with contextlib.closing(Lodged(trusted_proxies="10.0.0.0/8")) as lodged:
        for value in ("1.2.3.4", "unknown", ""):
            assert peer_of(lodged, value) == "127.0.0.1"


@pytest.mark.parametrize("value", ["proxy", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "fd00::/129", "10.0.0.0/8x", "/8"])
def test_a_malformed_setting_is_refused(value):
    with pytest.raises(AssertionError, match="trusted_proxies"):
        Lodged(trusted_proxies=value)
