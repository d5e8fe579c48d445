# SPDX-License-Identifier: Apache-2.0
"""What holds for every route: methods, headers, CORS, connections, the log, metrics."""
import http.client
import json
import re
import socket
import time

import pytest

from client import KEY, is_older, routes, wait_for
from daemon import Daemon, Home, raw

SECRET = "hush-hush-in-a-query"


@pytest.fixture(scope="module")
def daemon():
    home = Home()
    with Daemon(home, env={"LODGE_ORIGINS": "https://app.example http://localhost:3000",
                           "LODGE_HOSTS": "lodge.example"}) as d:
        try:
            d.at = d.client()
            yield d
        finally:
            d.at.clear()
            assert d.close() == 0
            home.remove()


@pytest.fixture
def client(daemon):
    return daemon.at


@pytest.fixture(scope="module")
def paths(daemon):
    """A function that fills in the path of a route with existing objects."""
    client = daemon.at
    session = client.enter(key="all", user="someone")
    at = "/v1/sessions/" + session
    run = client.post(at + "/exec", {"command": "echo hi >/tmp/f"})
    snap = client.post(at + "/snapshots", {"name": "one"})
    assert snap.status == 201, snap
    assert client.post("/v1/policies", {"name": "host"}).status == 201  # "host" is a template's name as well
    assert client.post("/v1/templates/host/environment").status == 201
    key = client.post("/v1/keys", {"name": "k", "tenant": "t", "scope": "tenant"})
    assert client.post("/api/projects", {"id": "p", "name": "P", "userId": "someone"}).status == 201
    saved = client.post("/api/projects/p/fragments", {"id": "f", "files": {}, "userId": "someone"})
    assert saved.status == 201, saved
    assert client.post("/create_session", {"user_id": "someone", "thread_id": "t"}).status == 201
    known = {"{project}": "p", "{fragment}": "f", "{team}": "t",
             "{exec}": run.json["exec_id"], "{path...}": "/tmp/f", "{user}": "someone",
             "{snap}": snap.json["snapshot"]["id"], "{key}": key.json["key"]["id"], "{name}": "host"}

    def real(path):
        for name, value in known.items():
            path = path.replace(name, value)
        path = path.replace("{id}", known["{snap}"] if "/snapshots/" in path[:14] else session)
        if path in ("/get_session", "/list_files", "/status/{session_id}"):
            return path.replace("{session_id}", session) + f"?thread_id=t&session_id={session}"
        if path.startswith("/api/sandbox/"):
            return f"{path}?sessionId={session}"
        if path.startswith("/api/"):
            return path + "?userId=someone"
        return path + "?path=/tmp" if path.endswith((f"{session}/archive", "/watch")) else path

    return real


# ---- methods ----------------------------------------------------------------------------------


VARIES = ("Date", "X-Request-Id", "Content-Length", "Transfer-Encoding", "Connection", "Last-Modified")


@pytest.mark.parametrize("path", [r[1] for r in routes() if r[0] == "GET"])
def test_head_is_get_without_a_body(client, paths, path):
    seen = []
    for method in ("GET", "HEAD"):
        connection, response = client.open(method, paths(path))
        seen.append((response.status, {k: v for k, v in response.headers.items() if k not in VARIES}))
        if method == "HEAD":
            assert response.read() == b""
        connection.close()
    assert seen[0] == seen[1] and seen[0][0] == (426 if path.endswith("/tty") else 200), seen


def methods_of(path):
    found = {r[0] for r in routes() if r[1] == path}
    return found | {"HEAD"} if "GET" in found else found


@pytest.mark.parametrize("path", sorted({r[1] for r in routes()}))
def test_options_and_405_list_the_methods(client, paths, path):
    answer = client.call("OPTIONS", paths(path))
    assert answer.status == 204 and answer.data == b""
    assert set(answer.headers["Allow"].split(", ")) == methods_of(path)
    for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "TRACE", "BREW"} - methods_of(path):
        answer = client.call(method, paths(path), b"{}" if method != "HEAD" else None)
        assert answer.status == 405, (method, answer)
        assert set(answer.headers["Allow"].split(", ")) == methods_of(path)
        if method != "HEAD":
            assert "detail" in answer.json or "success" in answer.json or answer.json.get("status") == "error" \
                if is_older(path) else answer.code == "METHOD_NOT_ALLOWED", answer


def test_without_a_key_routes_are_not_revealed(daemon, client):
    anonymous = type(client)(client.host, client.port, None)
    for path in ("/v1/sessions", "/v1/nothing", "/nothing"):
        assert anonymous.get(path).status == anonymous.call("BREW", path).status == 401
        assert anonymous.get(path).headers["WWW-Authenticate"] == "Bearer"
    assert client.get("/v1/nothing").status == 404


# ---- browsers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("host, status", [
    ("127.0.0.1", 200), ("127.0.0.1:9", 200), ("127.1.2.3", 200), ("localhost", 200),
    ("LOCALHOST:80", 200), ("app.localhost", 200), ("[::1]:1", 200), ("lodge.example", 200),
    ("Lodge.Example:443", 200), ("evil.example", 421), ("127.0.0.1.evil.example", 421),
    ("localhost.evil.example", 421), ("evillocalhost", 421), ("169.254.169.254", 421),
    ("10.0.0.1", 421), ("127.0.0.1@evil.example", 421), ("", 421), ("[::1", 421), ("::1", 421),
    ("localhost:80:80", 421), ("0x7f.0.0.1", 421), ("2130706433", 421), ("a-b.c_d.localhost:65535", 200),
    ("a" * 63 + ".localhost", 200), ("a" * 64 + ".localhost", 421), ("a." * 130 + "localhost", 421), (".localhost", 421),
    ("a..localhost", 421), ("evil.example#.localhost", 421), ("evil.example/.localhost", 421), ("a@b.localhost", 421),
    ("a b.localhost", 421), ("a\tb.localhost", 421), ("a%00.localhost", 421), ("a\\.localhost", 421), ("-a.localhost", 421),
    ("a-.localhost", 421), ("\xe9.localhost", 421), ("a?.localhost", 421), ("a,b.localhost", 421), ("localhost:x", 421),
    ("localhost:65536", 421), ("localhost:000080", 421), ("localhost:-1", 421), ("localhost:80.localhost", 421),
    ("a.localhost: 80", 421), ("[::1]x", 421), ("[::1%lo]", 421), ("[::1.localhost", 421), ("[a].localhost", 421),
])
def test_host(client, host, status):
    answer = client.get("/v1/sessions", headers={"Host": host})
    assert answer.status == status, answer
    assert client.get("/health", headers={"Host": host}).status == status
    assert status == 200 or answer.code == "MISDIRECTED"


@pytest.mark.parametrize("host", [b"a\x01.localhost", b"a\x7f.localhost", b"a\x1b[2J.localhost", b"\xff\xfe.localhost"])
def test_odd_bytes_in_a_host(client, host):
    answer = raw(client.host, client.port, b"GET /health HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert re.match(rb"HTTP/1.1 (400|421) ", answer), answer
    json.loads(answer.partition(b"\r\n\r\n")[2])
    assert not re.search(rb"[^\n\r\t -~]", answer.replace("\ufffd".encode(), b"")), answer


def test_a_service_for_any_host_refuses_malformed_ones(home):
    with Daemon(home, listen=("127.0.0.1:0", "0.0.0.0:0")) as d:
        client = d.client(d.addresses(2)[0])
        for host, status in (("lodge.example", 200), ("lodge.example.:443", 200), ("my_host", 200), ("10.0.0.1:80", 200),
                             ("[fe80::1]:80", 200), ("", 200), ("a@b", 421), ("a b", 421), ("a..b", 421), ("a:b", 421),
                             ("http://a", 421), ("[zz]", 421)):
            answer = client.get("/v1/sessions", headers={"Host": host})
            assert answer.status == status, (host, answer)
        assert d.close() == 0


@pytest.mark.parametrize("origin, may", [
    ("https://app.example", True), ("http://localhost:3000", True), ("http://app.example", False),
    ("https://app.example:8443", False), ("https://app.example.evil.example", False),
    ("null", False), ("http://localhost:3001", False),
])
def test_origin(client, origin, may):
    answer = client.get("/v1/sessions", headers={"Origin": origin})
    assert answer.status == (200 if may else 403), answer
    assert answer.headers["Access-Control-Allow-Origin"] == (origin if may else None)
    assert answer.headers["Access-Control-Allow-Credentials"] is None
    refused = type(client)(client.host, client.port, "wrong-key-0123456789").get(
        "/v1/sessions", headers={"Origin": origin})
    assert refused.headers["Access-Control-Allow-Origin"] == (origin if may else None)
    asked = client.call("OPTIONS", "/v1/sessions", headers={
        "Origin": origin, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type"})
    if may:
        assert asked.status == 204 and asked.headers["Access-Control-Allow-Origin"] == origin
        assert "POST" in asked.headers["Access-Control-Allow-Methods"]
        assert "authorization" in asked.headers["Access-Control-Allow-Headers"].lower()
        assert asked.headers["Vary"] == "Origin"
    else:
        assert asked.status == 403 and asked.headers["Access-Control-Allow-Methods"] is None


def test_preflight_needs_no_key(client):
    anonymous = type(client)(client.host, client.port, None)
    asked = anonymous.call("OPTIONS", "/v1/sessions", headers={
        "Origin": "https://app.example", "Access-Control-Request-Method": "GET"})
    assert asked.status == 204 and asked.headers["Access-Control-Allow-Methods"]


PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key, content-type"}


def allows(client, origin, **headers):
    """Whether a page of this origin may call: its preflight request and the call itself agree."""
    headers["Origin"] = origin
    asked = client.call("OPTIONS", "/v1/sessions", headers={**PREFLIGHT, **headers})
    answer = client.get("/v1/sessions", headers=headers)
    allowed = answer.headers["Access-Control-Allow-Origin"] == origin
    assert (asked.status, answer.status) == ((204, 200) if allowed else (403, 403)), (asked, answer)
    assert (asked.headers["Access-Control-Allow-Origin"] == origin) == allowed
    assert answer.headers["Access-Control-Allow-Credentials"] is None
    assert allowed or "origins" in answer.json["error"]["message"], answer
    return allowed


LOCAL = ["http://localhost:3000", "https://localhost:5173", "http://localhost", "http://127.0.0.1:8000", "http://[::1]:4321"]
NOT_LOCAL = ["null", "http://app.localhost:3000", "http://localhost.evil.example", "http://localhost:3000.evil.example",
             "http://localhost:", "http://localhost:3000/", "http://localhost@evil.example", "http://evil.example:3000",
             "http://127.0.0.1.evil.example", "http://10.0.0.1:3000", "ftp://localhost:3000", "localhost:3000"]


@pytest.fixture
def home():
    made = Home()
    yield made
    made.remove()


def test_pages_of_this_machine_may_call_a_loopback_service(home):
    with Daemon(home, env={"LODGE_HOSTS": "lodge.example"}) as d:
        client = d.client()
        assert [o for o in LOCAL if not allows(client, o)] == []
        assert [o for o in NOT_LOCAL if allows(client, o)] == []
        # a name that leads here, such as that of a proxy: the page's own machine is another one
        assert not allows(client, "http://localhost:3000", Host="lodge.example")
        assert d.close() == 0


@pytest.mark.parametrize("listen, origins, may", [
    (("127.0.0.1:0", "0.0.0.0:0"), None, []), (("127.0.0.1:0",), "none", []),
    (("127.0.0.1:0",), "https://app.example", ["https://app.example"]),
    (("127.0.0.1:0", "0.0.0.0:0"), "http://localhost:* https://app.example:8443", ["http://localhost", "http://localhost:3000"]),
])
def test_origins_replace_the_default(home, listen, origins, may):
    with Daemon(home, listen=listen, env={"LODGE_ORIGINS": origins} if origins else {}) as d:
        client = d.client(d.addresses(len(listen))[0])
        assert [o for o in LOCAL + NOT_LOCAL + ["https://app.example"] if allows(client, o)] == \
            [o for o in LOCAL + NOT_LOCAL + ["https://app.example"] if o in may]
        assert d.close() == 0


def test_the_own_origin_is_allowed(client):
    own = f"http://{client.host}:{client.port}"
    answer = client.get("/v1/sessions", headers={"Origin": own})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] is None


# ---- connections ------------------------------------------------------------------------------


def head(method, path, *lines, key=KEY):
    text = [f"{method} {path} HTTP/1.1", "Host: localhost", *lines]
    return ("\r\n".join(text + ([f"Authorization: Bearer {key}"] if key else [])) + "\r\n\r\n").encode()


def test_expected_body(client):
    """"100 Continue" is sent only if the body is needed."""
    request = head("POST", "/v1/sessions", "Content-Type: application/json", "Content-Length: 14",
                   "Expect: 100-continue")
    with socket.create_connection((client.host, client.port), timeout=180) as s:
        s.sendall(request)
        assert s.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(b'{"key":"hope"}')
        assert s.recv(4000).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize("key, path, status", [
    (None, "/v1/sessions", 401), ("wrong-key-0123456789", "/v1/sessions", 401),
    (KEY, "/v1/nothing", 404), (KEY, "/v1/sessions/none/files/x", 404), (KEY, "/health", 405),
])
def test_refused_before_the_body(client, key, path, status):
    for more in ("Content-Length: 1000000000", "Transfer-Encoding: chunked"):
        method = "PUT" if "files" in path else "POST"
        got = raw(client.host, client.port, head(method, path, more, "Expect: 100-continue", key=key))
        assert got.startswith(f"HTTP/1.1 {status} ".encode()), got


def test_an_unknown_expectation_is_417(client):
    got = raw(client.host, client.port, head("POST", "/v1/sessions", "Content-Length: 2", "Expect: tea"))
    assert got.startswith(b"HTTP/1.1 417 ")


def test_the_connection_is_reused(client, paths):
    c = http.client.HTTPConnection(client.host, client.port, timeout=180)
    auth = {"Authorization": f"Bearer {KEY}"}
    c.connect()
    sock = c.sock
    for method, path, body, status in (
            ("GET", "/health", None, 200), ("GET", "/v1/nothing", None, 404),
            ("GET", "/v1/sessions", None, 200), ("POST", "/v1/sessions", b"{nonsense", 400),
            ("BREW", "/v1/sessions", None, 405), ("HEAD", paths("/v1/sessions/{id}"), None, 200),
            ("OPTIONS", "/v1/sessions", None, 204), ("GET", "/v1/sessions", None, 200)):
        c.request(method, path, body, dict(auth, **({"Content-Type": "application/json"} if body else {})))
        response = c.getresponse()
        response.read()
        assert response.status == status and c.sock is sock, (method, path, response.status)
    c.request("GET", "/health", headers={"Connection": "close"})
    response = c.getresponse()
    assert response.headers["Connection"] == "close" and response.read()
    assert sock.fileno() < 0
    c.close()


def test_pipelined_requests(client):
    both = head("GET", "/health") + head("GET", "/ready", "Connection: close")
    got = raw(client.host, client.port, both)
    assert got.count(b"HTTP/1.1 200 ") == 2 and b'{"ready":true' in got.rsplit(b"\r\n\r\n", 1)[1]


# ---- the log ----------------------------------------------------------------------------------


def test_request_id(client):
    assert client.get("/health", headers={"X-Request-Id": "mine-1.2_3"}).headers["X-Request-Id"] == "mine-1.2_3"
    made = [client.get("/health", headers=h).headers["X-Request-Id"] for h in
            ({}, {}, {"X-Request-Id": ""}, {"X-Request-Id": "a b"}, {"X-Request-Id": "x" * 65},
             {"X-Request-Id": 'quo"te'}, {"X-Request-Id": "<script>"})]
    assert len(set(made)) == len(made) and all(re.fullmatch("[0-9a-f]{32}", i) for i in made)
    assert client.get("/v1/nothing", headers={"X-Request-Id": "err"}).headers["X-Request-Id"] == "err"


def test_one_line_for_each_request(daemon, client, paths):
    at = paths("/v1/sessions/{id}")
    calls = [("GET", f"/v1/sessions?limit=1&user={SECRET}", None, 200),
             ("POST", "/v1/sessions", {"nonsense": SECRET}, 400),
             ("GET", "/v1/nothing%0a%22%ff", None, 404),
             ("POST", at + "/exec", {"command": f"echo {SECRET}", "env": {"A": SECRET}}, 200),
             ("PUT", at + "/files//tmp/g", SECRET.encode(), 201),
             ("HEAD", "/health", None, 200)]
    mark = f"line-{time.time_ns()}"
    for i, (method, path, body, status) in enumerate(calls):
        answer = client.call(method, path, body, headers={"X-Request-Id": f"{mark}.{i}"})
        assert answer.status == status, answer
    lines = wait_for(lambda: [m for m in daemon.lines() if m.get("request", "").startswith(mark)][len(calls) - 1:]
                     and [m for m in daemon.lines() if m.get("request", "").startswith(mark)])
    assert sorted(m["request"] for m in lines) == [f"{mark}.{i}" for i in range(len(calls))]
    for m in lines:
        method, path, _, status = calls[int(m["request"].rpartition(".")[2])]
        assert (m["method"], m["path"], m["status"]) == (method, path.partition("?")[0], status)
        assert m["peer"] == "127.0.0.1" and m["us"] > 0 and m["bytes"] >= 0 and m["level"] == "info"
        assert abs(m["time"] / 1000 - time.time()) < 600
    assert SECRET not in daemon.log()


def test_no_key_is_in_the_log(daemon, client):
    made = client.post("/v1/keys", {"name": "secret", "tenant": "t", "scope": "tenant"}).json["secret"]
    wrong = "a-key-that-is-not-one-of-ours"
    for key in (made, wrong):
        for headers in ({"Authorization": f"Bearer {key}"}, {"x-api-key": key}, {"Authorization": key}):
            type(client)(client.host, client.port, None).get(f"/v1/sessions?key={key}", headers=headers)
    raw(client.host, client.port, f"GET /v1/{wrong} HTTP/9.9\r\nAuthorization: {made}\r\n\r\n".encode())
    client.get("/health", headers={"X-Request-Id": "after-the-keys"})
    daemon.says("after-the-keys")
    daemon.lines()
    for key in (KEY, made):
        assert key not in daemon.log()


def test_a_disconnected_request_is_logged(daemon, client, paths):
    body = json.dumps({"command": "sleep 611"}).encode()

    def runs():
        execs = client.get(paths("/v1/sessions/{id}/execs?limit=500")).json["execs"]
        return [x for x in execs if "611" in str(x["command"]) and x["state"] == "running"]

    mark = f"left-{time.time_ns()}"
    with socket.create_connection((client.host, client.port), timeout=180) as s:
        s.sendall(head("POST", paths("/v1/sessions/{id}/exec"), "Content-Type: application/json",
                       f"Content-Length: {len(body)}", f"X-Request-Id: {mark}") + body)
        (x,) = wait_for(runs)
    daemon.says(mark)
    assert client.delete(paths("/v1/sessions/{id}/execs/" + x["exec_id"])).status == 200
    assert [m["status"] for m in daemon.lines() if m.get("request") == mark] == [499]
    assert client.get("/health").json["last_error"] is None


# ---- metrics ----------------------------------------------------------------------------------


def read_metrics(client):
    text = client.get("/metrics").data.decode()
    return dict(re.fullmatch(r"([a-z_]+(?:\{[^}]*\})?) (\S+)", line).groups()
                for line in text.splitlines() if not line.startswith("#"))


def test_metrics_count_requests(client, paths):
    answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = set(re.findall(r"# TYPE (\S+)", answer.data.decode()))
    before = read_metrics(client)
    assert {re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", n) for n in before} <= families | {
        n.removesuffix("_sum") for n in families}
    client.get("/v1/nothing")
    client.post(paths("/v1/sessions/{id}/exec"), {"command": "true"})
    key = f"metrics-{time.time_ns()}"
    for outcome in ("created", "reused"):
        name = 'lodge_enter_seconds_count{outcome="%s"}' % outcome
        was = int(read_metrics(client)[name])
        client.enter(key=key)
        assert int(read_metrics(client)[name]) == was + 1
    assert wait_for(lambda: int(read_metrics(client)['lodge_requests_total{class="4xx"}']) >
                    int(before['lodge_requests_total{class="4xx"}']))
    after = read_metrics(client)
    assert int(after["lodge_exec_seconds_count"]) == int(before["lodge_exec_seconds_count"]) + 1
    assert int(after["lodge_sandboxes_active"]) >= 2
    for name, value in after.items():
        if name.startswith("lodge_enter_seconds_bucket") and 'le="+Inf"' in name:
            label = re.search(r"outcome=\"\w+\"", name).group(0)
            assert value == after["lodge_enter_seconds_count{%s}" % label]


def test_counters_never_decrease(client):
    before = read_metrics(client)
    for _ in range(3):
        client.get("/health")
    after = read_metrics(client)
    for name, value in before.items():
        if "_total" in name or "_count" in name or "_bucket" in name:
            assert float(after[name]) >= float(value), name
