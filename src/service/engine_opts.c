/* SPDX-License-Identifier: Apache-2.0 */
#include "service/engine_opts.h"

#include "base/array.h"
#include "base/units.h"
#include "session/capacity.h"

#define MINUTE INT64_C(60000)
#define HOUR INT64_C(3600000)
#define DAY INT64_C(86400000)
#define WEEK INT64_C(604800000)
#define LIFETIME_MS (5 * HOUR)
#define TEMPLATE_BYTES (16ull << 30)
#define IMPORT_ENTRIES (4ull << 20)

static int64_t value_or(int64_t value, int64_t otherwise)
{
	return value ? value : otherwise;
}

static int64_t at_most(int64_t value, int64_t max)
{
	return value < max ? value : max;
}

static void set_defaults(struct engine_opts *o)
{
	o->max_active = o->max_active ? o->max_active : capacity_default();
	o->queue_max = (unsigned)value_or(o->queue_max, 64);
	o->keeper_wait_ms = value_or(o->keeper_wait_ms, 10000);
	o->keeper_timeout_ms = value_or(o->keeper_timeout_ms, MINUTE / 2);
	o->idle_ms = value_or(o->idle_ms, at_most(HOUR / 2, o->idle_max_ms));
	o->lifetime_ms = value_or(o->lifetime_ms, at_most(LIFETIME_MS, o->lifetime_max_ms));
	o->project_lifetime_ms =
		value_or(o->project_lifetime_ms, at_most(HOUR, o->lifetime_max_ms));
	o->extend_ms = value_or(o->extend_ms, HOUR / 3);
	o->probe_ms = value_or(o->probe_ms, MINUTE / 4);
	o->probe_failures = (unsigned)value_or(o->probe_failures, 3);
	o->template_ms = value_or(o->template_ms, HOUR / 2);
	o->template_bytes = o->template_bytes ? o->template_bytes : TEMPLATE_BYTES;
	o->import_ratio = (unsigned)value_or(o->import_ratio, 200);
	o->import_entries = o->import_entries ? o->import_entries : IMPORT_ENTRIES;
	o->tombstones_ms = value_or(o->tombstones_ms, WEEK);
	o->execs_ms = value_or(o->execs_ms, WEEK);
	o->events_ms = value_or(o->events_ms, WEEK);
	o->execs_max = (unsigned)value_or(o->execs_max, 10000);
	o->rows_max = (unsigned)value_or(o->rows_max, 200000);
}

int engine_opts_check_time(const char *name, int64_t ms, const char *max_name, int64_t max_ms,
			   struct err *err)
{
	char value[SIZE_TEXT], max[SIZE_TEXT];

	if (ms <= max_ms)
		return 0;
	return err_set(err, ERR_INVALID, "%s: %s is more than %s (%s): raise %s or lower %s", name,
		       units_format_ms((uint64_t)ms, value), max_name,
		       units_format_ms((uint64_t)max_ms, max), max_name, name);
}

/* Before the defaults are known: those never exceed their maximum. */
static int check_times(const struct engine_opts *o, struct err *err)
{
	const struct {
		const char *setting, *option, *max_setting, *max_option;
		int64_t ms, max_ms;
	} times[] = {
		{ "idle_timeout", "idle_ms", "idle_timeout_max", "idle_max_ms", o->idle_ms,
		  o->idle_max_ms },
		{ "lifetime", "lifetime_ms", "lifetime_max", "lifetime_max_ms", o->lifetime_ms,
		  o->lifetime_max_ms },
		{ "projects_lifetime", "project_lifetime_ms", "lifetime_max", "lifetime_max_ms",
		  o->project_lifetime_ms, o->lifetime_max_ms },
	};

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (engine_opts_check_time(o->library ? times[i].option : times[i].setting,
					   times[i].ms,
					   o->library ? times[i].max_option : times[i].max_setting,
					   times[i].max_ms, err) < 0)
			return -1;
	return 0;
}

int engine_opts_resolve(struct engine_opts *o, struct err *err)
{
	if (o->pool > KEEPER_SLOTS_MAX)
		return err_set(err, ERR_INVALID, "pool: must be at most %d", KEEPER_SLOTS_MAX);
	o->idle_max_ms = value_or(o->idle_max_ms, DAY);
	o->lifetime_max_ms = value_or(o->lifetime_max_ms, LIFETIME_MS);
	if (check_times(o, err) < 0)
		return -1;
	set_defaults(o);
	return 0;
}
