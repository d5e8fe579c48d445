/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLI_COPY_TREE_COPY_H
#define LODGE_CLI_COPY_TREE_COPY_H

#include "base/err.h"

/* Moves all that is in the directory `from`, which nobody else may reach, into the directory `to`
 * of the same file system. Directories that are there on both sides become one; a file or a link
 * that is in the way is replaced; no link is followed on either side. Set-id bits are taken away,
 * and what is neither file, directory nor link is left out. */
int tree_copy(int from, int to, struct err *err);
/* Removes dir/name and what is below it, also from directories that their owner may not write to.
 */
void tree_copy_drop(int dir, const char *name);

#endif
