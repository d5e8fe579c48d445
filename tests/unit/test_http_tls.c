/* SPDX-License-Identifier: Apache-2.0 */
/* TLS records of which only a half has arrived, or was sent: no thread may turn in circles
 * meanwhile. What counts is how often the server's threads wake up. */
#include "http/server.h"
#include "http_client.h"

#include <dlfcn.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/epoll.h>

#define HOST "Host: a\r\n"

enum { BIG = 16 << 20, QUIET_MS = 100, WAKES_MAX = 10 };

static char big[BIG];
static atomic_int ended;

/* ---- wakes ----------------------------------------------------------------------------------- */

static atomic_long wakes;

int epoll_wait(int epfd, struct epoll_event *events, int max, int ms)
{
	typedef int wait_fn(int epfd, struct epoll_event *events, int max, int ms);
	union {
		void *object;
		wait_fn *fn;
	} next = { dlsym(RTLD_NEXT, "epoll_wait") };
	int n = next.fn(epfd, events, max, ms);

	wakes++;
	return n;
}

int poll(struct pollfd *fds, nfds_t nfds, int ms)
{
	typedef int poll_fn(struct pollfd * fds, nfds_t nfds, int ms);
	union {
		void *object;
		poll_fn *fn;
	} next = { dlsym(RTLD_NEXT, "poll") };
	int n = next.fn(fds, nfds, ms);

	wakes++;
	return n;
}

/* Gives the server time to do nothing. */
static bool is_quiet(void)
{
	long before;

	nap(QUIET_MS);
	before = wakes;
	nap(QUIET_MS);
	printf("# %ld wakes\n", wakes - before);
	return wakes - before < WAKES_MAX;
}

/* ---- server ---------------------------------------------------------------------------------- */

static int step(void *arg)
{
	struct http_request *rq = *(struct http_request **)arg;
	static atomic_bool written;

	if (!atomic_exchange(&written, true) && http_stream_write(rq, big, BIG) < 0)
		return -1;
	return http_stream_is_full(rq) && !http_is_gone(rq) ? 60000 : -1;
}

static void end(void *arg)
{
	free(arg);
	ended++;
}

static void begin_stream(struct http_request *rq)
{
	static const struct http_stream_ops ops = { step, end };
	struct http_request **arg = malloc(sizeof(*arg));

	*arg = rq;
	CHECK(http_stream_begin(rq, 200, "text/plain") == 0);
	http_stream_detach(rq, &ops, arg);
}

static void handle(void *arg, struct http_request *rq)
{
	const char *body;
	struct err e;
	size_t len;

	(void)arg;
	if (!strcmp(http_path(rq), "/stream"))
		begin_stream(rq);
	else if (!strcmp(http_path(rq), "/big"))
		http_reply_static(rq, 200, "text/plain", big, BIG);
	else if (!http_body(rq, 1 << 20, &body, &len, &e))
		http_reply(rq, 200, "text/plain", body, len);
}

static bool write_pem(BIO *to, char *ret, size_t size)
{
	int n = BIO_read(to, ret, (int)size - 1);

	BIO_free(to);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool make_certificate(char *cert, char *key, size_t size)
{
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	BIO *texts[2] = { BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()) };
	bool ok = pair && x && X509_gmtime_adj(X509_getm_notBefore(x), 0) &&
		  X509_gmtime_adj(X509_getm_notAfter(x), 3600) && X509_set_pubkey(x, pair) &&
		  X509_sign(x, pair, EVP_sha256()) && PEM_write_bio_X509(texts[0], x) &&
		  PEM_write_bio_PrivateKey(texts[1], pair, NULL, NULL, 0, NULL, NULL);

	X509_free(x);
	EVP_PKEY_free(pair);
	ok &= write_pem(texts[0], cert, size);
	return write_pem(texts[1], key, size) && ok;
}

/* ---- client ---------------------------------------------------------------------------------- */

/* Its records go through memory, so that the test sends as much of them as it likes. */
struct client {
	int fd;
	SSL_CTX *ctx;
	SSL *tls;
	char out[32 << 10]; /* records to send */
	size_t len, at;
};

static void client_fini(struct client *c)
{
	SSL_free(c->tls);
	SSL_CTX_free(c->ctx);
	close(c->fd);
}

static bool client_init(struct client *c)
{
	*c = (struct client){ .fd = dial(), .ctx = SSL_CTX_new(TLS_client_method()) };
	c->tls = SSL_new(c->ctx);
	if (c->fd < 0 || !c->tls)
		return false;
	SSL_set_bio(c->tls, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(c->tls);
	return true;
}

/* Sends half of what is left, or all of it. */
static bool send_records(struct client *c, bool all)
{
	int n = BIO_read(SSL_get_wbio(c->tls), c->out + c->len, (int)(sizeof(c->out) - c->len));
	size_t now;

	c->len += n > 0 ? (size_t)n : 0;
	now = all ? c->len - c->at : (c->len - c->at) / 2;
	if (!send_bytes(c->fd, c->out + c->at, now))
		return false;
	c->at += now;
	if (all)
		c->at = c->len = 0;
	return true;
}

static bool receive(struct client *c)
{
	static char buf[64 << 10];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);

	return n > 0 && BIO_write(SSL_get_rbio(c->tls), buf, (int)n) == n;
}

static bool shake_hands(struct client *c)
{
	while (SSL_do_handshake(c->tls) != 1)
		if (!send_records(c, true) || !receive(c))
			return false;
	return send_records(c, true);
}

static bool write_text(struct client *c, const char *text)
{
	return SSL_write(c->tls, text, (int)strlen(text)) > 0;
}

/* Reads until a response of this many bytes at least has arrived; false: it ends early. */
static bool read_bytes(struct client *c, const char *start, size_t len)
{
	static char buf[64 << 10];
	size_t got = 0;

	while (got < len) {
		int n = SSL_read(c->tls, buf, sizeof(buf));

		if (n > 0 && !got && strncmp(buf, start, strlen(start)) != 0)
			return false;
		if (n > 0)
			got += (size_t)n;
		else if (!receive(c))
			return false;
	}
	return true;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void half_a_handshake(void)
{
	struct client c;

	CHECK(client_init(&c));
	CHECK(SSL_do_handshake(c.tls) != 1 && send_records(&c, false) && is_quiet());
	CHECK(send_records(&c, true) && shake_hands(&c) &&
	      write_text(&c, "GET / HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(send_records(&c, true) && read_bytes(&c, "HTTP/1.1 200 ", 20));
	client_fini(&c);
}

static void half_a_head(void)
{
	struct client c;

	CHECK(client_init(&c) && shake_hands(&c));
	CHECK(write_text(&c, "GET / HTTP/1.1\r\n" HOST "\r\n") && send_records(&c, false));
	CHECK(is_quiet());
	CHECK(send_records(&c, true) && read_bytes(&c, "HTTP/1.1 200 ", 20));
	client_fini(&c);
}

/* The handler waits for the rest. */
static void half_a_body(void)
{
	struct client c;

	CHECK(client_init(&c) && shake_hands(&c));
	CHECK(write_text(&c, "POST / HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n"));
	CHECK(send_records(&c, true) && write_text(&c, "0123456789"));
	CHECK(send_records(&c, false) && is_quiet());
	CHECK(send_records(&c, true) && read_bytes(&c, "HTTP/1.1 200 ", 20));
	client_fini(&c);
}

/* The client takes only a part of it. */
static void half_a_response(void)
{
	static const char *const requests[] = { "GET /big HTTP/1.1\r\n" HOST "\r\n",
						"GET /stream HTTP/1.1\r\n" HOST "\r\n" };

	for (int i = 0; i < 2; i++) {
		struct client c;

		CHECK(client_init(&c) && shake_hands(&c) && write_text(&c, requests[i]));
		CHECK(send_records(&c, true) && read_bytes(&c, "HTTP/1.1 200 ", 1000));
		CHECK(is_quiet());
		CHECK(read_bytes(&c, "", BIG - (64 << 10)));
		client_fini(&c);
	}
	CHECK(EVENTUALLY(ended == 1));
}

int main(void)
{
	static char cert[4096], key[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to clients that are gone */
	if (!make_certificate(cert, key, sizeof(cert)) ||
	    !serve(&(struct http_opts){ .handler = handle, .tls_cert = cert, .tls_key = key },
		   "127.0.0.1:0"))
		return 1;
	RUN(half_a_handshake);
	RUN(half_a_head);
	RUN(half_a_body);
	RUN(half_a_response);
	stop();
	return tap_done();
}
