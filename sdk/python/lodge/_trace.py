# SPDX-License-Identifier: Apache-2.0
"""A span for each request, from a tracer of OpenTelemetry or an object with the same methods."""
import contextlib
import sys
from typing import Any, Dict, Iterator, Optional

from ._http import Request
from .errors import Error, InvalidError


def route_of(path: str) -> str:
    """A path with "{id}" for what differs from request to request: names follow on collections."""
    first, *rest = path.partition("?")[0].strip("/").split("/")
    if first not in ("v1", "api"):
        return "/" + first
    if "files" in rest[2:3]:
        rest[3:] = ["{path}"]
    return "/".join(["", first, *("{id}" if i % 2 and part != "{path}" else part for i, part in enumerate(rest))])


def check_tracer(tracer: Any) -> Any:
    if tracer is not None and not callable(getattr(tracer, "start_as_current_span", None)):
        raise InvalidError(f"tracer: must have start_as_current_span(), as a tracer of OpenTelemetry, not {tracer!r}")
    return tracer


def _kind() -> Dict[str, Any]:
    """A tracer of OpenTelemetry takes only a kind of its own, and has loaded it."""
    trace = sys.modules.get("opentelemetry.trace")
    return {"kind": trace.SpanKind.CLIENT} if trace else {}


def _traceparent(span: Any) -> Optional[str]:
    at = span.get_span_context()
    if not at.trace_id or not at.span_id:
        return None
    return f"00-{at.trace_id:032x}-{at.span_id:016x}-{int(at.trace_flags):02x}"


class Span:
    """Of one request, however often it is sent."""

    def __init__(self, span: Any = None) -> None:
        self._span = span
        self._sent = 0

    def sent(self) -> None:
        self._sent += 1
        if self._sent > 1:
            self._set("http.request.resend_count", self._sent - 1)

    def answered(self, status: Optional[int], request_id: Optional[str]) -> None:
        self._set("http.response.status_code", status)
        self._set("lodge.request_id", request_id)

    def failed(self, error: Error) -> None:
        self.answered(error.status, error.request_id)
        self._set("error.type", error.code)

    def _set(self, name: str, value: Any) -> None:
        if self._span is not None and value is not None:
            self._span.set_attribute(name, value)


@contextlib.contextmanager
def span_of(tracer: Any, ask: Request) -> Iterator[Span]:
    """The tracer records an error that leaves the span."""
    if tracer is None:
        yield Span()
        return
    route = route_of(ask.path)
    attributes = {"http.request.method": ask.method, "url.template": route}
    with tracer.start_as_current_span(f"{ask.method} {route}", attributes=attributes, **_kind()) as started:
        ask.trace = _traceparent(started)
        span = Span(started)
        try:
            yield span
        except Error as e:
            span.failed(e)
            raise
