/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to messages and back, over a socket pair. */
#include "http/ws_server.h"

#include <errno.h>
#include <sys/socket.h>

#include "tap.h"

enum { MAX = 1 << 20, BIG = MAX + 64, PING_MS = 20000, SILENCE_MS = 60000 };

static struct conn_io io;
static struct ws *w;
static int peer;
static struct err err;
static const void *data;
static size_t len;
static unsigned char buf[BIG];

static bool open_early(const void *early, size_t early_len)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	peer = fds[1];
	return conn_io_init(&io, fds[0], NULL) == 0 &&
	       ws_new(&io, early, early_len, MAX, &w, &err) == 0;
}

static bool open_pair(void)
{
	return open_early(NULL, 0);
}

static void close_pair(void)
{
	ws_free(w);
	conn_io_fini(&io);
	w = NULL;
	close(peer);
}

/* Writes a client's frame to `to`; returns its length. */
static size_t make(unsigned char *to, unsigned first, const char *bytes, size_t n)
{
	static const unsigned char mask[4] = { 1, 2, 3, 0xff };
	size_t at = 0;

	to[at++] = (unsigned char)first;
	if (n < 126) {
		to[at++] = (unsigned char)(0x80 | n);
	} else if (n < 1 << 16) {
		to[at++] = 0x80 | 126;
		to[at++] = (unsigned char)(n >> 8);
		to[at++] = (unsigned char)n;
	} else {
		to[at++] = 0x80 | 127;
		for (int shift = 56; shift >= 0; shift -= 8)
			to[at++] = (unsigned char)((uint64_t)n >> shift);
	}
	memcpy(to + at, mask, 4);
	at += 4;
	for (size_t i = 0; i < n; i++)
		to[at + i] = (unsigned char)((unsigned char)bytes[i] ^ mask[i % 4]);
	return at + n;
}

static bool put(unsigned first, const char *bytes, size_t n)
{
	unsigned char frame[512];
	size_t size = make(frame, first, bytes, n);

	return send(peer, frame, size, 0) == (ssize_t)size;
}

static bool puts_raw(const char *bytes, size_t n)
{
	return send(peer, bytes, n, 0) == (ssize_t)n;
}

static enum ws_event get(void)
{
	return ws_read(w, &data, &len);
}

static bool is(const char *text)
{
	return len == strlen(text) && memcmp(data, text, len) == 0;
}

/* Whether the peer receives exactly these bytes. */
static bool said(const char *bytes, size_t n)
{
	char got[256];
	ssize_t r = ws_flush(w) ? -1 : recv(peer, got, sizeof(got), MSG_DONTWAIT);

	return r == (ssize_t)n && memcmp(got, bytes, n) == 0;
}

/* Whether that is a close with this code. */
static bool closes_with(unsigned code)
{
	unsigned char got[256];
	ssize_t n = ws_flush(w) ? -1 : recv(peer, got, sizeof(got), MSG_DONTWAIT);

	return n >= 4 && got[0] == 0x88 && got[1] == n - 2 && got[2] == code >> 8 &&
	       got[3] == (code & 0xff);
}

/* ---- received frames ----------------------------------------------------------------------- */

static void messages_are_complete(void)
{
	CHECK(open_pair());
	CHECK(get() == WS_NOTHING);
	CHECK(put(0x81, "hello", 5) && put(0x82, "\0\xff", 2) && put(0x82, "", 0));
	CHECK(get() == WS_TEXT && is("hello"));
	CHECK(get() == WS_BINARY && len == 2 && !memcmp(data, "\0\xff", 2));
	CHECK(get() == WS_BINARY && len == 0);
	CHECK(get() == WS_NOTHING);
	close_pair();
}

static void fragmented_messages_may_contain_pings(void)
{
	CHECK(open_pair());
	CHECK(put(0x01, "one ", 4) && put(0x89, "ping", 4) && put(0x00, "", 0));
	CHECK(get() == WS_NOTHING);
	CHECK(said("\x8a\x04ping", 6));
	CHECK(put(0x8a, "so", 2)); /* an unsolicited pong */
	CHECK(put(0x80, "two", 3) && put(0x82, "next", 4));
	CHECK(get() == WS_TEXT && is("one two"));
	CHECK(get() == WS_BINARY && is("next"));
	close_pair();
}

static void bytes_may_arrive_one_by_one_and_early(void)
{
	unsigned char frames[64];
	size_t n = make(frames, 0x82, "early", 5);

	n += make(frames + n, 0x82, "late", 4);
	CHECK(open_early(frames, n - 3)); /* the second one is incomplete */
	CHECK(get() == WS_BINARY && is("early"));
	for (size_t i = n - 3; i < n; i++) {
		CHECK(get() == WS_NOTHING);
		CHECK(puts_raw((char *)frames + i, 1));
	}
	CHECK(get() == WS_BINARY && is("late"));
	close(peer);
	CHECK(get() == WS_GONE);
	peer = -1;
	close_pair();
}

static bool get_big(size_t size)
{
	static char bytes[BIG];
	size_t n, at = 0;
	enum ws_event event = WS_NOTHING;

	memset(bytes, 'x', sizeof(bytes));
	n = make(buf, 0x82, bytes, size);
	while (at < n && event == WS_NOTHING) {
		ssize_t r = send(peer, buf + at, n - at, MSG_DONTWAIT);

		at += r > 0 ? (size_t)r : 0;
		event = get();
	}
	return event == WS_BINARY && len == size && !memcmp(data, bytes, size);
}

static void messages_of_any_length_up_to_the_limit(void)
{
	static const size_t sizes[] = { 1, 125, 126, 65535, 65536, MAX };

	CHECK(open_pair());
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK(get_big(sizes[i]));
	CHECK(!get_big(MAX + 1) && get() == WS_CLOSED && closes_with(1009));
	close_pair();
	CHECK(open_pair());
	CHECK(puts_raw("\x02\xff\0\0\0\0\0\x10\0\0",
		       10)); /* the maximum length, and not the last fragment */
	for (size_t at = 0; at < MAX + 4; at += 1024) /* the mask, then zeros */
		CHECK(puts_raw((char[1024]){ 0 }, MAX + 4 - at < 1024 ? MAX + 4 - at : 1024) &&
		      get() == WS_NOTHING);
	CHECK(put(0x80, "x", 1) && get() == WS_CLOSED && closes_with(1009));
	close_pair();
}

static void protocol_errors_are_refused(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		unsigned code;
	} wrong[] = {
		{ "\x82\x01x", 3, 1002 }, /* no mask */
		{ "\xc2\x81\0\0\0\0x", 7, 1002 }, /* a bit of an extension */
		{ "\x83\x81\0\0\0\0x", 7, 1002 }, /* unknown opcode */
		{ "\x8b\x81\0\0\0\0x", 7, 1002 },
		{ "\x80\x81\0\0\0\0x", 7, 1002 }, /* continues no message */
		{ "\x02\x81\0\0\0\0x\x82\x81\0\0\0\0x", 14, 1002 }, /* starts within another */
		{ "\x09\x81\0\0\0\0x", 7, 1002 }, /* a fragmented ping */
		{ "\x89\xfe\0\x7e\0\0\0\0", 8, 1002 }, /* a long one */
		{ "\x82\xfe\0\x01\0\0\0\0x", 9, 1002 }, /* a length in too many bytes */
		{ "\x82\xff\x80\0\0\0\0\0\0\1\0\0\0\0x", 15, 1002 },
		{ "\x82\xff\0\0\1\0\0\0\0\0\0\0\0\0x", 15, 1009 },
		{ "\x81\x81\0\0\0\0\xff", 7, 1007 },
		{ "\x01\x81\0\0\0\0\xc3\x80\x80\0\0\0\0", 13, 1007 }, /* half a character */
		{ "\x88\x81\0\0\0\0x", 7, 1002 }, /* half a code */
		{ "\x88\x82\0\0\0\0\x03\xed", 8, 1002 }, /* 1005 is never sent */
		{ "\x88\x82\0\0\0\0\0\1", 8, 1002 },
		{ "\x88\x83\0\0\0\0\x03\xe8\xff", 9, 1007 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(open_pair());
		CHECK(puts_raw(wrong[i].bytes, wrong[i].len));
		CHECK(get() == WS_CLOSED);
		CHECK(closes_with(wrong[i].code));
		/* later frames are ignored */
		CHECK(put(0x82, "x", 1) && get() == WS_CLOSED && ws_flush(w) == 0);
		close_pair();
	}
}

/* ---- sent frames --------------------------------------------------------------------------- */

static void frames_are_sent_completely_and_in_order(void)
{
	CHECK(open_pair());
	ws_send(w, WS_TEXT, "hi", 2);
	CHECK(said("\x81\x02hi", 4));
	ws_send(w, WS_BINARY, "", 0);
	CHECK(said("\x82\x00", 2));
	ws_send(w, WS_BINARY, "last", 4);
	ws_close(w, WS_GOING_AWAY, "bye");
	ws_close(w, WS_NORMAL, "not this");
	CHECK(said("\x82\x04last\x88\x05\x03\xe9"
		   "bye",
		   13));
	ws_send(w, WS_BINARY, "x", 1);
	CHECK(ws_flush(w) == 0 && recv(peer, buf, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close_pair();
}

static void a_reason_is_truncated_between_characters(void)
{
	char reason[200];
	unsigned char got[256];
	ssize_t n;

	CHECK(open_pair());
	memset(reason, 'a', sizeof(reason));
	memcpy(reason + 122, "\xc3\xa4", 3);
	ws_close(w, WS_POLICY, reason);
	CHECK(ws_flush(w) == 0);
	n = recv(peer, got, sizeof(got), MSG_DONTWAIT);
	CHECK(n == 2 + 2 + 122 && got[1] == 124 && got[n - 1] == 'a');
	close_pair();
}

static void a_close_is_answered_with_its_code(void)
{
	CHECK(open_pair());
	CHECK(put(0x88, "\x0f\xa0why", 5) && get() == WS_CLOSED);
	CHECK(said("\x88\x02\x0f\xa0", 4));
	close_pair();
	CHECK(open_pair());
	CHECK(put(0x88, "", 0) && get() == WS_CLOSED);
	CHECK(said("\x88\x00", 2));
	close_pair();
}

static void a_stalled_reader_gets_the_rest_later(void)
{
	static char big[4 << 20];
	size_t got = 0;
	ssize_t n;
	int r;

	CHECK(open_pair());
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 % 251);
	ws_send(w, WS_BINARY, big, sizeof(big));
	CHECK(ws_flush(w) == 1);
	CHECK(put(0x89, "now", 3) && get() == WS_NOTHING);
	CHECK(ws_flush(w) == 1); /* the reply waits for the frame in progress */
	do {
		r = ws_flush(w);
		n = recv(peer, buf, 65536, MSG_DONTWAIT);
		for (ssize_t i = 0; i < n; i++, got++)
			if (got >= 10 && got < sizeof(big) + 10)
				CHECK(buf[i] == (unsigned char)big[got - 10]);
	} while (r > 0 || n > 0);
	CHECK(r == 0 && got == sizeof(big) + 10 + 5);
	close_pair();
}

static void many_pings_get_one_answer(void)
{
	CHECK(open_pair());
	for (char c = 'a'; c <= 'z'; c++)
		CHECK(put(0x89, &c, 1));
	CHECK(get() == WS_NOTHING);
	CHECK(said("\x8a\x01z", 3));
	close_pair();
}

static void a_closed_peer_is_noticed(void)
{
	CHECK(open_pair());
	close(peer);
	ws_send(w, WS_BINARY, "x", 1);
	CHECK(ws_flush(w) == -1);
	CHECK(ws_end(w));
	peer = -1;
	close_pair();
}

static void the_end_waits_for_the_peer(void)
{
	CHECK(open_pair());
	ws_close(w, WS_NORMAL, "");
	CHECK(put(0x82, "unread", 6));
	CHECK(!ws_end(w) && !ws_is_blocked(w));
	CHECK(recv(peer, buf, sizeof(buf), 0) == 4 && recv(peer, buf, 1, 0) == 0);
	CHECK(!ws_end(w));
	shutdown(peer, SHUT_WR);
	CHECK(ws_end(w));
	close_pair();
	CHECK(open_pair());
	ws_close(w, WS_NORMAL, "");
	shutdown(peer, SHUT_WR);
	CHECK(ws_end(w)); /* the peer has announced its end */
	CHECK(recv(peer, buf, sizeof(buf), 0) == 4);
	close_pair();
}

/* ---- timeouts ------------------------------------------------------------------------------ */

static void a_silent_peer_is_pinged_and_then_disconnected(void)
{
	CHECK(open_pair());
	CHECK(ws_keep(w, 1000, true) == PING_MS);
	CHECK(ws_flush(w) == 0 && recv(peer, buf, 1, MSG_DONTWAIT) < 0);
	CHECK(ws_keep(w, 1000 + PING_MS, true) == PING_MS);
	CHECK(said("\x89\x00", 2));
	CHECK(put(0x8a, "", 0) && get() == WS_NOTHING); /* the peer responds */
	CHECK(ws_keep(w, 1000 + 2 * PING_MS, true) == PING_MS && said("\x89\x00", 2));
	CHECK(ws_keep(w, 1000 + 2 * PING_MS + SILENCE_MS - 1, true) == 1);
	CHECK(ws_keep(w, 1000 + 2 * PING_MS + SILENCE_MS, true) == -1);
	close_pair();
}

static void unread_input_does_not_count_as_silence(void)
{
	CHECK(open_pair());
	CHECK(ws_keep(w, 1000, true) > 0);
	CHECK(ws_keep(w, 1000 + 2 * SILENCE_MS, false) > 0);
	CHECK(ws_keep(w, 1000 + 3 * SILENCE_MS - 1, true) > 0);
	CHECK(ws_keep(w, 1000 + 3 * SILENCE_MS, true) == -1);
	close_pair();
}

static void a_slow_reader_is_alive(void)
{
	static char big[4 << 20];

	CHECK(open_pair());
	CHECK(ws_keep(w, 1000, true) > 0);
	ws_send(w, WS_BINARY, big, sizeof(big));
	CHECK(ws_flush(w) == 1);
	CHECK(ws_keep(w, 1000 + SILENCE_MS - 1, true) > 0);
	CHECK(recv(peer, buf, sizeof(buf), 0) > 0 && ws_flush(w) == 1);
	CHECK(ws_keep(w, 1000 + SILENCE_MS, true) > 0);
	CHECK(ws_keep(w, 1000 + 2 * SILENCE_MS, true) == -1); /* it stopped reading */
	close_pair();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(messages_are_complete);
	RUN(fragmented_messages_may_contain_pings);
	RUN(bytes_may_arrive_one_by_one_and_early);
	RUN(messages_of_any_length_up_to_the_limit);
	RUN(protocol_errors_are_refused);
	RUN(frames_are_sent_completely_and_in_order);
	RUN(a_reason_is_truncated_between_characters);
	RUN(a_close_is_answered_with_its_code);
	RUN(a_stalled_reader_gets_the_rest_later);
	RUN(many_pings_get_one_answer);
	RUN(a_closed_peer_is_noticed);
	RUN(the_end_waits_for_the_peer);
	RUN(a_silent_peer_is_pinged_and_then_disconnected);
	RUN(unread_input_does_not_count_as_silence);
	RUN(a_slow_reader_is_alive);
	return tap_done();
}
