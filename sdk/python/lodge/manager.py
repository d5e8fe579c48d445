# SPDX-License-Identifier: Apache-2.0
"""The session manager: callers name a key and never handle expiry themselves."""
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _calls as c
from .client import Client, Session
from .errors import Error

if TYPE_CHECKING:
    from . import records


DEFAULT_TIMEOUT_MS = 300_000  # without use
MAX_TIMEOUT_MS = 2_700_000  # of one sandbox
LIFETIMES = ("lifetime_ms", "max_lifetime_ms")


def _deadline(record: "Union[records.Session, records.ExtendedSession]") -> int:
    """When its sandbox ends unless it is used; 0: it has none."""
    return min((at for at in (record["hibernate_at"], record["expires_at"]) if at), default=0)


class SessionManager:
    """Returns a running session for a key, whether it must be created, resumed or replaced.

    It works over a Client, which is made from the environment if none is given. Every answer comes from the service, so that
    any number of managers can work at the same time.

    >>> with lodge.SessionManager() as manager:
    ...     session = manager.get_or_create_session("carol")
    ...     valid = manager.is_session_valid("carol")
    ...     manager.invalidate_session("carol")
    >>> valid
    True
    """

    def __init__(self, client: Optional[Client] = None, **defaults: Any) -> None:
        """defaults: what new sessions are like, as Client.enter() has it; unless told otherwise they are hibernated
        after 5 minutes without use, and their sandboxes 45 minutes after their start."""
        self._own = client is None
        self.client: Client = client or Client()
        self._defaults = defaults

    def _at(self, key: str) -> Session:
        return self.client.session("key:" + key)

    def get_or_create_session(self, key: str, **want: Any) -> Session:
        """Return the running session of a key; `outcome` tells whether it was reused, resumed or created."""
        told = {**self._defaults, **want}
        implied = {} if "max_lifetime_ms" in told or "lifetime_ms" in told else dict.fromkeys(LIFETIMES, MAX_TIMEOUT_MS)
        implied["idle_timeout_ms"] = DEFAULT_TIMEOUT_MS
        wanted: Dict[str, Any] = {**implied, **told}
        return self.client.enter(key, _implied=tuple(n for n in implied if n not in told), **wanted)

    def get_session(self, key: str) -> "Optional[records.Session]":
        """Return the record of a key, or None; changes nothing."""
        try:
            return self._at(key).get()
        except Error as e:
            if e.status in (404, 410):
                return None
            raise

    def is_session_valid(self, key: str) -> bool:
        """Tell whether the sandbox of a key answers a probe now; extends nothing."""
        try:
            probe = self._at(key).probe()
        except Error as e:
            if e.status in (404, 410):
                return False
            raise
        return bool(probe["status"] == "connected" and probe["verified"])

    def extend_session(self, key: str, ms: Optional[int] = None) -> bool:
        """Postpone the end of a session; False: there is nothing to extend, or it is at its maximum lifetime."""
        try:
            before = self._at(key).get()
            after = self._at(key).extend(DEFAULT_TIMEOUT_MS if ms is None else ms)
            return _deadline(after) > _deadline(before)
        except Error as e:
            if c.ended(e):
                return False
            raise

    def invalidate_session(self, key: str) -> None:
        """Delete the session of a key; none is no error."""
        try:
            self._at(key).delete()
        except Error as e:
            if e.status not in (404, 410):
                raise

    def cleanup_user_sessions(self, user: str) -> Dict[str, List[str]]:
        """Delete every session of a user, and return the ids as {"destroyed": [...], "failed": [...]}."""
        return self.client.cleanup(user=user)

    def cleanup(self) -> Dict[str, List[str]]:
        """Delete all sessions of the tenant; one failure does not stop the rest."""
        return self.client.cleanup()

    def get_active_session_count(self) -> int:
        """Return how many sessions have a running sandbox."""
        return sum(1 for _ in self._active())

    def has_active_session(self, key: str) -> bool:
        """Tell whether the record of a key says that its sandbox runs; changes nothing."""
        record = self.get_session(key)
        return bool(record and record["state"] == "active" and record["runtime"] == "live")

    def _active(self) -> "List[records.Session]":
        return [s for s in self.client.sessions(state="active", limit=1000) if s["runtime"] == "live"]

    def close(self) -> None:
        """Close the connections of the manager; sessions stay."""
        if self._own:
            self.client.close()

    def __enter__(self) -> "SessionManager":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
