# SPDX-License-Identifier: Apache-2.0
"""lodge users, cleanup, keys, policy, status, bench."""
import contextlib
import http.server
import json
import re
import threading

import pytest

from client import KEY, wait_for
from lodge import Daemon
from relay import Relay
from terminal import Terminal


@pytest.fixture
def people(client):
    """ada has two sandboxes, bob a hibernated session."""
    made = [client.enter(key="a1", user="ada"), client.enter(key="a2", user="ada", project="blue"),
            client.enter(key="b", user="bob", asleep=True)]
    yield made
    for sid in made:
        client.delete("/v1/sessions/" + sid)


def lines(result):
    assert result[0] == 0, result
    return result[1].decode().splitlines()


def test_users(lodged, client, people):
    client.run(people[0], "head -c 10000000 /dev/zero > /dev/shm/x")
    asked = []
    with Relay(lodged, asked.append) as relay:
        rows = lines(lodged.lodge("users", "--sort", "memory", env=lodged.env() | {"LODGE_URL": relay.url}))
    assert [line.split()[1] for line in asked] == ["/v1/users?limit=1000&sort=memory"]
    assert rows[0].split() == ["USER", "NAME", "EMAIL", "RUNNING", "SESSIONS", "MEMORY", "DISK", "CPU", "24H", "LAST", "USED",
                               "OVER", "QUOTA"]
    assert [r.split()[0] for r in rows[1:3]] == ["ada", "bob"] and rows[1].split()[3:5] == ["2", "2"]
    users = {u["id"]: u for u in json.loads(lodged.lodge("users", "--json")[1])["users"]}
    assert users["ada"]["memory"] >= 10000000 and users["bob"]["running"] == 0 and users["bob"]["sessions"] == 1
    assert users["ada"]["reserved"]["memory"] == 2 * client.session(people[0])["limits"]["memory_bytes"]
    key = client.post("/v1/keys", {"tenant": "default", "scope": "session", "user": "ada"}).json
    seen = lodged.lodge("users", "--json", env=dict(lodged.env(), LODGE_API_KEY=key["secret"]))
    assert seen[0] == 0 and [u["id"] for u in json.loads(seen[1])["users"]] == ["ada"]
    client.delete("/v1/keys/" + key["key"]["id"])


def test_the_name_of_a_user(lodged, client, people):
    rows = dict(r.split(None, 1) for r in lines(lodged.lodge("users", "set", "ada", "--name", "Ada L", "--email", "ada@example.com")))
    assert (rows["name"], rows["email"]) == ("Ada L", "ada@example.com")
    assert re.search(r"^ada +Ada L +ada@example.com ", "\n".join(lines(lodged.lodge("users", "--search", "ADA L"))), re.M)
    assert lodged.lodge("users", "set", "ada")[0] == 2 and lodged.lodge("users", "set", "ada", "--email", "x")[0] == 1
    lines(lodged.lodge("users", "set", "ada", "--no-name"))
    assert client.get("/v1/users/ada").json["user"]["name"] is None


def test_one_user(lodged, client, people):
    rows = dict(r.split(None, 1) for r in lines(lodged.lodge("users", "show", "ada")))
    assert rows["user"] == "ada" and rows["sessions"] == "2" and rows["sandboxes"] == "2, no limit (running)"
    assert "(sum of the limits of running sandboxes)" in rows["memory"] and "(sum of the limits of all sessions)" in rows["disk"]
    assert json.loads(lodged.lodge("users", "show", "ada", "--json")[1]).keys() == {"user", "quota", "quota_not_enforced", "usage"}
    assert lodged.lodge("users", "show", "nosuch")[0] == 1
    assert lines(lodged.lodge("users", "ls"))[0] == lines(lodged.lodge("users"))[0]


def test_quota(lodged, client, people):
    assert lines(lodged.lodge("users", "quota", "bob"))[0] == "sandboxes  0, no limit (running)"
    rows = lines(lodged.lodge("users", "quota", "bob", "--sandboxes", "3", "--memory", "2G", "--disk", "1T", "--cpu", "2h"))
    assert rows[:2] == ["sandboxes  0 of 3 (running)", "memory     0 of 2.0G (sum of the limits of running sandboxes)"]
    assert " of 1.0T (" in rows[2] and " of 2h (" in rows[3]
    answer = json.loads(lodged.lodge("users", "quota", "bob", "--sandboxes", "0", "--unset", "memory,cpu", "--json")[1])
    assert answer["quota"] == {"sandboxes": 0, "memory_bytes": 0, "disk_bytes": 1 << 40, "cpu_ms": 0}
    assert client.get("/v1/users/bob/quota").json["quota"] == answer["quota"]
    for words, said in ((("--memory", "x"), "--memory: "), (("--cpu", "-1"), "--cpu: "),
                        (("--unset", "pids"), '--unset: unknown quota "pids"; use sandboxes, memory, disk or cpu')):
        status, _, err = lodged.lodge("users", "quota", "bob", *words)
        assert status == 2 and err.startswith("lodge: " + said), err
    assert client.get("/v1/users/bob/quota").json["quota"] == answer["quota"]
    client.put("/v1/users/ada/quota", {"sandboxes": 2})
    status, _, err = lodged.lodge("new", "--user", "ada")
    assert status == 1 and "2" in err
    assert lodged.lodge("users", "quota", "ada", "--unset", "sandboxes")[0] == 0
    assert lodged.lodge("users", "quota", "bob", "--unset", "disk")[0] == 0


def test_cleanup(lodged, client, people):
    t = Terminal("cleanup", "ada", env=lodged.env())
    t.wait("End the running sandboxes of ada and delete their files")
    t.type("\n")
    assert t.end() == 1 and client.session(people[0])
    rows = lines(lodged.lodge("cleanup", "--yes", "ada"))
    assert rows[0] == "ada: 2 ended, 0 failed" and sum("ended   sbx_" in r for r in rows) == 2
    assert client.get("/v1/sessions/" + people[0]).status == 410
    client.post(f"/v1/sessions/{people[2]}/resume")
    sandbox = client.session(people[2])["sandbox"]
    answer = json.loads(lodged.lodge("cleanup", "--yes", "--all", "--json")[1])
    assert answer == {"users": [{"id": "bob", "ended": [sandbox], "failed": []}]}
    assert lines(lodged.lodge("cleanup", "--yes", "--all")) == ["nothing to end: no user has a running sandbox"]
    assert json.loads(lodged.lodge("cleanup", "--yes", "--all", "--json")[1]) == {"users": []}
    assert json.loads(lodged.lodge("cleanup", "--yes", "nosuch", "--json")[1])["users"][0]["ended"] == []
    for words in ((), ("ada", "--all")):
        assert lodged.lodge("cleanup", "--yes", *words, "--url", "http://127.0.0.1:1")[0] == 2


class Stuck(http.server.BaseHTTPRequestHandler):
    """A service that fails to end one of two sandboxes."""

    def do_POST(self):
        data = json.dumps({"success": True, "message": "", "results": {
            "totalProjects": 0, "killed": 1, "failed": 1, "killedSandboxes": ["sbx_a"],
            "failedSandboxes": ["sbx_\033[31mb"]}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def test_cleanup_reports_partial_failure(lodged):
    server = http.server.HTTPServer(("127.0.0.1", 0), Stuck)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = dict(lodged.env(), LODGE_URL=f"http://127.0.0.1:{server.server_port}")
    status, out, _ = lodged.lodge("cleanup", "--yes", "ada", env=env)
    assert status == 1 and out == b"ada: 1 ended, 1 failed\n  ended   sbx_a\n  failed  sbx_?[31mb\n"
    status, out, _ = lodged.lodge("cleanup", "--yes", "ada", "--json", env=env)
    assert status == 1 and json.loads(out)["users"][0]["failed"] == ["sbx_\033[31mb"]
    server.shutdown()
    server.server_close()


def test_keys(lodged, client):
    status, out, err = lodged.lodge("keys", "add", "--tenant", "app", "--scope", "tenant", "--name", "for me",
                                    "--expires", "2h")
    secret = out.decode().strip()
    assert status == 0 and secret.startswith("lk_") and "the secret is shown only once" in err and secret not in err
    assert lodged.lodge("ls", env=dict(lodged.env(), LODGE_API_KEY=secret))[0] == 0
    rows = lines(lodged.lodge("keys", "ls", "--tenant", "app"))
    assert len(rows) == 2 and "for me" in rows[1] and ("in 119m" in rows[1] or "in 2h" in rows[1])
    assert len(json.loads(lodged.lodge("keys", "--json")[1])["keys"]) >= 2
    kid = rows[1].split()[0]
    made = json.loads(lodged.lodge("keys", "add", "--user", "ada", "--json")[1])
    assert made["key"]["user"] == "ada" and made["secret"].startswith("lk_")
    for k in (kid, made["key"]["id"]):
        assert lines(lodged.lodge("keys", "rm", "--yes", k)) == [f"revoked {k}"]
    status, _, err = lodged.lodge("keys", "rm", "--yes", kid)
    assert status == 1 and kid in err
    assert lodged.lodge("keys", "add", "--expires", "never")[0] == 2
    assert lodged.lodge("keys", "add", "--scope", "king")[0] == 1
    assert lodged.lodge("keys", "nosuch")[0] == 2


def test_a_secret_taken_for_an_id_is_neither_sent_nor_logged(lodged, client):
    key, secret = (json.loads(lodged.lodge("key", "create", "--json")[1])[m] for m in ("key", "secret"))
    for words in (("rm", "--yes", secret), ("revoke", "--yes", secret), ("rm", "--yes", "--json", secret), ("rm", secret[:12])):
        status, out, err = lodged.lodge("key", *words)
        assert status == 2 and err == "lodge: key rm: that is a secret, not an id; see `lodge key ls`\n"
        assert secret[:12] not in out.decode()
    assert client.delete("/v1/keys/" + secret).status == 404
    assert client.get(f"/v1/sessions/lk_x/files/{secret.upper().replace('LK_', 'lk_')}.{secret}").status == 404
    assert wait_for(lambda: '"/v1/keys/lk_[redacted]"' in lodged.log() and
                    '"/v1/sessions/lk_x/files/lk_[redacted].lk_[redacted]"' in lodged.log()), lodged.log()
    assert secret[3:] not in lodged.log().lower()
    assert lodged.lodge("key", "revoke", "--yes", key["id"])[:2] == (0, f"revoked {key['id']}\n".encode())


def test_policies(lodged, client, tmp_path):
    rows = lines(lodged.lodge("policy", "set", "readers", "--allow", "ls,cat", "--deny", "rm", "--idle", "10m",
                              "--max-active", "2", "--on-exceed", "replace", "--reason", "only reading"))
    assert "ls cat" in "\n".join(rows)
    assert lodged.lodge("policy", "set", "readers", "--allow", "ls")[0] == 0  # other fields stay unchanged
    answer = json.loads(lodged.lodge("policy", "show", "readers", "--json")[1])["policy"]
    assert answer["commands"]["allow"] == ["ls"] and answer["idle_timeout_ms"] == 600000
    assert answer["commands"]["deny"] == ["rm"] and answer["commands"]["reason"] == "only reading"
    assert answer["max_active_per_user"] == 2
    (tmp_path / "p").write_text(json.dumps(answer))
    assert lodged.lodge("policy", "set", "copy", "--file", str(tmp_path / "p"))[0] == 0
    assert lodged.lodge("policy", "set", "copy", "--file", "-", data=b'{"limits": {"memory_bytes": 268435456}}')[0] == 0
    text = "\n".join(lines(lodged.lodge("policy", "show", "copy")))
    assert "memory 256M" in text and "2 running sandboxes, then hibernate the least recently used" in text
    assert sorted(r.split()[0] for r in lines(lodged.lodge("policy", "ls"))) == ["POLICY", "copy", "readers"]
    for words in (("policy",), ("policy", "--json")):
        assert lodged.lodge(*words) == lodged.lodge("policy", "ls", *words[1:]), words
    names = [p["name"] for p in json.loads(lodged.lodge("policy", "ls", "--json")[1])["policies"]]
    assert sorted(names) == ["copy", "readers"]
    for name in names:
        assert lodged.lodge("policy", "rm", "--yes", name)[0] == 0
    status, _, err = lodged.lodge("policy", "show", "copy")
    assert status == 1 and "copy" in err
    assert lodged.lodge("policy", "set", "x", "--max-active", "no")[0] == 2
    assert lodged.lodge("policy", "set", "x", "--allow", "a b")[0] == 1
    assert lodged.lodge("policy", "test", "--allow", "ls", "ls")[0] == 0  # works without a service


def test_status(lodged):
    text = "\n".join(lines(lodged.lodge("status")))
    assert "ok" in text and "ready" in text and lodged.url in text
    status, out, _ = lodged.lodge("status", "--json")
    assert status == 0 and json.loads(out)["status"] == "ok" and KEY.encode() not in out
    status, _, err = lodged.lodge("status", "--url", "http://127.0.0.1:1")
    assert status == 125 and err.count("\n") == 1


def test_status_shows_the_maximum_limits():
    with contextlib.closing(Daemon(limits_max_memory="64M", limits_max_cpus="1.5", limits_max_pids="40")) as d:
        assert re.search(r"^maximum +64M memory, 1.5 cpus, 40 processes$", "\n".join(lines(d.lodge("status"))), re.M)


def test_bench(lodged, client):
    before = client.get("/v1/sessions").json["sessions"]
    rows = lines(lodged.lodge("bench", "--count", "3"))
    assert rows[0].split() == ["CALL", "TIMES", "MEDIAN", "P99", "WORST"] and len(rows) == 6
    calls = json.loads(lodged.lodge("bench", "--count", "2", "--json")[1])["calls"]
    assert {c["name"] for c in calls} == {"status", "enter", "exec", "write 4K", "read 4K"}
    assert all(c["median_ms"] <= c["p99_ms"] <= c["worst_ms"] for c in calls)
    assert client.get("/v1/sessions").json["sessions"] == before
    assert lodged.lodge("bench", "--count", "0")[0] == 2
