/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that the parser finds in a text, as one line. */
#ifndef LODGE_TESTS_SHELL_FINDS_H
#define LODGE_TESTS_SHELL_FINDS_H

#include "base/array.h"
#include "shell/shell.h"
#include "tap.h"

/* Programs are shown by name, builtins as :name, functions as name(), unknown ones as ?text,
 * settings as !name. */
static void describe(const struct shell_words *w, char *ret, size_t size)
{
	static const char *const before[] = { "", ":", "", "?", "!" };
	static const char *const after[] = { "", "", "()", "", "" };
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < w->count && len < size; i++)
		len += (size_t)snprintf(ret + len, size - len, "%s%s%s%s", i ? " " : "",
					before[w->items[i].kind], w->items[i].name,
					after[w->items[i].kind]);
}

static bool finds(const char *text, const char *want)
{
	struct shell_words w = { 0 };
	struct err err = { 0 };
	char got[512];
	bool same;

	if (shell_parse(text, strlen(text), &w, &err) < 0)
		snprintf(got, sizeof(got), "%s", err.msg);
	else
		describe(&w, got, sizeof(got));
	shell_words_fini(&w);
	same = strcmp(got, want) == 0;
	if (!same)
		printf("# %s\n#   got  %s\n#   want %s\n", text, got, want);
	return same;
}

struct example {
	const char *text, *want;
};

#define CHECK_ALL(cases)                                                                           \
	do {                                                                                       \
		bool all = true;                                                                   \
		for (size_t i = 0; i < ARRAY_LEN(cases); i++)                                      \
			all &= finds(cases[i].text, cases[i].want);                                \
		CHECK(all);                                                                        \
	} while (0)

#endif
