/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle sandbox costs, and what many of them cost the next one. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proc.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"

enum { INITS_MEASURED = 20, MEMORY_STEPS = 10, MEMORY_SETTLE_US = 500000 };

struct crowd {
	struct sandbox **sb;
	int n;
};

/* What sandboxes cost, in kB. MemAvailable and reclaimable slab are not among them: they follow the
 * page cache of the whole machine, which moves by more than a hundred sandboxes take. */
struct memory {
	double slab, percpu, stack, tables, shmem; /* of the kernel */
	double engine; /* PSS of this process and of lodge-keeper */
};

/* The sum of the steps in which the rest of the machine freed less than the sandboxes took. */
struct growth {
	struct memory sum;
	int sandboxes, steps;
	double low, high; /* kB per sandbox and step */
};

static struct memory measure(void)
{
	pid_t keeper = proc_child(getpid(), "lodge-keeper");

	pause_us(MEMORY_SETTLE_US);
	return (struct memory){ .slab = (double)proc_meminfo("SUnreclaim:"),
				.percpu = (double)proc_meminfo("Percpu:"),
				.stack = (double)proc_meminfo("KernelStack:"),
				.tables = (double)proc_meminfo("PageTables:"),
				.shmem = (double)proc_meminfo("Shmem:"),
				.engine = (double)(proc_kb(getpid(), "smaps_rollup", "Pss:") +
						   proc_kb(keeper, "smaps_rollup", "Pss:")) };
}

static double total(const struct memory *m)
{
	return m->slab + m->percpu + m->stack + m->tables + m->shmem + m->engine;
}

static void growth_add(struct growth *g, const struct memory *before, int sandboxes)
{
	struct memory now = measure();
	double each = (total(&now) - total(before)) / sandboxes;

	if (each < 0)
		return;
	g->sum.slab += now.slab - before->slab;
	g->sum.percpu += now.percpu - before->percpu;
	g->sum.stack += now.stack - before->stack;
	g->sum.tables += now.tables - before->tables;
	g->sum.shmem += now.shmem - before->shmem;
	g->sum.engine += now.engine - before->engine;
	g->low = g->steps == 0 || each < g->low ? each : g->low;
	g->high = each > g->high ? each : g->high;
	g->sandboxes += sandboxes;
	g->steps++;
}

static void put(const char *what, int n, const char *part, double value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%d/%s", what, n, part);
	put_value(name, value);
}

static double mean_init_pss(const struct crowd *c)
{
	int n = c->n < INITS_MEASURED ? c->n : INITS_MEASURED;
	double pss = 0;

	for (int i = 0; i < n; i++)
		pss += (double)proc_kb(sandbox_pid(c->sb[i]), "smaps_rollup", "Pss:");
	return pss / n;
}

static void put_memory(const char *what, const struct growth *g, const struct crowd *c)
{
	double pss = mean_init_pss(c), n = g->sandboxes;

	put(what, c->n, "steps", g->steps);
	if (g->steps == 0) {
		put_note("memory of %d sandboxes is not measured: other programs freed more", c->n);
		return;
	}
	put(what, c->n, "all_kb", total(&g->sum) / n + pss);
	put(what, c->n, "low_kb", g->low + pss);
	put(what, c->n, "high_kb", g->high + pss);
	put(what, c->n, "slab_kb", g->sum.slab / n);
	put(what, c->n, "percpu_kb", g->sum.percpu / n);
	put(what, c->n, "stack_kb", g->sum.stack / n);
	put(what, c->n, "tables_kb", g->sum.tables / n);
	put(what, c->n, "engine_kb", g->sum.engine / n);
	put(what, c->n, "init_pss_kb", pss);
}

static void grow(const struct bench *b, struct crowd *c, int n)
{
	struct sandbox_spec spec = sandbox_spec_default();
	double t0 = now_us();
	int had = c->n;
	struct err err;

	spec.no_pool = true;
	while (c->n < n) {
		must(sandbox_new(b->keeper, &spec, &c->sb[c->n], &err), &err, "sandbox_new");
		c->n++;
	}
	put("idle", n, "made_us", (now_us() - t0) / (n - had));
}

/* Measured in steps, so that other activity on the machine spoils only one of them. */
static void grow_measured(const struct bench *b, struct crowd *c, int n)
{
	int step = (n - c->n) / MEMORY_STEPS;
	struct growth g = { 0 };

	while (c->n < n) {
		struct memory before = measure();
		int had = c->n;

		grow(b, c, n - had < 2 * step ? n : had + step);
		growth_add(&g, &before, c->n - had);
	}
	put_memory("idle", &g, c);
}

static void put_keeper(int n)
{
	pid_t keeper = proc_child(getpid(), "lodge-keeper");

	put("idle", n, "keeper_rss_kb", (double)proc_kb(keeper, "status", "VmRSS:"));
	put("idle", n, "keeper_fds", proc_count_fds(keeper));
	put("idle", n, "engine_rss_kb", (double)proc_kb(getpid(), "status", "VmRSS:"));
}

static void create_at(const struct bench *b, int n)
{
	char what[32];

	snprintf(what, sizeof(what), "create_at_%d", n);
	for (int round = 0; round < b->rounds; round++)
		engine_create(b, what, round, b->n, GAP_US);
	engine_settle(b);
}

/* Idle, but not new: each has run one command. */
static void use_all(const struct crowd *c)
{
	struct guest_exec_spec spec = { .text = "echo hi" };
	struct guest_exec_output o;
	struct err err;

	for (int i = 0; i < c->n; i++) {
		must(guest_exec_run(c->sb[i], &spec, NULL, 0, &o, &err), &err, "exec_run");
		guest_exec_output_fini(&o);
	}
}

static void end_all(const struct bench *b, struct crowd *c)
{
	double t0 = now_us();
	int n = c->n;
	struct err err;

	while (c->n > 0) {
		struct sandbox *sb = c->sb[--c->n];

		must(sandbox_destroy(sb, &err), &err, "sandbox_destroy");
		sandbox_free(sb);
	}
	put("idle", n, "destroy_us", (now_us() - t0) / n);
	engine_settle(b);
	put("idle", n, "gone_us", (now_us() - t0) / n);
}

void density_run(const struct bench *b)
{
	struct rlimit files;
	struct crowd c = { calloc(5000, sizeof(struct sandbox *)), 0 };

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	engine_settle(b);
	grow(b, &c, 10);
	create_at(b, 10);
	grow_measured(b, &c, 1000);
	put_keeper(1000);
	create_at(b, 1000);
	use_all(&c);
	put("used", 1000, "init_pss_kb", mean_init_pss(&c));
	if (b->big) {
		grow_measured(b, &c, 5000);
		put_keeper(5000);
		create_at(b, 5000);
	}
	end_all(b, &c);
	free(c.sb);
}
