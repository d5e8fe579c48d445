/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/job_table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "keeper/helper_child.h"
#include "runtime/linux_calls.h"
#include "runtime/storage/layer_copy.h"
#include "runtime/storage/layer_stack.h"
#include "runtime/storage/layer_tar.h"

enum {
	RUNNING_MAX = 4,
	EXPORTS_MAX = 2, /* of these: the reader of an export may stall it for ever */
	AWAIT_MS = 10, /* most snapshots take less */
	RESULTS_MAX = 64, /* results that were not queried yet; a new one replaces the oldest */
};

struct child_result { /* written by the child, in shared memory */
	bool done;
	int error;
	uint64_t bytes;
};

struct job {
	pid_t pid; /* 0: unused */
	bool ended, cancelled;
	int status;
	enum job_kind kind;
	char name[KEEPER_ID_SIZE], sandbox[KEEPER_ID_SIZE];
	struct storage_entry from[KEEPER_LAYERS_MAX];
	size_t nfrom;
	struct child_result *result;
};

struct job_result {
	char name[KEEPER_ID_SIZE]; /* "": unused */
	bool failed;
	uint64_t bytes;
	struct err err;
};

static struct job jobs[RUNNING_MAX];
static struct job_result results[RESULTS_MAX];
static size_t next_result;
static pid_t sweeper;

static struct job *find_job(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid && strcmp(jobs[i].name, name) == 0)
			return &jobs[i];
	return NULL;
}

static struct job_result *find_result(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(results); i++)
		if (*name && strcmp(results[i].name, name) == 0)
			return &results[i];
	return NULL;
}

bool job_table_is_running(const char *name)
{
	return find_job(name) != NULL;
}

int job_table_reader(const char *entry)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		for (size_t j = 0; jobs[i].pid && j < jobs[i].nfrom; j++)
			if (strcmp(jobs[i].from[j].name, entry) == 0)
				return (int)jobs[i].kind;
	return -1;
}

bool job_table_freezes(const char *sandbox)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid && *sandbox && strcmp(jobs[i].sandbox, sandbox) == 0)
			return true;
	return false;
}

static void cancel_job(struct job *r)
{
	if (!r->ended)
		(void)kill(r->pid, SIGKILL);
	r->cancelled = true;
}

void job_table_cancel(const char *name)
{
	struct job *r = find_job(name);

	if (r)
		cancel_job(r);
}

void job_table_cancel_snap(const char *sandbox)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid && strcmp(jobs[i].sandbox, sandbox) == 0)
			cancel_job(&jobs[i]);
}

/* ---- the work of a job, in its own process --------------------------------------------------- */

enum { WORK_FDS_MAX = KEEPER_LAYERS_MAX + 2 };
_Static_assert((int)WORK_FDS_MAX <= (int)CHILD_FDS_MAX,
	       "a child can keep all descriptors of a job");

struct work {
	const struct job_spec *spec;
	int from[KEEPER_LAYERS_MAX]; /* directories "u", topmost first */
	size_t nfrom;
	int dest; /* the entry of the new layer; -1: none */
	struct storage *storage; /* not NULL: the new layer is a snapshot; all else is unused */
};

static size_t list_fds(const struct work *w, int ret[WORK_FDS_MAX])
{
	size_t n = w->nfrom;

	memcpy(ret, w->from, n * sizeof(*ret));
	if (w->dest >= 0)
		ret[n++] = w->dest;
	if (w->spec->out >= 0)
		ret[n++] = w->spec->out;
	if (w->storage)
		ret[n++] = w->storage->dir;
	return n;
}

static int copy_layers(const struct work *w, uint64_t *ret_bytes)
{
	auto_close int dir = -1;
	int r;

	if (mkdirat(w->dest, "u", 0755) < 0)
		return -errno;
	dir = openat(w->dest, "u", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return -errno;
	r = layer_copy(w->from, w->nfrom, dir);
	return r < 0 ? r : layer_stack_bytes(dir, ret_bytes);
}

/* Runs in the child because the kernel first writes the unwritten data of the source to disk. */
static int take_snapshot(const struct work *w)
{
	struct err err;

	return storage_snapshot(w->storage, w->spec->from[0].name,
				storage_entry('l', w->spec->name).name, &err) < 0
		       ? -err.sys
		       : 0;
}

static int sync_and_measure(const struct work *w, uint64_t *ret_bytes)
{
	int r = layer_stack_sync(w->from[0]);

	return r < 0 ? r : layer_stack_bytes(w->from[0], ret_bytes);
}

/* 0 or -errno; *ret_bytes: space the layer takes, where one was made or measured. */
static int do_work(const struct work *w, uint64_t *ret_bytes)
{
	switch (w->spec->kind) {
	case JOB_SNAP:
	case JOB_MERGE:
		return w->storage ? take_snapshot(w) : copy_layers(w, ret_bytes);
	case JOB_SYNC:
		return sync_and_measure(w, ret_bytes);
	case JOB_EXPORT:
		return layer_tar(w->from, w->nfrom, w->spec->out);
	}
	return -EINVAL;
}

static pid_t start_child(const struct work *w, struct child_result *result)
{
	int fds[WORK_FDS_MAX];
	size_t n = list_fds(w, fds);
	pid_t pid =
		helper_child_fork(fds, n, w->spec->kind == JOB_SNAP ? CHILD_AWAITED : CHILD_LOW);

	if (pid != 0)
		return pid;
	hook_crash("job:start");
	hook_hold("job:start");
	result->error = -do_work(w, &result->bytes);
	hook_crash("job:worked");
	result->done = true;
	_exit(0);
}

/* ---- starting and ending --------------------------------------------------------------------- */

static struct job *find_free_job(void)
{
	static struct child_result *shared;

	if (!shared) {
		void *p = mmap(NULL, sizeof(*shared) * RUNNING_MAX, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return NULL;
		shared = p;
	}
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (!jobs[i].pid) {
			jobs[i] = (struct job){ .result = &shared[i] };
			shared[i] = (struct child_result){ 0 };
			return &jobs[i];
		}
	return NULL;
}

static bool makes_layer(enum job_kind kind)
{
	return kind == JOB_SNAP || kind == JOB_MERGE;
}

/* Makes the entry of the new layer. It has the template of the lowest layer it is made of. */
static int make_target(struct keeper *k, struct work *w, struct err *err)
{
	const char *lowest = w->spec->from[w->spec->nfrom - 1].name;
	char template[KEEPER_ID_SIZE];
	int r = storage_template(&k->storage, lowest, template);

	if (r < 0)
		return err_sys(err, -r, "%s", lowest);
	w->dest = storage_begin(&k->storage, storage_entry('n', w->spec->name).name, template, err);
	return w->dest < 0 ? -1 : 0;
}

static int prepare_work(struct keeper *k, struct work *w, struct err *err)
{
	const struct job_spec *spec = w->spec;

	if (makes_layer(spec->kind) && storage_has_snapshots(&k->storage)) {
		w->storage = &k->storage;
		return 0;
	}
	for (; w->nfrom < spec->nfrom; w->nfrom++) {
		w->from[w->nfrom] = storage_files(&k->storage, spec->from[w->nfrom].name, err);
		if (w->from[w->nfrom] < 0)
			return -1;
	}
	return makes_layer(spec->kind) ? make_target(k, w, err) : 0;
}

static void drop_entry(struct keeper *k, char kind, const char *name)
{
	struct err err;

	(void)storage_drop(&k->storage, storage_entry(kind, name).name, &err);
}

static void record_job(struct job *r, const struct job_spec *spec, pid_t pid)
{
	struct job_result *old = find_result(spec->name);

	if (old)
		old->name[0] = 0;
	r->kind = spec->kind;
	snprintf(r->name, sizeof(r->name), "%s", spec->name);
	snprintf(r->sandbox, sizeof(r->sandbox), "%s", spec->sandbox);
	memcpy(r->from, spec->from, spec->nfrom * sizeof(r->from[0]));
	r->nfrom = spec->nfrom;
	r->pid = pid;
}

static bool has_max_exports(enum job_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		n += jobs[i].pid && jobs[i].kind == JOB_EXPORT;
	return kind == JOB_EXPORT && n >= EXPORTS_MAX;
}

int job_table_start(struct keeper *k, const struct job_spec *spec, struct err *err)
{
	struct work w = { .spec = spec, .dest = -1 };
	struct job *r = has_max_exports(spec->kind) ? NULL : find_free_job();
	pid_t pid = -1;
	int res;

	if (find_job(spec->name))
		return err_set(err, ERR_CONFLICT, "job %s is already running", spec->name);
	if (!r) {
		err_set(err, ERR_UNAVAILABLE, "%d jobs are running (maximum): try again",
			spec->kind == JOB_EXPORT ? EXPORTS_MAX : RUNNING_MAX);
		err->sys = EBUSY;
		return -1;
	}
	res = prepare_work(k, &w, err);
	if (res == 0) {
		hook_crash("job:prepared");
		pid = start_child(&w, r->result);
		if (pid < 0)
			res = err_sys(err, errno, "fork");
	}
	if (res < 0 && w.dest >= 0)
		drop_entry(k, 'n', spec->name);
	for (size_t i = 0; i < w.nfrom; i++)
		close(w.from[i]);
	close_autop(&w.dest);
	if (res == 0)
		record_job(r, spec, pid);
	return res;
}

bool job_table_reaped(pid_t pid, int status)
{
	if (pid == sweeper) {
		sweeper = 0;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid == pid && !jobs[i].ended) {
			jobs[i].ended = true;
			jobs[i].status = status;
			return true;
		}
	return false;
}

static int check_result(const struct job *r, struct err *err)
{
	if (r->cancelled)
		return err_set(err, ERR_CONFLICT,
			       "job %s was cancelled: its layer or sandbox was removed", r->name);
	if (!r->result->done)
		return err_set(err, ERR_INTERNAL, "job %s died unexpectedly (wait status %#x)",
			       r->name, (unsigned)r->status);
	return r->result->error ? err_sys(err, r->result->error, "job %s", r->name) : 0;
}

/* A snapshot appears complete under its final name, even if the child that made it is killed right
 * after. A job that failed by itself made none. */
static void drop_snapshot(struct keeper *k, const struct job *r)
{
	if (!r->result->done || r->result->error == 0)
		drop_entry(k, 'l', r->name);
}

static int take_result(struct keeper *k, const struct job *r, struct err *err)
{
	int res = check_result(r, err);

	if (!makes_layer(r->kind))
		return res;
	hook_crash("job:ended");
	if (storage_has_snapshots(&k->storage)) {
		if (res < 0)
			drop_snapshot(k, r);
		return res;
	}
	if (res == 0)
		res = storage_move(&k->storage, storage_entry('n', r->name).name,
				   storage_entry('l', r->name).name, err);
	if (res < 0)
		drop_entry(k, 'n', r->name);
	return res;
}

static void thaw_sandbox(struct keeper *k, const struct job *r)
{
	const struct sandbox_record *sb =
		r->sandbox[0] ? sandbox_table_find(&k->table, r->sandbox) : NULL;
	struct err err;

	if (sb && !sb->paused)
		(void)cgroup_freeze(&k->cgroups, sb->group, false, &err);
}

static void finish_job(struct keeper *k, struct job *r)
{
	struct job_result *e = &results[next_result++ % ARRAY_LEN(results)];

	*e = (struct job_result){ .bytes = r->result->bytes };
	e->failed = take_result(k, r, &e->err) < 0;
	memcpy(e->name, r->name, sizeof(e->name));
	thaw_sandbox(k, r);
	r->pid = 0;
}

int job_table_query(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err)
{
	struct job_result *e;

	keeper_reap(k);
	(void)job_table_step(k);
	e = find_result(name);
	*ret = (struct keeper_job){ .state =
					    find_job(name) ? KEEPER_JOB_RUNNING : KEEPER_JOB_NONE };
	if (!e)
		return 0;
	ret->state = e->failed ? KEEPER_JOB_FAILED : KEEPER_JOB_DONE;
	ret->bytes = e->failed ? 0 : e->bytes;
	*err = e->err;
	e->name[0] = 0;
	return e->failed ? -1 : 0;
}

int job_table_await(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err)
{
	const struct job *r = find_job(name);
	auto_close int fd = r ? sys_pidfd_open(r->pid) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		(void)poll(&p, 1, AWAIT_MS);
	return job_table_query(k, name, ret, err);
}

static void start_sweeper(struct keeper *k)
{
	pid_t pid = helper_child_fork(&k->storage.dir, 1, CHILD_IDLE);

	/* trees dropped from now on are for the next sweeper; retry if fork failed */
	k->storage.has_dropped = pid < 0;
	if (pid != 0) {
		sweeper = pid > 0 ? pid : 0;
		return;
	}
	hook_crash("sweep:start");
	storage_sweep(&k->storage);
	_exit(0);
}

bool job_table_step(struct keeper *k)
{
	bool idle = true;

	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid && jobs[i].ended)
			finish_job(k, &jobs[i]);
	if (k->storage.has_dropped && !sweeper)
		start_sweeper(k);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		idle = idle && !jobs[i].pid;
	return idle;
}

bool job_table_is_sweeping(const struct keeper *k)
{
	return sweeper || k->storage.has_dropped;
}

void job_table_cancel_all(void)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid)
			cancel_job(&jobs[i]);
}

void job_table_end(struct keeper *k)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		if (jobs[i].pid)
			thaw_sandbox(k, &jobs[i]);
	if (sweeper)
		(void)kill(sweeper, SIGKILL);
}
