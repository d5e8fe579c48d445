/* SPDX-License-Identifier: Apache-2.0 */
/* Names that callers choose. */
#ifndef LODGE_ENGINE_NAME_CHECK_H
#define LODGE_ENGINE_NAME_CHECK_H

#include <stddef.h>

#include "base/err.h"

/* A name: 1 to size - 1 bytes of text without control characters. */
int name_check(const char *field, const char *text, size_t size, struct err *err);
/* The same; NULL and "" are allowed. */
int name_check_optional(const char *field, const char *text, size_t size, struct err *err);
/* The same for an id, which is one component of a path. */
int name_check_id(const char *field, const char *text, size_t size, struct err *err);

#endif
