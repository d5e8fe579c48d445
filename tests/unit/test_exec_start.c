/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of sessions with a real keeper and real sandboxes: options, input, output, results; and
 * side connections. */
#include "exec_cases.h"
#include "sandbox/guest_exec_internal.h"

#include <errno.h>
#include <signal.h>

#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "sandbox/guest_exec_sync.h"
#include "machine/exec_record.h"
#include "exec/side_conn.h"

/* ---- one command ---------------------------------------------------------------------------- */

static void a_command_has_output_status_and_a_record(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_exec rec;
	uint64_t start, end;

	BUSY();
	x = begin((struct exec_opts){ .text = "echo out; echo oops >&2; exit 7" });
	CHECK(x && ends(x, EXEC_EXITED) && wrote(x, 0, "out\n"));
	exec_output_range(x, GUEST_EXEC_ERR, &start, &end);
	CHECK(start == 0 && end == 5);
	CHECK(exec_get_info(x, &rec, &err) == 0);
	CHECK(rec.exit_code == 7 && rec.signal == 0 && rec.stdout_bytes == 4 && rec.number > 0);
	CHECK_STR(rec.command, "\"echo out; echo oops >&2; exit 7\"");
	CHECK(rec.ended_at >= rec.started_at && !rec.timed_out && !rec.truncated);
	store_exec_fini(&rec);
	exec_write_ended(engine, true);
	CHECK(row(exec_get_id(x), &rec) && rec.state == EXEC_EXITED && rec.exit_code == 7);
	CHECK(has_log(rec.session, rec.id, "out") && has_log(rec.session, rec.id, "err"));
	CHECK(wrote(x, 0, "out\n") && wrote(x, 2, "t\n"));
}

static void arguments_are_passed_unchanged(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_exec rec;

	BUSY();
	x = begin((struct exec_opts){
		.argv = (const char *const[]){ "printf", "%s|", "a b", "\"", NULL } });
	CHECK(x && ends(x, EXEC_EXITED) && wrote(x, 0, "a b|\"|"));
	CHECK(exec_get_info(x, &rec, &err) == 0);
	CHECK_STR(rec.command, "[\"printf\",\"%s|\",\"a b\",\"\\\"\"]");
	store_exec_fini(&rec);
}

static void a_missing_program_is_a_result(void)
{
	struct session_ref a = key("a");
	struct store_exec_list l;
	struct exec_handle *x = NULL;
	char said[64] = "";
	size_t n = 0;

	BUSY();
	CHECK(exec_start(engine, &me, &a,
			 &(struct exec_opts){ .argv = (const char *const[]){ "no-such", NULL } },
			 &x, NULL, &err) == 0);
	CHECK(ends(x, EXEC_EXITED) && wrote(x, 0, ""));
	CHECK(exec_read(x, GUEST_EXEC_ERR, 0, said, sizeof(said), 0, &n, &err) == 0);
	said[n] = '\0';
	CHECK_STR(said, "lodge: no-such: not found\n");
	exec_close(steal_ptr(&x));
	exec_write_ended(engine, true);
	CHECK(exec_list(engine, &me, &a, (struct store_page){ .limit = 10 }, &l, &err) == 0);
	CHECK(l.count == 1 && l.items[0].state == EXEC_EXITED && l.items[0].exit_code == 127);
	store_exec_list_fini(&l);
}

static void a_request_that_cannot_run_is_an_error(void)
{
	struct session_ref a = key("a");
	struct exec_handle *x = NULL;

	BUSY();
	CHECK(exec_start(engine, &me, &a, &(struct exec_opts){ .text = "true", .cwd = "/none" }, &x,
			 NULL, &err) == -1);
	CHECK(err.code == ERR_INVALID && !x);
	CHECK(exec_start(engine, &me, &a, &(struct exec_opts){ 0 }, &x, NULL, &err) == -1);
	CHECK(err.code == ERR_INVALID);
	CHECK(exec_start(engine, &me, &a,
			 &(struct exec_opts){ .text = "true",
					      .env = (const char *const[]){ "=x", NULL } },
			 &x, NULL, &err) == -1);
	CHECK(err.code == ERR_INVALID);
}

static void user_directory_and_environment_come_from_the_session(void)
{
	struct template over;
	struct session_opts want = { .user = "ann", .overrides = &over };
	struct session_ref t = key("t");
	struct exec_opts how = { .text = "echo $A $B $C $PWD",
				 .env = (const char *const[]){ "B=own", "C=too", NULL } };
	struct guest_exec_output o;

	BUSY();
	template_init(&over);
	CHECK(template_set_env(&over, "A=session", &err) == 0);
	CHECK(template_set_env(&over, "B=session", &err) == 0);
	CHECK((over.workdir = strdup("/tmp")) != NULL);
	CHECK(enter_as("t", want, NULL) == 0);
	template_fini(&over);
	CHECK(exec_run(engine, &me, &t, &how, NULL, 0, &o, &err) == 0);
	CHECK_STR(o.out, "session own too /tmp\n");
	guest_exec_output_fini(&o);
	how = (struct exec_opts){ .text = "echo $A $B $PWD", .cwd = "/usr" };
	CHECK(exec_run(engine, &me, &t, &how, NULL, 0, &o, &err) == 0);
	CHECK_STR(o.out, "session session /usr\n");
	guest_exec_output_fini(&o);
}

static void signals_and_deadlines_kill(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	struct store_exec rec;

	BUSY();
	x = begin((struct exec_opts){ .text = "sleep 100; true" });
	CHECK(x && exec_wait(x, 50, &err) == -1 && err.code == ERR_TIMEOUT && !exec_has_ended(x));
	CHECK(exec_signal(x, 0, AGENT_TO_TREE, &err) == -1 && err.code == ERR_INVALID);
	CHECK(exec_signal(x, SIGTERM, AGENT_TO_TREE, &err) == 0 && ends(x, EXEC_KILLED));
	CHECK(exec_get_info(x, &rec, &err) == 0);
	store_exec_fini(&rec);
	CHECK(rec.signal == SIGTERM && !rec.timed_out);
	CHECK(exec_signal(x, SIGTERM, AGENT_TO_TREE, &err) == -1 && err.code == ERR_CONFLICT);
	for (uint32_t ms = 200; ms < 120000; ms *= 4) {
		exec_close(steal_ptr(&y));
		y = begin(
			(struct exec_opts){ .text = "echo before; sleep 1000", .timeout_ms = ms });
		CHECK(y && ends(y, EXEC_KILLED) && exec_get_info(y, &rec, &err) == 0);
		store_exec_fini(&rec);
		CHECK(rec.timed_out);
		if (rec.stdout_bytes) /* otherwise the machine was too busy to run the command */
			break;
	}
	CHECK(wrote(y, 0, "before\n"));
}

static void a_terminal_has_its_size(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;

	BUSY();
	x = begin((struct exec_opts){ .text = "stty size; read x; stty size",
				      .pty = true,
				      .stdin_open = true,
				      .rows = 24,
				      .cols = 80 });
	CHECK(x && reads(x, "24 80\r\n"));
	CHECK(exec_resize(x, 50, 132, &err) == 0 && exec_write_stdin(x, "\n", 1, false, &err) == 0);
	CHECK(ends(x, EXEC_EXITED) && wrote(x, 7, "\r\n50 132\r\n"));
}

static void the_next_command_uses_a_spare_shell(void)
{
	bool used_spare_shell = false;

	BUSY();
	CHECK(says("a", "echo first", "first\n"));
	for (int i = 0; i < 2400 && !used_spare_shell;
	     i++) { /* lodge-init prepares it when it is idle */
		struct exec_handle *x = begin((struct exec_opts){ .text = "sleep 100; true" });

		CHECK(x);
		exec_record_lock(x->record);
		used_spare_shell = x->record->exec->used_spare_shell;
		exec_record_unlock(x->record);
		CHECK(exec_signal(x, SIGKILL, AGENT_TO_TREE, &err) == 0 && ends(x, EXEC_KILLED));
		exec_close(x);
		nap(50);
	}
	CHECK(used_spare_shell);
}

/* ---- input and output ----------------------------------------------------------------------- */

static void input_of_any_size_arrives(void)
{
	struct session_ref a = key("a");
	struct exec_opts wc = { .argv = (const char *const[]){ "wc", "-c", NULL } };
	struct guest_exec_output o;
	size_t size = 3 * AGENT_DATA_MAX + 17;
	auto_free char *data = calloc(1, size);

	BUSY();
	CHECK(data && exec_run(engine, &me, &a, &wc, data, size, &o, &err) == 0);
	CHECK(strtoul(o.out, NULL, 10) == size);
	guest_exec_output_fini(&o);
	CHECK(exec_run(engine, &me, &a, &wc, "", 0, &o, &err) == 0);
	CHECK_STR(o.out, "0\n");
	guest_exec_output_fini(&o);
	/* a command need not read all of its input */
	wc = (struct exec_opts){ .text = "head -c 3" };
	CHECK(exec_run(engine, &me, &a, &wc, data, size, &o, &err) == 0 && o.out_len == 3);
	guest_exec_output_fini(&o);
}

static void input_may_arrive_later(void)
{
	auto_call(exec_close) struct exec_handle *y = NULL;

	BUSY();
	y = begin((struct exec_opts){ .text = "while read l; do echo got $l; done; echo end",
				      .stdin_open = true });
	CHECK(y && exec_write_stdin(y, "one\n", 4, false, &err) == 0 && reads(y, "got one\n"));
	CHECK(exec_write_stdin(y, "two\n", 4, false, &err) == 0 && reads(y, "got one\ngot two\n"));
	CHECK(exec_write_stdin(y, NULL, 0, true, &err) == 0 && ends(y, EXEC_EXITED));
	CHECK(wrote(y, 0, "got one\ngot two\nend\n"));
	CHECK(exec_write_stdin(y, "x", 1, false, &err) == -1 && err.code == ERR_CONFLICT);
}

static void dropped_output_differs_from_none(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_exec rec;
	uint64_t start, end;
	char buf[64];
	size_t n = 99;

	BUSY();
	x = begin((struct exec_opts){ .text = "seq 100000", .output_bytes = 4096 });
	CHECK(x && ends(x, EXEC_EXITED));
	for (int i = 0; i < 2; i++) { /* from memory, then from the file */
		exec_output_range(x, GUEST_EXEC_OUT, &start, &end);
		CHECK(end == 588895 && start > 0 && end - start <= 4096);
		CHECK(exec_read(x, GUEST_EXEC_OUT, 0, buf, sizeof(buf), 0, &n, &err) == -1);
		CHECK(err.code == ERR_LIMIT && err.sys == ERANGE);
		CHECK(exec_read(x, GUEST_EXEC_OUT, end - 7, buf, sizeof(buf), 0, &n, &err) == 0);
		CHECK(n == 7 && memcmp(buf, "100000\n", 7) == 0);
		CHECK(exec_read(x, GUEST_EXEC_OUT, end + 5, buf, sizeof(buf), 0, &n, &err) == 0 &&
		      n == 0);
		exec_write_ended(engine, true);
	}
	CHECK(row(exec_get_id(x), &rec) && rec.truncated && rec.stdout_bytes == 588895);
	exec_close(steal_ptr(&x));
	x = reopen(rec.id);
	CHECK(x && exec_read(x, GUEST_EXEC_OUT, end - 7, buf, sizeof(buf), 0, &n, &err) == 0 &&
	      n == 7);
	CHECK(exec_read(x, GUEST_EXEC_OUT, 0, buf, sizeof(buf), 0, &n, &err) == -1 &&
	      err.sys == ERANGE);
}

static void a_full_log_waits_only_while_a_reader_is_attached(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	struct exec_opts want = { .text = "seq 100000", .output_bytes = 8192, .hold_output = true };
	uint64_t at = 0, sum = 0;
	char buf[3000];
	size_t n = 1;

	BUSY();
	x = begin(want);
	CHECK(x);
	while (n) {
		CHECK(exec_read(x, GUEST_EXEC_OUT, at, buf, sizeof(buf), 120000, &n, &err) == 0);
		for (size_t i = 0; i < n; i++)
			sum += (unsigned char)buf[i];
		at += n;
		CHECK(exec_consumed(x, at, 0, &err) == 0);
	}
	CHECK(ends(x, EXEC_EXITED) && at == 588895 && sum == 26716961);
	exec_close(steal_ptr(&x));
	x = begin(want);
	CHECK(x && (y = reopen(exec_get_id(x))));
	CHECK(exec_wait(y, 100, &err) == -1 && err.code == ERR_TIMEOUT);
	exec_close(steal_ptr(&x));
	CHECK(ends(y, EXEC_EXITED));
}

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void every_handle_gets_events(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	atomic_int a = 0, b = 0;

	BUSY();
	x = begin((struct exec_opts){ .text = "read x; echo one; read x", .stdin_open = true });
	CHECK(x && (y = reopen(exec_get_id(x))));
	exec_notify(x, count, &a);
	exec_notify(y, count, &b);
	CHECK(exec_wait_output(x, 0, 0, 0) == 0);
	CHECK(exec_write_stdin(x, "\n", 1, false, &err) == 0 &&
	      exec_wait_output(x, 0, 0, 10000) == 1);
	CHECK(a >= 1 && b >= 1);
	exec_notify(x, NULL, NULL);
	a = 0;
	CHECK(exec_write_stdin(y, "\n", 1, true, &err) == 0 && ends(y, EXEC_EXITED));
	CHECK(a == 0 && b >= 2 && wrote(x, 0, "one\n"));
}

static void a_remaining_child_does_not_delay_the_result(void)
{
	struct session_ref a = key("a");
	struct exec_opts want = { .text = "echo mine; yes & sleep 0.1", .output_bytes = 8192 };
	struct guest_exec_output o;

	BUSY();
	CHECK(exec_run(engine, &me, &a, &want, NULL, 0, &o, &err) == 0);
	CHECK(o.result.code == 0 && o.out_len <= 8192);
	guest_exec_output_fini(&o);
	exec_write_ended(engine, true);
	CHECK(says("a", "echo fine", "fine\n"));
}

/* ---- callers -------------------------------------------------------------------------------- */

static void commands_of_another_tenant_are_not_found(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	const struct caller other = { "evil", "test" };
	struct session_ref a = key("a");
	struct store_exec_list l;
	struct exec_handle *y = NULL;

	BUSY();
	x = begin((struct exec_opts){ .text = "cat", .stdin_open = true });
	CHECK(x && exec_open(engine, &other, exec_get_id(x), &y, &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND && !y);
	CHECK(exec_open(engine, &me, "exe_none", &y, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(exec_list(engine, &other, &a, (struct store_page){ .limit = 10 }, &l, &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(exec_list(engine, &me, &a, (struct store_page){ .limit = 10 }, &l, &err) == 0);
	CHECK(l.count == 1 && l.items[0].state == EXEC_RUNNING &&
	      !strcmp(l.items[0].id, exec_get_id(x)));
	store_exec_list_fini(&l);
	CHECK(exec_write_stdin(x, NULL, 0, true, &err) == 0 && ends(x, EXEC_EXITED));
}

static void a_hibernated_session_is_resumed_unless_forbidden(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct session_ref a = key("a");
	enum session_outcome how;
	struct exec_handle *y = NULL;

	BUSY();
	CHECK(says("a", "echo kept >f", ""));
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(exec_start(engine, &me, &a, &(struct exec_opts){ .text = "cat f", .no_resume = true },
			 &y, NULL, &err) == -1);
	CHECK(err.code == ERR_CONFLICT && is("a", SESSION_HIBERNATED));
	CHECK(exec_start(engine, &me, &a, &(struct exec_opts){ .text = "cat f" }, &x, &how, &err) ==
	      0);
	CHECK(how == SESSION_RESUMED && ends(x, EXEC_EXITED) && wrote(x, 0, "kept\n"));
}

static void a_paused_session_is_thawed_by_use(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct session_ref a = key("a");

	BUSY();
	x = begin((struct exec_opts){ .text = "cat", .stdin_open = true });
	CHECK(x && session_pause(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(exec_write_stdin(x, "x", 1, true, &err) == 0 && ends(x, EXEC_EXITED) &&
	      wrote(x, 0, "x"));
	CHECK(session_pause(engine, &me, &a, 0, NULL, &err) == 0 && says("a", "echo y", "y\n"));
}

/* ---- idempotency ----------------------------------------------------------------------------- */

static void the_same_key_is_the_same_command(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	auto_call(exec_close) struct exec_handle *y = NULL;
	struct exec_opts want = { .text = "echo x >>n; wc -l <n", .idempotency_key = "k1" };

	BUSY();
	x = begin(want);
	y = begin(want);
	CHECK(x && y && !strcmp(exec_get_id(x), exec_get_id(y)));
	CHECK(ends(x, EXEC_EXITED) && ends(y, EXEC_EXITED) && wrote(y, 0, "1\n"));
}

static void a_key_outlives_the_engine_and_the_sandbox(void)
{
	struct exec_opts want = { .text = "echo x >>n; wc -l <n", .idempotency_key = "k1" };
	struct session_ref a = key("a");
	struct guest_exec_output o;
	char id[STORE_ID];
	struct exec_handle *x;

	BUSY();
	x = begin(want);
	CHECK(x && ends(x, EXEC_EXITED));
	snprintf(id, sizeof(id), "%s", exec_get_id(x));
	exec_close(x);
	CHECK(open_busy() && session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	x = begin(want);
	CHECK(x && !strcmp(exec_get_id(x), id) && wrote(x, 0, "1\n"));
	exec_close(x);
	CHECK(exec_run(engine, &me, &a, &want, NULL, 0, &o, &err) == 0);
	CHECK_STR(o.out, "1\n");
	CHECK(o.result.code == 0);
	guest_exec_output_fini(&o);
	want.idempotency_key = "k2";
	x = begin(want);
	CHECK(x && strcmp(exec_get_id(x), id) != 0 && ends(x, EXEC_EXITED) && wrote(x, 0, "2\n"));
	exec_close(x);
}

static void a_key_without_a_command_is_lost(void)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct store_once o = { .tenant = "acme", .key = "k1", .target = "exe_gone" };
	struct store_session s;
	int r = -1;

	BUSY();
	CHECK(look("a", &s) >= 0);
	memcpy(o.scope, s.id, sizeof(o.scope));
	WITH_STORE(engine, st)
	r = store_once_claim(st, &o, NULL, &err);
	CHECK(r == 0);
	x = begin((struct exec_opts){ .text = "echo again", .idempotency_key = "k1" });
	CHECK(x && !strcmp(exec_get_id(x), "exe_gone") && ends(x, EXEC_LOST));
}

/* ---- side connections ----------------------------------------------------------------------- */

static void a_side_connection_works_with_files(void)
{
	struct session_ref a = key("a");
	struct side_conn *l = NULL;
	struct sandbox *first;
	enum session_outcome how;

	BUSY();
	CHECK(side_conn_open(engine, &me, &a, true, &l, &how, &err) == 0 && how == SESSION_REUSED);
	first = side_conn_sandbox(l);
	CHECK(files_write(first, NULL, "f", "hello\n", 6, 0, 0, &err) == 0);
	CHECK(says("a", "cat f", "hello\n"));
	side_conn_close(l);
	CHECK(side_conn_open(engine, &me, &a, true, &l, NULL, &err) == 0);
	CHECK(side_conn_sandbox(l) == first && side_conn_template(l));
	CHECK(files_remove_tree(first, NULL, "f", &err) == 0);
	side_conn_close(l);
	CHECK(session_hibernate(engine, &me, &a, 0, NULL, &err) == 0);
	CHECK(side_conn_open(engine, &me, &a, false, &l, NULL, &err) == -1);
	CHECK(err.code == ERR_CONFLICT);
	CHECK(side_conn_open(engine, &me, &a, true, &l, &how, &err) == 0 && how == SESSION_RESUMED);
	side_conn_close(l);
}

static void *give_back_later(void *arg)
{
	nap(100);
	side_conn_close(arg);
	return NULL;
}

static void one_more_side_connection_waits_for_a_free_one(void)
{
	struct session_ref a = key("a");
	struct side_conn *l[SIDE_CONNS_MAX + 1] = { NULL };
	pthread_t other;

	BUSY();
	for (int i = 0; i < SIDE_CONNS_MAX; i++)
		CHECK(side_conn_open(engine, &me, &a, true, &l[i], NULL, &err) == 0);
	CHECK(pthread_create(&other, NULL, give_back_later, l[0]) == 0);
	CHECK(side_conn_open(engine, &me, &a, true, &l[SIDE_CONNS_MAX], NULL, &err) == 0);
	pthread_join(other, NULL);
	/* each connection numbers its requests in its own range */
	CHECK(files_mkdir(side_conn_sandbox(l[1]), NULL, "d/e", true, 0, &err) == 0);
	CHECK(files_remove_tree(side_conn_sandbox(l[2]), NULL, "d", &err) == 0);
	CHECK(files_remove_tree(side_conn_sandbox(l[3]), NULL, "d", &err) == 0);
	CHECK(says("a", "echo fine", "fine\n"));
	for (int i = 1; i <= SIDE_CONNS_MAX; i++)
		side_conn_close(l[i]);
}

static void a_side_connection_outlives_its_sandbox(void)
{
	struct session_ref a = key("a");
	struct side_conn *l = NULL;

	BUSY();
	CHECK(side_conn_open(engine, &me, &a, true, &l, NULL, &err) == 0);
	CHECK(session_destroy(engine, &me, &a, NULL, NULL, &err) == 0);
	CHECK(files_mkdir(side_conn_sandbox(l), NULL, "d", false, 0, &err) == -1);
	side_conn_close(l);
}

/* ---- many ----------------------------------------------------------------------------------- */

static void *hammer(void *arg)
{
	struct session_ref a = key("a");
	struct err own;
	char text[64], want[32];

	for (int i = 0; i < 15; i++) {
		struct exec_opts how = { .text = text };
		struct guest_exec_output o;

		snprintf(text, sizeof(text), "echo %p %d", arg, i);
		snprintf(want, sizeof(want), "%p %d\n", arg, i);
		if (exec_run(engine, &me, &a, &how, NULL, 0, &o, &own) < 0)
			return arg;
		if (strcmp(o.out, want) != 0)
			return arg;
		guest_exec_output_fini(&o);
	}
	return NULL;
}

static void concurrent_commands_do_not_interfere(void)
{
	struct session_ref a = key("a");
	struct store_exec_list l;
	pthread_t threads[6];
	char names[6];
	void *bad;
	bool ok = true;
	size_t ended = 0;

	BUSY();
	for (size_t i = 0; i < 6; i++)
		CHECK(pthread_create(&threads[i], NULL, hammer, &names[i]) == 0);
	for (size_t i = 0; i < 6; i++) {
		pthread_join(threads[i], &bad);
		ok &= bad == NULL;
	}
	CHECK(ok);
	exec_write_ended(engine, true);
	CHECK(exec_list(engine, &me, &a, (struct store_page){ .limit = 200 }, &l, &err) == 0);
	for (size_t i = 0; i < l.count; i++)
		ended += l.items[i].state == EXEC_EXITED;
	CHECK(l.count == 90 && ended == 90);
	store_exec_list_fini(&l);
}

int main(void)
{
	make_home();
	RUN(a_command_has_output_status_and_a_record);
	RUN(arguments_are_passed_unchanged);
	RUN(a_missing_program_is_a_result);
	RUN(a_request_that_cannot_run_is_an_error);
	RUN(user_directory_and_environment_come_from_the_session);
	RUN(signals_and_deadlines_kill);
	RUN(a_terminal_has_its_size);
	RUN(the_next_command_uses_a_spare_shell);
	RUN(input_of_any_size_arrives);
	RUN(input_may_arrive_later);
	RUN(dropped_output_differs_from_none);
	RUN(a_full_log_waits_only_while_a_reader_is_attached);
	RUN(every_handle_gets_events);
	RUN(a_remaining_child_does_not_delay_the_result);
	RUN(commands_of_another_tenant_are_not_found);
	RUN(a_hibernated_session_is_resumed_unless_forbidden);
	RUN(a_paused_session_is_thawed_by_use);
	RUN(the_same_key_is_the_same_command);
	RUN(a_key_outlives_the_engine_and_the_sandbox);
	RUN(a_key_without_a_command_is_lost);
	RUN(a_side_connection_works_with_files);
	RUN(one_more_side_connection_waits_for_a_free_one);
	RUN(a_side_connection_outlives_its_sandbox);
	RUN(concurrent_commands_do_not_interfere);
	remove_home();
	return tap_done();
}
