/* SPDX-License-Identifier: Apache-2.0 */
/* lodge show: all that is known of one session. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

enum { LAST_COMMANDS = 10, LINE = 512 };

/* Record, stats and commands as one object. What a sleeping session has none of is null. */
static int gather(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	auto_json json_t *answer = NULL, *stats = NULL, *list = NULL;
	json_t *execs = json_array();
	struct err ignored;
	char path[ASK_PATH];
	size_t n;

	if (api_cmd_call(a, "GET", NULL, &answer, err, "/v1/sessions/%s", ref) < 0 ||
	    client_path(path, sizeof(path), err, "/v1/sessions/%s/execs?limit=1000", ref) < 0 ||
	    client_list(a->client, path, "execs", &list, err) < 0) {
		json_decref(execs);
		return -1;
	}
	if (api_cmd_is(answer, "session.runtime", "live"))
		(void)api_cmd_call(a, "GET", NULL, &stats, &ignored, "/v1/sessions/%s/stats", ref);
	n = json_array_size(list);
	for (size_t i = n > LAST_COMMANDS ? n - LAST_COMMANDS : 0; i < n; i++)
		json_array_append(execs, json_array_get(list, i));
	json_object_set(answer, "stats", stats ? json_object_get(stats, "stats") : json_null());
	json_object_set_new(answer, "execs", execs);
	*ret = steal_ptr(&answer);
	return 0;
}

/* ---- in words -------------------------------------------------------------------------------- */

static void add_time(struct text_table *t, const char *name, int64_t ms)
{
	char text[LINE];

	print_line(t, name, print_when(ms, text, sizeof(text)));
}

/* "hibernates in 12m, after 30m without use"; `at` negative: no time is set now. */
static void add_end(struct text_table *t, const char *name, bool destroys, int64_t at,
		    const char *why)
{
	char text[LINE], in[HUMAN_TEXT] = "";

	if (at >= 0)
		human_span(at - clock_wall_ms(), in);
	snprintf(text, sizeof(text), "%s%s%s%s %s", destroys ? "is destroyed" : "hibernates",
		 *in ? " in " : "", in, *in ? "," : "", why);
	print_line(t, name, text);
}

static void add_ends(struct text_table *t, const json_t *s)
{
	char why[LINE], span[HUMAN_TEXT];

	snprintf(why, sizeof(why), "after %s without use",
		 human_span(api_cmd_number(s, "idle_timeout_ms"), span));
	add_end(t, "when idle", api_cmd_is(s, "on_idle", "destroy"),
		api_cmd_number(s, "hibernate_at"), why);
	snprintf(why, sizeof(why), "when its sandbox is %s old",
		 human_span(api_cmd_number(s, "max_lifetime_ms"), span));
	add_end(t, "when old", api_cmd_is(s, "on_expire", "destroy"),
		api_cmd_number(s, "expires_at"), why);
}

static void add_limits(struct text_table *t, const json_t *s)
{
	const json_t *limits = json_object_get(s, "limits");
	char text[LINE], memory[HUMAN_TEXT], disk[HUMAN_TEXT], count[HUMAN_TEXT];
	double cpus = json_number_value(json_object_get(limits, "cpus"));
	int n;

	n = snprintf(text, sizeof(text), "memory %s, disk %s, %s",
		     human_bytes((uint64_t)api_cmd_number(limits, "memory_bytes"), memory),
		     human_bytes((uint64_t)api_cmd_number(limits, "disk_bytes"), disk),
		     human_count(api_cmd_number(limits, "pids"), "process", "processes", count));
	if (cpus > 0)
		snprintf(text + n, sizeof(text) - (size_t)n, ", %g processor%s", cpus,
			 cpus == 1 ? "" : "s");
	print_line(t, "limits", text);
}

static void add_stats(struct text_table *t, const json_t *stats)
{
	char text[LINE], now[HUMAN_TEXT], peak[HUMAN_TEXT], disk[HUMAN_TEXT] = "?";
	char count[HUMAN_TEXT];
	int64_t most = api_cmd_number(stats, "memory_peak_bytes"),
		kept = api_cmd_number(stats, "disk_bytes");

	if (!json_is_object(stats))
		return;
	if (kept >= 0)
		human_bytes((uint64_t)kept, disk);
	snprintf(text, sizeof(text), "memory %s (most %s), disk %s, %s, %.2f s of processor",
		 human_bytes((uint64_t)api_cmd_number(stats, "memory_bytes"), now),
		 most < 0 ? "?" : human_bytes((uint64_t)most, peak), disk,
		 human_count(api_cmd_number(stats, "pids"), "process", "processes", count),
		 (double)api_cmd_number(stats, "cpu_us") / 1e6);
	print_line(t, "uses", text);
	if (api_cmd_number(stats, "oom_kills") > 0) {
		snprintf(text, sizeof(text), "%s ended for want of memory",
			 human_count(api_cmd_number(stats, "oom_kills"), "process", "processes",
				     count));
		print_line(t, "trouble", text);
	}
}

static void say_record(const json_t *answer)
{
	const json_t *s = json_object_get(answer, "session");
	char text[LINE];
	struct text_table t;

	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "session", api_cmd_text(s, "id"));
	print_line(&t, "key", api_cmd_text(s, "key"));
	print_line(&t, "thread", api_cmd_text(s, "thread"));
	print_line(&t, "user", api_cmd_text(s, "user"));
	print_line(&t, "project", api_cmd_text(s, "project"));
	print_line(&t, "fragment", api_cmd_text(s, "fragment"));
	print_line(&t, "template", api_cmd_text(s, "template"));
	print_line(&t, "policy", api_cmd_text(s, "policy"));
	print_line(&t, "state", print_state(s));
	text_table_tint(&t, print_state_tint(s));
	print_line(&t, "because", print_cause(json_object_get(s, "cause"), text, sizeof(text)));
	print_line(&t, "sandbox", api_cmd_text(s, "sandbox"));
	print_line(&t, "snapshot", api_cmd_text(s, "snapshot"));
	add_time(&t, "created", api_cmd_number(s, "created_at"));
	add_time(&t, "started", api_cmd_number(s, "started_at"));
	add_time(&t, "last used", api_cmd_number(s, "last_activity_at"));
	add_ends(&t, s);
	add_limits(&t, s);
	add_stats(&t, json_object_get(answer, "stats"));
	text_table_print(&t, stdout);
}

static void say(struct api_cmd *a, const json_t *answer)
{
	const json_t *execs = json_object_get(answer, "execs");

	(void)a;
	say_record(answer);
	if (!json_array_size(execs))
		return;
	putchar('\n');
	print_execs(execs);
}

static int run(struct api_cmd *a, struct err *err)
{
	return api_cmd_each(a, gather, say, err);
}

static const struct cli_option options[] = { ASK_OPTIONS, { NULL } };

static const struct api_cmd_command command = {
	.opt = { .name = "lodge show",
		 .usage = "SESSION...",
		 .summary = "Shows a session: its record, what it uses, its last commands.",
		 .opts = options },
	.least = 1,
	.most = -1,
	.prompt = true,
	.run = run,
};

int cmd_show(int argc, char **argv)
{
	return api_cmd_main(&command, argc, argv);
}
