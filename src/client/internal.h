/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the client. */
#ifndef LODGE_CLIENT_INTERNAL_H
#define LODGE_CLIENT_INTERNAL_H

#include <openssl/types.h>

#include "base/auto.h"
#include "client/client.h"

enum {
	HEAD_MAX = 64 << 10, /* bytes of the head of a request or response */
	READ_MIN = 4096, /* free bytes of a buffer before a read */
	ANSWER_MAX = 64 << 20, /* bytes of a response, line or event in memory */
};

struct client {
	char *url;
	char *authorization; /* the header; NULL: none */
	char *host, *port; /* NULL: connect to `path` */
	char *path; /* of the unix socket */
	char *authority; /* the Host header */
	SSL_CTX *tls; /* NULL: no TLS */
	int limit_ms; /* as conn's */
};
DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(struct client_stream *, client_close);
DEFINE_AUTO(json_t *, json_decref);

#endif
