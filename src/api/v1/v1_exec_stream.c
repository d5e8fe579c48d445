/* SPDX-License-Identifier: Apache-2.0 */
/* A full log waits for the reader, so a slow client slows the
 * command and loses nothing; after a disconnect the log no longer waits. */
#include "api/v1/v1_exec_stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "api/core/internal.h"
#include "api/core/sse.h"

enum { LOOK_MS = 1000, BEAT_US = 15000000, PIECE = 64 << 10, FRAME_MAX = 512 << 10 };

/* Writes input on another thread: a command may wait for input before it writes, or the reverse. */
struct feeder {
	struct exec_handle *x; /* own handle, because the stream's is closed on a disconnect */
	const struct exec_request *request;
	struct http_request *rq;
	pthread_t thread;
	bool runs;
	atomic_bool stopping; /* the stream has ended, whether the client is gone or not */
};

struct flow {
	struct api_call *c;
	struct exec_request request;
	enum v1_stream how;
	struct exec_handle *x;
	struct feeder feeder;
	uint64_t at[2]; /* sent so far */
	size_t part[2]; /* bytes of an incomplete character, kept for the next read */
	bool gap; /* output was discarded before it was sent */
	int64_t last_us; /* time of the last event */
	char *piece; /* of the step that runs */
};

enum v1_stream v1_stream_is_requested(const struct api_call *c)
{
	const char *accept = http_header(c->rq, "Accept");

	if (sse_is_requested(c))
		return V1_SSE;
	return accept && strstr(accept, "application/x-ndjson") ? V1_NDJSON : V1_NO_STREAM;
}

size_t v1_whole(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char lead = (unsigned char)bytes[len - back];
		size_t needs = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;

		if (lead >= 0x80 && lead < 0xc0)
			continue;
		return needs > back && lead <= 0xf4 ? len - back : len;
	}
	return len;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Begins an object. NDJSON has the event's name as its first member, "event". */
static void frame_begin(const struct flow *f, struct json_out *j, const char *event)
{
	json_out_init(j, FRAME_MAX);
	json_out_object(j, NULL);
	if (f->how == V1_NDJSON)
		json_out_str(j, "event", event);
}

static int frame_send(struct flow *f, struct json_out *j, const char *event)
{
	auto_free char *text = NULL;
	size_t len;

	f->last_us = clock_mono_us();
	if (f->how == V1_SSE)
		return sse_send(f->c, 0, event, j);
	text = api_line(j, &len);
	return text ? http_stream_write(f->c->rq, text, len) : -1;
}

static int send_beat(struct flow *f)
{
	const char *text = f->how == V1_NDJSON ? "{\"event\":\"beat\"}\n" : ": beat\n\n";

	f->last_us = clock_mono_us();
	return http_stream_write(f->c->rq, text, strlen(text));
}

static int send_exit(struct flow *f)
{
	auto_fini(guest_exec_output_fini) struct guest_exec_output o = { 0 };
	auto_fini(json_out_fini) struct json_out j = { 0 };
	struct err ignored;

	if (exec_finish(f->x, NULL, 0, &o, &ignored) < 0)
		return -1;
	/* the log keeps only the end; count what was sent */
	o.result.hits &= ~(unsigned)AGENT_HIT_OUTPUT;
	if (f->gap)
		o.result.hits |= AGENT_HIT_OUTPUT;
	frame_begin(f, &j, "exit");
	return v1_put_result(&j, f->x, &o, &ignored) < 0 ? -1 : frame_send(f, &j, "exit");
}

/* ---- output ---------------------------------------------------------------------------------- */

/* If the log does not wait, its oldest output may be gone: the offset in the event shows it. */
static int read_piece(struct flow *f, enum guest_exec_stream s, size_t *ret)
{
	uint64_t start, end;
	struct err err;

	while (exec_read(f->x, s, f->at[s], f->piece, PIECE, 0, ret, &err) < 0) {
		if (err.code != ERR_LIMIT || err.sys != ERANGE)
			return -1;
		exec_output_range(f->x, s, &start, &end);
		if (start <= f->at[s])
			return -1;
		f->at[s] = start;
		f->gap = true;
	}
	return 0;
}

/* 1: something was sent; -1: stop. */
static int send_piece(struct flow *f, enum guest_exec_stream s, bool ended)
{
	static const char *const names[] = {
		[GUEST_EXEC_OUT] = "stdout", [GUEST_EXEC_ERR] = "stderr"
	};
	struct json_out j;
	size_t n, all;

	if (read_piece(f, s, &all) < 0)
		return -1;
	n = f->request.base64 ? all : v1_whole(f->piece, all);
	if (!n && ended)
		n = all;
	f->part[s] = all - n;
	if (!n)
		return 0;
	frame_begin(f, &j, names[s]);
	json_out_u64(&j, "offset", f->at[s]);
	v1_put_output(&j, "data", f->piece, n, f->request.base64);
	if (frame_send(f, &j, names[s]) < 0)
		return -1;
	f->at[s] += n;
	return 1;
}

/* The socket has accepted this much, so the command may write as much again. */
static int send_output(struct flow *f, bool ended)
{
	int out = send_piece(f, GUEST_EXEC_OUT, ended),
	    more = out < 0 ? -1 : send_piece(f, GUEST_EXEC_ERR, ended);
	struct err ignored;

	if (more < 0)
		return -1;
	if (!out && !more)
		return 0;
	(void)exec_consumed(f->x, f->at[GUEST_EXEC_OUT], f->at[GUEST_EXEC_ERR], &ignored);
	return 1;
}

static int send_started(struct flow *f)
{
	struct json_out j;

	frame_begin(f, &j, "started");
	json_out_str(&j, "exec_id", exec_get_id(f->x));
	return frame_send(f, &j, "started");
}

/* As send_output(), as often as there is something to send. */
static int send_all_output(struct flow *f, bool *ret_ended)
{
	auto_free char *piece = malloc(PIECE);
	int n = 1;

	if (!piece)
		return -1;
	f->piece = piece;
	while (n > 0 && !http_stream_is_full(f->c->rq)) {
		*ret_ended = exec_has_ended(f->x); /* before reading, so nothing is missed */
		n = send_output(f, *ret_ended);
	}
	f->piece = NULL;
	return n;
}

/* Sends what there is. -1: the stream has ended. */
static int step(void *arg)
{
	struct flow *f = arg;
	bool ended = false;
	int n = send_all_output(f, &ended);

	if (n < 0 || http_is_gone(f->c->rq) || !api_call_key_holds(f->c))
		return -1;
	if (n == 0 && ended) {
		(void)send_exit(f);
		return -1;
	}
	if (clock_mono_us() - f->last_us >= BEAT_US && send_beat(f) < 0)
		return -1;
	return LOOK_MS;
}

static void on_news(void *arg)
{
	http_stream_wake(((const struct flow *)arg)->c->rq);
}

/* ---- input ----------------------------------------------------------------------------------- */

static void *feed(void *arg)
{
	struct feeder *d = arg;
	struct err ignored; /* unread input is not an error */

	(void)exec_write_stdin(d->x, d->request->input, strlen(d->request->input),
			       !d->request->keep_open, &ignored);
	return NULL;
}

static bool is_stopped(void *arg)
{
	struct feeder *d = arg;

	return d->stopping || v1_is_gone(d->rq);
}

static int feeder_start(struct feeder *d, struct api_call *c, const char *exec, struct err *err)
{
	int r;

	if (!d->request->input)
		return 0;
	if (exec_open(c->engine, &c->caller, exec, &d->x, err) < 0)
		return -1;
	d->rq = c->rq;
	exec_set_cancel(d->x, is_stopped, d);
	r = pthread_create(&d->thread, NULL, feed, d);
	if (r)
		return err_sys(err, r, "a thread");
	d->runs = true;
	return 0;
}

int v1_stream_offset(struct api_call *c, int64_t has[2], struct err *err)
{
	has[GUEST_EXEC_OUT] = has[GUEST_EXEC_ERR] = 0;
	if (api_query_int(c, "stdout_offset", 0, INT64_MAX, &has[GUEST_EXEC_OUT], err) < 0)
		return -1;
	return api_query_int(c, "stderr_offset", 0, INT64_MAX, &has[GUEST_EXEC_ERR], err);
}

/* Starts at the oldest kept output, or where a client with an idempotency key continues. */
static void set_position(struct flow *f, const int64_t has[2])
{
	for (int s = GUEST_EXEC_OUT; s <= GUEST_EXEC_ERR; s++) {
		uint64_t start, end, at = (uint64_t)has[s];

		exec_output_range(f->x, (enum guest_exec_stream)s, &start, &end);
		at = at < end ? at : end;
		f->gap |= start > at;
		f->at[s] = start > at ? start : at;
	}
	/* the log waits for this reader again */
	exec_hold_output(f->x, f->at[GUEST_EXEC_OUT], f->at[GUEST_EXEC_ERR]);
}

static void flow_free(void *arg)
{
	struct flow *f = arg;

	exec_notify(f->x, NULL, NULL);
	exec_close(f->x); /* before joining the feeder, which may wait for the log */
	f->feeder.stopping = true;
	if (f->feeder.runs)
		pthread_join(f->feeder.thread, NULL);
	exec_close(f->feeder.x);
	free(f);
}

/* Takes over x. */
static struct flow *flow_new(struct api_call *c, const struct exec_request *w, enum v1_stream how,
			     struct exec_handle *x)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f) {
		exec_close(x);
		return NULL;
	}
	f->c = c;
	f->request = *w;
	f->how = how;
	f->x = x;
	f->feeder.request = &f->request;
	return arena_keep(c->arena, f, flow_free);
}

int v1_exec_stream(struct api_call *c, const struct exec_request *w, enum v1_stream how,
		   const int64_t has[2], struct exec_handle *x, struct err *err)
{
	static const char *const types[] = {
		[V1_SSE] = "text/event-stream", [V1_NDJSON] = "application/x-ndjson"
	};
	struct flow *f = flow_new(c, w, how, x);

	if (!f)
		return err_sys(err, ENOMEM, "stream");
	set_position(f, has);
	if (feeder_start(&f->feeder, c, exec_get_id(f->x), err) < 0)
		return -1;
	if (sse_begin_as(c, types[how]) < 0 || send_started(f) < 0)
		return 0;
	exec_notify(f->x, on_news, f);
	api_call_detach(c, step, f);
	return 0;
}
