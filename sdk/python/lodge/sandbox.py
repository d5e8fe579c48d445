# SPDX-License-Identifier: Apache-2.0
"""Bash sessions of conversations. The same script runs with the engine in this process (mode="local") and against
a service (mode="remote"): the sessions and their rules are the same."""
import contextlib
import os
import tempfile
import uuid
from typing import Any, Dict, List, Optional, Sequence, Union

from ._calls import warn_ignored
from .errors import Error, SandboxError, SessionExpiredError

NO_SESSION = "No active session. Call get_or_create_session() first."
ENTER_TRIES = 3  # of a session that ends just when it is asked for


def mode_of(mode: Optional[str], server_url: Optional[str]) -> str:
    """Where nothing is said, a service that is named is meant."""
    if mode is None:
        return "remote" if server_url or os.environ.get("LODGE_URL") else "local"
    if mode not in ("local", "remote"):
        raise ValueError(f'mode: {mode!r} is neither "local" nor "remote"')
    return mode


def _threads(mode: str, server_url: Optional[str], api_key: Optional[str]) -> Any:
    if mode == "remote":
        from ._remote import RemoteThreads
        return RemoteThreads(server_url, api_key)
    from ._local import LocalThreads
    return LocalThreads()


class FileList(List[Dict[str, Any]]):
    """The files of a thread's workspace, newest first: name, size_bytes, modified, permissions.

    Of very many only the newest are listed; total_files and total_size_bytes are of all.

    >>> with lodge.SandboxClient("remote") as sandbox:
    ...     made = sandbox.get_or_create_session("ada", "files")
    ...     put = sandbox.upload_file_from_bytes("a.txt", b"1")
    ...     sandbox.list_files().total_files
    1
    """

    def __init__(self, received: Dict[str, Any]) -> None:
        super().__init__(received["files"])
        self.workspace_dir: str = received["workspace_dir"]
        self.total_files: int = received["total_files"]
        self.total_size_bytes: int = received["total_size_bytes"]


class SandboxClient:
    """A bash tool for one conversation at a time; new programs use lodge.Sandbox.

    mode: "local" for the engine in this process, "remote" for a service; by default "remote" if a server_url or LODGE_URL
    is given, else "local". Leaving `with` ends the session.

    >>> with lodge.SandboxClient("remote") as sandbox:
    ...     made = sandbox.get_or_create_session("ada", "talk-1")
    ...     sandbox.execute("echo hi")["stdout"]
    'hi\\n'
    """

    def __init__(self, mode: Optional[str] = None, server_url: Optional[str] = None, api_key: Optional[str] = None) -> None:
        self.mode: str = mode_of(mode, server_url)
        self._threads = _threads(self.mode, server_url, api_key)
        self._wanted: Any = None
        self.session: Optional[Dict[str, Any]] = None  # as get_or_create_session() returned it

    @property
    def session_id(self) -> Optional[str]:
        """The id of the current session; None: there is none."""
        return self.session["session_id"] if self.session else None

    def get_or_create_session(self, user_id: str, thread_id: str, timeout_minutes: Optional[int] = 30) -> Dict[str, Any]:
        """Return the session of a thread, and create it first if there is none.

        The answer has session_id, thread_id, status ("created" or "existing"), workspace_dir, user, expires_at, adjusted and
        ignored; a timeout_minutes that did not apply as given is named in one of the last two, with a lodge.IgnoredWarning."""
        for last in range(ENTER_TRIES):
            try:
                made: Dict[str, Any] = self._threads.create(user_id, thread_id, timeout_minutes)
                break
            except SandboxError as e:
                if e.code != "CONFLICT" or last == ENTER_TRIES - 1:
                    raise
        self.session, self._wanted = made, (user_id, thread_id, timeout_minutes)
        warn_ignored(f"thread {thread_id} has a session", made.get("ignored") or (), "ignored; it keeps its own")
        warn_ignored(f"thread {thread_id}", made.get("adjusted") or (), "reduced to the maximum of the service")
        return dict(made)

    def _id(self) -> str:
        if self.session is None:
            raise ValueError(NO_SESSION)
        found: str = self.session["session_id"]
        return found

    def execute(self, command: str, timeout: Optional[float] = 30, auto_retry: bool = True) -> Dict[str, Any]:
        """Run bash text, and return exit_code, stdout, stderr, execution_time_ms, timed_out, truncated, limits and state_lost.

        A command that fails is a result. With auto_retry an expired session is made again and the command is run there;
        state_lost is then True, because its files are gone. timeout: seconds until all it started is killed; 0 or None: no
        limit. Raises ValueError before get_or_create_session(), as all methods do."""
        session, timeout = self._id(), 0 if timeout is None else timeout
        try:
            result: Dict[str, Any] = self._threads.execute(session, command, timeout)
        except SessionExpiredError:
            if not auto_retry:
                raise
            self.get_or_create_session(*self._wanted)
            result = self._threads.execute(self._id(), command, timeout)
            result["state_lost"] = True
        return result

    def upload_file(self, path: Union[str, "os.PathLike[str]"], remote_name: Union[str, bytes, None] = None) -> Dict[str, Any]:
        """Copy a local file into the workspace, and return status, filename, path and size_bytes."""
        session = self._id()
        name = os.fsencode(remote_name if remote_name is not None else os.path.basename(os.fspath(path)))
        with open(path, "rb") as f:
            received: Dict[str, Any] = self._threads.upload(session, name, f)
        return received

    def upload_file_from_bytes(self, filename: Union[str, bytes], data: bytes) -> Dict[str, Any]:
        """Write bytes to a file of the workspace."""
        session = self._id()
        with tempfile.TemporaryFile() as f:
            f.write(data)
            f.flush()
            f.seek(0)
            received: Dict[str, Any] = self._threads.upload(session, os.fsencode(filename), f)
        return received

    def download_file(self, remote_name: Union[str, bytes],
                      local_path: Union[str, bytes, "os.PathLike[str]", None] = None) -> str:
        """Copy a file of the workspace to a local path, by default its name in the current directory, and return that path."""
        session = self._id()
        name = os.fsencode(remote_name)
        target = os.fsdecode(local_path if local_path is not None else os.path.basename(name))
        if os.path.isdir(target):
            target = os.path.join(target, os.fsdecode(os.path.basename(name)))
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(target)), prefix=".lodge-",
                                         delete=False) as f:
            try:
                self._threads.download(session, name, f)
                f.flush()
                os.chmod(f.name, 0o666 & ~_umask())
                os.replace(f.name, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(f.name)
                raise
        return target

    def list_files(self) -> FileList:
        """List the files of the workspace, newest first."""
        return FileList(self._threads.list(self._id()))

    def close_session(self) -> None:
        """End the session with its files. Never raises."""
        session, self.session = self.session, None
        if session is not None:
            with contextlib.suppress(Exception):
                self._threads.cleanup(session["session_id"])

    def close(self) -> None:
        """End the session, and close the connections of this client."""
        self.close_session()
        with contextlib.suppress(Exception):
            self._threads.close()

    def __enter__(self) -> "SandboxClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _umask() -> int:
    """Without changing it, even for a moment: there may be other threads."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as f:
            for line in f:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except (OSError, ValueError):
        pass
    return 0o077


class BatchSandboxClient:
    """Runs commands one after another in a thread session of their own, which ends with them.

    >>> with lodge.BatchSandboxClient("remote") as batch:
    ...     [r["exit_code"] for r in batch.execute_batch(["true", "exit 3"])]
    [0, 3]
    """

    def __init__(self, mode: Optional[str] = None, server_url: Optional[str] = None, api_key: Optional[str] = None) -> None:
        self._client = SandboxClient(mode, server_url, api_key)

    def execute_batch(self, commands: Sequence[str], timeout: Optional[float] = 30, user_id: str = "batch_user",
                      thread_id: Optional[str] = None) -> List[Dict[str, Any]]:
        """Run the commands, and return one result for each; one that could not run has exit_code -1, and says why in
        `error`."""
        results: List[Dict[str, Any]] = []
        try:
            self._client.get_or_create_session(user_id, thread_id or f"batch-{uuid.uuid4().hex}")
            for command in commands:
                try:
                    result = self._client.execute(command, timeout)
                except Error as e:
                    result = {"exit_code": -1, "stdout": "", "stderr": e.message, "execution_time_ms": 0,
                              "timed_out": False, "truncated": False, "limits": [], "state_lost": False,
                              "error": e.message}
                results.append({"command": command, **result})
        finally:
            self._client.close_session()
        return results

    def close(self) -> None:
        """Close the connections of this client."""
        self._client.close()

    def __enter__(self) -> "BatchSandboxClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
