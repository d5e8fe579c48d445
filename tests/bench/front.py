# SPDX-License-Identifier: Apache-2.0
"""The part `front` of ./dev bench: lodged's HTTP server beside nginx and, with --beside, another build of lodged.

Clients are the same for all: wrk for small requests, curl for large files, Python for idle connections and terminals."""
import contextlib
import os
import pty
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests/lib"), os.path.join(TOP, "sdk/python")]

from client import BUILD, KEY, Lodged, TlsClient, certificate, children, wait_for  # noqa: E402
from lodge.client import Client as Sdk  # noqa: E402

NGINX = "/usr/sbin/nginx"
CONNECTIONS = (1, 8, 64, 512)
SPARE = 100  # connections of lodged's maximum that no idle one may have
GIGABYTE, OUTPUT = 1 << 30, 64 << 20
LIMITS = {"disk_bytes": 4 << 30, "file_bytes": 2 << 30}
CALL = "raw_syscalls:sys_enter"
REPORT = """done = function(all, latency)
  local e = all.errors
  io.write(string.format("wrk: %d %d %f %f %d\\n", all.requests, all.duration, latency:percentile(50), latency:percentile(99),
                         e.connect + e.read + e.write + e.timeout + e.status))
end
"""
CONF = """daemon off; {user} worker_processes auto; pid {dir}/pid; error_log {dir}/log;
events {{ worker_connections 16384; }}
http {{
  access_log {dir}/access; sendfile on; default_type application/json; keepalive_timeout 600; keepalive_requests 1000000000;
  client_body_temp_path {dir}/t; proxy_temp_path {dir}/t; fastcgi_temp_path {dir}/t; uwsgi_temp_path {dir}/t;
  scgi_temp_path {dir}/t; root {served};
  server {{ listen 127.0.0.1:{port} backlog=4096; }}
  server {{ listen 127.0.0.1:{tls_port} ssl; ssl_certificate {cert}; ssl_certificate_key {key}; }}
}}
"""


# ---- contenders -----------------------------------------------------------------------------------

class Lodge(Lodged):
    """A lodged with one session."""

    def __init__(self, name, build, bench, tls):
        self.name, self.tls = name, tls
        more = {"tls_cert": bench.cert, "tls_key": bench.key} if tls else {}
        super().__init__(os.path.join(build, "lodged"), bench.work, rate=0, concurrent=0, max_connections=12000, connection_idle="600s", **more)
        self.session = self.client().enter(key="front", limits=LIMITS)
        self.url, self.small = self.http_url, f"/v1/sessions/{self.session}"
        self.big = f"{self.small}/files/big"

    def client(self, key=KEY):
        return TlsClient("localhost", self.port, key, self.settings["tls_cert"]) if self.tls else super().client(key)

    def pids(self):
        return [self.process.pid]


class Nginx:
    """Serves bench.work/served."""
    name, small, big = "nginx", "/small", "/big"

    def __init__(self, bench, tls):
        port, tls_port = free_ports(2)
        self.port, self.url = (tls_port, f"https://127.0.0.1:{tls_port}") if tls else (port, f"http://127.0.0.1:{port}")
        place = tempfile.mkdtemp(prefix="nginx", dir=bench.work)
        with open(f"{place}/conf", "w", encoding="utf-8") as f:
            f.write(CONF.format(dir=place, port=port, tls_port=tls_port, cert=bench.cert, key=bench.key,
                                served=bench.served, user="" if os.geteuid() else "user root;"))
        self.process = subprocess.Popen([NGINX, "-c", f"{place}/conf", "-e", f"{place}/log", "-p", place])
        assert wait_for(self.is_up, 30), "nginx did not start"

    def is_up(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def pids(self):
        return [self.process.pid, *children(self.process.pid, "nginx")]

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def nginx_version():
    if not os.access(NGINX, os.X_OK):
        return "nginx is missing"
    said = subprocess.run([NGINX, "-v"], stderr=subprocess.PIPE, text=True, check=True).stderr
    return said.partition(": ")[2].strip().replace("version: ", "") + " with a worker per processor"


def free_ports(n):
    """Ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def rotated(contenders, turn):
    """Each is the first in some round."""
    all_of = list(contenders)
    return all_of[turn % len(all_of):] + all_of[:turn % len(all_of)]


class Bench:
    """`put` takes the lines that lodge-bench prints too: see bench.h."""

    def __init__(self, put, work, quick, seconds, beside):
        self.put, self.work, self.quick, self.seconds = put, work, quick, seconds
        self.builds = {"lodge": BUILD, **({"beside": beside} if beside else {})}
        self.rounds = 1 if quick else 3
        self.cert, self.key = certificate(work, "front")
        self.served = os.path.join(work, "served")
        os.makedirs(self.served)

    def sample(self, what, caller, part, turn, value):
        self.put(f"sample {what}/{caller}/{part} {turn} {value:.3f}")

    def start(self, stack, tls=False, nginx=True):
        """New processes of all contenders: what an earlier measurement allocated is in none of them."""
        found = []
        for name, build in self.builds.items():
            found.append(stack.enter_context(contextlib.closing(Lodge(name, build, self, tls))))
        if nginx and os.access(NGINX, os.X_OK):
            with open(os.path.join(self.served, "small"), "wb") as f:
                f.write(found[0].client().get(found[0].small).data)
            found.append(stack.enter_context(contextlib.closing(Nginx(self, tls))))
        return found


# ---- resources ------------------------------------------------------------------------------------

def figures(path, *names):
    with open(path, encoding="ascii", errors="replace") as f:
        found = dict(re.findall(r"^(\w+):\s+(\d+)", f.read(), re.M))
    return [int(found[n]) for n in names]


def tasks(pids):
    return [f"/proc/{pid}/task/{t}/status" for pid in pids for t in os.listdir(f"/proc/{pid}/task")]


def resident_kb(pids):
    return sum(figures(f"/proc/{pid}/smaps_rollup", "Rss")[0] for pid in pids)  # VmRSS is only roughly right


def usage(pids):
    """Processor time in seconds, and context switches of the threads there are."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:13]))
    switches = sum(sum(figures(t, "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")) for t in tasks(pids))
    return ticks / os.sysconf("SC_CLK_TCK"), switches


# ---- small requests -------------------------------------------------------------------------------

def wrk(bench, server, n, before=()):
    """Requests, microseconds, p50 and p99."""
    script = os.path.join(bench.work, "report.lua")
    with open(script, "w", encoding="ascii") as f:
        f.write(REPORT)
    done = subprocess.run([*before, "wrk", "-t1", f"-c{n}", f"-d{bench.seconds}", "-s", script, "-H", f"Authorization: Bearer {KEY}",
                           server.url + server.small], capture_output=True, text=True, check=True)
    *found, errors = map(float, re.search(r"^wrk: (.*)$", done.stdout, re.M)[1].split())
    if errors:
        bench.put(f"note {server.name}, {n} connections: {errors:.0f} requests failed")
    return found


def by_perf(bench, server, n):
    report = os.path.join(bench.work, "perf")
    requests = wrk(bench, server, n, ("perf", "stat", "-x,", "-e", CALL, "-o", report, "-p", ",".join(map(str, server.pids())), "--"))[0]
    with open(report, encoding="utf-8") as f:
        return int(re.search(rf"^(\d+),.*{CALL}", f.read(), re.M)[1]) / requests


def by_strace(bench, server, n):
    report = os.path.join(bench.work, "strace")
    of = [word for pid in server.pids() for word in ("-p", str(pid))]
    with subprocess.Popen(["strace", "-f", "-c", "-o", report, *of], stderr=subprocess.PIPE) as p:
        p.stderr.readline()  # it is attached
        threading.Thread(target=p.stderr.read, daemon=True).start()
        requests = wrk(bench, server, n)[0]
        p.send_signal(signal.SIGINT)
    with open(report, encoding="utf-8") as f:
        return int(re.search(r"^100\.00 +\S+ +\S+ +(\d+) .*total", f.read(), re.M)[1]) / requests


def call_counter():
    """What counts system calls here, and its name; None: nothing does."""
    if shutil.which("perf") and subprocess.run(["perf", "stat", "-e", CALL, "true"], capture_output=True, check=False).returncode == 0:
        return by_perf, "perf stat"
    return (by_strace, "strace -f -c") if shutil.which("strace") else (None, "")


def small_requests(bench, all_of):
    count, name = call_counter()
    bench.put(f"note system calls were counted by {name}, in runs of their own" if count else "note system calls: not measured")
    for turn in range(bench.rounds):
        for n in CONNECTIONS:
            for server in rotated(all_of, turn):
                before = usage(server.pids())
                requests, us, p50, p99 = wrk(bench, server, n)
                cpu, switches = (b - a for a, b in zip(before, usage(server.pids())))
                for part, v in (("per_s", requests * 1e6 / us), ("p50", p50), ("p99", p99), ("cpu_us", cpu * 1e6 / requests),
                                ("switches", switches / requests)):
                    bench.sample(f"front_get_{n}", server.name, part, turn, v)
                if count:
                    bench.sample(f"front_get_{n}", server.name, "calls", turn, count(bench, server, n))


# ---- connections that are open --------------------------------------------------------------------

def opened(server, path, accept):
    """A connection after one request; of a stream only the head of the answer was read."""
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nAccept: {accept}\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        data += must_come(s)
    assert data.startswith(b"HTTP/1.1 200"), data
    length = re.search(rb"content-length: *(\d+)", data, re.I)
    while length and len(data.partition(b"\r\n\r\n")[2]) < int(length[1]):
        data += must_come(s)
    return s


def must_come(s):
    data = s.recv(65536)
    assert data, "the connection was closed"
    return data


def is_open(s):
    with contextlib.suppress(BlockingIOError):
        return s.recv(65536, socket.MSG_DONTWAIT) != b""
    return True


def open_many(bench, what, n, all_of, path_of, accept):
    for server in all_of:
        for _ in range(20):  # what the first requests allocate is no connection's
            opened(server, path_of(server), accept).close()
        time.sleep(1)
        before = resident_kb(server.pids())
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(opened(server, path_of(server), accept)) for _ in range(n)]
            time.sleep(1)
            kb, threads = resident_kb(server.pids()) - before, len(tasks(server.pids()))
            gone = sum(not is_open(s) for s in sockets)
        if gone:
            bench.put(f"note {server.name}: {gone} of {n} connections ({what}) were closed")
        yield server.name, kb / n, threads


def connections(bench):
    idle, streams = (1000, 100) if bench.quick else (10000, 1000)
    idle = min(idle, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - SPARE)  # lodged uses half of the descriptors for connections
    for turn in range(bench.rounds):
        with contextlib.ExitStack() as stack:
            for name, kb, _ in open_many(bench, "idle", idle, bench.start(stack), lambda server: server.small, "*/*"):
                bench.sample("front_idle", name, "kb", turn, kb)
        with contextlib.ExitStack() as stack:
            all_of = bench.start(stack, nginx=False)
            for name, kb, threads in open_many(bench, "streams", streams, all_of, lambda _: "/v1/events", "text/event-stream"):
                bench.sample("front_streams", name, "kb", turn, kb)
                bench.sample("front_streams", name, "threads", turn, threads)
    bench.put(f"value front_idle/count {idle}")
    bench.put(f"value front_streams/count {streams}")


# ---- large files ----------------------------------------------------------------------------------

def curl(bench, url, *how):
    """Microseconds."""
    done = subprocess.run(["curl", "-sS", "--fail", "--cacert", bench.cert, "-H", f"Authorization: Bearer {KEY}", "-o", "/dev/null",
                           "-w", "%{time_total} %{size_download} %{size_upload}", *how, url], stdout=subprocess.PIPE, text=True, check=True)
    seconds, *sizes = map(float, done.stdout.split())
    assert GIGABYTE in sizes, done.stdout
    return seconds * 1e6


def copy(bench, file, turn):
    began = time.monotonic()
    for name, command in (("cp", ["cp", "--reflink=never", file, f"{file}.copy"]), ("cp-sync", ["sync", f"{file}.copy"])):
        subprocess.run(command, check=True)  # a reflink would be no copy
        took = (time.monotonic() - began) * 1e6
        bench.sample("upload", name, "us", turn, took)
        bench.sample("upload_tls", name, "us", turn, took)
    os.unlink(f"{file}.copy")


def large_files(bench, plain, secret):
    file = os.path.join(bench.served, "big")
    subprocess.run(["dd", "if=/dev/urandom", f"of={file}", "bs=1M", f"count={GIGABYTE >> 20}", "status=none"], check=True)
    for turn in range(bench.rounds):
        os.sync()
        copy(bench, file, turn)
        for suffix, all_of in (("", plain), ("_tls", secret)):
            for server in rotated(all_of, turn):
                if server.name != "nginx":
                    os.sync()
                    bench.sample("upload" + suffix, server.name, "us", turn, curl(bench, server.url + server.big, "-T", file))
            for server in rotated(all_of, turn):
                bench.sample("download" + suffix, server.name, "us", turn, curl(bench, server.url + server.big))
    os.unlink(file)


# ---- terminals ------------------------------------------------------------------------------------

class BarePty:
    """The same without lodge: the least that a terminal costs."""

    def __init__(self, command):
        self.fd, inner = pty.openpty()
        self.process = subprocess.Popen(["/bin/bash", "-c", command], stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
        os.close(inner)

    def write(self, data):
        os.write(self.fd, data)

    def read(self):
        with contextlib.suppress(OSError):  # EIO: its end
            return os.read(self.fd, 65536)
        return b""

    def close(self):
        os.close(self.fd)
        self.process.kill()
        self.process.wait()


def type_bytes(bench, name, turn, terminal):
    """Each byte goes to a program in the sandbox and back before the next is typed."""
    n, took = 200 if bench.quick else 1000, []
    with contextlib.closing(terminal("stty raw -echo; printf READY; exec cat")) as t:
        said = b""
        while b"READY" not in said:
            said += t.read()
        for _ in range(n):
            began = time.monotonic()
            t.write(b"x")
            assert t.read() == b"x"
            took.append((time.monotonic() - began) * 1e6)
    took.sort()
    bench.sample("front_type", name, "p50", turn, took[n // 2])
    bench.sample("front_type", name, "p99", turn, took[n * 99 // 100])


def print_much(bench, name, turn, terminal):
    began, got = time.monotonic(), 0
    with contextlib.closing(terminal(f"head -c {OUTPUT} /dev/zero")) as t:
        while piece := t.read():
            got += len(piece)
    assert got == OUTPUT, f"{name}: {got} bytes of output came"
    bench.sample("front_print", name, "us", turn, (time.monotonic() - began) * 1e6)


def terminals(bench, lodges):
    of = {"pty": BarePty}
    for server in lodges:
        sdk = Sdk(server.url.replace("127.0.0.1", "localhost"), KEY, tls=ssl.create_default_context(cafile=bench.cert))
        session = sdk.session(server.session)
        of[server.name] = lambda command, session=session: session.tty(command=command)
    for turn in range(bench.rounds):
        for name, terminal in rotated(of.items(), turn):
            type_bytes(bench, name, turn, terminal)
            print_much(bench, name, turn, terminal)


# ---- all of it ------------------------------------------------------------------------------------

def run(put, work, quick, beside):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    bench = Bench(put, work, quick, 1 if quick else 3, beside)
    put(f"note front: interleaved rounds: {bench.rounds}; clients (wrk with one thread for {bench.seconds} s, curl, Python) on the same "
        f"processors; {nginx_version()}")
    say = lambda what: print(f"front: {what}", file=sys.stderr)
    try:
        say("idle connections and streams")
        connections(bench)
        with contextlib.ExitStack() as stack:
            plain, secret = bench.start(stack), bench.start(stack, tls=True)
            say("small requests")
            small_requests(bench, plain)
            say("large files")
            large_files(bench, plain, secret)
            say("terminals")
            terminals(bench, [server for server in secret if server.name != "nginx"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
