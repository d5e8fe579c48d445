/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a server. Each waits for an event of any connection and handles it to its end: it
 * reads the request, runs the handler, which may block, and writes the response. There is always
 * one that waits for the next event. */
#ifndef LODGE_HTTP_WORKER_H
#define LODGE_HTTP_WORKER_H

#include "http/internal.h"

int worker_start_first(struct http_server *s, struct err *err);
void worker_end_all(struct http_server *s); /* waits until all have ended */

#endif
