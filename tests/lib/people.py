# SPDX-License-Identifier: Apache-2.0
"""Users of the projects API."""
import json
import re

from client import quote

TIME = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{3}Z")

FILES = "cd && find . -type f -printf '%P\\n' | LC_ALL=C sort"


class User:
    """Uses an application's key and sends its user name, or (named=False) a token of its own."""

    def __init__(self, client, name, named=True):
        self.client, self.name, self.named = client, name, named

    def ask(self, method, path, body=None, **kw):
        if self.named and method in ("GET", "DELETE"):
            path += ("&" if "?" in path else "?") + "userId=" + quote(self.name)
        elif self.named:
            body = {"userId": self.name, **(body or {})}
        return self.client.call(method, path, body, **kw)

    def get(self, path, **kw):
        return self.ask("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.ask("POST", path, body, **kw)

    def put(self, path, body=None, **kw):
        return self.ask("PUT", path, body, **kw)

    def delete(self, path, **kw):
        return self.ask("DELETE", path, **kw)

    # -- calls that must succeed

    def project(self, name, **body):
        answer = self.post("/api/projects", {"id": name, "name": name.upper(), **body})
        assert answer.status == 201, answer
        return name

    def save(self, project, files, **body):
        """Save a fragment; return its id."""
        answer = self.post(f"/api/projects/{project}/fragments", {"files": files, **body})
        assert answer.status == 201, answer
        return answer.json["id"]

    def switch(self, project, fragment=None, **kw):
        body = {"projectId": project, **({"fragmentId": fragment} if fragment else {})}
        answer = self.post("/api/switch-project", body, **kw)
        assert answer.status == 200 and answer.json["success"] is True, answer
        return answer.json["result"]

    def look(self):
        answer = self.get("/api/cleanup-sandboxes")
        assert answer.status == 200, answer
        return answer.json

    def here(self, command):
        """The output of a command in the user's current sandbox."""
        current = self.client.get("/v1/users/" + quote(self.name)).json["user"]["session"]
        return self.client.run(current["id"], command)

    def files(self):
        return self.here(FILES).split()


def refusal(answer):
    """The status and the message of an error of this API."""
    assert answer.headers["Content-Type"] == "application/json"
    assert set(answer.json) == {"success", "error"} and answer.json["success"] is False, answer
    return answer.status, answer.json["error"]


def events(answer):
    """Return the events of a stream as (name, data)."""
    found = []
    for block in answer.data.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and line[0] != ":")
        if "data" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found
