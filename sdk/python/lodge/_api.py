# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return"
"""All of /v1, once for both clients: in the blocking one a method returns what it says, in the asynchronous one
something to await (iterators: to iterate by `async for`). stubs.py writes the types of both."""
import json
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Union

from . import _calls as c
from ._calls import CommandLine, Kinds
from ._files_api import Source
from ._http import Call, Request, query, quote, request, timeout_of
from ._part import Part
from ._projects import ProjectsApi, TeamsApi
from ._streams import ExecStream, ServerEvents
from ._version import VERSION, series
from .types import Event, ExecResult, Record, Versions

if TYPE_CHECKING:
    from . import records
    from ._files import Terminal
    from .client import Exec, Session


class SessionApi(Part):
    """One session of a Client: its commands, files, snapshots and settings.

    `record`, `outcome`, `state_lost`, `cause` and `ignored` are as they were when it was entered. `with` deletes at its end
    what enter() or fork() made without a key, thread or user; all others stay.

    >>> with client.enter() as session:
    ...     session.exec("echo hi").text
    'hi\\n'
    """
    _exec_type: Any
    _files_type: Any

    def __init__(self, driver: Any, ref: str, entered: Optional[Mapping[str, Any]] = None, *,
                 temporary: bool = False) -> None:
        super().__init__(driver)
        reply = entered or {}
        self.record: "records.Session" = dict(reply.get("session") or {})  # type: ignore[assignment]
        self.id: str = self.record.get("id", ref)
        self.outcome: Optional[str] = reply.get("outcome")
        self.state_lost: bool = bool(reply.get("state_lost"))
        self.cause: "Optional[records.Cause]" = reply.get("cause")
        self._temporary = temporary and self._is_nameless()
        self.ignored: List[str] = list(reply.get("ignored") or ())
        self._base = c.session_base(self.id)
        self.files = self._files_type(driver, self.id)

    def __repr__(self) -> str:
        key = self.record.get("key")
        return f"<{type(self).__name__} {self.id}" + (f" key={key!r}>" if key is not None else ">")

    def _is_nameless(self) -> bool:
        """No other caller can come back to it. A user's token finds the user's session without naming it."""
        r = self.record
        return not r.get("key") and not r.get("thread") and (not r.get("user") or self.outcome in ("created", None))

    def _move(self, verb: str, **body: Any) -> Any:
        return self._do(c.post(f"{self._base}/{verb}", body, c.member("session"), timeout=c.LONG))

    def get(self) -> "records.Session":
        """Return its record; changes nothing."""
        return self._do(c.get(self._base, c.member("session")))

    def patch(self, **changes: Any) -> "records.Session":
        """Change idle_timeout_ms, lifetime_ms, max_lifetime_ms, delete_after_ms, on_idle, on_expire, limits, metadata or archived.

        Returns the record. if_version: only if the record still has this version."""
        return self._do(Call(request("PATCH", self._base, changes, timeout=c.LONG), c.member("session")))

    def delete(self, reason: Optional[str] = None, if_version: Optional[int] = None) -> "records.Tombstone":
        """Delete it with its files, and return the tombstone; one that is deleted already is no error."""
        return self._do(c.delete(self._base, c.member("tombstone"), {"reason": reason, "if_version": if_version}))

    def probe(self, deadline: Optional[float] = None) -> "records.ProbeAnswer":
        """Check whether its sandbox answers; extends nothing.

        deadline: seconds; 0 or None: 15, as the service has it."""
        return self._do(c.post(self._base + "/probe", {"deadline_ms": c.ms("deadline", deadline) or None}))

    def extend(self, ms: Optional[int] = None, if_version: Optional[int] = None) -> "records.ExtendedSession":
        """Postpone the end of its sandbox; the record has `extended_by_ms`, by which it really moved, `at_maximum` and `reason`."""
        return self._do(c.post(self._base + "/extend", {"ms": ms, "if_version": if_version}, c.extended))

    def activity(self) -> "records.Session":
        """Count as use, so that its idle time starts again."""
        return self._move("activity")

    def pause(self, if_version: Optional[int] = None) -> "records.Session":
        """Freeze its processes, which keep their memory; the next use continues them."""
        return self._move("pause", if_version=if_version)

    def unpause(self, if_version: Optional[int] = None) -> "records.Session":
        """Continue its processes after pause()."""
        return self._move("unpause", if_version=if_version)

    def hibernate(self, if_version: Optional[int] = None) -> "records.Session":
        """End its processes and keep its files; the next use starts it again."""
        return self._move("hibernate", if_version=if_version)

    def resume(self, if_version: Optional[int] = None) -> "records.Entered":
        """Start a sandbox for it if it has none; the answer is that of enter()."""
        return self._do(c.post(self._base + "/resume", {"if_version": if_version}, timeout=c.LONG))

    def stats(self) -> "records.StatsStats":
        """Return what its sandbox uses now: memory, CPU, processes, disk."""
        return self._do(c.get(self._base + "/stats", c.member("stats")))

    def progress(self) -> "records.Progress":
        """Return how far the start of its sandbox has come."""
        return self._do(c.get(self._base + "/progress"))

    def watch_progress(self) -> Iterator["records.Progress"]:
        """Iterate over the steps of the start of its sandbox until it is ready."""
        return self._events(ServerEvents(self._base + "/progress", self._driver.reconnect, ends=True))

    def exec(self, command: CommandLine, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
             stdin: Union[str, bytes, None] = None, timeout: Optional[float] = 30.0, user: Optional[str] = None,
             max_output_bytes: Optional[int] = None, idempotency_key: Optional[str] = None) -> ExecResult:
        """Run bash text, or a program with its arguments, to its end.

        A command that fails is a result, also one that is not found (exit_code 127) or cannot be executed (126). timeout: seconds
        until all it started is killed; 0 or None: no limit."""
        body = c.exec_body(command, stdin=stdin, timeout=timeout, key=idempotency_key, cwd=cwd, env=env, user=user,
                           max_output_bytes=max_output_bytes)
        return self._do(c.run(self._base, body, timeout))

    def stream(self, command: CommandLine, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
               stdin: Union[str, bytes, None] = None, timeout: Optional[float] = 30.0, user: Optional[str] = None,
               pty: Optional[Mapping[str, int]] = None, max_output_bytes: Optional[int] = None,
               idempotency_key: Optional[str] = None) -> Iterator[Event]:
        """Run a command, and iterate over its output and its end as events.

        A broken connection or a restart of the service is bridged without repeating a byte; bytes that are no longer retained
        by then are a "gap". A slow reader slows the command. timeout: as of exec()."""
        body = c.exec_body(command, stdin=stdin, timeout=timeout, key=idempotency_key, cwd=cwd, env=env, user=user,
                           pty=pty, max_output_bytes=max_output_bytes, detached=True)
        return self._events(ExecStream(self._base, body, self._driver.reconnect))

    def start(self, command: CommandLine, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
              stdin: Union[str, bytes, None] = None, stdin_open: Optional[bool] = None,
              timeout: Optional[float] = None, user: Optional[str] = None, pty: Optional[Mapping[str, int]] = None,
              max_output_bytes: Optional[int] = None, idempotency_key: Optional[str] = None) -> "Exec":
        """Start a command in the background, and return when it runs.

        Without `stdin` its input is open for write(). timeout: seconds until it is killed; 0 or None: no limit."""
        body = c.exec_body(command, stdin=stdin, timeout=timeout, key=idempotency_key, cwd=cwd, env=env, user=user,
                           pty=pty, max_output_bytes=max_output_bytes, stdin_open=stdin_open, background=True,
                           detached=True)
        ask = request("POST", self._base + "/exec", body, keyed="idempotency_key" in body)
        return self._do(Call(ask, lambda r: self._exec_type(self._driver, self.id, r.json()["exec_id"])))

    def command(self, exec_id: str) -> "Exec":
        """Return a command that was started before, by its id; sends no request."""
        return self._exec_type(self._driver, self.id, exec_id)

    def execs(self) -> Iterator["records.Exec"]:
        """Iterate over the records of its commands, also of those that have ended."""
        return self._pages(c.page(self._base + "/execs", {}), "execs")

    def snapshot(self, name: Optional[str] = None, live: Optional[bool] = None) -> "records.Snapshot":
        """Save the state of its files, and return the record of the snapshot."""
        return self._do(c.post(self._base + "/snapshots", {"name": name, "live": live}, c.member("snapshot"),
                               timeout=c.LONG))

    def snapshots(self) -> Iterator["records.Snapshot"]:
        """Iterate over the records of its snapshots."""
        return self._pages(c.page(self._base + "/snapshots", {}), "snapshots")

    def delete_snapshot(self, snapshot: str) -> None:
        """Delete one of its snapshots."""
        return self._do(c.delete(f"{self._base}/snapshots/{quote(snapshot)}", c.nothing))

    def fork(self, count: int = 1, key: Optional[str] = None, snapshot: Optional[str] = None) -> List["Session"]:
        """Make new sessions with the files of this one, or of a snapshot; they stay hibernated until they are used."""
        def decode(reply: Any) -> Any:
            return [type(self)(self._driver, s["id"], {"session": s}, temporary=True)
                    for s in reply.json()["sessions"]]
        return self._do(c.post(self._base + "/fork", {"count": count, "key": key, "snapshot": snapshot}, decode,
                               timeout=c.LONG))

    def rollback(self, snapshot: str, if_version: Optional[int] = None) -> "records.Session":
        """Set its files back to one of its snapshots; running commands end."""
        return self._move("rollback", snapshot=snapshot, if_version=if_version)

    def tty(self, *, exec_id: Optional[str] = None, offset: Optional[int] = None, command: Optional[str] = None,
            cwd: Optional[str] = None, user: Optional[str] = None, rows: int = 24, cols: int = 80) -> "Terminal":
        """Open a terminal in it; closing it leaves its program running, and exec_id leads back to it."""
        return self._driver._terminal(self._base + "/tty" + query({
            "exec": exec_id, "offset": offset, "command": command, "cwd": cwd, "user": user, "rows": rows,
            "cols": cols}))


class ClientApi(Part):
    """The client of all of /v1, whose methods are those of the API; most programs only need lodge.Sandbox.

    server_url: "http://HOST:PORT", "https://..." or "unix:PATH"; by default LODGE_URL, or the socket of the local service.
    api_key: by default LODGE_API_KEY, or the key beside that socket. timeout: seconds without a byte (0 or None: no
    limit). retry_for: for how many seconds a request that can be repeated safely is tried; by default 10, but 1.5 until
    the service was reached once. reconnect_for: the same for a broken stream. retry: a lodge.RetryPolicy, or False.

    headers: added to every request, or a function that returns them. user_agent: what the User-Agent begins with.
    traceparent: the trace context of every request, or a function that returns that of the caller. logger: gets a line
    for each request (debug) and each retry (warning), without keys and bodies; by default the logger "lodge". connect: a
    function of host, port and an SSLContext or None that returns a connected socket, for an AsyncClient a pair of
    asyncio streams to await; of "unix:PATH" the path is the host. proxy: "http://[USER:PASSWORD@]HOST:PORT". tls: the SSLContext for https. A Client is used by any number of threads, an
    AsyncClient by one event loop.

    >>> with lodge.Client() as client:
    ...     session = client.enter("build-17", user="ada")
    ...     print(session.exec("echo hi").text, end="")
    ...     tombstone = session.delete()
    hi
    """
    _session_type: Any
    _projects_type: Any = ProjectsApi
    _teams_type: Any = TeamsApi

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self.projects = self._projects_type(driver)
        self.teams = self._teams_type(driver)

    def enter(self, key: Optional[str] = None, *, user: Optional[str] = None, thread: Optional[str] = None,
              timeout: Optional[float] = 120.0, idempotency_key: Optional[str] = None, **want: Any) -> "Session":
        """Return the session of a key, a thread or a user, and create it first if there is none.

        Other options are those of POST /v1/sessions: template, limits, env, idle_timeout_ms, on_idle, metadata, policy, snapshot,
        if_exists, pin, wait_ms and more. Without key, user and thread it makes a new session, which `with` deletes at its end.
        Options apply to new sessions only: `ignored` of the result names those that an existing one has otherwise, with a
        lodge.IgnoredWarning. timeout: seconds; 0 or None: no limit."""
        implied, quiet = want.pop("_implied", ()), want.pop("_quiet", False)  # defaults of a manager: ignoring them is no news
        limit = timeout_of("timeout", timeout)
        temporary = all(name is None for name in (key, user, thread, idempotency_key, want.get("pin")))
        body = {"key": key, "user": user, "thread": thread, "idempotency_key": idempotency_key or c.new_key(), **want}
        if body.get("pin") is not None:
            body.pop("idempotency_key")
        ask = request("POST", "/v1/sessions", body, keyed="idempotency_key" in body, timeout=limit)

        def decode(reply: Any) -> Any:
            session = self._session_type(self._driver, "", reply.json(), temporary=temporary)
            ignored = [] if quiet else [n for n in session.ignored if n not in implied]
            c.warn_ignored(f"session {key or session.id} already exists", ignored,
                           "ignored; patch() changes what can be changed")
            return session
        return self._do(Call(ask, decode))

    def session(self, ref: str) -> "Session":
        """Return a session by its id or "key:NAME"; sends no request, so only the first call shows whether it exists."""
        return self._session_type(self._driver, ref)

    def sessions(self, *, user: Optional[str] = None, state: Optional[str] = None, project: Optional[str] = None,
                 metadata: Optional[Mapping[str, str]] = None, tenant: Optional[str] = None, all: Optional[bool] = None,
                 limit: Optional[int] = None) -> Iterator["records.Session"]:
        """Iterate over the records of sessions; `limit` is how many one page has.

        tenant, all: those of another tenant, or of all; needs a key with scope "admin"."""
        filters: Dict[str, Any] = {"user": user, "state": state, "project": project, "tenant": tenant, "all": all,
                                   "limit": limit}
        filters.update({f"metadata.{k}": v for k, v in (metadata or {}).items()})
        return self._pages(c.page("/v1/sessions", filters), "sessions")

    def cleanup(self, user: Optional[str] = None, reason: Optional[str] = None) -> Dict[str, List[str]]:
        """Delete every session of a user, or all, and return the ids as {"destroyed": [...], "failed": [...]}."""
        return self._do(c.cleanup({"user": user}, reason))

    def events(self, *, session: Optional[str] = None, user: Optional[str] = None, kind: Kinds = None, since: int = 0,
               newest_first: bool = False, all: Optional[bool] = None) -> Iterator["records.Event"]:
        """Iterate over what happened after the event `since`, oldest first; of a session, a user, some kinds, or
        `all` tenants."""
        filters: Dict[str, Any] = {"session": session, "user": user, "kind": c.comma(kind), "all": all}
        if newest_first:
            filters.update(order="desc", since=since)
            return self._driver._event_pages(lambda at: c.get("/v1/events", pairs={**filters, "before": at}), None)
        return self._driver._event_pages(lambda at: c.get("/v1/events", pairs={**filters, "since": at}), since)

    def follow_events(self, *, session: Optional[str] = None, user: Optional[str] = None, kind: Kinds = None,
                      since: Optional[int] = None, all: Optional[bool] = None) -> Iterator["records.Event"]:
        """Iterate over events as they happen, also across broken connections; since=None: from now on."""
        path = "/v1/events" + query({"session": session, "user": user, "kind": c.comma(kind), "all": all, "since": since})
        return self._events(ServerEvents(path, self._driver.reconnect, resume=True, last=since))

    def snapshots(self, *, session: Optional[str] = None, user: Optional[str] = None,
                  limit: Optional[int] = None) -> Iterator["records.Snapshot"]:
        """Iterate over the records of snapshots, also of those that were imported or whose session is gone.

        limit: how many one page has."""
        return self._pages(c.page("/v1/snapshots", {"session": session, "user": user, "limit": limit}), "snapshots")

    def snapshot(self, snapshot: str) -> "records.Snapshot":
        """Return the record of a snapshot."""
        return self._do(c.get(f"/v1/snapshots/{quote(snapshot)}", c.member("snapshot")))

    def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot; sessions that were made from it keep their files."""
        return self._do(c.delete(f"/v1/snapshots/{quote(snapshot)}", c.nothing))

    def export_snapshot(self, snapshot: str, to: Source) -> int:
        """Save a snapshot to a local file as .tar.zst, and return its size."""
        return self._save_to(Request("GET", f"/v1/snapshots/{quote(snapshot)}/archive", timeout=c.LONG), to)

    def import_snapshot(self, source: Source, *, template: Optional[str] = None, name: Optional[str] = None) -> "records.Snapshot":
        """Make a snapshot from a local .tar.zst that export_snapshot() wrote."""
        at = "/v1/snapshots" + query({"template": template, "name": name})
        return self._send_from(source, lambda **how: Request("POST", at, kind="application/zstd", timeout=c.LONG,
                                                             **how), c.member("snapshot"))

    def templates(self) -> List["records.Template"]:
        """Return the records of all templates."""
        return self._do(c.get("/v1/templates", c.member("templates")))

    def template(self, name: str) -> "records.Template":
        """Return the record of a template."""
        return self._do(c.get(f"/v1/templates/{quote(name)}", c.member("template")))

    def create_template(self, name: str, snapshot: str, **more: Any) -> "records.Template":
        """Make a template from a snapshot; with run_as, workdir, env, limits, class, policy, tenant."""
        return self._do(c.post("/v1/templates", {"name": name, "snapshot": snapshot, **more}, c.member("template"),
                               timeout=c.LONG))

    def upload_template(self, name: str, source: Source, *, format: Optional[str] = None) -> "records.Template":
        """Make a template from a tar of a root file system or an image (docker save, OCI layout), packed or not."""
        at = f"/v1/templates/{quote(name)}" + query({"format": format})
        return self._send_from(source, lambda **how: Request("POST", at, kind="application/octet-stream",
                                                             timeout=c.LONG, **how), c.member("template"))

    def patch_template(self, name: str, **changes: Any) -> "records.Template":
        """Change settings of a template."""
        ask = Request("PATCH", f"/v1/templates/{quote(name)}", **_json(changes))
        return self._do(Call(ask, c.member("template")))

    def delete_template(self, name: str) -> str:
        """Delete a template, and return its name."""
        return self._do(c.delete(f"/v1/templates/{quote(name)}", c.member("removed")))

    def environment(self, template: str = "host", *, refresh: bool = False) -> "records.TemplateEnvironment":
        """Return what it looks like inside a template: variables, tools, system."""
        path = f"/v1/templates/{quote(template)}/environment"
        ask = Request("POST", path, timeout=c.LONG) if refresh else Request("GET", path)
        return self._do(Call(ask, c.member("environment")))

    def create_key(self, **want: Any) -> "records.KeyMade":
        """Make an API key; with tenant, scope, user, name, expires_at or expires_in_ms.

        The answer has the record as "key", and the key itself as "secret", which is shown only once."""
        return self._do(c.post("/v1/keys", want))

    def keys(self, tenant: Optional[str] = None) -> Iterator["records.Key"]:
        """Iterate over the records of API keys."""
        return self._pages(c.page("/v1/keys", {"tenant": tenant}), "keys")

    def key(self, key: str) -> "records.Key":
        """Return the record of an API key."""
        return self._do(c.get(f"/v1/keys/{quote(key)}", c.member("key")))

    def delete_key(self, key: str) -> "records.Key":
        """Revoke an API key."""
        return self._do(c.delete(f"/v1/keys/{quote(key)}", c.member("key")))

    def create_policy(self, name: str, **want: Any) -> "records.Policy":
        """Make a policy: which programs may run, and which limits a session may have."""
        return self._do(c.post("/v1/policies", {"name": name, **want}, c.member("policy")))

    def policies(self, tenant: Optional[str] = None) -> Iterator["records.Policy"]:
        """Iterate over policies."""
        return self._pages(c.page("/v1/policies", {"tenant": tenant}), "policies")

    def policy(self, name: str, tenant: Optional[str] = None) -> "records.Policy":
        """Return a policy."""
        return self._do(c.get(f"/v1/policies/{quote(name)}", c.member("policy"), {"tenant": tenant}))

    def patch_policy(self, name: str, tenant: Optional[str] = None, **changes: Any) -> "records.Policy":
        """Change a policy; None removes a rule."""
        ask = Request("PATCH", f"/v1/policies/{quote(name)}" + query({"tenant": tenant}), **_json(changes))
        return self._do(Call(ask, c.member("policy")))

    def delete_policy(self, name: str, tenant: Optional[str] = None) -> "records.Policy":
        """Delete a policy."""
        return self._do(c.delete(f"/v1/policies/{quote(name)}", c.member("policy"), {"tenant": tenant}))

    def test_policy(self, name: str, command: str, tenant: Optional[str] = None) -> "records.PolicyVerdict":
        """Return what a policy says of a command, program by program."""
        return self._do(c.post(f"/v1/policies/{quote(name)}/test" + query({"tenant": tenant}), {"command": command}))

    def user(self, user: str) -> "records.UserAnswer":
        """Return a user with quota and usage."""
        return self._do(c.get(f"/v1/users/{quote(user)}"))

    def users(self, *, sort: Optional[str] = None, order: Optional[str] = None, q: Optional[str] = None,
              limit: Optional[int] = None) -> "records.UserList":
        """Return all users with what each really uses and what is reserved, and the state of the disk."""
        return self._do(c.get("/v1/users", pairs={"sort": sort, "order": order, "q": q, "limit": limit}))

    def set_user(self, user: str, *, name: Optional[str] = None, email: Optional[str] = None) -> "records.UserAnswer":
        """Set the name or email of a user; what is not given stays, and "" removes it."""
        ask = Request("PATCH", f"/v1/users/{quote(user)}", **_json({"name": name, "email": email}))
        return self._do(Call(ask, c.whole))

    def quota(self, user: str) -> "records.QuotaAnswer":
        """Return the quota of a user."""
        return self._do(c.get(f"/v1/users/{quote(user)}/quota"))

    def set_quota(self, user: str, **quota: int) -> "records.QuotaAnswer":
        """Set the quota of a user: sandboxes, memory_bytes, disk_bytes, cpu_ms; what is not given has no limit."""
        return self._do(Call(request("PUT", f"/v1/users/{quote(user)}/quota", quota), c.whole))

    def version(self) -> Versions:
        """Return the versions of this package and of the service, and whether they fit."""
        def decode(reply: Any) -> Versions:
            server = str(reply.json()["version"])
            return Versions(VERSION, server, series(server) == series(VERSION))
        return self._do(c.get("/", decode))

    def health(self) -> "records.Health":
        """Return the state of the service, also of one that is failing."""
        return self._do(c.get("/health", also=503))

    def ready(self) -> bool:
        """Tell whether the service takes new work."""
        return self._do(c.get("/ready", c.member("ready"), also=503))

    def metrics(self) -> str:
        """Return the metrics of the service as text for Prometheus."""
        return self._do(c.get("/metrics", c.text))

    def openapi(self) -> Record:
        """Return the OpenAPI document of the service."""
        return self._do(c.get("/openapi.json"))

    def progress(self) -> "records.Progress":
        """Return how far the start of the service has come."""
        return self._do(c.get("/v1/progress"))

    def watch_progress(self) -> Iterator["records.Progress"]:
        """Iterate over the steps of the start of the service until it is ready."""
        return self._events(ServerEvents("/v1/progress", self._driver.reconnect, ends=True))


def _json(changes: Mapping[str, Any]) -> Dict[str, Any]:
    """With its nulls, which mean something here."""
    return {"body": json.dumps(dict(changes)).encode(), "kind": "application/json"}
