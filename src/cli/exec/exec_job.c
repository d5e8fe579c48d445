/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec/exec_job.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "cli/core/cleanup.h"
#include "cli/core/limit_note.h"
#include "cli/core/terminal.h"

enum { SIGNAL_BASE = 128, PIECE = 64 << 10 };

void exec_job_fini(struct exec_job *j)
{
	json_decref(j->end);
	for (int i = 0; i < JOB_STREAMS; i++)
		free(j->kept[i].bytes);
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

	if (json_object_set_new(body, "background", json_true()) < 0)
		return err_sys(err, ENOMEM, "command");
	if (api_cmd_call(j, "POST", body, &answer, err, "/v1/sessions/%s/exec", j->ref) < 0)
		return -1;
	snprintf(j->id, sizeof(j->id), "%s", member_text(answer, "exec_id"));
	if (!*j->id)
		return err_set(err, ERR_UNAVAILABLE, "unexpected response: no exec_id");
	if (ret)
		*ret = steal_ptr(&answer);
	return 0;
}

int exec_job_list(const struct exec_job *j, json_t **ret, struct err *err)
{
	char path[API_PATH];

	if (client_path(path, sizeof(path), err, "/v1/sessions/%s/execs", j->ref) < 0)
		return -1;
	return client_list(j->client, path, "execs", ret, err);
}

int exec_job_get(struct exec_job *j, json_t **ret, struct err *err)
{
	auto_json json_t *answer = NULL;
	json_t *record;

	if (api_cmd_call(j, "GET", NULL, &answer, err, JOB_URL, j->ref, j->id) < 0)
		return -1;
	record = json_object_get(answer, "exec");
	if (!json_is_object(record))
		return err_set(err, ERR_UNAVAILABLE,
			       "unexpected response: no record of the command");
	*ret = json_incref(record);
	return 0;
}

int exec_job_signal(const struct exec_job *j, const char *signal, struct err *err)
{
	auto_json json_t *body = json_object();
	char *end;
	long n = strtol(signal, &end, 10);

	if (json_object_set_new(body, "signal",
				*signal && !*end ? json_integer(n) : json_string(signal)) < 0)
		return err_set(err, ERR_INVALID, "unknown signal \"%.32s\"", signal);
	return api_cmd_call(j, "POST", body, NULL, err, JOB_URL "/signal", j->ref, j->id);
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
	struct err ignored;

	return api_cmd_call(j, "POST", body, NULL, &ignored, JOB_URL "/resize", j->ref, j->id) == 0;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

int exec_job_status(const json_t *end)
{
	int64_t code = member_number(end, "exit_code"), signal = member_number(end, "signal");

	if (member_true(end, "timed_out"))
		return CLI_EXIT_TIMEOUT;
	if (signal >= 0)
		return SIGNAL_BASE + (int)signal;
	return code >= 0 ? (int)code : CLI_EXIT_FAILED; /* unknown */
}

uint64_t exec_job_number(const json_t *answer, const char *path)
{
	int64_t n = member_number(answer, path);

	return n > 0 ? (uint64_t)n : 0;
}

/* The limits of its session; 0: unknown. */
static struct limits limits_of(const struct exec_job *j)
{
	auto_json json_t *answer = NULL;
	struct err ignored;

	(void)api_cmd_call(j, "GET", NULL, &answer, &ignored, "/v1/sessions/%s", j->ref);
	return (struct limits){
		.memory_bytes = exec_job_number(answer, "session.limits.memory_bytes"),
		.disk_bytes = exec_job_number(answer, "session.limits.disk_bytes"),
		.file_bytes = exec_job_number(answer, "session.limits.file_bytes"),
		.pids = (uint32_t)exec_job_number(answer, "session.limits.pids"),
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
	if (*member_text(j->end, "reason"))
		fprintf(stderr, "lodge: %s\n", member_text(j->end, "reason"));
}

static json_t *to_json(const struct job_text *t, bool text)
{
	auto_free char *encoded = NULL;

	if (text)
		return json_stringn(t->len ? t->bytes : "", t->len);
	encoded = malloc(BASE64_ENCODED(t->len) + 1);
	if (!encoded)
		return NULL;
	base64_encode(t->bytes, t->len, encoded);
	return json_stringn(encoded, BASE64_ENCODED(t->len));
}

/* Both streams as text, or both as base64 if one is not UTF-8. */
int exec_job_write_json(struct exec_job *j, struct err *err)
{
	const struct job_text *out = &j->kept[JOB_OUT], *error = &j->kept[JOB_ERR];
	bool text = json_is_utf8(out->bytes, out->len) && json_is_utf8(error->bytes, error->len);

	if (json_object_set_new(j->end, "encoding", json_string(text ? "utf-8" : "base64")) < 0 ||
	    json_object_set_new(j->end, "stdout", to_json(out, text)) < 0 ||
	    json_object_set_new(j->end, "stderr", to_json(error, text)) < 0)
		return err_sys(err, ENOMEM, "output");
	return api_cmd_write_json(j->end, err);
}

void exec_job_print_detached(const struct exec_job *j)
{
	fprintf(stderr,
		"lodge: detached; the command keeps running (reconnect: lodge attach %s %s)\n",
		j->ref, j->id);
}

/* ---- input and signals ----------------------------------------------------------------------- */

/* The main thread reads the output of the command. Other threads send input and forward signals. */
static int start_thread(void *(*run)(void *), struct exec_job *j, struct err *err)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, run, j);

	if (r)
		return err_sys(err, r, "thread");
	pthread_detach(thread);
	return 0;
}

/* Retries only if the service certainly received nothing: input must not be sent twice. */
static int send_piece(struct exec_job *j, const char *bytes, size_t len, struct err *err)
{
	char path[API_PATH];
	struct client_request rq = {
		.method = "POST", .path = path, .bytes = bytes, .nbytes = len
	};
	struct client_stream *s = NULL;
	struct retry again = { 0 };
	int ms;

	if (client_path(path, sizeof(path), err, len ? JOB_URL "/stdin" : JOB_URL "/stdin?eof=true",
			j->ref, j->id) < 0)
		return -1;
	while (client_open(j->client, &rq, &s, err) < 0) {
		if ((err->sys != ECONNREFUSED && err->sys != EUSERS) ||
		    (ms = retry_pause(&again, err)) < 0)
			return -1;
		(void)poll(NULL, 0, ms);
	}
	client_close(s);
	return 0;
}

/* That the command closed its input, or ended, is no error. */
static void fail_input(struct exec_job *j, const struct err *err)
{
	if (err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND)
		return;
	fprintf(stderr, "lodge: input: %s; how much of it the command received is unknown\n",
		err->msg);
	exec_job_print_detached(j);
	_exit(CLI_EXIT_FAILED);
}

/* Works also if another process made the pipe non-blocking. */
static ssize_t read_input(char buf[PIECE])
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, PIECE)) < 0 && (errno == EINTR || errno == EAGAIN))
		(void)poll(&p, 1, -1);
	return n;
}

static void *send_input(void *arg)
{
	struct exec_job *j = arg;
	auto_free char *buf = malloc(PIECE);
	struct err err = { 0 };
	ssize_t n = buf ? 1 : 0;

	while (n > 0) {
		n = read_input(buf);
		if (send_piece(j, n > 0 ? buf : "", n > 0 ? (size_t)n : 0, &err) < 0) {
			fail_input(j, &err);
			break;
		}
	}
	return NULL;
}

static void *forward_signals(void *arg)
{
	struct exec_job *j = arg;
	sigset_t set;
	struct err err;
	int signo = 0;

	cleanup_signals(&set);
	for (bool again = false;; again = true) {
		if (sigwait(&set, &signo) != 0)
			continue;
		if (again || signo == SIGHUP || exec_job_signal(j, sigabbrev_np(signo), &err) < 0) {
			exec_job_print_detached(j);
			_exit(128 + signo);
		}
	}
	return NULL;
}

int exec_job_forward(struct exec_job *j, bool input, struct err *err)
{
	sigset_t set;

	cleanup_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (start_thread(forward_signals, j, err) < 0)
		return -1;
	return input ? start_thread(send_input, j, err) : 0;
}
