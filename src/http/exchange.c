/* SPDX-License-Identifier: Apache-2.0 */
/* Handles one request on the library's thread. The library calls once with the head, then with
 * pieces of the body, then once more without data, and repeats a call after the connection was
 * suspended. A response can be queued only in the first and in the last call; in the first it
 * closes the connection if a body was announced. */
#include "http/exchange.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "http/byte_ring.h"
#include "http/handler_thread.h"
#include "http/http_clock.h"
#include "http/request_body.h"
#include "http/request_head.h"
#include "http/response.h"
#include "http/server_conn.h"

/* The only place that suspends a connection. */
static enum MHD_Result wait_worker(struct http_request *rq)
{
	rq->suspended = true;
	MHD_suspend_connection(rq->mhd);
	return MHD_YES;
}

void http_wake(struct http_request *rq)
{
	if (!rq->suspended)
		return;
	rq->suspended = false;
	MHD_resume_connection(rq->mhd);
}

void http_abort(struct http_request *rq)
{
	if (rq->gone)
		return;
	rq->cut = true;
	http_conn_cut(rq->conn);
	http_wake(rq);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void finish_accounting(struct http_request *rq)
{
	struct http_server *s = rq->server;

	/* 499, by convention: the client disconnected before the response. */
	if (s->opts.log)
		s->opts.log(s->opts.arg, rq, rq->status ? rq->status : 499, rq->bytes,
			    clock_mono_us() - rq->started_us);
	pthread_mutex_lock(&s->lock);
	s->metrics.requests--;
	s->metrics.total++;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
}

static void http_unref(struct http_request *rq)
{
	if (--rq->refs)
		return;
	finish_accounting(rq);
	http_request_free(rq);
}

void http_ended(struct http_request *rq)
{
	struct MHD_UpgradeResponseHandle *upgraded;

	pthread_mutex_lock(&rq->lock);
	if (!rq->answered)
		http_error(rq, 500, "INTERNAL", "the handler sent no response", false);
	rq->stream_end = true;
	if (rq->stream && rq->phase == PHASE_ANSWER && !rq->gone)
		http_conn_deadline(rq->conn, rq->out.len);
	upgraded = steal_ptr(&rq->upgraded);
	if (upgraded)
		shutdown(rq->upgraded_fd, SHUT_WR);
	http_wake(rq);
	pthread_mutex_unlock(&rq->lock);
	if (upgraded)
		MHD_upgrade_action(upgraded, MHD_UPGRADE_ACTION_CLOSE);
	http_unref(rq);
}

void http_on_completed(void *server, struct MHD_Connection *mhd, void **arg,
		       enum MHD_RequestTerminationCode why)
{
	struct http_request *rq = *arg;

	(void)server;
	(void)mhd;
	(void)why;
	if (!rq)
		return;
	*arg = NULL;
	/* After an upgrade the worker has finished, and the library holds a lock that must be taken
	 * after rq->lock. */
	if (rq->upgraded_fd < 0) {
		pthread_mutex_lock(&rq->lock);
		rq->gone = true;
		http_conn_await_head(rq->conn);
		http_progressed(rq);
		pthread_mutex_unlock(&rq->lock);
	}
	http_unref(rq);
}

/* ---- from the head to the worker ------------------------------------------------------------- */

/* Marks the response as ready. http_on_request() queues it after releasing the lock: the library
 * holds its own response lock in http_on_read(). */
static enum MHD_Result send_response(struct http_request *rq)
{
	rq->phase = PHASE_ANSWER;
	/* While a handler streams or owns the socket, it enforces the deadline itself. */
	if (rq->status == MHD_HTTP_SWITCHING_PROTOCOLS || (rq->stream && !rq->stream_end))
		rq->conn->deadline_ms = 0;
	else
		http_conn_deadline(rq->conn, rq->stream ? rq->out.len : rq->bytes);
	return MHD_YES;
}

/* Marks the request for a worker. http_on_request() submits it after releasing the lock, so the
 * worker does not have to wait. */
static enum MHD_Result request_worker(struct http_request *rq)
{
	rq->given = true;
	rq->refs++;
	return wait_worker(rq);
}

static void submit(struct http_request *rq)
{
	char text[96];

	if (!http_worker_submit(rq->server, rq))
		return;
	pthread_mutex_lock(&rq->lock);
	rq->refs--;
	rq->refused = rq->phase == PHASE_HEAD;
	snprintf(text, sizeof(text),
		 "more than %u requests in flight (setting: max_requests); retry later",
		 rq->server->opts.max_requests);
	http_error(rq, 503, "OVERLOADED", text, true);
	pthread_mutex_unlock(&rq->lock);
}

static bool body_has_arrived(const struct http_request *rq)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(rq->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info && http_conn_has(rq->conn, info->header_size + (uint64_t)rq->length);
}

/* Reads a small body that has already arrived before it submits the request: the worker then wakes
 * once, not for the head, the body and its end. If bytes are missing, the deadline of the head
 * applies. */
static bool read_ahead(struct http_request *rq)
{
	if (rq->chunked || rq->expect || rq->length > AHEAD_MAX || !body_has_arrived(rq) ||
	    byte_ring_init(&rq->in, (size_t)rq->length))
		return false;
	rq->want_body = true;
	http_conn_deadline(rq->conn, (uint64_t)rq->length);
	rq->conn->in_head = true;
	return true;
}

static void end_of_body(struct http_request *rq)
{
	rq->phase = PHASE_WHOLE;
	rq->body_end = true;
	if (!rq->given && !rq->answered) {
		rq->conn->in_head = false;
		rq->conn->deadline_ms = 0;
	}
	http_progressed(rq);
}

/* A body was announced, and nothing of it was read. */
static enum MHD_Result advance_head(struct http_request *rq)
{
	if (rq->answered) {
		if (rq->chunked || rq->expect || rq->length > DISCARD_SMALL)
			return send_response(rq);
		http_conn_deadline(rq->conn, (uint64_t)rq->length);
	} else if (!rq->given) {
		if (!read_ahead(rq))
			return request_worker(rq);
	} else if (!rq->want_body) {
		return wait_worker(rq);
	}
	rq->phase = PHASE_BODY;
	return MHD_YES;
}

static enum MHD_Result advance(struct http_request *rq)
{
	if (rq->refused && rq->phase == PHASE_HEAD)
		return send_response(rq);
	if (rq->phase == PHASE_HEAD && rq->has_body)
		return advance_head(rq);
	if (rq->phase == PHASE_HEAD) {
		/* A response in this call would close the connection. The next call follows at
		 * once. */
		rq->phase = PHASE_WHOLE;
		return MHD_YES;
	}
	if (rq->phase == PHASE_BODY)
		end_of_body(rq);
	if (!rq->given && !rq->answered)
		return request_worker(rq);
	return rq->answered ? send_response(rq) : wait_worker(rq);
}

static enum MHD_Result take_body(struct http_request *rq, const char *data, size_t *size)
{
	size_t n;

	if (rq->answered || rq->cut) {
		rq->discarded += *size;
		*size = 0;
		return rq->discarded > DISCARD_MAX || rq->cut ? MHD_NO : MHD_YES;
	}
	n = byte_ring_put(&rq->in, data, *size);
	rq->body_bytes += n;
	*size -= n;
	if (n)
		http_progressed(rq);
	return *size ? wait_worker(rq) : MHD_YES;
}

static void reject(struct http_request *rq, unsigned status, const char *why)
{
	pthread_mutex_lock(&rq->lock);
	http_error(rq, status, status == 503 ? "UNAVAILABLE" : "INVALID", why, status == 503);
	rq->refused = true;
	pthread_mutex_unlock(&rq->lock);
}

static void run_admit(struct http_request *rq)
{
	const struct http_opts *o = &rq->server->opts;
	int status = o->admit ? o->admit(o->arg, rq) : 0;

	if (!status)
		return;
	pthread_mutex_lock(&rq->lock);
	if (!rq->answered)
		http_error(rq, (unsigned)status, "DENIED", "refused", false);
	rq->status = (unsigned)status;
	rq->refused = rq->has_body;
	pthread_mutex_unlock(&rq->lock);
}

static struct http_request *begin_request(struct http_server *s, struct MHD_Connection *mhd,
					  const char *url, const char *method, const char *version)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info ? info->socket_context : NULL;
	struct http_request *rq;
	const char *why = NULL;
	unsigned status;

	if (!c || !c->target)
		return NULL;
	rq = http_request_new(s, c, mhd);
	if (!rq)
		return NULL;
	c->in_head = false;
	c->deadline_ms = 0;
	status = http_read_head(rq, method, url, c->target, version, &why);
	if (status)
		reject(rq, status, why);
	else if (s->draining)
		reject(rq, 503, "server is shutting down");
	else
		run_admit(rq);
	return rq;
}

enum MHD_Result http_on_request(void *server, struct MHD_Connection *mhd, const char *url,
				const char *method, const char *version, const char *data,
				size_t *size, void **arg)
{
	struct http_request *rq = *arg;
	struct MHD_Response *response = NULL;
	enum MHD_Result r;
	bool given;

	if (!rq)
		*arg = rq = begin_request(server, mhd, url, method, version);
	if (!rq)
		return MHD_NO;
	if (rq->no_memory) {
		http_conn_too_large(rq->conn, mhd);
		return MHD_NO;
	}
	pthread_mutex_lock(&rq->lock);
	given = rq->given;
	r = *size ? take_body(rq, data, size) : advance(rq);
	if (rq->phase == PHASE_ANSWER)
		response = steal_ptr(&rq->response);
	given = rq->given && !given;
	pthread_mutex_unlock(&rq->lock);
	if (given)
		submit(rq);
	if (response) {
		r = MHD_queue_response(mhd, rq->status, response);
		MHD_destroy_response(response);
	}
	return r;
}

ssize_t http_broken(struct http_request *rq)
{
	if (rq->conn->open_end)
		http_conn_cut(rq->conn);
	/* The library may keep a connection it ended here until its timeout. */
	MHD_set_connection_option(rq->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* The library asks for more of a stream. It suspends through wait_worker() too. */
ssize_t http_on_read(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct http_request *rq = arg;
	ssize_t n;

	(void)pos;
	pthread_mutex_lock(&rq->lock);
	n = (ssize_t)byte_ring_take(&rq->out, buf, max);
	rq->bytes += (uint64_t)n;
	if (n) {
		if (rq->out.len <= rq->out.size / 2) /* not for every small piece */
			http_progressed(rq);
	} else if (rq->stream_end || rq->cut || rq->aborted) {
		n = rq->cut || rq->aborted ? http_broken(rq) : MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		wait_worker(rq);
	}
	pthread_mutex_unlock(&rq->lock);
	return n;
}
