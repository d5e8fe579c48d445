/* SPDX-License-Identifier: Apache-2.0 */
/* lodge bench: how fast this service answers, from here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/session/temp_session.h"

enum { TIMES = 50, TIMES_MAX = 10000, FILE_BYTES = 4096 };

DEFINE_AUTO(struct client_stream *, client_close);

struct bench {
	struct api_cmd *a;
	const char *id;
	int fd; /* of the file that is written */
};

/* ---- what is measured ------------------------------------------------------------------------ */

static int do_status(struct bench *b, struct err *err)
{
	return api_cmd_call(b->a, "GET", NULL, NULL, err, "/v1/sessions/%s", b->id);
}

static int do_enter(struct bench *b, struct err *err)
{
	auto_json json_t *body = json_pack("{s:s}", "key", b->a->key);

	return client_call(b->a->client, "POST", "/v1/sessions", body, NULL, err);
}

static int do_exec(struct bench *b, struct err *err)
{
	auto_json json_t *body = json_pack("{s:[s]}", "argv", "/bin/true"), *answer = NULL;

	if (api_cmd_call(b->a, "POST", body, &answer, err, "/v1/sessions/%s/exec", b->id) < 0)
		return -1;
	return api_cmd_number(answer, "exit_code") == 0
		       ? 0
		       : err_set(err, ERR_INTERNAL, "/bin/true failed inside");
}

static int do_write(struct bench *b, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[ASK_PATH];
	struct client_request rq = {
		.method = "PUT", .path = path, .body_fd = b->fd, .has_body_fd = true
	};

	if (lseek(b->fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "lseek");
	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/files/bench", b->id) < 0)
		return -1;
	return client_open(b->a->client, &rq, &s, err);
}

static int do_read(struct bench *b, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char path[ASK_PATH], buf[FILE_BYTES];
	struct client_request rq = { .method = "GET", .path = path };
	ssize_t n;

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/files/bench", b->id) < 0 ||
	    client_open(b->a->client, &rq, &s, err) < 0)
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

static int measure(struct bench *b, const char *name, int (*one)(struct bench *, struct err *),
		   uint64_t times, json_t *rows, struct err *err)
{
	auto_free int64_t *ns = calloc(times, sizeof(*ns));
	json_t *row;

	if (!ns)
		return err_sys(err, ENOMEM, "bench");
	for (uint64_t i = 0; i < times; i++) {
		int64_t began = clock_mono_ns();

		if (one(b, err) < 0)
			return err_ctx(err, "%s", name);
		ns[i] = clock_mono_ns() - began;
	}
	qsort(ns, times, sizeof(*ns), by_size);
	row = json_pack("{s:s, s:I, s:f, s:f, s:f}", "name", name, "count", (json_int_t)times,
			"median_ms", to_ms(ns[times / 2]), "p99_ms",
			to_ms(ns[(times * 99 - 1) / 100]), "worst_ms", to_ms(ns[times - 1]));
	return json_array_append_new(rows, row) < 0 ? err_sys(err, ENOMEM, "bench") : 0;
}

static void say(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column columns[] = { { "CALL", 0 },
							    { "TIMES", TABLE_RIGHT },
							    { "MEDIAN", TABLE_RIGHT },
							    { "P99", TABLE_RIGHT },
							    { "WORST", TABLE_RIGHT } };
	static const char *const times[] = { "median_ms", "p99_ms", "worst_ms" };
	struct text_table t;
	json_t *row;
	size_t i;

	(void)a;
	text_table_init(&t, columns, ARRAY_LEN(columns));
	json_array_foreach (json_object_get(answer, "calls"), i, row) {
		text_table_add(&t, api_cmd_text(row, "name"));
		text_table_addf(&t, "%lld", (long long)api_cmd_number(row, "count"));
		for (size_t k = 0; k < ARRAY_LEN(times); k++)
			text_table_addf(&t, "%.2f ms",
					json_real_value(json_object_get(row, times[k])));
	}
	text_table_print(&t, stdout);
}

static int measure_all(struct bench *b, uint64_t times, json_t *rows, struct err *err)
{
	if (measure(b, "status", do_status, times, rows, err) < 0 ||
	    measure(b, "enter", do_enter, times, rows, err) < 0 ||
	    measure(b, "exec", do_exec, times, rows, err) < 0 ||
	    measure(b, "write 4K", do_write, times, rows, err) < 0 ||
	    measure(b, "read 4K", do_read, times, rows, err) < 0)
		return -1;
	return 0;
}

/* A file of our own, as PUT sends one. */
static int make_file(struct err *err)
{
	static const char zeros[FILE_BYTES];
	FILE *f = tmpfile();
	int fd = f ? dup(fileno(f)) : -1;
	int r = fd < 0 ? -errno : file_write_all(fd, zeros, sizeof(zeros));

	if (f)
		fclose(f);
	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? err_sys(err, -r, "a temporary file") : fd;
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *rows = json_array(), *body = NULL, *answer = NULL;
	auto_fini(temp_session_end) struct temp_session t = { 0 };
	auto_close int fd = -1;
	struct bench b = { .a = a, .id = t.id };
	uint64_t times = TIMES;
	char key[64];

	if (api_cmd_count_of(a, "--count", a->count, 1, TIMES_MAX, &times, err) < 0)
		return -1;
	snprintf(key, sizeof(key), "lodge-bench-%d-%lld", (int)getpid(),
		 (long long)clock_wall_ms());
	a->key = key;
	body = json_pack("{s:s}", "key", key);
	b.fd = fd = make_file(err);
	if (fd < 0 || temp_session_new(a, "/v1/sessions", body, &t, err) < 0 ||
	    measure_all(&b, times, rows, err) < 0)
		return -1;
	answer = json_pack("{s:O}", "calls", rows);
	return api_cmd_write(a, answer, say, err);
}

static const struct cli_option options[] = {
	{ "count", 0, "N", ask_count, "ask so often (default: 50)" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_bench(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge bench",
			 .usage = "[--count N]",
			 .summary =
				 "Measures how fast the service answers, in a session of its own.",
			 .opts = options },
		.run = run,
	};

	return api_cmd_main(&command, argc, argv);
}
