/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a command. Its row is written while lodge-init starts it; a key that makes it happen
 * once is claimed before. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "base/json.h"
#include "sandbox/sandbox.h"
#include "admit/policy_rules.h"
#include "session/user_slot.h"
#include "machine/exec_record.h"
#include "exec/exec_handle.h"
#include "exec/exec_start.h"
#include "machine/exec_output_file.h"
#include "machine/machine.h"
#include "machine/machine_pump.h"
#include "session/change.h"
#include "session/reconcile.h"
#include "session/resume.h"
#include "session/session.h"

enum { OUTPUT_DEFAULT = 1 << 20 };

/* ---- what is wanted ------------------------------------------------------------------------- */

static int check_want(const struct exec_opts *w, struct err *err)
{
	if (w->text ? w->argv != NULL : !w->argv || !w->argv[0])
		return err_set(err, ERR_INVALID, "command: either a text or arguments are needed");
	if (!w->text && !*w->argv[0])
		return err_set(err, ERR_INVALID, "command: the first argument is empty");
	for (size_t i = 0; w->env && w->env[i]; i++)
		if (!strchr(w->env[i], '=') || *w->env[i] == '=')
			return err_set(err, ERR_INVALID, "env: '%.60s' is not NAME=VALUE",
				       w->env[i]);
	if (w->once && (!*w->once || strlen(w->once) >= STORE_KEY))
		return err_set(err, ERR_INVALID, "idempotency key: 1 to %d bytes", STORE_KEY - 1);
	return 0;
}

static char *print_command(const struct exec_opts *w)
{
	struct json_out j;

	json_out_init(&j, STORE_COMMAND_MAX);
	if (w->text) {
		json_out_str(&j, NULL, w->text);
	} else {
		json_out_array(&j, NULL);
		for (size_t i = 0; w->argv[i]; i++)
			json_out_str(&j, NULL, w->argv[i]);
		json_out_end(&j);
	}
	return json_out_take(&j, NULL);
}

static bool is_plain(const struct exec_opts *w, const struct shell_rules *r)
{
	return w->text && !r->allow.said && !(w->env && w->env[0]) && !w->cwd && !w->user &&
	       !w->pty && !w->stdin_open && !w->login;
}

static bool sets(const char *const *env, const char *assignment)
{
	size_t n = strcspn(assignment, "=") + 1;

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], assignment, n) == 0)
			return true;
	return false;
}

/* The session's environment and what the command says over it; free() it. */
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
		if (!sets(over, t->env[i]))
			env[n++] = t->env[i];
	for (size_t i = 0; i < more; i++)
		env[n++] = over[i];
	return env;
}

static uint64_t output_bytes(const struct template *t, uint64_t wanted)
{
	uint64_t most = t->limits.output_bytes;

	for (unsigned i = 0; !wanted && template_limit_name(i); i++)
		if ((t->limits_set & (1u << i)) && !strcmp(template_limit_name(i), "output_bytes"))
			wanted = most;
	if (!wanted)
		wanted = OUTPUT_DEFAULT;
	return wanted < most ? wanted : most;
}

/* ---- once ----------------------------------------------------------------------------------- */

static struct store_once use_of(const char *key, const char *tenant, const char *session)
{
	struct store_once o = { 0 };

	snprintf(o.tenant, sizeof(o.tenant), "%s", tenant);
	snprintf(o.scope, sizeof(o.scope), "%s", session);
	snprintf(o.key, sizeof(o.key), "%s", key);
	return o;
}

/* Who has read of it already must not start it anew, in a session that came after its own. */
static int check_again(const struct session *n, const struct exec_opts *w, struct err *err)
{
	struct store_once o, was;
	int r = -1;

	if (!w->again || !w->once)
		return 0;
	o = use_of(w->once, n->rec.tenant, n->id);
	WITH_STORE(n->engine, st)
	r = st->once->find(st, &o, &was, err);
	if (r < 0 && err->code == ERR_NOT_FOUND)
		err_set(err, ERR_NOT_FOUND,
			"idempotency key: no command of session %s has it; nothing was started",
			n->id);
	return r;
}

/* 0: it is ours to start; 1: it was used before, for `first`. */
static int claim(struct exec_record *c, const char *key, char first[STORE_ID], struct err *err)
{
	struct store_once o = use_of(key, c->rec.tenant, c->rec.session), was;
	int r = -1;

	o.created_at = c->rec.started_at;
	memcpy(o.target, c->rec.id, sizeof(o.target));
	WITH_STORE(c->engine, st)
	r = st->once->claim(st, &o, &was, err);
	if (r == 0) {
		hook_crash("run:claimed");
		return 0;
	}
	if (err->code != ERR_CONFLICT)
		return -1;
	memcpy(first, was.target, STORE_ID);
	return 1;
}

static struct store_exec row_of(struct session *n, const struct exec_opts *w, const char *id)
{
	struct store_exec rec = { .incarnation = n->rec.incarnation,
				  .started_at = engine_now(n->engine),
				  .background = w->background };

	memcpy(rec.id, id, sizeof(rec.id));
	memcpy(rec.tenant, n->rec.tenant, sizeof(rec.tenant));
	memcpy(rec.session, n->id, sizeof(rec.session));
	rec.command = print_command(w);
	return rec;
}

/* A key led to this id, and there is no command behind it. */
static int record_none(struct session *n, const struct exec_opts *w, const char *id,
		       enum exec_state state, int code, struct err *err)
{
	struct store_exec rec = row_of(n, w, id);
	int r = -1;

	rec.state = (uint8_t)state;
	rec.exit_code = code;
	rec.ended_at = rec.started_at;
	WITH_STORE(n->engine, st)
	r = st->exec->record(st, &rec, err);
	store_exec_fini(&rec);
	return r;
}

/* With live.mutex. */
static bool is_settled(const struct exec_record *c)
{
	return (c->started || c->ended || !c->exec) && c->row != EXEC_ROW_PENDING;
}

/* ---- starting ------------------------------------------------------------------------------- */

int session_lock_for_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
			 bool resume, struct session **ret, struct user_slot *turn, struct err *err)
{
	return resume ? user_slot_acquire_ref(e, who, ref, 0, ret, turn, err)
		      : session_lock_reconciled(e, who, ref, 0, ret, err);
}

int session_ensure_running(struct session *n, const struct caller *who, bool resume,
			   enum session_outcome *ret, struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, who->actor };
	struct resume_result woken;

	*ret = SESSION_REUSED;
	if (n->rec.state != SESSION_ACTIVE || !n->live) {
		if (!resume)
			return err_set(err, ERR_CONFLICT, "session %s is %s", n->id,
				       state_machine_name(&session_states, n->rec.state));
		*ret = session_has_files(&n->rec) ? SESSION_RESUMED
		       : n->rec.started_at	  ? SESSION_REPLACED
						  : SESSION_CREATED;
		if (resume_session(n, &why, 0, &woken, err) < 0)
			return -1;
	}
	if (n->rec.paused && session_thaw(n, who->actor, err) < 0)
		return -1;
	session_touch(n);
	return 0;
}

/* What one exec_start() is about. */
struct start {
	struct session *n; /* the turn; NULL: given back */
	const struct caller *who;
	const struct exec_opts *want;
	char id[STORE_ID];
	bool claimed;
	bool used; /* the key led to `id` before */
	struct shell_rules rules; /* of the session's policy */
	enum session_outcome outcome;
};

static struct exec_record *describe(const struct start *s, struct err *err)
{
	struct store_exec rec = row_of(s->n, s->want, s->id);
	struct exec_record *c;

	if (!rec.command) {
		err_set(err, ERR_LIMIT, "the command is too long");
		err->sys = E2BIG;
		return NULL;
	}
	c = exec_record_new(s->n->engine, s->n->live, &rec, err);
	if (c) {
		c->plain = is_plain(s->want, &s->rules);
		c->merge = s->want->merge;
		c->holds = s->want->hold;
	}
	return c;
}

static int begin(struct exec_record *c, const struct start *s, struct exec_handle *x,
		 struct err *err)
{
	const struct exec_opts *w = s->want;
	struct machine *v = c->live;
	auto_free const char **env = merge_env(&v->spec, w->env);
	auto_free char *only = NULL;
	struct guest_exec_spec spec = { .argv = w->argv,
					.text = w->text,
					.or_sh = w->own_shell,
					.env = env,
					.cwd = w->cwd ? w->cwd : v->spec.workdir,
					.user = w->user ? w->user : v->spec.user,
					.timeout_ms = w->timeout_ms,
					.log_bytes = output_bytes(&v->spec, w->output_bytes),
					.stdin_open = w->stdin_open,
					.merge = w->merge,
					.login = w->login,
					.pty = w->pty,
					.rows = w->rows,
					.cols = w->cols,
					.hold = w->hold,
					.landlock_required = s->rules.enforce == SHELL_REQUIRE,
					.ops = &exec_record_ops,
					.arg = c };
	int r = -1;

	if (!env)
		return err_sys(err, ENOMEM, "environment");
	if (policy_exec_allowlist(&s->rules, w, &v->spec, &only, err) < 0)
		return -1;
	spec.landlock = only;
	pthread_mutex_lock(&v->mutex);
	if (!v->main || v->gone)
		err_set(err, ERR_UNAVAILABLE, "the sandbox of session %s is gone", v->session);
	else
		r = guest_exec_begin(v->main, &spec, &c->exec, err);
	if (r < 0 && err->sys == EPIPE)
		(void)machine_dispatch(v); /* the pump had no time yet to tell that it is gone */
	if (r == 0) {
		c->rec.number = (int64_t)guest_exec_id(c->exec);
		x->holds = w->hold;
		exec_record_link(c);
		machine_update_poll(v);
	}
	pthread_mutex_unlock(&v->mutex);
	return r;
}

/* Whether the key is ours now; where it was used before, s->used and s->id say so. */
static bool may_begin(struct start *s, struct exec_record *c, struct err *err)
{
	int r;

	if (!s->want->once || s->claimed)
		return true;
	r = claim(c, s->want->once, s->id, err);
	s->claimed = r == 0;
	s->used = r > 0;
	return r == 0;
}

/* The caller's handle; NULL: it failed, or s->used. */
static struct exec_handle *begin_in(struct start *s, struct err *err)
{
	struct exec_record *c;
	struct exec_handle *x;

	if (exec_output_prepare(s->n->engine, s->n->id, err) < 0)
		return NULL;
	c = describe(s, err);
	if (!c)
		return NULL;
	x = exec_handle_new(c);
	if (!x)
		err_sys(err, ENOMEM, "command");
	if (x && may_begin(s, c, err) && begin(c, s, x, err) == 0) {
		hook_crash("run:begun");
		x->first = true;
		return x;
	}
	exec_close(x);
	exec_close(c->own);
	return NULL;
}

/* A sandbox that is found dead is what the session is resumed from. */
static struct exec_handle *launch(struct start *s, struct err *err)
{
	struct err second;

	for (int tries = 0; tries < 2; tries++) {
		struct exec_handle *x;

		if (session_ensure_running(s->n, s->who, !s->want->no_resume, &s->outcome, err) < 0)
			break;
		x = begin_in(s, err);
		if (x || s->used)
			return x;
		if (!machine_is_gone(s->n->live) || reconcile_session(s->n, err) < 0)
			break;
	}
	if (s->claimed) /* the same key is told that this one never ran */
		(void)record_none(s->n, s->want, s->id, EXEC_EXITED, 126, &second);
	return NULL;
}

/* With live.mutex. Nobody will be told of this command: it goes. */
static void abandon(struct exec_record *c)
{
	struct err ignored;

	if (!c->ended && c->exec)
		(void)guest_exec_signal(c->exec, SIGKILL, AGENT_TO_TREE, &ignored);
	machine_update_poll(c->live);
}

static int record(struct exec_record *c, struct err *err)
{
	struct store_exec rec = { .incarnation = c->rec.incarnation,
				  .number = c->rec.number,
				  .background = c->rec.background,
				  .started_at = c->rec.started_at,
				  .command = c->rec.command };
	int r = -1;

	memcpy(rec.id, c->rec.id, sizeof(rec.id));
	memcpy(rec.tenant, c->rec.tenant, sizeof(rec.tenant));
	memcpy(rec.session, c->rec.session, sizeof(rec.session));
	WITH_STORE_RELAXED(c->engine, st) /* the command is not there after a power loss either */
	r = st->exec->record(st, &rec, err);
	hook_crash("run:recorded");
	exec_record_lock(c);
	c->rec.seq = rec.seq;
	if (r < 0)
		abandon(c);
	exec_record_set_row(c, r < 0 ? EXEC_ROW_FAILED : EXEC_ROW_WRITTEN);
	exec_record_unlock(c);
	return r;
}

static int wait_started(struct exec_record *c, struct err *err)
{
	int r = 0;

	exec_record_lock(c);
	while (!is_settled(c))
		(void)exec_record_wait(c, -1);
	if (c->refused) {
		*err = c->why;
		r = -1;
	} else if (!c->started) {
		r = err_set(err, ERR_UNAVAILABLE, "the engine is closing");
	}
	exec_record_unlock(c);
	return r;
}

/* What the key led to before; NULL with err. */
static struct exec_handle *first_use(struct start *s, struct err *err)
{
	struct engine *e = s->n->engine;
	struct exec_handle *x = exec_record_find(e, s->n->live, s->id);
	struct store_exec rec;
	bool there;
	int r = -1;

	if (!x) {
		WITH_STORE(e, st)
		r = st->exec->get(st, s->id, &rec, err);
		if (r == 0)
			store_exec_fini(&rec);
		else if (err->code == ERR_NOT_FOUND)
			/* an engine died between the claim and the row: did it run? */
			r = record_none(s->n, s->want, s->id, EXEC_LOST, -1, err);
		session_unlock(steal_ptr(&s->n));
		return r < 0 || exec_open(e, s->who, s->id, &x, err) < 0 ? NULL : x;
	}
	session_unlock(steal_ptr(&s->n));
	exec_record_lock(x->command);
	while (!is_settled(x->command))
		(void)exec_record_wait(x->command, -1);
	there = x->command->row == EXEC_ROW_WRITTEN;
	exec_record_unlock(x->command);
	if (there)
		return x;
	exec_close(x);
	err_set(err, ERR_UNAVAILABLE, "command %s could not be recorded", s->id);
	return NULL;
}

/* The turn is given back first: nobody has to wait for this one's start. */
static int see_through(struct start *s, struct exec_handle *x, struct err *err)
{
	session_unlock(steal_ptr(&s->n));
	if (record(x->command, err) < 0)
		return -1;
	return wait_started(x->command, err);
}

int exec_start(struct engine *e, const struct caller *who, const struct session_ref *ref,
	       const struct exec_opts *want, struct exec_handle **ret,
	       enum session_outcome *ret_outcome, struct err *err)
{
	struct start s = { .who = who, .want = want };
	struct user_slot turn = { 0 };
	struct exec_handle *x;

	if (check_want(want, err) < 0 || id_generate("exe_", s.id, err) < 0 ||
	    session_lock_for_use(e, who, ref, !want->no_resume, &s.n, &turn, err) < 0)
		return -1;
	x = check_again(s.n, want, err) < 0 ||
			    policy_check_exec(e, &s.n->rec, want, &s.rules, err) < 0
		    ? NULL
		    : launch(&s, err);
	user_slot_release(&turn);
	shell_rules_fini(&s.rules);
	if (s.used) {
		x = first_use(&s, err);
	} else if (x && see_through(&s, x, err) < 0) {
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
