/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make up session/templates.h have from each other. */
#ifndef LODGE_SESSION_TEMPLATES_INSIDE_H
#define LODGE_SESSION_TEMPLATES_INSIDE_H

#include "sandbox/keeper_client.h"
#include "session/inside.h"

/* Whether a new one may have this name. */
int template_check_new(struct engine *e, const char *name, struct err *err);
/* None there is success. */
int template_drop_files(struct engine *e, const char *name, struct err *err);

#endif
