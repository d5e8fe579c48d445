# SPDX-License-Identifier: Apache-2.0
"""What can go wrong. Every failure is a lodge.LodgeError with a code, whether it came over HTTP or out of the
engine in this process."""
import builtins
import json
from typing import Any, Dict, Mapping, Optional, Type

from .types import Result


class LodgeError(Exception):
    """Base class of all errors of this package.

    `code` is for programs and `message` for people; str() has both, and the request id, which is also in the log of
    the service. `status` is None where no HTTP was spoken.

    >>> try:
    ...     lodge.Sandbox.get("no-such-name")
    ... except lodge.LodgeError as e:
    ...     print(e.code, e.status)
    NOT_FOUND 404
    """

    code: str = "ERROR"
    _in_full = True  # str() has more than the message

    def __init__(self, message: str, *, code: Optional[str] = None, status: Optional[int] = None,
                 retryable: bool = False, details: Optional[Mapping[str, Any]] = None,
                 retry_after: Optional[float] = None, request_id: Optional[str] = None) -> None:
        super().__init__(message)
        if code:
            self.code = code
        self.message = message
        self.status = status
        self.retryable = retryable
        self.details: Dict[str, Any] = dict(details or {})
        self.retry_after = retry_after
        self.request_id = request_id

    def __str__(self) -> str:
        if not self._in_full:
            return self.message
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.message} ({self.code}{request})"


Error = LodgeError  # the name of 0.1.0


class IgnoredWarning(UserWarning):
    """Something that was asked of a session had no effect, or less than asked. Silence it with
    warnings.simplefilter("ignore", lodge.IgnoredWarning)."""


class StateLostWarning(UserWarning):
    """A sandbox lost its files, for example with a broken disk, and started anew."""


class InvalidError(Error):
    """Something in the request is wrong; the sentence names it."""
    code = "INVALID"


class UnauthenticatedError(Error):
    """The API key is missing, unknown or expired."""
    code = "UNAUTHENTICATED"


class DeniedError(Error):
    """The key is not allowed to do this, or file permissions in the sandbox forbid it."""
    code = "DENIED"


class NotFoundError(Error):
    """It does not exist, or this key cannot see it."""
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


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 (it is lodge.TimeoutError)
    """Something did not happen in time; also a TimeoutError of Python."""
    code = "TIMEOUT"


class InternalError(Error):
    """The service failed; its log has the details under the request id."""
    code = "INTERNAL"


class TransportError(Error):
    """No answer: the service is not there, or the connection broke. `sent` is true if any part of the
    request may have reached it."""
    code = "TRANSPORT"
    patience: Optional[float] = None  # for how long at most it is worth another try

    def __init__(self, message: str, *, sent: bool = True, **more: Any) -> None:
        super().__init__(message, retryable=True, **more)
        self.sent = sent


class LateError(TransportError, TimeoutError):
    """The service did not answer in time: a TransportError, and a TimeoutError too."""
    code = "TRANSPORT"


class CommandError(Error):
    """A command that run(check=True) or wait_for_log() relied on failed; `result` has its output.

    >>> try:
    ...     box.run("echo broken >&2; exit 3", check=True)
    ... except lodge.CommandError as e:
    ...     print(e.result.exit_code, e.result.stderr, end="")
    3 broken
    """
    code = "COMMAND"

    def __init__(self, message: str, result: "Result[Any]") -> None:
        super().__init__(message, details={"command_id": result.command_id})
        self.result = result


class SandboxError(Error):
    """Base of what a SandboxClient raises."""
    code = "SANDBOX"
    _in_full = False  # threads have fixed texts


class PolicyError(SandboxError):
    """A policy refuses the command; details["forbidden_pattern"] is the word."""
    code = "POLICY"


class LimitError(SandboxError):
    """A limit: of memory, processes, files, the workspace, a quota."""
    code = "LIMIT"


class SessionExpiredError(SandboxError):
    """The session no longer exists, and neither do its files."""
    code = "GONE"


class GoneError(SessionExpiredError, NotFoundError):
    """It was destroyed; details["cause"] has the actor, time and reason. A NotFoundError, too: it no longer exists."""


_BY_CODE: Dict[str, Type[Error]] = {
    "INVALID": InvalidError, "UNAUTHENTICATED": UnauthenticatedError, "DENIED": DeniedError, "POLICY": PolicyError,
    "NOT_FOUND": NotFoundError, "CONFLICT": ConflictError, "GONE": GoneError,
    "PRECONDITION_FAILED": PreconditionError, "RANGE": InvalidError, "OUTPUT_GONE": OutputGoneError,
    "TOO_LARGE": LimitError, "LIMIT": LimitError, "LIMIT_PIDS": LimitError, "LIMIT_MEMORY": LimitError,
    "LIMIT_OUTPUT": LimitError,
    "LIMIT_DISK": LimitError, "RATE_LIMITED": UnavailableError, "UNAVAILABLE": UnavailableError,
    "OVERLOADED": UnavailableError, "TIMEOUT": TimeoutError, "INTERNAL": InternalError,
}
_BY_STATUS: Dict[int, Type[Error]] = {
    400: InvalidError, 401: UnauthenticatedError, 403: DeniedError, 404: NotFoundError, 409: ConflictError,
    410: GoneError, 413: LimitError, 416: InvalidError, 429: LimitError, 503: UnavailableError, 504: TimeoutError,
    507: LimitError,
}


def of_code(code: str, message: str) -> Error:
    """Of the engine in this process."""
    return _BY_CODE.get(code, InternalError)(message, code=code, retryable=code in ("UNAVAILABLE", "TIMEOUT"))


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
    if isinstance(error, str):  # of projects and teams: only a text
        error = {"message": error, "retryable": status in (429, 503, 504)}
    if not isinstance(error, dict):
        error = {"message": body[:200].decode("utf-8", "replace").strip() or f"HTTP status {status}"}
    code = str(error.get("code") or "")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (InternalError if status >= 500 else Error)
    found = kind(str(error.get("message", "")), code=code or None, status=status,
                 retryable=bool(error.get("retryable")), details=error.get("details"),
                 retry_after=retry_after(headers), request_id=headers.get("x-request-id"))
    found._in_full = True
    return found


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
                retry_after=retry_after(headers), request_id=headers.get("x-request-id"))
