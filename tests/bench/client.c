/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { ANSWER_S = 120, BATCH = 64 };

static void die(const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, "%s", what);
	must(-1, &err, "http");
}

/* ---- requests -------------------------------------------------------------------------------- */

#define HEAD "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " CLIENT_KEY "\r\n"

struct request request_new(const char *method, const char *path, const char *accept,
			   const char *body)
{
	struct request r;
	int n;

	n = body ? asprintf(&r.text,
			    HEAD "Accept: %s\r\nContent-Type: application/json\r\n"
				 "Content-Length: %zu\r\n\r\n%s",
			    method, path, accept ? accept : "*/*", strlen(body), body)
		 : asprintf(&r.text, HEAD "\r\n", method, path);
	must(n, NULL, "request");
	r.len = (size_t)n;
	return r;
}

struct request request_upload(const char *path, uint64_t len)
{
	struct request r;
	int n = asprintf(&r.text, HEAD "Content-Length: %llu\r\n\r\n", "PUT", path,
			 (unsigned long long)len);

	must(n, NULL, "request");
	r.len = (size_t)n;
	return r;
}

/* ---- one connection -------------------------------------------------------------------------- */

void client_open(struct client *c, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval wait = { .tv_sec = ANSWER_S };
	int one = 1;

	c->status = 0;
	c->len = c->used = c->body_len = 0;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
}

void client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

void client_send(struct client *c, const struct request *r)
{
	for (size_t sent = 0; sent < r->len;) {
		ssize_t n = send(c->fd, r->text + sent, r->len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			die("send");
		sent += n > 0 ? (size_t)n : 0;
	}
}

static void receive(struct client *c)
{
	ssize_t n;

	if (c->len == sizeof(c->buf) - 1)
		die("an answer is too long");
	do
		n = recv(c->fd, c->buf + c->len, sizeof(c->buf) - 1 - c->len, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		die(n ? "no answer" : "the server closed the connection");
	c->len += (size_t)n;
	c->buf[c->len] = '\0';
}

/* Discards the last response. */
static void next_answer(struct client *c)
{
	c->len -= c->used;
	memmove(c->buf, c->buf + c->used, c->len);
	c->used = 0;
	c->status = 0;
}

static bool has_head(struct client *c)
{
	char *end = memmem(c->buf, c->len, "\r\n\r\n", 4);

	if (!end)
		return false;
	if (sscanf(c->buf, "HTTP/1.1 %d", &c->status) != 1)
		die("that is no answer");
	end[2] = '\0';
	c->body = end + 4;
	c->body_len = c->len - (size_t)(c->body - c->buf);
	return true;
}

/* Also if it was cut off after the head. */
static bool is_whole(struct client *c)
{
	const char *length;
	size_t want;

	if (!c->status && !has_head(c))
		return false;
	length = strcasestr(c->buf, "\r\nContent-Length:");
	want = length ? strtoul(length + 17, NULL, 10) : 0;
	c->used = (size_t)(c->body - c->buf) + want;
	if (c->len < c->used)
		return false;
	c->body_len = want;
	return true;
}

void client_head(struct client *c)
{
	next_answer(c);
	while (!has_head(c))
		receive(c);
	c->used = c->len; /* the caller takes the rest */
}

void client_answer(struct client *c)
{
	next_answer(c);
	while (!is_whole(c))
		receive(c);
}

static void check(const struct client *c, const char *asked)
{
	struct err err;

	if (c->status >= 200 && c->status < 300)
		return;
	err_set(&err, ERR_INTERNAL, "%.60s: %d %.*s", asked, c->status, (int)c->body_len, c->body);
	must(-1, &err, "http");
}

void client_call(struct client *c, const struct request *r)
{
	client_send(c, r);
	client_answer(c);
	check(c, r->text);
}

void client_ask(struct client *c, const char *method, const char *path, const char *body)
{
	struct request r = request_new(method, path, NULL, body);

	client_call(c, &r);
	free(r.text);
}

void client_member(const struct client *c, const char *name, char *ret, size_t size)
{
	const char *at;
	char start[64];
	size_t n;

	snprintf(start, sizeof(start), "\"%s\":\"", name);
	at = memmem(c->body, c->body_len, start, strlen(start));
	n = at ? strcspn(at + strlen(start), "\"") : 0;
	snprintf(ret, size, "%.*s", (int)n, at ? at + strlen(start) : "");
}

/* ---- many ------------------------------------------------------------------------------------ */

/* False: it is finished. */
static bool go_on(struct client *c, int i, client_next_fn *next, void *arg)
{
	const struct request *r = next(arg, i, c);

	if (!r)
		return false;
	next_answer(c);
	client_send(c, r);
	return true;
}

void client_drive(struct client *c, int n, client_next_fn *next, void *arg)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), busy = 0;
	struct epoll_event evs[BATCH];

	for (int i = 0; i < n; i++) {
		evs[0] = (struct epoll_event){ .events = EPOLLIN, .data.u32 = (uint32_t)i };
		must(epoll_ctl(epoll, EPOLL_CTL_ADD, c[i].fd, &evs[0]), NULL, "epoll");
		busy += go_on(&c[i], i, next, arg);
	}
	while (busy) {
		int got = epoll_wait(epoll, evs, BATCH, ANSWER_S * 1000);

		if (got == 0)
			die("no answer");
		for (int k = 0; k < got; k++) {
			int i = (int)evs[k].data.u32;

			receive(&c[i]);
			if (is_whole(&c[i]))
				busy -= !go_on(&c[i], i, next, arg);
		}
	}
	close(epoll);
}
