/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a server. Each waits for an event of any connection and handles it to its end: it
 * reads the request, runs the handler, which may block, and writes the response. */
#ifndef LODGE_HTTP_WORKER_H
#define LODGE_HTTP_WORKER_H

#include "http/internal.h"

void worker_init_all(struct workers *all);
void worker_fini_all(struct workers *all);
int worker_start_all(struct http_server *s, struct err *err); /* does nothing the second time */
void worker_end_all(struct http_server *s); /* waits until all threads have ended */
/* Called by a thread of a server before work that may block. */
void worker_give_up_turn(void);

#endif
