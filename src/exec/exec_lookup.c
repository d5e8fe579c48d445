/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and listing commands that were started before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec_lookup.h"
#include "machine/exec_output_file.h"
#include "machine/exec_reason.h"
#include "session/session.h"
#include "sandbox/guest_exec_log.h"
#include "machine/exec_record_output.h"

/* ---- opening -------------------------------------------------------------------------------- */

static int get_row(struct engine *e, const struct caller *caller, const char *id,
		   struct store_exec *ret, struct err *err)
{
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };

	if (strlen(id) >= STORE_ID)
		return err_set(err, ERR_NOT_FOUND, "no such command");
	if (STORE_CALL(e, store_exec_get, id, &rec, err) < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	if (!*rec.id || strcmp(rec.tenant, caller->tenant) != 0)
		return err_set(err, ERR_NOT_FOUND, "no command %s", id);
	*ret = steal_struct(&rec);
	return 0;
}

/* Opens a command from its row and its output files. Steals what rec owns. */
static int open_ended(struct engine *e, struct store_exec *rec, struct exec_handle **ret,
		      struct err *err)
{
	struct exec_record *c = exec_record_new(e, NULL, rec, err);

	if (!c)
		return -1;
	c->started = c->ended = true;
	c->row = EXEC_ROW_WRITTEN;
	c->result = (struct guest_exec_result){
		.code = (int)c->rec.exit_code,
		.signal = (int)c->rec.signal,
		.hits = (unsigned)c->rec.hits | (c->rec.truncated ? AGENT_HIT_OUTPUT : 0u),
		.duration_us = (uint64_t)(c->rec.ended_at - c->rec.started_at) * 1000,
		.cpu_us = (uint64_t)c->rec.cpu_ms * 1000,
		.max_rss_bytes = (uint64_t)c->rec.max_rss_bytes,
	};
	exec_output_open(c);
	*ret = c->own_handle;
	return 0;
}

/* The row says that the command runs, but no record of it is in memory. With the session locked and
 * reconciled there is none: mark the command as lost. */
static int reconcile_row(struct engine *e, const struct caller *caller, struct store_exec *rec,
			 struct exec_handle **ret, struct err *err)
{
	struct session_ref ref = { .id = rec->session };
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(store_exec_fini) struct store_exec now = { 0 };

	if (session_lock_reconciled(e, caller, &ref, 0, &n, err) < 0)
		return -1;
	*ret = exec_record_find(e, n->machine, rec->id);
	if (*ret)
		return 0;
	if (get_row(e, caller, rec->id, &now, err) < 0)
		return -1;
	if (now.state == EXEC_RUNNING) {
		now.state = EXEC_LOST;
		now.exit_code = -1;
		now.ended_at = engine_now(e);
		exec_reason_set(&now, "its result is unknown: its sandbox has no record of it");
		if (STORE_CALL(e, store_exec_finish, &now, err) < 0)
			return -1;
	}
	return open_ended(e, &now, ret, err);
}

int exec_open(struct engine *e, const struct caller *caller, const char *exec_id,
	      struct exec_handle **ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };
	auto_call(machine_unref) struct machine *v = NULL;
	struct session_ref ref = { .id = rec.session };
	struct exec_handle *x = NULL;

	if (get_row(e, caller, exec_id, &rec, err) < 0 || session_get(e, caller, &ref, &s, err) < 0)
		return -1;
	if (rec.state == EXEC_RUNNING) {
		v = session_find_machine(e, rec.session);
		x = exec_record_find(e, v, rec.id);
	}
	if (rec.state == EXEC_RUNNING && !x) { /* it may have ended since then */
		store_exec_fini(&rec);
		memset(&rec, 0, sizeof(rec));
		if (get_row(e, caller, exec_id, &rec, err) < 0)
			return -1;
	}
	if (!x && (rec.state == EXEC_RUNNING ? reconcile_row(e, caller, &rec, &x, err)
					     : open_ended(e, &rec, &x, err)) < 0)
		return -1;
	*ret = x;
	return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Call with machine.mutex held. Copies the current row. */
static int copy_row(const struct exec_record *c, struct store_exec *ret, struct err *err)
{
	struct store_exec rec = c->rec;

	rec.command = c->rec.command ? strdup(c->rec.command) : NULL;
	if (c->rec.command && !rec.command)
		return err_sys(err, ENOMEM, "command");
	if (!c->ended && c->exec) {
		rec.stdout_bytes = (int64_t)guest_exec_end(c->exec, GUEST_EXEC_OUT);
		rec.stderr_bytes = (int64_t)guest_exec_end(c->exec, GUEST_EXEC_ERR);
	}
	*ret = rec;
	return 0;
}

int exec_get_info(struct exec_handle *x, struct store_exec *ret, struct err *err)
{
	EXEC_RECORD_GUARD(x->record);
	return copy_row(x->record, ret, err);
}

/* The store may be behind the record in memory. */
static int refresh_row(struct engine *e, struct machine *v, struct store_exec *rec, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = exec_record_find(e, v, rec->id);
	struct store_exec now;

	if (!x)
		return 0;
	if (exec_get_info(x, &now, err) < 0)
		return -1;
	now.seq = rec->seq;
	store_exec_fini(rec);
	*rec = now;
	return 0;
}

int exec_list(struct engine *e, const struct caller *caller, const struct session_ref *session,
	      struct store_page page, struct store_exec_list *ret, struct err *err)
{
	auto_call(machine_unref) struct machine *v = NULL;
	auto_fini(store_exec_list_fini) struct store_exec_list l = { 0 };
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (session_get(e, caller, session, &s, err) < 0)
		return -1;
	v = session_find_machine(e, s.id);
	if (STORE_CALL(e, store_exec_list, s.id, page, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		if (l.items[i].state == EXEC_RUNNING && refresh_row(e, v, &l.items[i], err) < 0)
			return -1;
	*ret = steal_struct(&l);
	return 0;
}

/* ---- output --------------------------------------------------------------------------------- */

static int collect_stream(struct exec_handle *x, enum guest_exec_stream s, char **ret,
			  size_t *ret_len, uint64_t *ret_total, struct err *err)
{
	auto_free char *buf = NULL;
	uint64_t at, end, was;
	size_t size, len = 0, n = 1;

	exec_output_range(x, s, &at, &end);
	size = (size_t)(end - at);
	buf = malloc(size + 1);
	if (!buf)
		return err_sys(err, ENOMEM, "output");
	while (n && at < end) {
		was = at;
		if (exec_record_output_read(x->record, s, &at, buf + len, size - len, &n, err) < 0)
			return -1;
		if (at != was + n) { /* a process that is left overwrote it: start again */
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

static int collect_output(struct exec_handle *x, struct guest_exec_output *ret, struct err *err)
{
	auto_fini(guest_exec_output_fini) struct guest_exec_output o = { 0 };

	exec_record_lock(x->record);
	o.result = x->record->result;
	exec_record_unlock(x->record);
	if (collect_stream(x, GUEST_EXEC_OUT, &o.out, &o.out_len, &o.out_total, err) < 0 ||
	    collect_stream(x, GUEST_EXEC_ERR, &o.err, &o.err_len, &o.err_total, err) < 0)
		return -1;
	if (o.out_len != o.out_total || o.err_len != o.err_total)
		o.result.hits |= AGENT_HIT_OUTPUT;
	*ret = steal_struct(&o);
	return 0;
}

int exec_finish(struct exec_handle *x, const void *input, size_t input_len,
		struct guest_exec_output *ret, struct err *err)
{
	if ((input && exec_feed_stdin(x, input, input_len, true, err) < 0) ||
	    exec_wait(x, -1, err) < 0)
		return -1;
	return collect_output(x, ret, err);
}
