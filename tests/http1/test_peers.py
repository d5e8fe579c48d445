# SPDX-License-Identifier: Apache-2.0
"""Messages that are used to smuggle requests: src/http1 beside nginx and node, as servers and as clients.

vectors.json has the bytes, what src/http1 reads and why. Whatever it accepts, the others must read with the same ends, or
refuse; where one does not ("differs"), it must do so with what a proxy sends on. What the others accept and src/http1
refuses is in peers.json, for the versions named there; `LODGE_RECORD=1` writes it.
"""
import base64
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.parse

import pytest

from machine import eventually
from pages import TOP

HERE = os.path.dirname(__file__)
PEERS = os.path.join(HERE, "peers.json")
NAMES = ("nginx", "node")
SECONDS = 60
with open(os.path.join(HERE, "vectors.json"), encoding="utf-8") as _f:
    VECTORS = json.load(_f)


# ---- ours -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours():
    """For each vector the lines that http1-reader prints, and what a proxy would send on."""
    program = os.path.join(os.environ.get("LODGE_BUILD", os.path.join(TOP, "build")), "http1-reader")
    text = "".join(f"{v['kind']} {v['bytes'].encode('latin-1').hex()}\n" for v in VECTORS)
    r = subprocess.run([program], input=text, capture_output=True, text=True, timeout=SECONDS, check=True)
    parts = [part.rpartition("forward ") for part in r.stdout.split("--\n")[:-1]]
    lines = [[line for line in log.split("\n") if line not in ("", "end")] for log, _, _ in parts]
    return {v["name"]: (found, bytes.fromhex(hexa)) for v, found, (_, _, hexa) in zip(VECTORS, lines, parts, strict=True)}


def test_verdicts_are_those_of_the_table(ours):
    assert len(ours) == len(VECTORS), "two vectors have the same name"
    assert not {v["name"]: (ours[v["name"]][0], v["verdict"]) for v in VECTORS if ours[v["name"]][0] != v["verdict"]}


def accepted(vector):
    """The complete messages: method, target and body, or status and body."""
    found = []
    for line in vector["verdict"]:
        words = [urllib.parse.unquote_to_bytes(word) for word in line.split(" ")]
        if words[0] == b"request" and words[-1].startswith(b"["):
            found.append((words[1], re.sub(rb"^http://[^/]*", b"", words[2]), words[-1][1:-1]))
        if words[0] == b"response" and words[-1].startswith(b"["):
            found.append((words[1], words[-1][1:-1]))
    return found


# ---- the others -------------------------------------------------------------------------------


NGINX = """
daemon off; master_process off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error.log;
events { worker_connections 64; }
http {
    access_log off; client_max_body_size 0; merge_slashes off; default_type text/plain; proxy_http_version 1.1;
    client_body_temp_path %(dir)s/a; proxy_temp_path %(dir)s/b; fastcgi_temp_path %(dir)s/c;
    uwsgi_temp_path %(dir)s/d; scgi_temp_path %(dir)s/e;
    server {
        listen 127.0.0.1:%(port)d;
        proxy_ignore_client_abort on;
        location / { proxy_pass http://127.0.0.1:%(backend)d; }
    }
}
"""


def nginx_program():
    """Installed, or unpacked by `./dev test`."""
    there = shutil.which("nginx") or os.path.join(TOP, "build/nginx/usr/sbin/nginx")
    assert os.access(there, os.X_OK), "no nginx: install Debian's, or run `./dev test`, which fetches it"
    return there


class Backend(threading.Thread):
    """Behind nginx: answers a request, which nginx wrote, with what it says; or any request with the bytes set before."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.response = None

    def run(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with conn, contextlib.suppress(OSError):
                conn.settimeout(SECONDS)
                conn.sendall(self.answer(conn))

    def answer(self, conn):
        got = b""
        while b"\r\n\r\n" not in got and (piece := conn.recv(65536)):
            got += piece
        head, _, body = got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        while length and len(body) < int(length[1]) and (piece := conn.recv(65536)):
            body += piece
        if self.response is not None:
            return self.response
        method, target = head.split(b" ")[:2]
        text = json.dumps({"method": method.decode("latin-1"), "target": target.decode("latin-1"), "body": body.decode("latin-1")})
        text = b"@@" + base64.b64encode(text.encode()) + b"@@"
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text


class Peers:
    """nginx and node."""

    def __init__(self, where, stack):
        self.backend = Backend()
        self.backend.start()
        stack.callback(self.backend.listener.close)
        node = subprocess.Popen(["node", os.path.join(HERE, "peer.js")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(node.wait, SECONDS)
        stack.callback(node.stdin.close)
        started = json.loads(node.stdout.readline())
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (where / "conf").write_text(NGINX % {"dir": where, "port": port, "backend": self.backend.port})
        nginx = subprocess.Popen([nginx_program(), "-p", str(where), "-e", str(where / "error.log"), "-c", str(where / "conf")])
        stack.callback(nginx.wait, SECONDS)
        stack.callback(nginx.terminate)
        eventually(lambda: is_open(port))
        version = subprocess.run([nginx_program(), "-v"], capture_output=True, text=True, check=True).stderr.split("/")[-1].strip()
        self.ports = {"nginx": port, "node": started["port"]}
        self.versions = {"nginx": version, "node": started["version"]}

    def read(self, name, kind, data):
        """The messages that a peer read, and whether it refused or closed after them."""
        if kind == "request":
            self.backend.response = None
            return self.read_requests(name, data)
        self.backend.response = data
        method = "HEAD" if kind == "head" else "GET"
        path = f"/fetch/{method}/{self.backend.port}" if name == "node" else "/"
        asked = f"{'GET' if name == 'node' else method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        back = exchange(self.ports[name], asked.encode())
        got = read_of_node(back) if name == "node" else read_of_nginx(back, method)
        return ([], True) if got is None or got[0] == b"502" else ([got], False)

    def read_requests(self, name, data):
        back = exchange(self.ports[name], data)
        found = [json.loads(base64.b64decode(part)) for part in re.findall(rb"@@([\w+/=]*)@@", back)]
        ended = not back or re.search(rb"(?i)HTTP/1\.[01] [45]\d\d |\r\nconnection: close", back) is not None
        messages = [[m[key].encode("latin-1") for key in ("method", "target", "body")] for m in found]
        return [(method, re.sub(rb"^http://[^/]*", b"", target), body) for method, target, body in messages], ended


def is_open(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=SECONDS):
        return True
    return False


def exchange(port, sent):
    """All that comes back until the peer closes."""
    back = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as conn:
        with contextlib.suppress(ConnectionError):
            conn.sendall(sent)
            conn.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := conn.recv(65536):
                back += piece
    return back


def read_of_node(back):
    got = json.loads(base64.b64decode(re.search(rb"@@(.*)@@", back)[1]))
    return None if "error" in got else (str(got["status"]).encode(), got["body"].encode("latin-1"))


def read_of_nginx(back, method):
    """Status and body of what nginx sent, which is well-formed; None if it is incomplete."""
    head, _, rest = back.partition(b"\r\n\r\n")
    line = re.match(rb"HTTP/1\.1 (\d+)", head)
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if back and not line:
        return b"0.9", back
    if not line or method == "HEAD" or line[1] in (b"204", b"304"):
        return (line[1], b"") if line else None
    if re.search(rb"(?i)\r\ntransfer-encoding: chunked", head):
        body = b""
        while (size := int(rest.partition(b"\r\n")[0] or b"-1", 16)) > 0:
            rest = rest.partition(b"\r\n")[2]
            body, rest = body + rest[:size], rest[size + 2:]
        return None if size else (line[1], body)
    return (line[1], rest) if not length or int(length[1]) == len(rest) else None


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield Peers(tmp_path_factory.mktemp("nginx"), stack)


# ---- the comparison ---------------------------------------------------------------------------


def compare(mine, refused, theirs, ended):
    """same, stricter or laxer than src/http1; or differs: a message would end at different bytes."""
    if mine[:len(theirs)] != theirs[:len(mine)]:
        return "differs"
    if len(theirs) > len(mine):
        return "laxer" if refused else "differs"
    if len(theirs) < len(mine):
        return "stricter" if ended else "differs"
    return "same"


@pytest.fixture(scope="module")
def verdicts(peers):
    found = {}
    for v in VECTORS:
        refused = any(line.startswith("error") for line in v["verdict"])
        found[v["name"]] = {name: compare(accepted(v), refused, *peers.read(name, v["kind"], v["bytes"].encode("latin-1")))
                            for name in NAMES}
    return found


def test_what_we_accept_ends_at_the_same_byte_for_others(verdicts):
    wrong = [(v["name"], name) for v in VECTORS for name in NAMES
             if verdicts[v["name"]][name] == "differs" and name not in v.get("differs", {})]
    assert not wrong


def test_what_a_proxy_sends_on_is_read_as_it_was_meant(ours, peers):
    for v in VECTORS:
        mine, sent = accepted(v), ours[v["name"]][1]
        for name in NAMES if mine else ():
            theirs, ended = peers.read(name, v["kind"], sent)
            assert compare(mine, False, theirs, ended) in ("same", "stricter"), (v["name"], name, sent, theirs)


def test_others_are_laxer_where_the_record_says_so(peers, verdicts):
    if os.environ.get("LODGE_RECORD"):
        rows = [{"versions": peers.versions}, *({name: row} for name, row in verdicts.items() if set(row.values()) != {"same"})]
        with open(PEERS, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(json.dumps(row)[1:-1] for row in rows) + "\n}\n")
    with open(PEERS, encoding="utf-8") as f:
        recorded = json.load(f)
    # what other versions accept is not recorded
    names = [name for name in NAMES if recorded["versions"][name] == peers.versions[name]]
    wrong = [(vector, name, row[name]) for vector, row in verdicts.items() for name in names
             if row[name] != recorded.get(vector, {}).get(name, "same")]
    assert not wrong
