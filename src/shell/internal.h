/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the parser share; for the files of this directory only.
 *
 * One pass, recursive, over a source with offsets. Words of the command that is being read lie on a
 * stack of characters: what is nested in a word (a substitution) puts its own on top and takes them
 * away again. Text that a command would have parsed once more (eval, sh -c) becomes a source of its
 * own, each byte with the offset it came from. */
#ifndef LODGE_SHELL_INTERNAL_H
#define LODGE_SHELL_INTERNAL_H

#include <stdint.h>
#include <string.h>

#include "shell/shell.h"
#include "shell/shell_tables.h"

enum {
	HERES_MAX = 16, /* here-documents of one line */
	HERE_WORD = 128, /* bytes of what ends one */
	RETRIES_MAX = 64, /* "((" that turned out to be no arithmetic */
	STACK_MAX = 4 * 1024 * 1024,
};

enum word_flag {
	WORD_QUOTED = 1 << 0, /* some of it: no reserved word */
	WORD_DYNAMIC = 1 << 1, /* its value is not in the text */
	WORD_SPLITS = 1 << 2, /* and may be none or several words */
	WORD_ASSIGNS = 1 << 3,
};

struct word {
	size_t at, len; /* on the stack of characters */
	size_t start, end; /* in the source */
	uint32_t offset; /* in the text of the caller */
	unsigned flags;
};

struct here {
	char word[HERE_WORD];
	size_t len;
	bool quoted, tabs;
	struct word said; /* as it stands in the source */
};

struct heres {
	struct here items[HERES_MAX];
	size_t count;
};

struct source {
	const char *text;
	const uint32_t *map; /* NULL: offsets are places */
	size_t end;
};

struct found {
	char *name;
	uint32_t offset, order;
	enum shell_kind kind;
	bool in_function;
	bool no_function; /* it was asked for in a way that passes by functions */
};

enum function_rank {
	FUNCTION_UNSET,
	FUNCTION_SURE,
	FUNCTION_UNSURE, /* perhaps it is never defined, or for others */
};

struct function {
	char *name;
	uint32_t offset;
	enum function_rank rank;
};

struct parser {
	struct source src;
	size_t pos;
	unsigned depth, in_function, in_subshell, retries;
	unsigned unsure; /* it may not run, or not now */
	unsigned in_other; /* another shell reads it, which has no functions of this one */
	bool piped; /* the command before goes into the next */
	bool chained; /* it decides whether the next runs */
	bool unset_any; /* a function whose name is not known is taken away */
	struct heres *heres; /* that wait for the end of the line */

	char *chars; /* owned */
	uint32_t *offsets; /* owned; of each character */
	size_t nchars;
	struct word *words; /* owned */
	size_t nwords;

	struct found *found; /* owned */
	size_t nfound;
	struct function *functions; /* owned */
	size_t nfunctions;
	struct err *err;
};

/* ---- base of it: memory, places, failures (core.c) ------------------------------------------- */

/* '\0': the end. */
static inline char peek(const struct parser *p, size_t n)
{
	return p->pos + n < p->src.end ? p->src.text[p->pos + n] : '\0';
}

static inline uint32_t place(const struct parser *p, size_t pos)
{
	return p->src.map ? p->src.map[pos] : (uint32_t)pos;
}

/* With the offset of where it is; all return -1. */
int fail_at(struct parser *p, uint32_t offset, const char *what);
int enter(struct parser *p);
static inline void leave(struct parser *p)
{
	p->depth--;
}
int put_char(struct parser *p, char c, uint32_t offset);
/* NULL: no memory. Pointers into the stack of words are good until the next one. */
struct word *push_word(struct parser *p, struct err *err);
int note(struct parser *p, enum shell_kind kind, const char *name, size_t len, uint32_t offset);
int note_function(struct parser *p, const struct word *w);
/* It may be taken away again: its name is a program's everywhere. */
int note_unset(struct parser *p, const char *name, size_t len);
/* Back to what was known then. */
struct mark {
	size_t pos, nchars, nwords, nfound, nfunctions;
};
struct mark mark_of(const struct parser *p);
void back_to(struct parser *p, const struct mark *m);
/* `n` characters of the stack as a text. `expanded`: only what it expands, as in "...". */
int read_text(struct parser *p, const char *chars, const uint32_t *offsets, size_t n,
	      bool expanded);

/* ---- words that are read --------------------------------------------------------------------- */

static inline const struct word *word_at(const struct parser *p, size_t i)
{
	return &p->words[i];
}

static inline const char *chars_of(const struct parser *p, const struct word *w)
{
	return w->len ? p->chars + w->at : "";
}

static inline bool is_known(const struct word *w)
{
	return !(w->flags & WORD_DYNAMIC);
}

static inline bool is_text(const struct parser *p, const struct word *w, const char *s)
{
	return is_known(w) && w->len == strlen(s) && !memcmp(chars_of(p, w), s, w->len);
}

static inline bool begins(const struct parser *p, const struct word *w, const char *s)
{
	return w->len >= strlen(s) && !memcmp(chars_of(p, w), s, strlen(s));
}

static inline bool has(const struct parser *p, const struct word *w, const char *s, size_t len)
{
	return w->len && len && memmem(chars_of(p, w), w->len, s, len);
}

/* A dash by itself is none. */
static inline bool is_option(const struct parser *p, const struct word *w)
{
	return is_known(w) && w->len > 1 && chars_of(p, w)[0] == '-';
}

/* ---- lex.c ----------------------------------------------------------------------------------- */

bool is_meta(char c);
bool is_name_char(char c);
/* Blanks, continued lines, a comment. */
void skip_blanks(struct parser *p);
/* One word at pos, on both stacks. `command`: it may be an assignment. */
int read_word(struct parser *p, bool command);
/* At the `$`, `"`, backtick. *flags gets what it means for the word. */
int read_dollar(struct parser *p, bool quoted, unsigned *flags);
int read_double(struct parser *p, unsigned *flags);
int read_backtick(struct parser *p, bool quoted);
/* From pos to the end of the source as inside of double quotes, where " is nothing special. */
int read_expanded(struct parser *p);
/* "((" was read. 1: it is no arithmetic, or is broken, and p->err tells how. */
int read_arithmetic(struct parser *p);

/* ---- quote.c --------------------------------------------------------------------------------- */

int read_single(struct parser *p);
int read_ansi(struct parser *p); /* behind $' */

/* ---- here.c ---------------------------------------------------------------------------------- */

/* 1: there was a redirection. */
int read_redirection(struct parser *p);
/* Behind a newline: the bodies of those that wait. */
int read_heres(struct parser *p);
/* Those for which no line came: where they end, and with it what is a command, is not known. */
int note_heres(struct parser *p);

/* ---- parse.c --------------------------------------------------------------------------------- */

enum list_end { END_TEXT, END_PAREN, END_BRACE, END_FI, END_DONE, END_CASE };
/* Commands until what ends them, which is taken too; of END_CASE only ";;" and its like are. */
int read_list(struct parser *p, enum list_end end, uint32_t opened);
/* A list with here-documents of its own. */
int read_nested(struct parser *p, enum list_end end, uint32_t opened);

/* ---- programs.c ------------------------------------------------------------------------------ */

enum command_as {
	AS_COMMAND, /* a function, a builtin or a program */
	AS_NO_FUNCTION,
	AS_PROGRAM, /* no shell sees it */
};
/* The words from `first` on are a command. */
int note_command(struct parser *p, size_t first, enum command_as as);
/* What only running it could tell: its own text stands for it. */
int note_unknown(struct parser *p, const struct word *w);
/* Some builtins expand the subscript of a variable that they are given the name of. */
int look_at_names(struct parser *p, size_t first);

/* ---- setting.c ------------------------------------------------------------------------------- */

/* A word NAME=VALUE, or a name that gets a value. */
int note_assigned(struct parser *p, const struct word *w);
/* Behind "${": it may assign as well. */
int note_expansion(struct parser *p);
/* A builtin that sets variables or options. */
int look_at_setting(struct parser *p, size_t first, enum builtin_kind kind);

#endif
