/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory/memory.h"

#include <errno.h>
#include <string.h>

#include "store/record_check.h"

static const struct columns shape_mem_binding = { .size = sizeof(struct mem_binding) };
static const struct columns shape_mem_hold = { .size = sizeof(struct mem_hold) };
static const struct columns shape_mem_files = { .size = sizeof(struct mem_files) };
static const struct columns shape_mem_cpu = { .size = sizeof(struct mem_cpu) };

/* ---- rows ---------------------------------------------------------------------------------- */

static char *row_at(const struct mem_table *t, size_t i)
{
	return t->rows + i * t->shape->size;
}

static int64_t number_of(const void *row)
{
	int64_t seq;

	memcpy(&seq, row, sizeof(seq));
	return seq;
}

static bool matches(const char *row, const struct mem_match *match, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (match[i].value && strcmp(row + match[i].offset, match[i].value) != 0)
			return false;
	return true;
}

void *mem_find(const struct mem_table *t, size_t *at, const struct mem_match *match, size_t n)
{
	for (; *at < t->count; ++*at)
		if (matches(row_at(t, *at), match, n))
			return row_at(t, *at);
	return NULL;
}

void *mem_first(const struct mem_table *t, const struct mem_match *match, size_t n)
{
	size_t at = 0;

	return mem_find(t, &at, match, n);
}

int64_t mem_count(const struct mem_table *t, const struct mem_match *match, size_t n)
{
	int64_t count = 0;

	for (size_t at = 0; mem_find(t, &at, match, n); at++)
		count++;
	return count;
}

void *mem_add(struct mem *m, struct mem_table *t, const void *record, struct err *err)
{
	char *grown = columns_grow(t->rows, t->count, t->shape->size);

	if (!grown) {
		err_sys(err, ENOMEM, "memory store");
		return NULL;
	}
	t->rows = grown;
	if (columns_copy(t->shape, record, row_at(t, t->count), err) < 0)
		return NULL;
	m->changes++;
	return row_at(t, t->count++);
}

void *mem_add_numbered(struct mem *m, struct mem_table *t, const void *record, int64_t *ret_seq,
		       struct err *err)
{
	char *row = mem_add(m, t, record, err);

	if (!row)
		return NULL;
	t->seq++;
	memcpy(row, &t->seq, sizeof(t->seq));
	*ret_seq = t->seq;
	return row;
}

void mem_drop(struct mem *m, struct mem_table *t, size_t at)
{
	size_t size = t->shape->size;

	columns_fini(t->shape, row_at(t, at));
	t->count--;
	memmove(row_at(t, at), row_at(t, at) + size, (t->count - at) * size);
	m->changes++;
}

size_t mem_drop_all(struct mem *m, struct mem_table *t, const struct mem_match *match, size_t n)
{
	size_t dropped = 0;

	for (size_t at = 0; mem_find(t, &at, match, n); dropped++)
		mem_drop(m, t, at);
	return dropped;
}

void mem_cut(struct mem_table *t, size_t count)
{
	while (t->count > count)
		columns_fini(t->shape, row_at(t, --t->count));
}

int mem_give(const struct mem_table *t, const void *row, void *ret, const char *what,
	     const char *name, struct err *err)
{
	if (!row)
		return err_set(err, ERR_NOT_FOUND, "there is no %s %s", what, name);
	return columns_copy(t->shape, row, ret, err);
}

/* ---- lists --------------------------------------------------------------------------------- */

static int add_copy(const struct mem_table *t, const void *row, char **items, size_t *count,
		    struct err *err)
{
	char *grown = columns_grow(*items, *count, t->shape->size);

	if (!grown)
		return err_sys(err, ENOMEM, "a list of %zu records", *count);
	*items = grown;
	if (columns_copy(t->shape, row, *items + *count * t->shape->size, err) < 0)
		return -1;
	++*count;
	return 0;
}

int mem_page(struct mem *m, const struct mem_table *t, struct store_page page,
	     const struct mem_match *match, size_t n, mem_filter *filter, const void *arg,
	     void **ret_items, size_t *ret_count, int64_t *ret_next, struct err *err)
{
	char *items = NULL, *row;
	size_t count = 0;
	int64_t last = 0, next = 0;

	if (check_page(page, err) < 0)
		return -1;
	for (size_t at = 0; (row = mem_find(t, &at, match, n)); at++) {
		if (number_of(row) <= page.after || (filter && !filter(m, row, arg)))
			continue;
		if (count == page.limit) {
			next = last;
			break;
		}
		if (add_copy(t, row, &items, &count, err) < 0) {
			while (count > 0)
				columns_fini(t->shape, items + --count * t->shape->size);
			free(items);
			return -1;
		}
		last = number_of(row);
	}
	*ret_items = items;
	*ret_count = count;
	*ret_next = next;
	return 0;
}

/* ---- the store ----------------------------------------------------------------------------- */

static void relax(struct store *st, bool on)
{
	(void)st, (void)on;
}

static int64_t changes(struct store *st)
{
	return mem_of(st)->changes;
}

static void close_store(struct store *st)
{
	struct mem *m = mem_of(st);
	struct mem_table *const all[] = {
		&m->session, &m->binding,  &m->tombstone, &m->tombstone_key, &m->layer,
		&m->hold,    &m->snapshot, &m->exec,	  &m->once,	     &m->event,
		&m->project, &m->fragment, &m->user,	  &m->member,	     &m->key,
		&m->policy,  &m->quota,	   &m->cpu,	  &m->files,	     &m->environment,
	};

	for (size_t i = 0; i < m->files.count; i++)
		store_file_list_fini(&((struct mem_files *)m->files.rows)[i].list);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		mem_cut(all[i], 0);
		free(all[i]->rows);
	}
	free(m);
}

static bool reserve(struct store *st, bool keep)
{
	(void)st;
	return keep;
}

static const struct mem empty = {
	.store = {
		.session = &memory_session_ops,
		.tombstone = &memory_tombstone_ops,
		.layer = &memory_layer_ops,
		.snapshot = &memory_snapshot_ops,
		.exec = &memory_exec_ops,
		.once = &memory_once_ops,
		.event = &memory_event_ops,
		.project = &memory_project_ops,
		.fragment = &memory_fragment_ops,
		.user = &memory_user_ops,
		.team = &memory_team_ops,
		.key = &memory_key_ops,
		.policy = &memory_policy_ops,
		.quota = &memory_quota_ops,
		.environment = &memory_environment_ops,
		.changes = changes,
		.relax = relax,
		.reserve = reserve,
		.close = close_store,
	},
	.session = { &shape_session },
	.binding = { &shape_mem_binding },
	.tombstone = { &shape_tombstone },
	.tombstone_key = { &shape_mem_binding },
	.layer = { &shape_layer },
	.hold = { &shape_mem_hold },
	.snapshot = { &shape_snapshot },
	.exec = { &shape_exec },
	.once = { &shape_once },
	.event = { &shape_event },
	.project = { &shape_project },
	.fragment = { &shape_fragment },
	.files = { &shape_mem_files },
	.user = { &shape_user },
	.member = { &shape_member },
	.key = { &shape_key },
	.policy = { &shape_policy },
	.quota = { &shape_quota },
	.cpu = { &shape_mem_cpu },
	.environment = { &shape_environment },
};

int store_open_memory(struct store **ret, struct err *err)
{
	struct mem *m = malloc(sizeof(*m));

	if (!m)
		return err_sys(err, ENOMEM, "memory store");
	*m = empty;
	*ret = &m->store;
	return 0;
}
