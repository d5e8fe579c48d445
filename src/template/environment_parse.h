/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_TEMPLATE_ENVIRONMENT_PARSE_H
#define LODGE_TEMPLATE_ENVIRONMENT_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Whether the value of this variable must not be stored. */
bool environment_is_secret(const char *name);
extern const char environment_script[]; /* for sh; $1 is the marker */
/* Converts the output of environment_script to JSON, which the caller frees. ERR_UNAVAILABLE: the
 * output is incomplete. */
int environment_parse(const char *text, size_t len, const char *marker, char **ret,
		      struct err *err);

#endif
