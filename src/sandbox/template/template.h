/* SPDX-License-Identifier: Apache-2.0 */
/* What a template says about the sandboxes made from it: <home>/templates/<name>/template.json.
 * Its files are the keeper's business. "host" and "empty" are built in and say nothing. */
#ifndef LODGE_SANDBOX_TEMPLATE_TEMPLATE_H
#define LODGE_SANDBOX_TEMPLATE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"
#include "wire/keeper_proto.h"

enum { TEMPLATE_ENV_MAX = 256, TEMPLATE_TEXT_MAX = 64 << 10 /* of a template.json */ };

struct template
{
	char *user; /* of commands: "name" or "uid[:gid]"; NULL: the default one */
	char *workdir; /* NULL: the user's home */
	char *env[TEMPLATE_ENV_MAX + 1]; /* "K=V", NULL-terminated */
	size_t nenv;
	struct limits limits; /* only the fields in limits_set say something */
	uint32_t limits_set; /* bit n: the n-th name of template_limit_name() */
	enum keeper_class class;
	unsigned demand; /* enum keeper_demand */
	char *policy; /* of sessions that name no other; NULL: none */
	char *layer; /* its files are this layer of a snapshot; NULL: they are its own */
	struct { /* how it came to be; zeros where nobody wrote it down */
		int64_t at; /* milliseconds since 1970 */
		uint64_t bytes; /* as an archive, unpacked */
		char *from; /* "tar", "oci", "directory", "snapshot" */
		char *snapshot; /* its id, then */
	} made;
};

void template_init(struct template *t);
void template_fini(struct template *t);

/* ERR_NOT_FOUND if there is no such template. *ret is always fit for template_fini(). */
int template_load(const char *home, const char *name, struct template *ret, struct err *err);
/* The same from the text of a template.json; `where` is for the error. */
int template_parse(const char *where, const char *text, size_t len, struct template *ret,
		   struct err *err);
/* The other way; *ret is the caller's. */
int template_print(const struct template *t, char **ret, struct err *err);
/* All or nothing; makes the template known. More than TEMPLATE_TEXT_MAX: ERR_LIMIT, EMSGSIZE. */
int template_save(const char *home, const char *name, const struct template *t, struct err *err);
/* Forgets it; one that is not there is success. The files are the keeper's (TEMPLATE_DROP). */
int template_remove(const char *home, const char *name, struct err *err);
bool template_name_is_valid(const char *name);
bool template_is_builtin(const char *name);

/* A note beside it, for who finds it half made or half removed; gone with template_remove(). */
enum template_mark { TEMPLATE_UNFINISHED, TEMPLATE_REMOVING };
int template_mark(const char *home, const char *name, enum template_mark mark, struct err *err);
void template_unmark(const char *home, const char *name, enum template_mark mark);
bool template_has_mark(const char *home, const char *name, enum template_mark mark);

/* Replaces K or adds it. */
int template_set_env(struct template *t, const char *assignment, struct err *err);
int template_set_limit(struct template *t, const char *name, uint64_t value, struct err *err);
/* The JSON names of struct limits' fields: "memory_bytes" ...; NULL behind the last. */
const char *template_limit_name(unsigned n);
uint64_t template_limit_value(const struct template *t, unsigned n);
/* By its name, which there is; the default where the template says nothing. */
uint64_t template_limit_of(const struct template *t, const char *name);

/* What `over` says wins, but for what its files are and how they came to be; its root class makes
 * root the user unless it names another. */
int template_merge(struct template *base, const struct template *over, struct err *err);
/* No limit is beyond one that `most` says. */
int template_cap(struct template *t, const struct template *most, struct err *err);
/* NULL, or the name of the first limit that `t` says and that is beyond what `most` says. */
const char *template_beyond(const struct template *t, const struct template *most);
/* Into the spec of a sandbox: limits, class, demand, uid and gid (where the user is a number). */
int template_apply(const struct template *t, struct sandbox_spec *spec, struct err *err);
/* "uid[:gid]" into numbers: 1; a name: 0; a number that cannot be: -1. */
int template_parse_user(const char *user, uint32_t *uid, uint32_t *gid, struct err *err);

/* Names of all templates below `home`, sorted, built-in ones not among them. Returns other than 0
 * of fn end it. */
typedef int template_fn(void *arg, const char *name);
/* With a mark, also those that are no templates yet or any more. */
int template_each_marked(const char *home, template_fn *fn, void *arg, struct err *err);
int template_each(const char *home, template_fn *fn, void *arg, struct err *err);

#endif
