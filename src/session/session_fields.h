/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of fields of a session request, by the names that callers know: what was ignored, because
 * the session exists and holds something else, or adjusted to a bound. */
#ifndef LODGE_SESSION_SESSION_FIELDS_H
#define LODGE_SESSION_SESSION_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

enum session_field {
	SESSION_FIELD_USER,
	SESSION_FIELD_TEMPLATE,
	SESSION_FIELD_SNAPSHOT,
	SESSION_FIELD_POLICY,
	SESSION_FIELD_PROJECT,
	SESSION_FIELD_FRAGMENT,
	SESSION_FIELD_IDLE,
	SESSION_FIELD_LIFETIME,
	SESSION_FIELD_MAX_LIFETIME,
	SESSION_FIELD_DELETE_AFTER,
	SESSION_FIELD_ON_IDLE,
	SESSION_FIELD_ON_EXPIRE,
	SESSION_FIELD_METADATA,
	SESSION_FIELD_ENV,
	SESSION_FIELD_RUN_AS,
	SESSION_FIELD_WORKDIR,
	SESSION_FIELD_CLASS,
	SESSION_FIELDS,
};

struct session_fields {
	uint32_t fields; /* bits of enum session_field */
	uint32_t limits; /* bits as in template.limits_set */
};

const char *session_field_name(enum session_field field);
void session_fields_add(struct session_fields *to, enum session_field field);
void session_fields_add_limit(struct session_fields *to, unsigned limit);
bool session_fields_has(const struct session_fields *f, enum session_field field);

/* Names as "template", "limits.memory_bytes", in the order above. */
typedef void session_field_fn(void *arg, const char *name);
void session_fields_each(const struct session_fields *f, session_field_fn *fn, void *arg);

#endif
