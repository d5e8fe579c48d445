/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a fragment as JSON: an object of path and content. All paths are checked before any
 * file is used. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "engine/internal.h"
#include "project/project.h"
#include "project/fragment_json.h"

static const char PREFIX[] = "__BASE64__";

DEFINE_AUTO(json_t *, json_decref);

/* ---- paths ------------------------------------------------------------------------------- */

static int invalid_file(const char *path, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "%.160s: %s", path, why);
}

/* Normalizes "a//b" to "a/b" and refuses everything else that is unusual. */
static int clean_path(char *path, struct err *err)
{
	const char *from = path;
	char *to = path;

	if (!*path)
		return err_set(err, ERR_INVALID, "files: path is empty");
	if (*path == '/')
		return invalid_file(path, "path must be relative", err);
	if (strlen(path) >= FRAGMENT_PATH_MAX)
		return invalid_file(path, "path is too long", err);
	if (path[strlen(path) - 1] == '/')
		return invalid_file(path, "path ends with a slash", err);
	while (*from) {
		size_t n = strcspn(from, "/");

		if ((n == 1 && from[0] == '.') || (n == 2 && from[0] == '.' && from[1] == '.'))
			return invalid_file(path, "path contains '.' or '..'", err);
		if (n > NAME_MAX)
			return invalid_file(path, "file name is too long", err);
		memmove(to, from, n);
		to += n;
		from += n;
		if (*from)
			*to++ = '/';
		from += strspn(from, "/");
	}
	*to = '\0';
	return 0;
}

/* Sorts '/' before every other character, so that a directory's files follow it directly. */
static int compare_paths(const void *a, const void *b)
{
	const char *x = ((const struct store_file *)a)->path;
	const char *y = ((const struct store_file *)b)->path;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	if (!*x || !*y)
		return *x ? 1 : *y ? -1 : 0;
	if (*x == '/' || *y == '/')
		return *x == '/' ? -1 : 1;
	return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
}

static int check_pair(const char *path, const char *next, struct err *err)
{
	size_t n = strlen(path);

	if (strncmp(path, next, n) != 0)
		return 0;
	if (!next[n])
		return invalid_file(path, "duplicate path", err);
	return next[n] == '/' ? invalid_file(path, "path is both a file and a directory", err) : 0;
}

static int exceeds_max(size_t n, const char *unit, int max, struct err *err)
{
	err_set(err, ERR_LIMIT, "files: %zu%s exceed the maximum of %d", n, unit, max);
	err->sys = EFBIG;
	return -1;
}

int fragment_check_files(struct store_file_list *l, struct err *err)
{
	size_t bytes = 0;

	if (l->count > STORE_FILES_MAX)
		return exceeds_max(l->count, "", STORE_FILES_MAX, err);
	for (size_t i = 0; i < l->count; i++) {
		if (clean_path(l->items[i].path, err) < 0)
			return -1;
		bytes += l->items[i].size;
	}
	if (bytes > FRAGMENT_BYTES_MAX)
		return exceeds_max(bytes, " bytes", FRAGMENT_BYTES_MAX, err);
	if (l->count > 0)
		qsort(l->items, l->count, sizeof(*l->items), compare_paths);
	for (size_t i = 1; i < l->count; i++)
		if (check_pair(l->items[i - 1].path, l->items[i].path, err) < 0)
			return -1;
	return 0;
}

/* ---- content ----------------------------------------------------------------------------- */

/* Returns the base64 part of "data:TYPE;base64,...", or NULL if the text is not such a URL. */
static const char *find_data_url(const char *text, size_t len)
{
	static const char scheme[] = "data:", mark[] = ";base64,";
	const char *end = text + len;
	const char *p = text + sizeof(scheme) - 1;

	if (len < sizeof(scheme) - 1 || memcmp(text, scheme, sizeof(scheme) - 1) != 0)
		return NULL;
	while (p<end && * p> ' ' && *p < 0x7f && *p != ',')
		p++;
	if (p == end || *p != ',' || (size_t)(p + 1 - text) < sizeof(scheme) + sizeof(mark) - 2)
		return NULL;
	p++;
	return memcmp(p - (sizeof(mark) - 1), mark, sizeof(mark) - 1) == 0 ? p : NULL;
}

static const char *find_base64(const char *text, size_t len)
{
	if (len >= sizeof(PREFIX) - 1 && memcmp(text, PREFIX, sizeof(PREFIX) - 1) == 0)
		return text + sizeof(PREFIX) - 1;
	return find_data_url(text, len);
}

static int set_content(struct store_file *f, const char *text, size_t len, struct err *err)
{
	const char *coded = find_base64(text, len);
	size_t size = coded ? BASE64_DECODED(len - (size_t)(coded - text)) : len;

	f->data = size > 0 ? malloc(size) : NULL;
	if (size > 0 && !f->data)
		return err_sys(err, ENOMEM, "files");
	if (!coded) {
		if (len > 0)
			memcpy(f->data, text, len);
		f->size = len;
		return 0;
	}
	if (base64_decode(coded, len - (size_t)(coded - text), f->data, &f->size) < 0)
		return invalid_file(f->path, "not valid base64", err);
	if (f->size == 0) {
		free(f->data);
		f->data = NULL;
	}
	return 0;
}

static int add_file(struct store_file_list *l, const char *path, const json_t *value,
		    struct err *err)
{
	struct store_file *f = &l->items[l->count++];

	f->path = strdup(path);
	if (!f->path)
		return err_sys(err, ENOMEM, "files");
	if (!json_is_string(value))
		return invalid_file(path, "content must be a string", err);
	return set_content(f, json_string_value(value), json_string_length(value), err);
}

int fragment_parse_files(const char *json, size_t len, struct store_file_list *ret, struct err *err)
{
	auto_call(json_decref) json_t *map = NULL;
	json_error_t why;

	if (len > FRAGMENT_BYTES_MAX)
		return exceeds_max(len, " bytes", FRAGMENT_BYTES_MAX, err);
	map = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!map)
		return err_set(err, ERR_INVALID, "files: %.200s", why.text);
	return fragment_files_from_json(map, ret, err);
}

int fragment_files_from_json(json_t *map, struct store_file_list *ret, struct err *err)
{
	auto_fini(store_file_list_fini) struct store_file_list l = { 0 };
	size_t count = json_object_size(map);
	const char *path;
	json_t *value;

	if (!json_is_object(map))
		return err_set(err, ERR_INVALID, "files: must be an object");
	if (count > STORE_FILES_MAX)
		return exceeds_max(count, "", STORE_FILES_MAX, err);
	l.items = calloc(count + 1, sizeof(*l.items));
	if (!l.items)
		return err_sys(err, ENOMEM, "files");
	json_object_foreach (map, path, value)
		if (add_file(&l, path, value, err) < 0)
			return -1;
	if (fragment_check_files(&l, err) < 0)
		return -1;
	*ret = steal_struct(&l);
	return 0;
}

/* ---- printing ---------------------------------------------------------------------------- */

static void print_base64(struct json_out *j, const struct store_file *f)
{
	size_t len = sizeof(PREFIX) - 1 + BASE64_ENCODED(f->size);
	auto_free char *text = malloc(len);

	if (!text) {
		j->failed = true;
		return;
	}
	memcpy(text, PREFIX, sizeof(PREFIX) - 1);
	base64_encode(f->data, f->size, text + sizeof(PREFIX) - 1);
	json_out_bytes(j, f->path, text, len);
}

/* Whether the content can be printed as a JSON string and is read back unchanged. */
static bool is_text(const struct store_file *f)
{
	const unsigned char *text = f->data;

	for (size_t i = 0; i < f->size; i++)
		if (text[i] < ' ' && text[i] != '\t' && text[i] != '\n' && text[i] != '\r')
			return false;
	return json_is_utf8(f->data, f->size) && !find_base64(f->data, f->size);
}

void fragment_files_to_json(struct json_out *j, const char *key,
			    const struct store_file_list *files)
{
	json_out_object(j, key);
	for (size_t i = 0; i < files->count; i++) {
		const struct store_file *f = &files->items[i];

		if (f->size == 0)
			json_out_str(j, f->path, "");
		else if (is_text(f))
			json_out_bytes(j, f->path, f->data, f->size);
		else
			print_base64(j, f);
	}
	json_out_end(j);
}
