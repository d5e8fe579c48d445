/* SPDX-License-Identifier: Apache-2.0 */
/* Short file operations, done in this process with the user's rights. */
#ifndef LODGE_INIT_FILES_GUEST_FILE_H
#define LODGE_INIT_FILES_GUEST_FILE_H

#include "init/core/init_state.h"

/* What an operation answers with. */
struct guest_file_answer {
	uint32_t type; /* AGENT_OK, AGENT_FD or AGENT_STATR */
	int fd; /* of AGENT_FD; the caller's */
	struct agent_token token;
	struct agent_stat st;
	char target[AGENT_PATH_MAX];
};

int guest_file_request(uint8_t conn, uint32_t type, const void *msg, size_t len,
		       struct guest_file_answer *ret, struct err *err);
struct stat;
void guest_file_fill_stat(struct agent_stat *to, const struct stat *st);
/* Unfinished writes of a connection that is gone are taken back. */
void guest_file_forget_conn(uint8_t conn);

#endif
