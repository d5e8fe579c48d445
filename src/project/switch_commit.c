/* SPDX-License-Identifier: Apache-2.0 */
/* The moment of a switch: two keys of a user lead to another session, in an order that a crash at
 * any point leaves in one of two states, both of which switch_finish_pending() knows what to do
 * with.
 *
 *   a new session has the mark "pending"
 *   the user's key leads to it, and the user's record says so    <- here it has taken place
 *   the old working copy, if there is one, has the mark "replaced"
 *   the working copy's key leads to the new one
 *   the new one's mark goes
 *
 * One with a mark and no key is removed. One with a mark that the user's key leads to goes the rest
 * of the way. Nobody's work is in a session that has a mark and no key: it was never handed out, or
 * the user asked for another in its place.
 *
 * Two turns are held at once here, of sessions of one user. Nobody else takes two by waiting, and
 * one user's are only taken by the first in that user's line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "admit/user_queue.h"
#include "project/internal.h"
#include "project/switch_commit.h"
#include "project/users.h"
#include "session/session.h"

enum { RACES_MAX = 8 };

/* ---- keys ---------------------------------------------------------------------------------- */

struct store_binding binding_of_user(const char *user)
{
	struct store_binding key = { .kind = "user" };

	snprintf(key.key, sizeof(key.key), "%s", user);
	return key;
}

int binding_of_copy(const char *user, const char *project, struct store_binding *ret,
		    struct err *err)
{
	struct store_binding key = { .kind = "project" };
	char escaped[3 * STORE_USER], *to = escaped;

	for (; *user && to < escaped + sizeof(escaped) - 4; user++) {
		if (*user == '/' || *user == '%') {
			memcpy(to, *user == '/' ? "%2F" : "%25", 3);
			to += 3;
		} else {
			*to++ = *user;
		}
	}
	*to = '\0';
	if (snprintf(key.key, sizeof(key.key), "%s/%s", escaped, project) >= (int)sizeof(key.key))
		return err_set(err, ERR_INVALID, "user: too many '/' and '%%'");
	*ret = key;
	return 0;
}

int binding_find_session(struct engine *e, const struct caller *who,
			 const struct store_binding *key, char ret[STORE_ID], struct err *err)
{
	struct store_session s = { 0 };
	int r = err_set(err, ERR_NOT_FOUND, "no session with %s '%s'", key->kind, key->key);

	WITH_STORE(e, st)
	r = store_session_find(st, who->tenant, key, &s, err);
	if (r < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	snprintf(ret, STORE_ID, "%s", r < 0 ? "" : s.id);
	store_session_fini(&s);
	return 0;
}

/* Where a user goes with a key: both or neither. */
struct whereabouts {
	const char *user, *project, *fragment;
};

static int rebind(struct store *st, const char *tenant, const struct store_binding *key,
		  const char *from, const char *to, const struct whereabouts *at, int64_t now,
		  struct err *err)
{
	struct store_project p;
	struct store_user u;

	if (!at)
		return store_session_rebind(st, tenant, key, from, to, NULL, err);
	/* it may have been removed since it was looked at */
	if (store_project_get(st, tenant, at->project, &p, err) < 0)
		return err->code == ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "Project not found")
						  : -1;
	if (user_load(st, tenant, at->user, now, &u, err) < 0)
		return -1;
	snprintf(u.project, sizeof(u.project), "%s", at->project);
	snprintf(u.fragment, sizeof(u.fragment), "%s", at->fragment);
	if (from && strcmp(from, to) == 0)
		return store_user_put(st, &u, err);
	return store_session_rebind(st, tenant, key, from, to, &u, err);
}

/* The store raised its version behind the entry's back. */
static void reload(struct session *n)
{
	struct err ignored;

	if (n && session_reload(n, &ignored) < 0)
		session_forget(n); /* whoever has the next turn reads it */
}

/* One try. 1: somebody else moved the key, or ended the session it led to, meanwhile. */
static int try_point(struct session *n, const struct caller *who, const struct store_binding *key,
		     const struct whereabouts *at, char ret_was[STORE_ID], struct err *err)
{
	auto_call(session_unlock) struct session *from = NULL;
	struct engine *e = n->engine;
	char was[STORE_ID];
	bool other;
	int r = 0;

	if (binding_find_session(e, who, key, was, err) < 0)
		return -1;
	other = *was && strcmp(was, n->id) != 0;
	if (other && session_lock(e, who->tenant, was, &from, err) < 0)
		return err->code == ERR_NOT_FOUND ? 1 : -1;
	if (session_flush(n, err) < 0 || (from && session_flush(from, err) < 0))
		return -1;
	if (other || !*was || at)
		WITH_STORE(e, st)
	r = rebind(st, who->tenant, key, *was ? was : NULL, n->id, at, engine_now(e), err);
	if (r < 0)
		return err->code == ERR_CONFLICT ? 1 : -1;
	snprintf(ret_was, STORE_ID, "%s", other ? was : "");
	reload(n);
	reload(from);
	return 0;
}

/* The key leads to n afterwards; *ret_was is where it led before, "" if nowhere else. */
static int point(struct session *n, const struct caller *who, const struct store_binding *key,
		 const struct whereabouts *at, char ret_was[STORE_ID], struct err *err)
{
	int r = 1;

	for (int i = 0; r > 0 && i < RACES_MAX; i++)
		r = try_point(n, who, key, at, ret_was, err);
	return r ? -1 : 0;
}

/* ---- marks --------------------------------------------------------------------------------- */

static bool has_mark(const struct store_session *s, const char *mark)
{
	return s->metadata && strcmp(s->metadata, mark) == 0;
}

/* NULL: none. */
static int set_mark(struct session *n, const char *mark, const char *event, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	free(s.metadata);
	s.metadata = mark ? strdup(mark) : NULL;
	if (mark && !s.metadata)
		return err_set(err, ERR_LIMIT, "no memory");
	return session_update(n, &s, event, err);
}

static int mark_replaced(struct session *n, const struct caller *who, const char *copy,
			 struct err *err)
{
	auto_call(session_unlock) struct session *old = NULL;

	if (session_lock(n->engine, who->tenant, copy, &old, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	return set_mark(old, SWITCH_REPLACED, "replaced", err);
}

/* ---- the swap ------------------------------------------------------------------------------ */

/* What comes after the user's key: n takes the place of the working copy. */
static int finish(struct session *n, const struct caller *who, const char *user,
		  const char *project, char ret_replaced[STORE_ID], struct err *err)
{
	struct store_binding key;
	char old[STORE_ID];

	if (binding_of_copy(user, project, &key, err) < 0 ||
	    binding_find_session(n->engine, who, &key, old, err) < 0)
		return -1;
	if (*old && strcmp(old, n->id) != 0 && mark_replaced(n, who, old, err) < 0)
		return -1;
	hook_crash("switch:marked");
	if (point(n, who, &key, NULL, ret_replaced, err) < 0)
		return -1;
	hook_crash("switch:copied");
	return set_mark(n, NULL, "kept", err);
}

/* The keys of a session have no event of their own. */
static void tell(struct session *n, const struct caller *who, const char *from)
{
	struct store_event ev = { .kind = "switch", .version = n->rec.version };
	struct err ignored; /* the move itself is in the store */

	snprintf(ev.tenant, sizeof(ev.tenant), "%s", who->tenant);
	snprintf(ev.session, sizeof(ev.session), "%s", n->id);
	snprintf(ev.cause.code, sizeof(ev.cause.code), "%s",
		 session_cause_name(SESSION_CAUSE_REQUESTED));
	snprintf(ev.cause.text, sizeof(ev.cause.text), "%s%s", *from ? "its user came from " : "",
		 from);
	snprintf(ev.cause.actor, sizeof(ev.cause.actor), "%s", who->actor ? who->actor : "");
	ev.cause.at = engine_now(n->engine);
	WITH_STORE(n->engine, st)
	(void)store_event_append(st, &ev, &ignored);
}

int switch_commit(struct engine *e, const struct caller *who, const char *user, const char *session,
		  struct switch_commit_result *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct store_binding key = binding_of_user(user);
	char project[STORE_ID], fragment[STORE_ID];
	struct whereabouts at = { .user = user, .project = project, .fragment = fragment };
	struct switch_commit_result out = { .previous = "" };
	struct err later;
	bool is_new;

	if (session_lock(e, who->tenant, session, &n, err) < 0)
		return -1;
	memcpy(project, n->rec.project, sizeof(project));
	memcpy(fragment, n->rec.fragment, sizeof(fragment));
	memcpy(out.sandbox, n->rec.sandbox, sizeof(out.sandbox));
	is_new = has_mark(&n->rec, SWITCH_PENDING);
	if (point(n, who, &key, &at, out.previous, err) < 0)
		return -1;
	hook_crash("switch:pointed");
	tell(n, who, out.previous);
	/* what does not work now is made up for by the next switch, or the next start */
	if (is_new)
		(void)finish(n, who, user, project, out.replaced, &later);
	*ret = out;
	return 0;
}

/* ---- after a crash or a failure ------------------------------------------------------------ */

static int go_on(struct engine *e, const struct caller *who, const char *user, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct store_binding key = binding_of_user(user);
	char id[STORE_ID], project[STORE_ID], replaced[STORE_ID];

	if (binding_find_session(e, who, &key, id, err) < 0)
		return -1;
	if (!*id)
		return 0;
	if (session_lock(e, who->tenant, id, &n, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (!has_mark(&n->rec, SWITCH_PENDING))
		return 0;
	memcpy(project, n->rec.project, sizeof(project));
	return finish(n, who, user, project, replaced, err);
}

static void clear_one(struct engine *e, const struct caller *who, const struct store_session *s)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_REPLACED,
						       "left over from a switch of its user",
						       "lodge" };
	struct session_ref ref = { .id = s->id };
	struct err later; /* it keeps its mark */
	struct session *n;

	if (s->state == SESSION_DESTROYING)
		return; /* the sweep is at it */
	if (s->nbindings == 0) {
		(void)session_destroy(e, who, &ref, &why, NULL, &later);
	} else if (session_lock(e, who->tenant, s->id, &n, &later) == 0) {
		(void)set_mark(n, NULL, "kept", &later);
		session_unlock(n);
	}
}

static void clear_marked(struct engine *e, const struct caller *who, const char *user,
			 const char *value)
{
	struct store_session_filter f = {
		.tenant = who->tenant, .user = user, .meta_key = SWITCH_MARK, .meta_value = value
	};
	struct store_page page = { .limit = 100 };
	struct err later;

	do {
		struct store_session_list l = { 0 };

		if (session_list(e, &f, page, &l, &later) < 0)
			return;
		for (size_t i = 0; i < l.count; i++)
			clear_one(e, who, &l.items[i]);
		page.after = l.next;
		store_session_list_fini(&l);
	} while (page.after);
}

/* Left-overs can wait for another time. A session the user is on that has not become the working
 * copy cannot: without the user's key nothing would lead to it. */
int switch_finish_pending(struct engine *e, const struct caller *who, const char *user,
			  struct err *err)
{
	if (go_on(e, who, user, err) < 0)
		return -1;
	clear_marked(e, who, user, "pending");
	clear_marked(e, who, user, "replaced");
	return 0;
}

static void recover_one(struct engine *e, const struct store_session *s)
{
	struct caller who = { .tenant = s->tenant, .actor = "lodge" };
	struct user_queue_ticket place;
	struct err later; /* the user's next switch tries again */

	user_queue_join(&place, e, &who, s->user);
	(void)switch_finish_pending(e, &who, s->user, &later);
	user_queue_leave(&place);
}

static int recover_marked(struct engine *e, const char *value, struct err *err)
{
	struct store_session_filter f = { .meta_key = SWITCH_MARK, .meta_value = value };
	struct store_page page = { .limit = 100 };

	do {
		struct store_session_list l = { 0 };

		if (session_list(e, &f, page, &l, err) < 0)
			return -1;
		for (size_t i = 0; i < l.count; i++)
			if (*l.items[i].user)
				recover_one(e, &l.items[i]);
		page.after = l.next;
		store_session_list_fini(&l);
	} while (page.after);
	return 0;
}

int switch_recover(struct engine *e, struct err *err)
{
	return recover_marked(e, "pending", err) < 0 ? -1 : recover_marked(e, "replaced", err);
}
