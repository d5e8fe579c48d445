# SPDX-License-Identifier: Apache-2.0
"""Runs lodge on a new terminal."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from lodge import LODGE

SECONDS = 120


class Terminal:
    def __init__(self, *words, env, rows=24, cols=80, only_output=False):
        self.fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.seen = b""
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen([LODGE, *words], stdin=subprocess.DEVNULL if only_output else slave,
                                        stdout=slave, stderr=slave, env=env, start_new_session=True)

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if ready:
            self.seen += os.read(self.fd, 65536)
        return bool(ready)

    def wait(self, text):
        """Read until the output contains this text."""
        end = time.monotonic() + SECONDS
        while text.encode() not in self.seen:
            assert time.monotonic() < end, f"{text!r} is not in {self.seen!r}"
            self.read(0.2)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Return the exit status; `seen` has the whole output."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.seen!r}"
            self.read(0.1)
        while self.read(0):
            pass
        self.after = termios.tcgetattr(self.slave)
        os.close(self.slave)
        os.close(self.fd)
        return self.process.returncode
