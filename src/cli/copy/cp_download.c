/* SPDX-License-Identifier: Apache-2.0 */
/* lodge cp out of a session. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/copy/cp.h"
#include "cli/copy/tar_child.h"
#include "cli/core/cleanup.h"

DEFINE_AUTO(struct client_stream *, client_close);

struct down {
	struct api_cmd *a;
	const struct cp_target *from, *to;
	const json_t *entry; /* the record of the source */
	char path[PATH_MAX]; /* to write to */
	bool below; /* the guest chose the last part of the path: do not follow a link there */
	uint64_t *bytes;
};

static int resolve_target(struct down *d, bool many, struct err *err)
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
	if (!to->stream && resolve_target(&d, many, err) < 0)
		return -1;
	if (member_is(entry, "type", "directory"))
		return down_dir(&d, err);
	if (member_is(entry, "type", "file"))
		return down_file(&d, err);
	return err_set(err, ERR_INVALID,
		       "%.160s: is a %s; only files and directories can be copied", from->given,
		       member_text(entry, "type"));
}
