# SPDX-License-Identifier: Apache-2.0
"""What one tenant may have of the service: however much it asks for, others are served, and health checks always."""
import contextlib
import json
import socket
import threading

import pytest

from client import Lodged, wait_for

EXEC_MS = 600000  # longer than any test
QUEUE_MS = 60000


def is_cleared(client):
    """Destroy its sessions; False: what was open has not ended yet."""
    with contextlib.suppress(KeyError):
        client.clear()
        return True
    return False


@contextlib.contextmanager
def service(**settings):
    """A lodged, and a stack of requests that are open until its end."""
    with contextlib.closing(Lodged(**settings)) as lodged:
        lodged.others = []
        try:
            with contextlib.ExitStack() as stack:
                yield lodged, stack
        finally:
            for client in (lodged.client(), *lodged.others):
                assert wait_for(lambda c=client: is_cleared(c))


def send(stack, client, method, path, body=None, *headers, length=None):
    """Send a request and do not wait for its response."""
    data = b"" if body is None else json.dumps(body).encode()
    s = stack.enter_context(socket.create_connection((client.host, client.port), timeout=180))
    key = [f"Authorization: Bearer {client.key}"] if client.key else []
    s.sendall("\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *key,
                           "Content-Type: application/json", f"Content-Length: {length or len(data)}", *headers,
                           "", ""]).encode() + data)
    return s


def wait_inside(stack, client, sid, count):
    """Requests that wait for a command."""
    return [send(stack, client, "POST", f"/v1/sessions/{sid}/exec", {"command": "sleep 600", "timeout_ms": EXEC_MS})
            for _ in range(count)]


def fill(is_full, add):
    """Add requests until it is full. The check itself takes a place, which may refuse one of them."""
    def step():
        if is_full():
            return True
        add()
        return False

    return wait_for(step)


def refused(answer, setting, tenant="a"):
    """The answer for a tenant that has all it may have."""
    assert answer.status == 429 and answer.code == "RATE_LIMITED", answer
    assert f"tenant {tenant} " in answer.message and setting in answer.message, answer
    assert answer.json["error"]["retryable"] and int(answer.headers["Retry-After"]) >= 1, answer
    return True


def refused_soon(client, setting, tenant="a"):
    """A request that is just ending still has its place, and its refusal one of the service's."""
    assert wait_for(lambda: (answer := client.get("/v1/sessions")).status == 429 and refused(answer, setting, tenant))


def keys(lodged, tenant, count):
    clients = [lodged.new_key(tenant=tenant, scope="tenant")[1] for _ in range(count)]
    lodged.others += clients
    return clients


def healthy(lodged, *clients):
    """The answers of the routes that are never refused."""
    for c in (lodged.client(None), *clients):
        for path in ("/health", "/ready", "/metrics"):
            answer = c.get(path)
            assert answer.status == 200, (path, answer)
    return True


# ---- requests -----------------------------------------------------------------------------------


def test_three_keys_of_one_tenant_shut_nobody_out():
    with service(max_requests=8) as (lodged, open_requests):
        a, other = keys(lodged, "a", 3), lodged.client()
        sid = a[0].enter(key="a")
        for key in a:
            wait_inside(open_requests, key, sid, 4)
        assert fill(lambda: a[0].get("/v1/sessions").status == 429, lambda: wait_inside(open_requests, a[0], sid, 1))
        for key in a:
            refused_soon(key, "tenant_concurrent")
        assert other.get("/v1/sessions").status == 200
        assert other.run(other.enter(key="b"), "echo in") == "in\n"
        assert healthy(lodged, *a, other)


def test_health_is_answered_while_the_service_is_full():
    with service(max_requests=4, concurrent=3, tenant_concurrent=100) as (lodged, open_requests):
        c, (other,) = lodged.client(), keys(lodged, "default", 1)
        sid = c.enter(key="full")
        assert fill(lambda: c.get("/v1/sessions").status == 429, lambda: wait_inside(open_requests, c, sid, 1))

        def is_overloaded(client):
            answer = client.get("/v1/sessions")
            return answer.status == 503 and answer.code == "OVERLOADED" and "max_requests" in answer.message
        assert fill(lambda: is_overloaded(c) and is_overloaded(other), lambda: wait_inside(open_requests, other, sid, 1))
        for _ in range(5):
            assert healthy(lodged, c, other)


def test_health_does_not_count_for_the_limits_of_a_key():
    with service(rate=1, burst=1) as (lodged, _):
        (a,) = keys(lodged, "a", 1)
        for _ in range(10):
            assert healthy(lodged, a)
        assert a.get("/v1/sessions").status == 200
        assert "lodge_" in a.get("/metrics").data.decode()


def test_a_tenant_gets_its_places_back():
    with service(tenant_concurrent=2) as (lodged, open_requests):
        (a,) = keys(lodged, "a", 1)
        sid = a.enter(key="a")
        inside = []
        assert fill(lambda: a.get("/v1/sessions").status == 429, lambda: inside.extend(wait_inside(open_requests, a, sid, 1)))
        for s in inside:
            s.close()
        assert wait_for(lambda: a.get("/v1/sessions").status == 200)


def test_anonymous_requests_count_for_the_default_tenant():
    with service(tenant_concurrent=2, insecure_no_auth=1) as (lodged, open_requests):
        anyone = lodged.client(None)
        (other,) = keys(lodged, "a", 1)
        sid = anyone.enter(key="a")
        assert fill(lambda: anyone.get("/v1/sessions").status == 429, lambda: wait_inside(open_requests, anyone, sid, 1))
        refused_soon(anyone, "tenant_concurrent", "default")
        refused_soon(lodged.client(), "tenant_concurrent", "default")
        assert other.get("/v1/sessions").status == 200


# ---- streams ------------------------------------------------------------------------------------


def test_streams_of_one_tenant_are_bounded():
    with service(tenant_streams=2) as (lodged, open_requests):
        a, other = keys(lodged, "a", 2), lodged.client()
        sid, accept = a[0].enter(key="a"), {"Accept": "text/event-stream"}

        def stream(client):
            connection, response = client.open("GET", "/v1/events", headers=accept)
            open_requests.enter_context(contextlib.closing(connection))
            open_requests.enter_context(response)
            return connection, response

        first, response = stream(a[0])
        assert response.status == stream(a[1])[1].status == 200
        refused(a[1].get("/v1/events", headers=accept), "tenant_streams")
        refused(a[1].get(f"/v1/sessions/{sid}/watch?path=.", headers=accept), "tenant_streams")
        # the command is not started
        refused(a[0].post(f"/v1/sessions/{sid}/exec", {"command": "touch started"},
                          headers={"Accept": "application/x-ndjson"}), "tenant_streams")
        refused(a[0].get(f"/v1/sessions/{sid}/tty?command=sh", headers={
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}), "tenant_streams")
        assert a[0].run(sid, "ls") == "", "other requests are served"
        assert stream(other)[1].status == 200
        response.close()
        first.close()
        assert wait_for(lambda: stream(a[0])[1].status == 200)


# ---- queues -------------------------------------------------------------------------------------


def test_a_tenant_fills_at_most_half_of_the_queue():
    with service(max_active=1, queue_max=4) as (lodged, _):
        (a,), b = keys(lodged, "a", 1), lodged.client()
        sid, answers = a.enter(key="busy"), {}
        assert a.post(f"/v1/sessions/{sid}/exec", {"command": "sleep 600", "background": True}).status == 202

        def enter(client, key):
            answers[key] = client.post("/v1/sessions", {"key": key, "wait_ms": QUEUE_MS})

        def waiting(count):
            return wait_for(lambda: b.get("/health").json["parts"]["room"]["waiting"] == count)

        callers = [threading.Thread(target=enter, args=(c, key)) for c, key in
                   ((a, "a1"), (a, "a2"), (b, "b1"), (b, "b2"))]
        for i, caller in enumerate(callers):
            caller.start()
            assert waiting(i + 1), answers
            if i == 1:
                refused(a.post("/v1/sessions", {"key": "a3", "wait_ms": QUEUE_MS}), "queue_max")
        # the queue is full for all
        answer = b.post("/v1/sessions", {"key": "b3", "wait_ms": QUEUE_MS})
        assert answer.status == 503 and answer.code == "UNAVAILABLE", answer
        assert a.delete("/v1/sessions/" + sid).status == 200
        for caller in callers:
            caller.join()
        assert {key: answer.status for key, answer in answers.items()} == dict.fromkeys(("a1", "a2", "b1", "b2"), 201)


# ---- bodies -------------------------------------------------------------------------------------


def test_bodies_of_one_tenant_are_bounded():
    with service(tenant_body="64M", connection_slow="10m") as (lodged, open_requests):
        (a,), other = keys(lodged, "a", 1), lodged.client()
        assert fill(lambda: a.post("/v1/sessions", {"key": "a", "asleep": True}).status == 429,
                    lambda: send(open_requests, a, "POST", "/v1/sessions", length=1 << 20))  # the body never follows
        refused(a.post("/v1/sessions", {"key": "a"}), "tenant_body")
        assert a.get("/v1/sessions").status == 200
        assert other.post("/v1/sessions", {"key": "b", "asleep": True}).status == 201


def test_a_body_bound_below_one_request_is_refused():
    with pytest.raises(AssertionError, match="tenant_body: must be at least 64M"):
        Lodged(tenant_body="1M")
