/* SPDX-License-Identifier: Apache-2.0 */
/* Parses commands and lists. It accepts more than bash where that changes nothing (a `then` without
 * an `if`): bash rejects such a text itself. */
#include "shell/shell_parse.h"

#include <string.h>

#include "base/array.h"
#include "shell/heredoc.h"
#include "shell/shell_lex.h"
#include "shell/shell_variables.h"
#include "shell/started_programs.h"

static int read_command(struct parser *p, enum list_end end, bool *closed);

static bool is(const struct parser *p, const struct word *w, const char *s)
{
	return !(w->flags & WORD_QUOTED) && is_text(p, w, s);
}

static int next_line(struct parser *p)
{
	p->pos++;
	return read_heres(p);
}

static int skip_lines(struct parser *p)
{
	for (;;) {
		skip_blanks(p);
		if (peek(p, 0) != '\n')
			return 0;
		if (next_line(p) < 0)
			return -1;
	}
}

static void drop_words(struct parser *p, size_t nwords)
{
	if (p->nwords > nwords)
		p->nchars = p->words[nwords].at;
	p->nwords = nwords;
}

/* Reads redirections after a compound command. */
static int read_redirections(struct parser *p)
{
	int r;

	do {
		skip_blanks(p);
		r = read_redirection(p);
	} while (r > 0);
	return r;
}

static int read_body_of(struct parser *p, enum list_end end, uint32_t opened)
{
	if (enter(p) < 0 || read_list(p, end, opened) < 0)
		return -1;
	leave(p);
	return read_redirections(p);
}

/* ---- compound commands ----------------------------------------------------------------------- */

/* One or two parentheses. */
static int read_paren(struct parser *p)
{
	uint32_t opened = place(p, p->pos++);
	int r = try_arithmetic(p);

	if (r <= 0)
		return r < 0 ? -1 : read_redirections(p);
	p->in_subshell++;
	r = read_body_of(p, END_PAREN, opened);
	p->in_subshell--;
	return r;
}

/* Characters that no word starts with. */
static bool is_separator(const struct parser *p)
{
	return is_meta(peek(p, 0)) && peek(p, 0) != '<' && peek(p, 0) != '>';
}

/* Reads a word and drops it, or skips a character. *ret: the word was `s`. */
static int skip_word(struct parser *p, const char *s, bool *ret)
{
	size_t nwords = p->nwords;

	*ret = false;
	if (is_separator(p)) {
		p->pos++;
		return 0;
	}
	if (read_word(p, false) < 0)
		return -1;
	*ret = is(p, &p->words[nwords], s);
	if (p->words[nwords].start == p->pos) /* not the start of a word */
		p->pos++;
	drop_words(p, nwords);
	return 0;
}

/* Words until the end of the line or of the command. */
static int read_words(struct parser *p)
{
	bool ignored;

	for (;;) {
		skip_blanks(p);
		if (is_separator(p))
			return 0;
		if (skip_word(p, "", &ignored) < 0)
			return -1;
	}
}

/* Reads a word and drops it if it is `s`. */
static int read_if(struct parser *p, const char *s, bool *ret)
{
	struct mark start = mark_of(p);

	*ret = false;
	if (is_meta(peek(p, 0)))
		return 0;
	if (read_word(p, false) < 0)
		return -1;
	*ret = is(p, &p->words[start.nwords], s);
	if (*ret)
		start.pos = p->pos;
	back_to(p, &start);
	return 0;
}

/* Reads the rest of `for` or `select`. */
static int read_for(struct parser *p, uint32_t opened)
{
	bool in, brace;

	skip_blanks(p);
	if (peek(p, 0) == '(' && peek(p, 1) == '(') {
		p->pos += 2;
		if (read_arithmetic(p) != 0)
			return -1;
	} else {
		size_t nwords = p->nwords;

		if (read_word(p, false) < 0 || note_assigned(p, &p->words[nwords]) < 0)
			return -1;
		drop_words(p, nwords);
		if (skip_lines(p) < 0 || read_if(p, "in", &in) < 0 || (in && read_words(p) < 0))
			return -1;
	}
	skip_blanks(p);
	if (peek(p, 0) == ';')
		p->pos++;
	if (skip_lines(p) < 0 || read_if(p, "{", &brace) < 0)
		return -1;
	return read_body_of(p, brace ? END_BRACE : END_DONE, opened);
}

/* Reads one pattern up to its parenthesis. 1: it was esac. */
static int read_patterns(struct parser *p, uint32_t opened)
{
	bool first = peek(p, 0) != '(', separator, esac;

	if (!first)
		p->pos++;
	for (;;) {
		skip_blanks(p);
		if (peek(p, 0) == ')') {
			p->pos++;
			return 0;
		}
		if (!peek(p, 0))
			return fail_at(p, opened, "case without esac");
		separator = is_separator(p);
		if (skip_word(p, "esac", &esac) < 0)
			return -1;
		if (first && esac)
			return 1;
		first &= separator;
	}
}

static int read_clauses(struct parser *p, uint32_t opened)
{
	for (;;) {
		int r = skip_lines(p);

		if (r == 0)
			r = read_patterns(p, opened);
		if (r == 0)
			r = read_list(p, END_CASE, opened);
		if (r != 0)
			return r < 0 ? -1 : 0;
	}
}

static int read_case(struct parser *p, uint32_t opened)
{
	size_t nwords = p->nwords;
	bool in;

	skip_blanks(p);
	if (read_word(p, false) < 0)
		return -1;
	drop_words(p, nwords);
	if (skip_lines(p) < 0 || read_if(p, "in", &in) < 0)
		return -1;
	if (!in)
		return fail_at(p, opened, "case without in");
	if (enter(p) < 0 || read_clauses(p, opened) < 0)
		return -1;
	leave(p);
	return read_redirections(p);
}

/* Reads [[ ... ]], which has no commands except substitutions. */
static int read_condition(struct parser *p, uint32_t opened)
{
	bool end = false;

	while (!end) {
		if (skip_lines(p) < 0)
			return -1;
		if (!peek(p, 0))
			return fail_at(p, opened, "[[ without ]]");
		if (skip_word(p, "]]", &end) < 0)
			return -1;
	}
	return read_redirections(p);
}

/* Reads the body of the function whose name is the last word. */
static int read_function_of(struct parser *p, size_t name)
{
	bool closed = false;
	int r;

	if (note_function(p, &p->words[name]) < 0)
		return -1;
	drop_words(p, name);
	if (skip_lines(p) < 0 || enter(p) < 0)
		return -1;
	p->in_function++;
	r = read_command(p, END_TEXT, &closed);
	p->in_function--;
	leave(p);
	return r;
}

/* Reads the rest of `function`. */
static int read_function(struct parser *p)
{
	size_t nwords = p->nwords;

	skip_blanks(p);
	if (read_word(p, false) < 0)
		return -1;
	skip_blanks(p);
	if (peek(p, 0) == '(') {
		p->pos++;
		skip_blanks(p);
		if (peek(p, 0) == ')')
			p->pos++;
	}
	return read_function_of(p, nwords);
}

/* Reads coproc NAME COMPOUND or coproc COMMAND: a word is a name if a compound command follows. */
static int read_coproc(struct parser *p)
{
	static const char *const openers[] = { "{",   "if",   "while",	"until",
					       "for", "case", "select", "[[" };
	struct mark start, named;
	bool compound = false;

	skip_blanks(p);
	start = mark_of(p);
	if (is_meta(peek(p, 0)))
		return 0;
	if (read_word(p, false) < 0)
		return -1;
	skip_blanks(p);
	named = start;
	named.pos = p->pos;
	back_to(p, &named);
	compound = peek(p, 0) == '(';
	for (size_t i = 0; !compound && i < ARRAY_LEN(openers); i++)
		if (read_if(p, openers[i], &compound) < 0)
			return -1;
	back_to(p, compound ? &named : &start);
	return 0;
}

/* time [-p] [--] */
static int read_time(struct parser *p)
{
	bool option;

	do {
		skip_blanks(p);
		if (read_if(p, "-p", &option) < 0 || (!option && read_if(p, "--", &option) < 0))
			return -1;
	} while (option);
	return 0;
}

/* ---- reserved words -------------------------------------------------------------------------- */

enum reserved_kind { AGAIN, CLOSES, OPENS, FOR, CASE, CONDITION, FUNCTION, COPROC, TIME };

static const struct reserved {
	const char word[9];
	unsigned char kind;
	unsigned char end; /* the list that it closes */
} reserved[] = {
	{ "if", OPENS, END_FI },
	{ "then", AGAIN, 0 },
	{ "else", AGAIN, 0 },
	{ "elif", AGAIN, 0 },
	{ "fi", CLOSES, END_FI },
	{ "while", OPENS, END_DONE },
	{ "until", OPENS, END_DONE },
	{ "do", AGAIN, 0 },
	{ "done", CLOSES, END_DONE },
	{ "{", OPENS, END_BRACE },
	{ "}", CLOSES, END_BRACE },
	{ "!", AGAIN, 0 },
	{ "for", FOR, 0 },
	{ "select", FOR, 0 },
	{ "case", CASE, 0 },
	{ "esac", CLOSES, END_CASE },
	{ "[[", CONDITION, 0 },
	{ "function", FUNCTION, 0 },
	{ "coproc", COPROC, 0 },
	{ "time", TIME, 0 },
};

static const struct reserved *find_reserved(const struct parser *p, const struct word *w)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (is(p, w, reserved[i].word))
			return &reserved[i];
	return NULL;
}

/* *again: a command follows still; *closed: it ended the list. */
static int read_reserved(struct parser *p, const struct reserved *r, enum list_end end,
			 uint32_t opened, bool *again, bool *closed)
{
	/* also for a group, whose redirection may fail */
	p->unsure += r->kind == OPENS || r->kind == FOR || r->kind == CASE || r->kind == COPROC;
	*again = r->kind == AGAIN || r->kind == COPROC || r->kind == TIME;
	switch ((enum reserved_kind)r->kind) {
	case CLOSES:
		if (r->end != end)
			return fail_at(p, opened, "unexpected closing word");
		*closed = true;
		return 0;
	case OPENS:
		return read_body_of(p, (enum list_end)r->end, opened);
	case FOR:
		return read_for(p, opened);
	case CASE:
		return read_case(p, opened);
	case CONDITION:
		return read_condition(p, opened);
	case FUNCTION:
		return read_function(p);
	case COPROC:
		return read_coproc(p);
	case TIME:
		return read_time(p);
	case AGAIN:
	default:
		return 0;
	}
}

/* ---- simple commands ------------------------------------------------------------------------- */

static bool ends_command(const struct parser *p)
{
	char c = peek(p, 0);

	return !c || c == '\n' || c == ';' || c == '|' || c == ')' ||
	       (c == '&' && peek(p, 1) != '>');
}

/* name() at the parenthesis. */
static int read_definition(struct parser *p, size_t first)
{
	uint32_t at = place(p, p->pos++);

	skip_blanks(p);
	if (peek(p, 0) != ')' || p->nwords != first + 1)
		return fail_at(p, at, "unexpected (");
	p->pos++;
	return read_function_of(p, first);
}

/* Drops the word if it is an assignment. */
static int drop_assignment(struct parser *p, size_t first)
{
	if (p->nwords == first || !(p->words[first].flags & WORD_ASSIGNS))
		return 0;
	if (note_assigned(p, &p->words[first]) < 0)
		return -1;
	drop_words(p, first);
	return 0;
}

/* Reads a simple command of which at most the first word has been read. */
static int read_simple(struct parser *p, size_t first)
{
	for (;;) {
		bool may_assign = p->nwords == first;
		int r;

		skip_blanks(p);
		if (ends_command(p))
			break;
		if (peek(p, 0) == '(')
			return read_definition(p, first);
		r = read_redirection(p);
		if (r == 0)
			r = read_word(p, may_assign);
		if (r < 0)
			return -1;
		if (may_assign && drop_assignment(p, first) < 0)
			return -1;
	}
	if (p->nwords > first && note_command(p, first, AS_COMMAND) < 0)
		return -1;
	drop_words(p, first);
	return 0;
}

/* Reads one command, or a reserved word that closes the list. */
static int read_command(struct parser *p, enum list_end end, bool *closed)
{
	size_t first = p->nwords;
	const struct reserved *r;
	bool again = true;
	int n;

	while (again) {
		uint32_t opened;

		skip_blanks(p);
		opened = place(p, p->pos);
		if (peek(p, 0) == '(')
			return read_paren(p);
		if (ends_command(p))
			return 0;
		n = read_redirection(p);
		if (n == 0)
			n = read_word(p, true);
		if (n < 0)
			return -1;
		r = p->nwords > first ? find_reserved(p, &p->words[first]) : NULL;
		if (!r)
			break;
		drop_words(p, first);
		if (read_reserved(p, r, end, opened, &again, closed) < 0)
			return -1;
		if (!again)
			return 0;
	}
	if (drop_assignment(p, first) < 0)
		return -1;
	return read_simple(p, first);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const char *const unended[] = {
	[END_PAREN] = "unclosed (",	  [END_BRACE] = "unclosed {",
	[END_FI] = "if without fi",	  [END_DONE] = "loop without done",
	[END_CASE] = "case without esac",
};

/* At ; & | and newlines. 1: it ended a clause. */
static int read_separator(struct parser *p, enum list_end end)
{
	char c = peek(p, 0);

	if (c == '\n')
		return next_line(p);
	p->pos++;
	if (c != ';' || (peek(p, 0) != ';' && peek(p, 0) != '&'))
		return 0;
	p->pos += peek(p, 0) == ';' && peek(p, 1) == '&' ? 2 : 1;
	return end == END_CASE;
}

/* Parts of a pipeline and background commands are separate processes, so their function definitions
 * stay there. Commands after && or || may not run. */
static int read_listed(struct parser *p, enum list_end end, bool *closed)
{
	bool own = p->piped;
	size_t from = p->nfunctions;
	unsigned unsure = p->unsure;

	p->unsure += p->chained;
	p->piped = p->chained = false;
	if (read_command(p, end, closed) < 0)
		return -1;
	p->unsure = unsure;
	skip_blanks(p);
	p->chained = (peek(p, 0) == '|' || peek(p, 0) == '&') && peek(p, 1) == peek(p, 0);
	p->piped = peek(p, 0) == '|' && !p->chained;
	own |= p->piped || (peek(p, 0) == '&' && !p->chained);
	for (size_t i = from; own && i < p->nfunctions; i++)
		if (p->functions[i].rank == FUNCTION_SURE)
			p->functions[i].rank = FUNCTION_UNSURE;
	return 0;
}

int read_list(struct parser *p, enum list_end end, uint32_t opened)
{
	bool closed = false;
	int r = 0;

	while (!closed && r == 0) {
		skip_blanks(p);
		if (!peek(p, 0))
			return end == END_TEXT ? 0 : fail_at(p, opened, unended[end]);
		if (peek(p, 0) == ')') {
			if (end != END_PAREN)
				return fail_at(p, place(p, p->pos), "unexpected )");
			p->pos++;
			return 0;
		}
		if (ends_command(p)) {
			r = read_separator(p, end);
			if (r > 0)
				return 0;
			continue;
		}
		r = read_listed(p, end, &closed);
	}
	/* esac instead of ";;" ends the case */
	return r < 0 ? -1 : closed && end == END_CASE;
}

int read_nested(struct parser *p, enum list_end end, uint32_t opened)
{
	struct heres own = { .count = 0 }, *outer = p->heres;
	int r = enter(p);

	p->heres = &own;
	p->in_subshell += end == END_PAREN;
	if (r == 0)
		r = read_list(p, end, opened);
	if (r == 0)
		r = note_heres(p);
	p->in_subshell -= end == END_PAREN;
	p->heres = outer;
	if (r == 0)
		leave(p);
	return r;
}

int read_text(struct parser *p, const char *chars, const uint32_t *offsets, size_t n, bool expanded)
{
	auto_free char *text = malloc(n + 1);
	auto_free uint32_t *map = calloc(n + 1, sizeof(*map));
	struct source outer = p->src;
	size_t pos = p->pos;
	bool chained = p->chained, piped = p->piped;
	int r;

	if (!text || !map)
		return fail_no_memory(p);
	if (!n)
		return 0;
	memcpy(text, chars, n);
	memcpy(map, offsets, n * sizeof(*map));
	map[n] = map[n - 1];
	p->src = (struct source){ .text = text, .map = map, .end = n };
	p->pos = 0;
	p->chained = p->piped = false;
	p->unsure++;
	r = expanded ? read_expanded(p) : read_nested(p, END_TEXT, 0);
	p->unsure--;
	p->chained = chained;
	p->piped = piped;
	p->src = outer;
	p->pos = pos;
	return r;
}
