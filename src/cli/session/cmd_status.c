/* SPDX-License-Identifier: Apache-2.0 */
/* lodge status: how the service is, in words. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

enum { LINE = 512 };

static void add_room(struct text_table *t, const json_t *h)
{
	const json_t *room = json_object_get(json_object_get(h, "parts"), "room");
	int64_t max = api_cmd_number(room, "max");
	char text[LINE], count[HUMAN_TEXT];
	int n;

	n = snprintf(text, sizeof(text), "%lld live", (long long)api_cmd_number(room, "active"));
	if (max > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " of at most %lld",
			      (long long)max);
	snprintf(text + n, sizeof(text) - (size_t)n, ", %lld idle, %s waiting for one",
		 (long long)api_cmd_number(room, "idle"),
		 human_count(api_cmd_number(room, "waiting"), "caller", NULL, count));
	print_line(t, "sandboxes", text);
	snprintf(text, sizeof(text), "%lld ready (usually %lld)",
		 (long long)api_cmd_number(h, "pool.available"),
		 (long long)api_cmd_number(h, "config.pool_target"));
	print_line(t, "pool", text);
}

static void add_trouble(struct text_table *t, const json_t *h)
{
	const json_t *last = json_object_get(h, "last_error");
	char text[LINE], when[64];

	print_line(t, "reason", api_cmd_text(h, "reason"));
	print_line(t, "starting", api_cmd_text(h, "starting.message"));
	print_line(t, "start error", api_cmd_text(h, "starting.error"));
	print_line(t, "keeper", api_cmd_text(h, "parts.keeper.error"));
	if (!json_is_object(last))
		return;
	snprintf(text, sizeof(text), "%s at %s, %lld since the start", api_cmd_text(last, "code"),
		 print_when(api_cmd_number(last, "at"), when, sizeof(when)),
		 (long long)api_cmd_number(last, "count"));
	print_line(t, "last error", text);
}

static void say(struct api_cmd *a, const json_t *h)
{
	const char *status = api_cmd_text(h, "status");
	char span[HUMAN_TEXT];
	struct text_table t;

	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "lodged", client_url(a->client));
	print_line(&t, "status", status);
	text_table_tint(&t, strcmp(status, "ok") == 0 ? TINT_GOOD : TINT_BAD);
	add_trouble(&t, h);
	print_line(&t, "version", api_cmd_text(h, "version"));
	print_line(&t, "up", human_span(api_cmd_number(h, "uptime_seconds") * 1000, span));
	add_room(&t, h);
	print_line(&t, "policies",
		   api_cmd_is(h, "policy_enforcement", "landlock")
			   ? "the kernel sees to what commands may execute (Landlock)"
			   : "advice only: this kernel has no Landlock");
	if (json_is_true(json_object_get(h, "insecure_no_auth")))
		print_line(&t, "warning", "requests without a key are taken");
	text_table_print(&t, stdout);
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *h = NULL;

	if (client_call(a->client, "GET", "/health", NULL, &h, err) < 0 ||
	    api_cmd_write(a, h, say, err) < 0)
		return -1;
	return api_cmd_is(h, "status", "ok") ? 0 : ASK_FAILED;
}

static const struct cli_option options[] = { ASK_OPTIONS, { NULL } };

int cmd_status(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge status",
			 .usage = "[--json]",
			 .summary = "Says how the service is.",
			 .opts = options,
			 .more = "Exit status: 0 all is well, 1 it is not, 125 nobody answers.\n" },
		.prompt = true,
		.run = run,
	};

	return api_cmd_main(&command, argc, argv);
}
