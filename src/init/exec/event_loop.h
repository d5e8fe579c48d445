/* SPDX-License-Identifier: Apache-2.0 */
/* The one epoll set. A source is a kind and a small number, never a pointer, so that an event that
 * is already on its way can be told from one of a reused slot by looking at the slot. */
#ifndef LODGE_INIT_EXEC_EVENT_LOOP_H
#define LODGE_INIT_EXEC_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum loop_kind {
	LOOP_LISTEN = 1,
	LOOP_SIGNAL,
	LOOP_CONN,
	LOOP_OUT, /* output pipe 0 of a record, or its terminal */
	LOOP_ERR,
	LOOP_IN,
	LOOP_SHIM,
};

int loop_init(void);
int loop_add(int fd, enum loop_kind kind, uint32_t n, uint32_t events);
void loop_mod(int fd, enum loop_kind kind, uint32_t n, uint32_t events);
void loop_del(int fd);
void loop_run(void) __attribute__((noreturn));

#endif
