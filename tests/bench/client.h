/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP client that keeps its connections: one call after the other, or many connections at
 * once on one thread. It costs little, so that what is measured is the server. What fails ends the
 * program. */
#ifndef LODGE_TESTS_BENCH_CLIENT_H
#define LODGE_TESTS_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLIENT_KEY "lodge-bench-key-0123456789"

struct client {
	int fd;
	int status; /* of the last answer; 0: there was none yet */
	char *body; /* of it, ends with a NUL */
	size_t body_len, len, used; /* used: what the last answer had of buf */
	char buf[32 << 10]; /* no answer is longer, but for those read with client_read() */
};

/* A request as it goes over the wire; free() it. body NULL: none. accept NULL: anything. */
struct request {
	char *text;
	size_t len;
};
struct request request_new(const char *method, const char *path, const char *accept,
			   const char *body);
/* Only the head, for a body of so many bytes of whatever kind. */
struct request request_upload(const char *path, uint64_t len);

void client_open(struct client *c, int port);
void client_close(struct client *c);
void client_send(struct client *c, const struct request *r);
/* The whole answer. */
void client_answer(struct client *c);
/* Both, and the status must be below 300. */
void client_call(struct client *c, const struct request *r);
void client_ask(struct client *c, const char *method, const char *path, const char *body);
/* The head only; what follows it is in body. */
void client_head(struct client *c);
/* A text member of the last answer, as it stands there; "" if there is none. */
void client_member(const struct client *c, const char *name, char *ret, size_t size);

/* What connection i sends next; c has the answer to the last, or status 0. NULL: it is done. */
typedef const struct request *client_next_fn(void *arg, int i, struct client *c);
/* Drives n open connections until all are done. */
void client_drive(struct client *c, int n, client_next_fn *next, void *arg);

#endif
