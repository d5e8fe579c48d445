/* SPDX-License-Identifier: Apache-2.0 */
/* Short file operations, done in this process with the rights of the user. */
#ifndef LODGE_INIT_FILES_GUEST_FILE_H
#define LODGE_INIT_FILES_GUEST_FILE_H

#include "init/core/init_state.h"

struct stat;

struct guest_file_reply {
	uint32_t type; /* AGENT_OK, AGENT_FD or AGENT_STATR */
	int fd; /* of AGENT_FD; owned by the caller */
	struct agent_token token;
	struct agent_stat st;
	char target[AGENT_PATH_MAX];
};

/* `type` is one of AGENT_FILE_REQUESTS. */
int guest_file_request(uint8_t conn, uint32_t type, const void *msg, size_t len,
		       struct guest_file_reply *ret, struct err *err);
void guest_file_fill_stat(struct agent_stat *to, const struct stat *st);

#endif
