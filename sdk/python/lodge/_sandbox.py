# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return,misc"
"""Sandbox, once for both clients, as _api.py."""
from __future__ import annotations

import contextlib
import datetime
import re
import uuid
from typing import (TYPE_CHECKING, Any, Callable, Dict, Generator, Iterable, Iterator, List, Literal, Mapping, Optional,
                    Sequence, TypeVar, Union, overload)

from . import _calls as c
from . import _command
from ._http import Name
from ._options import UNSET, Size, check_name, limits_of, named_options, names_of, session_of
from ._part import Part
from ._words import OtherWords, find, other_words
from .errors import (CommandError, ConflictError, Error, IgnoredWarning, InvalidError, NotFoundError, StateLostWarning,
                     UnavailableError)
from .types import Record, Result

if TYPE_CHECKING:
    import os

    from . import records
    from .client import Client, Command, Files, Pty, Sandbox, Snapshot  # noqa: F401

Item = TypeVar("Item")
Made = TypeVar("Made")
Op = Generator[Any, Any, Any]
WAIT_MS = 30000  # for capacity, if the service is full
TEMPORARY_MS = 86400000  # after which one without a name is deleted if nobody uses or closes it
TIMEOUT = 30.0  # of a command in the foreground, as the API has it
ID = re.compile("(ses|sbx)_[0-9a-z]+")


def ref_of(name: str) -> str:
    return name if ID.fullmatch(name) else "key:" + name


@other_words
@named_options
class SandboxApi(Part, metaclass=OtherWords):
    """An isolated Linux machine that runs commands and keeps its files.

    `with` deletes at its end a sandbox that create() or fork() made without a name; those with a name are kept. One without
    a name that is never closed is deleted once it has been hibernated for a day.

    >>> with lodge.Sandbox.create(memory="256M") as box:
    ...     print(box.run("echo hi").stdout, end="")
    hi
    """
    _client_type: Any
    _command_type: Any
    _snapshot_type: Any
    _pty_type: Any

    def __init__(self, client: Any = None, session: Any = None, *, created: bool = False, temporary: bool = False,
                 owns_client: bool = False, **other: Any) -> None:
        if client is None or session is None or other:
            name = type(self).__name__
            raise TypeError(f"use {name}.create(), {name}.get_or_create() or {name}.get()")
        super().__init__(client._driver)
        self._client, self._session = client, session
        self._record: records.Session = session.record
        self._temporary, self._owns_client = temporary, owns_client
        self.id: str = session.id
        self.created = created
        self.state_lost: bool = session.state_lost  # the call that returned this object found its files gone
        self.files: Files = session.files

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}" + (f" name={self.name!r}>" if self.name is not None else ">")

    def __getattr__(self, name: str) -> Any:
        return find(self, "Sandbox", type(self).__name__, name)

    @classmethod
    def create(cls, *, name: Optional[str] = None, user: Optional[str] = None, template: Optional[str] = None,
               snapshot: Union[str, Snapshot, None] = None, memory: Optional[Size] = None, cpus: Optional[float] = None,
               disk: Optional[Size] = None, processes: Optional[int] = None, file_size: Optional[Size] = None,
               env: Optional[Mapping[str, str]] = None, idle_timeout: Optional[float] = None,
               lifetime: Optional[float] = None, metadata: Optional[Mapping[str, str]] = None,
               policy: Optional[str] = None, url: Optional[str] = None, api_key: Optional[str] = None,
               client: Optional[Client] = None) -> Sandbox:
        """Create a sandbox; raises ConflictError if there is one of that name.

        memory, disk and file_size: bytes, or text such as "512M" and "2G". idle_timeout and lifetime: seconds until it
        hibernates, with its files, if it is not used or in any case. snapshot: what its files start from. user: the end
        user it belongs to. url and api_key: the service, by default as lodge.Client finds it."""
        want = session_of(memory=memory, cpus=cpus, disk=disk, processes=processes, file_size=file_size,
                          idle_timeout=idle_timeout, lifetime=lifetime, user=user, template=template,
                          snapshot=getattr(snapshot, "id", snapshot), env=env, metadata=metadata, policy=policy)
        return cls._with(client, url, api_key, lambda at, owned: cls._create(at, owned, name, want))

    @classmethod
    def get_or_create(cls, name: str, *, user: Optional[str] = None, template: Optional[str] = None,
                      snapshot: Union[str, Snapshot, None] = None, memory: Optional[Size] = None,
                      cpus: Optional[float] = None, disk: Optional[Size] = None, processes: Optional[int] = None,
                      file_size: Optional[Size] = None, env: Optional[Mapping[str, str]] = None,
                      idle_timeout: Optional[float] = None, lifetime: Optional[float] = None,
                      metadata: Optional[Mapping[str, str]] = None, policy: Optional[str] = None,
                      url: Optional[str] = None, api_key: Optional[str] = None, client: Optional[Client] = None) -> Sandbox:
        """Return the sandbox of a name, running, and create it first if there is none; `created` tells.

        `state_lost` tells that its files are gone, which is also a lodge.StateLostWarning.

        The options are those of create(). They apply to a new sandbox only: what an existing one has otherwise is
        named in a lodge.IgnoredWarning."""
        want = session_of(memory=memory, cpus=cpus, disk=disk, processes=processes, file_size=file_size,
                          idle_timeout=idle_timeout, lifetime=lifetime, user=user, template=template,
                          snapshot=getattr(snapshot, "id", snapshot), env=env, metadata=metadata, policy=policy)
        check_name(name)
        return cls._with(client, url, api_key, lambda at, owned: cls._enter(at, owned, name, want))

    @classmethod
    def get(cls, name: str, *, url: Optional[str] = None, api_key: Optional[str] = None,
            client: Optional[Client] = None) -> Sandbox:
        """Return the sandbox of a name or an id; raises NotFoundError if there is none, as a GoneError if it was deleted.

        A hibernated one is not resumed before it is used."""
        check_name(name)

        def op(at: Any, owned: bool) -> Op:
            record = yield at.session(ref_of(name)).get()
            return cls(at, at._session_type(at._driver, "", {"session": record}), owns_client=owned)
        return cls._with(client, url, api_key, op)

    @classmethod
    def list(cls, *, user: Optional[str] = None, state: Optional[str] = None,
             metadata: Optional[Mapping[str, str]] = None, tenant: Optional[str] = None, url: Optional[str] = None,
             api_key: Optional[str] = None, client: Optional[Client] = None) -> Iterator[Sandbox]:
        """Iterate over sandboxes: all, or those of a user, a state such as "active", or with these metadata.

        tenant: those of another tenant, which needs a key with scope "admin". They are listed only: to use one needs a
        key of that tenant."""
        at, owned = cls._connect(client, url, api_key)

        def make(record: Record) -> Iterable[Any]:
            return [cls(at, at._session_type(at._driver, "", {"session": record}), owns_client=owned)]
        return at._driver._flat(at.sessions(user=user, state=state, metadata=metadata, tenant=tenant), make)

    @classmethod
    def map(cls, fn: Callable[[Sandbox, Item], Made], items: Iterable[Item], *, concurrency: int = 8,
            on_progress: Optional[Callable[[int, int], object]] = None, url: Optional[str] = None,
            api_key: Optional[str] = None, client: Optional[Client] = None, **options: Any) -> List[Made]:
        """Call fn(box, item) for every item, each in a fresh sandbox, and return the results in order.

        At most `concurrency` run at a time. on_progress(done, total) is called after each. The first error is raised
        once the running ones have ended, with the position of its item as `index`. The options are those of create()."""
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise InvalidError(f"concurrency: must be a number of at least 1, not {concurrency!r}")

        def op(at: Any, owned: bool) -> Op:
            try:
                return (yield at._driver._map(lambda: cls.create(client=at, **options), fn, list_of(items), concurrency,
                                              on_progress))
            finally:
                if owned:
                    yield at.close()
        return cls._with(client, url, api_key, op)

    @classmethod
    def _connect(cls, client: Any, url: Optional[str], api_key: Optional[str]) -> Any:
        if client is None:
            try:
                return cls._client_type(url, api_key), True
            except (InvalidError, UnavailableError) as e:  # what a client calls server_url is url here
                raise type(e)(e.message.replace("server_url", "url"), retryable=e.retryable) from None
        if url is not None or api_key is not None:
            raise InvalidError("client: not together with url or api_key")
        return client, False

    @classmethod
    def _with(cls, client: Any, url: Optional[str], api_key: Optional[str], make: Callable[[Any, bool], Op]) -> Any:
        at, owned = cls._connect(client, url, api_key)

        def op() -> Op:
            try:
                return (yield from make(at, owned))
            except BaseException:
                if owned:
                    yield at.close()
                raise
        return at._do(op())

    @classmethod
    def _create(cls, at: Any, owned: bool, name: Optional[str], want: Dict[str, Any]) -> Op:
        """Without a key, a user's session, or that of a user's token, would be taken: a fresh one then needs a key."""
        key = name if name is not None or "user" not in want else new_name()
        want = want if name is not None else {**want, "delete_after_ms": TEMPORARY_MS}
        try:
            session = yield at.enter(key, if_exists="fail", wait_ms=WAIT_MS, **want)
        except ConflictError:
            if key is not None:
                raise
            session = yield at.enter(new_name(), if_exists="fail", wait_ms=WAIT_MS, **want)
        return cls(at, session, created=True, temporary=name is None, owns_client=owned)

    @classmethod
    def _enter(cls, at: Any, owned: bool, name: str, want: Dict[str, Any]) -> Op:
        session = yield at.enter(name, _quiet=True, wait_ms=WAIT_MS, **want)
        c.warn_ignored(f"sandbox {name} already exists", names_of(session.ignored),
                       "ignored; set_limits() changes limits")
        if session.state_lost:
            why = (session.cause or {}).get("text") or "the cause is not known"
            c.warn(f"sandbox {name} lost its files, and started anew: {why}", StateLostWarning)
        return cls(at, session, created=session.outcome == "created", owns_client=owned)

    def _refreshed(self, call: Any) -> Any:
        """Runs a call that returns the record."""
        def op() -> Op:
            self._record = yield call
        return self._do(op())

    def _using(self, op: Op) -> Op:
        """Runs a call that wakes it, and then asks for the state if that was another."""
        failed: Optional[CommandError] = None
        try:
            made = yield from op
        except CommandError as e:
            failed = e
        if not self.is_running:
            with contextlib.suppress(Error):
                self._record = yield self._session.get()
        if failed:
            raise failed
        return made

    def _deleted(self) -> None:
        gone: Any = {**self._record, "state": "deleted", "paused": False, "expires_at": None}
        self._record, self._temporary = gone, False

    @property
    def name(self) -> Optional[str]:
        """The name it was created with; None: it has none."""
        return self._record.get("key")

    @property
    def state(self) -> str:
        """Its state: "active", "paused", "hibernated", "deleted" or another, as this object last saw it; refresh() asks again."""
        return "paused" if self._record["state"] == "active" and self._record["paused"] else self._record["state"]

    @property
    def is_running(self) -> bool:
        """Whether it was active, and not paused, when this object last saw it."""
        return self.state == "active"

    @property
    def expires_at(self) -> Optional[datetime.datetime]:
        """When it hibernates unless extend() is called, as this object last saw it; None: it does not run."""
        return c.when(self._record["expires_at"])

    def refresh(self) -> None:
        """Read its state again."""
        return self._refreshed(self._session.get())

    @overload
    def run(self, cmd: Union[str, Sequence[str]], *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            user: Optional[str] = None, input: Union[str, bytes, None] = None, timeout: Optional[float] = UNSET,
            check: bool = False, background: Literal[False] = False, on_stdout: Optional[Callable[[str], object]] = None,
            on_stderr: Optional[Callable[[str], object]] = None, text: Literal[True] = True,
            idempotency_key: Optional[str] = None) -> Result[str]: ...

    @overload
    def run(self, cmd: Union[str, Sequence[str]], *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            user: Optional[str] = None, input: Union[str, bytes, None] = None, timeout: Optional[float] = UNSET,
            check: bool = False, background: Literal[False] = False, on_stdout: Optional[Callable[[bytes], object]] = None,
            on_stderr: Optional[Callable[[bytes], object]] = None, text: Literal[False],
            idempotency_key: Optional[str] = None) -> Result[bytes]: ...

    @overload
    def run(self, cmd: Union[str, Sequence[str]], *, background: Literal[True], cwd: Optional[str] = None,
            env: Optional[Mapping[str, str]] = None, user: Optional[str] = None, input: Union[str, bytes, None] = None,
            timeout: Optional[float] = UNSET, idempotency_key: Optional[str] = None) -> Command: ...

    def run(self, cmd: Union[str, Sequence[str]], *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            user: Optional[str] = None, input: Union[str, bytes, None] = None, timeout: Optional[float] = UNSET,
            check: bool = False, background: bool = False, on_stdout: Optional[Callable[[Any], object]] = None,
            on_stderr: Optional[Callable[[Any], object]] = None, text: bool = True,
            idempotency_key: Optional[str] = None) -> Any:
        """Run bash text, or a program with its arguments as a list, and return the Result.

        A command that fails is a result; check=True raises CommandError instead. background=True returns a Command
        at once. on_stdout and on_stderr get all output as it comes, in whole characters; if one raises, the command is
        killed and the exception comes out of run(). The result has the last MiB of each stream, or the last 8 with such a
        function; `truncated` tells that there was more. timeout: seconds until it is killed with all it started (30 by
        default, none in the background); 0 or None: no limit. text=False: bytes instead of str. idempotency_key: a
        repeated call with it returns the same command."""
        _command.check(cmd)
        how: Dict[str, Any] = {"cwd": cwd, "env": env, "user": user, "idempotency_key": idempotency_key}
        if background:
            for option, given in (("check", check), ("on_stdout", on_stdout), ("on_stderr", on_stderr), ("text", not text)):
                if given:
                    raise InvalidError(f"{option}: not with background; use wait() and logs() of the command")
            how["timeout"] = None if timeout is UNSET else timeout
            return self._do(self._using(_command.start(self._session, cmd, input, how, self._command)))
        how["timeout"] = TIMEOUT if timeout is UNSET else timeout
        return self._do(self._using(
            _command.run(self, self._session, cmd, input, text, check, (on_stdout, on_stderr), how)))

    def _command(self, job: Any, record: Optional[Mapping[str, Any]] = None) -> Any:
        return self._command_type(self._driver, job, record)

    def command(self, id: str) -> Command:
        """Return a command that was started before, by its id; sends no request."""
        return self._command(self._session.command(id))

    def commands(self, *, running: bool = False) -> List[Command]:
        """List its commands, also those that have ended; running=True: only those that run."""
        def op() -> Op:
            found = yield from c.all_pages(c.page(self._session._base + "/execs", {}), "execs")
            return [self._command(self._session.command(record["exec_id"]), record) for record in found
                    if not running or record["state"] == "running"]
        return self._do(op())

    def upload_dir(self, local: Union[str, os.PathLike[str]], remote: Optional[Name] = None) -> None:
        """Copy a local directory into a directory of the sandbox, by default one of the same name."""
        def op() -> Op:
            yield self.files.upload(c.directory(local), c.own_name(local) if remote is None else remote)
        return self._do(op())

    def download_dir(self, remote: Name, local: Union[str, os.PathLike[str]]) -> None:
        """Copy a directory of the sandbox into a local one, which is made if it is missing."""
        def op() -> Op:
            yield self.files.download(remote, local)
        return self._do(op())

    def pty(self, cmd: Optional[str] = None, *, rows: int = 24, cols: int = 80, cwd: Optional[str] = None,
            user: Optional[str] = None) -> Pty:
        """Open a terminal that runs a command, or a login shell."""
        def op() -> Op:
            terminal = yield self._driver._connected(
                self._session.tty(command=cmd, rows=rows, cols=cols, cwd=cwd, user=user))
            return self._pty_type(self._driver, self._session, terminal)
        return self._do(self._using(op()))

    def snapshot(self, name: Optional[str] = None) -> Snapshot:
        """Save the state of its files; running commands are frozen for a moment."""
        def op() -> Op:
            return self._snapshot_type(self, (yield self._session.snapshot(name)))
        return self._do(op())

    def snapshots(self) -> List[Snapshot]:
        """List the snapshots of this sandbox."""
        def op() -> Op:
            found = yield from c.all_pages(c.page(self._session._base + "/snapshots", {}), "snapshots")
            return [self._snapshot_type(self, record) for record in found]
        return self._do(op())

    def rollback(self, snapshot: Union[str, Snapshot]) -> None:
        """Set its files back to one of its snapshots, or to that of a name or id; running commands end."""
        def op() -> Op:
            wanted = getattr(snapshot, "id", snapshot)
            if wanted is snapshot:
                found = yield from c.all_pages(c.page(self._session._base + "/snapshots", {}), "snapshots")
                wanted = next((s["id"] for s in found if snapshot in (s["id"], s["name"])), snapshot)
            self._record = yield self._session.rollback(wanted)
        if not snapshot or not isinstance(getattr(snapshot, "id", snapshot), str):
            raise InvalidError(f"snapshot: must be a Snapshot, or the name or id of one, not {snapshot!r}")
        return self._do(op())

    @overload
    def fork(self, count: None = None, *, name: Optional[str] = None) -> Sandbox: ...

    @overload
    def fork(self, count: int, *, name: None = None) -> List[Sandbox]: ...

    def fork(self, count: Optional[int] = None, *, name: Optional[str] = None) -> Any:
        """Make a new sandbox with the files of this one, or a list of `count`; each starts with its first use.

        One without a name is deleted at the end of its `with`."""
        return self._do(self._fork(count, name, None))

    def _fork(self, count: Optional[int], name: Optional[str], snapshot: Optional[str]) -> Op:
        if count is not None and name is not None:
            raise InvalidError("name: only for one fork, without count")
        try:
            made = yield self._session.fork(1 if count is None else count, name, snapshot)
        except NotFoundError:
            if snapshot is None:
                raise
            made = []
            for _ in range(1 if count is None else count):  # its sandbox is gone; the snapshot is not
                made.append((yield self._client.enter(name, snapshot=snapshot, if_exists="fail", asleep=True)))
        boxes = [type(self)(self._client, session, created=True, temporary=name is None) for session in made]
        return boxes[0] if count is None else boxes

    def pause(self) -> None:
        """Freeze its processes, which keep their memory; the next use continues them."""
        return self._refreshed(self._session.pause())

    def resume(self) -> None:
        """Start it again after pause() or hibernate(); any use does that, too."""
        def op() -> Op:
            self._record = (yield self._session.resume())["session"]
        return self._do(op())

    def hibernate(self) -> None:
        """End its processes and keep its files; the next use starts it again."""
        return self._refreshed(self._session.hibernate())

    def extend(self, seconds: float) -> Optional[datetime.datetime]:
        """Postpone expires_at by some seconds, up to the maximum lifetime, and return it.

        If it moved by less, an IgnoredWarning has the bound and the new end."""
        def op() -> Op:
            asked = max(1, c.ms("seconds", seconds))
            self._record = extended = yield self._session.extend(asked)
            moved = extended["extended_by_ms"]
            if extended.get("reason"):
                c.warn(f"sandbox {self.name or self.id}: extended by {moved / 1000:g} of {asked / 1000:g} seconds: "
                       f"{extended['reason']}; it ends at {self.expires_at}", IgnoredWarning)
            return self.expires_at
        return self._do(op())

    def set_limits(self, *, memory: Optional[Size] = None, cpus: Optional[float] = None, disk: Optional[Size] = None,
                   processes: Optional[int] = None, file_size: Optional[Size] = None) -> None:
        """Change limits at once, also for running commands; file_size for commands that start later."""
        return self._refreshed(self._session.patch(limits=limits_of(memory, cpus, disk, processes, file_size)))

    def stats(self) -> records.StatsStats:
        """Return what it uses now: memory_bytes, cpu_us, pids, disk_bytes and more."""
        return self._session.stats()

    def delete(self) -> None:
        """Delete it with its files; its snapshots stay."""
        def op() -> Op:
            yield self._session.delete()
            self._deleted()
        return self._do(op())

    def close(self) -> None:
        """Delete it if create() or fork() made it without a name, and close the connections of this object."""
        return self._do(self._close(False))

    def _close(self, failing: bool) -> Op:
        """failing: an error is on its way already, which must not be hidden by another."""
        try:
            if self._temporary:
                yield self._session.delete()
                self._deleted()
        except Error:
            if not failing:
                raise
        finally:
            if self._owns_client:
                yield self._client.close()


def new_name() -> str:
    return "sandbox-" + uuid.uuid4().hex[:16]


list_of = list  # the class above has a method of that name
