/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: the files of kept sandboxes, sealed, to start others from. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/test_hook.h"

typedef char entry_name[KEEPER_ID_SIZE + 4];

static int busy(struct err *err, const char *what, const char *name)
{
	err_set(err, ERR_UNAVAILABLE, "%s %s: try again", what, name);
	err->sys = EBUSY;
	return -1;
}

static int open_store(struct keeper *k, struct err *err)
{
	if (k->oneshot)
		return err_set(err, ERR_INVALID, "this keeper keeps no files");
	return storage_open(&k->shelf, err);
}

/* Asked again and again: so it is looked at now, not when the keeper finds the time. */
static bool is_ending(struct keeper *k, const char *id)
{
	return keeper_is_ending(k, id) && !keeper_empty_trash(k) && keeper_is_ending(k, id);
}

/* ---- from a sandbox -------------------------------------------------------------------------- */

int keeper_seal(struct keeper *k, const char *id, const char *name, struct err *err)
{
	entry_name from, to;
	char files[sizeof(from) + 4];
	bool sealed;

	if (open_store(k, err) < 0)
		return -1;
	snprintf(from, sizeof(from), "k-%s", id);
	snprintf(to, sizeof(to), "l-%s", name);
	if (sandbox_table_find(&k->table, id) || is_ending(k, id))
		return busy(err, "processes still go in", id);
	snprintf(files, sizeof(files), "%s/u", from); /* without it it never came to be used */
	sealed = storage_has(&k->shelf, to);
	if (!storage_has(&k->shelf, files))
		return sealed ? 0 : err_set(err, ERR_NOT_FOUND, "no files of sandbox %s", id);
	if (sealed)
		return err_set(err, ERR_CONFLICT, "there is a layer %s already", name);
	if (keeper_job_reads(from) >= 0 || keeper_job_runs(name))
		return busy(err, "a job has to do with", id);
	if (storage_seal(&k->shelf, from, err) < 0)
		return -1;
	hook_crash("layer:emptied");
	if (storage_rename(&k->shelf, from, to, err) < 0)
		return -1;
	hook_crash("layer:sealed");
	return 0;
}

int keeper_pause(struct keeper *k, struct sandbox_record *b, bool paused, struct err *err)
{
	struct sandbox_record now = *b;
	struct err ignored;
	int r;

	/* whoever finds it frozen and not marked thaws it: so the mark comes after, goes before */
	if (paused && cgroup_freeze(&k->cgroups, b->group, true, err) < 0)
		return -1;
	hook_crash("pause:frozen");
	now.paused = paused;
	r = sandbox_table_record_write_at(k->boxes, &now);
	hook_crash("pause:marked");
	if (r < 0) {
		if (paused && !keeper_job_holds(b->id))
			(void)cgroup_freeze(&k->cgroups, b->group, false, &ignored);
		return err_sys(err, -r, "sandbox %s", b->id);
	}
	b->paused = paused;
	if (paused || keeper_job_holds(b->id)) /* whose end thaws it */
		return 0;
	return cgroup_freeze(&k->cgroups, b->group, false, err);
}

/* Whether this name is free for a new layer. */
static int check_name(struct keeper *k, const char *name, struct err *err)
{
	entry_name entry;

	if (open_store(k, err) < 0)
		return -1;
	snprintf(entry, sizeof(entry), "l-%s", name);
	if (storage_has(&k->shelf, entry))
		return err_set(err, ERR_CONFLICT, "there is a layer %s already", name);
	if (keeper_job_runs(name))
		return err_set(err, ERR_CONFLICT, "a job %s runs", name);
	return 0;
}

/* Of files that nobody writes to now. */
static int start_snap(struct keeper *k, const struct sandbox_record *b, const char *from,
		      const char *name, struct keeper_job *ret, struct err *err)
{
	entry_name entries[1];
	struct job_spec spec = { JOB_SNAP, name, b ? b->id : "", entries, 1, -1 };
	struct err ignored;

	memcpy(entries[0], from, sizeof(entries[0]));
	if (keeper_job_start(k, &spec, err) == 0)
		return keeper_job_await(k, name, ret, err);
	if (b && !b->paused)
		(void)cgroup_freeze(&k->cgroups, b->group, false, &ignored);
	return -1;
}

int keeper_snap(struct keeper *k, const char *id, const char *name, struct keeper_job *ret,
		struct err *err)
{
	struct sandbox_record *b = sandbox_table_find(&k->table, id);
	entry_name from;

	if (check_name(k, name, err) < 0)
		return -1;
	snprintf(from, sizeof(from), "k-%s", id);
	if (is_ending(k, id))
		return busy(err, "processes still go in", id);
	if (b && b->files != SANDBOX_FILES_STAY)
		return err_set(err, ERR_INVALID, "the files of sandbox %s are not kept", id);
	if (!storage_has(&k->shelf, from))
		return err_set(err, ERR_NOT_FOUND, "no files of sandbox %s", id);
	if (keeper_job_reads(from) >= 0)
		return busy(err, "a job reads the files of", id);
	if (b && !sandbox_table_is_alive(b))
		b = NULL; /* nothing writes to them */
	if (b && !b->paused && cgroup_freeze(&k->cgroups, b->group, true, err) < 0)
		return -1;
	hook_crash("snap:frozen");
	return start_snap(k, b, from, name, ret, err);
}

/* ---- of layers ------------------------------------------------------------------------------- */

int keeper_release_layer(struct keeper *k, const char *name, struct err *err)
{
	entry_name entry;
	int kind;

	(void)k;
	snprintf(entry, sizeof(entry), "l-%s", name);
	kind = keeper_job_reads(entry);
	if (kind == JOB_SYNC) {
		keeper_cancel_job(name);
		return 0;
	}
	return kind < 0 ? 0 : busy(err, "a job reads layer", name);
}

int keeper_drop_layer(struct keeper *k, const char *name, struct err *err)
{
	entry_name entry;

	if (open_store(k, err) < 0 || keeper_release_layer(k, name, err) < 0)
		return -1;
	keeper_cancel_job(name); /* one that makes it */
	hook_crash("layer:drop");
	snprintf(entry, sizeof(entry), "l-%s", name);
	return storage_drop(&k->shelf, entry, err);
}

static int need_layer(struct keeper *k, const char *name, char *entry, struct err *err)
{
	snprintf(entry, sizeof(entry_name), "l-%s", name);
	if (!storage_has(&k->shelf, entry))
		return err_set(err, ERR_NOT_FOUND, "no layer %s", name);
	return 0;
}

/* The layers to read: where they are whole the topmost says everything. */
static int need_layers(struct keeper *k, const struct keeper_layer *l, entry_name *ret,
		       size_t *ret_n, struct err *err)
{
	for (uint32_t i = 0; i < l->nfrom; i++)
		if (need_layer(k, l->from[i], ret[i], err) < 0)
			return -1;
	*ret_n = storage_has_snapshots(&k->shelf) ? 1 : l->nfrom;
	return 0;
}

int keeper_sync_layer(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err)
{
	entry_name entry[1];
	struct job_spec spec = { JOB_SYNC, name, "", entry, 1, -1 };

	if (open_store(k, err) < 0 || need_layer(k, name, entry[0], err) < 0 ||
	    keeper_job_start(k, &spec, err) < 0)
		return -1;
	ret->state = KEEPER_JOB_RUNNING;
	return 0;
}

int keeper_merge_layers(struct keeper *k, const struct keeper_layer *l, struct keeper_job *ret,
			struct err *err)
{
	entry_name from[KEEPER_LAYERS_MAX];
	struct job_spec spec = { JOB_MERGE, l->name, "", from, 0, -1 };

	if (check_name(k, l->name, err) < 0 || need_layers(k, l, from, &spec.nfrom, err) < 0 ||
	    keeper_job_start(k, &spec, err) < 0)
		return -1;
	return keeper_job_await(k, l->name, ret, err);
}

static int check_output(int fd, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "descriptor to write to");
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return err_set(err, ERR_INVALID, "neither a file nor a pipe to write to");
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return err_set(err, ERR_INVALID, "the descriptor is not open for writing");
	return 0;
}

int keeper_export_layers(struct keeper *k, const struct keeper_layer *l, int fd,
			 struct keeper_job *ret, struct err *err)
{
	entry_name from[KEEPER_LAYERS_MAX];
	struct job_spec spec = { JOB_EXPORT, l->name, "", from, 0, fd };

	if (open_store(k, err) < 0 || check_output(fd, err) < 0 ||
	    need_layers(k, l, from, &spec.nfrom, err) < 0 || keeper_job_start(k, &spec, err) < 0)
		return -1;
	ret->state = KEEPER_JOB_RUNNING;
	return 0;
}

/* ---- what was left --------------------------------------------------------------------------- */

struct strays {
	struct keeper *k;
	const char *prefix;
};

static int drop_one(int dir, const char *name, void *arg)
{
	const struct strays *s = arg;
	entry_name entry;
	struct err err;

	(void)dir;
	snprintf(entry, sizeof(entry), "%s%s", s->prefix, name);
	(void)storage_drop(&s->k->shelf, entry, &err);
	return 0;
}

static void drop_strays(struct keeper *k, const char *prefix)
{
	struct strays s = { k, prefix };
	struct err err;

	(void)storage_each(&k->shelf, prefix, drop_one, &s, &err);
}

static int note_dropped(int dir, const char *name, void *arg)
{
	struct keeper *k = arg;

	(void)dir;
	(void)name;
	k->shelf.has_dropped = true;
	return 1;
}

void keeper_sweep_layers(struct keeper *k)
{
	struct err err;

	drop_strays(k, "n-");
	/* of a pool that went with its keeper, or with the machine */
	drop_strays(k, "s-" KEEPER_SLOT_PREFIX);
	(void)storage_each(&k->shelf, "x-", note_dropped, k, &err);
	(void)storage_each(&k->shelf, ".deep.x-", note_dropped, k, &err);
}
