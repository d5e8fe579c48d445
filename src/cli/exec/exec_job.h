/* SPDX-License-Identifier: Apache-2.0 */
/* One command of a session: started, followed, fed and ended over the daemon's interface. It does
 * not notice that connections break: its output has offsets, by which it is read on. */
#ifndef LODGE_CLI_EXEC_EXEC_JOB_H
#define LODGE_CLI_EXEC_EXEC_JOB_H

#include "cli/core/api_cmd.h"

enum { JOB_ID = 64, JOB_PATH = 8192, JOB_KEEP_MAX = 64 << 20 };
enum { JOB_OUT, JOB_ERR, JOB_STREAMS };

struct job {
	struct client *client;
	char ref[WHERE_REF]; /* of the session */
	char id[JOB_ID];
	uint64_t at[JOB_STREAMS]; /* read so far */
	bool keep; /* the output is collected, and not written out */
	struct job_text {
		char *bytes;
		size_t len, room;
	} kept[JOB_STREAMS];
	bool gap; /* some of the output was dropped before it was read */
	uint32_t timeout_ms; /* that it was given; 0: not known */
	json_t *end; /* the record of how it ended */
};
void job_fini(struct job *j); /* not the client */

/* "/v1/sessions/REF/execs/ID" and what follows. */
int job_path(const struct job *j, const char *tail, char ret[JOB_PATH], struct err *err);

/* A program and its arguments into the body of an exec; NULL ends them. */
int job_put_words(struct ask *a, json_t *body, char **words, struct err *err);
/* POST exec in the background; *ret is the answer. */
int job_start(struct job *j, json_t *body, json_t **ret, struct err *err);
/* The same as a stream that is read to its end, by offsets where it breaks. `started` is called
 * when its id is known. */
typedef int job_started_fn(struct job *j, void *arg, struct err *err);
int job_stream(struct job *j, json_t *body, job_started_fn *started, void *arg, struct err *err);
/* Reads on from j->at; without `wait` only what is there. With the end of the command j->end. */
int job_follow(struct job *j, bool wait, struct err *err);

/* Its record; also whether the session has it. */
int job_look(struct job *j, json_t **ret, struct err *err);
/* By the name or number of a signal. */
int job_signal(const struct job *j, const char *signal, struct err *err);
/* {"rows": ..., "cols": ...} of the terminal here. */
json_t *job_size(void);
/* To that size. False: it has no terminal, or has ended. */
bool job_resize(const struct job *j);

/* Standard input to the command, in a thread of its own, to its end. Threads have the job until the
 * process ends: it is none of a frame, and ask.h's `threads` is set. */
int job_feed(struct job *j, struct err *err);
/* SIGINT, SIGQUIT and SIGTERM go to the command from now on; a second one leaves it alone. */
int job_catch(struct job *j, struct err *err);

/* lodge's exit status for a record of how one ended, and what there is to say about it. */
int job_status(const json_t *end);
void job_remark(const struct job *j);

/* --json of a command that was kept: its record with the output. */
int job_say_kept(struct job *j, struct err *err);

#endif
