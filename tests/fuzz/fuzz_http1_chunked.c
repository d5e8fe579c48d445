/* SPDX-License-Identifier: Apache-2.0 */
/* A chunked body in any bytes: decoded in place, into another buffer and only looked at, in
 * different pieces, it ends at the same byte with the same data. Written again it is read as the
 * same. The first byte chooses the pieces. */
#include "http1/http1_chunked.h"
#include "http1_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	enum http1_result result;
	struct http1_error err;
	size_t used, len, trailers_len;
	char *body, *trailers;
};

enum mode { IN_PLACE, APART, LOOK, MODES };

static void read_piece(struct http1_chunked *c, enum mode mode, const char *in, size_t n,
		       struct outcome *o)
{
	char *piece = reader_alloc(n), *apart = reader_alloc(n);
	size_t used = 0, len = 0;

	if (n)
		memcpy(piece, in, n);
	o->result = http1_chunked_read(c, piece, n,
				       mode == IN_PLACE ? piece
				       : mode == APART	? apart
							: NULL,
				       &used, &len, &o->err);
	if (o->result != HTTP1_BAD) {
		must(used <= n && len <= used && (o->result == HTTP1_DONE || used == n));
		if (mode == LOOK)
			o->len += len;
		else
			reader_append(&o->body, &o->len, mode == APART ? apart : piece, len);
		o->used += used;
	}
	free(piece);
	free(apart);
}

static struct outcome read_body(enum mode mode, const char *in, size_t size, size_t piece)
{
	struct outcome o = { .result = HTTP1_MORE, .trailers = reader_alloc(256) };
	struct http1_chunked c = { .trailers = o.trailers, .trailers_size = 256 };

	for (size_t at = 0; at < size && o.result == HTTP1_MORE; at += piece)
		read_piece(&c, mode, in + at, size - at < piece ? size - at : piece, &o);
	o.trailers_len = c.trailers_len;
	return o;
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
	must(a->result == b->result);
	if (a->result == HTTP1_BAD) {
		must(a->err.status == b->err.status && a->err.why == b->err.why);
		return;
	}
	must(a->used == b->used && a->len == b->len && a->trailers_len == b->trailers_len);
	must(!a->len || !a->body || !b->body || !memcmp(a->body, b->body, a->len));
	must(!memcmp(a->trailers, b->trailers, a->trailers_len));
}

static void outcome_fini(struct outcome *o)
{
	free(o->body);
	free(o->trailers);
}

/* The automaton and the parser of heads accept the same trailers. */
static void check_trailers(const struct outcome *o)
{
	static const struct http1_limits limits = { .head = 256 };
	struct http1_header headers[128];
	struct http1_error err;
	struct http1_head h;

	http1_head_init(&h, headers, 128, &limits);
	must(http1_head_parse_trailers(&h, o->trailers, o->trailers_len, &err) == HTTP1_DONE);
	must(h.len == o->trailers_len);
}

static void check_copy_of_body(const struct outcome *o)
{
	char head[HTTP1_CHUNK_HEAD], *text = NULL;
	struct outcome again;
	size_t len = 0;

	if (o->len) {
		reader_append(&text, &len, head, http1_chunked_head(o->len, head));
		reader_append(&text, &len, o->body, o->len);
		reader_append(&text, &len, HTTP1_CHUNK_TAIL, 2);
	}
	reader_append(&text, &len, HTTP1_LAST_CHUNK, 5);
	again = read_body(IN_PLACE, text, len, len);
	must(again.result == HTTP1_DONE && again.used == len && again.len == o->len);
	must(!o->len || !memcmp(again.body, o->body, o->len));
	outcome_fini(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *in = (const char *)data + 1;
	struct outcome whole;

	if (size < 2)
		return 0;
	whole = read_body(IN_PLACE, in, size - 1, size);
	for (enum mode mode = IN_PLACE; mode < MODES; mode++) {
		struct outcome pieces = read_body(mode, in, size - 1, data[0] % 32 + 1);

		check_same(&whole, &pieces);
		outcome_fini(&pieces);
	}
	if (whole.result == HTTP1_DONE) {
		check_trailers(&whole);
		check_copy_of_body(&whole);
	}
	outcome_fini(&whole);
	return 0;
}
