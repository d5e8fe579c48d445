/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the engine: reads one, checks it, calls its handler and sends the reply. */
#ifndef LODGE_KEEPER_DISPATCH_H
#define LODGE_KEEPER_DISPATCH_H

#include "keeper/keeper.h"

/* One request and its reply. */
struct exchange {
	const struct keeper_request *req;
	const int *fds;
	struct keeper_reply reply;
	int fd; /* sent with the reply; -1: none */
	int sock;
	bool lost; /* a reply could not be sent */
};

/* The handlers of KEEPER_OPS, in dispatch.c, layer_ops.c and template_ops.c. */
typedef int handler_fn(struct keeper *k, struct exchange *x, struct err *err);
#define HANDLER(op, number, name, id, body, fds, reply_fd) handler_fn handle_##name;
KEEPER_OPS(HANDLER)
#undef HANDLER

/* False when the engine has disconnected or does not read its replies. */
bool dispatch_one(struct keeper *k, int sock);

#endif
