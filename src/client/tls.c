/* SPDX-License-Identifier: Apache-2.0 */
/* TLS as a client: the peer's certificate and name are always checked. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <string.h>

#include "client/inside.h"

enum { HANDSHAKE_MS = 20000 };

DEFINE_AUTO(SSL_CTX *, SSL_CTX_free);
DEFINE_AUTO(SSL *, SSL_free);

int tls_context(SSL_CTX **ret, struct err *err)
{
	auto_call(SSL_CTX_free) SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_default_verify_paths(ctx) != 1)
		return err_set(err, ERR_INTERNAL, "TLS cannot be set up");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	/* a record that is no data must not make a read wait for one that is */
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	*ret = steal_ptr(&ctx);
	return 0;
}

static bool set_name(SSL *ssl, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static int fail(SSL *ssl, const char *host, struct err *err)
{
	long verdict = SSL_get_verify_result(ssl);
	const char *why = ERR_reason_error_string(ERR_peek_error());

	ERR_clear_error();
	if (verdict != X509_V_OK)
		return err_set(err, ERR_DENIED,
			       "https://%.80s: its certificate is not accepted: %.80s "
			       "(SSL_CERT_FILE names a file of those that are)",
			       host, X509_verify_cert_error_string(verdict));
	return err_set(err, ERR_UNAVAILABLE, "https://%.80s: no TLS there: %.80s", host,
		       why ? why : "the connection was closed");
}

static bool wait_for(SSL *ssl, int fd, int why)
{
	struct pollfd p = { .fd = fd, .events = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN };

	(void)ssl;
	return (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) &&
	       poll(&p, 1, HANDSHAKE_MS) != 0;
}

int tls_open(SSL_CTX *ctx, int fd, const char *host, SSL **ret, struct err *err)
{
	auto_call(SSL_free) SSL *ssl = SSL_new(ctx);
	int n;

	if (!ssl || SSL_set_fd(ssl, fd) != 1 || !set_name(ssl, host))
		return err_set(err, ERR_INTERNAL, "TLS cannot be set up for %.80s", host);
	ERR_clear_error();
	while ((n = SSL_connect(ssl)) != 1)
		if (!wait_for(ssl, fd, SSL_get_error(ssl, n)))
			return fail(ssl, host, err);
	*ret = steal_ptr(&ssl);
	return 0;
}
