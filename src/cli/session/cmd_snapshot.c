/* SPDX-License-Identifier: Apache-2.0 */
/* lodge snapshot, snapshots, fork, rollback. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/print_session.h"

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
	bool sure = a->argc == 1 ? api_cmd_confirm(a, "Delete snapshot %s?", a->argv[0])
				 : api_cmd_confirm(a, "Delete these %d snapshots?", a->argc);

	if (!sure)
		return err_set(err, ERR_CONFLICT, "cancelled: no snapshot was deleted");
	return api_cmd_remove_each(a, remove_one, err);
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

/* ---- snapshot -------------------------------------------------------------------------------- */

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

static const struct command *const snapshot_subs[] = { &snapshot_rm, NULL };

const struct command cmd_snapshot = {
	.name = "snapshot",
	.usage = "[--name NAME] SESSION...\n"
		 "       lodge snapshot rm [--session SESSION] SNAPSHOT...",
	.summary = "take a snapshot of sessions, or delete snapshots",
	.options = snapshot_options,
	.more = "Prints the id of each snapshot. `lodge snapshots` lists them.\n",
	.size = sizeof(struct snapshot_opts),
	.least = 1,
	.most = -1,
	.method = "POST",
	.path = "/v1/sessions/%s/snapshots",
	.sessions = true,
	.plain = "snapshot.id",
	.subs = snapshot_subs,
};

/* ---- snapshots ------------------------------------------------------------------------------- */

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
	return member_number(s, path) ? field_bytes(s, path, buf) : "";
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
	{ "user", 'u', "USER", CLI_TEXT, offsetof(struct list_opts, user),
	  "only of sessions of this user", "user" },
	OPTION_QUIET("print only ids"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_snapshots = {
	.name = "snapshots",
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
	if (!api_cmd_confirm(a,
			     "Restore %s from %s, taken %s ago? Files written since then are lost.",
			     a->argv[0], a->argv[1], span))
		return err_set(err, ERR_CONFLICT, "cancelled: nothing was changed");
	body = json_pack("{s:O}", "snapshot", json_object_get(snapshot, "id"));
	if (api_cmd_call(a, "POST", body, &answer, err, "/v1/sessions/%s/rollback", ref) < 0)
		return -1;
	return api_cmd_write(a, answer, print_rolled_back, err);
}

static const struct cli_option rollback_options[] = { OPTION_YES, API_OPTIONS, { NULL } };

const struct command cmd_rollback = {
	.name = "rollback",
	.usage = "[--yes] SESSION SNAPSHOT",
	.summary = "restore a session from a snapshot",
	.options = rollback_options,
	.more = "Files written since the snapshot are lost. SNAPSHOT is an id or a name.\n",
	.least = 2,
	.most = 2,
	.run = run_rollback,
};
