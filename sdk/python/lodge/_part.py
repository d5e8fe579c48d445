# SPDX-License-Identifier: Apache-2.0
"""What the parts of both clients have in common."""
from typing import Any, Callable


class Part:
    """Something of a client: calls go the client's way. The underscored ones are made by _sync.py and _async.py."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._do: Callable[[Any], Any] = driver._do
        self._pages: Callable[..., Any] = driver._pages
        self._events: Callable[[Any], Any] = driver._events
        self._save_to: Callable[..., Any] = driver._save_to
        self._send_from: Callable[..., Any] = driver._send_from
