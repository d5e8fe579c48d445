/* SPDX-License-Identifier: Apache-2.0 */
/* The helper process that stays root when lodged drops its privileges. It only starts the keeper
 * on request, and exits with lodged. */
#ifndef LODGE_LODGED_KEEPER_STARTER_H
#define LODGE_LODGED_KEEPER_STARTER_H

#include "base/err.h"

/* Call it before threads start. The caller owns *ret_fd, the socket to the helper. */
int keeper_starter_fork(const char *home, int *ret_fd, struct err *err);
/* For struct engine_opts: returns the socket and the pidfd of a new keeper. arg is &fd. */
int keeper_starter_ask(void *arg, int *ret_fd, int *ret_pidfd, struct err *err);

#endif
