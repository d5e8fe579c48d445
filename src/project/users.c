/* SPDX-License-Identifier: Apache-2.0 */
/* Users: their records and their active project. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"
#include "project/users.h"
#include "engine/session_state.h"
#include "session/session_api.h"

/* ---- users ------------------------------------------------------------------------------- */

int user_load(struct store *st, const char *tenant, const char *user, int64_t now,
	      struct store_user *ret, struct err *err)
{
	if (store_user_get(st, tenant, user, ret, err) == 0)
		return 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	*ret = (struct store_user){ .created_at = now };
	snprintf(ret->tenant, sizeof(ret->tenant), "%s", tenant);
	snprintf(ret->id, sizeof(ret->id), "%s", user);
	return 0;
}

static int update_user(struct store *st, const struct caller *caller, const char *user,
		       const char *name, const char *email, int64_t now, struct err *err)
{
	struct store_user u;

	if (user_load(st, caller->tenant, user, now, &u, err) < 0)
		return -1;
	if (u.seq && !name && !email)
		return 0; /* exists, and nothing changes */
	if (name)
		snprintf(u.name, sizeof(u.name), "%s", name);
	if (email)
		snprintf(u.email, sizeof(u.email), "%s", email);
	return store_user_put(st, &u, err);
}

/* Only what no address can be is refused. */
static int check_email(const char *email, struct err *err)
{
	const char *at = email ? strchr(email, '@') : NULL;

	if (!email || !*email || (at && at > email && at[1] && !strchr(email, ' ')))
		return 0;
	return err_set(err, ERR_INVALID, "email: must be an address such as ada@example.com");
}

int user_set(struct engine *e, const struct caller *caller, const char *user, const char *name,
	     const char *email, struct err *err)
{
	if (name_check("user", user, STORE_USER, err) < 0 ||
	    name_check_optional("name", name, STORE_TEXT, err) < 0 ||
	    name_check_optional("email", email, STORE_TEXT, err) < 0 || check_email(email, err) < 0)
		return -1;
	return STORE_CALL(e, update_user, caller, user, name, email, engine_now(e), err);
}

int user_ensure(struct engine *e, const struct caller *caller, const char *user, struct err *err)
{
	return user_set(e, caller, user, NULL, NULL, err);
}

static int clear_active(struct store *st, const char *tenant, const char *user, struct err *err)
{
	struct store_user u;

	if (store_user_get(st, tenant, user, &u, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (!*u.project && !*u.fragment)
		return 0;
	u.project[0] = u.fragment[0] = '\0';
	return store_user_put(st, &u, err);
}

int user_clear_location(struct engine *e, const struct caller *caller, const char *user,
			struct err *err)
{
	return STORE_CALL(e, clear_active, caller->tenant, user, err);
}

void user_info_fini(struct user_info *i)
{
	store_session_fini(&i->session);
	memset(i, 0, sizeof(*i));
}

struct store_session_filter user_sessions_filter(const char *tenant, const char *user)
{
	return (struct store_session_filter){ .tenant = tenant,
					      .user = user,
					      .states = SM_BIT(SESSION_ACTIVE) };
}

bool user_counts_session(const struct store_session *s)
{
	return s->state == SESSION_ACTIVE;
}

static int count_active(struct engine *e, const struct store_user *u, int64_t *ret, struct err *err)
{
	struct store_session_filter f = user_sessions_filter(u->tenant, u->id);

	return STORE_CALL(e, store_session_count, &f, ret, err);
}

/* The project may be deleted, or may never have been a project record. */
static void load_project_name(struct engine *e, struct user_info *i)
{
	struct store_project p;
	struct err ignored;

	if (*i->session.project &&
	    STORE_CALL(e, store_project_get, i->user.tenant, i->session.project, &p, &ignored) == 0)
		memcpy(i->project_name, p.name, sizeof(i->project_name));
}

static int load_info(struct engine *e, const struct caller *caller, const struct store_user *u,
		     struct user_info *ret, struct err *err)
{
	struct user_info i = { .user = *u };
	struct session_ref ref = { .kind = "user", .key = u->id };
	int64_t active;

	if (count_active(e, u, &active, err) < 0)
		return -1;
	i.active = (unsigned)active;
	i.has_session = session_get(e, caller, &ref, &i.session, err) == 0;
	if (!i.has_session && err->code != ERR_NOT_FOUND)
		return -1;
	load_project_name(e, &i);
	*ret = i;
	return 0;
}

/* A user without a record exists if sessions name it. Otherwise *err stays ERR_NOT_FOUND. */
static int find_in_sessions(struct engine *e, const char *tenant, const char *user,
			    struct store_user *ret, struct err *err)
{
	struct store_session_filter f = { .tenant = tenant, .user = user };
	struct store_session_list l = { 0 };
	struct err why;
	size_t count;

	if (session_list(e, &f, (struct store_page){ .limit = 1 }, &l, &why) < 0) {
		*err = why;
		return -1;
	}
	count = l.count;
	store_session_list_fini(&l);
	if (count == 0)
		return -1;
	*ret = (struct store_user){ 0 };
	snprintf(ret->tenant, sizeof(ret->tenant), "%s", tenant);
	snprintf(ret->id, sizeof(ret->id), "%s", user);
	return 0;
}

int user_get(struct engine *e, const struct caller *caller, const char *user, struct user_info *ret,
	     struct err *err)
{
	struct store_user u;
	int r;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	r = STORE_CALL(e, store_user_get, caller->tenant, user, &u, err);
	if (r < 0 && err->code == ERR_NOT_FOUND)
		r = find_in_sessions(e, caller->tenant, user, &u, err);
	return r < 0 ? -1 : load_info(e, caller, &u, ret, err);
}
