/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that cannot be finished: files that shrink, streams that fail. */
#include "http/server.h"
#include "http_client.h"

#include <sys/mman.h>

#define HOST "Host: a\r\n"

enum { FILE_SIZE = 40 << 20 };

static int file = -1;
static atomic_int wrote, refused, counted;

static void send_file(struct http_request *rq)
{
	const char *from = http_query(rq, "from");
	uint64_t offset = from ? strtoull(from, NULL, 10) : 0;

	http_reply_fd(rq, 200, "text/plain", dup(file), offset, FILE_SIZE - offset);
}

/* Writes n bytes and aborts; after that nothing can be written. */
static void abort_stream(struct http_request *rq)
{
	long n = atol(http_query(rq, "n"));
	char buf[1000];

	memset(buf, 'x', sizeof(buf));
	http_stream_abort(rq); /* nothing was sent yet */
	if (http_stream_begin(rq, 200, "text/plain"))
		return;
	for (long done = 0; done < n; done += 1000) {
		if (!http_stream_write(rq, buf, sizeof(buf)))
			wrote++;
	}
	http_stream_abort(rq);
	refused += http_stream_write(rq, buf, sizeof(buf)) != 0;
	if (http_query(rq, "twice"))
		http_stream_abort(rq);
}

static void read_body(struct http_request *rq)
{
	const char *body;
	struct err e;
	size_t len;

	if (http_body(rq, 1 << 20, &body, &len, &e))
		http_reply(rq, 413, "text/plain", NULL, 0);
	else
		http_reply(rq, 200, "text/plain", body, len);
}

static void handle(void *arg, struct http_request *rq)
{
	(void)arg;
	counted += !strcmp(http_path(rq), "/count");
	if (!strcmp(http_path(rq), "/file"))
		send_file(rq);
	else if (!strcmp(http_path(rq), "/abort"))
		abort_stream(rq);
	else if (!strcmp(http_path(rq), "/body"))
		read_body(rq);
	else
		http_reply(rq, 200, NULL, NULL, 0);
}

/* Byte i of the file is one of the digits of i. */
static bool fill_file(void)
{
	char *p;

	if (file < 0)
		file = memfd_create("file", MFD_CLOEXEC);
	if (ftruncate(file, 0) || ftruncate(file, FILE_SIZE))
		return false;
	p = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (p == MAP_FAILED)
		return false;
	for (size_t i = 0; i < FILE_SIZE; i++)
		p[i] = (char)((i >> 12) + i);
	munmap(p, FILE_SIZE);
	return true;
}

static bool is_right(const struct answer *a, size_t offset)
{
	for (size_t i = 0; i < a->len; i++) {
		if (a->body[i] != (char)(((i + offset) >> 12) + i + offset))
			return false;
	}
	return true;
}

static void whole_file(void)
{
	struct answer a = { .status = 0 };
	char text[128];
	int fd = dial();

	CHECK(fill_file());
	CHECK(send_text(fd, "HEAD /file HTTP/1.1\r\n" HOST "\r\n") && read_head(fd, &a));
	CHECK(strstr(a.head, "Content-Length: 41943040\r\n"));
	CHECK(send_text(fd, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a));
	CHECK(a.len == FILE_SIZE && is_right(&a, 0));
	/* the same connection, and not from the start of a block */
	snprintf(text, sizeof(text), "GET /file?from=%d HTTP/1.1\r\n" HOST "\r\n", 20000001);
	CHECK(send_text(fd, text) && read_response(fd, &a));
	CHECK(a.len == FILE_SIZE - 20000001 && is_right(&a, 20000001));
	/* at the very end, and the last byte */
	snprintf(text, sizeof(text), "GET /file?from=%d HTTP/1.1\r\n" HOST "\r\n", FILE_SIZE);
	CHECK(send_text(fd, text) && read_response(fd, &a) && a.status == 200 && a.len == 0);
	snprintf(text, sizeof(text), "GET /file?from=%d HTTP/1.1\r\n" HOST "\r\n", FILE_SIZE - 1);
	CHECK(send_text(fd, text) && read_response(fd, &a) && a.len == 1 &&
	      is_right(&a, FILE_SIZE - 1));
	free(a.body);
	close(fd);
}

/* The received bytes are those of the file, and fewer than declared. */
static void shorter_file(void)
{
	struct answer a = { .status = 0 };
	int fd;

	for (int early = 0; early < 2; early++) {
		CHECK(fill_file());
		fd = dial();
		if (early)
			CHECK(!ftruncate(file, 1000));
		CHECK(send_text(fd, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_head(fd, &a));
		CHECK(strstr(a.head, "Content-Length: 41943040\r\n"));
		a.len = 0;
		CHECK(read_more(fd, &a, 1000));
		/* far beyond what the sockets hold by now */
		CHECK(early || !ftruncate(file, FILE_SIZE - 1000));
		while (read_more(fd, &a, 502))
			;
		CHECK(a.len >= 1000 && a.len <= (early ? 1000 : FILE_SIZE - 1000) &&
		      is_right(&a, 0));
		CHECK(is_closed(fd));
		close(fd);
		CHECK(EVENTUALLY(numbers().requests == 0 && numbers().connections == 0));
	}
	free(a.body);
}

/* ---- streams ------------------------------------------------------------------------------------
 */

static void broken_stream(void)
{
	static const int sizes[] = { 0, 1000, 50000, 1000000 };
	struct answer a = { .status = 0 };
	char text[128];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = dial();

		wrote = refused = 0;
		snprintf(text, sizeof(text), "GET /abort?n=%d%s HTTP/1.1\r\n" HOST "\r\n", sizes[i],
			 i % 2 ? "&twice" : "");
		CHECK(send_text(fd, text));
		CHECK(!read_response(fd, &a)); /* everything that was written, but no end */
		CHECK(a.status == 200 && strcasestr(a.head, "chunked"));
		CHECK(a.len == (size_t)sizes[i] && wrote == sizes[i] / 1000);
		CHECK(is_closed(fd));
		close(fd);
		CHECK(EVENTUALLY(refused == 1 && numbers().connections == 0));
	}
	free(a.body);
}

/* Without chunks an orderly close would look like a complete response. */
static void broken_old_stream(void)
{
	char buf[4096];
	struct answer a = { .status = 0 };
	int fd = dial();
	ssize_t n;

	CHECK(send_text(fd, "GET /abort?n=5000 HTTP/1.0\r\n\r\n"));
	CHECK(read_head(fd, &a) && a.status == 200 && !strcasestr(a.head, "chunked"));
	do
		n = recv(fd, buf, sizeof(buf), 0);
	while (n > 0);
	CHECK(n < 0 && errno == ECONNRESET);
	close(fd);
	CHECK(EVENTUALLY(numbers().connections == 0));
}

static void broken_head(void)
{
	struct answer a = { .status = 0 };
	int fd = dial();

	CHECK(send_text(fd, "HEAD /abort?n=1000 HTTP/1.1\r\n" HOST "\r\n") && read_head(fd, &a));
	CHECK(a.status == 200);
	close(fd);
	CHECK(EVENTUALLY(numbers().requests == 0));
	CHECK(status_of("GET / HTTP/1.1\r\n" HOST "\r\n") == 200);
}

/* What a client sends behind the end of a body that was answered early must never be read from its
 * middle on. */
static void rest_of_a_body(void)
{
	static char block[1200 << 10], more[40000];
	struct answer a = { .status = 0 };
	int fd = dial(), was;
	char *end = more;

	memset(block, 'x', sizeof(block));
	CHECK(send_text(fd, "POST /body HTTP/1.1\r\n" HOST
			    "Transfer-Encoding: chunked\r\n\r\n12c000\r\n"));
	CHECK(send_bytes(fd, block, sizeof(block) - 1000));
	CHECK(read_response(fd, &a) && a.status == 413);
	was = counted;
	end += sprintf(end,
		       "%.1000s\r\n0\r\n\r\nPOST /body HTTP/1.1\r\n" HOST
		       "Content-Length: 30000\r\n\r\n",
		       block);
	memset(end, 'y', 30000);
	for (int i = 500; i < 29000; i += 500)
		memcpy(end + i, "\r\n\r\nGET /count HTTP/1.1\r\n" HOST "\r\n", 37);
	CHECK(send_bytes(fd, more, (size_t)(end - more) + 30000));
	CHECK(!read_response(fd, &a) || a.len == 30000);
	close(fd);
	CHECK(EVENTUALLY(numbers().connections == 0) && counted == was);
	free(a.body);
}

int main(void)
{
	if (!serve(&(struct http_opts){ .handler = handle }, "127.0.0.1:0"))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(whole_file);
	RUN(shorter_file);
	RUN(broken_stream);
	RUN(broken_old_stream);
	RUN(broken_head);
	RUN(rest_of_a_body);
	stop();
	close(file);
	return tap_done();
}
