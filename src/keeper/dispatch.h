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

/* False when the engine has disconnected or does not read its replies. */
bool dispatch_one(struct keeper *k, int sock);

#endif
