/* SPDX-License-Identifier: Apache-2.0 */
/* lodge snapshot, snapshots, fork, rollback: file states of sessions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/core/api_cmd.h"
#include "cli/core/commands.h"
#include "cli/core/print_session.h"

enum { LINE = 512, FORKS_MAX = 100 };

/* ---- taking ---------------------------------------------------------------------------------- */

static void say_taken(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	api_cmd_print("%s", api_cmd_text(answer, "snapshot.id"));
}

static int take_one(struct api_cmd *a, const char *ref, json_t **ret, struct err *err)
{
	auto_json json_t *body = json_object();

	if (api_cmd_put(body, "name", a->name) < 0)
		return err_set(err, ERR_INVALID, "--name: no text (UTF-8)");
	if (a->stop)
		json_object_set_new(body, "live", json_false());
	return api_cmd_call(a, "POST", body, ret, err, "/v1/sessions/%s/snapshots", ref);
}

static int run_take(struct api_cmd *a, struct err *err)
{
	return api_cmd_each(a, take_one, say_taken, err);
}

static const struct cli_option take_options[] = {
	{ "name", 'n', "NAME", ask_name, "a name, unique within the session" },
	{ "stop", 0, NULL, ask_stop, "end the processes first instead of freezing them briefly" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command take_command = {
	.opt = { .name = "lodge snapshot",
		 .usage = "[--name NAME] SESSION...\n       lodge snapshot rm [--session SESSION] "
			  "SNAPSHOT...",
		 .summary = "Takes a snapshot of the files of sessions, and prints its id.",
		 .opts = take_options,
		 .more = "lodge snapshots lists them.\n" },
	.least = 1,
	.most = -1,
	.run = run_take,
};

/* ---- removing -------------------------------------------------------------------------------- */

/* By its id, or with --session by its name. */
static int remove_one(struct api_cmd *a, const char *which, struct err *err)
{
	auto_json json_t *s = NULL;
	char ref[WHERE_REF];

	if (!a->session) {
		if (api_cmd_call(a, "DELETE", NULL, NULL, err, "/v1/snapshots/%s", which) == 0)
			return 0;
		return err->code == ERR_NOT_FOUND && strncmp(which, "snp_", 4) != 0
			       ? err_set(err, ERR_NOT_FOUND,
					 "no snapshot has the id \"%.64s\"; by its name --session "
					 "SESSION finds it",
					 which)
			       : -1;
	}
	if (target_ref(a->session, ref, err) < 0 ||
	    api_cmd_find_snapshot(a, ref, which, &s, err) < 0)
		return -1;
	return api_cmd_call(a, "DELETE", NULL, NULL, err, "/v1/sessions/%s/snapshots/%s", ref,
			    api_cmd_text(s, "id"));
}

static int run_remove(struct api_cmd *a, struct err *err)
{
	if (!api_cmd_sure(a, a->argc == 1 ? "Remove this snapshot?" : "Remove these %d snapshots?",
			  a->argc))
		return err_set(err, ERR_CONFLICT, "nothing was removed");
	return api_cmd_remove_each(a, remove_one, err);
}

static const struct cli_option remove_options[] = {
	{ "session", 0, "SESSION", ask_session, "its snapshots, which then may be named" },
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

static const struct api_cmd_command remove_command = {
	.opt = { .name = "lodge snapshot rm",
		 .usage = "[--session SESSION] [--yes] SNAPSHOT...",
		 .summary = "Removes snapshots.",
		 .opts = remove_options,
		 .more = "SNAPSHOT is an id; with --session also a name.\n" ASK_ASKS },
	.least = 1,
	.most = -1,
	.run = run_remove,
};

int cmd_snapshot(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "rm") == 0)
		return api_cmd_main(&remove_command, argc - 1, argv + 1);
	return api_cmd_main(&take_command, argc, argv);
}

/* ---- listing --------------------------------------------------------------------------------- */

static void add_session(struct text_table *t, const json_t *s)
{
	const char *id = api_cmd_text(s, "session"), *key = api_cmd_text(s, "session_key");

	if (json_is_true(json_object_get(s, "session_exists"))) {
		text_table_add(t, *key ? key : id);
		return;
	}
	if (*id)
		text_table_addf(t, "%s (destroyed)", id);
	else
		text_table_add(t, "(imported)");
	text_table_tint(t, TINT_DIM);
}

static void say_list(struct api_cmd *a, const json_t *answer)
{
	static const struct text_table_column own[] = { { "SNAPSHOT", 0 },
							{ "NAME", TABLE_SHRINK },
							{ "AGE", TABLE_RIGHT },
							{ "SIZE", TABLE_RIGHT } };
	static const struct text_table_column all[] = { { "SNAPSHOT", 0 },
							{ "NAME", TABLE_SHRINK },
							{ "SESSION", TABLE_SHRINK },
							{ "AGE", TABLE_RIGHT },
							{ "SIZE", TABLE_RIGHT } };
	struct text_table t;
	json_t *s;
	size_t i;

	text_table_init(&t, a->argc ? own : all, a->argc ? ARRAY_LEN(own) : ARRAY_LEN(all));
	json_array_foreach (json_object_get(answer, "snapshots"), i, s) {
		int64_t size = api_cmd_number(s, "size_bytes");

		if (a->quiet) {
			puts(api_cmd_text(s, "id"));
			continue;
		}
		text_table_add(&t, api_cmd_text(s, "id"));
		text_table_add(&t, api_cmd_text(s, "name"));
		if (!a->argc)
			add_session(&t, s);
		text_table_add_span(&t, clock_wall_ms() - api_cmd_number(s, "created_at"));
		text_table_add_bytes(&t, size ? size : -1);
	}
	if (!a->quiet)
		text_table_print(&t, stdout);
	if (!a->quiet && i == 0)
		api_cmd_hint("no snapshots (lodge snapshot takes one)");
	text_table_fini(&t);
}

static int check_list(struct api_cmd *a, struct err *err)
{
	return a->argc && a->user ? err_set(err, ERR_INVALID, "--user: not beside a session") : 0;
}

static int list_path(struct api_cmd *a, char *path, size_t size, struct err *err)
{
	char ref[WHERE_REF];

	if (a->argc)
		return target_ref(a->argv[0], ref, err) < 0
			       ? -1
			       : client_path(path, size, err,
					     "/v1/sessions/%s/snapshots?limit=1000", ref);
	snprintf(path, size, "/v1/snapshots?limit=1000");
	return api_cmd_query(path, size, "user", a->user, err);
}

static int exec_list(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[ASK_PATH];

	if (list_path(a, path, sizeof(path), err) < 0 ||
	    api_cmd_list(a, path, "snapshots", &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_list, err);
}

static const struct cli_option list_options[] = {
	{ "user", 'u', "USER", ask_user, "of sessions of this user" },
	{ "quiet", 'q', NULL, ask_quiet, "ids alone" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_snapshots(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge snapshots",
			 .usage = "[-q] [--user USER | SESSION]",
			 .summary = "Lists all snapshots, or those of a session; SIZE is what each "
				    "has of its own.",
			 .opts = list_options,
			 .more = "A session that was destroyed is named by its id.\n" },
		.most = 1,
		.check = check_list,
		.prompt = true,
		.run = exec_list,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void say_forks(struct api_cmd *a, const json_t *answer)
{
	char name[LINE];
	json_t *s;
	size_t i;

	json_array_foreach (json_object_get(answer, "sessions"), i, s) {
		api_cmd_print("%s",
			      a->quiet ? api_cmd_text(s, "id") : print_name(s, name, sizeof(name)));
	}
}

static int run_fork(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = json_object(), *snapshot = NULL, *answer = NULL;
	char ref[WHERE_REF];
	uint64_t count = 1;

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    api_cmd_count_of(a, "--count", a->count, 1, FORKS_MAX, &count, err) < 0 ||
	    (a->snapshot && api_cmd_find_snapshot(a, ref, a->snapshot, &snapshot, err) < 0))
		return -1;
	if (api_cmd_check_key(a, "--key", a->key, err) < 0)
		return -1;
	if (a->key && count != 1)
		return api_cmd_wrong(a, err, "--key: leads to one session, not to %s", a->count);
	if (api_cmd_put(body, "key", a->key) < 0 ||
	    api_cmd_put(body, "snapshot", snapshot ? api_cmd_text(snapshot, "id") : NULL) < 0 ||
	    json_object_set_new(body, "count", json_integer((json_int_t)count)) < 0)
		return err_set(err, ERR_INVALID, "--key: no text (UTF-8)");
	if (api_cmd_call(a, "POST", body, &answer, err, "/v1/sessions/%s/fork", ref) < 0)
		return -1;
	return api_cmd_write(a, answer, say_forks, err);
}

static const struct cli_option fork_options[] = {
	{ "key", 'k', "KEY", ask_key, "leads to the new session" },
	{ "count", 0, "N", ask_count, "so many (default: 1); all or none" },
	{ "snapshot", 0, "SNAPSHOT", ask_snapshot, "from this one of its snapshots, not from now" },
	{ "quiet", 'q', NULL, ask_quiet, "ids alone" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_fork(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge fork",
			 .usage = "[--key KEY] [--count N] [--snapshot SNAPSHOT] SESSION",
			 .summary =
				 "Makes new sessions with the files of one. They sleep until used.",
			 .opts = fork_options },
		.least = 1,
		.most = 1,
		.run = run_fork,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- rollback -------------------------------------------------------------------------------- */

static void say_back(struct api_cmd *a, const json_t *answer)
{
	char name[LINE];

	api_cmd_print("%s has the files of %s again",
		      print_name(json_object_get(answer, "session"), name, sizeof(name)),
		      a->argv[1]);
}

static int run_rollback(struct api_cmd *a, struct err *err)
{
	auto_json json_t *body = NULL, *snapshot = NULL, *answer = NULL;
	char ref[WHERE_REF], span[HUMAN_TEXT];

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    api_cmd_find_snapshot(a, ref, a->argv[1], &snapshot, err) < 0)
		return -1;
	human_span(clock_wall_ms() - api_cmd_number(snapshot, "created_at"), span);
	if (!api_cmd_sure(
		    a,
		    "Take %s back to %s, which was taken %s ago? What was written since then is "
		    "lost.",
		    a->argv[0], a->argv[1], span))
		return err_set(err, ERR_CONFLICT, "nothing was changed");
	body = json_pack("{s:O}", "snapshot", json_object_get(snapshot, "id"));
	if (api_cmd_call(a, "POST", body, &answer, err, "/v1/sessions/%s/rollback", ref) < 0)
		return -1;
	return api_cmd_write(a, answer, say_back, err);
}

static const struct cli_option rollback_options[] = {
	{ "yes", 'y', NULL, ask_yes, "do not ask" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_rollback(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge rollback",
			 .usage = "[--yes] SESSION SNAPSHOT",
			 .summary = "Takes a session back to one of its snapshots; newer files are "
				    "lost.",
			 .opts = rollback_options,
			 .more = ASK_ASKS },
		.least = 2,
		.most = 2,
		.run = run_rollback,
	};

	return api_cmd_main(&command, argc, argv);
}
