/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the sandboxes created from a template: <home>/templates/<name>/template.json. The
 * keeper manages its files. "host" and "empty" are built in and have no settings. */
#ifndef LODGE_SANDBOX_TEMPLATE_TEMPLATE_H
#define LODGE_SANDBOX_TEMPLATE_TEMPLATE_H

#include "sandbox/sandbox.h"

enum { TEMPLATE_ENV_MAX = 256, TEMPLATE_TEXT_MAX = 64 << 10 /* of a template.json */ };

struct template
{
	char *user; /* of commands: "name" or "uid[:gid]"; NULL: the default one */
	char *workdir; /* NULL: the user's home */
	bool workdir_overridden; /* by template_merge(); not stored */
	char *env[TEMPLATE_ENV_MAX + 1]; /* "K=V", NULL-terminated */
	size_t nenv;
	struct limits limits; /* only the fields in limits_set are valid */
	uint32_t limits_set; /* bit n: the n-th name of template_limit_name() */
	enum keeper_class class;
	unsigned demand; /* enum keeper_demand */
	char *policy; /* default policy of its sessions; NULL: none */
	char *layer; /* layer of a snapshot with its files; NULL: the template has its own files */
	struct { /* origin; zeros if unknown */
		int64_t at; /* milliseconds since 1970 */
		uint64_t bytes; /* size of the unpacked archive */
		char *from; /* "tar", "oci", "directory", "snapshot" */
		char *snapshot; /* id of the snapshot, if from is "snapshot" */
	} made;
};

void template_init(struct template *t);
void template_fini(struct template *t);

/* ERR_NOT_FOUND if it does not exist. *ret can always be passed to template_fini(). */
int template_load(const char *home, const char *name, struct template *ret, struct err *err);
/* Removes the settings; success if it does not exist. KEEPER_TEMPLATE_DROP removes the files. */
int template_remove(const char *home, const char *name, struct err *err);
/* Makes its directory, if it does not exist. The name must be valid. */
int template_make_dir(const char *home, const char *name, struct err *err);
/* Replaces a string of *t by a copy of `value`, or by NULL. */
int template_set_string(char **field, const char *value, struct err *err);
bool template_name_is_valid(const char *name);
bool template_is_builtin(const char *name);

/* Marks a template that is being created or removed, so that it can be cleaned up after a crash.
 * template_remove() removes the marks. */
enum template_mark { TEMPLATE_UNFINISHED, TEMPLATE_REMOVING };
int template_mark(const char *home, const char *name, enum template_mark mark, struct err *err);
void template_unmark(const char *home, const char *name, enum template_mark mark);
bool template_has_mark(const char *home, const char *name, enum template_mark mark);

/* Sets NAME of "NAME=VALUE", replacing an earlier value. */
int template_set_env(struct template *t, const char *assignment, struct err *err);
int template_set_limit(struct template *t, const char *name, uint64_t value, struct err *err);
bool template_has_limit(const struct template *t, const char *name); /* it is set */
/* Demands that each limit that is set can be enforced. */
void template_demand_limits(struct template *t);
/* JSON names of the fields of struct limits: "memory_bytes" ...; NULL after the last. */
const char *template_limit_name(unsigned n);
uint64_t template_limit_value(const struct template *t, unsigned n);
/* By name, which must exist; the default if the template does not set it. */
uint64_t template_limit_of(const struct template *t, const char *name);

/* Settings of `over` override those of `base`, except layer and origin. Its root class makes root
 * the user unless it names another. */
int template_merge(struct template *base, const struct template *over, struct err *err);
/* Lowers limits that exceed those set in `most`. */
int template_cap(struct template *t, const struct template *most, struct err *err);
/* The name of the first limit set in `t` that exceeds the one set in `most`, or NULL. */
const char *template_exceeded_limit(const struct template *t, const struct template *most);
/* Copies limits (with limits_fit_output()), class, demand, and uid and gid (if the user is a
 * number) into the spec, which also borrows the working directory, unless it was overridden: the
 * sandbox makes it if it does not exist. */
int template_apply(const struct template *t, struct sandbox_spec *spec, struct err *err);
/* Whether struct sandbox_spec may have its working directory. */
bool template_can_make_workdir(const struct template *t);
/* 1: "uid[:gid]" parsed; 0: a name; -1: number out of range. */
int template_parse_user(const char *user, uint32_t *uid, uint32_t *gid, struct err *err);

/* Names of all templates below `home`, sorted, without the built-in ones. A result of fn other than
 * 0 ends the loop and is returned. */
typedef int template_fn(void *arg, const char *name);
/* Those with a mark, also if template.json does not exist. */
int template_each_marked(const char *home, template_fn *fn, void *arg, struct err *err);
int template_each(const char *home, template_fn *fn, void *arg, struct err *err);

#endif
