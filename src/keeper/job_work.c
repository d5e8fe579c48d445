/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/job_work.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "runtime/storage/layer_copy.h"
#include "runtime/storage/layer_stack.h"
#include "runtime/storage/layer_tar.h"

size_t job_work_fds(const struct job_work *w, int ret[JOB_WORK_FDS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < w->nfrom; i++)
		ret[n++] = w->from[i];
	if (w->dest >= 0)
		ret[n++] = w->dest;
	if (w->out >= 0)
		ret[n++] = w->out;
	if (w->storage)
		ret[n++] = w->storage->dir;
	return n;
}

void job_work_close(struct job_work *w)
{
	for (size_t i = 0; i < w->nfrom; i++)
		close(w->from[i]);
	if (w->dest >= 0)
		close(w->dest);
	w->nfrom = 0;
	w->dest = -1;
}

static int copy_layers(const struct job_work *w, uint64_t *ret_bytes)
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
static int take_snapshot(const struct job_work *w)
{
	struct err err;

	return storage_snapshot(w->storage, w->snap_from, w->snap_to, &err) < 0 ? -err.sys : 0;
}

static int sync_and_measure(const struct job_work *w, uint64_t *ret_bytes)
{
	int r = layer_stack_sync(w->from[0]);

	return r < 0 ? r : layer_stack_bytes(w->from[0], ret_bytes);
}

int job_work_do(const struct job_work *w, uint64_t *ret_bytes)
{
	switch (w->kind) {
	case JOB_SNAP:
	case JOB_MERGE:
		return w->storage ? take_snapshot(w) : copy_layers(w, ret_bytes);
	case JOB_SYNC:
		return sync_and_measure(w, ret_bytes);
	case JOB_EXPORT:
		return layer_tar(w->from, w->nfrom, w->out);
	}
	return -EINVAL;
}
