/* SPDX-License-Identifier: Apache-2.0 */
/* Writes merged layers as an archive; layer_stack.h lists the errors. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_TAR_H
#define LODGE_RUNTIME_STORAGE_LAYER_TAR_H

#include <stddef.h>

/* Writes the layers, topmost first, as a pax archive in the form of an OCI layer (.wh.NAME,
 * .wh..wh..opq). Holes become zeros. A socket becomes a whiteout, because its process does not
 * exist any more. -EILSEQ: a name that begins with ".wh." or an attribute whose name contains "=",
 * which the archive cannot represent. */
int layer_tar(const int *layers, size_t n, int fd);

#endif
