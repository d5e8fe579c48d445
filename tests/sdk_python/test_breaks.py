# SPDX-License-Identifier: Apache-2.0
"""Broken connections and a killed service, with both clients."""
import contextlib
import threading
import uuid

import pytest
from client import wait_for
from conftest import Way
from proxy import Proxy

import lodge
from lodge import _retry, _streams

EXPECTED = b"".join(b"%d\n" % i for i in range(1, 60001))  # 350 kB
SLOWLY = "for i in $(seq 1 60000); do echo $i; if (( i % 6000 == 0 )); then sleep 0.2; fi; done; exit 7"


@contextlib.contextmanager
def through(way, service, limit):
    """The same client through a proxy that cuts its connections."""
    proxy = Proxy(service.home, service.url[len("unix:"):], limit)
    w = Way(way.kind, proxy.url)
    try:
        yield w, proxy
    finally:
        w.close()
        proxy.close()


def collect(way, session, stream):
    """Return the output and the result; the offsets are checked."""
    got, result, started = b"", None, 0
    for event in way.steps(stream):
        if event.kind == "stdout":
            assert event.offset == len(got)
            got += event.data
        started += event.kind == "started"
        result = event.result or result
    assert started == 1
    return got, result


def test_a_stream_survives_cut_connections(way, service, session):
    with through(way, service, 150000) as (w, proxy):
        got, result = collect(w, session, w.client.session(session.id).stream("seq 1 60000; exit 7"))
        assert got == EXPECTED and result.exit_code == 7 and proxy.cut > 1


def test_a_stream_survives_a_killed_service(way, service, session, do):
    stream = way.steps(session.stream(SLOWLY))
    got, killed, result = b"", 0, None
    for event in stream:
        if event.kind == "stdout":
            assert event.offset == len(got)
            got += event.data
        result = event.result or result
        if len(got) > (killed + 1) * 100000 and killed < 2:
            killed += 1
            service.stop(9)
            later = threading.Timer(0.3, service.start)
            later.start()
    assert got == EXPECTED and result.exit_code == 7 and killed == 2
    assert len(do(session.execs())) == 1


def test_a_stream_with_input_continues_by_offset(way, service, session):
    with through(way, service, 1000) as (w, proxy):
        threading.Timer(1, lambda: setattr(proxy, "limit", 0)).start()
        s = w.client.session(session.id)
        got, result = collect(w, s, s.stream("read x; seq 1 $x; sleep 1.2; seq 1 $x; exit 7", stdin="500\n"))
        assert got == 2 * EXPECTED[:1892] and result.exit_code == 7 and proxy.cut


def test_a_stream_does_not_continue_with_another_command(way, service, do):
    """The key names another session by the time the client reconnects."""
    key = uuid.uuid4().hex
    with through(way, service, 0) as (w, proxy):
        do(way.client.enter(key))
        stream = w.steps(w.client.session("key:" + key).stream("echo x; sleep 3"))
        assert [next(stream).kind, next(stream).kind] == ["started", "stdout"]
        proxy.drop()
        do(way.client.session("key:" + key).delete())
        do(way.client.enter(key))
        with pytest.raises(lodge.GoneError):
            next(stream)
    assert do(way.client.session("key:" + key).execs()) == []  # and the command did not run again there
    do(way.client.session("key:" + key).delete())


def test_a_stream_keeps_its_exec_id():
    machine = _streams.ExecStream("/v1/sessions/key:k", {"idempotency_key": "a"}, 60)
    assert [e.kind for e in machine.feed(b'{"event":"started","exec_id":"exe_1"}\n' * 2)] == ["started"]
    with pytest.raises(lodge.GoneError, match="exe_1 .* exe_2"):
        machine.feed(b'{"event":"started","exec_id":"exe_2"}\n')
    with pytest.raises(lodge.GoneError):
        machine.failed(lodge.GoneError("the session was replaced"))


def test_a_malformed_stream_is_an_error():
    for text in (b"<html>\n", b"[]\n", b"7\n"):
        with pytest.raises(lodge.TransportError):
            _streams.ExecStream("/v1/sessions/s", {}, 60).feed(text)
        with pytest.raises(lodge.TransportError):
            _streams.ServerEvents("/v1/events", 60).feed(b"data: " + text + b"\n")


def test_output_before_the_retained_window_is_told(way, session, do):
    x = do(session.start("seq 1 400000"))
    whole = do(x.wait(180))
    assert whole.truncated and whole.limits == ["LIMIT_OUTPUT"] and whole.stdout.endswith(b"\n400000\n")
    with pytest.raises(lodge.OutputGoneError) as e:
        do(x.output())
    at = e.value.details["stdout_offset"]
    rest = b"".join(event.data for event in do(x.stream(at)))
    assert rest.endswith(b"\n400000\n") and len(rest) == 1 << 20
    assert rest == whole.stdout
    events = do(x.stream())
    assert [(e.kind, e.stream, e.offset, e.bytes) for e in events[:1]] == [("gap", "stdout", 0, at)]
    assert b"".join(e.data for e in events) == rest and events[-1].result.truncated


def test_an_exec_is_not_run_twice(way, service, session, do):
    """The response is lost; the idempotency key returns the same command."""
    with through(way, service, 20) as (w, proxy):
        threading.Timer(0.6, lambda: setattr(proxy, "limit", 0)).start()
        r = w.do(w.client.session(session.id).exec("echo x >> once; echo done"))
        assert r.stdout == b"done\n" and proxy.cut
        assert do(session.files.read("once")) == b"x\n"


def test_requests_without_an_idempotency_key_are_not_repeated(way, service, session, do):
    with through(way, service, 20) as (w, proxy):
        with pytest.raises(lodge.TransportError) as e:
            w.do(w.client.session(session.id).files.write("f", b"x", append=True))
        assert e.value.sent and proxy.cut == 1
    assert wait_for(lambda: do(session.files.read("f")) == b"x")


def test_hibernate_and_delete_are_not_repeated(way, service, do):
    """The key may name another session by then."""
    key = uuid.uuid4().hex
    do(way.client.enter(key))
    for ask in (lambda s: s.hibernate(), lambda s: s.delete()):
        with through(way, service, 20) as (w, proxy):
            with pytest.raises(lodge.TransportError) as e:
                w.do(ask(w.client.session("key:" + key)))
            assert e.value.sent and proxy.cut == proxy.connections == 1


def test_enter_is_not_repeated_twice(way, service, do):
    name = uuid.uuid4().hex
    with through(way, service, 20) as (w, proxy):
        threading.Timer(0.6, lambda: setattr(proxy, "limit", 0)).start()
        s = w.do(w.client.enter(user=name, metadata={"n": name}))
        assert proxy.cut
    assert [x["id"] for x in do(way.client.sessions(metadata={"n": name}))] == [s.id]
    do(way.client.session(s.id).delete())


def test_a_download_survives_cut_connections(way, service, session, do, tmp_path):
    do(session.exec("seq 1 60000 > f"))
    with through(way, service, 60000) as (w, proxy):
        assert w.do(w.client.session(session.id).files.download("f", tmp_path / "f")) == len(EXPECTED)
        assert (tmp_path / "f").read_bytes() == EXPECTED and proxy.cut > 3


def test_an_aborted_upload_leaves_nothing(way, service, session, do):
    do(session.files.write("f", b"old"))
    if way.kind == "sync":
        with pytest.raises(KeyError):
            with session.files.open("f", "wb") as f:
                f.write(b"new" * 100000)
                raise KeyError
    else:
        async def use():
            async with session.files.open("f", "wb") as f:
                await f.write(b"new" * 100000)
                raise KeyError
        with pytest.raises(KeyError):
            do(use())
    assert do(session.files.read("f")) == b"old"
    assert wait_for(lambda: [e["name"] for e in do(session.files.list())] == ["f"])


def test_events_continue_after_a_cut(way, service, session, do):
    with through(way, service, 2000) as (w, proxy):
        follow = w.steps(w.client.follow_events(session=session.id, since=0))
        seen = []
        for _ in range(6):
            do(session.hibernate())
            do(session.resume())
        last = do(way.client.events(session=session.id))[-1]["id"]
        while not seen or seen[-1] < last:
            seen.append(next(follow)["id"])
        assert seen == [e["id"] for e in do(way.client.events(session=session.id))] and proxy.cut
        follow.close()


def test_a_service_that_is_not_running(way, tmp_path):
    """On the first contact the error comes soon, even for streams, which otherwise retry for long."""
    w = Way(way.kind, f"unix:{tmp_path}/none.sock")
    for ask in (lambda: w.do(w.client.health()), lambda: next(w.steps(w.client.session("s").stream("true")))):
        with pytest.raises(lodge.TransportError, match="is it running") as e:
            ask()
        assert not e.value.sent and e.value.retryable and e.value.patience == _retry.FIRST_CONTACT
    w.close()


def test_calls_are_retried_while_the_service_restarts(way, service, session, do):
    service.stop(9)
    later = threading.Timer(0.4, service.start)
    later.start()
    assert do(session.exec("echo back")).stdout == b"back\n"
    later.join()
