/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/unenforced.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/member.h"

static bool is_shown(const json_t *item)
{
	static const char *const shown[] = { "memory_bytes", "disk_bytes", "pids", "cpus" };

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (member_is(item, "limit", shown[i]))
			return true;
	return false;
}

const char *unenforced_mark(const json_t *list, const char *limit)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (member_is(item, "limit", limit))
			return " (not enforced)";
	}
	return "";
}

static void add_name(char buf[FIELD_TEXT], const json_t *item)
{
	size_t n = strlen(buf);

	snprintf(buf + n, FIELD_TEXT - n, "%s%.40s", n ? ", " : "", member_text(item, "limit"));
}

const char *unenforced_names(const json_t *list, char buf[FIELD_TEXT])
{
	json_t *item;
	size_t i;

	buf[0] = '\0';
	json_array_foreach (list, i, item) {
		if (is_shown(item))
			add_name(buf, item);
	}
	return buf;
}

/* Names of all items from `first` on with its reason; "" if an item before it has the same. */
static void join_names(const json_t *list, size_t first, bool shown, char buf[FIELD_TEXT])
{
	const char *reason = member_text(json_array_get(list, first), "reason");
	json_t *item;
	size_t i;

	buf[0] = '\0';
	json_array_foreach (list, i, item) {
		if ((shown && !is_shown(item)) || !member_is(item, "reason", reason))
			continue;
		if (i < first) {
			buf[0] = '\0';
			return;
		}
		add_name(buf, item);
	}
}

static void add_lines(struct field_table *t, const char *title, const json_t *list, bool shown)
{
	char names[FIELD_TEXT], line[2 * FIELD_TEXT];
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		join_names(list, i, shown, names);
		snprintf(line, sizeof(line), "%s: %s", names, member_text(item, "reason"));
		if (*names && (!shown || is_shown(item)))
			field_add_line(t, title, line);
	}
}

void unenforced_add_lines(struct field_table *t, const char *title, json_t *list)
{
	add_lines(t, title, list, false);
}

void unenforced_add_shown(struct field_table *t, const char *title, json_t *list)
{
	add_lines(t, title, list, true);
}
