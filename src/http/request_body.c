/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request. The library's thread fills a small buffer and stops reading while it is
 * full, so a fast client waits for a slow handler. */
#include "http/request_body.h"

#include <poll.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "http/exchange.h"
#include "http/http_clock.h"

enum { SLICE_MS = 500 };

/* The library may miss the end of a connection if bytes arrive with it. */
static bool is_half_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	int left = 0;

	return poll(&p, 1, 0) == 1 && !ioctl(fd, FIONREAD, &left) && !left;
}

void http_progressed(struct http_request *rq)
{
	rq->moves++;
	pthread_cond_broadcast(&rq->cond);
}

int http_waited(struct http_request *rq, uint64_t bytes, bool reading)
{
	uint64_t slow_ms = (uint64_t)rq->server->opts.slow_s * 1000, since = clock_mono_us(),
		 ms = 0;
	uint64_t moves = rq->moves;
	bool dry = false;

	while (!rq->gone && !rq->cut && rq->moves == moves && !dry && ms < slow_ms) {
		http_cond_wait(&rq->cond, &rq->lock, SLICE_MS);
		ms = (clock_mono_us() - since) / 1000;
		dry = reading && rq->moves == moves && is_half_closed(rq->conn->fd);
	}
	rq->waited_ms += ms;
	if (rq->gone || rq->cut)
		return -1;
	if (rq->moves != moves && rq->waited_ms <= slow_ms + bytes / BYTES_PER_MS)
		return 0;
	http_abort(rq);
	return -1;
}

/* Locked. */
static int begin_body(struct http_request *rq)
{
	if (rq->want_body || !rq->has_body)
		return 0;
	if (byte_ring_init(&rq->in, BUFFER_SIZE))
		return -1;
	rq->want_body = true;
	http_wake(rq);
	return 0;
}

/* Locked: waits for data or the end. */
static int await_body(struct http_request *rq, struct err *err)
{
	if (begin_body(rq))
		return err_set(err, ERR_LIMIT, "out of memory for the body");
	while (!rq->in.len && rq->has_body && !rq->body_end) {
		if (rq->answered)
			return err_set(err, ERR_INTERNAL, "body read after the response");
		if (http_waited(rq, rq->body_bytes, true))
			return rq->cut ? err_set(err, ERR_TIMEOUT,
						 "timed out while reading the body")
				       : err_set(err, ERR_UNAVAILABLE, "client disconnected");
	}
	return 0;
}

ssize_t http_body_read(struct http_request *rq, void *buf, size_t size, struct err *err)
{
	ssize_t n = -1;

	pthread_mutex_lock(&rq->lock);
	if (!await_body(rq, err)) {
		n = (ssize_t)byte_ring_take(&rq->in, buf, size);
		/* Not for every small piece: a wakeup costs more than copying. */
		if (rq->phase == PHASE_BODY && rq->in.len <= rq->in.size / 2)
			http_wake(rq);
	}
	pthread_mutex_unlock(&rq->lock);
	return n;
}

int http_body(struct http_request *rq, size_t max, const char **ret, size_t *ret_len,
	      struct err *err)
{
	size_t len = 0, cap = 0;
	ssize_t n;

	if (rq->length >= 0 && (uint64_t)rq->length > max)
		return err_set(err, ERR_LIMIT, "body: larger than %zu bytes", max);
	do {
		if (cap - len < 2) {
			size_t more = cap	       ? cap * 2
				      : rq->length > 0 ? (size_t)rq->length + 2
						       : 4096;
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
	struct pollfd p = { .events = POLLRDHUP };
	bool gone;

	pthread_mutex_lock(&rq->lock);
	gone = rq->gone || rq->cut || rq->server->ending;
	if (!gone) {
		/* The library does not poll a suspended connection. */
		p.fd = rq->conn->fd;
		gone = poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
	}
	pthread_mutex_unlock(&rq->lock);
	return gone;
}

bool http_is_ending(const struct http_request *rq)
{
	return rq->server->ending;
}
