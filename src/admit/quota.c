/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of users and tenants, and their usage. */
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"
#include "admit/quota.h"
#include "engine/session_state.h"

/* States with a sandbox, or about to get one. */
static const uint64_t active_states = SM_BIT(SESSION_PROVISIONING) | SM_BIT(SESSION_ACTIVE) |
				      SM_BIT(SESSION_HIBERNATING) | SM_BIT(SESSION_RESTORING);

uint64_t quota_active_states(void)
{
	return active_states;
}

static int check_limit(const char *what, int64_t limit, struct err *err)
{
	if (limit < 0)
		return err_set(err, ERR_INVALID, "%s must not be negative", what);
	return 0;
}

int quota_set(struct engine *e, const struct store_quota *q, struct err *err)
{
	if (check_limit("sandboxes", q->sandboxes, err) < 0 ||
	    check_limit("memory_bytes", q->memory_bytes, err) < 0 ||
	    check_limit("disk_bytes", q->disk_bytes, err) < 0 ||
	    check_limit("cpu_ms", q->cpu_ms, err) < 0)
		return -1;
	return STORE_CALL(e, store_quota_set, q, err);
}

/* Zeros if none is set. */
static int get_limits(struct store *st, const char *tenant, const char *user,
		      struct store_quota *ret, struct err *err)
{
	struct store_quota q = { 0 };

	if (store_quota_get(st, tenant, user, &q, err) < 0) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
		snprintf(q.tenant, sizeof(q.tenant), "%s", tenant);
		snprintf(q.user, sizeof(q.user), "%s", user);
	}
	*ret = q;
	return 0;
}

/* A tenant's usage is the sum over its users. */
static int get_usage(struct store *st, const char *tenant, const char *user,
		     struct store_usage *ret, struct err *err)
{
	return store_quota_usage(st, tenant, *user ? user : NULL, active_states, ret, err);
}

int quota_get(struct engine *e, const char *tenant, const char *user, struct store_quota *ret,
	      struct store_usage *ret_usage, struct err *err)
{
	const char *of = user ? user : "";
	struct store_usage used = { 0 };
	struct store_quota q = { 0 };
	int r = -1;

	if (!*tenant || strlen(tenant) >= sizeof(q.tenant) || strlen(of) >= sizeof(q.user))
		return err_set(err, ERR_INVALID, "tenant or user is empty or too long");
	WITH_STORE(e, st)
	r = get_limits(st, tenant, of, &q, err) < 0 || get_usage(st, tenant, of, &used, err) < 0
		    ? -1
		    : 0;
	if (r < 0)
		return -1;
	*ret = q;
	if (ret_usage)
		*ret_usage = used;
	return 0;
}

/* ---- check ----------------------------------------------------------------------------------- */

static int exceed_error(const struct store_quota *q, const char *what, int64_t used, int64_t limit,
			struct err *err)
{
	return err_set(err, ERR_LIMIT, "%s '%s' is at its quota of %s: %lld of %lld used",
		       *q->user ? "user" : "tenant", *q->user ? q->user : q->tenant, what,
		       (long long)used, (long long)limit);
}

/* `used` is without this session. */
static int check_one(const struct store_quota *q, const struct store_usage *used,
		     const struct store_session *s, struct err *err)
{
	if (q->disk_bytes && used->disk_bytes + s->disk_bytes > q->disk_bytes)
		return exceed_error(q, "disk bytes", used->disk_bytes, q->disk_bytes, err);
	if (q->sandboxes && used->active + 1 > q->sandboxes)
		return exceed_error(q, "sandboxes", used->active, q->sandboxes, err);
	if (q->memory_bytes && used->memory_bytes + s->memory_bytes > q->memory_bytes)
		return exceed_error(q, "memory bytes", used->memory_bytes, q->memory_bytes, err);
	if (q->cpu_ms && used->cpu_ms >= q->cpu_ms)
		return exceed_error(q, "cpu milliseconds", used->cpu_ms, q->cpu_ms, err);
	return 0;
}

/* What the store counts for this session already. */
static int own_usage(struct store *st, const struct store_session *s, struct store_usage *ret,
		     struct err *err)
{
	struct store_session there;

	*ret = (struct store_usage){ 0 };
	if (store_session_get(st, s->id, &there, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	ret->disk_bytes = there.disk_bytes;
	if (active_states & SM_BIT(there.state)) {
		ret->active = 1;
		ret->memory_bytes = there.memory_bytes;
	}
	store_session_fini(&there);
	return 0;
}

static int check_quota(struct store *st, const char *user, const struct store_usage *own,
		       const struct store_session *s, bool no_start, struct err *err)
{
	struct store_quota q;
	struct store_usage used;

	if (get_limits(st, s->tenant, user, &q, err) < 0)
		return -1;
	if (no_start) /* only its files count */
		q.sandboxes = q.memory_bytes = q.cpu_ms = 0;
	if (!q.sandboxes && !q.memory_bytes && !q.disk_bytes && !q.cpu_ms)
		return 0;
	if (get_usage(st, s->tenant, user, &used, err) < 0)
		return -1;
	used.active -= own->active;
	used.memory_bytes -= own->memory_bytes;
	used.disk_bytes -= own->disk_bytes;
	return check_one(&q, &used, s, err);
}

int quota_check(struct engine *e, const struct store_session *s, bool is_new, bool no_start,
		struct err *err)
{
	struct store_usage own = { 0 };
	int r = 0;

	WITH_STORE(e, st)
	{
		if (!is_new)
			r = own_usage(st, s, &own, err);
		if (r == 0 && *s->user)
			r = check_quota(st, s->user, &own, s, no_start, err);
		if (r == 0)
			r = check_quota(st, "", &own, s, no_start, err);
	}
	return r;
}

void quota_charge(struct engine *e, const struct store_session *s, uint64_t cpu_us)
{
	struct err ignored;

	if (cpu_us < 1000)
		return;
	(void)STORE_CALL(e, store_quota_charge, s->tenant, s->user, (int64_t)(cpu_us / 1000),
			 engine_now(e), &ignored);
}
