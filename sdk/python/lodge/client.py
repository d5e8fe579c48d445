# SPDX-License-Identifier: Apache-2.0
"""The blocking client of all of /v1."""
import ssl
from typing import Any, Optional

from . import _api, _place
from ._files import FileDriver
from ._sync import Transport


class Exec(_api.ExecApi):
    __doc__ = _api.ExecApi.__doc__


class Files(_api.FilesApi):
    __doc__ = _api.FilesApi.__doc__


class Session(_api.SessionApi):
    __doc__ = _api.SessionApi.__doc__
    _exec_type, _files_type = Exec, Files
    files: Files

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        """Destroys it."""
        self.delete()


class Client(_api.ClientApi):
    """server_url: "http://HOST:PORT", "https://..." or "unix:PATH"; by default LODGE_URL, or the socket of the
    local service. Used by any number of threads. timeout: seconds without a byte; retry_for: how long a request
    that can be repeated safely is, by default 10 s, but 1.5 s while nothing was ever there; reconnect_for: how long a
    stream that broke is tried."""
    _session_type = Session

    def __init__(self, server_url: Optional[str] = None, api_key: Optional[str] = None, *, timeout: float = 60.0,
                 retry_for: Optional[float] = None, reconnect_for: float = 60.0, tls: Optional[ssl.SSLContext] = None) -> None:
        place = _place.find(server_url)
        self._transport = Transport(place, _place.find_key(place, api_key), timeout, retry_for, tls)
        self.server_url = str(place)
        super().__init__(FileDriver(self._transport, reconnect_for))

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
