/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session_fields.h"

#include <stdio.h>
#include <string.h>

#include "sandbox/template/template.h"

static const char *const names[SESSION_FIELDS] = {
	[SESSION_FIELD_USER] = "user",
	[SESSION_FIELD_TEMPLATE] = "template",
	[SESSION_FIELD_SNAPSHOT] = "snapshot",
	[SESSION_FIELD_POLICY] = "policy",
	[SESSION_FIELD_PROJECT] = "project",
	[SESSION_FIELD_FRAGMENT] = "fragment",
	[SESSION_FIELD_IDLE] = "idle_timeout_ms",
	[SESSION_FIELD_LIFETIME] = "lifetime_ms",
	[SESSION_FIELD_MAX_LIFETIME] = "max_lifetime_ms",
	[SESSION_FIELD_DELETE_AFTER] = "delete_after_ms",
	[SESSION_FIELD_ON_IDLE] = "on_idle",
	[SESSION_FIELD_ON_EXPIRE] = "on_expire",
	[SESSION_FIELD_METADATA] = "metadata",
	[SESSION_FIELD_ENV] = "env",
	[SESSION_FIELD_RUN_AS] = "run_as",
	[SESSION_FIELD_WORKDIR] = "workdir",
	[SESSION_FIELD_CLASS] = "class",
};

const char *session_field_name(enum session_field field)
{
	return names[field];
}

void session_fields_add(struct session_fields *to, enum session_field field)
{
	to->fields |= 1u << field;
}

void session_fields_add_limit(struct session_fields *to, unsigned limit)
{
	to->limits |= 1u << limit;
}

bool session_fields_has(const struct session_fields *f, enum session_field field)
{
	return f->fields & 1u << field;
}

void session_fields_each(const struct session_fields *f, session_field_fn *fn, void *arg)
{
	for (unsigned i = 0; i < SESSION_FIELDS; i++)
		if (f->fields & 1u << i)
			fn(arg, names[i]);
	for (unsigned i = 0; template_limit_name(i); i++) {
		const char *limit = template_limit_name(i);
		char name[64];

		if (!(f->limits & 1u << i))
			continue;
		/* requests and records have it as "cpus" */
		snprintf(name, sizeof(name), "limits.%s",
			 strcmp(limit, "cpu_milli") == 0 ? "cpus" : limit);
		fn(arg, name);
	}
}
