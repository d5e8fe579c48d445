# SPDX-License-Identifier: Apache-2.0
"""Streams without input or output: what to ask for next, and what the bytes that came tell. A stream that broke is
taken up where it was left."""
import base64
import json
from typing import Any, Dict, List, Optional, Union

from ._calls import first_kept, is_key, named
from ._http import Request, query, quote, request
from ._retry import Patience
from .errors import Error, GoneError, OutputGoneError, TransportError
from .types import Event, ExecResult, Stream

LINE_MAX = 4 << 20
POLL_MS = 20000
QUIET_SECONDS = 60.0  # the service sends a beat every 15


def parsed(text: Union[bytes, str]) -> Dict[str, Any]:
    try:
        received = json.loads(text)
    except ValueError:
        received = None
    if not isinstance(received, dict):
        raise TransportError("the stream has something that is no JSON object")
    return received


class Lines:
    """Whole lines of what comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> List[bytes]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LINE_MAX:
            raise TransportError("a line of the stream is too long")
        return lines


class ExecStream:
    """A command as it runs. It is asked for by an idempotency key, so that asking again leads to the same command,
    whose log waits for the reader; where that is not possible (a session that sleeps, standard input) or could start it
    anew (a key, which may lead to another session by then) it is read by offset. Every byte comes once; those that
    are no longer retained are a "gap"."""

    def __init__(self, base: str, body: Dict[str, Any], patience: float, exec_id: Optional[str] = None,
                 offsets: Optional[List[int]] = None) -> None:
        self._base, self._body = base, body
        self._mode = "poll" if exec_id else "stream"
        self._again = "idempotency_key" in body and not is_key(base)
        self._at = {"stdout": 0, "stderr": 0}
        if offsets:
            self._at = {"stdout": offsets[0], "stderr": offsets[1]}
        self._patience = Patience(patience)
        self._gaps: List[Event] = []  # not yet returned
        self._missing = False
        self._begin()
        self.exec_id = exec_id
        self.done = False

    def _begin(self) -> None:
        self._lines, self._body_read = Lines(), b""

    def request(self) -> Request:
        self._begin()
        if self._mode == "stream":
            again = query({"resume": 0, "stdout_offset": self._at["stdout"], "stderr_offset": self._at["stderr"]}) \
                if self.exec_id else ""
            return request("POST", f"{self._base}/exec{again}", self._body, accept="application/x-ndjson",
                           keyed="idempotency_key" in self._body, timeout=QUIET_SECONDS)
        path = f"{self._base}/execs/{quote(self.exec_id or '')}"
        if self._mode == "record":
            return Request("GET", path)
        return Request("GET", path + "/output" + query({
            "stdout_offset": self._at["stdout"], "stderr_offset": self._at["stderr"], "wait_ms": POLL_MS,
            "encoding": "base64"}), timeout=QUIET_SECONDS)

    def feed(self, piece: bytes) -> List[Event]:
        if self._mode != "stream":
            self._body_read += piece
            return []
        events: List[Event] = []
        for line in self._lines.feed(piece):
            if line and not self.done:
                events += self._event(parsed(line))
        if events:  # only what is new counts: a line that never comes through is no progress
            self._patience.renew()
        return events

    def _event(self, received: Dict[str, Any]) -> List[Event]:
        kind = received.pop("event", None)
        if kind == "started":
            return self._started(received["exec_id"])
        if kind in self._at:
            return self._output(kind, received["offset"], base64.b64decode(received["data"]))
        if kind == "exit":
            self.done = True
            result = ExecResult.of(received)
            if self._missing and not result.truncated:
                result.truncated, result.limits = True, [*result.limits, "LIMIT_OUTPUT"]
            return [Event("exit", exec_id=self.exec_id, result=result)]
        return []  # a beat

    def _started(self, exec_id: str) -> List[Event]:
        """Once, and never another one's bytes behind it."""
        first = self.exec_id is None
        if not first and exec_id != self.exec_id:
            raise GoneError(f"command {self.exec_id} is gone: {exec_id} answers in its place",
                            details={"exec_id": self.exec_id})
        self.exec_id = exec_id
        return [Event("started", exec_id=exec_id)] if first else []

    def _output(self, stream: Stream, offset: int, data: bytes) -> List[Event]:
        events = self._skip(stream, offset)
        expected = self._at[stream]
        data = data[expected - offset:]
        if data:
            self._at[stream] = expected + len(data)
            events.append(Event(stream, exec_id=self.exec_id, offset=expected, data=data))
        return events

    def _skip(self, stream: Stream, to: int) -> List[Event]:
        at = self._at[stream]
        if to <= at:
            return []
        self._at[stream], self._missing = to, True
        return [Event("gap", exec_id=self.exec_id, offset=at, stream=stream, bytes=to - at)]

    def end(self) -> List[Event]:
        """The answer is complete."""
        if self._mode == "stream":
            if not self.done:
                raise TransportError("the stream ended before the command did")
            return []
        received = parsed(self._body_read)
        self._patience.renew()
        if self._mode == "record":
            record = received["exec"]
            if record["state"] == "running":
                self._mode = "poll"
                return []
            self.done = True
            return [Event("exit", exec_id=self.exec_id, result=ExecResult.of_record(record, self._missing))]
        events, self._gaps = self._gaps, []
        events += self._output("stdout", self._at["stdout"], base64.b64decode(received["stdout"]))
        events += self._output("stderr", self._at["stderr"], base64.b64decode(received["stderr"]))
        if received["done"]:
            self._mode = "record"
        return events

    def failed(self, error: Error) -> float:
        """Seconds until request() is worth asking; or raises."""
        if self._mode == "stream" and self.exec_id and 400 <= (error.status or 0) < 500:
            self._mode = "poll"
            return 0.0
        if self._mode == "poll" and isinstance(error, OutputGoneError):
            kept = first_kept(error, [self._at["stdout"], self._at["stderr"]])
            self._gaps += self._skip("stdout", kept[0]) + self._skip("stderr", kept[1])
            return 0.0
        if self._mode == "stream" and isinstance(error, TransportError) and error.sent:
            if self.exec_id and not self._again:
                self._mode = "poll"
            elif not self.exec_id and "idempotency_key" not in self._body:
                raise error  # whether it runs is not known, and it must not run twice
        return self._patience.pause(error)


class ServerEvents:
    """Server-sent events. resume: take it up again by the id of the last one; else a break is an error."""

    def __init__(self, path: str, patience: float, *, resume: bool = False, last: Optional[int] = None,
                 ends: bool = False) -> None:
        self._path, self._resume, self._ends = path, resume, ends
        self._last = last
        self._patience = Patience(patience)
        self._reset()
        self.done = False

    def _reset(self) -> None:
        self._lines = Lines()
        self._id, self._kind, self._data = "", "", ""

    def request(self) -> Request:
        self._reset()
        headers = {"Last-Event-ID": str(self._last)} if self._last is not None else {}
        return Request("GET", self._path, accept="text/event-stream", headers=headers, timeout=QUIET_SECONDS)

    def feed(self, piece: bytes) -> List[Dict[str, Any]]:
        events = []
        for line in self._lines.feed(piece):
            text = line.rstrip(b"\r").decode("utf-8", "replace")
            if text and not text.startswith(":"):
                name, _, value = text.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "id":
                    self._id = value
                elif name == "event":
                    self._kind = value
                elif name == "data":
                    self._data += value
            elif not text and self._data:
                events.append(self._take())
        if events:
            self._patience.renew()
        return events

    def _take(self) -> Dict[str, Any]:
        event = named(parsed(self._data))
        kind = self._kind
        if self._id.isdigit():
            self._last = int(self._id)
        self._id, self._kind, self._data = "", "", ""
        if kind == "end" and not self._resume:
            raise Error(event.get("message", "it has ended"), code=event.get("code"))
        return event

    def end(self) -> List[Dict[str, Any]]:
        if self._ends:
            self.done = True
        elif not self._resume:
            raise TransportError("the stream ended")
        return []

    def failed(self, error: Error) -> float:
        if not self._resume:
            raise error
        return self._patience.pause(error)


class Download:
    """Bytes of one file from an offset on, taken up again where they broke off as long as it is the same file."""

    def __init__(self, ask: Request, patience: float, at: int = 0) -> None:
        self._ask, self.at = ask, at
        self._patience = Patience(patience)
        self._tag: Optional[str] = None
        self.size: Optional[int] = None
        self._kept = False  # the service can serve a part of it

    def request(self) -> Request:
        headers = dict(self._ask.headers)
        if self.at:
            headers["Range"] = f"bytes={self.at}-"
        if self._tag:
            headers["If-Match"] = self._tag
        return Request("GET", self._ask.path, headers=headers, timeout=self._ask.timeout)

    def begun(self, status: int, headers: Dict[str, str]) -> None:
        self._kept = headers.get("accept-ranges") == "bytes"
        self._tag = headers.get("etag") if self._kept else None
        if status == 206:
            self.size = int(headers["content-range"].rpartition("/")[2])
        elif self.at:
            raise TransportError("the service serves it only as a whole")
        elif "content-length" in headers:
            self.size = int(headers["content-length"])

    def came(self, count: int) -> None:
        self.at += count
        self._patience.renew()

    def failed(self, error: Error) -> float:
        if self.at and not self._tag:
            raise error
        return self._patience.pause(error)
