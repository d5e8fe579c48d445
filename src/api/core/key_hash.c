/* SPDX-License-Identifier: Apache-2.0 */
/* Keys have 256 random bits and are stored as a hash. They cannot be guessed from a dictionary, so
 * one fast hash is enough. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "api/core/auth.h"

enum { KEY_BYTES = 32 };

int api_key_generate(char ret[KEY_TEXT], struct err *err)
{
	unsigned char random[KEY_BYTES];

	_Static_assert(3 + 2 * KEY_BYTES < KEY_TEXT, "a key has room");
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_sys(err, errno, "getrandom");
	memcpy(ret, "lk_", 4);
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(ret + 3 + 2 * i, 3, "%02x", random[i]);
	return 0;
}

int api_key_hash(const char *key, uint8_t ret[STORE_HASH], struct err *err)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (EVP_Digest(key, strlen(key), hash, &len, EVP_sha256(), NULL) != 1 || len != STORE_HASH)
		return err_set(err, ERR_UNAVAILABLE, "SHA-256 is not available");
	memcpy(ret, hash, STORE_HASH);
	return 0;
}
