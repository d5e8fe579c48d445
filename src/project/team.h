/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_TEAM_H
#define LODGE_PROJECT_TEAM_H

#include "engine/internal.h"

/* Inside WITH_STORE(): returns the user's role in the team, 0 if none, -1 on error. */
int team_role_of(struct store *st, const char *tenant, const char *team, const char *user,
		 struct err *err);
/* Inside WITH_STORE(): makes the user OWNER of a team that has no members and no projects. */
int team_create_owner(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err);

#endif
