/* SPDX-License-Identifier: Apache-2.0 */
/* One request at a time: what is listed here is done, everything else refused. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/sock.h"

enum {
	QUIET_MS = 3, /* things are made ahead only after this long without a request */
	TRASH_RETRY_MS = 2, /* processes of a killed sandbox need a moment to go */
	TRASH_SLOW_MS = 50,
	DRAIN_MS = 5000,
};

struct exchange {
	const struct keeper_request *req;
	const int *fds;
	struct keeper_reply reply;
	int fd; /* goes out with the reply; -1: none */
	int sock;
};

static struct box *need(struct keeper *k, const char *id, struct err *err)
{
	struct box *b = box_find(&k->table, id);

	if (!b)
		err_set(err, ERR_NOT_FOUND, "no sandbox %s", id);
	return b;
}

static int do_hello(struct keeper *k, struct exchange *x, struct err *err)
{
	(void)err;
	x->reply.features = k->features;
	if (shelf_has_limit(&k->shelf))
		x->reply.features |= KEEPER_HAS_DISK_LIMIT;
	return 0;
}

static int do_create(struct keeper *k, struct exchange *x, struct err *err)
{
	return keeper_create(k, x->req->id, &x->req->create, x->fds, &x->reply, &x->fd, err);
}

static int do_connect(struct keeper *k, struct exchange *x, struct err *err)
{
	struct box *b = need(k, x->req->id, err);

	if (!b || keeper_connect(k, b->id, &x->fd, err) < 0)
		return -1;
	x->reply.pid = b->pid;
	return 0;
}

static int do_destroy(struct keeper *k, struct exchange *x, struct err *err)
{
	struct box *b = box_find(&k->table, x->req->id);

	x->reply.found = b != NULL;
	return b ? keeper_destroy(k, b, err) : 0;
}

static int do_freeze(struct keeper *k, struct exchange *x, struct err *err)
{
	struct box *b = need(k, x->req->id, err);

	return b ? cgroup_freeze(&k->cgroups, b->group, x->req->op == KEEPER_FREEZE, err) : -1;
}

static int do_stats(struct keeper *k, struct exchange *x, struct err *err)
{
	struct box *b = need(k, x->req->id, err);
	char entry[KEEPER_ID_SIZE + 4];

	if (!b || cgroup_stats(&k->cgroups, b->group, &x->reply.stats, err) < 0)
		return -1;
	x->reply.stats.disk_bytes = UINT64_MAX;
	if (b->store != KEEPER_STORE_DISK)
		return 0;
	snprintf(entry, sizeof(entry), "s-%s", b->id);
	x->reply.stats.disk_bytes = shelf_usage(&k->shelf, entry);
	x->reply.stats.disk_full = shelf_is_full(&k->shelf, entry);
	return 0;
}

static int do_limits(struct keeper *k, struct exchange *x, struct err *err)
{
	struct box *b = need(k, x->req->id, err);
	char entry[KEEPER_ID_SIZE + 4];

	if (!b || cgroup_set_limits(&k->cgroups, b->group, &x->req->limits, true, err) < 0)
		return -1;
	if (b->store != KEEPER_STORE_DISK || !k->shelf.ops || !k->shelf.ops->has_limit)
		return 0;
	snprintf(entry, sizeof(entry), "s-%s", b->id);
	return shelf_limit(&k->shelf, entry, x->req->limits.disk_bytes, err);
}

static void list_one(struct box *b, void *arg)
{
	struct exchange *x = arg;
	struct keeper_reply r = { .version = KEEPER_VERSION, .op = KEEPER_LIST, .pid = b->pid };

	memcpy(r.id, b->id, sizeof(r.id));
	(void)sock_send(x->sock, &r, sizeof(r), NULL, 0);
}

static int do_list(struct keeper *k, struct exchange *x, struct err *err)
{
	(void)err;
	box_each(&k->table, list_one, x);
	memset(x->reply.id, 0, sizeof(x->reply.id));
	return 0;
}

static int do_pool(struct keeper *k, struct exchange *x, struct err *err)
{
	if (keeper_set_pool(k, &x->req->pool, err) < 0)
		return -1;
	x->reply.pool = (struct keeper_pool_state){ .ready = (uint32_t)k->nslots,
						    .min = k->pool.min,
						    .target = k->pool.target,
						    .max = k->pool.max,
						    .hits = k->hits,
						    .misses = k->misses };
	return 0;
}

static int do_seal(struct keeper *k, struct exchange *x, struct err *err)
{
	struct box *b = need(k, x->req->id, err);

	return b ? keeper_seal_template(k, b, x->req->template, err) : -1;
}

static int do_drop_template(struct keeper *k, struct exchange *x, struct err *err)
{
	return keeper_drop_template(k, x->req->template, err);
}

typedef int op_fn(struct keeper *k, struct exchange *x, struct err *err);

static op_fn *const ops[KEEPER_OP_MAX] = {
	[KEEPER_HELLO] = do_hello,	  [KEEPER_CREATE] = do_create,
	[KEEPER_CONNECT] = do_connect,	  [KEEPER_DESTROY] = do_destroy,
	[KEEPER_FREEZE] = do_freeze,	  [KEEPER_THAW] = do_freeze,
	[KEEPER_STATS] = do_stats,	  [KEEPER_LIMITS] = do_limits,
	[KEEPER_LIST] = do_list,	  [KEEPER_POOL] = do_pool,
	[KEEPER_TEMPLATE_SEAL] = do_seal, [KEEPER_TEMPLATE_DROP] = do_drop_template,
};

/* False when it could not be said: an engine that waits for ever is worse than one that is told. */
static bool answer(struct keeper *k, struct exchange *x, const char *problem)
{
	struct err err = { 0 };
	int r;

	x->reply.version = KEEPER_VERSION;
	if (problem) {
		r = err_set(&err, ERR_INVALID, "%s", problem);
	} else {
		x->reply.op = x->req->op;
		memcpy(x->reply.id, x->req->id, sizeof(x->reply.id));
		r = ops[x->req->op](k, x, &err);
	}
	if (r < 0) {
		x->reply.code = err.code;
		x->reply.sys = err.sys;
		snprintf(x->reply.msg, sizeof(x->reply.msg), "%s", err.msg);
	}
	r = sock_send(x->sock, &x->reply, sizeof(x->reply), &x->fd, x->fd >= 0);
	if (x->fd >= 0)
		close(x->fd);
	return r == 0;
}

/* False when the engine is gone. */
static bool serve_one(struct keeper *k, int sock)
{
	static union {
		struct keeper_request req;
		char bytes[sizeof(struct keeper_request) + 1];
	} in;
	int fds[KEEPER_BINDS_MAX];
	size_t nfds = 0;
	ssize_t n = sock_recv(sock, &in, sizeof(in), fds, ARRAY_LEN(fds), &nfds);
	struct exchange x = { .req = &in.req, .fds = fds, .fd = -1, .sock = sock };
	bool said;

	if (n == -EINTR || n == -EAGAIN || n == -ENOMEM || n == -ENOBUFS)
		return true;
	if (n <= 0 && n != -EMSGSIZE && n != -EBADMSG)
		return false;
	said = answer(k, &x,
		      n < 0 ? "message too long or with too many descriptors"
			    : keeper_request_problem(&in, (size_t)n, nfds));
	for (size_t i = 0; i < nfds; i++)
		close(fds[i]);
	return said;
}

static int timeout_of(const struct keeper *k, bool more, int trash_wait)
{
	if (k->trash_count)
		return trash_wait;
	return more ? QUIET_MS : -1;
}

static bool signalled(int sigfd)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(sigfd, &info, sizeof(info)) == sizeof(info))
		stop = stop || info.ssi_signo != SIGCHLD;
	keeper_reap();
	return stop;
}

static void destroy_one(struct box *b, void *arg)
{
	struct err err;

	(void)keeper_destroy(arg, b, &err);
}

/* Slots go in any case; what the trash still holds is finished, within reason. */
static void drain(struct keeper *k)
{
	k->draining = true;
	while (k->nslots > 0)
		keeper_slot_free(k, k->slots[--k->nslots], true);
	if (k->oneshot)
		box_each(&k->table, destroy_one, k);
	for (int ms = 0; ms < DRAIN_MS && !keeper_empty_trash(k); ms++)
		usleep(1000);
	while (k->nparts > 0)
		keeper_parts_drop(k, &k->parts[--k->nparts]);
}

void keeper_serve(struct keeper *k, int sock)
{
	sigset_t set;
	auto_close int sigfd = -1;
	bool more = true;
	int trash_wait = TRASH_RETRY_MS;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	while (1) {
		struct pollfd p[2] = { { .fd = sock, .events = POLLIN },
				       { .fd = sigfd, .events = POLLIN } };
		int n = poll(p, ARRAY_LEN(p), timeout_of(k, more, trash_wait));

		if (n < 0 && errno != EINTR)
			break;
		if (p[1].revents && signalled(sigfd))
			break;
		if (p[0].revents) {
			if (!serve_one(k, sock))
				break;
			more = true;
			trash_wait = TRASH_RETRY_MS;
			continue;
		}
		if (k->trash_count && !keeper_empty_trash(k))
			trash_wait = trash_wait < TRASH_SLOW_MS ? trash_wait * 2 : TRASH_SLOW_MS;
		else if (n == 0)
			more = keeper_prepare_one(k);
	}
	drain(k);
}
