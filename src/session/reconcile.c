/* SPDX-License-Identifier: Apache-2.0 */
/* The truth about one session, whatever was left: by a crash, by an operation that failed half way,
 * by a sandbox that died. Idempotent: each step can be repeated after another crash. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test_hook.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"
#include "machine/machine_pump.h"
#include "machine/machine_watch.h"
#include "session/capacity.h"
#include "session/reconcile.h"

/* The files are in the layer, or were taken out of it for the sandbox: then they go back. If
 * both are missing, the next start reports it. */
static int put_back_files(struct session *n, struct err *err)
{
	bool has_layer, whole;
	int r;

	if (keeper_conn_stop(n->engine, n->rec.sandbox, err) < 0 ||
	    keeper_conn_has_layer(n->engine, n->rec.layer, &has_layer, err) < 0)
		return -1;
	if (has_layer)
		return keeper_conn_destroy(n->engine, n->rec.sandbox, err);
	r = keeper_conn_seal(n->engine, n->rec.sandbox, n->rec.layer, &whole, err);
	hook_crash("reconcile:sealed");
	return r < 0 && err->code != ERR_NOT_FOUND ? -1 : 0;
}

/* Nothing of it was acknowledged. */
int reconcile_undo_start(struct session *n, struct err *err)
{
	if (n->rec.state == SESSION_RESTORING)
		return put_back_files(n, err);
	if (keeper_conn_destroy(n->engine, n->rec.sandbox, err) < 0)
		return -1;
	hook_crash("reconcile:destroyed");
	return 0;
}

static int reconcile_start(struct session *n, struct err *err)
{
	static const struct session_cause_opts interrupted = { SESSION_CAUSE_INTERRUPTED,
							       "interrupted because lodge stopped",
							       "lodge" };

	session_end_machine(n);
	if (reconcile_undo_start(n, err) < 0)
		return -1;
	return session_transition(n, SESSION_ERROR, &interrupted, NULL, NULL, err);
}

static int reconcile_hibernating(struct session *n, struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_INTERRUPTED, NULL, n->rec.cause.actor };
	char text[STORE_TEXT];

	for (int c = 0; c < SESSION_CAUSES; c++)
		if (strcmp(n->rec.cause.code, session_cause_name((enum session_cause)c)) == 0)
			why.cause = (enum session_cause)c;
	snprintf(text, sizeof(text), "%s", n->rec.cause.text);
	why.text = text;
	if (!n->death.commands) /* the engine that counted them is gone */
		death_count_commands(n);
	return hibernate_finish(n, &why, err);
}

/* Nobody is waited for longer than this: a start must not hang on one sandbox. */
enum { ADOPT_MS = 5000 };

static int connect_machine(struct session *n, struct err *err)
{
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct template spec;
	struct agent *agent;
	struct machine *v;

	if (KEEPER_CALL(n->engine, err, sandbox_attach, n->rec.sandbox, &sb, err) < 0)
		return -1;
	template_init(&spec);
	agent = sandbox_agent(sb);
	agent_set_timeout(agent, ADOPT_MS);
	if (agent_hello(agent, NULL, err) < 0 || spec_load(n->engine, &n->rec, &spec, err) < 0 ||
	    machine_new(n->engine, &n->rec, &spec, steal_ptr(&sb), true, &v, err) < 0) {
		/* it is there: only the keeper says that it is not */
		if (err->code == ERR_NOT_FOUND)
			err->code = ERR_UNAVAILABLE;
		return -1;
	}
	session_set_machine(n, v);
	n->probe_failures = 0;
	return 0;
}

/* One that is paused cannot answer: it runs for this moment. */
static int reconcile_adopt(struct session *n, struct err *err)
{
	struct err later;
	int r;

	if (!n->has_capacity) /* it occupies capacity, whether it can be connected to or not */
		capacity_force_acquire(n->engine);
	n->has_capacity = true;
	if (!n->rec.paused)
		return connect_machine(n, err);
	if (session_set_frozen(n, false, err) < 0)
		return -1;
	r = connect_machine(n, err);
	(void)session_set_frozen(n, true, &later);
	return r;
}

/* Whether its sandbox is dead for certain; -1: unknown at the moment. */
static int is_dead(struct session *n, struct err *err)
{
	if (n->machine) {
		pthread_mutex_lock(&n->machine->mutex);
		(void)machine_dispatch(n->machine); /* the pump may not have come to it yet */
		pthread_mutex_unlock(&n->machine->mutex);
		return machine_is_gone(n->machine);
	}
	if (reconcile_adopt(n, err) == 0)
		return 0;
	return err->code == ERR_NOT_FOUND ? 1 : -1;
}

struct session_cause_opts reconcile_cause(struct session *n, char text[STORE_TEXT])
{
	struct session_cause_opts gone = { SESSION_CAUSE_GONE, NULL, "" };
	int64_t seconds;

	n->death = (struct session_death){ 0 };
	if (n->machine && machine_gave_no_answer(n->machine, &seconds)) {
		snprintf(text, STORE_TEXT, "it did not respond for %lld s", (long long)seconds);
		return (struct session_cause_opts){ SESSION_CAUSE_UNAVAILABLE, text, "lodge" };
	}
	if (!n->machine && n->probe_failures >= n->engine->opts.probe_failures) {
		snprintf(text, STORE_TEXT, "it did not answer %u probes in a row",
			 n->probe_failures);
		return (struct session_cause_opts){ SESSION_CAUSE_UNAVAILABLE, text, "lodge" };
	}
	death_explain(n, &gone);
	return gone;
}

/* One that cannot be connected to several times in a row counts as dead, as if it had been probed.
 */
static bool count_silence(struct session *n, const struct err *err)
{
	return err->code == ERR_TIMEOUT && ++n->probe_failures >= n->engine->opts.probe_failures;
}

static int reconcile_active(struct session *n, struct err *err)
{
	int dead = is_dead(n, err);
	struct session_cause_opts why;
	char text[STORE_TEXT];

	if (dead < 0 && !count_silence(n, err))
		return -1;
	if (n->rec.state == SESSION_FAILED && session_revive(n, err) < 0)
		return -1;
	if (!dead)
		return 0;
	why = reconcile_cause(n, text);
	return hibernate_session(n, &why, err);
}

int reconcile_session(struct session *n, struct err *err)
{
	switch ((enum session_state)n->rec.state) {
	case SESSION_PROVISIONING:
	case SESSION_RESTORING:
		return reconcile_start(n, err);
	case SESSION_HIBERNATING:
		return reconcile_hibernating(n, err);
	case SESSION_ACTIVE:
		return reconcile_active(n, err);
	case SESSION_FAILED:
		return n->rec.runtime == SESSION_RUNTIME_LIVE ? reconcile_active(n, err) : 0;
	case SESSION_DESTROYING:
		return destroy_finish(n, err);
	case SESSION_NONE:
	case SESSION_HIBERNATED:
	case SESSION_ARCHIVED:
	case SESSION_STATES:
		break;
	}
	return 0;
}
