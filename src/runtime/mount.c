/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mount.h"

#include <errno.h>
#include <fcntl.h>

#include "base/auto.h"
#include "runtime/linux_calls.h"

static int configure(int fs, const struct mount_option *options, size_t count, unsigned finish)
{
	for (size_t i = 0; i < count; i++) {
		unsigned cmd = options[i].value ? SYS_FSCONFIG_STRING : SYS_FSCONFIG_FLAG;

		if (sys_fsconfig(fs, cmd, options[i].key, options[i].value) < 0)
			return -errno;
	}
	return sys_fsconfig(fs, finish, NULL, NULL) < 0 ? -errno : 0;
}

int mount_new(const char *type, const struct mount_option *options, size_t count, uint64_t attr)
{
	auto_close int fs = sys_fsopen(type);
	int r = fs < 0 ? -errno : configure(fs, options, count, SYS_FSCONFIG_CREATE);

	if (r < 0)
		return r;
	r = sys_fsmount(fs, attr);
	return r < 0 ? -errno : r;
}

int mount_reconfigure(int dir, const struct mount_option *options, size_t count)
{
	auto_close int fs = sys_fspick(dir);

	return fs < 0 ? -errno : configure(fs, options, count, SYS_FSCONFIG_RECONFIGURE);
}

static int set_attr(int mnt, unsigned flags, uint64_t attr, int userns)
{
	/* later mounts of the host must not propagate into the sandbox */
	struct sys_mount_attr a = { .set = attr, .propagation = 1u << 18 /* MS_PRIVATE */ };

	if (userns >= 0) {
		a.set |= SYS_ATTR_IDMAP;
		a.userns_fd = (uint64_t)userns;
	}
	return sys_mount_setattr(mnt, "", flags | AT_EMPTY_PATH, &a) < 0 ? -errno : 0;
}

int mount_set(int mnt, uint64_t attr, int userns)
{
	return set_attr(mnt, 0, attr, userns);
}

static int clone_with(int dir, const char *path, unsigned flags, uint64_t attr, int userns)
{
	auto_close int mnt = sys_open_tree(dir, path, SYS_OPEN_TREE_CLONE | AT_EMPTY_PATH | flags);
	int r;

	if (mnt < 0)
		return -errno;
	r = set_attr(mnt, flags, attr, userns);
	return r < 0 ? r : steal_fd(&mnt);
}

int mount_clone(int dir, const char *path, uint64_t attr, int userns)
{
	return clone_with(dir, path, 0, attr, userns);
}

int mount_clone_all(int dir, const char *path, uint64_t attr)
{
	return clone_with(dir, path, AT_RECURSIVE, attr, -1);
}

int mount_attach(int mnt, int dir, const char *path)
{
	unsigned flags = SYS_MOVE_F_EMPTY | (*path ? 0 : SYS_MOVE_T_EMPTY);

	return sys_move_mount(mnt, "", dir, path, flags) < 0 ? -errno : 0;
}
