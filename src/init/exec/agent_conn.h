/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: requests in, answers and events out. What is owed to a peer is state, never a
 * queue, so that a peer that does not read costs nothing. */
#ifndef LODGE_INIT_EXEC_AGENT_CONN_H
#define LODGE_INIT_EXEC_AGENT_CONN_H

#include "init/exec/process_table.h"

void agent_conn_listen(void);
void agent_conn_accept(void);
void agent_conn_ready(uint32_t n, uint32_t events);
/* Something is to be sent; it goes out at the end of the round. */
void agent_conn_wake(uint8_t n);
void agent_conn_wake_mask(uint16_t mask);
/* The record has new output, or room for it. */
void agent_conn_output(struct process *r);
void agent_conn_flush(void);
void agent_conn_timers(uint64_t now_us);
uint64_t agent_conn_next_timer(void);

#endif
