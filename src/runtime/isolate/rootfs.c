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
#include "runtime/linux_calls.h"

#define SECBIT_NO_SETUID_FIXUP_ (1 << 2)

void rootfs_close(struct rootfs *r)
{
	for (size_t i = 0; i < r->nlowers; i++)
		close(r->lowers[i]);
	for (size_t i = 0; i < r->nbinds; i++)
		close(r->binds[i].mnt);
	close_autop(&r->upper);
	*r = (struct rootfs)ROOTFS_NONE;
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

/* Each mount below a new /proc costs about 13 us. Only files that an unprivileged reader could
 * read, and settings that their mode does not protect, get one. Files that only the host's root can
 * open (kcore, kmsg, kpagecount, slabinfo, sysrq-trigger ...) need none: that id does not exist
 * inside, not even for root of the root class. */
static const char *const read_only[] = { "sys" };

static const char *const masked[] = {
	"acpi",	 "interrupts", "kallsyms",    "key-users", "keys",
	"locks", "pressure",   "sched_debug", "scsi",	   "timer_list",
};

/* Uses mount(2), because the new interface needs three system calls where mount(2) needs one. The
 * paths are safe: the names are constants, and no guest can reach the tree yet. */
static int make_read_only(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%s", name);
	if (mount(path, path, NULL, MS_BIND, NULL) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (mount(NULL, path, NULL,
		  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	return 0;
}

static int mask_entry(const char *name, const char *null, const char *empty)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%s", name);
	if (mount(null, path, NULL, MS_BIND, NULL) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTDIR)
		return -errno;
	return mount(empty, path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/* As PID 1 of the new pid namespace: mounts /proc at "proc" below the working directory, with
 * processes of other users hidden, kernel settings read-only, and files that describe or affect the
 * host masked. `null`: path of the null device; `empty`: of an empty directory. */
static int attach_proc(const char *null, const char *empty, struct err *err)
{
	static const struct mount_option options[] = { { "hidepid", "invisible" } };
	auto_close int mnt =
		mount_new("proc", options, hook_weak("hidepid") ? 0 : ARRAY_LEN(options),
			  SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC);
	int r;

	if (mnt < 0)
		return err_sys(err, -mnt, "mount proc");
	r = mount_attach(mnt, AT_FDCWD, "proc");
	if (r < 0)
		return err_sys(err, -r, "attach proc");
	for (size_t i = 0; i < ARRAY_LEN(read_only) && !hook_weak("procro"); i++) {
		r = make_read_only(read_only[i]);
		if (r < 0)
			return err_sys(err, -r, "/proc/%s read-only", read_only[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(masked) && !hook_weak("procmask"); i++) {
		r = mask_entry(masked[i], null, empty);
		if (r < 0)
			return err_sys(err, -r, "mask /proc/%s", masked[i]);
	}
	return 0;
}

int rootfs_enter_base(const struct devfs *dev, bool rootless, struct err *err)
{
	int r = devfs_attach(dev, rootless);

	return r < 0 ? err_sys(err, -r, "attach /dev") : attach_proc("dev/null", "empty", err);
}

/* The working directory becomes the root; the old root is no longer reachable in this namespace. */
int rootfs_pivot(struct err *err)
{
	if (sys_pivot_root(".", ".") < 0)
		return err_sys(err, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(err, errno, "detach the old root");
	if (chdir("/") < 0)
		return err_sys(err, errno, "chdir /");
	return 0;
}

/* Opens the directory `path` below `root` and creates missing parts. Refuses symbolic links. */
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

/* Runs before the binds are mounted, because nothing is created in directories of the host. Failure
 * to create the directory is not an error of the sandbox: a guest may have put a file in its place
 * or filled the disk. Commands in that directory fail later. */
static int make_workdir(const struct rootfs *r, int root)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	auto_close int dir = *r->workdir ? sys_openat2(root, r->workdir, &how) : -1;

	if (!*r->workdir || dir >= 0 || errno != ENOENT)
		return 0;
	dir = open_target(root, r->workdir);
	if (dir < 0 || r->rootless) /* rootless: only one user exists */
		return 0;
	return fchownat(dir, "", r->uid, r->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int move_to_root(const char *from, int root, const char *to)
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

/* The overlay writes to the upper layer with the credentials of the process that mounted it. Its id
 * must be mapped there, so rootfs_enter() mounts as the sandbox's root; otherwise the mount would
 * silently be read-only. */
static int mount_overlay(const struct rootfs *r, struct err *err)
{
	char lowerdir[256]; /* maximum of one option; ROOTFS_LOWERS_MAX times "l/47:" fits */
	struct mount_option options[] = {
		{ "source", "lodge" },	{ "lowerdir", lowerdir },
		{ "upperdir", "up/u" }, { "workdir", "up/w" },
		{ "metacopy", "off" },	{ "redirect_dir", r->rootless ? "nofollow" : "off" },
		{ "index", "off" },	{ "userxattr", NULL },
	};
	uint64_t attr = SYS_ATTR_NODEV;
	auto_close int mnt = -1;
	int res;

	if (!r->root_class && !hook_weak("nosuid"))
		attr |= SYS_ATTR_NOSUID;
	if (attach_layers(r, lowerdir, sizeof(lowerdir), err) < 0)
		return -1;
	mnt = mount_new("overlay", options, ARRAY_LEN(options) - !r->rootless, attr);
	if (mnt < 0)
		return err_sys(err, -mnt, "mount overlay");
	res = mount_attach(mnt, AT_FDCWD, "new");
	return res < 0 ? err_sys(err, -res, "attach overlay") : 0;
}

/* Locks and watches work on inodes. Through an overlay the sandbox has its own inodes, so it
 * neither sees nor blocks locks of the host. An overlay without an upper layer needs two lower
 * layers, hence the empty one. */
static int mount_lower_overlay(const struct rootfs *r, int layer, size_t at)
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
	overlay = mount_lower_overlay(r, b->mnt, at);
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
	res = move_to_root("proc", root, "proc");
	if (res == 0)
		res = move_to_root("dev", root, "dev");
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
	/* without a UTS namespace of its own, this would change the host's name */
	if (*r->hostname && !hook_weak("utsns") &&
	    sethostname(r->hostname, strlen(r->hostname)) < 0)
		return err_sys(err, errno, "hostname");
	return rootfs_pivot(err);
}
