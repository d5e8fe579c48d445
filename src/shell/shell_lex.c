/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/shell_lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shell/shell_parse.h"
#include "shell/shell_quote.h"
#include "shell/shell_variables.h"

bool is_meta(char c)
{
	return c == '\0' || strchr(" \t\n;&|()<>", c) != NULL;
}

bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* bash removes continued lines before parsing. */
static void skip_continued(struct parser *p)
{
	while (peek(p, 0) == '\\' && peek(p, 1) == '\n')
		p->pos += 2;
}

void skip_blanks(struct parser *p)
{
	for (;;) {
		skip_continued(p);
		if (peek(p, 0) != ' ' && peek(p, 0) != '\t')
			break;
		p->pos++;
	}
	if (peek(p, 0) == '#')
		while (peek(p, 0) && peek(p, 0) != '\n')
			p->pos++;
}

/* ---- substitutions --------------------------------------------------------------------------- */

/* Between backticks, a backslash before these characters belongs to the outer level. */
static bool is_unquoted_there(char c, bool quoted)
{
	return c == '`' || c == '\\' || c == '$' || (quoted && c == '"');
}

int read_backtick(struct parser *p, bool quoted)
{
	uint32_t opened = place(p, p->pos++);
	size_t from = p->nchars;
	int r;

	for (; peek(p, 0) && peek(p, 0) != '`'; p->pos++) {
		if (peek(p, 0) == '\\' && is_unquoted_there(peek(p, 1), quoted))
			p->pos++;
		if (put_char(p, peek(p, 0), place(p, p->pos)) < 0)
			return -1;
	}
	if (!peek(p, 0))
		return fail_at(p, opened, "unclosed `");
	p->pos++;
	p->in_subshell++;
	r = read_text(p, p->chars + from, p->offsets + from, p->nchars - from, false);
	p->in_subshell--;
	p->nchars = from;
	return r;
}

/* A quoted string inside "${...}": bash finds its end as for a quoted string, but still expands its
 * content. */
static int read_half_quoted(struct parser *p)
{
	size_t from = p->nchars;
	int r = read_single(p);

	if (r == 0)
		r = read_text(p, p->chars + from, p->offsets + from, p->nchars - from, true);
	p->nchars = from;
	return r;
}

static int read_process(struct parser *p)
{
	uint32_t opened = place(p, p->pos);

	p->pos++;
	skip_continued(p);
	p->pos++;
	return read_nested(p, END_PAREN, opened);
}

static bool is_process(const struct parser *p)
{
	size_t n = 1;

	if (peek(p, 0) != '<' && peek(p, 0) != '>')
		return false;
	while (peek(p, n) == '\\' && peek(p, n + 1) == '\n')
		n += 2;
	return peek(p, n) == '(';
}

/* Reads one step inside ${...}, $[...] or $((...)). */
static int read_inner(struct parser *p, bool quoted, unsigned *flags)
{
	switch (peek(p, 0)) {
	case '\\':
		p->pos += peek(p, 1) ? 2 : 1;
		return 0;
	case '"':
		return read_double(p, flags);
	case '`':
		return read_backtick(p, quoted);
	case '$':
		return read_dollar(p, quoted, flags);
	default:
		if (!quoted && is_process(p))
			return read_process(p);
		p->pos++;
		return 0;
	}
}

/* ${x@P} expands the value of the variable, including commands. */
static int read_at(struct parser *p, uint32_t opened)
{
	p->pos++;
	skip_continued(p);
	if (peek(p, 0) != 'P')
		return 0;
	p->pos++;
	skip_continued(p);
	return peek(p, 0) == '}' ? note(p, SHELL_SETTING, "@P", 2, opened) : 0;
}

static int read_braces(struct parser *p, bool quoted, uint32_t opened, unsigned *flags)
{
	size_t from = p->nchars;

	if (note_expansion(p) < 0)
		return -1;
	for (;;) {
		int r = 0;

		switch (peek(p, 0)) {
		case '\0':
			return fail_at(p, opened, "unclosed ${");
		case '}':
			p->pos++;
			p->nchars = from;
			return 0;
		case '\'':
			r = quoted ? read_half_quoted(p) : read_single(p);
			break;
		case '@': /* "${x[@]}" */
			*flags |= WORD_SPLITS;
			r = read_at(p, opened);
			break;
		default:
			r = read_inner(p, quoted, flags);
		}
		if (r < 0)
			return -1;
	}
}

static int read_brackets(struct parser *p, uint32_t opened)
{
	size_t from = p->nchars;
	unsigned ignored = 0, deep = 0;

	for (;; p->nchars = from) {
		char c = peek(p, 0);

		if (!c)
			return fail_at(p, opened, "unclosed [");
		if (c == ']' && !deep--) {
			p->pos++;
			return 0;
		}
		deep += c == '[';
		if (read_inner(p, true, &ignored) < 0)
			return -1;
	}
}

int read_arithmetic(struct parser *p)
{
	size_t from = p->nchars;
	unsigned ignored = 0, deep = 0;

	for (;; p->nchars = from) {
		char c = peek(p, 0);

		if (c == ')' && !deep && peek(p, 1) == ')') {
			p->pos += 2;
			return 0;
		}
		if (!c || (c == ')' && !deep)) {
			(void)fail_at(p, place(p, p->pos), "unclosed ((");
			return 1;
		}
		deep += c == '(';
		deep -= c == ')';
		if (read_inner(p, true, &ignored) < 0)
			return 1;
	}
}

int try_arithmetic(struct parser *p)
{
	struct mark start = mark_of(p);
	unsigned depth = p->depth;
	int r;

	if (peek(p, 0) != '(' || p->retries >= RETRIES_MAX)
		return 1;
	p->pos++;
	if (enter(p) < 0)
		return -1;
	r = read_arithmetic(p);
	p->depth = depth;
	if (r == 0 || p->err->code == ERR_LIMIT)
		return r == 0 ? 0 : -1;
	p->retries++;
	back_to(p, &start);
	return 1;
}

/* At the first parenthesis. */
static int read_parens(struct parser *p, uint32_t opened)
{
	int r;

	p->pos++;
	r = try_arithmetic(p);
	return r > 0 ? read_nested(p, END_PAREN, opened) : r;
}

static void skip_parameter(struct parser *p, bool quoted, unsigned *flags)
{
	if (peek(p, 0) == '@' && quoted)
		*flags |= WORD_SPLITS;
	if (!is_name_char(peek(p, 0)) || isdigit((unsigned char)peek(p, 0))) {
		p->pos++;
		return;
	}
	while (is_name_char(peek(p, 0)))
		p->pos++;
}

static bool is_parameter(char c)
{
	return is_name_char(c) || (c && strchr("@*#?-$!", c));
}

/* True for ${ command; } of newer shells. */
static bool is_brace_command(const struct parser *p)
{
	return peek(p, 0) && strchr(" \t\n|", peek(p, 0));
}

/* $(, $[ or ${ at the bracket. */
static int read_opened(struct parser *p, bool quoted, uint32_t opened, unsigned *flags)
{
	char c = peek(p, 0);
	int r;

	if (enter(p) < 0)
		return -1;
	if (c == '(') {
		r = read_parens(p, opened);
	} else {
		p->pos++;
		r = c == '['		  ? read_brackets(p, opened)
		    : is_brace_command(p) ? read_nested(p, END_BRACE, opened)
					  : read_braces(p, quoted, opened, flags);
	}
	if (r == 0)
		leave(p);
	return r;
}

int read_dollar(struct parser *p, bool quoted, unsigned *flags)
{
	uint32_t opened = place(p, p->pos);
	unsigned dynamic = WORD_DYNAMIC | (quoted ? 0u : WORD_SPLITS);

	p->pos++;
	skip_continued(p);
	if (peek(p, 0) == '\'' && !quoted) {
		*flags |= WORD_QUOTED;
		return read_ansi(p);
	}
	if (peek(p, 0) == '"' && !quoted)
		return read_double(p, flags);
	if (peek(p, 0) && strchr("([{", peek(p, 0))) {
		*flags |= dynamic;
		return read_opened(p, quoted, opened, flags);
	}
	if (!is_parameter(peek(p, 0)))
		return put_char(p, '$', opened);
	*flags |= dynamic;
	skip_parameter(p, quoted, flags);
	return 0;
}

/* Reads one step inside double quotes or a here-document. */
static int read_quoted_step(struct parser *p, unsigned *flags)
{
	char c = peek(p, 0);

	if (c == '$')
		return read_dollar(p, true, flags);
	if (c == '`') {
		*flags |= WORD_DYNAMIC;
		return read_backtick(p, true);
	}
	if (c == '\\' && peek(p, 1) == '\n') {
		p->pos += 2;
		return 0;
	}
	if (c == '\\' && peek(p, 1) && strchr("$`\"\\", peek(p, 1)))
		c = peek(p, 1), p->pos++;
	p->pos++;
	return put_char(p, c, place(p, p->pos - 1));
}

int read_double(struct parser *p, unsigned *flags)
{
	uint32_t opened = place(p, p->pos++);

	*flags |= WORD_QUOTED;
	if (enter(p) < 0)
		return -1;
	while (peek(p, 0) != '"') {
		if (!peek(p, 0))
			return fail_at(p, opened, "unclosed \"");
		if (read_quoted_step(p, flags) < 0)
			return -1;
	}
	p->pos++;
	leave(p);
	return 0;
}

int read_expanded(struct parser *p)
{
	size_t from = p->nchars;
	unsigned ignored = 0;

	for (; peek(p, 0); p->nchars = from)
		if (read_quoted_step(p, &ignored) < 0)
			return -1;
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* State of an unquoted word. */
struct reading {
	size_t word; /* its number */
	bool command; /* it may be an assignment */
	bool plain; /* nothing was quoted or expanded yet */
	bool glob, brace, comma;
};

static size_t length(const struct parser *p, const struct reading *rd)
{
	return p->nchars - p->words[rd->word].at;
}

static const char *value(const struct parser *p, const struct reading *rd)
{
	return p->chars + p->words[rd->word].at;
}

static bool is_identifier(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(s[i]))
			return false;
	return n > 0 && !isdigit((unsigned char)s[0]);
}

/* True for `name=` and `name+=`. */
static bool is_assignment(const struct parser *p, const struct reading *rd)
{
	size_t n = length(p, rd);
	const char *s = value(p, rd);

	if (!rd->plain || n < 2 || s[n - 1] != '=')
		return false;
	n -= s[n - 2] == '+' ? 2 : 1;
	return is_identifier(s, n);
}

/* name[...] at the `[`. */
static int read_subscript(struct parser *p, struct reading *rd)
{
	uint32_t opened = place(p, p->pos);
	struct mark start = mark_of(p);

	p->pos++;
	if (read_brackets(p, opened) < 0)
		return -1;
	if (peek(p, 0) == '=' || (peek(p, 0) == '+' && peek(p, 1) == '=')) {
		p->words[rd->word].flags |= WORD_ASSIGNS;
		return 0;
	}
	p->retries++;
	back_to(p, &start);
	rd->glob = true;
	p->pos++;
	return put_char(p, '[', opened);
}

/* name=( at the parenthesis: words in lines. */
static int read_array(struct parser *p)
{
	uint32_t opened = place(p, p->pos++);
	struct mark start = mark_of(p);

	if (enter(p) < 0)
		return -1;
	for (;;) {
		skip_blanks(p);
		if (peek(p, 0) == ')')
			break;
		if (!peek(p, 0))
			return fail_at(p, opened, "unclosed (");
		if (is_meta(peek(p, 0)) && !is_process(p))
			p->pos++;
		else if (read_word(p, false) < 0)
			return -1;
		p->nwords = start.nwords;
		p->nchars = start.nchars;
	}
	p->pos++;
	leave(p);
	return 0;
}

/* ?(a|b) and its like, as far as a pattern goes. */
static int read_pattern(struct parser *p)
{
	uint32_t opened = place(p, p->pos++);
	unsigned ignored = 0, deep = 0;

	for (;;) {
		char c = peek(p, 0);

		if (!c || c == '\n')
			return fail_at(p, opened, "unclosed (");
		if (c == ')' && !deep--)
			break;
		deep += c == '(';
		if ((c == '\'' ? read_single(p) : read_inner(p, false, &ignored)) < 0)
			return -1;
	}
	p->pos++;
	return 0;
}

static int read_plain(struct parser *p, struct reading *rd)
{
	char c = peek(p, 0);

	if (c == '[' && rd->command && rd->plain && p->retries < RETRIES_MAX &&
	    is_identifier(value(p, rd), length(p, rd)))
		return read_subscript(p, rd);
	rd->glob |= c == '*' || c == '?' || c == '[';
	rd->brace |= c == '{';
	rd->comma |= rd->brace && (c == ',' || (c == '.' && peek(p, 1) == '.'));
	if (c == '}' && rd->comma)
		p->words[rd->word].flags |= WORD_DYNAMIC | WORD_SPLITS;
	if (c == '~' && !length(p, rd))
		p->words[rd->word].flags |= WORD_DYNAMIC;
	p->pos++;
	if (put_char(p, c, place(p, p->pos - 1)) < 0)
		return -1;
	if (c == '=' && is_assignment(p, rd)) {
		p->words[rd->word].flags |= WORD_ASSIGNS;
		rd->glob = rd->brace = false;
	}
	return 0;
}

static int read_escaped(struct parser *p)
{
	if (peek(p, 1) == '\n') {
		p->pos += 2;
		return 0;
	}
	p->pos += peek(p, 1) ? 2 : 1; /* the last byte of a text stands for itself */
	return put_char(p, p->src.text[p->pos - 1], place(p, p->pos - 1));
}

/* Reads a character that may end the word. 1: it does. */
static int read_meta(struct parser *p, struct reading *rd, unsigned *flags)
{
	size_t n = length(p, rd);

	if (is_process(p)) {
		*flags |= WORD_DYNAMIC;
		return read_process(p);
	}
	if (peek(p, 0) != '(' || !n)
		return 1;
	if (value(p, rd)[n - 1] == '=' && (p->words[rd->word].flags & WORD_ASSIGNS)) {
		*flags |= WORD_DYNAMIC;
		return read_array(p);
	}
	if (!strchr("?*+@!", value(p, rd)[n - 1]) || (rd->command && n == 1))
		return 1;
	*flags |= WORD_DYNAMIC | WORD_SPLITS;
	return read_pattern(p);
}

/* Reads one step. 1: the word ended before it. */
static int read_step(struct parser *p, struct reading *rd, unsigned *flags)
{
	char c = peek(p, 0);
	bool continued = c == '\\' && peek(p, 1) == '\n';

	if (is_meta(c))
		return read_meta(p, rd, flags);
	if (!strchr("\\'\"$`", c))
		return read_plain(p, rd);
	rd->plain &= continued;
	if (c == '\\' || c == '\'')
		*flags |= continued ? 0u : WORD_QUOTED;
	if (c == '\\')
		return read_escaped(p);
	if (c == '\'')
		return read_single(p);
	if (c == '"')
		return read_double(p, flags);
	if (c == '$')
		return read_dollar(p, false, flags);
	*flags |= WORD_DYNAMIC | WORD_SPLITS;
	return read_backtick(p, false);
}

/* Only for these commands a bracket starts a subscript. */
static bool is_test(const char *s, size_t n)
{
	return s[0] == '[' && (n == 1 || (n == 2 && s[1] == '['));
}

int read_word(struct parser *p, bool command)
{
	struct reading rd = { .word = p->nwords, .command = command, .plain = true };
	unsigned flags = 0;
	struct word *w;
	int r = 0;

	if (!push_word(p))
		return -1;
	while (r == 0)
		r = read_step(p, &rd, &flags);
	if (r < 0)
		return -1;
	w = &p->words[rd.word];
	w->len = p->nchars - w->at;
	w->end = p->pos;
	w->flags |= flags;
	if (rd.glob && !is_test(p->chars + w->at, w->len) && !(w->flags & WORD_ASSIGNS))
		w->flags |= WORD_DYNAMIC | WORD_SPLITS;
	return 0;
}
