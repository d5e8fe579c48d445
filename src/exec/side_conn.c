/* SPDX-License-Identifier: Apache-2.0 */
/* Additional connections to a session's sandbox for file operations, so that a slow transfer does
 * not delay commands. A usable connection is kept for the next caller when it is closed. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "session/user_slot.h"
#include "session/resume.h"
#include "machine/machine.h"
#include "machine/machine_watch.h"
#include "exec/side_conn.h"

enum {
	WAIT_MS = 30000, /* until one of SIDE_CONNS_MAX is closed */
	SPARE_MAX = 2, /* kept for the next callers; each takes a descriptor on both sides */
};

struct side_conn {
	struct machine *machine;
	struct sandbox *side;
	bool readonly; /* does not count as use of the session */
};

/* Reads pending messages, so that a closed connection is noticed. */
static bool is_usable(struct sandbox *side)
{
	struct err ignored;

	return agent_dispatch(sandbox_agent(side), &ignored) == 0;
}

/* Call with machine.mutex held. Returns NULL if there is none. */
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

/* 0: all connections are in use. *ret is a spare connection, or NULL if the caller must
 * connect. */
static int reserve(struct machine *v, bool readonly, struct sandbox **ret, struct err *err)
{
	MUTEX_GUARD(&v->mutex);
	if (v->stalled)
		return machine_fail_stalled(v, err);
	if (v->nside_conns >= SIDE_CONNS_MAX)
		return 0;
	v->nside_conns++;
	v->nreadonly_conns += readonly;
	*ret = take_spare(v);
	v->nopen_conns += *ret == NULL;
	if (*ret)
		machine_add_side_conn(v, *ret);
	return 1;
}

static int too_many_operations(const char *session, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE,
		       "%d file operations are in progress in session %s; try again later",
		       SIDE_CONNS_MAX, session);
}

static int wait_for_conn(struct machine *v, int64_t until, struct err *err)
{
	MUTEX_GUARD(&v->mutex);
	while (v->nside_conns >= SIDE_CONNS_MAX && !v->gone)
		if (!cond_wait_until(&v->changed, &v->mutex, until))
			return too_many_operations(v->session, err);
	return 0;
}

/* Call with the session locked: it is not paused meanwhile, so lodge-init answers. */
static int connect_side(struct machine *v, struct sandbox **ret, struct err *err)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_sys(err, errno, "getrandom");
	if (KEEPER_CALL(v->engine, err, sandbox_attach, v->sandbox, ret, err) < 0)
		return -1;
	agent_number_from(sandbox_agent(*ret), agent_side_base(random));
	MUTEX_GUARD(&v->mutex);
	machine_add_side_conn(v, *ret);
	return 0;
}

static void put_back(struct side_conn *conn)
{
	struct machine *v = conn->machine;
	bool keep;

	pthread_mutex_lock(&v->mutex);
	v->nside_conns--;
	v->nreadonly_conns -= conn->readonly;
	machine_remove_side_conn(v, conn->side);
	keep = conn->side && !v->gone && v->nidle_conns < SPARE_MAX && is_usable(conn->side);
	if (keep)
		v->idle_conns[v->nidle_conns++] = conn->side;
	else
		v->nopen_conns--;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->mutex);
	if (!keep)
		sandbox_free(conn->side);
	machine_unref(v);
}

/* Call with the session locked. 1: acquired; 0: all are in use, and conn->machine is the sandbox to
 * wait for. */
static int acquire(struct session *n, bool readonly, struct side_conn *conn, struct err *err)
{
	int r;

	*conn = (struct side_conn){ .machine = machine_ref(n->machine), .readonly = readonly };
	r = reserve(conn->machine, readonly, &conn->side, err);
	if (r < 0)
		machine_unref(conn->machine);
	if (r <= 0)
		return r;
	if (conn->side || connect_side(conn->machine, &conn->side, err) == 0)
		return 1;
	put_back(conn);
	return -1;
}

/* As acquire(). */
static int try_open(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    bool resume, struct side_conn *conn, enum session_outcome *outcome,
		    struct err *err)
{
	auto_fini(name_unlock) struct name_lock slot = { 0 };
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_for_use(e, caller, ref, resume, &n, &slot, err) < 0 ||
	    session_ensure_running(n, caller, resume, outcome, err) < 0)
		return -1;
	return acquire(n, false, conn, err);
}

int side_conn_open(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   bool resume, struct side_conn **ret, enum session_outcome *ret_outcome,
		   struct err *err)
{
	auto_free struct side_conn *conn = calloc(1, sizeof(*conn));
	int64_t until = clock_mono_ms() + WAIT_MS;
	enum session_outcome outcome;
	int r;

	if (!conn)
		return err_sys(err, ENOMEM, "connection");
	while ((r = try_open(e, caller, ref, resume, conn, &outcome, err)) == 0) {
		r = wait_for_conn(conn->machine, until, err);
		machine_unref(conn->machine);
		if (r < 0)
			break;
	}
	if (r < 0)
		return -1;
	*ret = steal_ptr(&conn);
	if (ret_outcome)
		*ret_outcome = outcome;
	return 0;
}

int side_conn_open_readonly(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, struct side_conn **ret, struct err *err)
{
	auto_free struct side_conn *conn = calloc(1, sizeof(*conn));
	auto_call(session_unlock) struct session *n = NULL;
	int r;

	if (!conn)
		return err_sys(err, ENOMEM, "connection");
	if (session_lock_ref(e, caller, ref, &n, err) < 0)
		return -1;
	/* a paused sandbox would not answer */
	if (n->rec.state != SESSION_ACTIVE || n->rec.paused || !n->machine ||
	    machine_is_gone(n->machine))
		return err_set(err, ERR_CONFLICT, "session %s has no running sandbox", n->id);
	r = acquire(n, true, conn, err);
	if (r == 0) {
		machine_unref(conn->machine);
		return too_many_operations(n->id, err);
	}
	if (r < 0)
		return -1;
	*ret = steal_ptr(&conn);
	return 0;
}

struct sandbox *side_conn_sandbox(const struct side_conn *conn)
{
	return conn->side;
}

const struct template *side_conn_template(const struct side_conn *conn)
{
	return &conn->machine->spec;
}

void side_conn_lock(struct side_conn *conn)
{
	pthread_mutex_lock(&conn->machine->files_mutex);
}

void side_conn_unlock(struct side_conn *conn)
{
	pthread_mutex_unlock(&conn->machine->files_mutex);
}

void side_conn_close(struct side_conn *conn)
{
	if (!conn)
		return;
	put_back(conn);
	free(conn);
}
