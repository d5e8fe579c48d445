/* SPDX-License-Identifier: Apache-2.0 */
/* A program of ours beside this process: by posix_spawn, because the caller may be threaded. */
#ifndef LODGE_SANDBOX_CHILD_PROGRAM_H
#define LODGE_SANDBOX_CHILD_PROGRAM_H

#include <stddef.h>

#include "base/err.h"

enum { CHILD_PROGRAM_FDS_MAX = 4 };

/* fds[i] becomes its descriptor i (-1: /dev/null) and no other is passed on; signals are as for a
 * new program, and its session is its own: ^C at a terminal is not for it. The process is reaped
 * through *ret_pidfd. */
int child_program_start(const char *program, char *const argv[], char *const env[], const int *fds,
			size_t nfds, int *ret_pidfd, struct err *err);

#endif
