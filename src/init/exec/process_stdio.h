/* SPDX-License-Identifier: Apache-2.0 */
/* The three descriptors of a command and our ends of them. */
#ifndef LODGE_INIT_EXEC_PROCESS_STDIO_H
#define LODGE_INIT_EXEC_PROCESS_STDIO_H

#include "init/core/init_state.h"

struct stdio {
	int child[3];
	int in; /* ours: feeds its input, or -1 */
	int out[2]; /* ours: its output; the second is -1 if both streams are one */
};

/* Pipes and terminals belong to the user, so that /dev/stdout can be opened again inside. */
int exec_stdio_open(struct stdio *io, const struct cred *cred, uint32_t flags, uint32_t rows,
		    uint32_t cols, struct err *err);
void exec_stdio_close_child(struct stdio *io);

#endif
