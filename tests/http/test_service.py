# SPDX-License-Identifier: Apache-2.0
"""lodged as a service: how it starts, what it is told, what it says and how it ends."""
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from client import KEY, LODGED, SOURCE, wait_for
from daemon import Daemon, Home, UnixConnection, raw


@pytest.fixture
def home():
    h = Home()
    try:
        yield h
    finally:
        h.remove()


@pytest.fixture
def daemon(home):
    """daemon(arguments) is started, and ended with the test."""
    made = []

    def start(*args, **kw):
        made.append(Daemon(home, *args, **kw))
        return made[-1]

    yield start
    for d in made:
        d.__exit__()


def children():
    """Who was left to us: nobody, when a lodged has ended that had no sandboxes."""
    mine = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                name = f.read().split(b"\0")[0]
        except OSError:
            continue
        if os.path.basename(name) in (b"lodged", b"lodge-keeper"):
            mine.append(int(pid))
    return mine


# ---- the start --------------------------------------------------------------------------------


def test_one_line_for_each_address(home, daemon):
    sock = home + "/here.sock"
    addresses = ["127.0.0.1:0", f"unix:{sock}", "127.0.0.1:0"]
    d = daemon(listen=addresses)
    said = d.addresses(len(addresses))
    assert said[1] == f"unix:{sock}" and said[0] != said[2]
    for address in (said[0], said[2]):
        assert d.client(address).get("/v1/sessions").status == 200
    assert d.close() == 0
    assert not os.path.exists(sock) and not wait_for(children, 0)


def test_default_addresses(home, daemon):
    """The second one at least is nobody else's."""
    d = daemon(listen=())
    first = d.process.stdout.readline().decode()
    if not first:
        assert "127.0.0.1:7070" in d.ends()[1]
        pytest.skip("somebody has port 7070")
    assert first == "lodged: listening on http://127.0.0.1:7070\n"
    assert d.addresses() == [f"unix:{home}/lodge.sock"]
    assert d.close() == 0


@pytest.mark.parametrize("abstract", (False, True))
def test_notify(home, daemon, abstract):
    name = home + "/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind("\0" + name if abstract else name)
        s.settimeout(60)
        d = daemon(env={"NOTIFY_SOCKET": "@" + name if abstract else name})
        assert s.recv(100) == b"READY=1"
        assert d.client().get("/ready").status == 200
        d.send(signal.SIGTERM)
        assert s.recv(100) == b"STOPPING=1"
        assert d.ends()[0] == 0


def test_nobody_to_notify(daemon):
    for name in ("/nowhere/at/all", "relative", "@", "/" + "x" * 200):
        d = daemon(env={"NOTIFY_SOCKET": name})
        assert d.client().get("/health").status == 200
        assert d.close() == 0


# ---- the first key ----------------------------------------------------------------------------


def test_first_key(home, daemon):
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


def test_given_key(home, daemon):
    d = daemon()
    client = d.client()
    assert client.get("/v1/keys").status == 200
    assert not os.path.exists(home + "/admin.key")
    # nobody it started knows it
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
    d = daemon(key=None)  # none: one is made
    address = d.addresses()[0]
    assert d.client(address, other).get("/v1/keys").status == 401
    with open(home + "/admin.key", encoding="ascii") as f:
        assert d.client(address, f.read().strip()).get("/v1/keys").status == 200
    assert d.close() == 0


# ---- settings ---------------------------------------------------------------------------------


def names():
    """Every setting, as the manual has them."""
    with open(os.path.join(SOURCE, "man", "lodged.conf.5.scd"), encoding="utf-8") as f:
        heads = [line for line in f if line.startswith("*")]
    found = [n.replace("\\", "") for line in heads for n in re.findall(r"\*([a-z\\_]+)\*", line)]
    return [n for n in found if n != "lodged"]  # the other manual


WRONG = {"listen": "7070", "log_level": "loud", "socket_mode": "rw", "api_key": "short"}
NO_WRONG = ("data", "tls_cert", "tls_key", "hosts", "origins")
RIGHT = {"listen": "127.0.0.1:0", "log_level": "debug", "socket_mode": "0660", "max_head": "16k",
         "api_key": KEY, "hosts": "a.example, b.example", "origins": "https://a.example",
         "max_per_address": "100"}
LONG = ("idle_timeout", "lifetime", "extend", "probe_timeout", "keep_", "drain", "connection_")


def right(name):
    return RIGHT.get(name) or ("3m" if name.startswith(LONG) else "64")


def refused(*args, **env):
    r = subprocess.run([LODGED, *args], env=dict(PATH=os.environ["PATH"], **env), timeout=60,
                       capture_output=True, text=True, check=False)
    assert r.stdout == "" and r.stderr.startswith("lodged: ") and r.stderr.count("\n") == 1, r
    return r.returncode, r.stderr


def test_every_setting_is_in_the_manual():
    with open(os.path.join(SOURCE, "src", "lodged", "conf.c"), encoding="utf-8") as f:
        assert sorted(re.findall(r"SETTING\((\w+), [A-Z]+\),", f.read())) == sorted(names())


def test_settings_of_a_file_and_of_the_environment(home, daemon):
    simple = [n for n in names() if n not in ("data", "tls_cert", "tls_key")]
    conf = home + "/lodged.conf"
    with open(conf, "w", encoding="ascii") as f:
        f.write("# all of them\n\n" + "".join(f"{n} = {right(n)}\n" for n in simple))
    d = daemon("--config", conf, key=None, listen=())
    assert d.client().get("/v1/keys").status == 200
    assert d.close() == 0
    os.truncate(conf, 0)
    d = daemon(key=None, listen=(), env={f"LODGE_{n.upper()}": right(n) for n in simple})
    assert d.client().get("/v1/keys").status == 200
    assert d.close() == 0


@pytest.mark.parametrize("name", [n for n in names() if n not in NO_WRONG])
def test_wrong_value(home, name):
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
def test_wrong_file(home, text, word):
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
def test_wrong_command_line(home, args, word):
    status, said = refused("--data", home, *args)
    assert status == 2 and word in said, said
    assert os.listdir(home) == []


def test_who_is_heard_first(home, daemon):
    """The command line, then the environment, then the file."""
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
