/* SPDX-License-Identifier: Apache-2.0 */
/* lodge export, import: snapshots as files. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/copy/cp.h"
#include "cli/core/progress_bar.h"
#include "cli/core/temp_record.h"

/* ---- export ---------------------------------------------------------------------------------- */

static int write_archive(struct api_cmd *a, const char *id, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	char url[API_PATH];
	struct client_request rq = { .method = "GET", .path = url };

	if (client_path(url, sizeof(url), err, "/v1/snapshots/%s/archive", id) < 0 ||
	    client_open(a->client, &rq, &s, err) < 0)
		return -1;
	return cp_drain(s, STDOUT_FILENO, a->argv[0], a->quiet, err) < 0 ? -1 : 0;
}

/* Exports a session through a temporary snapshot. */
static int export_session(struct api_cmd *a, struct err *err)
{
	auto_fini(temp_record_end) struct temp_record t = { .snapshot = true };
	char ref[TARGET_REF], path[API_PATH];

	if (target_ref(a->argv[0], ref, err) < 0 ||
	    client_path(path, sizeof(path), err, "/v1/sessions/%s/snapshots", ref) < 0 ||
	    temp_record_new(a, path, NULL, &t, err) < 0)
		return -1;
	return write_archive(a, t.id, err);
}

static int check_export(struct api_cmd *a, struct err *err)
{
	if (a->argc > 1)
		return api_cmd_misuse(
			a, err, "export: the archive is standard output: add > %.100s", a->argv[1]);
	if (!isatty(STDOUT_FILENO))
		return 0;
	return api_cmd_misuse(a, err,
			      "refusing to write an archive to a terminal: add > FILE.tar.zst");
}

static int run_export(struct api_cmd *a, struct err *err)
{
	if (strncmp(a->argv[0], "snp_", 4) == 0)
		return write_archive(a, a->argv[0], err);
	return export_session(a, err);
}

static const struct cli_option export_options[] = {
	OPTION_QUIET("show no progress"),
	CLI_INCLUDE(target_options, 0),
	{ NULL },
};

const struct command cmd_export = {
	.name = "export",
	.usage = "SESSION|SNAPSHOT > FILE.tar.zst",
	.summary = "save a session or a snapshot to a file",
	.options = export_options,
	.least = 1,
	.most = 2, /* check_export() explains the second */
	.check = check_export,
	.run = run_export,
};

/* ---- import ---------------------------------------------------------------------------------- */

struct import_opts {
	struct api_cmd a;
	const char *name, *template;
};

static int check_import(struct api_cmd *a, struct err *err)
{
	if (a->argc)
		return api_cmd_misuse(a, err, "import: the archive is standard input: add < %.100s",
				      a->argv[0]);
	if (!isatty(STDIN_FILENO))
		return 0;
	return api_cmd_misuse(a, err,
			      "refusing to read an archive from a terminal: add < FILE.tar.zst");
}

static int run_import(struct api_cmd *a, struct err *err)
{
	const struct import_opts *o = (struct import_opts *)a;
	auto_call(client_close) struct client_stream *s = NULL;
	auto_json json_t *answer = NULL;
	char url[API_PATH] = "/v1/snapshots";
	struct progress p;
	struct client_request rq = { .method = "POST",
				     .path = url,
				     .type = "application/zstd",
				     .body_fd = STDIN_FILENO,
				     .has_body_fd = true,
				     .sent = progress_bar_at,
				     .arg = &p };
	int r;

	if (api_cmd_query(url, sizeof(url), "template", o->template, err) < 0 ||
	    api_cmd_query(url, sizeof(url), "name", o->name, err) < 0)
		return -1;
	progress_bar_begin(&p, "import", -1, a->quiet);
	r = client_open(a->client, &rq, &s, err);
	progress_bar_end(&p);
	if (r < 0 || client_read_json(s, &answer, err) < 0)
		return -1;
	if (!answer)
		return err_set(err, ERR_UNAVAILABLE, "unexpected response: it is empty");
	return api_cmd_write(a, answer, api_cmd_print_answer, err);
}

static const struct cli_option import_options[] = {
	{ "name", 'n', "NAME", CLI_TEXT, offsetof(struct import_opts, name), "name of the snapshot",
	  "name" },
	{ "template", 0, "NAME", CLI_TEXT, offsetof(struct import_opts, template),
	  "template its files belong to (host)", "template" },
	OPTION_QUIET("show no progress"),
	API_OPTIONS,
	{ NULL },
};

const struct command cmd_import = {
	.name = "import",
	.usage = "[--name NAME] < FILE.tar.zst",
	.summary = "load a snapshot from a file and print its id",
	.options = import_options,
	.more = "`lodge create --snapshot ID` creates a session from it.\n",
	.size = sizeof(struct import_opts),
	.most = 1, /* check_import() explains it */
	.check = check_import,
	.run = run_import,
	.plain = "snapshot.id",
};
