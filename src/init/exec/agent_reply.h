/* SPDX-License-Identifier: Apache-2.0 */
/* One reply or event, built in place. */
#ifndef LODGE_INIT_EXEC_AGENT_REPLY_H
#define LODGE_INIT_EXEC_AGENT_REPLY_H

#include "init/core/init_state.h"

struct process;

struct agent_reply {
	bool none; /* nothing to send now */
	bool listing; /* AGENT_LIST: the records follow one by one */
	uint32_t nfds;
	int fds[AGENT_REPLY_FDS]; /* to be attached, then closed by agent_reply_close() */
	uint32_t len;
	union {
		struct agent_hdr hdr;
		char bytes[sizeof(struct agent_hdr) + sizeof(struct agent_stat) + AGENT_PATH_MAX +
			   256];
	};
};

void agent_reply_put(struct agent_reply *a, uint32_t type, uint32_t req, const void *fixed,
		     size_t fixed_len, const void *tail, size_t tail_len);
void agent_reply_ok(struct agent_reply *a, uint32_t req);
void agent_reply_error(struct agent_reply *a, uint32_t req, const struct err *err);
void agent_reply_proc(struct agent_reply *a, uint32_t req, struct process *r);
/* AGENT_LOGR with copies of the logs: the record may be forgotten before a slow peer has taken the
 * reply. */
int agent_reply_logs(struct agent_reply *a, uint32_t req, struct process *r, struct err *err);
void agent_reply_close(struct agent_reply *a);

#endif
