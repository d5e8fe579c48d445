/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "runtime/mount.h"
#include "runtime/isolate/procfs.h"
#include "runtime/linux_calls.h"

#define SECBIT_NO_SETUID_FIXUP_ (1 << 2)

void rootfs_init(struct rootfs *r)
{
	memset(r, 0, sizeof(*r));
	r->upper = -1;
}

void rootfs_close(struct rootfs *r)
{
	for (size_t i = 0; i < r->nlowers; i++)
		close(r->lowers[i]);
	for (size_t i = 0; i < r->nbinds; i++)
		close(r->binds[i].mnt);
	if (r->upper >= 0)
		close(r->upper);
	rootfs_init(r);
}

static int make_base(int scratch)
{
	static const struct mount_option options[] = { { "size", "64k" }, { "mode", "0755" } };
	static const char *const dirs[] = { "proc", "dev", "new", "up", "l", "empty" };
	auto_close int mnt =
		mount_new("tmpfs", options, ARRAY_LEN(options), SYS_ATTR_NOSUID | SYS_ATTR_NODEV);
	auto_close int base = -1;
	char name[16];
	int r;

	if (mnt < 0)
		return mnt;
	r = mount_attach(mnt, scratch, "base");
	base = r < 0 ? -1 : openat(scratch, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return r < 0 ? r : -errno;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(base, dirs[i], 0755) < 0)
			return -errno;
	for (unsigned i = 0; i < ROOTFS_LOWERS_MAX + ROOTFS_BINDS_MAX; i++) {
		snprintf(name, sizeof(name), "l/%u", i);
		if (mkdirat(base, name, 0755) < 0)
			return -errno;
	}
	r = mount_set(mnt, SYS_ATTR_RDONLY, -1);
	return r < 0 ? r : steal_fd(&base);
}

int rootfs_host_init(int scratch, struct err *err)
{
	auto_close int base = make_base(scratch);

	if (base < 0)
		return err_sys(err, -base, "base tree");
	return fchdir(base) < 0 ? err_sys(err, errno, "base tree") : 0;
}

int rootfs_enter_base(const struct devfs *dev, bool rootless, struct err *err)
{
	int r = devfs_attach(dev, rootless);

	return r < 0 ? err_sys(err, -r, "attach /dev") : procfs_attach("dev/null", "empty", err);
}

/* The working directory becomes the root; all that was there before is gone from this namespace. */
static int pivot_here(struct err *err)
{
	if (sys_pivot_root(".", ".") < 0)
		return err_sys(err, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(err, errno, "detach the old root");
	if (chdir("/") < 0)
		return err_sys(err, errno, "chdir /");
	return 0;
}

int rootfs_pivot_base(struct err *err)
{
	return pivot_here(err);
}

/* The directory `path` below `root`, made where missing; a link on the way is refused. */
static int open_target(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	auto_close int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char copy[KEEPER_PATH_SIZE], *save;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		int next = dir < 0 ? -1 : sys_openat2(dir, part, &how);

		if (next < 0 && errno == ENOENT && mkdirat(dir, part, 0755) == 0)
			next = sys_openat2(dir, part, &how);
		if (next < 0)
			return -errno;
		close(dir);
		dir = next;
	}
	return steal_fd(&dir);
}

/* Below the mounts, which come later: what lies in them is not ours to make. Where it cannot be,
 * because a guest put something else in its place or filled the disk, who wants to work there is
 * told; it is no reason to have no sandbox. */
static int make_workdir(const struct rootfs *r, int root)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	auto_close int dir = *r->workdir ? sys_openat2(root, r->workdir, &how) : -1;

	if (!*r->workdir || dir >= 0 || errno != ENOENT)
		return 0;
	dir = open_target(root, r->workdir);
	if (dir < 0 || r->rootless) /* there is only one user then */
		return 0;
	return fchownat(dir, "", r->uid, r->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int move_here(const char *from, int root, const char *to)
{
	auto_close int target = open_target(root, to);

	if (target < 0)
		return target;
	if (sys_move_mount(AT_FDCWD, from, target, "", SYS_MOVE_T_EMPTY) < 0)
		return -errno;
	return 0;
}

static int attach_layers(const struct rootfs *r, char *lowerdir, size_t size, struct err *err)
{
	size_t n = 0;
	char name[16];
	int res;

	for (size_t i = 0; i < r->nlowers; i++) {
		snprintf(name, sizeof(name), "l/%zu", i);
		res = mount_attach(r->lowers[i], AT_FDCWD, name);
		if (res < 0)
			return err_sys(err, -res, "layer %zu", i);
		n += (size_t)snprintf(lowerdir + n, size - n, "%s%s", i ? ":" : "", name);
	}
	res = mount_attach(r->upper, AT_FDCWD, "up");
	return res < 0 ? err_sys(err, -res, "upper layer") : 0;
}

/* The overlay remembers who mounted it and writes to the upper layer as that one, whose id must be
 * mapped there: the sandbox's root, or the mount silently comes up read-only. */
static int mount_overlay(const struct rootfs *r, struct err *err)
{
	char lowerdir[256]; /* what one option may hold: ROOTFS_LOWERS_MAX times "l/32:" fit */
	struct mount_option options[] = {
		{ "source", "lodge" },	{ "lowerdir", lowerdir },
		{ "upperdir", "up/u" }, { "workdir", "up/w" },
		{ "metacopy", "off" },	{ "redirect_dir", r->rootless ? "nofollow" : "off" },
		{ "index", "off" },	{ "userxattr", NULL },
	};
	uint64_t attr = SYS_ATTR_NODEV;
	int mnt;

	if (!r->root_class && !hook_weak("nosuid"))
		attr |= SYS_ATTR_NOSUID;
	if (attach_layers(r, lowerdir, sizeof(lowerdir), err) < 0)
		return -1;
	mnt = mount_new("overlay", options, ARRAY_LEN(options) - !r->rootless, attr);
	if (mnt < 0)
		return err_sys(err, -mnt, "mount overlay");
	{
		auto_close int owned = mnt;
		int res = mount_attach(owned, AT_FDCWD, "new");

		return res < 0 ? err_sys(err, -res, "attach overlay") : 0;
	}
}

/* Locks and watches work on inodes: through an overlay the sandbox has inodes of its own, and
 * neither sees nor holds anything of the host's. A lower layer alone makes no overlay, hence the
 * empty second one. */
static int overlay_alone(const struct rootfs *r, int layer, size_t at)
{
	char name[16], lowerdir[32];
	const struct mount_option options[] = { { "source", "lodge" },
						{ "lowerdir", lowerdir },
						{ "userxattr", NULL } };
	int res;

	snprintf(name, sizeof(name), "l/%zu", at);
	snprintf(lowerdir, sizeof(lowerdir), "%s:empty", name);
	res = mount_attach(layer, AT_FDCWD, name);
	if (res < 0)
		return res;
	return mount_new("overlay", options, ARRAY_LEN(options) - !r->rootless,
			 SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NODEV);
}

static int attach_bind(const struct rootfs *r, const struct rootfs_bind *b, int root, size_t at)
{
	auto_close int target = open_target(root, b->path);
	auto_close int overlay = -1;

	if (target < 0)
		return target;
	if (!b->own_inodes)
		return mount_attach(b->mnt, target, "");
	overlay = overlay_alone(r, b->mnt, at);
	return overlay < 0 ? overlay : mount_attach(overlay, target, "");
}

static int attach_binds(const struct rootfs *r, int root, struct err *err)
{
	for (size_t i = 0; i < r->nbinds; i++) {
		int res = attach_bind(r, &r->binds[i], root, ROOTFS_LOWERS_MAX + i);

		if (res < 0)
			return err_sys(err, -res, "mount at %s", r->binds[i].path);
	}
	return 0;
}

static int build_root(const struct rootfs *r, struct err *err)
{
	auto_close int root = -1;
	int res;

	if (mount_overlay(r, err) < 0)
		return -1;
	root = open("new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_sys(err, errno, "open the new root");
	res = make_workdir(r, root);
	if (res < 0)
		return err_sys(err, -res, "make %s", r->workdir);
	res = move_here("proc", root, "proc");
	if (res == 0)
		res = move_here("dev", root, "dev");
	if (res < 0)
		return err_sys(err, -res, "move /proc and /dev");
	if (attach_binds(r, root, err) < 0)
		return -1;
	return fchdir(root) < 0 ? err_sys(err, errno, "enter the new root") : 0;
}

int rootfs_enter(const struct rootfs *r, struct err *err)
{
	int res;

	if (!r->rootless && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP_, 0, 0, 0) < 0)
		return err_sys(err, errno, "securebits");
	(void)setfsgid(r->owner);
	(void)setfsuid(r->owner);
	res = build_root(r, err);
	(void)setfsuid(0);
	(void)setfsgid(0);
	if (res < 0)
		return -1;
	/* without a namespace of its own it would be the host's name */
	if (*r->hostname && !hook_weak("utsns") &&
	    sethostname(r->hostname, strlen(r->hostname)) < 0)
		return err_sys(err, errno, "hostname");
	return pivot_here(err);
}
