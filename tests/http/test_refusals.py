# SPDX-License-Identifier: Apache-2.0
"""Requests that are too large, or come too late, get an answer that ordinary clients receive."""
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import shutil
import subprocess

import pytest

from client import KEY

MB = 1 << 20
PIECE = b" " * (64 << 10)


# ---- heads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Cookie", "X-{}"])
def test_300_headers_get_431(lodged, name):
    lines = "".join(f"{name.format(i)}: a{i}=1\r\n" for i in range(300))
    answer = lodged.raw(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode(), end=True)
    assert answer.startswith(b"HTTP/1.1 431 ") and b"headers: too many" in answer, answer


def test_300_cookies_in_one_header(lodged):
    """They are served as long as they fit."""
    for size, status in ((10, 200), (100, 431)):
        cookies = "; ".join(f"c{i}={'x' * size}" for i in range(300))
        answer = lodged.raw(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nCookie: {cookies}\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer


# ---- bodies -------------------------------------------------------------------------------------


@pytest.fixture
def routes(client):
    """Paths whose bodies have a limit: of JSON, and of a file."""
    sid = client.enter(key="bodies", limits={"file_bytes": 8 * MB})
    return {"json": ("POST", "/v1/sessions"), "file": ("PUT", f"/v1/sessions/{sid}/files/large")}


def refused(status, data):
    assert status == 413, (status, data)
    assert json.loads(data)["error"]["code"] == "TOO_LARGE", data


def endless_request(lodged, method, path, *headers):
    """Send a body until the server stops reading; return the status and body of its answer."""
    connection = http.client.HTTPConnection(lodged.host, lodged.port, timeout=180)
    with contextlib.closing(connection):
        connection.putrequest(method, path)
        for name, value in (("X-Api-Key", KEY), ("Content-Type", "application/json"), *headers):
            connection.putheader(name, value)
        connection.endheaders()
        chunked = ("Transfer-Encoding", "chunked") in headers
        piece = b"%x\r\n%s\r\n" % (len(PIECE), PIECE) if chunked else PIECE
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in itertools.count():
                connection.sock.sendall(piece)
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.parametrize("route", ["json", "file"])
@pytest.mark.parametrize("header", [("Transfer-Encoding", "chunked"), ("Content-Length", str(1 << 40))], ids=["chunked", "length"])
def test_an_endless_body_gets_an_answer(lodged, routes, route, header):
    refused(*endless_request(lodged, *routes[route], header))


@pytest.mark.parametrize("route", ["json", "file"])
@pytest.mark.parametrize("length", [None, 64 * MB])
def test_http_client_of_python_gets_the_answer(lodged, routes, route, length):
    """It sends everything before it reads."""
    method, path = routes[route]
    headers = {"X-Api-Key": KEY, "Content-Type": "application/json", **({"Content-Length": str(length)} if length else {})}
    connection = http.client.HTTPConnection(lodged.host, lodged.port, timeout=180)
    with contextlib.closing(connection):
        connection.request(method, path, (PIECE for _ in range(64 * MB // len(PIECE))), headers, encode_chunked=not length)
        response = connection.getresponse()
        refused(response.status, response.read())


@pytest.mark.parametrize("route", ["json", "file"])
def test_curl_gets_the_answer(lodged, routes, route):
    method, path = routes[route]
    with open("/dev/zero", "rb") as zero:
        done = subprocess.run(["curl", "-s", "-m", "170", "-X", method, "-T", "-", "-H", "Expect:", "-H", f"X-Api-Key: {KEY}",
                               "-H", "Content-Type: application/json", "-w", "\n%{http_code}", lodged.http_url + path],
                              stdin=zero, stdout=subprocess.PIPE, check=False)
    data, status = done.stdout.rsplit(b"\n", 1)
    refused(int(status), data)


@pytest.mark.parametrize("route", ["json", "file"])
def test_fetch_of_node_gets_the_answer(lodged, routes, route):
    if not shutil.which("node"):
        pytest.skip("there is no node")
    method, path = routes[route]
    program = """
const [url, method, key] = process.argv.slice(1);
const piece = new Uint8Array(65536).fill(32);
const body = new ReadableStream({ pull(c) { c.enqueue(piece); } });
const r = await fetch(url, { method, body, duplex: "half", headers: { "x-api-key": key, "content-type": "application/json" } });
console.log(JSON.stringify([r.status, await r.text()]));
process.exit(0);
"""
    done = subprocess.run(["node", "--input-type=module", "-e", program, lodged.http_url + path, method, KEY], timeout=170,
                          stdout=subprocess.PIPE, check=True)
    refused(*json.loads(done.stdout))


# ---- the end of a session -----------------------------------------------------------------------


def test_commands_during_the_end_of_their_session_are_gone(client):
    """Whether the session ends before, while or after the command starts, the answer says so."""
    for _ in range(10):
        at = "/v1/sessions/" + client.enter(user="u")
        assert client.post(at + "/exec", {"command": "true"}).status == 200

        def call(i, at=at):
            if i == 4:
                return client.delete(at)
            return client.post(at + "/exec", {"command": "true"})

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(call, range(12)))
        assert answers[4].status == 200
        statuses = {a.status for i, a in enumerate(answers) if i != 4}
        assert statuses <= {200, 410}, [a for a in answers if a.status not in (200, 410)]
        assert client.post(at + "/exec", {"command": "true"}).status == 410
