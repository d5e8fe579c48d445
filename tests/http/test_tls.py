# SPDX-License-Identifier: Apache-2.0
"""HTTPS: certificates, protocol versions, and streams and bodies over it."""
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import tempfile
import warnings

import pytest

from client import KEY, Answer, TlsClient, UnixConnection, certificate
from daemon import Daemon, Home, raw

DEADLINE = 180


@pytest.fixture(scope="module")
def pems():
    directory = tempfile.mkdtemp(prefix="lodge-tls-")
    yield {**{name: certificate(directory, name, "-newkey", "rsa:2048") for name in ("rsa", "other")},
           "ec": certificate(directory, "ec"), "dir": directory}
    shutil.rmtree(directory)


def settings(cert, key):
    return {"LODGE_TLS_CERT": cert, "LODGE_TLS_KEY": key}


def tls(port, cert):
    return TlsClient("127.0.0.1", port, KEY, cert)


@pytest.fixture(scope="module")
def daemon(pems):
    home = Home()
    with Daemon(home, env=settings(*pems["rsa"]), listen=("127.0.0.1:0", f"unix:{home}/s")) as d:
        try:
            said = d.addresses(2)
            d.port = int(re.fullmatch(r"https://127\.0\.0\.1:([0-9]+)", said[0]).group(1))
            assert said[1] == f"unix:{home}/s"
            d.at = tls(d.port, pems["rsa"][0])
            yield d
        finally:
            d.at.clear()
            assert d.close() == 0
            home.remove()


@pytest.fixture
def client(daemon):
    return daemon.at


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="tls")


# ---- certificates -----------------------------------------------------------------------------


def refused(cert, key):
    home = Home()
    try:
        with Daemon(home, env=settings(cert, key)) as d:
            status, said = d.ends()
            assert d.process.returncode == status
            assert '"request"' not in said
            return status, said.splitlines()[-1]
    finally:
        home.remove()


def test_a_key_that_does_not_match_is_refused(pems):
    status, said = refused(pems["rsa"][0], pems["other"][1])
    assert status == 2 and said.startswith("lodged: ") and "do not match" in said, said
    assert pems["rsa"][0] in said and pems["other"][1] in said, said


def test_files_that_are_not_pem_are_refused(pems):
    junk, empty = pems["dir"] + "/junk", pems["dir"] + "/empty"
    with open(junk, "wb") as f:
        f.write(b"-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n")
    open(empty, "wb").close()
    cert, key = pems["rsa"]
    for c, k, wrong in ((junk, key, junk), (empty, key, empty), (cert, junk, junk), (cert, empty, empty),
                        (key, cert, key)):
        status, said = refused(c, k)
        assert status == 2 and said.startswith("lodged: ") and wrong in said, said


def test_missing_files_are_refused(pems):
    cert, key = pems["rsa"]
    status, said = refused("/nowhere.crt", key)
    assert status == 2 and "/nowhere.crt: No such file or directory" in said
    status, said = refused(cert, "/nowhere.key")
    assert status == 2 and "/nowhere.key: No such file or directory" in said


def test_ec_keys_are_accepted(pems):
    home = Home()
    with Daemon(home, env=settings(*pems["ec"])) as d:
        port = int(d.addresses()[0].rpartition(":")[2])
        assert tls(port, pems["ec"][0]).get("/health").status == 200
        assert d.close() == 0
    home.remove()


# ---- protocol ---------------------------------------------------------------------------------


def handshake(port, cert, least, most):
    context = ssl.create_default_context(cafile=cert)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = least, most
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as s:
        with context.wrap_socket(s, server_hostname="localhost") as t:
            return t.version()


def test_only_tls_1_2_and_1_3_are_accepted(daemon, pems):
    cert, v = pems["rsa"][0], ssl.TLSVersion
    assert handshake(daemon.port, cert, v.TLSv1_2, v.TLSv1_2) == "TLSv1.2"
    assert handshake(daemon.port, cert, v.TLSv1_3, v.TLSv1_3) == "TLSv1.3"
    for old in (v.TLSv1, v.TLSv1_1):
        with pytest.raises((ssl.SSLError, OSError)):
            handshake(daemon.port, cert, old, old)


def test_a_client_detects_another_certificate(daemon, pems):
    with pytest.raises(ssl.SSLCertVerificationError):
        tls(daemon.port, pems["other"][0]).get("/health")


@pytest.mark.parametrize("text", (
    f"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nx-api-key: {KEY}\r\n\r\n".encode(),
    b"\x16\x03\x01\x00\x05hello", b"\0" * 3000, b"\x80" * 100))
def test_plain_http_is_not_answered(daemon, client, text):
    """The connection is closed, and other connections are not affected."""
    with contextlib.suppress(ConnectionResetError):
        got = raw("127.0.0.1", daemon.port, text + b"\0" * 5000)
        assert b"HTTP/1.1 200" not in got and b"sessions" not in got
    assert client.get("/health").status == 200


def test_unfinished_handshakes_block_nothing(daemon, client):
    halves = []
    for _ in range(20):
        s = socket.create_connection(("127.0.0.1", daemon.port), timeout=DEADLINE)
        s.sendall(b"\x16\x03\x01")
        halves.append(s)
    assert client.get("/v1/sessions").status == 200
    for s in halves:
        s.close()
    assert client.get("/health").status == 200


def test_the_unix_socket_does_not_use_tls(daemon):
    c = UnixConnection(daemon.home + "/s")
    c.request("GET", "/v1/sessions", headers={"x-api-key": KEY})
    assert c.getresponse().status == 200
    c.close()


# ---- requests ---------------------------------------------------------------------------------


def test_command(client, at):
    r = client.post(at + "/exec", {"command": "echo hello"})
    assert r.status == 200 and r.json["stdout"] == "hello\n"


def test_stream(client, at):
    size = 3_000_000
    text = f"head -c {size} /dev/zero | tr '\\0' x; sleep .3; echo end"
    c, response = client.open("POST", at + "/exec", {"command": text}, {"Accept": "application/x-ndjson"})
    events = [json.loads(line) for line in response]
    c.close()
    text = "".join(e["data"] for e in events if e["event"] == "stdout")
    assert text == "x" * size + "end\n" and events[-1]["event"] == "exit"


def test_events_are_sent_at_once(client, at):
    """Without waiting for a full buffer."""
    c, response = client.open("POST", at + "/exec", {"command": "echo first; read x; echo $x", "stdin_open": True},
                              {"Accept": "application/x-ndjson"})
    started = json.loads(response.readline())
    assert json.loads(response.readline())["data"] == "first\n"
    assert client.post(f"{at}/execs/{started['exec_id']}/stdin?eof=1", b"second\n").status == 200
    assert json.loads(response.readline())["data"] == "second\n"
    assert json.loads(response.readline())["event"] == "exit"
    c.close()


def test_files(client, at):
    data = os.urandom(5_000_000)
    assert client.call("PUT", at + "/files/big", data).status == 201
    assert hashlib.sha256(client.get(at + "/files/big").data).digest() == hashlib.sha256(data).digest()
    part = client.get(at + "/files/big", headers={"Range": "bytes=1000000-1000099"})
    assert part.status == 206 and part.data == data[1000000:1000100]


def test_upload_in_chunks(client, at):
    c = http.client.HTTPSConnection("127.0.0.1", client.port, timeout=DEADLINE, context=client.context)
    c.request("PUT", at + "/files/chunks", (b"%07d\n" % i * 1000 for i in range(200)),
              {"Authorization": f"Bearer {KEY}"}, encode_chunked=True)
    response = c.getresponse()
    assert response.status == 201, Answer(response, response.read())
    response.read()
    c.request("GET", at + "/files/chunks", headers={"Authorization": f"Bearer {KEY}"})
    assert c.getresponse().read() == b"".join(b"%07d\n" % i * 1000 for i in range(200))
    c.close()


def test_a_disconnect_without_close_notify(client, at):
    """The command and the service keep running."""
    c, response = client.open("POST", at + "/exec", {"command": "for i in {1..20}; do echo $i; sleep .05; done"},
                              {"Accept": "application/x-ndjson"})
    started = json.loads(response.readline())
    c.sock.shutdown(socket.SHUT_RDWR)
    c.close()
    done = client.get(f"{at}/execs/{started['exec_id']}/output?wait_ms=60000").json
    while not done["done"]:
        done = client.get(f"{at}/execs/{started['exec_id']}/output?wait_ms=1000").json
    assert done["stdout"].split() == [str(i) for i in range(1, 21)]
