# SPDX-License-Identifier: Apache-2.0
"""Terminals over WebSockets: input and output, reconnecting, limits."""
import contextlib
import os
import shutil
import signal
import threading
import urllib.parse

import pytest

from client import KEY, Client, Lodged, TlsClient, certificate, wait_for
from machine import memory_of
from ws import BINARY, CLOSE, PING, SECONDS, TEXT, Refused, Terminal, frame

slow = pytest.mark.skipif(not os.environ.get("LODGE_SLOW"), reason="takes long: LODGE_SLOW=1")

# Passes bytes unchanged in both directions, and prints a mark once that holds.
RAW = "stty raw -echo; printf 'ready\\n'; "
NUMBERS = "i=0; while [ $i -lt 250 ]; do echo line $i; i=$((i+1)); sleep 0.005; done"


@pytest.fixture
def session(client):
    return client.enter(key="tty")


def of(command, **more):
    return urllib.parse.urlencode(dict(more, command=command))


def opened(client, session, query="", **kw):
    return Terminal(client, session, query, **kw)


def refused(client, session, query="", **kw):
    with pytest.raises(Refused) as e:
        opened(client, session, query, **kw).close()
    return e.value


def record(client, session, exec_id):
    answer = client.get(f"/v1/sessions/{session}/execs/{exec_id}")
    assert answer.status == 200, answer
    return answer.json["exec"]


def numbers():
    return b"".join(b"line %d\r\n" % i for i in range(250))


# ---- input and output -------------------------------------------------------------------------


def test_the_default_is_a_login_shell(client, session):
    with opened(client, session) as t:
        assert t.start == 0
        t.type("shopt -q login_shell && echo lo''gin; tty; echo $TERM\n")
        t.until("login\r\n/dev/pts/")
        t.until("xterm-256color\r\n")
        t.type("exit 3\n")
        assert t.run() == 1000
        assert t.exit == {"exit_code": 3, "signal": None}


def test_size_and_resize(client, session):
    with opened(client, session, "cols=101&rows=33") as t:
        t.type("stty size\n")
        t.until("33 101")
        t.resize(120, 40)
        t.type("stty size\n")
        t.until("40 120")
        t.type("exit\n")
        t.run()


def test_directory_and_user_can_be_chosen(client, session):
    with opened(client, session, of("pwd; id -un", cwd="/usr/lib", user="user")) as t:
        assert t.run() == 1000
        assert t.output == b"/usr/lib\r\nuser\r\n"


def test_an_unknown_user_is_refused(client, session):
    answer = refused(client, session, "user=nosuch-user")
    assert answer.status == 400 and b"user nosuch-user" in answer.body, answer


def test_ctrl_c_interrupts_and_ctrl_d_ends(client, session):
    with opened(client, session) as t:
        t.type("sh -c 'echo rea\"\"dy; exec sleep 1000'\n")
        t.until("ready\r\n")
        t.type("\x03")
        t.until("^C")
        t.type("echo co''de:$?\n")
        t.until("code:130")
        for _ in range(SECONDS):  # a ctrl-D typed before the prompt appears may be lost
            if t.closed:
                break
            t.type("\x04")
            while not t.closed and t.ready(1):
                t.step()
        assert t.closed and t.closed[0] == 1000
        assert t.exit["signal"] is None


def test_death_by_a_signal_is_reported(client, session):
    with opened(client, session, of("kill -9 $$")) as t:
        assert t.run() == 1000
        assert t.exit == {"exit_code": None, "signal": 9}


def test_frames_sent_with_the_request_are_input(client, session):
    with opened(client, session, of("read x; echo got:$x"), early=frame(BINARY, b"early\n")) as t:
        t.until("got:early")
        assert t.run() == 1000


def test_a_megabyte_goes_in_and_out_unchanged(client, session):
    data = bytes(i * i % 251 for i in range(1 << 20))
    with opened(client, session, of(RAW + f"head -c {len(data)}")) as t:
        t.until("ready\n")
        sender = threading.Thread(target=t.type, args=(data,))
        sender.start()
        assert t.run() == 1000
        sender.join()
        same = t.output.removeprefix(b"ready\n") == data  # pytest would take minutes to diff it
        assert same


def test_pings_and_fragmented_messages(client, session):
    with opened(client, session, of("stty -echo; echo ready; read x; echo got:$x")) as t:
        t.until("ready")
        t.send(BINARY, b"one ", fin=False)
        t.send(PING, b"in between")
        t.send(0, b"two", fin=False)
        t.send(0, b"\n")
        t.until("got:one two")
        assert t.run() == 1000
        assert t.pongs == 1


def test_input_is_delivered_after_an_immediate_disconnect(client, session):
    t = opened(client, session, of("stty -echo; read x; echo got:$x; sleep 1000"))
    t.type("last words\n")
    t.close()
    with opened(client, session, f"exec={t.exec}&offset=0") as again:
        again.until("got:last words")


# ---- reconnecting -----------------------------------------------------------------------------


def test_the_command_keeps_running_and_can_be_reconnected(client, session):
    with opened(client, session) as t:
        t.type("x=kept; echo rea''dy\n")
        t.until("ready")
    assert record(client, session, t.exec)["state"] == "running"
    with opened(client, session, f"exec={t.exec}") as again:
        assert again.exec == t.exec and again.start == 0
        again.until("ready")  # replayed output
        again.type("echo it is $x\n")
        again.until("it is kept")
        again.send(CLOSE, b"\x03\xe8")
        assert again.run() == 1000
    assert record(client, session, t.exec)["state"] == "running"
    client.delete(f"/v1/sessions/{session}/execs/{t.exec}")


def test_a_reconnect_replays_the_last_lines(client, session):
    t = opened(client, session, of("seq 1 40000; echo done; read x"))
    t.until("done")
    t.close()
    with opened(client, session, f"exec={t.exec}") as again:
        again.until("done")
        whole = b"".join(b"%d\r\n" % i for i in range(1, 40001)) + b"done\r\n"
        assert 60 << 10 < len(again.output) <= 64 << 10
        assert again.output == whole[again.start:], "the output must begin at `start`"
        assert whole[again.start - 1:again.start] == b"\n", "it must begin with a line"
        again.type("\n")
        assert again.run() == 1000


def test_an_offset_continues_exactly(client, session):
    t = opened(client, session, of(NUMBERS))
    seen, exec_id = b"", t.exec
    for n in (1, 50, 120, 200):
        t.until(f"line {n}\r\n")
        t.close()
        seen += t.output
        t = opened(client, session, f"exec={exec_id}&offset={len(seen)}")
        assert t.start == len(seen)
    assert t.run() == 1000
    assert seen + t.output == numbers()
    t.close()


def test_two_clients_see_the_same_output(client, session):
    with opened(client, session, of(RAW + "read x; head -c 3000000 /dev/zero | tr '\\0' x; read x; echo end")) as a:
        a.until("ready\n")
        with opened(client, session, f"exec={a.exec}&offset=0") as b:  # before there is more output than is kept
            a.type("\n")
            readers = [threading.Thread(target=t.run) for t in (a, b)]
            for r in readers:
                r.start()
            wait_for(lambda: len(a.output) == len(b.output) >= 3000006)
            b.type("\n")
            for r in readers:
                r.join()
            assert a.output == b.output == b"ready\n" + b"x" * 3000000 + b"end\n"
            assert a.exit == b.exit == {"exit_code": 0, "signal": None}


def test_an_ended_command_is_replayed_with_its_result(client, session):
    with opened(client, session, of("echo over; exit 7")) as t:
        t.run()
    for query, output in (("", b"over\r\n"), ("&offset=2", b"er\r\n"), ("&offset=6", b"")):
        with opened(client, session, f"exec={t.exec}{query}") as again:
            assert again.run() == 1000
            assert again.output == output
            assert again.exit == {"exit_code": 7, "signal": None}


def test_a_terminal_resumes_a_hibernated_session(client):
    session = client.enter(key="tty-sleeps")
    assert client.post(f"/v1/sessions/{session}/hibernate").status == 200
    assert refused(client, session, "resume=0").status == 409
    with opened(client, session, of("echo awake")) as t:
        assert t.headers["lodge-outcome"] == "resumed"
        t.until("awake")
        t.run()


def test_destroying_the_session_ends_its_terminals(client):
    session = client.enter(key="tty-ends")
    with opened(client, session) as t:
        assert client.delete(f"/v1/sessions/{session}").status == 200
        assert t.run() == 1000
        assert t.exit == {"exit_code": None, "signal": 9}


# ---- authorization ----------------------------------------------------------------------------


def test_a_terminal_needs_a_key(client, session):
    assert refused(client, session, key=False).status == 401
    assert refused(Client(client.host, client.port, "lk_" + 64 * "0"), session).status == 401
    wrong = refused(client, session, key=False, headers={"Sec-WebSocket-Protocol": "lodge.tty, lodge.key.nonsense"})
    assert wrong.status == 401


def test_a_browser_sends_its_key_as_a_subprotocol(client, session):
    offer = {"Sec-WebSocket-Protocol": f"lodge.tty, lodge.key.{KEY}"}
    with opened(client, session, of("echo hello"), key=False, headers=offer) as t:
        assert t.headers["sec-websocket-protocol"] == "lodge.tty"
        t.until("hello")
    assert refused(client, session, headers=offer).status == 400, "two keys must be refused"
    # other routes do not accept a key in this header
    assert Client(client.host, client.port, None).get(f"/v1/sessions/{session}", headers=offer).status == 401


def test_other_origins_are_refused(client, session):
    far = refused(client, session, headers={"Origin": "http://elsewhere.example"})
    assert far.status == 403 and far.code == "DENIED"
    assert refused(client, session, headers={"Origin": "null"}).status == 403
    own = {"Origin": f"http://{client.host}:{client.port}"}
    with opened(client, session, of("echo hello"), headers=own) as t:
        t.until("hello")


def test_terminals_of_other_tenants_are_not_found(client, session):
    made = client.post("/v1/keys", {"tenant": "tty-other", "scope": "tenant"})
    assert made.status == 201, made
    other = Client(client.host, client.port, made.json["secret"])
    with opened(client, session, of("sleep 1000")) as t:
        assert refused(other, session).status == 404
        assert refused(other, session, f"exec={t.exec}").status == 404
        theirs = other.enter(key="theirs")
        assert refused(other, theirs, f"exec={t.exec}").status == 404
        mine = client.enter(key="tty-mine")
        assert refused(client, mine, f"exec={t.exec}").status == 404, "an exec of another session"
        client.delete(f"/v1/sessions/{session}/execs/{t.exec}")
    other.delete(f"/v1/sessions/{theirs}")


# ---- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{"Upgrade": None}, {"Connection": "keep-alive"}, {"Upgrade": "h2c"},
                                     {"Sec-WebSocket-Version": None}, {"Sec-WebSocket-Version": "8"}])
def test_a_request_without_upgrade_gets_426(client, session, headers):
    answer = refused(client, session, headers=headers)
    assert answer.status == 426 and answer.code == "UPGRADE_REQUIRED"
    assert answer.headers["upgrade"] == "websocket"
    assert answer.headers["sec-websocket-version"] == "13"


@pytest.mark.parametrize("key", [None, "", "short", "AAAAAAAAAAAAAAAAAAAAAA==AAAA", "!" * 24])
def test_the_handshake_key_must_have_sixteen_bytes(client, session, key):
    assert refused(client, session, headers={"Sec-WebSocket-Key": key}).status == 400


@pytest.mark.parametrize("query, status", [
    ("exec=exe_nothing", 404), ("offset=3", 400), ("cols=0", 400), ("rows=x", 400), ("exec=exe_a&command=ls", 400),
    (of("true", cwd="/nowhere"), 400)])
def test_invalid_queries_are_refused(client, session, query, status):
    assert refused(client, session, query).status == status


def test_an_offset_without_output_is_refused(client, session):
    with opened(client, session, of("echo over")) as t:
        t.run()
    gone = refused(client, session, f"exec={t.exec}&offset=7")
    assert gone.status == 416 and gone.code == "OUTPUT_GONE"


BREACHES = [
    (frame(TEXT, b'{"resize":{"cols":80}}'), 1008),
    (frame(TEXT, b'{"resize":{"cols":80,"rows":0}}'), 1008),
    (frame(TEXT, b'{"resize":{"cols":80,"rows":24},"more":1}'), 1008),
    (frame(TEXT, b'{"size":{}}'), 1008),
    (frame(TEXT, b'resize'), 1008),
    (frame(TEXT, b""), 1008),
    (frame(TEXT, b'{"resize\xff":1}'), 1007),
    (frame(BINARY, b"x" * ((1 << 20) + 1)), 1009),
    (frame(BINARY, b"x" * (1 << 20), fin=False) + frame(0, b"x"), 1009),
    (frame(BINARY, b"x", mask=False), 1002),
    (frame(BINARY, b"x", rsv=4), 1002),
    (frame(0, b"x"), 1002),
    (frame(3, b"x"), 1002),
    (frame(PING, b"x" * 126), 1002),
    (frame(CLOSE, b"x"), 1002),
    (frame(CLOSE, b"\x03\xed"), 1002),
    (frame(CLOSE, b""), 1005),
    (frame(CLOSE, b"\x0f\xa0bye"), 4000)]


@pytest.mark.parametrize("sent, code", BREACHES, ids=[f"{i}-{code}" for i, (_, code) in enumerate(BREACHES)])
def test_protocol_errors_close_the_socket_not_the_command(client, session, sent, code):
    with opened(client, session, of("stty raw -echo; cat >/dev/null")) as t:
        t.sock.sendall(sent)
        assert t.end() == code
        assert code != 1008 or t.closed[1], "the close must have a reason"
        assert t.sock.recv(1) == b"", "nothing may follow the close"
    assert record(client, session, t.exec)["state"] == "running"
    assert client.delete(f"/v1/sessions/{session}/execs/{t.exec}").status == 200


# ---- stalled readers and writers --------------------------------------------------------------


def memory(lodged):
    return memory_of(lodged.process.pid)


def settled(client, session, exec_id):
    """The number of bytes written, once it no longer grows."""
    last = -1

    def same():
        nonlocal last
        before, last = last, record(client, session, exec_id)["stdout_bytes"]
        return before == last
    assert wait_for(same, pause=0.5)
    return last


def test_a_stalled_reader_blocks_the_command(lodged, client, session):
    """Of 100 MB of output only as much is written as the buffers hold."""
    total = 100 << 20
    with opened(client, session, of(RAW + f"head -c {total} /dev/zero; sleep 1000"), small=True) as t:
        before = memory(lodged)
        held = settled(client, session, t.exec)
        assert held < 32 << 20
        assert memory(lodged) - before < 32 << 20
        while len(t.output) < 2 << 20:
            t.step()
        assert wait_for(lambda: record(client, session, t.exec)["stdout_bytes"] > held), "the command must continue with its reader"
    # without a reader the command does not wait
    assert wait_for(lambda: record(client, session, t.exec)["stdout_bytes"] == total + 6)
    gone = refused(client, session, f"exec={t.exec}&offset=100")
    assert gone.status == 416 and gone.code == "OUTPUT_GONE"
    client.delete(f"/v1/sessions/{session}/execs/{t.exec}")


@slow
def test_a_slow_reader_gets_every_byte_of_100_mb(lodged, client, session):
    total = 100 << 20
    with opened(client, session, of(RAW + f"head -c {total} /dev/zero"), small=True) as t:
        before = memory(lodged)
        count = 0
        while not t.exit:
            t.step()
            count += len(t.output)
            t.output.clear()
        assert count == total + 6
        assert memory(lodged) - before < 32 << 20


def test_a_stalled_reader_also_delays_the_other(client, session):
    with opened(client, session, of(RAW + "read x; head -c 30000000 /dev/zero"), small=True) as stuck:
        stuck.until("ready\n")
        with opened(client, session, f"exec={stuck.exec}&offset=0") as reader:
            stuck.type("\n")
            reading = threading.Thread(target=reader.run)
            reading.start()
            assert settled(client, session, stuck.exec) < 20 << 20
            stuck.close()
            reading.join()
            assert len(reader.output) == 30000006 and reader.exit["exit_code"] == 0


def test_unread_input_is_bounded_and_does_not_stop_the_output(lodged, client, session):
    with opened(client, session, of(RAW + "while sleep 0.05; do echo tick; done")) as t:
        t.until("ready")
        before = memory(lodged)
        t.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(64):
                t.send(BINARY, b"x" * (1 << 20))
        t.sock.settimeout(SECONDS)
        assert memory(lodged) - before < 32 << 20
        at = len(t.output)
        while t.output.count(b"tick", at) < 5:
            t.step()
    assert client.delete(f"/v1/sessions/{session}/execs/{t.exec}").status == 200


@slow
def test_a_silent_client_is_disconnected_after_a_minute(client, session):
    with opened(client, session, of("sleep 1000")) as t:
        t.sock.settimeout(100)
        seen = []
        while not seen or seen[-1] != CLOSE:
            seen.append(t.read_frame()[0])  # pings are not answered
        assert seen == [PING, PING, CLOSE]
    client.delete(f"/v1/sessions/{session}/execs/{t.exec}")


@slow
def test_a_client_that_answers_pings_stays_connected(client, session):
    with opened(client, session, of("sleep 75; echo still here")) as t:
        t.sock.settimeout(100)
        assert t.run() == 1000
        assert t.output == b"still here\r\n"


# ---- restarts of lodged -----------------------------------------------------------------------


def test_terminals_survive_restarts_without_losing_a_byte():
    """lodged is killed and stopped, and each time the reader continues where it was."""
    lodged = Lodged()
    try:
        client = lodged.client()
        session = client.enter(key="outlives")
        t = opened(client, session, of(NUMBERS + "; read x"))
        t.until("line 20\r\n")
        lodged.stop(signal.SIGKILL)
        with pytest.raises((EOFError, ConnectionError)):
            t.run()
        t.close()
        seen, exec_id = t.output, t.exec

        lodged.start()
        client = lodged.client()
        stuck = opened(client, session, of(RAW + "sleep 1000"))
        stuck.until("ready")
        stuck.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(64):
                stuck.send(BINARY, b"x" * (1 << 20))
        t = opened(client, session, f"exec={exec_id}&offset={len(seen)}")
        t.until("line 150\r\n")
        stopper = threading.Thread(target=lodged.stop)
        stopper.start()
        assert t.run() == 1001
        t.close()
        stuck.close()
        stopper.join()
        assert lodged.process.returncode == 0
        seen += t.output

        lodged.start()
        client = lodged.client()
        with opened(client, session, f"exec={exec_id}&offset={len(seen)}") as t:
            while len(seen) + len(t.output) < len(numbers()):  # it may have seen the last line before the stop
                t.step()
            assert seen + t.output == numbers()
            t.type("\n")
            assert t.run() == 1000
    finally:
        lodged.close()



# ---- TLS --------------------------------------------------------------------------------------


class Tls(Lodged):
    def client(self, key=KEY):
        return TlsClient(self.host, self.port, key, self.settings["tls_cert"])


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_terminals_work_over_tls(tmp_path):
    cert, key = certificate(tmp_path, "here")
    with contextlib.closing(Tls(tls_cert=cert, tls_key=key)) as lodged:
        client = lodged.client()
        answer = client.post("/v1/sessions", b'{"key": "tls"}', headers={"Content-Type": "application/json"})
        assert answer.status == 201, answer
        session = answer.json["session"]["id"]
        with opened(client, session, of("read x; echo got:$x; seq 1 5000"), early=frame(BINARY, b"early\n"),
                    wrap=lambda s: client.context.wrap_socket(s, server_hostname="localhost")) as t:
            assert t.run() == 1000
            assert t.output.endswith(b"got:early\r\n" + b"".join(b"%d\r\n" % i for i in range(1, 5001)))
            assert t.exit == {"exit_code": 0, "signal": None}
