/* SPDX-License-Identifier: Apache-2.0 */
/* A request as its handler sees it. A handler runs on its own thread and may block. It responds
 * exactly once, with http_reply*() or a stream. Strings are valid until it returns. */
#ifndef LODGE_HTTP_HTTP_REQUEST_H
#define LODGE_HTTP_HTTP_REQUEST_H

#include "http/request_body.h"
#include "http/request_head.h"
#include "http/response.h"

#endif
