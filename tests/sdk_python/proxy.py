# SPDX-License-Identifier: Apache-2.0
"""A proxy between a client and lodged that cuts connections."""
import contextlib
import os
import socket
import threading


class Proxy:
    """Cuts each connection after `limit` bytes of responses; 0 means never."""

    def __init__(self, home, target, limit):
        self.path, self._target, self.limit = os.path.join(home, "proxy.sock"), target, limit
        self.cut = self.connections = 0
        self._live = []
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self.url = "unix:" + self.path
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                self.connections += 1
                theirs = socket.socket(socket.AF_UNIX)
                try:
                    theirs.connect(self._target)
                except OSError:
                    ours.close()
                    continue
                self._live += [ours, theirs]
                threading.Thread(target=self._pump, args=(ours, theirs, 0), daemon=True).start()
                threading.Thread(target=self._pump, args=(theirs, ours, self.limit), daemon=True).start()

    def _pump(self, source, sink, limit):
        left = limit
        with contextlib.suppress(OSError):
            while True:
                piece = source.recv(65536)
                if not piece:
                    break
                if limit and len(piece) >= left:
                    sink.sendall(piece[:left])
                    self.cut += 1
                    break
                sink.sendall(piece)
                left -= len(piece)
        self._end(source, sink)

    def _end(self, *sockets):
        for s in sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def drop(self):
        """Cut all current connections."""
        self._end(*self._live)

    def close(self):
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
