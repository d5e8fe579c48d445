/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include "tap.h"

static void digest_of(const void *bytes, size_t len, size_t piece, char ret[SHA256_HEX])
{
	struct sha256 s;

	sha256_init(&s);
	for (size_t at = 0; at < len; at += piece)
		sha256_add(&s, (const char *)bytes + at, len - at < piece ? len - at : piece);
	sha256_end(&s, ret);
}

/* The examples of FIPS 180-4, and lengths around the padding. */
static void known_digests(void)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	char hex[SHA256_HEX], zeros[64] = { 0 };

	digest_of("", 0, 1, hex);
	CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest_of("abc", 3, 3, hex);
	CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	digest_of(two, strlen(two), 56, hex);
	CHECK_STR(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	digest_of(zeros, 55, 55, hex);
	CHECK_STR(hex, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
	digest_of(zeros, 64, 64, hex);
	CHECK_STR(hex, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

static void pieces_do_not_matter(void)
{
	static char million[1000000];
	static const size_t pieces[] = { 1, 3, 63, 64, 65, 1000, 999999, 1000000 };
	char hex[SHA256_HEX];

	memset(million, 'a', sizeof(million));
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		digest_of(million, sizeof(million), pieces[i], hex);
		CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

int main(void)
{
	RUN(known_digests);
	RUN(pieces_do_not_matter);
	return tap_done();
}
