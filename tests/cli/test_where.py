# SPDX-License-Identifier: Apache-2.0
"""Which lodged the command uses, and with which key."""
import os
import signal
import socket
import stat
import subprocess
import tempfile
import termios

import pytest
from client import KEY
from daemon import Daemon
from lodge import LODGE
from machine import remove_home
from terminal import Terminal


@pytest.fixture
def home(tmp_path):
    return tmp_path


def ask(home, *words, data=None, **env):
    """Run lodge with only these variables set."""
    base = {"PATH": os.environ["PATH"], "HOME": str(home)}
    base.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    done = subprocess.run([LODGE, *words], env=dict(base, **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=180, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def write_config(home, text, mode=0o600):
    path = home / ".config" / "lodge" / "config"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_url_and_key_of_the_environment(lodged, session, home):
    assert ask(home, "ps", session, LODGE_URL=lodged.url, LODGE_API_KEY=KEY)[0] == 0
    status, _, said = ask(home, "ps", session, LODGE_URL=lodged.url, LODGE_API_KEY="an-unknown-key")
    assert status == 1 and "key" in said, said


def test_tcp_url(lodged, session, home):
    url = f"http://{lodged.host}:{lodged.port}"
    assert ask(home, "ps", session, LODGE_URL=url, LODGE_API_KEY=KEY)[0] == 0


def test_options_override_the_environment(lodged, session, home):
    key = home / "key"
    key.write_text(KEY + "\n")
    assert ask(home, "ps", "--url", lodged.url, "--key-file", str(key), session, LODGE_URL="unix:/nonexistent",
               LODGE_API_KEY="wrong")[0] == 0


def test_url_and_key_of_the_config_file(lodged, session, home):
    write_config(home, f"# mine\n\nurl = {lodged.url}\nkey={KEY}\n")
    assert ask(home, "ps", session) == (0, *ask(home, "ps", session)[1:])
    assert ask(home, "ps", session)[2] == ""


def test_key_file_of_the_config_file(lodged, session, home):
    (home / "key").write_text(KEY)
    write_config(home, f"url = {lodged.url}\nkey_file = {home}/key\n", 0o644)
    status, _, said = ask(home, "ps", session)
    assert (status, said) == (0, "")


def test_a_readable_config_file_with_a_key_is_warned_about(lodged, session, home):
    write_config(home, f"url = {lodged.url}\nkey = {KEY}\n", 0o644)
    status, _, said = ask(home, "ps", session)
    assert status == 0 and "warning" in said and "chmod 600" in said


@pytest.mark.parametrize("line", ["uri = x", "url", "url =", "key_file = /nonexistent/key"])
def test_config_errors_name_the_line(home, line):
    path = write_config(home, "# one\n" + line + "\n")
    status, _, said = ask(home, "ps", "x")
    assert status == 125 and f"{path}:2:" in said, said


def test_the_key_of_the_config_file_is_sent_only_to_its_url(lodged, session, home):
    """Not to another daemon that LODGE_URL names."""
    write_config(home, f"url = http://127.0.0.1:1\nkey = {KEY}\n")
    status, _, said = ask(home, "ps", session, LODGE_URL=f"http://{lodged.host}:{lodged.port}")
    assert status == 1 and "key" in said, said


def test_a_key_without_a_url_is_for_the_local_socket(lodged, session, home):
    write_config(home, f"key = {KEY}\n")
    assert ask(home, "ps", session, LODGE_DATA=lodged.home)[0] == 0
    url = f"http://{lodged.host}:{lodged.port}"
    for words, env in ((("ps", session), {"LODGE_URL": url}), (("ps", "--url", url, session), {})):
        status, _, said = ask(home, *words, **env)
        assert status == 1 and "missing API key" in said, said


def test_the_local_socket_is_found(lodged, session, home):
    assert ask(home, "ps", session, LODGE_DATA=lodged.home, LODGE_API_KEY=KEY)[0] == 0
    link = home / ".local" / "share"
    link.mkdir(parents=True)
    (link / "lodge").symlink_to(lodged.home)
    assert ask(home, "ps", session, LODGE_API_KEY=KEY)[0] == 0


def test_the_key_next_to_the_socket_is_used(lodged, session, home):
    with open(os.path.join(lodged.home, "admin.key"), "w") as f:
        f.write(KEY + "\n")
    try:
        assert ask(home, "ps", session, LODGE_DATA=lodged.home)[0] == 0
        assert ask(home, "ps", session, LODGE_URL=lodged.url)[0] == 0
    finally:
        os.unlink(os.path.join(lodged.home, "admin.key"))


def test_one_variable_names_the_data_directory(lodged, session, home):
    """For commands with and without a service; LODGE_HOME is its older name, which LODGE_DATA overrides."""
    for name in ("LODGE_DATA", "LODGE_HOME"):
        assert ask(home, "ps", session, LODGE_API_KEY=KEY, **{name: lodged.home})[0] == 0
        status, out, said = ask(home, "template", "ls", **{name: str(home / name)})
        assert (status, said) == (0, "") and "host" in out and (home / name).is_dir()
    assert ask(home, "template", "ls", LODGE_DATA=str(home / "new"), LODGE_HOME=str(home / "old"))[0] == 0
    assert (home / "new").is_dir() and not (home / "old").exists()
    assert ask(home, "template", "ls", "--home", str(home / "given"), LODGE_DATA=str(home / "x"))[0] == 0
    assert (home / "given").is_dir() and not (home / "x").exists()


@pytest.fixture
def keyed():
    """A lodged that made its own admin key, and was asked to listen on one port only."""
    data = tempfile.mkdtemp(prefix="lodge-key-")
    with Daemon(data, key=None) as d:
        d.url, local = d.addresses(2)
        assert local == f"unix:{data}/lodge.sock", "the socket is always open"
        d.port = d.url.rsplit(":", 1)[1]
        yield d
    remove_home(data)


def test_the_key_of_a_local_data_directory_is_used_on_loopback(keyed, home):
    for url in (keyed.url, f"http://localhost:{keyed.port}", keyed.url + "/"):
        assert ask(home, "ls", LODGE_URL=url, LODGE_DATA=keyed.home) == (0, *ask(home, "ls", LODGE_DATA=keyed.home)[1:]), url
    status, _, said = ask(home, "ls", LODGE_URL=keyed.url)  # the directory is not one of the usual ones
    assert status == 1 and "missing API key" in said
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "lodge").symlink_to(keyed.home)
    assert ask(home, "ls", LODGE_URL=keyed.url)[0] == 0


def listener_sees(home, keyed, url):
    """What a process at another port gets from the command."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        s.settimeout(60)
        port = s.getsockname()[1]
        p = subprocess.Popen([LODGE, "ls", "--url", url.format(port=port)], stderr=subprocess.DEVNULL,
                             env={"PATH": os.environ["PATH"], "HOME": str(home), "LODGE_DATA": keyed.home})
        c, _ = s.accept()
        with c:
            got = c.recv(65536)
        p.wait(180)
    return got


def test_the_key_goes_to_no_other_listener(keyed, home):
    """A tunnel, or another user's process."""
    with open(os.path.join(keyed.home, "admin.key")) as f:
        key = f.read().strip().encode()
    assert key not in listener_sees(home, keyed, "http://127.0.0.1:{port}")
    assert key not in listener_sees(home, keyed, "http://localhost:{port}")
    listed = os.path.join(keyed.home, "addresses")
    with open(listed) as f:
        was = f.read()
    assert keyed.url + "\n" in was and was.startswith(os.readlink("/proc/self/ns/net") + "\n")
    # nor to one that has got a port of the list since: the socket is used
    with socket.create_server(("127.0.0.1", 0)) as s:
        with open(listed, "a") as f:
            f.write(f"http://127.0.0.1:{s.getsockname()[1]}\n")
        assert ask(home, "ls", LODGE_URL=f"http://127.0.0.1:{s.getsockname()[1]}", LODGE_DATA=keyed.home)[0] == 0
        s.settimeout(0)
        with pytest.raises(BlockingIOError):
            s.accept()
    # nor to one in another network namespace, or at the address of a lodged that ended
    with open(listed, "w") as f:
        f.write(was.replace(os.readlink("/proc/self/ns/net"), "net:[1]"))
    assert ask(home, "ls", LODGE_URL=keyed.url, LODGE_DATA=keyed.home)[0] == 1
    keyed.send(signal.SIGKILL)
    keyed.process.wait(180)
    with socket.create_server(("127.0.0.1", int(keyed.port))) as s:
        with open(listed, "w") as f:
            f.write(was)
        p = subprocess.Popen([LODGE, "ls", "--url", keyed.url], stderr=subprocess.DEVNULL,
                             env={"PATH": os.environ["PATH"], "HOME": str(home), "LODGE_DATA": keyed.home})
        c, _ = s.accept()
        with c:
            assert key not in c.recv(65536)
        p.wait(180)


def test_missing(home):
    """Without a lodged. The name is short because it is part of the path of a socket."""
    status, _, said = ask(home, "ps", "x", LODGE_DATA=str(home))
    assert status == 125 and said == (f"lodge: cannot find lodged (looked at LODGE_URL, `lodge login`, {home}/lodge.sock). "
                                       "Is it running on another address? Set LODGE_URL.\n")
    status, _, said = ask(home, "ps", "x", LODGE_URL="unix:/nonexistent/s")
    assert status == 125 and "/nonexistent/s" in said and "systemctl start lodged" in said


def test_login_saves_a_working_key(lodged, session, home):
    key = home / "key"
    key.write_text("not-a-known-key\n")
    status, _, said = ask(home, "login", "--url", lodged.url, "--key-file", str(key))
    assert status == 125 and not (home / ".config").exists(), said
    key.write_text(KEY + "\n")
    assert ask(home, "login", "--url", lodged.url, "--key-file", str(key))[0] == 0
    config = home / ".config" / "lodge" / "config"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert ask(home, "ps", session)[0] == 0


@pytest.mark.parametrize("signo", [None, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_login_restores_the_terminal(lodged, home, signo):
    env = lodged.env() | {"HOME": str(home), "LODGE_API_KEY": ""}
    t = Terminal("login", "--url", f"http://{lodged.host}:{lodged.port}", env=env)
    t.wait("key for ")
    assert not termios.tcgetattr(t.slave)[3] & termios.ECHO
    if signo:
        t.process.send_signal(signo)
        assert t.end() == 128 + signo
    else:
        t.type(KEY + "\n")
        assert t.end() == 0 and KEY.encode() not in t.seen
    assert t.after == t.before


def test_login_without_a_key_gives_a_hint(lodged, home):
    status, _, said = ask(home, "login", "--url", f"http://{lodged.host}:{lodged.port}")
    assert status == 125 and "--key-file" in said


def test_sessions_by_key_and_id(lodged, client, home):
    sid = client.enter(key="ses-not an/id")
    env = {"LODGE_URL": lodged.url, "LODGE_API_KEY": KEY}
    for name in (sid, "ses-not an/id", "key:ses-not an/id"):
        assert ask(home, "ps", name, **env)[0] == 0
    for name in ("ses_nosuch", "key:ses_nosuch", "nosuch"):
        status, _, said = ask(home, "ps", name, **env)
        assert status == 1 and "nosuch" in said
    for words in (("ps", ""), ("exec", "", "true"), ("show", "key:"), ("enter", ""), ("cp", "/dev/null", "key::x")):
        assert ask(home, *words, **env)[0] == 2, words


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_key_with_another_owner_is_not_sent(lodged, session, home):
    """The owner of a socket could link to another user's key next to it."""
    there = home / "there"
    there.mkdir()
    os.symlink(lodged.url[5:], there / "lodge.sock")
    (home / "admin.key").write_text(KEY)
    os.symlink(home / "admin.key", there / "admin.key")
    status, _, said = ask(home, "ps", session, LODGE_URL=f"unix:{there}/lodge.sock")
    assert status != 0 and "its owner is not the owner of the socket" in said, said
    os.unlink(there / "admin.key")
    (there / "admin.key").write_text(KEY)
    assert ask(home, "ps", session, LODGE_URL=f"unix:{there}/lodge.sock")[0] == 0
    os.chown(there / "admin.key", 65534, 65534)
    assert ask(home, "ps", session, LODGE_URL=f"unix:{there}/lodge.sock")[0] != 0
