# SPDX-License-Identifier: Apache-2.0
"""The client of all of /v1 for asyncio: the same methods, to be awaited; iterators by `async for`."""
import logging
import ssl
from typing import Any, Callable, Optional, Union

from . import _api, _command, _exec_api, _files_api, _place, _projects, _sandbox, _snapshot
from ._async import AsyncTransport
from ._files_async import AsyncFileDriver
from ._hooks import Headers, Hooks, RetryPolicy, Traceparent
from ._http import duration_of, timeout_of
from .errors import InvalidError


class AsyncExec(_exec_api.ExecApi):
    __doc__ = _exec_api.ExecApi.__doc__


class AsyncFiles(_files_api.FilesApi):
    __doc__ = _files_api.FilesApi.__doc__


class AsyncSession(_api.SessionApi):
    __doc__ = _api.SessionApi.__doc__
    _exec_type, _files_type = AsyncExec, AsyncFiles
    files: AsyncFiles

    async def __aenter__(self) -> "AsyncSession":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Deletes it if it was made without a name."""
        if self._temporary:
            await self.delete()  # type: ignore[misc]


class AsyncProjects(_projects.ProjectsApi):
    __doc__ = _projects.ProjectsApi.__doc__


class AsyncTeams(_projects.TeamsApi):
    __doc__ = _projects.TeamsApi.__doc__


class AsyncClient(_api.ClientApi):
    __doc__ = _api.ClientApi.__doc__
    _session_type, _projects_type, _teams_type = AsyncSession, AsyncProjects, AsyncTeams

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
        self._transport = AsyncTransport(place, _place.find_key(place, api_key), timeout_of("timeout", timeout),
                                         None if retry_for is None else duration_of("retry_for", retry_for), tls, hooks=hooks)
        self.server_url = str(place)
        super().__init__(AsyncFileDriver(self._transport, duration_of("reconnect_for", reconnect_for)))

    async def close(self) -> None:
        """Close its connections; sessions stay."""
        await self._transport.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


class AsyncCommand(_command.CommandApi):
    __doc__ = _command.CommandApi.__doc__


class AsyncPty(_command.PtyApi):
    __doc__ = _command.PtyApi.__doc__

    def __aiter__(self) -> "AsyncPty":
        return self

    async def __anext__(self) -> bytes:
        piece: bytes = await self.read()  # type: ignore[misc]
        if not piece:
            raise StopAsyncIteration
        return piece

    async def __aenter__(self) -> "AsyncPty":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()  # type: ignore[func-returns-value,misc]


class AsyncSnapshot(_snapshot.SnapshotApi):
    __doc__ = _snapshot.SnapshotApi.__doc__


class AsyncSandbox(_sandbox.SandboxApi):
    __doc__ = _sandbox.SandboxApi.__doc__
    _client_type, _command_type, _snapshot_type, _pty_type = AsyncClient, AsyncCommand, AsyncSnapshot, AsyncPty

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(self, kind: Any, *_: object) -> None:
        await self._do(self._close(kind is not None))
