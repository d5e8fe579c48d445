/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of one's own to a session's sandbox, lent out for work with files: a slow transfer
 * then holds up nobody's commands. One that comes back whole is kept for the next. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "machine/exec_record.h"
#include "session/user_slot.h"
#include "engine/keeper_conn.h"
#include "exec/exec_start.h"
#include "machine/machine.h"
#include "session/session.h"

enum {
	WAIT_MS = 30000, /* for one of SIDE_CONNS_MAX to come back */
	SPARE_MAX = 2, /* connections kept for the next; a descriptor on both sides each */
};

struct side_conn {
	struct machine *live;
	struct sandbox *side;
	bool peeks; /* it counts for nothing */
};

/* What came meanwhile is read, so that one which ended is noticed here. */
static bool is_usable(struct sandbox *side)
{
	struct err ignored;

	return agent_dispatch(sandbox_agent(side), &ignored) == 0;
}

/* With machine.mutex. NULL: there is none. */
static struct sandbox *take_spare(struct machine *v)
{
	while (v->nidle_conns > 0) {
		struct sandbox *side = v->idle_conns[--v->nidle_conns];

		if (is_usable(side))
			return side;
		sandbox_free(side);
		v->nopen_conns--;
	}
	return NULL;
}

/* True: one more is lent out; *ret is its connection, or NULL if one has to be made. */
static bool reserve(struct machine *v, bool peeks, struct sandbox **ret)
{
	bool ok;

	pthread_mutex_lock(&v->mutex);
	ok = v->nside_conns < SIDE_CONNS_MAX;
	if (ok) {
		v->nside_conns++;
		v->nreadonly_conns += peeks;
		*ret = take_spare(v);
		v->nopen_conns += *ret == NULL;
	}
	pthread_mutex_unlock(&v->mutex);
	return ok;
}

/* Not all that is lent came back: until one does. */
static int wait_for_one(struct machine *v, int64_t until_ms, struct err *err)
{
	struct timespec until = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };
	int r = 0;

	pthread_mutex_lock(&v->mutex);
	while (r == 0 && v->nside_conns >= SIDE_CONNS_MAX && !v->gone)
		r = pthread_cond_timedwait(&v->changed, &v->mutex, &until);
	pthread_mutex_unlock(&v->mutex);
	return r ? err_set(err, ERR_UNAVAILABLE,
			   "%d file operations are under way in session %s already", SIDE_CONNS_MAX,
			   v->session)
		 : 0;
}

/* With the session's turn: it is not frozen meanwhile, so lodge-init answers. */
static int connect_side(struct machine *v, struct sandbox **ret, struct err *err)
{
	struct keeper_client *k;
	uint32_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_sys(err, errno, "getrandom");
	k = keeper_conn_lock(v->engine, err);
	if (!k)
		return -1;
	r = sandbox_attach(k, v->sandbox, ret, err);
	keeper_conn_unlock(v->engine);
	if (r == 0)
		agent_number_from(sandbox_agent(*ret), agent_side_base(random));
	return r;
}

static void take_back(struct side_conn *l)
{
	struct machine *v = l->live;
	bool keep;

	pthread_mutex_lock(&v->mutex);
	v->nside_conns--;
	v->nreadonly_conns -= l->peeks;
	keep = l->side && !v->gone && v->nidle_conns < SPARE_MAX && is_usable(l->side);
	if (keep)
		v->idle_conns[v->nidle_conns++] = l->side;
	else
		v->nopen_conns--;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->mutex);
	if (!keep)
		sandbox_free(l->side);
	machine_unref(v);
}

/* With the session's turn. 1: lent; 0: all are lent out, and l->live is the sandbox to wait for. */
static int lend(struct session *n, bool peeks, struct side_conn *l, struct err *err)
{
	*l = (struct side_conn){ .live = machine_ref(n->machine), .peeks = peeks };
	if (!reserve(l->live, peeks, &l->side))
		return 0;
	if (l->side || connect_side(l->live, &l->side, err) == 0)
		return 1;
	take_back(l);
	return -1;
}

/* As lend(). */
static int try_borrow(struct engine *e, const struct caller *who, const struct session_ref *ref,
		      bool resume, struct side_conn *l, enum session_outcome *outcome,
		      struct err *err)
{
	auto_fini(user_slot_release) struct user_slot turn = { 0 };
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_for_use(e, who, ref, resume, &n, &turn, err) < 0 ||
	    session_ensure_running(n, who, resume, outcome, err) < 0)
		return -1;
	return lend(n, false, l, err);
}

int side_conn_open(struct engine *e, const struct caller *who, const struct session_ref *ref,
		   bool resume, struct side_conn **ret, enum session_outcome *ret_outcome,
		   struct err *err)
{
	auto_free struct side_conn *l = calloc(1, sizeof(*l));
	int64_t until = clock_mono_ms() + WAIT_MS;
	enum session_outcome outcome;
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "connection");
	while ((r = try_borrow(e, who, ref, resume, l, &outcome, err)) == 0) {
		r = wait_for_one(l->live, until, err);
		machine_unref(l->live);
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

int side_conn_open_readonly(struct engine *e, const struct caller *who,
			    const struct session_ref *ref, struct side_conn **ret, struct err *err)
{
	auto_free struct side_conn *l = calloc(1, sizeof(*l));
	auto_call(session_unlock) struct session *n = NULL;
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "connection");
	if (session_lock_ref(e, who, ref, &n, err) < 0)
		return -1;
	/* one that is paused would not answer */
	if (n->rec.state != SESSION_ACTIVE || n->rec.paused || !n->machine ||
	    machine_is_gone(n->machine))
		return err_set(err, ERR_CONFLICT, "nothing runs in session %s now", n->id);
	r = lend(n, true, l, err);
	if (r == 0) {
		machine_unref(l->live);
		return err_set(err, ERR_UNAVAILABLE, "too much is under way in session %s", n->id);
	}
	if (r < 0)
		return -1;
	*ret = steal_ptr(&l);
	return 0;
}

struct sandbox *side_conn_sandbox(const struct side_conn *l)
{
	return l->side;
}

const struct template *side_conn_template(const struct side_conn *l)
{
	return &l->live->spec;
}

void side_conn_lock(struct side_conn *l)
{
	pthread_mutex_lock(&l->live->files_mutex);
}

void side_conn_unlock(struct side_conn *l)
{
	pthread_mutex_unlock(&l->live->files_mutex);
}

void side_conn_close(struct side_conn *l)
{
	if (!l)
		return;
	take_back(l);
	free(l);
}
