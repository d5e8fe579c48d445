# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the threads API."""
import os
import uuid

from client import wait_for


def fresh():
    return "thread-" + uuid.uuid4().hex


def create(client, thread=None, user="ada", **body):
    answer = client.post("/create_session", {"user_id": user, "thread_id": thread or fresh(), **body})
    assert answer.status == 201, answer
    return answer.json["session_id"]


def execute(client, session, command, **body):
    answer = client.post("/execute", {"session_id": session, "command": command, **body})
    assert answer.status == 200, answer
    return answer.json


def says(client, session, command):
    r = execute(client, session, command)
    assert r["exit_code"] == 0, r
    return r["stdout"]


def form(*parts, boundary="frontier"):
    """Parts are (name, value) or (name, filename, bytes), in this order."""
    out = b""
    for part in parts:
        name, *rest = part
        file = f'; filename="{rest[0]}"' if len(rest) == 2 else ""
        value = rest[-1].encode() if isinstance(rest[-1], str) else rest[-1]
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode()
        out += value + b"\r\n"
    return out + f"--{boundary}--\r\n".encode()


def send(client, body, boundary="frontier"):
    return client.call("POST", "/upload_file", body,
                       {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def upload(client, session, name, data):
    return send(client, form(("session_id", session), ("file", name, data)))


def download(client, session, name):
    return client.post("/download_file", {"session_id": session, "filename": name})


def sandboxes(lodged):
    """Sandboxes in the keeper's records, without slots of the pool."""
    try:
        names = os.listdir(os.path.join(lodged.run_dir(), "d", "sandboxes"))
    except FileNotFoundError:
        return []
    return [n for n in names if n.startswith("sbx_")]


def nothing_is_left(lodged):
    """Wait until no sandbox is left."""
    return wait_for(lambda: not sandboxes(lodged))
