/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections there may be. Only those whose latest request had no valid key count for the
 * bound of an address, and they are the first to make place for new ones: the oldest whose request
 * no thread handles is closed. So a client with a key gets in, however many idle connections there
 * are. */
#ifndef LODGE_HTTP_CONN_LIMIT_H
#define LODGE_HTTP_CONN_LIMIT_H

#include "http/internal.h"

/* All with the server's lock. False: there is no place for it. */
bool conn_limit_add(struct conn *c);
void conn_limit_remove(struct conn *c);
void conn_limit_trust(struct conn *c);
void conn_limit_distrust(struct conn *c);

#endif
