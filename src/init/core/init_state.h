/* SPDX-License-Identifier: Apache-2.0 */
/* State and limits of lodge-init. One thread, one loop, tables of fixed size: neither a guest nor
 * an engine can make PID 1 grow or fail. */
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
	INIT_TEXT_SIZE = 4096, /* per record: argv, working directory, error of a file job */
	INIT_MESSAGE_SIZE = 512, /* its last part: the error */
	INIT_CWD_SIZE = 256, /* before that: the working directory, "" if longer */
	INIT_GRACE_MS = 100, /* for output that children write after the command ended */
	INIT_STUCK_MS = 30 * 1000, /* a peer that reads nothing for this long is disconnected */
	INIT_EXEC_WAIT_MS = 2000, /* for a child to exec its program */
	INIT_KILLS_MAX = 50, /* attempts to kill what is left of a timed-out command */
	INIT_TEMPS_MAX = 64,
	INIT_KEPT_BYTES = 64 << 20, /* output of commands that ended and are not forgotten, if the
				       share of the sandbox is not less */
};

/* The user of a file operation or a command. */
struct cred {
	uint32_t uid, gid;
	uint32_t ngroups;
	uint32_t groups[INIT_GROUPS_MAX];
};

/* Set by AGENT_BIND, constant afterwards. */
struct binding {
	bool bound;
	bool one_id, root_class;
	bool cgroup; /* BOOT_FD_CGROUP is usable */
	bool tasks; /* BOOT_FD_TASKS is open */
	bool oom, pids;
	bool pid1;
	struct agent_bind b;
};
extern struct binding init_binding;

#endif
