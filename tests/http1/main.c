/* SPDX-License-Identifier: Apache-2.0 */
/* usage: http1-reader -- each line of its input is a kind (request, response, head: a response to
 * HEAD), a space and bytes in hexadecimal. Prints what src/http1 reads in them, then what a proxy
 * would send on, in hexadecimal, and a line "--". */
#include "http1/http1_request.h"
#include "http1/http1_writer.h"
#include "../unit/http1_reader.h"

enum { LINE = 256 << 10, HEAD = 16 << 10 };

/* ---- a proxy --------------------------------------------------------------------------------- */

static struct {
	char head[HEAD]; /* of the message whose body is being read */
	size_t head_len;
	char *sent;
	size_t len;
} forward;

static void start_request(struct http1_writer *w, const struct http1_head *h)
{
	struct http1_text path = http1_head_text(h, h->path);
	char method[64];

	snprintf(method, sizeof(method), "%.*s", (int)h->method.len, h->base + h->method.at);
	http1_writer_request(w, method, path.len ? path : (struct http1_text){ "/", 1 });
	if (!h->first[HTTP1_HOST])
		http1_writer_header(w, "Host", "old");
}

static void on_head(const struct http1_head *h, const struct http1_framing *f)
{
	struct http1_writer w;

	if (f->interim || f->body == HTTP1_BODY_TUNNEL || h->form == HTTP1_FORM_AUTHORITY)
		return;
	http1_writer_init(&w, forward.head, sizeof(forward.head));
	if (h->status)
		http1_writer_status(&w, h->status, NULL);
	else
		start_request(&w, h);
	for (size_t i = 0; i < h->nheaders; i++) {
		if (!http1_head_is_hop_by_hop(h, i))
			http1_writer_copy(&w, h, i);
	}
	http1_writer_framing(&w, f);
	if (http1_writer_end(&w, &forward.head_len) < 0)
		abort();
}

static void on_body(const struct http1_framing *f, const char *body, size_t len)
{
	bool chunked = f->body == HTTP1_BODY_CHUNKED;
	char size[HTTP1_CHUNK_HEAD];

	reader_append(&forward.sent, &forward.len, forward.head, forward.head_len);
	if (chunked && len)
		reader_append(&forward.sent, &forward.len, size, http1_chunked_head(len, size));
	reader_append(&forward.sent, &forward.len, body, len);
	if (chunked && len)
		reader_append(&forward.sent, &forward.len, HTTP1_CHUNK_TAIL, 2);
	if (chunked)
		reader_append(&forward.sent, &forward.len, HTTP1_LAST_CHUNK, 5);
}

/* ---- reading --------------------------------------------------------------------------------- */

static char *read_in_pieces(const char *kind, const char *data, size_t len, size_t piece)
{
	unsigned to = strcmp(kind, "head") == 0 ? HTTP1_TO_HEAD : 0;
	struct reader r;
	char *log;

	free(forward.sent);
	forward.sent = NULL;
	forward.len = 0;
	reader_init(&r, strcmp(kind, "request") != 0, to);
	r.limits = (struct http1_limits){ .head = 8 << 10, .target = 4 << 10, .forms = 7 };
	r.on_head = on_head;
	r.on_body = on_body;
	for (size_t at = 0; at < len; at += piece)
		reader_feed(&r, data + at, len - at < piece ? len - at : piece);
	reader_finish(&r);
	log = r.log;
	r.log = NULL;
	reader_fini(&r);
	return log;
}

static size_t decode_hex(char *text)
{
	size_t n = 0;

	for (; http1_hex(text[2 * n]) >= 0 && http1_hex(text[2 * n + 1]) >= 0; n++)
		text[n] = (char)(http1_hex(text[2 * n]) << 4 | http1_hex(text[2 * n + 1]));
	return n;
}

static void print_line(char *line, char *hex)
{
	size_t len = decode_hex(hex);
	char *whole = read_in_pieces(line, hex, len, len + 1);
	char *bytes = read_in_pieces(line, hex, len, 1);

	printf("%sforward ", strcmp(whole, bytes) == 0 ? whole : "depends on the pieces\n");
	for (size_t i = 0; i < forward.len; i++)
		printf("%02x", (unsigned char)forward.sent[i]);
	printf("\n--\n");
	free(whole);
	free(bytes);
}

int main(void)
{
	static char line[LINE];

	while (fgets(line, sizeof(line), stdin)) {
		char *hex = strchr(line, ' ');

		if (!hex)
			return 2;
		*hex++ = '\0';
		print_line(line, hex);
	}
	free(forward.sent);
	return 0;
}
