/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/started_programs.h"

#include <string.h>

#include "base/array.h"
#include "shell/shell_parse.h"
#include "shell/shell_tables.h"
#include "shell/shell_variables.h"

/* ---- words ----------------------------------------------------------------------------------- */

int note_unknown(struct parser *p, const struct word *w)
{
	size_t len = w->end > w->start ? w->end - w->start : 0;

	if (!len)
		return note(p, SHELL_UNKNOWN, "...", 3, w->offset);
	return note(p, SHELL_UNKNOWN, p->src.text + w->start, len < 80 ? len : 80, w->offset);
}

/* Notes the builtin's or program's own word if nothing after it can be named. */
static int note_unknown_of(struct parser *p, size_t first)
{
	const struct word *w = word_at(p, first);

	return note(p, SHELL_UNKNOWN, chars_of(p, w), w->len, w->offset);
}

/* ---- texts in arguments ---------------------------------------------------------------------- */

/* Analyzes a word behind its first `skip` characters as a text. */
static int analyze_text(struct parser *p, const struct word *w, size_t skip)
{
	struct word own = *w;

	own.at += skip;
	own.len -= skip;
	if (!is_known(&own))
		return note_unknown(p, &own);
	return own.len ? read_text(p, p->chars + own.at, p->offsets + own.at, own.len, false) : 0;
}

/* Analyzes the words joined by blanks as a text. */
static int analyze_words(struct parser *p, size_t first, size_t end)
{
	struct mark start = mark_of(p);
	int r;

	for (size_t i = first; i < end; i++) {
		struct word w = *word_at(p, i);

		if (!is_known(&w))
			return note_unknown(p, &w);
		if (i > first && put_char(p, ' ', w.offset) < 0)
			return -1;
		for (size_t k = 0; k < w.len; k++)
			if (put_char(p, p->chars[w.at + k], p->offsets[w.at + k]) < 0)
				return -1;
	}
	if (p->nchars == start.nchars)
		return 0;
	r = read_text(p, p->chars + start.nchars, p->offsets + start.nchars,
		      p->nchars - start.nchars, false);
	p->nchars = start.nchars;
	return r;
}

int analyze_names(struct parser *p, size_t first)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		struct word w = *word_at(p, i);

		if (!is_known(&w) || !has(p, &w, "[", 1) ||
		    (!has(p, &w, "$", 1) && !has(p, &w, "`", 1)))
			continue;
		if (read_text(p, p->chars + w.at, p->offsets + w.at, w.len, true) < 0)
			return -1;
	}
	return 0;
}

/* ---- builtins -------------------------------------------------------------------------------- */

/* exec and command */
static int analyze_prefix(struct parser *p, size_t first, enum command_as as)
{
	size_t i = first + 1;

	for (; i < p->nwords && is_option(p, word_at(p, i)); i++) {
		const struct word *w = word_at(p, i);

		if (is_text(p, w, "--")) {
			i++;
			break;
		}
		if (as == AS_NO_FUNCTION && (has(p, w, "v", 1) || has(p, w, "V", 1)))
			return 0; /* only prints */
		i += as == AS_PROGRAM && chars_of(p, w)[w->len - 1] == 'a'; /* exec -a NAME */
	}
	return i < p->nwords ? note_command(p, i, as) : 0;
}

static int analyze_trap(struct parser *p, size_t first)
{
	size_t i = first + 1;

	if (i < p->nwords && is_text(p, word_at(p, i), "--"))
		i++;
	if (i + 1 >= p->nwords || (is_known(word_at(p, i)) && begins(p, word_at(p, i), "-")))
		return 0; /* signals only, or options that print */
	return analyze_text(p, word_at(p, i), 0);
}

/* alias NAME=TEXT */
static int analyze_alias(struct parser *p, size_t first)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);
		const char *eq = memchr(chars_of(p, w), '=', w->len);

		if (!eq && is_known(w))
			continue;
		if (analyze_text(p, w, eq ? (size_t)(eq - chars_of(p, w)) + 1 : 0) < 0)
			return -1;
	}
	return 0;
}

/* -C TEXT or -CTEXT, also after other letters. */
static int analyze_callback_of(struct parser *p, size_t i)
{
	const struct word *w = word_at(p, i);
	const char *c = memchr(chars_of(p, w), 'C', w->len);
	size_t skip = c ? (size_t)(c - chars_of(p, w)) + 1 : 0;

	if (!c)
		return 0;
	if (skip < w->len)
		return analyze_text(p, w, skip);
	return i + 1 < p->nwords ? analyze_text(p, word_at(p, i + 1), 0) : 0;
}

static int analyze_callback(struct parser *p, size_t first)
{
	if (analyze_names(p, first) < 0)
		return -1;
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);

		if (is_text(p, w, "--"))
			break;
		if (!is_known(w) && (w->flags & WORD_SPLITS || w->len == 0 || begins(p, w, "-")) &&
		    note_unknown(p, w) < 0) /* it may be an option */
			return -1;
		w = word_at(p, i);
		if (!is_option(p, w))
			continue;
		if ((has(p, w, "W", 1) && note_unknown_of(p, first) < 0) ||
		    analyze_callback_of(p, i) < 0)
			return -1;
	}
	return 0;
}

/* `test -v NAME`: a name only after -v. */
static int analyze_plain(struct parser *p, size_t first)
{
	for (size_t i = first + 1; i + 1 < p->nwords; i++)
		if (is_text(p, word_at(p, i), "-v"))
			return analyze_names(p, i);
	return 0;
}

static int analyze_builtin(struct parser *p, size_t first, enum builtin_kind kind)
{
	switch (kind) {
	case BUILTIN_EVAL:
		return analyze_words(p, first + 1, p->nwords);
	case BUILTIN_SOURCE:
		return 0; /* noted as unknown already */
	case BUILTIN_EXEC:
		return analyze_prefix(p, first, AS_PROGRAM);
	case BUILTIN_COMMAND:
		return analyze_prefix(p, first, AS_NO_FUNCTION);
	case BUILTIN_BUILTIN:
		return first + 1 < p->nwords ? note_command(p, first + 1, AS_NO_FUNCTION) : 0;
	case BUILTIN_TRAP:
		return analyze_trap(p, first);
	case BUILTIN_ALIAS:
		return analyze_alias(p, first);
	case BUILTIN_MAPFILE:
		if (analyze_setting(p, first, kind) < 0)
			return -1;
		return analyze_callback(p, first);
	case BUILTIN_CALLBACK:
		return analyze_callback(p, first);
	case BUILTIN_NAMES:
		return analyze_names(p, first);
	case BUILTIN_DECLARE:
	case BUILTIN_EXPORT:
	case BUILTIN_READ:
	case BUILTIN_PRINTF:
	case BUILTIN_HASH:
	case BUILTIN_SET:
		return analyze_setting(p, first, kind);
	case BUILTIN_NONE:
	case BUILTIN_PLAIN:
	default:
		return analyze_plain(p, first);
	}
}

/* ---- programs that start others -------------------------------------------------------------- */

/* The option's argument is the next word. *text: the argument is a text to run, in the next word or
 * after the letter (at *inside). */
struct option {
	bool ends, argument, text, unknown;
	size_t inside;
};

static bool is_listed(const char *list, const char *name, size_t len)
{
	for (const char *at = list; at && (at = strchr(at, ' ')) != NULL && at[1]; at++)
		if (!strncmp(at + 1, name, len) && at[1 + len] == ' ')
			return true;
	return false;
}

/* Programs accept abbreviations of long options, so an unknown one may be any: the next word may be
 * its argument or a program. With a = it only matters if the argument is a text. */
static struct option long_option(const struct parser *p, const struct starter *s,
				 const struct word *w)
{
	const char *c = p->chars + w->at + 2;
	const char *eq = memchr(c, '=', w->len - 2);
	size_t len = eq ? (size_t)(eq - c) : w->len - 2;
	struct option o = { .ends = w->len == 2 };

	if (o.ends || is_listed(s->flags, c, len))
		return o;
	if (s->text_word && strlen(s->text_word) == len && !memcmp(s->text_word, c, len)) {
		o.text = true;
		o.argument = !eq;
		o.inside = eq ? len + 3 : 0;
	} else if (is_listed(s->words, c, len)) {
		o.argument = !eq;
	} else {
		o.unknown = !eq || s->text_word;
	}
	return o;
}

static struct option option_of(const struct parser *p, const struct starter *s,
			       const struct word *w)
{
	struct option o = { 0 };
	const char *c = chars_of(p, w);

	if (begins(p, w, "--"))
		return long_option(p, s, w);
	for (size_t i = 1; i < w->len; i++) {
		o.text = s->text && c[i] == s->text;
		o.argument = o.text || (s->letters && strchr(s->letters, c[i]));
		if (!o.argument)
			continue;
		if (i + 1 < w->len) {
			o.argument = false;
			o.inside = i + 1;
		}
		break;
	}
	return o;
}

static bool is_assigning(const struct parser *p, const struct word *w)
{
	const char *eq = w->len ? memchr(chars_of(p, w), '=', w->len) : NULL;

	return eq && eq > chars_of(p, w);
}

static int analyze_option_text(struct parser *p, size_t i, const struct option *o)
{
	i += o->inside == 0;
	return i < p->nwords ? analyze_text(p, word_at(p, i), o->inside) : 0;
}

/* Finds the command after the options. 0 with *ret; 1: there is none. */
static int find_command(struct parser *p, const struct starter *s, size_t first, size_t *ret)
{
	size_t i = first + 1;

	for (; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);
		struct option o;

		if (!is_option(p, w)) {
			if (s->assigns && is_text(p, w, "-")) /* env - */
				continue;
			break;
		}
		o = option_of(p, s, w);
		if ((o.unknown && note_unknown(p, w) < 0) ||
		    (o.text && analyze_option_text(p, i, &o) < 0))
			return -1;
		i += o.argument;
		if (o.ends) {
			i++;
			break;
		}
	}
	for (; s->assigns && i < p->nwords && is_assigning(p, word_at(p, i)) &&
	       !(word_at(p, i)->flags & WORD_SPLITS);
	     i++)
		if (note_assigned(p, word_at(p, i)) < 0)
			return -1;
	for (unsigned n = s->operands; n && i < p->nwords; n--, i++)
		if (word_at(p, i)->flags & WORD_SPLITS)
			break; /* and noted as unknown */
	*ret = i;
	return i < p->nwords ? 0 : 1;
}

/* Marks the word that xargs adds for its input as unknown. */
static int analyze_xargs(struct parser *p, const struct starter *s, size_t first)
{
	const char *replace = NULL;
	size_t at, len = 0;
	int r = find_command(p, s, first, &at);

	if (r != 0)
		return r < 0 ? -1 : note(p, SHELL_PROGRAM, "echo", 4, word_at(p, first)->offset);
	for (size_t i = first + 1; i < at; i++) {
		const struct word *w = word_at(p, i);

		if (is_text(p, w, "-I") && i + 1 < at) {
			replace = chars_of(p, word_at(p, i + 1));
			len = word_at(p, i + 1)->len;
		} else if (begins(p, w, "-I") && w->len > 2) {
			replace = chars_of(p, w) + 2;
			len = w->len - 2;
		} else if (is_text(p, w, "-i") || is_text(p, w, "--replace")) {
			replace = "{}";
			len = 2;
		}
	}
	for (size_t i = at; i < p->nwords; i++)
		if (replace && has(p, word_at(p, i), replace, len))
			p->words[i].flags |= WORD_DYNAMIC;
	if (!replace) {
		uint32_t offset = word_at(p, first)->offset;
		struct word *w = push_word(p);

		if (!w)
			return -1;
		w->flags = WORD_DYNAMIC | WORD_SPLITS;
		w->offset = offset;
		w->end = w->start;
	}
	return note_command(p, at, AS_PROGRAM);
}

/* With -c among the options, alone or combined, the first operand is the text. */
static int analyze_shell(struct parser *p, const struct starter *s, size_t first)
{
	bool text = false;
	size_t i = first + 1;

	for (; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);
		const char *c = chars_of(p, w);

		if (!is_known(w) || w->len < 2 || (c[0] != '-' && c[0] != '+'))
			break;
		if (is_text(p, w, "--")) {
			i++;
			break;
		}
		if (c[0] == '-' && is_listed(s->words, c + 1, w->len - 1)) { /* -rcfile FILE */
			i++;
			continue;
		}
		if (c[0] == '-' && c[1] == '-') {
			i += long_option(p, s, w).argument;
			continue;
		}
		text |= has(p, w, "c", 1); /* also +c */
		for (size_t k = 1, n = w->len; k < n; k++)
			i += c[k] == 'o' || c[k] == 'O';
	}
	if (i >= p->nwords || (!text && !(word_at(p, i)->flags & WORD_SPLITS)))
		return 0; /* a script or standard input: a list that allows a shell accepts that */
	return analyze_text(p, word_at(p, i), 0);
}

static int analyze_su(struct parser *p, const struct starter *s, size_t first)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);
		struct option o;

		if (!is_option(p, w))
			continue;
		o = option_of(p, s, w);
		if ((o.unknown && note_unknown(p, w) < 0) ||
		    (o.text && analyze_option_text(p, i, &o) < 0))
			return -1;
	}
	return 0;
}

static bool is_action(const struct parser *p, const struct word *w)
{
	static const char *const actions[] = { "-exec", "-execdir", "-ok", "-okdir" };

	for (size_t k = 0; k < ARRAY_LEN(actions); k++)
		if (is_text(p, w, actions[k]))
			return true;
	return false;
}

/* The end of the command: a ; or a + after {}. {} becomes a file name. */
static size_t end_of_action(struct parser *p, size_t first, size_t end)
{
	bool files = false;
	size_t i;

	for (i = first; i < end && !is_text(p, word_at(p, i), ";"); i++) {
		if (files && is_text(p, word_at(p, i), "+"))
			break;
		files = is_text(p, word_at(p, i), "{}");
		if (has(p, word_at(p, i), "{}", 2))
			p->words[i].flags |= WORD_DYNAMIC;
	}
	return i;
}

/* Analyzes each -exec COMMAND as separate words on top of the stack, so that nested commands do not
 * affect the words after them. */
static int analyze_find(struct parser *p, size_t first)
{
	size_t end = p->nwords;

	for (size_t i = first + 1; i < end; i++) {
		size_t stop;

		if (!is_action(p, word_at(p, i)))
			continue;
		stop = end_of_action(p, ++i, end);
		for (size_t k = i; k < stop; k++) {
			struct word *copy = push_word(p);

			if (!copy)
				return -1;
			*copy = p->words[k];
		}
		if (i < stop && note_command(p, end, AS_PROGRAM) < 0)
			return -1;
		p->nwords = end;
		i = stop;
	}
	return 0;
}

static int analyze_starter(struct parser *p, const struct starter *s, size_t first)
{
	size_t at;
	int r;

	switch (s->kind) {
	case STARTER_SHELL:
		return analyze_shell(p, s, first);
	case STARTER_SU:
		return analyze_su(p, s, first);
	case STARTER_FIND:
		return analyze_find(p, first);
	case STARTER_XARGS:
		return analyze_xargs(p, s, first);
	case STARTER_COMMAND:
	case STARTER_TEXT:
	default:
		r = find_command(p, s, first, &at);
		if (r != 0)
			return r < 0 ? -1 : 0;
		return s->kind == STARTER_TEXT ? analyze_words(p, at, p->nwords)
					       : note_command(p, at, AS_PROGRAM);
	}
}

/* ---- a command ------------------------------------------------------------------------------- */

/* Notes the first word of a command; `plain`: it cannot be a function. */
static int note_name(struct parser *p, enum shell_kind kind, const char *name, size_t len,
		     uint32_t offset, bool plain)
{
	if (note(p, kind, name, len, offset) < 0)
		return -1;
	p->found[p->nfound - 1].no_function |= plain;
	return 0;
}

static int note_unsets(struct parser *p, size_t first)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		p->unset_any |= !is_known(word_at(p, i));
		if (note_unset(p, chars_of(p, word_at(p, i)), word_at(p, i)->len) < 0)
			return -1;
	}
	return 0;
}

static int note_first(struct parser *p, size_t first, enum command_as as)
{
	const struct word *w = word_at(p, first);
	size_t dir = path_prefix(chars_of(p, w), w->len);
	const char *name = chars_of(p, w) + dir;
	bool program = as == AS_PROGRAM || dir, plain = as != AS_COMMAND || dir;
	enum builtin_kind kind = program ? BUILTIN_NONE : builtin_of(name, w->len);
	const struct starter *s;
	int r;

	if (kind != BUILTIN_NONE) {
		if (note_name(p, kind == BUILTIN_SOURCE ? SHELL_UNKNOWN : SHELL_BUILTIN, name,
			      w->len, w->offset, plain) < 0 ||
		    (is_text(p, w, "unset") && note_unsets(p, first) < 0))
			return -1;
		return analyze_builtin(p, first, kind);
	}
	if (note_name(p, SHELL_PROGRAM, name, w->len - dir, w->offset, plain) < 0)
		return -1;
	s = starter_of(name, w->len - dir);
	if (!s)
		return 0;
	p->in_other++;
	r = analyze_starter(p, s, first);
	p->in_other--;
	return r;
}

int note_command(struct parser *p, size_t first, enum command_as as)
{
	size_t nwords = p->nwords;
	int r;

	if (!is_known(word_at(p, first)))
		return note_unknown(p, word_at(p, first));
	if (enter(p) < 0)
		return -1;
	r = note_first(p, first, as);
	p->nwords = nwords;
	if (r == 0)
		leave(p);
	return r;
}
