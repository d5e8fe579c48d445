/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of an untrusted server, read in every way the client has: head, body, lines, events and
 * frames. The first byte chooses. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/client_stream.h"
#include "client/client_ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 48 << 10 }; /* fits into the socket */

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void read_bytes(struct client_stream *s)
{
	uint64_t all = 0;
	struct err err;
	char buf[512];
	ssize_t n;

	while ((n = client_read(s, buf, sizeof(buf), &err)) > 0)
		all += (uint64_t)n;
	must(n < 0 || s->framing.body != HTTP1_BODY_LENGTH || all == s->framing.length);
	must(n < 0 || client_read(s, buf, sizeof(buf), &err) == 0);
}

static void read_lines(struct client_stream *s)
{
	json_t *v = NULL;
	struct err err;

	while (client_read_json(s, &v, &err) > 0)
		json_decref(v);
}

static void read_events(struct client_stream *s)
{
	struct client_event e;
	struct err err;

	while (client_read_event(s, &e, &err) > 0) {
		must(strlen(e.id) < sizeof(e.id) && strlen(e.event) < sizeof(e.event));
		json_decref(e.data);
	}
}

static void read_frames(struct client_stream *s)
{
	struct client_ws *w = client_ws_wrap(s);
	struct client_ws_message m = { 0 };
	struct err err;

	must(w);
	while (client_ws_read(w, &m, &err) == 0 && m.kind != CLIENT_WS_END &&
	       m.kind != CLIENT_WS_NOTHING)
		must(m.len == 0 || m.data);
	client_ws_close(w);
}

static void read_it(unsigned how, struct client_stream *s)
{
	switch (how) {
	case 0:
		read_bytes(s);
		break;
	case 1:
		read_lines(s);
		break;
	case 2:
		read_events(s);
		break;
	default:
		read_frames(s);
		return;
	}
	client_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_stream *s = NULL;
	struct conn conn;
	struct err err;
	int fds[2];

	if (size < 1 || size > INPUT_MAX)
		return 0;
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	must(send(fds[1], data + 1, size - 1, MSG_DONTWAIT) == (ssize_t)(size - 1) || size == 1);
	shutdown(fds[1], SHUT_WR);
	must(conn_wrap(fds[0], &conn, &err) == 0);
	if (stream_begin(&conn, data[0] & 4 ? HTTP1_TO_HEAD : HTTP1_TO_UPGRADE, &s, &err) == 0)
		read_it(data[0] % 4, s);
	close(fds[1]);
	return 0;
}
