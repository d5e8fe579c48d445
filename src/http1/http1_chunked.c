/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_chunked.h"

#include <assert.h>
#include <string.h>

#include "http1/http1_name.h"

enum state {
	SIZE,
	EXTENSION_NAME, /* the byte after a semicolon */
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	LINE, /* the first byte of a trailer line, or the empty line */
	NAME,
	VALUE,
	LINE_LF,
	END_LF,
	END,
};

static bool fail(struct http1_error *err, unsigned status, const char *why)
{
	*err = (struct http1_error){ status, why };
	return false;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool read_size(struct http1_chunked *c, char byte, struct http1_error *err)
{
	int digit = http1_hex(byte);

	if (digit >= 0) {
		if (c->digits == HTTP1_CHUNK_DIGITS)
			return fail(err, 400, "chunk size: more than 15 digits");
		c->digits++;
		c->left = c->left << 4 | (unsigned)digit;
		return true;
	}
	if (!c->digits || (byte != '\r' && byte != ';'))
		return fail(err, 400, "chunk size: must be hexadecimal");
	c->state = byte == ';' ? EXTENSION_NAME : SIZE_LF;
	return true;
}

static bool read_extension(struct http1_chunked *c, char byte, struct http1_error *err)
{
	if (c->state == EXTENSION && byte == '\r') {
		c->state = SIZE_LF;
		return true;
	}
	if (!http1_is(byte, c->state == EXTENSION ? HTTP1_VALUE : HTTP1_TOKEN))
		return fail(err, 400, "chunk extension: invalid character");
	if (c->extensions == HTTP1_CHUNK_EXTENSIONS)
		return fail(err, 400, "chunk extensions: larger than 16 KiB");
	c->extensions++;
	c->state = EXTENSION;
	return true;
}

static bool read_line_end(struct http1_chunked *c, char byte, struct http1_error *err)
{
	bool is_cr = c->state == DATA_CR;

	if (byte != (is_cr ? '\r' : '\n'))
		return fail(err, 400, "chunked body: a line must end with CR LF");
	if (is_cr) {
		c->state = DATA_LF;
	} else if (c->state == SIZE_LF) {
		c->state = c->left ? DATA : LINE;
		c->digits = 0;
	} else {
		c->state = c->state == DATA_LF ? SIZE : c->state == LINE_LF ? LINE : END;
	}
	return true;
}

/* ---- trailers -------------------------------------------------------------------------------- */

static bool read_name(struct http1_chunked *c, char byte, struct http1_error *err)
{
	if (byte == ':' && c->name_len) {
		/* A longer name is none of them. */
		if (c->name_len <= HTTP1_TRAILER_NAME &&
		    http1_name_is_framing(
			    http1_name_find((struct http1_text){ c->name, c->name_len })))
			return fail(err, 400, "a trailer that must not be one");
		c->state = VALUE;
		return true;
	}
	if (!http1_is(byte, HTTP1_TOKEN))
		return fail(err, 400, "a trailer name that is empty or has invalid characters");
	if (c->name_len < HTTP1_TRAILER_NAME)
		c->name[c->name_len] = byte;
	c->name_len += c->name_len <= HTTP1_TRAILER_NAME;
	c->state = NAME;
	return true;
}

static bool read_trailer(struct http1_chunked *c, char byte, struct http1_error *err)
{
	if (c->state == LINE) {
		c->name_len = 0;
		if (byte == '\r') {
			c->state = END_LF;
			return true;
		}
	}
	if (c->state != VALUE)
		return read_name(c, byte, err);
	if (byte == '\r')
		c->state = LINE_LF;
	else if (!http1_is(byte, HTTP1_VALUE))
		return fail(err, 400, "a control character in a trailer");
	return true;
}

static bool collect_trailer(struct http1_chunked *c, char byte, struct http1_error *err)
{
	if (c->trailers_len == (c->trailers ? c->trailers_size : (uint32_t)HTTP1_TRAILERS))
		return fail(err, 431, "trailers: too large");
	if (c->trailers)
		c->trailers[c->trailers_len] = byte;
	c->trailers_len++;
	return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_byte(struct http1_chunked *c, char byte, struct http1_error *err)
{
	if (c->state >= LINE && !collect_trailer(c, byte, err))
		return false;
	switch ((enum state)c->state) {
	case SIZE:
		return read_size(c, byte, err);
	case EXTENSION_NAME:
	case EXTENSION:
		return read_extension(c, byte, err);
	case SIZE_LF:
	case DATA_CR:
	case DATA_LF:
	case LINE_LF:
	case END_LF:
		return read_line_end(c, byte, err);
	case LINE:
	case NAME:
	case VALUE:
		return read_trailer(c, byte, err);
	case DATA:
	case END:
		break;
	}
	return false;
}

enum http1_result http1_chunked_read(struct http1_chunked *c, const char *in, size_t len, char *to,
				     size_t *ret_used, size_t *ret_data, struct http1_error *err)
{
	size_t at = 0, data = 0;

	while (at < len && c->state != END) {
		size_t n = len - at;

		if (c->state != DATA) {
			if (!read_byte(c, in[at++], err))
				return HTTP1_BAD;
			continue;
		}
		n = n < c->left ? n : (size_t)c->left;
		if (to && to + data != in + at)
			memmove(to + data, in + at, n);
		http1_chunked_skip(c, n);
		data += n;
		at += n;
	}
	*ret_used = at;
	*ret_data = data;
	return c->state == END ? HTTP1_DONE : HTTP1_MORE;
}

bool http1_chunked_in_data(const struct http1_chunked *c, uint64_t *ret)
{
	*ret = c->state == DATA ? c->left : 0;
	return c->state == DATA;
}

void http1_chunked_skip(struct http1_chunked *c, uint64_t n)
{
	assert(c->state == DATA && n <= c->left);
	c->left -= n;
	if (!c->left)
		c->state = DATA_CR;
}

/* ---- writing --------------------------------------------------------------------------------- */

size_t http1_chunked_head(uint64_t len, char to[HTTP1_CHUNK_HEAD])
{
	char digits[HTTP1_CHUNK_DIGITS];
	size_t n = 0, at = 0;

	assert(len && !(len >> (4 * HTTP1_CHUNK_DIGITS)));
	for (; len && n < sizeof(digits); len >>= 4)
		digits[n++] = "0123456789abcdef"[len & 15];
	while (n)
		to[at++] = digits[--n];
	to[at++] = '\r';
	to[at++] = '\n';
	return at;
}
