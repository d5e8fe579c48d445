# SPDX-License-Identifier: Apache-2.0
"""Invalid requests: the response names the mistake, and nothing changes."""
import json
import re

import pytest

from client import KEY, quote

TEXT, NUMBER, FLAG, OBJECT, TEXTS = "text", "number", "flag", "object", "texts"
MOVE = {"if_version": NUMBER}
BODIES = {
    ("POST", "/v1/sessions"): {
        "key": TEXT, "user": TEXT, "thread": TEXT, "project": TEXT, "fragment": TEXT,
        "template": TEXT, "snapshot": TEXT, "limits": OBJECT, "env": TEXTS, "run_as": TEXT,
        "workdir": TEXT, "class": TEXT, "idle_timeout_ms": NUMBER, "max_lifetime_ms": NUMBER,
        "on_idle": TEXT, "on_expire": TEXT, "network": TEXT, "policy": TEXT, "metadata": OBJECT,
        "if_exists": TEXT, "pin": TEXT, "idempotency_key": TEXT, "max_active_per_user": NUMBER,
        "on_exceed": TEXT, "wait_ms": NUMBER, "asleep": FLAG},
    ("PATCH", "/v1/sessions/{id}"): {
        "idle_timeout_ms": NUMBER, "max_lifetime_ms": NUMBER, "on_idle": TEXT, "on_expire": TEXT,
        "limits": OBJECT, "metadata": OBJECT, "archived": FLAG, "if_version": NUMBER},
    ("POST", "/v1/sessions/{id}/probe"): {"deadline_ms": NUMBER},
    ("POST", "/v1/sessions/{id}/extend"): {"ms": NUMBER, "if_version": NUMBER},
    ("POST", "/v1/sessions/{id}/activity"): {},
    ("POST", "/v1/sessions/{id}/pause"): MOVE,
    ("POST", "/v1/sessions/{id}/unpause"): MOVE,
    ("POST", "/v1/sessions/{id}/hibernate"): MOVE,
    ("POST", "/v1/sessions/{id}/resume"): MOVE,
    ("POST", "/v1/sessions/{id}/snapshots"): {"name": TEXT, "live": FLAG},
    ("POST", "/v1/sessions/{id}/fork"): {"count": NUMBER, "key": TEXT, "snapshot": TEXT},
    ("POST", "/v1/sessions/{id}/rollback"): {"snapshot": TEXT, "if_version": NUMBER},
    ("POST", "/v1/keys"): {"tenant": TEXT, "scope": TEXT, "user": TEXT, "name": TEXT,
                           "expires_at": NUMBER, "expires_in_ms": NUMBER},
    ("PUT", "/v1/users/{user}/quota"): {"sandboxes": NUMBER, "memory_bytes": NUMBER,
                                        "disk_bytes": NUMBER, "cpu_ms": NUMBER},
}
WRONG = {
    TEXT: [1, 1.5, True, [], {}, ["x"]],
    NUMBER: ["1", 1.5, 1.0, True, [], {}, -1, -2 ** 63, 2 ** 63, 10 ** 40],
    FLAG: [0, 1, "true", [], {}],
    OBJECT: [1, "x", True, [], ["x"]],
    TEXTS: [1, "x", True, [], {"A": 1}, {"A": None}, {"A": []}, {"": "x"}, {"A=B": "x"}],
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def sid(lodged):
    return lodged.client().enter(key="well", user="ann")


@pytest.fixture(autouse=True)
def nothing_changes(lodged, sid):
    """The sessions, their states and the keys are the same after the test, and lodged reports no error."""
    def look():
        client = lodged.client()
        sessions = client.get("/v1/sessions").json["sessions"]
        keys = client.get("/v1/keys").json["keys"]
        return [(s["id"], s["version"], s["state"]) for s in sessions], [k["id"] for k in keys]

    before = look()
    yield
    assert look() == before
    assert lodged.client().get("/health").json["last_error"] is None
    assert lodged.process.poll() is None


def target(route, sid):
    return route[1].replace("{id}", sid).replace("{user}", "ann")


def refused(answer, *words):
    assert answer.status == 400 and answer.code == "INVALID", answer
    message = answer.json["error"]["message"]
    for word in words:
        assert word in message, answer
    return message


def name_of(route):
    return " ".join(route)


every_body = pytest.mark.parametrize("route", BODIES, ids=name_of)


# ---- bodies -------------------------------------------------------------------------------------


@every_body
def test_each_field_has_its_type(client, sid, route):
    for field, kind in BODIES[route].items():
        for value in WRONG[kind]:
            answer = client.call(route[0], target(route, sid), {field: value})
            if isinstance(value, int) and abs(value) > 2 ** 63 - 1 and value != -2 ** 63:
                refused(answer)  # not readable as JSON
            else:
                refused(answer, field)


@every_body
def test_an_unknown_field_is_named(client, sid, route):
    for name in ("nonsense", "Key", "key ", "__proto__", "", "a" * 60, "\u00e4\u6f22", "if-version"):
        refused(client.call(route[0], target(route, sid), {name: 1}), f'"{name}"')
    refused(client.call(route[0], target(route, sid), {"x" * 5000: 1}), "x" * 60)


MALFORMED = {
    "array": b"[]", "number": b"1", "text": b'"x"', "null": b"null", "true": b"true",
    "open": b"{", "open text": b'{"a', "garbage behind": b"{}x", "two": b"{}{}",
    "comma": b'{"a":1,}', "no value": b'{"a"}', "single quotes": b"{'a':1}", "blank": b" ",
    "comment": b"{/**/}", "BOM": b"\xef\xbb\xbf{}", "NUL": b"\0", "NUL behind": b"{}\0",
    "NUL in a text": b'{"key":"a\0b"}', "escaped NUL": b'{"key":"a\\u0000b"}',
    "NUL in a name": b'{"a\\u0000b":1}', "not UTF-8": b'{"key":"\xff"}',
    "overlong": b'{"key":"\xc0\x80"}', "surrogate in UTF-8": b'{"key":"\xed\xa0\x80"}',
    "lone surrogate": b'{"key":"\\ud800"}', "lone low surrogate": b'{"key":"\\udc00x"}',
    "twice": b'{"key":"a","key":"b"}', "twice inside": b'{"metadata":{"a":1,"a":2}}',
    "NaN": b'{"if_version":NaN}', "infinity": b'{"if_version":Infinity}',
    "too large": b'{"if_version":1e999}', "many digits": b'{"if_version":' + b"9" * 500 + b"}",
    "hexadecimal": b'{"if_version":0x10}', "leading zero": b'{"if_version":01}',
    "deep": b"[" * 100000, "deep and whole": b"[" * 1000 + b"]" * 1000,
    "deep inside": b'{"metadata":' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}",
    "deep behind a text": b'{"a":"\\"[","metadata":' + b"[" * 1500 + b"]" * 1500 + b"}",
}


@every_body
def test_malformed_json_is_refused(client, sid, route):
    for name, body in MALFORMED.items():
        answer = client.call(route[0], target(route, sid), body, JSON)
        assert refused(answer), name


@every_body
def test_body_size_and_content_type_are_checked(lodged, client, sid, route):
    where = target(route, sid)
    got = raw(lodged, f"{route[0]} {where} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n")
    assert statuses(got) == [413], got  # refused by its length, before the body
    big = b'{"nonsense":"' + b"x" * (1 << 20) + b'"}'
    got = raw(lodged, f"{route[0]} {where} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
              f"Connection: close\r\nContent-Length: {len(big)}\r\n\r\n", big)
    assert statuses(got) == [413] and b'"TOO_LARGE"' in got, got
    for kind in (None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                 "multipart/form-data; boundary=x", "text/plain; application/json"):
        headers = {"Content-Type": kind} if kind is not None else {}
        answer = client.call(route[0], where, b'{"nonsense":1}', headers)
        assert answer.status == 415 and answer.code == "UNSUPPORTED_MEDIA_TYPE", (kind, answer)
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"):
        refused(client.call(route[0], where, b'{"nonsense":1}', {"Content-Type": kind}), "nonsense")


@pytest.mark.parametrize("route", [r for r in BODIES if "{" in r[1]], ids=name_of)
def test_no_body_is_an_empty_object(client, route):
    for body in (None, b""):
        answer = client.call(route[0], target(route, "ses_unknown"), body)
        assert answer.status in (200, 400, 404), answer
        assert answer.status != 400 or "missing" in answer.json["error"]["message"]


def test_invalid_values_of_text_fields(client):
    for field in ("on_idle", "on_expire", "if_exists", "on_exceed", "class", "network"):
        refused(client.post("/v1/sessions", {field: "nonsense"}), field)
    for field, size in (("key", 256), ("user", 256), ("thread", 256), ("template", 64),
                        ("snapshot", 64), ("project", 64), ("pin", 64), ("idempotency_key", 256)):
        refused(client.post("/v1/sessions", {field: "x" * (size + 1000)}), field)
        refused(client.post("/v1/sessions", {field: ""}), field)
    answer = client.post("/v1/sessions", {"template": "../../etc"})
    assert answer.status in (400, 404), answer
    assert client.post("/v1/sessions", {"template": "no-such"}).status == 404
    assert client.post("/v1/sessions", {"snapshot": "snp_unknown"}).status == 404
    assert client.post("/v1/sessions", {"pin": "ses_unknown"}).status == 409


def test_invalid_limits(client, sid):
    for call in (lambda limits: client.post("/v1/sessions", {"limits": limits}),
                 lambda limits: client.patch(f"/v1/sessions/{sid}", {"limits": limits})):
        for name in ("memory_bytes", "cpus", "pids", "disk_bytes", "inodes", "file_bytes",
                     "open_files", "output_bytes"):
            for value in ("1", True, [], {}, -1, 1.5 if name != "cpus" else "x", 2 ** 63 - 1):
                refused(call({name: value}), "limits", name)
        refused(call({"nonsense": 1}), "limits", "nonsense")
        refused(call({"cpus": 1e300}), "cpus")
        refused(call({"memory_bytes": 1}), "memory_bytes")


def test_values_out_of_range(client, sid):
    refused(client.post("/v1/sessions", {"env": {f"V{i}": "x" for i in range(300)}}), "env")
    refused(client.post("/v1/sessions", {"metadata": {"a": "x" * 100000}}), "metadata")
    refused(client.patch(f"/v1/sessions/{sid}", {"metadata": {"a": "x" * 100000}}), "metadata")
    refused(client.post(f"/v1/sessions/{sid}/fork", {"count": 0}), "count")
    refused(client.post(f"/v1/sessions/{sid}/fork", {"count": 101}), "count")
    refused(client.post(f"/v1/sessions/{sid}/fork", {"count": 2, "key": "x"}), "key")
    refused(client.post(f"/v1/sessions/{sid}/probe", {"deadline_ms": 60001}), "deadline_ms")
    refused(client.put("/v1/users/" + "x" * 1000 + "/quota", {}), "user")


def test_unusual_text_is_stored_unchanged(client):
    odd = 'a "q" \\ / \u00e4\u6f22\U0001f600 \t\n\x7f'
    made = client.enter(key=odd, user=odd, metadata={odd: odd}, asleep=True)
    try:
        record = client.get("/v1/sessions/key:" + quote(odd)).json["session"]
        assert (record["key"], record["user"], record["metadata"]) == (odd, odd, {odd: odd})
        found = client.get("/v1/sessions?user=" + quote(odd)).json["sessions"]
        assert [s["id"] for s in found] == [made]
        found = client.get(f"/v1/sessions?metadata.{quote(odd)}={quote(odd)}").json["sessions"]
        assert [s["id"] for s in found] == [made]
    finally:
        client.delete("/v1/sessions/" + made)


# ---- parameters ---------------------------------------------------------------------------------

NUMBERS = ["", "x", "1x", "%201", "+1", "1.5", "0x10", "-1", "--1", "9" * 19, "9" * 100, "1e3",
           "%00", "%ff", "%zz", "1%0a"]


@pytest.mark.parametrize("path, name", [
    ("/v1/sessions", "limit"), ("/v1/sessions", "after"), ("/v1/keys", "limit"),
    ("/v1/keys", "after"), ("/v1/events", "limit"), ("/v1/events", "since"), ("/v1/events", "before"),
    ("/v1/sessions/{id}/snapshots", "limit"), ("/v1/sessions/{id}/snapshots", "after"),
    ("/v1/snapshots", "limit"), ("/v1/snapshots", "after")])
def test_invalid_numbers_in_the_query(client, sid, path, name):
    where = path.replace("{id}", sid)
    for value in NUMBERS + ["0", "1001"] * (name == "limit") + ["0"] * (name == "before"):
        answer = client.get(f"{where}?{name}={value}")
        assert answer.status == 400, (value, answer)
        assert re.search("%(00|zz)", value) or name in answer.json["error"]["message"], answer
    assert client.get(f"{where}?{name}=1").status == 200
    assert client.get(f"{where}?{name}=1&{name}=1").status == 400


def test_invalid_filters(client):
    for query in ("state=nonsense", "state=", "user=", "project=", "nonsense=1", "metadata.a=",
                  "metadata.=x", "metadata.a=1&metadata.b=2", "user=a&user=b", "limit", "state=active&state=none"):
        refused(client.get("/v1/sessions?" + query))
    for query in ("view=", "view=table", "q=a", "sort=memory", "view=row&q=", "view=row&q=" + "x" * 257, "view=row&sort=x",
                  "view=row&order=up", "view=row&limit=5001", "view=row&sample_ms=5001", "view=row&nonsense=1",
                  "state=active,", "state=active,nonsense", "state=,"):
        refused(client.get("/v1/sessions?" + query))
    for query in ("user=%ff%fe", "user=" + "x" * 5000, "metadata.%22%27=x",
                  "project=%27%3b--"):
        answer = client.get("/v1/sessions?" + query)
        assert answer.status == 200 and answer.json["sessions"] == [], (query, answer)
    for path, name in (("/v1/events", "events"), ("/v1/snapshots", "snapshots")):
        for query in ("session=", "session=key:", "session=%ff", "session=" + "x" * 1000):
            answer = client.get(f"{path}?{query}")
            assert answer.status in (200, 400, 404), (query, answer)
            assert answer.status != 200 or answer.json[name] == []
    for name in ("session", "user", "limit", "after", "nonsense"):
        answer = client.get(f"/v1/snapshots?{name}=")
        refused(answer)
        assert name in answer.json["error"]["message"], answer
    for query in ("user=%ff%fe", "user=" + "x" * 5000, "session=ses_" + "x" * 5000, "session=ses_%27%3b--"):
        answer = client.get("/v1/snapshots?" + query)
        assert answer.status == 200 and answer.json["snapshots"] == [], (query, answer)
    for query in ("kind=", "kind=" + "x" * 501, "order=", "order=up", "order=asc&before=5", "user="):
        refused(client.get("/v1/events?" + query))
    refused(client.get("/v1/events?order=desc", headers={"Accept": "text/event-stream"}))
    for last in ("x", "-1", "1.5", " ", "+1", "9" * 30, "1 2"):
        answer = client.get("/v1/events", headers={"Last-Event-ID": last})
        assert answer.status == 400 or last == " ", (last, answer)
    query = "&".join(f"a{i}=1" for i in range(200))
    assert client.get("/v1/sessions?" + query).status == 400


# ---- names in paths -----------------------------------------------------------------------------

PATHS = ["/v1/sessions/{}", "/v1/sessions/{}/stats", "/v1/sessions/{}/progress",
         "/v1/sessions/{}/snapshots", "/v1/snapshots/{}", "/v1/snapshots/{}/archive", "/v1/keys/{}"]


@pytest.mark.parametrize("path", PATHS)
def test_invalid_ids_in_paths(client, path):
    for name, statuses in (("", (404,)), ("x" * 2000, (404,)), ("a%2Fb", (400,)), ("a%00b", (400,)),
                           ("%", (400,)), ("%zz", (400,)), ("%f", (400,)), ("%ff%fe", (404,)),
                           ("%2e%2e", (404,)), ("..", (404,)), ("key:", (404,)), ("key:%ff", (404,)),
                           ("key:" + "x" * 2000, (404,)), ("key:%00", (400,)), ("key:a%2Fb", (404,)),
                           ("%20", (404,)), ("a%0d%0aX-Evil:%20yes", (404,)), ("%25s%25n", (404,)),
                           ("ses_%F0%9F%98%80", (404,)), ("'%20or%201=1--", (404,))):
        for method in ("GET", "DELETE") if path.count("/") == 3 else ("GET",):
            answer = client.call(method, path.format(name))
            assert answer.status in statuses, (name, answer)
            assert answer.headers["X-Evil"] is None
            json.loads(answer.data)


def test_user_names_may_have_any_characters(client):
    for name in ("%ff", "a%0d%0ab", "x" * 100, "%20", "..", "key:a%2Fb"):
        answer = client.get(f"/v1/users/{name}/quota")
        assert answer.status == 200, (name, answer)
        assert client.get(f"/v1/users/{name}").status in (400, 404)
    assert client.get("/v1/users/a%2Fb").status == 400
    assert client.get("/v1/users/" + "x" * 2000).status in (400, 404)
    assert client.get("/v1/users/" + "x" * 2000 + "/quota").status in (200, 400, 404)


def test_unknown_routes_and_methods(client):
    for path in ("/v1", "/v1/", "/v2/sessions", "//v1/sessions", "/v1//sessions", "/v1/sessions/",
                 "/V1/sessions", "/v1/sessions/a/b/c/d/e/f/g/h/i", "/v1/./sessions",
                 "/v1/x/../sessions", "/%76%31"):
        assert client.get(path).status == 404, path
    answer = client.call("PUT", "/v1/sessions", {})
    assert answer.status == 405 and answer.headers["Allow"] == "POST, GET, HEAD", answer
    assert client.call("TRACE", "/v1/sessions").status in (400, 405, 501)
    assert client.call("get", "/v1/sessions").status in (400, 405, 501)


# ---- malformed HTTP -------------------------------------------------------------------------------

HEAD = f"Host: localhost\r\nX-Api-Key: {KEY}\r\n"


def raw(lodged, head, body=b"", end=False):
    if isinstance(head, str):
        head = head.encode("latin-1")
    return lodged.raw(head + body, end)


def statuses(got):
    return [int(s) for s in re.findall(rb"HTTP/1\.[01] ([0-9]{3})", got)]


@pytest.mark.parametrize("name, head", [
    ("two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n"),
    ("the same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n"),
    ("a list of lengths", "Content-Length: 2, 2\r\n"),
    ("a negative length", "Content-Length: -2\r\n"),
    ("a length with a sign", "Content-Length: +2\r\n"),
    ("a length of many digits", "Content-Length: " + "9" * 30 + "\r\n"),
    ("length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
    ("chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
    ("another coding", "Transfer-Encoding: gzip\r\n"),
    ("two codings", "Transfer-Encoding: gzip, chunked\r\n"),
    ("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    ("almost chunked", "Transfer-Encoding: xchunked\r\n"),
    ("a bare line feed", "X-A: b\nX-C: d\r\n"),
    ("a folded line", "X-A: b\r\n c\r\n"),
    ("a blank before the colon", "Content-Length : 2\r\n"),
    ("a line without a colon", "nonsense\r\n"),
    ("no name", ": x\r\n"),
    ("a NUL", "X-A: a\0b\r\n"),
    ("a control character", "X-A: a\x01b\r\n"),
    ("two hosts", "Host: other\r\n"),
    ("two keys", "X-Api-Key: " + KEY + "\r\n"),
])
def test_ambiguous_headers_are_refused(lodged, name, head):
    behind = "{}" + "GET /v1/sessions HTTP/1.1\r\n" + HEAD + "\r\n"
    got = raw(lodged, f"POST /v1/sessions HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
              f"{head}\r\n{behind}", end=True)
    # the rest is not treated as a request
    assert statuses(got) in ([400], [501]) and b"X-Request-Id" not in got.partition(b"}}")[2], got


@pytest.mark.parametrize("line", [
    "GET http://localhost/v1/sessions HTTP/1.1", "GET v1/sessions HTTP/1.1", "GET * HTTP/1.1",
    "CONNECT localhost:80 HTTP/1.1", "GET /v1/sessions#x HTTP/1.1", "GET  /v1/sessions HTTP/1.1",
    "GET /v1/sessions  HTTP/1.1", "GET /v1/a b HTTP/1.1", "GET /v1/sessions HTTP/2.0",
    "GET /v1/sessions HTTP/1.2", "GET /v1/sessions http/1.1", "GET /v1/sessions HTTQ/1.1",
    "GET /v1/sessions", "GET", "", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "G\0T /v1/sessions HTTP/1.1", "GET /v1/sess\0ions HTTP/1.1", "(GET) /v1/sessions HTTP/1.1",
    "X" * 100 + " /v1/sessions HTTP/1.1"])
def test_malformed_request_lines(lodged, line):
    got = raw(lodged, f"{line}\r\n{HEAD}Connection: close\r\n\r\n", end=True)
    assert not {200, 201, 500} & set(statuses(got)), got
    assert b'"sessions"' not in got


@pytest.mark.parametrize("chunks", [
    b"zz\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
    b"2\r\n{}XX0\r\n\r\n", b"2\n{}\n0\n\n", b"\r\n{}\r\n0\r\n\r\n", b"0x2\r\n{}\r\n0\r\n\r\n",
    b"2 \r\n{}\r\n0\r\n\r\n", b"2\r\n{}\r\n", b"2\r\n{", b""])
def test_malformed_chunks(lodged, chunks):
    where = "/v1/sessions/ses_unknown/activity"
    got = raw(lodged, f"POST {where} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
              "Transfer-Encoding: chunked\r\n\r\n", chunks, end=True)
    assert len(statuses(got)) <= 1 and not {200, 201, 500} & set(statuses(got)), got


def test_chunked_bodies_are_bounded(lodged):
    where = "/v1/sessions/ses_unknown/activity"
    got = raw(lodged, f"POST {where} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
              "Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n", end=True)
    assert statuses(got) == [404], got
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    got = raw(lodged, f"POST {where} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
              "Transfer-Encoding: chunked\r\n\r\n", piece * 20 + b"0\r\n\r\n", end=True)
    assert statuses(got) == [413], got[:500]


def test_http_1_0_is_served(lodged):
    got = raw(lodged, "GET /health HTTP/1.0\r\n\r\n", end=False)
    assert statuses(got) == [200] and b"Transfer-Encoding" not in got
    assert b'"status"' in got
    got = raw(lodged, "GET /health\r\n", end=True)  # HTTP/0.9
    assert b'"status"' not in got
    assert statuses(raw(lodged, "GET /health HTTP/1.1\r\n\r\n", end=True))[0] == 400


def test_large_headers_are_refused(lodged):
    for head in ("X-A: " + "x" * 100000 + "\r\n", "".join(f"X-{i}: x\r\n" for i in range(2000))):
        got = raw(lodged, f"GET /v1/sessions HTTP/1.1\r\n{HEAD}{head}\r\n", end=True)
        assert statuses(got) in ([431], []), got
    got = raw(lodged, f"GET /v1/sessions/{'x' * 100000} HTTP/1.1\r\n{HEAD}\r\n", end=True)
    assert statuses(got) in ([414], [431], []), got


def test_request_ids(client):
    assert client.get("/health", headers={"X-Request-Id": "abc-1.2_3"}).headers["X-Request-Id"] == \
        "abc-1.2_3"
    for bad in ("a b", "a\tb", "x" * 65, "a;b", "\xe4", '"', "a:b", ""):
        answer = client.get("/v1/sessions/none", headers={"X-Request-Id": bad})
        assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-Id"]), (bad, answer)
    seen = {client.get("/health").headers["X-Request-Id"] for _ in range(5)}
    assert len(seen) == 5


def test_echoed_input_cannot_inject_headers(client, sid):
    evil = "x\r\nX-Evil: yes\r\n\r\n<script>"
    for answer in (client.get("/v1/sessions/" + quote(evil)),
                   client.get("/v1/sessions/key:" + quote(evil)),
                   client.get("/v1/sessions?state=" + quote(evil)),
                   client.post("/v1/sessions", {evil: 1}),
                   client.get("/v1/snapshots/" + quote(evil) + "/archive"),
                   client.delete("/v1/keys/" + quote(evil))):
        assert answer.status in (400, 404) and answer.headers["X-Evil"] is None
        assert answer.headers["Content-Type"] == "application/json"
