/* SPDX-License-Identifier: Apache-2.0 */
/* One command of a session: started, followed, fed and ended over the daemon's interface. It does
 * not notice that connections break: its output has offsets, by which it is read on. */
#ifndef LODGE_CLI_EXEC_EXEC_JOB_H
#define LODGE_CLI_EXEC_EXEC_JOB_H

#include "cli/core/api_cmd.h"

enum { JOB_ID = 64, JOB_PATH = 8192, JOB_KEEP_MAX = 64 << 20 };
enum { JOB_OUT, JOB_ERR, JOB_STREAMS };

struct exec_job {
	struct client *client;
	char ref[WHERE_REF]; /* of the session */
	char id[JOB_ID];
	uint64_t at[JOB_STREAMS]; /* read so far */
	bool keep; /* the output is collected, and not written out */
	struct job_text {
		char *bytes;
		size_t len, capacity;
	} kept[JOB_STREAMS];
	bool gap; /* some of the output was dropped before it was read */
	uint32_t timeout_ms; /* that it was given; 0: not known */
	json_t *end; /* the record of how it ended */
};
void exec_job_fini(struct exec_job *j); /* not the client */

/* "/v1/sessions/REF/execs/ID" and what follows. */
int exec_job_path(const struct exec_job *j, const char *tail, char ret[JOB_PATH], struct err *err);

/* A program and its arguments into the body of an exec; NULL ends them. */
int exec_job_put_words(struct api_cmd *a, json_t *body, char **words, struct err *err);
/* POST exec in the background; *ret is the answer. */
int exec_job_start(struct exec_job *j, json_t *body, json_t **ret, struct err *err);
/* The same as a stream that is read to its end, by offsets where it breaks. `started` is called
 * when its id is known. */
typedef int exec_job_started_fn(struct exec_job *j, void *arg, struct err *err);
int exec_job_stream(struct exec_job *j, json_t *body, exec_job_started_fn *started, void *arg,
		    struct err *err);
/* Reads on from j->at; without `wait` only what is there. With the end of the command j->end. */
int exec_job_follow(struct exec_job *j, bool wait, struct err *err);

/* Its record; also whether the session has it. */
int exec_job_look(struct exec_job *j, json_t **ret, struct err *err);
/* By the name or number of a signal. */
int exec_job_signal(const struct exec_job *j, const char *signal, struct err *err);
/* {"rows": ..., "cols": ...} of the terminal here. */
json_t *exec_job_size(void);
/* To that size. False: it has no terminal, or has ended. */
bool exec_job_resize(const struct exec_job *j);

/* Standard input to the command, in a thread of its own, to its end. Threads have the job until the
 * process ends: it is none of a frame, and ask.h's `threads` is set. */
int exec_job_feed(struct exec_job *j, struct err *err);
/* SIGINT, SIGQUIT and SIGTERM go to the command from now on; a second one leaves it alone. */
int exec_job_catch(struct exec_job *j, struct err *err);

/* lodge's exit status for a record of how one ended, and what there is to say about it. */
int exec_job_status(const json_t *end);
void exec_job_remark(const struct exec_job *j);

/* --json of a command that was kept: its record with the output. */
int exec_job_say_kept(struct exec_job *j, struct err *err);

#endif
