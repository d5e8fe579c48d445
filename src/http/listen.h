/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_LISTEN_H
#define LODGE_HTTP_LISTEN_H

#include <sys/types.h>

#include "base/err.h"

/* ERR_INVALID: not a valid address. */
int http_address_check(const char *address, struct err *err);
/* Opens a listening socket. ret: the bound address, ret_path: of a unix socket. */
int http_listen_on(const char *address, mode_t mode, int *ret_fd, char **ret_path, char *ret,
		   size_t size, struct err *err);

#endif
