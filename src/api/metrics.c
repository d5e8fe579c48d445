/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for whoever watches, as Prometheus reads them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/inside.h"
#include "api/metrics.h"

static const struct {
	const char *text;
	uint64_t us;
} bounds[METRICS_BUCKETS] = {
	{ "0.001", 1000 },  { "0.0025", 2500 }, { "0.005", 5000 },  { "0.01", 10000 },
	{ "0.025", 25000 }, { "0.05", 50000 },	{ "0.1", 100000 },  { "0.25", 250000 },
	{ "0.5", 500000 },  { "1", 1000000 },	{ "2.5", 2500000 }, { "5", 5000000 },
	{ "10", 10000000 }, { "60", 60000000 },
};

static const struct {
	const char *family, *label;
} timers[API_TIMERS] = {
	[API_TIME_CREATED] = { "lodge_enter_seconds", "outcome=\"created\"" },
	[API_TIME_REUSED] = { "lodge_enter_seconds", "outcome=\"reused\"" },
	[API_TIME_RESUMED] = { "lodge_enter_seconds", "outcome=\"resumed\"" },
	[API_TIME_REPLACED] = { "lodge_enter_seconds", "outcome=\"replaced\"" },
	[API_TIME_EXEC] = { "lodge_exec_seconds", "" },
};

void api_observe(struct api *a, enum api_timer t, uint64_t us)
{
	struct metrics_timer *m = &a->timers[t];
	size_t i = 0;

	while (i < METRICS_BUCKETS && us > bounds[i].us)
		i++;
	if (i < METRICS_BUCKETS)
		m->buckets[i]++;
	m->us += us;
	m->count++;
}

void api_observe_entered(struct api *a, enum session_outcome outcome, uint64_t us)
{
	static const enum api_timer of[] = {
		[SESSION_CREATED] = API_TIME_CREATED,
		[SESSION_REUSED] = API_TIME_REUSED,
		[SESSION_RESUMED] = API_TIME_RESUMED,
		[SESSION_REPLACED] = API_TIME_REPLACED,
	};

	api_observe(a, of[outcome], us);
}

void api_count_request(struct api *a, unsigned status)
{
	unsigned class = status / 100;

	a->requests[class < METRICS_CLASSES ? class : 0]++;
}

static void print_timer(FILE *f, const struct metrics_timer *m, size_t t)
{
	const char *name = timers[t].family, *label = timers[t].label;
	const char *comma = *label ? "," : "", *open = *label ? "{" : "", *shut = *label ? "}" : "";
	unsigned long long sum = 0, us = m->us;

	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		sum += m->buckets[i];
		fprintf(f, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, label, comma, bounds[i].text,
			sum);
	}
	fprintf(f, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma, m->count);
	fprintf(f, "%s_sum%s%s%s %llu.%06llu\n", name, open, label, shut, us / 1000000,
		us % 1000000);
	fprintf(f, "%s_count%s%s%s %llu\n", name, open, label, shut, m->count);
}

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(FILE *f, const char *name, const char *help, unsigned v)
{
	head(f, name, "gauge", help);
	fprintf(f, "%s %u\n", name, v);
}

static void print(struct api *a, FILE *f)
{
	struct session_full full;

	engine_full(a->opts.engine, &full);
	gauge(f, "lodge_sandboxes_active", "Sandboxes that live.", full.active);
	gauge(f, "lodge_sandboxes_max", "At most so many; 0: any number.", full.max);
	gauge(f, "lodge_sandboxes_idle", "Of them could be hibernated.", full.idle);
	gauge(f, "lodge_queue_waiting", "Callers that wait for room.", full.waiting);
	head(f, "lodge_requests_total", "counter", "Requests by class of their status.");
	for (unsigned i = 1; i < METRICS_CLASSES; i++)
		fprintf(f, "lodge_requests_total{class=\"%uxx\"} %llu\n", i, a->requests[i]);
	head(f, "lodge_requests_vanished_total", "counter", "Requests whose caller was gone.");
	fprintf(f, "lodge_requests_vanished_total %llu\n", a->requests[0]);
	head(f, "lodge_enter_seconds", "histogram", "Time to a ready sandbox by outcome.");
	for (size_t t = API_TIME_CREATED; t <= API_TIME_REPLACED; t++)
		print_timer(f, &a->timers[t], t);
	head(f, "lodge_exec_seconds", "histogram", "Commands that were waited for.");
	print_timer(f, &a->timers[API_TIME_EXEC], API_TIME_EXEC);
}

char *metrics_text(struct api *a, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	print(a, f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
