/* SPDX-License-Identifier: Apache-2.0 */
#include "http/request_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"
#include "http/request_head.h"

/* ---- without waiting ------------------------------------------------------------------------- */

static ssize_t take_input(struct input *in, void *buf, size_t size)
{
	size_t have = in->len - in->at, n = size < have ? size : have;

	memcpy(buf, in->bytes + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

static ssize_t receive(struct http_request *rq, void *buf, size_t size)
{
	struct input *in = rq->conn->in;
	ssize_t n;

	if (in && in->at < in->len)
		return take_input(in, buf, size);
	n = conn_io_recv(&rq->conn->io, buf, size);
	if (n == 0) {
		errno = ECONNRESET;
		return -1;
	}
	return n;
}

static ssize_t take_length(struct http_request *rq, void *buf, size_t size)
{
	uint64_t left = rq->framing.length - rq->body_bytes;
	ssize_t n = receive(rq, buf, left < size ? (size_t)left : size);

	if (n > 0)
		rq->body_end = (uint64_t)n == left;
	return n;
}

/* Bytes behind the end of the body are the next request. If a client sends more ahead than fits
 * behind the head, the connection is closed. */
static void return_input(struct http_request *rq, const char *bytes, size_t len)
{
	struct input *in = rq->conn->in;

	if (in->at < in->len) { /* where they came from */
		in->at -= len;
		return;
	}
	in->at = in->len = in->head.len;
	if (len > rq->server->opts.max_head - in->at) {
		rq->close = true;
		return;
	}
	memcpy(in->bytes + in->at, bytes, len);
	in->len += len;
}

/* Decodes where the bytes are. */
static ssize_t take_chunks(struct http_request *rq, char *buf, size_t size)
{
	struct http1_error bad;
	size_t used, data = 0;
	ssize_t n;

	while (!data && !rq->body_end) {
		n = receive(rq, buf, size);
		if (n < 0)
			return -1;
		switch (http1_chunked_read(&rq->chunks, buf, (size_t)n, buf, &used, &data, &bad)) {
		case HTTP1_MORE:
			break;
		case HTTP1_DONE:
			rq->body_end = true;
			return_input(rq, buf + used, (size_t)n - used);
			break;
		case HTTP1_BAD:
		default:
			rq->close = rq->malformed = true;
			errno = EBADMSG;
			return -1;
		}
	}
	return (ssize_t)data;
}

ssize_t request_body_take(struct http_request *rq, void *buf, size_t size)
{
	ssize_t n;

	if (rq->body_end)
		return 0;
	n = rq->framing.body == HTTP1_BODY_CHUNKED ? take_chunks(rq, buf, size)
						   : take_length(rq, buf, size);
	if (n > 0)
		rq->body_bytes += (uint64_t)n;
	return n;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The client waits for it before it sends the body. */
static void send_continue(struct http_request *rq)
{
	static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct input *in = rq->conn->in;

	if (!rq->framing.expects_continue || rq->continued)
		return;
	rq->continued = true;
	if (!in || in->at == in->len) /* the socket of an idle connection has space for it */
		(void)conn_io_send(&rq->conn->io, &(struct iovec){ text, sizeof(text) - 1 }, 1,
				   false);
}

static ssize_t fail(struct http_request *rq, struct err *err)
{
	if (errno == EBADMSG)
		return err_set(err, ERR_INVALID, "body: malformed chunk");
	rq->broken = true;
	return err_set(err, ERR_UNAVAILABLE, "client disconnected");
}

ssize_t http_body_read(struct http_request *rq, void *buf, size_t size, struct err *err)
{
	ssize_t n;

	if (rq->answered && !rq->body_end)
		return err_set(err, ERR_INTERNAL, "body read after the response");
	if (rq->broken)
		return err_set(err, ERR_UNAVAILABLE, "client disconnected");
	if (!rq->body_end)
		send_continue(rq);
	while ((n = request_body_take(rq, buf, size)) < 0) {
		if (errno != EAGAIN)
			return fail(rq, err);
		if (!exchange_wait(rq, rq->body_bytes))
			return err_set(err, ERR_TIMEOUT, "timed out while reading the body");
	}
	return n;
}

int http_body(struct http_request *rq, size_t max, const char **ret, size_t *ret_len,
	      struct err *err)
{
	int64_t length = http_body_length(rq);
	size_t len = 0, cap = 0;
	ssize_t n;

	if (length >= 0 && (uint64_t)length > max)
		return err_set(err, ERR_LIMIT, "body: larger than %zu bytes", max);
	do {
		if (cap - len < 2) {
			size_t more = cap ? cap * 2 : length > 0 ? (size_t)length + 2 : 4096;
			char *bigger = realloc(rq->whole, more);

			if (!bigger)
				return err_set(err, ERR_LIMIT, "out of memory for the body");
			rq->whole = bigger;
			cap = more;
		}
		n = http_body_read(rq, rq->whole + len, cap - len - 1, err);
		if (n < 0)
			return -1;
		len += (size_t)n;
		if (len > max)
			return err_set(err, ERR_LIMIT, "body: larger than %zu bytes", max);
	} while (n);
	rq->whole[len] = '\0';
	*ret = rq->whole;
	*ret_len = len;
	return 0;
}

bool http_is_gone(struct http_request *rq)
{
	return rq->broken || rq->server->ending || conn_io_is_closed(&rq->conn->io);
}

bool http_is_ending(const struct http_request *rq)
{
	return rq->server->ending;
}
