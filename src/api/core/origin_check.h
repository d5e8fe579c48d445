/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a request before its authentication. */
#ifndef LODGE_API_CORE_ORIGIN_CHECK_H
#define LODGE_API_CORE_ORIGIN_CHECK_H

#include "api/core/api_call.h"

/* ERR_DENIED, with sys EADDRNOTAVAIL if the Host is wrong. */
int origin_check(struct api *a, const struct http_request *rq, struct err *err);
/* "127.0.0.1:80", "[::1]", "localhost" ... */
bool origin_is_loopback(const char *host);
/* Sets CORS headers for an allowed origin, also on errors. */
void origin_put_cors(struct api *a, struct http_request *rq);
/* Replies to OPTIONS with the methods of the path. */
void origin_put_options(struct api *a, struct http_request *rq, const char *allow);

#endif
