# SPDX-License-Identifier: Apache-2.0
"""The client of all of /v1 for asyncio: the same methods, to be awaited; iterators by `async for`."""
import ssl
from typing import Any, Optional

from . import _api, _place
from ._async import AsyncTransport
from ._files_async import AsyncFileDriver


class AsyncExec(_api.ExecApi):
    __doc__ = _api.ExecApi.__doc__


class AsyncFiles(_api.FilesApi):
    __doc__ = _api.FilesApi.__doc__


class AsyncSession(_api.SessionApi):
    __doc__ = _api.SessionApi.__doc__
    _exec_type, _files_type = AsyncExec, AsyncFiles
    files: AsyncFiles

    async def __aenter__(self) -> "AsyncSession":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Destroys it."""
        await self.delete()  # type: ignore[misc]


class AsyncClient(_api.ClientApi):
    """As lodge.Client; used by one event loop."""
    _session_type = AsyncSession

    def __init__(self, server_url: Optional[str] = None, api_key: Optional[str] = None, *, timeout: float = 60.0,
                 retry_for: Optional[float] = None, reconnect_for: float = 60.0, tls: Optional[ssl.SSLContext] = None) -> None:
        place = _place.find(server_url)
        self._transport = AsyncTransport(place, _place.find_key(place, api_key), timeout, retry_for, tls)
        self.server_url = str(place)
        super().__init__(AsyncFileDriver(self._transport, reconnect_for))

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
