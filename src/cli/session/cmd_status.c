/* SPDX-License-Identifier: Apache-2.0 */
/* lodge status: how the service is, in words. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

enum { LINE = 512 };

static void add_room(struct table *t, const json_t *h)
{
	const json_t *room = json_object_get(json_object_get(h, "parts"), "room");
	int64_t max = ask_number(room, "max");
	char text[LINE], count[HUMAN_TEXT];
	int n;

	n = snprintf(text, sizeof(text), "%lld live", (long long)ask_number(room, "active"));
	if (max > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " of at most %lld",
			      (long long)max);
	snprintf(text + n, sizeof(text) - (size_t)n, ", %lld idle, %s waiting for one",
		 (long long)ask_number(room, "idle"),
		 human_count(ask_number(room, "waiting"), "caller", NULL, count));
	say_line(t, "sandboxes", text);
	snprintf(text, sizeof(text), "%lld ready (usually %lld)",
		 (long long)ask_number(h, "pool.available"),
		 (long long)ask_number(h, "config.pool_target"));
	say_line(t, "pool", text);
}

static void add_trouble(struct table *t, const json_t *h)
{
	const json_t *last = json_object_get(h, "last_error");
	char text[LINE], when[64];

	say_line(t, "reason", ask_text(h, "reason"));
	say_line(t, "starting", ask_text(h, "starting.message"));
	say_line(t, "start error", ask_text(h, "starting.error"));
	say_line(t, "keeper", ask_text(h, "parts.keeper.error"));
	if (!json_is_object(last))
		return;
	snprintf(text, sizeof(text), "%s at %s, %lld since the start", ask_text(last, "code"),
		 say_time(ask_number(last, "at"), when, sizeof(when)),
		 (long long)ask_number(last, "count"));
	say_line(t, "last error", text);
}

static void say(struct ask *a, const json_t *h)
{
	const char *status = ask_text(h, "status");
	char span[HUMAN_TEXT];
	struct table t;

	table_init(&t, say_lines, ARRAY_LEN(say_lines));
	say_line(&t, "lodged", client_url(a->client));
	say_line(&t, "status", status);
	table_tint(&t, strcmp(status, "ok") == 0 ? TINT_GOOD : TINT_BAD);
	add_trouble(&t, h);
	say_line(&t, "version", ask_text(h, "version"));
	say_line(&t, "up", human_span(ask_number(h, "uptime_seconds") * 1000, span));
	add_room(&t, h);
	say_line(&t, "policies",
		 ask_is(h, "policy_enforcement", "landlock")
			 ? "the kernel sees to what commands may execute (Landlock)"
			 : "advice only: this kernel has no Landlock");
	if (json_is_true(json_object_get(h, "insecure_no_auth")))
		say_line(&t, "warning", "requests without a key are taken");
	table_print(&t, stdout);
}

static int run(struct ask *a, struct err *err)
{
	auto_json json_t *h = NULL;

	if (client_call(a->client, "GET", "/health", NULL, &h, err) < 0 ||
	    ask_say(a, h, say, err) < 0)
		return -1;
	return ask_is(h, "status", "ok") ? 0 : ASK_FAILED;
}

static const struct opt options[] = { ASK_OPTIONS, { NULL } };

int cmd_status(int argc, char **argv)
{
	static const struct ask_command command = {
		.opt = { .name = "lodge status",
			 .usage = "[--json]",
			 .summary = "Says how the service is.",
			 .opts = options,
			 .more = "Exit status: 0 all is well, 1 it is not, 125 nobody answers.\n" },
		.prompt = true,
		.run = run,
	};

	return ask_main(&command, argc, argv);
}
