/* SPDX-License-Identifier: Apache-2.0 */
/* What each request does. */
#ifndef LODGE_INIT_EXEC_AGENT_REQUEST_H
#define LODGE_INIT_EXEC_AGENT_REQUEST_H

#include "init/core/init_state.h"

/* One answer, built in place. */
struct answer {
	bool none; /* nothing to send now */
	bool listing; /* AGENT_LIST: the records follow one by one */
	uint32_t nfds;
	int fds[AGENT_REPLY_FDS]; /* to be attached, then closed by answer_close() */
	uint32_t len;
	union {
		struct agent_hdr hdr;
		char bytes[sizeof(struct agent_hdr) + sizeof(struct agent_stat) + AGENT_PATH_MAX +
			   256];
	};
};

/* `fds` are taken in any case. */
void request_handle(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
		    struct answer *a);
void answer_put(struct answer *a, uint32_t type, uint32_t req, const void *fixed, size_t fixed_len,
		const void *tail, size_t tail_len);
void answer_error(struct answer *a, uint32_t req, const struct err *err);
void answer_close(struct answer *a);
struct process;
void answer_proc(struct answer *a, uint32_t req, struct process *r);

#endif
