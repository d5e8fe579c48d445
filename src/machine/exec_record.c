/* SPDX-License-Identifier: Apache-2.0 */
/* An exec inside the engine: what lodge-init reports, and how its end is recorded. The pump
 * calls the callbacks with machine.mutex held, so they never wait: a worker does the writing. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "engine/session_state.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec_log.h"
#include "machine/exec_reason.h"
#include "machine/exec_record.h"
#include "machine/exec_output_file.h"
#include "machine/machine_pump.h"
#include "machine/output_share.h"

/* ---- handles -------------------------------------------------------------------------------- */

struct exec_record *exec_record_lock(struct exec_record *c)
{
	if (c->machine)
		pthread_mutex_lock(&c->machine->mutex);
	return c;
}

void exec_record_unlock(struct exec_record *c)
{
	if (c->machine)
		pthread_mutex_unlock(&c->machine->mutex);
}

/* With machine.mutex, and something that keeps c. */
static void attach_handle(struct exec_handle *x, struct exec_record *c)
{
	x->record = c;
	x->next_of_record = c->handles;
	c->handles = x;
}

struct exec_handle *exec_record_add_handle(struct exec_record *c)
{
	struct exec_handle *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	atomic_fetch_add(&c->refs, 1);
	EXEC_RECORD_GUARD(c);
	attach_handle(x, c);
	return x;
}

struct exec_record *exec_record_new(struct engine *e, struct machine *v, struct store_exec *rec,
				    struct err *err)
{
	struct exec_record *c = calloc(1, sizeof(*c));
	struct exec_handle *own = calloc(1, sizeof(*own));

	if (!c || !own) {
		free(c);
		free(own);
		store_exec_fini(rec);
		err_sys(err, ENOMEM, "command");
		return NULL;
	}
	atomic_init(&c->refs, 1);
	attach_handle(own, c);
	c->own_handle = own;
	c->output[GUEST_EXEC_OUT].fd = c->output[GUEST_EXEC_ERR].fd = -1;
	c->engine = e;
	c->machine = v ? machine_ref(v) : NULL;
	c->rec = *rec;
	memset(rec, 0, sizeof(*rec));
	cond_init(&c->changed);
	return c;
}

/* Frees the handle, and with the last one the record. `locked`: the caller holds machine.mutex
 * and its own reference on the machine. */
static void drop_handle(struct exec_handle *x, bool locked)
{
	struct exec_record *c = x->record;
	struct exec_handle **at = &c->handles;
	bool last;

	if (!locked)
		exec_record_lock(c);
	while (*at && *at != x)
		at = &(*at)->next_of_record;
	if (*at)
		*at = x->next_of_record;
	last = atomic_fetch_sub(&c->refs, 1) == 1;
	if (last)
		output_share_free(c);
	if (last && locked && c->machine)
		c->machine->refs--;
	if (!locked)
		exec_record_unlock(c);
	free(x);
	if (!last)
		return;
	if (!locked)
		machine_unref(c->machine);
	exec_output_close(c);
	store_exec_fini(&c->rec);
	pthread_cond_destroy(&c->changed);
	free(c);
}

static bool exec_record_is_held(const struct exec_record *c)
{
	const struct exec_handle *x = c->handles;

	while (x && !x->holds)
		x = x->next_of_record;
	return x;
}

bool exec_record_wait(struct exec_record *c, int64_t deadline_ms)
{
	bool changed;

	c->machine->nstreams++;
	changed = cond_wait_until(&c->changed, &c->machine->mutex, deadline_ms);
	c->machine->nstreams--;
	return changed;
}

int exec_record_consumed(struct exec_record *c, struct err *err)
{
	uint64_t at[] = { guest_exec_end(c->exec, GUEST_EXEC_OUT),
			  guest_exec_end(c->exec, GUEST_EXEC_ERR) };
	int r;

	for (const struct exec_handle *x = c->handles; x; x = x->next_of_record)
		for (int s = GUEST_EXEC_OUT; x->holds && s <= GUEST_EXEC_ERR; s++)
			if (x->consumed[s] < at[s])
				at[s] = x->consumed[s];
	r = guest_exec_consumed(c->exec, at[GUEST_EXEC_OUT], at[GUEST_EXEC_ERR], err);
	machine_update_poll(c->machine);
	return r;
}

static void release_hold(struct exec_handle *x)
{
	struct exec_record *c = x->record;
	struct err ignored;

	x->holds = false;
	if (c->exec && !c->ended)
		(void)exec_record_consumed(c, &ignored);
}

void exec_record_close(struct exec_handle *x)
{
	exec_record_lock(x->record);
	if (x->holds)
		release_hold(x);
	exec_record_unlock(x->record);
	drop_handle(x, false);
}

/* ---- end ------------------------------------------------------------------------------------- */

static void notify_handles(struct exec_record *c)
{
	pthread_cond_broadcast(&c->changed);
	for (struct exec_handle *x = c->handles; x; x = x->next_of_record)
		if (x->notify)
			x->notify(x->notify_arg);
}

static void unlink_handle(struct exec_handle **at, struct exec_handle *x)
{
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	x->next = NULL;
}

/* Output that was dropped is no news: it happens to many execs, and their records say so. */
static void add_limit_event(struct engine *e, const struct store_exec *rec)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_NONE, NULL, "lodge" };
	struct store_event ev = { .kind = "limit_hit",
				  .cause = session_cause_record(&why, rec->ended_at) };
	char data[256];
	struct err ignored; /* the record of the exec has it */
	size_t n = 0;

	for (unsigned bit = 1; bit && bit <= rec->hits; bit <<= 1)
		if (rec->hits & bit && bit != AGENT_HIT_OUTPUT && guest_exec_hit_name(bit))
			n += (size_t)snprintf(data + n, sizeof(data) - n, "%s\"%s\"",
					      n ? "," : "{\"limits\":[", guest_exec_hit_name(bit));
	if (n == 0)
		return;
	snprintf(data + n, sizeof(data) - n, "]}");
	ev.data = data; /* borrowed */
	memcpy(ev.tenant, rec->tenant, sizeof(ev.tenant));
	memcpy(ev.session, rec->session, sizeof(ev.session));
	memcpy(ev.exec, rec->id, sizeof(ev.exec));
	(void)STORE_CALL_RELAXED(e, true, store_event_append, &ev, &ignored);
}

/* Saves the output, then the result. False: the store did not take it. */
static bool write_end(struct exec_record *c, bool *ret_kept)
{
	struct store_exec rec;
	struct err err = { 0 };
	int r;

	*ret_kept = exec_output_save(c, &err) == 0;
	hook_crash("exec:saved");
	exec_record_lock(c);
	c->rec.truncated |= !*ret_kept;
	rec = c->rec;
	exec_record_unlock(c);
	r = STORE_CALL_RELAXED(c->engine, true, store_exec_finish, &rec, &err);
	hook_crash("exec:finished");
	if (r == 0)
		add_limit_event(c->engine, &rec);
	return r == 0 || err.code == ERR_CONFLICT || err.code == ERR_NOT_FOUND;
}

static void record_end(struct engine *e, struct exec_handle *own)
{
	struct exec_record *c = own->record;
	struct err err = { 0 };
	bool kept = false, known = true, has_row;

	exec_record_lock(c); /* by now also the exec of a sandbox that was closed has its result */
	has_row = c->row == EXEC_ROW_WRITTEN;
	exec_record_unlock(c);
	if (has_row)
		known = write_end(c, &kept);
	if (known) {
		EXEC_RECORD_GUARD(c);
		(void)guest_exec_forget(c->exec, &err);
		machine_update_poll(c->machine);
		if (kept)
			output_share_free(c);
	}
	pthread_mutex_lock(&e->workers.mutex);
	if (known)
		unlink_handle(&e->exec_writes.unwritten, own);
	else /* tried again; the next engine gets it from lodge-init */
		own->writing = false;
	pthread_cond_broadcast(&e->workers.done);
	pthread_mutex_unlock(&e->workers.mutex);
	if (known)
		exec_record_close(own);
}

/* Set while engine_post() is called with machine.mutex: it may call write_job() at once, which must
 * not record anything then. */
static _Thread_local bool queueing;

/* With engine.workers.mutex: one that was not tried in this round. */
static struct exec_handle *take_unwritten(struct engine *e, unsigned round)
{
	struct exec_handle *own = e->exec_writes.unwritten;

	while (own && (own->writing || own->round == round))
		own = own->next;
	if (own) {
		own->writing = true;
		own->round = round;
	}
	return own;
}

/* With engine.workers.mutex. */
static bool is_any_writing(const struct engine *e)
{
	const struct exec_handle *own = e->exec_writes.unwritten;

	while (own && !own->writing)
		own = own->next;
	return own;
}

static void write_job(struct engine *e, void *arg)
{
	struct exec_handle *own;

	(void)arg;
	if (queueing)
		return;
	pthread_mutex_lock(&e->workers.mutex);
	own = take_unwritten(e, e->exec_writes.round);
	pthread_mutex_unlock(&e->workers.mutex);
	if (own)
		record_end(e, own);
}

/* With machine.mutex. */
static void queue_write(struct exec_record *c)
{
	struct engine *e = c->engine;
	struct exec_handle **at = &e->exec_writes.unwritten;
	struct err ignored;

	unlink_handle(&c->machine->execs, c->own_handle);
	pthread_mutex_lock(&e->workers.mutex);
	c->own_handle->round = e->exec_writes.round - 1;
	while (*at)
		at = &(*at)->next;
	*at = c->own_handle;
	pthread_mutex_unlock(&e->workers.mutex);
	queueing = true;
	(void)engine_post(e, write_job, NULL, &ignored); /* else exec_write_ended() does it */
	queueing = false;
}

void exec_record_set_row(struct exec_record *c, enum exec_row row)
{
	c->row = row;
	pthread_cond_broadcast(&c->changed);
	if (c->ended)
		queue_write(c);
}

void exec_record_link(struct exec_record *c)
{
	c->own_handle->next = c->machine->execs;
	c->machine->execs = c->own_handle;
	c->machine->nexecs++;
}

/* lodge-init does not report output as dropped that its reader, the engine, had read. */
static bool has_dropped(const struct exec_record *c)
{
	return !exec_record_is_held(c) && (guest_exec_start_offset(c->exec, GUEST_EXEC_OUT) > 0 ||
					   guest_exec_start_offset(c->exec, GUEST_EXEC_ERR) > 0);
}

void exec_record_end(struct exec_record *c, enum exec_state state)
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
	rec->stdout_bytes = (int64_t)guest_exec_end(c->exec, GUEST_EXEC_OUT);
	rec->stderr_bytes = (int64_t)guest_exec_end(c->exec, GUEST_EXEC_ERR);
	c->machine->nexecs--;
	notify_handles(c);
	pthread_cond_broadcast(&c->machine->changed);
	hook_crash("exec:ended");
	if (c->row != EXEC_ROW_PENDING)
		queue_write(c);
}

void exec_record_exited(struct exec_record *c)
{
	const struct guest_exec_result *r = guest_exec_result(c->exec);

	c->result = *r;
	if (r->signal || (r->hits & AGENT_HIT_TIME)) {
		exec_record_end(c, EXEC_KILLED);
		return;
	}
	if (c->rec.start_failed)
		exec_reason_set_late_end(&c->rec);
	exec_record_end(c, EXEC_EXITED);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void on_started(struct guest_exec *x, void *arg)
{
	struct exec_record *c = arg;

	(void)x;
	c->started = true;
	notify_handles(c);
}

static void on_output(struct guest_exec *x, void *arg)
{
	struct exec_record *c = arg;
	struct err ignored;

	if (c->holds && !exec_record_is_held(c))
		(void)guest_exec_consumed(x, guest_exec_end(x, GUEST_EXEC_OUT),
					  guest_exec_end(x, GUEST_EXEC_ERR), &ignored);
	notify_handles(c);
}

/* A started shell waits for the next command like this one. */
static void request_spare_shell(struct exec_record *c, const struct guest_exec_result *r)
{
	struct machine *v = c->machine;
	struct guest_exec_spec like = { .env = (const char *const *)v->spec.env,
					.cwd = v->spec.workdir,
					.user = v->spec.user,
					.merge = c->merge };
	struct err ignored;

	if (!v->spare_shell && c->plain && !r->signal)
		v->spare_shell = guest_exec_set_spare_shell(v->conn, &like, &ignored) == 0;
}

/* The exit status of a shell or of env(1) for a program that cannot be executed; 0: the start
 * failed for another reason. */
static int status_of_program(const struct err *why)
{
	if (why->code == ERR_NOT_FOUND && (why->sys == ENOENT || why->sys == ENOTDIR))
		return 127;
	if ((why->code == ERR_DENIED && (why->sys == EACCES || why->sys == EPERM)) ||
	    (why->code == ERR_INVALID && why->sys == ENOEXEC))
		return 126;
	return 0;
}

/* A program that cannot be executed is a result, as it is for a shell: callers need not tell
 * arguments from text. Everything else is an error of the start. */
static void fail_start(struct exec_record *c, const struct err *why)
{
	int status = status_of_program(why);
	struct err said = *why;

	c->started = status != 0;
	c->start_failed = status == 0;
	c->start_error = *why;
	c->result = (struct guest_exec_result){ .code = status ? status : 126 };
	if (!status) {
		exec_reason_set_failed_start(&c->rec, why);
	} else {
		err_ctx(&said, "lodge");
		guest_exec_put_line(c->exec, said.msg);
	}
	exec_record_end(c, EXEC_EXITED);
}

static bool is_cut_off(const struct guest_exec *x)
{
	return !guest_exec_agent(x) || agent_is_closed(guest_exec_agent(x));
}

static void on_end(struct guest_exec *x, void *arg)
{
	struct exec_record *c = arg;

	if (c->ended)
		return;
	if (guest_exec_state(x) == GUEST_EXEC_EXITED) {
		request_spare_shell(c, guest_exec_result(x));
		exec_record_exited(c);
	} else if (is_cut_off(x)) {
		/* The sandbox is dead, or this engine detaches from it; the caller, which knows,
		 * calls exec_end_all() or exec_detach_all(). */
		notify_handles(c);
	} else if (!c->started) {
		fail_start(c, guest_exec_error(x));
	} else {
		c->result = (struct guest_exec_result){ .code = -1 };
		exec_reason_set(&c->rec, "its result is unknown: %s", guest_exec_error(x)->msg);
		exec_record_end(c, EXEC_LOST);
	}
}

const struct guest_exec_ops exec_record_ops = {
	.on_started = on_started,
	.on_output = on_output,
	.on_end = on_end,
};

/* ---- all execs of a machine ------------------------------------------------------------------ */

void exec_end_all(struct machine *v)
{
	struct exec_handle *next;

	for (struct exec_handle *x = v->execs; x; x = next) {
		struct exec_record *c = x->record;

		next = x->next;
		if (c->ended)
			continue;
		if (!c->started) {
			c->start_failed = true;
			err_set(&c->start_error, ERR_UNAVAILABLE,
				"the sandbox of session %s is gone", v->session);
			exec_reason_set_failed_start(&c->rec, &c->start_error);
		}
		exec_reason_set(&c->rec, "killed with its sandbox, which %s",
				v->watch.gave_up ? "did not respond" : "ended");
		c->result = (struct guest_exec_result){ .code = -1, .signal = SIGKILL };
		exec_record_end(c, EXEC_KILLED);
	}
}

static void detach(struct exec_handle *own)
{
	struct exec_record *c = own->record;

	output_share_free(c);
	c->own_handle = NULL;
	pthread_cond_broadcast(&c->changed);
	drop_handle(own, true);
}

/* Execs that ended and are not recorded stay known to lodge-init. */
void exec_detach_all(struct machine *v)
{
	struct engine *e = v->engine;
	struct exec_handle *list = v->execs, **at = &e->exec_writes.unwritten;

	v->execs = NULL;
	pthread_mutex_lock(&e->workers.mutex);
	while (*at) {
		struct exec_handle *x = *at;

		if (x->record->machine != v || x->writing) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		x->next = list;
		list = x;
	}
	pthread_mutex_unlock(&e->workers.mutex);
	while (list) {
		struct exec_handle *x = list;

		list = x->next;
		detach(x);
	}
}

void exec_write_ended(struct engine *e, bool wait)
{
	unsigned round;

	MUTEX_GUARD(&e->workers.mutex);
	round = ++e->exec_writes.round;
	for (;;) {
		struct exec_handle *own = take_unwritten(e, round);

		if (own) {
			pthread_mutex_unlock(&e->workers.mutex);
			record_end(e, own);
			pthread_mutex_lock(&e->workers.mutex);
		} else if (wait && is_any_writing(e)) { /* another thread records it */
			pthread_cond_wait(&e->workers.done, &e->workers.mutex);
		} else {
			return;
		}
	}
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* With a reference for a new handle. */
static struct exec_record *ref_in(struct exec_handle **list, pthread_mutex_t *mutex, const char *id)
{
	MUTEX_GUARD(mutex);
	for (struct exec_handle *x = *list; x; x = x->next) {
		if (strcmp(x->record->rec.id, id) != 0)
			continue;
		atomic_fetch_add(&x->record->refs, 1);
		return x->record;
	}
	return NULL;
}

/* An exec that ends between the two lookups is found by the second. */
struct exec_handle *exec_record_find(struct engine *e, struct machine *v, const char *id)
{
	struct exec_handle *x = calloc(1, sizeof(*x));
	struct exec_record *c;

	if (!x)
		return NULL;
	c = v ? ref_in(&v->execs, &v->mutex, id) : NULL;
	if (!c)
		c = ref_in(&e->exec_writes.unwritten, &e->workers.mutex, id);
	if (!c) {
		free(x);
		return NULL;
	}
	EXEC_RECORD_GUARD(c);
	attach_handle(x, c);
	return x;
}
