/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/hook.h"
#include "runtime/mount.h"
#include "runtime/sys.h"

static const char *const read_only[] = { "sys", "bus", "fs", "irq", "sysrq-trigger" };

static const char *const masked[] = {
	"acpi",	    "asound",	 "config.gz",	"driver",   "interrupts", "kallsyms",
	"kcore",    "keys",	 "key-users",	"kmsg",	    "kpagecgroup", "kpagecount",
	"kpageflags", "latency_stats", "modules", "mtrr",  "pressure",	  "sched_debug",
	"schedstat", "scsi",	 "slabinfo",	"softirqs", "swaps",	 
	"timer_list", "timer_stats", "tty",	"vmallocinfo", "zoneinfo",
};

static int make_read_only(int proc, const char *name)
{
	auto_close int mnt = mount_clone(proc, name, SYS_ATTR_RDONLY, -1);

	if (mnt == -ENOENT)
		return 0;
	return mnt < 0 ? mnt : mount_attach(mnt, proc, name);
}

static int mask(int proc, const char *name, const char *null, const char *empty)
{
	auto_close int mnt = -1;
	struct stat st;

	if (fstatat(proc, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	mnt = mount_clone(AT_FDCWD, S_ISDIR(st.st_mode) ? empty : null, SYS_ATTR_RDONLY, -1);
	return mnt < 0 ? mnt : mount_attach(mnt, proc, name);
}

int procfs_attach(const char *null, const char *empty, struct err *err)
{
	static const struct mount_option options[] = { { "hidepid", "invisible" } };
	auto_close int mnt = mount_new("proc", options, hook_weak("hidepid") ? 0 : ARRAY_LEN(options),
				       SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC);
	auto_close int proc = -1;
	int r;

	if (mnt < 0)
		return err_sys(err, -mnt, "mount proc");
	r = mount_attach(mnt, AT_FDCWD, "proc");
	if (r < 0)
		return err_sys(err, -r, "attach proc");
	proc = open("proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return err_sys(err, errno, "open proc");
	for (size_t i = 0; i < ARRAY_LEN(read_only) && !hook_weak("procro"); i++) {
		r = make_read_only(proc, read_only[i]);
		if (r < 0)
			return err_sys(err, -r, "/proc/%s read-only", read_only[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(masked) && !hook_weak("procmask"); i++) {
		r = mask(proc, masked[i], null, empty);
		if (r < 0)
			return err_sys(err, -r, "mask /proc/%s", masked[i]);
	}
	return 0;
}
