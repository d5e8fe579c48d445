/* SPDX-License-Identifier: Apache-2.0 */
/* The commit of a switch binds two keys of a user to another session, in an order that leaves one
 * of two states after a crash at any point. switch_finish_pending() handles both.
 *
 *   1. the new session has the mark "pending"
 *   2. the user's key and the user's record refer to it: the switch has taken place
 *   3. the old working copy, if there is one, gets the mark "replaced"
 *   4. the key of the working copy leads to the new session
 *   5. the new session loses its mark
 *
 * A session with a mark and no key is deleted. A session with a mark that the user's key leads to
 * continues at step 3. No work is lost with a session that has a mark and no key: either no caller
 * ever saw it, or the user has replaced it.
 *
 * This file holds the locks of two sessions of one user at once. No other code waits for a second
 * session lock, and only the head of the user's queue gets here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "project/binding.h"
#include "engine/internal.h"
#include "project/project.h"
#include "project/session_walk.h"
#include "project/switch_commit.h"
#include "project/users.h"
#include "session/session.h"

enum { RACES_MAX = 8 };

/* ---- keys -------------------------------------------------------------------------------- */

/* Written in one transaction with the user's key. */
struct active_project {
	const char *user, *project, *fragment;
};

static int rebind(struct store *st, const char *tenant, const struct store_binding *key,
		  const char *from, const char *to, const struct active_project *at, int64_t now,
		  struct err *err)
{
	struct store_project p;
	struct store_user u;

	if (!at)
		return store_session_rebind(st, tenant, key, from, to, NULL, err);
	/* the project may have been deleted since it was checked */
	if (store_project_get(st, tenant, at->project, &p, err) < 0)
		return err->code == ERR_NOT_FOUND ? project_not_found(err) : -1;
	if (user_load(st, tenant, at->user, now, &u, err) < 0)
		return -1;
	snprintf(u.project, sizeof(u.project), "%s", at->project);
	snprintf(u.fragment, sizeof(u.fragment), "%s", at->fragment);
	if (from && strcmp(from, to) == 0)
		return store_user_put(st, &u, err);
	return store_session_rebind(st, tenant, key, from, to, &u, err);
}

/* The store has raised the version of the record. */
static void reload_record(struct session *n)
{
	struct err ignored;

	if (n && session_reload(n, &ignored) < 0)
		session_forget(n); /* the next lock reads it from the store */
}

/* 1: the key was rebound, or the session it led to was destroyed, meanwhile: try again. */
static int try_bind_key(struct session *n, const struct caller *caller,
			const struct store_binding *key, const struct active_project *at,
			char ret_was[STORE_ID], struct err *err)
{
	auto_call(session_unlock) struct session *from = NULL;
	struct engine *e = n->engine;
	char was[STORE_ID];
	bool other;
	int r = 0;

	if (binding_find_session(e, caller, key, was, err) < 0)
		return -1;
	other = *was && strcmp(was, n->id) != 0;
	if (other && session_lock(e, caller->tenant, was, &from, err) < 0)
		return err->code == ERR_NOT_FOUND ? 1 : -1;
	if (session_flush(n, err) < 0 || (from && session_flush(from, err) < 0))
		return -1;
	if (other || !*was || at)
		WITH_STORE(e, st)
	r = rebind(st, caller->tenant, key, *was ? was : NULL, n->id, at, engine_now(e), err);
	if (r < 0)
		return err->code == ERR_CONFLICT ? 1 : -1;
	snprintf(ret_was, STORE_ID, "%s", other ? was : "");
	reload_record(n);
	reload_record(from);
	return 0;
}

/* Makes the key lead to n. *ret_was is the session it led to before, "" if none or n. */
static int bind_key(struct session *n, const struct caller *caller, const struct store_binding *key,
		    const struct active_project *at, char ret_was[STORE_ID], struct err *err)
{
	int r = 1;

	for (int i = 0; r > 0 && i < RACES_MAX; i++)
		r = try_bind_key(n, caller, key, at, ret_was, err);
	return r ? -1 : 0;
}

/* ---- marks ------------------------------------------------------------------------------- */

static bool has_mark(const struct store_session *s, const char *mark)
{
	return s->metadata && strcmp(s->metadata, mark) == 0;
}

/* mark NULL: removes it. */
static int set_mark(struct session *n, const char *mark, const char *event, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	free(s.metadata);
	s.metadata = mark ? strdup(mark) : NULL;
	if (mark && !s.metadata)
		return err_set(err, ERR_LIMIT, "out of memory");
	return session_update(n, &s, event, err);
}

static int mark_replaced(struct session *n, const struct caller *caller, const char *copy,
			 struct err *err)
{
	auto_call(session_unlock) struct session *old = NULL;

	if (session_lock(n->engine, caller->tenant, copy, &old, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	return set_mark(old, SWITCH_REPLACED, "replaced", err);
}

/* ---- committing -------------------------------------------------------------------------- */

/* Steps 3 to 5: n becomes the working copy. */
static int replace_copy(struct session *n, const struct caller *caller, const char *user,
			const char *project, char ret_replaced[STORE_ID], struct err *err)
{
	struct store_binding key;
	char old[STORE_ID];

	if (binding_of_copy(user, project, &key, err) < 0 ||
	    binding_find_session(n->engine, caller, &key, old, err) < 0)
		return -1;
	if (*old && strcmp(old, n->id) != 0 && mark_replaced(n, caller, old, err) < 0)
		return -1;
	hook_crash("switch:marked");
	if (bind_key(n, caller, &key, NULL, ret_replaced, err) < 0)
		return -1;
	hook_crash("switch:copied");
	return set_mark(n, NULL, "kept", err);
}

/* Rebinding a key writes no event by itself. */
static void append_event(struct session *n, const struct caller *caller, const char *from)
{
	struct store_event ev = { .kind = "switch", .version = n->rec.version };
	struct err ignored; /* the switch itself is stored */

	snprintf(ev.tenant, sizeof(ev.tenant), "%s", caller->tenant);
	snprintf(ev.session, sizeof(ev.session), "%s", n->id);
	snprintf(ev.cause.code, sizeof(ev.cause.code), "%s",
		 session_cause_name(SESSION_CAUSE_REQUESTED));
	snprintf(ev.cause.text, sizeof(ev.cause.text), "%s%s",
		 *from ? "switched from session " : "", from);
	snprintf(ev.cause.actor, sizeof(ev.cause.actor), "%s", caller->actor ? caller->actor : "");
	ev.cause.at = engine_now(n->engine);
	WITH_STORE(n->engine, st)
	(void)store_event_append(st, &ev, &ignored);
}

int switch_commit(struct engine *e, const struct caller *caller, const char *user,
		  const char *session, struct switch_commit_result *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct store_binding key = binding_of_user(user);
	char project[STORE_ID], fragment[STORE_ID];
	struct active_project at = { .user = user, .project = project, .fragment = fragment };
	struct switch_commit_result out = { .previous = "" };
	struct err later;
	bool is_new;

	if (session_lock(e, caller->tenant, session, &n, err) < 0)
		return -1;
	memcpy(project, n->rec.project, sizeof(project));
	memcpy(fragment, n->rec.fragment, sizeof(fragment));
	memcpy(out.sandbox, n->rec.sandbox, sizeof(out.sandbox));
	is_new = has_mark(&n->rec, SWITCH_PENDING);
	if (bind_key(n, caller, &key, &at, out.previous, err) < 0)
		return -1;
	hook_crash("switch:pointed");
	append_event(n, caller, out.previous);
	/* after a failure the next switch or startup continues here */
	if (is_new)
		(void)replace_copy(n, caller, user, project, out.replaced, &later);
	*ret = out;
	return 0;
}

/* ---- recovery ---------------------------------------------------------------------------- */

static int continue_switch(struct engine *e, const struct caller *caller, const char *user,
			   struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct store_binding key = binding_of_user(user);
	char id[STORE_ID], project[STORE_ID], replaced[STORE_ID];

	if (binding_find_session(e, caller, &key, id, err) < 0)
		return -1;
	if (!*id)
		return 0;
	if (session_lock(e, caller->tenant, id, &n, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (!has_mark(&n->rec, SWITCH_PENDING))
		return 0;
	memcpy(project, n->rec.project, sizeof(project));
	return replace_copy(n, caller, user, project, replaced, err);
}

static int clear_mark(struct engine *e, const struct caller *caller, const struct store_session *s,
		      void *arg, struct err *err)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_REPLACED,
						       "left over from an interrupted switch",
						       "lodge" };
	struct session_ref ref = { .id = s->id };
	struct err later; /* it keeps its mark, so the next call tries again */
	struct session *n;

	(void)arg;
	(void)err;
	if (s->state == SESSION_DESTROYING)
		return 0; /* the sweep finishes it */
	if (s->nbindings == 0) {
		(void)session_destroy(e, caller, &ref, &why, NULL, &later);
	} else if (session_lock(e, caller->tenant, s->id, &n, &later) == 0) {
		(void)set_mark(n, NULL, "kept", &later);
		session_unlock(n);
	}
	return 0;
}

static void clear_marked(struct engine *e, const struct caller *caller, const char *user,
			 const char *value)
{
	struct store_session_filter f = {
		.tenant = caller->tenant, .user = user, .meta_key = SWITCH_MARK, .meta_value = value
	};
	struct err later;

	(void)session_walk(e, caller, &f, clear_mark, NULL, &later);
}

/* Clearing marks may fail and wait for the next call. An active session that is not the working
 * copy yet must not: without the user's key no key would lead to it. */
int switch_finish_pending(struct engine *e, const struct caller *caller, const char *user,
			  struct err *err)
{
	if (continue_switch(e, caller, user, err) < 0)
		return -1;
	clear_marked(e, caller, user, "pending");
	clear_marked(e, caller, user, "replaced");
	return 0;
}

static int recover_user(struct engine *e, const struct caller *none, const struct store_session *s,
			void *arg, struct err *err)
{
	struct caller caller = { .tenant = s->tenant, .actor = "lodge" };
	struct user_queue_ticket ticket;
	struct err later; /* the user's next switch tries again */

	(void)none;
	(void)arg;
	(void)err;
	if (!*s->user)
		return 0;
	user_queue_enter(&ticket, e, &caller, s->user);
	(void)switch_finish_pending(e, &caller, s->user, &later);
	user_queue_leave(&ticket);
	return 0;
}

static int recover_marked(struct engine *e, const char *value, struct err *err)
{
	struct store_session_filter f = { .meta_key = SWITCH_MARK, .meta_value = value };

	return session_walk(e, NULL, &f, recover_user, NULL, err);
}

int switch_recover(struct engine *e, struct err *err)
{
	return recover_marked(e, "pending", err) < 0 ? -1 : recover_marked(e, "replaced", err);
}
