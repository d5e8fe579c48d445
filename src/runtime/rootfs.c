/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/hook.h"
#include "runtime/dev.h"
#include "runtime/mount.h"
#include "runtime/procfs.h"
#include "runtime/sys.h"

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
	for (unsigned i = 0; i < KEEPER_LAYERS_MAX; i++) {
		snprintf(name, sizeof(name), "l/%u", i);
		if (mkdirat(base, name, 0755) < 0)
			return -errno;
	}
	r = mount_set(mnt, SYS_ATTR_RDONLY, -1);
	return r < 0 ? r : steal_fd(&base);
}

int rootfs_host_init(int scratch, bool rootless, struct err *err)
{
	auto_close int base = make_base(scratch);
	struct stat st;
	int r;

	if (base < 0)
		return err_sys(err, -base, "base tree");
	r = dev_build(scratch, rootless);
	if (r < 0)
		return err_sys(err, -r, "/dev tree");
	if (fstatat(scratch, "dev/null", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(1, 3))
		return err_set(err, ERR_INTERNAL, "/dev/null is not the null device");
	return fchdir(base) < 0 ? err_sys(err, errno, "base tree") : 0;
}

int rootfs_enter_base(gid_t tty_gid, struct err *err)
{
	int r;

	if (procfs_attach("../dev/null", "empty", err) < 0)
		return -1;
	r = dev_attach("../dev", tty_gid);
	return r < 0 ? err_sys(err, -r, "attach /dev") : 0;
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
	char lowerdir[KEEPER_LAYERS_MAX * 8];
	struct mount_option options[] = {
		{ "source", "lodge" },	 { "lowerdir", lowerdir },
		{ "upperdir", "up/u" },	 { "workdir", "up/w" },
		{ "metacopy", "off" },	 { "redirect_dir", r->rootless ? "nofollow" : "off" },
		{ "index", "off" },	 { "userxattr", NULL },
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

static int attach_binds(const struct rootfs *r, int root, struct err *err)
{
	for (size_t i = 0; i < r->nbinds; i++) {
		const struct rootfs_bind *b = &r->binds[i];
		auto_close int target = open_target(root, b->path);
		int res = target < 0 ? target : mount_attach(b->mnt, target, "");

		if (res < 0 && !b->optional)
			return err_sys(err, -res, "mount at %s", b->path);
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
	if (*r->hostname && sethostname(r->hostname, strlen(r->hostname)) < 0)
		return err_sys(err, errno, "hostname");
	return pivot_here(err);
}
