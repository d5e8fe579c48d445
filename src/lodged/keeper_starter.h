/* SPDX-License-Identifier: Apache-2.0 */
/* What stays root when the rest of lodged gives it up: a process that starts the keeper when it is
 * asked to, and can do nothing else. It leaves when lodged does. */
#ifndef LODGE_LODGED_KEEPER_STARTER_H
#define LODGE_LODGED_KEEPER_STARTER_H

#include "base/err.h"

/* Before there are threads. *ret_fd is the caller's and leads to it. */
int keeper_starter_fork(const char *home, int *ret_fd, struct err *err);
/* For struct engine_opts: a new keeper's socket, and its process. arg is &fd. */
int keeper_starter_ask(void *arg, int *ret_fd, int *ret_pidfd, struct err *err);

#endif
