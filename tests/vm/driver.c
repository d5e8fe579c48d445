/* SPDX-License-Identifier: Apache-2.0 */
/* vm-driver WHAT: one check of a feature without an option in `lodge run`. Exit status 0: it works.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"
#include "../unit/sandbox_calls.h"

static struct keeper_client *keeper;

enum { QUIET_MS = 700, MOVE_MS = 10000 };

static int fail(const char *what, const struct err *err)
{
	printf("%s: %s\n", what, err ? err->msg : "not so");
	return 1;
}

/* Bytes of output that arrive within this time; stops at the first. */
static uint64_t growth(struct guest_exec *x, int ms, struct err *err)
{
	uint64_t before;

	/* skip output that was already on its way */
	while (agent_step(guest_exec_agent(x), 100, err) == 0 && ms == QUIET_MS)
		if (guest_exec_end(x, GUEST_EXEC_OUT) ==
		    (before = guest_exec_end(x, GUEST_EXEC_OUT)))
			break;
	before = guest_exec_end(x, GUEST_EXEC_OUT);
	for (int t = 0; t < ms && guest_exec_end(x, GUEST_EXEC_OUT) == before; t += 100)
		(void)agent_step(guest_exec_agent(x), 100, err);
	return guest_exec_end(x, GUEST_EXEC_OUT) - before;
}

/* A frozen sandbox does nothing, and continues when thawed. */
static int check_freeze(struct sandbox *sb)
{
	struct guest_exec_spec spec = { .text = "while :; do echo tick; sleep 0.1; done" };
	auto_call(guest_exec_free) struct guest_exec *x = NULL;
	struct err err = { 0 };

	if (guest_exec_start(sb, &spec, &x, &err) < 0)
		return fail("start", &err);
	if (growth(x, MOVE_MS, &err) == 0)
		return fail("output before the freeze", NULL);
	if (sandbox_set_frozen(keeper, sb, true, &err) < 0)
		return fail("freeze", &err);
	(void)growth(x, QUIET_MS, &err);
	if (growth(x, QUIET_MS, &err) != 0)
		return fail("silence while frozen", NULL);
	if (sandbox_set_frozen(keeper, sb, false, &err) < 0)
		return fail("thaw", &err);
	return growth(x, MOVE_MS, &err) ? 0 : fail("output after the thaw", NULL);
}

/* A frozen sandbox can be destroyed, and nothing of it is left. */
static int check_frozen_end(struct sandbox *sb)
{
	struct guest_exec_spec spec = { .text = "sleep 777" };
	auto_call(guest_exec_free) struct guest_exec *x = NULL;
	struct err err = { 0 };

	if (guest_exec_start(sb, &spec, &x, &err) < 0)
		return fail("start", &err);
	return sandbox_set_frozen(keeper, sb, true, &err) < 0 ? fail("freeze", &err) : 0;
}

/* Limits of a running sandbox can be changed, and its usage can be read. */
static int check_limits(struct sandbox *sb)
{
	struct guest_exec_spec spec = { .text = "dd if=/dev/zero of=/dev/null bs=64M count=1" };
	struct limits l = limits_default();
	struct keeper_stats st = { 0 };
	struct guest_exec_output out;
	struct err err = { 0 };

	l.memory_bytes = 256 << 20;
	if (sandbox_set_limits(keeper, sb, &l, &err) < 0 ||
	    guest_exec_run(sb, &spec, NULL, 0, &out, &err) < 0)
		return fail("wide limits", &err);
	if (out.result.code != 0 || out.result.hits)
		return fail("64 MiB of 256", NULL);
	guest_exec_output_fini(&out);
	l.memory_bytes = 16 << 20;
	if (sandbox_set_limits(keeper, sb, &l, &err) < 0 ||
	    guest_exec_run(sb, &spec, NULL, 0, &out, &err) < 0)
		return fail("narrow limits", &err);
	if (!(out.result.hits & AGENT_HIT_MEMORY))
		return fail("64 MiB of 16 are refused", NULL);
	guest_exec_output_fini(&out);
	if (sandbox_stats(sb, &st, &err) < 0)
		return fail("stats", &err);
	printf("cpu %llu us, memory %llu, oom %llu, pids %llu\n", (unsigned long long)st.cpu_us,
	       (unsigned long long)st.memory_bytes, (unsigned long long)st.oom_kills,
	       (unsigned long long)st.pids);
	return st.cpu_us && st.oom_kills && st.pids ? 0 : fail("stats", NULL);
}

/* A sandbox from the pool gets the limits of the request that claims it. */
static int check_pool(struct sandbox *sb)
{
	if (sandbox_source(sb) != KEEPER_SOURCE_POOL)
		return fail("from the pool", NULL);
	return check_limits(sb);
}

static const struct {
	const char *name;
	int (*check)(struct sandbox *sb);
	unsigned pool;
} checks[] = {
	{ "freeze", check_freeze, 0 },
	{ "frozen-end", check_frozen_end, 0 },
	{ "limits", check_limits, 0 },
	{ "pool", check_pool, 2 },
};

static int run(int (*check)(struct sandbox *sb), unsigned pool)
{
	struct keeper_client_opts opts = { .home = "/var/lib/lodge", .oneshot = true };
	struct sandbox_spec spec = sandbox_spec_default();
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_pool want = { .min = pool, .target = pool, .max = pool };
	struct keeper_pool_state state;
	struct err err = { 0 };
	int r;

	if (keeper_client_spawn(&opts, &keeper, &err) < 0)
		return fail("keeper", &err);
	if (pool && keeper_client_pool(keeper, want, &state, &err) < 0)
		return fail("pool", &err);
	spec.demand = KEEPER_DEMAND_CGROUP;
	if (sandbox_new(keeper, &spec, &sb, &err) < 0)
		return fail("create", &err);
	r = check(sb);
	if (sandbox_destroy(sb, &err) < 0)
		return fail("destroy", &err);
	return r;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (strcmp(argv[1], checks[i].name) == 0)
			return run(checks[i].check, checks[i].pool);
	fputs("usage: vm-driver freeze|frozen-end|limits|pool\n", stderr);
	return 2;
}
