/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LODGED_FIRST_KEY_H
#define LODGE_LODGED_FIRST_KEY_H

#include "engine/engine.h"

/* Ensures that an admin key exists. `given` (may be NULL) is valid only while it is configured.
 * Without it, and without another admin key, this creates one in <data>/admin.key and sets
 * *ret_made (may be NULL). */
int first_key(struct engine *e, const char *given, bool *ret_made, struct err *err);

#endif
