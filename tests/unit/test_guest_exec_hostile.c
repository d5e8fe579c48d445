/* SPDX-License-Identifier: Apache-2.0 */
/* guest_exec_adopt() with a lodge-init that lies; the test plays the keeper too. All messages are
 * sent in advance and wait in the sockets. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"
#include "tap.h"
#include "sandbox_calls.h"

enum { RING = 4096, ID = 3 };
enum { REQ_HELLO = 1, REQ_ATTACH, REQ_STDIN, REQ_LOGS }; /* in the order of the requests */

static struct keeper_client *keeper;
static struct sandbox *box;
static int keeper_end, init_end, calls;
static struct err err;

static void count(struct guest_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	calls++;
}

static const struct guest_exec_ops counting = { count, count, count };

static void send_message(uint32_t type, uint32_t req, const void *body, size_t len, const int *fds,
			 size_t nfds)
{
	struct agent_hdr h = { .type = type, .req = req, .len = (uint32_t)len };
	struct iovec iov[2] = { { &h, sizeof(h) }, { NULL, len } };

	memcpy(&iov[1].iov_base, &body, sizeof(body));
	fd_message_sendv(init_end, iov, 2, fds, nfds);
}

static bool begin(void)
{
	struct keeper_reply r;
	struct agent_hello h = { .version = AGENT_VERSION };
	int k[2], a[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, a) < 0 ||
	    keeper_client_take(k[0], &keeper, &err) < 0)
		return false;
	keeper_end = k[1];
	init_end = a[1];
	calls = 0;
	memset(&r, 0, sizeof(r));
	r.version = KEEPER_VERSION;
	r.op = KEEPER_CONNECT;
	strcpy(r.id, "box");
	fd_message_send(keeper_end, &r, sizeof(r), &a[0], 1);
	close(a[0]);
	send_message(AGENT_HELLOR, REQ_HELLO, &h, sizeof(h), NULL, 0);
	return sandbox_connect(keeper, "box", &box, &err) == 0;
}

static void finish(void)
{
	sandbox_free(box);
	keeper_client_free(keeper);
	close(keeper_end);
	close(init_end);
}

static struct agent_logs one_log(uint32_t state, uint64_t out_end)
{
	return (struct agent_logs){ .proc = { .exec = ID,
					      .pid = 2,
					      .state = state,
					      .flags = AGENT_MERGE,
					      .exit = { .exec = ID, .at.out_end = out_end } },
				    .log_bytes = RING };
}

static int make_log(uint64_t ring, const char *text)
{
	int fd = memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, (off_t)(AGENT_LOG_HEAD + ring)) < 0 ||
	    pwrite(fd, text, strlen(text), AGENT_LOG_HEAD) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		_exit(1);
	return fd;
}

static void send_attached(void)
{
	struct agent_error no = { ERR_INVALID, 0 };

	send_message(AGENT_OK, REQ_ATTACH, NULL, 0, NULL, 0);
	send_message(AGENT_ERROR, REQ_STDIN, &no, sizeof(no), NULL, 0);
}

static void send_logs(const struct agent_logs *l, const char *text)
{
	int fd = make_log(l->log_bytes, text);

	send_message(AGENT_LOGR, REQ_LOGS, l, sizeof(*l), &fd, 1);
	close(fd);
}

static int adopt(struct guest_exec **ret)
{
	return guest_exec_adopt(box, ID, false, &counting, NULL, ret, &err);
}

static bool saves(struct guest_exec *x, const char *want)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char got[64] = "";
	bool same = guest_exec_save(x, GUEST_EXEC_OUT, fd, &err) == 0 &&
		    pread(fd, got, sizeof(got) - 1, 0) == (ssize_t)strlen(want) &&
		    !strcmp(got, want);

	close(fd);
	return same;
}

static void correct_replies_are_accepted(void)
{
	struct agent_logs l = one_log(AGENT_EXITED, 5);
	struct guest_exec *x = NULL;

	CHECK(begin());
	send_attached();
	send_logs(&l, "hello");
	CHECK(adopt(&x) == 0 && guest_exec_state(x) == GUEST_EXEC_EXITED &&
	      guest_exec_end(x, GUEST_EXEC_OUT) == 5);
	CHECK(saves(x, "hello") && calls == 0);
	guest_exec_free(x);
	finish();
}

static void claimed_output_without_bytes_is_not_saved(void)
{
	struct agent_logs l = one_log(AGENT_EXITED, 16 << 20);
	struct guest_exec *x = NULL;

	l.log_bytes = 16 << 20; /* a hole: free for the sandbox, but it would fill our disk */
	CHECK(begin());
	send_attached();
	send_logs(&l, "hello");
	CHECK(adopt(&x) == 0 && guest_exec_end(x, GUEST_EXEC_OUT) == 16 << 20);
	CHECK(!saves(x, "") && err.code == ERR_UNAVAILABLE);
	guest_exec_free(x);
	finish();
}

static void output_overwritten_meanwhile_is_skipped(void)
{
	struct agent_log head = { AGENT_LOG_MAGIC, RING, 3, 5 };
	struct agent_logs l = one_log(AGENT_EXITED, 5);
	struct guest_exec *x = NULL;
	uint64_t at = 0;
	char buf[8];
	int fd = make_log(RING, "xxxlo");

	CHECK(begin());
	send_attached();
	send_message(AGENT_LOGR, REQ_LOGS, &l, sizeof(l), &fd, 1);
	CHECK(adopt(&x) == 0);
	CHECK(pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head));
	CHECK(saves(x, "lo"));
	CHECK(guest_exec_read(x, GUEST_EXEC_OUT, &at, buf, sizeof(buf)) == 2 && at == 5);
	CHECK(!memcmp(buf, "lo", 2));
	head.start = UINT64_MAX; /* hides its own output, nothing else */
	CHECK(pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head));
	at = 0;
	CHECK(saves(x, "") && guest_exec_read(x, GUEST_EXEC_OUT, &at, buf, sizeof(buf)) == 0 &&
	      at == 5);
	close(fd);
	guest_exec_free(x);
	finish();
}

static void an_exit_before_the_logs_is_taken_from_the_state(void)
{
	struct agent_logs l = one_log(AGENT_RUNNING, 5);
	struct agent_exit e = { .exec = ID, .code = 4, .at.out_end = 5 };
	struct guest_exec *x = NULL;

	CHECK(begin());
	send_message(AGENT_EXIT, 0, &e, sizeof(e), NULL,
		     0); /* too early: the logs have the result */
	send_attached();
	send_logs(&l, "hello");
	send_message(AGENT_EXIT, 0, &e, sizeof(e), NULL, 0); /* together with the logs */
	CHECK(adopt(&x) == 0 && guest_exec_state(x) == GUEST_EXEC_EXITED &&
	      guest_exec_result(x)->code == 4);
	CHECK(calls == 0 && saves(x, "hello"));
	guest_exec_free(x);
	finish();
}

static void a_later_exit_is_reported_once(void)
{
	struct agent_logs l = one_log(AGENT_RUNNING, 5);
	struct agent_exit e = { .exec = ID, .code = 4, .at.out_end = 6 };
	struct guest_exec *x = NULL;

	CHECK(begin());
	send_attached();
	send_logs(&l, "hello!");
	CHECK(adopt(&x) == 0 && guest_exec_state(x) == GUEST_EXEC_RUNNING &&
	      guest_exec_stdin_is_closed(x));
	send_message(AGENT_EXIT, 0, &e, sizeof(e), NULL, 0);
	send_message(AGENT_EXIT, 0, &e, sizeof(e), NULL, 0);
	CHECK(agent_dispatch(sandbox_agent(box), &err) == 0);
	CHECK(calls == 1 && saves(x, "hello!"));
	guest_exec_free(x);
	finish();
}

static void another_command_is_not_adopted(void)
{
	struct agent_logs l = one_log(AGENT_RUNNING, 5);
	struct guest_exec *x = NULL;

	l.proc.exec = l.proc.exit.exec = ID + 1;
	CHECK(begin());
	send_attached();
	send_logs(&l, "hello");
	CHECK(adopt(&x) == -1 && !x && err.code == ERR_UNAVAILABLE);
	finish();
}

static void logs_without_an_attachment_are_not_accepted(void)
{
	struct agent_logs l = one_log(AGENT_RUNNING, 5);
	struct agent_error no = { ERR_LIMIT, 0 };
	struct guest_exec *x = NULL;

	CHECK(begin());
	send_message(AGENT_ERROR, REQ_ATTACH, &no, sizeof(no), NULL, 0);
	send_message(AGENT_OK, REQ_STDIN, NULL, 0, NULL, 0);
	send_logs(&l, "hello");
	CHECK(adopt(&x) == -1 && !x && err.code == ERR_LIMIT);
	CHECK(!agent_is_closed(sandbox_agent(box)));
	finish();
}

static void an_answer_of_another_kind_is_refused(void)
{
	struct guest_exec *x = NULL;

	CHECK(begin());
	send_attached();
	send_message(AGENT_OK, REQ_LOGS, NULL, 0, NULL, 0);
	CHECK(adopt(&x) == -1 && !x && err.code == ERR_UNAVAILABLE);
	finish();
}

static void a_connection_that_ends_leaves_nothing(void)
{
	struct agent_logs l = one_log(AGENT_RUNNING, 5);
	struct guest_exec *x = NULL;

	CHECK(begin());
	send_attached();
	shutdown(init_end, SHUT_RDWR);
	CHECK(adopt(&x) == -1 && !x && err.code == ERR_UNAVAILABLE);
	finish();
	CHECK(begin());
	send_attached();
	send_logs(&l, "hello");
	shutdown(init_end, SHUT_WR); /* after the logs */
	CHECK(adopt(&x) == -1 && !x && err.code == ERR_UNAVAILABLE && calls == 0);
	finish();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0); /* a leak report must not lose earlier output */
	RUN(correct_replies_are_accepted);
	RUN(claimed_output_without_bytes_is_not_saved);
	RUN(output_overwritten_meanwhile_is_skipped);
	RUN(an_exit_before_the_logs_is_taken_from_the_state);
	RUN(a_later_exit_is_reported_once);
	RUN(another_command_is_not_adopted);
	RUN(logs_without_an_attachment_are_not_accepted);
	RUN(an_answer_of_another_kind_is_refused);
	RUN(a_connection_that_ends_leaves_nothing);
	return tap_done();
}
