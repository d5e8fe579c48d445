/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of system calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/local/doctor.h"

static int probe_kernel(int arg, char detail[DOCTOR_TEXT])
{
	struct utsname u;

	(void)arg;
	if (uname(&u) < 0)
		return -errno;
	snprintf(detail, DOCTOR_TEXT, "%s %s %s", u.sysname, u.release, u.machine);
	return 0;
}

static int probe_pidfd(int arg, char detail[DOCTOR_TEXT])
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)arg;
	(void)detail;
	if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0)
		return -errno;
	return 0;
}

static int probe_clone3(int arg, char detail[DOCTOR_TEXT])
{
	int fd = -1, status;
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .pidfd = (uint64_t)(uintptr_t)&fd,
				   .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	(void)arg;
	(void)detail;
	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(0);
	return waitpid((pid_t)pid, &status, 0) < 0 ? -errno : 0;
}

static int probe_openat2(int arg, char detail[DOCTOR_TEXT])
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };

	(void)arg;
	(void)detail;
	return syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)) < 0 ? -errno : 0;
}

static int probe_close_range(int arg, char detail[DOCTOR_TEXT])
{
	(void)arg;
	(void)detail;
	return syscall(SYS_close_range, ~0u - 1, ~0u, 0) < 0 ? -errno : 0;
}

static int probe_seccomp(int arg, char detail[DOCTOR_TEXT])
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	(void)arg;
	(void)detail;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

static int probe_landlock(int arg, char detail[DOCTOR_TEXT])
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* returns the version */);

	(void)arg;
	if (abi < 0)
		return -errno;
	snprintf(detail, DOCTOR_TEXT, "version %ld", abi);
	return 0;
}

/* Runs /bin/true from a sealed memfd, as lodge-init is started. */
static int probe_memfd(int arg, char detail[DOCTOR_TEXT])
{
	char name[] = "true", *argv[] = { name, NULL }, *envp[] = { NULL };
	auto_close int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("lodge-doctor", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct stat st;

	(void)arg;
	(void)detail;
	if (from < 0 || fd < 0 || fstat(from, &st) < 0)
		return -errno;
	while (lseek(from, 0, SEEK_CUR) < st.st_size)
		if (sendfile(fd, from, NULL, (size_t)st.st_size) <= 0)
			return -EIO;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	return -errno;
}

#define ADVICE "upgrade the kernel to 5.19 or newer (Debian 12 and later)"

const struct doctor_check doctor_kernel[] = {
	{ "kernel", DOCTOR_NEEDED, probe_kernel, 0, ADVICE },
	{ "clone3", DOCTOR_NEEDED, probe_clone3, 0, ADVICE },
	{ "pidfd", DOCTOR_NEEDED, probe_pidfd, 0, ADVICE },
	{ "openat2", DOCTOR_NEEDED, probe_openat2, 0, ADVICE },
	{ "close_range", DOCTOR_NEEDED, probe_close_range, 0, ADVICE },
	{ "seccomp filter", DOCTOR_NEEDED, probe_seccomp, 0,
	  "use a kernel with CONFIG_SECCOMP_FILTER; in a container, allow seccomp(2)" },
	{ "sealed memfd, execveat", DOCTOR_NEEDED, probe_memfd, 0, "sysctl -w vm.memfd_noexec=0" },
	{ "landlock", DOCTOR_OPTIONAL, probe_landlock, 0,
	  "add landlock to the kernel parameter lsm=; without it, command policies are advisory" },
	{ NULL },
};
