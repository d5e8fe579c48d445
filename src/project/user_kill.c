/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes all sessions of a user. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "base/vec.h"
#include "project/binding.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/project.h"
#include "project/session_walk.h"
#include "project/switch_commit.h"
#include "project/users.h"
#include "project/user_kill.h"
#include "engine/session_state.h"
#include "session/session_api.h"

void kill_result_list_fini(struct kill_result_list *l)
{
	free(l->items);
	*l = (struct kill_result_list){ 0 };
}

static int kill_session(struct engine *e, const struct caller *caller,
			const struct store_session *s, struct kill_result *ret, struct err *err)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_REQUESTED,
						       "its user's sandboxes were killed", NULL };
	struct session_ref ref = { .id = s->id };
	int r = session_destroy(e, caller, &ref, &why, NULL, err);

	*ret = (struct kill_result){ .killed = r == 0 };
	memcpy(ret->session, s->id, sizeof(ret->session));
	memcpy(ret->sandbox, s->sandbox, sizeof(ret->sandbox));
	memcpy(ret->project, s->project, sizeof(ret->project));
	return r;
}

static int kill_listed(struct engine *e, const struct caller *caller, const struct store_session *s,
		       void *arg, struct err *err)
{
	struct kill_result_list *l = arg;
	struct kill_result *added;
	struct user_queue_ticket ticket;
	struct err ignored; /* the result list counts it as failed */
	int r;

	if (!*s->user || s->state == SESSION_DESTROYING)
		return 0;
	added = vec_push(&l->items, &l->count, SIZE_MAX);
	if (!added)
		return err_sys(err, ENOMEM, "clean-up");
	user_queue_join(&ticket, e, caller, s->user);
	r = kill_session(e, caller, s, added, &ignored);
	user_queue_leave(&ticket);
	*(r < 0 ? &l->failed : &l->killed) += 1;
	l->projects += *s->project != '\0';
	return 0;
}

/* A session that could not be deleted stays the user's active one. */
static int clear_location(struct engine *e, const struct caller *caller, const char *user,
			  struct err *err)
{
	struct store_binding key = binding_of_user(user);
	char session[STORE_ID];
	auto_fini(user_queue_leave) struct user_queue_ticket ticket = { 0 };

	user_queue_join(&ticket, e, caller, user);
	if (binding_find_session(e, caller, &key, session, err) < 0)
		return -1;
	return *session ? 0 : user_clear_location(e, caller, user, err);
}

int user_kill_sandboxes(struct engine *e, const struct caller *caller, const char *user,
			struct kill_result_list *ret, struct err *err)
{
	struct kill_result_list l = { 0 };
	struct store_session_filter f = { .tenant = caller->tenant, .user = user };
	int r;

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	r = session_walk(e, caller, &f, kill_listed, &l, err);
	hook_crash("kill:ended");
	if (r < 0 || clear_location(e, caller, user, err) < 0) {
		kill_result_list_fini(&l);
		return -1;
	}
	*ret = l;
	return 0;
}
