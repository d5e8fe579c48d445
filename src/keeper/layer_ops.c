/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/layer_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/test_hook.h"
#include "keeper/job_table.h"
#include "keeper/sandbox_end.h"
#include "keeper/slot_pool.h"

static int set_busy(struct err *err, const char *what, const char *name)
{
	err_set(err, ERR_UNAVAILABLE, "%s %s, try again", what, name);
	err->sys = EBUSY;
	return -1;
}

static int open_storage(struct keeper *k, struct err *err)
{
	if (k->oneshot)
		return err_set(err, ERR_INVALID, "a one-shot keeper does not keep files");
	return storage_open(&k->storage, err);
}

/* The engine polls for this, so empty the trash now instead of waiting for an idle moment. */
static bool is_ending(struct keeper *k, const char *id)
{
	return sandbox_end_is_pending(k, id) && !sandbox_end_empty_trash(k) &&
	       sandbox_end_is_pending(k, id);
}

/* ---- from a sandbox -------------------------------------------------------------------------- */

int handle_seal(struct keeper *k, struct exchange *x, struct err *err)
{
	const char *id = x->req->id, *name = x->req->layer.name;
	struct storage_entry from = storage_entry('k', id), to = storage_entry('l', name);
	char files[sizeof(from) + 4];
	bool sealed;

	if (open_storage(k, err) < 0)
		return -1;
	x->reply.whole = storage_has_snapshots(&k->storage);
	if (sandbox_table_find(&k->table, id) || is_ending(k, id))
		return set_busy(err, "processes are still dying in sandbox", id);
	snprintf(files, sizeof(files), "%s/u", from.name); /* an entry without "u" is incomplete */
	sealed = storage_has(&k->storage, to.name);
	if (!storage_has(&k->storage, files))
		return sealed ? 0 : err_set(err, ERR_NOT_FOUND, "sandbox %s has no kept files", id);
	if (sealed)
		return err_set(err, ERR_CONFLICT, "layer %s already exists", name);
	if (job_table_reader(from.name) >= 0 || job_table_is_running(name))
		return set_busy(err, "a job uses sandbox", id);
	if (storage_seal(&k->storage, from.name, err) < 0)
		return -1;
	hook_crash("layer:emptied");
	if (storage_rename(&k->storage, from.name, to.name, err) < 0)
		return -1;
	hook_crash("layer:sealed");
	return 0;
}

/* Fails unless the name is free for a new layer. */
static int check_new_name(struct keeper *k, const char *name, struct err *err)
{
	if (open_storage(k, err) < 0)
		return -1;
	if (storage_has(&k->storage, storage_entry('l', name).name))
		return err_set(err, ERR_CONFLICT, "layer %s already exists", name);
	if (job_table_is_running(name))
		return err_set(err, ERR_CONFLICT, "job %s is already running", name);
	return 0;
}

/* The caller has frozen the sandbox `sb`; NULL: it has ended. */
static int start_snap(struct keeper *k, const struct sandbox_record *sb,
		      const struct storage_entry *from, const char *name, struct keeper_job *ret,
		      struct err *err)
{
	struct job_spec spec = { JOB_SNAP, name, sb ? sb->id : "", from, 1, -1 };
	struct err ignored;

	if (job_table_start(k, &spec, err) == 0)
		return job_table_await(k, name, ret, err);
	if (sb && !sb->paused)
		(void)cgroup_freeze(&k->cgroups, sb->group, false, &ignored);
	return -1;
}

int handle_snap(struct keeper *k, struct exchange *x, struct err *err)
{
	const char *id = x->req->id;
	struct sandbox_record *sb = sandbox_table_find(&k->table, id);
	struct storage_entry from = storage_entry('k', id);

	if (check_new_name(k, x->req->layer.name, err) < 0)
		return -1;
	x->reply.whole = storage_has_snapshots(&k->storage);
	if (is_ending(k, id))
		return set_busy(err, "processes are still dying in sandbox", id);
	if (sb && sb->files != SANDBOX_FILES_STAY)
		return err_set(err, ERR_INVALID,
			       "the files of sandbox %s are not kept (created without keep)", id);
	if (!storage_has(&k->storage, from.name))
		return err_set(err, ERR_NOT_FOUND, "sandbox %s has no kept files", id);
	if (job_table_reader(from.name) >= 0)
		return set_busy(err, "a job reads the files of sandbox", id);
	if (sb && !sandbox_table_is_alive(sb))
		sb = NULL; /* no process writes to its files */
	if (sb && !sb->paused && cgroup_freeze(&k->cgroups, sb->group, true, err) < 0)
		return err->code != ERR_CONFLICT
			       ? -1
			       : err_set(err, ERR_CONFLICT,
					 "cannot pause sandbox %s for a copy of its files: lodge "
					 "may "
					 "not use cgroup v2 here; stop it meanwhile (live: false, "
					 "`lodge snapshot --stop`)",
					 id);
	hook_crash("snap:frozen");
	return start_snap(k, sb, &from, x->req->layer.name, &x->reply.job, err);
}

/* ---- of layers ------------------------------------------------------------------------------- */

int layer_ops_release(const char *name, struct err *err)
{
	int kind = job_table_reader(storage_entry('l', name).name);

	if (kind == JOB_SYNC) {
		job_table_cancel(name);
		return 0;
	}
	return kind < 0 ? 0 : set_busy(err, "a job reads layer", name);
}

int handle_layer_drop(struct keeper *k, struct exchange *x, struct err *err)
{
	const char *name = x->req->layer.name;

	if (open_storage(k, err) < 0 || layer_ops_release(name, err) < 0)
		return -1;
	job_table_cancel(name); /* the job that makes it */
	hook_crash("layer:drop");
	return storage_drop(&k->storage, storage_entry('l', name).name, err);
}

static int find_layer(struct keeper *k, const char *name, struct storage_entry *ret,
		      struct err *err)
{
	*ret = storage_entry('l', name);
	if (!storage_has(&k->storage, ret->name))
		return err_set(err, ERR_NOT_FOUND, "no layer %s", name);
	return 0;
}

/* The layers to read. On btrfs a layer is a snapshot of everything below: the topmost is enough. */
static int find_layers(struct keeper *k, const struct keeper_layer *l, struct storage_entry *ret,
		       size_t *ret_n, struct err *err)
{
	for (uint32_t i = 0; i < l->nfrom; i++)
		if (find_layer(k, l->from[i], &ret[i], err) < 0)
			return -1;
	*ret_n = storage_has_snapshots(&k->storage) ? 1 : l->nfrom;
	return 0;
}

int handle_layer_sync(struct keeper *k, struct exchange *x, struct err *err)
{
	const char *name = x->req->layer.name;
	struct storage_entry layer;
	struct job_spec spec = { JOB_SYNC, name, "", &layer, 1, -1 };

	if (open_storage(k, err) < 0 || find_layer(k, name, &layer, err) < 0 ||
	    job_table_start(k, &spec, err) < 0)
		return -1;
	x->reply.job.state = KEEPER_JOB_RUNNING;
	return 0;
}

int handle_layer_merge(struct keeper *k, struct exchange *x, struct err *err)
{
	const struct keeper_layer *l = &x->req->layer;
	struct storage_entry from[KEEPER_LAYERS_MAX];
	struct job_spec spec = { JOB_MERGE, l->name, "", from, 0, -1 };

	if (check_new_name(k, l->name, err) < 0 || find_layers(k, l, from, &spec.nfrom, err) < 0 ||
	    job_table_start(k, &spec, err) < 0)
		return -1;
	return job_table_await(k, l->name, &x->reply.job, err);
}

static int check_output(int fd, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "output descriptor");
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return err_set(err, ERR_INVALID, "output descriptor is not a file, pipe or socket");
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return err_set(err, ERR_INVALID, "output descriptor is not open for writing");
	return 0;
}

int handle_layer_export(struct keeper *k, struct exchange *x, struct err *err)
{
	const struct keeper_layer *l = &x->req->layer;
	struct storage_entry from[KEEPER_LAYERS_MAX];
	struct job_spec spec = { JOB_EXPORT, l->name, "", from, 0, x->fds[0] };

	if (open_storage(k, err) < 0 || check_output(spec.out, err) < 0 ||
	    find_layers(k, l, from, &spec.nfrom, err) < 0 || job_table_start(k, &spec, err) < 0)
		return -1;
	x->reply.job.state = KEEPER_JOB_RUNNING;
	return 0;
}

/* ---- leftovers ------------------------------------------------------------------------------- */

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static int sweep_entry(int dir, const char *entry, void *arg)
{
	struct keeper *k = arg;
	struct err err;

	(void)dir;
	/* a layer of a dead job; a slot of a pool whose keeper died or whose host restarted */
	if (has_prefix(entry, "n-") || has_prefix(entry, "s-" SLOT_POOL_PREFIX))
		(void)storage_drop(&k->storage, entry, &err);
	else if (has_prefix(entry, "x-") || has_prefix(entry, ".deep.x-"))
		k->storage.has_dropped = true;
	return 0;
}

void layer_ops_sweep(struct keeper *k)
{
	struct err err;

	(void)storage_each(&k->storage, "", sweep_entry, k, &err);
}
