/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a thread: list, download, upload. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/multipart.h"
#include "api/threads/threads_sessions.h"
#include "api/v1/v1_exec.h"
#include "base/base64.h"
#include "base/file_io.h"
#include "service/service_admin.h"
#include "thread/thread_files.h"

enum {
	NAME_BYTES = 255,
	PIECE = 64 << 10,
	FIELDS_MAX = 64 << 10, /* bytes of all fields that are not files */
	DRAIN_MAX = 256 << 20, /* excess bytes of a file that are read before it is rejected */
};
#define SPOOL_MAX (1ull << 30)

/* ---- list ------------------------------------------------------------------------------------ */

/* A name that is not valid UTF-8 has U+FFFD, and its bytes in base64 beside it. */
static void put_item(struct json_out *j, const struct thread_file *i)
{
	json_out_object(j, NULL);
	json_out_str(j, "name", i->name);
	if (!json_is_utf8(i->name, strlen(i->name)))
		json_out_base64(j, "name_base64", i->name, strlen(i->name));
	json_out_u64(j, "size_bytes", i->size);
	api_put_iso(j, "modified", i->mtime_ns / 1000000);
	api_put_mode(j, "permissions", i->mode);
	json_out_end(j);
}

int threads_list_files(struct api_call *c, struct err *err)
{
	const char *id = http_query(c->rq, "session_id");
	auto_fini(thread_files_fini) struct thread_files l = { 0 };
	struct json_out j;
	struct v1_open_path a;

	if (!id || !*id)
		return err_set(err, ERR_INVALID, "session_id: missing");
	if (v1_open_session_path(c, id, "", true, &a, err) < 0 ||
	    thread_files_list(a.conn, v1_is_gone, c->rq, &l, err) < 0)
		return -1;
	api_object(&j);
	json_out_str(&j, "session_id", id);
	json_out_str(&j, "workspace_dir", a.path);
	json_out_array(&j, "files");
	for (size_t i = 0; i < l.count; i++)
		put_item(&j, &l.items[i]);
	json_out_end(&j);
	json_out_u64(&j, "total_files", l.total.files);
	json_out_u64(&j, "total_size_bytes", l.total.bytes);
	return api_reply(c, 200, &j, err);
}

/* ---- download -------------------------------------------------------------------------------- */

/* RFC 6266: an ASCII name, and the exact one in filename* if it is UTF-8. */
static void set_disposition(struct api_call *c, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789!#$&+-.^_`|~";
	char text[32 + 4 * (NAME_BYTES + 1) + 16];
	int n = snprintf(text, sizeof(text), "attachment; filename=\"");

	for (const char *p = name; *p; p++)
		text[n++] = (char)(*p >= ' ' && *p <= '~' && !strchr("\"\\%", *p) ? *p : '_');
	text[n++] = '"';
	text[n] = '\0';
	if (json_is_utf8(name, strlen(name))) {
		n += snprintf(text + n, sizeof(text) - (size_t)n, "; filename*=UTF-8''");
		for (const char *p = name; *p; p++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      strchr(plain, *p) ? "%c" : "%%%02X", (unsigned char)*p);
	}
	http_set_header(c->rq, "Content-Disposition", text);
}

/* Parses "filename", or its bytes in base64. *ret is "" if it is not a valid name. */
static int parse_name(struct api_call *c, const json_t *b, const char **ret, struct err *err)
{
	const char *name = NULL, *coded = NULL;
	size_t len = 0;
	char *bytes;

	if (api_str(b, "filename", &name, err) < 0 ||
	    api_str(b, "filename_base64", &coded, err) < 0)
		return -1;
	if (!name == !coded)
		return err_set(err, ERR_INVALID,
			       "filename: pass either filename or filename_base64");
	if (coded) {
		bytes = arena_alloc(c->arena, strlen(coded) + 1);
		if (!bytes)
			return err_sys(err, ENOMEM, "filename");
		if (base64_decode(coded, strlen(coded), bytes, &len) < 0 || strlen(bytes) != len)
			return err_set(err, ERR_INVALID,
				       "filename_base64: must be a file name in base64");
		name = bytes;
	}
	*ret = name;
	return 0;
}

int threads_download_file(struct api_call *c, struct err *err)
{
	auto_close int fd = -1;
	const char *id = "", *name = "";
	struct v1_open_path a;
	struct stat st;
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "session_id", STORE_KEY, &id, err) < 0 ||
	    parse_name(c, b, &name, err) < 0)
		return -1;
	if (!thread_name_is_valid(name))
		return threads_error(c, 400, "Invalid filename", err);
	if (v1_open_session_path(c, id, name, true, &a, err) < 0)
		return -1;
	if (thread_file_open(a.conn, name, &fd, &st, err) < 0)
		return err->code == ERR_INVALID ? threads_error(c, 400, "Invalid filename", err)
						: -1;
	set_disposition(c, v1_base_name(name));
	/* content of a guest must not be rendered as a page */
	http_set_header(c->rq, "X-Content-Type-Options", "nosniff");
	http_reply_fd(c->rq, 200, "application/octet-stream", steal_fd(&fd), 0,
		      (uint64_t)st.st_size);
	return 0;
}

/* ---- upload ----------------------------------------------------------------------------------
 * A form with a session, a file and optionally a name, in any order. The file is spooled to the
 * data directory until the form is complete. The spool is limited per file, to SPOOL_MAX in total,
 * and to half of it per tenant. */

enum field { OTHER, SESSION, NAME, CONTENT };

struct upload {
	struct upload *next; /* of all uploads in progress */
	struct api_call *c;
	int fd; /* the spooled file; -1: none yet */
	uint64_t size, max, spooled;
	enum field field; /* state of the current part */
	size_t others; /* bytes of fields */
	char session[STORE_KEY], name[AGENT_PATH_MAX]; /* from fields; "": not given */
	char given[AGENT_PATH_MAX]; /* from the file part */
	bool too_large;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct upload *uploads;

/* False: the spool is full. */
static bool reserve_spool(struct upload *u, size_t len)
{
	uint64_t all = len, theirs = len;
	bool fits;

	pthread_mutex_lock(&mutex);
	for (const struct upload *o = uploads; o; o = o->next) {
		all += o->spooled;
		if (strcmp(o->c->caller.tenant, u->c->caller.tenant) == 0)
			theirs += o->spooled;
	}
	fits = all <= SPOOL_MAX && theirs <= SPOOL_MAX / 2;
	if (fits)
		u->spooled += len;
	pthread_mutex_unlock(&mutex);
	return fits;
}

/* ---- form ------------------------------------------------------------------------------------ */

/* An unnamed temporary file; not every file system supports O_TMPFILE. */
static int open_unnamed(const char *dir)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || errno != EOPNOTSUPP)
		return fd;
	snprintf(path, sizeof(path), "%s/upload.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

static int open_spool(struct upload *u, struct err *err)
{
	if (u->fd >= 0)
		return err_set(err, ERR_INVALID, "file: only one file per upload");
	u->fd = open_unnamed(engine_home(u->c->engine));
	return u->fd < 0 ? err_sys(err, errno, "upload") : 0;
}

static int begin_part(void *arg, const char *name, const char *filename, struct err *err)
{
	static const char *const names[] = { "", "session_id", "filename", "file" };
	struct upload *u = arg;
	unsigned n = CONTENT;

	while (n > OTHER && strcmp(names[n], name) != 0)
		n--;
	u->field = (enum field)n;
	if ((n == SESSION && *u->session) || (n == NAME && *u->name))
		return err_set(err, ERR_INVALID, "%s: given more than once", name);
	if (n != CONTENT)
		return 0;
	snprintf(u->given, sizeof(u->given), "%s", filename ? filename : "");
	return open_spool(u, err);
}

static int add_text(char *to, size_t size, const char *field, const char *bytes, size_t len,
		    struct err *err)
{
	size_t n = strlen(to);

	if (len >= size - n || memchr(bytes, '\0', len))
		return err_set(err, ERR_INVALID, "%s: too long, or not valid text", field);
	memcpy(to + n, bytes, len);
	to[n + len] = '\0';
	return 0;
}

static int add_bytes(struct upload *u, const char *bytes, size_t len, struct err *err)
{
	int r;

	u->size += len;
	if (u->size > u->max) {
		u->too_large = true;
		return err_set(err, ERR_LIMIT, "file: too large");
	}
	if (!reserve_spool(u, len))
		return err_set(err, ERR_UNAVAILABLE, "too many uploads in progress");
	r = file_write_all(u->fd, bytes, len);
	return r < 0 ? err_sys(err, -r, "upload") : 0;
}

static int add_data(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct upload *u = arg;

	if (u->field == CONTENT)
		return add_bytes(u, bytes, len, err);
	u->others += len;
	if (u->others > FIELDS_MAX)
		return err_set(err, ERR_INVALID, "fields: more than %d bytes", FIELDS_MAX);
	if (u->field == SESSION)
		return add_text(u->session, sizeof(u->session), "session_id", bytes, len, err);
	if (u->field == NAME)
		return add_text(u->name, sizeof(u->name), "filename", bytes, len, err);
	return 0;
}

static int receive_form(struct upload *u, struct err *err)
{
	static const struct multipart_ops ops = { begin_part, add_data };
	struct api_call *c = u->c;
	struct multipart *m = arena_alloc(c->arena, sizeof(*m));
	char *buf = arena_alloc(c->arena, PIECE);
	ssize_t n;

	if (!m || !buf)
		return err_sys(err, ENOMEM, "upload");
	if (multipart_init(m, http_header(c->rq, "Content-Type"), &ops, u, err) < 0)
		return -1;
	while ((n = http_body_read(c->rq, buf, PIECE, err)) > 0)
		if (multipart_feed(m, buf, (size_t)n, err) < 0)
			return -1;
	if (n < 0 || multipart_finish(m, err) < 0)
		return -1;
	if (!*u->session)
		return err_set(err, ERR_INVALID, "session_id: missing");
	return u->fd < 0 ? err_set(err, ERR_INVALID, "file: missing") : 0;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Clients read the response after sending everything, so the rest is read. A client that sends
 * Expect, or announces more than that, gets its response at once. */
static uint64_t drain_body(const struct upload *u, struct err *err)
{
	struct api_call *c = u->c;
	char *buf = arena_alloc(c->arena, PIECE);
	uint64_t rest = 0;
	ssize_t n = 1;

	if (!u->size && (http_header(c->rq, "Expect") || http_body_length(c->rq) > DRAIN_MAX))
		return 0;
	while (buf && n > 0 && rest < DRAIN_MAX) {
		n = http_body_read(c->rq, buf, PIECE, err);
		rest += n > 0 ? (uint64_t)n : 0;
	}
	return rest;
}

static void put_mb(struct json_out *j, const char *key, uint64_t bytes)
{
	char text[32];

	if (bytes % (1 << 20) == 0)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes >> 20);
	else
		snprintf(text, sizeof(text), "%.2f", (double)bytes / (1 << 20));
	json_out_raw(j, key, text, strlen(text));
}

static int reply_too_large(struct upload *u, struct err *err)
{
	int64_t whole = http_body_length(u->c->rq);
	uint64_t size = u->size, rest = drain_body(u, err);
	struct json_out j;

	if (u->too_large)
		size = whole > 0 ? (uint64_t)whole : size + rest;
	threads_error_begin(&j, "File too large");
	put_mb(&j, "max_size_mb", u->max);
	put_mb(&j, "uploaded_size_mb", size);
	return api_reply(u->c, 413, &j, err);
}

static int reply_full(struct upload *u, const struct thread_limit_hit *no, struct err *err)
{
	struct json_out j;

	threads_error_begin(&j, err->msg);
	if (no->limit == THREAD_LIMIT_FILES) {
		json_out_u64(&j, "max_files", no->max);
		json_out_u64(&j, "current_files", no->used);
		json_out_str(&j, "applies_to", "uploads"); /* commands may create more */
	} else {
		put_mb(&j, "max_workspace_mb", no->max);
		put_mb(&j, "current_workspace_mb", no->used);
		put_mb(&j, "file_size_mb", no->requested);
	}
	return api_reply(u->c, 507, &j, err);
}

static int reply_rejected(struct upload *u, const struct thread_limit_hit *no, struct err *err)
{
	if (no->limit == THREAD_LIMIT_FILE_SIZE) {
		u->max = no->max; /* of the session, which may differ from the current setting */
		return reply_too_large(u, err);
	}
	if (no->limit != THREAD_LIMIT_NONE)
		return reply_full(u, no, err);
	return err->code == ERR_INVALID ? threads_error(u->c, 400, "Invalid filename", err) : -1;
}

/* ---- copy to the sandbox --------------------------------------------------------------------- */

static int reply_stored(const struct upload *u, const struct thread_write_result *p,
			struct err *err)
{
	struct json_out j;

	api_object(&j);
	json_out_str(&j, "status", "uploaded");
	json_out_str(&j, "filename", u->name);
	json_out_str(&j, "path", p->path);
	json_out_u64(&j, "size_bytes", p->size);
	return api_reply(u->c, 200, &j, err);
}

static int store(struct upload *u, struct err *err)
{
	struct thread_write_result p;
	struct v1_open_path a;

	if (!*u->name)
		memcpy(u->name, u->given, sizeof(u->name));
	if (!thread_name_is_valid(u->name))
		return threads_error(u->c, 400, "Invalid filename", err);
	if (v1_open_session_path(u->c, u->session, u->name, true, &a, err) < 0)
		return -1;
	if (lseek(u->fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "upload");
	if (thread_file_write(a.conn, &u->c->api->opts.threads, u->name, u->fd, &p, err) < 0)
		return reply_rejected(u, &p.limit_hit, err);
	return reply_stored(u, &p, err);
}

static void end_upload(void *arg)
{
	struct upload *u = arg, **at = &uploads;

	pthread_mutex_lock(&mutex);
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	pthread_mutex_unlock(&mutex);
	if (u->fd >= 0)
		close(u->fd);
	free(u);
}

int threads_upload_file(struct api_call *c, struct err *err)
{
	struct upload *u = calloc(1, sizeof(*u));

	if (!u)
		return err_sys(err, ENOMEM, "upload");
	u->c = c;
	u->fd = -1;
	u->max = c->api->opts.threads.file_bytes;
	pthread_mutex_lock(&mutex);
	u->next = uploads;
	uploads = u;
	pthread_mutex_unlock(&mutex);
	if (!arena_keep(c->arena, u, end_upload))
		return err_sys(err, ENOMEM, "upload");
	if (http_body_length(c->rq) > (int64_t)u->max + FIELDS_MAX + MULTIPART_AROUND) {
		u->too_large = true;
		return reply_too_large(u, err);
	}
	if (receive_form(u, err) < 0)
		return u->too_large ? reply_too_large(u, err) : -1;
	return store(u, err);
}
