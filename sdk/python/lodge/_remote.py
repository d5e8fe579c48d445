# SPDX-License-Identifier: Apache-2.0
"""Threads over HTTP."""
import base64
import os
import uuid
from typing import Any, BinaryIO, Dict, Iterator, Optional

from . import _place
from ._files import length_of, pieces_of
from ._http import Request, query, request
from ._sync import Transport
from .errors import SandboxError, TransportError, of_thread_answer

GRACE = 30.0


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


def patience(timeout: Any) -> Optional[float]:
    """How long a result is waited for. What is no timeout is for the service to refuse."""
    if timeout == 0:
        return None
    return timeout + GRACE if isinstance(timeout, (int, float)) and timeout > 0 else GRACE


class RemoteThreads:
    def __init__(self, server_url: Optional[str], api_key: Optional[str]) -> None:
        place = _place.find(server_url)
        self._transport = Transport(place, _place.find_key(place, api_key), 60.0, None, None,
                                    of_thread_answer)

    def _ask(self, ask: Request) -> Any:
        return self._fetch(ask).json()

    def _fetch(self, ask: Request) -> Any:
        try:
            return self._transport.fetch(ask)
        except TransportError as e:
            raise SandboxError(e.message, code=e.code, retryable=True) from e

    def create(self, user_id: str, thread_id: str, minutes: Optional[int]) -> Dict[str, Any]:
        try:
            made: Dict[str, Any] = self._ask(request("POST", "/create_session", {
                "user_id": user_id, "thread_id": thread_id, "timeout_minutes": minutes}, timeout=120.0))
        except SandboxError as e:
            if e.status != 409 or "session_id" not in e.details:
                raise
            made = e.details  # one that is there is as good as a new one
        return made

    def execute(self, session_id: str, command: str, timeout: float) -> Dict[str, Any]:
        ask = request("POST", "/execute", {"session_id": session_id, "command": command, "timeout": timeout})
        ask.timeout = patience(timeout)
        reply = self._fetch(ask)
        result: Dict[str, Any] = reply.json()
        result["state_lost"] = reply.headers.get("lodge-outcome") == "replaced"
        return result

    def upload(self, session_id: str, name: bytes, source: BinaryIO) -> Dict[str, Any]:
        edge = b"lodge-" + uuid.uuid4().hex.encode()

        def field(title: bytes, value: bytes) -> bytes:
            return b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (edge, title, value)

        head = field(b"session_id", session_id.encode()) + field(b"filename", name)
        head += b'--%b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\n' % edge
        tail = b"\r\n--%b--\r\n" % edge
        size = length_of(source)

        def pieces() -> Iterator[bytes]:
            yield head
            yield from pieces_of(source)
            yield tail

        received: Dict[str, Any] = self._ask(Request(
            "POST", "/upload_file", kind=f"multipart/form-data; boundary={edge.decode()}", source=pieces(),
            length=None if size is None else len(head) + size + len(tail), timeout=120.0))
        received["filename"] = os.fsdecode(name)
        if not _is_utf8(name):
            received["path"] = received["path"][:-len(name.decode("utf-8", "replace"))] + received["filename"]
        return received

    def download(self, session_id: str, name: bytes, to: BinaryIO) -> None:
        body = {"session_id": session_id}
        if _is_utf8(name):
            body["filename"] = name.decode()
        else:
            body["filename_base64"] = base64.b64encode(name).decode()
        ask = request("POST", "/download_file", body)
        try:
            with self._transport.open(ask) as answer:
                for piece in answer.pieces():
                    to.write(piece)
        except TransportError as e:
            raise SandboxError(e.message, code=e.code, retryable=True) from e

    def list(self, session_id: str) -> Dict[str, Any]:
        received: Dict[str, Any] = self._ask(Request("GET", "/list_files" + query({"session_id": session_id})))
        for f in received["files"]:
            if "name_base64" in f:
                f["name"] = os.fsdecode(base64.b64decode(f.pop("name_base64")))
        return received

    def cleanup(self, session_id: str) -> None:
        self._ask(request("POST", "/cleanup", {"session_id": session_id}))

    def close(self) -> None:
        self._transport.close()
