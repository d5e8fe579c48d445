/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLIENT_CLIENT_ERROR_H
#define LODGE_CLIENT_CLIENT_ERROR_H

#include "client/internal.h"

/* Reads the rest of a response of 400 or more; returns -1. */
int problem_read(const struct client *c, struct client_stream *s, struct err *err);
/* Sets the error of a lost connection: -errno, or 0 for its end. */
int problem_broken(ssize_t n, struct err *err);

#endif
