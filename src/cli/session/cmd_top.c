/* SPDX-License-Identifier: Apache-2.0 */
/* lodge top: what sandboxes use, updated every second. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"
#include "cli/core/terminal.h"

enum { EVERY_MS = 1000, ONCE_MS = 300, SILENT_MS = 10000, CTRL_C = 3, QUIT = 1 };

struct top_opts {
	struct api_cmd a;
	bool once;
};

static double cpu_of(const json_t *s)
{
	return json_real_value(json_object_get(s, "cpu_percent"));
}

static const char *format_cpu(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	(void)path;
	snprintf(buf, FIELD_TEXT, "%.1f", cpu_of(s));
	return buf;
}

static const struct field fields[] = {
	{ "SESSION", TABLE_SHRINK, "id", field_key },
	{ "USER", TABLE_SHRINK, "user" },
	{ "CPU%", TABLE_RIGHT, "cpu_percent", format_cpu },
	{ "MEMORY", TABLE_RIGHT, "stats.memory_bytes", field_bytes },
	{ "PIDS", TABLE_RIGHT, "stats.pids", field_count },
	{ "DISK", TABLE_RIGHT, "stats.disk_bytes", field_bytes },
	{ "IDLE", TABLE_RIGHT, "last_activity_at", field_age },
	{ "STATE", 0, "state", field_state, print_state_tint },
	{ NULL },
};

static volatile sig_atomic_t over;

static void stop(int signo)
{
	(void)signo;
	over = 1;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* CPU time since the last sample, relative to the time between both. */
static double share(const json_t *before, const json_t *now)
{
	const json_t *b = json_object_get(before, member_text(now, "id"));
	int64_t us = member_number(now, "at_us") - member_number(b, "at_us");
	int64_t used = member_number(now, "stats.cpu_us") - member_number(b, "stats.cpu_us");

	return b && us > 0 && used > 0 ? 100.0 * (double)used / (double)us : 0;
}

/* Adds a session with its stats, unless its sandbox just ended. */
static void sample_session(struct api_cmd *a, json_t *s, const json_t *before, json_t *ret)
{
	auto_json json_t *stats = NULL;
	struct err ignored;

	if (api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats",
			 member_text(s, "id")) < 0)
		return;
	json_object_set(s, "stats", json_object_get(stats, "stats"));
	json_object_set_new(s, "at_us", json_integer(clock_mono_us()));
	json_object_set_new(s, "cpu_percent", json_real(share(before, s)));
	json_object_set(ret, member_text(s, "id"), s);
}

/* All sessions by id; `before` may be NULL. */
static int sample(struct api_cmd *a, const json_t *before, json_t **ret, struct err *err)
{
	auto_json json_t *list = NULL, *now = json_object();
	json_t *s;
	size_t i;

	if (client_list(a->client, "/v1/sessions?state=active&limit=1000", "sessions", &list, err) <
	    0)
		return -1;
	json_array_foreach (list, i, s) {
		sample_session(a, s, before, now);
	}
	*ret = steal_ptr(&now);
	return 0;
}

/* A thread takes samples, so that a service that does not respond cannot keep the user from
 * quitting. It may still run at exit. */
static struct sampler {
	struct api_cmd *a;
	const json_t *before;
	json_t *now;
	struct err err;
	int r, ends[2]; /* of a pipe: receives a byte when the sample is done */
	bool busy;
} sampler;

static void *take_sample(void *arg)
{
	struct sampler *l = arg;

	l->r = sample(l->a, l->before, &l->now, &l->err);
	return write(l->ends[1], "", 1) == 1 ? l : NULL;
}

/* Starts no second sample before the first is answered. */
static int start_sample(struct api_cmd *a, const json_t *before, struct err *err)
{
	pthread_t thread;
	int r;

	if (sampler.busy)
		return 0;
	if (!sampler.a && pipe2(sampler.ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	sampler.a = a;
	sampler.before = before;
	a->threads = sampler.busy = true;
	r = pthread_create(&thread, NULL, take_sample, &sampler);
	sampler.busy = r == 0;
	return r ? err_sys(err, r, "thread") : pthread_detach(thread);
}

static bool is_quit_key(void)
{
	char key = 0;

	return read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == CTRL_C;
}

/* QUIT: the user quits; only if keys are read. */
static int wait_for_sample(struct api_cmd *a, const json_t *before, bool keys, json_t **ret,
			   struct err *err)
{
	struct pollfd p[] = { { .events = POLLIN },
			      { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN } };
	char done;
	int n;

	if (start_sample(a, before, err) < 0)
		return -1;
	p[0].fd = sampler.ends[0];
	do {
		n = poll(p, ARRAY_LEN(p), SILENT_MS);
		if (over || (n > 0 && p[1].revents && is_quit_key()))
			return QUIT;
	} while (n > 0 && !p[0].revents);
	if (n <= 0 || read(sampler.ends[0], &done, 1) != 1) {
		err_set(err, ERR_UNAVAILABLE, "%.120s does not respond", client_url(a->client));
		err->sys = ETIMEDOUT;
		return -1;
	}
	sampler.busy = false;
	if (sampler.r == 0)
		*ret = sampler.now;
	*err = sampler.err;
	return sampler.r;
}

/* By CPU, then memory, then id, so that lines keep their places. */
static int by_use(const void *x, const void *y)
{
	const json_t *a = *(json_t *const *)x, *b = *(json_t *const *)y;
	int64_t m = member_number(a, "stats.memory_bytes"),
		n = member_number(b, "stats.memory_bytes");

	if (cpu_of(a) != cpu_of(b))
		return cpu_of(a) < cpu_of(b) ? 1 : -1;
	if (m != n)
		return m < n ? 1 : -1;
	return strcmp(member_text(a, "id"), member_text(b, "id"));
}

static json_t *sorted(json_t *now)
{
	json_t *out = json_array(), *s;
	const char *id;

	json_object_foreach (now, id, s) {
		json_array_append(out, s);
	}
	(void)member_sort(out, by_use);
	return out;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void draw(struct api_cmd *a, json_t *now)
{
	auto_json json_t *list = sorted(now);
	struct field_style how = { .colours = human_colours(stdout), .end = "\033[K\r\n" };
	char clean[128], count[HUMAN_TEXT];
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	how.width = cols;
	how.rows = rows > 4 ? rows - 4 : 1;
	human_clean(client_url(a->client), clean, sizeof(clean));
	printf("\033[H%.*s  %s  (press q to quit)\033[K\r\n\033[K\r\n",
	       (int)human_fit(clean, cols > 40 ? cols - 40 : 1), clean,
	       human_count((int64_t)json_array_size(list), "sandbox", "sandboxes", count));
	field_print_table_as(fields, list, stdout, &how);
	fputs("\033[J", stdout);
	fflush(stdout);
}

/* True: the user quits. */
static bool pause_for(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, ms) <= 0 ? over : is_quit_key();
}

/* Shows an error in the first line, above the last sample. */
static void draw_error(const struct err *err)
{
	char clean[sizeof(err->msg)];
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	human_clean(err->msg, clean, sizeof(clean));
	printf("\033[H%.*s\033[K", (int)human_fit(clean, cols), clean);
	fflush(stdout);
}

/* Keeps going while the service restarts. */
static int watch(struct api_cmd *a, json_t *now, struct err *err)
{
	json_t *before = NULL;
	int r = 0;

	do {
		if (r < 0) {
			draw_error(err);
		} else {
			draw(a, now);
			json_decref(before);
			before = now;
		}
		if (pause_for(EVERY_MS)) {
			r = 0;
			break;
		}
		r = wait_for_sample(a, before, true, &now, err);
	} while (r == 0 || (r < 0 && err->code == ERR_UNAVAILABLE));
	return r < 0 ? -1 : 0; /* `before` may be in use until the end */
}

static int run_screen(struct api_cmd *a, struct err *err)
{
	struct sigaction act = { .sa_handler = stop };
	json_t *now = NULL;
	int r;

	if (wait_for_sample(a, NULL, false, &now, err) < 0)
		return -1;
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	terminal_raw(STDIN_FILENO);
	fputs("\033[?1049h\033[?25l\033[H\033[J", stdout);
	r = watch(a, now, err);
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	terminal_restore();
	return r;
}

static int run_once(struct api_cmd *a, struct err *err)
{
	auto_json json_t *now = NULL, *list = NULL, *answer = NULL;
	json_t *before = NULL; /* may be in use until the end */

	if (wait_for_sample(a, NULL, false, &before, err) < 0)
		return -1;
	(void)poll(NULL, 0, ONCE_MS);
	if (wait_for_sample(a, before, false, &now, err) < 0)
		return -1;
	list = sorted(now);
	answer = json_pack("{s:O}", "sessions", list);
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}

static int run(struct api_cmd *a, struct err *err)
{
	if (((struct top_opts *)a)->once || a->json || !isatty(STDOUT_FILENO) ||
	    !isatty(STDIN_FILENO))
		return run_once(a, err);
	return run_screen(a, err);
}

static const struct cli_option options[] = {
	{ "once", '1', NULL, CLI_FLAG, offsetof(struct top_opts, once),
	  "print one table and exit, as without a terminal" },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_top = {
	.name = "top",
	.usage = "[--once]",
	.summary = "watch what sandboxes use",
	.options = options,
	.more = "Press q to quit. 100 CPU% is one core.\n",
	.size = sizeof(struct top_opts),
	.run = run,
	.rows = "sessions",
	.fields = fields,
};
