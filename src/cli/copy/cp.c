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

DEFINE_AUTO(struct client_stream *, client_close);

static void cp_base(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	snprintf(ret, size, "%s", strcmp(base, ".") == 0 || strcmp(base, "..") == 0 ? "" : base);
}

static int cp_stat(struct api_cmd *a, const struct cp_target *p, const char *path, json_t **ret,
		   struct err *err)
{
	auto_json json_t *answer = NULL;

	*ret = NULL;
	if (api_cmd_call(a, "POST", NULL, &answer, err, "/v1/sessions/%s/files/%S?stat&follow=1",
			 p->ref, path) < 0)
		return err->code == ERR_NOT_FOUND && err->sys != ESTALE ? 0 : -1;
	*ret = json_incref(json_object_get(answer, "entry"));
	return 0;
}

static int64_t length_of(const struct client_stream *s)
{
	const char *text = client_header(s, "Content-Length");

	return text ? strtoll(text, NULL, 10) : -1;
}

int cp_drain(struct client_stream *s, int fd, const char *what, bool quiet, uint64_t *bytes,
	     struct err *err)
{
	auto_free char *buf = malloc(PIECE);
	struct progress p;
	uint64_t sum = 0;
	ssize_t n;
	int r = 0;

	if (!buf)
		return err_sys(err, ENOMEM, "%.160s", what);
	progress_bar_begin(&p, what, length_of(s), quiet);
	while (r == 0 && (n = client_read(s, buf, PIECE, err)) != 0) {
		r = n < 0 ? -1 : file_write_all(fd, buf, (size_t)n);
		if (n > 0 && r < 0)
			r = err_sys(err, -r, "writing %.160s", what);
		sum += n > 0 ? (uint64_t)n : 0;
		progress_bar_at(&p, sum);
	}
	progress_bar_end(&p);
	*bytes += sum;
	return r;
}

/* ---- into a session -------------------------------------------------------------------------- */

static bool is_dir_name(const char *path)
{
	size_t n = strlen(path);

	return n && path[n - 1] == '/';
}

/* The path to write to: below the target if that is a directory. */
static int resolve_remote(struct api_cmd *a, const struct cp_target *from,
			  const struct cp_target *to, bool many, char path[API_PATH],
			  json_t **there, struct err *err)
{
	size_t n = strlen(to->path);
	bool slash = is_dir_name(to->path);
	char base[NAME_MAX + 1];

	cp_base(from->path, base, sizeof(base));
	if (cp_stat(a, to, to->path, there, err) < 0)
		return -1;
	if (!*there && !n) /* the working directory always exists, so the session does not */
		return -1;
	if (many && !member_is(*there, "type", "directory") && !slash)
		return err_set(err, ERR_INVALID,
			       "%.160s: must be a directory to copy several files", to->given);
	if (from->stream || !*base || !(slash || member_is(*there, "type", "directory"))) {
		snprintf(path, API_PATH, "%s", to->path);
		return 0;
	}
	n = (size_t)snprintf(path, API_PATH, "%s%s%s", to->path, !n || slash ? "" : "/", base);
	if (n >= API_PATH)
		return err_set(err, ERR_INVALID, "path is too long");
	json_decref(*there);
	return cp_stat(a, to, path, there, err);
}

struct sending {
	struct progress progress;
	struct tar_child *tar; /* NULL: it is a file */
};

static void show_progress(void *arg, uint64_t bytes)
{
	progress_bar_at(&((struct sending *)arg)->progress, bytes);
}

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

static int send(struct api_cmd *a, const struct client_request *rq, const struct cp_target *from,
		int64_t total, struct tar_child *tar, uint64_t *bytes, struct err *err)
{
	auto_call(client_close) struct client_stream *stream = NULL;
	struct client_request with = *rq;
	struct sending s = { .tar = tar };
	int r;

	progress_bar_begin(&s.progress, from->given, total, a->quiet);
	with.sent = show_progress;
	with.whole = finish_source;
	with.arg = &s;
	r = client_open(a->client, &with, &stream, err);
	progress_bar_end(&s.progress);
	*bytes += s.progress.bytes;
	return r;
}

static int up_file(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
		   const char *path, int fd, uint64_t *bytes, struct err *err)
{
	bool parents = is_dir_name(to->path);
	char url[API_PATH * 3], mode[16];
	struct client_request rq = {
		.method = "PUT", .path = url, .body_fd = fd, .has_body_fd = true
	};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "%.160s", from->given);
	if (client_path(url, sizeof(url), err, "/v1/sessions/%s/files/%S", to->ref, path) < 0)
		return -1;
	snprintf(mode, sizeof(mode), "%o", (unsigned)st.st_mode & 0777);
	if (S_ISREG(st.st_mode) && st.st_mode & 0777 &&
	    api_cmd_query(url, sizeof(url), "mode", mode, err) < 0)
		return -1;
	if (api_cmd_query(url, sizeof(url), "mkdir", parents ? "1" : NULL, err) < 0)
		return -1;
	return send(a, &rq, from, S_ISREG(st.st_mode) ? st.st_size : -1, NULL, bytes, err);
}

/* The service ignores the entry of the directory itself in the archive. */
static int make_dir(struct api_cmd *a, const struct cp_target *to, const char *path,
		    const struct stat *st, struct err *err)
{
	char mode[16];

	snprintf(mode, sizeof(mode), "%o", (unsigned)st->st_mode & 0777);
	return api_cmd_call(a, "POST", NULL, NULL, err, "/v1/sessions/%s/files/%S?mkdir&mode=%s",
			    to->ref, path, mode);
}

/* tar NULL: from standard input. */
static int up_tar(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
		  const char *path, struct tar_child *tar, uint64_t *bytes, struct err *err)
{
	char url[API_PATH * 3];
	struct client_request rq = { .method = "PUT",
				     .path = url,
				     .type = "application/x-tar",
				     .body_fd = tar ? tar->fd : STDIN_FILENO,
				     .has_body_fd = true };

	if (client_path(url, sizeof(url), err, "/v1/sessions/%s/archive?path=%s", to->ref, path) <
	    0)
		return -1;
	return send(a, &rq, from, -1, tar, bytes, err);
}

static int up_dir(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
		  const char *path, const json_t *there, const struct stat *st, uint64_t *bytes,
		  struct err *err)
{
	auto_fini(tar_abort) struct tar_child t = { .fd = -1, .target = -1, .stage = -1 };

	if (there && !member_is(there, "type", "directory"))
		return err_set(err, ERR_CONFLICT, "%.160s: exists and is not a directory",
			       to->given);
	if ((!there && make_dir(a, to, path, st, err) < 0) || tar_pack(&t, from->path, err) < 0)
		return -1;
	return up_tar(a, from, to, path, &t, bytes, err) < 0 ? -1 : tar_finish(&t, err);
}

int cp_upload(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
	      bool many, uint64_t *bytes, struct err *err)
{
	auto_json json_t *there = NULL;
	auto_close int fd = -1;
	char path[API_PATH];
	struct stat st;

	if (resolve_remote(a, from, to, many, path, &there, err) < 0)
		return -1;
	if (from->stream && (member_is(there, "type", "directory") || is_dir_name(to->path)))
		return up_tar(a, from, to, path, NULL, bytes, err);
	if (from->stream)
		return up_file(a, from, to, path, STDIN_FILENO, bytes, err);
	fd = open(from->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "%.160s", from->given);
	if (S_ISDIR(st.st_mode))
		return up_dir(a, from, to, path, there, &st, bytes, err);
	return up_file(a, from, to, path, fd, bytes, err);
}

/* ---- out of a session ------------------------------------------------------------------------ */

struct down {
	struct api_cmd *a;
	const struct cp_target *from, *to;
	const json_t *entry; /* the record of the source */
	char path[PATH_MAX]; /* to write to */
	bool below; /* the guest chose the last part of the path: do not follow a link there */
	uint64_t *bytes;
};

static int resolve_local(struct down *d, bool many, struct err *err)
{
	char base[NAME_MAX + 1];
	struct stat st;
	bool dir = stat(d->to->path, &st) == 0 && S_ISDIR(st.st_mode);
	int n;

	cp_base(d->from->path, base, sizeof(base));
	if (many && !dir)
		return err_set(err, ERR_INVALID,
			       "%.160s: must be a directory to copy several files", d->to->given);
	d->below = dir && *base;
	n = snprintf(d->path, sizeof(d->path), "%s%s%s", d->to->path, d->below ? "/" : "",
		     d->below ? base : "");
	return n < PATH_MAX ? 0 : err_set(err, ERR_INVALID, "path is too long");
}

static int open_remote(struct down *d, const char *fmt, struct client_stream **ret, struct err *err)
{
	char url[API_PATH * 3];
	struct client_request rq = { .method = "GET", .path = url };

	if (client_path(url, sizeof(url), err, fmt, d->from->ref, d->from->path) < 0)
		return -1;
	return client_open(d->a->client, &rq, ret, err);
}

static int drain(struct down *d, struct client_stream *s, int fd, struct err *err)
{
	bool quiet = d->a->quiet || (d->to->stream && isatty(STDOUT_FILENO));

	return cp_drain(s, fd, d->from->given, quiet, d->bytes, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

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
static int replace(struct down *d, struct client_stream *s, struct err *err)
{
	char temp[PATH_MAX + 16];
	auto_close int fd = -1;

	snprintf(temp, sizeof(temp), "%s.lodge-XXXXXX", d->path);
	if (cleanup_set(drop, temp, err) < 0)
		return -1;
	cleanup_hold();
	fd = mkostemp(temp, O_CLOEXEC);
	cleanup_release();
	if (fd >= 0 && drain(d, s, fd, err) < 0) {
		cleanup_run();
		return -1;
	}
	if (fd < 0 || fchmod(fd, mode_of(d->entry)) < 0 || rename(temp, d->path) < 0) {
		err_sys(err, errno, "%.160s", d->path);
		cleanup_run();
		return -1;
	}
	cleanup_clear();
	return 0;
}

/* Replaces a file, but writes to a device or pipe. */
static int down_file(struct down *d, struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;
	auto_close int fd = -1;
	struct stat st;

	if (open_remote(d, "/v1/sessions/%s/files/%S", &s, err) < 0)
		return -1;
	if (d->to->stream)
		return drain(d, s, STDOUT_FILENO, err);
	if (d->below || stat(d->path, &st) < 0 || S_ISREG(st.st_mode))
		return replace(d, s, err);
	fd = open(d->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, errno, "%.160s", d->path);
	return drain(d, s, fd, err);
}

/* ---- directories ----------------------------------------------------------------------------- */

/* A new directory is private until it is complete. */
static int open_target(const struct down *d, bool *ret_new, struct err *err)
{
	int fd;

	*ret_new = mkdir(d->path, 0700) == 0;
	if (!*ret_new && errno != EEXIST)
		return err_sys(err, errno, "%.160s", d->path);
	fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (d->below ? O_NOFOLLOW : 0));
	if (fd < 0 && d->below && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_CONFLICT,
			       "%.160s: not a directory (symbolic links are not followed)",
			       d->path);
	return fd < 0 ? err_sys(err, errno, "%.160s", d->path) : fd;
}

static int down_dir(struct down *d, struct err *err)
{
	struct tar_child t = { .fd = -1, .target = -1, .stage = -1 };
	auto_call(client_close) struct client_stream *s = NULL;
	auto_close int target = -1;
	bool is_new;
	int r;

	if (open_remote(d, "/v1/sessions/%s/archive?path=%s", &s, err) < 0)
		return -1;
	if (d->to->stream)
		return drain(d, s, STDOUT_FILENO, err);
	target = open_target(d, &is_new, err);
	if (target < 0)
		return -1;
	r = tar_unpack(&t, target, err);
	if (r == 0)
		r = drain(d, s, t.fd, err);
	/* if tar stopped reading, its status says why */
	if (r == 0 || err->sys == EPIPE)
		r = tar_finish(&t, err);
	cleanup_run();
	if (r < 0 && is_new)
		(void)rmdir(d->path);
	if (r == 0 && is_new && fchmod(target, mode_of(d->entry) | 0700) < 0)
		return err_sys(err, errno, "%.160s", d->path);
	return r;
}

int cp_download(struct api_cmd *a, const struct cp_target *from, const struct cp_target *to,
		bool many, uint64_t *bytes, struct err *err)
{
	struct down d = { .a = a, .from = from, .to = to, .bytes = bytes };
	auto_json json_t *entry = NULL;

	if (cp_stat(a, from, from->path, &entry, err) < 0)
		return -1;
	if (!entry)
		return -1; /* cp_stat() set err */
	d.entry = entry;
	if (!to->stream && resolve_local(&d, many, err) < 0)
		return -1;
	if (member_is(entry, "type", "directory"))
		return down_dir(&d, err);
	if (member_is(entry, "type", "file"))
		return down_file(&d, err);
	return err_set(err, ERR_INVALID,
		       "%.160s: is a %s; only files and directories can be copied", from->given,
		       member_text(entry, "type"));
}
