/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the parser: positions, stacks, results and errors; internal to this directory.
 *
 * One recursive pass over a source with offsets. The words of the current command lie on a stack of
 * characters: a construct nested in a word (a substitution) pushes its own words and pops them
 * again. Text that a command would parse again (eval, sh -c) becomes a separate source, in which
 * each byte keeps its original offset. */
#ifndef LODGE_SHELL_PARSER_H
#define LODGE_SHELL_PARSER_H

#include <stdint.h>
#include <string.h>

#include "shell/shell.h"

enum {
	HERES_MAX = 16, /* here-documents of one line */
	HERE_WORD = 128, /* bytes of a delimiter */
	RETRIES_MAX = 64, /* "((" that is not arithmetic */
	STACK_MAX = 4 * 1024 * 1024,
};

enum word_flag {
	WORD_QUOTED = 1 << 0, /* partly quoted: not a reserved word */
	WORD_DYNAMIC = 1 << 1, /* its value is unknown */
	WORD_SPLITS = 1 << 2, /* and it may expand to no or several words */
	WORD_ASSIGNS = 1 << 3,
};

struct word {
	size_t at, len; /* on the stack of characters */
	size_t start, end; /* in the source */
	uint32_t offset; /* in the caller's text */
	unsigned flags;
};

struct here {
	char word[HERE_WORD];
	size_t len;
	bool quoted, tabs;
	struct word said; /* its source text */
};

struct heres {
	struct here items[HERES_MAX];
	size_t count;
};

struct source {
	const char *text;
	const uint32_t *map; /* NULL: offsets are positions */
	size_t end;
};

struct found {
	char *name;
	uint32_t offset, order;
	enum shell_kind kind;
	bool in_function;
	bool no_function; /* it was called in a way that bypasses functions */
};

enum function_rank {
	FUNCTION_UNSET,
	FUNCTION_SURE,
	FUNCTION_UNSURE, /* it may be undefined, or defined in another shell */
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
	unsigned unsure; /* it may not run, or run later */
	unsigned in_other; /* another shell runs it, without the functions of this one */
	bool piped; /* a pipe connects it to the next command */
	bool chained; /* its result decides whether the next command runs */
	bool unset_any; /* a function of an unknown name is unset */
	struct heres *heres; /* pending until the end of the line */

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

/* ---- memory, positions, errors --------------------------------------------------------------- */

/* '\0' at the end. */
static inline char peek(const struct parser *p, size_t n)
{
	return p->pos + n < p->src.end ? p->src.text[p->pos + n] : '\0';
}

static inline uint32_t place(const struct parser *p, size_t pos)
{
	return p->src.map ? p->src.map[pos] : (uint32_t)pos;
}

/* Record the error and its offset; all return -1. */
int fail_at(struct parser *p, uint32_t offset, const char *what);
int fail_no_memory(struct parser *p);
int enter(struct parser *p);
static inline void leave(struct parser *p)
{
	p->depth--;
}
int put_char(struct parser *p, char c, uint32_t offset);
/* NULL without memory. Pointers into the stack of words are valid until the next push. */
struct word *push_word(struct parser *p);
int note(struct parser *p, enum shell_kind kind, const char *name, size_t len, uint32_t offset);
int note_function(struct parser *p, const struct word *w);
/* A function may be unset, so its name counts as a program everywhere. */
int note_unset(struct parser *p, const char *name, size_t len);
/* Restores an earlier state. */
struct mark {
	size_t pos, nchars, nwords, nfound, nfunctions;
};
struct mark mark_of(const struct parser *p);
void back_to(struct parser *p, const struct mark *m);
void parser_fini(struct parser *p);

/* ---- words --------------------------------------------------------------------------------- */

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

/* A single dash is not an option. */
static inline bool is_option(const struct parser *p, const struct word *w)
{
	return is_known(w) && w->len > 1 && chars_of(p, w)[0] == '-';
}

#endif
