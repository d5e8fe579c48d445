/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/users: all users with what they use. */
#include <string.h>
#include <sys/statvfs.h>

#include "base/array.h"
#include "api/core/internal.h"
#include "api/v1/v1_routes.h"
#include "project/user_list.h"
#include "service/service_admin.h"

enum { TEXT_MAX = 256 };

static int parse_query(struct api_call *c, struct user_list_query *q, struct err *err)
{
	static const char *const names[] = { [USER_SORT_DISK] = "disk",
					     [USER_SORT_MEMORY] = "memory",
					     [USER_SORT_CPU] = "cpu",
					     [USER_SORT_ACTIVE] = "active",
					     [USER_SORT_ID] = "id" };
	const char *sort = http_query(c->rq, "sort"), *order = http_query(c->rq, "order");
	int64_t limit = 100;
	unsigned i = 0;

	q->text = http_query(c->rq, "q");
	while (sort && i < ARRAY_LEN(names) && strcmp(sort, names[i]) != 0)
		i++;
	if (i == ARRAY_LEN(names))
		return err_set(err, ERR_INVALID, "sort: must be disk, memory, cpu, active or id");
	if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
		return err_set(err, ERR_INVALID, "order: must be \"asc\" or \"desc\"");
	if (q->text && (!*q->text || strlen(q->text) > TEXT_MAX))
		return err_set(err, ERR_INVALID, "q: must have 1 to %d bytes", TEXT_MAX);
	if (api_query_int(c, "limit", 1, STORE_PAGE_MAX, &limit, err) < 0)
		return -1;
	q->sort = (enum user_sort)i;
	q->ascending = order ? *order == 'a' : i == USER_SORT_ID;
	q->limit = (unsigned)limit;
	return 0;
}

/* A quota limits what is reserved, so that is what exceeds it. */
static void put_quota(struct json_out *j, const struct store_user_row *r)
{
	json_out_object(j, "reserved");
	json_out_i64(j, "memory", r->memory_bytes);
	json_out_i64(j, "disk", r->disk_bytes);
	json_out_end(j);
	json_out_object(j, "quota"); /* 0: unlimited */
	json_out_i64(j, "sandboxes", r->quota_sandboxes);
	json_out_i64(j, "memory_bytes", r->quota_memory);
	json_out_i64(j, "disk_bytes", r->quota_disk);
	json_out_i64(j, "cpu_ms", r->quota_cpu_ms);
	json_out_end(j);
	json_out_array(j, "over");
	if (r->quota_sandboxes && r->active > r->quota_sandboxes)
		json_out_str(j, NULL, "sandboxes");
	if (r->quota_memory && r->memory_bytes > r->quota_memory)
		json_out_str(j, NULL, "memory");
	if (r->quota_disk && r->disk_bytes > r->quota_disk)
		json_out_str(j, NULL, "disk");
	if (r->quota_cpu_ms && r->cpu_ms >= r->quota_cpu_ms)
		json_out_str(j, NULL, "cpu");
	json_out_end(j);
}

static void put_user(struct json_out *j, const struct user_use *u)
{
	const struct store_user_row *r = &u->rec;

	json_out_object(j, NULL);
	json_out_str(j, "id", r->id);
	json_out_text(j, "name", r->name);
	json_out_text(j, "email", r->email);
	json_out_u64(j, "running", u->running);
	json_out_i64(j, "sessions", r->sessions);
	json_out_u64(j, "memory", u->memory_bytes);
	json_out_u64(j, "disk", u->disk_bytes);
	json_out_i64(j, "cpu_ms_24h", u->cpu_day_ms);
	json_out_i64_if(j, "active_at", r->last_activity_at, r->last_activity_at);
	put_quota(j, r);
	json_out_end(j);
}

/* The disk of the host is no business of tenants. */
static void put_disk(struct api_call *c, struct json_out *j, const struct user_use_list *l)
{
	struct statvfs fs;

	if (c->scope != API_ADMIN || statvfs(engine_home(c->engine), &fs) < 0) {
		json_out_null(j, "disk");
		return;
	}
	json_out_object(j, "disk");
	json_out_u64(j, "total", (uint64_t)fs.f_blocks * fs.f_frsize);
	json_out_u64(j, "free", (uint64_t)fs.f_bavail * fs.f_frsize);
	json_out_u64(j, "users", l->disk_bytes);
	json_out_end(j);
}

int v1_list_users(struct api_call *c, struct err *err)
{
	auto_fini(user_use_list_fini) struct user_use_list l = { 0 };
	struct user_list_query q = { 0 };
	struct json_out j;

	/* a user token sees its own user */
	if (c->scope < API_TENANT && (!*c->user || *c->session))
		return err_set(err, ERR_DENIED,
			       "permission denied: requires a key with scope \"tenant\"");
	q.id = c->scope < API_TENANT ? c->user : NULL;
	if (parse_query(c, &q, err) < 0 || user_list(c->engine, &c->caller, &q, &l, err) < 0)
		return -1;
	api_list(&j, "users");
	for (size_t i = 0; i < l.count; i++)
		put_user(&j, &l.items[i]);
	json_out_end(&j);
	json_out_i64(&j, "total", l.total);
	put_disk(c, &j, &l);
	return api_reply(c, 200, &j, err);
}
