/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the programs that a bash text would start, without running it and without access to the
 * disk. The result is advice, not a security boundary; programs that are unknown until the text
 * runs are reported as unknown.
 *
 * A text has at most SHELL_TEXT_MAX bytes, SHELL_DEPTH_MAX nested levels and SHELL_WORDS_MAX
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
	SHELL_NAMES_MAX = 512, /* names in a list */
	SHELL_NAME_MAX = 255, /* bytes of a name */
	SHELL_REASON_MAX = 160, /* bytes of a policy's reason */
	SHELL_TOLD_MAX = SHELL_REASON_MAX + 64, /* bytes of a verdict with its reason and NUL */
};

/* The directories of programs named without a slash. */
extern const char *const shell_path[]; /* NULL-terminated, without a slash at the end */

enum shell_kind {
	SHELL_PROGRAM,
	SHELL_BUILTIN,
	SHELL_FUNCTION, /* the text defines it */
	SHELL_UNKNOWN, /* a program that is unknown until it runs */
	SHELL_SETTING, /* a variable or option that makes a shell start programs no word names */
};

struct shell_word {
	char *name; /* owned; "ls" for "/bin/ls" too; for an unknown one its text */
	size_t offset; /* of the word's first byte in the text */
	unsigned line, column; /* from 1; columns are bytes */
	enum shell_kind kind;
};

struct shell_words {
	struct shell_word *items; /* owned, in the order of the text */
	size_t count;
};

/* ERR_INVALID: bash would reject the text too, and the message says where; ERR_LIMIT with sys
 * E2BIG: the text is too long. */
int shell_parse(const char *text, size_t len, struct shell_words *ret, struct err *err);
/* Offsets refer to the arguments joined by blanks. */
int shell_parse_argv(const char *const *argv, struct shell_words *ret, struct err *err);
void shell_words_fini(struct shell_words *w);
DEFINE_AUTO(struct shell_words *, shell_words_fini);

/* ---- rules ----------------------------------------------------------------------------------- */

enum shell_enforce { SHELL_TRY, SHELL_REQUIRE };

struct shell_names {
	char **items; /* owned */
	size_t count;
	bool said; /* false: there is no list */
};

struct shell_rules {
	struct shell_names allow, deny; /* programs; deny wins */
	char *reason; /* owned; NULL: none */
	enum shell_enforce enforce; /* how the kernel enforces the allow list */
};

/* Parses {"allow": [...], "deny": [...], "reason": "...", "enforce": "try" | "require"}; errors
 * name the field. Free *ret with shell_rules_fini(). */
int shell_rules_parse(const char *json, size_t len, struct shell_rules *ret, struct err *err);
/* Returns NULL without memory. */
char *shell_rules_print(const struct shell_rules *r);
void shell_rules_fini(struct shell_rules *r);
DEFINE_AUTO(struct shell_rules *, shell_rules_fini);
/* Adds a plain name or an absolute path without blanks. */
int shell_names_add(struct shell_names *n, const char *field, const char *name, struct err *err);
bool shell_names_have(const struct shell_names *n, const char *name);

/* Why a word is allowed or not, as a phrase to follow it. */
bool shell_allows(const struct shell_rules *r, const struct shell_word *w, const char **ret_why);
/* The same with the policy's reason. */
void shell_tell(const struct shell_rules *r, const struct shell_word *w, char ret[SHELL_TOLD_MAX]);
/* True for variables such as PS4 and LD_PRELOAD, which make a shell or loader start other programs.
 */
bool shell_is_setting(const char *name, size_t len);
/* True if this kernel can enforce an allow list. */
bool shell_can_enforce(void);
/* Writes members of an object: allowed, enforced, programs (name, kind, offset, line, column,
 * allowed, why), reason. */
void shell_put_verdict(struct json_out *j, const struct shell_rules *r,
		       const struct shell_words *w);
/* The first denied word, or NULL. */
const struct shell_word *shell_refused(const struct shell_rules *r, const struct shell_words *w);

#endif
