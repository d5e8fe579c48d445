# SPDX-License-Identifier: Apache-2.0
"""The blocking client of all of /v1."""
import logging
import ssl
from typing import Any, Callable, Iterator, Optional, Union

from . import _api, _command, _exec_api, _files_api, _place, _projects, _sandbox, _snapshot
from ._files import FileDriver
from ._hooks import Headers, Hooks, RetryPolicy, Traceparent
from ._http import duration_of, timeout_of
from ._sync import Transport
from .errors import InvalidError


class Exec(_exec_api.ExecApi):
    __doc__ = _exec_api.ExecApi.__doc__


class Files(_files_api.FilesApi):
    __doc__ = _files_api.FilesApi.__doc__


class Session(_api.SessionApi):
    __doc__ = _api.SessionApi.__doc__
    _exec_type, _files_type = Exec, Files
    files: Files

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        """Deletes it if it was made without a name."""
        if self._temporary:
            self.delete()


class Projects(_projects.ProjectsApi):
    __doc__ = _projects.ProjectsApi.__doc__


class Teams(_projects.TeamsApi):
    __doc__ = _projects.TeamsApi.__doc__


class Client(_api.ClientApi):
    __doc__ = _api.ClientApi.__doc__
    _session_type, _projects_type, _teams_type = Session, Projects, Teams

    def __init__(self, server_url: Optional[str] = None, api_key: Optional[str] = None, *, timeout: Optional[float] = 60.0,
                 retry_for: Optional[float] = None, reconnect_for: float = 60.0, tls: Optional[ssl.SSLContext] = None,
                 headers: Headers = None, logger: Optional[logging.Logger] = None, user_agent: Optional[str] = None,
                 traceparent: Traceparent = None, retry: Union[RetryPolicy, bool, None] = None,
                 connect: Optional[Callable[..., Any]] = None, proxy: Optional[str] = None,
                 tracer: Any = None) -> None:
        hooks = Hooks(headers, logger, user_agent, traceparent, retry, connect, proxy, tracer)
        place = _place.find(server_url)
        if proxy is not None and place.scheme == "unix":
            raise InvalidError("proxy: not for a service on a unix socket")
        self._transport = Transport(place, _place.find_key(place, api_key), timeout_of("timeout", timeout),
                                    None if retry_for is None else duration_of("retry_for", retry_for), tls, hooks=hooks)
        self.server_url = str(place)
        super().__init__(FileDriver(self._transport, duration_of("reconnect_for", reconnect_for)))

    def close(self) -> None:
        """Close its connections; sessions stay."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Command(_command.CommandApi):
    __doc__ = _command.CommandApi.__doc__


class Pty(_command.PtyApi):
    __doc__ = _command.PtyApi.__doc__

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")

    def __enter__(self) -> "Pty":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Snapshot(_snapshot.SnapshotApi):
    __doc__ = _snapshot.SnapshotApi.__doc__


class Sandbox(_sandbox.SandboxApi):
    __doc__ = _sandbox.SandboxApi.__doc__
    _client_type, _command_type, _snapshot_type, _pty_type = Client, Command, Snapshot, Pty

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._do(self._close(kind is not None))
