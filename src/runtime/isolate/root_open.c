/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/root_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/test_hook.h"
#include "runtime/storage/host_template.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"

static int userns_of(const struct root_source *r, const struct idmap *idmap)
{
	return r->rootless ? -1 : idmap->userns;
}

static int add_lower(const struct root_source *r, int dir, const struct idmap *idmap,
		     struct rootfs *root, struct err *err)
{
	int mnt = mount_clone(dir, "", SYS_ATTR_RDONLY, userns_of(r, idmap));

	if (mnt < 0)
		return err_sys(err, -mnt, "layer");
	root->lowers[root->nlowers++] = mnt;
	return 0;
}

static struct rootfs_bind *add_bind(struct rootfs *root, const char *path, int mnt)
{
	struct rootfs_bind *b = &root->binds[root->nbinds++];

	*b = (struct rootfs_bind){ .mnt = mnt };
	snprintf(b->path, sizeof(b->path), "%s", path);
	return b;
}

/* An overlay, which gives the sandbox its own inodes, cannot have mounts of the host below it. */
static int clone_host(const struct root_source *r, const char *path, const struct idmap *idmap,
		      bool *ret_own_inodes)
{
	uint64_t attr = SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NODEV;
	int mnt = mount_clone(AT_FDCWD, path, attr, userns_of(r, idmap));

	*ret_own_inodes = mnt != -EINVAL || !r->rootless;
	if (mnt != -EINVAL)
		return mnt;
	/* root: the files cannot be idmapped, so owners show as nobody */
	return r->rootless ? mount_clone_all(AT_FDCWD, path, attr)
			   : mount_clone(AT_FDCWD, path, attr, -1);
}

static int add_host(const struct root_source *r, const struct idmap *idmap, struct rootfs *root,
		    struct err *err)
{
	auto_close int tree = host_template_open(r->home, r->rootless, err);

	if (tree < 0 || add_lower(r, tree, idmap, root, err) < 0)
		return -1;
	for (const char *const *path = host_template_binds(); *path; path++) {
		bool own_inodes;
		int mnt = clone_host(r, *path, idmap, &own_inodes);

		if (mnt < 0)
			return err_sys(err, -mnt, "host %s", *path);
		add_bind(root, *path, mnt)->own_inodes = own_inodes;
	}
	return 0;
}

/* "empty" is a directory of the base tree, the keeper's working directory. That is a tmpfs, which
 * supports idmapped mounts only since Linux 6.3; an empty directory needs none. */
static int add_empty(const struct root_source *r, struct rootfs *root, struct err *err)
{
	auto_close int dir = open("empty", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct idmap unmapped = { .userns = -1 };

	return dir < 0 ? err_sys(err, errno, "empty layer")
		       : add_lower(r, dir, &unmapped, root, err);
}

static int add_entry(const struct root_source *r, const char *entry, const struct idmap *idmap,
		     struct rootfs *root, struct err *err)
{
	auto_close int dir = storage_files(r->storage, entry, err);

	return dir < 0 ? -1 : add_lower(r, dir, idmap, root, err);
}

/* A template and those it stands on. */
static int add_template(const struct root_source *r, const char *name, const struct idmap *idmap,
			struct rootfs *root, struct err *err)
{
	char at[KEEPER_ID_SIZE];
	int res = 0;

	snprintf(at, sizeof(at), "%s", name);
	for (int depth = 0; res == 0; depth++) {
		const struct storage_entry e = storage_entry('t', at);

		if (depth == KEEPER_TEMPLATE_DEPTH)
			return err_set(err, ERR_INTERNAL, "template '%s' stands on more than %d",
				       name, KEEPER_TEMPLATE_DEPTH - 1);
		if (add_entry(r, e.name, idmap, root, err) < 0)
			return err->sys == ENOENT
				       ? err_set(err, ERR_NOT_FOUND, "unknown template '%s'", at)
				       : -1;
		res = storage_template(r->storage, e.name, at);
	}
	return res == -ENOENT ? 0 : err_sys(err, -res, "template %s", at);
}

int root_open_upper_layers(const struct root_source *r, const struct keeper_create *c,
			   struct err *err)
{
	if (c->nlayers == 0)
		return 0;
	if (storage_open(r->storage, err) < 0)
		return -1;
	if (storage_has_snapshots(r->storage) && c->nlayers > 1)
		return err_set(err, ERR_INVALID,
			       "a layer on btrfs contains those below: only one layer is allowed");
	return c->take || storage_has_snapshots(r->storage);
}

/* Also checks the layer that becomes writable, before anything is moved. */
static int check_layer(const struct root_source *r, const struct keeper_create *c, const char *name,
		       struct err *err)
{
	char below[KEEPER_ID_SIZE];
	int res = storage_template(r->storage, storage_entry('l', name).name, below);

	if (res == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, "no layer %s", name);
	if (res < 0)
		return err_sys(err, -res, "layer %s", name);
	if (strcmp(below, c->template) != 0)
		return err_set(err, ERR_INVALID, "layer %s was made on template '%s'", name, below);
	return 0;
}

static int add_layers(const struct root_source *r, const struct keeper_create *c,
		      const struct idmap *idmap, struct rootfs *root, struct err *err)
{
	int upper = root_open_upper_layers(r, c, err);

	if (upper < 0)
		return -1;
	for (uint32_t i = 0; i < c->nlayers; i++) {
		const struct storage_entry e = storage_entry('l', c->layers[i]);

		if (check_layer(r, c, c->layers[i], err) < 0 ||
		    (i >= (uint32_t)upper && add_entry(r, e.name, idmap, root, err) < 0))
			return -1;
	}
	return 0;
}

/* The caller's descriptor belongs to another mount namespace, from which the keeper cannot clone a
 * mount. So it opens the same path in its own and checks that it is the same directory. */
static int reopen_dir(int fd, struct stat *st, struct err *err)
{
	char link[40], path[4096];
	struct stat again;
	auto_close int dir = -1;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || fstat(fd, st) < 0)
		return err_sys(err, errno, "bind directory");
	path[n] = 0;
	if (!S_ISDIR(st->st_mode))
		return err_set(err, ERR_INVALID, "%s is not a directory", path);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(err, errno, "%s", path);
	if (fstat(dir, &again) < 0 || again.st_dev != st->st_dev || again.st_ino != st->st_ino)
		return err_set(err, ERR_CONFLICT, "%s changed while it was being mounted", path);
	return steal_fd(&dir);
}

/* Files of the directory's owner belong to the guest inside; all others have no mapped owner. */
static int clone_for_guest(const struct root_source *r, int dir, const struct stat *st,
			   bool writable, struct idmap_pair guest, struct err *err)
{
	uint64_t attr = (hook_weak("nosuid") ? 0 : SYS_ATTR_NOSUID) | SYS_ATTR_NODEV |
			(writable ? 0 : SYS_ATTR_RDONLY);
	auto_close int userns =
		r->rootless
			? -1
			: idmap_map_one((struct idmap_pair){ st->st_uid, st->st_gid }, guest, err);
	int mnt;

	if (userns < 0 && !r->rootless)
		return -1;
	mnt = mount_clone(dir, "", attr, userns);
	if (mnt == -EINVAL && r->rootless)
		mnt = mount_clone_all(dir, "", attr);
	else if (mnt == -EINVAL && !writable)
		mnt = mount_clone(dir, "", attr, -1);
	return mnt < 0 ? err_sys(err, -mnt, "map the owner of the directory") : mnt;
}

static int add_binds(const struct root_source *r, const struct keeper_create *c, const int *dirs,
		     const struct idmap *idmap, struct rootfs *root, struct err *err)
{
	for (uint32_t i = 0; i < c->nbinds; i++) {
		const struct keeper_bind *b = &c->binds[i];
		struct stat st;
		auto_close int dir = reopen_dir(dirs[i], &st, err);
		int mnt;

		if (dir < 0)
			return -1;
		if (b->writable && c->class == KEEPER_CLASS_ROOT)
			return err_set(
				err, ERR_INVALID,
				"%s: a sandbox of the root class cannot have a writable bind",
				b->path);
		mnt = clone_for_guest(
			r, dir, &st, b->writable,
			(struct idmap_pair){ idmap->base + c->uid, idmap->base + c->gid }, err);
		if (mnt < 0)
			return err_ctx(err, "%s", b->path);
		add_bind(root, b->path, mnt);
	}
	return 0;
}

static int add_lowers(const struct root_source *r, const struct keeper_create *c,
		      const struct idmap *idmap, struct rootfs *root, struct err *err)
{
	if (add_layers(r, c, idmap, root, err) < 0)
		return -1;
	if (strcmp(c->template, "host") == 0)
		return add_host(r, idmap, root, err);
	if (strcmp(c->template, "empty") == 0)
		return add_empty(r, root, err);
	return add_template(r, c->template, idmap, root, err);
}

int root_open_prepare(const struct root_source *r, const struct keeper_create *c, const int *dirs,
		      const struct idmap *idmap, struct rootfs *ret, struct err *err)
{
	ret->owner = r->rootless ? 0 : idmap->base;
	ret->root_class = c->class == KEEPER_CLASS_ROOT;
	ret->rootless = r->rootless;
	memcpy(ret->hostname, c->hostname, sizeof(ret->hostname));
	memcpy(ret->workdir, c->workdir, sizeof(ret->workdir));
	ret->uid = idmap->base + c->uid;
	ret->gid = idmap->base + c->gid;
	if (add_lowers(r, c, idmap, ret, err) < 0)
		return -1;
	return add_binds(r, c, dirs, idmap, ret, err);
}
