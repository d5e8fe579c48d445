/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_HANDLER_THREAD_H
#define LODGE_HTTP_HANDLER_THREAD_H

#include "http/internal.h"

int http_worker_submit(struct http_server *s, struct http_request *rq); /* -1: too many requests */
void http_workers_end(struct http_server *s); /* waits until all have ended */

#endif
