# SPDX-License-Identifier: Apache-2.0
"""lodged as a service: its start, settings, log and end."""
import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess

import pytest

from client import KEY, LODGED, SOURCE, UnixConnection, wait_for
from daemon import Daemon, Home
from machine import fill, mounted, with_words


@pytest.fixture
def home():
    h = Home()
    try:
        yield h
    finally:
        h.remove()


@pytest.fixture
def daemon(home):
    """daemon(arguments) starts one, which ends with the test."""
    made = []

    def start(*args, **kw):
        made.append(Daemon(home, *args, **kw))
        return made[-1]

    yield start
    for d in made:
        d.__exit__()


def children():
    """Processes that remain; none, after a lodged without sandboxes has exited."""
    return [pid for home in Home.made for pid in with_words(home, "lodged", "lodge-keeper")]


# ---- the start --------------------------------------------------------------------------------


def test_one_line_for_each_address(home, daemon):
    sock = home + "/here.sock"
    addresses = ["127.0.0.1:0", f"unix:{sock}", "127.0.0.1:0"]
    d = daemon(listen=addresses)
    said = d.addresses(len(addresses) + 1)
    assert said[1] == f"unix:{sock}" and said[0] != said[2] and said[3] == f"unix:{home}/lodge.sock"
    with open(home + "/addresses") as f:
        assert f.read().splitlines() == [os.readlink("/proc/self/ns/net"), *said]
    for address in (said[0], said[2]):
        assert d.client(address).get("/v1/sessions").status == 200
    assert d.close() == 0
    assert not any(os.path.exists(p) for p in (sock, home + "/lodge.sock", home + "/addresses")) and not wait_for(children, 0)


def test_the_socket_of_the_data_directory_can_be_named(home, daemon):
    """However it is spelled, it is opened once. A directory with a path too long for a socket can do without."""
    d = daemon(listen=(f"unix:{home}/../{os.path.basename(home)}/lodge.sock", "127.0.0.1:0"))
    d.addresses(2)
    assert d.close() == 0
    long = os.path.join(home, "x" * 100)
    d = Daemon(long, listen=("127.0.0.1:0",))
    assert d.client().get("/v1/sessions").status == 200
    assert d.close() == 0 and "too long" in d.said


def test_default_addresses(home, daemon):
    """The socket in the data directory is always free, the port may not be."""
    d = daemon(listen=())
    first = d.process.stdout.readline().decode()
    if not first:
        assert "127.0.0.1:7070" in d.ends()[1]
        pytest.skip("port 7070 is in use")
    assert first == "lodged: listening on http://127.0.0.1:7070\n"
    assert d.addresses() == [f"unix:{home}/lodge.sock"]
    assert d.close() == 0


@pytest.mark.parametrize("abstract", (False, True))
def test_notify(home, daemon, abstract):
    name = home + "/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind("\0" + name if abstract else name)
        if not abstract:
            os.chmod(name, 0o777)  # like that of systemd
        s.settimeout(180)
        d = daemon(env={"NOTIFY_SOCKET": "@" + name if abstract else name})
        assert s.recv(100) == b"READY=1"
        assert d.client().get("/ready").status == 200
        d.send(signal.SIGTERM)
        assert s.recv(100) == b"STOPPING=1"
        assert d.ends()[0] == 0


def test_an_unusable_notify_socket_is_ignored(daemon):
    for name in ("/nowhere/at/all", "relative", "@", "/" + "x" * 200):
        d = daemon(env={"NOTIFY_SOCKET": name})
        assert d.client().get("/health").status == 200
        assert d.close() == 0


# ---- the log ----------------------------------------------------------------------------------


def lines_on_terminal(home, *args):
    """The output of a lodged on a terminal, from its start to a SIGTERM after one request."""
    main, other = os.openpty()
    with subprocess.Popen([LODGED, "--data", home, "--listen", f"unix:{home}/s", *args], stdin=subprocess.DEVNULL,
                          stdout=other, stderr=other) as process:
        os.close(other)
        text = b""
        while b"listening on" not in text:
            text += os.read(main, 65536)
        connection = UnixConnection(home + "/s")
        connection.request("GET", "/health?secret=1", headers={"X-Request-Id": "terminal"})
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(OSError):  # EIO: the other side was closed
            while piece := os.read(main, 65536):
                text += piece
    os.close(main)
    assert process.returncode == 0
    return text.decode().splitlines()


def test_log_is_text_on_a_terminal(home):
    lines = lines_on_terminal(home)
    assert all(re.match(r"\d\d:\d\d:\d\d (error|warn |info |debug) \S", line) for line in lines), lines
    messages = [line.split(maxsplit=2)[2] for line in lines]
    assert messages[:3] == [f"created admin key {home}/admin.key", f"listening on unix:{home}/s",
                            f"listening on unix:{home}/lodge.sock"]
    request, end = sorted(messages[3:])  # the request may be logged after the signal
    assert re.fullmatch(r"GET /health 200, \d+ bytes, \d+\.\d ms, from unix \(terminal\)", request), lines
    assert end == "Terminated: shutting down, waiting for open requests"


def test_log_is_json_on_a_terminal_if_requested(home):
    lines = lines_on_terminal(home, "--log-format", "json")
    assert f"lodged: listening on unix:{home}/s" in lines
    events = [json.loads(line) for line in lines if not line.startswith("lodged: ")]
    assert [e["request"] for e in events if e["msg"] == "request"] == ["terminal"]


def test_log_is_json_off_a_terminal(daemon):
    d = daemon()
    assert d.client().get("/health").status == 200
    assert d.close() == 0
    assert all(json.loads(line)["level"] for line in d.said.splitlines())


def test_log_is_text_if_requested(daemon):
    d = daemon("--log-format", "text")
    assert d.client().get("/health").status == 200
    d.says("info  GET /health 200, ")
    assert d.close() == 0


# ---- the first key ----------------------------------------------------------------------------


def test_a_first_key_is_created(home, daemon):
    path = home + "/admin.key"
    d = daemon(key=None)
    address = d.addresses()[0]
    st = os.stat(path)
    assert stat.S_IMODE(st.st_mode) == 0o600
    with open(path, encoding="ascii") as f:
        key = f.read().strip()
    assert len(key) >= 40 and d.client(address, key).get("/v1/keys").status == 200
    assert path in d.log() and key not in d.log()
    assert d.client(address, None).get("/v1/keys").status == 401
    assert d.close() == 0

    d = daemon(key=None)
    address = d.addresses()[0]
    with open(path, encoding="ascii") as f:
        assert f.read().strip() == key
    assert d.client(address, key).get("/v1/keys").status == 200
    assert path not in d.log()
    assert d.close() == 0


def test_a_given_key_is_not_stored(home, daemon):
    d = daemon()
    client = d.client()
    assert client.get("/v1/keys").status == 200
    assert not os.path.exists(home + "/admin.key")
    # it is not passed on to child processes
    for pid in children():
        if pid != d.process.pid:
            with open(f"/proc/{pid}/environ", "rb") as f:
                assert KEY.encode() not in f.read()
    assert d.close() == 0
    other = "another-key-of-some-length"
    d = daemon(key=other)
    address = d.addresses()[0]
    assert d.client(address, other).get("/v1/keys").status == 200
    assert d.client(address).get("/v1/keys").status == 401
    assert d.close() == 0
    d = daemon(key=None)  # without a key one is created
    address = d.addresses()[0]
    assert d.client(address, other).get("/v1/keys").status == 401
    with open(home + "/admin.key", encoding="ascii") as f:
        assert d.client(address, f.read().strip()).get("/v1/keys").status == 200
    assert d.close() == 0


# ---- settings ---------------------------------------------------------------------------------


def names():
    """Every setting listed in the manual."""
    with open(os.path.join(SOURCE, "man", "lodged.conf.5.scd"), encoding="utf-8") as f:
        heads = [line for line in f if line.startswith("*")]
    found = [n.replace("\\", "") for line in heads for n in re.findall(r"\*([a-z\\_]+)\*", line)]
    return [n for n in found if n != "lodged"]  # a reference to the other manual page


WRONG = {"listen": "7070", "log_level": "loud", "trusted_proxies": "10.0.0.1/8", "log_format": "xml", "socket_mode": "rw", "api_key": "short"}
NO_WRONG = ("data", "tls_cert", "tls_key", "hosts", "origins")
RIGHT = {"listen": "127.0.0.1:0", "log_level": "debug", "log_format": "json", "socket_mode": "0660", "max_head": "16k",
         "api_key": KEY, "hosts": "a.example, b.example", "origins": "https://a.example",
         "max_per_address": "100", "insecure_no_auth": "1", "require_limits": "1", "threads_workdir": "/w", "threads_network": "none",
         "threads_memory": "64M", "threads_file_size": "64M", "threads_disk": "64M", "tenant_body": "64M", "trusted_proxies": "10.0.0.0/8, ::1",
         "disk_reserve": "64M", "limits_max_memory": "64M", "limits_max_disk": "64M", "keep_execs_max": "64", "keep_records_max": "64"}
LONG = ("idle_timeout", "lifetime", "extend", "probe_timeout", "keep_", "drain", "connection_")


def right(name):
    return RIGHT.get(name) or ("3m" if name.startswith(LONG) else "64")


def refused(*args, **env):
    r = subprocess.run([LODGED, *args], env=dict(PATH=os.environ["PATH"], **env), timeout=180,
                       capture_output=True, text=True, check=False)
    assert r.stdout == "" and r.stderr.startswith("lodged: ") and r.stderr.count("\n") == 1, r
    return r.returncode, r.stderr


def test_every_setting_is_in_the_manual():
    with open(os.path.join(SOURCE, "src", "lodged", "config.c"), encoding="utf-8") as f:
        assert sorted(re.findall(r"SETTING\((\w+), \w+, \w+\),", f.read())) == sorted(names())


def test_settings_of_a_file_and_of_the_environment(home, daemon):
    simple = [n for n in names() if n not in ("data", "tls_cert", "tls_key")]
    conf = home + "/lodged.conf"
    with open(conf, "w", encoding="ascii") as f:
        f.write("# all of them\n\n" + "".join(f"{n} = {right(n)}\n" for n in simple))
    d = daemon("--config", conf, key=None, listen=(), env={"LODGE_POOL": ""})
    assert d.client().get("/v1/keys").status == 200
    assert d.close() == 0
    os.truncate(conf, 0)
    d = daemon(key=None, listen=(), env={f"LODGE_{n.upper()}": right(n) for n in simple})
    assert d.client().get("/v1/keys").status == 200
    assert d.close() == 0


@pytest.mark.parametrize("name", [n for n in names() if n not in NO_WRONG])
def test_an_invalid_value_names_its_source(home, name):
    wrong = WRONG.get(name, "-1x")
    conf = home + "/lodged.conf"
    with open(conf, "w", encoding="ascii") as f:
        f.write(f"# line one\n{name} = {wrong}\n")
    status, said = refused("--data", home, "--config", conf)
    assert status == 2 and f"{conf}:2: " in said and name in said, said
    variable = "LODGE_" + name.upper()
    status, said = refused("--data", home, **{variable: wrong})
    assert status == 2 and variable in said, said
    assert os.listdir(home) == ["lodged.conf"]


@pytest.mark.parametrize("text, word", [
    ("nonsense = 1", "nonsense"),
    ("listen", "name = value"),
    ("pool = 1\npool = 2", "pool"),
    ("listen = 127.0.0.1:port", "127.0.0.1:port"),
    ("listen = 127.0.0.1:70000", "127.0.0.1:70000"),
    ("listen = ::1:7070", "::1:7070"),
    ("listen = localhost:7070", "localhost:7070"),
    ("listen = unix:", "unix:"),
    ("listen = unix:" + "x" * 120, "unix:x"),
    ("listen = 127.0.0.1:0 , nowhere", "nowhere"),
    ("idle_timeout = 2h\nidle_timeout_max = 1h", "idle_timeout"),
    ("lifetime = 2h\nlifetime_max = 1h", "lifetime"),
    ("tls_cert = /nowhere.pem", "tls_key"),
    ("api_key = with a blank in the middle", "api_key"),
])
def test_an_invalid_file_is_refused(home, text, word):
    conf = home + "/lodged.conf"
    with open(conf, "w", encoding="ascii") as f:
        f.write(text + "\n")
    status, said = refused("--data", home, "--config", conf)
    assert status == 2 and word in said, said
    assert "blank" not in said
    assert os.listdir(home) == ["lodged.conf"]


@pytest.mark.parametrize("args, word", [
    (("--nonsense",), "--nonsense"),
    (("--listen",), "--listen"),
    (("--listen", "nowhere"), "nowhere"),
    (("--listen", "127.0.0.1:x"), "127.0.0.1:x"),
    (("--config", "/nowhere.conf"), "/nowhere.conf"),
    (("--config", "/"), "/"),
    (("more",), "more"),
])
def test_an_invalid_command_line_is_refused(home, args, word):
    status, said = refused("--data", home, *args)
    assert status == 2 and word in said, said
    assert os.listdir(home) == []


def test_precedence_of_settings(home, daemon):
    """The command line overrides the environment, which overrides the file."""
    conf = home + "/lodged.conf"
    with open(conf, "w", encoding="ascii") as f:
        f.write(f"api_key = {KEY}-of-the-file\nhosts = file.example\nlisten = unix:{home}/f\n"
                f"data = /nowhere\nlog_level = error\n")
    d = daemon("--config", conf, key=None, listen=())
    assert d.addresses() == [f"unix:{home}/f"]
    assert d.close() == 0 and d.said == ""
    env = {"LODGE_LISTEN": f"unix:{home}/e", "LODGE_API_KEY": f"{KEY}-of-the-environment",
           "LODGE_CONFIG": conf}
    d = daemon(key=None, listen=(), env=env)
    assert d.addresses() == [f"unix:{home}/e"]
    c = UnixConnection(home + "/e")
    for key, status in (("environment", 200), ("file", 401)):
        c.request("GET", "/v1/keys", headers={"x-api-key": f"{KEY}-of-the-{key}"})
        response = c.getresponse()
        assert response.read() and response.status == status
    c.close()
    assert d.close() == 0
    d = daemon(key=None, listen=(f"unix:{home}/c", f"unix:{home}/d"), env=env)
    assert d.addresses(2) == [f"unix:{home}/c", f"unix:{home}/d"]
    assert d.close() == 0


def times():
    with open(os.path.join(SOURCE, "src", "lodged", "config.c"), encoding="utf-8") as f:
        return re.findall(r"SETTING\((\w+), number, (?:set_time|set_retention|set_keeper_timeout)\),", f.read())


@pytest.mark.parametrize("value", ("36501d", "9223372036854775808ms", "18446744073709551617ms", "213503982335d", "9" * 40 + "s"))
def test_a_time_that_is_too_long_is_refused(home, value):
    """The sum of a time and the present must not overflow."""
    assert {"idle_timeout", "lifetime_max", "template_time", "connection_idle", "delete_after", "keeper_timeout"} <= set(times())
    for name in times():
        code, text = refused("--check", "--data", home, **{"LODGE_" + name.upper(): value})
        assert code == 2 and re.search(rf"{name}: (must be|\"\w+\" is too large)", text), (name, text)


def test_check(home):
    r = subprocess.run([LODGED, "--check", "--data", home], capture_output=True, text=True,
                       timeout=180, check=False)
    assert r.returncode == 0 and home in r.stdout and r.stderr == "", r
    assert not children()
    status, said = refused("--check", "--data", home, LODGE_POOL="many")
    assert status == 2 and "LODGE_POOL" in said
    for setting, says in (("--pool 1025", "pool: must be at most 1024"),
                          ("--lifetime 10d", "lifetime: 10d is more than lifetime_max (5h): raise lifetime_max"),
                          ("--idle-timeout 2d", "idle_timeout: 2d is more than idle_timeout_max (1d): raise idle_timeout_max")):
        status, said = refused("--check", "--data", home, *setting.split())
        assert status == 2 and says in said, said
        assert refused("--data", home, *setting.split()) == (status, said) # a start fails the same way
    status, said = refused("--check", "--data", "/proc/nothing")
    assert status == 1 and "/proc/nothing" in said


def test_check_while_lodged_runs(home, daemon):
    d = daemon()
    client = d.client()
    r = subprocess.run([LODGED, "--check", "--data", home], capture_output=True, text=True,
                       timeout=180, check=False)
    assert r.returncode == 0, r
    assert client.get("/health").json["status"] == "ok"
    assert d.close() == 0


def test_options_that_print_and_exit(home):
    for option, word in (("--version", "lodged "), ("--help", "Usage:"), ("--print-routes", "/v1/")):
        r = subprocess.run([LODGED, option, "--data", home], capture_output=True, text=True,
                           timeout=180, check=False)
        assert r.returncode == 0 and word in r.stdout and r.stderr == "", r
    assert os.listdir(home) == []


# ---- signals ----------------------------------------------------------------------------------


def test_settings_are_reloaded(home, daemon):
    conf = home + "/lodged.conf"

    def write(text):
        with open(conf, "w", encoding="ascii") as f:
            f.write(text)

    def may(host, origin):
        return (client.get("/health", headers={"Host": host}).status == 200,
                client.get("/health", headers={"Origin": origin}).status == 200)

    write("hosts = a.example\norigins = https://a.example\n")
    d = daemon("--config", conf)
    client = d.client()
    assert may("a.example", "https://a.example") == (True, True)
    assert may("b.example", "https://b.example") == (False, False)
    write("hosts = b.example\norigins = https://b.example\nmax_active = 7\n")
    d.send(signal.SIGHUP)
    d.says("reloaded log_level, origins and hosts")
    assert may("a.example", "https://a.example") == (False, False)
    assert may("b.example", "https://b.example") == (True, True)
    write("hosts = c.example\nnonsense = 1\n")
    d.send(signal.SIGHUP)
    d.says(f"reload failed, keeping the previous settings: {conf}:2: ")
    assert may("b.example", "https://b.example") == (True, True)
    os.unlink(conf)
    d.send(signal.SIGHUP)
    d.says("reload failed, keeping the previous settings: " + conf + ": No such file")
    write("log_level = error\n")
    d.send(signal.SIGHUP)
    assert wait_for(lambda: may("b.example", "https://b.example") == (False, False))
    client.get("/health", headers={"X-Request-Id": "not-logged"})
    assert d.close() == 0 and "not-logged" not in d.said


@pytest.mark.parametrize("signo", (signal.SIGTERM, signal.SIGINT))
def test_a_signal_ends_lodged(home, daemon, signo):
    d = daemon(listen=("127.0.0.1:0", f"unix:{home}/s"))
    d.addresses(2)
    d.send(signo)
    assert d.ends()[0] == 0
    assert not os.path.exists(home + "/s") and not children()


# ---- conflicts --------------------------------------------------------------------------------


def test_port_in_use(home, daemon):
    with socket.create_server(("127.0.0.1", 0)) as s:
        address = f"127.0.0.1:{s.getsockname()[1]}"
        d = daemon(listen=(f"unix:{home}/first", address))
        status, said = d.ends()
        assert status == 1 and said.splitlines()[-1] == (
            f"lodged: listen on {address}: Address already in use"), said
    assert not os.path.exists(home + "/first") and not children()
    d = daemon(listen=(address,))  # now the port and the directory are free
    assert d.client().get("/health").status == 200
    assert d.close() == 0


def test_a_second_lodged_in_the_same_directory_is_refused(home, daemon):
    sock = f"unix:{home}/first"
    first = daemon(listen=(sock,))
    first.addresses()
    status, said = daemon(listen=("127.0.0.1:0",)).ends()
    assert status == 1 and str(first.process.pid) in said and sock in said, said
    assert said.count("\n") == 1
    assert os.path.exists(home + "/first")
    first.send(signal.SIGKILL)
    first.process.wait()
    d = daemon()  # a killed lodged does not block the next
    assert d.client().get("/health").status == 200
    assert d.close() == 0


def test_unix_socket(home, daemon):
    sock = home + "/s"
    for mode in (0o600, 0o660, 0o666):
        old = os.umask(0o077)
        d = daemon(listen=(f"unix:{sock}",), env={"LODGE_SOCKET_MODE": f"{mode:o}"})
        os.umask(old)
        d.addresses()
        st = os.stat(sock)
        assert stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == mode
        c = UnixConnection(sock)
        # browsers cannot open it, so the Host is not checked
        c.request("GET", "/v1/sessions", headers={"x-api-key": KEY, "Host": "any.example"})
        assert c.getresponse().status == 200
        c.close()
        d.send(signal.SIGKILL)
        d.process.wait()
        assert os.path.exists(sock)  # stale: the next lodged replaces it
    d = daemon(listen=(f"unix:{sock}",))
    d.addresses()
    assert d.close() == 0 and not os.path.exists(sock)


def test_a_unix_socket_in_use_is_refused(home, daemon):
    sock = home + "/s"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(sock)
        s.listen()
        status, said = daemon(listen=(f"unix:{sock}",)).ends()
        assert status == 1 and f"{sock} is in use by another process" in said
        s.settimeout(5)
        while True:  # the other process still listens there and gets connections
            with socket.socket(socket.AF_UNIX) as mine:
                mine.connect(sock)
                break
    os.unlink(sock)
    with open(sock, "w", encoding="ascii") as f:
        f.write("precious")
    status, said = daemon(listen=(f"unix:{sock}",)).ends()
    assert status == 1 and f"{sock} exists and is not a socket" in said
    with open(sock, encoding="ascii") as f:
        assert f.read() == "precious"
    status, said = daemon(listen=(f"unix:{home}/no/dir/s",)).ends()
    assert status == 1 and f"{home}/no/dir/s: No such file or directory" in said
    assert not children()


# ---- broken environments ----------------------------------------------------------------------


def test_an_unusable_data_directory_is_refused():
    for where, word in (("/dev/null", "Not a directory"), ("/proc/nothing", "No such file")):
        with Daemon(where) as d:
            status, said = d.ends()
            assert status == 1 and where in said and word in said and said.count("\n") == 1, said


def test_a_read_only_data_directory_is_refused(home, daemon):
    with mounted(home, "--bind", home):
        subprocess.run(["mount", "-o", "remount,bind,ro", home], check=True)
        status, said = daemon().ends()
        assert status == 1 and home in said and "Read-only file system" in said, said
        assert said.count("\n") == 1 and not children()
    d = daemon()
    assert d.client().get("/health").status == 200
    assert d.close() == 0


def database(home):
    found = [os.path.join(home, n) for n in os.listdir(home) if n.endswith((".db", ".sqlite"))]
    assert len(found) == 1, os.listdir(home)
    return found[0]


@pytest.mark.parametrize("damage", ("head", "middle", "text", "directory"))
def test_a_damaged_database_is_refused(home, daemon, damage):
    d = daemon()
    client = d.client()
    for i in range(40):
        client.post("/v1/keys", {"name": f"k{i}", "tenant": "t", "scope": "tenant"})
    assert d.close() == 0
    path = database(home)
    whole = open(path, "rb").read()
    if damage == "directory":
        os.unlink(path)
        os.mkdir(path)
    else:
        with open(path, "wb") as f:
            f.write(b"\xff" * 4096 + whole[4096:] if damage == "head" else
                    whole[:4096] + b"\xff" * (len(whole) - 4096) if damage == "middle" else
                    b"these are not the sessions you are looking for\n" * 100)
    status, said = daemon().ends()
    assert status == 1 and path in said and said.count("\n") == 1, said
    assert not children()
    if damage == "directory":
        os.rmdir(path)
    with open(path, "wb") as f:
        f.write(whole)
    d = daemon()
    assert len(d.client().get("/v1/keys?limit=100").json["keys"]) >= 1
    assert d.close() == 0


@pytest.fixture
def small(home):
    """The data directory is a small file system."""
    with mounted(home, "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"):
        yield home


def test_a_full_disk_is_reported(small, daemon):
    """Every call gets an error, nothing breaks, and with free space everything works again."""
    d = daemon()
    client = d.client()
    at = "/v1/sessions/" + client.enter(key="before")
    assert client.post(at + "/exec", {"command": "echo kept > ~/kept; sync ~/kept"}).json["exit_code"] == 0
    path = small + "/ballast"
    fill(path)
    calls = [("PUT", at + "/files/big", b"x" * 3_000_000), ("POST", "/v1/sessions", {"key": "during"}),
             ("POST", at + "/exec", {"command": "head -c 3000000 /dev/zero > ~/big || echo full"}),
             ("POST", at + "/exec", {"command": "head -c 900000 /dev/zero"}),
             ("POST", at + "/snapshots", {"name": "s"}), ("PATCH", at, {"metadata": {"a": "b" * 3000}}),
             ("POST", "/v1/keys", {"name": "k", "tenant": "t", "scope": "tenant"}),
             ("GET", at, None), ("GET", "/v1/sessions", None), ("GET", at + "/execs", None),
             ("GET", at + "/files/kept", None), ("GET", "/v1/events", None)]
    seen = []
    for _ in range(3):
        for method, where, body in calls:
            answer = client.call(method, where, body)
            seen.append((method, where, answer))
            assert answer.status in (200, 201, 507, 503), (method, where, answer)
            if method == "GET" and "files" not in where:
                assert answer.status == 200, (where, answer)
            if answer.status >= 500:
                assert answer.code in ("LIMIT_DISK", "UNAVAILABLE"), answer
    assert any(a.status == 507 and a.code == "LIMIT_DISK" for _, _, a in seen), seen
    assert client.get("/health").status in (200, 503) and d.process.poll() is None
    os.unlink(path)
    assert wait_for(lambda: client.post(at + "/exec", {"command": "cat ~/kept"}).status == 200)
    assert client.post(at + "/exec", {"command": "cat ~/kept"}).json["stdout"] == "kept\n"
    for method, where, body in calls:
        answer = client.call(method, where, body)
        assert answer.status in (200, 201, 409), (method, where, answer)
    assert client.get("/health").json["status"] == "ok"
    for s in client.get("/v1/sessions").json["sessions"]:
        assert client.delete("/v1/sessions/" + s["id"]).status == 200
    assert d.close() == 0


def test_sessions_can_be_destroyed_on_a_full_disk(small, daemon):
    """lodged reserves disk space for that."""
    d = daemon()
    client = d.client()
    at = "/v1/sessions/" + client.enter(key="fills")
    fill(small + "/ballast")
    assert wait_for(lambda: client.post("/v1/keys", {"name": "k", "tenant": "t", "scope": "tenant"}).status == 507, pause=0)
    assert client.delete(at).status == 200
    os.unlink(small + "/ballast")
    assert client.get("/v1/sessions").json["sessions"] == []
    assert d.close() == 0
    d = daemon()
    d.client()
    assert d.close() == 0
    assert os.path.getsize(small + "/lodge.db-reserve") == 1 << 20


def test_the_reserve_is_made_anew_when_space_returns(small, daemon):
    d = daemon()
    client, reserve = d.client(), small + "/lodge.db-reserve"
    assert wait_for(lambda: os.path.exists(reserve))
    fill(small + "/ballast")
    assert wait_for(lambda: client.get("/health").json["disk"]["state"] == "full")
    os.unlink(reserve)  # as a deletion does that finds the log used up
    fill(small + "/more")
    os.unlink(small + "/ballast")
    os.unlink(small + "/more")
    assert wait_for(lambda: os.path.exists(reserve) and os.path.getsize(reserve) == 1 << 20)
    assert client.get("/health").json["disk"]["state"] == "ok" and d.close() == 0


def test_every_session_can_be_destroyed_while_others_fill_the_disk(small, daemon):
    """Guests of plain directories take every block that becomes free. Deleting goes on, whatever was hibernated before."""
    d = daemon()
    client = d.client()
    calm, execs = [client.enter(key=f"calm{i}") for i in range(3)], []
    ids = [client.enter(key=f"k{i}") for i in range(6)]
    for sid in ids:
        answer = client.post(f"/v1/sessions/{sid}/exec", {
            "command": "read x; while :; do cat /dev/zero >> big$((n = (n + 1) % 9)) 2> /dev/null; done", "background": True,
            "timeout_ms": 0})
        assert answer.status == 202, answer
        execs.append(f"/v1/sessions/{sid}/execs/{answer.json['exec_id']}")
    for at in execs:
        assert client.post(at + "/stdin", b"go\n").status in (200, 204), at
    assert wait_for(lambda: os.statvfs(small).f_bavail == 0)
    assert wait_for(lambda: client.get("/health").json["disk"]["state"] == "full")
    for sid in calm:
        assert client.post(f"/v1/sessions/{sid}/hibernate").status in (200, 507)
    for sid in ids + calm:
        answer = client.delete("/v1/sessions/" + sid)
        assert answer.status == 200, (sid, answer)
    assert client.get("/v1/sessions").json["sessions"] == []
    assert wait_for(lambda: client.get("/health").json["disk"]["state"] == "ok")
    assert wait_for(lambda: os.path.exists(small + "/lodge.db-reserve"))
    assert d.close() == 0


def leave_descriptors(d, count):
    """Lower its limit so that it can open only `count` more."""
    used = [int(n) for n in os.listdir(f"/proc/{d.process.pid}/fd")]
    free = [n for n in range(max(used) + 1) if n not in used]
    assert len(free) <= count
    set_descriptors(d, max(used) + 1 + count - len(free))


def set_descriptors(d, count):
    """As its user, because root without CAP_SYS_RESOURCE may not."""
    st = os.stat(f"/proc/{d.process.pid}")
    subprocess.run(["prlimit", "--pid", str(d.process.pid), f"--nofile={count}:"], check=True,
                   user=st.st_uid, group=st.st_gid, extra_groups=[])


def test_running_out_of_descriptors(daemon):
    """New clients get a retryable error, admitted requests continue, and later everything works again."""
    d = daemon()
    client = d.client()
    at = "/v1/sessions/" + client.enter(key="few")
    path = f"{at}/execs/" + client.post(at + "/exec", {
        "command": "for i in {1..60}; do echo $i; sleep .05; done", "background": True}).json["exec_id"]
    with open(f"/proc/{d.process.pid}/limits") as f:
        before = int(re.search(r"Max open files +(\d+)", f.read()).group(1))
    request = f"POST {at}/exec HTTP/1.1\r\nHost: localhost\r\nx-api-key: {KEY}\r\nContent-Type: " \
              "application/json\r\nContent-Length: 18\r\n\r\n" + '{"command":"true"}'
    idle, seen = [], []
    leave_descriptors(d, 12)
    try:
        for _ in range(40):
            idle.append(socket.create_connection((client.host, client.port), timeout=180))
        for s in idle[:5]:
            s.sendall(request.encode())
            seen.append(s.recv(4096).decode())
        assert all(re.match(r"HTTP/1.1 (200|503) ", a) for a in seen), seen
        assert any("HTTP/1.1 503 " in a for a in seen), seen
        assert all('"retryable":true' in a and "Retry-After" in a for a in seen if " 503 " in a), seen
    finally:
        for s in idle:
            s.close()
    set_descriptors(d, before)
    assert wait_for(lambda: client.post(at + "/exec", {"command": "true"}).status == 200)
    assert client.post(at + "/exec", {"command": "echo well"}).json["stdout"] == "well\n"
    assert wait_for(lambda: client.get(path).json["exec"]["state"] == "exited")
    assert client.get(path + "/output").json["stdout"].split() == [str(i) for i in range(1, 61)]
    assert client.delete(at).status == 200
    assert d.close() == 0


@pytest.mark.parametrize("files", (64, 140))
def test_no_descriptors_for_a_sandbox(daemon, files):
    """Both lodged and its keeper have too few."""
    d = daemon(files=files)
    client = d.client()
    made, full = [], None
    while not full:
        answer = client.post("/v1/sessions", {"key": f"k{len(made)}"})
        if answer.status == 201:
            made.append(answer.json["session"]["id"])
        else:
            full = answer
    assert full.status == 503 and full.code == "UNAVAILABLE", full
    assert full.headers["Retry-After"] and full.json["error"]["retryable"]
    for i in made:
        assert client.delete("/v1/sessions/" + i).status == 200
    again = client.post("/v1/sessions", {"key": "again"})
    assert again.status == (201 if made else 503), again
    for s in client.get("/v1/sessions").json["sessions"]:
        assert client.delete("/v1/sessions/" + s["id"]).status == 200
    assert d.close() == 0
