/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller filled in. */
#ifndef LODGE_LIB_LIB_OPTS_H
#define LODGE_LIB_LIB_OPTS_H

#include "lib/lib_engine.h"
#include "sandbox/template/template.h"

/* Copies the caller's struct to this version's: members that the caller does not know become 0;
 * members that only the caller knows must be 0. `given` NULL: all zeros. */
int lib_get_struct(const char *what, const void *given, void *ret, size_t size);
#define TAKE(type, given, ret) lib_get_struct("struct " #type, given, ret, sizeof(struct type))

/* Copies a text into an array; ERR_INVALID naming the field if it does not fit. NULL is "". */
int lib_get_text(const char *field, const char *text, char *ret, size_t size);
int lib_get_ref(const struct lodge_ref *ref, struct session_ref *ret);
/* Returns an array of n keys for free(); NULL for none. */
int lib_get_keys(const struct lodge_ref *keys, size_t n, struct store_binding **ret);
int lib_get_limits(const struct lodge_limits *limits, struct template *ret);
struct store_page lib_get_page(int64_t after, uint64_t limit);

#endif
