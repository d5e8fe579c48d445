/* SPDX-License-Identifier: Apache-2.0 */
/* What lodge-init finds when it starts: descriptors at fixed places instead of arguments and an
 * environment. A place whose descriptor is closed means the host has no such thing. */
#ifndef LODGE_WIRE_BOOT_FDS_H
#define LODGE_WIRE_BOOT_FDS_H

enum boot_fd {
	BOOT_FD_LISTEN =
		3, /* listening SOCK_SEQPACKET, bound on the host before the root changed */
	BOOT_FD_CGROUP, /* cgroup v2 directory (a detached mount: ".." leads nowhere) in which
			   lodge-init makes one leaf per command */
	BOOT_FD_TASKS, /* v1 memory group's `tasks`, write-only: a command writes "0" */
	BOOT_FD_OOM, /* v1 memory.oom_control or v2 memory.events: a line "oom_kill N" */
	BOOT_FD_PIDS, /* pids.events: a line "max N" */
	BOOT_FD_LOCK, /* holds the sandbox's id range: kept open, never used */
	BOOT_FD_KEEPER, /* pidfd of who started it: looked at once, then closed */
	BOOT_FD_END,
};

/* lodge-init's own id inside the sandbox; never a guest's. */
enum { BOOT_INIT_ID = 65530 };

#endif
