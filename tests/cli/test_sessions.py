# SPDX-License-Identifier: Apache-2.0
"""lodge new, ls, show, rm, pause, unpause, hibernate, resume, extend."""
import json
import os
import re
import socket
import subprocess

import pytest

from client import quote
from lodge import LODGE, failed, ok
from terminal import Terminal


@pytest.fixture
def alice(client):
    sid = client.enter(key="alice", user="ada", project="blue")
    yield sid
    client.delete("/v1/sessions/" + sid)


def test_new(lodged, client):
    status, out, _ = lodged.lodge("new", "--key", "n", "--user", "bob", "--idle", "10m", "--lifetime", "2h",
                                  "--delete-after", "7d")
    sid = out.decode().strip()
    try:
        record = client.session(sid)
        assert status == 0 and record["key"] == "n" and record["user"] == "bob"
        assert (record["idle_timeout_ms"], record["lifetime_ms"], record["max_lifetime_ms"]) == (600000, 7200000, 18000000)
        assert record["delete_after_ms"] == 7 * 86400000
        answer = json.loads(lodged.lodge("new", "--key", "n", "--json")[1])
        assert answer["outcome"] == "reused" and answer["session"]["id"] == sid
        assert lodged.lodge("new", "--key", "n") == lodged.lodge("new", "n") == (0, out, "")
        for words in (("n", "--key", "n"), ("n", "m")):
            assert lodged.lodge("new", *words)[:2] == (2, b""), words
        status, again, err = lodged.lodge("new", "--key", "n", "--idle", "5m")
        assert (status, again) == (0, out)
        assert err == "lodge: n already exists; --idle was ignored (use `lodge set` to change it)\n"
        _, _, err = lodged.lodge("new", "n", "--idle", "5m", "--memory", "64M", "--cpus", "0.5", "--template", "empty", "--user", "bob")
        assert err == ("lodge: n already exists; --idle, --memory and --cpus were ignored (use `lodge set` to change them)\n"
                       "lodge: n already exists; --template was ignored (fixed when it was created)\n")
        assert lodged.lodge("new", "n", "--idle", "10m", "--user", "bob") == (0, out, "")  # what it has
        assert lodged.lodge("set", "n", "--idle", "5m", "--memory", "64M", "--max-lifetime", "1h") == (
            0, f"n ({sid}): changed\n".encode(), f"lodge: n ({sid}): --lifetime is 60m now, because of --max-lifetime\n")
        assert lodged.lodge("new", "n", "--idle", "5m", "--memory", "64M") == (0, out, "")
        assert lodged.lodge("set", "n")[0] == 2
        status, _, err = lodged.lodge("set", "n", "--idle", "7d")
        assert status == 1 and "--idle: must be at most 1d (idle_timeout_max)" in err
    finally:
        client.delete("/v1/sessions/" + sid)
    status, out, err = lodged.lodge("new", "--json", "--memory", "64M", "--cpus", "0.5", "--pids", "50", "--disk", "100M",
                                    "--file-size", "20M")
    answer = json.loads(out)["session"]
    client.delete("/v1/sessions/" + answer["id"])
    assert (status, err) == (0, "") and {
        "memory_bytes": 64 << 20, "cpus": 0.5, "pids": 50, "disk_bytes": 100 << 20, "file_bytes": 20 << 20}.items() <= answer["limits"].items()
    status, _, err = lodged.lodge("new", "--memory", "much")
    assert status == 2 and "--memory" in err
    for words, why in ((("--idle", "7d"), "--idle: must be at most 1d (idle_timeout_max)"),
                       (("--lifetime", "30d"), "--lifetime: must be at most 5h (lifetime_max)"),
                       (("--max-lifetime", "30d"), "--max-lifetime: must be at most 5h (lifetime_max)")):
        status, out, err = lodged.lodge("new", *words)
        assert (status, out) == (1, b"") and why in err
    status, _, err = lodged.lodge("new", "--idle", "soon")
    assert status == 2 and "--idle" in err
    status, _, err = lodged.lodge("new", "--template", "nosuch")
    assert status == 1 and "nosuch" in err


def test_ls(lodged, client, alice, session):
    status, out, _ = lodged.lodge("ls")
    lines = out.decode().splitlines()
    assert status == 0 and lines[0].split() == ["SESSION", "USER", "STATE", "AGE", "IDLE", "MEMORY", "NEXT", "PROJECT"]
    row = next(line for line in lines if line.startswith("alice"))
    assert row.split()[1:3] == ["ada", "active"] and row.split()[-1] == "blue" and b"\033" not in out
    assert any(line.startswith(session) for line in lines)
    listed = json.loads(lodged.lodge("ls", "--json")[1])["sessions"]
    assert {alice, session} <= {s["id"] for s in listed}
    assert lodged.lodge("ls", "-q", "--user", "ada")[1].decode().split() == [alice]
    assert lodged.lodge("ls", "-q", "--project", "blue", "--state", "active")[1].decode().split() == [alice]
    assert lodged.lodge("ls", "-q", "--state", "hibernated")[1] == b""
    status, _, err = lodged.lodge("ls", "--state", "asleep")
    assert status == 1 and "asleep" in err and "hibernated" in err
    assert lodged.lodge("ls", "--nosuch")[0] == 2
    assert lodged.lodge("ls", "operand")[0] == 2


def test_ls_shows_what_happens_next(lodged, client):
    sid = client.enter(idle_timeout_ms=3600000, delete_after_ms=172800000)

    def shown():
        return next(line for line in ok(lodged.lodge("ls")).splitlines() if line.startswith(sid))
    assert re.search(r" hibernates in \d+(m|h|s)\b", shown()), shown()
    assert client.post(f"/v1/sessions/{sid}/hibernate").status == 200
    assert re.search(r" deleted in \d+[dh]\b", shown()), shown()
    client.patch("/v1/sessions/" + sid, {"delete_after_ms": 0})
    assert " in " not in shown(), shown()
    client.delete("/v1/sessions/" + sid)


def test_ls_of_other_tenants(lodged, client, alice):
    secret = client.post("/v1/keys", {"tenant": "guests", "scope": "tenant"}).json["secret"]
    guest = lodged.client(secret)
    sid = guest.enter(key="visitor", asleep=True)
    try:
        assert ok(lodged.lodge("ls", "-q", "--tenant", "guests")).split() == [sid]
        assert sid not in ok(lodged.lodge("ls", "-q"))
        assert {sid, alice} <= set(ok(lodged.lodge("ls", "-q", "--all-tenants")).split())
        lines = [line.split() for line in ok(lodged.lodge("ls", "--all-tenants")).splitlines()]
        assert lines[0][:2] == ["TENANT", "SESSION"]
        assert ["guests", "visitor"] in [line[:2] for line in lines] and ["default", "alice"] in [line[:2] for line in lines]
        env = dict(lodged.env(), LODGE_API_KEY=secret)
        failed(lodged.lodge("ls", "--tenant", "default", env=env), "--tenant: ", 'scope "admin"')
        failed(lodged.lodge("ls", "--all-tenants", env=env), "--all-tenants: ", 'scope "admin"')
    finally:
        guest.delete("/v1/sessions/" + sid)


def test_ls_of_many_pages(lodged, client):
    made = [client.enter(asleep=True, project="many") for _ in range(7)]
    try:
        assert lodged.lodge("ls", "-q", "--project", "many")[1].decode().split() == made
    finally:
        for sid in made:
            client.delete("/v1/sessions/" + sid)


def test_nothing_to_list(lodged, client, session):
    """A terminal shows a hint below the header; other outputs have the header alone, and JSON has an empty list."""
    for words, said in (
            (("ls", "--user", "nosuch"), "no session matches (see lodge ls without options)"),
            (("ps", session), "no commands (run one: lodge exec)"),
            (("snapshots", session), "no snapshots (take one: lodge snapshot)"),
            (("policy", "ls"), "no policies (create one: lodge policy set)"),
            (("projects", "--user", "nosuch"), "no projects (create one: lodge project create)"),
            (("users", "--search", "nosuch"), "no users (a session with --user has one)"),
            (("keys", "--tenant", "nosuch"), "no keys (create one: lodge key create)")):
        t = Terminal(*words, env=lodged.env())
        assert t.end() == 0 and t.seen.count(b"\n") == 2 and said.encode() in t.seen, t.seen
        status, out, err = lodged.lodge(*words)
        assert (status, out.count(b"\n"), err) == (0, 1, ""), words
        t = Terminal(*words, "--json", env=lodged.env())
        assert t.end() == 0 and list(json.loads(t.seen).values())[0] == []
    client.run(session, "true")
    t = Terminal("ps", session, env=lodged.env())
    assert t.end() == 0 and b"no running command; -a lists the 1 that ended" in t.seen
    client.delete("/v1/sessions/" + session)
    t = Terminal("ls", env=lodged.env())
    assert t.end() == 0 and b"no sessions (create one: lodge create)" in t.seen


def test_control_characters_are_not_printed_on_a_terminal(lodged, client):
    name = "\u001b]0;evil\u0007\u202ename\u009b31m"
    sid = client.enter(key=name, user="m\rx")
    try:
        for words in (("ls",), ("show", sid), ("users",), ("pause", sid)):
            t = Terminal(*words, env=lodged.env(NO_COLOR="1"))
            assert t.end() == 0, t.seen
            text = t.seen.replace(b"\r\n", b"\n")
            assert not any(c in text for c in (b"\033", b"\007", b"\r", "\u202e".encode(), "\u009b".encode())), text
            assert b"?]0;evil??name?31m" in text or words == ("users",)
        assert json.loads(lodged.lodge("show", sid, "--json")[1])["session"]["key"] == name
        t = Terminal("show", sid, "--json", env=lodged.env())
        assert t.end() == 0 and json.loads(t.seen)["session"]["key"] == name and not controls(t.seen), t.seen
    finally:
        client.delete("/v1/sessions/" + sid)


def controls(text):
    return [c for c in text.decode().replace("\r\n", "") if ord(c) < 32 or 127 <= ord(c) < 160]


@pytest.mark.parametrize("words", [["run", "-c"], ["exec", "one", "-c"], ["logs", "one"], ["events"]])
def test_json_is_escaped_on_a_terminal(lodged, client, tmp_path, words):
    """The values stay equal, but no character controls the terminal."""
    said = "a\u009b31mb\u007fc\u0080d\u00a0e\u00e4"
    sid = client.enter(key="one")
    client.run(sid, f"printf %s '{said}'")
    client.delete("/v1/sessions/" + client.enter(key="two") + "?reason=" + quote(said))
    more = [f"printf %s '{said}'"] if words[-1] == "-c" else []
    t = Terminal(words[0], "--json", *words[1:], *more, env=lodged.env(LODGE_HOME=str(tmp_path / "home")), only_output=True)
    assert t.end() == 0 and not controls(t.seen), t.seen
    assert "\\u009b31mb\\u007fc\\u0080d\u00a0e\u00e4" in t.seen.decode()
    documents = t.seen.splitlines() if words == ["events"] else [t.seen]
    assert said in [a.get("stdout") or (a.get("cause") or {}).get("text") for a in map(json.loads, documents)]
    client.delete("/v1/sessions/" + sid)


def test_colours_and_width(lodged, client):
    sid = client.enter(key="k" * 120, user="u" * 120)
    try:
        t = Terminal("ls", env=lodged.env(TERM="xterm"), cols=72)
        assert t.end() == 0 and b"\033[32mactive" in t.seen and b"\xe2\x80\xa6" in t.seen
        t = Terminal("ls", env=lodged.env(TERM="xterm", NO_COLOR="1"), cols=72)
        assert t.end() == 0 and b"\033" not in t.seen
        assert all(len(line.decode()) <= 72 for line in t.seen.split(b"\r\n"))
        assert b"k" * 120 in lodged.lodge("ls")[1]  # without a terminal nothing is truncated
    finally:
        client.delete("/v1/sessions/" + sid)


def test_show(lodged, client, alice):
    client.run(alice, "echo one")
    client.post(f"/v1/sessions/{alice}/exec", {"argv": ["sh", "-c", "exit 3"]})
    status, out, _ = lodged.lodge("show", "alice")
    text = out.decode()
    assert status == 0 and alice in text and "hibernates in 30m, after 30m without use" in text
    assert "memory 512M, disk 1.0G, file 1.0G, 256 processes" in text
    assert lodged.lodge("set", "alice", "--file-size", "2G")[0] == 0
    assert ", file 2.0G, " in lodged.lodge("show", "alice")[1].decode()
    assert "echo one" in text and "exited 3" in text and "sh -c exit 3" in text
    assert re.search(r" (1 process|\d\d+ processes|[02-9] processes), ", text)
    answer = json.loads(lodged.lodge("show", "alice", "--json")[1])
    assert answer["session"]["id"] == alice and answer["stats"]["pids"] >= 0 and len(answer["execs"]) == 2
    client.post(f"/v1/sessions/{alice}/hibernate")
    status, out, _ = lodged.lodge("show", alice)
    assert status == 0 and b"requested by" in out and b"hibernates after 30m without use" in out
    assert json.loads(lodged.lodge("show", "alice", "--json")[1])["stats"] is None
    client.patch("/v1/sessions/" + alice, {"on_idle": "destroy"})
    assert b"is deleted " in lodged.lodge("show", alice)[1]
    status, _, err = lodged.lodge("show", "nosuch")
    assert status == 1 and "nosuch" in err


def test_show_says_how_the_last_sandbox_ended(lodged, client, alice):
    client.post(f"/v1/sessions/{alice}/exec", {"command": "sleep 1000", "background": True})
    lodged.kill_sandbox(client.session(alice))
    client.run(alice, "true")
    said = r"^last sandbox +ended \d+(ms|s) ago: its init was killed by signal 9 \(not by lodge\), with 1 command running$"
    assert re.search(said, lodged.lodge("show", "alice")[1].decode(), re.M), lodged.lodge("show", "alice")
    client.post(f"/v1/sessions/{alice}/hibernate")
    assert re.search(r"^last sandbox +ended \S+ ago: it was ended on request by ", lodged.lodge("show", "alice")[1].decode(), re.M)


def test_pause_hibernate_resume_and_extend(lodged, client, alice, session):
    assert lodged.lodge("pause", "alice")[:2] == (0, f"alice ({alice}): paused\n".encode())
    assert client.session(alice)["paused"]
    assert lodged.lodge("ls", "-qs", "paused")[1].decode().split() == [alice]
    assert lodged.lodge("unpause", "key:alice")[0] == 0
    assert lodged.lodge("ls", "-qs", "paused")[:2] == (0, b"")
    status, out, _ = lodged.lodge("hibernate", "alice", session, "--json")
    assert status == 0 and [json.loads(a)["session"]["state"] for a in out.splitlines()] == ["hibernated"] * 2
    assert json.loads(lodged.lodge("resume", "alice", "--json")[1])["outcome"] == "resumed"
    status, out, _ = lodged.lodge("extend", "--by", "40m", "alice")
    assert status == 0 and b"not extended: the maximum lifetime of 5h is reached (lifetime_max); hibernates " in out
    assert lodged.lodge("set", "--lifetime", "1h", "alice")[0] == 0
    assert b", extended by 40m; " in lodged.lodge("extend", "--by", "40m", "alice")[1]
    said = rb": ends [^;]* \(in [^;]*\), extended by only 3h[^;]*: the maximum lifetime of 5h is reached \(lifetime_max\); "
    assert re.search(said, lodged.lodge("extend", "--by", "9d", "alice")[1])
    assert json.loads(lodged.lodge("extend", "alice", "--json")[1])["session"]["id"] == alice
    status, out, err = lodged.lodge("pause", "nosuch", "alice")
    assert status == 1 and b"alice" in out and err.startswith("lodge: nosuch: ")
    assert lodged.lodge("extend", "--by", "x", "alice")[0] == 2
    assert lodged.lodge("pause")[0] == 2


def test_rm(lodged, client):
    sids = [client.enter(key=f"rm{i}", user="ada") for i in range(3)]
    status, out, err = lodged.lodge("rm", "rm0")  # nobody can answer a question there
    assert (status, out) == (2, b"") and "pass --yes" in err and client.session(sids[0])
    status, out, err = lodged.lodge("rm", "--yes", "rm0", "nosuch", "--reason", "no need")
    assert status == 1 and out.decode().startswith(f"rm0 ({sids[0]}): deleted (user ada; ") and "no need" in out.decode()
    assert "nosuch" in err and client.get("/v1/sessions/" + sids[0]).status == 410
    answer = json.loads(lodged.lodge("rm", "--yes", sids[1], "--json")[1])
    assert answer["tombstone"]["session"] == sids[1]
    status, out, _ = lodged.lodge("rm", "--yes", "--json", "nosuch")
    assert status == 1 and "no session" in json.loads(out)["error"]["message"]
    status, out, _ = lodged.lodge("rm", "--yes", "--json", "nosuch", "neither")
    assert status == 1 and [json.loads(line)["operand"] for line in out.splitlines()] == ["nosuch", "neither"]
    t = Terminal("rm", "rm2", env=lodged.env())
    t.wait("[y/N]")
    t.type("n\n")
    assert t.end() == 1 and b"cancelled: no session was deleted" in t.seen and client.session(sids[2])
    t = Terminal("rm", "rm2", env=lodged.env())
    t.wait("Delete rm2 and its files?")
    t.type("y\n")
    assert t.end() == 0 and client.get("/v1/sessions/" + sids[2]).status == 410


def test_an_unreachable_service_and_wrong_keys(lodged, tmp_path):
    status, _, err = lodged.lodge("ls", "--url", f"unix:{tmp_path}/nosuch")
    assert status == 125 and err.count("\n") == 1
    status, _, err = lodged.lodge("ls", env=dict(lodged.env(), LODGE_API_KEY="lk_" + "0" * 64))
    assert status == 1 and "lodge login" in err
    for words, status in ((("exec", "x", "true"), 125), (("enter", "x"), 125), (("login",), 125), (("ls",), 1)):
        for key, text in (("lk_" + "0" * 64, "unknown API key"), ("", "missing API key")):
            env = dict(lodged.env(), LODGE_API_KEY=key, LODGE_URL=f"http://{lodged.host}:{lodged.port}", HOME=str(tmp_path))
            if words == ("login",) and not key:
                continue  # login asks for a key
            got = lodged.lodge(*words, env=env)
            assert got[0] == status and got[2] == (
                f"lodge: {text} (use `lodge login`, --key-file or LODGE_API_KEY)\n"), (words, got)


def test_a_service_that_does_not_respond(lodged):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = lodged.env() | {"LODGE_URL": "http://127.0.0.1:%d" % silent.getsockname()[1]}
        waits = [lodged.start_lodge(*words, env=env) for words in (("exec", "s", "true"), ("new",), ("events", "-f"))]
        try:
            asked = [lodged.start_lodge(*words, env=env)
                     for words in (("ls",), ("show", "s"), ("status",), ("keys",), ("events",))]
            for p in asked:
                out, err = p.communicate(timeout=180)
                assert (p.returncode, out, err) == (125, b"", b"lodge: lodged does not answer\n"), p.args
            assert [p.poll() for p in waits] == [None] * 3  # these have no time limit
        finally:
            for p in waits:
                p.kill()
                p.communicate()


def test_unknown_sessions_get_a_hint(lodged, tmp_path):
    (tmp_path / "f").write_text("f")
    said = "lodge: no session with key 'nosuch' (%s)\n"
    for words in (("exec", "nosuch", "true"), ("cp", str(tmp_path / "f"), "nosuch:")):
        assert lodged.lodge(*words)[2] == said % "create it: lodge create nosuch", words
    for words in ("rm --yes", "export", "fork", "show", "snapshot", "hibernate", "ps"):  # these need an existing session
        assert lodged.lodge(*words.split(), "nosuch")[2] == said % "see lodge ls", words
    for key in ("$(no body)", "ses_x", "key:x", "-x"):
        assert "create it" not in lodged.lodge("exec", "key:" + key, "true")[2], key
    assert lodged.lodge("exec", "k" * 226, "true")[2].endswith("kkk'\n")  # the message has a truncated key, which cannot be pasted
    assert lodged.lodge("show", "ses_x")[2] == "lodge: no session ses_x (if that is a key: key:ses_x)\n"
    assert "key:" not in lodged.lodge("show", "ses_" + "0" * 20)[2]


@pytest.mark.parametrize("key", ["ses_abc", "key:foo"])
def test_keys_that_look_like_references_are_refused(lodged, client, alice, key):
    for words in (("new", "--key", key), ("new", key), ("fork", "alice", "--key", key), ("enter", "key:" + key, "--", "true")):
        status, out, err = lodged.lodge(*words)
        assert (status, out) == (2, b"") and f'"{key}" cannot be a key' in err, words
    sid = client.enter(key=key)  # other clients may have created one
    assert lodged.lodge("show", "key:" + key)[0] == 0
    client.delete("/v1/sessions/" + sid)


@pytest.mark.parametrize("words, said", [
    (["new", "--memory", "1B"], "--memory: must be between"), (["new", "--cpus", "9999"], "--cpus: must be between 0.01 and 1024 cpus"),
    (["new", "--pids", "4000000000"], "--pids: must be between"), (["new", "--disk", "1B"], "--disk: must be between"),
    (["new", "--key", "k" * 300], "--key: must be 1 to 255 bytes"), (["new", "--policy", "nosuch"], "--policy: no policy"),
    (["enter", "--memory", "1B", "alice2"], "--memory: must be between"), (["extend", "alice", "--by", "0"], "--by: must be between"),
    (["extend", "alice", "alice", "--by", "0"], "alice: --by: must be between"), (["keys", "add", "--scope", "x"], "--scope: "),
    (["exec", "alice", "--timeout", "60d", "true"], "--timeout: must be between"),
    (["policy", "set", "x", "--on-exceed", "x"], "--on-exceed: "), (["policy", "set", "x", "--allow", "a b"], "--allow: "),
    (["enter", "k" * 300], "key: must be 1 to 255 bytes")])  # not the value of an option
def test_errors_name_the_option(lodged, alice, words, said):
    status, _, err = lodged.lodge(*words)
    assert status in (1, 125) and err.startswith("lodge: " + said), err


def test_a_closed_pipe_ends_events(lodged, client, session):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([LODGE, "events", "--json"], stdout=writer, stderr=subprocess.PIPE, env=lodged.env(), timeout=180,
                          check=False)
    os.close(writer)
    assert done.returncode == 141 and done.stderr == b"", done


def test_show_after_an_extension(lodged, client):
    sid = client.enter(lifetime_ms=3600_000, max_lifetime_ms=4 * 3600_000)
    try:
        assert "when its sandbox is 60m old (10s earlier unless a command runs); can be extended to 4h" in lodged.lodge("show", sid)[1].decode()
        assert lodged.lodge("extend", sid, "--by", "30d")[0] == 0
        shown = lodged.lodge("show", sid)[1].decode()
        assert "when its sandbox is 4h old (10s earlier unless a command runs)\n" in shown, shown
    finally:
        client.delete("/v1/sessions/" + sid)
