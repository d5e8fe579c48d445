/* SPDX-License-Identifier: Apache-2.0 */
/* The WebSocket handshake. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "http/ws_server.h"

enum { NONCE = 16, NONCE_TEXT = BASE64_ENCODED(NONCE), SHA1 = 20 };

static const char version[] = "13";

/* The next item of a comma-separated list; NULL at its end. */
static const char *next_word(const char *list, size_t *ret_len)
{
	list += strspn(list, ", \t");
	*ret_len = strcspn(list, ", \t");
	return *ret_len ? list : NULL;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = 0;

	while (list && (list = next_word(list, &len))) {
		if (len == strlen(word) && strncasecmp(list, word, len) == 0)
			return true;
		list += len;
	}
	return false;
}

const char *ws_offered(const struct http_request *rq, const char *prefix, size_t *ret_len)
{
	const char *list = http_header(rq, "Sec-WebSocket-Protocol");
	size_t len = 0;

	while (list && (list = next_word(list, &len))) {
		if (len >= strlen(prefix) && memcmp(list, prefix, strlen(prefix)) == 0) {
			*ret_len = len;
			return list;
		}
		list += len;
	}
	return NULL;
}

static int other_protocol(struct http_request *rq, const char *why, struct err *err)
{
	http_set_header(rq, "Connection", "Upgrade");
	http_set_header(rq, "Upgrade", "websocket");
	http_set_header(rq, "Sec-WebSocket-Version", version);
	err_set(err, ERR_INVALID, "%s", why);
	err->sys = EPROTONOSUPPORT;
	return -1;
}

static bool is_nonce(const char *key)
{
	char bytes[BASE64_DECODED(NONCE_TEXT)];
	size_t len;

	return key && strlen(key) == NONCE_TEXT &&
	       base64_decode(key, strlen(key), bytes, &len) == 0 && len == NONCE;
}

int ws_check(struct http_request *rq, struct err *err)
{
	const char *asked = http_header(rq, "Sec-WebSocket-Version");

	if (strcmp(http_method(rq), "GET") != 0 ||
	    !has_word(http_header(rq, "Upgrade"), "websocket") ||
	    !has_word(http_header(rq, "Connection"), "upgrade"))
		return other_protocol(rq, "WebSocket required: send GET with `Upgrade: websocket`",
				      err);
	if (!asked || strcmp(asked, version) != 0)
		return other_protocol(rq, "Sec-WebSocket-Version: must be 13", err);
	if (!is_nonce(http_header(rq, "Sec-WebSocket-Key")))
		return err_set(err, ERR_INVALID, "Sec-WebSocket-Key: must be 16 bytes in base64");
	return 0;
}

/* Computes Sec-WebSocket-Accept (RFC 6455, 4.2.2). */
static int prove(struct http_request *rq, struct err *err)
{
	char text[64], proof[BASE64_ENCODED(SHA1) + 1] = "";
	unsigned char digest[EVP_MAX_MD_SIZE];

	snprintf(text, sizeof(text), "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
		 http_header(rq, "Sec-WebSocket-Key"));
	if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha1(), NULL) != 1)
		return err_set(err, ERR_INTERNAL, "SHA-1 is not available");
	base64_encode(digest, SHA1, proof);
	http_set_header(rq, "Sec-WebSocket-Accept", proof);
	return 0;
}

int ws_accept(struct http_request *rq, const char *protocol, size_t max, struct ws **ret,
	      struct err *err)
{
	const void *early;
	size_t early_len;
	int fd;

	if (prove(rq, err) < 0)
		return -1;
	if (protocol)
		http_set_header(rq, "Sec-WebSocket-Protocol", protocol);
	if (http_upgrade(rq, "websocket", &fd, &early, &early_len, err) < 0)
		return -1;
	return ws_new(fd, early, early_len, max, ret, err);
}
