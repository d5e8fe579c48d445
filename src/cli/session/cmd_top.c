/* SPDX-License-Identifier: Apache-2.0 */
/* lodge top: what sandboxes use, as it changes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"
#include "cli/core/terminal.h"

enum { EVERY_MS = 1000, ONCE_MS = 300, SILENT_MS = 10000, CTRL_C = 3, LEAVE = 1 };

static const struct text_table_column columns[] = {
	{ "SESSION", TABLE_SHRINK }, { "USER", TABLE_SHRINK }, { "CPU%", TABLE_RIGHT },
	{ "MEMORY", TABLE_RIGHT },   { "PIDS", TABLE_RIGHT },  { "DISK", TABLE_RIGHT },
	{ "IDLE", TABLE_RIGHT },     { "STATE", 0 },
};

static volatile sig_atomic_t over;

static void stop(int signo)
{
	(void)signo;
	over = 1;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* What it used since the last look, by the clock of both looks. */
static double share(const json_t *before, const json_t *now)
{
	const json_t *b = json_object_get(before, api_cmd_text(now, "id"));
	int64_t us = api_cmd_number(now, "at_us") - api_cmd_number(b, "at_us");
	int64_t used = api_cmd_number(now, "stats.cpu_us") - api_cmd_number(b, "stats.cpu_us");

	return b && us > 0 && used > 0 ? 100.0 * (double)used / (double)us : 0;
}

/* One session with its stats; one whose sandbox ended in between is left out. */
static void look_at(struct api_cmd *a, json_t *s, const json_t *before, json_t *ret)
{
	auto_json json_t *stats = NULL;
	struct err ignored;

	if (api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats",
			 api_cmd_text(s, "id")) < 0)
		return;
	json_object_set(s, "stats", json_object_get(stats, "stats"));
	json_object_set_new(s, "at_us", json_integer(clock_mono_us()));
	json_object_set_new(s, "cpu_percent", json_real(share(before, s)));
	json_object_set(ret, api_cmd_text(s, "id"), s);
}

/* By id; `before` may be NULL. */
static int look(struct api_cmd *a, const json_t *before, json_t **ret, struct err *err)
{
	auto_json json_t *list = NULL, *now = json_object();
	json_t *s;
	size_t i;

	if (client_list(a->client, "/v1/sessions?state=active&limit=1000", "sessions", &list, err) <
	    0)
		return -1;
	json_array_foreach (list, i, s) {
		look_at(a, s, before, now);
	}
	*ret = steal_ptr(&now);
	return 0;
}

/* Who says nothing must not keep anybody from leaving: it is asked by a thread, which may stay
 * behind. */
static struct looker {
	struct api_cmd *a;
	const json_t *before;
	json_t *now;
	struct err err;
	int r, ends[2]; /* of a pipe: a byte when it is done */
	bool busy;
} looker;

static void *look_on(void *arg)
{
	struct looker *l = arg;

	l->r = look(l->a, l->before, &l->now, &l->err);
	return write(l->ends[1], "", 1) == 1 ? l : NULL;
}

/* One that did not answer yet is waited for, and not asked again. */
static int begin_look(struct api_cmd *a, const json_t *before, struct err *err)
{
	pthread_t thread;
	int r;

	if (looker.busy)
		return 0;
	if (!looker.a && pipe2(looker.ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	looker.a = a;
	looker.before = before;
	a->threads = looker.busy = true;
	r = pthread_create(&thread, NULL, look_on, &looker);
	looker.busy = r == 0;
	return r ? err_sys(err, r, "thread") : pthread_detach(thread);
}

static bool leaves(void)
{
	char key = 0;

	return read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == CTRL_C;
}

/* LEAVE: somebody wants to, if there are keys to be typed. */
static int look_within(struct api_cmd *a, const json_t *before, bool keys, json_t **ret,
		       struct err *err)
{
	struct pollfd p[] = { { .events = POLLIN },
			      { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN } };
	char done;
	int n;

	if (begin_look(a, before, err) < 0)
		return -1;
	p[0].fd = looker.ends[0];
	do {
		n = poll(p, ARRAY_LEN(p), SILENT_MS);
		if (over || (n > 0 && p[1].revents && leaves()))
			return LEAVE;
	} while (n > 0 && !p[0].revents);
	if (n <= 0 || read(looker.ends[0], &done, 1) != 1) {
		err_set(err, ERR_UNAVAILABLE, "%.120s does not answer", client_url(a->client));
		err->sys = ETIMEDOUT;
		return -1;
	}
	looker.busy = false;
	if (looker.r == 0)
		*ret = looker.now;
	*err = looker.err;
	return looker.r;
}

static double cpu_of(const json_t *s)
{
	return json_real_value(json_object_get(s, "cpu_percent"));
}

/* Most processor first, then most memory, then by name, so that lines do not dance. */
static int by_use(const void *x, const void *y)
{
	const json_t *a = *(json_t *const *)x, *b = *(json_t *const *)y;
	int64_t m = api_cmd_number(a, "stats.memory_bytes"),
		n = api_cmd_number(b, "stats.memory_bytes");

	if (cpu_of(a) != cpu_of(b))
		return cpu_of(a) < cpu_of(b) ? 1 : -1;
	if (m != n)
		return m < n ? 1 : -1;
	return strcmp(api_cmd_text(a, "id"), api_cmd_text(b, "id"));
}

static json_t *sorted(json_t *now)
{
	size_t n = json_object_size(now), i = 0;
	auto_free json_t **items = calloc(n + 1, sizeof(json_t *));
	json_t *out = json_array(), *s;
	const char *id;

	if (!items)
		return out;
	json_object_foreach (now, id, s) {
		items[i++] = s;
	}
	qsort(items, n, sizeof(json_t *), by_use);
	for (i = 0; i < n; i++)
		json_array_append(out, items[i]);
	return out;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void fill(struct text_table *t, const json_t *list)
{
	int64_t now = clock_wall_ms();
	json_t *s;
	size_t i;

	text_table_init(t, columns, ARRAY_LEN(columns));
	json_array_foreach (list, i, s) {
		int64_t last = api_cmd_number(s, "last_activity_at");

		text_table_add(t, api_cmd_called(s));
		text_table_add(t, api_cmd_text(s, "user"));
		text_table_addf(t, "%.1f", cpu_of(s));
		text_table_add_bytes(t, api_cmd_number(s, "stats.memory_bytes"));
		text_table_addf(t, "%lld", (long long)api_cmd_number(s, "stats.pids"));
		text_table_add_bytes(t, api_cmd_number(s, "stats.disk_bytes"));
		text_table_add_span(t, last < 0 ? -1 : now > last ? now - last : 0);
		text_table_add(t, print_state(s));
		text_table_tint(t, print_state_tint(s));
	}
}

static void draw(struct api_cmd *a, json_t *now)
{
	auto_json json_t *list = sorted(now);
	struct text_table_look how = { .colours = human_colours(stdout), .end = "\033[K\r\n" };
	char clean[128], count[HUMAN_TEXT];
	struct text_table t;
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	how.width = cols;
	how.rows = rows > 4 ? rows - 4 : 1;
	human_clean(client_url(a->client), clean, sizeof(clean));
	printf("\033[H%.*s  %s  (q leaves)\033[K\r\n\033[K\r\n",
	       (int)human_fit(clean, cols > 40 ? cols - 40 : 1), clean,
	       human_count((int64_t)json_array_size(list), "sandbox", "sandboxes", count));
	fill(&t, list);
	text_table_print_as(&t, stdout, &how);
	fputs("\033[J", stdout);
	fflush(stdout);
}

/* True: somebody wants to leave. */
static bool pause_for(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, ms) <= 0 ? over : leaves();
}

/* What was there stays on the screen, below why it does not change. */
static void draw_trouble(const struct err *err)
{
	char clean[sizeof(err->msg)];
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	human_clean(err->msg, clean, sizeof(clean));
	printf("\033[H%.*s\033[K", (int)human_fit(clean, cols), clean);
	fflush(stdout);
}

/* A service that is started again is looked at again. */
static int watch(struct api_cmd *a, json_t *now, struct err *err)
{
	json_t *before = NULL;
	int r = 0;

	do {
		if (r < 0) {
			draw_trouble(err);
		} else {
			draw(a, now);
			json_decref(before);
			before = now;
		}
		if (pause_for(EVERY_MS)) {
			r = 0;
			break;
		}
		r = look_within(a, before, true, &now, err);
	} while (r == 0 || (r < 0 && err->code == ERR_UNAVAILABLE));
	return r < 0 ? -1 : 0; /* `before` may be in use until the end */
}

static int live(struct api_cmd *a, struct err *err)
{
	struct sigaction act = { .sa_handler = stop };
	json_t *now = NULL;
	int r;

	if (look_within(a, NULL, false, &now, err) < 0)
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

static int once(struct api_cmd *a, struct err *err)
{
	auto_json json_t *now = NULL, *list = NULL, *answer = NULL;
	json_t *before = NULL; /* may be in use until the end */
	struct timespec gap = { .tv_nsec = ONCE_MS * 1000000L };
	struct text_table t;

	if (look_within(a, NULL, false, &before, err) < 0)
		return -1;
	nanosleep(&gap, NULL);
	if (look_within(a, before, false, &now, err) < 0)
		return -1;
	list = sorted(now);
	if (a->json) {
		answer = json_pack("{s:O}", "sessions", list);
		return api_cmd_write_json(answer, err);
	}
	fill(&t, list);
	text_table_print(&t, stdout);
	return 0;
}

static int run(struct api_cmd *a, struct err *err)
{
	if (a->once || a->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return once(a, err);
	return live(a, err);
}

static const struct cli_option options[] = {
	{ "once", '1', NULL, ask_once, "print one table and leave, as without a terminal" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_top(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge top",
			 .usage = "[--once]",
			 .summary = "Shows what live sandboxes use, every second.",
			 .opts = options,
			 .more = "q leaves. 100 of CPU% is one processor.\n" },
		.run = run,
	};

	return api_cmd_main(&command, argc, argv);
}
