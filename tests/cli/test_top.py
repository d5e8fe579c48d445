# SPDX-License-Identifier: Apache-2.0
"""lodge top, events, completion."""
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from client import SOURCE, wait_for
from lodge import LODGE, ok
from relay import Relay
from terminal import Terminal


@pytest.fixture
def busy(client):
    sid = client.enter(key="busy", user="ada")
    client.post(f"/v1/sessions/{sid}/exec", {"command": "while :; do :; done", "background": True, "timeout_ms": 0})
    yield sid
    client.delete("/v1/sessions/" + sid)


def test_top_once(lodged, busy, session):
    status, out, _ = lodged.lodge("top")
    rows = out.decode().splitlines()
    assert status == 0 and rows[0].split() == ["SESSION", "USER", "CPU%", "MEMORY", "PIDS", "DISK", "LIMIT", "IDLE", "STATE"]
    assert rows[1].split()[:2] == ["busy", "ada"] and float(rows[1].split()[2]) > 0 and b"\033" not in out
    listed = json.loads(lodged.lodge("top", "--once", "--json")[1])["sessions"]
    assert [s["id"] for s in listed] == [busy, session] and listed[0]["usage"]["pids"] >= 1
    status, _, err = lodged.lodge("top", "--url", "http://127.0.0.1:1")
    assert status == 125 and err


def test_top_of_some_sessions(lodged, busy, session):
    for words in (("top", "busy"), ("stats", "--no-stream", busy), ("top", "key:busy"), ("top", "busy", "busy")):
        assert [row.split()[0] for row in ok(lodged.lodge(*words)).splitlines()] == ["SESSION", "busy"], words
    both = json.loads(ok(lodged.lodge("top", "--json", session, "busy")))["sessions"]
    assert [s["id"] for s in both] == [busy, session]
    status, out, err = lodged.lodge("top", "busy", "nosuch")
    assert (status, out, err) == (1, b"", "lodge: nosuch: no running sandbox (see lodge ls)\n")
    assert lodged.lodge("top", "sbx_x") == (2, b"", "lodge: sbx_x: use the key or the id of its session\n")
    assert lodged.lodge("top", "")[0] == 2
    t = Terminal("top", session, env=lodged.env(TERM="xterm"))
    t.wait("(press q to quit)")
    t.wait(session)
    t.type("q")
    assert t.end() == 0 and b"busy" not in t.seen and b"1 sandbox " in t.seen


def test_the_manual_names_members_of_the_answer(lodged, busy, session):
    with open(SOURCE + "/man/lodge-top.1.scd", encoding="utf-8") as f:
        text = f.read()
    query = re.search(r"^lodge top --json \| jq '(.*)'$", text, re.M).group(1)
    assert query == ".sessions[] | [.key // .id, .usage.cpu_pct]"
    first = json.loads(ok(lodged.lodge("top", "--json")))["sessions"][0]
    assert first["key"] == "busy" and isinstance(first["usage"]["cpu_pct"], (int, float))
    described = re.search(r"^\*--json\*\n((?:\t.*\n)+)", text, re.M).group(1).replace("\\", "")
    assert set(re.findall(r"_([a-z_]+)_", described)) == {"sessions", "usage", *first["usage"]}


def test_ls_and_top_are_one_request(lodged, busy, session):
    for words in (("ls",), ("top",), ("top", "--json")):
        with Relay(lodged, lambda line: None) as relay:
            out = ok(lodged.lodge(*words, env=lodged.env() | {"LODGE_URL": relay.url}))
            assert "busy" in out and session in out
            assert relay.asked.count(b"HTTP/1.1\r\n") == 1, relay.asked


@pytest.mark.parametrize("leave", ["q", "\x03", "signal"])
def test_top_redraws_and_restores_the_terminal(lodged, busy, leave):
    t = Terminal("top", env=lodged.env(TERM="xterm"))
    t.wait("busy")
    seen = len(t.seen)
    t.wait("\033[?1049h")
    assert wait_for(lambda: t.read(0.1) and t.seen.count(b"CPU%") >= 2)  # redrawn at least once
    assert len(t.seen) > seen and b"\033[?1049l" not in t.seen
    if leave == "signal":
        t.process.send_signal(signal.SIGTERM)
    else:
        t.type(leave)
    assert t.end() == 0 and t.seen.endswith(b"\033[?25h\033[?1049l") and t.after == t.before


def test_top_survives_a_restart_of_the_service(lodged):
    sid = lodged.client().enter(key="lasting")
    t = Terminal("top", env=lodged.env(TERM="xterm"))
    t.wait("lasting")
    lodged.crash()
    t.wait("cannot connect to lodged")
    lodged.start()
    seen = t.seen.count(b"(press q to quit)")
    assert wait_for(lambda: t.read(0.1) and t.seen.count(b"(press q to quit)") > seen)
    t.type("q")
    assert t.end() == 0
    lodged.client().delete("/v1/sessions/" + sid)


@pytest.mark.parametrize("leave", ["q", "\x03", "signal"])
def test_top_can_be_left_while_the_service_hangs(lodged, busy, leave):
    silent, asked, go_on = threading.Event(), threading.Event(), threading.Event()

    def before(_):
        if silent.is_set():
            asked.set()
            go_on.wait(180)

    with Relay(lodged, before) as relay:
        t = Terminal("top", env=lodged.env(TERM="xterm") | {"LODGE_URL": relay.url})
        t.wait("busy")
        silent.set()
        assert asked.wait(180)
        if leave == "signal":
            t.process.send_signal(signal.SIGTERM)
        else:
            t.type(leave)
        assert t.end() == 0 and t.seen.endswith(b"\033[?25h\033[?1049l") and t.after == t.before
        go_on.set()


def test_top_times_out(lodged):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        status, out, err = lodged.lodge("top", "--url", "http://127.0.0.1:%d" % silent.getsockname()[1])
    assert (status, out) == (125, b"") and err.endswith("does not respond\n"), err


def test_events_name_a_hibernation(lodged, client):
    """The words of the API for it are sleep and sealed."""
    sid = client.enter()
    try:
        assert client.post(f"/v1/sessions/{sid}/hibernate").status == 200
        for words in ([], ["--kind", "hibernating,hibernated"], ["--kind", "sleep,hibernated"]):
            status, out, _ = lodged.lodge("events", "--session", sid, *words)
            found = re.findall(rf"(\w+) +{sid}", out.decode())
            assert status == 0 and found[-2:] == ["hibernating", "hibernated"] and len(found) == (2 if words else 5), out
        record = json.loads(lodged.lodge("events", "--session", sid, "--kind", "hibernated", "--json")[1])
        assert record["kind"] == "sealed"
    finally:
        client.delete("/v1/sessions/" + sid)


def test_events(lodged, client, session):
    client.post(f"/v1/sessions/{session}/hibernate")
    status, out, _ = lodged.lodge("events", "--session", session)
    assert status == 0 and re.search(rf"create +{session}", out.decode()) and "hibernated" in out.decode()
    events = [json.loads(x) for x in lodged.lodge("events", "--json")[1].splitlines()]
    assert [e["id"] for e in events] == sorted({e["id"] for e in events})
    last = events[-1]["id"]
    assert lodged.lodge("events", "--since", str(last))[:2] == (0, b"")
    assert len(lodged.lodge("events", "--since", str(last - 1), "--json", "--all")[1].splitlines()) == 1
    assert lodged.lodge("events", "--since", "x")[0] == 2
    assert lodged.lodge("events", "--session", "nosuch")[0] == 1


@pytest.fixture
def named(client):
    sid = client.enter(key="näme")
    yield sid
    client.delete("/v1/sessions/" + sid)


def test_events_name_sessions_by_their_keys(lodged, client, session, named):
    gone = client.enter(key="soon-gone")
    client.delete("/v1/sessions/" + gone)
    rows = [x for x in lodged.lodge("events")[1].decode().splitlines()
            if any(n in x for n in ("soon-gone", session, "näme"))]
    assert named not in "".join(rows) and gone not in "".join(rows)  # a deleted session keeps its name
    assert {x[29:47].rstrip() for x in rows} >= {"create", "ready", "destroy"} and {x[47:49] for x in rows} == {"se", "nä", "so"}
    assert {x[71:76] for x in rows if " by " in x} == {"  by "}, rows  # columns line up although the name has wide bytes
    assert " näme" in lodged.lodge("events", "--session", named)[1].decode()


def test_following_events_asks_for_nothing_else(lodged, client, session):
    with Relay(lodged, lambda line: None) as relay:
        p = lodged.start_lodge("events", "-f", "-n", "1", env=lodged.env() | {"LODGE_URL": relay.url})
        try:
            assert p.stdout.readline()
            for i in range(5):
                client.delete("/v1/sessions/" + client.enter(key=f"fleeting-{i}", asleep=True))
                while f"fleeting-{i}" not in (line := p.stdout.readline().decode()) or "destroy" not in line:
                    assert line
        finally:
            p.kill()
            p.communicate()
        assert relay.asked.count(b"HTTP/1.1\r\n") == 2, relay.asked  # the newest one, and the stream


def test_the_newest_events(lodged, client, session):
    events = [json.loads(x) for x in ok(lodged.lodge("events", "--json")).splitlines()]
    last = [json.loads(x) for x in ok(lodged.lodge("events", "-n", "3", "--json")).splitlines()]
    assert last == events[-3:]
    made = [json.loads(x) for x in ok(lodged.lodge("events", "-n", "2", "--kind", "create,nonsense", "--json")).splitlines()]
    assert made == [e for e in events if e["kind"] == "create"][-2:]
    assert lodged.lodge("events", "-n", "0")[0] == 2
    assert ok(lodged.lodge("events", "--user", "nobody")) == ""


def test_events_followed_over_a_restart(lodged, client):
    session = client.enter()
    p = lodged.start_lodge("events", "-f", "--json", "--since", "0")
    try:
        seen = [json.loads(p.stdout.readline())]
        while seen[-1]["kind"] != "ready" or seen[-1]["session"] != session:
            seen.append(json.loads(p.stdout.readline()))
        lodged.crash()
        lodged.start()
        client = lodged.client()
        assert client.post(f"/v1/sessions/{session}/hibernate").status == 200
        while seen[-1]["kind"] != "sealed":
            seen.append(json.loads(p.stdout.readline()))
        ids = [e["id"] for e in seen]
        assert ids == sorted(set(ids)) and ids[0] == 1  # no duplicates; complete from the first
        stored = [e["id"] for e in client.get("/v1/events?limit=1000").json["events"]]
        assert ids == [i for i in stored if i <= ids[-1]]  # nothing is missing
        p.send_signal(signal.SIGINT)
        p.wait(180)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
        p.stderr.close()
        lodged.client().delete("/v1/sessions/" + session)


# ---- completion -----------------------------------------------------------------------------------

def names():
    text = subprocess.run([LODGE, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return re.findall(r"^  ([a-z]+)  ", text, re.M)


def complete(lodged, tmp_path, *words):
    """What bash completes for the last word."""
    script = tmp_path / "c.bash"
    script.write_bytes(subprocess.run([LODGE, "completion", "bash"], stdout=subprocess.PIPE, check=True).stdout)
    quoted = " ".join(f"'{w}'" for w in (LODGE, *words))
    text = f'. {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _lodge; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "--norc", "-uc", text], stdout=subprocess.PIPE, env=lodged.env(),
                          check=True).stdout.decode().split()


def test_bash_completion(lodged, session, tmp_path):
    assert set(complete(lodged, tmp_path, "")) == {"--help", "--version", *names()}
    assert complete(lodged, tmp_path, "snap") == ["snapshot"]
    assert complete(lodged, tmp_path, "inspect", "ses_") == [session]
    client = lodged.client()
    for key in ("plain.key", "$(touch bad)", "two words"):
        client.enter(key=key, asleep=True)
    assert [w for w in complete(lodged, tmp_path, "inspect", "") if not w.startswith("ses_")] == ["plain.key"]
    for key in ("plain.key", "%24%28touch%20bad%29", "two%20words"):
        assert client.delete("/v1/sessions/key:" + key).status == 200
    snapshot = client.post(f"/v1/sessions/{session}/snapshots", {}).json["snapshot"]["id"]
    assert complete(lodged, tmp_path, "rollback", session, "") == [snapshot]
    assert complete(lodged, tmp_path, "snapshot", "rm", "snp_") == [snapshot]
    assert complete(lodged, tmp_path, "snapshot", "rm", "--session", "ses_") == [session]
    assert client.delete("/v1/snapshots/" + snapshot).status == 204
    assert "--project" in complete(lodged, tmp_path, "ls", "--")
    assert complete(lodged, tmp_path, "ls", "--state", "hib") == ["hibernating", "hibernated"]
    for words in (("template", "inspect"), ("template", "set"), ("template", "rm", "x"), ("create", "--template"),
                  ("shell", "--template")):
        assert complete(lodged, tmp_path, *words, "ho") == ["host"], words
    for words in (("template", "create"), ("run", "--template")):  # a new name, and names of the local store
        assert complete(lodged, tmp_path, *words, "ho") == [], words
    assert set(complete(lodged, tmp_path, "key", "")) == {"ls", "create", "rm"}
    assert set(complete(lodged, tmp_path, "user", "")) == {"ls", "inspect", "quota", "set"}
    assert "--sandboxes" in complete(lodged, tmp_path, "user", "quota", "--")
    assert "--expires" in complete(lodged, tmp_path, "key", "create", "--")
    assert {"--local", "--data"} <= set(complete(lodged, tmp_path, "template", "ls", "--"))
    assert set(complete(lodged, tmp_path, "policy", "")) == {"test", "ls", "inspect", "set", "rm"}
    assert "--session" in complete(lodged, tmp_path, "snapshot", "rm", "--")
    assert complete(lodged, tmp_path, "run", "x") == []
    quiet = dict(lodged.env(), LODGE_URL="http://127.0.0.1:1")
    assert subprocess.run([LODGE, "completion", "bash"], stdout=subprocess.PIPE, env=quiet, check=True).stdout


def test_zsh_completion(tmp_path):
    text = subprocess.run([LODGE, "completion", "zsh"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert ":STATE:(none provisioning active " in text and text.count(":NAME:_lodge_templates'") == 3
    assert text.count("'*:operand:_lodge_templates' ;;") == 5
    assert text.startswith("#compdef lodge\n") and text.count("'*:operand:") > 30
    for name in names():
        assert f"\t\t\t'{name}:" in text
        assert re.search(rf"^\t'{name}( [a-z]+)?'\) _arguments", text, re.M), name
    assert subprocess.run([LODGE, "completion", "csh"], stderr=subprocess.PIPE, check=False).returncode == 2


def test_fish_completion(lodged, session, tmp_path):
    env = lodged.env(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "config"), SHELL="/usr/bin/fish")
    env["PATH"] = os.path.dirname(LODGE) + ":" + env["PATH"]
    said = subprocess.run([LODGE, "completion", "install"], stdout=subprocess.PIPE, env=env, check=True).stdout.decode()
    assert said == f"installed {tmp_path}/config/fish/completions/lodge.fish\n"

    def completed(line):
        done = subprocess.run(["fish", "-c", f"complete -C '{line}'"], stdout=subprocess.PIPE, env=env, check=True)
        return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]
    assert set(completed("lodge ")) == set(names())
    assert completed("lodge key ") == ["create", "ls", "rm"]
    assert "--expires" in completed("lodge key create --") and "--expires" not in completed("lodge key ls --")
    assert completed("lodge inspect ses_") == [session]
    assert completed("lodge create --template ho") == ["host"] and completed("lodge template rm ho") == ["host"]
    assert completed("lodge ls --state hib") == ["hibernated", "hibernating"]


@pytest.mark.parametrize("shell, below", [("bash", ".local/share/bash-completion/completions/lodge"),
                                          ("zsh", ".local/share/zsh/site-functions/_lodge")])
def test_completion_install(tmp_path, shell, below):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SHELL": "/bin/sh"}
    done = subprocess.run([LODGE, "completion", "install", shell], stdout=subprocess.PIPE, env=env, check=True)
    assert done.stdout.decode().startswith(f"installed {tmp_path / below}\n")
    assert ("fpath=(" in done.stdout.decode()) == (shell == "zsh")
    assert (tmp_path / below).read_bytes() == subprocess.run([LODGE, "completion", shell], stdout=subprocess.PIPE,
                                                             check=True).stdout
    for words in (("install",), ("install", "csh")):
        assert subprocess.run([LODGE, "completion", *words], env=env, stderr=subprocess.PIPE, check=False).returncode == 2


def test_help_and_unknown_commands():
    def say(*words):
        done = subprocess.run([LODGE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
    assert say("help", "ls") == say("ls", "--help") and say("help", "key", "create") == say("keys", "add", "--help")
    assert say("help") == say("--help")
    assert say("snapsht")[2] == 'lodge: unknown command "snapsht" (did you mean lodge snapshot? try lodge --help)\n'
    assert say("help", "exce")[2] == 'lodge: unknown command "exce" (did you mean lodge exec? try lodge --help)\n'
    assert say("zzz") == (2, "", 'lodge: unknown command "zzz" (try lodge --help)\n')


def test_every_command_has_a_page():
    """Its options are checked by test_man.py."""
    pages = ""
    for name in os.listdir(os.path.join(SOURCE, "man")):
        with open(os.path.join(SOURCE, "man", name), encoding="utf-8") as f:
            pages += f.read()
    main = open(os.path.join(SOURCE, "man", "lodge.1.scd"), encoding="utf-8").read()
    for name in names():
        assert f"*{name}*" in main or f"*lodge {name}*" in main, name
        assert f"*lodge {name}*" in pages, name
