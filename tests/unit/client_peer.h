/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that sends scripted responses to any request, for the client's tests. */
#ifndef LODGE_TESTS_CLIENT_PEER_H
#define LODGE_TESTS_CLIENT_PEER_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tmp_name.h"

enum { PEER_ANSWERS = 4, PEER_RECEIVED = 1 << 20 };

static struct peer {
	int fd;
	char dir[TMP_NAME_SIZE], path[104], url[112];
	const char *answers[PEER_ANSWERS]; /* one per connection; terminated by NULL */
	size_t lengths[PEER_ANSWERS]; /* 0: a string */
	bool early; /* responds once the head has arrived */
	size_t piece; /* bytes at a time; 0: all */
	char *received; /* the last request */
	size_t received_len;
	pthread_t thread;
	bool done; /* its thread has ended */
} peer;

static inline bool peer_has_all(const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4), *length, *last;

	if (!end)
		return false;
	if (peer.early)
		return true;
	length = memmem(text, (size_t)(end - text), "Content-Length: ", 16);
	if (length)
		return len - (size_t)(end + 4 - text) >= strtoul(length + 16, NULL, 10);
	last = memmem(text, len, "\r\n0\r\n\r\n", 7);
	return !memmem(text, (size_t)(end - text), "chunked", 7) || last;
}

static inline void peer_receive(int fd)
{
	peer.received_len = 0;
	while (!peer_has_all(peer.received, peer.received_len)) {
		ssize_t n = recv(fd, peer.received + peer.received_len,
				 PEER_RECEIVED - peer.received_len, 0);

		if (n <= 0)
			break;
		peer.received_len += (size_t)n;
	}
	peer.received[peer.received_len] = '\0';
}

static inline void peer_send(int fd, const char *text, size_t len)
{
	size_t piece = peer.piece ? peer.piece : len;

	while (len) {
		ssize_t n = send(fd, text, len < piece ? len : piece, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static inline void *peer_run(void *arg)
{
	(void)arg;
	for (int i = 0; i < PEER_ANSWERS && peer.answers[i]; i++) {
		int fd = accept(peer.fd, NULL, NULL);
		size_t len = peer.lengths[i] ? peer.lengths[i] : strlen(peer.answers[i]);

		if (fd < 0)
			break;
		peer_receive(fd);
		peer_send(fd, peer.answers[i], len);
		close(fd);
	}
	return NULL;
}

static inline bool peer_listen(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	peer = (struct peer){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
			      .received = malloc(PEER_RECEIVED + 1) };
	if (peer.fd < 0 || !peer.received || !mkdtemp(tmp_name(peer.dir, "lodge-client")))
		return false;
	snprintf(peer.path, sizeof(peer.path), "%s/s", peer.dir);
	snprintf(peer.url, sizeof(peer.url), "unix:%s", peer.path);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", peer.path);
	return bind(peer.fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(peer.fd, 8) == 0;
}

static inline bool peer_start(void)
{
	return pthread_create(&peer.thread, NULL, peer_run, NULL) == 0;
}

/* Waits until the peer has sent all responses; what it received is complete then. */
static inline void peer_wait(void)
{
	pthread_join(peer.thread, NULL);
	peer.done = true;
}

static inline void peer_end(void)
{
	shutdown(peer.fd, SHUT_RDWR); /* accept() returns */
	if (!peer.done)
		peer_wait();
	close(peer.fd);
	unlink(peer.path);
	rmdir(peer.dir);
	free(peer.received);
}

#endif
