/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/machine_watch.h"

#include <sys/epoll.h>

#include "base/clock.h"
#include "machine/exec_record.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"

enum {
	/* Time that counts per round: if this process itself did not run, nothing is proven. */
	ROUND_MAX_MS = 2000,
	/* A ping each third of the deadline, and two thirds to answer it: together one deadline. */
	PING_PART = 3,
};

/* With machine.mutex, as all callbacks of the agent. */
static void on_pong(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct machine *v = arg;

	(void)len, (void)fds, (void)err;
	if (!msg)
		return; /* the connection ended */
	v->watch.pinging = v->stalled = false;
	v->watch.silent_ms = 0;
	v->watch.rounds = 0;
}

static void send_ping(struct machine *v, int64_t now)
{
	struct err ignored; /* too many requests are pending: the next round tries again */

	if (agent_send(sandbox_agent(v->conn), AGENT_HELLO, NULL, 0, NULL, 0, on_pong, v,
		       &ignored) < 0)
		return;
	v->watch.pinging = true;
	v->watch.pinged_at = now;
	machine_update_poll(v);
}

static void wake_callers(struct machine *v)
{
	for (struct exec_handle *x = v->execs; x; x = x->next)
		pthread_cond_broadcast(&x->record->changed);
	pthread_cond_broadcast(&v->changed);
}

static void stall(struct machine *v)
{
	v->stalled = true;
	for (unsigned i = 0; i < v->nbusy_conns; i++)
		agent_abort(sandbox_agent(v->busy_conns[i]), "the sandbox does not respond");
}

static void give_up(struct machine *v)
{
	(void)epoll_ctl(v->engine->pump.epoll_fd, EPOLL_CTL_DEL, agent_fd(sandbox_agent(v->conn)),
			NULL);
	v->gone = v->watch.gave_up = true;
}

static bool has_users(const struct machine *v)
{
	return v->nexecs || v->nside_conns || v->nstreams;
}

static void count_silence(struct machine *v, int64_t passed_ms)
{
	const struct engine_opts *o = &v->engine->opts;

	v->watch.silent_ms += passed_ms;
	v->watch.rounds++;
	if (v->watch.silent_ms >= o->probe_ms * o->probe_failures &&
	    v->watch.rounds >= o->probe_failures)
		give_up(v);
	else if (!v->stalled && v->watch.silent_ms >= o->probe_ms - o->probe_ms / PING_PART)
		stall(v);
	if (v->stalled || v->gone)
		wake_callers(v);
}

void machine_watch(struct machine *v, bool paused)
{
	int64_t now = clock_mono_ms(), passed;

	MUTEX_GUARD(&v->mutex);
	passed = now - v->watch.checked_at;
	v->watch.checked_at = now;
	(void)machine_dispatch(v); /* the answer may be there, and the pump late */
	if (!v->conn || v->gone || paused || v->watch.frozen)
		return;
	if (v->watch.pinging)
		count_silence(v, passed < ROUND_MAX_MS ? passed : ROUND_MAX_MS);
	else if (has_users(v) && now - v->watch.pinged_at >= v->engine->opts.probe_ms / PING_PART)
		send_ping(v, now);
}

void machine_set_frozen(struct machine *v, bool frozen)
{
	if (!v)
		return;
	MUTEX_GUARD(&v->mutex);
	v->watch.frozen = frozen;
	v->watch.silent_ms = 0;
	v->watch.rounds = 0;
}

/* A use since the last round may have moved it, so lodge-init gets a little more time. */
static uint64_t until(int64_t at, int64_t now)
{
	return at ? (uint64_t)((at > now ? at - now : 0) + ROUND_MAX_MS) : 0;
}

void machine_set_deadlines(struct machine *v, int64_t idle_at, int64_t expires_at)
{
	int64_t now = engine_now(v->engine);
	struct agent_deadlines d = { until(idle_at, now), until(expires_at, now) };
	struct err ignored; /* the next round tries again */

	MUTEX_GUARD(&v->mutex);
	if (!v->conn || v->gone || v->stalled ||
	    (v->watch.idle_at == idle_at && v->watch.expires_at == expires_at))
		return;
	if (agent_send(sandbox_agent(v->conn), AGENT_DEADLINES,
		       (struct agent_part[]){ { &d, sizeof(d) } }, 1, NULL, 0, NULL, NULL,
		       &ignored) < 0)
		return;
	v->watch.idle_at = idle_at;
	v->watch.expires_at = expires_at;
	machine_update_poll(v);
}

int machine_fail_stalled(const struct machine *v, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE,
		       "the sandbox of session %s has not responded for %lld s; try again later",
		       v->session, (long long)(v->watch.silent_ms + 999) / 1000);
}

bool machine_gave_no_answer(struct machine *v, int64_t *ret_s)
{
	MUTEX_GUARD(&v->mutex);
	*ret_s = (v->watch.silent_ms + 999) / 1000;
	return v->watch.gave_up;
}

void machine_add_side_conn(struct machine *v, struct sandbox *side)
{
	v->busy_conns[v->nbusy_conns++] = side;
}

void machine_remove_side_conn(struct machine *v, const struct sandbox *side)
{
	for (unsigned i = 0; i < v->nbusy_conns; i++)
		if (v->busy_conns[i] == side) {
			v->busy_conns[i] = v->busy_conns[--v->nbusy_conns];
			return;
		}
}
