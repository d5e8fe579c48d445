/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLIENT_CLIENT_REQUEST_H
#define LODGE_CLIENT_CLIENT_REQUEST_H

#include "client/client_stream.h"

/* Sends the request and reads the head of the response, whatever its status. `upgrade`: the headers
 * of the request offer another protocol. */
int request_send(struct client *c, const struct client_request *rq, bool upgrade,
		 struct client_stream **ret, struct err *err);

#endif
