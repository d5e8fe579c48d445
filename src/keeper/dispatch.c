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
#include "base/fd_message.h"

enum {
	/* things are made ahead only after this long without a request: whoever got a sandbox is
	 * likely to use it at once, and not to be disturbed unless the next one would wait */
	QUIET_MS = 3,
	REST_MS = 25,
	TRASH_RETRY_MS = 2, /* processes of a killed sandbox need a moment to go */
	TRASH_SLOW_MS = 50,
	DRAIN_MS = 5000,
	SWEEP_MS =
		500, /* for trees that are being removed; a large one is left to the next start */
};

struct exchange {
	const struct keeper_request *req;
	const int *fds;
	struct keeper_reply reply;
	int fd; /* goes out with the reply; -1: none */
	int sock;
	bool lost; /* the engine does not read */
};

static struct sandbox_record *need(struct keeper *k, const char *id, struct err *err)
{
	struct sandbox_record *sb = sandbox_table_find(&k->table, id);

	if (!sb)
		err_set(err, ERR_NOT_FOUND, "no sandbox %s", id);
	return sb;
}

static int do_hello(struct keeper *k, struct exchange *x, struct err *err)
{
	(void)err;
	x->reply.features = k->features;
	if (storage_has_limit(&k->storage))
		x->reply.features |= KEEPER_HAS_DISK_LIMIT;
	return 0;
}

static int do_create(struct keeper *k, struct exchange *x, struct err *err)
{
	return sandbox_create(k, x->req->id, &x->req->create, x->fds, &x->reply, &x->fd, err);
}

static int do_connect(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = need(k, x->req->id, err);

	if (!sb)
		return -1;
	if (init_socket_connect(k, sb->id, &x->fd, err) <
	    0) /* one that ended is not there any more */
		return sandbox_table_is_alive(sb)
			       ? -1
			       : err_set(err, ERR_NOT_FOUND, "no sandbox %s", sb->id);
	x->reply.pid = sb->pid;
	return 0;
}

static int do_destroy(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = sandbox_table_find(&k->table, x->req->id);

	bool found = sb != NULL;
	int r = sb ? sandbox_end_destroy(k, sb, err)
		   : sandbox_end_destroy_files(k, x->req->id, &found, err);

	x->reply.found = found;
	return r;
}

static int do_stop(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = sandbox_table_find(&k->table, x->req->id);

	if (k->oneshot)
		return err_set(err, ERR_INVALID, "this keeper keeps no files");
	x->reply.found = sb != NULL;
	return sb ? sandbox_end_stop(k, sb, err) : 0;
}

static int do_freeze(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = need(k, x->req->id, err);

	return sb ? sandbox_pause(k, sb, x->req->op == KEEPER_FREEZE, err) : -1;
}

static int do_stats(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = need(k, x->req->id, err);
	struct sandbox_table_entry entry;

	if (!sb || cgroup_stats(&k->cgroups, sb->group, &x->reply.stats, err) < 0)
		return -1;
	x->reply.stats.disk_bytes = UINT64_MAX;
	if (sb->store != KEEPER_STORE_DISK)
		return 0;
	entry = sandbox_table_entry(sb);
	x->reply.stats.disk_bytes = storage_usage(&k->storage, entry.name);
	x->reply.stats.disk_full = storage_is_full(&k->storage, entry.name);
	return 0;
}

static int do_limits(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = need(k, x->req->id, err);
	struct sandbox_table_entry entry;

	if (!sb || cgroup_set_limits(&k->cgroups, sb->group, &x->req->limits, true, err) < 0)
		return -1;
	if (sb->store != KEEPER_STORE_DISK || !k->storage.ops || !k->storage.ops->has_limit)
		return 0;
	entry = sandbox_table_entry(sb);
	return storage_limit(&k->storage, entry.name, x->req->limits.disk_bytes, err);
}

/* Waits, within bounds, while the socket is full of what the engine did not read yet. */
static void list_one(struct exchange *x, enum keeper_what what, const char *id, pid_t pid)
{
	struct keeper_reply r = {
		.version = KEEPER_VERSION, .op = KEEPER_LIST, .pid = pid, .what = what
	};

	snprintf(r.id, sizeof(r.id), "%s", id);
	if (keeper_id_is_valid(r.id) && !x->lost)
		x->lost = fd_message_send(x->sock, &r, sizeof(r), NULL, 0) < 0;
}

static void list_sandbox(struct sandbox_record *sb, void *arg)
{
	list_one(arg, KEEPER_IS_SANDBOX, sb->id, sb->pid);
}

struct listing {
	struct keeper *k;
	struct exchange *x;
};

static int list_files(int dir, const char *id, void *arg)
{
	struct listing *l = arg;

	(void)dir;
	if (!sandbox_table_find(&l->k->table, id) && !sandbox_end_is_pending(l->k, id))
		list_one(l->x, KEEPER_IS_FILES, id, 0);
	return l->x->lost;
}

static int list_layer(int dir, const char *name, void *arg)
{
	struct listing *l = arg;

	(void)dir;
	list_one(l->x, KEEPER_IS_LAYER, name, 0);
	return l->x->lost;
}

static int do_list(struct keeper *k, struct exchange *x, struct err *err)
{
	struct listing l = { k, x };

	sandbox_table_each(&k->table, list_sandbox, x);
	if (k->oneshot)
		return 0;
	return storage_each(&k->storage, "k-", list_files, &l, err) < 0
		       ? -1
		       : storage_each(&k->storage, "l-", list_layer, &l, err);
}

static int do_pool(struct keeper *k, struct exchange *x, struct err *err)
{
	if (slot_pool_resize(k, &x->req->pool, err) < 0)
		return -1;
	x->reply.pool = (struct keeper_pool_state){ .ready = (uint32_t)k->nslots,
						    .min = k->pool.min,
						    .target = k->pool.target,
						    .max = k->pool.max,
						    .hits = k->hits,
						    .misses = k->misses };
	return 0;
}

static int do_template_seal(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = need(k, x->req->id, err);

	return sb ? template_ops_seal(k, sb, x->req->template, err) : -1;
}

static int do_template_drop(struct keeper *k, struct exchange *x, struct err *err)
{
	return template_ops_drop(k, x->req->template, err);
}

static int do_seal(struct keeper *k, struct exchange *x, struct err *err)
{
	if (layer_ops_seal(k, x->req->id, x->req->layer.name, err) < 0)
		return -1;
	x->reply.whole = storage_has_snapshots(&k->storage);
	return 0;
}

static int do_snap(struct keeper *k, struct exchange *x, struct err *err)
{
	if (layer_ops_snap(k, x->req->id, x->req->layer.name, &x->reply.job, err) < 0)
		return -1;
	x->reply.whole = storage_has_snapshots(&k->storage);
	return 0;
}

static int do_layer_drop(struct keeper *k, struct exchange *x, struct err *err)
{
	return layer_ops_drop(k, x->req->layer.name, err);
}

static int do_layer_sync(struct keeper *k, struct exchange *x, struct err *err)
{
	return layer_ops_sync(k, x->req->layer.name, &x->reply.job, err);
}

static int do_layer_merge(struct keeper *k, struct exchange *x, struct err *err)
{
	return layer_ops_merge(k, &x->req->layer, &x->reply.job, err);
}

static int do_layer_export(struct keeper *k, struct exchange *x, struct err *err)
{
	return layer_ops_export(k, &x->req->layer, x->fds[0], &x->reply.job, err);
}

static int do_job(struct keeper *k, struct exchange *x, struct err *err)
{
	return job_table_query(k, x->req->layer.name, &x->reply.job, err);
}

typedef int op_fn(struct keeper *k, struct exchange *x, struct err *err);

static op_fn *const ops[KEEPER_OP_MAX] = {
	[KEEPER_HELLO] = do_hello,
	[KEEPER_CREATE] = do_create,
	[KEEPER_CONNECT] = do_connect,
	[KEEPER_DESTROY] = do_destroy,
	[KEEPER_FREEZE] = do_freeze,
	[KEEPER_THAW] = do_freeze,
	[KEEPER_STATS] = do_stats,
	[KEEPER_LIMITS] = do_limits,
	[KEEPER_LIST] = do_list,
	[KEEPER_POOL] = do_pool,
	[KEEPER_TEMPLATE_SEAL] = do_template_seal,
	[KEEPER_TEMPLATE_DROP] = do_template_drop,
	[KEEPER_STOP] = do_stop,
	[KEEPER_SEAL] = do_seal,
	[KEEPER_SNAP] = do_snap,
	[KEEPER_LAYER_DROP] = do_layer_drop,
	[KEEPER_LAYER_SYNC] = do_layer_sync,
	[KEEPER_LAYER_MERGE] = do_layer_merge,
	[KEEPER_LAYER_EXPORT] = do_layer_export,
	[KEEPER_JOB] = do_job,
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
	r = x->lost ? -EPIPE
		    : fd_message_send(x->sock, &x->reply, sizeof(x->reply), &x->fd, x->fd >= 0);
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
	ssize_t n = fd_message_recv(sock, &in, sizeof(in), fds, ARRAY_LEN(fds), &nfds);
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
	if (!more)
		return slot_pool_next_expiry_ms(k);
	return slot_pool_is_short(k) ? QUIET_MS : REST_MS;
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

static void destroy_one(struct sandbox_record *sb, void *arg)
{
	struct err err;

	(void)sandbox_end_destroy(arg, sb, &err);
}

static bool is_done(struct keeper *k)
{
	bool empty = sandbox_end_empty_trash(k);

	keeper_reap();
	return job_table_step(k) && empty;
}

/* Slots go in any case; what the trash still holds is finished, within reason. */
static void drain(struct keeper *k)
{
	k->draining = true;
	job_table_cancel_all();
	while (k->nslots > 0)
		slot_pool_free(k, k->slots[--k->nslots], true);
	if (k->oneshot)
		sandbox_table_each(&k->table, destroy_one, k);
	for (int ms = 0; ms < DRAIN_MS && !is_done(k); ms++)
		usleep(1000);
	for (int ms = 0; ms < SWEEP_MS && is_done(k) && job_table_is_sweeping(k); ms++)
		usleep(1000);
	job_table_end(k);
	while (k->nparts > 0)
		slot_parts_drop(k, &k->parts[--k->nparts]);
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
		int n;

		(void)job_table_step(k);
		n = poll(p, ARRAY_LEN(p), timeout_of(k, more, trash_wait));

		if (n < 0 && errno != EINTR)
			break;
		if (p[1].revents) {
			if (signalled(sigfd))
				break;
			more = slot_pool_drop_dead(k) || more;
		}
		if (p[0].revents) {
			if (!serve_one(k, sock))
				break;
			more = true;
			trash_wait = TRASH_RETRY_MS;
			continue;
		}
		if (!k->trash_count && n == 0)
			more = slot_pool_fill_one(k);
		else if (!sandbox_end_empty_trash(k))
			trash_wait = trash_wait < TRASH_SLOW_MS ? trash_wait * 2 : TRASH_SLOW_MS;
	}
	drain(k);
}
