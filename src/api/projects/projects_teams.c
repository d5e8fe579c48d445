/* SPDX-License-Identifier: Apache-2.0 */
/* /api/teams: members of a team. An application key without a user acts for the application, which
 * may change all its teams. */
#include "api/projects/projects.h"
#include "project/project.h"
#include "project/team.h"

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
	    projects_caller(c, b, &by, err) < 0 ||
	    team_put(c->engine, &c->caller, by, c->params[0], c->params[1], team_role_find(role),
		     err) < 0)
		return -1;
	return reply_member(c, team_role_find(role), err);
}

int projects_delete_member(struct api_call *c, struct err *err)
{
	enum team_role was;
	const char *by = NULL;

	if (projects_caller(c, NULL, &by, err) < 0 ||
	    team_remove(c->engine, &c->caller, by, c->params[0], c->params[1], &was, err) < 0)
		return -1;
	return reply_member(c, was, err);
}

int projects_list_members(struct api_call *c, struct err *err)
{
	struct store_member_list l;
	const char *by = NULL;
	struct json_out j;

	if (projects_caller(c, NULL, &by, err) < 0 ||
	    team_list(c->engine, &c->caller, by, c->params[0], &l, err) < 0)
		return -1;
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_array(&j, "members");
	for (size_t i = 0; i < l.count; i++)
		put_member(&j, l.items[i].team, l.items[i].user, l.items[i].role);
	json_out_end(&j);
	json_out_end(&j);
	store_member_list_fini(&l);
	return api_reply(c, 200, &j, err);
}
