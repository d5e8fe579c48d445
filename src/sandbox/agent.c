/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sock.h"

enum {
	PENDING_MAX = 1024,
	QUEUE_MAX = 64, /* messages that may wait for room in the socket */
	ANSWER_MAX = 16 * 1024, /* the largest honest answer is a PROC with 4 kB of argv */
	PARTS_MAX = 8,
	BATCH = 64, /* messages per dispatch: a guest that floods must not own the loop */
};

struct pending {
	struct pending *next;
	uint32_t req, type;
	agent_fn *fn;
	void *arg;
};

struct listener {
	struct listener *next;
	uint64_t exec;
	agent_event_fn *fn;
	void *arg;
};

struct queued {
	struct queued *next;
	size_t len, nfds;
	int fds[AGENT_FDS_MAX];
	char bytes[];
};

struct agent {
	int fd;
	uint32_t last_req;
	uint64_t last_exec;
	struct pending *pending, **pending_tail;
	size_t npending;
	struct listener *listeners;
	struct queued *queue, **queue_tail;
	size_t nqueued;
	struct err gone; /* set once the connection is over */
};

int agent_new(int fd, struct agent **ret, struct err *err)
{
	auto_close int own = fd;
	int flags = fcntl(fd, F_GETFL);
	struct agent *a;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_sys(err, errno, "connection to the sandbox");
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_sys(err, ENOMEM, "agent");
	a->fd = steal_fd(&own);
	a->pending_tail = &a->pending;
	a->queue_tail = &a->queue;
	*ret = a;
	return 0;
}

static void queued_free(struct queued *q)
{
	for (size_t i = 0; i < q->nfds; i++)
		close(q->fds[i]);
	free(q);
}

static void drop_queue(struct agent *a)
{
	while (a->queue) {
		struct queued *q = a->queue;

		a->queue = q->next;
		queued_free(q);
	}
	a->queue_tail = &a->queue;
	a->nqueued = 0;
}

/* Everybody who waits hears of it once; nobody is called again afterwards. */
static int end_connection(struct agent *a, const struct err *why, struct err *err)
{
	if (!a->gone.code)
		a->gone = *why;
	shutdown(a->fd, SHUT_RDWR);
	drop_queue(a);
	while (a->pending) {
		struct pending *p = a->pending;

		a->pending = p->next;
		if (p->fn)
			p->fn(p->arg, NULL, 0, -1, &a->gone);
		free(p);
	}
	a->pending_tail = &a->pending;
	a->npending = 0;
	while (a->listeners) {
		struct listener *l = a->listeners;

		a->listeners = l->next;
		l->fn(l->arg, NULL, &a->gone);
		free(l);
	}
	*err = a->gone;
	return -1;
}

void agent_free(struct agent *a)
{
	struct err why, ignored;

	if (!a)
		return;
	err_set(&why, ERR_UNAVAILABLE, "the connection to the sandbox was closed");
	end_connection(a, &why, &ignored);
	close(a->fd);
	free(a);
}

int agent_fd(const struct agent *a)
{
	return a->fd;
}

short agent_events(const struct agent *a)
{
	return a->queue ? POLLIN | POLLOUT : POLLIN;
}

bool agent_is_closed(const struct agent *a)
{
	return a->gone.code != ERR_NONE;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int enqueue(struct agent *a, const struct iovec *iov, size_t niov, const int *fds,
		   size_t nfds, struct err *err)
{
	struct queued *q;
	size_t len = 0;

	for (size_t i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (a->nqueued >= QUEUE_MAX)
		return err_set(err, ERR_LIMIT, "the sandbox does not take its messages");
	q = calloc(1, sizeof(*q) + len);
	if (!q)
		return err_sys(err, ENOMEM, "message to the sandbox");
	for (size_t i = 0; i < niov; i++) {
		memcpy(q->bytes + q->len, iov[i].iov_base, iov[i].iov_len);
		q->len += iov[i].iov_len;
	}
	for (; q->nfds < nfds; q->nfds++) {
		q->fds[q->nfds] = fcntl(fds[q->nfds], F_DUPFD_CLOEXEC, 3);
		if (q->fds[q->nfds] < 0) {
			int e = errno;

			queued_free(q);
			return err_sys(err, e, "message to the sandbox");
		}
	}
	*a->queue_tail = q;
	a->queue_tail = &q->next;
	a->nqueued++;
	return 0;
}

static int transmit(struct agent *a, const struct iovec *iov, size_t niov, const int *fds,
		    size_t nfds, struct err *err)
{
	int r = a->queue ? -EAGAIN : sock_sendv(a->fd, iov, niov, fds, nfds);

	if (r == -EAGAIN)
		return enqueue(a, iov, niov, fds, nfds, err);
	if (r == -EPIPE || r == -ECONNRESET)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox is gone");
	if (r < 0)
		return err_sys(err, -r, "message to the sandbox");
	return 0;
}

static int flush(struct agent *a)
{
	while (a->queue) {
		struct queued *q = a->queue;
		int r = sock_send(a->fd, q->bytes, q->len, q->fds, q->nfds);

		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		a->queue = q->next;
		if (!a->queue)
			a->queue_tail = &a->queue;
		a->nqueued--;
		queued_free(q);
	}
	return 0;
}

static struct pending *remember(struct agent *a, enum agent_type type, agent_fn *fn, void *arg)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->req = ++a->last_req ? a->last_req : ++a->last_req; /* 0 is for events */
	p->type = type;
	p->fn = fn;
	p->arg = arg;
	return p;
}

int agent_send(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, agent_fn *fn, void *arg, struct err *err)
{
	struct agent_hdr hdr = { .type = type };
	struct iovec iov[PARTS_MAX + 1] = { { &hdr, sizeof(hdr) } };
	struct pending *p;
	size_t len = 0;

	if (a->gone.code) {
		*err = a->gone;
		return -1;
	}
	if (nparts > PARTS_MAX || nfds > AGENT_FDS_MAX)
		return err_set(err, ERR_INTERNAL, "message with too many parts");
	for (size_t i = 0; i < nparts; i++) {
		memcpy(&iov[i + 1].iov_base, &parts[i].data, sizeof(void *));
		iov[i + 1].iov_len = parts[i].len;
		len += parts[i].len;
	}
	if (len > AGENT_MSG_MAX - sizeof(hdr))
		return err_set(err, ERR_LIMIT,
			       "command, environment and arguments are too long: %d bytes together "
			       "at most",
			       AGENT_MSG_MAX);
	if (a->npending >= PENDING_MAX)
		return err_set(err, ERR_LIMIT, "too many requests wait for the sandbox");
	hdr.len = (uint32_t)len;
	if (type == AGENT_CONSUMED)
		return transmit(a, iov, nparts + 1, fds, nfds, err);
	p = remember(a, type, fn, arg);
	if (!p)
		return err_sys(err, ENOMEM, "agent");
	hdr.req = p->req;
	if (transmit(a, iov, nparts + 1, fds, nfds, err) < 0) {
		free(p);
		return -1;
	}
	*a->pending_tail = p;
	a->pending_tail = &p->next;
	a->npending++;
	return 0;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static struct pending *find_pending(struct agent *a, uint32_t req, bool take)
{
	for (struct pending **at = &a->pending; *at; at = &(*at)->next) {
		struct pending *p = *at;

		if (p->req != req)
			continue;
		if (take) {
			*at = p->next;
			if (!*at)
				a->pending_tail = at;
			a->npending--;
		}
		return p;
	}
	return NULL;
}

/* The sentence of an AGENT_ERROR, made fit for a terminal: a guest may have written it. */
void agent_clean_text(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static void error_of(const void *msg, size_t len, struct err *err)
{
	struct agent_error e;
	const char *text = agent_msg_string(msg, len, 0);

	memcpy(&e, (const char *)msg + sizeof(struct agent_hdr), sizeof(e));
	err_set(err,
		e.code > ERR_NONE && e.code <= ERR_INTERNAL ? (enum err_code)e.code : ERR_INTERNAL,
		"%s", text ? text : "refused");
	err->sys = e.sys > 0 && e.sys < 4096 ? e.sys : 0;
	agent_clean_text(err->msg);
}

static const char *answer(struct agent *a, const struct agent_hdr *hdr, const void *msg, size_t len,
			  int *fd)
{
	/* A listing goes on until its OK (or error). */
	struct pending *p = find_pending(a, hdr->req, hdr->type != AGENT_PROC);
	struct err refused = { 0 };

	if (!p)
		return "an answer nobody waits for";
	if (hdr->type == AGENT_PROC && p->type != AGENT_LIST)
		p = find_pending(a, hdr->req, true);
	if (hdr->type == AGENT_ERROR)
		error_of(msg, len, &refused);
	if (p->fn) {
		agent_fn *fn = p->fn;
		void *arg = p->arg;

		if (hdr->type != AGENT_PROC || p->type != AGENT_LIST)
			free(p);
		if (refused.code)
			fn(arg, NULL, 0, -1, &refused);
		else
			fn(arg, msg, len, steal_fd(fd), NULL);
	} else if (hdr->type != AGENT_PROC || p->type != AGENT_LIST) {
		free(p);
	}
	return NULL;
}

static const char *event(struct agent *a, const struct agent_hdr *hdr, const void *msg)
{
	struct agent_ref ref;

	if (hdr->type != AGENT_OUTPUT && hdr->type != AGENT_EXIT)
		return "not an event";
	memcpy(&ref, (const char *)msg + sizeof(*hdr), sizeof(ref)); /* both begin with it */
	for (struct listener *l = a->listeners; l; l = l->next) {
		if (l->exec == ref.exec) {
			l->fn(l->arg, msg, NULL);
			return NULL;
		}
	}
	return NULL; /* of an exec given up meanwhile */
}

static bool fd_is_harmless(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static const char *handle(struct agent *a, const void *msg, size_t len, int *fd, size_t nfds)
{
	const char *problem = agent_msg_problem(msg, len, nfds, false);
	struct agent_hdr hdr;

	if (problem)
		return problem;
	memcpy(&hdr, msg, sizeof(hdr));
	if (*fd >= 0 && !fd_is_harmless(*fd))
		return "a descriptor that is neither a file nor a directory";
	return hdr.req ? answer(a, &hdr, msg, len, fd) : event(a, &hdr, msg);
}

/* 1: one message handled; 0: nothing there. */
static int receive_one(struct agent *a, struct err *err)
{
	_Alignas(8) char buf[ANSWER_MAX];
	auto_close int fd = -1;
	size_t nfds = 0;
	int n = sock_recv(a->fd, buf, sizeof(buf), &fd, 1, &nfds);
	const char *problem;
	struct err why;

	if (n == -EAGAIN)
		return 0;
	if (n == 0 || n == -ECONNRESET) {
		err_set(&why, ERR_UNAVAILABLE, "the sandbox is gone");
		return end_connection(a, &why, err);
	}
	problem =
		n < 0 ? "too long, or too many descriptors" : handle(a, buf, (size_t)n, &fd, nfds);
	if (problem) {
		err_set(&why, ERR_UNAVAILABLE, "the sandbox talks nonsense: %s", problem);
		return end_connection(a, &why, err);
	}
	return 1;
}

int agent_dispatch(struct agent *a, struct err *err)
{
	struct err why;
	int r = 1;

	if (a->gone.code) {
		*err = a->gone;
		return -1;
	}
	for (int i = 0; i < BATCH && r > 0; i++)
		r = receive_one(a, err);
	if (r < 0)
		return -1;
	/* After reading: what the peer said last must not be lost when it is gone. */
	if (!a->gone.code && flush(a) < 0) {
		err_set(&why, ERR_UNAVAILABLE, "the sandbox is gone");
		return end_connection(a, &why, err);
	}
	return 0;
}

void agent_cancel(struct agent *a, const void *arg)
{
	for (struct pending *p = a->pending; p; p = p->next)
		if (p->arg == arg)
			p->fn = NULL;
}

/* ---- execs ----------------------------------------------------------------------------------- */

uint64_t agent_next_exec(struct agent *a)
{
	return ++a->last_exec;
}

int agent_listen(struct agent *a, uint64_t exec, agent_event_fn *fn, void *arg, struct err *err)
{
	struct listener *l;

	if (a->gone.code) {
		*err = a->gone;
		return -1;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_sys(err, ENOMEM, "agent");
	*l = (struct listener){ .next = a->listeners, .exec = exec, .fn = fn, .arg = arg };
	a->listeners = l;
	return 0;
}

void agent_unlisten(struct agent *a, uint64_t exec)
{
	for (struct listener **at = &a->listeners; *at; at = &(*at)->next) {
		struct listener *l = *at;

		if (l->exec == exec) {
			*at = l->next;
			free(l);
			return;
		}
	}
}

/* ---- blocking -------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int agent_step(struct agent *a, int timeout_ms, struct err *err)
{
	struct pollfd p = { .fd = a->fd, .events = agent_events(a) };

	if (poll(&p, 1, timeout_ms) < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	return agent_dispatch(a, err);
}

int agent_wait(struct agent *a, const bool *done, int timeout_ms, struct err *err)
{
	int64_t end = timeout_ms < 0 ? 0 : now_ms() + timeout_ms;

	while (!*done) {
		int64_t left = timeout_ms < 0 ? -1 : end - now_ms();

		if (timeout_ms >= 0 && left <= 0)
			return err_set(err, ERR_TIMEOUT, "the sandbox did not answer in time");
		if (agent_step(a, (int)left, err) < 0)
			return *done ? 0 : -1;
	}
	return 0;
}

struct call {
	bool done;
	enum agent_type want;
	struct agent_answer ans;
	struct err err;
};

static void on_answer(void *arg, const void *msg, size_t len, int fd, const struct err *err)
{
	auto_close int own = fd;
	struct call *c = arg;
	struct agent_hdr hdr;

	c->done = true;
	if (!msg) {
		c->err = *err;
		return;
	}
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type != c->want) {
		err_set(&c->err, ERR_UNAVAILABLE, "the sandbox answered something else");
		return;
	}
	c->ans.msg = malloc(len);
	if (!c->ans.msg) {
		err_sys(&c->err, ENOMEM, "answer of the sandbox");
		return;
	}
	memcpy(c->ans.msg, msg, len);
	c->ans.len = len;
	c->ans.fd = steal_fd(&own);
}

int agent_call(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, enum agent_type want, struct agent_answer *ret,
	       struct err *err)
{
	struct call c = { .want = want, .ans.fd = -1 };

	if (agent_send(a, type, parts, nparts, fds, nfds, on_answer, &c, err) < 0)
		return -1;
	if (agent_wait(a, &c.done, -1, err) < 0) {
		agent_cancel(a, &c);
		return -1;
	}
	if (!c.ans.msg) {
		*err = c.err;
		return -1;
	}
	if (ret)
		*ret = c.ans;
	else
		agent_answer_fini(&c.ans);
	return 0;
}

void agent_answer_fini(struct agent_answer *ans)
{
	if (ans->fd >= 0)
		close(ans->fd);
	free(ans->msg);
	*ans = (struct agent_answer){ .fd = -1 };
}

int agent_hello(struct agent *a, struct agent_hello *ret, struct err *err)
{
	struct agent_answer ans;
	struct agent_hello h;

	if (agent_call(a, AGENT_HELLO, NULL, 0, NULL, 0, AGENT_HELLOR, &ans, err) < 0)
		return -1;
	memcpy(&h, (const char *)ans.msg + sizeof(struct agent_hdr), sizeof(h));
	agent_answer_fini(&ans);
	if (h.version != AGENT_VERSION)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox speaks version %u, not %u",
			       h.version, AGENT_VERSION);
	if (h.last_exec > a->last_exec)
		a->last_exec = h.last_exec;
	if (ret)
		*ret = h;
	return 0;
}
