/* SPDX-License-Identifier: Apache-2.0 */
/* lodge users show, quota: one user, and what that one may have. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "cli/core/print_session.h"
#include "cli/admin/users.h"

enum { LINE = 512 };

static int parse_count(const char *what, const char *text, uint64_t *ret, struct err *err)
{
	return units_parse_count(what, text, 0, INT64_MAX, ret, err);
}

static char *print_count(uint64_t n, char buf[HUMAN_TEXT])
{
	snprintf(buf, HUMAN_TEXT, "%llu", (unsigned long long)n);
	return buf;
}

static char *print_time(uint64_t ms, char buf[HUMAN_TEXT])
{
	return human_span((int64_t)ms, buf);
}

/* What there are quotas of; `used` is the member of the usage. 0 is no limit. */
static const struct {
	const char *option, *member, *used;
	size_t given; /* in struct api_cmd */
	int (*parse)(const char *what, const char *text, uint64_t *ret, struct err *err);
	char *(*print)(uint64_t n, char buf[HUMAN_TEXT]);
} parts[] = {
	{ "--sandboxes", "sandboxes", "active", offsetof(struct api_cmd, sandboxes), parse_count,
	  print_count },
	{ "--memory", "memory_bytes", "memory_bytes", offsetof(struct api_cmd, memory),
	  units_parse_bytes, human_bytes },
	{ "--disk", "disk_bytes", "disk_bytes", offsetof(struct api_cmd, disk), units_parse_bytes,
	  human_bytes },
	{ "--cpu", "cpu_ms", "cpu_ms", offsetof(struct api_cmd, cpu), units_parse_ms, print_time },
};

static const char *given(const struct api_cmd *a, size_t i)
{
	return *(const char *const *)((const char *)a + parts[i].given);
}

/* ---- saying ---------------------------------------------------------------------------------- */

static uint64_t number(const json_t *o, const char *name)
{
	int64_t n = api_cmd_number(o, name);

	return n > 0 ? (uint64_t)n : 0;
}

static void add_quota(struct text_table *t, const json_t *answer)
{
	const json_t *quota = json_object_get(answer, "quota"),
		     *usage = json_object_get(answer, "usage");
	char line[LINE], used[HUMAN_TEXT], most[HUMAN_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		uint64_t limit = number(quota, parts[i].member);

		parts[i].print(number(usage, parts[i].used), used);
		snprintf(line, sizeof(line), "%s%s%s", used, limit ? " of " : ", no limit",
			 limit ? parts[i].print(limit, most) : "");
		print_line(t, parts[i].option + 2, line);
	}
}

static void say_quota(struct api_cmd *a, const json_t *answer)
{
	struct text_table t;

	(void)a;
	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	add_quota(&t, answer);
	text_table_print(&t, stdout);
}

static void say_user(struct api_cmd *a, const json_t *answer)
{
	const json_t *u = json_object_get(answer, "user"), *s = json_object_get(u, "session");
	char text[LINE];
	struct text_table t;

	(void)a;
	text_table_init(&t, say_lines, ARRAY_LEN(say_lines));
	print_line(&t, "user", api_cmd_text(u, "id"));
	print_line(&t, "name", api_cmd_text(u, "name"));
	print_line(&t, "email", api_cmd_text(u, "email"));
	print_line(&t, "project", api_cmd_text(u, "project"));
	print_line(&t, "fragment", api_cmd_text(u, "fragment"));
	print_line(&t, "session", json_is_object(s) ? print_name(s, text, sizeof(text)) : "");
	print_line(&t, "known since",
		   print_when(api_cmd_number(u, "created_at"), text, sizeof(text)));
	print_line(&t, "sessions", print_count(number(answer, "usage.sessions"), text));
	add_quota(&t, answer);
	text_table_print(&t, stdout);
}

/* ---- show ------------------------------------------------------------------------------------ */

static int run_show(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;

	if (api_cmd_call(a, "GET", NULL, &answer, err, "/v1/users/%s", a->argv[0]) < 0)
		return -1;
	return api_cmd_write(a, answer, say_user, err);
}

static const struct cli_option show_options[] = { ASK_OPTIONS, { NULL } };

const struct api_cmd_command users_show = {
	.opt = { .name = "lodge users show",
		 .usage = "USER",
		 .summary = "Shows a user: where the user is, what that one has and may have.",
		 .opts = show_options },
	.least = 1,
	.most = 1,
	.prompt = true,
	.run = run_show,
};

/* ---- quota ----------------------------------------------------------------------------------- */

static int put(struct api_cmd *a, json_t *quota, size_t i, struct err *err)
{
	uint64_t n = 0;

	if (parts[i].parse(parts[i].option, given(a, i), &n, err) < 0) {
		a->wrong = true;
		return -1;
	}
	if (n > INT64_MAX)
		return api_cmd_wrong(a, err, "%s: too much", parts[i].option);
	return json_object_set_new(quota, parts[i].member, json_integer((json_int_t)n));
}

static int unset_one(struct api_cmd *a, json_t *quota, const char *name, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strcmp(parts[i].option + 2, name) == 0)
			return json_object_set_new(quota, parts[i].member, json_integer(0));
	return api_cmd_wrong(
		a, err,
		"--unset: no \"%.40s\", but sandboxes, memory, disk and cpu, with commas "
		"between them",
		name);
}

/* What the options say, over what there is. */
static int change(struct api_cmd *a, json_t *quota, struct err *err)
{
	auto_free char *list = strdup(a->unset ? a->unset : "");
	char *rest = list, *name;

	while (rest && (name = strsep(&rest, ",")))
		if (*name && unset_one(a, quota, name, err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (given(a, i) && put(a, quota, i, err) < 0)
			return -1;
	return 0;
}

/* Before anybody is asked: what is said is also right. */
static int check_quota(struct api_cmd *a, struct err *err)
{
	auto_json json_t *ignored = json_object();

	return change(a, ignored, err);
}

static bool says_any(const struct api_cmd *a)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (given(a, i))
			return true;
	return a->unset;
}

/* The service takes it as a whole. */
static int run_quota(struct api_cmd *a, struct err *err)
{
	auto_json json_t *now = NULL, *answer = NULL;
	json_t *quota;
	char path[ASK_PATH];

	if (client_path(path, sizeof(path), err, "/v1/users/%s/quota", a->argv[0]) < 0 ||
	    client_call(a->client, "GET", path, NULL, &now, err) < 0)
		return -1;
	if (!says_any(a))
		return api_cmd_write(a, now, say_quota, err);
	quota = json_object_get(now, "quota");
	if (change(a, quota, err) < 0 ||
	    client_call(a->client, "PUT", path, quota, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_quota, err);
}

static const struct cli_option quota_options[] = {
	{ "sandboxes", 0, "N", ask_sandboxes, "live ones at once" },
	{ "memory", 0, "SIZE", ask_memory, "of the live ones, by their limits" },
	{ "disk", 0, "SIZE", ask_disk, "of all sessions, by their limits" },
	{ "cpu", 0, "TIME", ask_cpu, "processor time, ever: 90s, 2h" },
	{ "unset", 0, "NAMES", ask_unset, "no limit of these, with commas between them" },
	ASK_OPTIONS,
	{ NULL },
};

const struct api_cmd_command users_quota = {
	.opt = { .name = "lodge users quota",
		 .usage = "[OPTION...] USER",
		 .summary = "Shows what a user has and may have, or changes that.",
		 .opts = quota_options,
		 .more = "What is not mentioned stays; 0 is no limit. What the user has already "
			 "stays too.\n" },
	.least = 1,
	.most = 1,
	.prompt = true,
	.check = check_quota,
	.run = run_quota,
};
