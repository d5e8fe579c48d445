# SPDX-License-Identifier: Apache-2.0
# Written by stubs.py from _projects.py, _exec_api.py, _api.py, _files_api.py, _command.py, _snapshot.py, _sandbox.py.
import asyncio
import datetime
import logging
import os
import socket
import ssl
from typing import (Any, AsyncIterator, Awaitable, Callable, Dict, Iterable, Iterator, List, Literal, Mapping,
                    Optional, Pattern, Sequence, Tuple, TypeVar, Union, overload)

from . import records
from ._calls import CommandLine, Kinds
from ._files import Terminal, Writer
from ._files_api import Content, Source
from ._files_async import AsyncReader, AsyncTerminal, AsyncWriter
from ._hooks import Headers, RetryPolicy, Traceparent
from ._http import Name
from ._options import Size
from .types import Event, ExecResult, Output, Record, Result, Versions

Item = TypeVar("Item")
Made = TypeVar("Made")


class Projects:
    """Projects, their fragments (saved sets of files), and the sandbox of each user.

    >>> made = client.projects.create("Site", user="ada")
    >>> client.projects.get_user_id_for_project(made["id"])
    'ada'
    >>> client.projects.delete(made["id"], user="ada")["name"]
    'Site'
    """
    def switch_user_to_fragment(self, user: Optional[str], project: str, fragment: Optional[str]=None) -> records.ProjectsSwitched:
        """Move the sandbox of a user to a fragment of a project.

        The answer has sandboxId, sessionId, restoredFiles, hasRestoredFiles and more; sandboxUrl is None, and sandboxUrlReason says
        why. What the user did elsewhere is kept as the working copy of that project.
        """
    def switch_user_to_project(self, user: Optional[str], project: str) -> records.ProjectsSwitched:
        """Move the sandbox of a user to the user's working copy of a project, or else its latest fragment."""
    def get_user_active_fragment(self, user: str) -> Optional[Record]:
        """Return where a user is, as projectId, fragmentId and fragment; None: nowhere.

        `fragment` has its files, and is missing if it was deleted.
        """
    def kill_user_active_sandbox(self, user: Optional[str]) -> Record:
        """End the sandbox of a user; sandboxId of the answer is None if there was none."""
    def get_user_id_for_project(self, project: str) -> str:
        """Return the id of the user who owns a project."""
    def kill_all_user_sandboxes(self) -> Record:
        """End the sandboxes of all users; the answer has users, killed, failed, killedSandboxes and failedSandboxes."""
    def create(self, name: str, *, user: Optional[str]=None, id: Optional[str]=None, team: Optional[str]=None) -> records.ProjectsProject:
        """Make a project, which the user owns."""
    def get(self, project: str, *, user: Optional[str]=None) -> records.ProjectsProject:
        """Return a project."""
    def list(self, *, user: Optional[str]=None) -> Iterator[records.ProjectsProject]:
        """Iterate over the projects that a user owns or shares by a team."""
    def delete(self, project: str, *, user: Optional[str]=None) -> records.ProjectsProject:
        """Delete a project, and return it as it was."""
    def create_fragment(self, project: str, *, user: Optional[str]=None, title: Optional[str]=None, files: Optional[Mapping[str, str]]=None, from_sandbox: Optional[bool]=None, snapshot: Optional[str]=None, id: Optional[str]=None) -> records.ProjectsFragmentAdded:
        """Save files (path: text, or "__BASE64__..."), those of the user's sandbox, or a snapshot as a fragment."""
    def fragments(self, project: str, *, user: Optional[str]=None) -> Iterator[records.ProjectsFragment]:
        """Iterate over the fragments of a project without their files, newest first."""
    def fragment(self, project: str, fragment: str, *, user: Optional[str]=None) -> records.ProjectsFragmentFiles:
        """Return a fragment with its files."""
    def delete_fragment(self, project: str, fragment: str, *, user: Optional[str]=None) -> records.ProjectsFragment:
        """Delete a fragment."""

class Teams:
    """Teams and their members, which share projects.

    Roles are OWNER, ADMIN, MEMBER and VIEWER. `by` is the acting user; without it the application itself acts.

    >>> client.teams.set_member("crew", "ada", "OWNER")["role"]
    'OWNER'
    >>> [m["user"] for m in client.teams.members("crew")]
    ['ada']
    """
    def list(self, user: Optional[str]=None) -> Iterator[records.Team]:
        """Iterate over all teams by name, or over those of a user with the role there."""
    def members(self, team: str, *, by: Optional[str]=None) -> Iterator[records.ProjectsMember]:
        """Iterate over the members of a team."""
    def set_member(self, team: str, user: str, role: str, *, by: Optional[str]=None) -> records.ProjectsMember:
        """Add a user to a team, or change the role."""
    def remove_member(self, team: str, user: str, *, by: Optional[str]=None) -> records.ProjectsMember:
        """Remove a user from a team."""

class Exec:
    """A command of a Session that runs in the background, also without a client.

    Any client can open it again by its id.

    >>> job = client.session(box.id).start("cat; exit 3")
    >>> job.write(b"in", eof=True)
    2
    >>> result = job.wait(60)
    >>> result.stdout, result.exit_code
    (b'in', 3)
    """
    id: str
    session: str
    def info(self) -> records.Exec:
        """Return its record: state, exit code, usage and more."""
    def output(self, stdout_offset: int=0, stderr_offset: int=0, wait: float=0.0) -> Output:
        """Return what it wrote from two offsets on, after up to `wait` seconds for something new.

        Raises OutputGoneError if that is no longer retained; its details have the first offsets that are.
        """
    def stream(self, stdout_offset: int=0, stderr_offset: int=0) -> Iterator[Event]:
        """Iterate over what it writes from two offsets on until it ends; output that is no longer retained is a "gap"."""
    def write(self, data: bytes=b'', eof: bool=False) -> int:
        """Write to its standard input; returns the number of bytes once the command has taken all of them."""
    def signal(self, signal: Union[int, str]='TERM') -> records.Exec:
        """Send it a signal, such as 15, "TERM" or "SIGTERM"."""
    def resize(self, rows: int, cols: int) -> records.Exec:
        """Change the size of its terminal."""
    def kill(self) -> records.Exec:
        """Kill it with everything it started; one that has ended already is no error."""
    def wait(self, timeout: Optional[float]=None) -> ExecResult:
        """Wait until it ends, and return the result with the output that is retained.

        timeout: seconds, after which a TimeoutError leaves it running; 0 or None: no limit. `truncated` of the result: not all
        of the output is retained.
        """

class Session:
    """One session of a Client: its commands, files, snapshots and settings.

    `record`, `outcome`, `state_lost`, `cause` and `ignored` are as they were when it was entered. `with` deletes at its end
    what enter() or fork() made without a key, thread or user; all others stay.

    >>> with client.enter() as session:
    ...     session.exec("echo hi").text
    'hi\\n'
    """
    id: str
    record: records.Session
    outcome: Optional[str]
    state_lost: bool
    cause: Optional[records.Cause]
    ignored: List[str]
    files: Files
    def __enter__(self) -> Session: ...
    def __exit__(self, *_: object) -> None: ...
    def get(self) -> records.Session:
        """Return its record; changes nothing."""
    def patch(self, **changes: Any) -> records.Session:
        """Change idle_timeout_ms, lifetime_ms, max_lifetime_ms, delete_after_ms, on_idle, on_expire, limits, metadata or archived.

        Returns the record. if_version: only if the record still has this version.
        """
    def delete(self, reason: Optional[str]=None, if_version: Optional[int]=None) -> records.Tombstone:
        """Delete it with its files, and return the tombstone; one that is deleted already is no error."""
    def probe(self, deadline: Optional[float]=None) -> records.ProbeAnswer:
        """Check whether its sandbox answers; extends nothing.

        deadline: seconds; 0 or None: 15, as the service has it.
        """
    def extend(self, ms: Optional[int]=None, if_version: Optional[int]=None) -> records.ExtendedSession:
        """Postpone the end of its sandbox; the record has `extended_by_ms`, by which it really moved, `at_maximum` and `reason`."""
    def activity(self) -> records.Session:
        """Count as use, so that its idle time starts again."""
    def pause(self, if_version: Optional[int]=None) -> records.Session:
        """Freeze its processes, which keep their memory; the next use continues them."""
    def unpause(self, if_version: Optional[int]=None) -> records.Session:
        """Continue its processes after pause()."""
    def hibernate(self, if_version: Optional[int]=None) -> records.Session:
        """End its processes and keep its files; the next use starts it again."""
    def resume(self, if_version: Optional[int]=None) -> records.Entered:
        """Start a sandbox for it if it has none; the answer is that of enter()."""
    def stats(self) -> records.StatsStats:
        """Return what its sandbox uses now: memory, CPU, processes, disk."""
    def progress(self) -> records.Progress:
        """Return how far the start of its sandbox has come."""
    def watch_progress(self) -> Iterator[records.Progress]:
        """Iterate over the steps of the start of its sandbox until it is ready."""
    def exec(self, command: CommandLine, *, cwd: Optional[str]=None, env: Optional[Mapping[str, str]]=None, stdin: Union[str, bytes, None]=None, timeout: Optional[float]=30.0, user: Optional[str]=None, max_output_bytes: Optional[int]=None, idempotency_key: Optional[str]=None) -> ExecResult:
        """Run bash text, or a program with its arguments, to its end.

        A command that fails is a result, also one that is not found (exit_code 127) or cannot be executed (126). timeout: seconds
        until all it started is killed; 0 or None: no limit.
        """
    def stream(self, command: CommandLine, *, cwd: Optional[str]=None, env: Optional[Mapping[str, str]]=None, stdin: Union[str, bytes, None]=None, timeout: Optional[float]=30.0, user: Optional[str]=None, pty: Optional[Mapping[str, int]]=None, max_output_bytes: Optional[int]=None, idempotency_key: Optional[str]=None) -> Iterator[Event]:
        """Run a command, and iterate over its output and its end as events.

        A broken connection or a restart of the service is bridged without repeating a byte; bytes that are no longer retained
        by then are a "gap". A slow reader slows the command. timeout: as of exec().
        """
    def start(self, command: CommandLine, *, cwd: Optional[str]=None, env: Optional[Mapping[str, str]]=None, stdin: Union[str, bytes, None]=None, stdin_open: Optional[bool]=None, timeout: Optional[float]=None, user: Optional[str]=None, pty: Optional[Mapping[str, int]]=None, max_output_bytes: Optional[int]=None, idempotency_key: Optional[str]=None) -> Exec:
        """Start a command in the background, and return when it runs.

        Without `stdin` its input is open for write(). timeout: seconds until it is killed; 0 or None: no limit.
        """
    def command(self, exec_id: str) -> Exec:
        """Return a command that was started before, by its id; sends no request."""
    def execs(self) -> Iterator[records.Exec]:
        """Iterate over the records of its commands, also of those that have ended."""
    def snapshot(self, name: Optional[str]=None, live: Optional[bool]=None) -> records.Snapshot:
        """Save the state of its files, and return the record of the snapshot."""
    def snapshots(self) -> Iterator[records.Snapshot]:
        """Iterate over the records of its snapshots."""
    def delete_snapshot(self, snapshot: str) -> None:
        """Delete one of its snapshots."""
    def fork(self, count: int=1, key: Optional[str]=None, snapshot: Optional[str]=None) -> List[Session]:
        """Make new sessions with the files of this one, or of a snapshot; they stay hibernated until they are used."""
    def rollback(self, snapshot: str, if_version: Optional[int]=None) -> records.Session:
        """Set its files back to one of its snapshots; running commands end."""
    def tty(self, *, exec_id: Optional[str]=None, offset: Optional[int]=None, command: Optional[str]=None, cwd: Optional[str]=None, user: Optional[str]=None, rows: int=24, cols: int=80) -> Terminal:
        """Open a terminal in it; closing it leaves its program running, and exec_id leads back to it."""

class Client:
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
    server_url: str
    projects: Projects
    teams: Teams
    def __init__(self, server_url: Optional[str] = ..., api_key: Optional[str] = ..., *, timeout: Optional[float] = ..., retry_for: Optional[float] = ..., reconnect_for: float = ..., tls: Optional[ssl.SSLContext] = ..., headers: Headers = ..., logger: Optional[logging.Logger] = ..., user_agent: Optional[str] = ..., traceparent: Traceparent = ..., retry: Union[RetryPolicy, bool, None] = ..., connect: Optional[Callable[[str, int, Optional[ssl.SSLContext]], socket.socket]] = ..., proxy: Optional[str] = ..., tracer: Any = ...) -> None: ...
    def close(self) -> None:
        """Close its connections; sessions stay."""
    def __enter__(self) -> Client: ...
    def __exit__(self, *_: object) -> None: ...
    def enter(self, key: Optional[str]=None, *, user: Optional[str]=None, thread: Optional[str]=None, timeout: Optional[float]=120.0, idempotency_key: Optional[str]=None, **want: Any) -> Session:
        """Return the session of a key, a thread or a user, and create it first if there is none.

        Other options are those of POST /v1/sessions: template, limits, env, idle_timeout_ms, on_idle, metadata, policy, snapshot,
        if_exists, pin, wait_ms and more. Without key, user and thread it makes a new session, which `with` deletes at its end.
        Options apply to new sessions only: `ignored` of the result names those that an existing one has otherwise, with a
        lodge.IgnoredWarning. timeout: seconds; 0 or None: no limit.
        """
    def session(self, ref: str) -> Session:
        """Return a session by its id or "key:NAME"; sends no request, so only the first call shows whether it exists."""
    def sessions(self, *, user: Optional[str]=None, state: Optional[str]=None, project: Optional[str]=None, metadata: Optional[Mapping[str, str]]=None, tenant: Optional[str]=None, all: Optional[bool]=None, limit: Optional[int]=None) -> Iterator[records.Session]:
        """Iterate over the records of sessions; `limit` is how many one page has.

        tenant, all: those of another tenant, or of all; needs a key with scope "admin".
        """
    def cleanup(self, user: Optional[str]=None, reason: Optional[str]=None) -> Dict[str, List[str]]:
        """Delete every session of a user, or all, and return the ids as {"destroyed": [...], "failed": [...]}."""
    def events(self, *, session: Optional[str]=None, user: Optional[str]=None, kind: Kinds=None, since: int=0, newest_first: bool=False, all: Optional[bool]=None) -> Iterator[records.Event]:
        """Iterate over what happened after the event `since`, oldest first; of a session, a user, some kinds, or
        `all` tenants.
        """
    def follow_events(self, *, session: Optional[str]=None, user: Optional[str]=None, kind: Kinds=None, since: Optional[int]=None, all: Optional[bool]=None) -> Iterator[records.Event]:
        """Iterate over events as they happen, also across broken connections; since=None: from now on."""
    def snapshots(self, *, session: Optional[str]=None, user: Optional[str]=None, limit: Optional[int]=None) -> Iterator[records.Snapshot]:
        """Iterate over the records of snapshots, also of those that were imported or whose session is gone.

        limit: how many one page has.
        """
    def snapshot(self, snapshot: str) -> records.Snapshot:
        """Return the record of a snapshot."""
    def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot; sessions that were made from it keep their files."""
    def export_snapshot(self, snapshot: str, to: Source) -> int:
        """Save a snapshot to a local file as .tar.zst, and return its size."""
    def import_snapshot(self, source: Source, *, template: Optional[str]=None, name: Optional[str]=None) -> records.Snapshot:
        """Make a snapshot from a local .tar.zst that export_snapshot() wrote."""
    def templates(self) -> List[records.Template]:
        """Return the records of all templates."""
    def template(self, name: str) -> records.Template:
        """Return the record of a template."""
    def create_template(self, name: str, snapshot: str, **more: Any) -> records.Template:
        """Make a template from a snapshot; with run_as, workdir, env, limits, class, policy, tenant."""
    def upload_template(self, name: str, source: Source, *, format: Optional[str]=None) -> records.Template:
        """Make a template from a tar of a root file system or an image (docker save, OCI layout), packed or not."""
    def patch_template(self, name: str, **changes: Any) -> records.Template:
        """Change settings of a template."""
    def delete_template(self, name: str) -> str:
        """Delete a template, and return its name."""
    def environment(self, template: str='host', *, refresh: bool=False) -> records.TemplateEnvironment:
        """Return what it looks like inside a template: variables, tools, system."""
    def create_key(self, **want: Any) -> records.KeyMade:
        """Make an API key; with tenant, scope, user, name, expires_at or expires_in_ms.

        The answer has the record as "key", and the key itself as "secret", which is shown only once.
        """
    def keys(self, tenant: Optional[str]=None) -> Iterator[records.Key]:
        """Iterate over the records of API keys."""
    def key(self, key: str) -> records.Key:
        """Return the record of an API key."""
    def delete_key(self, key: str) -> records.Key:
        """Revoke an API key."""
    def create_policy(self, name: str, **want: Any) -> records.Policy:
        """Make a policy: which programs may run, and which limits a session may have."""
    def policies(self, tenant: Optional[str]=None) -> Iterator[records.Policy]:
        """Iterate over policies."""
    def policy(self, name: str, tenant: Optional[str]=None) -> records.Policy:
        """Return a policy."""
    def patch_policy(self, name: str, tenant: Optional[str]=None, **changes: Any) -> records.Policy:
        """Change a policy; None removes a rule."""
    def delete_policy(self, name: str, tenant: Optional[str]=None) -> records.Policy:
        """Delete a policy."""
    def test_policy(self, name: str, command: str, tenant: Optional[str]=None) -> records.PolicyVerdict:
        """Return what a policy says of a command, program by program."""
    def user(self, user: str) -> records.UserAnswer:
        """Return a user with quota and usage."""
    def users(self, *, sort: Optional[str]=None, order: Optional[str]=None, q: Optional[str]=None, limit: Optional[int]=None) -> records.UserList:
        """Return all users with what each really uses and what is reserved, and the state of the disk."""
    def set_user(self, user: str, *, name: Optional[str]=None, email: Optional[str]=None) -> records.UserAnswer:
        """Set the name or email of a user; what is not given stays, and "" removes it."""
    def quota(self, user: str) -> records.QuotaAnswer:
        """Return the quota of a user."""
    def set_quota(self, user: str, **quota: int) -> records.QuotaAnswer:
        """Set the quota of a user: sandboxes, memory_bytes, disk_bytes, cpu_ms; what is not given has no limit."""
    def version(self) -> Versions:
        """Return the versions of this package and of the service, and whether they fit."""
    def health(self) -> records.Health:
        """Return the state of the service, also of one that is failing."""
    def ready(self) -> bool:
        """Tell whether the service takes new work."""
    def metrics(self) -> str:
        """Return the metrics of the service as text for Prometheus."""
    def openapi(self) -> Record:
        """Return the OpenAPI document of the service."""
    def progress(self) -> records.Progress:
        """Return how far the start of the service has come."""
    def watch_progress(self) -> Iterator[records.Progress]:
        """Iterate over the steps of the start of the service until it is ready."""

class Files:
    """The files of a sandbox or session.

    Relative paths start where commands start. Names are any bytes: str with surrogates (os.fsdecode) where they are not
    UTF-8, or bytes.

    >>> entry = box.files.write("notes/a.txt", "hello")
    >>> box.files.read_text("notes/a.txt")
    'hello'
    >>> [e["path"] for e in box.files.list("notes")]
    ['notes/a.txt']
    """
    def read(self, path: Name) -> bytes:
        """Read a whole file as bytes."""
    def read_text(self, path: Name) -> str:
        """Read a whole file as text; bytes that are not UTF-8 become U+FFFD."""
    def write(self, path: Name, data: Content, *, mode: Optional[int]=None, mkdir: bool=True, append: bool=False, if_match: Optional[str]=None, if_none_match: Optional[str]=None) -> records.Entry:
        """Write text, bytes or an open file to a path, and make its parent directories.

        Readers see the old or the new content, never a mixture, except with append. mkdir=False: the directory must
        exist.
        """
    def write_files(self, files: Mapping[str, Content]) -> None:
        """Write several files, from a mapping of paths to their contents."""
    def exists(self, path: Name) -> bool:
        """Tell whether there is something at a path; a symbolic link counts, wherever it leads."""
    def stat(self, path: Name, follow: bool=False) -> records.Entry:
        """Return the entry of a path: type, size, mode, owner; follow=True: of what a symbolic link leads to."""
    def list(self, path: Name='', *, depth: Optional[int]=None, glob: Optional[str]=None) -> Iterator[records.Entry]:
        """Iterate over the entries of a directory, sorted by path.

        glob: only entries whose name matches, or whose path if the pattern has a slash or `**`, which is any number of
        directories: "**/*.py". depth: levels of directories, 64 at most; by default 1, or as many as the pattern names.
        """
    def mkdir(self, path: Name, *, parents: bool=False, mode: Optional[int]=None) -> records.Entry:
        """Make a directory; parents=True also makes those above it."""
    def rename(self, path: Name, to: Name, *, replace: bool=True) -> records.Entry:
        """Rename or move a file or directory; replace=False fails if the new name exists."""
    def remove(self, path: Name, *, recursive: bool=False) -> None:
        """Remove a file or an empty directory; recursive=True also removes what is in it."""
    def open(self, path: Name, mode: str='rb', *, mkdir: bool=False) -> Any:
        """Open a file to stream from it ("rb") or to it ("wb").

        What is written is there once the file is closed, and nothing of it after an exception inside `with`.
        """
    def upload(self, source: Source, path: Name, *, mode: Optional[int]=None, mkdir: bool=True) -> records.Entry:
        """Copy a local file or directory, or an open file or bytes, to a path.

        mode: the permissions, by default those of the local file. Of a directory, the contents are copied into the directory at that path, which is made if it is missing;
        special files are left out. Returns the entry of the file or directory.
        """
    def download(self, path: Name, to: Source) -> int:
        """Copy a file or directory to a local path, or a file into an open one; returns the number of bytes.

        Of a directory, the contents are copied into the local directory, which is made if it is missing. Nothing is
        written outside it: symbolic links that lead out of it are left out, with a lodge.IgnoredWarning.
        """
    def get_archive(self, path: Name, to: Source, *, format: str='tar') -> int:
        """Save a directory to a local file as "tar" or "tar.zst", and return its size."""
    def put_archive(self, source: Source, path: Name='', *, format: str='tar') -> None:
        """Unpack a local "tar" or "tar.zst" into a directory, which is made if it is missing."""
    def watch(self, path: Name='', *, recursive: bool=False) -> Iterator[records.Change]:
        """Iterate over changes in a directory; the first event is "ready", and nothing after it is missed."""

class Command:
    """A command that runs in the background of a Sandbox, also without a client.

    Any client finds it again by its id, for 7 days after its end.

    >>> job = box.run("echo ready; sleep 1; echo done", background=True)
    >>> job.wait_for_log("ready")
    'ready'
    >>> box.command(job.id).wait().stdout
    'ready\\ndone\\n'
    """
    id: str
    @property
    def cmd(self) -> Union[str, List[str], None]:
        """The command as it was given to run(); None: this object was made of an id only."""
    @property
    def state(self) -> Optional[str]:
        """Its state: "running", "exited", "killed" or "lost", as this object last saw it; None: it did not ask yet."""
    @property
    def exit_code(self) -> Optional[int]:
        """Its exit code, as this object last saw it; None: it has none, or did not end yet."""
    @property
    def started_at(self) -> Optional[datetime.datetime]:
        """When it started; None: this object did not ask yet."""
    @overload
    def wait(self, timeout: Optional[float]=None, *, text: Literal[True]=True) -> Result[str]:
        """Wait until it ends, and return the result with the output that is retained.

        timeout: seconds, after which a TimeoutError leaves it running; 0 or None: no limit.
        """
    @overload
    def wait(self, timeout: Optional[float]=None, *, text: Literal[False]) -> Result[bytes]:
        """Wait until it ends, and return the result with the output that is retained.

        timeout: seconds, after which a TimeoutError leaves it running; 0 or None: no limit.
        """
    @overload
    def logs(self, *, follow: bool=False, text: Literal[True]=True) -> Iterator[Tuple[str, str]]:
        """Iterate over its output as pairs of "stdout" or "stderr" and a piece of text.

        follow: continue until it ends, across broken connections; else stop at what there is now.
        """
    @overload
    def logs(self, *, follow: bool=False, text: Literal[False]) -> Iterator[Tuple[str, bytes]]:
        """Iterate over its output as pairs of "stdout" or "stderr" and a piece of text.

        follow: continue until it ends, across broken connections; else stop at what there is now.
        """
    def kill(self, signal: Union[int, str, None]=None) -> None:
        """Kill it with everything it started, or send it a signal such as "INT"."""
    def is_running(self) -> bool:
        """Ask the service whether it still runs."""
    def write(self, data: Union[str, bytes]=b'', *, eof: bool=False) -> None:
        """Write to its standard input; eof=True closes it afterwards."""
    def wait_for_log(self, pattern: Union[str, Pattern[str]], timeout: Optional[float]=60.0) -> str:
        """Wait for a line of its output that contains a text or matches a compiled pattern, and return the line.

        Raises TimeoutError after `timeout` seconds (0 or None: no limit), and CommandError if it ends first.
        """

class Pty:
    """A terminal in a Sandbox: what it shows comes as bytes, and what is written is typed.

    Closing it leaves its program running; kill() ends it.

    >>> with box.pty("read name; echo hello $name") as pty:
    ...     pty.write("ada\\n")
    ...     shown = b"".join(pty)
    >>> b"hello ada" in shown
    True
    """
    def __iter__(self) -> Iterator[bytes]: ...
    def __enter__(self) -> Pty: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def id(self) -> str:
        """The id of its program, which box.command() takes."""
    def read(self, timeout: Optional[float]=None) -> bytes:
        """Wait for what it shows next; b"" at its end.

        timeout: seconds, after which a TimeoutError is raised; 0 or None: no limit.
        """
    def write(self, data: Union[str, bytes]) -> None:
        """Type text or bytes."""
    def resize(self, rows: int, cols: int) -> None:
        """Change its size."""
    def kill(self) -> None:
        """Kill its program with everything it started."""
    def wait(self, timeout: Optional[float]=None) -> Result[str]:
        """Wait until its program ends, and return the result, with what it showed as `stdout`.

        What was not read before stays for read(): the last 8 MiB of it. timeout: seconds, after which a TimeoutError
        leaves it running; 0 or None: no limit.
        """
    def close(self) -> None:
        """Close the connection; its program keeps running."""

class Snapshot:
    """A saved state of the files of a Sandbox, which outlives the sandbox.

    >>> box.files.write("a.txt", "1")["size"]
    1
    >>> snapshot = box.snapshot()
    >>> box.files.remove("a.txt")
    >>> with snapshot.fork() as copy:
    ...     copy.files.read_text("a.txt")
    '1'
    >>> snapshot.rollback()
    >>> box.files.exists("a.txt")
    True
    """
    id: str
    name: Optional[str]
    created_at: Optional[datetime.datetime]
    @overload
    def fork(self, count: None=None, *, name: Optional[str]=None) -> Sandbox:
        """Make a new sandbox with these files, or a list of `count`; each starts with its first use.

        One without a name is deleted at the end of its `with`.
        """
    @overload
    def fork(self, count: int, *, name: None=None) -> List[Sandbox]:
        """Make a new sandbox with these files, or a list of `count`; each starts with its first use.

        One without a name is deleted at the end of its `with`.
        """
    def rollback(self) -> None:
        """Set the files of its sandbox back to this state; running commands end."""
    def delete(self) -> None:
        """Delete the snapshot; the sandbox and its forks keep their files."""

class Sandbox:
    """An isolated Linux machine that runs commands and keeps its files.

    `with` deletes at its end a sandbox that create() or fork() made without a name; those with a name are kept. One without
    a name that is never closed is deleted once it has been hibernated for a day.

    >>> with lodge.Sandbox.create(memory="256M") as box:
    ...     print(box.run("echo hi").stdout, end="")
    hi
    """
    id: str
    created: bool
    state_lost: bool
    files: Files
    def __enter__(self) -> Sandbox: ...
    def __exit__(self, *_: object) -> None: ...
    @classmethod
    def create(cls, *, name: Optional[str]=None, user: Optional[str]=None, template: Optional[str]=None, snapshot: Union[str, Snapshot, None]=None, memory: Optional[Size]=None, cpus: Optional[float]=None, disk: Optional[Size]=None, processes: Optional[int]=None, file_size: Optional[Size]=None, env: Optional[Mapping[str, str]]=None, idle_timeout: Optional[float]=None, lifetime: Optional[float]=None, metadata: Optional[Mapping[str, str]]=None, policy: Optional[str]=None, url: Optional[str]=None, api_key: Optional[str]=None, client: Optional[Client]=None) -> Sandbox:
        """Create a sandbox; raises ConflictError if there is one of that name.

        memory, disk and file_size: bytes, or text such as "512M" and "2G". idle_timeout and lifetime: seconds until it
        hibernates, with its files, if it is not used or in any case. snapshot: what its files start from. user: the end
        user it belongs to. url and api_key: the service, by default as lodge.Client finds it.
        """
    @classmethod
    def get_or_create(cls, name: str, *, user: Optional[str]=None, template: Optional[str]=None, snapshot: Union[str, Snapshot, None]=None, memory: Optional[Size]=None, cpus: Optional[float]=None, disk: Optional[Size]=None, processes: Optional[int]=None, file_size: Optional[Size]=None, env: Optional[Mapping[str, str]]=None, idle_timeout: Optional[float]=None, lifetime: Optional[float]=None, metadata: Optional[Mapping[str, str]]=None, policy: Optional[str]=None, url: Optional[str]=None, api_key: Optional[str]=None, client: Optional[Client]=None) -> Sandbox:
        """Return the sandbox of a name, running, and create it first if there is none; `created` tells.

        `state_lost` tells that its files are gone, which is also a lodge.StateLostWarning.

        The options are those of create(). They apply to a new sandbox only: what an existing one has otherwise is
        named in a lodge.IgnoredWarning.
        """
    @classmethod
    def get(cls, name: str, *, url: Optional[str]=None, api_key: Optional[str]=None, client: Optional[Client]=None) -> Sandbox:
        """Return the sandbox of a name or an id; raises NotFoundError if there is none, as a GoneError if it was deleted.

        A hibernated one is not resumed before it is used.
        """
    @classmethod
    def list(cls, *, user: Optional[str]=None, state: Optional[str]=None, metadata: Optional[Mapping[str, str]]=None, tenant: Optional[str]=None, url: Optional[str]=None, api_key: Optional[str]=None, client: Optional[Client]=None) -> Iterator[Sandbox]:
        """Iterate over sandboxes: all, or those of a user, a state such as "active", or with these metadata.

        tenant: those of another tenant, which needs a key with scope "admin". They are listed only: to use one needs a
        key of that tenant.
        """
    @classmethod
    def map(cls, fn: Callable[[Sandbox, Item], Made], items: Iterable[Item], *, concurrency: int=8, on_progress: Optional[Callable[[int, int], object]]=None, url: Optional[str]=None, api_key: Optional[str]=None, client: Optional[Client]=None, **options: Any) -> List[Made]:
        """Call fn(box, item) for every item, each in a fresh sandbox, and return the results in order.

        At most `concurrency` run at a time. on_progress(done, total) is called after each. The first error is raised
        once the running ones have ended, with the position of its item as `index`. The options are those of create().
        """
    @property
    def name(self) -> Optional[str]:
        """The name it was created with; None: it has none."""
    @property
    def state(self) -> str:
        """Its state: "active", "paused", "hibernated", "deleted" or another, as this object last saw it; refresh() asks again."""
    @property
    def is_running(self) -> bool:
        """Whether it was active, and not paused, when this object last saw it."""
    @property
    def expires_at(self) -> Optional[datetime.datetime]:
        """When it hibernates unless extend() is called, as this object last saw it; None: it does not run."""
    def refresh(self) -> None:
        """Read its state again."""
    @overload
    def run(self, cmd: Union[str, Sequence[str]], *, cwd: Optional[str]=None, env: Optional[Mapping[str, str]]=None, user: Optional[str]=None, input: Union[str, bytes, None]=None, timeout: Optional[float]=..., check: bool=False, background: Literal[False]=False, on_stdout: Optional[Callable[[str], object]]=None, on_stderr: Optional[Callable[[str], object]]=None, text: Literal[True]=True, idempotency_key: Optional[str]=None) -> Result[str]:
        """Run bash text, or a program with its arguments as a list, and return the Result.

        A command that fails is a result; check=True raises CommandError instead. background=True returns a Command
        at once. on_stdout and on_stderr get all output as it comes, in whole characters; if one raises, the command is
        killed and the exception comes out of run(). The result has the last MiB of each stream, or the last 8 with such a
        function; `truncated` tells that there was more. timeout: seconds until it is killed with all it started (30 by
        default, none in the background); 0 or None: no limit. text=False: bytes instead of str. idempotency_key: a
        repeated call with it returns the same command.
        """
    @overload
    def run(self, cmd: Union[str, Sequence[str]], *, cwd: Optional[str]=None, env: Optional[Mapping[str, str]]=None, user: Optional[str]=None, input: Union[str, bytes, None]=None, timeout: Optional[float]=..., check: bool=False, background: Literal[False]=False, on_stdout: Optional[Callable[[bytes], object]]=None, on_stderr: Optional[Callable[[bytes], object]]=None, text: Literal[False], idempotency_key: Optional[str]=None) -> Result[bytes]:
        """Run bash text, or a program with its arguments as a list, and return the Result.

        A command that fails is a result; check=True raises CommandError instead. background=True returns a Command
        at once. on_stdout and on_stderr get all output as it comes, in whole characters; if one raises, the command is
        killed and the exception comes out of run(). The result has the last MiB of each stream, or the last 8 with such a
        function; `truncated` tells that there was more. timeout: seconds until it is killed with all it started (30 by
        default, none in the background); 0 or None: no limit. text=False: bytes instead of str. idempotency_key: a
        repeated call with it returns the same command.
        """
    @overload
    def run(self, cmd: Union[str, Sequence[str]], *, background: Literal[True], cwd: Optional[str]=None, env: Optional[Mapping[str, str]]=None, user: Optional[str]=None, input: Union[str, bytes, None]=None, timeout: Optional[float]=..., idempotency_key: Optional[str]=None) -> Command:
        """Run bash text, or a program with its arguments as a list, and return the Result.

        A command that fails is a result; check=True raises CommandError instead. background=True returns a Command
        at once. on_stdout and on_stderr get all output as it comes, in whole characters; if one raises, the command is
        killed and the exception comes out of run(). The result has the last MiB of each stream, or the last 8 with such a
        function; `truncated` tells that there was more. timeout: seconds until it is killed with all it started (30 by
        default, none in the background); 0 or None: no limit. text=False: bytes instead of str. idempotency_key: a
        repeated call with it returns the same command.
        """
    def command(self, id: str) -> Command:
        """Return a command that was started before, by its id; sends no request."""
    def commands(self, *, running: bool=False) -> List[Command]:
        """List its commands, also those that have ended; running=True: only those that run."""
    def upload_dir(self, local: Union[str, os.PathLike[str]], remote: Optional[Name]=None) -> None:
        """Copy a local directory into a directory of the sandbox, by default one of the same name."""
    def download_dir(self, remote: Name, local: Union[str, os.PathLike[str]]) -> None:
        """Copy a directory of the sandbox into a local one, which is made if it is missing."""
    def pty(self, cmd: Optional[str]=None, *, rows: int=24, cols: int=80, cwd: Optional[str]=None, user: Optional[str]=None) -> Pty:
        """Open a terminal that runs a command, or a login shell."""
    def snapshot(self, name: Optional[str]=None) -> Snapshot:
        """Save the state of its files; running commands are frozen for a moment."""
    def snapshots(self) -> List[Snapshot]:
        """List the snapshots of this sandbox."""
    def rollback(self, snapshot: Union[str, Snapshot]) -> None:
        """Set its files back to one of its snapshots, or to that of a name or id; running commands end."""
    @overload
    def fork(self, count: None=None, *, name: Optional[str]=None) -> Sandbox:
        """Make a new sandbox with the files of this one, or a list of `count`; each starts with its first use.

        One without a name is deleted at the end of its `with`.
        """
    @overload
    def fork(self, count: int, *, name: None=None) -> List[Sandbox]:
        """Make a new sandbox with the files of this one, or a list of `count`; each starts with its first use.

        One without a name is deleted at the end of its `with`.
        """
    def pause(self) -> None:
        """Freeze its processes, which keep their memory; the next use continues them."""
    def resume(self) -> None:
        """Start it again after pause() or hibernate(); any use does that, too."""
    def hibernate(self) -> None:
        """End its processes and keep its files; the next use starts it again."""
    def extend(self, seconds: float) -> Optional[datetime.datetime]:
        """Postpone expires_at by some seconds, up to the maximum lifetime, and return it.

        If it moved by less, an IgnoredWarning has the bound and the new end.
        """
    def set_limits(self, *, memory: Optional[Size]=None, cpus: Optional[float]=None, disk: Optional[Size]=None, processes: Optional[int]=None, file_size: Optional[Size]=None) -> None:
        """Change limits at once, also for running commands; file_size for commands that start later."""
    def stats(self) -> records.StatsStats:
        """Return what it uses now: memory_bytes, cpu_us, pids, disk_bytes and more."""
    def delete(self) -> None:
        """Delete it with its files; its snapshots stay."""
    def close(self) -> None:
        """Delete it if create() or fork() made it without a name, and close the connections of this object."""
