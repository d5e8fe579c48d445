# SPDX-License-Identifier: Apache-2.0
"""A proxy between lodge and lodged that records requests and can delay them."""
import contextlib
import socket
import socketserver
import threading


class Relay:
    """`before(line)` is called with the first line of each request and may block; `asked` has all received bytes."""

    def __init__(self, lodged, before):
        self.asked = asked = bytearray()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                head = self.request.recv(65536)
                asked.extend(head)
                before(head.split(b"\r\n")[0].decode())
                with contextlib.suppress(OSError), socket.create_connection((lodged.host, lodged.port)) as there:
                    there.sendall(head)
                    pump = threading.Thread(target=copy_stream, args=(self.request, there, asked), daemon=True)
                    pump.start()
                    copy_stream(there, self.request)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.socket.close()


def copy_stream(here, there, seen=None):
    with contextlib.suppress(OSError):
        while data := here.recv(65536):
            if seen is not None:
                seen.extend(data)
            there.sendall(data)
        there.shutdown(socket.SHUT_WR)
