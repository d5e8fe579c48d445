/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by templates.c and template_build.c. */
#ifndef LODGE_TEMPLATE_TEMPLATES_INTERNAL_H
#define LODGE_TEMPLATE_TEMPLATES_INTERNAL_H

#include "sandbox/keeper_client.h"
#include "engine/internal.h"
#include "sandbox/template/template.h"

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
