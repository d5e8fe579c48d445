/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLIENT_CLIENT_TLS_H
#define LODGE_CLIENT_CLIENT_TLS_H

#include <openssl/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

int tls_context(SSL_CTX **ret, struct err *err);
void tls_context_free(SSL_CTX *ctx); /* accepts NULL */
/* Opens a TLS session over a connected socket and verifies the peer's certificate. */
int tls_open(SSL_CTX *ctx, int fd, char *host, SSL **ret, struct err *err);
void tls_free(SSL *ssl); /* accepts NULL */
/* Returns bytes, 0 at the end, or -errno; with -EAGAIN, *ret_wait is what to poll for. */
ssize_t tls_read(SSL *ssl, void *buf, size_t size, short *ret_wait);
ssize_t tls_write(SSL *ssl, const void *data, size_t len, short *ret_wait);
bool tls_pending(SSL *ssl);

#endif
