/* SPDX-License-Identifier: Apache-2.0 */
/* Projects from inside, for the files that make up project/project.h. */
#ifndef LODGE_PROJECT_INTERNAL_H
#define LODGE_PROJECT_INTERNAL_H

#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"

/* ---- who may what -------------------------------------------------------------------------- */

enum project_need { PROJECT_VIEW, PROJECT_SAVE, PROJECT_DELETE };
/* The project, if the user may do this with it. ret may be NULL. */
int project_access(struct engine *e, const struct caller *who, const char *user,
		   const char *project, enum project_need need, struct store_project *ret,
		   struct err *err);

enum { MEM_GATE_BYTES = 1 << 20 }; /* smaller ones need no place in the memory gate */

/* ---- files of a fragment ------------------------------------------------------------------- */

enum { RESTORE_STEP = 1000 }; /* files; after so many it is told */
struct restore_progress {
	void (*fn)(void *arg, unsigned done); /* files that have been taken */
	void *arg;
};

/* ---- keys ---------------------------------------------------------------------------------- */

/* What a session that a switch makes has for metadata until the user is on it. One with this mark
 * and without keys belongs to no switch that is still under way. */
#define SWITCH_MARK "lodge:switch"
#define SWITCH_PENDING "{\"" SWITCH_MARK "\":\"pending\"}"
#define SWITCH_REPLACED "{\"" SWITCH_MARK "\":\"replaced\"}"

/* The rest is for who stands first in the user's line. */

struct switch_commit_result {
	char previous[STORE_ID]; /* session the user was on, "" if none or the same */
	char replaced[STORE_ID]; /* working copy that has no key any more */
	char sandbox[STORE_ID]; /* of the session, as it is now */
};

#endif
