# SPDX-License-Identifier: Apache-2.0
"""The objects that the examples of spec/openapi.json refer to."""
import hashlib
import io
import json
import os
import re
import tarfile
import urllib.parse


def target(path, params, query):
    for name, value in params.items():
        plain = ":" if name == "id" else "" if value.startswith("/") else "/"
        path = path.replace("{%s}" % name, urllib.parse.quote(value, safe=plain))
    return path + ("?" + urllib.parse.urlencode(query) if query else "")


def usual_path(path, session="ses_unknown"):
    return target(path, {"id": session, "session_id": session, "exec": "exe_x", "snap": "snp_x", "key": "key_x",
                         "user": "unknown", "name": "nothing", "path": "x", "project": "nothing",
                         "fragment": "nothing", "team": "nothing"}, {})


def a_tar(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in (files or {"one.txt": b"one\n", "bin/sh": b"#!/none\n"}).items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def an_image():
    """An OCI image layout of one layer."""
    blobs = {}

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs["blobs/sha256/" + digest] = data
        return {"digest": "sha256:" + digest, "size": len(data)}

    machine = os.uname().machine
    config = blob(json.dumps({"config": {"Env": ["A=1"]}, "rootfs": {
        "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(a_tar()).hexdigest()]}}).encode())
    manifest = blob(json.dumps({"schemaVersion": 2, "layers": [blob(a_tar())], "config": config}).encode())
    manifest["platform"] = {"os": "linux",
                            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)}
    return a_tar(**{"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
                    "index.json": json.dumps({"manifests": [manifest]}).encode()}, **blobs)


class World:
    """Values of the $ variables in the examples; each object is created on first use."""

    def __init__(self, lodged):
        self.lodged, self.client, self.n = lodged, lodged.client(), 0

    def ready(self, key):
        """A session that contains the file of the examples."""
        session = self.client.enter(key=key, user="ada", metadata={"team": "blue"})
        at = f"/v1/sessions/{session}/files/notes/hello.txt?mkdir=1"
        answer = self.client.call("PUT", at, b"hello\n")
        assert answer.status in (200, 201), answer
        return session, answer.headers["ETag"]

    def post(self, path, body, status):
        answer = self.client.post("/v1/sessions/key:demo" + path, body)
        assert answer.status == status, answer
        return answer.json

    def snapshot(self):
        return self.post("/snapshots", None, 201)["snapshot"]["id"]

    def fresh(self, prefix):
        self.n += 1
        return f"{prefix}{self.n}"

    def template(self):
        name = self.fresh("old")
        answer = self.client.call("POST", "/v1/templates/" + name, a_tar(),
                                  {"Content-Type": "application/x-tar"})
        assert answer.status == 201, answer
        return name

    def policy(self):
        name = self.fresh("rule")
        answer = self.client.post("/v1/policies", {"name": name})
        assert answer.status == 201, answer
        return name

    def project(self, name):
        """A project of ada."""
        answer = self.client.post("/api/projects", {"id": name, "name": "Site", "userId": "ada"})
        assert answer.status in (201, 409), answer
        return name

    def fragment(self):
        body = {"files": {"index.html": "<h1>hello</h1>\n"}, "userId": "ada"}
        answer = self.client.post(f"/api/projects/{self.project('site')}/fragments", body)
        assert answer.status == 201, answer
        return answer.json["id"]

    def open_project(self):
        body = {"projectId": self.project("open"), "userId": "ada"}
        assert self.client.post("/api/switch-project", body).status == 200
        return "open"

    def team(self):
        for user, role in (("ada", "OWNER"), ("dan", "VIEWER")):
            answer = self.client.put("/api/teams/green/members/" + user, {"role": role})
            assert answer.status == 200, answer
        return "green"

    def there(self, path):
        """The path of existing objects."""
        if path.endswith("/environment"):
            return path.replace("{name}", self.value("CAPTURED"))
        if "{name}" in path:
            make = self.template if "templates" in path else self.policy
            return path.replace("{name}", make())
        return usual_path(path, self.ready("demo")[0] if "{id}" in path else "")

    def thread(self):
        """The session of a thread that contains the file of the examples."""
        answer = self.client.post("/create_session", {"user_id": "ada", "thread_id": "demo-thread"})
        assert answer.status in (201, 409), answer
        session = (answer.json if answer.status == 201 else answer.json["detail"])["session_id"]
        answer = self.client.call("PUT", f"/v1/sessions/{session}/files/notes.txt", b"hello\n")
        assert answer.status in (200, 201), answer
        return session

    def value(self, name):
        if name == "THREAD":
            return self.thread()
        if name == "FRESH_THREAD":
            return self.fresh("thread-")
        if name == "SESSION":
            return self.ready("demo")[0]
        if name == "ETAG":
            return self.ready("demo")[1]
        if name == "EXEC":
            body = {"argv": ["cat"], "background": True, "pty": {}, "timeout_ms": 60000}
            return self.post("/exec", body, 202)["exec_id"]
        if name == "SNAPSHOT":
            return self.snapshot()
        if name == "KEY_ID":
            return self.client.post("/v1/keys", {"user": "ada"}).json["key"]["id"]
        if name == "TEMPLATE":
            return self.template()
        if name == "POLICY":
            return self.policy()
        if name == "CHAT_SESSION":
            return self.client.post("/api/sandbox").json["sessionId"]
        if name == "CAPTURED":
            assert self.client.post("/v1/templates/host/environment").status == 201
            return "host"
        if name == "PROJECT":
            return self.project("site")
        if name == "OLD_PROJECT":
            return self.project(self.fresh("old-site"))
        if name == "OPEN_PROJECT":
            return self.open_project()
        if name == "FRAGMENT":
            return self.fragment()
        if name == "TEAM":
            return self.team()
        if name == "IMAGE":
            return an_image()
        if name == "TAR":
            return a_tar()
        assert name == "ARCHIVE", name
        return self.client.get(f"/v1/snapshots/{self.snapshot()}/archive").data

    def fill(self, thing):
        if isinstance(thing, dict):
            return {k: self.fill(v) for k, v in thing.items()}
        if isinstance(thing, str) and re.fullmatch(r"\$[A-Z_]+", thing):
            return self.value(thing[1:])
        if isinstance(thing, str):
            return re.sub(r"\$(SESSION|THREAD)\b", lambda m: self.value(m.group(1)), thing)
        return thing
