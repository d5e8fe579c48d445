/* SPDX-License-Identifier: Apache-2.0 */
/* lodge bench: measures the response times of the service. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/temp_record.h"

enum { TIMES = 50, TIMES_MAX = 10000, FILE_BYTES = 4096 };

struct bench {
	struct api_cmd a;
	const char *count;
	char key[64];
	struct temp_record session;
	int fd; /* the file to upload */
};

/* ---- requests -------------------------------------------------------------------------------- */

static int do_status(struct bench *b, struct err *err)
{
	return api_cmd_call(&b->a, "GET", NULL, NULL, err, "/v1/sessions/%s", b->session.id);
}

static int do_enter(struct bench *b, struct err *err)
{
	auto_json json_t *body = json_pack("{s:s}", "key", b->key);

	return client_call(b->a.client, "POST", "/v1/sessions", body, NULL, err);
}

static int do_exec(struct bench *b, struct err *err)
{
	auto_json json_t *body = json_pack("{s:[s]}", "argv", "/bin/true"), *answer = NULL;

	if (api_cmd_call(&b->a, "POST", body, &answer, err, "/v1/sessions/%s/exec", b->session.id) <
	    0)
		return -1;
	return member_number(answer, "exit_code") == 0
		       ? 0
		       : err_set(err, ERR_INTERNAL, "/bin/true failed in the sandbox");
}

static int do_write(struct bench *b, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[API_PATH];
	struct client_request rq = {
		.method = "PUT", .path = path, .body_fd = b->fd, .has_body_fd = true
	};

	if (lseek(b->fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "lseek");
	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/files/bench", b->session.id) < 0)
		return -1;
	return client_open(b->a.client, &rq, &s, err);
}

static int do_read(struct bench *b, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[API_PATH], buf[FILE_BYTES];
	struct client_request rq = { .method = "GET", .path = path };
	ssize_t n;

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/files/bench", b->session.id) <
		    0 ||
	    client_open(b->a.client, &rq, &s, err) < 0)
		return -1;
	while ((n = client_read(s, buf, sizeof(buf), err)) > 0)
		;
	return (int)n;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int by_size(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return a < b ? -1 : a > b;
}

static double to_ms(int64_t ns)
{
	return (double)ns / 1e6;
}

static const struct call {
	const char *name;
	int (*run)(struct bench *b, struct err *err);
} calls[] = {
	{ "status", do_status },  { "enter", do_enter },  { "exec", do_exec },
	{ "write 4K", do_write }, { "read 4K", do_read },
};

static int measure(struct bench *b, const struct call *c, uint64_t times, json_t *rows,
		   struct err *err)
{
	auto_free int64_t *ns = calloc(times, sizeof(*ns));
	json_t *row;

	if (!ns)
		return err_sys(err, ENOMEM, "bench");
	for (uint64_t i = 0; i < times; i++) {
		int64_t began = clock_mono_ns();

		if (c->run(b, err) < 0)
			return err_ctx(err, "%s", c->name);
		ns[i] = clock_mono_ns() - began;
	}
	qsort(ns, times, sizeof(*ns), by_size);
	row = json_pack("{s:s, s:I, s:f, s:f, s:f}", "name", c->name, "count", (json_int_t)times,
			"median_ms", to_ms(ns[times / 2]), "p99_ms",
			to_ms(ns[(times * 99 - 1) / 100]), "worst_ms", to_ms(ns[times - 1]));
	return json_array_append_new(rows, row) < 0 ? err_sys(err, ENOMEM, "bench") : 0;
}

static const char *format_ms(const json_t *row, const char *path, char buf[FIELD_TEXT])
{
	snprintf(buf, FIELD_TEXT, "%.2f ms", json_real_value(json_object_get(row, path)));
	return buf;
}

static const struct field fields[] = {
	{ "CALL", 0, "name" },
	{ "TIMES", TABLE_RIGHT, "count", field_count },
	{ "MEDIAN", TABLE_RIGHT, "median_ms", format_ms },
	{ "P99", TABLE_RIGHT, "p99_ms", format_ms },
	{ "WORST", TABLE_RIGHT, "worst_ms", format_ms },
	{ NULL },
};

/* The file that PUT uploads. */
static int make_file(struct err *err)
{
	auto_close int fd = memfd_create("lodge-bench", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0)
		return err_sys(err, errno, "temporary file");
	return steal_fd(&fd);
}

static int run(struct api_cmd *a, struct err *err)
{
	struct bench *b = (struct bench *)a;
	auto_json json_t *rows = json_array(), *body = NULL, *answer = NULL;
	auto_close int fd = -1;
	uint64_t times = TIMES;
	int r = 0;

	if (api_cmd_count_of(a, "--count", b->count, 1, TIMES_MAX, &times, err) < 0)
		return -1;
	snprintf(b->key, sizeof(b->key), "lodge-bench-%d-%lld", (int)getpid(),
		 (long long)clock_wall_ms());
	body = json_pack("{s:s}", "key", b->key);
	b->fd = fd = make_file(err);
	if (fd < 0 || temp_record_new(a, "/v1/sessions", body, &b->session, err) < 0)
		r = -1;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(calls); i++)
		r = measure(b, &calls[i], times, rows, err);
	temp_record_end(&b->session);
	answer = json_pack("{s:O}", "calls", rows);
	return r < 0 ? -1 : api_cmd_write(a, answer, api_cmd_print_answer, err);
}

static const struct cli_option options[] = {
	{ "count", 0, "N", CLI_TEXT, offsetof(struct bench, count), "requests of each kind (50)" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_bench = {
	.name = "bench",
	.usage = "[--count N]",
	.summary = "measure the speed of the service",
	.options = options,
	.more = "Works in a temporary session, which is deleted afterwards.\n",
	.size = sizeof(struct bench),
	.run = run,
	.rows = "calls",
	.fields = fields,
};
