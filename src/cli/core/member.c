/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *member_get(const json_t *j, const char *path)
{
	json_t *found;

	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer is copied */
	memcpy(&found, &j, sizeof(found)); /* as json_object_get(), which takes a const, too */
	while (found && *path) {
		size_t n = strcspn(path, ".");

		found = json_object_getn(found, path, n);
		path += n + (path[n] == '.');
	}
	return found;
}

const char *member_text(const json_t *j, const char *path)
{
	const char *text = json_string_value(member_get(j, path));

	return text ? text : "";
}

int64_t member_number(const json_t *j, const char *path)
{
	const json_t *v = member_get(j, path);

	return json_is_integer(v) ? (int64_t)json_integer_value(v) : -1;
}

bool member_is(const json_t *j, const char *path, const char *text)
{
	return strcmp(member_text(j, path), text) == 0;
}

bool member_true(const json_t *j, const char *path)
{
	return json_is_true(member_get(j, path));
}

int member_set(json_t *j, const char *path, json_t *value)
{
	const char *dot = strchr(path, '.');
	json_t *inner;

	if (!dot)
		return json_object_set_new(j, path, value);
	inner = json_object_getn(j, path, (size_t)(dot - path));
	if (!json_is_object(inner)) {
		inner = json_object();
		if (json_object_setn_new(j, path, (size_t)(dot - path), inner) < 0) {
			json_decref(value);
			return -1;
		}
	}
	return member_set(inner, dot + 1, value);
}

int member_sort(json_t *array, int (*compare)(const void *, const void *))
{
	size_t n = json_array_size(array);
	auto_free json_t **items = calloc(n + 1, sizeof(json_t *));

	if (!items)
		return -1;
	for (size_t i = 0; i < n; i++)
		items[i] = json_incref(json_array_get(array, i));
	qsort(items, n, sizeof(json_t *), compare);
	json_array_clear(array);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, items[i]);
	return 0;
}
