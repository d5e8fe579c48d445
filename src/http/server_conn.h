/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: accepted, armed for their next event, closed when they are too slow. */
#ifndef LODGE_HTTP_SERVER_CONN_H
#define LODGE_HTTP_SERVER_CONN_H

#include "http/internal.h"

void server_conn_accept(struct listener *l); /* all that wait, then waits for the next */
/* Gives the connection up to the next thread with an event. It may be freed at once. */
void server_conn_arm(struct conn *c);
void server_conn_free(struct conn *c);
/* Time for this many bytes. */
void server_conn_set_deadline(struct conn *c, uint64_t bytes);
/* Closes it at once, and never as an orderly end of a stream. */
void server_conn_cut(struct conn *c);
void server_conn_cut_all(struct http_server *s);
void *server_conn_reap(void *server); /* thread: cuts connections past their deadline */

#endif
