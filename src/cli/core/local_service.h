/* SPDX-License-Identifier: Apache-2.0 */
/* The lodged of this machine: its socket and its admin key, both in its data directory. */
#ifndef LODGE_CLI_CORE_LOCAL_SERVICE_H
#define LODGE_CLI_CORE_LOCAL_SERVICE_H

#include "base/err.h"

struct target;

/* "unix:PATH" of the socket in a data directory: LODGE_DATA if that is set, else the usual ones. */
int local_service_find(char **ret_url, struct err *err);

/* Sets w->key to the admin key if w->url is the socket of a data directory, or a loopback address
 * that the lodged of one listens on: then w->url becomes that socket, which no other user can have.
 * Leaves both alone for any other service. */
int local_service_key(struct target *w, struct err *err);

#endif
