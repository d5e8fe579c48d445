# SPDX-License-Identifier: Apache-2.0
"""What can go wrong. Every failure is a lodge.Error with a code, whether it came over HTTP or out of the
engine in this process."""
import json
from typing import Any, Dict, Mapping, Optional, Type


class Error(Exception):
    """`code` is for programs, str() for people; `status` is None where no HTTP was spoken."""

    code = "ERROR"

    def __init__(self, message: str, *, code: Optional[str] = None, status: Optional[int] = None,
                 retryable: bool = False, details: Optional[Mapping[str, Any]] = None,
                 retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        if code:
            self.code = code
        self.message = message
        self.status = status
        self.retryable = retryable
        self.details: Dict[str, Any] = dict(details or {})
        self.retry_after = retry_after


class InvalidError(Error):
    """Something in the request is wrong; the sentence names it."""
    code = "INVALID"


class UnauthenticatedError(Error):
    code = "UNAUTHENTICATED"


class DeniedError(Error):
    code = "DENIED"


class NotFoundError(Error):
    code = "NOT_FOUND"


class ConflictError(Error):
    """Not possible in its state, or another version; details["session"] is the record as it is now."""
    code = "CONFLICT"


class PreconditionError(Error):
    """If-Match or If-None-Match: it is another file by now."""
    code = "PRECONDITION_FAILED"


class OutputGoneError(Error):
    """Output that is no longer retained; details have the first offset that is."""
    code = "OUTPUT_GONE"


class UnavailableError(Error):
    """Full, busy or starting: worth another try."""
    code = "UNAVAILABLE"


class TimeoutError(Error):  # noqa: A001 (it is lodge.TimeoutError)
    code = "TIMEOUT"


class InternalError(Error):
    code = "INTERNAL"


class TransportError(Error):
    """No answer: the service is not there, or the connection broke. `sent` is true if any part of the
    request may have reached it."""
    code = "TRANSPORT"
    patience: Optional[float] = None  # for how long at most it is worth another try

    def __init__(self, message: str, *, sent: bool = True, **more: Any) -> None:
        super().__init__(message, retryable=True, **more)
        self.sent = sent


class SandboxError(Error):
    """Base of what a SandboxClient raises."""
    code = "SANDBOX"


class PolicyError(SandboxError):
    """A policy refuses the command; details["forbidden_pattern"] is the word."""
    code = "POLICY"


class LimitError(SandboxError):
    """A limit: of memory, processes, files, the workspace, a quota."""
    code = "LIMIT"


class SessionExpiredError(SandboxError):
    """The session no longer exists, and neither do its files."""
    code = "GONE"


class GoneError(SessionExpiredError):
    """It was destroyed; details["cause"] has the actor, time and reason."""


_BY_CODE: Dict[str, Type[Error]] = {
    "INVALID": InvalidError, "UNAUTHENTICATED": UnauthenticatedError, "DENIED": DeniedError, "POLICY": PolicyError,
    "NOT_FOUND": NotFoundError, "CONFLICT": ConflictError, "GONE": GoneError,
    "PRECONDITION_FAILED": PreconditionError, "RANGE": InvalidError, "OUTPUT_GONE": OutputGoneError,
    "TOO_LARGE": LimitError, "LIMIT": LimitError, "LIMIT_PIDS": LimitError, "LIMIT_MEMORY": LimitError,
    "LIMIT_DISK": LimitError, "RATE_LIMITED": UnavailableError, "UNAVAILABLE": UnavailableError,
    "OVERLOADED": UnavailableError, "TIMEOUT": TimeoutError, "INTERNAL": InternalError,
}
_BY_STATUS: Dict[int, Type[Error]] = {
    400: InvalidError, 401: UnauthenticatedError, 403: DeniedError, 404: NotFoundError, 409: ConflictError,
    410: GoneError, 413: LimitError, 416: InvalidError, 429: LimitError, 503: UnavailableError, 504: TimeoutError,
    507: LimitError,
}


def retry_after(headers: Mapping[str, str]) -> Optional[float]:
    """Seconds; None: the answer does not say."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def of_answer(status: int, headers: Mapping[str, str], body: bytes) -> Error:
    """The error of a /v1 response."""
    received = _decode(body)
    error = received.get("error") if isinstance(received, dict) else None
    if not isinstance(error, dict):
        error = {"message": body[:200].decode("utf-8", "replace").strip() or f"HTTP status {status}"}
    code = str(error.get("code") or "")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (InternalError if status >= 500 else Error)
    return kind(str(error.get("message", "")), code=code or None, status=status,
                retryable=bool(error.get("retryable")), details=error.get("details"),
                retry_after=retry_after(headers))


_CODES = {401: "UNAUTHENTICATED", 403: "DENIED", 404: "NOT_FOUND", 409: "CONFLICT", 503: "UNAVAILABLE", 504: "TIMEOUT"}
EXPIRED = "Invalid or expired session"
FULL = "Pool at max capacity, try again later"


def of_thread_answer(status: int, headers: Mapping[str, str], body: bytes) -> Error:
    """The same for /create_session, /execute and their like: {"detail": a sentence or an object}."""
    received = _decode(body)
    detail = received.get("detail") if isinstance(received, dict) else None
    details = detail if isinstance(detail, dict) else {}
    message = str(details.get("error") or (detail if isinstance(detail, str) else f"HTTP status {status}"))
    kind: Type[Error] = SandboxError
    code: Optional[str] = _CODES.get(status, "INTERNAL" if status >= 500 else "INVALID")
    if "forbidden_pattern" in details:
        kind = PolicyError
    elif status in (413, 429, 507):
        kind = LimitError
    elif status == 404 and (message == EXPIRED or message == "Session expired"):
        kind = SessionExpiredError
    return kind(message, code=code if kind is SandboxError else None, status=status, retryable=status in (429, 503, 504), details=details,
                retry_after=retry_after(headers))
