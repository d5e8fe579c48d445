/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a sandbox on which lodge-init accepts connections. */
#ifndef LODGE_KEEPER_INIT_SOCKET_H
#define LODGE_KEEPER_INIT_SOCKET_H

#include "keeper/keeper.h"

/* A listening socket at init.sock in the sandbox's directory. An fd or -errno. */
int init_socket_listen(int dir);
int init_socket_connect(struct keeper *k, const char *id, int *ret_fd, struct err *err);

/* Assigns a new lodge-init to its guest user. Until then lodge-init accepts no other message and
 * dies with the keeper. Does not wait for the reply: the socket's queue delivers this message
 * before whatever the engine sends, and a lodge-init that refuses it closes the connection. */
int init_socket_bind(struct keeper *k, const struct keeper_create *c, int fd, struct err *err);
/* Waits until a lodge-init has read its binding, at most until `deadline_ms` of clock_mono_ms(). */
void init_socket_await_bound(struct keeper *k, const char *id, int64_t deadline_ms);

#endif
