/* SPDX-License-Identifier: Apache-2.0 */
/* A fragment's files, any JSON. What is accepted has only paths that stay inside, and survives its
 * own printed form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "project/fragment_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void check_path(const char *path)
{
	must(*path && *path != '/' && strlen(path) < FRAGMENT_PATH_MAX);
	while (*path) {
		size_t n = strcspn(path, "/");

		must(n > 0 && !(n == 1 && path[0] == '.') && strncmp(path, "../", 3) != 0);
		must(strcmp(path, "..") != 0);
		path += n;
		must(*path == '\0' || path[1]);
		path += *path == '/';
	}
}

static void compare(const struct store_file_list *a, const struct store_file_list *b)
{
	must(a->count == b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct store_file *x = &a->items[i], *y = &b->items[i];

		check_path(x->path);
		must(strcmp(x->path, y->path) == 0 && x->size == y->size);
		must(x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_file_list l = { 0 }, again = { 0 };
	struct json_out j;
	struct err err;
	size_t len = 0;
	char *text;

	if (fragment_parse_files((const char *)data, size, &l, &err) < 0) {
		must(l.count == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		return 0;
	}
	json_out_init(&j, 16 * size + 4096);
	fragment_files_to_json(&j, NULL, &l);
	text = json_out_take(&j, &len);
	must(text && fragment_parse_files(text, len, &again, &err) == 0);
	compare(&l, &again);
	free(text);
	store_file_list_fini(&l);
	store_file_list_fini(&again);
	return 0;
}
