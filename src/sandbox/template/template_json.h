/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes template.json. */
#ifndef LODGE_SANDBOX_TEMPLATE_TEMPLATE_JSON_H
#define LODGE_SANDBOX_TEMPLATE_TEMPLATE_JSON_H

#include "sandbox/template/template.h"

/* Parses the text of a template.json; `where` names it in errors. */
int template_parse(const char *where, const char *text, size_t len, struct template *ret,
		   struct err *err);
/* The inverse; the caller owns *ret. */
int template_print(const struct template *t, char **ret, struct err *err);
/* Atomic; creates or replaces the template. More than TEMPLATE_TEXT_MAX: ERR_LIMIT, EMSGSIZE. */
int template_save(const char *home, const char *name, const struct template *t, struct err *err);

#endif
