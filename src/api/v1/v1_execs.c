/* SPDX-License-Identifier: Apache-2.0 */
/* Existing commands: query, output, input, signals. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "api/core/internal.h"
#include "api/v1/v1_exec_stream.h"

enum {
	PIECE = 1 << 20, /* per stream and response */
	WAIT_MAX_MS = 60000,
	LOOK_MS = 1000, /* interval of checks for a disconnect */
	KILL_WAIT_MS = 5000,
	INPUT_PIECE = 64 << 10,
};

/* ---- queries --------------------------------------------------------------------------------- */

int v1_list_execs(struct api_call *c, struct err *err)
{
	auto_fini(store_exec_list_fini) struct store_exec_list l = { 0 };
	struct session_ref ref;
	struct store_page page;
	struct json_out j;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_page(c, &page, err) < 0 ||
	    exec_list(c->engine, &c->caller, &ref, page, &l, err) < 0)
		return -1;
	api_list(&j, "execs");
	for (size_t i = 0; i < l.count; i++)
		api_put_exec(&j, NULL, &l.items[i]);
	api_list_end(&j, l.next);
	return api_reply(c, 200, &j, err);
}

static int open_exec(struct api_call *c, struct exec_handle **ret, struct err *err)
{
	return v1_open_exec(c, c->params[1], ret, err);
}

static int reply_exec(struct api_call *c, struct exec_handle *x, struct err *err)
{
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };
	struct json_out j;

	if (exec_get_info(x, &rec, err) < 0)
		return -1;
	api_object(&j);
	api_put_exec(&j, "exec", &rec);
	return api_reply(c, 200, &j, err);
}

int v1_get_exec(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;

	return open_exec(c, &x, err) < 0 ? -1 : reply_exec(c, x, err);
}

/* ---- output ---------------------------------------------------------------------------------- */

struct part {
	enum guest_exec_stream stream;
	uint64_t at;
	char *buf; /* PIECE bytes, in the arena */
	size_t len; /* complete characters */
	size_t rest; /* bytes of an incomplete character after them */
};

/* *ret_left: more output follows. */
static int read_part(struct exec_handle *x, struct part *p, bool base64, bool ended, bool *ret_left,
		     struct err *err)
{
	uint64_t start, end;
	size_t all;

	if (exec_read(x, p->stream, p->at, p->buf, PIECE, 0, &all, err) < 0)
		return -1;
	p->len = base64 ? all : v1_whole(p->buf, all);
	exec_output_range(x, p->stream, &start, &end);
	if (ended && p->at + all >= end)
		p->len = all;
	p->rest = all - p->len;
	*ret_left = p->at + p->len < end;
	return 0;
}

/* Waits for output, the end, or the timeout. */
static int read_parts(struct api_call *c, struct exec_handle *x, struct part p[2], bool base64,
		      int64_t wait_ms, bool *ret_done, struct err *err)
{
	int64_t until_us = clock_mono_us() + wait_ms * 1000, left_ms;
	bool ended, more[2];

	for (;;) {
		ended = exec_has_ended(x); /* check before reading, so nothing is missed */
		if (read_part(x, &p[0], base64, ended, &more[0], err) < 0 ||
		    read_part(x, &p[1], base64, ended, &more[1], err) < 0)
			return -1;
		left_ms = (until_us - clock_mono_us()) / 1000;
		if (ended || p[0].len || p[1].len || left_ms <= 0 || http_is_gone(c->rq))
			break;
		(void)exec_wait_output(x, p[0].at + p[0].rest, p[1].at + p[1].rest,
				       left_ms < LOOK_MS ? left_ms : LOOK_MS);
	}
	*ret_done = ended && !more[0] && !more[1];
	return 0;
}

/* Reports where the kept output starts, so the client can continue there. */
static int reply_gone(struct api_call *c, struct exec_handle *x, const struct err *why,
		      struct err *err)
{
	uint64_t out, error, end;
	struct json_out j;

	exec_output_range(x, GUEST_EXEC_OUT, &out, &end);
	exec_output_range(x, GUEST_EXEC_ERR, &error, &end);
	api_error_begin(&j, "OUTPUT_GONE", why->msg);
	json_out_u64(&j, "stdout_offset", out);
	json_out_u64(&j, "stderr_offset", error);
	return api_reply(c, api_status(why), &j, err);
}

static int reply_parts(struct api_call *c, const struct part p[2], bool base64, bool done,
		       struct err *err)
{
	struct json_out j;

	api_object(&j);
	v1_put_output(&j, "stdout", p[0].buf, p[0].len, base64);
	v1_put_output(&j, "stderr", p[1].buf, p[1].len, base64);
	json_out_u64(&j, "stdout_offset", p[0].at + p[0].len);
	json_out_u64(&j, "stderr_offset", p[1].at + p[1].len);
	json_out_bool(&j, "done", done);
	return api_reply(c, 200, &j, err);
}

int v1_read_exec_output(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct part p[2] = { { .stream = GUEST_EXEC_OUT }, { .stream = GUEST_EXEC_ERR } };
	int64_t at[2], wait_ms = 0;
	bool base64 = false, done;
	struct err why;

	if (v1_stream_offset(c, at, err) < 0 ||
	    api_query_int(c, "wait_ms", 0, WAIT_MAX_MS, &wait_ms, err) < 0 ||
	    api_word("encoding", http_query(c->rq, "encoding"), "utf-8", "base64", &base64, err) <
		    0 ||
	    open_exec(c, &x, err) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++) {
		p[i].at = (uint64_t)at[i];
		p[i].buf = arena_alloc(c->arena, PIECE);
		if (!p[i].buf)
			return err_sys(err, ENOMEM, "output");
	}
	if (read_parts(c, x, p, base64, wait_ms, &done, &why) == 0)
		return reply_parts(c, p, base64, done, err);
	if (why.code == ERR_LIMIT && why.sys == ERANGE)
		return reply_gone(c, x, &why, err);
	*err = why;
	return -1;
}

/* ---- control --------------------------------------------------------------------------------- */

static int feed(struct api_call *c, struct exec_handle *x, int64_t *ret, struct err *err)
{
	bool eof = api_query_flag(c, "eof");
	char *buf = arena_alloc(c->arena, INPUT_PIECE);
	ssize_t n;

	if (!buf)
		return err_sys(err, ENOMEM, "input");
	while ((n = http_body_read(c->rq, buf, INPUT_PIECE, err)) > 0) {
		if (exec_write_stdin(x, buf, (size_t)n, false, err) < 0)
			return -1;
		*ret += n;
	}
	if (n < 0)
		return -1;
	/* a command that read everything and ended has no input to close */
	return eof && exec_write_stdin(x, NULL, 0, true, err) < 0 &&
			       !(*ret && err->code == ERR_CONFLICT)
		       ? -1
		       : 0;
}

int v1_write_exec_stdin(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct json_out j;
	int64_t bytes = 0;

	if (open_exec(c, &x, err) < 0)
		return -1;
	exec_set_cancel(x, v1_is_ending, c->rq);
	if (feed(c, x, &bytes, err) < 0)
		return -1;
	api_object(&j);
	json_out_i64(&j, "written_bytes", bytes);
	return api_reply(c, 200, &j, err);
}

/* 15, "TERM" or "SIGTERM". */
static int parse_signal(const json_t *b, int *ret, struct err *err)
{
	const json_t *v = json_object_get(b, "signal");
	const char *name = json_string_value(v), *known;
	int64_t number = 0;

	if (!name) {
		if (!json_is_integer(v))
			return err_set(err, ERR_INVALID, "signal: must be a name or a number");
		if (api_int(b, "signal", 1, SIGRTMAX, &number, err) < 0)
			return -1;
		*ret = (int)number;
		return 0;
	}
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < NSIG; i++) {
		known = sigabbrev_np(i);
		if (known && strcmp(known, name) == 0) {
			*ret = i;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "signal: unknown signal \"%.32s\"", name);
}

int v1_signal_exec(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	json_t *b;
	int signo = 0;

	if (api_body(c, "signal", &b, err) < 0 || parse_signal(b, &signo, err) < 0 ||
	    open_exec(c, &x, err) < 0 || exec_signal(x, signo, AGENT_TO_GROUP, err) < 0)
		return -1;
	return reply_exec(c, x, err);
}

int v1_resize_exec(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	int64_t rows = 0, cols = 0;
	json_t *b;

	if (api_body(c, "rows cols", &b, err) < 0 ||
	    api_int(b, "rows", 1, V1_SIDE_MAX, &rows, err) < 0 ||
	    api_int(b, "cols", 1, V1_SIDE_MAX, &cols, err) < 0)
		return -1;
	if (!rows || !cols)
		return err_set(err, ERR_INVALID, "%s: missing", rows ? "cols" : "rows");
	if (open_exec(c, &x, err) < 0 || exec_resize(x, (uint32_t)rows, (uint32_t)cols, err) < 0)
		return -1;
	return reply_exec(c, x, err);
}

/* Kills the command and everything it started. Succeeds if it has already ended. */
int v1_kill_exec(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct err ignored;

	if (open_exec(c, &x, err) < 0)
		return -1;
	if (exec_signal(x, SIGKILL, AGENT_TO_TREE, err) < 0 && err->code != ERR_CONFLICT)
		return -1;
	(void)exec_wait(x, KILL_WAIT_MS, &ignored);
	return reply_exec(c, x, err);
}
