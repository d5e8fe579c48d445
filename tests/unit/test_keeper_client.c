/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of the keeper's socket, with the test playing the keeper. */
#include "sandbox/keeper_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "tap.h"

static struct keeper_client *client;
static int keeper_end;

struct seen {
	int calls, fd;
	struct keeper_reply reply;
	struct err err;
};

static void on_reply(void *arg, const struct keeper_reply *reply, int fd, const struct err *err)
{
	struct seen *s = arg;

	s->calls++;
	s->fd = fd;
	if (reply)
		s->reply = *reply;
	else
		s->err = *err;
}

static void begin(void)
{
	struct err err;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0 ||
	    keeper_client_take(sv[0], &client, &err) < 0)
		_exit(1);
	keeper_end = sv[1];
}

static void finish(void)
{
	keeper_client_free(client);
	close(keeper_end);
}

static int ask(enum keeper_op op, const char *id, struct seen *s)
{
	struct keeper_request r = keeper_client_request(op, id);
	struct err err;

	return keeper_client_send(client, &r, NULL, 0, on_reply, s, &err);
}

static struct keeper_reply reply(enum keeper_op op, const char *id)
{
	struct keeper_reply r;

	memset(&r, 0, sizeof(r));
	r.version = KEEPER_VERSION;
	r.op = op;
	if (id)
		strcpy(r.id, id);
	return r;
}

static void send_message(const struct keeper_reply *r, int fd)
{
	fd_message_send(keeper_end, r, sizeof(*r), &fd, fd >= 0 ? 1 : 0);
}

static bool connection_is_over(void)
{
	struct err err;

	return keeper_client_dispatch(client, &err) < 0;
}

static void replies_come_in_order(void)
{
	struct keeper_reply h = reply(KEEPER_HELLO, NULL), f = reply(KEEPER_FREEZE, "a");
	struct seen a = { 0 }, b = { 0 };
	struct err err;

	begin();
	CHECK(ask(KEEPER_HELLO, NULL, &a) == 0 && ask(KEEPER_FREEZE, "a", &b) == 0);
	h.features = KEEPER_HAS_CGROUP;
	send_message(&h, -1);
	send_message(&f, -1);
	CHECK(keeper_client_dispatch(client, &err) == 0);
	CHECK(a.calls == 1 && a.reply.features == KEEPER_HAS_CGROUP && b.calls == 1);
	finish();
}

static void invalid_requests_are_not_sent(void)
{
	struct seen s = { 0 };
	char byte;

	begin();
	CHECK(ask(KEEPER_FREEZE, "../x", &s) == -1);
	CHECK(ask(KEEPER_CREATE, "x", &s) == -1); /* nothing filled in */
	CHECK(recv(keeper_end, &byte, 1, MSG_DONTWAIT) == -1);
	finish();
	CHECK(s.calls == 0);
}

static void a_list_ends_with_an_empty_id(void)
{
	struct keeper_reply one = reply(KEEPER_LIST, "one"), end = reply(KEEPER_LIST, NULL);
	struct seen s = { 0 };
	struct err err;

	begin();
	ask(KEEPER_LIST, NULL, &s);
	send_message(&one, -1);
	send_message(&one, -1);
	send_message(&end, -1);
	CHECK(keeper_client_dispatch(client, &err) == 0);
	CHECK(s.calls == 3);
	finish();
	CHECK(s.calls == 3);
}

static bool is_refused(struct keeper_reply r, int fd)
{
	struct seen s = { 0 };
	bool over;

	begin();
	ask(KEEPER_CONNECT, "box", &s);
	send_message(&r, fd);
	over = connection_is_over();
	finish();
	return over && s.calls == 1 && s.err.code;
}

static void unexpected_replies_end_the_connection(void)
{
	struct keeper_reply r = reply(KEEPER_CONNECT, "box");
	int sv[2], file = open("/", O_RDONLY);

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) == 0);
	CHECK(is_refused(r, -1)); /* success without a socket */
	CHECK(is_refused(r, file));
	r.op = KEEPER_HELLO;
	CHECK(is_refused(r, sv[0]));
	r = reply(KEEPER_CONNECT, "other");
	CHECK(is_refused(r, sv[0]));
	r = reply(KEEPER_CONNECT, "box");
	r.version = 7;
	CHECK(is_refused(r, sv[0]));
	r = reply(KEEPER_CONNECT, "box");
	r.code = 77;
	CHECK(is_refused(r, -1));
	r = reply(KEEPER_CONNECT, "box");
	r.code = ERR_DENIED;
	CHECK(is_refused(r, sv[0])); /* an error with a descriptor */
	memset(r.msg, 'x', sizeof(r.msg));
	CHECK(is_refused(r, -1));
	r = reply(KEEPER_CONNECT, "box");
	r.code = ERR_DENIED;
	strcpy(r.msg, "\x1b[2J");
	CHECK(is_refused(r, -1));
	close(sv[0]);
	close(sv[1]);
	close(file);
}

static void an_unasked_reply_ends_the_connection(void)
{
	struct keeper_reply r = reply(KEEPER_HELLO, NULL);

	begin();
	send_message(&r, -1);
	CHECK(connection_is_over());
	finish();
}

static void a_good_connection_is_handed_over(void)
{
	struct keeper_reply r = reply(KEEPER_CONNECT, "box");
	struct seen s = { .fd = -1 };
	struct err err;
	int sv[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) == 0);
	begin();
	ask(KEEPER_CONNECT, "box", &s);
	send_message(&r, sv[0]);
	CHECK(keeper_client_dispatch(client, &err) == 0);
	CHECK(s.calls == 1 && s.fd >= 0);
	CHECK(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
	close(s.fd);
	close(sv[0]);
	close(sv[1]);
	finish();
}

static void an_error_keeps_its_message(void)
{
	struct keeper_request req = keeper_client_request(KEEPER_FREEZE, "a");
	struct keeper_reply r = reply(KEEPER_FREEZE, "a");
	struct err err;

	begin();
	r.code = ERR_DENIED;
	r.sys = 1;
	strcpy(r.msg, "overlay: Operation not permitted");
	send_message(&r, -1); /* waits in the socket */
	CHECK(keeper_client_call(client, &req, NULL, 0, NULL, NULL, &err) == -1);
	CHECK(err.code == ERR_DENIED && err.sys == 1);
	CHECK_STR(err.msg, "overlay: Operation not permitted");
	finish();
}

static void waiting_callbacks_are_called_at_the_end(void)
{
	struct seen s = { 0 };

	begin();
	ask(KEEPER_HELLO, NULL, &s);
	shutdown(keeper_end, SHUT_RDWR);
	CHECK(connection_is_over());
	CHECK(s.calls == 1 && s.err.code == ERR_UNAVAILABLE);
	finish();
	begin();
	ask(KEEPER_HELLO, NULL, &s);
	finish();
	CHECK(s.calls == 2);
}

/* Its end of the socket is not read. */
static bool is_silent(const char *id)
{
	struct keeper_request req = keeper_client_request(KEEPER_CONNECT, id);
	struct err err = { 0 };

	return keeper_client_call(client, &req, NULL, 0, NULL, NULL, &err) == -1 &&
	       err.code == ERR_UNAVAILABLE && err.sys == KEEPER_SILENT &&
	       strstr(err.msg, "has not answered since");
}

static void a_late_reply_is_discarded(void)
{
	struct keeper_reply late = reply(KEEPER_CONNECT, "late"), next = reply(KEEPER_FREEZE, "a");
	struct keeper_request req = keeper_client_request(KEEPER_FREEZE, "a");
	atomic_int_least64_t owing = 7;
	struct err err = { 0 };
	char byte;
	int sv[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) == 0);
	begin();
	keeper_client_set_monitor(client, &owing);
	keeper_client_set_wait(client, (struct keeper_client_wait){ .silence_ms = 20 });
	CHECK(owing == 0 && is_silent("late") && owing);
	CHECK(keeper_client_settle(client, &err) == -1 && err.sys == KEEPER_SILENT);
	send_message(&late, sv[0]);
	close(sv[0]);
	CHECK(keeper_client_settle(client, &err) == 0 && owing == 0);
	CHECK(recv(sv[1], &byte, 1, MSG_DONTWAIT) == 0); /* its descriptor was closed */
	send_message(&next, -1);
	CHECK(keeper_client_call(client, &req, NULL, 0, NULL, NULL, &err) == 0);
	close(sv[1]);
	finish();
	CHECK(owing == 0);
}

static int count_item(void *arg, enum keeper_what what, const char *id, pid_t pid)
{
	(void)what;
	(void)id;
	(void)pid;
	(*(int *)arg)++;
	return 0;
}

static void an_abandoned_list_is_discarded(void)
{
	struct keeper_reply one = reply(KEEPER_LIST, "one"), end = reply(KEEPER_LIST, NULL);
	struct err err = { 0 };
	int items = 0;

	begin();
	one.what = KEEPER_IS_SANDBOX;
	send_message(&one, -1);
	keeper_client_set_wait(client, (struct keeper_client_wait){ .silence_ms = 20 });
	CHECK(keeper_client_list(client, count_item, &items, &err) == -1);
	CHECK(err.sys == KEEPER_SILENT && items == 1);
	send_message(&one, -1);
	send_message(&end, -1);
	CHECK(keeper_client_settle(client, &err) == 0 && items == 1);
	finish();
}

static void a_missing_keeper_is_reported(void)
{
	struct keeper_client_opts how = { .program = "/no/such/keeper", .home = "/tmp" };
	struct keeper_client *k = NULL;
	struct err err;

	CHECK(keeper_client_spawn(&how, &k, &err) == -1 && !k);
	CHECK(strstr(err.msg, "/no/such/keeper"));
	how.home = "relative";
	CHECK(keeper_client_spawn(&how, &k, &err) == -1 && err.code == ERR_INVALID);
}

static void a_keeper_that_dies_at_once_is_reported(void)
{
	struct keeper_client_opts how = { .program = "/bin/false", .home = "/tmp" };
	struct keeper_client *k = NULL;
	unsigned f;
	struct err err;

	CHECK(keeper_client_spawn(&how, &k, &err) == 0);
	CHECK(keeper_client_features(k, &f, &err) == -1);
	CHECK_STR(err.msg, "lodge-keeper exited with status 1");
	keeper_client_free(k);
}

int main(void)
{
	RUN(replies_come_in_order);
	RUN(invalid_requests_are_not_sent);
	RUN(a_list_ends_with_an_empty_id);
	RUN(unexpected_replies_end_the_connection);
	RUN(an_unasked_reply_ends_the_connection);
	RUN(a_good_connection_is_handed_over);
	RUN(an_error_keeps_its_message);
	RUN(waiting_callbacks_are_called_at_the_end);
	RUN(a_late_reply_is_discarded);
	RUN(an_abandoned_list_is_discarded);
	RUN(a_missing_keeper_is_reported);
	RUN(a_keeper_that_dies_at_once_is_reported);
	return tap_done();
}
