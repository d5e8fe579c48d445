/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, used by a program outside the source tree. The argument is the home. */
#include <errno.h>
#include <signal.h>

#include "use_lib.h"

static void commands_run(void)
{
	const char *const argv[] = { "tr", "a-z", "A-Z", NULL };
	const char *const env[] = { "FROM=me", NULL };
	struct lodge_command c = { SIZED(lodge_command), .argv = argv, .input = "abc",
				   .input_len = 3 };
	struct lodge_session *s = NULL;
	struct lodge_result *r = NULL;
	struct lodge_exec *x = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->exit_code == 0 && !r->limits_hit);
	CHECK_STR(r->out, "ABC");
	CHECK(r->out_len == 3 && r->out_total == 3 && r->duration_us > 0 && r->exec_id[0]);
	CHECK(lodge_exec_open(lodge, r->exec_id, &x) == 0);
	CHECK_STR(lodge_exec_id(x), r->exec_id);
	lodge_exec_close(x);
	lodge_free(r);
	c = (struct lodge_command){ SIZED(lodge_command),
				    .text = "echo $FROM; pwd; echo no >&2; exit 3", .env = env,
				    .cwd = "/usr" };
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->exit_code == 3 && r->signal == 0);
	CHECK_STR(r->out, "me\n/usr\n");
	CHECK_STR(r->err, "no\n");
	lodge_free(r);
	c = (struct lodge_command){ SIZED(lodge_command), .text = "sleep 9", .timeout_ms = 100 };
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->limits_hit & LODGE_HIT_TIME &&
	      r->signal == 9);
	CHECK(r->exit_code == -1);
	lodge_free(r);
	c = (struct lodge_command){ SIZED(lodge_command), .text = "seq 10000",
				    .output_bytes = 4096 };
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->limits_hit & LODGE_HIT_OUTPUT);
	CHECK(r->out_total == 48894 && r->out_len == 4096 && !strcmp(r->out + 4090, "10000\n"));
	lodge_free(r);
}

static void every_limit_hit_is_reported(void)
{
	struct lodge_limits few = { SIZED(lodge_limits), .pids = 8 };
	struct lodge_want w = { SIZED(lodge_want), .limits = &few };
	struct lodge_command c = {
		SIZED(lodge_command),
		.text = "for i in 1 2 3 4 5 6 7 8 9; do sleep 9 & done; kill %1"
	};
	struct lodge_session *s = NULL;
	struct lodge_result *r = NULL;
	struct lodge_ref ref = { 0 };

	CHECK(start() == 0 && lodge_enter(lodge, &w, &s) == 0);
	ref.id = s->id;
	CHECK(lodge_run(lodge, &ref, &c, &r) == 0 && r->limits_hit & LODGE_HIT_PIDS);
	CHECK(lodge_destroy(lodge, &ref, NULL, NULL) == 0);
	lodge_free(r);
	lodge_free(s);
}

/* The second use of a key returns the first result, without sending the input again. */
static void input_is_sent_once(void)
{
	struct lodge_command c = { SIZED(lodge_command), .text = "cat", .input = "abc",
				   .input_len = 3, .idempotency_key = "fed" };
	struct lodge_session *s = NULL;
	struct lodge_result *r = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	for (int i = 0; i < 2; i++) {
		CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->exit_code == 0);
		CHECK_STR(r->out, "abc");
		lodge_free(r);
	}
}

static void large_input_is_echoed(void)
{
	enum { SIZE = 700001 };
	struct lodge_command c = { SIZED(lodge_command), .text = "cat", .input_len = SIZE,
				   .output_bytes = 1 << 20 };
	struct lodge_session *s = NULL;
	struct lodge_result *r = NULL;
	char *data = malloc(SIZE);

	for (size_t i = 0; data && i < SIZE; i++)
		data[i] = (char)(i * 31 % 251);
	c.input = data;
	CHECK(data && enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->out_len == SIZE);
	CHECK(!memcmp(r->out, data, SIZE));
	lodge_free(r);
	c.text = "head -c 5 >/dev/null"; /* does not read it all */
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->exit_code == 0);
	lodge_free(r);
	free(data);
}

static void bad_commands_are_refused(void)
{
	const char *const argv[] = { "/no/such", NULL };
	struct lodge_command c = { SIZED(lodge_command), .argv = argv };
	struct lodge_session *s = NULL;
	struct lodge_result *r = NULL;
	struct lodge_exec *x = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_run(lodge, &me, &c, &r) == 0 && r->exit_code == 127 && r->err_len);
	lodge_free(r);
	r = NULL;
	c = (struct lodge_command){ SIZED(lodge_command) };
	CHECK(FAILS(lodge_run(lodge, &me, &c, &r), LODGE_INVALID) && NAMES("command"));
	CHECK(FAILS(lodge_run(lodge, &me, NULL, &r), LODGE_INVALID));
	c = (struct lodge_command){ SIZED(lodge_command), .text = "cat", .input = "x" };
	CHECK(FAILS(lodge_exec_start(lodge, &me, &c, &x), LODGE_INVALID) && NAMES("input"));
	c = (struct lodge_command){ SIZED(lodge_command), .text = "cat", .stdin_open = 1 };
	CHECK(FAILS(lodge_run(lodge, &me, &c, &r), LODGE_INVALID) && NAMES("stdin_open"));
	CHECK(FAILS(lodge_exec_open(lodge, "exe_nosuch", &x), LODGE_NOT_FOUND));
	CHECK(FAILS(lodge_exec_open(lodge, NULL, &x), LODGE_INVALID) && !x && !r);
	CHECK(lodge_hibernate(lodge, &me, 0, NULL) == 0);
	c = (struct lodge_command){ SIZED(lodge_command), .text = "true", .no_resume = 1 };
	CHECK(FAILS(lodge_run(lodge, &me, &c, &r), LODGE_CONFLICT) && lodge_last_outcome() == 0);
}

static void commands_take_input_and_signals(void)
{
	struct lodge_command c = { SIZED(lodge_command),
				   .text = "while read x; do echo got $x; done; echo end; exit 5",
				   .stdin_open = 1, .background = 1,
				   .idempotency_key = "only-once" };
	struct lodge_exec_info *info = NULL;
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL, *same = NULL;
	struct lodge_execs *list = NULL;
	uint64_t at = 0, from, to;
	size_t n;
	char b;

	CHECK(enter_me(&s) == 0);
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0 && !lodge_exec_ended(x));
	CHECK(lodge_exec_start(lodge, &me, &c, &same) == 0);
	CHECK_STR(lodge_exec_id(same), lodge_exec_id(x));
	lodge_exec_close(same);
	CHECK(lodge_exec_write(x, "one\n", 4, 0) == 0 && reads(x, &at, "got one\n"));
	CHECK(lodge_exec_get(x, &info) == 0 && info->state == LODGE_EXEC_RUNNING);
	CHECK_STR(info->session, s->id);
	CHECK(info->background && strstr(info->command, "while read x"));
	lodge_free(info);
	CHECK(FAILS(lodge_exec_wait(x, 10, NULL), LODGE_TIMEOUT));
	CHECK(lodge_exec_write(x, "two\n", 4, 0) == 0 && lodge_exec_write(x, NULL, 0, 1) == 0);
	CHECK(lodge_exec_wait_output(x, at, 0, 20000) == 1);
	CHECK(reads(x, &at, "got two\nend\n"));
	CHECK(lodge_exec_wait(x, -1, NULL) == 0 && lodge_exec_ended(x) == 1);
	CHECK(lodge_exec_wait_output(x, at, 0, 20000) == 0);
	CHECK(FAILS(lodge_exec_write(x, "three\n", 6, 0), LODGE_CONFLICT));
	CHECK(lodge_exec_get(x, &info) == 0 && info->state == LODGE_EXEC_EXITED);
	CHECK(info->exit_code == 5 && info->stdout_bytes == 20 && info->ended_at);
	lodge_free(info);
	CHECK(lodge_exec_range(x, LODGE_STDOUT, &from, &to) == 0 && from == 0 && to == 20);
	CHECK(FAILS(lodge_exec_range(x, (enum lodge_stream)7, &from, &to), LODGE_INVALID));
	CHECK(FAILS(lodge_exec_read(x, (enum lodge_stream)7, 0, &b, 1, 0, &n), LODGE_INVALID));
	CHECK(lodge_exec_list(lodge, &me, 0, 0, &list) == 0 && list->count >= 1);
	CHECK_STR(list->items[list->count - 1]->id, lodge_exec_id(x));
	lodge_free(list);
	lodge_exec_close(x);
	lodge_free(s);
}

static void terminals_and_signals(void)
{
	struct lodge_command c = { SIZED(lodge_command),
				   .text = "trap 'stty size; exit' WINCH; echo ready; "
					   "while :; do sleep 0.1; done",
				   .pty = 1, .rows = 20, .cols = 70 };
	struct lodge_exec_info *info = NULL;
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL;
	uint64_t at = 0;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0 && reads(x, &at, "ready\r\n"));
	CHECK(lodge_exec_resize(x, 33, 99) == 0);
	CHECK(reads(x, &at, "33 99\r\n") && lodge_exec_wait(x, 20000, NULL) == 0);
	lodge_exec_close(x);
	c = (struct lodge_command){ SIZED(lodge_command), .text = "echo up; exec sleep 1000" };
	at = 0;
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0 && reads(x, &at, "up\n"));
	CHECK(FAILS(lodge_exec_signal(x, -3, LODGE_TO_TREE), LODGE_INVALID) && NAMES("signal"));
	CHECK(lodge_exec_signal(x, SIGTERM, LODGE_TO_TREE) == 0 &&
	      lodge_exec_wait(x, 20000, NULL) == 0);
	CHECK(lodge_exec_get(x, &info) == 0 && info->state == LODGE_EXEC_KILLED);
	CHECK(info->signal == SIGTERM && info->exit_code == -1);
	lodge_free(info);
	lodge_exec_close(x);
}

static void waiting_returns_the_result(void)
{
	struct lodge_command c = { SIZED(lodge_command),
				   .text = "printf 'a\\0b'; echo oops >&2; exit 7" };
	struct lodge_result *r = NULL, *again = NULL;
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0);
	CHECK(lodge_exec_wait(x, 20000, &r) == 0 && r->exit_code == 7 && r->status == 7);
	CHECK(r->out_len == 3 && !memcmp(r->out, "a\0b", 4) && r->out_total == 3);
	CHECK_STR(r->err, "oops\n");
	CHECK_STR(r->exec_id, lodge_exec_id(x));
	CHECK(!r->signal && !r->limits_hit && lodge_exec_wait(x, 0, &again) == 0);
	CHECK(again->exit_code == 7 && again->out_len == 3);
	lodge_free(again);
	lodge_free(r);
	lodge_exec_close(x);
	c = (struct lodge_command){ SIZED(lodge_command), .text = "sleep 1000" };
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0);
	r = NULL;
	CHECK(FAILS(lodge_exec_wait(x, 10, &r), LODGE_TIMEOUT) && !r);
	CHECK(lodge_exec_kill(x) == 0);
	lodge_exec_close(x);
}

/* Also a process that left the process group and ignores what can be ignored. */
static void killing_ends_everything(void)
{
	struct lodge_command c = {
		SIZED(lodge_command),
		.text = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; echo "
			"$$ > left; while :; do sleep 1000; done' & echo up; wait"
	};
	struct lodge_result *r = NULL;
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL;
	uint64_t at = 0;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0 && reads(x, &at, "up\n"));
	CHECK(says(&me, "until [ -s left ]; do sleep 0.05; done; kill -0 $(cat left) && echo on",
		   "on"));
	CHECK(lodge_exec_kill(x) == 0 && lodge_exec_wait(x, 20000, &r) == 0);
	CHECK(r->signal == SIGKILL && r->exit_code == -1 && r->status == 128 + SIGKILL);
	CHECK_STR(r->out, "up\n");
	lodge_free(r);
	CHECK(lodge_exec_kill(x) == 0); /* it has ended: nothing to do */
	CHECK(says(&me, "kill -0 $(cat left) 2>/dev/null || echo gone", "gone"));
	lodge_exec_close(x);
}

/* With `hold` nothing is lost for a slow reader. */
static void a_held_command_waits(void)
{
	struct lodge_command c = { SIZED(lodge_command), .text = "seq 20000", .output_bytes = 4096,
				   .hold = 1 };
	struct lodge_session *s = NULL;
	struct lodge_exec *x = NULL;
	uint64_t at = 0;
	char buf[1000];
	size_t n = 1;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_exec_start(lodge, &me, &c, &x) == 0);
	while (n > 0) {
		CHECK(lodge_exec_read(x, LODGE_STDOUT, at, buf, sizeof(buf), 20000, &n) == 0);
		at += n;
		CHECK(lodge_exec_consumed(x, at, 0) == 0);
	}
	CHECK(at == 108894 && lodge_exec_wait(x, 20000, NULL) == 0);
	CHECK(FAILS(lodge_exec_read(x, LODGE_STDOUT, 0, buf, 1, 0, &n), LODGE_LIMIT));
	CHECK(lodge_last_errno() == ERANGE);
	lodge_exec_close(x);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 2;
	home = argv[1];
	RUN(commands_run);
	RUN(every_limit_hit_is_reported);
	RUN(large_input_is_echoed);
	RUN(input_is_sent_once);
	RUN(bad_commands_are_refused);
	RUN(commands_take_input_and_signals);
	RUN(terminals_and_signals);
	RUN(waiting_returns_the_result);
	RUN(killing_ends_everything);
	RUN(a_held_command_waits);
	return leave();
}
