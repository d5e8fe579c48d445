# SPDX-License-Identifier: Apache-2.0
"""What callers put between a client and the network, and which requests are repeated: with both clients."""
import asyncio
import contextlib
import contextvars
import json
import logging
import os
import re
import socket
import ssl
import threading
import types

import pytest
from client import KEY, certificate
from conftest import ROOT
from places import Service
from ways import Way

import lodge
from lodge._trace import route_of

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Scripted:
    """Answers each request by the next (status, headers, body), and "/" by its version. None: never."""

    def __init__(self, path, *answers, version="0.1.0"):
        self.answers, self.asked, self.version = list(answers), [], version
        self.url = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock):
        with contextlib.suppress(OSError), sock, sock.makefile("rb") as f:
            while self._one(sock, f):
                pass

    def _one(self, sock, f):
        line = f.readline().decode().split()
        if not line:
            return False
        headers = {}
        for text in iter(lambda: f.readline().decode().strip(), ""):
            name, _, value = text.partition(": ")
            headers[name.lower()] = value
        f.read(int(headers.get("content-length", 0)))
        if line[1] == "/":
            answer = (200, {}, {"version": self.version})
        else:
            self.asked.append((line[0], line[1], headers))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            f.read(1)  # until the client gives up
            return False
        status, more, body = answer
        raw = json.dumps(body).encode()
        head = "".join(f"{k}: {v}\r\n" for k, v in {**more, "Content-Length": len(raw), "X-Request-Id": "r1"}.items())
        sock.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + raw)
        return True

    def close(self):
        self._listener.close()


def refused(status, code, after="0"):
    return status, {"Retry-After": after} if after else {}, {"error": {"code": code, "message": "busy", "retryable": True, "details": {}}}


OK = (200, {}, {"session": {"id": "s"}, "tombstone": {"id": "s"}, "policy": {}, "ready": True})


@pytest.fixture
def client(request, tmp_path):
    """A client of a scripted service, for requests of either kind."""
    with contextlib.ExitStack() as ends:
        def make(way_kind, *answers, version="0.1.0", **options):
            service = ends.enter_context(contextlib.closing(Scripted(tmp_path / "s.sock", *answers, version=version)))
            way = ends.enter_context(contextlib.closing(Way(way_kind, service.url)))
            way.do(way.client.close())
            way.client = type(way.client)(service.url, "lk_s3cret", **options)
            return way, service
        yield make


both = pytest.mark.parametrize("kind", ["sync", "async"])


@both
def test_headers_of_requests(client, kind):
    way, service = client(kind, OK, headers={"X-Team": "a"}, user_agent="app/1.2", traceparent=TRACE)
    way.do(way.client.session("s").get())
    got = service.asked[0][2]
    assert got["x-team"] == "a" and got["traceparent"] == TRACE and got["authorization"] == "Bearer lk_s3cret"
    assert got["user-agent"].startswith(f"app/1.2 lodge-python/{lodge.__version__} python/3.")


@both
def test_headers_of_functions(client, kind):
    seen = iter(range(9))
    way, service = client(kind, OK, headers=lambda: {"X-N": str(next(seen))}, traceparent=lambda: None)
    for _ in range(2):
        way.do(way.client.session("s").get())
    assert [h["x-n"] for _, _, h in service.asked] == ["0", "1"] and "traceparent" not in service.asked[0][2]


def test_wrong_hooks_are_refused():
    for name in ("Host", "authorization", "Content-Length", "a b", ""):
        with pytest.raises(lodge.InvalidError, match="^headers: "):
            lodge.Client("http://h", headers={name: "x"})
    for wrong in ({"headers": {"A": "b\r\nc: d"}}, {"user_agent": "a\nb"}, {"traceparent": "00-1"}, {"retry": 3},
                  {"tracer": object()}, {"tracer": Spans(), "traceparent": TRACE}):
        with pytest.raises(lodge.InvalidError, match="^(headers|traceparent|retry|tracer): "):
            lodge.AsyncClient("http://h", **wrong)


class Spans:
    """A tracer as that of OpenTelemetry, which keeps its spans."""

    def __init__(self, trace_id=0xabc):
        self.trace_id, self.made, self.current = trace_id, [], contextvars.ContextVar("span", default=None)

    @contextlib.contextmanager
    def start_as_current_span(self, name, attributes=None):
        span = types.SimpleNamespace(name=name, attributes=dict(attributes), errors=[], ended=False, parent=self.current.get())
        self.made.append(span)
        number = len(self.made)
        span.set_attribute = span.attributes.__setitem__
        span.get_span_context = lambda: types.SimpleNamespace(trace_id=self.trace_id, span_id=number, trace_flags=1)
        token = self.current.set(span)
        try:
            yield span
        except Exception as e:
            span.errors.append(e)
            raise
        finally:
            self.current.reset(token)
            span.ended = True


@both
def test_a_span_for_each_request(client, kind):
    spans = Spans()
    way, service = client(kind, OK, refused(503, "UNAVAILABLE"), OK, refused(404, "NOT_FOUND"),
                          tracer=spans)
    way.do(way.client.session("s").get())
    way.do(way.client.session("s").get())
    with pytest.raises(lodge.NotFoundError) as e:
        way.do(way.client.session("s").files.stat("secret/name"))
    first, second, third = spans.made
    assert first.name == second.name == "GET /v1/sessions/{id}" and all(s.ended for s in spans.made)
    assert first.attributes == {"http.request.method": "GET", "url.template": "/v1/sessions/{id}",
                                "http.response.status_code": 200, "lodge.request_id": "r1"}
    assert second.attributes["http.request.resend_count"] == 1 and not second.errors
    assert third.attributes["url.template"] == "/v1/sessions/{id}/files/{path}" and third.errors == [e.value]
    assert (third.attributes["error.type"], third.attributes["http.response.status_code"]) == ("NOT_FOUND", 404)
    assert third.attributes["lodge.request_id"] == e.value.request_id
    sent = [headers["traceparent"] for _, _, headers in service.asked]
    assert sent == [f"00-{0xabc:032x}-{n:016x}-01" for n in (1, 2, 2, 3)]


@both
def test_a_span_that_is_not_recorded_sends_no_context(client, kind):
    way, service = client(kind, OK, tracer=Spans(trace_id=0))
    way.do(way.client.session("s").get())
    assert "traceparent" not in service.asked[0][2]


def test_a_span_of_a_broken_connection(tmp_path):
    spans = Spans()
    with lodge.Client(f"unix:{tmp_path}/none", retry_for=0, tracer=spans) as at, pytest.raises(lodge.TransportError) as e:
        at.ready()
    assert spans.made[0].errors == [e.value] and spans.made[0].attributes["error.type"] == "TRANSPORT"
    assert "http.response.status_code" not in spans.made[0].attributes


def test_routes_of_spans_are_those_of_the_api():
    with open(os.path.join(ROOT, "spec/openapi.json"), encoding="utf-8") as f:
        paths = [p for p in json.load(f)["paths"] if p.startswith(("/v1/", "/api/projects", "/api/teams"))]
    for path in paths:
        filled = re.sub(r"\{\w+\}", "x1", path) + ("/y%2Fz" if path.endswith("{path}") else "") + "?limit=1"
        assert route_of(filled) == re.sub(r"\{(?!path)\w+\}", "{id}", path)
    assert [route_of(p) for p in ("/", "/health", "/v1/sessions/s/files/")] == ["/", "/health", "/v1/sessions/{id}/files/{path}"]


@both
def test_a_line_for_each_request(client, kind, caplog):
    way, _ = client(kind, refused(503, "UNAVAILABLE"), OK)
    with caplog.at_level(logging.DEBUG, "lodge"):
        way.do(way.client.session("s").get())
    lines = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "lodge"]
    assert [level for level, _ in lines] == ["DEBUG", "WARNING", "DEBUG"]
    assert lines[0][1].startswith("GET /v1/sessions/s: 503 in ") and lines[0][1].endswith("(request r1)")
    assert lines[1][1].startswith("GET /v1/sessions/s: UNAVAILABLE; sent again in ")
    assert "s3cret" not in caplog.text
    own = logging.getLogger("mine")
    assert type(way.client)("http://h", logger=own)._transport.hooks.logger is own


REPEATED = {
    "get": lambda c: c.session("s").get(), "delete": lambda c: c.session("s").delete(),
    "enter": lambda c: c.enter("k"),
}


@both
@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("after", ["0", None])
def test_a_busy_service_is_asked_again(client, kind, name, after):
    way, service = client(kind, refused(503, "UNAVAILABLE", after), refused(429, "RATE_LIMITED", after), OK,
                          retry=lodge.RetryPolicy(min_delay=0.001))
    way.do(REPEATED[name](way.client))
    assert len(service.asked) == 3 and len({path for _, path, _ in service.asked}) == 1


@both
def test_what_was_refused_at_the_door_is_sent_again(client, kind):
    """Any request; one that the service began is not."""
    way, service = client(kind, refused(503, "OVERLOADED"), refused(429, "RATE_LIMITED"), OK)
    way.do(way.client.create_policy("p"))
    assert len(service.asked) == 3
    service.answers[:] = [refused(503, "UNAVAILABLE")]
    with pytest.raises(lodge.UnavailableError):
        way.do(way.client.create_policy("p"))
    assert len(service.asked) == 4


@both
def test_the_policy_bounds_retries(client, kind):
    way, service = client(kind, refused(503, "UNAVAILABLE"), retry=lodge.RetryPolicy(attempts=3, min_delay=0.001))
    with pytest.raises(lodge.UnavailableError, match=r"^busy \(UNAVAILABLE, request r1\)$"):
        way.do(way.client.session("s").get())
    assert len(service.asked) == 3


@both
def test_no_retries(client, kind):
    way, service = client(kind, refused(503, "UNAVAILABLE"), retry=False)
    with pytest.raises(lodge.UnavailableError):
        way.do(way.client.session("s").get())
    assert len(service.asked) == 1


@both
def test_a_quota_is_not_tried_again(client, kind):
    way, service = client(kind, refused(429, "LIMIT"))
    with pytest.raises(lodge.LimitError, match=r"\(LIMIT, request r1\)$"):
        way.do(way.client.enter("k"))
    assert len(service.asked) == 1


@both
def test_no_answer_in_time_is_a_timeout(client, kind):
    way, _ = client(kind, None, timeout=0.1, retry_for=0)
    with pytest.raises(TimeoutError, match="no answer in time") as e:
        way.do(way.client.session("s").get())
    assert isinstance(e.value, lodge.TimeoutError) and isinstance(e.value, lodge.TransportError) and e.value.sent


@both
def test_another_version_is_named(client, kind):
    unknown = (404, {}, {"error": {"code": "NOT_FOUND", "message": "no such route: /v1/x (see /docs)", "retryable": False}})
    way, service = client(kind, unknown, version="0.7.3")
    text = f"no such route.*; lodged is 0.7.3 and this package {lodge.__version__}: use the same version of both"
    with pytest.raises(lodge.NotFoundError, match=text):
        way.do(way.client.session("s").get())
    assert way.do(way.client.version()) == lodge.Versions(lodge.__version__, "0.7.3", False)
    service.version = lodge.__version__ + ".1"
    with pytest.raises(lodge.NotFoundError, match=r"see /docs\) \(NOT_FOUND"):
        way.do(way.client.session("s").get())
    assert way.do(way.client.version()).compatible


@both
def test_own_connections(service, kind):
    """As through a proxy: the address is not the service's."""
    made = []
    path = service.url[len("unix:"):]

    def connect(host, port, tls):
        made.append((host, port, tls))
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        return sock

    async def connect_async(host, port, tls):
        made.append((host, port, tls))
        return await asyncio.open_unix_connection(path)
    way = Way(kind, service.url)
    way.do(way.client.close())
    way.client = type(way.client)("http://far:7", KEY, connect=connect if kind == "sync" else connect_async)
    assert way.do(way.client.version()).compatible and made == [("far", 7, None)]
    way.close()


class Tunnels:
    """An HTTP proxy that leads every connection to one socket."""

    def __init__(self, target, answer="200 OK"):
        self.asked, self._target, self._answer = [], target, answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += sock.recv(1)
                self.asked.append(head.decode())
                sock.sendall(f"HTTP/1.1 {self._answer}\r\n\r\n".encode())
                far = socket.socket(socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET)
                far.connect(self._target)
                for a, b in ((sock, far), (far, sock)):
                    threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while True:
                piece = source.recv(65536)
                sink.sendall(piece) if piece else sink.shutdown(socket.SHUT_WR)
                if not piece:
                    return

    def close(self):
        self._listener.close()


@both
def test_a_proxy(service, kind):
    with contextlib.closing(Tunnels(service.url[len("unix:"):])) as proxy, contextlib.closing(Way(kind, service.url)) as way:
        way.do(way.client.close())
        way.client = type(way.client)("http://far:7", KEY, proxy=f"http://ada:s%40c@127.0.0.1:{proxy.port}")
        assert way.do(way.client.version()).compatible
        box = way.do((lodge.Sandbox if kind == "sync" else lodge.AsyncSandbox).create(client=way.client))
        assert way.do(box.run("echo hi", on_stdout=print)).stdout == "hi\n"
        way.do(box.close())
    assert proxy.asked[0].splitlines()[:3] == ["CONNECT far:7 HTTP/1.1", "Host: far:7", "Proxy-Authorization: Basic YWRhOnNAYw=="]


@both
def test_a_proxy_that_refuses(service, kind):
    with contextlib.closing(Tunnels(service.url[len("unix:"):], "407 Who are you")) as proxy, \
            contextlib.closing(Way(kind, service.url)) as way:
        way.do(way.client.close())
        way.client = type(way.client)("http://far:7", KEY, proxy=f"http://127.0.0.1:{proxy.port}", retry=False)
        with pytest.raises(lodge.TransportError, match="refused to connect to far:7: 407 Who are you") as e:
            way.do(way.client.version())
        assert not e.value.sent


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A lodged with a certificate: its URL, and what trusts it."""
    cert, key = certificate(tmp_path_factory.mktemp("tls"), "here")
    with contextlib.closing(Service(drain="1s", tls_cert=cert, tls_key=key)) as s:
        yield s.http_url, ssl.create_default_context(cafile=cert)
        s.stop()  # its own client speaks no TLS


@both
@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxy"])
def test_https(secure, kind, proxied):
    url, trust = secure
    port = int(url.rpartition(":")[2])
    with contextlib.closing(Tunnels(("127.0.0.1", port))) as proxy, contextlib.closing(Way(kind, url)) as way:
        way.do(way.client.close())
        more = {"proxy": f"http://127.0.0.1:{proxy.port}"} if proxied else {}
        with contextlib.closing(Way(kind, url)) as other:
            other.do(other.client.close())
            other.client = type(way.client)(url, KEY, retry=False, **more)
            with pytest.raises(lodge.TransportError, match="certificate verify failed"):
                other.do(other.client.version())
        way.client = type(way.client)(url, KEY, tls=trust, **more)
        box = way.do((lodge.Sandbox if kind == "sync" else lodge.AsyncSandbox).create(client=way.client))
        assert way.do(box.run("head -c 300000 /dev/zero", on_stdout=len, text=False)).stdout == b"\0" * 300000
        pty = way.do(box.pty("echo over tls"))
        assert way.do(pty.wait(60)).ok
        way.do(pty.close())
        way.do(box.close())
        assert bool(proxy.asked) is proxied and all(a.startswith(f"CONNECT 127.0.0.1:{port} ") for a in proxy.asked)


def test_wrong_proxies(tmp_path):
    for wrong in ("far:7", "https://h", "http://", "http://h/x", "http://h:x", "socks5://h:1"):
        with pytest.raises(lodge.InvalidError, match="^proxy: must be http://"):
            lodge.Client("http://h", proxy=wrong)
    with pytest.raises(lodge.InvalidError, match="^proxy: not for a service on a unix socket"):
        lodge.AsyncClient(f"unix:{tmp_path}/s", proxy="http://h")
    assert "s3cret" not in repr(lodge.Client("http://h", proxy="http://a:s3cret@h")._transport.hooks.proxy)


def test_the_documents_version_is_the_packages():
    """The package, its metadata and the service have one version."""
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    for name, text in (("sdk/python/pyproject.toml", f'version = "{lodge.__version__}"'),
                       ("meson.build", f"version: '{lodge.__version__}'")):
        with open(os.path.join(root, name), encoding="utf-8") as f:
            assert text in f.read(), name
