/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/parser.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* shell_parse(), which has the text, adds the line and column. */
int fail_at(struct parser *p, uint32_t offset, const char *what)
{
	err_set(p->err, ERR_INVALID, "%s", what);
	p->err->sys = (int)offset;
	return -1;
}

int fail_no_memory(struct parser *p)
{
	return err_sys(p->err, ENOMEM, "command");
}

int enter(struct parser *p)
{
	if (++p->depth <= SHELL_DEPTH_MAX)
		return 0;
	return fail_at(p, place(p, p->pos), "nested too deep");
}

/* ---- memory ---------------------------------------------------------------------------------- */

int put_char(struct parser *p, char c, uint32_t offset)
{
	size_t n = p->nchars;
	uint32_t *added_offset;
	char *added;

	if (p->nchars >= STACK_MAX) {
		err_set(p->err, ERR_LIMIT, "command: too complex to check against a policy");
		p->err->sys = E2BIG;
		return -1;
	}
	added = vec_push(&p->chars, &n, STACK_MAX);
	n = p->nchars;
	added_offset = added ? vec_push(&p->offsets, &n, STACK_MAX) : NULL;
	if (!added_offset)
		return fail_no_memory(p);
	*added = c;
	*added_offset = offset;
	p->nchars = n;
	return 0;
}

struct word *push_word(struct parser *p)
{
	struct word *w = vec_push(&p->words, &p->nwords, SIZE_MAX);

	if (!w) {
		(void)fail_no_memory(p);
		return NULL;
	}
	*w = (struct word){ .at = p->nchars, .start = p->pos, .offset = place(p, p->pos) };
	return w;
}

/* Copies characters without a NUL. */
static char *copy_text(const char *s, size_t len)
{
	char *copy = malloc(len + 1);

	if (copy && len)
		memcpy(copy, s, len);
	if (copy)
		copy[len] = '\0';
	return copy;
}

int note(struct parser *p, enum shell_kind kind, const char *name, size_t len, uint32_t offset)
{
	struct found *f;

	if (p->nfound >= SHELL_WORDS_MAX) {
		err_set(p->err, ERR_LIMIT, "command: more than %d programs", SHELL_WORDS_MAX);
		p->err->sys = E2BIG;
		return -1;
	}
	f = vec_push(&p->found, &p->nfound, SHELL_WORDS_MAX);
	if (!f)
		return fail_no_memory(p);
	*f = (struct found){ .name = copy_text(name, len),
			     .offset = offset,
			     .order = (uint32_t)p->nfound - 1,
			     .kind = kind,
			     .in_function = p->in_function > 0,
			     .no_function = p->in_other > 0 };
	return f->name ? 0 : fail_no_memory(p);
}

static int add_function(struct parser *p, const char *name, size_t len, uint32_t offset,
			enum function_rank rank)
{
	struct function *f = vec_push(&p->functions, &p->nfunctions, SIZE_MAX);

	if (!f)
		return fail_no_memory(p);
	*f = (struct function){ .name = copy_text(name, len), .offset = offset, .rank = rank };
	return f->name ? 0 : fail_no_memory(p);
}

/* bash rejects function names with quotes or expansions. */
int note_function(struct parser *p, const struct word *w)
{
	bool sure = !p->in_subshell && !p->in_function && !p->unsure && !w->flags;

	return add_function(p, chars_of(p, w), w->len, w->offset,
			    sure ? FUNCTION_SURE : FUNCTION_UNSURE);
}

int note_unset(struct parser *p, const char *name, size_t len)
{
	return add_function(p, name, len, 0, FUNCTION_UNSET);
}

struct mark mark_of(const struct parser *p)
{
	return (struct mark){ p->pos, p->nchars, p->nwords, p->nfound, p->nfunctions };
}

void back_to(struct parser *p, const struct mark *m)
{
	p->pos = m->pos;
	p->nchars = m->nchars;
	p->nwords = m->nwords;
	while (p->nfound > m->nfound)
		free(p->found[--p->nfound].name);
	while (p->nfunctions > m->nfunctions)
		free(p->functions[--p->nfunctions].name);
}

void parser_fini(struct parser *p)
{
	back_to(p, &(struct mark){ 0 });
	free(p->chars);
	free(p->offsets);
	free(p->words);
	free(p->found);
	free(p->functions);
}
