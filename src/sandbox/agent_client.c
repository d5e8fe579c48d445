/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/agent_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd_message.h"

enum {
	PENDING_MAX = 1024,
	QUEUE_MAX = 64, /* messages queued while the socket is full */
	REPLY_MAX = 16 * 1024, /* the largest valid reply is a PROC with 4 kB of argv */
	PARTS_MAX = 8,
	BATCH_MAX = 64, /* messages per dispatch: a flooding guest does not starve the others */
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
	bool counted; /* in nqueued */
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
	struct err closed; /* why the connection ended; code 0 while it is open */
	_Atomic(const char *) aborted; /* by agent_abort(), for this reason */
	int timeout_ms; /* of agent_call() */
};

int agent_new(int fd, struct agent **ret, struct err *err)
{
	auto_close int own = fd;
	int r = fd_message_nonblock(fd);
	struct agent *a;

	if (r < 0)
		return err_sys(err, -r, "connect to the sandbox");
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_sys(err, ENOMEM, "agent");
	a->fd = steal_fd(&own);
	a->timeout_ms = -1;
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

/* Calls every callback once with the error. None is called again afterwards. */
static int end_connection(struct agent *a, const char *why, const char *detail, struct err *err)
{
	if (!a->closed.code)
		err_set(&a->closed, ERR_UNAVAILABLE, "%s%s", why, detail);
	shutdown(a->fd, SHUT_RDWR);
	drop_queue(a);
	while (a->pending) {
		struct pending *p = a->pending;

		a->pending = p->next;
		if (p->fn)
			p->fn(p->arg, NULL, 0, NULL, &a->closed);
		free(p);
	}
	a->pending_tail = &a->pending;
	a->npending = 0;
	while (a->listeners) {
		struct listener *l = a->listeners;

		a->listeners = l->next;
		l->fn(l->arg, NULL, &a->closed);
		free(l);
	}
	*err = a->closed;
	return -1;
}

static int end_lost(struct agent *a, struct err *err)
{
	const char *why = a->aborted;

	return end_connection(a, why ? why : AGENT_LOST, "", err);
}

void agent_free(struct agent *a)
{
	struct err ignored;

	if (!a)
		return;
	end_connection(a, "connection to the sandbox was closed", "", &ignored);
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

void agent_abort(struct agent *a, const char *why)
{
	a->aborted = why;
	shutdown(a->fd, SHUT_RDWR);
}

bool agent_is_closed(const struct agent *a)
{
	return a->closed.code != ERR_NONE;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Messages that release output are never refused: a command would wait forever for a reader that is
 * gone. Their number is bounded by the handles, because only the last CONSUMED of each is queued.
 */
static bool releases_output(uint32_t type)
{
	return type == AGENT_CONSUMED || type == AGENT_DETACH || type == AGENT_FORGET;
}

static bool concerns_exec(const struct queued *q, uint64_t exec)
{
	return q->len >= sizeof(struct agent_hdr) + sizeof(exec) &&
	       !memcmp(q->bytes + sizeof(struct agent_hdr), &exec, sizeof(exec));
}

/* Replaces an AGENT_CONSUMED that is still queued, unless another message about the same command
 * follows it. */
static bool enqueue_consumed(struct agent *a, const struct agent_offsets *o)
{
	struct queued *last = NULL;
	struct agent_hdr hdr;

	for (struct queued *q = a->queue; q; q = q->next)
		if (concerns_exec(q, o->exec))
			last = q;
	if (!last)
		return false;
	memcpy(&hdr, last->bytes, sizeof(hdr));
	if (hdr.type != AGENT_CONSUMED)
		return false;
	memcpy(last->bytes + sizeof(hdr), o, sizeof(*o));
	return true;
}

static int enqueue(struct agent *a, const struct iovec *iov, size_t niov, const int *fds,
		   size_t nfds, struct err *err)
{
	struct agent_hdr hdr;
	struct queued *q;
	size_t len = 0;

	memcpy(&hdr, iov[0].iov_base, sizeof(hdr));
	if (hdr.type == AGENT_CONSUMED && niov == 2 &&
	    iov[1].iov_len == sizeof(struct agent_offsets) && enqueue_consumed(a, iov[1].iov_base))
		return 0;
	for (size_t i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (a->nqueued >= QUEUE_MAX && !releases_output(hdr.type))
		return err_set(err, ERR_LIMIT,
			       "sandbox is not reading requests (more than %d queued)", QUEUE_MAX);
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
	q->counted = !releases_output(hdr.type);
	a->nqueued += q->counted;
	*a->queue_tail = q;
	a->queue_tail = &q->next;
	return 0;
}

static int send_or_queue(struct agent *a, const struct iovec *iov, size_t niov, const int *fds,
			 size_t nfds, struct err *err)
{
	int r = a->queue ? -EAGAIN : fd_message_sendv(a->fd, iov, niov, fds, nfds);

	if (r == -EAGAIN)
		return enqueue(a, iov, niov, fds, nfds, err);
	if (r == -EPIPE || r == -ECONNRESET) {
		err_set(err, ERR_UNAVAILABLE, AGENT_LOST);
		err->sys = EPIPE;
		return -1;
	}
	return r < 0 ? err_sys(err, -r, "message to the sandbox") : 0;
}

static int flush_queue(struct agent *a)
{
	while (a->queue) {
		struct queued *q = a->queue;
		int r = fd_message_send(a->fd, q->bytes, q->len, q->fds, q->nfds);

		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		a->queue = q->next;
		if (!a->queue)
			a->queue_tail = &a->queue;
		a->nqueued -= q->counted;
		queued_free(q);
	}
	return 0;
}

static struct pending *new_pending(struct agent *a, enum agent_type type, agent_fn *fn, void *arg)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->req = ++a->last_req ? a->last_req : ++a->last_req; /* req 0 marks events */
	p->type = type;
	p->fn = fn;
	p->arg = arg;
	return p;
}

static int fail_too_long(struct err *err)
{
	err_set(err, ERR_LIMIT,
		"command, arguments and environment exceed %d bytes together; pass the data in a "
		"file",
		AGENT_MSG_MAX);
	err->sys = E2BIG;
	return -1;
}

int agent_send(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, agent_fn *fn, void *arg, struct err *err)
{
	struct agent_hdr hdr = { .type = type };
	struct iovec iov[PARTS_MAX + 1] = { { &hdr, sizeof(hdr) } };
	struct pending *p;
	size_t len = 0;

	if (a->closed.code) {
		*err = a->closed;
		return -1;
	}
	if (nparts > PARTS_MAX || nfds > AGENT_FDS_MAX)
		return err_set(err, ERR_INTERNAL, "too many parts in a message to the sandbox");
	for (size_t i = 0; i < nparts; i++) {
		memcpy(&iov[i + 1].iov_base, &parts[i].data, sizeof(void *));
		iov[i + 1].iov_len = parts[i].len;
		len += parts[i].len;
	}
	if (len > AGENT_MSG_MAX - sizeof(hdr))
		return fail_too_long(err);
	if (a->npending >= PENDING_MAX && !releases_output(type))
		return err_set(err, ERR_LIMIT, "more than %d requests to the sandbox are pending",
			       PENDING_MAX);
	hdr.len = (uint32_t)len;
	if (type == AGENT_CONSUMED)
		return send_or_queue(a, iov, nparts + 1, fds, nfds, err);
	p = new_pending(a, type, fn, arg);
	if (!p)
		return err_sys(err, ENOMEM, "agent");
	hdr.req = p->req;
	if (send_or_queue(a, iov, nparts + 1, fds, nfds, err) < 0) {
		free(p);
		return -1;
	}
	*a->pending_tail = p;
	a->pending_tail = &p->next;
	a->npending++;
	return 0;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* The pointer to the request, or to NULL. */
static struct pending **find_pending(struct agent *a, uint32_t req)
{
	struct pending **at = &a->pending;

	while (*at && (*at)->req != req)
		at = &(*at)->next;
	return at;
}

static void remove_pending(struct agent *a, struct pending **at)
{
	struct pending *p = *at;

	*at = p->next;
	if (!*at)
		a->pending_tail = at;
	a->npending--;
	free(p);
}

int agent_protocol_error(struct err *err, const char *problem)
{
	return err_set(err, ERR_UNAVAILABLE, "protocol error from sandbox: %s", problem);
}

void agent_clean_text(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static void read_error(const void *msg, size_t len, struct err *err)
{
	struct agent_error e;
	const char *text = agent_msg_string(msg, len, 0);

	memcpy(&e, (const char *)msg + sizeof(struct agent_hdr), sizeof(e));
	err_set(err,
		e.code > ERR_NONE && e.code <= ERR_INTERNAL ? (enum err_code)e.code : ERR_INTERNAL,
		"%s", text ? text : "request refused");
	err->sys = e.sys > 0 && e.sys < 4096 ? e.sys : 0;
	agent_clean_text(err->msg);
}

static const char *handle_reply(struct agent *a, const struct agent_hdr *hdr, const void *msg,
				size_t len, int *fds)
{
	struct pending **at = find_pending(a, hdr->req), p;
	struct err refused;

	if (!*at)
		return "reply to an unknown request";
	p = **at;
	/* A listing ends with OK or ERROR. */
	if (hdr->type != AGENT_PROC || p.type != AGENT_LIST)
		remove_pending(a, at);
	if (hdr->type == AGENT_ERROR)
		read_error(msg, len, &refused);
	if (p.fn && hdr->type == AGENT_ERROR)
		p.fn(p.arg, NULL, 0, NULL, &refused);
	else if (p.fn)
		p.fn(p.arg, msg, len, fds, NULL);
	return NULL;
}

static const char *handle_event(struct agent *a, const struct agent_hdr *hdr, const void *msg)
{
	struct agent_ref ref;

	if (hdr->type != AGENT_OUTPUT && hdr->type != AGENT_EXIT)
		return "not an event type";
	/* both structs start with it */
	memcpy(&ref, (const char *)msg + sizeof(*hdr), sizeof(ref));
	for (struct listener *l = a->listeners; l; l = l->next)
		if (l->exec == ref.exec) {
			l->fn(l->arg, msg, NULL);
			break;
		}
	return NULL; /* not found: its handle was freed */
}

static bool is_file_or_dir(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

/* Reading a log must never fail or block: it has to be in memory, with its size sealed. */
static bool is_sealed_log(int fd, uint64_t log_bytes)
{
	const int sealed = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);
	struct stat st;

	return seals >= 0 && (seals & sealed) == sealed && mode >= 0 &&
	       (mode & O_ACCMODE) != O_WRONLY && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == AGENT_LOG_HEAD + log_bytes;
}

static const char *check_fds(uint32_t type, const void *msg, const int *fds, size_t nfds)
{
	struct agent_logs logs;

	for (size_t i = 0; i < nfds; i++) {
		if (!is_file_or_dir(fds[i]))
			return "descriptor is neither a regular file nor a directory";
		if (type != AGENT_LOGR)
			continue;
		memcpy(&logs, (const char *)msg + sizeof(struct agent_hdr), sizeof(logs));
		if (!is_sealed_log(fds[i], logs.log_bytes))
			return "descriptor is not a sealed log";
	}
	return NULL;
}

static const char *handle_message(struct agent *a, const void *msg, size_t len, int *fds,
				  size_t nfds)
{
	const char *problem = agent_msg_problem(msg, len, nfds, false);
	struct agent_hdr hdr;

	if (problem)
		return problem;
	memcpy(&hdr, msg, sizeof(hdr));
	problem = check_fds(hdr.type, msg, fds, nfds);
	if (problem)
		return problem;
	return hdr.req ? handle_reply(a, &hdr, msg, len, fds) : handle_event(a, &hdr, msg);
}

/* 1: one message handled; 0: none available. */
static int receive_one(struct agent *a, struct err *err)
{
	_Alignas(8) char buf[REPLY_MAX];
	int fds[AGENT_REPLY_FDS] = { -1, -1 };
	size_t nfds = 0;
	int n = fd_message_recv(a->fd, buf, sizeof(buf), fds, AGENT_REPLY_FDS, &nfds);
	const char *problem;

	if (n == -EAGAIN)
		return 0;
	if (n == 0 || n == -ECONNRESET)
		return end_lost(a, err);
	problem = n < 0 ? "message too long, or too many descriptors"
			: handle_message(a, buf, (size_t)n, fds, nfds);
	for (size_t i = 0; i < nfds; i++)
		close_autop(&fds[i]);
	return problem ? end_connection(a, "protocol error from sandbox: ", problem, err) : 1;
}

int agent_dispatch(struct agent *a, struct err *err)
{
	int r = 1;

	if (a->closed.code) {
		*err = a->closed;
		return -1;
	}
	for (int i = 0; i < BATCH_MAX && r > 0; i++)
		r = receive_one(a, err);
	if (r < 0)
		return -1;
	/* After reading, so that the last messages of a closed peer are not lost. */
	if (!a->closed.code && flush_queue(a) < 0)
		return end_lost(a, err);
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

void agent_number_from(struct agent *a, uint64_t base)
{
	if (base > a->last_exec)
		a->last_exec = base;
}

int agent_listen(struct agent *a, uint64_t exec, agent_event_fn *fn, void *arg, struct err *err)
{
	struct listener *l;

	if (a->closed.code) {
		*err = a->closed;
		return -1;
	}
	for (l = a->listeners; l; l = l->next)
		if (l->exec == exec)
			return err_set(err, ERR_CONFLICT, "command %llu already has a handle",
				       (unsigned long long)exec);
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

void agent_set_timeout(struct agent *a, int ms)
{
	a->timeout_ms = ms;
}

int agent_timeout(const struct agent *a)
{
	return a->timeout_ms;
}
