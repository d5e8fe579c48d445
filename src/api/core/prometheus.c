/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the Prometheus text format. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/core/internal.h"
#include "api/core/prometheus.h"
#include "base/array.h"
#include "base/auto.h"
#include "engine/disk_space.h"
#include "engine/engine_metrics.h"
#include "engine/store_lock.h"
#include "engine/tenant_metrics.h"
#include "service/service_admin.h"
#include "service/startup.h"
#include "session/capacity.h"
#include "session/usage.h"

void api_count_request(struct api *a, unsigned status)
{
	unsigned class = status / 100;

	a->requests[class < METRICS_CLASSES ? class : 0]++;
}

static void print_histogram(FILE *f, const struct histogram *h, const char *name, const char *label)
{
	const char *comma = *label ? "," : "", *open = *label ? "{" : "", *shut = *label ? "}" : "";
	unsigned long long sum = 0, us = h->us;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		sum += h->buckets[i];
		fprintf(f, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, label, comma,
			histogram_bounds[i].text, sum);
	}
	fprintf(f, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma, h->count);
	fprintf(f, "%s_sum%s%s%s %llu.%06llu\n", name, open, label, shut, us / 1000000,
		us % 1000000);
	fprintf(f, "%s_count%s%s%s %llu\n", name, open, label, shut, h->count);
}

static void print_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_number(FILE *f, const char *name, const char *type, const char *help,
			 unsigned long long v)
{
	print_head(f, name, type, help);
	fprintf(f, "%s %llu\n", name, v);
}

/* Metrics of the engine, for all surfaces. */
static void print_engine(struct engine *e, FILE *f)
{
	static const char *const sources[] = { [SESSION_SOURCE_POOL] = "source=\"pool\"",
					       [SESSION_SOURCE_COLD] = "source=\"cold\"",
					       [SESSION_SOURCE_RESUME] = "source=\"resume\"",
					       [SESSION_SOURCE_FORK] = "source=\"fork\"" };
	const struct engine_metrics *n = engine_metrics(e);
	struct keeper_pool_state pool;

	engine_pool_state(e, &pool);
	print_number(f, "lodge_pool_ready", "gauge", "Sandboxes ready in the warm pool.",
		     pool.ready);
	print_number(f, "lodge_pool_target", "gauge",
		     "Sandboxes the warm pool keeps ready; 0 means no pool.", pool.target);
	print_number(f, "lodge_pool_hits_total", "counter", "Sandboxes taken from the warm pool.",
		     pool.hits);
	print_number(f, "lodge_pool_misses_total", "counter",
		     "Sandboxes created because the warm pool had none that fits.", pool.misses);
	print_head(f, "lodge_enters_total", "counter", "Sessions entered, by outcome.");
	for (int o = SESSION_CREATED; o <= SESSION_REPLACED; o++)
		fprintf(f, "lodge_enters_total{outcome=\"%s\"} %llu\n", api_outcome_name(o),
			n->entered[o]);
	print_head(f, "lodge_create_seconds", "histogram", "Time to create a sandbox, by source.");
	for (size_t i = SESSION_SOURCE_POOL; i <= SESSION_SOURCE_FORK; i++)
		print_histogram(f, &n->started[i], "lodge_create_seconds", sources[i]);
	print_head(f, "lodge_probe_seconds", "histogram", "Duration of sandbox probes.");
	print_histogram(f, &n->probe, "lodge_probe_seconds", "");
}

/* How much space the host has is for administrators, as in /health. */
static void print_disk(FILE *f, struct engine *e, bool admin)
{
	struct disk_space d;

	disk_space_get(e, &d);
	print_number(f, "lodge_disk_full", "gauge",
		     "1 while new sessions and snapshots are refused because the disk is full.",
		     d.state != DISK_OK);
	if (!admin)
		return;
	print_number(f, "lodge_disk_free_bytes", "gauge",
		     "Free space of the file system of the data directory.", d.last.free_bytes);
	print_number(f, "lodge_disk_size_bytes", "gauge",
		     "Size of the file system of the data directory.", d.last.total_bytes);
	print_number(f, "lodge_disk_room_bytes", "gauge",
		     "What sandboxes can still write before the disk counts as full.",
		     d.last.room_bytes);
}

/* ---- by tenant ------------------------------------------------------------------------------- */

/* The part of one family that belongs to one tenant. */
typedef void print_tenant_fn(FILE *f, const char *name, const struct tenant_metrics_row *r);

/* Starts a sample: the name and its labels. `label` is NULL or a label without special characters.
 */
static void print_labels(FILE *f, const char *name, const struct tenant_metrics_row *r,
			 const char *label, const char *value)
{
	fprintf(f, "%s%s", name, *r->tenant || label ? "{" : "");
	if (*r->tenant)
		fputs("tenant=\"", f);
	for (const char *p = r->tenant; *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', f);
		fputc(*p, f);
	}
	if (*r->tenant)
		fputs(label ? "\"," : "\"", f);
	if (label)
		fprintf(f, "%s=\"%s\"", label, value);
	fputs(*r->tenant || label ? "} " : " ", f);
}

static void print_sessions(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	for (unsigned s = 0; s < SESSION_STATES; s++) {
		print_labels(f, name, r, "state", state_machine_name(&session_states, s));
		fprintf(f, "%" PRIu64 "\n", r->now.sessions[s]);
	}
}

static void print_deaths(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	for (unsigned c = SESSION_CAUSE_NONE + 1; c < SESSION_DEATHS; c++) {
		print_labels(f, name, r, "cause", session_death_name(c));
		fprintf(f, "%" PRIu64 "\n", r->deaths[c]);
	}
}

static void print_value(FILE *f, const char *name, const struct tenant_metrics_row *r, uint64_t v)
{
	print_labels(f, name, r, NULL, NULL);
	fprintf(f, "%" PRIu64 "\n", v);
}

static void print_memory(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	print_value(f, name, r, r->now.memory_bytes);
}

static void print_memory_limit(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	print_value(f, name, r, r->now.memory_limit_bytes);
}

static void print_disk_used(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	print_value(f, name, r, r->now.disk_bytes);
}

static void print_oom_kills(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	print_value(f, name, r, r->oom_kills);
}

static void print_cpu(FILE *f, const char *name, const struct tenant_metrics_row *r)
{
	print_labels(f, name, r, NULL, NULL);
	fprintf(f, "%" PRIu64 ".%06" PRIu64 "\n", r->cpu_us / 1000000, r->cpu_us % 1000000);
}

static const struct tenant_family {
	const char *name, *type, *help;
	print_tenant_fn *print;
} tenant_families[] = {
	{ "lodge_sessions", "gauge", "Sessions, by state.", print_sessions },
	{ "lodge_sandbox_memory_bytes", "gauge", "Memory that running sandboxes use.",
	  print_memory },
	{ "lodge_sandbox_memory_limit_bytes", "gauge",
	  "Sum of the memory limits of running sandboxes.", print_memory_limit },
	{ "lodge_sandbox_disk_bytes", "gauge",
	  "Disk space of running sandboxes, hibernated sessions and snapshots.", print_disk_used },
	{ "lodge_sandbox_cpu_seconds_total", "counter", "CPU time that sandboxes used.",
	  print_cpu },
	{ "lodge_sandbox_oom_kills_total", "counter",
	  "Processes in sandboxes that the kernel killed at the memory limit.", print_oom_kills },
	{ "lodge_sandbox_deaths_total", "counter", "Sandboxes that ended, by cause.",
	  print_deaths },
};

/* Leaves the sum of all rows in the first. */
static unsigned add_up_rows(struct tenant_metrics_row *rows, unsigned count)
{
	struct tenant_metrics_row sum = { 0 };

	for (unsigned i = 0; i < count; i++)
		tenant_metrics_add(&sum, &rows[i]);
	rows[0] = sum;
	return 1;
}

/* A series without a tenant is that of all tenants that have none. */
static int print_tenants(FILE *f, struct engine *e, bool by_tenant)
{
	auto_free struct tenant_metrics_row *rows = calloc(TENANT_METRICS_MAX + 1, sizeof(*rows));
	unsigned count;

	if (!rows)
		return -1;
	if (engine_is_ready(e) && store_responds(e))
		usage_refresh_tenants(e);
	count = tenant_metrics_copy(e, rows);
	if (!by_tenant || !count)
		count = add_up_rows(rows, count);
	for (size_t i = 0; i < ARRAY_LEN(tenant_families); i++) {
		const struct tenant_family *t = &tenant_families[i];

		print_head(f, t->name, t->type, t->help);
		for (unsigned r = 0; r < count; r++)
			t->print(f, t->name, &rows[r]);
	}
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void print_service(FILE *f, const struct api *a)
{
	struct engine_health h;

	engine_health(a->opts.engine, &h);
	print_head(f, "lodge_build_info", "gauge", "Always 1; the version of lodged is a label.");
	fprintf(f, "lodge_build_info{version=\"%s\"} 1\n", a->opts.version);
	print_number(f, "lodge_keeper_up", "gauge", "1 while lodge-keeper runs.", h.keeper);
}

static int print_metrics(struct api *a, bool admin, FILE *f)
{
	struct capacity_report full;
	char label[32];

	print_service(f, a);
	capacity_get_report(a->opts.engine, &full);
	print_number(f, "lodge_sandboxes_active", "gauge", "Running sandboxes.", full.active);
	print_number(f, "lodge_sandboxes_max", "gauge",
		     "Maximum running sandboxes (max_active); 0 means unlimited.", full.max);
	print_number(f, "lodge_sandboxes_idle", "gauge", "Idle sandboxes that could be hibernated.",
		     full.idle);
	print_number(f, "lodge_queue_waiting", "gauge", "Requests that wait for capacity.",
		     full.waiting);
	print_disk(f, a->opts.engine, admin);
	print_head(f, "lodge_requests_total", "counter", "Requests, by status class.");
	for (unsigned i = 1; i < METRICS_CLASSES; i++)
		fprintf(f, "lodge_requests_total{class=\"%uxx\"} %llu\n", i, a->requests[i]);
	print_number(f, "lodge_requests_vanished_total", "counter",
		     "Requests whose client disconnected before the response.", a->requests[0]);
	print_head(f, "lodge_enter_seconds", "histogram",
		   "Time until a session is ready, by outcome.");
	for (int o = SESSION_CREATED; o <= SESSION_REPLACED; o++) {
		snprintf(label, sizeof(label), "outcome=\"%s\"", api_outcome_name(o));
		print_histogram(f, &a->entered[o], "lodge_enter_seconds", label);
	}
	print_head(f, "lodge_exec_seconds", "histogram",
		   "Duration of commands that the client waited for.");
	print_histogram(f, &a->exec, "lodge_exec_seconds", "");
	print_engine(a->opts.engine, f);
	return print_tenants(f, a->opts.engine, admin);
}

char *prometheus_text(struct api *a, bool admin, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);
	int r;

	if (!f)
		return NULL;
	r = print_metrics(a, admin, f);
	if (fclose(f) != 0 || r < 0) {
		free(text);
		return NULL;
	}
	return text;
}
