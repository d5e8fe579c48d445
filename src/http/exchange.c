/* SPDX-License-Identifier: Apache-2.0 */
#include "http/exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "http/conn_limit.h"
#include "http/request_body.h"
#include "http/request_head.h"
#include "http/response.h"
#include "http/server_conn.h"
#include "http/stream_poller.h"
#include "http/worker.h"
#include "http1/http1_request.h"

enum {
	TURNS_MAX = 64, /* steps before others get a turn */
	DISCARD_PIECE = 16 << 10,
	CLOSE_MS = 10000, /* for a client to notice the response and to stop sending */
	CLOSE_BYTES = 256 << 20,
};

enum step {
	STEP_ON, /* the state has changed */
	STEP_WAIT, /* for the event that conn_io wants */
	STEP_END,
	STEP_STREAM, /* the poller has it from here on */
};

bool exchange_wait(struct http_request *rq, uint64_t bytes)
{
	int64_t slow_ms = (int64_t)rq->server->opts.slow_s * 1000, since = clock_mono_ms();
	int64_t left = slow_ms + (int64_t)(bytes / BYTES_PER_MS) - rq->waited_ms;
	bool ready = conn_io_wait(&rq->conn->io, rq->conn->io.wants,
				  since + (left < slow_ms ? left : slow_ms));

	rq->waited_ms += clock_mono_ms() - since;
	if (!ready)
		rq->broken = true;
	return ready;
}

/* ---- input ----------------------------------------------------------------------------------- */

static void init_head(struct conn *c)
{
	struct input *in = c->in;

	http1_head_init(&in->head, in->headers, HEADERS_MAX, &c->server->limits);
}

/* The next request begins where the last one ended. */
static void rewind_input(struct conn *c)
{
	struct input *in = c->in;

	if (!in || in->at == in->len) {
		free(in);
		c->in = NULL;
		return;
	}
	memmove(in->bytes, in->bytes + in->at, in->len - in->at);
	in->len -= in->at;
	in->at = 0;
	init_head(c);
}

/* As conn_io_recv(). */
static ssize_t receive(struct conn *c)
{
	size_t size = c->server->opts.max_head;
	struct input *in = c->in;
	ssize_t n;

	if (!in) {
		in = c->in = malloc(sizeof(*in) + size);
		if (!in)
			return -1;
		in->at = in->len = 0;
		init_head(c);
	}
	n = conn_io_recv(&c->io, in->bytes + in->len, size - in->len);
	if (n > 0 && !in->len) /* for the rest of the head, however it arrives */
		server_conn_set_deadline(c, 0);
	if (n > 0)
		in->len += (size_t)n;
	if (!in->len) {
		free(in);
		c->in = NULL;
	}
	return n;
}

/* ---- one request ----------------------------------------------------------------------------- */

static void count_request(struct http_server *s, bool begins)
{
	MUTEX_GUARD(&s->lock);
	if (begins) {
		s->metrics.requests++;
		return;
	}
	s->metrics.requests--;
	s->metrics.total++;
	pthread_cond_broadcast(&s->change);
}

/* The response was sent, or cannot be sent. */
static void end_request(struct conn *c)
{
	struct http_server *s = c->server;
	struct http_request *rq = c->rq;

	/* 499, by convention: the client disconnected before the response. */
	if (s->opts.log)
		s->opts.log(s->opts.arg, rq, rq->status ? rq->status : 499, rq->bytes,
			    (uint64_t)(clock_mono_us() - rq->started_us));
	count_request(s, false);
}

static void free_request(struct conn *c)
{
	http_request_free(c->rq);
	c->rq = NULL;
}

static void reject(struct http_request *rq, const struct http1_error *why)
{
	bool later = why->status == 503;

	rq->close = true;
	response_error(rq, why->status, later ? "UNAVAILABLE" : "INVALID", why->why, later);
}

/* False: it was answered. */
static bool admit(struct http_request *rq)
{
	const struct http_opts *o = &rq->server->opts;
	int status = o->admit ? o->admit(o->arg, rq) : 0;

	if (!status)
		return true;
	rq->close |= !rq->body_end;
	if (!rq->answered)
		response_error(rq, (unsigned)status, "DENIED", "refused", false);
	rq->status = (unsigned)status;
	return false;
}

static void refuse_overload(struct http_request *rq)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "more than %u requests in flight (setting: max_requests); retry later",
		 rq->server->opts.max_requests);
	rq->close |= !rq->body_end;
	response_error(rq, 503, "OVERLOADED", text, true);
}

static void call_handler(struct http_request *rq)
{
	if (strcmp(rq->method, "GET") != 0)
		worker_give_up_turn(); /* a change waits for a disk or for a sandbox */
	rq->server->opts.handler(rq->server->opts.arg, rq);
}

static void run_handler(struct http_request *rq)
{
	struct http_server *s = rq->server;

	unsigned place = !rq->urgent; /* there are threads beyond max_requests for the others */

	if (atomic_fetch_add(&s->busy, place) >= s->opts.max_requests && place)
		refuse_overload(rq);
	else
		call_handler(rq);
	atomic_fetch_sub(&s->busy, place);
	if (rq->stream_state.ops && rq->answered)
		return;
	if (!rq->answered && rq->malformed)
		response_error(rq, 400, "INVALID", "body: malformed chunk", false);
	if (!rq->answered)
		response_error(rq, 500, "INTERNAL", "the handler sent no response", false);
	if (rq->stream && !rq->aborted && !rq->broken)
		response_end_stream(rq);
}

static void refuse_draining(struct http_request *rq)
{
	reject(rq, &(struct http1_error){ 503, "the server is shutting down" });
}

/* A key may have been revoked, so the trust of a connection follows its latest request. */
static void end_trust(struct http_request *rq)
{
	if (rq->trusted || !rq->conn->trusted)
		return;
	MUTEX_GUARD(&rq->server->lock);
	conn_limit_distrust(rq->conn);
}

/* bad: the head cannot be used. */
static enum step run_request(struct conn *c, struct http1_error *bad)
{
	struct http_request *rq = c->rq = http_request_new(c);

	if (!rq)
		return STEP_END;
	count_request(c->server, true);
	c->deadline_ms = 0; /* a handler has its own */
	if (bad) {
		http_request_choose_id(rq);
		c->in->at = c->in->len;
		rq->body_end = true;
		reject(rq, bad);
	} else {
		struct http1_error err;

		if (http_request_take_head(rq, &err)) {
			if (!*rq->id)
				http_request_choose_id(rq);
			reject(rq, &err);
		} else if (c->server->draining) {
			refuse_draining(rq);
		} else if (admit(rq)) {
			run_handler(rq);
		}
	}
	end_trust(rq);
	c->state = CONN_SENDING;
	return rq->stream_state.ops ? STEP_STREAM : STEP_ON;
}

/* ---- states ---------------------------------------------------------------------------------- */

static enum step continue_head(struct conn *c)
{
	for (;;) {
		struct http1_error bad;
		ssize_t n;

		if (c->in) {
			struct input *in = c->in;

			switch (http1_request_parse(&in->head, in->bytes, in->len, &bad)) {
			case HTTP1_DONE:
				return run_request(c, NULL);
			case HTTP1_BAD:
				return run_request(c, &bad);
			case HTTP1_MORE:
			default:
				break;
			}
		}
		n = receive(c);
		if (n < 0 && errno == EAGAIN)
			return STEP_WAIT;
		if (n <= 0)
			return STEP_END;
	}
}

static void await_head(struct conn *c)
{
	free_request(c);
	rewind_input(c);
	c->state = CONN_HEAD;
	if (c->in)
		server_conn_set_deadline(c, 0);
	else
		c->deadline_ms = clock_mono_ms() + (int64_t)c->server->opts.idle_s * 1000;
}

/* A client that still sends would be reset by a close, and might lose the response. */
static void begin_closing(struct conn *c)
{
	conn_io_shut(&c->io);
	free_request(c);
	free(c->in);
	c->in = NULL;
	c->discarded = 0;
	c->deadline_ms = clock_mono_ms() + CLOSE_MS;
	c->state = CONN_CLOSING;
}

static void begin_discarding(struct conn *c)
{
	c->discarded = 0;
	c->state = CONN_DISCARDING;
	server_conn_set_deadline(c, 0);
}

static enum step continue_sending(struct conn *c)
{
	struct http_request *rq = c->rq;
	int r = rq->broken || rq->upgraded ? 0 : response_flush(rq);

	if (r > 0)
		return STEP_WAIT;
	if (r < 0)
		rq->broken = true;
	if (!rq->broken && !rq->aborted)
		c->open_end = false; /* it is complete */
	end_request(c);
	if (rq->broken || (rq->aborted && c->open_end)) {
		server_conn_cut(c);
		return STEP_END;
	}
	if (rq->close || rq->aborted)
		begin_closing(c);
	else if (!rq->body_end)
		begin_discarding(c);
	else
		await_head(c);
	return STEP_ON;
}

static enum step continue_discarding(struct conn *c)
{
	char piece[DISCARD_PIECE];
	ssize_t n;

	while ((n = request_body_take(c->rq, piece, sizeof(piece))) > 0) {
		c->discarded += (uint64_t)n;
		if (c->discarded > DISCARD_MAX)
			return STEP_END;
		server_conn_set_deadline(c, 0);
	}
	if (n < 0)
		return errno == EAGAIN ? STEP_WAIT : STEP_END;
	if (c->rq->close) /* what follows the body was lost */
		begin_closing(c);
	else
		await_head(c);
	return STEP_ON;
}

static enum step continue_closing(struct conn *c)
{
	char piece[DISCARD_PIECE];
	ssize_t n;

	while ((n = conn_io_recv(&c->io, piece, sizeof(piece))) > 0) {
		c->discarded += (uint64_t)n;
		if (c->discarded > CLOSE_BYTES)
			return STEP_END;
	}
	return n < 0 && errno == EAGAIN ? STEP_WAIT : STEP_END;
}

/* ---- events ---------------------------------------------------------------------------------- */

void exchange_abandon(struct conn *c)
{
	if (c->rq)
		free_request(c);
	server_conn_free(c);
}

void exchange_continue(struct conn *c)
{
	static enum step (*const steps[])(struct conn * c) = {
		[CONN_HEAD] = continue_head,
		[CONN_SENDING] = continue_sending,
		[CONN_DISCARDING] = continue_discarding,
		[CONN_CLOSING] = continue_closing,
	};
	enum step step = STEP_ON;

	atomic_exchange(&c->armed, false); /* acquires what the last thread that had it wrote */
	for (int i = 0; i < TURNS_MAX && step == STEP_ON; i++)
		step = steps[c->state](c);
	if (step == STEP_ON)
		c->io.wants = POLLOUT; /* an event at once */
	if (step == STEP_END)
		exchange_abandon(c);
	else if (step == STEP_STREAM)
		stream_poller_add(c);
	else
		server_conn_arm(c);
}
