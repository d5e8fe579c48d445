/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLIENT_CLIENT_WS_H
#define LODGE_CLIENT_CLIENT_WS_H

#include "client/internal.h"

/* Wraps a response whose head has been read and takes ownership of it. NULL without memory. */
struct client_ws *client_ws_wrap(struct client_stream *s);

#endif
