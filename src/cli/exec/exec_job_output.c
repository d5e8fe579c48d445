/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec/exec_job_output.h"

#include <errno.h>
#include <inttypes.h>
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

enum { WAIT_MS = 30000, RANDOM = 18, KEY_LENGTH = BASE64_ENCODED(RANDOM), UNCUT = 1 << 20 };

/* ---- writing --------------------------------------------------------------------------------- */

/* Where the last n lines begin; a last line may have no end. */
static size_t find_tail(const struct job_text *t, uint64_t n)
{
	size_t at = t->len;

	if (n && at && t->bytes[at - 1] == '\n')
		at--;
	while (n && at) {
		const char *end = memrchr(t->bytes, '\n', at);

		if (--n == 0)
			return end ? (size_t)(end - t->bytes) + 1 : 0;
		at = end ? (size_t)(end - t->bytes) : 0;
	}
	return at;
}

static void cut_tail(struct job_text *t, uint64_t n)
{
	size_t at = find_tail(t, n);

	if (at)
		memmove(t->bytes, t->bytes + at, t->len - at);
	t->len -= at;
}

void exec_job_cut_tail(struct exec_job *j)
{
	for (int i = 0; i < JOB_STREAMS; i++)
		cut_tail(&j->kept[i], j->tail);
}

static int keep(struct job_text *t, const char *bytes, size_t len, struct err *err)
{
	if (len > JOB_KEEP_MAX - t->len)
		return err_set(
			err, ERR_LIMIT,
			"output exceeds 64 MiB, the maximum with --json; run without --json");
	if (vec_reserve(&t->bytes, &t->capacity, t->len + len) < 0)
		return err_sys(err, ENOMEM, "output");
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	return 0;
}

/* A closed reader kills the command by SIGPIPE, as in a local pipe. */
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

int exec_job_write_tail(struct exec_job *j, struct err *err)
{
	exec_job_cut_tail(j);
	for (int i = 0; i < JOB_STREAMS; i++)
		if (write_out(j, i, j->kept[i].bytes, j->kept[i].len, err) < 0)
			return -1;
	return 0;
}

/* `at` is the offset of this piece, which is base64. */
static int emit_text(struct exec_job *j, int which, uint64_t at, const char *text, size_t len,
		     struct err *err)
{
	auto_free char *bytes = malloc(BASE64_DECODED(len) + 1);
	size_t n = 0, skip;

	if (!bytes)
		return err_sys(err, ENOMEM, "output");
	if (base64_decode(text, len, bytes, &n) < 0)
		return err_set(err, ERR_INTERNAL, "unexpected response: output is not base64");
	j->gap |= at > j->at[which];
	skip = at < j->at[which] ? (size_t)(j->at[which] - at) : 0;
	if (skip >= n)
		return 0;
	if (j->tails && j->kept[which].len > UNCUT)
		cut_tail(&j->kept[which], j->tail);
	if ((j->keep ? keep(&j->kept[which], bytes + skip, n - skip, err)
		     : write_out(j, which, bytes + skip, n - skip, err)) < 0)
		return -1;
	j->at[which] = at + n;
	return 0;
}

static int emit(struct exec_job *j, int which, uint64_t at, const json_t *text, struct err *err)
{
	if (!json_is_string(text))
		return err_set(err, ERR_INTERNAL, "unexpected response: output is not base64");
	return emit_text(j, which, at, json_string_value(text), json_string_length(text), err);
}

/* ---- by offsets ------------------------------------------------------------------------------ */

/* Output at the offset was discarded: continue with the oldest that is kept. */
static int skip_discarded(struct exec_job *j, const json_t *answer, struct err *err)
{
	uint64_t out = exec_job_number(answer, "error.details.stdout_offset");
	uint64_t error = exec_job_number(answer, "error.details.stderr_offset");

	if (out <= j->at[JOB_OUT] && error <= j->at[JOB_ERR])
		return client_failed(j->client, 416, answer, err);
	j->gap = true;
	if (out > j->at[JOB_OUT])
		j->at[JOB_OUT] = out;
	if (error > j->at[JOB_ERR])
		j->at[JOB_ERR] = error;
	return 0;
}

/* 1: the command has ended and this was all. */
static int read_more(struct exec_job *j, int wait_ms, bool *ret_any, struct err *err)
{
	auto_json json_t *answer = NULL;
	char out[24], error[24], ms[16], path[API_PATH];
	uint64_t was = j->at[JOB_OUT] + j->at[JOB_ERR];
	int status;

	snprintf(out, sizeof(out), "%" PRIu64, j->at[JOB_OUT]);
	snprintf(error, sizeof(error), "%" PRIu64, j->at[JOB_ERR]);
	snprintf(ms, sizeof(ms), "%d", wait_ms);
	if (client_path(path, sizeof(path), err,
			JOB_URL
			"/output?encoding=base64&stdout_offset=%s&stderr_offset=%s&wait_ms=%s",
			j->ref, j->id, out, error, ms) < 0 ||
	    client_ask(j->client, "GET", path, NULL, &status, &answer, err) < 0)
		return -1;
	if (status == 416)
		return skip_discarded(j, answer, err);
	if (status >= 400)
		return client_failed(j->client, status, answer, err);
	if (emit(j, JOB_OUT, j->at[JOB_OUT], json_object_get(answer, "stdout"), err) < 0 ||
	    emit(j, JOB_ERR, j->at[JOB_ERR], json_object_get(answer, "stderr"), err) < 0)
		return -1;
	*ret_any = j->at[JOB_OUT] + j->at[JOB_ERR] > was;
	return member_true(answer, "done");
}

/* Waits before a retry. -1: the error is permanent. */
static int wait_to_retry(struct exec_job *j, struct err *err)
{
	int ms = retry_is_worth(err) ? retry_pause(&j->retry, err) : -1;

	if (ms < 0)
		return -1;
	(void)poll(NULL, 0, ms);
	return 0;
}

static int get_end(struct exec_job *j, struct err *err)
{
	while (exec_job_get(j, &j->end, err) < 0)
		if (wait_to_retry(j, err) < 0)
			return -1;
	retry_over(&j->retry);
	return 0;
}

int exec_job_follow(struct exec_job *j, bool wait, struct err *err)
{
	bool any = true;
	int n;

	while (wait || any) {
		n = read_more(j, wait ? WAIT_MS : 0, &any, err);
		if (n > 0)
			return get_end(j, err);
		if (n == 0)
			retry_over(&j->retry);
		else if (wait_to_retry(j, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- as a stream ----------------------------------------------------------------------------- */

/* 1: the command has ended. */
static int handle_frame(struct exec_job *j, json_t *frame, struct err *err)
{
	const json_t *data = json_object_get(frame, "data");

	if (member_is(frame, "event", "stdout"))
		return emit(j, JOB_OUT, exec_job_number(frame, "offset"), data, err);
	if (member_is(frame, "event", "stderr"))
		return emit(j, JOB_ERR, exec_job_number(frame, "offset"), data, err);
	if (!member_is(frame, "event", "exit"))
		return 0;
	json_object_del(frame, "event");
	j->end = json_incref(frame);
	return 1;
}

static int parse_json_line(struct exec_job *j, const char *line, size_t len, struct err *err)
{
	auto_json json_t *frame = json_loadb(line, len, 0, NULL);

	return frame ? handle_frame(j, frame, err)
		     : err_set(err, ERR_UNAVAILABLE, "unexpected response: a line is not JSON");
}

/* Most lines have this one form, which is matched directly: the JSON parser would take most of the
 * CPU time. It gets all other lines. */
static int parse_line(struct exec_job *j, const char *line, size_t len, struct err *err)
{
	static const char out[] = "{\"event\":\"stdout\",\"offset\":", data[] = ",\"data\":\"";
	const char *p = line + sizeof(out) - 1, *end;
	uint64_t at = 0;

	if (len < sizeof(out) + sizeof(data) || memcmp(line, out, sizeof(out) - 1) != 0)
		return parse_json_line(j, line, len, err);
	for (int i = 0; i < 18 && *p >= '0' && *p <= '9'; i++)
		at = at * 10 + (uint64_t)(*p++ - '0');
	if (strncmp(p, data, sizeof(data) - 1) != 0)
		return parse_json_line(j, line, len, err);
	p += sizeof(data) - 1;
	end = memchr(p, '"', (size_t)(line + len - p));
	if (!end || end + 2 != line + len || end[1] != '}')
		return parse_json_line(j, line, len, err);
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
				       "connection lost while the command was running");
		if (n > 0)
			n = parse_line(j, line, len, err);
		if (n)
			return n;
	}
}

/* A retried request must not run the command twice. */
static int put_idempotency_key(json_t *body, struct err *err)
{
	unsigned char bytes[RANDOM];
	char text[KEY_LENGTH + 1];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_sys(err, errno, "random bytes");
	base64_encode(bytes, sizeof(bytes), text);
	text[KEY_LENGTH] = '\0';
	if (json_object_set_new(body, "idempotency_key", json_string(text)) < 0 ||
	    json_object_set_new(body, "encoding", json_string("base64")) < 0)
		return err_sys(err, ENOMEM, "command");
	return 0;
}

/* Retries after a broken connection, because the command may have started. Fails at once if there
 * is no service, or if it has no capacity. */
static int open_stream(struct exec_job *j, const json_t *body, struct client_stream **ret,
		       struct err *err)
{
	char path[API_PATH];
	struct client_request rq = {
		.method = "POST", .path = path, .accept = "application/x-ndjson", .body = body
	};

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/exec", j->ref) < 0)
		return -1;
	while (client_open(j->client, &rq, ret, err) < 0) {
		if (((!err->sys || err->sys == ECONNREFUSED) && !j->retry.since_ms) ||
		    wait_to_retry(j, err) < 0)
			return -1;
	}
	retry_over(&j->retry);
	return 0;
}

int exec_job_stream(struct exec_job *j, json_t *body, bool input, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	int n;

	if (put_idempotency_key(body, err) < 0 || open_stream(j, body, &s, err) < 0)
		return -1;
	snprintf(j->id, sizeof(j->id), "%s", client_header(s, "Lodge-Exec") ?: "");
	if (!*j->id)
		return err_set(err, ERR_UNAVAILABLE, "unexpected response: no Lodge-Exec header");
	if (strcmp(client_header(s, "Lodge-Outcome") ?: "", "replaced") == 0)
		fputs("lodge: the files of the session were lost; it starts with new ones\n",
		      stderr);
	if (exec_job_forward(j, input, err) < 0)
		return -1;
	n = read_stream(j, s, err);
	if (n < 0 && wait_to_retry(j, err) == 0)
		n = exec_job_follow(j, true, err);
	return n < 0 ? -1 : 0;
}
