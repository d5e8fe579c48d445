/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_PROJECT_SWITCH_H
#define LODGE_PROJECT_PROJECT_SWITCH_H

#include "engine/engine.h"
#include "engine/start_progress.h"

struct switch_opts {
	const char *user, *project;
	const char *fragment; /* NULL: the user's working copy, or the latest fragment if there is
				 none */
	const char *template; /* for a new sandbox; NULL: "host" */
	const struct template *over; /* overrides of the template; may be NULL */
	int64_t idle_timeout_ms, max_lifetime_ms, wait_ms; /* as in struct session_opts */
	/* Receives progress in the caller's thread, at least every 1,000 files; may be NULL. Not
	 * called if the request is refused before anything changes. */
	progress_fn *on_progress;
	void *progress_arg;
};
struct switch_result {
	char session[STORE_ID], sandbox[STORE_ID];
	char project[STORE_ID], fragment[STORE_ID]; /* now active; fragment may be "" */
	char previous[STORE_ID]; /* session that was active before, if another */
	enum session_outcome outcome;
	unsigned restored_files; /* written by this switch; 0 if a working copy was resumed */
	bool has_restored_files; /* a working copy, or a non-empty fragment */
	bool state_lost; /* the files of the working copy were lost */
	struct store_cause cause; /* of state_lost, or of the resume */
};
/* Checks access, fragment and paths before it changes anything, prepares the new sandbox, and makes
 * it the user's active one as the last step. A failure before that step leaves the active sandbox
 * and its processes as they are. A named fragment replaces the working copy with exactly its files.
 * The sandbox that was active before is hibernated; it stays the working copy of its project.
 * Switches of one user run one after the other, in the order of the calls. A call that asks for the
 * same as the last one in the queue shares its result, with SESSION_REUSED.
 *
 * Two sandboxes run for a moment, so a quota of one sandbox blocks every switch. */
int switch_user(struct engine *e, const struct caller *caller, const struct switch_opts *opts,
		struct switch_result *ret, struct err *err);

#endif
