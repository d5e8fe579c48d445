# SPDX-License-Identifier: Apache-2.0
"""Whether a request is sent again, and when. Only where that cannot do anything twice: nothing was sent yet, asking
changes nothing, or an idempotency key makes it one."""
import random
import time
from typing import Optional

from ._hooks import RetryPolicy
from ._http import Request
from .errors import Error, TransportError, UnavailableError

RETRY_FOR = 10.0
FIRST_CONTACT = 1.5  # for a service that was never there: likely it is not, or somewhere else
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


REFUSED_UNREAD = ("RATE_LIMITED", "OVERLOADED")  # before the service looked at what is asked for


class Retry:
    """Of one request; `patience` seconds in all."""

    def __init__(self, ask: Request, patience: float, policy: Optional[RetryPolicy]) -> None:
        self._ask, self._policy = ask, policy
        self._began, self._patience = time.monotonic(), patience
        self._tries = self._answers = 0

    def pause(self, error: Error) -> Optional[float]:
        """Seconds until the next try; None: this is the answer."""
        policy = self._policy
        if policy is None or not self._may_repeat(error):
            return None
        wait = min(policy.min_delay * 2 ** min(self._tries, 30), policy.max_delay) * random.uniform(0.75, 1.25)
        self._tries += 1
        if isinstance(error, UnavailableError):
            self._answers += 1
            if self._answers >= policy.attempts:
                return None
        if error.retry_after is not None:
            wait = max(wait, error.retry_after)
        return wait if time.monotonic() + wait <= self._began + _shorter(self._patience, error) else None

    def _may_repeat(self, error: Error) -> bool:
        if isinstance(error, TransportError):
            return not error.sent or self._ask.repeatable
        if not isinstance(error, UnavailableError) or error.status not in (429, 503) or self._ask.source is not None:
            return False
        # a service that is busy has deleted nothing
        return self._ask.repeatable or self._ask.method == "DELETE" or error.code in REFUSED_UNREAD


def _shorter(patience: float, error: Error) -> float:
    most = error.patience if isinstance(error, TransportError) else None
    return patience if most is None else min(patience, most)


class Patience:
    """Of a stream that broke: how long to try before it is given up. Starts anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        self._since: Optional[float] = None
        self._tries = 0

    def pause(self, error: Error) -> float:
        """Raises the error when it lasted too long, or is not of the kind that passes."""
        passes = isinstance(error, (TransportError, UnavailableError)) or (error.status or 0) >= 502
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if not passes or now - self._since > _shorter(self._seconds, error):
            raise error
        wait: float = max(min(FIRST_PAUSE * 2 ** self._tries, LONGEST_PAUSE), error.retry_after or 0.0)
        self._tries += 1
        return wait
