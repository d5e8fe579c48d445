/* SPDX-License-Identifier: Apache-2.0 */
/* Rights on a project, by ownership and team role. */
#include "project/project_access.h"

#include <string.h>

#include "engine/name_check.h"
#include "project/project.h"
#include "project/team.h"

int project_not_found(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "Project not found");
}

/* A user without any right gets the same error as for a project that does not exist. */
static int check_access(struct store *st, const char *tenant, const char *user, const char *project,
			enum project_right right, struct store_project *ret, struct err *err)
{
	int role = 0;

	if (store_project_get(st, tenant, project, ret, err) < 0)
		return err->code == ERR_NOT_FOUND ? project_not_found(err) : -1;
	if (strcmp(ret->owner, user) == 0)
		return 0;
	if (*ret->team)
		role = team_role_of(st, tenant, ret->team, user, err);
	if (role < 0)
		return -1;
	if (role == 0)
		return project_not_found(err);
	if (right == PROJECT_VIEW || role == TEAM_OWNER || role == TEAM_ADMIN ||
	    (right == PROJECT_SAVE && role == TEAM_MEMBER))
		return 0;
	return err_set(err, ERR_DENIED, "Access denied to this project");
}

int project_access(struct engine *e, const struct caller *caller, const char *user,
		   const char *project, enum project_right right, struct store_project *ret,
		   struct err *err)
{
	struct store_project p;
	int r = -1;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	if (!project || !*project || strlen(project) >= STORE_ID)
		return project_not_found(err);
	WITH_STORE(e, st)
	r = check_access(st, caller->tenant, user, project, right, &p, err);
	if (r == 0 && ret)
		*ret = p;
	return r;
}
