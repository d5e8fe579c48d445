/* SPDX-License-Identifier: Apache-2.0 */
/* Creating, listing and deleting projects. */
#include "admit/user_queue.h"
#include "project/project.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "project/binding.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/fragment.h"
#include "project/session_walk.h"
#include "project/switch_commit.h"
#include "project/team.h"
#include "project/users.h"
#include "engine/session_state.h"
#include "session/session_api.h"

/* ---- rights on a project, by ownership and team role ------------------------------------------
 */

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
	int r;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	if (!project || !*project || strlen(project) >= STORE_ID)
		return project_not_found(err);
	r = STORE_CALL(e, check_access, caller->tenant, user, project, right, &p, err);
	if (r == 0 && ret)
		*ret = p;
	return r;
}

/* ---- creating and listing ---------------------------------------------------------------- */

static int add_project(struct store *st, const char *user, struct store_project *p, struct err *err)
{
	struct store_project existing;

	/* before the team changes */
	if (store_project_get(st, p->tenant, p->id, &existing, err) == 0)
		return err_set(err, ERR_CONFLICT, "project %s already exists", p->id);
	if (err->code != ERR_NOT_FOUND)
		return -1;
	if (*p->team && team_create_owner(st, p->tenant, p->team, user, err) < 0)
		return -1;
	return store_project_add(st, p, err);
}

int project_add(struct engine *e, const struct caller *caller, const char *user,
		const struct project_opts *opts, struct store_project *ret, struct err *err)
{
	struct store_project p = { .created_at = engine_now(e) };
	bool has_id = opts->id && *opts->id, has_team = opts->team && *opts->team;

	if (name_check("user", user, STORE_USER, err) < 0 ||
	    (has_id && name_check_id("id", opts->id, sizeof(p.id), err) < 0) ||
	    name_check("name", opts->name, sizeof(p.name), err) < 0 ||
	    (has_team && name_check_id("team", opts->team, sizeof(p.team), err) < 0))
		return -1;
	snprintf(p.tenant, sizeof(p.tenant), "%s", caller->tenant);
	snprintf(p.name, sizeof(p.name), "%s", opts->name);
	snprintf(p.owner, sizeof(p.owner), "%s", user);
	snprintf(p.team, sizeof(p.team), "%s", opts->team ? opts->team : "");
	if (has_id)
		snprintf(p.id, sizeof(p.id), "%s", opts->id);
	else if (id_generate("prj_", p.id, err) < 0)
		return -1;
	if (user_ensure(e, caller, user, err) < 0)
		return -1;
	if (STORE_CALL(e, add_project, user, &p, err) < 0)
		return -1;
	*ret = p;
	return 0;
}

int project_get(struct engine *e, const struct caller *caller, const char *user,
		const char *project, struct store_project *ret, struct err *err)
{
	int r;

	if (user)
		return project_access(e, caller, user, project, PROJECT_VIEW, ret, err);
	if (!project || !*project || strlen(project) >= STORE_ID)
		return project_not_found(err);
	r = STORE_CALL(e, store_project_get, caller->tenant, project, ret, err);
	return r < 0 && err->code == ERR_NOT_FOUND ? project_not_found(err) : r;
}

int project_list(struct engine *e, const struct caller *caller, const char *user,
		 struct store_page page, struct store_project_list *ret, struct err *err)
{
	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	return STORE_CALL(e, store_project_list, caller->tenant, user, page, ret, err);
}

/* ---- deleting ---------------------------------------------------------------------------- */

static bool is_copy(const struct store_session *s)
{
	struct store_binding key;
	struct err ignored;

	if (!*s->user || binding_of_copy(s->user, s->project, &key, &ignored) < 0)
		return false;
	for (size_t i = 0; i < s->nbindings; i++)
		if (strcmp(s->bindings[i].kind, key.kind) == 0 &&
		    strcmp(s->bindings[i].key, key.key) == 0)
			return true;
	return false;
}

static int delete_copy(struct engine *e, const struct caller *caller, const struct store_session *s,
		       void *arg, struct err *err)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_REQUESTED,
						       "its project was deleted", NULL };
	struct session_ref ref = { .id = s->id };
	auto_fini(user_queue_leave) struct user_queue_ticket ticket = { 0 };

	(void)arg;
	if (!is_copy(s))
		return 0;
	user_queue_enter(&ticket, e, caller, s->user); /* not in the middle of a switch */
	return session_destroy(e, caller, &ref, &why, NULL, err);
}

/* Deletes the working copies of all users. Other sessions that name the project stay. */
static int delete_copies(struct engine *e, const struct caller *caller, const char *project,
			 struct err *err)
{
	struct store_session_filter f = { .tenant = caller->tenant, .project = project };

	return session_walk(e, caller, &f, delete_copy, NULL, err);
}

/* Deletes fragments that refer to a snapshot one by one, because fragment_remove() may have to
 * delete the snapshot too. */
static int delete_snapshot_fragments(struct engine *e, const struct caller *caller,
				     const char *user, const char *project, struct err *err)
{
	struct store_page page = { .limit = 100 };
	int r = 0;

	do {
		struct store_fragment_list l = { 0 };

		r = fragment_list(e, caller, user, project, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			if (*l.items[i].snapshot)
				r = fragment_remove(e, caller, user, project, l.items[i].id, err);
		page.after = l.next;
		store_fragment_list_fini(&l);
	} while (r == 0 && page.after);
	return r;
}

int project_remove(struct engine *e, const struct caller *caller, const char *user,
		   const char *project, struct err *err)
{
	struct store_project p;

	if (project_access(e, caller, user, project, PROJECT_DELETE, &p, err) < 0)
		return -1;
	/* the record is deleted last, so that an interrupted call can be repeated */
	if (delete_copies(e, caller, p.id, err) < 0)
		return -1;
	hook_crash("project:ended");
	if (delete_snapshot_fragments(e, caller, user, p.id, err) < 0)
		return -1;
	hook_crash("project:dropped");
	if (STORE_CALL(e, store_project_remove, caller->tenant, p.id, err) < 0)
		return err->code == ERR_NOT_FOUND ? project_not_found(err) : -1;
	hook_crash("project:removed");
	return delete_copies(e, caller, p.id, err); /* those of switches that ran meanwhile */
}
