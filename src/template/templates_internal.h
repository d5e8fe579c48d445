/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make up template/templates.h have from each other. */
#ifndef LODGE_TEMPLATE_TEMPLATES_INTERNAL_H
#define LODGE_TEMPLATE_TEMPLATES_INTERNAL_H

#include "sandbox/keeper_client.h"
#include "engine/internal.h"

/* Whether a new one may have this name. */
int template_check_new(struct engine *e, const char *name, struct err *err);
/* None there is success. */
int template_delete_files(struct engine *e, const char *name, struct err *err);

#endif
