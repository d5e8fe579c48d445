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
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"
#include "cli/core/terminal.h"

enum { EVERY_MS = 1000, ONCE_MS = 300, SILENT_MS = 10000, CTRL_C = 3, QUIT = 1 };

struct top_opts {
	struct api_cmd a;
	bool once;
};

static const char *format_cpu(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const json_t *share = member_get(s, path);

	snprintf(buf, FIELD_TEXT, "%.1f", json_number_value(share));
	return json_is_number(share) ? buf : "-";
}

/* A limit that the host does not enforce is none. */
static const char *format_limit(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	return member_true(s, "usage.enforced") ? field_bytes(s, path, buf) : "-";
}

static const struct field fields[] = {
	{ "SESSION", TABLE_SHRINK, "id", print_session_key },
	{ "USER", TABLE_SHRINK, "user" },
	{ "CPU%", TABLE_RIGHT, "usage.cpu_pct", format_cpu },
	{ "MEMORY", TABLE_RIGHT, "usage.memory", field_bytes },
	{ "PIDS", TABLE_RIGHT, "usage.pids", field_count },
	{ "DISK", TABLE_RIGHT, "usage.disk", field_bytes },
	{ "LIMIT", TABLE_RIGHT, "usage.disk_limit", format_limit },
	{ "IDLE", TABLE_RIGHT, "active_at", field_age },
	{ "STATE", 0, "state", print_session_state, print_state_tint },
	{ NULL },
};

static volatile sig_atomic_t over;

static void stop(int signo)
{
	(void)signo;
	over = 1;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static bool is_operand(const char *operand, const json_t *s)
{
	char ref[TARGET_REF];
	struct err ignored;

	if (target_ref(operand, ref, &ignored) < 0)
		return false;
	return strncmp(ref, "key:", 4) == 0 ? member_is(s, "key", ref + 4)
					    : member_is(s, "id", ref);
}

static bool is_wanted(const struct api_cmd *a, const json_t *s)
{
	for (int i = 0; i < a->argc; i++)
		if (is_operand(a->argv[i], s))
			return true;
	return !a->argc;
}

/* Removes other sessions than those on the command line. */
static void filter(const struct api_cmd *a, const json_t *now)
{
	json_t *list = json_object_get(now, "sessions");

	for (size_t i = json_array_size(list); i-- > 0;)
		if (!is_wanted(a, json_array_get(list, i)))
			json_array_remove(list, i);
}

/* Each operand must have a sandbox at the start. */
static int check_found(const struct api_cmd *a, const json_t *now, struct err *err)
{
	json_t *s;
	size_t k;

	for (int i = 0; i < a->argc; i++) {
		bool found = false;

		json_array_foreach (json_object_get(now, "sessions"), k, s)
			found |= is_operand(a->argv[i], s);
		if (!found)
			return err_set(err, ERR_NOT_FOUND,
				       "%.100s: no running sandbox (see lodge ls)", a->argv[i]);
	}
	return 0;
}

/* The service sorts them, and measures the CPU share since the sample before. */
static int sample(struct api_cmd *a, int wait_ms, json_t **ret, struct err *err)
{
	char path[API_PATH];

	snprintf(path, sizeof(path),
		 "/v1/sessions?view=row&state=active&sort=cpu&limit=5000&sample_ms=%d", wait_ms);
	if (client_call(a->client, "GET", path, NULL, ret, err) < 0)
		return -1;
	filter(a, *ret);
	return 0;
}

/* A thread takes samples, so that a service that does not respond cannot keep the user from
 * quitting. It may still run at exit. */
static struct sampler {
	struct api_cmd *a;
	int wait_ms;
	json_t *now;
	struct err err;
	int r, ends[2]; /* of a pipe: receives a byte when the sample is done */
	bool busy;
} sampler;

static void *take_sample(void *arg)
{
	struct sampler *l = arg;

	l->r = sample(l->a, l->wait_ms, &l->now, &l->err);
	return write(l->ends[1], "", 1) == 1 ? l : NULL;
}

/* Starts no second sample before the first is answered. */
static int start_sample(struct api_cmd *a, int wait_ms, struct err *err)
{
	pthread_t thread;
	int r;

	if (sampler.busy)
		return 0;
	if (!sampler.a && pipe2(sampler.ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	sampler.a = a;
	sampler.wait_ms = wait_ms;
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
static int wait_for_sample(struct api_cmd *a, int wait_ms, bool keys, json_t **ret, struct err *err)
{
	struct pollfd p[] = { { .events = POLLIN },
			      { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN } };
	char done;
	int n;

	if (start_sample(a, wait_ms, err) < 0)
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

/* ---- showing --------------------------------------------------------------------------------- */

static void draw(struct api_cmd *a, json_t *now)
{
	const json_t *list = json_object_get(now, "sessions");
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
	int r = 0;

	do {
		if (r < 0) {
			draw_error(err);
		} else {
			draw(a, now);
			json_decref(now);
		}
		if (pause_for(EVERY_MS)) {
			r = 0;
			break;
		}
		r = wait_for_sample(a, 0, true, &now, err);
	} while (r == 0 || (r < 0 && err->code == ERR_UNAVAILABLE));
	return r < 0 ? -1 : 0;
}

static int run_screen(struct api_cmd *a, struct err *err)
{
	struct sigaction act = { .sa_handler = stop };
	json_t *now = NULL;
	int r;

	if (wait_for_sample(a, ONCE_MS, false, &now, err) < 0 || check_found(a, now, err) < 0)
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
	auto_json json_t *answer = NULL;

	if (wait_for_sample(a, ONCE_MS, false, &answer, err) < 0 || check_found(a, answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}

static int run(struct api_cmd *a, struct err *err)
{
	if (((struct top_opts *)a)->once || a->json || !isatty(STDOUT_FILENO) ||
	    !isatty(STDIN_FILENO))
		return run_once(a, err);
	return run_screen(a, err);
}

/* The rows do not name their sandboxes. */
static int check(struct api_cmd *a, struct err *err)
{
	char ref[TARGET_REF];

	for (int i = 0; i < a->argc; i++) {
		if (target_ref(a->argv[i], ref, err) < 0)
			return -1;
		if (strncmp(ref, "sbx_", 4) == 0)
			return api_cmd_misuse(a, err, "%.40s: use the key or the id of its session",
					      ref);
	}
	return 0;
}

static const struct cli_option options[] = {
	{ "once", '1', NULL, CLI_FLAG, offsetof(struct top_opts, once),
	  "print one table and exit, as without a terminal" },
	{ "no-stream", 0, NULL, CLI_FLAG, offsetof(struct top_opts, once), "the same",
	  .old = true },
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_top = {
	.name = "top",
	.usage = "[--once] [SESSION...]",
	.summary = "watch what sandboxes use",
	.options = options,
	.more = "Press q to quit. 100 CPU% is one core.\n",
	.size = sizeof(struct top_opts),
	.most = -1,
	.check = check,
	.run = run,
	.rows = "sessions",
	.fields = fields,
};
