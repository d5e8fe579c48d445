/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/teams: all teams, or those of a user. */
#include <string.h>

#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "project/team.h"

/* A user token sees the teams of its user. */
static int parse_user(struct api_call *c, const char **ret, struct err *err)
{
	const char *user = http_query(c->rq, "user");

	if (c->scope < API_TENANT && (!*c->user || *c->session))
		return err_set(err, ERR_DENIED,
			       "permission denied: requires a key with scope \"tenant\", or a "
			       "token for one user");
	if (user && !*user)
		return err_set(err, ERR_INVALID, "user: must not be empty");
	if (*c->user && user && strcmp(c->user, user) != 0)
		return err_set(err, ERR_DENIED, "user: this token is for another user");
	*ret = *c->user ? c->user : user;
	return 0;
}

static void put_team(struct json_out *j, const struct store_team_row *t)
{
	json_out_object(j, NULL);
	json_out_str(j, "team", t->team);
	json_out_i64(j, "members", t->members);
	json_out_i64(j, "projects", t->projects);
	json_out_text(j, "role", t->role ? team_role_name((enum team_role)t->role) : "");
	json_out_end(j);
}

int v1_list_teams(struct api_call *c, struct err *err)
{
	auto_fini(store_team_row_list_fini) struct store_team_row_list l = { 0 };
	struct store_page page;
	const char *user = NULL;
	struct json_out j;

	if (parse_user(c, &user, err) < 0 || api_page(c, &page, err) < 0 ||
	    team_list_rows(c->engine, &c->caller, user, page, &l, err) < 0)
		return -1;
	api_list(&j, "teams");
	for (size_t i = 0; i < l.count; i++)
		put_team(&j, &l.items[i]);
	api_list_end(&j, l.next);
	return api_reply(c, 200, &j, err);
}
