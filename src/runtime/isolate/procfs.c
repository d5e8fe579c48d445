/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"

/* Each mount on a fresh proc costs about 13 us, so only what an unprivileged reader would see, or a
 * setting whose file mode is not enough, gets one. Whatever belongs to the host's root and is
 * closed to others (kcore, kmsg, kpagecount, slabinfo, sysrq-trigger ...) needs none: that id does
 * not exist inside, for a root inside neither. */
static const char *const read_only[] = { "sys" };

static const char *const masked[] = {
	"acpi",	 "interrupts", "kallsyms",    "key-users", "keys",
	"locks", "pressure",   "sched_debug", "scsi",	   "timer_list",
};

/* mount(2) needs one system call where the new interface needs three, and there are two dozen of
 * these; the names are ours and the tree is not in anybody's reach yet. */
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

static int mask(const char *name, const char *null, const char *empty)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%s", name);
	if (mount(null, path, NULL, MS_BIND, NULL) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTDIR)
		return -errno;
	return mount(empty, path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int procfs_attach(const char *null, const char *empty, struct err *err)
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
		r = mask(masked[i], null, empty);
		if (r < 0)
			return err_sys(err, -r, "mask /proc/%s", masked[i]);
	}
	return 0;
}
