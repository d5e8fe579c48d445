/* SPDX-License-Identifier: Apache-2.0 */

#include "http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/auto.h"

enum { BACKLOG = 1024 };

static bool is_port(const char *s)
{
	return *s && strlen(s) <= 5 && strspn(s, "0123456789") == strlen(s) &&
	       strtoul(s, NULL, 10) <= 65535;
}

/* "ADDR:PORT" or "[ADDR]:PORT". */
static struct addrinfo *parse_address(const char *address, struct err *err)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;
	char host[80];
	const char *colon = strrchr(address, ':'), *from = address;
	size_t len = colon ? (size_t)(colon - address) : 0;

	if (len > 2 && address[0] == '[' && colon[-1] == ']') {
		from++;
		len -= 2;
	} else if (len && memchr(address, ':', len)) {
		len = 0;
	}
	if (!len || len >= sizeof(host) || !is_port(colon + 1)) {
		err_set(err, ERR_INVALID, "'%s' is not ADDRESS:PORT, such as 127.0.0.1:7070",
			address);
		return NULL;
	}
	memcpy(host, from, len);
	host[len] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &all)) {
		err_set(err, ERR_INVALID,
			"'%s' is not ADDRESS:PORT: the address must be numeric, such as 127.0.0.1",
			address);
		return NULL;
	}
	return all;
}

/* Reports the port chosen by the kernel. */
static void print_address(int fd, char *ret, size_t size)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	char host[80], port[8];

	if (!ret || getsockname(fd, (struct sockaddr *)&sa, &len) ||
	    getnameinfo((struct sockaddr *)&sa, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	snprintf(ret, size, sa.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int listen_tcp(const char *address, int *ret_fd, char *ret, size_t size, struct err *err)
{
	struct addrinfo *ai = parse_address(address, err);
	auto_close int fd = -1;
	int r = 0, one = 1;

	if (!ai)
		return -1;
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, BACKLOG))
		r = err_sys(err, errno, "listen on %s", address);
	freeaddrinfo(ai);
	if (r)
		return -1;
	print_address(fd, ret, size);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Removes a stale socket file without a listener. Any other file stays. */
static int remove_stale(const struct sockaddr_un *sa, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (lstat(sa->sun_path, &st))
		return errno == ENOENT ? 0 : err_sys(err, errno, "%s", sa->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_CONFLICT, "%s exists and is not a socket", sa->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "socket");
	if (!connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) || errno != ECONNREFUSED)
		return err_set(err, ERR_CONFLICT, "%s is in use by another process", sa->sun_path);
	return unlink(sa->sun_path) ? err_sys(err, errno, "remove %s", sa->sun_path) : 0;
}

static int check_path(const char *path, struct err *err)
{
	if (!*path)
		return err_set(err, ERR_INVALID, "'unix:' without a path");
	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return err_set(err, ERR_INVALID, "'unix:%s' is too long for a socket path", path);
	return 0;
}

static int listen_unix(const char *path, mode_t mode, int *ret_fd, char **ret_path, struct err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	auto_close int fd = -1;
	char *copy;

	if (check_path(path, err))
		return -1;
	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (remove_stale(&sa, err))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "socket");
	/* bind() creates the file with this mode, so it is never more accessible than configured.
	 */
	if (fchmod(fd, mode) || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return err_sys(err, errno, "listen on %s", path);
	/* The umask removed bits; restoring them now opens nothing too early. */
	copy = strdup(path);
	if (!copy || chmod(path, mode) || listen(fd, BACKLOG)) {
		err_sys(err, errno, "listen on %s", path);
		unlink(path);
		free(copy);
		return -1;
	}
	*ret_path = copy;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int http_address_check(const char *address, struct err *err)
{
	struct addrinfo *ai;

	if (!strncmp(address, "unix:", 5))
		return check_path(address + 5, err);
	ai = parse_address(address, err);
	if (!ai)
		return -1;
	freeaddrinfo(ai);
	return 0;
}

int http_listen_on(const char *address, mode_t mode, int *ret_fd, char **ret_path, char *ret,
		   size_t size, struct err *err)
{
	if (strncmp(address, "unix:", 5) != 0)
		return listen_tcp(address, ret_fd, ret, size, err);
	if (listen_unix(address + 5, mode, ret_fd, ret_path, err))
		return -1;
	if (ret)
		snprintf(ret, size, "%s", address);
	return 0;
}
