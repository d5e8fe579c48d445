/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and responses with a scripted peer. */
#include "client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/array.h"
#include "client_peer.h"
#include "tap.h"

static struct client *c;
static struct err err;

static bool begin(const char *answer)
{
	if (!peer_listen())
		return false;
	peer.answers[0] = answer;
	err = (struct err){ 0 };
	return client_new(peer.url, "secret", &c, &err) == 0;
}

static void finish(void)
{
	client_free(c);
	c = NULL;
	peer_end();
}

static int call(json_t **ret)
{
	return client_call(c, "GET", "/v1/x", NULL, ret, &err);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void parts_of_a_path_are_encoded(void)
{
	char buf[128];

	CHECK(client_path(buf, sizeof(buf), &err, "/v1/%s/x?a=%s", "key:a/b c", "\xc3\xa4&") == 0);
	CHECK_STR(buf, "/v1/key%3Aa%2Fb%20c/x?a=%C3%A4%26");
	CHECK(client_path(buf, sizeof(buf), &err, "/%S", "tmp/a b/c") == 0);
	CHECK_STR(buf, "/tmp/a%20b/c");
	CHECK(client_path(buf, sizeof(buf), &err, "/files/%S", "/a/..b/...") == 0);
	CHECK_STR(buf, "/files/%2Fa/..b/...");
	CHECK(client_path(buf, 6, &err, "/%s", "abcd") == 0);
	CHECK(client_path(buf, 5, &err, "/%s", "abcd") < 0 && err.code == ERR_INVALID);
}

static void paths_with_dot_dot_are_refused(void)
{
	static const char *const bad[] = { "..", "../x", "a/../b", "a/..", "/..", "//../x" };
	char buf[128];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(client_path(buf, sizeof(buf), &err, "/%S", bad[i]) < 0);
		CHECK(err.code == ERR_INVALID && strstr(err.msg, bad[i]) == err.msg);
		CHECK(client_path(buf, sizeof(buf), &err, "/%s/x?a=%s", bad[i], "b") < 0);
		CHECK(client_path(buf, sizeof(buf), &err, "/x?a=%s", bad[i]) == 0);
	}
}

static void passwords_are_not_shown(void)
{
	static const char *const bad[] = { "http://u:s3cret@a",	 "https://s3cret@a/x",
					   "http://u:s3#cret@a", "http://u:s3/cret@a:x",
					   "ftp://u:s3cret@a",	 "u:s3cret@a" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(client_new(bad[i], NULL, &c, &err) < 0 && err.code == ERR_INVALID);
		CHECK(!strstr(err.msg, "s3") && !strstr(err.msg, "cret"));
	}
	c = NULL;
}

static void invalid_addresses_are_refused(void)
{
	static const char *const bad[] = {
		"",	      "ftp://x",	"unix:",	 "http://",    "http://:80",
		"http://a:0", "http://a:65536", "http://a:8x",	 "http://a:",  "http://a/b",
		"http://u@a", "http://[::1",	"http://[::1]x", "http://a b", "http://a\r\nX: y"
	};
	static const char *const good[] = { "unix:/x",	     "http://a",	"http://a/",
					    "http://a:8080", "http://[::1]:80", "https://a:1" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(client_new(bad[i], NULL, &c, &err) < 0 && err.code == ERR_INVALID);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK(client_new(good[i], NULL, &c, &err) == 0);
		CHECK_STR(client_url(c), good[i]);
		client_free(c);
	}
	CHECK(client_new("http://a", "k\r\nX: y", &c, &err) < 0 && err.code == ERR_INVALID);
	c = NULL;
}

static void input_cannot_inject_header_lines(void)
{
	const char *const values[] = { "A", "b\r\nC: d", NULL };
	const char *const names[] = { "A: b\r\nC", "d", NULL };
	const char *const lengths[] = { "content-length", "1", NULL };
	const char *const *const headers[] = { values, names, lengths };
	struct client_request rq = { .method = "GET", .path = "/a b" };
	struct client_stream *s = NULL;

	CHECK(client_new("unix:/nonexistent/s", NULL, &c, &err) == 0);
	CHECK(client_open(c, &rq, &s, &err) < 0 && err.code == ERR_INVALID);
	rq.path = "/a\r\nX: y";
	CHECK(client_open(c, &rq, &s, &err) < 0 && err.code == ERR_INVALID);
	rq.path = "/";
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		rq.headers = headers[i];
		CHECK(client_open(c, &rq, &s, &err) < 0 && err.code == ERR_INVALID);
	}
	client_free(c);
	c = NULL;
}

/* ---- one response ---------------------------------------------------------------------------- */

static void a_response_with_a_length_is_read(void)
{
	json_t *v = NULL;

	CHECK(begin("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}") && peer_start());
	CHECK(call(&v) == 0);
	CHECK(json_integer_value(json_object_get(v, "a")) == 1);
	json_decref(v);
	finish();
}

static void a_request_has_its_key_and_body(void)
{
	json_t *body = json_pack("{s:s}", "key", "x");

	CHECK(begin("HTTP/1.1 204 No Content\r\n\r\n") && peer_start());
	CHECK(client_call(c, "POST", "/v1/x", body, NULL, &err) == 0);
	json_decref(body);
	CHECK(strstr(peer.received, "POST /v1/x HTTP/1.1\r\n") == peer.received);
	CHECK(strstr(peer.received, "\r\nAuthorization: Bearer secret\r\n"));
	CHECK(strstr(peer.received, "\r\nContent-Type: application/json\r\n"));
	CHECK(strstr(peer.received, "\r\nContent-Length: 11\r\n"));
	CHECK(strstr(peer.received, "\r\n\r\n{\"key\":\"x\"}"));
	finish();
}

static void chunks_are_joined_however_they_arrive(void)
{
	static const char answer[] = "HTTP/1.1 100 Continue\r\n\r\n"
				     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
				     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				     "3\r\n{\"a\r\n1;x=y\r\n\"\r\n3\r\n:1}\r\n0\r\nX: y\r\n\r\n";
	static const size_t pieces[] = { 0, 1, 7 };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		json_t *v = NULL;

		CHECK(begin(answer));
		peer.piece = pieces[i];
		CHECK(peer_start() && call(&v) == 0);
		CHECK(json_integer_value(json_object_get(v, "a")) == 1);
		json_decref(v);
		finish();
	}
}

/* Longer than the buffer of the connection. */
static void large_chunks_are_read_completely(void)
{
	enum { CHUNK = 150000, CHUNKS = 3 };
	char *answer = malloc(CHUNKS * (CHUNK + 16) + 128), *at = answer;
	size_t sizes[] = { 1000, 1 << 20 };

	CHECK(answer);
	at += sprintf(at, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < CHUNKS; i++) {
		at += sprintf(at, "%x\r\n", CHUNK);
		memset(at, 'a' + i, CHUNK);
		at = mempcpy(at + CHUNK, "\r\n", 2);
	}
	at = mempcpy(at, "0\r\n\r\n", 6);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct client_request rq = { .method = "GET", .path = "/" };
		struct client_stream *s = NULL;
		char *buf = malloc(sizes[i]);
		size_t len = 0;
		ssize_t n;

		CHECK(buf && begin(answer) && peer_start() && client_open(c, &rq, &s, &err) == 0);
		while ((n = client_read(s, buf, sizes[i], &err)) > 0)
			for (ssize_t j = 0; j < n; j++, len++)
				if (buf[j] != (char)('a' + len / CHUNK))
					n = -1;
		CHECK(n == 0 && len == (size_t)CHUNKS * CHUNK);
		free(buf);
		client_close(s);
		finish();
	}
	free(answer);
}

static void a_response_to_head_has_no_body(void)
{
	struct client_request rq = { .method = "HEAD", .path = "/" };
	struct client_stream *s = NULL;
	char byte;

	CHECK(begin("HTTP/1.1 200 OK\r\nContent-Length: \t 9 \r\n\r\n") && peer_start());
	CHECK(client_open(c, &rq, &s, &err) == 0);
	CHECK_STR(client_header(s, "Content-Length"), "9");
	CHECK(client_read(s, &byte, 1, &err) == 0);
	client_close(s);
	finish();
}

static void a_response_without_a_body_is_null(void)
{
	json_t *v = json_null();

	CHECK(begin("HTTP/1.1 204 No Content\r\n\r\n") && peer_start());
	CHECK(call(&v) == 0 && !v);
	finish();
}

static void errors_have_their_class_and_message(void)
{
	static const struct {
		int status, code, sys;
	} classes[] = { { 400, ERR_INVALID, 0 },    { 401, ERR_DENIED, EKEYREJECTED },
			{ 403, ERR_DENIED, 0 },	    { 404, ERR_NOT_FOUND, 0 },
			{ 409, ERR_CONFLICT, 0 },   { 410, ERR_NOT_FOUND, ESTALE },
			{ 416, ERR_LIMIT, ERANGE }, { 429, ERR_LIMIT, 0 },
			{ 500, ERR_INTERNAL, 0 },   { 503, ERR_UNAVAILABLE, 0 },
			{ 507, ERR_LIMIT, ENOSPC } };
	char answer[256];

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		snprintf(answer, sizeof(answer),
			 "HTTP/1.1 %d X\r\nConnection: close\r\n\r\n"
			 "{\"error\":{\"code\":\"X\",\"message\":\"no \\u001b[31mway\"}}",
			 classes[i].status);
		CHECK(begin(answer) && peer_start());
		CHECK(call(NULL) < 0);
		CHECK((int)err.code == classes[i].code && err.sys == classes[i].sys);
		CHECK(strstr(err.msg, "no") == err.msg && !strchr(err.msg, '\033'));
		finish();
	}
}

static void an_error_of_another_server_is_reported_as_such(void)
{
	CHECK(begin("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\n<p>x") && peer_start());
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && strstr(err.msg, "502"));
	finish();
	CHECK(begin("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<p>x") && peer_start());
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && strstr(err.msg, "not JSON"));
	finish();
	CHECK(begin("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n") && peer_start());
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && strstr(err.msg, "302"));
	finish();
}

static void any_response_can_be_requested(void)
{
	json_t *v = NULL;
	int status = 0;

	CHECK(begin("HTTP/1.1 416 X\r\nContent-Length: 34\r\n\r\n"
		    "{\"error\":{\"details\":{\"offset\":7}}}") &&
	      peer_start());
	CHECK(client_ask(c, "GET", "/", NULL, &status, &v, &err) == 0 && status == 416);
	CHECK(client_failed(c, status, v, &err) < 0 && err.sys == ERANGE);
	json_decref(v);
	finish();
}

static void a_truncated_response_is_an_error(void)
{
	static const char *const broken[] = {
		"",
		"HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\":1}",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n0\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}x\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n12",
		"HTTP/1.1 200 OK\nContent-Length: 2\n\n12",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\n12\n0\n\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\n12\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n12",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: "
		"chunked\r\n\r\n{\"a\":1}",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n{}",
		"HTTP/1.1 999 OK\r\n\r\n{}",
		"HTTP/2 200 OK\r\n\r\n{}",
		"SSH-2.0-x\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		CHECK(begin(broken[i]) && peer_start());
		CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE);
		finish();
	}
}

static void an_endless_head_is_refused(void)
{
	static char answer[200 << 10];

	memset(answer, 'a', sizeof(answer) - 1);
	memcpy(answer, "HTTP/1.1 200 OK\r\nX: ", 20);
	CHECK(begin(answer) && peer_start());
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && strstr(err.msg, "too large"));
	finish();
}

static void too_long_a_response_is_refused(void)
{
	static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
	size_t size = (size_t)65 << 20;
	char *answer = malloc(size);

	CHECK(answer);
	memset(answer, ' ', size);
	memcpy(answer, head, sizeof(head) - 1);
	CHECK(begin(answer));
	peer.lengths[0] = size;
	CHECK(peer_start());
	CHECK(call(NULL) < 0 && err.code == ERR_LIMIT && strstr(err.msg, "64 MiB"));
	finish();
	free(answer);
}

static void a_refused_connection_has_its_own_error(void)
{
	CHECK(client_new("unix:/nonexistent/lodge.sock", NULL, &c, &err) == 0);
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && err.sys == ECONNREFUSED);
	CHECK(strstr(err.msg, "systemctl start lodged"));
	client_free(c);
	CHECK(client_new("http://127.0.0.1:1", NULL, &c, &err) == 0);
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && err.sys == ECONNREFUSED);
	client_free(c);
	c = NULL;
}

/* The peer accepts the connection and never answers. */
static void a_silent_server_times_out(void)
{
	CHECK(begin(NULL));
	client_limit(c, 10);
	CHECK(call(NULL) < 0 && err.code == ERR_UNAVAILABLE && err.sys == ETIMEDOUT);
	CHECK_STR(err.msg, "lodged does not answer");
	CHECK(peer_start());
	finish();
}

static void pages_become_one_list(void)
{
	json_t *v = NULL;

	CHECK(begin("HTTP/1.1 200 OK\r\n\r\n{\"a\":[1,2],\"next\":17}"));
	peer.answers[1] = "HTTP/1.1 200 OK\r\n\r\n{\"a\":[3],\"next\":null}";
	CHECK(peer_start());
	CHECK(client_list(c, "/v1/x?b=c", "a", &v, &err) == 0 && json_array_size(v) == 3);
	CHECK(strstr(peer.received, "GET /v1/x?b=c&after=17 HTTP/1.1") == peer.received);
	json_decref(v);
	finish();
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static uint64_t progress;

static void on_sent(void *arg, uint64_t bytes)
{
	(void)arg;
	progress = bytes;
}

static void a_file_is_sent_with_its_length(void)
{
	struct client_request rq = {
		.method = "PUT", .path = "/f", .has_body_fd = true, .sent = on_sent
	};
	struct client_stream *s = NULL;
	int fd = memfd_create("body", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, "XXhello", 7) == 7 && lseek(fd, 2, SEEK_SET) == 2);
	rq.body_fd = fd;
	CHECK(begin("HTTP/1.1 201 Created\r\nX-A: b\r\n\r\n") && peer_start());
	CHECK(client_open(c, &rq, &s, &err) == 0 && client_status(s) == 201);
	CHECK_STR(client_header(s, "x-a"), "b");
	CHECK(!client_header(s, "x-b") && progress == 5);
	CHECK(strstr(peer.received, "\r\nContent-Length: 5\r\n") &&
	      strstr(peer.received, "\r\n\r\nhello"));
	client_close(s);
	close(fd);
	finish();
}

static void a_pipe_is_sent_in_chunks(void)
{
	struct client_request rq = { .method = "PUT", .path = "/f", .has_body_fd = true };
	struct client_stream *s = NULL;
	int fds[2];

	CHECK(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], "hello", 5) == 5);
	close(fds[1]);
	rq.body_fd = fds[0];
	CHECK(begin("HTTP/1.1 201 Created\r\n\r\n") && peer_start());
	CHECK(client_open(c, &rq, &s, &err) == 0);
	CHECK(strstr(peer.received, "\r\nTransfer-Encoding: chunked\r\n") &&
	      strstr(peer.received, "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
	client_close(s);
	close(fds[0]);
	finish();
}

static int fail_midway(void *arg, struct err *e)
{
	(void)arg;
	return err_set(e, ERR_INVALID, "half of it");
}

/* The peer would take the last chunk for the end of the body. */
static void an_incomplete_body_is_not_terminated(void)
{
	struct client_request rq = {
		.method = "PUT", .path = "/f", .has_body_fd = true, .whole = fail_midway
	};
	struct client_stream *s = NULL;
	int fds[2];

	CHECK(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], "hello", 5) == 5);
	close(fds[1]);
	rq.body_fd = fds[0];
	CHECK(begin("HTTP/1.1 201 Created\r\n\r\n") && peer_start());
	CHECK(client_open(c, &rq, &s, &err) < 0 && !s);
	CHECK_STR(err.msg, "half of it");
	peer_wait();
	CHECK(strstr(peer.received, "\r\n5\r\nhello\r\n") && !strstr(peer.received, "\r\n0\r\n"));
	close(fds[0]);
	finish();
}

/* The peer rejects the request after its head and stops reading, so the body never fits into the
 * socket. */
static void a_response_during_the_upload_is_read(void)
{
	struct client_request rq = { .method = "PUT", .path = "/f", .has_body_fd = true };
	struct client_stream *s = NULL;
	int fd = memfd_create("body", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, 64 << 20) == 0);
	rq.body_fd = fd;
	CHECK(begin("HTTP/1.1 413 X\r\nContent-Length: 31\r\n\r\n{\"error\":{\"message\":\"too "
		    "big\"}}"));
	peer.early = true;
	CHECK(peer_start());
	CHECK(client_open(c, &rq, &s, &err) < 0);
	CHECK_STR(err.msg, "too big");
	close(fd);
	finish();
}

/* ---- streams --------------------------------------------------------------------------------- */

static struct client_stream *open_stream(const char *answer, size_t piece)
{
	struct client_request rq = { .method = "GET", .path = "/s" };
	struct client_stream *s = NULL;

	if (!begin(answer))
		return NULL;
	peer.piece = piece;
	return peer_start() && client_open(c, &rq, &s, &err) == 0 ? s : NULL;
}

static void lines_are_values(void)
{
	struct client_stream *s = open_stream("HTTP/1.1 200 OK\r\n\r\n{\"a\":1}\n\n[2]\r\n3", 1);
	json_t *v = NULL;

	CHECK(s);
	CHECK(client_read_json(s, &v, &err) == 1 && json_is_object(v));
	json_decref(v);
	CHECK(client_read_json(s, &v, &err) == 1 && json_is_array(v));
	json_decref(v);
	CHECK(client_read_json(s, &v, &err) == 1 && json_integer_value(v) == 3);
	json_decref(v);
	CHECK(client_read_json(s, &v, &err) == 0);
	client_close(s);
	finish();
	s = open_stream("HTTP/1.1 200 OK\r\n\r\n{\n", 0);
	CHECK(s && client_read_json(s, &v, &err) < 0 && err.code == ERR_UNAVAILABLE);
	client_close(s);
	finish();
}

static void comments_are_not_events(void)
{
	struct client_stream *s = open_stream("HTTP/1.1 200 OK\r\n\r\n: hello\n\n"
					      "id: 7\nevent: made\ndata: {\"a\":\ndata:1}\n\n"
					      ": beat\n\nevent: none\n\nretry: 5\ndata: 2\n\n",
					      3);
	struct client_event e;

	CHECK(s && client_read_event(s, &e, &err) == 1);
	CHECK_STR(e.id, "7");
	CHECK_STR(e.event, "made");
	CHECK(json_integer_value(json_object_get(e.data, "a")) == 1);
	json_decref(e.data);
	CHECK(client_read_event(s, &e, &err) == 1 && !*e.id && !*e.event);
	CHECK(json_integer_value(e.data) == 2);
	json_decref(e.data);
	CHECK(client_read_event(s, &e, &err) == 0);
	client_close(s);
	finish();
}

static void bytes_are_read_unchanged(void)
{
	struct client_stream *s =
		open_stream("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab\ncdXX", 2);
	char buf[16];
	size_t len = 0;
	ssize_t n;

	CHECK(s);
	while ((n = client_read(s, buf + len, sizeof(buf) - len, &err)) > 0)
		len += (size_t)n;
	CHECK(n == 0 && len == 5 && !memcmp(buf, "ab\ncd", 5));
	client_close(s);
	finish();
}

int main(void)
{
	RUN(parts_of_a_path_are_encoded);
	RUN(paths_with_dot_dot_are_refused);
	RUN(passwords_are_not_shown);
	RUN(invalid_addresses_are_refused);
	RUN(input_cannot_inject_header_lines);
	RUN(a_response_with_a_length_is_read);
	RUN(a_request_has_its_key_and_body);
	RUN(chunks_are_joined_however_they_arrive);
	RUN(large_chunks_are_read_completely);
	RUN(a_response_to_head_has_no_body);
	RUN(a_response_without_a_body_is_null);
	RUN(errors_have_their_class_and_message);
	RUN(an_error_of_another_server_is_reported_as_such);
	RUN(any_response_can_be_requested);
	RUN(a_truncated_response_is_an_error);
	RUN(an_endless_head_is_refused);
	RUN(too_long_a_response_is_refused);
	RUN(a_refused_connection_has_its_own_error);
	RUN(a_silent_server_times_out);
	RUN(pages_become_one_list);
	RUN(a_file_is_sent_with_its_length);
	RUN(a_pipe_is_sent_in_chunks);
	RUN(an_incomplete_body_is_not_terminated);
	RUN(a_response_during_the_upload_is_read);
	RUN(lines_are_values);
	RUN(comments_are_not_events);
	RUN(bytes_are_read_unchanged);
	return tap_done();
}
