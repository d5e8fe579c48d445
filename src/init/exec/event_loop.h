/* SPDX-License-Identifier: Apache-2.0 */
/* The one epoll set. A source is a kind and a small number, never a pointer, so that an event that
 * is already on its way can be told from one of a reused slot by looking at the slot. */
#ifndef LODGE_INIT_EXEC_EVENT_LOOP_H
#define LODGE_INIT_EXEC_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum loop_kind {
	EVENT_LISTEN = 1,
	EVENT_SIGNAL,
	EVENT_CONN,
	EVENT_OUT, /* output pipe 0 of a record, or its terminal */
	EVENT_ERR,
	EVENT_IN,
	EVENT_SHIM,
};

int event_loop_init(void);
int event_loop_add(int fd, enum loop_kind kind, uint32_t n, uint32_t events);
void event_loop_mod(int fd, enum loop_kind kind, uint32_t n, uint32_t events);
void event_loop_del(int fd);
void event_loop_run(void) __attribute__((noreturn));

#endif
