/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec/exec_job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/options.h"
#include "cli/core/limit_note.h"
#include "cli/core/terminal.h"

enum { SIGNAL_BASE = 128 };

void exec_job_fini(struct exec_job *j)
{
	json_decref(j->end);
	for (int i = 0; i < JOB_STREAMS; i++)
		free(j->kept[i].bytes);
	j->end = NULL;
	memset(j->kept, 0, sizeof(j->kept));
}

int exec_job_path(const struct exec_job *j, const char *tail, char ret[JOB_PATH], struct err *err)
{
	size_t n;

	if (client_path(ret, JOB_PATH, err, "/v1/sessions/%s/execs/%s", j->ref, j->id) < 0)
		return -1;
	n = strlen(ret);
	if ((size_t)snprintf(ret + n, JOB_PATH - n, "%s", tail) >= JOB_PATH - n)
		return err_set(err, ERR_INVALID, "path is too long");
	return 0;
}

int exec_job_put_words(struct api_cmd *a, json_t *body, char **words, struct err *err)
{
	json_t *argv = json_array();

	if (json_object_set_new(body, "argv", argv) < 0)
		return err_sys(err, ENOMEM, "command");
	for (; *words; words++)
		if (json_array_append_new(argv, json_string(*words)) < 0)
			return api_cmd_misuse(a, err, "argument \"%.60s\" is not valid UTF-8",
					      *words);
	return 0;
}

int exec_job_start(struct exec_job *j, json_t *body, json_t **ret, struct err *err)
{
	auto_json json_t *answer = NULL;
	char path[JOB_PATH];

	if (json_object_set_new(body, "background", json_true()) < 0)
		return err_sys(err, ENOMEM, "command");
	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/exec", j->ref) < 0 ||
	    client_call(j->client, "POST", path, body, &answer, err) < 0)
		return -1;
	snprintf(j->id, sizeof(j->id), "%s",
		 json_string_value(json_object_get(answer, "exec_id")) ?: "");
	if (!*j->id)
		return err_set(err, ERR_UNAVAILABLE, "unexpected response: no exec_id");
	if (ret)
		*ret = steal_ptr(&answer);
	return 0;
}

int exec_job_get(struct exec_job *j, json_t **ret, struct err *err)
{
	auto_json json_t *answer = NULL;
	json_t *record;
	char path[JOB_PATH];

	if (exec_job_path(j, "", path, err) < 0 ||
	    client_call(j->client, "GET", path, NULL, &answer, err) < 0)
		return -1;
	record = json_object_get(answer, "exec");
	if (!json_is_object(record))
		return err_set(err, ERR_UNAVAILABLE,
			       "unexpected response: no record of the command");
	*ret = json_incref(record);
	return 0;
}

static json_t *signal_value(const char *signal)
{
	char *end;
	long n = strtol(signal, &end, 10);

	return *signal && !*end ? json_integer(n) : json_string(signal);
}

int exec_job_signal(const struct exec_job *j, const char *signal, struct err *err)
{
	auto_json json_t *body = json_object();
	char path[JOB_PATH];

	if (json_object_set_new(body, "signal", signal_value(signal)) < 0)
		return err_set(err, ERR_INVALID, "unknown signal \"%.32s\"", signal);
	if (exec_job_path(j, "/signal", path, err) < 0)
		return -1;
	return client_call(j->client, "POST", path, body, NULL, err);
}

json_t *exec_job_size(void)
{
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	return json_pack("{s:I, s:I}", "rows", (json_int_t)rows, "cols", (json_int_t)cols);
}

bool exec_job_resize(const struct exec_job *j)
{
	auto_json json_t *body = exec_job_size();
	char path[JOB_PATH];
	struct err ignored;

	return exec_job_path(j, "/resize", path, &ignored) == 0 &&
	       client_call(j->client, "POST", path, body, NULL, &ignored) == 0;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

static bool has(const json_t *end, const char *name)
{
	return json_is_true(json_object_get(end, name));
}

int exec_job_status(const json_t *end)
{
	const json_t *code = json_object_get(end, "exit_code"),
		     *signal = json_object_get(end, "signal");

	if (has(end, "timed_out"))
		return CLI_EXIT_TIMEOUT;
	if (json_is_integer(signal))
		return SIGNAL_BASE + (int)json_integer_value(signal);
	if (json_is_integer(code))
		return (int)json_integer_value(code);
	return CLI_EXIT_FAILED; /* unknown */
}

static uint64_t limit_of(const json_t *session, const char *path)
{
	int64_t n = member_number(session, path);

	return n > 0 ? (uint64_t)n : 0;
}

/* The limits of its session; 0: unknown. */
static struct limits limits_of(const struct exec_job *j)
{
	auto_json json_t *answer = NULL;
	struct err ignored;
	char path[JOB_PATH];

	if (client_path(path, sizeof(path), &ignored, "/v1/sessions/%s", j->ref) == 0)
		(void)client_call(j->client, "GET", path, NULL, &answer, &ignored);
	return (struct limits){
		.memory_bytes = limit_of(answer, "session.limits.memory_bytes"),
		.disk_bytes = limit_of(answer, "session.limits.disk_bytes"),
		.file_bytes = limit_of(answer, "session.limits.file_bytes"),
		.pids = (uint32_t)limit_of(answer, "session.limits.pids"),
	};
}

void exec_job_explain(const struct exec_job *j)
{
	const json_t *hits = json_object_get(j->end, "limits");
	struct limits limits = { 0 };
	json_t *hit;
	size_t i;

	if (json_array_size(hits))
		limits = limits_of(j);
	/* the reader knows itself whether output is missing */
	json_array_foreach (hits, i, hit)
		if (!member_is(hit, "", "LIMIT_OUTPUT"))
			limit_note_print(member_text(hit, ""), &limits, j->timeout_ms);
	if (j->gap)
		fputs("lodge: LIMIT_OUTPUT: some output was discarded before lodge could read it\n",
		      stderr);
	if (has(j->end, "lost") ||
	    !strcmp(json_string_value(json_object_get(j->end, "state")) ?: "", "lost"))
		fputs("lodge: the sandbox ended while the command was running; its result is "
		      "unknown\n",
		      stderr);
}
