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
		r = mask_entry(masked[i], null, empty);
		if (r < 0)
			return err_sys(err, -r, "mask /proc/%s", masked[i]);
	}
	return 0;
}
