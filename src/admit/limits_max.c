/* SPDX-License-Identifier: Apache-2.0 */
#include "admit/limits_max.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

int limits_max_get(const struct engine *e, struct template *ret, struct err *err)
{
	const struct limits *max = &e->opts.limits_max;

	template_init(ret);
	if ((max->memory_bytes &&
	     template_set_limit(ret, "memory_bytes", max->memory_bytes, err) < 0) ||
	    (max->cpu_milli && template_set_limit(ret, "cpu_milli", max->cpu_milli, err) < 0) ||
	    (max->disk_bytes && template_set_limit(ret, "disk_bytes", max->disk_bytes, err) < 0) ||
	    (max->pids && template_set_limit(ret, "pids", max->pids, err) < 0))
		return -1;
	return 0;
}

static int exceed_error(const struct limits *max, const char *name, struct err *err)
{
	bool memory = strcmp(name, "memory_bytes") == 0;
	char text[SIZE_TEXT];

	if (strcmp(name, "cpu_milli") == 0) /* 0 is no quota */
		return err_set(err, ERR_INVALID,
			       "limits.cpus: must be between %g and %g (setting: limits_max_cpus)",
			       LIMITS_CPU_MILLI_MIN / 1000.0, max->cpu_milli / 1000.0);
	if (strcmp(name, "pids") == 0)
		return err_set(err, ERR_INVALID,
			       "limits.pids: must be at most %u (setting: limits_max_pids)",
			       max->pids);
	return err_set(err, ERR_INVALID, "limits.%s: must be at most %s (setting: limits_max_%s)",
		       name, units_format(memory ? max->memory_bytes : max->disk_bytes, text),
		       memory ? "memory" : "disk");
}

int limits_max_check(const struct engine *e, const struct template *asked, struct err *err)
{
	auto_fini(template_fini) struct template max;
	const char *bad;

	if (limits_max_get(e, &max, err) < 0)
		return -1;
	bad = template_exceeded_limit(asked, &max);
	return bad ? exceed_error(&e->opts.limits_max, bad, err) : 0;
}

int limits_max_cap(const struct engine *e, struct template *t, struct err *err)
{
	auto_fini(template_fini) struct template max;

	return limits_max_get(e, &max, err) < 0 ? -1 : template_cap(t, &max, err);
}
