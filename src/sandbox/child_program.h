/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a helper program with posix_spawn(), because the caller may be multithreaded. */
#ifndef LODGE_SANDBOX_CHILD_PROGRAM_H
#define LODGE_SANDBOX_CHILD_PROGRAM_H

#include <stddef.h>

#include "base/err.h"

enum { CHILD_PROGRAM_FDS_MAX = 4 };

/* fds[i] becomes descriptor i (-1: /dev/null); no other is inherited. Signals are reset, and the
 * program gets its own session, so that ^C at a terminal does not reach it. Reap it through
 * *ret_pidfd. */
int child_program_start(const char *program, char *const argv[], char *const env[], const int *fds,
			size_t nfds, int *ret_pidfd, struct err *err);

#endif
