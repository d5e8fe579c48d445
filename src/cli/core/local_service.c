/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/local_service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "cli/core/target.h"
#include "sandbox/home_dir.h"

enum { DIRS = 2, LIST_SIZE = 16 << 10, HOST = 64, SOCKET_PATH = TARGET_PATH + 16 };

/* ---- data directories ------------------------------------------------------------------------ */

/* Where the data directory of a daemon may be; only LODGE_DATA if that is set. */
static int data_dirs(char ret[DIRS][TARGET_PATH])
{
	const char *data = home_dir_variable(), *xdg = getenv("XDG_DATA_HOME"),
		   *home = getenv("HOME");
	int n = 0;

	if (data) {
		snprintf(ret[n++], TARGET_PATH, "%s", data);
		return n;
	}
	snprintf(ret[n++], TARGET_PATH, "/var/lib/lodge");
	if (xdg && xdg[0] == '/')
		snprintf(ret[n++], TARGET_PATH, "%s/lodge", xdg);
	else if (home && home[0] == '/')
		snprintf(ret[n++], TARGET_PATH, "%s/.local/share/lodge", home);
	return n;
}

/* A directory that cannot be searched may contain one. */
static bool has_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? S_ISSOCK(st.st_mode) : errno == EACCES;
}

/* The socket of a daemon that was killed still exists. */
static bool accepts(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return false;
	memcpy(a.sun_path, path, strlen(path));
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

static int fail_not_found(char at[DIRS][TARGET_PATH], int n, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE,
		       "cannot find lodged (looked at LODGE_URL, `lodge login`, %.60s/lodge.sock"
		       "%s%.60s%s). Is it running on another address? Set LODGE_URL.",
		       at[0], n > 1 ? ", " : "", n > 1 ? at[1] : "", n > 1 ? "/lodge.sock" : "");
}

int local_service_find(char **ret_url, struct err *err)
{
	char at[DIRS][TARGET_PATH], path[DIRS][SOCKET_PATH];
	int n = data_dirs(at), found = -1;

	for (int i = 0; i < n; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/lodge.sock", at[i]);
		if (!has_socket(path[i]))
			continue;
		if (found < 0 || (!accepts(path[found]) && accepts(path[i])))
			found = i;
	}
	if (found < 0)
		return fail_not_found(at, n, err);
	if (asprintf(ret_url, "unix:%s", path[found]) < 0) {
		*ret_url = NULL;
		return err_sys(err, ENOMEM, "socket");
	}
	return 0;
}

/* ---- the key --------------------------------------------------------------------------------- */

/* lodged creates admin.key beside its socket. Both must have one owner: whoever can place a socket
 * and a link to another service's key must not receive that key. */
static int read_admin_key(const char *socket, char **ret, struct err *err)
{
	char path[SOCKET_PATH];
	const char *slash = strrchr(socket, '/');
	int n = slash ? (int)(slash - socket) : 1;
	auto_close int fd = -1;
	struct stat key, its;

	snprintf(path, sizeof(path), "%.*s/admin.key", n, slash ? socket : ".");
	if (stat(socket, &its) < 0)
		return 0; /* nothing listens there */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 && errno != ELOOP)
		return err_sys(err, errno,
			       "cannot read the API key (set LODGE_API_KEY or --key-file): %.100s",
			       path);
	if (fd < 0 || fstat(fd, &key) < 0 || !S_ISREG(key.st_mode) ||
	    (key.st_uid != its.st_uid && key.st_uid != geteuid()))
		return err_set(err, ERR_DENIED,
			       "%.100s: ignored, because its owner is not the owner of the "
			       "socket; use LODGE_API_KEY or --key-file",
			       path);
	if (target_read_key(fd, path, ret, err) == 0)
		return 0;
	return err_ctx(err, "cannot read the API key (set LODGE_API_KEY or --key-file)");
}

/* ---- loopback addresses ---------------------------------------------------------------------- */

struct address {
	bool tls;
	char host[HOST]; /* an IPv6 address has its brackets */
	int port;
};

/* http[s]://HOST[:PORT][/]. False: anything else. */
static bool parse_address(const char *url, struct address *ret)
{
	const char *host = strncmp(url, "http", 4) == 0 ? strstr(url, "://") : NULL, *port;
	char *end;
	size_t n;

	ret->tls = url[4] == 's';
	if (!host || host - url != 4 + ret->tls)
		return false;
	host += 3;
	n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
	if (n >= sizeof(ret->host) || strlen(host) < n)
		return false;
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)n, host);
	port = host + n;
	ret->port = ret->tls ? 443 : 80;
	if (*port == ':') {
		ret->port = (int)strtol(port + 1, &end, 10);
		port = end;
	}
	return !*port || strcmp(port, "/") == 0;
}

static bool is_ipv4_loopback(const char *host)
{
	struct in_addr a;

	return inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127;
}

/* The loopback address at which a listener with this one is reached; NULL: it is none. */
static const char *loopback_of(const char *listener)
{
	if (strcmp(listener, "0.0.0.0") == 0)
		return "127.0.0.1";
	if (strcmp(listener, "[::]") == 0 || strcmp(listener, "[::1]") == 0)
		return "[::1]";
	return is_ipv4_loopback(listener) ? listener : NULL;
}

static bool is_reached_by(const char *listener, const char *host)
{
	const char *at = loopback_of(listener);

	return at && (strcmp(host, "localhost") == 0 || strcmp(host, at) == 0 ||
		      (strcmp(listener, "0.0.0.0") == 0 && is_ipv4_loopback(host)));
}

/* DIR/addresses of a lodged that runs in our network namespace; see lodged/address_file.h. */
static char *read_addresses(const char *dir, const char *socket)
{
	char path[SOCKET_PATH], net[HOST] = "";
	auto_close int fd = -1;
	auto_free char *text = malloc(LIST_SIZE);
	struct stat st, its;

	snprintf(path, sizeof(path), "%s/addresses", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (!text || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    stat(socket, &its) < 0 || its.st_uid != st.st_uid || !accepts(socket) ||
	    file_read_fd(fd, text, LIST_SIZE) < 0 ||
	    readlink("/proc/self/ns/net", net, sizeof(net) - 1) < 0)
		return NULL;
	return strncmp(text, net, strlen(net)) == 0 ? steal_ptr(&text) : NULL;
}

static bool has_address(char *lines, const struct address *a)
{
	struct address its;
	char *line;

	while ((line = strsep(&lines, "\n")))
		if (parse_address(line, &its) && its.port == a->port && its.tls == a->tls &&
		    is_reached_by(its.host, a->host))
			return true;
	return false;
}

/* The key goes to the socket: the port may be another process's by the time of the request. */
static int use_socket(struct target *w, const char *socket, struct err *err)
{
	char *url;

	if (asprintf(&url, "unix:%s", socket) < 0)
		return err_sys(err, ENOMEM, "url");
	free(w->url);
	w->url = url;
	return 0;
}

int local_service_key(struct target *w, struct err *err)
{
	char at[DIRS][TARGET_PATH], socket[SOCKET_PATH];
	struct address a;
	struct err ignored;

	if (strncmp(w->url, "unix:", 5) == 0)
		return read_admin_key(w->url + 5, &w->key, err);
	if (!parse_address(w->url, &a))
		return 0;
	for (int i = 0, n = data_dirs(at); i < n && !w->key; i++) {
		auto_free char *lines = NULL;

		snprintf(socket, sizeof(socket), "%s/lodge.sock", at[i]);
		lines = read_addresses(at[i], socket);
		/* whoever may not read the key has to bring one, as for any other service */
		if (lines && has_address(lines, &a) &&
		    read_admin_key(socket, &w->key, &ignored) == 0 && w->key)
			return use_socket(w, socket, err);
	}
	return 0;
}
