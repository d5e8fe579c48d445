/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that a guest may make. All others fail: with EPERM below SYSCALLS_KNOWN except
 * for syscalls_absent, with ENOSYS from there on, so that newer C libraries fall back to older
 * calls.
 *
 * Left out on purpose: mount API old and new, namespaces (unshare, setns), bpf, perf, keyrings,
 * userfaultfd, io_uring, kexec, modules, handles, clocks, quotas, swap, accounting, ports and
 * segment descriptors, fanotify, process_madvise and other cross-process memory calls. */
#ifndef LODGE_RUNTIME_ISOLATE_SYSCALLS_H
#define LODGE_RUNTIME_ISOLATE_SYSCALLS_H

#include <sys/syscall.h>

/* Missing in the headers of Debian 12 or of its musl. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

/* Every number below was reviewed for this list. */
enum { SYSCALLS_KNOWN = 463 };

/* clang-format off */
static const short syscalls_allowed[] = {
	/* files and descriptors */
	SYS_read, SYS_write, SYS_open, SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_poll,
	SYS_lseek, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev,
	SYS_preadv2, SYS_pwritev2, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_pipe, SYS_pipe2,
	SYS_select, SYS_pselect6, SYS_ppoll, SYS_dup, SYS_dup2, SYS_dup3, SYS_sendfile, SYS_fcntl,
	SYS_flock, SYS_fsync, SYS_fdatasync, SYS_truncate, SYS_ftruncate, SYS_getdents,
	SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_rename, SYS_renameat, SYS_renameat2,
	SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_creat, SYS_link, SYS_linkat, SYS_unlink,
	SYS_unlinkat, SYS_symlink, SYS_symlinkat, SYS_readlink, SYS_readlinkat, SYS_chmod,
	SYS_fchmod, SYS_fchmodat, SYS_fchmodat2, SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat,
	SYS_umask, SYS_utime, SYS_utimes, SYS_utimensat, SYS_futimesat, SYS_mknod, SYS_mknodat,
	SYS_statfs, SYS_fstatfs, SYS_sync, SYS_syncfs, SYS_openat, SYS_newfstatat, SYS_statx,
	SYS_splice, SYS_tee, SYS_vmsplice, SYS_sync_file_range, SYS_fallocate, SYS_copy_file_range,
	SYS_close_range, SYS_readahead, SYS_fadvise64, SYS_cachestat, SYS_setxattr, SYS_lsetxattr,
	SYS_fsetxattr, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr,
	SYS_flistxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_epoll_create,
	SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2,
	SYS_eventfd, SYS_eventfd2, SYS_signalfd, SYS_signalfd4, SYS_timerfd_create,
	SYS_timerfd_settime, SYS_timerfd_gettime, SYS_inotify_init, SYS_inotify_init1,
	SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_memfd_create,
	/* memory */
	SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_mremap, SYS_msync, SYS_mincore,
	SYS_madvise, SYS_mlock, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_mlock2,
	SYS_membarrier, SYS_pkey_mprotect, SYS_pkey_alloc, SYS_pkey_free, SYS_remap_file_pages,
	SYS_mseal, SYS_get_mempolicy, SYS_set_mempolicy, SYS_mbind,
	/* processes, threads, signals */
	SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4,
	SYS_waitid, SYS_kill, SYS_tkill, SYS_tgkill, SYS_getpid, SYS_getppid, SYS_gettid,
	SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list, SYS_futex, SYS_futex_waitv,
	SYS_futex_wake, SYS_futex_wait, SYS_futex_requeue, SYS_rseq, SYS_arch_prctl,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
	SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_rt_sigsuspend,
	SYS_sigaltstack, SYS_pause, SYS_alarm, SYS_restart_syscall, SYS_ptrace,
	SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_send_signal,
	SYS_setpgid, SYS_getpgid, SYS_getpgrp, SYS_setsid, SYS_getsid, SYS_getuid, SYS_geteuid,
	SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_setuid,
	SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups,
	SYS_setfsuid, SYS_setfsgid, SYS_capget, SYS_capset, SYS_seccomp,
	SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self,
	/* scheduling and limits: the kernel refuses to raise any */
	SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam,
	SYS_sched_setparam, SYS_sched_getscheduler, SYS_sched_setscheduler, SYS_sched_getattr,
	SYS_sched_setattr, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
	SYS_sched_rr_get_interval, SYS_getpriority, SYS_setpriority, SYS_ioprio_get, SYS_ioprio_set,
	SYS_getrlimit, SYS_getrusage, SYS_times, SYS_getcpu,
	/* time */
	SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
	SYS_time, SYS_getitimer, SYS_setitimer, SYS_timer_create, SYS_timer_settime,
	SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete,
	/* sockets; socket(), socketpair() and setsockopt() are checked by their arguments */
	SYS_connect, SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
	SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_bind, SYS_listen, SYS_getsockname,
	SYS_getpeername, SYS_getsockopt,
	/* System V IPC and message queues of its own namespace */
	SYS_shmget, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_semget, SYS_semop, SYS_semctl,
	SYS_semtimedop, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink,
	SYS_mq_timedsend, SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr,
	/* information */
	SYS_uname, SYS_sysinfo, SYS_getrandom,
};

/* These fail with ENOSYS, so that programs such as databases fall back to ordinary reads and
 * writes. The contexts of io_setup count against fs.aio-max-nr of the whole host. */
static const short syscalls_absent[] = {
	SYS_io_setup, SYS_io_destroy, SYS_io_getevents, SYS_io_submit, SYS_io_cancel,
	SYS_io_pgetevents,
};
/* clang-format on */

#endif
