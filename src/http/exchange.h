/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a connection, one after the other. */
#ifndef LODGE_HTTP_EXCHANGE_H
#define LODGE_HTTP_EXCHANGE_H

#include "http/internal.h"

/* Handles an event: goes on until the connection has to wait or ends, then arms or frees it. */
void exchange_continue(struct conn *c);
/* Frees a connection that no thread owns. */
void exchange_abandon(struct conn *c);
/* For a handler: waits until the socket is ready for what conn_io's last call wanted. False: the
 * client is too slow, which breaks the request. bytes: how many were transferred so far. */
bool exchange_wait(struct http_request *rq, uint64_t bytes);

#endif
