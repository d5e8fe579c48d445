/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that go on after their handler has returned. One thread waits for their sockets, timers
 * and http_stream_wake(); workers run their steps. */
#ifndef LODGE_HTTP_STREAM_POLLER_H
#define LODGE_HTTP_STREAM_POLLER_H

#include "http/internal.h"

int stream_poller_start(struct http_server *s, struct err *err);
void stream_poller_stop(struct http_server *s); /* after the workers have ended */
/* Takes the connection over from its worker. Its request is detached. */
void stream_poller_add(struct conn *c);
void stream_poller_wake(struct http_request *rq); /* as http_stream_wake() */
/* For a worker: runs steps of streams that are due. */
void stream_poller_work(struct http_server *s);

#endif
