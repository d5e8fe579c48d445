/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shell/shell_parse.h"
#include "shell/started_programs.h"

static int by_name(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	if (r || x->rank != y->rank)
		return r ? r : (int)x->rank - (int)y->rank;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_offset(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* The first function of this name and rank, or NULL. */
static const struct function *find_function(const struct parser *p, char *name,
					    enum function_rank rank)
{
	struct function key = { .name = name, .rank = rank };
	size_t low = 0, high = p->nfunctions;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (by_name(&p->functions[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->nfunctions && p->functions[low].rank == rank &&
			       strcmp(p->functions[low].name, name) == 0
		       ? &p->functions[low]
		       : NULL;
}

static bool is_named(const struct parser *p, const struct found *f)
{
	return f->kind < SHELL_UNKNOWN && !f->no_function &&
	       (find_function(p, f->name, FUNCTION_SURE) ||
		find_function(p, f->name, FUNCTION_UNSURE));
}

/* The offset of the first call: no function body runs before it. `found` is in order of the text.
 */
static uint32_t first_call(const struct parser *p)
{
	for (size_t i = 0; i < p->nfound; i++)
		if (!p->found[i].in_function && is_named(p, &p->found[i]))
			return p->found[i].offset;
	return UINT32_MAX;
}

/* True if the function is certainly defined when the command runs: by text before the command or,
 * for a command in a function body, before the first call. */
static bool is_function(const struct parser *p, const struct found *f, uint32_t call)
{
	const struct function *known = find_function(p, f->name, FUNCTION_SURE);

	if (!known || f->no_function || p->unset_any || find_function(p, f->name, FUNCTION_UNSET))
		return false;
	return known->offset < f->offset || (f->in_function && known->offset < call);
}

struct where {
	size_t offset;
	unsigned line, column;
};

static void advance_position(struct where *w, const char *text, size_t offset)
{
	for (; w->offset < offset; w->offset++) {
		w->column = text[w->offset] == '\n' ? 1 : w->column + 1;
		w->line += text[w->offset] == '\n';
	}
}

static int copy_words(struct parser *p, const char *text, struct shell_words *ret)
{
	struct shell_word *items = calloc(p->nfound + 1, sizeof(*items));
	struct where at = { 0, 1, 1 };
	uint32_t call;

	if (!items)
		return fail_no_memory(p);
	if (p->nfunctions)
		qsort(p->functions, p->nfunctions, sizeof(*p->functions), by_name);
	if (p->nfound)
		qsort(p->found, p->nfound, sizeof(*p->found), by_offset);
	call = first_call(p);
	for (size_t i = 0; i < p->nfound; i++) {
		struct found *f = &p->found[i];

		advance_position(&at, text, f->offset);
		if (f->kind < SHELL_UNKNOWN && is_function(p, f, call))
			f->kind = SHELL_FUNCTION;
		items[i] = (struct shell_word){ .name = f->name,
						.offset = f->offset,
						.line = at.line,
						.column = at.column,
						.kind = f->kind };
	}
	*ret = (struct shell_words){ .items = items, .count = p->nfound };
	p->nfound = 0; /* `items` owns the names now */
	return 0;
}

/* Adds the line and column to an error of fail_at(). */
static int add_position(const char *text, struct err *err)
{
	struct where at = { 0, 1, 1 };
	struct err was = *err;

	if (err->code != ERR_INVALID)
		return -1;
	advance_position(&at, text, (size_t)was.sys);
	return err_set(err, ERR_INVALID, "command: %s at line %u, column %u", was.msg, at.line,
		       at.column);
}

static int fail_too_long(struct err *err)
{
	err_set(err, ERR_LIMIT, "command: too long to check against a policy (maximum: %d bytes)",
		SHELL_TEXT_MAX);
	err->sys = E2BIG;
	return -1;
}

int shell_parse(const char *text, size_t len, struct shell_words *ret, struct err *err)
{
	auto_fini(parser_fini) struct parser p = { .src = { .text = text, .end = len },
						   .err = err };

	if (len > SHELL_TEXT_MAX)
		return fail_too_long(err);
	if (memchr(text, '\0', len))
		return err_set(err, ERR_INVALID, "command: must not contain a NUL byte");
	if (read_nested(&p, END_TEXT, 0) < 0)
		return add_position(text, err);
	return copy_words(&p, text, ret);
}

static char *join_arguments(const char *const *argv, size_t *ret_len)
{
	size_t len = 0;
	char *text, *to;

	for (size_t i = 0; argv[i]; i++)
		len += strlen(argv[i]) + 1;
	to = text = malloc(len + 1);
	if (!text)
		return NULL;
	for (size_t i = 0; argv[i]; i++) {
		to = stpcpy(to, argv[i]);
		*to++ = ' ';
	}
	*to = '\0';
	*ret_len = len;
	return text;
}

static int parse_arguments(struct parser *p, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++, p->pos++) {
		struct word *w = push_word(p);

		if (!w)
			return -1;
		w->flags = WORD_QUOTED;
		w->len = strlen(argv[i]);
		w->end = w->start + w->len;
		for (const char *c = argv[i]; *c; c++, p->pos++)
			if (put_char(p, *c, (uint32_t)p->pos) < 0)
				return -1;
	}
	return p->nwords ? note_command(p, 0, AS_PROGRAM) : 0;
}

int shell_parse_argv(const char *const *argv, struct shell_words *ret, struct err *err)
{
	auto_fini(parser_fini) struct parser p = { .err = err };
	auto_free char *text = NULL;
	size_t len = 0;

	text = join_arguments(argv, &len);
	if (!text)
		return err_sys(err, ENOMEM, "command");
	if (len > SHELL_TEXT_MAX)
		return fail_too_long(err);
	p.src = (struct source){ .text = text, .end = len };
	if (parse_arguments(&p, argv) < 0)
		return add_position(text, err);
	return copy_words(&p, text, ret);
}

void shell_words_fini(struct shell_words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->items[i].name);
	free(w->items);
	*w = (struct shell_words){ 0 };
}
