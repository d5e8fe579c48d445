/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a thread: what is there, and getting it out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/threads.h"
#include "base/base64.h"

enum {
	LIST_MAX = 10000, /* files in one answer: the newest */
	LIST_BYTES = 16 << 20, /* of their names */
	GONE_EVERY = 256, /* entries between two looks whether anybody is there */
	NAME_BYTES = 255,
};

bool threads_name_is_valid(const char *name)
{
	const char *part = name;

	if (!*name || *name == '/' || strchr(name, '\\') || strlen(name) >= AGENT_PATH_MAX / 2)
		return false;
	while (part) {
		const char *end = strchr(part, '/');
		size_t n = end ? (size_t)(end - part) : strlen(part);

		if (!n || n > NAME_BYTES || (n == 1 && *part == '.') ||
		    (n == 2 && memcmp(part, "..", 2) == 0))
			return false;
		part = end ? end + 1 : NULL;
	}
	return true;
}

/* ---- counting -------------------------------------------------------------------------------- */

static bool counts(const char *path, const struct agent_stat *st)
{
	return S_ISREG(st->mode) && !v1_is_unfinished(path);
}

static int count_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct threads_survey *s = arg;

	(void)target;
	if (counts(path, st)) {
		s->files++;
		s->bytes += st->size;
	}
	return 0;
}

int threads_survey(struct sandbox *sb, const char *user, const char *dir,
		   struct threads_survey *ret, struct err *err)
{
	struct threads_survey s = { 0 };

	if (files_list(sb, user, dir, UINT32_MAX, count_entry, &s, err) < 0)
		return -1;
	*ret = s;
	return 0;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct item {
	char *name;
	uint64_t size;
	int64_t mtime_ns;
	uint32_t mode;
};

struct listing {
	struct item *items;
	size_t count, cap, bytes, seen;
	struct threads_survey all;
	struct http_request *rq;
};

static int newest_first(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns < y->mtime_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* The oldest go until there is room. */
static void cut(struct listing *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), newest_first);
	while (l->count > LIST_MAX || (l->bytes > LIST_BYTES && l->count)) {
		struct item *last = &l->items[--l->count];

		l->bytes -= strlen(last->name);
		free(last->name);
	}
}

static void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].name);
	free(l->items);
}
DEFINE_AUTO(struct listing *, listing_free);

static struct item *add_item(struct listing *l)
{
	if (l->count == 2 * (size_t)LIST_MAX || l->bytes > 2 * (size_t)LIST_BYTES)
		cut(l);
	if (l->count == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct item *more = realloc(l->items, cap * sizeof(*more));

		if (!more)
			return NULL;
		l->items = more;
		l->cap = cap;
	}
	return &l->items[l->count];
}

/* 1: nobody waits any more; 2: no memory. */
static int list_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct listing *l = arg;
	struct item *i;

	if (++l->seen % GONE_EVERY == 0 && http_is_gone(l->rq))
		return 1;
	if (!counts(path, st))
		return 0;
	(void)count_entry(&l->all, path, st, target);
	i = add_item(l);
	if (!i)
		return 2;
	*i = (struct item){ strdup(path), st->size, st->mtime_ns, st->mode };
	if (!i->name)
		return 2;
	l->bytes += strlen(path);
	l->count++;
	return 0;
}

/* A name that is no UTF-8 has U+FFFD in it, and its bytes beside it. */
static void put_item(struct json_out *j, const struct item *i)
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

int threads_list(struct api_call *c, struct err *err)
{
	const char *id = http_query(c->rq, "session_id");
	struct listing l = { .rq = c->rq };
	auto_call(listing_free) struct listing *guard = &l;
	struct json_out j;
	struct v1_at a;
	int r;

	(void)guard;
	if (!id || !*id)
		return err_set(err, ERR_INVALID, "session_id: missing");
	if (v1_at_session(c, id, "", true, &a, err) < 0)
		return -1;
	r = files_list(a.sb, a.user, a.path, UINT32_MAX, list_entry, &l, err);
	if (r > 0)
		return r == 1 ? err_set(err, ERR_UNAVAILABLE, "nobody waits any more")
			      : err_sys(err, ENOMEM, "the list");
	if (r < 0)
		return -1;
	cut(&l);
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_str(&j, "session_id", id);
	json_out_str(&j, "workspace_dir", a.path);
	json_out_array(&j, "files");
	for (size_t i = 0; i < l.count; i++)
		put_item(&j, &l.items[i]);
	json_out_end(&j);
	json_out_u64(&j, "total_files", l.all.files);
	json_out_u64(&j, "total_size_bytes", l.all.bytes);
	json_out_end(&j);
	return api_reply(c, 200, &j, err);
}

/* ---- getting --------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* RFC 6266: a form for everybody, and the exact one where it can be told. */
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

/* "filename", or its bytes in base64 where they are no text. *ret is "" of what cannot be one. */
static int take_name(struct api_call *c, const json_t *b, const char **ret, struct err *err)
{
	const char *name = NULL, *coded = NULL;
	size_t len = 0;
	char *bytes;

	if (api_str(b, "filename", &name, err) < 0 ||
	    api_str(b, "filename_base64", &coded, err) < 0)
		return -1;
	if (!name == !coded)
		return err_set(err, ERR_INVALID, "filename: missing, or there are two");
	if (coded) {
		bytes = arena_alloc(c->arena, strlen(coded) + 1);
		if (!bytes)
			return err_sys(err, ENOMEM, "filename");
		if (base64_decode(coded, strlen(coded), bytes, &len) < 0 || strlen(bytes) != len)
			return err_set(err, ERR_INVALID, "filename_base64: not base64 of a name");
		name = bytes;
	}
	*ret = name;
	return 0;
}

int threads_download(struct api_call *c, struct err *err)
{
	auto_close int fd = -1;
	const char *id = "", *name = "";
	struct v1_at a;
	struct stat st;
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "session_id", STORE_KEY, &id, err) < 0 ||
	    take_name(c, b, &name, err) < 0)
		return -1;
	if (!threads_name_is_valid(name))
		return threads_refuse(c, 400, "Invalid filename", err);
	if (v1_at_session(c, id, name, true, &a, err) < 0)
		return -1;
	if (v1_open_file(&a, AGENT_READ, 0, &fd, &st, err) < 0)
		return err->code == ERR_INVALID ? threads_refuse(c, 400, "Invalid filename", err)
						: -1;
	set_disposition(c, base_name(name));
	/* a guest's bytes are never a page of ours */
	http_set_header(c->rq, "X-Content-Type-Options", "nosniff");
	http_reply_fd(c->rq, 200, "application/octet-stream", steal_fd(&fd), 0,
		      (uint64_t)st.st_size);
	return 0;
}
