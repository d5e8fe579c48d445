/* SPDX-License-Identifier: Apache-2.0 */
/* Which agent messages are well formed. */
#include "wire/agent_proto.h"

#include <stdlib.h>

#include "tap.h"

static char buf[AGENT_MSG_MAX + 16];

static const char *judge(uint32_t type, const void *body, size_t len, size_t nfds, bool to_init)
{
	struct agent_hdr h = { .type = type, .req = 1, .len = (uint32_t)len };
	char *exact = malloc(sizeof(h) + len); /* so that ASan sees a read beyond it */
	const char *bad;

	memcpy(exact, &h, sizeof(h));
	if (len)
		memcpy(exact + sizeof(h), body, len);
	bad = agent_msg_problem(exact, sizeof(h) + len, nfds, to_init);
	free(exact);
	return bad;
}

static size_t with_strings(const void *fixed, size_t n, const char *strings, size_t strings_len)
{
	memcpy(buf, fixed, n);
	memcpy(buf + n, strings, strings_len);
	return n + strings_len;
}

static void directions_are_not_mixed(void)
{
	CHECK(!judge(AGENT_HELLO, NULL, 0, 0, true));
	CHECK(judge(AGENT_HELLO, NULL, 0, 0, false));
	CHECK(!judge(AGENT_OK, NULL, 0, 0, false));
	CHECK(judge(AGENT_OK, NULL, 0, 0, true));
	CHECK(judge(0, NULL, 0, 0, true) && judge(AGENT_LOGS + 1, NULL, 0, 0, true) &&
	      judge(UINT32_MAX, NULL, 0, 0, false));
}

static void lengths_must_fit(void)
{
	struct agent_hdr h = { .type = AGENT_HELLO };
	struct agent_ref r = { 7 };

	CHECK(agent_msg_problem(&h, sizeof(h) - 1, 0, true));
	CHECK(agent_msg_problem(&h, 0, 0, true));
	h.len = 1;
	CHECK(agent_msg_problem(&h, sizeof(h), 0, true));
	CHECK(!judge(AGENT_STATUS, &r, sizeof(r), 0, true));
	CHECK(judge(AGENT_STATUS, &r, sizeof(r) - 1, 0, true));
	memset(buf, 0, sizeof(buf));
	CHECK(judge(AGENT_STATUS, buf, sizeof(r) + 1, 0, true));
	CHECK(judge(AGENT_STDIN, buf, AGENT_MSG_MAX, 0, true));
}

static void descriptors_are_counted(void)
{
	struct agent_exec m = { .exec = 1, .argc = 1, .log_bytes = 4096 };
	size_t n = with_strings(&m, sizeof(m), "true\0\0", 7);

	CHECK(!judge(AGENT_EXEC, buf, n, 2, true));
	CHECK(judge(AGENT_EXEC, buf, n, 1, true) && judge(AGENT_EXEC, buf, n, 0, true) &&
	      judge(AGENT_EXEC, buf, n, 3, true));
	m.flags = AGENT_PTY;
	n = with_strings(&m, sizeof(m), "true\0\0", 7);
	CHECK(!judge(AGENT_EXEC, buf, n, 1, true) && judge(AGENT_EXEC, buf, n, 2, true));
	CHECK(judge(AGENT_HELLO, NULL, 0, 1, true));
	CHECK(judge(AGENT_FD, &(struct agent_token){ 1 }, sizeof(struct agent_token), 0, false));
	CHECK(!judge(AGENT_FD, &(struct agent_token){ 1 }, sizeof(struct agent_token), 1, false));
}

static void strings_are_counted_and_terminated(void)
{
	struct agent_exec m = { .exec = 1, .argc = 2, .envc = 1, .log_bytes = 4096 };
	size_t n = with_strings(&m, sizeof(m), "a\0b\0K=V\0/\0u", 12);

	CHECK(!judge(AGENT_EXEC, buf, n, 2, true));
	CHECK(judge(AGENT_EXEC, buf, n - 1, 2, true));
	CHECK(judge(AGENT_EXEC, buf, n - 2, 2, true));
	m.argc = UINT32_MAX;
	n = with_strings(&m, sizeof(m), "a\0b\0K=V\0/\0u", 12);
	CHECK(judge(AGENT_EXEC, buf, n, 2, true));
	m.argc = 0;
	n = with_strings(&m, sizeof(m), "K=V\0/\0u", 8);
	CHECK(judge(AGENT_EXEC, buf, n, 2, true));
	m.log_bytes = 0;
	CHECK(!judge(AGENT_SPARE_SHELL, buf, n, 0, true));
}

static void values_out_of_range_are_refused(void)
{
	struct agent_exec m = { .exec = 1, .argc = 1, .log_bytes = 4096 };
	struct agent_signal s = { 1, 65, 0 };
	struct agent_bind b = { .version = AGENT_VERSION };
	struct agent_job j = { .exec = 1, .op = AGENT_JOB_WATCH + 1 };
	struct agent_file f = { .mode = 010000 };

	m.flags = AGENT_LOGIN;
	CHECK(judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	m.flags = 1u << 31;
	CHECK(judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	m.flags = 0;
	m.exec = 0;
	CHECK(judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	m.exec = 1;
	CHECK(!judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	for (int i = 0; i < 4; i++) {
		const uint64_t sizes[] = { UINT64_MAX, AGENT_LOG_MAX + AGENT_PAGE, 4097, 0 };

		m.log_bytes = sizes[i];
		CHECK(judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	}
	CHECK(judge(AGENT_SIGNAL, &s, sizeof(s), 0, true));
	s = (struct agent_signal){ 1, 9, 3 };
	CHECK(judge(AGENT_SIGNAL, &s, sizeof(s), 0, true));
	CHECK(!judge(AGENT_BIND, &b, sizeof(b), 0, true));
	b.version++;
	CHECK(judge(AGENT_BIND, &b, sizeof(b), 0, true));
	CHECK(judge(AGENT_JOB, buf, with_strings(&j, sizeof(j), "\0p", 3), 1, true));
	j.op = AGENT_JOB_LIST;
	CHECK(!judge(AGENT_JOB, buf, with_strings(&j, sizeof(j), "\0p", 3), 1, true));
	CHECK(judge(AGENT_JOB, buf, with_strings(&j, sizeof(j), "\0p", 3), 0, true));
	CHECK(judge(AGENT_STAT, buf, with_strings(&f, sizeof(f), "\0p", 3), 0, true));
}

static void a_list_of_programs_is_one_more_string(void)
{
	struct agent_exec m = { .exec = 1, .argc = 1, .log_bytes = 4096, .flags = AGENT_LANDLOCK };

	CHECK(!judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0\0/bin/:ls", 13), 2, true));
	CHECK(!judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0\0", 5), 2, true));
	CHECK(judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	m.flags = AGENT_LANDLOCK | AGENT_LANDLOCK_REQUIRED;
	CHECK(!judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0\0ls", 7), 2, true));
	m.flags = AGENT_LANDLOCK_REQUIRED;
	CHECK(judge(AGENT_EXEC, buf, with_strings(&m, sizeof(m), "a\0\0", 4), 2, true));
	m = (struct agent_exec){ .flags = AGENT_BASH | AGENT_LANDLOCK };
	CHECK(judge(AGENT_SPARE_SHELL, buf, with_strings(&m, sizeof(m), "\0\0ls", 5), 0, true));
}

static void input_has_a_length_field(void)
{
	struct agent_stdin m = { .exec = 1, .len = 3 };

	CHECK(!judge(AGENT_STDIN, buf, with_strings(&m, sizeof(m), "abc", 3), 0, true));
	CHECK(judge(AGENT_STDIN, buf, with_strings(&m, sizeof(m), "ab", 2), 0, true));
	m.len = AGENT_DATA_MAX + 1;
	CHECK(judge(AGENT_STDIN, buf, sizeof(m) + m.len, 0, true));
}

static void answers_are_validated_too(void)
{
	struct agent_error e = { 1, 2 };
	struct agent_stat st = { .target_len = 2 };

	CHECK(!judge(AGENT_ERROR, buf, with_strings(&e, sizeof(e), "why", 4), 0, false));
	CHECK(judge(AGENT_ERROR, buf, with_strings(&e, sizeof(e), "why", 3), 0, false));
	CHECK(judge(AGENT_ERROR, buf, with_strings(&e, sizeof(e), "w\0y", 4), 0, false));
	CHECK(!judge(AGENT_STATR, buf, with_strings(&st, sizeof(st), "ab", 2), 0, false));
	CHECK(judge(AGENT_STATR, buf, with_strings(&st, sizeof(st), "abc", 3), 0, false));
}

static const char *judge_logs(const struct agent_logs *l, size_t nfds)
{
	return judge(AGENT_LOGR, l, sizeof(*l), nfds, false);
}

static struct agent_logs good_logs(void)
{
	return (struct agent_logs){
		.proc = { .exec = 3,
			  .state = AGENT_RUNNING,
			  .exit = { .exec = 3, .at = { .out_start = 1000, .out_end = 5096 } } },
		.log_bytes = 4096
	};
}

static void the_number_of_logs_is_checked(void)
{
	struct agent_logs l = good_logs();

	CHECK(!judge(AGENT_LOGS, &(struct agent_ref){ 3 }, sizeof(struct agent_ref), 0, true));
	CHECK(judge(AGENT_LOGS, &(struct agent_ref){ 3 }, sizeof(struct agent_ref), 1, true));
	CHECK(!judge_logs(&l, 2) && judge_logs(&l, 1) && judge_logs(&l, 0) && judge_logs(&l, 3));
	l.proc.flags = AGENT_PTY;
	CHECK(!judge_logs(&l, 1) && judge_logs(&l, 2));
	l.log_bytes = 0; /* given up: then nothing can be read either */
	CHECK(judge_logs(&l, 1) && judge_logs(&l, 0));
	l.proc.exit.at.out_start = l.proc.exit.at.out_end;
	CHECK(!judge_logs(&l, 0));
}

static void impossible_values_in_logs_are_refused(void)
{
	struct agent_logs l = good_logs();

	l.log_bytes = 4095;
	CHECK(judge_logs(&l, 2));
	l.log_bytes = AGENT_LOG_OLD_MAX * 2;
	CHECK(judge_logs(&l, 2));
	l.log_bytes =
		AGENT_LOG_OLD_MAX; /* of a command that an engine of an older version started */
	CHECK(!judge_logs(&l, 2));
	l = good_logs();
	l.proc.exit.at.out_end++; /* more than the ring holds */
	CHECK(judge_logs(&l, 2));
	l.proc.exit.at.out_end = 999;
	CHECK(judge_logs(&l, 2));
	l = good_logs();
	l.proc.exit.at.err_start = l.proc.exit.at.err_end = UINT64_MAX;
	CHECK(judge_logs(&l, 2));
	l = good_logs();
	l.proc.flags = AGENT_MERGE;
	l.proc.exit.at.err_end = 1; /* a stream it does not have */
	CHECK(judge_logs(&l, 1));
	l = good_logs();
	l.proc.exit.exec = 4;
	CHECK(judge_logs(&l, 2));
}

static void records_have_a_valid_state_and_result(void)
{
	struct agent_proc p = { .exec = 1, .state = AGENT_EXITED, .exit.exec = 1 };
	const int bad[][2] = { { -1, 0 }, { 0, 9 }, { 256, 0 }, { -1, 65 }, { -2, 9 } };

	CHECK(!judge(AGENT_PROC, &p, sizeof(p), 0, false));
	for (int i = 0; i < 5; i++) {
		p.exit.code = bad[i][0];
		p.exit.signal = bad[i][1];
		CHECK(judge(AGENT_PROC, &p, sizeof(p), 0, false));
	}
	p.state = AGENT_RUNNING; /* still running: the result is not checked */
	CHECK(!judge(AGENT_PROC, &p, sizeof(p), 0, false));
	p.state = 3;
	CHECK(judge(AGENT_PROC, &p, sizeof(p), 0, false));
	p.state = AGENT_RUNNING;
	p.exec = p.exit.exec = 0;
	CHECK(judge(AGENT_PROC, &p, sizeof(p), 0, false));
}

static void numbers_of_side_connections_do_not_count_as_last(void)
{
	struct agent_hello h = { AGENT_VERSION, 0, AGENT_SIDE_EXEC - 1 };

	CHECK(!judge(AGENT_HELLOR, &h, sizeof(h), 0, false));
	h.last_exec++;
	CHECK(judge(AGENT_HELLOR, &h, sizeof(h), 0, false));
}

static void strings_are_found_by_number(void)
{
	struct agent_file f = { 0 };
	struct agent_hdr h = { .type = AGENT_RENAME };
	size_t n = with_strings(&f, sizeof(f), "user\0a\0b", 9);
	char whole[128];

	h.len = (uint32_t)n;
	memcpy(whole, &h, sizeof(h));
	memcpy(whole + sizeof(h), buf, n);
	CHECK(!agent_msg_problem(whole, sizeof(h) + n, 0, true));
	CHECK_STR(agent_msg_string(whole, sizeof(h) + n, 0), "user");
	CHECK_STR(agent_msg_string(whole, sizeof(h) + n, 2), "b");
	CHECK(!agent_msg_string(whole, sizeof(h) + n, 3));
}

int main(void)
{
	RUN(directions_are_not_mixed);
	RUN(lengths_must_fit);
	RUN(descriptors_are_counted);
	RUN(strings_are_counted_and_terminated);
	RUN(values_out_of_range_are_refused);
	RUN(a_list_of_programs_is_one_more_string);
	RUN(input_has_a_length_field);
	RUN(answers_are_validated_too);
	RUN(the_number_of_logs_is_checked);
	RUN(impossible_values_in_logs_are_refused);
	RUN(records_have_a_valid_state_and_result);
	RUN(numbers_of_side_connections_do_not_count_as_last);
	RUN(strings_are_found_by_number);
	return tap_done();
}
