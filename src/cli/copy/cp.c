/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "cli/copy/tar_child.h"
#include "cli/core/cleanup.h"
#include "cli/core/progress_bar.h"

enum { PIECE = 256 << 10 };

/* The last part of a path; "" if it ends in "/", "." or "..": then its contents are copied. */
static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	return strcmp(base, ".") == 0 || strcmp(base, "..") == 0 ? "" : base;
}

/* Looks up a path in the session and follows links; c->entry is NULL if it does not exist. */
static int stat_remote(struct cp *c, const struct cp_target *t, const char *path, struct err *err)
{
	auto_json json_t *answer = NULL;

	json_decref(c->entry);
	c->entry = NULL;
	if (api_cmd_call(c->a, "POST", NULL, &answer, err, "/v1/sessions/%s/files/%S?stat&follow=1",
			 t->ref, path) < 0)
		return err->code == ERR_NOT_FOUND && err->sys != ESTALE ? 0 : -1;
	c->entry = json_incref(json_object_get(answer, "entry"));
	return 0;
}

static bool is_dir(const struct cp *c)
{
	return member_is(c->entry, "type", "directory");
}

int64_t cp_drain(struct client_stream *s, int fd, const char *what, bool quiet, struct err *err)
{
	auto_free char *buf = malloc(PIECE);
	const char *length = client_header(s, "Content-Length");
	struct progress p;
	int64_t sum = 0;
	ssize_t n;
	int r;

	if (!buf)
		return err_sys(err, ENOMEM, "%.160s", what);
	progress_bar_begin(&p, what, length ? strtoll(length, NULL, 10) : -1, quiet);
	while ((n = client_read(s, buf, PIECE, err)) > 0) {
		r = file_write_all(fd, buf, (size_t)n);
		if (r < 0) {
			n = err_sys(err, -r, "writing %.160s", what);
			break;
		}
		sum += n;
		progress_bar_at(&p, (uint64_t)sum);
	}
	progress_bar_end(&p);
	return n < 0 ? -1 : sum;
}

/* ---- into a session -------------------------------------------------------------------------- */

static bool is_dir_name(const char *path)
{
	size_t n = strlen(path);

	return n && path[n - 1] == '/';
}

/* The path to write to: below the target if that is a directory. */
static int resolve_remote(struct cp *c, struct err *err)
{
	const char *to = c->to.path, *base = base_of(c->from.path);
	bool slash = is_dir_name(to), below;

	if (stat_remote(c, &c->to, to, err) < 0)
		return -1;
	if (!c->entry && !*to) /* the working directory always exists, so the session does not */
		return -1;
	if (c->many && !is_dir(c) && !slash)
		return err_set(err, ERR_INVALID,
			       "%.160s: must be a directory to copy several files", c->to.given);
	below = !c->from.stream && *base && (slash || is_dir(c));
	if (snprintf(c->path, sizeof(c->path), "%s%s%s", to, below && *to && !slash ? "/" : "",
		     below ? base : "") >= API_PATH)
		return err_set(err, ERR_INVALID, "path is too long");
	return below ? stat_remote(c, &c->to, c->path, err) : 0;
}

struct sending {
	struct progress progress; /* first, for progress_bar_at() */
	struct tar_child *tar; /* NULL: it is a file */
};

/* Fails if tar could not read everything. The service unpacks while it receives, so other files may
 * already be there. */
static int finish_source(void *arg, struct err *err)
{
	struct sending *s = arg;

	progress_bar_end(&s->progress);
	if (!s->tar || tar_finish(s->tar, err) == 0)
		return 0;
	if (err->code == ERR_NOT_FOUND)
		return -1;
	return err_set(err, ERR_INVALID,
		       "tar failed (see above); these files were not copied, and others may be "
		       "missing too");
}

/* tar NULL: fd is not that of an archive that is being made. */
static int send(struct cp *c, const char *url, const char *type, int fd, int64_t total,
		struct tar_child *tar, struct err *err)
{
	auto_call(client_close) struct client_stream *stream = NULL;
	struct sending s = { .tar = tar };
	struct client_request rq = { .method = "PUT",
				     .path = url,
				     .type = type,
				     .body_fd = fd,
				     .has_body_fd = true,
				     .sent = progress_bar_at,
				     .whole = finish_source,
				     .arg = &s };
	int r;

	progress_bar_begin(&s.progress, c->from.given, total, c->a->quiet);
	r = client_open(c->a->client, &rq, &stream, err);
	progress_bar_end(&s.progress);
	c->bytes += s.progress.bytes;
	return r;
}

static int up_file(struct cp *c, int fd, struct err *err)
{
	bool parents = is_dir_name(c->to.path), file;
	char url[API_PATH * 3], mode[16];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "%.160s", c->from.given);
	file = S_ISREG(st.st_mode);
	snprintf(mode, sizeof(mode), "%o", (unsigned)st.st_mode & 0777);
	if (client_path(url, sizeof(url), err, "/v1/sessions/%s/files/%S", c->to.ref, c->path) <
		    0 ||
	    api_cmd_query(url, sizeof(url), "mode", file && st.st_mode & 0777 ? mode : NULL, err) <
		    0 ||
	    api_cmd_query(url, sizeof(url), "mkdir", parents ? "1" : NULL, err) < 0)
		return -1;
	return send(c, url, NULL, fd, file ? st.st_size : -1, NULL, err);
}

/* tar NULL: from standard input. */
static int up_tar(struct cp *c, struct tar_child *tar, struct err *err)
{
	char url[API_PATH * 3];

	if (client_path(url, sizeof(url), err, "/v1/sessions/%s/archive?path=%s", c->to.ref,
			c->path) < 0)
		return -1;
	return send(c, url, "application/x-tar", tar ? tar->fd : STDIN_FILENO, -1, tar, err);
}

static int up_dir(struct cp *c, const struct stat *st, struct err *err)
{
	auto_fini(tar_abort) struct tar_child t = { .fd = -1, .target = -1, .stage = -1 };
	char mode[16];

	if (c->entry && !is_dir(c))
		return err_set(err, ERR_CONFLICT, "%.160s: exists and is not a directory",
			       c->to.given);
	/* the service ignores the entry of the directory itself in the archive */
	snprintf(mode, sizeof(mode), "%o", (unsigned)st->st_mode & 0777);
	if (!c->entry &&
	    api_cmd_call(c->a, "POST", NULL, NULL, err, "/v1/sessions/%s/files/%S?mkdir&mode=%s",
			 c->to.ref, c->path, mode) < 0)
		return -1;
	if (tar_pack(&t, c->from.path, err) < 0)
		return -1;
	return up_tar(c, &t, err) < 0 ? -1 : tar_finish(&t, err);
}

static int upload(struct cp *c, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (resolve_remote(c, err) < 0)
		return -1;
	if (c->from.stream)
		return is_dir(c) || is_dir_name(c->to.path) ? up_tar(c, NULL, err)
							    : up_file(c, STDIN_FILENO, err);
	fd = open(c->from.path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "%.160s", c->from.given);
	return S_ISDIR(st.st_mode) ? up_dir(c, &st, err) : up_file(c, fd, err);
}

/* ---- out of a session ------------------------------------------------------------------------ */

static int resolve_local(struct cp *c, struct err *err)
{
	const char *base = base_of(c->from.path);
	struct stat st;
	bool dir = stat(c->to.path, &st) == 0 && S_ISDIR(st.st_mode);

	if (c->many && !dir)
		return err_set(err, ERR_INVALID,
			       "%.160s: must be a directory to copy several files", c->to.given);
	c->below = dir && *base;
	if (snprintf(c->path, PATH_MAX, "%s%s%s", c->to.path, c->below ? "/" : "",
		     c->below ? base : "") >= PATH_MAX)
		return err_set(err, ERR_INVALID, "path is too long");
	return 0;
}

static int open_remote(const struct cp *c, const char *fmt, struct client_stream **ret,
		       struct err *err)
{
	char url[API_PATH * 3];
	struct client_request rq = { .method = "GET", .path = url };

	if (client_path(url, sizeof(url), err, fmt, c->from.ref, c->from.path) < 0)
		return -1;
	return client_open(c->a->client, &rq, ret, err);
}

static int drain(struct cp *c, struct client_stream *s, int fd, struct err *err)
{
	bool quiet = c->a->quiet || (c->to.stream && isatty(STDOUT_FILENO));
	int64_t n = cp_drain(s, fd, c->from.given, quiet, err);

	c->bytes += n < 0 ? 0 : (uint64_t)n;
	return n < 0 ? -1 : 0;
}

/* The mode in the sandbox, limited by the umask. */
static mode_t mode_of(const json_t *entry)
{
	mode_t mask = umask(0);

	umask(mask);
	return (mode_t)strtoul(member_text(entry, "mode"), NULL, 8) & 0777 & ~mask;
}

static void drop(void *path)
{
	unlink(path);
}

/* Writes a temporary file first, so that the old one stays until the new one is complete. */
static int replace(struct cp *c, struct client_stream *s, struct err *err)
{
	char temp[sizeof(c->path) + 16];
	auto_close int fd = -1;

	snprintf(temp, sizeof(temp), "%s.lodge-XXXXXX", c->path);
	if (cleanup_set(drop, temp, err) < 0)
		return -1;
	cleanup_hold();
	fd = mkostemp(temp, O_CLOEXEC);
	cleanup_release();
	if (fd >= 0 && drain(c, s, fd, err) < 0) {
		cleanup_run();
		return -1;
	}
	if (fd < 0 || fchmod(fd, mode_of(c->entry)) < 0 || rename(temp, c->path) < 0) {
		err_sys(err, errno, "%.160s", c->path);
		cleanup_run();
		return -1;
	}
	cleanup_clear();
	return 0;
}

/* Replaces a file, but writes to a device or pipe. */
static int down_file(struct cp *c, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	auto_close int fd = -1;
	struct stat st;

	if (open_remote(c, "/v1/sessions/%s/files/%S", &s, err) < 0)
		return -1;
	if (c->to.stream)
		return drain(c, s, STDOUT_FILENO, err);
	if (c->below || stat(c->path, &st) < 0 || S_ISREG(st.st_mode))
		return replace(c, s, err);
	fd = open(c->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, errno, "%.160s", c->path);
	return drain(c, s, fd, err);
}

/* ---- directories ----------------------------------------------------------------------------- */

/* A new directory is private until it is complete. */
static int open_target(const struct cp *c, bool *ret_new, struct err *err)
{
	int fd;

	*ret_new = mkdir(c->path, 0700) == 0;
	if (!*ret_new && errno != EEXIST)
		return err_sys(err, errno, "%.160s", c->path);
	fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (c->below ? O_NOFOLLOW : 0));
	if (fd < 0 && c->below && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_CONFLICT,
			       "%.160s: not a directory (symbolic links are not followed)",
			       c->path);
	return fd < 0 ? err_sys(err, errno, "%.160s", c->path) : fd;
}

static int down_dir(struct cp *c, struct err *err)
{
	struct tar_child t = { .fd = -1, .target = -1, .stage = -1 };
	auto_call(client_close) struct client_stream *s = NULL;
	auto_close int target = -1;
	bool is_new;
	int r;

	if (open_remote(c, "/v1/sessions/%s/archive?path=%s", &s, err) < 0)
		return -1;
	if (c->to.stream)
		return drain(c, s, STDOUT_FILENO, err);
	target = open_target(c, &is_new, err);
	if (target < 0)
		return -1;
	r = tar_unpack(&t, target, err);
	if (r == 0)
		r = drain(c, s, t.fd, err);
	/* if tar stopped reading, its status says why */
	if (r == 0 || err->sys == EPIPE)
		r = tar_finish(&t, err);
	cleanup_run();
	if (r < 0 && is_new)
		(void)rmdir(c->path);
	if (r == 0 && is_new && fchmod(target, mode_of(c->entry) | 0700) < 0)
		return err_sys(err, errno, "%.160s", c->path);
	return r;
}

static int download(struct cp *c, struct err *err)
{
	if (stat_remote(c, &c->from, c->from.path, err) < 0 || !c->entry) /* err says why */
		return -1;
	if (!c->to.stream && resolve_local(c, err) < 0)
		return -1;
	if (is_dir(c))
		return down_dir(c, err);
	if (member_is(c->entry, "type", "file"))
		return down_file(c, err);
	return err_set(err, ERR_INVALID,
		       "%.160s: is a %s; only files and directories can be copied", c->from.given,
		       member_text(c->entry, "type"));
}

int cp_copy(struct cp *c, struct err *err)
{
	int r = c->from.remote ? download(c, err) : upload(c, err);

	json_decref(c->entry);
	c->entry = NULL;
	return r;
}
