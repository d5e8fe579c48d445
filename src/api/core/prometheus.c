/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the Prometheus text format. */
#include <stdio.h>
#include <stdlib.h>

#include "api/core/internal.h"
#include "api/core/prometheus.h"
#include "engine/engine_metrics.h"
#include "session/capacity.h"

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

static void print_gauge(FILE *f, const char *name, const char *help, unsigned v)
{
	print_head(f, name, "gauge", help);
	fprintf(f, "%s %u\n", name, v);
}

static void print_counter(FILE *f, const char *name, const char *help, unsigned long long v)
{
	print_head(f, name, "counter", help);
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
	print_gauge(f, "lodge_pool_ready", "Sandboxes ready in the warm pool.", pool.ready);
	print_gauge(f, "lodge_pool_target", "Sandboxes the warm pool keeps ready; 0 means no pool.",
		    pool.target);
	print_counter(f, "lodge_pool_hits_total", "Sandboxes taken from the warm pool.", pool.hits);
	print_counter(f, "lodge_pool_misses_total",
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

static void print_metrics(struct api *a, FILE *f)
{
	struct capacity_report full;
	char label[32];

	capacity_get_report(a->opts.engine, &full);
	print_gauge(f, "lodge_sandboxes_active", "Running sandboxes.", full.active);
	print_gauge(f, "lodge_sandboxes_max",
		    "Maximum running sandboxes (max_active); 0 means unlimited.", full.max);
	print_gauge(f, "lodge_sandboxes_idle", "Idle sandboxes that could be hibernated.",
		    full.idle);
	print_gauge(f, "lodge_queue_waiting", "Requests that wait for capacity.", full.waiting);
	print_head(f, "lodge_requests_total", "counter", "Requests, by status class.");
	for (unsigned i = 1; i < METRICS_CLASSES; i++)
		fprintf(f, "lodge_requests_total{class=\"%uxx\"} %llu\n", i, a->requests[i]);
	print_counter(f, "lodge_requests_vanished_total",
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
}

char *prometheus_text(struct api *a, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	print_metrics(a, f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
