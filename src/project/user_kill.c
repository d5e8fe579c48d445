/* SPDX-License-Identifier: Apache-2.0 */
/* Kills the running sandboxes of a user. Hibernated sessions, such as the working copies of the
 * user's other projects, stay. */
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "base/vec.h"
#include "project/binding.h"
#include "engine/internal.h"
#include "engine/name_check.h"
#include "project/session_walk.h"
#include "project/users.h"
#include "project/user_kill.h"
#include "engine/session_state.h"
#include "session/destroy.h"
#include "session/session.h"

void kill_result_list_fini(struct kill_result_list *l)
{
	free(l->items);
	*l = (struct kill_result_list){ 0 };
}

/* 1: it was killed; 0: it has no sandbox any more. */
static int kill_sandbox(struct engine *e, const struct caller *caller,
			const struct store_session *s, struct kill_result *ret, struct err *err)
{
	/* not "asked": whoever comes back to one of its keys is told that the files are lost */
	struct session_cause_opts why = { SESSION_CAUSE_CLEANUP, "its user's sandbox was killed",
					  caller->actor };
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock(e, caller->tenant, s->id, &n, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (!user_counts_session(&n->rec))
		return 0;
	memcpy(ret->sandbox, n->rec.sandbox, sizeof(ret->sandbox));
	return destroy_session(n, &why, err) < 0 ? -1 : 1;
}

static int kill_listed(struct engine *e, const struct caller *caller, const struct store_session *s,
		       void *arg, struct err *err)
{
	struct kill_result_list *l = arg;
	struct kill_result one = { 0 };
	struct kill_result *added;
	struct err ignored; /* the result list counts it as failed */
	int r;

	memcpy(one.user, s->user, sizeof(one.user));
	memcpy(one.session, s->id, sizeof(one.session));
	memcpy(one.sandbox, s->sandbox, sizeof(one.sandbox));
	memcpy(one.project, s->project, sizeof(one.project));
	r = kill_sandbox(e, caller, s, &one, &ignored);
	if (r == 0)
		return 0;
	one.killed = r > 0;
	added = vec_push(&l->items, &l->count, SIZE_MAX);
	if (!added)
		return err_sys(err, ENOMEM, "clean-up");
	*added = one;
	*(r < 0 ? &l->failed : &l->killed) += 1;
	l->projects += *s->project != '\0';
	return 0;
}

/* A session that is hibernated, or could not be killed, stays the user's active one. */
static int clear_location(struct engine *e, const struct caller *caller, const char *user,
			  struct err *err)
{
	struct store_binding key = binding_of_user(user);
	char session[STORE_ID];

	if (binding_find_session(e, caller, &key, session, err) < 0)
		return -1;
	return *session ? 0 : user_clear_location(e, caller, user, err);
}

int user_kill_sandboxes(struct engine *e, const struct caller *caller, const char *user,
			struct kill_result_list *ret, struct err *err)
{
	auto_fini(kill_result_list_fini) struct kill_result_list l = { 0 };
	auto_fini(user_queue_leave) struct user_queue_ticket ticket = { 0 };
	struct store_session_filter f = user_sessions_filter(caller->tenant, user);

	if (name_check("user", user, STORE_USER, err) < 0)
		return -1;
	user_queue_enter(&ticket, e, caller, user); /* not in the middle of a switch */
	if (session_walk(e, caller, &f, kill_listed, &l, err) < 0)
		return -1;
	hook_crash("kill:ended");
	if (clear_location(e, caller, user, err) < 0)
		return -1;
	*ret = steal_struct(&l);
	return 0;
}

struct names {
	char (*ids)[STORE_USER];
	size_t count;
};

static int add_user(struct engine *e, const struct caller *caller, const struct store_session *s,
		    void *arg, struct err *err)
{
	struct names *l = arg;
	char(*added)[STORE_USER];

	(void)e;
	(void)caller;
	if (!*s->user || !user_counts_session(s))
		return 0;
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->ids[i], s->user) == 0)
			return 0;
	added = vec_push(&l->ids, &l->count, SIZE_MAX);
	if (!added)
		return err_sys(err, ENOMEM, "clean-up");
	memcpy(added, s->user, STORE_USER);
	return 0;
}

/* Moves the results of one user to the others. */
static int append_results(struct kill_result_list *all, struct kill_result_list *one,
			  struct err *err)
{
	for (size_t i = 0; i < one->count; i++) {
		struct kill_result *added = vec_push(&all->items, &all->count, SIZE_MAX);

		if (!added)
			return err_sys(err, ENOMEM, "clean-up");
		*added = one->items[i];
	}
	all->killed += one->killed;
	all->failed += one->failed;
	all->projects += one->projects;
	return 0;
}

int user_kill_all_sandboxes(struct engine *e, const struct caller *caller,
			    struct kill_result_list *ret, struct err *err)
{
	struct store_session_filter f = { .tenant = caller->tenant };
	struct kill_result_list all = { 0 };
	struct names users = { 0 };
	int r = session_walk(e, caller, &f, add_user, &users, err);

	for (size_t i = 0; r == 0 && i < users.count; i++) {
		struct kill_result_list one = { 0 };

		r = user_kill_sandboxes(e, caller, users.ids[i], &one, err);
		if (r == 0)
			r = append_results(&all, &one, err);
		kill_result_list_fini(&one);
	}
	free(users.ids);
	if (r < 0) {
		kill_result_list_fini(&all);
		return -1;
	}
	*ret = all;
	return 0;
}
