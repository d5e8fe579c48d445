/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/name_check.h"

#include <string.h>

#include "base/json.h"

int name_check(const char *field, const char *text, size_t size, struct err *err)
{
	if (!text || !*text)
		return err_set(err, ERR_INVALID, "%s: missing", field);
	if (strlen(text) >= size)
		return err_set(err, ERR_INVALID, "%s: longer than %zu bytes", field, size - 1);
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return err_set(err, ERR_INVALID, "%s: contains a control character", field);
	if (!json_is_utf8(text, strlen(text)))
		return err_set(err, ERR_INVALID, "%s: not valid UTF-8", field);
	return 0;
}

int name_check_optional(const char *field, const char *text, size_t size, struct err *err)
{
	return text && *text ? name_check(field, text, size, err) : 0;
}

int name_check_id(const char *field, const char *text, size_t size, struct err *err)
{
	if (name_check(field, text, size, err) < 0)
		return -1;
	if (strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return err_set(err, ERR_INVALID,
			       "%s: must not contain a slash nor be \".\" or \"..\"", field);
	return 0;
}
