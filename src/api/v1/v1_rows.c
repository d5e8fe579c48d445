/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/sessions?view=row: short records with what the sandboxes use now. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "api/core/internal.h"
#include "api/v1/v1_rows.h"

enum { TEXT_MAX = 256, SAMPLE_MAX_MS = 5000 };

bool v1_is_row_option(const char *name)
{
	static const char *const names[] = { "q", "sort", "order", "sample_ms" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* ---- query ----------------------------------------------------------------------------------- */

static int parse_sort(struct api_call *c, struct session_row_query *q, struct err *err)
{
	static const char *const names[] = {
		[SESSION_SORT_CREATED] = "created", [SESSION_SORT_ACTIVE] = "active",
		[SESSION_SORT_MEMORY] = "memory",   [SESSION_SORT_CPU] = "cpu",
		[SESSION_SORT_DISK] = "disk",
	};
	const char *sort = http_query(c->rq, "sort"), *order = http_query(c->rq, "order");
	unsigned i = 0;

	while (sort && i < ARRAY_LEN(names) && strcmp(sort, names[i]) != 0)
		i++;
	if (i == ARRAY_LEN(names))
		return err_set(err, ERR_INVALID,
			       "sort: must be created, active, memory, cpu or disk");
	if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
		return err_set(err, ERR_INVALID, "order: must be \"asc\" or \"desc\"");
	q->sort = (enum session_row_sort)i;
	/* the largest and the latest first; by age as the plain list */
	q->rows.descending = order ? *order == 'd' : i != SESSION_SORT_CREATED;
	return 0;
}

static int parse_query(struct api_call *c, struct session_row_query *q, struct err *err)
{
	int64_t limit = 100, offset = 0;
	const char *text = http_query(c->rq, "q");

	if (api_query_int(c, "limit", 1, STORE_ROWS_MAX, &limit, err) < 0 ||
	    api_query_int(c, "after", 0, INT32_MAX, &offset, err) < 0 ||
	    api_query_int(c, "sample_ms", 0, SAMPLE_MAX_MS, &q->sample_ms, err) < 0 ||
	    parse_sort(c, q, err) < 0)
		return -1;
	if (text && (!*text || strlen(text) > TEXT_MAX))
		return err_set(err, ERR_INVALID, "q: must have 1 to %d bytes", TEXT_MAX);
	q->rows.text = text;
	q->rows.id = *c->session ? c->session : NULL;
	q->rows.limit = (unsigned)limit;
	q->rows.offset = (unsigned)offset;
	return 0;
}

/* ---- response -------------------------------------------------------------------------------- */

static void put_percent(struct json_out *j, const char *key, int64_t milli)
{
	char text[32];

	if (milli < 0) {
		json_out_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "%lld.%lld", (long long)milli / 10, (long long)milli % 10);
	json_out_raw(j, key, text, strlen(text));
}

/* What is not known is null: a sandbox that was not measured, or has no cgroup. */
static void put_usage(struct json_out *j, const struct session_row *r, bool enforced)
{
	bool live = r->rec.runtime == SESSION_RUNTIME_LIVE, known = !live || r->has_usage;
	const struct keeper_stats *s = &r->usage.stats;
	bool has_disk = !live || (r->has_usage && s->disk_bytes != UINT64_MAX);

	json_out_object(j, "usage");
	json_out_i64_if(j, "memory", known, live ? (int64_t)s->memory_bytes : 0);
	json_out_i64(j, "memory_limit", r->rec.memory_bytes);
	put_percent(j, "cpu_pct", live ? (r->has_usage ? r->usage.cpu_milli : -1) : 0);
	json_out_i64_if(j, "disk", has_disk, (int64_t)session_row_disk(r));
	json_out_i64(j, "disk_limit", r->rec.disk_bytes);
	json_out_i64_if(j, "pids", known, live ? (int64_t)s->pids : 0);
	json_out_i64_if(j, "at", r->has_usage, r->usage.at);
	json_out_bool(j, "enforced", enforced);
	json_out_end(j);
}

static void put_row(struct json_out *j, const struct session_row *r, bool enforced)
{
	const struct store_row *s = &r->rec;
	int64_t at = 0;
	const char *next = session_row_next(s, &at);

	json_out_object(j, NULL);
	json_out_str(j, "id", s->id);
	json_out_str(j, "tenant", s->tenant);
	json_out_text(j, "key", s->key);
	json_out_text(j, "user", s->user);
	json_out_text(j, "project", s->project);
	json_out_str(j, "template", s->template);
	json_out_str(j, "state", state_machine_name(&session_states, s->state));
	json_out_bool(j, "paused", s->paused);
	json_out_i64(j, "created_at", s->created_at);
	json_out_i64_if(j, "active_at", s->last_activity_at, s->last_activity_at);
	if (next) {
		json_out_object(j, "next");
		json_out_str(j, "what", next);
		json_out_i64(j, "at", at);
		json_out_end(j);
	} else {
		json_out_null(j, "next");
	}
	api_put_cause(j, "cause", &s->cause);
	put_usage(j, r, enforced);
	json_out_end(j);
}

static void put_sums(struct json_out *j, const struct session_row_list *l)
{
	json_out_i64(j, "total", l->total);
	json_out_object(j, "counts");
	for (int s = 0; s < SESSION_STATES; s++)
		if (l->states[s])
			json_out_i64(j, state_machine_name(&session_states, s), l->states[s]);
	json_out_end(j);
	if (!l->has_sums) {
		json_out_null(j, "totals");
		return;
	}
	json_out_object(j, "totals");
	json_out_u64(j, "memory", l->memory_bytes);
	json_out_u64(j, "disk", l->disk_bytes);
	json_out_end(j);
}

int v1_list_rows(struct api_call *c, const struct store_session_filter *by, struct err *err)
{
	auto_fini(session_row_list_fini) struct session_row_list l = { 0 };
	struct session_row_query q = { .rows.by = *by };
	bool enforced = session_limits_enforced(c->engine);
	struct json_out j;

	if (parse_query(c, &q, err) < 0 || session_rows(c->engine, &q, &l, err) < 0)
		return -1;
	api_list(&j, "sessions");
	for (size_t i = 0; i < l.count; i++)
		put_row(&j, &l.items[i], enforced);
	json_out_end(&j);
	put_sums(&j, &l);
	json_out_i64_if(&j, "next", l.more, (int64_t)(q.rows.offset + l.count));
	return api_reply(c, 200, &j, err);
}
