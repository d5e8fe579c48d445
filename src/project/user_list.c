/* SPDX-License-Identifier: Apache-2.0 */
#include "project/user_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admit/quota.h"
#include "engine/internal.h"
#include "engine/session_state.h"
#include "session/rows.h"

enum { DAY_MS = 24 * 3600 * 1000 };

void user_use_list_fini(struct user_use_list *l)
{
	free(l->items);
	*l = (struct user_use_list){ 0 };
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct user_use *)a)->rec.id, ((const struct user_use *)b)->rec.id);
}

static int read_users(struct engine *e, const struct caller *caller,
		      const struct user_list_query *q, struct user_use_list *l, struct err *err)
{
	struct store_user_query by = { .tenant = caller->tenant,
				       .id = q->id,
				       .text = q->text,
				       .states = quota_active_states(),
				       .live = SESSION_LIVE_STATES,
				       .since = engine_now(e) - DAY_MS };
	struct store_user_row_list rows = { 0 };

	if (STORE_CALL(e, store_user_rows, &by, &rows, &l->total, err) < 0)
		return -1;
	l->items = calloc(rows.count ? rows.count : 1, sizeof(*l->items));
	if (!l->items) {
		store_user_row_list_fini(&rows);
		return err_sys(err, ENOMEM, "users");
	}
	for (size_t i = 0; i < rows.count; i++) {
		struct user_use *u = &l->items[l->count++];

		u->rec = rows.items[i]; /* a row owns nothing */
		u->disk_bytes = (uint64_t)u->rec.layer_bytes;
		u->cpu_day_ms = u->rec.cpu_day_ms;
	}
	store_user_row_list_fini(&rows);
	return 0;
}

/* Adds what the running sandboxes use. The users are sorted by id. */
static int add_running(struct engine *e, const struct caller *caller, struct user_use_list *l,
		       struct err *err)
{
	struct session_row_query q = { .rows = { .by = { .tenant = caller->tenant,
							 .states = SESSION_LIVE_STATES },
						 .limit = STORE_ROWS_MAX },
				       .sort = SESSION_SORT_ACTIVE };
	struct session_row_list rows = { 0 };

	q.rows.descending = true;
	if (session_rows(e, &q, &rows, err) < 0)
		return -1;
	for (size_t i = 0; i < rows.count; i++) {
		const struct session_row *r = &rows.items[i];
		struct user_use key = { 0 }, *u;

		memcpy(key.rec.id, r->rec.user, sizeof(key.rec.id));
		u = *r->rec.user ? bsearch(&key, l->items, l->count, sizeof(*u), compare_ids)
				 : NULL;
		if (!u || r->rec.runtime != SESSION_RUNTIME_LIVE)
			continue;
		u->running++;
		u->disk_bytes += session_row_disk(r);
		if (r->has_usage) {
			u->memory_bytes += r->usage.stats.memory_bytes;
			u->cpu_day_ms += (int64_t)(r->usage.stats.cpu_us / 1000);
		}
	}
	session_row_list_fini(&rows);
	return 0;
}

static int64_t sort_value(const struct user_use *u, enum user_sort by)
{
	switch (by) {
	case USER_SORT_DISK:
		return (int64_t)u->disk_bytes;
	case USER_SORT_MEMORY:
		return (int64_t)u->memory_bytes;
	case USER_SORT_CPU:
		return u->cpu_day_ms;
	case USER_SORT_ACTIVE:
		return u->rec.last_activity_at;
	case USER_SORT_ID:
		break;
	}
	return 0;
}

static int by_use(const void *x, const void *y, void *arg)
{
	const struct user_list_query *q = arg;
	int64_t v = sort_value(x, q->sort), w = sort_value(y, q->sort);

	if (v == w)
		return compare_ids(x, y) * (q->sort == USER_SORT_ID && !q->ascending ? -1 : 1);
	return (v < w) == q->ascending ? -1 : 1;
}

int user_list(struct engine *e, const struct caller *caller, const struct user_list_query *q,
	      struct user_use_list *ret, struct err *err)
{
	auto_fini(user_use_list_fini) struct user_use_list l = { 0 };
	struct user_list_query how = *q;

	if (read_users(e, caller, q, &l, err) < 0)
		return -1;
	if (l.count > 1)
		qsort(l.items, l.count, sizeof(*l.items), compare_ids);
	if (add_running(e, caller, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		l.disk_bytes += l.items[i].disk_bytes;
	if (l.count > 1)
		qsort_r(l.items, l.count, sizeof(*l.items), by_use, &how);
	if (l.count > q->limit)
		l.count = q->limit;
	*ret = steal_struct(&l);
	return 0;
}
