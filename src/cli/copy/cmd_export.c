/* SPDX-License-Identifier: Apache-2.0 */
/* lodge export, import: file states as one file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/commands.h"
#include "cli/copy/cp.h"
#include "cli/core/progress_bar.h"
#include "cli/core/cleanup.h"

DEFINE_AUTO(struct client_stream *, client_close);

/* ---- export ---------------------------------------------------------------------------------- */

static int send_out(struct api_cmd *a, const char *id, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char url[ASK_PATH];
	struct client_request rq = { .method = "GET", .path = url };
	uint64_t bytes = 0;

	if (client_path(url, sizeof(url), err, "/v1/snapshots/%s/archive", id) < 0 ||
	    client_open(a->client, &rq, &s, err) < 0)
		return -1;
	return cp_drain(s, STDOUT_FILENO, a->argv[0], a->quiet, &bytes, err);
}

struct taken {
	char id[128];
};

DEFINE_AUTO(struct client *, client_free);

static void remove_taken(void *arg)
{
	auto_call(client_free) struct client *c = NULL;
	const struct taken *t = arg;
	struct err ignored;
	char path[ASK_PATH];

	if (*t->id && target_client(&c, &ignored) == 0 &&
	    client_path(path, sizeof(path), &ignored, "/v1/snapshots/%s", t->id) == 0)
		(void)client_call(c, "DELETE", path, NULL, NULL, &ignored);
}

/* A session as it is now: by a snapshot that goes afterwards. */
static int export_session(struct api_cmd *a, struct err *err)
{
	auto_json json_t *answer = NULL;
	struct taken t = { "" };
	char ref[WHERE_REF];
	int r;

	if (target_ref(a->argv[0], ref, err) < 0 || cleanup_set(remove_taken, &t, err) < 0)
		return -1;
	cleanup_hold();
	r = api_cmd_call(a, "POST", NULL, &answer, err, "/v1/sessions/%s/snapshots", ref);
	snprintf(t.id, sizeof(t.id), "%s", api_cmd_text(answer, "snapshot.id"));
	cleanup_release();
	if (r == 0)
		r = send_out(a, t.id, err);
	cleanup_run();
	return r;
}

static int check_export(struct api_cmd *a, struct err *err)
{
	if (!isatty(STDOUT_FILENO))
		return 0;
	return api_cmd_wrong(a, err, "this is for a file, not for a terminal: add > FILE.tar.zst");
}

static int run_export(struct api_cmd *a, struct err *err)
{
	if (strncmp(a->argv[0], "snp_", 4) == 0)
		return send_out(a, a->argv[0], err);
	return export_session(a, err);
}

static const struct cli_option export_options[] = {
	{ "quiet", 'q', NULL, ask_quiet, "no progress on a terminal" },
	WHERE_OPT_TABLE,
	{ NULL },
};

int cmd_export(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge export",
			 .usage = "SESSION|SNAPSHOT > FILE.tar.zst",
			 .summary = "Writes the files of a session, or of a snapshot, as one file.",
			 .opts = export_options },
		.least = 1,
		.most = 1,
		.check = check_export,
		.run = run_export,
	};

	return api_cmd_main(&command, argc, argv);
}

/* ---- import ---------------------------------------------------------------------------------- */

static void say_in(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	api_cmd_print("%s", api_cmd_text(answer, "snapshot.id"));
}

/* The whole answer, which is short. */
static int read_json(struct client_stream *s, json_t **ret, struct err *err)
{
	char text[16384];
	size_t len = 0;
	ssize_t n;

	while ((n = client_read(s, text + len, sizeof(text) - len, err)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -1;
	*ret = json_loadb(text, len, 0, NULL);
	return *ret ? 0 : err_set(err, ERR_UNAVAILABLE, "the answer is no JSON");
}

static int check_import(struct api_cmd *a, struct err *err)
{
	if (!isatty(STDIN_FILENO))
		return 0;
	return api_cmd_wrong(a, err, "this reads a file, not a terminal: add < FILE.tar.zst");
}

static int run_import(struct api_cmd *a, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	auto_json json_t *answer = NULL;
	char url[ASK_PATH] = "/v1/snapshots";
	struct progress p;
	struct client_request rq = { .method = "POST",
				     .path = url,
				     .type = "application/zstd",
				     .body_fd = STDIN_FILENO,
				     .has_body_fd = true,
				     .sent = progress_bar_at,
				     .arg = &p };
	int r;

	if (api_cmd_query(url, sizeof(url), "template", a->template, err) < 0 ||
	    api_cmd_query(url, sizeof(url), "name", a->name, err) < 0)
		return -1;
	progress_bar_begin(&p, "import", -1, a->quiet);
	r = client_open(a->client, &rq, &s, err);
	progress_bar_end(&p);
	if (r < 0 || read_json(s, &answer, err) < 0)
		return -1;
	return api_cmd_write(a, answer, say_in, err);
}

static const struct cli_option import_options[] = {
	{ "name", 'n', "NAME", ask_name, "a name for it" },
	{ "template", 0, "NAME", ask_template, "what its files lie on (default: host)" },
	{ "quiet", 'q', NULL, ask_quiet, "no progress on a terminal" },
	ASK_OPTIONS,
	{ NULL },
};

int cmd_import(int argc, char **argv)
{
	static const struct api_cmd_command command = {
		.opt = { .name = "lodge import",
			 .usage = "[--name NAME] < FILE.tar.zst",
			 .summary = "Brings a snapshot in, and prints its id.",
			 .opts = import_options,
			 .more = "lodge new --snapshot ID makes a session of it.\n" },
		.check = check_import,
		.run = run_import,
	};

	return api_cmd_main(&command, argc, argv);
}
