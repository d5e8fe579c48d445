/* SPDX-License-Identifier: Apache-2.0 */
/* Merges several layers into one; layer_stack.h lists the errors. Over any template, the result
 * shows what the layers show together: a name that hides something below stays a whiteout, and a
 * directory that hides the one below stays opaque. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_COPY_H
#define LODGE_RUNTIME_STORAGE_LAYER_COPY_H

#include <stddef.h>

/* Copies the layers, topmost first, into the empty directory `dest`. Does not sync. On failure,
 * `dest` holds an incomplete copy. */
int layer_copy(const int *layers, size_t n, int dest);

#endif
