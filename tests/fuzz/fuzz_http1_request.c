/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in any bytes: however they are split, the same is read. An accepted head has no byte
 * that another parser could read in another way, and its copy means the same. The first byte
 * chooses the pieces, the second the forms of targets. */
#include "http1/http1_request.h"
#include "http1_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(const struct http1_head *h)
{
	const char *at = h->base, *end = h->base + h->len;

	must(h->method.len && pass(&at, end, http1_head_text(h, h->method)));
	must(pass_str(&at, end, " ") && pass(&at, end, http1_head_text(h, h->target)));
	must(pass_str(&at, end, h->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n"));
	check_header_bytes(h, at);
}

static void check_target(const struct http1_head *h)
{
	struct http1_text target = http1_head_text(h, h->target);

	must(target.len && target.len <= h->limits->target);
	must((h->form == HTTP1_FORM_ORIGIN) == (*target.s == '/'));
	must(!h->form || (h->form & h->limits->forms));
	must(h->authority.len || !h->minor);
	must(h->path.len || h->form == HTTP1_FORM_ABSOLUTE || h->form == HTTP1_FORM_AUTHORITY);
}

static void on_head(const struct http1_head *h, const struct http1_framing *f)
{
	static const struct http1_limits limits = { .head = 2048, .target = 256, .forms = 7 };
	struct http1_header headers[READER_HEADERS + 1];
	char buf[2048], method[256];
	struct http1_framing again;
	struct http1_error err;
	struct http1_writer w;
	struct http1_head copy;

	check_bytes(h);
	check_target(h);
	check_lengths(h, f);
	must(f->body <= HTTP1_BODY_CHUNKED && !f->interim);
	if (h->method.len >= sizeof(method) || !h->minor)
		return;
	memcpy(method, h->base + h->method.at, h->method.len);
	method[h->method.len] = '\0';
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_request(&w, method, http1_head_text(h, h->target));
	check_copy(h, &w, f);
	http1_head_init(&copy, headers, READER_HEADERS + 1, &limits);
	must(http1_request_parse(&copy, buf, w.len, &err) == HTTP1_DONE && copy.len == w.len);
	must(http1_framing_of_request(&copy, &again, &err) == HTTP1_DONE);
	must(again.body == f->body && again.length == f->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader like = { .limits = { .head = 1024, .target = 256 }, .on_head = on_head };

	if (size < 2)
		return 0;
	like.limits.forms = data[1] & 7;
	read_all_ways(&like, (const char *)data + 2, size - 2, data[0]);
	return 0;
}
