/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/files_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_io.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"

struct file_request {
	enum agent_type type;
	unsigned flags;
	mode_t mode;
	const char *user, *path, *path2;
};

static int call_file(struct sandbox *sb, const struct file_request *q, enum agent_type expected,
		     struct agent_reply *ret, struct err *err)
{
	struct agent_file m = { .flags = q->flags, .mode = q->mode & 07777 };
	const char *user = q->user ? q->user : "";
	struct agent_part parts[] = {
		{ &m, sizeof(m) },
		{ user, strlen(user) + 1 },
		{ q->path, strlen(q->path) + 1 },
		{ q->path2, q->path2 ? strlen(q->path2) + 1 : 0 },
	};

	if (!q->path[0] || strlen(q->path) >= AGENT_PATH_MAX ||
	    (q->path2 && (!q->path2[0] || strlen(q->path2) >= AGENT_PATH_MAX)))
		return err_set(err, ERR_INVALID, "path must be 1 to %d bytes long",
			       AGENT_PATH_MAX - 1);
	return agent_call(sandbox_agent(sb), q->type, parts, q->path2 ? 4 : 3, NULL, 0, expected,
			  ret, err);
}

int files_open(struct sandbox *sb, const char *user, const char *path, unsigned flags, mode_t mode,
	       int *ret_fd, struct err *err)
{
	struct file_request q = { AGENT_OPEN, flags, mode, user, path };
	struct agent_reply ans;

	if (call_file(sb, &q, AGENT_FD, &ans, err) < 0)
		return -1;
	*ret_fd = steal_fd(&ans.fd);
	agent_reply_fini(&ans);
	return 0;
}

/* st_size is only a hint: the guest may be writing to the file. */
static int read_whole(int fd, const char *path, size_t max, void **ret, size_t *ret_len,
		      struct err *err)
{
	struct stat st;
	auto_free char *buf = NULL;
	size_t cap = 4096, len = 0;
	ssize_t n;

	if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size < max)
		cap = (size_t)st.st_size + 1;
	for (;;) {
		if (!buf || len == cap) {
			char *p = realloc(buf, buf ? cap *= 2 : cap);

			if (!p)
				return err_sys(err, ENOMEM, "%s", path);
			buf = p;
		}
		n = read(fd, buf + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "%s", path);
		if (!n)
			break;
		len += (size_t)n;
		if (len > max)
			return err_set(err, ERR_LIMIT, "%s: larger than %zu bytes", path, max);
	}
	buf[len] = '\0'; /* fits: a full buffer grows before the next read */
	*ret_len = len;
	*ret = steal_ptr(&buf);
	return 0;
}

int files_read(struct sandbox *sb, const char *user, const char *path, size_t max, void **ret,
	       size_t *ret_len, struct err *err)
{
	auto_close int fd = -1;

	if (files_open(sb, user, path, AGENT_READ, 0, &fd, err) < 0)
		return -1;
	return read_whole(fd, path, max, ret, ret_len, err);
}

static int write_all(int fd, const char *path, const void *data, size_t len, struct err *err)
{
	int r = file_write_all(fd, data, len);

	return r < 0 ? err_sys(err, -r, "%s", path) : 0;
}

int files_append(struct sandbox *sb, const char *user, const char *path, const void *data,
		 size_t len, mode_t mode, struct err *err)
{
	auto_close int fd = -1;

	if (files_open(sb, user, path, AGENT_WRITE | AGENT_APPEND | AGENT_CREATE, mode, &fd, err) <
	    0)
		return -1;
	return write_all(fd, path, data, len, err);
}

/* ---- atomic writes --------------------------------------------------------------------------- */

struct files_put {
	struct agent *agent; /* borrowed */
	struct agent_token token;
	int fd;
	bool done;
};

int files_put_new(struct sandbox *sb, const char *user, const char *path, unsigned flags,
		  mode_t mode, struct files_put **ret, struct err *err)
{
	struct file_request q = { AGENT_TEMP, flags & (AGENT_PARENTS | AGENT_NOREPLACE), mode, user,
				  path };
	auto_free struct files_put *p = calloc(1, sizeof(*p));
	struct agent_reply ans;

	if (!p)
		return err_sys(err, ENOMEM, "%s", path);
	if (call_file(sb, &q, AGENT_FD, &ans, err) < 0)
		return -1;
	p->agent = sandbox_agent(sb);
	memcpy(&p->token, (const char *)ans.msg + sizeof(struct agent_hdr), sizeof(p->token));
	p->fd = steal_fd(&ans.fd);
	agent_reply_fini(&ans);
	*ret = steal_ptr(&p);
	return 0;
}

int files_put_fd(const struct files_put *p)
{
	return p->fd;
}

static int end_put(struct files_put *p, enum agent_type type, struct err *err)
{
	struct agent_part part = { &p->token, sizeof(p->token) };

	p->done = true;
	return agent_call(p->agent, type, &part, 1, NULL, 0, AGENT_OK, NULL, err);
}

/* Close first: executing a file that is open for writing fails with ETXTBSY. */
int files_put_commit(struct files_put *p, struct err *err)
{
	close_fd(&p->fd);
	return end_put(p, AGENT_COMMIT, err);
}

void files_put_free(struct files_put *p)
{
	struct err ignored;

	if (!p)
		return;
	if (!p->done)
		end_put(p, AGENT_ABORT, &ignored);
	close_autop(&p->fd);
	free(p);
}

int files_write(struct sandbox *sb, const char *user, const char *path, const void *data,
		size_t len, unsigned flags, mode_t mode, struct err *err)
{
	auto_call(files_put_free) struct files_put *p = NULL;

	if (files_put_new(sb, user, path, flags, mode, &p, err) < 0 ||
	    write_all(p->fd, path, data, len, err) < 0)
		return -1;
	return files_put_commit(p, err);
}

/* ---- names ----------------------------------------------------------------------------------- */

int files_stat(struct sandbox *sb, const char *user, const char *path, bool follow,
	       struct files_stat *ret, struct err *err)
{
	struct file_request q = { AGENT_STAT, follow ? 0 : AGENT_NOFOLLOW, 0, user, path };
	auto_fini(agent_reply_fini) struct agent_reply ans = { .fd = -1 };
	struct files_stat out = { 0 };
	const char *body;

	if (call_file(sb, &q, AGENT_STATR, &ans, err) < 0)
		return -1;
	body = (const char *)ans.msg + sizeof(struct agent_hdr);
	memcpy(&out.st, body, sizeof(out.st)); /* target_len was checked against the message */
	if (S_ISLNK(out.st.mode)) {
		out.target = calloc(1, (size_t)out.st.target_len + 1);
		if (!out.target)
			return err_sys(err, ENOMEM, "%s", path);
		memcpy(out.target, body + sizeof(out.st), out.st.target_len);
	}
	*ret = out;
	return 0;
}

int files_mkdir(struct sandbox *sb, const char *user, const char *path, bool parents, mode_t mode,
		struct err *err)
{
	struct file_request q = { AGENT_MKDIR, parents ? AGENT_PARENTS : 0, mode, user, path };

	return call_file(sb, &q, AGENT_OK, NULL, err);
}

int files_rename(struct sandbox *sb, const char *user, const char *from, const char *to,
		 bool replace, struct err *err)
{
	struct file_request q = { AGENT_RENAME, replace ? 0 : AGENT_NOREPLACE, 0, user, from, to };

	return call_file(sb, &q, AGENT_OK, NULL, err);
}

int files_remove(struct sandbox *sb, const char *user, const char *path, struct err *err)
{
	struct file_request q = { AGENT_REMOVE, 0, 0, user, path };

	return call_file(sb, &q, AGENT_OK, NULL, err);
}

int files_symlink(struct sandbox *sb, const char *user, const char *target, const char *path,
		  struct err *err)
{
	struct file_request q = { AGENT_SYMLINK, 0, 0, user, target, path };

	return call_file(sb, &q, AGENT_OK, NULL, err);
}

int files_chmod(struct sandbox *sb, const char *user, const char *path, mode_t mode,
		struct err *err)
{
	struct file_request q = { AGENT_CHMOD, 0, mode, user, path };

	return call_file(sb, &q, AGENT_OK, NULL, err);
}

bool files_is_unfinished(const char *path)
{
	static const char prefix[] = ".lodge-";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *digits = name + sizeof(prefix) - 1;

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0 && strlen(digits) == 16 &&
	       strspn(digits, "0123456789abcdef") == 16;
}
