/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes template.json, and limits as JSON. */
#ifndef LODGE_SANDBOX_TEMPLATE_TEMPLATE_JSON_H
#define LODGE_SANDBOX_TEMPLATE_TEMPLATE_JSON_H

#include "base/json.h"
#include "sandbox/template/template.h"
#include "wire/enforcement.h"

/* Parses the text of a template.json; `where` names it in errors. */
int template_parse(const char *where, const char *text, size_t len, struct template *ret,
		   struct err *err);
/* The inverse; the caller owns *ret. */
int template_print(const struct template *t, char **ret, struct err *err);
/* Atomic; creates or replaces the template. More than TEMPLATE_TEXT_MAX: ERR_LIMIT, EMSGSIZE. */
int template_save(const char *home, const char *name, const struct template *t, struct err *err);

#define LIMITS_NOT_ENFORCED "limits_not_enforced" /* the key in records */
/* A list of {limit, enforced: false, reason}, of the limits that are set (t NULL: of all). null:
 * not known yet. */
void template_put_not_enforced(struct json_out *j, const char *key, const struct enforcement *f,
			       enum keeper_store store, const struct template *t);
/* One item of such a list; none without a problem. `shown` is the name of the limit there. */
void template_put_problem(struct json_out *j, const char *shown, const char *problem);

#endif
