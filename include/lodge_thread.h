/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: sessions of threads. A part of lodge.h, which includes it. */
#ifndef LODGE_THREAD_H
#define LODGE_THREAD_H

#include <lodge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The session of one conversation of a user, as a bash tool of an agent has it: the same machine
 * and the same rules as lodged gives by POST /create_session, /execute, /upload_file and their
 * like. A workspace that commands start in, with limits on memory, processes and files; destroyed
 * when it was idle for too long. */
struct lodge_thread { /* never NULL */
	size_t size;
	const char *user, *thread; /* both are needed */
	int64_t idle_minutes; /* of a new one; 0: 30 */
};
/* LODGE_REUSED of one that is there, else a new one: LODGE_CREATED, or LODGE_REPLACED where an
 * earlier one of this thread is known to be gone. LODGE_DENIED: it is another user's. */
int lodge_thread_enter(struct lodge *l, const struct lodge_thread *thread,
		       struct lodge_session **ret);
/* Bash text; `status` of the result tells how it ended. seconds: 0.001 to 86400. */
int lodge_thread_run(struct lodge *l, const struct lodge_ref *ref, const char *text, double seconds,
		     struct lodge_result **ret);
/* The rest of `fd` as a file of the workspace: all or nothing. The name is relative and stays
 * inside. LODGE_LIMIT: lodge_last_refusal() tells more. *ret has its full path and its size. */
int lodge_thread_put(struct lodge *l, const struct lodge_ref *ref, const char *name, int fd,
		     struct lodge_file **ret);
/* A file of the workspace into `fd`. */
int lodge_thread_fetch(struct lodge *l, const struct lodge_ref *ref, const char *name, int fd);
/* Its regular files, the newest first. */
int lodge_thread_files(struct lodge *l, const struct lodge_ref *ref, struct lodge_files **ret);

/* Why the last of lodge_run(), lodge_exec_start() and lodge_thread_*() of this thread was refused;
 * until the next of them. */
struct lodge_refusal {
	const char *what; /* "program": by a policy. "file": too large; "files": too many;
			     "workspace": full. "": none of these */
	const char *word; /* of the command */
	uint64_t max, now, asked; /* bytes, or how many */
};
const struct lodge_refusal *lodge_last_refusal(void); /* never NULL */

#ifdef __cplusplus
}
#endif
#endif
