/* SPDX-License-Identifier: Apache-2.0 */
/* Copies standard input to a file of a session and back, and runs a command on it with a handle. */
#include <err.h>
#include <lodge.h>
#include <stdio.h>

static char buf[64 << 10];

static void send_input(struct lodge *lodge, const struct lodge_ref *me)
{
	struct lodge_writer *to;
	size_t n;

	if (lodge_writer_open(lodge, me, "big", 0, &to) < 0)
		errx(1, "%s", lodge_last_error());
	while ((n = fread(buf, 1, sizeof(buf), stdin)) > 0)
		if (lodge_writer_write(to, buf, n) < 0)
			errx(1, "%s", lodge_last_error());
	if (lodge_writer_commit(to) < 0) /* from here on the file exists */
		errx(1, "%s", lodge_last_error());
	lodge_writer_close(to);
}

static void print_file(struct lodge *lodge, const struct lodge_ref *me)
{
	struct lodge_reader *from;
	size_t n = 1;

	if (lodge_reader_open(lodge, me, "big", &from) < 0)
		errx(1, "%s", lodge_last_error());
	for (uint64_t at = 0; n > 0; at += n) {
		if (lodge_reader_read(from, at, buf, sizeof(buf), &n) < 0)
			errx(1, "%s", lodge_last_error());
		fwrite(buf, 1, n, stdout);
	}
	lodge_reader_close(from);
}

static void count_lines(struct lodge *lodge, const struct lodge_ref *me)
{
	struct lodge_command cmd = { .size = sizeof(cmd), .text = "wc -l big" };
	struct lodge_result *result;
	struct lodge_exec *exec;

	if (lodge_exec_start(lodge, me, &cmd, &exec) < 0)
		errx(1, "%s", lodge_last_error());
	if (lodge_exec_wait(exec, 10000, &result) < 0) {
		lodge_exec_kill(exec); /* it took too long */
		errx(1, "%s", lodge_last_error());
	}
	printf("exit code %d: %s", result->exit_code, result->out);
	lodge_free(result);
	lodge_exec_close(exec);
}

int main(void)
{
	struct lodge_ref me = { .key = "stream" };
	struct lodge_want want = { .size = sizeof(want), .keys = &me, .nkeys = 1 };
	struct lodge_session *session;
	struct lodge *lodge;

	if (lodge_open(NULL, &lodge) < 0 || lodge_enter(lodge, &want, &session) < 0)
		errx(1, "%s", lodge_last_error());
	send_input(lodge, &me);
	print_file(lodge, &me);
	count_lines(lodge, &me);
	lodge_free(session);
	lodge_close(lodge);
	return 0;
}
