/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of lodge-init's socket, and the other end, which the test uses. */
#ifndef LODGE_TESTS_AGENT_PAIR_H
#define LODGE_TESTS_AGENT_PAIR_H

#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/agent_client.h"

static struct agent *agent;
static int init_end;

static inline void begin(void)
{
	struct err err;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0 ||
	    agent_new(sv[0], &agent, &err) < 0)
		_exit(1);
	init_end = sv[1];
}

static inline void finish(void)
{
	agent_free(agent);
	close(init_end);
}

#endif
