/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on: any text but a socket file. An accepted one has a numeric host and port.
 * Nothing is bound: there are no sockets here. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool asked;

int socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	asked = true;
	errno = EMFILE;
	return -1;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_taken(const char *text)
{
	const char *colon = strrchr(text, ':');
	char *end = NULL;

	must(colon && colon > text && colon[1] >= '0' && colon[1] <= '9');
	must(strtoul(colon + 1, &end, 10) <= 65535 && !*end);
	must(text[0] == '[' ? colon[-1] == ']' : !memchr(text, ':', (size_t)(colon - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), *path = NULL;
	struct err err = { 0 };
	int fd = -1;

	must(text != NULL);
	if (size) /* strndup() would read on to a NUL under the strict checks */
		memcpy(text, data, size);
	asked = false;
	if (strncmp(text, "unix:", 5) != 0) {
		must(http_listen_on(text, 0600, &fd, &path, NULL, 0, &err) < 0);
		must(fd == -1 && !path && (asked || err.code == ERR_INVALID));
		if (asked)
			check_taken(text);
	}
	free(text);
	return 0;
}
