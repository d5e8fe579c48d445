/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, and what else the timers find. */
#include "session_engine.h"

#include <errno.h>
#include <signal.h>

#include "engine/internal.h"
#include "engine/start_progress.h"
#include "session/probe.h"
#include "machine/machine.h"
#include "session/session.h"
#include "exec/side_conn.h"
#include "sandbox/guest_exec_sync.h"
#include "count_active.h"
#include "service/engine_open.h"
#include "service/timers.h"
#include "count_writes.h"

static const struct session_opts brief = { .user = "ann",
					   .idle_timeout_ms = 10 * MINUTE,
					   .max_lifetime_ms = 2 * HOUR };

/* ---- idle ------------------------------------------------------------------------------------ */

static void idle_sessions_are_hibernated(void)
{
	struct store_session s;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && says("a", "echo kept > f", ""));
	pass(10 * MINUTE - SECOND);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	pass(2 * SECOND);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(is_cause("a", SESSION_CAUSE_IDLE));
	CHECK(look("a", &s) >= 0 && s.runtime == SESSION_RUNTIME_RESUMABLE && s.generation == 1);
	CHECK(!s.hibernate_at && !s.expires_at && s.idle_timeout_ms == 10 * MINUTE);
	CHECK(count_active(engine) == 0 && engine_run_timers(engine) == 0);
	CHECK(says("a", "cat f", "kept\n"));
}

static void use_postpones_the_deadline_in_memory_too(void)
{
	struct session_ref a = key("a");

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0);
	for (int i = 0; i < 5; i++) { /* less than what is stored at once */
		pass(7 * SECOND);
		CHECK(says("a", "true", ""));
	}
	pass(10 * MINUTE - 30 * SECOND);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	CHECK(session_extend(engine, &me, &a, 20 * MINUTE, 0, NULL, NULL, &err) == 0);
	pass(19 * MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	pass(2 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

static void a_running_command_is_activity(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && (x = start("a", "sleep 1000")));
	for (int i = 0; i < 3; i++) {
		pass(11 * MINUTE);
		CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	}
	CHECK(exec_signal(x, SIGKILL, AGENT_TO_TREE, &err) == 0 && exec_wait(x, 120000, &err) == 0);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

static void a_side_connection_is_activity(void)
{
	struct session_ref a = key("a");
	struct side_conn *l = NULL;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0);
	CHECK(side_conn_open(engine, &me, &a, false, &l, NULL, &err) == 0);
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	side_conn_close(l);
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

/* The shell that ran a command may end while the next spare one starts: that is activity too. */
static bool hibernates_soon(const char *name)
{
	for (int i = 0; i < 10; i++) {
		pass(11 * MINUTE);
		if (engine_run_timers(engine) == 1)
			return is(name, SESSION_HIBERNATED);
		usleep(100000);
	}
	return false;
}

static void a_background_process_is_activity(void)
{
	struct keeper_stats st;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0);
	CHECK(read_stats("a", &st) == 0);
	if (!st.pids)
		SKIP("needs cgroups");
	CHECK(says("a", "setsid sh -c 'sleep 1000; true' >/dev/null 2>&1 & echo $!>pid", ""));
	CHECK(has_pids("a", 4)); /* lodge-init, a spare shell, and these two */
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	CHECK(says("a", "kill $(cat pid) && pkill -x sleep", "") && has_pids("a", 2));
	CHECK(hibernates_soon("a"));
}

/* Without bash, so that no spare shell is started. */
static bool does(const char *name, const char *const *argv)
{
	struct session_ref ref = key(name);
	struct exec_opts how = { .argv = argv, .timeout_ms = 120000 };
	struct guest_exec_output o;

	if (exec_run(engine, &me, &ref, &how, NULL, 0, &o, &err) < 0)
		return false;
	guest_exec_output_fini(&o);
	return o.result.code == 0;
}

static void a_working_process_is_detected_by_its_cpu_time(void)
{
	static const char *const begin[] = {
		"setsid", "-f", "sh", "-c", "echo $$ > pid; exec >/dev/null; while :; do :; done",
		NULL
	};
	static const char *const end[] = { "sh", "-c", "kill -9 $(cat pid)", NULL };
	struct keeper_stats st;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0);
	CHECK(does("a", begin) && read_stats("a", &st) == 0);
	if (!st.pids)
		SKIP("needs cgroups");
	CHECK(st.pids == 2);
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE)); /* it was observed */
	CHECK(does("a", end) && has_pids("a", 1));
	/* CPU time from before the observation does not count */
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

static void cpu_time_since_the_last_check_is_work(void)
{
	struct session_ref a = key("a");
	struct keeper_stats st;
	struct session *n = NULL;
	bool first, little, much;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0);
	CHECK(says("a", "n=0; while [ $n -lt 60000 ]; do n=$((n+1)); done", ""));
	CHECK(has_pids("a", 2)); /* lodge-init and a spare shell */
	CHECK(read_stats("a", &st) == 0);
	if (!st.pids)
		SKIP("needs cgroups");
	CHECK(st.cpu_us > 20000 && session_lock_ref(engine, &me, &a, &n, &err) == 0);
	first = session_is_working(n);
	pass(MINUTE);
	little = session_is_working(n);
	pass(SECOND);
	n->cpu_us = 0; /* as if all of it was used in that second */
	much = session_is_working(n);
	session_unlock(n);
	CHECK(!first && !little && much);
}

static void idle_sessions_can_be_destroyed(void)
{
	struct session_opts want = brief;
	struct session_ref a = key("a");
	struct store_tombstone t;
	struct store_session s;

	ENGINE();
	want.on_idle = SESSION_END_DESTROY;
	CHECK(enter_as("a", want, NULL) == 0);
	pass(11 * MINUTE);
	CHECK(engine_run_timers(engine) == 1);
	CHECK(session_get(engine, &me, &a, &s, &err) == -1 && err.code == ERR_NOT_FOUND &&
	      err.sys == ESTALE);
	CHECK(session_tombstone(engine, &me, &a, &t, &err) == 0);
	CHECK_STR(t.cause.code, "idle");
	CHECK_STR(t.cause.actor, "lodge");
	CHECK(count_active(engine) == 0);
}

/* It was hibernated for another reason: for capacity, or on request. */
static void hibernated_sessions_are_destroyed_if_configured(void)
{
	struct session_opts want = brief;
	struct session_ref a = key("a");
	struct store_tombstone t;

	ENGINE();
	want.on_idle = SESSION_END_DESTROY;
	CHECK(enter_as("a", want, NULL) == 0 && enter_as("b", brief, NULL) == 0);
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(session_hibernate(engine, &me, &(struct session_ref){ .key = "b" }, 0, NULL, &err) ==
	      0);
	pass(9 * MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_HIBERNATED));
	CHECK(says("a", "true", "")); /* used again, so the time starts anew */
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	pass(9 * MINUTE);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_HIBERNATED));
	pass(2 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && look("a", NULL) == -1 && err.sys == ESTALE);
	CHECK(session_tombstone(engine, &me, &a, &t, &err) == 0);
	CHECK_STR(t.cause.code, "idle");
	CHECK(is("b", SESSION_HIBERNATED));
}

static void reads_extend_nothing(void)
{
	struct session_ref a = key("a");
	struct side_conn *l = NULL;
	struct store_session before, after;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && look("a", &before) >= 0);
	pass(9 * MINUTE);
	CHECK(side_conn_open_readonly(engine, &me, &a, &l, &err) == 0 && side_conn_sandbox(l));
	CHECK(look("a", &after) >= 0 && after.hibernate_at == before.hibernate_at);
	pass(2 * MINUTE);
	side_conn_close(l);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(side_conn_open_readonly(engine, &me, &a, &l, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(is("a", SESSION_HIBERNATED));
	CHECK(side_conn_open_readonly(engine, &me, &(struct session_ref){ .key = "none" }, &l,
				      &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND);
}

static void a_working_directory_is_created_for_the_user(void)
{
	struct session_ref a = key("a");
	struct template over;
	struct session_opts want = brief;

	ENGINE();
	template_init(&over);
	over.workdir = strdup("/work space/deep");
	want.overrides = &over;
	CHECK(enter_as("a", want, NULL) == 0);
	CHECK(says("a", "pwd; stat -c '%u:%g %a' . ..; touch f",
		   "/work space/deep\n1000:1000 755\n0:0 755\n"));
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(says("a", "pwd; ls", "/work space/deep\nf\n"));
	free(over.workdir);
	over.workdir = strdup("/etc/passwd/x"); /* not a reason to fail */
	CHECK(enter_as("b", want, NULL) == 0);
	template_fini(&over);
}

/* ---- lifetime -------------------------------------------------------------------------------- */

static void a_lifetime_ends_under_a_running_command(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_session s;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && (x = start("a", "echo kept > f; sleep 1000")));
	for (int i = 0; i < 23; i++) { /* nearly two hours */
		pass(5 * MINUTE);
		CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE));
	}
	pass(5 * MINUTE - 5 * SECOND);
	CHECK(look("a", &s) >= 0 && s.expires_at - the_time == 5 * SECOND);
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_ACTIVE) && !exec_has_ended(x));
	pass(5 * SECOND);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(is_cause("a", SESSION_CAUSE_EXPIRED));
	CHECK(exec_wait(x, 120000, &err) == 0 && exec_has_ended(x));
	CHECK(says("a", "cat f", "kept\n"));
}

static void an_idle_session_ends_before_the_last_seconds_of_its_lifetime(void)
{
	struct session_opts want = brief;
	struct session_ref a = key("a");
	struct store_tombstone t;

	ENGINE();
	want.idle_timeout_ms = 3 * HOUR;
	want.on_expire = SESSION_END_DESTROY;
	CHECK(enter_as("a", want, NULL) == 0);
	pass(2 * HOUR - SESSION_EXPIRY_BUFFER_MS - 1);
	CHECK(engine_run_timers(engine) == 0 && session_is_valid(engine, &me, &a));
	CHECK(session_activity(engine, &me, &a, NULL, &err) == 0);
	pass(1);
	CHECK(!session_is_valid(engine, &me, &a)); /* all APIs agree */
	CHECK(session_extend(engine, &me, &a, 0, 0, NULL, NULL, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	CHECK(session_activity(engine, &me, &a, NULL, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(engine_run_timers(engine) == 1);
	CHECK(session_tombstone(engine, &me, &a, &t, &err) == 0);
	CHECK_STR(t.cause.code, "expired");
}

static void deadlines_that_passed_without_an_engine(void)
{
	struct session_opts gone = brief, old = brief;
	struct session_ref b = key("b");
	struct store_tombstone t;

	ENGINE();
	gone.on_idle = SESSION_END_DESTROY;
	old.idle_timeout_ms = 2 * HOUR;
	CHECK(enter_as("a", brief, NULL) == 0 && says("a", "echo kept > f", ""));
	CHECK(enter_as("b", gone, NULL) == 0 && enter_as("c", old, NULL) == 0);
	close_engine();
	pass(3 * HOUR);
	CHECK(open_engine((struct engine_opts){ 0 }) && count_active(engine) == 3);
	CHECK(engine_run_timers(engine) == 3 && count_active(engine) == 0);
	CHECK(is("a", SESSION_HIBERNATED) && is_cause("a", SESSION_CAUSE_IDLE));
	CHECK(is("c", SESSION_HIBERNATED) && is_cause("c", SESSION_CAUSE_EXPIRED));
	CHECK(session_tombstone(engine, &me, &b, &t, &err) == 0);
	CHECK_STR(t.cause.code, "idle"); /* the first of the two deadlines it missed */
	CHECK(engine_run_timers(engine) == 0);
	CHECK(says("a", "cat f", "kept\n"));
}

static void the_lifetime_of_a_sandbox_that_does_not_respond_ends_too(void)
{
	struct session_ref a = key("a");
	struct session *n = NULL;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && says("a", "echo kept > f", ""));
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	CHECK(kill(sandbox_pid(n->machine->conn), SIGSTOP) == 0);
	session_unlock(n);
	close_engine();
	CHECK(open_engine((struct engine_opts){ 0 }) && is("a", SESSION_ACTIVE));
	CHECK(!session_is_valid(engine, &me, &a)); /* it could not be adopted */
	pass(2 * HOUR);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(is_cause("a", SESSION_CAUSE_EXPIRED) && says("a", "cat f", "kept\n"));
}

static void many_at_once(void)
{
	char name[8];

	ENGINE();
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		CHECK(enter_as(name, brief, NULL) == 0);
	}
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 6 && count_active(engine) == 0);
}

/* ---- dead and busy sandboxes ----------------------------------------------------------------- */

static void a_dead_sandbox_is_hibernated(void)
{
	struct session_ref a = key("a");
	struct session *n = NULL;
	pid_t pid = 0;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && says("a", "echo kept > f", ""));
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	pid = sandbox_pid(n->machine->conn);
	session_unlock(n);
	CHECK(pid > 1 && kill(pid, SIGKILL) == 0);
	for (int i = 0; i < 2400 && session_is_valid(engine, &me, &a); i++)
		nap(50);
	CHECK(!session_is_valid(engine, &me, &a) && is("a", SESSION_ACTIVE));
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
	CHECK(count_active(engine) == 0 && says("a", "cat f", "kept\n"));
}

static void a_locked_session_is_skipped(void)
{
	struct session_ref a = key("a");
	struct session *n = NULL;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && enter_as("b", brief, NULL) == 0);
	pass(HOUR);
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	CHECK(engine_run_timers(engine) == 1 && is("b", SESSION_HIBERNATED) &&
	      is("a", SESSION_ACTIVE));
	session_unlock(n);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

static void a_failed_action_is_postponed(void)
{
	struct session_ref a = key("a");
	struct store_session s;
	struct session *n = NULL;
	char was[STORE_ID];

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && enter_as("b", brief, NULL) == 0);
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	memcpy(was, n->rec.sandbox, sizeof(was));
	snprintf(n->rec.sandbox, sizeof(n->rec.sandbox), "%s",
		 "Not An Id"); /* the keeper refuses it */
	session_unlock(n);
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 1 && is("b", SESSION_HIBERNATED));
	CHECK(look("a", &s) == SESSION_FAILED && s.due_at > the_time && count_active(engine) == 1);
	CHECK_STR(s.cause.code, "error");
	CHECK(engine_run_timers(engine) == 0 && is("a", SESSION_FAILED));
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	memcpy(n->rec.sandbox, was, sizeof(was));
	session_unlock(n);
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED) &&
	      count_active(engine) == 0);
}

static void a_failed_session_is_destroyed_eventually(void)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_ERROR, "no luck", "test" };
	struct session_ref a = key("a");
	struct store_session before, s;
	struct session *n = NULL;
	int r;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0 && look("a", &before) >= 0);
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	r = session_transition(n, SESSION_EVENT_HIBERNATE, &why, NULL, NULL, &err) < 0 ||
	    session_transition(n, SESSION_ERROR, &why, NULL, NULL, &err) < 0;
	session_unlock(n);
	CHECK(r == 0 && engine_run_timers(engine) == 0);
	CHECK(look("a", &s) == SESSION_FAILED && !s.due_at); /* no deadline is left */
	pass(61 * SECOND);
	CHECK(engine_run_timers(engine) == 1 && look("a", &s) == SESSION_ACTIVE);
	CHECK(s.expires_at == before.expires_at && s.due_at == before.due_at);
	pass(10 * MINUTE);
	CHECK(engine_run_timers(engine) == 1 && is("a", SESSION_HIBERNATED));
}

static void a_failed_hibernation_keeps_an_extension(void)
{
	static const struct session_cause_opts why = { SESSION_CAUSE_ERROR, "no luck", "test" };
	static const struct session_opts opts = { .idle_timeout_ms = 10 * MINUTE,
						  .lifetime_ms = HOUR,
						  .max_lifetime_ms = 3 * HOUR };
	struct session_ref a = key("a");
	struct session_extension how;
	struct store_session before, s;
	struct session *n = NULL;
	int r;

	ENGINE();
	CHECK(enter_as("a", opts, NULL) == 0);
	CHECK(session_extend(engine, &me, &a, HOUR, 0, &how, NULL, &err) == 0);
	CHECK(how.by_ms == HOUR && look("a", &before) == SESSION_ACTIVE);
	CHECK(session_lock_ref(engine, &me, &a, &n, &err) == 0);
	r = session_transition(n, SESSION_EVENT_HIBERNATE, &why, NULL, NULL, &err) < 0 ||
	    session_transition(n, SESSION_ERROR, &why, NULL, NULL, &err) < 0;
	session_unlock(n);
	CHECK(r == 0 && look("a", &s) == SESSION_FAILED);
	CHECK(says("a", "echo alive", "alive\n") && look("a", &s) == SESSION_ACTIVE);
	CHECK(s.expires_at == the_time + 2 * HOUR && s.expires_at == before.expires_at);
	CHECK(s.hibernate_at == the_time + HOUR);
}

static void old_records_are_pruned(void)
{
	struct session_ref a = key("a");
	struct store_event_list l = { 0 };
	struct store_tombstone t;
	int64_t before;

	ENGINE();
	CHECK(enter_as("a", brief, NULL) == 0);
	CHECK(session_destroy(engine, &me, &a, NULL, &t, &err) == 0);
	pass(6LL * 24 * HOUR);
	engine_run_timers(engine);
	CHECK(session_tombstone(engine, &me, &a, &t, &err) == 0);
	pass(2LL * 24 * HOUR);
	engine_run_timers(engine);
	CHECK(session_tombstone(engine, &me, &a, &t, &err) == -1);
	CHECK(engine_events(engine, 0, me.tenant, NULL, 10, &l, &err) == 0);
	CHECK(l.count == 0);
	store_event_list_fini(&l);
	before = count_writes(engine);
	pass(HOUR);
	CHECK(engine_run_timers(engine) == 0 && count_writes(engine) == before);
}

/* ---- progress -------------------------------------------------------------------------------- */

static void progress_is_the_latest_report(void)
{
	struct progress_state p;
	struct store_session s;

	ENGINE();
	CHECK(progress_get(engine, NULL, &p, &err) == 0 && p.status == PROGRESS_READY);
	CHECK(enter("a") && look("a", &s) >= 0);
	CHECK(progress_get(engine, s.id, &p, &err) == 0);
	CHECK(p.status == PROGRESS_READY && p.updated == the_time);
	progress_report(engine, s.id, "error", "sandbox", "no luck", 1, 2);
	CHECK(progress_get(engine, s.id, &p, &err) == 0);
	CHECK(p.status == PROGRESS_ERROR && p.step == 1);
	CHECK_STR(p.error, "no luck");
	CHECK_STR(progress_status_name(p.status), "error");
	progress_report(engine, s.id, "running", "sandbox", "again", 1, 2);
	CHECK(progress_get(engine, s.id, &p, &err) == 0);
	CHECK_STR(p.message, "again");
	CHECK(!*p.error);
}

static void only_the_latest_sessions_are_known(void)
{
	struct progress_state p;
	char id[STORE_ID];

	ENGINE();
	for (int i = 0; i < 3 * ENGINE_STAGES_MAX; i++) {
		snprintf(id, sizeof(id), "ses_%d", i);
		progress_report(engine, id, "running", "sandbox", "", 1, 2);
	}
	CHECK(progress_get(engine, id, &p, &err) == 0);
	CHECK(progress_get(engine, "ses_1", &p, &err) == -1 && err.code == ERR_NOT_FOUND);
	snprintf(id, sizeof(id), "ses_%d", 2 * ENGINE_STAGES_MAX);
	CHECK(progress_get(engine, id, &p, &err) == 0);
	CHECK(progress_get(engine, NULL, &p, &err) == 0 && p.status == PROGRESS_READY);
}

/* ---- with threads ---------------------------------------------------------------------------- */

static void threads_enforce_deadlines(void)
{
	struct engine_opts o = { .home = home, .keeper_program = keeper, .clock = fake_time };

	ENGINE();
	close_engine();
	CHECK(engine_open(&o, &engine, &err) == 0);
	CHECK(enter_as("a", brief, NULL) == 0);
	pass(HOUR);
	for (int i = 0; i < 2400 && look("a", NULL) != SESSION_HIBERNATED; i++)
		nap(50);
	CHECK(is("a", SESSION_HIBERNATED) && is_cause("a", SESSION_CAUSE_IDLE));
}

int main(void)
{
	make_home();
	RUN(idle_sessions_are_hibernated);
	RUN(use_postpones_the_deadline_in_memory_too);
	RUN(a_running_command_is_activity);
	RUN(a_side_connection_is_activity);
	RUN(a_background_process_is_activity);
	RUN(a_working_process_is_detected_by_its_cpu_time);
	RUN(cpu_time_since_the_last_check_is_work);
	RUN(idle_sessions_can_be_destroyed);
	RUN(hibernated_sessions_are_destroyed_if_configured);
	RUN(reads_extend_nothing);
	RUN(a_working_directory_is_created_for_the_user);
	RUN(a_lifetime_ends_under_a_running_command);
	RUN(an_idle_session_ends_before_the_last_seconds_of_its_lifetime);
	RUN(deadlines_that_passed_without_an_engine);
	RUN(the_lifetime_of_a_sandbox_that_does_not_respond_ends_too);
	RUN(many_at_once);
	RUN(a_dead_sandbox_is_hibernated);
	RUN(a_locked_session_is_skipped);
	RUN(a_failed_action_is_postponed);
	RUN(a_failed_session_is_destroyed_eventually);
	RUN(a_failed_hibernation_keeps_an_extension);
	RUN(old_records_are_pruned);
	RUN(progress_is_the_latest_report);
	RUN(only_the_latest_sessions_are_known);
	RUN(threads_enforce_deadlines);
	remove_home();
	return tap_done();
}
