# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return,misc"
"""Snapshots of a Sandbox, once for both clients, as _api.py."""
from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Generator, List, Mapping, Optional, overload

from . import _calls as c
from ._options import named_options
from ._part import Part

if TYPE_CHECKING:
    from .client import Sandbox

Op = Generator[Any, Any, Any]


@named_options
class SnapshotApi(Part):
    """A saved state of the files of a Sandbox, which outlives the sandbox.

    >>> box.files.write("a.txt", "1")["size"]
    1
    >>> snapshot = box.snapshot()
    >>> box.files.remove("a.txt")
    >>> with snapshot.fork() as copy:
    ...     copy.files.read_text("a.txt")
    '1'
    >>> snapshot.rollback()
    >>> box.files.exists("a.txt")
    True
    """

    def __init__(self, box: Any, record: Mapping[str, Any]) -> None:
        super().__init__(box._driver)
        self._box = box
        self.id: str = record["id"]
        self.name: Optional[str] = record["name"]
        self.created_at: Optional[datetime.datetime] = c.when(record["created_at"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}" + (f" name={self.name!r}>" if self.name else ">")

    @overload
    def fork(self, count: None = None, *, name: Optional[str] = None) -> Sandbox: ...

    @overload
    def fork(self, count: int, *, name: None = None) -> List[Sandbox]: ...

    def fork(self, count: Optional[int] = None, *, name: Optional[str] = None) -> Any:
        """Make a new sandbox with these files, or a list of `count`; each starts with its first use.

        One without a name is deleted at the end of its `with`."""
        return self._do(self._box._fork(count, name, self.id))

    def rollback(self) -> None:
        """Set the files of its sandbox back to this state; running commands end."""
        def op() -> Op:
            self._box._record = yield self._box._session.rollback(self.id)
        return self._do(op())

    def delete(self) -> None:
        """Delete the snapshot; the sandbox and its forks keep their files."""
        return self._box._client.delete_snapshot(self.id)
