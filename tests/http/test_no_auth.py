# SPDX-License-Identifier: Apache-2.0
"""--insecure-no-auth: where it is allowed, what it permits, and what it does not."""
import subprocess

import pytest

from client import KEY, LODGED, UnixConnection
from daemon import Daemon, Home, PLAIN
from threads import create, fresh, says


@pytest.fixture(scope="module")
def no_auth():
    home = Home()
    with Daemon(home, "--insecure-no-auth", listen=("127.0.0.1:0", f"unix:{home}/s")) as d:
        tcp = d.addresses(2)[0]
        d.anonymous, d.known = d.client(tcp, None), d.client(tcp, KEY)
        yield d
        assert d.close() == 0
    home.empty()
    home.remove()


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "128.0.0.1:0", "[::ffff:127.0.0.1]:0"])
def test_only_loopback_addresses_are_allowed(tmp_path, listen):
    for options, env in ((["--insecure-no-auth"], {}), ([], {"LODGE_INSECURE_NO_AUTH": "1"})):
        r = subprocess.run([LODGED, "--data", str(tmp_path / "d"), "--listen", "127.0.0.1:0", "--listen", listen,
                            *options], capture_output=True, text=True, timeout=180, env={**PLAIN, **env}, check=False)
        assert r.returncode == 2 and "insecure_no_auth" in r.stderr and "loopback" in r.stderr, r
        assert not (tmp_path / "d").exists()


def test_any_origin_is_refused(tmp_path):
    r = subprocess.run([LODGED, "--data", str(tmp_path / "d"), "--listen", "127.0.0.1:0", "--insecure-no-auth", "--origins", "*"],
                       capture_output=True, text=True, timeout=180, env=PLAIN, check=False)
    assert r.returncode == 2 and "origins" in r.stderr, r


def test_cross_site_requests_cannot_change_anything(no_auth):
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert no_auth.anonymous.post("/create_session", {"user_id": "u", "thread_id": "t"}, headers=headers).status == 403
    assert no_auth.anonymous.get("/health", headers=headers).status == 200


def test_it_is_logged_as_an_error_and_shown_by_health(no_auth):
    assert any(line["level"] == "error" and "INSECURE" in line["msg"] for line in no_auth.lines())
    assert no_auth.anonymous.get("/health").json["insecure_no_auth"] is True


def test_requests_without_a_key_belong_to_the_default_tenant(no_auth):
    anonymous, known = no_auth.anonymous, no_auth.known
    session = create(anonymous)
    assert says(anonymous, session, "echo hi") == "hi\n"
    assert known.get("/status/" + session).status == 200  # the same tenant
    assert anonymous.get("/v1/sessions/" + session).status == 200
    assert anonymous.put("/v1/users/ada", {}).status < 500


def test_requests_without_a_key_have_no_admin_scope(no_auth):
    answer = no_auth.anonymous.post("/v1/policies", {"name": "p"})
    assert answer.status == 403 and "admin" in str(answer)
    assert no_auth.known.post("/v1/policies", {"name": "p"}).status == 201


def test_a_key_in_the_request_is_checked(no_auth):
    at = no_auth.anonymous
    for headers, status in (({"x-api-key": "wrong-key-0123456789"}, 401), ({"Authorization": "Bearer nonsense"}, 401),
                            ({"Authorization": "Basic YTpi"}, 401), ({"x-api-key": KEY}, 404),
                            ({"x-api-key": KEY, "Authorization": f"Bearer {KEY}"}, 400)):
        assert at.get("/status/ses_x", headers=headers).status == status, headers


def test_other_hosts_and_origins_are_refused(no_auth):
    at = no_auth.anonymous
    for headers, status in (({"Host": "rebound.example"}, 421), ({"Origin": "http://evil.example"}, 403),
                            ({"Origin": "null"}, 403), ({"Host": "localhost"}, 404),
                            ({"Origin": "http://localhost:3000"}, 403), ({"Origin": "http://127.0.0.1:1"}, 403)):
        assert at.get("/status/ses_x", headers=headers).status == status, headers
    form = b"--b\r\n\r\n--b--"
    answer = at.call("POST", "/upload_file", form, {"Origin": "http://evil.example",
                                                    "Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status == 403
    for origin in ("http://evil.example", "http://localhost:3000"):  # no preflight request precedes untyped bytes
        answer = at.call("POST", "/create_session", b'{"user_id": "u", "thread_id": "t"}', {"Origin": origin})
        assert answer.status == 403 and "`origins`" in str(answer), answer


def test_without_a_key_only_json_is_json(no_auth):
    """A page can send forms and text to any server without asking first."""
    for kind in ("text/plain;charset=UTF-8", "application/x-www-form-urlencoded"):
        for key, status in (({}, 415), ({"x-api-key": KEY}, 201), ({"x-api-key": "wrong-key-0123456789"}, 401)):
            body = b'{"user_id": "u", "thread_id": "%s"}' % fresh().encode()
            answer = no_auth.anonymous.call("POST", "/create_session", body, {"Content-Type": kind, **key})
            assert answer.status == status, (kind, answer)


def test_it_applies_to_unix_sockets(no_auth):
    connection = UnixConnection(f"{no_auth.home}/s")
    connection.request("GET", "/status/ses_x")
    assert connection.getresponse().status == 404
    connection.close()


def test_without_the_option_a_key_is_required():
    home = Home()
    try:
        with Daemon(home) as d:
            client = d.client(key=None)
            assert client.post("/create_session", {"user_id": "a", "thread_id": fresh()}).status == 401
            assert client.get("/health").json["insecure_no_auth"] is False
            assert "INSECURE" not in d.log()
            assert d.close() == 0
    finally:
        home.remove()
