/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a sandbox responds, and whether anything works in it.
 *
 * A probe is an exec on the connection of the session's execs, without a row and without an
 * effect on the deadlines. It holds no session lock while it waits: a sandbox that does not
 * respond must not keep a caller from destroying it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_log.h"
#include "engine/keeper_listing.h"
#include "machine/machine_pump.h"
#include "session/probe.h"
#include "session/reconcile.h"

enum {
	DEADLINE_MAX_MS = 600 * 1000,
	SHORT_PART = 3, /* a deadline shorter than this part of the usual one proves nothing */
	RETRY_MS = 1000,
	TRY_MS = 100, /* between two tries to send */
	SAMPLE_MS = 100,
	TOUCH_MS = 1000, /* maximum time from the CPU sample to the touch that follows it */
};

/* ---- one echo -------------------------------------------------------------------------------- */

enum echo_status {
	ECHO_OK,
	ECHO_FAILED, /* lodge-init responded, but the process did not do what it should */
	ECHO_SILENT,
	ECHO_GONE, /* the connection ended */
};

/* All with machine.mutex. If the caller stops waiting, on_end() frees it. */
struct echo {
	struct machine *machine;
	struct guest_exec *exec;
	bool done, abandoned;
	struct err err; /* of ECHO_FAILED */
	char marker[STORE_ID];
};

static void on_end(struct guest_exec *x, void *arg)
{
	struct echo *c = arg;

	if (c->abandoned) {
		guest_exec_free(x); /* lodge-init forgets it, too */
		free(c);
		return;
	}
	c->done = true;
	pthread_cond_broadcast(&c->machine->changed);
}

static const struct guest_exec_ops echo_ops = { .on_end = on_end };

/* As the session's user, but in a directory that always exists. */
static int echo_begin(struct echo *c, int64_t deadline_ms, struct err *err)
{
	const char *const argv[] = { "echo", c->marker, NULL };
	struct guest_exec_spec spec = { .argv = argv,
					.cwd = "/",
					.user = c->machine->spec.user,
					.timeout_ms = (uint32_t)deadline_ms,
					.log_bytes = 4096,
					.ops = &echo_ops,
					.arg = c };

	if (guest_exec_begin(c->machine->conn, &spec, &c->exec, err) < 0)
		return -1;
	machine_update_poll(c->machine);
	return 0;
}

/* Sends the command, or sets *ret to the reason. A full connection may drain, and the pump reports
 * a closed one (EPIPE) in a moment, so both are tried again; no other failure is the fault of the
 * sandbox. */
static bool echo_sent(struct echo *c, int64_t until, enum echo_status *ret)
{
	struct machine *v = c->machine;

	for (;;) {
		int64_t now = clock_mono_ms();

		*ret = !v->conn || v->gone ? ECHO_GONE : ECHO_SILENT;
		if (*ret == ECHO_GONE || now >= until)
			return false;
		if (echo_begin(c, until - now, &c->err) == 0)
			return true;
		*ret = ECHO_FAILED;
		if ((c->err.sys && c->err.sys != EPIPE) ||
		    (c->err.code != ERR_LIMIT && c->err.code != ERR_UNAVAILABLE))
			return false;
		(void)cond_wait_until(&v->changed, &v->mutex,
				      now + TRY_MS < until ? now + TRY_MS : until);
	}
}

static bool echo_matches(struct echo *c)
{
	char got[STORE_ID + 2];
	uint64_t at = 0;
	ssize_t n = guest_exec_read(c->exec, GUEST_EXEC_OUT, &at, got, sizeof(got));
	size_t len = strlen(c->marker);

	return n == (ssize_t)len + 1 && memcmp(got, c->marker, len) == 0 && got[len] == '\n';
}

static enum echo_status echo_judge(struct echo *c)
{
	const struct guest_exec_result *r = guest_exec_result(c->exec);

	if (guest_exec_state(c->exec) == GUEST_EXEC_FAILED) {
		c->err = *guest_exec_error(c->exec);
		return !guest_exec_agent(c->exec) || agent_is_closed(guest_exec_agent(c->exec))
			       ? ECHO_GONE
			       : ECHO_FAILED;
	}
	if (r->hits & AGENT_HIT_TIME)
		return ECHO_SILENT;
	if (r->code == 0 && echo_matches(c))
		return ECHO_OK;
	err_set(&c->err, ERR_UNAVAILABLE, "echo in the sandbox ended with %s %d",
		r->signal ? "signal" : "status", r->signal ? r->signal : r->code);
	return ECHO_FAILED;
}

/* With machine.mutex. */
static enum echo_status echo_send(struct echo *c, int64_t deadline_ms)
{
	int64_t until = clock_mono_ms() + deadline_ms;
	enum echo_status how;

	if (!echo_sent(c, until, &how))
		return how;
	while (!c->done && cond_wait_until(&c->machine->changed, &c->machine->mutex, until))
		;
	if (!c->done) {
		c->abandoned = true;
		return ECHO_SILENT;
	}
	how = echo_judge(c);
	guest_exec_free(c->exec);
	machine_update_poll(c->machine);
	return how;
}

static int echo(struct machine *v, int64_t deadline_ms, enum echo_status *ret, struct err *why,
		struct err *err)
{
	struct echo *c = calloc(1, sizeof(*c));
	uint64_t began_us = clock_mono_us();

	if (!c)
		return err_sys(err, ENOMEM, "probe");
	if (id_generate("probe-", c->marker, err) < 0) {
		free(c);
		return -1;
	}
	c->machine = v;
	MUTEX_GUARD(&v->mutex);
	*ret = echo_send(c, deadline_ms);
	histogram_add(&v->engine->metrics.probe, clock_mono_us() - began_us);
	*why = c->err;
	if (!c->abandoned)
		free(c);
	return 0;
}

/* ---- results; all with the session's lock ---------------------------------------------------- */

/* Records of earlier versions have no deadlines. */
static void restore_timers(struct store_session *s, void *arg)
{
	(void)arg;
	if (!s->hibernate_at && !s->expires_at)
		session_record_reset(s, s->last_activity_at);
}

int session_revive(struct session *n, struct err *err)
{
	static const struct session_cause_opts none = { .cause = SESSION_CAUSE_NONE };

	return session_transition(n, SESSION_ALIVE, &none, restore_timers, NULL, err);
}

static struct session_probe_result make_result(const struct session *n, enum session_probe_status a)
{
	return (struct session_probe_result){ .status = a,
					      .cause = n->rec.cause,
					      .expires_at = n->rec.expires_at };
}

static struct session_probe_result unknown_result(const struct session *n, const char *text)
{
	struct session_probe_result r = make_result(n, SESSION_PROBE_UNKNOWN);

	r.cause = (struct store_cause){ .code = "transient", .at = engine_now(n->engine) };
	snprintf(r.cause.text, sizeof(r.cause.text), "%s", text);
	r.retry_after_ms = RETRY_MS;
	return r;
}

/* Seals its files, as at the end of any other sandbox. */
static int expire(struct session *n, const struct session_cause_opts *why,
		  struct session_probe_result *ret, struct err *err)
{
	if (n->rec.state == SESSION_FAILED && session_revive(n, err) < 0)
		return -1;
	hook_crash("probe:expire");
	if (hibernate_session(n, why, err) < 0)
		return -1;
	n->probe_failures = 0;
	*ret = make_result(n, SESSION_EXPIRED);
	return 0;
}

/* The connection ended. What the keeper still has of the sandbox shows how it ended. */
static int expire_gone(struct session *n, struct session_probe_result *ret, struct err *err)
{
	char text[STORE_TEXT];
	struct session_cause_opts why = reconcile_cause(n, text);
	struct keeper_listing l;

	if (why.cause == SESSION_CAUSE_UNAVAILABLE)
		return expire(n, &why, ret, err);
	if (keeper_listing_read(n->engine, &l, err) < 0)
		return -1;
	if (keeper_listing_sandbox(&l, n->rec.sandbox) != KEEPER_PRESENCE_NONE)
		why.cause = SESSION_CAUSE_STOPPED;
	keeper_listing_fini(&l);
	return expire(n, &why, ret, err);
}

static int record_silent(struct session *n, const struct caller *caller, int64_t begun, bool hasty,
			 struct session_probe_result *ret, struct err *err)
{
	char text[STORE_TEXT];
	struct session_cause_opts why = { SESSION_CAUSE_UNAVAILABLE, text, caller->actor };

	/* callers that waited together for the same answer count as one failed probe */
	if (!hasty && (!n->probe_failures || n->probe_failed_at <= begun)) {
		n->probe_failures++;
		n->probe_failed_at = clock_mono_ms();
	}
	if (n->probe_failures < n->engine->opts.probe_failures) {
		*ret = unknown_result(n, "the sandbox did not answer in time");
		return 0;
	}
	snprintf(text, sizeof(text), "it did not answer %u probes in a row", n->probe_failures);
	return expire(n, &why, ret, err);
}

static int record_ok(struct session *n, struct session_probe_result *ret, struct err *err)
{
	n->probe_failures = 0;
	if (n->rec.state == SESSION_FAILED && session_revive(n, err) < 0)
		return -1;
	*ret = make_result(n, SESSION_PROBE_CONNECTED);
	return 0;
}

/* Whether the record says that a sandbox runs; the connection is not checked. */
static bool should_run(const struct session *n)
{
	return n->rec.runtime == SESSION_RUNTIME_LIVE &&
	       (n->rec.state == SESSION_ACTIVE || n->rec.state == SESSION_FAILED);
}

/* Reconciles unfinished work first, which counts how often the sandbox did not respond to a
 * connection. */
static int check_unconnected(struct session *n, struct session_probe_result *ret, struct err *err)
{
	bool lived = should_run(n);

	if (reconcile_session(n, err) < 0) {
		if (err->code != ERR_TIMEOUT || !should_run(n))
			return -1;
		*ret = unknown_result(n, "the sandbox did not answer in time");
		return 0;
	}
	if (n->machine)
		return 1;
	*ret = make_result(n, lived ? SESSION_EXPIRED : SESSION_PROBE_NO_SANDBOX);
	return 0;
}

/* 1: *ret_machine must be probed; 0: *ret is the result. */
static int check_record(struct session *n, struct machine **ret_machine,
			struct session_probe_result *ret, struct err *err)
{
	int r = n->machine ? 1 : check_unconnected(n, ret, err);

	if (r <= 0)
		return r;
	if (machine_is_gone(n->machine))
		return expire_gone(n, ret, err);
	if (n->rec.paused) { /* a frozen sandbox cannot respond, and a probe does not thaw it */
		*ret = make_result(n, SESSION_PROBE_CONNECTED);
		ret->cause = (struct store_cause){ .text = "paused" };
		return 0;
	}
	*ret_machine = machine_ref(n->machine);
	return 1;
}

struct probe_run {
	int64_t begun; /* clock_mono_ms() */
	bool hasty;
	enum echo_status how;
	struct err why;
};

static int record_status(struct session *n, const struct caller *caller, const struct machine *v,
			 const struct probe_run *a, struct session_probe_result *ret,
			 struct err *err)
{
	if (n->machine != v) { /* another caller changed it meanwhile */
		*ret = should_run(n) ? unknown_result(n, "the sandbox was replaced meanwhile")
				     : make_result(n, SESSION_PROBE_NO_SANDBOX);
		return 0;
	}
	switch (a->how) {
	case ECHO_OK:
		return record_ok(n, ret, err);
	case ECHO_GONE:
		return expire_gone(n, ret, err);
	case ECHO_SILENT:
		return record_silent(n, caller, a->begun, a->hasty, ret, err);
	case ECHO_FAILED:
		break;
	}
	n->probe_failures = 0;
	*ret = unknown_result(n, a->why.msg);
	return 0;
}

int session_probe(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  int64_t deadline_ms, struct session_probe_result *ret, struct err *err)
{
	int64_t wait = deadline_ms > 0 ? deadline_ms : e->opts.probe_ms;
	struct probe_run a = { .begun = clock_mono_ms(),
			       .hasty = wait < e->opts.probe_ms / SHORT_PART };
	auto_call(session_unlock) struct session *n = NULL;
	auto_call(machine_unref) struct machine *v = NULL;
	char id[STORE_ID];
	int r;

	if (session_lock_ref(e, caller, ref, &n, err) < 0)
		return -1;
	r = check_record(n, &v, ret, err);
	if (r <= 0)
		return r;
	memcpy(id, n->id, sizeof(id));
	session_unlock(steal_ptr(&n));
	if (echo(v, wait < DEADLINE_MAX_MS ? wait : DEADLINE_MAX_MS, &a.how, &a.why, err) < 0 ||
	    session_lock_ref(e, caller, &(struct session_ref){ .id = id }, &n, err) < 0)
		return -1;
	return record_status(n, caller, v, &a, ret, err);
}

/* ---- without a probe ------------------------------------------------------------------------- */

bool session_is_valid(struct engine *e, const struct caller *caller, const struct session_ref *ref)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_call(machine_unref) struct machine *v = NULL;
	struct err ignored;

	if (session_get(e, caller, ref, &s, &ignored) < 0 || !session_is_active(&s, engine_now(e)))
		return false;
	v = session_find_machine(e, s.id);
	return v && !machine_is_gone(v);
}

/* ---- activity -------------------------------------------------------------------------------- */

/* More than 1 % of the time. */
static bool is_busy(uint64_t before_us, uint64_t after_us, int64_t ms)
{
	return after_us > before_us && after_us - before_us > (uint64_t)ms * 10;
}

static bool has_shell(struct machine *v)
{
	MUTEX_GUARD(&v->mutex);
	return v->spare_shell;
}

/* Without an earlier sample: measures a short interval. */
static bool sample_briefly(struct session *n, uint64_t before_us)
{
	struct keeper_stats st;
	struct err ignored;

	nanosleep(&(struct timespec){ .tv_nsec = SAMPLE_MS * 1000000L }, NULL);
	return keeper_conn_stats(n->engine, n->rec.sandbox, &st, &ignored) == 0 &&
	       (st.pids > LIMITS_OWN_PIDS || is_busy(before_us, st.cpu_us, SAMPLE_MS));
}

/* A process without an exec shows in the number of processes, unless there is no spare shell and
 * it is the only one: then only in the CPU time. CPU time of a period with activity proves
 * nothing. */
bool session_is_working(struct session *n)
{
	int64_t now = engine_now(n->engine), since = n->cpu_sampled_at;
	bool known = since && since + TOUCH_MS >= n->rec.last_activity_at && since < now;
	uint64_t before = n->cpu_us;
	struct keeper_stats st;
	struct err ignored;

	if (n->rec.paused || keeper_conn_stats(n->engine, n->rec.sandbox, &st, &ignored) < 0)
		return false;
	n->cpu_us = st.cpu_us;
	n->cpu_sampled_at = now;
	if (st.pids != LIMITS_OWN_PIDS)
		return st.pids > LIMITS_OWN_PIDS;
	if (known)
		return is_busy(before, st.cpu_us, now - since);
	return !(n->machine && has_shell(n->machine)) && sample_briefly(n, st.cpu_us);
}
