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
	const struct cp_parse_target *from, *to;
	const json_t *entry; /* what is copied */
	char path[PATH_MAX]; /* where to */
	bool below; /* the last part of it is the guest's name: no link of it is followed */
	uint64_t *bytes;
};

static int aim(struct down *d, bool many, struct err *err)
{
	char base[NAME_MAX + 1];
	struct stat st;
	bool dir = stat(d->to->path, &st) == 0 && S_ISDIR(st.st_mode);
	int n;

	cp_base(d->from->path, base, sizeof(base));
	if (many && !dir)
		return err_set(err, ERR_INVALID, "%.160s: several files need a directory",
			       d->to->given);
	d->below = dir && *base;
	n = snprintf(d->path, sizeof(d->path), "%s%s%s", d->to->path, d->below ? "/" : "",
		     d->below ? base : "");
	return n < PATH_MAX ? 0 : err_set(err, ERR_INVALID, "a name is too long");
}

static int open_remote(struct down *d, const char *fmt, struct client_stream **ret, struct err *err)
{
	char url[ASK_PATH * 3];
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

/* As the guest has it, but for what the caller lets nobody do. */
static mode_t mode_of(const json_t *entry)
{
	mode_t mask = umask(0);

	umask(mask);
	return (mode_t)strtoul(api_cmd_text(entry, "mode"), NULL, 8) & 0777 & ~mask;
}

static void drop(void *path)
{
	unlink(path);
}

/* Beside its place first: what is there stays until all of the new one has come. */
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

/* A device or a pipe is written to; a file is replaced. */
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

/* A new one is ours alone until all of it has come. */
static int open_target(const struct down *d, bool *ret_new, struct err *err)
{
	int fd;

	*ret_new = mkdir(d->path, 0700) == 0;
	if (!*ret_new && errno != EEXIST)
		return err_sys(err, errno, "%.160s", d->path);
	fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (d->below ? O_NOFOLLOW : 0));
	if (fd < 0 && d->below && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_CONFLICT,
			       "%.160s: here it is no directory, or a symbolic link, which is not "
			       "followed",
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
	/* who stopped reading says why, or had all there was */
	if (r == 0 || err->sys == EPIPE)
		r = tar_finish(&t, err);
	cleanup_run();
	if (r < 0 && is_new)
		(void)rmdir(d->path);
	if (r == 0 && is_new && fchmod(target, mode_of(d->entry) | 0700) < 0)
		return err_sys(err, errno, "%.160s", d->path);
	return r;
}

int cp_download(struct api_cmd *a, const struct cp_parse_target *from,
		const struct cp_parse_target *to, bool many, uint64_t *bytes, struct err *err)
{
	struct down d = { .a = a, .from = from, .to = to, .bytes = bytes };
	auto_json json_t *entry = NULL;

	if (cp_stat(a, from, from->path, &entry, err) < 0)
		return -1;
	if (!entry)
		return -1; /* err has the service's sentence */
	d.entry = entry;
	if (!to->stream && aim(&d, many, err) < 0)
		return -1;
	if (api_cmd_is(entry, "type", "directory"))
		return down_dir(&d, err);
	if (api_cmd_is(entry, "type", "file"))
		return down_file(&d, err);
	return err_set(err, ERR_INVALID, "%.160s: a %s, neither file nor directory", from->given,
		       api_cmd_text(entry, "type"));
}
