# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return"
"""A command of a session, once for both clients, as _api.py."""
import time
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union

from . import _calls as c
from ._http import Call, Request, query, quote
from ._part import Part
from ._streams import ExecStream
from .types import Event, ExecResult, Output

if TYPE_CHECKING:
    from . import records


class ExecApi(Part):
    """A command of a Session that runs in the background, also without a client.

    Any client can open it again by its id.

    >>> job = client.session(box.id).start("cat; exit 3")
    >>> job.write(b"in", eof=True)
    2
    >>> result = job.wait(60)
    >>> result.stdout, result.exit_code
    (b'in', 3)
    """

    def __init__(self, driver: Any, session: str, exec_id: str) -> None:
        super().__init__(driver)
        self._base = c.session_base(session)
        self._at = f"{self._base}/execs/{quote(exec_id)}"
        self.session, self.id = session, exec_id

    def info(self) -> "records.Exec":
        """Return its record: state, exit code, usage and more."""
        return self._do(c.get(self._at, c.member("exec")))

    def output(self, stdout_offset: int = 0, stderr_offset: int = 0, wait: float = 0.0) -> Output:
        """Return what it wrote from two offsets on, after up to `wait` seconds for something new.

        Raises OutputGoneError if that is no longer retained; its details have the first offsets that are."""
        return self._do(c.output(self._base, self.id, stdout_offset, stderr_offset, wait))

    def stream(self, stdout_offset: int = 0, stderr_offset: int = 0) -> Iterator[Event]:
        """Iterate over what it writes from two offsets on until it ends; output that is no longer retained is a "gap"."""
        return self._events(ExecStream(self._base, {}, self._driver.reconnect, self.id, [stdout_offset, stderr_offset]))

    def write(self, data: bytes = b"", eof: bool = False) -> int:
        """Write to its standard input; returns the number of bytes once the command has taken all of them."""
        ask = Request("POST", self._at + "/stdin" + query({"eof": eof or None}), body=bytes(data),
                      kind="application/octet-stream")
        return self._do(Call(ask, c.member("written_bytes")))

    def signal(self, signal: Union[int, str] = "TERM") -> "records.Exec":
        """Send it a signal, such as 15, "TERM" or "SIGTERM"."""
        return self._do(c.post(self._at + "/signal", {"signal": signal}, c.member("exec")))

    def resize(self, rows: int, cols: int) -> "records.Exec":
        """Change the size of its terminal."""
        return self._do(c.post(self._at + "/resize", {"rows": rows, "cols": cols}, c.member("exec")))

    def kill(self) -> "records.Exec":
        """Kill it with everything it started; one that has ended already is no error."""
        return self._do(c.delete(self._at, c.member("exec")))

    def wait(self, timeout: Optional[float] = None) -> ExecResult:
        """Wait until it ends, and return the result with the output that is retained.

        timeout: seconds, after which a TimeoutError leaves it running; 0 or None: no limit. `truncated` of the result: not all
        of the output is retained."""
        return self._do(c.wait_for(self._base, self.id, time.monotonic, timeout))
