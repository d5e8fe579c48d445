/* SPDX-License-Identifier: Apache-2.0 */
/* lodge snapshot, snapshots, fork, rollback, diff. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"
#include "cli/core/temp_record.h"

enum { FORKS_MAX = 100 };

/* ---- snapshot rm ----------------------------------------------------------------------------- */

struct rm_opts {
	struct api_cmd a;
	const char *session;
};

/* By its id, or with --session by its name. */
static int remove_one(struct api_cmd *a, const char *which, struct err *err)
{
	const char *session = ((struct rm_opts *)a)->session;
	auto_json json_t *s = NULL;
	char ref[TARGET_REF];

	if (session) {
		if (target_ref(session, ref, err) < 0 ||
		    api_cmd_find_snapshot(a, ref, which, &s, err) < 0)
			return -1;
		return api_cmd_call(a, "DELETE", NULL, NULL, err, "/v1/sessions/%s/snapshots/%s",
				    ref, member_text(s, "id"));
	}
	if (api_cmd_call(a, "DELETE", NULL, NULL, err, "/v1/snapshots/%s", which) == 0)
		return 0;
	if (err->code == ERR_NOT_FOUND && strncmp(which, "snp_", 4) != 0)
		err_set(err, ERR_NOT_FOUND,
			"no snapshot with id \"%.64s\"; to use its name, add --session SESSION",
			which);
	return -1;
}

static int run_rm(struct api_cmd *a, struct err *err)
{
	const char *cancelled = "no snapshot was deleted";
	int sure =
		a->argc == 1
			? api_cmd_confirm(a, cancelled, err, "Delete snapshot %s?", a->argv[0])
			: api_cmd_confirm(a, cancelled, err, "Delete these %d snapshots?", a->argc);

	return sure < 0 ? -1 : api_cmd_remove_each(a, remove_one, err);
}

static const struct cli_option rm_options[] = {
	{ "session", 0, "SESSION", CLI_TEXT, offsetof(struct rm_opts, session),
	  "session whose snapshots can be named" },
	OPTION_YES,
	API_OPTIONS,
	{ NULL },
};

static const struct command snapshot_rm = {
	.name = "snapshot rm",
	.usage = "[--session SESSION] [--yes] SNAPSHOT...",
	.summary = "delete snapshots",
	.options = rm_options,
	.more = "SNAPSHOT is an id, or with --session also a name.\n",
	.size = sizeof(struct rm_opts),
	.least = 1,
	.most = -1,
	.run = run_rm,
};

/* ---- create ---------------------------------------------------------------------------------- */

struct snapshot_opts {
	struct api_cmd a;
	const char *name;
	bool stop;
};

static const struct cli_option snapshot_options[] = {
	{ "name", 'n', "NAME", CLI_TEXT, offsetof(struct snapshot_opts, name),
	  "a name, unique within the session", "name" },
	{ "stop", 0, NULL, CLI_FLAG, offsetof(struct snapshot_opts, stop),
	  "stop processes first instead of freezing them", "!live" },
	API_OPTIONS,
	{ NULL },
};

/* `lodge snapshot alice clean` must not take a snapshot without the name. */
static int run_create(struct api_cmd *a, struct err *err)
{
	if (a->argc == 2 && !((struct snapshot_opts *)a)->name &&
	    api_cmd_check_last(a, "--name", err) < 0)
		return -1;
	return api_cmd_request(a, err);
}

static const struct command snapshot_create = {
	.name = "snapshot create",
	.usage = "[--name NAME] SESSION...",
	.summary = "take a snapshot of sessions",
	.options = snapshot_options,
	.more = "Prints the id of each snapshot.\n",
	.size = sizeof(struct snapshot_opts),
	.least = 1,
	.most = -1,
	.method = "POST",
	.path = "/v1/sessions/%s/snapshots",
	.sessions = true,
	.run = run_create,
	.plain = "snapshot.id",
};

/* ---- ls, inspect ----------------------------------------------------------------------------- */

struct list_opts {
	struct api_cmd a;
	const char *user;
};

static const char *owner(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	const char *id = member_text(s, path), *key = member_text(s, "session_key");

	if (member_true(s, "session_exists"))
		return *key ? key : id;
	snprintf(buf, FIELD_TEXT, "%s (deleted)", id);
	return *id ? buf : "(imported)";
}

static enum tint owner_tint(const json_t *s)
{
	return member_true(s, "session_exists") ? TINT_NONE : TINT_DIM;
}

static const char *size(const json_t *s, const char *path, char buf[FIELD_TEXT])
{
	return json_is_null(json_object_get(s, path)) ? "counting" : field_bytes(s, path, buf);
}

static const struct field own_fields[] = {
	{ "SNAPSHOT", 0, "id" },
	{ "NAME", TABLE_SHRINK, "name" },
	{ "AGE", TABLE_RIGHT, "created_at", field_age },
	{ "SIZE", TABLE_RIGHT, "size_bytes", size },
	{ NULL },
};

static const struct field all_fields[] = {
	{ "SNAPSHOT", 0, "id" },
	{ "NAME", TABLE_SHRINK, "name" },
	{ "SESSION", TABLE_SHRINK, "session", owner, owner_tint },
	{ "AGE", TABLE_RIGHT, "created_at", field_age },
	{ "SIZE", TABLE_RIGHT, "size_bytes", size },
	{ NULL },
};

static void print_list(struct api_cmd *a, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "snapshots");
	json_t *s;
	size_t i;

	json_array_foreach (list, i, s) {
		if (a->quiet)
			puts(member_text(s, "id"));
	}
	if (a->quiet)
		return;
	field_print_table(a->argc ? own_fields : all_fields, list);
	if (i == 0)
		api_cmd_hint("no snapshots (take one: lodge snapshot)");
}

static int check_list(struct api_cmd *a, struct err *err)
{
	if (!a->argc || !((struct list_opts *)a)->user)
		return 0;
	return err_set(err, ERR_INVALID, "--user: cannot be used with SESSION");
}

static int run_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[API_PATH] = "/v1/snapshots?limit=1000", ref[TARGET_REF];

	if (a->argc &&
	    (target_ref(a->argv[0], ref, err) < 0 ||
	     client_path(path, sizeof(path), err, "/v1/sessions/%s/snapshots?limit=1000", ref) < 0))
		return -1;
	if (api_cmd_query(path, sizeof(path), "user", ((struct list_opts *)a)->user, err) < 0 ||
	    api_cmd_list(a, path, "snapshots", &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, print_list, err);
}

static const struct cli_option list_options[] = {
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct list_opts, user),
	  "only of sessions of this user", "user", .old_letter = 'u' },
	OPTION_QUIET("print only ids"),
	API_OPTIONS,
	{ NULL },
};

static const struct command snapshot_ls = {
	.name = "snapshot ls",
	.usage = "[-q] [--user USER | SESSION]",
	.summary = "list all snapshots, or those of a session",
	.options = list_options,
	.more = "SIZE is what a snapshot does not share with others.\n",
	.size = sizeof(struct list_opts),
	.most = 1,
	.check = check_list,
	.prompt = true,
	.run = run_list,
};

static const struct field inspect_fields[] = {
	{ "snapshot", 0, "id" },
	{ "name", 0, "name" },
	{ "session", 0, "session", owner },
	{ "template", 0, "template" },
	{ "created", 0, "created_at", field_when },
	{ "size", 0, "size_bytes", size },
	{ NULL },
};

static const struct command *const snapshot_subs[] = {
	&snapshot_ls,
	&snapshot_create,
	COMMAND("snapshot inspect", "SNAPSHOT", "show one snapshot, by its id", api_options,
		.alias = "show", .prompt = true, .method = "GET", .path = "/v1/snapshots/%s",
		.record = "snapshot", .fields = inspect_fields),
	&snapshot_rm,
	NULL,
};

const struct command cmd_snapshot = {
	.name = "snapshot",
	.summary = "take, list and delete snapshots",
	.more = "`lodge snapshot SESSION...` is short for `lodge snapshot create SESSION...`.\n",
	.subs = snapshot_subs,
	.unnamed = &snapshot_create,
};

/* ---- fork ------------------------------------------------------------------------------------ */

struct fork_opts {
	struct api_cmd a;
	const char *key, *count, *snapshot;
};

static void print_forks(struct api_cmd *a, const json_t *answer)
{
	char name[FIELD_TEXT];
	json_t *s;
	size_t i;

	json_array_foreach (json_object_get(answer, "sessions"), i, s) {
		api_cmd_print("%s",
			      a->quiet ? member_text(s, "id") : print_name(s, name, sizeof(name)));
	}
}

static int run_fork(struct api_cmd *a, struct err *err)
{
	const struct fork_opts *o = (struct fork_opts *)a;
	auto_json json_t *body = json_object(), *snapshot = NULL, *answer = NULL;
	char ref[TARGET_REF];
	uint64_t count = 1;

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    api_cmd_count_of(a, "--count", o->count, 1, FORKS_MAX, &count, err) < 0 ||
	    (o->snapshot && api_cmd_find_snapshot(a, ref, o->snapshot, &snapshot, err) < 0) ||
	    api_cmd_check_key(a, "--key", o->key, err) < 0)
		return -1;
	if (o->key && count != 1)
		return api_cmd_misuse(a, err, "--key: one key cannot name %s sessions", o->count);
	json_object_set_new(body, "count", json_integer((json_int_t)count));
	if (api_cmd_fill(a, body, err) < 0 ||
	    api_cmd_put(a, body, "snapshot", "--snapshot",
			snapshot ? member_text(snapshot, "id") : NULL, err) < 0 ||
	    api_cmd_call(a, "POST", body, &answer, err, "/v1/sessions/%s/fork", ref) < 0)
		return -1;
	return api_cmd_write(a, answer, print_forks, err);
}

static const struct cli_option fork_options[] = {
	{ "key", 'k', "KEY", CLI_TEXT, offsetof(struct fork_opts, key), "key of the new session",
	  "key" },
	{ "count", 0, "N", CLI_TEXT, offsetof(struct fork_opts, count),
	  "create N sessions (1); either all or none" },
	{ "snapshot", 0, "SNAPSHOT", CLI_TEXT, offsetof(struct fork_opts, snapshot),
	  "start from this snapshot of it, by id or name" },
	OPTION_QUIET("print only ids"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_fork = {
	.name = "fork",
	.usage = "[--key KEY] [--count N] [--snapshot SNAPSHOT] SESSION",
	.summary = "create sessions from another one's files",
	.options = fork_options,
	.more = "The new sessions are hibernated until they are used.\n",
	.size = sizeof(struct fork_opts),
	.least = 1,
	.most = 1,
	.run = run_fork,
};

/* ---- rollback -------------------------------------------------------------------------------- */

static void print_rolled_back(struct api_cmd *a, const json_t *answer)
{
	char name[FIELD_TEXT];

	api_cmd_print("restored %s from %s",
		      print_name(json_object_get(answer, "session"), name, sizeof(name)),
		      a->argv[1]);
}

static int run_rollback(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = NULL, *snapshot = NULL, *answer = NULL;
	char ref[TARGET_REF], span[HUMAN_TEXT];

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    api_cmd_find_snapshot(a, ref, a->argv[1], &snapshot, err) < 0)
		return -1;
	human_span(clock_wall_ms() - member_number(snapshot, "created_at"), span);
	if (api_cmd_confirm(a, "nothing was changed", err,
			    "Restore %s from %s, taken %s ago? Files written since then are lost.",
			    a->argv[0], a->argv[1], span) < 0)
		return -1;
	body = json_pack("{s:O}", "snapshot", json_object_get(snapshot, "id"));
	if (api_cmd_call(a, "POST", body, &answer, err, "/v1/sessions/%s/rollback", ref) < 0)
		return -1;
	return api_cmd_write(a, answer, print_rolled_back, err);
}

const struct command cmd_rollback = {
	.name = "rollback",
	.usage = "[--yes] SESSION SNAPSHOT",
	.summary = "restore a session from a snapshot",
	.options = yes_options,
	.more = "Files written since the snapshot are lost. SNAPSHOT is an id or a name.\n",
	.least = 2,
	.most = 2,
	.run = run_rollback,
};

/* ---- diff ------------------------------------------------------------------------------------ */

/* By bytes: compare() needs the same order on both sides. */
static int by_path(const void *x, const void *y)
{
	return strcmp(member_text(*(json_t *const *)x, "path"),
		      member_text(*(json_t *const *)y, "path"));
}

/* A directory that only one side has is empty on the other. */
static int list_files(struct api_cmd *a, const char *ref, const char *path, json_t **ret,
		      bool *found, struct err *err)
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

/* Merges two sorted lists. */
static int compare(const json_t *old, const json_t *new, json_t *changes, struct err *err)
{
	size_t i = 0, k = 0;

	while (i < json_array_size(old) || k < json_array_size(new)) {
		const json_t *o = json_array_get(old, i), *n = json_array_get(new, k);
		int order = o && n ? by_path(&o, &n) : o ? -1 : 1;
		const json_t *entry = order < 0 ? o : n;
		json_t *one;

		i += order <= 0;
		k += order >= 0;
		if (order == 0 && is_same(o, n))
			continue;
		one = json_pack("{s:s, s:s, s:s}", "change",
				order < 0   ? "D"
				: order > 0 ? "A"
					    : "M",
				"path", member_text(entry, "path"), "type",
				member_text(entry, "type"));
		if (json_array_append_new(changes, one) < 0)
			return err_sys(err, ENOMEM, "changes");
	}
	return 0;
}

static int compare_at(struct api_cmd *a, const char *ref, const char *older, const char *path,
		      json_t *changes, struct err *err)
{
	auto_json json_t *old = NULL, *new = NULL;
	bool was, is;

	if (list_files(a, older, path, &old, &was, err) < 0 ||
	    list_files(a, ref, path, &new, &is, err) < 0)
		return -1;
	if (!was && !is)
		return -1; /* err has which */
	return compare(old, new, changes, err);
}

static void print_changes(struct api_cmd *a, const json_t *answer)
{
	bool colours = human_colours(stdout);
	json_t *c;
	size_t i;

	(void)a;
	json_array_foreach (json_object_get(answer, "changes"), i, c) {
		const char *kind = member_text(c, "change");
		enum tint tint = *kind == 'A' ? TINT_GOOD : *kind == 'D' ? TINT_BAD : TINT_WARN;

		printf("%s%s%s ", colours ? human_tint(tint) : "", kind,
		       colours ? human_tint_end(tint) : "");
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

/* Lists the files of the snapshot in a temporary fork. */
static int run_diff(struct api_cmd *a, struct err *err)
{
	auto_json json_t *snapshot = NULL, *body = NULL, *changes = json_array(), *answer = NULL;
	auto_fini(temp_record_end) struct temp_record older = { 0 };
	char ref[TARGET_REF], url[API_PATH];
	const char *path;

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    parse_operands(a, ref, &snapshot, &path, err) < 0 ||
	    client_path(url, sizeof(url), err, "/v1/sessions/%s/fork", ref) < 0)
		return -1;
	body = json_pack("{s:O}", "snapshot", json_object_get(snapshot, "id"));
	if (temp_record_new(a, url, body, &older, err) < 0 ||
	    compare_at(a, ref, older.id, path, changes, err) < 0)
		return -1;
	answer = json_pack("{s:O, s:O}", "snapshot", snapshot, "changes", changes);
	return api_cmd_write(a, answer, print_changes, err);
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
	.run = run_diff,
};
