/* SPDX-License-Identifier: Apache-2.0 */
/* lodge status */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"
#include "cli/core/unenforced.h"

static const char *sandboxes(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	const json_t *room = member_get(h, path);
	int64_t max = member_number(room, "max");
	char count[HUMAN_TEXT], most[48] = "";

	if (max > 0)
		snprintf(most, sizeof(most), " of at most %lld", (long long)max);
	snprintf(buf, FIELD_TEXT, "%lld running%s, %lld idle, %s queued",
		 (long long)member_number(room, "active"), most,
		 (long long)member_number(room, "idle"),
		 human_count(member_number(room, "waiting"), "request", NULL, count));
	return buf;
}

static const char *pool(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	snprintf(buf, FIELD_TEXT, "%lld ready (target %lld)", (long long)member_number(h, path),
		 (long long)member_number(h, "config.pool_target"));
	return buf;
}

static const char *disk(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	const json_t *d = member_get(h, path);
	char free[HUMAN_TEXT], total[HUMAN_TEXT], room[HUMAN_TEXT];

	snprintf(buf, FIELD_TEXT, "%s free of %s, %s left for sandboxes",
		 human_bytes(member_number(d, "free_bytes"), free),
		 human_bytes(member_number(d, "total_bytes"), total),
		 human_bytes(member_number(d, "room_bytes"), room));
	return json_is_integer(json_object_get(d, "free_bytes")) ? buf : "";
}

static const char *last_error(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	const json_t *last = json_object_get(h, path);
	const char *message = member_text(last, "message");
	char when[64];

	snprintf(buf, FIELD_TEXT, "%s at %s, %lld since the start: %s", member_text(last, "code"),
		 print_when(member_number(last, "at"), when, sizeof(when)),
		 (long long)member_number(last, "count"),
		 *message ? message : "an admin key shows the message");
	return json_is_object(last) ? buf : "";
}

static const char *uptime(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	return human_span(member_number(h, path) * 1000, buf);
}

/* Sessions have their files on disk, where nothing limits their number: not worth a warning. */
static void add_limits(struct field_table *t, const char *title, json_t *list)
{
	char names[FIELD_TEXT];

	if (!json_is_array(list))
		return;
	if (*unenforced_names(list, names))
		unenforced_add_lines(t, "NOT enforced", list);
	else
		field_add_line(t, title,
			       json_array_size(list) ? "enforced, except inodes" : "enforced");
}

static void add_maximum(char *buf, const char *text)
{
	size_t n = strlen(buf);

	snprintf(buf + n, FIELD_TEXT - n, "%s%s", n ? ", " : "", text);
}

/* What a request for a session may set at most. */
static const char *maximum(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	static const struct {
		const char *name, *of;
	} sizes[] = { { "memory_bytes", "memory" }, { "disk_bytes", "disk" } };
	const json_t *max = member_get(h, path);
	char size[HUMAN_TEXT], text[HUMAN_TEXT + 16];

	*buf = '\0';
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (!json_object_get(max, sizes[i].name))
			continue;
		snprintf(text, sizeof(text), "%s %s",
			 human_bytes((uint64_t)member_number(max, sizes[i].name), size),
			 sizes[i].of);
		add_maximum(buf, text);
	}
	if (json_object_get(max, "cpus")) {
		snprintf(text, sizeof(text), "%g cpus",
			 json_number_value(json_object_get(max, "cpus")));
		add_maximum(buf, text);
	}
	if (json_object_get(max, "pids"))
		add_maximum(buf,
			    human_count(member_number(max, "pids"), "process", "processes", size));
	return buf;
}

static const char *policies(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	(void)buf;
	return member_is(h, path, "landlock") ? "the kernel enforces allowed programs (Landlock)"
					      : "advisory: this kernel has no Landlock";
}

static const char *auth_warning(const json_t *h, const char *path, char buf[FIELD_TEXT])
{
	(void)buf;
	return member_true(h, path) ? "authentication is off: requests need no key" : "";
}

static enum tint status_tint(const json_t *h)
{
	return member_is(h, "status", "ok") ? TINT_GOOD : TINT_BAD;
}

static const struct field fields[] = {
	{ "lodged", 0, "url" },
	{ "status", 0, "status", NULL, status_tint },
	{ "reason", 0, "reason" },
	{ "starting", 0, "starting.message" },
	{ "start error", 0, "starting.error" },
	{ "keeper", 0, "parts.keeper.error" },
	{ "disk error", 0, "disk.reason" },
	{ "last error", 0, "last_error", last_error },
	{ "version", 0, "version" },
	{ "up", 0, "uptime_seconds", uptime },
	{ "sandboxes", 0, "parts.room", sandboxes },
	{ "disk", 0, "disk", disk },
	{ "pool", 0, "pool.available", pool },
	{ "limits", 0, "limits_not_enforced", .lines = add_limits },
	{ "maximum", 0, "limits_max", maximum },
	{ "policies", 0, "policy_enforcement", policies },
	{ "warning", 0, "insecure_no_auth", auth_warning },
	{ NULL },
};

static void print(struct api_cmd *a, const json_t *h)
{
	auto_json json_t *with = json_deep_copy(h);

	json_object_set_new(with, "url", api_cmd_string(client_url(a->client)));
	field_print_record(fields, with);
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *h = NULL;

	if (client_call(a->client, "GET", "/health", NULL, &h, err) < 0 ||
	    api_cmd_write(a, h, print, err) < 0)
		return -1;
	return member_is(h, "status", "ok") ? 0 : CLI_EXIT_REFUSED;
}

const struct command cmd_status = {
	.name = "status",
	.usage = "[--json]",
	.summary = "show service status",
	.options = api_options,
	.more = "Exit status\n"
		"  0    the service is healthy\n"
		"  1    it is not\n"
		"  125  it does not respond\n",
	.prompt = true,
	.run = run,
};
