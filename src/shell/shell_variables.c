/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and options that make a shell start programs no word names. Values are not tracked: any
 * assignment to such a variable is reported. */
#include "shell/shell_variables.h"

#include "base/array.h"
#include "shell/shell_lex.h"
#include "shell/started_programs.h"

static const char *const settings[] = {
	"BASHOPTS", "BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "ENV", "PROMPT_COMMAND",
	"PS0",	    "PS1",	    "PS2",	 "PS3",	     "PS4", "SHELLOPTS",
};

bool shell_is_setting(const char *name, size_t len)
{
	static const char *const families[] = { "BASH_FUNC_", "LD_" };

	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (strlen(settings[i]) == len && !memcmp(settings[i], name, len))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (len > strlen(families[i]) && !memcmp(families[i], name, strlen(families[i])))
			return true;
	return false;
}

/* ---- names ----------------------------------------------------------------------------------- */

static size_t name_length(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && is_name_char(s[n]))
		n++;
	return n;
}

/* True if the name of a partly unknown word is in the text, as in A=$x. */
static bool has_name(const struct parser *p, const struct word *w)
{
	const char *s = p->src.text + w->start;
	size_t len = w->end > w->start ? w->end - w->start : 0, n;

	if (is_known(w))
		return true;
	if (len && (*s == '"' || *s == '\'')) {
		s++;
		len--;
	}
	n = name_length(s, len);
	return n > 0 && n < len && strchr("=+[", s[n]);
}

static int note_setting(struct parser *p, const struct word *w, size_t skip)
{
	const char *s = chars_of(p, w) + skip;
	size_t n = name_length(s, w->len - skip);

	return shell_is_setting(s, n) ? note(p, SHELL_SETTING, s, n, w->offset) : 0;
}

static int note_option(struct parser *p, const struct word *w)
{
	return note(p, SHELL_SETTING, chars_of(p, w), w->len, w->offset);
}

int note_assigned(struct parser *p, const struct word *w)
{
	return has_name(p, w) ? note_setting(p, w, 0) : note_unknown(p, w);
}

/* Checks ${PS4=...} and ${PS4:=...}; ${!x=...} assigns to the variable that x names. */
int note_expansion(struct parser *p)
{
	size_t bang = peek(p, 0) == '!', n, at;
	const char *s = p->src.text + p->pos + bang;

	if (p->pos + bang >= p->src.end)
		return 0;
	n = name_length(s, p->src.end - p->pos - bang);
	at = bang + n;
	if (!n || (!bang && !shell_is_setting(s, n)))
		return 0;
	if (peek(p, at) == '[' && !bang)
		return note(p, SHELL_SETTING, s, n, place(p, p->pos));
	at += peek(p, at) == ':';
	if (peek(p, at) != '=')
		return 0;
	return note(p, bang ? SHELL_UNKNOWN : SHELL_SETTING, s - bang, n + bang, place(p, p->pos));
}

/* ---- builtins -------------------------------------------------------------------------------- */

static bool has_any(const struct parser *p, const struct word *w, const char *letters)
{
	for (; *letters; letters++)
		if (has(p, w, letters, 1))
			return true;
	return false;
}

/* Checks NAME=VALUE words. A name without a value is not assigned. */
static int analyze_declared(struct parser *p, size_t first, bool references)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);
		bool option = is_option(p, w);

		if (option && references && has_any(p, w, "pfF"))
			return 0; /* only prints, or refers to functions */
		if (option && references && has(p, w, "n", 1) && note_option(p, w) < 0)
			return -1;
		if (!option && (has(p, w, "=", 1) || !is_known(w)) && note_assigned(p, w) < 0)
			return -1;
	}
	return 0;
}

/* True if the next word belongs to the option. */
static bool takes_next(const struct parser *p, const struct word *w, const char *letters)
{
	const char *c = chars_of(p, w);

	for (size_t i = 1; i < w->len; i++)
		if (strchr(letters, c[i]))
			return i + 1 == w->len && is_known(w);
	return false;
}

/* Checks options and names; `letters` are options whose argument is not a name. */
static int analyze_read(struct parser *p, size_t first, const char *letters)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);

		if (begins(p, w, "-")) {
			const char *a = memchr(chars_of(p, w), 'a', w->len);

			/* -aNAME */
			if (a && note_setting(p, w, (size_t)(a - chars_of(p, w)) + 1) < 0)
				return -1;
			i += takes_next(p, w, letters);
		} else if (note_assigned(p, w) < 0) {
			return -1;
		}
	}
	return 0;
}

/* printf -v NAME, -vNAME */
static int analyze_printf(struct parser *p, size_t first)
{
	const struct word *w = first + 1 < p->nwords ? word_at(p, first + 1) : NULL;

	if (!w || !begins(p, w, "-v"))
		return 0;
	if (analyze_names(p, first) < 0)
		return -1;
	w = word_at(p, first + 1);
	if (w->len > 2 || !is_known(w))
		return is_known(w) ? note_setting(p, w, 2) : note_unknown(p, w);
	return first + 2 < p->nwords ? note_assigned(p, word_at(p, first + 2)) : 0;
}

/* hash -p FILE NAME makes the name refer to that file. */
static int analyze_hash(struct parser *p, size_t first)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);

		if (is_text(p, w, "--"))
			return 0;
		if (!is_known(w))
			return note_unknown(p, w);
		if (!is_option(p, w))
			return 0;
		if (has(p, w, "p", 1))
			return note_option(p, w);
	}
	return 0;
}

/* set -H, set -o histexpand, shopt -so histexpand: earlier lines become part of later ones. */
static int analyze_set(struct parser *p, size_t first)
{
	for (size_t i = first + 1; i < p->nwords; i++) {
		const struct word *w = word_at(p, i);

		if (is_text(p, w, "--") || is_text(p, w, "-"))
			return 0;
		if (is_text(p, w, "histexpand") || (is_option(p, w) && has(p, w, "H", 1)))
			return note_option(p, w);
	}
	return 0;
}

int analyze_setting(struct parser *p, size_t first, enum builtin_kind kind)
{
	if (kind == BUILTIN_PRINTF)
		return analyze_printf(p, first);
	if (kind == BUILTIN_HASH)
		return analyze_hash(p, first);
	if (kind == BUILTIN_SET)
		return analyze_set(p, first);
	if (analyze_names(p, first) < 0)
		return -1;
	if (kind == BUILTIN_READ)
		return analyze_read(p, first, "dinNptu");
	if (kind == BUILTIN_MAPFILE)
		return analyze_read(p, first, "dnOsuCc");
	return analyze_declared(p, first, kind == BUILTIN_DECLARE);
}
