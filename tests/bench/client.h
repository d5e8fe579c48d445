/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP client with persistent connections: one call after the other, or many connections at
 * once on one thread. It is cheap, so that the server is measured. An error ends the program. */
#ifndef LODGE_TESTS_BENCH_CLIENT_H
#define LODGE_TESTS_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLIENT_KEY "lodge-bench-key-0123456789"

struct client {
	int fd;
	int status; /* of the last response; 0: none yet */
	char *body; /* of that response, NUL-terminated */
	size_t body_len, len, used; /* used: the bytes of buf that belong to the last response */
	char buf[32 << 10]; /* the maximum length of a response, except with client_read() */
};

/* A request as sent; free() it. body NULL: none. accept NULL: anything. */
struct request {
	char *text;
	size_t len;
};
struct request request_new(const char *method, const char *path, const char *accept,
			   const char *body);
/* Only the head, for a body of this many bytes. */
struct request request_upload(const char *path, uint64_t len);

void client_open(struct client *c, int port);
void client_close(struct client *c);
void client_send(struct client *c, const struct request *r);
/* Reads the whole response. */
void client_answer(struct client *c);
/* Both, and the status must be below 300. */
void client_call(struct client *c, const struct request *r);
void client_ask(struct client *c, const char *method, const char *path, const char *body);
/* Reads the head only; body has what follows it. */
void client_head(struct client *c);
/* A text member of the last response, unparsed; "" if there is none. */
void client_member(const struct client *c, const char *name, char *ret, size_t size);

/* The next request of connection i; c has the last response, or status 0. NULL: it is finished. */
typedef const struct request *client_next_fn(void *arg, int i, struct client *c);
/* Drives n open connections until all are finished. */
void client_drive(struct client *c, int n, client_next_fn *next, void *arg);

#endif
