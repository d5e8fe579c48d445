/* SPDX-License-Identifier: Apache-2.0 */
/* Templates as who runs the service sees them: made of an archive or a snapshot, listed, changed,
 * removed. They are everybody's. The files of an archive are unpacked inside a sandbox made for
 * that; those of a snapshot stay where they are. */
#ifndef LODGE_TEMPLATE_TEMPLATES_H
#define LODGE_TEMPLATE_TEMPLATES_H

#include "engine/engine.h"

struct template_info {
	char name[STORE_ID];
	bool builtin;
	struct template t; /* its defaults where there is a problem */
	int64_t bytes; /* 0: not known */
	int64_t sessions; /* that are of it */
	char problem[STORE_TEXT]; /* "": none; it cannot be read otherwise */
};
/* *ret is for template_info_fini(). ERR_NOT_FOUND. */
int template_info(struct engine *e, const char *name, struct template_info *ret, struct err *err);
void template_info_fini(struct template_info *i);
/* The built-in ones first, then by name. A return of fn other than 0 ends it. */
typedef int template_info_fn(void *arg, const struct template_info *i);
int template_list(struct engine *e, template_info_fn *fn, void *arg, struct err *err);

/* Made of a snapshot of this caller's, whose files it shares. Says what the template says that the
 * snapshot's session has, and `over` that. ERR_CONFLICT: the name is taken. */
int template_promote(struct engine *e, const struct caller *who, const char *name,
		     const char *snapshot, const struct template *over, struct err *err);
/* `edit` changes what it says: for new sessions, and for others when they next get a sandbox. */
typedef int template_edit_fn(void *arg, struct template *t, struct err *err);
int template_change(struct engine *e, const struct caller *who, const char *name,
		    template_edit_fn *edit, void *arg, struct err *err);
/* With its files. ERR_CONFLICT while sandboxes, sessions or snapshots lie on it. */
int template_delete(struct engine *e, const char *actor, const char *name, struct err *err);

/* ---- of an archive ----------------------------------------------------------------------------
 */

struct template_build;
/* Makes the sandbox. `oci`: what comes is an image layout, else a root. */
int template_build_new(struct engine *e, const char *name, bool oci, struct template_build **ret,
		       struct err *err);
/* Reads a tar, packed or not, from fd (borrowed) into it. Once. */
int template_build_fill(struct template_build *b, int fd, struct err *err);
/* What was filled becomes the template. ERR_CONFLICT: somebody else was faster. */
int template_build_commit(struct template_build *b, const char *actor, struct err *err);
bool template_build_wants_root(const struct template_build *b); /* the image says so */
/* What was not committed leaves nothing. NULL is allowed. */
void template_build_free(struct template_build *b);
DEFINE_AUTO(struct template_build *, template_build_free);

/* At the start: what was left half made or half removed, and which layers templates are made of. */
int templates_reconcile(struct engine *e, struct err *err);

#endif
