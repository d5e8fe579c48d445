/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and responses: what the handler sees, bodies in both directions, upgrades, the end. */
#include "http/conn_io.h"
#include "http/server.h"
#include "http_client.h"
#include "tmp_name.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define HOST "Host: a\r\n"

static atomic_int began, ended, wrote, logged, last_status;
static atomic_int contexts, handed; /* from admit() to the handler */
static atomic_bool go_on;
static atomic_long read_bytes;

/* ---- the handler does what the path says ---------------------------------------------------- */

static void echo(struct http_request *rq)
{
	const char *body;
	struct err e;
	size_t len;

	if (http_body(rq, 1 << 20, &body, &len, &e))
		http_reply(rq, e.code == ERR_LIMIT ? 413 : 400, "text/plain", e.msg, strlen(e.msg));
	else
		http_reply(rq, 200, "text/plain", body, len);
}

static void count_body(struct http_request *rq)
{
	char buf[8192], text[64];
	uint64_t sum = 0, total = 0;
	struct err e;
	ssize_t n;

	read_bytes = 0;
	while ((n = http_body_read(rq, buf, sizeof(buf), &e)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			sum += (unsigned char)buf[i];
		total += (uint64_t)n;
		read_bytes = (long)total;
		if (http_query(rq, "wait"))
			EVENTUALLY(go_on);
	}
	if (n < 0)
		return;
	snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)total,
		 (unsigned long long)sum);
	http_reply(rq, 200, "text/plain", text, strlen(text));
}

static void send_stream(struct http_request *rq)
{
	char buf[10000];
	long total = atol(http_query(rq, "n"));

	memset(buf, 'x', sizeof(buf));
	http_set_header(rq, "X-More", "1");
	if (http_stream_begin(rq, 200, "application/octet-stream"))
		return;
	for (long done = 0; done < total; wrote++) {
		size_t n = total - done < 10000 ? (size_t)(total - done) : sizeof(buf);

		if (http_stream_write(rq, buf, n))
			return;
		done += (long)n;
	}
}

static void wait_gone(struct http_request *rq)
{
	EVENTUALLY(http_is_gone(rq));
	if (!http_is_gone(rq))
		http_reply(rq, 200, NULL, NULL, 0);
}

static void file(struct http_request *rq)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (write(fd, "0123456789", 10) != 10)
		return;
	http_reply_fd(rq, 206, "text/plain", fd, 2, 5);
}

static void upgrade(struct http_request *rq)
{
	struct conn_io *io;
	const void *extra;
	size_t extra_len;
	char buf[256];
	struct err e;
	ssize_t n;

	if (http_upgrade(rq, "echo", &io, &extra, &extra_len, &e))
		return;
	send_bytes(io->fd, extra, extra_len);
	while ((n = conn_io_recv(io, buf, sizeof(buf))) != 0) {
		if (n > 0)
			send_bytes(io->fd, buf, (size_t)n);
		else if (errno != EAGAIN || !conn_io_wait(io, POLLIN, INT64_MAX))
			break;
	}
}

static int add_pair(void *arg, const char *name, const char *value)
{
	char *text = arg;

	snprintf(text + strlen(text), 200 - strlen(text), "%s=%s;", name, value);
	return 0;
}

static void show(struct http_request *rq)
{
	char text[512], query[200] = "";

	http_query_each(rq, add_pair, query);
	snprintf(text, sizeof(text), "%s %s %s %s %s", http_method(rq), http_path(rq), query,
		 http_header(rq, "X-TEST") ? http_header(rq, "X-TEST") : "-", http_peer(rq));
	http_reply(rq, 200, "text/plain", text, strlen(text));
}

static void handle(void *arg, struct http_request *rq)
{
	static const struct {
		const char *path;
		void (*fn)(struct http_request *rq);
	} table[] = { { "/echo", echo },      { "/count", count_body }, { "/stream", send_stream },
		      { "/gone", wait_gone }, { "/file", file },	{ "/upgrade", upgrade },
		      { "/show%20/.", show } };

	(void)arg;
	began++;
	if (http_take_context(rq) == &contexts)
		handed++;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!strcmp(http_path(rq), table[i].path))
			table[i].fn(rq);
	}
	if (!strcmp(http_path(rq), "/unread"))
		http_reply(rq, 404, "text/plain", "no", 2);
	ended++;
}

static void note(void *arg, const struct http_request *rq, unsigned status, uint64_t bytes,
		 uint64_t us)
{
	(void)arg;
	(void)rq;
	(void)bytes;
	(void)us;
	logged++;
	last_status = (int)status;
}

static void release(void *context)
{
	CHECK(context == &contexts);
	contexts--;
}

static int admit(void *arg, struct http_request *rq)
{
	(void)arg;
	if (strcmp(http_path(rq), "/denied")) {
		contexts++;
		http_put_context(rq, &contexts, release);
		return 0;
	}
	http_set_header(rq, "WWW-Authenticate", "Bearer");
	http_reply(rq, 401, "text/plain", "key", 3);
	return 401;
}

static const struct http_opts opts = { .handler = handle, .admit = admit, .log = note };

/* ---- tests --------------------------------------------------------------------------------------
 */

static void plain(void)
{
	struct answer a = { .status = 0 };
	int fd = dial();

	CHECK(send_text(fd, "GET /show%20/.?a=1%2f+x&b HTTP/1.1\r\n" HOST "x-test: yes\r\n"
			    "X-Request-Id: id-1.2_3\r\n\r\n"));
	CHECK(read_response(fd, &a) && a.status == 200);
	CHECK_STR(a.body, "GET /show%20/. a=1/ x;b=; yes 127.0.0.1");
	CHECK(strstr(a.head, "X-Request-Id: id-1.2_3\r\n"));
	CHECK(strstr(a.head, "Content-Type: text/plain\r\n"));
	/* the same connection; an invalid id is replaced */
	CHECK(send_text(fd, "POST /echo HTTP/1.1\r\n" HOST
			    "X-Request-Id: a b\r\nContent-Length: 5\r\n\r\nhello"));
	CHECK(read_response(fd, &a) && a.status == 200);
	CHECK_STR(a.body, "hello");
	CHECK(strstr(a.head, "X-Request-Id: ") && !strstr(a.head, "a b"));
	/* a handler without a response gets one */
	CHECK(send_text(fd, "GET /none HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a) &&
	      a.status == 500);
	CHECK_STR(a.body, "{\"error\":{\"code\":\"INTERNAL\",\"message\":\"the "
			  "handler sent no response\",\"retryable\":false,\"details\":{}}}");
	CHECK(send_text(fd, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a) &&
	      a.status == 206);
	CHECK_STR(a.body, "23456");
	CHECK(EVENTUALLY(numbers().requests == 0) && numbers().connections == 1);
	CHECK(last_status == 206);
	close(fd);
	CHECK(EVENTUALLY(numbers().connections == 0));
	free(a.body);
}

static void pipelined(void)
{
	static const char one[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
				  "POST /echo HTTP/1.1\r\n" HOST
				  "Transfer-Encoding: chunked\r\n\r\n2\r\ntw\r\n1\r\no\r\n0\r\n\r\n"
				  "GET /file HTTP/1.1\r\n" HOST "\r\n";
	struct answer a = { .status = 0 };
	int fd = dial();

	CHECK(send_text(fd, one));
	CHECK(read_response(fd, &a) && !strcmp(a.body, "one"));
	CHECK(read_response(fd, &a) && !strcmp(a.body, "two"));
	CHECK(read_response(fd, &a) && !strcmp(a.body, "23456"));
	close(fd);
	free(a.body);
}

static void head_only(void)
{
	struct answer a = { .status = 0 };
	int fd = dial();

	CHECK(send_text(fd, "HEAD /file HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(read_head(fd, &a) && strstr(a.head, "Content-Length: 5\r\n"));
	CHECK(send_text(fd, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a));
	CHECK_STR(a.body, "23456");
	CHECK(send_text(fd, "HEAD /stream?n=1000000 HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(read_head(fd, &a) && a.status == 200 && strstr(a.head, "X-More: 1"));
	CHECK(recv(fd, &(char){ 0 }, 1, 0) == 0);
	close(fd);
	free(a.body);
}

static void expect(void)
{
	struct answer a = { .status = 0 };
	int fd = dial();

	CHECK(send_text(fd, "POST /echo HTTP/1.1\r\n" HOST
			    "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
	CHECK(read_head(fd, &a) && a.status == 100);
	CHECK(send_text(fd, "hi") && read_response(fd, &a) && a.status == 200 &&
	      !strcmp(a.body, "hi"));
	/* a handler that does not need the body does not request it */
	CHECK(send_text(fd, "POST /unread HTTP/1.1\r\n" HOST
			    "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
	CHECK(read_response(fd, &a) && a.status == 404 && is_closed(fd));
	close(fd);
	CHECK(status_of("GET /file HTTP/1.1\r\n" HOST "Expect: wonders\r\n\r\n") == 417);
	free(a.body);
}

static void unread(void)
{
	struct answer a = { .status = 0 };
	int fd = dial(), was;

	/* a small body is skipped, and the connection continues */
	CHECK(send_text(fd, "POST /unread HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"));
	CHECK(read_response(fd, &a) && a.status == 404);
	CHECK(send_text(fd, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a) &&
	      a.status == 206);
	/* a large one closes the connection */
	CHECK(send_text(fd,
			"POST /unread HTTP/1.1\r\n" HOST "Content-Length: 40000000\r\n\r\nbody"));
	CHECK(read_response(fd, &a) && a.status == 404 && is_closed(fd));
	close(fd);
	/* a refused request does not reach the handler */
	fd = dial();
	was = began;
	CHECK(send_text(fd, "POST /denied HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n"));
	CHECK(read_response(fd, &a) && a.status == 401 && !strcmp(a.body, "key") && is_closed(fd));
	CHECK(strstr(a.head, "WWW-Authenticate: Bearer") && began == was);
	close(fd);
	/* too large for the handler */
	CHECK(status_of("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n") == 413);
	free(a.body);
}

static void upload_waits(void)
{
	static char block[1 << 16];
	struct answer a = { .status = 0 };
	struct pollfd p = { .fd = dial(), .events = POLLOUT };
	size_t sent = 0;

	go_on = false;
	memset(block, 1, sizeof(block));
	fcntl(p.fd, F_SETFL, O_NONBLOCK);
	CHECK(send_text(p.fd,
			"POST /count?wait HTTP/1.1\r\n" HOST "Content-Length: 64000000\r\n\r\n"));
	while (sent < 64000000 && poll(&p, 1, 300) == 1) {
		ssize_t n = send(p.fd, block, sizeof(block), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
	}
	/* The handler read one piece; the rest is in the kernel and in one small buffer. */
	CHECK(EVENTUALLY(read_bytes > 0));
	CHECK(sent < 32000000 && read_bytes <= 8192);
	go_on = true;
	fcntl(p.fd, F_SETFL, 0);
	while (sent < 64000000) {
		size_t n = 64000000 - sent < sizeof(block) ? 64000000 - sent : sizeof(block);

		CHECK(send_bytes(p.fd, block, n));
		sent += n;
	}
	CHECK(read_response(p.fd, &a));
	CHECK_STR(a.body, "64000000 64000000");
	close(p.fd);
	free(a.body);
}

static void upload_chunked(void)
{
	static char block[65536 + 2];
	struct answer a = { .status = 0 };
	int fd = dial();

	memset(block, 2, sizeof(block));
	memcpy(block + 65536, "\r\n", 2);
	CHECK(send_text(fd, "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"));
	for (int i = 0; i < 1024; i++)
		CHECK(send_text(fd, "10000\r\n") && send_bytes(fd, block, sizeof(block)));
	CHECK(send_text(fd, "0\r\n\r\n") && read_response(fd, &a));
	CHECK_STR(a.body, "67108864 134217728");
	close(fd);
	free(a.body);
}

static void download(void)
{
	struct answer a = { .status = 0 };
	int fd = dial(), before;

	wrote = 0;
	CHECK(send_text(fd, "GET /stream?n=67108864 HTTP/1.1\r\n" HOST "\r\n"));
	/* a reader that stops blocks the handler */
	CHECK(EVENTUALLY(wrote > 0));
	do {
		before = wrote;
		nap(300);
	} while (wrote != before);
	CHECK(wrote > 0 && wrote < 4000);
	CHECK(read_response(fd, &a) && a.len == 67108864 && a.body[67108863] == 'x');
	CHECK(send_text(fd, "GET /stream?n=0 HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(read_response(fd, &a) && a.len == 0);
	close(fd);
	free(a.body);
}

static const char *const send_then_close[] = {
	"",
	"GET /sh",
	"GET /file HTTP/1.1\r\nHo",
	"GET /file HTTP/1.1\r\n" HOST "\r\n",
	"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n",
	"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab",
	"POST /unread HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab",
	"POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nab",
	"POST /denied HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab",
	"GET /stream?n=100000000 HTTP/1.1\r\n" HOST "\r\n",
	"GET /gone HTTP/1.1\r\n" HOST "\r\n",
	"GET /upgrade HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: echo\r\n\r\nab",
};

/* The client disconnects at each stage of a request; the handler ends and nothing is left. */
static void disconnect(void)
{
	for (size_t i = 0; i < sizeof(send_then_close) / sizeof(send_then_close[0]); i++) {
		for (int late = 0; late < 2; late++) {
			int fd = dial();

			CHECK(send_text(fd, send_then_close[i]));
			nap(late ? 100 : 0);
			close(fd);
			CHECK(EVENTUALLY(numbers().requests == 0 && numbers().connections == 0));
			CHECK(began == ended);
		}
	}
}

/* Many clients disconnect at once, at any time, with or without reading. */
static void *storm_one(void *arg)
{
	unsigned seed = *(unsigned *)arg, n = sizeof(send_then_close) / sizeof(send_then_close[0]);
	static const char whole[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx";
	struct answer a = { .status = 0 };
	char buf[4096];

	for (int i = 0; i < 60; i++) {
		int fd = dial();
		bool well =
			fd >= 0 && send_text(fd, whole) && read_response(fd, &a) && a.status == 200;

		if (well)
			send_text(fd, send_then_close[(unsigned)rand_r(&seed) % n]);
		else
			*(unsigned *)arg = 0;
		nap((unsigned)rand_r(&seed) % 4);
		if (rand_r(&seed) % 2)
			recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		close(fd);
	}
	free(a.body);
	return NULL;
}

static void storm(void)
{
	unsigned seeds[8];
	pthread_t threads[8];

	for (unsigned i = 0; i < 8; i++) {
		seeds[i] = i + 1;
		CHECK(!pthread_create(&threads[i], NULL, storm_one, &seeds[i]));
	}
	for (unsigned i = 0; i < 8; i++)
		CHECK(!pthread_join(threads[i], NULL));
	for (unsigned i = 0; i < 8; i++)
		CHECK(seeds[i]);
	CHECK(EVENTUALLY(numbers().requests == 0 && numbers().connections == 0));
	CHECK(began == ended);
}

static void upgraded(void)
{
	struct answer a = { .status = 0 };
	char buf[8] = "";
	int fd = dial();

	CHECK(send_text(fd, "GET /upgrade HTTP/1.1\r\n" HOST
			    "Connection: Upgrade\r\nUpgrade: echo\r\n\r\nab"));
	CHECK(read_head(fd, &a) && a.status == 101 && strcasestr(a.head, "\r\nUpgrade: echo\r\n"));
	CHECK(read_exactly(fd, buf, 2) && !strcmp(buf, "ab"));
	CHECK(send_text(fd, "cd") && read_exactly(fd, buf, 2) && !strcmp(buf, "cd"));
	shutdown(fd, SHUT_WR);
	CHECK(is_closed(fd));
	close(fd);
	CHECK(EVENTUALLY(numbers().requests == 0 && numbers().connections == 0));
}

static void unix_socket(void)
{
	char dir[TMP_NAME_SIZE], path[104], address[112];
	struct answer a = { .status = 0 };
	struct http_server *other;
	struct stat st;
	int fd;

	CHECK(mkdtemp(tmp_name(dir, "http")));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
	CHECK(!http_server_listen(server, address, 0660, NULL, 0, &err));
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0660);
	fd = dial_unix(path);
	CHECK(fd >= 0 && send_text(fd, "GET /show%20/. HTTP/1.1\r\n" HOST "\r\n") &&
	      read_response(fd, &a));
	CHECK_STR(a.body, "GET /show%20/.  - unix");
	close(fd);
	/* a running server keeps its socket, a stale one is replaced */
	CHECK(!http_server_new(&opts, &other, &err));
	CHECK(http_server_listen(other, address, 0600, NULL, 0, &err) && err.code == ERR_CONFLICT);
	stop();
	CHECK(stat(path, &st) && errno == ENOENT);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	{
		struct sockaddr_un sa = { .sun_family = AF_UNIX };

		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
		CHECK(!bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
	}
	close(fd);
	CHECK(!http_server_listen(other, address, 0600, NULL, 0, &err));
	http_server_free(other);
	CHECK(!rmdir(dir) && serve(&opts, "127.0.0.1:0"));
	free(a.body);
}

static void draining(void)
{
	struct answer a = { .status = 0 };
	int busy = dial(), idle = dial();

	CHECK(send_text(idle, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_response(idle, &a) &&
	      a.status == 206);
	CHECK(EVENTUALLY(numbers().requests == 0));
	go_on = false;
	read_bytes = 0; /* an earlier request may have read as much */
	CHECK(send_text(busy, "POST /count?wait HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab"));
	CHECK(EVENTUALLY(read_bytes == 2 && numbers().requests == 1));
	http_server_drain(server, 50);
	CHECK(numbers().requests == 1);
	CHECK(send_text(idle, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_response(idle, &a) &&
	      a.status == 503);
	CHECK(is_closed(idle));
	go_on = true;
	http_server_drain(server, 10000);
	CHECK(numbers().requests == 0);
	CHECK(read_response(busy, &a) && a.status == 200 && strstr(a.head, "Connection: close"));
	close(busy);
	close(idle);
	stop();
	CHECK(serve(&opts, "[::1]:0") || serve(&opts, "127.0.0.1:0"));
	free(a.body);
}

/* The server ends while a handler of each kind is running. */
static void server_end_stops_handlers(void)
{
	static const char *const busy[] = {
		"GET /stream?n=100000000 HTTP/1.1\r\n" HOST "\r\n",
		"GET /gone HTTP/1.1\r\n" HOST "\r\n",
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab",
		"GET /upgrade HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n",
		"GET /file HTTP/1.1\r\nHo",
	};
	int fds[5];

	stop();
	CHECK(serve(&opts, "127.0.0.1:0"));
	for (int i = 0; i < 5; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], busy[i]));
	}
	CHECK(EVENTUALLY(numbers().requests == 4));
	nap(50);
	stop();
	CHECK(began == ended);
	/* each handler got the context of its request once; others were released */
	CHECK(handed == began && contexts == handed);
	for (int i = 0; i < 5; i++) {
		CHECK(is_closed(fds[i]));
		close(fds[i]);
	}
}

int main(void)
{
	if (!serve(&opts, "127.0.0.1:0"))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(plain);
	RUN(pipelined);
	RUN(head_only);
	RUN(expect);
	RUN(unread);
	RUN(upload_waits);
	RUN(upload_chunked);
	RUN(download);
	RUN(disconnect);
	RUN(storm);
	RUN(upgraded);
	RUN(unix_socket);
	RUN(draining);
	RUN(server_end_stops_handlers);
	return tap_done();
}
