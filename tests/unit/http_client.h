/* SPDX-License-Identifier: Apache-2.0 */
/* A client on a plain socket, and a server with one handler, for the tests of src/http. */
#ifndef LODGE_TESTS_HTTP_CLIENT_H
#define LODGE_TESTS_HTTP_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "http/server.h"
#include "tap.h"

#ifdef __SANITIZE_THREAD__
/* It does not see that EPOLL_CTL_MOD precedes the event that it allows. */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"), used)) const char *__tsan_default_suppressions(void)
{
	return "race:server_conn_arm\n";
}
#endif

static struct http_server *server;
static char at[128];
static struct err err;

static inline void nap(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
}

/* Waits until cond holds, for at most 120 s. */
#define EVENTUALLY(cond)                                                                           \
	({                                                                                         \
		for (int i_ = 0; i_ < 12000 && !(cond); i_++)                                      \
			nap(10);                                                                   \
		(cond);                                                                            \
	})

static inline bool serve(const struct http_opts *o, const char *address)
{
	if (!http_server_new(o, &server, &err) &&
	    !http_server_listen(server, address, 0600, at, sizeof(at), &err))
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static inline void stop(void)
{
	http_server_free(server);
	server = NULL;
}

static inline struct http_metrics numbers(void)
{
	struct http_metrics n;

	http_server_metrics(server, &n);
	return n;
}

static inline int dial_unix(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	close(fd);
	return -1;
}

static inline int dial(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(strrchr(at, ':') + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return fd;
}

static inline bool send_bytes(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, (const char *)data + done, len - done, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static inline bool send_text(int fd, const char *text)
{
	return send_bytes(fd, text, strlen(text));
}

/* Reads one response: its head (with the blank line), and the body according to Content-Length, or
 * joined chunks. False if the connection ends early. */
struct answer {
	char head[8192];
	int status;
	char *body;
	size_t len, cap;
};

static inline bool read_exactly(int fd, char *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = recv(fd, buf + done, len - done, 0);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static inline bool read_line(int fd, char *buf, size_t size)
{
	for (size_t n = 0; n + 1 < size; n++) {
		if (recv(fd, buf + n, 1, 0) != 1)
			return false;
		buf[n + 1] = '\0';
		if (buf[n] == '\n')
			return true;
	}
	return false;
}

static inline bool read_more(int fd, struct answer *a, size_t len)
{
	if (a->len + len >= a->cap) {
		size_t more = 2 * (a->len + len) + 64;
		char *bigger = realloc(a->body, more);

		if (!bigger)
			return false;
		a->body = bigger;
		a->cap = more;
	}
	if (!read_exactly(fd, a->body + a->len, len))
		return false;
	a->len += len;
	a->body[a->len] = '\0';
	return true;
}

static inline bool read_chunks(int fd, struct answer *a)
{
	char line[64];
	size_t n;

	do {
		if (!read_line(fd, line, sizeof(line)))
			return false;
		n = strtoul(line, NULL, 16);
		if (!read_more(fd, a, n) || !read_line(fd, line, sizeof(line)))
			return false;
	} while (n);
	return true;
}

static inline bool read_head(int fd, struct answer *a)
{
	size_t n = 0;

	a->head[0] = '\0';
	do {
		size_t was = n;

		if (!read_line(fd, a->head + n, sizeof(a->head) - n))
			return false;
		n += strlen(a->head + was);
	} while (n < 4 || strcmp(a->head + n - 4, "\r\n\r\n"));
	return sscanf(a->head, "HTTP/1.%*d %d", &a->status) == 1;
}

static inline bool read_response(int fd, struct answer *a)
{
	const char *length;

	a->len = 0;
	if (!read_head(fd, a) || !read_more(fd, a, 0))
		return false;
	length = strcasestr(a->head, "\r\nContent-Length: ");
	if (length)
		return read_more(fd, a, strtoul(length + 18, NULL, 10));
	return !strcasestr(a->head, "chunked") || read_chunks(fd, a);
}

/* Whether the other side has closed, or does within the time limit. */
static inline bool is_closed(int fd)
{
	char buf[4096];
	ssize_t n;

	do
		n = recv(fd, buf, sizeof(buf), 0);
	while (n > 0);
	return n == 0 || errno == ECONNRESET || errno == EPIPE;
}

/* Sends bytes on a new connection; returns the status of the response, 0 if there was none. */
static inline int status_of_bytes(const char *text, size_t len)
{
	struct answer a = { .status = 0 };
	int fd = dial();

	if (fd < 0 || !send_bytes(fd, text, len) || !read_response(fd, &a))
		a.status = 0;
	free(a.body);
	if (fd >= 0)
		close(fd);
	return a.status;
}

static inline int status_of(const char *text)
{
	return status_of_bytes(text, strlen(text));
}

#endif
