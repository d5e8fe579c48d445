/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: members and their roles. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"
#include "project/team.h"

static const char *const roles[] = {
	[TEAM_OWNER] = "OWNER",
	[TEAM_ADMIN] = "ADMIN",
	[TEAM_MEMBER] = "MEMBER",
	[TEAM_VIEWER] = "VIEWER",
};

const char *team_role_name(enum team_role role)
{
	return role >= TEAM_OWNER && role <= TEAM_VIEWER ? roles[role] : "?";
}

enum team_role team_role_find(const char *name)
{
	for (size_t i = TEAM_OWNER; i < ARRAY_LEN(roles); i++)
		if (strcmp(roles[i], name) == 0)
			return (enum team_role)i;
	return 0;
}

int team_role_of(struct store *st, const char *tenant, const char *team, const char *user,
		 struct err *err)
{
	struct store_member m;

	if (store_team_get(st, tenant, team, user, &m, err) == 0)
		return m.role;
	return err->code == ERR_NOT_FOUND ? 0 : -1;
}

static int store_member(struct store *st, const char *tenant, const char *team, const char *user,
			enum team_role role, struct err *err)
{
	struct store_member m = { .role = (uint8_t)role };

	snprintf(m.tenant, sizeof(m.tenant), "%s", tenant);
	snprintf(m.team, sizeof(m.team), "%s", team);
	snprintf(m.user, sizeof(m.user), "%s", user);
	return store_team_put(st, &m, err);
}

/* ---- a team's first member --------------------------------------------------------------- */

/* 1: a project names this team. Reads all projects, but only for a team without members. */
static int has_project(struct store *st, const char *tenant, const char *team, struct err *err)
{
	struct store_page page = { .limit = STORE_PAGE_MAX };

	do {
		struct store_project_list l = { 0 };
		bool found = false;

		if (store_project_list(st, tenant, NULL, page, &l, err) < 0)
			return -1;
		for (size_t i = 0; i < l.count && !found; i++)
			found = strcmp(l.items[i].team, team) == 0;
		page.after = l.next;
		store_project_list_fini(&l);
		if (found)
			return 1;
	} while (page.after);
	return 0;
}

/* The first user of a new team owns it. A team that a project already names is not new: its first
 * member would gain access to that project. */
int team_create_owner(struct store *st, const char *tenant, const char *team, const char *user,
		      struct err *err)
{
	struct store_member_list l = { 0 };
	bool is_member = false;
	size_t members;
	int named;

	if (store_team_list(st, tenant, team, &l, err) < 0)
		return -1;
	members = l.count;
	for (size_t i = 0; i < l.count; i++)
		is_member |= strcmp(l.items[i].user, user) == 0 && l.items[i].role != TEAM_VIEWER;
	store_member_list_fini(&l);
	if (members > 0)
		return is_member ? 0 : err_set(err, ERR_NOT_FOUND, "Team not found");
	named = has_project(st, tenant, team, err);
	return named ? (named < 0 ? -1 : 0) : store_member(st, tenant, team, user, TEAM_OWNER, err);
}

/* ---- changing ---------------------------------------------------------------------------- */

static int check_names(const char *by, const char *team, const char *user, struct err *err)
{
	if ((by && name_check("user", by, STORE_USER, err) < 0) ||
	    name_check_id("team", team, STORE_ID, err) < 0)
		return -1;
	return name_check("member", user, STORE_USER, err);
}

/* `owner`: an OWNER is added, changed or removed. */
static int check_may_change(struct store *st, const char *tenant, const char *by, const char *team,
			    bool owner, struct err *err)
{
	int role = by ? team_role_of(st, tenant, team, by, err) : TEAM_OWNER;

	if (role < 0)
		return -1;
	if (role == 0)
		return err_set(err, ERR_NOT_FOUND, "Team not found");
	if (role == TEAM_OWNER || (role == TEAM_ADMIN && !owner))
		return 0;
	return err_set(err, ERR_DENIED, "Access denied to this team");
}

static int put_member(struct store *st, const char *tenant, const char *by, const char *team,
		      const char *user, enum team_role role, struct err *err)
{
	int was = team_role_of(st, tenant, team, user, err);

	if (was < 0 || check_may_change(st, tenant, by, team,
					was == TEAM_OWNER || role == TEAM_OWNER, err) < 0)
		return -1;
	return store_member(st, tenant, team, user, role, err);
}

int team_put(struct engine *e, const struct caller *caller, const char *by, const char *team,
	     const char *user, enum team_role role, struct err *err)
{
	if (check_names(by, team, user, err) < 0)
		return -1;
	if (role < TEAM_OWNER || role > TEAM_VIEWER)
		return err_set(err, ERR_INVALID, "role: must be OWNER, ADMIN, MEMBER or VIEWER");
	return STORE_CALL(e, put_member, caller->tenant, by, team, user, role, err);
}

static int remove_member(struct store *st, const char *tenant, const char *by, const char *team,
			 const char *user, enum team_role *ret_was, struct err *err)
{
	int was = team_role_of(st, tenant, team, user, err);

	if (was < 0)
		return -1;
	if (!(by && was && strcmp(by, user) == 0) &&
	    check_may_change(st, tenant, by, team, was == TEAM_OWNER, err) < 0)
		return -1;
	if (store_team_remove(st, tenant, team, user, err) < 0)
		return -1;
	if (ret_was)
		*ret_was = (enum team_role)was;
	return 0;
}

int team_remove(struct engine *e, const struct caller *caller, const char *by, const char *team,
		const char *user, enum team_role *ret_was, struct err *err)
{
	if (check_names(by, team, user, err) < 0)
		return -1;
	return STORE_CALL(e, remove_member, caller->tenant, by, team, user, ret_was, err);
}

int team_list(struct engine *e, const struct caller *caller, const char *by, const char *team,
	      struct store_member_list *ret, struct err *err)
{
	int role = TEAM_OWNER, r = -1;

	if (check_names(by, team, "x", err) < 0)
		return -1;
	WITH_STORE(e, st)
	{
		if (by)
			role = team_role_of(st, caller->tenant, team, by, err);
		if (role > 0)
			r = store_team_list(st, caller->tenant, team, ret, err);
	}
	if (role == 0) {
		*ret = (struct store_member_list){ 0 };
		return 0;
	}
	return r;
}

int team_list_rows(struct engine *e, const struct caller *caller, const char *user,
		   struct store_page page, struct store_team_row_list *ret, struct err *err)
{
	return STORE_CALL(e, store_team_rows, caller->tenant, user, page, ret, err);
}
