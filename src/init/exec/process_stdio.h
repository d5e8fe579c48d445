/* SPDX-License-Identifier: Apache-2.0 */
/* The three standard descriptors of a command and lodge-init's ends of them. */
#ifndef LODGE_INIT_EXEC_PROCESS_STDIO_H
#define LODGE_INIT_EXEC_PROCESS_STDIO_H

#include "init/core/init_state.h"

struct process_stdio {
	int child[3];
	int in; /* our end of its input, or -1 */
	int out[2]; /* our ends of its output; the second is -1 if both streams are one */
};

/* The user owns pipes and terminals, so that the command can open /dev/stdout again. */
int process_stdio_open(struct process_stdio *io, const struct cred *cred, uint32_t flags,
		       uint32_t rows, uint32_t cols, struct err *err);
void process_stdio_close_child(struct process_stdio *io);

#endif
