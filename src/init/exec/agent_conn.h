/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: requests in, replies and events out. What is due to a peer is state, never a queue,
 * so a peer that does not read costs no memory. */
#ifndef LODGE_INIT_EXEC_AGENT_CONN_H
#define LODGE_INIT_EXEC_AGENT_CONN_H

#include "init/exec/process_table.h"

void agent_conn_listen(void);
void agent_conn_accept(void);
void agent_conn_ready(uint32_t n, uint32_t events);
/* Something is due to these connections, one bit each; it is sent at the end of the round. */
void agent_conn_schedule_flush(uint32_t mask);
void agent_conn_flush(void);
void agent_conn_run_timers(uint64_t now_us);
uint64_t agent_conn_next_timer(void);
/* Whether there is no connection any more; *ret_since_us: since when, clock_mono_us(). */
bool agent_conn_is_alone(uint64_t *ret_since_us);

#endif
