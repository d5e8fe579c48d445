/* SPDX-License-Identifier: Apache-2.0 */
/* lodge prune: delete what nobody has used for a long time. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/core/api_cmd.h"
#include "cli/core/quantity.h"
#include "cli/core/print_session.h"

static const char default_age[] = "30d";

struct prune_opts {
	struct api_cmd a;
	const char *older_than;
	bool snapshots, dry_run;
	int64_t before; /* epoch milliseconds: what was at rest then is old enough */
};

/* ---- what to delete -------------------------------------------------------------------------- */

static int add_row(json_t *rows, const json_t *record, const char *kind, int64_t since,
		   const json_t *size)
{
	json_t *row = json_pack("{s:s, s:s, s:O?, s:O?, s:s, s:I, s:O?, s:O?}", "kind", kind, "id",
				member_text(record, "id"), "key", json_object_get(record, "key"),
				"user", json_object_get(record, "user"), "state",
				member_text(record, "state"), "since", (json_int_t)since,
				"size_bytes", size, "version", json_object_get(record, "version"));

	return row ? json_array_append_new(rows, row) : -1;
}

/* A failed session without files has nothing to lose; one with files may only have met a passing
 * trouble, so it is kept as long as others. */
static bool is_old(const json_t *s, int64_t before, int64_t *since)
{
	bool failed = member_is(s, "state", "failed");

	*since = member_number(s, failed ? "cause.at" : "hibernated_at");
	if (failed && member_is(s, "runtime", "none"))
		return true;
	return *since > 0 && *since <= before && !member_is(s, "runtime", "live");
}

static int add_sessions(struct prune_opts *o, const char *state, json_t *rows, struct err *err)
{
	auto_json json_t *list = NULL;
	char path[API_PATH] = "/v1/sessions?limit=1000";
	int64_t since;
	json_t *s;
	size_t i;

	if (api_cmd_query(path, sizeof(path), "state", state, err) < 0 ||
	    client_list(o->a.client, path, "sessions", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		if (is_old(s, o->before, &since) && add_row(rows, s, "session", since, NULL) < 0)
			return err_set(err, ERR_LIMIT, "out of memory");
	}
	return 0;
}

/* Only those whose session is gone: the others may be rolled back to. */
static int add_snapshots(struct prune_opts *o, json_t *rows, struct err *err)
{
	auto_json json_t *list = NULL;
	json_t *s;
	size_t i;

	if (!o->snapshots)
		return 0;
	if (client_list(o->a.client, "/v1/snapshots?limit=1000", "snapshots", &list, err) < 0)
		return -1;
	json_array_foreach (list, i, s) {
		int64_t made = member_number(s, "created_at");

		if (!member_true(s, "session_exists") && *member_text(s, "session") &&
		    made <= o->before &&
		    add_row(rows, s, "snapshot", made, json_object_get(s, "size_bytes")) < 0)
			return err_set(err, ERR_LIMIT, "out of memory");
	}
	return 0;
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* With the version that was listed: a session that was used meanwhile stays. */
static int delete_row(struct prune_opts *o, const json_t *row, struct err *err)
{
	const char *id = member_text(row, "id");
	char version[32];

	snprintf(version, sizeof(version), "%lld", (long long)member_number(row, "version"));
	if (member_is(row, "kind", "snapshot"))
		return api_cmd_call(&o->a, "DELETE", NULL, NULL, err, "/v1/snapshots/%s", id);
	return api_cmd_call(&o->a, "DELETE", NULL, NULL, err,
			    "/v1/sessions/%s?reason=prune&if_version=%s", id, version);
}

static int delete_rows(struct prune_opts *o, const json_t *rows, json_t *deleted, struct err *err)
{
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		if (delete_row(o, row, err) == 0)
			json_array_append(deleted, row);
		else if (api_cmd_continue(&o->a, member_text(row, "id"), 2, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *format_name(const json_t *row, const char *path, char buf[FIELD_TEXT])
{
	const char *key = member_text(row, "key");

	(void)buf;
	return *key ? key : member_text(row, path);
}

static const char *format_state(const json_t *row, const char *path, char buf[FIELD_TEXT])
{
	(void)buf;
	return member_is(row, "kind", "snapshot") ? "snapshot" : member_text(row, path);
}

static const struct field fields[] = {
	{ "NAME", TABLE_SHRINK, "id", format_name },
	{ "USER", TABLE_SHRINK, "user" },
	{ "STATE", 0, "state", format_state },
	{ "SINCE", TABLE_RIGHT, "since", field_age },
	{ "SIZE", TABLE_RIGHT, "size_bytes", field_bytes },
	{ NULL },
};

static void print_pruned(struct api_cmd *a, const json_t *answer)
{
	char count[HUMAN_TEXT];

	(void)a;
	if (json_is_false(json_object_get(answer, "dry_run")))
		api_cmd_print("deleted %s", human_count((int64_t)json_array_size(
								json_object_get(answer, "deleted")),
							"object", NULL, count));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_prune(struct api_cmd *a, struct err *err)
{
	struct prune_opts *o = (struct prune_opts *)a;
	uint64_t age;

	if (quantity_ms("--older-than", o->older_than ? o->older_than : default_age, &age, err) < 0)
		return -1;
	o->before = age < INT64_MAX ? clock_wall_ms() - (int64_t)age : INT64_MIN;
	return 0;
}

static int confirm(struct prune_opts *o, const json_t *rows, struct err *err)
{
	char count[HUMAN_TEXT];

	human_count((int64_t)json_array_size(rows), "object", NULL, count);
	return api_cmd_confirm(&o->a, "nothing was deleted", err, "Delete %s with %s files?", count,
			       json_array_size(rows) == 1 ? "its" : "their");
}

static int gather(struct prune_opts *o, json_t *rows, struct err *err)
{
	if (add_sessions(o, "hibernated", rows, err) < 0 ||
	    add_sessions(o, "failed", rows, err) < 0)
		return -1;
	return add_snapshots(o, rows, err);
}

/* {"dry_run": ..., "found": [...], "deleted": [...]} */
static int run_prune(struct api_cmd *a, struct err *err)
{
	struct prune_opts *o = (struct prune_opts *)a;
	auto_json json_t *rows = json_array(), *deleted = json_array(), *answer = NULL;
	bool nothing;

	if (gather(o, rows, err) < 0)
		return -1;
	nothing = !json_array_size(rows);
	if (!a->json && !nothing)
		field_print_table(fields, rows);
	if (!a->json && nothing)
		api_cmd_print("nothing to delete: no session was at rest for %s",
			      o->older_than ? o->older_than : default_age);
	if (!nothing && !o->dry_run &&
	    (confirm(o, rows, err) < 0 || delete_rows(o, rows, deleted, err) < 0))
		return -1;
	answer = json_pack("{s:b, s:O, s:O}", "dry_run", o->dry_run, "found", rows, "deleted",
			   deleted);
	return nothing && !a->json ? 0 : api_cmd_write(a, answer, print_pruned, err);
}

static const struct cli_option prune_options[] = {
	{ "older-than", 0, "TIME", CLI_TEXT, offsetof(struct prune_opts, older_than),
	  "only what was at rest for TIME, as 12h, 7d (30d)" },
	{ "snapshots", 0, NULL, CLI_FLAG, offsetof(struct prune_opts, snapshots),
	  "also snapshots whose session was deleted" },
	{ "dry-run", 0, NULL, CLI_FLAG, offsetof(struct prune_opts, dry_run),
	  "list what would be deleted, delete nothing", .old_letter = 'n' },
	OPTION_YES,
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_prune = {
	.name = "prune",
	.usage = "[OPTION...]",
	.summary = "delete sessions that were at rest for long",
	.about = "Deletes sessions that were hibernated, or failed, for longer than TIME, with "
		 "their\n"
		 "files, and failed sessions without files. Lists them and asks first.\n",
	.options = prune_options,
	.more = "The service deletes sessions by itself if delete_after is set (lodge set,\n"
		"lodged.conf). Archived sessions are kept.\n\n"
		"Examples\n"
		"  lodge prune --dry-run\n"
		"  lodge prune --older-than 90d --snapshots --yes\n",
	.size = sizeof(struct prune_opts),
	.check = check_prune,
	.run = run_prune,
};
