/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of lodge-init's socket, with the test playing a lodge-init that may be hostile.
 */
#include "sandbox/agent.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sock.h"
#include "tap.h"

static struct agent *agent;
static int init_end; /* where the test sits */

struct seen {
	int calls, fd;
	uint32_t type;
	struct err err;
};

static void on_answer(void *arg, const void *msg, size_t len, int fd, const struct err *err)
{
	struct seen *s = arg;

	(void)len;
	s->calls++;
	s->fd = fd;
	if (msg)
		memcpy(&s->type, msg, sizeof(s->type));
	else
		s->err = *err;
}

static void on_event(void *arg, const void *msg, const struct err *err)
{
	on_answer(arg, msg, 0, -1, err);
}

static void begin(void)
{
	struct err err;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0 ||
	    agent_new(sv[0], &agent, &err) < 0)
		_exit(1);
	init_end = sv[1];
}

static void finish(void)
{
	agent_free(agent);
	close(init_end);
}

static int ask(enum agent_type type, struct seen *s)
{
	struct err err;

	return agent_send(agent, type, NULL, 0, NULL, 0, on_answer, s, &err);
}

/* What lodge-init says. */
static void say(uint32_t type, uint32_t req, const void *body, size_t len, int fd)
{
	struct agent_hdr h = { .type = type, .req = req, .len = (uint32_t)len };
	struct iovec iov[2] = { { &h, sizeof(h) }, { NULL, len } };

	memcpy(&iov[1].iov_base, &body, sizeof(body));
	sock_sendv(init_end, iov, 2, &fd, fd >= 0 ? 1 : 0);
}

static bool connection_is_over(void)
{
	struct err err;

	return agent_dispatch(agent, &err) < 0 && agent_is_closed(agent);
}

static void answers_find_their_requests(void)
{
	struct agent_hello h = { .version = AGENT_VERSION };
	struct seen a = { 0 }, b = { 0 };
	struct err err;

	begin();
	CHECK(ask(AGENT_HELLO, &a) == 0 && ask(AGENT_HELLO, &b) == 0);
	say(AGENT_OK, 2, NULL, 0, -1);
	say(AGENT_HELLOR, 1, &h, sizeof(h), -1);
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(a.calls == 1 && a.type == AGENT_HELLOR);
	CHECK(b.calls == 1 && b.type == AGENT_OK);
	finish();
	CHECK(a.calls == 1 && b.calls == 1);
}

static void a_refusal_is_an_error_with_its_sentence(void)
{
	struct {
		struct agent_error e;
		char text[16];
	} m = { { ERR_NOT_FOUND, 2 }, "no\x1b[31m such" };
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	say(AGENT_ERROR, 1, &m, sizeof(m.e) + strlen(m.text) + 1, -1);
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(s.calls == 1 && s.err.code == ERR_NOT_FOUND && s.err.sys == 2);
	CHECK_STR(s.err.msg, "no?[31m such"); /* nothing a terminal would obey */
	finish();
}

static void an_impossible_code_is_internal(void)
{
	struct agent_error e = { 4242, -7 };
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	say(AGENT_ERROR, 1, &e, sizeof(e), -1);
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(s.err.code == ERR_INTERNAL && s.err.sys == 0);
	finish();
}

static void nonsense_ends_the_connection_and_everybody_hears_of_it(void)
{
	struct seen s = { 0 }, e = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	agent_listen(agent, 7, on_event, &e, &err);
	say(9999, 1, NULL, 0, -1);
	CHECK(connection_is_over());
	CHECK(s.calls == 1 && s.err.code == ERR_UNAVAILABLE);
	CHECK(e.calls == 1 && e.err.code == ERR_UNAVAILABLE);
	CHECK(ask(AGENT_HELLO, &s) == -1);
	finish();
	CHECK(s.calls == 1 && e.calls == 1);
}

static void an_answer_nobody_asked_for_ends_it(void)
{
	begin();
	say(AGENT_OK, 5, NULL, 0, -1);
	CHECK(connection_is_over());
	finish();
}

static void a_second_answer_ends_it(void)
{
	struct seen s = { 0 };

	begin();
	ask(AGENT_HELLO, &s);
	say(AGENT_OK, 1, NULL, 0, -1);
	say(AGENT_OK, 1, NULL, 0, -1);
	CHECK(connection_is_over());
	CHECK(s.calls == 1);
	finish();
}

static void a_request_of_ours_sent_back_ends_it(void)
{
	struct seen s = { 0 };

	begin();
	ask(AGENT_HELLO, &s);
	say(AGENT_HELLO, 1, NULL, 0, -1);
	CHECK(connection_is_over());
	finish();
}

static void an_answer_without_request_number_ends_it(void)
{
	begin();
	say(AGENT_OK, 0, NULL, 0, -1);
	CHECK(connection_is_over());
	finish();
}

static void an_oversized_message_ends_it(void)
{
	static char big[64 * 1024];

	begin();
	say(AGENT_PROC, 1, big, sizeof(big), -1);
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
	say(AGENT_FD, 1, &t, sizeof(t), fd);
	ok = !connection_is_over() && s.fd >= 0;
	if (s.fd >= 0)
		close(s.fd);
	finish();
	close(fd);
	return ok;
}

static void only_files_and_directories_are_taken(void)
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

static void a_descriptor_where_none_belongs_ends_it(void)
{
	struct seen s = { 0 };
	int fd = open("/", O_RDONLY);

	begin();
	ask(AGENT_HELLO, &s);
	say(AGENT_OK, 1, NULL, 0, fd);
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
	say(AGENT_OUTPUT, 0, &p, sizeof(p), -1);
	p.exec = 99;
	say(AGENT_OUTPUT, 0, &p, sizeof(p), -1); /* given up meanwhile: not an error */
	CHECK(agent_dispatch(agent, &err) == 0);
	CHECK(three.calls == 1 && four.calls == 0);
	agent_unlisten(agent, 3);
	p.exec = 3;
	say(AGENT_OUTPUT, 0, &p, sizeof(p), -1);
	CHECK(agent_dispatch(agent, &err) == 0 && three.calls == 1);
	finish();
	CHECK(three.calls == 1 && four.calls == 1);
}

static void a_cancelled_request_is_answered_into_the_void(void)
{
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	agent_cancel(agent, &s);
	say(AGENT_OK, 1, NULL, 0, -1);
	CHECK(agent_dispatch(agent, &err) == 0 && s.calls == 0);
	finish();
	CHECK(s.calls == 0);
}

static void a_full_socket_queues_and_keeps_the_order(void)
{
	static char data[AGENT_DATA_MAX];
	struct agent_stdin m = { .exec = 1, .len = sizeof(data) };
	struct agent_part parts[] = { { &m, sizeof(m) }, { data, sizeof(data) } };
	static char got[AGENT_MSG_MAX];
	struct agent_hdr h;
	struct err err;
	size_t nfds;
	int sent = 0;

	begin();
	for (; sent < 20; sent++) {
		m.eof = sent & 1;
		CHECK(agent_send(agent, AGENT_STDIN, parts, 2, NULL, 0, NULL, NULL, &err) == 0);
	}
	CHECK(agent_events(agent) != 0);
	for (int i = 0; i < sent; i++) {
		CHECK(sock_recv(init_end, got, sizeof(got), NULL, 0, &nfds) > 0);
		memcpy(&h, got, sizeof(h));
		CHECK(h.req == (uint32_t)i + 1);
		CHECK(agent_dispatch(agent, &err) == 0);
	}
	finish();
}

static void a_peer_that_takes_nothing_is_bounded(void)
{
	static char data[AGENT_DATA_MAX];
	struct agent_stdin m = { .exec = 1, .len = sizeof(data) };
	struct agent_part parts[] = { { &m, sizeof(m) }, { data, sizeof(data) } };
	struct err err;
	int r = 0;

	begin();
	for (int i = 0; i < 1000 && r == 0; i++)
		r = agent_send(agent, AGENT_STDIN, parts, 2, NULL, 0, NULL, NULL, &err);
	CHECK(r == -1 && err.code == ERR_LIMIT);
	finish();
}

static void the_end_of_the_peer_is_told(void)
{
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(AGENT_HELLO, &s);
	shutdown(init_end, SHUT_RDWR);
	CHECK(agent_dispatch(agent, &err) == -1);
	CHECK_STR(s.err.msg, "the sandbox is gone");
	finish();
}

static void too_long_a_request_is_refused_here(void)
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
	RUN(answers_find_their_requests);
	RUN(a_refusal_is_an_error_with_its_sentence);
	RUN(an_impossible_code_is_internal);
	RUN(nonsense_ends_the_connection_and_everybody_hears_of_it);
	RUN(an_answer_nobody_asked_for_ends_it);
	RUN(a_second_answer_ends_it);
	RUN(a_request_of_ours_sent_back_ends_it);
	RUN(an_answer_without_request_number_ends_it);
	RUN(an_oversized_message_ends_it);
	RUN(only_files_and_directories_are_taken);
	RUN(a_descriptor_where_none_belongs_ends_it);
	RUN(events_go_to_their_listener_only);
	RUN(a_cancelled_request_is_answered_into_the_void);
	RUN(a_full_socket_queues_and_keeps_the_order);
	RUN(a_peer_that_takes_nothing_is_bounded);
	RUN(the_end_of_the_peer_is_told);
	RUN(too_long_a_request_is_refused_here);
	return tap_done();
}
