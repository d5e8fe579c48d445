/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/server_tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/auto.h"

static void file_close(FILE *f)
{
	if (f)
		fclose(f);
}
DEFINE_AUTO(FILE *, file_close);
DEFINE_AUTO(X509 *, X509_free);
DEFINE_AUTO(EVP_PKEY *, EVP_PKEY_free);

/* There is no terminal to ask for a password. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return 0;
}

static FILE *open_pem(const char *name, const char *path, struct err *err)
{
	FILE *f = fopen(path, "re");

	if (!f)
		err_sys(err, errno, "%s: %s", name, path);
	return f;
}

int tls_check(const char *cert, const char *key, struct err *err)
{
	auto_call(file_close) FILE *cert_file = open_pem("tls_cert", cert, err);
	auto_call(file_close) FILE *key_file = cert_file ? open_pem("tls_key", key, err) : NULL;
	auto_call(X509_free) X509 *x = NULL;
	auto_call(EVP_PKEY_free) EVP_PKEY *k = NULL;
	bool fits;

	if (!key_file)
		return -1;
	x = PEM_read_X509(cert_file, NULL, no_password, NULL);
	k = PEM_read_PrivateKey(key_file, NULL, no_password, NULL);
	fits = x && k && X509_check_private_key(x, k) == 1;
	ERR_clear_error();
	if (!x)
		return err_set(err, ERR_INVALID, "tls_cert: no PEM certificate in %s", cert);
	if (!k)
		return err_set(err, ERR_INVALID,
			       "tls_key: no PEM private key without a password in %s", key);
	if (!fits)
		return err_set(err, ERR_INVALID, "tls_cert and tls_key do not match: %s, %s", cert,
			       key);
	return 0;
}
