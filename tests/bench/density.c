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

enum { INITS_LOOKED_AT = 20, MEMORY_SETTLE_US = 500000 };

struct crowd {
	struct sandbox **sb;
	int n;
};

struct memory {
	double available, slab, percpu, stack, tables; /* kB */
};

static struct memory look(void)
{
	pause_us(MEMORY_SETTLE_US);
	return (struct memory){ .available = (double)proc_meminfo("MemAvailable:"),
				.slab = (double)proc_meminfo("Slab:"),
				.percpu = (double)proc_meminfo("Percpu:"),
				.stack = (double)proc_meminfo("KernelStack:"),
				.tables = (double)proc_meminfo("PageTables:") };
}

static void put(const char *what, int n, const char *part, double value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%d/%s", what, n, part);
	put_value(name, value);
}

static void put_memory(const char *what, const struct memory *before, const struct crowd *c)
{
	struct memory now = look();
	int looked = c->n < INITS_LOOKED_AT ? c->n : INITS_LOOKED_AT;
	double pss = 0;

	for (int i = 0; i < looked; i++)
		pss += (double)proc_kb(sandbox_pid(c->sb[i]), "smaps_rollup", "Pss:");
	put(what, c->n, "all_kb", (before->available - now.available) / c->n);
	put(what, c->n, "slab_kb", (now.slab - before->slab) / c->n);
	put(what, c->n, "percpu_kb", (now.percpu - before->percpu) / c->n);
	put(what, c->n, "stack_kb", (now.stack - before->stack) / c->n);
	put(what, c->n, "tables_kb", (now.tables - before->tables) / c->n);
	put(what, c->n, "init_pss_kb", pss / looked);
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

/* Idle, but not new: one command has run in each. */
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
	struct memory before;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	engine_settle(b);
	before = look();
	grow(b, &c, 10);
	create_at(b, 10);
	grow(b, &c, 100);
	put_memory("idle", &before, &c);
	grow(b, &c, 1000);
	put_memory("idle", &before, &c);
	put_keeper(1000);
	create_at(b, 1000);
	use_all(&c);
	put_memory("used", &before, &c);
	if (b->big) {
		grow(b, &c, 5000);
		put_memory("idle", &before, &c);
		put_keeper(5000);
		create_at(b, 5000);
	}
	end_all(b, &c);
	free(c.sb);
}
