/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of lodge-init share. One thread, one loop, tables of fixed size: PID 1 of a
 * sandbox must neither grow nor fail because a guest or an engine wants it to. */
#ifndef LODGE_INIT_CORE_INIT_STATE_H
#define LODGE_INIT_CORE_INIT_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/agent_proto.h"
#include "wire/boot_fds.h"

enum {
	INIT_GROUPS_MAX = 32,
	INIT_TEXT_SIZE = 4096, /* per record: argv as AGENT_PROC shows it, a job's sentence */
	INIT_MESSAGE_SIZE = 512, /* the end of it */
	INIT_CWD_SIZE = 256, /* before that: where it ran, "" if that is longer */
	INIT_GRACE_MS = 100, /* for output that comes after the end of the command */
	INIT_STUCK_MS = 30 * 1000, /* a peer that takes nothing for so long is given up */
	INIT_EXEC_WAIT_MS = 2000, /* a child that was not replaced by its program by then */
	INIT_KILLS_MAX = 50, /* of what is left of a command that timed out */
	INIT_TEMPS_MAX = 64,
	INIT_KEPT_BYTES = 64 << 20, /* of output, by commands that ended and are not forgotten */
};

/* Who a file operation or a command runs as. */
struct cred {
	uint32_t uid, gid;
	uint32_t ngroups;
	uint32_t groups[INIT_GROUPS_MAX];
};

/* Set by AGENT_BIND, constant afterwards. */
struct binding {
	bool bound;
	bool one_id, root_class;
	bool cgroup; /* BOOT_FD_CGROUP is there and can be used */
	bool tasks; /* BOOT_FD_TASKS is there */
	bool oom, pids;
	bool pid1;
	struct agent_bind b;
};
extern struct binding init_binding;

#endif
