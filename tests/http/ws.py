# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client on a plain socket, and a terminal over it."""
import base64
import hashlib
import json
import os
import select
import socket
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SECONDS = 120


class Refused(Exception):
    """The response was not 101."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body[:300]!r}")
        self.status, self.headers, self.body = status, headers, body

    @property
    def code(self):
        return json.loads(self.body)["error"]["code"]


def frame(opcode, payload=b"", fin=True, mask=True, rsv=0, key=None):
    """The bytes of one frame, as a client sends it."""
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if len(payload) < 126:
        head += bytes([bit | len(payload)])
    elif len(payload) < 1 << 16:
        head += struct.pack(">BH", bit | 126, len(payload))
    else:
        head += struct.pack(">BQ", bit | 127, len(payload))
    if not mask:
        return head + payload
    key = key or os.urandom(4)
    long = key * (len(payload) // 4 + 1)
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(long[:len(payload)], "big")
    return head + key + masked.to_bytes(len(payload), "big")


class WebSocket:
    def __init__(self, host, port, path, headers=None, early=b"", small=False, wrap=None):
        """headers: override the default ones, None omits one. early: bytes sent together with the request. small: use
        a receive buffer of a few kB. wrap: function that makes a TLS socket of a socket."""
        self.rest, self.closed, self.pongs = b"", None, 0
        self.sock = socket.socket()
        self.sock.settimeout(SECONDS)
        if small:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.connect((host, port))
        if wrap:
            self.sock = wrap(self.sock)
        key = base64.b64encode(os.urandom(16))
        all_headers = {"Host": f"{host}:{port}", "Connection": "Upgrade", "Upgrade": "websocket",
                       "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key.decode(), **(headers or {})}
        request = f"GET {path} HTTP/1.1\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in all_headers.items() if v is not None) + "\r\n"
        self.sock.sendall(request.encode() + early)
        try:
            self.shake(base64.b64encode(hashlib.sha1(key + GUID).digest()).decode())
        except BaseException:
            self.sock.close()
            raise

    def shake(self, proof):
        while b"\r\n\r\n" not in self.rest:
            self.fill()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        self.headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        if status != 101:
            while len(self.rest) < int(self.headers.get("content-length", 0)):
                self.fill()
            raise Refused(status, self.headers, self.rest)
        assert self.headers["upgrade"].lower() == "websocket", self.headers
        assert self.headers["connection"].lower() == "upgrade", self.headers
        assert self.headers["sec-websocket-accept"] == proof, self.headers

    def fill(self):
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError("the connection ended")
        self.rest += data

    def take(self, n):
        while len(self.rest) < n:
            self.fill()
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    def ready(self, seconds):
        """Whether something can be read within this time."""
        if self.rest or getattr(self.sock, "pending", int)():
            return True
        return bool(select.select([self.sock], [], [], max(seconds, 0))[0])

    def read_frame(self):
        first, second = self.take(2)
        n = second & 0x7f
        assert first & 0xf0 == 0x80 and not second & 0x80, "the server must send unfragmented frames without masks"
        if n == 126:
            n, = struct.unpack(">H", self.take(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.take(8))
        return first & 0xf, self.take(n)

    def read(self):
        """The next frame; pings are answered."""
        opcode, data = self.read_frame()
        if opcode == PING:
            self.send(PONG, data)
        elif opcode == PONG:
            self.pongs += 1
        elif opcode == CLOSE:
            self.closed = (struct.unpack(">H", data[:2])[0] if data else 1005, data[2:].decode())
        return opcode, data

    def send(self, opcode, payload=b"", **kw):
        self.sock.sendall(frame(opcode, payload, **kw))

    def end(self):
        """The code with which the server closes; earlier frames are skipped."""
        while not self.closed:
            self.read()
        return self.closed[0]

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Terminal(WebSocket):
    """`output` has the received bytes, from offset `start` on; `exit` is the result of the command."""

    def __init__(self, client, session, query="", key=True, headers=None, **kw):
        headers = dict(headers or {})
        if key and client.key:
            headers.setdefault("Authorization", f"Bearer {client.key}")
        super().__init__(client.host, client.port, f"/v1/sessions/{session}/tty?{query}", headers=headers, **kw)
        self.output, self.exit = bytearray(), None
        opcode, data = self.read()
        assert opcode == TEXT, (opcode, data)
        first = json.loads(data)
        self.exec, self.start = first["exec_id"], first["offset"]

    @property
    def offset(self):
        return self.start + len(self.output)

    def step(self):
        """Read one frame; return False if there are no more."""
        opcode, data = self.read()
        if opcode == BINARY:
            self.output += data
        elif opcode == TEXT:
            said = json.loads(data)
            assert set(said) == {"exit"}, said
            self.exit = said["exit"]
        return opcode != CLOSE

    def type(self, data):
        self.send(BINARY, data if isinstance(data, bytes) else data.encode())

    def resize(self, cols, rows):
        self.send(TEXT, json.dumps({"resize": {"cols": cols, "rows": rows}}).encode())

    def until(self, text, seconds=SECONDS):
        """Read until the output contains this text; return the output up to there."""
        text = text if isinstance(text, bytes) else text.encode()
        end = time.monotonic() + seconds
        while text not in self.output:
            if self.closed or not self.ready(end - time.monotonic()):
                raise AssertionError(f"{text!r} did not come: {self.output[-2000:]!r} {self.closed}")
            self.step()
        return self.output[:self.output.index(text) + len(text)]

    def run(self):
        """Read to the end; return the close code."""
        while not self.closed and self.step():
            pass
        return self.closed[0]
