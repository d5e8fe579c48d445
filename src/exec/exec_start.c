/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a command. Its row is written while lodge-init starts it; an idempotency key is claimed
 * before that. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "base/units.h"
#include "session/query.h"
#include "session/user_slot.h"
#include "exec/exec_lookup.h"
#include "session/resume.h"
#include "machine/exec_command.h"
#include "machine/exec_output_file.h"
#include "machine/exec_reason.h"
#include "machine/machine_watch.h"
#include "machine/output_share.h"
#include "session/reconcile.h"
#include "exec/command_policy.h"

enum { TRIM_EVERY = 64 };

/* ---- options -------------------------------------------------------------------------------- */

/* A longer one is refused before its idempotency key is claimed. */
static int check_length(const struct exec_opts *opts, struct err *err)
{
	size_t left = STORE_COMMAND_MAX;

	if (opts->text && strnlen(opts->text, left) < left)
		return 0;
	for (size_t i = 0; !opts->text && left && opts->argv[i]; i++) {
		size_t n = strnlen(opts->argv[i], left) + 1;

		left -= n < left ? n : left;
	}
	if (!opts->text && left)
		return 0;
	err_set(err, ERR_LIMIT, "command: longer than %d bytes", STORE_COMMAND_MAX);
	err->sys = E2BIG;
	return -1;
}

static int check_opts(const struct exec_opts *opts, struct err *err)
{
	if (opts->text ? opts->argv != NULL : !opts->argv || !opts->argv[0])
		return err_set(err, ERR_INVALID, "command: set either a text or arguments");
	if (!opts->text && !*opts->argv[0])
		return err_set(err, ERR_INVALID, "command: the first argument is empty");
	if (check_length(opts, err) < 0)
		return -1;
	for (size_t i = 0; opts->env && opts->env[i]; i++)
		if (!strchr(opts->env[i], '=') || *opts->env[i] == '=')
			return err_set(err, ERR_INVALID, "env: '%.60s' is not NAME=VALUE",
				       opts->env[i]);
	if (opts->idempotency_key &&
	    (!*opts->idempotency_key || strlen(opts->idempotency_key) >= STORE_KEY))
		return err_set(err, ERR_INVALID, "idempotency key: must be 1 to %d bytes",
			       STORE_KEY - 1);
	return 0;
}

static char *print_command(const struct exec_opts *opts)
{
	struct exec_command c;

	exec_command_init(&c, opts->text != NULL);
	if (opts->text)
		exec_command_add(&c, opts->text);
	for (size_t i = 0; !opts->text && opts->argv[i]; i++)
		exec_command_add(&c, opts->argv[i]);
	return exec_command_take(&c);
}

static bool is_plain(const struct exec_opts *opts, const struct shell_rules *r)
{
	return opts->text && !r->allow.said && !(opts->env && opts->env[0]) && !opts->cwd &&
	       !opts->user && !opts->pty && !opts->stdin_open && !opts->login;
}

static bool has_variable(const char *const *env, const char *assignment)
{
	size_t n = strcspn(assignment, "=") + 1;

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], assignment, n) == 0)
			return true;
	return false;
}

/* The session's environment, overridden by the command's; free() it. */
static const char **merge_env(const struct template *t, const char *const *over)
{
	size_t n = 0, more = 0;
	const char **env;

	while (over && over[more])
		more++;
	env = calloc(t->nenv + more + 1, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < t->nenv; i++)
		if (!has_variable(over, t->env[i]))
			env[n++] = t->env[i];
	for (size_t i = 0; i < more; i++)
		env[n++] = over[i];
	return env;
}

/* A command gets what it asks for. The limit of the session is the size of its rings as long as
 * there is memory for them. */
static struct output_demand output_demand(const struct template *t, const struct exec_opts *opts)
{
	struct output_demand d = { .streams = opts->merge || opts->pty ? 1 : 2,
				   .bytes = opts->output_bytes,
				   .exact = opts->output_bytes != 0 };

	if (!d.bytes && template_has_limit(t, "output_bytes"))
		d.bytes = t->limits.output_bytes;
	return d;
}

static int check_output(const struct exec_opts *opts, const struct template *t, struct err *err)
{
	char max[SIZE_TEXT];

	if (opts->output_bytes <= t->limits.output_bytes)
		return 0;
	return err_set(err, ERR_INVALID,
		       "max_output_bytes: must be at most %s (limits.output_bytes of the session)",
		       units_format(t->limits.output_bytes, max));
}

/* ---- idempotency ----------------------------------------------------------------------------- */

static struct store_once make_once(const char *key, const char *tenant, const char *session)
{
	struct store_once o = { 0 };

	snprintf(o.tenant, sizeof(o.tenant), "%s", tenant);
	snprintf(o.scope, sizeof(o.scope), "%s", session);
	snprintf(o.key, sizeof(o.key), "%s", key);
	return o;
}

/* A client that reconnects by its key must not restart the command in a replacement session. */
static int check_started_before(const struct session *n, const struct exec_opts *opts,
				struct err *err)
{
	struct store_once o, was;
	int r = -1;

	if (!opts->must_exist || !opts->idempotency_key)
		return 0;
	o = make_once(opts->idempotency_key, n->rec.tenant, n->id);
	r = STORE_CALL(n->engine, store_once_find, &o, &was, err);
	if (r < 0 && err->code == ERR_NOT_FOUND)
		err_set(err, ERR_NOT_FOUND,
			"no command in session %s has this idempotency key; nothing was started",
			n->id);
	return r;
}

/* 0: start the command; 1: the key was used before, for the command `first`. */
static int claim_key(struct exec_record *c, const char *key, char first[STORE_ID], struct err *err)
{
	struct store_once o = make_once(key, c->rec.tenant, c->rec.session), was;
	int r = -1;

	o.created_at = c->rec.started_at;
	memcpy(o.target, c->rec.id, sizeof(o.target));
	r = STORE_CALL(c->engine, store_once_claim, &o, &was, err);
	if (r == 0) {
		hook_crash("exec:claimed");
		return 0;
	}
	if (err->code != ERR_CONFLICT)
		return -1;
	memcpy(first, was.target, STORE_ID);
	return 1;
}

static struct store_exec make_row(struct session *n, const struct exec_opts *opts, const char *id)
{
	struct store_exec rec = { .incarnation = n->rec.incarnation,
				  .started_at = engine_now(n->engine),
				  .background = opts->background };

	memcpy(rec.id, id, sizeof(rec.id));
	memcpy(rec.tenant, n->rec.tenant, sizeof(rec.tenant));
	memcpy(rec.session, n->id, sizeof(rec.session));
	rec.command = print_command(opts);
	return rec;
}

/* A key leads to this id, but the command never ran. NULL: nobody knows whether it did. */
static int record_not_run(struct session *n, const struct exec_opts *opts, const char *id,
			  const struct err *why, struct err *err)
{
	struct store_exec rec = make_row(n, opts, id);
	int r = -1;

	rec.state = why ? EXEC_EXITED : EXEC_LOST;
	rec.exit_code = why ? 126 : -1;
	rec.ended_at = rec.started_at;
	if (why)
		exec_reason_set_failed_start(&rec, why);
	exec_reason_set(&rec,
			"lodge was stopped while it started the command; its result is unknown");
	r = STORE_CALL(n->engine, store_exec_record, &rec, err);
	store_exec_fini(&rec);
	return r;
}

/* Call with machine.mutex held. */
static bool is_start_final(const struct exec_record *c)
{
	return (c->started || c->ended || !c->exec) && c->row != EXEC_ROW_PENDING;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* State of one exec_start(). */
struct exec_launch {
	struct session *n; /* locked; NULL: unlocked */
	const struct caller *caller;
	const struct exec_opts *opts;
	char id[STORE_ID];
	bool claimed;
	bool used; /* the key led to `id` before */
	struct shell_rules rules; /* of the session's policy */
	enum session_outcome outcome;
};

static struct exec_record *make_record(const struct exec_launch *s, struct err *err)
{
	struct store_exec rec = make_row(s->n, s->opts, s->id);
	struct exec_record *c;

	if (!rec.command) {
		err_sys(err, ENOMEM, "command");
		return NULL;
	}
	c = exec_record_new(s->n->engine, s->n->machine, &rec, err);
	if (c) {
		c->plain = is_plain(s->opts, &s->rules);
		c->merge = s->opts->merge;
		c->timeout_ms = s->opts->timeout_ms;
		c->holds = s->opts->hold_output;
	}
	return c;
}

static int begin_exec(struct exec_record *c, const struct exec_launch *s, struct exec_handle *x,
		      struct err *err)
{
	const struct exec_opts *opts = s->opts;
	struct machine *v = c->machine;
	auto_free const char **env = merge_env(&v->spec, opts->env);
	auto_free char *only = NULL;
	struct guest_exec_spec spec = { .argv = opts->argv,
					.text = opts->text,
					.or_sh = opts->interactive_shell,
					.env = env,
					.cwd = opts->cwd ? opts->cwd : v->spec.workdir,
					.user = opts->user ? opts->user : v->spec.user,
					.timeout_ms = opts->timeout_ms,
					.log_bytes = c->log_bytes,
					.stdin_open = opts->stdin_open,
					.merge = opts->merge,
					.login = opts->login,
					.pty = opts->pty,
					.rows = opts->rows,
					.cols = opts->cols,
					.hold = opts->hold_output,
					.landlock_required = s->rules.enforce == SHELL_REQUIRE,
					.ops = &exec_record_ops,
					.arg = c };

	if (!env)
		return err_sys(err, ENOMEM, "environment");
	if (policy_exec_allowlist(&s->rules, opts, &v->spec, &only, err) < 0)
		return -1;
	spec.landlock = only;
	MUTEX_GUARD(&v->mutex);
	if (!v->conn || v->gone)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox of session %s has ended",
			       v->session);
	if (v->stalled)
		return machine_fail_stalled(v, err);
	if (guest_exec_begin(v->conn, &spec, &c->exec, err) < 0) {
		if (err->sys == EPIPE)
			(void)machine_dispatch(v); /* the pump has not noticed yet that it ended */
		return -1;
	}
	c->rec.number = (int64_t)guest_exec_id(c->exec);
	x->holds = opts->hold_output;
	exec_record_link(c);
	machine_update_poll(v);
	return 0;
}

/* Reserves memory for its output. */
static int prepare_start(struct exec_record *c, const struct exec_opts *opts, struct err *err)
{
	struct machine *v = c->machine;
	struct output_demand d;

	MUTEX_GUARD(&v->mutex);
	if (v->stalled && !v->gone)
		return machine_fail_stalled(v, err);
	d = output_demand(&v->spec, opts);
	return output_share_reserve(c, &d, err);
}

static bool is_key_used(struct exec_launch *s)
{
	struct store_once o = make_once(s->opts->idempotency_key, s->n->rec.tenant, s->n->id), was;
	struct err ignored;
	int r = -1;

	r = STORE_CALL(s->n->engine, store_once_find, &o, &was, &ignored);
	return r == 0;
}

/* Claims the key, if any. If it was used before, sets s->used and s->id. A command that certainly
 * does not start leaves its key unused, so that a retry can start it. */
static bool may_begin(struct exec_launch *s, struct exec_record *c, struct err *err)
{
	bool ready = prepare_start(c, s->opts, err) == 0;
	int r;

	if (!s->opts->idempotency_key || s->claimed)
		return ready;
	if (!ready && !is_key_used(s))
		return false;
	r = claim_key(c, s->opts->idempotency_key, s->id, err);
	s->claimed = r == 0;
	s->used = r > 0;
	return ready && r == 0;
}

/* Returns the caller's handle; NULL: it failed, or s->used. */
static struct exec_handle *try_launch(struct exec_launch *s, struct err *err)
{
	struct exec_record *c;
	struct exec_handle *x;

	if (check_output(s->opts, &s->n->machine->spec, err) < 0 ||
	    exec_output_prepare(s->n->engine, s->n->id, err) < 0)
		return NULL;
	c = make_record(s, err);
	if (!c)
		return NULL;
	x = exec_record_add_handle(c);
	if (!x)
		err_sys(err, ENOMEM, "command");
	if (x && may_begin(s, c, err) && begin_exec(c, s, x, err) == 0) {
		hook_crash("exec:begun");
		x->created = true;
		return x;
	}
	exec_close(x);
	exec_close(c->own_handle);
	return NULL;
}

/* Resumes the session and tries once more if its sandbox turns out to have ended. */
static struct exec_handle *launch_exec(struct exec_launch *s, struct err *err)
{
	struct err second;

	for (int tries = 0; tries < 2; tries++) {
		struct exec_handle *x;

		if (session_ensure_running(s->n, s->caller, !s->opts->no_resume, &s->outcome, err) <
		    0)
			break;
		x = try_launch(s, err);
		if (x || s->used)
			return x;
		if (!machine_is_gone(s->n->machine) || reconcile_session(s->n, err) < 0)
			break;
	}
	if (s->claimed) /* later uses of the key find a command that never ran */
		(void)record_not_run(s->n, s->opts, s->id, err, &second);
	return NULL;
}

/* Call with machine.mutex held. Kills a command that no caller will learn about. */
static void kill_unrecorded(struct exec_record *c)
{
	struct err ignored;

	if (!c->ended && c->exec)
		(void)guest_exec_signal(c->exec, SIGKILL, AGENT_TO_TREE, &ignored);
	machine_update_poll(c->machine);
}

static int add_row(struct exec_record *c, struct err *err)
{
	struct store_exec rec = { .incarnation = c->rec.incarnation,
				  .number = c->rec.number,
				  .background = c->rec.background,
				  .started_at = c->rec.started_at,
				  .command = c->rec.command };
	int r;

	memcpy(rec.id, c->rec.id, sizeof(rec.id));
	memcpy(rec.tenant, c->rec.tenant, sizeof(rec.tenant));
	memcpy(rec.session, c->rec.session, sizeof(rec.session));
	/* relaxed: after a power loss the command is gone too */
	r = STORE_CALL_RELAXED(c->engine, true, store_exec_record, &rec, err);
	hook_crash("exec:recorded");
	EXEC_RECORD_GUARD(c);
	c->rec.seq = rec.seq;
	if (r < 0)
		kill_unrecorded(c);
	exec_record_set_row(c, r < 0 ? EXEC_ROW_FAILED : EXEC_ROW_WRITTEN);
	return r;
}

static int wait_started(struct exec_record *c, struct err *err)
{
	EXEC_RECORD_GUARD(c);
	while (!is_start_final(c) && !c->machine->stalled)
		(void)exec_record_wait(c, -1);
	if (!is_start_final(c)) {
		kill_unrecorded(c); /* if it starts after all, the caller does not expect it */
		(void)machine_fail_stalled(c->machine, err);
		exec_reason_set(&c->rec, "killed by lodge: the sandbox did not respond while the "
					 "command was started; it may have run in part");
		c->rec.start_failed = true;
		return err_ctx(err, "the command may still start");
	}
	if (c->start_failed) {
		*err = c->start_error;
		return -1;
	}
	return c->started ? 0 : err_set(err, ERR_UNAVAILABLE, "the engine is shutting down");
}

/* A retry gets no result where the first request got an error. */
static int check_first_use(struct exec_handle *x, struct err *err)
{
	const struct store_exec *rec = &x->record->rec;

	EXEC_RECORD_GUARD(x->record);
	if (!rec->start_failed)
		return 0;
	return err_set(err, ERR_CONFLICT,
		       "the start of command %s, which has this idempotency key, failed: %s; "
		       "send it with another key to run it again",
		       rec->id, rec->reason);
}

/* Opens the command that the key led to before; NULL with err. */
static struct exec_handle *open_first_use(struct exec_launch *s, struct err *err)
{
	struct engine *e = s->n->engine;
	struct exec_handle *x = exec_record_find(e, s->n->machine, s->id);
	struct store_exec rec;
	bool recorded;
	int r = -1;

	if (!x) {
		r = STORE_CALL(e, store_exec_get, s->id, &rec, err);
		if (r == 0)
			store_exec_fini(&rec);
		else if (err->code == ERR_NOT_FOUND)
			/* an engine died between the claim and the row: unknown result */
			r = record_not_run(s->n, s->opts, s->id, NULL, err);
		session_unlock(steal_ptr(&s->n));
		return r < 0 || exec_open(e, s->caller, s->id, &x, err) < 0 ? NULL : x;
	}
	session_unlock(steal_ptr(&s->n));
	exec_record_lock(x->record);
	while (!is_start_final(x->record) && !x->record->machine->stalled)
		(void)exec_record_wait(x->record, -1);
	recorded = x->record->row == EXEC_ROW_WRITTEN;
	exec_record_unlock(x->record);
	if (recorded)
		return x;
	exec_close(x);
	err_set(err, ERR_UNAVAILABLE, "cannot record command %s", s->id);
	return NULL;
}

/* Between two runs of the timers a session may start any number of commands. */
static void trim_rows(struct exec_record *c)
{
	struct err ignored;
	int64_t seq;

	exec_record_lock(c);
	seq = c->rec.seq;
	exec_record_unlock(c);
	if (seq % TRIM_EVERY == 0 && c->engine->opts.execs_max != ENGINE_UNLIMITED)
		(void)STORE_CALL_RELAXED(c->engine, true, store_exec_trim, c->rec.session,
					 c->engine->opts.execs_max, &ignored);
}

/* Unlocks the session first, so that other calls do not wait for this start. */
static int finish_start(struct exec_launch *s, struct exec_handle *x, struct err *err)
{
	struct exec_record *c = x->record;

	session_unlock(steal_ptr(&s->n));
	if (add_row(c, err) == 0 && wait_started(c, err) == 0) {
		trim_rows(c);
		return 0;
	}
	if (err->code == ERR_UNAVAILABLE) /* if the session was destroyed meanwhile, that is why */
		(void)session_ref_gone(c->engine, s->caller,
				       &(struct session_ref){ .id = c->rec.session }, err);
	return -1;
}

int exec_start(struct engine *e, const struct caller *caller, const struct session_ref *ref,
	       const struct exec_opts *opts, struct exec_handle **ret,
	       enum session_outcome *ret_outcome, struct err *err)
{
	struct exec_launch s = { .caller = caller, .opts = opts };
	struct name_lock slot = { 0 };
	struct exec_handle *x;

	if (check_opts(opts, err) < 0 || id_generate("exe_", s.id, err) < 0 ||
	    session_lock_for_use(e, caller, ref, !opts->no_resume, &s.n, &slot, err) < 0)
		return -1;
	x = check_started_before(s.n, opts, err) < 0 ||
			    policy_check_exec(e, &s.n->rec, opts, &s.rules, err) < 0
		    ? NULL
		    : launch_exec(&s, err);
	name_unlock(&slot);
	shell_rules_fini(&s.rules);
	if (s.used) {
		x = open_first_use(&s, err);
		if (x && check_first_use(x, err) < 0) {
			exec_close(x);
			x = NULL;
		}
	} else if (x && finish_start(&s, x, err) < 0) {
		exec_close(x);
		x = NULL;
	}
	session_unlock(s.n);
	if (!x)
		return -1;
	*ret = x;
	if (ret_outcome)
		*ret_outcome = s.outcome;
	return 0;
}
