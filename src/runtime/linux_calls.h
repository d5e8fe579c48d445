/* SPDX-License-Identifier: Apache-2.0 */
/* System calls for which musl has no wrapper. Like those of the C library, they return -1 and set
 * errno. */
#ifndef LODGE_RUNTIME_LINUX_CALLS_H
#define LODGE_RUNTIME_LINUX_CALLS_H

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the system call filter and sandbox_spawn() support only x86_64"
#endif

/* From <linux/mount.h>, which conflicts with <sys/mount.h> in some C libraries. */
#define SYS_OPEN_TREE_CLONE 1u
#define SYS_MOVE_F_EMPTY 0x4u
#define SYS_MOVE_T_EMPTY 0x40u
#define SYS_FSCONFIG_FLAG 0u
#define SYS_FSCONFIG_STRING 1u
#define SYS_FSCONFIG_CREATE 6u
#define SYS_FSCONFIG_RECONFIGURE 7u
#define SYS_ATTR_RDONLY 0x1ull
#define SYS_ATTR_NOSUID 0x2ull
#define SYS_ATTR_NODEV 0x4ull
#define SYS_ATTR_NOEXEC 0x8ull
#define SYS_ATTR_NOATIME 0x10ull
#define SYS_ATTR_IDMAP 0x100000ull

struct sys_mount_attr {
	uint64_t set, clr, propagation, userns_fd;
};

static inline int sys_open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags | O_CLOEXEC);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path,
				 unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned flags,
				    struct sys_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof(*attr));
}

static inline int sys_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, 1u /* FSOPEN_CLOEXEC */);
}

/* `dir` is the root of a mount. */
static inline int sys_fspick(int dir)
{
	return (int)syscall(SYS_fspick, dir, "", 0x1u /* FSPICK_CLOEXEC */ | 0x8u /* EMPTY_PATH */);
}

static inline int sys_fsconfig(int fs, unsigned cmd, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fs, cmd, key, value, 0);
}

static inline int sys_fsmount(int fs, uint64_t attr)
{
	return (int)syscall(SYS_fsmount, fs, 1u /* FSMOUNT_CLOEXEC */, attr);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int dir, const char *path, struct open_how *how)
{
	return (int)syscall(SYS_openat2, dir, path, how, sizeof(*how));
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int sys_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int signo)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

/* The child of a CLONE_VM | CLONE_VFORK clone3 runs on the caller's own stack while the caller is
 * suspended, as with vfork(2): it must not return from the function this is inlined into. */
static inline __attribute__((always_inline)) long sys_clone3_inline(struct clone_args *args)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args))
			 : "rcx", "r11", "memory");
	return ret;
}

#endif
