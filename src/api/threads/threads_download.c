/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and downloads files of a thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/threads/threads_sessions.h"
#include "base/base64.h"
#include "thread/thread_files.h"

enum { NAME_BYTES = 255 };

/* ---- list ------------------------------------------------------------------------------------ */

/* A name that is not valid UTF-8 has U+FFFD, and its bytes in base64 beside it. */
static void put_item(struct json_out *j, const struct thread_file *i)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", i->mode & 07777);
	json_out_object(j, NULL);
	json_out_str(j, "name", i->name);
	if (!json_is_utf8(i->name, strlen(i->name)))
		json_out_base64(j, "name_base64", i->name, strlen(i->name));
	json_out_u64(j, "size_bytes", i->size);
	api_put_iso(j, "modified", i->mtime_ns / 1000000);
	json_out_str(j, "permissions", mode);
	json_out_end(j);
}

static bool is_gone(void *rq)
{
	return http_is_gone(rq);
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
	    thread_files_list(a.conn, is_gone, c->rq, &l, err) < 0)
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

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

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
	set_disposition(c, base_name(name));
	/* content of a guest must not be rendered as a page */
	http_set_header(c->rq, "X-Content-Type-Options", "nosniff");
	http_reply_fd(c->rq, 200, "application/octet-stream", steal_fd(&fd), 0,
		      (uint64_t)st.st_size);
	return 0;
}
