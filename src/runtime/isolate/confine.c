/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "runtime/linux_calls.h"
#include "wire/boot_fds.h"

#define BIT(cap) (1ull << (cap))

/* lodge-init keeps these to start commands as another user and to kill them. */
#define USER_CAPS (BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL))
/* The capabilities of root inside: SECURITY.md, "Two classes". */
#define ROOT_CAPS                                                                                  \
	(USER_CAPS | BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |  \
	 BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT))

/* A write with CAP_SYS_RESOURCE of the host also sets the minimum, which processes inherit and no
 * guest can lower. Does not change the keeper, whose memory the child shares until exec. */
int confine_oom_score(void)
{
	int r = hook_weak("oomscore") ? 0
				      : file_printf_at(AT_FDCWD, "/proc/self/oom_score_adj", "%d",
						       BOOT_OOM_SCORE);

	return r == -EACCES ? 0 : r; /* rootless: lodge-init tries again */
}

/* If kernel.core_pattern is a pipe, the kernel starts that program on the host for every crash,
 * whatever the limit is; only the limit 1 prevents it. If it is a file, none is written, because a
 * core has at least one page. The filter keeps guests from changing the limit. */
static int confine_core(void)
{
	const struct rlimit one = { 1, 1 };

	if (setrlimit(RLIMIT_CORE, &one) < 0 && errno != EPERM) /* EPERM: rootless, and it was 0 */
		return -errno;
	return 0;
}

int confine_rlimits(void)
{
	static const struct {
		int what;
		rlim_t max;
	} bounds[] = {
		{ RLIMIT_MEMLOCK, 64 << 10 }, { RLIMIT_MSGQUEUE, 800 << 10 },
		{ RLIMIT_SIGPENDING, 4096 },  { RLIMIT_NICE, 0 },
		{ RLIMIT_RTPRIO, 0 },	      { RLIMIT_NOFILE, 65536 },
	};

	if (hook_weak("rlimits"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		struct rlimit now;

		if (getrlimit(bounds[i].what, &now) < 0)
			return -errno;
		if (now.rlim_max > bounds[i].max)
			now.rlim_max = bounds[i].max;
		now.rlim_cur = now.rlim_max;
		if (setrlimit(bounds[i].what, &now) < 0)
			return -errno;
	}
	return confine_core();
}

int confine_userns(int userns)
{
	if (hook_weak("userns"))
		return 0;
	return setns(userns, CLONE_NEWUSER) < 0 ? -errno : 0;
}

int confine_seccomp(const struct seccomp_prog *filter, bool root_class)
{
	/* In the root class set-id programs must work, so no_new_privs is not set; the filter is
	 * installed with CAP_SYS_ADMIN of the user namespace, which confine_caps() drops
	 * afterwards. */
	if (!root_class && !hook_weak("nnp") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return hook_weak("seccomp") ? 0 : seccomp_install(filter);
}

int confine_ids(uid_t id, bool rootless)
{
	if (!rootless && syscall(SYS_setgroups, 0, NULL) < 0)
		return -errno;
	if (syscall(SYS_setresgid, id, id, id) < 0 || syscall(SYS_setresuid, id, id, id) < 0)
		return -errno;
	return 0;
}

static int set_caps(unsigned long long permitted, unsigned long long inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ (unsigned)permitted, (unsigned)permitted, (unsigned)inheritable },
		{ (unsigned)(permitted >> 32), (unsigned)(permitted >> 32),
		  (unsigned)(inheritable >> 32) },
	};

	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int drop_bounding(unsigned long long keep)
{
	for (int cap = 0; cap < 64; cap++) {
		if (keep & BIT(cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -errno; /* EINVAL: after the last capability */
	}
	return 0;
}

static int raise_ambient(unsigned long long keep)
{
	for (int cap = 0; cap < 64; cap++)
		if ((keep & BIT(cap)) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}

/* exec as an ordinary user clears all capability sets except the ambient one. The ambient set
 * passes the kept capabilities to lodge-init, which clears it at once. Only capabilities of the
 * bounding set can become inheritable, so the bounding set is reduced last; that needs CAP_SETPCAP,
 * which the last set_caps() drops. */
int confine_caps(bool root_class, bool rootless)
{
	unsigned long long keep = rootless ? 0 : root_class ? ROOT_CAPS : USER_CAPS;
	int r;

	if (hook_weak("caps")) {
		/* weakened test build: keep everything, and lodge-init passes it on */
		keep = 0;
		for (int cap = 0; cap < 64; cap++)
			keep |= prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 ? BIT(cap) : 0;
		r = set_caps(keep, keep);
		return r < 0 ? r : raise_ambient(keep);
	}
	r = set_caps(keep | BIT(CAP_SETPCAP), keep);
	if (r == 0)
		r = raise_ambient(keep);
	if (r == 0)
		r = drop_bounding(root_class ? ROOT_CAPS : 0);
	return r < 0 ? r : set_caps(keep, keep);
}

int confine_fds(int *fds, size_t count, int keep_null)
{
	/* Move all to high numbers first, so that none is overwritten before it is moved. */
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		fds[i] = fcntl(fds[i], F_DUPFD, 100);
		if (fds[i] < 0) /* EINVAL: the number is above RLIMIT_NOFILE */
			return errno == EINVAL ? -EMFILE : -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(keep_null, i) < 0)
			return -errno;
	for (size_t i = 0; i < count; i++) {
		int number = BOOT_FD_LISTEN + (int)i;

		if (fds[i] < 0)
			close(number);
		else if (dup2(fds[i], number) < 0)
			return -errno;
	}
	return 0;
}
