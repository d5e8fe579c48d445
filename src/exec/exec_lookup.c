/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that were started before, and what is known of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/exec_record.h"
#include "exec/exec_handle.h"
#include "exec/exec_lookup.h"
#include "machine/exec_output_file.h"
#include "machine/machine.h"
#include "session/session.h"

/* ---- opening -------------------------------------------------------------------------------- */

struct search {
	const char *session;
	struct live *found;
};

static void look(struct entry *n, void *arg)
{
	struct search *s = arg;

	if (!s->found && n->live && strcmp(n->id, s->session) == 0)
		s->found = live_ref(n->live);
}

struct live *live_find(struct engine *e, const char *session)
{
	struct search s = { .session = session };

	entry_each(e, look, &s);
	return s.found;
}

static int get_row(struct engine *e, const struct caller *who, const char *id,
		   struct store_exec *ret, struct err *err)
{
	struct store_exec rec;
	int r = -1;

	if (strlen(id) >= STORE_ID)
		return err_set(err, ERR_NOT_FOUND, "no such command");
	DB (e, st)
		r = st->exec->get(st, id, &rec, err);
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "no command %s", id)
						  : -1;
	if (strcmp(rec.tenant, who->tenant) != 0) {
		store_exec_fini(&rec);
		return err_set(err, ERR_NOT_FOUND, "no command %s", id);
	}
	*ret = rec;
	return 0;
}

/* Its record and its files are all there is. Steals what rec owns. */
static int open_ended(struct engine *e, struct store_exec *rec, struct run **ret, struct err *err)
{
	struct command *c = command_new(e, NULL, rec, err);

	if (!c)
		return -1;
	c->started = c->ended = true;
	c->row = ROW_THERE;
	c->result = (struct exec_result){
		.code = (int)c->rec.exit_code,
		.signal = (int)c->rec.signal,
		.hits = (unsigned)c->rec.hits | (c->rec.truncated ? AGENT_HIT_OUTPUT : 0u),
		.duration_us = (uint64_t)(c->rec.ended_at - c->rec.started_at) * 1000,
		.cpu_us = (uint64_t)c->rec.cpu_ms * 1000,
		.max_rss_bytes = (uint64_t)c->rec.max_rss_bytes,
	};
	output_open(c);
	*ret = c->own;
	return 0;
}

static struct run *find_here(struct engine *e, const char *session, const char *id)
{
	auto_call(live_unref) struct live *v = live_find(e, session);

	return runs_find(e, v, id);
}

/* The store says that it runs, and nobody here knows it: with the session's turn, and the session
 * settled, that is the truth. */
static int settle_row(struct engine *e, const struct caller *who, struct store_exec *rec,
		      struct run **ret, struct err *err)
{
	struct session_ref ref = { .id = rec->session };
	auto_call(entry_give) struct entry *n = NULL;
	struct store_exec now = { 0 };
	int r = -1;

	if (entry_use(e, who, &ref, 0, &n, err) < 0)
		return -1;
	*ret = runs_find(e, n->live, rec->id);
	if (*ret)
		return 0;
	if (get_row(e, who, rec->id, &now, err) < 0)
		return -1;
	if (now.state == RUN_RUNNING) {
		now.state = RUN_LOST;
		now.exit_code = -1;
		now.ended_at = engine_now(e);
		DB (e, st)
			r = st->exec->finish(st, &now, err);
		if (r < 0) {
			store_exec_fini(&now);
			return -1;
		}
	}
	return open_ended(e, &now, ret, err);
}

static int check_session(struct engine *e, const struct caller *who, const char *session,
			 struct err *err)
{
	struct session_ref ref = { .id = session };
	struct store_session s;

	if (session_get(e, who, &ref, &s, err) < 0)
		return -1;
	store_session_fini(&s);
	return 0;
}

DEFINE_AUTO(struct store_exec *, store_exec_fini);

int run_open(struct engine *e, const struct caller *who, const char *exec_id, struct run **ret,
	     struct err *err)
{
	struct store_exec rec = { 0 };
	auto_call(store_exec_fini) struct store_exec *guard __attribute__((unused)) = &rec;
	struct run *x = NULL;

	if (get_row(e, who, exec_id, &rec, err) < 0 || check_session(e, who, rec.session, err) < 0)
		return -1;
	if (rec.state == RUN_RUNNING)
		x = find_here(e, rec.session, rec.id);
	if (rec.state == RUN_RUNNING && !x) { /* it may have ended since the row was read */
		store_exec_fini(&rec);
		memset(&rec, 0, sizeof(rec));
		if (get_row(e, who, exec_id, &rec, err) < 0)
			return -1;
	}
	if (!x && (rec.state == RUN_RUNNING ? settle_row(e, who, &rec, &x, err)
					    : open_ended(e, &rec, &x, err)) < 0)
		return -1;
	*ret = x;
	return 0;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* With live.mutex: as it is now. */
static int copy_rec(const struct command *c, struct store_exec *ret, struct err *err)
{
	struct store_exec rec = c->rec;

	rec.command = c->rec.command ? strdup(c->rec.command) : NULL;
	if (c->rec.command && !rec.command)
		return err_sys(err, ENOMEM, "command");
	if (!c->ended && c->exec) {
		rec.stdout_bytes = (int64_t)exec_end(c->exec, EXEC_OUT);
		rec.stderr_bytes = (int64_t)exec_end(c->exec, EXEC_ERR);
	}
	*ret = rec;
	return 0;
}

int run_info(struct run *x, struct store_exec *ret, struct err *err)
{
	int r;

	command_lock(x->command);
	r = copy_rec(x->command, ret, err);
	command_unlock(x->command);
	return r;
}

/* The store lags behind a little. */
static int bring_up(struct engine *e, struct live *v, struct store_exec *rec, struct err *err)
{
	auto_call(run_close) struct run *x = runs_find(e, v, rec->id);
	struct store_exec now;

	if (!x)
		return 0;
	if (run_info(x, &now, err) < 0)
		return -1;
	now.seq = rec->seq;
	store_exec_fini(rec);
	*rec = now;
	return 0;
}

int run_list(struct engine *e, const struct caller *who, const struct session_ref *session,
	     struct store_page page, struct store_exec_list *ret, struct err *err)
{
	auto_call(live_unref) struct live *v = NULL;
	struct store_exec_list l = { 0 };
	struct store_session s;
	int r = -1;

	if (session_get(e, who, session, &s, err) < 0)
		return -1;
	v = live_find(e, s.id);
	DB (e, st)
		r = st->exec->list(st, s.id, page, &l, err);
	store_session_fini(&s);
	for (size_t i = 0; r == 0 && i < l.count; i++)
		if (l.items[i].state == RUN_RUNNING)
			r = bring_up(e, v, &l.items[i], err);
	if (r < 0) {
		store_exec_list_fini(&l);
		return -1;
	}
	*ret = l;
	return 0;
}

/* ---- to the end ----------------------------------------------------------------------------- */

static int collect(struct run *x, enum exec_stream s, char **ret, size_t *ret_len,
		   uint64_t *ret_total, struct err *err)
{
	auto_free char *buf = NULL;
	uint64_t at, end, was;
	size_t size, len = 0, n = 1;

	run_range(x, s, &at, &end);
	size = (size_t)(end - at);
	buf = malloc(size + 1);
	if (!buf)
		return err_sys(err, ENOMEM, "output");
	while (n && at < end) {
		was = at;
		if (command_read(x->command, s, &at, buf + len, size - len, &n, err) < 0)
			return -1;
		if (at != was + n) { /* a child that is left overwrote it: only this is whole */
			memmove(buf, buf + len, n);
			len = 0;
		}
		len += n;
	}
	buf[len] = '\0';
	*ret = steal_ptr(&buf);
	*ret_len = len;
	*ret_total = end;
	return 0;
}

static int collect_all(struct run *x, struct exec_output *ret, struct err *err)
{
	struct exec_output o = { 0 };

	command_lock(x->command);
	o.result = x->command->result;
	command_unlock(x->command);
	if (collect(x, EXEC_OUT, &o.out, &o.out_len, &o.out_total, err) < 0 ||
	    collect(x, EXEC_ERR, &o.err, &o.err_len, &o.err_total, err) < 0) {
		exec_output_fini(&o);
		return -1;
	}
	if (o.out_len != o.out_total || o.err_len != o.err_total)
		o.result.hits |= AGENT_HIT_OUTPUT;
	*ret = o;
	return 0;
}

int run_finish(struct run *x, const void *input, size_t input_len, struct exec_output *ret,
	       struct err *err)
{
	if (input && run_feed(x, input, input_len, true, err) < 0)
		return -1;
	if (run_wait(x, -1, err) < 0)
		return -1;
	return collect_all(x, ret, err);
}

int run_all(struct engine *e, const struct caller *who, const struct session_ref *ref,
	    const struct run_want *want, const void *input, size_t input_len,
	    struct exec_output *ret, struct err *err)
{
	auto_call(run_close) struct run *x = NULL;
	struct run_want own = *want;

	own.stdin_open = input != NULL;
	own.hold = false;
	if (run_start(e, who, ref, &own, &x, NULL, err) < 0)
		return -1;
	return run_finish(x, input, input_len, ret, err);
}
