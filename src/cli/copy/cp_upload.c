/* SPDX-License-Identifier: Apache-2.0 */
/* lodge cp into a session. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/copy/cp.h"
#include "cli/core/progress_bar.h"
#include "cli/copy/tar_child.h"

DEFINE_AUTO(struct client_stream *, client_close);
static bool is_dir_name(const char *path)
{
	size_t n = strlen(path);

	return n && path[n - 1] == '/';
}

/* The path to write to: below the target if that is a directory. */
static int resolve_target(struct api_cmd *a, const struct cp_target *from,
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

	if (resolve_target(a, from, to, many, path, &there, err) < 0)
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
