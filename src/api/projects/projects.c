/* SPDX-License-Identifier: Apache-2.0 */
/* /api/projects and /api/teams: users who switch between projects, with one sandbox each. */
#include "api/projects/projects.h"

#include <errno.h>
#include <string.h>

#include "api/core/internal.h"
#include "project/fragment.h"
#include "project/project.h"
#include "project/team.h"

/* ---- surface --------------------------------------------------------------------------------- */

/* Two keys are a 401 here. */
static unsigned put_error(struct api_call *c, const struct err *err, struct json_out *j)
{
	(void)c;
	json_out_object(j, NULL);
	json_out_bool(j, "success", false);
	json_out_str(j, "error", api_error_text(err));
	json_out_end(j);
	return err->code == ERR_INVALID && err->sys == ENOTUNIQ ? 401 : api_status(err);
}

_Static_assert((int)API_LARGE_BODY_MAX == (int)FRAGMENT_BYTES_MAX, "a fragment is one body");
const struct api_surface projects_surface = { .routes = API_TABLE(PROJECTS_ROUTES),
					      .put_error = put_error,
					      .no_store = true,
					      .untyped_json = true };

/* As projects_user(), but without a user *ret is NULL. */
static int find_caller(struct api_call *c, const json_t *body, const char **ret, struct err *err)
{
	const char *named = body ? NULL : http_query(c->rq, "userId");

	if (body && api_str(body, "userId", &named, err) < 0)
		return -1;
	if (*c->session)
		return err_set(err, ERR_DENIED, "this token is for one session only");
	if (!*c->user && c->scope < API_TENANT)
		return err_set(err, ERR_DENIED,
			       "permission denied: requires a key with scope \"tenant\", or a "
			       "token for one user");
	if (*c->user && named && strcmp(c->user, named) != 0)
		return err_set(err, ERR_DENIED, "userId: this token is for another user");
	*ret = *c->user ? c->user : named;
	return 0;
}

int projects_user(struct api_call *c, const json_t *body, const char **ret, struct err *err)
{
	const char *user = NULL;

	if (find_caller(c, body, &user, err) < 0)
		return -1;
	if (!user || !*user)
		return err_set(err, ERR_INVALID, "userId: missing in the %s",
			       body ? "body" : "query");
	*ret = user;
	return 0;
}

/* ---- projects -------------------------------------------------------------------------------- */

static void put_project(struct json_out *j, const struct store_project *p)
{
	json_out_object(j, NULL);
	json_out_str(j, "id", p->id);
	json_out_str(j, "name", p->name);
	json_out_str(j, "owner", p->owner);
	json_out_text(j, "team", p->team);
	api_put_iso(j, "createdAt", p->created_at);
	json_out_end(j);
}

static int reply_project(struct api_call *c, unsigned status, const struct store_project *p,
			 struct err *err)
{
	struct json_out j;

	api_out(&j);
	put_project(&j, p);
	return api_reply(c, status, &j, err);
}

int projects_create(struct api_call *c, struct err *err)
{
	struct project_opts want = { 0 };
	struct store_project p;
	const char *user = NULL;
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 || api_str(b, "id", &want.id, err) < 0 ||
	    api_str(b, "name", &want.name, err) < 0 || api_str(b, "team", &want.team, err) < 0 ||
	    projects_user(c, b, &user, err) < 0 ||
	    project_add(c->engine, &c->caller, user, &want, &p, err) < 0)
		return -1;
	return reply_project(c, 201, &p, err);
}

int projects_list(struct api_call *c, struct err *err)
{
	auto_fini(store_project_list_fini) struct store_project_list l = { 0 };
	struct store_page page;
	const char *user = NULL;
	struct json_out j;

	if (projects_user(c, NULL, &user, err) < 0 || api_page(c, &page, err) < 0 ||
	    project_list(c->engine, &c->caller, user, page, &l, err) < 0)
		return -1;
	api_list(&j, "projects");
	for (size_t i = 0; i < l.count; i++)
		put_project(&j, &l.items[i]);
	api_list_end(&j, l.next);
	return api_reply(c, 200, &j, err);
}

static int find_project(struct api_call *c, const char **user, struct store_project *ret,
			struct err *err)
{
	return projects_user(c, NULL, user, err) < 0
		       ? -1
		       : project_get(c->engine, &c->caller, *user, c->params[0], ret, err);
}

/* Without a user the application itself asks, such as for the owner. */
int projects_get(struct api_call *c, struct err *err)
{
	struct store_project p;
	const char *user = NULL;

	if (find_caller(c, NULL, &user, err) < 0 ||
	    project_get(c->engine, &c->caller, user, c->params[0], &p, err) < 0)
		return -1;
	return reply_project(c, 200, &p, err);
}

/* Returns the deleted project. */
int projects_delete(struct api_call *c, struct err *err)
{
	struct store_project p;
	const char *user = NULL;

	if (find_project(c, &user, &p, err) < 0 ||
	    project_remove(c->engine, &c->caller, user, c->params[0], err) < 0)
		return -1;
	return reply_project(c, 200, &p, err);
}

/* ---- teams -----------------------------------------------------------------------------------
 * An application key without a user acts for the application, which may change all its teams. */

static void put_member(struct json_out *j, const char *team, const char *user, enum team_role role)
{
	json_out_object(j, NULL);
	json_out_str(j, "team", team);
	json_out_str(j, "user", user);
	json_out_str(j, "role", team_role_name(role));
	json_out_end(j);
}

static int reply_member(struct api_call *c, enum team_role role, struct err *err)
{
	struct json_out j;

	api_out(&j);
	put_member(&j, c->params[0], c->params[1], role);
	return api_reply(c, 200, &j, err);
}

int projects_put_member(struct api_call *c, struct err *err)
{
	const char *by = NULL, *role = "";
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 || api_str(b, "role", &role, err) < 0 ||
	    find_caller(c, b, &by, err) < 0 ||
	    team_put(c->engine, &c->caller, by, c->params[0], c->params[1], team_role_find(role),
		     err) < 0)
		return -1;
	return reply_member(c, team_role_find(role), err);
}

int projects_delete_member(struct api_call *c, struct err *err)
{
	enum team_role was;
	const char *by = NULL;

	if (find_caller(c, NULL, &by, err) < 0 ||
	    team_remove(c->engine, &c->caller, by, c->params[0], c->params[1], &was, err) < 0)
		return -1;
	return reply_member(c, was, err);
}

int projects_list_members(struct api_call *c, struct err *err)
{
	auto_fini(store_member_list_fini) struct store_member_list l = { 0 };
	const char *by = NULL;
	struct json_out j;

	if (find_caller(c, NULL, &by, err) < 0 ||
	    team_list(c->engine, &c->caller, by, c->params[0], &l, err) < 0)
		return -1;
	api_list(&j, "members");
	for (size_t i = 0; i < l.count; i++)
		put_member(&j, l.items[i].team, l.items[i].user, l.items[i].role);
	return api_reply(c, 200, &j, err);
}
