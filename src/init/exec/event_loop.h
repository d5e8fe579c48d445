/* SPDX-License-Identifier: Apache-2.0 */
/* The one epoll set. A source is a kind and an index, never a pointer: an event of a slot that was
 * freed or reused since is recognized when the slot is checked. */
#ifndef LODGE_INIT_EXEC_EVENT_LOOP_H
#define LODGE_INIT_EXEC_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_LISTEN = 1,
	EVENT_SIGNAL,
	EVENT_CONN,
	/* of a record: */
	EVENT_OUT, /* output pipe 0, or its terminal */
	EVENT_ERR,
	EVENT_IN,
	EVENT_SUBREAPER,
};

int event_loop_init(void);
int event_loop_add(int fd, enum event_kind kind, uint32_t n, uint32_t events);
void event_loop_mod(int fd, enum event_kind kind, uint32_t n, uint32_t events);
void event_loop_del(int fd);
void event_loop_run(void) __attribute__((noreturn));

#endif
