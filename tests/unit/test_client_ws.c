/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a WebSocket over a socket pair: the test writes the bytes of the peer. */
#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>

#include "base/base64.h"
#include "client/client.h"
#include "client/sha1.h"
#include "client_peer.h"
#include "tap.h"

static struct client *c;
static struct client_ws *w;
static int other = -1;
static struct err err;
static struct client_ws_message m;

/* ---- the server ------------------------------------------------------------------------------ */

static const char *wrong_accept; /* instead of the correct response */

static void answer_to(const char *asked, char to[BASE64_ENCODED(20) + 1])
{
	const char *key = strstr(asked, "Sec-WebSocket-Key: ");
	unsigned char sum[EVP_MAX_MD_SIZE] = { 0 };
	char text[128];
	int n = snprintf(text, sizeof(text), "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
			 key ? key + 19 : "");

	(void)EVP_Digest(text, (size_t)n, sum, NULL, EVP_sha1(), NULL);
	base64_encode(sum, 20, to);
	to[BASE64_ENCODED(20)] = '\0';
}

static void *accept_one(void *arg)
{
	char answer[512], key[BASE64_ENCODED(20) + 1];
	int n;

	(void)arg;
	other = accept(peer.fd, NULL, NULL);
	if (other < 0)
		return NULL;
	peer_receive(other);
	answer_to(peer.received, key);
	n = snprintf(answer, sizeof(answer),
		     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		     "Connection: Upgrade\r\nLodge-Exec: exe_1\r\nSec-WebSocket-Accept: %s\r\n\r\n"
		     "\x82\x02hi",
		     wrong_accept ? wrong_accept : key);
	peer_send(other, answer, (size_t)n);
	return NULL;
}

static bool begin(void)
{
	w = NULL;
	err = (struct err){ 0 };
	return peer_listen() && client_new(peer.url, NULL, &c, &err) == 0 &&
	       pthread_create(&peer.thread, NULL, accept_one, NULL) == 0 &&
	       client_ws_open(c, "/tty", &w, &err) == 0;
}

static void finish(void)
{
	client_ws_close(w);
	client_free(c);
	peer_end();
	close(other);
	other = -1;
}

static bool says(const void *bytes, size_t len)
{
	return send(other, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}
#define SAYS(text) says(text, sizeof(text) - 1)

/* The next message or error. */
static int next(void)
{
	struct pollfd p = { .fd = client_ws_fd(w), .events = POLLIN };
	int r;

	while ((r = client_ws_read(w, &m, &err)) == 0 && m.kind == CLIENT_WS_NOTHING)
		if (!client_ws_pending(w) && poll(&p, 1, 120000) <= 0)
			return -2;
	return r;
}

/* One frame of the client, unmasked. */
static ssize_t read_frame(unsigned *op, char *to, size_t size)
{
	unsigned char head[14], *mask;
	size_t len, at = 2;

	if (recv(other, head, 2, MSG_WAITALL) != 2 || !(head[1] & 0x80))
		return -1;
	len = head[1] & 0x7f;
	if (len >= 126) {
		size_t more = len == 126 ? 2 : 8;

		if (recv(other, head + at, more, MSG_WAITALL) != (ssize_t)more)
			return -1;
		for (len = 0; more; more--)
			len = len << 8 | head[at++];
	}
	if (recv(other, head + at, 4, MSG_WAITALL) != 4 || len > size)
		return -1;
	mask = head + at;
	if (len && recv(other, to, len, MSG_WAITALL) != (ssize_t)len)
		return -1;
	for (size_t i = 0; i < len; i++)
		to[i] = (char)(to[i] ^ (char)mask[i % 4]);
	*op = head[0];
	return (ssize_t)len;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void hashes_match_known_values(void)
{
	unsigned char ours[SHA1_SIZE], theirs[EVP_MAX_MD_SIZE];
	char text[300];

	for (size_t i = 0; i < sizeof(text); i++) {
		text[i] = (char)(i * 7);
		sha1(text, i, ours);
		CHECK(EVP_Digest(text, i, theirs, NULL, EVP_sha1(), NULL) == 1);
		CHECK(!memcmp(ours, theirs, SHA1_SIZE));
	}
}

static void a_socket_is_opened_and_used(void)
{
	unsigned op;
	char buf[16];

	CHECK(begin());
	CHECK(strstr(peer.received, "\r\nUpgrade: websocket\r\n"));
	CHECK_STR(client_ws_header(w, "lodge-exec"), "exe_1");
	CHECK(next() == 0 && m.kind == CLIENT_WS_BYTES && m.len == 2 && !memcmp(m.data, "hi", 2));
	CHECK(client_ws_read(w, &m, &err) == 0 && m.kind == CLIENT_WS_NOTHING);
	CHECK(client_ws_send(w, true, "{}", 2, &err) == 0);
	CHECK(read_frame(&op, buf, sizeof(buf)) == 2 && op == 0x81 && !memcmp(buf, "{}", 2));
	CHECK(client_ws_send(w, false, "", 0, &err) == 0);
	CHECK(read_frame(&op, buf, sizeof(buf)) == 0 && op == 0x82);
	finish();
}

static void a_wrong_handshake_is_refused(void)
{
	wrong_accept = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	CHECK(!begin() && err.code == ERR_UNAVAILABLE);
	wrong_accept = NULL;
	finish();
}

static void fragmented_messages_may_contain_pings(void)
{
	unsigned op;
	char buf[16];

	CHECK(begin() && next() == 0);
	CHECK(SAYS("\x01\x02"
		   "ab"));
	CHECK(SAYS("\x89\x03"
		   "png"));
	CHECK(SAYS("\x80\x01"
		   "c"));
	CHECK(next() == 0 && m.kind == CLIENT_WS_TEXT && m.len == 3 && !memcmp(m.data, "abc", 3));
	CHECK(read_frame(&op, buf, sizeof(buf)) == 3 && op == 0x8a && !memcmp(buf, "png", 3));
	CHECK(SAYS("\x82\x05"
		   "12"));
	CHECK(client_ws_read(w, &m, &err) == 0 && m.kind == CLIENT_WS_NOTHING);
	CHECK(SAYS("345"));
	CHECK(next() == 0 && m.len == 5 && !memcmp(m.data, "12345", 5));
	finish();
}

/* They were received together, so the socket has nothing more to poll for. */
static void messages_in_the_buffer_are_pending(void)
{
	CHECK(begin() && next() == 0);
	CHECK(SAYS("\x82\x01"
		   "a\x82\x00\x81\x01"
		   "c"));
	CHECK(next() == 0 && m.kind == CLIENT_WS_BYTES && m.len == 1 && client_ws_pending(w));
	CHECK(client_ws_read(w, &m, &err) == 0 && m.kind == CLIENT_WS_BYTES && m.len == 0);
	CHECK(client_ws_pending(w));
	CHECK(client_ws_read(w, &m, &err) == 0 && m.kind == CLIENT_WS_TEXT && m.len == 1);
	CHECK(client_ws_read(w, &m, &err) == 0 && m.kind == CLIENT_WS_NOTHING);
	CHECK(!client_ws_pending(w));
	finish();
}

static void long_messages_are_sent_and_received(void)
{
	static char big[200000], back[200000];
	unsigned char head[10] = { 0x82, 127, 0, 0, 0, 0, 0, 3, 0x0d, 0x40 };
	unsigned op;

	memset(big, 'x', sizeof(big));
	CHECK(begin() && next() == 0);
	CHECK(says(head, sizeof(head)));
	for (size_t at = 0; at < sizeof(big); at += 50000) {
		CHECK(says(big + at, 50000));
		(void)client_ws_read(w, &m, &err);
	}
	CHECK((m.kind == CLIENT_WS_BYTES || next() == 0) && m.len == sizeof(big));
	CHECK(!memcmp(m.data, big, sizeof(big)));
	CHECK(client_ws_send(w, false, big, 60000, &err) == 0);
	CHECK(read_frame(&op, back, sizeof(back)) == 60000 && !memcmp(back, big, 60000));
	finish();
}

static void a_close_has_a_code_and_a_reason(void)
{
	unsigned op;
	char buf[16];

	CHECK(begin() && next() == 0);
	CHECK(SAYS("\x88\x05\x03\xe9"
		   "bye"));
	CHECK(next() == 0 && m.kind == CLIENT_WS_END && m.code == 1001 && m.len == 3);
	CHECK_STR(m.data, "bye");
	CHECK(read_frame(&op, buf, sizeof(buf)) == 2 && op == 0x88);
	finish();
	CHECK(begin() && next() == 0);
	close(other);
	other = -1;
	CHECK(next() == -1 && err.code == ERR_UNAVAILABLE);
	finish();
}

static void invalid_frames_are_refused(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x82\x81mask!", 7 }, /* masked */
		{ "\xc2\x01x", 3 }, /* an extension */
		{ "\x80\x01x", 3 }, /* continues no message */
		{ "\x83\x01x", 3 }, /* unknown */
		{ "\x8b\x01x", 3 },
		{ "\x09\x01x", 3 }, /* a fragmented ping */
		{ "\x89\x7e\x01\x00", 4 }, /* a long one */
		{ "\x81\x01\xff", 3 }, /* not UTF-8 */
		{ "\x88\x01x", 3 }, /* half a code */
		{ "\x82\x7f\x00\x00\x00\x01\x00\x00\x00\x00x", 11 }, /* 4 GiB */
		{ "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10 },
		{ "\x02\x01x\x82\x01x", 6 }, /* a message within another */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(begin() && next() == 0 && says(bad[i].bytes, bad[i].len));
		CHECK(next() == -1 && err.code == ERR_UNAVAILABLE);
		finish();
	}
}

int main(void)
{
	RUN(hashes_match_known_values);
	RUN(a_socket_is_opened_and_used);
	RUN(a_wrong_handshake_is_refused);
	RUN(fragmented_messages_may_contain_pings);
	RUN(messages_in_the_buffer_are_pending);
	RUN(long_messages_are_sent_and_received);
	RUN(a_close_has_a_code_and_a_reason);
	RUN(invalid_frames_are_refused);
	return tap_done();
}
