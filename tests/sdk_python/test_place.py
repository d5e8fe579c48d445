# SPDX-License-Identifier: Apache-2.0
"""Finding the service and its key, and parsing HTTP responses."""
import traceback

import pytest

import lodge
from lodge import _http, _place


@pytest.fixture(autouse=True)
def empty(monkeypatch, tmp_path):
    for name in ("LODGE_URL", "LODGE_API_KEY", "LODGE_DATA", "LODGE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LODGE_DATA", str(tmp_path))


def test_addresses():
    assert str(_place.parse("http://[::1]:7070/")) == "http://[::1]:7070"
    assert _place.parse("https://example.org").port == 443 and _place.parse("http://h:1/x/").prefix == "/x"
    assert _place.parse("unix:/run/l.sock") == _place.parse("unix:///run/l.sock")
    for bad in ("h:80", "ftp://h", "http://", "unix:l.sock", "http://h:x", "http://h?x=1"):
        with pytest.raises(lodge.InvalidError, match="server_url"):
            _place.parse(bad)


PASSWORDS = ["http://ada:s3cret@h", "https://ada:s3cret@h:1/x", "http://s3cret@h", "http://ada:s3cret@h?x=1",
             "http://ada:s3cret@h:x", "http://h/?key=s3cret", "http://ada:s3#cret@h", "ada:s3cret@h", "http://ada:s3cret@[h",
             "http://ada:s3cret@h\u2100", "unix:s3cret@x"]


@pytest.mark.parametrize("url", PASSWORDS)
def test_a_password_in_an_address_is_refused_and_not_shown(url, monkeypatch):
    monkeypatch.setenv("LODGE_URL", url)
    for make in (lodge.Client, lodge.AsyncClient, lambda: lodge.SandboxClient("remote"), lambda: lodge.Client(url)):
        with pytest.raises(lodge.InvalidError, match="^server_url: ") as e:
            make()
        shown_text = "".join(traceback.format_exception(type(e.value), e.value, None)) + repr(e.value)
        assert "s3" not in shown_text and "cret" not in shown_text, shown_text


def test_a_key_is_not_shown(tmp_path):
    for make in (lodge.Client, lodge.AsyncClient):
        client = make(f"unix:{tmp_path}/none.sock", "lk_s3cret", retry_for=0)
        for shown in (client, client._transport, client.session("ses_1"), client.session("ses_1").files, client.server_url):
            assert "s3cret" not in repr(shown) + str(shown)
    with lodge.Client(f"unix:{tmp_path}/none.sock", "lk_s3cret", retry_for=0) as client:
        with pytest.raises(lodge.TransportError) as e:
            client.health()
    assert "s3cret" not in repr(e.value) + str(e.value) + repr(vars(e.value)) + repr(e.value.__cause__)
    sandbox = lodge.SandboxClient("remote", f"unix:{tmp_path}/none.sock", "lk_s3cret")
    assert "s3cret" not in repr(sandbox) + repr(vars(sandbox))


def test_the_local_socket_and_its_key(tmp_path, monkeypatch):
    with pytest.raises(lodge.UnavailableError, match="LODGE_URL"):
        _place.find(None)
    (tmp_path / "lodge.sock").touch()
    (tmp_path / "admin.key").write_text("secret\n")
    here = _place.find(None)
    assert str(here) == f"unix:{tmp_path}/lodge.sock" and _place.find_key(here, None) == "secret"
    assert _place.find_key(here, "mine") == "mine"
    monkeypatch.setenv("LODGE_API_KEY", "other")
    assert _place.find_key(here, None) == "other"
    monkeypatch.delenv("LODGE_API_KEY")
    monkeypatch.setenv("LODGE_URL", "http://far:1")
    assert str(_place.find(None)) == "http://far:1" and _place.find_key(_place.find(None), None) is None
    assert str(_place.find("unix:/x")) == "unix:/x"


def test_blanks_around_keys_are_stripped(monkeypatch):
    far = _place.parse("http://far:1")
    assert _place.find_key(far, " lk_a\r\n") == "lk_a" and _place.find_key(far, " \n") is None
    monkeypatch.setenv("LODGE_API_KEY", "lk_b\n")
    assert _place.find_key(far, None) == "lk_b"
    for bad in ("lk_a\nlk_b", "lk a", "lk_\u20ac", "lk_\x00", b"lk_a"):
        with pytest.raises(lodge.InvalidError, match="api_key"):
            lodge.Client("http://far:1", bad)
    monkeypatch.setenv("LODGE_API_KEY", "two words")
    with pytest.raises(lodge.InvalidError, match="api_key"):
        lodge.SandboxClient("remote", "http://far:1")


ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\ncontent-length:5\r\n\r\nhello",
    b"HTTP/1.0 200 OK\r\n\r\nhello",
]


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_responses_in_pieces(answer, size):
    x = _http.Exchange("GET")
    for at in range(0, len(answer), size):
        x.receive(answer[at:at + size])
    if not x.done:
        x.receive(b"")
    assert x.status == 200 and _http.joined(x.take()) == b"hello" and x.done
    assert x.keep == answer.startswith(b"HTTP/1.1")


@pytest.mark.parametrize("answer", [ANSWERS[0][:-1], ANSWERS[1][:-3], b"HTTP/1.1 200", b"nonsense\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"])
def test_truncated_responses_are_errors(answer):
    x = _http.Exchange("GET")
    with pytest.raises(lodge.TransportError):
        x.receive(answer)
        x.receive(b"")


def test_headers_cannot_contain_line_breaks():
    for bad in ("a\r\nb: c", "a\nb"):
        with pytest.raises(ValueError):
            _http.Request("GET", "/", headers={"X": bad}).head("h", None)
    assert _http.quote_path("/a b/%2F\n") == "%2Fa%20b/%252F%0A" and _http.quote("a/b") == "a%2Fb"


def test_paths_with_dot_dot_are_refused():
    """A proxy could normalize it to another path, and so to another request."""
    client = lodge.Client("http://far:1", "lk_a")
    files = client.session("ses_1").files
    for ask in (lambda: files.read("../x"), lambda: files.remove("a/../b"), lambda: files.write(b"/etc/..", b""),
                lambda: files.open("..", "wb"), lambda: files.list(".."), lambda: client.session("..").delete(),
                lambda: client.session("key:a/../ses_2").delete(), lambda: client.user(".."),
                lambda: client.session("s").command("../..").stream(), lambda: client.delete_template("x/../../keys/k")):
        with pytest.raises(lodge.InvalidError, match=r"/\.\.|%2F\.\."):
            list(ask() or ())
    for name in ("..x", "a/...", "x..", "./a", "a//b", ""):
        assert _http.Request("GET", "/files/" + _http.quote_path(name))


def test_a_client_of_threads_takes_the_service_that_is_named(monkeypatch, tmp_path):
    """Without a mode; a mode that is given counts."""
    monkeypatch.setenv("LODGE_URL", f"unix:{tmp_path}/none.sock")
    for make in (lodge.SandboxClient, lodge.ProjectClient):
        assert make().mode == "remote"
    assert lodge.BatchSandboxClient()._client.mode == "remote"
    monkeypatch.delenv("LODGE_URL")
    assert lodge.SandboxClient(server_url="http://far:1").mode == "remote"
    with pytest.raises(ValueError, match="^mode: 'far' is neither"):
        lodge.SandboxClient("far")
    monkeypatch.setenv("LODGE_LIB", str(tmp_path / "no.so"))
    for make in (lodge.SandboxClient, lambda: lodge.SandboxClient("local", "http://far:1")):
        with pytest.raises(lodge.SandboxError, match="local mode needs liblodge.so"):
            make()
