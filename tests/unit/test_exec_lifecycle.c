/* SPDX-License-Identifier: Apache-2.0 */
/* No command is lost when its sandbox or its engine ends, at any moment. */
#include "exec_cases.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "sandbox/sandbox.h"
#include "machine/exec_record.h"
#include "session/session.h"
#include "machine/exec_output_file.h"
#include "machine/machine.h"

/* ---- end of the sandbox ------------------------------------------------------------------- */

static void output_outlives_the_sandbox(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	struct session_ref a = key("a");
	char id[STORE_ID];

	BUSY();
	x = begin((struct exec_opts){ .text = "echo hello; sleep 100" });
	CHECK(x && reads(x, "hello\n"));
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(ends(x, EXEC_KILLED) && wrote(x, 0, "hello\n"));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	exec_write_ended(engine, true);
	CHECK(wrote(x, 0, "hello\n"));
	y = reopen(id);
	CHECK(y && ends(y, EXEC_KILLED) && wrote(y, 0, "hello\n") && is("a", SESSION_HIBERNATED));
	exec_close(steal_ptr(&x));
	exec_close(steal_ptr(&y));
	CHECK(open_busy() && (y = reopen(id)) && wrote(y, 2, "llo\n"));
}

static pid_t pid_of_sandbox(void)
{
	struct store_session s;
	struct machine *v = look("a", &s) >= 0 ? session_find_machine(engine, s.id) : NULL;
	pid_t pid = v ? sandbox_pid(v->conn) : 0;

	machine_unref(v);
	return pid;
}

static void a_command_ends_with_its_sandbox(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct session_ref a = key("a");
	enum session_outcome how;
	struct exec_handle *y = NULL;
	pid_t pid;

	BUSY();
	x = begin((struct exec_opts){ .text = "echo kept >f; echo hello; sleep 100" });
	pid = pid_of_sandbox();
	CHECK(x && pid > 0 && reads(x, "hello\n") && kill(pid, SIGKILL) == 0);
	CHECK(ends(x, EXEC_KILLED) && wrote(x, 0, "hello\n"));
	CHECK(exec_start(engine, &me, &a, &(struct exec_opts){ .text = "cat f" }, &y, &how, &err) ==
	      0);
	CHECK(how == SESSION_RESUMED && ends(y, EXEC_EXITED) && wrote(y, 0, "kept\n"));
	exec_close(y);
}

static void commands_end_with_a_sandbox_that_died(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	char id[STORE_ID];
	pid_t pid;

	BUSY();
	x = begin((struct exec_opts){ .text = "echo hello; sleep 100" });
	pid = pid_of_sandbox();
	CHECK(x && pid > 0 && reads(x, "hello\n"));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	exec_close(steal_ptr(&x));
	close_engine();
	CHECK(kill(pid, SIGKILL) == 0 && open_busy());
	for (int i = 0; i < 2400 && !x; i++) { /* its state is uncertain while it ends */
		if (exec_open(engine, &me, id, &x, &err) < 0)
			nap(50);
	}
	CHECK(x && exec_wait(x, 120000, &err) == 0);
}

static void records_of_a_destroyed_session_are_removed(void)
{
	struct session_ref a = key("a");
	struct store_session s;
	char id[STORE_ID], dir[256];
	struct exec_handle *x;
	struct stat st;

	BUSY();
	CHECK(look("a", &s) >= 0);
	x = begin((struct exec_opts){ .text = "echo hello; sleep 100" });
	CHECK(x && reads(x, "hello\n"));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	snprintf(dir, sizeof(dir), "%s/logs/%s", home, s.id);
	CHECK(stat(dir, &st) == 0);
	CHECK(session_destroy(engine, &me, &a, NULL, NULL, &err) == 0);
	CHECK(ends(x, EXEC_KILLED));
	exec_close(x);
	exec_write_ended(engine, true);
	CHECK(exec_open(engine, &me, id, &x, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(stat(dir, &st) < 0);
}

static void old_commands_are_pruned_with_their_output(void)
{
	struct store_session s;
	char id[STORE_ID];
	struct exec_handle *x;

	BUSY();
	CHECK(look("a", &s) >= 0);
	x = begin((struct exec_opts){ .text = "echo hello" });
	CHECK(x && ends(x, EXEC_EXITED));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	exec_close(x);
	exec_write_ended(engine, true);
	exec_output_prune(engine, engine_now(engine) - HOUR);
	CHECK(has_log(s.id, id, "out") && (x = reopen(id)));
	exec_close(x);
	exec_output_prune(engine, engine_now(engine) + HOUR);
	CHECK(!has_log(s.id, id, "out"));
	CHECK(exec_open(engine, &me, id, &x, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(says("a", "echo again", "again\n"));
}

static void without_threads_the_waiter_stores_the_result(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_exec rec;

	ENGINE();
	CHECK(enter("a") && (x = start("a", "echo hello")) && ends(x, EXEC_EXITED));
	CHECK(row(exec_get_id(x), &rec) && rec.state == EXEC_EXITED);
	CHECK(has_log(rec.session, rec.id, "out") && wrote(x, 0, "hello\n"));
}

/* ---- another engine ------------------------------------------------------------------------- */

static void a_command_continues_with_the_next_engine(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	char id[STORE_ID];

	BUSY();
	x = begin((struct exec_opts){ .text = "echo one; read l; echo $l", .stdin_open = true });
	CHECK(x && reads(x, "one\n"));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	exec_close(steal_ptr(&x));
	CHECK(open_busy());
	x = reopen(id);
	CHECK(x && !exec_has_ended(x) && reads(x, "one\n"));
	CHECK(says("a", "echo beside", "beside\n"));
	CHECK(exec_write_stdin(x, "two\n", 4, false, &err) == 0 && ends(x, EXEC_EXITED));
	CHECK(wrote(x, 0, "one\ntwo\n"));
}

static void results_are_stored_by_the_next_engine(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	struct store_exec rec;
	char id[STORE_ID];

	BUSY();
	x = begin((struct exec_opts){ .text = "echo one; sleep 0.3; echo two; exit 3" });
	CHECK(x && reads(x, "one\n"));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	exec_close(steal_ptr(&x));
	close_engine();
	nap(700);
	CHECK(open_busy());
	rec = (struct store_exec){ .state = EXEC_RUNNING };
	for (int i = 0; i < 2400 && rec.state == EXEC_RUNNING; i++, nap(50)) {
		exec_write_ended(engine, true);
		CHECK(row(id, &rec));
	}
	CHECK(rec.state == EXEC_EXITED && rec.exit_code == 3);
	CHECK(rec.ended_at >= rec.started_at && has_log(rec.session, id, "out"));
	y = reopen(id);
	CHECK(y && wrote(y, 0, "one\ntwo\n"));
}

static void an_unknown_command_is_marked_lost(void)
{
	struct store_exec rec = { .tenant = "acme", .id = "exe_ghost", .number = 4711 };
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_session s;
	int r = -1;

	BUSY();
	CHECK(look("a", &s) >= 0);
	memcpy(rec.session, s.id, sizeof(rec.session));
	rec.incarnation = s.incarnation;
	WITH_STORE(engine, st)
	r = store_exec_record(st, &rec, &err);
	CHECK(r == 0);
	x = reopen("exe_ghost"); /* the store says it is running, but lodge-init does not know it */
	CHECK(x && ends(x, EXEC_LOST));
	memcpy(rec.id, "exe_second", sizeof("exe_second"));
	WITH_STORE(engine, st)
	r = store_exec_record(st, &rec, &err);
	exec_close(steal_ptr(&x));
	CHECK(r == 0 && open_busy());
	CHECK(row("exe_second", &rec) && rec.state == EXEC_LOST);
}

#ifdef LODGE_TEST_HOOKS

/* Runs in its own process, which dies at a step. */
static int crash_here(const char *step)
{
	struct exec_opts want = { .text = "echo x >>ran; cat ran; sleep 0.2",
				  .idempotency_key = step };
	struct session_ref a = key("a");
	struct exec_handle *x = NULL;

	if (!open_busy() || exec_start(engine, &me, &a, &want, &x, NULL, &err) < 0)
		return 1;
	(void)exec_wait(x, 120000, &err);
	exec_write_ended(engine, true);
	return 2;
}

static bool crash_at(const char *step)
{
	char *const argv[] = {
		(char[]){ "test" }, (char[]){ "--crash" }, home, keeper, strdup(step), NULL
	};
	int status = 0;
	pid_t pid;

	setenv("LODGE_CRASH_AT", step, 1);
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0)
		pid = -1;
	unsetenv("LODGE_CRASH_AT");
	free(argv[4]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	printf("# %s: ended with status %x\n", step, (unsigned)status);
	return false;
}

/* The command ran once or not at all, its record is true, and nothing is left over. */
static bool is_consistent_after(const char *step)
{
	struct exec_opts want = { .text = "echo x >>ran; cat ran; sleep 0.2",
				  .idempotency_key = step };
	bool began = strcmp(step, "exec:claimed") != 0, known = began && strcmp(step, "exec:begun");
	struct session_ref a = key("a");
	struct store_exec_list l;
	struct exec_handle *x = begin(want);
	bool ok = x && ends(x, known ? EXEC_EXITED : EXEC_LOST) && (!known || wrote(x, 0, "x\n"));

	exec_close(x);
	if (!ok || !says("a", "cat ran 2>/dev/null | wc -l; rm -f ran", began ? "1\n" : "0\n"))
		return false;
	for (int tries = 0, running = 1; running; tries++, nap(50)) {
		exec_write_ended(engine, true);
		if (exec_list(engine, &me, &a, (struct store_page){ .limit = 100 }, &l, &err) < 0)
			return false;
		running = 0;
		for (size_t i = 0; i < l.count; i++)
			running += l.items[i].state == EXEC_RUNNING;
		if (tries == 2400)
			break;
		if (running)
			store_exec_list_fini(&l);
	}
	for (size_t i = 0; i < l.count; i++)
		ok &= l.items[i].state != EXEC_RUNNING;
	/* one command without a name has a row now */
	ok &= l.count == (strcmp(step, "exec:begun") == 0 ? 3 : 2);
	if (!ok)
		printf("# %s: %zu rows\n", step, l.count);
	store_exec_list_fini(&l);
	return ok;
}

static void a_crash_at_any_step_loses_nothing(void)
{
	static const char *const steps[] = { "exec:claimed", "exec:begun", "exec:recorded",
					     "exec:ended",   "exec:saved", "exec:finished" };

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		BUSY();
		close_engine();
		CHECK(crash_at(steps[i]) && open_busy());
		CHECK(is_consistent_after(steps[i]));
	}
}

#else

static void a_crash_at_any_step_loses_nothing(void)
{
	SKIP("needs a build with test hooks");
}

#endif

int main(int argc, char **argv)
{
#ifdef LODGE_TEST_HOOKS
	if (argc == 5 && !strcmp(argv[1], "--crash")) {
		snprintf(home, sizeof(home), "%s", argv[2]);
		snprintf(keeper, sizeof(keeper), "%s", argv[3]);
		return crash_here(argv[4]);
	}
#endif
	(void)argc;
	(void)argv;
	make_home();
	RUN(output_outlives_the_sandbox);
	RUN(a_command_ends_with_its_sandbox);
	RUN(commands_end_with_a_sandbox_that_died);
	RUN(records_of_a_destroyed_session_are_removed);
	RUN(old_commands_are_pruned_with_their_output);
	RUN(without_threads_the_waiter_stores_the_result);
	RUN(a_command_continues_with_the_next_engine);
	RUN(results_are_stored_by_the_next_engine);
	RUN(an_unknown_command_is_marked_lost);
	RUN(a_crash_at_any_step_loses_nothing);
	remove_home();
	return tap_done();
}
