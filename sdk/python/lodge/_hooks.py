# SPDX-License-Identifier: Apache-2.0
"""What a caller can put between a client and the network."""
import dataclasses
import logging
import platform
import re
from typing import Any, Callable, Dict, Mapping, Optional, Union

from ._proxy import Proxy, parse
from ._trace import check_tracer
from ._version import VERSION, series
from .errors import Error, InvalidError

Headers = Union[Mapping[str, str], Callable[[], Mapping[str, str]], None]
Traceparent = Union[str, Callable[[], Optional[str]], None]
LOGGER = logging.getLogger("lodge")
LOGGER.addHandler(logging.NullHandler())
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_TRACEPARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_OURS = {"host", "authorization", "connection", "content-length", "transfer-encoding", "upgrade"}


@dataclasses.dataclass(frozen=True)
class RetryPolicy:
    """How a client repeats requests that failed.

    attempts: how often a request is sent in all while the service answers 429 or 503. min_delay and max_delay: the first
    and the longest pause in seconds; each pause is twice as long as the last. A Retry-After of the response counts if it
    is longer.

    >>> with lodge.Client(retry=lodge.RetryPolicy(attempts=3)) as client:
    ...     client.ready()
    True
    """
    attempts: int = 8
    min_delay: float = 0.05
    max_delay: float = 1.0


def _checked(headers: Mapping[str, str]) -> Dict[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise InvalidError(f"headers: {name!r} cannot be set")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise InvalidError(f"headers: the value of {name} is not text of one line")
    return dict(headers)


class Hooks:
    """Of one client."""

    def __init__(self, headers: Headers = None, logger: Optional[logging.Logger] = None, user_agent: Optional[str] = None,
                 traceparent: Traceparent = None, retry: Union[RetryPolicy, bool, None] = None,
                 connect: Optional[Callable[..., Any]] = None, proxy: Optional[str] = None, tracer: Any = None) -> None:
        self._headers: Headers = headers if callable(headers) else _checked(headers or {})
        self._agent = f"{user_agent + ' ' if user_agent else ''}lodge-python/{VERSION} python/{platform.python_version()}"
        _checked({"User-Agent": self._agent})
        self._traceparent = traceparent
        self.logger: logging.Logger = logger or LOGGER
        self.retry: Optional[RetryPolicy] = self._policy(retry)
        self.connect: Optional[Callable[..., Any]] = connect
        self.proxy: Optional[Proxy] = parse(proxy) if proxy is not None else None
        self.tracer: Any = check_tracer(tracer)
        if connect and proxy:
            raise InvalidError("proxy: not together with connect")
        if tracer is not None and traceparent is not None:
            raise InvalidError("traceparent: not together with tracer, whose spans have their own")
        if not callable(headers) and not callable(traceparent):
            self.headers()

    @staticmethod
    def _policy(retry: Union[RetryPolicy, bool, None]) -> Optional[RetryPolicy]:
        """None: nothing is repeated."""
        if retry is None or retry is True:
            return RetryPolicy()
        if retry is False:
            return None
        if not isinstance(retry, RetryPolicy):
            raise InvalidError(f"retry: must be a lodge.RetryPolicy or False, not {retry!r}")
        return retry

    def headers(self, trace: Optional[str] = None) -> Dict[str, str]:
        """Of the next request; trace: the trace context of its span."""
        own: Mapping[str, str] = _checked(self._headers()) if callable(self._headers) else self._headers or {}
        trace = trace or (self._traceparent() if callable(self._traceparent) else self._traceparent)
        found: Dict[str, str] = {"User-Agent": self._agent}
        found.update(own)
        if trace:
            if not isinstance(trace, str) or not _TRACEPARENT.fullmatch(trace):
                raise InvalidError(f"traceparent: {trace!r} is not as 00-<32 digits>-<16 digits>-01")
            found["traceparent"] = trace
        return found

    def answered(self, method: str, path: str, status: int, request_id: Optional[str], seconds: float) -> None:
        if self.logger.isEnabledFor(logging.DEBUG):
            self.logger.debug("%s %s: %d in %.0f ms%s", method, path, status, seconds * 1000,
                              f" (request {request_id})" if request_id else "")

    def repeated(self, method: str, path: str, error: Error, pause: float) -> None:
        self.logger.warning("%s %s: %s; sent again in %.0f ms", method, path, error.code, pause * 1000)


def is_unknown_route(error: Error) -> bool:
    """A route that the service does not have may be one of another version."""
    return error.code == "METHOD_NOT_ALLOWED" or (error.status == 404 and error.message.startswith("no such route"))


def explain(error: Error, server: Any) -> None:
    """Adds to the text that the versions differ."""
    if isinstance(server, str) and series(server) != series(VERSION):
        error.message += f"; lodged is {server} and this package {VERSION}: use the same version of both"
