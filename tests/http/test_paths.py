# SPDX-License-Identifier: Apache-2.0
"""Paths that try to escape, and special files, through every route that takes a path.

What is reached is only what the guest's user reaches by itself, inside. The answer is a 4xx that
names the path: never a 500, never silence."""
import concurrent.futures
import contextlib
import http.client
import os
import socket
import threading
import urllib.parse

import pytest

from client import wait_for
from files import run
from machine import memory_of

SLOW = bool(os.environ.get("LODGE_SLOW"))
RACES = 500 if SLOW else 40
SECRET = b"what only the host may read\n"


@pytest.fixture(scope="module")
def host(lodged):
    """Files of the host next to the data directory; no test may read or change them."""
    path = lodged.home + "-canary"
    os.mkdir(path, 0o755)
    with open(path + "/file", "wb") as f:
        f.write(SECRET)
    os.chmod(path, 0o777)
    os.chmod(path + "/file", 0o666)

    def facts():
        return [(st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_nlink)
                for st in map(os.lstat, [path, path + "/file", "/etc/passwd", "/etc/hostname"])]

    before = facts()
    yield path
    assert facts() == before and os.listdir(path) == ["file"]
    os.unlink(path + "/file")
    os.rmdir(path)


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="paths")


def put(client, url, data=b"", **headers):
    return client.call("PUT", url, data, {k.replace("_", "-"): v for k, v in headers.items()})


@contextlib.contextmanager
def running(client, at, command):
    """Run a command in the sandbox that interferes while the test makes calls."""
    answer = client.post(at + "/exec", {"command": command, "background": True, "timeout_ms": 300000})
    assert answer.status in (200, 201, 202), answer
    e = answer.json["exec_id"]
    try:
        yield
    finally:
        client.delete(f"{at}/execs/{e}")


def names(client, url):
    answer = client.get(url)
    assert answer.status == 200, answer
    return [e["name"] for e in answer.json["entries"]]


def routes(client, at, path):
    """Every route that takes a path, with this one (already encoded), as a call."""
    q = path.replace("%2F", "/")
    file = f"{at}/files/{path}"
    return {
        "get": lambda: client.get(file),
        "part": lambda: client.get(file, headers={"Range": "bytes=0-5"}),
        "head": lambda: client.call("HEAD", file),
        "list": lambda: client.get(file + "?list"),
        "list deep": lambda: client.get(file + "?list&depth=5&glob=*a*"),
        "stat": lambda: client.post(file + "?stat"),
        "stat follow": lambda: client.post(file + "?stat&follow=1"),
        "archive": lambda: client.get(f"{at}/archive?path={q}"),
        "watch": lambda: watch(client, f"{at}/watch?path={q}&recursive=1"),
        "put": lambda: put(client, file, b"intruder"),
        "append": lambda: put(client, file + "?append=1", b"intruder"),
        "put below": lambda: put(client, file + "/x/y?mkdir=1", b"intruder"),
        "mkdir": lambda: client.post(file + "/x?mkdir"),
        "unpack": lambda: put(client, f"{at}/archive?path={q}", small_tar()),
        "rename from": lambda: client.post(file + "?rename=t/stolen"),
        "rename to": lambda: client.post(f"{at}/files/t/own?rename={q}"),
        "delete": lambda: client.delete(file),
        "delete all": lambda: client.delete(file + "?recursive=1"),
    }


def watch(client, url):
    """The response if the watch is refused, otherwise only its status."""
    connection, response = client.open("GET", url)
    with contextlib.closing(connection):
        data = b"" if response.status == 200 else response.read()
        return Seen(response.status, data)


class Seen:
    def __init__(self, status, data):
        self.status, self.data, self.headers = status, data, {}

    def __repr__(self):
        return f"{self.status} {self.data!r}"


def small_tar():
    import io
    import tarfile
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("unpacked")
        info.size = 8
        tar.addfile(info, io.BytesIO(b"intruder"))
    return out.getvalue()


# ---- names ------------------------------------------------------------------------------------

OUT = [
    "../../../../../../etc/shadow",
    "t/../../../../../etc/shadow",
    "..%2f..%2f..%2f..%2fetc%2fshadow",
    "%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/shadow",
    "/etc/shadow",
    "%2Fetc%2Fshadow",
    "//etc//shadow",
    "/proc/1/root/etc/shadow",
    "/proc/self/root/etc/shadow",
    "/proc/thread-self/root/etc/shadow",
    "/proc/1/cwd/etc/shadow",
    "/proc/self/cwd/../../etc/shadow",
    "/proc/1/fd/3",
    "/proc/self/fd/0",
    "/proc/1/mem",
    "/proc/self/mem",
    "/proc/1/environ",
    "/proc/kcore",
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/sys/kernel/uevent_helper",
    "/dev/mem",
    "/dev/vda",
    "/dev/kmsg",
]


@pytest.mark.parametrize("path", OUT)
def test_escaping_paths_are_refused(client, at, t, host, path):
    put(client, t + "/own", b"own")
    for name, call in routes(client, at, path).items():
        answer = call()
        assert 400 <= answer.status < 500, (name, answer)
    run(client, at, "test -f t/own && test ! -e t/stolen && test ! -e t/unpacked")


@pytest.mark.parametrize("path,status", [
    ("t/%252e%252e/%252e%252e/etc/passwd", 404),  # decoded once, it is an ordinary name
    ("t/x%00y", 400),
    ("%00", 400),
    ("t/%", 400),
    ("t/%zz", 400),
    ("t/" + "n" * 256, 400),
    ("t/" + "d/" * 2100 + "x", 400),
    ("t/" + "n" * 8000, 400),
])
def test_invalid_names_are_refused(client, at, t, path, status):
    for name, call in routes(client, at, path).items():
        if name in ("rename to", "rename from", "delete", "delete all", "put below"):
            continue  # other routes of the list have created it by now
        answer = call()
        if name in ("put", "append", "mkdir", "unpack"):
            assert answer.status in (status, 201, 204, 400, 404), (name, answer)
        else:
            assert answer.status == status, (name, answer)
    assert client.get(at + "/files/?list").status == 200


def test_names_may_contain_any_byte_but_nul(client, at, t):
    for name in (b"\xff\xfe", b"\x01\x7f\r\n", b"%41", b"a b+c&d=e?f#g", "\u202e\U0001f480".encode(), b"\\..\\x",
                 b"-rf", b".lodge-", b"'\"`$(x)", b"~"):
        url = t + "/" + urllib.parse.quote_from_bytes(name, safe="")
        assert put(client, url, name).status == 201
        assert client.get(url).data == name
        assert client.post(url + "?stat").status == 200
        assert client.post(url + "?rename=t/" + urllib.parse.quote_from_bytes(name + b"2", safe="")).status == 200
        assert client.get(url).status == 404
        assert client.delete(t + "/" + urllib.parse.quote_from_bytes(name + b"2", safe="")).status == 204
    assert names(client, t + "?list") == []


# ---- links ------------------------------------------------------------------------------------


def test_links_to_the_host(client, lodged, at, t, host):
    targets = [host, host + "/file", lodged.home, lodged.home + "/lodge.db", "/proc/1/root", "/proc/self/root",
               "/proc/self/cwd", "/proc/1/cwd", "/proc/1/exe", "/proc/self/fd", "/proc/self/fd/3", "/proc/1/fd/1",
               "/etc/shadow", "/root", "/run/lodge", "/dev/vda", "/dev/mem", "/var/tmp/.."]
    for target in targets:
        client.delete(t + "/link?recursive=1")
        run(client, at, f"ln -s {target} t/link; echo own >t/own")
        for name, call in routes(client, at, "t/link").items():
            answer = call()
            assert answer.status < 500, (target, name, answer)
            assert SECRET not in answer.data and b"SQLite" not in answer.data, (target, name)
            run(client, at, f"test -L t/link || ln -sfn {target} t/link; rm -rf t/stolen; echo own >t/own")
        for below in ("file", "etc/shadow", "lodge.db"):
            for name, call in routes(client, at, "t/link/" + below).items():
                answer = call()
                assert answer.status < 500 and SECRET not in answer.data, (target, below, name, answer)


def test_chains_and_loops_of_links(client, at, t):
    run(client, at, "cd t; ln -s loop loop; ln -s b a; ln -s a b; ln -s . here; echo end >l0;"
                    "for i in $(seq 1 39); do ln -s l$((i-1)) l$i; done; ln -s l39 l40; ln -s l40 l41; echo own >own")
    for path in ("t/loop", "t/a", "t/a/x", "t/loop/x", "t/l41"):
        for name, call in routes(client, at, path).items():
            answer = call()
            assert answer.status < 500, (path, name, answer)
            if name in ("get", "list", "archive", "unpack", "watch", "put below"):
                assert 400 <= answer.status < 500, (path, name, answer)
            run(client, at, "cd t; ln -sfn loop loop; ln -sfn b a; ln -sfn a b; ln -sfn l40 l41; rm -rf stolen; echo own >own")
    assert client.get(t + "/l9").data == b"end\n"
    assert client.get(t + "/" + "here/" * 30 + "l0").data == b"end\n"
    assert client.get(t + "/" + "here/" * 50 + "l0").status == 400
    run(client, at, "test $(ls t | wc -l) -gt 40")


def test_a_list_follows_only_the_link_it_is_given(client, at, t):
    run(client, at, "mkdir t/d; ln -s /etc t/d/etc; ln -s d t/link; mkfifo t/d/p")
    assert names(client, t + "/link?list&depth=9") == ["etc", "p"]


SWAP = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("t")
os.makedirs("real/d", exist_ok=True)
open("real/file", "w").write("own")
open("real/d/a", "w").write("own")
os.symlink("%s", "evil")
os.symlink("../../etc", "etc")
open("ready", "w")
while True:
    # real <-> evil <-> etc; one of them always exists
    for other in ("evil", "etc"):
        libc.renameat2(-100, b"real", -100, other.encode(), 2)
        libc.renameat2(-100, b"real", -100, other.encode(), 2)
    try:
        os.rename("real/d", "real/e"); os.symlink("/", "real/d")
        os.unlink("real/d"); os.rename("real/e", "real/d")
    except OSError:
        pass
"""


def test_swapping_a_directory_with_a_link(client, lodged, at, t, host):
    """The guest swaps in a tight loop while calls use the path."""
    put(client, t + "/swap.py", (SWAP % host).encode())
    own = client.enter(key="paths")
    with running(client, at, "python3 t/swap.py"):
        assert wait_for(lambda: client.call("HEAD", t + "/ready").status == 200)
        calls = []
        for path in ("t/real", "t/real/file", "t/real/d/a"):
            for name, call in routes(client, at, path).items():
                if name != "delete all":
                    calls += [(name, path, call)] * (RACES // 3)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for name, path, answer in pool.map(lambda c: (c[0], c[1], c[2]()), calls):
                assert answer.status < 500, (name, path, answer)
                assert SECRET not in answer.data and b"SQLite" not in answer.data, (name, path)
    assert client.enter(key="paths") == own and client.get(at + "/files/?list").status == 200


# ---- special files ----------------------------------------------------------------------------


def test_special_files_do_not_block(client, at, t):
    run(client, at, "cd t; mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; echo own >own")
    for path in ("t/fifo", "t/sock", "/dev/null", "/dev/zero", "/dev/random", "/dev/tty", "/dev/ptmx", "/dev/full",
                 "/proc/self/status", "/proc/uptime", "/proc/self/pagemap", "/proc/self/maps"):
        for name, call in routes(client, at, path).items():
            if path.startswith("t/") and name in ("rename from", "rename to", "delete", "delete all", "stat", "stat follow"):
                continue  # these work on any name
            answer = call()
            if name.startswith("stat") and not path.startswith("/proc"):
                assert answer.status == 200 and answer.json["entry"]["type"] != "directory", (path, answer)
            else:
                assert 400 <= answer.status < 500, (path, name, answer)
                assert name in ("head", "rename from") or path.split("/")[-1].encode() in answer.data, (path, name, answer)
    # with a reader and a writer the FIFO can be opened, but must still be refused
    with running(client, at, "exec 3<>t/fifo; sleep 100"):
        for name in ("get", "put", "append", "archive"):
            assert routes(client, at, "t/fifo")[name]().status == 400
    assert client.post(t + "/fifo?rename=t/fifo2").json["entry"]["type"] == "fifo"
    assert client.get(at + "/archive?path=t").status == 200
    assert client.delete(t + "/fifo2").status == 204 and client.delete(t + "/sock?recursive=1").status == 204


def test_proc_and_dev_can_be_listed(client, at):
    for path in ("/proc", "/dev", "/proc/self"):
        for query in ("?list", "?list&depth=3"):
            answer = client.get(f"{at}/files/{path}{query}")
            assert answer.status == 200, (path, answer)
        connection, response = client.open("GET", f"{at}/archive?path={path}")
        with contextlib.closing(connection):
            assert response.status in (200, 403)
    assert client.get(at + "/files//dev/shm?list").status == 200


def test_a_lease_does_not_block(client, at, t):
    """The guest can take a lease, which makes the kernel delay others that open the file."""
    put(client, t + "/x", b"leased")
    with running(client, at, "python3 -c \"import fcntl,os,signal,time; signal.signal(signal.SIGIO, signal.SIG_IGN);"
                             "f=open('t/x','r'); fcntl.fcntl(f, 1024, fcntl.F_RDLCK); open('t/ready','w'); time.sleep(300)\""):
        wait_for(lambda: client.call("HEAD", t + "/ready").status == 200, seconds=5)
        assert client.get(t + "/x").data == b"leased"
        assert put(client, t + "/x?append=1", b"!").status in (200, 503)
        assert put(client, t + "/x", b"new").status == 200
        assert client.delete(t + "/x").status == 204


# ---- large and unusual ------------------------------------------------------------------------


def test_a_sparse_file_of_a_terabyte(client, lodged, at):
    """It is streamed, and only as long as the client reads."""
    session = "/v1/sessions/" + client.enter(key="sparse", limits={"file_bytes": 2 << 40})
    run(client, session, "mkdir -p s; truncate -s 1T s/x; printf end >>s/x")
    url, size = session + "/files/s/x", (1 << 40) + 3
    before = memory_of(lodged.process.pid)
    assert client.call("HEAD", url).headers["Content-Length"] == str(size)
    assert client.get(url, headers={"Range": "bytes=-3"}).data == b"end"
    part = client.get(url, headers={"Range": f"bytes={1 << 39}-{(1 << 39) + 99}"})
    assert part.data == bytes(100) and part.headers["Content-Range"].endswith(f"/{size}")
    for path in ("/files/s/x", "/archive?path=s"):
        connection, response = client.open("GET", session + path)
        with contextlib.closing(connection):
            for _ in range(64):
                assert len(response.read(1 << 20)) == 1 << 20
            response.close()
    assert memory_of(lodged.process.pid) - before < 96 << 20
    # when the client disconnects, the process that reads for it ends
    assert wait_for(lambda: "(tar" not in run(client, session, "ps ax -o args"))
    assert client.get(session).json["session"]["state"] == "active"
    assert client.delete(session + "/files/s?recursive=1").status == 204


def test_a_directory_with_very_many_names(client, lodged, at, t):
    n = 100000 if SLOW else 15000
    run(client, at, f"cd t; seq -f n%06g 0 {n - 1} | xargs touch", timeout_ms=120000)
    before = memory_of(lodged.process.pid)
    page = client.get(t + "?list&limit=10000").json
    assert len(page["entries"]) == 10000 and page["next"] == 10000
    page = client.get(t + "?list&limit=10000&after=%d" % (n - 5000)).json
    assert [page["entries"][0]["name"], page["entries"][-1]["name"], page["next"]] == [
        f"n{n - 5000:06}", f"n{n - 1:06}", None]
    assert names(client, t + "?list&glob=*7777") == [f"n{i:06}" for i in range(7777, n, 10000)]
    assert memory_of(lodged.process.pid) - before < 96 << 20
    assert client.delete(t + "?recursive=1").status == 204


def test_pages_with_long_names_are_short(client, at, t):
    """Escapes enlarge each byte, but a page stays small and the next one continues."""
    run(client, at, "python3 - <<'E'\nimport os\nos.chdir(b't')\n"
                    "for i in range(3000): open(b'\\x01' * 200 + b'%05d' % i, 'w')\nE")
    seen, after = [], 0
    while after is not None:
        answer = client.get(f"{t}?list&limit=10000&after={after}")
        assert answer.status == 200 and len(answer.data) < 6 << 20
        seen += [e["name"][-5:] for e in answer.json["entries"]]
        after = answer.json["next"]
    assert seen == [f"{i:05}" for i in range(3000)]


DEEP = """
import os
os.chdir("t")
for i in range(%d):
    os.mkdir("%s")
    os.chdir("%s")
open("end", "w")
"""


def deep(client, at, levels, name):
    run(client, at, f"python3 - <<'E'\n{DEEP % (levels, name, name)}\nE")


def test_a_tree_of_a_thousand_levels(client, at, t):
    deep(client, at, 1000, "d")
    assert len(names(client, t + "?list&depth=64")) == 64
    with contextlib.suppress(http.client.IncompleteRead):  # the depth is discovered after the response has begun
        answer = client.get(at + "/archive?path=t")
        assert answer.status == 400 or not answer.data.endswith(bytes(1024))
    assert client.get(t + "/" + "d/" * 900 + "?list").status == 200
    assert client.get(at + "/watch?path=t/none").status == 404
    assert watch(client, at + "/watch?path=t&recursive=1").status == 200
    run(client, at, "mkdir -p t/.lodge-rm-0/x t/.lodge-rm-1")  # names that lodge uses itself
    assert client.delete(t + "?recursive=1").status == 204


def test_paths_longer_than_path_max(client, at, t):
    deep(client, at, 40, "n" * 250)
    listed = names(client, t + "?list&depth=64")
    assert len(listed) == 16 and set(listed) == {"n" * 250}
    assert client.get(at + "/archive?path=t").status == 200
    assert client.delete(t + "?recursive=1").status == 204


def test_removing_a_tree_while_the_guest_adds_to_it(client, at, t):
    with running(client, at, "while :; do mkdir -p t/d/e/f; : >t/d/x; done 2>/dev/null"):
        for _ in range(5):
            assert client.delete(t + "/d?recursive=1").status in (204, 404, 409)
    assert client.delete(t + "?recursive=1").status == 204


# ---- files that change during the call --------------------------------------------------------


def test_reading_a_growing_file(client, at, t):
    with running(client, at, "while :; do echo 0123456789 >>t/x; done"):
        assert wait_for(lambda: client.call("HEAD", t + "/x").status == 200)
        for _ in range(20):
            answer = client.get(t + "/x")
            assert answer.status == 200 and int(answer.headers["Content-Length"]) == len(answer.data)
        assert client.get(at + "/archive?path=t").status == 200


def test_reading_a_file_that_is_replaced(client, at, t):
    size = 64 << 20
    for change in ("rm t/x", "mv t/y t/x", "rm t/x; mkdir t/x"):
        client.delete(t + "?recursive=1")
        run(client, at, f"mkdir t; truncate -s {size} t/x; echo other >t/y")
        connection, response = client.open("GET", t + "/x")
        with contextlib.closing(connection):
            response.read(1000)
            run(client, at, change)
            assert len(response.read()) == size - 1000  # the opened file is read to its end


def test_archiving_a_changing_tree(client, at, t):
    import io
    import tarfile
    with running(client, at, "cd t; while :; do mkdir -p a/b; echo x >a/b/f; ln -s f a/b/l; mkfifo a/b/p; rm a/b/f;"
                             "mkdir a/b/f; rmdir a/b/f; ln -s / a/b/f; rm -rf a/b; ln -s /etc a/b; rm a/b; done 2>/dev/null"):
        for _ in range(60):
            answer = client.get(at + "/archive?path=t")
            assert answer.status == 200, answer
            with tarfile.open(fileobj=io.BytesIO(answer.data)) as tar:
                assert {m.name.split("/")[0] for m in tar} <= {"a"}
            assert client.get(t + "?list&depth=9").status == 200


def test_the_guest_stops_or_kills_file_workers(client, at, t):
    """It can, because they run as the guest's user; the call must fail soon."""
    run(client, at, "cd t; seq -f n%06g 0 3000 | xargs touch")
    for signo in ("STOP", "KILL"):
        hunter = ("import os,signal\nme=os.getpid()\nwhile True:\n for p in range(2, 400):\n"
                  f"  if p not in (me, os.getppid()):\n   try: os.kill(p, signal.SIG{signo})\n   except OSError: pass\n")
        with running(client, at, f"python3 -c '{hunter}'"):
            seen = set()

            def archive():
                try:
                    return client.call("GET", at + "/archive?path=t").status
                except http.client.IncompleteRead:  # the response had begun and is truncated
                    return 200

            for i in range(20):
                seen.add(client.get(f"{t}?list&limit=10000").status)
                seen.add(archive() if i < 5 else 200)
                seen.add(watch(client, at + "/watch?path=t").status)
            assert seen <= {200, 503}, seen
    assert client.delete(t + "?recursive=1").status == 204


def test_a_disconnect_ends_the_removal_of_a_tree(client):
    """What was not removed yet stays."""
    session = "/v1/sessions/" + client.enter(key="leaver")
    made = client.post(session + "/exec", {"argv": ["sh", "-c", "mkdir d; cd d; seq 30000 | xargs touch"], "timeout_ms": 150000})
    assert made.status == 200 and made.json["exit_code"] == 0, made

    def processes():
        return client.get(session + "/stats").json["stats"]["pids"]

    idle = processes()
    assert client.patch(session, {"limits": {"cpus": 0.01}}).status == 200
    with socket.create_connection((client.host, client.port)) as s:
        s.sendall(f"DELETE {session}/files/d?recursive=1 HTTP/1.1\r\nHost: localhost\r\n"
                  f"Authorization: Bearer {client.key}\r\n\r\n".encode())
        assert wait_for(lambda: processes() > idle)
    assert wait_for(lambda: processes() == idle)
    assert client.patch(session, {"limits": {"cpus": 0}}).status == 200
    assert client.get(session + "/files/d?list&limit=1").json["entries"]
    assert client.delete(session + "/files/d?recursive=1").status == 204
    assert client.delete(session).status == 200


# ---- writing ----------------------------------------------------------------------------------


def test_writes_to_bad_places_are_refused(client, at, t):
    put(client, t + "/file", b"x")
    run(client, at, "mkdir t/ro; chmod 555 t/ro; cp /bin/sleep t/prog; chmod 755 t/prog")
    for path, status in (("t/file/x", 400), ("t/ro/x", 403), ("/usr/x", 403), ("/proc/x", 403), ("/x/../proc/self/x", 404),
                         ("/dev/x", 403), ("t", 400), (".", 400), ("..", 400), ("/", 400), ("t/none/x", 404), ("/etc/passwd", 403)):
        for query in ("", "?append=1"):
            answer = put(client, f"{at}/files/{path}{query}", b"x")
            assert answer.status == status or 400 <= answer.status < 405, (path, answer)
            assert answer.json["error"]["message"], answer
    assert put(client, t + "/file/x?mkdir=1", b"x").status == 400
    with running(client, at, "t/prog 100"):
        assert wait_for(lambda: "t/prog" in run(client, at, "cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' '"))
        assert put(client, t + "/prog?append=1", b"x").status == 409
        assert put(client, t + "/prog", b"new").status == 200
    for mode in ("4755", "2755", "1777", "7777", "0", "-1", "8", "abc", "07777777777777777777"):
        assert put(client, f"{t}/m?mode={mode}", b"x").status == 400
        assert client.post(f"{t}/md?mkdir&mode={mode}").status == 400
    run(client, at, "cd t; echo x >suid; chmod 755 suid; chmod 4755 suid || :")
    assert put(client, t + "/suid", b"new").json["entry"]["mode"] == "0755"
    run(client, at, "test -z \"$(ls -A t | grep lodge)\"")


def test_a_full_disk_is_reported(client, at, t):
    """The error is LIMIT_DISK, and no partial file is left."""
    run(client, at, "rm -rf /dev/shm/*")
    room = int(run(client, at, "df -B1 --output=avail /dev/shm | tail -1"))
    url = at + "/files//dev/shm"
    run(client, at, f"head -c $(({room} - 65536)) /dev/zero >/dev/shm/fill")
    assert put(client, url + "/small", b"kept").status == 201
    for path in ("/small", "/new"):
        answer = put(client, url + path, bytes(1 << 20))
        assert answer.status == 507 and answer.code == "LIMIT_DISK", answer
    assert put(client, url + "/small?append=1", bytes(1 << 20)).status == 507
    import io
    import tarfile
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("big")
        info.size = 1 << 20
        tar.addfile(info, io.BytesIO(bytes(1 << 20)))
    answer = put(client, at + "/archive?path=/dev/shm/a", out.getvalue())
    assert answer.status == 507 and answer.code == "LIMIT_DISK" and "big" in answer.json["error"]["message"], answer
    assert set(names(client, url + "?list")) == {"a", "fill", "small"}
    assert client.get(url + "/small").data.startswith(b"kept")
    run(client, at, "rm -rf /dev/shm/*")


def test_the_disk_limit_of_the_session_is_reported(client):
    at = "/v1/sessions/" + client.enter(key="small disk", limits={"disk_bytes": 64 << 20})
    assert put(client, at + "/files/x", b"kept").status == 201
    run(client, at, "head -c 56M /dev/zero >fill; sync fill")
    answer = put(client, at + "/files/x", bytes(14 << 20))
    if answer.status == 200:
        assert client.delete(at).status == 200
        pytest.skip("the store of this machine has no limits")
    assert answer.status == 507 and answer.code == "LIMIT_DISK", answer
    assert client.get(at + "/files/x").data == b"kept"
    run(client, at, "test -z \"$(ls -A | grep lodge-)\"")
    assert client.delete(at).status == 200


def test_renames_that_are_refused(client, at, t):
    run(client, at, "cd t; mkdir -p a/b full/x empty; echo 1 >f; echo 2 >g; ln f h")

    def move(a, b, query=""):
        return client.post(f"{t}/{a}?rename={b}{query}").status

    assert move("f", "t/f") == 200 and move("f", "t/h") == 200  # onto itself
    assert move("a", "t/a/b/c") == 400 and move("a", "t/a") == 200
    assert move("a", "t/full") == 409 and move("a", "t/f") == 400 and move("f", "t/a") == 400
    assert move("f", "t/a/b/f") == 200 and move("a/b/f", "t/f") == 200
    assert move("f", "t/none/f") == 404 and move("none", "t/x") == 404
    assert move("f", "/dev/shm/f") == 400 and move("f", "/usr/f") in (400, 403)
    assert move("f", "t/g", "&replace=0") == 409
    assert move("a/..", "t/z") == 400 and move("f", "..") == 400 and move("f", "/") == 400
    assert move("a", "t/empty") == 200
    run(client, at, "test $(cat t/g) = 2; rm -f /dev/shm/f")


def open_put(client, url, announced, sent):
    s = socket.create_connection((client.host, client.port))
    s.sendall(f"PUT {url} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n"
              f"Authorization: Bearer {client.key}\r\n\r\n".encode() + sent)
    return s


def test_aborted_uploads_leave_nothing(client, at, t):
    put(client, t + "/x", b"whole")
    socks = [open_put(client, t + "/x", 1 << 20, b"half" * 1000) for _ in range(6)]
    assert wait_for(lambda: len(names(client, t + "?list")) == 7)
    for s in socks:
        s.close()
    assert wait_for(lambda: names(client, t + "?list") == ["x"])
    assert client.get(t + "/x").data == b"whole"


def test_concurrent_writes_of_one_path(client, t):
    """One of the two wins completely."""
    bodies = [bytes([i]) * 300000 for i in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            answers = list(pool.map(lambda b: put(client, t + "/x", b), bodies))
            assert all(a.status in (200, 201) for a in answers), answers
            assert client.get(t + "/x").data in bodies
    assert names(client, t + "?list") == ["x"]


@pytest.mark.parametrize("query", ["", "?append=1"])
def test_of_twenty_conditional_writes_one_succeeds(client, t, query):
    for start in (b"old", None):
        client.delete(t + "/x")
        if start:
            condition = {"If_Match": put(client, t + "/x", start).headers["ETag"]}
        else:
            condition = {"If_None_Match": "*"}
        gate = threading.Barrier(20)

        def one(i):
            gate.wait()
            return i, put(client, t + "/x" + query, b"%02d" % i, **condition)

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(one, range(20)))
        won = [(i, a) for i, a in answers if a.status in (200, 201)]
        assert len(won) == 1 and all(a.status == 412 for _, a in answers if a is not won[0][1]), answers
        kept = start if start and query else b""
        got = client.get(t + "/x")
        assert got.data == kept + b"%02d" % won[0][0] and got.headers["ETag"] == won[0][1].headers["ETag"]
    assert names(client, t + "?list") == ["x"]


def test_of_twenty_conditional_removals_one_succeeds(client, t):
    tag = put(client, t + "/x", b"old").headers["ETag"]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: client.delete(t + "/x", headers={"If-Match": tag}).status, range(20)))
    assert sorted(answers) == [204] + [412] * 19


# ---- ranges and ETags -------------------------------------------------------------------------


@pytest.mark.parametrize("text,status,data", [
    ("bytes=0-0", 206, b"0"), ("bytes=9-9", 206, b"9"), ("Bytes=1-2", 206, b"12"),
    ("bytes=0-18446744073709551615", 206, b"0123456789"),
    ("bytes=-18446744073709551616", 206, b"0123456789"),
    ("bytes=18446744073709551616-", 416, None),
    ("bytes=0-99999999999999999999999999999", 206, b"0123456789"),
    ("bytes=--3", 200, None), ("bytes=2--3", 200, None), ("bytes=1-2-3", 200, None), ("bytes=+1-2", 200, None),
    ("bytes= 1-2", 200, None), ("bytes=0x1-2", 200, None), ("bytes", 200, None), ("bytes=", 200, None),
    ("bytes=" + "0-0," * 2000 + "1-1", 200, None), ("bytes=" + "9" * 4000 + "-", 416, None),
])
def test_unusual_ranges(client, t, text, status, data):
    put(client, t + "/x", b"0123456789")
    for method in ("GET", "HEAD"):
        answer = client.call(method, t + "/x", headers={"Range": text})
        assert answer.status == status
        if method == "GET":
            assert answer.data == data if data else status == 416 or answer.data == b"0123456789"


def test_if_range(client, t):
    tag = put(client, t + "/x", b"0123456789").headers["ETag"]
    for condition, status in ((tag, 206), ('"other"', 200), ("W/" + tag, 200), ("Thu, 01 Jan 1970 00:00:00 GMT", 200), ("", 200)):
        answer = client.get(t + "/x", headers={"Range": "bytes=0-1", "If-Range": condition})
        assert answer.status == status, (condition, answer)


def test_an_etag_changes_with_the_content(client, at, t):
    tag = put(client, t + "/x", b"one").headers["ETag"]
    for _ in range(3):
        assert client.get(t + "/x").headers["ETag"] == tag == client.call("HEAD", t + "/x").headers["ETag"]
        assert client.post(t + "/x?stat").headers["ETag"] == tag
    run(client, at, "cat t/x; ls t")
    assert client.get(t + "/x").headers["ETag"] == tag
    # same length, and the modification time restored
    run(client, at, "cd t; touch -r x ref; printf two >x; touch -r ref x")
    new = client.get(t + "/x")
    assert new.data == b"two" and new.headers["ETag"] != tag
    assert put(client, t + "/x", b"own", If_Match=tag).status == 412


def test_malformed_etag_lists(client, t):
    put(client, t + "/x", b"one")
    for text in ("", ",", '"', "*" * 100, '"a' + "," * 5000, "W/*", "W/" * 100):
        try:
            assert put(client, t + "/x", b"two", If_Match=text).status in (200, 400, 412, 431), text
        except http.client.HTTPException:
            pytest.fail(text)
