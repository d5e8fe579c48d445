/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a command inside the engine: what lodge-init says of it, and what becomes of its
 * end. Its callbacks come from the pump, with live.mutex, so they never wait: what has to be
 * written down is handed to a worker. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/test_hook.h"
#include "sandbox/agent_client.h"
#include "machine/exec_record.h"
#include "machine/exec_output_file.h"
#include "machine/machine.h"
#include "machine/machine_pump.h"

/* ---- handles -------------------------------------------------------------------------------- */

void command_lock(struct command *c)
{
	if (c->live)
		pthread_mutex_lock(&c->live->mutex);
}

void command_unlock(struct command *c)
{
	if (c->live)
		pthread_mutex_unlock(&c->live->mutex);
}

static void cond_new(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* With live.mutex, and something that keeps c. */
static void attach(struct run *x, struct command *c)
{
	x->command = c;
	x->peer = c->handles;
	c->handles = x;
}

struct run *run_new(struct command *c)
{
	struct run *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	atomic_fetch_add(&c->refs, 1);
	command_lock(c);
	attach(x, c);
	command_unlock(c);
	return x;
}

struct command *command_new(struct engine *e, struct live *v, struct store_exec *rec,
			    struct err *err)
{
	struct command *c = calloc(1, sizeof(*c));
	struct run *own = calloc(1, sizeof(*own));

	if (!c || !own) {
		free(c);
		free(own);
		store_exec_fini(rec);
		err_sys(err, ENOMEM, "command");
		return NULL;
	}
	atomic_init(&c->refs, 1);
	attach(own, c);
	c->own = own;
	c->kept[EXEC_OUT].fd = c->kept[EXEC_ERR].fd = -1;
	c->engine = e;
	c->live = v ? live_ref(v) : NULL;
	c->rec = *rec;
	memset(rec, 0, sizeof(*rec));
	cond_new(&c->moved);
	return c;
}

/* The handle goes, and with the last one the command. `locked`: the caller has live.mutex, and a
 * reference of its own on the sandbox. */
static void drop(struct run *x, bool locked)
{
	struct command *c = x->command;
	struct run **at = &c->handles;
	bool last;

	if (!locked)
		command_lock(c);
	while (*at && *at != x)
		at = &(*at)->peer;
	if (*at)
		*at = x->peer;
	last = atomic_fetch_sub(&c->refs, 1) == 1;
	if (last) {
		exec_free_keep(c->exec);
		c->exec = NULL;
	}
	if (last && locked && c->live)
		c->live->refs--;
	if (!locked)
		command_unlock(c);
	free(x);
	if (!last)
		return;
	if (!locked)
		live_unref(c->live);
	output_close(c);
	store_exec_fini(&c->rec);
	pthread_cond_destroy(&c->moved);
	free(c);
}

bool command_is_held(const struct command *c)
{
	const struct run *x = c->handles;

	while (x && !x->holds)
		x = x->peer;
	return x;
}

int command_consumed(struct command *c, struct err *err)
{
	uint64_t at[] = { exec_end(c->exec, EXEC_OUT), exec_end(c->exec, EXEC_ERR) };
	int r;

	for (const struct run *x = c->handles; x; x = x->peer)
		for (int s = EXEC_OUT; x->holds && s <= EXEC_ERR; s++)
			if (x->seen[s] < at[s])
				at[s] = x->seen[s];
	r = exec_consumed(c->exec, at[EXEC_OUT], at[EXEC_ERR], err);
	live_rearm(c->live);
	return r;
}

static void let_go_of_hold(struct run *x)
{
	struct command *c = x->command;
	struct err ignored;

	x->holds = false;
	if (c->exec && !c->ended)
		(void)command_consumed(c, &ignored);
}

void run_close(struct run *x)
{
	if (!x)
		return;
	command_lock(x->command);
	if (x->holds)
		let_go_of_hold(x);
	command_unlock(x->command);
	drop(x, false);
}

/* ---- its end -------------------------------------------------------------------------------- */

static void tell(struct command *c)
{
	pthread_cond_broadcast(&c->moved);
	for (struct run *x = c->handles; x; x = x->peer)
		if (x->notify)
			x->notify(x->notify_arg);
}

static void unlink_run(struct run **at, struct run *x)
{
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	x->next = NULL;
}

static void write_down(struct engine *e, struct run *own)
{
	struct command *c = own->command;
	struct store_exec rec;
	struct err err = { 0 };
	bool there, kept = false, known;
	int r = -1;

	command_lock(c); /* by now also the exec of a sandbox that was closed knows its end */
	there = c->row == ROW_THERE;
	known = !there;
	command_unlock(c);
	if (there) {
		kept = output_save(c, &err) == 0;
		hook_crash("run:saved");
		command_lock(c);
		c->rec.truncated |= !kept;
		rec = c->rec;
		command_unlock(c);
		DB_RELAXED(e, st)
		r = st->exec->finish(st, &rec, &err);
		known = r == 0 || err.code == ERR_CONFLICT || err.code == ERR_NOT_FOUND;
		hook_crash("run:finished");
	}
	if (!known) { /* tried again; the next engine finds it with lodge-init */
		pthread_mutex_lock(&e->work_mutex);
		own->writing = false;
		pthread_cond_broadcast(&e->worked);
		pthread_mutex_unlock(&e->work_mutex);
		return;
	}
	command_lock(c);
	(void)exec_forget(c->exec, &err);
	live_rearm(c->live);
	if (kept) {
		exec_free_keep(c->exec);
		c->exec = NULL;
	}
	command_unlock(c);
	pthread_mutex_lock(&e->work_mutex);
	unlink_run(&e->unwritten, own);
	pthread_cond_broadcast(&e->worked);
	pthread_mutex_unlock(&e->work_mutex);
	run_close(own);
}

/* engine_post() may call at once, which must not happen with live.mutex. */
static _Thread_local bool handing_over;

/* With engine.work_mutex: one that was not tried in this round. */
static struct run *take_unwritten(struct engine *e, unsigned round)
{
	struct run *own = e->unwritten;

	while (own && (own->writing || own->round == round))
		own = own->next;
	if (own) {
		own->writing = true;
		own->round = round;
	}
	return own;
}

/* With engine.work_mutex. */
static bool is_any_writing(const struct engine *e)
{
	const struct run *own = e->unwritten;

	while (own && !own->writing)
		own = own->next;
	return own;
}

static void write_job(struct engine *e, void *arg)
{
	struct run *own;

	(void)arg;
	if (handing_over)
		return;
	pthread_mutex_lock(&e->work_mutex);
	own = take_unwritten(e, e->write_round);
	pthread_mutex_unlock(&e->work_mutex);
	if (own)
		write_down(e, own);
}

static void hand_over(struct command *c)
{
	struct engine *e = c->engine;
	struct run **at = &e->unwritten;
	struct err ignored;

	unlink_run(&c->live->runs, c->own);
	pthread_mutex_lock(&e->work_mutex);
	c->own->round = e->write_round - 1;
	while (*at)
		at = &(*at)->next;
	*at = c->own;
	pthread_mutex_unlock(&e->work_mutex);
	handing_over = true;
	(void)engine_post(e, write_job, NULL, &ignored); /* else runs_drain() does it */
	handing_over = false;
}

void command_set_row(struct command *c, enum command_row row)
{
	c->row = row;
	pthread_cond_broadcast(&c->moved);
	if (c->ended)
		hand_over(c);
}

void command_link(struct command *c)
{
	c->own->next = c->live->runs;
	c->live->runs = c->own;
	c->live->nruns++;
}

/* lodge-init does not call it dropped what its reader, the engine, had seen. */
static bool has_dropped(const struct command *c)
{
	return !command_is_held(c) && (exec_start_offset(c->exec, EXEC_OUT) > 0 ||
				       exec_start_offset(c->exec, EXEC_ERR) > 0);
}

void command_end(struct command *c, enum run_state state)
{
	struct store_exec *rec = &c->rec;

	c->ended = true;
	rec->state = (uint8_t)state;
	rec->ended_at = engine_now(c->engine);
	rec->exit_code = c->result.code;
	rec->signal = c->result.signal;
	rec->timed_out = (c->result.hits & AGENT_HIT_TIME) != 0;
	rec->oom_killed = (c->result.hits & AGENT_HIT_MEMORY) != 0;
	rec->truncated = (c->result.hits & AGENT_HIT_OUTPUT) != 0 || has_dropped(c);
	rec->hits = c->result.hits | (rec->truncated ? AGENT_HIT_OUTPUT : 0u);
	rec->cpu_ms = (int64_t)(c->result.cpu_us / 1000);
	rec->max_rss_bytes = (int64_t)c->result.max_rss_bytes;
	rec->stdout_bytes = (int64_t)exec_end(c->exec, EXEC_OUT);
	rec->stderr_bytes = (int64_t)exec_end(c->exec, EXEC_ERR);
	c->live->nruns--;
	tell(c);
	pthread_cond_broadcast(&c->live->changed);
	hook_crash("run:ended");
	if (c->row != ROW_PENDING)
		hand_over(c);
}

/* ---- what lodge-init says ------------------------------------------------------------------- */

static void on_started(struct exec *x, void *arg)
{
	struct command *c = arg;

	(void)x;
	c->started = true;
	tell(c);
}

static void on_output(struct exec *x, void *arg)
{
	struct command *c = arg;
	struct err ignored;

	if (c->holds && !command_is_held(c))
		(void)exec_consumed(x, exec_end(x, EXEC_OUT), exec_end(x, EXEC_ERR), &ignored);
	tell(c);
}

/* The next command like this one finds a shell that waits. */
static void arm(struct command *c)
{
	struct live *v = c->live;
	struct exec_spec like = { .env = (const char *const *)v->spec.env,
				  .cwd = v->spec.workdir,
				  .user = v->spec.user,
				  .merge = c->merge };
	struct err ignored;

	if (!v->armed && c->plain && !c->result.signal)
		v->armed = exec_arm_begin(v->main, &like, &ignored) == 0;
}

static void refuse(struct command *c, const struct err *why)
{
	c->refused = true;
	c->why = *why;
	/* as a shell says it of what it cannot start */
	c->result = (struct exec_result){ .code = why->sys == ENOENT ? 127 : 126 };
	command_end(c, RUN_EXITED);
}

static bool is_cut_off(const struct exec *x)
{
	return !exec_agent(x) || agent_is_closed(exec_agent(x));
}

static void on_end(struct exec *x, void *arg)
{
	struct command *c = arg;

	if (c->ended)
		return;
	if (exec_state(x) == EXEC_EXITED) {
		c->result = *exec_result(x);
		arm(c);
		command_end(c, c->result.signal || (c->result.hits & AGENT_HIT_TIME) ? RUN_KILLED
										     : RUN_EXITED);
	} else if (is_cut_off(x)) {
		/* Its sandbox is dead, or this engine lets go of it: who knows which calls
		 * runs_end() or runs_leave(). */
		tell(c);
	} else if (!c->started) {
		refuse(c, exec_error(x));
	} else {
		c->result = (struct exec_result){ .code = -1 };
		command_end(c, RUN_LOST);
	}
}

const struct exec_ops command_ops = {
	.on_started = on_started,
	.on_output = on_output,
	.on_end = on_end,
};

/* ---- all of them ---------------------------------------------------------------------------- */

void runs_end(struct live *v)
{
	struct run *next;

	for (struct run *x = v->runs; x; x = next) {
		struct command *c = x->command;

		next = x->next;
		if (c->ended)
			continue;
		if (!c->started) {
			c->refused = true;
			err_set(&c->why, ERR_UNAVAILABLE, "the sandbox of session %s is gone",
				v->session);
		}
		c->result = (struct exec_result){ .code = -1, .signal = SIGKILL };
		command_end(c, RUN_KILLED);
	}
}

static void leave(struct run *own)
{
	struct command *c = own->command;

	exec_free_keep(c->exec);
	c->exec = NULL;
	c->own = NULL;
	pthread_cond_broadcast(&c->moved);
	drop(own, true);
}

/* What ended and is not written down is still known to lodge-init. */
void runs_leave(struct live *v)
{
	struct engine *e = v->engine;
	struct run *list = v->runs, **at = &e->unwritten;

	v->runs = NULL;
	pthread_mutex_lock(&e->work_mutex);
	while (*at) {
		struct run *x = *at;

		if (x->command->live != v || x->writing) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		x->next = list;
		list = x;
	}
	pthread_mutex_unlock(&e->work_mutex);
	while (list) {
		struct run *x = list;

		list = x->next;
		leave(x);
	}
}

/* Each once: what the store refuses now it may take later. */
static void write_all(struct engine *e, bool wait)
{
	unsigned round;
	struct run *own;

	pthread_mutex_lock(&e->work_mutex);
	round = ++e->write_round;
	for (;;) {
		own = take_unwritten(e, round);
		if (!own && wait && is_any_writing(e)) { /* others are at it */
			pthread_cond_wait(&e->worked, &e->work_mutex);
			continue;
		}
		if (!own)
			break;
		pthread_mutex_unlock(&e->work_mutex);
		write_down(e, own);
		pthread_mutex_lock(&e->work_mutex);
	}
	pthread_mutex_unlock(&e->work_mutex);
}

void runs_drain(struct engine *e)
{
	write_all(e, true);
}

void runs_retry(struct engine *e)
{
	write_all(e, false);
}

/* ---- finding one ---------------------------------------------------------------------------- */

static struct command *find_in(struct run *list, const char *id)
{
	while (list && strcmp(list->command->rec.id, id) != 0)
		list = list->next;
	return list ? list->command : NULL;
}

/* One that ends between the two places is found in the second. */
struct run *runs_find(struct engine *e, struct live *v, const char *id)
{
	struct run *x = calloc(1, sizeof(*x));
	struct command *c = NULL;

	if (!x)
		return NULL;
	if (v) {
		pthread_mutex_lock(&v->mutex);
		c = find_in(v->runs, id);
		if (c)
			atomic_fetch_add(&c->refs, 1);
		pthread_mutex_unlock(&v->mutex);
	}
	if (!c) {
		pthread_mutex_lock(&e->work_mutex);
		c = find_in(e->unwritten, id);
		if (c)
			atomic_fetch_add(&c->refs, 1);
		pthread_mutex_unlock(&e->work_mutex);
	}
	if (!c) {
		free(x);
		return NULL;
	}
	command_lock(c);
	attach(x, c);
	command_unlock(c);
	return x;
}
