/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LODGED_FIRST_KEY_H
#define LODGE_LODGED_FIRST_KEY_H

#include "engine/engine.h"

/* The key that makes all others. `given` is one as long as it is given, and not a day longer.
 * Without it, and if there is no other that may everything, one is made and written to
 * <data>/admin.key; *ret_made (may be NULL) tells. */
int first_key(struct engine *e, const char *given, bool *ret_made, struct err *err);

#endif
