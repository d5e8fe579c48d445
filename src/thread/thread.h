/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: one session per conversation of a user, as the bash tool of an agent uses it. The HTTP
 * API and liblodge share these rules. */
#ifndef LODGE_THREAD_THREAD_H
#define LODGE_THREAD_THREAD_H

#include "exec/exec_lookup.h"
#include "sandbox/template/template.h"
#include "session/session_api.h"

struct side_conn;

enum { THREAD_MINUTES_MAX = 7 * 24 * 60, THREAD_TIMEOUT_S = 30, THREAD_TIMEOUT_MAX_S = 24 * 3600 };

/* Settings of new sessions. 0 or NULL: the default. */
struct thread_config {
	uint64_t memory_bytes, cpu_milli, pids, file_bytes, disk_bytes;
	uint64_t files; /* maximum number of files in the workspace when one is uploaded */
	int64_t idle_ms;
	const char *user, *workdir;
	const char *template; /* "host" */
	const char *policy; /* of the caller's tenant; NULL: the template's, if any */
	unsigned pool_min, pool; /* only reported, as max_active of the engine is */
	struct limits max; /* of all sessions: what exceeds it is lowered; 0: none */
	unsigned demand; /* enum keeper_demand: set by thread_config_check() */
};
/* Fills in the defaults, and lowers what exceeds `max`. ERR_INVALID names the setting. */
int thread_config_check(struct thread_config *t, struct err *err);

/* Enters the thread's session. SESSION_REUSED: it exists, and this counts as a use of it. Otherwise
 * the session is new, SESSION_REPLACED if an earlier one of the thread is known to have ended.
 * ERR_DENIED: the session belongs to another user. minutes: idle timeout; 0: as configured; more
 * than its bound is reduced and named in ret->adjusted, another than that of a session that exists
 * is named in ret->ignored. */
int thread_enter(struct engine *e, const struct caller *caller, const struct thread_config *t,
		 const char *user, const char *thread, int64_t minutes,
		 struct session_enter_result *ret, struct err *err);

/* ---- commands -------------------------------------------------------------------------------- */

/* 0 seconds: no limit. */
int thread_timeout(double seconds, uint32_t *ret_ms, struct err *err);
/* The exit code as a shell reports it; -1 if it is unknown. */
int thread_exit_code(struct exec_handle *x, const struct guest_exec_result *r, int *ret,
		     struct err *err);

#endif
