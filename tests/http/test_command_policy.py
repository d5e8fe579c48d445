# SPDX-License-Identifier: Apache-2.0
"""Command policies: the check of the text, and enforcement by the kernel."""
import shutil
import subprocess
import urllib.parse

import pytest

from client import Lodged
from ws import Refused, Terminal

# Tries to execute its arguments, directly and from a memfd; prints the error.
PROBE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
int main(int argc, char **argv, char **envp)
{
	int from, to;
	if (argc > 2 && !strcmp(argv[1], "memory")) {
		from = open(argv[2], O_RDONLY);
		to = memfd_create("copy", 0);
		if (from < 0 || to < 0) {
			printf("memory %d\n", errno);
			return 1;
		}
		while (sendfile(to, from, NULL, 1 << 20) > 0)
			;
		fexecve(to, argv + 2, envp);
	} else {
		execve(argv[1], argv + 1, envp);
	}
	printf("execve %d\n", errno);
	return 1;
}
"""
EACCES = "execve 13\n"


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    where = tmp_path_factory.mktemp("probe")
    (where / "probe.c").write_text(PROBE)
    cc = shutil.which("musl-gcc") or shutil.which("gcc")
    if not cc:
        pytest.skip("there is no compiler")
    subprocess.run([cc, "-static", "-o", str(where / "probe"), str(where / "probe.c")], check=True)
    return (where / "probe").read_bytes()


class Under:
    """A session under a policy."""

    def __init__(self, client, policy=None, **more):
        self.client = client
        self.id = client.enter(**({"policy": policy} if policy else {}), **more)
        self.at = "/v1/sessions/" + self.id

    def exec(self, command, **more):
        return self.client.post(self.at + "/exec", dict(more, command=command))

    def out(self, command, **more):
        answer = self.exec(command, **more)
        assert answer.status == 200, answer
        return answer.json["stdout"] + answer.json["stderr"]

    def refused(self, command, **more):
        answer = self.exec(command, **more)
        assert (answer.status, answer.code) == (403, "POLICY"), answer
        return answer.json["error"]

    def put(self, path, data, mode="0755"):
        answer = self.client.put(f"{self.at}/files/{path}?mode={mode}", data,
                                 headers={"Content-Type": "application/octet-stream"})
        assert answer.status in (200, 201), answer


@pytest.fixture
def policy(client):
    made = []

    def make(name, tenant=None, **commands):
        body = {"name": name, "commands": commands, **({"tenant": tenant} if tenant else {})}
        answer = client.post("/v1/policies", body)
        assert answer.status == 201, answer
        made.append((name, tenant))
        return name

    yield make
    for s in client.get("/v1/sessions").json["sessions"]:
        client.delete("/v1/sessions/" + s["id"])
    for name, tenant in made:
        assert client.delete(f"/v1/policies/{name}" + (f"?tenant={tenant}" if tenant else "")).status == 200


@pytest.fixture
def enforced(client):
    if client.get("/health").json["policy_enforcement"] != "landlock":
        pytest.skip("the kernel has no Landlock")


# ---- the record -------------------------------------------------------------------------------


def test_lists_are_stored_changed_and_removed(client, policy):
    policy("p", allow=["ls", "/opt/tool"], deny=["rm"], reason="ask us", enforce="try")
    want = {"allow": ["ls", "/opt/tool"], "deny": ["rm"], "reason": "ask us"}
    assert client.get("/v1/policies/p").json["policy"]["commands"] == want
    assert client.patch("/v1/policies/p", {"idle_timeout_ms": 5000}).json["policy"]["commands"] == want
    answer = client.patch("/v1/policies/p", {"commands": {"allow": [], "enforce": "require"}})
    assert answer.json["policy"]["commands"] == {"allow": [], "enforce": "require"}
    assert client.patch("/v1/policies/p", {"commands": None}).json["policy"]["commands"] is None


@pytest.mark.parametrize("commands, words", [
    ([], "commands: must be an object"), ({"x": 1}, "commands: x"), ({"allow": "ls"}, "commands: allow"),
    ({"allow": ["a/b"]}, "a/b"), ({"deny": [""]}, "commands: deny"), ({"allow": ["x" * 256]}, "commands: allow"),
    ({"allow": ["a"] * 513}, "512"), ({"reason": "x" * 161}, "reason"), ({"enforce": "maybe", "allow": []}, "enforce"),
    ({"enforce": "require"}, "enforce"), ({"allow": ["a:b"]}, "a:b"),
    ({"allow": ["%03d" % i + "x" * 252 for i in range(300)]}, "longer"),
])
def test_invalid_lists_are_refused(client, commands, words):
    answer = client.post("/v1/policies", {"name": "bad", "commands": commands})
    assert answer.status == 400 and words in answer.json["error"]["message"], answer
    assert client.get("/v1/policies/bad").status == 404


# ---- check of the text ------------------------------------------------------------------------


@pytest.mark.parametrize("command, word, column", [
    ("echo hi;xyz", "xyz", 9), ("echo a|xyz", "xyz", 8), ("echo $(xyz)", "xyz", 8), ("echo `xyz`", "xyz", 7),
    ("ls & xyz", "xyz", 6), ("bash -c 'xyz'", "xyz", 10), ("env xyz", "xyz", 5), ("xargs xyz", "xyz", 7),
    ("$X", "$X", 1), ("./ls", "./ls", 1), ("/tmp/ls", "/tmp/ls", 1), ("eval \"$x\"", "\"$x\"", 6), ("source f", "source", 1),
    ("/bin/echo hi", "echo", 1), ("find", "find", 1),
    ("/lib64/ld-linux-x86-64.so.2 /bin/id", "/lib64/ld-linux-x86-64.so.2", 1), ("ls\n\n  xyz", "xyz", 3),
    ("false && xyz() { :; }; xyz", "xyz", 24), ("env --uns ls xyz", "--uns", 5), ("bash +c xyz", "xyz", 9),
])
def test_programs_not_listed_are_refused_with_their_position(client, policy, command, word, column):
    s = Under(client, policy("p", allow=["ls", "git", "bash", "env", "xargs"], reason="ask the operator"))
    error = s.refused(command)
    line = command.count("\n") + 1
    assert error["details"]["word"] == word and error["details"]["column"] == column
    assert error["details"]["line"] == line and error["details"]["policy"] == "p"
    assert command.encode()[error["details"]["offset"]:] and not error["retryable"]
    assert f"'{word}' at line {line}, column {column}" in error["message"]
    assert "ask the operator" in error["message"] and error["details"]["reason"].endswith("ask the operator")


@pytest.mark.parametrize("command, out", [
    ("echo 'look at this'", "look at this\n"), ("git --version | cat", "git"), ("/bin/ls -d /", "/\n"), ("X=1 ls -d /", "/\n"),
    ("(ls -d /)", "/\n"), ("echo \"it's\"", "it's\n"), ("echo '|' xyz", "| xyz\n"), ("f() { ls -d /; }; f", "/\n"),
    ("cat <<E\nxyz\nE", "xyz\n"), ("echo $(ls -d /) # xyz", "/\n"), ("for xyz in 1 2; do echo $xyz; done", "1\n2\n"),
])
def test_allowed_programs_run(client, policy, command, out):
    if "git" in command and not shutil.which("git"):
        pytest.skip("there is no git")
    s = Under(client, policy("p", allow=["ls", "git", "cat"]))
    assert s.out(command).startswith(out)


def test_a_syntax_error_is_a_400_with_its_line(client, policy):
    s = Under(client, policy("p", allow=["ls"]))
    for command in ("echo 'a", "echo \"a", "ls\necho $(ls", "if ls"):
        answer = s.exec(command)
        assert (answer.status, answer.code) == (400, "INVALID") and "line " in answer.json["error"]["message"], answer
    answer = s.exec("echo " + "a" * (128 << 10))
    assert answer.status == 413, answer


def test_a_deny_list_allows_everything_else(client, policy):
    s = Under(client, policy("p", deny=["rm", "curl"]))
    assert s.out("X=ls; $X -d /") == "/\n"
    assert s.refused("ls; rm -rf x")["details"]["reason"] == "is denied"
    assert s.refused("find / -exec /bin/rm {} +")["details"]["word"] == "rm"
    # a deny list cannot see the values of variables
    assert s.out("X=rm; $X --version").startswith("rm (")


def test_deny_wins(client, policy):
    s = Under(client, policy("p", allow=["ls", "cat"], deny=["cat"]))
    assert s.refused("cat /etc/passwd")["details"]["reason"] == "is denied"
    assert s.out("ls -d /") == "/\n"


def test_argv_without_a_shell_is_checked_too(client, policy):
    s = Under(client, policy("p", allow=["ls", "bash"]))

    def run(*argv):
        return client.post(s.at + "/exec", {"argv": list(argv)})
    assert run("ls", "-d", "/").json["stdout"] == "/\n"
    assert run("bash", "-c", "ls -d /").json["stdout"] == "/\n"
    assert run("cat", "/etc/passwd").code == "POLICY"
    assert run("echo", "hi").code == "POLICY"  # builtins need a shell
    answer = run("bash", "-c", "ls; cat x")
    assert answer.code == "POLICY" and answer.json["error"]["details"]["word"] == "cat"


def test_a_refused_command_is_not_recorded(client, policy):
    s = Under(client, policy("p", allow=["ls"]))
    client.post(s.at + "/hibernate")
    s.refused("cat x")
    assert client.session(s.id)["state"] == "hibernated"
    assert client.get(s.at + "/execs").json["execs"] == []


def test_without_a_list_every_command_runs(client, policy):
    assert client.post("/v1/policies", {"name": "empty"}).status == 201
    for s in (Under(client), Under(client, "empty")):
        assert "unexpected EOF" in s.out("echo 'a")  # the message is from bash, not from lodge
        assert s.out("X=cat; $X /etc/hostname; echo ok").endswith("ok\n")
        client.delete(s.at)
    assert client.delete("/v1/policies/empty").status == 200


def test_the_test_route_returns_the_verdict(client, policy):
    policy("p", allow=["ls"], reason="ask us")

    def test(command, status=200, name="p"):
        answer = client.post(f"/v1/policies/{name}/test", {"command": command})
        assert answer.status == status, answer
        return answer.json
    v = test("f() { ls; }; f | $X\necho `/bin/cat`")
    assert not v["allowed"] and v["reason"] == "is unknown until it runs: ask us"
    assert [(w["name"], w["kind"], w["allowed"], w["line"], w["column"]) for w in v["programs"]] == [
        ("ls", "program", True, 1, 7), ("f", "function", True, 1, 14), ("$X", "unknown", False, 1, 18),
        ("echo", "builtin", True, 2, 1), ("cat", "program", False, 2, 7)]
    assert v["enforced"] == (client.get("/health").json["policy_enforcement"] == "landlock")
    v = test("ls")
    assert v["allowed"] and v["reason"] is None
    assert "line 1, column 6" in test("echo 'a", 400)["error"]["message"]
    test("ls", 404, "nothing")
    assert client.post("/v1/policies/p/test", {}).status == 400
    assert client.post("/v1/policies/p/test", {"command": 1}).status == 400


LOADER = "/lib64/ld-linux-x86-64.so.2"


@pytest.mark.parametrize("command, word", [
    (f"hash -p {LOADER} ls; ls /usr/bin/id", "-p"), (f"BASH_CMDS[ls]={LOADER}; ls /usr/bin/id", "BASH_CMDS"),
    (f"x='$({LOADER} /usr/bin/id)'; echo ${{x@P}}", "@P"), (f"PS4='$({LOADER} /usr/bin/id >&2)'; set -x; :", "PS4"),
    (f"declare -n x=PS4; x='$({LOADER} /usr/bin/id >&2)'; set -x; :", "-n"), ("LD_PRELOAD=/tmp/x.so ls", "LD_PRELOAD"),
    ("set -o history -H\necho /usr/bin/id\n!!:1", "-H"), ("set -o history\nhistory -s /usr/bin/id\nfc -s", "fc"),
])
def test_shell_features_that_start_hidden_programs_are_refused(client, policy, command, word):
    s = Under(client, policy("p", allow=["ls"], enforce="try"))
    details = s.refused(command)["details"]
    assert details["word"] == word and details["line"] >= 1
    client.patch("/v1/policies/p", {"commands": {"deny": ["rm"]}})
    assert s.exec(command).status == 200  # only an allow list forbids it


@pytest.mark.parametrize("name", ["BASH_ENV", "PS4", "SHELLOPTS", "BASH_FUNC_ls%%", "LD_PRELOAD"])
def test_variables_that_start_programs_are_refused(client, policy, name):
    s = Under(client, policy("p", allow=["ls"], reason="ask us"))
    for body in ({"command": "ls"}, {"argv": ["ls"]}):
        answer = client.post(s.at + "/exec", dict(body, env={name: "x", "LANG": "C"}))
        assert (answer.status, answer.code) == (403, "POLICY"), answer
        error = answer.json["error"]
        assert error["message"].startswith(f"env: '{name}' ") and error["message"].endswith("ask us")
        assert error["details"]["word"] == name and "line" not in error["details"]
    assert s.out("ls -d /", env={"LANG": "C", "PATH": "/bin"}) == "/\n"
    client.patch("/v1/policies/p", {"commands": {"allow": ["ls", name.split("%")[0], name]}})
    assert s.exec("echo", env={name: "x"}).status == 200


@pytest.mark.parametrize("name", ["ls -la", "", " ls", "ls\t", "a/b", "ls\n"])
def test_entries_that_cannot_match_are_refused(client, name):
    answer = client.post("/v1/policies", {"name": "never", "commands": {"allow": ["cat", name]}})
    assert answer.status == 400 and "commands: allow: " in answer.json["error"]["message"], answer
    shown = name.replace("\t", "?").replace("\n", "?")
    assert f'"{shown}" must be a program name or an absolute path' in answer.json["error"]["message"]


# ---- per template and per tenant --------------------------------------------------------------


def test_a_template_uses_the_policy_of_the_tenant(client, lodged, policy):
    policy("rules", allow=["ls"])
    policy("rules", tenant="acme", allow=["cat"])
    at = "/v1/sessions/" + client.enter()
    snapshot = client.post(at + "/snapshots", {}).json["snapshot"]["id"]
    answer = client.post("/v1/templates", {"name": "ruled", "snapshot": snapshot, "policy": "rules"})
    assert answer.status == 201, answer
    theirs = lodged.client(client.post("/v1/keys", {"scope": "tenant", "tenant": "acme"}).json["secret"])
    try:
        ours, other, without = Under(client, template="ruled"), Under(theirs, template="ruled"), Under(client)
        assert ours.out("ls -d /") == "/\n" and other.out("cat /dev/null; echo $?") == "0\n"
        assert ours.refused("cat x")["details"]["word"] == "cat" and other.refused("ls")["details"]["word"] == "ls"
        assert without.out("ls -d /; cat /dev/null") == "/\n"
        assert theirs.post("/v1/policies/rules/test", {"command": "ls"}).json["allowed"] is False
        assert client.post("/v1/policies/rules/test", {"command": "ls"}).json["allowed"] is True
    finally:
        for c in (client, theirs):
            for s in c.get("/v1/sessions").json["sessions"]:
                c.delete("/v1/sessions/" + s["id"])
        assert client.delete("/v1/templates/ruled").status == 200
        client.delete("/v1/snapshots/" + snapshot)


def test_a_change_applies_to_the_next_command(client, policy):
    s = Under(client, policy("p", allow=["ls"]))
    s.refused("cat /dev/null")
    client.patch("/v1/policies/p", {"commands": {"allow": ["cat"]}})
    assert s.out("cat /dev/null") == ""
    s.refused("ls")


# ---- enforcement ------------------------------------------------------------------------------


def test_a_program_cannot_execute_unlisted_programs(client, policy, enforced, probe):
    s = Under(client, policy("p", allow=["ls", "/tmp/probe"]))
    s.put("/tmp/probe", probe)
    assert s.out("/tmp/probe /usr/bin/id") == EACCES
    assert s.out("/tmp/probe /bin/ls -d /") == "/\n"
    assert s.out("/tmp/probe memory /usr/bin/id") == "memory 13\n"
    # through another path, or as a copy
    assert s.out("/tmp/probe /proc/self/root/usr/bin/id") == EACCES
    s.put("/tmp/copy", probe)
    assert s.out("/tmp/probe /tmp/copy /usr/bin/id") == EACCES
    assert client.post(s.at + "/exec", {"argv": ["/tmp/probe", "/usr/bin/id"]}).json["stdout"] == EACCES


def test_hidden_programs_are_refused_by_the_kernel(client, policy, enforced, probe):
    s = Under(client, policy("p", allow=["ls", "awk", "mawk", "env", "source"]))
    s.put("/tmp/hidden", b"id; ls -d /; echo end\n", "0644")
    out = s.out("source /tmp/hidden")
    assert "Permission denied" in out and "uid=" not in out and "/\nend\n" in out
    # also in child processes
    s.put("/tmp/hidden", b"(bash -c 'id & wait; ls -d /'); /bin/bash -c id; echo end\n", "0644")
    out = s.out("source /tmp/hidden")
    assert "uid=" not in out and out.startswith("/\nend\n") and out.count("Permission denied") == 2


def test_only_the_shell_of_the_command_is_allowed(client, policy, enforced, probe):
    s = Under(client, policy("p", allow=["ls", "/tmp/probe"]))
    s.put("/tmp/probe", probe)
    assert s.out("/tmp/probe /bin/bash -c 'echo hi'") == "hi\n"
    if "same" not in s.out("[ /bin/sh -ef /bin/bash ] && echo same"):
        assert s.out("/tmp/probe /bin/sh -c 'echo hi'") == EACCES
    assert client.post(s.at + "/exec", {"argv": ["/tmp/probe", "/bin/bash", "-c", "ls"]}).json["stdout"] == EACCES
    client.patch("/v1/policies/p", {"commands": {"allow": ["/tmp/probe", "sh"]}})
    assert s.out("/tmp/probe /bin/sh -c 'echo hi'") == "hi\n"


def test_the_loader_bypasses_the_list(client, policy, enforced):
    """A documented limit: a determined program can run anything readable, here through a variable that arithmetic
    evaluates."""
    s = Under(client, policy("p", allow=["ls"], enforce="require"))
    if "no" in s.out(f"[ -e {LOADER} ] || echo no"):
        pytest.skip("another loader")
    assert "uid=" in s.out(f"x='a[$({LOADER} /usr/bin/id >&2)]'; echo $((x))")


def test_scripts_need_their_interpreter_and_their_name_listed(client, policy, enforced):
    s = Under(client, policy("p", allow=["ls", "cat", "/tmp/script", "/tmp/other"]))
    s.put("/tmp/script", b"#!/bin/bash\nls -d /\nid\n")
    out = s.out("/tmp/script")
    assert out.startswith("/\n") and "Permission denied" in out and "uid=" not in out
    s.put("/tmp/other", b"#!/usr/bin/env ls\n")
    assert "ermission denied" in s.out("/tmp/other")


def test_a_file_of_the_user_does_not_match_a_name(client, policy, enforced, probe):
    """Otherwise a writable directory in PATH would bypass the list."""
    s = Under(client, policy("p", allow=["ls", "tool"]), env={"PATH": "/tmp:/usr/bin:/bin"})
    s.put("/tmp/tool", probe)
    out = s.out("ls /tmp; tool /bin/ls")
    assert "tool\n" in out and "ermission denied" in out


def test_a_link_of_the_user_does_not_match_a_name(client, policy, enforced):
    """The target belongs to root, but the owner of the directory chose it."""
    s = Under(client, policy("p", allow=["ls", "ln", "cp", "mkdir"], enforce="require"),
              env={"PATH": "/tmp/bin:/usr/bin:/bin"})
    out = s.out("mkdir -p /tmp/bin; ln -sf /usr/bin/id /tmp/bin/cp; ls /tmp/bin")
    assert out == "cp\n"
    out = s.out("cp; ls -d /")
    assert "uid=" not in out and "ermission denied" in out and out.startswith("/\n")


def with_loader(program, loader):
    """A copy of a dynamic program with another loader."""
    at = int.from_bytes(program[32:40], "little")
    for i in range(int.from_bytes(program[56:58], "little")):
        part = at + 56 * i
        if program[part:part + 4] == b"\x03\0\0\0":
            where = int.from_bytes(program[part + 8:part + 16], "little")
            data = bytearray(program)
            data[where:where + len(loader) + 1] = loader + b"\0"
            data[part + 32:part + 40] = (len(loader) + 1).to_bytes(8, "little")
            return bytes(data)
    return None


@pytest.mark.parametrize("loader", [b"/", b"/usr/bin", b"/usr/bin/"])
def test_a_directory_is_not_accepted_as_loader(client, policy, enforced, probe, loader):
    with open("/usr/bin/ls", "rb") as f:
        program = with_loader(f.read(), loader)
    if not program:
        pytest.skip("ls is static")
    s = Under(client, policy("p", allow=["/tmp/probe", "/tmp/own"], enforce="require"))
    s.put("/tmp/probe", probe)
    s.put("/tmp/own", program)
    assert s.out("/tmp/probe /usr/bin/id") == EACCES


def test_enforcement_does_not_affect_files(client, policy, enforced):
    s = Under(client, policy("p", allow=["ls", "mv", "mkdir", "ln", "cat", "rm", "chmod"]))
    out = s.out("cd /tmp && mkdir -p a b && echo x > a/f && mv a/f b/g && ln b/g a/h && cat a/h && chmod 600 a/h "
                "&& rm a/h && ls b; cat < /dev/null; echo $?")
    assert out == "x\ng\n0\n"
    answer = s.exec("cat", stdin="fed")
    assert answer.json["stdout"] == "fed"
    answer = client.post(s.at + "/exec", {"command": "ls -d /", "background": True})
    assert answer.status == 202


def test_every_command_is_enforced(client, policy, enforced):
    """A shell started in advance must not escape the policy."""
    s = Under(client, policy("p", allow=["ls", "source"]))
    s.put("/tmp/hidden", b"id\n", "0644")
    for _ in range(4):
        assert s.out("ls -d /") == "/\n"
        assert "Permission denied" in s.out("source /tmp/hidden")
    client.patch("/v1/policies/p", {"commands": None})
    for _ in range(3):
        assert s.out("source /tmp/hidden").startswith("uid=")
    client.patch("/v1/policies/p", {"commands": {"allow": ["source"]}})
    assert "Permission denied" in s.out("source /tmp/hidden")


def test_policies_apply_to_terminals(client, policy, enforced):
    s = Under(client, policy("p", allow=["ls"]))
    with pytest.raises(Refused) as e:
        Terminal(client, s.id, urllib.parse.urlencode({"command": "ls; id"})).close()
    assert (e.value.status, e.value.code) == (403, "POLICY")
    with Terminal(client, s.id, urllib.parse.urlencode({"command": "ls -d /"})) as t:
        t.run()
        assert b"/\r\n" in t.output and t.exit["exit_code"] == 0
    # typed commands are checked by the kernel only
    with Terminal(client, s.id) as t:
        t.type("id; ls -d /; echo do''ne\n")
        t.until("done\r\n")
        assert b"Permission denied" in t.output and b"uid=" not in t.output and b"/\r\n" in t.output
        t.type("exit 0\n")
        t.run()


def test_an_interactive_shell_can_be_denied(client, policy):
    s = Under(client, policy("p", deny=["bash"]))
    with pytest.raises(Refused) as e:
        Terminal(client, s.id).close()
    assert (e.value.status, e.value.code) == (403, "POLICY")


def test_without_landlock_required_enforcement_refuses_commands(policy):
    d = Lodged(weaken="landlock")
    try:
        client = d.client()
        assert client.get("/health").json["policy_enforcement"] == "none"
        for name, enforce in (("tries", "try"), ("demands", "require")):
            commands = {"allow": ["ls", "source"], "enforce": enforce}
            assert client.post("/v1/policies", {"name": name, "commands": commands}).status == 201
        tries, demands = Under(client, "tries"), Under(client, "demands")
        tries.put("/tmp/hidden", b"id\n", "0644")
        assert tries.out("source /tmp/hidden").startswith("uid=")  # only the text is checked
        assert client.post("/v1/policies/tries/test", {"command": "ls"}).json["enforced"] is False
        answer = demands.exec("ls -d /")
        assert answer.status == 403 and "requires Landlock" in answer.json["error"]["message"], answer
        with pytest.raises(Refused):
            Terminal(client, tries.id).close()  # typed commands could not be checked
    finally:
        d.close()


def test_the_root_class_is_enforced_too(client, policy, enforced):
    s = Under(client, policy("p", allow=["ls", "source"], enforce="require"), **{"class": "root"})
    s.put("/tmp/hidden", b"echo $UID; id; ls -d /\n", "0644")
    out = s.out("source /tmp/hidden")
    assert out.startswith("0\n/\n") and "Permission denied" in out


def test_with_landlock_required_enforcement_runs_commands(client, policy, enforced):
    s = Under(client, policy("p", allow=["ls"], enforce="require"))
    assert s.out("ls -d /") == "/\n"
