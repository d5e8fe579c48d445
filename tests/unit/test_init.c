/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-init as a plain process: commands, output, signals, deadlines, readers. */
#include "base/fd_message.h"
#include "init_client.h"
#include "tap.h"
#include "wire/agent_proto.h"

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void nothing_is_accepted_before_the_binding(void)
{
	CHECK(call(AGENT_HELLO, NULL, 0) == AGENT_ERROR);
	CHECK(error_code() == ERR_UNAVAILABLE);
	CHECK(bind_client(AGENT_BIND_ONE_ID) == AGENT_OK);
	CHECK(bind_client(AGENT_BIND_ONE_ID) == AGENT_ERROR);
	CHECK(error_code() == ERR_CONFLICT);
	CHECK(call(AGENT_HELLO, NULL, 0) == AGENT_HELLOR);
}

static void exit_status_is_exact(void)
{
	CHECK(run_bash("exit 0") && oc.exit.code == 0 && oc.exit.signal == 0);
	CHECK(run_bash("exit 255") && oc.exit.code == 255);
	CHECK(run_bash("kill -9 $$") && oc.exit.code == -1 && oc.exit.signal == SIGKILL);
	CHECK(run_bash("kill -SEGV $$") && oc.exit.signal == SIGSEGV);
	CHECK(oc.exit.duration_us > 0 && oc.exit.max_rss_bytes > 100000);
}

static void streams_are_separate_and_exact(void)
{
	CHECK(run_bash("printf 'a\\0b\\377'; printf 'e\\0' >&2"));
	CHECK(oc.out_len == 4 && !memcmp(oc.out, "a\0b\377", 4));
	CHECK(oc.err_len == 2 && !memcmp(oc.err, "e\0", 2));
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_MERGE | AGENT_ATTACHED,
				       .argv = ARGV("echo 1; echo 2 >&2; echo 3") }));
	CHECK_STR(oc.out, "1\n2\n3\n");
}

static void argv_is_run_without_a_shell(void)
{
	CHECK(run_argv(ARGV("printf", "%s|", "a b", "$HOME", "*")));
	CHECK_STR(oc.out, "a b|$HOME|*|");
}

static void a_program_that_is_missing_is_named(void)
{
	CHECK(begin(&(struct want){ .argv = ARGV("no-such-program") }) == AGENT_ERROR);
	CHECK(error_code() == ERR_NOT_FOUND);
	CHECK_STR(error_text(), "no-such-program: not found");
	CHECK(begin(&(struct want){ .argv = ARGV("/etc/passwd") }) == AGENT_ERROR);
	CHECK(error_code() == ERR_DENIED);
	CHECK(begin(&(struct want){ .argv = ARGV("true"), .cwd = "/no/such" }) == AGENT_ERROR);
	CHECK(error_code() == ERR_INVALID && strstr(error_text(), "/no/such"));
	CHECK(begin(&(struct want){ .argv = ARGV("true"), .user = "no-such" }) == AGENT_ERROR);
	CHECK(error_code() == ERR_INVALID && strstr(error_text(), "user no-such"));
	CHECK(begin(&(struct want){ .argv = ARGV("true"), .env = ARGV("=x") }) == AGENT_ERROR);
}

static void a_missing_interpreter_has_its_own_error(void)
{
	const char *path = in_scratch("script");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	CHECK(fd >= 0 && write(fd, "#!/no/such\n", 11) == 11);
	close(fd);
	CHECK(begin(&(struct want){ .argv = ARGV(path) }) == AGENT_ERROR);
	CHECK(error_code() == ERR_NOT_FOUND && strstr(error_text(), "interpreter"));
}

static void the_environment_is_exactly_the_given_one(void)
{
	CHECK(run_want(&(struct want){
		.flags = AGENT_ATTACHED,
		.argv = ARGV("/usr/bin/env"),
		.env = ARGV("A=b c", "PATH=/bin", "HOME=/", "USER=u", "LOGNAME=l", "SHELL=/s") }));
	CHECK_STR(oc.out, "A=b c\nPATH=/bin\nHOME=/\nUSER=u\nLOGNAME=l\nSHELL=/s\n");
}

static void only_three_descriptors_are_open(void)
{
	CHECK(run_bash("for f in /proc/self/fd/*; do [ -e $f ] && echo ${f##*/}; done"));
	CHECK_STR(oc.out, "0\n1\n2\n");
	CHECK(run_bash(
		"cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)' | tr -d '0\\t\\n'; ulimit -n"));
	CHECK_STR(oc.out, "SigBlk:SigIgn:SigCgt:256\n");
}

static bool is_gone(const char *mark)
{
	char command[128];

	snprintf(command, sizeof(command), "pgrep -f '[s]leep %s' >/dev/null", mark);
	return system(command) != 0;
}

static bool is_gone_soon(const char *mark)
{
	for (int ms = 0; ms < WAIT_MS && !is_gone(mark); ms += 20)
		pause_ms(20);
	return is_gone(mark);
}

static void a_deadline_ends_the_whole_tree(void)
{
	char mark[32], text[256];

	snprintf(mark, sizeof(mark), "71.1%d", (int)getpid());
	snprintf(text, sizeof(text),
		 "trap '' TERM INT HUP; setsid sleep %s & (setsid setsid sleep %s & ) ; "
		 "echo before; sleep %s",
		 mark, mark, mark);
	for (uint32_t ms = 300; ms < WAIT_MS; ms *= 4) {
		CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
					       .timeout_ms = ms,
					       .argv = ARGV(text) }));
		CHECK(oc.exit.hits & AGENT_HIT_TIME);
		CHECK(oc.exit.code == -1 && oc.exit.signal == SIGKILL);
		if (oc.out_len) /* otherwise the machine was too busy to run the command */
			break;
	}
	CHECK_STR(oc.out, "before\n");
	CHECK(is_gone_soon(mark));
}

static void a_stopped_command_times_out_too(void)
{
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .timeout_ms = 200,
				       .argv = ARGV("kill -STOP $$; echo never") }));
	CHECK((oc.exit.hits & AGENT_HIT_TIME) && oc.exit.signal == SIGKILL);
}

static void a_child_that_holds_the_pipe_does_not_delay_the_result(void)
{
	char mark[32], text[64];

	snprintf(mark, sizeof(mark), "71.2%d", (int)getpid());
	snprintf(text, sizeof(text), "sleep %s & echo done", mark);
	CHECK(run_bash(text) && !is_gone(mark));
	CHECK(oc.exit.code == 0);
	CHECK_STR(oc.out, "done\n");
	CHECK(call(AGENT_SIGNAL, &(struct agent_signal){ oc.exec, SIGKILL, AGENT_TO_TREE },
		   sizeof(struct agent_signal)) == AGENT_OK);
	CHECK(is_gone_soon(mark));
}

static void later_output_of_a_survivor_is_kept(void)
{
	struct agent_proc p = { 0 };
	char text[256];

	snprintf(text, sizeof(text),
		 "(until [ -e %s ]; do sleep 0.05; done; echo late) & echo early",
		 in_scratch("late"));
	CHECK(run_bash(text));
	CHECK_STR(oc.out, "early\n");
	CHECK(mkdir(in_scratch("late"), 0755) == 0);
	for (int i = 0; i < WAIT_MS / 20; i++) {
		CHECK(call_ref(AGENT_STATUS, oc.exec) == AGENT_PROC);
		memcpy(&p, reply.body, sizeof(p));
		if (p.exit.at.out_end > 6)
			break;
		pause_ms(20);
	}
	read_log(oc.logs[0], 0, p.exit.at.out_end, oc.out, sizeof(oc.out));
	CHECK_STR(oc.out, "early\nlate\n");
	CHECK(p.state == AGENT_EXITED);
}

static void signals_reach_group_process_and_tree(void)
{
	const struct want w = { .flags = AGENT_BASH | AGENT_ATTACHED,
				.argv = ARGV("trap 'echo got; exit 5' USR1; echo up; "
					     "sleep 30 & wait; exit 6") };

	for (uint32_t scope = AGENT_TO_GROUP; scope <= AGENT_TO_TREE; scope++) {
		CHECK(begin(&w) == AGENT_STARTED);
		CHECK(next_event(&cl.event, WAIT_MS) && cl.event.h.type == AGENT_OUTPUT);
		CHECK(send_signal(SIGUSR1, scope) == AGENT_OK);
		CHECK(wait_end(WAIT_MS));
		CHECK(oc.exit.code == 5);
		send_signal(SIGKILL, AGENT_TO_TREE);
	}
	CHECK(send_signal(SIGTERM, AGENT_TO_GROUP) == AGENT_ERROR);
	CHECK(error_code() == ERR_NOT_FOUND);
}

static uint32_t feed(const void *bytes, uint32_t len, uint32_t eof)
{
	static char body[sizeof(struct agent_stdin) + AGENT_DATA_MAX];
	struct agent_stdin m = { oc.exec, eof, len };

	memcpy(body, &m, sizeof(m));
	memcpy(body + sizeof(m), bytes, len);
	return transmit(cl.sock, AGENT_STDIN, body, sizeof(m) + len, NULL, 0);
}

static bool answered(uint32_t req, uint32_t type)
{
	while (receive(cl.sock, &reply, WAIT_MS)) {
		if (reply.h.req == req)
			return reply.h.type == type;
		if (cl.nkept < 64)
			cl.kept[cl.nkept++] = reply;
	}
	return false;
}

static void input_is_streamed_and_waits_for_the_command(void)
{
	static char block[AGENT_DATA_MAX];
	struct pollfd p = { .fd = cl.sock, .events = POLLIN };
	uint32_t req;
	char text[256];

	snprintf(text, sizeof(text), "until [ -e %s ]; do sleep 0.05; done; wc -c",
		 in_scratch("reading"));
	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED | AGENT_STDIN_OPEN,
				    .argv = ARGV(text) }) == AGENT_STARTED);
	memset(block, 'x', sizeof(block));
	CHECK(answered(feed(block, sizeof(block), 0), AGENT_OK)); /* as much as the pipe holds */
	req = feed(block, sizeof(block), 0);
	CHECK(poll(&p, 1, 100) == 0); /* back-pressure: no answer before it is written */
	CHECK(answered(feed(block, 1, 0), AGENT_ERROR) && error_code() == ERR_CONFLICT);
	CHECK(mkdir(in_scratch("reading"), 0755) == 0);
	CHECK(answered(req, AGENT_OK));
	CHECK(answered(feed("", 0, 1), AGENT_OK));
	CHECK(wait_end(WAIT_MS));
	CHECK_STR(oc.out, "131072\n");
	CHECK(answered(feed("x", 1, 0), AGENT_ERROR));
}

static void unread_input_is_refused_when_the_command_ends(void)
{
	static char block[AGENT_DATA_MAX];
	uint32_t req;
	char text[256];

	snprintf(text, sizeof(text), "until [ -e %s ]; do sleep 0.05; done", in_scratch("leave"));
	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED | AGENT_STDIN_OPEN,
				    .argv = ARGV(text) }) == AGENT_STARTED);
	CHECK(answered(feed(block, sizeof(block), 0), AGENT_OK));
	req = feed(block, sizeof(block), 0);
	CHECK(mkdir(in_scratch("leave"), 0755) == 0);
	CHECK(answered(req, AGENT_ERROR));
	CHECK(wait_end(WAIT_MS));
}

static void without_input_it_is_empty(void)
{
	CHECK(run_argv(ARGV("cat")) && oc.exit.code == 0 && oc.out_len == 0);
}

static void a_terminal_has_a_size_and_can_be_resized(void)
{
	struct agent_resize z;

	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_PTY | AGENT_ATTACHED,
				    .rows = 33,
				    .cols = 99,
				    .argv = ARGV("stty -echo; stty size; read x; stty size; "
						 "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo tty; "
						 "echo $TERM; ps -o tpgid= -p $$ | "
						 "grep -qw $$ && echo leader") }) == AGENT_STARTED);
	CHECK(next_event(&cl.event, WAIT_MS) && cl.event.h.type == AGENT_OUTPUT);
	z = (struct agent_resize){ oc.exec, 50, 120 };
	CHECK(call(AGENT_RESIZE, &z, sizeof(z)) == AGENT_OK);
	CHECK(answered(feed("\n", 1, 0), AGENT_OK));
	CHECK(wait_end(WAIT_MS));
	CHECK_STR(oc.out, "33 99\r\n50 120\r\ntty\r\nxterm-256color\r\nleader\r\n");
}

static void a_hang_up_of_the_terminal_ends_the_output(void)
{
	CHECK(run_want(&(struct want){ .flags = AGENT_PTY | AGENT_ATTACHED,
				       .argv = ARGV("sh", "-c", "echo x; exit 4") }));
	CHECK(oc.exit.code == 4);
	CHECK_STR(oc.out, "x\r\n");
}

/* The state of the command begun last, once none of its processes runs. */
static bool comes_to_end(struct agent_proc *ret)
{
	for (int ms = 0; ms < WAIT_MS; ms += 20) {
		if (call_ref(AGENT_STATUS, oc.exec) != AGENT_PROC)
			return false;
		memcpy(ret, reply.body, sizeof(*ret));
		if (ret->state == AGENT_EXITED)
			return true;
		pause_ms(20);
	}
	return false;
}

static void a_late_reader_gets_everything(void)
{
	struct agent_offsets o;
	struct agent_proc p;

	CHECK(begin(&(struct want){ .argv = ARGV("echo", "kept") }) == AGENT_STARTED);
	CHECK(comes_to_end(&p));
	CHECK(p.state == AGENT_EXITED && p.argc == 2 && p.pid == oc.pid);
	CHECK_STR(reply.body + sizeof(p), "echo");
	o = (struct agent_offsets){ oc.exec, 0, 0 };
	CHECK(call(AGENT_ATTACH, &o, sizeof(o)) == AGENT_OK);
	CHECK(wait_end(WAIT_MS));
	CHECK_STR(oc.out, "kept\n");
	CHECK(call_ref(AGENT_FORGET, oc.exec) == AGENT_OK);
	CHECK(call_ref(AGENT_STATUS, oc.exec) == AGENT_ERROR && error_code() == ERR_NOT_FOUND);
}

static void without_a_reader_the_oldest_is_dropped_and_marked(void)
{
	struct agent_log head;
	struct agent_offsets o;
	struct agent_proc p;

	CHECK(begin(&(struct want){ .flags = AGENT_BASH,
				    .log_bytes = 4096,
				    .argv = ARGV("seq 1 5000; echo end") }) == AGENT_STARTED);
	CHECK(comes_to_end(&p));
	o = (struct agent_offsets){ oc.exec, 0, 0 };
	CHECK(call(AGENT_ATTACH, &o, sizeof(o)) == AGENT_OK);
	CHECK(wait_end(WAIT_MS));
	CHECK(oc.exit.hits & AGENT_HIT_OUTPUT);
	CHECK(oc.exit.at.out_end == 23897 && oc.exit.at.out_end - oc.exit.at.out_start == 4096);
	CHECK(strstr(oc.out, "\n4999\n5000\nend\n"));
	CHECK(pread(oc.logs[0], &head, sizeof(head), 0) == (ssize_t)sizeof(head));
	CHECK(head.magic == AGENT_LOG_MAGIC && head.size == 4096);
	CHECK(head.start == oc.exit.at.out_start && head.end == oc.exit.at.out_end);
}

static void an_attached_reader_blocks_the_command(void)
{
	static char all[65536];
	struct agent_offsets o = { 0 };
	struct agent_progress p = { 0 };
	size_t len = 0;

	CHECK(begin(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				    .log_bytes = 4096,
				    .argv = ARGV("seq 1 9000; echo end") }) == AGENT_STARTED);
	pause_ms(300);
	for (;;) {
		struct agent_exit e;

		CHECK(next_event(&cl.event, WAIT_MS));
		if (cl.event.h.type == AGENT_EXIT) {
			memcpy(&e, cl.event.body, sizeof(e));
			p = e.at;
			CHECK(e.hits == 0);
		} else {
			memcpy(&p, cl.event.body, sizeof(p));
		}
		CHECK(p.out_end - o.out <= 4096);
		len += read_log(oc.logs[0], o.out, p.out_end, all + len, sizeof(all) - len);
		o = (struct agent_offsets){ oc.exec, p.out_end, p.err_end };
		transmit(cl.sock, AGENT_CONSUMED, &o, sizeof(o), NULL, 0);
		if (cl.event.h.type == AGENT_EXIT)
			break;
	}
	CHECK(len == 43897 && !strncmp(all + len - 9, "9000\nend\n", 9));
}

static void a_dead_reader_unblocks_the_command(void)
{
	int second = client_connect();
	struct agent_offsets o;
	struct agent_proc p = { 0 };
	char text[256];

	snprintf(text, sizeof(text), "until [ -e %s ]; do sleep 0.05; done; seq 1 9000",
		 in_scratch("attached"));
	CHECK(begin(&(struct want){ .flags = AGENT_BASH, .log_bytes = 4096, .argv = ARGV(text) }) ==
	      AGENT_STARTED);
	o = (struct agent_offsets){ oc.exec, 0, 0 };
	transmit(second, AGENT_ATTACH, &o, sizeof(o), NULL, 0);
	CHECK(receive(second, &reply, WAIT_MS) && reply.h.type == AGENT_OK);
	CHECK(mkdir(in_scratch("attached"), 0755) == 0);
	for (int i = 0; i < WAIT_MS / 20 && p.exit.at.out_end < 4096; i++) {
		pause_ms(20);
		CHECK(call_ref(AGENT_STATUS, oc.exec) == AGENT_PROC);
		memcpy(&p, reply.body, sizeof(p));
	}
	CHECK(p.state == AGENT_RUNNING && p.exit.at.out_end == 4096);
	close(second);
	CHECK(comes_to_end(&p) && (p.exit.hits & AGENT_HIT_OUTPUT));
}

static void a_log_that_cannot_grow_never_blocks_the_command(void)
{
	static char body[4096];
	const struct want w = { .flags = AGENT_ATTACHED, .argv = ARGV("seq", "1", "100000") };
	int logs[2] = { memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING), make_log(LOG_BYTES) };
	uint64_t exec = cl.next_exec++;

	CHECK(ftruncate(logs[0], AGENT_LOG_HEAD + LOG_BYTES) == 0);
	CHECK(fcntl(logs[0], F_ADD_SEALS, F_SEAL_WRITE) == 0); /* refuses every write */
	outcome_close();
	oc.exec = exec;
	CHECK(call_with(AGENT_EXEC, body, pack_exec(body, &w, exec), logs, 2, &reply));
	CHECK(reply.h.type == AGENT_STARTED && wait_end(WAIT_MS));
	CHECK(oc.exit.code == 0 && (oc.exit.hits & AGENT_HIT_OUTPUT));
	CHECK(oc.exit.at.out_end == 0);
	close(logs[0]);
	close(logs[1]);
}

static void a_file_limit_is_reported(void)
{
	char command[256];

	snprintf(command, sizeof(command), "exec head -c 70000000 /dev/zero >%s/big", scratch);
	CHECK(run_bash(command));
	CHECK(oc.exit.signal == SIGXFSZ && (oc.exit.hits & AGENT_HIT_FILE));
}

static void a_full_table_drops_the_oldest(void)
{
	for (int i = 0; i < AGENT_EXECS_MAX + 20; i++) {
		CHECK(run_argv(ARGV("/bin/true")) && oc.exit.code == 0);
	}
	CHECK(call_ref(AGENT_STATUS, 2) == AGENT_ERROR);
	CHECK(call_ref(AGENT_STATUS, oc.exec) == AGENT_PROC);
}

static void a_big_environment_arrives(void)
{
	static char big[150000];

	memset(big, 'v', sizeof(big) - 1);
	memcpy(big, "BIG=", 4);
	/* the kernel limits one string to 128 kB */
	CHECK(begin(&(struct want){ .argv = ARGV("true"), .env = ARGV(big) }) == AGENT_ERROR);
	CHECK(error_code() == ERR_LIMIT);
	big[100000] = 0;
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .argv = ARGV("echo ${#BIG}"),
				       .env = ARGV(big) }));
	CHECK_STR(oc.out, "99996\n");
}

static void bad_messages_are_refused(void)
{
	static char junk[AGENT_MSG_MAX];
	unsigned seed = 1;

	for (int i = 0; i < 2000; i++) {
		struct agent_hdr h = { .req = ++cl.req };
		size_t len = sizeof(h) + (size_t)(rand_r(&seed) % 200);

		for (size_t k = sizeof(h); k < len; k++)
			junk[k] = (char)rand_r(&seed);
		h.type = (uint32_t)(rand_r(&seed) % 30);
		h.len = i % 7 ? (uint32_t)(len - sizeof(h)) : (uint32_t)rand_r(&seed);
		if (h.type == AGENT_CONSUMED || h.type == AGENT_LIST || h.type == AGENT_HELLO)
			h.type = 99;
		memcpy(junk, &h, sizeof(h));
		CHECK(fd_message_send(cl.sock, junk, len, NULL, 0) == 0);
		CHECK(receive(cl.sock, &reply, WAIT_MS));
		CHECK(reply.h.req == cl.req);
	}
	CHECK(client_alive());
}

static void a_short_message_ends_only_its_connection(void)
{
	int other = client_connect();
	char byte;

	CHECK(fd_message_send(other, "abc", 3, NULL, 0) == 0);
	CHECK(recv(other, &byte, 1, 0) == 0);
	close(other);
	CHECK(client_alive());
}

static void too_many_connections_wait(void)
{
	int many[AGENT_CONNS_MAX + 4];
	struct pollfd p;

	for (int i = 0; i < AGENT_CONNS_MAX + 4; i++)
		many[i] = client_connect();
	CHECK(client_alive());
	transmit(many[AGENT_CONNS_MAX + 3], AGENT_HELLO, NULL, 0, NULL, 0);
	for (int i = 0; i < 8; i++)
		close(many[i]);
	p = (struct pollfd){ .fd = many[AGENT_CONNS_MAX + 3], .events = POLLIN };
	CHECK(poll(&p, 1, 120000) == 1);
	CHECK(receive(p.fd, &reply, WAIT_MS) && reply.h.type == AGENT_HELLOR);
	for (int i = 8; i < AGENT_CONNS_MAX + 4; i++)
		close(many[i]);
	pause_ms(50);
	CHECK(client_alive());
}

static void a_peer_that_never_reads_affects_only_itself(void)
{
	int deaf = client_connect();
	struct agent_ref r = { 1 };
	struct agent_hdr h = { .type = AGENT_STATUS, .req = 7, .len = sizeof(r) };
	char both[sizeof(h) + sizeof(r)];

	memcpy(both, &h, sizeof(h));
	memcpy(both + sizeof(h), &r, sizeof(r));
	CHECK(fcntl(deaf, F_SETFL, O_NONBLOCK) == 0);
	for (int i = 0; i < 100000; i++) {
		if (fd_message_send(deaf, both, sizeof(both), NULL, 0) < 0)
			break;
	}
	CHECK(client_alive());
	CHECK(run_bash("echo fine") && oc.exit.code == 0);
	close(deaf);
	CHECK(client_alive());
}

static void nothing_grows(void)
{
	char path[64], text[2048];
	long before = 0, after = 0;
	int fds[2] = { 0, 0 };

	for (int round = 0; round < 2; round++) {
		FILE *f;

		for (int i = 0; i < 200; i++) {
			CHECK(run_bash("echo x"));
			CHECK(call_ref(AGENT_FORGET, oc.exec) == AGENT_OK);
		}
		snprintf(path, sizeof(path), "/proc/%d/statm", (int)cl.pid);
		f = fopen(path, "r");
		CHECK(f && fgets(text, sizeof(text), f));
		fclose(f);
		sscanf(text, "%*d %ld", round ? &after : &before);
		snprintf(text, sizeof(text), "ls /proc/%d/fd | wc -l", (int)cl.pid);
		f = popen(text, "r");
		CHECK(f && fgets(text, sizeof(text), f));
		pclose(f);
		fds[round] = atoi(text);
	}
	CHECK(after <= before + 1);
	CHECK(fds[0] == fds[1]);
}

static void all(void)
{
	RUN(nothing_is_accepted_before_the_binding);
	RUN(exit_status_is_exact);
	RUN(streams_are_separate_and_exact);
	RUN(argv_is_run_without_a_shell);
	RUN(a_program_that_is_missing_is_named);
	RUN(a_missing_interpreter_has_its_own_error);
	RUN(the_environment_is_exactly_the_given_one);
	RUN(only_three_descriptors_are_open);
	RUN(a_deadline_ends_the_whole_tree);
	RUN(a_stopped_command_times_out_too);
	RUN(a_child_that_holds_the_pipe_does_not_delay_the_result);
	RUN(later_output_of_a_survivor_is_kept);
	RUN(signals_reach_group_process_and_tree);
	RUN(input_is_streamed_and_waits_for_the_command);
	RUN(unread_input_is_refused_when_the_command_ends);
	RUN(without_input_it_is_empty);
	RUN(a_terminal_has_a_size_and_can_be_resized);
	RUN(a_hang_up_of_the_terminal_ends_the_output);
	RUN(a_late_reader_gets_everything);
	RUN(without_a_reader_the_oldest_is_dropped_and_marked);
	RUN(an_attached_reader_blocks_the_command);
	RUN(a_dead_reader_unblocks_the_command);
	RUN(a_log_that_cannot_grow_never_blocks_the_command);
	RUN(a_file_limit_is_reported);
	RUN(a_big_environment_arrives);
	RUN(bad_messages_are_refused);
	RUN(a_short_message_ends_only_its_connection);
	RUN(too_many_connections_wait);
	RUN(a_peer_that_never_reads_affects_only_itself);
	RUN(nothing_grows);
	RUN(a_full_table_drops_the_oldest);
}

int main(void)
{
	for (int no_clone3 = 0; no_clone3 < 2; no_clone3++) {
		if (!client_start(no_clone3)) {
			printf("Bail out! %s does not start\n", init_binary());
			return 1;
		}
		all();
		client_stop();
	}
	outcome_close();
	return tap_done();
}
