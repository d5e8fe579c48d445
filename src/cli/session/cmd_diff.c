/* SPDX-License-Identifier: Apache-2.0 */
/* lodge diff: compares the files of a session with a snapshot. The files of the snapshot are listed
 * in a temporary fork. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/api_cmd.h"
#include "cli/session/temp_session.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/* By bytes: compare() needs the same order on both sides. */
static int by_path(const void *x, const void *y)
{
	return strcmp(member_text(*(json_t *const *)x, "path"),
		      member_text(*(json_t *const *)y, "path"));
}

/* A directory that only one side has is empty on the other. */
static int list(struct api_cmd *a, const char *ref, const char *path, json_t **ret, bool *found,
		struct err *err)
{
	char url[API_PATH];

	if (client_path(url, sizeof(url), err, "/v1/sessions/%s/files/%S?list&depth=64&limit=10000",
			ref, path) < 0)
		return -1;
	*found = client_list(a->client, url, "entries", ret, err) == 0;
	if (*found)
		return member_sort(*ret, by_path) < 0 ? err_sys(err, ENOMEM, "files") : 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	*ret = json_array();
	return 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool is_same(const json_t *old, const json_t *new)
{
	static const char *const both[] = { "type", "mode", "target" };

	for (size_t i = 0; i < ARRAY_LEN(both); i++)
		if (strcmp(member_text(old, both[i]), member_text(new, both[i])) != 0)
			return false;
	/* the time and size of a directory change with its entries, which are listed themselves */
	if (member_is(old, "type", "directory"))
		return true;
	return member_number(old, "size") == member_number(new, "size") &&
	       member_number(old, "mtime_ms") == member_number(new, "mtime_ms");
}

static int put(json_t *changes, const char *kind, const json_t *entry, struct err *err)
{
	json_t *one = json_pack("{s:s, s:s, s:s}", "change", kind, "path",
				member_text(entry, "path"), "type", member_text(entry, "type"));

	return one && json_array_append_new(changes, one) == 0 ? 0
							       : err_sys(err, ENOMEM, "changes");
}

/* Merges two sorted lists. */
static int compare(const json_t *old, const json_t *new, json_t *changes, struct err *err)
{
	size_t i = 0, k = 0;

	while (i < json_array_size(old) || k < json_array_size(new)) {
		const json_t *o = json_array_get(old, i), *n = json_array_get(new, k);
		int order = !o	 ? 1
			    : !n ? -1
				 : strcmp(member_text(o, "path"), member_text(n, "path"));

		i += order <= 0;
		k += order >= 0;
		if (order == 0 && is_same(o, n))
			continue;
		if (put(changes,
			order < 0   ? "D"
			: order > 0 ? "A"
				    : "M",
			order < 0 ? o : n, err) < 0)
			return -1;
	}
	return 0;
}

static int compare_at(struct api_cmd *a, const char *ref, const char *older, const char *path,
		      json_t *changes, struct err *err)
{
	auto_json json_t *old = NULL, *new = NULL;
	bool was, is;

	if (list(a, older, path, &old, &was, err) < 0 || list(a, ref, path, &new, &is, err) < 0)
		return -1;
	if (!was && !is)
		return -1; /* err has which */
	return compare(old, new, changes, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print(struct api_cmd *a, const json_t *answer)
{
	bool colours = human_colours(stdout);
	json_t *c;
	size_t i;

	(void)a;
	json_array_foreach (json_object_get(answer, "changes"), i, c) {
		const char *kind = member_text(c, "change");
		enum tint tint = *kind == 'A' ? TINT_GOOD : *kind == 'D' ? TINT_BAD : TINT_WARN;

		if (colours)
			fputs(human_tint(tint), stdout);
		printf("%s%s ", kind, colours ? human_tint_end(tint) : "");
		api_cmd_print("%s%s", member_text(c, "path"),
			      member_is(c, "type", "directory") ? "/" : "");
	}
}

/* With one operand after SESSION that is no snapshot, it is PATH. */
static int parse_operands(struct api_cmd *a, const char *ref, json_t **snapshot, const char **path,
			  struct err *err)
{
	const char *second = a->argc > 1 ? a->argv[1] : NULL;

	*path = a->argc > 2 ? a->argv[2] : "";
	if (api_cmd_find_snapshot(a, ref, second, snapshot, err) == 0)
		return 0;
	if (!second || a->argc != 2 || err->code != ERR_NOT_FOUND || !strpbrk(second, "/."))
		return -1;
	*path = second;
	return api_cmd_find_snapshot(a, ref, NULL, snapshot, err);
}

static int run(struct api_cmd *a, struct err *err)
{
	auto_json json_t *snapshot = NULL, *body = NULL, *changes = json_array(), *answer = NULL;
	auto_fini(temp_session_end) struct temp_session older = { 0 };
	char ref[TARGET_REF], url[API_PATH];
	const char *path;

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    parse_operands(a, ref, &snapshot, &path, err) < 0 ||
	    client_path(url, sizeof(url), err, "/v1/sessions/%s/fork", ref) < 0)
		return -1;
	body = json_pack("{s:O}", "snapshot", json_object_get(snapshot, "id"));
	if (temp_session_new(a, url, body, &older, err) < 0 ||
	    compare_at(a, ref, older.id, path, changes, err) < 0)
		return -1;
	answer = json_pack("{s:O, s:O}", "snapshot", snapshot, "changes", changes);
	return api_cmd_write(a, answer, print, err);
}

const struct command cmd_diff = {
	.name = "diff",
	.usage = "SESSION [SNAPSHOT] [PATH]",
	.summary = "list files changed since a snapshot",
	.options = api_options,
	.more = "Each line is A (added), M (modified) or D (deleted) and a path. The defaults are\n"
		"the newest snapshot and the working directory. A PATH without SNAPSHOT must\n"
		"contain a slash or a dot.\n",
	.least = 1,
	.most = 3,
	.run = run,
};
