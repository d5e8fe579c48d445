/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_TEAM_H
#define LODGE_PROJECT_TEAM_H

#include "engine/engine.h"

enum team_role { /* stored in the database */
		 TEAM_OWNER = 1,
		 TEAM_ADMIN,
		 TEAM_MEMBER,
		 TEAM_VIEWER,
};
const char *team_role_name(enum team_role role); /* "OWNER"; "?" if invalid */
/* 0: no such role. */
enum team_role team_role_find(const char *name);

/* `by` is the calling end user: an OWNER, or an ADMIN unless an OWNER is added, changed or removed.
 * NULL: the application itself, which has all rights. */
int team_put(struct engine *e, const struct caller *caller, const char *by, const char *team,
	     const char *user, enum team_role role, struct err *err);
/* Every member may remove themselves. ret_was, the former role, may be NULL. */
int team_remove(struct engine *e, const struct caller *caller, const char *by, const char *team,
		const char *user, enum team_role *ret_was, struct err *err);
/* Sorted by user. Allowed for members; for others the list is empty. */
int team_list(struct engine *e, const struct caller *caller, const char *by, const char *team,
	      struct store_member_list *ret, struct err *err);

/* All teams of the tenant by name, or those of a user with the role there. */
int team_list_rows(struct engine *e, const struct caller *caller, const char *user,
		   struct store_page page, struct store_team_row_list *ret, struct err *err);

/* Inside WITH_STORE(): returns the user's role in the team, 0 if none, -1 on error. */
int team_role_of(struct store *st, const char *tenant, const char *team, const char *user,
		 struct err *err);
/* Inside WITH_STORE(): makes the user OWNER of a team that has no members and no projects. */
int team_create_owner(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err);

#endif
