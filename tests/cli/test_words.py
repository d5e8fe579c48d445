# SPDX-License-Identifier: Apache-2.0
"""The words of the command line: other names for commands, units, and what --json prints."""
import json
import re

import pytest

from lodge import ok


@pytest.fixture
def two(client):
    ids = [client.enter(key=key, user="ada") for key in ("one", "two")]
    yield ids
    for sid in ids:
        client.delete("/v1/sessions/" + sid)


# ---- names ------------------------------------------------------------------------------------


def test_groups_are_singular_and_list_by_default(lodged, client, two):
    for group in ("template", "snapshot", "key", "user", "policy", "team"):
        assert ok(lodged.lodge(group)).splitlines()[0] == ok(lodged.lodge(group, "ls")).splitlines()[0], group
        assert list(json.loads(ok(lodged.lodge(group, "--json")))) == list(json.loads(ok(lodged.lodge(group, "ls", "--json"))))
        assert lodged.lodge(group, "nosuch" if group != "snapshot" else "--nosuch")[0] == 2
    assert ok(lodged.lodge("project", "--user", "ada")) == ok(lodged.lodge("project", "ls", "--user", "ada"))


def test_old_names_work(lodged, client):
    sid = ok(lodged.lodge("new", "old", "-u", "ada", "-p", "site")).strip()
    for old, new in ((("show", "old"), ("inspect", "old")), (("keys",), ("key", "ls")), (("templates",), ("template",)),
                     (("users", "show", "ada"), ("user", "inspect", "ada")), (("ls", "-u", "ada"), ("ls", "--user", "ada")),
                     (("snapshots", "old"), ("snapshot", "ls", "old")), (("snapshots",), ("snapshot",)),
                     (("templates", "show", "host"), ("template", "inspect", "host"))):
        # the same, but for ages and usage, which go on
        was, now = (re.sub(r"[\d.]+ ?(ms|[smhKMG])?\b", "#", ok(lodged.lodge(*words))).split() for words in (old, new))
        assert was == now, old
    assert "hibernated" in ok(lodged.lodge("hibernate", "old")) and client.session(sid)["state"] == "hibernated"
    assert "active" in ok(lodged.lodge("resume", "old"))
    assert "hibernated" in ok(lodged.lodge("stop", "old")) and "active" in ok(lodged.lodge("start", "old"))
    snapshot = ok(lodged.lodge("snapshot", "--name", "before", "old")).strip()
    assert ok(lodged.lodge("snapshot", "create", "-n", "after", "old")).startswith("snp_")
    assert ok(lodged.lodge("snapshots", "-q", "old")).split()[-1].startswith("snp_")
    assert json.loads(ok(lodged.lodge("snapshot", "inspect", snapshot, "--json")))["snapshot"]["name"] == "before"
    assert ok(lodged.lodge("snapshot", "inspect", snapshot)).split()[:2] == ["snapshot", snapshot]
    assert ok(lodged.lodge("rm", "--yes", "old")).startswith("old (")


def test_words_of_docker_and_e2b(lodged, client, two):
    assert client.post(f"/v1/sessions/{two[1]}/hibernate").status == 200
    running, all_of_them = ok(lodged.lodge("ps", "-q")).split(), ok(lodged.lodge("ps", "-a", "-q")).split()
    assert two[0] in running and two[1] not in running and set(two) <= set(all_of_them)
    assert ok(lodged.lodge("sandbox", "list", "-q")).split() == all_of_them == ok(lodged.lodge("session", "ls", "-q")).split()
    assert ok(lodged.lodge("images", "-q")) == ok(lodged.lodge("template", "-q"))
    assert ok(lodged.lodge("commit", "one")).startswith("snp_")
    for word, says in (("pull", "lodge template create"), ("build", "--snapshot"), ("restart", "lodge stop"),
                       ("volume", "lodge run -v"), ("network", "no network"), ("version", "lodge --version")):
        status, out, err = lodged.lodge(word, "x")
        assert (status, out) == (2, b"") and err.startswith(f"lodge: there is no lodge {word}: ") and says in err, err
    assert ok(lodged.lodge("delete", "--yes", "one")).startswith("one (")


@pytest.mark.parametrize("words, says", [
    (("run", "--mount", "type=bind,src=/a,dst=/b", "true"), "there is no option --mount: use -v HOSTDIR:PATH"),
    (("run", "--env-file", "x", "true"), "there is no option --env-file: name each variable: -e NAME=VALUE"),
    (("exec", "--env-file=x", "one", "true"), "there is no option --env-file: name each variable: -e NAME=VALUE"),
    (("run", "--entrypoint", "sh", "true"), "there is no option --entrypoint: write the program as the first word"),
    (("run", "--privileged", "true"), "for root inside: --root"),
    (("create", "--privileged", "x"), "use a template with --root"),
    (("run", "--read-only", "true"), "there is no option --read-only: a sandbox writes only to files of its own"),
    (("create", "--label", "a=b"), "there is no option --label: use --user and --project"),
    (("create", "--name", "web"), "there is no option --name: the name of a session is its KEY: lodge create NAME"),
    (("create", "-v", ".:/x"), "there is no option -v: sessions mount no directories of the host"),
    (("inspect", "--format", "{{.State}}", "one"), "there is no option --format: use --json"),
    (("inspect", "-f", "{{.State}}", "one"), "there is no option -f: use --json"),
    (("ps", "--filter", "x"), "there is no option --filter: use --state, --user or --project"),
    (("ls", "--filter", "x"), "there is no option --filter: use --state, --user or --project"),
    (("stop", "-t", "10", "one"), "there is no option -t: lodge stop waits for no process"),
    (("rm", "--all"), "there is no option --all: name the sessions: lodge rm --yes $(lodge ls -q)"),
    (("export", "-o", "x.tar", "one"), "there is no option -o: the archive is standard output: add > FILE"),
    (("export", "one", "x.tar"), "export: the archive is standard output: add > x.tar"),
    (("import", "-i", "x.tar"), "there is no option -i: the archive is standard input: add < FILE"),
    (("import", "x.tar"), "import: the archive is standard input: add < x.tar"),
    (("run", "-v", "/etc/passwd:/f", "true"), "-v: /etc/passwd: only directories can be mounted, and this is a file"),
    (("run", "-v", "/tmp:/vol:rw,z", "true"), '-v /tmp:/vol:rw,z: mode "rw,z" must be ro or rw'),
    (("system", "prune"), "there is no lodge system: instead of system prune use lodge prune"),
    (("system", "df"), "instead of system df lodge status"),
    (("history", "one"), "there is no lodge history: lodge ps -a"),
])
def test_options_of_docker_give_a_hint(lodged, words, says):
    status, out, err = lodged.lodge(*words)
    assert (status, out) == (2, b"") and says in err and err.count("\n") == 1, err


def test_options_of_docker(lodged, client, two, tmp_path):
    assert lodged.lodge("create", "limited", "-m", "64M", "--pids-limit", "33")[0] == 0
    limits = json.loads(ok(lodged.lodge("inspect", "limited", "--json")))["session"]["limits"]
    assert (limits["memory_bytes"], limits["pids"]) == (64 << 20, 33)
    _, _, err = lodged.lodge("create", "limited", "--pids-limit", "34")
    assert "--pids was ignored" in err, err
    assert ok(lodged.lodge("rm", "-f", "limited")).startswith("limited (")
    here = lodged.env(LODGE_DATA=str(tmp_path))
    assert lodged.lodge("run", "-m", "9", "true", env=here)[2] == "lodge: -m 9: needs a unit, as 9M or 9G (9B: bytes)\n"
    assert lodged.lodge("run", "-m", "64M", "--pids-limit", "40", "true", env=here)[0] == 0
    assert lodged.lodge("run", "--pids-limit", "0", "true", env=here)[0] == 2
    assert lodged.lodge("rm", "--force", "two")[0] == 0


def test_an_operand_that_belongs_to_an_option(lodged, client, two):
    for words in (("snapshot", "one", "clean"), ("snapshot", "create", "one", "clean"), ("commit", "one", "clean")):
        assert lodged.lodge(*words) == (2, b"", 'lodge: snapshot create: no session "clean" (did you mean --name clean?)\n')
    assert client.get(f"/v1/sessions/{two[0]}/snapshots").json["snapshots"] == []
    assert len(ok(lodged.lodge("snapshot", "one", "two")).split()) == 2
    assert lodged.lodge("extend", "one", "1h") == (2, b"", 'lodge: extend: no session "1h" (did you mean --by 1h?)\n')
    assert lodged.lodge("extend", "one", "--by", "1h")[0] == 0 and lodged.lodge("extend", "one", "two")[0] == 0
    status, out, err = lodged.lodge("extend", "one", "nosuch")
    assert status == 1 and out.startswith(b"one (") and err.startswith("lodge: nosuch: "), (out, err)


def test_a_script_that_was_taken_for_a_program(lodged, two, tmp_path):
    hint = "lodge: to run it as a script: lodge exec one -c SCRIPT\n"
    for script in ("echo hi; exit 3", "true&&false", "echo $HOME"):
        status, out, err = lodged.lodge("exec", "one", script)
        assert (status, out) == (127, b"") and err.endswith(": not found\n" + hint), err
    assert lodged.lodge("exec", "-d", "one", "a b")[2].endswith(hint)
    for words in (("nosuch",), ("no such", "word")):
        assert lodged.lodge("exec", "one", *words)[2].count("\n") == 1
    here = lodged.env(LODGE_DATA=str(tmp_path))
    assert lodged.lodge("run", "echo hi; exit 3", env=here) == (
        127, b"", "lodge: echo hi; exit 3: not found (to run it as a script: lodge run -c SCRIPT)\n")
    assert "script" not in lodged.lodge("run", "no such", "word", env=here)[2]


def test_templates_of_this_machine(lodged, tmp_path):
    """--local names them; without a service they are meant anyway."""
    (tmp_path / "root/bin").mkdir(parents=True)
    (tmp_path / "root/bin/sh").write_text("#!/none\n")
    (tmp_path / "root/bin/sh").chmod(0o755)
    here = {k: v for k, v in lodged.env(LODGE_DATA=str(tmp_path / "data"), HOME=str(tmp_path)).items()
            if k not in ("LODGE_URL", "LODGE_API_KEY")}
    both = dict(lodged.env(), LODGE_DATA=str(tmp_path / "data"))
    for env, more in ((here, ()), (both, ("--local",)), (both, ("--data", str(tmp_path / "data")))):
        assert lodged.lodge("template", "add", "mine", str(tmp_path / "root"), *more, env=env)[0] == 0
        assert ok(lodged.lodge("template", "-q", *more, env=env)).split() == ["host", "mine"]
        assert "mine" not in ok(lodged.lodge("template", "-q", env=both)).split()
        assert lodged.lodge("template", "rm", "--yes", "mine", *more, env=env)[0] == 0
    status, _, err = lodged.lodge("template", "inspect", "host", env=here)
    assert status == 125 and "cannot find lodged" in err


# ---- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, says", [
    (("create", "x", "--idle", "5"), "--idle 5: needs a unit, as 5s, 5m or 5h"),
    (("create", "x", "--memory", "512"), "--memory 512: needs a unit, as 512M or 512G (512B: bytes)"),
    (("exec", "--timeout", "1.5", "one", "true"), "--timeout 1.5: needs a unit, as 1.5s, 1.5m or 1.5h"),
    (("run", "--timeout", "10", "true"), "--timeout 10: needs a unit, as 10s, 10m or 10h"),
    (("run", "--memory", "64", "true"), "--memory 64: needs a unit, as 64M or 64G (64B: bytes)"),
    (("prune", "--older-than", "7"), "--older-than 7: needs a unit, as 7s, 7m or 7h"),
    (("template", "set", "x", "--memory", "9"), "--memory 9: needs a unit, as 9M or 9G (9B: bytes)"),
])
def test_times_and_sizes_need_a_unit(lodged, two, words, says):
    assert lodged.lodge(*words) == (2, b"", f"lodge: {says}\n")


def test_zero_and_bytes_need_none(lodged, client, two):
    assert ok(lodged.lodge("exec", "one", "--timeout", "0", "echo", "x")) == "x\n"
    assert lodged.lodge("set", "one", "--memory", "67108864B")[0] == 0
    assert client.session(two[0])["limits"]["memory_bytes"] == 64 << 20


# ---- json -------------------------------------------------------------------------------------


def rows(out):
    return [json.loads(line) for line in out.decode().splitlines()]


def test_json_is_one_object_for_one_operand_and_a_line_for_each_of_several(lodged, two):
    for words in (("inspect",), ("pause",), ("unpause",), ("extend",)):
        status, out, _ = lodged.lodge(*words, "one", "--json")
        assert status == 0 and [r["session"]["id"] for r in rows(out)] == two[:1], words
        status, out, _ = lodged.lodge(*words, "--json", "one", "two")
        assert status == 0 and [r["session"]["id"] for r in rows(out)] == two, words
    status, out, err = lodged.lodge("inspect", "--json", "one", "nosuch", "two")
    first, failed, last = rows(out)
    assert status == 1 and [first["session"]["id"], last["session"]["id"]] == two and err.startswith("lodge: nosuch: ")
    assert failed["operand"] == "nosuch" and failed["error"]["code"] == "NOT_FOUND" and "no session" in failed["error"]["message"]
    made = [r["snapshot"]["id"] for r in rows(lodged.lodge("snapshot", "create", "one", "two", "--json")[1])]
    assert rows(lodged.lodge("snapshot", "rm", "--yes", "--json", *made)[1]) == [{"removed": i} for i in made]
    key = json.loads(ok(lodged.lodge("key", "create", "--json")))["key"]["id"]
    assert json.loads(ok(lodged.lodge("key", "rm", "--yes", "--json", key)))["key"]["id"] == key


@pytest.mark.parametrize("words, status, code", [
    (("inspect", "nosuch"), 1, "NOT_FOUND"), (("key", "rm", "--yes", "key_nosuch"), 1, "NOT_FOUND"),
    (("exec", "nosuch", "true"), 125, "NOT_FOUND"), (("create", "x", "--idle", "5"), 2, "INVALID"),
    (("ls", "--state", "nosuch"), 1, "INVALID"), (("rm", "one"), 2, "INVALID"), (("ls", "x"), 2, "INVALID"),
    (("ls", "--nosuch"), 2, "INVALID"),
    (("ls", "--url", "unix:/nonexistent/s"), 125, "UNAVAILABLE"), (("run", "--template", "nosuch", "true"), 125, "NOT_FOUND"),
    (("run", "/nosuch"), 127, "NOT_FOUND"),
])
def test_json_of_a_failure(lodged, two, tmp_path, words, status, code):
    env = lodged.env(LODGE_DATA=str(tmp_path))
    words = (words[0], "--json", *words[1:]) if words[0] in ("exec", "run") else (*words, "--json")
    said, out, err = lodged.lodge(*words, env=env)
    assert said == status and err.count("\n") == 1
    assert json.loads(out)["error"]["code"] == code
    message = json.loads(out)["error"]["message"]
    assert err.startswith(f"lodge: {message}"), (message, err)


def test_wrong_usage_is_2_everywhere(lodged):
    for words in (("exec",), ("exec", "x"), ("exec", "--nosuch", "x", "true"), ("run",), ("run", "--nosuch", "true"), ("shell", ""),
                  ("attach",), ("cp", "x"), ("ls", "x"), ("template", "nosuch"), ("nosuch",)):
        assert lodged.lodge(*words)[0] == 2, words
