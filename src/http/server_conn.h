/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_SERVER_CONN_H
#define LODGE_HTTP_SERVER_CONN_H

#include "http/internal.h"

enum MHD_Result http_on_accept(void *server, const struct sockaddr *addr, socklen_t len);
void http_on_connection(void *server, struct MHD_Connection *mhd, void **conn,
			enum MHD_ConnectionNotificationCode what);
void *http_on_target(void *server, const char *target, struct MHD_Connection *mhd);
void http_conn_await_head(struct conn *c);
void http_conn_deadline(struct conn *c, uint64_t bytes); /* time for this many bytes */
void http_conn_cut(struct conn *c); /* closes it at once, and never as an orderly end of a stream */
void http_conn_too_large(struct conn *c, struct MHD_Connection *mhd); /* sends 431 and closes it */
/* Whether this many bytes arrived since the last request. False: unknown. */
bool http_conn_has(struct conn *c, uint64_t bytes);
void http_abort_all(struct http_server *s);
void *http_reap(void *server); /* thread: closes connections past their deadline */

#endif
