/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/fd_message.h"
#include "base/test_hook.h"
#include "keeper/init_socket.h"
#include "keeper/job_table.h"
#include "keeper/layer_ops.h"
#include "keeper/sandbox_adopt.h"
#include "keeper/sandbox_create.h"
#include "keeper/sandbox_end.h"
#include "keeper/slot_pool.h"
#include "keeper/template_ops.h"
#include "keeper/volume_guard.h"
#include "wire/enforcement.h"

static struct sandbox_record *find_sandbox(struct keeper *k, const char *id, struct err *err)
{
	struct sandbox_record *sb = sandbox_table_find(&k->table, id);

	if (!sb)
		err_set(err, ERR_NOT_FOUND, "no sandbox %s", id);
	return sb;
}

static int handle_hello(struct keeper *k, struct exchange *x, struct err *err)
{
	struct enforcement f;

	(void)err;
	keeper_enforcement(k, &f);
	x->reply.features = f.features;
	memcpy(x->reply.msg, f.disk_problem, sizeof(x->reply.msg));
	return 0;
}

static int handle_create(struct keeper *k, struct exchange *x, struct err *err)
{
	int r = sandbox_create(k, x->req->id, &x->req->create, x->fds, &x->reply, &x->fd, err);

	hook_hold("create:done");
	return r;
}

static int handle_connect(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = find_sandbox(k, x->req->id, err);

	if (!sb)
		return -1;
	if (init_socket_connect(k, sb->id, &x->fd, err) < 0) {
		if (!sandbox_table_is_alive(sb))
			err_set(err, ERR_NOT_FOUND, "no sandbox %s", sb->id);
		return -1;
	}
	x->reply.pid = sb->pid;
	return 0;
}

static int handle_destroy(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = sandbox_table_find(&k->table, x->req->id);
	char template[KEEPER_ID_SIZE] = { 0 };
	bool found = sb != NULL;
	int r;

	if (sb)
		memcpy(template, sb->template, sizeof(template));
	r = sb ? sandbox_end_destroy(k, sb, err)
	       : sandbox_end_destroy_files(k, x->req->id, &found, err);
	if (r == 0)
		template_ops_release(k, template);
	x->reply.found = found;
	return r;
}

static int handle_stop(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = sandbox_table_find(&k->table, x->req->id);

	if (k->oneshot)
		return err_set(err, ERR_INVALID, "a one-shot keeper does not keep files");
	x->reply.found = sb != NULL;
	return sb ? sandbox_end_stop(k, sb, err) : 0;
}

/* The record on disk stores the state, so that a later keeper knows it. */
static int set_paused(struct keeper *k, const char *id, bool paused, struct err *err)
{
	struct sandbox_record *sb = find_sandbox(k, id, err), now;
	struct err ignored;
	int r;

	/* A later keeper thaws a frozen sandbox whose record does not say paused. So the record is
	 * written after the freeze and before the thaw. */
	if (!sb || (paused && cgroup_freeze(&k->cgroups, sb->group, true, err) < 0))
		return -1;
	hook_crash("pause:frozen");
	now = *sb;
	now.paused = paused;
	r = sandbox_table_record_write_at(k->sandboxes, &now);
	hook_crash("pause:marked");
	if (r < 0) {
		if (paused && !job_table_freezes(sb->id))
			(void)cgroup_freeze(&k->cgroups, sb->group, false, &ignored);
		return err_sys(err, -r, "sandbox %s", sb->id);
	}
	sb->paused = paused;
	if (paused || job_table_freezes(sb->id)) /* the end of the job thaws it */
		return 0;
	return cgroup_freeze(&k->cgroups, sb->group, false, err);
}

static int handle_freeze(struct keeper *k, struct exchange *x, struct err *err)
{
	return set_paused(k, x->req->id, true, err);
}

static int handle_thaw(struct keeper *k, struct exchange *x, struct err *err)
{
	return set_paused(k, x->req->id, false, err);
}

static int handle_stats(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = find_sandbox(k, x->req->id, err);
	struct storage_entry entry;

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

/* Reaps first: the engine asks as soon as the connection to lodge-init ended. */
static int handle_exit(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = find_sandbox(k, x->req->id, err);

	if (!sb)
		return -1;
	keeper_reap(k);
	if (!sb->exited && !sb->volume_failed && sandbox_table_is_alive(sb))
		return 0;
	x->reply.exit = (struct keeper_exit){
		.state = sb->volume_failed ? KEEPER_EXIT_VOLUME
			 : sb->exited	   ? KEEPER_EXIT_KNOWN
					   : KEEPER_EXIT_UNKNOWN,
		.status = sb->status,
		.oom = cgroup_init_oom_kills(&k->cgroups, sb->group) > 0,
	};
	return 0;
}

static int handle_limits(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = find_sandbox(k, x->req->id, err);
	int r;

	if (!sb ||
	    cgroup_set_limits(&k->cgroups, sb->group, &x->req->limits, CGROUP_IN_USE, err) < 0)
		return -1;
	r = sandbox_table_is_alive(sb) ? devfs_resize_of(sb->pid, x->req->limits.memory_bytes) : 0;
	if (r < 0)
		return err_sys(err, -r, "resize /dev/shm");
	if (sb->store != KEEPER_STORE_DISK)
		return 0;
	return storage_limit(&k->storage, sandbox_table_entry(sb).name, x->req->limits.disk_bytes,
			     err);
}

/* While the socket is full, this waits until the engine reads (at most SO_SNDTIMEO). */
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

static int handle_list(struct keeper *k, struct exchange *x, struct err *err)
{
	struct listing l = { k, x };

	sandbox_table_each(&k->table, list_sandbox, x);
	if (k->oneshot)
		return 0;
	if (storage_each(&k->storage, "k-", list_files, &l, err) < 0)
		return -1;
	return storage_each(&k->storage, "l-", list_layer, &l, err);
}

static int handle_pool(struct keeper *k, struct exchange *x, struct err *err)
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

static int handle_template_seal(struct keeper *k, struct exchange *x, struct err *err)
{
	struct sandbox_record *sb = find_sandbox(k, x->req->id, err);
	int r = sb ? template_ops_seal(k, sb, x->req->template, err) : -1;

	hook_hold("seal:done");
	return r;
}

static int handle_template_drop(struct keeper *k, struct exchange *x, struct err *err)
{
	return template_ops_drop(k, x->req->template, err);
}

static int handle_job(struct keeper *k, struct exchange *x, struct err *err)
{
	return job_table_query(k, x->req->layer.name, &x->reply.job, err);
}

static int handle_disk(struct keeper *k, struct exchange *x, struct err *err)
{
	(void)err;
	volume_guard_report(k, x->req->disk.reserve_bytes, &x->reply.disk);
	return 0;
}

/* A build that runs may lose a layer that nothing uses between two of its steps; it starts again
 * then. */
static int handle_sweep(struct keeper *k, struct exchange *x, struct err *err)
{
	(void)x, (void)err;
	sandbox_adopt_sweep_oneshots(k, "");
	template_ops_sweep(k);
	return 0;
}

typedef int handler_fn(struct keeper *k, struct exchange *x, struct err *err);

static handler_fn *const handlers[KEEPER_OP_MAX] = {
#define HANDLER(op, number, name, id, body, fds, reply_fd) [op] = handle_##name,
	KEEPER_OPS(HANDLER)
#undef HANDLER
};

static int handle_request(struct keeper *k, struct exchange *x, struct err *err)
{
	uint32_t op = x->req->op;

	if (op >= ARRAY_LEN(handlers) || !handlers[op])
		return err_set(err, ERR_INVALID, "operation %u has no handler", op);
	x->reply.op = op;
	memcpy(x->reply.id, x->req->id, sizeof(x->reply.id));
	return handlers[op](k, x, err);
}

/* False when the reply could not be sent. The caller then closes the connection, because the engine
 * would wait for this reply for ever. */
static bool send_reply(struct exchange *x, int result, const struct err *err)
{
	int r;

	x->reply.version = KEEPER_VERSION;
	if (result < 0) {
		x->reply.code = err->code;
		x->reply.sys = err->sys;
		snprintf(x->reply.msg, sizeof(x->reply.msg), "%s", err->msg);
	}
	r = x->lost ? -EPIPE
		    : fd_message_send(x->sock, &x->reply, sizeof(x->reply), &x->fd, x->fd >= 0);
	if (x->fd >= 0)
		close(x->fd);
	return r == 0;
}

bool dispatch_one(struct keeper *k, int sock)
{
	static union {
		struct keeper_request req;
		char bytes[sizeof(struct keeper_request) + 1];
	} in;
	int fds[KEEPER_BINDS_MAX];
	size_t nfds = 0;
	ssize_t n = fd_message_recv(sock, &in, sizeof(in), fds, ARRAY_LEN(fds), &nfds);
	struct exchange x = { .req = &in.req, .fds = fds, .fd = -1, .sock = sock };
	const char *problem;
	struct err err = { 0 };
	bool sent;
	int r;

	if (n == -EINTR || n == -EAGAIN || n == -ENOMEM || n == -ENOBUFS)
		return true;
	if (n <= 0 && n != -EMSGSIZE && n != -EBADMSG)
		return false;
	problem = n < 0 ? "message too long, or too many descriptors"
			: keeper_request_problem(&in, (size_t)n, nfds);
	r = problem ? err_set(&err, ERR_INVALID, "%s", problem) : handle_request(k, &x, &err);
	sent = send_reply(&x, r, &err);
	for (size_t i = 0; i < nfds; i++)
		close(fds[i]);
	return sent;
}
