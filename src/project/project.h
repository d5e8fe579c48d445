/* SPDX-License-Identifier: Apache-2.0 */
/* Projects: each user has one active sandbox and switches it between projects.
 *
 * A project belongs to its owner and, if it names one, to a team. A fragment is one saved set of a
 * project's files. A user works on a project in a working copy: a session of that user and that
 * project, which keeps unsaved files. One working copy of a user is active at a time.
 *
 * `user` is the end user, `who` the application that calls on the user's behalf. A user record is
 * created on the first change for that user. Calls block and are thread-safe; on failure what `ret`
 * points to is unchanged.
 *
 *   ERR_NOT_FOUND    "Project not found": it does not exist, or this user has no access to it;
 *                    "Fragment not found: F"
 *   ERR_DENIED       the user is in the project's team, but lacks the right
 *   ERR_CONFLICT     "Fragment F does not belong to project P"; the id already exists
 *   ERR_INVALID      the message names the field, or the path of a file
 *   ERR_LIMIT        with sys EFBIG: more files or bytes than a fragment may have; a quota; a full
 *                    disk
 *
 * engine/engine.h lists the other errors. */
#ifndef LODGE_PROJECT_PROJECT_H
#define LODGE_PROJECT_PROJECT_H

#include "engine/engine.h"

struct project_opts {
	const char *id; /* NULL: generate one */
	const char *name;
	const char *team; /* NULL: none. The user becomes OWNER of a new team. */
};
int project_add(struct engine *e, const struct caller *caller, const char *user,
		const struct project_opts *opts, struct store_project *ret, struct err *err);
/* Allowed for the owner, every member of the team, and the application itself (user NULL). */
int project_get(struct engine *e, const struct caller *caller, const char *user,
		const char *project, struct store_project *ret, struct err *err);
int project_list(struct engine *e, const struct caller *caller, const char *user,
		 struct store_page page, struct store_project_list *ret, struct err *err);
/* Deletes the project, its fragments and the working copies of all users. Allowed for the owner,
 * and for OWNER and ADMIN of the team. */
int project_remove(struct engine *e, const struct caller *caller, const char *user,
		   const char *project, struct err *err);
int project_not_found(struct err *err); /* always -1 */

enum project_right { PROJECT_VIEW, PROJECT_SAVE, PROJECT_DELETE };
/* Loads the project if the user has this right on it. ret may be NULL. */
int project_access(struct engine *e, const struct caller *caller, const char *user,
		   const char *project, enum project_right right, struct store_project *ret,
		   struct err *err);

#endif
