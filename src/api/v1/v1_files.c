/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/{id}/files: content and names of files. */
#include "api/v1/v1_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/core/glob.h"
#include "api/v1/v1_dirs.h"
#include "api/v1/v1_exec.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "exec/side_conn.h"
#include "sandbox/files_stream.h"

enum { PIECE = 64 << 10, ETAG_SIZE = 64 };

/* ---- paths ----------------------------------------------------------------------------------- */

static void release_path(void *conn)
{
	side_conn_close(conn);
}

/* Another path of the same session. */
static int v1_resolve(const struct v1_open_path *a, const char *given, char ret[AGENT_PATH_MAX],
		      struct err *err)
{
	const char *dir = a->spec->workdir;
	int n;

	if (!*given)
		n = snprintf(ret, AGENT_PATH_MAX, "%s", dir ? dir : ".");
	else if (*given == '/' || !dir)
		n = snprintf(ret, AGENT_PATH_MAX, "%s", given);
	else
		n = snprintf(ret, AGENT_PATH_MAX, "%s/%s", dir, given);
	return n >= 0 && n < AGENT_PATH_MAX
		       ? 0
		       : err_set(err, ERR_INVALID, "path: longer than %d bytes",
				 AGENT_PATH_MAX - 1);
}

int v1_open_path(struct api_call *c, const char *given, struct v1_open_path *ret, struct err *err)
{
	return v1_open_session_path(c, c->params[0], given, !v1_no_resume(c), ret, err);
}

int v1_open_session_path(struct api_call *c, const char *id, const char *given, bool resume,
			 struct v1_open_path *ret, struct err *err)
{
	struct side_conn *conn;
	enum session_outcome how;
	struct session_ref ref;

	if (api_ref(c, id, &ref, err) < 0 ||
	    side_conn_open(c->engine, &c->caller, &ref, resume, &conn, &how, err) < 0)
		return -1;
	if (how != SESSION_REUSED)
		http_set_header(c->rq, "Lodge-Outcome", api_outcome_name(how));
	*ret = (struct v1_open_path){ .conn = conn,
				      .sb = side_conn_sandbox(conn),
				      .spec = side_conn_template(conn),
				      .given = given };
	ret->user = ret->spec->user;
	if (!arena_keep(c->arena, conn, release_path))
		return err_sys(err, ENOMEM, "path");
	return v1_resolve(ret, given, ret->path, err);
}

const char *v1_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static const char *type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	}
	return "device";
}

void v1_put_entry(struct json_out *j, const char *key, const char *path,
		  const struct agent_stat *st, const char *target)
{
	const char *name = v1_base_name(path);

	json_out_object(j, key);
	json_out_str(j, "name", *name ? name : path);
	api_put_path(j, path);
	json_out_str(j, "type", type_name(st->mode));
	json_out_u64(j, "size", st->size);
	api_put_mode(j, "mode", st->mode);
	json_out_u64(j, "uid", st->uid);
	json_out_u64(j, "gid", st->gid);
	json_out_i64(j, "mtime_ms", st->mtime_ns / 1000000);
	if (target)
		json_out_str(j, "target", target);
	json_out_end(j);
}

/* Uses ctime, because a guest can set mtime. */
static void make_etag(char ret[ETAG_SIZE], uint64_t ino, uint64_t size, int64_t ctime_ns)
{
	snprintf(ret, ETAG_SIZE, "\"%llx-%llx-%llx\"", (unsigned long long)ino,
		 (unsigned long long)size, (unsigned long long)ctime_ns);
}

static int reply_entry(struct api_call *c, unsigned status, const struct v1_open_path *a,
		       const char *given, const char *path, bool follow, struct err *err)
{
	struct files_stat st;
	char etag[ETAG_SIZE];
	struct json_out j;

	if (files_stat(a->sb, a->user, path, follow, &st, err) < 0)
		return -1;
	make_etag(etag, st.st.ino, st.st.size, st.st.ctime_ns);
	http_set_header(c->rq, "ETag", etag);
	api_object(&j);
	v1_put_entry(&j, "entry", given, &st.st, st.target);
	json_out_end(&j);
	free(st.target);
	return api_reply(c, status, &j, err);
}

/* After a change. It was made, whatever a process of the sandbox has done to the file since. */
static int reply_changed(struct api_call *c, unsigned status, const struct v1_open_path *a,
			 const char *given, const char *path, bool follow, struct err *err)
{
	hook_hold("files:changed");
	if (reply_entry(c, status, a, given, path, follow, err) == 0)
		return 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	return err_set(err, ERR_CONFLICT, "%.160s: done, but the sandbox has removed it since",
		       given);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Replies with an error that has no err_code of its own. */
static int reply_error(struct api_call *c, unsigned status, const char *code, const char *message,
		       struct err *err)
{
	struct json_out j;

	api_error_begin(&j, code, message);
	return api_reply(c, status, &j, err);
}

/* 0: continue; otherwise the status to return. */
static unsigned check_conditions(struct api_call *c, const char *etag, bool reading)
{
	const char *match = http_header(c->rq, "If-Match");
	const char *none = http_header(c->rq, "If-None-Match");

	if (match && !etag_match(match, etag, false))
		return 412;
	if (none && etag_match(none, etag, true))
		return reading ? 304 : 412;
	return 0;
}

static int reply_condition(struct api_call *c, struct err *err)
{
	return reply_error(c, 412, "PRECONDITION_FAILED",
			   http_header(c->rq, "If-Match") ? "If-Match: the file has changed"
							  : "If-None-Match: the file exists",
			   err);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Takes over *fd. */
static int reply_bytes(struct api_call *c, int *fd, uint64_t size, const char *etag,
		       struct err *err)
{
	const char *if_range = http_header(c->rq, "If-Range"), *text = http_header(c->rq, "Range");
	struct range_match r =
		range_match(if_range && strcmp(if_range, etag) != 0 ? NULL : text, size);
	char part[80];

	if (r.impossible) {
		snprintf(part, sizeof(part), "bytes */%llu", (unsigned long long)size);
		http_set_header(c->rq, "Content-Range", part);
		return reply_error(c, 416, "RANGE", "Range: outside the file", err);
	}
	if (r.part) {
		snprintf(part, sizeof(part), "bytes %llu-%llu/%llu", (unsigned long long)r.from,
			 (unsigned long long)(r.from + r.len - 1), (unsigned long long)size);
		http_set_header(c->rq, "Content-Range", part);
	}
	http_reply_fd(c->rq, r.part ? 206 : 200, "application/octet-stream", steal_fd(fd), r.from,
		      r.len);
	return 0;
}

/* A regular file, or an error; flags and mode as of files_open(). */
static int v1_open_file(const struct v1_open_path *a, unsigned flags, mode_t mode, int *ret_fd,
			struct stat *ret, struct err *err)
{
	auto_close int fd = -1;

	if (files_open(a->sb, a->user, a->path, flags, mode, &fd, err) < 0)
		return -1;
	if (fstat(fd, ret) < 0)
		return err_sys(err, errno, "%.160s", a->given);
	/* lodge-init runs beside the guest, so its data is validated */
	if (!S_ISREG(ret->st_mode))
		return err_set(err, ERR_INVALID, "%.160s: %s", a->given,
			       S_ISDIR(ret->st_mode) ? "is a directory (use ?list)"
						     : "not a regular file");
	*ret_fd = steal_fd(&fd);
	return 0;
}

int v1_read_file(struct api_call *c, struct err *err)
{
	auto_close int fd = -1;
	char etag[ETAG_SIZE];
	struct v1_open_path a;
	struct stat st;
	unsigned status;

	if (v1_open_path(c, c->params[1], &a, err) < 0)
		return -1;
	if (api_query_flag(c, "list"))
		return v1_list(c, &a, err);
	if (v1_open_file(&a, AGENT_READ, 0, &fd, &st, err) < 0)
		return -1;
	make_etag(etag, st.st_ino, (uint64_t)st.st_size,
		  (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec);
	http_set_header(c->rq, "ETag", etag);
	http_set_header(c->rq, "Accept-Ranges", "bytes");
	/* content of a guest must not be rendered as a page */
	http_set_header(c->rq, "X-Content-Type-Options", "nosniff");
	status = check_conditions(c, etag, true);
	if (status == 412)
		return reply_condition(c, err);
	if (status == 304) {
		http_reply(c->rq, 304, NULL, NULL, 0);
		return 0;
	}
	return reply_bytes(c, &fd, (uint64_t)st.st_size, etag, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int parse_mode(struct api_call *c, mode_t *ret, struct err *err)
{
	const char *text = http_query(c->rq, "mode");

	if (!text)
		return 0;
	if (!*text || strlen(text) > 5 || strspn(text, "01234567") != strlen(text) ||
	    strtoul(text, NULL, 8) > 0777 || strtoul(text, NULL, 8) == 0)
		return err_set(err, ERR_INVALID, "mode: must be octal, 1 to 777");
	*ret = (mode_t)strtoul(text, NULL, 8);
	return 0;
}

/* lodged writes for the session, but without the guest's rlimit. */
static int check_size(const struct v1_open_path *a, uint64_t size, struct err *err)
{
	uint64_t max = template_limit_of(a->spec, "file_bytes");

	if (!max || size <= max)
		return 0;
	return api_fail(err, ERR_LIMIT, EMSGSIZE,
			"%.160s: larger than %llu bytes (limit: file_bytes)", a->given,
			(unsigned long long)max);
}

static int write_piece(const struct v1_open_path *a, int fd, const char *bytes, ssize_t len,
		       struct err *err)
{
	int r = file_write_all(fd, bytes, (size_t)len);

	return r < 0 ? err_sys(err, -r, "%.160s", a->given) : 0;
}

static int write_body(struct api_call *c, const struct v1_open_path *a, int fd, uint64_t has,
		      struct err *err)
{
	char *buf = arena_alloc(c->arena, PIECE);
	ssize_t n;

	if (!buf)
		return err_sys(err, ENOMEM, "%.160s", a->given);
	while ((n = http_body_read(c->rq, buf, PIECE, err)) > 0) {
		has += (uint64_t)n;
		if (check_size(a, has, err) < 0 || write_piece(a, fd, buf, n, err) < 0)
			return -1;
	}
	return n < 0 ? -1 : 0;
}

/* The entity tag of the existing file, or "". */
static int get_etag(const struct v1_open_path *a, bool follow, char ret[ETAG_SIZE], struct err *err)
{
	struct files_stat st;

	*ret = '\0';
	if (files_stat(a->sb, a->user, a->path, follow, &st, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	make_etag(ret, st.st.ino, st.st.size, st.st.ctime_ns);
	free(st.target);
	return 0;
}

struct put {
	struct v1_open_path at;
	unsigned flags; /* from AGENT_TEMP or AGENT_OPEN */
	mode_t mode;
	bool adds;
	char was[ETAG_SIZE];
};

static int open_for_append(const struct put *p, int *ret_fd, struct stat *ret, struct err *err)
{
	return v1_open_file(&p->at, AGENT_WRITE | AGENT_APPEND | AGENT_CREATE | p->flags, p->mode,
			    ret_fd, ret, err);
}

static int reply_put(struct api_call *c, const struct put *p, struct err *err)
{
	return reply_changed(c, *p->was ? 200 : 201, &p->at, p->at.given, p->at.path, true, err);
}

/* Writes directly into the file as the body arrives. */
static int append(struct api_call *c, const struct put *p, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (open_for_append(p, &fd, &st, err) < 0 ||
	    write_body(c, &p->at, fd, (uint64_t)st.st_size, err) < 0)
		return -1;
	return reply_put(c, p, err);
}

/* Commits a temporary file after a last check of the conditions. */
static int append_file(struct api_call *c, const struct put *p, int from, struct err *err)
{
	char *buf = arena_alloc(c->arena, PIECE);
	auto_close int fd = -1;
	struct stat st, add;
	ssize_t n;

	if (!buf)
		return err_sys(err, ENOMEM, "%.160s", p->at.given);
	if (fstat(from, &add) < 0)
		return err_sys(err, errno, "%.160s", p->at.given);
	if (open_for_append(p, &fd, &st, err) < 0 ||
	    check_size(&p->at, (uint64_t)st.st_size + (uint64_t)add.st_size, err) < 0)
		return -1;
	for (off_t at = 0; (n = pread(from, buf, PIECE, at)) > 0; at += n)
		if (write_piece(&p->at, fd, buf, n, err) < 0)
			return -1;
	return n < 0 ? err_sys(err, errno, "%.160s", p->at.given) : 0;
}

/* Under the lock, so that of several writers with the same condition only one succeeds. */
static int put_file(struct api_call *c, struct put *p, struct files_put *upload, struct err *err)
{
	if (get_etag(&p->at, true, p->was, err) < 0)
		return -1;
	if (check_conditions(c, *p->was ? p->was : NULL, false))
		return reply_condition(c, err);
	if ((p->adds ? append_file(c, p, files_put_fd(upload), err)
		     : files_put_commit(upload, err)) < 0)
		return -1;
	return reply_put(c, p, err);
}

/* Syncs before the commit: lodge-init must not block on a disk. */
static int put_atomically(struct api_call *c, struct put *p, struct err *err)
{
	auto_call(files_put_free) struct files_put *upload = NULL;
	const struct v1_open_path *a = &p->at;
	int r;

	if (files_put_new(a->sb, a->user, a->path, p->flags, p->mode, &upload, err) < 0 ||
	    write_body(c, a, files_put_fd(upload), 0, err) < 0)
		return -1;
	if (!p->adds && fsync(files_put_fd(upload)) < 0)
		return err_sys(err, errno, "%.160s", a->given);
	side_conn_lock(a->conn);
	r = put_file(c, p, upload, err);
	side_conn_unlock(a->conn);
	return r;
}

/* Checks conditions before the body is read, and again afterwards. */
int v1_write_file(struct api_call *c, struct err *err)
{
	const char *none = http_header(c->rq, "If-None-Match");
	int64_t announced = http_body_length(c->rq);
	struct put p = { .flags = api_query_flag(c, "mkdir") ? AGENT_PARENTS : 0,
			 .adds = api_query_flag(c, "append") };

	if (!*c->params[1])
		return err_set(err, ERR_INVALID, "path: empty");
	if (parse_mode(c, &p.mode, err) < 0 || v1_open_path(c, c->params[1], &p.at, err) < 0 ||
	    get_etag(&p.at, true, p.was, err) < 0)
		return -1;
	if (check_conditions(c, *p.was ? p.was : NULL, false))
		return reply_condition(c, err);
	if (announced > 0 && check_size(&p.at, (uint64_t)announced, err) < 0)
		return -1;
	if (none && strcmp(none, "*") == 0)
		p.flags |= p.adds ? AGENT_EXCL : AGENT_NOREPLACE;
	if (p.adds && !none && !http_header(c->rq, "If-Match"))
		return append(c, &p, err);
	return put_atomically(c, &p, err);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int delete_now(struct api_call *c, const struct v1_open_path *a, bool all, struct err *err)
{
	char was[ETAG_SIZE];

	if (get_etag(a, false, was, err) < 0)
		return -1;
	if (check_conditions(c, *was ? was : NULL, false))
		return reply_condition(c, err);
	if (!*was)
		return err_sys(err, ENOENT, "%.160s", a->given);
	if (all ? files_remove_tree_cancellable(a->sb, a->user, a->path, v1_is_gone, c->rq, err) < 0
		: files_remove(a->sb, a->user, a->path, err) < 0)
		return -1;
	http_reply(c->rq, 204, NULL, NULL, 0);
	return 0;
}

int v1_delete_file(struct api_call *c, struct err *err)
{
	bool all = api_query_flag(c, "recursive");
	struct v1_open_path a;
	int r;

	if (!*c->params[1])
		return err_set(err, ERR_INVALID, "path: empty");
	if (v1_open_path(c, c->params[1], &a, err) < 0)
		return -1;
	if (all) /* may block for long */
		return delete_now(c, &a, all, err);
	side_conn_lock(a.conn);
	r = delete_now(c, &a, all, err);
	side_conn_unlock(a.conn);
	return r;
}

static int make_directory(struct api_call *c, const struct v1_open_path *a, struct err *err)
{
	mode_t mode = 0;

	if (parse_mode(c, &mode, err) < 0 ||
	    files_mkdir(a->sb, a->user, a->path, api_query_flag(c, "parents"), mode, err) < 0)
		return -1;
	return reply_changed(c, 201, a, a->given, a->path, true, err);
}

static int rename_file(struct api_call *c, const struct v1_open_path *a, struct err *err)
{
	bool over = !http_query(c->rq, "replace") || api_query_flag(c, "replace");
	const char *to = http_query(c->rq, "rename");
	char path[AGENT_PATH_MAX];
	int r;

	if (!*to || !*a->given)
		return err_set(err, ERR_INVALID, "%s: empty", *to ? "path" : "rename");
	if (v1_resolve(a, to, path, err) < 0)
		return -1;
	side_conn_lock(a->conn);
	r = files_rename(a->sb, a->user, a->path, path, over, err);
	side_conn_unlock(a->conn);
	if (r < 0)
		return -1;
	return reply_changed(c, 200, a, to, path, false, err);
}

int v1_change_file(struct api_call *c, struct err *err)
{
	bool makes = api_query_flag(c, "mkdir"), looks = api_query_flag(c, "stat");
	bool renames = http_query(c->rq, "rename");
	struct v1_open_path a;

	if (makes + looks + renames != 1)
		return err_set(err, ERR_INVALID,
			       "pass exactly one of ?mkdir, ?rename=TO and ?stat");
	if (v1_open_path(c, c->params[1], &a, err) < 0)
		return -1;
	if (makes)
		return make_directory(c, &a, err);
	if (renames)
		return rename_file(c, &a, err);
	return reply_entry(c, 200, &a, a.given, a.path, api_query_flag(c, "follow"), err);
}
