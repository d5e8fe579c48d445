/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn_io.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"

enum {
	RECORD = 16 << 10, /* the largest TLS record */
	FILE_PIECE = 1 << 20, /* of one call of sendfile() */
};

/* ---- TLS ------------------------------------------------------------------------------------- */

DEFINE_AUTO(BIO *, BIO_free);
DEFINE_AUTO(X509 *, X509_free);
DEFINE_AUTO(EVP_PKEY *, EVP_PKEY_free);

void conn_io_tls_free(struct ssl_ctx_st *tls)
{
	SSL_CTX_free(tls);
}
DEFINE_AUTO(SSL_CTX *, SSL_CTX_free);

static int fail_tls(const char *what, struct err *err)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	err_set(err, ERR_INVALID, "%s: %s", what, why ? why : "not accepted");
	ERR_clear_error();
	return -1;
}

/* There is no terminal to ask for a password. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return 0;
}

/* The certificate, then those of its issuers. */
static int use_certificates(SSL_CTX *ctx, const char *pem, struct err *err)
{
	auto_call(BIO_free) BIO *text = BIO_new_mem_buf(pem, -1);
	auto_call(X509_free) X509 *first = PEM_read_bio_X509_AUX(text, NULL, no_password, NULL);
	X509 *next;

	if (!first || SSL_CTX_use_certificate(ctx, first) != 1)
		return fail_tls("certificate", err);
	while ((next = PEM_read_bio_X509(text, NULL, no_password, NULL))) {
		if (SSL_CTX_add0_chain_cert(ctx, next) != 1) {
			X509_free(next);
			return fail_tls("certificate of an issuer", err);
		}
	}
	ERR_clear_error(); /* the end of the text counts as an error */
	return 0;
}

static int use_key(SSL_CTX *ctx, const char *pem, struct err *err)
{
	auto_call(BIO_free) BIO *text = BIO_new_mem_buf(pem, -1);
	auto_call(EVP_PKEY_free) EVP_PKEY *key =
		PEM_read_bio_PrivateKey(text, NULL, no_password, NULL);

	if (!key || SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return fail_tls("private key", err);
	return 0;
}

int conn_io_tls_new(const char *cert, const char *key, struct ssl_ctx_st **ret, struct err *err)
{
	auto_call(SSL_CTX_free) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		return fail_tls("TLS", err);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_IGNORE_UNEXPECTED_EOF);
	if (use_certificates(ctx, cert, err) < 0 || use_key(ctx, key, err) < 0)
		return -1;
	*ret = steal_ptr(&ctx);
	return 0;
}

/* -1 with errno; 0: the peer ended the connection. */
static ssize_t tls_failed(struct conn_io *io, int r)
{
	switch (SSL_get_error(io->tls, r)) {
	case SSL_ERROR_WANT_READ:
		io->wants = POLLIN;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_WRITE:
		io->wants = POLLOUT;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		SSL_set_quiet_shutdown(io->tls, 1); /* nothing can be sent any more */
		errno = ECONNRESET;
		return -1;
	}
}

/* Small parts share a record. */
static ssize_t tls_send(struct conn_io *io, const struct iovec *parts, int n)
{
	char record[RECORD];
	const char *from = parts[0].iov_base;
	size_t len = parts[0].iov_len;
	int r;

	if (len < RECORD && n > 1) {
		len = 0;
		for (int i = 0; i < n && len < RECORD; i++) {
			size_t more =
				parts[i].iov_len < RECORD - len ? parts[i].iov_len : RECORD - len;

			memcpy(record + len, parts[i].iov_base, more);
			len += more;
		}
		from = record;
	}
	ERR_clear_error();
	r = SSL_write(io->tls, from, (int)(len < INT32_MAX ? len : INT32_MAX));
	if (r > 0)
		return r;
	return tls_failed(io, r) == 0 ? (errno = EPIPE, -1) : -1;
}

static ssize_t tls_send_file(struct conn_io *io, int file, uint64_t offset, uint64_t len)
{
	char piece[RECORD];
	ssize_t n = pread(file, piece, len < sizeof(piece) ? (size_t)len : sizeof(piece),
			  (off_t)offset);

	return n <= 0 ? n : tls_send(io, &(struct iovec){ piece, (size_t)n }, 1);
}

/* ---- both ------------------------------------------------------------------------------------ */

int conn_io_init(struct conn_io *io, int fd, struct ssl_ctx_st *tls)
{
	int flags = fcntl(fd, F_GETFL);

	*io = (struct conn_io){ .fd = fd };
	if (tls)
		io->tls = SSL_new(tls);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || (tls && !io->tls) ||
	    (tls && SSL_set_fd(io->tls, fd) != 1)) {
		conn_io_fini(io);
		return -1;
	}
	if (tls)
		SSL_set_accept_state(io->tls);
	return 0;
}

void conn_io_fini(struct conn_io *io)
{
	SSL_free(io->tls);
	io->tls = NULL;
	close_fd(&io->fd);
}

ssize_t conn_io_recv(struct conn_io *io, void *buf, size_t len)
{
	ssize_t n;

	if (io->tls) {
		int r;

		ERR_clear_error();
		r = SSL_read(io->tls, buf, (int)(len < INT32_MAX ? len : INT32_MAX));
		return r > 0 ? r : tls_failed(io, r);
	}
	do
		n = recv(io->fd, buf, len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		io->wants = POLLIN;
	return n;
}

ssize_t conn_io_send(struct conn_io *io, const struct iovec *parts, int n, bool more)
{
	union {
		const struct iovec *in;
		struct iovec *out;
	} iov = { parts };
	struct msghdr m = { .msg_iov = iov.out, .msg_iovlen = (size_t)n };
	ssize_t sent;

	if (io->tls)
		return tls_send(io, parts, n);
	do
		sent = sendmsg(io->fd, &m, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		io->wants = POLLOUT;
	return sent;
}

ssize_t conn_io_send_file(struct conn_io *io, int file, uint64_t offset, uint64_t len)
{
	off_t at = (off_t)offset;
	ssize_t n;

	if (io->tls)
		return tls_send_file(io, file, offset, len);
	do
		n = sendfile(io->fd, file, &at, len < FILE_PIECE ? (size_t)len : FILE_PIECE);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		io->wants = POLLOUT;
	return n;
}

bool conn_io_wait(const struct conn_io *io, short events, int64_t until_ms)
{
	struct pollfd p = { .fd = io->fd, .events = events };
	int64_t left;
	int n;

	do {
		left = until_ms - clock_mono_ms();
		n = left > 0 ? poll(&p, 1, (int)(left < INT32_MAX ? left : INT32_MAX)) : 0;
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

bool conn_io_is_closed(const struct conn_io *io)
{
	struct pollfd p = { .fd = io->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void conn_io_shut(struct conn_io *io)
{
	if (io->tls) {
		ERR_clear_error();
		(void)SSL_shutdown(io->tls);
	}
	shutdown(io->fd, SHUT_WR);
}
