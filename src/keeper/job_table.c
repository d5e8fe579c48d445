/* SPDX-License-Identifier: Apache-2.0 */
/* What takes long runs beside the keeper, in a child that dies with it: copying, measuring and
 * writing out layers, removing trees. A new layer is made as n-NAME and becomes l-NAME when it is
 * whole. */
#include "keeper/job_table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "keeper/helper_child.h"
#include "keeper/job_work.h"
#include "runtime/linux_calls.h"

enum {
	RUNNING_MAX = 4,
	EXPORTS_MAX = 2, /* of them: who reads what they write may take for ever */
	AWAIT_MS = 10, /* most snapshots take less */
	ENDED_MAX = 64, /* whose end nobody asked for yet; the oldest is forgotten */
};

struct result { /* written by the child */
	bool done;
	int error;
	uint64_t bytes;
};

struct run {
	pid_t pid; /* 0: a free place */
	bool ended, cancelled;
	int status;
	enum job_kind kind;
	char name[KEEPER_ID_SIZE], sandbox[KEEPER_ID_SIZE];
	char from[KEEPER_LAYERS_MAX][KEEPER_ID_SIZE + 4];
	size_t nfrom;
	struct result *result;
};

struct end {
	char name[KEEPER_ID_SIZE]; /* "": a free place */
	bool failed;
	uint64_t bytes;
	struct err err;
};

static struct run runs[RUNNING_MAX];
static struct end ends[ENDED_MAX];
static size_t next_end;
static pid_t sweeper;

static struct run *find_run(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid && strcmp(runs[i].name, name) == 0)
			return &runs[i];
	return NULL;
}

static struct end *find_end(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (*name && strcmp(ends[i].name, name) == 0)
			return &ends[i];
	return NULL;
}

bool job_table_is_running(const char *name)
{
	return find_run(name) != NULL;
}

int job_table_reader(const char *entry)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		for (size_t j = 0; runs[i].pid && j < runs[i].nfrom; j++)
			if (strcmp(runs[i].from[j], entry) == 0)
				return (int)runs[i].kind;
	return -1;
}

bool job_table_freezes(const char *sandbox)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid && *sandbox && strcmp(runs[i].sandbox, sandbox) == 0)
			return true;
	return false;
}

static void cancel(struct run *r)
{
	if (!r->ended)
		(void)kill(r->pid, SIGKILL);
	r->cancelled = true;
}

void job_table_cancel(const char *name)
{
	struct run *r = find_run(name);

	if (r)
		cancel(r);
}

void job_table_cancel_snap(const char *sandbox)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid && strcmp(runs[i].sandbox, sandbox) == 0)
			cancel(&runs[i]);
}

static pid_t start_child(const struct job_work *w, struct result *result)
{
	int fds[JOB_WORK_FDS_MAX];
	size_t n = job_work_fds(w, fds);
	pid_t pid = helper_child_fork(fds, n, w->kind == JOB_SNAP ? CHILD_AWAITED : CHILD_LOW);

	if (pid != 0)
		return pid;
	hook_crash("job:start");
	result->error = -job_work_do(w, &result->bytes);
	hook_crash("job:worked");
	result->done = true;
	_exit(0);
}

static struct run *free_place(void)
{
	static struct result *shared;

	if (!shared) {
		void *p = mmap(NULL, sizeof(*shared) * RUNNING_MAX, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return NULL;
		shared = p;
	}
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (!runs[i].pid) {
			runs[i] = (struct run){ .result = &shared[i] };
			shared[i] = (struct result){ 0 };
			return &runs[i];
		}
	return NULL;
}

static bool makes_layer(enum job_kind kind)
{
	return kind == JOB_SNAP || kind == JOB_MERGE;
}

/* Where the new layer goes; what lies at the bottom of the old ones lies below it too. */
static int begin_copy(struct keeper *k, const struct job_spec *spec, struct job_work *w,
		      struct err *err)
{
	char entry[KEEPER_ID_SIZE + 4], template[KEEPER_ID_SIZE];
	int r = storage_template(&k->storage, spec->from[spec->nfrom - 1], template);

	if (r < 0)
		return err_sys(err, -r, "%s", spec->from[spec->nfrom - 1]);
	snprintf(entry, sizeof(entry), "n-%s", spec->name);
	w->dest = storage_begin(&k->storage, entry, template, err);
	return w->dest < 0 ? -1 : 0;
}

static int open_layers(struct keeper *k, const struct job_spec *spec, struct job_work *w,
		       struct err *err)
{
	for (size_t i = 0; i < spec->nfrom; i++) {
		w->from[i] = storage_files(&k->storage, spec->from[i], err);
		if (w->from[i] < 0)
			return -1;
		w->nfrom++;
	}
	return 0;
}

static int prepare(struct keeper *k, const struct job_spec *spec, struct job_work *w,
		   struct err *err)
{
	w->kind = spec->kind;
	w->out = spec->out;
	if (makes_layer(spec->kind) && storage_has_snapshots(&k->storage)) {
		w->storage = &k->storage;
		w->snap_from = spec->from[0];
		snprintf(w->snap_to, sizeof(w->snap_to), "l-%s", spec->name);
		return 0;
	}
	if (open_layers(k, spec, w, err) < 0)
		return -1;
	return makes_layer(spec->kind) ? begin_copy(k, spec, w, err) : 0;
}

static void drop_entry(struct keeper *k, const char *prefix, const char *name)
{
	char entry[KEEPER_ID_SIZE + 4];
	struct err err;

	snprintf(entry, sizeof(entry), "%s%s", prefix, name);
	(void)storage_drop(&k->storage, entry, &err);
}

static void note_run(struct run *r, const struct job_spec *spec, pid_t pid)
{
	struct end *old = find_end(spec->name);

	if (old)
		old->name[0] = 0;
	r->kind = spec->kind;
	snprintf(r->name, sizeof(r->name), "%s", spec->name);
	snprintf(r->sandbox, sizeof(r->sandbox), "%s", spec->sandbox);
	memcpy(r->from, spec->from, spec->nfrom * sizeof(r->from[0]));
	r->nfrom = spec->nfrom;
	r->pid = pid;
}

static bool is_full(enum job_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		n += runs[i].pid && runs[i].kind == JOB_EXPORT;
	return kind == JOB_EXPORT && n >= EXPORTS_MAX;
}

int job_table_start(struct keeper *k, const struct job_spec *spec, struct err *err)
{
	struct job_work w = JOB_WORK_NONE;
	struct run *r = is_full(spec->kind) ? NULL : free_place();
	pid_t pid = -1;
	int res;

	if (find_run(spec->name))
		return err_set(err, ERR_CONFLICT, "a job %s runs", spec->name);
	if (!r) {
		err_set(err, ERR_UNAVAILABLE, "%d jobs run already: try again",
			spec->kind == JOB_EXPORT ? EXPORTS_MAX : RUNNING_MAX);
		err->sys = EBUSY;
		return -1;
	}
	res = prepare(k, spec, &w, err);
	if (res == 0) {
		hook_crash("job:prepared");
		pid = start_child(&w, r->result);
		if (pid < 0)
			res = err_sys(err, errno, "fork");
	}
	if (res < 0 && w.dest >= 0)
		drop_entry(k, "n-", spec->name);
	job_work_close(&w);
	if (res == 0)
		note_run(r, spec, pid);
	return res;
}

bool job_table_reaped(pid_t pid, int status)
{
	if (pid == sweeper) {
		sweeper = 0;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid == pid && !runs[i].ended) {
			runs[i].ended = true;
			runs[i].status = status;
			return true;
		}
	return false;
}

static int judge(const struct run *r, struct err *err)
{
	if (r->cancelled)
		return err_set(err, ERR_CONFLICT, "job %s: what it was about is gone", r->name);
	if (!r->result->done)
		return err_set(err, ERR_INTERNAL, "job %s died (wait status %#x)", r->name,
			       (unsigned)r->status);
	return r->result->error ? err_sys(err, r->result->error, "job %s", r->name) : 0;
}

/* A snapshot is there at once and whole, also when whoever made it is killed in the next moment. */
static void take_back_snapshot(struct keeper *k, const struct run *r)
{
	if (!r->result->done || r->result->error == 0)
		drop_entry(k, "l-", r->name);
}

static int take_over(struct keeper *k, const struct run *r, struct err *err)
{
	char from[KEEPER_ID_SIZE + 4], to[KEEPER_ID_SIZE + 4];
	int res = judge(r, err);

	if (!makes_layer(r->kind))
		return res;
	hook_crash("job:ended");
	if (storage_has_snapshots(&k->storage)) {
		if (res < 0)
			take_back_snapshot(k, r);
		return res;
	}
	snprintf(from, sizeof(from), "n-%s", r->name);
	snprintf(to, sizeof(to), "l-%s", r->name);
	if (res == 0)
		res = storage_move(&k->storage, from, to, err);
	if (res < 0)
		drop_entry(k, "n-", r->name);
	return res;
}

static void let_go(struct keeper *k, const struct run *r)
{
	const struct sandbox_record *sb =
		r->sandbox[0] ? sandbox_table_find(&k->table, r->sandbox) : NULL;
	struct err err;

	if (sb && !sb->paused)
		(void)cgroup_freeze(&k->cgroups, sb->group, false, &err);
}

static void finish(struct keeper *k, struct run *r)
{
	struct end *e = &ends[next_end++ % ARRAY_LEN(ends)];

	*e = (struct end){ .bytes = r->result->bytes };
	e->failed = take_over(k, r, &e->err) < 0;
	memcpy(e->name, r->name, sizeof(e->name));
	let_go(k, r);
	r->pid = 0;
}

int job_table_query(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err)
{
	struct end *e;

	keeper_reap();
	(void)job_table_step(k);
	e = find_end(name);
	*ret = (struct keeper_job){ .state =
					    find_run(name) ? KEEPER_JOB_RUNNING : KEEPER_JOB_NONE };
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
	const struct run *r = find_run(name);
	auto_close int fd = r ? sys_pidfd_open(r->pid) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		(void)poll(&p, 1, AWAIT_MS);
	return job_table_query(k, name, ret, err);
}

static void start_sweeper(struct keeper *k)
{
	pid_t pid = helper_child_fork(&k->storage.dir, 1, CHILD_IDLE);

	/* what comes from now on is another one's; who cannot be had now is tried again */
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

	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid && runs[i].ended)
			finish(k, &runs[i]);
	if (k->storage.has_dropped && !sweeper)
		start_sweeper(k);
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		idle = idle && !runs[i].pid;
	return idle;
}

bool job_table_is_sweeping(const struct keeper *k)
{
	return sweeper || k->storage.has_dropped;
}

void job_table_cancel_all(void)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid)
			cancel(&runs[i]);
}

void job_table_end(struct keeper *k)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (runs[i].pid)
			let_go(k, &runs[i]);
	if (sweeper)
		(void)kill(sweeper, SIGKILL);
}
