/* SPDX-License-Identifier: Apache-2.0 */
/* Administration of templates: create from an archive or a snapshot, list, change, delete. All
 * tenants share them. Archives are unpacked inside a sandbox made for that purpose; a template from
 * a snapshot shares the snapshot's files. */
#ifndef LODGE_TEMPLATE_TEMPLATES_H
#define LODGE_TEMPLATE_TEMPLATES_H

#include "engine/engine.h"
#include "sandbox/template/template.h"

struct template_info {
	char name[STORE_ID];
	bool builtin;
	struct template t; /* the defaults if `problem` is set */
	int64_t bytes; /* 0: unknown */
	int64_t sessions; /* that use it */
	char problem[STORE_TEXT]; /* why it cannot be read; "": none */
};
/* Free *ret with template_info_fini(). */
int template_info(struct engine *e, const char *name, struct template_info *ret, struct err *err);
void template_info_fini(struct template_info *i);
/* Built-in templates first, then by name. Stops when fn returns other than 0. */
typedef int template_info_fn(void *arg, const struct template_info *i);
int template_list(struct engine *e, template_info_fn *fn, void *arg, struct err *err);

/* Creates a template from a snapshot of the caller and shares its files. Settings come from the
 * template of the snapshot's session; `over` overrides them. ERR_CONFLICT: the name exists. */
int template_promote(struct engine *e, const struct caller *caller, const char *name,
		     const char *snapshot, const struct template *over, struct err *err);
/* `edit` changes the settings. They apply to new sessions, and to others from the next resume. */
typedef int template_edit_fn(void *arg, struct template *t, struct err *err);
int template_change(struct engine *e, const struct caller *caller, const char *name,
		    template_edit_fn *edit, void *arg, struct err *err);
/* Deletes the template with its files. ERR_CONFLICT: sandboxes, sessions or snapshots use it. */
int template_delete(struct engine *e, const char *actor, const char *name, struct err *err);

/* At startup: finishes or undoes interrupted changes and holds the layers that templates use. */
int templates_reconcile(struct engine *e, struct err *err);

/* ---- for builds and environments --------------------------------------------------------- */

/* ERR_NOT_FOUND if the name is invalid too. *ret is always fit for template_fini(). */
int template_load_existing(struct engine *e, const char *name, struct template *ret,
			   struct err *err);
/* Writes an audit event "template NAME was WHAT". */
void template_audit(struct engine *e, const char *actor, const char *name, const char *what);
/* Fails unless a new template may have this name. */
int template_check_new(struct engine *e, const char *name, struct err *err);
/* Succeeds if there are none. */
int template_delete_files(struct engine *e, const char *name, struct err *err);

#endif
