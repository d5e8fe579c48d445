/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of lodge-init when it starts, at fixed numbers instead of arguments and an
 * environment. A number without an open descriptor means that the host lacks this feature. */
#ifndef LODGE_WIRE_BOOT_FDS_H
#define LODGE_WIRE_BOOT_FDS_H

enum boot_fd {
	BOOT_FD_LISTEN = 3, /* listening SOCK_SEQPACKET, bound before the change of root */
	BOOT_FD_CGROUP, /* cgroup v2 directory in which lodge-init makes one cgroup per command; a
			   detached mount, so that ".." does not leave it */
	BOOT_FD_TASKS, /* v1 memory group's `tasks`, write-only: a command writes "0" */
	BOOT_FD_OOM, /* v1 memory.oom_control or v2 memory.events: a line "oom_kill N" */
	BOOT_FD_PIDS, /* pids.events: a line "max N" */
	BOOT_FD_LOCK, /* the lock of the sandbox's id range: stays open, never used */
	BOOT_FD_KEEPER, /* pidfd of the keeper: polled once, then closed */
	BOOT_FD_END,
};

/* The uid and gid of lodge-init inside the sandbox; never those of a guest. */
enum { BOOT_INIT_ID = 65530 };

/* oom_score_adj of every process of a sandbox: if the host runs out of memory, the kernel kills
 * sandboxes before the service. */
enum { BOOT_OOM_SCORE = 500 };

#endif
