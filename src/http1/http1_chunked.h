/* SPDX-License-Identifier: Apache-2.0 */
/* A chunked body: finding its end, taking the data out of it, and writing one. */
#ifndef LODGE_HTTP1_CHUNKED_H
#define LODGE_HTTP1_CHUNKED_H

#include "http1/http1_text.h"

enum {
	HTTP1_CHUNK_DIGITS = 15, /* of a size */
	HTTP1_CHUNK_EXTENSIONS = 16 << 10, /* bytes in all chunks of a body */
	HTTP1_TRAILERS = 8 << 10, /* bytes of the trailer section, if the caller gives no buffer */
	HTTP1_TRAILER_NAME = 17, /* the longest name that is not allowed there */
};

/* {0} is the beginning of a body. */
struct http1_chunked {
	/* If set, the trailer section is collected here, with the empty line at its end. */
	char *trailers;
	uint32_t trailers_size, trailers_len;
	/* where to go on */
	uint64_t left;
	uint32_t extensions;
	uint8_t state, digits, name_len;
	char name[HTTP1_TRAILER_NAME];
};

/* Reads up to `len` bytes of the body from `in`. HTTP1_MORE used all of them; after HTTP1_DONE
 * *ret_used bytes belong to the body and the rest to the next message. The data goes to `to`, which
 * has space for `len` bytes and may be `in` itself; NULL only looks for the end. *ret_data is
 * its length, also for NULL. Errors have status 400, or 431 for too many trailers. */
enum http1_result http1_chunked_read(struct http1_chunked *c, const char *in, size_t len, char *to,
				     size_t *ret_used, size_t *ret_data, struct http1_error *err);
/* Whether the next byte is data; then *ret bytes of it can be moved without reading them, and
 * http1_chunked_skip() notes how many were. */
bool http1_chunked_in_data(const struct http1_chunked *c, uint64_t *ret);
void http1_chunked_skip(struct http1_chunked *c, uint64_t n);

enum { HTTP1_CHUNK_HEAD = HTTP1_CHUNK_DIGITS + 2 };
#define HTTP1_CHUNK_TAIL "\r\n" /* after the data */
#define HTTP1_LAST_CHUNK "0\r\n\r\n" /* the end of a body without trailers */

/* Writes what precedes the data of a chunk and returns its length. `len` must not be 0, which would
 * end the body. */
size_t http1_chunked_head(uint64_t len, char to[HTTP1_CHUNK_HEAD]);

#endif
