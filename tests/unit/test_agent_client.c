/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of lodge-init's socket, with the test playing a lodge-init that may be hostile.
 */
#include "sandbox/agent_client.h"
#include "sandbox/agent_sync.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "agent_pair.h"
#include "base/fd_message.h"
#include "tap.h"
#include "tmp_name.h"

struct seen {
	int calls, fd;
	uint32_t type;
	struct err err;
};

static void on_answer(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct seen *s = arg;

	(void)len;
	s->calls++;
	s->fd = fds ? steal_fd(&fds[0]) : -1;
	if (msg)
		memcpy(&s->type, msg, sizeof(s->type));
	else
		s->err = *err;
}

static void on_event(void *arg, const void *msg, const struct err *err)
{
	on_answer(arg, msg, 0, NULL, err);
}

static int ask(enum agent_type type, struct seen *s)
{
	struct err err;

	return agent_send(agent, type, NULL, 0, NULL, 0, on_answer, s, &err);
}

/* Sends a message as lodge-init. */
static void send_with_fds(uint32_t type, uint32_t req, const void *body, size_t len, const int *fds,
			  size_t nfds)
{
	struct agent_hdr h = { .type = type, .req = req, .len = (uint32_t)len };
	struct iovec iov[2] = { { &h, sizeof(h) }, { NULL, len } };

	memcpy(&iov[1].iov_base, &body, sizeof(body));
	fd_message_sendv(init_end, iov, 2, fds, nfds);
}

static void send_message(uint32_t type, uint32_t req, const void *body, size_t len, int fd)
{
	send_with_fds(type, req, body, len, &fd, fd >= 0 ? 1 : 0);
}

static bool connection_is_over(void)
{
	struct err err;

	return agent_dispatch(agent, &err) < 0 && agent_is_closed(agent);
}

static void answers_are_matched_to_requests(void)
{
	struct agent_hello h = { .version = AGENT_VERSION };
	struct seen a = { 0 }, b = { 0 };
	struct err err;

	begin();
	CHECK(ask(AGENT_HELLO, &a) == 0 && ask(AGENT_HELLO, &b) == 0);
	send_message(AGENT_OK, 2, NULL, 0, -1);
	send_message(AGENT_HELLOR, 1, &h, sizeof(h), -1);
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(a.calls == 1 && a.type == AGENT_HELLOR);
	CHECK(b.calls == 1 && b.type == AGENT_OK);
	finish();
	CHECK(a.calls == 1 && b.calls == 1);
}

static void a_refusal_is_an_error_with_its_message(void)
{
	struct {
		struct agent_error e;
		char text[16];
	} m = { { ERR_NOT_FOUND, 2 }, "no\x1b[31m such" };
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	send_message(AGENT_ERROR, 1, &m, sizeof(m.e) + strlen(m.text) + 1, -1);
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(s.calls == 1 && s.err.code == ERR_NOT_FOUND && s.err.sys == 2);
	CHECK_STR(s.err.msg, "no?[31m such"); /* control characters are removed */
	finish();
}

static void an_impossible_code_is_internal(void)
{
	struct agent_error e = { 4242, -7 };
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	send_message(AGENT_ERROR, 1, &e, sizeof(e), -1);
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(s.err.code == ERR_INTERNAL && s.err.sys == 0);
	finish();
}

static void a_malformed_message_ends_the_connection_and_all_requests(void)
{
	struct seen s = { 0 }, e = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	agent_listen(agent, 7, on_event, &e, &err);
	send_message(9999, 1, NULL, 0, -1);
	CHECK(connection_is_over());
	CHECK(s.calls == 1 && s.err.code == ERR_UNAVAILABLE);
	CHECK(e.calls == 1 && e.err.code == ERR_UNAVAILABLE);
	CHECK(ask(AGENT_HELLO, &s) == -1);
	finish();
	CHECK(s.calls == 1 && e.calls == 1);
}

static void an_unknown_answer_ends_the_connection(void)
{
	begin();
	send_message(AGENT_OK, 5, NULL, 0, -1);
	CHECK(connection_is_over());
	finish();
}

static void a_second_answer_ends_the_connection(void)
{
	struct seen s = { 0 };

	begin();
	ask(AGENT_HELLO, &s);
	send_message(AGENT_OK, 1, NULL, 0, -1);
	send_message(AGENT_OK, 1, NULL, 0, -1);
	CHECK(connection_is_over());
	CHECK(s.calls == 1);
	finish();
}

static void a_request_from_lodge_init_ends_the_connection(void)
{
	struct seen s = { 0 };

	begin();
	ask(AGENT_HELLO, &s);
	send_message(AGENT_HELLO, 1, NULL, 0, -1);
	CHECK(connection_is_over());
	finish();
}

static void an_answer_without_request_number_ends_the_connection(void)
{
	begin();
	send_message(AGENT_OK, 0, NULL, 0, -1);
	CHECK(connection_is_over());
	finish();
}

static void an_oversized_message_ends_the_connection(void)
{
	static char big[64 * 1024];

	begin();
	send_message(AGENT_PROC, 1, big, sizeof(big), -1);
	CHECK(connection_is_over());
	finish();
}

static bool fd_is_accepted(int fd)
{
	struct agent_token t = { 1 };
	struct seen s = { .fd = -1 };
	bool ok;

	begin();
	ask(AGENT_HELLO, &s);
	send_message(AGENT_FD, 1, &t, sizeof(t), fd);
	ok = !connection_is_over() && s.fd >= 0;
	if (s.fd >= 0)
		close(s.fd);
	finish();
	close(fd);
	return ok;
}

static void only_files_and_directories_are_accepted(void)
{
	int p[2], sv[2];

	CHECK(fd_is_accepted(open("/proc/self/exe", O_RDONLY)));
	CHECK(fd_is_accepted(open("/", O_RDONLY | O_DIRECTORY)));
	CHECK(!fd_is_accepted(open("/dev/zero", O_RDONLY)));
	CHECK(pipe(p) == 0 && !fd_is_accepted(p[0]));
	close(p[1]);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0 && !fd_is_accepted(sv[0]));
	close(sv[1]);
}

/* ---- logs ------------------------------------------------------------------------------------ */

enum { RING = 8192 };

static int make_log(off_t size, int seals)
{
	int fd = memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, size) < 0 || (seals && fcntl(fd, F_ADD_SEALS, seals) < 0))
		_exit(1);
	return fd;
}

/* Whether a LOGR with these descriptors is accepted; they are closed. */
static bool logs_are_accepted(uint64_t log_bytes, uint32_t flags, int a, int b)
{
	struct agent_logs l = { .proc = { .exec = 1,
					  .state = AGENT_RUNNING,
					  .flags = flags,
					  .exit = { .exec = 1, .at = { .out_end = 5 } } },
				.log_bytes = log_bytes };
	struct agent_ref ref = { 1 };
	struct agent_part part = { &ref, sizeof(ref) };
	struct seen s = { .fd = -1 };
	int fds[2] = { a, b };
	struct err err;
	bool ok;

	begin();
	ok = agent_send(agent, AGENT_LOGS, &part, 1, NULL, 0, on_answer, &s, &err) == 0;
	send_with_fds(AGENT_LOGR, 1, &l, sizeof(l), fds, (size_t)(a >= 0) + (size_t)(b >= 0));
	ok = ok && !connection_is_over() && s.type == AGENT_LOGR && s.fd >= 0;
	if (s.fd >= 0)
		close(s.fd);
	finish();
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ok;
}

static const int sealed = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

static int good_log(void)
{
	return make_log(AGENT_LOG_HEAD + RING, sealed);
}

static void logs_must_be_sealed_files_of_their_size(void)
{
	const off_t size = AGENT_LOG_HEAD + RING;

	CHECK(logs_are_accepted(RING, 0, good_log(), good_log()));
	CHECK(logs_are_accepted(RING, AGENT_MERGE, good_log(), -1));
	CHECK(!logs_are_accepted(RING, 0, good_log(), make_log(size + 1, sealed)));
	CHECK(!logs_are_accepted(RING, 0, make_log(size - 4096, sealed), good_log()));
	CHECK(!logs_are_accepted(2 * RING, 0, good_log(), good_log()));
	CHECK(!logs_are_accepted(RING, 0, good_log(), make_log(size, 0)));
	CHECK(!logs_are_accepted(RING, 0, make_log(size, F_SEAL_GROW | F_SEAL_SEAL), good_log()));
	CHECK(!logs_are_accepted(RING, 0, make_log(size, F_SEAL_SHRINK | F_SEAL_SEAL), good_log()));
	CHECK(!logs_are_accepted(RING, 0, make_log(size, F_SEAL_GROW | F_SEAL_SHRINK), good_log()));
}

static void logs_must_be_complete(void)
{
	CHECK(!logs_are_accepted(RING, 0, good_log(), -1));
	CHECK(!logs_are_accepted(RING, 0, -1, -1));
	CHECK(!logs_are_accepted(RING, AGENT_PTY, good_log(), good_log()));
	CHECK(!logs_are_accepted(0, 0, good_log(), good_log()));
	CHECK(!logs_are_accepted(RING - 1, 0, good_log(), good_log()));
}

static void other_files_are_refused_as_logs(void)
{
	char path[TMP_NAME_SIZE];
	int p[2], sv[2], file = mkostemp(tmp_name(path, "lodge-log"), O_CLOEXEC);

	CHECK(file >= 0 && unlink(path) == 0 && ftruncate(file, AGENT_LOG_HEAD + RING) == 0);
	CHECK(!logs_are_accepted(RING, AGENT_MERGE, file,
				 -1)); /* it could be truncated while it is read */
	CHECK(pipe(p) == 0 && !logs_are_accepted(RING, AGENT_MERGE, p[0], -1));
	close(p[1]);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0 &&
	      !logs_are_accepted(RING, AGENT_MERGE, sv[0], -1));
	close(sv[1]);
	CHECK(!logs_are_accepted(RING, AGENT_MERGE, open("/dev/zero", O_RDWR), -1));
	CHECK(!logs_are_accepted(RING, AGENT_MERGE, open("/", O_RDONLY), -1));
	CHECK(!logs_are_accepted(RING, AGENT_MERGE, memfd_create("log", MFD_CLOEXEC), -1));
}

static void unused_descriptors_are_closed(void)
{
	struct agent_token t = { 1 };
	struct seen s = { .fd = -1 };
	int before = open("/", O_RDONLY), fd = open("/proc/self/exe", O_RDONLY), after;
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	agent_cancel(agent, &s);
	send_message(AGENT_FD, 1, &t, sizeof(t), fd);
	CHECK(agent_dispatch(agent, &err) == 0 && s.calls == 0);
	finish();
	close(fd);
	close(before);
	after = open("/", O_RDONLY);
	CHECK(after == before);
	close(after);
}

/* ---- the list of commands -------------------------------------------------------------------- */

struct walk {
	uint64_t sum;
	int stop_after;
};

static int add_one(void *arg, const struct agent_proc *p)
{
	struct walk *w = arg;

	w->sum += p->exec;
	return --w->stop_after == 0 ? 7 : 0;
}

static void send_procs(int n)
{
	for (int i = 1; i <= n; i++) {
		struct agent_proc p = { .exec = (uint64_t)i,
					.state = AGENT_RUNNING,
					.exit.exec = (uint64_t)i };

		send_message(AGENT_PROC, 1, &p, sizeof(p), -1);
	}
}

static void a_list_is_delivered_when_complete(void)
{
	struct walk w = { 0 };
	struct err err;

	begin();
	send_procs(3);
	send_message(AGENT_OK, 1, NULL, 0, -1);
	CHECK(agent_list(agent, add_one, &w, &err) == 0 && w.sum == 6);
	finish();
	w = (struct walk){ .stop_after = 2 };
	begin();
	send_procs(3);
	send_message(AGENT_OK, 1, NULL, 0, -1);
	CHECK(agent_list(agent, add_one, &w, &err) == 7 && w.sum == 3);
	finish();
}

static void an_incomplete_list_is_discarded(void)
{
	struct walk w = { 0 };
	struct err err;

	begin();
	send_procs(3);
	shutdown(init_end, SHUT_RDWR);
	CHECK(agent_list(agent, add_one, &w, &err) == -1 && w.sum == 0);
	CHECK(err.code == ERR_UNAVAILABLE);
	finish();
}

static void too_long_a_list_ends_the_connection(void)
{
	struct walk w = { 0 };
	struct err err;

	begin();
	CHECK(fcntl(init_end, F_SETFL, O_NONBLOCK) == 0);
	setsockopt(init_end, SOL_SOCKET, SO_SNDBUFFORCE, &(int){ 1 << 20 }, sizeof(int));
	send_procs(AGENT_EXECS_MAX + 1); /* and never an OK */
	CHECK(agent_list(agent, add_one, &w, &err) == -1 && w.sum == 0);
	CHECK(err.code == ERR_UNAVAILABLE || err.code == ERR_TIMEOUT);
	finish();
}

/* ---- request numbers ------------------------------------------------------------------------- */

static void side_connections_have_their_own_numbers(void)
{
	struct agent_hello h = { .version = AGENT_VERSION, .last_exec = 41 };
	struct err err;

	begin();
	CHECK(agent_next_exec(agent) == 1);
	send_message(AGENT_HELLOR, 1, &h, sizeof(h), -1);
	CHECK(agent_hello(agent, NULL, &err) == 0 && agent_next_exec(agent) == 42);
	agent_number_from(agent, 7); /* numbers never decrease */
	CHECK(agent_next_exec(agent) == 43);
	agent_number_from(agent, agent_side_base(5));
	CHECK(agent_next_exec(agent) == 6 * AGENT_SIDE_EXEC + 1);
	send_message(AGENT_HELLOR, 2, &h, sizeof(h), -1);
	CHECK(agent_hello(agent, NULL, &err) == 0);
	CHECK(agent_next_exec(agent) == 6 * AGENT_SIDE_EXEC + 2);
	CHECK(agent_side_base(0) == AGENT_SIDE_EXEC && agent_side_base(UINT32_MAX) < INT64_MAX);
	h.last_exec = UINT64_MAX; /* would make the next one 0 */
	send_message(AGENT_HELLOR, 3, &h, sizeof(h), -1);
	CHECK(agent_hello(agent, NULL, &err) == -1 && agent_is_closed(agent));
	finish();
}

static void one_handle_per_command(void)
{
	struct seen a = { 0 }, b = { 0 };
	struct err err;

	begin();
	CHECK(agent_listen(agent, 3, on_event, &a, &err) == 0);
	CHECK(agent_listen(agent, 3, on_event, &b, &err) == -1 && err.code == ERR_CONFLICT);
	agent_unlisten(agent, 3);
	CHECK(agent_listen(agent, 3, on_event, &b, &err) == 0);
	finish();
	CHECK(a.calls == 0 && b.calls == 1);
}

static void an_unexpected_descriptor_ends_the_connection(void)
{
	struct seen s = { 0 };
	int fd = open("/", O_RDONLY);

	begin();
	ask(AGENT_HELLO, &s);
	send_message(AGENT_OK, 1, NULL, 0, fd);
	CHECK(connection_is_over());
	finish();
	close(fd);
}

static void events_go_to_their_listener_only(void)
{
	struct agent_progress p = { .exec = 3, .out_end = 5 };
	struct seen three = { 0 }, four = { 0 };
	struct err err;

	begin();
	agent_listen(agent, 3, on_event, &three, &err);
	agent_listen(agent, 4, on_event, &four, &err);
	send_message(AGENT_OUTPUT, 0, &p, sizeof(p), -1);
	p.exec = 99;
	send_message(AGENT_OUTPUT, 0, &p, sizeof(p),
		     -1); /* the listener is gone meanwhile: not an error */
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(three.calls == 1 && four.calls == 0);
	agent_unlisten(agent, 3);
	p.exec = 3;
	send_message(AGENT_OUTPUT, 0, &p, sizeof(p), -1);
	CHECK(agent_dispatch(agent, &err) == 0 && three.calls == 1);
	finish();
	CHECK(three.calls == 1 && four.calls == 1);
}

static void the_answer_of_a_cancelled_request_is_dropped(void)
{
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	agent_cancel(agent, &s);
	send_message(AGENT_OK, 1, NULL, 0, -1);
	CHECK(agent_dispatch(agent, &err) == 0 && s.calls == 0);
	finish();
	CHECK(s.calls == 0);
}

static void the_end_of_the_peer_is_reported(void)
{
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	shutdown(init_end, SHUT_RDWR);
	CHECK(agent_dispatch(agent, &err) == -1);
	CHECK_STR(s.err.msg, "sandbox is gone: connection lost");
	finish();
}

static void too_long_a_request_is_not_sent(void)
{
	static char data[AGENT_MSG_MAX];
	struct agent_part part = { data, sizeof(data) };
	struct err err;

	begin();
	CHECK(agent_send(agent, AGENT_EXEC, &part, 1, NULL, 0, NULL, NULL, &err) == -1);
	CHECK(err.code == ERR_LIMIT && !agent_is_closed(agent));
	finish();
}

int main(void)
{
	RUN(answers_are_matched_to_requests);
	RUN(a_refusal_is_an_error_with_its_message);
	RUN(an_impossible_code_is_internal);
	RUN(a_malformed_message_ends_the_connection_and_all_requests);
	RUN(an_unknown_answer_ends_the_connection);
	RUN(a_second_answer_ends_the_connection);
	RUN(a_request_from_lodge_init_ends_the_connection);
	RUN(an_answer_without_request_number_ends_the_connection);
	RUN(an_oversized_message_ends_the_connection);
	RUN(only_files_and_directories_are_accepted);
	RUN(an_unexpected_descriptor_ends_the_connection);
	RUN(logs_must_be_sealed_files_of_their_size);
	RUN(logs_must_be_complete);
	RUN(other_files_are_refused_as_logs);
	RUN(unused_descriptors_are_closed);
	RUN(a_list_is_delivered_when_complete);
	RUN(an_incomplete_list_is_discarded);
	RUN(too_long_a_list_ends_the_connection);
	RUN(side_connections_have_their_own_numbers);
	RUN(one_handle_per_command);
	RUN(events_go_to_their_listener_only);
	RUN(the_answer_of_a_cancelled_request_is_dropped);
	RUN(the_end_of_the_peer_is_reported);
	RUN(too_long_a_request_is_not_sent);
	return tap_done();
}
