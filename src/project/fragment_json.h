/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_FRAGMENT_JSON_H
#define LODGE_PROJECT_FRAGMENT_JSON_H

#include "base/json.h"
#include "project/fragment.h"

int fragment_parse_files(const char *json, size_t len, struct store_file_list *ret,
			 struct err *err);
int fragment_files_from_json(struct json_t *map, struct store_file_list *ret, struct err *err);
/* Normalizes "a//b" to "a/b", sorts the files by directory, and refuses paths that cannot be
 * unpacked. */
int fragment_check_files(struct store_file_list *l, struct err *err);
/* As fragment_opts.files: base64 if the content is not UTF-8, has control characters, or would be
 * read back as base64. */
void fragment_files_to_json(struct json_out *j, const char *key,
			    const struct store_file_list *files);

#endif
