/* SPDX-License-Identifier: Apache-2.0 */
/* https://: accepted and rejected certificates. */
#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "client/internal.h"
#include "tap.h"
#include "tmp_name.h"

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";

static struct {
	int fd;
	unsigned port;
	SSL_CTX *ctx;
	bool plain; /* no TLS at all */
	char heard[4096];
} server;
static char cert_file[TMP_NAME_SIZE];
static struct err err;

/* ---- the server ------------------------------------------------------------------------------ */

static bool add_name(X509 *x)
{
	X509_EXTENSION *e =
		X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
	bool ok = e && X509_add_ext(x, e, -1) == 1;

	X509_EXTENSION_free(e);
	return ok;
}

static X509 *make_cert(EVP_PKEY *key)
{
	X509 *x = X509_new();
	X509_NAME *name = x ? X509_get_subject_name(x) : NULL;

	if (!x)
		return NULL;
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1,
				   0);
	X509_set_issuer_name(x, name);
	if (add_name(x) && X509_sign(x, key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

static bool make_context(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = key ? make_cert(key) : NULL;
	int fd = mkstemp(tmp_name(cert_file, "lodge-tls"));
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	bool ok = x && f && PEM_write_X509(f, x) == 1;

	if (f)
		fclose(f);
	server.ctx = SSL_CTX_new(TLS_server_method());
	ok = ok && SSL_CTX_use_certificate(server.ctx, x) == 1 &&
	     SSL_CTX_use_PrivateKey(server.ctx, key) == 1;
	X509_free(x);
	EVP_PKEY_free(key);
	return ok;
}

static bool open_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server.fd < 0 || bind(server.fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(server.fd, 4) < 0 || getsockname(server.fd, (struct sockaddr *)&a, &len) < 0)
		return false;
	server.port = ntohs(a.sin_port);
	return true;
}

static void *serve(void *arg)
{
	int fd = accept(server.fd, NULL, NULL), n;
	SSL *ssl = SSL_new(server.ctx);

	(void)arg;
	if (server.plain) {
		(void)!write(fd, answer, sizeof(answer) - 1);
	} else if (SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1) {
		n = SSL_read(ssl, server.heard, sizeof(server.heard) - 1);
		server.heard[n > 0 ? n : 0] = '\0';
		(void)SSL_write(ssl, answer, sizeof(answer) - 1);
		(void)SSL_shutdown(ssl);
	}
	SSL_free(ssl);
	close(fd);
	return NULL;
}

static int ask(const char *host)
{
	struct client *c = NULL;
	pthread_t thread;
	char url[64];
	int r;

	snprintf(url, sizeof(url), "https://%s:%u", host, server.port);
	err = (struct err){ 0 };
	server.heard[0] = '\0';
	if (pthread_create(&thread, NULL, serve, NULL) != 0)
		return -2;
	r = client_new(url, "secret", &c, &err);
	if (r == 0)
		r = client_call(c, "GET", "/v1/x", NULL, NULL, &err);
	client_free(c);
	pthread_join(thread, NULL);
	return r;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_certificate_that_is_trusted_is_accepted(void)
{
	setenv("SSL_CERT_FILE", cert_file, 1);
	CHECK(ask("localhost") == 0);
	CHECK(strstr(server.heard, "Authorization: Bearer secret"));
	CHECK(ask("127.0.0.1") == 0);
}

static void an_untrusted_server_gets_no_key(void)
{
	setenv("SSL_CERT_FILE", "/dev/null", 1);
	setenv("SSL_CERT_DIR", "/nonexistent", 1);
	CHECK(ask("localhost") == -1 && err.code == ERR_DENIED);
	CHECK(strstr(err.msg, "certificate") && strstr(err.msg, "SSL_CERT_FILE"));
	CHECK(!*server.heard);
}

static void a_server_with_another_name_gets_no_key(void)
{
	setenv("SSL_CERT_FILE", cert_file, 1);
	CHECK(ask("127.1") == -1 && err.code == ERR_DENIED && !*server.heard);
}

static void a_server_without_tls_is_reported(void)
{
	server.plain = true;
	CHECK(ask("localhost") == -1 && err.code == ERR_UNAVAILABLE && strstr(err.msg, "TLS"));
	server.plain = false;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (!make_context() || !open_port())
		return 1;
	RUN(a_certificate_that_is_trusted_is_accepted);
	RUN(an_untrusted_server_gets_no_key);
	RUN(a_server_with_another_name_gets_no_key);
	RUN(a_server_without_tls_is_reported);
	unlink(cert_file);
	close(server.fd);
	SSL_CTX_free(server.ctx);
	return tap_done();
}
