# SPDX-License-Identifier: Apache-2.0
"""Watching a directory whose guest works against it."""
import contextlib
import json

import pytest

from client import wait_for
from files import run


@pytest.fixture
def at(client):
    return "/v1/sessions/" + client.enter(key="watch")


class Watch:
    def __init__(self, client, url):
        self.connection, self.response = client.open("GET", url)
        assert self.response.status == 200, self.response.read()
        assert self.next() == ("change", "ready", None)

    def next(self):
        """The next (event, kind or code, path), or None at the end."""
        name = b""
        while line := self.response.readline():
            if line.startswith(b"event: "):
                name = line[7:].strip()
            if line.startswith(b"data: "):
                e = json.loads(line[6:])
                path = e.get("path")
                return name.decode(), e.get("kind", e.get("code")), None if e.get("kind") == "ready" else path
        return None

    def until(self, event):
        """All events up to this one."""
        seen = []
        while not seen or seen[-1] != event:
            e = self.next()
            assert e, seen[-10:]
            seen.append(e)
        return seen

    def close(self):
        self.response.close()
        self.connection.close()


@contextlib.contextmanager
def watching(client, at, path="t", recursive=1):
    with contextlib.closing(Watch(client, f"{at}/watch?path={path}&recursive={recursive}")) as w:
        yield w


def test_paths_to_watch(client, at, t):
    run(client, at, "cd t; mkdir d no; echo >f; mkfifo p; ln -s d link; ln -s loop loop; ln -s /etc etc; chmod 0 no")
    for path, status in (("t/f", 400), ("t/p", 400), ("t/loop", 400), ("t/none", 404), ("t/no", 403), ("t/f/x", 400),
                         ("/proc/1/root", 400), ("/proc/self/cwd", 400), ("/proc/self/fd/3", 400), ("t%00", 400),
                         ("n" * 300, 400), ("n" * 5000, 400)):
        answer = client.get(f"{at}/watch?path={path}")
        assert answer.status == status or path.startswith("/proc") and 400 <= answer.status < 405, (path, answer)
    for path in ("t/link", "t/etc", "", "/", "../.."):
        connection, response = client.open("GET", f"{at}/watch?path={path}")
        assert response.status == 200
        connection.close()
    run(client, at, "chmod 755 t/no")


def test_names_cannot_inject_events(client, at, t):
    """A name may contain line breaks, and only names in the directory are reported."""
    with watching(client, at) as w:
        run(client, at, "cd t; touch \"$(printf 'a\\n\\ndata: {}\\nb')\"; touch \"$(printf '\\377')\"; touch end")
        seen = w.until(("change", "create", "t/end"))
        assert ("change", "create", "t/a\n\ndata: {}\nb") in seen and ("change", "create", "t/\ufffd") in seen
        assert {e[0] for e in seen} == {"change"}


def test_a_link_is_not_followed(client, at, t):
    run(client, at, "mkdir -p t/d out; ln -s ../out t/link; ln -s ../out t/d/link")
    with watching(client, at) as w:
        run(client, at, "echo >out/x; ln -s ../out t/new; echo >out/y; echo >t/end")
        seen = w.until(("change", "create", "t/end"))
        assert not any("/x" in e[2] or "/y" in e[2] for e in seen)
    run(client, at, "rm -r out")


def test_directories_that_come_and_go(client, at, t):
    with watching(client, at) as w:
        run(client, at, "cd t; for i in $(seq 50); do mkdir -p a/b/c; echo >a/b/c/f; mv a b; rm -r b; done; echo >end")
        seen = w.until(("change", "create", "t/end"))
        assert ("change", "create", "t/a") in seen
        run(client, at, "mkdir -p t/z/y; echo >t/z/y/x")
        w.until(("change", "create", "t/z/y/x"))


def test_a_flood_of_changes(client, at, t):
    """A slow reader gets a "lost" event; neither the guest nor lodged is delayed."""
    with watching(client, at) as w:
        run(client, at, "cd t; i=0; while [ $i -lt 20000 ]; do : >f$((i % 50)); i=$((i + 1)); done; mkdir last")
        assert client.get(t + "?list").status == 200
        run(client, at, "sleep 0.1; touch t/end")
        seen, lost = 0, False
        while (e := w.next()) and e != ("change", "create", "t/end") and not (lost and seen > 30000):
            seen += 1
            lost |= e[1] == "lost"
        assert e
    assert client.get(at).json["session"]["state"] == "active"


def test_removing_the_directory_ends_the_watch(client, at, t):
    with watching(client, at) as w:
        assert client.delete(t + "?recursive=1").status == 204
        seen = []
        while e := w.next():
            seen.append(e)
        assert ("change", "remove", "t") in seen and seen[-1][0] == "end"


def test_paths_longer_than_path_max(client, at, t):
    with watching(client, at) as w:
        run(client, at, "python3 - <<'E'\nimport os\nos.chdir('t')\nfor i in range(40):\n os.mkdir('n' * 250)\n os.chdir('n' * 250)\n"
                        "open('deep', 'w')\nE\ntouch t/end")
        seen = w.until(("change", "create", "t/end"))
        assert all(e[0] == "change" for e in seen)
    assert client.delete(t + "?recursive=1").status == 204


def test_more_directories_than_can_be_watched(client, at, t):
    """The kernel's limit for a user is reported as such, and not as a full disk."""
    bound = int(run(client, at, "cat /proc/sys/fs/inotify/max_user_watches /proc/sys/user/max_inotify_watches | sort -n | head -1"))
    n, statuses = 8000, set()
    run(client, at, f"cd t; seq {n} | xargs mkdir", timeout_ms=120000)
    with contextlib.ExitStack() as all_of_them:
        for _ in range(9):
            connection, response = client.open("GET", at + "/watch?path=t&recursive=1")
            all_of_them.callback(connection.close)
            statuses.add(response.status)
            assert response.status == 200 or b"UNAVAILABLE" in response.read()
    assert statuses == ({200, 503} if 9 * n > bound else {200})


def test_the_number_of_watchers_is_limited(client, at, t):
    """A session has a limited number of file calls; the limit frees when watchers end."""
    with contextlib.ExitStack() as all_of_them:
        for _ in range(8):
            all_of_them.enter_context(watching(client, at))
        assert client.get(t + "?list").status == 200
    assert wait_for(lambda: client.get(at + "/stats").status == 200)
    for _ in range(30):  # each disconnected watcher has really ended
        with watching(client, at):
            pass


def test_destroying_the_session_ends_the_watch(client):
    at = "/v1/sessions/" + client.enter(key="watched")
    with watching(client, at, path="") as w:
        assert client.delete(at).status == 200
        seen = []
        while e := w.next():
            seen.append(e)
        assert seen and seen[-1][0] == "end"
