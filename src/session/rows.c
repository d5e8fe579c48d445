/* SPDX-License-Identifier: Apache-2.0 */
#include "session/rows.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "engine/session_state.h"
#include "session/session.h"
#include "wire/enforcement.h"

void session_row_list_fini(struct session_row_list *l)
{
	free(l->items);
	*l = (struct session_row_list){ 0 };
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Deadlines in memory are ahead of those in the store. */
static void refresh_row(struct session *n, void *arg)
{
	struct session_row *r = arg;
	const struct store_session *s = &n->rec;

	memcpy(r->rec.sandbox, s->sandbox, sizeof(r->rec.sandbox));
	r->rec.state = s->state;
	r->rec.runtime = s->runtime;
	r->rec.paused = s->paused;
	r->rec.last_activity_at = s->last_activity_at;
	r->rec.hibernate_at = s->hibernate_at;
	r->rec.expires_at = s->expires_at;
	r->rec.due_at = s->due_at;
	r->rec.cause = s->cause;
	r->usage = n->sample;
	r->has_usage = n->sample.at && strcmp(n->sample.sandbox, s->sandbox) == 0;
}

/* The rows from `begin` to `end` are shown; the others only count in the sums. */
struct window {
	size_t begin, end;
	int64_t fresh_ms; /* how old a measurement of those may be */
};

static bool is_due(struct engine *e, const struct session_row_list *l, size_t i,
		   const struct window *w)
{
	const struct session_row *r = &l->items[i];
	int64_t most = i >= w->begin && i < w->end ? w->fresh_ms : USAGE_SUMS_MS;

	return r->rec.runtime == SESSION_RUNTIME_LIVE &&
	       (!r->has_usage || engine_now(e) - r->usage.at >= most);
}

/* A sandbox that ended meanwhile keeps its row, without usage. */
static void measure_rows(struct engine *e, struct session_row_list *l, const struct window *w)
{
	auto_free struct usage_request *due = calloc(l->count ? l->count : 1, sizeof(*due));
	auto_free size_t *at = calloc(l->count ? l->count : 1, sizeof(*at));
	size_t n = 0;

	for (size_t i = 0; due && at && i < l->count; i++) {
		struct session_row *r = &l->items[i];

		if (!is_due(e, l, i, w)) {
			r->has_usage = r->has_usage && r->rec.runtime == SESSION_RUNTIME_LIVE;
			continue;
		}
		if (!r->has_usage)
			r->usage = (struct usage_sample){ 0 };
		memcpy(r->usage.sandbox, r->rec.sandbox, sizeof(r->usage.sandbox));
		at[n] = i;
		due[n++] = (struct usage_request){ .session = r->rec.id, .sample = &r->usage };
	}
	usage_measure(e, due, n);
	for (size_t i = 0; i < n; i++)
		l->items[at[i]].has_usage = due[i].measured;
}

static void measure(struct engine *e, struct session_row_list *l, struct window w,
		    int64_t sample_ms)
{
	struct timespec ts = { .tv_sec = sample_ms / 1000, .tv_nsec = sample_ms % 1000 * 1000000L };
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_BRIEF);

	for (size_t i = 0; i < l->count; i++)
		session_with(e, l->items[i].rec.id, refresh_row, &l->items[i]);
	w.fresh_ms = sample_ms ? 0 : USAGE_FRESH_MS;
	measure_rows(e, l, &w);
	if (sample_ms) {
		nanosleep(&ts, NULL);
		measure_rows(e, l, &w);
	}
	(void)keeper_conn_set_patience(was);
}

bool session_limits_enforced(struct engine *e)
{
	struct enforcement f;

	keeper_conn_enforcement(e, &f);
	return !enforcement_problem(&f, KEEPER_STORE_DISK, "memory_bytes") &&
	       !enforcement_problem(&f, KEEPER_STORE_DISK, "disk_bytes");
}

uint64_t session_row_disk(const struct session_row *r)
{
	if (r->rec.runtime != SESSION_RUNTIME_LIVE)
		return (uint64_t)r->rec.layer_bytes;
	return r->has_usage && r->usage.stats.disk_bytes != UINT64_MAX ? r->usage.stats.disk_bytes
								       : 0;
}

const char *session_row_next(const struct store_row *r, int64_t *ret_at)
{
	static const char *const ends[] = { "hibernate", "destroy" };
	/* a little before it expires, as session_due_at() says */
	int64_t expiry = r->expires_at ? r->expires_at - SESSION_EXPIRY_BUFFER_MS : 0;
	bool idle = r->hibernate_at && (!expiry || r->hibernate_at <= expiry);

	if (r->state == SESSION_ACTIVE && (r->hibernate_at || expiry)) {
		*ret_at = idle ? r->hibernate_at : expiry;
		return ends[(idle ? r->on_idle : r->on_expire) == SESSION_END_DESTROY];
	}
	if (r->due_at && (r->state == SESSION_NONE || r->state == SESSION_HIBERNATED ||
			  r->state == SESSION_FAILED)) {
		*ret_at = r->due_at;
		return "destroy";
	}
	return NULL;
}

/* ---- sorting --------------------------------------------------------------------------------- */

struct sorting {
	enum session_row_sort by;
	bool descending;
};

static uint64_t sort_value(const struct session_row *r, enum session_row_sort by)
{
	if (by == SESSION_SORT_DISK)
		return session_row_disk(r);
	if (!r->has_usage)
		return 0;
	if (by == SESSION_SORT_MEMORY)
		return r->usage.stats.memory_bytes;
	return r->usage.cpu_milli > 0 ? (uint64_t)r->usage.cpu_milli : 0;
}

/* Equal ones by memory and then by age, so that rows keep their places. */
static int by_use(const void *x, const void *y, void *arg)
{
	const struct session_row *a = x, *b = y;
	const struct sorting *s = arg;
	uint64_t v = sort_value(a, s->by), w = sort_value(b, s->by);

	if (v == w) {
		v = sort_value(a, SESSION_SORT_MEMORY);
		w = sort_value(b, SESSION_SORT_MEMORY);
	}
	if (v == w)
		return a->rec.seq < b->rec.seq ? -1 : a->rec.seq > b->rec.seq;
	return (v < w ? -1 : 1) * (s->descending ? -1 : 1);
}

/* Keeps `limit` rows from `offset` on. */
static void cut(struct session_row_list *l, unsigned offset, unsigned limit)
{
	size_t skip = offset < l->count ? offset : l->count;

	memmove(l->items, l->items + skip, (l->count - skip) * sizeof(*l->items));
	l->count -= skip;
	l->more = l->count > limit;
	if (l->more)
		l->count = limit;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_rows(struct engine *e, const struct store_row_query *q, struct session_row_list *l,
		     struct err *err)
{
	struct store_row_list rows = { 0 };
	int r = -1;

	WITH_STORE(e, st)
	{
		r = store_session_count_states(st, q, l->states, err);
		if (r == 0)
			r = store_session_rows(st, q, &rows, err);
	}
	if (r < 0)
		return -1;
	l->items = calloc(rows.count ? rows.count : 1, sizeof(*l->items));
	if (!l->items) {
		store_row_list_fini(&rows);
		return err_sys(err, ENOMEM, "rows");
	}
	for (size_t i = 0; i < rows.count; i++)
		l->items[l->count++].rec = rows.items[i]; /* a row owns nothing */
	store_row_list_fini(&rows);
	return 0;
}

static void add_up(struct session_row_list *l, uint64_t states)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].has_usage)
			l->memory_bytes += l->items[i].usage.stats.memory_bytes;
		l->disk_bytes += session_row_disk(&l->items[i]);
	}
	l->states[SESSION_DESTROYING] = 0;
	for (int s = 0; s < SESSION_STATES; s++)
		if (states & SM_BIT(s))
			l->total += l->states[s];
	l->has_sums = (int64_t)l->count >= l->total;
}

/* To sort by usage, all rows must be measured. */
static struct window find_window(const struct session_row_query *q, bool page)
{
	return page ? (struct window){ .begin = q->rows.offset,
				       .end = (size_t)q->rows.offset + q->rows.limit }
		    : (struct window){ .end = SIZE_MAX };
}

/* The sums are over all rows, so the page is cut out of the first STORE_ROWS_MAX here; only pages
 * behind them are cut by the store. */
int session_rows(struct engine *e, const struct session_row_query *q, struct session_row_list *ret,
		 struct err *err)
{
	bool by_usage = q->sort >= SESSION_SORT_MEMORY;
	struct sorting how = { q->sort, q->rows.descending };
	struct session_row_list l = { 0 };
	struct store_row_query rows = q->rows;
	bool far = !by_usage && (uint64_t)rows.offset + rows.limit >= STORE_ROWS_MAX;

	if (!rows.by.states)
		rows.by.states = (SM_BIT(SESSION_STATES) - 1) & ~SM_BIT(SESSION_DESTROYING);
	rows.order = by_usage			      ? STORE_ORDER_LIVE
		     : q->sort == SESSION_SORT_ACTIVE ? STORE_ORDER_ACTIVE
						      : STORE_ORDER_CREATED;
	rows.descending = by_usage || q->rows.descending;
	if (!far) {
		rows.offset = 0;
		rows.limit = STORE_ROWS_MAX;
	}
	if (read_rows(e, &rows, &l, err) < 0)
		return -1;
	measure(e, &l, find_window(q, !by_usage && !far), q->sample_ms);
	add_up(&l, rows.by.states);
	if (by_usage && l.count > 1)
		qsort_r(l.items, l.count, sizeof(*l.items), by_use, &how);
	if (far)
		l.more = rows.offset + l.count < (uint64_t)l.total;
	else
		cut(&l, q->rows.offset, q->rows.limit);
	*ret = l;
	return 0;
}
