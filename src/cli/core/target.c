/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"

enum { PLACES = 2 };

static struct {
	const char *url, *key_file;
} said; /* on the command line */

int where_opt_url(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)ctx;
	said.url = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);
}

int where_opt_key_file(void *ctx, const char *name, const char *value, struct err *err)
{
	(void)ctx;
	said.key_file = value;
	return *value ? 0 : err_set(err, ERR_INVALID, "%s: empty", name);
}

void target_fini(struct target *w)
{
	if (w->key)
		explicit_bzero(w->key, strlen(w->key));
	free(w->url);
	free(w->key);
	*w = (struct target){ 0 };
}

/* ---- this machine's -------------------------------------------------------------------------- */

/* Where the data of a daemon may be; LODGE_DATA leaves no choice. */
static int places(char ret[PLACES][WHERE_PATH])
{
	const char *data = getenv("LODGE_DATA"), *xdg = getenv("XDG_DATA_HOME"),
		   *home = getenv("HOME");
	int n = 0;

	if (data && *data) {
		snprintf(ret[n++], WHERE_PATH, "%s", data);
		return n;
	}
	snprintf(ret[n++], WHERE_PATH, "/var/lib/lodge");
	if (xdg && xdg[0] == '/')
		snprintf(ret[n++], WHERE_PATH, "%s/lodge", xdg);
	else if (home && home[0] == '/')
		snprintf(ret[n++], WHERE_PATH, "%s/.local/share/lodge", home);
	return n;
}

/* What cannot be looked at may be there. */
static bool has_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? S_ISSOCK(st.st_mode) : errno == EACCES;
}

/* A socket stays behind when its daemon is killed. */
static bool answers(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return false;
	memcpy(a.sun_path, path, strlen(path));
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

static int none_there(char at[PLACES][WHERE_PATH], int n, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE,
		       "no lodged: neither LODGE_URL nor `lodge login` names one, and there is no "
		       "lodge.sock in %.60s%s%.60s (`./dev run` or `systemctl start lodged` starts "
		       "one)",
		       at[0], n > 1 ? " or " : "", n > 1 ? at[1] : "");
}

static int find_here(char **ret, struct err *err)
{
	char at[PLACES][WHERE_PATH], path[PLACES][WHERE_PATH + 16];
	int n = places(at), found = -1;

	for (int i = 0; i < n; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/lodge.sock", at[i]);
		if (!has_socket(path[i]))
			continue;
		if (found < 0 || (!answers(path[found]) && answers(path[i])))
			found = i;
	}
	if (found < 0)
		return none_there(at, n, err);
	if (asprintf(ret, "unix:%s", path[found]) < 0) {
		*ret = NULL;
		return err_sys(err, ENOMEM, "socket");
	}
	return 0;
}

/* The key that a daemon makes at its first start lies beside its socket, and both are the daemon's
 * own: another's key, by a link, is not for whoever listens there. */
static int key_beside(const char *url, char **ret, struct err *err)
{
	char path[WHERE_PATH + 16];
	const char *socket = url + 5, *slash = strrchr(socket, '/');
	int n = slash ? (int)(slash - socket) : 1;
	auto_close int fd = -1;
	struct stat key, its;

	snprintf(path, sizeof(path), "%.*s/admin.key", n, slash ? socket : ".");
	if (stat(socket, &its) < 0)
		return 0; /* nobody is there to be given one */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 && errno != ELOOP)
		return err_sys(err, errno, "no key (LODGE_API_KEY or --key-file gives one): %.100s",
			       path);
	if (fd < 0 || fstat(fd, &key) < 0 || !S_ISREG(key.st_mode) ||
	    (key.st_uid != its.st_uid && key.st_uid != geteuid()))
		return err_set(err, ERR_DENIED,
			       "%.100s: not a file of the one who has the socket "
			       "(LODGE_API_KEY or --key-file gives a key)",
			       path);
	if (target_key_in(fd, path, ret, err) == 0)
		return 0;
	return err_ctx(err, "no key (LODGE_API_KEY or --key-file gives one)");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int copy(char **ret, const char *value, struct err *err)
{
	*ret = strdup(value);
	return *ret ? 0 : err_sys(err, ENOMEM, "url");
}

/* A key of the file is only for the daemon of the file; where it names none, for this machine's. */
static int find_url(struct target *w, struct err *err)
{
	const char *given = said.url ? said.url : getenv("LODGE_URL");
	char path[WHERE_PATH];
	struct target file = { 0 };
	struct err ignored;
	int r = 0;

	if (target_config(path, &ignored) == 0)
		r = target_read(path, &file, err);
	if (r < 0 && !(given && *given)) {
		target_fini(&file);
		return -1;
	}
	if (given && *given)
		r = copy(&w->url, given, err);
	else if (file.url)
		r = copy(&w->url, file.url, err);
	else
		r = find_here(&w->url, err);
	if (r == 0 && file.key && (file.url ? !strcmp(file.url, w->url) : !(given && *given)))
		w->key = steal_ptr(&file.key);
	target_fini(&file);
	return r;
}

static int find_key(struct target *w, struct err *err)
{
	const char *given = getenv("LODGE_API_KEY");
	char *key = NULL;

	if (said.key_file) {
		if (target_key_of(said.key_file, &key, err) < 0)
			return -1;
	} else if (given && *given) {
		if (copy(&key, given, err) < 0)
			return -1;
	} else if (w->key || strncmp(w->url, "unix:", 5) != 0) {
		return 0;
	} else {
		return key_beside(w->url, &w->key, err);
	}
	free(w->key);
	w->key = key;
	return 0;
}

int target_find(struct target *ret, struct err *err)
{
	struct target w = { 0 };

	if (find_url(&w, err) < 0 || find_key(&w, err) < 0) {
		target_fini(&w);
		return -1;
	}
	*ret = w;
	return 0;
}

int target_client(struct client **ret, struct err *err)
{
	struct target w = { 0 };
	int r;

	if (target_find(&w, err) < 0)
		return -1;
	r = client_new(w.url, w.key, ret, err);
	target_fini(&w);
	return r;
}

/* ---- sessions -------------------------------------------------------------------------------- */

int target_ref(const char *arg, char ret[WHERE_REF], struct err *err)
{
	bool whole = strncmp(arg, "ses_", 4) == 0 || strncmp(arg, "key:", 4) == 0;

	if (!*arg || strcmp(arg, "key:") == 0)
		err_set(err, ERR_INVALID, "a session has an id, ses_..., or a key: give one");
	else if (snprintf(ret, WHERE_REF, "%s%s", whole ? "" : "key:", arg) >= WHERE_REF)
		err_set(err, ERR_INVALID, "the key of a session has at most 255 bytes");
	else
		return 0;
	err->sys = WHERE_NO_REF;
	return -1;
}
