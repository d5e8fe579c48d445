/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a stack of layers: one layer, or one archive.
 *
 * A layer is the upper directory of an overlay (index, metacopy and redirect_dir off). What several
 * of them show together over any template, the one made of them shows over it as well: a name that
 * hides something below stays a whiteout, a directory that shuts out the one below stays opaque.
 *
 * Guests have made what is read here. No link is followed and no mount entered; memory and
 * descriptors do not grow with the size of a tree, but for the names of files that have several.
 * All of it blocks for as long as it takes: for a process of its own. Returns 0 or -errno.
 *
 *   -E2BIG       more than 64 layers, or too much to remember: attributes of one file, hard links
 *   -ELOOP       deeper than 8192 levels
 *   -ESTALE      a layer changed meanwhile
 *   -EOPNOTSUPP  a layer was made by an overlay with redirects or metacopy */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_STACK_H
#define LODGE_RUNTIME_STORAGE_LAYER_STACK_H

#include <stddef.h>
#include <stdint.h>

/* Merges layers, the first is topmost, into the empty directory `dest`. Nothing is synced; on
 * failure `dest` holds some part of it. */
int layer_copy(const int *layers, size_t n, int dest);

/* The same as a pax archive, in the form of an OCI layer (.wh.NAME, .wh..wh..opq). Holes are
 * written as zeros. What an archive cannot hold: a socket becomes a whiteout, for its process is
 * not there either; a name that begins with ".wh.", and an attribute's name with "=" in it, are
 * -EILSEQ. */
int layer_tar(const int *layers, size_t n, int fd);

/* Space a tree takes on disk, each file once. */
int layer_stack_bytes(int dir, uint64_t *ret);

/* Until the file system that `dir` is on has everything on disk. */
int layer_stack_sync(int dir);

#endif
