# SPDX-License-Identifier: Apache-2.0
"""lodge enter on a real terminal, provided by tmux."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest
from client import wait_for
from lodge import LODGE
from roots import needs_busybox, root

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")


PROMPT = r"\S+@lodge:.*\$ *$"  # of the shell inside, which waits for input


class Terminal:
    """An outer shell with the prompt "outer$"."""

    def __init__(self, lodged, name):
        self.base = ["tmux", "-L", name, "-f", "/dev/null"]
        self.asked = 0
        self.env = lodged.env(TERM="screen", LANG="C.UTF-8", HISTFILE="", TMUX_TMPDIR=tempfile.gettempdir())

    def start(self):
        self.tmux("new-session", "-d", "-x", "90", "-y", "24", "sh")
        self.type("PS1='outer$ '; clear")
        self.sees("outer\\$")

    def tmux(self, *words):
        return subprocess.run([*self.base, *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=180, check=False).stdout.decode()

    def screen(self):
        return self.tmux("capture-pane", "-p", "-J")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.keys("Enter")

    def sees(self, pattern, times=1):
        """Wait for the pattern at the start of a line, so that typed text does not match."""
        seen = re.compile("^" + pattern, re.M)
        assert wait_for(lambda: len(seen.findall(self.screen())) >= times, 120), f"no {pattern}:\n{self.screen()}"

    def clear(self):
        self.type("clear")
        assert wait_for(lambda: self.screen().strip() == "outer$", 120), self.screen()

    def enter(self, *words):
        self.clear()
        self.type(f"{LODGE} enter " + " ".join(words))
        self.sees(PROMPT)

    def status(self):
        """The exit status of the last command; also checks that the terminal was restored."""
        self.sees(r"(?:\^C)?outer\$ *$")
        self.asked += 1
        self.type(f"echo status{self.asked}=$?; stty -a | grep -ow -- -\\\\?icanon")
        self.sees(f"status{self.asked}=.*\n-?icanon")
        found = re.search(rf"^status{self.asked}=(\d+)\n(\S+)", self.screen(), re.M)
        assert found.group(2) == "icanon", self.screen()
        return int(found.group(1))

    def close(self):
        self.tmux("kill-server")


@pytest.fixture
def term(lodged, request):
    with contextlib.closing(Terminal(lodged, f"lodge-cli-{os.getpid()}-{request.node.name[:40]}")) as t:
        t.start()
        yield t


@pytest.fixture
def key(client, request):
    yield request.node.name
    client.delete("/v1/sessions/key:" + request.node.name)


def test_the_shell_ends_with_its_status(term, key):
    term.enter(key)
    assert f"lodge: created {key}" in term.screen() and "ctrl-] d" in term.screen()
    term.type("exit 42")
    assert term.status() == 42
    term.enter(key)
    assert "is new" not in term.screen()
    term.keys("C-d")
    assert term.status() == 0


def test_the_size_is_that_of_the_terminal(term, key):
    term.enter(key)
    term.type("stty size")
    term.sees("24 90$")
    term.tmux("resize-window", "-x", "77", "-y", "20")
    term.type("while [ \"$(stty size)\" != '20 77' ]; do sleep .1; done; echo resized")
    term.sees("resized")


def test_ctrl_c_interrupts_the_inner_command(term, key):
    term.enter(key)
    term.type("echo be''gins; sleep 1000")
    term.sees("begins")
    term.keys("C-c")
    term.type("echo after=$?")
    term.sees("after=130")


def test_a_full_screen_pager_works(term, key):
    term.enter(key)
    term.type("seq 500 | less")
    term.sees("23$")
    assert "lodge" not in term.screen()
    term.keys("G")
    term.sees("500$")
    term.keys("q")
    term.sees(r"\S+@lodge:.*\$ seq 500 \| less")
    assert "499" not in term.screen()


def test_a_full_screen_editor_works(term, key, client):
    term.enter(key)
    term.type("vi -u NONE note")
    term.sees("~ *$")
    assert "lodge" not in term.screen()
    term.keys("i", "first", "Enter", "second")
    term.tmux("resize-window", "-x", "60", "-y", "14")
    term.sees("second *$")
    term.keys("Escape")
    term.keys(":wq", "Enter")
    term.sees(r"\S+@lodge:.*\$ vi -u NONE note")
    term.sees(PROMPT)  # before that, the editor would get what is typed
    assert "second" not in term.screen()
    term.type("stty size; tr '\\n' + < note; echo")
    term.sees("14 60$")
    term.sees(r"first\+second\+$")


def test_detach_and_reconnect(term, key, client):
    term.enter(key)
    term.type("x=kept; echo mark''er")
    term.sees("marker")
    term.keys("C-]")
    term.keys("d")
    assert term.status() == 0
    assert f"lodge: detached; it keeps running (reconnect: lodge shell {key})" in term.screen()
    term.enter(key)
    term.sees("marker")  # replayed from the end of its output
    assert "reconnected to the shell" in term.screen()
    term.type("echo x=$x")
    term.sees("x=kept")
    term.type("echo rea''dy; read -rsn 1 x; printf 'code=%d\\n' \"'$x\"")
    term.sees("ready")
    term.keys("C-]")
    term.keys("C-]")  # typed twice, ctrl-] goes to the shell
    term.sees("code=29")


def test_replayed_terminal_queries_get_no_reply(term, key):
    """The replayed output contains the queries of an editor; the terminal's replies must not reach the shell."""
    term.enter(key)
    term.type("vi -u NONE note")
    term.sees("~ *$")
    term.keys(":q!", "Enter")
    term.sees(PROMPT)  # before that, the editor would get what is typed
    term.type("printf '\\033[c\\033[>c\\033[6n'; sleep 1; read -rsn 999 -t 1; clear; echo do''ne")
    term.sees("done")
    term.keys("C-]")
    term.keys("d")
    assert term.status() == 0
    term.enter(key)
    term.sees(PROMPT)
    term.type("echo cl''ean")
    term.sees("clean$")
    assert "not found" not in term.screen() and ";" not in term.screen().rpartition("@lodge")[2], term.screen()


def test_new_opens_a_second_shell(term, key, client):
    term.enter(key)
    term.type("x=first")
    term.keys("C-]")
    term.keys("d")
    assert term.status() == 0
    term.enter("--new", key)
    term.type("echo x=$x.")
    term.sees(r"x=\.")
    execs = client.get(f"/v1/sessions/key:{key}/execs").json["execs"]
    assert [x["state"] for x in execs] == ["running", "running"]


@needs_busybox
def test_a_shell_without_bash(term, key, client):
    assert client.post("/v1/templates/bare", root(), headers={"Content-Type": "application/x-tar"}).status == 201
    try:
        term.type(f"{LODGE} enter --template bare {key}")
        term.sees(r".*\$ $")
        term.type("x=kept; echo it is $0")
        term.sees("it is sh")
        term.keys("C-]")
        term.keys("d")
        assert term.status() == 0
        term.type(f"{LODGE} enter {key}")
        term.sees("lodge: reconnected to the shell")
        term.type("echo x=$x; exit 3")
        term.sees("x=kept")
        assert term.status() == 3
    finally:
        client.delete("/v1/sessions/key:" + key)
        assert wait_for(lambda: client.delete("/v1/templates/bare").status in (200, 404))


def test_no_detach_keys(term, key):
    term.enter("--no-detach-keys", key)
    assert "ctrl-]" not in term.screen()
    term.type("stty -echo; echo rea''dy; read -rsn 2 x; stty echo; echo \"got=${#x}\"")
    term.sees("ready")
    term.keys("C-]")
    term.keys("d")
    term.sees("got=2")


def test_the_shell_survives_a_killed_daemon(term, key, lodged):
    term.enter(key)
    term.type("x=kept; echo be''fore")
    term.sees("before")
    lodged.crash()
    term.sees("lodge: .*retrying")
    term.type("echo x=$x")  # sent after the reconnect
    lodged.start()
    term.sees("lodge: reconnected")
    term.sees("x=kept")
    term.type("exit 5")
    assert term.status() == 5


def test_ctrl_c_leaves_while_lodged_is_down(term, key, lodged):
    term.enter(key)
    lodged.crash()
    try:
        term.sees("lodge: .*retrying")
        term.keys("C-c")
        assert term.status() == 0
    finally:
        lodged.start()


def test_a_signal_restores_the_terminal(term, key, client):
    term.enter(key)
    pids = [p for p in filter(str.isdigit, os.listdir("/proc")) if is_enter(p, key)]
    assert len(pids) == 1
    os.kill(int(pids[0]), 15)
    assert term.status() == 128 + 15
    execs = client.get(f"/v1/sessions/key:{key}/execs").json["execs"]
    assert [x["state"] for x in execs] == ["running"]


def is_enter(pid, key):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().split(b"\0")[:-1] == [LODGE.encode(), b"enter", key.encode()]
    except OSError:
        return False


def test_enter_resumes_a_hibernated_session(term, key, client):
    term.enter(key)
    term.type("echo written > file; exit")
    assert term.status() == 0
    assert client.post(f"/v1/sessions/key:{key}/hibernate").status == 200
    term.enter(key)
    assert f"lodge: resumed {key}" in term.screen()
    term.type("cat file")
    term.sees("written")


def test_a_command_on_the_terminal(term, key):
    term.type(f"{LODGE} enter {key} -- sh -c 'stty size; exit 6'")
    term.sees("24 90$")
    assert term.status() == 6
    term.clear()
    term.type(f"{LODGE} exec -t {key} -- sh -c 'stty size; read x; exit $x'")
    term.sees("24 90$")
    term.type("8")
    assert term.status() == 8


def test_ctrl_c_kills_a_command_without_tty(term, session):
    term.type(f"{LODGE} exec {session} -c 'echo on; sleep 1000'")
    term.sees("on$")
    term.keys("C-c")
    assert term.status() == 128 + 2


def test_attaching_to_a_command_on_a_terminal(term, session, lodged):
    exec_id = lodged.lodge("exec", "-dt", session, "--", "sh", "-c", "echo begun; read x; exit $x")[1].decode().strip()
    term.type(f"{LODGE} attach {session} {exec_id}")
    term.sees("begun$")
    term.keys("C-]")
    term.keys("d")
    assert term.status() == 0
    term.clear()
    term.type(f"{LODGE} attach {session}")
    term.sees("begun$")
    term.type("9")
    assert term.status() == 9


def test_without_a_terminal(lodged, key):
    status, out, _ = lodged.lodge("enter", "-q", key, data=b"echo on $((40 + 2))\nexit 7\n")
    assert status == 7 and b"on 42" in out
    status, out, _ = lodged.lodge("enter", "-q", key, data=b"echo x$((1 + 1))")  # the end of input ends the shell
    assert status == 0 and b"x2" in out


def test_workdir_option(lodged, key, client):
    assert lodged.lodge("enter", "-q", key, "-w", "/tmp", "--", "pwd")[:2] == (0, b"/tmp\r\n")
    _, out, _ = lodged.lodge("enter", "-q", key, "--workdir", "/usr/lib", data=b"echo at=$PWD=; exit\n")
    assert b"at=/usr/lib=" in out, out


def test_limits_apply_to_a_new_session_only(lodged, key, client):
    status, _, said = lodged.lodge("enter", "-q", key, "--memory", "64M", "--pids", "50", "--", "true")
    assert status == 0, said
    limits = client.session("key:" + key)["limits"]
    assert (limits["memory_bytes"], limits["pids"]) == (64 << 20, 50)
    sid = client.session("key:" + key)["id"]
    status, _, said = lodged.lodge("enter", sid, "--memory", "64M")
    assert status == 2 and "--template and limits apply only to a new session" in said
    assert lodged.lodge("enter", sid, "-q", "--", "true")[0] == 0
    assert json.loads(lodged.lodge("ps", "--json", sid)[1]) == {"execs": []}


def test_lost_files_are_reported(lodged, key, client):
    sid = client.enter(key=key, idle_timeout_ms=200, on_idle="destroy")
    assert wait_for(lambda: client.get(f"/v1/sessions/{sid}").status in (404, 410))
    status, _, said = lodged.lodge("enter", "-q", key, "--", "true")
    assert status == 0 and said.startswith(f"lodge: {key} was recreated; its earlier files were lost"), said
    assert said.count("\n") == 1


def test_detach_from_a_flood_of_output(term, key):
    term.enter(key)
    term.type("yes")
    term.sees("y$", 5)
    term.keys("C-]")
    term.keys("d")
    assert term.status() == 0


def test_sigcont_restores_the_raw_terminal(term, key):
    term.enter(key)
    term.tmux("run-shell", "pkill -CONT -t \"$(basename $(dirname #{pane_tty}))/$(basename #{pane_tty})\" -x lodge; true")
    term.type("echo con''tinued")
    term.sees("continued")
    term.keys("C-]")
    term.keys("d")
    assert term.status() == 0
