# SPDX-License-Identifier: Apache-2.0
"""The session manager: callers name a key and never handle expiry themselves."""
from typing import Any, List, Optional

from . import _calls as c
from .client import Client, Session
from .errors import Error
from .types import Record


class SessionManager:
    """Over a Client, which is made from the environment where none is given. What is true of a session is asked of
    the service each time: any number of managers may be at work."""

    def __init__(self, client: Optional[Client] = None, **defaults: Any) -> None:
        """defaults: what new sessions are like, as Client.enter() has it."""
        self._own = client is None
        self.client = client or Client()
        self._defaults = defaults

    def _at(self, key: str) -> Session:
        return self.client.session("key:" + key)

    def get_or_create_session(self, key: str, **want: Any) -> Session:
        """Ready to be used: reused, resumed or created; `outcome` and `state_lost` of the result tell."""
        session: Session = self.client.enter(key, **{**self._defaults, **want})
        return session

    def get_session(self, key: str) -> Optional[Record]:
        """The record, or None; changes nothing."""
        try:
            return self._at(key).get()
        except Error as e:
            if e.status in (404, 410):
                return None
            raise

    def is_session_valid(self, key: str) -> bool:
        """True only if its sandbox is live now; changes nothing."""
        record = self.get_session(key)
        return bool(record and record["state"] == "active" and record["runtime"] == "live")

    def extend_session(self, key: str, ms: Optional[int] = None) -> bool:
        """False: there is nothing to extend."""
        try:
            self._at(key).extend(ms)
            return True
        except Error as e:
            if c.ended(e):
                return False
            raise

    def invalidate_session(self, key: str) -> None:
        """Destroys it; nothing there is as good."""
        try:
            self._at(key).delete()
        except Error as e:
            if e.status not in (404, 410):
                raise

    def cleanup_user_sessions(self, user: str) -> Record:
        """Every session of the user, however it is bound: {"destroyed": ids, "failed": ids}."""
        return self.client.cleanup(user=user)

    def cleanup(self) -> Record:
        """All sessions of the key's tenant; one failure does not stop the rest."""
        return self.client.cleanup()

    def get_active_session_count(self) -> int:
        return sum(1 for _ in self._active())

    def has_active_session(self, key: str) -> bool:
        return self.is_session_valid(key)

    def _active(self) -> List[Record]:
        return [s for s in self.client.sessions(state="active", limit=1000) if s["runtime"] == "live"]

    def close(self) -> None:
        """The sessions stay."""
        if self._own:
            self.client.close()

    def __enter__(self) -> "SessionManager":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
