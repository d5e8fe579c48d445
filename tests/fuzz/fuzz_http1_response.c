/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of an untrusted server: however they are split, the same is read, and an accepted head
 * has no byte that another parser could read in another way. The first byte chooses the pieces, the
 * second what the responses answer. */
#include "http1/http1_response.h"
#include "http1_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(const struct http1_head *h)
{
	const char *at = h->base, *end = h->base + h->len;
	char status[8];

	must(h->status >= 100 && h->status <= 599);
	snprintf(status, sizeof(status), "%u", h->status);
	must(pass_str(&at, end, h->minor ? "HTTP/1.1 " : "HTTP/1.0 "));
	must(pass_str(&at, end, status));
	if (pass_str(&at, end, " "))
		must(pass(&at, end, http1_head_text(h, h->reason)));
	must(pass_str(&at, end, "\r\n"));
	check_header_bytes(h, at);
}

static void on_head(const struct http1_head *h, const struct http1_framing *f)
{
	char buf[2048];
	struct http1_writer w;

	check_bytes(h);
	check_lengths(h, f);
	must(!f->upgrade && !f->expects_continue);
	must(!f->interim || (h->status < 200 && f->body == HTTP1_BODY_NONE && f->keep_alive));
	must(f->body <= HTTP1_BODY_CHUNKED || !f->keep_alive);
	must((h->status != 204 && h->status != 304) || f->body == HTTP1_BODY_NONE ||
	     f->body == HTTP1_BODY_TUNNEL);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_status(&w, h->status, NULL);
	check_copy(h, &w, f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader like = { .responses = true,
			       .limits = { .head = 1024, .target = 64 },
			       .on_head = on_head };

	if (size < 2)
		return 0;
	like.to = data[1] & 7;
	read_all_ways(&like, (const char *)data + 2, size - 2, data[0]);
	return 0;
}
