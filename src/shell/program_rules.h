/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of allowed and denied programs, and verdicts on words. */
#ifndef LODGE_SHELL_PROGRAM_RULES_H
#define LODGE_SHELL_PROGRAM_RULES_H

#include "base/json.h"
#include "shell/shell.h"

enum {
	SHELL_NAMES_MAX = 512, /* names in a list */
	SHELL_NAME_MAX = 255, /* bytes of a name */
	SHELL_REASON_MAX = 160, /* bytes of a policy's reason */
	SHELL_TOLD_MAX = SHELL_REASON_MAX + 64, /* bytes of a verdict with its reason and NUL */
};

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
/* True if this kernel can enforce an allow list. */
bool shell_can_enforce(void);
/* Writes members of an object: allowed, enforced, programs (name, kind, offset, line, column,
 * allowed, why), reason. */
void shell_put_verdict(struct json_out *j, const struct shell_rules *r,
		       const struct shell_words *w);
/* The first denied word, or NULL. */
const struct shell_word *shell_refused(const struct shell_rules *r, const struct shell_words *w);

#endif
