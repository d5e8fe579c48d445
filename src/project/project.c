/* SPDX-License-Identifier: Apache-2.0 */
/* Projects, and who may do what with them. */
#include "admit/user_queue.h"
#include "project/project.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "project/internal.h"
#include "project/switch_commit.h"
#include "project/team.h"
#include "project/users.h"

static int unknown(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "Project not found");
}

/* ---- access -------------------------------------------------------------------------------- */

/* Who has nothing to do with a project cannot tell it from one that is not there. */
static int access_in(struct store *st, const char *tenant, const char *user, const char *project,
		     enum project_need need, struct store_project *ret, struct err *err)
{
	int role = 0;

	if (store_project_get(st, tenant, project, ret, err) < 0)
		return err->code == ERR_NOT_FOUND ? unknown(err) : -1;
	if (strcmp(ret->owner, user) == 0)
		return 0;
	if (*ret->team)
		role = team_role_of(st, tenant, ret->team, user, err);
	if (role < 0)
		return -1;
	if (role == 0)
		return unknown(err);
	if (need == PROJECT_VIEW || role == TEAM_OWNER || role == TEAM_ADMIN ||
	    (need == PROJECT_SAVE && role == TEAM_MEMBER))
		return 0;
	return err_set(err, ERR_DENIED, "Access denied to this project");
}

int project_access(struct engine *e, const struct caller *who, const char *user,
		   const char *project, enum project_need need, struct store_project *ret,
		   struct err *err)
{
	struct store_project p;
	int r = -1;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	if (!project || !*project || strlen(project) >= STORE_ID)
		return unknown(err);
	WITH_STORE(e, st)
	r = access_in(st, who->tenant, user, project, need, &p, err);
	if (r == 0 && ret)
		*ret = p;
	return r;
}

/* ---- adding and looking -------------------------------------------------------------------- */

static int add(struct store *st, const char *user, struct store_project *p, struct err *err)
{
	struct store_project there;

	/* before the team is touched */
	if (store_project_get(st, p->tenant, p->id, &there, err) == 0)
		return err_set(err, ERR_CONFLICT, "Project %s is there already", p->id);
	if (err->code != ERR_NOT_FOUND)
		return -1;
	if (*p->team && team_create_owner(st, p->tenant, p->team, user, err) < 0)
		return -1;
	return store_project_add(st, p, err);
}

int project_add(struct engine *e, const struct caller *who, const char *user,
		const struct project_opts *want, struct store_project *ret, struct err *err)
{
	struct store_project p = { .created_at = engine_now(e) };
	bool named = want->id && *want->id, grouped = want->team && *want->team;
	int r = -1;

	if (name_check("user", user, STORE_USER, err) < 0 ||
	    (named && name_check_id("id", want->id, sizeof(p.id), err) < 0) ||
	    name_check("name", want->name, sizeof(p.name), err) < 0 ||
	    (grouped && name_check_id("team", want->team, sizeof(p.team), err) < 0))
		return -1;
	snprintf(p.tenant, sizeof(p.tenant), "%s", who->tenant);
	snprintf(p.name, sizeof(p.name), "%s", want->name);
	snprintf(p.owner, sizeof(p.owner), "%s", user);
	snprintf(p.team, sizeof(p.team), "%s", want->team ? want->team : "");
	if (named)
		snprintf(p.id, sizeof(p.id), "%s", want->id);
	else if (id_generate("prj_", p.id, err) < 0)
		return -1;
	if (user_ensure(e, who, user, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = add(st, user, &p, err);
	if (r < 0)
		return -1;
	*ret = p;
	return 0;
}

int project_get(struct engine *e, const struct caller *who, const char *user, const char *project,
		struct store_project *ret, struct err *err)
{
	return project_access(e, who, user, project, PROJECT_VIEW, ret, err);
}

int project_list(struct engine *e, const struct caller *who, const char *user,
		 struct store_page page, struct store_project_list *ret, struct err *err)
{
	int r = -1;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = store_project_list(st, who->tenant, user, page, ret, err);
	return r;
}

int project_owner(struct engine *e, const struct caller *who, const char *project,
		  char ret[STORE_USER], struct err *err)
{
	struct store_project p;
	int r = -1;

	if (!project || !*project || strlen(project) >= STORE_ID)
		return unknown(err);
	WITH_STORE(e, st)
	r = store_project_get(st, who->tenant, project, &p, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? unknown(err) : -1;
	memcpy(ret, p.owner, STORE_USER);
	return 0;
}

/* ---- removing ------------------------------------------------------------------------------ */

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

static int end_copy(struct engine *e, const struct caller *who, const struct store_session *s,
		    struct err *err)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_REQUESTED,
						       "its project was removed", NULL };
	struct session_ref ref = { .id = s->id };
	struct user_queue_ticket place;
	int r;

	user_queue_join(&place, e, who, s->user); /* not in the middle of a switch */
	r = session_destroy(e, who, &ref, &why, NULL, err);
	user_queue_leave(&place);
	return r;
}

/* Everybody's. Sessions that only have the project's name in their record are not ours to end. */
static int end_copies(struct engine *e, const struct caller *who, const char *project,
		      struct err *err)
{
	struct store_session_filter f = { .tenant = who->tenant, .project = project };
	struct store_page page = { .limit = 100 };
	int r = 0;

	do {
		struct store_session_list l = { 0 };

		r = session_list(e, &f, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			if (is_copy(&l.items[i]))
				r = end_copy(e, who, &l.items[i], err);
		page.after = l.next;
		store_session_list_fini(&l);
	} while (r == 0 && page.after);
	return r;
}

/* Fragments that were saved as a snapshot; they go one by one, each with what it holds. */
static int drop_snapshots(struct engine *e, const struct caller *who, const char *user,
			  const char *project, struct err *err)
{
	struct store_page page = { .limit = 100 };
	int r = 0;

	do {
		struct store_fragment_list l = { 0 };

		r = fragment_list(e, who, user, project, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			if (*l.items[i].snapshot)
				r = fragment_remove(e, who, user, project, l.items[i].id, err);
		page.after = l.next;
		store_fragment_list_fini(&l);
	} while (r == 0 && page.after);
	return r;
}

int project_remove(struct engine *e, const struct caller *who, const char *user,
		   const char *project, struct err *err)
{
	struct store_project p;
	int r = -1;

	if (project_access(e, who, user, project, PROJECT_DELETE, &p, err) < 0)
		return -1;
	/* the record goes last: what was interrupted can be asked for again */
	if (end_copies(e, who, p.id, err) < 0)
		return -1;
	hook_crash("project:ended");
	if (drop_snapshots(e, who, user, p.id, err) < 0)
		return -1;
	hook_crash("project:dropped");
	WITH_STORE(e, st)
	r = store_project_remove(st, who->tenant, p.id, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? unknown(err) : -1;
	hook_crash("project:removed");
	return end_copies(e, who, p.id, err); /* of a switch that was faster; there is no other */
}
