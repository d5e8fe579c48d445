/* SPDX-License-Identifier: Apache-2.0 */
/* The maximum limits of all sessions of the service (settings limits_max_*). */
#ifndef LODGE_ADMIT_LIMITS_MAX_H
#define LODGE_ADMIT_LIMITS_MAX_H

#include "engine/internal.h"
#include "sandbox/template/template.h"

/* Sets the limits that have a maximum. *ret is for template_fini(). */
int limits_max_get(const struct engine *e, struct template *ret, struct err *err);
/* ERR_INVALID if a limit set in `asked` exceeds its maximum; names the field and the setting. */
int limits_max_check(const struct engine *e, const struct template *asked, struct err *err);
/* Lowers limits to the maximum, also those that `t` does not set. */
int limits_max_cap(const struct engine *e, struct template *t, struct err *err);

#endif
