/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: sessions of threads. Included by lodge.h. */
#ifndef LODGE_THREAD_H
#define LODGE_THREAD_H

#include <lodge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The session of one conversation of a user, for the bash tool of an agent, with the same rules as
 * POST /create_session, /execute, /upload_file and so on of lodged. Commands start in a workspace
 * with limits on memory, processes and files. The session is destroyed after its idle timeout. */
struct lodge_thread { /* never NULL */
	size_t size;
	const char *user, *thread; /* both are required */
	int64_t idle_minutes; /* of a new session; 0: 30 */
};
/* Gets the session (LODGE_REUSED) or creates it: LODGE_CREATED, or LODGE_REPLACED if an earlier
 * session of this thread has ended. LODGE_DENIED: the thread belongs to another user. */
int lodge_thread_enter(struct lodge *l, const struct lodge_thread *thread,
		       struct lodge_session **ret);
/* Runs bash text; `status` of the result is its outcome. seconds: 0.001 to 86400. */
int lodge_thread_run(struct lodge *l, const struct lodge_ref *ref, const char *text, double seconds,
		     struct lodge_result **ret);
/* Writes the rest of `fd` to a file of the workspace, completely or not at all. The name is
 * relative to the workspace and cannot leave it. LODGE_LIMIT: see lodge_last_refusal(). *ret has
 * the full path and the size. */
int lodge_thread_put(struct lodge *l, const struct lodge_ref *ref, const char *name, int fd,
		     struct lodge_file **ret);
/* Copies a file of the workspace to `fd`. */
int lodge_thread_fetch(struct lodge *l, const struct lodge_ref *ref, const char *name, int fd);
/* Lists its regular files, newest first. */
int lodge_thread_files(struct lodge *l, const struct lodge_ref *ref, struct lodge_files **ret);

/* Why the last lodge_run(), lodge_exec_start() or lodge_thread_*() call of this thread was refused;
 * valid until the next one. */
struct lodge_refusal {
	const char *what; /* "program": a policy; "file": too large; "files": too many; "workspace":
			     full; "": none of these */
	const char *word; /* of the command */
	uint64_t max, now, asked; /* bytes, or a number of files */
};
const struct lodge_refusal *lodge_last_refusal(void); /* never NULL */

#ifdef __cplusplus
}
#endif
#endif
