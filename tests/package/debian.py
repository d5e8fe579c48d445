# SPDX-License-Identifier: Apache-2.0
"""A small Debian in a directory, with its own processes, mounts and network. It has no systemd: lodged is started as
its unit says."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile

from client import UnixConnection
from machine import SOURCE as TOP

SECONDS = 600
SETUP = """
set -e
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
ip link set lo up
pivot_root . .
umount -l .
echo up
exec sleep infinity
"""


def unit_values(text, key):
    """The values of one setting of a unit, in order."""
    return re.findall(rf"^{key}=(.*)$", text, re.M)


class Debian:
    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="lodge-deb-")
        os.chmod(self.root, 0o755)
        self.lodged = self.holder = None
        try:
            subprocess.run([os.path.join(TOP, "tests/package/root"), self.root], check=True)
            self.holder = subprocess.Popen(
                ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "--propagation", "private", "sh", "-c", SETUP, "sh",
                 self.root], stdout=subprocess.PIPE)
            assert self.holder.stdout.readline() == b"up\n"
            with open(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children") as f:
                self.first = f.read().split()[0]
        except BaseException:
            self.close()
            raise

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def inside(self, *command):
        return ["nsenter", "-t", self.first, "-m", "-n", "-p", *command]

    def run(self, *command, check=True):
        done = subprocess.run(self.inside(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})
        text = done.stdout.decode(errors="replace")
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{text}"
        return text

    def install(self, *debs):
        for deb in debs:
            shutil.copy(deb, self.path("/var/tmp/"))
        names = [f"/var/tmp/{os.path.basename(d)}" for d in debs]
        said = self.run("dpkg", "-i", *names)
        for name in names:
            os.unlink(self.path(name))
        return said

    # ---- lodged, as the unit says ------------------------------------------------------------------

    def start(self):
        unit = self.read("/lib/systemd/system/lodged.service")
        [command] = unit_values(unit, "ExecStart")
        env = dict(v.split("=", 1) for v in unit_values(unit, "Environment"))
        there = self.path("/var/tmp/notify")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as ready:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(there)
            ready.bind(there)
            os.chmod(there, 0o777)
            ready.settimeout(SECONDS)
            with open(self.path("/var/tmp/lodged.log"), "ab") as log:
                self.lodged = subprocess.Popen(
                    self.inside("sh", "-c", f"echo $$ >/run/lodged.pid; exec {command}"), stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log,
                    env={**env, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": "/var/tmp/notify"})
            assert ready.recv(100) == b"READY=1", self.log()

    def log(self):
        return self.read("/var/tmp/lodged.log")

    def stop(self):
        """Only the main process gets the signal, as with KillMode=process."""
        self.run("sh", "-c", "kill -TERM $(cat /run/lodged.pid)")
        assert self.lodged.wait(SECONDS) == 0, self.log()

    def call(self, method, path, body=None):
        with contextlib.closing(UnixConnection(self.path("/var/lib/lodge/lodge.sock"), SECONDS)) as c:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            kind = {} if data is body else {"Content-Type": "application/json"}
            c.request(method, path, data, {"x-api-key": self.read("/var/lib/lodge/admin.key").strip(), **kind})
            answer = c.getresponse()
            text = answer.read()
            assert answer.status < 300, (answer.status, text)
            return json.loads(text) if "json" in answer.getheader("Content-Type", "") else text

    def close(self):
        """All processes in it end with the first one."""
        groups = []
        if self.holder:
            groups = re.findall("[0-9a-f]{16}", self.run("sh", "-c", "cat /run/lodge/*/*/group 2>/dev/null", check=False))
            self.holder.kill()
            self.holder.wait()
            self.holder.stdout.close()
        if self.lodged:
            self.lodged.wait()
        for group in groups:  # empty by now
            subprocess.run(["find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", f"*/lodge-{group}*", "-exec", "rmdir", "{}", "+"],
                           stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.root, ignore_errors=True)
