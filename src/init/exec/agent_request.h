/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches the requests of the engine and the keeper. */
#ifndef LODGE_INIT_EXEC_AGENT_REQUEST_H
#define LODGE_INIT_EXEC_AGENT_REQUEST_H

#include "init/exec/agent_reply.h"

/* Takes `fds` in any case. */
void agent_request_handle(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
			  struct agent_reply *a);

#endif
