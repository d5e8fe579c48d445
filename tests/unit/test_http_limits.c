/* SPDX-License-Identifier: Apache-2.0 */
/* What a server refuses: too many requests, too large, ambiguous or too slow ones; and TLS. */
#include "http/conn_io.h"
#include "http/server.h"
#include "http_client.h"
#include "tmp_name.h"

#include <sys/stat.h>

#define HOST "Host: a\r\n"

static atomic_int inside, peak, failed, served;
static atomic_bool go_on;

static void work(struct http_request *rq)
{
	const char *body;
	struct err e;
	size_t len;

	if (http_body(rq, 1 << 20, &body, &len, &e)) {
		failed++;
		return;
	}
	if (!strcmp(http_path(rq), "/wait"))
		EVENTUALLY(go_on);
	http_reply(rq, 200, "text/plain", body, len);
}

static void stream(struct http_request *rq)
{
	long n = atol(http_query(rq, "n"));
	char line[64];

	if (http_stream_begin(rq, 200, "text/plain"))
		return;
	for (long i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "%060ld\n", i);
		if (http_stream_write(rq, line, 61)) {
			failed++;
			return;
		}
		if (i % 16 == 0 && http_query(rq, "slowly"))
			nap(1);
	}
}

static void upgrade(struct http_request *rq)
{
	static char greeting[] = "and so ";
	struct conn_io *io;
	const void *extra;
	char buf[64];
	size_t extra_len;
	struct err e;

	if (http_upgrade(rq, "greeting", &io, &extra, &extra_len, &e) || extra_len > sizeof(buf))
		return;
	memcpy(buf, extra, extra_len);
	CHECK(conn_io_send(io, (struct iovec[]){ { greeting, 7 }, { buf, extra_len } }, 2, false) ==
	      (ssize_t)(7 + extra_len));
}

static void handle(void *arg, struct http_request *rq)
{
	int now = ++inside;

	(void)arg;
	if (now > peak)
		peak = now;
	if (!strcmp(http_path(rq), "/stream"))
		stream(rq);
	else if (!strcmp(http_path(rq), "/upgrade"))
		upgrade(rq);
	else
		work(rq);
	inside--;
	served++;
}

/* ---- too many or too large ------------------------------------------------------------------- */

static atomic_int contexts;

static void release(void *context)
{
	atomic_fetch_sub((atomic_int *)context, 1);
}

static int admit(void *arg, struct http_request *rq)
{
	(void)arg;
	contexts++;
	http_put_context(rq, &contexts, release);
	return 0;
}

static void requests(void)
{
	const struct http_opts o = { .handler = handle, .admit = admit, .max_requests = 3 };
	struct answer a = { .status = 0 };
	int fds[4], plain;

	CHECK(serve(&o, "127.0.0.1:0"));
	go_on = false;
	for (int i = 0; i < 3; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
	}
	CHECK(EVENTUALLY(inside == 3));
	plain = dial();
	CHECK(send_text(plain, "GET /x HTTP/1.1\r\n" HOST "\r\n") && read_response(plain, &a) &&
	      a.status == 503);
	CHECK(strstr(a.head, "Retry-After: 1\r\n") && strstr(a.body, "\"retryable\":true"));
	fds[3] = dial();
	CHECK(send_text(fds[3], "POST /x HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n"));
	CHECK(read_response(fds[3], &a) && a.status == 503 && is_closed(fds[3]));
	/* no handler ran for these two, so their contexts were released */
	CHECK(EVENTUALLY(contexts == 3));
	go_on = true;
	for (int i = 0; i < 3; i++)
		CHECK(read_response(fds[i], &a) && a.status == 200);
	/* there is capacity again, on the connection that got 503 */
	CHECK(EVENTUALLY(inside == 0));
	CHECK(send_text(plain, "GET /x HTTP/1.1\r\n" HOST "\r\n") && read_response(plain, &a) &&
	      a.status == 200);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(plain);
	free(a.body);
	CHECK(peak <= 3);
	stop();
	CHECK(contexts == 0);
}

static void heads(void)
{
	const struct http_opts o = { .handler = handle, .max_head = 4096 };
	static char text[80000];
	char *end;

	CHECK(serve(&o, "127.0.0.1:0"));
	/* slightly and far too much: of the target, of a header, of headers */
	for (size_t n = 5000; n <= 70000; n += 65000) {
		end = text + sprintf(text, "GET /");
		memset(end, 'a', n);
		strcpy(end + n, " HTTP/1.1\r\n" HOST "\r\n");
		CHECK(status_of(text) == 414 || n == 70000);
		end = text + sprintf(text, "GET / HTTP/1.1\r\n" HOST "X: ");
		memset(end, 'a', n);
		strcpy(end + n, "\r\n\r\n");
		CHECK(status_of(text) == 431 || n == 70000);
	}
	end = text + sprintf(text, "GET / HTTP/1.1\r\n" HOST);
	for (int i = 0; i < 101; i++)
		end += sprintf(end, "H%d: 1\r\n", i);
	strcpy(end, "\r\n");
	CHECK(status_of(text) == 431);
	CHECK(status_of("GET / HTTP/1.1\r\n" HOST "\r\n") == 200);
	CHECK(EVENTUALLY(numbers().connections == 0));
	stop();
}

/* A head with n of something: of the path, of a value, headers, parameters, cookies. */
static size_t make_head(char *to, int shape, int n)
{
	char *end = to + sprintf(to, "GET /");

	if (shape == 0)
		end += sprintf(end, "%0*d", n + 1, 0);
	for (int i = 0; i < n / 20 && shape == 3; i++)
		end += sprintf(end, "%c%d=1", i ? '&' : '?', i);
	end += sprintf(end, " HTTP/1.1\r\n" HOST);
	if (shape == 1)
		end += sprintf(end, "X: %0*d\r\n", n + 1, 0);
	for (int i = 0; i < n / 100 && shape == 2; i++)
		end += sprintf(end, "X%d: %090d\r\n", i, i);
	if (shape == 4)
		end += sprintf(end, "Cookie: a=%0*d\r\n", n / 2 + 1, 0);
	return (size_t)(end + sprintf(end, "\r\n") - to);
}

/* Every oversized head gets a response. */
static void larger_and_larger_heads(void)
{
	const struct http_opts o = { .handler = handle };
	static const int refusals[] = { 414, 431, 431, 400, 200 };
	static char text[100000];

	CHECK(serve(&o, "127.0.0.1:0"));
	for (int shape = 0; shape < 5; shape++) {
		for (int n = 1000; n < 40000; n += 611) {
			int status = status_of_bytes(text, make_head(text, shape, n));

			if (n < 8000 && shape != 3)
				CHECK(status == 200);
			else if (n > 16000 && n < 29000)
				CHECK(status == refusals[shape]);
			else
				CHECK(status == 200 || status == 414 || status == 400 ||
				      status == 431);
		}
	}
	/* a path as long as the kernel accepts, with all bytes encoded */
	CHECK(status_of_bytes(text, make_head(text, 0, 3 * 4096 + 200)) == 200);
	CHECK(EVENTUALLY(numbers().connections == 0));
	stop();
}

static void connections(void)
{
	const struct http_opts many = { .handler = handle, .max_connections = 4 };
	const struct http_opts each = { .handler = handle, .max_per_address = 4 };
	struct answer a = { .status = 0 };
	int fds[5];

	for (int round = 0; round < 2; round++) {
		CHECK(serve(round ? &each : &many, "127.0.0.1:0"));
		for (int i = 0; i < 4; i++) {
			fds[i] = dial();
			CHECK(send_text(fds[i], "GET / HTTP/1.1\r\n" HOST "\r\n") &&
			      read_response(fds[i], &a));
		}
		fds[4] = dial();
		send_text(fds[4], "GET / HTTP/1.1\r\n" HOST "\r\n");
		close(fds[0]);
		/* it was refused, or waited for the closed one */
		if (read_response(fds[4], &a))
			CHECK(numbers().connections <= 4);
		for (int i = 1; i < 5; i++)
			close(fds[i]);
		CHECK(EVENTUALLY(status_of("GET / HTTP/1.1\r\n" HOST "\r\n") == 200));
		stop();
	}
	free(a.body);
}

static void draining_at_the_limit_does_not_spin(void)
{
	const struct http_opts o = { .handler = handle, .max_connections = 2 };
	struct answer a = { .status = 0 };
	int fds[3];
	clock_t before;

	CHECK(serve(&o, "127.0.0.1:0"));
	go_on = false;
	for (int i = 0; i < 2; i++)
		fds[i] = dial();
	CHECK(send_text(fds[0], "GET /wait HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(send_text(fds[1], "GET / HTTP/1.1\r\n" HOST "\r\n") && read_response(fds[1], &a));
	CHECK(EVENTUALLY(inside == 1));
	fds[2] = dial(); /* takes the place of the idle one */
	http_server_drain(server, 1);
	close(fds[1]);
	close(fds[2]);
	CHECK(EVENTUALLY(numbers().connections == 1));
	before = clock(); /* processor time, so other load does not matter */
	nap(1500);
	CHECK(clock() - before < CLOCKS_PER_SEC / 20);
	go_on = true;
	CHECK(read_response(fds[0], &a) && a.status == 200);
	close(fds[0]);
	stop();
	free(a.body);
}

/* ---- ambiguous requests ---------------------------------------------------------------------- */

static void bad(void)
{
	static const struct {
		int status;
		const char *text;
	} table[] = {
		{ 400, "POST /echo HTTP/1.1\r\n" HOST
		       "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx" },
		{ 400, "POST /echo HTTP/1.1\r\n" HOST
		       "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 400, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 501, "POST /echo HTTP/1.1\r\n" HOST
		       "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" },
		{ 501,
		  "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" },
		{ 400, "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 400,
		  "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" },
		{ 400,
		  "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n" },
		{ 400, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n" },
		{ 400, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\nx" },
		{ 400, "GET /file HTTP/1.1\r\n" HOST HOST "\r\n" },
		{ 400,
		  "GET /file HTTP/1.1\r\n" HOST "Authorization: a\r\nauthorization: b\r\n\r\n" },
		{ 400, "GET /file HTTP/1.1\r\n\r\n" },
		{ 400, "GET /file HTTP/1.1\r\n" HOST "X Y: 1\r\n\r\n" },
		{ 400, "GET /file HTTP/1.1\r\n" HOST "X-Y : 1\r\n\r\n" },
		{ 400, "GET /file HTTP/1.1\r\n" HOST "X-Y: a\001b\r\n\r\n" },
		{ 400, "GET /fi\001le HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET http://b/file HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET file HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET /file?a=%0g HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET /file?a=% HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET /file?a=%00 HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET /file?a=1&%61=2 HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET /file HTTP/1.1\n" HOST "\r\n" },
		{ 400, "GET /file HTTP/1.1\r\nHost: a\n\r\n" },
		{ 400, "GET /file HTTP/1.1\r\n" HOST "\n" },
		{ 400, "GET /file HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n" },
		{ 400, "GET  /file HTTP/1.1\r\n" HOST "\r\n" },
		{ 505, "GET /file HTTP/2.0\r\n" HOST "\r\n" },
	};
	static const char nul[] = "GET /file HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
	static const char nul_path[] = "GET /file\0b HTTP/1.1\r\n" HOST "\r\n";

	CHECK(serve(&(struct http_opts){ .handler = handle }, "127.0.0.1:0"));
	served = 0;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int status = status_of(table[i].text);

		if (status != table[i].status)
			printf("# %d: %s\n", status, table[i].text);
		CHECK(status == table[i].status);
	}
	CHECK(status_of_bytes(nul, sizeof(nul) - 1) == 400);
	CHECK(status_of_bytes(nul_path, sizeof(nul_path) - 1) == 400);
	CHECK(EVENTUALLY(numbers().requests == 0));
	CHECK(served <= 2); /* the two whose chunks are wrong */
	stop();
}

/* ---- too slow -----------------------------------------------------------------------------------
 */

/* Sends a byte each 100 ms until the server closes; false: it never did. */
static bool drip(int fd, const char *first)
{
	bool open = send_text(fd, first);

	for (int i = 0; i < 1200 && open; i++) {
		nap(100);
		open = send_text(fd, "a") &&
		       recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
	}
	close(fd);
	return !open;
}

static void slow(void)
{
	const struct http_opts o = { .handler = handle, .slow_s = 1, .idle_s = 2 };
	int idle[20], fd;

	CHECK(serve(&o, "127.0.0.1:0"));
	for (int i = 0; i < 20; i++)
		idle[i] = dial();
	CHECK(drip(dial(), "G"));
	CHECK(drip(dial(), "GET /"));
	CHECK(drip(dial(), "GET / HTTP/1.1\r\n" HOST "X: "));
	failed = 0;
	CHECK(drip(dial(), "POST / HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n"));
	CHECK(EVENTUALLY(failed == 1));
	/* a body that stalls, a reader that stalls */
	fd = dial();
	CHECK(send_text(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nab") &&
	      is_closed(fd));
	close(fd);
	CHECK(EVENTUALLY(failed == 2));
	fd = dial();
	CHECK(send_text(fd, "GET /stream?n=1000000 HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(EVENTUALLY(failed == 3));
	CHECK(EVENTUALLY(numbers().connections == 0 && numbers().requests == 0));
	close(fd);
	for (int i = 0; i < 20; i++)
		close(idle[i]);
	/* all of them were disconnected, and the server still works */
	CHECK(status_of("GET / HTTP/1.1\r\n" HOST "\r\n") == 200);
	stop();
}

/* ---- many ---------------------------------------------------------------------------------------
 */

static void streams(void)
{
	enum { MANY = 200, LINES = 400 };
	const struct http_opts o = { .handler = handle };
	struct answer a = { .status = 0 };
	static int fds[MANY];

	CHECK(serve(&o, "127.0.0.1:0"));
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], "GET /stream?slowly&n=400 HTTP/1.1\r\n" HOST "\r\n"));
	}
	for (int i = 0; i < MANY; i++) {
		CHECK(read_response(fds[i], &a) && a.len == LINES * 61);
		for (int k = 0; k < LINES; k++)
			CHECK(atoi(a.body + k * 61) == k && a.body[k * 61 + 60] == '\n');
		close(fds[i]);
	}
	CHECK(EVENTUALLY(numbers().requests == 0) && numbers().total == MANY);
	free(a.body);
	stop();
}

/* ---- TLS ----------------------------------------------------------------------------------------
 */

static bool slurp(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;

	buf[n] = '\0';
	if (f)
		fclose(f);
	return n > 0;
}

static bool make_certificate(const char *dir, char *cert, char *key, size_t size)
{
	char command[512], path[128];

	snprintf(
		command, sizeof(command),
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
		"-subj /CN=a -keyout %s/key -out %s/cert >/dev/null 2>&1",
		dir, dir);
	if (system(command))
		return false;
	snprintf(path, sizeof(path), "%s/key", dir);
	if (!slurp(path, key, size) || unlink(path))
		return false;
	snprintf(path, sizeof(path), "%s/cert", dir);
	return slurp(path, cert, size) && !unlink(path);
}

static bool ask_by_tls(const char *version, const char *request, char *buf, size_t size)
{
	char command[512];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command),
		 "printf '%s' | timeout 10 openssl s_client -quiet -ign_eof -connect %s %s "
		 "2>/dev/null",
		 request, at, version);
	f = popen(command, "r");
	n = f ? fread(buf, 1, size - 1, f) : 0;
	buf[n] = '\0';
	return f && pclose(f) != -1;
}

static void tls(void)
{
	static char cert[8192], key[8192], buf[200000];
	struct http_opts o = { .handler = handle, .tls_cert = cert, .tls_key = key };
	char dir[TMP_NAME_SIZE];
	bool made;

	CHECK(mkdtemp(tmp_name(dir, "http")));
	made = make_certificate(dir, cert, key, sizeof(cert));
	CHECK(!rmdir(dir));
	if (!made)
		SKIP("no openssl to make a certificate with");
	CHECK(serve(&o, "127.0.0.1:0"));
	CHECK(ask_by_tls("-tls1_3",
			 "POST / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n"
			 "Content-Length: 2\\r\\n\\r\\nhi",
			 buf, sizeof(buf)));
	CHECK(strstr(buf, "200 OK") && strstr(buf, "\r\n\r\nhi"));
	CHECK(ask_by_tls(
		"-tls1_2",
		"GET /stream?n=2000 HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n", buf,
		sizeof(buf)));
	CHECK(strstr(buf, "200 OK") && strstr(buf, "1999\n"));
	CHECK(ask_by_tls("-tls1_2",
			 "GET /upgrade HTTP/1.1\\r\\nHost: a\\r\\nConnection: Upgrade\\r\\n"
			 "Upgrade: greeting\\r\\n\\r\\nhello",
			 buf, sizeof(buf)));
	CHECK(strstr(buf, " 101 ") && strstr(buf, "\r\n\r\nand so hello"));
	CHECK(ask_by_tls("-tls1_1", "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n", buf, sizeof(buf)));
	CHECK_STR(buf, "");
	stop();
	/* an invalid certificate */
	o.tls_cert = "nothing";
	CHECK(http_server_new(&o, &server, &err) && err.code == ERR_INVALID);
}

static void addresses(void)
{
	static const char *const wrong[] = {
		"",	  "127.0.0.1", "127.0.0.1:",	  ":80",   "::1:80",
		"a.b:80", "[::1]",     "127.0.0.1:99999", "unix:", "unix:/nowhere/at/all"
	};
	const struct http_opts o = { .handler = handle };

	CHECK(serve(&o, "127.0.0.1:0"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(http_server_listen(server, wrong[i], 0600, NULL, 0, &err));
	CHECK(http_server_listen(server, at, 0600, NULL, 0, &err) && err.sys == EADDRINUSE);
	stop();
	http_server_free(NULL);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(requests);
	RUN(heads);
	RUN(larger_and_larger_heads);
	RUN(connections);
	RUN(draining_at_the_limit_does_not_spin);
	RUN(bad);
	RUN(slow);
	RUN(streams);
	RUN(tls);
	RUN(addresses);
	return tap_done();
}
