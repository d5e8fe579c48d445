/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tenant_metrics.h"

#include <string.h>

#include "engine/internal.h"

struct tenant_metrics_row *tenant_metrics_row(struct engine *e, const char *tenant)
{
	struct tenant_metrics *m = &e->tenants;
	struct tenant_metrics_row *r;

	for (unsigned i = 0; i < m->count; i++)
		if (strcmp(m->rows[i].tenant, tenant) == 0)
			return &m->rows[i];
	if (m->count == TENANT_METRICS_MAX || !*tenant) {
		m->others = true;
		return &m->rows[TENANT_METRICS_MAX];
	}
	r = &m->rows[m->count++];
	memcpy(r->tenant, tenant, strnlen(tenant, sizeof(r->tenant) - 1));
	return r;
}

void tenant_metrics_count_death(struct engine *e, const char *tenant, unsigned code)
{
	MUTEX_GUARD(&e->mutex);
	tenant_metrics_row(e, tenant)->deaths[code]++;
}

unsigned tenant_metrics_copy(struct engine *e,
			     struct tenant_metrics_row ret[static TENANT_METRICS_MAX + 1])
{
	const struct tenant_metrics *m = &e->tenants;

	MUTEX_GUARD(&e->mutex);
	memcpy(ret, m->rows, m->count * sizeof(*ret));
	if (!m->others)
		return m->count;
	ret[m->count] = m->rows[TENANT_METRICS_MAX];
	return m->count + 1;
}

void tenant_metrics_add(struct tenant_metrics_row *sum, const struct tenant_metrics_row *r)
{
	for (unsigned i = 0; i < SESSION_DEATHS; i++)
		sum->deaths[i] += r->deaths[i];
	for (unsigned i = 0; i < SESSION_STATES; i++)
		sum->now.sessions[i] += r->now.sessions[i];
	sum->cpu_us += r->cpu_us;
	sum->oom_kills += r->oom_kills;
	sum->now.memory_bytes += r->now.memory_bytes;
	sum->now.memory_limit_bytes += r->now.memory_limit_bytes;
	sum->now.disk_bytes += r->now.disk_bytes;
}
