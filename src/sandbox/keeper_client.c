/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/keeper_client.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_message.h"
#include "sandbox/keeper_spawn.h"

enum {
	WAITING_MAX = 1024,
	CLEANUP_MS = 20000, /* for the keeper to destroy its sandboxes */
};

struct keeper_call {
	struct keeper_call *next;
	keeper_client_fn *fn;
	void *arg;
	uint32_t op;
	char id[KEEPER_ID_SIZE];
};

struct keeper_client {
	int fd;
	int pidfd; /* -1: this client did not start the keeper */
	struct keeper_call *head, **tail;
	size_t nwaiting;
	int64_t owing_since; /* the last sign of life while a request is pending; 0: none is */
	atomic_int_least64_t *monitor; /* a copy of it; or NULL */
	struct keeper_client_wait wait;
	struct enforcement enforcement; /* of HELLO */
	struct err closed; /* why the connection ended; code 0 while it is open */
};

int keeper_client_take(int fd, struct keeper_client **ret, struct err *err)
{
	auto_close int own = fd;
	int r = fd_message_nonblock(fd);
	struct keeper_client *k;

	if (r < 0)
		return err_sys(err, -r, "connect to the keeper");
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_sys(err, ENOMEM, "keeper");
	k->fd = steal_fd(&own);
	k->pidfd = -1;
	k->tail = &k->head;
	*ret = k;
	return 0;
}

int keeper_client_spawn(const struct keeper_client_opts *opts, struct keeper_client **ret,
			struct err *err)
{
	auto_close int fd = -1, pidfd = -1;

	if ((opts->start ? opts->start(opts->start_arg, &fd, &pidfd, err)
			 : keeper_spawn(opts->program, opts->home, opts->oneshot, NULL, &fd, &pidfd,
					err)) < 0)
		return -1;
	if (keeper_client_take(steal_fd(&fd), ret, err) < 0)
		return -1;
	(*ret)->pidfd = steal_fd(&pidfd);
	return 0;
}

static void set_owing(struct keeper_client *k, bool owing)
{
	k->owing_since = owing ? clock_mono_ms() : 0;
	if (k->monitor)
		*k->monitor = k->owing_since;
}

static void fail_waiting(struct keeper_client *k)
{
	while (k->head) {
		struct keeper_call *w = k->head;

		k->head = w->next;
		w->fn(w->arg, NULL, -1, &k->closed);
		free(w);
	}
	k->tail = &k->head;
	k->nwaiting = 0;
	set_owing(k, false);
}

void keeper_client_free(struct keeper_client *k)
{
	struct pollfd p;
	siginfo_t info;

	if (!k)
		return;
	if (!k->closed.code)
		err_set(&k->closed, ERR_UNAVAILABLE, "connection to the keeper was closed");
	fail_waiting(k);
	close(k->fd);
	if (k->pidfd >= 0) {
		p = (struct pollfd){ .fd = k->pidfd, .events = POLLIN };
		while (poll(&p, 1, CLEANUP_MS) < 0 && errno == EINTR)
			;
		waitid(P_PIDFD, (id_t)k->pidfd, &info, WEXITED | WNOHANG);
		close(k->pidfd);
	}
	free(k);
}

int keeper_client_fd(const struct keeper_client *k)
{
	return k->fd;
}

bool keeper_client_is_dead(const struct keeper_client *k)
{
	struct pollfd p[] = { { .fd = k->fd }, { .fd = k->pidfd, .events = POLLIN } };

	return k->closed.code || (poll(p, 2, 0) > 0 && (p[0].revents || p[1].revents));
}

/* Why the keeper exited, if this client started it. */
static void describe_exit(const struct keeper_client *k, struct err *err)
{
	struct pollfd p = { .fd = k->pidfd, .events = POLLIN };
	siginfo_t info = { 0 };

	err_set(err, ERR_UNAVAILABLE, "connection to lodge-keeper lost");
	err->sys = KEEPER_FAILED;
	if (k->pidfd < 0 || poll(&p, 1, 1000) <= 0)
		return;
	if (waitid(P_PIDFD, (id_t)k->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return;
	if (info.si_code == CLD_EXITED)
		err_set(err, ERR_UNAVAILABLE, "lodge-keeper exited with status %d", info.si_status);
	else
		err_set(err, ERR_UNAVAILABLE, "lodge-keeper was killed by signal %d",
			info.si_status);
	err->sys = KEEPER_FAILED;
}

static int end_connection(struct keeper_client *k, const struct err *why, struct err *err)
{
	if (!k->closed.code)
		k->closed = *why;
	shutdown(k->fd, SHUT_RDWR);
	fail_waiting(k);
	*err = k->closed;
	return -1;
}

int keeper_client_send(struct keeper_client *k, const struct keeper_request *req, const int *fds,
		       size_t nfds, keeper_client_fn *fn, void *arg, struct err *err)
{
	const char *problem = keeper_request_problem(req, sizeof(*req), nfds);
	struct keeper_call *w;
	int n;

	if (k->closed.code) {
		*err = k->closed;
		return -1;
	}
	if (problem)
		return err_set(err, ERR_INVALID, "%s", problem);
	if (k->nwaiting >= WAITING_MAX)
		return err_set(err, ERR_LIMIT, "more than %d requests to the keeper are pending",
			       WAITING_MAX);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_sys(err, ENOMEM, "keeper");
	n = fd_message_send(k->fd, req, sizeof(*req), fds, nfds);
	if (n < 0) {
		free(w);
		if (n == -EPIPE || n == -ECONNRESET)
			describe_exit(k, err);
		else
			err_sys(err, -n, "send to the keeper");
		return -1;
	}
	w->fn = fn;
	w->arg = arg;
	w->op = req->op;
	memcpy(w->id, req->id, sizeof(w->id));
	if (!k->head)
		set_owing(k, true);
	*k->tail = w;
	k->tail = &w->next;
	k->nwaiting++;
	return 0;
}

static bool is_text(const char *s, size_t size)
{
	size_t n = strnlen(s, size);

	if (n == size)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return true;
}

static bool is_seqpacket(int fd)
{
	int type = 0, domain = 0;
	socklen_t size = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return false;
	size = sizeof(int);
	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX &&
	       type == SOCK_SEQPACKET;
}

/* The keeper is trusted more than a guest, but a reply that does not match its request means that
 * both sides are out of step. */
static const char *check_reply(const struct keeper_call *w, const struct keeper_reply *r,
			       size_t len, const int *fds, size_t nfds)
{
	bool gives_fd = w && keeper_op_returns_fd(w->op);

	if (!w)
		return "reply without a request";
	if (len != sizeof(*r) || r->version != KEEPER_VERSION || r->op != w->op)
		return "wrong size, version or operation";
	if (r->code > ERR_INTERNAL || r->sys < 0 || r->sys > 4095)
		return "invalid error code";
	if (!is_text(r->msg, sizeof(r->msg)))
		return "invalid error message";
	if (strnlen(r->id, sizeof(r->id)) == sizeof(r->id) ||
	    (r->id[0] && !keeper_id_is_valid(r->id)))
		return "invalid sandbox id";
	if (w->id[0] && r->id[0] && strcmp(w->id, r->id) != 0)
		return "reply for another sandbox";
	if (nfds != (gives_fd && r->code == ERR_NONE ? 1 : 0))
		return "wrong number of descriptors";
	if (nfds && !is_seqpacket(fds[0]))
		return "descriptor is not a SOCK_SEQPACKET socket";
	return NULL;
}

static void complete_request(struct keeper_client *k, const struct keeper_reply *r, int fd)
{
	struct keeper_call *w = k->head;
	keeper_client_fn *fn = w->fn;
	void *arg = w->arg;

	/* A list ends with a reply that has an empty id. */
	if (r->op != KEEPER_LIST || !r->id[0] || r->code != ERR_NONE) {
		k->head = w->next;
		if (!k->head)
			k->tail = &k->head;
		k->nwaiting--;
		free(w);
	}
	set_owing(k, k->head);
	fn(arg, r, fd, NULL);
}

/* 1: one reply handled; 0: none available. */
static int receive_one(struct keeper_client *k, struct err *err)
{
	struct keeper_reply r;
	int fds[SOCK_FDS_MAX];
	size_t nfds = 0;
	int n = fd_message_recv(k->fd, &r, sizeof(r), fds, SOCK_FDS_MAX, &nfds);
	const char *problem;
	struct err why;

	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		describe_exit(k, &why);
		return end_connection(k, &why, err);
	}
	problem = check_reply(k->head, &r, (size_t)n, fds, nfds);
	if (problem) {
		for (size_t i = 0; i < nfds; i++)
			close(fds[i]);
		err_set(&why, ERR_INTERNAL, "protocol error from lodge-keeper (%s): %s",
			k->head ? keeper_op_name(k->head->op) : "no request", problem);
		return end_connection(k, &why, err);
	}
	complete_request(k, &r, nfds ? fds[0] : -1);
	return 1;
}

int keeper_client_dispatch(struct keeper_client *k, struct err *err)
{
	int r;

	if (k->closed.code) {
		*err = k->closed;
		return -1;
	}
	do
		r = receive_one(k, err);
	while (r > 0 && k->head);
	return r < 0 ? -1 : 0;
}

/* ---- blocking -------------------------------------------------------------------------------- */

struct call {
	bool done;
	struct keeper_reply reply;
	struct err err;
	int fd;
};

static void on_reply(void *arg, const struct keeper_reply *reply, int fd, const struct err *err)
{
	struct call *c = arg;

	c->done = true;
	c->fd = fd;
	if (reply)
		c->reply = *reply;
	else
		c->err = *err;
}

struct keeper_request keeper_client_request(enum keeper_op op, const char *id)
{
	struct keeper_request r;

	memset(&r, 0, sizeof(r));
	r.version = KEEPER_VERSION;
	r.op = op;
	if (id)
		snprintf(r.id, sizeof(r.id), "%s", id);
	return r;
}

int keeper_client_set_name(char *field, size_t size, const char *what, const char *value,
			   struct err *err)
{
	size_t n = strlen(value);

	if (n >= size)
		return err_set(err, ERR_INVALID, "%s: longer than %zu bytes", what, size - 1);
	memcpy(field, value, n + 1);
	return 0;
}

int keeper_client_set_layers(char (*fields)[KEEPER_ID_SIZE], uint32_t *ret_n,
			     const char *const *names, size_t n, struct err *err)
{
	if (n > KEEPER_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "at most %d layers are supported",
			       KEEPER_LAYERS_MAX);
	for (size_t i = 0; i < n; i++)
		if (keeper_client_set_name(fields[i], KEEPER_ID_SIZE, "layer", names[i], err) < 0)
			return -1;
	*ret_n = (uint32_t)n;
	return 0;
}

static int set_refusal(const struct keeper_reply *r, struct err *err)
{
	err_set(err, (enum err_code)r->code, "%s", r->msg);
	err->sys = r->sys;
	return -1;
}

void keeper_client_set_wait(struct keeper_client *k, struct keeper_client_wait wait)
{
	k->wait = wait;
}

void keeper_client_set_monitor(struct keeper_client *k, atomic_int_least64_t *since)
{
	k->monitor = since;
	*since = k->owing_since;
}

void keeper_client_describe_silence(int64_t silent_ms, char *ret, size_t size)
{
	time_t since = (time_t)((clock_wall_ms() - silent_ms) / 1000);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&since, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(ret, size,
		 "lodge-keeper has not answered since %s (%lld s): it is stopped or waits for a "
		 "disk; check the disk, or kill lodge-keeper and another is started",
		 when, (long long)silent_ms / 1000);
}

static void discard_reply(void *arg, const struct keeper_reply *reply, int fd,
			  const struct err *err)
{
	(void)arg;
	(void)reply;
	(void)err;
	if (fd >= 0)
		close(fd);
}

/* The caller's frame is about to go, and the reply may still come. */
static void abandon(struct keeper_client *k, const void *arg)
{
	for (struct keeper_call *w = k->head; w; w = w->next)
		if (w->arg == arg) {
			w->fn = discard_reply;
			w->arg = NULL;
		}
}

static int set_silent(const struct keeper_client *k, struct err *err)
{
	char text[sizeof(err->msg)];

	keeper_client_describe_silence(clock_mono_ms() - k->owing_since, text, sizeof(text));
	err_set(err, ERR_UNAVAILABLE, "%s", text);
	err->sys = KEEPER_SILENT;
	return -1;
}

/* Until the keeper counts as silent; -1: for ever. */
static int wait_ms(const struct keeper_client *k)
{
	int64_t end = k->owing_since + k->wait.silence_ms, now = clock_mono_ms();

	if (!k->wait.silence_ms)
		return -1;
	if (end < k->wait.until)
		end = k->wait.until;
	return end > now ? (int)(end - now) : 0;
}

static bool is_over(const struct keeper_client *k, const bool *done)
{
	return done ? *done : !k->head;
}

int keeper_client_wait(struct keeper_client *k, const bool *done, const void *arg, struct err *err)
{
	/* A child of the keeper can hold its socket open after the keeper died. */
	struct pollfd p[] = { { .fd = k->fd, .events = POLLIN },
			      { .fd = k->pidfd, .events = POLLIN } };
	struct err why;

	while (!is_over(k, done)) {
		p[0].revents = p[1].revents = 0;
		if (poll(p, 2, wait_ms(k)) < 0 && errno != EINTR) {
			abandon(k, arg);
			return err_sys(err, errno, "poll");
		}
		if (keeper_client_dispatch(k, err) < 0 && !is_over(k, done))
			return -1;
		if (is_over(k, done))
			break;
		if (p[1].revents && !p[0].revents) {
			describe_exit(k, &why);
			return end_connection(k, &why, err);
		}
		if (wait_ms(k) == 0) {
			abandon(k, arg);
			return set_silent(k, err);
		}
	}
	return 0;
}

int keeper_client_settle(struct keeper_client *k, struct err *err)
{
	return keeper_client_wait(k, NULL, NULL, err);
}

int keeper_client_call(struct keeper_client *k, const struct keeper_request *req, const int *fds,
		       size_t nfds, struct keeper_reply *ret, int *ret_fd, struct err *err)
{
	struct call c = { .fd = -1 };

	if (keeper_client_send(k, req, fds, nfds, on_reply, &c, err) < 0 ||
	    keeper_client_wait(k, &c.done, &c, err) < 0)
		return -1;
	if (c.err.code) {
		*err = c.err;
		return -1;
	}
	if (c.reply.code != ERR_NONE)
		return set_refusal(&c.reply, err);
	if (ret)
		*ret = c.reply;
	if (ret_fd)
		*ret_fd = c.fd;
	else if (c.fd >= 0)
		close(c.fd);
	return 0;
}

int keeper_client_enforcement(struct keeper_client *k, struct enforcement *ret, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_HELLO, NULL);
	struct keeper_reply reply;

	if (!k->enforcement.known) {
		if (keeper_client_call(k, &req, NULL, 0, &reply, NULL, err) < 0)
			return -1;
		k->enforcement.features = reply.features;
		snprintf(k->enforcement.disk_problem, sizeof(k->enforcement.disk_problem), "%.*s",
			 KEEPER_MSG_SIZE - 1, reply.msg);
		k->enforcement.known = true;
	}
	*ret = k->enforcement;
	return 0;
}

int keeper_client_features(struct keeper_client *k, unsigned *ret, struct err *err)
{
	struct enforcement f;

	if (keeper_client_enforcement(k, &f, err) < 0)
		return -1;
	*ret = f.features;
	return 0;
}

int keeper_client_pool(struct keeper_client *k, struct keeper_pool want,
		       struct keeper_pool_state *ret, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_POOL, NULL);
	struct keeper_reply reply;

	req.pool = want;
	if (keeper_client_call(k, &req, NULL, 0, &reply, NULL, err) < 0)
		return -1;
	if (ret)
		*ret = reply.pool;
	return 0;
}

int keeper_client_disk(struct keeper_client *k, uint64_t reserve_bytes, struct keeper_disk *ret,
		       struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_DISK, NULL);
	struct keeper_reply reply;

	req.disk.reserve_bytes = reserve_bytes;
	if (keeper_client_call(k, &req, NULL, 0, &reply, NULL, err) < 0)
		return -1;
	*ret = reply.disk;
	return 0;
}

struct list {
	bool done;
	int result;
	keeper_list_fn *fn;
	void *arg;
	struct err err;
};

static void on_listed(void *arg, const struct keeper_reply *r, int fd, const struct err *err)
{
	struct list *l = arg;

	(void)fd;
	l->done = !r || !r->id[0] || r->code != ERR_NONE;
	if (!r)
		l->err = *err;
	else if (r->code != ERR_NONE)
		set_refusal(r, &l->err);
	else if (!l->done && (r->what < KEEPER_IS_SANDBOX || r->what > KEEPER_IS_LAYER))
		err_set(&l->err, ERR_INTERNAL,
			"protocol error from lodge-keeper: neither a sandbox nor a layer");
	else if (!l->done && !l->result && !l->err.code)
		l->result = l->fn(l->arg, (enum keeper_what)r->what, r->id, r->pid);
}

int keeper_client_list(struct keeper_client *k, keeper_list_fn *fn, void *arg, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_LIST, NULL);
	struct list l = { .fn = fn, .arg = arg };

	if (keeper_client_send(k, &req, NULL, 0, on_listed, &l, err) < 0 ||
	    keeper_client_wait(k, &l.done, &l, err) < 0)
		return -1;
	if (l.err.code) {
		*err = l.err;
		return -1;
	}
	return l.result;
}
