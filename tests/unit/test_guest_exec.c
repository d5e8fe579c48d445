/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that outlive their engine: a real keeper and sandbox, and engines that are killed. Needs
 * $LODGE_BUILD (meson sets it) and a machine where sandboxes work. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_sandbox.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/guest_exec_internal.h"
#include "sandbox/files_client.h"
#include "sandbox/agent_sync.h"
#include "sandbox/files_stream.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"
#include "sandbox_calls.h"

/* ---- engines to kill ------------------------------------------------------------------------ */

/* Starts the command, reports its number when it has written `until` bytes, and waits to be
 * killed. */
static void engine_main(struct sandbox *sb, const struct guest_exec_spec *spec, uint64_t until,
			int tell)
{
	struct guest_exec *x = NULL;
	struct err e;
	uint64_t id;

	if (guest_exec_start(sb, spec, &x, &e) < 0)
		_exit(1);
	id = guest_exec_id(x);
	while (guest_exec_end(x, GUEST_EXEC_OUT) < until)
		if (agent_step(sandbox_agent(sb), -1, &e) < 0)
			_exit(1);
	if (write(tell, &id, sizeof(id)) != sizeof(id))
		_exit(1);
	for (;;)
		agent_step(sandbox_agent(sb), -1, &e);
}

/* The number of a command whose engine was killed with SIGKILL; 0 on failure. */
static uint64_t orphan(const struct guest_exec_spec *spec, uint64_t until)
{
	struct sandbox *sb = NULL;
	uint64_t id = 0;
	pid_t pid;
	int p[2];

	if (sandbox_connect(keeper, sandbox_id(box), &sb, &err) < 0 || pipe2(p, O_CLOEXEC) < 0)
		return 0;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		engine_main(sb, spec, until, p[1]);
	close(p[1]);
	if (read(p[0], &id, sizeof(id)) != sizeof(id))
		id = 0;
	close(p[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sandbox_free(sb); /* only closes the descriptors of the dead engine */
	return id;
}

static int calls;

static void count(struct guest_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	calls++;
}

static const struct guest_exec_ops counting = { .on_end = count };

struct search {
	uint64_t id;
	struct agent_proc found;
};

static int look(void *arg, const struct agent_proc *p)
{
	struct search *s = arg;

	if (p->exec != s->id)
		return 0;
	s->found = *p;
	return 1;
}

static bool ended_alone(uint64_t id)
{
	struct search s = { .id = id };

	for (int i = 0; i < 6000; i++) {
		if (agent_list(sandbox_agent(box), look, &s, &err) != 1)
			return false;
		if (s.found.state == AGENT_EXITED)
			return true;
		poll(NULL, 0, 20);
	}
	return false;
}

/* The output of `seq first last`. */
static char *numbers(int first, int last, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	for (int i = first; f && i <= last; i++)
		fprintf(f, "%d\n", i);
	if (f)
		fclose(f);
	return text;
}

static bool is_seq(const char *got, size_t len, int first, int last)
{
	size_t want_len;
	char *want = numbers(first, last, &want_len);
	bool same = want && len == want_len && !memcmp(got, want, len);

	if (!same)
		printf("# %zu bytes instead of %zu\n", len, want_len);
	free(want);
	return same;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void output_is_complete_after_a_kill(void)
{
	struct guest_exec_spec spec = { .text = "seq 1 20000; read x; seq 20001 40000; echo e >&2; "
						"exit 3",
					.stdin_open = true };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id, at = 0;
	char buf[16];

	ENGINE();
	id = orphan(&spec, 108894); /* all of the first part */
	CHECK(id);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_state(x) == GUEST_EXEC_RUNNING && guest_exec_id(x) == id &&
	      guest_exec_pid(x) > 1);
	CHECK(guest_exec_end(x, GUEST_EXEC_OUT) == 108894 &&
	      guest_exec_start_offset(x, GUEST_EXEC_OUT) == 0);
	CHECK(guest_exec_read(x, GUEST_EXEC_OUT, &at, buf, 6) == 6 && !memcmp(buf, "1\n2\n3\n", 6));
	CHECK(!guest_exec_stdin_is_closed(x) && !guest_exec_stdin_is_busy(x));
	CHECK(guest_exec_stdin(x, "\n", 1, true, &err) == 0 &&
	      guest_exec_wait(x, 120000, &err) == 0);
	CHECK(guest_exec_result(x)->code == 3 && guest_exec_result(x)->hits == 0);
	CHECK(guest_exec_collect(x, &o, &err) == 0);
	CHECK(is_seq(o.out, o.out_len, 1, 40000));
	CHECK_STR(o.err, "e\n");
	guest_exec_output_fini(&o);
	guest_exec_free(x);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND);
}

static void output_continues_without_an_engine(void)
{
	struct guest_exec_spec spec = { .text = "for i in {1..500}; do echo $i; sleep 0.002; done",
					.merge = true };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id;

	ENGINE();
	id = orphan(&spec, 10);
	CHECK(id && guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_wait(x, 120000, &err) == 0 && guest_exec_collect(x, &o, &err) == 0);
	CHECK(is_seq(o.out, o.out_len, 1, 500) && o.result.hits == 0);
	guest_exec_output_fini(&o);
	guest_exec_free(x);
}

static void a_command_that_ended_without_an_engine_is_adopted(void)
{
	struct guest_exec_spec spec = { .text = "sleep 0.2; seq 1 1000; echo e >&2; exit 5" };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id;

	ENGINE();
	calls = 0;
	id = orphan(&spec, 0);
	CHECK(id && ended_alone(id));
	for (int i = 0; i < 2; i++) {
		CHECK(guest_exec_adopt(box, id, i == 1, &counting, NULL, &x, &err) == 0);
		CHECK(guest_exec_state(x) == GUEST_EXEC_EXITED && *guest_exec_ended(x));
		CHECK(guest_exec_result(x)->code == 5 &&
		      guest_exec_result(x)->duration_us > 100000);
		CHECK(guest_exec_stdin_is_closed(x) && guest_exec_wait(x, 0, &err) == 0);
		CHECK(guest_exec_collect(x, &o, &err) == 0 && is_seq(o.out, o.out_len, 1, 1000));
		CHECK_STR(o.err, "e\n");
		guest_exec_output_fini(&o);
		CHECK(agent_hello(sandbox_agent(box), NULL, &err) == 0);
		guest_exec_free_keep(x); /* as if its record were not durable yet */
	}
	CHECK(calls == 0);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_forget(x, &err) == 0 && guest_exec_forget(x, &err) == 0);
	CHECK(guest_exec_collect(x, &o, &err) == 0 && is_seq(o.out, o.out_len, 1, 1000));
	guest_exec_output_fini(&o);
	guest_exec_free(x);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == -1);
	CHECK(err.code == ERR_NOT_FOUND && !agent_is_closed(sandbox_agent(box)));
}

static void a_running_command_is_not_forgotten(void)
{
	struct guest_exec_spec spec = { .text = "read x", .stdin_open = true };
	struct guest_exec *x = NULL;
	uint64_t id;

	ENGINE();
	CHECK(guest_exec_start(box, &spec, &x, &err) == 0);
	id = guest_exec_id(x);
	CHECK(guest_exec_forget(x, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == -1 &&
	      err.code == ERR_CONFLICT);
	guest_exec_free_keep(x);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_state(x) == GUEST_EXEC_RUNNING && guest_exec_kill(x, &err) == 0);
	CHECK(guest_exec_wait(x, 120000, &err) == 0 && guest_exec_result(x)->signal == SIGKILL);
	guest_exec_free(x);
}

static void timeouts_are_enforced_without_an_engine(void)
{
	struct guest_exec_spec spec = { .text = "echo before; sleep 100", .timeout_ms = 300 };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id;

	ENGINE();
	for (bool wrote = false; !wrote;
	     spec.timeout_ms *= 4) { /* otherwise the machine was too busy to run the command */
		CHECK(spec.timeout_ms < 120000);
		id = orphan(&spec, 0);
		CHECK(id && ended_alone(id));
		CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
		CHECK(guest_exec_result(x)->hits & AGENT_HIT_TIME);
		CHECK(guest_exec_collect(x, &o, &err) == 0);
		wrote = *o.out;
		CHECK(!wrote || !strcmp(o.out, "before\n"));
		guest_exec_output_fini(&o);
		guest_exec_free(x);
	}
	spec.timeout_ms = 2000; /* also when it is adopted in between */
	id = orphan(&spec, 7);
	CHECK(id && guest_exec_adopt(box, id, false, &counting, NULL, &x, &err) == 0);
	CHECK(guest_exec_wait(x, 120000, &err) == 0 &&
	      (guest_exec_result(x)->hits & AGENT_HIT_TIME));
	guest_exec_free(x);
}

static void signals_reach_an_adopted_command(void)
{
	struct guest_exec_spec spec = { .text = "trap 'echo got; exit 9' TERM; echo up; "
						"while :; do sleep 0.05; done" };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id;

	ENGINE();
	calls = 0;
	id = orphan(&spec, 3);
	CHECK(id && guest_exec_adopt(box, id, false, &counting, NULL, &x, &err) == 0);
	CHECK(guest_exec_signal(x, SIGTERM, AGENT_TO_GROUP, &err) == 0 &&
	      guest_exec_wait(x, 120000, &err) == 0);
	CHECK(guest_exec_result(x)->code == 9 && calls == 1);
	CHECK(guest_exec_collect(x, &o, &err) == 0);
	CHECK(strstr(o.out, "got\n"));
	guest_exec_output_fini(&o);
	guest_exec_free(x);
}

static void a_terminal_is_adopted(void)
{
	struct guest_exec_spec spec = { .text = "stty -echo; echo up; read x; stty size",
					.pty = true,
					.stdin_open = true,
					.rows = 20,
					.cols = 30 };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id;

	ENGINE();
	id = orphan(&spec, 4);
	CHECK(id && guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_resize(x, 40, 50, &err) == 0 &&
	      guest_exec_stdin(x, "\n", 1, false, &err) == 0);
	CHECK(guest_exec_wait(x, 120000, &err) == 0 && guest_exec_collect(x, &o, &err) == 0);
	CHECK_STR(o.out, "up\r\n40 50\r\n");
	CHECK(o.err_total == 0);
	guest_exec_output_fini(&o);
	guest_exec_free(x);
}

static void a_full_ring_continues(void)
{
	struct guest_exec_spec spec = { .text = "seq 100000", .log_bytes = 8192, .hold = true };
	struct guest_exec *x = NULL;
	struct guest_exec_output o;
	uint64_t id;

	ENGINE();
	id = orphan(&spec, 8192); /* no output was consumed */
	CHECK(id && ended_alone(id));
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_result(x)->code == 0 && (guest_exec_result(x)->hits & AGENT_HIT_OUTPUT));
	CHECK(guest_exec_collect(x, &o, &err) == 0 && o.out_total == 588895 && o.out_len == 8192);
	CHECK(!strcmp(o.out + o.out_len - 7, "100000\n"));
	guest_exec_output_fini(&o);
	guest_exec_free(x);
}

static void an_adopting_reader_can_hold_the_output(void)
{
	struct guest_exec_spec spec = { .text = "seq 100; read x; seq 101 100000",
					.log_bytes = 8192,
					.stdin_open = true };
	static char all[600000];
	struct guest_exec *x = NULL;
	uint64_t id, at = 0;
	size_t len = 0;
	ssize_t n;

	ENGINE();
	id = orphan(&spec, 292);
	CHECK(id && guest_exec_adopt(box, id, true, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_end(x, GUEST_EXEC_OUT) == 292 &&
	      guest_exec_stdin(x, "\n", 1, true, &err) == 0);
	for (;;) {
		while ((n = guest_exec_read(x, GUEST_EXEC_OUT, &at, all + len, sizeof(all) - len)) >
		       0) {
			len += (size_t)n;
			CHECK(guest_exec_consumed(x, at, 0, &err) == 0);
		}
		if (*guest_exec_ended(x) && at == guest_exec_end(x, GUEST_EXEC_OUT))
			break;
		CHECK(agent_step(sandbox_agent(box), 120000, &err) == 0);
	}
	CHECK(is_seq(all, len, 1, 100000) && guest_exec_result(x)->hits == 0);
	guest_exec_free(x);
}

static void new_output_is_reported_after_holding_the_old(void)
{
	struct guest_exec_spec spec = { .text = "echo one; read x; echo two; read x",
					.stdin_open = true };
	struct guest_exec *x = NULL;
	uint64_t id;

	ENGINE();
	id = orphan(&spec, 4);
	CHECK(id && guest_exec_adopt(box, id, true, NULL, NULL, &x, &err) == 0);
	/* Nothing was consumed, but new output still gets an event. */
	CHECK(guest_exec_stdin(x, "\n", 1, false, &err) == 0);
	for (int i = 0; i < 10 && guest_exec_end(x, GUEST_EXEC_OUT) < 8; i++)
		CHECK(agent_step(sandbox_agent(box), 120000, &err) == 0);
	CHECK(guest_exec_end(x, GUEST_EXEC_OUT) == 8);
	CHECK(guest_exec_stdin(x, "\n", 1, false, &err) == 0 &&
	      guest_exec_wait(x, 120000, &err) == 0);
	guest_exec_free(x);
}

static bool file_is(int fd, const char *want, size_t len)
{
	char *got = calloc(1, len + 1);
	struct stat st;
	bool same = got && fstat(fd, &st) == 0 && (size_t)st.st_size == len &&
		    pread(fd, got, len, 0) == (ssize_t)len && !memcmp(got, want, len);

	free(got);
	return same;
}

static void output_is_saved(void)
{
	struct guest_exec_spec spec = { .text = "seq 1 100000; echo e >&2",
					.log_bytes = 200 * 1024 };
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), p[2];
	struct guest_exec *x = NULL;
	size_t len;
	char *want;

	ENGINE();
	CHECK(fd >= 0 && guest_exec_start(box, &spec, &x, &err) == 0);
	if (!*guest_exec_ended(x))
		CHECK(guest_exec_save(x, GUEST_EXEC_OUT, fd, &err) == -1 &&
		      err.code == ERR_CONFLICT);
	CHECK(guest_exec_wait(x, 120000, &err) == 0);
	CHECK(guest_exec_save(x, GUEST_EXEC_ERR, fd, &err) == 0 && file_is(fd, "e\n", 2));
	CHECK(guest_exec_save(x, GUEST_EXEC_OUT, fd, &err) == 0);
	want = numbers(1, 100000, &len);
	CHECK(want && guest_exec_end(x, GUEST_EXEC_OUT) == len);
	len -= (size_t)guest_exec_start_offset(x, GUEST_EXEC_OUT);
	CHECK(len == 200 * 1024);
	CHECK(file_is(fd, want + guest_exec_start_offset(x, GUEST_EXEC_OUT), len));
	free(want);
	CHECK(guest_exec_save(x, GUEST_EXEC_ERR, fd, &err) == 0 &&
	      file_is(fd, "e\n", 2)); /* truncated again */
	CHECK(pipe2(p, O_CLOEXEC) == 0 && guest_exec_save(x, GUEST_EXEC_OUT, p[1], &err) == -1);
	CHECK(err.code == ERR_INVALID);
	close(p[0]);
	close(p[1]);
	close(fd);
	guest_exec_free(x);
}

static void connections_number_separately(void)
{
	struct guest_exec_spec spec = { .text = "echo aside" };
	struct sandbox *side[2] = { NULL, NULL };
	struct agent_hello before, after;
	struct guest_exec *x = NULL;
	struct guest_exec_output o;

	ENGINE();
	CHECK(agent_hello(sandbox_agent(box), &before, &err) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(sandbox_connect(keeper, sandbox_id(box), &side[i], &err) == 0);
		agent_number_from(sandbox_agent(side[i]), agent_side_base(1000 + i));
		CHECK(guest_exec_start(side[i], &spec, &x, &err) == 0);
		CHECK(guest_exec_id(x) == agent_side_base(1000 + i) + 1);
		CHECK(guest_exec_wait(x, 120000, &err) == 0 &&
		      guest_exec_collect(x, &o, &err) == 0);
		CHECK_STR(o.out, "aside\n");
		guest_exec_output_fini(&o);
		guest_exec_free(x);
	}
	CHECK(agent_hello(sandbox_agent(box), &after, &err) == 0);
	CHECK(after.last_exec == before.last_exec);
	CHECK(guest_exec_start(box, &spec, &x, &err) == 0 &&
	      guest_exec_id(x) == before.last_exec + 1);
	guest_exec_free(x);
	sandbox_free(side[0]);
	sandbox_free(side[1]);
}

static void a_used_number_is_refused(void)
{
	struct guest_exec_spec spec = { .text = "read x", .stdin_open = true };
	struct guest_exec *x = NULL, *y = NULL;
	struct sandbox *other = NULL;

	ENGINE();
	CHECK(sandbox_connect(keeper, sandbox_id(box), &other, &err) == 0);
	CHECK(agent_hello(sandbox_agent(box), NULL, &err) == 0);
	CHECK(guest_exec_start(box, &spec, &x, &err) == 0); /* `other` does not know of it */
	CHECK(guest_exec_start(other, &spec, &y, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(guest_exec_adopt(other, guest_exec_id(x), false, NULL, NULL, &y, &err) == 0);
	CHECK(guest_exec_stdin(y, "\n", 1, false, &err) == 0);
	CHECK(guest_exec_wait(y, 120000, &err) == 0 && guest_exec_wait(x, 120000, &err) == 0);
	guest_exec_free_keep(y);
	guest_exec_free(x);
	sandbox_free(other);
}

static void a_handle_freed_early_blocks_nothing(void)
{
	struct guest_exec_spec spec = { .text = "seq 100000", .log_bytes = 4096, .hold = true };
	struct guest_exec *x = NULL;
	uint64_t id;

	ENGINE();
	CHECK(guest_exec_begin(box, &spec, &x, &err) == 0 &&
	      guest_exec_state(x) == GUEST_EXEC_STARTING);
	id = guest_exec_id(x);
	guest_exec_free(x);
	CHECK(ended_alone(id)); /* this connection is still open */
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &x, &err) == 0);
	CHECK(guest_exec_result(x)->code == 0 && guest_exec_end(x, GUEST_EXEC_OUT) == 588895);
	guest_exec_free(x);
}

static void file_jobs_are_adopted_as_well(void)
{
	struct files_job_spec spec = { .op = AGENT_JOB_LIST, .path = "/no/such", .depth = 1 };
	struct guest_exec *job = NULL;
	uint64_t id;
	int p[2];

	ENGINE();
	CHECK(pipe2(p, O_CLOEXEC) == 0);
	spec.fd = p[1];
	CHECK(files_job_begin(box, &spec, &job, &err) == 0 &&
	      guest_exec_wait(job, 120000, &err) == 0);
	id = guest_exec_id(job);
	guest_exec_free_keep(job);
	CHECK(guest_exec_adopt(box, id, false, NULL, NULL, &job, &err) == 0);
	CHECK(guest_exec_state(job) == GUEST_EXEC_EXITED &&
	      guest_exec_end(job, GUEST_EXEC_OUT) == 0);
	CHECK(files_job_check(job, "/no/such", &err) == -1 && err.code == ERR_NOT_FOUND);
	guest_exec_free(job);
	close(p[0]);
	close(p[1]);
}

static void arming_need_not_wait(void)
{
	struct guest_exec_spec spec = { .text = "echo used_spare_shell" };
	struct guest_exec *x = NULL;
	bool used_spare_shell = false;

	ENGINE();
	CHECK(guest_exec_set_spare_shell(box, &spec, &err) == 0);
	for (int i = 0; i < 2400 && !used_spare_shell; i++) {
		CHECK(guest_exec_start(box, &spec, &x, &err) == 0 &&
		      guest_exec_wait(x, 120000, &err) == 0);
		used_spare_shell = x->used_spare_shell;
		guest_exec_free(x);
		poll(NULL, 0, 10);
	}
	CHECK(used_spare_shell);
}

static void a_forgotten_command_is_not_adopted(void)
{
	struct guest_exec *x = NULL;

	ENGINE();
	CHECK(guest_exec_adopt(box, 1ull << 40, false, NULL, NULL, &x, &err) == -1 && !x);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(sandbox_destroy(box, &err) == 0);
	CHECK(guest_exec_adopt(box, 1, false, NULL, NULL, &x, &err) == -1 && !x);
	CHECK(err.code == ERR_UNAVAILABLE);
}

int main(void)
{
	open_engine();
	RUN(output_is_complete_after_a_kill);
	RUN(output_continues_without_an_engine);
	RUN(a_command_that_ended_without_an_engine_is_adopted);
	RUN(a_running_command_is_not_forgotten);
	RUN(timeouts_are_enforced_without_an_engine);
	RUN(signals_reach_an_adopted_command);
	RUN(a_terminal_is_adopted);
	RUN(a_full_ring_continues);
	RUN(an_adopting_reader_can_hold_the_output);
	RUN(new_output_is_reported_after_holding_the_old);
	RUN(output_is_saved);
	RUN(connections_number_separately);
	RUN(a_used_number_is_refused);
	RUN(a_handle_freed_early_blocks_nothing);
	RUN(file_jobs_are_adopted_as_well);
	RUN(arming_need_not_wait);
	RUN(a_forgotten_command_is_not_adopted);
	close_engine();
	return tap_done();
}
