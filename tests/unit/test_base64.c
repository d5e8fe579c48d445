/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base64.h"
#include "tap.h"

/* Decodes into memory of exactly the documented size, so that the sanitizer detects an overflow. */
static int decode(const char *text, size_t len, char *ret, size_t *ret_len)
{
	size_t room = BASE64_DECODED(len);
	char *from = malloc(len > 0 ? len : 1), *to = malloc(room > 0 ? room : 1);
	int r = -ENOMEM;

	if (from && to) {
		memcpy(from, text, len);
		r = base64_decode(from, len, to, ret_len);
		if (r == 0)
			memcpy(ret, to, *ret_len);
	}
	free(from);
	free(to);
	return r;
}

static void the_vectors_of_the_rfc_are_encoded_and_decoded(void)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		const char *plain = pairs[i][0], *coded = pairs[i][1];
		char out[32] = { 0 };
		size_t len = 99;

		CHECK(BASE64_ENCODED(strlen(plain)) == strlen(coded));
		base64_encode(plain, strlen(plain), out);
		CHECK_STR(out, coded);
		memset(out, 0, sizeof(out));
		CHECK(decode(coded, strlen(coded), out, &len) == 0 && len == strlen(plain));
		CHECK_STR(out, plain);
	}
}

static void every_byte_survives_at_every_length(void)
{
	unsigned char bytes[300], back[300];
	char text[BASE64_ENCODED(sizeof(bytes))];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 89 + 3);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		size_t got = 999;

		base64_encode(bytes, len, text);
		CHECK(decode(text, BASE64_ENCODED(len), (char *)back, &got) == 0 && got == len);
		CHECK(len == 0 || memcmp(bytes, back, len) == 0);
	}
}

static void non_canonical_input_is_refused(void)
{
	static const char *const bad[] = {
		"Z",
		"Zg",
		"Zg=",
		"Zg===",
		"Zh==",
		"Zm9=",
		"=",
		"====",
		"Zg==Zg==",
		"Zm9v ",
		" Zm9v",
		"Zm\n9v",
		"Zm9-",
		"Zm9_",
		"Z=9v",
		"Z===",
		"Zm=v",
		"Zm9v=",
		"Zm9vA",
		"\xc3\xa4"
		"AA",
		"Zg=A",
	};
	char out[32];
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (decode(bad[i], strlen(bad[i]), out, &len) != -EINVAL)
			printf("# took '%s'\n", bad[i]);
		CHECK(decode(bad[i], strlen(bad[i]), out, &len) == -EINVAL);
	}
	CHECK(decode("Zm\0v", 4, out, &len) == -EINVAL);
}

int main(void)
{
	RUN(the_vectors_of_the_rfc_are_encoded_and_decoded);
	RUN(every_byte_survives_at_every_length);
	RUN(non_canonical_input_is_refused);
	return tap_done();
}
