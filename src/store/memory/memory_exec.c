/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

/* ---- commands ------------------------------------------------------------------------------ */

static struct store_exec *by_id(struct mem *m, const char *id)
{
	return mem_first(&m->exec, MEM_MATCH(MEM_IS(store_exec, id, id)));
}

static int exec_record(struct store *st, struct store_exec *e, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_exec(e, err) < 0)
		return -1;
	if (by_id(m, e->id))
		return err_set(err, ERR_CONFLICT, "exec %s is there already", e->id);
	return mem_add_numbered(m, &m->exec, e, &e->seq, err) ? 0 : -1;
}

static int exec_get(struct store *st, const char *id, struct store_exec *ret, struct err *err)
{
	return mem_give(&mem_of(st)->exec, by_id(mem_of(st), id), ret, "exec", id, err);
}

static int finish_exec(struct store *st, const struct store_exec *e, struct err *err)
{
	struct store_exec *row = by_id(mem_of(st), e->id);

	if (check_exec(e, err) < 0)
		return -1;
	if (!row)
		return err_set(err, ERR_NOT_FOUND, "there is no exec %s", e->id);
	if (row->state != 0)
		return err_set(err, ERR_CONFLICT, "exec %s has ended already", e->id);
	row->state = e->state;
	row->timed_out = e->timed_out;
	row->oom_killed = e->oom_killed;
	row->truncated = e->truncated;
	row->exit_code = e->exit_code;
	row->signal = e->signal;
	row->ended_at = e->ended_at;
	row->stdout_bytes = e->stdout_bytes;
	row->stderr_bytes = e->stderr_bytes;
	row->cpu_ms = e->cpu_ms;
	row->max_rss_bytes = e->max_rss_bytes;
	row->hits = e->hits;
	mem_of(st)->changes++;
	return 0;
}

static int exec_finish_all(struct store *st, const char *session, uint8_t state, int64_t at,
			   struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_exec *row;

	(void)err;
	for (size_t i = 0;
	     (row = mem_find(&m->exec, &i, MEM_MATCH(MEM_IS(store_exec, session, session)))); i++)
		if (row->state == 0) {
			row->state = state;
			row->ended_at = at;
			m->changes++;
		}
	return 0;
}

static int list_execs(struct store *st, const char *session, struct store_page page,
		      struct store_exec_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_exec_list l = { 0 };
	void *items;

	if (mem_page(m, &m->exec, page, MEM_MATCH(MEM_IS(store_exec, session, session)), NULL, NULL,
		     &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

static int exec_prune(struct store *st, int64_t before, struct err *err)
{
	struct mem *m = mem_of(st);

	(void)err;
	for (size_t i = m->exec.count; i-- > 0;) {
		const struct store_exec *e = &((struct store_exec *)m->exec.rows)[i];

		if (e->state != 0 && e->ended_at < before)
			mem_drop(m, &m->exec, i);
	}
	return 0;
}

const struct store_exec_ops memory_exec_ops = {
	.record = exec_record,
	.finish = finish_exec,
	.finish_all = exec_finish_all,
	.get = exec_get,
	.list = list_execs,
	.prune = exec_prune,
};

/* ---- keys of repeated requests ------------------------------------------------------------- */

static const struct store_once *once_like(struct mem *m, const struct store_once *o)
{
	return mem_first(&m->once, MEM_MATCH(MEM_IS(store_once, tenant, o->tenant),
					     MEM_IS(store_once, scope, o->scope),
					     MEM_IS(store_once, key, o->key)));
}

static int once_find(struct store *st, const struct store_once *o, struct store_once *ret,
		     struct err *err)
{
	const struct store_once *first = once_like(mem_of(st), o);

	if (!first)
		return err_set(err, ERR_NOT_FOUND, "no use of %s", o->key);
	*ret = *first;
	return 0;
}

static int once_claim(struct store *st, const struct store_once *o, struct store_once *ret_first,
		      struct err *err)
{
	struct mem *m = mem_of(st);
	const struct store_once *first;

	if (check_once(o, err) < 0)
		return -1;
	first = once_like(m, o);
	if (!first)
		return mem_add(m, &m->once, o, err) ? 0 : -1;
	if (ret_first)
		*ret_first = *first;
	return err_set(err, ERR_CONFLICT, "%s was used already: %s", o->key, first->target);
}

static int once_prune(struct store *st, int64_t before, struct err *err)
{
	struct mem *m = mem_of(st);

	(void)err;
	for (size_t i = m->once.count; i-- > 0;)
		if (((struct store_once *)m->once.rows)[i].created_at < before)
			mem_drop(m, &m->once, i);
	return 0;
}

const struct store_once_ops memory_once_ops = {
	.claim = once_claim,
	.find = once_find,
	.prune = once_prune,
};
