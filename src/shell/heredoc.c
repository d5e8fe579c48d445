/* SPDX-License-Identifier: Apache-2.0 */
/* Redirections and here-documents. The text of a here-document follows the line of its command. */
#include "shell/heredoc.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "shell/shell_lex.h"
#include "shell/started_programs.h"

/* Length of `2`, `{fd}` or nothing before an operator; -1 if there is no redirection. */
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

/* The delimiter is the word without its quotes. */
static int add_here(struct parser *p, const struct word *w, bool tabs)
{
	struct here *h = &p->heres->items[p->heres->count];

	if (p->heres->count >= HERES_MAX || w->len >= HERE_WORD) {
		err_set(p->err, ERR_LIMIT, "command: too many here-documents in a line");
		p->err->sys = E2BIG;
		return -1;
	}
	*h = (struct here){
		.tabs = tabs, .quoted = (w->flags & WORD_QUOTED) != 0, .len = w->len, .said = *w
	};
	if (w->len)
		memcpy(h->word, p->chars + w->at, w->len);
	p->heres->count++;
	return 0;
}

/* A delimiter is neither run nor expanded, whatever it contains. Shells differ in how they treat
 * quotes within one. */
static int read_delimiter(struct parser *p, bool tabs)
{
	struct mark start = mark_of(p);
	struct word w;

	if (read_word(p, false) < 0)
		return -1;
	w = p->words[start.nwords];
	if (w.start == p->pos)
		return fail_at(p, place(p, start.pos - 1), "<< without a delimiter");
	start.pos = p->pos;
	back_to(p, &start); /* its characters stay until the next here-document */
	if (!is_known(&w) && note_unknown(p, &w) < 0)
		return -1;
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

/* Reads one logical line, joining continued lines, and advances behind it. */
static bool read_line(struct parser *p, const struct here *h)
{
	bool same = true, begun = false;
	size_t n = 0;

	for (; peek(p, 0) && peek(p, 0) != '\n'; p->pos++) {
		if (!h->quoted && peek(p, 0) == '\\' && peek(p, 1) == '\n') {
			p->pos++;
			continue;
		}
		if (h->tabs && !begun && peek(p, 0) == '\t')
			continue;
		begun = true;
		same = same && n < h->len && h->word[n] == peek(p, 0);
		n++;
		if (h->quoted || peek(p, 0) != '\\' || !peek(p, 1))
			continue;
		p->pos++; /* an escaped backslash does not continue the line */
		same = same && n < h->len && h->word[n] == peek(p, 0);
		n++;
	}
	p->pos += peek(p, 0) == '\n';
	return same && n == h->len;
}

/* Advances behind the document; *ret_end is the end of its text. */
static int find_end(struct parser *p, const struct here *h, size_t *ret_end)
{
	while (p->pos < p->src.end) {
		*ret_end = p->pos;
		if (read_line(p, h))
			return 0;
	}
	*ret_end = p->pos;
	return is_known(&h->said) ? note_unknown(p, &h->said) : 0;
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

		if (find_end(p, &all->items[i], &to) < 0 ||
		    (!all->items[i].quoted && read_body(p, from, to) < 0))
			return -1;
	}
	all->count = 0;
	return 0;
}

int note_heres(struct parser *p)
{
	for (size_t i = 0; i < p->heres->count; i++)
		if (note_unknown(p, &p->heres->items[i].said) < 0)
			return -1;
	return 0;
}
