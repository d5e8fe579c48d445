/* SPDX-License-Identifier: Apache-2.0 */
/* lodge itself, through the engine and a keeper that is already running. */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"

enum { POOL = 8, SETTLE_MS = 60000, ARM_MS = 300 };

static struct sandbox *make(const struct bench *b, bool pool)
{
	struct sandbox_spec spec = sandbox_spec_default();
	struct sandbox *sb;
	struct err err;

	spec.no_pool = !pool;
	must(sandbox_new(b->keeper, &spec, &sb, &err), &err, "sandbox_new");
	return sb;
}

static void drop(struct sandbox *sb)
{
	struct err err;

	must(sandbox_destroy(sb, &err), &err, "sandbox_destroy");
	sandbox_free(sb);
}

/* `echo hi`: the time of its output, and of its result. */
static void echo(struct sandbox *sb, double *ret_out, double *ret_end)
{
	struct guest_exec_spec spec = { .text = "echo hi" };
	struct guest_exec_output o;
	struct guest_exec *x;
	struct err err;

	must(guest_exec_begin(sb, &spec, &x, &err), &err, "exec_begin");
	while (guest_exec_end(x, GUEST_EXEC_OUT) < 3 && !*guest_exec_ended(x))
		must(agent_step(guest_exec_agent(x), -1, &err), &err, "exec");
	*ret_out = now_us();
	must(guest_exec_wait(x, -1, &err), &err, "exec_wait");
	*ret_end = now_us();
	must(guest_exec_collect(x, &o, &err), &err, "exec_collect");
	err_set(&err, ERR_INTERNAL, "said '%s' and ended with %d", o.out, o.result.code);
	must(o.result.code == 0 && strcmp(o.out, "hi\n") == 0 ? 0 : -1, &err, "echo hi");
	guest_exec_output_fini(&o);
	guest_exec_free(x);
}

void engine_settle(const struct bench *b)
{
	double until = now_us() + SETTLE_MS * 1e3;

	while (proc_count_files(b->trash) > 0 && now_us() < until)
		pause_us(1000);
	pause_us(50000); /* a kernel thread removes network namespaces */
}

void engine_create(const struct bench *b, const char *what, int round, int n, unsigned gap)
{
	for (int i = 0; i < n; i++) {
		struct sandbox *sb;
		double t0, out, end;

		pause_us(gap);
		t0 = now_us();
		sb = make(b, false);
		put_sample(what, "lodge", "made", round, now_us() - t0);
		echo(sb, &out, &end);
		put_sample(what, "lodge", "out", round, out - t0);
		put_sample(what, "lodge", "end", round, end - t0);
		drop(sb);
	}
}

void engine_cold(const struct bench *b, int round)
{
	engine_create(b, "cold", round, b->n, GAP_US);
	engine_create(b, "cold_in_a_row", round, b->n, 0);
}

/* ---- commands in a running sandbox ---------------------------------------------------------- */

static void echo_often(struct sandbox *sb, const char *what, int round, int n, unsigned gap)
{
	for (int i = 0; i < n; i++) {
		double t0, out, end;

		pause_us(gap);
		t0 = now_us();
		echo(sb, &out, &end);
		put_sample(what, "lodge", "out", round, out - t0);
		put_sample(what, "lodge", "end", round, end - t0);
	}
}

/* False if lodge-init accepts the request but starts nothing. */
static bool arm(struct sandbox *sb)
{
	double until = now_us() + ARM_MS * 1e3;
	struct err err;

	if (guest_exec_set_spare_shell(sb, &(struct guest_exec_spec){ 0 }, &err) < 0) {
		put_note("armed shell: %s", err.msg);
		return false;
	}
	while (!proc_child(sandbox_pid(sb), NULL))
		if (now_us() > until)
			return false;
	pause_us(20000);
	return true;
}

void engine_live(const struct bench *b, int round)
{
	struct sandbox *sb = make(b, false);
	double ignored[2];

	echo(sb, &ignored[0], &ignored[1]);
	echo_often(sb, "live", round, b->n, GAP_US);
	if (arm(sb))
		echo_often(sb, "live_armed", round, b->n, GAP_US);
	else if (round == 0)
		put_note("no armed shell: lodge-init did not start one when asked");
	drop(sb);
}

int rested_n(const struct bench *b)
{
	return b->n / RESTED_SHARE > 3 ? b->n / RESTED_SHARE : 3;
}

void engine_rested(const struct bench *b, int round)
{
	struct sandbox *sb;

	engine_create(b, "rested", round, rested_n(b), REST_US);
	sb = make(b, false);
	echo_often(sb, "rested_live", round, rested_n(b), REST_US);
	if (arm(sb))
		echo_often(sb, "rested_armed", round, rested_n(b), REST_US);
	drop(sb);
}

/* ---- the pool ------------------------------------------------------------------------------- */

static void set_pool(const struct bench *b, unsigned n)
{
	struct keeper_pool want = { .min = n, .target = n, .max = n };
	struct keeper_pool_state st;
	struct err err;

	must(keeper_client_pool(b->keeper, want, &st, &err), &err, "pool");
}

void bench_pool(const struct bench *b, int round)
{
	int misses = 0;

	if (geteuid() != 0)
		return;
	for (int i = 0; i < b->n; i++) {
		struct sandbox *sb;
		double t0, out, end;

		set_pool(b, POOL);
		pause_us(GAP_US);
		t0 = now_us();
		sb = make(b, true);
		misses += sandbox_source(sb) != KEEPER_SOURCE_POOL;
		put_sample("pool", "lodge", "made", round, now_us() - t0);
		echo(sb, &out, &end);
		put_sample("pool", "lodge", "out", round, out - t0);
		put_sample("pool", "lodge", "end", round, end - t0);
		drop(sb);
	}
	set_pool(b, 0);
	if (misses)
		put_note("pool: %d of %d claims of round %d missed it", misses, b->n, round);
}

/* ---- destroying ----------------------------------------------------------------------------- */

void engine_destroy(const struct bench *b, int round)
{
	for (int i = 0; i < b->n; i++) {
		struct sandbox *sb = make(b, false);
		char path[256];
		double t0, out, end;
		struct err err;

		echo(sb, &out, &end);
		snprintf(path, sizeof(path), "%s/%s", b->trash, sandbox_id(sb));
		pause_us(GAP_US);
		t0 = now_us();
		must(sandbox_destroy(sb, &err), &err, "sandbox_destroy");
		put_sample("destroy", "lodge", "answered", round, now_us() - t0);
		while (access(path, F_OK) == 0)
			pause_us(50);
		put_sample("destroy", "lodge", "gone", round, now_us() - t0);
		sandbox_free(sb);
	}
}
