/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as one direction of a connection, in several ways that must agree. */
#ifndef LODGE_TESTS_HTTP1_FUZZ_H
#define LODGE_TESTS_HTTP1_FUZZ_H

#include "../unit/http1_reader.h"

#include "http1/http1_writer.h"

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

/* Pieces of `piece` bytes, the first one of `first`. The caller frees. */
static inline char *read_pieces(const struct reader *like, const char *data, size_t size,
				size_t first, size_t piece)
{
	struct reader r;
	char *log;

	reader_init(&r, like->responses, like->to);
	r.limits = like->limits;
	r.on_head = like->on_head;
	reader_feed(&r, data, first);
	for (size_t at = first; at < size; at += piece)
		reader_feed(&r, data + at, size - at < piece ? size - at : piece);
	reader_finish(&r);
	log = r.log;
	r.log = NULL;
	reader_fini(&r);
	return log;
}

/* The first byte of the input says where to split. */
static inline void read_all_ways(const struct reader *like, const char *data, size_t size,
				 unsigned how)
{
	char *whole = read_pieces(like, data, size, size, 1);
	char *split = read_pieces(like, data, size, how < size ? how : size, size + 1);
	char *pieces = read_pieces(like, data, size, 0, how % 16 + 1);

	must(!strcmp(whole, split) && !strcmp(whole, pieces));
	free(whole);
	free(split);
	free(pieces);
}

/* Whether the bytes at *at are these; then skips them. */
static inline bool pass(const char **at, const char *end, struct http1_text t)
{
	if ((size_t)(end - *at) < t.len || (t.len && memcmp(*at, t.s, t.len) != 0))
		return false;
	*at += t.len;
	return true;
}

static inline bool pass_str(const char **at, const char *end, const char *s)
{
	return pass(at, end, (struct http1_text){ s, strlen(s) });
}

/* Every byte of the headers belongs to a name, a value or the marks between them. */
static inline void check_header_bytes(const struct http1_head *h, const char *at)
{
	const char *end = h->base + h->len;

	for (uint32_t i = 0; i < h->nheaders; i++) {
		struct http1_text value = http1_head_text(h, h->headers[i].value);

		must(h->headers[i].name.len);
		must(pass(&at, end, http1_head_text(h, h->headers[i].name)) &&
		     pass_str(&at, end, ":"));
		while (at < value.s && (pass_str(&at, end, " ") || pass_str(&at, end, "\t")))
			;
		must(!memchr(value.s, '\n', value.len) && !memchr(value.s, '\r', value.len) &&
		     !memchr(value.s, '\0', value.len));
		must(pass(&at, end, value));
		while (pass_str(&at, end, " ") || pass_str(&at, end, "\t"))
			;
		must(pass_str(&at, end, "\r\n"));
	}
	must(pass_str(&at, end, "\r\n") && at == end);
}

/* One length at most, and it decides. */
static inline void check_lengths(const struct http1_head *h, const struct http1_framing *f)
{
	unsigned lengths = 0, codings = 0;

	for (uint32_t i = 0; i < h->nheaders; i++) {
		struct http1_text name = http1_head_text(h, h->headers[i].name);

		lengths += http1_text_is(name, "content-length");
		codings += http1_text_is(name, "transfer-encoding");
	}
	must(lengths + codings <= 1 && f->has_length == (lengths == 1));
	must(f->body != HTTP1_BODY_LENGTH || (lengths && f->length));
	must(f->body != HTTP1_BODY_CHUNKED || codings);
}

/* A copy of the head, as a proxy would write it, has the same framing. */
static inline void check_copy(const struct http1_head *h, struct http1_writer *w,
			      const struct http1_framing *f)
{
	size_t len = 0;

	for (uint32_t i = 0; i < h->nheaders; i++) {
		if (!http1_head_is_hop_by_hop(h, i))
			http1_writer_copy(w, h, i);
	}
	http1_writer_framing(w, f);
	must(http1_writer_end(w, &len) == 0 && len == w->len);
}

#endif
