/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: running, dead or unknown; and reads that change nothing. */
#include "session_engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "machine/machine.h"
#include "session/session.h"
#include "count_active.h"
#include "service/timers.h"
#include "count_writes.h"

enum { LONG = 120000 }; /* for a reply that comes, on a busy machine too */

static pid_t init_of(const char *name)
{
	struct session_ref ref = key(name);
	struct session *n = NULL;
	pid_t pid;

	if (session_lock_ref(engine, &me, &ref, &n, &err) < 0)
		return -1;
	pid = n->machine ? sandbox_pid(n->machine->conn) : -1;
	session_unlock(n);
	return pid;
}

/* The user its commands run as; NULL: unchanged. */
static bool set_user(const char *name, const char *user)
{
	struct session_ref ref = key(name);
	struct session *n = NULL;

	if (session_lock_ref(engine, &me, &ref, &n, &err) < 0 || !n->machine)
		return false;
	pthread_mutex_lock(&n->machine->mutex);
	free(n->machine->spec.user);
	n->machine->spec.user = user ? strdup(user) : NULL;
	pthread_mutex_unlock(&n->machine->mutex);
	session_unlock(n);
	return true;
}

static enum session_probe_status probe(const char *name, struct session_probe_result *ret)
{
	struct session_ref ref = key(name);
	struct session_probe_result p = { 0 };

	if (session_probe(engine, &me, &ref, 0, &p, &err) < 0)
		printf("# %s\n", err.msg);
	if (ret)
		*ret = p;
	return p.status;
}

static void a_healthy_sandbox_is_connected(void)
{
	struct session_probe_result p;
	struct store_session before, after;
	struct store_exec_list l = { 0 };
	struct session_ref a = key("a");

	ENGINE();
	CHECK(enter("a") && look("a", &before) == SESSION_ACTIVE);
	pass(MINUTE);
	CHECK(probe("a", &p) == SESSION_PROBE_CONNECTED && p.expires_at == before.expires_at);
	CHECK(!p.retry_after_ms && !*p.cause.code);
	CHECK(look("a", &after) ==
	      SESSION_ACTIVE); /* its lifetime is not extended, and nothing is recorded */
	CHECK(after.hibernate_at == before.hibernate_at && after.version == before.version);
	CHECK(after.last_activity_at == before.last_activity_at);
	CHECK(exec_list(engine, &me, &a, (struct store_page){ .limit = 10 }, &l, &err) == 0);
	CHECK(l.count == 0);
	store_exec_list_fini(&l);
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

static void without_a_sandbox_nothing_is_probed(void)
{
	struct session_opts asleep = { .user = "ann", .no_start = true };
	struct session_ref a = key("a"), none = key("none");
	struct session_probe_result p;

	ENGINE();
	CHECK(enter_as("n", asleep, NULL) == 0 && probe("n", NULL) == SESSION_PROBE_NO_SANDBOX);
	CHECK(enter("a") && session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(probe("a", &p) == SESSION_PROBE_NO_SANDBOX);
	CHECK_STR(p.cause.code, "asked");
	CHECK(session_archive(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(probe("a", NULL) == SESSION_PROBE_NO_SANDBOX && is("a", SESSION_ARCHIVED));
	CHECK(session_probe(engine, &me, &none, 0, &p, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(session_destroy(engine, &me, &a, NULL, NULL, &err) == 0);
	CHECK(session_probe(engine, &me, &a, 0, &p, &err) == -1 && err.sys == ESTALE);
}

/* Until then its connection is open, and a probe may wait in vain. */
static bool wait_dead(pid_t pid)
{
	char path[32], text[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 12000; i++, nap(10)) {
		FILE *f = fopen(path, "r");
		const char *state = NULL;

		if (!f)
			return true;
		if (fgets(text, sizeof(text), f))
			state = strrchr(text, ')');
		fclose(f);
		if (!state || state[2] == 'Z' || state[2] == 'X')
			return true;
	}
	return false;
}

static void a_killed_sandbox_is_expired(void)
{
	struct session_ref a = key("a");
	struct session_probe_result p;
	pid_t pid;

	ENGINE();
	CHECK(enter("a") && says("a", "echo kept > f", ""));
	pid = init_of("a");
	CHECK(pid > 1 && kill(pid, SIGKILL) == 0 && wait_dead(pid));
	CHECK(probe("a", &p) == SESSION_EXPIRED);
	CHECK_STR(p.cause.code, "stopped");
	CHECK(is("a", SESSION_HIBERNATED) && is_cause("a", SESSION_CAUSE_STOPPED));
	CHECK(!session_is_valid(engine, &me, &a) && count_active(engine) == 0);
	CHECK(probe("a", NULL) == SESSION_PROBE_NO_SANDBOX);
	CHECK(says("a", "cat f", "kept\n") && probe("a", NULL) == SESSION_PROBE_CONNECTED);
}

static void a_missing_sandbox_is_gone(void)
{
	struct session_probe_result p;
	struct store_session s;
	pid_t pid;

	ENGINE();
	CHECK(enter("a") && look("a", &s) == SESSION_ACTIVE);
	pid = init_of("a");
	CHECK(keeper_conn_destroy(engine, s.sandbox, &err) ==
	      0); /* without the engine's knowledge */
	CHECK(pid > 1 && wait_dead(pid));
	CHECK(probe("a", &p) == SESSION_EXPIRED);
	CHECK_STR(p.cause.code, "gone");
	CHECK(is("a", SESSION_NONE) && count_active(engine) == 0);
}

static void a_sandbox_is_given_up_after_three_timeouts(void)
{
	struct store_session before, s;
	struct session_probe_result p;
	pid_t pid;

	ENGINE(.probe_ms = 500);
	CHECK(enter("a") && says("a", "echo kept > f", "") && look("a", &before) >= 0);
	pid = init_of("a");
	CHECK(pid > 1 && kill(pid, SIGSTOP) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(probe("a", &p) == SESSION_PROBE_UNKNOWN && p.retry_after_ms > 0);
		CHECK_STR(p.cause.code, "transient");
		CHECK(look("a", &s) == SESSION_ACTIVE && s.version == before.version);
		CHECK(!strcmp(s.sandbox, before.sandbox) && !*s.cause.code);
	}
	CHECK(probe("a", &p) == SESSION_EXPIRED);
	CHECK_STR(p.cause.code, "unavailable");
	CHECK(is("a", SESSION_HIBERNATED) && count_active(engine) == 0);
	CHECK(says("a", "cat f", "kept\n"));
	engine->opts.probe_ms = LONG;
	CHECK(probe("a", NULL) == SESSION_PROBE_CONNECTED);
}

static void a_reply_resets_the_count(void)
{
	pid_t pid;

	ENGINE();
	CHECK(enter("a"));
	pid = init_of("a");
	for (int i = 0; i < 3; i++) {
		engine->opts.probe_ms = 500;
		CHECK(kill(pid, SIGSTOP) == 0 && probe("a", NULL) == SESSION_PROBE_UNKNOWN);
		CHECK(probe("a", NULL) == SESSION_PROBE_UNKNOWN && kill(pid, SIGCONT) == 0);
		engine->opts.probe_ms = LONG;
		CHECK(probe("a", NULL) == SESSION_PROBE_CONNECTED);
	}
	CHECK(is("a", SESSION_ACTIVE) && says("a", "echo alive", "alive\n"));
	CHECK(init_of("a") == pid);
}

static void a_short_deadline_does_not_count(void)
{
	struct session_ref a = key("a");
	struct session_probe_result p;
	pid_t pid;

	ENGINE();
	CHECK(enter("a"));
	pid = init_of("a");
	CHECK(kill(pid, SIGSTOP) == 0);
	for (int i = 0; i < 5; i++) {
		CHECK(session_probe(engine, &me, &a, 20, &p, &err) == 0);
		CHECK(p.status == SESSION_PROBE_UNKNOWN);
	}
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(probe("a", NULL) == SESSION_PROBE_CONNECTED && is("a", SESSION_ACTIVE));
}

static void *probe_once(void *arg)
{
	struct session_ref a = key("a");
	struct err ignored;

	session_probe(engine, &me, &a, 0, arg, &ignored);
	return NULL;
}

static void concurrent_probes_count_as_one_timeout(void)
{
	struct session_probe_result p[5] = { 0 };
	pthread_t t[5];
	int unsure = 0;
	pid_t pid;

	ENGINE(.probe_ms = 3000);
	CHECK(enter("a"));
	pid = init_of("a");
	CHECK(kill(pid, SIGSTOP) == 0);
	for (int i = 0; i < 5; i++)
		CHECK(pthread_create(&t[i], NULL, probe_once, &p[i]) == 0);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 5; i++)
		unsure += p[i].status == SESSION_PROBE_UNKNOWN;
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(unsure == 5 && is("a", SESSION_ACTIVE));
}

static void a_sandbox_can_be_destroyed_during_a_probe(void)
{
	struct session_ref a = key("a");
	struct session_probe_result p = { 0 };
	pthread_t t;
	pid_t pid;

	ENGINE(.probe_ms = 60 * SECOND);
	CHECK(enter("a"));
	pid = init_of("a");
	CHECK(kill(pid, SIGSTOP) == 0 && pthread_create(&t, NULL, probe_once, &p) == 0);
	nap(200);
	CHECK(session_destroy(engine, &me, &a, NULL, NULL, &err) == 0);
	pthread_join(t, NULL); /* at once, because the connection ends */
	CHECK(p.status == 0 && count_active(engine) == 0);
}

static void a_sandbox_that_could_not_be_adopted_times_out_too(void)
{
	struct session_probe_result p;
	pid_t pid;

	ENGINE();
	CHECK(enter("a") && says("a", "echo kept > f", ""));
	pid = init_of("a");
	CHECK(kill(pid, SIGSTOP) == 0);
	close_engine();
	CHECK(open_engine((struct engine_opts){ 0 }));
	CHECK(is("a", SESSION_ACTIVE) && init_of("a") == -1);
	CHECK(probe("a", &p) == SESSION_PROBE_UNKNOWN && is("a", SESSION_ACTIVE));
	engine->opts.probe_failures = 1;
	CHECK(probe("a", &p) == SESSION_EXPIRED && is("a", SESSION_HIBERNATED));
	CHECK_STR(p.cause.code, "unavailable");
	CHECK(says("a", "cat f", "kept\n"));
}

static void a_paused_sandbox_stays_paused(void)
{
	struct session_ref a = key("a");
	struct session_probe_result p;
	struct store_session s;

	ENGINE();
	CHECK(enter("a") && session_pause(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(probe("a", &p) == SESSION_PROBE_CONNECTED);
	CHECK_STR(p.cause.text, "paused");
	CHECK(look("a", &s) == SESSION_ACTIVE && s.paused);
}

static void a_failed_probe_command_is_not_death(void)
{
	struct session_probe_result p;

	ENGINE(.probe_failures = 1);
	CHECK(enter("a"));
	CHECK(set_user("a", "nosuch-user"));
	CHECK(probe("a", &p) == SESSION_PROBE_UNKNOWN && probe("a", &p) == SESSION_PROBE_UNKNOWN);
	CHECK(*p.cause.text && is("a", SESSION_ACTIVE));
	CHECK(set_user("a", NULL) && probe("a", NULL) == SESSION_PROBE_CONNECTED);
}

static void a_failed_session_that_replies_is_active_again(void)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_ERROR, "no luck", "test" };
	struct session_ref a = key("a");
	struct store_session before, s;
	struct session *n = NULL;

	ENGINE();
	CHECK(enter("a") && look("a", &before) >= 0);
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	CHECK(session_transition(n, SESSION_EVENT_HIBERNATE, &why, NULL, NULL, &err) == 0);
	CHECK(session_transition(n, SESSION_ERROR, &why, NULL, NULL, &err) == 0);
	session_unlock(n);
	CHECK(look("a", &s) == SESSION_FAILED && !s.due_at);
	CHECK(probe("a", NULL) == SESSION_PROBE_CONNECTED);
	CHECK(look("a", &s) == SESSION_ACTIVE && !*s.cause.code);
	CHECK(s.hibernate_at == before.hibernate_at && s.expires_at == before.expires_at);
	CHECK(s.due_at == before.due_at);
}

static void reads_change_nothing(void)
{
	static const struct caller other = { "other", "test" };
	struct store_session_filter f = { .tenant = me.tenant };
	struct store_session_list l = { 0 };
	struct store_event_list ev = { 0 };
	struct session_ref a = key("a");
	struct store_session s;
	struct capacity_report full;
	struct keeper_stats st;
	int64_t before;

	ENGINE();
	CHECK(enter("a") && says("a", "true", "") && enter("b"));
	CHECK(session_hibernate(engine, &me, &(struct session_ref){ .key = "b" }, 0, NULL, &err) ==
	      0);
	engine_run_timers(engine);
	before = count_writes(engine);
	for (int i = 0; i < 3; i++) {
		pass(SECOND);
		CHECK(session_get(engine, &me, &a, &s, &err) == 0);
		store_session_fini(&s);
		CHECK(session_list(engine, &f, (struct store_page){ .limit = 10 }, &l, &err) == 0);
		CHECK(l.count == 2);
		store_session_list_fini(&l);
		CHECK(session_is_valid(engine, &me, &a));
		CHECK(!session_is_valid(engine, &me, &(struct session_ref){ .key = "b" }));
		CHECK(probe("a", NULL) == SESSION_PROBE_CONNECTED);
		CHECK(probe("b", NULL) == SESSION_PROBE_NO_SANDBOX);
		CHECK(session_stats(engine, &me, &a, &st, &err) == 0);
		CHECK(engine_events(engine, 0, me.tenant, NULL, 10, &ev, &err) == 0);
		store_event_list_fini(&ev);
		capacity_get_report(engine, &full);
		CHECK(engine_run_timers(engine) == 0);
	}
	CHECK(!session_is_valid(engine, &other, &a));
	CHECK(look("a", &s) == SESSION_ACTIVE);
	CHECK(session_is_foreign(engine, &other, s.id) && !session_is_foreign(engine, &me, s.id));
	CHECK(!session_is_foreign(engine, &other, "ses_nobodys") &&
	      !session_is_foreign(engine, &other, ""));
	CHECK(count_writes(engine) == before);
	CHECK(session_destroy(engine, &me, &a, &(struct session_cause_opts){ 0 }, NULL, &err) == 0);
	CHECK(!session_is_foreign(engine, &other, s.id));
}

int main(void)
{
	make_home();
	RUN(a_healthy_sandbox_is_connected);
	RUN(without_a_sandbox_nothing_is_probed);
	RUN(a_killed_sandbox_is_expired);
	RUN(a_missing_sandbox_is_gone);
	RUN(a_sandbox_is_given_up_after_three_timeouts);
	RUN(a_reply_resets_the_count);
	RUN(a_short_deadline_does_not_count);
	RUN(concurrent_probes_count_as_one_timeout);
	RUN(a_sandbox_can_be_destroyed_during_a_probe);
	RUN(a_sandbox_that_could_not_be_adopted_times_out_too);
	RUN(a_paused_sandbox_stays_paused);
	RUN(a_failed_probe_command_is_not_death);
	RUN(a_failed_session_that_replies_is_active_again);
	RUN(reads_change_nothing);
	remove_home();
	return tap_done();
}
