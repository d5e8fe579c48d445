/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-init after its engine has died: commands continue, their results and logs are available to
 * the next engine, and what is retained is bounded. */
#include <sys/resource.h>

#include "base/fd_message.h"
#include "init_client.h"
#include "tap.h"
#include "wire/agent_proto.h"

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- what a new engine gets ------------------------------------------------------------------ */

static struct {
	struct agent_logs l;
	int fds[2];
	size_t nfds;
} logs;

static void logs_close(void)
{
	while (logs.nfds)
		close(logs.fds[--logs.nfds]);
}

/* Requests the logs; AGENT_LOGR or AGENT_ERROR is then in `reply`. */
static uint32_t get_logs(uint64_t exec)
{
	static char buf[AGENT_MSG_MAX];
	struct agent_ref r = { exec };
	uint32_t req = transmit(cl.sock, AGENT_LOGS, &r, sizeof(r), NULL, 0);
	struct pollfd p = { .fd = cl.sock, .events = POLLIN };

	logs_close();
	while (poll(&p, 1, 120000) == 1) {
		int n = fd_message_recv(cl.sock, buf, sizeof(buf), logs.fds, 2, &logs.nfds);

		if (n < (int)sizeof(reply.h) || agent_msg_problem(buf, (size_t)n, logs.nfds, false))
			return 0;
		memcpy(&reply.h, buf, sizeof(reply.h));
		reply.len = (uint32_t)n - (uint32_t)sizeof(reply.h);
		memcpy(reply.body, buf + sizeof(reply.h), reply.len);
		if (reply.h.req == req)
			break;
		if (cl.nkept < 64)
			cl.kept[cl.nkept++] = reply;
	}
	if (reply.h.type == AGENT_LOGR)
		memcpy(&logs.l, reply.body, sizeof(logs.l));
	return reply.h.type;
}

/* Everything that can be read of one stream. */
static const char *content(int i)
{
	static char text[65536];
	const struct agent_progress *at = &logs.l.proc.exit.at;

	oc.log_bytes = logs.l.log_bytes;
	read_log(logs.fds[i], i ? at->err_start : at->out_start, i ? at->err_end : at->out_end,
		 text, sizeof(text));
	return text;
}

static void engine_dies(void)
{
	close(cl.sock);
	cl.nkept = 0;
	cl.sock = client_connect();
}

static bool ends_within(uint64_t exec, int ms)
{
	struct agent_proc p = { 0 };

	for (; ms > 0; ms -= 20) {
		if (call_ref(AGENT_STATUS, exec) != AGENT_PROC)
			return false;
		memcpy(&p, reply.body, sizeof(p));
		if (p.state == AGENT_EXITED)
			return true;
		pause_ms(20);
	}
	return false;
}

static char input[sizeof(struct agent_stdin) + AGENT_DATA_MAX];

static size_t pack_input(const void *bytes, uint32_t len, uint32_t eof)
{
	struct agent_stdin m = { oc.exec, eof, len };

	memcpy(input, &m, sizeof(m));
	memcpy(input + sizeof(m), bytes, len);
	return sizeof(m) + len;
}

static uint32_t feed(const void *bytes, uint32_t len, uint32_t eof)
{
	return call(AGENT_STDIN, input, pack_input(bytes, len, eof));
}

static void a_running_command_is_handed_over(void)
{
	struct agent_offsets o;

	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED | AGENT_STDIN_OPEN,
				    .argv = ARGV("echo early; echo e >&2; read x; echo $x; "
						 "exit 3") }) == AGENT_STARTED);
	CHECK(next_event(&cl.event, WAIT_MS) && cl.event.h.type == AGENT_OUTPUT);
	engine_dies();
	CHECK(get_logs(oc.exec) == AGENT_LOGR && logs.nfds == 2);
	CHECK(logs.l.proc.state == AGENT_RUNNING && logs.l.proc.pid == oc.pid);
	CHECK((logs.l.proc.flags & AGENT_STDIN_OPEN) && logs.l.log_bytes == LOG_BYTES);
	CHECK_STR(content(0), "early\n");
	CHECK(feed("late\n", 5, 0) == AGENT_OK);
	o = (struct agent_offsets){ oc.exec, 0, 0 };
	CHECK(call(AGENT_ATTACH, &o, sizeof(o)) == AGENT_OK && wait_end(WAIT_MS));
	CHECK(oc.exit.code == 3 && oc.exit.at.out_end == 11 && oc.exit.at.err_end == 2);
	CHECK(get_logs(oc.exec) == AGENT_LOGR && logs.l.proc.state == AGENT_EXITED);
	CHECK(logs.l.proc.exit.code == 3);
	CHECK_STR(content(0), "early\nlate\n");
	CHECK_STR(content(1), "e\n");
}

static void a_result_is_kept_until_it_is_forgotten(void)
{
	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED | AGENT_MERGE,
				    .argv = ARGV("sleep 0.2; seq 1 2000; exit 5") }) ==
	      AGENT_STARTED);
	outcome_close(); /* closes the engine's own descriptors */
	engine_dies();
	CHECK(ends_within(oc.exec, WAIT_MS));
	for (int i = 0; i < 2; i++) { /* requesting changes nothing */
		CHECK(get_logs(oc.exec) == AGENT_LOGR && logs.nfds == 1);
		CHECK(logs.l.proc.exit.code == 5 && logs.l.proc.exit.hits == 0);
		CHECK(logs.l.proc.exit.at.out_start == 0 && logs.l.proc.exit.at.out_end == 8893);
		CHECK(!strncmp(content(0), "1\n2\n3\n", 6) && strstr(content(0), "\n1999\n2000\n"));
	}
	CHECK(call_ref(AGENT_FORGET, oc.exec) == AGENT_OK);
	CHECK(get_logs(oc.exec) == AGENT_ERROR && error_code() == ERR_NOT_FOUND);
	CHECK_STR(content(0) + 8886, "9\n2000\n"); /* descriptors handed out stay readable */
}

static void a_deadline_needs_no_engine(void)
{
	for (uint32_t ms = 300; ms < WAIT_MS; ms *= 4) {
		CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
					    .timeout_ms = ms,
					    .argv = ARGV("echo before; sleep 731") }) ==
		      AGENT_STARTED);
		engine_dies();
		CHECK(ends_within(oc.exec, WAIT_MS));
		CHECK(get_logs(oc.exec) == AGENT_LOGR);
		CHECK((logs.l.proc.exit.hits & AGENT_HIT_TIME) &&
		      logs.l.proc.exit.signal == SIGKILL);
		if (*content(0)) /* otherwise the machine was too busy to run the command */
			break;
	}
	CHECK_STR(content(0), "before\n");
}

static void a_full_ring_does_not_wait_for_a_dead_engine(void)
{
	struct agent_proc p = { 0 };

	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				    .log_bytes = 4096,
				    .argv = ARGV("seq 1 9000") }) == AGENT_STARTED);
	for (int i = 0; i < 6000 && p.exit.at.out_end < 4096; i++) {
		pause_ms(20);
		CHECK(call_ref(AGENT_STATUS, oc.exec) == AGENT_PROC);
		memcpy(&p, reply.body, sizeof(p));
	}
	CHECK(p.state == AGENT_RUNNING && p.exit.at.out_end == 4096 && p.exit.at.out_start == 0);
	engine_dies();
	CHECK(ends_within(oc.exec, WAIT_MS));
	CHECK(get_logs(oc.exec) == AGENT_LOGR && (logs.l.proc.exit.hits & AGENT_HIT_OUTPUT));
	CHECK(logs.l.proc.exit.at.out_end == 43893 && logs.l.proc.exit.at.out_start == 39797);
	CHECK_STR(content(0) + 4096 - 10, "8999\n9000\n");
}

static void output_that_just_fits_is_complete(void)
{
	CHECK(begin(&(struct want){ .flags = AGENT_BASH,
				    .log_bytes = 4096,
				    .argv = ARGV("sleep 0.1; head -c 4096 /dev/zero | tr '\\0' "
						 "x") }) == AGENT_STARTED);
	engine_dies();
	CHECK(ends_within(oc.exec, WAIT_MS) && get_logs(oc.exec) == AGENT_LOGR);
	CHECK(logs.l.proc.exit.hits == 0 && logs.l.proc.exit.at.out_start == 0);
	CHECK(strspn(content(0), "x") == 4096);
}

static void input_of_a_dead_engine_is_written_first(void)
{
	static char block[AGENT_DATA_MAX];
	struct agent_offsets o;
	struct pollfd p;
	char text[256];

	snprintf(text, sizeof(text), "until [ -e %s ]; do sleep 0.05; done; wc -c",
		 in_scratch("go"));
	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_STDIN_OPEN, .argv = ARGV(text) }) ==
	      AGENT_STARTED);
	CHECK(feed(block, sizeof(block), 0) == AGENT_OK); /* as much as the pipe holds */
	transmit(cl.sock, AGENT_STDIN, input, pack_input(block, sizeof(block), 0), NULL, 0);
	p = (struct pollfd){ .fd = cl.sock, .events = POLLIN };
	CHECK(poll(&p, 1, 100) == 0); /* and no more */
	engine_dies();
	CHECK(feed("12345", 5, 1) == AGENT_ERROR && error_code() == ERR_CONFLICT);
	CHECK(mkdir(in_scratch("go"), 0755) == 0);
	CHECK(feed("", 0, 0) == AGENT_OK); /* only after the rest is written */
	CHECK(feed("12345", 5, 1) == AGENT_OK);
	o = (struct agent_offsets){ oc.exec, 0, 0 };
	CHECK(call(AGENT_ATTACH, &o, sizeof(o)) == AGENT_OK && wait_end(WAIT_MS));
	CHECK_STR(oc.out, "131077\n");
}

/* Its first messages get replies that cannot be delivered. */
static void all_messages_of_a_dead_engine_are_handled(void)
{
	static char body[4096];
	int engine = client_connect(), log = make_log(LOG_BYTES);
	uint64_t exec = cl.next_exec++;
	size_t len = pack_exec(
		body, &(struct want){ .flags = AGENT_BASH | AGENT_MERGE, .argv = ARGV("echo hi") },
		exec);
	uint32_t type = 0;

	CHECK(kill(cl.pid, SIGSTOP) == 0);
	for (int i = 0; i < 3; i++)
		transmit(engine, AGENT_HELLO, NULL, 0, NULL, 0);
	transmit(engine, AGENT_EXEC, body, len, &log, 1);
	close(engine);
	CHECK(kill(cl.pid, SIGCONT) == 0);
	for (int i = 0; i < WAIT_MS / 20 && type != AGENT_PROC; i++) {
		pause_ms(i ? 20 : 0);
		type = call_ref(AGENT_STATUS, exec);
	}
	CHECK(type == AGENT_PROC);
	close(log);
}

static void the_table_lists_and_forgets(void)
{
	uint32_t req, n = 0;
	struct agent_proc p;

	CHECK(begin(&(struct want){ .argv = ARGV("sleep", "20") }) == AGENT_STARTED);
	CHECK(call_ref(AGENT_FORGET, oc.exec) == AGENT_ERROR && error_code() == ERR_CONFLICT);
	req = transmit(cl.sock, AGENT_LIST, NULL, 0, NULL, 0);
	for (;;) {
		CHECK(receive(cl.sock, &reply, WAIT_MS) && reply.h.req == req);
		if (reply.h.type == AGENT_OK)
			break;
		memcpy(&p, reply.body, sizeof(p));
		n += p.exec == oc.exec && p.state == AGENT_RUNNING;
	}
	CHECK(n == 1);
	CHECK(send_signal(SIGKILL, AGENT_TO_TREE) == AGENT_OK);
}

static void a_number_is_used_once(void)
{
	const struct want sleeper = { .argv = ARGV("sleep", "20") };
	const struct want quick = { .argv = ARGV("true") };

	CHECK(begin(&sleeper) == AGENT_STARTED);
	cl.next_exec--;
	CHECK(begin(&quick) == AGENT_ERROR && error_code() == ERR_CONFLICT);
	cl.next_exec--;
	CHECK(begin_job(AGENT_JOB_REMOVE, 0, 0, "/no/such", -1) == AGENT_ERROR);
	CHECK(error_code() == ERR_CONFLICT);
	CHECK(call(AGENT_SIGNAL, &(struct agent_signal){ oc.exec, SIGKILL, AGENT_TO_TREE },
		   sizeof(struct agent_signal)) == AGENT_OK);
	CHECK(ends_within(oc.exec, WAIT_MS));
	cl.next_exec--;
	CHECK(begin(&quick) == AGENT_ERROR &&
	      error_code() == ERR_CONFLICT); /* ended commands count too */
	CHECK(call_ref(AGENT_FORGET, oc.exec) == AGENT_OK);
	CHECK(call_ref(AGENT_FORGET, oc.exec) == AGENT_ERROR && error_code() == ERR_NOT_FOUND);
}

static uint64_t last_exec(void)
{
	struct agent_hello h = { 0 };

	if (call(AGENT_HELLO, NULL, 0) == AGENT_HELLOR)
		memcpy(&h, reply.body, sizeof(h));
	return h.last_exec;
}

static void numbers_of_side_connections_do_not_count(void)
{
	uint64_t before = last_exec(), main_next = cl.next_exec;

	cl.next_exec = 7 * AGENT_SIDE_EXEC + 1;
	CHECK(run_bash("echo aside") && last_exec() == before);
	CHECK(get_logs(oc.exec) == AGENT_LOGR);
	CHECK_STR(content(0), "aside\n");
	cl.next_exec = main_next;
	CHECK(run_bash("true") && last_exec() == oc.exec && oc.exec > before);
}

static void a_job_has_no_logs_but_an_error(void)
{
	int p[2];

	CHECK(pipe(p) == 0);
	CHECK(begin_job(AGENT_JOB_LIST, 0, 1, "/no/such", p[1]) == AGENT_STARTED);
	CHECK(wait_end(WAIT_MS) && oc.exit.job_errno == ENOENT);
	close(p[0]);
	close(p[1]);
	CHECK(get_logs(oc.exec) == AGENT_LOGR && logs.nfds == 0 && logs.l.log_bytes == 0);
	CHECK(logs.l.proc.exit.job_errno == ENOENT);
	CHECK(strstr(reply.body + sizeof(logs.l), "/no/such"));
}

/* ---- bounds -------------------------------------------------------------------------------------
 */

static uint64_t write_much(uint64_t id)
{
	cl.next_exec = id;
	if (begin(&(struct want){ .log_bytes = 8 << 20,
				  .argv = ARGV("head", "-c", "8388608", "/dev/zero") }) !=
		    AGENT_STARTED ||
	    !ends_within(oc.exec, 20000))
		return 0;
	return oc.exec;
}

static void retained_output_of_ended_commands_is_bounded(void)
{
	uint64_t first, last = 0, next = cl.next_exec;

	/* It has the highest number, but is the oldest. */
	first = write_much(9 * AGENT_SIDE_EXEC + 1);
	CHECK(first);
	for (int i = 0; i < 7; i++)
		CHECK((last = write_much(next++)));
	outcome_close();
	engine_dies();
	CHECK(get_logs(first) == AGENT_LOGR && logs.nfds == 2); /* no command was started since */
	CHECK(logs.l.proc.exit.at.out_start == 0 && logs.l.proc.exit.hits == 0);
	cl.next_exec = next;
	CHECK(run_bash("true"));
	CHECK(get_logs(first) == AGENT_LOGR && logs.nfds == 0 && logs.l.log_bytes == 0);
	CHECK(logs.l.proc.exit.code == 0 && (logs.l.proc.exit.hits & AGENT_HIT_OUTPUT));
	CHECK(logs.l.proc.exit.at.out_start == 8 << 20 && logs.l.proc.exit.at.out_end == 8 << 20);
	CHECK(get_logs(last) == AGENT_LOGR && logs.nfds == 2);
	CHECK(logs.l.proc.exit.hits == 0 && logs.l.proc.exit.at.out_start == 0);
}

static uint32_t set_share(uint32_t pages)
{
	struct agent_limits l = { .open_files = 256,
				  .output_pages = pages,
				  .file_bytes = 64 << 20 };

	return call(AGENT_LIMITS, &l, sizeof(l));
}

static bool kill_command(uint64_t id)
{
	oc.exec = id;
	return call(AGENT_SIGNAL, &(struct agent_signal){ id, SIGKILL, AGENT_TO_TREE },
		    sizeof(struct agent_signal)) == AGENT_OK &&
	       ends_within(id, WAIT_MS) && call_ref(AGENT_FORGET, id) == AGENT_OK;
}

/* 4 MiB for all running commands, and 1 MiB for those of lodge. */
static void rings_of_running_commands_are_bounded(void)
{
	const struct want rings = { .log_bytes = 1 << 20, .argv = ARGV("sleep", "777") };
	const struct want small = { .log_bytes = 4096, .argv = ARGV("echo", "x") };
	const struct want one = { .log_bytes = 1 << 20,
				  .flags = AGENT_MERGE,
				  .argv = ARGV("sleep", "777") };
	struct agent_error e;
	uint64_t first = cl.next_exec;

	CHECK(set_share((4 << 20) / AGENT_PAGE) == AGENT_OK);
	CHECK(begin(&rings) == AGENT_STARTED && begin(&rings) == AGENT_STARTED);
	CHECK(begin(&rings) == AGENT_ERROR && error_code() == ERR_LIMIT);
	memcpy(&e, reply.body, sizeof(e));
	CHECK(e.sys == AGENT_NO_OUTPUT && strstr(error_text(), "4M"));
	CHECK(begin(&one) == AGENT_STARTED); /* in the spare MiB */
	CHECK(begin(&small) == AGENT_ERROR && error_code() == ERR_LIMIT);
	CHECK(kill_command(first) && begin(&small) == AGENT_STARTED);
	CHECK(set_share(0) == AGENT_OK); /* an engine that does not know of it */
	CHECK(begin(&rings) == AGENT_STARTED && begin(&rings) == AGENT_STARTED);
	for (uint64_t id = first + 1; id < cl.next_exec; id++)
		if (id != first + 2 && id != first + 4 && id != first + 5)
			CHECK(kill_command(id));
}

static void retained_output_is_bounded_by_the_share(void)
{
	uint64_t first, second;

	CHECK(set_share((20 << 20) / AGENT_PAGE) == AGENT_OK);
	first = write_much(cl.next_exec);
	second = write_much(cl.next_exec);
	CHECK(first && second && write_much(cl.next_exec)); /* 24 MiB of them are kept */
	CHECK(run_bash("true"));
	CHECK(get_logs(first) == AGENT_LOGR && logs.nfds == 0);
	CHECK(get_logs(second) == AGENT_LOGR && logs.nfds == 2);
	CHECK(set_share(0) == AGENT_OK);
}

static int open_descriptors(void)
{
	char text[64];
	FILE *f;

	snprintf(text, sizeof(text), "ls /proc/%d/fd | wc -l", (int)cl.pid);
	f = popen(text, "r");
	if (!f || !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		pclose(f);
	return atoi(text);
}

static void few_descriptors_are_enough(void)
{
	uint64_t first = cl.next_exec;

	for (int i = 0; i < 100; i++)
		CHECK(run_argv(ARGV("echo", "x")) && oc.exit.code == 0);
	CHECK(open_descriptors() < 100);
	CHECK(get_logs(oc.exec) == AGENT_LOGR && logs.nfds == 2);
	CHECK_STR(content(0), "x\n");
	CHECK(get_logs(first) == AGENT_LOGR && logs.nfds == 0);
	CHECK(logs.l.proc.exit.hits & AGENT_HIT_OUTPUT);
	logs_close();
	for (uint64_t id = first; id < cl.next_exec; id++)
		CHECK(call_ref(AGENT_FORGET, id) == AGENT_OK);
	CHECK(open_descriptors() < 20);
}

static bool start(void)
{
	if (client_start(false) && bind_client(AGENT_BIND_ONE_ID) == AGENT_OK)
		return true;
	printf("Bail out! %s does not start\n", init_binary());
	return false;
}

int main(void)
{
	/* The hard limit too, because lodge-init raises the soft one. */
	struct rlimit few = { 256, 256 };

	if (!start())
		return 1;
	RUN(a_running_command_is_handed_over);
	RUN(a_result_is_kept_until_it_is_forgotten);
	RUN(a_deadline_needs_no_engine);
	RUN(a_full_ring_does_not_wait_for_a_dead_engine);
	RUN(output_that_just_fits_is_complete);
	RUN(input_of_a_dead_engine_is_written_first);
	RUN(all_messages_of_a_dead_engine_are_handled);
	RUN(the_table_lists_and_forgets);
	RUN(a_number_is_used_once);
	RUN(numbers_of_side_connections_do_not_count);
	RUN(a_job_has_no_logs_but_an_error);
	RUN(retained_output_of_ended_commands_is_bounded);
	RUN(rings_of_running_commands_are_bounded);
	RUN(retained_output_is_bounded_by_the_share);
	client_stop();
	if (setrlimit(RLIMIT_NOFILE, &few) < 0 || !start())
		return 1;
	RUN(few_descriptors_are_enough);
	client_stop();
	logs_close();
	outcome_close();
	return tap_done();
}
