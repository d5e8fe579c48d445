/* SPDX-License-Identifier: Apache-2.0 */
/* TLS with verification of the peer's certificate and name. The library is loaded on first use:
 * linking it would more than double the start-up time of lodge. */
#include "client/client_tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/opensslv.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>

enum { HANDSHAKE_MS = 20000 };

#define TEXT_OF(x) #x
#define SONAME(version) "libssl.so." TEXT_OF(version)

#define FUNCTIONS(X)                                                                               \
	X(TLS_client_method)                                                                       \
	X(SSL_CTX_new)                                                                             \
	X(SSL_CTX_free)                                                                            \
	X(SSL_CTX_ctrl)                                                                            \
	X(SSL_CTX_set_default_verify_paths)                                                        \
	X(SSL_CTX_set_verify)                                                                      \
	X(SSL_new)                                                                                 \
	X(SSL_free)                                                                                \
	X(SSL_ctrl)                                                                                \
	X(SSL_set_fd)                                                                              \
	X(SSL_get0_param)                                                                          \
	X(SSL_set1_host)                                                                           \
	X(SSL_connect)                                                                             \
	X(SSL_get_error)                                                                           \
	X(SSL_get_verify_result)                                                                   \
	X(SSL_read)                                                                                \
	X(SSL_write)                                                                               \
	X(SSL_pending)                                                                             \
	X(ERR_peek_error)                                                                          \
	X(ERR_clear_error)                                                                         \
	X(ERR_reason_error_string)                                                                 \
	X(X509_VERIFY_PARAM_set1_ip_asc)                                                           \
	X(X509_verify_cert_error_string)

/* Never unloaded. */
static struct {
	bool loaded;
#define MEMBER(name) __typeof__(name) *(name);
	FUNCTIONS(MEMBER)
} lib;

/* POSIX allows the conversion of dlsym(3)'s result to a function pointer. */
static void load_library(void)
{
	void *handle = dlopen(SONAME(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return;
	lib.loaded = true;
#define FIND(name)                                                                                 \
	*(void **)&lib.name = dlsym(handle, #name);                                                \
	lib.loaded &= lib.name != NULL;
	FUNCTIONS(FIND)
}

int tls_context(SSL_CTX **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	long modes = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
	SSL_CTX *ctx;

	pthread_once(&once, load_library);
	if (!lib.loaded)
		return err_set(
			err, ERR_UNAVAILABLE,
			"https needs the library " SONAME(OPENSSL_SHLIB_VERSION) ": install it");
	ctx = lib.SSL_CTX_new(lib.TLS_client_method());
	if (!ctx ||
	    lib.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) != 1 ||
	    lib.SSL_CTX_set_default_verify_paths(ctx) != 1) {
		lib.SSL_CTX_free(ctx);
		return err_set(err, ERR_INTERNAL, "cannot initialize TLS");
	}
	lib.SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	/* A record without data must not make a read wait. */
	(void)lib.SSL_CTX_ctrl(ctx, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);
	(void)lib.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, modes, NULL);
	*ret = ctx;
	return 0;
}

void tls_context_free(SSL_CTX *ctx)
{
	if (ctx)
		lib.SSL_CTX_free(ctx);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static bool set_name(SSL *ssl, char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return lib.X509_VERIFY_PARAM_set1_ip_asc(lib.SSL_get0_param(ssl), host) == 1;
	return lib.SSL_set1_host(ssl, host) == 1 &&
	       lib.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host) ==
		       1;
}

static int fail_handshake(SSL *ssl, const char *host, struct err *err)
{
	long verdict = lib.SSL_get_verify_result(ssl);
	const char *why = lib.ERR_reason_error_string(lib.ERR_peek_error());

	lib.ERR_clear_error();
	if (verdict != X509_V_OK)
		return err_set(err, ERR_DENIED,
			       "https://%.80s: certificate verification failed: %.80s (set "
			       "SSL_CERT_FILE to trusted certificates)",
			       host, lib.X509_verify_cert_error_string(verdict));
	return err_set(err, ERR_UNAVAILABLE, "https://%.80s: TLS handshake failed: %.80s", host,
		       why ? why : "the connection was closed");
}

static bool wait_for(int fd, int why)
{
	struct pollfd p = { .fd = fd, .events = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN };

	return (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) &&
	       poll(&p, 1, HANDSHAKE_MS) != 0;
}

int tls_open(SSL_CTX *ctx, int fd, char *host, SSL **ret, struct err *err)
{
	SSL *ssl = lib.SSL_new(ctx);
	int n;

	if (!ssl || lib.SSL_set_fd(ssl, fd) != 1 || !set_name(ssl, host)) {
		tls_free(ssl);
		return err_set(err, ERR_INTERNAL, "cannot initialize TLS for %.80s", host);
	}
	lib.ERR_clear_error();
	while ((n = lib.SSL_connect(ssl)) != 1) {
		if (wait_for(fd, lib.SSL_get_error(ssl, n)))
			continue;
		fail_handshake(ssl, host, err);
		tls_free(ssl);
		return -1;
	}
	*ret = ssl;
	return 0;
}

void tls_free(SSL *ssl)
{
	if (ssl)
		lib.SSL_free(ssl);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static ssize_t result(SSL *ssl, int n, short *ret_wait)
{
	int why = n > 0 ? SSL_ERROR_NONE : lib.SSL_get_error(ssl, n), e = errno;

	lib.ERR_clear_error();
	switch (why) {
	case SSL_ERROR_NONE:
		return n;
	case SSL_ERROR_WANT_READ:
		*ret_wait = POLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*ret_wait = POLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return e ? -e : -ECONNRESET;
	default:
		return -EPROTO;
	}
}

ssize_t tls_read(SSL *ssl, void *buf, size_t size, short *ret_wait)
{
	errno = 0;
	return result(ssl, lib.SSL_read(ssl, buf, (int)size), ret_wait);
}

ssize_t tls_write(SSL *ssl, const void *data, size_t len, short *ret_wait)
{
	errno = 0;
	return result(ssl, lib.SSL_write(ssl, data, (int)len), ret_wait);
}

bool tls_pending(SSL *ssl)
{
	return lib.SSL_pending(ssl) > 0;
}
