# SPDX-License-Identifier: Apache-2.0
"""Terminals over WebSockets: what is typed and seen, going away and coming back, limits."""
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

# Bytes as they are, both ways; and a mark when it is so.
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


# ---- what is typed and seen -------------------------------------------------------------------


def test_a_login_shell_shows_what_is_typed_and_what_comes_of_it(client, session):
    with opened(client, session) as t:
        assert t.start == 0
        t.type("shopt -q login_shell && echo lo''gin; tty; echo $TERM\n")
        t.until("login\r\n/dev/pts/")
        t.until("xterm-256color\r\n")
        t.type("exit 3\n")
        assert t.run() == 1000
        assert t.exit == {"exit_code": 3, "signal": None}


def test_it_has_the_size_it_was_asked_for_and_follows_the_window(client, session):
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


def test_a_user_that_is_not_there(client, session):
    answer = refused(client, session, "user=nobody-here")
    assert answer.status == 400 and b"user nobody-here" in answer.body, answer


def test_ctrl_c_interrupts_and_ctrl_d_ends(client, session):
    with opened(client, session) as t:
        t.type("sh -c 'echo rea\"\"dy; exec sleep 1000'\n")
        t.until("ready\r\n")
        t.type("\x03")
        t.until("^C")
        t.type("echo co''de:$?\n")
        t.until("code:130")
        for _ in range(SECONDS):  # typed before the next prompt is there it would be nobody's
            if t.closed:
                break
            t.type("\x04")
            while not t.closed and t.ready(1):
                t.step()
        assert t.closed and t.closed[0] == 1000
        assert t.exit["signal"] is None


def test_a_death_by_signal_is_told(client, session):
    with opened(client, session, of("kill -9 $$")) as t:
        assert t.run() == 1000
        assert t.exit == {"exit_code": None, "signal": 9}


def test_bytes_that_came_with_the_request_are_typed(client, session):
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
        same = t.output.removeprefix(b"ready\n") == data  # a diff of it takes minutes
        assert same


def test_a_ping_is_answered_and_a_message_may_come_in_pieces(client, session):
    with opened(client, session, of("stty -echo; echo ready; read x; echo got:$x")) as t:
        t.until("ready")
        t.send(BINARY, b"one ", fin=False)
        t.send(PING, b"in between")
        t.send(0, b"two", fin=False)
        t.send(0, b"\n")
        t.until("got:one two")
        assert t.run() == 1000
        assert t.pongs == 1


def test_input_is_delivered_though_its_sender_leaves_at_once(client, session):
    t = opened(client, session, of("stty -echo; read x; echo got:$x; sleep 1000"))
    t.type("last words\n")
    t.close()
    with opened(client, session, f"exec={t.exec}&offset=0") as again:
        again.until("got:last words")


# ---- going away and coming back ---------------------------------------------------------------


def test_the_command_goes_on_without_anybody_and_can_be_taken_up_again(client, session):
    with opened(client, session) as t:
        t.type("x=kept; echo rea''dy\n")
        t.until("ready")
    assert record(client, session, t.exec)["state"] == "running"
    with opened(client, session, f"exec={t.exec}") as again:
        assert again.exec == t.exec and again.start == 0
        again.until("ready")  # what was seen before
        again.type("echo it is $x\n")
        again.until("it is kept")
        again.send(CLOSE, b"\x03\xe8")
        assert again.run() == 1000
    assert record(client, session, t.exec)["state"] == "running"
    client.delete(f"/v1/sessions/{session}/execs/{t.exec}")


def test_who_comes_back_sees_the_last_lines_first(client, session):
    t = opened(client, session, of("seq 1 40000; echo done; read x"))
    t.until("done")
    t.close()
    with opened(client, session, f"exec={t.exec}") as again:
        again.until("done")
        whole = b"".join(b"%d\r\n" % i for i in range(1, 40001)) + b"done\r\n"
        assert 60 << 10 < len(again.output) <= 64 << 10
        assert again.output == whole[again.start:], "from where it says"
        assert whole[again.start - 1:again.start] == b"\n", "at the beginning of a line"
        again.type("\n")
        assert again.run() == 1000


def test_an_offset_goes_on_exactly_there(client, session):
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


def test_two_at_once_see_the_same(client, session):
    with opened(client, session, of(RAW + "head -c 3000000 /dev/zero | tr '\\0' x; read x; echo end")) as a:
        with opened(client, session, f"exec={a.exec}&offset=0") as b:
            readers = [threading.Thread(target=t.run) for t in (a, b)]
            for r in readers:
                r.start()
            wait_for(lambda: len(a.output) == len(b.output) >= 3000006)
            b.type("\n")
            for r in readers:
                r.join()
            assert a.output == b.output == b"ready\n" + b"x" * 3000000 + b"end\n"
            assert a.exit == b.exit == {"exit_code": 0, "signal": None}


def test_one_that_ended_is_shown_with_its_end(client, session):
    with opened(client, session, of("echo over; exit 7")) as t:
        t.run()
    for query, output in (("", b"over\r\n"), ("&offset=2", b"er\r\n"), ("&offset=6", b"")):
        with opened(client, session, f"exec={t.exec}{query}") as again:
            assert again.run() == 1000
            assert again.output == output
            assert again.exit == {"exit_code": 7, "signal": None}


def test_a_terminal_wakes_a_session_that_sleeps(client):
    session = client.enter(key="tty-sleeps")
    assert client.post(f"/v1/sessions/{session}/hibernate").status == 200
    assert refused(client, session, "resume=0").status == 409
    with opened(client, session, of("echo awake")) as t:
        assert t.headers["lodge-outcome"] == "resumed"
        t.until("awake")
        t.run()


def test_the_end_of_its_session_is_the_end_of_a_terminal(client):
    session = client.enter(key="tty-ends")
    with opened(client, session) as t:
        assert client.delete(f"/v1/sessions/{session}").status == 200
        assert t.run() == 1000
        assert t.exit == {"exit_code": None, "signal": 9}


# ---- who may ----------------------------------------------------------------------------------


def test_without_a_key_there_is_none(client, session):
    assert refused(client, session, key=False).status == 401
    assert refused(Client(client.host, client.port, "lk_" + 64 * "0"), session).status == 401
    wrong = refused(client, session, key=False, headers={"Sec-WebSocket-Protocol": "lodge.tty, lodge.key.nonsense"})
    assert wrong.status == 401


def test_a_browser_gives_its_key_as_a_protocol(client, session):
    offer = {"Sec-WebSocket-Protocol": f"lodge.tty, lodge.key.{KEY}"}
    with opened(client, session, of("echo hello"), key=False, headers=offer) as t:
        assert t.headers["sec-websocket-protocol"] == "lodge.tty"
        t.until("hello")
    assert refused(client, session, headers=offer).status == 400, "one key, not two"
    # it is a key of WebSockets only
    assert Client(client.host, client.port, None).get(f"/v1/sessions/{session}", headers=offer).status == 401


def test_another_page_may_not_open_one(client, session):
    far = refused(client, session, headers={"Origin": "http://elsewhere.example"})
    assert far.status == 403 and far.code == "DENIED"
    assert refused(client, session, headers={"Origin": "null"}).status == 403
    own = {"Origin": f"http://{client.host}:{client.port}"}
    with opened(client, session, of("echo hello"), headers=own) as t:
        t.until("hello")


def test_other_tenants_do_not_see_it(client, session):
    made = client.post("/v1/keys", {"tenant": "tty-other", "scope": "tenant"})
    assert made.status == 201, made
    other = Client(client.host, client.port, made.json["secret"])
    with opened(client, session, of("sleep 1000")) as t:
        assert refused(other, session).status == 404
        assert refused(other, session, f"exec={t.exec}").status == 404
        theirs = other.enter(key="theirs")
        assert refused(other, theirs, f"exec={t.exec}").status == 404
        mine = client.enter(key="tty-mine")
        assert refused(client, mine, f"exec={t.exec}").status == 404, "of another session"
        client.delete(f"/v1/sessions/{session}/execs/{t.exec}")
    other.delete(f"/v1/sessions/{theirs}")


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{"Upgrade": None}, {"Connection": "keep-alive"}, {"Upgrade": "h2c"},
                                     {"Sec-WebSocket-Version": None}, {"Sec-WebSocket-Version": "8"}])
def test_what_is_no_websocket_is_told_what_to_say(client, session, headers):
    answer = refused(client, session, headers=headers)
    assert answer.status == 426 and answer.code == "UPGRADE_REQUIRED"
    assert answer.headers["upgrade"] == "websocket"
    assert answer.headers["sec-websocket-version"] == "13"


@pytest.mark.parametrize("key", [None, "", "short", "AAAAAAAAAAAAAAAAAAAAAA==AAAA", "!" * 24])
def test_a_handshake_needs_sixteen_bytes(client, session, key):
    assert refused(client, session, headers={"Sec-WebSocket-Key": key}).status == 400


@pytest.mark.parametrize("query, status", [
    ("exec=exe_nothing", 404), ("offset=3", 400), ("cols=0", 400), ("rows=x", 400), ("exec=exe_a&command=ls", 400),
    (of("true", cwd="/nowhere"), 400)])
def test_what_makes_no_sense_is_refused(client, session, query, status):
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
def test_what_breaks_the_rules_ends_the_socket_not_the_command(client, session, sent, code):
    with opened(client, session, of("stty raw -echo; cat >/dev/null")) as t:
        t.sock.sendall(sent)
        assert t.end() == code
        assert code != 1008 or t.closed[1], "with a reason"
        assert t.sock.recv(1) == b"", "and then nothing"
    assert record(client, session, t.exec)["state"] == "running"
    assert client.delete(f"/v1/sessions/{session}/execs/{t.exec}").status == 200


# ---- readers and writers that stop ------------------------------------------------------------


def memory(lodged):
    return memory_of(lodged.process.pid)


def settled(client, session, exec_id):
    """How much it has written, when it does not go on."""
    last = -1

    def same():
        nonlocal last
        before, last = last, record(client, session, exec_id)["stdout_bytes"]
        return before == last
    assert wait_for(same, pause=0.5)
    return last


def test_a_reader_that_stops_holds_the_command_back(lodged, client, session):
    """100 MB are written; as much as lies in between is all there is of them."""
    total = 100 << 20
    with opened(client, session, of(RAW + f"head -c {total} /dev/zero; sleep 1000"), small=True) as t:
        before = memory(lodged)
        held = settled(client, session, t.exec)
        assert held < 32 << 20
        assert memory(lodged) - before < 32 << 20
        while len(t.output) < 2 << 20:
            t.step()
        assert wait_for(lambda: record(client, session, t.exec)["stdout_bytes"] > held), "goes on when he does"
    # nobody reads any more: it waits for nobody
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


def test_one_that_stops_holds_back_the_other_too_until_he_leaves(client, session):
    with opened(client, session, of(RAW + "head -c 30000000 /dev/zero"), small=True) as stuck:
        with opened(client, session, f"exec={stuck.exec}&offset=0") as reader:
            reading = threading.Thread(target=reader.run)
            reading.start()
            assert settled(client, session, stuck.exec) < 20 << 20
            stuck.close()
            reading.join()
            assert len(reader.output) == 30000006 and reader.exit["exit_code"] == 0


def test_input_nobody_reads_is_held_back_and_does_not_stop_the_output(lodged, client, session):
    with opened(client, session, of(RAW + "while sleep 0.05; do echo tick; done")) as t:
        t.until("ready")
        before = memory(lodged)
        t.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(64):
                t.send(BINARY, b"x" * (1 << 20))
        t.sock.settimeout(30)
        assert memory(lodged) - before < 32 << 20
        at = len(t.output)
        while t.output.count(b"tick", at) < 5:
            t.step()
    assert client.delete(f"/v1/sessions/{session}/execs/{t.exec}").status == 200


@slow
def test_a_silent_peer_is_let_go_after_a_minute(client, session):
    with opened(client, session, of("sleep 1000")) as t:
        t.sock.settimeout(100)
        seen = []
        while not seen or seen[-1] != CLOSE:
            seen.append(t.read_frame()[0])  # and pings stay without an answer
        assert seen == [PING, PING, CLOSE]
    client.delete(f"/v1/sessions/{session}/execs/{t.exec}")


@slow
def test_a_peer_that_answers_pings_stays(client, session):
    with opened(client, session, of("sleep 75; echo still here")) as t:
        t.sock.settimeout(100)
        assert t.run() == 1000
        assert t.output == b"still here\r\n"


# ---- the end of lodged ------------------------------------------------------------------------


def test_terminals_outlive_lodged_to_the_byte():
    """It is killed, it is stopped, and each time the reader goes on where he was."""
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
            t.until("line 249\r\n")
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
def test_all_of_it_works_over_tls(tmp_path):
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
