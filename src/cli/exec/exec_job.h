/* SPDX-License-Identifier: Apache-2.0 */
/* One command of a session, over the API. It survives broken connections: its output has offsets,
 * and reading continues where it stopped. */
#ifndef LODGE_CLI_EXEC_EXEC_JOB_H
#define LODGE_CLI_EXEC_EXEC_JOB_H

#include "cli/core/api_cmd.h"
#include "cli/core/retry.h"

/* Of a path; its parts are the members ref and id. */
#define JOB_URL "/v1/sessions/%s/execs/%s"

enum { JOB_ID = 64, JOB_KEEP_MAX = 64 << 20 };
enum { JOB_OUT, JOB_ERR, JOB_STREAMS };

struct exec_job {
	struct client *client;
	char ref[TARGET_REF]; /* of the session */
	char id[JOB_ID];
	uint64_t at[JOB_STREAMS]; /* bytes read */
	bool keep; /* collect the output instead of writing it */
	bool tails; /* of that, only the last lines of each stream: this number */
	uint64_t tail;
	struct job_text {
		char *bytes;
		size_t len, capacity;
	} kept[JOB_STREAMS];
	bool gap; /* output was discarded before it was read */
	uint32_t timeout_ms; /* 0: unknown */
	struct retry retry; /* of the connection that output comes from */
	json_t *end; /* the record of how it ended */
};
void exec_job_fini(struct exec_job *j); /* not the client */

/* Puts a program and its arguments, which NULL ends, into the body of an exec. */
int exec_job_put_words(struct api_cmd *a, json_t *body, char **words, struct err *err);
/* Starts it in the background; *ret is the answer. */
int exec_job_start(struct exec_job *j, json_t *body, json_t **ret, struct err *err);
/* All commands of its session; needs no id. */
int exec_job_list(const struct exec_job *j, json_t **ret, struct err *err);
/* Gets its record. */
int exec_job_get(struct exec_job *j, json_t **ret, struct err *err);
/* By the name or number of a signal. */
int exec_job_signal(const struct exec_job *j, const char *signal, struct err *err);
/* {"rows": ..., "cols": ...} of the local terminal. */
json_t *exec_job_size(void);
/* Resizes its terminal to that. False: it has none, or has ended. */
bool exec_job_resize(const struct exec_job *j);

/* Forwards SIGINT, SIGQUIT and SIGTERM to the command from now on, and with `input` standard input;
 * a second signal detaches. The threads use the job until the process exits, so the job must be
 * static, and api_cmd.threads set. */
int exec_job_forward(struct exec_job *j, bool input, struct err *err);

/* The exit status of lodge for the record of an ended command; explains limits on stderr. */
int exec_job_status(const json_t *end);
void exec_job_explain(const struct exec_job *j);

/* A positive number of an answer; 0: none. */
uint64_t exec_job_number(const json_t *answer, const char *path);
/* Says on stderr how to reconnect. */
void exec_job_print_detached(const struct exec_job *j);
/* Prints the record with the collected output. */
int exec_job_write_json(struct exec_job *j, struct err *err);

#endif
