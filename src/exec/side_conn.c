/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of one's own to a session's sandbox, lent out for work with files: a slow transfer
 * then holds up nobody's commands. One that comes back whole is kept for the next. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "machine/exec_record.h"
#include "session/user_slot.h"
#include "engine/keeper_conn.h"
#include "exec/exec_start.h"
#include "machine/machine.h"
#include "session/session.h"

enum {
	WAIT_MS = 30000, /* for one of LIVE_LOANS_MAX to come back */
	SPARE_MAX = 2, /* connections kept for the next; a descriptor on both sides each */
};

struct session_loan {
	struct live *live;
	struct sandbox *side;
	bool peeks; /* it counts for nothing */
};

/* What came meanwhile is read, so that one which ended is noticed here. */
static bool is_usable(struct sandbox *side)
{
	struct err ignored;

	return agent_dispatch(sandbox_agent(side), &ignored) == 0;
}

/* With live.mutex. NULL: there is none. */
static struct sandbox *take_spare(struct live *v)
{
	while (v->nspare > 0) {
		struct sandbox *side = v->spare[--v->nspare];

		if (is_usable(side))
			return side;
		sandbox_free(side);
		v->nside--;
	}
	return NULL;
}

/* True: one more is lent out; *ret is its connection, or NULL if one has to be made. */
static bool reserve(struct live *v, bool peeks, struct sandbox **ret)
{
	bool ok;

	pthread_mutex_lock(&v->mutex);
	ok = v->nloans < LIVE_LOANS_MAX;
	if (ok) {
		v->nloans++;
		v->npeeks += peeks;
		*ret = take_spare(v);
		v->nside += *ret == NULL;
	}
	pthread_mutex_unlock(&v->mutex);
	return ok;
}

/* Not all that is lent came back: until one does. */
static int wait_for_one(struct live *v, int64_t until_ms, struct err *err)
{
	struct timespec until = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
	int r = 0;

	pthread_mutex_lock(&v->mutex);
	while (r == 0 && v->nloans >= LIVE_LOANS_MAX && !v->gone)
		r = pthread_cond_timedwait(&v->changed, &v->mutex, &until);
	pthread_mutex_unlock(&v->mutex);
	return r ? err_set(err, ERR_UNAVAILABLE,
			   "%d file operations are under way in session %s already", LIVE_LOANS_MAX,
			   v->session)
		 : 0;
}

/* With the session's turn: it is not frozen meanwhile, so lodge-init answers. */
static int connect_side(struct live *v, struct sandbox **ret, struct err *err)
{
	struct keeper_client *k;
	uint32_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_sys(err, errno, "getrandom");
	k = keep_lock(v->engine, err);
	if (!k)
		return -1;
	r = sandbox_attach(k, v->sandbox, ret, err);
	keep_unlock(v->engine);
	if (r == 0)
		agent_number_from(sandbox_agent(*ret), agent_side_base(random));
	return r;
}

static void take_back(struct session_loan *l)
{
	struct live *v = l->live;
	bool keep;

	pthread_mutex_lock(&v->mutex);
	v->nloans--;
	v->npeeks -= l->peeks;
	keep = l->side && !v->gone && v->nspare < SPARE_MAX && is_usable(l->side);
	if (keep)
		v->spare[v->nspare++] = l->side;
	else
		v->nside--;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->mutex);
	if (!keep)
		sandbox_free(l->side);
	live_unref(v);
}

/* With the session's turn. 1: lent; 0: all are lent out, and l->live is the sandbox to wait for. */
static int lend(struct entry *n, bool peeks, struct session_loan *l, struct err *err)
{
	*l = (struct session_loan){ .live = live_ref(n->live), .peeks = peeks };
	if (!reserve(l->live, peeks, &l->side))
		return 0;
	if (l->side || connect_side(l->live, &l->side, err) == 0)
		return 1;
	take_back(l);
	return -1;
}

/* As lend(). */
static int try_borrow(struct engine *e, const struct caller *who, const struct session_ref *ref,
		      bool resume, struct session_loan *l, enum session_outcome *outcome,
		      struct err *err)
{
	struct place_turn turn = { 0 };
	auto_call(place_give) struct place_turn *guard = &turn;
	auto_call(entry_give) struct entry *n = NULL;

	(void)guard;
	if (use_awake(e, who, ref, resume, &n, &turn, err) < 0 ||
	    rouse(n, who, resume, outcome, err) < 0)
		return -1;
	return lend(n, false, l, err);
}

int session_borrow(struct engine *e, const struct caller *who, const struct session_ref *ref,
		   bool resume, struct session_loan **ret, enum session_outcome *ret_outcome,
		   struct err *err)
{
	auto_free struct session_loan *l = calloc(1, sizeof(*l));
	int64_t until = mono_ms() + WAIT_MS;
	enum session_outcome outcome;
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "connection");
	while ((r = try_borrow(e, who, ref, resume, l, &outcome, err)) == 0) {
		r = wait_for_one(l->live, until, err);
		live_unref(l->live);
		if (r < 0)
			break;
	}
	if (r < 0)
		return -1;
	*ret = steal_ptr(&l);
	if (ret_outcome)
		*ret_outcome = outcome;
	return 0;
}

int session_peek(struct engine *e, const struct caller *who, const struct session_ref *ref,
		 struct session_loan **ret, struct err *err)
{
	auto_free struct session_loan *l = calloc(1, sizeof(*l));
	auto_call(entry_give) struct entry *n = NULL;
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "connection");
	if (entry_find(e, who, ref, &n, err) < 0)
		return -1;
	/* one that is paused would not answer */
	if (n->rec.state != SESSION_ACTIVE || n->rec.paused || !n->live || live_is_gone(n->live))
		return err_set(err, ERR_CONFLICT, "nothing runs in session %s now", n->id);
	r = lend(n, true, l, err);
	if (r == 0) {
		live_unref(l->live);
		return err_set(err, ERR_UNAVAILABLE, "too much is under way in session %s", n->id);
	}
	if (r < 0)
		return -1;
	*ret = steal_ptr(&l);
	return 0;
}

struct sandbox *session_loan_sandbox(const struct session_loan *l)
{
	return l->side;
}

const struct template *session_loan_template(const struct session_loan *l)
{
	return &l->live->spec;
}

void session_loan_lock(struct session_loan *l)
{
	pthread_mutex_lock(&l->live->names);
}

void session_loan_unlock(struct session_loan *l)
{
	pthread_mutex_unlock(&l->live->names);
}

void session_give_back(struct session_loan *l)
{
	if (!l)
		return;
	take_back(l);
	free(l);
}
