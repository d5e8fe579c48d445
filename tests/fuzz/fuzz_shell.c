/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a bash text: a result or an error, with names whose positions are in the text and in
 * order. A text in single quotes after `bash -c --` must give the same result as the text itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shell/shell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct shell_words *w, size_t size)
{
	size_t last = 0;

	must(w->count <= SHELL_WORDS_MAX);
	for (size_t i = 0; i < w->count; i++) {
		must(w->items[i].offset >= last && w->items[i].offset <= size);
		must(w->items[i].line > 0 && w->items[i].column > 0);
		last = w->items[i].offset;
	}
}

static void check_same(const struct shell_words *a, const struct shell_words *b, size_t moved)
{
	must(b->count == a->count + 1 && strcmp(b->items[0].name, "bash") == 0);
	for (size_t i = 0; i < a->count; i++)
		must(b->items[i + 1].offset == a->items[i].offset + moved);
}

static void check_quoted(const char *text, size_t size, const struct shell_words *want)
{
	static const char before[] = "bash -c -- '";
	const size_t n = sizeof(before) - 1;
	struct shell_words w = { 0 };
	struct err err;
	char *quoted;

	if (!size || memchr(text, '\'', size) || want->count >= SHELL_WORDS_MAX)
		return;
	quoted = malloc(size + n + 1);
	must(quoted != NULL);
	memcpy(quoted, before, n);
	memcpy(quoted + n, text, size);
	quoted[size + n] = '\'';
	if (shell_parse(quoted, size + n + 1, &w, &err) == 0)
		check_same(want, &w, n);
	shell_words_fini(&w);
	free(quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text =
		malloc(size ? size : 1); /* of exactly this size, so that ASan detects an overrun */
	struct shell_words w = { 0 };
	struct err err = { 0 };

	must(text != NULL);
	if (size)
		memcpy(text, data, size);
	if (shell_parse(text, size, &w, &err) == 0) {
		check(&w, size);
		check_quoted(text, size, &w);
	} else {
		must((err.code == ERR_INVALID || err.code == ERR_LIMIT) && *err.msg);
	}
	shell_words_fini(&w);
	free(text);
	return 0;
}
