/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs a bash text would start, as far as the text tells: for advice, never a wall. The
 * text is not run, nothing is looked up on disk, and what only running it could tell is said to be
 * unknown.
 *
 * Bounded: a text has SHELL_TEXT_MAX bytes, nests SHELL_DEPTH_MAX deep and has SHELL_WORDS_MAX
 * commands; time and memory grow with its length only. */
#ifndef LODGE_SHELL_SHELL_H
#define LODGE_SHELL_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"

enum {
	SHELL_TEXT_MAX = 128 * 1024,
	SHELL_DEPTH_MAX = 64,
	SHELL_WORDS_MAX = 4096,
	SHELL_NAMES_MAX = 512, /* of a list */
	SHELL_NAME_MAX = 255, /* bytes of one */
	SHELL_REASON_MAX = 160, /* bytes of what a policy says to those it refuses */
	SHELL_TOLD_MAX = SHELL_REASON_MAX + 64, /* and why, with a zero */
};

/* Where a name without a slash stands for a program. */
extern const char *const shell_path[]; /* NULL-terminated, without a slash at the end */

enum shell_kind {
	SHELL_PROGRAM,
	SHELL_BUILTIN,
	SHELL_FUNCTION, /* the text defines it */
	SHELL_UNKNOWN, /* a program, but which one depends on what happens when it runs */
	SHELL_SETTING, /* a variable or an option by which a shell starts what no word shows */
};

struct shell_word {
	char *name; /* owned; "ls", also where the text has "/bin/ls"; of an unknown one its text */
	size_t offset; /* in the text, of the word's first byte */
	unsigned line, column; /* from 1; columns are bytes */
	enum shell_kind kind;
};

struct shell_words {
	struct shell_word *items; /* owned, in the order of the text */
	size_t count;
};

/* ERR_INVALID: bash would not take it either, and the sentence tells where; ERR_LIMIT with sys
 * E2BIG: it is too long. */
int shell_parse(const char *text, size_t len, struct shell_words *ret, struct err *err);
/* Offsets are those of the arguments with a blank between them. */
int shell_parse_argv(const char *const *argv, struct shell_words *ret, struct err *err);
void shell_words_fini(struct shell_words *w);
DEFINE_AUTO(struct shell_words *, shell_words_fini);

/* ---- rules ----------------------------------------------------------------------------------- */

enum shell_enforce { SHELL_TRY, SHELL_REQUIRE };

struct shell_names {
	char **items; /* owned */
	size_t count;
	bool said; /* false: there is no such list */
};

struct shell_rules {
	struct shell_names allow, deny; /* programs; deny wins */
	char *reason; /* owned; NULL: none */
	enum shell_enforce
		enforce; /* what of the list of what is allowed the kernel has to see to */
};

/* {"allow": [...], "deny": [...], "reason": "...", "enforce": "try" | "require"}; the sentence of a
 * failure names the field. *ret is for shell_rules_fini(). */
int shell_rules_parse(const char *json, size_t len, struct shell_rules *ret, struct err *err);
/* NULL: no memory. */
char *shell_rules_print(const struct shell_rules *r);
void shell_rules_fini(struct shell_rules *r);
DEFINE_AUTO(struct shell_rules *, shell_rules_fini);
/* A name by itself, or an absolute path; without blanks. */
int shell_names_add(struct shell_names *n, const char *field, const char *name, struct err *err);
bool shell_names_have(const struct shell_names *n, const char *name);

/* Why a word is allowed or not, as a few words that follow it. */
bool shell_allows(const struct shell_rules *r, const struct shell_word *w, const char **ret_why);
/* The same with the policy's reason. */
void shell_tell(const struct shell_rules *r, const struct shell_word *w, char ret[SHELL_TOLD_MAX]);
/* PS4, LD_PRELOAD: in an environment it makes a shell or a loader start what no word shows. */
bool shell_is_setting(const char *name, size_t len);
/* Whether this kernel could see to a list of what is allowed. */
bool shell_can_enforce(void);
/* Members of an object: allowed, enforced, programs (name, kind, offset, line, column, allowed,
 * why), reason. */
void shell_put_verdict(struct json_out *j, const struct shell_rules *r,
		       const struct shell_words *w);
/* The first word that is refused; NULL: none. */
const struct shell_word *shell_refused(const struct shell_rules *r, const struct shell_words *w);

#endif
