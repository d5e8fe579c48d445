/* SPDX-License-Identifier: Apache-2.0 */
/* Redirections, and here-documents, whose text comes later than their place in a command. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "shell/inside.h"

/* Bytes of `2`, `{fd}` or nothing before an operator; -1: there is no redirection. */
static int before_operator(const struct parser *p)
{
	size_t n = 0;

	if (peek(p, 0) == '{') {
		for (n = 1; isalnum((unsigned char)peek(p, n)) || peek(p, n) == '_'; n++)
			;
		if (n == 1 || peek(p, n) != '}')
			return -1;
		n++;
	} else {
		while (isdigit((unsigned char)peek(p, n)))
			n++;
	}
	if (n > INT16_MAX || (peek(p, n) != '<' && peek(p, n) != '>'))
		return -1;
	return n == 0 && peek(p, 1) == '(' ? -1 : (int)n;
}

static void skip_operator(struct parser *p)
{
	static const char *const operators[] = { "<<<", "<<-", "&>>", "<<", "<&", "<>",
						 ">>",	">&",  ">|",  "&>", "<",  ">" };

	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		size_t n = strlen(operators[i]);

		if (p->src.end - p->pos >= n && !memcmp(p->src.text + p->pos, operators[i], n)) {
			p->pos += n;
			return;
		}
	}
}

/* ---- here-documents -------------------------------------------------------------------------- */

/* What ends it is the word as it stands, without its quotes. */
static int add_here(struct parser *p, const struct word *w, bool tabs)
{
	struct here *h = &p->heres->items[p->heres->count];

	if (p->heres->count >= HERES_MAX || w->end - w->start >= HERE_WORD) {
		err_set(p->err, ERR_LIMIT, "command: too many here-documents in a line");
		p->err->sys = E2BIG;
		return -1;
	}
	*h = (struct here){ .tabs = tabs, .quoted = (w->flags & WORD_QUOTED) != 0 };
	for (size_t i = w->start; i < w->end; i++) {
		char c = p->src.text[i];

		if (c == '\\' && i + 1 < w->end)
			c = p->src.text[++i];
		else if (c == '\'' || c == '"')
			continue;
		if (c != '\n')
			h->word[h->len++] = c;
	}
	p->heres->count++;
	return 0;
}

/* Of a delimiter nothing is run, whatever it looks like. */
static int read_delimiter(struct parser *p, bool tabs)
{
	struct mark start = mark_of(p);
	struct word w;

	if (read_word(p, false) < 0)
		return -1;
	w = p->words[start.nwords];
	start.pos = p->pos;
	back_to(p, &start);
	return add_here(p, &w, tabs);
}

int read_redirection(struct parser *p)
{
	int n = peek(p, 0) == '&' && peek(p, 1) == '>' ? 0 : before_operator(p);
	struct mark start = mark_of(p);
	bool here, tabs;
	int r = 0;

	if (n < 0)
		return 0;
	p->pos += (size_t)n;
	here = peek(p, 0) == '<' && peek(p, 1) == '<' && peek(p, 2) != '<';
	tabs = here && peek(p, 2) == '-';
	skip_operator(p);
	skip_blanks(p);
	if (here)
		r = read_delimiter(p, tabs);
	else
		r = read_word(p, false);
	p->nwords = start.nwords;
	p->nchars = start.nchars;
	return r < 0 ? -1 : 1;
}

static bool is_delimiter(const struct here *h, const char *line, size_t len)
{
	for (; h->tabs && len && *line == '\t'; line++)
		len--;
	return len == h->len && !memcmp(line, h->word, len);
}

static bool goes_on(const char *line, size_t len)
{
	size_t n = 0;

	while (n < len && line[len - 1 - n] == '\\')
		n++;
	return n % 2 == 1;
}

/* Moves behind the document; *ret_end is where its text ends. */
static void find_end(struct parser *p, const struct here *h, size_t *ret_end)
{
	bool joined = false;

	while (p->pos < p->src.end) {
		const char *line = p->src.text + p->pos;
		const char *nl = memchr(line, '\n', p->src.end - p->pos);
		size_t len = nl ? (size_t)(nl - line) : p->src.end - p->pos;

		*ret_end = p->pos;
		p->pos += len + (nl != NULL);
		if (!joined && is_delimiter(h, line, len))
			return;
		joined = !h->quoted && goes_on(line, len);
	}
	*ret_end = p->pos;
}

static int read_body(struct parser *p, size_t from, size_t to)
{
	struct source whole = p->src;
	size_t pos = p->pos;
	int r;

	if (enter(p) < 0)
		return -1;
	p->src.end = to;
	p->pos = from;
	r = read_expanded(p);
	p->src = whole;
	p->pos = pos;
	if (r == 0)
		leave(p);
	return r;
}

int read_heres(struct parser *p)
{
	struct heres *all = p->heres;

	for (size_t i = 0; i < all->count; i++) {
		size_t from = p->pos, to = from;

		find_end(p, &all->items[i], &to);
		if (!all->items[i].quoted && read_body(p, from, to) < 0)
			return -1;
	}
	all->count = 0;
	return 0;
}
