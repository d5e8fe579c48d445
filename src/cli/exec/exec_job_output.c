/* SPDX-License-Identifier: Apache-2.0 */
/* What a command writes, without missing or repeating a byte: as a stream while that holds, and by
 * offsets from where it broke. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file_io.h"
#include "base/vec.h"
#include "cli/exec/exec_job.h"
#include "cli/core/options.h"
#include "cli/core/retry.h"

enum { WAIT_MS = 30000, RANDOM = 18, ONCE = BASE64_ENCODED(RANDOM) };

DEFINE_AUTO(struct client_stream *, client_close);

/* ---- to whom it goes ------------------------------------------------------------------------- */

static int keep(struct job_text *t, const char *bytes, size_t len, struct err *err)
{
	if (len > JOB_KEEP_MAX - t->len)
		return err_set(err, ERR_LIMIT,
			       "the output is longer than 64 MiB: leave --json out");
	if (vec_reserve(&t->bytes, &t->capacity, t->len + len) < 0)
		return err_sys(err, ENOMEM, "output");
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	return 0;
}

/* Whoever does not listen any more ends it, as in a pipe on one machine. */
static int write_out(struct exec_job *j, int which, const char *bytes, size_t len, struct err *err)
{
	int e = file_write_all(which == JOB_OUT ? STDOUT_FILENO : STDERR_FILENO, bytes, len);
	struct err ignored;

	if (e == -EPIPE) {
		(void)exec_job_signal(j, "PIPE", &ignored);
		_exit(128 + SIGPIPE);
	}
	return e < 0 ? err_sys(err, -e, "standard %s", which == JOB_OUT ? "output" : "error") : 0;
}

/* `at` is where this piece begins; text is base64. */
static int emit_text(struct exec_job *j, int which, uint64_t at, const char *text, size_t len,
		     struct err *err)
{
	auto_free char *bytes = malloc(BASE64_DECODED(len) + 1);
	size_t n = 0, skip;

	if (!bytes)
		return err_sys(err, ENOMEM, "output");
	if (base64_decode(text, len, bytes, &n) < 0)
		return err_set(err, ERR_INTERNAL, "the output comes in a form nobody asked for");
	j->gap |= at > j->at[which];
	skip = at < j->at[which] ? (size_t)(j->at[which] - at) : 0;
	if (skip >= n)
		return 0;
	if ((j->keep ? keep(&j->kept[which], bytes + skip, n - skip, err)
		     : write_out(j, which, bytes + skip, n - skip, err)) < 0)
		return -1;
	j->at[which] = at + n;
	return 0;
}

static int emit(struct exec_job *j, int which, uint64_t at, const json_t *text, struct err *err)
{
	if (!json_is_string(text))
		return err_set(err, ERR_INTERNAL, "the output comes in a form nobody asked for");
	return emit_text(j, which, at, json_string_value(text), json_string_length(text), err);
}

/* ---- by offsets ------------------------------------------------------------------------------ */

static uint64_t number(const json_t *o, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(o, name));

	return n > 0 ? (uint64_t)n : 0;
}

/* The oldest is gone: from what is kept. */
static int skip_gone(struct exec_job *j, const json_t *answer, struct err *err)
{
	const json_t *d = json_object_get(json_object_get(answer, "error"), "details");
	uint64_t out = number(d, "stdout_offset"), error = number(d, "stderr_offset");

	if (out <= j->at[JOB_OUT] && error <= j->at[JOB_ERR])
		return client_failed(j->client, 416, answer, err);
	j->gap = true;
	if (out > j->at[JOB_OUT])
		j->at[JOB_OUT] = out;
	if (error > j->at[JOB_ERR])
		j->at[JOB_ERR] = error;
	return 0;
}

/* 1: it has ended and this was all. */
static int read_on(struct exec_job *j, int wait_ms, bool *ret_any, struct err *err)
{
	auto_json json_t *answer = NULL;
	char tail[160], path[JOB_PATH];
	uint64_t was = j->at[JOB_OUT] + j->at[JOB_ERR];
	int status;

	snprintf(tail, sizeof(tail),
		 "/output?encoding=base64&stdout_offset=%llu&stderr_offset=%llu&wait_ms=%d",
		 (unsigned long long)j->at[JOB_OUT], (unsigned long long)j->at[JOB_ERR], wait_ms);
	if (exec_job_path(j, tail, path, err) < 0 ||
	    client_ask(j->client, "GET", path, NULL, &status, &answer, err) < 0)
		return -1;
	if (status == 416)
		return skip_gone(j, answer, err);
	if (status >= 400)
		return client_failed(j->client, status, answer, err);
	if (emit(j, JOB_OUT, j->at[JOB_OUT], json_object_get(answer, "stdout"), err) < 0 ||
	    emit(j, JOB_ERR, j->at[JOB_ERR], json_object_get(answer, "stderr"), err) < 0)
		return -1;
	*ret_any = j->at[JOB_OUT] + j->at[JOB_ERR] > was;
	return json_is_true(json_object_get(answer, "done"));
}

/* Again where the daemon is away. 0: waited. */
static int wait_for_it(struct retry *again, struct err *err)
{
	int ms = retry_is_worth(err) ? retry_pause(again, err) : -1;

	if (ms < 0)
		return -1;
	(void)poll(NULL, 0, ms);
	return 0;
}

static int look_at_end(struct exec_job *j, struct retry *again, struct err *err)
{
	while (exec_job_look(j, &j->end, err) < 0) {
		if (wait_for_it(again, err) < 0)
			return -1;
	}
	retry_over(again);
	return 0;
}

static int follow(struct exec_job *j, bool wait, struct retry *again, struct err *err)
{
	bool any = true;
	int n;

	while (wait || any) {
		n = read_on(j, wait ? WAIT_MS : 0, &any, err);
		if (n > 0)
			return look_at_end(j, again, err);
		if (n == 0)
			retry_over(again);
		else if (wait_for_it(again, err) < 0)
			return -1;
	}
	return 0;
}

int exec_job_follow(struct exec_job *j, bool wait, struct err *err)
{
	struct retry again = { 0 };

	return follow(j, wait, &again, err);
}

/* ---- as a stream ----------------------------------------------------------------------------- */

/* 1: it has ended. */
static int take_frame(struct exec_job *j, json_t *frame, struct err *err)
{
	const char *event = json_string_value(json_object_get(frame, "event")) ?: "";
	const json_t *data = json_object_get(frame, "data");

	if (strcmp(event, "stdout") == 0)
		return emit(j, JOB_OUT, number(frame, "offset"), data, err);
	if (strcmp(event, "stderr") == 0)
		return emit(j, JOB_ERR, number(frame, "offset"), data, err);
	if (strcmp(event, "exit") != 0)
		return 0;
	json_object_del(frame, "event");
	j->end = json_incref(frame);
	return 1;
}

static int take_json(struct exec_job *j, const char *line, size_t len, struct err *err)
{
	auto_json json_t *frame = json_loadb(line, len, 0, NULL);

	return frame ? take_frame(j, frame, err)
		     : err_set(err, ERR_UNAVAILABLE, "a line of the answer is not JSON");
}

/* Most of a stream has this one form, which is read at a glance: a parser would take most of the
 * time there is. Anything else is for it. */
static int take_line(struct exec_job *j, const char *line, size_t len, struct err *err)
{
	static const char out[] = "{\"event\":\"stdout\",\"offset\":", data[] = ",\"data\":\"";
	const char *p = line + sizeof(out) - 1, *end;
	uint64_t at = 0;

	if (len < sizeof(out) + sizeof(data) || memcmp(line, out, sizeof(out) - 1) != 0)
		return take_json(j, line, len, err);
	for (int i = 0; i < 18 && *p >= '0' && *p <= '9'; i++)
		at = at * 10 + (uint64_t)(*p++ - '0');
	if (strncmp(p, data, sizeof(data) - 1) != 0)
		return take_json(j, line, len, err);
	p += sizeof(data) - 1;
	end = memchr(p, '"', (size_t)(line + len - p));
	if (!end || end + 2 != line + len || end[1] != '}')
		return take_json(j, line, len, err);
	return emit_text(j, JOB_OUT, at, p, (size_t)(end - p), err);
}

static int read_stream(struct exec_job *j, struct client_stream *s, struct err *err)
{
	const char *line;
	size_t len;
	int n;

	for (;;) {
		n = client_read_line(s, &line, &len, err);
		if (n == 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "the stream ended before the command did");
		if (n > 0)
			n = take_line(j, line, len, err);
		if (n)
			return n;
	}
}

/* Asked twice, it runs once. */
static int put_once(json_t *body, struct err *err)
{
	unsigned char bytes[RANDOM];
	char text[ONCE + 1];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_sys(err, errno, "random bytes");
	base64_encode(bytes, sizeof(bytes), text);
	text[ONCE] = '\0';
	if (json_object_set_new(body, "idempotency_key", json_string(text)) < 0 ||
	    json_object_set_new(body, "encoding", json_string("base64")) < 0)
		return err_sys(err, ENOMEM, "command");
	return 0;
}

/* A connection that broke may have begun it: it is asked again. One that is not there, or has no
 * room, is not waited for. */
static int open_stream(struct exec_job *j, const json_t *body, struct retry *again,
		       struct client_stream **ret, struct err *err)
{
	char path[JOB_PATH];
	struct client_request rq = {
		.method = "POST", .path = path, .accept = "application/x-ndjson", .body = body
	};

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/exec", j->ref) < 0)
		return -1;
	while (client_open(j->client, &rq, ret, err) < 0) {
		if ((!err->sys || err->sys == ECONNREFUSED) && !again->since_ms)
			return -1;
		if (wait_for_it(again, err) < 0)
			return -1;
	}
	retry_over(again);
	return 0;
}

static void say_outcome(const struct client_stream *s)
{
	const char *outcome = client_header(s, "Lodge-Outcome");

	if (outcome && strcmp(outcome, "replaced") == 0)
		fputs("lodge: the files of the session were gone: it began anew\n", stderr);
}

int exec_job_stream(struct exec_job *j, json_t *body, exec_job_started_fn *started, void *arg,
		    struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	struct retry again = { 0 };
	int n;

	if (put_once(body, err) < 0 || open_stream(j, body, &again, &s, err) < 0)
		return -1;
	snprintf(j->id, sizeof(j->id), "%s", client_header(s, "Lodge-Exec") ?: "");
	if (!*j->id)
		return err_set(err, ERR_UNAVAILABLE, "the answer has no Lodge-Exec");
	say_outcome(s);
	if (started(j, arg, err) < 0)
		return -1;
	n = read_stream(j, s, err);
	if (n < 0 && wait_for_it(&again, err) == 0)
		n = follow(j, true, &again, err);
	return n < 0 ? -1 : 0;
}
