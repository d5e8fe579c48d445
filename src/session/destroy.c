/* SPDX-License-Identifier: Apache-2.0 */
/* Destroys a session: the tombstone first, then the sandbox, then the record. Works in every
 * state without the guest; the timers finish what a crash interrupted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "base/vec.h"
#include "machine/exec.h"
#include "machine/exec_output_file.h"
#include "machine/exec_reason.h"
#include "session/destroy.h"
#include "session/session.h"

/* A session must be removable even when it filled the disk. Its processes end first, or they would
 * go on to take the space that others free. */
static int write_tombstone(struct session *n, struct store_session *s, struct err *err)
{
	struct store_event ev = { .kind = "destroy", .cause = s->cause };
	int r = STORE_CALL(n->engine, store_session_mark_destroyed, s, &ev, NULL, err);
	enum store_reserve_use was;
	struct err ignored;

	if (r == 0 || err->sys != ENOSPC)
		return r;
	if (*n->rec.sandbox)
		(void)keeper_conn_stop(n->engine, n->rec.sandbox, &ignored);
	hook_crash("reserve:stopped");
	was = store_reserve_set(STORE_RESERVE_ALL);
	WITH_STORE(n->engine, st)
	{
		r = store_session_mark_destroyed(st, s, &ev, NULL, err);
		if (r < 0 && err->sys == ENOSPC && store_reserve(st, false))
			r = store_session_mark_destroyed(st, s, &ev, NULL, err);
	}
	(void)store_reserve_set(was);
	return r;
}

static int record_destruction(struct session *n, const struct session_cause_opts *why,
			      struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	bool ends = n->rec.runtime == SESSION_RUNTIME_LIVE;

	if (store_session_copy(&n->rec, &s, err) < 0 ||
	    session_record_move(&s, SESSION_DESTROY, why, engine_now(n->engine), err) < 0 ||
	    write_tombstone(n, &s, err) < 0)
		return -1;
	if (ends)
		death_count(n, why);
	return session_reload(n, err);
}

/* It makes the database smaller. */
static int remove_records(struct session *n, struct err *err)
{
	enum store_reserve_use was = store_reserve_set(STORE_RESERVE_ALL);
	struct store_exec end = exec_end_with_sandbox(engine_now(n->engine));
	int r = STORE_CALL(n->engine, store_exec_finish_all, n->id, &end, err);

	if (r == 0) {
		exec_output_remove(n->engine, n->id);
		r = STORE_CALL(n->engine, store_session_remove, n->id, err);
	}
	(void)store_reserve_set(was);
	return r < 0 && err->code != ERR_NOT_FOUND ? -1 : 0;
}

int destroy_finish(struct session *n, struct err *err)
{
	if (n->machine)
		session_charge_cpu(n);
	if (*n->rec.sandbox && keeper_conn_destroy(n->engine, n->rec.sandbox, err) < 0)
		return -1;
	hook_crash("destroy:ended");
	session_end_machine(n);
	if (remove_records(n, err) < 0)
		return -1;
	hook_crash("destroy:removed");
	session_forget(n);
	return 0;
}

int destroy_session(struct session *n, const struct session_cause_opts *why, struct err *err)
{
	struct err later;
	enum keeper_patience was;

	if (n->rec.state != SESSION_DESTROYING && record_destruction(n, why, err) < 0)
		return -1;
	hook_crash("destroy:recorded");
	/* from here on it counts as destroyed; the timers finish what fails now */
	was = keeper_conn_set_patience(KEEPER_IMPATIENT);
	(void)destroy_finish(n, &later);
	(void)keeper_conn_set_patience(was);
	return 0;
}

int session_destroy(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    const struct session_cause_opts *why, struct store_tombstone *ret,
		    struct err *err)
{
	return session_destroy_version(e, caller, ref, 0, why, ret, err);
}

int session_destroy_version(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, int64_t if_version,
			    const struct session_cause_opts *why, struct store_tombstone *ret,
			    struct err *err)
{
	static const struct session_cause_opts asked = { .cause = SESSION_CAUSE_REQUESTED };
	struct session_cause_opts cause = why ? *why : asked;
	auto_call(session_unlock) struct session *n = NULL;
	char id[STORE_ID];

	if (!cause.actor)
		cause.actor = caller->actor;
	if (session_lock_ref(e, caller, ref, &n, err) < 0) {
		if (err->sys != ESTALE)
			return -1; /* also for a sandbox that was replaced: the session goes on */
		return ret ? session_tombstone(e, caller, ref, ret, err) : 0;
	}
	memcpy(id, n->id, sizeof(id));
	if (session_check_version(n, if_version, err) < 0 || destroy_session(n, &cause, err) < 0)
		return -1;
	return ret ? session_tombstone(e, caller, &(struct session_ref){ .id = id }, ret, err) : 0;
}

static int add_id(char (**list)[STORE_ID], size_t *count, const char *id)
{
	char(*added)[STORE_ID] = vec_push(list, count, SIZE_MAX);

	if (!added)
		return -1;
	memcpy(added, id, STORE_ID);
	return 0;
}

static int clean_page(struct engine *e, const struct caller *caller,
		      const struct store_session_list *page, struct session_cleanup *c)
{
	for (size_t i = 0; i < page->count; i++) {
		struct session_ref ref = { .id = page->items[i].id };
		struct err ignored;
		int r;

		if (page->items[i].state == SESSION_DESTROYING)
			continue;
		r = session_destroy(e, caller, &ref, NULL, NULL, &ignored);
		if ((r < 0 ? add_id(&c->failed, &c->nfailed, ref.id)
			   : add_id(&c->destroyed, &c->ndestroyed, ref.id)) < 0)
			return -1;
	}
	return 0;
}

int session_cleanup(struct engine *e, const struct caller *caller, const char *user,
		    struct session_cleanup *ret, struct err *err)
{
	struct store_session_filter f = { .tenant = caller->tenant, .user = user };
	struct store_page page = { .limit = 100 };
	struct session_cleanup c = { 0 };
	int r = 0;

	do {
		struct store_session_list l = { 0 };

		r = session_list(e, &f, page, &l, err);
		if (r == 0 && clean_page(e, caller, &l, &c) < 0)
			r = err_sys(err, ENOMEM, "clean-up");
		page.after = l.next;
		store_session_list_fini(&l);
	} while (r == 0 && page.after);
	if (r < 0) {
		session_cleanup_fini(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void session_cleanup_fini(struct session_cleanup *c)
{
	free(c->destroyed);
	free(c->failed);
	*c = (struct session_cleanup){ 0 };
}
