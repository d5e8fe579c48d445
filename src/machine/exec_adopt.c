/* SPDX-License-Identifier: Apache-2.0 */
/* Execs that an earlier engine started in a running sandbox: running ones continue under this
 * engine, ended ones are recorded, and those that neither side knows are lost. A process without
 * a row gets one, so that nothing runs unrecorded. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_sync.h"
#include "machine/exec_adopt.h"
#include "machine/exec_command.h"
#include "machine/exec_output_file.h"
#include "machine/exec_reason.h"
#include "machine/output_share.h"

enum {
	PAGE = 200,
	STATUS_MS = 15000,
	ALL_MS = 20000, /* for all execs together: a slow sandbox is slow for each of them */
};

struct proc {
	uint64_t exec;
	uint64_t started_ms;
	bool known; /* there is a row of it */
};

struct adoption {
	struct machine *v;
	struct proc procs[AGENT_EXECS_MAX];
	size_t count;
	int64_t until; /* clock_mono_ms() */
};

/* Jobs of side connections are no execs. */
static int add_process(void *arg, const struct agent_proc *p)
{
	struct adoption *a = arg;

	if (p->exec < AGENT_SIDE_EXEC && a->count < AGENT_EXECS_MAX)
		a->procs[a->count++] =
			(struct proc){ .exec = p->exec, .started_ms = p->started_ms };
	return 0;
}

static struct proc *find_proc(struct adoption *a, int64_t number)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->procs[i].exec == (uint64_t)number)
			return &a->procs[i];
	return NULL;
}

/* ---- one exec -------------------------------------------------------------------------------- */

static int finish_row(struct engine *e, struct store_exec *rec, enum exec_state state,
		      struct err *err)
{
	rec->state = (uint8_t)state;
	rec->exit_code = -1;
	rec->signal = state == EXEC_KILLED ? SIGKILL : 0;
	rec->ended_at = engine_now(e);
	exec_reason_set(rec, state == EXEC_KILLED
				     ? "killed with its sandbox, which ended"
				     : "its result is unknown: its sandbox has no record of it");
	return STORE_CALL(e, store_exec_finish, rec, err);
}

static void record_end(struct exec_record *c)
{
	int64_t at;

	exec_record_exited(c);
	at = c->rec.started_at + (int64_t)(c->result.duration_us / 1000);
	if (at < c->rec.ended_at)
		c->rec.ended_at = at;
}

/* The row stays pending, so that no other thread uses the connection before all execs are
 * adopted. */
static int adopt_exec(struct machine *v, struct store_exec *rec, struct err *err)
{
	struct exec_record *c = exec_record_new(v->engine, v, rec, err);
	int r = -1;

	if (!c)
		return -1;
	if (guest_exec_adopt(v->conn, (uint64_t)c->rec.number, false, &exec_record_ops, c, &c->exec,
			     err) < 0) {
		if (err->code == ERR_NOT_FOUND)
			r = finish_row(v->engine, &c->rec, EXEC_LOST, err);
		exec_record_close(c->own_handle);
		return r;
	}
	c->started = true;
	output_share_adopt(c);
	exec_record_link(c);
	if (guest_exec_state(c->exec) == GUEST_EXEC_EXITED)
		record_end(c);
	return 0;
}

/* The exec is recorded already; only lodge-init was not told to forget it. */
static void forget_process(struct machine *v, uint64_t number)
{
	struct agent_ref ref = { .exec = number };
	struct err ignored;

	(void)agent_send(sandbox_agent(v->conn), AGENT_FORGET,
			 (struct agent_part[]){ { &ref, sizeof(ref) } }, 1, NULL, 0, NULL, NULL,
			 &ignored);
}

static int check_time(const struct adoption *a, struct err *err)
{
	return clock_mono_ms() < a->until
		       ? 0
		       : err_set(err, ERR_TIMEOUT, "the sandbox did not answer in time");
}

static int adopt_row(struct adoption *a, struct store_exec *row, struct err *err)
{
	bool same = row->incarnation == a->v->incarnation;
	struct proc *p = same ? find_proc(a, row->number) : NULL;

	if (p)
		p->known = true;
	if (row->state != EXEC_RUNNING) {
		if (p)
			forget_process(a->v, p->exec);
		return 0;
	}
	if (!p) /* one of an earlier sandbox ended with it */
		return finish_row(a->v->engine, row, same ? EXEC_LOST : EXEC_KILLED, err);
	return check_time(a, err) < 0 ? -1 : adopt_exec(a->v, row, err);
}

static int adopt_rows(struct adoption *a, struct err *err)
{
	struct store_page page = { .limit = PAGE };
	int r;

	do {
		struct store_exec_list l = { 0 };

		r = STORE_CALL(a->v->engine, store_exec_list, a->v->session, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			r = adopt_row(a, &l.items[i], err);
		page.after = l.next;
		store_exec_list_fini(&l);
	} while (r == 0 && page.after);
	return r;
}

/* ---- processes without a row ----------------------------------------------------------------- */

struct words {
	bool done;
	char *json; /* owned */
	struct err err;
};

static void on_status(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct words *w = arg;
	struct agent_proc p;
	struct exec_command c;
	const char *word;

	(void)fds;
	w->done = true;
	if (!msg) {
		w->err = *err;
		return;
	}
	memcpy(&p, (const char *)msg + sizeof(struct agent_hdr), sizeof(p));
	exec_command_init(&c, (p.flags & AGENT_BASH) != 0);
	for (uint32_t i = 0; i < p.argc && (word = agent_msg_string(msg, len, i)); i++)
		exec_command_add(&c, word);
	w->json = exec_command_take(&c);
	if (!w->json)
		err_sys(&w->err, ENOMEM, "command");
}

/* What was asked for, as far as lodge-init remembers it; NULL with err. */
static char *get_command(struct machine *v, uint64_t number, struct err *err)
{
	struct agent *a = sandbox_agent(v->conn);
	struct agent_ref ref = { .exec = number };
	struct words w = { 0 };

	if (agent_send(a, AGENT_STATUS, (struct agent_part[]){ { &ref, sizeof(ref) } }, 1, NULL, 0,
		       on_status, &w, err) < 0)
		return NULL;
	if (agent_wait(a, &w.done, STATUS_MS, err) < 0) {
		agent_cancel(a, &w);
		return NULL;
	}
	if (!w.json)
		*err = w.err;
	return w.json;
}

static int adopt_unknown(struct machine *v, const struct proc *p, struct err *err)
{
	struct store_exec rec = { .incarnation = v->incarnation,
				  .number = (int64_t)p->exec,
				  .started_at = (int64_t)p->started_ms };

	if (id_generate("exe_", rec.id, err) < 0)
		return -1;
	memcpy(rec.tenant, v->tenant, sizeof(rec.tenant));
	memcpy(rec.session, v->session, sizeof(rec.session));
	rec.command = get_command(v, p->exec, err);
	if (!rec.command)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (STORE_CALL(v->engine, store_exec_record, &rec, err) < 0) {
		store_exec_fini(&rec);
		return -1;
	}
	return adopt_exec(v, &rec, err);
}

int exec_adopt_all(struct machine *v, struct err *err)
{
	auto_free struct adoption *a = calloc(1, sizeof(*a));
	struct exec_handle *next;

	if (!a)
		return err_sys(err, ENOMEM, "commands");
	a->v = v;
	a->until = clock_mono_ms() + ALL_MS;
	if (exec_output_prepare(v->engine, v->session, err) < 0 ||
	    agent_list(sandbox_agent(v->conn), add_process, a, err) < 0 || adopt_rows(a, err) < 0)
		return -1;
	for (size_t i = 0; i < a->count; i++)
		if (!a->procs[i].known &&
		    (check_time(a, err) < 0 || adopt_unknown(v, &a->procs[i], err) < 0))
			return -1;
	MUTEX_GUARD(&v->mutex);
	for (struct exec_handle *x = v->execs; x; x = next) {
		next = x->next;
		exec_record_set_row(x->record, EXEC_ROW_WRITTEN);
	}
	return 0;
}
