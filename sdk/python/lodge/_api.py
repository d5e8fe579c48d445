# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return"
"""All of /v1, once for both clients: in the blocking one a method returns what it says, in the asynchronous one
something to await (iterators: to iterate by `async for`). stubs.py writes the types of both."""
import json
import time
from typing import Any, BinaryIO, Callable, Dict, Iterator, Mapping, Optional, Union

from . import _calls as c
from ._calls import Command
from ._http import Call, Name, Request, quote, quote_path, query, request
from ._streams import ExecStream, ServerEvents
from .types import Event, ExecResult, Output, Record

Source = Union[bytes, str, BinaryIO]


class Part:
    """Something of a client: calls go the client's way. The underscored ones are made by _sync.py and _async.py."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._do: Callable[[Any], Any] = driver._do
        self._pages: Callable[..., Any] = driver._pages
        self._events: Callable[[Any], Any] = driver._events
        self._save_to: Callable[..., Any] = driver._save_to
        self._send_from: Callable[..., Any] = driver._send_from


class ExecApi(Part):
    """A command in the background. It runs without a client; any client can open it again by its id."""

    def __init__(self, driver: Any, session: str, exec_id: str) -> None:
        super().__init__(driver)
        self._base = c.session_base(session)
        self._at = f"{self._base}/execs/{quote(exec_id)}"
        self.session, self.id = session, exec_id

    def info(self) -> Record:
        return self._do(c.get(self._at, c.member("exec")))

    def output(self, stdout_offset: int = 0, stderr_offset: int = 0, wait: float = 0.0) -> Output:
        """What it wrote from there on; waits up to `wait` seconds for something."""
        return self._do(c.output(self._base, self.id, stdout_offset, stderr_offset, wait))

    def stream(self, stdout_offset: int = 0, stderr_offset: int = 0) -> Iterator[Event]:
        """What it writes from there on, until its end."""
        return self._events(ExecStream(self._base, {}, self._driver.reconnect, self.id, [stdout_offset, stderr_offset]))

    def write(self, data: bytes = b"", eof: bool = False) -> int:
        """To its input; returns when it took all of it."""
        ask = Request("POST", self._at + "/stdin" + query({"eof": eof or None}), body=bytes(data),
                      kind="application/octet-stream")
        return self._do(Call(ask, c.member("written_bytes")))

    def signal(self, signal: Union[int, str] = "TERM") -> Record:
        return self._do(c.post(self._at + "/signal", {"signal": signal}, c.member("exec")))

    def resize(self, rows: int, cols: int) -> Record:
        return self._do(c.post(self._at + "/resize", {"rows": rows, "cols": cols}, c.member("exec")))

    def kill(self) -> Record:
        """With everything it started; of one that ended: as wanted already."""
        return self._do(c.delete(self._at, c.member("exec")))

    def wait(self, timeout: Optional[float] = None) -> ExecResult:
        """Until it ended. TimeoutError leaves it running."""
        return self._do(c.wait_for(self._base, self.id, time.monotonic, timeout))


class FilesApi(Part):
    """Files of a session. Relative paths start where its commands start. Names are any bytes: str with surrogates
    (os.fsdecode) where they are no UTF-8, or bytes."""

    def __init__(self, driver: Any, session: str) -> None:
        super().__init__(driver)
        self._base = c.session_base(session)

    def _at(self, path: Name, **pairs: Any) -> str:
        return f"{self._base}/files/{quote_path(path)}{query(pairs)}"

    def read(self, path: Name) -> bytes:
        return self._do(Call(Request("GET", self._at(path)), lambda r: r.body))

    def write(self, path: Name, data: Union[bytes, str], *, mode: Optional[int] = None, mkdir: bool = False,
              append: bool = False, if_match: Optional[str] = None, if_none_match: Optional[str] = None) -> Record:
        """All or nothing (but for append)."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        return self._do(Call(self._put(path, mode, mkdir, append, if_match, if_none_match, body=raw),
                             c.one_entry))

    def _put(self, path: Name, mode: Optional[int], mkdir: bool, append: bool, if_match: Optional[str],
             if_none_match: Optional[str], **how: Any) -> Request:
        headers = {k: v for k, v in (("If-Match", if_match), ("If-None-Match", if_none_match)) if v}
        at = self._at(path, mode=None if mode is None else f"{mode:o}", mkdir=mkdir or None, append=append or None)
        return Request("PUT", at, kind="application/octet-stream", headers=headers, **how)

    def stat(self, path: Name, follow: bool = False) -> Record:
        return self._do(Call(Request("POST", self._at(path, stat=1, follow=follow or None)), c.one_entry))

    def list(self, path: Name = "", *, depth: int = 1, glob: Optional[str] = None) -> Iterator[Record]:
        """Sorted by name, depth first."""
        def make(after: Any) -> Call[Any]:
            return c.get(self._at(path, list=1, depth=depth, glob=glob, after=after), c.entries)
        return self._pages(make, "entries")

    def mkdir(self, path: Name, *, parents: bool = False, mode: Optional[int] = None) -> Record:
        at = self._at(path, mkdir=1, parents=parents or None, mode=None if mode is None else f"{mode:o}")
        return self._do(Call(Request("POST", at), c.one_entry))

    def rename(self, path: Name, to: Name, *, replace: bool = True) -> Record:
        at = self._at(path, rename=to, replace=None if replace else 0)
        return self._do(Call(Request("POST", at), c.one_entry))

    def remove(self, path: Name, *, recursive: bool = False) -> None:
        return self._do(Call(Request("DELETE", self._at(path, recursive=recursive or None), timeout=c.LONG),
                             c.nothing))

    def open(self, path: Name, mode: str = "rb", *, mkdir: bool = False) -> Any:
        """A file object, "rb" or "wb", that streams; what is written is there when it was closed, and nothing of
        it after an exception inside `with`."""
        if mode == "rb":
            return self._driver._reader(self._at(path))
        if mode == "wb":
            return self._driver._writer(self._put(path, None, mkdir, False, None, None, source=()))
        raise ValueError('mode: "rb" or "wb"')

    def upload(self, source: Source, path: Name, *, mode: Optional[int] = None, mkdir: bool = False) -> Record:
        """A local file (its path, or an open one) of any size."""
        return self._send_from(source, lambda **how: self._put(path, mode, mkdir, False, None, None, **how),
                               c.one_entry)

    def download(self, path: Name, to: Source) -> int:
        """Into a local file (its path, or an open one); its size."""
        return self._save_to(Request("GET", self._at(path)), to)

    def get_archive(self, path: Name, to: Source, *, format: str = "tar") -> int:
        """A directory as "tar" or "tar.zst"."""
        return self._save_to(Request("GET", self._base + "/archive" + query({"path": path, "format": format})), to)

    def put_archive(self, source: Source, path: Name = "", *, format: str = "tar") -> None:
        at = self._base + "/archive" + query({"path": path, "format": format})
        return self._send_from(source, lambda **how: Request("PUT", at, kind="application/x-tar", **how), c.nothing)

    def watch(self, path: Name = "", *, recursive: bool = False) -> Iterator[Record]:
        """What changes below a directory; the first one is "ready": nothing after it is missed."""
        return self._events(ServerEvents(self._base + "/watch" + query({"path": path, "recursive": recursive}),
                                         self._driver.reconnect))


class SessionApi(Part):
    """One session. `record`, `outcome` and `state_lost` are as they were when it was entered."""
    _exec_type: Any
    _files_type: Any

    def __init__(self, driver: Any, ref: str, entered: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(driver)
        reply = entered or {}
        self.record: Record = dict(reply.get("session") or {})
        self.id: str = self.record.get("id", ref)
        self.outcome: Optional[str] = reply.get("outcome")
        self.state_lost: bool = bool(reply.get("state_lost"))
        self._base = c.session_base(self.id)
        self.files = self._files_type(driver, self.id)

    def __repr__(self) -> str:
        key = self.record.get("key")
        return f"<{type(self).__name__} {self.id}" + (f" key={key!r}>" if key is not None else ">")

    def _move(self, verb: str, **body: Any) -> Any:
        return self._do(c.post(f"{self._base}/{verb}", body, c.member("session"), timeout=c.LONG))

    def get(self) -> Record:
        return self._do(c.get(self._base, c.member("session")))

    def patch(self, **changes: Any) -> Record:
        """idle_timeout_ms, max_lifetime_ms, on_idle, on_expire, limits, metadata, archived, if_version."""
        return self._do(Call(request("PATCH", self._base, changes, timeout=c.LONG), c.member("session")))

    def delete(self, reason: Optional[str] = None) -> Record:
        """The tombstone; of one that is gone already, too."""
        return self._do(c.delete(self._base, c.member("tombstone"), {"reason": reason}))

    def probe(self, deadline: Optional[float] = None) -> Record:
        return self._do(c.post(self._base + "/probe", {"deadline_ms": deadline and c.ms(deadline)}))

    def extend(self, ms: Optional[int] = None, if_version: Optional[int] = None) -> Record:
        return self._move("extend", ms=ms, if_version=if_version)

    def activity(self) -> Record:
        return self._move("activity")

    def pause(self, if_version: Optional[int] = None) -> Record:
        return self._move("pause", if_version=if_version)

    def unpause(self, if_version: Optional[int] = None) -> Record:
        return self._move("unpause", if_version=if_version)

    def hibernate(self, if_version: Optional[int] = None) -> Record:
        return self._move("hibernate", if_version=if_version)

    def resume(self, if_version: Optional[int] = None) -> Record:
        """{session, outcome, state_lost, ...}, as entering."""
        return self._do(c.post(self._base + "/resume", {"if_version": if_version}, timeout=c.LONG))

    def stats(self) -> Record:
        return self._do(c.get(self._base + "/stats", c.member("stats")))

    def progress(self) -> Record:
        return self._do(c.get(self._base + "/progress"))

    def watch_progress(self) -> Iterator[Record]:
        return self._events(ServerEvents(self._base + "/progress", self._driver.reconnect, ends=True))

    def exec(self, command: Command, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
             stdin: Union[str, bytes, None] = None, timeout: Optional[float] = 30.0, user: Optional[str] = None,
             max_output_bytes: Optional[int] = None, idempotency_key: Optional[str] = None) -> ExecResult:
        """Runs bash text, or a program with its arguments, to its end. timeout: seconds until all it started is killed; None: never."""
        body = c.exec_body(command, stdin=stdin, timeout=timeout, key=idempotency_key, cwd=cwd, env=env, user=user,
                           max_output_bytes=max_output_bytes)
        return self._do(c.run(self._base, body, timeout))

    def stream(self, command: Command, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
               stdin: Union[str, bytes, None] = None, timeout: Optional[float] = 30.0, user: Optional[str] = None,
               pty: Optional[Mapping[str, int]] = None, max_output_bytes: Optional[int] = None,
               idempotency_key: Optional[str] = None) -> Iterator[Event]:
        """The same as it runs. A connection that broke, or a service that was started again, is taken up without
        missing or repeating a byte. A slow reader slows the command."""
        body = c.exec_body(command, stdin=stdin, timeout=timeout, key=idempotency_key, cwd=cwd, env=env, user=user,
                           pty=pty, max_output_bytes=max_output_bytes, detached=True)
        return self._events(ExecStream(self._base, body, self._driver.reconnect))

    def start(self, command: Command, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
              stdin: Union[str, bytes, None] = None, stdin_open: Optional[bool] = None,
              timeout: Optional[float] = None, user: Optional[str] = None, pty: Optional[Mapping[str, int]] = None,
              max_output_bytes: Optional[int] = None, idempotency_key: Optional[str] = None) -> "ExecApi":
        """In the background; returns when it runs. Without `stdin` its input is open for write()."""
        body = c.exec_body(command, stdin=stdin, timeout=timeout, key=idempotency_key, cwd=cwd, env=env, user=user,
                           pty=pty, max_output_bytes=max_output_bytes, stdin_open=stdin_open, background=True,
                           detached=True)
        ask = request("POST", self._base + "/exec", body, keyed="idempotency_key" in body)
        return self._do(Call(ask, lambda r: self._exec_type(self._driver, self.id, r.json()["exec_id"])))

    def command(self, exec_id: str) -> "ExecApi":
        """One that was started before, by its id; asks nothing."""
        return self._exec_type(self._driver, self.id, exec_id)

    def execs(self) -> Iterator[Record]:
        return self._pages(c.page(self._base + "/execs", {}), "execs")

    def snapshot(self, name: Optional[str] = None, live: Optional[bool] = None) -> Record:
        return self._do(c.post(self._base + "/snapshots", {"name": name, "live": live}, c.member("snapshot"),
                               timeout=c.LONG))

    def snapshots(self) -> Iterator[Record]:
        return self._pages(c.page(self._base + "/snapshots", {}), "snapshots")

    def delete_snapshot(self, snapshot: str) -> None:
        return self._do(c.delete(f"{self._base}/snapshots/{quote(snapshot)}", c.nothing))

    def fork(self, count: int = 1, key: Optional[str] = None, snapshot: Optional[str] = None) -> Any:
        """A list of new sessions with the files of this one."""
        def decode(reply: Any) -> Any:
            return [type(self)(self._driver, s["id"], {"session": s}) for s in reply.json()["sessions"]]
        return self._do(c.post(self._base + "/fork", {"count": count, "key": key, "snapshot": snapshot}, decode,
                               timeout=c.LONG))

    def rollback(self, snapshot: str, if_version: Optional[int] = None) -> Record:
        return self._move("rollback", snapshot=snapshot, if_version=if_version)

    def tty(self, *, exec_id: Optional[str] = None, offset: Optional[int] = None, command: Optional[str] = None,
            cwd: Optional[str] = None, user: Optional[str] = None, rows: int = 24, cols: int = 80) -> Any:
        """A terminal in it; closing leaves it running, and its exec_id leads back to it."""
        return self._driver._terminal(self._base + "/tty" + query({
            "exec": exec_id, "offset": offset, "command": command, "cwd": cwd, "user": user, "rows": rows,
            "cols": cols}))


class ClientApi(Part):
    """What is not of one session."""
    _session_type: Any

    def enter(self, key: Optional[str] = None, *, user: Optional[str] = None, thread: Optional[str] = None,
              timeout: float = 120.0, idempotency_key: Optional[str] = None, **want: Any) -> Any:
        """Gets or creates the session a key leads to: template, limits, env, idle_timeout_ms, on_idle, metadata,
        policy, snapshot, if_exists, pin, wait_ms ... as POST /v1/sessions has them."""
        body = {"key": key, "user": user, "thread": thread, "idempotency_key": idempotency_key or c.new_key(), **want}
        if body.get("pin") is not None:
            body.pop("idempotency_key")
        ask = request("POST", "/v1/sessions", body, keyed="idempotency_key" in body, timeout=timeout)
        return self._do(Call(ask, lambda r: self._session_type(self._driver, "", r.json())))

    def session(self, ref: str) -> Any:
        """By its id, or "key:NAME". Sends no request: only the first call shows whether it exists."""
        return self._session_type(self._driver, ref)

    def sessions(self, *, user: Optional[str] = None, state: Optional[str] = None, project: Optional[str] = None,
                 metadata: Optional[Mapping[str, str]] = None, limit: Optional[int] = None) -> Iterator[Record]:
        """All of them, page by page; `limit` is how many one page has."""
        filters: Dict[str, Any] = {"user": user, "state": state, "project": project, "limit": limit}
        filters.update({f"metadata.{k}": v for k, v in (metadata or {}).items()})
        return self._pages(c.page("/v1/sessions", filters), "sessions")

    def cleanup(self, user: Optional[str] = None, reason: Optional[str] = None) -> Record:
        """Destroys every session of a user, or all: {"destroyed": ids, "failed": ids}."""
        return self._do(c.cleanup({"user": user}, reason))

    def events(self, *, session: Optional[str] = None, since: int = 0, all: Optional[bool] = None) -> Iterator[Record]:
        """What happened after `since`, as far as it is kept."""
        filters = {"session": session, "all": all}
        return self._driver._event_pages(lambda at: c.get("/v1/events", pairs={**filters, "since": at}), since)

    def follow_events(self, *, session: Optional[str] = None, since: Optional[int] = None,
                      all: Optional[bool] = None) -> Iterator[Record]:
        """The same as it happens; goes on by itself after a break. since None: from now on."""
        path = "/v1/events" + query({"session": session, "all": all, "since": since})
        return self._events(ServerEvents(path, self._driver.reconnect, resume=True, last=since))

    def snapshots(self, *, session: Optional[str] = None, user: Optional[str] = None,
                  limit: Optional[int] = None) -> Iterator[Record]:
        """All of them, page by page, also those whose session is gone and those that were brought in; `limit` is how
        many one page has."""
        return self._pages(c.page("/v1/snapshots", {"session": session, "user": user, "limit": limit}), "snapshots")

    def snapshot(self, snapshot: str) -> Record:
        return self._do(c.get(f"/v1/snapshots/{quote(snapshot)}", c.member("snapshot")))

    def delete_snapshot(self, snapshot: str) -> None:
        return self._do(c.delete(f"/v1/snapshots/{quote(snapshot)}", c.nothing))

    def export_snapshot(self, snapshot: str, to: Source) -> int:
        """As .tar.zst."""
        return self._save_to(Request("GET", f"/v1/snapshots/{quote(snapshot)}/archive", timeout=c.LONG), to)

    def import_snapshot(self, source: Source, *, template: Optional[str] = None, name: Optional[str] = None) -> Record:
        at = "/v1/snapshots" + query({"template": template, "name": name})
        return self._send_from(source, lambda **how: Request("POST", at, kind="application/zstd", timeout=c.LONG,
                                                             **how), c.member("snapshot"))

    def templates(self) -> Any:
        """A list of all."""
        return self._do(c.get("/v1/templates", c.member("templates")))

    def template(self, name: str) -> Record:
        return self._do(c.get(f"/v1/templates/{quote(name)}", c.member("template")))

    def create_template(self, name: str, snapshot: str, **more: Any) -> Record:
        """Of a snapshot; run_as, workdir, env, limits, class, policy, tenant."""
        return self._do(c.post("/v1/templates", {"name": name, "snapshot": snapshot, **more}, c.member("template"),
                               timeout=c.LONG))

    def upload_template(self, name: str, source: Source, *, format: Optional[str] = None) -> Record:
        """Of a tar of a root file system (packed or not), or with format="oci" of an OCI layout."""
        at = f"/v1/templates/{quote(name)}" + query({"format": format})
        return self._send_from(source, lambda **how: Request("POST", at, kind="application/octet-stream",
                                                             timeout=c.LONG, **how), c.member("template"))

    def patch_template(self, name: str, **changes: Any) -> Record:
        ask = Request("PATCH", f"/v1/templates/{quote(name)}", **_json(changes))
        return self._do(Call(ask, c.member("template")))

    def delete_template(self, name: str) -> str:
        return self._do(c.delete(f"/v1/templates/{quote(name)}", c.member("removed")))

    def environment(self, template: str = "host", *, refresh: bool = False) -> Record:
        """What it looks like inside: variables, tools, system."""
        path = f"/v1/templates/{quote(template)}/environment"
        ask = Request("POST", path, timeout=c.LONG) if refresh else Request("GET", path)
        return self._do(Call(ask, c.member("environment")))

    def create_key(self, **want: Any) -> Record:
        """tenant, scope, user, name, expires_at, expires_in_ms: {"key": ..., "secret": ...}. The secret is shown only once."""
        return self._do(c.post("/v1/keys", want))

    def keys(self, tenant: Optional[str] = None) -> Iterator[Record]:
        return self._pages(c.page("/v1/keys", {"tenant": tenant}), "keys")

    def key(self, key: str) -> Record:
        return self._do(c.get(f"/v1/keys/{quote(key)}", c.member("key")))

    def delete_key(self, key: str) -> Record:
        return self._do(c.delete(f"/v1/keys/{quote(key)}", c.member("key")))

    def create_policy(self, name: str, **want: Any) -> Record:
        return self._do(c.post("/v1/policies", {"name": name, **want}, c.member("policy")))

    def policies(self, tenant: Optional[str] = None) -> Iterator[Record]:
        return self._pages(c.page("/v1/policies", {"tenant": tenant}), "policies")

    def policy(self, name: str, tenant: Optional[str] = None) -> Record:
        return self._do(c.get(f"/v1/policies/{quote(name)}", c.member("policy"), {"tenant": tenant}))

    def patch_policy(self, name: str, tenant: Optional[str] = None, **changes: Any) -> Record:
        """None takes a rule away."""
        ask = Request("PATCH", f"/v1/policies/{quote(name)}" + query({"tenant": tenant}), **_json(changes))
        return self._do(Call(ask, c.member("policy")))

    def delete_policy(self, name: str, tenant: Optional[str] = None) -> Record:
        return self._do(c.delete(f"/v1/policies/{quote(name)}", c.member("policy"), {"tenant": tenant}))

    def test_policy(self, name: str, command: str, tenant: Optional[str] = None) -> Record:
        """What it says of a command, word by word."""
        return self._do(c.post(f"/v1/policies/{quote(name)}/test" + query({"tenant": tenant}), {"command": command}))

    def user(self, user: str) -> Record:
        """{"user": ..., "quota": ..., "usage": ...}"""
        return self._do(c.get(f"/v1/users/{quote(user)}"))

    def quota(self, user: str) -> Record:
        return self._do(c.get(f"/v1/users/{quote(user)}/quota"))

    def set_quota(self, user: str, **quota: int) -> Record:
        """sandboxes, memory_bytes, disk_bytes, cpu_ms; what is left out has no limit."""
        return self._do(Call(request("PUT", f"/v1/users/{quote(user)}/quota", quota), c.whole))

    def health(self) -> Record:
        return self._do(c.get("/health"))

    def ready(self) -> Record:
        return self._do(c.get("/ready"))

    def metrics(self) -> str:
        """For Prometheus."""
        return self._do(c.get("/metrics", c.text))

    def openapi(self) -> Record:
        return self._do(c.get("/openapi.json"))

    def progress(self) -> Record:
        """How far the service's own start has come."""
        return self._do(c.get("/v1/progress"))

    def watch_progress(self) -> Iterator[Record]:
        return self._events(ServerEvents("/v1/progress", self._driver.reconnect, ends=True))


def _json(changes: Mapping[str, Any]) -> Dict[str, Any]:
    """With its nulls, which mean something here."""
    return {"body": json.dumps(dict(changes)).encode(), "kind": "application/json"}
