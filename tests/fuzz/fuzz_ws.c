/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket: any bytes of a peer, in pieces of any size (the first byte). Messages never exceed
 * the maximum, text is UTF-8, and nothing follows a close. */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/json.h"
#include "http/ws_server.h"

enum { MAX = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* False: it has ended. */
static bool read_all(struct ws *w, int peer)
{
	enum ws_event event;
	char answers[4096];
	const void *bytes;
	size_t len;

	while ((event = ws_read(w, &bytes, &len)) == WS_TEXT || event == WS_BINARY) {
		must(len <= MAX);
		must(event == WS_BINARY || json_is_utf8(bytes, len));
	}
	must(ws_flush(w) == 0);
	(void)!recv(peer, answers, sizeof(answers), MSG_DONTWAIT);
	if (event == WS_NOTHING)
		return true;
	must(ws_read(w, &bytes, &len) == event);
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size ? (size_t)data[0] + 1 : 1, at = size ? 1 : 0;
	struct conn_io io;
	struct ws *w;
	struct err err;
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	/* the first piece arrived with the request */
	must(conn_io_init(&io, fds[0], NULL) == 0);
	must(ws_new(&io, data + at, size - at < piece ? size - at : piece, MAX, &w, &err) == 0);
	at += size - at < piece ? size - at : piece;
	while (read_all(w, fds[1]) && at < size) {
		size_t n = size - at < piece ? size - at : piece;

		must(send(fds[1], data + at, n, MSG_NOSIGNAL) == (ssize_t)n);
		at += n;
	}
	close(fds[1]);
	ws_free(w);
	conn_io_fini(&io);
	return 0;
}
