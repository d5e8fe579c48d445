/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of running sandboxes: which session is hibernated, which call waits, which is refused;
 * and quotas. */
#include "session_engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "engine/internal.h"
#include "count_active.h"
#include "machine/machine.h"
#include "session/session.h"
#include "service/engine_open.h"
#include "admit/quota.h"

static const struct session_opts plain = { .user = "ann" };

static bool kill_run(struct exec_handle *x)
{
	return exec_signal(x, SIGKILL, AGENT_TO_TREE, &err) == 0 && exec_wait(x, 120000, &err) == 0;
}

/* ---- hibernating for capacity ---------------------------------------------------------------- */

static void the_session_idle_longest_is_hibernated(void)
{
	ENGINE(.max_active = 2);
	CHECK(enter("a") && says("a", "echo kept > f", ""));
	pass(MINUTE);
	CHECK(enter("b"));
	pass(MINUTE);
	CHECK(says("a", "true", "")); /* so b is idle longest */
	pass(MINUTE);
	CHECK(enter("c") && count_active(engine) == 2);
	CHECK(is("a", SESSION_ACTIVE) && is("b", SESSION_HIBERNATED) && is("c", SESSION_ACTIVE));
	CHECK(is_cause("b", SESSION_CAUSE_CAPACITY));
	pass(MINUTE);
	CHECK(says("b", "echo back", "back\n") && is("a", SESSION_HIBERNATED));
	CHECK(says("a", "cat f", "kept\n") && count_active(engine) == 2);
}

static void a_busy_session_is_never_hibernated(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL, *y = NULL;
	struct capacity_report f;
	struct store_session s;

	ENGINE(.max_active = 2);
	CHECK(enter("a") && (x = start("a", "sleep 1000")));
	CHECK(enter("b") && (y = start("b", "sleep 1000")));
	pass(HOUR);
	CHECK(enter_as("c", plain, NULL) == -1);
	CHECK(err.code == ERR_UNAVAILABLE && err.sys == EAGAIN);
	CHECK_STR(err.msg, "all 2 sandboxes are in use; try again in 30 s (position 1 of 1)");
	CHECK(session_get(engine, &me, &(struct session_ref){ .key = "c" }, &s, &err) == -1);
	capacity_get_report(engine, &f);
	CHECK(f.active == 2 && f.max == 2 && f.waiting == 0 && f.idle == 0);
	CHECK(f.retry_after_ms == 30 * SECOND);
	CHECK(is("a", SESSION_ACTIVE) && is("b", SESSION_ACTIVE));
	CHECK(kill_run(y));
	capacity_get_report(engine, &f);
	CHECK(f.idle == 1 && f.retry_after_ms == SECOND);
	CHECK(enter("c") && is("b", SESSION_HIBERNATED) && !exec_has_ended(x));
}

static void a_session_with_a_background_process_is_not_hibernated(void)
{
	struct keeper_stats st;

	ENGINE(.max_active = 1);
	CHECK(enter("a") && read_stats("a", &st) == 0);
	if (!st.pids)
		SKIP("needs cgroups");
	CHECK(says("a", "setsid sh -c 'sleep 1000; true' >/dev/null 2>&1 &", ""));
	CHECK(has_pids("a", 4)); /* lodge-init, a spare shell, and these two */
	CHECK(enter_as("b", plain, NULL) == -1 && err.sys == EAGAIN && is("a", SESSION_ACTIVE));
	CHECK(says("a", "pkill -x sleep", "") && has_pids("a", 2));
	CHECK(enter("b") && is("a", SESSION_HIBERNATED));
}

static void paused_sessions_are_hibernated_last(void)
{
	struct session_ref a = key("a");

	ENGINE(.max_active = 2);
	CHECK(enter("a") && session_pause(engine, &me, &a, 0, NULL, &err) == 0);
	pass(HOUR / 10);
	CHECK(enter("b") && enter("c"));
	CHECK(is("a", SESSION_ACTIVE) && is("b", SESSION_HIBERNATED));
}

static void a_dead_sandbox_frees_capacity(void)
{
	struct session_ref a = key("a");
	struct session *n = NULL;
	pid_t pid;

	ENGINE(.max_active = 1);
	CHECK(enter("a") && says("a", "echo kept > f", ""));
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	pid = sandbox_pid(n->machine->conn);
	session_unlock(n);
	CHECK(kill(pid, SIGKILL) == 0);
	for (int i = 0; i < 2400 && session_is_valid(engine, &me, &a); i++)
		nap(50);
	CHECK(enter("b") && is("a", SESSION_HIBERNATED) && count_active(engine) == 1);
	CHECK(says("a", "cat f", "kept\n"));
}

static void adopted_sandboxes_count(void)
{
	ENGINE(.max_active = 2);
	CHECK(enter("a") && enter("b"));
	close_engine();
	CHECK(engine_open(&(struct engine_opts){ .home = home,
						 .keeper_program = keeper,
						 .no_threads = true,
						 .clock = fake_time,
						 .max_active = 1 },
			  &engine, &err) == 0);
	CHECK(count_active(engine) == 2); /* a smaller limit ends no sandbox */
	pass(MINUTE);
	CHECK(enter("c") && count_active(engine) == 1);
	CHECK(is("a", SESSION_HIBERNATED) && is("b", SESSION_HIBERNATED));
}

/* ---- the queue ------------------------------------------------------------------------------- */

enum { LONG = 120 * SECOND }; /* for what happens, on a busy machine too */

struct guest {
	pthread_t thread;
	char name[8];
	int64_t wait_ms;
	int r;
	unsigned order; /* in which it was served */
	struct err err;
};

static atomic_uint served;

static void *enter_in_thread(void *arg)
{
	struct guest *g = arg;
	struct store_binding b = { .kind = "key" };
	struct session_opts want = { .keys = &b, .nkeys = 1, .wait_ms = g->wait_ms };
	struct session_enter_result got;

	snprintf(b.key, sizeof(b.key), "%s", g->name);
	g->r = session_enter(engine, &me, &want, &got, &g->err);
	if (g->r == 0) {
		g->order = ++served;
		session_enter_result_fini(&got);
	}
	return NULL;
}

static bool start_waiter(struct guest *g, unsigned number, int64_t wait_ms)
{
	snprintf(g->name, sizeof(g->name), "g%u", number);
	g->wait_ms = wait_ms;
	return pthread_create(&g->thread, NULL, enter_in_thread, g) == 0;
}

static bool are_waiting(unsigned n)
{
	struct capacity_report f;

	for (int i = 0; i < 6000; i++) {
		capacity_get_report(engine, &f);
		if (f.waiting == n)
			return true;
		nap(20);
	}
	printf("# %u are waiting\n", f.waiting);
	return false;
}

static void the_queue_is_served_in_order(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct guest g[4] = { 0 };
	struct session_ref a = key("a");
	int bad = 0;

	ENGINE(.max_active = 1);
	served = 0;
	CHECK(enter("a") && (x = start("a", "sleep 1000")));
	for (unsigned i = 0; i < 4; i++) {
		CHECK(start_waiter(&g[i], i, LONG));
		CHECK(are_waiting(i + 1));
	}
	/* a later call that does not wait is not served before them */
	CHECK(enter_as("late", plain, NULL) == -1 && err.sys == EAGAIN);
	CHECK(strstr(err.msg, "(position 5 of 5)"));
	CHECK(session_destroy(engine, &me, &a, NULL, NULL, &err) == 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(g[i].thread, NULL);
		bad += g[i].r != 0 || g[i].order != i + 1;
		if (g[i].r)
			printf("# %s\n", g[i].err.msg);
		/* each is idle at once and is hibernated for the next */
	}
	CHECK(bad == 0 && count_active(engine) == 1);
	CHECK(is("g3", SESSION_ACTIVE) && is("g0", SESSION_HIBERNATED));
}

static void *wait_for_capacity(void *arg)
{
	struct guest *g = arg;

	g->r = capacity_acquire(engine, LONG, &g->err);
	return NULL;
}

static void a_new_call_does_not_overtake_the_queue(void)
{
	struct guest g = { 0 };
	int late;

	ENGINE(.max_active = 1);
	CHECK(capacity_acquire(engine, 0, &err) == 0);
	CHECK(pthread_create(&g.thread, NULL, wait_for_capacity, &g) == 0 && are_waiting(1));
	pthread_mutex_lock(&engine->mutex);
	engine->capacity
		.active--; /* there is capacity, but the waiting call was not signalled yet */
	pthread_mutex_unlock(&engine->mutex);
	late = capacity_acquire(engine, 0, &err);
	pthread_join(g.thread, NULL);
	CHECK(late == -1 && err.sys == EAGAIN && g.r == 0 && count_active(engine) == 1);
	capacity_release(engine);
	CHECK(capacity_acquire(engine, 0, &err) == 0);
	capacity_release(engine);
}

static void a_session_that_becomes_idle_is_hibernated_for_the_queue(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct guest g = { 0 };

	ENGINE(.max_active = 1);
	CHECK(enter("a") && (x = start("a", "sleep 1000")));
	CHECK(start_waiter(&g, 1, LONG) && are_waiting(1));
	CHECK(kill_run(x));
	pthread_join(g.thread, NULL);
	CHECK(g.r == 0 && is("a", SESSION_HIBERNATED));
}

static void a_full_queue_refuses_at_once(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct guest g[2] = { 0 };

	ENGINE(.max_active = 1, .queue_max = 2);
	CHECK(enter("a") && (x = start("a", "sleep 1000")));
	for (unsigned i = 0; i < 2; i++)
		CHECK(start_waiter(&g[i], i, LONG) && are_waiting(i + 1));
	CHECK(enter_as("b", (struct session_opts){ .wait_ms = LONG }, NULL) == -1);
	CHECK(strstr(err.msg, "(position 3 of 3)"));
	CHECK(kill_run(x));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(g[i].thread, NULL);
	CHECK(g[0].r == 0 && g[1].r == 0 && are_waiting(0));
}

static void waiting_times_out(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct guest g[2] = { 0 };

	ENGINE(.max_active = 1);
	CHECK(enter("a") && (x = start("a", "sleep 1000")));
	CHECK(start_waiter(&g[0], 0, SECOND) && start_waiter(&g[1], 1, LONG));
	pthread_join(g[0].thread, NULL);
	CHECK(g[0].r == -1 && g[0].err.code == ERR_UNAVAILABLE && g[0].err.sys == EAGAIN);
	CHECK(strstr(g[0].err.msg, "(position "));
	CHECK(are_waiting(1) && kill_run(x)); /* the next one takes its place */
	pthread_join(g[1].thread, NULL);
	CHECK(g[1].r == 0 && are_waiting(0));
}

static void concurrent_calls_each_free_capacity(void)
{
	struct guest g[4] = { 0 };
	char name[8];
	int bad = 0;

	ENGINE(.max_active = 4);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		CHECK(enter(name));
		pass(SECOND);
	}
	for (unsigned i = 0; i < 4; i++) /* none of them can wait */
		CHECK(start_waiter(&g[i], i, 0));
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(g[i].thread, NULL);
		bad += g[i].r != 0;
		if (g[i].r)
			printf("# %s\n", g[i].err.msg);
	}
	CHECK(bad == 0 && count_active(engine) == 4);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		CHECK(is(name, SESSION_HIBERNATED));
	}
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static struct store_quota quota(const char *user)
{
	struct store_quota q = { 0 };

	snprintf(q.tenant, sizeof(q.tenant), "%s", me.tenant);
	snprintf(q.user, sizeof(q.user), "%s", user);
	return q;
}

/* Removes the quotas of a test before the next. */
static void no_quotas(void)
{
	struct store_quota ann = quota("ann"), all = quota("");

	if (engine) {
		quota_set(engine, &ann, &err);
		quota_set(engine, &all, &err);
	}
}

static void sandboxes_of_a_user_are_limited(void)
{
	struct session_opts bob = { .user = "bob" };
	struct store_quota q = quota("ann");
	struct store_usage u;

	ENGINE();
	q.sandboxes = 2;
	CHECK(quota_set(engine, &q, &err) == 0 && enter("a") && enter("b"));
	CHECK(enter_as("c", plain, NULL) == -1 && err.code == ERR_LIMIT);
	CHECK_STR(err.msg, "user 'ann' is at its quota of sandboxes: 2 of 2 used");
	CHECK(enter_as("c", bob, NULL) == 0); /* another user */
	CHECK(enter("a")); /* it already has a sandbox */
	CHECK(session_hibernate(engine, &me, &(struct session_ref){ .key = "a" }, 0, NULL, &err) ==
	      0);
	CHECK(enter("d"));
	CHECK(session_resume(engine, &me, &(struct session_ref){ .key = "a" }, 0,
			     &(struct session_enter_result){ 0 }, &err) == -1 &&
	      err.code == ERR_LIMIT && is("a", SESSION_HIBERNATED));
	CHECK(quota_get(engine, me.tenant, "ann", &q, &u, &err) == 0);
	CHECK(q.sandboxes == 2 && u.active == 2 && u.sessions == 3);
	CHECK(quota_get(engine, me.tenant, "nosuch", &q, NULL, &err) == 0 && q.sandboxes == 0);
	no_quotas();
}

static void sandboxes_of_a_tenant_are_limited(void)
{
	struct session_opts bob = { .user = "bob" };
	struct store_quota q = quota("");
	struct store_usage u;

	ENGINE();
	q.sandboxes = 2;
	CHECK(quota_set(engine, &q, &err) == 0 && enter("a") && enter_as("b", bob, NULL) == 0);
	CHECK(enter_as("c", plain, NULL) == -1 && err.code == ERR_LIMIT);
	CHECK_STR(err.msg, "tenant 'acme' is at its quota of sandboxes: 2 of 2 used");
	CHECK(quota_get(engine, me.tenant, NULL, &q, &u, &err) == 0 && u.active == 2);
	no_quotas();
}

static void memory_counts_while_a_sandbox_runs(void)
{
	struct store_quota q = quota("ann");
	struct store_session s;

	ENGINE();
	CHECK(enter("a") && look("a", &s) >= 0);
	if (s.memory_bytes <= 0)
		SKIP("the default has no memory limit");
	q.memory_bytes = s.memory_bytes + s.memory_bytes / 2;
	CHECK(quota_set(engine, &q, &err) == 0);
	CHECK(enter_as("b", plain, NULL) == -1 && err.code == ERR_LIMIT);
	CHECK(strstr(err.msg, "memory bytes"));
	CHECK(session_hibernate(engine, &me, &(struct session_ref){ .key = "a" }, 0, NULL, &err) ==
	      0);
	CHECK(enter("b"));
	no_quotas();
}

static void disk_of_hibernated_sessions_counts(void)
{
	struct store_quota q = quota("ann");
	struct store_session s;

	ENGINE();
	CHECK(enter("a") && look("a", &s) >= 0);
	if (s.disk_bytes <= 0)
		SKIP("the default has no disk limit");
	CHECK(session_hibernate(engine, &me, &(struct session_ref){ .key = "a" }, 0, NULL, &err) ==
	      0);
	q.disk_bytes = s.disk_bytes + s.disk_bytes / 2;
	CHECK(quota_set(engine, &q, &err) == 0);
	CHECK(enter_as("b", plain, NULL) == -1 && err.code == ERR_LIMIT);
	CHECK(strstr(err.msg, "disk bytes"));
	CHECK(enter("a")); /* its own disk counts once */
	no_quotas();
}

static void cpu_time_counts_and_is_limited(void)
{
	struct store_quota q = quota("ann");
	struct session_ref a = key("a");
	struct store_usage before, after;
	struct keeper_stats st;

	ENGINE();
	CHECK(enter("a") && read_stats("a", &st) == 0);
	if (!st.cpu_us)
		SKIP("needs cgroups");
	CHECK(quota_get(engine, me.tenant, "ann", &q, &before, &err) == 0);
	CHECK(says("a", "n=0; while [ $n -lt 60000 ]; do n=$((n+1)); done", ""));
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(quota_get(engine, me.tenant, "ann", &q, &after, &err) == 0);
	CHECK(after.cpu_ms > before.cpu_ms);
	q = quota("ann");
	q.cpu_ms = after.cpu_ms;
	CHECK(quota_set(engine, &q, &err) == 0);
	CHECK(enter_as("a", plain, NULL) == -1 && err.code == ERR_LIMIT);
	CHECK(strstr(err.msg, "cpu milliseconds") && is("a", SESSION_HIBERNATED));
	q.cpu_ms++;
	CHECK(quota_set(engine, &q, &err) == 0 && enter("a"));
	no_quotas();
}

static void a_bad_quota_is_refused(void)
{
	struct store_quota q = quota("ann");

	ENGINE();
	q.disk_bytes = -1;
	CHECK(quota_set(engine, &q, &err) == -1 && err.code == ERR_INVALID);
	CHECK(strstr(err.msg, "disk_bytes"));
	CHECK(quota_get(engine, "", "ann", &q, NULL, &err) == -1 && err.code == ERR_INVALID);
}

int main(void)
{
	make_home();
	RUN(the_session_idle_longest_is_hibernated);
	RUN(a_busy_session_is_never_hibernated);
	RUN(a_session_with_a_background_process_is_not_hibernated);
	RUN(paused_sessions_are_hibernated_last);
	RUN(a_dead_sandbox_frees_capacity);
	RUN(adopted_sandboxes_count);
	RUN(the_queue_is_served_in_order);
	RUN(a_new_call_does_not_overtake_the_queue);
	RUN(a_session_that_becomes_idle_is_hibernated_for_the_queue);
	RUN(a_full_queue_refuses_at_once);
	RUN(waiting_times_out);
	RUN(concurrent_calls_each_free_capacity);
	RUN(sandboxes_of_a_user_are_limited);
	RUN(sandboxes_of_a_tenant_are_limited);
	RUN(memory_counts_while_a_sandbox_runs);
	RUN(disk_of_hibernated_sessions_counts);
	RUN(cpu_time_counts_and_is_limited);
	RUN(a_bad_quota_is_refused);
	no_quotas();
	remove_home();
	return tap_done();
}
